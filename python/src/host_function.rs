//! Functions of Python that a stream calls: `selvedge.Stream.on_complete`.
//!
//! The driver calls a function of the host on a thread of its own, which may neither call CUDA nor free memory of it, and on which
//! later work of the stream waits. A function of Python does all of that, if only by the end of a reference. So the driver's thread
//! sends it to a thread of the package, which waits for the interpreter's lock in its place. That thread is joined before the
//! interpreter ends.
//!
//! Tests: `python/tests/test_streams.py`.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use pyo3::prelude::*;

use crate::error::{Result, invalid};

/// A function to call, or none to end the thread.
type Call = Option<Py<PyAny>>;

enum Worker {
    NotStarted,
    Running(Sender<Call>, JoinHandle<()>),
    /// The interpreter ends.
    Closed,
}

static WORKER: Mutex<Worker> = Mutex::new(Worker::NotStarted);

/// Locks the worker. No thread waits for the interpreter meanwhile.
fn worker() -> MutexGuard<'static, Worker> {
    WORKER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a function that sends a function of Python to the thread that calls it, and that itself needs no interpreter.
pub fn caller(py: Python<'_>, function: Py<PyAny>) -> Result<impl FnOnce() + Send + 'static> {
    let is_new = matches!(*worker(), Worker::NotStarted);
    if is_new {
        let close = wrap_pyfunction!(close, py)?;
        py.import("atexit")?.call_method1("register", (close,))?;
    }
    let mut worker = worker();
    if let Worker::NotStarted = *worker {
        let (sender, calls) = channel::<Call>();
        let run = move || {
            while let Ok(Some(function)) = calls.recv() {
                Python::attach(|py| {
                    let function = function.into_bound(py);
                    if let Err(exception) = function.call0() {
                        exception.write_unraisable(py, Some(&function));
                    }
                });
            }
        };
        let thread =
            Builder::new().name("selvedge-on-complete".to_owned()).spawn(run).map_err(PyErr::from)?;
        *worker = Worker::Running(sender, thread);
    }
    let Worker::Running(sender, _) = &*worker else {
        let found = "a function while the interpreter ends";
        return Err(invalid("Stream.on_complete", found, "a call before the end").into());
    };
    let sender = sender.clone();
    // A thread that has ended takes no function, which is dropped with the interpreter.
    Ok(move || drop(sender.send(Some(function))))
}

/// Calls the functions whose turn has come, and ends the thread.
#[pyfunction]
fn close(py: Python<'_>) {
    let ended = std::mem::replace(&mut *worker(), Worker::Closed);
    if let Worker::Running(sender, thread) = ended {
        let _ = sender.send(None);
        // A panic of the thread was reported.
        let _ = py.detach(|| thread.join());
    }
}
