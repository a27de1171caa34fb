//! [`PlannedKernel`], a kernel of a plan.

/// A kernel of a [`Plan`](super::Plan).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedKernel {
    /// The kernel's name.
    pub name: &'static str,
    /// Queries of a tile, and keys of each of its blocks.
    pub tile: (usize, usize),
    /// Blocks of the grid.
    pub blocks: usize,
}
