//! Sorted order, search, counts and distinct elements.

use super::super::error::Failure;
use super::super::handle::sv_tensor;
use super::{flag, give, give_all};

/// The largest element along the axis, and its position; the first NaN if there is one.
pub const SV_WITH_INDICES_MAX: i32 = 1;
/// The smallest element along the axis, and its position; the first NaN if there is one.
pub const SV_WITH_INDICES_MIN: i32 = 2;
/// The median along the axis, the lower one of an even number of elements, and its position; the first NaN if there is one.
pub const SV_WITH_INDICES_MEDIAN: i32 = 3;
/// The median of the elements that are not NaN.
pub const SV_WITH_INDICES_NANMEDIAN: i32 = 4;
/// The most frequent element along the axis, the smallest of several, and its last position.
pub const SV_WITH_INDICES_MODE: i32 = 5;

/// Writes the elements sorted along an axis, and the positions that they had, as `SV_DTYPE_I64`. Equal elements keep their
/// order, and NaN is the largest number. `descending` is 1 or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_sort(
    tensor: sv_tensor,
    axis: i64,
    descending: i32,
    values: *mut sv_tensor,
    indices: *mut sv_tensor,
) -> i32 {
    give_all("sv_tensor_sort", [(values, "values"), (indices, "indices")], || {
        let (tensor, descending) = (super::tensor(tensor, "tensor")?, flag(descending, "descending")?);
        Ok(tensor.sort(axis as isize, descending)?.into())
    })
}

/// Gives the values of `sv_tensor_sort`, in less time and memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_sorted(
    tensor: sv_tensor,
    axis: i64,
    descending: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_sorted", result, || {
        let (tensor, descending) = (super::tensor(tensor, "tensor")?, flag(descending, "descending")?);
        Ok(tensor.sorted(axis as isize, descending)?)
    })
}

/// Gives the indices of `sv_tensor_sort`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_argsort(
    tensor: sv_tensor,
    axis: i64,
    descending: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_argsort", result, || {
        let (tensor, descending) = (super::tensor(tensor, "tensor")?, flag(descending, "descending")?);
        Ok(tensor.argsort(axis as isize, descending)?)
    })
}

/// Writes the `k` largest elements along an axis in descending order, and their positions; the smallest in ascending order if
/// `largest` is 0. NaN is the largest number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_topk(
    tensor: sv_tensor,
    k: usize,
    axis: i64,
    largest: i32,
    values: *mut sv_tensor,
    indices: *mut sv_tensor,
) -> i32 {
    give_all("sv_tensor_topk", [(values, "values"), (indices, "indices")], || {
        let (tensor, largest) = (super::tensor(tensor, "tensor")?, flag(largest, "largest")?);
        Ok(tensor.topk(k, axis as isize, largest)?.into())
    })
}

/// Writes the element that is the k-th smallest along an axis, counted from 1, and its position.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_kthvalue(
    tensor: sv_tensor,
    k: usize,
    axis: i64,
    values: *mut sv_tensor,
    indices: *mut sv_tensor,
) -> i32 {
    give_all("sv_tensor_kthvalue", [(values, "values"), (indices, "indices")], || {
        Ok(super::tensor(tensor, "tensor")?.kthvalue(k, axis as isize)?.into())
    })
}

/// Writes one of `SV_WITH_INDICES_...` along an axis: the elements, and their positions as `SV_DTYPE_I64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_reduce_with_indices(
    tensor: sv_tensor,
    reduction: i32,
    axis: i64,
    values: *mut sv_tensor,
    indices: *mut sv_tensor,
) -> i32 {
    give_all("sv_tensor_reduce_with_indices", [(values, "values"), (indices, "indices")], || {
        let (tensor, axis) = (super::tensor(tensor, "tensor")?, axis as isize);
        let results = match reduction {
            SV_WITH_INDICES_MAX => tensor.max_with_indices(axis),
            SV_WITH_INDICES_MIN => tensor.min_with_indices(axis),
            SV_WITH_INDICES_MEDIAN => tensor.median(axis),
            SV_WITH_INDICES_NANMEDIAN => tensor.nanmedian(axis),
            SV_WITH_INDICES_MODE => tensor.mode(axis),
            other => return Err(Failure::argument("reduction", other, "one of SV_WITH_INDICES_...")),
        };
        Ok(results?.into())
    })
}

