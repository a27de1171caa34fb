//! The thresholds of row programs in one kernel.
//!
//! | threshold | trades | measured |
//! |---|---|---|
//! | [`MAX_REGISTER_SEGMENTS`] | a row in registers for one in shared memory | the warps of a block |
//! | [`MAX_UNALIGNED_SEGMENTS`] | element-wise accesses from registers for whole lines through shared memory | H100: docs/performance-notes.md, "Rows that begin anywhere" and "Warps of a row in shared memory" |
//! | [`MAX_COMPUTE_BOUND_SEGMENTS`], [`COMPUTE_BOUND_INSTRUCTIONS`] | one block with all of a row in registers for several small blocks, of which one waits for memory while another computes | H100: docs/performance-notes.md, "Barriers of clusters" and the end of "First use" |
//! | [`REREAD_WARPS`] | the warps that hide loads for the blocks of a multiprocessor | no record |
//! | [`MAX_SEGMENTS`] | one kernel for several | the fold of segments: a lane folds 64 neighbouring values |
//! | [`MIN_LONG_ROW_BLOCKS`] | one read of few long rows for all multiprocessors of a device | no record |
//! | [`MAX_SAVED_SUM_SEGMENTS`] | registers beside sums over groups for instructions that a later stage repeats | no record |
//! | [`MAX_BYTES_PER_SHARED_BYTE`], [`MAX_WARP_INSTRUCTIONS`] | the registers and the text of a row of one segment for loads from shared memory | `ptxas` 12.9 for sm_90: docs/performance-notes.md, "First use" |
//! | [`MAX_REGISTER_INSTRUCTIONS`], [`MAX_INSTRUCTIONS`] | straight-line code for the time of its first use | 0.2 seconds of an assembler |
//! | [`MAX_THREAD_REGISTERS`] | rows in registers for blocks of a multiprocessor | assemblers spilled f64 rows above it |
//! | [`MAX_REGISTERS_WITH_SUMS`] | sums in registers for a second kernel | no record |
//! | [`BLOCK_BYTES`], [`SLICE_BYTES`], [`SMALL_BYTES`] | blocks of a cluster, which wait for each other, for blocks of a multiprocessor | H100: docs/performance-notes.md, "Barriers of clusters" |
//! | [`FEW_SEGMENTS`], [`FEW_WARPS`], [`MAX_WARPS`] | warps with several segments for more warps, which hide loads | H100: docs/performance-notes.md, "Warps of a row in shared memory" |
//! | [`MIN_ROWS`] | registers of short rows for rows of a multiprocessor that hide loads | no record |
//! | [`CHUNK_SEGMENTS`], [`MAX_CHUNK_SEGMENTS`] | blocks of a cluster that loops over rows for the sums of a second block | no record |
//! | [`MIN_RECOMPUTE_COST`] | registers, or shared memory, for instructions that a later stage repeats | no record |
//! | [`MAX_LOADED_BYTES`] | rows in registers for spills, because assemblers load all inputs of a row early | a layer norm of f64 with weight and bias spilled up to 152 bytes |
//!
//! [`STATIC_SHARED_BYTES`], [`MULTIPROCESSOR_REGISTERS`] and [`OTHER_REGISTERS`] describe devices and kernels, and trade nothing.

