//! Scans of variables.

use super::recordable::linear;
use super::variable::Variable;
use crate::error::Result;
use crate::tensor::Tensor;
use crate::types::DType;

/// Returns the sum of each element and all behind it along an axis.
fn sum_of_rest(x: &Tensor, axis: isize) -> Result<Tensor> {
    x.flip(&[axis])?.cumsum(axis)?.flip(&[axis])
}

/// # Errors
///
/// As the same operation of [`Tensor`].
#[allow(clippy::missing_errors_doc)]
impl Variable {
    /// Returns the sum of each element and all before it along an axis.
    pub fn cumsum(&self, axis: isize) -> Result<Variable> {
        let result = self.tensor().cumsum(axis)?;
        Ok(linear!(self, "cumsum", result, axis, |axis, gradient| {
            gradient.flip(&[*axis])?.cumsum(*axis)?.flip(&[*axis])
        }))
    }

    /// Returns the product of each element and all before it along an axis. The gradient is right for zeros too.
    pub fn cumprod(&self, axis: isize) -> Result<Variable> {
        const OPERATION: &str = "cumprod";
        let result = self.tensor().cumprod(axis)?;
        let x = self.save();
        Ok(Variable::new(result).recorded(OPERATION, vec![self.tracked()], |result| {
            let result = result.save();
            Box::new(move |gradient| {
                let (x, result) = (x.tensor(OPERATION)?, result.tensor(OPERATION)?);
                let [x, result] = match x.dtype().is_complex() {
                    true => [x.conj()?, result.conj()?],
                    false => [x, result],
                };
                // Before the first zero of a row, each product that has the element is divided by it. At the zero, the products
                // are those of the other elements. Behind it all products are 0.
                let is_zero = x.eq(0)?;
                let zeros = is_zero.cast(DType::I64)?.cumsum(axis)?;
                let before = (&sum_of_rest(&(gradient * &result)?, axis)? / &x)?;
                let is_first = is_zero.logical_and(&zeros.eq(1)?)?;
                let others = is_first.choose(1, &x)?.cumprod(axis)?;
                let at_first = sum_of_rest(&(gradient * &others)?, axis)?;
                let rest = zeros.eq(0)?.choose(&before, 0)?;
                Ok(vec![Some(is_first.choose(&at_first, &rest)?)])
            })
        }))
    }
}
