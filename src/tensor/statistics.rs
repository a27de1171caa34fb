//! Statistics that combine several reductions: extremes with their positions, pairs of moments, covariances, differences.
//!
//! Tests: `tests/tensor/statistics.rs`.

use super::axes::Axes;
use super::fuse;
use super::tensor::Tensor;
use crate::error::{Error, Result};
use crate::types::DType;

/// The elements of a block of distances that [`Tensor::cdist`] computes at a time.
const DISTANCE_BLOCK: usize = 1 << 24;

impl Tensor {
    /// Returns the largest element along `axis` and its position, the first of equal ones, as i64. A row with NaN gives NaN,
    /// and the position of the first one. PyTorch's `max(dim)`.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[1.0f32, 5.0, 5.0], [3.0, 2.0, 1.0]], &Device::cpu())?;
    /// let (values, indices) = x.max_with_indices(1)?;
    /// assert_eq!((values.to_vec::<f32>()?, indices.to_vec::<i64>()?), (vec![5.0, 3.0], vec![1, 0]));
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`argmax`](Self::argmax).
    pub fn max_with_indices(&self, axis: isize) -> Result<(Tensor, Tensor)> {
        let positions = self.argmax_keepdim(axis).map_err(|error| error.in_operation("max_with_indices"))?;
        self.at_positions(axis, positions)
    }

    /// Returns the smallest element along `axis` and its position, as [`max_with_indices`](Self::max_with_indices) does.
    ///
    /// # Errors
    ///
    /// As [`argmin`](Self::argmin).
    pub fn min_with_indices(&self, axis: isize) -> Result<(Tensor, Tensor)> {
        let positions = self.argmin_keepdim(axis).map_err(|error| error.in_operation("min_with_indices"))?;
        self.at_positions(axis, positions)
    }

    fn at_positions(&self, axis: isize, positions: Tensor) -> Result<(Tensor, Tensor)> {
        let values = self.gather_unchecked(axis, &positions)?;
        Ok((values.squeeze(axis)?, positions.squeeze(axis)?))
    }

    /// Returns the smallest and the largest element along axes; NaN if one is NaN.
    ///
    /// # Errors
    ///
    /// As [`min`](Self::min).
    pub fn aminmax<'a>(&self, axes: impl Into<Axes<'a>>) -> Result<(Tensor, Tensor)> {
        let axes = axes.into();
        both("aminmax", || Ok((self.min(axes)?, self.max(axes)?)))
    }

    /// Returns the standard deviation and the mean along axes; see [`std`](Self::std).
    ///
    /// # Errors
    ///
    /// As [`std`](Self::std).
    pub fn std_mean<'a>(&self, axes: impl Into<Axes<'a>>, correction: usize) -> Result<(Tensor, Tensor)> {
        let axes = axes.into();
        both("std_mean", || Ok((self.std(axes, correction)?, self.mean(axes)?)))
    }

    /// Returns the variance and the mean along axes; see [`var`](Self::var).
    ///
    /// # Errors
    ///
    /// As [`var`](Self::var).
    pub fn var_mean<'a>(&self, axes: impl Into<Axes<'a>>, correction: usize) -> Result<(Tensor, Tensor)> {
        let axes = axes.into();
        both("var_mean", || Ok((self.var(axes, correction)?, self.mean(axes)?)))
    }

    /// Returns the differences of neighbours along `axis`, `order` times. Integers wrap; bools give whether neighbours differ.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([1, 4, 9, 16], &Device::cpu())?;
    /// assert_eq!(x.diff(1, 0)?.to_vec::<i32>()?, [3, 5, 7]);
    /// assert_eq!(x.diff(2, 0)?.to_vec::<i32>()?, [2, 2]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for an axis that is not there; [`DTypeMismatch`](Error::DTypeMismatch) for
    /// 8-bit floats; [`OutOfMemory`](Error::OutOfMemory).
    pub fn diff(&self, order: usize, axis: isize) -> Result<Tensor> {
        let axis = self.shape().axis("diff", axis)?;
        let mut result = self.clone();
        for _ in 0..order {
            let length = result.shape()[axis];
            let count = length.saturating_sub(1);
            let axis = axis as isize;
            let (lower, upper) =
                (result.narrow(axis, 0, count)?, result.narrow(axis, length - count, count)?);
            let difference = if self.dtype() == DType::Bool { upper.ne(&lower) } else { upper.sub(&lower) };
            result = difference.map_err(|error| error.in_operation("diff"))?;
            if count == 0 {
                break;
            }
        }
        Ok(result)
    }

    /// Returns the covariances of the rows of a matrix, each of which holds the observations of one variable; a vector is one
    /// row. The result of one row has no dimensions. The divisor is the number of observations less `correction`. Integers
    /// give f32; f16 and bf16 are computed in f32.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[0.0f64, 1.0, 2.0], [2.0, 1.0, 0.0]], &Device::cpu())?;
    /// assert_eq!(x.cov(1)?.to_vec::<f64>()?, [1.0, -1.0, -1.0, 1.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for more than two dimensions; otherwise as [`mean`](Self::mean) and
    /// [`matmul`](Self::matmul).
    pub fn cov(&self, correction: usize) -> Result<Tensor> {
        let result = self.covariances("cov", correction).and_then(|result| self.narrowed(result));
        result.map_err(|error| error.in_operation("cov"))
    }

    /// Returns the correlation coefficients of the rows of a matrix, from -1 to 1; see [`cov`](Self::cov). A row of equal
    /// elements gives NaN.
    ///
    /// # Errors
    ///
    /// As [`cov`](Self::cov).
    pub fn corrcoef(&self) -> Result<Tensor> {
        let covariances = self.covariances("corrcoef", 1).map_err(|error| error.in_operation("corrcoef"))?;
        if covariances.rank() == 0 {
            return self.narrowed(covariances.div(&covariances)?);
        }
        let variances = covariances.diagonal(0, 0, 1)?;
        let variances = if variances.dtype().is_complex() { variances.real()? } else { variances };
        let deviations = variances.sqrt()?;
        let rows = covariances.div(&deviations.unsqueeze(1)?)?;
        let result = rows.div(&deviations)?;
        // Rounding can lead past 1.
        self.narrowed(if result.dtype().is_complex() { result } else { result.clamp(-1, 1)? })
    }

    /// Returns a statistic of f32 in this tensor's dtype, if that is f16 or bf16.
    fn narrowed(&self, result: Tensor) -> Result<Tensor> {
        let dtype = self.dtype();
        if matches!(dtype, DType::F16 | DType::BF16) { result.cast(dtype) } else { Ok(result) }
    }

    /// Returns the covariances, of f16 and bf16 in f32.
    fn covariances(&self, operation: &'static str, correction: usize) -> Result<Tensor> {
        if self.rank() > 2 {
            let found = format!("shape {}", self.shape());
            return Err(Error::invalid(operation, found, "at most two dimensions"));
        }
        let count = self.shape().last().copied().unwrap_or(1);
        let rows = self.reshape(&[self.count().checked_div(count).unwrap_or(0) as isize, count as isize]);
        // No observations leave the number of rows to the shape.
        let rows = if self.rank() == 2 { self.clone() } else { rows? };
        let is_narrow = matches!(self.dtype(), DType::F16 | DType::BF16);
        let rows = if is_narrow { rows.cast(DType::F32)? } else { rows };
        let centred = rows.sub(&rows.mean_keepdim(1)?)?;
        let adjoint = centred.t()?;
        let adjoint = if adjoint.dtype().is_complex() { adjoint.conj()? } else { adjoint };
        let divisor = count.saturating_sub(correction) as i64;
        let result = centred.matmul(&adjoint)?.div(divisor)?;
        if result.count() == 1 { result.squeeze_all() } else { Ok(result) }
    }

    /// Returns the distance of each row of this tensor from each row of another, by the `p`-norm of their difference. Both are
    /// matrices of rows of one length, or batches of matrices, which broadcast.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[0.0f32, 0.0], [3.0, 4.0]], &Device::cpu())?;
    /// let y = Tensor::new([[0.0f32, 0.0]], &Device::cpu())?;
    /// assert_eq!(x.cdist(&y, 2.0)?.to_vec::<f32>()?, [0.0, 5.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for tensors that are no matrices, rows of two lengths, batches that do not
    /// broadcast, and a `p` of NaN; [`DeviceMismatch`](Error::DeviceMismatch), [`OutOfMemory`](Error::OutOfMemory).
    pub fn cdist(&self, other: &Tensor, p: f64) -> Result<Tensor> {
        let (shape, others) = (self.shape(), other.shape());
        let is_fit = shape.rank() >= 2 && others.rank() >= 2 && shape.last() == others.last();
        if !is_fit {
            let found = format!("shapes {shape} and {others}");
            return Err(Error::invalid("cdist", found, "matrices whose rows have one length"));
        }
        let rows = shape[shape.rank() - 2];
        let batches: usize = shape[..shape.rank() - 2].iter().product();
        let of_row = batches.max(1).saturating_mul(other.count()).max(1);
        let block = (DISTANCE_BLOCK / of_row).max(1);
        let others = other.unsqueeze(-3)?;
        let mut parts = Vec::new();
        for start in (0..rows.max(1)).step_by(block) {
            let part = self.narrow(-2, start, block.min(rows - start))?;
            let distances = part.unsqueeze(-2)?.sub(&others).and_then(|difference| difference.norm(p, -1));
            parts.push(distances.map_err(|error| error.in_operation("cdist"))?);
        }
        match parts.as_slice() {
            [one] => Ok(one.clone()),
            _ => Tensor::cat(&parts.iter().collect::<Vec<_>>(), -2),
        }
    }
}

