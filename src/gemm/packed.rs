//! Copies of unaligned operands into rows that begin at multiples of 16 bytes, as tensor maps need them:
//! `csrc/kernels/gemm_pack.cu`.
//!
//! Copying an operand once takes a small part of a large product's time, and the engine that takes any alignment is more than ten
//! times as slow. The engine decides when a copy pays.

use super::product::Product;
use crate::driver::{ByValue, DeviceBuffer, DeviceSlice, LaunchConfig, Stream};
use crate::error::Result;
use crate::images::MatrixLayout;
use crate::images::{self, Entry};

/// The kernel's family, which has one image.
pub(super) const FAMILY: &str = "gemm_pack";

/// Elements of a 16-byte chunk. A row of a copy is a multiple of it.
const CHUNK: usize = 8;
/// Threads of a block, and chunks of each.
const THREADS: u32 = 256;
const CHUNKS_PER_THREAD: u64 = 4;

/// One operand in the kernels' parameter.
#[repr(C)]
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
struct Matrices {
    count: u64,
    to: u64,
    row: i64,
    matrix: i64,
    rows: u32,
    columns: u32,
    chunks: u32,
    unused: u32,
}

/// The kernel's parameter: exactly the `PackParameters` of gemm_pack.cu.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct PackParameters {
    operands: [Matrices; 2],
    first_blocks: u32,
    unused: u32,
}

/// A copy of an operand: its first byte among the copies, and its layout there.
#[derive(Clone, Copy)]
pub(super) struct PackedOperand {
    pub start: usize,
    pub stored: MatrixLayout,
}

/// Copies the operands that are `asked` for, of 16-bit elements, into rows that begin at multiples of 16 bytes. The stream owns their
/// memory, which is freed on it. The kernel is launched as the product's kernels are.
pub(super) fn packed(
    stream: &Stream,
    sources: [DeviceSlice<'_, u8>; 2],
    stored: [MatrixLayout; 2],
    asked: [bool; 2],
    product: &Product,
) -> Result<(DeviceBuffer<u8>, [Option<PackedOperand>; 2])> {
    let mut operands = [Matrices::default(); 2];
    let mut packed_operands = [None; 2];
    let mut elements = 0;
    for at in 0..2 {
        if !asked[at] {
            continue;
        }
        let stored = stored[at];
        let leading = stored.columns.next_multiple_of(CHUNK);
        let matrix = stored.rows * leading;
        let count = matrix * stored.matrices();
        operands[at] = Matrices {
            count: (count / CHUNK) as u64,
            to: elements as u64,
            row: stored.leading as i64,
            matrix: stored.stride as i64,
            rows: stored.rows as u32,
            columns: stored.columns as u32,
            chunks: (leading / CHUNK) as u32,
            unused: 0,
        };
        let packed =
            MatrixLayout { leading, stride: if stored.matrices() > 1 { matrix } else { 0 }, ..stored };
        packed_operands[at] = Some(PackedOperand { start: elements * 2, stored: packed });
        elements += count;
    }
    let mut copies = stream.uninitialized::<u8>(elements * 2)?;
    let blocks =
        operands.map(|operand| operand.count.div_ceil(u64::from(THREADS) * CHUNKS_PER_THREAD) as u32);
    let function = images::kernel(&stream.device(), FAMILY, Entry::Name(FAMILY))?;
    let config = product.overlapped(LaunchConfig::new(blocks[0] + blocks[1], THREADS));
    let parameters = ByValue(PackParameters { operands, first_blocks: blocks[0], unused: 0 });
    let [a, b] = sources;
    // SAFETY: the kernel takes two addresses to read, one to write and these parameters, which describe matrices inside the sources,
    // as the product was checked, and inside the copies.
    unsafe { function.launch(stream, config, (a, b, &mut copies, parameters))? };
    Ok((copies, packed_operands))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_are_the_kernels() {
        assert_eq!(size_of::<Matrices>(), 48);
        assert_eq!(std::mem::offset_of!(Matrices, rows), 32);
        assert_eq!(size_of::<PackParameters>(), 2 * 48 + 8);
    }
}
