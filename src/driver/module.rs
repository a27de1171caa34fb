//! Modules: images loaded into a device's context, their kernels and their globals.
//!
//! The crate inspects an image before the driver loads it, so an image for another architecture or a newer ISA returns
//! an error that names both sides. Every launch counts as a read of the module's code. Kernels access globals without
//! naming them, so a copy of one waits for every stream that launched from the module, and is synchronous. A module
//! dropped while its kernels run is unloaded when they are done.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use bytemuck::Pod;

use super::context::{Handle, call, driver_error, gone, stream_call};
use super::device::{Device, DeviceState};
use super::graph::capture;
use super::image::{ImageInfo, ImageKind, check as check_image};
use super::memory::{Resource, Usage};
use super::stream::Stream;
use super::stream_work::StreamWork;
use crate::error::{Error, Result, report_deferred};
use crate::sys::codes;
use crate::sys::driver::{
    CUjit_option, CUjitInputType, CUlinkState, CUlinkState_st, CUmod_st, CUmodule, CUresult,
};

/// Options of the driver's assembler. They apply to PTX only, not to machine code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleOptions {
    /// The largest number of registers per thread.
    pub max_registers: Option<u32>,
    /// From 0, fast to assemble, to 4, the default.
    pub optimization_level: Option<u32>,
    /// Keeps source lines, for profilers.
    pub line_info: bool,
    /// Generates code for debuggers.
    pub debug: bool,
}

/// One input of [`Device::link`].
#[derive(Clone, Copy, Debug)]
pub struct LinkInput<'a> {
    /// The input's name in the linker's log.
    pub name: &'a str,
    /// PTX, a cubin or a fatbin.
    pub image: &'a [u8],
}

/// A loaded image. Cheap to clone; the code stays loaded while a clone or a function of it lives.
#[derive(Clone)]
pub struct Module(pub(crate) Arc<ModuleState>);

/// The fields that every launch reads come first.
#[repr(C)]
pub(crate) struct ModuleState {
    pub(crate) device: &'static DeviceState,
    pub(crate) usage: Usage,
    pub(crate) raw: Handle<CUmod_st>,
    pub(crate) info: ImageInfo,
    log: String,
}

impl Drop for ModuleState {
    fn drop(&mut self) {
        if self.device.is_lost() {
            return;
        }
        // Not unloaded here, because unloading waits for every running kernel.
        let resource = Resource::Module(self.raw);
        let streams = self.usage.streams();
        let marks: Result<Vec<_>> = streams.iter().map(|stream| stream.mark()).collect();
        match marks {
            Ok(marks) => self.device.retire(resource, marks),
            Err(error) => {
                self.device.retire_until_idle(resource);
                if !gone(&error) {
                    report_deferred(&error);
                }
            }
        }
    }
}

/// The options of a load or link in the driver's form, with the buffers for its log.
struct JitOptions {
    keys: Vec<CUjit_option>,
    values: Vec<*mut c_void>,
    info: Vec<u8>,
    error: Vec<u8>,
}

// SAFETY: the pointers are to the options' own logs, or numbers; a linker's options are only stored for it and freed.
unsafe impl Send for JitOptions {}

const LOG_BYTES: usize = 16 * 1024;

impl JitOptions {
    fn new(options: &ModuleOptions) -> JitOptions {
        let mut jit = JitOptions {
            keys: Vec::new(),
            values: Vec::new(),
            info: vec![0; LOG_BYTES],
            error: vec![0; LOG_BYTES],
        };
        let (info, error) = (jit.info.as_mut_ptr().cast(), jit.error.as_mut_ptr().cast());
        jit.push(CUjit_option::CU_JIT_INFO_LOG_BUFFER, info);
        jit.push_value(CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, LOG_BYTES);
        jit.push(CUjit_option::CU_JIT_ERROR_LOG_BUFFER, error);
        jit.push_value(CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, LOG_BYTES);
        if let Some(registers) = options.max_registers {
            jit.push_value(CUjit_option::CU_JIT_MAX_REGISTERS, registers as usize);
        }
        if let Some(level) = options.optimization_level {
            jit.push_value(CUjit_option::CU_JIT_OPTIMIZATION_LEVEL, level as usize);
        }
        if options.line_info {
            jit.push_value(CUjit_option::CU_JIT_GENERATE_LINE_INFO, 1);
        }
        if options.debug {
            jit.push_value(CUjit_option::CU_JIT_GENERATE_DEBUG_INFO, 1);
        }
        jit
    }

    fn push(&mut self, key: CUjit_option, value: *mut c_void) {
        self.keys.push(key);
        self.values.push(value);
    }

    /// The driver reads small values from the pointer itself.
    fn push_value(&mut self, key: CUjit_option, value: usize) {
        self.push(key, std::ptr::without_provenance_mut(value));
    }

