//! Rounding to integers. Integers are unchanged, and floats of any width are exact afterwards.

use super::one;
use crate::fuse::ir::program::{Program, ValueParts};
use crate::types::DType;

macro_rules! roundings {
    ($($name:ident)*) => {$(
        pub(crate) fn $name(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
            if dtype.is_float() { one(program.$name(operands[0][0])) } else { operands[0] }
        }
    )*};
}

roundings! { floor ceil truncate round }

pub(crate) fn fraction(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let whole = truncate(program, dtype, operands);
    let fraction = program.subtract(operands[0][0], whole[0]);
    super::arithmetic::copysign(program, dtype, &[one(fraction), operands[0]])
}
