//! The work of one burst on a range of neurons: sum the input, update the touched neurons.
//!
//! A range owns its accumulators and the state of its neurons. It reads all fired rows, but only the part of each row that
//! ends in the range: rows are sorted by target. So ranges share nothing that is written, need no atomic operations, and
//! their number does not change the result.

use std::ops::Range;

use super::super::backend::{BurstCounts, Injection};
use super::super::network::{Network, SCALE};
use super::super::neurons::NeuronParameters;
use super::super::state::{NeuronState, Spike};
use super::super::synapses::INHIBITORY;
use super::dynamics::{Outcome, update};

/// Rows that are asked for ahead of the one that is read, and synapses of each at most.
const ROWS_AHEAD: usize = 4;
const MAX_PREFETCHED: usize = 256;

/// Steps from the expected position of a target before the search halves the row.
const STEPS: usize = 12;

/// Returns the expected position of the first target from `id` on in a row of evenly spread targets.
#[inline(always)]
fn guess(length: usize, id: u32, neurons: usize) -> usize {
    (length as u64 * u64::from(id) / neurons as u64) as usize
}

/// Returns the position of the first target from `id` on in a sorted row.
///
/// It is near the expected position where targets are evenly spread, so a few neighbours are read, and not the whole row.
#[inline(always)]
fn first_from(targets: &[u32], id: u32, neurons: usize) -> usize {
    let before = |target: &u32| target & !INHIBITORY < id;
    let mut at = guess(targets.len(), id, neurons);
    for _ in 0..STEPS {
        if at > 0 && !before(&targets[at - 1]) {
            at -= 1;
        } else if at < targets.len() && before(&targets[at]) {
            at += 1;
        } else {
            return at;
        }
    }
    targets.partition_point(before)
}

/// Asks for the cache lines of a slice.
#[inline(always)]
fn prefetch<T>(slice: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in slice.iter().step_by(64 / size_of::<T>()) {
        // SAFETY: a prefetch accesses no memory, as far as the program can see; every x86-64 processor has it.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                std::ptr::from_ref(line).cast(),
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slice;
}

/// An integer type in which input is summed. Sums wrap: a final sum that fits is right whatever the order.
pub(super) trait Sum: Copy + Send + 'static {
    const ZERO: Self;
    fn add(&mut self, thousandths: i64);
    fn add_narrow(&mut self, thousandths: i32);
    fn to_f32(self) -> f32;
}

impl Sum for i32 {
    const ZERO: i32 = 0;
    #[inline(always)]
    fn add(&mut self, thousandths: i64) {
        *self = self.wrapping_add(thousandths as i32);
    }
    #[inline(always)]
    fn add_narrow(&mut self, thousandths: i32) {
        *self = self.wrapping_add(thousandths);
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self as f32
    }
}

impl Sum for i64 {
    const ZERO: i64 = 0;
    #[inline(always)]
    fn add(&mut self, thousandths: i64) {
        *self = self.wrapping_add(thousandths);
    }
    #[inline(always)]
    fn add_narrow(&mut self, thousandths: i32) {
        *self = self.wrapping_add(i64::from(thousandths));
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self as f32
    }
}

/// The inputs of a burst that all ranges read.
pub(super) struct BurstInput<'a> {
    pub network: &'a Network,
    pub parameters: &'a [NeuronParameters],
    pub weights: &'a [u16],
    /// The spikes of the burst before.
    pub fired: &'a [Spike],
    /// Sorted by id.
    pub injections: &'a [Injection],
    pub key: u32,
    pub dense: bool,
}

/// The memory of one range between bursts. All sums are zero and nothing is touched outside of a burst.
pub(super) struct RangeWork {
    pub ids: Range<u32>,
    narrow: Vec<i32>,
    wide: Vec<i64>,
    /// One bit per neuron: it is a candidate of this burst.
    touched: Vec<u64>,
    /// The spikes of the last burst, ascending.
    pub fired: Vec<Spike>,
    pub counts: BurstCounts,
}

impl RangeWork {
    pub(super) fn new(ids: Range<u32>) -> RangeWork {
        let touched = vec![0; ids.len().div_ceil(64)];
        RangeWork {
            ids,
            narrow: Vec::new(),
            wide: Vec::new(),
            touched,
            fired: Vec::new(),
            counts: BurstCounts::default(),
        }
    }

    /// Runs a burst on this range; `states` are the states of its neurons.
    pub(super) fn run(&mut self, input: &BurstInput, states: &mut [NeuronState], wide: bool) {
        // Only the accumulators in use take memory.
        if wide {
            self.wide.resize(self.ids.len(), 0);
            let mut sums = std::mem::take(&mut self.wide);
            self.run_with(input, states, &mut sums);
            self.wide = sums;
        } else {
            self.narrow.resize(self.ids.len(), 0);
            let mut sums = std::mem::take(&mut self.narrow);
            self.run_with(input, states, &mut sums);
            self.narrow = sums;
        }
    }

