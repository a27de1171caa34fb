//! Losses against their formulas in f64, and bad labels.

use std::sync::{Arc, Mutex};

use selvedge::nn::{
    CrossEntropyOptions, Function, FunctionContext, Reduction, Variable, binary_cross_entropy,
    binary_cross_entropy_with_logits, cross_entropy, kl_div, linear_cross_entropy, mse_loss, nll_loss,
};
use selvedge::{DType, Device, Error, Result, Tensor};

use crate::cases::samples;
use crate::differences::check;

fn leaf(numbers: &[f64], shape: &[usize]) -> Variable {
    Variable::with_grad(Tensor::from_slice(numbers, shape, &Device::cpu()).unwrap()).unwrap()
}

fn labels(numbers: &[i64]) -> Tensor {
    Tensor::new(numbers.to_vec(), &Device::cpu()).unwrap()
}

fn close(found: &Variable, wanted: &[f64]) {
    let found: Vec<f64> = found.tensor().to_vec().unwrap();
    let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-13 * (1.0 + b.abs());
    assert!(
        found.len() == wanted.len() && found.iter().zip(wanted).all(is_close),
        "{found:?}, not {wanted:?}"
    );
}

/// Checks the four reductions of losses whose first dimension has `rows`.
fn reduces(loss: impl Fn(Reduction) -> Result<Variable>, wanted: &[f64], rows: f64) {
    let sum: f64 = wanted.iter().sum();
    close(&loss(Reduction::None).unwrap(), wanted);
    close(&loss(Reduction::Sum).unwrap(), &[sum]);
    close(&loss(Reduction::Mean).unwrap(), &[sum / wanted.len() as f64]);
    close(&loss(Reduction::BatchMean).unwrap(), &[sum / rows]);
}

#[test]
fn elementwise_losses_have_the_values_of_their_formulas() {
    let (x, t) = ([0.5, -2.0, 3.0, 0.0, 30.0, -30.0], [1.0, 0.0, 0.25, 0.5, 1.0, 0.0]);
    let (input, target) = (leaf(&x, &[2, 3]), Variable::new(leaf(&t, &[2, 3]).tensor()));
    let by = |f: &dyn Fn(f64, f64) -> f64| x.iter().zip(&t).map(|(&x, &t)| f(x, t)).collect::<Vec<f64>>();
    reduces(|reduction| mse_loss(&input, &target, reduction), &by(&|x, t| (x - t) * (x - t)), 2.0);

    let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
    let wanted = by(&|x, t| t * softplus(-x) + (1.0 - t) * softplus(x));
    reduces(|reduction| binary_cross_entropy_with_logits(&input, &target, reduction), &wanted, 2.0);
    // A loss of e^-30 is not rounded to 0.
    assert!(wanted[4] > 0.0);
    let none = binary_cross_entropy_with_logits(&input, &target, Reduction::None).unwrap();
    let found = none.tensor().to_vec::<f64>().unwrap()[4];
    assert!((found / wanted[4] - 1.0).abs() < 1e-12);
    none.sum_all().unwrap().backward().unwrap();
    // The gradient is s(x) - t.
    close(&Variable::new(input.grad().unwrap()), &by(&|x, t| 1.0 / (1.0 + (-x).exp()) - t));

    let divergence = by(&|x, t| if t == 0.0 { 0.0 } else { t * (t.ln() - x) });
    reduces(|reduction| kl_div(&input, &target, false, reduction), &divergence, 2.0);
    let of_logarithms = by(&|x, t| t.exp() * (t - x));
    reduces(|reduction| kl_div(&input, &target, true, reduction), &of_logarithms, 2.0);
}

#[test]
fn binary_cross_entropy_of_probabilities_is_finite_at_0_and_1() {
    let (x, t) = ([0.25, 0.5, 0.0, 1.0, 0.0, 1.0], [1.0, 0.25, 0.0, 1.0, 1.0, 0.0]);
    let (input, target) = (leaf(&x, &[2, 3]), leaf(&t, &[2, 3]));
    // The last two logarithms are -100.
    let wanted = [4f64.ln(), 2f64.ln(), 0.0, 0.0, 100.0, 100.0];
    reduces(|reduction| binary_cross_entropy(&input, &target, reduction), &wanted, 2.0);
    binary_cross_entropy(&input, &target, Reduction::Sum).unwrap().backward().unwrap();
    close(&Variable::new(input.grad().unwrap()), &[-4.0, 1.0, 0.0, 0.0, -1e12, 1e12]);
    check("binary_cross_entropy", &[samples(0, &[2, 3]), samples(1, &[2, 3])], |x| {
        binary_cross_entropy(&x[0], &x[1], Reduction::Mean)
    });
    let empty = leaf(&[], &[0]);
    close(&binary_cross_entropy(&empty, &empty, Reduction::Sum).unwrap(), &[0.0]);
    let halves = Variable::new(input.tensor().cast(DType::F16).unwrap());
    let loss = binary_cross_entropy(&halves, &halves, Reduction::None).unwrap();
    assert_eq!(loss.dtype(), DType::F16);
}

