//! One thread of an interpreted kernel.

use super::kernel::{Action, ClusterShape, Kernel, Source, Stop};
use super::memory::{Memory, SHARED, Shared};
use super::registers::Registers;
use super::transactions::Transactions;

/// The bits of elements that a guarded load leaves out.
pub(super) const ANY_VALUE: u64 = 0xc3a5_96b7_d278_4e1f;

/// The instructions between two stops after which a thread fails.
pub(super) const MAX_STEPS: usize = 100_000;

/// A thread of a block.
pub struct Thread {
    shape: ClusterShape,
    /// Its block in the cluster, and its index there.
    rank: u32,
    index: u32,
    /// The next line.
    pub(super) at: usize,
    /// Asynchronous copies that it has not waited for, with the group of each, and the groups that have ended.
    copies: Vec<(u64, Vec<u8>, usize)>,
    groups: usize,
    /// It has arrived at a barrier of the cluster, and has passed one.
    arrived: bool,
    passed: bool,
    /// It has initialized barriers that other blocks may not see yet.
    has_unfenced: bool,
}

/// The memory that a thread accesses besides its registers.
pub struct Spaces<'a> {
    pub parameters: &'a [u8],
    pub memory: &'a mut Memory,
    pub shared: &'a mut Shared,
    pub transactions: &'a mut Transactions,
}

impl Thread {
    /// Creates a thread of a cluster at its beginning.
    pub fn new(shape: ClusterShape, number: u32) -> Thread {
        let (rank, index) = (number / shape.threads, number % shape.threads);
        Thread {
            shape,
            rank,
            index,
            at: 0,
            copies: Vec::new(),
            groups: 0,
            arrived: false,
            passed: false,
            has_unfenced: false,
        }
    }

    /// Returns its number in the cluster.
    pub fn number(&self) -> u32 {
        self.rank * self.shape.threads + self.index
    }

    /// Returns the address of its block's shared memory.
    fn own(&self) -> u64 {
        u64::from(self.rank) * self.shape.in_block as u64 + SHARED
    }

    fn check_own(&self, address: u64) {
        let own = self.own();
        let inside = (own..own + self.shape.in_block as u64).contains(&address);
        assert!(inside, "an access to shared memory of another block at {address}");
    }

    /// Returns an address in shared memory of its block: a register and an offset.
    fn own_address(&self, registers: &Registers, lane: usize, (base, offset): (usize, u64)) -> u64 {
        let address = registers.get(base, lane).wrapping_add(offset);
        self.check_own(address);
        address
    }

    /// Returns an operand of its lane of a warp.
    pub(super) fn read(&self, registers: &Registers, lane: usize, source: Source) -> u64 {
        match source {
            Source::Register(register) => registers.get(register, lane),
            Source::Immediate(bits) => bits,
            Source::Block => u64::from(self.shape.first + self.rank),
            Source::Thread => u64::from(self.index),
            Source::Shared(offset) => self.own() + offset as u64,
        }
    }

    /// Leaves out a line whose guard does not hold.
    pub(super) fn pass(action: &Action, registers: &mut Registers, lane: usize) {
        if let Action::Load { results, bytes, .. } = action {
            // The registers have any value, which no result may depend on.
            for &result in results {
                if !registers.is_written(result, lane) {
                    registers.set(result, lane, ANY_VALUE >> (64 - 8 * bytes));
                }
            }
        }
    }

