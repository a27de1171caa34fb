//! The allocator of the memory of CPU tensors, and its statistics.
//!
//! Invariants: the allocator is chosen once, at the latest by the first allocation, so memory is freed by the one that gave it.
//!
//! Tests: `kept_blocks.rs`, the examples of [`set_host_allocator`], [`host_memory_statistics`] and `tests/fake/capi/host.rs`.

use std::alloc::{self, Layout};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::cached_blocks;
use crate::error::{Error, Result};

type Allocate = dyn Fn(Layout) -> *mut u8 + Send + Sync;
type Free = dyn Fn(*mut u8, Layout) + Send + Sync;

/// The functions of [`set_host_allocator`].
struct HostAllocator {
    allocate: Box<Allocate>,
    free: Box<Free>,
}

/// None inside for the global allocator.
static ALLOCATOR: OnceLock<Option<HostAllocator>> = OnceLock::new();

/// Sets the functions that allocate and free the memory of CPU tensors, for the whole process and until its end.
///
/// `allocate` returns null if it has no memory. Blocks of freed tensors are then not kept for later ones. Memory of vectors that
/// tensors take over, and of other libraries, stays with its owner. CUDA memory is not affected.
///
/// ```standalone_crate
/// use std::alloc::{alloc, dealloc};
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use selvedge::tensor::set_host_allocator;
/// use selvedge::{DType, Device, Tensor};
/// static LIVE: AtomicUsize = AtomicUsize::new(0);
/// // SAFETY: the global allocator's memory is valid until it is freed.
/// unsafe {
///     set_host_allocator(
///         |layout| {
///             LIVE.fetch_add(layout.size(), Ordering::Relaxed);
///             alloc(layout)
///         },
///         |start, layout| {
///             LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
///             dealloc(start, layout)
///         },
///     )?;
/// }
/// let x = Tensor::ones(&[50_000], DType::F32, &Device::cpu())?;
/// assert_eq!(LIVE.load(Ordering::Relaxed), 200_000);
/// drop(x);
/// assert_eq!(LIVE.load(Ordering::Relaxed), 0);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] after the first allocation of a tensor on the CPU, and for a second call. Memory that is not
/// aligned as its layout says goes back to `free`, and the tensor's creation returns that error.
///
/// # Safety
///
/// `allocate` returns null, or memory of the layout's size, valid for reads and writes, that nothing else uses until `free`
/// gets it. Any thread calls both.
pub unsafe fn set_host_allocator(
    allocate: impl Fn(Layout) -> *mut u8 + Send + Sync + 'static,
    free: impl Fn(*mut u8, Layout) + Send + Sync + 'static,
) -> Result<()> {
    let allocator = HostAllocator { allocate: Box::new(allocate), free: Box::new(free) };
    let found = "a call after the first tensor on the CPU or after another call";
    let wanted = "one call before the first tensor on the CPU";
    ALLOCATOR.set(Some(allocator)).map_err(|_| Error::invalid("set_host_allocator", found, wanted))
}

#[inline]
fn custom() -> Option<&'static HostAllocator> {
    ALLOCATOR.get_or_init(|| None).as_ref()
}

/// Returns whether the caller has set an allocator.
#[inline]
pub(super) fn is_custom() -> bool {
    custom().is_some()
}

/// The multiple at which memory of [`MIN_ALIGNED`] bytes and more starts: a line of the caches and the widest vector. Vectors
/// that cross lines take up to a fifth longer.
const LINE: usize = 64;
/// Smaller memory starts where the allocator puts it.
const MIN_ALIGNED: usize = 1 << 10;

/// Returns the layout to ask the global allocator for, with the bytes to start at a multiple of [`LINE`].
///
/// The alignment stays [`ALIGNMENT`](kept_blocks::ALIGNMENT), for which the C library's allocator has zeros without writing them.
pub(super) fn padded(layout: Layout) -> Option<Layout> {
    let padding = if layout.size() < MIN_ALIGNED { 0 } else { LINE - layout.align() };
    Layout::from_size_align(layout.size().checked_add(padding)?, layout.align()).ok()
}

/// Memory of tensors: its first byte, and how many bytes after the start of its block that is.
#[derive(Clone, Copy)]
pub(super) struct AlignedStart {
    pub(super) start: NonNull<u8>,
    pub(super) offset: u8,
}

impl AlignedStart {
    /// Returns the memory of `layout` in a block of its [`padded`] layout.
    ///
    /// # Safety
    ///
    /// The block has the padded layout's size and alignment.
    pub(super) unsafe fn of_block(block: NonNull<u8>, layout: Layout) -> AlignedStart {
        let distance = block.addr().get().wrapping_neg() % LINE;
        let offset = if layout.size() < MIN_ALIGNED { 0 } else { distance };
        // SAFETY: the distance to the next line is at most the padding, as both are multiples of the alignment.
        AlignedStart { start: unsafe { block.add(offset) }, offset: offset as u8 }
    }

