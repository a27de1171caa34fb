//! The interface of a device that runs bursts.

use std::sync::Arc;

use super::network::{Network, SCALE};
use super::neurons::{NeuronParameters, check_ids};
use super::state::{NetworkState, Spike};
use crate::{Error, Result};

/// The largest magnitude of one injection.
pub const MAX_INJECTION: f32 = 1e9;

/// Input of one neuron in one burst, in thousandths of a potential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Injection {
    /// The neuron.
    pub id: u32,
    /// The input in thousandths.
    pub thousandths: i64,
}

impl Injection {
    /// Returns the injection of `potential`, rounded to thousandths in f64, ties to even.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for NaN, an infinity, or a magnitude above [`MAX_INJECTION`].
    ///
    /// ```
    /// use selvedge::burst::Injection;
    ///
    /// assert_eq!(Injection::new(4, 0.0625)?.thousandths, 62);
    /// assert!(Injection::new(4, f32::NAN).is_err());
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    pub fn new(id: u32, potential: f32) -> Result<Injection> {
        // NaN is not below the limit either.
        if potential.abs() <= MAX_INJECTION {
            let thousandths = (f64::from(potential) * SCALE as f64).round_ties_even() as i64;
            return Ok(Injection { id, thousandths });
        }
        let found = format!("an input of {potential} for neuron {id}");
        Err(Error::invalid("an injection", found, format!("a number of magnitude up to {MAX_INJECTION:e}")))
    }
}

/// The counters of one burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BurstCounts {
    /// Synapses visited.
    pub events: u64,
    /// Injections added.
    pub injections: u64,
    /// Neurons touched by an event or an injection.
    pub candidates: u64,
    /// Candidates that were refractory.
    pub blocked: u64,
}

impl std::ops::AddAssign for BurstCounts {
    fn add_assign(&mut self, other: BurstCounts) {
        self.events += other.events;
        self.injections += other.injections;
        self.candidates += other.candidates;
        self.blocked += other.blocked;
    }
}

/// The result of one burst.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BurstResult {
    /// The number of the burst, from 1.
    pub burst: u64,
    /// The spikes in ascending order of id.
    pub fired: Vec<Spike>,
    /// The counters.
    pub counts: BurstCounts,
}

/// A change of one synapse's weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightChange {
    /// The synapse's index in [`Synapses::weights`](super::Synapses::weights).
    pub synapse: u64,
    /// Its new weight.
    pub weight: u8,
}

/// A device that holds a network and runs its bursts.
///
/// All backends give the same spikes, potentials and states, bit for bit. Callers validate: ids are neurons in use
/// ([`Network::removed`]) and parameters come from a validated [`Network`].
pub trait Backend: Send {
    /// Returns the name of the device and its settings, such as `CPU, 8 threads`.
    fn name(&self) -> String;

    /// Returns true if an error can take the state away, as when a device is lost. A
    /// [`Simulation`](super::Simulation) then keeps what it needs to recover.
    fn can_be_lost(&self) -> bool {
        false
    }

    /// Loads a network, at rest before burst 1. The accumulator is chosen by [`Network::accumulator`].
    fn load(&mut self, network: &Arc<Network>, seed: u32) -> Result<()>;

    /// Loads the network with other synapses or fewer neurons in use, in place of the one that is loaded. By default as
    /// [`load`](Backend::load).
    fn reload(&mut self, network: &Arc<Network>, seed: u32) -> Result<()> {
        self.load(network, seed)
    }

    /// Stages input for the next burst, behind what is already staged.
    fn inject(&mut self, injections: &[Injection]) -> Result<()>;

    /// Runs one burst. Of a shard, the result holds the spikes of the owned neurons.
    ///
    /// # Errors
    /// A failed burst leaves the state after the burst before it.
    fn run_burst(&mut self) -> Result<BurstResult>;

    /// Runs `count` bursts back to back. Staged input enters the first.
    fn run_bursts(&mut self, count: usize) -> Result<Vec<BurstResult>> {
        (0..count).map(|_| self.run_burst()).collect()
    }

    /// Chooses dense mode: every neuron is a candidate of every burst, as if each was injected with 0.
    fn set_dense(&mut self, dense: bool) -> Result<()>;

    /// Replaces the spikes that the next burst propagates, at most one of each neuron: after a burst of a shard, those of all
    /// shards.
    fn set_fired(&mut self, fired: &[Spike]) -> Result<()>;

    /// Returns the state.
    fn state(&mut self) -> Result<NetworkState>;

    /// Returns the potentials of some neurons.
    fn potentials(&mut self, ids: &[u32]) -> Result<Vec<f32>> {
        let state = self.state()?;
        check_ids(ids.iter().copied(), state.neurons.len())?;
        Ok(ids.iter().map(|&id| state.neurons[id as usize].potential).collect())
    }

    /// Replaces the state; its length is the number of neurons. A state that is refused changes nothing.
    fn set_state(&mut self, state: &NetworkState) -> Result<()>;

    /// Replaces the constants of some neurons from the next burst on.
    fn set_parameters(&mut self, changes: &[(u32, NeuronParameters)]) -> Result<()>;

    /// Returns weight and PSP of every synapse, as [`Synapses::weights`](super::Synapses::weights) does.
    fn weights(&mut self) -> Result<Vec<u16>>;

    /// Changes weights from the next burst on. The backend chooses the accumulator again, now for plastic weights.
    fn set_weights(&mut self, changes: &[WeightChange]) -> Result<()>;
}
