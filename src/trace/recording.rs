//! The file of a trace, and the thread that writes it.
//!
//! The file is an array of Chrome trace events, one a line, compressed by gzip. Every [`INTERVAL`] the thread writes the
//! events so far and flushes the compressor, so a process that is killed leaves everything up to its last flush. The format
//! allows an array without its end.
//!
//! Invariants: [`RECORDING`] is locked before buffers and device clocks, and never by a thread that records an event; a
//! process that was forked during a trace writes nothing to it.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::buffer::{self, DROPPED};
use super::device_clock::device_clock;
use super::event::{Arguments, Event, Track, Value};
use super::nvtx;
use super::state::{OFF, ON, RANGES, STATE, TRACES, UNREAD, WAKE, wake};
use crate::error::{Error, Result};

/// The variable that names a file for a trace of the whole process.
const VARIABLE: &str = "SELVEDGE_TRACE";
/// The file's format, which its first event names.
const FORMAT: &str = "selvedge-trace";
const VERSION: u32 = 1;
/// The time between two flushes.
const INTERVAL: Duration = Duration::from_millis(100);
/// The longest wait for the device at the end of a trace.
const LAST_WAIT: Duration = Duration::from_secs(1);
const OPERATION: &str = "trace::start";

static RECORDING: Mutex<Option<Recording>> = Mutex::new(None);
/// True in a process that was forked during a trace.
static FORKED: AtomicBool = AtomicBool::new(false);

struct Recording {
    path: PathBuf,
    encoder: GzEncoder<File>,
    /// Text that waits for the compressor.
    text: String,
    /// The threads whose names are in the file.
    named: Vec<Track>,
    /// The number of the trace.
    id: u64,
    events: u64,
    /// Operations of devices whose times stay unknown.
    untimed: u64,
    /// The first failure to write.
    failed: Option<io::Error>,
}

fn lock() -> MutexGuard<'static, Option<Recording>> {
    RECORDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`start_from_environment`], and returns whether a trace or a profiler shows ranges.
#[cold]
pub(super) fn has_ranges() -> bool {
    start_from_environment();
    STATE.load(Ordering::Acquire) != OFF
}

/// The state without a trace.
fn idle() -> u8 {
    if nvtx::is_attached() { RANGES } else { OFF }
}

/// Attaches the profiler and starts the trace that the environment names, once. Returns whether a trace is on.
#[cold]
pub(super) fn start_from_environment() -> bool {
    // Other threads, and a logger that calls this library, go on without a trace meanwhile.
    if STATE.compare_exchange(UNREAD, OFF, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return STATE.load(Ordering::Acquire) == ON;
    }
    if nvtx::attach() {
        STATE.store(RANGES, Ordering::Release);
    }
    let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) else { return false };
    // Processes that inherit the variable need files of their own.
    let path = match path.to_str() {
        Some(text) => PathBuf::from(text.replace("%p", &std::process::id().to_string())),
        None => PathBuf::from(path),
    };
    match start(&path) {
        Ok(()) => true,
        Err(error) => {
            log::warn!("{VARIABLE}: no trace is recorded: {error}");
            false
        }
    }
}

pub(super) fn start(path: &Path) -> Result<()> {
    if FORKED.load(Ordering::Acquire) {
        let found = "a process that was forked while a trace was on";
        return Err(Error::invalid(OPERATION, found, "a new process (exec)"));
    }
    let mut recording = lock();
    if let Some(other) = &*recording {
        let found = format!("a trace into {} that is on", other.path.display());
        return Err(Error::invalid(OPERATION, found, "one trace at a time: call trace::stop first"));
    }
    let mut new = Recording::create(path).map_err(|error| not_written(path, &error))?;
    DROPPED.store(0, Ordering::Relaxed);
    // Events of an earlier trace that came too late.
    buffer::drain(|_, _| {});
    if let Some(clock) = device_clock() {
        clock.begin();
    }
    new.id = TRACES.fetch_add(1, Ordering::AcqRel) + 1;
    let id = new.id;
    std::thread::Builder::new()
        .name("selvedge-trace".to_owned())
        .spawn(move || write_regularly(id))
        .map_err(|error| {
            Error::invalid(
                OPERATION,
                format!("no thread to write the trace ({error})"),
                "one more thread; end others first",
            )
        })?;
    *recording = Some(new);
    STATE.store(ON, Ordering::Release);
    drop(recording);
    mark_forked_children();
    end_with_process();
    Ok(())
}

pub(super) fn stop() -> Result<()> {
    if FORKED.load(Ordering::Acquire) {
        return Ok(());
    }
    let recording = lock();
    finish(recording)
}

/// Ends the trace with the lock held, so that no flush is in progress.
fn finish(mut recording: MutexGuard<'_, Option<Recording>>) -> Result<()> {
    let Some(mut ended) = recording.take() else { return Ok(()) };
    STATE.store(idle(), Ordering::Release);
    // A range that is still open belongs to no trace.
    TRACES.fetch_add(1, Ordering::AcqRel);
    let result = ended.finish();
    drop(recording);
    wake();
    result.map_err(|error| not_written(&ended.path, &error))
}

fn write_regularly(id: u64) {
    loop {
        let woken = WAKE.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = WAKE.1.wait_timeout_while(woken, INTERVAL, |woken| !*woken);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
        let mut recording = lock();
        match &mut *recording {
            Some(current) if current.id == id => current.flush(),
            _ => return,
        }
    }
}

