//! The frame of every exported function: shutdown, panics and the last error.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::{Failure, Result, set_last};
use super::status;

/// Set by `sv_shutdown`.
pub(super) static SHUT_DOWN: AtomicBool = AtomicBool::new(false);

/// The exported functions in which a thread is: more than one where a callback of one calls another.
struct Calls {
    depth: Cell<u32>,
    /// The depth of the first function that uses objects where they are, or 0.
    in_use: Cell<u32>,
}

thread_local! {
    static CALLS: Calls = const { Calls { depth: Cell::new(0), in_use: Cell::new(0) } };
}

/// Runs work that uses objects where they are, for which other threads wait.
#[inline]
pub(super) fn in_use<R>(work: impl FnOnce() -> R) -> R {
    struct Restore<'a>(&'a Calls, u32);
    impl Drop for Restore<'_> {
        #[inline]
        fn drop(&mut self) {
            self.0.in_use.set(self.1);
        }
    }
    CALLS.with(|calls| {
        let before = calls.in_use.get();
        calls.in_use.set(if before == 0 { calls.depth.get() } else { before });
        let _restore = Restore(calls, before);
        work()
    })
}

/// Returns whether this thread is in a callback of a call that uses objects where they are. A wait for another thread might
/// then wait for this one.
pub(super) fn is_in_callback_of_a_use() -> bool {
    CALLS.try_with(|calls| (1..calls.depth.get()).contains(&calls.in_use.get())).unwrap_or(false)
}

/// Keeps panics inside of the ABI from being printed. Others go to the hook that was there before.
fn silence_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !CALLS.try_with(|calls| calls.depth.get() > 0).unwrap_or(true) {
                before(panic);
            }
        }));
    });
}

/// Runs the body of an exported function and returns its status. `name` begins the message of an error.
pub(super) fn call(name: &'static str, body: impl FnOnce() -> Result<()>) -> i32 {
    if SHUT_DOWN.load(Ordering::Acquire) {
        set_last(name, "the library was shut down by sv_shutdown");
        return status::SV_ERROR_SHUT_DOWN;
    }
    run(name, body)
}

/// As [`call`], also after `sv_shutdown`.
pub(super) fn run(name: &'static str, body: impl FnOnce() -> Result<()>) -> i32 {
    let mut body = Some(body);
    frame(name, &mut || match body.take().map_or(Ok(()), |body| body()) {
        Ok(()) => status::SV_OK,
        Err(failure) => report(name, &failure),
    })
}

/// Keeps the message of a failure and returns its status.
#[cold]
fn report(name: &'static str, failure: &Failure) -> i32 {
    set_last(name, &failure.message);
    failure.status
}

/// The frame itself, which every function shares: the library has one copy of it. The body returns its status in a register,
/// because a `Result` is in memory, and is read back with a stall.
fn frame(name: &'static str, body: &mut dyn FnMut() -> i32) -> i32 {
    silence_panics();
    // The counts have no destructor, so they are there until the thread ends.
    CALLS.with(|calls| {
        let outer = calls.depth.get();
        calls.depth.set(outer.saturating_add(1));
        // A panic leaves the body's objects usable: locks ignore poison, and uses of handles end in destructors.
        let result = catch_unwind(AssertUnwindSafe(body));
        calls.depth.set(outer);
        result.unwrap_or_else(|panic| report_panic(name, panic))
    })
}

/// Keeps the message of a panic and returns the status of panics.
#[cold]
fn report_panic(name: &'static str, panic: Box<dyn Any + Send>) -> i32 {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    set_last(name, &format!("a defect of the library: {}", text.unwrap_or("a panic without a text")));
    // The payload's destructor may panic too; that payload is not dropped.
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(another);
    }
    status::SV_ERROR_PANIC
}

/// Panics, for the C test that shows the status of a panic. The header and release builds do not have it.
///
/// cbindgen:ignore
#[cfg(debug_assertions)]
#[unsafe(no_mangle)]
pub extern "C" fn sv_test_panic() -> i32 {
    call("sv_test_panic", || panic!("on purpose"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capi::error::sv_last_error;

    #[test]
    fn a_panic_becomes_a_status_with_a_message() {
        let found = call("sv_test", || panic!("on purpose"));
        assert_eq!(found, status::SV_ERROR_PANIC);
        // SAFETY: the message is valid until the next error of this thread.
        let message = unsafe { std::ffi::CStr::from_ptr(sv_last_error()) }.to_str().unwrap();
        assert_eq!(message, "sv_test: a defect of the library: on purpose");
    }
}
