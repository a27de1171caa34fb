//! Asynchronous copies between pinned and device memory.

use std::sync::Arc;

use bytemuck::Pod;

use super::pinned::PinnedBuffer;
use super::slice::{DeviceRead, DeviceWrite};
use crate::driver::context::{gone, stream_call};
use crate::driver::graph::{CapturedBuffer, capture};
use crate::driver::stream::{Stream, StreamState, TransferEnd};
use crate::error::{Error, Result, report_deferred};

/// A copy on its way. It owns the host side and gives it back from [`wait`](Transfer::wait).
///
/// Dropped without waiting, the copy goes on and its host memory is freed when it is done.
#[must_use = "the buffer comes back from `wait`"]
pub struct Transfer<T: Pod> {
    /// None while it is taken apart, and where a graph has it.
    buffer: Option<PinnedBuffer<T>>,
    /// The buffer's name in the graph that the copy was captured into.
    captured: Option<CapturedBuffer<T>>,
    /// The copy's place in the stream; 0 where there was nothing to copy.
    place: u64,
    stream: Arc<StreamState>,
}

/// A transfer that could not be started. It gives the buffer back where the device certainly does not use it.
#[derive(Debug)]
pub struct TransferError<T: Pod> {
    /// What went wrong.
    pub error: Box<Error>,
    /// The buffer; `None` where the copy may have been issued and could not be waited for.
    pub buffer: Option<PinnedBuffer<T>>,
}

impl<T: Pod> From<TransferError<T>> for Error {
    fn from(failed: TransferError<T>) -> Error {
        *failed.error
    }
}

impl<T: Pod> std::fmt::Display for TransferError<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(formatter)
    }
}

impl<T: Pod + std::fmt::Debug> std::error::Error for TransferError<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.error)
    }
}

impl Stream {
    /// Starts a copy of pinned memory to the device.
    ///
    /// # Errors
    ///
    /// Lengths differ, the memory is another device's, or the driver's errors; with the buffer.
    pub fn upload_async<T: Pod>(
        &self,
        source: PinnedBuffer<T>,
        destination: &mut impl DeviceWrite<T>,
    ) -> Result<Transfer<T>, TransferError<T>> {
        let view = destination.view();
        self.start("upload_async", source, view.length, |source, bytes| {
            // SAFETY: the transfer owns the source until the copy is done.
            unsafe { self.issue_upload(source, view, bytes) }
        })
    }

    /// Starts a copy of device memory to pinned memory, after whatever wrote it.
    ///
    /// # Errors
    ///
    /// As [`upload_async`](Self::upload_async).
    pub fn download_async<T: Pod>(
        &self,
        source: &impl DeviceRead<T>,
        destination: PinnedBuffer<T>,
    ) -> Result<Transfer<T>, TransferError<T>> {
        let view = source.view();
        self.start("download_async", destination, view.length, |destination, bytes| {
            // SAFETY: the transfer owns the destination until the copy is done.
            unsafe { self.issue_download(view, destination, bytes) }
        })
    }

    fn start<T: Pod>(
        &self,
        operation: &'static str,
        mut buffer: PinnedBuffer<T>,
        length: usize,
        issue: impl FnOnce(*mut u8, usize) -> Result<u64>,
    ) -> Result<Transfer<T>, TransferError<T>> {
        let stream = self.state();
        if buffer.len() != length {
            let error = Error::LengthMismatch { operation, wanted: length, found: buffer.len() };
            return Err(TransferError { error: Box::new(error), buffer: Some(buffer) });
        }
        let (pointer, bytes) = (buffer.as_mut_ptr().cast(), size_of_val(&*buffer));
        let issued = if bytes == 0 { Ok(0) } else { issue(pointer, bytes) };
        match issued {
            Ok(place) => {
                let capture = capture::current().filter(|capture| capture.has(stream));
                let (buffer, captured) = match capture {
                    Some(capture) => (None, Some(buffer.into_graph(&capture))),
                    None => {
                        stream.expect_wait(place);
                        (Some(buffer), None)
                    }
                };
                Ok(Transfer { buffer, captured, place, stream: stream.clone() })
            }
            // The copy may be on its way: the buffer goes back only after a wait.
            Err(error) => match stream.drain() {
                Ok(()) => Err(TransferError { error: Box::new(error), buffer: Some(buffer) }),
                Err(_) => {
                    buffer.retire(None);
                    Err(TransferError { error: Box::new(error), buffer: None })
                }
            },
        }
    }
}

