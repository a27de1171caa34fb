//! Steps of Nesterov's momentum, Lion, Adafactor and Muon, on the CPU (tests/nn/optimizers.rs) and a device (tests/gpu/optimizers.rs): against
//! plain formulas in f64, and states that continue with the same bits.

use selvedge::nn::{
    Adafactor, AdamW, Lion, Muon, MuonRateAdjustment, Optimizer, OptimizerPair, Parameters, Sequential, Sgd,
    Variable,
};
use selvedge::nn::{Initializer, Linear, Module, Reduction, mse_loss};
use selvedge::{DType, Device, Result, Tensor};

/// Calls a macro with the name of each function.
macro_rules! each {
    ($tests:ident) => {
        $tests! {
            steps_of_nesterov_momentum_follow_their_formula,
            steps_of_lion_follow_their_formula,
            steps_of_adafactor_follow_their_formula,
            adafactor_of_16_bit_parameters_has_moments_of_f32,
            adafactor_leaves_zeros_with_gradients_of_0_finite,
            steps_of_muon_follow_their_formula,
            muon_of_16_bit_parameters_has_a_momentum_of_f32,
            muon_makes_the_singular_values_of_a_gradient_near_1,
            muon_leaves_zeros_with_gradients_of_0_finite,
            resumed_optimizers_have_the_bits_of_uninterrupted_ones,
            steps_in_a_buffer_have_the_bits_of_steps_apart,
            parameters_of_no_elements_take_steps,
        }
    };
}
pub(crate) use each;

type Create = fn(Vec<Variable>) -> Result<Box<dyn Optimizer>>;

/// The optimizers of these cases, with every option that changes a step.
pub const OPTIMIZERS: [Create; 8] = [
    |list| {
        Ok(Box::new(Sgd::new(list, 0.05)?.with_momentum(0.8)?.with_nesterov(true)?.with_weight_decay(0.1)?))
    },
    |list| Ok(Box::new(Lion::new(list, 0.05)?)),
    |list| {
        Ok(Box::new(
            Lion::new(list, 0.05)?.with_betas(0.5, 0.75)?.with_weight_decay(0.5)?.with_min_decay_rank(2),
        ))
    },
    |list| Ok(Box::new(Adafactor::new(list, 0.3)?)),
    |list| Ok(Box::new(Adafactor::new(list, 0.05)?.with_weight_decay(0.2)?.with_min_decay_rank(2))),
    |list| Ok(Box::new(Adafactor::new(list, 0.05)?.with_relative_step(false).with_clipping_threshold(1.5)?)),
    |list| with_muon(list, Ok),
    |list| {
        with_muon(list, |muon| {
            let muon =
                muon.with_momentum(0.5)?.with_nesterov(false).with_newton_schulz([3.0, -3.2, 1.2], 3)?;
            let muon = muon.with_eps(1e-3)?.with_weight_decay(0.0)?;
            Ok(muon.with_learning_rate_adjustment(MuonRateAdjustment::MatchRmsAdamW))
        })
    },
];

/// Returns a Muon of the matrices and an AdamW of the other parameters: both as one, or the one that has parameters.
fn with_muon(list: Vec<Variable>, change: impl FnOnce(Muon) -> Result<Muon>) -> Result<Box<dyn Optimizer>> {
    let (matrices, others): (Vec<_>, Vec<_>) =
        list.into_iter().partition(|parameter| parameter.shape().rank() == 2);
    if matrices.is_empty() {
        return Ok(Box::new(AdamW::new(others, 0.01)?));
    }
    let muon = change(Muon::new(matrices, 0.05)?)?;
    if others.is_empty() {
        return Ok(Box::new(muon));
    }
    Ok(Box::new(OptimizerPair::new(muon, AdamW::new(others, 0.01)?)?))
}

/// Changes a parameter, given the step from 1 on and the gradient.
type Formula = Box<dyn FnMut(i32, &mut [f64], &[f64])>;

const STEPS: usize = 6;
const SHAPES: [&[usize]; 5] = [&[], &[5], &[3, 4], &[2, 3, 2], &[1, 3]];

