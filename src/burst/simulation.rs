//! A running network: a backend with its input, its recordings and its plasticity.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::backend::{Backend, BurstCounts, BurstResult, Injection};
use super::edits::EditLog;
use super::ledger::FireLedger;
use super::network::{Network, removed_neuron};
use super::neurons::{Neurons, check_ids};
use super::parameters::{NeuronSelection, ParameterQueue};
use super::plasticity::{ActiveRule, PlasticityRule};
use super::power::PowerInput;
use super::recovery::{Checkpoint, Entry, Journal};
use super::sampler::{Sampler, Snapshot};
use super::state::NetworkState;
use crate::{Error, Result};

/// Bursts that [`Simulation::run`] gives a backend at a time.
const BURSTS_OF_A_GROUP: usize = 32;

/// The largest sum of magnitudes that may be staged for one burst, in thousandths: far from the end of 64 bits.
const MAX_STAGED: u64 = 1 << 62;

/// Returns the sum of the magnitudes of input and of other input for the same burst, in thousandths.
///
/// # Errors
/// [`Error::InvalidArgument`] for more than [`MAX_STAGED`].
pub(crate) fn staged_with(injections: &[Injection], beside: u64) -> Result<u64> {
    let magnitudes = injections.iter().map(|injection| injection.thousandths.unsigned_abs());
    let staged = magnitudes.fold(beside, u64::saturating_add);
    if staged > MAX_STAGED {
        let found = format!("input of {staged} thousandths for one burst");
        return Err(Error::invalid("an injection", found, format!("at most {MAX_STAGED}")));
    }
    Ok(staged)
}

/// A network that runs on a backend.
///
/// Each burst applies queued parameter changes, adds the power input and the injections, runs on the backend, and then
/// records spikes, potentials and the ledger, and applies the plasticity rules.
///
/// ```
/// use std::sync::Arc;
/// use selvedge::burst::{Cpu, Network, Neurons, Simulation, SynapseArrays};
///
/// # fn main() -> selvedge::Result<()> {
/// let synapses = SynapseArrays { source: &[0], target: &[1], weight: &[6], psp: &[10], kind: &[0] };
/// let network = Arc::new(Network::from_arrays(Neurons::new(2), &synapses)?);
/// let mut simulation = Simulation::new(network, Box::new(Cpu::new()), 0)?;
/// simulation.record_spikes(true);
/// simulation.set_power(0..1, 1.0)?;
/// simulation.run(3)?;
/// assert_eq!(simulation.spikes(), (&[1, 2, 2, 3, 3][..], &[0, 0, 1, 0, 1][..]));
/// # Ok(())
/// # }
/// ```
pub struct Simulation {
    pub(super) network: Arc<Network>,
    pub(super) backend: Box<dyn Backend>,
    /// The parameters as they are now.
    pub(super) neurons: Neurons,
    queue: ParameterQueue,
    pub(super) dense: bool,
    /// Magnitudes of the staged injections, in thousandths.
    staged: u64,
    has_staged: bool,
    power_is_staged: bool,
    /// The last burst that is recorded; None once the caller had the backend.
    burst: Option<u64>,
    /// Kept while the backend's device can be lost. None once the caller had the backend, until the next burst.
    pub(super) journal: Option<Journal>,
    /// The staged injections, for a reload or a recovery.
    pub(super) pending: Vec<Injection>,
    pub(super) parameters_changed: bool,
    /// Structural edits since the last merge.
    pub(super) edits: EditLog,
    /// A merge could not be loaded, so the backend holds no network or another.
    pub(super) reload_failed: bool,
    pub(super) power: PowerInput,
    pub(super) ledger: Option<FireLedger>,
    samplers: Vec<Sampler>,
    pub(super) rules: Vec<ActiveRule>,
    /// The weights as they are now, once a rule needs them.
    pub(super) weights: Option<Vec<u16>>,
    spikes: Option<(Vec<u64>, Vec<u32>)>,
    recorded: Vec<u32>,
    potentials: Vec<f32>,
    totals: Totals,
}

/// Sums over the bursts of a [`Simulation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Bursts done by this simulation.
    pub bursts: u64,
    /// Spikes.
    pub spikes: u64,
    /// The counters of all bursts.
    pub counts: BurstCounts,
}

