//! Losses, with PyTorch's names and defaults.
//!
//! Tests: `tests/nn/losses.rs`.

use std::sync::OnceLock;

use super::autograd::{Function, FunctionContext, Variable};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor};
use crate::types::DType;

/// The form in which a loss returns the losses of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reduction {
    /// One loss an element.
    None,
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
    /// Their sum over the size of the first dimension: the divergence's mean over a batch.
    BatchMean,
}

impl Reduction {
    fn of(self, losses: &Variable) -> Result<Variable> {
        match self {
            Reduction::None => Ok(losses.clone()),
            Reduction::Mean => losses.mean_all(),
            Reduction::Sum => losses.sum_all(),
            Reduction::BatchMean => losses.sum_all()? / losses.shape().first().copied().unwrap_or(1) as f64,
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
    reduction.of(&(input - target)?.square()?)
}

/// Returns -t ln s(x) - (1 - t) ln(1 - s(x)) with the sigmoid s, for logits x and targets t from 0 to 1.
///
/// # Errors
///
/// As [`mse_loss`].
pub fn binary_cross_entropy_with_logits(
    input: &Variable,
    target: &Variable,
    reduction: Reduction,
) -> Result<Variable> {
    check_shapes("binary_cross_entropy_with_logits", input, target)?;
    // No term is negative, so none cancels another.
    let of_ones = ((-input)?.softplus()? * target)?;
    let rest: Variable = (1.0 - target)?;
    let of_zeros = (input.softplus()? * &rest)?;
    reduction.of(&(of_ones + of_zeros)?)
}

/// Returns -t ln x - (1 - t) ln(1 - x) for probabilities x and targets t from 0 to 1. The logarithms are at least -100, as in
/// PyTorch, so a loss is finite. The gradient of x is (x - t) / max(x (1 - x), 10⁻¹²).
///
/// The call reads the smallest and the largest probability, and so waits for the device.
/// [`binary_cross_entropy_with_logits`] does not wait, and loses no digits near 0 and 1.
///
/// # Errors
///
/// As [`mse_loss`]; [`Error::InvalidArgument`] for an `input` with elements outside 0 to 1 or NaN.
pub fn binary_cross_entropy(input: &Variable, target: &Variable, reduction: Reduction) -> Result<Variable> {
    const OPERATION: &str = BinaryCrossEntropy::NAME;
    check_shapes(OPERATION, input, target)?;
    let x = input.tensor();
    if x.count() > 0 {
        let (smallest, largest) = x.aminmax(..)?;
        let [smallest, largest] = [smallest, largest].map(|x| x.cast(DType::F64)?.item::<f64>());
        let (smallest, largest) = (smallest?, largest?);
        if !(smallest >= 0.0 && largest <= 1.0) {
            let found = format!("probabilities from {smallest} to {largest}");
            return Err(Error::invalid(OPERATION, found, "probabilities from 0 to 1"));
        }
    }
    reduction.of(&Variable::apply(BinaryCrossEntropy, &[input, target])?)
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

/// Returns the divergence of `target` from `input`, which is given as logarithms: t (ln t - x), and with `is_log_target`
/// eᵗ (t - x). PyTorch's default reduction is the mean; [`Reduction::BatchMean`] is the divergence's definition.
///
/// # Errors
///
/// As [`mse_loss`].
pub fn kl_div(
    input: &Variable,
    target: &Variable,
    is_log_target: bool,
    reduction: Reduction,
) -> Result<Variable> {
    check_shapes("kl_div", input, target)?;
    let losses = if is_log_target {
        (target.exp()? * (target - input)?)?
    } else {
        (target.xlogy(target)? - (target * input)?)?
    };
    reduction.of(&losses)
}

/// The options of [`cross_entropy`] and [`nll_loss`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrossEntropyOptions {
    /// The form of the result. Means do not count ignored labels.
    pub reduction: Reduction,
    /// The label whose elements count as no loss: -100.
    pub ignore_index: i64,
    /// The part ε of the loss that all classes share equally: 0. [`nll_loss`] has none.
    pub label_smoothing: f64,
}

impl Default for CrossEntropyOptions {
    fn default() -> Self {
        CrossEntropyOptions { reduction: Reduction::Mean, ignore_index: -100, label_smoothing: 0.0 }
    }
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
/// next call that waits. A negative one is reported as the index [`i64::MAX`]. [`Error::InvalidArgument`] for shapes that do not meet and a smoothing outside 0 to 1,
/// [`Error::DTypeMismatch`] for labels other than integers, and errors of the operations.
pub fn cross_entropy(input: &Variable, labels: &Tensor, options: CrossEntropyOptions) -> Result<Variable> {
    const OPERATION: &str = "cross_entropy";
    let smoothing = options.label_smoothing;
    if !(0.0..=1.0).contains(&smoothing) {
        let found = format!("a label smoothing of {smoothing}");
        return Err(Error::invalid(OPERATION, found, "one from 0 to 1"));
    }
    let axis = class_axis(OPERATION, input, labels)?;
    class_losses(&input.log_softmax(axis)?, axis, labels, options)
}

/// Returns -input at the labels, for an input of logarithms of probabilities; otherwise as [`cross_entropy`].
///
/// # Errors
///
/// As [`cross_entropy`]; [`Error::InvalidArgument`] with a label smoothing.
pub fn nll_loss(input: &Variable, labels: &Tensor, options: CrossEntropyOptions) -> Result<Variable> {
    const OPERATION: &str = "nll_loss";
    if options.label_smoothing != 0.0 {
        let found = format!("a label smoothing of {}", options.label_smoothing);
        return Err(Error::invalid(OPERATION, found, "0; cross_entropy has one"));
    }
    class_losses(input, class_axis(OPERATION, input, labels)?, labels, options)
}

/// Returns the axis of the classes.
fn class_axis(operation: &'static str, input: &Variable, labels: &Tensor) -> Result<isize> {
    if !labels.dtype().is_integer() {
        let (wanted, found) = ("labels of integers".to_owned(), labels.dtype().to_string());
        return Err(Error::DTypeMismatch { operation, wanted, found });
    }
    let shape = input.shape();
    let axis = usize::from(shape.rank() > 1);
    let sizes = shape.iter().enumerate().filter(|(place, _)| *place != axis).map(|(_, size)| size);
    if shape.rank() == 0 || !sizes.eq(labels.shape().iter()) {
        let found = format!("an input of shape {shape} and labels of shape {}", labels.shape());
        return Err(Error::invalid(
            operation,
            found,
            "labels of the input's shape without the classes' axis",
        ));
    }
    Ok(axis as isize)
}

fn class_losses(
    logarithms: &Variable,
    axis: isize,
    labels: &Tensor,
    options: CrossEntropyOptions,
) -> Result<Variable> {
    let labels = labels.cast(DType::I64)?;
    let is_ignored = labels.eq(options.ignore_index)?;
    // A negative index would count from the end. As an unsigned one it is out of range.
    let index = is_ignored.choose(0i64, &labels)?.cast(DType::U64)?.unsqueeze(axis)?;
    let mut losses = (-logarithms.gather(axis, &index)?.squeeze(axis)?)?;
    let smoothing = options.label_smoothing;
    if smoothing > 0.0 {
        let classes = logarithms.shape().get(axis as usize).copied().unwrap_or(1);
        let of_all = (logarithms.sum(axis)? * (-smoothing / classes as f64))?;
        losses = ((losses * (1.0 - smoothing))? + of_all)?;
    }
    let losses = Variable::new(is_ignored.clone()).choose(0.0, &losses)?;
    match options.reduction {
        Reduction::Mean => {
            let count = is_ignored.logical_not()?.count_nonzero_all()?.cast(losses.dtype())?;
            losses.sum_all()? / &count
        }
        reduction => reduction.of(&losses),
    }
}
