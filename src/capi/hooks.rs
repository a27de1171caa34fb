//! Settings of the program around the library: the log, the CPU threads, their executor and the allocator of CPU memory.

use std::cell::Cell;
use std::ffi::{CString, c_char, c_void};
use std::sync::{Arc, PoisonError, RwLock};

use log::{LevelFilter, Log, Metadata, Record};

use super::arguments::out;
use super::buffer::User;
use super::error::{Failure, Result};
use super::guard;
use super::status::SV_ERROR_UNSUPPORTED;

/// No messages, for `sv_set_log_callback`.
pub const SV_LOG_OFF: i32 = 0;
/// Errors that no call could return, such as those of a release.
pub const SV_LOG_ERROR: i32 = 1;
/// Settings that are ignored, and the like.
pub const SV_LOG_WARN: i32 = 2;
/// Rare events of interest.
pub const SV_LOG_INFO: i32 = 3;
/// Decisions of the library.
pub const SV_LOG_DEBUG: i32 = 4;
/// Everything.
pub const SV_LOG_TRACE: i32 = 5;

/// A function that gets the messages of the library: the level, the part of the library, and the text, in UTF-8. The texts are
/// valid during the call.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type sv_log_callback = Option<
    unsafe extern "C" fn(level: i32, target: *const c_char, message: *const c_char, user: *mut c_void),
>;

struct Hook {
    callback: unsafe extern "C" fn(i32, *const c_char, *const c_char, *mut c_void),
    user: User,
}

/// Not empty, so that no other static has its address.
struct Logger(#[allow(dead_code)] u8);

static LOGGER: Logger = Logger(0);
static HOOK: RwLock<Option<Hook>> = RwLock::new(None);

thread_local! {
    /// `true` while this thread is in the callback, so that a message of a call from there does not call it again.
    static LOGGING: Cell<bool> = const { Cell::new(false) };
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

impl Log for Logger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        HOOK.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn log(&self, record: &Record<'_>) {
        if LOGGING.try_with(|logging| logging.replace(true)).unwrap_or(true) {
            return;
        }
        let hook = HOOK.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(Hook { callback, user }) = &*hook {
            let (target, message) = (c_text(record.target()), c_text(&record.args().to_string()));
            // SAFETY: the caller of `sv_set_log_callback` vouches for the function and its pointer.
            unsafe { callback(record.level() as i32, target.as_ptr(), message.as_ptr(), user.pointer()) };
        }
        drop(hook);
        let _ = LOGGING.try_with(|logging| logging.set(false));
    }

    fn flush(&self) {}
}

/// Removes the callback. No thread is in it afterwards.
pub(super) fn forget_log_callback() {
    log::set_max_level(LevelFilter::Off);
    *HOOK.write().unwrap_or_else(PoisonError::into_inner) = None;
}

fn level_of(level: i32) -> Result<LevelFilter> {
    Ok(match level {
        SV_LOG_OFF => LevelFilter::Off,
        SV_LOG_ERROR => LevelFilter::Error,
        SV_LOG_WARN => LevelFilter::Warn,
        SV_LOG_INFO => LevelFilter::Info,
        SV_LOG_DEBUG => LevelFilter::Debug,
        SV_LOG_TRACE => LevelFilter::Trace,
        other => return Err(Failure::argument("level", other, "SV_LOG_OFF to SV_LOG_TRACE")),
    })
}

/// Sets the function that gets the library's messages of `level` (`SV_LOG_...`) and more urgent ones. NULL removes it. Without
/// one the library writes no message anywhere.
///
/// The function is called on the thread that a message comes from, on several at once, and must not call `sv_set_log_callback` or
/// `sv_shutdown`. When this call returns, no thread is in an earlier function. `SV_ERROR_UNSUPPORTED` in a Rust program that has
/// a logger of its own.
///
/// # Safety
///
/// `callback` may be called with `user` from any thread until it is replaced, removed, or `sv_shutdown` returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_set_log_callback(
    level: i32,
    callback: sv_log_callback,
    user: *mut c_void,
) -> i32 {
    guard::call("sv_set_log_callback", || {
        let level = level_of(level)?;
        if LOGGING.try_with(Cell::get).unwrap_or(false) {
            return Err(Failure::argument("callback", "a call from the callback", "a call from elsewhere"));
        }
        let Some(callback) = callback else {
            forget_log_callback();
            return Ok(());
        };
        if log::set_logger(&LOGGER).is_err()
            && !std::ptr::addr_eq(std::ptr::from_ref(log::logger()), &raw const LOGGER)
        {
            let message = "callback: found another logger in this process; wanted none".to_owned();
            return Err(Failure { status: SV_ERROR_UNSUPPORTED, message });
        }
        let hook = Hook { callback, user: User(user) };
        *HOOK.write().unwrap_or_else(PoisonError::into_inner) = Some(hook);
        log::set_max_level(level);
        Ok(())
    })
}

