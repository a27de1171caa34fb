//! Powers: 2^(y log2 |x|) with the logarithm as a sum of two numbers, so that a large exponent does not
//! magnify its error.

use super::coefficients::{AREA_TANGENT_REST, LOGARITHM_REST, POWER_OF_2};
use super::reciprocal::reciprocal;
use super::term::{Like, Term, real};
use super::{Precision, half_precision, real_parts_of, rounded};
use crate::fuse::ir::instruction::Instruction;
use crate::fuse::ir::program::{Program, ValueParts};
use crate::types::DType;

/// A number as a sum of two, with the second below the last place of the first.
#[derive(Clone, Copy)]
pub(super) struct DoubleWord<'p> {
    pub(super) hi: Term<'p>,
    pub(super) lo: Term<'p>,
}

impl<'p> DoubleWord<'p> {
    /// Returns the exact product of two numbers.
    pub(super) fn product(x: Term<'p>, y: Term<'p>) -> DoubleWord<'p> {
        let hi = x * y;
        DoubleWord { hi, lo: x.fma(y, -hi) }
    }

    /// Returns the exact sum of two numbers; the first is 0 or not the smaller in magnitude.
    pub(super) fn sum(large: Term<'p>, small: Term<'p>) -> DoubleWord<'p> {
        let hi = large + small;
        DoubleWord { hi, lo: small - (hi - large) }
    }

    pub(super) fn times(self, factor: Term<'p>) -> DoubleWord<'p> {
        let product = DoubleWord::product(factor, self.hi);
        DoubleWord { lo: factor.fma(self.lo, product.lo), ..product }
    }
}

