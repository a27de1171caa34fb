//! Operations of variables: operators, elementwise ones, reductions, indexing, and functions along an axis. Those that move elements are in `shape`.

use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use selvedge::fuse::Operation;
use selvedge::nn::{self, Variable};

use super::variable::{IndexArgument, OperandArgument, PyVariable, VariableArgument};
use crate::arguments::{AxesArgument, InRange, Sizes, axes_or_all, axis_or, either, given_axis};
use crate::error::{Result, wrong_type};
use crate::tensor::PyTensor;
use crate::tensor::elementwise::with_elementwise;
use crate::tensor::indexing::{Entry, entries};
use crate::tensor::operators::{comparison_operation, with_operators};
use crate::tensor::reductions::correction;

impl PyVariable {
    fn binary(&self, py: Python<'_>, operation: Operation, other: &OperandArgument) -> Result<PyVariable> {
        self.map(py, |variable| nn::apply(operation, &[variable.into(), other.operand()]))
    }

    fn reflected(&self, py: Python<'_>, operation: Operation, other: &OperandArgument) -> Result<PyVariable> {
        self.map(py, |variable| nn::apply(operation, &[other.operand(), variable.into()]))
    }
}

macro_rules! operators {
    ($($method:ident $reflected:ident $in_place:ident $operation:ident;)*) => {
        #[pymethods]
        impl PyVariable {
            $(
                fn $method(&self, py: Python<'_>, other: OperandArgument) -> Result<PyVariable> {
                    self.binary(py, Operation::$operation, &other)
                }

                fn $reflected(&self, py: Python<'_>, other: OperandArgument) -> Result<PyVariable> {
                    self.reflected(py, Operation::$operation, &other)
                }
            )*
        }
    };
}

with_operators! { operators }

