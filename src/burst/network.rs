//! A validated network: neurons, synapses, areas and named populations.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Zeroable;

use super::neurons::{NeuronParameters, Neurons, check_ids};
use super::state::{NetworkState, NeuronState};
use super::synapses::{INHIBITORY, SynapseArrays, Synapses, in_chunks};
use crate::threads::{check_variable, run_on_threads, thread_count};
use crate::{Error, Result};

/// Accumulators count thousandths of a potential.
pub const SCALE: i64 = 1000;

const OPERATION: &str = "a network";

/// Neurons below this count are checked by one thread.
const NEURONS_OF_A_THREAD: usize = 1 << 14;

/// Neurons that share a name and the rules by which their spikes propagate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Area {
    /// The area's name.
    pub name: String,
    /// Divides each contribution of a neuron of this area by the neuron's number of outgoing synapses, toward zero. By
    /// default each synapse carries the full contribution.
    pub shares: bool,
    /// Replaces the PSP of each synapse by the potential at which its source fired, rounded to the nearest integer (ties
    /// to even) and limited to 0..=255.
    pub potential_driven: bool,
}

impl Area {
    /// Returns an area of this name whose neurons contribute fully and with their synapses' PSP.
    pub fn new(name: impl Into<String>) -> Area {
        Area { name: name.into(), ..Area::default() }
    }
}

/// A name for a range of neuron ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Population {
    /// The name, unique in its network.
    pub name: String,
    /// The ids.
    pub ids: Range<u32>,
}

/// The integer type in which a backend sums the input of a neuron.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accumulator {
    /// 32 bits hold every possible sum of synapses, and `reserve` thousandths of injections beside it.
    Bits32 {
        /// The largest sum of injections into one neuron, in thousandths, that still fits.
        reserve: u32,
    },
    /// 64 bits: 32 could overflow.
    Bits64,
}

/// A validated network, ready to be loaded by a [`Backend`](super::Backend).
///
/// ```
/// use selvedge::burst::{Network, Neurons, SynapseArrays};
///
/// # fn main() -> selvedge::Result<()> {
/// let mut neurons = Neurons::new(2);
/// neurons.threshold[1] = 50.0;
/// let synapses = SynapseArrays { source: &[0], target: &[1], weight: &[6], psp: &[10], kind: &[0] };
/// let network = Network::from_arrays(neurons, &synapses)?;
/// assert_eq!((network.len(), network.synapses().len()), (2, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Network {
    neurons: Neurons,
    parameters: Vec<NeuronParameters>,
    synapses: Synapses,
    areas: Vec<Area>,
    populations: Vec<Population>,
    owned: Range<u32>,
    /// The slots that are not in use, ascending.
    removed: Arc<[u32]>,
    /// Outgoing synapses over all shards; present if an area shares.
    out_degrees: Option<Arc<[u64]>>,
    /// The largest possible input of one neuron through its synapses, in thousandths.
    largest_input: u64,
    /// The same once plasticity has raised every weight to 255.
    largest_plastic_input: u64,
}

impl Network {
    /// Builds a network of one area from synapses in any order.
    ///
    /// # Errors
    /// See [`with_areas`](Network::with_areas).
    pub fn from_arrays(neurons: Neurons, synapses: &SynapseArrays) -> Result<Network> {
        let synapses = Synapses::from_arrays(neurons.len(), synapses)?;
        Network::with_areas(neurons, synapses, vec![Area::new("all")])
    }

    /// Builds a network of several areas; [`Neurons::area`] is an index into `areas`. All processors check the arrays.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] or [`Error::InvalidArgument`] for arrays that do not fit each other or hold values out of
    /// range, naming the neuron or synapse and the value, and for a wrong `SELVEDGE_THREADS`.
    pub fn with_areas(neurons: Neurons, synapses: Synapses, areas: Vec<Area>) -> Result<Network> {
        check_variable()?;
        neurons.check_lengths()?;
        if synapses.row_pointers().len() != neurons.len() + 1 {
            let found = synapses.row_pointers().len().saturating_sub(1);
            return Err(Error::LengthMismatch {
                operation: "the rows of a network",
                wanted: neurons.len(),
                found,
            });
        }
        let parameters = checked_parameters(&neurons, &areas, thread_count())?;
        let out_degrees = out_degrees(&areas, &synapses);
        let owned = 0..neurons.len() as u32;
        let populations = Vec::new();
        let mut network = Network {
            neurons,
            parameters,
            synapses,
            areas,
            populations,
            owned,
            removed: Arc::default(),
            out_degrees,
            largest_input: 0,
            largest_plastic_input: 0,
        };
        network.bound_inputs();
        Ok(network)
    }

