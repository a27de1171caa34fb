//! Access to a tensor's elements outside of tensor operations: slices of host memory, and slices of device memory as
//! arguments of your own kernels.

use std::ops::Range;

use super::convert::shape_of;
use super::storage::bytes_of;
use super::storage::{HostMemory, Storage, part, part_mut};
use super::tensor::Tensor;
use crate::driver::{DeviceBuffer, DeviceSlice, DeviceSliceMut, PinnedBuffer};
use crate::error::{Error, Result};
use crate::types::{DType, Shape};
use crate::types::{Element, Layout};

const HOST: &str = "a slice of host memory";
const DEVICE: &str = "a slice of device memory";

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
        part(self.memory().host(HOST)?, range).map(bytemuck::cast_slice)
    }

    /// As [`as_slice`](Self::as_slice), to write; elements that are shared or lie otherwise are copied first.
    ///
    /// # Errors
    ///
    /// As [`as_slice`](Self::as_slice) has for dtype and device, and those of the copy.
    pub fn as_slice_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        let range = self.own_bytes_of::<T>()?;
        part_mut(self.storage.unique_memory()?.into_host(HOST)?, range).map(bytemuck::cast_slice_mut)
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
        self.memory().cuda(DEVICE)?.slice(range)?.reinterpret()
    }

    /// As [`device_slice`](Self::device_slice), to write; elements that are shared or lie otherwise are copied first.
    ///
    /// # Errors
    ///
    /// As [`as_slice_mut`](Self::as_slice_mut).
    pub fn device_slice_mut<T: Element>(&mut self) -> Result<DeviceSliceMut<'_, T>> {
        let range = self.own_bytes_of::<T>()?;
        self.storage.unique_memory()?.into_cuda(DEVICE)?.slice_mut(range)?.reinterpret()
    }

    /// A CUDA buffer's elements as a tensor, without a copy: the buffer becomes the tensor's memory.
    ///
    /// ```no_run
    /// use selvedge::tensor::{Device, Tensor};
    /// # fn main() -> selvedge::Result<()> {
    /// let stream = Device::cuda(0)?.stream()?;
    /// let x = Tensor::from_buffer(stream.upload(&[1.0f32, 2.0, 3.0])?, &[3])?;
    /// assert_eq!((&x * 2.0)?.into_buffer::<f32>()?.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] where the shape has another number of elements.
    pub fn from_buffer<T: Element>(buffer: DeviceBuffer<T>, shape: &[usize]) -> Result<Tensor> {
        let layout = Layout::from_shape(shape_of(buffer.len(), shape)?);
        Ok(Tensor::of(Storage::Cuda(buffer.into_bytes()).into(), T::DTYPE, layout))
    }

    /// A pinned buffer's elements as a tensor of the CPU, without a copy: the buffer becomes the tensor's memory.
    ///
    /// Copies to a device need no staging, and DLPack exports it as pinned memory. The memory returns to the device's pool with
    /// the last tensor that shares it.
    ///
    /// ```no_run
    /// use selvedge::tensor::{Device, Tensor};
    /// # fn main() -> selvedge::Result<()> {
    /// let stream = Device::cuda(0)?.stream()?;
    /// let mut pinned = stream.device().pinned::<f32>(3)?;
    /// pinned.copy_from_slice(&[1.0, 2.0, 3.0]);
    /// let x = Tensor::from_pinned(pinned, &[3])?;
    /// assert!(x.is_pinned() && x.device().is_cpu());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] where the shape has another number of elements.
    pub fn from_pinned<T: Element>(buffer: PinnedBuffer<T>, shape: &[usize]) -> Result<Tensor> {
        let layout = Layout::from_shape(shape_of(buffer.len(), shape)?);
        Ok(Tensor::of(Storage::Host(HostMemory::of_pinned(buffer)).into(), T::DTYPE, layout))
    }

    /// As [`from_pinned`](Self::from_pinned), for bytes of elements of a dtype. An error returns the buffer.
    pub(crate) fn from_pinned_bytes(
        buffer: PinnedBuffer<u8>,
        dtype: DType,
        shape: &[usize],
    ) -> std::result::Result<Tensor, (Box<Error>, PinnedBuffer<u8>)> {
        let layout = Shape::new(shape).and_then(|shape| match bytes_of(dtype, &shape)? {
            wanted if wanted == buffer.len() => Ok(Layout::from_shape(shape)),
            wanted => {
                let operation = "a tensor's bytes";
                Err(Error::LengthMismatch { operation, wanted, found: buffer.len() })
            }
        });
        match layout {
            Ok(layout) => Ok(Tensor::of(Storage::Host(HostMemory::of_pinned(buffer)).into(), dtype, layout)),
            Err(error) => Err((Box::new(error), buffer)),
        }
    }

    /// The elements of a tensor on a CUDA device as a buffer: the tensor's memory where it is all of it and nobody else has
    /// it, otherwise a copy.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] where `T` is not the dtype's, [`Error::DeviceMismatch`] for a tensor on the CPU, and those of
    /// the copy.
    pub fn into_buffer<T: Element>(mut self) -> Result<DeviceBuffer<T>> {
        self.check_element::<T>(DEVICE)?;
        let bytes = self.memory().cuda(DEVICE)?.len();
        let all = self.is_contiguous() && self.layout.offset() == 0 && bytes == self.count() * size_of::<T>();
        if !all || !self.storage.is_unique() {
            self = self.copy()?;
        }
        match self.storage.into_unique() {
            Some(Storage::Cuda(buffer)) => buffer.into_elements(),
            _ => Err(Error::invalid(DEVICE, "shared elements", "its own")),
        }
    }

    /// Returns the bytes of a contiguous tensor's elements in its memory.
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
        self.make_unique()?;
        self.bytes_of::<T>()
    }
}