    /// Runs the action of the line before `at`. Returns the reason to stop, if there is one.
    pub(super) fn act(
        &mut self,
        action: &Action,
        (registers, lane): (&mut Registers, usize),
        Spaces { parameters, memory, shared: shared_memory, transactions }: &mut Spaces<'_>,
        pauses: &mut impl FnMut() -> bool,
    ) -> Option<Stop> {
        let pause = |pauses: bool| pauses.then_some(Stop::Pause);
        match action {
            Action::Pure { result, function, operands } => {
                let mut values = [0; 4];
                for (value, source) in values.iter_mut().zip(operands) {
                    *value = self.read(registers, lane, *source);
                }
                registers.set(*result, lane, function.of(values));
            }
            Action::Parameter { result, offset, bytes } => {
                registers.set(*result, lane, word(&parameters[*offset..offset + bytes]));
            }
            Action::Load { results, address, offset, bytes, signed, shared, volatile } => {
                let address = registers.get(*address, lane).wrapping_add(*offset);
                let width = bytes * results.len();
                let mut copied = [0; 32];
                let from = match shared {
                    true => {
                        self.check_own(address);
                        shared_memory.read(self.number(), address, &mut copied[..width]);
                        // Slots of several values may be read at once.
                        for slot in (0..results.len()).map(|slot| address + (slot * bytes) as u64) {
                            transactions.read(self.number(), slot, *bytes);
                        }
                        &copied[..width]
                    }
                    false => memory.load(address, width),
                };
                for (result, from) in results.iter().zip(from.chunks_exact(*bytes)) {
                    let mut value = word(from);
                    if *signed {
                        let unused = 64 - 8 * *bytes as u32;
                        // Into a register of 32 bits.
                        value = u64::from((((value << unused) as i64) >> unused) as u32);
                    }
                    registers.set(*result, lane, value);
                }
                return pause(*volatile && pauses());
            }
            Action::Store { values, address, offset, bytes, shared, volatile } => {
                let address = registers.get(*address, lane).wrapping_add(*offset);
                let mut all = [0; 32];
                for (value, into) in values.iter().zip(all.chunks_exact_mut(*bytes)) {
                    into.copy_from_slice(&self.read(registers, lane, *value).to_le_bytes()[..*bytes]);
                }
                let all = &all[..bytes * values.len()];
                match shared {
                    true => {
                        self.check_own(address);
                        shared_memory.write(self.number(), address, all);
                    }
                    false => memory.at(address, all.len()).copy_from_slice(all),
                }
                return pause(*volatile && pauses());
            }
            Action::Pack { result, halves, bits } => {
                let [low, high] = halves.map(|half| registers.get(half, lane) & ((1 << bits) - 1));
                registers.set(*result, lane, high << bits | low);
            }
            Action::Unpack { results, whole, bits } => {
                let (value, mask) = (registers.get(*whole, lane), (1 << bits) - 1);
                registers.set(results[0], lane, value & mask);
                registers.set(results[1], lane, value >> bits & mask);
            }
            Action::Add { result, address, value } => {
                let value = self.read(registers, lane, *value) as u32;
                let word = memory.at(registers.get(*address, lane), 4);
                let before = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                word.copy_from_slice(&before.wrapping_add(value).to_le_bytes());
                registers.set(*result, lane, before.into());
                return pause(pauses());
            }
            Action::Swap { result, address, expected, value } => {
                let [expected, value] =
                    [expected, value].map(|source| self.read(registers, lane, *source) as u32);
                let word = memory.at(registers.get(*address, lane), 4);
                let before = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                if before == expected {
                    word.copy_from_slice(&value.to_le_bytes());
                }
                registers.set(*result, lane, before.into());
                return pause(pauses());
            }
            Action::Copy { target, source, bytes, read: size } => {
                let of = |(base, offset): (usize, u64)| registers.get(base, lane).wrapping_add(offset);
                let (target, source) = (of(*target), of(*source));
                let count = size.map_or(*bytes as u64, |size| registers.get(size, lane)) as usize;
                // A checker of memory takes a part of a copy for all of it.
                let is_whole = count == 0 || count == *bytes;
                assert!(is_whole && source % *bytes as u64 == 0, "a copy of {count} bytes of {bytes}");
                self.check_own(target);
                let mut all = vec![0; *bytes];
                // An asynchronous copy is aligned to its whole size, but reads this many bytes.
                if count > 0 {
                    all[..count].copy_from_slice(memory.part(source, count));
                }
                self.copies.push((target, all, self.groups));
            }
            Action::CommitCopies => self.groups += 1,
            Action::WaitForCopies(running) => {
                // Copies without a group are later than all groups.
                let ended = running.map_or(usize::MAX, |running| self.groups.saturating_sub(running));
                for (target, all, _) in self.copies.iter().filter(|(_, _, group)| *group < ended) {
                    shared_memory.write(self.number(), *target, all);
                }
                self.copies.retain(|(_, _, group)| *group >= ended);
            }
            Action::Map { result, address, block } => {
                let address = registers.get(*address, lane);
                self.check_own(address);
                let block = self.read(registers, lane, *block);
                assert!(block < u64::from(self.shape.cluster), "block {block} of {}", self.shape.cluster);
                registers.set(
                    *result,
                    lane,
                    address - self.own() + SHARED + block * self.shape.in_block as u64,
                );
            }
            Action::InitBarrier(barrier) => {
                transactions.init(self.own_address(registers, lane, *barrier));
                self.has_unfenced = true;
            }
            Action::FenceBarriers => self.has_unfenced = false,
            Action::ArriveExpect { barrier, bytes } => {
                let address = self.own_address(registers, lane, *barrier);
                transactions.arrive_expect(address, self.read(registers, lane, *bytes), shared_memory);
            }
            Action::StoreAsync { target, value, bytes, barrier } => {
                assert!(self.passed, "a store to a block that may not exist yet");
                let of = |(base, offset): (usize, u64)| registers.get(base, lane).wrapping_add(offset);
                let (target, barrier) = (of(*target), of(*barrier));
                let block = |address: u64| (address - SHARED) / self.shape.in_block as u64;
                assert_eq!(block(target), block(barrier), "the blocks of a store and of its barrier");
                let value = self.read(registers, lane, *value).to_le_bytes();
                let (store, block) = ((target, &value[..*bytes]), (block(target), self.shape.threads));
                transactions.store(self.number(), store, barrier, block);
            }
            Action::TryWait { result, barrier, parity } => {
                let address = self.own_address(registers, lane, *barrier);
                let parity = self.read(registers, lane, *parity);
                let has_ended = transactions.try_wait(self.number(), address, parity, shared_memory);
                registers.set(*result, lane, has_ended.into());
            }
            Action::Arrive => {
                assert!(!self.has_unfenced, "barriers that other blocks may not see");
                assert!(!self.arrived, "a second arrival at a barrier");
                self.arrived = true;
            }
            Action::ClusterBarrier => {
                assert!(self.arrived, "a wait for a barrier without an arrival");
                (self.arrived, self.passed) = (false, true);
                return Some(Stop::ClusterBarrier(self.at));
            }
            Action::WarpBarrier => return Some(Stop::Warp(self.at)),
            Action::Nothing => {}
            Action::Shuffle(_) => return Some(Stop::Shuffle(self.at - 1)),
            Action::Jump(target) => {
                let back = *target < self.at;
                self.at = *target;
                if back {
                    return Some(Stop::Pause);
                }
            }
            Action::Barrier(_) => return Some(Stop::Barrier(self.at)),
            Action::Return => {
                assert!(self.copies.is_empty(), "a copy that nobody waits for");
                transactions.end(self.rank.into());
                return Some(Stop::End);
            }
        }
        None
    }
}

/// Returns the little-endian number of up to 8 bytes.
fn word(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        _ => u64::from_le_bytes(bytes.try_into().expect("a width of 1, 2, 4 or 8 bytes")),
    }
}

impl Kernel {
    /// Runs a thread until it synchronizes, ends, or pauses: at a jump back and, if `pauses` allows, after an
    /// access that other blocks see.
    pub(super) fn thread(
        &self,
        thread: &mut Thread,
        (registers, lane): (&mut Registers, usize),
        spaces: &mut Spaces<'_>,
        pauses: &mut impl FnMut() -> bool,
    ) -> Stop {
        for _ in 0..MAX_STEPS {
            let line = &self.lines[thread.at];
            thread.at += 1;
            if line.guard.is_some_and(|(register, wanted)| (registers.get(register, lane) != 0) != wanted) {
                Thread::pass(&line.action, registers, lane);
            } else if let Some(stop) = thread.act(&line.action, (registers, lane), spaces, pauses) {
                return stop;
            }
        }
        panic!("a thread does not end");
    }
}
