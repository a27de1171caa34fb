//! The indexing expression of NumPy and PyTorch, `x[1, :, mask]`, as an array of entries.

use super::super::arguments::{check_reserved, slice};
use super::super::error::{Failure, Result};
use super::super::handle::sv_tensor;
use super::accumulate::{Write, give_written, write_to};
use super::{Operand, give, sv_operand, sv_slice};
use crate::tensor::{Index, Tensor};
use crate::types::Slice;

/// One position, in `start`, which removes the axis. A negative one counts from the end.
pub const SV_INDEX_AT: i32 = 1;
/// The positions `start:stop:step`.
pub const SV_INDEX_SLICE: i32 = 2;
/// A new axis of size 1.
pub const SV_INDEX_NEW_AXIS: i32 = 3;
/// All axes that no other entry takes; at most once, and at the end if it is left out.
pub const SV_INDEX_ELLIPSIS: i32 = 4;
/// A tensor: integers for one axis, or a mask of bools for as many axes as it has.
pub const SV_INDEX_TENSOR: i32 = 5;

/// One entry of an index expression. The layout is permanent.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_index {
    /// One of `SV_INDEX_...`, which says the fields that are read.
    pub kind: i32,
    /// 0.
    pub reserved: i32,
    /// The handle of the tensor.
    pub tensor: sv_tensor,
    /// The position, or the first one of a slice; `SV_OPEN` for the beginning.
    pub start: i64,
    /// The position behind the last one of a slice; `SV_OPEN` for the end.
    pub stop: i64,
    /// The step of a slice, not 0; a negative one goes backwards.
    pub step: i64,
}

enum Item {
    At(isize),
    Slice(Slice),
    NewAxis,
    Ellipsis,
    Tensor(Box<Tensor>),
}

/// The entries of an expression, with references to their tensors.
pub(in crate::capi) struct Items(Vec<Item>);

impl Items {
    /// # Safety
    ///
    /// As [`slice`].
    pub(in crate::capi) unsafe fn new(items: *const sv_index, count: usize) -> Result<Items> {
        let item = |item: &sv_index| {
            check_reserved("items.reserved", item.reserved)?;
            Ok(match item.kind {
                SV_INDEX_AT => Item::At(item.start as isize),
                SV_INDEX_SLICE => {
                    let range = sv_slice { axis: 0, start: item.start, stop: item.stop, step: item.step };
                    Item::Slice(range.parts().1)
                }
                SV_INDEX_NEW_AXIS => Item::NewAxis,
                SV_INDEX_ELLIPSIS => Item::Ellipsis,
                SV_INDEX_TENSOR => Item::Tensor(Box::new(super::tensor(item.tensor, "items.tensor")?)),
                other => return Err(Failure::argument("items.kind", other, "one of SV_INDEX_...")),
            })
        };
        slice(items, count, "items")?.iter().map(item).collect::<Result<_>>().map(Items)
    }

    /// Returns the entries as operations take them.
    pub(in crate::capi) fn entries(&self) -> Vec<Index<'_>> {
        let entry = |item| match item {
            &Item::At(position) => Index::At(position),
            &Item::Slice(slice) => Index::Slice(slice),
            Item::NewAxis => Index::NewAxis,
            Item::Ellipsis => Index::Ellipsis,
            Item::Tensor(tensor) => Index::Tensor(tensor),
        };
        self.0.iter().map(entry).collect()
    }
}

/// Gives the elements that an index expression of `count` entries names, as `x[...]` in NumPy and PyTorch. The result is a view
/// unless an entry is a tensor.
///
/// An index out of range in a tensor is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the
/// next call that waits for the device.
///
/// It waits for the device if an entry is a mask.
///
/// # Safety
///
/// `items` points to `count` structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_index(
    tensor: sv_tensor,
    items: *const sv_index,
    count: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_index", result, || {
        let (tensor, items) = (super::tensor(tensor, "tensor")?, Items::new(items, count)?);
        Ok(tensor.index(&items.entries()[..])?)
    })
}

/// # Safety
///
/// As [`slice`] of `count` and of one struct.
unsafe fn assign(items: *const sv_index, count: usize, value: *const sv_operand) -> Result<Write> {
    let (items, value) = (Items::new(items, count)?, Operand::pointer(value, "value")?);
    Ok(Write::Assign { items, value })
}

/// Gives a tensor in which the elements that an index expression names are replaced by a value, which is broadcast.
///
/// It waits for the device if an entry is a mask.
///
/// # Safety
///
/// `items` points to `count` structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_index_assign(
    tensor: sv_tensor,
    items: *const sv_index,
    count: usize,
    value: *const sv_operand,
    result: *mut sv_tensor,
) -> i32 {
    let write = || assign(items, count, value);
    give_written("sv_tensor_index_assign", tensor, result, &write)
}

/// Replaces the elements that an index expression names by a value, which is broadcast.
///
/// # Safety
///
/// `items` points to `count` structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_index_assign_in_place(
    tensor: sv_tensor,
    items: *const sv_index,
    count: usize,
    value: *const sv_operand,
) -> i32 {
    write_to("sv_tensor_index_assign_in_place", tensor, &|| assign(items, count, value))
}
