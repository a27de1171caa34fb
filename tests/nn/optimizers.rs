//! Steps of optimizers against PyTorch's formulas, clipping, and bad input.

use selvedge::nn::{
    Adam, AdamW, LearningRateSchedule, Optimizer, ScheduleShape, Sgd, Variable, clip_grad_norm,
};
use selvedge::{DType, Device, Result, Tensor};

const START: [f64; 3] = [1.0, -2.0, 0.5];
/// The gradients of three steps.
const GRADIENTS: [[f64; 3]; 3] = [[0.5, -1.0, 0.0], [0.25, 2.0, -0.125], [-1.0, 0.5, 4.0]];

fn leaf(numbers: &[f64]) -> Variable {
    Variable::with_grad(Tensor::from_slice(numbers, &[numbers.len()], &Device::cpu()).unwrap()).unwrap()
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec().unwrap()
}

/// Sets the gradient.
fn give(x: &Variable, gradient: &[f64]) {
    x.zero_grad();
    let gradient = Tensor::from_slice(gradient, &[gradient.len()], &Device::cpu()).unwrap();
    x.backward_with(&gradient.cast(x.dtype()).unwrap()).unwrap();
}

/// Runs three steps, and the formula for each element, which is given the number of the step, p and g.
fn follows(
    create: impl Fn(Vec<Variable>) -> Result<Box<dyn Optimizer>>,
    formula: impl Fn(&mut [f64; 2], i32, f64, f64) -> f64,
) {
    let x = leaf(&START);
    // A parameter given twice counts once.
    let mut optimizer = create(vec![x.clone(), x.clone()]).unwrap();
    assert_eq!(optimizer.parameters().len(), 1);
    let (mut wanted, mut states) = (START, [[0.0; 2]; 3]);
    for (step, gradient) in GRADIENTS.iter().enumerate() {
        give(&x, gradient);
        optimizer.step().unwrap();
        for place in 0..3 {
            wanted[place] = formula(&mut states[place], step as i32 + 1, wanted[place], gradient[place]);
        }
        let found = numbers(&x.tensor());
        let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-14 * (1.0 + b.abs());
        assert!(found.iter().zip(&wanted).all(is_close), "step {step}: {found:?}, not {wanted:?}");
    }
    optimizer.zero_grad();
    assert!(x.grad().is_none());
    let before = numbers(&x.tensor());
    optimizer.step().unwrap();
    assert_eq!(numbers(&x.tensor()), before, "without a gradient nothing changes");
}

fn adam(state: &mut [f64; 2], step: i32, g: f64, (first, second): (f64, f64), eps: f64) -> f64 {
    state[0] = first * state[0] + (1.0 - first) * g;
    state[1] = second * state[1] + (1.0 - second) * g * g;
    let (m, v) = (state[0] / (1.0 - first.powi(step)), state[1] / (1.0 - second.powi(step)));
    m / (v.sqrt() + eps)
}

#[test]
fn steps_are_those_of_the_formulas() {
    follows(|list| Ok(Box::new(Sgd::new(list, 0.1)?)), |_, _, p, g| p - 0.1 * g);
    follows(
        |list| Ok(Box::new(Sgd::new(list, 0.1)?.with_momentum(0.9)?.with_weight_decay(0.01)?)),
        |state, _, p, g| {
            state[0] = 0.9 * state[0] + g + 0.01 * p;
            p - 0.1 * state[0]
        },
    );
    follows(
        |list| Ok(Box::new(Adam::new(list, 0.1)?)),
        |state, step, p, g| p - 0.1 * adam(state, step, g, (0.9, 0.999), 1e-8),
    );
    follows(
        |list| {
            Ok(Box::new(Adam::new(list, 0.1)?.with_betas(0.5, 0.75)?.with_eps(0.1)?.with_weight_decay(0.2)?))
        },
        |state, step, p, g| p - 0.1 * adam(state, step, g + 0.2 * p, (0.5, 0.75), 0.1),
    );
    follows(
        |list| Ok(Box::new(AdamW::new(list, 0.1)?)),
        |state, step, p, g| p * (1.0 - 0.1 * 0.01) - 0.1 * adam(state, step, g, (0.9, 0.999), 1e-8),
    );
}

#[test]
fn a_bf16_parameter_has_moments_of_f32() {
    let x = Variable::with_grad(leaf(&[1.0]).tensor().cast(DType::BF16).unwrap()).unwrap();
    let mut optimizer = Sgd::new(vec![x.clone()], 1.0).unwrap().with_momentum(0.5).unwrap();
    // The buffer is 1 + 2⁻⁹ after two steps, which bf16 would round to 1.
    for (gradient, wanted) in [(2f64.powi(-8), 1.0 - 2f64.powi(-8)), (1.0, -2f64.powi(-8) - 2f64.powi(-9))] {
        give(&x, &[gradient]);
        optimizer.step().unwrap();
        assert_eq!(x.dtype(), DType::BF16);
        assert_eq!(x.tensor().cast(DType::F64).unwrap().item::<f64>().unwrap(), wanted);
    }
}