#[test]
fn a_probability_outside_0_to_1_is_an_error() {
    let cases = [([-0.5, 0.25], "-0.5 to 0.25"), ([0.5, 1.5], "0.5 to 1.5"), ([f64::NAN, 0.5], "NaN to NaN")];
    for (x, found) in cases {
        let (wrong, right) = (leaf(&x, &[2]), leaf(&[0.0, 1.0], &[2]));
        for (input, target, name) in [(&wrong, &right, "an input"), (&right, &wrong, "a target")] {
            let error = binary_cross_entropy(input, target, Reduction::Mean).unwrap_err();
            let wanted =
                format!("binary_cross_entropy: found {name} from {found}; wanted probabilities from 0 to 1");
            assert_eq!(error.to_string(), wanted);
        }
    }
}

#[test]
fn cross_entropy_is_the_formula_with_smoothing_and_ignored_labels() {
    let x = [1.0, 2.0, 0.5, -1.0, 0.0, 3.0, 0.25, 0.25, 0.25];
    let input = leaf(&x, &[3, 3]);
    let logarithm = |row: usize, class: usize| {
        x[3 * row + class] - x[3 * row..3 * row + 3].iter().map(|x| x.exp()).sum::<f64>().ln()
    };
    let smoothed = |row: usize, label: usize, eps: f64| {
        let all: f64 = (0..3).map(|class| -logarithm(row, class)).sum();
        (1.0 - eps) * -logarithm(row, label) + eps / 3.0 * all
    };
    for (eps, ignore_index, list) in [(0.0, -100, [2, 0, 1]), (0.1, -100, [2, -100, 1]), (0.9, 0, [2, 0, 1])]
    {
        let of = |reduction| {
            let options = CrossEntropyOptions { reduction, ignore_index, label_smoothing: eps };
            cross_entropy(&input, &labels(&list), options).unwrap()
        };
        let wanted: Vec<f64> = list
            .iter()
            .enumerate()
            .map(|(row, &label)| if label == ignore_index { 0.0 } else { smoothed(row, label as usize, eps) })
            .collect();
        let (sum, counted) =
            (wanted.iter().sum::<f64>(), list.iter().filter(|&&x| x != ignore_index).count());
        close(&of(Reduction::None), &wanted);
        close(&of(Reduction::Sum), &[sum]);
        close(&of(Reduction::Mean), &[sum / counted as f64]);
        // The gradient of the sum of counted rows is softmax - (1 - ε) onehot - ε / C.
        input.zero_grad();
        of(Reduction::Sum).backward().unwrap();
        let gradient: Vec<f64> = (0..9)
            .map(|place| {
                let (row, class) = (place / 3, place % 3);
                if list[row] == ignore_index {
                    return 0.0;
                }
                let is_label = if list[row] == class as i64 { 1.0 } else { 0.0 };
                logarithm(row, class).exp() - (1.0 - eps) * is_label - eps / 3.0
            })
            .collect();
        close(&Variable::new(input.grad().unwrap()), &gradient);
    }
}

/// Twice its operand; has the addresses of its result and of the result's gradient.
struct Twice(Arc<Mutex<Vec<usize>>>);

impl Function for Twice {
    fn name(&self) -> &'static str {
        "twice"
    }

    fn forward(&self, _: &mut FunctionContext, inputs: &[&Tensor]) -> Result<Tensor> {
        let result = (inputs[0] * 2.0)?;
        self.0.lock().unwrap().push(result.as_slice::<f64>()?.as_ptr().addr());
        Ok(result)
    }

    fn backward(&self, _: &[Tensor], gradient: &Tensor) -> Result<Vec<Option<Tensor>>> {
        self.0.lock().unwrap().push(gradient.as_slice::<f64>()?.as_ptr().addr());
        Ok(vec![Some((gradient * 2.0)?)])
    }
}

