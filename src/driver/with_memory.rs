//! [`WithMemory`], a kernel's parameters with the memory at their addresses.

use bytemuck::Pod;

use super::image::ArgumentKind;
use super::{DeviceSlice, DeviceSliceMut, KernelArgument, LaunchTarget};
use crate::error::Result;

/// A kernel's parameters, with the memory at their addresses.
pub(crate) struct WithMemory<'a, P, const READS: usize, const WRITES: usize> {
    pub(crate) parameters: P,
    pub(crate) reads: [DeviceSlice<'a, u8>; READS],
    pub(crate) writes: [DeviceSliceMut<'a, u8>; WRITES],
}

// SAFETY: the pointer is that of the parameters, and their memory is entered.
unsafe impl<P: Pod, const READS: usize, const WRITES: usize> KernelArgument
    for WithMemory<'_, P, READS, WRITES>
{
    const KIND: ArgumentKind = ArgumentKind::Bytes;
    const SIZE: usize = size_of::<P>();

    fn enter(&self, target: LaunchTarget<'_>) -> Result<()> {
        for read in &self.reads {
            <DeviceSlice<'_, u8> as KernelArgument>::enter(read, target)?;
        }
        for written in &self.writes {
            <DeviceSliceMut<'_, u8> as KernelArgument>::enter(written, target)?;
        }
        Ok(())
    }

    fn pointer(&self) -> *mut std::ffi::c_void {
        std::ptr::from_ref(&self.parameters).cast_mut().cast()
    }
}