/// The most segments of a row in registers: the warps of a block.
pub(super) const MAX_REGISTER_SEGMENTS: usize = 32;
/// The most segments of an unaligned row in registers.
pub(super) const MAX_UNALIGNED_SEGMENTS: usize = 2;
/// The most segments of a row of 16-bit elements with [`COMPUTE_BOUND_INSTRUCTIONS`] in registers. A multiprocessor rarely holds two
/// blocks of more warps, and only two overlap the memory of one with the instructions of the other.
pub(super) const MAX_COMPUTE_BOUND_SEGMENTS: usize = 8;
/// The steps of a 16-bit element (`CompiledRows::instructions`) above which its instructions take as long as its memory.
/// A softmax has more, a norm fewer.
pub(super) const COMPUTE_BOUND_INSTRUCTIONS: usize = 32;
/// The most warps of a block whose stages read the row again.
pub(super) const REREAD_WARPS: usize = 16;
/// The most segments of a row.
pub(super) const MAX_SEGMENTS: usize = 2048;
/// The fewest blocks of a run with rows of more than [`MAX_REGISTER_SEGMENTS`]. Fewer would leave most of a device idle.
pub(super) const MIN_LONG_ROW_BLOCKS: usize = 16;
/// The most segments of a row in registers, beside sums over groups, whose stages save every value (`SAVE_ALL`). Only
/// programs with a 16-bit operand save that many.
pub(super) const MAX_SAVED_SUM_SEGMENTS: usize = 4;
/// The most bytes of registers, for each byte of shared memory that would hold the same row, of a row of one segment
/// that stays in registers. Shared memory takes fewer bytes if it holds one value in place of several operands.
pub(super) const MAX_BYTES_PER_SHARED_BYTE: usize = 2;
/// The most instructions of a thread whose row of one segment stays in registers at exactly
/// [`MAX_BYTES_PER_SHARED_BYTE`]. Above it, such a row moves to shared memory, where a loop has a fourth of the text.
pub(super) const MAX_WARP_INSTRUCTIONS: usize = 2400;
/// The most instructions on the elements of a thread that holds its row in registers.
pub(super) const MAX_REGISTER_INSTRUCTIONS: usize = 3000;
/// The most instructions on the elements of a thread in one round.
pub(super) const MAX_INSTRUCTIONS: usize = 6000;
/// The most registers of a thread, by an estimate.
pub(super) const MAX_THREAD_REGISTERS: usize = 176;
/// The most registers of a thread with sums over groups, by an estimate.
pub(super) const MAX_REGISTERS_WITH_SUMS: usize = 208;
/// The most bytes that a thread with the row in registers reads.
pub(super) const MAX_LOADED_BYTES: usize = 640;

/// The most bytes of a block that leave space for a second one on its multiprocessor (compute capability 9.0).
pub(super) const BLOCK_BYTES: usize = 113 * 1024;
/// The most bytes of a block in a cluster of 2 or 4: 64 KB of the row, and values of segments. Rows of spans are faster in
/// fewer blocks, whose warps have more segments.
pub(super) const SLICE_BYTES: usize = 66 * 1024;
/// The most bytes of a block of a narrow row that some cluster holds in such blocks: six of a multiprocessor are at different
/// stages.
pub(super) const SMALL_BYTES: usize = 34 * 1024;
/// The segments a block up to which rows of any kind take [`FEW_WARPS`], and the most warps of any block.
pub(super) const FEW_SEGMENTS: usize = 8;
pub(super) const FEW_WARPS: usize = 8;
pub(super) const MAX_WARPS: usize = 16;
/// The fewest rows of one segment in shared memory of a multiprocessor, which must hide the time of each other's loads.
pub(super) const MIN_ROWS: usize = 8;
/// Segments of a block that loops over the rows of a chunk: those that leave space for the sums of a second block, and
/// the most.
pub(super) const CHUNK_SEGMENTS: usize = 4;
pub(super) const MAX_CHUNK_SEGMENTS: usize = 8;
/// The instruction count from which a kernel keeps an element's value in registers instead of computing it again
/// in a later stage. An exponential has more, a widening or a difference fewer.
pub(in crate::fuse) const MIN_RECOMPUTE_COST: usize = 8;

/// Bytes of static shared memory of a block.
pub(super) const STATIC_SHARED_BYTES: usize = 48 * 1024;
/// Registers of a multiprocessor.
pub(super) const MULTIPROCESSOR_REGISTERS: usize = 65536;
/// Registers that a thread needs beside its row.
pub(super) const OTHER_REGISTERS: usize = 28;
