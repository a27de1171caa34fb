//! The frame of every exported function: shutdown, panics and the last error.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::{Failure, Result, set_last};
use super::status;

/// Set by `sv_shutdown`.
pub(super) static SHUT_DOWN: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// `true` while this thread is inside an exported function.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Keeps panics inside of the ABI from being printed. Others go to the hook that was there before.
fn silence_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !INSIDE.try_with(Cell::get).unwrap_or(true) {
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
    frame(name, &mut || body.take().map_or(Ok(()), |body| body()))
}

/// The frame itself, which every function shares: the library has one copy of it.
fn frame(name: &'static str, body: &mut dyn FnMut() -> Result<()>) -> i32 {
    silence_panics();
    let outer = INSIDE.try_with(|inside| inside.replace(true)).unwrap_or(true);
    // The body's objects are shared and guarded by locks that ignore poison, so a panic leaves them usable.
    let result = catch_unwind(AssertUnwindSafe(body));
    let _ = INSIDE.try_with(|inside| inside.set(outer));
    match result {
        Ok(Ok(())) => status::SV_OK,
        Ok(Err(Failure { status, message })) => {
            set_last(name, &message);
            status
        }
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            set_last(name, &format!("a defect of the library: {}", text.unwrap_or("a panic without a text")));
            // The payload's destructor may panic too; that payload is not dropped.
            if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
                std::mem::forget(another);
            }
            status::SV_ERROR_PANIC
        }
    }
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
