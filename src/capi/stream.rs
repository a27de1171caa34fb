//! Streams, the stream of a thread's tensor operations, and events.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use super::arguments::out;
use super::device::{cuda, milliseconds};
use super::error::{Failure, Result};
use super::guard;
use super::handle::{Object, object, sv_event, sv_stream};
use super::tensor::device as tensor_device;
use crate::driver::{Event, Stream};
use crate::tensor;

/// A stream behind a handle.
#[derive(Clone)]
pub(super) struct StreamObject(pub(super) Arc<Stream>);
object!(StreamObject, Stream);

/// An event behind a handle. Recording needs it alone.
#[derive(Clone)]
pub(super) struct EventObject(pub(super) Arc<Mutex<Event>>);
object!(EventObject, Event);

/// Returns the stream of a handle.
pub(super) fn stream(handle: u64, name: &str) -> Result<Arc<Stream>> {
    Ok(StreamObject::table().get(handle, name)?.0)
}

fn with_event<R>(handle: u64, name: &str, work: impl FnOnce(&mut Event) -> crate::Result<R>) -> Result<R> {
    let event = EventObject::table().get(handle, name)?;
    let mut event = event.0.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(work(&mut event)?)
}

/// Creates a stream on a device. A lower `priority` is more urgent; 0 is ordinary.
///
/// Any thread may use the stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_stream_create(device: i32, priority: i32, stream: *mut sv_stream) -> i32 {
    guard::call("sv_stream_create", || {
        let result = out(stream, "stream")?;
        let stream = cuda(device, "a stream")?.stream_with_priority(priority)?;
        result.write(StreamObject::table().insert(StreamObject(Arc::new(stream)))?);
        Ok(())
    })
}

/// Borrows a `CUstream` of other code, such as a `cudaStream_t`. NULL is the legacy default stream. `CU_STREAM_PER_THREAD`
/// gives it too, because the driver orders it with the default streams of all threads. `device` is the device of the stream's
/// context, which must be its primary one.
///
/// The library orders its work with the other code's as the driver orders one stream, and never destroys the stream. Any thread
/// may use the stream.
///
/// # Safety
///
/// `raw` is a live stream, and stays so until the last reference is released and no call that uses the stream runs. Other code
/// does not capture it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_stream_from_raw(device: i32, raw: *mut c_void, stream: *mut sv_stream) -> i32 {
    guard::call("sv_stream_from_raw", || {
        let result = out(stream, "stream")?;
        let stream = Stream::from_raw(&cuda(device, "a stream")?, raw)?;
        result.write(StreamObject::table().insert(StreamObject(Arc::new(stream)))?);
        Ok(())
    })
}

/// Writes the ordinal of the device of a stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_stream_device(stream: sv_stream, device: *mut i32) -> i32 {
    guard::call("sv_stream_device", || {
        let device = out(device, "device")?;
        device.write(self::stream(stream, "stream")?.device().ordinal() as i32);
        Ok(())
    })
}

/// Writes the `CUstream` of a stream, for other CUDA code.
///
/// The driver's stream lives as long as the handle. This library does not see work that other code puts on it: order such work
/// with an event before another stream uses what it touches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_stream_raw(stream: sv_stream, raw: *mut *mut c_void) -> i32 {
    guard::call("sv_stream_raw", || {
        let raw = out(raw, "raw")?;
        raw.write(self::stream(stream, "stream")?.as_raw());
        Ok(())
    })
}

/// Waits for all work on a stream, and returns the error of a kernel that faulted or reported one.
#[unsafe(no_mangle)]
pub extern "C" fn sv_stream_synchronize(stream: sv_stream) -> i32 {
    guard::call("sv_stream_synchronize", || Ok(self::stream(stream, "stream")?.synchronize()?))
}

/// Waits for all work on a stream, at most this many milliseconds; then `SV_ERROR_TIMED_OUT`, and the work goes on.
#[unsafe(no_mangle)]
pub extern "C" fn sv_stream_synchronize_timeout(stream: sv_stream, timeout_ms: u64) -> i32 {
    guard::call("sv_stream_synchronize_timeout", || {
        Ok(self::stream(stream, "stream")?.synchronize_timeout(milliseconds(timeout_ms))?)
    })
}

/// Writes 1 if all work on a stream is done, else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_stream_is_idle(stream: sv_stream, idle: *mut i32) -> i32 {
    guard::call("sv_stream_is_idle", || {
        let idle = out(idle, "idle")?;
        idle.write(i32::from(self::stream(stream, "stream")?.is_idle()?));
        Ok(())
    })
}

