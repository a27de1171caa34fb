//! Derivatives of the error functions and the gelus.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use super::{Derivation, OperandGradients, bounded, unary};

/// 2/sqrt(π) e^(-x²).
pub(crate) fn erf(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(d.gradient * (-(d.x() * d.x())).exp() * FRAC_2_SQRT_PI)
}

pub(crate) fn erfc(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(d.gradient * (-(d.x() * d.x())).exp() * -FRAC_2_SQRT_PI)
}

/// Φ(x) + x φ(x), with Φ by `erfc`, which is accurate for negative x.
pub(crate) fn gelu(d: Derivation<'_>) -> OperandGradients<'_> {
    let x = bounded(d.x());
    let distribution = (x * -FRAC_1_SQRT_2).erfc() * 0.5;
    let density = (x * x * -0.5).exp() * (FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * 0.5);
    unary(d.gradient * (distribution + x * density))
}

/// s (1 + 2 x (1 - s) u') with u = sqrt(2/π) (x + 0.044715 x³) and s = (1 + tanh u) / 2 = sigmoid(2 u).
pub(crate) fn gelu_tanh(d: Derivation<'_>) -> OperandGradients<'_> {
    const SCALE: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
    const CUBIC: f64 = 0.044715;
    let x = bounded(d.x());
    let square = x * x;
    let s = (x * (square * CUBIC + 1.0) * (2.0 * SCALE)).sigmoid();
    let inner = (square * (3.0 * CUBIC) + 1.0) * (2.0 * SCALE);
    unary(d.gradient * s * (x * (1.0 - s) * inner + 1.0))
}
