//! CUPTI, whose records have the device's own times of every kernel, also inside graphs.
//!
//! During a trace an operation of a stream is issued under an external number. CUPTI gives a record of each driver call with
//! that number, and a record of each kernel, copy and fill with the number of its driver call, which puts the operation's
//! description and its device times together. [`Session::flush`] asks for the finished records.
//!
//! Invariants: there is one session at a time; the callbacks never panic, and lock nothing but [`RECORDS`]; a record is read by
//! its first fields alone, which have had one layout from CUDA 12.1 to 13.5 (compared with the headers of each; the assertions
//! below compare those of 12.9 and 13.0), and a version outside of this range is refused.

use std::ffi::{CStr, c_void};
use std::mem::{ManuallyDrop, offset_of};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::sys::cupti::{
    CUcontext, CUpti_Activity, CUpti_ActivityExternalCorrelation, CUpti_ActivityKernel9, CUpti_ActivityKind,
    CUpti_ActivityMemcpy6, CUpti_ActivityMemcpyPtoP4, CUpti_ActivityMemset4, CUpti_CallbackDomain,
    CUpti_CallbackId, CUpti_ExternalCorrelationKind, CUpti_SubscriberHandle, CUptiResult,
};
use crate::sys::{self, CuptiApi, call, call_raw, cupti13};

/// The versions of CUPTI's interface whose records have the layout: those of CUDA 12.1 to 12.9, and of 13.0 to 13.5.
const VERSIONS: [std::ops::RangeInclusive<i32>; 2] = [18..=28, 130_000..=130_599];

const NUMBER: CUpti_ExternalCorrelationKind =
    CUpti_ExternalCorrelationKind::CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

/// The records that a session asks for. External numbers come with the records of driver calls.
const KINDS: [CUpti_ActivityKind; 6] = [
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_DRIVER,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMSET,
];

/// CUPTI_ACTIVITY_FLAG_FLUSH_FORCED: buffers with unfinished records, too.
const FORCED: u32 = 1;

/// The 8-byte words of a buffer. CUPTI keeps back a buffer whose last records are unfinished.
const BUFFER_WORDS: usize = 1 << 15;

macro_rules! same_layout {
    ($($record:ident $other:ident: $($field:ident)+;)+) => {
        const _: () = {
            $($(assert!(offset_of!($record, $field) == offset_of!(cupti13::$other, $field));)+)+
        };
    };
}

same_layout! {
    CUpti_ActivityKernel9 CUpti_ActivityKernel10:
        kind start end deviceId streamId gridX blockX correlationId name graphNodeId graphId;
    CUpti_ActivityMemcpy6 CUpti_ActivityMemcpy6: kind bytes start end deviceId streamId correlationId graphNodeId;
    CUpti_ActivityMemcpyPtoP4 CUpti_ActivityMemcpyPtoP4:
        kind bytes start end deviceId streamId correlationId graphNodeId;
    CUpti_ActivityMemset4 CUpti_ActivityMemset4: kind bytes start end deviceId streamId correlationId graphNodeId;
    CUpti_ActivityExternalCorrelation CUpti_ActivityExternalCorrelation:
        kind externalKind externalId correlationId;
}

/// The work that a record is of.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RecordedWork {
    Kernel { symbol: String, grid: [u32; 3], block: [u32; 3] },
    Copy { bytes: u64 },
    Fill { bytes: u64 },
}

/// A finished kernel, copy or fill of a device. Times are nanoseconds of CUPTI's clock.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeviceRecord {
    pub(super) work: RecordedWork,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) device: u32,
    /// CUPTI's number of the stream.
    pub(super) stream: u32,
    /// The number of the driver call.
    pub(super) correlation: u32,
    /// The node of a graph; 0 outside of graphs.
    pub(super) node: u64,
}

/// Records since the last look.
#[derive(Default)]
pub(super) struct Records {
    pub(super) work: Vec<DeviceRecord>,
    /// Numbers of driver calls with the external numbers under which they were made.
    pub(super) numbers: Vec<(u32, u64)>,
}

static RECORDS: Mutex<Records> = Mutex::new(Records { work: Vec::new(), numbers: Vec::new() });

