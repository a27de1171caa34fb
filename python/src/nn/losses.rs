//! Losses with PyTorch's names and defaults, attention, and the cross-entropy of a linear layer.

use pyo3::prelude::*;
use selvedge::attention::Band;
use selvedge::nn::{self, AttentionOptions, CrossEntropyOptions, Reduction, Variable};

use super::variable::{IndexArgument, PyVariable, VariableArgument};
use crate::arguments::InRange;
use crate::error::{Result, invalid};
use crate::random::PyGenerator;

/// Returns the reduction of a name.
fn reduction(operation: &'static str, name: &str) -> Result<Reduction> {
    Ok(match name {
        "none" => Reduction::None,
        "mean" => Reduction::Mean,
        "sum" => Reduction::Sum,
        "batchmean" => Reduction::BatchMean,
        _ => {
            let wanted = "\"none\", \"mean\", \"sum\" or \"batchmean\"";
            return Err(invalid(operation, format!("the reduction \"{name}\""), wanted).into());
        }
    })
}

macro_rules! of_equal_shapes {
    ($($(#[doc = $document:literal])* $name:ident)*) => {$(
        $(#[doc = $document])*
        #[pyfunction]
        #[pyo3(signature = (input, target, reduction="mean"))]
        pub fn $name(
            py: Python<'_>,
            input: VariableArgument,
            target: VariableArgument,
            reduction: &str,
        ) -> Result<PyVariable> {
            let reduction = self::reduction(stringify!($name), reduction)?;
            Ok(py.detach(|| nn::$name(&input.0, &target.0, reduction))?.into())
        }
    )*};
}

of_equal_shapes! {
    /// The mean of the squared differences of tensors of one shape.
    ///
    /// >>> sv.nn.mse_loss(sv.nn.Variable([1.0, 2.0]), sv.Tensor([1.0, 4.0])).item()
    /// 2.0
    mse_loss
    /// -target log(input) - (1 - target) log(1 - input), of probabilities.
    binary_cross_entropy
    /// `binary_cross_entropy` of the sigmoid of the input.
    binary_cross_entropy_with_logits
}

/// target (log(target) - input), of logarithms of probabilities and of probabilities, or of logarithms of both with `log_target`.
#[pyfunction]
#[pyo3(signature = (input, target, reduction="mean", log_target=false))]
pub fn kl_div(
    py: Python<'_>,
    input: VariableArgument,
    target: VariableArgument,
    reduction: &str,
    log_target: bool,
) -> Result<PyVariable> {
    let reduction = self::reduction("kl_div", reduction)?;
    Ok(py.detach(|| nn::kl_div(&input.0, &target.0, log_target, reduction))?.into())
}

/// The cross-entropy of logits (N, C) or (N, C, ...) and labels (N) or (N, ...).
///
/// >>> loss = sv.nn.cross_entropy(sv.nn.Variable([[0.0, 0.0]]), sv.Tensor([1]))
/// >>> round(loss.item(), 6)
/// 0.693147
#[pyfunction]
#[pyo3(
    signature = (input, target, ignore_index=InRange(-100), reduction="mean", label_smoothing=InRange(0.0)),
    text_signature = "(input, target, ignore_index=-100, reduction='mean', label_smoothing=0.0)"
)]
pub fn cross_entropy(
    py: Python<'_>,
    input: VariableArgument,
    target: IndexArgument,
    ignore_index: InRange<i64>,
    reduction: &str,
    label_smoothing: InRange<f64>,
) -> Result<PyVariable> {
    let reduction = self::reduction("cross_entropy", reduction)?;
    let options =
        CrossEntropyOptions { reduction, ignore_index: ignore_index.0, label_smoothing: label_smoothing.0 };
    Ok(py.detach(|| nn::cross_entropy(&input.0, &target.0, options))?.into())
}

/// The negative logarithm of a probability, of logarithms of probabilities (N, C) or (N, C, ...) and labels.
#[pyfunction]
#[pyo3(
    signature = (input, target, ignore_index=InRange(-100), reduction="mean"),
    text_signature = "(input, target, ignore_index=-100, reduction='mean')"
)]
pub fn nll_loss(
    py: Python<'_>,
    input: VariableArgument,
    target: IndexArgument,
    ignore_index: InRange<i64>,
    reduction: &str,
) -> Result<PyVariable> {
    let reduction = self::reduction("nll_loss", reduction)?;
    let options =
        CrossEntropyOptions { reduction, ignore_index: ignore_index.0, ..CrossEntropyOptions::default() };
    Ok(py.detach(|| nn::nll_loss(&input.0, &target.0, options))?.into())
}

