//! Plasticity: rules that change weights between bursts from the spikes of the past ones.
//!
//! A change computed after burst b takes effect in burst b + 1. Rules compute with whole numbers, so their results are the same
//! on every machine. Weights stay in 0..=255. A synapse of weight 0 stays and still touches its target, unless the rule prunes.
//! Synapses that a rule removes or creates enter the log of structural edits ([`edits`](super::edits)).

use super::backend::{BurstResult, WeightChange};
use super::edits::{EditLog, NewSynapse};
use super::ledger::{FireLedger, MAX_PLASTICITY_WINDOW};
use super::network::Network;
use super::recovery::Entry;
use super::simulation::Simulation;
use super::state::Spike;
use super::synapses::INHIBITORY;
use crate::{Error, Result};

/// The synapses that [`PlasticityRule::AreaWindow`] creates; their weight is the rule's `increase`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SynapseCreation {
    /// The postsynaptic potential.
    pub psp: u8,
    /// 0 excitatory, 1 inhibitory.
    pub kind: u8,
    /// The most synapses that the rule creates after one burst, at least 1: the first in ascending order of source and target. The
    /// others follow after later bursts, while their neurons go on firing.
    pub most: u32,
}

/// A rule for the synapses from one area to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PlasticityRule {
    /// Counts in how many of the last `window` bursts both ends of a synapse fired: in all of them the weight grows by
    /// `increase`, in some but not all it falls by `decrease`. The rule starts once `window` bursts have passed.
    ///
    /// A rule that creates or removes synapses after a burst has the network built and loaded anew before the next one.
    AreaWindow {
        /// Area of the sources.
        source_area: u32,
        /// Area of the targets.
        target_area: u32,
        /// Bursts to look back, the last one included.
        window: usize,
        /// Growth of the weight.
        increase: u8,
        /// Loss of the weight.
        decrease: u8,
        /// Removes a synapse that falls and then has weight 0.
        prune: bool,
        /// Creates a synapse from a source to a target, not itself, that has none where both fired in all of the window.
        create: Option<SynapseCreation>,
    },
    /// Pair-based spike-timing-dependent plasticity with nearest spikes. If the target fires `d` bursts after the source's
    /// latest earlier spike, the weight grows by `255 * a_plus * exp(-d * burst_ms / tau_plus_ms)`; if the source fires
    /// `d` bursts after the target's latest earlier spike, it falls by the same with `a_minus` and `tau_minus_ms`. Each
    /// change is rounded to a whole number, ties to even. Spikes in the same burst do not pair with each other; a growth is
    /// applied before a loss of the same burst.
    SpikeTiming {
        /// Area of the sources.
        source_area: u32,
        /// Area of the targets.
        target_area: u32,
        /// Growth at no distance, as a part of the largest weight, such as 0.01.
        a_plus: f64,
        /// Loss at no distance, such as 0.012.
        a_minus: f64,
        /// Time constant of the growth in milliseconds, such as 20.
        tau_plus_ms: f64,
        /// Time constant of the loss in milliseconds, such as 20.
        tau_minus_ms: f64,
        /// Duration of a burst in milliseconds.
        burst_ms: f64,
    },
}

/// A rule with the tables and the spike times that it needs.
#[derive(Debug, Clone)]
pub(super) struct ActiveRule {
    rule: PlasticityRule,
    /// Of [`PlasticityRule::SpikeTiming`]: the change by distance in bursts, from 1.
    growth: Vec<u8>,
    loss: Vec<u8>,
    /// The latest spike of each neuron, 0 for none.
    last_spike: Vec<u64>,
    /// Synapses by target: row starts, then synapse and source.
    incoming_rows: Vec<u64>,
    incoming: Vec<(u64, u32)>,
}