    /// Names a range of neurons.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the range leaves the network or the name is taken.
    pub fn add_population(&mut self, name: impl Into<String>, ids: Range<u32>) -> Result<()> {
        let name = name.into();
        if ids.start > ids.end || ids.end as usize > self.len() {
            let found = format!("ids {}..{} for population '{name}'", ids.start, ids.end);
            return Err(Error::invalid(OPERATION, found, format!("ids up to {}", self.len())));
        }
        if self.population(&name).is_some() {
            return Err(Error::invalid(OPERATION, format!("a second population '{name}'"), "unique names"));
        }
        self.populations.push(Population { name, ids });
        Ok(())
    }

    /// Returns the ids of a population.
    pub fn population(&self, name: &str) -> Option<Range<u32>> {
        self.populations.iter().find(|population| population.name == name).map(|found| found.ids.clone())
    }

    /// Returns the populations in the order in which they were added.
    pub fn populations(&self) -> &[Population] {
        &self.populations
    }

    /// Returns the number of neurons.
    pub fn len(&self) -> usize {
        self.parameters.len()
    }

    /// Returns true if there are no neurons.
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }

    /// Returns the neurons as they were given.
    pub fn neurons(&self) -> &Neurons {
        &self.neurons
    }

    /// Returns the constants of each neuron, the flags of its area included.
    pub fn parameters(&self) -> &[NeuronParameters] {
        &self.parameters
    }

    /// Returns the synapses: of a shard, those that end in [`owned`](Network::owned).
    pub fn synapses(&self) -> &Synapses {
        &self.synapses
    }

    /// Returns the areas.
    pub fn areas(&self) -> &[Area] {
        &self.areas
    }

    /// Returns the index of the first area of this name.
    pub fn area(&self, name: &str) -> Option<u32> {
        self.areas.iter().position(|area| area.name == name).map(|index| index as u32)
    }

    /// Returns the neurons that a backend of this network updates: all of them, or the range of a shard.
    pub fn owned(&self) -> Range<u32> {
        self.owned.clone()
    }

    /// Returns each neuron's number of outgoing synapses over all shards, present if an area shares contributions.
    pub fn out_degrees(&self) -> Option<&[u64]> {
        self.out_degrees.as_deref()
    }

    /// Chooses the accumulator: 32 bits where no sum of synapses can overflow them, otherwise 64.
    ///
    /// With `plastic` the bound holds for every weight that plasticity could set.
    pub fn accumulator(&self, plastic: bool) -> Accumulator {
        let largest = if plastic { self.largest_plastic_input } else { self.largest_input };
        match (i32::MAX as u64).checked_sub(largest) {
            Some(reserve) => Accumulator::Bits32 { reserve: reserve as u32 },
            None => Accumulator::Bits64,
        }
    }

    /// Returns the largest input, in thousandths, that the synapses of one neuron can sum to.
    pub fn largest_input(&self, plastic: bool) -> u64 {
        if plastic { self.largest_plastic_input } else { self.largest_input }
    }

    /// Returns the constants of a neuron of this network by the parameters that it has now.
    pub(super) fn parameters_of(&self, neurons: &Neurons, id: u32) -> Result<NeuronParameters> {
        let parameters = neurons.parameters_of(id as usize, &format_args!("neuron {id}"))?;
        Ok(match self.is_removed(id) {
            true => NeuronParameters::of_removed(parameters.area),
            false => with_area_flags(parameters, &self.areas),
        })
    }

    /// Returns the slots that are not in use, ascending: neurons that [`Simulation::remove_neurons`] removed.
    ///
    /// [`Simulation::remove_neurons`]: super::Simulation::remove_neurons
    pub fn removed(&self) -> &[u32] {
        &self.removed
    }

    /// Returns true if a slot is not in use.
    pub fn is_removed(&self, id: u32) -> bool {
        self.removed.binary_search(&id).is_ok()
    }

    /// Returns how many of the owned slots are not in use: dense mode leaves them out of its candidates.
    pub(super) fn removed_of_owned(&self) -> u64 {
        let below = |bound: u32| self.removed.partition_point(|&id| id < bound);
        (below(self.owned.end) - below(self.owned.start)) as u64
    }

    /// Checks that ids of neurons are in use.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub(super) fn check_in_use(&self, mut ids: impl Iterator<Item = u32>) -> Result<()> {
        if self.removed.is_empty() {
            return Ok(());
        }
        match ids.find(|&id| self.is_removed(id)) {
            None => Ok(()),
            Some(id) => Err(removed_neuron(id)),
        }
    }

    /// Gives slots that are not in use the state 0, without a spike.
    pub(super) fn clear_removed(&self, state: &mut NetworkState) {
        for &id in &*self.removed {
            state.neurons[id as usize] = NeuronState::zeroed();
        }
        if !self.removed.is_empty() {
            state.fired.retain(|spike| !self.is_removed(spike.id));
        }
    }

    /// Returns the network with other synapses and slots that are not in use, ascending, and with the parameters of `neurons`
    /// where they changed.
    pub(super) fn edited(
        &self,
        synapses: Synapses,
        removed: Vec<u32>,
        neurons: Option<&Neurons>,
    ) -> Result<Network> {
        let mut edited = Network {
            neurons: neurons.unwrap_or(&self.neurons).clone(),
            parameters: Vec::new(),
            out_degrees: out_degrees(&self.areas, &synapses),
            synapses,
            areas: self.areas.clone(),
            populations: self.populations.clone(),
            owned: self.owned.clone(),
            removed: removed.into(),
            largest_input: 0,
            largest_plastic_input: 0,
        };
        edited.parameters = match neurons {
            None => self.parameters.clone(),
            Some(neurons) => {
                let parameters = (0..self.len() as u32).map(|id| edited.parameters_of(neurons, id));
                parameters.collect::<Result<_>>()?
            }
        };
        edited.mark_removed();
        edited.bound_inputs();
        Ok(edited)
    }

    /// Marks slots as not in use: those of a file, whose synapses do not touch them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for ids that do not ascend or are no neuron, and for a synapse from or to one.
    pub(super) fn set_removed(&mut self, removed: Vec<u32>) -> Result<()> {
        check_ids(removed.iter().copied(), self.len())?;
        if !removed.is_sorted_by(|one, next| one < next) {
            return Err(Error::invalid(OPERATION, "removed neurons that do not ascend", "ascending ids"));
        }
        self.removed = removed.into();
        self.mark_removed();
        for source in 0..self.len() as u32 {
            let row = self.synapses.row(source);
            let targets = self.synapses.targets()[row.clone()].iter().map(|word| word & !INHIBITORY);
            let stray = if row.is_empty() || self.removed.is_empty() {
                None
            } else if self.is_removed(source) {
                Some(source)
            } else {
                targets.into_iter().find(|&target| self.is_removed(target))
            };
            if let Some(id) = stray {
                let found = format!("a synapse of neuron {id}, which was removed");
                return Err(Error::invalid(OPERATION, found, "synapses between neurons in use"));
            }
        }
        Ok(())
    }

    /// Gives the slots that are not in use constants with which they never fire.
    fn mark_removed(&mut self) {
        for &id in &*self.removed {
            let constants = &mut self.parameters[id as usize];
            *constants = NeuronParameters::of_removed(constants.area);
        }
    }

    /// Returns the network of a shard: all neurons, and the synapses that end in `owned`.
    pub(super) fn shard(&self, owned: Range<u32>) -> Network {
        let mut shard = Network {
            neurons: self.neurons.clone(),
            parameters: self.parameters.clone(),
            synapses: self.synapses.ending_in(owned.clone()),
            areas: self.areas.clone(),
            populations: self.populations.clone(),
            owned,
            removed: self.removed.clone(),
            out_degrees: self.out_degrees.clone(),
            largest_input: 0,
            largest_plastic_input: 0,
        };
        shard.bound_inputs();
        shard
    }

    /// Computes the largest inputs over all targets.
    fn bound_inputs(&mut self) {
        let zeros =
            || -> Vec<AtomicU64> { std::iter::repeat_with(AtomicU64::default).take(self.len()).collect() };
        let (inputs, plastic_inputs) = (zeros(), zeros());
        let threads = thread_count().min(self.synapses.len() / (1 << 16)).max(1);
        in_chunks(threads, self.len(), &|sources| {
            for source in sources {
                let driven = self.parameters[source].has(NeuronParameters::POTENTIAL_DRIVEN);
                for synapse in self.synapses.row(source as u32) {
                    let target = (self.synapses.targets()[synapse] & !INHIBITORY) as usize;
                    let word = u64::from(self.synapses.weights()[synapse]);
                    let psp = if driven { 255 } else { word >> 8 } * SCALE as u64;
                    inputs[target].fetch_add((word & 255) * psp, Ordering::Relaxed);
                    plastic_inputs[target].fetch_add(255 * psp, Ordering::Relaxed);
                }
            }
        });
        let largest =
            |inputs: Vec<AtomicU64>| inputs.into_iter().map(AtomicU64::into_inner).max().unwrap_or(0);
        let (largest_input, largest_plastic_input) = (largest(inputs), largest(plastic_inputs));
        (self.largest_input, self.largest_plastic_input) = (largest_input, largest_plastic_input);
    }
}