    fn run_with<S: Sum>(&mut self, input: &BurstInput, states: &mut [NeuronState], sums: &mut [S]) {
        self.counts = BurstCounts::default();
        self.fired.clear();
        self.inject(input, sums);
        self.propagate(input, sums);
        if input.dense {
            self.touch_all();
        }
        let own = &input.parameters[self.ids.start as usize..self.ids.end as usize];
        self.update(own, input.key, states, sums);
    }

    fn inject<S: Sum>(&mut self, input: &BurstInput, sums: &mut [S]) {
        let first = input.injections.partition_point(|injection| injection.id < self.ids.start);
        for injection in &input.injections[first..] {
            if injection.id >= self.ids.end {
                break;
            }
            let at = (injection.id - self.ids.start) as usize;
            sums[at].add(injection.thousandths);
            self.touched[at / 64] |= 1 << (at % 64);
            self.counts.injections += 1;
        }
    }

    fn propagate<S: Sum>(&mut self, input: &BurstInput, sums: &mut [S]) {
        let synapses = input.network.synapses();
        let whole = self.ids == input.network.owned();
        const SPECIAL: u16 = NeuronParameters::SHARES | NeuronParameters::POTENTIAL_DRIVEN;
        for (at, spike) in input.fired.iter().enumerate() {
            if let Some(ahead) = input.fired.get(at + ROWS_AHEAD) {
                self.prefetch(input, ahead.id);
            }
            let mut row = synapses.row(spike.id);
            if !whole {
                let targets = &synapses.targets()[row.clone()];
                let start = first_from(targets, self.ids.start, input.network.len());
                let end = first_from(targets, self.ids.end, input.network.len());
                row = row.start + start..row.start + end;
            }
            let (targets, weights) = (&synapses.targets()[row.clone()], &input.weights[row]);
            self.counts.events += targets.len() as u64;
            if input.parameters[spike.id as usize].flags & SPECIAL == 0 {
                for (&target, &word) in targets.iter().zip(weights) {
                    let product = i32::from(word & 255) * i32::from(word >> 8) * SCALE as i32;
                    self.add(sums, target, signed(product, target), S::add_narrow);
                }
            } else {
                self.propagate_special(input, spike, targets, weights, sums);
            }
        }
    }

    /// Asks for the part of a row that ends in this range, about: rows are at random addresses of large memory.
    #[inline(always)]
    fn prefetch(&self, input: &BurstInput, source: u32) {
        let row = input.network.synapses().row(source);
        let neurons = input.network.len().max(1);
        let part = |id: u32| row.start + guess(row.len(), id, neurons);
        let (start, end) = (part(self.ids.start), part(self.ids.end));
        let end = end.min(start + MAX_PREFETCHED);
        prefetch(&input.network.synapses().targets()[start..end.max(start)]);
        prefetch(&input.weights[start..end.max(start)]);
    }

    /// Propagates a spike of an area that shares its contributions or takes the PSP from the potential.
    fn propagate_special<S: Sum>(
        &mut self,
        input: &BurstInput,
        spike: &Spike,
        targets: &[u32],
        weights: &[u16],
        sums: &mut [S],
    ) {
        let parameters = &input.parameters[spike.id as usize];
        let driven = parameters.has(NeuronParameters::POTENTIAL_DRIVEN);
        let driven_psp = spike.potential.round_ties_even().clamp(0.0, 255.0) as i64;
        let divisor = match input.network.out_degrees() {
            Some(degrees) if parameters.has(NeuronParameters::SHARES) => degrees[spike.id as usize] as i64,
            _ => 1,
        };
        for (&target, &word) in targets.iter().zip(weights) {
            let psp = if driven { driven_psp } else { i64::from(word >> 8) };
            // Division of integers truncates toward zero; the sign does not change the magnitude.
            let shared = i64::from(word & 255) * psp * SCALE / divisor;
            self.add(sums, target, signed(shared as i32, target), S::add_narrow);
        }
    }

    #[inline(always)]
    fn add<S: Sum>(&mut self, sums: &mut [S], target: u32, thousandths: i32, add: fn(&mut S, i32)) {
        let at = ((target & !INHIBITORY) - self.ids.start) as usize;
        add(&mut sums[at], thousandths);
        self.touched[at / 64] |= 1 << (at % 64);
    }

    fn touch_all(&mut self) {
        self.touched.fill(u64::MAX);
        let rest = self.ids.len() % 64;
        if let (Some(last), true) = (self.touched.last_mut(), rest != 0) {
            *last = (1 << rest) - 1;
        }
    }