    fn count(&self) -> u32 {
        self.keys.len() as u32
    }

    fn log(&self) -> String {
        let text = |bytes: &[u8]| {
            let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).trim_end().to_owned()
        };
        let (error, info) = (text(&self.error), text(&self.info));
        match (error.is_empty(), info.is_empty()) {
            (true, _) => info,
            (_, true) => error,
            _ => format!("{error}\n{info}"),
        }
    }

    /// Checks the status of a load or link. The error for a refused image contains the log.
    fn check(&self, device: &DeviceState, call: &'static str, status: CUresult) -> Result<()> {
        // INVALID_IMAGE, NO_BINARY_FOR_GPU, INVALID_PTX, then: compiler missing, forbidden or too old.
        let refused = matches!(status.0, 200 | 209 | 218 | 221..=225);
        let log = self.log();
        // The linker returns UNKNOWN for a missing or duplicate symbol, and names it in its log.
        let refused = refused || (status.0 == UNKNOWN && !log.is_empty());
        if !refused {
            return device.check(call, status);
        }
        let (name, text) = codes::describe(status);
        let log = if log.is_empty() { format!("(empty; the code means: {text})") } else { log };
        Err(Error::ImageRejected { call, code: status.0 as i32, name, log })
    }
}

impl Device {
    /// Loads PTX, a cubin or a fatbin.
    ///
    /// Loading waits until the device has memory for the code, which can mean for running kernels. Load a kernel that
    /// spins on another before launching that other kernel.
    ///
    /// # Errors
    ///
    /// [`Error::NotAnImage`], [`Error::DamagedImage`], [`Error::UnsupportedImage`] for another architecture or a newer
    /// ISA, [`Error::ImageRejected`] with the assembler's log, or the driver's errors.
    pub fn load(&self, image: &[u8]) -> Result<Module> {
        self.load_with(image, &ModuleOptions::default())
    }

    /// As [`load`](Self::load), with options for the driver's assembler.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_with(&self, image: &[u8], options: &ModuleOptions) -> Result<Module> {
        let device = self.0;
        device.load_image(image, device.inspect(image)?, options)
    }

    /// Loads machine code together with the PTX that it was assembled from. The PTX gives the parameter kinds (float,
    /// integer or address), so that launches can be checked against them. Unreadable PTX, or PTX of other kernels, is
    /// ignored.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_described(&self, image: &[u8], ptx: &[u8]) -> Result<Module> {
        let device = self.0;
        let mut info = device.inspect(image)?;
        if let Ok(described) = ImageInfo::parse(ptx) {
            info.merge_parameters(&described);
        }
        device.load_image(image, info, &ModuleOptions::default())
    }

    /// Links several images into one module with the driver's linker: kernels of one may call functions of another.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load); an undefined or doubly defined symbol is [`Error::ImageRejected`] with the log.
    pub fn link(&self, inputs: &[LinkInput<'_>], options: &ModuleOptions) -> Result<Module> {
        let device = self.0;
        if inputs.is_empty() {
            return Err(Error::invalid("Device::link", "no inputs", "at least one image"));
        }
        let mut kinds = Vec::with_capacity(inputs.len());
        for input in inputs {
            kinds.push(device.inspect(input.image)?.kind);
        }
        let _bound = device.bind()?;
        let linker = Linker::new(device, options)?;
        for (input, kind) in inputs.iter().zip(kinds) {
            let name = CString::new(input.name).map_err(|_| {
                Error::invalid("Device::link", "a name with a zero byte", "a name without one")
            })?;
            let mut data = ImageInfo::for_driver(input.image, kind).into_owned();
            let input_type = match kind {
                ImageKind::Ptx => CUjitInputType::CU_JIT_INPUT_PTX,
                ImageKind::Cubin => CUjitInputType::CU_JIT_INPUT_CUBIN,
                ImageKind::Fatbin => CUjitInputType::CU_JIT_INPUT_FATBINARY,
            };
            // SAFETY: the data lives through the call, which copies it.
            let status = unsafe {
                (device.api.cuLinkAddData()?)(
                    linker.raw.0,
                    input_type,
                    data.as_mut_ptr().cast(),
                    data.len(),
                    name.as_ptr(),
                    0,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                )
            };
            linker.jit.check(device, "cuLinkAddData", status)?;
        }
        let (mut cubin, mut bytes) = (std::ptr::null_mut(), 0usize);
        // SAFETY: the pointers are to locals.
        let status = unsafe { (device.api.cuLinkComplete()?)(linker.raw.0, &mut cubin, &mut bytes) };
        linker.jit.check(device, "cuLinkComplete", status)?;
        if cubin.is_null() || bytes == 0 {
            return Err(Error::invalid("cuLinkComplete", "an empty image", "a cubin"));
        }
        // SAFETY: the linker owns `bytes` bytes there until it is dropped at the end of this function.
        let image = unsafe { std::slice::from_raw_parts(cubin.cast::<u8>(), bytes) };
        let mut module = device.load_image(image, ImageInfo::parse(image)?, options)?;
        if let Some(state) = Arc::get_mut(&mut module.0) {
            state.log = linker.jit.log();
        }
        Ok(module)
    }
}

