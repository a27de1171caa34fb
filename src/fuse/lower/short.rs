//! Exponentials and logarithms of f16 and bf16: in f32, with an error below 2^-15 of the result, which the rounding to
//! 11 bits or fewer swallows (under 0.6 units in the last place).
//!
//! A narrow element has half the bytes of an f32 and so half the time: at the speed of memory an H200 issues some 28
//! instructions for one. So the series are shorter than in [`elementary`](super::elementary), nothing is divided, and no
//! float is converted to an integer: x + 1.5 · 2^23 has the nearest integer to x in its last bits. Polynomials are those of
//! least relative error over their interval (Remez' exchange); every operation is one of IEEE still, so devices agree.

use std::f64::consts::LOG2_E;

use super::super::operation::Parts;
use super::super::program::{Program, Value};
use super::elementary::{held, polynomial, unless_nan};
use super::term::formula;
use super::{one, rounded};
use crate::types::DType;

pub(super) mod functions;

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
/// ln(1 + f) / f from sqrt(1/2) - 1 to sqrt(2) - 1, within 2^-17.
const LOGARITHM: [f64; 6] = [
    1.000_004_558_825_87,
    -0.499_902_175_727_694,
    0.332_580_234_422_965,
    -0.254_032_689_761_918,
    0.220_559_374_969_582,
    -0.142_920_765_634_858,
];
/// ln(1 + f) / f from 0 to 1, within 2^-16.
const LOGARITHM_OF_1_PLUS: [f64; 6] = [
    0.999_991_598_173_625,
    -0.499_361_364_342_311,
    0.325_206_677_291_949,
    -0.210_048_682_287_664,
    0.101_222_276_662_873,
    -0.023_869_148_640_790,
];

/// x · rate = k + f, as 2^(k + shift) and f, with k an integer and |f| at most 1/2.
fn split_power(program: &mut Program, x: Value, rate: f64, shift: i32) -> (Value, Value) {
    // 1.5 · 2^23, and the bias of the exponent that k becomes by moving to its place.
    let magic = program.float32(12_582_912.0 + (127 + shift) as f32);
    let (rate, places) = (program.float32(rate as f32), program.bits32(23));
    let sum = program.multiply_add(x, rate, magic);
    let bits = program.bits_of(sum);
    let bits = program.shift_left(bits, places);
    let scale = program.float_of(bits);
    let minus = program.subtract(magic, sum);
    (scale, program.multiply_add(x, rate, minus))
}

/// 2^(x · rate) for a product of at most 250: the square of half the exponent's power, which stays in range where it
/// itself is infinite or subnormal.
fn power(program: &mut Program, x: Value, rate: f64) -> Value {
    let (scale, fraction) = split_power(program, x, rate / 2.0, 0);
    let root = polynomial(program, fraction, &POWER);
    let root = program.multiply(root, scale);
    program.multiply(root, root)
}

/// e^-|x|.
fn falling(program: &mut Program, x: Value) -> Value {
    let (magnitude, most) = (program.absolute(x), program.float32(110.0));
    let magnitude = program.minimum(magnitude, most);
    power(program, magnitude, -LOG2_E)
}

fn finished(program: &mut Program, dtype: DType, x: Value, result: Value) -> Parts {
    let result = unless_nan(program, x, result);
    one(rounded(program, dtype, result))
}

/// e^x for a rate of log2(e), 2^x for one of 1.
pub(super) fn exponential(program: &mut Program, dtype: DType, x: Value, rate: f64) -> Parts {
    let most = 155.0 / rate;
    let bounded = held(program, x, (-most, most), (0.0, 0.0));
    let result = power(program, bounded, rate);
    finished(program, dtype, x, result)
}

/// The result, or x where that is so small that the result is no other; for the sign of 0 too.
fn unless_tiny(program: &mut Program, x: Value, result: Value) -> Value {
    let (magnitude, least) = (program.absolute(x), program.float32(2f32.powi(-14)));
    let tiny = program.less(magnitude, least);
    program.choose(tiny, x, result)
}

