//! Status codes. A code keeps its number for ever; a new kind of error gets a new number.

use std::ffi::{CStr, c_char};

use crate::Error;

/// The call did what it says.
pub const SV_OK: i32 = 0;
/// An argument cannot be used: NULL, a misaligned pointer, a struct's wrong `size`, shapes that do not fit, or a value outside of
/// its range. The message names it.
pub const SV_ERROR_INVALID_ARGUMENT: i32 = 1;
/// A handle is 0, was released, or belongs to an object of another kind.
pub const SV_ERROR_INVALID_HANDLE: i32 = 2;
/// The library has a defect: a panic was stopped at the ABI. The message says where.
pub const SV_ERROR_PANIC: i32 = 3;
/// `sv_shutdown` was called; only `sv_shutdown`, `sv_last_error`, `sv_status_name` and the version functions work after it.
pub const SV_ERROR_SHUT_DOWN: i32 = 4;
/// A custom operation has no function for the device, a Rust program has a logger of its own, or the library was built without the
/// feature that a function needs.
pub const SV_ERROR_UNSUPPORTED: i32 = 5;
/// A shared library, such as the NVIDIA driver, could not be loaded.
pub const SV_ERROR_LIBRARY_UNAVAILABLE: i32 = 10;
/// A shared library is too old and lacks a function.
pub const SV_ERROR_MISSING_SYMBOL: i32 = 11;
/// A call of the driver failed.
pub const SV_ERROR_DRIVER: i32 = 12;
/// A call of an optional library failed.
pub const SV_ERROR_LIBRARY: i32 = 13;
/// The host or a device has no memory left.
pub const SV_ERROR_OUT_OF_MEMORY: i32 = 14;
/// A kernel faulted and ended its context.
pub const SV_ERROR_KERNEL_FAULT: i32 = 15;
/// The context of a device was lost to an earlier fault or to a reset.
pub const SV_ERROR_CONTEXT_LOST: i32 = 16;
/// A wait with a time limit gave up. The work goes on.
pub const SV_ERROR_TIMED_OUT: i32 = 17;
/// The driver gave no new context after a reset.
pub const SV_ERROR_RESET_FAILED: i32 = 18;
/// The process was forked from one that had used CUDA.
pub const SV_ERROR_FORKED_PROCESS: i32 = 19;
/// There is no such device.
pub const SV_ERROR_NO_DEVICE: i32 = 20;
/// A module has no such kernel or global.
pub const SV_ERROR_UNKNOWN_NAME: i32 = 21;
/// Neither image nor source gives the kernel on this machine.
pub const SV_ERROR_KERNEL_UNAVAILABLE: i32 = 22;
/// A launch passes more or fewer arguments than the kernel has parameters.
pub const SV_ERROR_ARGUMENT_COUNT: i32 = 23;
/// An argument of a launch does not fit its parameter.
pub const SV_ERROR_ARGUMENT_MISMATCH: i32 = 24;
/// A launch asks for more than the device or the kernel allows.
pub const SV_ERROR_LAUNCH_LIMIT: i32 = 25;
/// The bytes are no PTX, cubin or fatbin.
pub const SV_ERROR_NOT_AN_IMAGE: i32 = 26;
/// The image is damaged.
pub const SV_ERROR_DAMAGED_IMAGE: i32 = 27;
/// The image does not run on this device or driver.
pub const SV_ERROR_UNSUPPORTED_IMAGE: i32 = 28;
/// The driver's assembler or linker refused the image.
pub const SV_ERROR_IMAGE_REJECTED: i32 = 29;
/// CUDA C++ does not compile.
pub const SV_ERROR_COMPILATION: i32 = 30;
/// The operation cannot be part of a graph capture.
pub const SV_ERROR_NOT_CAPTURABLE: i32 = 31;
/// The new graph differs too much from the instantiated one.
pub const SV_ERROR_GRAPH_NOT_UPDATABLE: i32 = 32;
/// The operands are on different devices.
pub const SV_ERROR_DEVICE_MISMATCH: i32 = 33;
/// An array of the caller has another number of bytes or elements than the object, or two arrays that must be equally long are not.
pub const SV_ERROR_LENGTH_MISMATCH: i32 = 34;
/// A range leaves its buffer.
pub const SV_ERROR_OUT_OF_RANGE: i32 = 35;
/// An index leads out of its dimension.
pub const SV_ERROR_INDEX_OUT_OF_RANGE: i32 = 36;
/// The operation does not take this dtype.
pub const SV_ERROR_DTYPE_MISMATCH: i32 = 37;
/// A file cannot be used.
pub const SV_ERROR_FILE: i32 = 38;
/// An exact result does not fit its type.
pub const SV_ERROR_OVERFLOW: i32 = 40;
/// An exact division has a divisor of 0.
pub const SV_ERROR_DIVISION_BY_ZERO: i32 = 41;
/// A backward cannot run: its values were freed or changed, or no gradient is required.
pub const SV_ERROR_BACKWARD: i32 = 42;
/// A collective call failed because of a rank, which the message names.
pub const SV_ERROR_COLLECTIVE: i32 = 43;

macro_rules! names {
    ($($name:ident)*) => {
        &[$(($name, match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        })),*]
    };
}

