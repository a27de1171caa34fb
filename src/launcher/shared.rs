//! Values that are created once and shared while a user holds one: loaded modules by the hash of their image, compiled
//! programs by the hash of their inputs.
//!
//! Modules are keyed by device and the SHA-256 of their image, across all launchers of the process. Programs are keyed by
//! their text, unless they include files. Kernels hold their modules.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::error::Result;

/// A weak reference to a value, locked while the value is created.
type Slot<V> = Arc<Mutex<Weak<V>>>;

/// Values by key, held by weak references.
pub(super) struct Shared<K, V>(Mutex<HashMap<K, Slot<V>>>);

impl<K, V> Default for Shared<K, V> {
    fn default() -> Self {
        Shared(Mutex::default())
    }
}

impl<K: Eq + Hash, V> Shared<K, V> {
    /// Returns the value of a key, creating it if no one holds it. Concurrent calls for the same key wait.
    pub(super) fn get_or_make(&self, key: K, make: impl FnOnce() -> Result<Arc<V>>) -> Result<Arc<V>> {
        let slot = {
            let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Remove slots that no one holds, fills or waits for.
            slots.retain(|_, slot| {
                Arc::strong_count(slot) > 1
                    || slot.lock().unwrap_or_else(PoisonError::into_inner).strong_count() > 0
            });
            slots.entry(key).or_default().clone()
        };
        let mut value = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = value.upgrade() {
            return Ok(value);
        }
        let made = make()?;
        *value = Arc::downgrade(&made);
        Ok(made)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::error::Error;

    #[test]
    fn a_value_is_made_once_while_it_is_held() {
        let (shared, made) = (Shared::<u32, String>::default(), AtomicUsize::new(0));
        let get = |key: u32| {
            shared.get_or_make(key, || {
                made.fetch_add(1, Ordering::Relaxed);
                Ok(Arc::new(key.to_string()))
            })
        };
        let (first, second) = (get(1).unwrap(), get(1).unwrap());
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(get(2).unwrap().as_str(), "2");
        assert_eq!(made.load(Ordering::Relaxed), 2);
        drop((first, second));
        get(1).unwrap();
        assert_eq!(made.load(Ordering::Relaxed), 3, "nobody held it");
        assert_eq!(shared.len(), 1, "the slot of 2 is gone");
    }

    #[test]
    fn what_failed_is_tried_again() {
        let shared = Shared::<u32, String>::default();
        let failed = shared.get_or_make(1, || Err(Error::invalid("a test", "nothing", "anything")));
        assert!(failed.is_err());
        assert_eq!(*shared.get_or_make(1, || Ok(Arc::new("one".to_owned()))).unwrap(), "one");
    }

    #[test]
    fn threads_that_ask_at_once_get_one_value() {
        let (shared, made, together) = (Shared::<u32, u32>::default(), AtomicUsize::new(0), Barrier::new(8));
        let make = || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            Ok(Arc::new(made.fetch_add(1, Ordering::Relaxed) as u32))
        };
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        together.wait();
                        let value = shared.get_or_make(7, make);
                        together.wait();
                        value
                    })
                })
                .collect();
            for thread in all {
                assert_eq!(*thread.join().unwrap().unwrap(), 0);
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }
}
