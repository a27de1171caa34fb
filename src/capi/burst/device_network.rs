//! Networks in the memory of a CUDA device that run without a simulation: generated there, with input that the device keeps,
//! and with spikes that stay there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::arguments::{collected, out, out_structure, slice, slice_mut};
use super::super::device;
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::{Object, object, sv_device_network, sv_network};
use super::super::tensor::flag;
use super::simulation::{sv_burst_counters, write_counters};
use super::state::{StateArrays, given_state, sv_network_state};
use super::{check_count, network, write_spikes};
use crate::burst::{
    Backend, BurstCounts, Cuda, GeneratedNetwork, Injection, InjectionPattern, WeightChange, staged_with,
};

/// Bursts whose results are held on the host at a time.
const BURSTS_OF_A_GROUP: usize = 1 << 10;

struct DeviceNetwork {
    cuda: Cuda,
    /// Magnitudes of the staged and of the steady input, in thousandths.
    staged: u64,
    steady: u64,
}

/// A device network behind a handle.
#[derive(Clone)]
pub(in super::super) struct DeviceNetworkObject(Arc<Mutex<DeviceNetwork>>);
object!(DeviceNetworkObject, DeviceNetwork);

impl DeviceNetworkObject {
    fn lock(&self) -> MutexGuard<'_, DeviceNetwork> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn device_network(handle: u64) -> Result<DeviceNetworkObject> {
    DeviceNetworkObject::table().get(handle, "device_network")
}

fn enter(cuda: Cuda) -> Result<u64> {
    let network = DeviceNetwork { cuda, staged: 0, steady: 0 };
    DeviceNetworkObject::table().insert(DeviceNetworkObject(Arc::new(Mutex::new(network))))
}

fn generate(generated: GeneratedNetwork, device: i32, seed: u32) -> Result<u64> {
    let mut cuda = Cuda::new(device::cuda(device, "a network in device memory")?)?;
    cuda.generate(&generated, seed)?;
    enter(cuda)
}

/// Returns input in thousandths, and the sum of its magnitudes with that of other input of the same burst.
///
/// # Safety
///
/// As [`slice`], of `count` elements each.
unsafe fn injections(
    ids: *const u32,
    potentials: *const f32,
    count: usize,
    beside: u64,
) -> Result<(Vec<Injection>, u64)> {
    let (ids, potentials) = (slice(ids, count, "ids")?, slice(potentials, count, "potentials")?);
    let pairs = ids.iter().zip(potentials);
    let mut injections: Vec<Injection> =
        collected(count, "ids", pairs.map(|(&id, _)| Injection { id, thousandths: 0 }))?;
    for (injection, &potential) in injections.iter_mut().zip(potentials) {
        *injection = Injection::new(injection.id, potential)?;
    }
    let sum = staged_with(&injections, beside)?;
    Ok((injections, sum))
}

/// Loads a network on a CUDA device, at rest before burst 1, without a simulation: no recordings, rules, ledger or recovery.
///
/// Calls for one device network wait for each other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_network_create(
    network: sv_network,
    device: i32,
    seed: u32,
    device_network: *mut sv_device_network,
) -> i32 {
    guard::call("sv_device_network_create", || {
        let result = out(device_network, "device_network")?;
        let network = self::network(network, "network")?.network;
        let mut cuda = Cuda::new(device::cuda(device, "a network in device memory")?)?;
        cuda.load(&network, seed)?;
        result.write(enter(cuda)?);
        Ok(())
    })
}

/// Generates network G in the memory of a CUDA device, at rest before burst 1, with its input as the pattern of every burst.
///
/// `degree` is at most 6144; `sv_network_g` generates longer rows on the host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_network_g(
    neurons: u32,
    degree: u32,
    device: i32,
    seed: u32,
    device_network: *mut sv_device_network,
) -> i32 {
    guard::call("sv_device_network_g", || {
        let result = out(device_network, "device_network")?;
        result.write(generate(GeneratedNetwork::g(neurons, degree), device, seed)?);
        Ok(())
    })
}

/// Generates network S in the memory of a CUDA device, as `sv_device_network_g` does G: one neuron in `every` fires in each
/// burst.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_network_s(
    neurons: u32,
    degree: u32,
    every: u32,
    device: i32,
    seed: u32,
    device_network: *mut sv_device_network,
) -> i32 {
    guard::call("sv_device_network_s", || {
        let result = out(device_network, "device_network")?;
        if every == 0 {
            return Err(Failure::argument("every", every, "1 or more"));
        }
        result.write(generate(GeneratedNetwork::s(neurons, degree, every), device, seed)?);
        Ok(())
    })
}