/// A spike with its place, as [`Simulation::fire_queue`] groups them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FiredNeuron {
    /// The neuron.
    pub id: u32,
    /// Its potential before the reset.
    pub potential: f32,
    /// Its coordinates in its area.
    pub position: [u32; 3],
}

impl Simulation {
    /// Loads a network on a backend, at rest before burst 1.
    ///
    /// # Errors
    /// The errors of [`Backend::load`].
    pub fn new(network: Arc<Network>, mut backend: Box<dyn Backend>, seed: u32) -> Result<Simulation> {
        backend.load(&network, seed)?;
        let journal = backend.can_be_lost().then(|| {
            let state = NetworkState::at_rest(&network, seed);
            Journal::new(Checkpoint { state, weights: None, parameters: None, dense: false })
        });
        Ok(Simulation {
            neurons: network.neurons().clone(),
            queue: ParameterQueue::new(network.len(), network.areas().len()),
            dense: false,
            staged: 0,
            has_staged: false,
            power_is_staged: false,
            burst: Some(0),
            journal,
            pending: Vec::new(),
            parameters_changed: false,
            edits: EditLog::default(),
            reload_failed: false,
            power: PowerInput::default(),
            ledger: None,
            samplers: Vec::new(),
            rules: Vec::new(),
            weights: None,
            spikes: None,
            recorded: Vec::new(),
            potentials: Vec::new(),
            totals: Totals::default(),
            network,
            backend,
        })
    }

    /// Returns the network as it was loaded, or as the last merge of structural edits made it.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Returns the neuron parameters as they are now.
    pub fn neurons(&self) -> &Neurons {
        &self.neurons
    }

    /// Returns the name of the backend.
    #[cfg(feature = "capi")]
    pub(crate) fn backend_name(&self) -> String {
        self.backend.name()
    }

    /// Returns the backend.
    ///
    /// A run on a device that can be lost takes a checkpoint of state and weights at its next burst, as it does not see the
    /// caller's changes. Neither a recovery nor a merge of structural edits knows parameters that were changed or input that was
    /// staged here.
    pub fn backend(&mut self) -> &mut dyn Backend {
        if !self.reload_failed {
            (self.journal, self.burst) = (None, None);
        }
        &mut *self.backend
    }

    /// Stages input for the next burst.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an id that is no neuron or was removed, a potential that is no number or too large, or more
    /// input than 64 bits can sum; nothing is staged.
    pub fn inject(&mut self, inputs: &[(u32, f32)]) -> Result<()> {
        let injections: Vec<Injection> =
            inputs.iter().map(|&(id, potential)| Injection::new(id, potential)).collect::<Result<_>>()?;
        self.stage(&injections)
    }

    fn stage(&mut self, injections: &[Injection]) -> Result<()> {
        let staged = staged_with(injections, self.staged)?;
        if !self.edits.is_empty() {
            let removed = injections.iter().find(|injection| !self.is_in_use(injection.id));
            if let Some(injection) = removed.filter(|injection| (injection.id as usize) < self.network.len())
            {
                return Err(removed_neuron(injection.id));
            }
        }
        self.backend.inject(injections)?;
        self.pending.extend_from_slice(injections);
        self.staged = staged;
        self.has_staged |= !injections.is_empty();
        Ok(())
    }

    pub(super) fn check_range(&self, ids: &Range<u32>) -> Result<()> {
        if ids.start > ids.end || ids.end as usize > self.network.len() {
            let wanted = format!("ids up to {}", self.network.len());
            return Err(Error::invalid(
                "a range of neurons",
                format!("ids {}..{}", ids.start, ids.end),
                wanted,
            ));
        }
        Ok(())
    }

    /// Chooses dense mode: every neuron is a candidate of every burst, so time passes for all of them.
    ///
    /// # Errors
    /// The errors of the backend.
    pub fn set_dense(&mut self, dense: bool) -> Result<()> {
        self.backend.set_dense(dense)?;
        self.dense = dense;
        if let Some(journal) = &mut self.journal {
            journal.push(Entry::Dense(dense));
        }
        Ok(())
    }

