//! The reference: the driver's own functions, opened by a handle and prototypes of this file's own.
//!
//! It shares nothing with the crate but the primary context, which the driver hands to both. So a defect of the crate's
//! loader, bindings or wrappers cannot slow down, or speed up, both sides at once. It checks every code and
//! does nothing else: no cache, no ownership, no `Drop`.

use std::ffi::{CString, c_char, c_void};
use std::ptr;

use super::report::Failure;

/// A `CUdeviceptr`.
pub type Address = u64;
/// A `CUcontext`, `CUstream`, `CUmodule`, `CUfunction` or `CUevent`.
pub type Handle = *mut c_void;

/// A table of the entry points of the driver, or of another library, opened by name.
macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ty),*);)*) => {
        /// The entry points that are used here.
        pub struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) -> i32,)*
            // Last, so that nothing outlives it.
            _library: libloading::Library,
        }

        impl Functions {
            /// The driver's.
            #[allow(dead_code, reason = "not every table is the driver's")]
            pub fn open() -> Result<Functions, Failure> {
                let path = std::env::var("SELVEDGE_LIBCUDA").unwrap_or_else(|_| "libcuda.so.1".to_owned());
                Functions::open_at(path.as_ref())
            }

            /// Returns the functions of the library at a path, or of this name.
            pub fn open_at(path: &std::path::Path) -> Result<Functions, Failure> {
                // SAFETY: the initialisers of NVIDIA's libraries are meant to be run by any process that opens them.
                let library = unsafe { libloading::Library::new(path) }?;
                Ok(Functions {
                    // SAFETY: the prototypes below are those of the library's API reference for these ABI versions,
                    // and the library lives as long as they do.
                    $($name: unsafe { *library.get(concat!($symbol, "\0").as_bytes())? },)*
                    _library: library,
                })
            }
        }
    };
}

pub(super) use functions;

functions! {
    init = "cuInit"(u32);
    driver_version = "cuDriverGetVersion"(*mut i32);
    device_count = "cuDeviceGetCount"(*mut i32);
    device_get = "cuDeviceGet"(*mut i32, i32);
    device_name = "cuDeviceGetName"(*mut c_char, i32, i32);
    primary_retain = "cuDevicePrimaryCtxRetain"(*mut Handle, i32);
    set_current = "cuCtxSetCurrent"(Handle);
    stream_create = "cuStreamCreateWithPriority"(*mut Handle, u32, i32);
    stream_synchronize = "cuStreamSynchronize"(Handle);
    module_load =
        "cuModuleLoadDataEx"(*mut Handle, *const c_void, u32, *mut i32, *mut *mut c_void);
    module_function = "cuModuleGetFunction"(*mut Handle, Handle, *const c_char);
    launch_kernel =
        "cuLaunchKernel"(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut *mut c_void, *mut *mut c_void);
    allocate = "cuMemAlloc_v2"(*mut Address, usize);
    free = "cuMemFree_v2"(Address);
    host_allocate = "cuMemHostAlloc"(*mut *mut c_void, usize, u32);
    host_free = "cuMemFreeHost"(*mut c_void);
    upload = "cuMemcpyHtoDAsync_v2"(Address, *const c_void, usize, Handle);
    download = "cuMemcpyDtoHAsync_v2"(*mut c_void, Address, usize, Handle);
    copy = "cuMemcpyDtoDAsync_v2"(Address, Address, usize, Handle);
    copy_peer = "cuMemcpyPeerAsync"(Address, Handle, Address, Handle, usize, Handle);
    event_create = "cuEventCreate"(*mut Handle, u32);
    event_record = "cuEventRecord"(Handle, Handle);
    event_synchronize = "cuEventSynchronize"(Handle);
    event_elapsed = "cuEventElapsedTime"(*mut f32, Handle, Handle);
}

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;
/// `CU_MEMHOSTALLOC_PORTABLE`.
const PORTABLE: u32 = 1;

/// The driver, with the primary context of one device current on this thread.
pub struct Bare {
    functions: Functions,
    /// The primary context.
    pub context: Handle,
    /// A non-blocking stream of it.
    pub stream: Handle,
    start: Handle,
    end: Handle,
}

// SAFETY: the driver takes its handles from any thread; each thread makes the context current for itself.
unsafe impl Send for Bare {}
// SAFETY: as above, and nothing in it changes.
unsafe impl Sync for Bare {}

/// Pinned memory of the driver's own.
pub struct Pinned {
    words: *mut u64,
    count: usize,
}

impl Pinned {
    /// As words.
    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: `Bare::pinned` allocated that many words, and `&mut self` is the only access to them here.
        unsafe { std::slice::from_raw_parts_mut(self.words, self.count) }
    }

    /// As the driver takes it.
    pub fn pointer(&self) -> *mut c_void {
        self.words.cast()
    }
}