/// Checks each neuron and returns its constants, the flags of its area included. Of several bad neurons the first is named,
/// whatever the number of threads.
fn checked_parameters(neurons: &Neurons, areas: &[Area], threads: usize) -> Result<Vec<NeuronParameters>> {
    let threads = threads.min(neurons.len().div_ceil(NEURONS_OF_A_THREAD)).max(1);
    let size = neurons.len().div_ceil(threads * 4).max(1);
    let mut parameters = vec![NeuronParameters::zeroed(); neurons.len()];
    let blocks: Mutex<Vec<_>> = Mutex::new(parameters.chunks_mut(size).enumerate().collect());
    let first_error: Mutex<Option<(usize, Error)>> = Mutex::new(None);
    run_on_threads(threads, &|| {
        loop {
            let block = blocks.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some((block, slots)) = block else { return };
            for (id, slot) in (block * size..).zip(slots) {
                match neurons.checked(id, areas.len()) {
                    Ok(checked) => *slot = with_area_flags(checked, areas),
                    Err(error) => {
                        let mut first = first_error.lock().unwrap_or_else(PoisonError::into_inner);
                        if first.as_ref().is_none_or(|(known, _)| id < *known) {
                            *first = Some((id, error));
                        }
                        break;
                    }
                }
            }
        }
    });
    drop(blocks);
    match first_error.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some((_, error)) => Err(error),
        None => Ok(parameters),
    }
}

