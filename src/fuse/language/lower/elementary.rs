//! Exponentials and hyperbolic functions as sequences of IEEE operations and fma: the same bits on every device.
//!
//! f16 and bf16 compute in f32, most functions with shorter series ([`half_precision`]). The functions have no
//! branches, so all lanes of a block and of a warp take the same path. The errors of the series are far below
//! half a unit in the last place; the rounding of the last few operations dominates.

use std::f64::consts::{LN_2, LOG2_E};

use super::coefficients::{EXPONENTIAL, EXPONENTIAL_REST};
use super::logarithmic::LN_2_LO;
use super::power::{double_word_constant, times_power_of_2};
use super::reciprocal::reciprocal;
use super::term::{Term, formula, real};
use super::{Precision, half_precision, logarithmic, real_parts_of, rounded};
use crate::fuse::ir::program::{Program, Value, ValueParts};
use crate::types::DType;

/// c[0] + x (c[1] + x (c[2] + …)).
pub(super) fn polynomial(program: &mut Program, x: Value, coefficients: &[f64]) -> Value {
    let mut sum = program.float(x, coefficients[coefficients.len() - 1]);
    for &coefficient in coefficients.iter().rev().skip(1) {
        let coefficient = program.float(x, coefficient);
        sum = program.multiply_add(sum, x, coefficient);
    }
    sum
}

/// Clamps x to bounds beyond which the result is that of the bound.
pub(super) fn clamp(program: &mut Program, x: Value, low: f64, high: f64) -> Value {
    let (low, high) = (program.float(x, low), program.float(x, high));
    let x = program.maximum(x, low);
    program.minimum(x, high)
}

/// Returns the result, or x if that is NaN.
pub(super) fn unless_nan(program: &mut Program, x: Value, result: Value) -> Value {
    let nan = program.is_nan(x);
    program.choose(nan, x, result)
}

/// Returns x as k ln 2 + r with |r| at most ln 2 / 2: the [rounding constant](Term::rounding_constant) plus k, k and r.
fn reduce_argument(x: Term<'_>) -> (Term<'_>, Term<'_>, Term<'_>) {
    let rounding_constant = x.rounding_constant();
    let shifted = x.fma(LOG2_E, rounding_constant);
    let k = shifted - rounding_constant;
    let minus = double_word_constant(x, -LN_2, -LN_2_LO);
    let r = k.fma(minus.hi, x);
    (shifted, k, k.fma(minus.lo, r))
}

/// Returns x · 2^k for the rounding constant plus k, with any k for which the result is not always 0 or infinite. Only the last step
/// rounds if the result is subnormal: it multiplies by 2^64 or 2^-64 (of f64 by the power of 512), whichever has the sign of
/// k, and the exponent field takes the rest.
fn scaled<'p>(x: Term<'p>, shifted: Term<'p>, k: Term<'p>) -> Term<'p> {
    let (mantissa_bits, below_sign, upper) =
        if x.is_double() { (52, 1i64 << 62, 2f64.powi(512)) } else { (23, 1 << 30, 2f64.powi(64)) };
    // The two powers differ in the bit below the sign.
    let sign = (k.bits_of() >> 1) & below_sign;
    let last = sign ^ x.constant(upper).bits_of();
    let unity = x.constant(1.0).bits_of();
    let first = (shifted.bits_of() << mantissa_bits) + (x.bits_of() - last + unity);
    first.float_of() * last.float_of()
}

/// Returns factor · e^x, accurate even if e^x alone is subnormal; the factor is from 2^-7 to 2^7 in magnitude.
pub(super) fn exponential_times<'p>(x: Term<'p>, factor: Option<Term<'p>>) -> Term<'p> {
    let x = x.maximum(x.by_precision(-110.0, -760.0)).minimum(x.by_precision(100.0, 720.0));
    let (shifted, k, r) = reduce_argument(x);
    let power = r.fma(r.polynomial(&EXPONENTIAL), 1.0);
    scaled(factor.map_or(power, |factor| power * factor), shifted, k)
}

