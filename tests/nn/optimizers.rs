//! Steps of optimizers against PyTorch's formulas, clipping, schedules, and bad input; and the cases of tests/cases/optimizers.rs on the
//! CPU.

#[path = "../cases/optimizers.rs"]
mod cases;

use std::num::NonZeroU64;

use selvedge::nn::{
    Adafactor, Adam, AdamW, LearningRateSchedule, Lion, Muon, Optimizer, ScheduleShape, Sgd, Variable,
    clip_grad_norm,
};
use selvedge::{DType, Device, Result, Tensor};

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                cases::$name(&Device::cpu());
            }
        )*
    };
}

cases::each!(tests);

const START: [f64; 3] = [1.0, -2.0, 0.5];
/// The gradients of three steps.
const GRADIENTS: [[f64; 3]; 3] = [[0.5, -1.0, 0.0], [0.25, 2.0, -0.125], [-1.0, 0.5, 4.0]];

fn leaf(numbers: &[f64]) -> Variable {
    Variable::with_grad(Tensor::from_slice(numbers, &[numbers.len()], &Device::cpu()).unwrap()).unwrap()
}

fn leaf_of(shape: &[usize]) -> Variable {
    Variable::with_grad(Tensor::ones(shape, DType::F64, &Device::cpu()).unwrap()).unwrap()
}

