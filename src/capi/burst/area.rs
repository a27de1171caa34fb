//! The areas of a network, and the places of its neurons in them.

use std::ffi::c_char;

use super::super::arguments::{out, slice_mut, text, write_text};
use super::super::error::Failure;
use super::super::guard;
use super::super::handle::{sv_network, sv_simulation};
use super::{check_count, network, with_simulation, write_some};

/// Writes the number of areas of a network.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_area_count(network: sv_network, count: *mut usize) -> i32 {
    guard::call("sv_network_area_count", || {
        let count = out(count, "count")?;
        count.write(self::network(network, "network")?.network.areas().len());
        Ok(())
    })
}

/// Writes the rules of an area by its index, as `sv_area` has them, and its name. `text`, `capacity` and `length` are as for
/// `sv_library_report`.
///
/// # Safety
///
/// `shares` and `potential_driven` point to `int32_t`s, and `text` to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_area(
    network: sv_network,
    area: u32,
    shares: *mut i32,
    potential_driven: *mut i32,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_network_area", || {
        let (shares, driven) = (out(shares, "shares")?, out(potential_driven, "potential_driven")?);
        let network = self::network(network, "network")?.network;
        let areas = network.areas();
        let found = areas
            .get(area as usize)
            .ok_or_else(|| Failure::argument("area", area, &format!("an index below {}", areas.len())))?;
        write_text(&found.name, text, capacity, length)?;
        shares.write(i32::from(found.shares));
        driven.write(i32::from(found.potential_driven));
        Ok(())
    })
}

/// Writes the area, the kind and the coordinates x, y and z of every neuron, as in `sv_network_arrays`.
///
/// `neurons` is the number of neurons. `sv_simulation_parameter` has the parameters that a run can change.
///
/// # Safety
///
/// `areas` and `kinds` point to `neurons` elements, and `positions` to three times as many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_places(
    network: sv_network,
    areas: *mut u32,
    kinds: *mut u8,
    positions: *mut u32,
    neurons: usize,
) -> i32 {
    guard::call("sv_network_places", || {
        let (areas, kinds, positions) = (
            slice_mut(areas, neurons, "areas")?,
            slice_mut(kinds, neurons, "kinds")?,
            slice_mut(positions, neurons.saturating_mul(3), "positions")?,
        );
        let network = self::network(network, "network")?.network;
        let found = network.neurons();
        check_count("neurons", neurons, found.len())?;
        areas.copy_from_slice(&found.area);
        kinds.copy_from_slice(&found.kind);
        for (to, from) in positions.chunks_exact_mut(3).zip(&found.position) {
            to.copy_from_slice(from);
        }
        Ok(())
    })
}

/// Writes the index of the first area of a name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_find_area(
    network: sv_network,
    name: *const c_char,
    area: *mut u32,
) -> i32 {
    guard::call("sv_network_find_area", || {
        let (name, area) = (text(name, "name")?, out(area, "area")?);
        let network = self::network(network, "network")?.network;
        let found = network.area(name);
        area.write(found.ok_or_else(|| Failure::argument("name", name, "the name of an area"))?);
        Ok(())
    })
}

/// Sets the input that the neurons of an area receive in every burst, in place of an earlier one for the area. 0 ends it. It adds
/// to that of `sv_simulation_set_power` for other ranges.
#[unsafe(no_mangle)]
pub extern "C" fn sv_simulation_set_area_power(simulation: sv_simulation, area: u32, potential: f32) -> i32 {
    guard::call("sv_simulation_set_area_power", || {
        with_simulation(simulation, move |simulation| Ok(simulation.set_area_power(area, potential)?))
    })
}

/// Writes the neurons of an area that fired in burst number `number` by the ledger, ascending.
///
/// `count` gets their number; `ids` gets the first `capacity` of them.
///
/// # Safety
///
/// `ids` points to `capacity` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_simulation_area_fired(
    simulation: sv_simulation,
    area: u32,
    number: u64,
    ids: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    guard::call("sv_simulation_area_fired", || {
        let count = out(count, "count")?;
        let fired =
            with_simulation(simulation, move |simulation| Ok(simulation.fired_in_area(area, number)?))?;
        write_some(&fired, ids, capacity, "ids")?;
        count.write(fired.len());
        Ok(())
    })
}
