//! Plasticity rules and the fire ledger.

use super::super::arguments::{check_reserved, out, structure};
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::sv_simulation;
use super::super::tensor::flag;
use super::{with_simulation, write_some};
use crate::burst::{FireLedger, MAX_PLASTICITY_WINDOW, PlasticityRule, SynapseCreation};

/// The rule by the last `window` bursts: where both ends of a synapse fired in all of them, its weight grows by `increase`;
/// where they did in some, it falls by `decrease`.
pub const SV_RULE_AREA_WINDOW: i32 = 1;
/// Spike-timing-dependent plasticity with nearest spikes: `a_plus`, `a_minus`, the time constants and `burst_ms`.
pub const SV_RULE_SPIKE_TIMING: i32 = 2;

/// A plasticity rule for the synapses from one area to another.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_plasticity_rule {
    /// The size of the struct in bytes.
    pub size: usize,
    /// `SV_RULE_AREA_WINDOW` or `SV_RULE_SPIKE_TIMING`. The fields of the other one are not read.
    pub kind: i32,
    /// The area of the sources.
    pub source_area: u32,
    /// The area of the targets.
    pub target_area: u32,
    /// Bursts to look back, the last one included, 1 to 1024.
    pub window: u32,
    /// Growth of a weight. One of growth and loss is above 0.
    pub increase: u8,
    /// Loss of a weight.
    pub decrease: u8,
    /// 0.
    pub reserved: [u8; 6],
    /// Growth at no distance, as a part of the largest weight, 0 to 1. One of growth and loss is above 0.
    pub a_plus: f64,
    /// Loss at no distance, 0 to 1.
    pub a_minus: f64,
    /// Time constant of the growth in milliseconds.
    pub tau_plus_ms: f64,
    /// Time constant of the loss in milliseconds.
    pub tau_minus_ms: f64,
    /// Duration of a burst in milliseconds.
    pub burst_ms: f64,
}

/// Synapses that a rule of kind `SV_RULE_AREA_WINDOW` removes and creates.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_rule_edits {
    /// The size of the struct in bytes.
    pub size: usize,
    /// 1 removes a synapse that falls and then has weight 0; otherwise 0.
    pub prune: i32,
    /// 1 creates a synapse from a source to a target, not itself, that has none where both fired in all of the window; otherwise 0.
    /// Its weight is the rule's `increase`, above 0. The fields below are read with 1 alone.
    pub create: i32,
    /// The most synapses that the rule creates after one burst, from 1: the first in ascending order of source and target.
    pub most_created: u32,
    /// Postsynaptic potential of created synapses.
    pub psp: u8,
    /// Kind of created synapses: 0 excitatory, 1 inhibitory.
    pub synapse_kind: u8,
    /// 0.
    pub reserved: [u8; 2],
}

/// Returns the rule of a struct, without edits.
fn rule_of(rule: &sv_plasticity_rule) -> Result<PlasticityRule> {
    for part in rule.reserved {
        check_reserved("rule->reserved", part)?;
    }
    let sv_plasticity_rule { source_area, target_area, .. } = *rule;
    match rule.kind {
        SV_RULE_AREA_WINDOW if (rule.increase, rule.decrease) == (0, 0) => Err(Failure::argument(
            "rule->increase and rule->decrease",
            "0 and 0",
            "one above 0, which changes weights",
        )),
        SV_RULE_SPIKE_TIMING if (rule.a_plus, rule.a_minus) == (0.0, 0.0) => Err(Failure::argument(
            "rule->a_plus and rule->a_minus",
            "0 and 0",
            "one above 0, which changes weights",
        )),
        SV_RULE_AREA_WINDOW => Ok(PlasticityRule::AreaWindow {
            source_area,
            target_area,
            window: rule.window as usize,
            increase: rule.increase,
            decrease: rule.decrease,
            prune: false,
            create: None,
        }),
        SV_RULE_SPIKE_TIMING => Ok(PlasticityRule::SpikeTiming {
            source_area,
            target_area,
            a_plus: rule.a_plus,
            a_minus: rule.a_minus,
            tau_plus_ms: rule.tau_plus_ms,
            tau_minus_ms: rule.tau_minus_ms,
            burst_ms: rule.burst_ms,
        }),
        other => Err(Failure::argument("rule->kind", other, "one of SV_RULE_...")),
    }
}

