//! The launch of a row program in one kernel: [`RowKey`], which decides its text, and [`RowPlan`].

use super::reduction::{ReductionParameters, WARP};
use super::rows_access::RowAccess;
use super::rows_storage::RowStorage;
use super::rows_storage_reason::RowStorageReasons;
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
    pub(in crate::fuse) accesses_per_round: usize,
    pub(in crate::fuse) rounds: usize,
    /// The fewest instructions of a value that is saved for later stages rather than computed again.
    pub(in crate::fuse) min_recompute_cost: usize,
    /// Warps of a row in each block.
    pub(in crate::fuse) warps: usize,
    /// Slots for the values of segments in shared memory: the power of two above their number.
    pub(in crate::fuse) partial_slots: usize,
    /// Rows of a block.
    pub(in crate::fuse) rows_per_block: usize,
    /// True if neighbouring threads of a block take neighbouring rows.
    pub(in crate::fuse) has_columns: bool,
    /// The numbers of dimensions of the groups and of those that a group folds.
    pub(in crate::fuse) outer_dims: usize,
    pub(in crate::fuse) reduced_dims: usize,
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
    /// The reasons for the memory that holds a row.
    pub(in crate::fuse) reasons: RowStorageReasons,
}

impl RowPlan {
    /// Returns the schedule in words, with the reasons for the memory that holds a row.
    pub(in crate::fuse) fn schedule(&self) -> String {
        format!("{}{}", self.key.schedule(), self.reasons)
    }
}

impl RowKey {
    /// Returns the schedule in words.
    fn schedule(&self) -> String {
        if self.has_columns {
            return self.schedule_of_columns();
        }
        let storage = match self.storage {
            RowStorage::Registers => "in registers",
            RowStorage::Shared(_) => "in shared memory",
            RowStorage::SharedDoubleBuffered(_) => "in shared memory beside the next row",
            RowStorage::Reread => "that each stage reads",
        };
        let schedule = match (self.cluster, self.warps, self.threads) {
            (1, 1, WARP) => format!("a warp for each row, {storage}; {} rows a block", self.rows_per_block),
            (1, 1, threads) => {
                format!("{threads} threads for each row, {storage}; {} rows a block", self.rows_per_block)
            }
            (1, warps, _) => format!("a block of {warps} warps for each row, {storage}"),
            (cluster, warps, _) => {
                format!("a cluster of {cluster} blocks of {warps} warps for each row, {storage}")
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
