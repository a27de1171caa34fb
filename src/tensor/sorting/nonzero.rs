//! Positions of elements that are not zero, and selection by a mask.

use super::{flat, numbers};
use crate::error::{Error, Result};
use crate::tensor::{Tensor, fuse};
use crate::types::{DType, Shape};

impl Tensor {
    /// Returns the indices of the elements that are not 0 in row-major order, as i64: a row for each element, a column for
    /// each dimension. NaN is not 0. PyTorch's `nonzero`, NumPy's `argwhere`.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[0, 5], [7, 0]], &Device::cpu())?;
    /// assert_eq!(x.nonzero()?.to_vec::<i64>()?, [0, 1, 1, 0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DTypeMismatch`](Error::DTypeMismatch) for 8-bit floats; [`OutOfMemory`](Error::OutOfMemory).
    pub fn nonzero(&self) -> Result<Tensor> {
        let positions = true_positions(&flat(&self.ne(0)?)?)?;
        let (device, rank) = (self.device(), self.rank());
        if rank == 0 || positions.count() == 0 {
            return Tensor::zeros(&[positions.count(), rank], DType::I64, &device);
        }
        let sizes: Vec<i64> = self.shape().iter().map(|size| *size as i64).collect();
        let mut strides = vec![1i64; rank];
        for axis in (1..rank).rev() {
            strides[axis - 1] = strides[axis] * sizes[axis];
        }
        let [sizes, strides] = [sizes, strides].map(|row| Tensor::from_vec(row, &[rank], &device));
        fuse([&positions.unsqueeze(-1)?, &sizes?, &strides?], |[position, size, stride]| {
            position.floor_divide(stride).remainder(size)
        })
    }

    /// Returns what [`nonzero`](Self::nonzero) returns, by the name that NumPy and PyTorch share.
    ///
    /// # Errors
    ///
    /// As [`nonzero`](Self::nonzero).
    pub fn argwhere(&self) -> Result<Tensor> {
        self.nonzero()
    }

    /// Returns the elements for which the mask is true in row-major order, as one dimension. The shapes broadcast.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[1, 2], [3, 4]], &Device::cpu())?;
    /// assert_eq!(x.masked_select(&x.gt(2)?)?.to_vec::<i32>()?, [3, 4]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DTypeMismatch`](Error::DTypeMismatch) for a mask that is not of bools, [`InvalidArgument`](Error::InvalidArgument)
    /// for shapes that do not broadcast, [`DeviceMismatch`](Error::DeviceMismatch), [`OutOfMemory`](Error::OutOfMemory).
    pub fn masked_select(&self, mask: &Tensor) -> Result<Tensor> {
        const OPERATION: &str = "masked_select";
        if mask.dtype() != DType::Bool {
            let (wanted, found) = ("a mask of bool".to_owned(), format!("one of {}", mask.dtype()));
            return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
        }
        crate::tensor::tensor::one_device(OPERATION, [self, mask])?;
        let shape: Shape = self.shape().broadcast_in(OPERATION, mask.shape())?;
        let positions = true_positions(&flat(&mask.expand(&shape)?)?)?;
        self.expand(&shape)?.take_unchecked(&positions)
    }
}

/// Returns the positions of the true elements of one dimension of bools, in order.
pub(in crate::tensor) fn true_positions(mask: &Tensor) -> Result<Tensor> {
    let none = || Tensor::zeros(&[0], DType::I64, &mask.device());
    if mask.count() == 0 {
        return none();
    }
    let ranks = mask.cumsum(0)?;
    let count: i64 = ranks.select(0, -1)?.item()?;
    if count == 0 {
        return none();
    }
    // An element that is false goes to no place.
    let slots = fuse((mask, &ranks, count), |[is_true, rank, count]| is_true.choose(rank - 1, count))?;
    let mut positions = Tensor::zeros(&[count as usize], DType::I64, &mask.device())?;
    positions.in_place().scatter_unchecked(0, &slots, &numbers(mask.count(), mask)?)?;
    Ok(positions)
}
