//! The runner of a simulation: a thread that runs bursts at a set frequency.

use std::ffi::c_void;
use std::sync::PoisonError;

use super::super::arguments::out_structure;
use super::super::buffer::User;
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::{Object, sv_simulation};
use super::{Owner, SimulationObject, ended, lost};
use crate::burst::{BurstRunner, StoppedRun};

/// A function that is called after each burst of a runner, on its thread, with the neurons that fired and their potentials. The
/// arrays are valid during the call. It must not call functions of the same simulation.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type sv_burst_callback = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        number: u64,
        ids: *const u32,
        potentials: *const f32,
        count: usize,
    ),
>;

/// The figures of a runner.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_runner_statistics {
    /// The size of the struct in bytes.
    pub size: usize,
    /// Bursts done.
    pub bursts: u64,
    /// Bursts that began after their time because the one before took too long.
    pub late: u64,
    /// Seconds spent in bursts.
    pub busy: f64,
    /// The longest burst in seconds.
    pub longest: f64,
    /// 1 if an error has ended the run, which `sv_simulation_stop` returns; else 0.
    pub failed: i32,
    /// 0.
    pub reserved: i32,
}

/// 0 is no frequency: as many bursts as possible.
fn optional(frequency: f64) -> Option<f64> {
    (frequency != 0.0).then_some(frequency)
}

/// Runs `work` on the runner of a simulation.
fn with_runner<R>(simulation: u64, work: impl FnOnce(&BurstRunner) -> Result<R>) -> Result<R> {
    let object = SimulationObject::table().get(simulation, "simulation")?;
    let state = object.lock();
    match &state.owner {
        Owner::Runner(runner) => work(runner),
        Owner::Caller(_) => Err(Failure::argument(
            "simulation",
            "a simulation that no runner has",
            "one of sv_simulation_start",
        )),
        Owner::Lost => Err(lost()),
    }
}

/// Starts a thread that runs `frequency` bursts a second, or as many as it can for 0. It has the simulation until
/// `sv_simulation_stop`; meanwhile every other function but `sv_simulation_run` works between two bursts.
///
/// `callback`, if not NULL, is called with `user` after each burst. Releasing the simulation stops the thread and waits for it.
/// Any thread may call it but that of the callback.
///
/// # Safety
///
/// `callback` may be called from another thread until the simulation is stopped or freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_start(
    simulation: sv_simulation,
    frequency: f64,
    callback: sv_burst_callback,
    user: *mut c_void,
) -> i32 {
    guard::call("sv_simulation_start", || {
        let object = SimulationObject::table().get(simulation, "simulation")?;
        let mut state = object.lock();
        let shared = state.last.clone();
        let user = User(user);
        let (mut ids, mut potentials) = (Vec::new(), Vec::new());
        let on_burst = move |result: &crate::burst::BurstResult| {
            shared.lock().unwrap_or_else(PoisonError::into_inner).clone_from(result);
            if let Some(callback) = callback {
                ids.clear();
                potentials.clear();
                ids.extend(result.fired.iter().map(|spike| spike.id));
                potentials.extend(result.fired.iter().map(|spike| spike.potential));
                let (ids, potentials, count) = (ids.as_ptr(), potentials.as_ptr(), ids.len());
                // SAFETY: the caller vouches for the function and its pointer; the arrays live during the call.
                unsafe { callback(user.pointer(), result.burst, ids, potentials, count) }
            }
        };
        match std::mem::replace(&mut state.owner, Owner::Lost) {
            Owner::Caller(simulation) => {
                // A wrong frequency would take the simulation with it.
                if let Err(error) = BurstRunner::check_frequency(optional(frequency)) {
                    state.owner = Owner::Caller(simulation);
                    return Err(error.into());
                }
                state.owner = Owner::Runner(BurstRunner::start(*simulation, optional(frequency), on_burst)?);
                Ok(())
            }
            Owner::Runner(runner) => {
                state.owner = Owner::Runner(runner);
                Err(Failure::argument("simulation", "a simulation that a runner has", "one without a runner"))
            }
            Owner::Lost => Err(lost()),
        }
    })
}

/// Sets the frequency of a runner in bursts a second from the next burst on; 0 for as many as possible.
#[unsafe(no_mangle)]
pub extern "C" fn sv_simulation_set_frequency(simulation: sv_simulation, frequency: f64) -> i32 {
    guard::call("sv_simulation_set_frequency", || {
        BurstRunner::check_frequency(optional(frequency))?;
        with_runner(simulation, |runner| runner.set_frequency(optional(frequency)).map_err(|_| ended()))
    })
}

/// Pauses a runner before its next burst. Functions of the simulation still work.
#[unsafe(no_mangle)]
pub extern "C" fn sv_simulation_pause(simulation: sv_simulation) -> i32 {
    guard::call("sv_simulation_pause", || {
        with_runner(simulation, |runner| runner.pause().map_err(|_| ended()))
    })
}

/// Ends the pause of a runner.
#[unsafe(no_mangle)]
pub extern "C" fn sv_simulation_resume(simulation: sv_simulation) -> i32 {
    guard::call("sv_simulation_resume", || {
        with_runner(simulation, |runner| runner.resume().map_err(|_| ended()))
    })
}

/// Stops a runner after the burst in progress, and waits for its thread. The simulation then stands behind its last finished
/// burst.
///
/// Returns the error that ended the run, if one did; the simulation is given back all the same. Any thread may call it but that
/// of the callback.
#[unsafe(no_mangle)]
pub extern "C" fn sv_simulation_stop(simulation: sv_simulation) -> i32 {
    guard::call("sv_simulation_stop", || {
        with_runner(simulation, |_| Ok(()))?;
        let object = SimulationObject::table().get(simulation, "simulation")?;
        let mut state = object.lock();
        match std::mem::replace(&mut state.owner, Owner::Lost) {
            Owner::Runner(runner) => {
                let StoppedRun { simulation, error } = runner.stop()?;
                state.owner = Owner::Caller(Box::new(simulation));
                error.map_or(Ok(()), |error| Err(error.into()))
            }
            // Another thread stopped it meanwhile.
            other => {
                state.owner = other;
                Ok(())
            }
        }
    })
}

/// Writes the figures of a runner.
///
/// # Safety
///
/// `statistics` points to a struct whose size is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_statistics(
    simulation: sv_simulation,
    statistics: *mut sv_runner_statistics,
) -> i32 {
    guard::call("sv_simulation_statistics", || {
        let result = out_structure(statistics, "statistics")?;
        let statistics = with_runner(simulation, |runner| Ok(runner.statistics()))?;
        result.write(sv_runner_statistics {
            size: 0,
            bursts: statistics.bursts,
            late: statistics.late,
            busy: statistics.busy.as_secs_f64(),
            longest: statistics.longest.as_secs_f64(),
            failed: i32::from(statistics.error.is_some()),
            reserved: 0,
        });
        Ok(())
    })
}
