//! Values by device and key, such as loaded modules and kernels.
//!
//! Each cache of kernels by device in the crate is a [`DeviceCache`]: those of `images` for the crate's own kernels, that of
//! `fuse` for assembled texts, and those of each expression, reduction and row program for its plans.
//!
//! Invariant: a device that was reset is another [`Device`], and a lookup on a lost one finds nothing, so no value of an earlier
//! context is ever returned. Each value that is added takes those of lost contexts out.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Device;
use crate::error::Result;

type DeviceValues<K, V> = (Device, HashMap<K, V>);

/// Values by device and key. A value stays until its context is lost, because unloading a module waits for the device.
pub(crate) struct DeviceCache<K, V>(Mutex<Vec<DeviceValues<K, V>>>);

impl<K, V> DeviceCache<K, V> {
    pub(crate) const fn new() -> DeviceCache<K, V> {
        DeviceCache(Mutex::new(Vec::new()))
    }

    /// Locks the values. Nothing below the lock calls the driver or drops a value.
    fn lock(&self) -> MutexGuard<'_, Vec<DeviceValues<K, V>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Default for DeviceCache<K, V> {
    fn default() -> Self {
        DeviceCache::new()
    }
}

impl<K: Eq + Hash, V: Clone> DeviceCache<K, V> {
    /// Returns the value of a key, and `None` if there is none or the device was lost.
    pub(crate) fn get<Q>(&self, device: &Device, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if device.is_lost() {
            return None;
        }
        let all = self.lock();
        all.iter().find(|values| values.0 == *device)?.1.get(key).cloned()
    }

    /// Returns the value of a key. The first call makes it, outside of the lock.
    ///
    /// # Errors
    ///
    /// The errors of `make`, after which nothing is kept.
    pub(crate) fn get_or_try_add(
        &self,
        device: &Device,
        key: &K,
        make: impl FnOnce() -> Result<V>,
    ) -> Result<V>
    where
        K: Clone,
    {
        match self.get(device, key) {
            Some(value) => Ok(value),
            None => Ok(self.add(device, key.clone(), make()?)),
        }
    }

    /// Adds the value of a key, and returns the one that every later lookup returns: of threads that add a value at the same
    /// time, the first one's. Nothing is added for a lost device.
    pub(crate) fn add(&self, device: &Device, key: K, value: V) -> V {
        let mut all = self.lock();
        // Dropped after the lock: a value may unload a module.
        let lost: Vec<_> = all.extract_if(.., |values| values.0.is_lost()).collect();
        if device.is_lost() {
            drop(all);
            drop(lost);
            return value;
        }
        let index = all.iter().position(|values| values.0 == *device).unwrap_or_else(|| {
            all.push((*device, HashMap::new()));
            all.len() - 1
        });
        let first = all[index].1.entry(key).or_insert_with(|| value.clone()).clone();
        drop(all);
        drop((lost, value));
        first
    }
}
