//! Networks: from arrays, generated, and in files.

use std::ffi::c_char;
use std::path::Path;
use std::sync::Arc;

use super::super::arguments::{collected, out, slice, slice_mut, structure, text};
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::sv_network;
use super::super::tensor::flag;
use super::{NetworkObject, check_count, enter_network, network};
use crate::burst::{
    Area, Cpu, GeneratedNetwork, MAX_NEURONS, Network, Neurons, Simulation, SynapseArrays, Synapses,
    check_host_memory,
};

/// An area: neurons that share rules of propagation. The layout is permanent.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_area {
    /// The name, in UTF-8 with a zero byte.
    pub name: *const c_char,
    /// 1 to divide each contribution of a neuron by its number of outgoing synapses, toward zero; else 0.
    pub shares: i32,
    /// 1 to replace the PSP of each synapse by the potential at which its source fired, rounded and limited to 0 to 255; else
    /// 0.
    pub potential_driven: i32,
}

/// The neurons and synapses of a network. Each array of neurons has one element per neuron, and may be NULL for the default of
/// every neuron.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_network_arrays {
    /// The size of the struct in bytes.
    pub size: usize,
    /// The number of neurons.
    pub neurons: usize,
    /// Lower edges of the firing window. Default 1.
    pub threshold: *const f32,
    /// Upper edges of the firing window. Default infinite.
    pub threshold_max: *const f32,
    /// Parts of the distance from rest that are lost per burst in which the neuron is touched, 0 to 1. Default 0.1.
    pub leak: *const f32,
    /// Resting potentials. Default 0.
    pub rest: *const f32,
    /// Touched bursts for which a neuron is blocked after a spike. Default 0.
    pub refractory: *const u16,
    /// Probabilities, 0 to 1, of a spike inside the window. Default 1.
    pub excitability: *const f32,
    /// Consecutive spikes after which a neuron must pause, 0 for no limit. Default 0.
    pub fire_limit: *const u16,
    /// Additional blocked bursts once that limit is reached. Default 0.
    pub snooze: *const u16,
    /// 1 for potentials that accumulate over bursts, 0 for neurons that begin every burst at rest. Default 1.
    pub accumulates: *const u8,
    /// 0 excitatory, 1 inhibitory; for information. Default 0.
    pub neuron_kind: *const u8,
    /// Indices into `areas`. Default 0.
    pub area: *const u32,
    /// Coordinates in the area: x, y and z of each neuron. Default 0.
    pub position: *const u32,
    /// The number of areas. 0 for one area, `all`, without special rules.
    pub area_count: usize,
    /// The areas.
    pub areas: *const sv_area,
    /// The number of synapses, in any order.
    pub synapses: usize,
    /// Ids of the neurons whose spikes the synapses carry.
    pub source: *const u32,
    /// Ids of the neurons that receive them.
    pub target: *const u32,
    /// Weights.
    pub weight: *const u8,
    /// Postsynaptic potentials.
    pub psp: *const u8,
    /// 0 excitatory, 1 inhibitory. NULL if all are excitatory.
    pub synapse_kind: *const u8,
}

/// Replaces a field of neurons by the caller's array, unless that is NULL.
///
/// # Safety
///
/// The pointer is NULL or as [`slice`].
unsafe fn field<T: Copy>(field: &mut [T], pointer: *const T, name: &str) -> Result<()> {
    if !pointer.is_null() {
        field.copy_from_slice(slice(pointer, field.len(), name)?);
    }
    Ok(())
}

/// # Safety
///
/// As [`field`] for each pointer of the struct.
unsafe fn neurons(arrays: &sv_network_arrays) -> Result<Neurons> {
    if arrays.neurons > MAX_NEURONS {
        return Err(Failure::argument("arrays->neurons", arrays.neurons, "at most 2^31"));
    }
    check_host_memory(arrays.neurons as u64, arrays.synapses as u64)?;
    let mut neurons = Neurons::new(arrays.neurons);
    let mut accumulates = vec![1u8; arrays.neurons];
    let mut position = vec![0u32; if arrays.position.is_null() { 0 } else { 3 * arrays.neurons }];
    field(&mut neurons.threshold, arrays.threshold, "arrays->threshold")?;
    field(&mut neurons.threshold_max, arrays.threshold_max, "arrays->threshold_max")?;
    field(&mut neurons.leak, arrays.leak, "arrays->leak")?;
    field(&mut neurons.rest, arrays.rest, "arrays->rest")?;
    field(&mut neurons.refractory, arrays.refractory, "arrays->refractory")?;
    field(&mut neurons.excitability, arrays.excitability, "arrays->excitability")?;
    field(&mut neurons.fire_limit, arrays.fire_limit, "arrays->fire_limit")?;
    field(&mut neurons.snooze, arrays.snooze, "arrays->snooze")?;
    field(&mut accumulates, arrays.accumulates, "arrays->accumulates")?;
    field(&mut neurons.kind, arrays.neuron_kind, "arrays->neuron_kind")?;
    field(&mut neurons.area, arrays.area, "arrays->area")?;
    field(&mut position, arrays.position, "arrays->position")?;
    for (to, from) in neurons.accumulates.iter_mut().zip(&accumulates) {
        *to = flag(i32::from(*from), "arrays->accumulates")?;
    }
    for (to, from) in neurons.position.iter_mut().zip(position.chunks_exact(3)) {
        to.copy_from_slice(from);
    }
    Ok(neurons)
}

