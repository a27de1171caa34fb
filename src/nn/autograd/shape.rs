//! Views of variables, and joins.

use super::recordable::{RuleOfClosures, recorded_linear};
use super::variable::Variable;
use crate::error::Result;
pub(in crate::nn) use crate::tensor::in_shape;
pub(super) use crate::tensor::sizes;
use crate::tensor::{Device, Tensor, TensorMut};
use crate::types::{DType, Shape, Slice};

impl Variable {
    /// Records a view that has all elements in the same order.
    fn reshaped(&self, operation: &'static str, result: Tensor) -> Variable {
        recorded_linear!(self, operation, result, self.shape(), |shape, gradient| gradient
            .reshape(&sizes(shape)))
    }

    /// Returns some of the elements: the others have gradient 0.
    fn part(&self, part: Part) -> Result<Variable> {
        let x = self.tensor();
        let saved = (part, *x.shape(), x.dtype(), x.device());
        Ok(recorded_linear!(self, part.name(), x.part(part)?, saved, |saved, gradient| gradient
            .embedded(saved)))
    }

    /// Returns the consecutive parts along a dimension that have the sizes of tensors.
    fn narrowed(&self, parts: &[Tensor], axis: isize) -> Result<Vec<Variable>> {
        let dimension = self.shape().axis("split", axis)?;
        let mut start = 0;
        let mut part = |part: &Tensor| {
            let size = part.shape()[dimension];
            start += size;
            self.narrow(axis, start - size, size)
        };
        parts.iter().map(&mut part).collect()
    }

    /// Returns zeros of the saved shape with this variable as a part of them.
    fn embedded(&self, saved: &WholeOfPart) -> Result<Variable> {
        let result = self.tensor().embedded(saved)?;
        Ok(recorded_linear!(self, saved.0.name(), result, saved.0, |part, gradient| gradient.part(*part)))
    }
}

/// A view of some of the elements of a tensor.
#[derive(Debug, Clone, Copy)]
enum Part {
    Narrow { axis: isize, start: usize, length: usize },
    Select { axis: isize, index: isize },
    Slice { axis: isize, slice: Slice },
    Diagonal { offset: isize, first: isize, second: isize },
}

/// A part, and the shape, the dtype and the device of the whole.
type WholeOfPart = (Part, Shape, DType, Device);

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Narrow { .. } => "narrow",
            Part::Select { .. } => "select",
            Part::Slice { .. } => "slice",
            Part::Diagonal { .. } => "diagonal",
        }
    }

    fn in_place(self, whole: TensorMut<'_>) -> Result<TensorMut<'_>> {
        match self {
            Part::Narrow { axis, start, length } => whole.narrow(axis, start, length),
            Part::Select { axis, index } => whole.select(axis, index),
            Part::Slice { axis, slice } => whole.slice(axis, slice),
            Part::Diagonal { offset, first, second } => whole.diagonal(offset, first, second),
        }
    }
}

/// The operations of [`Part`] on tensors, with the names of a variable's.
trait Embed: Sized {
    fn embedded(&self, saved: &WholeOfPart) -> Result<Tensor>;
    fn part(&self, part: Part) -> Result<Tensor>;
}

impl Embed for Tensor {
    fn embedded(&self, (part, shape, dtype, device): &WholeOfPart) -> Result<Tensor> {
        let mut whole = Tensor::zeros(shape, *dtype, device)?;
        part.in_place(whole.in_place())?.assign(self)?;
        Ok(whole)
    }

