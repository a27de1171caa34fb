//! CUDA C++ compiled at run time.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::arguments::{out, slice_mut, text, write_text};
use super::device::cuda;
use super::error::{Failure, Result};
use super::guard;
use super::handle::{Object, object, sv_module, sv_program};
use super::module::ModuleObject;
use crate::driver::driver_isa;
use crate::nvrtc::{Cache, Compiled, Program, Target};

/// A program, the result of its last compilation, and the log of it.
pub(super) struct ProgramState {
    program: Program,
    compiled: Option<Compiled>,
    log: String,
}

/// A program behind a handle.
#[derive(Clone)]
pub(super) struct ProgramObject(Arc<Mutex<ProgramState>>);
object!(ProgramObject, Program);

impl ProgramObject {
    fn lock(&self) -> MutexGuard<'_, ProgramState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgramState {
    /// Replaces the program. An earlier result is dropped, because it is of another program.
    fn change(&mut self, change: impl FnOnce(Program) -> Program) {
        self.compiled = None;
        let program = std::mem::replace(&mut self.program, Program::new("", ""));
        self.program = change(program);
    }

    fn compile(&mut self, target: crate::Result<Target>) -> Result<()> {
        self.compiled = None;
        self.log.clear();
        match target.and_then(|target| self.program.compile(target, &Cache::standard())) {
            Ok(compiled) => {
                compiled.log().clone_into(&mut self.log);
                self.compiled = Some(compiled);
                Ok(())
            }
            Err(error) => {
                self.log = error.to_string();
                Err(error.into())
            }
        }
    }

    fn compiled(&self) -> Result<&Compiled> {
        let wanted = "a program that sv_program_compile has compiled";
        self.compiled.as_ref().ok_or_else(|| Failure::argument("program", "one without a result", wanted))
    }
}

fn program(handle: u64) -> Result<ProgramObject> {
    ProgramObject::table().get(handle, "program")
}

/// Creates a program of CUDA C++. `name` stands in messages, such as `saxpy.cu`.
///
/// Both texts are copied. Calls for one program run one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_program_create(
    name: *const c_char,
    source: *const c_char,
    program: *mut sv_program,
) -> i32 {
    guard::call("sv_program_create", || {
        let (result, name, source) = (out(program, "program")?, text(name, "name")?, text(source, "source")?);
        let program = Program::new(name, source);
        let state = ProgramState { program, compiled: None, log: String::new() };
        result.write(ProgramObject::table().insert(ProgramObject(Arc::new(Mutex::new(state))))?);
        Ok(())
    })
}

/// Adds a header for `#include "name"` and `#include <name>`. It replaces one of the same name. Drops an earlier result.
///
/// Both texts are copied.
///
/// # Safety
///
/// `name` and `source` are texts that end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_program_add_header(
    program: sv_program,
    name: *const c_char,
    source: *const c_char,
) -> i32 {
    guard::call("sv_program_add_header", || {
        let (name, source) = (text(name, "name")?, text(source, "source")?);
        self::program(program)?.lock().change(|program| program.header(name, source));
        Ok(())
    })
}

/// Adds an option of NVRTC, such as `--use_fast_math`; the target sets the architecture. Drops an earlier result.
///
/// The text is copied.
///
/// # Safety
///
/// `option` is a text that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_program_add_option(program: sv_program, option: *const c_char) -> i32 {
    guard::call("sv_program_add_option", || {
        let option = text(option, "option")?;
        self::program(program)?.lock().change(|program| program.option(option));
        Ok(())
    })
}

/// Asks for the lowered name of a template instance, such as `scale<float>`, or of a name in a namespace. `extern "C"` kernels
/// need no request. Drops an earlier result.
///
/// The text is copied.
///
/// # Safety
///
/// `expression` is a text that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_program_add_expression(program: sv_program, expression: *const c_char) -> i32 {
    guard::call("sv_program_add_expression", || {
        let expression = text(expression, "expression")?;
        self::program(program)?.lock().change(|program| program.expression(expression));
        Ok(())
    })
}

/// Compiles a program for a target, such as `sm_90a` (machine code) or `compute_80` (PTX), or takes an earlier result from the
/// cache on disk. `sv_program_log` has the log, also after `SV_ERROR_COMPILATION`.
///
/// # Safety
///
/// `target` is a text that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_program_compile(program: sv_program, target: *const c_char) -> i32 {
    guard::call("sv_program_compile", || {
        let target = text(target, "target")?;
        self::program(program)?.lock().compile(target.parse())
    })
}

/// Compiles a program for the best target that NVRTC and the driver have for a device. As `sv_program_compile` otherwise.
#[unsafe(no_mangle)]
pub extern "C" fn sv_program_compile_for_device(program: sv_program, device: i32) -> i32 {
    guard::call("sv_program_compile_for_device", || {
        let program = self::program(program)?;
        let (capability, isa) =
            (cuda(device, "a compilation for a device")?.compute_capability(), driver_isa()?);
        program.lock().compile(Target::for_device(capability, isa))
    })
}

/// Writes the warnings of the last compilation, or the error with source lines and carets. `log`, `capacity` and `length` are
/// as for `sv_library_report`.
///
/// # Safety
///
/// `log` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_program_log(
    program: sv_program,
    log: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_program_log", || write_text(&self::program(program)?.lock().log, log, capacity, length))
}

/// Writes the name in the image of an expression of `sv_program_add_expression`. `name`, `capacity` and `length` are as for
/// `sv_library_report`.
///
/// # Safety
///
/// `expression` is a text that ends with a zero byte, and `name` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_program_lowered_name(
    program: sv_program,
    expression: *const c_char,
    name: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_program_lowered_name", || {
        let expression = text(expression, "expression")?;
        let program = self::program(program)?;
        let state = program.lock();
        let found = state
            .compiled()?
            .lowered_name(expression)
            .ok_or_else(|| Failure::argument("expression", expression, "one of sv_program_add_expression"))?;
        write_text(found, name, capacity, length)
    })
}

/// Copies the image of a compiled program: a cubin, or PTX without a zero byte. `length`, if not NULL, gets the bytes of the
/// whole image; a capacity of 0 asks for it alone. An image that does not fit is `SV_ERROR_INVALID_ARGUMENT`.
///
/// # Safety
///
/// `image` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_program_image(
    program: sv_program,
    image: *mut c_void,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_program_image", || {
        let room = slice_mut(image.cast::<u8>(), capacity, "image")?;
        let length = if length.is_null() { None } else { Some(out(length, "length")?) };
        let program = self::program(program)?;
        let state = program.lock();
        let found = state.compiled()?.image();
        if capacity > 0 {
            let target = room.get_mut(..found.len()).ok_or_else(|| {
                Failure::argument("capacity", capacity, &format!("at least {} bytes", found.len()))
            })?;
            target.copy_from_slice(found);
        }
        if let Some(length) = length {
            length.write(found.len());
        }
        Ok(())
    })
}

/// Loads a compiled program on a device. Launches of its kernels are checked by the parameters that its PTX gives.
///
/// The caller owns one reference to `*module`, which does not need the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_program_load(program: sv_program, device: i32, module: *mut sv_module) -> i32 {
    guard::call("sv_program_load", || {
        let result = out(module, "module")?;
        let compiled = self::program(program)?.lock().compiled()?.clone();
        let module = cuda(device, "a module")?.load_described(compiled.image(), compiled.ptx())?;
        result.write(ModuleObject::table().insert(ModuleObject(module))?);
        Ok(())
    })
}