/// `cross_entropy` of the products of rows (N, width) and a weight (width, classes), without the memory of the logits.
#[pyfunction]
#[pyo3(
    signature = (input, weight, target, ignore_index=InRange(-100), reduction="mean", label_smoothing=InRange(0.0)),
    text_signature = "(input, weight, target, ignore_index=-100, reduction='mean', label_smoothing=0.0)"
)]
pub fn linear_cross_entropy(
    py: Python<'_>,
    input: VariableArgument,
    weight: VariableArgument,
    target: IndexArgument,
    ignore_index: InRange<i64>,
    reduction: &str,
    label_smoothing: InRange<f64>,
) -> Result<PyVariable> {
    let reduction = self::reduction("linear_cross_entropy", reduction)?;
    let options =
        CrossEntropyOptions { reduction, ignore_index: ignore_index.0, label_smoothing: label_smoothing.0 };
    Ok(py.detach(|| nn::linear_cross_entropy(&input.0, &weight.0, &target.0, options))?.into())
}

/// The numbers of keys before and after its own position that a query reads, `None` for all.
type Window = (Option<InRange<usize>>, Option<InRange<usize>>);

/// softmax(scale · query keyᵀ + mask) value for (batch, heads, length, width). The number of key heads divides that of query heads.
///
/// A causal mask is aligned to the bottom right: the last query reads every key.
#[pyfunction]
#[pyo3(
    signature = (query, key, value, attn_mask=None, dropout_p=InRange(0.0), is_causal=false, *, scale=None, window=None, soft_cap=None, generator=None),
    text_signature = "(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, window=None, soft_cap=None, generator=None)"
)]
#[allow(clippy::too_many_arguments, reason = "the keywords of the operation")]
pub fn scaled_dot_product_attention(
    py: Python<'_>,
    query: VariableArgument,
    key: VariableArgument,
    value: VariableArgument,
    attn_mask: Option<VariableArgument>,
    dropout_p: InRange<f64>,
    is_causal: bool,
    scale: Option<InRange<f64>>,
    window: Option<Window>,
    soft_cap: Option<InRange<f64>>,
    generator: Option<&Bound<'_, PyGenerator>>,
) -> Result<PyVariable> {
    let (before, after) = window.unwrap_or_default();
    let options = AttentionOptions {
        mask: attn_mask.map(|mask| mask.0),
        is_causal,
        window: Band { before: before.map(|keys| keys.0), after: after.map(|keys| keys.0) },
        scale: scale.map(|scale| scale.0),
        soft_cap: soft_cap.map(|limit| limit.0),
        dropout: dropout_p.0,
        generator: generator.map(|generator| generator.get().generator().clone()),
        lengths: None,
    };
    let work = || nn::scaled_dot_product_attention(&query.0, &key.0, &value.0, &options);
    Ok(py.detach(work)?.into())
}

/// Computes a function of variables without saving what its operations read: the backward calls the function again.
#[pyfunction]
#[pyo3(signature = (function, *inputs))]
pub fn checkpoint(py: Python<'_>, function: Py<PyAny>, inputs: Vec<VariableArgument>) -> Result<PyVariable> {
    let call = move |inputs: &[Variable]| {
        Python::attach(|py| {
            let inputs: Vec<PyVariable> = inputs.iter().cloned().map(PyVariable).collect();
            let arguments = pyo3::types::PyTuple::new(py, inputs).map_err(crate::error::raised)?;
            let result = function.bind(py).call1(arguments).map_err(crate::error::raised)?;
            Ok(result.extract::<VariableArgument>().map_err(crate::error::raised)?.0)
        })
    };
    let inputs: Vec<Variable> = inputs.into_iter().map(|input| input.0).collect();
    Ok(py.detach(|| nn::checkpoint(call, &inputs.iter().collect::<Vec<_>>()))?.into())
}
