//! Derivatives of exponentials, logarithms, hyperbolic functions and activations made of them.

use std::f64::consts::{LN_2, LOG2_E, LOG10_E};

use super::{Derivation, OperandGradients, bounded, one, one_minus_square, rotated};

pub(crate) fn exponential(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.result)
}

pub(crate) fn exponential_of_2(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.result * LN_2)
}

pub(crate) fn exponential_less_1(d: Derivation<'_>) -> OperandGradients<'_> {
    // Not by the result, which has none of its digits for a very negative x.
    d.times(d.x().exp())
}

pub(crate) fn logarithm(d: Derivation<'_>) -> OperandGradients<'_> {
    one(d.gradient / d.x().conj())
}

pub(crate) fn logarithm_to_2(d: Derivation<'_>) -> OperandGradients<'_> {
    one(d.gradient * LOG2_E / d.x().conj())
}

pub(crate) fn logarithm_to_10(d: Derivation<'_>) -> OperandGradients<'_> {
    // Ten times x may overflow.
    one(d.gradient * LOG10_E / d.x().conj())
}

pub(crate) fn logarithm_of_1_plus(d: Derivation<'_>) -> OperandGradients<'_> {
    one(d.gradient / (d.x() + 1.0))
}

pub(crate) fn hyperbolic_sine(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.x().cosh())
}

pub(crate) fn hyperbolic_cosine(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.x().sinh())
}

/// 1 - tanh², and for real numbers 4 σ(2x) σ(-2x), because a result near 1 lacks the digits.
pub(crate) fn hyperbolic_tangent(d: Derivation<'_>) -> OperandGradients<'_> {
    if d.is_complex() {
        return d.times(one_minus_square(d.result));
    }
    let double = d.x() * 2.0;
    one(d.gradient * (double.sigmoid() * (-double).sigmoid() * 4.0))
}

/// 1 / sqrt(1 + x²); for complex numbers the root is of (1 + ix) and (1 - ix), which has the branch cuts of the function.
pub(crate) fn inverse_hyperbolic_sine(d: Derivation<'_>) -> OperandGradients<'_> {
    if d.is_complex() {
        let [plus, minus] = rotated(d.x());
        return d.times(plus.rsqrt() * minus.rsqrt());
    }
    one(d.gradient / d.x().hypot(1.0))
}

/// 1 / (sqrt(x - 1) sqrt(x + 1)): one root of the product has the wrong sign in the left half plane.
pub(crate) fn inverse_hyperbolic_cosine(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times((d.x() - 1.0).rsqrt() * (d.x() + 1.0).rsqrt())
}

pub(crate) fn inverse_hyperbolic_tangent(d: Derivation<'_>) -> OperandGradients<'_> {
    if d.is_complex() {
        return one(d.gradient / (d.x() + 1.0).conj() / (-d.x() + 1.0).conj());
    }
    one(d.gradient / one_minus_square(d.x()))
}

/// s (1 - s), and for real numbers σ(x) σ(-x), because a result near 1 lacks the digits.
pub(crate) fn sigmoid(d: Derivation<'_>) -> OperandGradients<'_> {
    if d.is_complex() {
        return d.times(d.result * (1.0 - d.result));
    }
    one(d.gradient * (d.x().sigmoid() * (-d.x()).sigmoid()))
}

/// s (1 + x (1 - s)) with s = sigmoid(x).
pub(crate) fn silu(d: Derivation<'_>) -> OperandGradients<'_> {
    let x = bounded(d.x());
    let s = x.sigmoid();
    one(d.gradient * s * (x * (1.0 - s) + 1.0))
}

pub(crate) fn softplus(d: Derivation<'_>) -> OperandGradients<'_> {
    one(d.gradient * d.x().sigmoid())
}