/// Stages input for the next burst, as `sv_simulation_inject` does.
///
/// # Safety
///
/// `ids` and `potentials` point to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_network_inject(
    device_network: sv_device_network,
    ids: *const u32,
    potentials: *const f32,
    count: usize,
) -> i32 {
    guard::call("sv_device_network_inject", || {
        let object = self::device_network(device_network)?;
        let mut network = object.lock();
        let beside = network.staged.saturating_add(network.steady);
        let (injections, sum) = injections(ids, potentials, count, beside)?;
        network.cuda.inject(&injections)?;
        network.staged = sum - network.steady;
        Ok(())
    })
}

/// Sets the input of every burst from the next one on, beside staged input, in place of earlier steady input. It stays in
/// device memory. A count of 0 ends it.
///
/// # Safety
///
/// `ids` and `potentials` point to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_network_set_steady_input(
    device_network: sv_device_network,
    ids: *const u32,
    potentials: *const f32,
    count: usize,
) -> i32 {
    guard::call("sv_device_network_set_steady_input", || {
        let object = self::device_network(device_network)?;
        let mut network = object.lock();
        let (injections, sum) = injections(ids, potentials, count, network.staged)?;
        network.cuda.set_steady_injections(&injections)?;
        network.steady = sum - network.staged;
        Ok(())
    })
}

/// Sets the pattern by which the device itself makes input in every burst from the next one on, beside all other input: burst
/// `n` adds `potential` to each neuron `i` for which `pcg(i ^ pcg(base + n)) % modulus` is 0. A modulus of 0 ends it.
///
/// A generated network begins with its pattern.
#[unsafe(no_mangle)]
pub extern "C" fn sv_device_network_set_pattern(
    device_network: sv_device_network,
    base: u32,
    modulus: u32,
    potential: f32,
) -> i32 {
    guard::call("sv_device_network_set_pattern", || {
        let object = self::device_network(device_network)?;
        let thousandths = Injection::new(0, potential)?.thousandths;
        let pattern = InjectionPattern { base, modulus, thousandths };
        Ok(object.lock().cuda.set_pattern((modulus != 0).then_some(pattern))?)
    })
}

/// Chooses dense mode with 1, in which time passes for every neuron in every burst; 0 ends it.
#[unsafe(no_mangle)]
pub extern "C" fn sv_device_network_set_dense(device_network: sv_device_network, dense: i32) -> i32 {
    guard::call("sv_device_network_set_dense", || {
        let object = self::device_network(device_network)?;
        let dense = flag(dense, "dense")?;
        Ok(object.lock().cuda.set_dense(dense)?)
    })
}

/// Runs `count` bursts back to back, and waits for them. The spikes stay on the device: `spikes` gets the number of spikes of
/// each burst, and `totals` the sums over these bursts. Staged input enters the first one.
///
/// After an error some of the bursts may be done; `sv_device_network_set_state` begins anew.
///
/// # Safety
///
/// `spikes` points to `count` elements, and `totals` to a struct whose size is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_network_run(
    device_network: sv_device_network,
    spikes: *mut u64,
    count: usize,
    totals: *mut sv_burst_counters,
) -> i32 {
    guard::call("sv_device_network_run", || {
        let (totals, spikes) = (out_structure(totals, "totals")?, slice_mut(spikes, count, "spikes")?);
        let object = self::device_network(device_network)?;
        let mut network = object.lock();
        let (mut all, mut sums) = (0, BurstCounts::default());
        for group in spikes.chunks_mut(BURSTS_OF_A_GROUP) {
            let results = network.cuda.run_counted(group.len())?;
            network.staged = 0;
            for (spikes, (of_burst, counts)) in group.iter_mut().zip(results) {
                *spikes = of_burst;
                all += of_burst;
                sums += counts;
            }
        }
        write_counters(totals, count as u64, all, &sums);
        Ok(())
    })
}

/// Writes the neurons that fired in the last burst, in ascending order, and the potentials at which they did; `number` gets
/// the number of bursts done. The whole state is read from the device.
///
/// `count` gets the number of spikes; the arrays get the first `capacity` of them. A capacity of 0 asks for the number alone.
///
/// # Safety
///
/// `ids` and `potentials` point to `capacity` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_network_fired(
    device_network: sv_device_network,
    number: *mut u64,
    ids: *mut u32,
    potentials: *mut f32,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    guard::call("sv_device_network_fired", || {
        let (number, count) = (out(number, "number")?, out(count, "count")?);
        let object = self::device_network(device_network)?;
        let state = object.lock().cuda.state()?;
        write_spikes(&state.fired, ids, potentials, capacity)?;
        number.write(state.burst);
        count.write(state.fired.len());
        Ok(())
    })
}

