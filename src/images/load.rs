//! The caches of modules, kernels, device properties and missing images.
//!
//! Invariant: what belongs to a device is in a [`DeviceCache`], so a lookup never returns anything of an earlier context.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use once_cell::sync::OnceCell;

use super::select::{of_family, select};
use super::{DeviceProperties, IMAGES};
use crate::driver::{Device, DeviceCache, Function, Module, driver_isa};
use crate::error::{Error, Result};

/// A module that is loaded, is being loaded, or could not be loaded yet.
type Slot = Arc<OnceCell<Module>>;

/// A kernel of a family in a lookup.
#[derive(Clone, Copy)]
pub(crate) enum Entry<'a> {
    /// By its name.
    Name(&'static str),
    /// By a number within the family, and the function that makes its name at the first lookup.
    Number(u64, &'a dyn Fn() -> String),
}

/// The part of an [`Entry`] that is compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum EntryKey {
    Name(&'static str),
    Number(u64),
}

/// Modules by family.
static MODULES: DeviceCache<&'static str, Slot> = DeviceCache::new();
static FUNCTIONS: DeviceCache<(&'static str, EntryKey), Function> = DeviceCache::new();
static PROPERTIES: DeviceCache<(), DeviceProperties> = DeviceCache::new();
/// The reason why devices have no image of a family, or `None` for those that have one.
static MISSING: LazyLock<Mutex<Missing>> = LazyLock::new(Mutex::default);

type Missing = HashMap<(DeviceProperties, &'static str), Option<Error>>;

/// Returns the family's module on a device: the first call loads it, later calls return the same one.
///
/// The call that loads reads the overrides of the environment. Loading can wait for kernels that are running, so
/// call it early for what will be needed while a kernel waits for another one. A load that failed is tried again by
/// the next call.
///
/// # Errors
///
/// As [`select`](super::select), or the driver's own where it refuses the image.
pub fn load(device: &Device, family: &str) -> Result<Module> {
    // The name with the life of the program, so that looking up allocates nothing more.
    let family = match IMAGES.iter().find(|image| image.family == family) {
        Some(image) => image.family,
        None => of_family(IMAGES, family)?[0].family,
    };
    let load = || {
        let image = select(family, device.compute_capability(), driver_isa()?)?;
        device.load(&image.bytes()?)
    };
    let slot = MODULES.get(device, family).unwrap_or_else(|| MODULES.add(device, family, Slot::default()));
    // Outside of the lock: assembling takes long, and others need other families meanwhile.
    let module = slot.get_or_try_init(load)?;
    Ok(module.clone())
}

/// Returns a kernel of a family on a device, looked up once: asking the driver takes longer than a small launch.
///
/// # Errors
///
/// As [`load`], and those of looking up a name; [`Error::ContextLost`] for a device that was lost.
pub(crate) fn kernel(device: &Device, family: &'static str, entry: Entry<'_>) -> Result<Function> {
    let key = match entry {
        Entry::Name(name) => EntryKey::Name(name),
        Entry::Number(number, _) => EntryKey::Number(number),
    };
    FUNCTIONS.get_or_try_add(device, &(family, key), || {
        let module = load(device, family)?;
        match entry {
            Entry::Name(name) => module.function(name),
            Entry::Number(_, name) => module.function(&name()),
        }
    })
}

/// Returns the device's properties.
pub(super) fn properties(device: &Device) -> Result<DeviceProperties> {
    PROPERTIES.get_or_try_add(device, &(), || DeviceProperties::query(device))
}

/// Returns the reason why such a device has no image of the family, and `None` where it has one. The first call reads the
/// overrides of the environment.
pub(crate) fn missing_image(properties: DeviceProperties, family: &'static str) -> Option<Error> {
    let key = (properties, family);
    let lock = || MISSING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(answer) = lock().get(&key).cloned() {
        return answer;
    }
    let answer = select(family, properties.capability, properties.driver_isa).err();
    lock().insert(key, answer.clone());
    answer
}

/// Loads families before they are used, because a load waits for every running kernel: code that launches a kernel that waits
/// for another one loads both first.
///
/// # Errors
///
/// As [`load`], for the first family that cannot be loaded.
pub fn preload(device: &Device, families: &[&str]) -> Result<()> {
    families.iter().try_for_each(|family| load(device, family).map(drop))
}
