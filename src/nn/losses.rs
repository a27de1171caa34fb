//! Losses, with PyTorch's names and defaults.
//!
//! Tests: `tests/nn/losses.rs`, `tests/nn/loss_errors.rs`, `tests/nn/loss_gradients.rs`.

use std::sync::OnceLock;

use super::autograd::{Function, FunctionContext, FusedFunction, Variable};
use super::precision::{in_compute_dtype, widened_variable};
use crate::error::{Error, Result};
use crate::fuse::Expr;
pub use crate::tensor::{CrossEntropyOptions, LossReduction as Reduction};
use crate::tensor::{Fused, Probabilities, Tensor};
use crate::types::DType;

/// Returns losses in the form of a reduction.
fn reduced(reduction: Reduction, losses: &Variable) -> Result<Variable> {
    match reduction {
        Reduction::None => Ok(losses.clone()),
        Reduction::Mean => losses.mean_all(),
        Reduction::Sum => losses.sum_all(),
        Reduction::BatchMean => {
            let count = losses.shape().first().copied().unwrap_or(1);
            let mean = (widened_variable(losses)?.sum_all()? / count)?;
            in_compute_dtype(&mean, Some(losses.dtype()))
        }
    }
}

fn check_shapes(operation: &'static str, input: &Variable, target: &Variable) -> Result<()> {
    let (input, target) = (input.shape(), target.shape());
    if input == target {
        return Ok(());
    }
    let found = format!("an input of shape {input} and a target of shape {target}");
    Err(Error::invalid(operation, found, "equal shapes"))
}

/// Returns (input - target)².
///
/// # Errors
///
/// [`Error::InvalidArgument`] for different shapes, and errors of the operations.
pub fn mse_loss(input: &Variable, target: &Variable, reduction: Reduction) -> Result<Variable> {
    check_shapes("mse_loss", input, target)?;
    reduced(reduction, &(input - target)?.square()?)
}

/// Returns -t ln s(x) - (1 - t) ln(1 - s(x)) with the sigmoid s, for logits x and targets t from 0 to 1. The loss of an infinite
/// logit that is right is 0.
///
/// # Errors
///
/// As [`mse_loss`]; [`Error::InvalidArgument`] for a `target` with elements outside 0 to 1 or NaN: here on the CPU, and on a
/// CUDA device at the next call that waits.
pub fn binary_cross_entropy_with_logits(
    input: &Variable,
    target: &Variable,
    reduction: Reduction,
) -> Result<Variable> {
    check_shapes("binary_cross_entropy_with_logits", input, target)?;
    target.tensor().check_probabilities(Probabilities::LogitsTarget)?;
    // No term is negative, so none cancels another.
    let of_ones = (-input)?.softplus()?.weighted(target)?;
    let rest: Variable = (1.0 - target)?;
    let of_zeros = input.softplus()?.weighted(&rest)?;
    reduced(reduction, &(of_ones + of_zeros)?)
}

/// Returns -t ln x - (1 - t) ln(1 - x) for probabilities x and targets t from 0 to 1. The logarithms are at least -100, as in
/// PyTorch, so a loss is finite. The gradient of x is (x - t) / max(x (1 - x), 10⁻¹²).
///
/// [`binary_cross_entropy_with_logits`] loses no digits near 0 and 1.
///
/// # Errors
///
/// As [`mse_loss`]; [`Error::InvalidArgument`] for an `input` or a `target` with elements outside 0 to 1 or NaN: here on the
/// CPU, and on a CUDA device at the next call that waits.
pub fn binary_cross_entropy(input: &Variable, target: &Variable, reduction: Reduction) -> Result<Variable> {
    check_shapes(BinaryCrossEntropy::NAME, input, target)?;
    input.tensor().check_probabilities(Probabilities::BinaryCrossEntropyInput)?;
    target.tensor().check_probabilities(Probabilities::BinaryCrossEntropyTarget)?;
    reduced(reduction, &Variable::apply(BinaryCrossEntropy, &[input, target])?)
}

/// The loss of each probability.
struct BinaryCrossEntropy;

impl BinaryCrossEntropy {
    const NAME: &'static str = "binary_cross_entropy";

    /// Returns probabilities and targets in the dtype to compute in, ln x and ln(1 - x).
    fn terms<'g>(x: Expr<'g>, t: Expr<'g>) -> [Expr<'g>; 4] {
        let [x, t] = [x, t].map(|x| if x.dtype() == DType::F64 { x } else { x.cast(DType::F32) });
        [x, t, x.log().maximum(-100.0), (-x).log1p().maximum(-100.0)]
    }
}