/// Returns e^x for an x that is not above 0, and NaN for NaN: the bits of [`exponential_times`] in a third fewer instructions.
pub(super) fn power_up_to_one(x: Term<'_>) -> Term<'_> {
    let limit = x.by_precision(-110.0, -760.0);
    // A NaN is not below the limit, and stays.
    let (shifted, _, r) = reduce_argument(x.less(limit).select(limit, x));
    let power = r.fma(r.polynomial(&EXPONENTIAL), 1.0);
    // As in `scaled`, only the last product rounds. The one before is normal for every k that is left.
    let upper = if x.is_double() { 2f64.powi(512) } else { 2f64.powi(64) };
    power * times_power_of_2(x.constant(upper), shifted) * (1.0 / upper)
}

/// Returns part · (e^x - 1), for a power of 2 and x at which part · e^x is normal.
fn part_less_1<'p>(x: Term<'p>, part: f64) -> Term<'p> {
    let (scale, small) = split_power(x, part);
    small.fma(scale, scale - part)
}

/// Returns part · 2^k and e^r - 1, for x = k ln 2 + r with |r| at most ln 2 / 2.
fn split_power<'p>(x: Term<'p>, part: f64) -> (Term<'p>, Term<'p>) {
    let (shifted, _, r) = reduce_argument(x);
    let small = (r * r).fma(r.polynomial(&EXPONENTIAL_REST), r);
    (times_power_of_2(x.constant(part), shifted), small)
}

/// Returns e^x - 1.
pub(super) fn less_1(program: &mut Program, x: Value) -> Value {
    let [result] = formula(program, [x], |[x]| {
        let held = x.maximum(x.by_precision(-30.0, -50.0)).minimum(x.by_precision(89.0, 710.0));
        // A quarter of it first, because 2^k itself can exceed the range.
        let result = part_less_1(held, 0.25) * 4.0;
        // Near 0 the result is x, whose last bits the quarter would lose.
        let tiny = x.absolute().less(x.by_precision(2f64.powi(-26), 2f64.powi(-55)));
        [x.unless_nan(tiny.select(x, result))]
    });
    result
}

pub(super) fn narrowed(program: &mut Program, dtype: DType, result: Value) -> ValueParts {
    real_parts_of(rounded(program, dtype, result))
}

pub(crate) fn exp(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::exponential(program, dtype, operands[0][0], LOG2_E);
    }
    real(program, dtype, operands, |[x]| x.unless_nan(exponential_times(x, None)))
}

/// As [`exp`], of an f32 or f64 that is not above 0.
pub(crate) fn exponential_up_to_one(
    program: &mut Program,
    dtype: DType,
    operands: &[ValueParts],
) -> ValueParts {
    real(program, dtype, operands, |[x]| power_up_to_one(x))
}

pub(crate) fn exp2(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::exponential(program, dtype, operands[0][0], 1.0);
    }
    real(program, dtype, operands, |[x]| {
        let held = x.maximum(x.by_precision(-160.0, -1100.0)).minimum(x.by_precision(150.0, 1100.0));
        let rounding_constant = x.rounding_constant();
        let shifted = held + rounding_constant;
        let k = shifted - rounding_constant;
        let fraction = held - k;
        let factor = double_word_constant(x, LN_2, LN_2_LO);
        let r = fraction.fma(factor.hi, fraction * factor.lo);
        let power = r.fma(r.polynomial(&EXPONENTIAL), 1.0);
        x.unless_nan(scaled(power, shifted, k))
    })
}

pub(crate) fn expm1(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::expm1(program, dtype, operands[0][0]);
    }
    let result = less_1(program, operands[0][0]);
    narrowed(program, dtype, result)
}

