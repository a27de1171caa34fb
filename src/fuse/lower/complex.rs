//! Complex arithmetic: the formulas of [`crate::types::complex`], in the same order of the same rounded operations.

use super::super::operation::Parts;
use super::super::program::Program;
use super::one;
use crate::types::DType;

/// (ac - bd) + (ad + bc)i.
pub(crate) fn multiply(program: &mut Program, [a, b]: Parts, [c, d]: Parts) -> Parts {
    let (ac, bd) = (program.multiply(a, c), program.multiply(b, d));
    let (ad, bc) = (program.multiply(a, d), program.multiply(b, c));
    [program.subtract(ac, bd), program.add(ad, bc)]
}

/// Smith's quotient. Its two branches are one with operands exchanged; so are the terms of the imaginary part, instead of
/// its sign, which would turn a 0 into a -0.
pub(super) fn divide(program: &mut Program, [a, b]: Parts, [c, d]: Parts) -> Parts {
    let (real, imaginary) = (program.absolute(c), program.absolute(d));
    let by_real = program.less_equal(imaginary, real);
    let (large, small) = (program.choose(by_real, c, d), program.choose(by_real, d, c));
    let (straight, scaled) = (program.choose(by_real, a, b), program.choose(by_real, b, a));
    let ratio = program.divide(small, large);
    let product = program.multiply(small, ratio);
    let divisor = program.add(large, product);
    let product = program.multiply(scaled, ratio);
    let sum = program.add(straight, product);
    let product = program.multiply(straight, ratio);
    let (first, second) =
        (program.choose(by_real, scaled, product), program.choose(by_real, product, scaled));
    let difference = program.subtract(first, second);
    [program.divide(sum, divisor), program.divide(difference, divisor)]
}

pub(crate) fn real(_: &mut Program, _: DType, operands: &[Parts]) -> Parts {
    one(operands[0][0])
}

pub(crate) fn imaginary(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    let x = operands[0][0];
    match dtype {
        _ if dtype.is_complex() => one(operands[0][1]),
        DType::Bool => one(program.xor(x, x)),
        _ if dtype.is_float() => one(program.float(x, 0.0)),
        _ => one(program.integer(x, 0)),
    }
}

pub(crate) fn conjugate(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    let [real, imaginary] = operands[0];
    if dtype.is_complex() { [real, program.negate(imaginary)] } else { operands[0] }
}
