//! The derivative of `lgamma`, the digamma function.

use std::f64::consts::PI;

use super::super::graph::Expr;
use super::{Derivation, OperandGradients, unary};

/// The number of steps of ψ(x) = ψ(x + 1) - 1/x, after which the series holds.
const STEPS: usize = 8;

/// Bernoulli numbers B(2k) / 2k for k from 1, the coefficients of the series in 1/x².
const COEFFICIENTS: [f64; 7] =
    [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0];

/// ψ(x): the asymptotic series ln y - 1/(2y) - Σ B(2k) / (2k y^2k) at y = x + 8 and the recurrence (Abramowitz
/// and Stegun 6.3.18, 6.3.6); below 1/2 by ψ(1 - x) - π / tan(πx). As in PyTorch, a zero's sign is its side of the pole, and
/// the other poles give NaN.
fn digamma(x: Expr<'_>) -> Expr<'_> {
    let is_reflected = x.lt(0.5);
    let start = is_reflected.choose(1.0 - x, x);
    let mut steps = start.reciprocal();
    for step in 1..STEPS {
        steps = steps + (start + step as f64).reciprocal();
    }
    let y = start + STEPS as f64;
    let inverse = y.reciprocal();
    let inverse_square = inverse * inverse;
    let mut series = inverse_square * COEFFICIENTS[COEFFICIENTS.len() - 1];
    for coefficient in COEFFICIENTS.into_iter().rev().skip(1) {
        series = (series + coefficient) * inverse_square;
    }
    let value = y.log() - inverse * 0.5 - series - steps;
    // The tangent has period 1 in x, and x less its nearest integer is exact.
    let fraction = x.eq(0.0).choose(x, x - x.round());
    let reflection = (fraction * PI).tan().reciprocal() * PI;
    // A pole below 0 has no side.
    let is_pole = fraction.eq(0.0).logical_and(x.lt(0.0));
    is_pole.choose(f64::NAN, is_reflected.choose(value - reflection, value))
}

pub(crate) fn lgamma(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(d.gradient * digamma(d.x()))
}