/// The driver's linker, with the options that it writes to while it lives. Dropped on errors too.
struct Linker {
    device: &'static DeviceState,
    raw: Handle<CUlinkState_st>,
    jit: JitOptions,
}

impl Linker {
    /// The device's context must be current.
    fn new(device: &'static DeviceState, options: &ModuleOptions) -> Result<Linker> {
        let mut jit = JitOptions::new(options);
        let mut state: CUlinkState = std::ptr::null_mut();
        // SAFETY: keys, values and logs are in vectors that stay in place until the linker is destroyed.
        unsafe {
            let count = jit.count();
            call!(device, cuLinkCreate(count, jit.keys.as_mut_ptr(), jit.values.as_mut_ptr(), &mut state))?;
        }
        Ok(Linker { device, raw: Handle(state), jit })
    }
}

impl Drop for Linker {
    fn drop(&mut self) {
        let empty = JitOptions { keys: Vec::new(), values: Vec::new(), info: Vec::new(), error: Vec::new() };
        let jit = Box::new(std::mem::replace(&mut self.jit, empty));
        self.device.release_or_report(Resource::Linker(self.raw, jit));
    }
}

impl DeviceState {
    /// Returns the image's information, if this device can run the image.
    fn inspect(&self, image: &[u8]) -> Result<ImageInfo> {
        let info = ImageInfo::parse(image)?;
        check_image(&info, self.capability, self.api.version())?;
        Ok(info)
    }

    fn load_image(&'static self, image: &[u8], info: ImageInfo, options: &ModuleOptions) -> Result<Module> {
        let image = ImageInfo::for_driver(image, info.kind);
        let _bound = self.bind()?;
        // Unloading retired modules makes memory available.
        self.free_retired();
        let mut jit = JitOptions::new(options);
        let mut raw: CUmodule = std::ptr::null_mut();
        // SAFETY: the image is complete and PTX is terminated; keys, values and logs live through the call.
        let status = unsafe {
            (self.api.cuModuleLoadDataEx()?)(
                &mut raw,
                image.as_ptr().cast(),
                jit.count(),
                jit.keys.as_mut_ptr(),
                jit.values.as_mut_ptr(),
            )
        };
        jit.check(self, "cuModuleLoadDataEx", status)?;
        let log = jit.log();
        Ok(Module(Arc::new(ModuleState { device: self, raw: Handle(raw), info, usage: Usage::idle(), log })))
    }
}

impl Module {
    /// The log of the assembler or linker; usually empty.
    pub fn log(&self) -> &str {
        &self.0.log
    }

    /// The module's device.
    pub fn device(&self) -> Device {
        Device(self.0.device)
    }

    /// The image's kind, ISA, targets, kernels and globals.
    pub fn info(&self) -> &ImageInfo {
        &self.0.info
    }

    /// The names of the module's kernels.
    ///
    /// # Errors
    ///
    /// The image is one that only the driver can read, such as a compressed fatbin, and the driver is older than CUDA
    /// 12.4; or the driver's errors.
    pub fn function_names(&self) -> Result<Vec<String>> {
        let known: Vec<String> = self.0.info.kernels.iter().map(|kernel| kernel.name.clone()).collect();
        if known.is_empty() { self.0.enumerate() } else { Ok(known) }
    }

    /// Returns a variable of the module, `__device__` or `__constant__` in CUDA C++.
    ///
    /// # Errors
    /// [`Error::UnknownName`] with the names of the module's globals, a size that is not a multiple of `T`'s, or the
    /// driver's errors. [`Error::UnknownName`] with the names that there are, a size that is no multiple of `T`'s, or
    /// the driver's errors.
    pub fn global<T: Pod>(&self, name: &str) -> Result<Global<T>> {
        let state = &self.0;
        let _bound = state.device.bind()?;
        let unknown = || Error::UnknownName {
            kind: "global",
            wanted: name.to_owned(),
            found: state.info.globals.clone(),
        };
        let text = CString::new(name).map_err(|_| unknown())?;
        let (mut address, mut bytes) = (0u64, 0usize);
        // SAFETY: the module is live; the pointers are to locals.
        let status = unsafe {
            (state.device.api.cuModuleGetGlobal()?)(&mut address, &mut bytes, state.raw.0, text.as_ptr())
        };
        if status.0 == NOT_FOUND {
            return Err(unknown());
        }
        state.device.check("cuModuleGetGlobal", status)?;
        if size_of::<T>() == 0 || bytes % size_of::<T>() != 0 {
            return Err(Error::invalid(
                "Module::global",
                format!("'{name}' of {bytes} bytes"),
                format!("a multiple of {} bytes for {}", size_of::<T>(), std::any::type_name::<T>()),
            ));
        }
        let length = bytes / size_of::<T>();
        Ok(Global { module: self.clone(), address, length, element: std::marker::PhantomData })
    }
}