pub(crate) fn tanh(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::functions::tanh(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| {
        let (size, limit) = (x.absolute(), x.by_precision(10.0, 22.0));
        // A NaN is not above the limit, and stays.
        let held = limit.less(size).select(limit, size);
        // 2 |x| = k ln 2 + 2r. The rest of ln 2 is below the error of f32, where k is at most 29.
        let rounding_constant = x.rounding_constant();
        let shifted = held.fma(2.0 * LOG2_E, rounding_constant);
        let (k, minus) = (shifted - rounding_constant, double_word_constant(x, -LN_2 / 2.0, -LN_2_LO / 2.0));
        let r = k.fma(minus.hi, held);
        let r = if x.is_double() { k.fma(minus.lo, r) } else { r };
        // e^2r - 1 = 2r + r² (…), by the series of e^r with each coefficient times a power of 2.
        let powers = EXPONENTIAL_REST.of(x).iter().zip(2..);
        let coefficients: Vec<f64> = powers.map(|(number, power)| number * 2f64.powi(power)).collect();
        let small = (r * r).fma(r.series(&coefficients), r + r);
        // tanh(x) = t / (t + 1) with t = (e^2x - 1) / 2.
        let half = times_power_of_2(x.constant(0.5), shifted);
        let t = small.fma(half, half - 0.5);
        (t * reciprocal(t + 1.0)).by_sign(x)
    })
}

pub(crate) fn sinh(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::functions::sinh(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| {
        let size = x.absolute();
        let held = size.minimum(x.by_precision(89.5, 710.5));
        // (t + t / (t + 1)) / 2 with t = e^|x| - 1, by a quarter of t, which does not overflow.
        let quarter = part_less_1(held, 0.25);
        let half = quarter.fma(x.constant(1.0) / quarter.fma(4.0, 1.0), quarter);
        let tiny = size.less(x.by_precision(2f64.powi(-13), 2f64.powi(-27)));
        x.unless_nan(tiny.select(x, (half + half).with_sign(x)))
    })
}

pub(crate) fn cosh(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::functions::cosh(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| {
        let (scale, small) = split_power(x.absolute().minimum(x.by_precision(89.5, 710.5)), 0.25);
        let quarter = small.fma(scale, scale);
        x.unless_nan((x.constant(1.0) / quarter).fma(0.125, quarter + quarter))
    })
}

pub(crate) fn asinh(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::logarithms::asinh(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| logarithmic::inverse_hyperbolic_sine(x))
}

pub(crate) fn acosh(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::logarithms::acosh(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| logarithmic::inverse_hyperbolic_cosine(x))
}

pub(crate) fn atanh(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::logarithms::atanh(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| logarithmic::inverse_hyperbolic_tangent(x))
}

/// Returns x' · sigmoid(x), with x' = x or 1.
fn sigmoid_times(program: &mut Program, dtype: DType, operands: &[ValueParts], by_x: bool) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        let (size, negative) = (x.absolute(), x.is_negative());
        let factor = if by_x { x } else { x.constant(1.0) };
        let (scale, small) = split_power(-size, 1.0);
        let power = small.fma(scale, scale);
        let above = factor * (x.constant(1.0) / (power + 1.0));
        // Below 0 it is e^x / (1 + e^x), which is e^x far from 0.
        let usual = negative.select(above * power, above);
        let is_near = size.less(x.by_precision(86.0, 707.0));
        let [result] = (!is_near).rarely([usual], || {
            let bounded = x.maximum(x.by_precision(-110.0, -760.0));
            let factor = if by_x { bounded } else { x.constant(1.0) };
            let below = exponential_times(bounded, Some(factor));
            let above = if by_x { x } else { factor };
            [x.unless_nan(negative.select(below, above))]
        });
        result
    })
}

pub(crate) fn sigmoid(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::functions::sigmoid(program, dtype, operands, false);
    }
    sigmoid_times(program, dtype, operands, false)
}

pub(crate) fn silu(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::functions::sigmoid(program, dtype, operands, true);
    }
    sigmoid_times(program, dtype, operands, true)
}

pub(crate) fn softplus(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::functions::softplus(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| logarithmic::softplus(x))
}
