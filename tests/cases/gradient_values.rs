//! Right losses and gradients at the edges, on the CPU (tests/nn/gradient_values.rs) and a device (tests/gpu/gradient_values.rs):
//! counts that 16-bit floats do not hold, extremes that are NaN, infinite terms without weight, labels that are all ignored, and
//! positions that are written twice.

use selvedge::nn::{
    CrossEntropyOptions, FusedFunction, Reduction, Variable, binary_cross_entropy,
    binary_cross_entropy_with_logits, cross_entropy, kl_div, linear_cross_entropy, mse_loss, nll_loss,
};
use selvedge::{DType, Device, Error, Result, Tensor};

/// A function of variables.
type Function = fn(&[Variable]) -> Result<Variable>;
/// The shapes of an array and of the written elements, and the gradients of both.
type WriteCase<'a> = (&'a [usize], &'a [usize], &'a [f64], &'a [f64]);

/// Calls a macro with the name of each function.
macro_rules! each {
    ($tests:ident) => {
        $tests! {
            reductions_of_more_elements_than_f16_counts_have_the_gradients_of_f64,
            losses_of_more_elements_than_f16_counts_are_those_of_f64,
            groups_of_more_elements_than_f16_counts_have_the_gradients_of_f64,
            one_more_element_than_f16_counts_has_a_mean_with_a_gradient,
            an_extreme_that_is_nan_gives_its_gradient_to_the_nans,
            of_several_writes_to_a_place_the_last_one_has_the_gradient,
            certain_predictions_that_are_right_have_the_loss_0,
            a_batch_of_ignored_labels_has_gradients_of_0,
        }
    };
}
pub(crate) use each;

/// More than the largest number of f16.
const COUNT: usize = 70_000;

