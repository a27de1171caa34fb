//! Blocks of lanes: the registers of the CPU interpreter.

use bytemuck::Pod;

use crate::fuse::ir::program::Value;
use crate::fuse::plan::register_allocation::RegisterAllocation;

/// The lanes of a block: few enough that a program's blocks stay in the L1 cache, and enough that dispatching
/// an instruction costs little beside executing it.
pub(crate) const LANES: usize = 256;

/// The memory of one register for [`LANES`] lanes of up to 8 bytes.
pub(crate) type Block = [u64; LANES];

/// A lane type.
pub(crate) trait Lanes: Pod {
    /// Returns the first `count` lanes.
    #[inline(always)]
    fn of(block: &Block, count: usize) -> &[Self] {
        &bytemuck::cast_slice(block)[..count]
    }

    /// Returns the first `count` lanes for writing.
    #[inline(always)]
    fn of_mut(block: &mut Block, count: usize) -> &mut [Self] {
        &mut bytemuck::cast_slice_mut(block)[..count]
    }
}

impl Lanes for u32 {}
impl Lanes for u64 {}
impl Lanes for f32 {}
impl Lanes for f64 {}

impl RegisterAllocation {
    /// Returns the registers of the operands and the result, which differ.
    #[inline(always)]
    pub(in crate::fuse::cpu) fn at<'a, const COUNT: usize>(
        &self,
        registers: &'a mut [Block],
        values: [Value; COUNT],
        result: usize,
    ) -> Option<([&'a Block; COUNT], &'a mut Block)> {
        let (before, rest) = registers.split_at_mut(result);
        let (block, after) = rest.split_first_mut()?;
        let values = values.map(|value| match self.register(value) {
            register if register < result => &before[register],
            register => &after[register - result - 1],
        });
        Some((values, block))
    }
}
