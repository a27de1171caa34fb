//! Work that records nothing.
//!
//! Invariant: a scope of this thread ends with the one around it, so that a scope that an early return left open lasts no longer
//! than that. The scope of `sv_no_grad` ends with its function, whatever the function leaves open.

use std::cell::RefCell;
use std::ffi::c_void;

use super::super::super::arguments::out;
use super::super::super::error::{Failure, Result};
use super::super::super::guard;
use crate::nn::{self, NoGradGuard};

thread_local! {
    /// The scopes of this thread that `sv_no_grad_begin` began and that have not ended.
    static SCOPES: RefCell<Vec<NoGradGuard>> = const { RefCell::new(Vec::new()) };
}

/// Work of `sv_no_grad`. `user` is the pointer that the program gave.
#[allow(non_camel_case_types)]
pub type sv_no_grad_work = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// Returns the number of open scopes.
fn depth() -> usize {
    SCOPES.with_borrow(Vec::len)
}

/// Ends the scopes that began at a depth and later.
fn end(depth: usize) -> Result<()> {
    let open = self::depth();
    if depth >= open {
        let wanted = format!("one that sv_no_grad_begin wrote on this thread: below {open}, its open scopes");
        return Err(Failure::argument("depth", depth, &wanted));
    }
    SCOPES.with_borrow_mut(|scopes| scopes.truncate(depth));
    Ok(())
}

/// Calls `work` once, on this thread. Operations of variables in it are not recorded, and their results are constants. Scopes that
/// it begins and does not end, end with it.
///
/// # Safety
///
/// `work` is a function of this type that may be called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_no_grad(work: sv_no_grad_work, user: *mut c_void) -> i32 {
    guard::call("sv_no_grad", || {
        let Some(work) = work else {
            return Err(Failure::argument("work", "NULL", "a function"));
        };
        let before = depth();
        // SAFETY: the caller vouches for the function and its pointer.
        nn::no_grad(|| unsafe { work(user) });
        SCOPES.with_borrow_mut(|scopes| scopes.truncate(before));
        Ok(())
    })
}

/// Begins a scope of the calling thread in which operations of variables are not recorded, and writes its depth for
/// `sv_no_grad_end`. Scopes nest. `sv_no_grad` ends its scope by itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_no_grad_begin(depth: *mut usize) -> i32 {
    guard::call("sv_no_grad_begin", || {
        let result = out(depth, "depth")?;
        result.write(SCOPES.with_borrow_mut(|scopes| {
            scopes.push(NoGradGuard::new());
            scopes.len() - 1
        }));
        Ok(())
    })
}

/// Ends the scope of the calling thread that began at a depth, and those in it that are still open. Ending it twice, or on another
/// thread, is `SV_ERROR_INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_no_grad_end(depth: usize) -> i32 {
    guard::call("sv_no_grad_end", || end(depth))
}

/// Writes 1 if operations of variables on this thread are recorded, or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_is_grad_enabled(is_enabled: *mut i32) -> i32 {
    guard::call("sv_is_grad_enabled", || {
        out(is_enabled, "is_enabled")?.write(i32::from(nn::is_grad_enabled()));
        Ok(())
    })
}
