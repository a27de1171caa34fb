//! Variables with elements chosen by position or by a mask: `tril`, `triu`, `masked_fill` and `masked_select`.

use super::indexing::AddToZeros;
use super::recordable::recorded_linear;
use super::shape::sizes;
use super::variable::Variable;
use crate::error::Result;
use crate::fuse::Number;
use crate::tensor::Tensor;

/// # Errors
///
/// As the same operation of [`Tensor`].
#[allow(clippy::missing_errors_doc)]
impl Variable {
    /// Returns the matrices of the last two dimensions with zeros above a diagonal: 0 is the main one.
    pub fn tril(&self, diagonal: isize) -> Result<Variable> {
        let result = self.tensor().tril(diagonal)?;
        Ok(recorded_linear!(self, "tril", result, diagonal, |diagonal, gradient| gradient.tril(*diagonal)))
    }

    /// Returns the matrices of the last two dimensions with zeros below a diagonal: 0 is the main one.
    pub fn triu(&self, diagonal: isize) -> Result<Variable> {
        let result = self.tensor().triu(diagonal)?;
        Ok(recorded_linear!(self, "triu", result, diagonal, |diagonal, gradient| gradient.triu(*diagonal)))
    }

    /// Returns the elements, with a number where the mask, which broadcasts, is true. The gradient is 0 there.
    pub fn masked_fill(&self, mask: &Tensor, value: impl Into<Number>) -> Result<Variable> {
        let result = self.tensor().masked_fill(mask, value.into())?;
        Ok(recorded_linear!(self, "masked_fill", result, mask.clone(), |mask, gradient| gradient
            .masked_fill(mask, 0)))
    }

    /// Returns the elements for which the mask is true, in row-major order, as one dimension. Both broadcast. Waits for the
    /// device.
    pub fn masked_select(&self, mask: &Tensor) -> Result<Variable> {
        const OPERATION: &str = "masked_select";
        let result = self.tensor().masked_select(mask)?;
        if self.tracked().is_none() {
            return Ok(Variable::new(result));
        }
        let whole = self.shape().broadcast_in(OPERATION, mask.shape())?;
        let positions = mask.expand(&whole)?.reshape(&[-1])?.nonzero()?.reshape(&[-1])?;
        let saved = (positions, whole);
        Ok(recorded_linear!(self, OPERATION, result, saved, |(positions, whole), gradient| {
            let count = whole.iter().product();
            gradient.add_to_zeros(&[count], 0, positions)?.reshape(&sizes(whole))
        }))
    }
}
