//! Copies of operands whose rows begin anywhere, for an engine that needs them at multiples of 16 bytes:
//! `csrc/kernels/gemm_pack.cu`.
//!
//! Why: reading and writing an operand once takes the memory's time, which is a small part of a large product's; the engine
//! that takes any alignment is more than ten times as slow. Whether it pays is the engine's to say.

use super::product::Product;
use crate::driver::{ByValue, DeviceBuffer, DeviceSlice, LaunchConfig, Stream};
use crate::error::Result;
use crate::images::MatrixLayout;
use crate::images::{self, Entry};

/// The kernel's family, which has one image.
pub(super) const FAMILY: &str = "gemm_pack";

/// Elements of 16 bits in a piece, which a row of a copy is a whole number of.
const PIECE: usize = 8;
/// Threads of a block, and pieces of each.
const THREADS: u32 = 256;
const TOGETHER: u64 = 4;

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
    pieces: u32,
    unused: u32,
}

/// The kernel's parameter: exactly the `Shape` of gemm_pack.cu.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Shape {
    operands: [Matrices; 2],
    first_blocks: u32,
    unused: u32,
}

/// A copy: where it begins among the copies, in bytes, and how it is stored there.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub start: usize,
    pub stored: MatrixLayout,
}

/// Copies of those of both operands, of elements of 16 bits, that are `asked` for, whose rows begin at multiples of 16 bytes. Their
/// memory is the stream's own, and goes back to it when it is dropped. They are launched as the product's kernels are.
pub(super) fn packed(
    stream: &Stream,
    sources: [DeviceSlice<'_, u8>; 2],
    stored: [MatrixLayout; 2],
    asked: [bool; 2],
    product: &Product,
) -> Result<(DeviceBuffer<u8>, [Option<Place>; 2])> {
    let mut operands = [Matrices::default(); 2];
    let mut places = [None; 2];
    let mut elements = 0;
    for at in 0..2 {
        if !asked[at] {
            continue;
        }
        let stored = stored[at];
        let leading = stored.columns.next_multiple_of(PIECE);
        let matrix = stored.rows * leading;
        let count = matrix * stored.matrices();
        operands[at] = Matrices {
            count: (count / PIECE) as u64,
            to: elements as u64,
            row: stored.leading as i64,
            matrix: stored.stride as i64,
            rows: stored.rows as u32,
            columns: stored.columns as u32,
            pieces: (leading / PIECE) as u32,
            unused: 0,
        };
        let packed =
            MatrixLayout { leading, stride: if stored.matrices() > 1 { matrix } else { 0 }, ..stored };
        places[at] = Some(Place { start: elements * 2, stored: packed });
        elements += count;
    }
    let mut copies = stream.uninitialized::<u8>(elements * 2)?;
    let blocks = operands.map(|operand| operand.count.div_ceil(u64::from(THREADS) * TOGETHER) as u32);
    let function = images::kernel(&stream.device(), FAMILY, Entry::Name(FAMILY))?;
    let config = product.overlapped(LaunchConfig::new(blocks[0] + blocks[1], THREADS));
    let shape = ByValue(Shape { operands, first_blocks: blocks[0], unused: 0 });
    let [a, b] = sources;
    // SAFETY: the kernel takes two addresses to read, one to write and this Shape, which describes matrices that lie inside the
    // sources, as the product was checked, and their copies, which there is room for.
    unsafe { function.launch(stream, config, (a, b, &mut copies, shape))? };
    Ok((copies, places))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_is_the_kernels() {
        assert_eq!(size_of::<Matrices>(), 48);
        assert_eq!(std::mem::offset_of!(Matrices, rows), 32);
        assert_eq!(size_of::<Shape>(), 2 * 48 + 8);
    }
}
