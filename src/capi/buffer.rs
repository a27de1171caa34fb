//! Device memory: buffers of bytes, copies, fills, and memory of other code.

use std::ffi::c_void;
use std::sync::Arc;

use super::arguments::{out, slice, slice_mut};
use super::error::{Failure, Result};
use super::guard;
use super::handle::{Object, object, sv_buffer, sv_stream};
use super::status::SV_ERROR_OUT_OF_RANGE;
use super::stream::stream;
use crate::driver::{DeviceBuffer, DeviceSlice, DeviceSliceMut, View};

/// A buffer behind a handle. Several threads may use it, so every use is one of a part of the buffer: the driver orders it
/// behind all earlier uses by other streams.
#[derive(Clone)]
pub(super) struct BufferObject(pub(super) Arc<DeviceBuffer<u8>>);
object!(BufferObject, Buffer);

impl BufferObject {
    /// Returns the bytes of a range, for a use that the caller orders with those of other threads.
    pub(super) fn view(&self, offset: u64, bytes: u64, name: &str) -> Result<View<'_>> {
        let length = self.0.len() as u64;
        let last = offset.checked_add(bytes).filter(|last| *last <= length);
        if last.is_none() {
            let message = format!(
                "{name}: found {bytes} bytes at offset {offset}; wanted a range inside of its {length} bytes"
            );
            return Err(Failure { status: SV_ERROR_OUT_OF_RANGE, message });
        }
        let address = self.0.address + offset;
        Ok(View { allocation: &self.0.allocation, address, length: bytes as usize, whole: false })
    }

    fn read(&self, offset: u64, bytes: u64, name: &str) -> Result<DeviceSlice<'_, u8>> {
        Ok(DeviceSlice::new(self.view(offset, bytes, name)?))
    }

    fn write(&self, offset: u64, bytes: u64, name: &str) -> Result<DeviceSliceMut<'_, u8>> {
        Ok(DeviceSliceMut::new(self.view(offset, bytes, name)?))
    }

    /// Returns the range as the whole of `bytes` bytes, for a transfer that needs all of a pinned buffer.
    pub(super) fn slices(
        &self,
        offset: u64,
        bytes: usize,
        name: &str,
    ) -> Result<(DeviceSlice<'_, u8>, DeviceSliceMut<'_, u8>)> {
        Ok((self.read(offset, bytes as u64, name)?, self.write(offset, bytes as u64, name)?))
    }
}

/// Returns the buffer of a handle.
pub(super) fn buffer(handle: u64, name: &str) -> Result<BufferObject> {
    BufferObject::table().get(handle, name)
}

fn insert(buffer: DeviceBuffer<u8>) -> Result<u64> {
    BufferObject::table().insert(BufferObject(Arc::new(buffer)))
}

fn size(bytes: u64) -> Result<usize> {
    let fits = usize::try_from(bytes).ok().filter(|bytes| isize::try_from(*bytes).is_ok());
    fits.ok_or_else(|| Failure::argument("bytes", bytes, "a size that fits the address space"))
}

/// Allocates device memory for a stream, with unspecified contents. The memory comes from a pool and costs no driver call
/// where a block is cached.
///
/// Any stream of any device that can reach the memory may use it: each operation waits on the device for the conflicting ones
/// before it. Releasing the buffer frees the memory behind the work that uses it. Work that two threads issue to one
/// buffer at the same time runs in either order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_buffer_create(stream: sv_stream, bytes: u64, buffer: *mut sv_buffer) -> i32 {
    guard::call("sv_buffer_create", || {
        let result = out(buffer, "buffer")?;
        let stream = self::stream(stream, "stream")?;
        result.write(insert(stream.uninitialized(size(bytes)?)?)?);
        Ok(())
    })
}

