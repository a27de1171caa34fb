//! The elementwise operations as methods, by their names in Rust.

use pyo3::prelude::*;
use selvedge::fuse::Operation;
use selvedge::tensor;

use super::PyTensor;
use crate::arguments::{InRange, NumberArgument, Operand, either};
use crate::error::{Result, wrong_type};

// `with_elementwise`, which passes the operations of `ops!` to a macro that makes methods of them: build.rs writes it.
include!(concat!(env!("OUT_DIR"), "/with_elementwise.rs"));
pub(crate) use with_elementwise;

macro_rules! methods {
    ([$($unary:ident $one:ident)*] [$($binary:ident $operation:ident)*] [$($ternary:ident($second:ident, $third:ident) $last:ident)*]) => {
        #[pymethods]
        impl PyTensor {
            $(#[doc = doc!($unary)]
            fn $unary(&self, py: Python<'_>) -> Result<PyTensor> {
                self.map(py, |tensor| tensor::apply(Operation::$one, &[tensor.into()]))
            })*

            $(#[doc = doc!($binary)]
            fn $binary(&self, py: Python<'_>, other: Operand) -> Result<PyTensor> {
                self.binary(py, Operation::$operation, &other)
            })*

            $(#[doc = doc!($ternary)]
            fn $ternary(&self, py: Python<'_>, $second: Operand, $third: Operand) -> Result<PyTensor> {
                self.map(py, |tensor| {
                    tensor::apply(Operation::$last, &[tensor.into(), $second.operand(), $third.operand()])
                })
            })*
        }
    };
}

with_elementwise! { methods }

#[pymethods]
impl PyTensor {
    #[doc = doc!(clamp)]
    ///
    /// One bound suffices. `min` and `max` are other names of `low` and `high`.
    #[pyo3(signature = (low=None, high=None, *, min=None, max=None))]
    fn clamp(
        &self,
        py: Python<'_>,
        low: Option<Operand>,
        high: Option<Operand>,
        min: Option<Operand>,
        max: Option<Operand>,
    ) -> Result<PyTensor> {
        let low = either("clamp", ["low", "min"], low, min)?;
        let high = either("clamp", ["high", "max"], high, max)?;
        match (low, high) {
            (Some(low), Some(high)) => self.map(py, |tensor| {
                tensor::apply(Operation::Clamp, &[tensor.into(), low.operand(), high.operand()])
            }),
            (Some(low), None) => self.binary(py, Operation::Maximum, &low),
            (None, Some(high)) => self.binary(py, Operation::Minimum, &high),
            (None, None) => Err(wrong_type("clamp", "no bound", "min=, max= or both").into()),
        }
    }

    #[doc = doc!(nan_to_num)]
    #[pyo3(signature = (nan=InRange(0.0), positive_infinity=None, negative_infinity=None), text_signature = "($self, nan=0.0, positive_infinity=None, negative_infinity=None)")]
    fn nan_to_num(
        &self,
        py: Python<'_>,
        nan: InRange<f64>,
        positive_infinity: Option<InRange<f64>>,
        negative_infinity: Option<InRange<f64>>,
    ) -> Result<PyTensor> {
        let [positive, negative] =
            [positive_infinity, negative_infinity].map(|number| number.map(|number| number.0));
        self.map(py, |tensor| tensor.nan_to_num(nan.0, positive, negative))
    }

    /// Replaces all elements by a number, and returns the tensor.
    fn fill_<'py>(slf: Bound<'py, Self>, number: NumberArgument) -> Result<Bound<'py, Self>> {
        slf.get().write(slf.py(), |tensor| tensor.fill(number.0).map(|_| ()))?;
        Ok(slf)
    }
}
