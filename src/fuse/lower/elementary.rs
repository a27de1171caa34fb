//! Exponentials and logarithms, written once as IEEE operations and fma: the same bits on every device.
//!
//! f16 and bf16 are computed in f32, most functions by shorter series ([`short`]). Every function is without branches, as the lanes of a block and of a warp go the
//! same way. The series are Taylor's, as long as the reduced argument needs for an error far below half a unit in
//! the last place; what remains is the rounding of the last few operations.

use std::f64::consts::{LN_2, LN_10, LOG2_E, LOG10_2};

use super::super::instruction::{Instruction, Kind};
use super::super::operation::Parts;
use super::super::program::{Program, Value};
use super::coefficients::LOGARITHM;
use super::{Precision, one, rounded, short};
use crate::types::DType;

/// What ln 2 has beyond its nearest f64.
const LN_2_REST: f64 = 2.319_046_813_846_299_6e-17;
/// ln 2 with 21 zeros at the end, so that its product with an exponent is exact, and the rest.
const LN_2_HEAD: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN_2_TAIL: f64 = 1.908_214_929_270_587_7e-10;

fn is_double(program: &Program, x: Value) -> bool {
    program.kind(x) == Kind::Float64
}

/// One constant for f32, another for f64.
fn either(program: &mut Program, x: Value, single: f64, double: f64) -> Value {
    let number = if is_double(program, x) { double } else { single };
    program.float(x, number)
}

/// c[0] + x (c[1] + x (c[2] + …)).
pub(super) fn polynomial(program: &mut Program, x: Value, coefficients: &[f64]) -> Value {
    let mut sum = program.float(x, coefficients[coefficients.len() - 1]);
    for &coefficient in coefficients.iter().rev().skip(1) {
        let coefficient = program.float(x, coefficient);
        sum = program.multiply_add(sum, x, coefficient);
    }
    sum
}

/// 1/n! from n = `first` on, as many as the reduced argument (at most ln 2 / 2) needs.
fn inverse_factorials(program: &Program, x: Value, first: u32) -> Vec<f64> {
    let last = if is_double(program, x) { 13 } else { 7 };
    (first..=last).map(|n| 1.0 / (1..=n).map(f64::from).product::<f64>()).collect()
}

/// x within bounds, where what is beyond them has the result of the bound.
pub(super) fn held(program: &mut Program, x: Value, single: (f64, f64), double: (f64, f64)) -> Value {
    let low = either(program, x, single.0, double.0);
    let high = either(program, x, single.1, double.1);
    let x = program.maximum(x, low);
    program.minimum(x, high)
}

/// x = k ln 2 + r with k an integer (as a float) and |r| at most ln 2 / 2.
fn reduced(program: &mut Program, x: Value) -> (Value, Value) {
    let inverse = program.float(x, LOG2_E);
    let quotient = program.multiply(x, inverse);
    let k = program.round(quotient);
    let minus = program.negate(k);
    let (head, rest) = logarithm_of_2(program, x);
    let r = program.multiply_add(minus, head, x);
    (k, program.multiply_add(minus, rest, r))
}

/// ln 2 rounded, and what is lost by it.
fn logarithm_of_2(program: &mut Program, x: Value) -> (Value, Value) {
    let single = f64::from(LN_2 as f32);
    (program.float(x, LN_2), either(program, x, LN_2 - single, LN_2_REST))
}

/// An integer of 32 bits out of a float that is one.
fn whole(program: &mut Program, k: Value) -> Value {
    let double = is_double(program, k);
    program.apply(if double { Instruction::Float64ToSigned } else { Instruction::Float32ToSigned }, &[k])
}