/// Gives the q-quantile along an axis of a tensor of f32 or f64, between two elements by their distance. `ignore_nan` is 1 to
/// leave NaN out, or 0 for NaN in the result of a row with NaN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_quantile(
    tensor: sv_tensor,
    q: f64,
    axis: i64,
    ignore_nan: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_quantile", result, || {
        let (tensor, axis) = (super::tensor(tensor, "tensor")?, axis as isize);
        Ok(match flag(ignore_nan, "ignore_nan")? {
            true => tensor.nanquantile(q, axis)?,
            false => tensor.quantile(q, axis)?,
        })
    })
}

/// Gives the distinct elements in ascending order. `consecutive` is 1 to join only neighbours, in their order, or 0.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_unique(
    tensor: sv_tensor,
    consecutive: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_unique", result, || {
        let tensor = super::tensor(tensor, "tensor")?;
        Ok(match flag(consecutive, "consecutive")? {
            true => tensor.unique_consecutive()?,
            false => tensor.unique()?,
        })
    })
}

/// Writes the elements of `sv_tensor_unique`, the place among them of each element, and the number of times that each occurs.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_unique_with_counts(
    tensor: sv_tensor,
    consecutive: i32,
    values: *mut sv_tensor,
    inverse: *mut sv_tensor,
    counts: *mut sv_tensor,
) -> i32 {
    let results = [(values, "values"), (inverse, "inverse"), (counts, "counts")];
    give_all("sv_tensor_unique_with_counts", results, || {
        let tensor = super::tensor(tensor, "tensor")?;
        Ok(match flag(consecutive, "consecutive")? {
            true => tensor.unique_consecutive_with_counts()?.into(),
            false => tensor.unique_with_counts()?.into(),
        })
    })
}

/// Gives for each element a bool: 1 if it equals one of `elements`. NaN equals nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_isin(
    tensor: sv_tensor,
    elements: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_isin", result, || {
        Ok(super::tensor(tensor, "tensor")?.isin(&super::tensor(elements, "elements")?)?)
    })
}

/// Gives for each of `values` the position, as `SV_DTYPE_I64`, at which it would be inserted into the last axis of a sorted
/// tensor: before elements that equal it, or behind them if `right` is 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_searchsorted(
    tensor: sv_tensor,
    values: sv_tensor,
    right: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_searchsorted", result, || {
        let (tensor, values) = (super::tensor(tensor, "tensor")?, super::tensor(values, "values")?);
        Ok(tensor.searchsorted(&values, flag(right, "right")?)?)
    })
}

/// Gives for each element of a tensor the number of its bucket among sorted `boundaries` of one dimension, as
/// `sv_tensor_searchsorted` does with the operands in the other order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_bucketize(
    tensor: sv_tensor,
    boundaries: sv_tensor,
    right: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_bucketize", result, || {
        let boundaries = super::tensor(boundaries, "boundaries")?;
        Ok(super::tensor(tensor, "tensor")?.bucketize(&boundaries, flag(right, "right")?)?)
    })
}

/// Counts the elements of a tensor of floats in `bins` bins of equal width from `min` to `max`, in the tensor's dtype. Bounds
/// that are both 0 are the smallest and the largest element. NaN and elements outside of the bounds are left out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_histc(
    tensor: sv_tensor,
    bins: usize,
    min: f64,
    max: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_histc", result, || Ok(super::tensor(tensor, "tensor")?.histc(bins, min, max)?))
}

/// Counts the elements between sorted `edges`, as `SV_DTYPE_I64`. The last bin has its upper edge too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_histogram(
    tensor: sv_tensor,
    edges: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_histogram", result, || {
        Ok(super::tensor(tensor, "tensor")?.histogram(&super::tensor(edges, "edges")?)?)
    })
}

/// Counts how often each integer from 0 on occurs in a tensor of one dimension, as `SV_DTYPE_I64`: up to the largest element,
/// and at least `minlength` integers.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_bincount(
    tensor: sv_tensor,
    minlength: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_bincount", result, || Ok(super::tensor(tensor, "tensor")?.bincount(minlength)?))
}

/// Gives the indices of the elements that are not 0, in row-major order: a row for each element, with a column for each axis.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_nonzero(tensor: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_nonzero", result, || Ok(super::tensor(tensor, "tensor")?.nonzero()?))
}

/// Gives the elements for which a mask of bools, which is broadcast, is true, in row-major order.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_masked_select(
    tensor: sv_tensor,
    mask: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_masked_select", result, || {
        Ok(super::tensor(tensor, "tensor")?.masked_select(&super::tensor(mask, "mask")?)?)
    })
}
