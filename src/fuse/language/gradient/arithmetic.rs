//! Derivatives of sums, products, roots and roundings.

use super::super::graph::Expr;
use super::{Derivation, OperandGradients, binary, ternary, unary};

pub(crate) fn add(d: Derivation<'_>) -> OperandGradients<'_> {
    binary(d.gradient, d.gradient)
}

pub(crate) fn sub(d: Derivation<'_>) -> OperandGradients<'_> {
    binary(d.gradient, -d.gradient)
}

pub(crate) fn mul(d: Derivation<'_>) -> OperandGradients<'_> {
    binary(d.gradient * d.y().conj(), d.gradient * d.x().conj())
}

pub(crate) fn neg(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(-d.gradient)
}

/// |x|' is the sign of x, which is 0 at 0; for a complex x it is x / |x|.
pub(crate) fn abs(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(d.x().sign() * d.gradient)
}

/// The sign of a real number is constant between jumps. For s = x / |x| of a complex x, a change of x along s
/// leaves s unchanged: (g - s Re(s* g)) / |x|.
pub(crate) fn sign(d: Derivation<'_>) -> OperandGradients<'_> {
    if !d.is_complex() {
        return [None; 3];
    }
    let magnitude = d.x().abs();
    let along = (d.result.conj() * d.gradient).real();
    unary(zero_if(magnitude.eq(0.0), (d.gradient - d.result * along) / magnitude))
}

pub(crate) fn sqrt(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(d.gradient / (d.result.conj() * 2.0))
}

pub(crate) fn rsqrt(d: Derivation<'_>) -> OperandGradients<'_> {
    // The cube alone may overflow where its half does not.
    d.times(d.result * d.result * (d.result * -0.5))
}

pub(crate) fn square(d: Derivation<'_>) -> OperandGradients<'_> {
    d.times(d.x() * 2.0)
}

/// Passes the gradient to the first operand.
pub(crate) fn frac(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(d.gradient)
}

/// A result of NaN passes the gradient, as in PyTorch.
pub(crate) fn relu(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(zero_if(d.result.le(0.0), d.gradient))
}

pub(crate) fn fma(d: Derivation<'_>) -> OperandGradients<'_> {
    ternary(d.gradient * d.y(), d.gradient * d.x(), d.gradient)
}

pub(crate) fn lerp(d: Derivation<'_>) -> OperandGradients<'_> {
    ternary(d.gradient * (1.0 - d.z()), d.gradient * d.z(), d.gradient * (d.y() - d.x()))
}

/// 0 at 0, where the sign of the result says nothing about x.
pub(crate) fn copysign(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(zero_if(d.x().eq(0.0), d.gradient * d.result.sign() * d.x().sign()))
}

/// The direction of the point (x, y), 0 at the origin.
pub(crate) fn hypot(d: Derivation<'_>) -> OperandGradients<'_> {
    let Polar { direction: [along_x, along_y], .. } = Polar::new(d.x(), d.y());
    binary(d.gradient * along_x, d.gradient * along_y)
}

/// A point of the plane as its direction and its length in two factors, of which neither overflows.
pub(super) struct Polar<'g> {
    /// A vector of length 1, and 0 at the origin.
    pub(super) direction: [Expr<'g>; 2],
    /// The larger magnitude of a coordinate, and 1 at the origin.
    pub(super) size: Expr<'g>,
    /// The length over the size, from 1 to sqrt(2).
    pub(super) stretch: Expr<'g>,
}

impl<'g> Polar<'g> {
    /// Infinite coordinates count as equally large, and finite ones beside them as 0.
    pub(super) fn new(x: Expr<'g>, y: Expr<'g>) -> Polar<'g> {
        let size = x.abs().maximum(y.abs());
        let is_origin = size.eq(0.0);
        let size = is_origin.choose(1.0, size);
        let [x, y] = [x, y].map(|part| part.is_infinite().choose(part.sign(), part / size));
        let stretch = is_origin.choose(1.0, (x * x + y * y).sqrt());
        Polar { direction: [x / stretch, y / stretch], size, stretch }
    }

    /// Returns g times the direction over the length, the size of the angle's derivatives.
    pub(super) fn over_length(&self, gradient: Expr<'g>) -> [Expr<'g>; 2] {
        self.direction.map(|part| gradient * part / self.stretch / self.size)
    }
}

pub(crate) fn radians(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(d.gradient.radians())
}

pub(crate) fn degrees(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(d.gradient.degrees())
}

/// Returns 0 if the condition is true, otherwise the value.
pub(super) fn zero_if<'g>(condition: Expr<'g>, value: Expr<'g>) -> Expr<'g> {
    condition.choose(0.0, value)
}