fn element(at: usize, step: usize) -> f64 {
    ((at * 7 + step * 5 + 3) % 13) as f64 / 4.0 - 1.4
}

fn start(count: usize) -> Vec<f64> {
    (0..count).map(|at| element(at, 20)).collect()
}

/// The gradient of a step. Some of its elements are large, so that updates are clipped.
fn gradient(count: usize, step: usize) -> Vec<f64> {
    (0..count).map(|at| element(at, step) * if (at + step).is_multiple_of(5) { 30.0 } else { 1.0 }).collect()
}

fn leaf(numbers: &[f64], shape: &[usize], dtype: DType, device: &Device) -> Variable {
    let tensor = Tensor::from_slice(numbers, shape, device).unwrap().cast(dtype).unwrap();
    Variable::with_grad(tensor).unwrap()
}

fn give(x: &Variable, numbers: &[f64]) {
    x.zero_grad();
    let gradient = Tensor::from_slice(numbers, &x.shape(), &x.device()).unwrap();
    x.backward_with(&gradient.cast(x.dtype()).unwrap()).unwrap();
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.cast(DType::F64).unwrap().to_vec().unwrap()
}

#[track_caller]
fn assert_close(found: &[f64], wanted: &[f64], tolerance: f64, what: &str) {
    let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance * (1.0 + b.abs());
    assert_eq!(found.len(), wanted.len(), "{what}");
    assert!(found.iter().zip(wanted).all(is_close), "{what}: {found:?}, not {wanted:?}");
}

/// Runs steps, and a formula, which is given the step from 1 on, the parameter and the gradient, and changes the parameter.
fn follows(
    device: &Device,
    create: impl Fn(Vec<Variable>) -> Result<Box<dyn Optimizer>>,
    formula: impl Fn(&[usize]) -> Formula,
) {
    for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 2e-5)] {
        for shape in SHAPES {
            let count = shape.iter().product();
            let mut wanted = start(count);
            let x = leaf(&wanted, shape, dtype, device);
            let (mut optimizer, mut formula) = (create(vec![x.clone()]).unwrap(), formula(shape));
            for step in 0..STEPS {
                let gradient = gradient(count, step);
                give(&x, &gradient);
                optimizer.step().unwrap();
                formula(step as i32 + 1, &mut wanted, &gradient);
                assert_close(&numbers(&x.tensor()), &wanted, tolerance, &format!("{shape:?}, step {step}"));
            }
        }
    }
}

pub fn steps_of_nesterov_momentum_follow_their_formula(device: &Device) {
    for decay in [0.0, 0.1] {
        follows(
            device,
            |list| {
                let optimizer = Sgd::new(list, 0.02)?.with_momentum(0.8)?.with_nesterov(true)?;
                Ok(Box::new(optimizer.with_weight_decay(decay)?))
            },
            |shape| {
                let mut buffer = vec![0.0; shape.iter().product()];
                Box::new(move |_, p, g| {
                    for at in 0..p.len() {
                        let g = g[at] + decay * p[at];
                        buffer[at] = 0.8 * buffer[at] + g;
                        p[at] -= 0.02 * (g + 0.8 * buffer[at]);
                    }
                })
            },
        );
    }
}

pub fn steps_of_lion_follow_their_formula(device: &Device) {
    for ((first, second), decay) in [((0.9, 0.99), 0.0), ((0.5, 0.75), 0.3)] {
        follows(
            device,
            |list| {
                let optimizer = Lion::new(list, 0.1)?.with_betas(first, second)?;
                Ok(Box::new(optimizer.with_weight_decay(decay)?))
            },
            |shape| {
                let mut momentum = vec![0.0; shape.iter().product()];
                Box::new(move |_, p, g| {
                    for at in 0..p.len() {
                        let direction: f64 = first * momentum[at] + (1.0 - first) * g[at];
                        p[at] = p[at] * (1.0 - 0.1 * decay) - 0.1 * direction.signum();
                        momentum[at] = second * momentum[at] + (1.0 - second) * g[at];
                    }
                })
            },
        );
    }
}

