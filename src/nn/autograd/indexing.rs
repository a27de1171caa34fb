//! Reads of variables by index, and writes at an index. The backward of a read adds at the index, in an order that the positions
//! decide, so repeated indices give the same bits every time.

use super::recordable::{RuleOfClosures, recorded_linear};
use super::shape::sizes;
use super::variable::Variable;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// The opposite of a read by index, of tensors or recorded of variables.
pub(super) trait AddToZeros: Sized {
    /// Returns zeros of a shape plus these elements at a one-dimensional index along an axis.
    fn add_to_zeros(&self, shape: &[usize], axis: isize, index: &Tensor) -> Result<Self>;

    /// Returns zeros of a shape plus each of these elements at the position of an index along an axis.
    fn scatter_to_zeros(&self, shape: &[usize], axis: isize, index: &Tensor) -> Result<Self>;
}

impl AddToZeros for Tensor {
    fn add_to_zeros(&self, shape: &[usize], axis: isize, index: &Tensor) -> Result<Tensor> {
        Tensor::zeros(shape, self.dtype(), &self.device())?.index_add(axis, index, self)
    }

    fn scatter_to_zeros(&self, shape: &[usize], axis: isize, index: &Tensor) -> Result<Tensor> {
        Tensor::zeros(shape, self.dtype(), &self.device())?.scatter_add(axis, index, self)
    }
}

impl AddToZeros for Variable {
    fn add_to_zeros(&self, shape: &[usize], axis: isize, index: &Tensor) -> Result<Variable> {
        let zeros = Tensor::zeros(shape, self.dtype(), &self.device())?;
        Variable::new(zeros).index_add(axis, index, self)
    }

    fn scatter_to_zeros(&self, shape: &[usize], axis: isize, index: &Tensor) -> Result<Variable> {
        let zeros = Tensor::zeros(shape, self.dtype(), &self.device())?;
        Variable::new(zeros).scatter_add(axis, index, self)
    }
}

/// Returns the gradients of a sum whose second operand was added at an index: that of all, and that at the index.
macro_rules! gradients_of_addition {
    ($self:ident, $elements:ident, $operation:literal, $axis:ident, $index:ident, $result:ident, $read:ident) => {{
        let parents = vec![$self.tracked(), $elements.tracked()];
        Variable::new($result).recorded_with_second_derivatives($operation, parents, |_| {
            Box::new(RuleOfClosures {
                saved: ($axis, $index.clone()),
                gradients: |(axis, index): &(isize, Tensor), gradient: &Tensor| {
                    Ok(vec![Some(gradient.clone()), Some(gradient.$read(*axis, index)?)])
                },
                recorded: |(axis, index): &(isize, Tensor), _: &_, gradient: &Variable| {
                    Ok(vec![Some(gradient.clone()), Some(gradient.$read(*axis, index)?)])
                },
            })
        })
    }};
}

impl Variable {
    /// Returns the elements at the positions of a one-dimensional index along an axis.
    ///
    /// # Errors
    ///
    /// As [`Tensor::index_select`].
    pub fn index_select(&self, axis: isize, index: &Tensor) -> Result<Variable> {
        let result = self.tensor().index_select(axis, index)?;
        let saved = (self.shape(), axis, index.clone());
        Ok(recorded_linear!(self, "index_select", result, saved, |(shape, axis, index), gradient| {
            gradient.add_to_zeros(shape, *axis, index)
        }))
    }

    /// Returns the element at each position of the index along an axis.
    ///
    /// # Errors
    ///
    /// As [`Tensor::gather`].
    pub fn gather(&self, axis: isize, index: &Tensor) -> Result<Variable> {
        let result = self.tensor().gather(axis, index)?;
        let saved = (self.shape(), axis, index.clone());
        Ok(recorded_linear!(self, "gather", result, saved, |(shape, axis, index), gradient| {
            gradient.scatter_to_zeros(shape, *axis, index)
        }))
    }

    /// Returns the element of each class along an axis.
    ///
    /// # Errors
    ///
    /// As [`Tensor::gather_classes`].
    pub(in crate::nn) fn gather_classes(&self, axis: isize, index: &Tensor) -> Result<Variable> {
        let result = self.tensor().gather_classes(axis, index)?;
        let saved = (self.shape(), axis, index.clone());
        Ok(recorded_linear!(self, "nll_loss", result, saved, |(shape, axis, index), gradient| {
            gradient.scatter_classes(shape, *axis, index)
        }))
    }

    /// Returns zeros of a shape with these elements at the classes along an axis.
    ///
    /// # Errors
    ///
    /// As [`Tensor::scatter_classes`].
    fn scatter_classes(&self, shape: &[usize], axis: isize, index: &Tensor) -> Result<Variable> {
        let result = self.tensor().scatter_classes(shape, axis, index)?;
        let saved = (axis, index.clone());
        Ok(recorded_linear!(self, "nll_loss", result, saved, |(axis, index), gradient| {
            gradient.gather_classes(*axis, index)
        }))
    }

