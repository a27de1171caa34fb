//! A stream's own free blocks by exact size, the fastest way to serve a request.
//!
//! Nothing is split or merged here. A stream without a block of the wanted size returns all of its blocks to the heap.

use super::arena::{BlockIndex, FreeAfter};
use super::backing::ReturnedBlock;
use super::class::{Class, bytes_of};

/// A block in a list.
#[derive(Clone, Copy)]
pub(crate) struct ListedBlock {
    pub(crate) address: u64,
    pub(crate) index: BlockIndex,
    /// The position in the stream's order behind which the block is free.
    pub(crate) position: u64,
}

/// Free blocks of one stream.
#[derive(Default)]
pub(crate) struct Lists {
    lists: Vec<Vec<ListedBlock>>,
    /// A bit for each list that may be non-empty.
    occupied: Vec<u64>,
    /// The total bytes of all blocks.
    pub(crate) bytes: u64,
}

impl Lists {
    #[inline]
    pub(crate) fn push(&mut self, class: Class, kept: ListedBlock) {
        if class.index >= self.lists.len() {
            self.make_room(class.index);
        }
        let list = &mut self.lists[class.index];
        if list.is_empty() {
            self.occupied[class.index / 64] |= 1 << (class.index % 64);
        }
        list.push(kept);
        self.bytes += class.bytes;
    }

    #[cold]
    fn make_room(&mut self, class_index: usize) {
        let length = (class_index + 1).next_multiple_of(64);
        self.lists.resize_with(length, Vec::new);
        self.occupied.resize(length / 64, 0);
    }

    #[inline]
    pub(crate) fn pop(&mut self, class: Class) -> Option<(u64, BlockIndex)> {
        let list = self.lists.get_mut(class.index)?;
        let &ListedBlock { address, index, .. } = list.last()?;
        list.truncate(list.len() - 1);
        self.bytes -= class.bytes;
        Some((address, index))
    }

    /// Removes all blocks, each free behind its position in the order of `owner`.
    pub(crate) fn drain(&mut self, owner: u64, returned: &mut Vec<ReturnedBlock>) {
        for (at, word) in self.occupied.iter_mut().enumerate() {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                let class_index = at * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let bytes = bytes_of(class_index);
                returned.extend(self.lists[class_index].drain(..).map(
                    |ListedBlock { index, position, .. }| ReturnedBlock {
                        index,
                        bytes,
                        after: FreeAfter { owner, position },
                    },
                ));
            }
        }
        self.bytes = 0;
    }

    /// The addresses of the blocks of all lists.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.lists.iter().flatten().map(|kept| kept.address)
    }
}
