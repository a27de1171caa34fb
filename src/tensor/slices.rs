//! The elements themselves, for what is not an operation of tensors: slices of host memory, and of device memory for
//! kernels of one's own.

use std::ops::Range;

use super::device::Device;
use super::storage::{Memory, MemoryMut};
use super::tensor::{Tensor, mismatch};
use crate::driver::{DeviceSlice, DeviceSliceMut};
use crate::error::{Error, Result};
use crate::types::Element;

impl Tensor {
    /// The elements of a contiguous tensor on the CPU, where they are.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([1.0f32, 2.0, 3.0], &Device::cpu())?;
    /// assert_eq!(x.slice(0, 1..)?.as_slice::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] where `T` is not the dtype's, [`Error::InvalidArgument`] where the elements do not lie one
    /// behind another ([`contiguous`](Self::contiguous) first), [`Error::DeviceMismatch`] where they are on another device.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        let range = self.bytes_of::<T>()?;
        match self.memory() {
            Memory::Host(memory) => slice(memory, range).map(bytemuck::cast_slice),
            Memory::Cuda(_) => Err(mismatch("a slice of host memory", self.device(), Device::cpu())),
        }
    }

    /// As [`as_slice`](Self::as_slice), to write; elements that are shared or lie otherwise are copied first.
    ///
    /// # Errors
    ///
    /// As [`as_slice`](Self::as_slice) has for dtype and device, and those of the copy.
    pub fn as_slice_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        let device = self.device();
        let range = self.own_bytes_of::<T>()?;
        match self.storage.memory_mut() {
            Some(MemoryMut::Host(memory)) => {
                let outside = outside(&range, memory.len());
                memory.get_mut(range).map(bytemuck::cast_slice_mut).ok_or(outside)
            }
            Some(MemoryMut::Cuda(_)) => Err(mismatch("a slice of host memory", device, Device::cpu())),
            None => Err(Error::invalid("a slice to write", "shared elements", "its own")),
        }
    }

    /// The elements of a contiguous tensor on a CUDA device, where they are: an argument for a kernel.
    ///
    /// ```no_run
    /// use selvedge::tensor::{Device, Tensor};
    /// # fn main() -> selvedge::Result<()> {
    /// # let kernel: selvedge::driver::Function = unimplemented!();
    /// # let config = selvedge::driver::LaunchConfig::for_elements(3);
    /// let device = Device::cuda(0)?;
    /// let x = Tensor::new([1.0f32, 2.0, 3.0], &device)?;
    /// let mut y = x.zeros_like()?;
    /// // SAFETY: the kernel reads and writes three elements.
    /// unsafe { kernel.launch(&device.stream()?, config, (x.device_slice::<f32>()?, y.device_slice_mut::<f32>()?))? };
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`as_slice`](Self::as_slice).
    pub fn device_slice<T: Element>(&self) -> Result<DeviceSlice<'_, T>> {
        let range = self.bytes_of::<T>()?;
        match self.memory() {
            Memory::Cuda(buffer) => buffer.slice(range)?.reinterpret(),
            Memory::Host(_) => Err(elsewhere()),
        }
    }

    /// As [`device_slice`](Self::device_slice), to write; elements that are shared or lie otherwise are copied first.
    ///
    /// # Errors
    ///
    /// As [`as_slice_mut`](Self::as_slice_mut).
    pub fn device_slice_mut<T: Element>(&mut self) -> Result<DeviceSliceMut<'_, T>> {
        let range = self.own_bytes_of::<T>()?;
        match self.storage.memory_mut() {
            Some(MemoryMut::Cuda(buffer)) => buffer.slice_mut(range)?.reinterpret(),
            Some(MemoryMut::Host(_)) => Err(elsewhere()),
            None => Err(Error::invalid("a slice to write", "shared elements", "its own")),
        }
    }

    /// Where a contiguous tensor's elements lie in its memory.
    fn bytes_of<T: Element>(&self) -> Result<Range<usize>> {
        self.check_element::<T>("a slice of a tensor's elements")?;
        if !self.is_contiguous() {
            let found = format!("elements of {:?}", self.layout());
            return Err(Error::invalid(
                "a slice of a tensor's elements",
                found,
                "a contiguous tensor: contiguous() first",
            ));
        }
        let start = self.layout().offset() * size_of::<T>();
        Ok(start..start + self.count() * size_of::<T>())
    }

    fn own_bytes_of<T: Element>(&mut self) -> Result<Range<usize>> {
        self.check_element::<T>("a slice of a tensor's elements")?;
        if !self.is_contiguous() {
            *self = self.copy()?;
        }
        self.own()?;
        self.bytes_of::<T>()
    }
}

/// A part of host memory.
///
/// # Errors
///
/// [`Error::OutOfRange`].
pub(super) fn slice(memory: &[u8], range: Range<usize>) -> Result<&[u8]> {
    memory.get(range.clone()).ok_or_else(|| outside(&range, memory.len()))
}

fn outside(range: &Range<usize>, length: usize) -> Error {
    Error::OutOfRange { start: range.start, end: range.end, length }
}

#[cold]
fn elsewhere() -> Error {
    Error::DeviceMismatch {
        operation: "a slice of device memory",
        left: "a tensor on cpu".to_owned(),
        right: "kernels of a CUDA device; move it there with to()".to_owned(),
    }
}
