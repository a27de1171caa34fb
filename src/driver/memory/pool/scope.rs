//! Memory scopes: the peak of what is live, attributed to a part of a program.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::driver::device::{Device, DeviceState};
use crate::driver::fork;

/// What a [`MemoryScope`] found; in bytes of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// The scope's name.
    pub name: String,
    /// Live when it began.
    pub start_bytes: u64,
    /// The most that was live since.
    pub peak_bytes: u64,
    /// Live when it ended, or now.
    pub end_bytes: u64,
}

/// Watches a device's live memory from [`Device::memory_scope`] until it is finished or dropped.
///
/// Scopes nest and overlap as they like, on any threads: each sees all of the device's buffers. While none is open
/// nothing is done for them; each that is open may make streams compare their books a few times more.
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
#[must_use = "it watches until it is dropped"]
pub struct MemoryScope {
    device: &'static DeviceState,
    number: u64,
    name: String,
    start: u64,
}

/// 0 is the device's own peak.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Device {
    /// Begins to watch how much memory is live at most. In a process that was forked from one that had used CUDA nothing is
    /// watched.
    pub fn memory_scope(&self, name: impl Into<String>) -> MemoryScope {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // A lock can stay locked for ever in a child.
        let start = if fork::forked() { 0 } else { self.0.pool.books.open_scope(number).blocks };
        MemoryScope { device: self.0, number, name: name.into(), start: start.max(0) as u64 }
    }
}

impl MemoryScope {
    /// What was found up to now.
    pub fn so_far(&self) -> MemoryUse {
        let (live, peak) = match fork::forked() {
            true => (self.start, self.start),
            false => {
                let (live, peak) = self.device.pool.books.scope(self.number);
                (live.blocks.max(0) as u64, peak.blocks.max(0) as u64)
            }
        };
        MemoryUse { name: self.name.clone(), start_bytes: self.start, peak_bytes: peak, end_bytes: live }
    }

    /// Ends the scope.
    pub fn finish(self) -> MemoryUse {
        self.so_far()
    }
}

impl Drop for MemoryScope {
    fn drop(&mut self) {
        // No lock is taken in a forked child.
        if !self.device.is_lost() {
            self.device.pool.books.close_scope(self.number);
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