fn out_degrees(areas: &[Area], synapses: &Synapses) -> Option<Arc<[u64]>> {
    areas.iter().any(|area| area.shares).then(|| {
        synapses.row_pointers().windows(2).map(|ends| ends[1] - ends[0]).collect::<Vec<u64>>().into()
    })
}

/// The error for a neuron that was removed.
pub(super) fn removed_neuron(id: u32) -> Error {
    Error::invalid("the neurons of a burst", format!("id {id}, which was removed"), "a neuron in use")
}

fn with_area_flags(mut parameters: NeuronParameters, areas: &[Area]) -> NeuronParameters {
    let area = &areas[parameters.area as usize];
    if area.shares {
        parameters.flags |= NeuronParameters::SHARES;
    }
    if area.potential_driven {
        parameters.flags |= NeuronParameters::POTENTIAL_DRIVEN;
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_bad_neurons_is_named_by_any_number_of_threads() {
        let count = 3 * NEURONS_OF_A_THREAD;
        let areas = [Area::new("a"), Area { shares: true, ..Area::new("b") }];
        let mut good = Neurons::new(count);
        (0..count).for_each(|id| good.area[id] = id as u32 % 2);
        for threads in [1, 2, 3] {
            let parameters = checked_parameters(&good, &areas, threads).unwrap();
            let shares = |constants: &NeuronParameters| constants.has(NeuronParameters::SHARES);
            assert!(parameters.iter().enumerate().all(|(id, constants)| shares(constants) == (id % 2 == 1)));
            for first in [7, count / 2, count - 5] {
                let mut bad = good.clone();
                bad.area[first] = 2;
                bad.leak[count - 3] = 2.0;
                let error = checked_parameters(&bad, &areas, threads).unwrap_err().to_string();
                assert!(error.contains(&format!("area 2 of neuron {first};")), "{error}");
            }
        }
    }
}
