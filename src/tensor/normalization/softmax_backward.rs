//! Gradients of softmax and of its logarithm, from their results. The gradient of a residual that skips the function is
//! added in the same pass.

use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::groups::{GroupAxes, fuse_groups};
use crate::tensor::operand::TensorOperand;
use crate::tensor::tensor::Tensor;

/// y (g - Σ y g).
fn of_softmax<'g>(y: Expr<'g>, gradient: Expr<'g>) -> Expr<'g> {
    y * (gradient - (y * gradient).sum_group())
}

/// g - e^y Σ g.
fn of_log_softmax<'g>(y: Expr<'g>, gradient: Expr<'g>) -> Expr<'g> {
    gradient - y.exp() * gradient.sum_group()
}

/// Runs one of the formulas on a result, its gradient, and the gradient of a residual if there is one.
macro_rules! backward {
    ($operation:expr, $axes:expr, $y:expr, $gradient:expr, $residual:expr, $formula:path) => {{
        let (y, gradient) = (TensorOperand::Tensor($y), TensorOperand::Tensor($gradient));
        let [result] = match $residual {
            None => fuse_groups($operation, [y, gradient], $axes, |[y, gradient]| {
                [$formula(y, gradient).cast(y.dtype())]
            }),
            Some(residual) => {
                let operands = [y, gradient, TensorOperand::Tensor(residual)];
                fuse_groups($operation, operands, $axes, |[y, gradient, residual]| {
                    [($formula(y, gradient) + residual).cast(y.dtype())]
                })
            }
        }?;
        Ok(result)
    }};
}

impl Tensor {
    /// Checks the gradient of a result.
    pub(super) fn check_gradient(&self, operation: &'static str, gradient: &Tensor) -> Result<()> {
        self.check_float(operation)?;
        gradient.check_float(operation)?;
        if gradient.shape() == self.shape() {
            return Ok(());
        }
        let found = format!("a gradient of shape {} for shape {}", gradient.shape(), self.shape());
        Err(Error::invalid(operation, found, "equal shapes"))
    }

    /// Returns the gradient of the input of [`softmax`](Self::softmax) along an axis, y (g - Σ y g), for its result y, which
    /// is this tensor, and the gradient g of the result. The gradient of a `residual` is added in the same pass.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for gradients of another shape; otherwise as [`softmax`](Self::softmax).
    pub fn softmax_backward(
        &self,
        gradient: &Tensor,
        axis: isize,
        residual: Option<&Tensor>,
    ) -> Result<Tensor> {
        const OPERATION: &str = "softmax_backward";
        self.check_gradients(OPERATION, gradient, residual)?;
        self.check_axis(OPERATION, axis)?;
        backward!(OPERATION, &GroupAxes::Of(vec![axis]), self, gradient, residual, of_softmax)
    }

    /// Returns the gradient of the input of [`log_softmax`](Self::log_softmax) along an axis, g - e^y Σ g, for its result y,
    /// which is this tensor, and the gradient g of the result. The gradient of a `residual` is added in the same pass.
    ///
    /// # Errors
    ///
    /// As [`softmax_backward`](Self::softmax_backward).
    pub fn log_softmax_backward(
        &self,
        gradient: &Tensor,
        axis: isize,
        residual: Option<&Tensor>,
    ) -> Result<Tensor> {
        const OPERATION: &str = "log_softmax_backward";
        self.check_gradients(OPERATION, gradient, residual)?;
        self.check_axis(OPERATION, axis)?;
        backward!(OPERATION, &GroupAxes::Of(vec![axis]), self, gradient, residual, of_log_softmax)
    }
}