#[pymethods]
impl PyVariable {
    fn __pow__(
        &self,
        py: Python<'_>,
        other: OperandArgument,
        _modulo: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyVariable> {
        self.binary(py, Operation::Pow, &other)
    }

    fn __rpow__(
        &self,
        py: Python<'_>,
        other: OperandArgument,
        _modulo: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyVariable> {
        self.reflected(py, Operation::Pow, &other)
    }

    fn __matmul__(&self, py: Python<'_>, other: VariableArgument) -> Result<PyVariable> {
        self.map(py, |variable| variable.matmul(&other.0))
    }

    fn __rmatmul__(&self, py: Python<'_>, other: VariableArgument) -> Result<PyVariable> {
        self.map(py, |variable| other.0.matmul(variable))
    }

    fn __neg__(&self, py: Python<'_>) -> Result<PyVariable> {
        self.map(py, |variable| variable.neg())
    }

    fn __pos__(&self) -> PyVariable {
        PyVariable(self.0.clone())
    }

    fn __abs__(&self, py: Python<'_>) -> Result<PyVariable> {
        self.map(py, |variable| variable.abs())
    }

    fn __invert__(&self, py: Python<'_>) -> Result<PyVariable> {
        self.map(py, |variable| variable.bit_not())
    }

    fn __richcmp__(
        &self,
        py: Python<'_>,
        other: OperandArgument,
        comparison: CompareOp,
    ) -> Result<PyVariable> {
        self.binary(py, comparison_operation(comparison), &other)
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> Result<PyVariable> {
        let entries = entries(key, &self.0.device())?;
        let indices: Vec<_> = entries.iter().map(Entry::index).collect();
        self.map(py, |variable| variable.index(&indices[..]))
    }
}

macro_rules! elementwise {
    ([$($unary:ident $one:ident)*] [$($binary:ident $operation:ident)*] [$($ternary:ident($second:ident, $third:ident) $last:ident)*]) => {
        #[pymethods]
        impl PyVariable {
            $(#[doc = doc!($unary)]
            fn $unary(&self, py: Python<'_>) -> Result<PyVariable> {
                self.map(py, |variable| variable.operation(Operation::$one, &[]))
            })*

            $(#[doc = doc!($binary)]
            fn $binary(&self, py: Python<'_>, other: OperandArgument) -> Result<PyVariable> {
                self.binary(py, Operation::$operation, &other)
            })*

            $(#[doc = doc!($ternary)]
            fn $ternary(&self, py: Python<'_>, $second: OperandArgument, $third: OperandArgument) -> Result<PyVariable> {
                self.map(py, |variable| variable.operation(Operation::$last, &[$second.operand(), $third.operand()]))
            })*
        }
    };
}

with_elementwise! { elementwise }

macro_rules! reductions {
    ([$($name:ident $keepdim:ident)*] [$($deviation:ident $deviation_keepdim:ident)*]) => {
        #[pymethods]
        impl PyVariable {
            $(
                #[doc = doc!($name)]
                #[pyo3(signature = (axis=None, keepdim=false, *, dim=None, keepdims=false))]
                fn $name(
                    &self,
                    py: Python<'_>,
                    axis: Option<AxesArgument>,
                    keepdim: bool,
                    dim: Option<AxesArgument>,
                    keepdims: bool,
                ) -> Result<PyVariable> {
                    let axis = axes_or_all(stringify!($name), axis, dim)?;
                    self.map(py, |variable| match keepdim || keepdims {
                        true => variable.$keepdim(axis.axes()),
                        false => variable.$name(axis.axes()),
                    })
                }
            )*

            $(
                #[doc = doc!($deviation)]
                #[pyo3(
                    signature = (axis=None, keepdim=false, correction=None, *, dim=None, keepdims=false, ddof=None, unbiased=None),
                    text_signature = "($self, axis=None, keepdim=False, correction=1, *, dim=None, keepdims=False, ddof=None, unbiased=None)"
                )]
                #[allow(clippy::too_many_arguments, reason = "the names of NumPy and PyTorch")]
                fn $deviation(
                    &self,
                    py: Python<'_>,
                    axis: Option<AxesArgument>,
                    keepdim: bool,
                    correction: Option<InRange<usize>>,
                    dim: Option<AxesArgument>,
                    keepdims: bool,
                    ddof: Option<InRange<usize>>,
                    unbiased: Option<bool>,
                ) -> Result<PyVariable> {
                    let axis = axes_or_all(stringify!($deviation), axis, dim)?;
                    let correction = self::correction(stringify!($deviation), correction, ddof, unbiased)?;
                    self.map(py, |variable| match keepdim || keepdims {
                        true => variable.$deviation_keepdim(axis.axes(), correction),
                        false => variable.$deviation(axis.axes(), correction),
                    })
                }
            )*
        }
    };
}

reductions! {
    [sum sum_keepdim prod prod_keepdim mean mean_keepdim max max_keepdim min min_keepdim logsumexp logsumexp_keepdim]
    [var var_keepdim std std_keepdim]
}

macro_rules! along_axis {
    ([$($required:ident)*] [$($last:ident)*]) => {
        #[pymethods]
        impl PyVariable {
            $(
                #[doc = doc!($required)]
                #[pyo3(signature = (axis=None, *, dim=None), text_signature = "($self, axis, *, dim=None)")]
                fn $required(
                    &self,
                    py: Python<'_>,
                    axis: Option<InRange<isize>>,
                    dim: Option<InRange<isize>>,
                ) -> Result<PyVariable> {
                    let axis = given_axis(stringify!($required), axis, dim)?;
                    self.map(py, |variable| variable.$required(axis))
                }
            )*

            $(
                #[doc = doc!($last)]
                #[pyo3(signature = (axis=None, *, dim=None), text_signature = "($self, axis=-1, *, dim=None)")]
                fn $last(
                    &self,
                    py: Python<'_>,
                    axis: Option<InRange<isize>>,
                    dim: Option<InRange<isize>>,
                ) -> Result<PyVariable> {
                    let axis = axis_or(stringify!($last), axis, dim, -1)?;
                    self.map(py, |variable| variable.$last(axis))
                }
            )*
        }
    };
}

along_axis! { [cumsum cumprod] [softmax log_softmax] }

fn given(variable: &Option<VariableArgument>) -> Option<&Variable> {
    variable.as_ref().map(|variable| &variable.0)
}

#[pymethods]
impl PyVariable {
    #[doc = doc!(clamp)]
    ///
    /// One bound suffices. `min` and `max` are other names of `low` and `high`.
    #[pyo3(signature = (low=None, high=None, *, min=None, max=None))]
    fn clamp(
        &self,
        py: Python<'_>,
        low: Option<OperandArgument>,
        high: Option<OperandArgument>,
        min: Option<OperandArgument>,
        max: Option<OperandArgument>,
    ) -> Result<PyVariable> {
        let low = either("clamp", ["low", "min"], low, min)?;
        let high = either("clamp", ["high", "max"], high, max)?;
        match (low, high) {
            (Some(low), Some(high)) => self
                .map(py, |variable| variable.operation(Operation::Clamp, &[low.operand(), high.operand()])),
            (Some(low), None) => self.binary(py, Operation::Maximum, &low),
            (None, Some(high)) => self.binary(py, Operation::Minimum, &high),
            (None, None) => Err(wrong_type("clamp", "no bound", "min=, max= or both").into()),
        }
    }

