//! The order in which the threads of an interpreted grid run.
//!
//! A device runs some blocks at once, and their warps in any order. Blocks that do not wait for each other
//! run in sequence. For others, a seed generates an adversarial order that a device could have: some blocks
//! advance as far as they can, some are delayed until nothing else can run, and a thread may pause between
//! any two accesses that other blocks see. A kernel whose threads all stop is wrong.

use super::kernel::{Action, ClusterShape, Kernel, Shuffle, ShuffleMode, Source, Stop};
use super::memory::{Memory, Shared};
use super::pure::LANES;
use super::registers::Registers;
use super::thread::{Spaces, Thread};
use super::together::Together;
use super::transactions::Transactions;

/// The number of rounds without progress after which waiting threads fail.
const PATIENCE: usize = 10_000;

/// An order of the threads of a grid.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// Resident blocks.
    pub resident: usize,
    /// The seed of the order; `None` runs one block after another.
    pub seed: Option<u64>,
}

impl Schedule {
    /// Block by block.
    pub const IN_ORDER: Schedule = Schedule { resident: 1, seed: None };
}

/// Pseudorandom numbers (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }
}

/// Threads of a block that run together.
struct Warp {
    threads: Vec<Thread>,
    /// The point at which each thread waits for the others.
    stops: Vec<Option<Stop>>,
    registers: Registers,
    /// It paused, and nothing has happened elsewhere since.
    waits: bool,
    stop: Option<Stop>,
}

struct Block {
    warps: Vec<Warp>,
    shared: Shared,
    transactions: Transactions,
    /// Blocks of higher rank run first.
    rank: usize,
    /// Warps of a block of the cluster.
    each: usize,
}

/// The threads of a warp exchanged global memory, so that they must run one after another.
struct Exchanged;

/// A grid that runs: its order and sizes.
#[derive(Clone, Copy)]
struct Grid {
    schedule: Schedule,
    blocks: u32,
    cluster: u32,
    threads: u32,
    in_block: usize,
    /// Threads of a warp run side by side.
    together: bool,
}

impl Kernel {
    /// Runs every thread of a grid, block by block. `parameters` are the bytes of all parameters.
    pub fn run(&self, blocks: u32, threads: u32, parameters: &[u8], memory: &mut Memory) {
        self.run_as(Schedule::IN_ORDER, blocks, threads, parameters, memory);
    }

    /// Runs every thread of a grid in an order.
    pub fn run_as(
        &self,
        schedule: Schedule,
        blocks: u32,
        threads: u32,
        parameters: &[u8],
        memory: &mut Memory,
    ) {
        self.run_in_clusters(schedule, (blocks, 1), threads, 0, parameters, memory);
    }

    /// Runs every thread of a grid in an order: blocks with dynamic shared memory, in clusters of a size.
    pub fn run_in_clusters(
        &self,
        schedule: Schedule,
        (blocks, cluster): (u32, u32),
        threads: u32,
        dynamic: u32,
        parameters: &[u8],
        memory: &mut Memory,
    ) {
        assert_eq!(parameters.len(), self.parameter_bytes, "bytes of parameters");
        assert!(threads <= self.most_threads, "{threads} threads where the text says fewer");
        assert!(blocks % cluster == 0, "{blocks} blocks in clusters of {cluster}");
        assert!(self.is_dynamic || dynamic == 0, "dynamic shared memory that the text does not use");
        assert_eq!(cluster > 1, self.has_clusters, "clusters of {cluster}");
        let in_block = self.shared_in_block(dynamic);
        let grid = Grid { schedule, blocks, cluster, threads, in_block, together: true };
        let before = memory.clone();
        if self.run_grid(grid, parameters, memory).is_err() {
            *memory = before;
            let alone = self.run_grid(Grid { together: false, ..grid }, parameters, memory);
            assert!(alone.is_ok(), "threads alone run to their end");
        }
    }

