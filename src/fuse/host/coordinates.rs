//! Coordinates on the CPU: the numbers of elements, and the values that groups of neighbours share.
//!
//! If the elements of a block are numbered consecutively, the interpreter computes a group's value once, in
//! the lane with the group's index within the block. Otherwise it computes the value once for each element.
//! `pick` selects the same words in both cases.

use super::super::space::Space;
use super::block::{Block, Lanes};
use super::memory::for_each_run;

/// Writes the numbers that a coordinate gives `count` elements.
#[inline(always)]
pub(super) fn number(space: &Space, operand: usize, start: usize, count: usize, block: &mut Block) {
    let lanes = <u64 as Lanes>::of_mut(block, count);
    for_each_run(space, operand, start, count, |lane, length, offset, stride| {
        for (index, lane) in lanes[lane..lane + length].iter_mut().enumerate() {
            *lane = (offset + index as isize * stride) as u64;
        }
    });
}

/// The groups of `size` neighbours that contain `count` elements starting at `start`.
pub(super) struct Groups<'a> {
    space: &'a Space,
    operand: usize,
    size: usize,
    start: usize,
    count: usize,
    /// The number of the first element, if the numbers are consecutive.
    first: Option<usize>,
}

impl<'a> Groups<'a> {
    #[inline(always)]
    pub(super) fn new(
        space: &'a Space,
        (operand, size): (usize, usize),
        start: usize,
        count: usize,
    ) -> Groups<'a> {
        let first = space.is_linear(operand).then(|| space.offsets[operand] + start);
        Groups { space, operand, size, start, count, first }
    }

    /// Returns the number of lanes of a value shared by groups.
    #[inline(always)]
    pub(super) fn lanes(&self) -> usize {
        match self.first {
            Some(first) => (first + self.count).div_ceil(self.size) - first / self.size,
            None => self.count,
        }
    }

    /// Writes the numbers of the groups.
    #[inline(always)]
    pub(super) fn number(&self, block: &mut Block) {
        let Some(first) = self.first else {
            number(self.space, self.operand, self.start, self.count, block);
            for lane in &mut <u64 as Lanes>::of_mut(block, self.count)[..] {
                *lane /= self.size as u64;
            }
            return;
        };
        for (lane, number) in <u64 as Lanes>::of_mut(block, self.lanes()).iter_mut().zip(first / self.size..)
        {
            *lane = number as u64;
        }
    }

    /// Selects for each element the word at its position within its group.
    #[inline(always)]
    pub(super) fn pick(&self, words: [&Block; 4], block: &mut Block) {
        let words = words.map(|word| <u32 as Lanes>::of(word, self.lanes()));
        let lanes = <u32 as Lanes>::of_mut(block, self.count);
        match self.first {
            Some(first) => {
                let skipped = first % self.size;
                for (position, words) in words[..self.size].iter().enumerate() {
                    // The first element with this position in a group, and that group.
                    let (lane, group) = match position.checked_sub(skipped) {
                        Some(lane) => (lane, 0),
                        None => (position + self.size - skipped, 1),
                    };
                    let lanes = lanes.iter_mut().skip(lane).step_by(self.size);
                    for (lane, &word) in lanes.zip(words.get(group..).unwrap_or_default()) {
                        *lane = word;
                    }
                }
            }
            None => {
                let size = self.size;
                for_each_run(
                    self.space,
                    self.operand,
                    self.start,
                    self.count,
                    |lane, length, offset, stride| {
                        for (index, lane) in (lane..lane + length).enumerate() {
                            let number = (offset + index as isize * stride) as usize;
                            lanes[lane] = words[number % size][lane];
                        }
                    },
                );
            }
        }
    }
}
