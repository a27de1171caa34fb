//! Memory scopes: the peak of live memory during a part of a program.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::driver::device::{Device, DeviceState};
use crate::driver::fork;

/// The result of a [`MemoryScope`], in bytes of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// The scope's name.
    pub name: String,
    /// Live bytes at the start.
    pub start_bytes: u64,
    /// The peak of live bytes since the start.
    pub peak_bytes: u64,
    /// Live bytes at the end, or now.
    pub end_bytes: u64,
}

/// Measures a device's live memory from [`Device::memory_scope`] until it is finished or dropped.
///
/// Scopes may nest and overlap, on any threads: each sees all of the device's buffers. Without an open scope the
/// measurement costs nothing. Each open scope may cause a few more synchronizations of the accounting.
///
/// ```no_run
/// # fn main() -> selvedge::Result<()> {
/// # let device = selvedge::driver::Device::new(0)?;
/// let scope = device.memory_scope("forward");
/// // … work …
/// println!("{}", scope.finish());
/// # Ok(())
/// # }
/// ```
#[must_use = "the scope ends when it is dropped"]
pub struct MemoryScope {
    device: &'static DeviceState,
    number: u64,
    name: String,
    start: u64,
}

/// The tracker's number; 0 is the device's own peak.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Device {
    /// Starts to measure the peak of live memory. Measures nothing in a process that was forked from one that had used
    /// CUDA.
    pub fn memory_scope(&self, name: impl Into<String>) -> MemoryScope {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // A lock can stay locked for ever in a forked child.
        let start = if fork::forked() { 0 } else { self.0.pool.accounting.open_scope(number).blocks };
        MemoryScope { device: self.0, number, name: name.into(), start: start.max(0) as u64 }
    }
}

impl MemoryScope {
    /// Returns the result so far.
    pub fn so_far(&self) -> MemoryUse {
        let (live, peak) = match fork::forked() {
            true => (self.start, self.start),
            false => {
                let (live, peak) = self.device.pool.accounting.scope(self.number);
                (live.blocks.max(0) as u64, peak.blocks.max(0) as u64)
            }
        };
        MemoryUse { name: self.name.clone(), start_bytes: self.start, peak_bytes: peak, end_bytes: live }
    }

    /// Ends the scope and returns its result.
    pub fn finish(self) -> MemoryUse {
        self.so_far()
    }
}

impl Drop for MemoryScope {
    fn drop(&mut self) {
        // A forked child takes no lock.
        if !self.device.is_lost() {
            self.device.pool.accounting.close_scope(self.number);
        }
    }
}

impl std::fmt::Debug for MemoryScope {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "MemoryScope({:?} of device {})", self.name, self.device.ordinal)
    }
}

impl std::fmt::Display for MemoryUse {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let MemoryUse { name, start_bytes, peak_bytes, end_bytes } = self;
        write!(
            formatter,
            "{name}: {start_bytes} bytes live at first, {peak_bytes} at most, {end_bytes} at last"
        )
    }
}