pub(crate) const NOT_FOUND: u32 = 500;
const UNKNOWN: u32 = 999;

impl ModuleState {
    fn enumerate(&self) -> Result<Vec<String>> {
        let (device, api) = (self.device, self.device.api);
        let _bound = device.bind()?;
        let mut count = 0;
        // SAFETY: the module is live; the pointer is to a local.
        unsafe { call!(device, cuModuleGetFunctionCount(&mut count, self.raw.0))? };
        let mut functions = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: there is room for `count` functions.
        unsafe { call!(device, cuModuleEnumerateFunctions(functions.as_mut_ptr(), count, self.raw.0))? };
        let mut names = Vec::with_capacity(functions.len());
        for function in functions {
            let mut name = std::ptr::null();
            // SAFETY: the function is of a live module; the pointer is to a local.
            let status = unsafe { (api.cuFuncGetName()?)(&mut name, function) };
            if status.0 != 0 || name.is_null() {
                return Err(driver_error("cuFuncGetName", status.0, String::new()));
            }
            // SAFETY: the driver's name is terminated and lives as long as the module.
            names.push(unsafe { std::ffi::CStr::from_ptr(name) }.to_string_lossy().into_owned());
        }
        Ok(names)
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Module({:?}, device {})", self.0.info.kind, self.0.device.ordinal)
    }
}

/// A variable of a module, which it keeps loaded.
///
/// Kernels access globals without naming them, so a copy waits for every launch from the module, and launches wait for
/// the copy.
pub struct Global<T> {
    module: Module,
    address: u64,
    length: usize,
    element: std::marker::PhantomData<T>,
}

impl<T: Pod> Global<T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The device address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Reads the variable after every earlier launch from its module. Synchronous.
    ///
    /// # Errors
    ///
    /// The stream belongs to another device, an earlier kernel faulted, or the driver's errors.
    pub fn read(&self, stream: &Stream) -> Result<Vec<T>> {
        let mut elements: Vec<T> = vec![T::zeroed(); self.length];
        let bytes = size_of_val(elements.as_slice());
        let state = self.enter(stream)?;
        let pointer = elements.as_mut_ptr().cast();
        // SAFETY: the variable is in a live module; `elements` lives until the drain below has returned.
        let call =
            || unsafe { stream_call!(state, cuMemcpyDtoHAsync(pointer, self.address, bytes, state.raw.0)) };
        let issued = state.submit_work(|| StreamWork::copy("copy device to host", bytes), call);
        issued.and(state.drain()).map(|()| elements)
    }

    /// Writes the variable after every earlier launch from its module. Synchronous.
    ///
    /// # Errors
    ///
    /// The lengths differ, or the errors of [`read`](Self::read).
    pub fn write(&self, stream: &Stream, elements: &[T]) -> Result<()> {
        if elements.len() != self.length {
            let (wanted, found) = (self.length, elements.len());
            return Err(Error::LengthMismatch { operation: "Global::write", wanted, found });
        }
        let state = self.enter(stream)?;
        let (pointer, bytes) = (elements.as_ptr().cast(), size_of_val(elements));
        // SAFETY: the variable is in a live module; `elements` is borrowed until the drain below has returned.
        let call =
            || unsafe { stream_call!(state, cuMemcpyHtoDAsync(self.address, pointer, bytes, state.raw.0)) };
        let issued = state.submit_work(|| StreamWork::copy("copy host to device", bytes), call);
        issued.and(state.drain())
    }

    fn enter<'a>(&self, stream: &'a Stream) -> Result<&'a super::stream::StreamState> {
        let (state, module) = (stream.state(), &self.module.0);
        if !std::ptr::eq(state.device, module.device) {
            // One of the two may be from before a reset.
            module.device.check_alive().and(state.device.check_alive())?;
            return Err(Error::DeviceMismatch {
                operation: "copying a global",
                left: format!("a stream of device {}", state.device.ordinal),
                right: format!("a module of device {}", module.device.ordinal),
            });
        }
        capture::refuse("copying a global", state, None)?;
        module.usage.enter_after_all(state)?;
        Ok(state)
    }
}

impl<T> std::fmt::Debug for Global<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Global<{}>({} at {:#x})", std::any::type_name::<T>(), self.length, self.address)
    }
}
