//! Messages of the library in Python's `logging`: `selvedge::nn::decoder` of the crate `log` is the logger `selvedge.nn.decoder`.
//!
//! A message comes from any thread, perhaps while the thread holds a lock of the library. A logger that took the interpreter's lock
//! there would deadlock with a thread that has it and waits for the library's. So a message is queued, without the interpreter, and a
//! pending call of the interpreter delivers it on the main thread, as a signal: after the call of the library that wrote it, and
//! before the next line of Python. Levels are those of Python at that time, so no operation asks for them.
//!
//! Tests: `python/tests/test_messages.py`.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// The most messages that wait for the main thread. Later ones are counted alone.
const LIMIT: usize = 1000;

/// The logger of the library, and of the messages that stand for lost ones.
const ROOT: &str = "selvedge";

struct Message {
    level: Level,
    target: String,
    file: &'static str,
    line: u32,
    text: String,
    time: SystemTime,
}

struct Queue {
    messages: VecDeque<Message>,
    lost: usize,
    /// A pending call of the interpreter was asked for and has not begun.
    is_scheduled: bool,
    /// The interpreter ends, and takes no pending call.
    is_closed: bool,
}

static QUEUE: Mutex<Queue> =
    Mutex::new(Queue { messages: VecDeque::new(), lost: 0, is_scheduled: false, is_closed: false });

/// The process runs the program `selvedge`, which shows warnings as they come.
static IS_PROGRAM: AtomicBool = AtomicBool::new(false);

/// Locks the queue. No thread waits for the interpreter meanwhile.
fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct PythonLogger;

impl Log for PythonLogger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Other crates than the library's have no loggers of this package.
        metadata.target().split("::").next() == Some(ROOT)
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        if IS_PROGRAM.load(Ordering::Relaxed) {
            if record.level() <= Level::Warn {
                selvedge_program::print_warning(record.args());
            }
            return;
        }
        let message = Message {
            level: record.level(),
            target: record.target().replace("::", "."),
            file: record.file_static().unwrap_or(""),
            line: record.line().unwrap_or(0),
            text: record.args().to_string(),
            time: SystemTime::now(),
        };
        let mut queue = queue();
        if queue.is_closed {
            return;
        }
        if queue.messages.len() < LIMIT {
            queue.messages.push_back(message);
        } else {
            queue.lost += 1;
        }
        if !queue.is_scheduled {
            // SAFETY: the interpreter runs, since `close` would have set `is_closed` under this lock. Any thread may call this.
            let refused =
                unsafe { pyo3::ffi::Py_AddPendingCall(Some(deliver_pending), std::ptr::null_mut()) };
            // Of a full queue of the interpreter, the next message asks again.
            queue.is_scheduled = refused == 0;
        }
    }

    fn flush(&self) {}
}

extern "C" fn deliver_pending(_: *mut c_void) -> c_int {
    Python::attach(|py| match deliver(py) {
        Ok(()) => 0,
        Err(exception) => {
            exception.restore(py);
            -1
        }
    })
}

/// Passes the queued messages to Python's loggers.
///
/// # Errors
///
/// An exception that is no `Exception`, such as `KeyboardInterrupt`. Others of a filter or a handler go to `sys.unraisablehook`.
fn deliver(py: Python<'_>) -> PyResult<()> {
    let (count, lost) = {
        let mut queue = queue();
        queue.is_scheduled = false;
        (queue.messages.len(), std::mem::take(&mut queue.lost))
    };
    // Messages that handlers cause have a pending call of their own.
    for _ in 0..count {
        let Some(message) = queue().messages.pop_front() else { break };
        report(py, handle(py, &message))?;
    }
    if lost > 0 {
        let text = format!("{lost} messages are lost: more than {LIMIT} waited for the main thread");
        let message = Message {
            level: Level::Warn,
            target: ROOT.to_owned(),
            file: file!(),
            line: line!(),
            text,
            time: SystemTime::now(),
        };
        report(py, handle(py, &message))?;
    }
    Ok(())
}

/// Passes an exception to `sys.unraisablehook`, unless it ends the program.
fn report(py: Python<'_>, result: PyResult<()>) -> PyResult<()> {
    match result {
        Err(exception) if exception.is_instance_of::<PyException>(py) => {
            exception.write_unraisable(py, None);
            Ok(())
        }
        result => result,
    }
}

fn handle(py: Python<'_>, message: &Message) -> PyResult<()> {
    // A program that has not imported `logging` has no handlers, whose default shows warnings.
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    let logging = match modules.get_item("logging")? {
        Some(logging) => logging,
        None if message.level <= Level::Warn => py.import("logging")?.into_any(),
        None => return Ok(()),
    };
    let level = match message.level {
        Level::Error => 40,
        Level::Warn => 30,
        Level::Info => 20,
        Level::Debug => 10,
        Level::Trace => 5,
    };
    let logger = logging.call_method1("getLogger", (&message.target,))?;
    if !logger.call_method1("isEnabledFor", (level,))?.is_truthy()? {
        return Ok(());
    }
    let (name, empty) = (&message.target, PyTuple::empty(py));
    let record = (name, level, message.file, message.line, &message.text, empty, py.None());
    let record = logger.call_method1("makeRecord", record)?;
    let time = message.time.duration_since(UNIX_EPOCH).unwrap_or_default();
    record.setattr("created", time.as_secs_f64())?;
    record.setattr("msecs", f64::from(time.subsec_millis()))?;
    logger.call_method1("handle", (record,)).map(drop)
}

/// Delivers what waits, and refuses later messages.
#[pyfunction]
fn close(py: Python<'_>) -> PyResult<()> {
    let delivered = deliver(py);
    queue().is_closed = true;
    delivered
}

/// Shows warnings on stderr from now on, as the program does: it runs within one call of Python.
pub fn run_program() {
    IS_PROGRAM.store(true, Ordering::Relaxed);
}

/// Becomes the process's logger, unless it has one.
pub fn install(py: Python<'_>) -> PyResult<()> {
    if log::set_logger(&PythonLogger).is_ok() {
        log::set_max_level(LevelFilter::Debug);
        let close = wrap_pyfunction!(close, py)?;
        py.import("atexit")?.call_method1("register", (close,))?;
    }
    Ok(())
}
