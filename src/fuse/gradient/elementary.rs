//! Derivatives of exponentials, logarithms, hyperbolic functions and activations made of them.

use std::f64::consts::{LN_2, LN_10};

use super::{Derivation, OperandGradients, one, one_minus_square};

pub(crate) fn exponential(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.result)
}

pub(crate) fn exponential_of_2(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.result * LN_2)
}

pub(crate) fn exponential_less_1(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.result + 1.0)
}

pub(crate) fn logarithm(d: Derivation<'_>) -> OperandGradients<'_> {
    one(d.gradient / d.x().conj())
}

pub(crate) fn logarithm_to_2(d: Derivation<'_>) -> OperandGradients<'_> {
    one(d.gradient / (d.x().conj() * LN_2))
}

pub(crate) fn logarithm_to_10(d: Derivation<'_>) -> OperandGradients<'_> {
    one(d.gradient / (d.x().conj() * LN_10))
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

pub(crate) fn hyperbolic_tangent(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(one_minus_square(d.result))
}

pub(crate) fn inverse_hyperbolic_sine(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times((d.x() * d.x() + 1.0).rsqrt())
}

/// 1 / (sqrt(x - 1) sqrt(x + 1)): one root of the product has the wrong sign in the left half plane.
pub(crate) fn inverse_hyperbolic_cosine(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times((d.x() - 1.0).rsqrt() * (d.x() + 1.0).rsqrt())
}

pub(crate) fn inverse_hyperbolic_tangent(d: Derivation<'_>) -> OperandGradients<'_> {
    one(d.gradient / one_minus_square(d.x()).conj())
}

pub(crate) fn sigmoid(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.result * (1.0 - d.result))
}

/// s (1 + x (1 - s)) with s = sigmoid(x).
pub(crate) fn silu(d: Derivation<'_>) -> OperandGradients<'_> {
    let s = d.x().sigmoid();
    one(d.gradient * s * (d.x() * (1.0 - s) + 1.0))
}

pub(crate) fn softplus(d: Derivation<'_>) -> OperandGradients<'_> {
    one(d.gradient * d.x().sigmoid())
}