/// Writes the state of every neuron, as `sv_simulation_state` does.
///
/// `neurons` is the number of neurons.
///
/// # Safety
///
/// The arrays have `neurons` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_network_state(
    device_network: sv_device_network,
    potentials: *mut f32,
    refractory_left: *mut u16,
    fire_counts: *mut u16,
    neurons: usize,
) -> i32 {
    guard::call("sv_device_network_state", || {
        let arrays = StateArrays::new(potentials, refractory_left, fire_counts, neurons)?;
        let object = self::device_network(device_network)?;
        let state = object.lock().cuda.state()?;
        arrays.write(&state.neurons)
    })
}

/// Writes the state that was last loaded, set or read, which the host has even after the device was lost, and the number
/// of bursts it stands behind.
///
/// `neurons` is the number of neurons.
///
/// # Safety
///
/// `number` points to a `uint64_t`, and the arrays have `neurons` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_network_last_state(
    device_network: sv_device_network,
    number: *mut u64,
    potentials: *mut f32,
    refractory_left: *mut u16,
    fire_counts: *mut u16,
    neurons: usize,
) -> i32 {
    guard::call("sv_device_network_last_state", || {
        let (number, arrays) =
            (out(number, "number")?, StateArrays::new(potentials, refractory_left, fire_counts, neurons)?);
        let object = self::device_network(device_network)?;
        let network = object.lock();
        let wanted = "one that has a network";
        let state = network.cuda.last_state().ok_or_else(|| {
            Failure::argument("device_network", "a device network without a network", wanted)
        })?;
        arrays.write(&state.neurons)?;
        number.write(state.burst);
        Ok(())
    })
}

/// Replaces the state. Staged input stays.
///
/// # Safety
///
/// `state` points to a struct whose arrays have as many elements as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_network_set_state(
    device_network: sv_device_network,
    state: *const sv_network_state,
) -> i32 {
    guard::call("sv_device_network_set_state", || {
        let state = given_state(state)?;
        let object = self::device_network(device_network)?;
        Ok(object.lock().cuda.set_state(&state)?)
    })
}

/// Writes the state hash, as `sv_simulation_state_hash` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_network_state_hash(
    device_network: sv_device_network,
    hash: *mut u64,
) -> i32 {
    guard::call("sv_device_network_state_hash", || {
        let hash = out(hash, "hash")?;
        let object = self::device_network(device_network)?;
        hash.write(object.lock().cuda.state()?.hash());
        Ok(())
    })
}

/// Writes weight and PSP of every synapse as they are now, as `sv_simulation_weights` does.
///
/// `count` is the number of synapses.
///
/// # Safety
///
/// `weights` points to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_network_weights(
    device_network: sv_device_network,
    weights: *mut u16,
    count: usize,
) -> i32 {
    guard::call("sv_device_network_weights", || {
        let weights = slice_mut(weights, count, "weights")?;
        let object = self::device_network(device_network)?;
        let found = object.lock().cuda.weights()?;
        check_count("count", count, found.len())?;
        weights.copy_from_slice(&found);
        Ok(())
    })
}

/// Changes the weights of `count` synapses, by their places in the order of `sv_network_rows`, from the next burst on.
///
/// # Safety
///
/// `synapses` and `weights` point to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_network_set_weights(
    device_network: sv_device_network,
    synapses: *const u64,
    weights: *const u8,
    count: usize,
) -> i32 {
    guard::call("sv_device_network_set_weights", || {
        let object = self::device_network(device_network)?;
        let (synapses, weights) = (slice(synapses, count, "synapses")?, slice(weights, count, "weights")?);
        let change = |(synapse, weight): (&u64, &u8)| WeightChange { synapse: *synapse, weight: *weight };
        let changes = collected(count, "synapses", synapses.iter().zip(weights).map(change))?;
        Ok(object.lock().cuda.set_weights(&changes)?)
    })
}

/// Writes the bytes of device memory that the network takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_device_network_bytes(device_network: sv_device_network, bytes: *mut u64) -> i32 {
    guard::call("sv_device_network_bytes", || {
        let bytes = out(bytes, "bytes")?;
        let object = self::device_network(device_network)?;
        bytes.write(object.lock().cuda.device_bytes());
        Ok(())
    })
}
