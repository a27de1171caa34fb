//! Simulations through the C ABI on the emulated machine: on a device by its ordinal, on the faster of device and CPU, in shards,
//! and after the device was lost; and networks in device memory without a simulation.

use std::ffi::CStr;
use std::mem::size_of;
use std::ptr::{null, null_mut};

use selvedge::capi::burst::device_network::*;
use selvedge::capi::burst::network::{sv_network_g, sv_network_input, sv_network_pattern, sv_network_s};
use selvedge::capi::burst::simulation::{
    sv_burst_counters, sv_simulation_create, sv_simulation_fired, sv_simulation_inject,
    sv_simulation_recover, sv_simulation_run,
};
use selvedge::capi::burst::state::{
    SV_SPIKE_HASH_START, sv_network_state, sv_simulation_state_hash, sv_spike_hash_add,
};
use selvedge::capi::burst::{SV_AUTO, sv_simulation_options};
use selvedge::capi::device::SV_CPU;
use selvedge::capi::error::sv_last_error;
use selvedge::capi::library::sv_release;
use selvedge::capi::status::{
    SV_ERROR_CONTEXT_LOST, SV_ERROR_INVALID_ARGUMENT, SV_ERROR_KERNEL_FAULT, SV_OK,
};

use super::burst::{BURST, GENERATE};
use super::{Outcome, emulate};
use crate::support::Fake;

const NEURONS: usize = 1000;

fn ok(status: i32) -> Outcome {
    match status {
        SV_OK => Ok(()),
        // SAFETY: the text is valid until this thread's next error.
        _ => Err(unsafe { CStr::from_ptr(sv_last_error()) }.to_string_lossy().into()),
    }
}

fn stage(network: u64, simulation: u64, burst: u32) -> i32 {
    let (mut ids, mut potentials, mut count) = ([0; NEURONS], [0.0; NEURONS], 0);
    // SAFETY: the arrays have an element per neuron.
    unsafe {
        match sv_network_input(network, burst, ids.as_mut_ptr(), potentials.as_mut_ptr(), NEURONS, &mut count)
        {
            SV_OK => sv_simulation_inject(simulation, ids.as_ptr(), potentials.as_ptr(), count),
            error => error,
        }
    }
}

/// Adds the spikes of the last burst to a spike hash.
fn add(simulation: u64, burst: u32, hash: &mut u64) -> Outcome {
    let (mut ids, mut potentials, mut count) = ([0; NEURONS], [0.0; NEURONS], 0);
    // SAFETY: the arrays have an element per neuron.
    unsafe {
        ok(sv_simulation_fired(simulation, ids.as_mut_ptr(), potentials.as_mut_ptr(), NEURONS, &mut count))?;
        ok(sv_spike_hash_add(burst, ids.as_ptr(), potentials.as_ptr(), count, hash))
    }
}

/// Child: the golden hashes of network G by the functions of C.
pub fn simulations(fake: &Fake) -> Outcome {
    emulate(fake, &[BURST])?;
    let options = sv_simulation_options {
        size: size_of::<sv_simulation_options>(),
        device: SV_CPU,
        threads: 2,
        seed: 7,
        shards: 0,
    };
    let (mut network, mut simulation, mut state) = (0, 0, 0);
    // SAFETY: the pointers are to locals.
    ok(unsafe { sv_network_g(NEURONS as u32, 20, &mut network) })?;
    // The last run loses its device before burst 100, and goes on on the CPU.
    for (device, shards, lost) in [(0, 0, None), (SV_AUTO, 0, None), (0, 3, None), (0, 0, Some(100))] {
        let options = sv_simulation_options { device, shards, ..options };
        // SAFETY: the pointers are to locals.
        ok(unsafe { sv_simulation_create(network, &options, &mut simulation) })?;
        let mut hash = SV_SPIKE_HASH_START;
        for burst in 1..=200 {
            if lost == Some(burst) {
                fake.lose_context(0, 700);
            }
            let staged = stage(network, simulation, burst);
            let status = sv_simulation_run(simulation, 1);
            if lost == Some(burst) {
                assert!([SV_ERROR_CONTEXT_LOST, SV_ERROR_KERNEL_FAULT].contains(&status), "{status}");
                let cpu = sv_simulation_options { device: SV_CPU, shards: 0, ..options };
                // SAFETY: the pointer is to a local.
                ok(unsafe { sv_simulation_recover(simulation, &cpu) })?;
                if staged != SV_OK {
                    ok(stage(network, simulation, burst))?;
                }
                ok(sv_simulation_run(simulation, 1))?;
            } else {
                ok(staged)?;
                ok(status)?;
            }
            add(simulation, burst, &mut hash)?;
        }
        // SAFETY: the pointer is to a local.
        ok(unsafe { sv_simulation_state_hash(simulation, &mut state) })?;
        assert_eq!(
            (hash, state),
            (0x7ab2_78ea_f9e8_14ea, 0x5284_7a73_f592_73c2),
            "{device} {shards} {lost:?}"
        );
        ok(sv_release(simulation))?;
    }
    let options = sv_simulation_options { device: 99, ..options };
    // SAFETY: the pointers are to locals.
    assert_ne!(unsafe { sv_simulation_create(network, &options, &mut simulation) }, SV_OK);
    // SAFETY: NULL is refused.
    assert_ne!(unsafe { sv_simulation_create(network, &options, null_mut()) }, SV_OK);
    ok(sv_release(network))
}

