//! Reads of variables by index. The backward adds at the index, in an order that the positions decide, so repeated
//! indices give the same bits every time.

use super::shape::in_shape;
use super::variable::Variable;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

impl Variable {
    /// Records a read by index, with the function that adds elements to zeros at that index.
    fn indexed(
        &self,
        operation: &'static str,
        result: Tensor,
        add: impl Fn(&Tensor, &Tensor) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Variable {
        let (shape, device) = (self.shape(), self.device());
        self.unary(operation, result, move |gradient| {
            add(&Tensor::zeros(&shape, gradient.dtype(), &device)?, gradient)
        })
    }

    /// Returns the elements at the positions of a one-dimensional index along an axis.
    ///
    /// # Errors
    ///
    /// As [`Tensor::index_select`].
    pub fn index_select(&self, axis: isize, index: &Tensor) -> Result<Variable> {
        let result = self.tensor().index_select(axis, index)?;
        let index = index.clone();
        Ok(self
            .indexed("index_select", result, move |zeros, gradient| zeros.index_add(axis, &index, gradient)))
    }

    /// Returns the element at each position of the index along an axis.
    ///
    /// # Errors
    ///
    /// As [`Tensor::gather`].
    pub fn gather(&self, axis: isize, index: &Tensor) -> Result<Variable> {
        let result = self.tensor().gather(axis, index)?;
        let index = index.clone();
        Ok(self.indexed("gather", result, move |zeros, gradient| zeros.scatter_add(axis, &index, gradient)))
    }

    /// Returns the row of this table at each element of an index of any shape, as a new last dimension.
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
        let rows = index.reshape(&[-1])?;
        let mut shape: Vec<isize> = index.shape().iter().map(|&size| size as isize).collect();
        shape.push(width as isize);
        let selected = table.index_select(0, &rows)?;
        let flat = *selected.shape();
        let result = selected.reshape(&shape)?;
        Ok(self.indexed(OPERATION, result, move |zeros, gradient| {
            zeros.index_add(0, &rows, &in_shape(gradient, &flat)?)
        }))
    }
}