/// 2^k of an integer of 32 bits, for exponents of normal numbers.
fn power_of_2(program: &mut Program, like: Value, k: Value) -> Value {
    if is_double(program, like) {
        let (bias, places) = (program.bits64(1023), program.bits32(52));
        let k = program.apply(Instruction::SignExtend32, &[k]);
        let biased = program.add(k, bias);
        let bits = program.shift_left(biased, places);
        return program.float_of(bits);
    }
    let (bias, places) = (program.bits32(127), program.bits32(23));
    let biased = program.add(k, bias);
    let bits = program.shift_left(biased, places);
    program.float_of(bits)
}

/// x · 2^k in two steps, so that neither factor leaves the range; only the last rounds where the result is subnormal.
fn scaled(program: &mut Program, x: Value, k: Value) -> Value {
    let k = whole(program, k);
    let unity = program.bits32(1);
    let half = program.shift_right_signed(k, unity);
    let rest = program.subtract(k, half);
    let (first, second) = (power_of_2(program, x, half), power_of_2(program, x, rest));
    let x = program.multiply(x, first);
    program.multiply(x, second)
}

/// The result, or x where that is NaN.
pub(super) fn unless_nan(program: &mut Program, x: Value, result: Value) -> Value {
    let nan = program.is_nan(x);
    program.choose(nan, x, result)
}

/// factor · e^x, as accurate where e^x alone is subnormal.
pub(super) fn exponential_times(program: &mut Program, x: Value, factor: Option<Value>) -> Value {
    let x = held(program, x, (-110.0, 100.0), (-760.0, 720.0));
    let (k, r) = reduced(program, x);
    let coefficients = inverse_factorials(program, x, 0);
    let mut power = polynomial(program, r, &coefficients);
    if let Some(factor) = factor {
        power = program.multiply(power, factor);
    }
    scaled(program, power, k)
}

/// e^x - 1.
pub(super) fn less_1(program: &mut Program, x: Value) -> Value {
    let bounded = held(program, x, (-30.0, 89.0), (-50.0, 710.0));
    let (k, r) = reduced(program, bounded);
    let coefficients = inverse_factorials(program, x, 2);
    let series = polynomial(program, r, &coefficients);
    let square = program.multiply(r, r);
    let small = program.multiply_add(square, series, r);
    // Half of it first: 2^k itself can be beyond the range.
    let (half, two) = (program.float(x, 0.5), program.float(x, 2.0));
    let k = whole(program, k);
    let minus = program.bits32(u32::MAX);
    let k = program.add(k, minus);
    let scale = power_of_2(program, x, k);
    let rest = program.subtract(scale, half);
    let result = program.multiply_add(scale, small, rest);
    let result = program.multiply(result, two);
    // Near 0 it is x, whose last bits the halving would lose.
    let (magnitude, least) = (program.absolute(x), either(program, x, 2f64.powi(-26), 2f64.powi(-55)));
    let tiny = program.less(magnitude, least);
    let result = program.choose(tiny, x, result);
    unless_nan(program, x, result)
}

/// x = 2^e (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), for positive x, and ln(1 + f) as f - rest.
struct Split {
    exponent: Value,
    fraction: Value,
    rest: Value,
    /// 2^(1 - e), or 0 where that is subnormal.
    scale: Value,
}

/// Whether x is anything but a positive normal number.
fn is_unusual(program: &mut Program, x: Value) -> Value {
    let bits = program.bits_of(x);
    let (least, count) = if is_double(program, x) {
        (program.bits64(1 << 52), program.bits64(0x7fe << 52))
    } else {
        (program.bits32(1 << 23), program.bits32(0xfe << 23))
    };
    let above = program.subtract(bits, least);
    let usual = program.less_unsigned(above, count);
    program.not(usual)
}

