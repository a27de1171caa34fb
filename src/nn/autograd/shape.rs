//! Views of variables, and joins.

use super::variable::Variable;
use crate::error::Result;
use crate::tensor::{Tensor, TensorMut};
use crate::types::{Shape, Slice};

/// Returns the elements of a tensor in a shape with as many.
pub(in crate::nn) fn in_shape(tensor: &Tensor, shape: &Shape) -> Result<Tensor> {
    tensor.reshape(&shape.iter().map(|&size| size as isize).collect::<Vec<_>>())
}

impl Variable {
    /// Records a view that has all elements in the same order.
    fn reshaped(&self, operation: &'static str, result: Tensor) -> Variable {
        let shape = self.shape();
        self.unary(operation, result, move |gradient| in_shape(gradient, &shape))
    }

    /// Records a view of some of the elements: the others have gradient 0.
    fn part(
        &self,
        operation: &'static str,
        result: Tensor,
        view: impl for<'a> Fn(TensorMut<'a>) -> Result<TensorMut<'a>> + Send + Sync + 'static,
    ) -> Variable {
        let (shape, dtype, device) = (self.shape(), self.dtype(), self.device());
        self.unary(operation, result, move |gradient| {
            let mut whole = Tensor::zeros(&shape, dtype, &device)?;
            view(whole.in_place())?.assign(gradient)?;
            Ok(whole)
        })
    }
}

/// Views, with the arguments of [`Tensor`]'s.
///
/// # Errors
///
/// As the same view of [`Tensor`].
#[allow(clippy::missing_errors_doc)]
impl Variable {
    /// Returns the elements in row-major order in another shape, in which one size may be -1.
    pub fn reshape(&self, sizes: &[isize]) -> Result<Variable> {
        Ok(self.reshaped("reshape", self.tensor().reshape(sizes)?))
    }

    /// Joins the dimensions from `first` to `last`, both included.
    pub fn flatten(&self, first: isize, last: isize) -> Result<Variable> {
        Ok(self.reshaped("flatten", self.tensor().flatten(first, last)?))
    }

    /// Removes a dimension of size 1.
    pub fn squeeze(&self, axis: isize) -> Result<Variable> {
        Ok(self.reshaped("squeeze", self.tensor().squeeze(axis)?))
    }

    /// Removes all dimensions of size 1.
    pub fn squeeze_all(&self) -> Result<Variable> {
        Ok(self.reshaped("squeeze_all", self.tensor().squeeze_all()?))
    }

    /// Inserts a dimension of size 1 before `axis`; `-1` appends it.
    pub fn unsqueeze(&self, axis: isize) -> Result<Variable> {
        Ok(self.reshaped("unsqueeze", self.tensor().unsqueeze(axis)?))
    }

    /// Permutes the dimensions: dimension `i` of the view is `axes[i]` of this one.
    pub fn permute(&self, axes: &[isize]) -> Result<Variable> {
        let (result, shape) = (self.tensor().permute(axes)?, self.shape());
        let mut inverse = vec![0; axes.len()];
        for (place, &axis) in axes.iter().enumerate() {
            inverse[shape.axis("permute", axis)?] = place as isize;
        }
        Ok(self.unary("permute", result, move |gradient| gradient.permute(&inverse)))
    }

    /// Swaps two dimensions.
    pub fn transpose(&self, first: isize, second: isize) -> Result<Variable> {
        let result = self.tensor().transpose(first, second)?;
        Ok(self.unary("transpose", result, move |gradient| gradient.transpose(first, second)))
    }

    /// Transposes a matrix.
    pub fn t(&self) -> Result<Variable> {
        Ok(self.unary("t", self.tensor().t()?, Tensor::t))
    }

    /// Reverses the order of the elements along the given axes.
    pub fn flip(&self, axes: &[isize]) -> Result<Variable> {
        let (result, axes) = (self.tensor().flip(axes)?, axes.to_vec());
        Ok(self.unary("flip", result, move |gradient| gradient.flip(&axes)))
    }

    /// Repeats dimensions of size 1, and new ones in front, to a larger shape. The gradient is summed over them.
    pub fn expand(&self, shape: &[usize]) -> Result<Variable> {
        Ok(self.unary("expand", self.tensor().expand(shape)?, |gradient| Ok(gradient.clone())))
    }

    /// Returns `length` elements along a dimension from `start`.
    pub fn narrow(&self, axis: isize, start: usize, length: usize) -> Result<Variable> {
        let result = self.tensor().narrow(axis, start, length)?;
        Ok(self.part("narrow", result, move |whole| whole.narrow(axis, start, length)))
    }

    /// Selects one index along a dimension and removes the dimension.
    pub fn select(&self, axis: isize, index: isize) -> Result<Variable> {
        let result = self.tensor().select(axis, index)?;
        Ok(self.part("select", result, move |whole| whole.select(axis, index)))
    }

    /// Slices a dimension, as in Python's `start:stop:step`.
    pub fn slice(&self, axis: isize, slice: impl Into<Slice>) -> Result<Variable> {
        let slice = slice.into();
        let result = self.tensor().slice(axis, slice)?;
        Ok(self.part("slice", result, move |whole| whole.slice(axis, slice)))
    }

    /// Joins variables along a dimension, in their common dtype.
    pub fn cat(variables: &[&Variable], axis: isize) -> Result<Variable> {
        let tensors: Vec<Tensor> = variables.iter().map(|variable| variable.tensor()).collect();
        let result = Tensor::cat(&tensors.iter().collect::<Vec<_>>(), axis)?;
        let place = result.shape().axis("cat", axis)?;
        let sizes: Vec<usize> = tensors.iter().map(|tensor| tensor.shape()[place]).collect();
        let parents = variables.iter().map(|variable| variable.tracked()).collect();
        Ok(Variable::new(result).recorded("cat", parents, |_| {
            Box::new(move |gradient| {
                let mut start = 0;
                let part = |&size: &usize| {
                    start += size;
                    gradient.narrow(axis, start - size, size).map(Some)
                };
                sizes.iter().map(part).collect()
            })
        }))
    }

    /// Joins variables of one shape along a new dimension.
    pub fn stack(variables: &[&Variable], axis: isize) -> Result<Variable> {
        let rows = variables.iter().map(|variable| variable.unsqueeze(axis)).collect::<Result<Vec<_>>>()?;
        let tensors: Vec<Tensor> = variables.iter().map(|variable| variable.tensor()).collect();
        // The errors are those of `Tensor::stack`, which names the shapes without the new dimension.
        Tensor::stack(&tensors.iter().collect::<Vec<_>>(), axis)?;
        Variable::cat(&rows.iter().collect::<Vec<_>>(), axis)
    }
}
