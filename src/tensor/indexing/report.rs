//! What kernels say of indices that are out of range: found on the device, told by the next call that waits for it.
//!
//! Each device has one report in page-locked memory, which its kernels write and the host reads. A kernel that finds a wrong
//! index claims the report, fills it in and completes it; others find it claimed and go on. Whoever waits for the device
//! afterwards looks at it, which is one load from the host's own memory, turns what is complete into an error, and
//! takes it. So checks cost no copy and no wait of their own, work in captured graphs and on any stream, and an error is
//! told once.
//!
//! The host may take a report while kernels of other streams run, and an atomic operation of theirs on the host's memory is
//! one among the device's threads alone: over the bus it may be a read and a write, between which the host's own word
//! would be lost. So no word is written from both sides. They count: a report is claimed where `claimed` is one ahead of
//! `taken`, whole where `complete` is, and free where all three are the same. Kernels on several streams, in graphs or
//! not, contend for `claimed` by compare and swap; kernels of another device have another report.
//!
//! What must stay true: kernels write `claimed` and `complete`, the host writes `taken`; the rest is written by who has
//! claimed the report and not completed it, and read while it is complete and not taken.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use super::call::Call;
use crate::driver::{Device, PinnedBuffer};
use crate::error::{Error, Result};

/// Exactly the `Report` of indexed.cuh.
#[repr(C)]
struct Report {
    claimed: AtomicU32,
    complete: AtomicU32,
    operation: u32,
    axis: u32,
    index: i64,
    size: u64,
    /// So that no atomic operation of a device on its words reaches the host's one, by whatever width the bus has.
    apart: [u32; 24],
    taken: AtomicU32,
}

const WORDS: usize = size_of::<Report>() / 8;

/// A device's report, for the life of its context.
struct Kept {
    device: Device,
    /// Never read as what it is typed: devices write it.
    memory: PinnedBuffer<u64>,
}

impl Kept {
    fn report(&self) -> *mut Report {
        self.memory.as_ptr().cast_mut().cast()
    }
}

static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

/// Where kernels on the device report: an address that is the same to them and to the host.
///
/// # Errors
///
/// The driver's, where there is no page-locked memory.
pub(super) fn address(device: &Device) -> Result<u64> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.iter().find(|known| known.device == *device) {
        return Ok(known.report().addr() as u64);
    }
    let mut memory = device.pinned::<u64>(WORDS)?;
    memory.fill(0);
    // Those of contexts that a reset has ended.
    kept.retain(|known| !known.device.is_lost());
    let new = Kept { device: *device, memory };
    let address = new.report().addr() as u64;
    kept.push(new);
    Ok(address)
}

/// After a wait for work of the device: the error that a kernel of it has reported, once.
///
/// # Errors
///
/// [`Error::IndexOutOfRange`].
pub(crate) fn told(device: &Device) -> Result<()> {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let known = kept.iter().find(|known| known.device == *device && !device.is_lost());
    known.map_or(Ok(()), |known| {
        // SAFETY: the memory is a report for as long as the context is there, and kept under the lock.
        unsafe { take(known.report()) }
    })
}

/// # Safety
///
/// A report that is whole and only written by the rule above.
unsafe fn take(report: *mut Report) -> Result<()> {
    // SAFETY: the caller's; devices and this read and write the counts as whole words.
    let (complete, taken) = unsafe { (&(*report).complete, &(*report).taken) };
    let count = complete.load(Ordering::Acquire);
    if count == taken.load(Ordering::Relaxed) {
        return Ok(());
    }
    // SAFETY: complete and not taken, so nobody writes the rest.
    let (operation, axis, index, size) =
        unsafe { ((*report).operation, (*report).axis, (*report).index, (*report).size) };
    // After the rest was read: the next kernel may write it from now on.
    taken.store(count, Ordering::Release);
    let axis = (axis != FLAT).then_some(axis as usize);
    Err(outside(Call::of_code(operation), axis, index, size as usize))
}

/// The axis of a report where there is none.
pub(super) const FLAT: u32 = u32::MAX;

/// The error for an index.
#[cold]
pub(super) fn outside(call: Call, axis: Option<usize>, index: i64, size: usize) -> Error {
    Error::IndexOutOfRange { operation: call.name(), index, axis, size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_told_once_and_free_again() {
        let mut report = Report {
            claimed: AtomicU32::new(0),
            complete: AtomicU32::new(u32::MAX),
            operation: Call::Take as u32,
            axis: FLAT,
            index: -8,
            size: 7,
            apart: [0; 24],
            taken: AtomicU32::new(u32::MAX),
        };
        // Claimed, and not complete: a kernel is writing it.
        // SAFETY: a whole report that only this test writes; so below.
        assert!(unsafe { take(&mut report) }.is_ok());
        report.complete = AtomicU32::new(0);
        // SAFETY: as above.
        let error = unsafe { take(&mut report) }.unwrap_err();
        assert_eq!(error.to_string(), outside(Call::Take, None, -8, 7).to_string());
        // SAFETY: as above.
        assert!(unsafe { take(&mut report) }.is_ok());
        let counts = [&report.claimed, &report.complete, &report.taken];
        assert_eq!(counts.map(|count| count.load(Ordering::Relaxed)), [0; 3]);
        (report.axis, report.operation) = (2, Call::Gather as u32);
        report.complete = AtomicU32::new(1);
        let wanted = Error::IndexOutOfRange { operation: "gather", index: -8, axis: Some(2), size: 7 };
        // SAFETY: as above.
        assert_eq!(unsafe { take(&mut report) }.unwrap_err().to_string(), wanted.to_string());
    }

    #[test]
    fn the_report_is_the_kernels() {
        let offsets = [std::mem::offset_of!(Report, index), std::mem::offset_of!(Report, taken)];
        assert_eq!((size_of::<Report>(), offsets), (136, [16, 128]));
    }
}