fn split(program: &mut Program, x: Value) -> Split {
    let double = is_double(program, x);
    let up = if double { 54 } else { 25 };
    let (unusual, zero) = (is_unusual(program, x), program.bits32(0));
    let rare = program.open_rare(unusual);
    let (factor, shifted) = (program.float(x, 2f64.powi(up)), program.bits32((-up) as u32));
    let larger = program.multiply(x, factor);
    let least = program.float(x, if double { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) });
    let subnormal = program.less(x, least);
    let larger = program.choose(subnormal, larger, x);
    let shifted = program.choose(subnormal, shifted, zero);
    let [x, shifted] = program.close_rare(rare, [[x, larger], [zero, shifted]]);

    let bits = program.bits_of(x);
    let (middle, places, two_bits) = if double {
        (std::f64::consts::FRAC_1_SQRT_2.to_bits(), program.bits32(52), program.bits64(2f64.to_bits()))
    } else {
        let middle = std::f32::consts::FRAC_1_SQRT_2.to_bits();
        (middle.into(), program.bits32(23), program.bits32(2f32.to_bits()))
    };
    let middle = program.integer(bits, middle as i64);
    let above = program.subtract(bits, middle);
    let exponent = program.shift_right_signed(above, places);
    let moved = program.shift_left(exponent, places);
    let bits = program.subtract(bits, moved);
    let number = program.float_of(bits);
    let scale = program.subtract(two_bits, moved);
    let scale = program.float_of(scale);
    let exponent = if double { program.apply(Instruction::Truncate64, &[exponent]) } else { exponent };
    let exponent = program.add(exponent, shifted);
    let to_float = if double { Instruction::SignedToFloat64 } else { Instruction::SignedToFloat32 };
    let exponent = program.apply(to_float, &[exponent]);

    let (unity, two, half) = (program.float(x, 1.0), program.float(x, 2.0), program.float(x, 0.5));
    let fraction = program.subtract(number, unity);
    let full_square = program.multiply(fraction, fraction);
    let square = program.multiply(half, full_square);
    if !double {
        // ln(1 + f) = f - (f²/2 - f³ P(f)).
        let cube = program.multiply(fraction, full_square);
        let minus = program.negate(cube);
        let series = polynomial(program, fraction, LOGARITHM.single);
        let rest = program.multiply_add(minus, series, square);
        return Split { exponent, fraction, rest, scale };
    }
    // ln(1 + f) = 2 artanh(s) with s = f / (2 + f), ordered as f - (f²/2 - s (f²/2 + R(s²))).
    let sum = program.add(two, fraction);
    let s = program.divide(fraction, sum);
    let z = program.multiply(s, s);
    let coefficients: Vec<f64> = (1..=10).map(|k| 2.0 / f64::from(2 * k + 1)).collect();
    let series = polynomial(program, z, &coefficients);
    let series = program.multiply(z, series);
    let sum = program.add(square, series);
    let part = program.multiply(s, sum);
    Split { exponent, fraction, rest: program.subtract(square, part), scale }
}

/// What a logarithm is where x is no positive number, where it is one the result.
pub(super) fn outside(program: &mut Program, x: Value, result: Value) -> Value {
    let unusual = is_unusual(program, x);
    let rare = program.open_rare(unusual);
    let (zero, infinity) = (program.float(x, 0.0), program.float(x, f64::INFINITY));
    let (lowest, nan) = (program.float(x, f64::NEG_INFINITY), program.float(x, f64::NAN));
    let infinite = program.equal(x, infinity);
    let limit = program.choose(infinite, infinity, result);
    let vanishes = program.equal(x, zero);
    let limit = program.choose(vanishes, lowest, limit);
    let good = program.less_equal(zero, x);
    let limit = program.choose(good, limit, nan);
    let [result] = program.close_rare(rare, [[result, limit]]);
    result
}

/// ln(x) with its limits.
pub(super) fn logarithm_of(program: &mut Program, x: Value) -> Value {
    let result = natural(program, x, None);
    outside(program, x, result)
}