/// Lets later work on `stream` begin after an event. The host does not wait.
#[unsafe(no_mangle)]
pub extern "C" fn sv_stream_wait_event(stream: sv_stream, event: sv_event) -> i32 {
    guard::call("sv_stream_wait_event", || {
        let stream = self::stream(stream, "stream")?;
        with_event(event, "event", |event| stream.wait(event))
    })
}

/// Lets later work on `stream` begin after all work that `other` has now. The host does not wait.
#[unsafe(no_mangle)]
pub extern "C" fn sv_stream_wait_stream(stream: sv_stream, other: sv_stream) -> i32 {
    guard::call("sv_stream_wait_stream", || {
        let stream = self::stream(stream, "stream")?;
        Ok(stream.wait_for(&*self::stream(other, "other")?)?)
    })
}

/// Sends this thread's tensor operations on the stream's device to that stream, until `sv_stream_pop`. Calls may be nested,
/// and the last one counts. The stream stays alive meanwhile.
///
/// It concerns the calling thread alone.
#[unsafe(no_mangle)]
pub extern "C" fn sv_stream_push(stream: sv_stream) -> i32 {
    guard::call("sv_stream_push", || {
        let _number = tensor::push_stream(Stream::clone(&*self::stream(stream, "stream")?));
        Ok(())
    })
}

/// Takes back the last `sv_stream_push` of the calling thread. Without one it is `SV_ERROR_INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_stream_pop() -> i32 {
    guard::call("sv_stream_pop", || match tensor::pop_stream() {
        true => Ok(()),
        false => Err(Failure::argument("sv_stream_pop", "no stream", "a call of sv_stream_push before it")),
    })
}

/// Gives the stream that this thread's tensor operations on a CUDA device go to.
///
/// Any thread may use the stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_stream_current(device: i32, stream: *mut sv_stream) -> i32 {
    guard::call("sv_stream_current", || {
        let result = out(stream, "stream")?;
        let stream = tensor_device(device)?.stream()?;
        result.write(StreamObject::table().insert(StreamObject(Arc::new(stream)))?);
        Ok(())
    })
}

/// Creates an event. `timing` is 1 for an event with a time, else 0.
///
/// Any thread may use the event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_event_create(device: i32, timing: i32, event: *mut sv_event) -> i32 {
    guard::call("sv_event_create", || {
        let result = out(event, "event")?;
        let device = cuda(device, "an event")?;
        let event = match timing {
            0 => device.event()?,
            1 => device.timing_event()?,
            other => return Err(Failure::argument("timing", other, "0 or 1")),
        };
        result.write(EventObject::table().insert(EventObject(Arc::new(Mutex::new(event))))?);
        Ok(())
    })
}

/// Records an event behind the work that a stream has now.
#[unsafe(no_mangle)]
pub extern "C" fn sv_event_record(event: sv_event, stream: sv_stream) -> i32 {
    guard::call("sv_event_record", || {
        let stream = self::stream(stream, "stream")?;
        with_event(event, "event", |event| event.record(&stream))
    })
}

/// Waits for the work before an event.
#[unsafe(no_mangle)]
pub extern "C" fn sv_event_synchronize(event: sv_event) -> i32 {
    guard::call("sv_event_synchronize", || with_event(event, "event", |event| event.synchronize()))
}

/// Writes 1 if the work before an event is done, else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_event_is_complete(event: sv_event, complete: *mut i32) -> i32 {
    guard::call("sv_event_is_complete", || {
        let complete = out(complete, "complete")?;
        complete.write(i32::from(with_event(event, "event", |event| event.is_complete())?));
        Ok(())
    })
}

/// Writes the milliseconds between two events with a time, both of which have been reached.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_event_elapsed(start: sv_event, end: sv_event, milliseconds: *mut f32) -> i32 {
    guard::call("sv_event_elapsed", || {
        let result = out(milliseconds, "milliseconds")?;
        let end = EventObject::table().get(end, "end")?;
        let start = EventObject::table().get(start, "start")?;
        let elapsed = if Arc::ptr_eq(&start.0, &end.0) {
            let event = start.0.lock().unwrap_or_else(PoisonError::into_inner);
            event.elapsed_ms(&event)?
        } else {
            // In the order of their addresses, so that two calls with swapped events cannot wait for each other.
            let start_first = Arc::as_ptr(&start.0) < Arc::as_ptr(&end.0);
            let (first, second) = if start_first { (&start.0, &end.0) } else { (&end.0, &start.0) };
            let first = first.lock().unwrap_or_else(PoisonError::into_inner);
            let second = second.lock().unwrap_or_else(PoisonError::into_inner);
            if start_first { first.elapsed_ms(&second)? } else { second.elapsed_ms(&first)? }
        };
        result.write(elapsed);
        Ok(())
    })
}
