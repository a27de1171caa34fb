//! The journal of a simulation whose device can be lost: a state of the run, and everything that entered it since.
//!
//! Bursts are deterministic, so any backend that starts from the state and repeats the journal reaches the last finished burst
//! with the same bits.

use std::sync::Arc;

use super::backend::{Backend, Injection, WeightChange};
use super::network::Network;
use super::neurons::NeuronParameters;
use super::simulation::Simulation;
use super::state::NetworkState;
use crate::{Error, Result};

/// A journal is renewed after so many bursts, or when it holds more elements than the network has neurons, but not below this
/// count: a replay then takes about as long as the run took between two checkpoints.
const MAX_BURSTS: u64 = 1024;
const MIN_ELEMENTS: usize = 1 << 16;

/// The state in which a journal begins.
pub(super) struct Checkpoint {
    pub state: NetworkState,
    /// None where they are as loaded.
    pub weights: Option<Vec<u16>>,
    /// None where they are as loaded.
    pub parameters: Option<Vec<(u32, NeuronParameters)>>,
    pub dense: bool,
}

impl Checkpoint {
    /// Brings a backend that has loaded the network to this state.
    pub(super) fn restore(&self, network: &Network, backend: &mut dyn Backend) -> Result<()> {
        backend.set_dense(self.dense)?;
        if let Some(parameters) = &self.parameters {
            backend.set_parameters(parameters)?;
        }
        if let Some(weights) = &self.weights {
            backend.set_weights(&changed_weights(network, weights))?;
        }
        backend.set_state(&self.state)
    }
}

pub(super) enum Entry {
    Dense(bool),
    Parameters(Vec<(u32, NeuronParameters)>),
    Weights(Vec<WeightChange>),
    /// Bursts, of which the first has this input.
    Bursts(Vec<Injection>, usize),
}

pub(super) struct Journal {
    start: Checkpoint,
    entries: Vec<Entry>,
    bursts: u64,
    elements: usize,
}

impl Journal {
    pub(super) fn new(start: Checkpoint) -> Journal {
        Journal { start, entries: Vec::new(), bursts: 0, elements: 0 }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.elements += 1;
        match &entry {
            Entry::Dense(_) => {}
            Entry::Parameters(changes) => self.elements += changes.len(),
            Entry::Weights(changes) => self.elements += changes.len(),
            Entry::Bursts(injections, count) => {
                self.elements += injections.len();
                self.bursts += *count as u64;
            }
        }
        self.entries.push(entry);
    }

    /// Returns true if a new checkpoint is cheaper than a longer journal.
    pub(super) fn is_long(&self) -> bool {
        self.bursts >= MAX_BURSTS || self.elements >= self.start.state.neurons.len().max(MIN_ELEMENTS)
    }

    /// Begins anew from a later state. The weights stay as they were where there are no new ones.
    pub(super) fn renew(&mut self, mut start: Checkpoint) {
        start.weights = start.weights.or_else(|| self.start.weights.take());
        *self = Journal::new(start);
    }

    /// Loads a backend with the network and repeats everything up to the last finished burst.
    pub(super) fn replay(&self, network: &Arc<Network>, backend: &mut dyn Backend) -> Result<()> {
        backend.load(network, self.start.state.seed)?;
        self.start.restore(network, backend)?;
        for entry in &self.entries {
            match entry {
                Entry::Dense(dense) => backend.set_dense(*dense)?,
                Entry::Parameters(changes) => backend.set_parameters(changes)?,
                Entry::Weights(changes) => backend.set_weights(changes)?,
                Entry::Bursts(injections, count) => {
                    backend.inject(injections)?;
                    backend.run_bursts(*count)?;
                }
            }
        }
        Ok(())
    }
}

impl Simulation {
    /// Continues on another backend after an error of the device, such as [`Error::ContextLost`].
    ///
    /// The new backend starts from the last checkpoint and repeats all bursts up to the last one that
    /// [`run_burst`](Simulation::run_burst) or [`run`](Simulation::run) recorded. Results are the same on all backends, so
    /// state, weights, ledger and recordings continue bit for bit. Input that was staged for the failed burst is staged
    /// again. A checkpoint is taken at least every 1024 bursts, and at each merge of structural edits; edits that were not merged
    /// are merged before the next burst.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the backend cannot be lost, or was changed through
    /// [`backend`](Simulation::backend) since the last burst; those of the new backend. The simulation is as before then.
    pub fn recover(&mut self, mut backend: Box<dyn Backend>) -> Result<()> {
        let Some(journal) = &self.journal else {
            let wanted = "a run on a device that can be lost; Simulation::set_backend moves other runs";
            return Err(Error::invalid("recovering a simulation", "no checkpoint", wanted));
        };
        journal.replay(&self.network, &mut *backend)?;
        backend.inject(&self.pending)?;
        log::warn!(
            "burst: {} failed; {} goes on, and repeated the {} bursts since the checkpoint",
            self.backend.name(),
            backend.name(),
            journal.bursts
        );
        (self.backend, self.reload_failed) = (backend, false);
        if !self.backend.can_be_lost() {
            self.journal = None;
        }
        Ok(())
    }

    /// The parameters, weights and mode as they are now, with a state.
    pub(super) fn checkpoint(&self, state: NetworkState) -> Result<Checkpoint> {
        let parameters = if self.parameters_changed { Some(self.all_parameters()?) } else { None };
        Ok(Checkpoint { state, weights: self.weights.clone(), parameters, dense: self.dense })
    }

    /// Makes sure that there is a journal of bounded length if the device can be lost.
    pub(super) fn renew_journal(&mut self) -> Result<()> {
        if !self.backend.can_be_lost() {
            self.journal = None;
            return Ok(());
        }
        match &self.journal {
            Some(journal) if !journal.is_long() => return Ok(()),
            _ => {}
        }
        let state = self.backend.state()?;
        let mut start = self.checkpoint(state)?;
        match &mut self.journal {
            Some(journal) => journal.renew(start),
            None => {
                start.weights = Some(self.backend.weights()?);
                self.journal = Some(Journal::new(start));
            }
        }
        Ok(())
    }
}

/// Returns the weights that differ from those of the network.
fn changed_weights(network: &Network, weights: &[u16]) -> Vec<WeightChange> {
    let loaded = network.synapses().weights();
    let changed = (0u64..).zip(weights.iter().zip(loaded)).filter(|(_, (now, then))| now != then);
    changed.map(|(synapse, (now, _))| WeightChange { synapse, weight: *now as u8 }).collect()
}
