//! Derivatives of trigonometric functions and their inverses.

use std::f64::consts::PI;

use super::super::graph::Expr;
use super::arithmetic::{Polar, zero_if};
use super::{Derivation, OperandGradients, binary, one_minus_square, rotated, unary};

pub(crate) fn sin(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.x().cos())
}

pub(crate) fn cos(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(-d.x().sin())
}

pub(crate) fn tan(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.result * d.result + 1.0)
}

pub(crate) fn asin(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(arc_sine_slope(d))
}

pub(crate) fn acos(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(-arc_sine_slope(d))
}

/// 1 / sqrt(1 - x²). The roots of the factors of complex numbers have the branch cuts of the function.
fn arc_sine_slope(d: Derivation<'_>) -> Expr<'_> {
    match d.is_complex() {
        true => (d.x() + 1.0).rsqrt() * (-d.x() + 1.0).rsqrt(),
        false => one_minus_square(d.x()).rsqrt(),
    }
}

/// 1 / (1 + x²) as two quotients, because the square may overflow.
pub(crate) fn atan(d: Derivation<'_>) -> OperandGradients<'_> {
    if d.is_complex() {
        let [plus, minus] = rotated(d.x());
        return unary(d.gradient / plus.conj() / minus.conj());
    }
    let length = d.x().hypot(1.0);
    unary(d.gradient / length / length)
}

/// For the angle of the point (y, x): x / r² and -y / r², 0 at the origin.
pub(crate) fn atan2(d: Derivation<'_>) -> OperandGradients<'_> {
    let [along_x, along_y] = Polar::new(d.y(), d.x()).over_length(d.gradient);
    binary(along_x, -along_y)
}

/// (cos t - sin(t) / t) / x with t = πx, whose sine and cosine are those of x less its nearest integer. Below 1/2 the difference cancels, and the Taylor series
/// Σ (-1)^k 2k t^(2k-1) / (2k+1)! takes its place.
pub(crate) fn sinc(d: Derivation<'_>) -> OperandGradients<'_> {
    const TERMS: usize = 8;
    let t = d.x() * PI;
    let square = t * t;
    let (mut factorial, mut coefficients) = (1.0, [0.0; TERMS]);
    for (index, coefficient) in coefficients.iter_mut().enumerate() {
        let order = 2.0 * (index + 1) as f64;
        factorial *= order * (order + 1.0);
        *coefficient = if index % 2 == 0 { -order } else { order } / factorial;
    }
    let mut series = square * coefficients[TERMS - 1] + coefficients[TERMS - 2];
    for coefficient in coefficients.into_iter().rev().skip(2) {
        series = series * square + coefficient;
    }
    let nearest = d.x().round();
    let rest = (d.x() - nearest) * PI;
    let is_even = nearest.eq((nearest * 0.5).floor() * 2.0);
    let difference = rest.cos() - rest.sin() / t;
    let direct = is_even.choose(difference, -difference) / d.x();
    let direct = zero_if(d.x().is_infinite(), direct);
    unary(d.gradient * t.abs().lt(0.5).choose(series * t * PI, direct))
}