impl ActiveRule {
    /// Checks a rule and prepares it. `ledger` gives the spikes of a run that continues.
    pub(super) fn new(rule: PlasticityRule, network: &Network, ledger: &FireLedger) -> Result<ActiveRule> {
        const OPERATION: &str = "a plasticity rule";
        let (PlasticityRule::AreaWindow { source_area, target_area, .. }
        | PlasticityRule::SpikeTiming { source_area, target_area, .. }) = rule;
        let areas = network.areas().len();
        if let Some(area) = [source_area, target_area].into_iter().find(|&area| area as usize >= areas) {
            return Err(Error::invalid(OPERATION, format!("area {area}"), format!("an area below {areas}")));
        }
        let mut active = ActiveRule {
            rule,
            growth: Vec::new(),
            loss: Vec::new(),
            last_spike: Vec::new(),
            incoming_rows: Vec::new(),
            incoming: Vec::new(),
        };
        match rule {
            PlasticityRule::AreaWindow { window, increase, create, .. } => {
                if window == 0 || window > MAX_PLASTICITY_WINDOW {
                    let wanted = format!("1 to {MAX_PLASTICITY_WINDOW}");
                    return Err(Error::invalid(OPERATION, format!("a window of {window} bursts"), wanted));
                }
                if let Some(SynapseCreation { kind, most, .. }) = create {
                    if kind > 1 {
                        return Err(Error::invalid(OPERATION, format!("synapse kind {kind}"), "0 or 1"));
                    }
                    if most == 0 || increase == 0 {
                        let found = format!("at most {most} new synapses of weight {increase}");
                        return Err(Error::invalid(OPERATION, found, "1 or more, of a weight above 0"));
                    }
                }
            }
            PlasticityRule::SpikeTiming { a_plus, a_minus, tau_plus_ms, tau_minus_ms, burst_ms, .. } => {
                for (name, value) in [("a_plus", a_plus), ("a_minus", a_minus)] {
                    if !(0.0..=1.0).contains(&value) {
                        return Err(Error::invalid(OPERATION, format!("{name} {value}"), "0 to 1"));
                    }
                }
                let times =
                    [("tau_plus_ms", tau_plus_ms), ("tau_minus_ms", tau_minus_ms), ("burst_ms", burst_ms)];
                for (name, value) in times {
                    if !(value > 0.0 && value.is_finite()) {
                        return Err(Error::invalid(
                            OPERATION,
                            format!("{name} {value}"),
                            "a finite number above 0",
                        ));
                    }
                }
                active.growth = changes_by_distance(a_plus, burst_ms / tau_plus_ms);
                active.loss = changes_by_distance(a_minus, burst_ms / tau_minus_ms);
                active.index(network);
                active.last_spike = vec![0; network.len()];
                for burst in ledger.bursts() {
                    for id in ledger.fired(burst)? {
                        active.last_spike[id as usize] = burst;
                    }
                }
            }
        }
        Ok(active)
    }

    /// Returns the bursts of history from which the rule continues.
    pub(super) fn window(&self) -> usize {
        match self.rule {
            PlasticityRule::AreaWindow { window, .. } => window,
            PlasticityRule::SpikeTiming { .. } => self.growth.len().max(self.loss.len()).max(1),
        }
    }

    /// Forgets the spikes of the past.
    pub(super) fn forget(&mut self) {
        self.last_spike.fill(0);
    }