/// Spikes of bursts 1 to 200 of network G, and its state hash then.
const GOLDEN: (u64, u64) = (68_669, 0x5284_7a73_f592_73c2);
const COUNTERS: sv_burst_counters = sv_burst_counters {
    size: size_of::<sv_burst_counters>(),
    bursts: 0,
    spikes: 0,
    events: 0,
    injections: 0,
    candidates: 0,
    blocked: 0,
};

/// Runs bursts, and returns the spikes of each and the sums of the counters.
fn run(network: u64, bursts: usize) -> Result<(Vec<u64>, sv_burst_counters), Box<dyn std::error::Error>> {
    let (mut spikes, mut totals) = (vec![0; bursts], COUNTERS);
    // SAFETY: the array has an element for each burst.
    ok(unsafe { sv_device_network_run(network, spikes.as_mut_ptr(), bursts, &mut totals) })?;
    Ok((spikes, totals))
}

fn hash(network: u64) -> Result<u64, Box<dyn std::error::Error>> {
    let mut hash = 0;
    // SAFETY: the pointer is to a local.
    ok(unsafe { sv_device_network_state_hash(network, &mut hash) })?;
    Ok(hash)
}

/// Child: a network that the device generated and one that it loaded run to the golden state with every kind of input, and
/// the spikes stay on the device.
pub fn device_networks(fake: &Fake) -> Outcome {
    emulate(fake, &[BURST, GENERATE])?;
    let (mut network, mut made, mut loaded, mut bytes) = (0, 0, 0, 0);
    let (mut base, mut modulus, mut potential) = (0, 0, 0.0);
    // SAFETY: the pointers are to locals.
    unsafe {
        ok(sv_network_g(NEURONS as u32, 20, &mut network))?;
        ok(sv_network_pattern(network, &mut base, &mut modulus, &mut potential))?;
        ok(sv_device_network_g(NEURONS as u32, 20, 0, 7, &mut made))?;
        ok(sv_device_network_create(network, 0, 7, &mut loaded))?;
        ok(sv_device_network_bytes(made, &mut bytes))?;
        assert!(bytes >= 6 * 20 * NEURONS as u64, "{bytes}");
        assert_ne!(sv_device_network_g(u32::MAX, 1, 0, 7, &mut bytes), SV_OK);
        assert_ne!(sv_device_network_g(10, 7000, 0, 7, &mut bytes), SV_OK);
    }
    let mut weights = [vec![0; 20 * NEURONS], vec![1; 20 * NEURONS]];
    for (weights, network) in weights.iter_mut().zip([made, loaded]) {
        // SAFETY: the array has an element for each synapse.
        ok(unsafe { sv_device_network_weights(network, weights.as_mut_ptr(), weights.len()) })?;
    }
    assert!(weights[0] == weights[1], "the generated rows are the host's");

    // The pattern of a network that the device generated is its own.
    let (spikes, totals) = run(made, 200)?;
    assert_eq!(spikes[..6], [12, 36, 113, 280, 416, 389]);
    assert_eq!(
        (totals.bursts, totals.spikes, totals.events, totals.blocked),
        (200, GOLDEN.0, 1_366_600, 79_995)
    );
    assert_eq!((spikes.iter().sum(), hash(made)?), GOLDEN);

    // Staged input for ten bursts, then the pattern.
    let (mut ids, mut potentials, mut count) = ([0; NEURONS], [0.0; NEURONS], 0);
    let (first, second) = (ids.as_mut_ptr(), potentials.as_mut_ptr());
    let mut sum = 0;
    for burst in 1..=10 {
        // SAFETY: the arrays have an element per neuron.
        unsafe {
            ok(sv_network_input(network, burst, first, second, NEURONS, &mut count))?;
            ok(sv_device_network_inject(loaded, first, second, count))?;
        }
        sum += run(loaded, 1)?.1.spikes;
    }
    let (mut number, mut state) = (0, (vec![0.0; NEURONS], vec![0; NEURONS], vec![0; NEURONS]));
    let (left, counts) = (state.1.as_mut_ptr(), state.2.as_mut_ptr());
    // SAFETY: the arrays have an element per neuron.
    unsafe {
        ok(sv_device_network_fired(loaded, &mut number, first, second, NEURONS, &mut count))?;
        ok(sv_device_network_state(loaded, state.0.as_mut_ptr(), left, counts, NEURONS))?;
    }
    assert_eq!((number, count), (10, 359));
    let tenth = sv_network_state {
        size: size_of::<sv_network_state>(),
        burst: 10,
        seed: 7,
        reserved: 0,
        neurons: NEURONS,
        potentials: state.0.as_ptr(),
        refractory_left: left,
        fire_counts: counts,
        fired: count,
        fired_ids: first,
        fired_potentials: second,
    };
    ok(sv_device_network_set_pattern(loaded, base, modulus, potential))?;
    sum += run(loaded, 190)?.1.spikes;
    assert_eq!((sum, hash(loaded)?), GOLDEN);

    // From the tenth burst again, on the other network.
    // SAFETY: the arrays are those of the struct.
    ok(unsafe { sv_device_network_set_state(made, &tenth) })?;
    assert_eq!(run(made, 190)?.1.spikes, spikes[10..].iter().sum::<u64>());
    assert_eq!(hash(made)?, GOLDEN.1);
    // SAFETY: the arrays have an element per neuron and per synapse.
    unsafe {
        ok(sv_device_network_set_weights(made, [3, 5].as_ptr(), [200, 7].as_ptr(), 2))?;
        ok(sv_device_network_weights(made, weights[0].as_mut_ptr(), weights[0].len()))?;
        let synapse = 20 * NEURONS as u64;
        let status = sv_device_network_set_weights(made, [synapse].as_ptr(), [1].as_ptr(), 1);
        assert_eq!(status, SV_ERROR_INVALID_ARGUMENT);
        // The state that was read last is of burst 200, and the host has it without the device.
        let (left, counts) = (state.1.as_mut_ptr(), state.2.as_mut_ptr());
        let last = sv_device_network_last_state;
        ok(last(made, &mut number, state.0.as_mut_ptr(), left, counts, NEURONS))?;
    }
    assert_eq!(number, 200);
    let changed = weights[0].iter().zip(&weights[1]).filter(|(now, then)| now != then).count();
    assert_eq!((changed, weights[0][3] & 0xff, weights[0][5] & 0xff), (2, 200, 7));
    for handle in [made, loaded, network] {
        ok(sv_release(handle))?;
    }
    inputs()
}

