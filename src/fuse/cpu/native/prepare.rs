//! Coordinates and random words of a block in scratch memory, where a kernel reads them as operands.

use super::super::Run;
use super::super::coordinates::{Groups, number};
use super::super::memory::spread;
use super::super::scratch::{Line, Scratch};
use super::calls::{CallBuffers, Calls};
use super::generate::Kernel;
use super::split::{Prepared, WordGroup};
use super::{Constants, Native};

/// The prepared operands of a thread.
pub(super) struct Preparation<'a> {
    run: &'a Run<'a>,
    operands: Vec<PreparedOperand>,
    groups: Vec<GroupWords<'a>>,
}

/// A [`Prepared`] operand with its numbers or words of a block.
enum PreparedOperand {
    Number { operand: usize, numbers: Scratch<u64> },
    Word { group: usize, indices: [usize; 4], words: Scratch<u32> },
}

/// The random words of the groups of a block.
struct GroupWords<'a> {
    group: &'a WordGroup<Kernel>,
    calls: [Calls<'a>; 2],
    sizes: [Vec<usize>; 2],
    numbers: Scratch<u64>,
    /// Each input of the stream, as often as there are groups.
    streams: Vec<Scratch<u8>>,
    halves: Vec<Scratch<u32>>,
    words: Vec<Scratch<u32>>,
    pointers: Vec<*mut u8>,
}

impl<'a> Preparation<'a> {
    /// Creates the scratch memory for blocks of at most `block` elements.
    pub(super) fn new(
        run: &'a Run<'a>,
        native: &'a Native,
        constants: &'a Constants,
        block: usize,
    ) -> Preparation<'a> {
        let operand = |&prepared: &Prepared| match prepared {
            Prepared::Number { operand } => PreparedOperand::Number { operand, numbers: Scratch::new(block) },
            Prepared::Word { group, words: indices } => {
                PreparedOperand::Word { group, indices, words: Scratch::new(block) }
            }
        };
        let group = |(group, constants): (&'a WordGroup<Kernel>, &'a [Vec<Line>; 2])| {
            GroupWords::new(run, group, constants, block)
        };
        Preparation {
            run,
            operands: native.prepared.iter().map(operand).collect(),
            groups: native.groups.iter().zip(&constants.groups).map(group).collect(),
        }
    }

    /// Returns the bytes of the elements of each operand.
    pub(super) fn sizes(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.operands.iter().map(|operand| match operand {
            PreparedOperand::Number { .. } => size_of::<u64>(),
            PreparedOperand::Word { .. } => size_of::<u32>(),
        })
    }

    /// Computes the operands of a block, and adds their addresses.
    pub(super) fn add(
        &mut self,
        buffers: &mut CallBuffers,
        start: usize,
        count: usize,
        pointers: &mut Vec<*mut u8>,
    ) {
        let space = &self.run.space;
        for group in &mut self.groups {
            group.compute(&Groups::new(space, group.key(), start, count), buffers);
        }
        for operand in &mut self.operands {
            pointers.push(match operand {
                PreparedOperand::Number { operand, numbers } => {
                    number(space, *operand, start, &mut numbers[..count]);
                    numbers.as_mut_ptr().cast()
                }
                PreparedOperand::Word { group, indices, words } => {
                    let group = &self.groups[*group];
                    let groups = Groups::new(space, group.key(), start, count);
                    groups.pick(
                        indices.map(|index| &group.words[index][..groups.lanes()]),
                        &mut words[..count],
                    );
                    words.as_mut_ptr().cast()
                }
            });
        }
    }
}

impl<'a> GroupWords<'a> {
    fn new(
        run: &Run<'_>,
        group: &'a WordGroup<Kernel>,
        constants: &'a [Vec<Line>; 2],
        block: usize,
    ) -> GroupWords<'a> {
        // A block has no more groups than elements.
        let most = block;
        let of_streams: Vec<usize> =
            group.streams.iter().map(|&input| run.operands[input].dtype.size()).collect();
        let stream = |(&input, &size): (&usize, &usize)| {
            let mut elements = Scratch::new(most * size);
            let from = run.operands[input].memory.wrapping_add(run.space.offsets[input] * size);
            // SAFETY: the input has one element, and the memory as many as there may be groups.
            unsafe { spread(from, elements.as_mut_ptr(), size, most) };
            elements
        };
        let word = size_of::<u32>();
        let sizes_of = |inputs: &[usize], outputs: usize| [inputs, &vec![word; outputs]].concat();
        GroupWords {
            group,
            calls: [Calls::new(&group.counters, &constants[0]), Calls::new(&group.cipher, &constants[1])],
            sizes: [
                sizes_of(&[&[size_of::<u64>()], &of_streams[..]].concat(), group.halves),
                sizes_of(&vec![word; group.halves], group.words),
            ],
            numbers: Scratch::new(most),
            streams: group.streams.iter().zip(&of_streams).map(stream).collect(),
            halves: (0..group.halves).map(|_| Scratch::new(most)).collect(),
            words: (0..group.words).map(|_| Scratch::new(most)).collect(),
            pointers: Vec::new(),
        }
    }

    /// Returns the coordinate that numbers the groups, and the elements of a group.
    fn key(&self) -> (usize, usize) {
        (self.group.operand, self.group.size)
    }

    /// Computes the words of these groups.
    fn compute(&mut self, groups: &Groups<'_>, buffers: &mut CallBuffers) {
        let count = groups.lanes();
        groups.number(&mut self.numbers[..count]);
        let [counters, cipher] = &self.calls;
        let address = |words: &mut Scratch<u32>| words.as_mut_ptr().cast::<u8>();
        let pointers = &mut self.pointers;
        pointers.clear();
        pointers.push(self.numbers.as_mut_ptr().cast());
        pointers.extend(self.streams.iter_mut().map(|elements| elements.as_mut_ptr()));
        pointers.extend(self.halves.iter_mut().map(address));
        // SAFETY: each pointer has as many elements as there are groups, and they are this thread's.
        unsafe { counters.run(buffers, &self.sizes[0], 1 + self.streams.len(), pointers, count) };
        pointers.clear();
        pointers.extend(self.halves.iter_mut().map(address));
        pointers.extend(self.words.iter_mut().map(address));
        // SAFETY: as above.
        unsafe { cipher.run(buffers, &self.sizes[1], self.halves.len(), pointers, count) };
    }
}
