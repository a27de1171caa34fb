//! Derivatives of powers and the cube root.

use super::{Derivation, OperandGradients, binary, unary};

/// y x^(y - 1), 0 for y of 0 or a power of 0; and x^y ln(x), 0 for x of 0 with y of at least 0 and for an infinite x with a
/// negative y.
pub(crate) fn pow(d: Derivation<'_>) -> OperandGradients<'_> {
    let (x, y) = (d.x(), d.y());
    // Literals count towards the operands of an expression, which derivatives of high order come close to the limit of.
    let zero = x.graph().number(0, x.dtype());
    let (exponent, none) = if d.is_complex() { (y.real(), zero.real()) } else { (y, zero) };
    let power = x.pow(y - 1.0);
    let is_zero = y.eq(zero).logical_or(power.eq(zero));
    let base = is_zero.choose(zero, d.gradient * (y * power).conj());
    let at_zero = x.eq(zero).logical_and(exponent.ge(none));
    let at_infinity = x.eq(f64::INFINITY).logical_and(exponent.lt(none));
    let is_zero = at_zero.logical_or(at_infinity);
    binary(base, is_zero.choose(zero, d.gradient * (d.result * x.log()).conj()))
}

pub(crate) fn cbrt(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(d.gradient / (d.result * d.result * 3.0))
}
