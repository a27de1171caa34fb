//! The state of a simulation, its weights, and the hashes by which runs are compared.

use super::super::arguments::{check_reserved, collected, out, slice, slice_mut, structure};
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::{Object, sv_simulation};
use super::{SimulationObject, check_count, simulation_of, with_simulation};
use crate::burst::{BurstResult, NetworkState, NeuronState, Spike, SpikeHash, WeightChange};

/// A state from which a run continues.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_network_state {
    /// The size of the struct in bytes.
    pub size: usize,
    /// Bursts done.
    pub burst: u64,
    /// The seed of the random draws.
    pub seed: u32,
    /// 0.
    pub reserved: u32,
    /// The number of neurons.
    pub neurons: usize,
    /// Membrane potentials.
    pub potentials: *const f32,
    /// Touched bursts for which each neuron is still blocked.
    pub refractory_left: *const u16,
    /// Consecutive spikes of the neurons with a limit.
    pub fire_counts: *const u16,
    /// The number of spikes of the last burst.
    pub fired: usize,
    /// The neurons that fired in the last burst, ascending.
    pub fired_ids: *const u32,
    /// The potentials at which they did.
    pub fired_potentials: *const f32,
}

/// The arrays of a caller that get a state.
pub(super) struct StateArrays<'a> {
    potentials: &'a mut [f32],
    refractory_left: &'a mut [u16],
    fire_counts: &'a mut [u16],
}

impl<'a> StateArrays<'a> {
    /// # Safety
    ///
    /// As [`slice_mut`], of `neurons` elements each.
    pub(super) unsafe fn new(
        potentials: *mut f32,
        refractory_left: *mut u16,
        fire_counts: *mut u16,
        neurons: usize,
    ) -> Result<StateArrays<'a>> {
        Ok(StateArrays {
            potentials: slice_mut(potentials, neurons, "potentials")?,
            refractory_left: slice_mut(refractory_left, neurons, "refractory_left")?,
            fire_counts: slice_mut(fire_counts, neurons, "fire_counts")?,
        })
    }

    pub(super) fn write(self, neurons: &[NeuronState]) -> Result<()> {
        check_count("neurons", self.potentials.len(), neurons.len())?;
        let arrays = self.potentials.iter_mut().zip(self.refractory_left).zip(self.fire_counts);
        for (neuron, ((potential, left), count)) in neurons.iter().zip(arrays) {
            (*potential, *left, *count) = (neuron.potential, neuron.refractory_left, neuron.fire_count);
        }
        Ok(())
    }
}

/// Returns the state at a pointer.
///
/// # Safety
///
/// As [`structure`], and as [`slice`] for each array of the struct.
pub(super) unsafe fn given_state(state: *const sv_network_state) -> Result<NetworkState> {
    let given = structure(state, "state")?;
    check_reserved("state->reserved", given.reserved)?;
    let (neurons, fired) = (given.neurons, given.fired);
    let (potentials, left, counts, ids, at) = (
        slice(given.potentials, neurons, "state->potentials")?,
        slice(given.refractory_left, neurons, "state->refractory_left")?,
        slice(given.fire_counts, neurons, "state->fire_counts")?,
        slice(given.fired_ids, fired, "state->fired_ids")?,
        slice(given.fired_potentials, fired, "state->fired_potentials")?,
    );
    if let Some(pair) = ids.windows(2).find(|pair| pair[0] >= pair[1]) {
        let found = format!("id {} after {}", pair[1], pair[0]);
        return Err(Failure::argument("state->fired_ids", found, "ids in ascending order"));
    }
    let neuron = |((potential, left), count): ((&f32, &u16), &u16)| NeuronState {
        potential: *potential,
        refractory_left: *left,
        fire_count: *count,
    };
    let spike = |(id, potential): (&u32, &f32)| Spike { id: *id, potential: *potential };
    Ok(NetworkState {
        seed: given.seed,
        burst: given.burst,
        neurons: collected(
            neurons,
            "state->potentials",
            potentials.iter().zip(left).zip(counts).map(neuron),
        )?,
        fired: collected(fired, "state->fired_ids", ids.iter().zip(at).map(spike))?,
    })
}