/// The numbers of an Adafactor.
#[derive(Clone, Copy)]
struct Numbers {
    rate: f64,
    power: f64,
    eps: (f64, f64),
    threshold: f64,
    decay: f64,
    is_relative: bool,
}

fn root_mean_square(numbers: &[f64]) -> f64 {
    (numbers.iter().map(|x| x * x).sum::<f64>() / numbers.len() as f64).sqrt()
}

/// `torch.optim.Adafactor` with loops.
fn adafactor(of: Numbers, shape: &[usize]) -> Formula {
    let count: usize = shape.iter().product();
    let matrix = shape.len().checked_sub(2).map(|at| (shape[at], shape[at + 1]));
    let (mut rows, mut columns, mut variance) = (vec![0.0; count], vec![0.0; count], vec![0.0; count]);
    Box::new(move |step, p, g| {
        let step = f64::from(step);
        let share = step.powf(of.power);
        let (mut rate, scale) = (of.rate, root_mean_square(p).max(of.eps.1));
        if of.is_relative {
            rate = rate.min(1.0 / step.sqrt()) * scale;
        }
        let mut update = vec![0.0; count];
        if let Some((height, width)) = matrix {
            for first in (0..count).step_by(height * width) {
                let square = |row: usize, column: usize| g[first + row * width + column].powi(2);
                // The moments of a matrix are at the front of its elements.
                for row in 0..height {
                    let mean = (0..width).map(|column| square(row, column)).sum::<f64>() / width as f64;
                    rows[first + row] = (1.0 - share) * rows[first + row] + share * mean;
                }
                for column in 0..width {
                    let mean = (0..height).map(|row| square(row, column)).sum::<f64>() / height as f64;
                    columns[first + column] = (1.0 - share) * columns[first + column] + share * mean;
                }
                let mean = rows[first..first + height].iter().sum::<f64>() / height as f64;
                for row in 0..height {
                    for column in 0..width {
                        let of_both = rows[first + row] * columns[first + column] / mean.max(of.eps.0);
                        let at = first + row * width + column;
                        update[at] = g[at] / of_both.max(of.eps.0.powi(2)).sqrt();
                    }
                }
            }
        } else {
            for at in 0..count {
                variance[at] = (1.0 - share) * variance[at] + share * g[at].powi(2);
                update[at] = g[at] / variance[at].max(of.eps.0.powi(2)).sqrt();
            }
        }
        let excess = (root_mean_square(&update) / of.threshold).max(1.0);
        for at in 0..count {
            p[at] = p[at] * (1.0 - of.rate * of.decay) - rate / excess * update[at];
        }
    })
}

pub fn steps_of_adafactor_follow_their_formula(device: &Device) {
    let defaults =
        Numbers { rate: 0.9, power: -0.8, eps: (1e-10, 1e-3), threshold: 1.0, decay: 0.0, is_relative: true };
    // An eps that is larger than many roots of moments, one that is larger than a scale, and steps of a fixed size.
    for of in [
        defaults,
        Numbers { rate: 0.05, decay: 0.2, ..defaults },
        Numbers { power: -0.5, eps: (2.0, 3.0), threshold: 1.5, ..defaults },
        Numbers { rate: 0.02, is_relative: false, threshold: 100.0, decay: 0.1, ..defaults },
    ] {
        follows(
            device,
            |list| {
                let optimizer = Adafactor::new(list, of.rate)?.with_beta2_decay(of.power)?;
                let optimizer = optimizer.with_eps(Some(of.eps.0), of.eps.1)?;
                let optimizer = optimizer.with_clipping_threshold(of.threshold)?;
                Ok(Box::new(optimizer.with_relative_step(of.is_relative).with_weight_decay(of.decay)?))
            },
            |shape| adafactor(of, shape),
        );
    }
}