/// e^x - 1.
pub(super) fn exponential_less_1(program: &mut Program, dtype: DType, x: Value) -> Parts {
    let bounded = held(program, x, (-30.0, 89.0), (0.0, 0.0));
    // Half of it first: 2^k itself can be beyond the range.
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

/// ln(1 + e^x).
pub(super) fn softplus(program: &mut Program, dtype: DType, x: Value) -> Parts {
    let (zero, power) = (program.float32(0.0), falling(program, x));
    let series = polynomial(program, power, &LOGARITHM_OF_1_PLUS);
    let large = program.maximum(x, zero);
    let result = program.multiply_add(series, power, large);
    finished(program, dtype, x, result)
}

/// The logarithm of positive x to the base with this logarithm of 2; x may be a rounded sum of 1 and `beyond`, and is of
/// `dtype` otherwise.
fn of_positive(program: &mut Program, dtype: DType, x: Value, beyond: Option<Value>, of_2: f64) -> Value {
    let middle = program.bits32(std::f32::consts::FRAC_1_SQRT_2.to_bits());
    let (exponents, magic) = (program.bits32(0xff80_0000), program.bits32(0x4b40_0000));
    let (places, unity) = (program.bits32(23), program.float32(1.0));
    let (mut number, mut bias) = (x, program.float32(12_582_912.0));
    // What is subnormal of f16 is not of f32.
    if beyond.is_none() && dtype == DType::BF16 {
        let (least, factor) = (program.float32(f32::MIN_POSITIVE), program.float32(2f32.powi(23)));
        let larger = program.multiply(x, factor);
        let (subnormal, other) = (program.less(x, least), program.float32(12_582_912.0 + 23.0));
        number = program.choose(subnormal, larger, number);
        bias = program.choose(subnormal, other, bias);
    }
    // x = 2^e (1 + f) with 1 + f from sqrt(1/2) to sqrt(2).
    let bits = program.bits_of(number);
    let above = program.subtract(bits, middle);
    let moved = program.and(above, exponents);
    let number = program.subtract(bits, moved);
    let number = program.float_of(number);
    let exponent = program.shift_right_signed(above, places);
    let exponent = program.add(exponent, magic);
    let exponent = program.float_of(exponent);
    let exponent = program.subtract(exponent, bias);
    let mut fraction = program.subtract(number, unity);
    if let Some(beyond) = beyond {
        let none = program.bits32(0);
        let near = program.equal(moved, none);
        fraction = program.choose(near, beyond, fraction);
    }
    let coefficients = LOGARITHM.map(|coefficient| coefficient * of_2 / std::f64::consts::LN_2);
    let series = polynomial(program, fraction, &coefficients);
    let near = program.multiply(series, fraction);
    let of_2 = program.float32(of_2 as f32);
    program.multiply_add(exponent, of_2, near)
}

fn with_limits(program: &mut Program, x: Value, result: Value) -> Value {
    let [result] = formula(program, [x, result], |[x, result]| [functions::with_limits(x, result)]);
    result
}

/// The logarithm to the base with this logarithm of 2.
pub(super) fn logarithm(program: &mut Program, dtype: DType, x: Value, of_2: f64) -> Parts {
    let result = of_positive(program, dtype, x, None, of_2);
    let result = with_limits(program, x, result);
    one(rounded(program, dtype, result))
}

/// ln |Γ(x)|.
pub(super) fn logarithm_of_gamma(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    let size = program.absolute(operands[0][0]);
    let of_size = of_positive(program, dtype, size, None, std::f64::consts::LN_2);
    let [result] = formula(program, [operands[0][0], of_size], |[x, of_size]| {
        [functions::logarithm_of_gamma(x, of_size)]
    });
    one(rounded(program, dtype, result))
}

/// ln(1 + x).
pub(super) fn logarithm_of_1_plus(program: &mut Program, dtype: DType, x: Value) -> Parts {
    let unity = program.float32(1.0);
    let sum = program.add(x, unity);
    let result = of_positive(program, dtype, sum, Some(x), std::f64::consts::LN_2);
    let result = with_limits(program, sum, result);
    let result = unless_tiny(program, x, result);
    one(rounded(program, dtype, result))
}