/// # Safety
///
/// As [`slice`] for the pointer of the struct, and [`text`] for each name.
unsafe fn areas(arrays: &sv_network_arrays) -> Result<Vec<Area>> {
    let given = slice(arrays.areas, arrays.area_count, "arrays->areas")?;
    if given.is_empty() {
        return Ok(vec![Area::new("all")]);
    }
    let area = |area: &sv_area| {
        let mut checked = Area::new(text(area.name, "areas->name")?);
        checked.shares = flag(area.shares, "areas->shares")?;
        checked.potential_driven = flag(area.potential_driven, "areas->potential_driven")?;
        Ok(checked)
    };
    given.iter().map(area).collect()
}

/// Builds a network from arrays, which are copied and checked.
///
/// # Safety
///
/// `arrays` points to a struct whose pointers are NULL or point to as many elements as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_create(
    arrays: *const sv_network_arrays,
    network: *mut sv_network,
) -> i32 {
    guard::call("sv_network_create", || {
        let (result, arrays) = (out(network, "network")?, structure(arrays, "arrays")?);
        let (neurons, areas) = (neurons(arrays)?, areas(arrays)?);
        let count = arrays.synapses;
        let excitatory = match arrays.synapse_kind.is_null() {
            true => collected(count, "arrays->synapse_kind", std::iter::repeat(0))?,
            false => Vec::new(),
        };
        let arrays = SynapseArrays {
            source: slice(arrays.source, count, "arrays->source")?,
            target: slice(arrays.target, count, "arrays->target")?,
            weight: slice(arrays.weight, count, "arrays->weight")?,
            psp: slice(arrays.psp, count, "arrays->psp")?,
            kind: match arrays.synapse_kind.is_null() {
                true => &excitatory,
                false => slice(arrays.synapse_kind, count, "arrays->synapse_kind")?,
            },
        };
        let synapses = Synapses::from_arrays(neurons.len(), &arrays)?;
        let network = Network::with_areas(neurons, synapses, areas)?;
        result.write(enter_network(Arc::new(network), None)?);
        Ok(())
    })
}

fn generate(generated: GeneratedNetwork) -> Result<u64> {
    enter_network(Arc::new(generated.network()?), Some(generated))
}

/// Returns the definition of a generated network.
fn generated(network: &NetworkObject) -> Result<GeneratedNetwork> {
    let wanted = "a network of sv_network_g or sv_network_s";
    let lacks = || Failure::argument("network", "a network without an input of its own", wanted);
    network.generated.ok_or_else(lacks)
}

/// Generates network G: varied parameters of every kind and `degree` synapses a neuron, for tests of equality.
/// `sv_network_input` gives its input, and `sv_device_network_g` generates it on a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_g(neurons: u32, degree: u32, network: *mut sv_network) -> i32 {
    guard::call("sv_network_g", || {
        let result = out(network, "network")?;
        result.write(generate(GeneratedNetwork::g(neurons, degree))?);
        Ok(())
    })
}

/// Generates network S: one neuron in `every` fires in each burst, for timing. `sv_network_input` gives its input, and
/// `sv_device_network_s` generates it on a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_s(
    neurons: u32,
    degree: u32,
    every: u32,
    network: *mut sv_network,
) -> i32 {
    guard::call("sv_network_s", || {
        let result = out(network, "network")?;
        if every == 0 {
            return Err(Failure::argument("every", every, "1 or more"));
        }
        result.write(generate(GeneratedNetwork::s(neurons, degree, every))?);
        Ok(())
    })
}