    /// Returns the element at each position of the index along an axis. Both broadcast along the other axes.
    ///
    /// # Errors
    ///
    /// As [`Tensor::take_along_axis`].
    pub fn take_along_axis(&self, axis: isize, index: &Tensor) -> Result<Variable> {
        const OPERATION: &str = "take_along_axis";
        let (own, result) = (self.shape(), self.tensor().take_along_axis(axis, index)?);
        let dimension = own.axis(OPERATION, axis)?;
        let index = index.expand(result.shape())?;
        let mut whole = result.shape().to_vec();
        whole[dimension] = own[dimension];
        let saved = (whole, axis, index);
        Ok(recorded_linear!(self, OPERATION, result, saved, |(whole, axis, index), gradient| {
            gradient.scatter_to_zeros(whole, *axis, index)
        }))
    }

    /// Returns the elements at positions in row-major order over all dimensions, in the index's shape.
    ///
    /// # Errors
    ///
    /// As [`Tensor::take`].
    pub fn take(&self, index: &Tensor) -> Result<Variable> {
        let result = self.tensor().take(index)?;
        let saved = (self.shape(), index.reshape(&[-1])?);
        Ok(recorded_linear!(self, "take", result, saved, |(shape, index), gradient| {
            let count = shape.iter().product();
            gradient.reshape(&[-1])?.add_to_zeros(&[count], 0, index)?.reshape(&sizes(shape))
        }))
    }

    /// Adds whole parts at the positions of a one-dimensional index along an axis.
    ///
    /// # Errors
    ///
    /// As [`Tensor::index_add`].
    pub fn index_add(&self, axis: isize, index: &Tensor, elements: &Variable) -> Result<Variable> {
        let result = self.tensor().index_add(axis, index, &elements.tensor())?;
        Ok(gradients_of_addition!(self, elements, "index_add", axis, index, result, index_select))
    }

    /// Adds an element at each position of the index along an axis.
    ///
    /// # Errors
    ///
    /// As [`Tensor::scatter_add`].
    pub fn scatter_add(&self, axis: isize, index: &Tensor, elements: &Variable) -> Result<Variable> {
        let result = self.tensor().scatter_add(axis, index, &elements.tensor())?;
        Ok(gradients_of_addition!(self, elements, "scatter_add", axis, index, result, gather))
    }

    /// Replaces the elements at positions that have an index for each of the first dimensions, or adds to them if `accumulate` is
    /// true. Without it, of several elements for one position the last one stays, and the gradient of the others is 0.
    ///
    /// # Errors
    ///
    /// As [`Tensor::index_put`].
    pub fn index_put(&self, indices: &[&Tensor], elements: &Variable, accumulate: bool) -> Result<Variable> {
        let result = self.tensor().index_put(indices, &elements.tensor(), accumulate)?;
        let indices: Vec<Tensor> = indices.iter().map(|&index| index.clone()).collect();
        let parents = vec![self.tracked(), elements.tracked()];
        Ok(Variable::new(result).recorded("index_put", parents, |_| {
            Box::new(move |gradient| {
                let indices: Vec<&Tensor> = indices.iter().collect();
                let [of_self, of_elements] = gradient.index_put_gradients(&indices, accumulate)?;
                Ok(vec![Some(of_self), Some(of_elements)])
            })
        }))
    }

    /// Returns the row of this table at each element of an index of any shape, as a new last dimension. The elements are ids: a
    /// negative one is out of range, and does not count from the end.
    ///
    /// ```
    /// use selvedge::nn::Variable;
    /// use selvedge::{Device, Tensor};
    /// let table = Variable::with_grad(Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &Device::cpu())?)?;
    /// let tokens = Tensor::new([[1i64, 1], [0, 1]], &Device::cpu())?;
    /// let rows = table.embedding(&tokens)?;
    /// assert_eq!(rows.shape()[..], [2, 2, 2]);
    /// rows.sum_all()?.backward()?;
    /// let gradient = table.grad().map(|gradient| gradient.to_vec::<f32>()).transpose()?;
    /// assert_eq!(gradient, Some(vec![1.0, 1.0, 3.0, 3.0]));
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a table that is no matrix; otherwise as [`Tensor::index_select`].
    pub fn embedding(&self, index: &Tensor) -> Result<Variable> {
        const OPERATION: &str = "embedding";
        let table = self.tensor();
        let &[_, width] = &table.shape()[..] else {
            let found = format!("a table of shape {}", table.shape());
            return Err(Error::invalid(OPERATION, found, "a matrix of one row for each index"));
        };
        let rows = index.reshape(&[-1])?.row_index()?;
        let mut shape: Vec<isize> = index.shape().iter().map(|&size| size as isize).collect();
        shape.push(width as isize);
        let selected = table.rows_of_ids(&rows)?;
        let flat = *selected.shape();
        let result = selected.reshape(&shape)?;
        let saved = (*table.shape(), rows, sizes(&flat));
        Ok(recorded_linear!(self, OPERATION, result, saved, |(shape, rows, flat), gradient| {
            gradient.reshape(flat)?.add_to_zeros(shape, 0, rows)
        }))
    }
}