/// Adds a plasticity rule. Rules apply between bursts in the order in which they were added. The simulation keeps a ledger from
/// now on, as long as the longest window among the rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_add_rule(
    simulation: sv_simulation,
    rule: *const sv_plasticity_rule,
) -> i32 {
    guard::call("sv_simulation_add_rule", || {
        let rule = rule_of(structure(rule, "rule")?)?;
        with_simulation(simulation, move |simulation| Ok(simulation.add_rule(rule)?))
    })
}

/// As `sv_simulation_add_rule` with a rule of kind `SV_RULE_AREA_WINDOW` that also removes or creates synapses. After a burst in
/// which it does, the next burst loads the network anew.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_add_rule_with_edits(
    simulation: sv_simulation,
    rule: *const sv_plasticity_rule,
    edits: *const sv_rule_edits,
) -> i32 {
    guard::call("sv_simulation_add_rule_with_edits", || {
        let (rule, edits) = (structure(rule, "rule")?, structure(edits, "edits")?);
        for part in edits.reserved {
            check_reserved("edits->reserved", part)?;
        }
        let sv_rule_edits { psp, synapse_kind: kind, most_created: most, .. } = *edits;
        let no_edits = || Failure::argument("rule->kind", rule.kind, "SV_RULE_AREA_WINDOW, as it has edits");
        if rule.kind == SV_RULE_SPIKE_TIMING {
            return Err(no_edits());
        }
        let mut added = rule_of(rule)?;
        let PlasticityRule::AreaWindow { prune, create, .. } = &mut added else { return Err(no_edits()) };
        *prune = flag(edits.prune, "edits->prune")?;
        *create = flag(edits.create, "edits->create")?.then_some(SynapseCreation { psp, kind, most });
        with_simulation(simulation, move |simulation| Ok(simulation.add_rule(added)?))
    })
}

/// Keeps a ledger of the spikes of the last `window` bursts from now on, 1 to 1024. An existing ledger only grows.
#[unsafe(no_mangle)]
pub extern "C" fn sv_simulation_keep_ledger(simulation: sv_simulation, window: u32) -> i32 {
    guard::call("sv_simulation_keep_ledger", || {
        let window = window as usize;
        if !(1..=MAX_PLASTICITY_WINDOW).contains(&window) {
            return Err(Failure::argument("window", window, &format!("1 to {MAX_PLASTICITY_WINDOW}")));
        }
        with_simulation(simulation, move |simulation| Ok(simulation.keep_ledger(window)?))
    })
}

fn ledger(ledger: Option<&FireLedger>) -> Result<&FireLedger> {
    let wanted = "one with a ledger (see sv_simulation_keep_ledger)";
    ledger.ok_or_else(|| Failure::argument("simulation", "a simulation without a ledger", wanted))
}

/// Writes the numbers of the first and the last burst in the ledger. The first is larger where it has none yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_ledger_bursts(
    simulation: sv_simulation,
    first: *mut u64,
    last: *mut u64,
) -> i32 {
    guard::call("sv_simulation_ledger_bursts", || {
        let (first, last) = (out(first, "first")?, out(last, "last")?);
        let bursts = with_simulation(simulation, |simulation| Ok(ledger(simulation.ledger())?.bursts()))?;
        first.write(*bursts.start());
        last.write(*bursts.end());
        Ok(())
    })
}

/// Writes the neurons that fired in burst number `number` by the ledger, ascending.
///
/// `count` gets their number; `ids` gets the first `capacity` of them.
///
/// # Safety
///
/// `ids` points to `capacity` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_ledger_fired(
    simulation: sv_simulation,
    number: u64,
    ids: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    guard::call("sv_simulation_ledger_fired", || {
        let count = out(count, "count")?;
        let fired =
            with_simulation(simulation, move |simulation| Ok(ledger(simulation.ledger())?.fired(number)?))?;
        write_some(&fired, ids, capacity, "ids")?;
        count.write(fired.len());
        Ok(())
    })
}
