//! Random programs of collective operations, compared with a plain computation on the values of all ranks.

use selvedge::collective::{Communicator, ReduceOp};

use super::with_ranks;

/// A linear congruential generator, the same on every rank.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    AllReduce(ReduceOp),
    Reduce(ReduceOp, usize),
    Broadcast(usize),
    /// Gathers all, and keeps the values of the rank after this one.
    AllGather,
    ReduceScatter(ReduceOp),
    AllToAll,
    Shift(usize),
    Barrier,
}

fn step(random: &mut Random, world_size: usize) -> Step {
    let op = ReduceOp::ALL[random.below(5)];
    let rank = random.below(world_size);
    match random.below(8) {
        0 => Step::AllReduce(op),
        1 => Step::Reduce(op, rank),
        2 => Step::Broadcast(rank),
        3 => Step::AllGather,
        4 => Step::ReduceScatter(op),
        5 => Step::AllToAll,
        6 => Step::Shift(1 + random.below(world_size.max(2) - 1)),
        _ => Step::Barrier,
    }
}

fn reduce(op: ReduceOp, values: impl Iterator<Item = i32> + Clone) -> i32 {
    let ranks = values.clone().count() as i32;
    let sum = || values.clone().fold(0i32, i32::wrapping_add);
    match op {
        ReduceOp::Sum => sum(),
        ReduceOp::Mean => sum() / ranks,
        ReduceOp::Product => values.clone().fold(1, i32::wrapping_mul),
        ReduceOp::Min => values.clone().min().unwrap(),
        ReduceOp::Max => values.clone().max().unwrap(),
    }
}

/// Runs a step as a rank does. The values of a rank are as many as a multiple of the ranks.
fn run(step: Step, rank: &Communicator, values: &mut Vec<i32>) {
    let (own, size, length) = (rank.rank(), rank.world_size(), values.len());
    match step {
        Step::AllReduce(op) => rank.all_reduce(values, op).unwrap(),
        Step::Reduce(op, root) => {
            let mut reduced = values.clone();
            rank.reduce(values, (own == root).then_some(&mut reduced[..]), root, op).unwrap();
            *values = reduced;
        }
        Step::Broadcast(root) => rank.broadcast(values, root).unwrap(),
        Step::AllGather => {
            let mut gathered = vec![0; size * length];
            rank.all_gather(values, &mut gathered).unwrap();
            *values = gathered[(own + 1) % size * length..][..length].to_vec();
        }
        Step::ReduceScatter(op) => {
            let mut reduced = vec![0; length / size];
            rank.reduce_scatter(values, &mut reduced, op).unwrap();
            values[..length / size].copy_from_slice(&reduced);
        }
        Step::AllToAll => {
            let mut received = vec![0; length];
            rank.all_to_all(values, &mut received).unwrap();
            *values = received;
        }
        Step::Shift(distance) if size > 1 => {
            let mut received = vec![0; length];
            rank.send_receive(values, (own + distance) % size, &mut received, (own + size - distance) % size)
                .unwrap();
            *values = received;
        }
        Step::Shift(_) => {}
        Step::Barrier => rank.barrier().unwrap(),
    }
}

/// Computes what a step does to the values of all ranks.
fn plain(step: Step, all: &mut [Vec<i32>]) {
    let (size, length, before) = (all.len(), all[0].len(), all.to_vec());
    let reduced = |op, at: usize| reduce(op, before.iter().map(move |values| values[at]));
    for (own, values) in all.iter_mut().enumerate() {
        match step {
            Step::AllReduce(op) => *values = (0..length).map(|at| reduced(op, at)).collect(),
            Step::Reduce(op, root) if own == root => {
                *values = (0..length).map(|at| reduced(op, at)).collect()
            }
            Step::Broadcast(root) => *values = before[root].clone(),
            Step::AllGather => *values = before[(own + 1) % size].clone(),
            Step::ReduceScatter(op) => {
                let part = length / size;
                (0..part).for_each(|at| values[at] = reduced(op, own * part + at));
            }
            Step::AllToAll => {
                let part = length / size;
                *values = before.iter().flat_map(|from| from[own * part..][..part].to_vec()).collect();
            }
            Step::Shift(distance) if size > 1 => *values = before[(own + size - distance) % size].clone(),
            Step::Reduce(..) | Step::Shift(_) | Step::Barrier => {}
        }
    }
}

#[test]
fn random_programs_have_the_values_of_a_plain_computation() {
    for seed in 0..24 {
        let mut random = Random(seed);
        let world_size = 1 + random.below(5);
        let length = world_size * [1, 3, 700, 9000][random.below(4)];
        let steps: Vec<Step> = (0..12).map(|_| step(&mut random, world_size)).collect();
        let value =
            |rank: usize, at: usize| ((rank * 7919 + at * 104_729 + seed as usize) % 1000) as i32 - 500;
        let mut wanted: Vec<Vec<i32>> =
            (0..world_size).map(|rank| (0..length).map(|at| value(rank, at)).collect()).collect();
        steps.iter().for_each(|step| plain(*step, &mut wanted));
        let found = with_ranks(world_size, |rank| {
            let mut values = (0..length).map(|at| value(rank.rank(), at)).collect();
            steps.iter().for_each(|step| run(*step, rank, &mut values));
            values
        });
        assert!(found == wanted, "seed {seed}: {world_size} ranks, {length} elements, {steps:?}");
    }
}