/// ln(x + lost), where `lost` is below the last place of x.
pub(super) fn natural(program: &mut Program, x: Value, lost: Option<Value>) -> Value {
    let Split { exponent, fraction, rest, scale } = split(program, x);
    let single_head = f64::from(f32::from_bits((LN_2 as f32).to_bits() & !0xfff));
    let head = either(program, x, single_head, LN_2_HEAD);
    let tail = either(program, x, LN_2 - single_head, LN_2_TAIL);
    let small = match lost {
        Some(lost) => {
            // lost / x, by 1 / (1 + f) = 1 - f + …, of which a bit or two count.
            let lost = program.multiply(lost, scale);
            let (half, minus_half) = (program.float(x, 0.5), program.float(x, -0.5));
            let inverse = program.multiply_add(fraction, minus_half, half);
            let share = program.multiply(exponent, tail);
            program.multiply_add(lost, inverse, share)
        }
        None => program.multiply(exponent, tail),
    };
    let rest = program.subtract(rest, small);
    let near = program.subtract(fraction, rest);
    // The exponent's share is exact, so only this sum rounds.
    program.multiply_add(exponent, head, near)
}

pub(super) fn narrowed(program: &mut Program, dtype: DType, result: Value) -> Parts {
    one(rounded(program, dtype, result))
}

pub(crate) fn exponential(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::exponential(program, dtype, operands[0][0], LOG2_E);
    }
    let x = operands[0][0];
    let power = exponential_times(program, x, None);
    let power = unless_nan(program, x, power);
    narrowed(program, dtype, power)
}

pub(crate) fn exponential_of_2(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::exponential(program, dtype, operands[0][0], 1.0);
    }
    let x = operands[0][0];
    let bounded = held(program, x, (-160.0, 150.0), (-1100.0, 1100.0));
    let k = program.round(bounded);
    let fraction = program.subtract(bounded, k);
    let (head, rest) = logarithm_of_2(program, x);
    let small = program.multiply(fraction, rest);
    let r = program.multiply_add(fraction, head, small);
    let coefficients = inverse_factorials(program, x, 0);
    let power = polynomial(program, r, &coefficients);
    let power = scaled(program, power, k);
    let power = unless_nan(program, x, power);
    narrowed(program, dtype, power)
}

pub(crate) fn exponential_less_1(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::exponential_less_1(program, dtype, operands[0][0]);
    }
    let result = less_1(program, operands[0][0]);
    narrowed(program, dtype, result)
}

pub(crate) fn logarithm(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::logarithm(program, dtype, operands[0][0], LN_2);
    }
    let x = operands[0][0];
    let result = logarithm_of(program, x);
    narrowed(program, dtype, result)
}

/// The logarithm to another base: the exponent times that of 2, which is exact for base 2, and the rest.
fn to_base(program: &mut Program, dtype: DType, x: Value, of_e: (f64, f64), of_2: f64) -> Parts {
    let Split { exponent, fraction, rest, .. } = split(program, x);
    let near = program.subtract(fraction, rest);
    let single = f64::from(of_e.0 as f32);
    let head = program.float(x, of_e.0);
    let tail = either(program, x, of_e.0 - single, of_e.1);
    let small = program.multiply(near, tail);
    let small = program.multiply_add(near, head, small);
    let factor = program.float(x, of_2);
    let result = program.multiply_add(exponent, factor, small);
    let result = outside(program, x, result);
    narrowed(program, dtype, result)
}

pub(crate) fn logarithm_to_2(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::logarithm(program, dtype, operands[0][0], 1.0);
    }
    // What log2(e) has beyond its nearest f64.
    to_base(program, dtype, operands[0][0], (LOG2_E, 2.035_527_374_093_103_3e-17), 1.0)
}

pub(crate) fn logarithm_to_10(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::logarithm(program, dtype, operands[0][0], LOG10_2);
    }
    to_base(program, dtype, operands[0][0], (1.0 / LN_10, 1.098_319_650_216_765e-17), LOG10_2)
}

