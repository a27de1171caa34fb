//! Reciprocals and square roots of numbers whose size is known, without a division's looks at what is too large or too small.

use super::super::instruction::Instruction;
use super::term::Term;

/// 1/x of positive or negative numbers whose magnitude is from 2^-125 to 2^125: rounded to f32, of f64 within a unit in the
/// last place. NaN of 0 and of infinities.
pub(super) fn reciprocal(x: Term<'_>) -> Term<'_> {
    if !x.is_double() {
        return x.apply(Instruction::ReciprocalWithin, &[]);
    }
    // A multiprocessor has few units for f64, so the guess g is what f32 has to 24 bits; of its error e = 1 - x g the
    // third power is left by g (1 + e + e²).
    let guess = reciprocal(x.apply(Instruction::Narrow, &[])).apply(Instruction::Widen, &[]);
    let error = (-x).fma(guess, 1.0);
    guess.fma(error.fma(error, error), guess)
}

/// sqrt(x), rounded, of numbers of f32 from 2^-100 on; NaN of those below 0, and of 0 and infinity.
pub(super) fn root(x: Term<'_>) -> Term<'_> {
    x.apply(Instruction::SquareRootWithin, &[])
}
