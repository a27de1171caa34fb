//! The driver that does nothing: compiled, named by `SELVEDGE_LIBCUDA`, and called beside the library.

use std::ffi::{c_char, c_void};
use std::path::Path;
use std::{io, ptr};

use crate::c_source;

type Lookup = unsafe extern "C" fn(*const c_char, *mut *mut c_void, i32, u64, *mut i32) -> i32;
type LaunchKernel = unsafe extern "C" fn(
    *mut c_void,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> i32;

/// The driver that does nothing.
pub struct IdleDriver {
    crowd: unsafe extern "C" fn(bool),
    calls: unsafe extern "C" fn() -> u64,
    launch: LaunchKernel,
    // Last, so that nothing outlives it.
    _library: libloading::Library,
}

/// Compiles the driver and makes it the library's. No other thread runs yet.
pub fn load() -> io::Result<IdleDriver> {
    let path = c_source::compile("idle_driver")?;
    // SAFETY: the process has one thread.
    unsafe { std::env::set_var("SELVEDGE_LIBCUDA", &path) };
    IdleDriver::open(&path).map_err(io::Error::other)
}

impl IdleDriver {
    fn open(path: &Path) -> Result<IdleDriver, libloading::Error> {
        // SAFETY: the functions are those of the source beside, and the library lives as long as they do.
        unsafe {
            let library = libloading::Library::new(path)?;
            let lookup: Lookup = *library.get(b"cuGetProcAddress_v2\0")?;
            let mut launch = ptr::null_mut();
            lookup(c"cuLaunchKernel".as_ptr(), &mut launch, 4000, 0, ptr::null_mut());
            Ok(IdleDriver {
                crowd: *library.get(b"idle_driver_crowd\0")?,
                calls: *library.get(b"idle_driver_calls\0")?,
                launch: std::mem::transmute::<*mut c_void, LaunchKernel>(launch),
                _library: library,
            })
        }
    }

    /// Sets whether launches evict their caller's data from the first-level caches.
    pub fn crowd(&self, on: bool) {
        // SAFETY: the prototype is the source's.
        unsafe { (self.crowd)(on) }
    }

    /// How often it was called.
    pub fn calls(&self) -> u64 {
        // SAFETY: the prototype is the source's.
        unsafe { (self.calls)() }
    }

    /// A launch, as a program without a library would call it.
    pub fn launch(&self, arguments: &mut [*mut c_void]) -> i32 {
        let null = ptr::null_mut();
        // SAFETY: it looks at no argument.
        unsafe { (self.launch)(null, 4, 1, 1, 256, 1, 1, 0, null, arguments.as_mut_ptr(), ptr::null_mut()) }
    }
}
