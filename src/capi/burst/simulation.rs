//! Simulations: their creation, input, bursts and files.

use std::ffi::c_char;

use super::super::arguments::{
    OutStructure, collected, out, out_structure, slice, slice_mut, text, write_text,
};
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::{Object, sv_network, sv_simulation};
use super::super::tensor::flag;
use super::{
    Owner, SimulationObject, backend, check_count, enter_simulation, lost, network, simulation_of,
    sv_simulation_options, with_simulation, write_spikes,
};
use crate::burst::{BurstCounts, BurstResult, NeuronField, NeuronSelection, Neurons, Simulation};

/// The counters of a burst, or their sums over bursts.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_burst_counters {
    /// The size of the struct in bytes.
    pub size: usize,
    /// The number of the burst, from 1; of sums, the number of bursts.
    pub bursts: u64,
    /// Neurons that fired.
    pub spikes: u64,
    /// Synapses visited.
    pub events: u64,
    /// Injections added.
    pub injections: u64,
    /// Neurons touched by an event or an injection.
    pub candidates: u64,
    /// Candidates that were refractory.
    pub blocked: u64,
}

pub(super) fn write_counters(
    counters: OutStructure<sv_burst_counters>,
    bursts: u64,
    spikes: u64,
    counts: &BurstCounts,
) {
    let BurstCounts { events, injections, candidates, blocked } = *counts;
    counters.write(sv_burst_counters { size: 0, bursts, spikes, events, injections, candidates, blocked });
}

/// Loads a network on a device, at rest before burst 1.
///
/// The simulation has a reference to the network. Calls for one simulation wait for each other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_create(
    network: sv_network,
    options: *const sv_simulation_options,
    simulation: *mut sv_simulation,
) -> i32 {
    guard::call("sv_simulation_create", || {
        let result = out(simulation, "simulation")?;
        let network = self::network(network, "network")?.network;
        let (backend, seed) = backend(options)?;
        let simulation = Simulation::new(network, backend, seed)?;
        result.write(enter_simulation(simulation, BurstResult::default())?);
        Ok(())
    })
}

/// Continues the run of a `.burst` file on a device, bit for bit. Rules must be added again; they find their past in the
/// ledger of the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_restore(
    path: *const c_char,
    options: *const sv_simulation_options,
    simulation: *mut sv_simulation,
) -> i32 {
    guard::call("sv_simulation_restore", || {
        let (path, result) = (text(path, "path")?, out(simulation, "simulation")?);
        let (backend, _) = backend(options)?;
        let mut simulation = Simulation::restore(path, backend)?;
        let state = simulation.state()?;
        let last = BurstResult { burst: state.burst, fired: state.fired, ..BurstResult::default() };
        result.write(enter_simulation(simulation, last)?);
        Ok(())
    })
}

/// Saves the network as it is now, the state, the ledger, the power input and the mode to a `.burst` file. The file appears whole
/// under its name or not at all. Changes in the parameter queue apply first. Staged input, samplers, recordings and rules are not saved.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_save(simulation: sv_simulation, path: *const c_char) -> i32 {
    guard::call("sv_simulation_save", || {
        let path = text(path, "path")?.to_owned();
        with_simulation(simulation, move |simulation| Ok(simulation.save(path)?))
    })
}

/// Continues on another device after an error such as `SV_ERROR_CONTEXT_LOST`: everything up to the last finished burst is
/// computed again there, bit for bit. Input that was staged for the failed burst is staged again.
///
/// A simulation on the CPU alone cannot be lost, and the call fails; `sv_simulation_move` moves one that works.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_recover(
    simulation: sv_simulation,
    options: *const sv_simulation_options,
) -> i32 {
    guard::call("sv_simulation_recover", || {
        let (backend, _) = backend(options)?;
        with_simulation(simulation, move |simulation| Ok(simulation.recover(backend)?))
    })
}

/// Moves a simulation to another device between two bursts, before input is staged. The results stay the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_move(
    simulation: sv_simulation,
    options: *const sv_simulation_options,
) -> i32 {
    guard::call("sv_simulation_move", || {
        let (backend, _) = backend(options)?;
        with_simulation(simulation, move |simulation| Ok(simulation.set_backend(backend)?))
    })
}

