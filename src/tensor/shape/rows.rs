//! Iteration over a tensor's first dimension.

use std::iter::FusedIterator;
use std::ops::Range;

use super::Tensor;
use crate::error::{Error, Result};

/// An iterator over the views along a tensor's first dimension; see [`Tensor::rows`].
#[derive(Clone)]
pub struct Rows {
    tensor: Tensor,
    left: Range<usize>,
}

impl Tensor {
    /// Returns an iterator over the first dimension: the rows of a matrix, the elements of a vector as tensors without
    /// dimensions. Each item is a view of shape `shape[1..]`.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[1, 2], [3, 4]], &Device::cpu())?;
    /// for (index, row) in x.rows()?.enumerate() {
    ///     assert_eq!(row.to_vec::<i32>()?, [2 * index as i32 + 1, 2 * index as i32 + 2]);
    /// }
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for a tensor without dimensions.
    pub fn rows(&self) -> Result<Rows> {
        match self.shape().first() {
            Some(&size) => Ok(Rows { tensor: self.clone(), left: 0..size }),
            None => Err(Error::invalid("rows", "a tensor without dimensions", "at least one dimension")),
        }
    }

    /// Returns the views along a dimension, which they lack. PyTorch's `unbind`.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[1, 2], [3, 4]], &Device::cpu())?;
    /// let columns = x.unbind(1)?;
    /// assert_eq!(columns[1].to_vec::<i32>()?, [2, 4]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for an axis out of range.
    pub fn unbind(&self, axis: isize) -> Result<Vec<Tensor>> {
        let at = self.shape().axis("unbind", axis)?;
        let count = self.shape()[at];
        let mut views = super::split::list_of_views("unbind", count)?;
        for index in 0..count {
            views.push(self.select(axis, index as isize)?);
        }
        Ok(views)
    }

    /// Returns the view at an index of the leading dimensions, which it lacks: `x.get(&[i, j])` is PyTorch's `x[i, j]`. A
    /// negative index counts from the end.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &Device::cpu())?;
    /// assert_eq!(x.get(&[1, 0])?.item::<f32>()?, 3.0);
    /// assert_eq!(x.get(&[-1])?.to_vec::<f32>()?, [3.0, 4.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for more indices than dimensions, or an index out of range.
    pub fn get(&self, index: &[isize]) -> Result<Tensor> {
        if index.len() > self.rank() {
            let found = format!("{} indices for shape {}", index.len(), self.shape());
            return Err(Error::invalid("get", found, format!("at most {}", self.rank())));
        }
        index.iter().try_fold(self.clone(), |view, &position| view.select(0, position))
    }
}

impl Rows {
    fn view(&self, index: usize) -> Option<Tensor> {
        // The index is one of the dimension, so the view exists.
        self.tensor.select(0, index as isize).ok()
    }
}

impl Iterator for Rows {
    type Item = Tensor;

    fn next(&mut self) -> Option<Tensor> {
        self.left.next().and_then(|index| self.view(index))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }

    fn nth(&mut self, count: usize) -> Option<Tensor> {
        self.left.nth(count).and_then(|index| self.view(index))
    }
}

impl DoubleEndedIterator for Rows {
    fn next_back(&mut self) -> Option<Tensor> {
        self.left.next_back().and_then(|index| self.view(index))
    }
}

impl ExactSizeIterator for Rows {}
impl FusedIterator for Rows {}