/// A running session.
pub(super) struct Session {
    api: &'static CuptiApi,
    subscriber: CUpti_SubscriberHandle,
}

// SAFETY: CUPTI's functions may be called from any thread, and the handle is only given back to it.
unsafe impl Send for Session {}

impl Session {
    /// Starts a session.
    ///
    /// # Errors
    ///
    /// CUPTI is absent, of an unknown version, refuses (another profiler is attached), or fails.
    pub(super) fn start() -> Result<Session> {
        let api = sys::cupti()?;
        let version = api.loaded.number;
        if !VERSIONS.iter().any(|known| known.contains(&version)) {
            let found = format!("version {} of its interface ({})", api.loaded.version, api.loaded.path);
            return Err(Error::invalid("CUPTI", found, "one of CUDA 12.1 to 13.5"));
        }
        let mut subscriber = std::ptr::null_mut();
        // SAFETY: the pointer outlives the call, and the function lives as long as the process.
        unsafe { call!(api, cuptiSubscribe(&mut subscriber, Some(ignore), std::ptr::null_mut()))? };
        let session = Session { api, subscriber };
        // SAFETY: the functions live as long as the process.
        unsafe { call!(api, cuptiActivityRegisterCallbacks(Some(request_buffer), Some(complete_buffer)))? };
        for kind in KINDS {
            // SAFETY: takes no pointer.
            unsafe { call!(api, cuptiActivityEnable(kind))? };
        }
        drain_records();
        Ok(session)
    }

    /// Returns CUPTI's version, in words.
    pub(super) fn version(&self) -> &'static str {
        &self.api.loaded.version
    }

    /// Returns CUPTI's time in nanoseconds.
    pub(super) fn now(&self) -> Result<u64> {
        let mut time = 0;
        // SAFETY: the pointer outlives the call.
        unsafe { call!(self.api, cuptiGetTimestamp(&mut time))? };
        Ok(time)
    }

    /// Returns the records of finished work; with `all` those of buffers that hold unfinished ones, too.
    pub(super) fn flush(&self, all: bool) -> Result<Records> {
        // SAFETY: takes no pointer.
        unsafe { call!(self.api, cuptiActivityFlushAll(if all { FORCED } else { 0 }))? };
        Ok(drain_records())
    }

    /// Returns the number of records that found no buffer, since the last call.
    pub(super) fn dropped(&self) -> u64 {
        let mut dropped = 0;
        // SAFETY: the pointer outlives the call; null is the queue of the process.
        let asked = unsafe {
            call!(self.api, cuptiActivityGetNumDroppedRecords(std::ptr::null_mut(), 0, &mut dropped))
        };
        if asked.is_ok() { dropped as u64 } else { 0 }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for kind in KINDS {
            // A kind that cannot be turned off is turned off with the subscription.
            // SAFETY: takes no pointer.
            let _ = unsafe { call!(self.api, cuptiActivityDisable(kind)) };
        }
        // SAFETY: takes no pointer.
        let _ = unsafe { call!(self.api, cuptiActivityFlushAll(FORCED)) };
        // SAFETY: the handle is that of the subscription.
        if let Err(error) = unsafe { call!(self.api, cuptiUnsubscribe(self.subscriber)) } {
            log::warn!("CUPTI does not end its session, so later traces use events: {error}");
        }
        drain_records();
    }
}

/// Puts the driver calls of this thread under a number until the guard is dropped.
pub(super) fn numbered(number: u64) -> Option<Numbered> {
    let api = sys::cupti().ok()?;
    // SAFETY: takes no pointer.
    unsafe { call!(api, cuptiActivityPushExternalCorrelationId(NUMBER, number)) }.ok()?;
    Some(Numbered(api))
}

