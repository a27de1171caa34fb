//! Tensors from the arrays of the `ndarray` crate, and back.

use ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};

use super::device::Device;
use super::tensor::Tensor;
use crate::error::{Error, Result};
use crate::types::Element;

impl Tensor {
    /// A tensor of an array's elements: of an `Array`, or a view of one, in any layout.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let array = ndarray::array![[1.0f32, 2.0], [3.0, 4.0]];
    /// let x = Tensor::from_ndarray(&array.t(), &Device::cpu())?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`from_slice`](Self::from_slice).
    pub fn from_ndarray<T, S, D>(array: &ArrayBase<S, D>, device: &Device) -> Result<Tensor>
    where
        T: Element,
        S: Data<Elem = T>,
        D: Dimension,
    {
        match array.as_slice() {
            Some(elements) => Tensor::from_slice(elements, array.shape(), device),
            None => Tensor::from_vec(array.iter().copied().collect(), array.shape(), device),
        }
    }

    /// The elements as an array.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([[1i64, 2], [3, 4]], &Device::cpu())?;
    /// assert_eq!(x.t()?.to_ndarray::<i64>()?, ndarray::array![[1, 3], [2, 4]].into_dyn());
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`to_vec`](Self::to_vec).
    pub fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>> {
        let elements = self.to_vec::<T>()?;
        ArrayD::from_shape_vec(IxDyn(self.shape()), elements).map_err(|error| {
            Error::invalid(
                "an array of a tensor",
                format!("shape {}: {error}", self.shape()),
                "one that ndarray takes",
            )
        })
    }
}
