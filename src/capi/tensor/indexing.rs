//! Elements by their indices.

use super::super::handle::sv_tensor;
use super::{Operand, change, give, sv_operand};

/// Gives for each element of the index the element at the same position but along `axis`, where the index says.
///
/// An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
/// waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_gather(
    tensor: sv_tensor,
    axis: i64,
    index: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_gather", result, || {
        let (tensor, index) = (super::tensor(tensor, "tensor")?, super::tensor(index, "index")?);
        Ok(tensor.gather(axis as isize, &index)?)
    })
}

/// Gives the positions along an axis that a list of indices names.
///
/// An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
/// waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_index_select(
    tensor: sv_tensor,
    axis: i64,
    index: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_index_select", result, || {
        let (tensor, index) = (super::tensor(tensor, "tensor")?, super::tensor(index, "index")?);
        Ok(tensor.index_select(axis as isize, &index)?)
    })
}

/// Gives the elements that an index names by their row-major position.
///
/// An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
/// waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_take(tensor: sv_tensor, index: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_take", result, || {
        let (tensor, index) = (super::tensor(tensor, "tensor")?, super::tensor(index, "index")?);
        Ok(tensor.take(&index)?)
    })
}

/// Gives elements along an axis as `sv_tensor_gather`, with an index that is broadcast along the other axes.
///
/// An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
/// waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_take_along_axis(
    tensor: sv_tensor,
    axis: i64,
    index: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_take_along_axis", result, || {
        let (tensor, index) = (super::tensor(tensor, "tensor")?, super::tensor(index, "index")?);
        Ok(tensor.take_along_axis(axis as isize, &index)?)
    })
}

/// Gives a new last axis of `classes` positions for each integer, with 1 at the integer and 0 elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_one_hot(tensor: sv_tensor, classes: usize, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_one_hot", result, || Ok(super::tensor(tensor, "tensor")?.one_hot(classes)?))
}

/// Gives a tensor with elements written along an axis where an index says.
///
/// An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
/// waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_scatter(
    tensor: sv_tensor,
    axis: i64,
    index: sv_tensor,
    elements: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_scatter", result, || {
        let (tensor, index) = (super::tensor(tensor, "tensor")?, super::tensor(index, "index")?);
        let elements = super::tensor(elements, "elements")?;
        Ok(tensor.scatter(axis as isize, &index, &elements)?)
    })
}

/// Gives a tensor with the positions along an axis that a list of indices names replaced by elements.
///
/// An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
/// waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_index_copy(
    tensor: sv_tensor,
    axis: i64,
    index: sv_tensor,
    elements: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_index_copy", result, || {
        let (tensor, index) = (super::tensor(tensor, "tensor")?, super::tensor(index, "index")?);
        let elements = super::tensor(elements, "elements")?;
        Ok(tensor.index_copy(axis as isize, &index, &elements)?)
    })
}

/// Gives a tensor with the elements that an index names by their row-major position replaced.
///
/// An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
/// waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_put(
    tensor: sv_tensor,
    index: sv_tensor,
    elements: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_put", result, || {
        let (tensor, index) = (super::tensor(tensor, "tensor")?, super::tensor(index, "index")?);
        let elements = super::tensor(elements, "elements")?;
        Ok(tensor.put(&index, &elements)?)
    })
}

/// Writes elements along an axis where an index says.
#[unsafe(no_mangle)]
pub extern "C" fn sv_tensor_scatter_in_place(
    tensor: sv_tensor,
    axis: i64,
    index: sv_tensor,
    elements: sv_tensor,
) -> i32 {
    change(
        "sv_tensor_scatter_in_place",
        (tensor, "tensor"),
        || Ok((super::tensor(index, "index")?, super::tensor(elements, "elements")?)),
        |mut target, (index, elements)| {
            target.scatter(axis as isize, &index, &elements)?;
            Ok(())
        },
    )
}

/// Replaces the positions along an axis that a list of indices names.
#[unsafe(no_mangle)]
pub extern "C" fn sv_tensor_index_copy_in_place(
    tensor: sv_tensor,
    axis: i64,
    index: sv_tensor,
    elements: sv_tensor,
) -> i32 {
    change(
        "sv_tensor_index_copy_in_place",
        (tensor, "tensor"),
        || Ok((super::tensor(index, "index")?, super::tensor(elements, "elements")?)),
        |mut target, (index, elements)| {
            target.index_copy(axis as isize, &index, &elements)?;
            Ok(())
        },
    )
}

/// Replaces the elements that an index names by their row-major position.
#[unsafe(no_mangle)]
pub extern "C" fn sv_tensor_put_in_place(tensor: sv_tensor, index: sv_tensor, elements: sv_tensor) -> i32 {
    change(
        "sv_tensor_put_in_place",
        (tensor, "tensor"),
        || Ok((super::tensor(index, "index")?, super::tensor(elements, "elements")?)),
        |mut target, (index, elements)| {
            target.put(&index, &elements)?;
            Ok(())
        },
    )
}

/// Replaces a tensor's elements by a value where a mask of bools is true.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_masked_fill_in_place(
    tensor: sv_tensor,
    mask: sv_tensor,
    value: *const sv_operand,
) -> i32 {
    let find = || Ok((super::tensor(mask, "mask")?, Operand::pointer(value, "value")?));
    change("sv_tensor_masked_fill_in_place", (tensor, "tensor"), find, |mut target, (mask, value)| {
        target.masked_fill(&mask, value.operand())?;
        Ok(())
    })
}