/// Registers the end of the trace with the end of the process. Handlers that are registered later run earlier.
pub(super) fn end_with_process() {
    unsafe extern "C" {
        /// A function of the C library.
        fn atexit(handler: extern "C" fn()) -> std::ffi::c_int;
    }
    extern "C" fn at_exit() {
        if FORKED.load(Ordering::Acquire) {
            return;
        }
        // A thread that ended with the lock held never releases it.
        let start = Instant::now();
        while start.elapsed() < 2 * LAST_WAIT {
            let recording = match RECORDING.try_lock() {
                Ok(recording) => recording,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
            };
            if let Err(error) = finish(recording) {
                log::warn!("the trace is incomplete: {error}");
            }
            return;
        }
    }
    // SAFETY: the handler is a function of this library, which unregisters it when it is unloaded.
    let status = unsafe { atexit(at_exit) };
    if status != 0 {
        log::warn!(
            "the end of the process will not complete its trace: atexit answered {status}; call trace::stop"
        );
    }
}

/// Turns the trace off in forked children, which lack the thread that writes it.
fn mark_forked_children() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(unix)]
        {
            unsafe extern "C" {
                /// A POSIX function. The C library removes the handler when it unloads this library.
                fn pthread_atfork(
                    prepare: Option<unsafe extern "C" fn()>,
                    parent: Option<unsafe extern "C" fn()>,
                    child: Option<unsafe extern "C" fn()>,
                ) -> std::ffi::c_int;
            }
            unsafe extern "C" fn in_child() {
                // Without a trace nothing is locked for long, and the child may start one.
                if STATE.swap(OFF, Ordering::AcqRel) == ON {
                    FORKED.store(true, Ordering::Release);
                }
            }
            // SAFETY: the handler only stores to statics.
            let status = unsafe { pthread_atfork(None, None, Some(in_child)) };
            if status != 0 {
                log::warn!("a fork during a trace will not be noticed: pthread_atfork answered {status}");
            }
        }
    });
}

fn not_written(path: &Path, error: &io::Error) -> Error {
    Error::FileNotWritten {
        path: path.display().to_string(),
        found: error.to_string(),
        wanted: "a path that can be written and a disk with free space".to_owned(),
    }
}

impl Recording {
    fn create(path: &Path) -> io::Result<Recording> {
        let encoder = GzEncoder::new(File::create(path)?, Compression::fast());
        let mut recording = Recording {
            path: path.to_owned(),
            encoder,
            text: String::from("[\n"),
            named: Vec::new(),
            id: 0,
            events: 0,
            untimed: 0,
            failed: None,
        };
        let host = Track::host(0);
        recording.add(&Event::metadata(
            "selvedge_trace",
            host,
            vec![
                ("format", FORMAT.into()),
                ("version", VERSION.into()),
                ("selvedge", env!("CARGO_PKG_VERSION").into()),
                ("host_clock", "monotonic".into()),
            ],
        ));
        let program = std::env::current_exe().ok();
        let program =
            program.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let name = program.unwrap_or_else(|| "host".to_owned());
        recording.add(&Event::metadata("process_name", host, vec![("name", name.into())]));
        recording.send();
        match recording.failed.take() {
            None => Ok(recording),
            Some(error) => Err(error),
        }
    }

    /// Appends an event to the text.
    fn add(&mut self, event: &Event) {
        let track = event.track.unwrap_or(Track::host(0));
        event.write(&mut self.text, track);
        self.text.push_str(",\n");
    }

    /// Writes everything that waits, and flushes the compressor.
    fn flush(&mut self) {
        self.collect(false);
        self.send();
    }

    /// Appends the waiting events of all threads and of the device clock. Returns the operations still pending.
    fn collect(&mut self, last: bool) -> usize {
        buffer::drain(|thread, events| {
            if !self.named.contains(&thread.track) {
                self.named.push(thread.track);
                let name = vec![("name", thread.name.clone().into())];
                self.add(&Event::metadata("thread_name", thread.track, name));
            }
            self.events += events.len() as u64;
            for event in events {
                event.write(&mut self.text, event.track.unwrap_or(thread.track));
                self.text.push_str(",\n");
            }
        });
        let Some(clock) = device_clock() else { return 0 };
        let collected = clock.collect(last);
        self.events += collected.events.len() as u64;
        for event in &collected.events {
            self.add(event);
        }
        self.untimed += collected.lost;
        collected.pending
    }

    /// Gives the text to the compressor and the compressor's bytes to the file.
    fn send(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.text);
        if self.failed.is_some() {
            return;
        }
        let written = self.encoder.write_all(text.as_bytes()).and_then(|()| self.encoder.flush());
        if let Err(error) = written {
            log::warn!("the trace is incomplete: {}", not_written(&self.path, &error));
            self.failed = Some(error);
        }
    }

    /// Writes the last events and the end of the file.
    fn finish(&mut self) -> io::Result<()> {
        let start = Instant::now();
        while self.collect(false) > 0 && start.elapsed() < LAST_WAIT {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.collect(true);
        let (mut name, mut reason) = (Cow::Borrowed("none"), None);
        if let Some(clock) = device_clock() {
            (name, reason) = (clock.name(), clock.reason());
            self.untimed += clock.end();
        }
        let mut arguments: Arguments = vec![
            ("events", self.events.into()),
            ("dropped", DROPPED.load(Ordering::Relaxed).into()),
            ("untimed", self.untimed.into()),
            ("device_clock", Value::Text(name)),
        ];
        arguments.extend(reason.map(|reason| ("device_clock_reason", reason.into())));
        let end = Event::metadata("selvedge_end", Track::host(0), arguments);
        end.write(&mut self.text, Track::host(0));
        self.text.push_str("\n]\n");
        self.send();
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.encoder.try_finish(),
        }
    }
}

/// Keeps the thread from writing until the guard is dropped.
#[cfg(test)]
pub(super) fn hold() -> impl Sized {
    lock()
}
