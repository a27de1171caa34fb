//! Random tensors shaped by another tensor, and draws by weights.

use super::Generator;
use crate::error::{Error, Result};
use crate::tensor::{Tensor, fuse};
use crate::types::DType;

impl Tensor {
    /// Returns random numbers from 0 to below 1 in this tensor's shape and dtype, from its device's generator; see
    /// [`Generator::rand`].
    ///
    /// # Errors
    ///
    /// As [`Generator::rand`].
    pub fn rand_like(&self) -> Result<Tensor> {
        Tensor::rand(self.shape(), self.dtype(), &self.device())
    }

    /// Returns normally distributed numbers in this tensor's shape and dtype, from its device's generator; see
    /// [`Generator::randn`].
    ///
    /// # Errors
    ///
    /// As [`Generator::randn`].
    pub fn randn_like(&self) -> Result<Tensor> {
        Tensor::randn(self.shape(), self.dtype(), &self.device())
    }

    /// Draws positions by this tensor's weights from its device's generator; see [`Generator::multinomial`].
    ///
    /// # Errors
    ///
    /// As [`Generator::multinomial`].
    pub fn multinomial(&self, count: usize, replacement: bool) -> Result<Tensor> {
        self.device().generator().multinomial(self, count, replacement)
    }
}

impl Generator {
    /// Draws `count` positions along the last axis of `weights`, a vector or a matrix of rows, as i64. A position's
    /// probability is its share of the row's sum. Without replacement no position is drawn twice.
    ///
    /// With replacement a position is found by binary search of a uniform number in the running sums. Without, every
    /// position gets an exponentially distributed number divided by its weight, and the least numbers are taken in order.
    /// Both compute in f64. The call waits for the device to check the weights.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Generator, Tensor};
    /// let weights = Tensor::new([0.0f32, 1.0, 3.0], &Device::cpu())?;
    /// let mut drawn = Generator::new(1).multinomial(&weights, 2, false)?.to_vec::<i64>()?;
    /// drawn.sort();
    /// assert_eq!(drawn, [1, 2]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for a tensor that is neither a vector nor a matrix, weights that are
    /// negative, infinite or NaN, a row of zeros, and, without replacement, more draws than a row has weights above 0;
    /// [`DTypeMismatch`](Error::DTypeMismatch) for weights that are not real floats; [`OutOfMemory`](Error::OutOfMemory).
    pub fn multinomial(&self, weights: &Tensor, count: usize, replacement: bool) -> Result<Tensor> {
        const OPERATION: &str = "multinomial";
        if !weights.dtype().is_float() {
            let (wanted, found) = ("weights of real floats".to_owned(), weights.dtype().to_string());
            return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
        }
        let (device, shape) = (weights.device(), weights.shape());
        if !matches!(weights.rank(), 1 | 2) {
            let found = format!("weights of shape {shape}");
            return Err(Error::invalid(OPERATION, found, "a vector or a matrix of rows"));
        }
        let mut drawn = shape.to_vec();
        drawn.iter_mut().next_back().into_iter().for_each(|last| *last = count);
        if drawn.contains(&0) {
            return Tensor::zeros(&drawn, DType::I64, &device);
        }
        let wide = weights.cast(DType::F64)?;
        let is_bad = fuse([&wide], |[weight]| weight.ge(0) & weight.lt(f64::INFINITY))?.logical_not()?;
        if is_bad.any_all()?.item()? {
            return Err(Error::invalid(
                OPERATION,
                "weights that are negative or not finite",
                "weights from 0 on",
            ));
        }
        let positive = wide.gt(0)?.count_nonzero(-1)?;
        let least: i64 = if positive.count() == 0 { 0 } else { positive.min_all()?.item()? };
        let needed = if replacement { 1 } else { count };
        if (least as u64) < needed as u64 {
            let found = format!("a row of {least} weights above 0");
            return Err(Error::invalid(OPERATION, found, format!("at least {needed} for {count} draws")));
        }
        if !replacement {
            let uniform = self.rand(shape, DType::F64, &device)?;
            let times = fuse([&uniform, &wide], |[u, weight]| {
                weight.gt(0).choose(-(-u).log1p() / weight, f64::INFINITY)
            })?;
            return Ok(times.topk(count, -1, false)?.1);
        }
        // A sum of parts can round below an earlier one. Equal neighbours are never found, so a weight of 0 is never drawn.
        let sums = wide.gt(0)?.choose(&wide.cumsum(-1)?, 0)?.cummax(-1)?;
        let total = sums.narrow(-1, shape[shape.rank() - 1] - 1, 1)?;
        if !total.is_finite()?.all_all()?.item::<bool>()? {
            return Err(Error::invalid(OPERATION, "weights whose sum overflows", "a finite sum"));
        }
        // Less than the total, because a uniform number is at most 1 - 2^-53.
        let points = self.rand(&drawn, DType::F64, &device)?.mul(&total)?;
        sums.searchsorted_unchecked(&points, true)
    }
}
