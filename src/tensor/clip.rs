//! [`Tensor::clip_by_global_norm`].

use super::normalization::computed;
use crate::error::{Error, Result};
use crate::tensor::tensor::Tensor;

const OPERATION: &str = "clip_by_global_norm";

impl Tensor {
    /// Returns the tensors multiplied by min(1, `max_norm` / (norm + 1e-6)), and their norm: the square root of the sum of
    /// the squares of all elements. Norm and factor stay on the device as tensors without dimensions, so nothing waits.
    ///
    /// As with PyTorch's `clip_grad_norm_`, a norm of NaN makes every element NaN, and an infinite norm makes finite elements
    /// 0 and infinite ones NaN. Squares that leave the range of the dtype make no norm infinite. With an infinite `max_norm`
    /// the tensors stay as they are, unless the norm is NaN.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([3.0f64, 0.0], &Device::cpu())?;
    /// let y = Tensor::new([4.0f64], &Device::cpu())?;
    /// let (clipped, norm) = Tensor::clip_by_global_norm(&[&x, &y], 1.0)?;
    /// assert_eq!(norm.item::<f64>()?, 5.0);
    /// assert!((clipped[1].item::<f64>()? - 0.8).abs() < 1e-6);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for a `max_norm` that is negative or NaN and for no tensors,
    /// [`DeviceMismatch`](Error::DeviceMismatch) for tensors on several devices, and
    /// [`DTypeMismatch`](Error::DTypeMismatch) for elements that are not real floats.
    pub fn clip_by_global_norm(tensors: &[&Tensor], max_norm: f64) -> Result<(Vec<Tensor>, Tensor)> {
        let (factor, norm) = Tensor::clip_factor(tensors, max_norm)?;
        let clipped = tensors.iter().map(|tensor| *tensor * &factor).collect::<Result<Vec<Tensor>>>()?;
        Ok((clipped, norm))
    }

    /// Returns the factor and the norm of [`clip_by_global_norm`](Self::clip_by_global_norm).
    ///
    /// # Errors
    ///
    /// As there.
    pub(crate) fn clip_factor(tensors: &[&Tensor], max_norm: f64) -> Result<(Tensor, Tensor)> {
        if max_norm.is_nan() || max_norm < 0.0 {
            let found = format!("a max_norm of {max_norm}");
            return Err(Error::invalid(OPERATION, found, "a number that is at least 0"));
        }
        let norm = Tensor::global_norm(tensors)?;
        let factor = match max_norm.is_infinite() {
            // No norm exceeds it, an infinite one neither.
            true => norm.is_nan()?.choose(&norm, 1.0)?,
            false => (&(&norm + 1e-6)?.reciprocal()? * max_norm)?.minimum(1.0)?,
        };
        Ok((factor, norm))
    }

    /// Returns the norm of tensors together.
    ///
    /// # Errors
    ///
    /// As [`clip_by_global_norm`](Self::clip_by_global_norm).
    pub(crate) fn global_norm(tensors: &[&Tensor]) -> Result<Tensor> {
        let mut norms = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            tensor.check_float(OPERATION)?;
            norms.push(tensor.cast(computed(tensor.dtype()))?.norm_all(2.0)?);
        }
        if norms.is_empty() {
            return Err(Error::invalid(OPERATION, "no tensors", "at least one"));
        }
        Tensor::stack(&norms.iter().collect::<Vec<_>>(), 0)?.norm_all(2.0)
    }
}
