//! Reciprocals and square roots of numbers of known size, without a division's branches for too large or too
//! small operands.

use super::term::Term;
use crate::fuse::ir::instruction::Instruction;

/// Returns 1/x for magnitudes from 2^-125 to 2^125: rounded for f32, within a unit in the last place for f64;
/// NaN for 0 and infinities.
pub(super) fn reciprocal(x: Term<'_>) -> Term<'_> {
    if !x.is_double() {
        return x.apply(Instruction::ReciprocalWithin, &[]);
    }
    // A multiprocessor has few f64 units, so the guess g comes from f32 with 24 bits. With its error e = 1 -
    // x g, g (1 + e + e²) leaves the third power of e.
    let guess = reciprocal(x.apply(Instruction::Narrow, &[])).apply(Instruction::Widen, &[]);
    let error = (-x).fma(guess, 1.0);
    guess.fma(error.fma(error, error), guess)
}

/// Returns sqrt(x), rounded, for numbers of f32 from 2^-100; NaN below 0 and for 0 and infinity.
pub(super) fn root(x: Term<'_>) -> Term<'_> {
    x.apply(Instruction::SquareRootWithin, &[])
}
