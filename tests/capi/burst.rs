//! Spiking networks through the C ABI on the CPU: the worked example, a golden hash, and every function once.

use std::ffi::CString;
use std::ptr::{null, null_mut};

use selvedge::capi::burst::network::*;
use selvedge::capi::burst::population::*;
use selvedge::capi::burst::recording::*;
use selvedge::capi::burst::rule::*;
use selvedge::capi::burst::simulation::*;
use selvedge::capi::burst::state::*;
use selvedge::capi::burst::{SV_AUTO, sv_simulation_options};
use selvedge::capi::library::sv_release;
use selvedge::capi::status::*;

use super::{CPU, check, fails, ok};

#[path = "burst_areas.rs"]
mod areas;
#[path = "burst_devices.rs"]
mod devices;
#[path = "burst_edits.rs"]
mod edits;
#[path = "burst_runner.rs"]
mod runner;

const OPTIONS: sv_simulation_options = sv_simulation_options {
    size: size_of::<sv_simulation_options>(),
    device: CPU,
    threads: 1,
    seed: 0,
    shards: 0,
};

/// Two neurons without synapses, with the defaults of every field.
const ARRAYS: sv_network_arrays = sv_network_arrays {
    size: size_of::<sv_network_arrays>(),
    neurons: 2,
    threshold: null(),
    threshold_max: null(),
    leak: null(),
    rest: null(),
    refractory: null(),
    excitability: null(),
    fire_limit: null(),
    snooze: null(),
    accumulates: null(),
    neuron_kind: null(),
    area: null(),
    position: null(),
    area_count: 0,
    areas: null(),
    synapses: 0,
    source: null(),
    target: null(),
    weight: null(),
    psp: null(),
    synapse_kind: null(),
};

const COUNTERS: sv_burst_counters = sv_burst_counters {
    size: size_of::<sv_burst_counters>(),
    bursts: 0,
    spikes: 0,
    events: 0,
    injections: 0,
    candidates: 0,
    blocked: 0,
};

fn create(arrays: &sv_network_arrays) -> u64 {
    // SAFETY: the pointers are to locals of the callers.
    ok(|result| unsafe { sv_network_create(arrays, result) })
}

fn simulate(network: u64, options: &sv_simulation_options) -> u64 {
    // SAFETY: as above.
    ok(|result| unsafe { sv_simulation_create(network, options, result) })
}

fn generated(neurons: u32, degree: u32) -> u64 {
    // SAFETY: as above.
    ok(|result| unsafe { sv_network_g(neurons, degree, result) })
}

fn inject(simulation: u64, inputs: &[(u32, f32)]) {
    let (ids, potentials): (Vec<u32>, Vec<f32>) = inputs.iter().copied().unzip();
    // SAFETY: both arrays have as many elements as there are inputs.
    check(unsafe { sv_simulation_inject(simulation, ids.as_ptr(), potentials.as_ptr(), inputs.len()) });
}

fn fired(simulation: u64) -> (Vec<u32>, Vec<f32>) {
    let mut count = 0;
    // SAFETY: the arrays have the elements that the first call counts.
    unsafe {
        check(sv_simulation_fired(simulation, null_mut(), null_mut(), 0, &mut count));
        let (mut ids, mut potentials) = (vec![0; count], vec![0.0; count]);
        check(sv_simulation_fired(simulation, ids.as_mut_ptr(), potentials.as_mut_ptr(), count, &mut count));
        (ids, potentials)
    }
}

fn counters(simulation: u64) -> sv_burst_counters {
    let mut counters = COUNTERS;
    // SAFETY: the pointer is to a local.
    check(unsafe { sv_simulation_counters(simulation, &mut counters) });
    counters
}

fn totals(simulation: u64) -> sv_burst_counters {
    let mut totals = COUNTERS;
    // SAFETY: the pointer is to a local.
    check(unsafe { sv_simulation_totals(simulation, &mut totals) });
    totals
}

fn state(simulation: u64, neurons: usize) -> (Vec<f32>, Vec<u16>, Vec<u16>) {
    let (mut potentials, mut left, mut counts) = (vec![0.0; neurons], vec![0; neurons], vec![0; neurons]);
    let (first, second, third) = (potentials.as_mut_ptr(), left.as_mut_ptr(), counts.as_mut_ptr());
    // SAFETY: the arrays have this many elements.
    check(unsafe { sv_simulation_state(simulation, first, second, third, neurons) });
    (potentials, left, counts)
}

