//! Traces: a file of what the program and its devices did and when (docs/tracing.md).

use std::cell::RefCell;
use std::ffi::c_char;
use std::path::Path;

use super::arguments::text;
use super::error::Failure;
use super::guard;
use crate::trace::{self, Range};

thread_local! {
    /// The ranges of this thread that `sv_trace_push` began.
    static RANGES: RefCell<Vec<Range>> = const { RefCell::new(Vec::new()) };
}

/// Starts a trace into a file, which is replaced. `sv_trace_stop` or the end of the process completes it. There is one trace at
/// a time in a process. The environment variable `SELVEDGE_TRACE` starts one, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_trace_start(path: *const c_char) -> i32 {
    guard::call("sv_trace_start", || Ok(trace::start(Path::new(text(path, "path")?))?))
}

/// Ends the trace and completes its file. It does nothing without a trace.
///
/// It waits at most a second for the work of devices that still runs.
#[unsafe(no_mangle)]
pub extern "C" fn sv_trace_stop() -> i32 {
    guard::call("sv_trace_stop", || Ok(trace::stop()?))
}

/// Begins a range of the calling thread, whose time the trace shows by its name. Ranges nest.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_trace_push(name: *const c_char) -> i32 {
    guard::call("sv_trace_push", || {
        let name = text(name, "name")?;
        let range = trace::span("range", || (name.to_owned().into(), Vec::new()));
        RANGES.with_borrow_mut(|ranges| ranges.push(range));
        Ok(())
    })
}

/// Ends the range that this thread began last.
#[unsafe(no_mangle)]
pub extern "C" fn sv_trace_pop() -> i32 {
    guard::call("sv_trace_pop", || {
        let range = RANGES.with_borrow_mut(Vec::pop);
        range.map(drop).ok_or_else(|| Failure::argument("range", "none", "one that sv_trace_push began"))
    })
}
