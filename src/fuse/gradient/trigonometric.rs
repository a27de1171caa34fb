//! Derivatives of trigonometric functions and their inverses.

use std::f64::consts::PI;

use super::{Derivation, OperandGradients, one, one_minus_square, two};

pub(crate) fn sine(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.x().cos())
}

pub(crate) fn cosine(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(-d.x().sin())
}

pub(crate) fn tangent(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.result * d.result + 1.0)
}

pub(crate) fn arc_sine(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(one_minus_square(d.x()).rsqrt())
}

pub(crate) fn arc_cosine(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(-one_minus_square(d.x()).rsqrt())
}

pub(crate) fn arc_tangent(d: Derivation<'_>) -> OperandGradients<'_> {
    one(d.gradient / (d.x() * d.x() + 1.0).conj())
}

/// For the angle of the point (y, x): x / r² and -y / r². Dividing twice by r avoids an overflow of r².
pub(crate) fn arc_tangent_2(d: Derivation<'_>) -> OperandGradients<'_> {
    let radius = d.x().hypot(d.y());
    let slope = d.gradient / radius;
    two(slope * (d.y() / radius), -(slope * (d.x() / radius)))
}

/// π (t cos t - sin t) / t² with t = πx. Below 1/2 the difference cancels, and the Taylor series
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
    let direct = (t * t.cos() - t.sin()) / square;
    one(d.gradient * t.abs().lt(0.5).choose(series * t, direct) * PI)
}
