//! The precision ramp, and snapping at its bounds.

use super::super::arguments::{out, slice_mut};
use super::super::guard;
use super::super::handle::sv_tensor;
use super::super::tensor::{enter_all, tensor};
use crate::srt;

/// Writes up to `capacity` bounds of a ramp of at most `steps` steps from `first` on, and the number of all of them.
/// Each bound is the one before times phi, rounded up.
///
/// # Safety
///
/// `bounds` points to `capacity` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_precision_ramp(
    first: i64,
    steps: usize,
    bounds: *mut i64,
    capacity: usize,
    count: *mut u64,
) -> i32 {
    guard::call("sv_srt_precision_ramp", || {
        let count = out(count, "count")?;
        let ramp = srt::precision_ramp(first, steps)?;
        let bounds = slice_mut(bounds, capacity, "bounds")?;
        bounds.iter_mut().zip(&ramp).for_each(|(to, from)| *to = *from);
        count.write(ramp.len() as u64);
        Ok(())
    })
}

/// Snaps values at each bound of a ramp of at most `steps` steps from `first` on. Point i of the ramp is a pair of
/// `SV_DTYPE_I64` tensors, `a[i]` and `b[i]`, of the bound `bounds[i]`.
///
/// `count` gets the number of bounds; the arrays get the first `capacity` of them, and values are snapped at these alone. A
/// capacity of 0 asks for the number alone. The caller owns one reference to each tensor.
///
/// # Safety
///
/// `bounds`, `a` and `b` each point to `capacity` elements, and `count` points to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_snap_ramp(
    values: sv_tensor,
    first: i64,
    steps: usize,
    bounds: *mut i64,
    a: *mut sv_tensor,
    b: *mut sv_tensor,
    capacity: usize,
    count: *mut u64,
) -> i32 {
    guard::call("sv_srt_snap_ramp", || {
        let count = out(count, "count")?;
        let values = tensor(values, "values")?;
        let all = srt::precision_ramp(first, steps)?.len();
        let written = capacity.min(all);
        // SAFETY: the caller vouches for `capacity` elements, of which these are the first.
        let (bounds, a, b) = unsafe {
            (slice_mut(bounds, written, "bounds")?, slice_mut(a, written, "a")?, slice_mut(b, written, "b")?)
        };
        if let Some(last) = written.checked_sub(1) {
            // One bound comes before the first step.
            let ramp = srt::snap_ramp(&values, first, steps.min(last))?;
            let parts = ramp.iter().flat_map(|(_, points)| [points.a().clone(), points.b().clone()]);
            let handles = enter_all(parts)?;
            bounds.iter_mut().zip(&ramp).for_each(|(to, (bound, _))| *to = *bound);
            a.iter_mut().zip(handles.iter().step_by(2)).for_each(|(to, handle)| *to = *handle);
            b.iter_mut().zip(handles.iter().skip(1).step_by(2)).for_each(|(to, handle)| *to = *handle);
        }
        count.write(all as u64);
        Ok(())
    })
}
