//! Views, joining, splitting, repeating and padding. Every operation is a view, or copies views into views.
//!
//! Invariants: elements are copied as they are, NaNs and signs of zero included, but for those that are
//! promoted to another dtype.

mod join;
mod mask;
mod pad;
mod repeat;
mod rows;
mod split;
mod views;

pub use pad::Padding;
pub use rows::Rows;
pub(crate) use views::in_shape;
pub(crate) use views::sizes;

use super::cached_operation::{CachedOperation, OperandKind};
use super::kernel::{Output, OutputTarget};
use super::operand::{Inputs, TensorOperand};
use super::tensor::Tensor;
use crate::error::Result;
use crate::types::{DType, Layout, Shape};

/// A dtype of the same size in which elements are copied bit for bit, whatever the operations of their own do to them: f16
/// goes through f32, a bool may become 1.
fn plain(dtype: DType) -> DType {
    match dtype {
        // Complex numbers are copied in their parts, and may start at a multiple of a part's size.
        DType::C64 | DType::C128 => dtype,
        _ => match dtype.size() {
            1 => DType::U8,
            2 => DType::U16,
            4 => DType::U32,
            _ => DType::U64,
        },
    }
}

/// Copies a tensor's elements, in the target's dtype, to the target, to whose shape they are broadcast.
pub(super) fn copy_to(source: &Tensor, target: OutputTarget<'_>) -> Result<()> {
    let (memory, dtype, part) = target.into_parts();
    let bits = plain(dtype);
    let (from, to) = if source.dtype() == dtype { (bits, bits) } else { (source.dtype(), dtype) };
    let source = Tensor::of(source.storage.clone(), from, source.layout);
    let mut inputs = Inputs::default();
    inputs.push(&TensorOperand::Tensor(&source));
    CachedOperation::cast(OperandKind::Tensor(from), to)
        .run_into(&inputs, OutputTarget::new(memory, to, part))
}

/// As [`copy_to`], to a part of what is fresh.
fn copy_into(source: &Tensor, fresh: &mut Output, part: Layout) -> Result<()> {
    if part.count() == 0 { Ok(()) } else { copy_to(source, OutputTarget::part(fresh, &part)) }
}

/// The shape with another size along an axis.
fn resized(shape: &Shape, axis: usize, size: usize) -> Result<Shape> {
    let mut sizes = shape.to_vec();
    sizes[axis] = size;
    Shape::new(&sizes)
}
