//! Writes by index that combine elements, and writes by coordinates and masks. The elements that go to one place are combined
//! in their order, so that results have the same bits on every device.

use super::super::error::{Failure, Result};
use super::super::handle::sv_tensor;
use super::index::Items;
use super::reduce::{SV_REDUCE_MAX, SV_REDUCE_MEAN, SV_REDUCE_MIN, SV_REDUCE_PROD, SV_REDUCE_SUM};
use super::{Operand, change, flag, give, number, read, sv_number};
use crate::fuse::Number;
use crate::tensor::{ScatterReduction, Tensor, TensorMut};

/// A write with references to its operands.
pub(super) enum Write {
    ScatterReduce {
        axis: isize,
        index: Tensor,
        elements: Tensor,
        reduction: ScatterReduction,
        include_self: bool,
    },
    IndexAdd {
        axis: isize,
        index: Tensor,
        elements: Tensor,
    },
    IndexFill {
        axis: isize,
        index: Tensor,
        number: Number,
    },
    IndexPut {
        indices: Vec<Tensor>,
        elements: Tensor,
        accumulate: bool,
    },
    MaskedScatter {
        mask: Tensor,
        elements: Tensor,
    },
    Assign {
        items: Items,
        value: Operand,
    },
}

macro_rules! apply {
    ($write:expr, $target:expr) => {
        match $write {
            Write::ScatterReduce { axis, index, elements, reduction, include_self } => {
                $target.scatter_reduce(*axis, index, elements, *reduction, *include_self)
            }
            Write::IndexAdd { axis, index, elements } => $target.index_add(*axis, index, elements),
            Write::IndexFill { axis, index, number } => $target.index_fill(*axis, index, *number),
            Write::IndexPut { indices, elements, accumulate } => {
                let indices: Vec<&Tensor> = indices.iter().collect();
                $target.index_put(&indices, elements, *accumulate)
            }
            Write::MaskedScatter { mask, elements } => $target.masked_scatter(mask, elements),
            Write::Assign { items, value } => {
                return Ok($target.index_assign(&items.entries()[..], value.operand())?);
            }
        }
    };
}

impl Write {
    fn result(&self, tensor: &Tensor) -> Result<Tensor> {
        Ok(apply!(self, tensor)?)
    }

    fn change(&self, mut target: TensorMut<'_>) -> Result<()> {
        apply!(self, target)?;
        Ok(())
    }
}

/// Runs the body of a function whose result is a tensor after a write. The handle is checked before `write` reads arrays.
///
/// # Safety
///
/// As [`give`].
pub(super) unsafe fn give_written(
    function: &'static str,
    tensor: u64,
    result: *mut u64,
    write: &dyn Fn() -> Result<Write>,
) -> i32 {
    give(function, result, || {
        let tensor = super::tensor(tensor, "tensor")?;
        write()?.result(&tensor)
    })
}

/// Runs the body of a function that writes to a tensor. The handle is checked before `write` reads arrays.
pub(super) fn write_to(function: &'static str, tensor: u64, write: &dyn Fn() -> Result<Write>) -> i32 {
    let find = || {
        read(tensor, "tensor", |_| ())?;
        write()
    };
    change(function, (tensor, "tensor"), find, |target, write| write.change(target))
}

fn reduction(code: i32) -> Result<ScatterReduction> {
    Ok(match code {
        SV_REDUCE_SUM => ScatterReduction::Sum,
        SV_REDUCE_PROD => ScatterReduction::Prod,
        SV_REDUCE_MIN => ScatterReduction::Amin,
        SV_REDUCE_MAX => ScatterReduction::Amax,
        SV_REDUCE_MEAN => ScatterReduction::Mean,
        other => {
            let wanted = "SV_REDUCE_SUM, SV_REDUCE_PROD, SV_REDUCE_MIN, SV_REDUCE_MAX or SV_REDUCE_MEAN";
            return Err(Failure::argument("reduction", other, wanted));
        }
    })
}

fn scatter_reduce(axis: i64, index: u64, elements: u64, code: i32, include_self: i32) -> Result<Write> {
    Ok(Write::ScatterReduce {
        axis: axis as isize,
        index: super::tensor(index, "index")?,
        elements: super::tensor(elements, "elements")?,
        reduction: reduction(code)?,
        include_self: flag(include_self, "include_self")?,
    })
}

/// Gives a tensor whose elements at the places of an index along `axis` are combined with `elements`, which are broadcast to
/// the index: by `SV_REDUCE_SUM`, `SV_REDUCE_PROD`, `SV_REDUCE_MIN`, `SV_REDUCE_MAX` or `SV_REDUCE_MEAN`. The tensor's own
/// element takes part if `include_self` is 1. A place that no index names keeps its element.
///
/// An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
/// waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_scatter_reduce(
    tensor: sv_tensor,
    axis: i64,
    index: sv_tensor,
    elements: sv_tensor,
    reduction: i32,
    include_self: i32,
    result: *mut sv_tensor,
) -> i32 {
    let write = || scatter_reduce(axis, index, elements, reduction, include_self);
    give_written("sv_tensor_scatter_reduce", tensor, result, &write)
}

/// Writes the result of `sv_tensor_scatter_reduce` to the tensor.
#[unsafe(no_mangle)]
pub extern "C" fn sv_tensor_scatter_reduce_in_place(
    tensor: sv_tensor,
    axis: i64,
    index: sv_tensor,
    elements: sv_tensor,
    reduction: i32,
    include_self: i32,
) -> i32 {
    write_to("sv_tensor_scatter_reduce_in_place", tensor, &|| {
        scatter_reduce(axis, index, elements, reduction, include_self)
    })
}

