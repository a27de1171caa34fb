//! The memory pool of a device.

use std::ffi::c_char;

use super::arguments::{out_structure, write_text};
use super::device::{SV_CPU, cuda};
use super::guard;

/// No limit, for `sv_device_set_memory_limit`.
pub const SV_NO_LIMIT: u64 = u64::MAX;

/// The statistics of a device's memory pool. Sizes are in bytes.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct sv_pool_statistics {
    /// The size of this struct, set by the caller.
    pub size: usize,
    /// Blocks in use by buffers.
    pub live_bytes: u64,
    /// The peak of `live_bytes`.
    pub peak_live_bytes: u64,
    /// Bytes requested by live buffers; the rest of `live_bytes` is rounding.
    pub requested_bytes: u64,
    /// The peak of `requested_bytes`.
    pub peak_requested_bytes: u64,
    /// Blocks cached for reuse.
    pub cached_bytes: u64,
    /// Bytes obtained from the driver and not returned.
    pub reserved_bytes: u64,
    /// The peak of `reserved_bytes`.
    pub peak_reserved_bytes: u64,
    /// The largest cached block, or the largest run of adjacent ones.
    pub largest_cached_bytes: u64,
    /// Buffers requested.
    pub requests: u64,
    /// Requests served by a cached block.
    pub hits: u64,
    /// Allocations from the driver.
    pub driver_allocations: u64,
    /// Allocations returned to the driver.
    pub driver_frees: u64,
}

/// Writes the statistics of a device's memory pool. For `SV_CPU` they are those of tensors: `live_bytes`, `peak_live_bytes` and
/// `cached_bytes`; the others are 0.
///
/// # Safety
///
/// `statistics` points to a struct whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_pool_statistics(device: i32, statistics: *mut sv_pool_statistics) -> i32 {
    guard::call("sv_device_pool_statistics", || {
        let result = out_structure(statistics, "statistics")?;
        if device == SV_CPU {
            let found = crate::tensor::host_memory_statistics();
            result.write(sv_pool_statistics {
                live_bytes: found.live_bytes as u64,
                peak_live_bytes: found.peak_live_bytes as u64,
                cached_bytes: found.cached_bytes as u64,
                ..sv_pool_statistics::default()
            });
            return Ok(());
        }
        let found = cuda(device, "a memory pool")?.pool_statistics();
        result.write(sv_pool_statistics {
            size: 0,
            live_bytes: found.live_bytes,
            peak_live_bytes: found.peak_live_bytes,
            requested_bytes: found.requested_bytes,
            peak_requested_bytes: found.peak_requested_bytes,
            cached_bytes: found.cached_bytes,
            reserved_bytes: found.reserved_bytes,
            peak_reserved_bytes: found.peak_reserved_bytes,
            largest_cached_bytes: found.largest_cached_bytes,
            requests: found.requests,
            hits: found.hits,
            driver_allocations: found.driver_allocations,
            driver_frees: found.driver_frees,
        });
        Ok(())
    })
}

/// Sets the most device memory that buffers may take from the driver, in use and cached together, in bytes; `SV_NO_LIMIT`
/// removes the limit. Memory already above it is kept.
#[unsafe(no_mangle)]
pub extern "C" fn sv_device_set_memory_limit(device: i32, bytes: u64) -> i32 {
    guard::call("sv_device_set_memory_limit", || {
        Ok(cuda(device, "a limit of memory")?.set_memory_limit((bytes != SV_NO_LIMIT).then_some(bytes))?)
    })
}

/// Waits for a device and returns all cached memory to the driver: device memory, pinned memory, events, and what was
/// released while in use. For `SV_CPU` it frees the blocks of freed tensors.
#[unsafe(no_mangle)]
pub extern "C" fn sv_device_trim(device: i32) -> i32 {
    guard::call("sv_device_trim", || match device {
        SV_CPU => Ok(crate::Device::cpu().trim()?),
        device => Ok(cuda(device, "a memory pool")?.trim()?),
    })
}

/// Writes the layout of a device's memory pool as JSON. `text`, `capacity` and `length` are as for `sv_library_report`.
///
/// # Safety
///
/// `text` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_memory_snapshot(
    device: i32,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_device_memory_snapshot", || {
        let snapshot = cuda(device, "a snapshot of memory")?.memory_snapshot()?.to_json();
        write_text(&snapshot, text, capacity, length)
    })
}