    fn part(&self, part: Part) -> Result<Tensor> {
        match part {
            Part::Narrow { axis, start, length } => self.narrow(axis, start, length),
            Part::Select { axis, index } => self.select(axis, index),
            Part::Slice { axis, slice } => self.slice(axis, slice),
            Part::Diagonal { offset, first, second } => self.diagonal(offset, first, second),
        }
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

    /// Replaces a dimension by several of the same number of elements, of which one size may be -1.
    pub fn unflatten(&self, axis: isize, sizes: &[isize]) -> Result<Variable> {
        Ok(self.reshaped("unflatten", self.tensor().unflatten(axis, sizes)?))
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
        for (index, &axis) in axes.iter().enumerate() {
            inverse[shape.axis("permute", axis)?] = index as isize;
        }
        Ok(recorded_linear!(self, "permute", result, inverse, |inverse, gradient| gradient.permute(inverse)))
    }

    /// Swaps two dimensions.
    pub fn transpose(&self, first: isize, second: isize) -> Result<Variable> {
        let result = self.tensor().transpose(first, second)?;
        let axes = (first, second);
        Ok(recorded_linear!(self, "transpose", result, axes, |axes, gradient| gradient
            .transpose(axes.0, axes.1)))
    }

    /// Moves dimensions to other positions; the others keep their order.
    pub fn movedim(&self, from: &[isize], to: &[isize]) -> Result<Variable> {
        let (result, axes) = (self.tensor().movedim(from, to)?, (from.to_vec(), to.to_vec()));
        Ok(recorded_linear!(self, "movedim", result, axes, |(from, to), gradient| gradient.movedim(to, from)))
    }

    /// Transposes a matrix.
    pub fn t(&self) -> Result<Variable> {
        Ok(recorded_linear!(self, "t", self.tensor().t()?, (), |(), gradient| gradient.t()))
    }

    /// Reverses the order of the elements along the given axes.
    pub fn flip(&self, axes: &[isize]) -> Result<Variable> {
        let (result, axes) = (self.tensor().flip(axes)?, axes.to_vec());
        Ok(recorded_linear!(self, "flip", result, axes, |axes, gradient| gradient.flip(axes)))
    }

    /// Repeats dimensions of size 1, and new ones in front, to a larger shape. The gradient is summed over them.
    pub fn expand(&self, shape: &[usize]) -> Result<Variable> {
        let result = self.tensor().expand(shape)?;
        Ok(recorded_linear!(self, "expand", result, (), |(), gradient| Ok(gradient.clone())))
    }

    /// Returns `length` elements along a dimension from `start`.
    pub fn narrow(&self, axis: isize, start: usize, length: usize) -> Result<Variable> {
        self.part(Part::Narrow { axis, start, length })
    }

    /// Selects one index along a dimension and removes the dimension.
    pub fn select(&self, axis: isize, index: isize) -> Result<Variable> {
        self.part(Part::Select { axis, index })
    }

    /// Slices a dimension, as in Python's `start:stop:step`.
    pub fn slice(&self, axis: isize, slice: impl Into<Slice>) -> Result<Variable> {
        self.part(Part::Slice { axis, slice: slice.into() })
    }

    /// Returns the elements whose positions along two dimensions differ by `offset` (second less first), as a new last dimension
    /// in place of both.
    pub fn diagonal(&self, offset: isize, first: isize, second: isize) -> Result<Variable> {
        self.part(Part::Diagonal { offset, first, second })
    }

    /// Returns consecutive parts of these sizes along a dimension.
    pub fn split(&self, sizes: &[usize], axis: isize) -> Result<Vec<Variable>> {
        self.narrowed(&self.tensor().split(sizes, axis)?, axis)
    }

    /// Returns at most `count` parts along a dimension, all of one size except the last, which may be smaller.
    pub fn chunk(&self, count: usize, axis: isize) -> Result<Vec<Variable>> {
        self.narrowed(&self.tensor().chunk(count, axis)?, axis)
    }

    /// Returns the variables for all indices of a dimension, which they lack.
    pub fn unbind(&self, axis: isize) -> Result<Vec<Variable>> {
        let count = self.tensor().unbind(axis)?.len() as isize;
        (0..count).map(|index| self.select(axis, index)).collect()
    }

    /// Joins variables along a dimension, in their common dtype.
    pub fn cat(variables: &[&Variable], axis: isize) -> Result<Variable> {
        let tensors: Vec<Tensor> = variables.iter().map(|variable| variable.tensor()).collect();
        let result = Tensor::cat(&tensors.iter().collect::<Vec<_>>(), axis)?;
        let dimension = result.shape().axis("cat", axis)?;
        let sizes: Vec<usize> = tensors.iter().map(|tensor| tensor.shape()[dimension]).collect();
        let parents = variables.iter().map(|variable| variable.tracked()).collect();
        /// Returns the parts of a gradient, of a tensor or of a variable.
        macro_rules! parts {
            ($saved:ident, $gradient:ident) => {{
                let (axis, sizes) = $saved;
                let mut start = 0;
                let part = |&size: &usize| {
                    start += size;
                    $gradient.narrow(*axis, start - size, size).map(Some)
                };
                sizes.iter().map(part).collect()
            }};
        }
        Ok(Variable::new(result).recorded_with_second_derivatives("cat", parents, |_| {
            Box::new(RuleOfClosures {
                saved: (axis, sizes),
                gradients: |saved: &(isize, Vec<usize>), gradient: &Tensor| parts!(saved, gradient),
                recorded: |saved: &(isize, Vec<usize>), _: &_, gradient: &Variable| parts!(saved, gradient),
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