/// The names of all statuses.
const NAMES: &[(i32, &CStr)] = names! {
    SV_OK
    SV_ERROR_INVALID_ARGUMENT
    SV_ERROR_INVALID_HANDLE
    SV_ERROR_PANIC
    SV_ERROR_SHUT_DOWN
    SV_ERROR_UNSUPPORTED
    SV_ERROR_LIBRARY_UNAVAILABLE
    SV_ERROR_MISSING_SYMBOL
    SV_ERROR_DRIVER
    SV_ERROR_LIBRARY
    SV_ERROR_OUT_OF_MEMORY
    SV_ERROR_KERNEL_FAULT
    SV_ERROR_CONTEXT_LOST
    SV_ERROR_TIMED_OUT
    SV_ERROR_RESET_FAILED
    SV_ERROR_FORKED_PROCESS
    SV_ERROR_NO_DEVICE
    SV_ERROR_UNKNOWN_NAME
    SV_ERROR_KERNEL_UNAVAILABLE
    SV_ERROR_ARGUMENT_COUNT
    SV_ERROR_ARGUMENT_MISMATCH
    SV_ERROR_LAUNCH_LIMIT
    SV_ERROR_NOT_AN_IMAGE
    SV_ERROR_DAMAGED_IMAGE
    SV_ERROR_UNSUPPORTED_IMAGE
    SV_ERROR_IMAGE_REJECTED
    SV_ERROR_COMPILATION
    SV_ERROR_NOT_CAPTURABLE
    SV_ERROR_GRAPH_NOT_UPDATABLE
    SV_ERROR_DEVICE_MISMATCH
    SV_ERROR_LENGTH_MISMATCH
    SV_ERROR_OUT_OF_RANGE
    SV_ERROR_INDEX_OUT_OF_RANGE
    SV_ERROR_DTYPE_MISMATCH
    SV_ERROR_FILE
    SV_ERROR_OVERFLOW
    SV_ERROR_DIVISION_BY_ZERO
    SV_ERROR_BACKWARD
    SV_ERROR_COLLECTIVE
};

/// Returns the name of a status, such as `SV_ERROR_FILE`, or "an unknown status". The text lives as long as the library.
#[unsafe(no_mangle)]
pub extern "C" fn sv_status_name(status: i32) -> *const c_char {
    let known = NAMES.iter().find(|(code, _)| *code == status);
    known.map_or(c"an unknown status", |(_, name)| name).as_ptr()
}

/// Returns the status of an error of the Rust API.
pub(super) fn of(error: &Error) -> i32 {
    match error {
        Error::LibraryUnavailable { .. } => SV_ERROR_LIBRARY_UNAVAILABLE,
        Error::MissingSymbol { .. } => SV_ERROR_MISSING_SYMBOL,
        Error::Driver { .. } => SV_ERROR_DRIVER,
        Error::Library { .. } => SV_ERROR_LIBRARY,
        Error::OutOfMemory { .. } => SV_ERROR_OUT_OF_MEMORY,
        Error::KernelFault { .. } => SV_ERROR_KERNEL_FAULT,
        Error::ContextLost { .. } => SV_ERROR_CONTEXT_LOST,
        Error::TimedOut { .. } => SV_ERROR_TIMED_OUT,
        Error::Collective { .. } => SV_ERROR_COLLECTIVE,
        Error::ResetFailed { .. } => SV_ERROR_RESET_FAILED,
        Error::ForkedProcess => SV_ERROR_FORKED_PROCESS,
        Error::NoDevice { .. } => SV_ERROR_NO_DEVICE,
        Error::UnknownName { .. } => SV_ERROR_UNKNOWN_NAME,
        Error::KernelUnavailable { .. } => SV_ERROR_KERNEL_UNAVAILABLE,
        Error::ArgumentCount { .. } => SV_ERROR_ARGUMENT_COUNT,
        Error::ArgumentMismatch { .. } => SV_ERROR_ARGUMENT_MISMATCH,
        Error::LaunchLimit { .. } => SV_ERROR_LAUNCH_LIMIT,
        Error::NotAnImage { .. } => SV_ERROR_NOT_AN_IMAGE,
        Error::DamagedImage { .. } => SV_ERROR_DAMAGED_IMAGE,
        Error::UnsupportedImage { .. } => SV_ERROR_UNSUPPORTED_IMAGE,
        Error::ImageRejected { .. } => SV_ERROR_IMAGE_REJECTED,
        Error::Compilation { .. } => SV_ERROR_COMPILATION,
        Error::NotCapturable { .. } => SV_ERROR_NOT_CAPTURABLE,
        Error::GraphNotUpdatable { .. } => SV_ERROR_GRAPH_NOT_UPDATABLE,
        Error::DeviceMismatch { .. } => SV_ERROR_DEVICE_MISMATCH,
        Error::LengthMismatch { .. } => SV_ERROR_LENGTH_MISMATCH,
        Error::OutOfRange { .. } => SV_ERROR_OUT_OF_RANGE,
        Error::IndexOutOfRange { .. } => SV_ERROR_INDEX_OUT_OF_RANGE,
        Error::InvalidArgument { .. } => SV_ERROR_INVALID_ARGUMENT,
        Error::Backward { .. } => SV_ERROR_BACKWARD,
        Error::Overflow { .. } => SV_ERROR_OVERFLOW,
        Error::DivisionByZero { .. } => SV_ERROR_DIVISION_BY_ZERO,
        Error::DTypeMismatch { .. } => SV_ERROR_DTYPE_MISMATCH,
        Error::File { .. } | Error::FileNotWritten { .. } | Error::FolderLocked { .. } => SV_ERROR_FILE,
    }
}
