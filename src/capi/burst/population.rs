//! Populations: named ranges of the neurons of a network.

use std::ffi::c_char;
use std::sync::Arc;

use super::super::arguments::{out, text, write_text};
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::{Object, sv_network};
use super::{NetworkObject, network};
use crate::burst::Population;

/// Names the neurons from `first` to the one before `end`. The name is unique in its network.
///
/// Simulations that were created before keep the network without the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_add_population(
    network: sv_network,
    name: *const c_char,
    first: u32,
    end: u32,
) -> i32 {
    guard::call("sv_network_add_population", || {
        let name = text(name, "name")?;
        NetworkObject::table().with_mut(network, "network", |object| {
            Ok(Arc::make_mut(&mut object.network).add_population(name, first..end)?)
        })
    })
}

/// Writes the neurons of a population: the first one, and the one behind the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_population(
    network: sv_network,
    name: *const c_char,
    first: *mut u32,
    end: *mut u32,
) -> i32 {
    guard::call("sv_network_population", || {
        let (name, first, end) = (text(name, "name")?, out(first, "first")?, out(end, "end")?);
        let network = self::network(network, "network")?.network;
        let ids = network.population(name).ok_or_else(|| {
            let names: Vec<&str> = network.populations().iter().map(|known| known.name.as_str()).collect();
            Failure::argument("name", name, &format!("one of the populations: {}", names.join(", ")))
        })?;
        first.write(ids.start);
        end.write(ids.end);
        Ok(())
    })
}

/// Writes the number of populations of a network.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_population_count(network: sv_network, count: *mut usize) -> i32 {
    guard::call("sv_network_population_count", || {
        let count = out(count, "count")?;
        count.write(self::network(network, "network")?.network.populations().len());
        Ok(())
    })
}

/// Writes the name of a population by its position, in the order in which they were added. `text`, `capacity` and `length`
/// are as for `sv_library_report`.
///
/// # Safety
///
/// `text` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_network_population_name(
    network: sv_network,
    position: usize,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_network_population_name", || {
        let network = self::network(network, "network")?.network;
        let population: Result<&Population> = network.populations().get(position).ok_or_else(|| {
            let wanted = format!("a position below {}", network.populations().len());
            Failure::argument("position", position, &wanted)
        });
        write_text(&population?.name, text, capacity, length)
    })
}
