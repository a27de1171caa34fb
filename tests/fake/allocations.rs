//! The allocator of these tests, which remembers the largest allocation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Observed;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Observed = Observed;

/// Remembers an allocation. A size that was not given is none.
fn observe(memory: *mut u8, bytes: usize) -> *mut u8 {
    if !memory.is_null() && bytes > LARGEST.load(Ordering::Relaxed) {
        LARGEST.fetch_max(bytes, Ordering::Relaxed);
    }
    memory
}

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Observed {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller vouches.
        observe(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller vouches.
        observe(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the caller vouches.
        observe(unsafe { System.realloc(memory, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller vouches.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Forgets the allocations so far.
pub fn forget() {
    LARGEST.store(0, Ordering::Relaxed);
}

/// Returns the bytes of the largest allocation since then.
pub fn largest() -> usize {
    LARGEST.load(Ordering::Relaxed)
}
