//! Elements by their indices: [`gather`](Tensor::gather), [`scatter`](Tensor::scatter) and their kin.
//!
//! An index is a tensor of integers on the same device. Every operation here copies the elements of an
//! [`IndexSpace`], in which the index selects a position along one axis of an array: [`host`] copies on the CPU, [`kernels`] on
//! a device. Elements move as bytes, so NaNs and the sign of zero are unchanged.
//!
//! | file | contents |
//! |---|---|
//! | `gather` | reads: `gather`, `take_along_axis`, `index_select`, `take` |
//! | `scatter` | writes: `scatter`, `index_copy`, `put`, `one_hot` |
//! | `accumulate` | writes that combine elements, and writes by coordinates or masks: `scatter_add`, `index_add`, `index_put` |
//! | `classes` | reads and writes by classes and ids, which do not count from the end: `nll_loss`, `embedding`; the lengths of attention's sequences |
//! | `index` | `index` and `index_assign`: integers, slices, masks and index arrays in one call |
//!
//! An index out of range is a device-side error: one thread claims the device's record in page-locked memory, and the next call
//! that waits returns it. If several indices name one element, the one at the highest position wins. A first kernel finds the
//! greatest position in the index for each element, in as many passes as keep its table in the L2 cache. A second kernel writes
//! each element once; it loops over the index if there are far more elements than indices.
//!
//! Invariants: no index leads outside of memory, whatever it is.

mod accumulate;
mod classes;
mod gather;
mod host;
mod index;
#[cfg(all(test, target_os = "linux"))]
mod kernel_tests;
mod kernels;
mod operation;
mod runs;
mod scatter;
mod space;

pub use accumulate::ScatterReduction;
pub use index::{Index, IndexExpression};
use operation::{FLAT, IndexOperation};
use space::{IndexSpace, IndexedOperand};

use super::device::{Device, stream};
use super::kernel::Output;
use super::tensor::{Tensor, mismatch};
use super::traced;
use crate::error::{Error, Result};
use crate::types::{DType, Layout, Shape};

/// The treatment of an index out of range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IndexCheck {
    Report,
    /// Reads zeros or writes nothing, without an error.
    Ignore,
}

/// An array as an operation's index sees it.
#[derive(Clone, Copy)]
struct IndexedAxis {
    /// The strides of the array's elements, without and with the index.
    operand: IndexedOperand,
    /// Positions that the index can name.
    size: usize,
    /// For errors; none where the index counts all elements.
    axis: Option<usize>,
}

impl IndexedAxis {
    /// Indexes an axis of the array.
    fn axis(array: &Layout, axis: usize) -> IndexedAxis {
        let operand = IndexedOperand::new(array.strides(), array.offset()).along(axis);
        IndexedAxis { operand, size: array.shape()[axis], axis: Some(axis) }
    }

    /// Indexes all elements of an array of one dimension.
    fn flat(array: &Layout) -> IndexedAxis {
        let along = array.strides().first().copied().unwrap_or(0);
        let operand = IndexedOperand { along, ..IndexedOperand::new(&[], array.offset()) };
        IndexedAxis { operand, size: array.count(), axis: None }
    }

    fn named(&self, call: IndexOperation) -> (u32, usize, usize) {
        (call.code(), self.axis.unwrap_or(FLAT as usize), self.size)
    }
}

/// The index as the kernels read it, in i32 or i64.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for one that is not of integers, [`Error::DeviceMismatch`] for one of another device.
fn indices(call: IndexOperation, device: Device, index: &Tensor) -> Result<Tensor> {
    if index.device() != device {
        return Err(mismatch(call.name(), device, index.device()));
    }
    match index.dtype() {
        DType::I32 | DType::I64 => Ok(index.clone()),
        DType::I8 | DType::U8 | DType::I16 | DType::U16 => index.cast(DType::I32),
        DType::U32 => index.cast(DType::I64),
        // Past i64 there is no position; the largest of it is none either.
        DType::U64 => index.minimum(i64::MAX)?.cast(DType::I64),
        other => Err(Error::DTypeMismatch {
            operation: call.name(),
            wanted: "an index of integers".to_owned(),
            found: format!("one of {other}"),
        }),
    }
}

/// Checks that elements have the device and the dtype of the array that they go to.
///
/// # Errors
///
/// [`Error::DeviceMismatch`] and [`Error::DTypeMismatch`].
fn check_same(call: IndexOperation, (device, dtype): (Device, DType), elements: &Tensor) -> Result<()> {
    if device != elements.device() {
        return Err(mismatch(call.name(), device, elements.device()));
    }
    if dtype != elements.dtype() {
        return Err(Error::DTypeMismatch {
            operation: call.name(),
            wanted: format!("elements of {dtype}, the dtype of what they go to; cast them first"),
            found: format!("elements of {}", elements.dtype()),
        });
    }
    Ok(())
}

