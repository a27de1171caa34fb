//! [`Variable::index`], the indexing expression of NumPy and PyTorch.
//!
//! Tests: `tests/nn/index_expressions.rs`.

use super::shape::sizes;
use super::variable::Variable;
use crate::error::Result;
use crate::tensor::{Index, IndexExpression, Tensor};
use crate::types::DType;

impl Variable {
    /// Returns the elements that an index expression names, as [`Tensor::index`]. An element that it names twice gets the sum of
    /// both gradients, and one that it does not name gets 0.
    ///
    /// ```
    /// use selvedge::nn::Variable;
    /// use selvedge::{Device, Tensor};
    /// let x = Variable::with_grad(Tensor::new([[1.0f64, 2.0], [3.0, 4.0]], &Device::cpu())?)?;
    /// let rows = Tensor::new([1, 1], &Device::cpu())?;
    /// (x.index((0, 1))?.sum_all()? + &x.index(&rows)?.sum_all()?)?.backward()?;
    /// assert_eq!(x.grad().map(|gradient| gradient.to_vec::<f64>()).transpose()?, Some(vec![0.0, 1.0, 2.0, 2.0]));
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Tensor::index`].
    pub fn index<'a>(&self, index: impl IndexExpression<'a>) -> Result<Variable> {
        let (entries, tensor) = (index.entries(), self.tensor());
        let arrays = entries.iter().filter(|entry| matches!(entry, Index::Tensor(_))).count();
        let has_mask =
            entries.iter().any(|entry| matches!(entry, Index::Tensor(array) if array.dtype() == DType::Bool));
        // An integer beside an array counts as an array.
        let has_position = entries.iter().any(|entry| matches!(entry, Index::At(_)));
        if has_mask || arrays > 1 || (arrays == 1 && has_position) {
            let shape = tensor.shape();
            let count = tensor.count() as i64;
            let positions =
                Tensor::arange(0, count, 1, DType::I64, &tensor.device())?.reshape(&sizes(shape))?;
            return self.take(&positions.index(&entries[..])?);
        }
        let is_of_dimension = |entry: &&Index<'_>| !matches!(entry, Index::NewAxis | Index::Ellipsis);
        let taken = entries.iter().filter(is_of_dimension).count();
        let ellipses = entries.iter().filter(|entry| matches!(entry, Index::Ellipsis)).count();
        if arrays == 0 || taken > tensor.rank() || ellipses > 1 {
            // The errors are those of a tensor.
            tensor.index(&entries[..])?;
        }
        let rest = tensor.rank().saturating_sub(taken);
        let (mut result, mut axis) = (self.clone(), 0isize);
        for entry in &entries {
            match entry {
                Index::At(position) => {
                    result = result.select(axis, *position)?;
                    continue;
                }
                Index::Slice(slice) => result = result.slice(axis, *slice)?,
                Index::NewAxis => result = result.unsqueeze(axis)?,
                Index::Ellipsis => {
                    axis += rest as isize;
                    continue;
                }
                Index::Tensor(array) => {
                    let shape = result.shape();
                    let (before, after) = (&shape[..axis as usize], &shape[axis as usize + 1..]);
                    let shape = [before, &array.shape()[..], after].concat();
                    let shape: Vec<isize> = shape.into_iter().map(|size| size as isize).collect();
                    result = result.index_select(axis, &array.reshape(&[-1])?)?.reshape(&shape)?;
                    axis += array.rank() as isize;
                    continue;
                }
            }
            axis += 1;
        }
        Ok(result)
    }
}
