//! The lowering of each operation to instructions, by kind of number.
//!
//! A lowering function takes the dtype that an operation computes in and the parts of its operands, and
//! returns the parts of the result. Device and CPU share it.

pub(super) mod arithmetic;
pub(in crate::fuse) mod cast;
mod coefficients;
pub(super) mod compare;
pub(super) mod complex;
pub(super) mod complex_functions;
pub(super) mod division;
pub(in crate::fuse) mod elementary;
pub(super) mod error;
pub(super) mod gamma;
mod half_precision;
pub(super) mod integer;
pub(super) mod inverse;
pub(super) mod logarithmic;
pub(in crate::fuse) mod normal;
pub(super) mod power;
pub(super) mod product;
pub(in crate::fuse) mod random;
mod reciprocal;
pub(super) mod rounding;
pub(super) mod steps;
mod term;
pub(super) mod trigonometric;

use crate::fuse::ir::instruction::Instruction;
use crate::fuse::ir::program::{Program, Value, ValueParts};
use crate::types::DType;

/// The precision that a function's result dtype requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Precision {
    /// f16 and bf16, computed in f32.
    Half,
    /// 24 bits.
    Single,
    /// 53 bits.
    Double,
}

impl Precision {
    fn of(dtype: DType) -> Precision {
        match dtype {
            DType::F16 | DType::BF16 => Precision::Half,
            DType::F64 | DType::C128 => Precision::Double,
            _ => Precision::Single,
        }
    }
}

/// Returns the parts of a real number.
fn real_parts_of(value: Value) -> ValueParts {
    [value, value]
}

/// Converts the result of a register-wide instruction to the dtype: wraps a narrow integer, rounds f16 and
/// bf16.
fn rounded(program: &mut Program, dtype: DType, value: Value) -> Value {
    match dtype {
        DType::U8 | DType::U16 => {
            let mask = program.bits32(if dtype == DType::U8 { 0xff } else { 0xffff });
            program.and(value, mask)
        }
        DType::I8 => program.apply(Instruction::SignExtend8, &[value]),
        DType::I16 => program.apply(Instruction::SignExtend16, &[value]),
        DType::F16 => program.apply(Instruction::RoundToHalf, &[value]),
        DType::BF16 => program.apply(Instruction::RoundToBrain, &[value]),
        _ => value,
    }
}

/// Applies an instruction to each part of a complex number, and rounds.
fn each(
    program: &mut Program,
    dtype: DType,
    operands: &[ValueParts],
    mut apply: impl FnMut(&mut Program, [Value; 2]) -> Value,
) -> ValueParts {
    let [left, right] = [operands[0], operands[operands.len() - 1]];
    let real = apply(program, [left[0], right[0]]);
    if dtype.is_complex() {
        let imaginary = apply(program, [left[1], right[1]]);
        return [real, imaginary];
    }
    real_parts_of(rounded(program, dtype, real))
}
