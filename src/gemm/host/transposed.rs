//! A transposed B by rows, which the kernels read without a copy of their own for each row of tiles.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::MatrixOperand;
use crate::threads::run_on_threads;

/// The rows of tiles that read B from which the copy is worth it.
pub(super) const MIN_READS: usize = 4;
/// The sides of the blocks that are transposed.
const BLOCK: usize = 16;
/// Elements that are worth a thread's start.
const ELEMENTS_OF_A_THREAD: usize = 1 << 16;

/// Returns B, of `rows` x `columns`, by rows, or none if its rows are contiguous.
pub(super) fn by_rows<T: Copy + Send + Sync>(
    processors: usize,
    b: &MatrixOperand<T>,
    (rows, columns): (usize, usize),
) -> Option<Vec<T>> {
    if b.column == 1 || rows * columns == 0 {
        return None;
    }
    let mut copy: Vec<T> = Vec::new();
    copy.try_reserve_exact(rows * columns).ok()?;
    let shared = Shared { from: b, to: copy.spare_capacity_mut().as_mut_ptr() };
    let next = AtomicUsize::new(0);
    let work = || {
        let shared = &shared;
        loop {
            let top = next.fetch_add(BLOCK, Ordering::Relaxed);
            if top >= rows {
                break;
            }
            let end = rows.min(top + BLOCK);
            for left in (0..columns).step_by(BLOCK) {
                for row in top..end {
                    for column in left..columns.min(left + BLOCK) {
                        // SAFETY: the element is inside of B, its offset inside of the copy, and no other thread has the row.
                        unsafe {
                            let element =
                                *shared.from.start.add(row * shared.from.row + column * shared.from.column);
                            shared.to.add(row * columns + column).write(MaybeUninit::new(element));
                        }
                    }
                }
            }
        }
    };
    let worth = rows * columns / ELEMENTS_OF_A_THREAD + 1;
    run_on_threads(processors.min(worth), &work);
    // SAFETY: each row was written.
    unsafe { copy.set_len(rows * columns) };
    Some(copy)
}

struct Shared<'a, T> {
    from: &'a MatrixOperand<T>,
    to: *mut MaybeUninit<T>,
}

// SAFETY: threads read B and write rows of the copy that no other thread has.
unsafe impl<T: Send + Sync> Sync for Shared<'_, T> {}
