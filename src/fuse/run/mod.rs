//! Runs: compiled values ([`Expression`](expression::Expression), [`Reduction`](reduction::Reduction),
//! [`Scan`](scan::Scan), [`RowProgram`](row_program::RowProgram)), their caches of kernels and plans, and launches on a
//! stream.
//!
//! This layer may use `ir`, `language`, `plan`, `ptx` and `cpu`.

pub(super) mod elementwise_device;
mod elementwise_host;
pub(super) mod expression;
mod plan_cache;
pub(super) mod reduction;
pub(super) mod reduction_device;
mod reduction_host;
pub(super) mod row_program;
mod rows_compile;
mod rows_device;
mod rows_in_place;
pub(super) mod rows_index;
pub(super) mod rows_run;
pub(super) mod rows_run_memory;
pub(super) mod rows_sums;
mod rows_sums_device;
mod rows_sums_host;
pub(super) mod scan;
