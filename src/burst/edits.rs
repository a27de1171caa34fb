//! The log of structural edits: synapses that are created or removed, and neurons that are removed, while a simulation runs.
//!
//! An edit is checked when it enters the log. The next burst, or a save, merges the whole log by one linear pass over the rows,
//! and loads the backend with the new network and the state that it had. Rows have no holes, so a synapse needs no bit that marks
//! it as used. A removed neuron leaves a slot that is not in use: ids never change.
//!
//! Tests: `tests/cases/burst_edits.rs`, on every backend, and `tests/burst/bad_input.rs`.

use std::collections::{BTreeMap, BTreeSet};

use super::backend::Backend;
use super::host_memory::check_rows;
use super::network::Network;
use super::recovery::{Checkpoint, Journal};
use super::simulation::Simulation;
use super::synapses::{INHIBITORY, SynapseArrays, Synapses};
use crate::{Error, Result};

const CREATION: &str = "creating synapses";
const REMOVAL: &str = "removing synapses";

/// A synapse without its ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewSynapse {
    pub weight: u8,
    pub psp: u8,
    pub inhibitory: bool,
}

/// The edits since the last merge.
#[derive(Debug, Clone, Default)]
pub(super) struct EditLog {
    /// The synapse of each edited pair of source and target, in place of all that the pair has now; None for no synapse.
    pairs: BTreeMap<(u32, u32), Option<NewSynapse>>,
    /// Indices of synapses that rules removed: a pair can have several synapses.
    pruned: BTreeSet<u64>,
    removed: BTreeSet<u32>,
}

impl EditLog {
    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.pruned.is_empty() && self.removed.is_empty()
    }

    /// Returns true if a pair has a synapse once the log is merged.
    pub(super) fn has_synapse(&self, network: &Network, source: u32, target: u32) -> bool {
        match self.pairs.get(&(source, target)) {
            Some(edit) => edit.is_some(),
            None => {
                let mut now = network.synapses().between(source, target);
                now.any(|synapse| !self.pruned.contains(&(synapse as u64)))
            }
        }
    }

    /// Returns true if a slot is not in use once the log is merged.
    pub(super) fn is_removed(&self, network: &Network, id: u32) -> bool {
        self.removed.contains(&id) || network.is_removed(id)
    }

    /// Creates a synapse of a pair that has none.
    pub(super) fn create(&mut self, source: u32, target: u32, synapse: NewSynapse) {
        self.pairs.insert((source, target), Some(synapse));
    }

    /// Removes one synapse.
    pub(super) fn prune(&mut self, synapse: u64) {
        self.pruned.insert(synapse);
    }

    /// Returns the slots that are not in use after the merge, ascending.
    pub(super) fn removed_with(&self, known: &[u32]) -> Vec<u32> {
        let mut removed: Vec<u32> = known.iter().chain(&self.removed).copied().collect();
        removed.sort_unstable();
        removed.dedup();
        removed
    }

    /// Merges the log into rows with these weights.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn merge(&self, rows: &Synapses, weights: &[u16]) -> Result<Synapses> {
        let neurons = rows.row_pointers().len() - 1;
        let most = rows.len() + self.pairs.values().flatten().count();
        check_rows(neurons as u64, most as u64)?;
        let mut removed = vec![false; if self.removed.is_empty() { 0 } else { neurons }];
        for &id in &self.removed {
            removed[id as usize] = true;
        }
        let is_removed = |id: u32| removed.get(id as usize).copied().unwrap_or(false);
        let mut row_pointers = Vec::with_capacity(neurons + 1);
        let (mut targets, mut words) = (Vec::with_capacity(most), Vec::with_capacity(most));
        let mut edits = self.pairs.iter().map(|(&pair, &edit)| (pair, edit)).peekable();
        let mut pruned = self.pruned.iter().map(|&synapse| synapse as usize).peekable();
        row_pointers.push(0);
        for source in 0..neurons as u32 {
            let row = rows.row(source);
            let has_edits = edits.peek().is_some_and(|(pair, _)| pair.0 == source)
                || pruned.peek().is_some_and(|synapse| row.contains(synapse));
            if !has_edits && removed.is_empty() {
                targets.extend_from_slice(&rows.targets()[row.clone()]);
                words.extend_from_slice(&weights[row]);
                row_pointers.push(targets.len() as u64);
                continue;
            }
            let mut push = |target: u32, inhibitory: bool, word: u16| {
                if !is_removed(source) && !is_removed(target) {
                    targets.push(if inhibitory { target | INHIBITORY } else { target });
                    words.push(word);
                }
            };
            let mut push_edit = |target: u32, edit: Option<NewSynapse>| {
                if let Some(NewSynapse { weight, psp, inhibitory }) = edit {
                    push(target, inhibitory, u16::from(weight) | u16::from(psp) << 8);
                }
            };
            for synapse in row {
                let word = rows.targets()[synapse];
                let target = word & !INHIBITORY;
                while let Some(((_, edited), edit)) = edits.next_if(|(pair, _)| *pair < (source, target)) {
                    push_edit(edited, edit);
                }
                let is_pruned = pruned.next_if_eq(&synapse).is_some();
                if !is_pruned && edits.peek().is_none_or(|(pair, _)| *pair != (source, target)) {
                    let (weight, psp) = (weights[synapse] as u8, (weights[synapse] >> 8) as u8);
                    push_edit(target, Some(NewSynapse { weight, psp, inhibitory: word & INHIBITORY != 0 }));
                }
            }
            while let Some(((_, edited), edit)) = edits.next_if(|(pair, _)| pair.0 == source) {
                push_edit(edited, edit);
            }
            row_pointers.push(targets.len() as u64);
        }
        Ok(Synapses::from_merged(row_pointers, targets, words))
    }

    /// Checks that an id is a neuron in use.
    fn check_id(&self, network: &Network, operation: &'static str, what: &str, id: u32) -> Result<()> {
        let neurons = network.len();
        if id as usize >= neurons {
            return Err(Error::invalid(operation, format!("{what} {id}"), format!("an id below {neurons}")));
        }
        match self.is_removed(network, id) {
            false => Ok(()),
            true => {
                Err(Error::invalid(operation, format!("{what} {id}, which was removed"), "a neuron in use"))
            }
        }
    }

    /// Checks the ends of synapses of one call, and that no pair comes twice.
    fn check_pairs(
        &self,
        network: &Network,
        operation: &'static str,
        source: &[u32],
        target: &[u32],
    ) -> Result<()> {
        if source.len() != target.len() {
            let (wanted, found) = (source.len(), target.len());
            return Err(Error::LengthMismatch { operation, wanted, found });
        }
        for (&source, &target) in source.iter().zip(target) {
            self.check_id(network, operation, "source", source)?;
            self.check_id(network, operation, "target", target)?;
        }
        let mut pairs: Vec<(u32, u32)> = source.iter().copied().zip(target.iter().copied()).collect();
        pairs.sort_unstable();
        match pairs.windows(2).find(|two| two[0] == two[1]) {
            None => Ok(()),
            Some(two) => {
                let found = format!("two synapses from {} to {} in one call", two[0].0, two[0].1);
                Err(Error::invalid(operation, found, "each pair of neurons once"))
            }
        }
    }
}