#[test]
fn a_step_between_a_forward_and_its_backward_is_an_error() {
    let x = leaf(&[2.0]);
    give(&x, &[1.0]);
    let loss = x.square().unwrap();
    let before = x.tensor();
    let mut optimizer = Sgd::new(vec![x.clone()], 1.0).unwrap();
    optimizer.step().unwrap();
    assert_eq!((numbers(&before), numbers(&x.tensor())), (vec![2.0], vec![1.0]));
    let text = loss.backward().unwrap_err().to_string();
    assert!(text.starts_with("the backward of square: found a value of shape [1] at version 1"), "{text}");
    for rate in [f64::NAN, -1.0, f64::INFINITY] {
        optimizer.set_learning_rate(rate);
        let text = optimizer.step().unwrap_err().to_string();
        let wanted =
            format!("Sgd: found a learning rate of {rate}; wanted a finite number that is at least 0");
        assert_eq!((text, numbers(&x.tensor())), (wanted, vec![1.0]));
    }
    optimizer.set_learning_rate(0.5);
    assert_eq!(optimizer.learning_rate(), 0.5);
    optimizer.step().unwrap();
    assert_eq!(numbers(&x.tensor()), [0.5]);
}

/// A variable with this gradient.
fn with_gradient(gradient: &[f32]) -> selvedge::Result<Variable> {
    let device = Device::cpu();
    let x = Variable::with_grad(Tensor::zeros(&[gradient.len()], DType::F32, &device)?)?;
    let gradient = Tensor::from_slice(gradient, &[gradient.len()], &device)?;
    (&x * &gradient)?.sum_all()?.backward()?;
    Ok(x)
}

#[test]
fn clip_grad_norm_of_gradients_whose_squares_leave_the_range_is_right() -> selvedge::Result<()> {
    for factor in [1e20f32, 1e30, 1e-30] {
        let given = [3.0 * factor, 4.0 * factor];
        let max_norm = if factor > 1.0 { 1.0 } else { f64::from(2.5 * factor) };
        let x = with_gradient(&given)?;
        let norm = clip_grad_norm(std::slice::from_ref(&x), max_norm)?.item::<f32>()?;
        assert!((norm / (5.0 * factor) - 1.0).abs() < 1e-6, "{norm:e}");
        let found = x.grad().map(|gradient| gradient.to_vec::<f32>()).transpose()?.unwrap_or_default();
        if factor > 1.0 {
            assert!((found[0] - 0.6).abs() < 1e-6 && (found[1] - 0.8).abs() < 1e-6, "{found:?}");
        }
        let x = with_gradient(&given)?;
        clip_grad_norm(std::slice::from_ref(&x), f64::INFINITY)?;
        let found = x.grad().map(|gradient| gradient.to_vec::<f32>()).transpose()?.unwrap_or_default();
        assert_eq!(found, given);
    }
    Ok(())
}

#[test]
fn clip_grad_norm_scales_all_gradients_by_their_common_norm() {
    let (x, y, unused) = (leaf(&[0.0, 0.0]), leaf(&[0.0]), leaf(&[1.0]));
    give(&x, &[2.0, 4.0]);
    give(&y, &[4.0]);
    let all = [x.clone(), y.clone(), x.clone(), unused.clone()];
    assert_eq!(clip_grad_norm(&all, 6.5).unwrap().item::<f64>().unwrap(), 6.0);
    assert_eq!(numbers(&x.grad().unwrap()), [2.0, 4.0], "a smaller norm is left");
    let norm = clip_grad_norm(&all, 3.0).unwrap();
    assert_eq!(norm.item::<f64>().unwrap(), 6.0);
    let found = [numbers(&x.grad().unwrap()), numbers(&y.grad().unwrap())].concat();
    let factor = 3.0 / (6.0 + 1e-6);
    assert!(found.iter().zip([2.0, 4.0, 4.0]).all(|(a, b)| (a - b * factor).abs() < 1e-15), "{found:?}");
    assert!(unused.grad().is_none());
    assert_eq!(clip_grad_norm(&[unused], 1.0).unwrap().item::<f32>().unwrap(), 0.0);
    let text = clip_grad_norm(&[], -1.0).unwrap_err().to_string();
    assert_eq!(text, "clip_grad_norm: found a max_norm of -1; wanted a number that is at least 0");
}

