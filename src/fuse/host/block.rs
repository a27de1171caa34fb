//! A block of lanes: what a register is on the CPU.

use bytemuck::Pod;

/// Lanes of a block: few enough that a program's blocks stay in the first cache, enough that finding the instruction costs
/// little beside running it.
pub(crate) const LANES: usize = 256;

/// The memory of one register for [`LANES`] lanes of up to 8 bytes.
pub(crate) type Block = [u64; LANES];

/// A type that lanes have.
pub(crate) trait Lanes: Pod {
    /// The first `count` lanes.
    #[inline(always)]
    fn of(block: &Block, count: usize) -> &[Self] {
        &bytemuck::cast_slice(block)[..count]
    }

    /// As [`of`](Self::of), to write.
    #[inline(always)]
    fn of_mut(block: &mut Block, count: usize) -> &mut [Self] {
        &mut bytemuck::cast_slice_mut(block)[..count]
    }
}

impl Lanes for u32 {}
impl Lanes for u64 {}
impl Lanes for f32 {}
impl Lanes for f64 {}