/// Writes the name of the device with its settings, such as `CPU, 8 threads`. `text`, `capacity` and `length` are as for
/// `sv_library_report`.
///
/// # Safety
///
/// `text` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_device_name(
    simulation: sv_simulation,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_simulation_device_name", || {
        let name = with_simulation(simulation, |simulation| Ok(simulation.backend_name()))?;
        write_text(&name, text, capacity, length)
    })
}

/// Stages input for the next burst, behind what is staged already. Each potential is rounded to thousandths, ties to even. On
/// an error nothing is staged.
///
/// # Safety
///
/// `ids` and `potentials` point to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_inject(
    simulation: sv_simulation,
    ids: *const u32,
    potentials: *const f32,
    count: usize,
) -> i32 {
    guard::call("sv_simulation_inject", || {
        let object = simulation_of(simulation)?;
        let (ids, potentials) = (slice(ids, count, "ids")?, slice(potentials, count, "potentials")?);
        let inputs = collected(count, "ids", ids.iter().copied().zip(potentials.iter().copied()))?;
        object.with(move |simulation| Ok(simulation.inject(&inputs)?))
    })
}

/// Sets the input that the neurons from `first` to the one before `end` receive in every burst, in place of an earlier one
/// for the same range. 0 ends it.
#[unsafe(no_mangle)]
pub extern "C" fn sv_simulation_set_power(
    simulation: sv_simulation,
    first: u32,
    end: u32,
    potential: f32,
) -> i32 {
    guard::call("sv_simulation_set_power", || {
        with_simulation(simulation, move |simulation| Ok(simulation.set_power(first..end, potential)?))
    })
}

/// Chooses dense mode with 1, in which time passes for every neuron in every burst; 0 ends it.
#[unsafe(no_mangle)]
pub extern "C" fn sv_simulation_set_dense(simulation: sv_simulation, dense: i32) -> i32 {
    guard::call("sv_simulation_set_dense", || {
        let dense = flag(dense, "dense")?;
        with_simulation(simulation, move |simulation| Ok(simulation.set_dense(dense)?))
    })
}

/// Runs `count` bursts, and waits for them. Staged input enters the first one. A device gets several bursts at a time where
/// nothing needs the host between them.
///
/// After an error the bursts that `sv_simulation_totals` counts are done. The call fails while a runner has the simulation.
#[unsafe(no_mangle)]
pub extern "C" fn sv_simulation_run(simulation: sv_simulation, count: u64) -> i32 {
    guard::call("sv_simulation_run", || {
        let object = SimulationObject::table().get(simulation, "simulation")?;
        let mut state = object.lock();
        let mut last = state.last();
        let result = match &mut state.owner {
            Owner::Caller(simulation) => simulation.run_to(count, &mut last),
            Owner::Runner(_) => {
                return Err(Failure::argument(
                    "simulation",
                    "a simulation that a runner has",
                    "one that sv_simulation_stop gave back",
                ));
            }
            Owner::Lost => return Err(lost()),
        };
        state.set_last(last);
        Ok(result?)
    })
}

/// Writes the neurons that fired in the last burst, in ascending order, and the potentials at which they did.
///
/// `count` gets their number; the arrays get the first `capacity` of them. A capacity of 0 asks for the number alone.
///
/// # Safety
///
/// `ids` and `potentials` point to `capacity` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_fired(
    simulation: sv_simulation,
    ids: *mut u32,
    potentials: *mut f32,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    guard::call("sv_simulation_fired", || {
        let count = out(count, "count")?;
        let object = SimulationObject::table().get(simulation, "simulation")?;
        let fired = object.lock().last().fired;
        write_spikes(&fired, ids, potentials, capacity)?;
        count.write(fired.len());
        Ok(())
    })
}