/// Returns a constant with the precision of two numbers.
pub(super) fn double_word_constant(like: Term<'_>, number: f64, beyond: f64) -> DoubleWord<'_> {
    let single = f64::from(number as f32);
    DoubleWord { hi: like.constant(number), lo: like.by_precision(number - single, beyond) }
}

const LOG2_E_BEYOND: f64 = 2.035_527_374_093_103_3e-17;
const TWO_LOG2_E: f64 = 2.885_390_081_777_926_8;

/// Returns x · times · log2(e), for `times` a power of 2.
pub(super) fn in_powers_of_2(x: DoubleWord<'_>, times: f64) -> DoubleWord<'_> {
    let factor = double_word_constant(x.hi, TWO_LOG2_E * times / 2.0, LOG2_E_BEYOND * times);
    let product = DoubleWord::product(x.hi, factor.hi);
    let lo = x.hi.fma(factor.lo, product.lo);
    DoubleWord { lo: x.lo.fma(factor.hi, lo), ..product }
}

/// Returns log2 of a positive normal number: of f64 to twice its precision, and of f32 within 2^-30.5, which a power below 2^128
/// magnifies to a unit in the last place at most.
fn logarithm<'p>(x: Term<'p>, more: Option<Term<'p>>) -> DoubleWord<'p> {
    let double = x.is_double();
    let (middle, mantissa_bits) = if double {
        (std::f64::consts::FRAC_1_SQRT_2.to_bits() as i64, 52)
    } else {
        (i64::from(std::f32::consts::FRAC_1_SQRT_2.to_bits()), 23)
    };
    // x = 2^exponent · number, with number from sqrt(1/2) to sqrt(2).
    let bits = x.bits_of();
    let exponent = (bits - middle).shift_right_signed(bits.bits32(mantissa_bits));
    let number = (bits - (exponent << mantissa_bits)).float_of();
    let exponent = if double {
        exponent.apply(Instruction::Truncate64, &[]).apply(Instruction::SignedToFloat64, &[])
    } else {
        exponent.apply(Instruction::SignedToFloat32, &[])
    };
    let exponent = more.map_or(exponent, |more| exponent + more);
    // log2(number) = 2 log2(e) artanh(s) with s = (number - 1) / (number + 1).
    let (above, sum) = (number - 1.0, number + 1.0);
    let lost = number - (sum - 1.0);
    let inverse = x.constant(1.0) / sum;
    let s = above * inverse;
    let s_rest = (-s).fma(lost, (-s).fma(sum, above)) * inverse;
    if !double {
        return logarithm_of_quotient(exponent, s, s_rest);
    }
    let square = DoubleWord::product(s, s);
    let square_rest = (s + s).fma(s_rest, square.lo);
    // artanh(s) / s - 1 = s² (1/3 + s² (1/5 + …)).
    let tail = DoubleWord::product(square.hi, square.hi.polynomial(&AREA_TANGENT_REST));
    let third = double_word_constant(x, 1.0 / 3.0, 1.850_371_707_708_594e-17);
    let series = DoubleWord::sum(third.hi, tail.hi);
    let series_rest = series.lo + (third.lo + tail.lo);
    let times = DoubleWord::product(square.hi, series.hi);
    let times_rest = square.hi.fma(series_rest, square_rest.fma(series.hi, times.lo));
    let factor = double_word_constant(x, TWO_LOG2_E, 4.071_054_748_186_206_6e-17);
    let first = DoubleWord::product(s, factor.hi);
    let first_rest = s_rest.fma(factor.hi, s.fma(factor.lo, first.lo));
    let second = DoubleWord::product(first.hi, times.hi);
    let second_rest = first_rest.fma(times.hi, first.hi.fma(times_rest, second.lo));
    let near = DoubleWord::sum(first.hi, second.hi);
    let all = DoubleWord::sum(exponent, near.hi);
    DoubleWord { lo: all.lo + (near.lo + (first_rest + second_rest)), ..all }
}

/// Returns exponent + 2 log2(e) artanh(s + rest) of f32. The terms from s³ on are at most 1 % of the sum, so of them only the
/// products that lead are computed exactly, and the derivative 2 log2(e) (1 + s²) takes up the rest of s.
fn logarithm_of_quotient<'p>(exponent: Term<'p>, s: Term<'p>, s_rest: Term<'p>) -> DoubleWord<'p> {
    let factor = double_word_constant(s, TWO_LOG2_E, 0.0);
    let square = DoubleWord::product(s, s);
    let series = square.hi.polynomial(&LOGARITHM_REST);
    let times = DoubleWord::product(square.hi, series);
    let second = DoubleWord::product(s, times.hi);
    let second_rest = s.fma(square.lo.fma(series, times.lo), second.lo);
    let first = DoubleWord::product(s, factor.hi);
    let slope = square.hi.fma(factor.hi, factor.hi);
    let first_rest = s_rest.fma(slope, s.fma(factor.lo, first.lo));
    let near = first.hi + second.hi;
    let hi = exponent + near;
    let lost = (first.hi - (hi - exponent)) + second.hi;
    DoubleWord { hi, lo: lost + (first_rest + second_rest) }
}

/// 2^x = power · 2^exponent, with power from about sqrt(1/2) to sqrt(2) and exponent an integer of 32 bits.
pub(super) struct Scaled<'p> {
    pub(super) power: Term<'p>,
    exponent: Term<'p>,
}