pub fn adafactor_of_16_bit_parameters_has_moments_of_f32(device: &Device) {
    for (dtype, eps) in [(DType::BF16, 2f64.powi(-7)), (DType::F16, 2f64.powi(-10))] {
        let of = Numbers {
            rate: 0.1,
            power: -0.8,
            eps: (eps, 1e-3),
            threshold: 1.0,
            decay: 0.0,
            is_relative: true,
        };
        let x = leaf(&start(12), &[3, 4], dtype, device);
        let mut optimizer = Adafactor::new(vec![x.clone()], of.rate).unwrap();
        let mut formula = adafactor(of, &[3, 4]);
        for step in 0..STEPS {
            // Gradients at and below the default eps, which is that of the dtype. They are exact in it.
            let gradient: Vec<f64> = (0..12).map(|at| ((at + step) % 4) as f64 * eps / 4.0).collect();
            let mut wanted = numbers(&x.tensor());
            give(&x, &gradient);
            optimizer.step().unwrap();
            formula(step as i32 + 1, &mut wanted, &gradient);
            assert_close(&numbers(&x.tensor()), &wanted, eps / 2.0 + 1e-5, &format!("{dtype}, step {step}"));
        }
        let states = optimizer.state_dict().unwrap();
        let found =
            ["0.row_var", "0.col_var"].map(|name| (states[name].dtype(), states[name].shape().to_vec()));
        assert_eq!(found, [(DType::F32, vec![3, 1]), (DType::F32, vec![1, 4])]);
    }
}

pub fn adafactor_leaves_zeros_with_gradients_of_0_finite(device: &Device) {
    for shape in SHAPES {
        for eps in [None, Some(0.0), Some(1e-30)] {
            let count = shape.iter().product();
            let x = leaf(&start(count), shape, DType::F32, device);
            let before = numbers(&x.tensor());
            let optimizer = Adafactor::new(vec![x.clone()], 0.1).unwrap();
            let mut optimizer = optimizer.with_eps(eps, 1e-3).unwrap();
            give(&x, &vec![0.0; count]);
            optimizer.step().unwrap();
            assert_eq!(numbers(&x.tensor()), before, "{shape:?}, {eps:?}");
        }
    }
}

/// The settings of a Muon.
#[derive(Clone, Copy)]
struct MuonSettings {
    rate: f64,
    momentum: f64,
    is_nesterov: bool,
    coefficients: [f64; 3],
    steps: usize,
    decay: f64,
    adjustment: MuonRateAdjustment,
}

const MUON: MuonSettings = MuonSettings {
    rate: 0.1,
    momentum: 0.95,
    is_nesterov: true,
    coefficients: [3.4445, -4.775, 2.0315],
    steps: 5,
    decay: 0.1,
    adjustment: MuonRateAdjustment::Original,
};

/// A matrix of rows.
type Rows = Vec<Vec<f64>>;

fn map(rows: usize, columns: usize, element: impl Fn(usize, usize) -> f64) -> Rows {
    (0..rows).map(|row| (0..columns).map(|column| element(row, column)).collect()).collect()
}

/// Returns the elements of a product plus `beta` times a matrix, rounded to bf16.
fn product(alpha: f64, a: &Rows, b: impl Fn(usize, usize) -> f64, beta: f64, c: &Rows) -> Rows {
    map(a.len(), c[0].len(), |row, column| {
        let sum: f64 = a[row].iter().enumerate().map(|(at, x)| x * b(at, column)).sum();
        half::bf16::from_f64(alpha * sum + beta * c[row][column]).to_f64()
    })
}

/// The Newton-Schulz steps with loops.
fn orthogonalized(of: MuonSettings, update: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let norm = update.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-7);
    let is_tall = rows > columns;
    let at =
        |row: usize, column: usize| if is_tall { column * columns + row } else { row * columns + column };
    let (shorter, longer) = (rows.min(columns), rows.max(columns));
    let [a, b, c] = of.coefficients;
    let mut x =
        map(shorter, longer, |row, column| half::bf16::from_f64(update[at(row, column)] / norm).to_f64());
    for _ in 0..of.steps {
        let zeros = map(shorter, shorter, |_, _| 0.0);
        let gram = product(1.0, &x, |at, column| x[column][at], 0.0, &zeros);
        let polynomial = product(c, &gram, |at, column| gram[at][column], b, &gram);
        x = product(1.0, &polynomial, |at, column| x[at][column], a, &x);
    }
    let mut found = vec![0.0; rows * columns];
    for row in 0..shorter {
        for column in 0..longer {
            found[at(row, column)] = x[row][column];
        }
    }
    found
}

