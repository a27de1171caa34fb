//! Spiking networks and their simulations: their handles, and the devices that simulations run on.
//!
//! A network never changes while a simulation runs it. A simulation is used by one call at a time; while its runner has it,
//! each call takes place on the runner's thread, between two bursts.

pub mod area;
pub mod device_network;
pub mod edit;
pub mod network;
pub mod population;
pub mod recording;
pub mod rule;
pub mod runner;
pub mod simulation;
pub mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) use self::device_network::DeviceNetworkObject;

use super::arguments::{check_count, slice_mut, structure, write_some};
use super::device::{SV_CPU, cuda};
use super::error::{Failure, Result};
use super::handle::{Object, object};
use crate::Error;
use crate::burst::{
    Auto, Backend, BurstResult, BurstRunner, Cpu, Cuda, GeneratedNetwork, InProcess, Network, Shards,
    Simulation, Snapshot, Spike,
};
use crate::driver::Device;

/// For a simulation: the faster one of the CPU and CUDA device 0, by the first bursts; the CPU where there is no device.
pub const SV_AUTO: i32 = -2;

/// The device and the settings of a simulation.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_simulation_options {
    /// The size of the struct in bytes.
    pub size: usize,
    /// `SV_CPU`, the ordinal of a CUDA device, or `SV_AUTO`. The results are the same on all of them.
    pub device: i32,
    /// CPU threads, 0 for as many as there are processors.
    pub threads: u32,
    /// The seed of the random draws of a new simulation. One that continues from a file or on another device keeps its own.
    pub seed: u32,
    /// The number of shards that the network is cut into, all on this device; 0 and 1 for a whole network.
    pub shards: u32,
}

/// The most shards of a simulation.
const MAX_SHARDS: u32 = 1 << 10;

/// Returns the backend that options at a pointer describe, and the seed.
///
/// # Safety
///
/// As [`structure`].
unsafe fn backend(options: *const sv_simulation_options) -> Result<(Box<dyn Backend>, u32)> {
    let options = structure(options, "options")?;
    if options.shards > MAX_SHARDS {
        return Err(Failure::argument("options->shards", options.shards, &format!("0 to {MAX_SHARDS}")));
    }
    if options.shards <= 1 {
        return Ok((whole_backend(options)?, options.seed));
    }
    let backends = (0..options.shards).map(|_| whole_backend(options)).collect::<Result<Vec<_>>>()?;
    Ok((Box::new(Shards::new(backends, Box::new(InProcess))?), options.seed))
}

fn whole_backend(options: &sv_simulation_options) -> Result<Box<dyn Backend>> {
    let cpu = || match options.threads {
        0 => Cpu::new(),
        threads => Cpu::with_threads(threads as usize),
    };
    match options.device {
        SV_CPU => Ok(Box::new(cpu())),
        SV_AUTO => match Device::new(0).and_then(Cuda::new) {
            Ok(cuda) => Ok(Box::new(Auto::new(Box::new(cuda), Box::new(cpu())))),
            Err(error) if is_missing_device(&error) => {
                log::info!("burst: the CPU runs the simulation: {error}");
                Ok(Box::new(cpu()))
            }
            Err(error) => Err(error.into()),
        },
        ordinal if ordinal >= 0 => Ok(Box::new(Cuda::new(cuda(ordinal, "a simulation")?)?)),
        other => Err(Failure::argument(
            "options->device",
            other,
            "SV_CPU, SV_AUTO or the ordinal of a CUDA device, from 0",
        )),
    }
}

/// Returns true for the error of a machine without a CUDA device that the library can use.
fn is_missing_device(error: &Error) -> bool {
    match error {
        Error::LibraryUnavailable { .. }
        | Error::MissingSymbol { .. }
        | Error::NoDevice { .. }
        | Error::UnsupportedImage { .. } => true,
        Error::Driver { call, .. } => matches!(*call, "cuInit" | "cuDeviceGetCount"),
        _ => false,
    }
}

