//! Statistics, differences, distances, diagonals and comparisons.

use super::super::arguments::out;
use super::super::guard;
use super::super::handle::sv_tensor;
use super::{axes_or_all, give, give_all};
use crate::tensor::{Axes, Tensor};

/// Two results.
type Pair = (Tensor, Tensor);

/// Runs the body of a function with two results over axes.
///
/// # Safety
///
/// As [`axes_or_all`] and [`give_all`].
unsafe fn give_pair(
    function: &'static str,
    (tensor, axes, count): (u64, *const i64, usize),
    results: [(*mut u64, &str); 2],
    work: &dyn Fn(&Tensor, Axes<'_>) -> crate::Result<Pair>,
) -> i32 {
    give_all(function, results, || {
        let (tensor, axes) = (super::tensor(tensor, "tensor")?, axes_or_all(axes, count)?);
        Ok(work(&tensor, axes.as_deref().map_or(Axes::All, Axes::Of))?.into())
    })
}

/// Writes the smallest and the largest elements along `count` axes, in one pass. `axes` of NULL are all axes.
///
/// # Safety
///
/// `axes` is NULL or points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_aminmax(
    tensor: sv_tensor,
    axes: *const i64,
    count: usize,
    minimum: *mut sv_tensor,
    maximum: *mut sv_tensor,
) -> i32 {
    let results = [(minimum, "minimum"), (maximum, "maximum")];
    give_pair("sv_tensor_aminmax", (tensor, axes, count), results, &|tensor, axes| tensor.aminmax(axes))
}

/// Writes the standard deviation and the mean along `count` axes. `axes` of NULL are all axes. `correction` is 1 for a sample,
/// or 0 for a population.
///
/// # Safety
///
/// `axes` is NULL or points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_std_mean(
    tensor: sv_tensor,
    axes: *const i64,
    count: usize,
    correction: usize,
    deviation: *mut sv_tensor,
    mean: *mut sv_tensor,
) -> i32 {
    let results = [(deviation, "deviation"), (mean, "mean")];
    give_pair("sv_tensor_std_mean", (tensor, axes, count), results, &|tensor, axes| {
        tensor.std_mean(axes, correction)
    })
}

/// Writes the variance and the mean along `count` axes, as `sv_tensor_std_mean`.
///
/// # Safety
///
/// `axes` is NULL or points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_var_mean(
    tensor: sv_tensor,
    axes: *const i64,
    count: usize,
    correction: usize,
    variance: *mut sv_tensor,
    mean: *mut sv_tensor,
) -> i32 {
    let results = [(variance, "variance"), (mean, "mean")];
    give_pair("sv_tensor_var_mean", (tensor, axes, count), results, &|tensor, axes| {
        tensor.var_mean(axes, correction)
    })
}

/// Gives the differences of neighbours along an axis, `order` times.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_diff(
    tensor: sv_tensor,
    order: usize,
    axis: i64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_diff", result, || Ok(super::tensor(tensor, "tensor")?.diff(order, axis as isize)?))
}

/// Gives the covariances of the rows of a matrix, which are variables. `correction` is as in `sv_tensor_std_mean`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_cov(tensor: sv_tensor, correction: usize, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_cov", result, || Ok(super::tensor(tensor, "tensor")?.cov(correction)?))
}

/// Gives the correlations of the rows of a matrix, which are variables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_corrcoef(tensor: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_corrcoef", result, || Ok(super::tensor(tensor, "tensor")?.corrcoef()?))
}

/// Gives the p-norm of the difference of each row of a tensor and each row of another one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_cdist(
    tensor: sv_tensor,
    other: sv_tensor,
    p: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_cdist", result, || {
        Ok(super::tensor(tensor, "tensor")?.cdist(&super::tensor(other, "other")?, p)?)
    })
}

/// Replaces NaN by `nan`, and infinities by two numbers. An infinity whose number is NaN becomes the dtype's largest or
/// smallest number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_nan_to_num(
    tensor: sv_tensor,
    nan: f64,
    positive_infinity: f64,
    negative_infinity: f64,
    result: *mut sv_tensor,
) -> i32 {
    let given = |number: f64| (!number.is_nan()).then_some(number);
    give("sv_tensor_nan_to_num", result, || {
        let tensor = super::tensor(tensor, "tensor")?;
        Ok(tensor.nan_to_num(nan, given(positive_infinity), given(negative_infinity))?)
    })
}

/// Gives for each element a bool: 1 if it equals that of `other` up to `rtol` times the other one plus `atol`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_isclose(
    tensor: sv_tensor,
    other: sv_tensor,
    rtol: f64,
    atol: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_isclose", result, || {
        Ok(super::tensor(tensor, "tensor")?.isclose(&super::tensor(other, "other")?, rtol, atol)?)
    })
}

/// Writes 1 if all elements of two tensors are close, |x - y| <= atol + rtol |y|, else 0. NaN is close to nothing.
///
/// Waits for the work that the tensors need.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_allclose(
    x: sv_tensor,
    y: sv_tensor,
    rtol: f64,
    atol: f64,
    close: *mut i32,
) -> i32 {
    guard::call("sv_tensor_allclose", || {
        let close = out(close, "close")?;
        close.write(i32::from(super::tensor(x, "x")?.allclose(&super::tensor(y, "y")?, rtol, atol)?));
        Ok(())
    })
}

/// Writes 1 if two tensors have one shape and equal elements, or 0.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_equal(tensor: sv_tensor, other: sv_tensor, result: *mut i32) -> i32 {
    guard::call("sv_tensor_equal", || {
        let result = out(result, "result")?;
        let equal = super::tensor(tensor, "tensor")?.equal(&super::tensor(other, "other")?)?;
        result.write(equal.into());
        Ok(())
    })
}

/// Gives a matrix with a vector on a diagonal, or the diagonal of a matrix. `offset` counts diagonals from the main one upwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_diag(tensor: sv_tensor, offset: i64, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_diag", result, || Ok(super::tensor(tensor, "tensor")?.diag(offset as isize)?))
}
