//! Views of variables, joins and repetitions.

use super::super::super::arguments::{slice, slice_mut};
use super::super::super::error::Result;
use super::super::super::guard;
use super::super::super::handle::sv_variable;
use super::super::super::tensor::shape::padding;
use super::super::super::tensor::views::part_sizes;
use super::super::super::tensor::{axes, sizes, sv_number, sv_slice};
use super::{enter_all, give_variable, map, variables};
use crate::nn::Variable;

/// Gives the elements in row-major order as another shape, in which one size may be -1.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_reshape(
    variable: sv_variable,
    shape: *const i64,
    rank: usize,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_reshape", variable, result, &|x| Ok(x.reshape(&axes(shape, rank, "shape")?)?))
}

/// Gives the axes from `first` to `last`, both included, as one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_flatten(
    variable: sv_variable,
    first: i64,
    last: i64,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_flatten", variable, result, &|x| Ok(x.flatten(first as isize, last as isize)?))
}

/// Gives an axis as several ones of these sizes, of which one may be -1 for the rest.
///
/// # Safety
///
/// `sizes` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_unflatten(
    variable: sv_variable,
    axis: i64,
    sizes: *const i64,
    count: usize,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_unflatten", variable, result, &|x| {
        Ok(x.unflatten(axis as isize, &axes(sizes, count, "sizes")?)?)
    })
}

/// Drops an axis of size 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_squeeze(
    variable: sv_variable,
    axis: i64,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_squeeze", variable, result, &|x| Ok(x.squeeze(axis as isize)?))
}

/// Drops all axes of size 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_squeeze_all(variable: sv_variable, result: *mut sv_variable) -> i32 {
    map("sv_variable_squeeze_all", variable, result, &|x| Ok(x.squeeze_all()?))
}

/// Adds an axis of size 1 before `axis`; -1 puts it last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_unsqueeze(
    variable: sv_variable,
    axis: i64,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_unsqueeze", variable, result, &|x| Ok(x.unsqueeze(axis as isize)?))
}

/// Gives a variable with two axes exchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_transpose(
    variable: sv_variable,
    first: i64,
    second: i64,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_transpose", variable, result, &|x| Ok(x.transpose(first as isize, second as isize)?))
}

/// Gives the axes in another order: axis `i` of the result is `axes[i]` of the variable.
///
/// # Safety
///
/// `axes` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_permute(
    variable: sv_variable,
    axes: *const i64,
    count: usize,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_permute", variable, result, &|x| Ok(x.permute(&self::axes(axes, count, "axes")?)?))
}

/// Moves axes to other positions; the others keep their order.
///
/// # Safety
///
/// `from` and `to` point to `count` numbers each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_movedim(
    variable: sv_variable,
    from: *const i64,
    to: *const i64,
    count: usize,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_movedim", variable, result, &|x| {
        Ok(x.movedim(&axes(from, count, "from")?, &axes(to, count, "to")?)?)
    })
}

/// Reverses axes.
///
/// # Safety
///
/// `axes` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_flip(
    variable: sv_variable,
    axes: *const i64,
    count: usize,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_flip", variable, result, &|x| Ok(x.flip(&self::axes(axes, count, "axes")?)?))
}

/// Repeats a variable to a larger shape: axes of size 1, and new ones in front, take its sizes. The gradient is summed over them.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_expand(
    variable: sv_variable,
    shape: *const i64,
    rank: usize,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_expand", variable, result, &|x| Ok(x.expand(&sizes(shape, rank)?)?))
}

/// Gives positions along axes, one axis after the other, as `start:stop:step` in Python. The gradient of the others is 0.
///
/// # Safety
///
/// `slices` points to `count` structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_slice(
    variable: sv_variable,
    slices: *const sv_slice,
    count: usize,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_slice", variable, result, &|x| {
        let mut view = x.clone();
        for slice in slice(slices, count, "slices")? {
            let (axis, slice) = slice.parts();
            view = view.slice(axis, slice)?;
        }
        Ok(view)
    })
}

