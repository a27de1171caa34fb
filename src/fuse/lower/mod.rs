//! What each operation is in instructions, by kind of number.
//!
//! A function here is given the dtype that an operation computes in and the parts of its operands, and gives the parts of
//! the result. It is both the device's form and the CPU's.

pub(super) mod arithmetic;
pub(super) mod cast;
mod coefficients;
pub(super) mod compare;
pub(super) mod complex;
pub(super) mod complex_functions;
pub(super) mod division;
pub(super) mod elementary;
pub(super) mod error;
pub(super) mod gamma;
pub(super) mod integer;
pub(super) mod inverse;
pub(super) mod logarithmic;
pub(super) mod normal;
pub(super) mod power;
pub(super) mod product;
pub(super) mod random;
mod reciprocal;
pub(super) mod rounding;
mod short;
pub(super) mod steps;
mod term;
pub(super) mod trigonometric;

use super::instruction::Instruction;
use super::operation::Parts;
use super::program::{Program, Value};
use crate::types::DType;

/// How exact a function must be for its result's dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Precision {
    /// 11 bits and fewer, computed in f32.
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

/// The parts of a number that has one.
fn one(value: Value) -> Parts {
    [value, value]
}

/// What an instruction of the register's width gave, as a number of the dtype: a narrow integer wrapped, f16 and bf16
/// rounded.
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

/// The same on each part of a complex number, rounded.
fn each(
    program: &mut Program,
    dtype: DType,
    operands: &[Parts],
    mut apply: impl FnMut(&mut Program, [Value; 2]) -> Value,
) -> Parts {
    let [left, right] = [operands[0], operands[operands.len() - 1]];
    let real = apply(program, [left[0], right[0]]);
    if dtype.is_complex() {
        let imaginary = apply(program, [left[1], right[1]]);
        return [real, imaginary];
    }
    one(rounded(program, dtype, real))
}