/// Writes the state of every neuron: potentials, blocked bursts that are left, and counts of consecutive spikes.
///
/// `neurons` is the number of neurons. `sv_simulation_fired` has the rest of the state: the spikes of the last burst.
///
/// # Safety
///
/// The arrays have `neurons` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_state(
    simulation: sv_simulation,
    potentials: *mut f32,
    refractory_left: *mut u16,
    fire_counts: *mut u16,
    neurons: usize,
) -> i32 {
    guard::call("sv_simulation_state", || {
        let arrays = StateArrays::new(potentials, refractory_left, fire_counts, neurons)?;
        let state = with_simulation(simulation, |simulation| Ok(simulation.state()?))?;
        arrays.write(&state.neurons)
    })
}

/// Replaces the state of a simulation. Staged input stays; the ledger starts anew.
///
/// # Safety
///
/// `state` points to a struct whose arrays have as many elements as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_set_state(
    simulation: sv_simulation,
    state: *const sv_network_state,
) -> i32 {
    guard::call("sv_simulation_set_state", || {
        let state = given_state(state)?;
        let object = SimulationObject::table().get(simulation, "simulation")?;
        let mut owner = object.lock();
        let last = BurstResult { burst: state.burst, fired: state.fired.clone(), ..BurstResult::default() };
        owner.with(move |simulation| {
            check_count("state->neurons", state.neurons.len(), simulation.network().len())?;
            Ok(simulation.set_state(&state)?)
        })?;
        owner.set_last(last);
        Ok(())
    })
}

/// Writes the state hash: FNV-1a of 64 bits over potential, blocked bursts and fire count of each neuron. Two runs with equal
/// hashes have the same state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_state_hash(simulation: sv_simulation, hash: *mut u64) -> i32 {
    guard::call("sv_simulation_state_hash", || {
        let hash = out(hash, "hash")?;
        hash.write(with_simulation(simulation, |simulation| Ok(simulation.state()?.hash()))?);
        Ok(())
    })
}

/// The spike hash before the first spike.
pub const SV_SPIKE_HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Adds the spikes of a burst to a spike hash, which is `SV_SPIKE_HASH_START` before the first one: FNV-1a of 64 bits over the
/// burst's number, the id and the potential of each spike. The ids ascend, as `sv_simulation_fired` writes them.
///
/// # Safety
///
/// `ids` and `potentials` point to `count` elements, and `hash` to the hash.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_spike_hash_add(
    number: u32,
    ids: *const u32,
    potentials: *const f32,
    count: usize,
    hash: *mut u64,
) -> i32 {
    guard::call("sv_spike_hash_add", || {
        let (ids, potentials, hash) =
            (slice(ids, count, "ids")?, slice(potentials, count, "potentials")?, slice_mut(hash, 1, "hash")?);
        let spike = |(id, potential): (&u32, &f32)| Spike { id: *id, potential: *potential };
        let fired: Vec<Spike> = collected(count, "ids", ids.iter().zip(potentials).map(spike))?;
        for hash in hash {
            let mut sum = SpikeHash::continued(*hash);
            sum.add(u64::from(number), &fired);
            *hash = sum.value();
        }
        Ok(())
    })
}

/// Writes weight and PSP of every synapse as they are now, in the order of `sv_network_rows`: the weight in the low 8 bits
/// and the PSP in the high 8.
///
/// `count` is the number of synapses.
///
/// # Safety
///
/// `weights` points to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_weights(
    simulation: sv_simulation,
    weights: *mut u16,
    count: usize,
) -> i32 {
    guard::call("sv_simulation_weights", || {
        let weights = slice_mut(weights, count, "weights")?;
        let found = with_simulation(simulation, |simulation| Ok(simulation.weights()?))?;
        check_count("count", count, found.len())?;
        weights.copy_from_slice(&found);
        Ok(())
    })
}

/// Changes the weights of `count` synapses, by their places in the order of `sv_network_rows`, from the next burst on. Of several
/// changes of one synapse the last one counts. On an error nothing is changed.
///
/// # Safety
///
/// `synapses` and `weights` point to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_set_weights(
    simulation: sv_simulation,
    synapses: *const u64,
    weights: *const u8,
    count: usize,
) -> i32 {
    guard::call("sv_simulation_set_weights", || {
        let object = simulation_of(simulation)?;
        let (synapses, weights) = (slice(synapses, count, "synapses")?, slice(weights, count, "weights")?);
        let change = |(synapse, weight): (&u64, &u8)| WeightChange { synapse: *synapse, weight: *weight };
        let changes = collected(count, "synapses", synapses.iter().zip(weights).map(change))?;
        object.with(move |simulation| Ok(simulation.set_weights(&changes)?))
    })
}