fn state_hash(simulation: u64) -> u64 {
    // SAFETY: the pointer is to a local.
    ok(|hash| unsafe { sv_simulation_state_hash(simulation, hash) })
}

/// Runs bursts with the input of a generated network, and returns the spike hash of them.
fn drive(network: u64, simulation: u64, bursts: std::ops::RangeInclusive<u32>) -> u64 {
    let mut hash = SV_SPIKE_HASH_START;
    for burst in bursts {
        let (mut ids, mut potentials, mut count) = (vec![0; 1000], vec![0.0; 1000], 0);
        // SAFETY: the arrays have 1000 elements.
        unsafe {
            let (first, second) = (ids.as_mut_ptr(), potentials.as_mut_ptr());
            check(sv_network_input(network, burst, first, second, 1000, &mut count));
            check(sv_simulation_inject(simulation, ids.as_ptr(), potentials.as_ptr(), count));
        }
        check(sv_simulation_run(simulation, 1));
        let (ids, potentials) = fired(simulation);
        // SAFETY: both arrays have the same length.
        check(unsafe { sv_spike_hash_add(burst, ids.as_ptr(), potentials.as_ptr(), ids.len(), &mut hash) });
    }
    hash
}

/// A file that its test removes.
struct TemporaryFile(CString);

impl TemporaryFile {
    fn new(name: &str) -> TemporaryFile {
        let path = std::env::temp_dir().join(format!("selvedge-capi-{}-{name}", std::process::id()));
        TemporaryFile(CString::new(path.to_str().unwrap()).unwrap())
    }

    fn as_ptr(&self) -> *const std::ffi::c_char {
        self.0.as_ptr()
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0.to_str().unwrap());
    }
}

#[test]
fn the_worked_example_holds_on_every_device() {
    let threshold = [1.0, 100.0, 50.0, 60.0, 70.0];
    let infinite = f32::INFINITY;
    let threshold_max = [infinite, infinite, infinite, infinite, 150.0];
    let (leak, rest) = ([0.0, 0.5, 0.0, 0.0, 0.25], [0.0, 10.0, 0.0, 0.0, 0.0]);
    let (refractory, excitability) = ([0, 0, 1, 0, 0], [1.0, 1.0, 1.0, 1.0, 0.5]);
    let (fire_limit, snooze, accumulates) = ([0, 0, 2, 0, 0], [0, 0, 2, 0, 0], [1, 1, 1, 0, 0]);
    let (source, target) = ([3, 0, 2, 0, 1, 0], [4, 3, 3, 1, 4, 2]);
    let (weight, psp, kind) = ([8, 6, 6, 6, 10, 6], [10; 6], [0, 0, 1, 0, 0, 0]);
    let arrays = sv_network_arrays {
        neurons: 5,
        threshold: threshold.as_ptr(),
        threshold_max: threshold_max.as_ptr(),
        leak: leak.as_ptr(),
        rest: rest.as_ptr(),
        refractory: refractory.as_ptr(),
        excitability: excitability.as_ptr(),
        fire_limit: fire_limit.as_ptr(),
        snooze: snooze.as_ptr(),
        accumulates: accumulates.as_ptr(),
        synapses: 6,
        source: source.as_ptr(),
        target: target.as_ptr(),
        weight: weight.as_ptr(),
        psp: psp.as_ptr(),
        synapse_kind: kind.as_ptr(),
        ..ARRAYS
    };
    let network = create(&arrays);
    let wanted: [&[(u32, f32)]; 12] = [
        &[(0, 2.0)],
        &[(0, 2.0), (2, 60.0), (3, 60.0)],
        &[(0, 2.0), (1, 100.0)],
        &[(0, 2.0), (2, 60.0), (3, 60.0), (4, 100.0)],
        &[(0, 2.0), (1, 100.0), (4, 80.0)],
        &[(0, 2.0), (3, 60.0), (4, 100.0)],
        &[(0, 2.0), (1, 100.0), (3, 60.0)],
        &[(0, 2.0), (2, 60.0), (3, 60.0)],
        &[(0, 2.0), (1, 100.0), (4, 80.0)],
        &[(2, 60.0), (3, 60.0), (4, 100.0)],
        &[],
        &[],
    ];
    for (device, threads, shards) in [(CPU, 1, 0), (CPU, 0, 1), (CPU, 1, 3), (SV_AUTO, 2, 0)] {
        let simulation = simulate(network, &sv_simulation_options { device, threads, shards, ..OPTIONS });
        for (at, wanted) in wanted.iter().enumerate() {
            match at {
                ..=8 => inject(simulation, &[(0, 2.0)]),
                10 => inject(simulation, &[(4, 0.0625)]),
                _ => {}
            }
            check(sv_simulation_run(simulation, 1));
            let (ids, potentials) = fired(simulation);
            let found: Vec<(u32, f32)> = ids.into_iter().zip(potentials).collect();
            assert_eq!(found, *wanted, "burst {}", at + 1);
        }
        assert_eq!(
            state(simulation, 5),
            (vec![0.0, 40.0, 0.0, -60.0, 60.046_497], vec![0, 0, 3, 0, 0], vec![0, 0, 2, 0, 0])
        );
        let sums = totals(simulation);
        assert_eq!((sums.bursts, sums.spikes, sums.events, sums.injections), (12, 28, 41, 10));
        assert_eq!(counters(simulation).bursts, 12);
        check(sv_release(simulation));
    }
    let (mut rows, mut targets) = ([0; 6], [0; 6]);
    // SAFETY: the arrays have these lengths.
    unsafe {
        check(sv_network_rows(network, rows.as_mut_ptr(), 6, targets.as_mut_ptr(), 6));
        let short = sv_network_rows(network, rows.as_mut_ptr(), 5, targets.as_mut_ptr(), 6);
        fails(short, SV_ERROR_LENGTH_MISMATCH, "rows: found 5; wanted 6");
    }
    assert_eq!((rows, targets), ([0, 3, 4, 5, 6, 6], [1, 2, 3, 4, 3 | 1 << 31, 4]));
    check(sv_release(network));
}

