//! Runs of training: checkpoints in a folder.
//!
//! | file | contents |
//! |---|---|
//! | `checkpoint` | [`Checkpoint`], the state of a run, and [`CheckpointInfo`], its part in JSON |
//! | `checkpoints` | [`Checkpoints`], a folder that one process writes, and [`CheckpointList`], its contents |
//! | `lock` | the lock of the folder |
//!
//! Invariants:
//!
//! - A checkpoint is a folder that appears by a rename, after its files are on the disk, and disappears by a rename. A
//!   process that is killed at any moment leaves the last checkpoint whole.
//! - Each file's SHA-256 is compared before its contents are used.
//! - Numbers are read back as the bits that were written.
//!
//! Tests: `tests/nn/checkpoints.rs`.

mod checkpoint;
mod checkpoints;
mod lock;

pub use checkpoint::{BestCheckpoint, Checkpoint, CheckpointInfo};
pub use checkpoints::{CheckpointEntry, CheckpointList, Checkpoints};