fn muon() -> Muon {
    Muon::new(vec![leaf_of(&[2, 2])], 0.1).unwrap()
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
        (
            Sgd::new(vec![x.clone()], 0.1).unwrap().with_nesterov(true).map(drop),
            "Sgd: found Nesterov momentum with a momentum of 0; wanted a momentum above 0",
        ),
        (
            Sgd::new(vec![x.clone()], 0.1)
                .and_then(|optimizer| optimizer.with_momentum(0.5)?.with_nesterov(true)?.with_momentum(0.0))
                .map(drop),
            "Sgd: found Nesterov momentum with a momentum of 0; wanted a momentum above 0",
        ),
        (
            Lion::new(vec![x.clone()], -1.0).map(drop),
            "Lion: found a learning rate of -1; wanted a finite number that is at least 0",
        ),
        (
            Adafactor::new(vec![x.clone()], 0.1).unwrap().with_beta2_decay(0.1).map(drop),
            "Adafactor: found a beta2_decay of 0.1; wanted a finite number that is at most 0",
        ),
        (
            Adafactor::new(vec![x.clone()], 0.1).unwrap().with_clipping_threshold(0.5).map(drop),
            "Adafactor: found a clipping threshold of 0.5; wanted a finite number that is at least 1",
        ),
        (
            Muon::new(vec![leaf_of(&[2, 2]), x.clone()], 0.1).map(drop),
            "Muon: found parameter 1 of shape [1]; wanted matrices; give other parameters to an AdamW, such as in an \
             OptimizerPair",
        ),
        (
            muon().with_newton_schulz([1.0, f64::INFINITY, 1.0], 5).map(drop),
            "Muon: found a Newton-Schulz coefficient of inf; wanted a finite number",
        ),
        (
            muon().with_newton_schulz([1.0; 3], 100).map(drop),
            "Muon: found 100 Newton-Schulz steps; wanted at most 99",
        ),
        (
            muon().with_momentum(1.0).map(drop),
            "Muon: found a momentum of 1; wanted a number of at least 0 and below 1",
        ),
        (Muon::new(Vec::new(), 0.1).map(drop), "Muon: found no parameters; wanted at least one"),
        (Lion::new(Vec::new(), 0.1).map(drop), "Lion: found no parameters; wanted at least one"),
        (Adafactor::new(Vec::new(), 0.1).map(drop), "Adafactor: found no parameters; wanted at least one"),
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
    let lion = || Lion::new(vec![x.clone()], 0.1).unwrap();
    let adafactor = || Adafactor::new(vec![x.clone()], 0.1).unwrap();
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(
            adafactor().with_beta2_decay(number).is_err()
                && adafactor().with_clipping_threshold(number).is_err()
        );
    }
    for number in [f64::NAN, -0.5, f64::INFINITY, f64::NEG_INFINITY] {
        let cases = [
            ("Lion: found a first beta", lion().with_betas(number, 0.5).map(drop)),
            ("Lion: found a second beta", lion().with_betas(0.5, number).map(drop)),
            ("Lion: found a weight decay", lion().with_weight_decay(number).map(drop)),
            ("Adafactor: found an eps of the variance", adafactor().with_eps(Some(number), 1e-3).map(drop)),
            ("Adafactor: found an eps of the scale", adafactor().with_eps(None, number).map(drop)),
            ("Adafactor: found a weight decay", adafactor().with_weight_decay(number).map(drop)),
            ("Muon: found a learning rate", Muon::new(vec![leaf_of(&[2, 2])], number).map(drop)),
            ("Muon: found a momentum", muon().with_momentum(number).map(drop)),
            ("Muon: found an eps", muon().with_eps(number).map(drop)),
            ("Muon: found a weight decay", muon().with_weight_decay(number).map(drop)),
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

#[test]
fn complex_parameters_are_refused_by_rules_of_real_numbers() {
    let complex = || {
        let tensor = leaf(&[1.0]).tensor().cast(DType::C128).unwrap();
        vec![Variable::with_grad(tensor).unwrap()]
    };
    for (name, result) in [
        ("Lion", Lion::new(complex(), 0.1).map(drop)),
        ("Adafactor", Adafactor::new(complex(), 0.1).map(drop)),
        ("Muon", Muon::new(complex(), 0.1).map(drop)),
    ] {
        let text = result.unwrap_err().to_string();
        assert!(text.starts_with(name) && text.contains("c128"), "{text}");
    }
}

#[test]
fn a_state_of_another_optimizer_or_shape_is_refused_and_changes_nothing() {
    let matrix = |rows: usize| {
        let tensor = Tensor::ones(&[rows, 2], DType::F64, &Device::cpu()).unwrap();
        let x = Variable::with_grad(tensor).unwrap();
        x.square().unwrap().sum_all().unwrap().backward().unwrap();
        x
    };
    let of = |rows| Adafactor::new(vec![matrix(rows)], 0.1).unwrap();
    let (mut optimizer, mut other) = (of(3), of(4));
    other.step().unwrap();
    let before = optimizer.state_dict().unwrap().len();
    let text = optimizer.load_state_dict(&other.state_dict().unwrap()).unwrap_err().to_string();
    assert!(text.contains("'0.row_var' is f64 of shape [4, 1] in place of f64 of shape [3, 1]"), "{text}");
    let mut lion = Lion::new(vec![matrix(3)], 0.1).unwrap();
    lion.step().unwrap();
    let text = optimizer.load_state_dict(&lion.state_dict().unwrap()).unwrap_err().to_string();
    assert!(text.contains("'0.exp_avg' is extra"), "{text}");
    assert_eq!(optimizer.state_dict().unwrap().len(), before);
}

#[test]
fn two_optimizers_of_one_parameter_each_change_it_by_their_states() {
    let x = leaf(&[1.0]);
    let mut first = Sgd::new(vec![x.clone()], 0.5).unwrap().with_momentum(0.5).unwrap();
    let mut second = Lion::new(vec![x.clone()], 0.25).unwrap();
    give(&x, &[1.0]);
    for wanted in [(0.5, 0.25), (-0.5, -0.75)] {
        first.step().unwrap();
        assert_eq!(numbers(&x.tensor()), [wanted.0]);
        second.step().unwrap();
        assert_eq!(numbers(&x.tensor()), [wanted.1]);
    }
}

#[test]
fn step_and_one_cycle_schedules_are_those_of_pytorch() {
    let is_close = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-14, "{found}, not {wanted}");
    let steps = LearningRateSchedule::step(0.5, NonZeroU64::new(3).unwrap(), 0.1);
    let mut wanted = 0.5;
    for step in 0..20 {
        if step > 0 && step % 3 == 0 {
            wanted *= 0.1;
        }
        is_close(steps.learning_rate(step), wanted);
    }
    assert_eq!(steps.learning_rate(u64::MAX), 0.0);
    // After a warm-up, and no lower than the minimum.
    let limited = LearningRateSchedule { warmup_steps: 2, minimum: 0.01, ..steps };
    for (step, wanted) in [(0, 0.25), (1, 0.5), (2, 0.5), (4, 0.5), (5, 0.05), (8, 0.01), (1000, 0.01)] {
        is_close(limited.learning_rate(step), wanted);
    }
    // OneCycleLR(max_lr, total_steps, pct_start=0.3) as PyTorch writes it: two phases, whose ends are steps.
    for total in [10u64, 50, 100] {
        let cycle = LearningRateSchedule::one_cycle(2.0, total);
        let (initial, last) = (2.0 / 25.0, 2.0 / 25.0 / 1e4);
        let ends = [0.3 * total as f64 - 1.0, total as f64 - 1.0];
        for step in 0..total {
            let at = step as f64;
            let (from, to, share) = if at <= ends[0] {
                (initial, 2.0, at / ends[0])
            } else {
                (2.0, last, (at - ends[0]) / (ends[1] - ends[0]))
            };
            let wanted = to + (from - to) / 2.0 * ((std::f64::consts::PI * share).cos() + 1.0);
            is_close(cycle.learning_rate(step), wanted);
        }
        is_close(cycle.learning_rate(total), last);
    }
    for (warmup_steps, total_steps) in [(0, 0), (0, 1), (1, 1), (0, 5), (1, 5), (5, 5), (7, 5)] {
        let shape = ScheduleShape::OneCycle { div_factor: 4.0 };
        let schedule = LearningRateSchedule { shape, peak: 1.0, minimum: 0.1, warmup_steps, total_steps };
        for step in 0..10 {
            let rate = schedule.learning_rate(step);
            assert!((0.1..=1.0).contains(&rate), "step {step} of {schedule:?}: {rate}");
        }
        assert_eq!(schedule.learning_rate(10), 0.1);
    }
}

#[test]
fn schedules_of_bad_numbers_are_refused() {
    let step = |gamma| LearningRateSchedule::step(1.0, NonZeroU64::MIN, gamma);
    let cycle = |div_factor| LearningRateSchedule {
        shape: ScheduleShape::OneCycle { div_factor },
        ..LearningRateSchedule::one_cycle(1.0, 10)
    };
    assert!(step(0.0).check().is_ok() && step(2.0).check().is_ok() && cycle(0.5).check().is_ok());
    for number in [f64::NAN, -1.0, f64::INFINITY] {
        let cases = [
            (step(number), "gamma"),
            (cycle(number), "div_factor"),
            (LearningRateSchedule { peak: number, ..step(0.5) }, "peak"),
            (LearningRateSchedule { minimum: number, ..step(0.5) }, "minimum"),
        ];
        for (schedule, name) in cases {
            let text = schedule.check().unwrap_err().to_string();
            assert!(text.starts_with(&format!("LearningRateSchedule: found a {name} of {number}")), "{text}");
        }
    }
    assert!(cycle(0.0).check().is_err());
}