#[test]
fn the_last_backward_of_a_cross_entropy_writes_over_logits_that_nothing_else_has() {
    let x = Variable::with_grad(samples(3, &[2, 5])).unwrap();
    let target = labels(&[4, 1]);
    let addresses = Arc::new(Mutex::new(Vec::new()));
    let run = |holds: bool| {
        x.zero_grad();
        let logits = Variable::apply(Twice(addresses.clone()), &[&x]).unwrap();
        let held = holds.then(|| logits.clone());
        let rows = logits.reshape(&[2, 5]).unwrap();
        drop(logits);
        let before = held.as_ref().map(|held| held.tensor().copy().unwrap());
        let loss = cross_entropy(&rows, &target, CrossEntropyOptions::default()).unwrap();
        drop(rows);
        loss.backward_retain_graph(None).unwrap();
        let retained = x.grad().unwrap();
        x.zero_grad();
        loss.backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), retained.to_vec::<f64>().unwrap());
        for (held, before) in held.iter().zip(&before) {
            assert_eq!(held.tensor().to_vec::<f64>().unwrap(), before.to_vec::<f64>().unwrap());
        }
        std::mem::take(&mut *addresses.lock().unwrap())
    };
    let [logits, retained, last] = run(false)[..] else { panic!("three calls") };
    assert!(retained != logits && last == logits);
    let [logits, retained, last] = run(true)[..] else { panic!("three calls") };
    assert!(retained != logits && last != logits);
}

#[test]
fn an_ignored_label_of_any_integer_has_no_loss_and_no_gradient() {
    for dtype in [DType::BF16, DType::F16, DType::F32] {
        // The gradient of logits that another variable has, and of those that nothing else has.
        let run = |ignore_index: i64, holds: bool| {
            let x = Variable::with_grad(samples(3, &[3, 300]).cast(dtype).unwrap()).unwrap();
            let logits = (&x + &x).unwrap();
            let options = CrossEntropyOptions { ignore_index, ..CrossEntropyOptions::default() };
            let loss = cross_entropy(&logits, &labels(&[256, ignore_index, 7]), options).unwrap();
            let held = holds.then_some(logits);
            loss.backward().unwrap();
            drop(held);
            [loss.tensor(), x.grad().unwrap()].map(|x| x.to_bytes().unwrap())
        };
        let wanted = run(-100, true);
        for ignore_index in [257, 50_256, -999, i64::from(i32::MAX), -16_777_217] {
            for holds in [false, true] {
                assert!(run(ignore_index, holds) == wanted, "{ignore_index} of {dtype}, held: {holds}");
            }
        }
        let [_, gradient] = &wanted;
        let row = gradient.len() / 3;
        assert!(gradient[row..2 * row].iter().all(|&byte| byte == 0), "{dtype}");
        assert!(gradient[..row].iter().any(|&byte| byte != 0), "{dtype}");
    }
}

#[test]
fn classes_lie_along_axis_1_or_the_only_one() {
    let x = leaf(&[-1.0, -2.0, -3.0, -4.0], &[1, 2, 2]);
    let target = Tensor::new([[1u8, 0]], &Device::cpu()).unwrap();
    let none = CrossEntropyOptions { reduction: Reduction::None, ..CrossEntropyOptions::default() };
    close(&nll_loss(&x, &target, none).unwrap(), &[3.0, 2.0]);
    let row = leaf(&[-1.0, -2.0], &[2]);
    let one = Tensor::full(&[], 1, DType::I32, &Device::cpu()).unwrap();
    close(&nll_loss(&row, &one, none).unwrap(), &[2.0]);
    // No counted label: 0 / 0, as in PyTorch.
    let ignored = nll_loss(&leaf(&[-1.0, -2.0], &[1, 2]), &labels(&[-100]), CrossEntropyOptions::default());
    assert!(ignored.unwrap().tensor().item::<f64>().unwrap().is_nan());
}

#[test]
fn a_label_outside_the_classes_is_an_index_out_of_range() {
    let x = leaf(&[0.0; 6], &[2, 3]);
    for label in [3, -1, i64::MIN] {
        match cross_entropy(&x, &labels(&[0, label]), CrossEntropyOptions::default()) {
            Err(Error::IndexOutOfRange { operation, index, size, .. }) => {
                assert_eq!((operation, index, size), ("cross_entropy", label, 3));
            }
            other => panic!("label {label}: {other:?}"),
        }
    }
}

#[test]
fn losses_of_bad_arguments_are_errors() {
    let x = leaf(&[0.0; 6], &[2, 3]);
    let options = CrossEntropyOptions::default();
    let smoothed = CrossEntropyOptions { label_smoothing: 1.0, ..options };
    let cases = [
        (
            binary_cross_entropy(&x, &leaf(&[0.0; 3], &[3]), Reduction::Mean),
            "binary_cross_entropy: found an input of shape [2, 3] and a target of shape [3]; wanted equal shapes",
        ),
        (
            mse_loss(&x, &leaf(&[0.0; 3], &[3]), Reduction::Mean),
            "mse_loss: found an input of shape [2, 3] and a target of shape [3]; wanted equal shapes",
        ),
        (
            cross_entropy(&x, &labels(&[0, 1, 2]), options),
            "cross_entropy: found an input of shape [2, 3] and labels of shape [3]; wanted labels of the input's shape \
             without the classes' axis",
        ),
        (nll_loss(&x, &x.tensor(), options), "nll_loss wants labels of integers, but found f64"),
        (
            cross_entropy(&x, &labels(&[0, 1]), smoothed),
            "cross_entropy: found a label smoothing of 1; wanted one from 0 to below 1",
        ),
        (
            nll_loss(&x, &labels(&[0, 1]), smoothed),
            "nll_loss: found a label smoothing of 1; wanted 0; cross_entropy has one",
        ),
    ];
    for (result, text) in cases {
        assert_eq!(result.unwrap_err().to_string(), text);
    }
}

