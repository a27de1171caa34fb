//! The message of a thread's last error.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

use super::status;
use crate::Error;

/// An error on its way to C: a status and the message for it.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) status: i32,
    pub(super) message: String,
}

/// The result of the body of an exported function.
pub(super) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// An argument that cannot be used.
    pub(super) fn argument(name: &str, found: impl std::fmt::Display, wanted: &str) -> Failure {
        let message = format!("{name}: found {found}; wanted {wanted}");
        Failure { status: status::SV_ERROR_INVALID_ARGUMENT, message }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { status: status::of(&error), message: error.to_string() }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Keeps a message for [`sv_last_error`]. A thread that is ending keeps none.
pub(super) fn set_last(function: &str, message: &str) {
    let text = format!("{function}: {message}").replace('\0', "\u{fffd}");
    let _ = LAST.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = CString::new(text).unwrap_or_default();
        }
    });
}

/// Returns the message of the last call of this thread that failed, as UTF-8; an empty text before the first one.
///
/// A call that succeeds leaves the message as it is. The text belongs to the library and is valid until the next failing call
/// of the same thread. Each thread has a message of its own.
#[unsafe(no_mangle)]
pub extern "C" fn sv_last_error() -> *const c_char {
    static EMPTY: &std::ffi::CStr = c"";
    LAST.try_with(|last| last.try_borrow().map_or(EMPTY.as_ptr(), |last| last.as_ptr()))
        .unwrap_or(EMPTY.as_ptr())
}