pub(super) fn power_of_2(x: DoubleWord<'_>) -> Scaled<'_> {
    let rounding_constant = x.hi.rounding_constant();
    let shifted = x.hi + rounding_constant;
    let fraction = (x.hi - (shifted - rounding_constant)) + x.lo;
    let bits = shifted.bits_of();
    let bits = if fraction.is_double() { bits.apply(Instruction::Truncate64, &[]) } else { bits };
    // The rounding constant's own bits above the integer are shifted out, or subtracted by callers that halve it.
    let power = fraction.fma(fraction.polynomial(&POWER_OF_2), 1.0);
    Scaled { power, exponent: bits }
}

/// Returns times · 2^k for a normal result, where the float is k away from one whose last bits are 0.
pub(super) fn times_power_of_2<'p>(times: Term<'p>, shifted: Term<'p>) -> Term<'p> {
    let mantissa_bits = if times.is_double() { 52 } else { 23 };
    (times.bits_of() + (shifted.bits_of() << mantissa_bits)).float_of()
}

impl<'p> Scaled<'p> {
    /// Returns times · 2^exponent, for a normal result.
    pub(super) fn normal(&self, times: Term<'p>) -> Term<'p> {
        let bits = times.bits_of();
        if times.is_double() {
            return (bits + (self.exponent.apply(Instruction::SignExtend32, &[]) << 52)).float_of();
        }
        (bits + (self.exponent << 23)).float_of()
    }

    /// Returns times · 2^exponent for any exponent, rounded once; `times` is around 1.
    pub(super) fn any(&self, times: Term<'p>) -> Term<'p> {
        self.exponents::<2>(times).into_iter().fold(times, |product, scale| product * scale)
    }

    /// Returns factor · power · 2^exponent, for any factor and exponent.
    pub(super) fn far(&self, factor: Term<'p>) -> Term<'p> {
        let [first, second, third] = self.exponents(factor);
        factor * first * self.power * second * third
    }

    /// Returns powers of 2 whose product is 2^exponent.
    fn exponents<const N: usize>(&self, like: Term<'p>) -> [Term<'p>; N] {
        // Sixteen bits hold every exponent.
        let sixteen = self.exponent.bits32(16);
        let mut left = (self.exponent << 16).shift_right_signed(sixteen);
        std::array::from_fn(|index| {
            let part = if index + 1 < N {
                left.shift_right_signed(left.bits32((N - 1 - index) as u32))
            } else {
                left
            };
            left = left - part;
            Scaled { power: like, exponent: part }.normal(like.constant(1.0))
        })
    }
}

/// The exponents between which 2^x, and a number around 1 times it, is normal.
pub(super) fn is_normal<'p>(exponent: Term<'p>) -> Term<'p> {
    exponent.absolute().less(exponent.by_precision(124.0, 1020.0))
}

/// Returns |x|^y, except for NaN.
fn magnitude<'p>(x: Term<'p>, y: Term<'p>) -> Term<'p> {
    let (least, up) =
        (x.by_precision(f64::from(f32::MIN_POSITIVE), f64::MIN_POSITIVE), x.by_precision(25.0, 54.0));
    let small = x.less(least);
    let larger = x * x.by_precision(2f64.powi(25), 2f64.powi(54));
    let logarithm = logarithm(small.select(larger, x), Some(small.select(-up, 0.0)));
    let zero = x.equal(0.0);
    let infinite = x.equal(f64::INFINITY);
    let special = zero.select(x.constant(f64::NEG_INFINITY), f64::INFINITY);
    let hi = (zero | infinite).select(special, logarithm.hi);
    let most = x.by_precision(250.0, 2040.0);
    let exact = DoubleWord { hi, ..logarithm }.times(y);
    let inside = exact.hi.absolute().less(most);
    let hi = exact.hi.maximum(-most).minimum(most);
    let exponent = DoubleWord { hi, lo: inside.select(exact.lo, 0.0) };
    let scaled = power_of_2(exponent);
    let result = scaled.any(scaled.power);
    (x.equal(1.0) | y.equal(0.0)).select(x.constant(1.0), result)
}

fn power_of<'p>(x: Term<'p>, y: Term<'p>) -> Term<'p> {
    let size = x.absolute();
    let bits = size.bits_of();
    let normal = if x.is_double() {
        (bits - (1i64 << 52)).less_unsigned(0x7fe << 52)
    } else {
        (bits - (1i64 << 23)).less_unsigned(0xfe << 23)
    };
    let exponent = logarithm(size, None).times(y);
    let scaled = power_of_2(exponent);
    let usual = normal & is_normal(exponent.hi);
    let [result] = (!usual).rarely([scaled.normal(scaled.power)], || {
        let certain = x.equal(1.0) | y.equal(0.0);
        let result = x.unordered(y).select(x + y, magnitude(size, y));
        [certain.select(x.constant(1.0), result)]
    });
    let half = y * 0.5;
    let whole = y.truncate().equal(y);
    let odd = whole & !half.truncate().equal(half);
    let result = (odd & x.is_negative()).select(-result, result);
    let invalid = x.less(0.0) & x.constant(f64::NEG_INFINITY).less(x) & !(whole);
    invalid.select(x.constant(f64::NAN), result)
}

pub(crate) fn pow(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if dtype.is_float() {
        return real(program, dtype, operands, |[x, y]| power_of(x, y));
    }
    let (x, y) = (operands[0][0], operands[1][0]);
    let raise = if dtype.size() == 8 { Instruction::Power64 } else { Instruction::Power32 };
    let result = program.apply(raise, &[x, y]);
    let result = rounded(program, dtype, result);
    if !dtype.is_signed_integer() {
        return real_parts_of(result);
    }
    // 1 / x^-y without its fraction: 1 and -1 are their own inverses, and the others have none.
    let (zero, unity, two) = (program.integer(x, 0), program.integer(x, 1), program.integer(x, 3));
    let above = program.add(x, unity);
    let unit = program.less_unsigned(above, two);
    let odd = program.and(x, unity);
    let is_odd = program.equal(odd, unity);
    let unit = program.and(unit, is_odd);
    let negative = program.less_signed(y, zero);
    let by_unit = program.choose(unit, result, zero);
    real_parts_of(program.choose(negative, by_unit, result))
}

/// Returns y (y³ + 2x) / (2y³ + x), a step of Halley's method from a guess y to the cube root of x, for
/// numbers from 1 to 8, which triples the number of correct digits, and 1 / (2y³ + x).
fn halley<'p>(x: Term<'p>, y: Term<'p>) -> [Term<'p>; 2] {
    let cube = y * y * y;
    let inverse = reciprocal(cube.fma(2.0, x));
    [y * (x.fma(2.0, cube) * inverse), inverse]
}

/// Returns y and its distance to the cube root of x, from the exact remainder of y³ and about 1 / 3y².
fn with_rest<'p>(x: Term<'p>, y: Term<'p>, inverse: impl FnOnce(Term<'p>) -> Term<'p>) -> Term<'p> {
    let square = DoubleWord::product(y, y);
    let cube = DoubleWord::product(square.hi, y);
    let left = (x - cube.hi) - square.lo.fma(y, cube.lo);
    left.fma(inverse(square.hi), y)
}

