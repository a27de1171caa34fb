//! The reference: NVRTC's own functions, opened by a handle and prototypes of this file's own.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use crate::harness::report::Failure;

type Handle = *mut c_void;
type Texts = *const *const c_char;

/// NVRTC.
pub struct BareNvrtc {
    create: unsafe extern "C" fn(*mut Handle, *const c_char, *const c_char, c_int, Texts, Texts) -> c_int,
    compile: unsafe extern "C" fn(Handle, c_int, Texts) -> c_int,
    cubin_size: unsafe extern "C" fn(Handle, *mut usize) -> c_int,
    cubin: unsafe extern "C" fn(Handle, *mut c_char) -> c_int,
    destroy: unsafe extern "C" fn(*mut Handle) -> c_int,
    // Last, so that nothing outlives it.
    _library: libloading::Library,
}

fn check(code: c_int, call: &str) -> Result<(), Failure> {
    if code == 0 { Ok(()) } else { Err(format!("{call} gave {code}").into()) }
}

impl BareNvrtc {
    /// Opens the library of this path.
    pub fn open(path: &Path) -> Result<BareNvrtc, Failure> {
        // SAFETY: its initialisers are meant to be run by any process that opens it; the prototypes are those of its
        // reference, and the library lives as long as they do.
        unsafe {
            let library = libloading::Library::new(path)?;
            Ok(BareNvrtc {
                create: *library.get(b"nvrtcCreateProgram\0")?,
                compile: *library.get(b"nvrtcCompileProgram\0")?,
                cubin_size: *library.get(b"nvrtcGetCUBINSize\0")?,
                cubin: *library.get(b"nvrtcGetCUBIN\0")?,
                destroy: *library.get(b"nvrtcDestroyProgram\0")?,
                _library: library,
            })
        }
    }

    /// Compiles to a cubin.
    pub fn compile(&self, name: &str, source: &str, options: &[&str]) -> Result<Vec<u8>, Failure> {
        let (name, source) = (CString::new(name)?, CString::new(source)?);
        let options = options.iter().map(|option| CString::new(*option)).collect::<Result<Vec<_>, _>>()?;
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let (mut program, mut bytes) = (ptr::null_mut(), 0usize);
        // SAFETY: all texts are terminated and outlive the calls; the pointers are to locals, and the vector has the size
        // that NVRTC asked for.
        unsafe {
            let created =
                (self.create)(&mut program, source.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null());
            check(created, "nvrtcCreateProgram")?;
            let compiled = (self.compile)(program, options.len() as c_int, options.as_ptr());
            check(compiled, "nvrtcCompileProgram")?;
            check((self.cubin_size)(program, &mut bytes), "nvrtcGetCUBINSize")?;
            let mut image = vec![0u8; bytes];
            check((self.cubin)(program, image.as_mut_ptr().cast()), "nvrtcGetCUBIN")?;
            check((self.destroy)(&mut program), "nvrtcDestroyProgram")?;
            Ok(image)
        }
    }
}