/// See [`numbered`].
pub(super) struct Numbered(&'static CuptiApi);

impl Drop for Numbered {
    fn drop(&mut self) {
        let mut last = 0;
        // SAFETY: the pointer outlives the call. A failure leaves later calls under the number, which is not found any more.
        let _ = unsafe { call!(self.0, cuptiActivityPopExternalCorrelationId(NUMBER, &mut last)) };
    }
}

fn drain_records() -> Records {
    std::mem::take(&mut *RECORDS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The subscription's function, which no domain calls.
unsafe extern "C" fn ignore(
    _data: *mut c_void,
    _domain: CUpti_CallbackDomain,
    _id: CUpti_CallbackId,
    _arguments: *const c_void,
) {
}

/// Gives CUPTI an empty buffer.
unsafe extern "C" fn request_buffer(buffer: *mut *mut u8, size: *mut usize, most_records: *mut usize) {
    let mut words: Vec<u64> = Vec::new();
    let (address, bytes) = match words.try_reserve_exact(BUFFER_WORDS) {
        Ok(()) => (ManuallyDrop::new(words).as_mut_ptr().cast(), BUFFER_WORDS * 8),
        // CUPTI counts what it then drops.
        Err(_) => (std::ptr::null_mut(), 0),
    };
    // SAFETY: CUPTI gives three places to write to.
    unsafe {
        buffer.write(address);
        size.write(bytes);
        most_records.write(0);
    }
}

/// Takes a buffer back, with records.
unsafe extern "C" fn complete_buffer(
    _context: CUcontext,
    _stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    if buffer.is_null() {
        return;
    }
    if let Ok(api) = sys::cupti() {
        let mut records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut record: *mut CUpti_Activity = std::ptr::null_mut();
        loop {
            // SAFETY: CUPTI wrote so many bytes of records.
            let asked = unsafe { call_raw!(api, cuptiActivityGetNextRecord(buffer, valid, &mut record)) };
            if !matches!(asked, Ok(CUptiResult::CUPTI_SUCCESS)) {
                break;
            }
            // SAFETY: the record is whole, and of the layout of a known version.
            unsafe { records.read(record) };
        }
    }
    // SAFETY: the buffer is one of those given, with this capacity.
    drop(unsafe { Vec::<u64>::from_raw_parts(buffer.cast(), 0, BUFFER_WORDS) });
}

/// The fields that records of device work have in common.
macro_rules! device_record {
    ($record:ident, $work:expr) => {
        DeviceRecord {
            work: $work,
            start: (*$record).start,
            end: (*$record).end,
            device: (*$record).deviceId,
            stream: (*$record).streamId,
            correlation: (*$record).correlationId,
            node: (*$record).graphNodeId,
        }
    };
}

impl Records {
    /// Reads a record of a known kind.
    ///
    /// # Safety
    ///
    /// The record is whole, and of a version in [`VERSIONS`].
    unsafe fn read(&mut self, record: *const CUpti_Activity) {
        // SAFETY: the kind, which each record begins with, tells its type.
        unsafe {
            match (*record).kind {
                CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION => {
                    let record: *const CUpti_ActivityExternalCorrelation = record.cast();
                    if (*record).externalKind == NUMBER {
                        self.numbers.push(((*record).correlationId, (*record).externalId));
                    }
                }
                CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
                | CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_KERNEL => {
                    let record: *const CUpti_ActivityKernel9 = record.cast();
                    let name = (*record).name;
                    let symbol = match name.is_null() {
                        true => String::from("unnamed"),
                        false => CStr::from_ptr(name).to_string_lossy().into_owned(),
                    };
                    let extents = |x: i32, y: i32, z: i32| [x, y, z].map(i32::unsigned_abs);
                    let grid = extents((*record).gridX, (*record).gridY, (*record).gridZ);
                    let block = extents((*record).blockX, (*record).blockY, (*record).blockZ);
                    self.work.push(device_record!(record, RecordedWork::Kernel { symbol, grid, block }));
                }
                CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY => {
                    let record: *const CUpti_ActivityMemcpy6 = record.cast();
                    self.work.push(device_record!(record, RecordedWork::Copy { bytes: (*record).bytes }));
                }
                CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY2 => {
                    let record: *const CUpti_ActivityMemcpyPtoP4 = record.cast();
                    self.work.push(device_record!(record, RecordedWork::Copy { bytes: (*record).bytes }));
                }
                CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMSET => {
                    let record: *const CUpti_ActivityMemset4 = record.cast();
                    self.work.push(device_record!(record, RecordedWork::Fill { bytes: (*record).bytes }));
                }
                _ => {}
            }
        }
    }
}
