//! Scratch memory of vector loops.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use bytemuck::{Pod, Zeroable};

/// 64 bytes at an address of a multiple of 64: a line of the cache, and the largest vector.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u64; 8]);

// SAFETY: words without padding, of which all values are valid.
unsafe impl Zeroable for Line {}
// SAFETY: as above.
unsafe impl Pod for Line {}

/// Elements whose first one is at a multiple of 64 bytes. A vector that crosses lines takes twice as long or more, and
/// memory of a `Vec` begins in the middle of a line.
pub(in crate::fuse) struct Scratch<T> {
    lines: Vec<Line>,
    count: usize,
    elements: PhantomData<T>,
}

impl<T> Default for Scratch<T> {
    fn default() -> Scratch<T> {
        Scratch { lines: Vec::new(), count: 0, elements: PhantomData }
    }
}

impl<T: Pod> Scratch<T> {
    /// Creates so many zeros.
    pub(in crate::fuse) fn new(count: usize) -> Scratch<T> {
        let mut scratch = Scratch::default();
        scratch.grow(count);
        scratch
    }

    /// Appends zeros if there are fewer elements.
    pub(in crate::fuse) fn grow(&mut self, count: usize) {
        if count > self.count {
            let lines = (count * size_of::<T>()).div_ceil(size_of::<Line>());
            self.lines.resize(lines, Line([0; 8]));
            self.count = count;
        }
    }
}

impl<T: Pod> Deref for Scratch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &bytemuck::cast_slice(&self.lines)[..self.count]
    }
}

impl<T: Pod> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.count]
    }
}
