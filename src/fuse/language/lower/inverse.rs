//! The inverses of sine, cosine and tangent.
//!
//! Arguments past the middle of the range are reduced by asin(x) = π/2 - 2 asin(sqrt((1 - x) / 2)) and
//! atan(x) = π/2 - atan(1/x), with π/2 as a sum of two numbers.

use std::f64::consts::{FRAC_PI_2, PI};

use super::coefficients::{ARC_SINE, ARC_TANGENT};
use super::term::{Like, Term, real};
use super::{Precision, half_precision};
use crate::fuse::ir::program::{Program, ValueParts};
use crate::types::DType;

/// π/2 minus its nearest f64.
const HALF_PI_REST: f64 = 6.123_233_995_736_766e-17;

/// Returns times · π/2 and its rounding error.
fn half_pi(like: Term<'_>, times: f64) -> [Term<'_>; 2] {
    let single = f64::from(FRAC_PI_2 as f32);
    [like.constant(times * FRAC_PI_2), like.by_precision(times * (FRAC_PI_2 - single), times * HALF_PI_REST)]
}

/// Returns times · π/2 - x.
fn from_half_pi(times: f64, x: Term<'_>) -> Term<'_> {
    let [head, rest] = half_pi(x, times);
    head - (x - rest)
}

/// Returns the arc sine of |x| up to 1/2, or beyond that half of its distance to π/2, and which of the two it
/// is.
fn arc_sine_parts(x: Term<'_>) -> (Term<'_>, Term<'_>) {
    let magnitude = x.absolute();
    let is_far = x.constant(0.5).less(magnitude);
    // (1 - |x|) / 2, exact.
    let far_square = magnitude.fma(-0.5, 0.5);
    let square = is_far.select(far_square, x * x);
    // Past 1 it would be negative, and roots of negative numbers take a device longer.
    let root = is_far.select(far_square.absolute().square_root(), magnitude);
    let root = magnitude.less_equal(1.0).select(root, f64::NAN);
    let angle = (root * square).fma(square.polynomial(&ARC_SINE), root);
    (angle, is_far)
}

pub(super) fn arc_sine_of(x: Term<'_>) -> Term<'_> {
    let (angle, is_far) = arc_sine_parts(x);
    is_far.select(from_half_pi(1.0, angle + angle), angle).with_sign(x)
}

pub(super) fn arc_cosine_of(x: Term<'_>) -> Term<'_> {
    let (angle, is_far) = arc_sine_parts(x);
    let double = angle + angle;
    let far = x.is_negative().select(from_half_pi(2.0, double), double);
    is_far.select(far, from_half_pi(1.0, angle.by_sign(x)))
}

/// Returns the arc tangent of a number from 0 to 1.
fn arc_tangent_below_1(x: Term<'_>) -> Term<'_> {
    let square = x * x;
    (x * square).fma(square.polynomial(&ARC_TANGENT), x)
}

pub(super) fn arc_tangent_of(x: Term<'_>) -> Term<'_> {
    let magnitude = x.absolute();
    let is_far = x.constant(1.0).less(magnitude);
    let ratio = is_far.select(x.constant(1.0) / magnitude, magnitude);
    let angle = arc_tangent_below_1(ratio);
    x.unless_nan(is_far.select(from_half_pi(1.0, angle), angle).with_sign(x))
}

/// Returns the angle from 0 to π of a point, given the signed ratio of its smaller to its larger coordinate,
/// whether the larger one is the height, and the sign of x. It adds a quarter or half turn accordingly.
pub(super) fn angle_of_ratio<'p>(ratio: Term<'p>, is_steep: Term<'p>, x: Term<'p>) -> Term<'p> {
    let turn = is_steep.select(x.constant(FRAC_PI_2), x.is_negative().select(x.constant(PI), 0.0));
    let sign = if x.is_double() { i64::MIN } else { i64::from(i32::MIN) }.like(x.bits_of());
    // Back from a quarter turn, unless the point is on the left.
    let less = (x.bits_of() ^ is_steep.select(sign, 0)).float_of();
    let angle = arc_tangent_below_1(ratio).with_sign(less);
    let single = f64::from(FRAC_PI_2 as f32);
    let beyond = x.by_precision((FRAC_PI_2 - single) / single, HALF_PI_REST / FRAC_PI_2);
    turn + turn.fma(beyond, angle)
}

/// Returns the angle of the point (x, y), from -π to π, with the sign of y.
pub(super) fn angle_of<'p>(y: Term<'p>, x: Term<'p>) -> Term<'p> {
    let (height, width) = (y.absolute(), x.absolute());
    // One comparison, because devices have no f64 minimum instruction.
    let is_steep = width.less(height);
    let (low, high) = (is_steep.select(width, height), is_steep.select(height, width));
    // 0 / 0 is 0 here, and two infinities lie on a diagonal.
    let ratio = low / high;
    let ratio = low.equal(high).select(x.constant(1.0), ratio);
    let ratio = high.equal(0.0).select(high, ratio);
    let angle = angle_of_ratio(ratio, is_steep, x);
    y.unordered(x).select(y + x, angle.with_sign(y))
}

pub(crate) fn asin(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::functions::asin(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| x.unless_nan(arc_sine_of(x)))
}

pub(crate) fn acos(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::functions::acos(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| arc_cosine_of(x))
}

pub(crate) fn atan(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::functions::atan(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| arc_tangent_of(x))
}

pub(crate) fn atan2(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[y, x]| angle_of(y, x))
}

/// Returns π for a real number below 0, and NaN for NaN.
pub(crate) fn angle(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if dtype.is_complex() {
        return real(
            program,
            dtype.part(),
            &[super::real_parts_of(operands[0][1]), super::real_parts_of(operands[0][0])],
            |[y, x]| angle_of(y, x),
        );
    }
    real(program, dtype, operands, |[x]| {
        let angle = x.less(0.0).select(x.constant(PI), 0.0);
        x.unless_nan(angle)
    })
}
