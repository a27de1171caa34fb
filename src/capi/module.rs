//! Modules, their kernels and their globals.

use std::ffi::{c_char, c_void};

use super::arguments::{out, out_structure, slice, slice_mut, text, write_text};
use super::device::cuda;
use super::error::{Failure, Result};
use super::guard;
use super::handle::{Object, object, sv_function, sv_module, sv_stream};
use super::status::SV_ERROR_LENGTH_MISMATCH;
use super::stream::stream;
use crate::driver::image::ParameterKind;
use crate::driver::{Function, Global, Module};

/// A module behind a handle.
#[derive(Clone)]
pub(super) struct ModuleObject(pub(super) Module);
object!(ModuleObject, Module);

/// A kernel behind a handle. It keeps its module loaded.
#[derive(Clone)]
pub(super) struct FunctionObject(pub(super) Function);
object!(FunctionObject, Function);

/// The image does not say what the parameter is.
pub const SV_PARAMETER_UNKNOWN: u32 = 0;
/// An integer; one of 8 bytes may hold an address.
pub const SV_PARAMETER_INTEGER: u32 = 1;
/// A floating-point number.
pub const SV_PARAMETER_FLOAT: u32 = 2;
/// A device address.
pub const SV_PARAMETER_ADDRESS: u32 = 3;
/// A struct or array by value.
pub const SV_PARAMETER_BYTES: u32 = 4;

/// The resources of a kernel, for `sv_function_attributes_get`.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct sv_function_attributes {
    /// The size of this struct, set by the caller.
    pub size: usize,
    /// Registers per thread.
    pub registers: u32,
    /// Static shared memory per block, in bytes.
    pub shared_bytes: u32,
    /// Constant memory, in bytes.
    pub constant_bytes: u32,
    /// Local memory per thread, in bytes.
    pub local_bytes: u32,
    /// The largest number of threads per block.
    pub max_threads_per_block: u32,
    /// The virtual architecture of the PTX, such as 60.
    pub ptx_version: u32,
    /// The architecture of the machine code, such as 90.
    pub binary_version: u32,
    /// The number of parameters, or `UINT32_MAX` if neither image nor driver gives it.
    pub parameters: u32,
}

/// Returns the module of a handle.
pub(super) fn module(handle: u64, name: &str) -> Result<Module> {
    Ok(ModuleObject::table().get(handle, name)?.0)
}

/// Returns the kernel of a handle.
pub(super) fn function(handle: u64, name: &str) -> Result<Function> {
    Ok(FunctionObject::table().get(handle, name)?.0)
}

/// Loads PTX, a cubin or a fatbin on a device. PTX needs no zero byte at its end.
///
/// The bytes are no longer used when the call returns. A kernel keeps its module loaded. Any thread may use the module.
///
/// # Safety
///
/// `image` points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_module_load(
    device: i32,
    image: *const c_void,
    bytes: usize,
    module: *mut sv_module,
) -> i32 {
    guard::call("sv_module_load", || {
        let (result, image) = (out(module, "module")?, slice(image.cast::<u8>(), bytes, "image")?);
        let module = cuda(device, "a module")?.load(image)?;
        result.write(ModuleObject::table().insert(ModuleObject(module))?);
        Ok(())
    })
}

/// Writes the log of the driver's assembler, which is usually empty. `log`, `capacity` and `length` are as for
/// `sv_library_report`.
///
/// # Safety
///
/// `log` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_module_log(
    module: sv_module,
    log: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_module_log", || write_text(self::module(module, "module")?.log(), log, capacity, length))
}

/// Writes the names of the kernels of a module, one a line. `names`, `capacity` and `length` are as for `sv_library_report`.
///
/// # Safety
///
/// `names` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_module_function_names(
    module: sv_module,
    names: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_module_function_names", || {
        let found = self::module(module, "module")?.function_names()?;
        let lines: String = found.into_iter().map(|name| name + "\n").collect();
        write_text(&lines, names, capacity, length)
    })
}

/// Finds a kernel of a module. C++ kernels have mangled names unless they are `extern "C"`.
///
/// Any thread may use the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_module_function(
    module: sv_module,
    name: *const c_char,
    function: *mut sv_function,
) -> i32 {
    guard::call("sv_module_function", || {
        let (result, name) = (out(function, "function")?, text(name, "name")?);
        let function = self::module(module, "module")?.function(name)?;
        result.write(FunctionObject::table().insert(FunctionObject(function))?);
        Ok(())
    })
}

/// Writes what a kernel needs.
///
/// # Safety
///
/// `attributes` points to a struct whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_function_attributes_get(
    function: sv_function,
    attributes: *mut sv_function_attributes,
) -> i32 {
    guard::call("sv_function_attributes_get", || {
        let result = out_structure(attributes, "attributes")?;
        let function = self::function(function, "function")?;
        let found = function.attributes()?;
        let version = |(major, minor): (u32, u32)| major * 10 + minor;
        let parameters = function.parameters().map_or(u32::MAX, |all| all.len() as u32);
        result.write(sv_function_attributes {
            size: 0,
            registers: found.registers,
            shared_bytes: found.shared_bytes,
            constant_bytes: found.constant_bytes,
            local_bytes: found.local_bytes,
            max_threads_per_block: found.max_threads_per_block,
            ptx_version: version(found.ptx_version),
            binary_version: version(found.binary_version),
            parameters,
        });
        Ok(())
    })
}

