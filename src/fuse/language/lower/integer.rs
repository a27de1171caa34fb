//! Bitwise operations and shifts; on bools the bitwise operations are logical.

use super::{real_parts_of, rounded};
use crate::fuse::ir::instruction::{Instruction, RegisterKind};
use crate::fuse::ir::program::{Program, Value, ValueParts};
use crate::types::DType;

pub(crate) fn and(program: &mut Program, _: DType, operands: &[ValueParts]) -> ValueParts {
    real_parts_of(program.and(operands[0][0], operands[1][0]))
}

pub(crate) fn or(program: &mut Program, _: DType, operands: &[ValueParts]) -> ValueParts {
    real_parts_of(program.or(operands[0][0], operands[1][0]))
}

pub(crate) fn xor(program: &mut Program, _: DType, operands: &[ValueParts]) -> ValueParts {
    real_parts_of(program.xor(operands[0][0], operands[1][0]))
}

pub(crate) fn not(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let flipped = program.not(operands[0][0]);
    real_parts_of(rounded(program, dtype, flipped))
}

/// Returns the upper half of a product, at the dtype's width.
pub(crate) fn mul_high(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let (x, y) = (operands[0][0], operands[1][0]);
    if dtype.size() >= 4 {
        return real_parts_of(program.multiply_high(x, y));
    }
    let product = program.multiply(x, y);
    let width = program.bits32(8 * dtype.size() as u32);
    real_parts_of(program.shift_right_unsigned(product, width))
}

/// Returns a shift count of 32 bits. A negative count or one that does not fit becomes larger than every
/// width.
fn count(program: &mut Program, count: Value) -> Value {
    if program.kind(count) != RegisterKind::Bits64 {
        return count;
    }
    let most = program.bits64(64);
    let count = program.minimum_unsigned(count, most);
    program.apply(Instruction::Truncate64, &[count])
}

pub(crate) fn shift_left(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let count = count(program, operands[1][0]);
    let shifted = program.shift_left(operands[0][0], count);
    real_parts_of(rounded(program, dtype, shifted))
}

pub(crate) fn shift_right(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let count = count(program, operands[1][0]);
    let x = operands[0][0];
    real_parts_of(if dtype.is_signed_integer() {
        program.shift_right_signed(x, count)
    } else {
        program.shift_right_unsigned(x, count)
    })
}
