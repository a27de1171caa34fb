//! Quotients and remainders.
//!
//! Integer division never faults: division by 0 gives 0, and the minimum divided by -1 wraps to itself.
//! Floats follow Python and PyTorch: `remainder` has the sign of the divisor, also for zeros, and
//! `floor_divide` is the matching integer, which differs from floor(x / y) if the quotient rounds up to an
//! integer.

use super::arithmetic::copysign;
use super::{complex, real_parts_of, rounded};
use crate::fuse::ir::program::{Program, Value, ValueParts};
use crate::types::DType;

pub(crate) fn div(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let (x, y) = (operands[0], operands[1]);
    if dtype.is_complex() {
        return complex::divide(program, x, y);
    }
    let quotient = program.divide(x[0], y[0]);
    real_parts_of(rounded(program, dtype, quotient))
}

pub(crate) fn reciprocal(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let (unity, zero) = (program.float(operands[0][0], 1.0), program.float(operands[0][0], 0.0));
    div(program, dtype, &[[unity, zero], operands[0]])
}

/// A truncated quotient of integers, the remainder, and whether the divisor is 0.
struct Whole {
    quotient: Value,
    rest: Value,
    by_zero: Value,
}

fn whole(program: &mut Program, dtype: DType, x: Value, y: Value) -> Whole {
    let (zero, unity) = (program.integer(x, 0), program.integer(x, 1));
    let by_zero = program.equal(y, zero);
    let quotient = if dtype.is_signed_integer() {
        let minus = program.integer(x, -1);
        let by_minus = program.equal(y, minus);
        let special = program.or(by_zero, by_minus);
        let divisor = program.choose(special, unity, y);
        let quotient = program.divide_signed(x, divisor);
        let negated = program.subtract(zero, x);
        let quotient = program.choose(by_minus, negated, quotient);
        rounded(program, dtype, quotient)
    } else {
        let divisor = program.choose(by_zero, unity, y);
        program.divide_unsigned(x, divisor)
    };
    let quotient = program.choose(by_zero, zero, quotient);
    let product = program.multiply(quotient, y);
    let rest = program.subtract(x, product);
    let rest = rounded(program, dtype, rest);
    Whole { quotient, rest: program.choose(by_zero, zero, rest), by_zero }
}

/// Returns whether the remainder has the wrong sign, which means that the quotient was rounded up.
fn wrong_sign(program: &mut Program, rest: Value, divisor: Value) -> Value {
    let zero = program.integer(rest, 0);
    let exact = program.equal(rest, zero);
    let signs = program.xor(rest, divisor);
    let differ = program.less_signed(signs, zero);
    let inexact = program.not(exact);
    program.and(differ, inexact)
}

pub(crate) fn trunc_divide(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let (x, y) = (operands[0][0], operands[1][0]);
    if !dtype.is_float() {
        return real_parts_of(whole(program, dtype, x, y).quotient);
    }
    let quotient = program.divide(x, y);
    let quotient = program.truncate(quotient);
    real_parts_of(rounded(program, dtype, quotient))
}

pub(crate) fn fmod(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let (x, y) = (operands[0][0], operands[1][0]);
    if !dtype.is_float() {
        return real_parts_of(whole(program, dtype, x, y).rest);
    }
    // f32 holds the exact remainder of f16 and bf16, which has no more bits than the operands.
    real_parts_of(program.remainder(x, y))
}

pub(crate) fn floor_divide(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let (x, y) = (operands[0][0], operands[1][0]);
    if dtype.is_float() {
        let quotient = floor_divide_floats(program, x, y);
        return real_parts_of(rounded(program, dtype, quotient));
    }
    let whole = whole(program, dtype, x, y);
    if !dtype.is_signed_integer() {
        return real_parts_of(whole.quotient);
    }
    let unity = program.integer(x, 1);
    let lower = program.subtract(whole.quotient, unity);
    let wrong = wrong_sign(program, whole.rest, y);
    let divided = program.not(whole.by_zero);
    let wrong = program.and(wrong, divided);
    real_parts_of(program.choose(wrong, lower, whole.quotient))
}

pub(crate) fn remainder(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let (x, y) = (operands[0][0], operands[1][0]);
    if dtype.is_float() {
        let rest = program.remainder(x, y);
        let wrong = wrong_sign_of_floats(program, rest, y);
        let shifted = program.add(rest, y);
        let rest = program.choose(wrong, shifted, rest);
        // An exact quotient leaves a zero with the sign of the divisor, as in Python.
        let zero = program.float(rest, 0.0);
        let exact = program.equal(rest, zero);
        let [signed_zero, _] = copysign(program, dtype, &[real_parts_of(zero), real_parts_of(y)]);
        let rest = program.choose(exact, signed_zero, rest);
        return real_parts_of(rounded(program, dtype, rest));
    }
    let rest = whole(program, dtype, x, y).rest;
    if !dtype.is_signed_integer() {
        return real_parts_of(rest);
    }
    let wrong = wrong_sign(program, rest, y);
    let shifted = program.add(rest, y);
    real_parts_of(program.choose(wrong, shifted, rest))
}

fn wrong_sign_of_floats(program: &mut Program, rest: Value, divisor: Value) -> Value {
    let zero = program.float(rest, 0.0);
    let exact = program.equal(rest, zero);
    let (negative, wanted) = (program.less(rest, zero), program.less(divisor, zero));
    let differ = program.xor(negative, wanted);
    let inexact = program.not(exact);
    program.and(differ, inexact)
}

/// Divides as PyTorch does: (x - fmod(x, y)) / y, one less if the remainder has the wrong sign, and then the
/// nearest integer below with a slack of one half for the rounding of the division.
fn floor_divide_floats(program: &mut Program, x: Value, y: Value) -> Value {
    let (zero, half, unity) = (program.float(x, 0.0), program.float(x, 0.5), program.float(x, 1.0));
    let rest = program.remainder(x, y);
    let exact = program.subtract(x, rest);
    let quotient = program.divide(exact, y);
    let wrong = wrong_sign_of_floats(program, rest, y);
    let lower = program.subtract(quotient, unity);
    let quotient = program.choose(wrong, lower, quotient);
    let floor = program.floor(quotient);
    let lost = program.subtract(quotient, floor);
    let up = program.add(floor, unity);
    let lost_much = program.less(half, lost);
    let whole = program.choose(lost_much, up, floor);
    let plain = program.divide(x, y);
    // A zero has the sign of the quotient.
    let signed_zero = program.multiply(zero, plain);
    let vanishes = program.equal(quotient, zero);
    let whole = program.choose(vanishes, signed_zero, whole);
    let by_zero = program.equal(y, zero);
    program.choose(by_zero, plain, whole)
}