/// Writes the spikes of the last burst by area: the area of each, the neuron, its potential before the reset, and its
/// coordinates x, y and z. Areas ascend, and in an area the neurons do.
///
/// `count` gets the number of spikes; the arrays get the first `capacity` of them. A capacity of 0 asks for the number alone.
///
/// # Safety
///
/// `areas`, `ids` and `potentials` point to `capacity` elements, `positions` to three times as many, and `count` to a
/// `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_fire_queue(
    simulation: sv_simulation,
    areas: *mut u32,
    ids: *mut u32,
    potentials: *mut f32,
    positions: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    guard::call("sv_simulation_fire_queue", || {
        let (count, areas, ids, potentials, positions) = (
            out(count, "count")?,
            slice_mut(areas, capacity, "areas")?,
            slice_mut(ids, capacity, "ids")?,
            slice_mut(potentials, capacity, "potentials")?,
            slice_mut(positions, capacity.saturating_mul(3), "positions")?,
        );
        let object = SimulationObject::table().get(simulation, "simulation")?;
        let mut state = object.lock();
        let last = state.last();
        let spikes = last.fired.len();
        let queue = state.with(move |simulation| Ok(simulation.fire_queue(&last)))?;
        let fired = queue.iter().flat_map(|(area, fired)| fired.iter().map(move |neuron| (*area, neuron)));
        let arrays = areas.iter_mut().zip(ids).zip(potentials).zip(positions.chunks_exact_mut(3));
        for ((area, neuron), (((to_area, id), potential), position)) in fired.zip(arrays) {
            (*to_area, *id, *potential) = (area, neuron.id, neuron.potential);
            position.copy_from_slice(&neuron.position);
        }
        count.write(spikes);
        Ok(())
    })
}

/// Writes the counters of the last burst. After `sv_simulation_restore` they are 0 but for the burst's number and its spikes.
///
/// # Safety
///
/// `counters` points to a struct whose size is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_counters(
    simulation: sv_simulation,
    counters: *mut sv_burst_counters,
) -> i32 {
    guard::call("sv_simulation_counters", || {
        let counters = out_structure(counters, "counters")?;
        let object = SimulationObject::table().get(simulation, "simulation")?;
        let last = object.lock().last();
        write_counters(counters, last.burst, last.fired.len() as u64, &last.counts);
        Ok(())
    })
}

/// Writes the sums over all bursts of this simulation.
///
/// # Safety
///
/// `totals` points to a struct whose size is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_totals(
    simulation: sv_simulation,
    totals: *mut sv_burst_counters,
) -> i32 {
    guard::call("sv_simulation_totals", || {
        let counters = out_structure(totals, "totals")?;
        let totals = with_simulation(simulation, |simulation| Ok(simulation.totals()))?;
        write_counters(counters, totals.bursts, totals.spikes, &totals.counts);
        Ok(())
    })
}

/// The lower edge of the firing window.
pub const SV_NEURON_THRESHOLD: i32 = 1;
/// The upper edge of the firing window.
pub const SV_NEURON_THRESHOLD_MAX: i32 = 2;
/// The leak, 0 to 1.
pub const SV_NEURON_LEAK: i32 = 3;
/// The resting potential.
pub const SV_NEURON_REST: i32 = 4;
/// The refractory period in bursts.
pub const SV_NEURON_REFRACTORY: i32 = 5;
/// The excitability, 0 to 1.
pub const SV_NEURON_EXCITABILITY: i32 = 6;
/// The consecutive-fire limit, 0 for none.
pub const SV_NEURON_FIRE_LIMIT: i32 = 7;
/// The additional bursts of a pause.
pub const SV_NEURON_SNOOZE: i32 = 8;
/// 1 if the potential accumulates over bursts, else 0.
pub const SV_NEURON_ACCUMULATES: i32 = 9;

