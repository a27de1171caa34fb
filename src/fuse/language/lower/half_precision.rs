//! Functions of f16 and bf16, computed in f32 with an error that the rounding to 11 or 8 bits absorbs (at
//! most 0.65 units in the last place).
//!
//! A narrow element has half the bytes of an f32 and therefore half the time: at full memory bandwidth an
//! H200 issues about 28 instructions for one. The series are shorter than in
//! [`elementary`](super::elementary), those of bf16 the shortest. The functions contain no division and no
//! conversion of a float to an integer: the last bits of x + 1.5 · 2^23 hold the nearest integer to x. The
//! polynomials have the least relative error over their interval (Remez' exchange). Most operations are IEEE
//! operations, so devices agree. They also agree for a device's approximations as long as no result is close
//! to the middle of two numbers: `tests/parity/narrow.rs` checks every argument with approximations that are
//! off by the maximum. Constants are adjusted slightly to keep such results away.

use std::f64::consts::LOG2_E;

use super::elementary::{clamp, polynomial, unless_nan};
use super::term::real;
use super::{real_parts_of, rounded};
use crate::fuse::ir::program::{Program, Value, ValueParts};
use crate::types::DType;

pub(super) mod functions;
pub(super) mod logarithms;

/// 2^f for |f| up to 1/2, within 2^-18.
const POWER: [f64; 5] = [
    0.999_999_261_446_931,
    0.693_121_814_742_986,
    0.240_247_448_249_916,
    0.055_917_860_306_326,
    0.009_570_102_014_634,
];
/// (2^f - 1) / f for |f| up to 1/2, within 2^-16.
const POWER_LESS_1: [f64; 4] =
    [0.693_136_857_780_489, 0.240_232_521_605_422, 0.055_837_288_270_135, 0.009_618_110_838_394];

/// Returns x · log2_of_base = k + f as 2^(k + shift) and f, with an integer k and |f| at most 1/2.
fn split_power(program: &mut Program, x: Value, log2_of_base: f64, shift: i32) -> (Value, Value) {
    // 1.5 · 2^23, and the bias of the exponent that k becomes when shifted to its position.
    let rounding_constant = program.float32(12_582_912.0 + (127 + shift) as f32);
    let (log2_of_base, mantissa_bits) = (program.float32(log2_of_base as f32), program.bits32(23));
    let sum = program.multiply_add(x, log2_of_base, rounding_constant);
    let bits = program.bits_of(sum);
    let bits = program.shift_left(bits, mantissa_bits);
    let scale = program.float_of(bits);
    let minus = program.subtract(rounding_constant, sum);
    (scale, program.multiply_add(x, log2_of_base, minus))
}

/// Returns 2^(x · log2_of_base) for a product of at most 250, as the square of the power of half the exponent, which
/// stays in range if the power itself is infinite or subnormal.
fn power(program: &mut Program, x: Value, log2_of_base: f64) -> Value {
    let (scale, fraction) = split_power(program, x, log2_of_base / 2.0, 0);
    let root = polynomial(program, fraction, &POWER);
    let root = program.multiply(root, scale);
    program.multiply(root, root)
}

fn finished(program: &mut Program, dtype: DType, x: Value, result: Value) -> ValueParts {
    let result = unless_nan(program, x, result);
    real_parts_of(rounded(program, dtype, result))
}

/// Returns e^x for a `log2_of_base` of log2(e), 2^x for 1.
pub(super) fn exponential(program: &mut Program, dtype: DType, x: Value, log2_of_base: f64) -> ValueParts {
    let most = 155.0 / log2_of_base;
    let bounded = clamp(program, x, -most, most);
    let result = power(program, bounded, log2_of_base);
    finished(program, dtype, x, result)
}

/// Returns the result, or x if x is so small that the result equals it, which also keeps the sign of 0.
fn unless_tiny(program: &mut Program, x: Value, result: Value) -> Value {
    let (magnitude, least) = (program.absolute(x), program.float32(2f32.powi(-14)));
    let tiny = program.less(magnitude, least);
    program.choose(tiny, x, result)
}

/// Returns e^x - 1.
pub(super) fn expm1(program: &mut Program, dtype: DType, x: Value) -> ValueParts {
    let bounded = clamp(program, x, -30.0, 89.0);
    // Half of it first, because 2^k itself can exceed the range.
    let (half, two) = (program.float32(0.5), program.float32(2.0));
    let (scale, fraction) = split_power(program, bounded, LOG2_E, -1);
    let series = polynomial(program, fraction, &POWER_LESS_1);
    let small = program.multiply(series, fraction);
    let rest = program.subtract(scale, half);
    let result = program.multiply_add(scale, small, rest);
    let result = program.multiply(result, two);
    let result = unless_tiny(program, x, result);
    finished(program, dtype, x, result)
}

/// Returns ln |Γ(x)|.
pub(super) fn lgamma(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| functions::lgamma(dtype, x))
}