/// Gives one position along an axis, without that axis. A negative index counts from the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_select(
    variable: sv_variable,
    axis: i64,
    index: i64,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_select", variable, result, &|x| Ok(x.select(axis as isize, index as isize)?))
}

/// Gives `length` positions along an axis from `start` on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_narrow(
    variable: sv_variable,
    axis: i64,
    start: usize,
    length: usize,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_narrow", variable, result, &|x| Ok(x.narrow(axis as isize, start, length)?))
}

/// Gives the elements whose positions along two axes differ by `offset`, as a new last axis in place of both.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_diagonal(
    variable: sv_variable,
    offset: i64,
    first: i64,
    second: i64,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_diagonal", variable, result, &|x| {
        Ok(x.diagonal(offset as isize, first as isize, second as isize)?)
    })
}

/// Writes `count` parts of a variable along an axis, of these sizes.
///
/// The caller owns one reference to each of `results`.
///
/// # Safety
///
/// `sizes` points to `count` numbers, and `results` to space for `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_split(
    variable: sv_variable,
    sizes: *const i64,
    count: usize,
    axis: i64,
    results: *mut sv_variable,
) -> i32 {
    guard::call("sv_variable_split", || {
        let variable = super::variable(variable, "variable")?;
        let results = slice_mut(results, count, "results")?;
        let parts = variable.split(&part_sizes(sizes, count)?, axis as isize)?;
        results.copy_from_slice(&enter_all(parts)?);
        Ok(())
    })
}

/// Gives variables joined by a function.
///
/// # Safety
///
/// As [`variables`] and [`give_variable`].
unsafe fn join(
    function: &'static str,
    (handles, count): (*const u64, usize),
    result: *mut u64,
    join: &dyn Fn(&[&Variable]) -> Result<Variable>,
) -> i32 {
    give_variable(function, result, &|| {
        let all = variables(handles, count, "variables")?;
        join(&all.iter().collect::<Vec<_>>())
    })
}

/// Joins variables along an axis.
///
/// # Safety
///
/// `variables` points to `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_cat(
    variables: *const sv_variable,
    count: usize,
    axis: i64,
    result: *mut sv_variable,
) -> i32 {
    join("sv_variable_cat", (variables, count), result, &|all| Ok(Variable::cat(all, axis as isize)?))
}

/// Joins variables of one shape along a new axis.
///
/// # Safety
///
/// `variables` points to `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_stack(
    variables: *const sv_variable,
    count: usize,
    axis: i64,
    result: *mut sv_variable,
) -> i32 {
    join("sv_variable_stack", (variables, count), result, &|all| Ok(Variable::stack(all, axis as isize)?))
}

/// Moves elements along axes; those that leave at one end come back at the other.
///
/// # Safety
///
/// `shifts` and `axes` point to `count` numbers each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_roll(
    variable: sv_variable,
    shifts: *const i64,
    axes: *const i64,
    count: usize,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_roll", variable, result, &|x| {
        Ok(x.roll(&self::axes(shifts, count, "shifts")?, &self::axes(axes, count, "axes")?)?)
    })
}

/// Repeats a variable this many times along each axis.
///
/// # Safety
///
/// `times` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_repeat(
    variable: sv_variable,
    times: *const i64,
    count: usize,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_repeat", variable, result, &|x| Ok(x.repeat(&sizes(times, count)?)?))
}

/// Pads a variable as `sv_tensor_pad`.
///
/// # Safety
///
/// `widths` points to `2 * count` numbers, and `number` to a struct where the mode uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_pad(
    variable: sv_variable,
    widths: *const i64,
    count: usize,
    mode: i32,
    number: *const sv_number,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_pad", variable, result, &|x| {
        let (widths, padding) = padding(x.shape().rank(), widths, count, mode, number)?;
        Ok(x.pad(&widths, padding)?)
    })
}
