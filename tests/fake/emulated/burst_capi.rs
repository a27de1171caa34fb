//! Simulations through the C ABI on the emulated machine: on a device by its ordinal, on the faster of device and CPU, in shards,
//! and after the device was lost.

use std::ffi::CStr;
use std::mem::size_of;
use std::ptr::null_mut;

use selvedge::capi::burst::network::{sv_network_g, sv_network_input};
use selvedge::capi::burst::simulation::{
    sv_simulation_create, sv_simulation_fired, sv_simulation_inject, sv_simulation_recover, sv_simulation_run,
};
use selvedge::capi::burst::state::{SV_SPIKE_HASH_START, sv_simulation_state_hash, sv_spike_hash_add};
use selvedge::capi::burst::{SV_AUTO, sv_simulation_options};
use selvedge::capi::device::SV_CPU;
use selvedge::capi::error::sv_last_error;
use selvedge::capi::library::sv_release;
use selvedge::capi::status::{SV_ERROR_CONTEXT_LOST, SV_ERROR_KERNEL_FAULT, SV_OK};

use super::burst::BURST;
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
