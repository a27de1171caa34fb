//! Derivatives of exponentials, hyperbolic functions and activations made of them.

use std::f64::consts::LN_2;

use super::{Derivation, OperandGradients, bounded, one_minus_square, rotated, unary};

pub(crate) fn exp(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.result)
}

pub(crate) fn exp2(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.result * LN_2)
}

pub(crate) fn expm1(d: Derivation<'_>) -> OperandGradients<'_> {
    // Not by the result, which has none of its digits for a very negative x.
    d.times(d.x().exp())
}

pub(crate) fn sinh(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.x().cosh())
}

pub(crate) fn cosh(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.x().sinh())
}

/// 1 - tanh², and for real numbers 4 σ(2x) σ(-2x), because a result near 1 lacks the digits.
pub(crate) fn tanh(d: Derivation<'_>) -> OperandGradients<'_> {
    if d.is_complex() {
        return d.times(one_minus_square(d.result));
    }
    let double = d.x() * 2.0;
    unary(d.gradient * (double.sigmoid() * (-double).sigmoid() * 4.0))
}

/// 1 / sqrt(1 + x²); for complex numbers the root is of (1 + ix) and (1 - ix), which has the branch cuts of the function.
pub(crate) fn asinh(d: Derivation<'_>) -> OperandGradients<'_> {
    if d.is_complex() {
        let [plus, minus] = rotated(d.x());
        return d.times(plus.rsqrt() * minus.rsqrt());
    }
    unary(d.gradient / d.x().hypot(1.0))
}

/// 1 / (sqrt(x - 1) sqrt(x + 1)): one root of the product has the wrong sign in the left half plane.
pub(crate) fn acosh(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times((d.x() - 1.0).rsqrt() * (d.x() + 1.0).rsqrt())
}

pub(crate) fn atanh(d: Derivation<'_>) -> OperandGradients<'_> {
    if d.is_complex() {
        return unary(d.gradient / (d.x() + 1.0).conj() / (-d.x() + 1.0).conj());
    }
    unary(d.gradient / one_minus_square(d.x()))
}

/// s (1 - s), and for real numbers σ(x) σ(-x), because a result near 1 lacks the digits.
pub(crate) fn sigmoid(d: Derivation<'_>) -> OperandGradients<'_> {
    if d.is_complex() {
        return d.times(d.result * (1.0 - d.result));
    }
    unary(d.gradient * (d.x().sigmoid() * (-d.x()).sigmoid()))
}

/// s (1 + x (1 - s)) with s = sigmoid(x).
pub(crate) fn silu(d: Derivation<'_>) -> OperandGradients<'_> {
    let x = bounded(d.x());
    let s = x.sigmoid();
    unary(d.gradient * s * (x * (1.0 - s) + 1.0))
}

pub(crate) fn softplus(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(d.gradient * d.x().sigmoid())
}
