//! The heap's backing by a driver: pages by virtual memory management if the device supports it, else segments.
//!
//! None of the page calls made here waits for running kernels (measured on H200, driver 580). Freeing a segment does,
//! so only a trim does it.
//!
//! Mapped pages are accessible to the devices with peer access.

use std::sync::Arc;

use super::arena::FreeAfter;
use super::backing::{Backing, ReturnedBlock};
use super::mode::PoolMode;
use super::order::{GROUP_POSITION, Orders, drain_cache};
use crate::driver::attribute::Attribute;
use crate::driver::context::{OUT_OF_MEMORY, SUCCESS, call};
use crate::driver::device::{Device, DeviceState};
use crate::driver::stream::StreamState;
use crate::error::Result;
use crate::sys::driver::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags, CUmemAllocationProp_v1,
    CUmemAllocationType, CUmemLocation, CUmemLocationType,
};

/// A driver, for the length of one visit to the heap.
pub(crate) struct DriverBacking<'a> {
    pub(crate) device: &'static DeviceState,
    pub(crate) orders: &'a mut Orders,
    pub(crate) granularity: Option<u64>,
    /// Streams in use, which are dropped after the heap's lock is released.
    pub(crate) held: &'a mut Vec<Arc<StreamState>>,
}

pub(crate) fn location(device: &DeviceState) -> CUmemLocation {
    CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: device.ordinal }
}

fn properties(device: &DeviceState) -> CUmemAllocationProp_v1 {
    CUmemAllocationProp_v1 {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        location: location(device),
        ..CUmemAllocationProp_v1::default()
    }
}

/// Returns the access rights of a device to memory.
pub(crate) fn access(device: &DeviceState, may: bool) -> CUmemAccessDesc {
    let flags = if may {
        CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    } else {
        CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE
    };
    CUmemAccessDesc { location: location(device), flags }
}

/// Returns the rights of this device and of all devices that may use its memory.
pub(crate) fn users(device: &'static DeviceState) -> Vec<CUmemAccessDesc> {
    let others = DeviceState::opened();
    let peers =
        others.into_iter().filter(|other| !std::ptr::eq(*other, device) && other.can_use_memory_of(device));
    std::iter::once(device).chain(peers).map(|user| access(user, true)).collect()
}

impl DeviceState {
    /// Returns the smallest page, if the device has virtual memory management and the mode uses it. The context must be
    /// current.
    pub(crate) fn page_granularity(&'static self, mode: PoolMode) -> Result<Option<u64>> {
        let supported = Attribute::VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED;
        if mode != PoolMode::Cached || Device(self).attribute(supported)? == 0 {
            return Ok(None);
        }
        let mut bytes = 0usize;
        let minimum = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        // SAFETY: the pointers are to locals.
        unsafe { call!(self, cuMemGetAllocationGranularity(&mut bytes, &properties(self), minimum))? };
        Ok(Some((bytes as u64).next_power_of_two()))
    }

    /// Sets devices' access rights to mapped memory. The context must be current.
    pub(crate) fn set_access(
        &'static self,
        address: u64,
        bytes: u64,
        rights: &[CUmemAccessDesc],
    ) -> Result<()> {
        // SAFETY: the range is mapped, and the list is as long as it says.
        unsafe { call!(self, cuMemSetAccess(address, bytes as usize, rights.as_ptr(), rights.len())) }
    }

    /// Checks a status, where a lack of memory returns false.
    fn memory_status(&self, call: &'static str, status: crate::sys::driver::CUresult) -> Result<bool> {
        match status.0 {
            SUCCESS => Ok(true),
            OUT_OF_MEMORY => Ok(false),
            _ => self.check(call, status).map(|()| true),
        }
    }

    /// Allocates driver memory; `None` if there is no memory. The context must be current.
    pub(crate) fn allocate_of_driver(&self, bytes: u64) -> Result<Option<u64>> {
        let mut address = 0u64;
        // SAFETY: the pointer is to a local; the device's context is current.
        let status = unsafe { (self.api.cuMemAlloc()?)(&mut address, bytes as usize) };
        Ok(self.memory_status("cuMemAlloc", status)?.then_some(address))
    }
}

impl Backing for DriverBacking<'_> {
    fn granularity(&self) -> Option<u64> {
        self.granularity
    }

    fn reserve(&mut self, bytes: u64) -> Result<Option<u64>> {
        let mut address = 0u64;
        let reserve = self.device.api.cuMemAddressReserve()?;
        // SAFETY: the pointer is to a local.
        let status = unsafe { reserve(&mut address, bytes as usize, 0, 0, 0) };
        Ok(self.device.memory_status("cuMemAddressReserve", status)?.then_some(address))
    }

    fn unreserve(&mut self, address: u64, bytes: u64) -> Result<()> {
        // SAFETY: the range was reserved so, nothing is mapped in it, and it is freed once.
        unsafe { call!(self.device, cuMemAddressFree(address, bytes as usize)) }
    }

    fn create(&mut self, bytes: u64) -> Result<Option<u64>> {
        let mut page = 0;
        let create = self.device.api.cuMemCreate()?;
        // SAFETY: the pointers are to locals.
        let status = unsafe { create(&mut page, bytes as usize, &properties(self.device), 0) };
        Ok(self.device.memory_status("cuMemCreate", status)?.then_some(page))
    }

    fn release(&mut self, page: u64) -> Result<()> {
        // SAFETY: the page is mapped nowhere and is released once.
        unsafe { call!(self.device, cuMemRelease(page)) }
    }

    fn map(&mut self, address: u64, bytes: u64, page: u64) -> Result<()> {
        // SAFETY: the range is reserved, and nothing is mapped there.
        unsafe { call!(self.device, cuMemMap(address, bytes as usize, 0, page, 0)) }
    }

    fn set_access(&mut self, address: u64, bytes: u64) -> Result<()> {
        self.device.set_access(address, bytes, &users(self.device))
    }

    fn unmap(&mut self, address: u64, bytes: u64) -> Result<()> {
        // SAFETY: the range is whole mappings, and every use of it is done.
        unsafe { call!(self.device, cuMemUnmap(address, bytes as usize)) }
    }

    fn allocate(&mut self, bytes: u64) -> Result<Option<u64>> {
        self.device.allocate_of_driver(bytes)
    }

    fn free(&mut self, address: u64) -> Result<()> {
        // SAFETY: the segment belongs to the heap, and every use of it is done.
        unsafe { call!(self.device, cuMemFree(address)) }
    }

    fn done(&mut self, owner: u64) -> Result<u64> {
        self.orders.done(owner, self.device, self.held)
    }

    fn can_wait(&self, owner: u64) -> bool {
        self.orders.can_wait(owner)
    }

    fn drain(&mut self, returned: &mut Vec<ReturnedBlock>) {
        for entry in self.device.pool.accounting.caches() {
            drain_cache(&entry, self.orders, returned);
        }
        for (block, owner, events) in self.device.pool.take_inbox() {
            let after = if events.is_empty() {
                FreeAfter::NOTHING
            } else {
                self.orders.add_group(owner, events);
                FreeAfter { owner, position: GROUP_POSITION }
            };
            returned.push(ReturnedBlock { index: block.index, bytes: block.bytes as u64, after });
        }
        self.device.pool.accounting.forget_gone();
    }

    fn peak_live(&mut self, more: u64) -> u64 {
        self.device.pool.accounting.peak_with(more)
    }
}