pub(super) fn check(code: i32, call: &str) -> Result<(), Failure> {
    if code == 0 { Ok(()) } else { Err(format!("{call} gave {code}").into()) }
}

impl Bare {
    /// Opens the driver and makes the primary context of a device current.
    pub fn open(ordinal: i32) -> Result<Bare, Failure> {
        let functions = Functions::open()?;
        let (mut device, mut context, mut stream) = (0, ptr::null_mut(), ptr::null_mut());
        let (mut start, mut end) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: every pointer is to a live local of the type that the driver writes.
        unsafe {
            check((functions.init)(0), "cuInit")?;
            check((functions.device_get)(&mut device, ordinal), "cuDeviceGet")?;
            check((functions.primary_retain)(&mut context, device), "cuDevicePrimaryCtxRetain")?;
            check((functions.set_current)(context), "cuCtxSetCurrent")?;
            check((functions.stream_create)(&mut stream, NON_BLOCKING, 0), "cuStreamCreateWithPriority")?;
            check((functions.event_create)(&mut start, 0), "cuEventCreate")?;
            check((functions.event_create)(&mut end, 0), "cuEventCreate")?;
        }
        Ok(Bare { functions, context, stream, start, end })
    }

    /// Makes its context current, which another `Bare` may have replaced.
    pub fn make_current(&self) -> Result<(), Failure> {
        // SAFETY: the context is retained for the process's life.
        check(unsafe { (self.functions.set_current)(self.context) }, "cuCtxSetCurrent")
    }

    /// `cuDriverGetVersion`.
    pub fn driver_version(&self) -> Result<i32, Failure> {
        let mut version = 0;
        // SAFETY: writes one int.
        check(unsafe { (self.functions.driver_version)(&mut version) }, "cuDriverGetVersion")?;
        Ok(version)
    }

    /// `cuDeviceGetCount`.
    pub fn device_count(&self) -> Result<usize, Failure> {
        let mut count = 0;
        // SAFETY: writes one int.
        check(unsafe { (self.functions.device_count)(&mut count) }, "cuDeviceGetCount")?;
        Ok(count as usize)
    }

    /// `cuDeviceGetName`.
    pub fn device_name(&self, ordinal: i32) -> Result<String, Failure> {
        let mut text = [0u8; 256];
        let mut device = 0;
        // SAFETY: writes one int, and at most 255 bytes with their end.
        unsafe {
            check((self.functions.device_get)(&mut device, ordinal), "cuDeviceGet")?;
            check((self.functions.device_name)(text.as_mut_ptr().cast(), 255, device), "cuDeviceGetName")?;
        }
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(0);
        Ok(String::from_utf8_lossy(&text[..end]).into_owned())
    }

    /// Loads PTX text and takes one kernel of it.
    pub fn kernel(&self, ptx: &str, name: &str) -> Result<Handle, Failure> {
        let (text, name) = (CString::new(ptx)?, CString::new(name)?);
        let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: both texts end in a zero byte and outlive the calls.
        unsafe {
            let code = (self.functions.module_load)(
                &mut module,
                text.as_ptr().cast(),
                0,
                ptr::null_mut(),
                ptr::null_mut(),
            );
            check(code, "cuModuleLoadDataEx")?;
            check(
                (self.functions.module_function)(&mut function, module, name.as_ptr()),
                "cuModuleGetFunction",
            )?;
        }
        Ok(function)
    }

