//! Logarithms and functions derived from them.
//!
//! A positive number is 2^e (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), and ln(1 + f) is a polynomial of f
//! without a division. The exponent stays negated and at the bit position of a number's exponent, so adding
//! it to the bits of other numbers scales those too. Its product is -0 if it is 0, which keeps the sign of a
//! zero f. Negative arguments are as common as others in real data, so the main path gives their NaN; 0,
//! subnormal numbers and infinities are rare bodies.

use std::f64::consts::{LN_2, LN_10, LOG2_E, LOG10_2, SQRT_2};

use super::coefficients::{LOGARITHM, LOGARITHM_BELOW_2};
use super::elementary::power_up_to_one;
use super::reciprocal::reciprocal;
use super::term::{Like, Term, real};
use super::{Precision, half_precision};
use crate::fuse::ir::instruction::Instruction;
use crate::fuse::ir::program::{Program, ValueParts};
use crate::types::DType;

/// ln 2 minus its nearest f64.
pub(super) const LN_2_LO: f64 = 2.319_046_813_846_299_6e-17;

/// Returns -e of a positive normal number as an integer at the position of its exponent.
pub(super) fn minus_exponent(x: Term<'_>) -> Term<'_> {
    let middle = if x.is_double() { SQRT_2.to_bits() as i64 } else { (SQRT_2 as f32).to_bits().into() };
    let mask = if x.is_double() { 0x7ff << 52 | i64::MIN } else { i64::from(0xff80_0000_u32) };
    let bits = x.bits_of();
    (middle.like(bits) - bits) & mask
}

/// Returns the same as a float, in units of 2^-23 (f32) or 2^-20.
pub(super) fn counted<'p>(minus_exponent: Term<'p>, like: Term<'p>) -> Term<'p> {
    if like.is_double() {
        // As the last bits of a number whose last bit has the value 1.
        let (bits, rounding_constant) = (0x4330_0000_8000_0000, 4_503_601_774_854_144.0);
        return ((minus_exponent >> 32) ^ bits).float_of() - rounding_constant;
    }
    minus_exponent.apply(Instruction::SignedToFloat32, &[])
}

/// Returns the unit of [`counted`].
fn unit(like: Term<'_>) -> f64 {
    if like.is_double() { 2f64.powi(-20) } else { 2f64.powi(-23) }
}

/// Returns f - ln(1 + f).
fn rest(f: Term<'_>) -> Term<'_> {
    let square = f * f;
    (f * square).fma(-f.polynomial(&LOGARITHM), square * 0.5)
}

/// Returns ln(2^e (1 + f)) from the counted -e and f.
fn joined<'p>(count: Term<'p>, f: Term<'p>) -> Term<'p> {
    let rest = rest(f);
    // The nearest f32 to ln 2 suffices, because the product itself is not rounded.
    let rest = if f.is_double() { count.fma(LN_2_LO * unit(f), rest) } else { rest };
    count.fma(-LN_2 * unit(f), f - rest)
}

/// Returns the counted -e and f. The number was multiplied by 2^up before, which is subtracted from the
/// exponent.
pub(super) fn parts<'p>(x: Term<'p>, up: Option<Term<'p>>) -> [Term<'p>; 2] {
    let minus = minus_exponent(x);
    let count = counted(minus, x);
    [up.map_or(count, |up| count + up), (x.bits_of() + minus).float_of() - 1.0]
}

/// Returns whether |x| is a normal number.
fn is_normal(x: Term<'_>) -> Term<'_> {
    let size = x.absolute();
    x.by_precision(f64::from(f32::MIN_POSITIVE), f64::MIN_POSITIVE).less_equal(size)
        & size.less(f64::INFINITY)
}

/// Returns a logarithm of any number, from a function of the counted -e and f.
fn of_any<'p>(x: Term<'p>, function: impl Fn([Term<'p>; 2]) -> Term<'p>) -> Term<'p> {
    let usual = x.is_negative().select(x.constant(f64::NAN), function(parts(x, None)));
    let [result] = (!is_normal(x)).rarely([usual], || {
        let shift = if x.is_double() { 54 } else { 24 };
        let up = x.constant(f64::from(shift) / unit(x));
        let finite = function(parts(x * 2f64.powi(shift), Some(up)));
        let result = x.equal(f64::INFINITY).select(x, finite);
        let result = x.equal(0.0).select(x.constant(f64::NEG_INFINITY), result);
        [x.constant(0.0).less_equal(x).select(result, f64::NAN)]
    });
    result
}

/// Returns ln(x) with its limits.
pub(super) fn logarithm(x: Term<'_>) -> Term<'_> {
    of_any(x, |[count, f]| joined(count, f))
}

/// Returns the logarithm to another base: the exponent times that of 2, which is exact for base 2, and the
/// rest.
pub(super) fn to_base(x: Term<'_>, of_e: (f64, f64), of_2: f64) -> Term<'_> {
    of_any(x, |[count, f]| {
        let near = f - rest(f);
        let single = f64::from(of_e.0 as f32);
        let small = near.fma(of_e.0, near * x.by_precision(of_e.0 - single, of_e.1));
        count.fma(-of_2 * unit(x), small)
    })
}

/// Returns ln(x + lost) of a positive normal number, with `lost` below its last place.
pub(super) fn of_sum_of<'p>(x: Term<'p>, lost: Term<'p>) -> Term<'p> {
    let minus = minus_exponent(x);
    let scale = (x.constant(1.0).bits_of() + minus).float_of();
    let f = (x.bits_of() + minus).float_of() - 1.0;
    joined(counted(minus, x), lost.fma(scale, f))
}

/// Returns ln(1 + x) for finite x above -1.
fn above_minus_1(x: Term<'_>) -> Term<'_> {
    let minus = minus_exponent(x + 1.0);
    // f = x 2^-e - (1 - 2^-e), where only the difference rounds, and -0 stays. 2^-e itself may be subnormal.
    let scaled = (x.bits_of() + minus).float_of();
    let four = (x.constant(4.0).bits_of() + minus).float_of();
    joined(counted(minus, x), scaled - four.fma(-0.25, 1.0))
}

/// Returns ln(1 + x) with its limits.
pub(super) fn of_1_plus(x: Term<'_>) -> Term<'_> {
    let usual = x.less(-1.0).select(x.constant(f64::NAN), above_minus_1(x));
    let ordinary = x.absolute().less(f64::INFINITY) & !x.equal(-1.0);
    let [result] = (!ordinary).rarely([usual], || {
        let limit = x.equal(-1.0).select(x.constant(f64::NEG_INFINITY), f64::NAN);
        [x.equal(f64::INFINITY).select(x, limit)]
    });
    result
}

/// Returns ln(2x) for x from 2^60, where the inverse hyperbolic functions equal it; NaN for NaN.
fn far(x: Term<'_>) -> Term<'_> {
    let [count, f] = parts(x, None);
    let finite = joined(count - 1.0 / unit(x), f);
    x.absolute().less(f64::INFINITY).select(finite, x)
}

/// The start of that range; the squares of all smaller numbers are in the range of f32.
const FAR: f64 = (1u64 << 60) as f64;

/// Returns ln(1 + |x| + x² / (1 + sqrt(1 + x²))) with the sign of x.
pub(super) fn inverse_hyperbolic_sine(x: Term<'_>) -> Term<'_> {
    let size = x.absolute();
    let square = size * size;
    let inverse = reciprocal((square + 1.0).square_root() + 1.0);
    let usual = above_minus_1(square.fma(inverse, size));
    let [result] = (!size.less(FAR)).rarely([usual], || [far(size)]);
    result.with_sign(x)
}

/// Returns ln(1 + t + sqrt(2 t + t²)) with t = x - 1; NaN below 1.
pub(super) fn inverse_hyperbolic_cosine(x: Term<'_>) -> Term<'_> {
    // Arguments below 1 use the root of a nonnegative number, which is faster.
    let good = x.constant(1.0).less_equal(x);
    let above = good.select(x, 2.0) - 1.0;
    let root = above.fma(above, above + above).square_root();
    let usual = good.select(above_minus_1(above + root), f64::NAN);
    let [result] = x.constant(FAR).less(x).rarely([usual], || [far(x)]);
    result
}

/// Returns ln(1 + 2 |x| / (1 - |x|)) / 2 with the sign of x; NaN beyond 1.
pub(super) fn inverse_hyperbolic_tangent(x: Term<'_>) -> Term<'_> {
    let size = x.absolute();
    let inside = size.less(1.0);
    let inverse = reciprocal(x.constant(1.0) - size);
    let usual = above_minus_1((size + size) * inverse) * 0.5;
    let outside = size.equal(1.0).select(x.constant(f64::INFINITY), f64::NAN);
    inside.select(usual, outside).with_sign(x)
}

/// Returns ln(1 + e^x) as the larger of x and 0 plus the logarithm of a number from 1 to 2.
pub(super) fn softplus(x: Term<'_>) -> Term<'_> {
    let power = power_up_to_one(-x.absolute());
    x.maximum(0.0) + power * power.polynomial(&LOGARITHM_BELOW_2)
}

/// Returns ln(x / (1 - x)) as the logarithm of 1 + |1 - 2x| / min(x, 1 - x), which loses nothing near 1/2.
pub(crate) fn logit(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::logarithms::logit(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| {
        let rest = x.constant(1.0) - x;
        let low = x.less(0.5);
        let smaller = low.select(x, rest);
        let above = smaller.fma(-2.0, 1.0);
        let inverse = if x.is_double() { x.constant(1.0) / smaller } else { reciprocal(smaller) };
        let size = above_minus_1(above * inverse);
        let usual = low.select(-size, size);
        let usual = x.constant(0.0).less(smaller).select(usual, f64::NAN);
        // The quotient would overflow; here the other factor is 1.
        let tiny = x.absolute().less(x.by_precision(2f64.powi(-100), 2f64.powi(-1000)));
        let [result] = tiny.rarely([usual], || [logarithm(x)]);
        x.equal(1.0).select(x.constant(f64::INFINITY), result)
    })
}

pub(crate) fn log(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::logarithms::logarithm(program, dtype, operands, LN_2);
    }
    real(program, dtype, operands, |[x]| logarithm(x))
}

pub(crate) fn log2(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::logarithms::logarithm(program, dtype, operands, 1.0);
    }
    // log2(e) minus its nearest f64.
    real(program, dtype, operands, |[x]| to_base(x, (LOG2_E, 2.035_527_374_093_103_3e-17), 1.0))
}

pub(crate) fn log10(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::logarithms::logarithm(program, dtype, operands, LOG10_2);
    }
    real(program, dtype, operands, |[x]| to_base(x, (1.0 / LN_10, 1.098_319_650_216_765e-17), LOG10_2))
}

pub(crate) fn log1p(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::logarithms::log1p(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| of_1_plus(x))
}

/// Returns ln(e^x + e^y).
pub(crate) fn log_add_exp(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x, y]| {
        let distance = x.equal(y).select(x.constant(0.0), (x - y).absolute());
        let power = power_up_to_one(-distance);
        x.maximum(y) + power * power.polynomial(&LOGARITHM_BELOW_2)
    })
}

/// Returns x ln(y), or 0 if x is 0 and y is a number.
pub(crate) fn xlogy(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x, y]| product(x, y, logarithm(y)))
}

/// Returns x ln(1 + y), or 0 if x is 0 and y is a number.
pub(crate) fn xlog1py(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x, y]| product(x, y, of_1_plus(y)))
}

fn product<'p>(x: Term<'p>, y: Term<'p>, logarithm: Term<'p>) -> Term<'p> {
    let none = x.equal(0.0) & y.equal(y);
    none.select(x.constant(0.0), x * logarithm)
}
