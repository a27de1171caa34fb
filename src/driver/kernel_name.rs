//! Interned kernel names, for errors.

use std::sync::{Mutex, PoisonError};

/// A kernel's name that lives as long as the process, so that a fault can name the kernel after its module is gone.
pub(crate) struct KernelName(&'static str);

static KERNEL_NAMES: Mutex<Vec<&'static KernelName>> = Mutex::new(Vec::new());

impl KernelName {
    pub(crate) fn as_str(&self) -> &'static str {
        self.0
    }

    /// Returns the one entry for this name. Entries are never freed, one per distinct name.
    pub(crate) fn intern(name: &str) -> &'static KernelName {
        let mut names = KERNEL_NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.iter().find(|known| known.0 == name) {
            return known;
        }
        let entry: &'static KernelName = Box::leak(Box::new(KernelName(Box::leak(name.into()))));
        names.push(entry);
        entry
    }
}
