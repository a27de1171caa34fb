//! Tensors put together from others, repeated, padded and masked.

use super::super::arguments::slice;
use super::super::error::{Failure, Result};
use super::super::handle::sv_tensor;
use super::{Operand, give, sizes, sv_number, sv_operand, tensors};
use crate::tensor::{Padding, Tensor};

/// Padding with one number.
pub const SV_PADDING_CONSTANT: i32 = 0;
/// Padding with the elements mirrored at the first and the last one, which are not repeated.
pub const SV_PADDING_REFLECT: i32 = 1;
/// Padding with the first and the last element.
pub const SV_PADDING_REPLICATE: i32 = 2;
/// Padding with the elements from the other end.
pub const SV_PADDING_CIRCULAR: i32 = 3;

/// Joins tensors along an axis.
///
/// # Safety
///
/// `tensors` points to `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_cat(
    tensors: *const sv_tensor,
    count: usize,
    axis: i64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_cat", result, || {
        let tensors = self::tensors(tensors, count, "tensors")?;
        Ok(Tensor::cat(&tensors.iter().collect::<Vec<_>>(), axis as isize)?)
    })
}

/// Joins tensors of one shape along a new axis.
///
/// # Safety
///
/// `tensors` points to `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_stack(
    tensors: *const sv_tensor,
    count: usize,
    axis: i64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_stack", result, || {
        let tensors = self::tensors(tensors, count, "tensors")?;
        Ok(Tensor::stack(&tensors.iter().collect::<Vec<_>>(), axis as isize)?)
    })
}

/// Moves elements along axes; what leaves at one end comes back at the other.
///
/// # Safety
///
/// `shifts` and `axes` point to `count` numbers each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_roll(
    tensor: sv_tensor,
    shifts: *const i64,
    axes: *const i64,
    count: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_roll", result, || {
        Ok(super::tensor(tensor, "tensor")?
            .roll(&super::axes(shifts, count, "shifts")?, &super::axes(axes, count, "axes")?)?)
    })
}

/// Repeats a tensor this many times along each axis.
///
/// # Safety
///
/// `times` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_repeat(
    tensor: sv_tensor,
    times: *const i64,
    count: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_repeat", result, || Ok(super::tensor(tensor, "tensor")?.repeat(&sizes(times, count)?)?))
}

/// Repeats each position along an axis.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_repeat_interleave(
    tensor: sv_tensor,
    times: usize,
    axis: i64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_repeat_interleave", result, || {
        Ok(super::tensor(tensor, "tensor")?.repeat_interleave(times, axis as isize)?)
    })
}

/// Returns the widths and the mode of a padding of the first `count` of `rank` axes.
///
/// # Safety
///
/// `widths` is NULL or points to `2 * count` numbers, and `number` is NULL or points to a struct.
pub(in crate::capi) unsafe fn padding(
    rank: usize,
    widths: *const i64,
    count: usize,
    mode: i32,
    number: *const sv_number,
) -> Result<(Vec<(usize, usize)>, Padding)> {
    if count > rank {
        return Err(Failure::argument("count", count, &format!("at most {rank}, the axes of the tensor")));
    }
    let width = |width: i64| {
        usize::try_from(width).map_err(|_| Failure::argument("widths", width, "widths from 0 on"))
    };
    let pairs = slice(widths, 2 * count, "widths")?.chunks_exact(2);
    let pairs = pairs.map(|pair| Ok((width(pair[0])?, width(pair[1])?))).collect::<Result<Vec<_>>>()?;
    let padding = match mode {
        SV_PADDING_CONSTANT => Padding::Constant(super::number(number, "number")?),
        SV_PADDING_REFLECT => Padding::Reflect,
        SV_PADDING_REPLICATE => Padding::Replicate,
        SV_PADDING_CIRCULAR => Padding::Circular,
        other => return Err(Failure::argument("mode", other, "one of SV_PADDING_...")),
    };
    Ok((pairs, padding))
}

/// Pads a tensor: `widths[2 * i]` elements before and `widths[2 * i + 1]` behind axis `i`, for the first `count` axes. `mode`
/// is one of `SV_PADDING_...`; only `SV_PADDING_CONSTANT` uses `number`.
///
/// # Safety
///
/// `widths` points to `2 * count` numbers, and `number` to a struct where the mode uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_pad(
    tensor: sv_tensor,
    widths: *const i64,
    count: usize,
    mode: i32,
    number: *const sv_number,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_pad", result, || {
        let tensor = super::tensor(tensor, "tensor")?;
        let (widths, padding) = padding(tensor.rank(), widths, count, mode, number)?;
        Ok(tensor.pad(&widths, padding)?)
    })
}

/// Gives the lower triangle of matrices, with zeros above the diagonal `diagonal`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_tril(tensor: sv_tensor, diagonal: i64, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_tril", result, || Ok(super::tensor(tensor, "tensor")?.tril(diagonal as isize)?))
}

/// Gives the upper triangle of matrices, with zeros below the diagonal `diagonal`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_triu(tensor: sv_tensor, diagonal: i64, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_triu", result, || Ok(super::tensor(tensor, "tensor")?.triu(diagonal as isize)?))
}

/// Gives a tensor with a value where a mask of bools is true.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_masked_fill(
    tensor: sv_tensor,
    mask: sv_tensor,
    value: *const sv_operand,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_masked_fill", result, || {
        let tensor = super::tensor(tensor, "tensor")?;
        let mask = super::tensor(mask, "mask")?;
        let value = Operand::pointer(value, "value")?;
        Ok(tensor.masked_fill(&mask, value.operand())?)
    })
}
