//! Gradients of softmax and of its logarithm, from their results.

use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::groups::{GroupAxes, fuse_groups};
use crate::tensor::tensor::Tensor;

/// y (g - Σ y g).
fn of_softmax<'g>([y, gradient]: [Expr<'g>; 2]) -> [Expr<'g>; 1] {
    [(y * (gradient - (y * gradient).sum_group())).cast(y.dtype())]
}

/// g - e^y Σ g.
fn of_log_softmax<'g>([y, gradient]: [Expr<'g>; 2]) -> [Expr<'g>; 1] {
    [(gradient - y.exp() * gradient.sum_group()).cast(y.dtype())]
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
    /// is this tensor, and the gradient g of the result.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for a gradient of another shape; otherwise as [`softmax`](Self::softmax).
    pub fn softmax_backward(&self, gradient: &Tensor, axis: isize) -> Result<Tensor> {
        const OPERATION: &str = "softmax_backward";
        self.check_gradient(OPERATION, gradient)?;
        self.check_axis(OPERATION, axis)?;
        let operands = [self.into(), gradient.into()];
        let [result] = fuse_groups(OPERATION, operands, &GroupAxes::Of(vec![axis]), of_softmax)?;
        Ok(result)
    }

    /// Returns the gradient of the input of [`log_softmax`](Self::log_softmax) along an axis, g - e^y Σ g, for its result y,
    /// which is this tensor, and the gradient g of the result.
    ///
    /// # Errors
    ///
    /// As [`softmax_backward`](Self::softmax_backward).
    pub fn log_softmax_backward(&self, gradient: &Tensor, axis: isize) -> Result<Tensor> {
        const OPERATION: &str = "log_softmax_backward";
        self.check_gradient(OPERATION, gradient)?;
        self.check_axis(OPERATION, axis)?;
        let operands = [self.into(), gradient.into()];
        let [result] = fuse_groups(OPERATION, operands, &GroupAxes::Of(vec![axis]), of_log_softmax)?;
        Ok(result)
    }
}
