//! Launches of kernels, with arguments that are checked against the kernel's parameters.

use std::ffi::c_void;

use super::arguments::{slice, structure};
use super::buffer::{BufferObject, buffer};
use super::error::{Failure, Result};
use super::guard;
use super::handle::{sv_buffer, sv_function, sv_stream};
use super::module::function;
use super::stream::stream;
use crate::driver::image::ArgumentKind;
use crate::driver::{Argument, LaunchConfig};

/// An integer, or a `bool` of one byte: `bytes` bytes at `value`.
pub const SV_ARGUMENT_INTEGER: u32 = 1;
/// A floating-point number: `bytes` bytes at `value`.
pub const SV_ARGUMENT_FLOAT: u32 = 2;
/// A struct or array by value: `bytes` bytes at `value`.
pub const SV_ARGUMENT_BYTES: u32 = 3;
/// A device address that the library does not track: 8 bytes at `value`.
pub const SV_ARGUMENT_ADDRESS: u32 = 4;
/// A buffer that the kernel reads, from the byte at `offset` on.
pub const SV_ARGUMENT_READ: u32 = 5;
/// A buffer that the kernel writes, or reads and writes, from the byte at `offset` on.
pub const SV_ARGUMENT_WRITE: u32 = 6;

/// Launches all blocks at once, so that they may wait for each other.
pub const SV_LAUNCH_COOPERATIVE: u32 = 1;
/// Lets the kernel start before the preceding kernel of the stream has ended. Every block then waits for that end by
/// `griddepcontrol.wait` before it touches memory.
pub const SV_LAUNCH_PROGRAMMATIC_DEPENDENT: u32 = 2;
/// Uses `priority` in place of the stream's.
pub const SV_LAUNCH_PRIORITY: u32 = 4;

/// The most bytes of a kernel's parameter.
const MAX_VALUE_BYTES: usize = 1 << 16;
/// The most arguments of a launch: a kernel has at most 32,764 bytes of parameters, and each has at least one.
const MAX_ARGUMENTS: usize = 32_764;

/// One argument of a launch. Fields that the kind does not use are zero.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct sv_argument {
    /// `SV_ARGUMENT_...`.
    pub kind: u32,
    /// Zero.
    pub reserved: u32,
    /// The handle of a buffer.
    pub buffer: sv_buffer,
    /// The offset in the buffer, in bytes.
    pub offset: u64,
    /// The value, copied by the launch.
    pub value: *const c_void,
    /// The size of the value in bytes.
    pub bytes: usize,
}

/// The shape of a launch.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct sv_launch_config {
    /// The size of this struct, set by the caller.
    pub size: usize,
    /// Blocks in the grid in x, y and z. 0 in y or z counts as 1.
    pub grid: [u32; 3],
    /// Threads per block in x, y and z. 0 in y or z counts as 1.
    pub block: [u32; 3],
    /// Blocks per cluster in x, y and z; zeros without clusters.
    pub cluster: [u32; 3],
    /// Dynamic shared memory per block, in bytes.
    pub shared: u32,
    /// `SV_LAUNCH_...`, combined by `|`.
    pub flags: u32,
    /// The priority, with `SV_LAUNCH_PRIORITY`.
    pub priority: i32,
}

fn extents([x, y, z]: [u32; 3]) -> [u32; 3] {
    [x, y.max(1), z.max(1)]
}

fn config(given: &sv_launch_config) -> Result<LaunchConfig> {
    const KNOWN: u32 = SV_LAUNCH_COOPERATIVE | SV_LAUNCH_PROGRAMMATIC_DEPENDENT | SV_LAUNCH_PRIORITY;
    if given.flags & !KNOWN != 0 {
        return Err(Failure::argument("config", format!("the flags {:#x}", given.flags), "SV_LAUNCH_ flags"));
    }
    let mut config = LaunchConfig::new(extents(given.grid), extents(given.block)).shared(given.shared);
    if given.cluster != [0; 3] {
        config = config.cluster(extents(given.cluster));
    }
    if given.flags & SV_LAUNCH_COOPERATIVE != 0 {
        config = config.cooperative();
    }
    if given.flags & SV_LAUNCH_PROGRAMMATIC_DEPENDENT != 0 {
        config = config.programmatic_dependent();
    }
    if given.flags & SV_LAUNCH_PRIORITY != 0 {
        config = config.priority(given.priority);
    }
    Ok(config)
}