    /// Returns the queue by which any thread changes parameters between bursts.
    pub fn parameter_queue(&self) -> ParameterQueue {
        self.queue.clone()
    }

    /// Keeps a ledger of the last `window` bursts from now on. A ledger that is kept already only grows.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a window above [`MAX_PLASTICITY_WINDOW`](super::MAX_PLASTICITY_WINDOW); the errors of
    /// the backend.
    pub fn keep_ledger(&mut self, window: usize) -> Result<()> {
        FireLedger::check_window(window as u64)?;
        if let Some(ledger) = &mut self.ledger {
            ledger.grow(window);
            return Ok(());
        }
        let burst = self.backend.state()?.burst;
        self.ledger = Some(FireLedger::starting_after(self.network.len(), window, burst));
        Ok(())
    }

    /// Returns the ledger, if one is kept.
    pub fn ledger(&self) -> Option<&FireLedger> {
        self.ledger.as_ref()
    }

    /// Returns the neurons of an area that fired in a burst of the ledger, ascending.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an area that the network does not have, without a ledger, and as
    /// [`FireLedger::fired`].
    pub fn fired_in_area(&self, area: u32, burst: u64) -> Result<Vec<u32>> {
        self.check_area(area)?;
        let Some(ledger) = &self.ledger else {
            return Err(Error::invalid("the fire ledger", "no ledger", "Simulation::keep_ledger before"));
        };
        let mut ids = ledger.fired(burst)?;
        ids.retain(|&id| self.neurons.area[id as usize] == area);
        Ok(ids)
    }

    /// Continues with the ledger of an earlier run.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the ledger does not end at the burst of the state, has a window above
    /// [`MAX_PLASTICITY_WINDOW`](super::MAX_PLASTICITY_WINDOW), or a rule is active already.
    pub fn set_ledger(&mut self, ledger: FireLedger) -> Result<()> {
        FireLedger::check_window(ledger.window() as u64)?;
        let burst = self.backend.state()?.burst;
        if *ledger.bursts().end() != burst || ledger.neurons() != self.network.len() || !self.rules.is_empty()
        {
            let found =
                format!("a ledger of {} neurons up to burst {}", ledger.neurons(), ledger.bursts().end());
            let wanted =
                format!("one of {} neurons up to burst {burst}, before any rule", self.network.len());
            return Err(Error::invalid("the fire ledger", found, wanted));
        }
        self.ledger = Some(ledger);
        Ok(())
    }

    /// Adds a plasticity rule. Rules apply in the order in which they were added. A ledger is kept from now on, as long as
    /// the longest window among the rules.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an area or value out of range.
    pub fn add_rule(&mut self, rule: PlasticityRule) -> Result<()> {
        if self.ledger.is_none() {
            self.keep_ledger(1)?;
        }
        let Some(ledger) = &mut self.ledger else { return Ok(()) };
        let rule = ActiveRule::new(rule, &self.network, ledger)?;
        if self.weights.is_none() {
            self.weights = Some(self.backend.weights()?);
        }
        ledger.grow(rule.window());
        self.rules.push(rule);
        Ok(())
    }

    /// Adds a sampler and returns its index for [`take_snapshot`](Simulation::take_snapshot).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a range outside the network.
    pub fn add_sampler(&mut self, ids: Range<u32>, every: u64) -> Result<usize> {
        self.check_range(&ids)?;
        self.samplers.push(Sampler::new(ids, every));
        Ok(self.samplers.len() - 1)
    }

    /// Returns the snapshot of a sampler if one is due.
    pub fn take_snapshot(&mut self, sampler: usize) -> Option<Snapshot> {
        self.samplers.get_mut(sampler)?.take()
    }

    /// Starts or ends the recording of spikes. Either drops what was recorded.
    pub fn record_spikes(&mut self, record: bool) {
        self.spikes = record.then(Default::default);
    }

    /// Returns the recorded spikes as two arrays: bursts and ids, ascending by burst and then by id.
    pub fn spikes(&self) -> (&[u64], &[u32]) {
        self.spikes.as_ref().map_or((&[], &[]), |(bursts, ids)| (bursts, ids))
    }