#[test]
fn a_generated_network_has_its_golden_hashes() {
    let network = generated(1000, 20);
    let simulation = simulate(network, &sv_simulation_options { seed: 7, threads: 2, ..OPTIONS });
    assert_eq!(drive(network, simulation, 1..=200), 0x7ab2_78ea_f9e8_14ea);
    assert_eq!(state_hash(simulation), 0x5284_7a73_f592_73c2);
    let sums = totals(simulation);
    assert_eq!((sums.spikes, sums.events, sums.blocked), (68_669, 1_366_600, 79_995));
    check(sv_release(simulation));
    check(sv_release(network));
    // SAFETY: the pointer is to a local.
    let steady = ok(|result| unsafe { sv_network_s(10_000, 100, 100, result) });
    let mut count = 0;
    // SAFETY: as above; no element is asked for.
    check(unsafe { sv_network_input(steady, 1, null_mut(), null_mut(), 0, &mut count) });
    assert_eq!(count, 88);
    check(sv_release(steady));
}

#[test]
fn runs_continue_from_files_on_other_devices_and_from_states() {
    let network = generated(1000, 20);
    let options = sv_simulation_options { seed: 7, ..OPTIONS };
    let simulation = simulate(network, &options);
    drive(network, simulation, 1..=20);
    let file = TemporaryFile::new("run.burst");
    // SAFETY: the pointers are to locals.
    let restored = unsafe {
        check(sv_simulation_save(simulation, file.as_ptr()));
        ok(|result| sv_simulation_restore(file.as_ptr(), &options, result))
    };
    assert_eq!((fired(restored), counters(restored).bursts), (fired(simulation), 20));
    let (potentials, left, counts) = state(simulation, 1000);
    let (ids, at) = fired(simulation);
    let given = sv_network_state {
        size: size_of::<sv_network_state>(),
        burst: 20,
        seed: 7,
        reserved: 0,
        neurons: 1000,
        potentials: potentials.as_ptr(),
        refractory_left: left.as_ptr(),
        fire_counts: counts.as_ptr(),
        fired: ids.len(),
        fired_ids: ids.as_ptr(),
        fired_potentials: at.as_ptr(),
    };
    let other = simulate(network, &OPTIONS);
    // SAFETY: the arrays have the lengths in the struct.
    unsafe {
        check(sv_simulation_set_state(other, &given));
        let short = sv_network_state { neurons: 999, ..given };
        let status = sv_simulation_set_state(other, &short);
        fails(status, SV_ERROR_LENGTH_MISMATCH, "state->neurons: found 999; wanted 1000");
        let backwards = [5, 4];
        let unsorted = sv_network_state { fired: 2, fired_ids: backwards.as_ptr(), ..given };
        let status = sv_simulation_set_state(other, &unsorted);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "state->fired_ids: found id 4 after 5");
        check(sv_simulation_move(simulation, &sv_simulation_options { shards: 2, ..options }));
        let status = sv_simulation_recover(simulation, &options);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "no checkpoint");
        let mut name = [0u8; 64];
        check(sv_simulation_device_name(other, name.as_mut_ptr().cast(), 64, null_mut()));
        assert!(name.starts_with(b"CPU"), "{name:?}");
    }
    let hash = drive(network, simulation, 21..=40);
    assert_eq!(hash, drive(network, restored, 21..=40));
    assert_eq!(hash, drive(network, other, 21..=40));
    assert_eq!(state_hash(simulation), state_hash(restored));
    // The network of the file, and a file of the network.
    let again = TemporaryFile::new("network.burst");
    // SAFETY: the pointers are to locals.
    unsafe {
        check(sv_network_write(network, again.as_ptr()));
        for file in [&file, &again] {
            let read = ok(|result| sv_network_read(file.as_ptr(), result));
            let (mut neurons, mut synapses) = (0, 0);
            check(sv_network_size(read, &mut neurons, &mut synapses));
            assert_eq!((neurons, synapses), (1000, 20_000));
            let status = sv_network_input(read, 1, null_mut(), null_mut(), 0, &mut neurons);
            fails(status, SV_ERROR_INVALID_ARGUMENT, "without an input of its own");
            check(sv_release(read));
        }
        let status = sv_network_read(TemporaryFile::new("nothing.npz").as_ptr(), &mut 0);
        fails(status, SV_ERROR_FILE, "nothing.npz");
    }
    for handle in [simulation, restored, other, network] {
        check(sv_release(handle));
    }
}

