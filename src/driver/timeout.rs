//! Waits with a time limit.
//!
//! The driver has no wait with a time limit, so these waits poll: first without a pause, because most waits are short,
//! then with pauses that grow to one millisecond, the latest that such a wait notices the end. A timeout changes
//! nothing: the work goes on and keeps its resources, and a later wait can continue. The error names the stream and its
//! last kernel.
//!
//! Invariants: nothing here calls a blocking driver function, except on a thread of its own.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use bytemuck::Pod;

use super::device::{Device, DeviceState};
use super::event::Event;
use super::graph::capture;
use super::memory::{PinnedBuffer, Transfer};
use super::stream::{Stream, StreamState};
use crate::error::{Error, Result};
use crate::trace;

/// How long to poll without a pause: this costs one core no more than a late wake-up.
const BUSY: Duration = Duration::from_micros(50);
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const MAX_PAUSE: Duration = Duration::from_millis(1);
/// The least time that the thread of [`Device::synchronize_timeout`] gets, whatever the limit, so that its slow start
/// is no timeout.
const THREAD_STARTS: Duration = Duration::from_millis(20);

/// Polls `done`. Returns the time waited if the limit passed first.
fn poll(timeout: Duration, mut done: impl FnMut() -> Result<bool>) -> Result<Option<Duration>> {
    let start = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        if done()? {
            return Ok(None);
        }
        let waited = start.elapsed();
        if waited >= timeout {
            return Ok(Some(waited));
        }
        if waited < BUSY {
            std::hint::spin_loop();
        } else {
            sleep(pause.min(timeout - waited));
            pause = (2 * pause).min(MAX_PAUSE);
        }
    }
}

/// A time limit in a trace.
fn microseconds(limit: Duration) -> trace::Value {
    u64::try_from(limit.as_micros()).unwrap_or(u64::MAX).into()
}

/// The range of a wait for an event in a trace.
fn span_of_event(limit: Duration) -> trace::Range {
    trace::span("wait", || ("wait for an event".into(), vec![("limit_us", microseconds(limit))]))
}

fn timed_out(operation: &'static str, waited: Duration, what: String) -> Error {
    let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
    Error::TimedOut { operation, waited_ms, what }
}

/// As [`poll`], with an error for a timeout.
fn wait(
    operation: &'static str,
    timeout: Duration,
    done: impl FnMut() -> Result<bool>,
    what: impl FnOnce() -> String,
) -> Result<()> {
    match poll(timeout, done)? {
        None => Ok(()),
        Some(waited) => Err(timed_out(operation, waited, what())),
    }
}

impl StreamState {
    /// The stream and its last kernel, for an error.
    fn with_last_kernel(&self) -> String {
        match self.last_kernel() {
            Some(kernel) => format!("{self}, kernel launched there last: {kernel}"),
            None => format!("{self}, on which this library launched no kernel"),
        }
    }
}

impl DeviceState {
    /// Returns whether every stream of the device is idle. Never blocks.
    fn streams_are_idle(&self) -> Result<bool> {
        for stream in self.live_streams() {
            if !stream.is_idle()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn stream_text(&self, id: u64) -> String {
        match self.live_streams().into_iter().find(|stream| stream.id == id) {
            Some(stream) => stream.with_last_kernel(),
            None => format!("stream {id} of device {}, which was dropped", self.ordinal),
        }
    }
}

impl Stream {
    /// As [`synchronize`](Self::synchronize), with a time limit.
    ///
    /// ```no_run
    /// # use selvedge::{Error, driver::Device};
    /// # fn main() -> selvedge::Result<()> {
    /// # let stream = Device::new(0)?.stream()?;
    /// match stream.synchronize_timeout(std::time::Duration::from_secs(5)) {
    ///     Err(Error::TimedOut { what, .. }) => eprintln!("still running: {what}"),
    ///     other => other?,
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] with the kernel launched last; the work goes on. Otherwise as
    /// [`synchronize`](Self::synchronize).
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        let stream = self.state();
        capture::refuse("Stream::synchronize_timeout", stream, None)?;
        let _wait = trace::span("wait", || {
            let arguments = vec![("stream", stream.id.into()), ("limit_us", microseconds(timeout))];
            ("wait for a stream".into(), arguments)
        });
        wait("Stream::synchronize_timeout", timeout, || stream.is_idle(), || stream.with_last_kernel())?;
        stream.device.take_report()
    }
}

impl Event {
    /// As [`synchronize`](Self::synchronize), with a time limit.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] with the stream that the event was recorded on and the kernel launched there last, which may
    /// be behind the event; the work goes on. Otherwise as [`synchronize`](Self::synchronize).
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        self.outside_of_captures("Event::synchronize_timeout")?;
        let _wait = span_of_event(timeout);
        let what = || format!("an event on {}", self.device().0.stream_text(self.recorded_on()));
        wait("Event::synchronize_timeout", timeout, || self.is_complete(), what)?;
        self.device().0.take_report()
    }
}