    /// Renews the tables of synapses.
    pub(super) fn index(&mut self, network: &Network) {
        let PlasticityRule::SpikeTiming { source_area, target_area, .. } = self.rule else { return };
        let synapses = network.synapses();
        let area = |id: u32| network.parameters()[id as usize].area;
        let sources = || (0..network.len() as u32).filter(|&source| area(source) == source_area);
        let mut starts = vec![0u64; network.len() + 1];
        for source in sources() {
            for target in &synapses.targets()[synapses.row(source)] {
                let target = target & !INHIBITORY;
                starts[target as usize + 1] += u64::from(area(target) == target_area);
            }
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        self.incoming = vec![(0, 0); starts.last().map_or(0, |count| *count as usize)];
        for source in sources() {
            for synapse in synapses.row(source) {
                let target = synapses.targets()[synapse] & !INHIBITORY;
                if area(target) == target_area {
                    let at = &mut next[target as usize];
                    self.incoming[*at as usize] = (synapse as u64, source);
                    *at += 1;
                }
            }
        }
        self.incoming_rows = starts;
    }

    /// Computes the changes after a burst and applies them to `outcome`. The ledger already holds the burst.
    fn apply(
        &mut self,
        network: &Network,
        ledger: &FireLedger,
        burst: u64,
        fired: &[Spike],
        outcome: &mut Outcome<'_>,
    ) {
        let Outcome { weights, changes, prunable, edits } = outcome;
        let synapses = network.synapses();
        let area = |id: u32| network.parameters()[id as usize].area;
        let mut change = |synapse: usize, growth: u8, loss: u8| {
            let old = weights[synapse] as u8;
            let new = old.saturating_add(growth).saturating_sub(loss);
            if new != old {
                weights[synapse] = weights[synapse] & 0xff00 | u16::from(new);
                changes.push(WeightChange { synapse: synapse as u64, weight: new });
            }
        };
        match self.rule {
            PlasticityRule::AreaWindow {
                source_area,
                target_area,
                window,
                increase,
                decrease,
                prune,
                create,
            } => {
                if ledger.len() < window {
                    return;
                }
                for source in ledger.active(window).into_iter().filter(|&id| area(id) == source_area) {
                    for synapse in synapses.row(source) {
                        let target = synapses.targets()[synapse] & !INHIBITORY;
                        if area(target) == target_area {
                            match ledger.fired_together(window, source, target) {
                                0 => {}
                                together if together == window => change(synapse, increase, 0),
                                _ => {
                                    change(synapse, 0, decrease);
                                    if prune {
                                        prunable.push(synapse as u64);
                                    }
                                }
                            }
                        }
                    }
                }
                if let Some(creation) = create {
                    let steady = ledger.steady(window);
                    let [sources, targets] = [source_area, target_area].map(|wanted| {
                        let of_area = |&id: &u32| area(id) == wanted && !edits.is_removed(network, id);
                        steady.iter().copied().filter(of_area).collect::<Vec<u32>>()
                    });
                    create_missing(network, &sources, &targets, increase, creation, edits);
                }
            }
            PlasticityRule::SpikeTiming { source_area, target_area, .. } => {
                let by_distance = |table: &[u8], last: u64| match last {
                    0 => 0,
                    last => table.get((burst - last - 1) as usize).copied().unwrap_or(0),
                };
                for spike in fired.iter().filter(|spike| area(spike.id) == target_area) {
                    let rows = &self.incoming_rows[spike.id as usize..];
                    for &(synapse, source) in &self.incoming[rows[0] as usize..rows[1] as usize] {
                        change(
                            synapse as usize,
                            by_distance(&self.growth, self.last_spike[source as usize]),
                            0,
                        );
                    }
                }
                for spike in fired.iter().filter(|spike| area(spike.id) == source_area) {
                    for synapse in synapses.row(spike.id) {
                        let target = synapses.targets()[synapse] & !INHIBITORY;
                        if area(target) == target_area {
                            change(synapse, 0, by_distance(&self.loss, self.last_spike[target as usize]));
                        }
                    }
                }
                for spike in fired {
                    self.last_spike[spike.id as usize] = burst;
                }
            }
        }
    }
}

/// The effects of the rules of a simulation after one burst.
struct Outcome<'a> {
    weights: &'a mut [u16],
    changes: Vec<WeightChange>,
    /// Synapses that fell and are removed if their weight is 0 after all rules.
    prunable: Vec<u64>,
    edits: &'a mut EditLog,
}

/// Creates the first missing synapses from sources to targets, both ascending. Each pair that is looked at either has a synapse or
/// gets one, but for a neuron with itself, so the work is bounded by the rows of the sources and the number of new synapses.
fn create_missing(
    network: &Network,
    sources: &[u32],
    targets: &[u32],
    weight: u8,
    creation: SynapseCreation,
    edits: &mut EditLog,
) {
    let SynapseCreation { psp, kind, most } = creation;
    let mut left = most;
    for &source in sources {
        for &target in targets {
            if source != target && !edits.has_synapse(network, source, target) {
                edits.create(source, target, NewSynapse { weight, psp, inhibitory: kind == 1 });
                left -= 1;
                if left == 0 {
                    return;
                }
            }
        }
    }
}