/// Returns the cube root of a number from 1 to 8. A third of its bits, and two thirds of their bias, give the
/// first guess in f32.
fn cube_root_within(x: Term<'_>) -> Term<'_> {
    let single = if x.is_double() { x.apply(Instruction::Narrow, &[]) } else { x };
    let guess = (single.bits_of().divide_unsigned(3) + 0x2a51_19f2).float_of();
    let [near, _] = halley(single, guess);
    if !x.is_double() {
        return with_rest(x, near, |square| reciprocal(square * 3.0));
    }
    // The step began so close that its divisor was 3x, and so 3y³.
    let [root, inverse] = halley(x, near.apply(Instruction::Widen, &[]));
    with_rest(x, root, |_| root * inverse)
}

/// Returns the cube root: that of a number from 1 to 8, times 2 to a third of the remaining exponent.
pub(crate) fn cbrt(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::functions::cbrt(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| {
        let double = x.is_double();
        let size = x.absolute();
        // Subnormal numbers have no exponent.
        let small = size.less(x.by_precision(f64::from(f32::MIN_POSITIVE), f64::MIN_POSITIVE));
        let (up, root_up, mantissa_bits) = if double { (54, 18, 52) } else { (24, 8, 23) };
        let bits = (size * small.select(x.constant(2f64.powi(up)), 1.0)).bits_of();
        // The exponent minus 3 times its third is 0 to 2; one multiplication divides all exponents by 3.
        let (ahead, bias) = if double { (0, 1023) } else { (2, 127) };
        let third = (((bits >> mantissa_bits) + ahead) * 0x5556) >> 16;
        let within = (bits - ((third * 3 - (bias + ahead)) << mantissa_bits)).float_of();
        let back = bias - (bias + ahead) / 3;
        let back = small.select((back - root_up).like(bits), back);
        let root = cube_root_within(within) * ((third + back) << mantissa_bits).float_of();
        let itself = x.equal(0.0) | !size.less(f64::INFINITY);
        itself.select(x, root.with_sign(x))
    })
}
