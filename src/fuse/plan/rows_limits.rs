//! The thresholds of row programs in one kernel.
//!
//! | threshold | trades | measured |
//! |---|---|---|
//! | [`MAX_REGISTER_SEGMENTS`] | a row in registers for one in shared memory | the warps of a block |
//! | [`MAX_UNALIGNED_SEGMENTS`] | element-wise accesses from registers for whole lines through shared memory | H100: docs/performance-notes.md, "Rows that begin anywhere" and "Warps of a row in shared memory" |
//! | [`MAX_HEAVY_SEGMENTS`], [`HEAVY_INSTRUCTIONS`] | one block with all of a row in registers for several small blocks, of which one waits for memory while another computes | H100: docs/performance-notes.md, "Barriers of clusters" and the end of "First use" |
//! | [`GLOBAL_WARPS`] | the warps that hide loads for the blocks of a multiprocessor | no record |
//! | [`MAX_SEGMENTS`] | one kernel for several | the fold of segments: a lane folds 64 neighbouring values |
//! | [`MIN_LONG_ROW_BLOCKS`] | one read of few long rows for all multiprocessors of a device | no record |
//! | [`MAX_KEPT_SUM_SEGMENTS`] | registers beside sums over groups for instructions that a later stage repeats | no record |
//! | [`MAX_BYTES_PER_SHARED_BYTE`], [`MAX_WARP_INSTRUCTIONS`] | the registers and the text of a row of one segment for loads from shared memory | `ptxas` 12.9 for sm_90: docs/performance-notes.md, "First use" |
//! | [`MAX_REGISTER_INSTRUCTIONS`], [`MAX_INSTRUCTIONS`] | straight-line code for the time of its first use | 0.2 seconds of an assembler |
//! | [`MAX_THREAD_REGISTERS`] | rows in registers for blocks of a multiprocessor | assemblers spilled f64 rows above it |
//! | [`MAX_REGISTERS_WITH_SUMS`] | sums in registers for a second kernel | no record |
//! | [`MAX_LOADED_BYTES`] | rows in registers for spills, because assemblers load all inputs of a row early | a layer norm of f64 with weight and bias spilled up to 152 bytes |
//!
//! [`STATIC_SHARED_BYTES`], [`MULTIPROCESSOR_REGISTERS`] and [`OTHER_REGISTERS`] describe devices and kernels, and trade nothing.

/// The most segments of a row in registers: the warps of a block.
pub(super) const MAX_REGISTER_SEGMENTS: usize = 32;
/// The most segments of an unaligned row in registers.
pub(super) const MAX_UNALIGNED_SEGMENTS: usize = 2;
/// The most segments of a row of 16-bit elements with [`HEAVY_INSTRUCTIONS`] in registers. A multiprocessor rarely holds two
/// blocks of more warps, and only two overlap the memory of one with the instructions of the other.
pub(super) const MAX_HEAVY_SEGMENTS: usize = 8;
/// The instructions of a 16-bit element, a softmax's but no norm's, that take as long as its memory.
pub(super) const HEAVY_INSTRUCTIONS: usize = 32;
/// The most warps of a block whose stages read the row again.
pub(super) const GLOBAL_WARPS: usize = 16;
/// The most segments of a row.
pub(super) const MAX_SEGMENTS: usize = 2048;
/// The fewest blocks of a run with rows of more than [`MAX_REGISTER_SEGMENTS`]. Fewer would leave most of a device idle.
pub(super) const MIN_LONG_ROW_BLOCKS: usize = 16;
/// The most segments of a row in registers beside sums over groups with the registers for values of few instructions.
pub(super) const MAX_KEPT_SUM_SEGMENTS: usize = 4;
/// The most bytes that a warp has in registers for each in shared memory that could take their place, a value of several
/// operands.
pub(super) const MAX_BYTES_PER_SHARED_BYTE: usize = 2;
/// The most instructions on the elements of a warp's row that stays in registers with [`MAX_BYTES_PER_SHARED_BYTE`]: in shared
/// memory, a loop has a fourth of the text.
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

/// Bytes of static shared memory of a block.
pub(super) const STATIC_SHARED_BYTES: usize = 48 * 1024;
/// Registers of a multiprocessor.
pub(super) const MULTIPROCESSOR_REGISTERS: usize = 65536;
/// Registers that a thread needs beside its row.
pub(super) const OTHER_REGISTERS: usize = 28;
