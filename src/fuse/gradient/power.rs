//! Derivatives of powers and the cube root.

use super::arithmetic::zero_if;
use super::{Derivation, OperandGradients, one, two};

/// y x^(y - 1), 0 for y of 0; and x^y ln(x), 0 for x of 0 with y of at least 0.
pub(crate) fn power(d: Derivation<'_>) -> OperandGradients<'_> {
    let (x, y) = (d.x(), d.y());
    let base = zero_if(y.eq(0.0), d.gradient * (y * x.pow(y - 1.0)).conj());
    let is_zero = x.eq(0.0).logical_and(y.real().ge(0.0));
    two(base, zero_if(is_zero, d.gradient * (d.result * x.log()).conj()))
}

pub(crate) fn cube_root(d: Derivation<'_>) -> OperandGradients<'_> {
    one(d.gradient / (d.result * d.result * 3.0))
}
