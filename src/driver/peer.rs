//! Peer access: permission for kernels of one device to use the memory of another.
//!
//! Copies between devices need no peer access. Access is enabled for a pair of contexts and all their memory, until it
//! is disabled.

use std::sync::{Mutex, PoisonError};

use super::context::{call, driver_error};
use super::device::{Device, DeviceState};
use super::fork;
use crate::error::Result;

const PEER_ACCESS_ALREADY_ENABLED: u32 = 704;
const PEER_ACCESS_NOT_ENABLED: u32 = 705;

/// Ordinals of the devices whose memory this device may use.
#[derive(Default)]
pub(crate) struct Peers(Mutex<Vec<i32>>);

impl Peers {
    pub(crate) fn contains(&self, ordinal: i32) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&ordinal)
    }

    /// Forgets the access, which ended with the other device's context.
    pub(crate) fn forget(&self, ordinal: i32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|&known| known != ordinal);
    }
}

impl DeviceState {
    /// Returns whether kernels of this device may use memory of `other`.
    #[inline]
    pub(crate) fn can_use_memory_of(&self, other: &DeviceState) -> bool {
        // A device that was reset has a newer one of its ordinal.
        std::ptr::eq(self, other) || (self.peers.contains(other.ordinal) && !other.is_lost())
    }
}

impl Device {
    /// Returns whether the hardware lets kernels of this device use memory of `other`.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn can_access_peer(&self, other: &Device) -> Result<bool> {
        fork::check()?;
        let mut can = 0;
        // SAFETY: the pointer is to a local; both handles are devices.
        unsafe { call!(self.0, cuDeviceCanAccessPeer(&mut can, self.0.raw, other.0.raw))? };
        Ok(can != 0)
    }

    /// Lets kernels of this device use memory of `other`. Does nothing if they already may.
    ///
    /// # Errors
    ///
    /// The devices are the same or not connected, or the driver's errors.
    pub fn enable_peer_access(&self, other: &Device) -> Result<()> {
        let _bound = self.0.bind()?;
        // SAFETY: the other device's context is retained for the life of the process.
        let status = unsafe { (self.0.api.cuCtxEnablePeerAccess()?)(other.0.context.0, 0) };
        if !matches!(status.0, 0 | PEER_ACCESS_ALREADY_ENABLED) {
            let detail = format!("from {self} to {other}");
            return Err(driver_error("cuCtxEnablePeerAccess", status.0, detail));
        }
        // Memory mapped page by page needs access rights page by page; the call above covers all other memory.
        other.0.allow_peer(self.0, || {
            let mut peers = self.0.peers.0.lock().unwrap_or_else(PoisonError::into_inner);
            if !peers.contains(&other.0.ordinal) {
                peers.push(other.0.ordinal);
            }
        })
    }

    /// Revokes the access of [`enable_peer_access`](Self::enable_peer_access). Does nothing if it was not enabled.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn disable_peer_access(&self, other: &Device) -> Result<()> {
        // Refuse new launches first, then wait for the work that uses the access, then revoke it.
        self.0.peers.forget(other.0.ordinal);
        self.synchronize()?;
        let _bound = self.0.bind()?;
        // SAFETY: the other device's context is retained for the life of the process.
        let status = unsafe { (self.0.api.cuCtxDisablePeerAccess()?)(other.0.context.0) };
        if !matches!(status.0, 0 | PEER_ACCESS_NOT_ENABLED) {
            let detail = format!("from {self} to {other}");
            return Err(driver_error("cuCtxDisablePeerAccess", status.0, detail));
        }
        if status.0 == PEER_ACCESS_NOT_ENABLED { Ok(()) } else { other.0.revoke_peer(self.0) }
    }
}