/// A chain 0 -> 1 in which each spike of 0 fires 1 in the next burst.
fn chain() -> u64 {
    let (source, target, weight, psp) = ([0], [1], [6], [10]);
    create(&sv_network_arrays {
        synapses: 1,
        source: source.as_ptr(),
        target: target.as_ptr(),
        weight: weight.as_ptr(),
        psp: psp.as_ptr(),
        ..ARRAYS
    })
}

#[test]
fn spikes_potentials_and_samples_are_recorded() {
    let network = chain();
    let simulation = simulate(network, &OPTIONS);
    check(sv_simulation_record_spikes(simulation, 1));
    check(sv_simulation_set_power(simulation, 0, 1, 1.0));
    check(sv_simulation_keep_ledger(simulation, 2));
    let (mut sampler, mut count) = (9, 0);
    // SAFETY: the arrays have the given capacities.
    unsafe {
        check(sv_simulation_record_potentials(simulation, [1, 0].as_ptr(), 2));
        check(sv_simulation_add_sampler(simulation, 0, 2, 2, &mut sampler));
        check(sv_simulation_run(simulation, 3));
        let (mut numbers, mut ids) = ([0; 8], [9; 8]);
        check(sv_simulation_spikes(simulation, numbers.as_mut_ptr(), ids.as_mut_ptr(), 8, &mut count));
        assert_eq!((count, &numbers[..5], &ids[..5]), (5, &[1, 2, 2, 3, 3][..], &[0, 0, 1, 0, 1][..]));
        check(sv_simulation_write_spikes(simulation, TemporaryFile::new("spikes.npz").as_ptr()));

        let mut potentials = [9.0; 8];
        check(sv_simulation_potentials(simulation, potentials.as_mut_ptr(), 4, &mut count));
        assert_eq!((count, potentials), (6, [0.0, 0.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0]));

        let (mut number, mut ids, mut potentials) = (0, [9; 2], [0.0; 2]);
        let (first, second) = (ids.as_mut_ptr(), potentials.as_mut_ptr());
        let status =
            sv_simulation_take_snapshot(simulation, sampler, &mut number, first, second, 1, &mut count);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "capacity: found 1; wanted the 2 of the snapshot");
        for wanted in [(3, 2), (0, 0)] {
            let status =
                sv_simulation_take_snapshot(simulation, sampler, &mut number, first, second, 2, &mut count);
            check(status);
            assert_eq!((number, count), wanted);
        }
        assert_eq!((ids, potentials), ([0, 1], [1.0, 60.0]));
        let status = sv_simulation_take_snapshot(simulation, 7, &mut number, first, second, 2, &mut count);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "sampler: found 7; wanted a number below 1");

        let (mut first, mut last) = (0, 0);
        check(sv_simulation_ledger_bursts(simulation, &mut first, &mut last));
        assert_eq!((first, last), (2, 3));
        check(sv_simulation_ledger_fired(simulation, 2, ids.as_mut_ptr(), 2, &mut count));
        assert_eq!((count, ids), (2, [0, 1]));
        let status = sv_simulation_ledger_fired(simulation, 1, ids.as_mut_ptr(), 2, &mut count);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "burst 1");
    }
    check(sv_release(simulation));
    check(sv_release(network));
}

