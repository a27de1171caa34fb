//! Reciprocals of numbers whose size is known, without a division's looks at what is too large or too small.
//!
//! The exponent's bits give a first guess g of 1/x with an error e = 1 - x g below 1/18, and g (1 + e + e²) one of e³. A
//! multiprocessor has few units for f64, so there the guess is what f32 has to 24 bits.

use super::super::instruction::Instruction;
use super::term::Term;

/// 1/x within a unit in the last place, of positive or negative numbers whose magnitude is from 2^-125 to 2^125.
pub(super) fn reciprocal(x: Term<'_>) -> Term<'_> {
    if x.is_double() {
        let guess = x.apply(Instruction::Narrow, &[]);
        return cubed(x, reciprocal(guess).apply(Instruction::Widen, &[]));
    }
    let guess = cubed(x, (x.bits32(0x7ef3_11c7) - x.bits_of()).float_of());
    guess.fma((-x).fma(guess, 1.0), guess)
}

/// A guess of 1/x whose error is the third power of this one's.
fn cubed<'p>(x: Term<'p>, guess: Term<'p>) -> Term<'p> {
    let error = (-x).fma(guess, 1.0);
    guess.fma(error.fma(error, error), guess)
}
