//! Executable memory of a kernel.
//!
//! Invariant: a page is writable or executable, never both.

use std::ffi::c_void;

use super::Unsupported;

#[cfg(unix)]
unsafe extern "C" {
    fn mmap(at: *mut c_void, size: usize, access: i32, flags: i32, file: i32, offset: i64) -> *mut c_void;
    fn mprotect(at: *mut c_void, size: usize, access: i32) -> i32;
    fn munmap(at: *mut c_void, size: usize) -> i32;
}

#[cfg(unix)]
const PAGE: usize = 4096;
#[cfg(unix)]
const READ_WRITE: i32 = 3;
#[cfg(unix)]
const READ_EXECUTE: i32 = 5;
#[cfg(unix)]
/// `MAP_PRIVATE | MAP_ANONYMOUS`
const PRIVATE: i32 = if cfg!(target_vendor = "apple") { 0x1002 } else { 0x22 };

/// A function in pages of its own.
#[derive(Debug)]
pub(super) struct Executable {
    start: *mut c_void,
    #[cfg(unix)]
    size: usize,
}

// SAFETY: the pages are read-only until they are unmapped.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

impl Executable {
    /// Copies code to new pages.
    ///
    /// # Errors
    ///
    /// The reason why the system gives no executable memory.
    #[cfg(unix)]
    pub(super) fn new(code: &[u8]) -> Result<Executable, Unsupported> {
        let size = code.len().next_multiple_of(PAGE);
        // SAFETY: an anonymous mapping at an address of the system's choice.
        let start = unsafe { mmap(std::ptr::null_mut(), size, READ_WRITE, PRIVATE, -1, 0) };
        if start.addr() == usize::MAX {
            return Err(Unsupported::Memory(std::io::Error::last_os_error().to_string()));
        }
        let memory = Executable { start, size };
        // SAFETY: the mapping is new, writable and at least this long.
        unsafe { start.cast::<u8>().copy_from_nonoverlapping(code.as_ptr(), code.len()) };
        // SAFETY: the range is the mapping.
        if unsafe { mprotect(start, size, READ_EXECUTE) } != 0 {
            return Err(Unsupported::Memory(std::io::Error::last_os_error().to_string()));
        }
        Ok(memory)
    }

    /// Returns the reason why this system gives no executable memory.
    #[cfg(not(unix))]
    pub(super) fn new(_code: &[u8]) -> Result<Executable, Unsupported> {
        Err(Unsupported::Memory("not implemented for this system".to_owned()))
    }

    pub(super) fn start(&self) -> *const c_void {
        self.start
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        #[cfg(unix)]
        // SAFETY: the mapping is this value's, and a call borrows the value.
        unsafe {
            munmap(self.start, self.size)
        };
    }
}
