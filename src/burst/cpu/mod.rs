//! The threaded CPU backend, the reference of all others.
//!
//! Each thread takes ranges of neurons ([`range`]) and does the whole burst for them, so a burst starts its threads once
//! and has no step at which they wait for each other.

mod dynamics;
mod range;

use std::sync::{Arc, Mutex};

use self::range::{BurstInput, RangeWork};
use super::backend::{Backend, BurstCounts, BurstResult, Injection, WeightChange};
use super::cut::balanced_ranges;
use super::draw::burst_key;
use super::network::{Accumulator, Network};
use super::neurons::{NeuronParameters, check_ids};
use super::state::{NetworkState, NeuronState, Spike, check_spikes};
use crate::threads::{run_on_threads, thread_count};
use crate::{Error, Result};

/// A thread is worth starting for this much work, counted in events.
const EVENTS_OF_A_THREAD: usize = 8192;

/// The CPU backend.
///
/// ```
/// use std::sync::Arc;
/// use selvedge::burst::{Backend, Cpu, Injection, Network, Neurons, SynapseArrays};
///
/// # fn main() -> selvedge::Result<()> {
/// let synapses = SynapseArrays { source: &[0], target: &[1], weight: &[6], psp: &[10], kind: &[0] };
/// let network = Arc::new(Network::from_arrays(Neurons::new(2), &synapses)?);
/// let mut cpu = Cpu::new();
/// cpu.load(&network, 0)?;
/// cpu.inject(&[Injection::new(0, 2.0)?])?;
/// assert_eq!(cpu.run_burst()?.fired[0].id, 0);
/// // The spike arrives one burst later: 6 * 10.
/// assert_eq!(cpu.run_burst()?.fired[0].potential, 60.0);
/// # Ok(())
/// # }
/// ```
pub struct Cpu {
    threads: usize,
    loaded: Option<Loaded>,
}

struct Loaded {
    network: Arc<Network>,
    parameters: Vec<NeuronParameters>,
    states: Vec<NeuronState>,
    weights: Vec<u16>,
    ranges: Vec<RangeWork>,
    accumulator: Accumulator,
    plastic: bool,
    dense: bool,
    seed: u32,
    burst: u64,
    fired: Vec<Spike>,
    staged: Vec<Injection>,
}

impl Cpu {
    /// Returns a backend that uses all processors.
    pub fn new() -> Cpu {
        Cpu::with_threads(thread_count())
    }

    /// Returns a backend that uses up to `threads` threads; 0 counts as 1. The number does not change any result.
    pub fn with_threads(threads: usize) -> Cpu {
        Cpu { threads: threads.max(1), loaded: None }
    }

    fn loaded(&mut self) -> Result<&mut Loaded> {
        self.loaded.as_mut().ok_or_else(|| {
            Error::invalid("the CPU backend", "no network", "a network loaded before the call")
        })
    }
}

impl Default for Cpu {
    fn default() -> Cpu {
        Cpu::new()
    }
}

impl Backend for Cpu {
    fn name(&self) -> String {
        format!("CPU, {} thread{}", self.threads, if self.threads == 1 { "" } else { "s" })
    }

    fn load(&mut self, network: &Arc<Network>, seed: u32) -> Result<()> {
        let accumulator = network.accumulator(false);
        log_accumulator(network, accumulator, false);
        self.loaded = Some(Loaded {
            parameters: network.parameters().to_vec(),
            states: NetworkState::at_rest(network, seed).neurons,
            weights: network.synapses().weights().to_vec(),
            ranges: balanced_ranges(network, self.threads).into_iter().map(RangeWork::new).collect(),
            accumulator,
            plastic: false,
            dense: false,
            seed,
            burst: 0,
            fired: Vec::new(),
            staged: Vec::new(),
            network: network.clone(),
        });
        Ok(())
    }

    fn inject(&mut self, injections: &[Injection]) -> Result<()> {
        let loaded = self.loaded()?;
        check_ids(injections.iter().map(|injection| injection.id), loaded.states.len())?;
        loaded.network.check_in_use(injections.iter().map(|injection| injection.id))?;
        loaded.staged.extend_from_slice(injections);
        Ok(())
    }

    fn run_burst(&mut self) -> Result<BurstResult> {
        let threads = self.threads;
        Ok(self.loaded()?.run_burst(threads))
    }

    fn set_dense(&mut self, dense: bool) -> Result<()> {
        self.loaded()?.dense = dense;
        Ok(())
    }

    fn set_fired(&mut self, fired: &[Spike]) -> Result<()> {
        let loaded = self.loaded()?;
        check_spikes(fired, loaded.states.len())?;
        loaded.fired.clear();
        loaded.fired.extend_from_slice(fired);
        Ok(())
    }

    fn state(&mut self) -> Result<NetworkState> {
        let loaded = self.loaded()?;
        Ok(NetworkState {
            seed: loaded.seed,
            burst: loaded.burst,
            neurons: loaded.states.clone(),
            fired: loaded.fired.clone(),
        })
    }