    /// Records the potentials of some neurons after each burst from now on. Drops what was recorded.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an id that is no neuron.
    pub fn record_potentials(&mut self, ids: &[u32]) -> Result<()> {
        check_ids(ids.iter().copied(), self.network.len())?;
        self.recorded = ids.to_vec();
        self.potentials.clear();
        Ok(())
    }

    /// Returns the recorded potentials: one row per burst, one column per chosen neuron.
    pub fn potentials(&self) -> &[f32] {
        &self.potentials
    }

    /// Returns the sums over all bursts.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the spikes of a burst by area.
    pub fn fire_queue(&self, result: &BurstResult) -> BTreeMap<u32, Vec<FiredNeuron>> {
        let mut areas: BTreeMap<u32, Vec<FiredNeuron>> = BTreeMap::new();
        for spike in &result.fired {
            let id = spike.id as usize;
            areas.entry(self.neurons.area[id]).or_default().push(FiredNeuron {
                id: spike.id,
                potential: spike.potential,
                position: self.neurons.position[id],
            });
        }
        areas
    }

    /// Returns the state.
    ///
    /// # Errors
    /// The errors of the backend.
    pub fn state(&mut self) -> Result<NetworkState> {
        self.check_loaded()?;
        self.backend.state()
    }

    /// Replaces the state. Staged input stays; the ledger and the samplers start anew. Removed neurons keep the state 0.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] for another number of neurons; [`Error::InvalidArgument`] for a spike of no neuron, two
    /// spikes of one neuron or a burst above 2^63; the errors of the backend.
    pub fn set_state(&mut self, state: &NetworkState) -> Result<()> {
        self.check_loaded()?;
        let mut cleared;
        let state = match self.network.removed().is_empty() {
            true => state,
            false => {
                state.check(self.network.len())?;
                cleared = state.clone();
                self.network.clear_removed(&mut cleared);
                &cleared
            }
        };
        self.backend.set_state(state)?;
        self.burst = Some(state.burst);
        if self.journal.is_some() {
            let start = self.checkpoint(state.clone())?;
            if let Some(journal) = &mut self.journal {
                journal.renew(start);
            }
        }
        if let Some(ledger) = &mut self.ledger {
            *ledger = FireLedger::starting_after(self.network.len(), ledger.window(), state.burst);
        }
        for rule in &mut self.rules {
            rule.forget();
        }
        for sampler in &mut self.samplers {
            sampler.restart(state.burst);
        }
        Ok(())
    }

    /// Returns weight and PSP of every synapse as they are now.
    ///
    /// # Errors
    /// The errors of the backend.
    pub fn weights(&mut self) -> Result<Vec<u16>> {
        self.check_loaded()?;
        self.backend.weights()
    }

    /// Moves the run to another backend, between two bursts. All backends compute the same, so nothing else changes.
    ///
    /// # Errors
    /// The errors of the backends; the simulation stays on the old one.
    pub fn set_backend(&mut self, mut backend: Box<dyn Backend>) -> Result<()> {
        self.check_loaded()?;
        if self.has_staged {
            let wanted = "a change of the backend before the injections of a burst";
            return Err(Error::invalid("a simulation", "staged injections", wanted));
        }
        let (state, weights) = (self.backend.state()?, self.backend.weights()?);
        let start = Checkpoint { weights: Some(weights), ..self.checkpoint(state)? };
        let journal = Journal::new(start);
        journal.replay(&self.network, &mut *backend)?;
        self.backend = backend;
        self.journal = self.backend.can_be_lost().then_some(journal);
        Ok(())
    }

    pub(super) fn all_parameters(&self) -> Result<Vec<(u32, super::neurons::NeuronParameters)>> {
        (0..self.network.len() as u32)
            .map(|id| Ok((id, self.network.parameters_of(&self.neurons, id)?)))
            .collect()
    }

    /// Runs one burst.
    ///
    /// # Errors
    /// The errors of the backend. After a lost device, [`recover`](Simulation::recover) continues from the last finished burst.
    pub fn run_burst(&mut self) -> Result<BurstResult> {
        let result = self.run_group(1)?.pop();
        result.ok_or_else(|| Error::invalid("a burst", "no result", "one result"))
    }