impl Function for BinaryCrossEntropy {
    fn name(&self) -> &'static str {
        BinaryCrossEntropy::NAME
    }

    fn forward(&self, context: &mut FunctionContext, inputs: &[&Tensor]) -> Result<Tensor> {
        static LOSSES: OnceLock<Fused<2>> = OnceLock::new();
        let losses = || {
            Fused::new(|[input, target]| {
                let [_, t, of_one, of_zero] = BinaryCrossEntropy::terms(input, target);
                (-(t * of_one) - (1.0 - t) * of_zero).cast(input.dtype())
            })
        };
        let &[input, target] = inputs else {
            return Err(Error::LengthMismatch { operation: Self::NAME, wanted: 2, found: inputs.len() });
        };
        context.save_input(0);
        context.save_input(1);
        LOSSES.get_or_init(losses).run([input, target])
    }

    fn backward(&self, saved: &[Tensor], gradient: &Tensor) -> Result<Vec<Option<Tensor>>> {
        static GRADIENTS: OnceLock<Fused<3, 2>> = OnceLock::new();
        let gradients = || {
            Fused::with_outputs(|[input, target, g]| {
                let [x, t, of_one, of_zero] = BinaryCrossEntropy::terms(input, target);
                [g * (x - t) / (x * (1.0 - x)).maximum(1e-12), g * (of_zero - of_one)]
            })
        };
        let [input, target] = saved else {
            return Err(Error::LengthMismatch { operation: Self::NAME, wanted: 2, found: saved.len() });
        };
        let found = GRADIENTS.get_or_init(gradients).run_all([input, target, gradient])?;
        Ok(found.into_iter().map(Some).collect())
    }
}

/// eᵗ (t - x), and 0 where eᵗ is 0, also where t - x is infinite or NaN, unless x is NaN.
fn log_target_losses() -> &'static FusedFunction<2> {
    static LOSSES: OnceLock<FusedFunction<2>> = OnceLock::new();
    LOSSES.get_or_init(|| {
        FusedFunction::new(|[x, t]| {
            let is_none = t.exp().eq(0.0) & x.eq(x);
            let [x, t] = [x, t].map(|operand| is_none.choose(0.0, operand));
            is_none.choose(0.0, t.exp() * (t - x))
        })
    })
}

/// Returns the divergence of `target` from `input`, which is given as logarithms: t (ln t - x), and with `is_log_target`
/// eᵗ (t - x). A target of probability 0, which a logarithm of a very small one is too, has the loss 0, whatever number the
/// input is; PyTorch gives NaN for some. PyTorch's default reduction is the mean; [`Reduction::BatchMean`] is the divergence's
/// definition.
///
/// # Errors
///
/// As [`binary_cross_entropy_with_logits`], but the elements of a target of logarithms may be any numbers.
pub fn kl_div(
    input: &Variable,
    target: &Variable,
    is_log_target: bool,
    reduction: Reduction,
) -> Result<Variable> {
    check_shapes("kl_div", input, target)?;
    if !is_log_target {
        target.tensor().check_probabilities(Probabilities::DivergenceTarget)?;
    }
    let losses = if is_log_target {
        log_target_losses().run([input, target])?
    } else {
        (target.xlogy(target)? - input.weighted(target)?)?
    };
    reduced(reduction, &losses)
}

/// Returns -ln softmax(input) at the labels. The input has the classes along axis 1, or along axis 0 if it has one; the
/// labels are integers of its shape without that axis.
///
/// With label smoothing ε and C classes: (1 - ε) times that, and ε / C times the sum over all classes.
///
/// ```
/// use selvedge::nn::{CrossEntropyOptions, Variable, cross_entropy};
/// use selvedge::{Device, Tensor};
/// let device = Device::cpu();
/// let logits = Variable::with_grad(Tensor::new([[0.0f64, 0.0], [0.0, 0.0]], &device)?)?;
/// let loss = cross_entropy(&logits, &Tensor::new([0i64, -100], &device)?, CrossEntropyOptions::default())?;
/// assert!((loss.tensor().item::<f64>()? - 2f64.ln()).abs() < 1e-15);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::IndexOutOfRange`] for a label that is neither a class nor ignored: here on the CPU, and on a CUDA device at the
/// next call that waits. [`Error::InvalidArgument`] for shapes that do not meet and a smoothing that is not from 0 to below 1,
/// [`Error::DTypeMismatch`] for labels other than integers, and errors of the operations.
pub fn cross_entropy(input: &Variable, labels: &Tensor, options: CrossEntropyOptions) -> Result<Variable> {
    input.cross_entropy(labels, options)
}

/// Returns -input at the labels, for an input of logarithms of probabilities; otherwise as [`cross_entropy`].
///
/// # Errors
///
/// As [`cross_entropy`]; [`Error::InvalidArgument`] with a label smoothing. A label below -2⁶² is reported as -2⁶².
pub fn nll_loss(input: &Variable, labels: &Tensor, options: CrossEntropyOptions) -> Result<Variable> {
    const OPERATION: &str = "nll_loss";
    if options.label_smoothing != 0.0 {
        let found = format!("a label smoothing of {}", options.label_smoothing);
        return Err(Error::invalid(OPERATION, found, "0; cross_entropy has one"));
    }
    let axis = input.tensor().class_axis(OPERATION, labels)?;
    let [index, is_ignored] = labels.class_index(options.ignore_index)?;
    let losses = (-input.gather_classes(axis, &index.unsqueeze(axis)?)?.squeeze(axis)?)?;
    let losses = Variable::new(is_ignored.clone()).choose(0.0, &losses)?;
    match options.reduction {
        Reduction::Mean => {
            let sum = widened_variable(&losses)?.sum_all()?;
            let count = is_ignored.logical_not()?.count_nonzero_all()?.cast(sum.dtype())?;
            in_compute_dtype(&(sum / &count)?, Some(losses.dtype()))
        }
        reduction => reduced(reduction, &losses),
    }
}
