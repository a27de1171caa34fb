//! The driver as other code in the process sees it: contexts made and switched behind the crate's back.

use std::ffi::{c_int, c_uint, c_void};

use libloading::Library;

/// A driver context.
pub type Context = *mut c_void;

/// The driver, loaded apart from the crate.
pub struct ForeignDriver(Library);

impl ForeignDriver {
    pub fn load() -> Result<ForeignDriver, String> {
        let asked = std::env::var("SELVEDGE_LIBCUDA").ok().filter(|path| !path.is_empty());
        let usual = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
        let name = asked.as_deref().unwrap_or(usual);
        // SAFETY: the driver's initialisers are meant to be run by any process; it is loaded already.
        unsafe { Library::new(name) }.map(ForeignDriver).map_err(|error| format!("{name}: {error:?}"))
    }

    /// The context that is current on this thread.
    pub fn current(&self) -> Context {
        let mut context: Context = std::ptr::null_mut();
        // SAFETY: the function has this type, and the pointer is to a local.
        let status = unsafe {
            let get = self.0.get::<unsafe extern "C" fn(*mut Context) -> c_int>(b"cuCtxGetCurrent\0");
            get.expect("cuCtxGetCurrent is there")(&mut context)
        };
        assert_eq!(status, 0, "cuCtxGetCurrent");
        context
    }

    pub fn set_current(&self, context: Context) {
        // SAFETY: the function has this type; the context is live or null.
        let status = unsafe {
            let set = self.0.get::<unsafe extern "C" fn(Context) -> c_int>(b"cuCtxSetCurrent\0");
            set.expect("cuCtxSetCurrent is there")(context)
        };
        assert_eq!(status, 0, "cuCtxSetCurrent");
    }

    /// A context that is not the primary one; it is current afterwards.
    pub fn create(&self, ordinal: c_int) -> ForeignContext<'_> {
        let (mut device, mut context): (c_int, Context) = (0, std::ptr::null_mut());
        // SAFETY: the functions have these types, and the pointers are to locals.
        let status = unsafe {
            let get = self.0.get::<unsafe extern "C" fn(*mut c_int, c_int) -> c_int>(b"cuDeviceGet\0");
            assert_eq!(get.expect("cuDeviceGet is there")(&mut device, ordinal), 0, "cuDeviceGet");
            let create =
                self.0.get::<unsafe extern "C" fn(*mut Context, c_uint, c_int) -> c_int>(b"cuCtxCreate_v2\0");
            create.expect("cuCtxCreate_v2 is there")(&mut context, 0, device)
        };
        assert_eq!(status, 0, "cuCtxCreate_v2");
        ForeignContext { driver: self, context }
    }
}

/// A context that is destroyed at the end; none is current then.
pub struct ForeignContext<'a> {
    driver: &'a ForeignDriver,
    pub context: Context,
}

impl Drop for ForeignContext<'_> {
    fn drop(&mut self) {
        self.driver.set_current(std::ptr::null_mut());
        // SAFETY: the function has this type; the context is ours and is not used again.
        unsafe {
            let destroy = self.driver.0.get::<unsafe extern "C" fn(Context) -> c_int>(b"cuCtxDestroy_v2\0");
            if let Ok(destroy) = destroy {
                destroy(self.context);
            }
        }
    }
}