/// `torch.optim.Muon` with loops.
fn muon(of: MuonSettings, shape: &[usize]) -> Formula {
    let (rows, columns) = (shape[0], shape[1]);
    let mut momentum = vec![0.0; rows * columns];
    let (height, width) = (rows as f64, columns as f64);
    let factor = match of.adjustment {
        MuonRateAdjustment::Original => (height / width).max(1.0).sqrt(),
        MuonRateAdjustment::MatchRmsAdamW => 0.2 * height.max(width).sqrt(),
        MuonRateAdjustment::SpectralUnclamped => (height / width).sqrt(),
    };
    Box::new(move |_, p, g| {
        let mut update = vec![0.0; p.len()];
        for at in 0..p.len() {
            momentum[at] = of.momentum * momentum[at] + (1.0 - of.momentum) * g[at];
            let mixed = (1.0 - of.momentum) * g[at] + of.momentum * momentum[at];
            update[at] = if of.is_nesterov { mixed } else { momentum[at] };
        }
        let x = orthogonalized(of, &update, rows, columns);
        for at in 0..p.len() {
            p[at] = p[at] * (1.0 - of.rate * of.decay) - of.rate * factor * x[at];
        }
    })
}

/// A gradient whose singular values are of one magnitude: a last bit of bf16 then changes the update in its last bits.
fn matrix_gradient(shape: &[usize], step: usize) -> Vec<f64> {
    let at = |row: usize, column: usize| 0.25 * element(row * shape[1] + column, step);
    let diagonal = |row: usize, column: usize| if row == column { 2.0 } else { 0.0 };
    map(shape[0], shape[1], |row, column| at(row, column) + diagonal(row, column)).concat()
}

pub fn steps_of_muon_follow_their_formula(device: &Device) {
    for of in [
        MUON,
        MuonSettings { momentum: 0.5, is_nesterov: false, decay: 0.0, ..MUON },
        MuonSettings { adjustment: MuonRateAdjustment::MatchRmsAdamW, momentum: 0.0, ..MUON },
        MuonSettings { coefficients: [3.0, -3.2, 1.2], steps: 3, decay: 0.5, ..MUON },
        MuonSettings { adjustment: MuonRateAdjustment::SpectralUnclamped, steps: 0, ..MUON },
    ] {
        for dtype in [DType::F64, DType::F32] {
            for shape in [[3, 4], [4, 3], [4, 4], [1, 3], [3, 1], [5, 9]] {
                let mut wanted = start(shape[0] * shape[1]);
                let x = leaf(&wanted, &shape, dtype, device);
                let mut optimizer = Muon::new(vec![x.clone()], of.rate)
                    .and_then(|muon| muon.with_momentum(of.momentum))
                    .and_then(|muon| muon.with_newton_schulz(of.coefficients, of.steps))
                    .and_then(|muon| muon.with_weight_decay(of.decay))
                    .map(|muon| {
                        muon.with_nesterov(of.is_nesterov).with_learning_rate_adjustment(of.adjustment)
                    })
                    .unwrap();
                let mut formula = muon(of, &shape);
                for step in 0..STEPS {
                    let gradient = matrix_gradient(&shape, step);
                    give(&x, &gradient);
                    optimizer.step().unwrap();
                    formula(step as i32 + 1, &mut wanted, &gradient);
                    let what = format!("{dtype} of {shape:?}, step {step}");
                    assert_close(&numbers(&x.tensor()), &wanted, 2e-3, &what);
                }
            }
        }
    }
}