/// An index with as many dimensions as an array of this shape, none larger than the array's but the axis.
fn check_index_shape(call: IndexOperation, shape: &Shape, axis: usize, index: &Tensor) -> Result<()> {
    let sizes = index.shape();
    let fits = sizes.rank() == shape.rank()
        && sizes.iter().zip(shape.iter()).enumerate().all(|(at, (size, most))| at == axis || size <= most);
    if fits {
        return Ok(());
    }
    let found = format!("an index of shape {sizes} for an array of shape {shape}");
    let wanted = format!("as many dimensions, none larger than the array's but axis {axis}");
    Err(Error::invalid(call.name(), found, wanted))
}

/// An index of at most one dimension, as one of one dimension.
fn list(call: IndexOperation, index: Tensor) -> Result<Tensor> {
    match index.rank() {
        0 => Ok(index.view_as(index.layout().unsqueeze(0)?)),
        1 => Ok(index),
        _ => {
            let found = format!("an index of shape {}", index.shape());
            Err(Error::invalid(call.name(), found, "one of one dimension, or none"))
        }
    }
}

/// The layout of a list whose elements count along an axis of `shape`, repeated over the other dimensions.
fn along_axis(list: &Layout, axis: usize, shape: &Shape) -> Result<Layout> {
    let mut layout = *list;
    for _ in axis + 1..shape.rank() {
        layout = layout.unsqueeze(-1)?;
    }
    layout.expand(shape)
}

/// The shape with another size along an axis.
fn resized(shape: &Shape, axis: usize, size: usize) -> Result<Shape> {
    let sizes: Vec<usize> =
        shape.iter().enumerate().map(|(at, &old)| if at == axis { size } else { old }).collect();
    Shape::new(&sizes)
}

/// The array's elements in one dimension, without a copy where strides can say it.
fn flattened(array: &Tensor) -> Result<Tensor> {
    let shape = Shape::new(&[array.count()])?;
    match array.layout().reshape(&shape)? {
        Some(layout) => Ok(array.view_as(layout)),
        None => {
            let dense = array.contiguous()?;
            let layout = dense.layout().reshape(&shape)?.unwrap_or(Layout::from_shape(shape));
            Ok(dense.view_as(layout))
        }
    }
}

fn operand(layout: &Layout) -> IndexedOperand {
    IndexedOperand::new(layout.strides(), layout.offset())
}

/// Returns the error of the first index out of range, on the CPU.
fn check_on_host(call: IndexOperation, along: &IndexedAxis, index: &Tensor, memory: &[u8]) -> Result<()> {
    let indices = host::Indices::new(memory, index.dtype());
    match indices.first_outside(index.layout(), along.size) {
        Some(wrong) => Err(call.outside(along.axis, wrong, along.size)),
        None => Ok(()),
    }
}

/// A fresh tensor of the shape that `index` is repeated to, with what it leads to in the array.
fn read(
    call: IndexOperation,
    array: &Tensor,
    along: &IndexedAxis,
    index: &Tensor,
    repeated: &Layout,
    check: IndexCheck,
) -> Result<Tensor> {
    let _traced = traced::operation(call.name(), [array, index].into_iter(), None);
    let (device, shape) = (array.device(), repeated.shape());
    let mut fresh = Output::of_shape(&device, array.dtype(), shape)?;
    let operands = [operand(repeated), along.operand, operand(fresh.layout())];
    let space = IndexSpace::new(shape, &operands, Some(array.dtype().size()), along.named(call))?;
    let name = call.name();
    if device.is_cpu() {
        let indices = index.memory().host(name)?;
        let elements = fresh.memory_mut().into_host(name)?;
        let of_index = host::Indices::new(indices, index.dtype());
        let all_inside = host::gather(&space, of_index, array.memory().host(name)?, elements);
        // A result without elements has read no index.
        if check == IndexCheck::Report && (!all_inside || space.count() == 0) {
            check_on_host(call, along, index, indices)?;
        }
    } else if space.count() > 0 {
        let indices = kernels::Indices { memory: index.memory().cuda(name)?, dtype: index.dtype() };
        let (from, mut to) = (array.memory().cuda(name)?, fresh.memory_mut());
        let (stream, checked) = (stream(&device)?, check == IndexCheck::Report);
        // SAFETY: layouts of the operands' own memory, the array's at the axis by positions that it has.
        unsafe { kernels::gather(&stream, &space, indices, from, to.cuda(name)?, checked)? };
    }
    Ok(fresh.into_tensor())
}
