//! [`clip_grad_norm`].

use crate::error::{Error, Result};
use crate::nn::Variable;
use crate::tensor::{Device, Tensor};
use crate::types::DType;

/// Multiplies all gradients by max_norm / (norm + 1e-6) if the norm of all of them together exceeds `max_norm`. Returns
/// the norm as a tensor without dimensions. Nothing waits for the device.
///
/// ```
/// use selvedge::nn::{Variable, clip_grad_norm};
/// use selvedge::{Device, Tensor};
/// let x = Variable::with_grad(Tensor::new([3.0f64, 4.0], &Device::cpu())?)?;
/// (x.square()?.sum_all()? * 0.5)?.backward()?;
/// assert_eq!(clip_grad_norm(&[x.clone()], 1.0)?.item::<f64>()?, 5.0);
/// let gradient = x.grad().map(|gradient| gradient.to_vec::<f64>()).transpose()?.unwrap_or_default();
/// assert!((gradient[0] - 0.6).abs() < 1e-6);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a `max_norm` that is negative or NaN, [`Error::DeviceMismatch`] for gradients on several
/// devices. All gradients stay as they were.
pub fn clip_grad_norm(parameters: &[Variable], max_norm: f64) -> Result<Tensor> {
    if max_norm.is_nan() || max_norm < 0.0 {
        let found = format!("a max_norm of {max_norm}");
        return Err(Error::invalid("clip_grad_norm", found, "a number that is at least 0"));
    }
    // A parameter given twice counts once.
    let mut pairs: Vec<(&Variable, Tensor)> = Vec::with_capacity(parameters.len());
    for parameter in parameters {
        if pairs.iter().any(|(known, _)| known.is_same(parameter)) {
            continue;
        }
        if let Some(gradient) = parameter.grad() {
            pairs.push((parameter, gradient));
        }
    }
    if pairs.is_empty() {
        return Tensor::zeros(&[], DType::F32, &Device::cpu());
    }
    let gradients: Vec<&Tensor> = pairs.iter().map(|(_, gradient)| gradient).collect();
    let (scaled, total) = Tensor::clip_by_global_norm(&gradients, max_norm)?;
    // All that can fail has been computed. The gradient of a leaf itself is the gradient that its backward is given.
    for ((parameter, _), gradient) in pairs.iter().zip(&scaled) {
        parameter.zero_grad();
        parameter.backward_with(gradient)?;
    }
    Ok(total)
}