/// Edits of the structure. They enter a log, which the next burst merges before it runs; a save merges it too. A merge costs one
/// pass over all synapses and loads the backend anew, so a call with many edits is cheaper than many bursts with one each. Until
/// then [`network`](Simulation::network) and [`weights`](Simulation::weights) are the old ones.
impl Simulation {
    /// Creates synapses, which carry spikes from the next burst on. Arrays may be in any order; on an error nothing is created.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] for arrays of different lengths; [`Error::InvalidArgument`] for an id that is no neuron or was
    /// removed, a kind other than 0 and 1, and a pair of neurons that has a synapse already or comes twice.
    ///
    /// # Examples
    /// ```
    /// use selvedge::burst::{Cpu, Network, Neurons, Simulation, SynapseArrays};
    ///
    /// # fn main() -> selvedge::Result<()> {
    /// let none = SynapseArrays { source: &[], target: &[], weight: &[], psp: &[], kind: &[] };
    /// let network = Network::from_arrays(Neurons::new(2), &none)?;
    /// let mut simulation = Simulation::new(network.into(), Box::new(Cpu::new()), 0)?;
    /// let one = SynapseArrays { source: &[0], target: &[1], weight: &[6], psp: &[10], kind: &[0] };
    /// simulation.create_synapses(&one)?;
    /// simulation.inject(&[(0, 2.0)])?;
    /// simulation.run_burst()?;
    /// assert_eq!(simulation.run_burst()?.fired[0].potential, 60.0);
    /// simulation.remove_synapses(&[0], &[1])?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn create_synapses(&mut self, synapses: &SynapseArrays) -> Result<()> {
        let SynapseArrays { source, target, weight, psp, kind } = *synapses;
        for found in [weight.len(), psp.len(), kind.len()] {
            if found != source.len() {
                return Err(Error::LengthMismatch { operation: CREATION, wanted: source.len(), found });
            }
        }
        self.edits.check_pairs(&self.network, CREATION, source, target)?;
        for (at, (&source, &target)) in source.iter().zip(target).enumerate() {
            if kind[at] > 1 {
                let found = format!("kind {} of synapse {at}", kind[at]);
                return Err(Error::invalid(CREATION, found, "0 or 1"));
            }
            if self.edits.has_synapse(&self.network, source, target) {
                let found = format!("a second synapse from {source} to {target}");
                return Err(Error::invalid(CREATION, found, "a pair of neurons without a synapse"));
            }
        }
        for (at, (&source, &target)) in source.iter().zip(target).enumerate() {
            let synapse = NewSynapse { weight: weight[at], psp: psp[at], inhibitory: kind[at] == 1 };
            self.edits.create(source, target, synapse);
        }
        Ok(())
    }

    /// Removes the synapses from each source to its target: all of them where a pair has several. On an error nothing is removed.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; [`Error::InvalidArgument`] for an id that is no neuron or was removed, and a pair of neurons that
    /// has no synapse or comes twice.
    pub fn remove_synapses(&mut self, source: &[u32], target: &[u32]) -> Result<()> {
        self.edits.check_pairs(&self.network, REMOVAL, source, target)?;
        for (&source, &target) in source.iter().zip(target) {
            if !self.edits.has_synapse(&self.network, source, target) {
                let found = format!("no synapse from {source} to {target}");
                return Err(Error::invalid(REMOVAL, found, "a pair of neurons with a synapse"));
            }
        }
        self.edits.pairs.extend(source.iter().copied().zip(target.iter().copied()).map(|pair| (pair, None)));
        Ok(())
    }

    /// Removes neurons with all synapses from and to them. Their slots stay, so that no other id changes, but are never touched
    /// again: they neither fire nor receive power input, their state is 0, and changes of their parameters have no effect. Input
    /// that is staged for them is dropped. On an error nothing is removed.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an id that is no neuron, was removed already or comes twice.
    pub fn remove_neurons(&mut self, ids: &[u32]) -> Result<()> {
        const OPERATION: &str = "removing neurons";
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        for &id in &sorted {
            self.edits.check_id(&self.network, OPERATION, "neuron", id)?;
        }
        if let Some(two) = sorted.windows(2).find(|two| two[0] == two[1]) {
            return Err(Error::invalid(OPERATION, format!("neuron {} twice", two[0]), "each neuron once"));
        }
        self.edits.removed.extend(sorted);
        Ok(())
    }

    /// Returns true if a slot is in use: false for neurons that were removed, and for ids that are no neuron.
    pub fn is_in_use(&self, id: u32) -> bool {
        (id as usize) < self.network.len() && !self.edits.is_removed(&self.network, id)
    }

    /// Checks that the backend holds the network, which it does not after a merge that failed.
    pub(super) fn check_loaded(&self) -> Result<()> {
        if self.reload_failed {
            let found = "a backend that could not load the edited network";
            return Err(Error::invalid("a simulation", found, "Simulation::recover with another backend"));
        }
        Ok(())
    }

    /// Merges the log: builds the network anew, and loads it on the backend with the state and the staged input.
    pub(super) fn apply_edits(&mut self) -> Result<()> {
        self.check_loaded()?;
        if self.edits.is_empty() {
            return Ok(());
        }
        let (state, weights) = (self.backend.state()?, self.backend.weights()?);
        let neurons = self.parameters_changed.then_some(&self.neurons);
        let synapses = self.edits.merge(self.network.synapses(), &weights)?;
        let removed = self.edits.removed_with(self.network.removed());
        let network = self.network.edited(synapses, removed, neurons)?;
        let mut edited = state.clone();
        network.clear_removed(&mut edited);
        let start = Checkpoint { state: edited, weights: None, parameters: None, dense: self.dense };
        let network = std::sync::Arc::new(network);
        let mut pending = self.pending.clone();
        pending.retain(|injection| !network.is_removed(injection.id));
        let reload = |backend: &mut dyn Backend| {
            backend.reload(&network, start.state.seed)?;
            start.restore(&network, backend)?;
            backend.inject(&pending)
        };
        if let Err(error) = reload(&mut *self.backend) {
            // The log stays, and the next burst after a recovery merges it.
            let before = Checkpoint { weights: Some(weights), ..self.checkpoint(state)? };
            (self.journal, self.reload_failed) = (Some(Journal::new(before)), true);
            return Err(error);
        }
        self.journal = self.backend.can_be_lost().then(|| Journal::new(start));
        (self.network, self.pending, self.parameters_changed) = (network, pending, false);
        self.edits = EditLog::default();
        if let Some(weights) = &mut self.weights {
            *weights = self.network.synapses().weights().to_vec();
        }
        for rule in &mut self.rules {
            rule.index(&self.network);
        }
        Ok(())
    }
}
