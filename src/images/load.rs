//! The one cache of modules, kernels, device properties and missing images.
//!
//! Invariants: every entry is keyed by its [`Device`], and a device that was reset is another `Device`, so a lookup never
//! returns anything of an earlier context. Each lookup that misses drops the entries of lost contexts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use once_cell::sync::OnceCell;

use super::select::{of_family, select};
use super::{DeviceProperties, IMAGES};
use crate::driver::{Device, Function, Module, driver_isa};
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

#[derive(Default)]
struct Cache {
    /// Modules stay loaded: unloading one waits for the device.
    modules: HashMap<(Device, &'static str), Slot>,
    functions: HashMap<(Device, &'static str, EntryKey), Function>,
    properties: HashMap<Device, DeviceProperties>,
    /// The reason why devices have no image of a family, or `None` for those that have one.
    missing: HashMap<(DeviceProperties, &'static str), Option<Error>>,
}

static CACHE: Mutex<Option<Cache>> = Mutex::new(None);

/// Locks the cache. Nothing below the lock calls out, so a panic cannot leave its maps half changed.
fn with_cache<R>(work: impl FnOnce(&mut Cache) -> R) -> R {
    let mut cache: MutexGuard<'_, Option<Cache>> = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    work(cache.get_or_insert_default())
}

/// Takes the entries of lost contexts out of the cache. They are dropped after the lock.
fn forget_lost() {
    let forgotten = with_cache(|cache| {
        let modules: Vec<_> = cache.modules.keys().filter(|key| key.0.is_lost()).copied().collect();
        let functions: Vec<_> = cache.functions.keys().filter(|key| key.0.is_lost()).copied().collect();
        cache.properties.retain(|device, _| !device.is_lost());
        let modules: Vec<_> = modules.iter().filter_map(|key| cache.modules.remove(key)).collect();
        let functions: Vec<_> = functions.iter().filter_map(|key| cache.functions.remove(key)).collect();
        (modules, functions)
    });
    drop(forgotten);
}

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
    if device.is_lost() {
        // Returns the error of a lost context, and nothing is kept for it.
        return load();
    }
    let slot = with_cache(|cache| cache.modules.get(&(*device, family)).cloned());
    let slot = match slot {
        Some(slot) => slot,
        None => {
            forget_lost();
            with_cache(|cache| cache.modules.entry((*device, family)).or_default().clone())
        }
    };
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
    let place = (*device, family, key);
    if let Some(function) = with_cache(|cache| cache.functions.get(&place).cloned()) {
        return Ok(function);
    }
    let module = load(device, family)?;
    let function = match entry {
        Entry::Name(name) => module.function(name)?,
        Entry::Number(_, name) => module.function(&name())?,
    };
    with_cache(|cache| cache.functions.insert(place, function.clone()));
    Ok(function)
}

/// Returns the device's properties.
pub(super) fn properties(device: &Device) -> Result<DeviceProperties> {
    if let Some(properties) = with_cache(|cache| cache.properties.get(device).copied()) {
        return Ok(properties);
    }
    let properties = DeviceProperties::query(device)?;
    with_cache(|cache| cache.properties.insert(*device, properties));
    Ok(properties)
}

/// Returns the reason why such a device has no image of the family, and `None` where it has one. The first call reads the
/// overrides of the environment.
pub(crate) fn missing_image(properties: DeviceProperties, family: &'static str) -> Option<Error> {
    let key = (properties, family);
    if let Some(answer) = with_cache(|cache| cache.missing.get(&key).cloned()) {
        return answer;
    }
    let answer = select(family, properties.capability, properties.driver_isa).err();
    with_cache(|cache| cache.missing.insert(key, answer.clone()));
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
