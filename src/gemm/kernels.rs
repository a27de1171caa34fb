//! Kernels by name, looked up once a device: asking the driver for one takes longer than a small product.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::plan::Machine;
use crate::driver::{Attribute, Device, Function, driver_isa};
use crate::error::{Error, Result};
use crate::images;

/// What a kernel is looked up by: a number of its engine's own beside its family.
pub(super) type Key = (&'static str, u64);

#[derive(Default)]
struct Known {
    machines: HashMap<usize, Machine>,
    functions: HashMap<(usize, Key), Function>,
    /// Why a machine has no image of a family, or that it has one.
    images: HashMap<(Machine, &'static str), Option<Error>>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// Nothing below a lock calls out, so a panic cannot leave the maps half changed.
fn known() -> MutexGuard<'static, Option<Known>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a choice needs to know of the device.
pub(super) fn machine(device: &Device) -> Result<Machine> {
    let ordinal = device.ordinal();
    if let Some(machine) = known().get_or_insert_default().machines.get(&ordinal) {
        return Ok(*machine);
    }
    let multiprocessors = device.attribute(Attribute::MULTIPROCESSOR_COUNT)?;
    let machine = Machine {
        capability: device.compute_capability(),
        driver_isa: driver_isa()?,
        multiprocessors: u32::try_from(multiprocessors).unwrap_or(1).max(1),
    };
    known().get_or_insert_default().machines.insert(ordinal, machine);
    Ok(machine)
}

/// Why the machine has no image of the family; none where it has one. The environment's overrides are those of the first
/// call.
pub(super) fn missing_image(machine: Machine, family: &'static str) -> Option<Error> {
    if let Some(answer) = known().get_or_insert_default().images.get(&(machine, family)) {
        return answer.clone();
    }
    let answer = images::select(family, machine.capability, machine.driver_isa).err();
    known().get_or_insert_default().images.insert((machine, family), answer.clone());
    answer
}

/// The kernel on the device, whose name is made where it is not known yet. (Not generic: it is called for every pair of types.)
pub(super) fn function(device: &Device, key: Key, name: &dyn Fn() -> String) -> Result<Function> {
    let place = (device.ordinal(), key);
    if let Some(function) = known().get_or_insert_default().functions.get(&place) {
        // One from before a reset went with its context.
        if !function.module().device().is_lost() || device.is_lost() {
            return Ok(function.clone());
        }
    }
    let function = images::load(device, key.0)?.function(&name())?;
    known().get_or_insert_default().functions.insert(place, function.clone());
    Ok(function)
}
