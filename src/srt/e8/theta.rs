//! The theta sum Σ w exp(-π Q(v) / t) over a set of vectors, usually the roots of a cone.

use std::f64::consts::PI;
use std::sync::LazyLock;

use super::super::operands::{check_devices, check_dtype};
use super::super::rows::columns;
use super::projection::{E8Layout, quadratic};
use crate::error::{Error, Result};
use crate::tensor::{Fused, Tensor, TensorOperand};

const OPERATION: &str = "theta_sum";

/// Returns the sum over the rows v of w exp(-π Q(v) / t), as a tensor without dimensions; 0 without rows. `weights` are a
/// number, or a tensor of one number a row. Q takes both signs, so terms of a small `t` can be huge.
///
/// ```
/// use selvedge::srt::{E8Layout, E8Roots, GoldenCone, e8_roots, theta_sum};
/// use selvedge::tensor::Device;
/// let roots = e8_roots(E8Roots::Cone(GoldenCone::Null), &Device::cpu())?;
/// let sum = theta_sum(&roots, 1.0, 2.0, E8Layout::Offset4)?.item::<f64>()?;
/// assert!((sum / 93.11969749001811 - 1.0).abs() < 1e-12);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] unless `t` is positive, the last dimension of `v` is 8 and weights have its leading shape;
/// [`Error::DTypeMismatch`] for a `v` other than f32 and f64, and for weights of another dtype; [`Error::DeviceMismatch`] for
/// weights on another device.
pub fn theta_sum<'a>(
    v: &Tensor,
    weights: impl Into<TensorOperand<'a>>,
    t: f64,
    layout: E8Layout,
) -> Result<Tensor> {
    static TERMS: LazyLock<[Fused<10>; 2]> = LazyLock::new(|| {
        [E8Layout::Offset4, E8Layout::Adjacent].map(|layout| {
            Fused::new(move |[a, b, c, d, e, f, g, h, weight, t]| {
                (quadratic([a, b, c, d, e, f, g, h], layout) * -PI / t).exp() * weight
            })
        })
    });
    let columns = columns(OPERATION, v)?;
    if t.is_nan() || t <= 0.0 {
        return Err(Error::invalid(OPERATION, format!("t = {t}"), "a positive number"));
    }
    let [a, b, c, d, e, f, g, h] = columns.each_ref().map(TensorOperand::from);
    let weights = weights.into();
    if let TensorOperand::Tensor(weights) = weights {
        check_dtype(OPERATION, v.dtype(), weights)?;
        check_devices(OPERATION, v, weights)?;
        if weights.shape() != columns[0].shape() {
            let found = format!("weights of shape {} for v of shape {}", weights.shape(), v.shape());
            return Err(Error::invalid(
                OPERATION,
                found,
                format!("the shape {} of the rows", columns[0].shape()),
            ));
        }
    }
    TERMS[layout as usize].run([a, b, c, d, e, f, g, h, weights, t.into()])?.sum_all()
}
