//! Recorded spikes and potentials, and samplers.

use std::ffi::c_char;

use super::super::arguments::{copied, out, slice, text};
use super::super::error::Failure;
use super::super::guard;
use super::super::handle::{Object, sv_simulation};
use super::super::tensor::flag;
use super::{SimulationObject, simulation_of, with_simulation, write_some, write_spikes};

/// Starts the recording of spikes with 1, and ends it with 0. Either drops the spikes that were recorded.
#[unsafe(no_mangle)]
pub extern "C" fn sv_simulation_record_spikes(simulation: sv_simulation, record: i32) -> i32 {
    guard::call("sv_simulation_record_spikes", || {
        let record = flag(record, "record")?;
        with_simulation(simulation, move |simulation| {
            simulation.record_spikes(record);
            Ok(())
        })
    })
}

/// Writes the recorded spikes: the number of the burst and the neuron of each, ascending by burst and then by neuron.
///
/// `count` gets their number; the arrays get the first `capacity` of them. A capacity of 0 asks for the number alone.
///
/// # Safety
///
/// `numbers` and `ids` point to `capacity` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_spikes(
    simulation: sv_simulation,
    numbers: *mut u64,
    ids: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    guard::call("sv_simulation_spikes", || {
        let count = out(count, "count")?;
        let (bursts, found, total) = with_simulation(simulation, move |simulation| {
            let (bursts, ids) = simulation.spikes();
            let fits = ids.len().min(capacity);
            Ok((copied(&bursts[..fits], "numbers")?, copied(&ids[..fits], "ids")?, ids.len()))
        })?;
        write_some(&bursts, numbers, capacity, "numbers")?;
        write_some(&found, ids, capacity, "ids")?;
        count.write(total);
        Ok(())
    })
}

/// Writes the recorded spikes to an `.npz` file: the arrays `burst` and `id`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_write_spikes(simulation: sv_simulation, path: *const c_char) -> i32 {
    guard::call("sv_simulation_write_spikes", || {
        let path = text(path, "path")?.to_owned();
        with_simulation(simulation, move |simulation| Ok(simulation.write_spikes_npz(path)?))
    })
}

/// Records the potentials of some neurons after each burst from now on; of none with a count of 0. Drops the potentials that
/// were recorded.
///
/// # Safety
///
/// `ids` points to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_record_potentials(
    simulation: sv_simulation,
    ids: *const u32,
    count: usize,
) -> i32 {
    guard::call("sv_simulation_record_potentials", || {
        let object = simulation_of(simulation)?;
        let ids = copied(slice(ids, count, "ids")?, "ids")?;
        object.with(move |simulation| Ok(simulation.record_potentials(&ids)?))
    })
}

/// Writes the recorded potentials: a row per burst, with a column per chosen neuron.
///
/// `count` gets the number of elements; `potentials` gets the first `capacity` of them. A capacity of 0 asks for the number
/// alone.
///
/// # Safety
///
/// `potentials` points to `capacity` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_potentials(
    simulation: sv_simulation,
    potentials: *mut f32,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    guard::call("sv_simulation_potentials", || {
        let count = out(count, "count")?;
        let (found, total) = with_simulation(simulation, move |simulation| {
            let found = simulation.potentials();
            Ok((copied(&found[..found.len().min(capacity)], "potentials")?, found.len()))
        })?;
        write_some(&found, potentials, capacity, "potentials")?;
        count.write(total);
        Ok(())
    })
}

/// Adds a sampler of the neurons from `first` to the one before `end`, with a snapshot per `every` bursts, and writes its
/// number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_add_sampler(
    simulation: sv_simulation,
    first: u32,
    end: u32,
    every: u32,
    sampler: *mut usize,
) -> i32 {
    guard::call("sv_simulation_add_sampler", || {
        let sampler = out(sampler, "sampler")?;
        if every == 0 {
            return Err(Failure::argument("every", every, "1 or more"));
        }
        let object = SimulationObject::table().get(simulation, "simulation")?;
        let mut state = object.lock();
        let number =
            state.with(move |simulation| Ok(simulation.add_sampler(first..end, u64::from(every))?))?;
        state.snapshots.resize_with(number + 1, || None);
        sampler.write(number);
        Ok(())
    })
}

/// Takes the snapshot of a sampler: each neuron that fired since the last one, ascending, with the potential of its latest
/// spike. `number` gets the number of the snapshot's last burst, or 0 if none is due.
///
/// A snapshot has at most as many spikes as the sampler has neurons. If it has more than `capacity`, the call fails, and a later
/// one gets the snapshot.
///
/// # Safety
///
/// `ids` and `potentials` point to `capacity` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_take_snapshot(
    simulation: sv_simulation,
    sampler: usize,
    number: *mut u64,
    ids: *mut u32,
    potentials: *mut f32,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    guard::call("sv_simulation_take_snapshot", || {
        let (number, count) = (out(number, "number")?, out(count, "count")?);
        let object = SimulationObject::table().get(simulation, "simulation")?;
        let mut state = object.lock();
        let samplers = state.snapshots.len();
        let Some(kept) = state.snapshots.get_mut(sampler).map(Option::take) else {
            let wanted = format!("a number below {samplers}");
            return Err(Failure::argument("sampler", sampler, &wanted));
        };
        let snapshot = match kept {
            Some(snapshot) => Some(snapshot),
            None => state.with(move |simulation| Ok(simulation.take_snapshot(sampler)))?,
        };
        let Some(snapshot) = snapshot else {
            number.write(0);
            count.write(0);
            return Ok(());
        };
        let spikes = snapshot.fired.len();
        let result = match spikes <= capacity {
            true => write_spikes(&snapshot.fired, ids, potentials, capacity),
            false => Err(Failure::argument("capacity", capacity, &format!("the {spikes} of the snapshot"))),
        };
        if let Err(failure) = result {
            state.snapshots[sampler] = Some(snapshot);
            return Err(failure);
        }
        number.write(snapshot.burst);
        count.write(spikes);
        Ok(())
    })
}
