//! Families as modules: one a device, loaded when first asked for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use once_cell::sync::OnceCell;

use super::select::{of_family, select};
use super::{IMAGES, items_per_thread};
use crate::driver::{Device, LaunchConfig, Module, driver_isa};
use crate::error::Result;

/// A module that is loaded, being loaded, or was asked for in vain.
type Slot = Arc<OnceCell<Module>>;

/// By the device's ordinal and the family. Modules stay loaded: unloading one waits for the device.
static LOADED: Mutex<Option<HashMap<(usize, &'static str), Slot>>> = Mutex::new(None);

/// The family's module on a device: loaded by the first call, the same one from then on.
///
/// The overrides of the environment are read by the call that loads. Loading can wait for kernels that are running, so
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
        // Says so; a newer device of the ordinal may have the family.
        return load();
    }
    let slot = {
        // A panic while the lock is held leaves the map whole: nothing below the lock calls out.
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = loaded.get_or_insert_default().entry((device.ordinal(), family)).or_default();
        // A module from before a reset went with its context.
        if slot.get().is_some_and(|module| module.device().is_lost()) {
            *slot = Slot::default();
        }
        slot.clone()
    };
    // Outside of the lock: assembling takes long, and others need other families meanwhile.
    let module = slot.get_or_try_init(load)?;
    Ok(module.clone())
}

/// Loads families before they are used, because a load waits for every running kernel: what launches a kernel that waits
/// for another one loads both first.
///
/// # Errors
///
/// As [`load`], for the first family that cannot be loaded.
pub fn preload(device: &Device, families: &[&str]) -> Result<()> {
    families.iter().try_for_each(|family| load(device, family).map(drop))
}

/// The best launch of an elementwise kernel for `count` elements, by the size of the result's element in bytes.
///
/// Any other grid of one dimension is right too, and slower: one thread an element costs 40 % of the bandwidth.
pub fn elementwise_launch(count: usize, result_bytes: usize) -> LaunchConfig {
    // Blocks of 128 and 256 are equal where memory is the limit; with the quotients 128 are 2 % ahead.
    const BLOCK: usize = 128;
    let threads = count.div_ceil(items_per_thread(result_bytes));
    // The kernels loop, so a grid that is cut off is right too.
    let blocks = threads.div_ceil(BLOCK).clamp(1, i32::MAX as usize);
    LaunchConfig::new(blocks as u32, BLOCK as u32)
}
