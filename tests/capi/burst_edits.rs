//! Synapses and neurons that are created and removed in mid-run.

use selvedge::capi::burst::edit::*;

use super::*;

/// The row pointers and the number of removed neurons of a simulation's network.
fn rows(simulation: u64, neurons: usize, synapses: usize) -> (Vec<u64>, Vec<u32>) {
    // SAFETY: the arrays have the elements of the call.
    unsafe {
        let network = ok(|result| sv_simulation_network(simulation, result));
        let (mut starts, mut targets) = (vec![0; neurons + 1], vec![0; synapses]);
        check(sv_network_rows(network, starts.as_mut_ptr(), neurons + 1, targets.as_mut_ptr(), synapses));
        let (mut removed, mut count) = ([9; 2], 0);
        check(sv_network_removed(network, removed.as_mut_ptr(), 2, &mut count));
        check(sv_release(network));
        (starts, removed[..count].to_vec())
    }
}

#[test]
fn edits_apply_from_the_next_burst_on() {
    let network = create(&ARRAYS);
    let simulation = simulate(network, &OPTIONS);
    let (source, target, weight, psp, inhibitory) = ([0, 1], [1, 0], [6, 1], [10, 1], [0, 1]);
    let (ends, values) = ((source.as_ptr(), target.as_ptr()), (weight.as_ptr(), psp.as_ptr()));
    let created = |kind, count| {
        // SAFETY: the arrays have two elements.
        unsafe { sv_simulation_create_synapses(simulation, ends.0, ends.1, values.0, values.1, kind, count) }
    };
    check(created(inhibitory.as_ptr(), 2));
    fails(created(null(), 1), SV_ERROR_INVALID_ARGUMENT, "a second synapse from 0 to 1");
    // SAFETY: as above.
    unsafe {
        check(sv_simulation_remove_synapses(simulation, ends.0, ends.1, 1));
        let status = sv_simulation_remove_synapses(simulation, ends.0, ends.1, 2);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "no synapse from 0 to 1");
    }
    check(created(null(), 1));
    inject(simulation, &[(0, 2.0)]);
    check(sv_simulation_run(simulation, 2));
    assert_eq!(fired(simulation), (vec![1], vec![60.0]));
    assert_eq!(rows(simulation, 2, 2), (vec![0, 1, 2], vec![]));
    let mut weights = [0; 2];
    // SAFETY: as above.
    unsafe {
        check(sv_simulation_weights(simulation, weights.as_mut_ptr(), 2));
        assert_eq!(weights, [6 | 10 << 8, 1 | 1 << 8]);
        check(sv_simulation_remove_neurons(simulation, target.as_ptr(), 1));
        let status = sv_simulation_remove_neurons(simulation, target.as_ptr(), 2);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "neuron 1, which was removed");
        let status = sv_simulation_inject(simulation, target.as_ptr(), [1.0].as_ptr(), 1);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "id 1, which was removed");
    }
    check(sv_simulation_run(simulation, 1));
    assert_eq!(rows(simulation, 2, 0), (vec![0, 0, 0], vec![1]));
    check(sv_release(simulation));
    check(sv_release(network));
}

#[test]
fn a_rule_creates_and_prunes_synapses() {
    let network = create(&ARRAYS);
    let simulation = simulate(network, &OPTIONS);
    // SAFETY: plain numbers; all zeros is a value.
    let mut rule: sv_plasticity_rule = unsafe { std::mem::zeroed() };
    (rule.size, rule.kind) = (size_of::<sv_plasticity_rule>(), SV_RULE_AREA_WINDOW);
    (rule.window, rule.increase, rule.decrease) = (1, 5, 9);
    let edits = sv_rule_edits {
        size: size_of::<sv_rule_edits>(),
        prune: 1,
        create: 1,
        most_created: 1,
        psp: 3,
        synapse_kind: 1,
        reserved: [0; 2],
    };
    // SAFETY: the pointers are to locals.
    let add = |rule: sv_plasticity_rule, edits: sv_rule_edits| unsafe {
        sv_simulation_add_rule_with_edits(simulation, &rule, &edits)
    };
    for (rule, edits, wanted) in [
        (rule, sv_rule_edits { prune: 2, ..edits }, "edits->prune: found 2"),
        (rule, sv_rule_edits { create: -1, ..edits }, "edits->create: found -1"),
        (rule, sv_rule_edits { reserved: [0, 1], ..edits }, "edits->reserved: found 1"),
        (rule, sv_rule_edits { synapse_kind: 2, ..edits }, "synapse kind 2"),
        (rule, sv_rule_edits { most_created: 0, ..edits }, "at most 0 new synapses"),
        (sv_plasticity_rule { kind: SV_RULE_SPIKE_TIMING, ..rule }, edits, "SV_RULE_AREA_WINDOW"),
    ] {
        fails(add(rule, edits), SV_ERROR_INVALID_ARGUMENT, wanted);
    }
    check(add(rule, edits));
    inject(simulation, &[(0, 2.0), (1, 2.0)]);
    check(sv_simulation_run(simulation, 1));
    inject(simulation, &[(0, 99.0)]);
    check(sv_simulation_run(simulation, 1));
    // One of the two pairs, and not anew where one side fires.
    assert_eq!(rows(simulation, 2, 1).0, [0, 1, 1]);
    assert_eq!(counters(simulation).events, 1);
    check(sv_release(simulation));
    check(sv_release(network));
}
