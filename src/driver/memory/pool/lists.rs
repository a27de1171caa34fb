//! A stream's own free blocks, by exact size: what serves a request without looking any further.
//!
//! Nothing is split or joined here; a stream that finds no block of the size it wants gives all of them to the heap.

use super::arena::{After, Index};
use super::backing::Returned;
use super::class::{Class, bytes_of};

/// A block in a list.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) address: u64,
    pub(crate) index: Index,
    /// The place in the stream's order behind which the block is free.
    pub(crate) place: u64,
}

/// Free blocks of one stream.
#[derive(Default)]
pub(crate) struct Lists {
    lists: Vec<Vec<Kept>>,
    /// A bit for each list that may hold something.
    occupied: Vec<u64>,
    /// Bytes of all of them.
    pub(crate) bytes: u64,
}

impl Lists {
    #[inline]
    pub(crate) fn push(&mut self, class: Class, kept: Kept) {
        if class.number >= self.lists.len() {
            self.make_room(class.number);
        }
        let list = &mut self.lists[class.number];
        if list.is_empty() {
            self.occupied[class.number / 64] |= 1 << (class.number % 64);
        }
        list.push(kept);
        self.bytes += class.bytes;
    }

    #[cold]
    fn make_room(&mut self, number: usize) {
        let length = (number + 1).next_multiple_of(64);
        self.lists.resize_with(length, Vec::new);
        self.occupied.resize(length / 64, 0);
    }

    #[inline]
    pub(crate) fn pop(&mut self, class: Class) -> Option<(u64, Index)> {
        let list = self.lists.get_mut(class.number)?;
        let &Kept { address, index, .. } = list.last()?;
        list.truncate(list.len() - 1);
        self.bytes -= class.bytes;
        Some((address, index))
    }

    /// Takes everything out, each block free behind its place in the order of `owner`.
    pub(crate) fn drain(&mut self, owner: u64, returned: &mut Vec<Returned>) {
        for (at, word) in self.occupied.iter_mut().enumerate() {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                let number = at * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let bytes = bytes_of(number);
                returned.extend(self.lists[number].drain(..).map(|Kept { index, place, .. }| Returned {
                    index,
                    bytes,
                    after: After { owner, place },
                }));
            }
        }
        self.bytes = 0;
    }

    /// The blocks of all lists.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.lists.iter().flatten().map(|kept| kept.address)
    }
}
