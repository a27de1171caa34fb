//! Scans of variables.

use super::recordable::recorded_linear;
use super::variable::Variable;
use crate::error::Result;
use crate::tensor::{Tensor, fuse};
use crate::types::DType;

/// # Errors
///
/// As the same operation of [`Tensor`].
#[allow(clippy::missing_errors_doc)]
impl Variable {
    /// Returns the sum of each element and all before it along an axis.
    pub fn cumsum(&self, axis: isize) -> Result<Variable> {
        let result = self.tensor().cumsum(axis)?;
        Ok(recorded_linear!(self, "cumsum", result, axis, |axis, gradient| {
            gradient.flip(&[*axis])?.cumsum(*axis)?.flip(&[*axis])
        }))
    }

    /// Returns the product of each element and all before it along an axis. The gradient is right for zeros too, and where a
    /// product overflows or underflows.
    pub fn cumprod(&self, axis: isize) -> Result<Variable> {
        let result = self.tensor().cumprod(axis)?;
        let x = self.save();
        Ok(Variable::new(result).recorded(CUMPROD, vec![self.tracked()], |_| {
            Box::new(move |gradient| Ok(vec![Some(cumprod_gradient(&x.tensor(CUMPROD)?, axis, gradient)?)]))
        }))
    }
}

const CUMPROD: &str = "cumprod";

/// Returns the gradient of the elements of a cumulative product.
///
/// That of element i is the product of all before it, times sum(i) of the gradients g(j) from i on, each times the product of the
/// elements from i + 1 to j. Step d of doubling distances knows the terms of the next d gradients: the sums at i and at i + d
/// make that of 2d, without a quotient.
fn cumprod_gradient(x: &Tensor, axis: isize, gradient: &Tensor) -> Result<Tensor> {
    let dtype = x.dtype();
    let size = if x.rank() == 0 { 1 } else { x.shape()[x.shape().axis(CUMPROD, axis)?] };
    if size <= 1 {
        return Ok(gradient.clone());
    }
    let wide = if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype };
    let x = if dtype.is_complex() { x.conj()? } else { x.cast(wide)? };
    let mut sums = gradient.cast(wide)?;
    let mut products = x.narrow(axis, 1, size - 1)?;
    let mut distance = 1;
    loop {
        let known = size - distance;
        let [near, far] = [sums.narrow(axis, 0, known)?, sums.narrow(axis, distance, known)?];
        let summed = fuse([&near, &products, &far], |[near, product, far]| {
            // Neither adds anything, though the other may have overflowed.
            let is_nothing = far.eq(0.0) | (product.eq(0.0) & !far.is_nan());
            is_nothing.choose(near, near + product * far)
        })?;
        sums = Tensor::cat(&[&summed, &sums.narrow(axis, known, distance)?], axis)?;
        if 2 * distance >= size {
            break;
        }
        let rest = size - 2 * distance;
        products = (&products.narrow(axis, 0, rest)? * &products.narrow(axis, distance, rest)?)?;
        distance *= 2;
    }
    let before = x.narrow(axis, 0, size - 1)?.cumprod(axis)?;
    let rest = fuse([&before, &sums.narrow(axis, 1, size - 1)?], |[before, sum]| {
        // One has underflowed, or no gradient reaches it, beside an overflow of the other.
        let is_nothing = (before.eq(0.0) & sum.is_infinite()) | (sum.eq(0.0) & before.is_infinite());
        is_nothing.choose(0.0, before * sum)
    })?;
    Tensor::cat(&[&sums.narrow(axis, 0, 1)?, &rest], axis)?.cast(dtype)
}
