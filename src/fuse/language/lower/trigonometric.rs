//! Sine, cosine and tangent: reduction of the argument to quarter turns and a rest of at most π/4, and
//! polynomials of the rest.
//!
//! Fused multiply-adds subtract quarter turns with π/2 as a sum of three numbers (W. J. Cody and W. Waite,
//! "Software Manual for the Elementary Functions", 1980), which is accurate up to 2^17 (f32) and 2^30 (f64).
//! Beyond that, a rare body multiplies the relevant bits of 2/π as integers (M. Payne and R. Hanek, "Radian
//! reduction for trigonometric functions", SIGNUM Newsletter 18, 1983), so every argument has an accurate
//! sine.

use super::coefficients::{COSINE, SINE};
use super::term::{Term, real};
use super::{Precision, half_precision};
use crate::fuse::ir::instruction::Instruction;
use crate::fuse::ir::program::{Program, ValueParts};
use crate::types::DType;

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, PI};

/// π/2 as a sum of three numbers, each rounded towards 0, so that a zero keeps its sign.
const QUARTER_TURN_SINGLE: [f64; 3] = [1.570796251296997, 7.549789415861596e-8, 5.390302529957765e-15];
const QUARTER_TURN_DOUBLE: [f64; 3] = [FRAC_PI_2, 6.123233995736765e-17, 1.0828566739219139e-32];

/// 2/π, after 64 zeros.
const TWO_OVER_PI: [u64; 21] = [
    0,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
    0xf0cf_bc20_9af4_361d,
];

/// An angle as quarter turns, whose two low bits count, and a rest of at most π/4.
pub(super) struct Turns<'p> {
    pub(super) quarters: Term<'p>,
    pub(super) rest: Term<'p>,
}

/// Returns the nearest integer to factor · x as a float and, in its low bits, as a 32-bit integer.
fn nearest<'p>(x: Term<'p>, factor: f64) -> (Term<'p>, Term<'p>) {
    let rounding_constant = x.rounding_constant();
    let shifted = x.fma(factor, rounding_constant);
    let bits = shifted.bits_of();
    let bits = if x.is_double() { bits.apply(Instruction::Truncate64, &[]) } else { bits };
    (shifted - rounding_constant, bits)
}

pub(super) fn turns(x: Term<'_>) -> Turns<'_> {
    turns_by(x, if x.is_double() { &QUARTER_TURN_DOUBLE } else { &QUARTER_TURN_SINGLE })
}

/// Reduces the angle with these terms of π/2.
fn turns_by<'p>(x: Term<'p>, terms: &[f64]) -> Turns<'p> {
    let (count, quarters) = nearest(x, FRAC_2_PI);
    let rest = terms.iter().fold(x, |rest, &piece| (-count).fma(piece, rest));
    let limit = x.by_precision(2f64.powi(17), 2f64.powi(30));
    let is_large = !x.absolute().less_equal(limit);
    let [quarters, rest] = is_large.rarely([quarters, rest], || {
        let Turns { quarters, rest } = turns_of_large(x);
        [quarters, rest]
    });
    Turns { quarters, rest }
}

/// Reduces numbers from 2^17, like [`turns`]; NaN for numbers that are not finite.
fn turns_of_large<'p>(x: Term<'p>) -> Turns<'p> {
    let double = x.is_double();
    let bits = x.absolute().bits_of();
    // |x| is significand · 2^(exponent - bias), and the first word with relevant bits is at exponent - offset.
    let (significand, exponent, offset, words) = if double {
        let significand = (bits & ((1 << 52) - 1)) | 1 << 52;
        (significand, (bits >> 52).apply(Instruction::Truncate64, &[]), 1013, &TWO_OVER_PI[..])
    } else {
        let significand = (bits & ((1 << 23) - 1)) | 1 << 23;
        (significand.apply(Instruction::ZeroExtend32, &[]), bits >> 23, 88, &TWO_OVER_PI[..5])
    };
    let position = exponent - offset;
    let (index, within) = (position >> 6, position & 63);
    // Selects the words from that one by a choice for each bit of the index.
    let wanted = if double { 4 } else { 3 };
    let mut words: Vec<Term<'p>> =
        words.iter().map(|&word| x.write(|program| program.bits64(word))).collect();
    let mut step = if double { 16 } else { 2 };
    while step > 0 {
        let moved = !(index & step as i64).equal(0);
        words = (0..words.len().min(wanted + step - 1))
            .map(|at| words.get(at + step).map_or(words[at], |&word| moved.select(word, words[at])))
            .collect();
        step /= 2;
    }
    let back = within.bits32(64) - within;
    let window: Vec<Term<'p>> = words
        .windows(2)
        .map(|pair| pair[0].shift_left(within) | pair[1].shift_right_unsigned(back))
        .collect();
    let high = |word: Term<'p>| significand.apply(Instruction::MultiplyHigh64, &[word]);
    let multiply = |word: Term<'p>| significand * word;
    // The product's bits: two of quarter turns, then their fraction.
    let (product, fraction_unit) = (multiply(window[0]) + high(window[1]), 2f64.powi(-62));
    let nearest = product + (1i64 << 61);
    let quarters = nearest >> 62;
    let fraction = product - (quarters << 62);
    let to_float = |fraction: Term<'p>| fraction.apply(Instruction::Signed64ToFloat64, &[]);
    let rest = if double {
        // As a sum of two numbers, of which the first is exact; the product is with π/2 as a sum of two
        // numbers.
        let low = multiply(window[1]) + high(window[2]);
        let low = low.apply(Instruction::Unsigned64ToFloat64, &[]);
        let low = to_float(fraction & 1023).fma(2f64.powi(64), low);
        let head = to_float(fraction & !1023) * 2f64.powi(64);
        let sum = head + low;
        let lost = low - (sum - head);
        let unit = fraction_unit * 2f64.powi(-64);
        let small = sum.fma(QUARTER_TURN_DOUBLE[1] * unit, lost * (FRAC_PI_2 * unit));
        sum.fma(FRAC_PI_2 * unit, small)
    } else {
        (to_float(fraction) * (FRAC_PI_2 * fraction_unit)).apply(Instruction::Narrow, &[])
    };
    let quarters = quarters.apply(Instruction::Truncate64, &[]);
    let minus = quarters.bits32(0) - quarters;
    // x · 0 is NaN if x is not finite.
    Turns { quarters: x.is_negative().select(minus, quarters), rest: rest.by_sign(x) + x * 0.0 }
}