/// Writes the input of a generated network for burst number `number`, from 1: neurons and potentials for
/// `sv_simulation_inject`.
///
/// `count` gets the number of inputs; the arrays get the first `capacity` of them. A capacity of 0 asks for the number alone,
/// which is at most the number of neurons. A network from arrays or from a file has no such input, and the call fails.
///
/// # Safety
///
/// `ids` and `potentials` point to `capacity` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_input(
    network: sv_network,
    number: u32,
    ids: *mut u32,
    potentials: *mut f32,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    guard::call("sv_network_input", || {
        let (count, ids, potentials) = (
            out(count, "count")?,
            slice_mut(ids, capacity, "ids")?,
            slice_mut(potentials, capacity, "potentials")?,
        );
        let object = self::network(network, "network")?;
        let input = generated(&object)?.injections(u64::from(number));
        for ((injection, id), potential) in input.iter().zip(ids).zip(potentials) {
            (*id, *potential) = (injection.id, injection.thousandths as f32 / 1000.0);
        }
        count.write(input.len());
        Ok(())
    })
}

/// Writes the input of a generated network as the pattern for `sv_device_network_set_pattern`.
///
/// A network from arrays or from a file has none, and the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_pattern(
    network: sv_network,
    base: *mut u32,
    modulus: *mut u32,
    potential: *mut f32,
) -> i32 {
    guard::call("sv_network_pattern", || {
        let (base, modulus, potential) =
            (out(base, "base")?, out(modulus, "modulus")?, out(potential, "potential")?);
        let pattern = generated(&self::network(network, "network")?)?.pattern();
        base.write(pattern.base);
        modulus.write(pattern.modulus);
        potential.write(pattern.thousandths as f32 / 1000.0);
        Ok(())
    })
}

/// Reads a network: the arrays of an `.npz` file, if the name ends so, or the network of a `.burst` file with the weights that
/// were saved.
///
/// An `.npz` file has the arrays `source`, `target`, `weight`, `psp` and, unless all are excitatory, `kind` of the synapses, and
/// those of the neurons by the names in `sv_network_arrays`; `neurons` alone gives their number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_read(path: *const c_char, network: *mut sv_network) -> i32 {
    guard::call("sv_network_read", || {
        let (path, result) = (text(path, "path")?, out(network, "network")?);
        let is_npz =
            Path::new(path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npz"));
        let network = match is_npz {
            true => Arc::new(Network::read_npz(path)?),
            false => Simulation::restore(path, Box::new(Cpu::with_threads(1)))?.network().clone(),
        };
        result.write(enter_network(network, None)?);
        Ok(())
    })
}

/// Writes a network to a `.burst` file, at rest before burst 1. The file appears whole under its name or not at all.
/// `sv_simulation_save` writes the network of a simulation with its state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_write(network: sv_network, path: *const c_char) -> i32 {
    guard::call("sv_network_write", || {
        let path = text(path, "path")?;
        let network = self::network(network, "network")?.network;
        Simulation::new(network, Box::new(Cpu::with_threads(1)), 0)?.save(path)?;
        Ok(())
    })
}

/// Writes the numbers of neurons and synapses of a network.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_size(
    network: sv_network,
    neurons: *mut usize,
    synapses: *mut usize,
) -> i32 {
    guard::call("sv_network_size", || {
        let (neurons, synapses) = (out(neurons, "neurons")?, out(synapses, "synapses")?);
        let network = self::network(network, "network")?.network;
        neurons.write(network.len());
        synapses.write(network.synapses().len());
        Ok(())
    })
}

/// Writes the synapses as compressed sparse rows: the synapses of neuron `i` are those from `row_pointers[i]` to
/// `row_pointers[i + 1]`, ascending by target. The highest bit of a target marks an inhibitory synapse. This is also the order
/// of `sv_simulation_weights`.
///
/// `rows` is the number of neurons plus 1, and `synapses` the number of synapses.
///
/// # Safety
///
/// `row_pointers` points to `rows` elements, and `targets` to `synapses`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_rows(
    network: sv_network,
    row_pointers: *mut u64,
    rows: usize,
    targets: *mut u32,
    synapses: usize,
) -> i32 {
    guard::call("sv_network_rows", || {
        let (row_pointers, targets) =
            (slice_mut(row_pointers, rows, "row_pointers")?, slice_mut(targets, synapses, "targets")?);
        let network = self::network(network, "network")?.network;
        let found = network.synapses();
        check_count("rows", rows, found.row_pointers().len())?;
        check_count("synapses", synapses, found.len())?;
        row_pointers.copy_from_slice(found.row_pointers());
        targets.copy_from_slice(found.targets());
        Ok(())
    })
}
