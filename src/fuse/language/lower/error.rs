//! The error function and functions derived from it.
//!
//! erfc(x) for positive x is e^(-x²) P(u) / (x + c) with u = x / (x + c), where one polynomial covers the
//! range from 0 to the point at which erfc vanishes (after M. M. Shepherd and J. G. Laframboise, "Chebyshev
//! approximation of (1+2x) exp(x²) erfc x", Mathematics of Computation 36, 1981). Vanishing results are
//! computed scaled by 2^32 (f32) or 2^64, so that no intermediate is subnormal and only the last operation
//! rounds there.

use super::coefficients::{ERROR_FAR, ERROR_NEAR, ERROR_TAIL, EXPONENTIAL};
use super::logarithmic::LN_2_LO;
use super::power::{DoubleWord, power_of_2, times_power_of_2};
use super::reciprocal::reciprocal;
use super::term::{Term, real};
use super::{Precision, half_precision};
use crate::fuse::ir::program::{Program, ValueParts};
use crate::types::DType;

use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

pub(crate) fn erf(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::functions::erf(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| {
        let size = x.absolute();
        let square = x * x;
        let near = x.fma(square.polynomial(&ERROR_NEAR), x);
        // 1 - 2^P(|x| - 1); beyond its limit it is 1.
        let above = size.minimum(x.by_precision(4.0, 6.0)) - 1.0;
        let exponent = above.polynomial(&ERROR_FAR);
        let scaled = power_of_2(DoubleWord { hi: exponent, lo: x.constant(0.0) });
        let far = (x.constant(1.0) - scaled.normal(scaled.power)).with_sign(x);
        x.constant(1.0).less_equal(size).select(far, near)
    })
}

/// Returns the scale of vanishing numbers up to the last operation, or its inverse for `sign` -1.
fn raised(like: Term<'_>, sign: i32) -> f64 {
    2f64.powi(sign * if like.is_double() { 64 } else { 32 })
}

/// The argument of e^(-rate · argument) as n periods of ln 2 / rate and a rest.
struct Decay<'p> {
    /// A number with -n in its last bits.
    shifted: Term<'p>,
    /// n periods without the last bits of each, exact, and the missing part.
    whole: Term<'p>,
    missing: Term<'p>,
    rate: f64,
}

impl<'p> Decay<'p> {
    /// Reduces the argument x · y. `beyond` is the period minus its nearest f64.
    fn new([x, y]: [Term<'p>; 2], rate: f64, period: f64, beyond: f64) -> Decay<'p> {
        // So few bits that n times as much is exact.
        let (rounding_constant, head) = if x.is_double() {
            (1.5 * 2f64.powi(52), f64::from_bits(period.to_bits() & !0x7ff))
        } else {
            (1.5 * 2f64.powi(23), f64::from(f32::from_bits((period as f32).to_bits() & !0xff)))
        };
        let shifted = (x * (-1.0 / period)).fma(y, rounding_constant);
        let whole = shifted.fma(-head, rounding_constant * head);
        Decay { shifted, whole, missing: x.constant(((period - head) + beyond) / head), rate }
    }

    /// Returns times · e^(-rate · argument), for the part of the argument beyond `whole`.
    fn of(&self, rest: Term<'p>, times: Term<'p>) -> Term<'p> {
        let rest = (-self.whole).fma(self.missing, rest);
        let powers = EXPONENTIAL.of(rest).iter().zip(1..);
        let series: Vec<f64> = powers.map(|(&coefficient, k)| coefficient * (-self.rate).powi(k)).collect();
        let power = times.fma(rest.series(&series) * rest, times);
        times_power_of_2(power, self.shifted)
    }
}

/// Returns times · e^(-rate · x²), for a rate that is a power of 2.
fn bell<'p>(x: Term<'p>, rate: f64, times: Term<'p>) -> Term<'p> {
    let decay = Decay::new([x, x], rate, LN_2 / rate, LN_2_LO / rate);
    // x² itself is not rounded.
    decay.of(x.fma(x, -decay.whole), times)
}

/// For |x| · scale: P(u), scaled, u, and scale / (|x| · scale + c).
struct Tail<'p> {
    series: Term<'p>,
    share: Term<'p>,
    inverse: Term<'p>,
}