pub fn muon_of_16_bit_parameters_has_a_momentum_of_f32(device: &Device) {
    for (dtype, eps) in [(DType::BF16, 2f64.powi(-7)), (DType::F16, 2f64.powi(-10))] {
        let x = leaf(&start(12), &[3, 4], dtype, device);
        let mut optimizer = Muon::new(vec![x.clone()], MUON.rate).unwrap();
        let mut formula = muon(MUON, &[3, 4]);
        for step in 0..STEPS {
            // Multiples of 1/16 below 4 are exact in both dtypes. A momentum of 16 bits would differ.
            let gradient: Vec<f64> =
                matrix_gradient(&[3, 4], step).iter().map(|x| (x * 16.0).round() / 16.0).collect();
            let mut wanted = numbers(&x.tensor());
            give(&x, &gradient);
            optimizer.step().unwrap();
            formula(step as i32 + 1, &mut wanted, &gradient);
            assert_close(&numbers(&x.tensor()), &wanted, eps / 2.0 + 2e-3, &format!("{dtype}, step {step}"));
        }
        let states = optimizer.state_dict().unwrap();
        let momentum = &states["0.momentum_buffer"];
        assert_eq!((momentum.dtype(), momentum.shape().to_vec()), (DType::F32, vec![3, 4]));
        assert_eq!(states.len(), 2, "{:?}", states.keys());
    }
}

pub fn muon_makes_the_singular_values_of_a_gradient_near_1(device: &Device) {
    // Vectors with elements of +-1, which are orthogonal.
    let sign =
        |row: usize, column: usize| if (row & column).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
    let values = [4.0, 2.0, 1.0, 0.5];
    for [rows, columns] in [[4usize, 8], [8, 4], [4, 4]] {
        let gradient = map(rows, columns, |row, column| {
            (0..4).map(|at| values[at] * sign(row, at) * sign(column, at)).sum::<f64>()
        });
        let x = leaf(&vec![0.0; rows * columns], &[rows, columns], DType::F32, device);
        let mut optimizer = Muon::new(vec![x.clone()], 1.0).unwrap();
        give(&x, &gradient.concat());
        optimizer.step().unwrap();
        let update = numbers(&x.tensor());
        let factor = (rows as f64 / columns as f64).max(1.0).sqrt();
        for left in 0..4 {
            for right in 0..4 {
                // The product of the update with a left and a right singular vector of the gradient.
                let products = (0..rows * columns)
                    .map(|at| -update[at] * sign(at / columns, left) * sign(at % columns, right));
                let found = products.sum::<f64>() / (factor * ((rows * columns) as f64).sqrt());
                let wanted = if left == right { 0.65..1.25 } else { -0.03..0.03 };
                assert!(wanted.contains(&found), "{found} of {left}, {right} in [{rows}, {columns}]");
            }
        }
    }
}

pub fn muon_leaves_zeros_with_gradients_of_0_finite(device: &Device) {
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for eps in [1e-7, 0.0] {
            let x = leaf(&start(12), &[3, 4], dtype, device);
            let before = numbers(&x.tensor());
            let optimizer = Muon::new(vec![x.clone()], 0.1).unwrap();
            let mut optimizer = optimizer.with_eps(eps).unwrap().with_weight_decay(0.0).unwrap();
            give(&x, &[0.0; 12]);
            optimizer.step().unwrap();
            assert_eq!(numbers(&x.tensor()), before, "{dtype}, {eps}");
        }
    }
}

fn model(dtype: DType, device: &Device) -> Result<Sequential> {
    let initializer = Initializer::new(device).with_seed(3).with_dtype(dtype);
    Ok(Sequential::new().with(Linear::new(3, 5, &initializer)?).with(Linear::new(5, 2, &initializer)?))
}