/// Ten neurons without synapses: steady input enters every burst until it ends, and input that could overflow is refused.
fn inputs() -> Outcome {
    let (mut network, mut quiet) = (0, 0);
    // SAFETY: the pointers are to locals with the given numbers of elements.
    unsafe {
        ok(sv_network_s(10, 0, 1, &mut network))?;
        ok(sv_device_network_create(network, 0, 7, &mut quiet))?;
        ok(sv_device_network_set_steady_input(quiet, [1].as_ptr(), [2000.0].as_ptr(), 1))?;
        ok(sv_device_network_inject(quiet, [3].as_ptr(), [2000.0].as_ptr(), 1))?;
        assert_eq!(run(quiet, 3)?.0, [2, 1, 1]);
        let status = sv_device_network_set_steady_input(quiet, [1].as_ptr(), [f32::NAN].as_ptr(), 1);
        assert_eq!(status, SV_ERROR_INVALID_ARGUMENT);
        let status = sv_device_network_inject(quiet, [10].as_ptr(), [1.0].as_ptr(), 1);
        assert_ne!(status, SV_OK);
        assert_eq!(sv_device_network_set_pattern(quiet, 1, 1, f32::NAN), SV_ERROR_INVALID_ARGUMENT);
        // Refused input leaves what was set.
        assert_eq!(run(quiet, 2)?.0, [1, 1]);
        ok(sv_device_network_set_steady_input(quiet, null(), null(), 0))?;
        ok(sv_device_network_set_dense(quiet, 1))?;
        let (spikes, totals) = run(quiet, 2)?;
        assert_eq!((spikes, totals.candidates), (vec![0, 0], 20));
        assert_eq!(run(quiet, 0)?.1.bursts, 0);
        // 2^62 thousandths are the most.
        let (ids, potentials) = (vec![0; 4_611_686], vec![1e9; 4_611_686]);
        ok(sv_device_network_inject(quiet, ids.as_ptr(), potentials.as_ptr(), ids.len()))?;
        let status = sv_device_network_set_steady_input(quiet, ids.as_ptr(), potentials.as_ptr(), 1);
        assert_eq!(status, SV_ERROR_INVALID_ARGUMENT);
        let status = sv_device_network_inject(quiet, ids.as_ptr(), potentials.as_ptr(), 1);
        assert_eq!(status, SV_ERROR_INVALID_ARGUMENT);
    }
    ok(sv_release(quiet))?;
    ok(sv_release(network))
}
