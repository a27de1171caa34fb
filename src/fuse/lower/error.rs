//! The error function and what is made of it.
//!
//! erfc(x) for positive x is e^(-x²) P(t) / (x + c) with t = (x - c) / (x + c), in which one polynomial reaches from 0 to where
//! it vanishes (after M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of (1+2x) exp(x²) erfc x",
//! Mathematics of Computation 36, 1981); x² is kept as the sum of two numbers.

use super::super::operation::Parts;
use super::super::program::Program;
use super::coefficients::{ERROR_FAR, ERROR_NEAR, ERROR_TAIL};
use super::power::{Pair, exactly, in_powers_of_2, is_normal, power_of_2};
use super::term::{Term, real};
use super::{Precision, short};
use crate::types::DType;

use std::f64::consts::FRAC_1_SQRT_2;

pub(crate) fn error(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::functions::error(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| {
        let size = x.absolute();
        let square = x * x;
        let near = x.fma(square.polynomial(&ERROR_NEAR), x);
        // 1 - 2^P(|x| - 1), past whose limit it is 1.
        let above = size.minimum(x.either(4.0, 6.0)) - 1.0;
        let exponent = above.polynomial(&ERROR_FAR);
        let scaled = power_of_2(Pair { head: exponent, rest: x.constant(0.0) });
        let far = (x.constant(1.0) - scaled.normal(scaled.power)).with_sign(x);
        x.constant(1.0).less_equal(size).select(far, near)
    })
}

/// factor · erfc(x) for x from 0 on, where -x² is `exponent` to base 2.
fn tail<'p>(x: Term<'p>, exponent: Pair<'p>, factor: Option<Term<'p>>) -> Term<'p> {
    let centre = x.either(2.0, 4.0);
    let inverse = x.constant(1.0) / (x + centre);
    let ratio = (x - centre) * inverse;
    // Near -1 its last bits count: what is left of x - c - ratio (x + c).
    let left = ratio.fma(-x, (ratio + 1.0).fma(-centre, x));
    let ratio = inverse.fma(left, ratio);
    let quotient = ratio.polynomial(&ERROR_TAIL) * inverse;
    let scaled = power_of_2(exponent);
    let times = scaled.power * quotient;
    let times = factor.map_or(times, |factor| times * factor);
    let [result] = (!is_normal(exponent.head - 8.0)).rarely([scaled.normal(times)], || [scaled.any(times)]);
    result
}

pub(crate) fn complementary_error(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::functions::complementary_error(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| {
        let size = x.absolute().minimum(x.either(10.3, 27.4));
        let exponent = in_powers_of_2(Pair::product(size, size), -1.0);
        let tail = tail(size, exponent, None);
        x.unless_nan(x.is_negative().select(x.constant(2.0) - tail, tail))
    })
}

/// x Φ(x), where Φ(x) = erfc(-x / sqrt(2)) / 2, which is accurate for negative x too.
pub(crate) fn gelu(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::functions::gelu(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| {
        let most = x.either(14.5, 38.7);
        let held = x.maximum(-most).minimum(most);
        let exponent = in_powers_of_2(Pair::product(held, held), -0.5);
        // Of positive x the other tail is taken off.
        let tail = tail(held.absolute() * FRAC_1_SQRT_2, exponent, Some(held.absolute() * 0.5));
        let above = x - tail;
        let result = x.is_negative().select(-tail, above);
        x.unless_nan(result)
    })
}

/// x / (1 + e^-u) with u = 2 sqrt(2/π) (x + 0.044715 x³), kept as the sum of two numbers.
pub(crate) fn gelu_tanh(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::functions::gelu_tanh(program, dtype, operands);
    }
    // -2 sqrt(2/π) log2(e), and the same with 0.044715.
    const FIRST: (f64, f64) = (-2.302_208_198_144_324_8, -1.313_282_604_076_971_2e-16);
    const THIRD: (f64, f64) = (-0.102_943_239_580_023_5, 5.978_177_400_718_744e-18);
    real(program, dtype, operands, |[x]| {
        let size = x.absolute().minimum(x.either(11.5, 23.0));
        let (first, third) = (exactly(x, FIRST.0, FIRST.1), exactly(x, THIRD.0, THIRD.1));
        let square = Pair::product(size, size);
        let cubic = Pair::product(square.head, third.head);
        let cubic_rest = square.rest.fma(third.head, square.head.fma(third.rest, cubic.rest));
        let sum = Pair::any_sum(cubic.head, first.head);
        let sum = Pair { rest: sum.rest + (first.rest + cubic_rest), ..sum };
        let exponent = sum.times(size);
        let scaled = power_of_2(exponent);
        let negative = x.is_negative();
        let bounded = negative.select(-size, x);
        let power = scaled.normal(scaled.power);
        let above = bounded * negative.select(power, 1.0);
        let [result] = (!is_normal(exponent.head))
            .rarely([above / (power + 1.0)], || [negative.select(scaled.any(scaled.power * bounded), x)]);
        x.unless_nan(result)
    })
}
