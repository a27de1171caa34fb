//! The gradient of a product.

use crate::error::Result;
use crate::fuse::product_of_others;
use crate::tensor::Tensor;
use crate::tensor::groups::{GroupAxes, fuse_groups};

impl Tensor {
    /// Returns the gradient of the elements of [`prod_keepdim`](Self::prod_keepdim): the product of the others, as conjugate for
    /// complex numbers, times the gradient of the product. It is rounded once.
    ///
    /// # Errors
    ///
    /// The errors of a row program.
    pub(crate) fn prod_gradient(&self, gradient: &Tensor, axes: &[isize]) -> Result<Tensor> {
        if self.count() == 0 {
            return self.zeros_like();
        }
        let axes = GroupAxes::Of(axes.to_vec());
        let [result] = fuse_groups("prod", [self.into(), gradient.into()], &axes, |[x, gradient]| {
            let others = product_of_others(x);
            let others = if x.dtype().is_complex() { others.conj() } else { others };
            [(gradient.cast(others.dtype()) * others).cast(x.dtype())]
        })?;
        Ok(result)
    }
}