    fn run_grid(&self, grid: Grid, parameters: &[u8], memory: &mut Memory) -> Result<(), Exchanged> {
        let Grid { schedule, blocks, cluster, threads, in_block, .. } = grid;
        let mut numbers =
            Numbers(schedule.seed.map_or(1, |seed| (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        // A cluster is a block of all its threads and memory.
        // Warps that do not synchronize need not coexist.
        let all = threads * cluster;
        let at_once = if self.meets() { all } else { LANES as u32 };
        let of_cluster = move |first: u32| (0..all).step_by(at_once as usize).map(move |at| (first, at));
        let mut next = (0..blocks / cluster).flat_map(of_cluster);
        let mut there: Vec<Block> = Vec::new();
        // Registers of blocks that ended, so that memory is not cleared for each block.
        let mut spare: Vec<Registers> = Vec::new();
        let mut fruitless = 0;
        loop {
            while there.len() < schedule.resident {
                let Some((block, first)) = next.next() else { break };
                let rank = numbers.below(1 << 20);
                let shape = ClusterShape { first: block * cluster, cluster, threads, in_block };
                there.push(self.block(shape, first..all.min(first + at_once), rank, &mut spare));
            }
            if there.is_empty() {
                return Ok(());
            }
            if schedule.seed.is_some() && numbers.below(64) == 0 {
                let some = numbers.below(there.len());
                there[some].rank = numbers.below(1 << 20);
            }
            let runnable = |block: &Block| block.warps.iter().any(|warp| warp.stop.is_none() && !warp.waits);
            let ready = there.iter().enumerate().filter(|(_, block)| runnable(block));
            let Some(chosen) = ready.max_by_key(|(_, block)| block.rank).map(|(at, _)| at) else {
                fruitless += 1;
                assert!(fruitless < PATIENCE, "no thread goes on");
                there.iter_mut().flat_map(|block| &mut block.warps).for_each(|warp| warp.waits = false);
                continue;
            };
            let block = &mut there[chosen];
            let ready: Vec<usize> = (0..block.warps.len())
                .filter(|&at| block.warps[at].stop.is_none() && !block.warps[at].waits)
                .collect();
            let warp = ready[if schedule.seed.is_some() { numbers.below(ready.len()) } else { 0 }];
            let mut pauses = || schedule.seed.is_some() && numbers.below(4) == 0;
            if !self.step(grid, block, warp, (parameters, memory), &mut pauses)? {
                continue;
            }
            fruitless = 0;
            there.iter_mut().flat_map(|block| &mut block.warps).for_each(|warp| warp.waits = false);
            let ended = |block: &mut Block| block.warps.iter().all(|warp| warp.stop == Some(Stop::End));
            let ended = there.extract_if(.., ended);
            spare.extend(ended.flat_map(|block| block.warps).map(|warp| warp.registers));
        }
    }

    fn block(
        &self,
        shape: ClusterShape,
        threads: std::ops::Range<u32>,
        rank: usize,
        spare: &mut Vec<Registers>,
    ) -> Block {
        let all: Vec<u32> = threads.collect();
        let warps = all.chunks(LANES).map(|indices| Warp {
            threads: indices.iter().map(|&index| Thread::new(shape, index)).collect(),
            stops: vec![None; indices.len()],
            registers: spare.pop().map_or_else(
                || Registers::new(self.registers),
                |mut registers| {
                    registers.forget();
                    registers
                },
            ),
            waits: false,
            stop: None,
        });
        let shared = Shared::new(shape.in_block * shape.cluster as usize);
        let each = shape.threads.div_ceil(32) as usize;
        Block { warps: warps.collect(), shared, transactions: Transactions::default(), rank, each }
    }

    /// Runs the threads of a warp; returns whether any reached a synchronization or its end.
    fn step(
        &self,
        grid: Grid,
        block: &mut Block,
        warp: usize,
        (parameters, memory): (&[u8], &mut Memory),
        pauses: &mut impl FnMut() -> bool,
    ) -> Result<bool, Exchanged> {
        let Block { warps, shared, transactions, each, .. } = block;
        let all = &mut warps[warp];
        let Warp { threads, stops, registers, waits, .. } = all;
        let mut spaces = Spaces { parameters, memory, shared, transactions };
        let mut came = false;
        let mut of_all = None;
        let at = threads[0].at;
        let is_one = stops.iter().all(Option::is_none) && threads.iter().all(|thread| thread.at == at);
        if grid.together && is_one {
            // In an adversarial order, other warps may run between a shuffle and the next line.
            match self.together(threads, registers, &mut spaces, grid.schedule.seed.is_none()) {
                Together::Apart(accesses) => of_all = Some(accesses),
                Together::Back => {
                    *waits = true;
                    return Ok(false);
                }
                Together::Exchanged => return Err(Exchanged),
            }
            spaces.memory.forget_accesses();
        }
        let running = threads.iter_mut().zip(stops.iter_mut()).enumerate();
        for (lane, (thread, stop)) in running.filter(|(_, (_, stop))| stop.is_none()) {
            match self.thread(thread, (registers, lane), &mut spaces, pauses) {
                Stop::Pause => *waits = true,
                other => {
                    *stop = Some(other);
                    came = true;
                }
            }
        }
        if of_all.is_some_and(|before| before.are_exchanged_with(memory.accesses())) {
            return Err(Exchanged);
        }
        let first = all.stops[0];
        let Some(stop) = first.filter(|_| all.stops.iter().all(Option::is_some)) else {
            return Ok(came);
        };
        let same = all.stops.iter().all(|other| *other == first);
        assert!(same, "threads of a warp that part at a barrier or a shuffle");
        all.waits = false;
        match stop {
            Stop::Shuffle(at) => {
                assert_eq!(all.threads.len(), LANES, "a warp that is not whole");
                self.exchange(self.shuffle(at), &mut all.registers);
                all.stops.fill(None);
            }
            Stop::Warp(_) => {
                let first = all.threads[0].number();
                shared.barrier_of(first..first + all.threads.len() as u32);
                all.stops.fill(None);
            }
            stop => all.stop = Some(stop),
        }
        // The warps of the block within its cluster, then all of the cluster.
        let of_block = warp / *each * *each..(warp / *each * *each + *each).min(warps.len());
        let all = 0..warps.len();
        for (of, is_cluster) in [(of_block, false), (all.clone(), true)] {
            let threads = of.start as u32 * 32..of.end as u32 * 32;
            let of = &mut warps[of];
            let stop = of[0].stop;
            if of.iter().any(|warp| warp.stop.is_none()) {
                break;
            }
            assert!(of.iter().all(|warp| warp.stop == stop), "warps of a block that part at a barrier");
            match stop {
                Some(Stop::Barrier(_)) if !is_cluster && all.len() > *each => shared.barrier_of(threads),
                Some(Stop::Barrier(_)) if !is_cluster => shared.barrier(),
                Some(Stop::ClusterBarrier(_)) if is_cluster => {
                    transactions.meet();
                    shared.barrier();
                }
                _ => continue,
            }
            if let Some(Stop::Barrier(at)) = stop {
                self.vote(at - 1, of);
            }
            for warp in of {
                warp.stop = None;
                warp.stops.fill(None);
            }
        }
        Ok(true)
    }

    /// Gives the threads of a block, which are all at the barrier in this line, whether any of them has a value other than 0.
    fn vote(&self, at: usize, warps: &mut [Warp]) {
        let Action::Barrier(Some([result, value])) = self.lines[at].action else { return };
        let has_value =
            |warp: &Warp| (0..warp.threads.len()).any(|lane| warp.registers.get(value, lane) != 0);
        let any = warps.iter().any(has_value);
        for warp in warps {
            (0..warp.threads.len()).for_each(|lane| warp.registers.set(result, lane, any.into()));
        }
    }

    /// Exchanges the values of a warp's threads, which are all at this shuffle.
    pub(super) fn exchange(&self, shuffle: &Shuffle, registers: &mut Registers) {
        let values = *registers.get_all(shuffle.value);
        let lanes: [u64; LANES] = match shuffle.which {
            Source::Register(register) => *registers.get_all(register),
            Source::Immediate(bits) => [bits; LANES],
            other => panic!("a lane of {other:?}"),
        };
        let results = std::array::from_fn(|index| {
            let which = lanes[index] as usize;
            assert!(which < LANES, "lane {which}");
            let from = match shuffle.mode {
                ShuffleMode::Down if index + which >= LANES => index,
                ShuffleMode::Down => index + which,
                ShuffleMode::Butterfly => index ^ which,
                ShuffleMode::Index => (index & shuffle.mask) | (which & !shuffle.mask),
                ShuffleMode::Any => return values.iter().any(|value| *value != 0).into(),
            };
            values[from]
        });
        registers.set_all(shuffle.result, results);
    }
}
