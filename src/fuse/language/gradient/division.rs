//! Derivatives of quotients and remainders.

use super::{Derivation, OperandGradients, binary, unary};

pub(crate) fn div(d: Derivation<'_>) -> OperandGradients<'_> {
    let numerator = d.gradient / d.y().conj();
    // The reciprocal of a subnormal divisor overflows where its product with the result does not.
    let of_small = d.gradient * (d.result / d.y()).conj();
    let product = numerator.is_infinite().choose(of_small, numerator * d.result.conj());
    binary(numerator, -product)
}

pub(crate) fn reciprocal(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(-(d.gradient * d.result.conj() * d.result.conj()))
}

/// x - y floor(x / y) between its jumps.
pub(crate) fn remainder(d: Derivation<'_>) -> OperandGradients<'_> {
    binary(d.gradient, -(d.gradient * d.x().floor_divide(d.y())))
}

/// x - y trunc(x / y) between its jumps.
pub(crate) fn fmod(d: Derivation<'_>) -> OperandGradients<'_> {
    binary(d.gradient, -(d.gradient * d.x().trunc_divide(d.y())))
}
