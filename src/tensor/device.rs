//! [`Device`], the device of a tensor, and the stream of a thread's operations on it.
//!
//! Each CUDA device has one default stream, made when it is first needed and kept for the life of the process; a thread
//! can set another for a time. Invariants: finding the stream takes no lock that threads share, since every
//! operation does it.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use super::cached_blocks;
use crate::driver;
use crate::driver::Stream;
use crate::error::{Error, Result};

/// The device that holds a tensor's elements and runs its operations: the CPU, or a CUDA device. Cheap to copy.
///
/// ```
/// use selvedge::tensor::{Device, Tensor};
/// let device = Device::best();
/// let x = Tensor::new([1.0f32, 2.0, 3.0], &device)?;
/// assert_eq!((&x + 1.0)?.to_vec::<f32>()?, [2.0, 3.0, 4.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device(DeviceKind);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum DeviceKind {
    Cpu,
    Cuda(driver::Device),
}

impl Device {
    /// The CPU: the memory of the process and all of its processors.
    pub const fn cpu() -> Device {
        Device(DeviceKind::Cpu)
    }

    /// Returns the CUDA device with this ordinal, from 0.
    ///
    /// # Errors
    ///
    /// As [`driver::Device::new`]: no driver, no such device, or its context cannot be made.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        driver::Device::new(ordinal).map(Device::from)
    }

    /// Returns CUDA device 0 if there is one, otherwise the CPU. It then logs the reason that [`choose`](Self::choose) returns.
    pub fn best() -> Device {
        let (device, reason) = Device::choose();
        if let Some(reason) = reason {
            log::info!("tensors are computed on the CPU: {reason}");
        }
        device
    }

    /// As [`best`](Self::best), with the reason if the device is the CPU.
    pub fn choose() -> (Device, Option<Error>) {
        match Device::cuda(0) {
            Ok(device) => (device, None),
            Err(reason) => (Device::cpu(), Some(reason)),
        }
    }

    /// Returns whether it is the CPU.
    pub const fn is_cpu(&self) -> bool {
        matches!(self.0, DeviceKind::Cpu)
    }

    /// Returns the CUDA device, for use with [`driver`](crate::driver); `None` for the CPU.
    pub const fn as_cuda(&self) -> Option<&driver::Device> {
        match &self.0 {
            DeviceKind::Cpu => None,
            DeviceKind::Cuda(device) => Some(device),
        }
    }

    /// Returns the stream of this thread's operations on the device, so that other work can be ordered with them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for the CPU, which has none; the driver's where the default stream cannot be made.
    pub fn stream(&self) -> Result<Stream> {
        stream(self).map(|stream| stream.clone())
    }

    /// Runs `work` with `stream` as the stream of this thread's operations on its device. Operations on other devices and of
    /// other threads are not affected. Calls may be nested; the innermost one counts.
    ///
    /// Tensors may be used on any stream: an operation waits for the work that wrote its operands.
    ///
    /// ```no_run
    /// use selvedge::tensor::{Device, Tensor};
    /// use selvedge::types::DType;
    /// # fn main() -> selvedge::Result<()> {
    /// let device = Device::cuda(0)?;
    /// let own = selvedge::driver::Device::new(0)?.stream()?;
    /// let x = Device::with_stream(&own, || Tensor::zeros(&[1000], DType::F32, &device))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_stream<R>(stream: &Stream, work: impl FnOnce() -> R) -> R {
        let _guard = StreamGuard::new(stream);
        work()
    }

    /// Waits for all work of a CUDA device. Operations on the CPU are complete when they return.
    ///
    /// # Errors
    ///
    /// As [`driver::Device::synchronize`], and [`Error::IndexOutOfRange`] if that work met an index out of range.
    pub fn synchronize(&self) -> Result<()> {
        match self.0 {
            DeviceKind::Cpu => Ok(()),
            DeviceKind::Cuda(device) => device.synchronize(),
        }
    }

    /// Frees the memory that the device caches for later tensors; see [`driver::Device::trim`]. On the CPU it is the blocks of
    /// freed tensors ([`host_memory_statistics`](super::host_memory_statistics)).
    ///
    /// # Errors
    ///
    /// As [`driver::Device::trim`].
    pub fn trim(&self) -> Result<()> {
        match self.0 {
            DeviceKind::Cpu => cached_blocks::release(),
            DeviceKind::Cuda(device) => device.trim()?,
        }
        Ok(())
    }
}

impl From<driver::Device> for Device {
    fn from(device: driver::Device) -> Device {
        Device(DeviceKind::Cuda(device))
    }
}

impl FromStr for Device {
    type Err = Error;

