//! Comparisons of tensors as a whole and within a tolerance.
//!
//! Tests: `tests/tensor/comparison.rs`.

use super::cached_operation::AppendOnlyMap;
use super::evaluate::{OperandSource, evaluate_one};
use super::tensor::Tensor;
use crate::error::Result;
use crate::fuse::{Expression, Graph, Number};
use crate::types::DType;

impl Tensor {
    /// Returns, for each pair of elements, whether |x - y| <= `atol` + `rtol` · |y|, as a tensor of bools.
    ///
    /// The shapes broadcast and the dtypes may differ: elements are compared in f64, or c128 if one tensor is complex. Equal
    /// infinities are close; NaN is close to nothing. NumPy's `isclose`, which uses `rtol` 1e-5 and `atol` 1e-8.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([1.0f32, 2.0, f32::NAN], &Device::cpu())?;
    /// let y = Tensor::new([1.000001f32, 2.1, f32::NAN], &Device::cpu())?;
    /// assert_eq!(x.isclose(&y, 1e-5, 1e-8)?.to_vec::<bool>()?, [true, false, false]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::Error::InvalidArgument) for shapes that do not broadcast,
    /// [`DeviceMismatch`](crate::Error::DeviceMismatch) for tensors on two devices,
    /// [`OutOfMemory`](crate::Error::OutOfMemory).
    pub fn isclose(&self, other: &Tensor, rtol: f64, atol: f64) -> Result<Tensor> {
        self.compare_close("isclose", other, rtol, atol)
    }

    /// Returns whether all elements are close, by the rule of [`isclose`](Self::isclose); true of no elements.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &Device::cpu())?;
    /// let y = ((&x / 3.0)? * 3.0)?;
    /// assert!(y.allclose(&x, 1e-5, 1e-8)?);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`isclose`](Self::isclose).
    pub fn allclose(&self, other: &Tensor, rtol: f64, atol: f64) -> Result<bool> {
        self.compare_close("allclose", other, rtol, atol)?.all_all()?.item()
    }

    /// Returns whether another tensor has the same shape and equal elements. NaN equals nothing, and 0 equals -0. PyTorch's
    /// `equal`, NumPy's `array_equal`.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([1, 2], &Device::cpu())?;
    /// assert!(x.equal(&x)? && !x.equal(&x.unsqueeze(0)?)?);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DeviceMismatch`](crate::Error::DeviceMismatch) for tensors on two devices, [`OutOfMemory`](crate::Error::OutOfMemory).
    pub fn equal(&self, other: &Tensor) -> Result<bool> {
        super::tensor::one_device("equal", [self, other])?;
        if self.shape() != other.shape() {
            return Ok(false);
        }
        self.eq(other)?.all_all()?.item()
    }

    fn compare_close(&self, operation: &'static str, other: &Tensor, rtol: f64, atol: f64) -> Result<Tensor> {
        let expression = is_close(self.dtype(), other.dtype())?;
        let sources = [OperandSource::Tensor(self), OperandSource::Tensor(other)];
        evaluate_one(operation, expression, &sources, &[Number::Real(rtol), Number::Real(atol)])
    }
}

/// Returns the comparison of two dtypes, with the tolerances as scalars.
fn is_close(left: DType, right: DType) -> Result<&'static Expression> {
    static CACHE: AppendOnlyMap<(DType, DType), Expression> = AppendOnlyMap::new();
    CACHE.find_or_add(
        |known| *known == (left, right),
        || {
            let work = if left.is_complex() || right.is_complex() { DType::C128 } else { DType::F64 };
            let graph = Graph::new();
            let [x, y] = graph.inputs([left, right]).map(|input| input.cast(work));
            let [rtol, atol] = [graph.scalar(DType::F64), graph.scalar(DType::F64)];
            let (distance, size) = ((x - y).abs(), y.abs());
            // An infinite y would be close to everything.
            let is_near = distance.le(atol + rtol * size) & size.lt(f64::INFINITY);
            Ok(((left, right), graph.expression(&[is_near | x.eq(y)])?))
        },
    )
}
