//! Rounding to integers. Integers are unchanged, and floats of any width are exact afterwards.

use super::real_parts_of;
use crate::fuse::ir::program::{Program, ValueParts};
use crate::types::DType;

macro_rules! roundings {
    ($($name:ident $instruction:ident;)*) => {$(
        pub(crate) fn $name(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
            if dtype.is_float() { real_parts_of(program.$instruction(operands[0][0])) } else { operands[0] }
        }
    )*};
}

roundings! {
    floor floor;
    ceil ceil;
    trunc truncate;
    round round;
}

pub(crate) fn frac(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let whole = trunc(program, dtype, operands);
    let fraction = program.subtract(operands[0][0], whole[0]);
    super::arithmetic::copysign(program, dtype, &[real_parts_of(fraction), operands[0]])
}