/// Returns sine and cosine of an angle of at most π/4.
fn of_rest(rest: Term<'_>) -> [Term<'_>; 2] {
    let square = rest * rest;
    // The sum would turn a -0 into a 0.
    let sine = (rest * square).fma(square.polynomial(&SINE), rest).with_sign(rest);
    let cosine = square.fma(square.polynomial(&COSINE), -0.5);
    [sine, square.fma(cosine, 1.0)]
}

/// Returns the sine of an angle plus quarter turns.
fn sine_of<'p>(quarters: Term<'p>, [sine, cosine]: [Term<'p>; 2]) -> Term<'p> {
    let odd = !(quarters & 1).equal(0);
    let sign = quarters >> 1;
    let value = odd.select(cosine, sine);
    if value.is_double() {
        let sign = sign.apply(Instruction::ZeroExtend32, &[]) << 63;
        return (value.bits_of() ^ sign).float_of();
    }
    (value.bits_of() ^ (sign << 31)).float_of()
}

pub(super) fn sine_and_cosine(x: Term<'_>) -> [Term<'_>; 2] {
    of_turns(turns(x))
}

fn of_turns(Turns { quarters, rest }: Turns<'_>) -> [Term<'_>; 2] {
    let both = of_rest(rest);
    [sine_of(quarters, both), sine_of(quarters + 1, both)]
}

/// Returns sine and cosine of π x, which is exact in quarter turns.
pub(super) fn sine_and_cosine_of_pi(x: Term<'_>) -> [Term<'_>; 2] {
    // Even numbers are whole turns; dropping them keeps the integer small.
    let x = x - (x * 0.5).round() * 2.0;
    let (count, quarters) = nearest(x, 2.0);
    let rest = (-count).fma(0.5, x) * PI;
    of_turns(Turns { quarters, rest })
}

pub(super) fn tangent_of(x: Term<'_>) -> Term<'_> {
    let Turns { quarters, rest } = turns(x);
    let [sine, cosine] = of_rest(rest);
    let odd = !(quarters & 1).equal(0);
    odd.select(-cosine, sine) / odd.select(sine, cosine)
}

/// Returns the quarter turns of f16 and bf16, and sine and cosine of the rest.
fn of_half_precision<'p>(dtype: DType, x: Term<'p>) -> (Turns<'p>, [Term<'p>; 2]) {
    // The third number of π/2 is below the precision of these dtypes.
    let terms = &QUARTER_TURN_SINGLE[..2];
    let turns = if dtype == DType::F16 {
        // None is large, and an infinity minus an infinity is NaN.
        let (count, quarters) = nearest(x, FRAC_2_PI);
        let rest = terms.iter().fold(x, |rest, &piece| (-count).fma(piece, rest));
        Turns { quarters, rest }
    } else {
        turns_by(x, terms)
    };
    let both = half_precision::functions::of_rest(turns.rest);
    (turns, both)
}

pub(crate) fn sin(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return real(program, dtype, operands, |[x]| {
            let (turns, both) = of_half_precision(dtype, x);
            sine_of(turns.quarters, both)
        });
    }
    real(program, dtype, operands, |[x]| sine_and_cosine(x)[0])
}

pub(crate) fn cos(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return real(program, dtype, operands, |[x]| {
            let (turns, both) = of_half_precision(dtype, x);
            sine_of(turns.quarters + 1, both)
        });
    }
    real(program, dtype, operands, |[x]| sine_and_cosine(x)[1])
}

pub(crate) fn tan(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return real(program, dtype, operands, |[x]| {
            let (turns, both) = of_half_precision(dtype, x);
            half_precision::functions::tan(turns.quarters, both)
        });
    }
    real(program, dtype, operands, |[x]| tangent_of(x))
}

/// Returns sin(π x) / (π x), and 1 at 0.
pub(crate) fn sinc(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::functions::sinc(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| {
        let [sine, _] = sine_and_cosine_of_pi(x);
        let quotient = sine / (x * PI);
        let quotient = x.equal(0.0).select(x.constant(1.0), quotient);
        // Integers give a positive zero for any sign of sine and divisor.
        x.absolute().equal(f64::INFINITY).select(x.constant(0.0), quotient + 0.0)
    })
}
