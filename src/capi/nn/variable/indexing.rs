//! Elements of variables by position, by a mask and in sorted order.

use super::super::super::arguments::out;
use super::super::super::error::Result;
use super::super::super::guard;
use super::super::super::handle::{Object, sv_tensor, sv_variable};
use super::super::super::tensor::index::{Items, sv_index};
use super::super::super::tensor::{self, flag, number, sv_number, tensor, tensors};
use super::{VariableObject, enter, map};
use crate::nn::Variable;
use crate::tensor::Tensor;

/// Gives the elements that an index expression of `count` entries names, as `sv_tensor_index`. An element that it names twice gets the
/// sum of both gradients, and one that it does not name gets 0.
///
/// It waits for the device if an entry is a mask.
///
/// # Safety
///
/// `items` points to `count` structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_index(
    variable: sv_variable,
    items: *const sv_index,
    count: usize,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_index", variable, result, &|x| Ok(x.index(&Items::new(items, count)?.entries()[..])?))
}

/// Gives the positions along an axis that a list of indices names.
///
/// An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
/// waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_index_select(
    variable: sv_variable,
    axis: i64,
    index: sv_tensor,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_index_select", variable, result, &|x| {
        Ok(x.index_select(axis as isize, &tensor(index, "index")?)?)
    })
}

/// Gives for each element of the index the element at the same position but along `axis`, where the index says.
///
/// An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
/// waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_gather(
    variable: sv_variable,
    axis: i64,
    index: sv_tensor,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_gather", variable, result, &|x| Ok(x.gather(axis as isize, &tensor(index, "index")?)?))
}

/// Gives elements along an axis as `sv_variable_gather`, with an index that is broadcast along the other axes.
///
/// An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
/// waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_take_along_axis(
    variable: sv_variable,
    axis: i64,
    index: sv_tensor,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_take_along_axis", variable, result, &|x| {
        Ok(x.take_along_axis(axis as isize, &tensor(index, "index")?)?)
    })
}

/// Gives the elements that an index names by their row-major position.
///
/// An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
/// waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_take(
    variable: sv_variable,
    index: sv_tensor,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_take", variable, result, &|x| Ok(x.take(&tensor(index, "index")?)?))
}

/// Gives the row of a matrix at each element of an index, as a new last axis. A negative index is out of range.
///
/// An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
/// waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_embedding(
    variable: sv_variable,
    index: sv_tensor,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_embedding", variable, result, &|x| Ok(x.embedding(&tensor(index, "index")?)?))
}

/// Gives a variable with elements added to the positions along an axis that a list of indices names.
///
/// An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
/// waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_index_add(
    variable: sv_variable,
    axis: i64,
    index: sv_tensor,
    elements: sv_variable,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_index_add", variable, result, &|x| {
        let (index, elements) = (tensor(index, "index")?, super::variable(elements, "elements")?);
        Ok(x.index_add(axis as isize, &index, &elements)?)
    })
}

/// Gives a variable with each element added along an axis where an index says.
///
/// An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
/// waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_scatter_add(
    variable: sv_variable,
    axis: i64,
    index: sv_tensor,
    elements: sv_variable,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_scatter_add", variable, result, &|x| {
        let (index, elements) = (tensor(index, "index")?, super::variable(elements, "elements")?);
        Ok(x.scatter_add(axis as isize, &index, &elements)?)
    })
}

/// Gives a variable with elements written by coordinates, with an index for each of the first `count` axes. `accumulate` is 1 to add
/// them, or 0 to replace.
///
/// An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
/// waits for the device.
///
/// # Safety
///
/// `indices` points to `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_index_put(
    variable: sv_variable,
    indices: *const sv_tensor,
    count: usize,
    elements: sv_variable,
    accumulate: i32,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_index_put", variable, result, &|x| {
        let elements = super::variable(elements, "elements")?;
        let indices = tensors(indices, count, "indices")?;
        let accumulate = flag(accumulate, "accumulate")?;
        Ok(x.index_put(&indices.iter().collect::<Vec<_>>(), &elements, accumulate)?)
    })
}

/// Gives the lower triangle of matrices, with zeros above the diagonal `diagonal`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_tril(
    variable: sv_variable,
    diagonal: i64,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_tril", variable, result, &|x| Ok(x.tril(diagonal as isize)?))
}

/// Gives the upper triangle of matrices, with zeros below the diagonal `diagonal`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_triu(
    variable: sv_variable,
    diagonal: i64,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_triu", variable, result, &|x| Ok(x.triu(diagonal as isize)?))
}

/// Gives a variable with a number where a mask of bools, which is broadcast, is true. The gradient is 0 there. `SV_OP_CHOOSE` of
/// `sv_variable_operation` takes variables on both sides.
///
/// # Safety
///
/// `value` points to a struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_masked_fill(
    variable: sv_variable,
    mask: sv_tensor,
    value: *const sv_number,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_masked_fill", variable, result, &|x| {
        Ok(x.masked_fill(&tensor(mask, "mask")?, number(value, "value")?)?)
    })
}

/// Gives the elements for which a mask of bools is true, in row-major order, as one axis.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_masked_select(
    variable: sv_variable,
    mask: sv_tensor,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_masked_select", variable, result, &|x| Ok(x.masked_select(&tensor(mask, "mask")?)?))
}

/// Writes the handles of a variable and of the tensor of its indices, or neither.
///
/// # Safety
///
/// Each pointer is NULL or points to a `u64` that this call alone uses.
unsafe fn give_sorted(
    function: &'static str,
    variable: u64,
    [values, indices]: [*mut u64; 2],
    work: &dyn Fn(&Variable) -> Result<(Variable, Tensor)>,
) -> i32 {
    guard::call(function, || {
        let (values, indices) = (out(values, "values")?, out(indices, "indices")?);
        let (sorted, index) = work(&super::variable(variable, "variable")?)?;
        let sorted = enter(sorted)?;
        match tensor::enter(index) {
            Ok(index) => indices.write(index),
            Err(error) => {
                VariableObject::table().release(sorted, "values")?;
                return Err(error);
            }
        }
        values.write(sorted);
        Ok(())
    })
}

/// Sorts along an axis, and writes the values and the tensor of their positions before. `descending` is 1 or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_sort(
    variable: sv_variable,
    axis: i64,
    descending: i32,
    values: *mut sv_variable,
    indices: *mut sv_tensor,
) -> i32 {
    give_sorted("sv_variable_sort", variable, [values, indices], &|x| {
        Ok(x.sort(axis as isize, flag(descending, "descending")?)?)
    })
}

/// Gives the `k` largest elements along an axis, or with `largest` of 0 the smallest, and the tensor of their positions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_topk(
    variable: sv_variable,
    k: usize,
    axis: i64,
    largest: i32,
    values: *mut sv_variable,
    indices: *mut sv_tensor,
) -> i32 {
    give_sorted("sv_variable_topk", variable, [values, indices], &|x| {
        Ok(x.topk(k, axis as isize, flag(largest, "largest")?)?)
    })
}