    /// Runs `count` bursts. A backend gets several bursts at a time where nothing needs the host between them: no rule, power
    /// input or recorded potential, and no other holder of the parameter queue.
    ///
    /// # Errors
    /// As [`run_burst`](Simulation::run_burst); the bursts that [`totals`](Simulation::totals) counts are done.
    pub fn run(&mut self, count: u64) -> Result<()> {
        self.run_to(count, &mut BurstResult::default())
    }

    /// As [`run`](Simulation::run), and keeps the result of the last finished burst in `last`.
    pub(crate) fn run_to(&mut self, count: u64, last: &mut BurstResult) -> Result<()> {
        let mut left = count;
        while left > 0 {
            let alone = !self.rules.is_empty() || !self.recorded.is_empty() || !self.power.is_empty();
            let most = if alone || self.queue.is_shared() { 1 } else { BURSTS_OF_A_GROUP };
            let group = usize::try_from(left).unwrap_or(most).min(most);
            if let Some(result) = self.run_group(group)?.pop() {
                *last = result;
            }
            left -= group as u64;
        }
        Ok(())
    }

    /// Runs bursts back to back and records them.
    fn run_group(&mut self, count: usize) -> Result<Vec<BurstResult>> {
        self.check_loaded()?;
        self.renew_journal()?;
        self.apply_parameter_changes()?;
        self.apply_edits()?;
        // After a failed burst the input is staged already.
        if !self.power_is_staged {
            let power = self.power.injections(&self.network);
            self.stage(&power)?;
            self.power_is_staged = true;
        }
        let results = self.backend.run_bursts(count)?;
        self.check_numbers(&results)?;
        let potentials = match self.recorded.is_empty() {
            true => Vec::new(),
            false => self.backend.potentials(&self.recorded)?,
        };
        // From here on the bursts are finished.
        self.potentials.extend(potentials);
        match &mut self.journal {
            Some(journal) => journal.push(Entry::Bursts(std::mem::take(&mut self.pending), count)),
            None => self.pending.clear(),
        }
        (self.staged, self.has_staged, self.power_is_staged) = (0, false, false);
        self.burst = results.last().map(|result| result.burst).or(self.burst);
        for result in &results {
            self.record(result)?;
        }
        Ok(results)
    }

    /// Checks that a backend did not do bursts of which the simulation has no results, because of an earlier error.
    fn check_numbers(&self, results: &[BurstResult]) -> Result<()> {
        match (self.burst, results.first()) {
            (Some(last), Some(first)) if first.burst != last + 1 => Err(Error::invalid(
                "a simulation",
                format!("burst {} after burst {last}", first.burst),
                "every burst in turn; after an error of the device, call Simulation::recover or set_state",
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn apply_parameter_changes(&mut self) -> Result<()> {
        let changes = self.queue.take();
        if changes.is_empty() {
            return Ok(());
        }
        let mut changed = Vec::new();
        for (selection, field) in changes {
            let ids: Vec<u32> = match selection {
                NeuronSelection::Ids(ids) => ids.collect(),
                NeuronSelection::Area(area) => (0..self.network.len() as u32)
                    .filter(|&id| self.neurons.area[id as usize] == area)
                    .collect(),
            };
            for &id in &ids {
                field.write(&mut self.neurons, id as usize);
            }
            changed.extend(ids);
        }
        changed.sort_unstable();
        changed.dedup();
        let parameters: Vec<_> = changed
            .into_iter()
            .map(|id| Ok((id, self.network.parameters_of(&self.neurons, id)?)))
            .collect::<Result<_>>()?;
        self.parameters_changed = true;
        if let Some(journal) = &mut self.journal {
            journal.push(Entry::Parameters(parameters.clone()));
        }
        self.backend.set_parameters(&parameters)
    }

    fn record(&mut self, result: &BurstResult) -> Result<()> {
        self.totals.bursts += 1;
        self.totals.spikes += result.fired.len() as u64;
        self.totals.counts += result.counts;
        if let Some((bursts, ids)) = &mut self.spikes {
            bursts.extend(std::iter::repeat_n(result.burst, result.fired.len()));
            ids.extend(result.fired.iter().map(|spike| spike.id));
        }
        for sampler in &mut self.samplers {
            sampler.record(result.burst, &result.fired);
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.record(result.burst, &result.fired);
        }
        self.apply_rules(result)
    }
}
