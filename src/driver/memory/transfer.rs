//! Asynchronous copies between pinned and device memory.

use std::sync::Arc;

use bytemuck::Pod;

use super::pinned::PinnedBuffer;
use super::slice::{DeviceRead, DeviceWrite};
use crate::driver::context::{gone, stream_call};
use crate::driver::event::span_of_wait;
use crate::driver::graph::{CapturedBuffer, capture};
use crate::driver::stream::{Stream, StreamState, TransferEnd};
use crate::error::{Error, Result, report_deferred};

/// An asynchronous copy in progress. It owns the host side, which [`wait`](Transfer::wait) returns.
///
/// If it is dropped without a wait, the copy goes on, and its host memory is freed when it is done.
#[must_use = "the buffer comes back from `wait`"]
pub struct Transfer<T: Pod> {
    /// `None` while the transfer is taken apart, and if a graph owns the buffer.
    buffer: Option<PinnedBuffer<T>>,
    /// The buffer's handle in the graph that the copy was captured into.
    captured: Option<CapturedBuffer<T>>,
    /// The copy's position in the stream; 0 if there was nothing to copy.
    position: u64,
    stream: Arc<StreamState>,
}

/// The error of starting a transfer. It returns the buffer if the device certainly does not use it.
#[derive(Debug)]
pub struct TransferError<T: Pod> {
    /// The cause.
    pub error: Box<Error>,
    /// The buffer; `None` if the copy may have been issued and the wait for it failed.
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
    /// The lengths differ, the memory belongs to another device, or the driver's errors. The error returns the buffer.
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

    /// Starts a copy of device memory to pinned memory, after the operations that write it.
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
            Ok(position) => {
                let capture = capture::current().filter(|capture| capture.has(stream));
                let (buffer, captured) = match capture {
                    Some(capture) => (None, Some(buffer.into_graph(&capture))),
                    None => {
                        stream.expect_wait(position);
                        (Some(buffer), None)
                    }
                };
                Ok(Transfer { buffer, captured, position, stream: stream.clone() })
            }
            // The copy may be in progress, so the buffer is returned only after a wait.
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
    /// Blocks until the copy is done, and returns the buffer.
    ///
    /// # Errors
    ///
    /// An earlier kernel faulted, or the driver's errors; the buffer's memory is then freed once the device is idle.
    /// [`Error::NotCapturable`] for a captured copy, because the graph owns the buffer.
    pub fn wait(self) -> Result<PinnedBuffer<T>> {
        self.outside_of_graphs("Transfer::wait")?;
        let waited = match self.stream.take_end_of(self.position) {
            TransferEnd::Done => Ok(()),
            TransferEnd::Stream => self.stream.synchronize(),
            TransferEnd::Event(event) => self.stream.device.bind().and_then(|_bound| {
                let _wait = span_of_wait();
                // SAFETY: the event is live.
                unsafe { stream_call!(self.stream, cuEventSynchronize(event.raw.0)) }
            }),
        };
        let reported = waited.and_then(|()| self.stream.device.take_report());
        self.finish(reported)
    }

    /// Returns the buffer after a wait with this result. After a successful wait the copy is done.
    pub(in crate::driver) fn finish(mut self, waited: Result<()>) -> Result<PinnedBuffer<T>> {
        // Nobody waits for this copy any more, so no event is recorded for it.
        let _ = self.stream.take_end_of(self.position);
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

    /// The buffer's handle in the graph, if the copy was captured: [`ExecutableGraph::host`] returns its elements.
    /// `None` otherwise.
    ///
    /// [`ExecutableGraph::host`]: crate::driver::ExecutableGraph::host
    pub fn captured(&self) -> Option<CapturedBuffer<T>> {
        self.captured
    }

    /// Fails if the copy was captured, because each launch of the graph repeats it.
    pub(in crate::driver) fn outside_of_graphs(&self, operation: &'static str) -> Result<()> {
        match self.captured {
            Some(_) => Err(capture::not_capturable(
                operation,
                "the copy was captured and is done by launches of the graph, which has the buffer (Transfer::captured)",
            )),
            None => Ok(()),
        }
    }

    /// Returns whether the copy is done. Never blocks.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    pub fn is_complete(&self) -> Result<bool> {
        self.outside_of_graphs("Transfer::is_complete")?;
        match self.stream.end_of(self.position) {
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
            let event = match self.stream.take_end_of(self.position) {
                TransferEnd::Done => return,
                TransferEnd::Event(event) => Ok(event),
                TransferEnd::Stream => self.stream.mark(),
            };
            if let Err(error) = &event
                && !gone(error)
            {
                report_deferred(error);
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