    #[doc = doc!(norm)]
    #[pyo3(signature = (p=InRange(2.0), axis=None, keepdim=false, *, dim=None, keepdims=false), text_signature = "($self, p=2.0, axis=None, keepdim=False, *, dim=None, keepdims=False)")]
    fn norm(
        &self,
        py: Python<'_>,
        p: InRange<f64>,
        axis: Option<AxesArgument>,
        keepdim: bool,
        dim: Option<AxesArgument>,
        keepdims: bool,
    ) -> Result<PyVariable> {
        let axis = axes_or_all("norm", axis, dim)?;
        self.map(py, |variable| match keepdim || keepdims {
            true => variable.norm_keepdim(p.0, axis.axes()),
            false => variable.norm(p.0, axis.axes()),
        })
    }

    #[doc = doc!(matmul)]
    fn matmul(&self, py: Python<'_>, other: VariableArgument) -> Result<PyVariable> {
        self.map(py, |variable| variable.matmul(&other.0))
    }

    #[doc = doc!(layer_norm)]
    #[pyo3(signature = (normalized_shape, weight=None, bias=None, eps=InRange(1e-5)), text_signature = "($self, normalized_shape, weight=None, bias=None, eps=1e-5)")]
    fn layer_norm(
        &self,
        py: Python<'_>,
        normalized_shape: Sizes,
        weight: Option<VariableArgument>,
        bias: Option<VariableArgument>,
        eps: InRange<f64>,
    ) -> Result<PyVariable> {
        self.map(py, |variable| variable.layer_norm(&normalized_shape.0, given(&weight), given(&bias), eps.0))
    }

    #[doc = doc!(rms_norm)]
    #[pyo3(signature = (normalized_shape, weight=None, eps=None))]
    fn rms_norm(
        &self,
        py: Python<'_>,
        normalized_shape: Sizes,
        weight: Option<VariableArgument>,
        eps: Option<InRange<f64>>,
    ) -> Result<PyVariable> {
        self.map(py, |variable| variable.rms_norm(&normalized_shape.0, given(&weight), eps.map(|eps| eps.0)))
    }

    /// The rows of this table that an index names: (…, width) for an index (…).
    fn embedding(&self, py: Python<'_>, index: IndexArgument) -> Result<PyVariable> {
        self.map(py, |variable| variable.embedding(&index.0))
    }

    #[doc = doc!(sort)]
    #[pyo3(signature = (axis=None, descending=false, *, dim=None), text_signature = "($self, axis=-1, descending=False, *, dim=None)")]
    fn sort(
        &self,
        py: Python<'_>,
        axis: Option<InRange<isize>>,
        descending: bool,
        dim: Option<InRange<isize>>,
    ) -> Result<(PyVariable, PyTensor)> {
        let axis = axis_or("sort", axis, dim, -1)?;
        let (sorted, positions) = self.run(py, |variable| variable.sort(axis, descending))?;
        Ok((sorted.into(), positions.into()))
    }

    #[doc = doc!(topk)]
    #[pyo3(signature = (k, axis=None, largest=true, *, dim=None), text_signature = "($self, k, axis=-1, largest=True, *, dim=None)")]
    fn topk(
        &self,
        py: Python<'_>,
        k: InRange<usize>,
        axis: Option<InRange<isize>>,
        largest: bool,
        dim: Option<InRange<isize>>,
    ) -> Result<(PyVariable, PyTensor)> {
        let axis = axis_or("topk", axis, dim, -1)?;
        let (found, positions) = self.run(py, |variable| variable.topk(k.0, axis, largest))?;
        Ok((found.into(), positions.into()))
    }
}
