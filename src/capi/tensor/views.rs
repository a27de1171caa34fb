//! Views: tensors that share the elements of another one, without a copy.

use super::super::arguments::{collected, slice, slice_mut};
use super::super::error::{Failure, Result};
use super::super::handle::sv_tensor;
use super::{axes, give, sizes, sv_slice};

/// Gives positions along axes, one axis after the other, as `start:stop:step` in Python.
///
/// # Safety
///
/// `slices` points to `count` structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_slice(
    tensor: sv_tensor,
    slices: *const sv_slice,
    count: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_slice", result, || {
        let mut view = super::tensor(tensor, "tensor")?;
        for slice in slice(slices, count, "slices")? {
            let (axis, slice) = slice.parts();
            view = view.slice(axis, slice)?;
        }
        Ok(view)
    })
}

/// Gives one position along an axis, without that axis. A negative index counts from the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_select(
    tensor: sv_tensor,
    axis: i64,
    index: i64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_select", result, || {
        Ok(super::tensor(tensor, "tensor")?.select(axis as isize, index as isize)?)
    })
}

/// Gives `length` positions along an axis from `start` on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_narrow(
    tensor: sv_tensor,
    axis: i64,
    start: usize,
    length: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_narrow", result, || {
        Ok(super::tensor(tensor, "tensor")?.narrow(axis as isize, start, length)?)
    })
}

/// Gives a tensor with two axes exchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_transpose(
    tensor: sv_tensor,
    first: i64,
    second: i64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_transpose", result, || {
        Ok(super::tensor(tensor, "tensor")?.transpose(first as isize, second as isize)?)
    })
}

/// Gives the axes in another order: axis `i` of the result is `axes[i]` of the tensor.
///
/// # Safety
///
/// `axes` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_permute(
    tensor: sv_tensor,
    axes: *const i64,
    count: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_permute", result, || {
        Ok(super::tensor(tensor, "tensor")?.permute(&self::axes(axes, count, "axes")?)?)
    })
}

/// Moves axes to other places; the others keep their order.
///
/// # Safety
///
/// `from` and `to` point to `count` numbers each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_movedim(
    tensor: sv_tensor,
    from: *const i64,
    to: *const i64,
    count: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_movedim", result, || {
        Ok(super::tensor(tensor, "tensor")?.movedim(&axes(from, count, "from")?, &axes(to, count, "to")?)?)
    })
}

/// Gives the elements in row-major order as another shape, in which one size may be -1. Copies them if strides cannot
/// describe the result.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_reshape(
    tensor: sv_tensor,
    shape: *const i64,
    rank: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_reshape", result, || {
        Ok(super::tensor(tensor, "tensor")?.reshape(&axes(shape, rank, "shape")?)?)
    })
}

/// Gives the axes from `first` to `last`, both included, as one. Copies the elements if strides cannot describe the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_flatten(
    tensor: sv_tensor,
    first: i64,
    last: i64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_flatten", result, || {
        Ok(super::tensor(tensor, "tensor")?.flatten(first as isize, last as isize)?)
    })
}

/// Repeats a tensor to a larger shape: axes of size 1, and new ones in front, take its sizes.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_expand(
    tensor: sv_tensor,
    shape: *const i64,
    rank: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_expand", result, || Ok(super::tensor(tensor, "tensor")?.expand(&sizes(shape, rank)?)?))
}

/// Drops an axis of size 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_squeeze(tensor: sv_tensor, axis: i64, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_squeeze", result, || Ok(super::tensor(tensor, "tensor")?.squeeze(axis as isize)?))
}

/// Drops all axes of size 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_squeeze_all(tensor: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_squeeze_all", result, || Ok(super::tensor(tensor, "tensor")?.squeeze_all()?))
}

/// Adds an axis of size 1 before `axis`; -1 puts it last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_unsqueeze(tensor: sv_tensor, axis: i64, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_unsqueeze", result, || Ok(super::tensor(tensor, "tensor")?.unsqueeze(axis as isize)?))
}

/// Reverses axes.
///
/// # Safety
///
/// `axes` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_flip(
    tensor: sv_tensor,
    axes: *const i64,
    count: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_flip", result, || {
        Ok(super::tensor(tensor, "tensor")?.flip(&self::axes(axes, count, "axes")?)?)
    })
}

/// Gives the elements whose positions along two axes differ by `offset`, as a new last axis in place of both.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_diagonal(
    tensor: sv_tensor,
    offset: i64,
    first: i64,
    second: i64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_diagonal", result, || {
        Ok(super::tensor(tensor, "tensor")?.diagonal(offset as isize, first as isize, second as isize)?)
    })
}

/// Gives windows of `size` positions along an axis, `step` apart; a new last axis has the positions in each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_unfold(
    tensor: sv_tensor,
    axis: i64,
    size: usize,
    step: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_unfold", result, || {
        Ok(super::tensor(tensor, "tensor")?.unfold(axis as isize, size, step)?)
    })
}

/// Returns the sizes of `count` parts of an axis.
///
/// # Safety
///
/// As [`slice`].
pub(in crate::capi) unsafe fn part_sizes(sizes: *const i64, count: usize) -> Result<Vec<usize>> {
    let sizes = slice(sizes, count, "sizes")?;
    if let Some(size) = sizes.iter().find(|size| **size < 0) {
        return Err(Failure::argument("sizes", *size, "sizes from 0 on"));
    }
    collected(count, "sizes", sizes.iter().map(|size| *size as usize))
}

/// Writes views of `count` parts of a tensor along an axis, of these sizes.
///
/// The caller owns one reference to each of `results`.
///
/// # Safety
///
/// `sizes` points to `count` numbers, and `results` to space for `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_split(
    tensor: sv_tensor,
    sizes: *const i64,
    count: usize,
    axis: i64,
    results: *mut sv_tensor,
) -> i32 {
    super::super::guard::call("sv_tensor_split", || {
        let results = slice_mut(results, count, "results")?;
        let tensor = super::tensor(tensor, "tensor")?;
        let parts = tensor.split(&part_sizes(sizes, count)?, axis as isize)?;
        results.copy_from_slice(&super::enter_all(parts)?);
        Ok(())
    })
}

/// Gives all elements along one axis, in row-major order: a view if the elements allow one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_ravel(tensor: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_ravel", result, || Ok(super::tensor(tensor, "tensor")?.ravel()?))
}

/// Gives an axis as several ones of these sizes, of which one may be -1 for the rest.
///
/// # Safety
///
/// `sizes` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_unflatten(
    tensor: sv_tensor,
    axis: i64,
    sizes: *const i64,
    count: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_unflatten", result, || {
        Ok(super::tensor(tensor, "tensor")?.unflatten(axis as isize, &axes(sizes, count, "sizes")?)?)
    })
}

/// Gives the same bytes as elements of another dtype. The last axis changes if the dtypes differ in size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_view_dtype(tensor: sv_tensor, dtype: i32, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_view_dtype", result, || {
        Ok(super::tensor(tensor, "tensor")?.view_dtype(super::dtype(dtype)?)?)
    })
}

/// Gives complex numbers as real ones with a last axis of size 2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_view_as_real(tensor: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_view_as_real", result, || Ok(super::tensor(tensor, "tensor")?.view_as_real()?))
}

/// Gives real numbers whose last axis has size 2 as complex ones.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_view_as_complex(tensor: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_view_as_complex", result, || Ok(super::tensor(tensor, "tensor")?.view_as_complex()?))
}