    /// `cuLaunchKernel` with a grid and a block along x.
    ///
    /// # Safety
    ///
    /// The arguments must point to values of the kernel's parameters, in their order.
    #[inline]
    pub unsafe fn launch(
        &self,
        kernel: Handle,
        grid: u32,
        block: u32,
        arguments: &mut [*mut c_void],
    ) -> Result<(), Failure> {
        // SAFETY: the caller guarantees it; the driver copies the arguments before it returns.
        let code = unsafe {
            (self.functions.launch_kernel)(
                kernel,
                grid,
                1,
                1,
                block,
                1,
                1,
                0,
                self.stream,
                arguments.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        check(code, "cuLaunchKernel")
    }

    /// Waits for the stream.
    #[inline]
    pub fn synchronize(&self) -> Result<(), Failure> {
        // SAFETY: the stream lives as long as the process.
        check(unsafe { (self.functions.stream_synchronize)(self.stream) }, "cuStreamSynchronize")
    }

    /// Device memory.
    pub fn allocate(&self, bytes: usize) -> Result<Address, Failure> {
        let mut address = 0;
        // SAFETY: writes one address.
        check(unsafe { (self.functions.allocate)(&mut address, bytes) }, "cuMemAlloc")?;
        Ok(address)
    }

    /// Gives device memory back; the stream is waited for first.
    pub fn free(&self, address: Address) -> Result<(), Failure> {
        self.synchronize()?;
        // SAFETY: the address came from `allocate`, and nothing on the stream uses it any more.
        check(unsafe { (self.functions.free)(address) }, "cuMemFree")
    }

    /// Pinned host memory, of whole words.
    pub fn pinned(&self, bytes: usize) -> Result<Pinned, Failure> {
        let mut pointer = ptr::null_mut();
        // SAFETY: writes one pointer.
        check(unsafe { (self.functions.host_allocate)(&mut pointer, bytes, PORTABLE) }, "cuMemHostAlloc")?;
        // SAFETY: that many bytes were just allocated, and any bytes are words.
        unsafe { ptr::write_bytes(pointer.cast::<u8>(), 0, bytes) };
        Ok(Pinned { words: pointer.cast(), count: bytes / 8 })
    }

    /// Gives pinned memory back; the stream is waited for first.
    pub fn free_pinned(&self, pinned: Pinned) -> Result<(), Failure> {
        self.synchronize()?;
        // SAFETY: it came from `pinned`, which nothing else holds.
        check(unsafe { (self.functions.host_free)(pinned.pointer()) }, "cuMemFreeHost")
    }

    /// Host to device, on the stream.
    #[inline]
    pub fn upload(&self, to: Address, from: &Pinned) -> Result<(), Failure> {
        // SAFETY: callers allocate both sides with the same size, and wait before they touch either.
        check(
            unsafe { (self.functions.upload)(to, from.pointer(), from.count * 8, self.stream) },
            "cuMemcpyHtoDAsync",
        )
    }

    /// Device to host, on the stream.
    #[inline]
    pub fn download(&self, to: &mut Pinned, from: Address) -> Result<(), Failure> {
        // SAFETY: as for `upload`.
        check(
            unsafe { (self.functions.download)(to.pointer(), from, to.count * 8, self.stream) },
            "cuMemcpyDtoHAsync",
        )
    }

    /// Plain host memory to device; the driver stages it. Waited for.
    pub fn upload_plain(&self, to: Address, from: &[u64]) -> Result<(), Failure> {
        // SAFETY: callers allocate `to` with at least that size; the slice is borrowed until the stream is idle.
        let code =
            unsafe { (self.functions.upload)(to, from.as_ptr().cast(), size_of_val(from), self.stream) };
        check(code, "cuMemcpyHtoDAsync")?;
        self.synchronize()
    }

    /// Device to plain host memory; the driver stages it. Waited for.
    pub fn download_plain(&self, to: &mut [u64], from: Address) -> Result<(), Failure> {
        // SAFETY: as for `upload_plain`; any bytes are words.
        let code =
            unsafe { (self.functions.download)(to.as_mut_ptr().cast(), from, size_of_val(to), self.stream) };
        check(code, "cuMemcpyDtoHAsync")?;
        self.synchronize()
    }

    /// Device to device, on the stream.
    pub fn copy(&self, to: Address, from: Address, bytes: usize) -> Result<(), Failure> {
        // SAFETY: callers allocate both sides with at least that size.
        check(unsafe { (self.functions.copy)(to, from, bytes, self.stream) }, "cuMemcpyDtoDAsync")
    }

    /// From another device's memory into ours or the reverse, on our stream.
    pub fn copy_peer(
        &self,
        to: (Address, &Bare),
        from: (Address, &Bare),
        bytes: usize,
    ) -> Result<(), Failure> {
        // SAFETY: callers allocate both sides with at least that size, in the contexts named.
        let code = unsafe {
            (self.functions.copy_peer)(to.0, to.1.context, from.0, from.1.context, bytes, self.stream)
        };
        check(code, "cuMemcpyPeerAsync")
    }

    /// Milliseconds of device time that the work put on a stream by `work` takes, by two events around it.
    ///
    /// # Safety
    ///
    /// The stream must be alive and of this context.
    pub unsafe fn device_time(
        &self,
        stream: Handle,
        work: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<f64, Failure> {
        let mut milliseconds = 0.0f32;
        // SAFETY: the events live as long as the process, and the caller guarantees the stream.
        check(unsafe { (self.functions.event_record)(self.start, stream) }, "cuEventRecord")?;
        work()?;
        // SAFETY: the same, and one float is written.
        unsafe {
            check((self.functions.event_record)(self.end, stream), "cuEventRecord")?;
            check((self.functions.event_synchronize)(self.end), "cuEventSynchronize")?;
            check(
                (self.functions.event_elapsed)(&mut milliseconds, self.start, self.end),
                "cuEventElapsedTime",
            )?;
        }
        Ok(f64::from(milliseconds))
    }
}
