//! Errors that cannot be returned, such as those of `Drop`.

use std::sync::{Arc, RwLock};

use super::Error;

/// A hook for errors that cannot be returned.
pub type DeferredErrorHook = dyn Fn(&Error) + Send + Sync;

static HOOK: RwLock<Option<Arc<DeferredErrorHook>>> = RwLock::new(None);

/// Sets the hook for errors that cannot be returned, such as those of `Drop`.
///
/// These errors are also written to [`log`] at error level. `None` removes the hook. A panic of the hook is ignored.
/// The hook may run on any thread, including the driver's, so it must not use this library.
pub fn set_deferred_error_hook(hook: Option<Box<DeferredErrorHook>>) {
    *HOOK.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = hook.map(Arc::from);
}

/// Reports an error that cannot be returned.
pub(crate) fn report_deferred(error: &Error) {
    let hook = HOOK.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
    // A panic of a logger or hook must not cross a `Drop`, nor one of the payload's destructor.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        log::error!("not returned to a caller: {error}");
        if let Some(hook) = hook {
            hook(error);
        }
    }));
    if let Err(payload) = outcome {
        std::mem::forget(payload);
    }
}