    /// Parses `cpu`, `cuda` (the first CUDA device), or `cuda:` and an ordinal.
    fn from_str(text: &str) -> Result<Device> {
        let wanted =
            || Error::invalid("a device", format!("the name {text:?}"), "cpu, cuda, or cuda: and an ordinal");
        match text {
            "cpu" => Ok(Device::cpu()),
            "cuda" => Device::cuda(0),
            _ => {
                let ordinal = text.strip_prefix("cuda:").ok_or_else(wanted)?;
                Device::cuda(ordinal.parse().map_err(|_| wanted())?)
            }
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            DeviceKind::Cpu => formatter.write_str("cpu"),
            DeviceKind::Cuda(device) => write!(formatter, "cuda:{}", device.ordinal()),
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Sets the stream of this thread's operations on its device until it is dropped, where a closure for [`Device::with_stream`]
/// does not fit. Guards nest: the one created last counts.
///
/// ```no_run
/// use selvedge::Tensor;
/// use selvedge::tensor::{Device, StreamGuard};
/// use selvedge::types::DType;
/// # fn main() -> selvedge::Result<()> {
/// let device = Device::cuda(0)?;
/// let own = selvedge::driver::Device::new(0)?.stream()?;
/// let guard = StreamGuard::new(&own);
/// let x = Tensor::zeros(&[1000], DType::F32, &device)?;
/// drop(guard);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StreamGuard {
    /// The position in the thread's list, counted over the life of the thread.
    number: u64,
    /// The list is that of the thread.
    thread: PhantomData<*const ()>,
}

impl StreamGuard {
    /// Sets the stream. A thread that is ending has none to set.
    #[must_use]
    pub fn new(stream: &Stream) -> StreamGuard {
        StreamGuard { number: push_stream(stream.clone()), thread: PhantomData }
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        let removed = STREAMS.try_with(|streams| {
            let mut stack = streams.stack.borrow_mut();
            let at = stack.iter().rposition(|(number, _)| *number == self.number);
            at.map(|at| stack.remove(at))
        });
        // Dropped outside of the borrow: the last handle of a stream returns its memory.
        drop(removed);
    }
}

/// Makes a stream the one of this thread's operations on its device, until [`pop_stream`]. Returns its number.
pub(crate) fn push_stream(stream: Stream) -> u64 {
    let pushed = STREAMS.try_with(|streams| {
        let number = streams.pushed.get();
        streams.pushed.set(number + 1);
        streams.stack.borrow_mut().push((number, stream));
        number
    });
    pushed.unwrap_or(u64::MAX)
}

/// Takes back the last [`push_stream`] of this thread. Returns `false` if there is none.
pub(crate) fn pop_stream() -> bool {
    STREAMS.try_with(|streams| streams.stack.borrow_mut().pop()).is_ok_and(|popped| popped.is_some())
}

/// A stream to issue work on.
pub(crate) enum CurrentStream {
    Default(&'static Stream),
    Own(Stream),
}

impl Deref for CurrentStream {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        match self {
            CurrentStream::Default(stream) => stream,
            CurrentStream::Own(stream) => stream,
        }
    }
}

/// The streams of a thread.
struct ThreadStreams {
    /// The streams of nested guards, with their numbers.
    stack: RefCell<Vec<(u64, Stream)>>,
    /// The number of the next guard.
    pushed: Cell<u64>,
    /// The default stream that was asked for last.
    last: Cell<Option<(driver::Device, &'static Stream)>>,
}

thread_local! {
    static STREAMS: ThreadStreams =
        const { ThreadStreams { stack: RefCell::new(Vec::new()), pushed: Cell::new(0), last: Cell::new(None) } };
}

/// Every default stream of the process; they stay.
static DEFAULTS: Mutex<Vec<(driver::Device, &'static Stream)>> = Mutex::new(Vec::new());

/// The stream that this thread's operations on a CUDA device go to.
///
/// # Errors
///
/// As [`Device::stream`].
pub(crate) fn stream(device: &Device) -> Result<CurrentStream> {
    let DeviceKind::Cuda(device) = device.0 else {
        return Err(Error::invalid("a stream", "the CPU", "a CUDA device"));
    };
    let known = STREAMS.try_with(|streams| {
        let stack = streams.stack.borrow();
        let stack = stack.iter().rev().find(|(_, stream)| stream.device() == device);
        let stack = stack.map(|(_, stream)| stream.clone());
        let last = streams.last.get().filter(|(last, _)| *last == device);
        stack.map(CurrentStream::Own).or(last.map(|(_, stream)| CurrentStream::Default(stream)))
    });
    if let Ok(Some(known)) = known {
        return Ok(known);
    }
    let stream = default_stream(device)?;
    let _ = STREAMS.try_with(|streams| streams.last.set(Some((device, stream))));
    Ok(CurrentStream::Default(stream))
}

fn default_stream(device: driver::Device) -> Result<&'static Stream> {
    let mut defaults = DEFAULTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, stream)) = defaults.iter().find(|(known, _)| *known == device) {
        return Ok(stream);
    }
    let stream: &'static Stream = Box::leak(Box::new(device.stream()?));
    defaults.push((device, stream));
    Ok(stream)
}
