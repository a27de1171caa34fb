//! Positions of elements that are not zero, and selection by a mask.

use super::{bytes_of, flat};
use crate::driver::Stream;
use crate::error::{Error, Result};
use crate::sort::{Selection, true_positions_host};
use crate::tensor::kernel::Output;
use crate::tensor::storage::part;
use crate::tensor::{Device, Tensor, fuse};
use crate::types::{DType, Shape};

const NONZERO: &str = "nonzero";

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
        let (device, rank) = (self.device(), self.rank());
        if !device.is_cpu() {
            let elements = if Selection::supports(self.dtype()) { self.clone() } else { self.ne(0)? };
            return select(NONZERO, &elements.contiguous()?)?.coordinates(NONZERO, self.shape());
        }
        let positions = true_positions(&flat(&self.ne(0)?)?)?;
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
        let (elements, mask) = (flat(&self.expand(&shape)?)?, flat(&mask.expand(&shape)?)?);
        if mask.device().is_cpu() {
            return elements.take_unchecked(&true_positions(&mask)?);
        }
        let source = elements.memory().cuda(OPERATION)?.slice(bytes_of(&elements))?;
        if !Selection::copies(source.address(), self.dtype().size()) {
            // Memory of other code may be aligned for less than an element.
            return elements.take_unchecked(&true_positions(&mask)?);
        }
        let DeviceSelection { stream, selection } = select(OPERATION, &mask)?;
        let mut selected = Output::new(&self.device(), self.dtype(), &[selection.count()])?;
        let target = selected.memory_mut().into_cuda(OPERATION)?;
        selection.elements(&stream, self.dtype().size(), source, target)?;
        Ok(selected.into_tensor())
    }
}

/// A selection with the stream that it was made on.
struct DeviceSelection {
    stream: Stream,
    selection: Selection,
}

/// Selects the elements of a contiguous tensor on a CUDA device that are not 0.
fn select(operation: &'static str, elements: &Tensor) -> Result<DeviceSelection> {
    let stream = elements.device().stream()?;
    let bytes = elements.memory().cuda(operation)?.slice(bytes_of(elements))?;
    let selection = Selection::new(&stream, operation, elements.dtype(), bytes)?;
    Ok(DeviceSelection { stream, selection })
}

impl DeviceSelection {
    /// Returns the coordinates of the selected elements in a shape, a row for each.
    fn coordinates(&self, operation: &'static str, shape: &[usize]) -> Result<Tensor> {
        let rows = [self.selection.count(), shape.len()];
        let mut coordinates = Output::new(&Device::from(self.stream.device()), DType::I64, &rows)?;
        let target = coordinates.memory_mut().into_cuda(operation)?.reinterpret_mut()?;
        self.selection.coordinates(&self.stream, shape, target)?;
        Ok(coordinates.into_tensor())
    }
}

/// Returns the positions of the true elements of one dimension of bools, in order.
pub(in crate::tensor) fn true_positions(mask: &Tensor) -> Result<Tensor> {
    let mask = &mask.contiguous()?;
    if !mask.device().is_cpu() {
        return select(NONZERO, mask)?.coordinates(NONZERO, &[mask.count()])?.squeeze(-1);
    }
    let positions = true_positions_host(part(mask.memory().host(NONZERO)?, bytes_of(mask))?)?;
    let count = positions.len();
    Tensor::from_vec(positions, &[count], &mask.device())
}
