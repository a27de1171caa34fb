//! Statistics of sorted rows: medians, quantiles, modes.

use super::{AxisRows, indices};
use crate::error::{Error, Result};
use crate::fuse::Number;
use crate::tensor::{Tensor, fuse};
use crate::types::DType;

/// The treatment of NaN in a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NanPolicy {
    /// A row with NaN gives NaN.
    Propagate,
    /// NaN is left out; a row of nothing else gives NaN.
    Ignore,
}

/// Order statistics along an axis, which the results lack.
///
/// # Errors
///
/// [`InvalidArgument`](Error::InvalidArgument) for an axis that is not there or has no elements; otherwise as
/// [`sort`](Self::sort).
impl Tensor {
    /// Returns the median along `axis`, the lower one of an even number of elements, and its position. A row with NaN gives
    /// NaN, and the position of the first one.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[4.0f32, 1.0, 3.0, 2.0], [1.0, f32::NAN, 0.0, 5.0]], &Device::cpu())?;
    /// let (values, indices) = x.median(1)?;
    /// assert_eq!(indices.to_vec::<i64>()?, [3, 1]);
    /// assert_eq!(values.get(&[0])?.item::<f32>()?, 2.0);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn median(&self, axis: isize) -> Result<(Tensor, Tensor)> {
        self.median_by("median", axis, NanPolicy::Propagate)
    }

    /// Returns the median of all elements that are not NaN along `axis`, as [`median`](Self::median) does.
    #[allow(clippy::missing_errors_doc)]
    pub fn nanmedian(&self, axis: isize) -> Result<(Tensor, Tensor)> {
        self.median_by("nanmedian", axis, NanPolicy::Ignore)
    }

    /// Returns the [`median`](Self::median) of all elements, without dimensions.
    #[allow(clippy::missing_errors_doc)]
    pub fn median_all(&self) -> Result<Tensor> {
        Ok(self.ravel()?.median_by("median", 0, NanPolicy::Propagate)?.0)
    }

    /// Returns the [`nanmedian`](Self::nanmedian) of all elements, without dimensions.
    #[allow(clippy::missing_errors_doc)]
    pub fn nanmedian_all(&self) -> Result<Tensor> {
        Ok(self.ravel()?.median_by("nanmedian", 0, NanPolicy::Ignore)?.0)
    }

    fn median_by(&self, operation: &'static str, axis: isize, policy: NanPolicy) -> Result<(Tensor, Tensor)> {
        let rows = AxisRows::new(operation, self, axis)?;
        rows.check_not_empty(operation)?;
        let (sorted, length) = (rows.sort(operation, false)?, rows.length() as i64);
        let nans = count_nans(&sorted.values)?;
        let positions = match policy {
            // NaN is sorted behind the numbers.
            NanPolicy::Propagate => fuse((&nans, length, (length - 1) / 2), |[nans, length, middle]| {
                nans.gt(0).choose(length - nans, middle)
            }),
            NanPolicy::Ignore => {
                fuse((&nans, length), |[nans, length]| (length - nans - 1).maximum(0).floor_divide(2))
            }
        }?;
        sorted.at(&positions)
    }

    /// Returns the `q`-th quantile along `axis`: 0 is the smallest element, 0.5 the middle, 1 the largest. Between two
    /// elements it interpolates linearly, as [`lerp`](Self::lerp) does. A row with NaN gives NaN.
    ///
    /// The result has this tensor's dtype, f32 or f64. The position q (n - 1) is computed in f64.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([4.0f64, 1.0, 3.0, 2.0], &Device::cpu())?;
    /// assert_eq!(x.quantile(0.5, 0)?.item::<f64>()?, 2.5);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for a `q` outside of 0 to 1, [`DTypeMismatch`](Error::DTypeMismatch) for
    /// dtypes other than f32 and f64.
    pub fn quantile(&self, q: f64, axis: isize) -> Result<Tensor> {
        self.quantile_by("quantile", q, axis, NanPolicy::Propagate)
    }

    /// Returns the `q`-th quantile of all elements that are not NaN along `axis`, as [`quantile`](Self::quantile) does.
    ///
    /// # Errors
    ///
    /// As [`quantile`](Self::quantile).
    pub fn nanquantile(&self, q: f64, axis: isize) -> Result<Tensor> {
        self.quantile_by("nanquantile", q, axis, NanPolicy::Ignore)
    }

    /// Returns the `q`-th [`quantile`](Self::quantile) of all elements, without dimensions.
    ///
    /// # Errors
    ///
    /// As [`quantile`](Self::quantile).
    pub fn quantile_all(&self, q: f64) -> Result<Tensor> {
        self.ravel()?.quantile_by("quantile", q, 0, NanPolicy::Propagate)
    }

    /// Returns the `q`-th [`nanquantile`](Self::nanquantile) of all elements, without dimensions.
    ///
    /// # Errors
    ///
    /// As [`quantile`](Self::quantile).
    pub fn nanquantile_all(&self, q: f64) -> Result<Tensor> {
        self.ravel()?.quantile_by("nanquantile", q, 0, NanPolicy::Ignore)
    }

    fn quantile_by(&self, operation: &'static str, q: f64, axis: isize, policy: NanPolicy) -> Result<Tensor> {
        if !(0.0..=1.0).contains(&q) {
            return Err(Error::invalid(operation, format!("q = {q}"), "a q from 0 to 1"));
        }
        let dtype = self.dtype();
        if !matches!(dtype, DType::F32 | DType::F64) {
            let (wanted, found) = ("f32 or f64; cast the tensor first".to_owned(), dtype.to_string());
            return Err(Error::DTypeMismatch { operation, wanted, found });
        }
        let rows = AxisRows::new(operation, self, axis)?;
        rows.check_not_empty(operation)?;
        let (sorted, last) = (rows.sorted(operation, false)?, rows.length() as i64 - 1);
        let nans = count_nans(&sorted)?;
        let q = Tensor::full(&[], Number::Real(q), DType::F64, &self.device())?;
        let ranks = fuse((&nans, &q, last), |[nans, q, last]| (last - nans).maximum(0).cast(DType::F64) * q)?;
        let below = fuse([&ranks], |[rank]| rank.floor().cast(DType::I64))?;
        let above = fuse([&ranks], |[rank]| rank.ceil().cast(DType::I64))?;
        let weights = fuse([&ranks], |[rank]| rank - rank.floor())?.cast(dtype)?.squeeze(-1)?;
        let at = |positions: &Tensor| sorted.gather_unchecked(-1, positions)?.squeeze(-1);
        let (low, high) = (at(&below)?, at(&above)?);
        // Two equal infinities have no difference.
        let between = fuse([&low, &high, &weights], |[low, high, weight]| {
            low.eq(high).choose(low, low.lerp(high, weight))
        })?;
        match policy {
            NanPolicy::Ignore => Ok(between),
            NanPolicy::Propagate => {
                let largest = sorted.select(-1, -1)?;
                fuse([&largest, &between], |[largest, between]| largest.is_nan().choose(largest, between))
            }
        }
    }

    /// Returns the most frequent element along `axis`, the smallest of several, and its last position. NaN equals nothing,
    /// so each NaN occurs once.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([3, 1, 3, 1, 2], &Device::cpu())?;
    /// let (value, index) = x.mode(0)?;
    /// assert_eq!((value.item::<i32>()?, index.item::<i64>()?), (1, 3));
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn mode(&self, axis: isize) -> Result<(Tensor, Tensor)> {
        const OPERATION: &str = "mode";
        let rows = AxisRows::new(OPERATION, self, axis)?;
        rows.check_not_empty(OPERATION)?;
        let sorted = rows.sort(OPERATION, false)?;
        let positions = indices(rows.length(), self)?;
        // The position at which the run of equal elements begins that a position belongs to.
        let starts = fuse([&differs_from_previous(&sorted.values)?, &positions], |[is_first, position]| {
            is_first.choose(position, 0)
        })?;
        let lengths = positions.sub(&starts.cummax(-1)?)?;
        // The first greatest length is at the end of the longest run.
        sorted.at(&lengths.argmax_keepdim(-1)?)
    }
}

/// Returns the number of NaNs of each row, with size 1 along the last axis.
fn count_nans(values: &Tensor) -> Result<Tensor> {
    if values.dtype().is_float() {
        return values.is_nan()?.count_nonzero_keepdim(-1);
    }
    let mut shape = values.shape().to_vec();
    shape.iter_mut().next_back().into_iter().for_each(|last| *last = 1);
    Tensor::zeros(&shape, DType::I64, &values.device())
}

/// Returns whether each element differs from the one before it along the last axis, whose first one does.
pub(in crate::tensor) fn differs_from_previous(rows: &Tensor) -> Result<Tensor> {
    let length = rows.shape().last().copied().unwrap_or(0);
    let differs =
        rows.narrow(-1, 1, length.saturating_sub(1))?.ne(&rows.narrow(-1, 0, length.saturating_sub(1))?)?;
    let first = Tensor::ones(rows.narrow(-1, 0, length.min(1))?.shape(), DType::Bool, &rows.device())?;
    Tensor::cat(&[&first, &differs], -1)
}
