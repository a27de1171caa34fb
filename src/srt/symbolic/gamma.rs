//! The gamma function in f64 as a fused expression, within about 1e-14 of Γ.
//!
//! ```text
//! Γ(w) = √(2π) w^(w - 1/2) e^-w exp(1/(12w) - 1/(360w³) + …)       w ≥ 10, Stirling's series
//! Γ(y) = Γ(y + 10) / (y (y + 1) … (y + 9))                          0 ≤ y < 10
//! Γ(x) = π / (sin(πx) Γ(1 - x))                                     x < 0
//! ```
//!
//! e^lgamma(x) would have the absolute error of the logarithm, 5e-13 near the largest argument. The power is the product
//! of its two halves, because w^(w - 1/2) overflows where Γ does not.

use std::f64::consts::PI;

use crate::fuse::Expr;

const SHIFT: f64 = 10.0;
/// An argument whose Γ is infinite, while each half of its power is not.
const INFINITE_FROM: f64 = 200.0;
const SQRT_2_PI: f64 = 2.506_628_274_631_000_7;
/// The series in 1/w², highest power first: B(2k) / (2k (2k - 1)).
const STIRLING: [f64; 7] =
    [1.0 / 156.0, -691.0 / 360_360.0, 1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0];

/// Γ of numbers from 10.
fn stirling(w: Expr<'_>) -> Expr<'_> {
    let w = w.minimum(INFINITE_FROM);
    let inverse = w.reciprocal();
    let square = inverse * inverse;
    let [first, rest @ ..] = STIRLING;
    let series = rest.into_iter().fold(square * 0.0 + first, |sum, term| sum * square + term) * inverse;
    let half = w.pow((w - 0.5) * 0.5);
    half * (-w).exp() * series.exp() * SQRT_2_PI * half
}

/// Γ(x): infinite at 0 with its sign and from 171.7, NaN at negative integers and at -∞.
pub(super) fn gamma(x: Expr<'_>) -> Expr<'_> {
    let is_negative = x.lt(0.0);
    let y = is_negative.choose(x * -1.0 + 1.0, x);
    let is_small = y.lt(SHIFT);
    let above = stirling(is_small.choose(y + SHIFT, y));
    let product = (1..10).fold(y, |product, step| product * (y + f64::from(step)));
    let positive = is_small.choose(above / product, above);
    let whole = x.round();
    let rest = x - whole;
    let half = whole * 0.5;
    let sine = (rest * PI).sin();
    let sine = half.floor().eq(half).choose(sine, -sine);
    let reflected = rest.eq(0.0).choose(f64::NAN, (sine * positive).reciprocal() * PI);
    is_negative.choose(reflected, positive)
}