/// Returns the buffer of each argument that names one.
fn buffers(arguments: &[sv_argument]) -> Result<Vec<Option<BufferObject>>> {
    let buffer = |(at, argument): (usize, &sv_argument)| match argument.kind {
        SV_ARGUMENT_READ | SV_ARGUMENT_WRITE => {
            self::buffer(argument.buffer, &format!("arguments[{at}].buffer")).map(Some)
        }
        _ => Ok(None),
    };
    arguments.iter().enumerate().map(buffer).collect()
}

/// # Safety
///
/// The value of each argument points to its bytes.
unsafe fn arguments<'a>(
    given: &[sv_argument],
    buffers: &'a [Option<BufferObject>],
) -> Result<Vec<Argument<'a>>> {
    let mut found = Vec::with_capacity(given.len());
    for (at, (argument, buffer)) in given.iter().zip(buffers).enumerate() {
        if argument.reserved != 0 {
            let name = format!("arguments[{at}].reserved");
            return Err(Failure::argument(&name, argument.reserved, "0"));
        }
        if let Some(buffer) = buffer {
            let name = format!("arguments[{at}].offset");
            let length = buffer.0.len() as u64;
            let view = buffer.view(argument.offset, length.saturating_sub(argument.offset), &name)?;
            found.push(Argument::memory(view, argument.kind == SV_ARGUMENT_WRITE));
            continue;
        }
        let kind = match argument.kind {
            SV_ARGUMENT_INTEGER => ArgumentKind::Integer,
            SV_ARGUMENT_FLOAT => ArgumentKind::Float,
            SV_ARGUMENT_BYTES => ArgumentKind::Bytes,
            SV_ARGUMENT_ADDRESS => ArgumentKind::Address,
            other => {
                let name = format!("arguments[{at}].kind");
                return Err(Failure::argument(&name, other, "one of SV_ARGUMENT_..."));
            }
        };
        if argument.bytes == 0 || argument.bytes > MAX_VALUE_BYTES {
            let name = format!("arguments[{at}].bytes");
            return Err(Failure::argument(&name, argument.bytes, "1 to 65536"));
        }
        let name = format!("arguments[{at}].value");
        let value = slice(argument.value.cast::<u8>(), argument.bytes, &name)?;
        found.push(Argument::value(kind, value));
    }
    Ok(found)
}

/// Launches a kernel on a stream. The arguments are checked against the kernel's parameters, in number, size and kind, as far
/// as the image gives them; nothing is launched where one does not fit.
///
/// The stream waits for all earlier uses of the buffers, on any stream. The host does not wait: the next call that waits reports
/// a fault of the kernel. Values are copied.
///
/// # Safety
///
/// `config` points to a struct whose `size` is set, and `arguments` to `count` arguments, whose values point to their bytes.
/// The kernel stays inside of the buffers, writes only to those of `SV_ARGUMENT_WRITE`, and the caller orders its uses of raw
/// addresses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_launch(
    function: sv_function,
    stream: sv_stream,
    config: *const sv_launch_config,
    arguments: *const sv_argument,
    count: usize,
) -> i32 {
    guard::call("sv_launch", || {
        let (config, given) = (structure(config, "config")?, slice(arguments, count, "arguments")?);
        let function = self::function(function, "function")?;
        let stream = self::stream(stream, "stream")?;
        let config = self::config(config)?;
        if count > MAX_ARGUMENTS {
            return Err(Failure::argument("count", count, &format!("at most {MAX_ARGUMENTS}")));
        }
        let buffers = buffers(given)?;
        let arguments = self::arguments(given, &buffers)?;
        function.launch(&stream, config, &arguments)?;
        Ok(())
    })
}
