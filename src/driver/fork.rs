//! Detection of processes forked from one that had used CUDA.
//!
//! Such a child has the parent's handles but none of the driver's threads. Its first driver call may fail, hang or
//! disturb the parent. A `pthread_atfork` handler therefore marks every device of the parent as lost in the child:
//! entries return [`Error::ForkedProcess`], and drops skip the driver, by the flag that they read anyway. A child that
//! executes another program is unaffected, and one forked before the first use of CUDA may use it.
//!
//! Invariants: the handler only stores to atomics, because locks held by the parent's other threads stay locked in the
//! child. For the same reason no `Drop` takes a lock before it has read the flag.

#[cfg(unix)]
use std::ffi::c_int;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::error::{Error, Result};
use crate::sys::DriverApi;

/// True if the driver was initialised, here or in the process that this one was forked from.
static USED: AtomicBool = AtomicBool::new(false);
/// True if this process was forked from one that had used the driver.
static FORKED: AtomicBool = AtomicBool::new(false);
/// The flags to raise in a child, as a list that only grows.
static FIRST: AtomicPtr<Watched> = AtomicPtr::new(ptr::null_mut());

struct Watched {
    flag: &'static AtomicBool,
    next: *mut Watched,
}

/// Returns the driver's functions, unless this process was forked after the use of CUDA.
pub(crate) fn driver() -> Result<&'static DriverApi> {
    check()?;
    watch();
    let api = crate::sys::driver()?;
    USED.store(true, Ordering::Release);
    Ok(api)
}

/// Returns whether this process was forked from one that had used the driver.
pub(crate) fn forked() -> bool {
    FORKED.load(Ordering::Acquire)
}

/// Fails in a process that was forked from one that had used the driver.
pub(crate) fn check() -> Result<()> {
    if forked() { Err(Error::ForkedProcess) } else { Ok(()) }
}

/// Registers a flag to raise in a child.
pub(crate) fn raise_in_child(flag: &'static AtomicBool) {
    let entry = Box::into_raw(Box::new(Watched { flag, next: ptr::null_mut() }));
    let mut first = FIRST.load(Ordering::Acquire);
    loop {
        // SAFETY: the entry is ours until it is published below, and never freed.
        unsafe { (*entry).next = first };
        match FIRST.compare_exchange_weak(first, entry, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(newer) => first = newer,
        }
    }
}

#[cfg(unix)]
unsafe extern "C" {
    /// A POSIX function. The C library removes the handler when it unloads the library that registered it.
    fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> c_int;
}

/// Called by `fork` in the child, where only this thread lives.
#[cfg(unix)]
unsafe extern "C" fn in_child() {
    if !USED.load(Ordering::Acquire) {
        return;
    }
    FORKED.store(true, Ordering::Release);
    let mut entry = FIRST.load(Ordering::Acquire);
    // SAFETY: entries are published whole, never written again and never freed.
    while let Some(watched) = unsafe { entry.as_ref() } {
        watched.flag.store(true, Ordering::Release);
        entry = watched.next;
    }
}

fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(unix)]
        {
            // SAFETY: the handler may run at any fork: it only stores to statics and to flags that live for ever.
            let status = unsafe { pthread_atfork(None, None, Some(in_child)) };
            if status != 0 {
                log::warn!(
                    "a fork after the use of CUDA will not be noticed: pthread_atfork answered {status}"
                );
            }
        }
    });
}