/// Gives a tensor with elements added at the places of an index along `axis`: `sv_tensor_scatter_reduce` by `SV_REDUCE_SUM`
/// with the tensor's own elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_scatter_add(
    tensor: sv_tensor,
    axis: i64,
    index: sv_tensor,
    elements: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    let write = || scatter_reduce(axis, index, elements, SV_REDUCE_SUM, 1);
    give_written("sv_tensor_scatter_add", tensor, result, &write)
}

/// Adds elements at the places of an index along `axis`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_tensor_scatter_add_in_place(
    tensor: sv_tensor,
    axis: i64,
    index: sv_tensor,
    elements: sv_tensor,
) -> i32 {
    write_to("sv_tensor_scatter_add_in_place", tensor, &|| {
        scatter_reduce(axis, index, elements, SV_REDUCE_SUM, 1)
    })
}

fn index_add(axis: i64, index: u64, elements: u64) -> Result<Write> {
    let (index, elements) = (super::tensor(index, "index")?, super::tensor(elements, "elements")?);
    Ok(Write::IndexAdd { axis: axis as isize, index, elements })
}

/// Gives a tensor with elements added to the positions along an axis that a list of indices names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_index_add(
    tensor: sv_tensor,
    axis: i64,
    index: sv_tensor,
    elements: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give_written("sv_tensor_index_add", tensor, result, &|| index_add(axis, index, elements))
}

/// Adds elements to the positions along an axis that a list of indices names.
#[unsafe(no_mangle)]
pub extern "C" fn sv_tensor_index_add_in_place(
    tensor: sv_tensor,
    axis: i64,
    index: sv_tensor,
    elements: sv_tensor,
) -> i32 {
    write_to("sv_tensor_index_add_in_place", tensor, &|| index_add(axis, index, elements))
}

/// # Safety
///
/// As [`number`].
unsafe fn index_fill(axis: i64, index: u64, value: *const sv_number) -> Result<Write> {
    let number = number(value, "number")?;
    Ok(Write::IndexFill { axis: axis as isize, index: super::tensor(index, "index")?, number })
}

/// Gives a tensor with the positions along an axis that a list of indices names replaced by a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_index_fill(
    tensor: sv_tensor,
    axis: i64,
    index: sv_tensor,
    number: *const sv_number,
    result: *mut sv_tensor,
) -> i32 {
    give_written("sv_tensor_index_fill", tensor, result, &|| index_fill(axis, index, number))
}

/// Replaces the positions along an axis that a list of indices names by a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_index_fill_in_place(
    tensor: sv_tensor,
    axis: i64,
    index: sv_tensor,
    number: *const sv_number,
) -> i32 {
    write_to("sv_tensor_index_fill_in_place", tensor, &|| index_fill(axis, index, number))
}

/// # Safety
///
/// As [`super::tensors`].
unsafe fn index_put(indices: *const u64, count: usize, elements: u64, accumulate: i32) -> Result<Write> {
    let indices = super::tensors(indices, count, "indices")?;
    let elements = super::tensor(elements, "elements")?;
    Ok(Write::IndexPut { indices, elements, accumulate: flag(accumulate, "accumulate")? })
}

/// Gives a tensor with elements written by coordinates: `indices` are `count` tensors of integers, one for each of the first
/// axes, which are broadcast. Of several elements for one place the last one stays; all are added if `accumulate` is 1.
///
/// # Safety
///
/// `indices` points to `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_index_put(
    tensor: sv_tensor,
    indices: *const sv_tensor,
    count: usize,
    elements: sv_tensor,
    accumulate: i32,
    result: *mut sv_tensor,
) -> i32 {
    let write = || index_put(indices, count, elements, accumulate);
    give_written("sv_tensor_index_put", tensor, result, &write)
}

/// Writes elements by coordinates, as `sv_tensor_index_put`.
///
/// # Safety
///
/// `indices` points to `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_index_put_in_place(
    tensor: sv_tensor,
    indices: *const sv_tensor,
    count: usize,
    elements: sv_tensor,
    accumulate: i32,
) -> i32 {
    let write = || index_put(indices, count, elements, accumulate);
    write_to("sv_tensor_index_put_in_place", tensor, &write)
}

fn masked_scatter(mask: u64, elements: u64) -> Result<Write> {
    let (mask, elements) = (super::tensor(mask, "mask")?, super::tensor(elements, "elements")?);
    Ok(Write::MaskedScatter { mask, elements })
}

/// Gives a tensor in which the elements for which a mask of bools is true are replaced by the first elements of `elements`, in
/// row-major order. The mask is broadcast.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_masked_scatter(
    tensor: sv_tensor,
    mask: sv_tensor,
    elements: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give_written("sv_tensor_masked_scatter", tensor, result, &|| masked_scatter(mask, elements))
}

/// Replaces the elements for which a mask of bools is true, as `sv_tensor_masked_scatter`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_tensor_masked_scatter_in_place(
    tensor: sv_tensor,
    mask: sv_tensor,
    elements: sv_tensor,
) -> i32 {
    write_to("sv_tensor_masked_scatter_in_place", tensor, &|| masked_scatter(mask, elements))
}

/// Combines neighbouring rows of a tensor by one of the codes of `sv_tensor_scatter_reduce`: the first `lengths[0]` along axis
/// 0, the next `lengths[1]`, and so on. A length of 0 gives `initial`.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_segment_reduce(
    tensor: sv_tensor,
    lengths: sv_tensor,
    reduction: i32,
    initial: *const sv_number,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_segment_reduce", result, || {
        let (tensor, lengths) = (super::tensor(tensor, "tensor")?, super::tensor(lengths, "lengths")?);
        Ok(tensor.segment_reduce(&lengths, self::reduction(reduction)?, number(initial, "initial")?)?)
    })
}