impl<'p> Tail<'p> {
    fn new(x: Term<'p>, scale: f64) -> Tail<'p> {
        let size = x.absolute();
        let inverse = reciprocal(size + x.by_precision(1.75 / scale, 4.0 / scale));
        let share = size * inverse;
        let series: Vec<f64> = ERROR_TAIL.of(x).iter().map(|term| term * raised(x, 1)).collect();
        // A long series loses least around its middle.
        let of = if x.is_double() { share - 0.5 } else { share };
        Tail { series: of.series(&series), share, inverse }
    }
}

pub(crate) fn erfc(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::functions::erfc(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| {
        let Tail { series, inverse, .. } = Tail::new(x, 1.0);
        let tail = bell(x, 1.0, series * inverse);
        let (negative, unit) = (x.is_negative(), raised(x, -1));
        let usual = negative.select(tail.fma(-unit, x.constant(2.0)), tail * unit);
        let is_near = x.absolute().less(x.by_precision(10.25, 27.25));
        let [result] = (!is_near).rarely([usual], || [x.unless_nan(negative.select(x.constant(2.0), 0.0))]);
        result
    })
}

/// Returns x for positive x and -0 otherwise, minus a share of a scaled tail up to where that vanishes; NaN
/// for NaN.
fn rectified<'p>(x: Term<'p>, tail: Term<'p>, share: f64, limit: Term<'p>) -> Term<'p> {
    let above = if x.is_double() { x.is_negative().select(x.constant(-0.0), x) } else { x.maximum(-0.0) };
    let usual = tail.fma(-share * raised(x, -1), above);
    let [result] = (!x.absolute().less(limit)).rarely([usual], || [x.unless_nan(above)]);
    result
}

/// Returns x Φ(x) with Φ(x) = erfc(-x / sqrt(2)) / 2, which is accurate for negative x too. For positive x it
/// subtracts the other tail.
pub(crate) fn gelu(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::functions::gelu(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| {
        // |x| Φ(-|x|) = e^(-x²/2) u P(u) / sqrt(2), with the u and P(u) of |x| / sqrt(2).
        let Tail { series, share, .. } = Tail::new(x, FRAC_1_SQRT_2);
        let tail = bell(x, 0.5, series * share);
        rectified(x, tail, FRAC_1_SQRT_2, x.by_precision(14.5, 38.6))
    })
}

/// Returns x / (1 + e^-u) with u = 2 sqrt(2/π) (x + 0.044715 x³).
pub(crate) fn gelu_tanh(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::functions::gelu_tanh(program, dtype, operands);
    }
    // u = rate · x (x² + 1 / 0.044715), and ln 2 / rate.
    const RATE: f64 = 0.071_354_816_272_600_25;
    const PERIOD: (f64, f64) = (9.714_091_028_023_697, -8.542_374_041_797_814e-16);
    // 1 / 0.044715 in two parts. The first has so few bits that subtracting it from the sum is exact.
    const SINGLE: (f64, f64) = (22.363_845_825_195_312, 1.417_704_107_350_022_4e-5);
    const DOUBLE: (f64, f64) = (22.363_860_002_236_38, 7.068_084_733_670_861e-15);
    real(program, dtype, operands, |[x]| {
        let size = x.absolute();
        let added = x.by_precision(SINGLE.0, DOUBLE.0);
        let sum = x.fma(x, added);
        let lost = x.fma(x, -(sum - added)) + x.by_precision(SINGLE.1, DOUBLE.1);
        let decay = Decay::new([size, sum], RATE, PERIOD.0, PERIOD.1);
        let rest = size.fma(lost, size.fma(sum, -decay.whole));
        let power = decay.of(rest, x.constant(raised(x, 1)));
        // x minus |x| e^-|u| / (1 + e^-|u|); for negative x only the second term.
        let tail = (size * power) * reciprocal(power.fma(raised(x, -1), 1.0));
        rectified(x, tail, 1.0, x.by_precision(10.8, 21.57))
    })
}
