//! Sorted variables: the gradient of an element returns to the element's position.

use super::indexing::AddToZeros;
use super::recordable::recorded_linear;
use super::variable::Variable;
use crate::error::Result;
use crate::tensor::Tensor;

/// # Errors
///
/// As the same operation of [`Tensor`].
#[allow(clippy::missing_errors_doc)]
impl Variable {
    /// Records elements that were read at positions along an axis.
    fn sorted_by(
        &self,
        operation: &'static str,
        axis: isize,
        (values, positions): (Tensor, Tensor),
    ) -> (Variable, Tensor) {
        let saved = (self.shape(), axis, positions.clone());
        let values =
            recorded_linear!(self, operation, values, saved, |(shape, axis, positions), gradient| {
                gradient.scatter_to_zeros(shape, *axis, positions)
            });
        (values, positions)
    }

    /// Returns the elements in ascending or descending order along an axis, and their positions, i64.
    pub fn sort(&self, axis: isize, descending: bool) -> Result<(Variable, Tensor)> {
        Ok(self.sorted_by("sort", axis, self.tensor().sort(axis, descending)?))
    }

    /// Returns the `k` largest elements along an axis in descending order, or the `k` smallest in ascending order, and their
    /// positions, i64.
    pub fn topk(&self, k: usize, axis: isize, largest: bool) -> Result<(Variable, Tensor)> {
        Ok(self.sorted_by("topk", axis, self.tensor().topk(k, axis, largest)?))
    }
}
