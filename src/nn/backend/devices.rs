//! [`Cpu`] and [`Cuda`], the backends.

use super::{AutomaticTransfers, Backend};
use crate::driver::{PinnedBuffer, Transfer};
use crate::error::{Error, Result};
use crate::tensor::{Device, Tensor};
use crate::types::Element;

/// The CPU as a [`Backend`].
#[derive(Debug, Default)]
pub struct Cpu {
    transfers: AutomaticTransfers,
}

/// A CUDA device as a [`Backend`].
#[derive(Debug)]
pub struct Cuda {
    device: Device,
    transfers: AutomaticTransfers,
}

impl Cpu {
    /// Creates the backend.
    pub fn new() -> Cpu {
        Cpu::default()
    }

    /// Sets whether operands on other devices move to the CPU; by default they are an error.
    #[must_use]
    pub fn with_automatic_transfers(self, is_enabled: bool) -> Cpu {
        Cpu { transfers: AutomaticTransfers::new(is_enabled) }
    }
}

impl Backend for Cpu {
    fn device(&self) -> Device {
        Device::cpu()
    }

    fn transfers(&self) -> &AutomaticTransfers {
        &self.transfers
    }
}

impl Cuda {
    /// Creates the backend of the device with this ordinal.
    ///
    /// # Errors
    ///
    /// As [`Device::cuda`].
    pub fn new(ordinal: usize) -> Result<Cuda> {
        Ok(Cuda { device: Device::cuda(ordinal)?, transfers: AutomaticTransfers::default() })
    }

    /// Returns the number of CUDA devices.
    ///
    /// # Errors
    ///
    /// As [`driver::Device::count`](crate::driver::Device::count).
    pub fn device_count() -> Result<usize> {
        crate::driver::Device::count()
    }

    /// Returns whether there is a CUDA device.
    pub fn is_available() -> bool {
        Cuda::device_count().is_ok_and(|count| count > 0)
    }

    /// Sets whether operands on other devices move to this one; by default they are an error.
    ///
    /// ```
    /// use selvedge::nn::{Backend, Cuda};
    /// use selvedge::{Device, Tensor};
    /// if Cuda::is_available() {
    ///     let cuda = Cuda::new(0)?.with_automatic_transfers(true);
    ///     let x = Tensor::new([1.0f32, 2.0], &Device::cpu())?;
    ///     assert_eq!(cuda.sum(&x)?.item::<f32>()?, 3.0);
    ///     assert_eq!(cuda.transfers().counts().bytes, 8);
    /// }
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    #[must_use]
    pub fn with_automatic_transfers(self, is_enabled: bool) -> Cuda {
        Cuda { transfers: AutomaticTransfers::new(is_enabled), ..self }
    }

    /// Starts a copy of pinned elements to a new tensor. Operations on the tensor run behind the copy, and the transfer returns
    /// the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for a shape with another number of elements; [`Error::OutOfMemory`]; driver errors.
    pub fn upload_pinned<T: Element>(
        &self,
        elements: PinnedBuffer<T>,
        shape: &[usize],
    ) -> Result<(Tensor, Transfer<T>)> {
        let stream = self.device.stream()?;
        let mut buffer = stream.uninitialized::<T>(elements.len())?;
        let transfer = stream.upload_async(elements, &mut buffer).map_err(Error::from)?;
        Ok((Tensor::from_buffer(buffer, shape)?, transfer))
    }

    /// Starts a copy of a tensor of this device to pinned memory, behind the operations that write it.
    ///
    /// # Errors
    ///
    /// As [`Tensor::device_slice`]; [`Error::LengthMismatch`] for a buffer of another length; driver errors.
    pub fn download_pinned<T: Element>(
        &self,
        x: &Tensor,
        destination: PinnedBuffer<T>,
    ) -> Result<Transfer<T>> {
        let x = x.contiguous()?;
        let stream = self.device.stream()?;
        stream.download_async(&x.device_slice::<T>()?, destination).map_err(Error::from)
    }
}

impl Backend for Cuda {
    fn device(&self) -> Device {
        self.device
    }

    fn transfers(&self) -> &AutomaticTransfers {
        &self.transfers
    }
}