/// As `sv_buffer_create`, with bytes that are all zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_buffer_zeros(stream: sv_stream, bytes: u64, buffer: *mut sv_buffer) -> i32 {
    guard::call("sv_buffer_zeros", || {
        let result = out(buffer, "buffer")?;
        let stream = self::stream(stream, "stream")?;
        result.write(insert(stream.zeros(size(bytes)?)?)?);
        Ok(())
    })
}

/// Writes the device address of the first byte, which is 0 for an empty buffer.
///
/// The library does not see uses of the address by other code: order them with events.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_buffer_address(buffer: sv_buffer, address: *mut u64) -> i32 {
    guard::call("sv_buffer_address", || {
        let address = out(address, "address")?;
        address.write(self::buffer(buffer, "buffer")?.0.address());
        Ok(())
    })
}

/// Writes the number of bytes of a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_buffer_size(buffer: sv_buffer, bytes: *mut u64) -> i32 {
    guard::call("sv_buffer_size", || {
        let bytes = out(bytes, "bytes")?;
        bytes.write(self::buffer(buffer, "buffer")?.0.len() as u64);
        Ok(())
    })
}

/// Writes the ordinal of the device that holds a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_buffer_device(buffer: sv_buffer, device: *mut i32) -> i32 {
    guard::call("sv_buffer_device", || {
        let device = out(device, "device")?;
        device.write(self::buffer(buffer, "buffer")?.0.device().ordinal() as i32);
        Ok(())
    })
}

/// Copies `bytes` bytes of the host to a buffer, from `offset` on. The call returns when the host's memory is no longer used.
///
/// # Safety
///
/// `data` points to `bytes` bytes that nobody writes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_buffer_upload(
    stream: sv_stream,
    buffer: sv_buffer,
    offset: u64,
    data: *const c_void,
    bytes: usize,
) -> i32 {
    guard::call("sv_buffer_upload", || {
        let data = slice(data.cast::<u8>(), bytes, "data")?;
        let stream = self::stream(stream, "stream")?;
        let buffer = self::buffer(buffer, "buffer")?;
        Ok(stream.copy_from_host(data, &mut buffer.write(offset, bytes as u64, "buffer")?)?)
    })
}

/// Copies `bytes` bytes of a buffer, from `offset` on, to the host, behind the work that writes them. The call waits for the
/// copy, and returns the error of a kernel that faulted or reported one.
///
/// # Safety
///
/// `data` points to `bytes` bytes that nobody else uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_buffer_download(
    stream: sv_stream,
    buffer: sv_buffer,
    offset: u64,
    data: *mut c_void,
    bytes: usize,
) -> i32 {
    guard::call("sv_buffer_download", || {
        let data = slice_mut(data.cast::<u8>(), bytes, "data")?;
        let stream = self::stream(stream, "stream")?;
        let buffer = self::buffer(buffer, "buffer")?;
        Ok(stream.copy_to_host(&buffer.read(offset, bytes as u64, "buffer")?, data)?)
    })
}

/// Copies bytes of a buffer to another one, or to another place in it that does not overlap. The buffers may be on two
/// devices, of which the stream belongs to one. The host does not wait.
#[unsafe(no_mangle)]
pub extern "C" fn sv_buffer_copy(
    stream: sv_stream,
    source: sv_buffer,
    source_offset: u64,
    destination: sv_buffer,
    destination_offset: u64,
    bytes: u64,
) -> i32 {
    guard::call("sv_buffer_copy", || {
        let stream = self::stream(stream, "stream")?;
        let (source, destination) = (buffer(source, "source")?, buffer(destination, "destination")?);
        let from = source.read(source_offset, bytes, "source")?;
        let mut to = destination.write(destination_offset, bytes, "destination")?;
        let is_same = Arc::ptr_eq(&source.0.allocation, &destination.0.allocation);
        if is_same && bytes > 0 && source_offset.abs_diff(destination_offset) < bytes {
            let found = format!("an overlap with the source ({source_offset}, {destination_offset})");
            return Err(Failure::argument("destination_offset", found, "ranges that do not overlap"));
        }
        Ok(stream.copy(&from, &mut to)?)
    })
}