/// A name, a function, and the error that it may have beside those of the 16-bit dtypes, as a multiple of them.
type Case = (&'static str, fn(&[Variable]) -> Result<Variable>, f64);

fn numbers(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// Returns the result, and the gradients of the operands that have one.
fn run(operands: &[Tensor], function: fn(&[Variable]) -> Result<Variable>) -> Result<Vec<Tensor>> {
    let leaves = operands.iter().map(|x| Variable::with_grad(x.clone())).collect::<Result<Vec<_>>>()?;
    let result = function(&leaves)?;
    result.sum_all()?.backward()?;
    Ok([result.tensor()].into_iter().chain(leaves.iter().filter_map(Variable::grad)).collect())
}

/// Compares results and gradients in f16 and bf16 with those of the same operands in f64.
fn compare(cases: &[Case], operands: &[Tensor]) -> Result<()> {
    for (dtype, epsilon) in [(DType::F16, 1.0 / 512.0), (DType::BF16, 1.0 / 64.0)] {
        let narrow = operands.iter().map(|x| x.cast(dtype)).collect::<Result<Vec<_>>>()?;
        let exact = narrow.iter().map(|x| x.cast(DType::F64)).collect::<Result<Vec<_>>>()?;
        for &(name, function, factor) in cases {
            let (found, wanted) = (run(&narrow, function)?, run(&exact, function)?);
            assert!(found.len() > 1 && found.len() == wanted.len(), "{name} of {dtype}");
            for (at, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                let (found, wanted) = (numbers(found), numbers(wanted));
                // Gradients of so many elements are small numbers of f16, which are multiples of 2^-24.
                let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= factor * epsilon * b.abs() + 4e-7;
                let wrong = found.iter().zip(&wanted).position(|pair| !is_close(pair));
                let show = |at: usize| format!("{} in place of {}", found[at], wanted[at]);
                assert!(wrong.is_none(), "{name} of {dtype}, tensor {at}: {}", show(wrong.unwrap_or(0)));
                assert!(wanted.iter().any(|x| *x != 0.0), "{name} of {dtype}, tensor {at} is 0");
            }
        }
    }
    Ok(())
}

/// Returns numbers from 0.15 to 0.95.
fn spread(shape: &[usize], seed: usize, device: &Device) -> Result<Tensor> {
    let number = |at: usize| 0.15 + 0.8 * (((at + 17 * seed + 1) as f64 * 0.618_033_988_749_895).fract());
    let elements: Vec<f64> = (0..shape.iter().product()).map(number).collect();
    Tensor::from_slice(&elements, shape, device)
}

pub fn reductions_of_more_elements_than_f16_counts_have_the_gradients_of_f64(device: &Device) {
    const OF_ALL: &[Case] = &[
        ("sum", |x| x[0].sum_all(), 1.0),
        ("mean", |x| x[0].mean_all(), 1.0),
        ("mean of columns", |x| x[0].reshape(&[-1, 1])?.mean_keepdim(0), 1.0),
        ("var", |x| x[0].var_all(1), 1.0),
        ("std", |x| x[0].std_all(0), 1.0),
        ("norm of 1", |x| x[0].norm_all(1.0), 1.0),
        ("norm of 3", |x| x[0].norm_all(3.0), 4.0),
        ("logsumexp", |x| x[0].logsumexp_all(), 4.0),
        ("max", |x| x[0].max_all(), 1.0),
        ("min", |x| x[0].min_all(), 1.0),
    ];
    compare(OF_ALL, &[spread(&[COUNT], 0, device).unwrap()]).unwrap();
    // A mean that is rounded to f16 would differ from it by more than the elements do.
    let apart = (spread(&[COUNT], 0, device).unwrap() * 4.0).unwrap().add(500.0).unwrap();
    const OF_APART: &[Case] = &[("var", |x| x[0].var_all(1), 1.0), ("std", |x| x[0].std_all(0), 1.0)];
    for dtype in [DType::F16, DType::BF16] {
        compare(OF_APART, &[apart.cast(dtype).unwrap()]).unwrap();
    }
    const OF_EQUAL: &[Case] = &[
        ("max", |x| x[0].max_all(), 1.0),
        ("min", |x| x[0].min_all(), 1.0),
        ("norm of infinity", |x| x[0].norm_all(f64::INFINITY), 1.0),
        ("norm of -infinity", |x| x[0].norm_all(f64::NEG_INFINITY), 1.0),
    ];
    compare(OF_EQUAL, &[Tensor::ones(&[COUNT], DType::F64, device).unwrap()]).unwrap();
}

fn classes(x: &Variable, classes: i64) -> Result<Tensor> {
    Tensor::arange(0i64, x.shape()[0] as i64, 1i64, DType::I64, &x.device())?.remainder(classes)
}

fn options(reduction: Reduction) -> CrossEntropyOptions {
    CrossEntropyOptions { reduction, ..CrossEntropyOptions::default() }
}

pub fn losses_of_more_elements_than_f16_counts_are_those_of_f64(device: &Device) {
    const OF_PAIRS: &[Case] = &[
        ("mse_loss", |x| mse_loss(&x[0], &x[1], Reduction::Mean), 2.0),
        ("mse_loss of a batch", |x| mse_loss(&x[0], &x[1], Reduction::BatchMean), 2.0),
        ("binary_cross_entropy", |x| binary_cross_entropy(&x[0], &x[1], Reduction::Mean), 2.0),
        (
            "binary_cross_entropy of a batch",
            |x| binary_cross_entropy(&x[0], &x[1], Reduction::BatchMean),
            2.0,
        ),
        ("logits", |x| binary_cross_entropy_with_logits(&x[0], &x[1], Reduction::Mean), 2.0),
        ("logits of a batch", |x| binary_cross_entropy_with_logits(&x[0], &x[1], Reduction::BatchMean), 2.0),
        ("kl_div", |x| kl_div(&x[0], &x[1], false, Reduction::Mean), 4.0),
        ("kl_div of a batch", |x| kl_div(&x[0], &x[1], false, Reduction::BatchMean), 4.0),
        ("kl_div of logarithms", |x| kl_div(&x[0], &x[1], true, Reduction::Mean), 4.0),
        ("kl_div of logarithms, of a batch", |x| kl_div(&x[0], &x[1], true, Reduction::BatchMean), 4.0),
    ];
    let pair = [0, 5].map(|seed| spread(&[COUNT], seed, device).unwrap());
    compare(OF_PAIRS, &pair).unwrap();
    const OF_CLASSES: &[Case] = &[
        ("nll_loss", |x| nll_loss(&x[0], &classes(&x[0], 2)?, options(Reduction::Mean)), 1.0),
        ("nll_loss of a batch", |x| nll_loss(&x[0], &classes(&x[0], 2)?, options(Reduction::BatchMean)), 1.0),
        ("cross_entropy", |x| cross_entropy(&x[0], &classes(&x[0], 2)?, options(Reduction::Mean)), 1.0),
        (
            "cross_entropy of a batch",
            |x| cross_entropy(&x[0], &classes(&x[0], 2)?, options(Reduction::BatchMean)),
            1.0,
        ),
    ];
    // The sum of the losses of nll_loss is past the range of f16.
    let logits = (spread(&[COUNT, 2], 1, device).unwrap() * -2.0).unwrap();
    compare(OF_CLASSES, &[logits]).unwrap();
    const OF_PRODUCTS: &[Case] = &[
        (
            "linear_cross_entropy",
            |x| linear_cross_entropy(&x[0], &x[1], &classes(&x[0], 1)?, options(Reduction::Mean)),
            4.0,
        ),
        (
            "linear_cross_entropy of a batch",
            |x| linear_cross_entropy(&x[0], &x[1], &classes(&x[0], 1)?, options(Reduction::BatchMean)),
            4.0,
        ),
    ];
    let product = [spread(&[COUNT, 2], 2, device).unwrap(), spread(&[2, 3], 3, device).unwrap()];
    compare(OF_PRODUCTS, &product).unwrap();
}

pub fn groups_of_more_elements_than_f16_counts_have_the_gradients_of_f64(device: &Device) {
    const OF_GROUPS: &[Case] = &[
        ("max_group", |x| FusedFunction::new(|[x]| x.max_group()).run([&x[0]]), 1.0),
        ("min_group", |x| FusedFunction::new(|[x]| x.min_group() * 2.0).run([&x[0]]), 1.0),
        ("mean_group", |x| FusedFunction::new(|[x]| x.mean_group()).run([&x[0]]), 1.0),
    ];
    compare(OF_GROUPS, &[Tensor::ones(&[2, COUNT], DType::F64, device).unwrap()]).unwrap();
}

pub fn one_more_element_than_f16_counts_has_a_mean_with_a_gradient(device: &Device) {
    let check = || -> Result<()> {
        let x = Variable::with_grad(Tensor::full(&[65505], 1.0, DType::F16, device)?)?;
        let mean = x.mean_all()?;
        // Its second gradient is recorded.
        let first = mean.square()?.gradients(&[&x])?;
        first[0].sum_all()?.backward()?;
        assert_eq!(numbers(&mean.tensor()), [1.0]);
        // The f16 nearest to 1 / 65505 is 256 / 2^24.
        assert!(numbers(&first[0].tensor()).iter().all(|x| *x == 2.0 * 256.0 / 16_777_216.0));
        let bf16 = Variable::with_grad(Tensor::full(&[257], 1.0, DType::BF16, device)?)?;
        bf16.mean_all()?.backward()?;
        let gradient = bf16.grad().map(|gradient| numbers(&gradient)).unwrap_or_default();
        assert!(
            gradient.len() == 257 && gradient.iter().all(|x| (x * 257.0 - 1.0).abs() < 0.002),
            "{gradient:?}"
        );
        Ok(())
    };
    check().unwrap();
}

fn gradients(operands: &[Tensor], function: fn(&[Variable]) -> Result<Variable>) -> Vec<Vec<f64>> {
    run(operands, function).unwrap()[1..].iter().map(numbers).collect()
}

pub fn an_extreme_that_is_nan_gives_its_gradient_to_the_nans(device: &Device) {
    let nan = f64::NAN;
    let x = Tensor::new([[2.0, nan, 1.0], [3.0, 3.0, 1.0], [nan, 0.0, nan]], device).unwrap();
    const EXTREMES: [Function; 4] = [
        |x| x[0].max(1),
        |x| x[0].min_keepdim(1),
        |x| FusedFunction::new(|[x]| x.max_group()).run([&x[0]]),
        |x| FusedFunction::new(|[x]| x.min_group()).run([&x[0]]),
    ];
    for (at, extreme) in EXTREMES.into_iter().enumerate() {
        let ties = if at % 2 == 0 { [0.5, 0.5, 0.0] } else { [0.0, 0.0, 1.0] };
        for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
            let found = gradients(&[x.cast(dtype).unwrap()], extreme);
            let wanted = [&[0.0, 1.0, 0.0][..], &ties, &[0.5, 0.0, 0.5]].concat();
            assert_eq!(found, [wanted], "extreme {at} of {dtype}");
        }
    }
    // The sign of NaN is NaN.
    let found = gradients(&[x], |x| x[0].norm(f64::INFINITY, 1));
    assert!(found[0][1].is_nan() && found[0][6].is_nan() && found[0][8].is_nan(), "{found:?}");
    assert_eq!([found[0][0], found[0][3], found[0][4]], [0.0, 0.5, 0.5]);
}

pub fn of_several_writes_to_a_place_the_last_one_has_the_gradient(device: &Device) {
    const WRITES: [Function; 5] = [
        |x| {
            let rows = Tensor::new([1i64, 1], &x[0].device())?;
            x[0].index_put(&[&rows], &x[1], false)
        },
        |x| {
            let (rows, columns) =
                (Tensor::new([0i64, 0, 1], &x[0].device())?, Tensor::new([1i64, 1, 0], &x[0].device())?);
            x[0].index_put(&[&rows, &columns], &x[1], false)
        },
        |x| {
            // Whole rows, the last of them by a negative index.
            let rows = Tensor::new([[1i64, 0], [-1, 1]], &x[0].device())?;
            x[0].index_put(&[&rows], &x[1], false)
        },
        |x| {
            // One element for all places.
            let rows = Tensor::new([1i64, 1, 0], &x[0].device())?;
            x[0].index_put(&[&rows], &x[1], false)
        },
        |x| {
            let rows = Tensor::new([1i64, 1], &x[0].device())?;
            x[0].index_put(&[&rows], &x[1], true)
        },
    ];
    let ones = |shape: &[usize]| Tensor::ones(shape, DType::F64, device).unwrap();
    let cases: [WriteCase<'_>; 5] = [
        (&[2], &[2], &[1.0, 0.0], &[0.0, 1.0]),
        (&[2, 2], &[3], &[1.0, 0.0, 0.0, 1.0], &[0.0, 1.0, 1.0]),
        (&[2, 3], &[2, 2, 3], &[0.0; 6], &[0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]),
        (&[3], &[], &[0.0, 0.0, 1.0], &[2.0]),
        (&[2], &[2], &[1.0, 1.0], &[1.0, 1.0]),
    ];
    for (at, (of_self, of_elements, wanted_self, wanted_elements)) in cases.into_iter().enumerate() {
        let found = gradients(&[ones(of_self), ones(of_elements)], WRITES[at]);
        assert_eq!(found, [wanted_self, wanted_elements], "write {at}");
    }
}

pub fn certain_predictions_that_are_right_have_the_loss_0(device: &Device) {
    let (inf, none) = (f64::INFINITY, f64::NEG_INFINITY);
    let logits: fn(&[Variable]) -> Result<Variable> =
        |x| binary_cross_entropy_with_logits(&x[0], &Variable::new(x[1].tensor()), Reduction::None);
    let divergence: fn(&[Variable]) -> Result<Variable> =
        |x| kl_div(&x[0], &Variable::new(x[1].tensor()), false, Reduction::None);
    let of_logarithms: fn(&[Variable]) -> Result<Variable> = |x| kl_div(&x[0], &x[1], true, Reduction::None);
    let half = 0.5f64.ln();
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        let tensor = |x: &[f64]| Tensor::from_slice(x, &[x.len()], device).unwrap().cast(dtype).unwrap();
        let close = |name: &str, found: &Tensor, wanted: &[f64]| {
            let found = numbers(found);
            let is_close = |(a, b): (&f64, &f64)| a == b || (a - b).abs() < 0.02;
            let all = found.len() == wanted.len() && found.iter().zip(wanted).all(is_close);
            assert!(all, "{name} of {dtype}: {found:?}, not {wanted:?}");
        };
        let found = run(&[tensor(&[inf, none, inf, 0.0]), tensor(&[1.0, 0.0, 0.0, 1.0])], logits).unwrap();
        close("logits", &found[0], &[0.0, 0.0, inf, -half]);
        close("gradients of logits", &found[1], &[0.0, 0.0, 1.0, -0.5]);
        let found = run(&[tensor(&[none, half, none]), tensor(&[0.0, 1.0, 0.5])], divergence).unwrap();
        close("kl_div", &found[0], &[0.0, -half, inf]);
        close("gradients of kl_div", &found[1], &[0.0, -1.0, -0.5]);
        let x = [tensor(&[-0.7, none, half, 0.0]), tensor(&[none, none, 0.0, 0.0])];
        let found = run(&x, of_logarithms).unwrap();
        close("kl_div of logarithms", &found[0], &[0.0, 0.0, -half, 0.0]);
        close("gradients of kl_div of logarithms", &found[1], &[0.0, 0.0, -1.0, -1.0]);
        close("gradients of logarithms", &found[2], &[0.0, 0.0, 1.0 - half, 1.0]);
        // The exponential of -10,000 is 0 in every dtype.
        let x = [tensor(&[-0.7, none, inf, 1e4, none]), tensor(&[-1e4, -1e4, -1e4, -1e4, -1e4])];
        let found = run(&x, of_logarithms).unwrap();
        for (name, found) in ["kl_div", "its gradient", "the gradient of the target"].iter().zip(&found) {
            close(&format!("{name} of logarithms of very small probabilities"), found, &[0.0; 5]);
        }
        // NaN is no certain prediction.
        for (x, t) in [(f64::NAN, none), (f64::NAN, -1e4), (-0.7, f64::NAN)] {
            let nan = run(&[tensor(&[x]), tensor(&[t])], of_logarithms).unwrap();
            assert!(numbers(&nan[0])[0].is_nan(), "{x}, {t} of {dtype}");
        }
    }
    // A difference that overflows, of a probability that underflows.
    let far = [Tensor::new([1.5e308], device).unwrap(), Tensor::new([-1.5e308], device).unwrap()];
    let found = run(&far, of_logarithms).unwrap();
    assert!(found.iter().all(|found| numbers(found) == [0.0]), "{found:?}");
    // The gradient of a target is -x, also where its term has no weight.
    let targets =
        run(&[Tensor::new([3.0, inf], device).unwrap(), Tensor::new([0.0, 1.0], device).unwrap()], |x| {
            binary_cross_entropy_with_logits(&x[0], &x[1], Reduction::None)
        });
    let found = numbers(&targets.unwrap()[2]);
    assert!((found[0] + 3.0).abs() < 1e-12 && found[1] == none, "{found:?}");
}

