//! Device-side errors: errors that kernels report while they run, returned by the next call that waits for the device.
//!
//! Each device has one report in page-locked memory. Its kernels write it and the host reads it. A kernel that finds an
//! error claims the report, fills it in and completes it; other kernels see the claim and go on. Every wait for the
//! device then loads the counters, turns a complete report into an error, and frees the report. Checks therefore need
//! no copy and no wait of their own, work in captured graphs and on any stream, and an error is returned once.
//!
//! The host may free a report while kernels of other streams run. A device's atomic operation on host memory is atomic
//! only among the threads of that device: over the bus it may be a read and a write, between which a store by the host
//! would be lost. Host and device therefore never write the same word. They count instead: a report is claimed if
//! `claimed` is one ahead of `taken`, complete if `complete` is, and free if all three are equal. Kernels on several
//! streams contend for `claimed` by compare and swap. Each device has its own report.
//!
//! Invariants: kernels write `claimed` and `complete`, and the host writes `taken`. Only the kernel that claimed the
//! report writes the other fields, before it completes the report. The host reads them only while the report is
//! complete and not taken.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::argument::RawAddress;
use super::device::{Device, DeviceState};
use crate::error::{Error, Result};

/// A device-side error: its operation, and a function that converts a report to an [`Error`].
///
/// It is a `static`. A kernel gets its [`code`](Self::code) and the address of [`Device::report_address`] as arguments,
/// and calls `selvedge::report` of the header `selvedge/report.cuh` (supplied by [`nvrtc`](crate::nvrtc)) when it finds
/// the error. The kernel and the stream go on. The next call that waits for the device, on any thread, returns the
/// error once: [`Stream::synchronize`](super::Stream::synchronize), [`Device::synchronize`], or a copy to the host.
///
/// ```no_run
/// use selvedge::driver::{Device, KernelError};
/// use selvedge::launcher::Launcher;
///
/// static WRONG_CLASS: KernelError = KernelError::index_out_of_range("count_classes");
///
/// # fn main() -> selvedge::Result<()> {
/// let device = Device::new(0)?;
/// let launcher = Launcher::new(&device)?;
/// launcher.compile(
///     "count",
///     "#include <selvedge/report.cuh>
///      __global__ void count(const int *labels, unsigned *counts, unsigned n, unsigned classes,
///                            selvedge::kernel_report *report, unsigned code) {
///          unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
///          if (i >= n) return;
///          if ((unsigned)labels[i] >= classes) selvedge::report(report, code, labels[i], 0, classes);
///          else atomicAdd(&counts[labels[i]], 1);
///      }",
/// )?;
/// let stream = launcher.stream();
/// let labels = stream.upload(&[0i32, 1, 7])?;
/// let mut counts = stream.zeros::<u32>(3)?;
/// let (report, code) = (device.report_address()?, WRONG_CLASS.code());
/// // SAFETY: the kernel reads 3 labels and writes 3 counts.
/// unsafe { launcher.run("count", 1, 32, (&labels, &mut counts, 3u32, 3u32, report, code))? };
/// let error = stream.synchronize().unwrap_err();
/// assert!(error.to_string().starts_with("count_classes: found index 7"));
/// # Ok(())
/// # }
/// ```
pub struct KernelError {
    operation: &'static str,
    error: fn(&KernelReport) -> Error,
    code: OnceLock<u32>,
}

/// The report of a device-side error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelReport {
    /// The operation of the [`KernelError`].
    pub operation: &'static str,
    /// The axis that the index counts along; none if the kernel passed `selvedge::no_axis`.
    pub axis: Option<usize>,
    /// The index, or another offending value.
    pub index: i64,
    /// The number of valid positions, or another limit.
    pub size: u64,
}

/// Every error whose code was requested. A code is an index in this list.
static KERNEL_ERRORS: Mutex<Vec<&'static KernelError>> = Mutex::new(Vec::new());

impl KernelError {
    /// An error of this operation. `error` converts its reports.
    pub const fn new(operation: &'static str, error: fn(&KernelReport) -> Error) -> KernelError {
        KernelError { operation, error, code: OnceLock::new() }
    }