/// A network behind a handle.
#[derive(Clone)]
pub(super) struct NetworkObject {
    network: Arc<Network>,
    /// The definition of a generated network, which has an input of its own.
    generated: Option<GeneratedNetwork>,
}
object!(NetworkObject, Network);

/// Returns the network of a handle.
fn network(handle: u64, name: &str) -> Result<NetworkObject> {
    NetworkObject::table().get(handle, name)
}

/// Enters a network and returns its handle.
fn enter_network(network: Arc<Network>, generated: Option<GeneratedNetwork>) -> Result<u64> {
    NetworkObject::table().insert(NetworkObject { network, generated })
}

/// The thread that has a simulation.
enum Owner {
    /// The caller of a function.
    Caller(Box<Simulation>),
    Runner(BurstRunner),
    /// The runner's thread panicked, or could not be started, and took the simulation with it.
    Lost,
}

struct SimulationState {
    owner: Owner,
    /// The last burst. A runner writes it on its own thread.
    last: Arc<Mutex<BurstResult>>,
    /// Snapshots that did not fit the caller's memory, by sampler.
    snapshots: Vec<Option<Snapshot>>,
}

/// A simulation behind a handle.
#[derive(Clone)]
pub(super) struct SimulationObject(Arc<Mutex<SimulationState>>);
object!(SimulationObject, Simulation);

impl SimulationObject {
    fn lock(&self) -> MutexGuard<'_, SimulationState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`SimulationState::with`].
    fn with<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Simulation) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.lock().with(work)
    }
}

/// Returns the simulation of a handle. Arrays of the caller are copied after this, since the handle costs nothing to check.
fn simulation_of(handle: u64) -> Result<SimulationObject> {
    SimulationObject::table().get(handle, "simulation")
}

impl SimulationState {
    /// Runs `work` on the simulation, on the runner's thread if the runner has it.
    fn with<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Simulation) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        match &mut self.owner {
            Owner::Caller(simulation) => work(simulation),
            Owner::Runner(runner) => runner.call(work).map_err(|_| ended())?,
            Owner::Lost => Err(lost()),
        }
    }

    /// Returns a copy of the last burst.
    fn last(&self) -> BurstResult {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_last(&self, last: BurstResult) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }
}

/// The error where a runner's thread panicked, or could not be started.
fn lost() -> Failure {
    Failure::argument("simulation", "a simulation that was lost with its runner", "sv_release")
}

/// The error of a runner whose run ended.
fn ended() -> Failure {
    let found = "a simulation whose run was ended by an error";
    Failure::argument("simulation", found, "sv_simulation_stop, which returns that error")
}

/// Runs `work` on the simulation of a handle.
fn with_simulation<R: Send + 'static>(
    handle: u64,
    work: impl FnOnce(&mut Simulation) -> Result<R> + Send + 'static,
) -> Result<R> {
    simulation_of(handle)?.with(work)
}

/// Enters a simulation that stands behind a burst, and returns its handle.
fn enter_simulation(simulation: Simulation, last: BurstResult) -> Result<u64> {
    let state = SimulationState {
        owner: Owner::Caller(Box::new(simulation)),
        last: Arc::new(Mutex::new(last)),
        snapshots: Vec::new(),
    };
    SimulationObject::table().insert(SimulationObject(Arc::new(Mutex::new(state))))
}

/// Copies as many spikes as fit to the caller's arrays.
///
/// # Safety
///
/// As [`slice_mut`], of `capacity` elements each.
unsafe fn write_spikes(fired: &[Spike], ids: *mut u32, potentials: *mut f32, capacity: usize) -> Result<()> {
    let (ids, potentials) =
        (slice_mut(ids, capacity, "ids")?, slice_mut(potentials, capacity, "potentials")?);
    for ((spike, id), potential) in fired.iter().zip(ids).zip(potentials) {
        (*id, *potential) = (spike.id, spike.potential);
    }
    Ok(())
}