/// Writes the kind (`SV_PARAMETER_...`), the size and the offset in bytes of a parameter of a kernel.
///
/// # Safety
///
/// `kind` points to a `uint32_t`; `bytes` and `offset` each point to a `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_function_parameter(
    function: sv_function,
    index: u32,
    kind: *mut u32,
    bytes: *mut usize,
    offset: *mut usize,
) -> i32 {
    guard::call("sv_function_parameter", || {
        let (kind, bytes, offset) = (out(kind, "kind")?, out(bytes, "bytes")?, out(offset, "offset")?);
        let function = self::function(function, "function")?;
        let parameters = function.parameters().unwrap_or_default();
        let parameter = parameters
            .get(index as usize)
            .ok_or_else(|| Failure::argument("index", index, &format!("one below {}", parameters.len())))?;
        kind.write(match parameter.kind {
            ParameterKind::Integer => SV_PARAMETER_INTEGER,
            ParameterKind::Float => SV_PARAMETER_FLOAT,
            ParameterKind::Address => SV_PARAMETER_ADDRESS,
            ParameterKind::Bytes => SV_PARAMETER_BYTES,
            _ => SV_PARAMETER_UNKNOWN,
        });
        bytes.write(parameter.size);
        offset.write(parameter.offset);
        Ok(())
    })
}

/// Writes how many blocks of `threads` threads and `shared` bytes of dynamic shared memory one multiprocessor holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_function_occupancy(
    function: sv_function,
    threads: u32,
    shared: u32,
    blocks: *mut u32,
) -> i32 {
    guard::call("sv_function_occupancy", || {
        let blocks = out(blocks, "blocks")?;
        blocks.write(self::function(function, "function")?.occupancy(threads, shared)?);
        Ok(())
    })
}

/// Writes the sizes of grid and block that give the highest occupancy with `shared` bytes of dynamic shared memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_function_suggested_block_size(
    function: sv_function,
    shared: u32,
    grid: *mut u32,
    block: *mut u32,
) -> i32 {
    guard::call("sv_function_suggested_block_size", || {
        let (grid, block) = (out(grid, "grid")?, out(block, "block")?);
        let (blocks, threads) = self::function(function, "function")?.suggested_block_size(shared)?;
        grid.write(blocks);
        block.write(threads);
        Ok(())
    })
}

/// Returns a global of a module, whose size is `bytes` if given.
fn global(module: u64, name: &str, bytes: Option<usize>) -> Result<Global<u8>> {
    let global = self::module(module, "module")?.global::<u8>(name)?;
    match bytes.filter(|bytes| *bytes != global.len()) {
        None => Ok(global),
        Some(found) => {
            let message = format!("bytes: found {found}; wanted {}, the size of '{name}'", global.len());
            Err(Failure { status: SV_ERROR_LENGTH_MISMATCH, message })
        }
    }
}

/// Writes the address and the size of a variable of a module, `__device__` or `__constant__` in CUDA C++.
///
/// The address is valid while the module or one of its kernels lives.
///
/// # Safety
///
/// `name` is a text that ends with a zero byte, `address` points to a `uint64_t` and `bytes` to a `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_module_global(
    module: sv_module,
    name: *const c_char,
    address: *mut u64,
    bytes: *mut usize,
) -> i32 {
    guard::call("sv_module_global", || {
        let (address, bytes, name) = (out(address, "address")?, out(bytes, "bytes")?, text(name, "name")?);
        let global = global(module, name, None)?;
        address.write(global.address());
        bytes.write(global.len());
        Ok(())
    })
}

/// Reads all `bytes` bytes of a variable, behind every earlier launch from its module. The call waits for the copy.
///
/// # Safety
///
/// `name` is a text that ends with a zero byte, and `data` points to `bytes` bytes that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_module_global_read(
    module: sv_module,
    name: *const c_char,
    stream: sv_stream,
    data: *mut c_void,
    bytes: usize,
) -> i32 {
    guard::call("sv_module_global_read", || {
        let (name, data) = (text(name, "name")?, slice_mut(data.cast::<u8>(), bytes, "data")?);
        let stream = self::stream(stream, "stream")?;
        data.copy_from_slice(&global(module, name, Some(bytes))?.read(&stream)?);
        Ok(())
    })
}

/// Writes all `bytes` bytes of a variable, behind every earlier launch from its module. The call waits for the copy.
///
/// # Safety
///
/// `name` is a text that ends with a zero byte, and `data` points to `bytes` bytes that nobody writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_module_global_write(
    module: sv_module,
    name: *const c_char,
    stream: sv_stream,
    data: *const c_void,
    bytes: usize,
) -> i32 {
    guard::call("sv_module_global_write", || {
        let (name, data) = (text(name, "name")?, slice(data.cast::<u8>(), bytes, "data")?);
        let stream = self::stream(stream, "stream")?;
        Ok(global(module, name, Some(bytes))?.write(&stream, data)?)
    })
}
