//! Every loss with every bad input: typed errors that name the operation and both sides.

use selvedge::nn::{
    CrossEntropyOptions, Reduction, Variable, binary_cross_entropy, binary_cross_entropy_with_logits,
    cross_entropy, kl_div, linear_cross_entropy, mse_loss, nll_loss,
};
use selvedge::{DType, Device, Error, Result, Tensor};

pub const REDUCTIONS: [Reduction; 4] =
    [Reduction::None, Reduction::Mean, Reduction::Sum, Reduction::BatchMean];

fn tensor(numbers: &[f64], shape: &[usize]) -> Tensor {
    Tensor::from_slice(numbers, shape, &Device::cpu()).unwrap()
}

type OfElements = fn(&Variable, &Variable, Reduction) -> Result<Variable>;

/// Name, the loss, and the operands that are probabilities: the input, the target.
const OF_ELEMENTS: [(&str, OfElements, [bool; 2]); 5] = [
    ("mse_loss", mse_loss, [false, false]),
    ("binary_cross_entropy", binary_cross_entropy, [true, true]),
    ("binary_cross_entropy_with_logits", binary_cross_entropy_with_logits, [false, true]),
    ("kl_div", |x, t, reduction| kl_div(x, t, false, reduction), [false, true]),
    ("kl_div", |x, t, reduction| kl_div(x, t, true, reduction), [false, false]),
];

#[test]
fn operands_that_are_no_probabilities_are_errors_of_the_losses_that_want_them() {
    let right = tensor(&[0.0, 0.25, 1.0, 0.5], &[2, 2]);
    let cases = [
        (-0.5, "-0.5 to 1"),
        (1.5, "0 to 1.5"),
        (1.0 + f64::EPSILON, "0 to 1.0000000000000002"),
        (f64::NAN, "NaN to NaN"),
        (f64::INFINITY, "0 to inf"),
        (f64::NEG_INFINITY, "-inf to 1"),
    ];
    for (name, loss, are_probabilities) in OF_ELEMENTS {
        for (wrong, range) in cases {
            let wrong = tensor(&[0.0, wrong, 1.0, 0.5], &[2, 2]);
            for reduction in REDUCTIONS {
                let operands = [(&wrong, &right, "an input"), (&right, &wrong, "a target")];
                for ((input, target, operand), is_probability) in operands.into_iter().zip(are_probabilities)
                {
                    let [input, target] = [input, target].map(|x| Variable::new(x.clone()));
                    let found = loss(&input, &target, reduction).map(drop).map_err(|error| error.to_string());
                    let wanted =
                        format!("{name}: found {operand} from {range}; wanted probabilities from 0 to 1");
                    assert_eq!(found, if is_probability { Err(wanted) } else { Ok(()) }, "{name}");
                }
            }
        }
        // 0, -0 and 1 are probabilities, of every float dtype.
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let ends = Variable::new(tensor(&[0.0, -0.0, 1.0, 0.5], &[2, 2]).cast(dtype).unwrap());
            loss(&ends, &ends, Reduction::Mean).unwrap();
        }
        let empty = Variable::new(tensor(&[], &[0, 2]));
        loss(&empty, &empty, Reduction::Sum).unwrap();
    }
}

#[test]
fn targets_of_another_shape_are_errors_of_every_loss() {
    let input = tensor(&[0.5; 6], &[2, 3]);
    for (name, loss, are_probabilities) in OF_ELEMENTS {
        let run = |target: &Tensor| {
            let [input, target] = [&input, target].map(|x| Variable::new(x.clone()));
            loss(&input, &target, Reduction::Mean).map(drop).unwrap_err()
        };
        for shape in [&[3][..], &[3, 2], &[2, 3, 1], &[2, 1], &[0, 3], &[]] {
            let target = Tensor::full(shape, 0.5, DType::F64, &Device::cpu()).unwrap();
            let shape = target.shape();
            assert_eq!(
                run(&target).to_string(),
                format!(
                    "{name}: found an input of shape [2, 3] and a target of shape {shape}; wanted equal shapes"
                )
            );
        }
        // Targets of other real dtypes are promoted, and are probabilities too.
        for dtype in [DType::F32, DType::I64, DType::U8, DType::Bool] {
            let target = Tensor::full(&[2, 3], 1, dtype, &Device::cpu()).unwrap();
            let [input, target] = [&input, &target].map(|x| Variable::new(x.clone()));
            assert_eq!(loss(&input, &target, Reduction::Mean).unwrap().dtype(), DType::F64, "{name}");
        }
        if are_probabilities[1] {
            assert!(
                run(&Tensor::full(&[2, 3], 2, DType::I64, &Device::cpu()).unwrap())
                    .to_string()
                    .contains("2 to 2")
            );
            let complex = run(&Tensor::full(&[2, 3], 1, DType::C128, &Device::cpu()).unwrap());
            assert!(matches!(complex, Error::DTypeMismatch { .. }), "{name}: {complex}");
            assert!(complex.to_string().starts_with(name), "{complex}");
        }
    }
}