impl Device {
    /// As [`synchronize`](Self::synchronize), with a time limit.
    ///
    /// The call polls the streams of this library. For work issued by other code, and for streams that were dropped
    /// with unfinished work, it starts a thread that waits, for at least 20 ms. After a timeout that thread stays until
    /// the device is idle.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] with the kernels launched last; the work goes on. The system cannot start a thread.
    /// Otherwise as [`synchronize`](Self::synchronize).
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        const OPERATION: &str = "Device::synchronize_timeout";
        let (device, start) = (self.0, Instant::now());
        if capture::on_this_thread() {
            let found = format!("this thread captures a graph while it would wait for {self}");
            return Err(capture::not_capturable(OPERATION, found));
        }
        let _wait = trace::span("wait", || {
            let arguments = vec![("device", device.ordinal.into()), ("limit_us", microseconds(timeout))];
            ("wait for a device".into(), arguments)
        });
        let what = || format!("device {}, launched last: {}", device.ordinal, device.recent_kernels());
        wait(OPERATION, timeout, || device.streams_are_idle(), what)?;
        let (sender, receiver) = channel();
        let waiter = move || {
            // The receiver is gone after a timeout.
            let _ = sender.send(device.wait_until_idle().map(drop));
        };
        Builder::new().name("selvedge-wait".to_owned()).spawn(waiter).map_err(|error| {
            Error::invalid(
                OPERATION,
                format!("no thread to wait on ({error})"),
                "one more thread; end others first",
            )
        })?;
        // Nothing retired is freed here: that waits for kernels that other threads may launch.
        let left = timeout.saturating_sub(start.elapsed()).max(THREAD_STARTS);
        match receiver.recv_timeout(left) {
            Ok(result) => result.and_then(|()| device.take_report()),
            Err(RecvTimeoutError::Timeout) => {
                let what = format!("device {}, work that is on no stream of this library", device.ordinal);
                Err(timed_out(OPERATION, start.elapsed(), what))
            }
            Err(RecvTimeoutError::Disconnected) => Err(Error::invalid(
                OPERATION,
                "a waiting thread that ended early",
                "a thread that sends its result",
            )),
        }
    }
}

/// The error of a wait for a transfer that returned no buffer.
#[derive(Debug)]
pub struct WaitError<T: Pod> {
    /// The cause.
    pub error: Box<Error>,
    /// The transfer, if it goes on and can be waited for again, or belongs to a graph; `None` if the copy failed.
    pub transfer: Option<Transfer<T>>,
}

impl<T: Pod> From<WaitError<T>> for Error {
    fn from(failed: WaitError<T>) -> Error {
        *failed.error
    }
}

impl<T: Pod> std::fmt::Display for WaitError<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(formatter)
    }
}

impl<T: Pod + std::fmt::Debug> std::error::Error for WaitError<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.error)
    }
}

impl<T: Pod> Transfer<T> {
    /// As [`wait`](Self::wait), with a time limit. On a timeout the error holds the transfer.
    ///
    /// ```no_run
    /// # use selvedge::driver::{Device, Transfer};
    /// # fn main() -> selvedge::Result<()> {
    /// # let device = Device::new(0)?;
    /// # let stream = device.stream()?;
    /// # let values = stream.zeros::<f32>(1000)?;
    /// let transfer = stream.download_async(&values, device.pinned(1000)?)?;
    /// let values = match transfer.wait_timeout(std::time::Duration::from_millis(100)) {
    ///     Ok(values) => values,
    ///     Err(failed) => match failed.transfer {
    ///         Some(transfer) => transfer.wait()?,
    ///         None => return Err(*failed.error),
    ///     },
    /// };
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] with the transfer. Otherwise as [`wait`](Self::wait), without it.
    pub fn wait_timeout(self, timeout: Duration) -> Result<PinnedBuffer<T>, WaitError<T>> {
        if let Err(error) = self.outside_of_graphs("Transfer::wait_timeout") {
            return Err(WaitError { error: Box::new(error), transfer: Some(self) });
        }
        let waited = {
            let _wait = span_of_event(timeout);
            poll(timeout, || self.is_complete())
        };
        match waited {
            Ok(None) => {
                let reported = self.stream().device.take_report();
                self.finish(reported)
            }
            Ok(Some(waited)) => {
                let what = format!("a copy on {}", self.stream().with_last_kernel());
                let error = Box::new(timed_out("Transfer::wait_timeout", waited, what));
                return Err(WaitError { error, transfer: Some(self) });
            }
            Err(error) => self.finish(Err(error)),
        }
        .map_err(|error| WaitError { error: Box::new(error), transfer: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_question_is_asked_in_any_case() {
        let mut asked = 0;
        let answer = |asked: &mut i32| {
            *asked += 1;
            Ok(true)
        };
        assert!(poll(Duration::ZERO, || answer(&mut asked)).unwrap().is_none());
        assert_eq!(asked, 1);
        assert!(poll(Duration::ZERO, || Ok(false)).unwrap().is_some());
    }

    #[test]
    fn the_limit_is_kept_and_the_last_question_comes_after_it() {
        let limit = Duration::from_millis(5);
        let start = Instant::now();
        let mut last = Duration::ZERO;
        let waited = poll(limit, || {
            last = start.elapsed();
            Ok(false)
        });
        assert!(waited.unwrap().is_some_and(|waited| waited >= limit && waited < 100 * limit));
        assert!(last >= limit, "the end of the work at {last:?} would have been missed");
        assert!(poll(Duration::MAX, || Ok(start.elapsed() > limit)).unwrap().is_none());
    }

    #[test]
    fn an_error_ends_the_wait() {
        let refused = || Err(Error::invalid("a test", "an error", "none"));
        assert!(matches!(poll(Duration::MAX, refused), Err(Error::InvalidArgument { .. })));
    }
}