/// A function that allocates memory of CPU tensors; NULL if there is none.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type sv_host_allocate =
    Option<unsafe extern "C" fn(bytes: usize, alignment: usize, user: *mut c_void) -> *mut c_void>;

/// A function that frees memory of an `sv_host_allocate`, with the numbers of its allocation.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type sv_host_free =
    Option<unsafe extern "C" fn(memory: *mut c_void, bytes: usize, alignment: usize, user: *mut c_void)>;

/// Sets the functions that allocate and free the memory of CPU tensors, for the whole process and until its end. Blocks of freed
/// tensors are then not kept for later ones. CUDA memory, and memory that other code lends, is not affected.
///
/// Any thread may call it, once, before the first tensor on the CPU; `SV_ERROR_INVALID_ARGUMENT` afterwards. `sv_shutdown` does
/// not end it.
///
/// # Safety
///
/// `allocate` returns NULL or so many bytes, at a multiple of the alignment, that nothing else uses until `free` gets them. Any
/// thread calls both with `user`, until the process ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_set_host_allocator(
    allocate: sv_host_allocate,
    free: sv_host_free,
    user: *mut c_void,
) -> i32 {
    guard::call("sv_set_host_allocator", || {
        let allocate = allocate.ok_or_else(|| Failure::argument("allocate", "NULL", "a function"))?;
        let free = free.ok_or_else(|| Failure::argument("free", "NULL", "a function"))?;
        let (user, same) = (User(user), User(user));
        crate::tensor::set_host_allocator(
            move |layout| allocate(layout.size(), layout.align(), user.pointer()).cast(),
            move |memory, layout| free(memory.cast(), layout.size(), layout.align(), same.pointer()),
        )?;
        Ok(())
    })
}

/// Sets the number of CPU threads that an operation may use, the calling one included. 0 restores the default:
/// `SELVEDGE_THREADS`, or the number of processors that the process may run on. Results do not depend on it.
///
/// The setting holds for operations that start after the call, on any thread. With 1 the library starts no thread for operations.
#[unsafe(no_mangle)]
pub extern "C" fn sv_set_threads(count: u32) -> i32 {
    guard::call("sv_set_threads", || {
        crate::set_threads(count as usize);
        Ok(())
    })
}

/// A job of an `sv_executor`.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type sv_job = Option<unsafe extern "C" fn(index: usize, context: *mut c_void)>;

/// A function that runs the jobs of CPU operations: it calls `job` with each index below `count` and with `context`, once and on
/// threads of its choice, and returns when all calls have returned.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type sv_executor =
    Option<unsafe extern "C" fn(count: usize, job: sv_job, context: *mut c_void, user: *mut c_void)>;

/// Calls the job behind `context`, a `&&(dyn Fn(usize) + Sync)`. It unwinds never: the library catches the panics of jobs.
unsafe extern "C" fn call_job(index: usize, context: *mut c_void) {
    // SAFETY: the executor calls it with its own context, and not after it has returned.
    let job = unsafe { &*context.cast::<&(dyn Fn(usize) + Sync)>() };
    job(index);
}

/// Sets the function that runs the jobs of CPU operations instead of the library's own threads. NULL restores them.
///
/// An operation asks for 2 jobs to as many as `sv_thread_count` says, and small ones run on the calling thread without the
/// function. The jobs share out the work of an operation, so their order and the number of threads change no result. Jobs
/// that the function leaves out are done by the calling thread. A job may call the function itself, on any thread, so it must
/// not wait for a free thread. Operations that run during this call may still use the function before. Any thread may call it;
/// `sv_shutdown` removes the function.
///
/// # Safety
///
/// `executor` may be called with `user` from any thread until it is replaced, removed, or `sv_shutdown` returns, and until the
/// operations that began before have ended. It calls no job after it has returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_set_executor(executor: sv_executor, user: *mut c_void) -> i32 {
    guard::call("sv_set_executor", || {
        let user = User(user);
        crate::set_executor(executor.map(|executor| {
            let run = move |count: usize, job: &(dyn Fn(usize) + Sync)| {
                let context = (&raw const job).cast_mut().cast();
                // SAFETY: the caller vouches for the function and its pointer; `job` lives until it returns.
                unsafe { executor(count, Some(call_job), context, user.pointer()) };
            };
            Arc::new(run) as crate::Executor
        }));
        Ok(())
    })
}

/// Writes the number of CPU threads that an operation may use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_thread_count(count: *mut u32) -> i32 {
    guard::call("sv_thread_count", || {
        let count = out(count, "count")?;
        count.write(u32::try_from(crate::thread_count()).unwrap_or(u32::MAX));
        Ok(())
    })
}
