//! The language of expressions: operations, graphs of nodes, folds, derivatives, and the lowering of each operation to
//! instructions.
//!
//! This layer may use `ir`.

pub(super) mod fold;
pub(super) mod gradient;
pub(super) mod graph;
mod group_reductions;
pub(super) mod lower;
pub(super) mod node;
pub(super) mod operation;
mod random;
pub(super) mod scalar;
pub(super) mod tree;