    /// Returns the start of the block.
    ///
    /// # Safety
    ///
    /// The block has not been freed.
    pub(super) unsafe fn block(self) -> NonNull<u8> {
        // SAFETY: the block starts so many bytes before.
        unsafe { self.start.sub(usize::from(self.offset)) }
    }
}

/// Returns zeros of this layout, whose size is not 0; none if there is no memory.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for memory of the caller's allocator that is not aligned.
pub(super) fn allocate_zeroed(layout: Layout) -> Result<Option<AlignedStart>> {
    let Some(allocator) = custom() else {
        let Some(padded) = padded(layout) else { return Ok(None) };
        // SAFETY: the caller vouches that the size is not 0.
        let block = NonNull::new(unsafe { alloc::alloc_zeroed(padded) });
        // SAFETY: the block was allocated with the padded layout.
        return Ok(block.map(|block| unsafe { AlignedStart::of_block(block, layout) }));
    };
    let Some(start) = NonNull::new((allocator.allocate)(layout)) else { return Ok(None) };
    if !start.addr().get().is_multiple_of(layout.align()) {
        (allocator.free)(start.as_ptr(), layout);
        let found = format!("memory at {start:p}");
        let wanted = format!("a multiple of {}", layout.align());
        return Err(Error::invalid("the allocator of set_host_allocator", found, wanted));
    }
    // SAFETY: the caller of `set_host_allocator` vouches for so many bytes.
    unsafe { start.write_bytes(0, layout.size()) };
    Ok(Some(AlignedStart { start, offset: 0 }))
}

/// Frees memory of [`allocate_zeroed`].
///
/// # Safety
///
/// The memory was allocated with this layout, and nothing uses it any more.
pub(super) unsafe fn deallocate(memory: AlignedStart, layout: Layout) {
    match custom() {
        Some(allocator) => (allocator.free)(memory.start.as_ptr(), layout),
        // SAFETY: the caller guarantees it.
        None => unsafe { deallocate_block(memory.block(), layout) },
    }
}

/// Frees a block of the global allocator.
///
/// # Safety
///
/// The block was allocated with this layout, [`padded`], and nothing uses it any more.
pub(super) unsafe fn deallocate_block(block: NonNull<u8>, layout: Layout) {
    // The layout with which the block was allocated exists.
    if let Some(padded) = padded(layout) {
        // SAFETY: the caller guarantees it.
        unsafe { alloc::dealloc(block.as_ptr(), padded) };
    }
}

/// The statistics of the memory of CPU tensors, in bytes. They do not include memory of other libraries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostMemoryStatistics {
    /// Bytes of live tensors, as they were allocated, without up to 48 bytes a tensor by which its start is aligned.
    pub live_bytes: usize,
    /// The peak of `live_bytes`, since the last [`reset_peak_host_memory`].
    pub peak_live_bytes: usize,
    /// Bytes of blocks of freed tensors that are kept for later ones; [`Device::trim`](super::Device::trim) frees them.
    pub cached_bytes: usize,
}

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Counts memory that a tensor has now.
#[inline]
pub(super) fn add_live(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    if live > PEAK.load(Ordering::Relaxed) {
        PEAK.fetch_max(live, Ordering::Relaxed);
    }
}

/// Counts memory that a tensor had.
#[inline]
pub(super) fn remove_live(bytes: usize) {
    LIVE.fetch_sub(bytes, Ordering::Relaxed);
}

/// Sets the peak of the memory of CPU tensors to the memory that is live now, as `torch.cuda.reset_peak_memory_stats` does on a
/// device; [`driver::Device::memory_scope`](crate::driver::Device::memory_scope) measures a part of a program there.
///
/// ```standalone_crate
/// use selvedge::tensor::{host_memory_statistics, reset_peak_host_memory};
/// use selvedge::{DType, Device, Tensor};
/// drop(Tensor::ones(&[1 << 20], DType::F32, &Device::cpu())?);
/// reset_peak_host_memory();
/// let x = Tensor::ones(&[1 << 10], DType::F32, &Device::cpu())?;
/// assert_eq!(host_memory_statistics().peak_live_bytes, 4 << 10);
/// # Ok::<(), selvedge::Error>(())
/// ```
pub fn reset_peak_host_memory() {
    PEAK.store(LIVE.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Returns the statistics of the memory of CPU tensors.
///
/// ```standalone_crate
/// use selvedge::tensor::host_memory_statistics;
/// use selvedge::{DType, Device, Tensor};
/// let x = Tensor::ones(&[1 << 20], DType::F32, &Device::cpu())?;
/// assert!(host_memory_statistics().live_bytes >= 4 << 20);
/// drop(x);
/// assert!(host_memory_statistics().cached_bytes >= 4 << 20);
/// Device::cpu().trim()?;
/// assert_eq!(host_memory_statistics().cached_bytes, 0);
/// # Ok::<(), selvedge::Error>(())
/// ```
pub fn host_memory_statistics() -> HostMemoryStatistics {
    HostMemoryStatistics {
        live_bytes: LIVE.load(Ordering::Relaxed),
        peak_live_bytes: PEAK.load(Ordering::Relaxed),
        cached_bytes: cached_blocks::bytes(),
    }
}
