//! [`WithMemory`], a kernel's parameters with the memory at their addresses, and [`place`] of operands.

use bytemuck::Pod;

use crate::driver::image::ArgumentKind;
use crate::driver::{DeviceSlice, DeviceSliceMut, KernelArgument, LaunchTarget};
use crate::error::Result;
use crate::types::Layout;

/// Returns the address of a layout's first element of 16 bits, and its strides between batches, heads and positions.
pub(super) fn place(address: u64, layout: &Layout) -> (u64, [i64; 3]) {
    let strides = layout.strides();
    let stride = |axis: usize| strides.get(axis).copied().unwrap_or(0) as i64;
    (address + (layout.offset() * size_of::<u16>()) as u64, [stride(0), stride(1), stride(2)])
}

/// A kernel's parameters, with the memory at their addresses.
pub(super) struct WithMemory<'a, P, const READS: usize, const WRITES: usize> {
    pub(super) parameters: P,
    pub(super) reads: [DeviceSlice<'a, u8>; READS],
    pub(super) writes: [DeviceSliceMut<'a, u8>; WRITES],
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
