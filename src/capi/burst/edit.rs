//! Synapses and neurons that are created or removed while a simulation runs, and the network that this makes.

use super::super::arguments::{collected, copied, out, slice};
use super::super::guard;
use super::super::handle::{sv_network, sv_simulation};
use super::{enter_network, network, simulation_of, with_simulation, write_some};
use crate::burst::SynapseArrays;

/// Creates synapses, which carry spikes from the next burst on. Arrays may be in any order; on an error nothing is created.
///
/// A kind is 0 for an excitatory and 1 for an inhibitory synapse; NULL for `kind` makes all of them excitatory. A pair of neurons
/// that has a synapse gets no second one. The next burst or a save merges all edits since the last one in one pass over the
/// network, and loads the device anew.
///
/// # Safety
///
/// The arrays point to `count` elements each, or `kind` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_create_synapses(
    simulation: sv_simulation,
    source: *const u32,
    target: *const u32,
    weight: *const u8,
    psp: *const u8,
    kind: *const u8,
    count: usize,
) -> i32 {
    guard::call("sv_simulation_create_synapses", || {
        let object = simulation_of(simulation)?;
        let (source, target, weight, psp) = (
            slice(source, count, "source")?,
            slice(target, count, "target")?,
            slice(weight, count, "weight")?,
            slice(psp, count, "psp")?,
        );
        let kind = match kind.is_null() {
            true => collected(count, "kind", std::iter::repeat(0))?,
            false => copied(slice(kind, count, "kind")?, "kind")?,
        };
        let (source, target) = (copied(source, "source")?, copied(target, "target")?);
        let (weight, psp) = (copied(weight, "weight")?, copied(psp, "psp")?);
        object.with(move |simulation| {
            let (source, target, weight, psp, kind) = (&source, &target, &weight, &psp, &kind);
            Ok(simulation.create_synapses(&SynapseArrays { source, target, weight, psp, kind })?)
        })
    })
}

/// Removes the synapses from each source to its target before the next burst: all of them where a pair has several. On an error
/// nothing is removed.
///
/// # Safety
///
/// `source` and `target` point to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_remove_synapses(
    simulation: sv_simulation,
    source: *const u32,
    target: *const u32,
    count: usize,
) -> i32 {
    guard::call("sv_simulation_remove_synapses", || {
        let object = simulation_of(simulation)?;
        let (source, target) = (slice(source, count, "source")?, slice(target, count, "target")?);
        let (source, target) = (copied(source, "source")?, copied(target, "target")?);
        object.with(move |simulation| Ok(simulation.remove_synapses(&source, &target)?))
    })
}

/// Removes neurons with all synapses from and to them before the next burst. Their slots stay, so that no other id changes, but
/// are never touched again; an injection into one fails. On an error nothing is removed.
///
/// # Safety
///
/// `ids` points to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_remove_neurons(
    simulation: sv_simulation,
    ids: *const u32,
    count: usize,
) -> i32 {
    guard::call("sv_simulation_remove_neurons", || {
        let object = simulation_of(simulation)?;
        let ids = copied(slice(ids, count, "ids")?, "ids")?;
        object.with(move |simulation| Ok(simulation.remove_neurons(&ids)?))
    })
}

/// Writes the handle of the network as the last merge of edits made it, or as it was loaded. Its rows are those of
/// `sv_simulation_weights`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_network(simulation: sv_simulation, network: *mut sv_network) -> i32 {
    guard::call("sv_simulation_network", || {
        let result = out(network, "network")?;
        let network = with_simulation(simulation, |simulation| Ok(simulation.network().clone()))?;
        result.write(enter_network(network, None)?);
        Ok(())
    })
}

/// Writes the neurons of a network that were removed, ascending.
///
/// `count` gets their number; `ids` gets the first `capacity` of them.
///
/// # Safety
///
/// `ids` points to `capacity` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_removed(
    network: sv_network,
    ids: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    guard::call("sv_network_removed", || {
        let count = out(count, "count")?;
        let network = self::network(network, "network")?.network;
        let removed = network.removed();
        write_some(removed, ids, capacity, "ids")?;
        count.write(removed.len());
        Ok(())
    })
}