    /// Updates the touched neurons; `parameters` are those of the range.
    fn update<S: Sum>(
        &mut self,
        parameters: &[NeuronParameters],
        key: u32,
        states: &mut [NeuronState],
        sums: &mut [S],
    ) {
        for (word_at, word) in self.touched.iter_mut().enumerate() {
            let mut bits = std::mem::take(word);
            self.counts.candidates += u64::from(bits.count_ones());
            while bits != 0 {
                let at = word_at * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let sum = std::mem::replace(&mut sums[at], S::ZERO);
                // Two roundings: integer to f32, then the division.
                let x = sum.to_f32() / SCALE as f32;
                let id = self.ids.start + at as u32;
                match update(&parameters[at], &mut states[at], x, id, key) {
                    Outcome::Fired(potential) => self.fired.push(Spike { id, potential }),
                    Outcome::Blocked => self.counts.blocked += 1,
                    Outcome::Quiet => {}
                }
            }
        }
    }
}

/// Gives a magnitude the sign of the synapse: the top bit of the target marks inhibition.
#[inline(always)]
fn signed(magnitude: i32, target: u32) -> i32 {
    let mask = target as i32 >> 31;
    (magnitude ^ mask).wrapping_sub(mask)
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::super::super::neurons::check_ids;
    use super::*;
    use crate::burst::{MAX_NEURONS, Neurons, SynapseArrays};

    /// A network that large takes 100 GB, so the parts of a burst run on a range of its last neurons.
    #[test]
    fn the_last_neurons_of_the_largest_network_run_as_the_first_do() {
        const COUNT: u32 = 70;
        let none = SynapseArrays { source: &[], target: &[], weight: &[], psp: &[], kind: &[] };
        let mut neurons = Neurons::new(COUNT as usize);
        neurons.threshold.fill(5.0);
        neurons.refractory[69] = 3;
        let network = Network::from_arrays(neurons, &none).unwrap();
        let run = |first: u32| {
            let injections = [0, 63, 64, 69].map(|at| Injection { id: first + at, thousandths: 4000 });
            let input = BurstInput {
                network: &network,
                parameters: network.parameters(),
                weights: &[],
                fired: &[],
                injections: &injections,
                key: 9,
                dense: false,
            };
            let mut work = RangeWork::new(first..first + COUNT);
            let mut states = [NeuronState::zeroed(); COUNT as usize];
            let mut sums = [0i32; COUNT as usize];
            work.inject(&input, &mut sums);
            let targets =
                [first, (first + 1) | INHIBITORY, first + 63, (first + 64) | INHIBITORY, first + 69];
            let source = Spike { id: 0, potential: 1.0 };
            work.propagate_special(&input, &source, &targets, &[2 | 3 << 8; 5], &mut sums);
            work.update(input.parameters, input.key, &mut states, &mut sums);
            let fired: Vec<_> = work.fired.iter().map(|spike| (spike.id - first, spike.potential)).collect();
            (fired, states, work.counts)
        };
        let (fired, states, counts) = run(MAX_NEURONS as u32 - COUNT);
        assert_eq!(fired, [(0, 10.0), (63, 10.0), (69, 10.0)]);
        assert_eq!((states[69].refractory_left, states[64].potential < -1.0), (3, true));
        assert_eq!((counts.injections, counts.candidates), (4, 5));
        assert_eq!((fired, states, counts), run(0));

        let last = MAX_NEURONS as u32 - 1;
        let row = [0, 7, last - 1, last | INHIBITORY, last];
        for (id, wanted) in [(0, 0), (1, 1), (last - 1, 2), (last, 3), (last + 1, 5)] {
            assert_eq!(first_from(&row, id, MAX_NEURONS), wanted, "{id}");
        }
        check_ids([0, last].into_iter(), MAX_NEURONS).unwrap();
        let error = check_ids([last + 1].into_iter(), MAX_NEURONS).unwrap_err().to_string();
        assert!(error.contains("id 2147483648; wanted an id below 2147483648"), "{error}");
    }

    #[test]
    fn the_first_target_from_an_id_is_found_in_any_row() {
        let rows: [Vec<u32>; 6] = [
            Vec::new(),
            vec![7],
            vec![3; 50],
            (0..100).collect(),
            (0..100).map(|at| (at * at / 20) | if at % 3 == 0 { INHIBITORY } else { 0 }).collect(),
            (0..90).map(|at| if at < 80 { 0 } else { 410 + at }).collect(),
        ];
        for row in rows {
            for id in 0..=500 {
                let wanted = row.iter().filter(|target| **target & !INHIBITORY < id).count();
                assert_eq!(first_from(&row, id, 500), wanted, "{id} in {row:?}");
            }
        }
    }
}