fn backward(model: &Sequential, step: usize, dtype: DType, device: &Device) -> Result<()> {
    let tensor = |count: usize, shape: &[usize]| -> Result<Variable> {
        let numbers: Vec<f64> = (0..count).map(|at| element(at, step)).collect();
        Ok(Variable::new(Tensor::from_vec(numbers, shape, device)?.cast(dtype)?))
    };
    model.parameters().iter().for_each(Variable::zero_grad);
    mse_loss(&model.forward(&tensor(12, &[4, 3])?)?, &tensor(8, &[4, 2])?, Reduction::Mean)?.backward()
}

fn bits<'a>(tensors: impl IntoIterator<Item = (&'a String, &'a Tensor)>) -> Vec<(String, Vec<u8>)> {
    tensors.into_iter().map(|(name, tensor)| (name.clone(), tensor.to_bytes().unwrap())).collect()
}

pub fn resumed_optimizers_have_the_bits_of_uninterrupted_ones(device: &Device) {
    for (at, create) in OPTIMIZERS.into_iter().enumerate() {
        for (dtype, is_flat) in [(DType::F32, true), (DType::BF16, false), (DType::F64, true)] {
            let run = |is_resumed: bool| -> Result<_> {
                let mut model = model(dtype, device)?;
                let mut flat = is_flat.then(|| Parameters::new(&model)).transpose()?;
                let mut optimizer = create(model.parameters())?;
                for step in 0..STEPS {
                    if is_resumed && step == 3 {
                        let (values, states) = (model.state_dict(), optimizer.state_dict()?);
                        // The states are a snapshot, which later steps leave.
                        let before = bits(&states);
                        optimizer.step()?;
                        assert_eq!(bits(&states), before, "optimizer {at} of {dtype}");
                        drop(flat.take());
                        model = self::model(dtype, device)?;
                        model.load_state_dict(&values)?;
                        flat = is_flat.then(|| Parameters::new(&model)).transpose()?;
                        optimizer = create(model.parameters())?;
                        optimizer.load_state_dict(&states)?;
                    }
                    backward(&model, step, dtype, device)?;
                    optimizer.step()?;
                }
                Ok((bits(&model.state_dict()), bits(&optimizer.state_dict()?)))
            };
            assert_eq!(run(true).unwrap(), run(false).unwrap(), "optimizer {at} of {dtype}");
        }
    }
}

pub fn steps_in_a_buffer_have_the_bits_of_steps_apart(device: &Device) {
    for (at, create) in OPTIMIZERS.into_iter().enumerate() {
        for dtype in [DType::F32, DType::F16] {
            let run = |is_flat: bool| -> Result<_> {
                let model = model(dtype, device)?;
                let _flat = is_flat.then(|| Parameters::new(&model)).transpose()?;
                let mut optimizer = create(model.parameters())?;
                for step in 0..STEPS {
                    backward(&model, step, dtype, device)?;
                    optimizer.advance()?;
                    optimizer.apply_if(&Tensor::new(false, device)?)?;
                    optimizer.withdraw();
                    // A step that a condition leaves out changes nothing, and one by a scaled gradient is that of the gradient.
                    if is_flat && dtype == DType::F32 {
                        for parameter in model.parameters() {
                            let gradient = (parameter.grad().unwrap() * 8.0)?;
                            parameter.zero_grad();
                            parameter.backward_with(&gradient)?;
                        }
                        optimizer.advance()?;
                        let factor = Tensor::new(0.125f32, device)?;
                        optimizer.apply_scaled(&Tensor::new(true, device)?, &factor)?;
                    } else {
                        optimizer.step()?;
                    }
                }
                Ok((bits(&model.state_dict()), bits(&optimizer.state_dict()?)))
            };
            assert_eq!(run(true).unwrap(), run(false).unwrap(), "optimizer {at} of {dtype}");
        }
    }
}

pub fn parameters_of_no_elements_take_steps(device: &Device) {
    for create in OPTIMIZERS {
        for shape in [&[0usize] as &[usize], &[0, 3], &[3, 0]] {
            let x = leaf(&[], shape, DType::F32, device);
            let mut optimizer = create(vec![x.clone()]).unwrap();
            give(&x, &[]);
            optimizer.step().unwrap();
            assert_eq!(x.shape().to_vec(), shape);
        }
    }
}
