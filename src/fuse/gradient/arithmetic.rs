//! Derivatives of sums, products, roots and roundings.

use super::super::graph::Expr;
use super::{Derivation, OperandGradients, one, three, two};

pub(crate) fn add(d: Derivation<'_>) -> OperandGradients<'_> {
    two(d.gradient, d.gradient)
}

pub(crate) fn subtract(d: Derivation<'_>) -> OperandGradients<'_> {
    two(d.gradient, -d.gradient)
}

pub(crate) fn multiply(d: Derivation<'_>) -> OperandGradients<'_> {
    two(d.gradient * d.y().conj(), d.gradient * d.x().conj())
}

pub(crate) fn negate(d: Derivation<'_>) -> OperandGradients<'_> {
    one(-d.gradient)
}

/// |x|' is the sign of x, which is 0 at 0; for a complex x it is x / |x|.
pub(crate) fn absolute(d: Derivation<'_>) -> OperandGradients<'_> {
    one(d.x().sign() * d.gradient)
}

/// The sign of a real number is constant between jumps. For s = x / |x| of a complex x, a change of x along s
/// leaves s unchanged: (g - s Re(s* g)) / |x|.
pub(crate) fn sign(d: Derivation<'_>) -> OperandGradients<'_> {
    if !d.is_complex() {
        return [None; 3];
    }
    let magnitude = d.x().abs();
    let along = (d.result.conj() * d.gradient).real();
    one(zero_if(magnitude.eq(0.0), (d.gradient - d.result * along) / magnitude))
}

pub(crate) fn square_root(d: Derivation<'_>) -> OperandGradients<'_> {
    one(d.gradient / (d.result.conj() * 2.0))
}

pub(crate) fn reciprocal_square_root(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.result * d.result * d.result * -0.5)
}

pub(crate) fn square(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.x() * 2.0)
}

/// Passes the gradient to the first operand.
pub(crate) fn pass(d: Derivation<'_>) -> OperandGradients<'_> {
    one(d.gradient)
}

/// A result of NaN passes the gradient, as in PyTorch.
pub(crate) fn relu(d: Derivation<'_>) -> OperandGradients<'_> {
    one(zero_if(d.result.le(0.0), d.gradient))
}

pub(crate) fn multiply_add(d: Derivation<'_>) -> OperandGradients<'_> {
    three(d.gradient * d.y(), d.gradient * d.x(), d.gradient)
}

pub(crate) fn interpolate(d: Derivation<'_>) -> OperandGradients<'_> {
    let along = d.gradient * d.z();
    three(d.gradient - along, along, d.gradient * (d.y() - d.x()))
}

/// 0 at 0, where the sign of the result says nothing about x.
pub(crate) fn copysign(d: Derivation<'_>) -> OperandGradients<'_> {
    one(zero_if(d.x().eq(0.0), d.gradient * d.result.sign() * d.x().sign()))
}

pub(crate) fn hypotenuse(d: Derivation<'_>) -> OperandGradients<'_> {
    two(d.gradient * (d.x() / d.result), d.gradient * (d.y() / d.result))
}

pub(crate) fn radians(d: Derivation<'_>) -> OperandGradients<'_> {
    one(d.gradient.radians())
}

pub(crate) fn degrees(d: Derivation<'_>) -> OperandGradients<'_> {
    one(d.gradient.degrees())
}

/// Returns 0 if the condition is true, otherwise the value.
pub(super) fn zero_if<'g>(condition: Expr<'g>, value: Expr<'g>) -> Expr<'g> {
    condition.choose(0.0, value)
}
