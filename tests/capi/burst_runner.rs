//! A runner of the C ABI, which calls back after each burst.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use selvedge::capi::burst::runner::*;
use selvedge::capi::burst::simulation::*;
use selvedge::capi::library::sv_release;
use selvedge::capi::status::*;

use super::{OPTIONS, chain, counters, simulate, totals};
use crate::{check, fails};

#[test]
fn a_runner_runs_bursts_on_its_own_thread() {
    unsafe extern "C" fn on_burst(
        user: *mut c_void,
        number: u64,
        ids: *const u32,
        potentials: *const f32,
        count: usize,
    ) {
        // SAFETY: the test passes a list that outlives the runner, and the arrays have `count` elements.
        let (list, ids, potentials) = unsafe {
            (
                &*user.cast::<Mutex<Vec<(u64, u32, f32)>>>(),
                std::slice::from_raw_parts(ids, count),
                std::slice::from_raw_parts(potentials, count),
            )
        };
        let spikes = ids.iter().zip(potentials).map(|(id, potential)| (number, *id, *potential));
        list.lock().unwrap().extend(spikes);
    }
    let seen: Mutex<Vec<(u64, u32, f32)>> = Mutex::default();
    let mut statistics = sv_runner_statistics {
        size: size_of::<sv_runner_statistics>(),
        bursts: 0,
        late: 0,
        busy: 0.0,
        longest: 0.0,
        failed: 1,
        reserved: 0,
    };
    let network = chain();
    let simulation = simulate(network, &OPTIONS);
    fails(sv_simulation_pause(simulation), SV_ERROR_INVALID_ARGUMENT, "that no runner has");
    check(sv_simulation_set_power(simulation, 0, 1, 1.0));
    let user = (&raw const seen).cast_mut().cast();
    // SAFETY: the list outlives the runner, which is stopped below.
    unsafe {
        let status = sv_simulation_start(simulation, -1.0, Some(on_burst), user);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "-1 bursts a second");
        check(sv_simulation_start(simulation, 500.0, Some(on_burst), user));
        let status = sv_simulation_start(simulation, 500.0, None, user);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "that a runner has");
    }
    fails(sv_simulation_run(simulation, 1), SV_ERROR_INVALID_ARGUMENT, "that a runner has");
    let begun = Instant::now();
    while seen.lock().unwrap().len() < 5 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no bursts");
        std::thread::sleep(Duration::from_millis(1));
    }
    check(sv_simulation_pause(simulation));
    // The pause has begun once a later call was served.
    let done = totals(simulation).bursts;
    check(sv_simulation_set_frequency(simulation, 0.0));
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(totals(simulation).bursts, done);
    // SAFETY: the pointer is to a local.
    check(unsafe { sv_simulation_statistics(simulation, &mut statistics) });
    assert_eq!((statistics.bursts, statistics.failed), (done, 0));
    assert!(statistics.busy >= statistics.longest && statistics.longest > 0.0);
    check(sv_simulation_resume(simulation));
    check(sv_simulation_stop(simulation));
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen[..5], [(1, 0, 1.0), (2, 0, 1.0), (2, 1, 60.0), (3, 0, 1.0), (3, 1, 60.0)]);
    assert_eq!(counters(simulation).bursts, seen.last().unwrap().0);
    check(sv_simulation_run(simulation, 1));
    check(sv_release(simulation));
    // A release stops the runner.
    let simulation = simulate(network, &OPTIONS);
    // SAFETY: there is no callback.
    check(unsafe { sv_simulation_start(simulation, 0.0, None, null_mut()) });
    check(sv_release(simulation));
    check(sv_release(network));
}
