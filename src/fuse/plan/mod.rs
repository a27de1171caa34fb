//! Plans: the launches of a run, its tiles and accesses, and the memory that a kernel holds, from layouts and dtypes alone;
//! and compiled expressions, reductions and row programs, which hold no cache.
//!
//! The names of files begin with the kind of kernel: elementwise, reduction (scans, too) or rows.
//!
//! Words of reductions and row programs (the head of `src/fuse/run/reduction.rs` has the tree of a sum):
//!
//! - row: the elements of a group, in the order in which they are folded.
//! - segment: 1024 neighboring elements of a row (`SEGMENT`). The last one may have fewer.
//! - lane: the elements i, i + 256, i + 512 and i + 768 of a segment, folded in order (`LANES`). Elsewhere a lane is an
//!   element of a thread (`KernelKey::lanes`) or a thread of a segment (`Thread::lane` of `ptx::rows`).
//! - round: 256 neighboring elements of a segment, one of each lane (`ROUNDS`).
//! - vector: the elements of one access of a thread.
//! - span: the elements of a row along its innermost dimension, if the row has several dimensions.
//! - phase, stage: the work up to one set of reductions, as a kernel of several or as a part of one kernel.
//! - chunk: the 64 groups that a sum over groups adds first (`rows_sums::CHUNK`). In `tile`, 16 bytes.
//!
//! This layer may use `ir` and `language`.

pub(super) mod compiled_expression;
pub(super) mod compiled_reduction;
pub(super) mod compiled_rows;
pub(super) mod elementwise;
pub(super) mod reduction;
pub(super) mod reduction_dimensions;
pub(super) mod register_allocation;
pub(super) mod rows;
pub(super) mod rows_access;
mod rows_columns;
pub(super) mod rows_key;
pub(super) mod rows_limits;
mod rows_operand_layout;
mod rows_schedule;
pub(super) mod rows_sections;
pub(super) mod rows_shape;
pub(super) mod rows_split;
pub(super) mod rows_stages;
pub(super) mod rows_storage;
mod rows_storage_reason;
pub(super) mod rows_stored;
pub(super) mod rows_sums;
pub(super) mod scan;
pub(super) mod space;
pub(super) mod tile;