/// Returns hidden states (2, 5, 3), a weight (3, 7), whose logits are three chunks, and labels with an ignored one.
fn heads() -> ([Tensor; 2], Tensor) {
    let mut of_rows: Vec<i64> = (0..10).map(|row| row * 5 % 7).collect();
    of_rows[4] = -100;
    ([samples(3, &[2, 5, 3]), samples(4, &[3, 7])], labels(&of_rows).reshape(&[2, 5]).unwrap())
}

#[test]
fn a_loss_by_chunks_of_logits_is_that_of_all_logits() {
    let (inputs, labels) = heads();
    for reduction in [Reduction::None, Reduction::Mean, Reduction::Sum, Reduction::BatchMean] {
        for label_smoothing in [0.0, 0.2] {
            let options = CrossEntropyOptions { reduction, label_smoothing, ..Default::default() };
            let name = format!("{reduction:?} with {label_smoothing}");
            let by_chunks = |x: &[Variable]| linear_cross_entropy(&x[0], &x[1], &labels, options);
            check(&name, &inputs, by_chunks);
            let leaves = inputs.each_ref().map(|x| Variable::new(x.clone()));
            // The classes are along axis 1.
            let logits = leaves[0].matmul(&leaves[1]).unwrap().transpose(1, 2).unwrap();
            let wanted = cross_entropy(&logits, &labels, options).unwrap().tensor();
            let found = by_chunks(&leaves).unwrap();
            assert_eq!(found.shape(), *wanted.shape(), "{name}");
            close(&found, &wanted.to_vec::<f64>().unwrap());
        }
    }
}

#[test]
fn a_loss_by_chunks_of_narrow_floats_is_of_f32_with_narrow_gradients() {
    let (inputs, labels) = heads();
    let options = CrossEntropyOptions::default();
    let gradients = |dtype: DType| {
        let leaves = inputs.each_ref().map(|x| Variable::with_grad(x.cast(dtype).unwrap()).unwrap());
        let loss = linear_cross_entropy(&leaves[0], &leaves[1], &labels, options).unwrap();
        loss.backward().unwrap();
        let found = leaves.map(|leaf| leaf.grad().unwrap());
        assert!(found.iter().all(|gradient| gradient.dtype() == dtype), "{dtype}");
        (loss.dtype(), found.map(|gradient| gradient.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()))
    };
    let (_, wanted) = gradients(DType::F64);
    for (dtype, tolerance) in [(DType::F16, 2e-3), (DType::BF16, 2e-2)] {
        let (found, of_leaves) = gradients(dtype);
        assert_eq!(found, DType::F32);
        for (found, wanted) in of_leaves.iter().zip(&wanted) {
            let largest = wanted.iter().fold(0f64, |largest, x| largest.max(x.abs()));
            let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance * largest;
            assert!(found.iter().zip(wanted).all(is_close), "{dtype}: {found:?}, not {wanted:?}");
        }
    }
}

#[test]
fn bad_operands_of_a_loss_by_chunks_are_errors_that_name_both_sides() {
    let (inputs, labels) = heads();
    let [x, weight] = inputs.map(Variable::new);
    let options = CrossEntropyOptions::default();
    let run = |x: &Variable, weight: &Variable, labels: &Tensor| {
        linear_cross_entropy(x, weight, labels, options).map(drop).unwrap_err()
    };
    let turned = weight.transpose(0, 1).unwrap();
    assert!(run(&x, &turned, &labels).to_string().contains("a weight of shape [7, 3]"));
    let flat = labels.reshape(&[10]).unwrap();
    assert!(run(&x, &weight, &flat).to_string().contains("labels of shape [10]"));
    assert!(matches!(run(&x, &weight, &labels.cast(DType::F32).unwrap()), Error::DTypeMismatch { .. }));
    let past = Tensor::full(&[2, 5], 7, DType::I64, &Device::cpu()).unwrap();
    let found = run(&x, &weight, &past);
    assert!(matches!(found, Error::IndexOutOfRange { index: 7, size: 7, .. }), "{found}");
    let none = Variable::new(x.tensor().narrow(0, 0, 0).unwrap());
    let sum = CrossEntropyOptions { reduction: Reduction::Sum, ..options };
    let labels = labels.narrow(0, 0, 0).unwrap();
    close(&linear_cross_entropy(&none, &weight, &labels, sum).unwrap(), &[0.0]);
}