impl<T: Pod> Transfer<T> {
    /// Blocks until the copy is done and gives the buffer back.
    ///
    /// # Errors
    ///
    /// A kernel before the copy faulted, or the driver's errors. The buffer's memory is then freed once the device is
    /// idle. [`Error::NotCapturable`] for a copy that was captured: the graph has the buffer.
    pub fn wait(self) -> Result<PinnedBuffer<T>> {
        self.outside_of_graphs("Transfer::wait")?;
        let waited = match self.stream.take_end_of(self.place) {
            TransferEnd::Done => Ok(()),
            TransferEnd::Stream => self.stream.synchronize(),
            TransferEnd::Event(event) => self.stream.device.bind().and_then(|_bound| {
                // SAFETY: the event is live.
                unsafe { stream_call!(self.stream, cuEventSynchronize(event.raw.0)) }
            }),
        };
        let reported = waited.and_then(|()| self.stream.device.take_report());
        self.finish(reported)
    }

    /// Gives the buffer back after a wait that went so. After one that went well the copy is done.
    pub(in crate::driver) fn finish(mut self, waited: Result<()>) -> Result<PinnedBuffer<T>> {
        // Nobody waits for this copy any more, so no event is recorded for it.
        let _ = self.stream.take_end_of(self.place);
        match (waited, self.buffer.take()) {
            (Ok(()), Some(buffer)) => Ok(buffer),
            (Err(error), Some(buffer)) => {
                buffer.retire(None);
                Err(error)
            }
            (_, None) => {
                Err(Error::invalid("Transfer::wait", "a transfer without a buffer", "one that was started"))
            }
        }
    }

    pub(in crate::driver) fn stream(&self) -> &StreamState {
        &self.stream
    }

    /// The buffer's name in the graph, where the copy was captured: [`ExecutableGraph::host`] gives its elements. `None` for
    /// any other copy.
    ///
    /// [`ExecutableGraph::host`]: crate::driver::ExecutableGraph::host
    pub fn captured(&self) -> Option<CapturedBuffer<T>> {
        self.captured
    }

    /// Fails where the copy is a graph's: it is done with each launch.
    pub(in crate::driver) fn outside_of_graphs(&self, operation: &'static str) -> Result<()> {
        match self.captured {
            Some(_) => Err(capture::not_capturable(
                operation,
                "the copy was captured and is done by launches of the graph, which has the buffer (Transfer::captured)",
            )),
            None => Ok(()),
        }
    }

    /// Whether the copy is done. Never blocks.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    pub fn is_complete(&self) -> Result<bool> {
        self.outside_of_graphs("Transfer::is_complete")?;
        match self.stream.end_of(self.place) {
            TransferEnd::Done => Ok(true),
            TransferEnd::Event(event) => event.is_complete(),
            TransferEnd::Stream => self.stream.is_idle(),
        }
    }
}

impl<T: Pod> Drop for Transfer<T> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            if self.stream.device.is_lost() {
                return buffer.retire(None);
            }
            let event = match self.stream.take_end_of(self.place) {
                TransferEnd::Done => return,
                TransferEnd::Event(event) => Ok(event),
                TransferEnd::Stream => self.stream.mark(),
            };
            if let Err(error) = &event {
                if !gone(error) {
                    report_deferred(error);
                }
            }
            buffer.retire(event.ok());
        }
    }
}

impl<T: Pod> std::fmt::Debug for Transfer<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Transfer({:?}, {})", self.buffer, self.stream)
    }
}