impl Simulation {
    /// Applies the rules after a burst.
    pub(super) fn apply_rules(&mut self, result: &BurstResult) -> Result<()> {
        let (Some(ledger), Some(weights)) = (&self.ledger, &mut self.weights) else { return Ok(()) };
        let edits = &mut self.edits;
        let mut outcome = Outcome { weights, changes: Vec::new(), prunable: Vec::new(), edits };
        for rule in &mut self.rules {
            rule.apply(&self.network, ledger, result.burst, &result.fired, &mut outcome);
        }
        let Outcome { weights, mut changes, prunable, edits } = outcome;
        for synapse in prunable {
            if weights[synapse as usize] as u8 == 0 {
                edits.prune(synapse);
            }
        }
        // One change per synapse, the last one: a device applies them in any order.
        changes.sort_unstable_by_key(|change| change.synapse);
        changes.dedup_by_key(|change| change.synapse);
        for change in &mut changes {
            change.weight = weights[change.synapse as usize] as u8;
        }
        if changes.is_empty() {
            return Ok(());
        }
        if let Some(journal) = &mut self.journal {
            journal.push(Entry::Weights(changes.clone()));
        }
        self.backend.set_weights(&changes)
    }

    /// Changes weights of synapses, by their positions in [`Synapses::row`](super::Synapses::row), from the next burst on. Of several
    /// changes of one synapse the last one counts. Rules go on from the new weights.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a position that is no synapse; the errors of the backend. Nothing is changed then.
    pub fn set_weights(&mut self, changes: &[WeightChange]) -> Result<()> {
        self.check_loaded()?;
        let synapses = self.network.synapses().len();
        if let Some(change) = changes.iter().find(|change| change.synapse >= synapses as u64) {
            let (found, wanted) =
                (format!("synapse {}", change.synapse), format!("a synapse below {synapses}"));
            return Err(Error::invalid("setting weights", found, wanted));
        }
        // One change per synapse, the last one: a device applies them in any order.
        let mut last = changes.to_vec();
        last.reverse();
        last.sort_by_key(|change| change.synapse);
        last.dedup_by_key(|change| change.synapse);
        self.backend.set_weights(&last)?;
        if let Some(weights) = &mut self.weights {
            for change in &last {
                let weight = &mut weights[change.synapse as usize];
                *weight = *weight & 0xff00 | u16::from(change.weight);
            }
        }
        if let Some(journal) = &mut self.journal {
            journal.push(Entry::Weights(last));
        }
        Ok(())
    }
}

/// Returns the rounded changes at distances 1, 2, … up to the last that is not 0.
fn changes_by_distance(amplitude: f64, rate: f64) -> Vec<u8> {
    let per_burst = exp_negative(rate);
    let (mut factor, mut changes) = (255.0 * amplitude, Vec::new());
    for _ in 0..MAX_PLASTICITY_WINDOW {
        factor *= per_burst;
        match factor.round_ties_even() as u8 {
            0 => break,
            change => changes.push(change),
        }
    }
    changes
}

/// Returns `exp(-x)` by additions, multiplications and divisions alone: the standard library's differs between platforms
/// in the last bit.
fn exp_negative(x: f64) -> f64 {
    // exp(x) = exp(x / 2^k)^(2^k), where the power series of the reduced argument converges at once.
    let (mut reduced, mut halvings) = (x, 0);
    while reduced > 1.0 / 1024.0 && halvings < 2000 {
        reduced /= 2.0;
        halvings += 1;
    }
    let (mut term, mut sum) = (1.0, 1.0);
    for order in 1..8 {
        term *= reduced / f64::from(order);
        sum += term;
    }
    for _ in 0..halvings {
        sum *= sum;
    }
    1.0 / sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_right_to_rounding() {
        for x in [1e-9, 0.001, 0.05, 0.5, 1.0, 7.3, 40.0] {
            assert!((exp_negative(x) / (-x).exp() - 1.0).abs() < 1e-9, "{x}");
        }
        assert_eq!(exp_negative(1e6), 0.0);
    }

    #[test]
    fn changes_fall_with_the_distance_and_end() {
        // 255 * 0.02 * exp(-d / 2): 3.09, 1.88, 1.14, 0.69, 0.42.
        assert_eq!(changes_by_distance(0.02, 0.5), [3, 2, 1, 1]);
        assert!(changes_by_distance(0.0, 0.5).is_empty());
    }
}
