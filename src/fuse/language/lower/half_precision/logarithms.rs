//! Logarithms of f16 and bf16, and functions derived from them.
//!
//! Logarithms of bf16 use a device's approximation: its error (2^-22) moves no result past the middle of two
//! numbers of 8 bits, so the rounded results are the same on every device. Results of f16 are eight times as
//! close, and for some arguments the error would. Logarithms of f16 are therefore polynomials, with the
//! approximation only for the limits.

use std::f64::consts::{LN_2, LOG10_2};

use super::super::logarithmic::{counted, minus_exponent, parts};
use super::super::reciprocal::{reciprocal, root};
use super::super::term::{Term, real};
use crate::fuse::ir::instruction::Instruction;
use crate::fuse::ir::program::{Program, ValueParts};
use crate::types::DType;

/// ln(1 + f) / f from sqrt(1/2) - 1 to sqrt(2) - 1, within 2^-14.2.
const LOGARITHM: [f64; 5] = [0.999_966_177, -0.499_450_654, 0.336_388_841, -0.270_945_985, 0.176_580_517];
/// ln(1 + x) / x for |x| up to 1/4, within 2^-13.2.
const NEAR_1: [f64; 4] = [0.999_896_697, -0.499_808_463, 0.346_378_112, -0.263_138_951];
/// asinh(x) / x and atanh(x) / x in x² to 1/16, within 2^-14.8 and 2^-13.2.
const AREA_SINE: [f64; 2] = [0.999_965_148, -0.162_140_812];
const AREA_TANGENT: [f64; 2] = [0.999_896_517, 0.346_384_108];

/// A factor close to 1 that changes no result by a hundredth of a unit in the last place and keeps results of
/// bf16 from the middle of two numbers.
pub(super) fn apart(steps: f64) -> f64 {
    1.0 + steps * 2f64.powi(-19)
}

/// Returns times · ln of a positive f32 number 2^e (1 + f), from the counted -e and f.
fn joined<'p>([count, f]: [Term<'p>; 2], times: f64) -> Term<'p> {
    let near = f.series(&LOGARITHM.map(|coefficient| coefficient * times)) * f;
    count.fma(-times * LN_2 * 2f64.powi(-23), near)
}

/// Returns times · ln of a positive number; for f16 it is a normal f32.
pub(super) fn positive<'p>(dtype: DType, x: Term<'p>, times: f64) -> Term<'p> {
    if dtype == DType::F16 { joined(parts(x, None), times) } else { to_2(x) * (times * LN_2) }
}

/// Returns the logarithm of a number, given the result for positive finite numbers.
pub(super) fn limited<'p>(x: Term<'p>, result: Term<'p>) -> Term<'p> {
    let limit = x.apply(Instruction::LimitOfLogarithm, &[]);
    limit.absolute().less(f64::INFINITY).select(result, limit)
}

/// Returns log2 of any number, for bf16.
fn to_2(x: Term<'_>) -> Term<'_> {
    x.apply(Instruction::LogarithmOfNarrow, &[])
}

/// Returns log2 of a number that is not subnormal, for bf16.
fn to_2_of_normal(x: Term<'_>) -> Term<'_> {
    x.apply(Instruction::LogarithmOfNormal, &[])
}

/// Returns the logarithm to the base whose logarithm of 2 this is.
pub(in super::super) fn logarithm(
    program: &mut Program,
    dtype: DType,
    operands: &[ValueParts],
    of_2: f64,
) -> ValueParts {
    let steps = match () {
        _ if of_2 == LN_2 => 4.0,
        _ if of_2 == LOG10_2 => -6.0,
        _ => 0.0,
    };
    real(program, dtype, operands, |[x]| match dtype {
        DType::F16 => limited(x, positive(dtype, x, of_2 / LN_2)),
        // At 1 it is exactly 0.
        _ => x.equal(1.0).select(x.constant(0.0), to_2(x) * (of_2 * apart(steps))),
    })
}

/// Returns ln(1 + x).
pub(in super::super) fn log1p(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        let sum = x + 1.0;
        if dtype == DType::F16 {
            let minus = minus_exponent(sum);
            // f = x 2^-e - (1 - 2^-e), where only the difference rounds, and -0 stays.
            let scaled = (x.bits_of() + minus).float_of();
            let four = (x.constant(4.0).bits_of() + minus).float_of();
            return limited(sum, joined([counted(minus, x), scaled - four.fma(-0.25, 1.0)], 1.0));
        }
        x.absolute().less(0.25).select(x.series(&NEAR_1) * x, to_2_of_normal(sum) * LN_2)
    })
}

pub(in super::super) fn asinh(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        let size = x.absolute();
        if dtype == DType::F16 {
            let result = positive(dtype, size + root(size.fma(size, 1.0)), 1.0);
            // The result is x below this size, and for infinities and NaN.
            let between = x.constant(2f64.powi(-8)).less(size) & size.less(f64::INFINITY);
            return between.select(result, size).with_sign(x);
        }
        // From 2^60 sqrt(x² + 1) is x; the sum may exceed f32, but its half does not.
        let held = size.minimum(2f64.powi(60));
        let half = size.fma(0.5, root(held.fma(held, 1.0)).maximum(size) * 0.5);
        let far = to_2_of_normal(half).fma(LN_2, x.constant(LN_2));
        let near = (size * size).series(&AREA_SINE) * size;
        size.less(0.25).select(near, far).with_sign(x)
    })
}

pub(in super::super) fn acosh(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        if dtype == DType::F16 {
            // An offset that a positive square absorbs and the root of 0 needs.
            let square = x.fma(x, -1.0) + 2f64.powi(-60);
            let result = positive(dtype, x + root(square), 1.0);
            // Positive from 1.
            return limited(x - (1.0 - 2f64.powi(-20)), result);
        }
        // x (1 + sqrt(1 - 1 / x²)), half of which does not exceed f32.
        let inverse = reciprocal(x.minimum(2f64.powi(100)));
        let half = x * 0.5;
        let half = root((-inverse).fma(inverse, 1.0)).fma(half, half);
        let result = to_2_of_normal(half).fma(LN_2, x.constant(LN_2));
        x.equal(1.0).select(x.constant(0.0), result)
    })
}

pub(in super::super) fn atanh(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        if dtype == DType::F16 {
            let size = x.absolute();
            let rest = x.constant(1.0) - size;
            let result = limited(rest, positive(dtype, (size + 1.0) * reciprocal(rest), 0.5));
            return size.less(2f64.powi(-8)).select(size, result).with_sign(x);
        }
        let far = (to_2_of_normal(x + 1.0) - to_2_of_normal(x.constant(1.0) - x)) * (LN_2 / 2.0);
        x.absolute().less(0.25).select((x * x).series(&AREA_TANGENT) * x, far)
    })
}

/// Returns ln(x / (1 - x)).
pub(in super::super) fn logit(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        let rest = x.constant(1.0) - x;
        if dtype == DType::F16 {
            let result = positive(dtype, x * reciprocal(rest), 1.0);
            let [limit, other] = [x, rest].map(|x| x.apply(Instruction::LimitOfLogarithm, &[]));
            let limit = limit - other;
            return limit.absolute().less(f64::INFINITY).select(result, limit);
        }
        (to_2(x) - to_2_of_normal(rest)) * (LN_2 * apart(1.0))
    })
}
