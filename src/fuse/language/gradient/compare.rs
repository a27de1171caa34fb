//! Derivatives of minima, maxima and selections.

use super::super::graph::Expr;
use super::arithmetic::zero_if;
use super::{Derivation, OperandGradients, binary, ternary};

/// Gives the gradient to the operand that is the result, half to each of two equal ones. NaN passes it to both.
fn extreme<'g>(d: Derivation<'g>, first_loses: Expr<'g>, second_loses: Expr<'g>) -> OperandGradients<'g> {
    let shared = d.x().eq(d.y()).choose(d.gradient * 0.5, d.gradient);
    binary(zero_if(first_loses, shared), zero_if(second_loses, shared))
}

pub(crate) fn minimum(d: Derivation<'_>) -> OperandGradients<'_> {
    extreme(d, d.x().gt(d.y()), d.x().lt(d.y()))
}

pub(crate) fn maximum(d: Derivation<'_>) -> OperandGradients<'_> {
    extreme(d, d.x().lt(d.y()), d.x().gt(d.y()))
}

/// Gives the gradient to the first operand if it is the result, or to the second.
fn number_extreme<'g>(d: Derivation<'g>, first_wins: Expr<'g>) -> OperandGradients<'g> {
    let first = first_wins.logical_or(d.y().is_nan());
    binary(first.choose(d.gradient, 0.0), zero_if(first, d.gradient))
}

pub(crate) fn fmin(d: Derivation<'_>) -> OperandGradients<'_> {
    number_extreme(d, d.x().le(d.y()))
}

pub(crate) fn fmax(d: Derivation<'_>) -> OperandGradients<'_> {
    number_extreme(d, d.x().ge(d.y()))
}

/// The operand within the bounds, bounds included; below it the lower bound, if that is the smaller one; and
/// the upper bound otherwise.
pub(crate) fn clamp<'g>(d: Derivation<'g>) -> OperandGradients<'g> {
    let (x, low, high) = (d.x(), d.y(), d.z());
    let is_inside = x.ge(low).logical_and(x.le(high));
    let is_low = x.lt(low).logical_and(low.lt(high));
    let is_high = x.gt(high).logical_or(high.lt(low));
    let given = |condition: Expr<'g>| condition.choose(d.gradient, 0.0);
    ternary(given(is_inside), given(is_low), given(is_high))
}

/// The condition has no gradient.
pub(crate) fn choose(d: Derivation<'_>) -> OperandGradients<'_> {
    [None, Some(d.x().choose(d.gradient, 0.0)), Some(zero_if(d.x(), d.gradient))]
}