pub fn a_batch_of_ignored_labels_has_gradients_of_0(device: &Device) {
    const REDUCTIONS: [Reduction; 3] = [Reduction::Mean, Reduction::BatchMean, Reduction::Sum];
    let check = |dtype: DType, reduction: Reduction| -> Result<()> {
        let leaf = |x: [[f64; 3]; 3]| Variable::with_grad(Tensor::new(x, device)?.cast(dtype)?);
        let (x, weight) = (
            leaf([[1.0, 2.0, 0.0], [0.5, 1.0, 1.0], [3.0, 1.0, 2.0]])?,
            leaf([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [0.0, 3.0, 1.0]])?,
        );
        let labels = Tensor::new([-100i64, -100, -100], device)?;
        let losses = [
            linear_cross_entropy(&x, &weight, &labels, options(reduction))?,
            cross_entropy(&x.matmul(&weight)?, &labels, options(reduction))?,
            nll_loss(&x.matmul(&weight)?, &labels, options(reduction))?,
        ];
        for (at, loss) in losses.iter().enumerate() {
            let loss_of_none = numbers(&loss.tensor())[0];
            assert!(if reduction == Reduction::Mean { loss_of_none.is_nan() } else { loss_of_none == 0.0 });
            x.zero_grad();
            weight.zero_grad();
            loss.backward()?;
            let gradient = |of: &Variable| of.grad().map(|gradient| numbers(&gradient));
            let zeros = Some(vec![0.0; 9]);
            assert_eq!([gradient(&x), gradient(&weight)], [zeros.clone(), zeros], "loss {at} of {dtype}");
        }
        // An infinite gradient of an ignored label counts no more than another one.
        let some = Tensor::new([0i64, -100, 2], device)?;
        let losses = linear_cross_entropy(&x, &weight, &some, options(Reduction::None))?;
        x.zero_grad();
        losses.backward_with(&Tensor::new([1.0, f64::INFINITY, 1.0], device)?.cast(losses.dtype())?)?;
        let gradient = x.grad().map(|gradient| numbers(&gradient)).unwrap_or_default();
        assert!(gradient.iter().all(|x| x.is_finite()) && gradient[3..6] == [0.0; 3], "{gradient:?}");
        Ok(())
    };
    for dtype in [DType::F64, DType::F32, DType::BF16] {
        REDUCTIONS.into_iter().try_for_each(|reduction| check(dtype, reduction)).unwrap();
    }
}

/// Not in [`each`]: on a device the error waits for the next call that waits, whichever that is.
pub fn ids_do_not_count_from_the_end(device: &Device) {
    let table = Variable::with_grad(Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], device).unwrap()).unwrap();
    let run = |ids: &Tensor| table.embedding(ids).and_then(|rows| rows.tensor().to_vec::<f32>());
    let ids = |id: i64| Tensor::new([1, id], device).unwrap();
    for id in [-1, -2, -3, 2, i64::MAX, -(1 << 62)] {
        for ids in [Some(ids(id)), i32::try_from(id).ok().map(|_| ids(id).cast(DType::I32).unwrap())] {
            let Some(ids) = ids else { continue };
            let error = run(&ids).unwrap_err();
            let text = format!("embedding: found index {id} along axis 0; wanted one of 0 to 1");
            assert_eq!(error.to_string(), text);
            assert!(matches!(error, Error::IndexOutOfRange { size: 2, .. }));
        }
    }
    for dtype in [DType::I64, DType::I32, DType::U8, DType::U64] {
        assert_eq!(run(&ids(0).cast(dtype).unwrap()).unwrap(), [3.0, 4.0, 1.0, 2.0], "{dtype}");
    }
}
