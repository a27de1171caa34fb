//! The launch of a row program in one kernel: [`RowKey`], which decides its text, and [`RowPlan`].

use super::reduction::{ReductionParameters, WARP};
use super::rows_access::RowAccess;
use super::rows_storage::RowStorage;
use crate::types::{DType, Layout};

/// Everything but the program that the text of a kernel depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::fuse) struct RowKey {
    pub(in crate::fuse) storage: RowStorage,
    /// Blocks that share a row.
    pub(in crate::fuse) cluster: usize,
    /// Blocks that share a segment of a column.
    pub(in crate::fuse) parts: usize,
    /// True if indices have 64 bits.
    pub(in crate::fuse) wide: bool,
    /// Adjacent elements of one access: of a row, or of neighbouring columns.
    pub(in crate::fuse) vector: usize,
    /// Threads that share a segment, and accesses of each in a round.
    pub(in crate::fuse) threads: usize,
    pub(in crate::fuse) groups: usize,
    pub(in crate::fuse) rounds: usize,
    /// The fewest instructions of a value that later stages keep rather than compute again.
    pub(in crate::fuse) kept_cost: usize,
    /// Warps of a row in each block.
    pub(in crate::fuse) warps: usize,
    /// The power of two above the number of segments.
    pub(in crate::fuse) slots: usize,
    /// Rows of a block.
    pub(in crate::fuse) across: usize,
    /// True if neighbouring threads of a block take neighbouring rows.
    pub(in crate::fuse) has_columns: bool,
    /// Numbers of dimensions.
    pub(in crate::fuse) kept: usize,
    pub(in crate::fuse) folded: usize,
    /// By operand, inputs before outputs.
    pub(in crate::fuse) accesses: Vec<RowAccess>,
    /// True if some lanes have fewer elements.
    pub(in crate::fuse) tail: bool,
    /// True for compute capability 8.0 or higher, which has conversions to bf16 and extremes that are NaN beside NaN.
    pub(in crate::fuse) is_ampere: bool,
}

/// The launch of a program in one kernel.
pub(in crate::fuse) struct RowPlan {
    pub(in crate::fuse) key: RowKey,
    pub(in crate::fuse) blocks: u32,
    pub(in crate::fuse) threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub(in crate::fuse) shared: u32,
    pub(in crate::fuse) parameters: ReductionParameters,
    /// The parameter block, with space for the scalars.
    pub(in crate::fuse) block: Vec<u8>,
    /// By operand, the byte offset of its first element.
    pub(in crate::fuse) offsets: Vec<usize>,
    /// The registers of a thread that holds its row, by an estimate.
    pub(in crate::fuse) registers: usize,
}

impl RowKey {
    /// Returns the schedule in words.
    pub(in crate::fuse) fn schedule(&self) -> String {
        if self.has_columns {
            return self.schedule_of_columns();
        }
        let place = match self.storage {
            RowStorage::Registers => "in registers",
            RowStorage::Shared(_) => "in shared memory",
            RowStorage::Ahead(_) => "in shared memory beside the next row",
            RowStorage::Global => "that each stage reads",
        };
        let schedule = match (self.cluster, self.warps, self.threads) {
            (1, 1, WARP) => format!("a warp for each row, {place}; {} rows a block", self.across),
            (1, 1, threads) => {
                format!("{threads} threads for each row, {place}; {} rows a block", self.across)
            }
            (1, warps, _) => format!("a block of {warps} warps for each row, {place}"),
            (cluster, warps, _) => {
                format!("a cluster of {cluster} blocks of {warps} warps for each row, {place}")
            }
        };
        match self.accesses.contains(&RowAccess::Spans) {
            true => format!("{schedule}; vectors of {} elements within spans", self.vector),
            false if self.accesses.contains(&RowAccess::Strided) => format!("{schedule}; element by element"),
            false => schedule,
        }
    }
}

/// The operands of a plan: inputs in the order of the stages' expression, then outputs.
pub(in crate::fuse) struct RowOperands<'a> {
    pub(in crate::fuse) inputs: &'a [(DType, Layout)],
    pub(in crate::fuse) outputs: &'a [(DType, Layout)],
    /// Addresses modulo [`WIDEST`](super::elementwise::WIDEST), inputs of the program before outputs.
    pub(in crate::fuse) starts: &'a [u64],
}
