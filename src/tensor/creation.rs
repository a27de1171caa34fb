//! Creation of constant and uninitialized tensors: `full`, `zeros`, `ones`, `empty` and their forms `_like`.
//!
//! `convert` creates tensors from Rust values, `ranges` evenly spaced numbers, and `random` random ones.

use super::cached_operation::{CachedOperation, OperandKind};
use super::device::{Device, stream};
use super::kernel::{Output, OutputTarget};
use super::operand::Inputs;
use super::tensor::Tensor;
use crate::error::Result;
use crate::fuse::Number;
use crate::types::DType;

impl Tensor {
    /// Returns a tensor whose elements are all `number`, which the dtype must hold ([`Number::fits`]).
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// use selvedge::types::DType;
    /// let x = Tensor::full(&[2, 2], 1.5, DType::F64, &Device::cpu())?;
    /// assert_eq!(x.to_vec::<f64>()?, [1.5; 4]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a number that the dtype does not hold; as
    /// [`zeros`](Self::zeros).
    pub fn full(
        shape: &[usize],
        fill_value: impl Into<Number>,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        let fill_value = fill_value.into();
        fill_value.check("full", dtype)?;
        let mut fresh = Output::new(device, dtype, shape)?;
        let mut inputs = Inputs::default();
        inputs.push(&fill_value.into());
        CachedOperation::cast(OperandKind::Number(fill_value.kind()), dtype)
            .run_into(&inputs, OutputTarget::all(&mut fresh))?;
        Ok(fresh.into_tensor())
    }

    /// Returns a tensor of zeros; false for bools.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// use selvedge::types::DType;
    /// let x = Tensor::zeros(&[2, 3], DType::F16, &Device::best())?;
    /// assert_eq!((x.count(), x.dtype()), (6, DType::F16));
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for more elements than an address space holds;
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) where the host or the device has no memory for them, and the
    /// driver's errors.
    pub fn zeros(shape: &[usize], dtype: DType, device: &Device) -> Result<Tensor> {
        if device.is_cpu() {
            return Ok(Output::zeros_on_host(dtype, shape)?.into_tensor());
        }
        let mut output = Output::new(device, dtype, shape)?;
        stream(device)?.fill(output.memory_mut().cuda("zeros")?, 0u8)?;
        Ok(output.into_tensor())
    }

    /// Returns a tensor of ones; true for bools.
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    pub fn ones(shape: &[usize], dtype: DType, device: &Device) -> Result<Tensor> {
        Tensor::full(shape, 1, dtype, device)
    }

    /// Returns a tensor with unspecified elements, for a program that writes all of them. Bools are false.
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    pub fn empty(shape: &[usize], dtype: DType, device: &Device) -> Result<Tensor> {
        match dtype {
            // A byte that is neither 0 nor 1 is no bool.
            DType::Bool => Tensor::zeros(shape, dtype, device),
            _ => Ok(Output::new(device, dtype, shape)?.into_tensor()),
        }
    }

    /// Returns a tensor of this one's shape and dtype, on its device, with unspecified elements; see [`empty`](Self::empty).
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    pub fn empty_like(&self) -> Result<Tensor> {
        Tensor::empty(self.shape(), self.dtype(), &self.device())
    }

    /// Returns zeros of this tensor's shape and dtype, on its device.
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    pub fn zeros_like(&self) -> Result<Tensor> {
        Tensor::zeros(self.shape(), self.dtype(), &self.device())
    }

    /// Returns ones of this tensor's shape and dtype, on its device.
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    pub fn ones_like(&self) -> Result<Tensor> {
        Tensor::ones(self.shape(), self.dtype(), &self.device())
    }

    /// Returns a tensor of this one's shape and dtype, on its device, whose elements are all `number`.
    ///
    /// # Errors
    ///
    /// As [`full`](Self::full).
    pub fn full_like(&self, fill_value: impl Into<Number>) -> Result<Tensor> {
        Tensor::full(self.shape(), fill_value, self.dtype(), &self.device())
    }
}