/// Returns a parameter with its new value.
fn neuron_field(field: i32, value: f64) -> Result<NeuronField> {
    let whole = || match (0.0..=f64::from(u16::MAX)).contains(&value) && value.fract() == 0.0 {
        true => Ok(value as u16),
        false => Err(Failure::argument("value", value, "a whole number from 0 to 65535")),
    };
    Ok(match field {
        SV_NEURON_THRESHOLD => NeuronField::Threshold(value as f32),
        SV_NEURON_THRESHOLD_MAX => NeuronField::ThresholdMax(value as f32),
        SV_NEURON_LEAK => NeuronField::Leak(value as f32),
        SV_NEURON_REST => NeuronField::Rest(value as f32),
        SV_NEURON_REFRACTORY => NeuronField::Refractory(whole()?),
        SV_NEURON_EXCITABILITY => NeuronField::Excitability(value as f32),
        SV_NEURON_FIRE_LIMIT => NeuronField::FireLimit(whole()?),
        SV_NEURON_SNOOZE => NeuronField::Snooze(whole()?),
        SV_NEURON_ACCUMULATES if value == 0.0 || value == 1.0 => NeuronField::Accumulates(value == 1.0),
        SV_NEURON_ACCUMULATES => return Err(Failure::argument("value", value, "0 or 1")),
        other => return Err(Failure::argument("field", other, "one of SV_NEURON_...")),
    })
}

/// Returns the values of a parameter, one of each neuron.
fn neuron_values(neurons: &Neurons, field: i32) -> Result<Vec<f64>> {
    let reals = |values: &[f32]| values.iter().map(|value| f64::from(*value)).collect();
    let whole = |values: &[u16]| values.iter().map(|value| f64::from(*value)).collect();
    Ok(match field {
        SV_NEURON_THRESHOLD => reals(&neurons.threshold),
        SV_NEURON_THRESHOLD_MAX => reals(&neurons.threshold_max),
        SV_NEURON_LEAK => reals(&neurons.leak),
        SV_NEURON_REST => reals(&neurons.rest),
        SV_NEURON_REFRACTORY => whole(&neurons.refractory),
        SV_NEURON_EXCITABILITY => reals(&neurons.excitability),
        SV_NEURON_FIRE_LIMIT => whole(&neurons.fire_limit),
        SV_NEURON_SNOOZE => whole(&neurons.snooze),
        SV_NEURON_ACCUMULATES => {
            neurons.accumulates.iter().map(|value| f64::from(u8::from(*value))).collect()
        }
        other => return Err(Failure::argument("field", other, "one of SV_NEURON_...")),
    })
}

/// Writes a parameter of every neuron as it is now, without the changes that are still queued. `field` is one of
/// `SV_NEURON_...`.
///
/// `neurons` is the number of neurons.
///
/// # Safety
///
/// `values` points to `neurons` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_parameter(
    simulation: sv_simulation,
    field: i32,
    values: *mut f64,
    neurons: usize,
) -> i32 {
    guard::call("sv_simulation_parameter", || {
        let values = slice_mut(values, neurons, "values")?;
        let found =
            with_simulation(simulation, move |simulation| neuron_values(simulation.neurons(), field))?;
        check_count("neurons", neurons, found.len())?;
        values.copy_from_slice(&found);
        Ok(())
    })
}

fn change(simulation: u64, neurons: NeuronSelection, field: NeuronField) -> Result<()> {
    with_simulation(simulation, move |simulation| Ok(simulation.parameter_queue().push(neurons, field)?))
}

/// Queues a change of a parameter of the neurons from `first` to the one before `end`. Changes apply in order before the next
/// burst. `field` is one of `SV_NEURON_...`.
///
/// Any thread may call it, also while a runner has the simulation.
#[unsafe(no_mangle)]
pub extern "C" fn sv_simulation_set_parameter(
    simulation: sv_simulation,
    field: i32,
    first: u32,
    end: u32,
    value: f64,
) -> i32 {
    guard::call("sv_simulation_set_parameter", || {
        change(simulation, NeuronSelection::Ids(first..end), neuron_field(field, value)?)
    })
}

/// As `sv_simulation_set_parameter`, of all neurons of an area.
///
/// Any thread may call it, also while a runner has the simulation.
#[unsafe(no_mangle)]
pub extern "C" fn sv_simulation_set_area_parameter(
    simulation: sv_simulation,
    field: i32,
    area: u32,
    value: f64,
) -> i32 {
    guard::call("sv_simulation_set_area_parameter", || {
        change(simulation, NeuronSelection::Area(area), neuron_field(field, value)?)
    })
}
