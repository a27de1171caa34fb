//! [`Changes`], what captured work changes in place, so that each launch of its graph counts as these changes.
//!
//! A launch runs no code of the tape. [`Changes::launch`] therefore counts a change of each value that the captured work
//! changed: a backward through a value from before the launch is an error, as after an uncaptured step.
//!
//! Invariant: captured work changes only elements of flat storages that no tensor shares, so their addresses in the graph
//! are those of the variables. Other changes are refused while the work is captured.

use std::cell::RefCell;
use std::sync::Arc;

use super::flat::FlatStorage;
use super::value::Value;
use crate::error::{Error, Result};

thread_local! {
    static CURRENT: RefCell<Option<Changes>> = const { RefCell::new(None) };
}

/// The values and storages that captured work has changed, each once.
#[derive(Default)]
pub(in crate::nn) struct Changes {
    values: Vec<Arc<Value>>,
    /// With their addresses in the capture.
    storages: Vec<(Arc<FlatStorage>, Option<u64>)>,
}

/// Ends a recording, also if the work panics.
struct Restore(Option<Changes>);

impl Drop for Restore {
    fn drop(&mut self) {
        let outer = self.0.take();
        // The thread-local can be gone at the end of a thread.
        let _ = CURRENT.try_with(|current| current.replace(outer));
    }
}

impl Changes {
    /// Runs work that is captured on this thread, and returns its changes.
    ///
    /// # Errors
    ///
    /// The errors of `work`; [`Error::NotCapturable`] for a change of elements outside of
    /// [`Parameters`](crate::nn::Parameters).
    pub(in crate::nn) fn of<R>(work: impl FnOnce() -> Result<R>) -> Result<(Changes, R)> {
        let restore = Restore(CURRENT.with(|current| current.replace(Some(Changes::default()))));
        let result = work();
        let changes = CURRENT.with(RefCell::take).unwrap_or_default();
        drop(restore);
        Ok((changes, result?))
    }

    /// Returns whether all storages are where they were in the capture, and no tensor shares them.
    pub(in crate::nn) fn are_in_place(&self) -> bool {
        self.storages.iter().all(|(storage, address)| storage.is_at(*address))
    }

    /// Runs `launch`, which makes these changes, and counts them.
    pub(in crate::nn) fn launch<R>(&self, launch: impl FnOnce() -> R) -> R {
        let values: Vec<&Arc<Value>> = self.values.iter().collect();
        Value::with_next_versions(&values, launch)
    }
}

/// Returns whether the changes of this thread are recorded.
pub(super) fn are_recorded() -> bool {
    CURRENT.with(|current| current.borrow().is_some())
}

/// Records a change of a value.
pub(super) fn record_value(value: &Arc<Value>) {
    record(|changes| {
        if !changes.values.iter().any(|known| Arc::ptr_eq(known, value)) {
            changes.values.push(value.clone());
        }
    });
}

/// Records a change of a storage.
pub(super) fn record_storage(storage: &Arc<FlatStorage>, address: Option<u64>) {
    record(|changes| {
        if !changes.storages.iter().any(|(known, _)| Arc::ptr_eq(known, storage)) {
            changes.storages.push((storage.clone(), address));
        }
    });
}

fn record(change: impl FnOnce(&mut Changes)) {
    CURRENT.with(|current| current.borrow_mut().as_mut().map(change));
}

/// Refuses a change of elements that have no fixed address, if this thread captures it.
///
/// # Errors
///
/// [`Error::NotCapturable`].
pub(super) fn refuse_elsewhere(operation: &'static str, found: &str) -> Result<()> {
    match are_recorded() {
        true => Err(Error::NotCapturable { operation, buffer: found.to_owned() }),
        false => Ok(()),
    }
}
