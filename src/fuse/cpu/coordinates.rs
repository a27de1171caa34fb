//! Coordinates on the CPU: the numbers of elements, and the values that groups of neighbours share.
//!
//! If the elements of a block are numbered consecutively, the interpreter computes a group's value once, in
//! the lane with the group's index within the block. Otherwise it computes the value once for each element.
//! `pick` selects the same words in both cases.

use super::memory::{contiguous_from, for_each_run};
use crate::fuse::plan::space::Space;

/// Writes the numbers that a coordinate gives the elements from `start` on, one a lane.
#[inline(always)]
pub(super) fn number(space: &Space, operand: usize, start: usize, lanes: &mut [u64]) {
    for_each_run(space, operand, start, lanes.len(), |lane, length, offset, stride| {
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
        let first = contiguous_from(space, operand, start, count).map(|first| first as usize);
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

    /// Writes the numbers of the groups, one a lane; there are [`lanes`](Self::lanes).
    #[inline(always)]
    pub(super) fn number(&self, lanes: &mut [u64]) {
        match self.first {
            Some(first) => {
                for (lane, number) in lanes.iter_mut().zip((first / self.size) as u64..) {
                    *lane = number;
                }
            }
            None => {
                number(self.space, self.operand, self.start, lanes);
                lanes.iter_mut().for_each(|lane| *lane /= self.size as u64);
            }
        }
    }

    /// Selects for each element the word at its position within its group.
    #[inline(always)]
    pub(super) fn pick(&self, words: [&[u32]; 4], lanes: &mut [u32]) {
        match self.first {
            Some(first) => {
                let skipped = first % self.size;
                let head = if skipped == 0 { 0 } else { (self.size - skipped).min(lanes.len()) };
                let (of_head, lanes) = lanes.split_at_mut(head);
                for (lane, word) in of_head.iter_mut().zip(&words[skipped..]) {
                    *lane = word[0];
                }
                let words = words.map(|words| words.get(usize::from(head > 0)..).unwrap_or_default());
                interleave(&words[..self.size], lanes);
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

/// Writes the first word of each list, then the second one of each, and so on.
#[inline(always)]
fn interleave(words: &[&[u32]], lanes: &mut [u32]) {
    let groups = lanes.len() / words.len();
    let (whole, rest) = lanes.split_at_mut(groups * words.len());
    // Loops over lists of a known number become vector code, and stores of arrays never calls of `memmove`.
    match *words {
        [a, b] => {
            let pairs: &mut [[u32; 2]] = bytemuck::cast_slice_mut(whole);
            for ((lanes, &a), &b) in pairs.iter_mut().zip(a).zip(b) {
                *lanes = [a, b];
            }
        }
        [a, b, c, d] => {
            let fours: &mut [[u32; 4]] = bytemuck::cast_slice_mut(whole);
            for ((((lanes, &a), &b), &c), &d) in fours.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *lanes = [a, b, c, d];
            }
        }
        _ => {}
    }
    for (lane, words) in rest.iter_mut().zip(words) {
        *lane = words[groups];
    }
}
