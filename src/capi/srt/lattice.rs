//! E8 and the golden cones.

use super::super::error::{Failure, Result};
use super::super::handle::sv_tensor;
use super::super::tensor::{Operand, device, give, sv_operand, tensor};
use super::give_all;
use crate::srt::{self, E8Layout, E8Roots, GoldenCone};

/// Pairs are the entries i and i + 4.
pub const SV_SRT_E8_OFFSET4: i32 = 0;
/// Pairs are the entries 2i and 2i + 1.
pub const SV_SRT_E8_ADJACENT: i32 = 1;

fn layout_of(code: i32) -> Result<E8Layout> {
    match code {
        SV_SRT_E8_OFFSET4 => Ok(E8Layout::Offset4),
        SV_SRT_E8_ADJACENT => Ok(E8Layout::Adjacent),
        other => Err(Failure::argument("layout", other, "one of SV_SRT_E8_...")),
    }
}

/// The cone of nonnegative perpendicular parts of adjacent pairs.
pub const SV_SRT_CONE_PAIR: i32 = 0;
/// The cone of four vectors that has 36 roots.
pub const SV_SRT_CONE_NULL: i32 = 1;

fn cone_of(code: i32) -> Result<GoldenCone> {
    match code {
        SV_SRT_CONE_PAIR => Ok(GoldenCone::Pair),
        SV_SRT_CONE_NULL => Ok(GoldenCone::Null),
        other => Err(Failure::argument("cone", other, "one of SV_SRT_CONE_...")),
    }
}

/// All 240 roots.
pub const SV_SRT_ROOTS_ALL: i32 = 0;
/// The 120 positive roots.
pub const SV_SRT_ROOTS_POSITIVE: i32 = 1;
/// The 40 roots in the pair cone.
pub const SV_SRT_ROOTS_PAIR_CONE: i32 = 2;
/// The 36 roots in the null cone.
pub const SV_SRT_ROOTS_NULL_CONE: i32 = 3;
/// The 72 roots of E6.
pub const SV_SRT_ROOTS_E6: i32 = 4;

fn roots_of(code: i32) -> Result<E8Roots> {
    match code {
        SV_SRT_ROOTS_ALL => Ok(E8Roots::All),
        SV_SRT_ROOTS_POSITIVE => Ok(E8Roots::Positive),
        SV_SRT_ROOTS_PAIR_CONE => Ok(E8Roots::Cone(GoldenCone::Pair)),
        SV_SRT_ROOTS_NULL_CONE => Ok(E8Roots::Cone(GoldenCone::Null)),
        SV_SRT_ROOTS_E6 => Ok(E8Roots::E6),
        other => Err(Failure::argument("set", other, "one of SV_SRT_ROOTS_...")),
    }
}

/// Computes roots of E8 as rows. `set` is one of `SV_SRT_ROOTS_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_e8_roots(set: i32, device: i32, result: *mut sv_tensor) -> i32 {
    give("sv_srt_e8_roots", result, || Ok(srt::e8_roots(roots_of(set)?, &self::device(device)?)?))
}

/// Computes `count` rows: row i is root i modulo 240 times 1 + i/240, rounded down.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_e8_weights(count: usize, device: i32, result: *mut sv_tensor) -> i32 {
    give("sv_srt_e8_weights", result, || Ok(srt::e8_weights(count, &self::device(device)?)?))
}

/// Projects rows of 8 to their parallel and perpendicular parts. `layout` is one of `SV_SRT_E8_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_project_e8(
    v: sv_tensor,
    layout: i32,
    parallel: *mut sv_tensor,
    perpendicular: *mut sv_tensor,
) -> i32 {
    give_all("sv_srt_project_e8", [(parallel, "parallel"), (perpendicular, "perpendicular")], || {
        Ok(srt::project_e8(&tensor(v, "v")?, layout_of(layout)?)?.into())
    })
}

/// Computes |parallel|^2 - |perpendicular|^2 of rows of 8. `layout` is one of `SV_SRT_E8_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_quadratic_form(v: sv_tensor, layout: i32, result: *mut sv_tensor) -> i32 {
    give("sv_srt_quadratic_form", result, || Ok(srt::quadratic_form(&tensor(v, "v")?, layout_of(layout)?)?))
}

/// Finds the point of scale E8 that is nearest to each row of 8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_e8_quantize(v: sv_tensor, scale: f64, result: *mut sv_tensor) -> i32 {
    give("sv_srt_e8_quantize", result, || Ok(srt::e8_quantize_scaled(&tensor(v, "v")?, scale)?))
}

/// Computes the sum of w exp(-pi Q(v)/t) over rows of 8. `weights` is a number or a tensor with one for each row, and
/// `layout` is one of `SV_SRT_E8_...`.
///
/// # Safety
///
/// `weights` points to an operand.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_theta_sum(
    v: sv_tensor,
    weights: *const sv_operand,
    t: f64,
    layout: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_theta_sum", result, || {
        let (v, weights) = (tensor(v, "v")?, Operand::pointer(weights, "weights")?);
        Ok(srt::theta_sum(&v, weights.operand(), t, layout_of(layout)?)?)
    })
}

/// Computes 1 for each row of 8 in the cone and 0 for the others. `cone` is one of `SV_SRT_CONE_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_cone_test(
    v: sv_tensor,
    cone: i32,
    tolerance: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_golden_cone_test", result, || {
        Ok(srt::golden_cone_test(&tensor(v, "v")?, cone_of(cone)?, tolerance)?)
    })
}

/// Finds the point of the closed cone that is nearest to each row of 8. `cone` is one of `SV_SRT_CONE_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_cone_project(v: sv_tensor, cone: i32, result: *mut sv_tensor) -> i32 {
    give("sv_srt_golden_cone_project", result, || {
        Ok(srt::golden_cone_project(&tensor(v, "v")?, cone_of(cone)?)?)
    })
}

/// Computes exp(-Q(v)/phi) of each row of 8 in the null cone, and 1e-9 of the others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_weight_8d(v: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_weight_8d", result, || Ok(srt::weight_8d(&tensor(v, "v")?)?))
}
