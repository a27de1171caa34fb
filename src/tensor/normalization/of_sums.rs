//! Normalisation of a sum, which is a result too: the residual before a norm, in one pass.

use super::{normalized, rms_normalized};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::groups::{GroupAxes, fuse_groups};
use crate::tensor::operand::TensorOperand;
use crate::tensor::tensor::Tensor;

/// The sum in the dtype of its operands, and its normalisation.
fn outputs<'g>(
    [x, other, eps, weight, bias]: [Expr<'g>; 5],
    function: fn(Expr<'g>, Expr<'g>) -> Expr<'g>,
) -> [Expr<'g>; 2] {
    let sum = (x + other).cast(x.dtype());
    [sum, (function(sum, eps) * weight + bias).cast(x.dtype())]
}

impl Tensor {
    /// Returns the operands of a normalised sum, and the axes of the norm. An absent weight is 1, and an absent bias -0, which
    /// changes no element.
    fn of_sum<'a>(
        &'a self,
        operation: &'static str,
        other: &'a Tensor,
        normalized_shape: &[usize],
        [weight, bias]: [Option<&'a Tensor>; 2],
        eps: f64,
    ) -> Result<([TensorOperand<'a>; 5], GroupAxes)> {
        if (self.shape(), self.dtype()) != (other.shape(), other.dtype()) {
            let found = format!(
                "{} of shape {} and {} of shape {}",
                self.dtype(),
                self.shape(),
                other.dtype(),
                other.shape()
            );
            return Err(Error::invalid(operation, found, "operands of one dtype and shape"));
        }
        let axes = self.normalized_axes(operation, normalized_shape, [("weight", weight), ("bias", bias)])?;
        let weight = weight.map_or(TensorOperand::from(1.0), TensorOperand::Tensor);
        let bias = bias.map_or(TensorOperand::from(-0.0), TensorOperand::Tensor);
        Ok(([self.into(), other.into(), eps.into(), weight, bias], axes))
    }

    /// Returns this tensor plus another one of its shape and dtype, and [`layer_norm`](Self::layer_norm) of the sum, both computed in
    /// one pass with the bits of two.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[1.0f32, 3.0]], &Device::cpu())?;
    /// let [sum, normalized] = x.add_layer_norm(&x, &[2], None, None, 0.0)?;
    /// assert_eq!(sum.to_vec::<f32>()?, [2.0, 6.0]);
    /// assert_eq!(normalized.to_vec::<f32>()?, [-1.0, 1.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for operands of two shapes or dtypes; otherwise as [`layer_norm`](Self::layer_norm).
    pub fn add_layer_norm(
        &self,
        other: &Tensor,
        normalized_shape: &[usize],
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<[Tensor; 2]> {
        const OPERATION: &str = "add_layer_norm";
        let (operands, axes) = self.of_sum(OPERATION, other, normalized_shape, [weight, bias], eps)?;
        fuse_groups(OPERATION, operands, &axes, |operands| outputs(operands, normalized))
    }

    /// Returns this tensor plus another one of its shape and dtype, and [`rms_norm`](Self::rms_norm) of the sum; see
    /// [`add_layer_norm`](Self::add_layer_norm).
    ///
    /// # Errors
    ///
    /// As [`add_layer_norm`](Self::add_layer_norm).
    pub fn add_rms_norm(
        &self,
        other: &Tensor,
        normalized_shape: &[usize],
        weight: Option<&Tensor>,
        eps: Option<f64>,
    ) -> Result<[Tensor; 2]> {
        const OPERATION: &str = "add_rms_norm";
        let eps = eps.unwrap_or_else(|| super::machine_epsilon(self.dtype()));
        let (operands, axes) = self.of_sum(OPERATION, other, normalized_shape, [weight, None], eps)?;
        fuse_groups(OPERATION, operands, &axes, |operands| outputs(operands, rms_normalized))
    }
}