    /// An [`Error::IndexOutOfRange`] of this operation.
    pub const fn index_out_of_range(operation: &'static str) -> KernelError {
        KernelError::new(operation, |report| Error::IndexOutOfRange {
            operation: report.operation,
            index: report.index,
            axis: report.axis,
            size: report.size as usize,
        })
    }

    /// The operation.
    pub const fn operation(&self) -> &'static str {
        self.operation
    }

    /// The number by which kernels identify this error, constant for the life of the process.
    pub fn code(&'static self) -> u32 {
        *self.code.get_or_init(|| {
            let mut known = KERNEL_ERRORS.lock().unwrap_or_else(PoisonError::into_inner);
            known.push(self);
            known.len() as u32 - 1
        })
    }

    /// Returns the error for a report with this code.
    #[cold]
    fn of_report(code: u32, axis: u32, index: i64, size: u64) -> Error {
        let known = KERNEL_ERRORS.lock().unwrap_or_else(PoisonError::into_inner).get(code as usize).copied();
        let axis = (axis != NO_AXIS).then_some(axis as usize);
        match known {
            Some(known) => (known.error)(&KernelReport { operation: known.operation, axis, index, size }),
            None => {
                let found = format!("a report with code {code}, index {index} and size {size}");
                Error::invalid("a kernel", found, "the code of a KernelError")
            }
        }
    }
}

/// `selvedge::no_axis` of report.cuh.
pub(crate) const NO_AXIS: u32 = u32::MAX;

/// The layout of `kernel_report` in report.cuh.
#[repr(C)]
struct Report {
    claimed: AtomicU32,
    complete: AtomicU32,
    code: u32,
    axis: u32,
    index: i64,
    size: u64,
    /// Padding, so that a device's wide atomic operation on its words never touches the host's word.
    apart: [u32; 24],
    taken: AtomicU32,
}

const WORDS: usize = size_of::<Report>() / 8;

/// A device's report, in page-locked memory from its first use until the context ends.
#[derive(Default)]
pub(super) struct ReportSlot(AtomicPtr<Report>);

/// Errors that the host reports of work on the device, such as work that another process should have finished. Every wait returns the
/// first of them, until who reported it takes it back: one thread's wait must not hide it from the others.
#[derive(Default)]
pub(super) struct HostReport {
    is_set: AtomicBool,
    /// By the number of who reported it.
    errors: Mutex<Vec<(usize, Error)>>,
}

#[cfg(feature = "collective")]
impl HostReport {
    fn change(&self, change: impl FnOnce(&mut Vec<(usize, Error)>)) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut errors);
        self.is_set.store(!errors.is_empty(), Ordering::Release);
    }
}

impl Device {
    /// Returns the address of this device's report, which kernels take as an argument; see [`KernelError`].
    ///
    /// # Errors
    ///
    /// The driver cannot allocate page-locked memory, or [`Error::ContextLost`].
    pub fn report_address(&self) -> Result<RawAddress> {
        let slot = &self.0.report.0;
        let known = slot.load(Ordering::Acquire);
        if !known.is_null() {
            return Ok(RawAddress(known.addr() as u64));
        }
        let mut memory = self.pinned::<u64>(WORDS)?;
        memory.fill(0);
        let made: *mut Report = memory.as_mut_ptr().cast();
        match slot.compare_exchange(std::ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                // The device's state is never freed, and kernels may write the report while the context exists.
                std::mem::forget(memory);
                Ok(RawAddress(made.addr() as u64))
            }
            Err(known) => Ok(RawAddress(known.addr() as u64)),
        }
    }
}

impl Device {
    /// Makes every wait for work of the device return an error, until `who` clears it.
    #[cfg(feature = "collective")]
    pub(crate) fn report_failure(&self, who: usize, error: Error) {
        self.0.host_report.change(|errors| errors.push((who, error)));
    }

    /// Takes back the errors of [`report_failure`](Self::report_failure).
    #[cfg(feature = "collective")]
    pub(crate) fn clear_failure(&self, who: usize) {
        self.0.host_report.change(|errors| errors.retain(|(other, _)| *other != who));
    }
}