/// Reductions that leave out NaN, and its replacement.
///
/// # Errors
///
/// [`InvalidArgument`](Error::InvalidArgument) for an axis that is not there; [`DTypeMismatch`](Error::DTypeMismatch) for 8-bit
/// floats; [`OutOfMemory`](Error::OutOfMemory).
impl Tensor {
    /// Returns the sum along axes of the elements that are not NaN; see [`sum`](Self::sum).
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([1.0f32, f32::NAN, 3.0], &Device::cpu())?;
    /// assert_eq!(x.nansum(0)?.item::<f32>()?, 4.0);
    /// assert_eq!(x.nanmean(0)?.item::<f32>()?, 2.0);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn nansum<'a>(&self, axes: impl Into<Axes<'a>>) -> Result<Tensor> {
        let sum = match has_nan(self.dtype()) {
            true => fuse([self], |[x]| x.is_nan().choose(0, x))?.sum(axes),
            false => self.sum(axes),
        };
        sum.map_err(|error| error.in_operation("nansum"))
    }

    /// Returns the mean along axes of the elements that are not NaN; NaN of none. f16 and bf16 are computed in f32.
    #[allow(clippy::missing_errors_doc)]
    pub fn nanmean<'a>(&self, axes: impl Into<Axes<'a>>) -> Result<Tensor> {
        let (axes, dtype) = (axes.into(), self.dtype());
        if !has_nan(dtype) {
            return self.mean(axes).map_err(|error| error.in_operation("nanmean"));
        }
        let work = if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype };
        let count = self.is_nan()?.logical_not()?.sum(axes).map_err(|error| error.in_operation("nanmean"))?;
        self.cast(work)?.nansum(axes)?.div(&count.cast(work.part())?)?.cast(dtype)
    }

    /// Replaces NaN by `nan` and infinities by numbers, or by the greatest and the least number of the dtype.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([f32::NAN, f32::INFINITY, f32::NEG_INFINITY], &Device::cpu())?;
    /// assert_eq!(x.nan_to_num(0.0, None, Some(-1.0))?.to_vec::<f32>()?, [0.0, f32::MAX, -1.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for a number that the dtype does not hold;
    /// [`DTypeMismatch`](Error::DTypeMismatch) for 8-bit floats; [`OutOfMemory`](Error::OutOfMemory).
    pub fn nan_to_num(
        &self,
        nan: f64,
        positive_infinity: Option<f64>,
        negative_infinity: Option<f64>,
    ) -> Result<Tensor> {
        if self.dtype().is_complex() {
            let parts = self.contiguous()?.view_as_real()?;
            return parts.nan_to_num(nan, positive_infinity, negative_infinity)?.view_as_complex();
        }
        let greatest = match self.dtype() {
            DType::F16 => f64::from(half::f16::MAX),
            DType::BF16 => f64::from(half::bf16::MAX),
            DType::F32 => f64::from(f32::MAX),
            DType::F64 => f64::MAX,
            _ if has_nan(self.dtype()) => 0.0,
            _ => return Ok(self.clone()),
        };
        let (above, below) = (positive_infinity.unwrap_or(greatest), negative_infinity.unwrap_or(-greatest));
        fuse((self, nan, above, below), |[x, nan, above, below]| {
            let infinite = x.gt(0).choose(above, below);
            x.is_nan().choose(nan, x.is_infinite().choose(infinite, x))
        })
        .map_err(|error| error.in_operation("nan_to_num"))
    }
}

/// Computes two results of an operation, whose name errors get.
fn both(
    operation: &'static str,
    compute: impl FnOnce() -> Result<(Tensor, Tensor)>,
) -> Result<(Tensor, Tensor)> {
    compute().map_err(|error| error.in_operation(operation))
}

fn has_nan(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_complex()
}
