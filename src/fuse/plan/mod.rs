//! Plans: the launches of a run, its tiles and accesses, and the memory that a kernel holds, from layouts and dtypes alone;
//! and compiled expressions, reductions and row programs, which hold no cache.
//!
//! The names of files begin with the kind of kernel: elementwise, reduction (scans, too) or rows.
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
