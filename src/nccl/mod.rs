//! A thin safe layer over NCCL: communicators of one rank, and their work on streams.
//!
//! The library is optional, and loaded on first use (2.18 and newer, from a toolkit, a Python wheel or conda; `SELVEDGE_LIBNCCL` names
//! one). [`collective`](crate::collective) builds on it. Invariants:
//!
//! - A communicator does not block: each call returns at once, and `Communicator::is_ready` says when NCCL has done its part on the
//!   host. Nothing else is asked of it before.
//! - One thread at a time calls NCCL for a communicator. `Communicator::abort` may come from any thread, after which no call reaches
//!   NCCL.

mod communicator;

pub(crate) use communicator::{Communicator, Kind, Reduction, UniqueId, Work};

use crate::error::{Error, Result};
use crate::sys;

/// The oldest version whose communicators do not block and can be divided, as NCCL counts: 2.18.
const OLDEST: i32 = 21_800;

/// Returns NCCL's version, such as (2, 27, 3).
///
/// # Errors
///
/// [`Error::LibraryUnavailable`] without NCCL.
pub fn version() -> Result<(i32, i32, i32)> {
    let number = sys::nccl()?.loaded.number;
    Ok((number / 10_000, number / 100 % 100, number % 100))
}

/// Returns the functions of an NCCL that is new enough.
///
/// # Errors
///
/// No library, or one before 2.18.
fn functions() -> Result<&'static sys::NcclApi> {
    let api = sys::nccl()?;
    if api.loaded.number < OLDEST {
        let found = format!("NCCL {} ({})", api.loaded.version, api.loaded.path);
        return Err(Error::invalid(
            "NCCL",
            found,
            "NCCL 2.18 or newer: install one, or name its file by SELVEDGE_LIBNCCL",
        ));
    }
    // It would make every call wait for ranks that may never come, with no time-out.
    if std::env::var_os("NCCL_COMM_BLOCKING").is_some_and(|value| value == "1") {
        let wanted = "no NCCL_COMM_BLOCKING: the library's communicators do not block";
        return Err(Error::invalid("NCCL", "NCCL_COMM_BLOCKING=1", wanted));
    }
    Ok(api)
}