#[test]
fn rules_change_weights_and_parameters_change_between_bursts() {
    let rule = sv_plasticity_rule {
        size: size_of::<sv_plasticity_rule>(),
        kind: SV_RULE_AREA_WINDOW,
        source_area: 0,
        target_area: 0,
        window: 2,
        increase: 5,
        decrease: 1,
        reserved: [0; 6],
        a_plus: 0.0,
        a_minus: 0.0,
        tau_plus_ms: 0.0,
        tau_minus_ms: 0.0,
        burst_ms: 0.0,
    };
    // The target fires one burst after the source's spike: the weight grows by 255 * 0.1 / e, rounded.
    let timing = sv_plasticity_rule {
        kind: SV_RULE_SPIKE_TIMING,
        a_plus: 0.1,
        tau_plus_ms: 1.0,
        tau_minus_ms: 1.0,
        burst_ms: 1.0,
        ..rule
    };
    let network = chain();
    for (rule, bursts, weight) in [(rule, 3, 6 - 1 + 5), (timing, 2, 6 + 9)] {
        let simulation = simulate(network, &OPTIONS);
        check(sv_simulation_set_power(simulation, 0, 1, 1.0));
        // SAFETY: the pointers are to locals.
        unsafe {
            check(sv_simulation_add_rule(simulation, &rule));
            let status = sv_simulation_add_rule(simulation, &sv_plasticity_rule { target_area: 3, ..rule });
            fails(status, SV_ERROR_INVALID_ARGUMENT, "area 3");
            let status = sv_simulation_add_rule(simulation, &sv_plasticity_rule { kind: 0, ..rule });
            fails(status, SV_ERROR_INVALID_ARGUMENT, "rule->kind: found 0");
            let without = sv_plasticity_rule { increase: 0, decrease: 0, a_plus: 0.0, a_minus: 0.0, ..rule };
            let status = sv_simulation_add_rule(simulation, &without);
            fails(status, SV_ERROR_INVALID_ARGUMENT, "found 0 and 0; wanted one above 0");
            check(sv_simulation_run(simulation, bursts));
            let mut weights = [0];
            check(sv_simulation_weights(simulation, weights.as_mut_ptr(), 1));
            assert_eq!(weights[0], weight | 10 << 8, "rule {}", rule.kind);
        }
        check(sv_release(simulation));
    }
    let simulation = simulate(network, &OPTIONS);
    check(sv_simulation_set_power(simulation, 0, 1, 1.0));
    check(sv_simulation_set_parameter(simulation, SV_NEURON_THRESHOLD, 1, 2, 61.0));
    check(sv_simulation_run(simulation, 2));
    assert_eq!(fired(simulation).0, [0]);
    check(sv_simulation_set_area_parameter(simulation, SV_NEURON_REFRACTORY, 0, 3.0));
    check(sv_simulation_set_dense(simulation, 1));
    check(sv_simulation_run(simulation, 2));
    assert_eq!((fired(simulation).0.len(), counters(simulation).candidates), (0, 2));
    let status = sv_simulation_set_parameter(simulation, SV_NEURON_SNOOZE, 0, 1, 0.5);
    fails(status, SV_ERROR_INVALID_ARGUMENT, "value: found 0.5; wanted a whole number");
    let status = sv_simulation_set_parameter(simulation, SV_NEURON_LEAK, 0, 3, 0.5);
    fails(status, SV_ERROR_INVALID_ARGUMENT, "ids 0..3");
    let status = sv_simulation_set_parameter(simulation, 99, 0, 1, 0.5);
    fails(status, SV_ERROR_INVALID_ARGUMENT, "field: found 99");
    check(sv_release(simulation));
    check(sv_release(network));
}

