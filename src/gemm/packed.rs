//! Copies of operands whose rows begin anywhere, for an engine that needs them at multiples of some bytes.
//!
//! Why: reading and writing an operand once takes the memory's time, which is a small part of a large product's; the engine
//! that takes any alignment is more than ten times as slow. Whether it pays is the engine's to say.

use super::kernels;
use super::product::Stored;
use crate::driver::{ByValue, DeviceBuffer, DeviceSlice, Stream};
use crate::error::Result;
use crate::images::{StridedLayout, elementwise_launch};

/// A copy of the matrices, of elements of so many bytes, whose rows begin at multiples of `bytes`, and how they are stored in
/// it. Its memory is the stream's own, and goes back to it when it is dropped.
pub(super) fn packed(
    stream: &Stream,
    source: DeviceSlice<'_, u8>,
    element: usize,
    stored: Stored,
    bytes: usize,
) -> Result<(DeviceBuffer<u8>, Stored)> {
    let shared = stored.batch <= 1 || stored.stride == 0;
    let matrices = if shared { 1 } else { stored.batch };
    let leading = stored.columns.next_multiple_of(bytes / element);
    let matrix = stored.rows * leading;
    let mut copy = stream.uninitialized::<u8>(matrices * matrix * element)?;
    let layout = StridedLayout::new(
        &[matrices, stored.rows, stored.columns],
        &[stored.stride as isize, stored.leading as isize, 1],
        &[matrix as isize, leading as isize, 1],
        0,
        0,
    )?;
    let (layout, width) = layout.widened(element, source.address(), copy.address());
    let name = || format!("copy_strided_{}", 8 * width);
    let function = kernels::function(&stream.device(), ("copy", width as u64), &name)?;
    let config = elementwise_launch(layout.len() as usize, width);
    // SAFETY: the layout is of the matrices, which lie inside the source as the product was checked, and of the copy, which
    // has room for them.
    unsafe { function.launch(stream, config, (source, &mut copy, ByValue(layout), layout.len()))? };
    Ok((copy, Stored { leading, stride: if shared { 0 } else { matrix }, ..stored }))
}