    fn potentials(&mut self, ids: &[u32]) -> Result<Vec<f32>> {
        let loaded = self.loaded()?;
        check_ids(ids.iter().copied(), loaded.states.len())?;
        Ok(ids.iter().map(|&id| loaded.states[id as usize].potential).collect())
    }

    fn set_state(&mut self, state: &NetworkState) -> Result<()> {
        let loaded = self.loaded()?;
        state.check(loaded.states.len())?;
        loaded.states.copy_from_slice(&state.neurons);
        loaded.fired.clone_from(&state.fired);
        (loaded.seed, loaded.burst) = (state.seed, state.burst);
        Ok(())
    }

    fn set_parameters(&mut self, changes: &[(u32, NeuronParameters)]) -> Result<()> {
        let loaded = self.loaded()?;
        check_ids(changes.iter().map(|change| change.0), loaded.parameters.len())?;
        for &(id, parameters) in changes {
            loaded.parameters[id as usize] = parameters;
        }
        Ok(())
    }

    fn weights(&mut self) -> Result<Vec<u16>> {
        Ok(self.loaded()?.weights.clone())
    }

    fn set_weights(&mut self, changes: &[WeightChange]) -> Result<()> {
        let loaded = self.loaded()?;
        let count = loaded.weights.len();
        if let Some(bad) = changes.iter().find(|change| change.synapse >= count as u64) {
            let found = format!("synapse {}", bad.synapse);
            return Err(Error::invalid("a change of weights", found, format!("an index below {count}")));
        }
        if !loaded.plastic && !changes.is_empty() {
            loaded.plastic = true;
            loaded.accumulator = loaded.network.accumulator(true);
            log_accumulator(&loaded.network, loaded.accumulator, true);
        }
        for change in changes {
            let word = &mut loaded.weights[change.synapse as usize];
            *word = *word & 0xff00 | u16::from(change.weight);
        }
        Ok(())
    }
}

impl Loaded {
    fn run_burst(&mut self, threads: usize) -> BurstResult {
        self.burst += 1;
        if !self.staged.is_sorted_by_key(|injection| injection.id) {
            self.staged.sort_unstable_by_key(|injection| injection.id);
        }
        let wide = match self.accumulator {
            Accumulator::Bits64 => true,
            Accumulator::Bits32 { reserve } => !self.injections_fit(reserve),
        };
        let input = BurstInput {
            network: &self.network,
            parameters: &self.parameters,
            weights: &self.weights,
            fired: &self.fired,
            injections: &self.staged,
            key: burst_key(self.seed, self.burst),
            dense: self.dense,
        };
        let rows = self.fired.iter().map(|spike| self.network.synapses().row(spike.id).len()).sum::<usize>();
        let work = rows + self.staged.len() + if self.dense { self.states.len() } else { 0 };
        let threads = threads.min(work / EVENTS_OF_A_THREAD + 1);

        let owned = self.network.owned();
        let mut states = &mut self.states[owned.start as usize..owned.end as usize];
        let mut tasks = Vec::with_capacity(self.ranges.len());
        for range in &mut self.ranges {
            let (own, rest) = states.split_at_mut(range.ids.len());
            states = rest;
            tasks.push((range, own));
        }
        let tasks = Mutex::new(tasks);
        run_on_threads(threads, &|| {
            loop {
                let task = tasks.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
                let Some((range, states)) = task else { return };
                range.run(&input, states, wide);
            }
        });

        self.staged.clear();
        self.fired.clear();
        let mut counts = BurstCounts::default();
        for range in &self.ranges {
            self.fired.extend_from_slice(&range.fired);
            counts += range.counts;
        }
        if self.dense {
            // Slots that are not in use are updated too, which changes nothing, but are no candidates.
            counts.candidates -= self.network.removed_of_owned();
        }
        BurstResult { burst: self.burst, fired: self.fired.clone(), counts }
    }

    /// Returns true if the injections into each neuron sum to at most `reserve`. The staged injections are sorted.
    fn injections_fit(&self, reserve: u32) -> bool {
        let (mut id, mut sum) = (u32::MAX, 0u64);
        self.staged.iter().all(|injection| {
            if injection.id != id {
                (id, sum) = (injection.id, 0);
            }
            sum = sum.saturating_add(injection.thousandths.unsigned_abs());
            sum <= u64::from(reserve)
        })
    }
}

/// Logs which accumulator was chosen, and why.
fn log_accumulator(network: &Network, accumulator: Accumulator, plastic: bool) {
    let largest = network.largest_input(plastic);
    let weights = if plastic { "with plastic weights " } else { "" };
    match accumulator {
        Accumulator::Bits32 { reserve } => log::info!(
            "burst: 32-bit accumulators: {weights}the largest input is {largest} thousandths, which leaves {reserve} for \
             injections; bursts with larger injections use 64 bits"
        ),
        Accumulator::Bits64 => log::info!(
            "burst: 64-bit accumulators: {weights}the largest input is {largest} thousandths, which can overflow 32 bits"
        ),
    }
}