#[test]
fn networks_have_areas_and_populations_and_refuse_bad_arrays() {
    let area = [0, 1];
    let names = [c"first", c"second"];
    let areas = names.map(|name| sv_area { name: name.as_ptr(), shares: 0, potential_driven: 0 });
    let position = [1, 2, 3, 4, 5, 6];
    let arrays = sv_network_arrays {
        area: area.as_ptr(),
        area_count: 2,
        areas: areas.as_ptr(),
        position: position.as_ptr(),
        ..ARRAYS
    };
    let network = create(&arrays);
    let (mut first, mut end, mut count) = (0, 0, 0);
    // SAFETY: the pointers are to locals and to texts.
    unsafe {
        check(sv_network_add_population(network, c"input".as_ptr(), 0, 1));
        check(sv_network_add_population(network, c"all".as_ptr(), 0, 2));
        check(sv_network_population(network, c"all".as_ptr(), &mut first, &mut end));
        check(sv_network_population_count(network, &mut count));
        assert_eq!((first, end, count), (0, 2, 2));
        let (mut name, mut length) = ([0u8; 8], 0);
        check(sv_network_population_name(network, 0, name.as_mut_ptr().cast(), 8, &mut length));
        assert_eq!((&name, length), (b"input\0\0\0", 5));
        let status = sv_network_population_name(network, 2, name.as_mut_ptr().cast(), 8, &mut length);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "position: found 2; wanted a position below 2");
        let status = sv_network_population(network, c"none".as_ptr(), &mut first, &mut end);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "one of the populations: input, all");
        let status = sv_network_add_population(network, c"all".as_ptr(), 0, 2);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "a second population 'all'");
        let status = sv_network_add_population(network, c"more".as_ptr(), 1, 3);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "ids 1..3");
    }
    let (source, target, byte) = ([0], [2], [1]);
    let synapse = sv_network_arrays {
        synapses: 1,
        source: source.as_ptr(),
        target: target.as_ptr(),
        weight: byte.as_ptr(),
        psp: byte.as_ptr(),
        ..ARRAYS
    };
    let two = [2, 0];
    let nan = [0.0, f32::NAN];
    let unknown = [sv_area { shares: 2, ..areas[0] }];
    let cases = [
        (sv_network_arrays { size: 8, ..ARRAYS }, SV_ERROR_INVALID_ARGUMENT, "arrays->size: found 8"),
        (sv_network_arrays { neurons: 1 << 40, ..ARRAYS }, SV_ERROR_INVALID_ARGUMENT, "at most 2^31"),
        (sv_network_arrays { threshold: nan.as_ptr(), ..ARRAYS }, SV_ERROR_INVALID_ARGUMENT, "neuron 1"),
        (sv_network_arrays { accumulates: two.as_ptr(), ..ARRAYS }, SV_ERROR_INVALID_ARGUMENT, "accumulates"),
        (
            sv_network_arrays { areas: unknown.as_ptr(), area_count: 1, ..ARRAYS },
            SV_ERROR_INVALID_ARGUMENT,
            "shares",
        ),
        (
            sv_network_arrays { area_count: 1, ..ARRAYS },
            SV_ERROR_INVALID_ARGUMENT,
            "arrays->areas: found NULL",
        ),
        (synapse, SV_ERROR_INVALID_ARGUMENT, "synapse 0"),
        (
            sv_network_arrays { source: null(), ..synapse },
            SV_ERROR_INVALID_ARGUMENT,
            "arrays->source: found NULL",
        ),
    ];
    for (arrays, status, text) in cases {
        let mut handle = 7;
        // SAFETY: the pointers are to locals.
        fails(unsafe { sv_network_create(&arrays, &mut handle) }, status, text);
        assert_eq!(handle, 7);
    }
    for options in [
        sv_simulation_options { device: -3, ..OPTIONS },
        sv_simulation_options { shards: 1 << 20, ..OPTIONS },
        sv_simulation_options { size: 4, ..OPTIONS },
    ] {
        // SAFETY: the pointers are to locals.
        let status = unsafe { sv_simulation_create(network, &options, &mut 0) };
        fails(status, SV_ERROR_INVALID_ARGUMENT, "options->");
    }
    // SAFETY: the pointer is to a local.
    let status = unsafe { sv_network_g(1 << 31, u32::MAX, &mut 0) };
    fails(status, SV_ERROR_OUT_OF_MEMORY, "sv_network_g: ");
    let simulation = simulate(network, &OPTIONS);
    // SAFETY: the arrays have one element.
    unsafe {
        let status = sv_simulation_inject(simulation, [2].as_ptr(), [1.0].as_ptr(), 1);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "id 2");
        let status = sv_simulation_inject(simulation, [0].as_ptr(), [f32::NAN].as_ptr(), 1);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "NaN");
        fails(sv_simulation_create(simulation, &OPTIONS, &mut 0), SV_ERROR_INVALID_HANDLE, "simulation");
    }
    check(sv_release(simulation));
    check(sv_release(network));
}
