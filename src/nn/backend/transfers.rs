//! [`AutomaticTransfers`], what a backend does with operands on other devices.

use std::collections::HashSet;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::tensor::{Device, Tensor};

/// The treatment of operands on other devices than the backend's: an error, or a copy that is counted. The first copy of each
/// call site is logged as `info`. Calls through `dyn Backend` share one call site for each operation.
#[derive(Debug, Default)]
pub struct AutomaticTransfers {
    is_enabled: bool,
    transfers: AtomicU64,
    bytes: AtomicU64,
    /// The call sites that have been logged.
    sites: Mutex<HashSet<Location<'static>>>,
}

/// The operands that a backend has moved to its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransferCounts {
    /// The number of operands.
    pub transfers: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl AutomaticTransfers {
    /// Creates the treatment, for a [`Backend`](super::Backend) of your own.
    pub fn new(is_enabled: bool) -> AutomaticTransfers {
        AutomaticTransfers { is_enabled, ..AutomaticTransfers::default() }
    }

    /// Returns whether operands move.
    pub fn are_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Returns the operands that have moved so far.
    pub fn counts(&self) -> TransferCounts {
        let [transfers, bytes] = [&self.transfers, &self.bytes].map(|count| count.load(Ordering::Relaxed));
        TransferCounts { transfers, bytes }
    }

    /// Returns an operand on a device.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceMismatch`] for an operand on another device, unless operands move; as [`Tensor::to`].
    #[track_caller]
    pub fn operand(&self, device: &Device, operation: &'static str, x: &Tensor) -> Result<Tensor> {
        let own = x.device();
        if own == *device {
            return Ok(x.clone());
        }
        if !self.is_enabled {
            let (left, right) = (format!("a backend on {device}"), format!("a tensor on {own}"));
            return Err(Error::DeviceMismatch { operation, left, right });
        }
        let moved = x.to(device)?;
        let bytes = x.count() as u64 * x.dtype().size() as u64;
        self.transfers.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let site = Location::caller();
        if self.sites.lock().unwrap_or_else(PoisonError::into_inner).insert(*site) {
            log::info!(
                "{operation} at {site} moves an operand of {} of shape {} ({bytes} bytes) from {own} to {device}; later moves of this call are only counted",
                x.dtype(),
                x.shape()
            );
        }
        Ok(moved)
    }
}
