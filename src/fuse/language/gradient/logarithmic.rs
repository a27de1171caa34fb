//! Derivatives of logarithms, of functions with a logarithm of two operands, and of `logit`.

use std::f64::consts::{LOG2_E, LOG10_E};

use super::super::graph::Expr;
use super::arithmetic::zero_if;
use super::{Derivation, OperandGradients, binary, unary};

pub(crate) fn log(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(d.gradient / d.x().conj())
}

pub(crate) fn log2(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(d.gradient * LOG2_E / d.x().conj())
}

pub(crate) fn log10(d: Derivation<'_>) -> OperandGradients<'_> {
    // Ten times x may overflow.
    unary(d.gradient * LOG10_E / d.x().conj())
}

pub(crate) fn log1p(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(d.gradient / (d.x() + 1.0))
}

/// NaN beyond 0 and 1, as the result.
pub(crate) fn logit(d: Derivation<'_>) -> OperandGradients<'_> {
    let slope = d.gradient / (d.x() * (1.0 - d.x()));
    unary(d.result.is_nan().choose(d.result, slope))
}

/// The share of each operand's exponential in the sum: half of equal ones, infinities included.
pub(crate) fn log_add_exp(d: Derivation<'_>) -> OperandGradients<'_> {
    let difference = zero_if(d.x().eq(d.y()), d.x() - d.y());
    binary(d.gradient * difference.sigmoid(), d.gradient * (-difference).sigmoid())
}

/// The gradients of x ln(y) at y = `argument`: both are 0 for x of 0 and `argument` of at most 0, where the function is 0.
fn by<'g>(d: Derivation<'g>, logarithm: Expr<'g>, argument: Expr<'g>) -> OperandGradients<'g> {
    let is_zero = d.x().eq(0.0).logical_and(argument.le(0.0));
    binary(zero_if(is_zero, d.gradient * logarithm), zero_if(is_zero, d.gradient * d.x() / argument))
}

pub(crate) fn xlogy(d: Derivation<'_>) -> OperandGradients<'_> {
    by(d, d.y().log(), d.y())
}

pub(crate) fn xlog1py(d: Derivation<'_>) -> OperandGradients<'_> {
    by(d, d.y().log1p(), d.y() + 1.0)
}