/// ln(1 + x).
pub(super) fn of_1_plus(program: &mut Program, x: Value) -> Value {
    let unity = program.float(x, 1.0);
    let sum = program.add(unity, x);
    // What the sum lost, whichever of the two is larger.
    let (back, other) = (program.subtract(sum, unity), program.subtract(sum, x));
    let (lost, of_large) = (program.subtract(x, back), program.subtract(unity, other));
    let is_small = program.less(x, unity);
    let lost = program.choose(is_small, lost, of_large);
    let result = natural(program, sum, Some(lost));
    let result = outside(program, sum, result);
    let (magnitude, least) = (program.absolute(x), either(program, x, 2f64.powi(-26), 2f64.powi(-55)));
    let tiny = program.less(magnitude, least);
    program.choose(tiny, x, result)
}

pub(crate) fn logarithm_of_1_plus(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::logarithm_of_1_plus(program, dtype, operands[0][0]);
    }
    let result = of_1_plus(program, operands[0][0]);
    narrowed(program, dtype, result)
}

pub(crate) fn hyperbolic_tangent(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::functions::hyperbolic_tangent(program, dtype, operands);
    }
    let x = operands[0][0];
    let two = program.float(x, 2.0);
    let (magnitude, most) = (program.absolute(x), either(program, x, 10.0, 22.0));
    let magnitude = program.minimum(magnitude, most);
    let double = program.multiply(two, magnitude);
    // tanh(x) = t / (t + 2) with t = e^2x - 1.
    let t = less_1(program, double);
    let sum = program.add(t, two);
    let quotient = program.divide(t, sum);
    signed(program, dtype, x, quotient)
}

/// The magnitude with the sign of x; NaN of NaN.
pub(super) fn signed(program: &mut Program, dtype: DType, x: Value, magnitude: Value) -> Parts {
    let [result, _] = super::arithmetic::copysign(program, dtype, &[one(magnitude), one(x)]);
    let result = unless_nan(program, x, result);
    narrowed(program, dtype, result)
}

pub(crate) fn hyperbolic_sine(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::functions::hyperbolic_sine(program, dtype, operands);
    }
    let x = operands[0][0];
    let (half, unity) = (program.float(x, 0.5), program.float(x, 1.0));
    let magnitude = program.absolute(x);
    // (t + t / (t + 1)) / 2 with t = e^|x| - 1, which for large x is e^|x| / 2.
    let t = less_1(program, magnitude);
    let sum = program.add(t, unity);
    let quotient = program.divide(t, sum);
    let sum = program.add(t, quotient);
    let near = program.multiply(half, sum);
    let far = exponential_times(program, magnitude, Some(half));
    let limit = program.float(x, 22.0);
    let is_far = program.less(limit, magnitude);
    let result = program.choose(is_far, far, near);
    signed(program, dtype, x, result)
}

pub(crate) fn hyperbolic_cosine(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::functions::hyperbolic_cosine(program, dtype, operands);
    }
    let x = operands[0][0];
    let (half, quarter) = (program.float(x, 0.5), program.float(x, 0.25));
    let magnitude = program.absolute(x);
    let power = exponential_times(program, magnitude, Some(half));
    let inverse = program.divide(quarter, power);
    let result = program.add(power, inverse);
    let result = unless_nan(program, x, result);
    narrowed(program, dtype, result)
}

/// ln(2 x), for x so large that the inverse hyperbolic functions are no more than that; `near` elsewhere.
fn far(program: &mut Program, x: Value, near: Value) -> Value {
    let limit = either(program, x, 2f64.powi(13), 2f64.powi(28));
    let (head, _) = logarithm_of_2(program, x);
    let logarithm = natural(program, x, None);
    let sum = program.add(logarithm, head);
    let sum = outside(program, x, sum);
    let is_far = program.less(limit, x);
    program.choose(is_far, sum, near)
}

pub(crate) fn inverse_hyperbolic_sine(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::functions::inverse_hyperbolic_sine(program, dtype, operands);
    }
    let result = inverse_hyperbolic_sine_of(program, operands[0][0]);
    narrowed(program, dtype, result)
}