#[test]
fn optimizers_refuse_what_they_cannot_change() {
    let constant = Variable::new(leaf(&[1.0]).tensor());
    let x = leaf(&[1.0]);
    let cases = [
        (
            Sgd::new(vec![x.clone(), constant], 0.1).map(drop),
            "Sgd: found Variable(f64 of [1], constant) as parameter 1; wanted a leaf that requires a gradient",
        ),
        (
            Adam::new(vec![x.exp().unwrap()], 0.1).map(drop),
            "Adam: found Variable(f64 of [1], exp) as parameter 0; wanted a leaf that requires a gradient",
        ),
        (
            AdamW::new(vec![x.clone()], f64::NAN).map(drop),
            "AdamW: found a learning rate of NaN; wanted a finite number that is at least 0",
        ),
        (
            Adam::new(vec![x.clone()], 0.1).unwrap().with_betas(0.9, 1.0).map(drop),
            "Adam: found a second beta of 1; wanted a number of at least 0 and below 1",
        ),
        (Sgd::new(Vec::new(), 0.1).map(drop), "Sgd: found no parameters; wanted at least one"),
        (Adam::new(Vec::new(), 0.1).map(drop), "Adam: found no parameters; wanted at least one"),
        (AdamW::new(Vec::new(), 0.1).map(drop), "AdamW: found no parameters; wanted at least one"),
    ];
    for (result, text) in cases {
        assert_eq!(result.unwrap_err().to_string(), text);
    }
    let sgd = || Sgd::new(vec![x.clone()], 0.1).unwrap();
    let adam = || Adam::new(vec![x.clone()], 0.1).unwrap();
    let adam_w = || AdamW::new(vec![x.clone()], 0.1).unwrap();
    for number in [f64::NAN, -0.5, f64::INFINITY, f64::NEG_INFINITY] {
        let cases = [
            ("Sgd: found a momentum", sgd().with_momentum(number).map(drop)),
            ("Sgd: found a weight decay", sgd().with_weight_decay(number).map(drop)),
            ("Adam: found a first beta", adam().with_betas(number, 0.5).map(drop)),
            ("Adam: found a second beta", adam().with_betas(0.5, number).map(drop)),
            ("Adam: found an eps", adam().with_eps(number).map(drop)),
            ("Adam: found a weight decay", adam().with_weight_decay(number).map(drop)),
            ("AdamW: found a first beta", adam_w().with_betas(number, 0.5).map(drop)),
            ("AdamW: found a second beta", adam_w().with_betas(0.5, number).map(drop)),
            ("AdamW: found an eps", adam_w().with_eps(number).map(drop)),
            ("AdamW: found a weight decay", adam_w().with_weight_decay(number).map(drop)),
        ];
        for (found, result) in cases {
            let text = result.unwrap_err().to_string();
            assert!(text.starts_with(&format!("{found} of {number}; wanted ")), "{text}");
        }
    }
}

#[test]
fn learning_rates_follow_their_shapes() {
    let of = |shape, warmup_steps, total_steps| LearningRateSchedule {
        shape,
        peak: 1.0,
        minimum: 0.1,
        warmup_steps,
        total_steps,
    };
    let rates = |shape| -> Vec<f64> { (0..14).map(|step| of(shape, 2, 12).learning_rate(step)).collect() };
    for shape in [ScheduleShape::Cosine, ScheduleShape::Constant, ScheduleShape::Linear, ScheduleShape::Wsd] {
        let found = rates(shape);
        assert_eq!(found[..3], [0.5, 1.0, 1.0], "{shape}");
        let last = if shape == ScheduleShape::Constant { 1.0 } else { 0.1 };
        assert_eq!(found[12..], [last; 2], "{shape}");
        assert!(found[2..].is_sorted_by(|a, b| a >= b), "{shape}: {found:?}");
        // Runs that are shorter than their warm-up, and of no steps.
        assert_eq!(of(shape, 5, 3).learning_rate(3), 0.8, "{shape}");
        assert_eq!(of(shape, 0, 0).learning_rate(0), last, "{shape}");
    }
    let is_close = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-15, "{found}, not {wanted}");
    let (cosine, linear) = (rates(ScheduleShape::Cosine), rates(ScheduleShape::Linear));
    is_close(cosine[7], 0.55);
    is_close(linear[7], 0.55);
    is_close(cosine[4], 0.1 + 0.45 * (1.0 + (0.2 * std::f64::consts::PI).cos()));
    is_close(linear[4], 0.82);
    assert_eq!(rates(ScheduleShape::Constant)[2..], [1.0; 12]);
    // The decay has the last fifth, rounded down: two of twelve steps.
    let wsd = rates(ScheduleShape::Wsd);
    assert_eq!(wsd[2..=10], [1.0; 9]);
    is_close(wsd[11], 0.55);
    // It begins after the warm-up.
    assert_eq!(of(ScheduleShape::Wsd, 11, 12).learning_rate(11), 1.0);
}
