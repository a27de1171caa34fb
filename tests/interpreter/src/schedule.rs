//! The order in which the threads of an interpreted grid run.
//!
//! A device runs some blocks at once, and their warps in any order. Blocks that do not wait for each other
//! run in sequence. For others, a seed generates an adversarial order that a device could have: some blocks
//! advance as far as they can, some are delayed until nothing else can run, and a thread may pause between
//! any two accesses that other blocks see. A kernel whose threads all stop is wrong.

use super::kernel::{ClusterShape, Kernel, ShuffleMode, Source, Stop, Thread};
use super::memory::{Memory, Shared};

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

/// Threads of a block that run together, each with the point at which it waits for the others.
struct Warp {
    threads: Vec<(Thread, Option<Stop>)>,
    /// It paused, and nothing has happened elsewhere since.
    waits: bool,
    stop: Option<Stop>,
}

struct Block {
    warps: Vec<Warp>,
    shared: Shared,
    /// Blocks of higher rank run first.
    rank: usize,
    /// Warps of a block of the cluster.
    each: usize,
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
        let mut numbers =
            Numbers(schedule.seed.map_or(1, |seed| (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        assert!(blocks % cluster == 0, "{blocks} blocks in clusters of {cluster}");
        assert!(self.is_dynamic || dynamic == 0, "dynamic shared memory that the text does not use");
        assert_eq!(cluster > 1, self.has_clusters, "clusters of {cluster}");
        let in_block = self.shared_in_block(dynamic);
        // A cluster is a block of all its threads and memory.
        // Threads that do not synchronize need not coexist.
        let at_once = if self.meets() { threads * cluster } else { 1 };
        let of_cluster =
            move |first: u32| (0..threads * cluster).step_by(at_once as usize).map(move |at| (first, at));
        let mut next = (0..blocks / cluster).flat_map(of_cluster);
        let mut there: Vec<Block> = Vec::new();
        let mut fruitless = 0;
        loop {
            while there.len() < schedule.resident {
                let Some((block, first)) = next.next() else { break };
                let rank = numbers.below(1 << 20);
                let shape = ClusterShape { first: block * cluster, cluster, threads, in_block };
                there.push(self.block(shape, first..first + at_once, rank));
            }
            if there.is_empty() {
                return;
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
            if !self.step(block, warp, parameters, memory, &mut pauses) {
                continue;
            }
            fruitless = 0;
            there.iter_mut().flat_map(|block| &mut block.warps).for_each(|warp| warp.waits = false);
            there.retain(|block| block.warps.iter().any(|warp| warp.stop != Some(Stop::End)));
        }
    }

    fn block(&self, shape: ClusterShape, threads: std::ops::Range<u32>, rank: usize) -> Block {
        let all: Vec<u32> = threads.collect();
        let warps = all.chunks(32).map(|indices| Warp {
            threads: indices.iter().map(|&index| (self.begin(shape, index), None)).collect(),
            waits: false,
            stop: None,
        });
        let shared = Shared::new(shape.in_block * shape.cluster as usize);
        Block { warps: warps.collect(), shared, rank, each: shape.threads.div_ceil(32) as usize }
    }

    /// Runs the threads of a warp; returns whether any reached a synchronization or its end.
    fn step(
        &self,
        block: &mut Block,
        warp: usize,
        parameters: &[u8],
        memory: &mut Memory,
        pauses: &mut impl FnMut() -> bool,
    ) -> bool {
        let Block { warps, shared, each, .. } = block;
        let all = &mut warps[warp];
        let mut came = false;
        for (thread, stop) in all.threads.iter_mut().filter(|(_, stop)| stop.is_none()) {
            match self.thread(thread, parameters, memory, shared, pauses) {
                Stop::Pause => all.waits = true,
                other => {
                    *stop = Some(other);
                    came = true;
                }
            }
        }
        let first = all.threads[0].1;
        let Some(stop) = first.filter(|_| all.threads.iter().all(|(_, stop)| stop.is_some())) else {
            return came;
        };
        let same = all.threads.iter().all(|(_, other)| *other == first);
        assert!(same, "threads of a warp that part at a barrier or a shuffle");
        all.waits = false;
        match stop {
            Stop::Shuffle(at) => {
                self.exchange(at, &mut all.threads);
                all.threads.iter_mut().for_each(|(_, stop)| *stop = None);
            }
            Stop::Warp(_) => {
                let first = all.threads[0].0.number();
                shared.barrier_of(first..first + all.threads.len() as u32);
                all.threads.iter_mut().for_each(|(_, stop)| *stop = None);
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
                Some(Stop::ClusterBarrier(_)) if is_cluster => shared.barrier(),
                _ => continue,
            }
            for warp in of {
                warp.stop = None;
                warp.threads.iter_mut().for_each(|(_, stop)| *stop = None);
            }
        }
        true
    }

    /// Exchanges the values of a warp's threads, which are all after the shuffle in this line.
    fn exchange(&self, at: usize, all: &mut [(Thread, Option<Stop>)]) {
        assert_eq!(all.len(), 32, "a warp that is not whole");
        let shuffle = self.shuffle(at);
        let read = |thread: &Thread, register: usize| {
            thread.registers[register].expect("a register that was written")
        };
        let values: Vec<u64> = all.iter().map(|(thread, _)| read(thread, shuffle.value)).collect();
        for (index, (thread, _)) in all.iter_mut().enumerate() {
            let which = match &shuffle.which {
                Source::Register(register) => read(thread, *register),
                Source::Immediate(bits) => *bits,
                other => panic!("a lane of {other:?}"),
            } as usize;
            assert!(which < 32, "lane {which}");
            let from = match shuffle.mode {
                ShuffleMode::Down if index + which >= 32 => index,
                ShuffleMode::Down => index + which,
                ShuffleMode::Butterfly => index ^ which,
                ShuffleMode::Index => (index & shuffle.mask) | (which & !shuffle.mask),
            };
            thread.registers[shuffle.result] = Some(values[from]);
        }
    }
}