/// A loss of logits (2, 3) and labels.
type OfLabels = fn(&Tensor, &Tensor, CrossEntropyOptions) -> Result<()>;

/// Name, the loss, and the operation that reads the labels.
const OF_LABELS: [(&str, OfLabels); 6] = [
    ("cross_entropy", |x, labels, options| x.cross_entropy(labels, options).map(drop)),
    ("cross_entropy", |x, labels, options| x.cross_entropy_with_gradient(labels, options).map(drop)),
    ("cross_entropy", |x, labels, options| {
        let mut own = x.copy()?;
        let result = own.in_place().cross_entropy_with_gradient(labels, options).map(drop);
        if result.is_err() {
            assert_eq!(own.to_bytes()?, x.to_bytes()?, "logits of a refused call are unchanged");
        }
        result
    }),
    ("cross_entropy", |x, labels, options| {
        cross_entropy(&Variable::with_grad(x.clone())?, labels, options).map(drop)
    }),
    // The losses of its chunks are those of `cross_entropy`.
    ("linear_cross_entropy", |x, labels, options| {
        let weight = Variable::new(Tensor::eye(3, 3, x.dtype(), &x.device())?);
        linear_cross_entropy(&Variable::new(x.clone()), &weight, labels, options).map(drop)
    }),
    ("nll_loss", |x, labels, options| nll_loss(&Variable::new(x.clone()), labels, options).map(drop)),
];

fn of_chunks(name: &str) -> &str {
    if name == "linear_cross_entropy" { "cross_entropy" } else { name }
}

#[test]
fn labels_that_are_no_classes_are_errors_of_every_loss() {
    let x = tensor(&[-1.0, -2.0, -3.0, -0.5, -0.25, -4.0], &[2, 3]);
    for (name, loss) in OF_LABELS {
        for reduction in REDUCTIONS {
            for ignore_index in [-100, 1] {
                let options = CrossEntropyOptions { reduction, ignore_index, label_smoothing: 0.0 };
                let run = |label: i64| loss(&x, &Tensor::new([2, label], &Device::cpu()).unwrap(), options);
                for label in [3, 4, i64::MAX, -1, -3, -4, -(1 << 62)] {
                    match run(label) {
                        Err(Error::IndexOutOfRange { operation, index, size: 3, .. }) => {
                            assert_eq!((operation, index), (of_chunks(name), label), "{name}");
                        }
                        other => panic!("{name} of label {label}: {other:?}"),
                    }
                }
                assert!(matches!(run(i64::MIN), Err(Error::IndexOutOfRange { .. })), "{name}");
                run(ignore_index).unwrap();
                run(0).unwrap();
            }
        }
        let text = loss(&x, &Tensor::new([0i32, -2], &Device::cpu()).unwrap(), Default::default())
            .unwrap_err()
            .to_string();
        let name = of_chunks(name);
        assert!(text.starts_with(&format!("{name}: found index -2 ")), "{text}");
        // A negative label does not count from the end.
        assert!(text.ends_with("; wanted one of 0 to 2"), "{text}");
    }
}

#[test]
fn labels_of_another_shape_or_dtype_and_smoothings_are_errors_of_every_loss() {
    let x = tensor(&[0.0; 6], &[2, 3]);
    for (name, loss) in OF_LABELS {
        let options = CrossEntropyOptions::default();
        for shape in [&[3][..], &[2, 1], &[1], &[2, 3], &[], &[0]] {
            let labels = Tensor::zeros(shape, DType::I64, &Device::cpu()).unwrap();
            let text = loss(&x, &labels, options).unwrap_err().to_string();
            let wanted = format!(
                "{name}: found an input of shape [2, 3] and labels of shape {}; wanted labels of the input's shape without",
                labels.shape()
            );
            assert!(text.starts_with(&wanted), "{text}");
        }
        for dtype in [DType::F32, DType::Bool, DType::C64] {
            let labels = Tensor::zeros(&[2], dtype, &Device::cpu()).unwrap();
            let found = loss(&x, &labels, options).unwrap_err();
            assert_eq!(
                found.to_string(),
                format!("{} wants labels of integers, but found {dtype}", of_chunks(name))
            );
        }
        let labels = Tensor::zeros(&[2], DType::I64, &Device::cpu()).unwrap();
        for label_smoothing in [-0.1, 1.0, 1.5, f64::NAN, f64::INFINITY] {
            let smoothed = CrossEntropyOptions { label_smoothing, ..options };
            let wanted =
                if name == "nll_loss" { "0; cross_entropy has one" } else { "one from 0 to below 1" };
            assert_eq!(
                loss(&x, &labels, smoothed).unwrap_err().to_string(),
                format!("{}: found a label smoothing of {label_smoothing}; wanted {wanted}", of_chunks(name))
            );
        }
        let integers = loss(&x.cast(DType::I32).unwrap(), &labels, options);
        if name != "nll_loss" {
            assert!(matches!(integers, Err(Error::DTypeMismatch { .. })), "{name}: {integers:?}");
        }
    }
}
