//! Descriptions of runs: the launches in order, with the text of each kernel and the bytes that it moves.
//!
//! This layer may use all other parts of `fuse`, and none of them may use it.

pub(super) mod elementwise;
pub(super) mod rows;
mod rows_sums;
