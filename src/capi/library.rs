//! The library itself: versions, a report of what it found, CPU threads, shutdown, and references to any object.

use std::ffi::c_char;
use std::sync::atomic::Ordering;

use super::arguments::write_text;
use super::buffer::BufferObject;
use super::burst::{DeviceNetworkObject, NetworkObject, SimulationObject};
use super::catalogue::models::GaussianModelObject;
use super::classifier::ClassifierObject;
use super::error::{Failure, Result};
use super::fused::{ExpressionObject, FusedObject};
use super::graph::{ExecutableGraphObject, GraphObject, discard_capture};
use super::guard::{self, SHUT_DOWN};
use super::handle::{HandleKind, Object, sv_object};
use super::hooks::forget_log_callback;
use super::module::{FunctionObject, ModuleObject};
use super::nn::decoder::DecoderObject;
use super::nn::model::ModelObject;
use super::nn::optimizer::OptimizerObject;
use super::nn::tokenizer::TokenizerObject;
use super::nn::trainer::TrainerObject;
use super::nn::variable::VariableObject;
use super::nvrtc::ProgramObject;
use super::pinned::PinnedObject;
use super::srt::evolver::EvolverObject;
use super::srt::symbolic::SymbolicObject;
use super::status;
use super::stream::{EventObject, StreamObject};
use super::tensor::TensorObject;
use super::tensor::random::GeneratorObject;
use crate::driver::{Device, call_deleters};

/// The version of the ABI. It moves when a function, struct or code changes its meaning.
pub const SV_ABI_VERSION: u32 = 3;

/// Returns the ABI version of the library that is loaded, to be compared with `SV_ABI_VERSION` of the header.
///
/// Any thread may call it at any time.
#[unsafe(no_mangle)]
pub extern "C" fn sv_abi_version() -> u32 {
    SV_ABI_VERSION
}

/// Returns the version of the library that is loaded, such as `10203` for 1.2.3: major, minor and patch by hundreds.
///
/// Any thread may call it at any time.
#[unsafe(no_mangle)]
pub extern "C" fn sv_version() -> u32 {
    const fn number(text: &str) -> u32 {
        let (bytes, mut at, mut value) = (text.as_bytes(), 0, 0);
        while at < bytes.len() {
            value = value * 10 + (bytes[at] - b'0') as u32;
            at += 1;
        }
        value
    }
    const MAJOR: u32 = number(env!("CARGO_PKG_VERSION_MAJOR"));
    const MINOR: u32 = number(env!("CARGO_PKG_VERSION_MINOR"));
    const PATCH: u32 = number(env!("CARGO_PKG_VERSION_PATCH"));
    MAJOR * 10_000 + MINOR * 100 + PATCH
}

/// Calls a macro with every kind of handle and its object. The shutdown frees them in this order.
macro_rules! with_kinds {
    ($macro:ident!($($argument:tt)*)) => {
        $macro! { $($argument)*
            Simulation => SimulationObject,
            DeviceNetwork => DeviceNetworkObject,
            Network => NetworkObject,
            Classifier => ClassifierObject,
            Evolver => EvolverObject,
            GaussianModel => GaussianModelObject,
            Decoder => DecoderObject,
            Symbolic => SymbolicObject,
            Trainer => TrainerObject,
            Tokenizer => TokenizerObject,
            Optimizer => OptimizerObject,
            Model => ModelObject,
            Variable => VariableObject,
            Fused => FusedObject,
            Expression => ExpressionObject,
            Generator => GeneratorObject,
            Tensor => TensorObject,
            ExecutableGraph => ExecutableGraphObject,
            Graph => GraphObject,
            Function => FunctionObject,
            Module => ModuleObject,
            Program => ProgramObject,
            PinnedBuffer => PinnedObject,
            Buffer => BufferObject,
            Event => EventObject,
            Stream => StreamObject,
        }
    };
}

/// Runs a method of the table of a handle's kind.
macro_rules! for_kind {
    ($handle:ident, $method:ident, $($kind:ident => $object:ty),+ $(,)?) => {
        match HandleKind::of($handle) {
            $(Some(HandleKind::$kind) => <$object>::table().$method($handle, "object").map(drop),)+
            _ => {
                let message = format!("object: found {:#x}; wanted a handle of this library", $handle);
                Err(Failure { status: status::SV_ERROR_INVALID_HANDLE, message })
            }
        }
    };
}

/// Frees the objects of every kind.
macro_rules! clear_kinds {
    ($($kind:ident => $object:ty),+ $(,)?) => {
        $(<$object>::table().clear();)+
    };
}

/// Adds a reference to the object of any handle.
///
/// Each reference needs a call of `sv_release`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_retain(object: sv_object) -> i32 {
    guard::call("sv_retain", || with_kinds!(for_kind!(object, retain,)))
}

/// Drops a reference to the object of any handle. The last one frees the object, and the handle is invalid from then on.
///
/// Work of the object that is still running goes on; the call does not wait for it. 0 is accepted and does nothing, as
/// `free(NULL)`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_release(object: sv_object) -> i32 {
    if object == 0 {
        return status::SV_OK;
    }
    guard::call("sv_release", || with_kinds!(for_kind!(object, release,)))
}

/// Writes a report of the libraries that were looked for, each path tried and why it was taken or not, as `selvedge info`
/// shows it.
///
/// The text is cut to `capacity` bytes with its zero byte; `length`, if not NULL, gets the bytes of the whole text without the
/// zero byte. A capacity of 0 asks for the length alone.
///
/// # Safety
///
/// `text` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_library_report(text: *mut c_char, capacity: usize, length: *mut usize) -> i32 {
    guard::call("sv_library_report", || {
        let report = crate::sys::report();
        let mut lines = String::new();
        for library in &report.libraries {
            let found = library.path.as_deref().unwrap_or("not found");
            let version = library.version.as_deref().unwrap_or("-");
            lines += &format!("{} {version}: {found}\n", library.name);
            for attempt in &library.attempts {
                let mark = if attempt.taken { '+' } else { '-' };
                lines += &format!("  {mark} {} ({}): {}\n", attempt.path, attempt.source, attempt.reason);
            }
        }
        write_text(&lines, text, capacity, length)
    })
}

/// Frees every object, returns the cached memory of every device, and ends the library's threads. Every later call but this one,
/// `sv_last_error` and the versions returns `SV_ERROR_SHUT_DOWN`.
///
/// The call waits for work on the devices that were used, and calls the deleters of memory of other code. Calling it again does
/// nothing. No other call of the library may be running on another thread.
#[unsafe(no_mangle)]
pub extern "C" fn sv_shutdown() -> i32 {
    guard::run("sv_shutdown", || -> Result<()> {
        if SHUT_DOWN.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        discard_capture();
        with_kinds!(clear_kinds!());
        if crate::driver::check_not_forked().is_ok() {
            // A device that was lost has nothing to wait for, nor to give back.
            for device in Device::opened() {
                let _ = device.synchronize();
            }
            call_deleters();
            for device in Device::opened() {
                let _ = device.trim();
            }
            crate::threads::join();
        }
        crate::set_executor(None);
        forget_log_callback();
        Ok(())
    })
}