pub(super) fn inverse_hyperbolic_sine_of(program: &mut Program, x: Value) -> Value {
    let (unity, magnitude) = (program.float(x, 1.0), program.absolute(x));
    // ln(1 + x + x² / (1 + sqrt(1 + x²))).
    let square = program.multiply(magnitude, magnitude);
    let sum = program.add(unity, square);
    let root = program.square_root(sum);
    let divisor = program.add(unity, root);
    let quotient = program.divide(square, divisor);
    let argument = program.add(magnitude, quotient);
    let near = of_1_plus(program, argument);
    let result = far(program, magnitude, near);
    let [result, _] = super::arithmetic::copysign(program, DType::F64, &[one(result), one(x)]);
    unless_nan(program, x, result)
}

pub(crate) fn inverse_hyperbolic_cosine(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::functions::inverse_hyperbolic_cosine(program, dtype, operands);
    }
    let x = operands[0][0];
    let (unity, two, nan) = (program.float(x, 1.0), program.float(x, 2.0), program.float(x, f64::NAN));
    // ln(1 + t + sqrt(2 t + t²)) with t = x - 1.
    let t = program.subtract(x, unity);
    let sum = program.add(two, t);
    let product = program.multiply(t, sum);
    let root = program.square_root(product);
    let argument = program.add(t, root);
    let near = of_1_plus(program, argument);
    let result = far(program, x, near);
    let good = program.less_equal(unity, x);
    let result = program.choose(good, result, nan);
    narrowed(program, dtype, result)
}

pub(crate) fn inverse_hyperbolic_tangent(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::functions::inverse_hyperbolic_tangent(program, dtype, operands);
    }
    let x = operands[0][0];
    let (unity, half, magnitude) = (program.float(x, 1.0), program.float(x, 0.5), program.absolute(x));
    // ln(1 + 2 x / (1 - x)) / 2; past 1 the argument is below -1.
    let double = program.add(magnitude, magnitude);
    let rest = program.subtract(unity, magnitude);
    let argument = program.divide(double, rest);
    let logarithm = of_1_plus(program, argument);
    let result = program.multiply(half, logarithm);
    signed(program, dtype, x, result)
}

/// x' · sigmoid(x), with x' = x or 1.
fn sigmoid_times(program: &mut Program, dtype: DType, x: Value, by_x: bool) -> Parts {
    let (zero, unity) = (program.float(x, 0.0), program.float(x, 1.0));
    let magnitude = program.absolute(x);
    let minus = program.negate(magnitude);
    let power = exponential_times(program, minus, None);
    let sum = program.add(unity, power);
    let mut above = program.divide(unity, sum);
    let mut factor = above;
    if by_x {
        let least = either(program, x, -110.0, -760.0);
        let bounded = program.maximum(x, least);
        factor = program.multiply(bounded, above);
        above = program.multiply(x, above);
    }
    // Below 0 it is e^x / (1 + e^x).
    let below = exponential_times(program, minus, Some(factor));
    let negative = program.less(x, zero);
    let result = program.choose(negative, below, above);
    let result = unless_nan(program, x, result);
    narrowed(program, dtype, result)
}

pub(crate) fn sigmoid(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::functions::sigmoid(program, dtype, operands, false);
    }
    sigmoid_times(program, dtype, operands[0][0], false)
}

pub(crate) fn silu(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::functions::sigmoid(program, dtype, operands, true);
    }
    sigmoid_times(program, dtype, operands[0][0], true)
}

pub(crate) fn softplus(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::softplus(program, dtype, operands[0][0]);
    }
    let x = operands[0][0];
    let zero = program.float(x, 0.0);
    let magnitude = program.absolute(x);
    let minus = program.negate(magnitude);
    let power = exponential_times(program, minus, None);
    let small = of_1_plus(program, power);
    let large = program.maximum(x, zero);
    let result = program.add(large, small);
    let result = unless_nan(program, x, result);
    narrowed(program, dtype, result)
}
