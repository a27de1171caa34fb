//! [`DeviceProperties`], on which the choice of an image and of a kernel depends.

use crate::driver::{Attribute, Device, driver_isa};
use crate::error::Result;

/// The properties of a device and its driver that kernels are chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceProperties {
    /// The compute capability.
    pub capability: (i32, i32),
    /// The newest PTX ISA that the driver assembles; images need 8.0 (CUDA 12.0).
    pub driver_isa: (i32, i32),
    /// The multiprocessors.
    pub multiprocessors: u32,
}

impl DeviceProperties {
    /// Returns the properties of a device, which the driver is asked for once.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn from_device(device: &Device) -> Result<DeviceProperties> {
        super::load::properties(device)
    }

    /// Returns a reference device of this compute capability: the multiprocessors of an H200, and the oldest driver that
    /// loads the embedded images.
    pub const fn reference(capability: (i32, i32)) -> DeviceProperties {
        DeviceProperties { capability, driver_isa: (8, 0), multiprocessors: 132 }
    }

    pub(super) fn query(device: &Device) -> Result<DeviceProperties> {
        let multiprocessors = device.attribute(Attribute::MULTIPROCESSOR_COUNT)?;
        Ok(DeviceProperties {
            capability: device.compute_capability(),
            driver_isa: driver_isa()?,
            multiprocessors: u32::try_from(multiprocessors).unwrap_or(1).max(1),
        })
    }
}