/// Sets `count` values of a buffer, from the byte at `offset` on, to the value at `value` of `value_bytes` bytes: 1, 2, 4,
/// 8 or 16. The offset is a multiple of the value's size. The host does not wait.
///
/// # Safety
///
/// `value` points to `value_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_buffer_fill(
    stream: sv_stream,
    buffer: sv_buffer,
    offset: u64,
    value: *const c_void,
    value_bytes: usize,
    count: u64,
) -> i32 {
    guard::call("sv_buffer_fill", || {
        if ![1, 2, 4, 8, 16].contains(&value_bytes) {
            return Err(Failure::argument("value_bytes", value_bytes, "1, 2, 4, 8 or 16"));
        }
        let value = slice(value.cast::<u8>(), value_bytes, "value")?;
        let stream = self::stream(stream, "stream")?;
        let buffer = self::buffer(buffer, "buffer")?;
        let bytes = count.checked_mul(value_bytes as u64);
        let bytes = bytes.ok_or_else(|| Failure::argument("count", count, "at most 2^64 - 1 bytes"))?;
        let mut to = buffer.write(offset, bytes, "buffer")?;
        // The sizes fit, so these conversions succeed.
        let word =
            |at: usize| value.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes);
        match (value, word(0), word(4), word(8), word(12)) {
            (&[byte], ..) => stream.fill(&mut to, byte)?,
            (&[first, second], ..) => {
                stream.fill(&mut to.reinterpret()?, u16::from_ne_bytes([first, second]))?
            }
            (_, Some(a), Some(b), Some(c), Some(d)) => stream.fill(&mut to.reinterpret()?, [a, b, c, d])?,
            (_, Some(a), Some(b), ..) => stream.fill(&mut to.reinterpret()?, [a, b])?,
            (_, Some(a), ..) => stream.fill(&mut to.reinterpret()?, a)?,
            _ => return Err(Failure::argument("value_bytes", value_bytes, "1, 2, 4, 8 or 16")),
        }
        Ok(())
    })
}

/// A function that frees memory of other code.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type sv_deleter = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// The caller's pointer for a callback.
pub(super) struct User(pub(super) *mut c_void);

// SAFETY: the library only hands the pointer back; the docs of each function say on which threads.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl User {
    /// Returns the pointer. A method, so that a closure captures the whole value.
    pub(super) fn pointer(&self) -> *mut c_void {
        self.0
    }
}

/// Takes over `bytes` bytes of device memory of other code as a buffer. The contents are ordered on `stream`: other streams
/// wait for its work. Use a stream of `sv_stream_from_raw` for memory that other code has just written.
///
/// `deleter`, if not NULL, is called once with `user`, after the last reference was dropped and every use of the memory is
/// done. It runs on the thread that finds this out: one that releases a buffer, or that waits for a stream or a device, or
/// that calls `sv_shutdown`. It may call CUDA and this library. It is not called where this function fails, nor in a forked
/// process.
///
/// # Safety
///
/// The memory is valid until the deleter is called, and other code uses it only in the order of `stream`. `deleter` may be called
/// from any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_buffer_from_raw(
    stream: sv_stream,
    address: u64,
    bytes: u64,
    deleter: sv_deleter,
    user: *mut c_void,
    buffer: *mut sv_buffer,
) -> i32 {
    guard::call("sv_buffer_from_raw", || {
        let result = out(buffer, "buffer")?;
        let stream = self::stream(stream, "stream")?;
        let user = User(user);
        let free = move || {
            if let Some(deleter) = deleter {
                // SAFETY: the caller vouches for the function and its pointer.
                unsafe { deleter(user.pointer()) }
            }
        };
        let buffer = DeviceBuffer::from_raw(&stream, address, size(bytes)?, free)?;
        result.write(insert(buffer)?);
        Ok(())
    })
}
