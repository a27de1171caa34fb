//! Processes that `fork` made of one that had used CUDA.
//!
//! Such a child has the parent's handles and none of the driver's threads; its first driver call may fail, hang or disturb
//! the parent. So the child is told by `pthread_atfork`, and from then on every device of the parent counts as lost there:
//! entries answer [`Error::ForkedProcess`] and drops leave the driver alone, by the flag that they read anyway. A child
//! that another program is started in never gets so far, and one forked before CUDA was used may use it.
//!
//! What must stay true: the handler only stores to atomics, because locks of the parent's other threads stay locked in the
//! child; for the same reason no `Drop` takes a lock before it has looked at the flag.

#[cfg(unix)]
use std::ffi::c_int;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::error::{Error, Result};
use crate::sys::DriverApi;

/// Whether the driver was initialised, here or in the process that this one was forked from.
static USED: AtomicBool = AtomicBool::new(false);
/// Whether this process was forked from one that had used the driver.
static FORKED: AtomicBool = AtomicBool::new(false);
/// The flags to raise in a child, as a list that only grows.
static FIRST: AtomicPtr<Watched> = AtomicPtr::new(ptr::null_mut());

struct Watched {
    flag: &'static AtomicBool,
    next: *mut Watched,
}

/// The driver's functions, for a process that may use them.
pub(crate) fn driver() -> Result<&'static DriverApi> {
    check()?;
    watch();
    let api = crate::sys::driver()?;
    USED.store(true, Ordering::Release);
    Ok(api)
}

/// Whether this process was forked from one that had used the driver.
pub(crate) fn forked() -> bool {
    FORKED.load(Ordering::Acquire)
}

/// Fails in a process that was forked from one that had used the driver.
pub(crate) fn check() -> Result<()> {
    if forked() { Err(Error::ForkedProcess) } else { Ok(()) }
}

/// Raises this flag, too, in a child.
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
    /// POSIX. What it registers goes with the library where that is unloaded.
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
            // SAFETY: the handler may be called at any fork: it only stores to statics and to flags that live for ever.
            let status = unsafe { pthread_atfork(None, None, Some(in_child)) };
            if status != 0 {
                log::warn!(
                    "a fork after the use of CUDA will not be noticed: pthread_atfork answered {status}"
                );
            }
        }
    });
}