impl DeviceState {
    /// Returns the error that a kernel of the device has reported, once. Called after a wait for work of the device.
    #[inline]
    pub(crate) fn take_report(&self) -> Result<()> {
        if self.host_report.is_set.load(Ordering::Acquire) {
            let errors = self.host_report.errors.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, error)) = errors.first() {
                return Err(error.clone());
            }
        }
        let report = self.report.0.load(Ordering::Acquire);
        if report.is_null() || self.is_lost() {
            return Ok(());
        }
        // SAFETY: the memory is a report while the context exists; the lock makes this the only reader.
        unsafe { take(report) }
    }
}

/// Serializes readers of reports.
static TAKING: Mutex<()> = Mutex::new(());

/// # Safety
///
/// `report` points to a valid report that is written only as the invariants allow.
unsafe fn take(report: *mut Report) -> Result<()> {
    // SAFETY: the caller vouches for the report; devices and this function access the counts as whole words.
    let (complete, taken) = unsafe { (&(*report).complete, &(*report).taken) };
    if complete.load(Ordering::Acquire) == taken.load(Ordering::Relaxed) {
        return Ok(());
    }
    let _alone = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let count = complete.load(Ordering::Acquire);
    if count == taken.load(Ordering::Relaxed) {
        return Ok(());
    }
    // SAFETY: complete and not taken, so nobody writes the other fields.
    let (code, axis, index, size) =
        unsafe { ((*report).code, (*report).axis, (*report).index, (*report).size) };
    // Stored after the fields were read: the next kernel may write them from now on.
    taken.store(count, Ordering::Release);
    Err(KernelError::of_report(code, axis, index, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    static TAKE: KernelError = KernelError::index_out_of_range("take");
    static GATHER: KernelError = KernelError::index_out_of_range("gather");
    static LABELS: KernelError = KernelError::new("labels", |report| Error::InvalidArgument {
        operation: report.operation,
        found: format!("class {}", report.index),
        wanted: format!("one below {}", report.size),
    });

    #[test]
    fn a_report_is_returned_once_and_free_again() {
        let mut report = Report {
            claimed: AtomicU32::new(0),
            complete: AtomicU32::new(u32::MAX),
            code: TAKE.code(),
            axis: NO_AXIS,
            index: -8,
            size: 7,
            apart: [0; 24],
            taken: AtomicU32::new(u32::MAX),
        };
        let text = |report: &mut Report| {
            // SAFETY: a valid report that only this test writes.
            unsafe { take(report) }.err().map(|error| error.to_string())
        };
        // Claimed, and not complete: a kernel is writing it.
        assert_eq!(text(&mut report), None);
        report.complete = AtomicU32::new(0);
        let wanted = |operation, axis| {
            Some(Error::IndexOutOfRange { operation, index: -8, axis, size: 7 }.to_string())
        };
        assert_eq!(text(&mut report), wanted("take", None));
        assert_eq!(text(&mut report), None);
        let counts = [&report.claimed, &report.complete, &report.taken];
        assert_eq!(counts.map(|count| count.load(Ordering::Relaxed)), [0; 3]);
        (report.axis, report.code) = (2, GATHER.code());
        report.complete = AtomicU32::new(1);
        assert_eq!(text(&mut report), wanted("gather", Some(2)));
        report.code = LABELS.code();
        report.complete = AtomicU32::new(2);
        assert_eq!(text(&mut report).as_deref(), Some("labels: found class -8; wanted one below 7"));
        report.code = u32::MAX;
        report.complete = AtomicU32::new(3);
        assert!(text(&mut report).is_some_and(|text| text.contains("the code of a KernelError")));
        assert_eq!(TAKE.code(), TAKE.code());
    }

    #[test]
    fn the_report_has_the_layout_of_the_kernels() {
        let offsets = [std::mem::offset_of!(Report, index), std::mem::offset_of!(Report, taken)];
        assert_eq!((size_of::<Report>(), offsets), (136, [16, 128]));
    }
}
