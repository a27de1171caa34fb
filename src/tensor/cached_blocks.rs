//! Freed host memory that later tensors take.
//!
//! A page that the system gives is cleared and faults when it is first touched, which takes longer than most operations
//! on it. Freed blocks therefore stay here by size class, up to [`MAX_BYTES`] in all.
//!
//! Invariants: a block in the list has no other owner, and all its bytes were written at some time. A thread
//! that finds the list locked allocates or frees its block itself, and [`bytes`] and [`release`] give up after some attempts,
//! so a forked child may find it locked for ever.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard};

use super::host_memory::deallocate_block;

/// The bytes from which a block is cached; smaller ones stay with the allocator, which keeps them too.
const MIN_BYTES: usize = 64 << 10;
/// The most bytes of all cached blocks: about the activations of a step of training on a CPU, which are freed in its backward
/// and taken again by the next step.
const MAX_BYTES: usize = 1 << 30;
/// Enough for every element, and no more than the C library's allocator gives by itself: it has zeros for that without
/// writing them, in pages that come when they are touched.
pub(super) const ALIGNMENT: usize = 16;
/// How often [`lock`] tries, with the processor left to other threads in between. They hold the list for a look-up.
const ATTEMPTS: usize = 500;
/// Size classes between two powers of two.
const CLASSES: usize = 8;

/// The cached blocks, by their layouts' sizes.
struct CachedBlocks {
    by_size: BTreeMap<usize, Vec<NonNull<u8>>>,
    bytes: usize,
}

// SAFETY: a block has no other owner.
unsafe impl Send for CachedBlocks {}

static CACHE: Mutex<CachedBlocks> = Mutex::new(CachedBlocks { by_size: BTreeMap::new(), bytes: 0 });

/// Returns the size of the class of `bytes`, or none if blocks of so many bytes are not cached.
pub(super) fn class_of(bytes: usize) -> Option<usize> {
    if !(MIN_BYTES..=MAX_BYTES).contains(&bytes) {
        return None;
    }
    Some(bytes.next_multiple_of(bytes.next_power_of_two() / 2 / CLASSES))
}

/// Returns a cached block of exactly this size.
pub(super) fn take(size: usize) -> Option<NonNull<u8>> {
    let mut cache = CACHE.try_lock().ok()?;
    let block = cache.by_size.get_mut(&size)?.pop()?;
    cache.bytes -= size;
    Some(block)
}

/// Keeps a block that was allocated with this layout, or frees it.
///
/// # Safety
///
/// The block has no other owner, all its bytes were written, and [`take`]n blocks of the size are freed with this layout,
/// [`padded`](super::host_memory::padded).
pub(super) unsafe fn give(block: NonNull<u8>, layout: Layout) {
    if let Ok(mut cache) = CACHE.try_lock()
        && cache.bytes + layout.size() <= MAX_BYTES
    {
        cache.bytes += layout.size();
        return cache.by_size.entry(layout.size()).or_default().push(block);
    }
    // SAFETY: the caller guarantees it.
    unsafe { deallocate_block(block, layout) };
}

/// Locks the list once other threads have left it; none if it stays locked.
fn lock() -> Option<MutexGuard<'static, CachedBlocks>> {
    (0..ATTEMPTS).find_map(|_| {
        let cache = CACHE.try_lock().ok();
        if cache.is_none() {
            std::thread::yield_now();
        }
        cache
    })
}

/// Returns the bytes of all cached blocks; 0 if the list stays locked.
pub(super) fn bytes() -> usize {
    lock().map_or(0, |cache| cache.bytes)
}

/// Frees all cached blocks, unless the list stays locked.
pub(super) fn release() {
    let Some(mut cache) = lock() else { return };
    let by_size = std::mem::take(&mut cache.by_size);
    cache.bytes = 0;
    drop(cache);
    for (size, blocks) in by_size {
        let Ok(layout) = Layout::from_size_align(size, ALIGNMENT) else { continue };
        for block in blocks {
            // SAFETY: the block was allocated with this layout, and nobody else has it.
            unsafe { deallocate_block(block, layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::host_memory::allocate_zeroed;
    use super::*;
    use crate::{DType, Device, Tensor};

    #[test]
    fn a_class_has_at_most_an_eighth_more_bytes() {
        for bytes in
            [MIN_BYTES, MIN_BYTES + 1, 100_000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 12_345_678, MAX_BYTES]
        {
            let class = class_of(bytes).unwrap();
            assert!(class >= bytes && class <= bytes + bytes / CLASSES, "{bytes} {class}");
            assert_eq!(class_of(class), Some(class), "{bytes}");
        }
        assert_eq!([0, MIN_BYTES - 1, MAX_BYTES + 1].map(class_of), [None; 3]);
    }

    #[test]
    fn a_kept_block_is_taken_once() {
        // A size that no tensor of the tests has.
        let size = class_of(77 << 10).unwrap();
        let layout = Layout::from_size_align(size, ALIGNMENT).unwrap();
        let memory = allocate_zeroed(layout).unwrap().unwrap();
        // SAFETY: the block was allocated by the line before.
        let block = unsafe { memory.block() };
        // SAFETY: nobody else has the block.
        unsafe { give(block, layout) };
        // Another test may hold the list for a moment, so that the block was freed or is not found.
        let found = take(size);
        assert!(found.is_none_or(|found| found == block));
        assert_eq!(take(size), None);
        if let Some(found) = found {
            // SAFETY: allocated with this layout.
            unsafe { deallocate_block(found, layout) };
        }
    }

    #[test]
    fn fresh_kept_and_trimmed_memory_starts_at_a_multiple_of_64_bytes() {
        let device = Device::cpu();
        let is_aligned =
            |tensor: &Tensor| tensor.as_slice::<u8>().unwrap().as_ptr().addr().is_multiple_of(64);
        for bytes in [1 << 10, 3_000, 4_097, 50_001, MIN_BYTES, 1_000_003, (4 << 20) + 1] {
            // Blocks of one size side by side start at different distances from a line.
            for round in ["fresh", "kept", "trimmed"] {
                let tensors: Vec<Tensor> =
                    (0..4).map(|_| Tensor::zeros(&[bytes], DType::U8, &device).unwrap()).collect();
                assert!(tensors.iter().all(is_aligned), "zeros, {round}, {bytes} bytes");
                let sums: Vec<Tensor> = tensors.iter().map(|tensor| (tensor + 1).unwrap()).collect();
                assert!(sums.iter().all(is_aligned), "results, {round}, {bytes} bytes");
                drop((tensors, sums));
                if round == "kept" {
                    device.trim().unwrap();
                }
            }
        }
    }
}
