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
        self.update(input, states, sums);
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
        for spike in input.fired {
            let mut row = synapses.row(spike.id);
            if !whole {
                let targets = &synapses.targets()[row.clone()];
                let start = targets.partition_point(|target| target & !INHIBITORY < self.ids.start);
                let length = targets[start..].partition_point(|target| target & !INHIBITORY < self.ids.end);
                row = row.start + start..row.start + start + length;
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

    fn update<S: Sum>(&mut self, input: &BurstInput, states: &mut [NeuronState], sums: &mut [S]) {
        let parameters = &input.parameters[self.ids.start as usize..self.ids.end as usize];
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
                match update(&parameters[at], &mut states[at], x, id, input.key) {
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
