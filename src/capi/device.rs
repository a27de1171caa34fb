//! Devices. A device is its ordinal, from 0; `SV_CPU` is the CPU where a function takes either.

use std::ffi::{c_char, c_void};
use std::time::Duration;

use super::arguments::{out, write_text};
use super::error::{Failure, Result};
use super::guard;
use super::status::SV_ERROR_INVALID_ARGUMENT;
use crate::driver::{Attribute, Device};

/// The CPU, where a function takes a CUDA device or the CPU.
pub const SV_CPU: i32 = -1;

/// Returns the CUDA device of an ordinal. `user` is a noun for the message of an error: that which needs the device.
pub(super) fn cuda(ordinal: i32, user: &str) -> Result<Device> {
    if ordinal == SV_CPU {
        let message = format!("device: {user} needs a CUDA device, but this is the CPU");
        return Err(Failure { status: SV_ERROR_INVALID_ARGUMENT, message });
    }
    let index = usize::try_from(ordinal)
        .map_err(|_| Failure::argument("device", ordinal, "the ordinal of a CUDA device, from 0"))?;
    Ok(Device::new(index)?)
}

/// Writes the number of CUDA devices. Without a driver this is `SV_ERROR_LIBRARY_UNAVAILABLE`, with the paths tried.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_count(count: *mut i32) -> i32 {
    guard::call("sv_device_count", || {
        let count = out(count, "count")?;
        count.write(i32::try_from(Device::count()?).unwrap_or(i32::MAX));
        Ok(())
    })
}

/// Writes the name of a device; that of `SV_CPU` is "CPU". `text`, `capacity` and `length` are as for `sv_library_report`.
///
/// # Safety
///
/// `text` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_name(
    device: i32,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_device_name", || {
        let cuda = if device == SV_CPU { None } else { Some(cuda(device, "a name")?) };
        write_text(cuda.as_ref().map_or("CPU", Device::name), text, capacity, length)
    })
}

/// Writes the compute capability of a device, such as 9 and 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_compute_capability(device: i32, major: *mut i32, minor: *mut i32) -> i32 {
    guard::call("sv_device_compute_capability", || {
        let (major, minor) = (out(major, "major")?, out(minor, "minor")?);
        let capability = cuda(device, "a compute capability")?.compute_capability();
        major.write(capability.0);
        minor.write(capability.1);
        Ok(())
    })
}

/// Writes an attribute of a device; `attribute` is a `CUdevice_attribute` of the driver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_attribute(device: i32, attribute: i32, value: *mut i32) -> i32 {
    guard::call("sv_device_attribute", || {
        let value = out(value, "value")?;
        value.write(cuda(device, "an attribute")?.attribute(Attribute(attribute))?);
        Ok(())
    })
}

/// Writes the free and the total memory of a device in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_memory(device: i32, free: *mut u64, total: *mut u64) -> i32 {
    guard::call("sv_device_memory", || {
        let (free, total) = (out(free, "free")?, out(total, "total")?);
        let info = cuda(device, "the size of free memory")?.memory_info()?;
        free.write(info.free);
        total.write(info.total);
        Ok(())
    })
}

/// Waits for all work on a device, and returns the error of a kernel that faulted or reported one. `SV_CPU` has no work left when
/// a call returns, so there is no wait for it.
#[unsafe(no_mangle)]
pub extern "C" fn sv_device_synchronize(device: i32) -> i32 {
    guard::call("sv_device_synchronize", || match device {
        SV_CPU => Ok(()),
        device => Ok(cuda(device, "a wait")?.synchronize()?),
    })
}

/// Ends the context of a device and begins a new one. Handles of the old context answer `SV_ERROR_CONTEXT_LOST` and can
/// still be released.
///
/// # Safety
///
/// All CUDA code of the process shares the context and loses its memory, streams and modules: none may be in use. No other
/// thread is in a call for this device, no pinned buffer of this device is used afterwards, and no work of another device uses
/// this one's memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_reset(device: i32) -> i32 {
    guard::call("sv_device_reset", || {
        cuda(device, "a reset")?.reset()?;
        Ok(())
    })
}

/// Returns the two devices of an access between peers.
fn peers(device: i32, other: i32) -> Result<[Device; 2]> {
    Ok([cuda(device, "an access between devices")?, cuda(other, "an access between devices")?])
}

/// Writes 1 if kernels of a device can use memory of `other`, else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_can_access_peer(device: i32, other: i32, can: *mut i32) -> i32 {
    guard::call("sv_device_can_access_peer", || {
        let can = out(can, "can")?;
        let [device, other] = peers(device, other)?;
        can.write(i32::from(device.can_access_peer(&other)?));
        Ok(())
    })
}

/// Lets kernels of a device use memory of `other`. Does nothing if they already may. Copies between devices need no such
/// access.
#[unsafe(no_mangle)]
pub extern "C" fn sv_device_enable_peer_access(device: i32, other: i32) -> i32 {
    guard::call("sv_device_enable_peer_access", || {
        let [device, other] = peers(device, other)?;
        Ok(device.enable_peer_access(&other)?)
    })
}

/// Revokes the access of `sv_device_enable_peer_access`, after a wait for the device. Does nothing if it was not enabled.
#[unsafe(no_mangle)]
pub extern "C" fn sv_device_disable_peer_access(device: i32, other: i32) -> i32 {
    guard::call("sv_device_disable_peer_access", || {
        let [device, other] = peers(device, other)?;
        Ok(device.disable_peer_access(&other)?)
    })
}

/// Writes the `CUcontext` of a device, which is its primary context, for other CUDA code.
///
/// The context lives as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_context(device: i32, context: *mut *mut c_void) -> i32 {
    guard::call("sv_device_context", || {
        let context = out(context, "context")?;
        context.write(cuda(device, "a context")?.as_raw_context());
        Ok(())
    })
}

/// Writes the ordinal of the device of a `CUcontext`. A context that is not the primary one of its device is
/// `SV_ERROR_INVALID_ARGUMENT`: this library shares no other.
///
/// # Safety
///
/// `context` is a live context or NULL, and `device` points to an `int32_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_of_context(context: *mut c_void, device: *mut i32) -> i32 {
    guard::call("sv_device_of_context", || {
        let device = out(device, "device")?;
        device.write(Device::from_context(context)?.ordinal() as i32);
        Ok(())
    })
}

/// Returns a duration of milliseconds.
pub(super) fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}
