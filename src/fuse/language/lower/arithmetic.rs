//! Sums, products, signs and roots.

use super::term::formula;
use super::{Precision, complex, division, each, half_precision, real_parts_of, rounded};
use crate::fuse::ir::instruction::{Instruction, RegisterKind};
use crate::fuse::ir::program::{Program, Value, ValueParts};
use crate::types::DType;

pub(crate) fn add(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if dtype == DType::Bool {
        return real_parts_of(program.or(operands[0][0], operands[1][0]));
    }
    each(program, dtype, operands, |program, [a, b]| program.add(a, b))
}

pub(crate) fn sub(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    each(program, dtype, operands, |program, [a, b]| program.subtract(a, b))
}

pub(crate) fn mul(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let (x, y) = (operands[0], operands[1]);
    match dtype {
        DType::Bool => real_parts_of(program.and(x[0], y[0])),
        _ if dtype.is_complex() => complex::mul(program, x, y),
        _ => {
            let product = program.multiply(x[0], y[0]);
            real_parts_of(rounded(program, dtype, product))
        }
    }
}

pub(crate) fn square(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    mul(program, dtype, &[operands[0], operands[0]])
}

/// Returns 0 - x for integers, which wraps.
pub(super) fn negate_integer(program: &mut Program, dtype: DType, x: Value) -> Value {
    let zero = program.integer(x, 0);
    let negated = program.subtract(zero, x);
    rounded(program, dtype, negated)
}

pub(crate) fn neg(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let x = operands[0];
    if dtype.is_integer() {
        return real_parts_of(negate_integer(program, dtype, x[0]));
    }
    [program.negate(x[0]), program.negate(x[1])]
}

pub(crate) fn abs(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let x = operands[0];
    if dtype.is_complex() {
        return real_parts_of(length(program, x));
    }
    if dtype.is_float() {
        return real_parts_of(program.absolute(x[0]));
    }
    if !dtype.is_signed_integer() {
        return x;
    }
    let negated = negate_integer(program, dtype, x[0]);
    // The minimum integer is its own negative.
    real_parts_of(program.maximum_signed(x[0], negated))
}

/// Returns sqrt(x² + y²). f32 computes in f64, which holds the squares, so one rounding matters. f64 scales
/// by a power of two, so that the squares neither overflow nor underflow.
fn length(program: &mut Program, parts: ValueParts) -> Value {
    let [x, y] = parts.map(|part| program.absolute(part));
    let infinity = program.float(x, f64::INFINITY);
    let length = if program.kind(x) == RegisterKind::Float64 {
        let larger = program.maximum(x, y);
        let (high, low) = (program.float64(2f64.powi(500)), program.float64(2f64.powi(-500)));
        let (up, down, same) =
            (program.float64(2f64.powi(600)), program.float64(2f64.powi(-600)), program.float64(1.0));
        let (is_large, is_small) = (program.less(high, larger), program.less(larger, low));
        let inner = program.choose(is_small, up, same);
        let scale = program.choose(is_large, down, inner);
        let inner = program.choose(is_small, down, same);
        let back = program.choose(is_large, up, inner);
        let [x, y] = [x, y].map(|part| program.multiply(part, scale));
        let square = program.multiply(y, y);
        let sum = program.multiply_add(x, x, square);
        let root = program.square_root(sum);
        program.multiply(root, back)
    } else {
        let [x, y] = [x, y].map(|part| program.apply(Instruction::Widen, &[part]));
        let square = program.multiply(y, y);
        let sum = program.multiply_add(x, x, square);
        let root = program.square_root(sum);
        program.apply(Instruction::Narrow, &[root])
    };
    let (first, second) = (program.equal(x, infinity), program.equal(y, infinity));
    let infinite = program.or(first, second);
    program.choose(infinite, infinity, length)
}

pub(crate) fn hypot(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let length = length(program, [operands[0][0], operands[1][0]]);
    real_parts_of(rounded(program, dtype, length))
}

pub(crate) fn sign(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let x = operands[0][0];
    if dtype.is_float() {
        let (zero, up, down) = (program.float(x, 0.0), program.float(x, 1.0), program.float(x, -1.0));
        let (above, below) = (program.less(zero, x), program.less(x, zero));
        let inner = program.choose(below, down, x);
        return real_parts_of(program.choose(above, up, inner));
    }
    let up = program.integer(x, 1);
    if !dtype.is_signed_integer() {
        return real_parts_of(program.minimum_unsigned(x, up));
    }
    let down = program.integer(x, -1);
    let low = program.maximum_signed(x, down);
    real_parts_of(program.minimum_signed(low, up))
}

pub(crate) fn sqrt(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let root = program.square_root(operands[0][0]);
    real_parts_of(rounded(program, dtype, root))
}

pub(crate) fn rsqrt(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::functions::rsqrt(program, dtype, operands);
    }
    let x = operands[0][0];
    let (zero, unity, nan) = (program.float(x, 0.0), program.float(x, 1.0), program.float(x, f64::NAN));
    // The root of a negative number takes a device longer than others.
    let negative = program.less(x, zero);
    let other = program.choose(negative, unity, x);
    let root = program.square_root(other);
    let [result, _] = division::div(program, dtype, &[real_parts_of(unity), real_parts_of(root)]);
    real_parts_of(program.choose(negative, nan, result))
}

pub(crate) fn relu(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let x = operands[0][0];
    if dtype.is_float() {
        let zero = program.float(x, 0.0);
        // Not a test for above 0, so that NaN stays.
        let below = program.less_equal(x, zero);
        return real_parts_of(program.choose(below, zero, x));
    }
    if dtype.is_signed_integer() {
        let zero = program.integer(x, 0);
        return real_parts_of(program.maximum_signed(x, zero));
    }
    operands[0]
}

pub(crate) fn fma(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let (x, y, z) = (operands[0][0], operands[1][0], operands[2][0]);
    let sum = if dtype.is_float() {
        program.multiply_add(x, y, z)
    } else {
        let product = program.multiply(x, y);
        program.add(product, z)
    };
    real_parts_of(rounded(program, dtype, sum))
}

pub(crate) fn lerp(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let (x, y, weight) = (operands[0][0], operands[1][0], operands[2][0]);
    let (half, unity) = (program.float(x, 0.5), program.float(x, 1.0));
    let distance = program.subtract(y, x);
    let done = program.multiply(weight, distance);
    let near = program.add(x, done);
    let rest = program.subtract(unity, weight);
    let left = program.multiply(distance, rest);
    let far = program.subtract(y, left);
    let is_near = program.less(weight, half);
    let result = program.choose(is_near, near, far);
    let [result] = formula(program, [x, y, weight, distance, result], |[x, y, weight, distance, result]| {
        // The distance of finite ends may overflow.
        let [has_distance, has_x, has_y] = [distance, x, y].map(|x| x.absolute().less(f64::INFINITY));
        let is_past = !has_distance & has_x & has_y;
        is_past.rarely([result], || [x * (x.constant(1.0) - weight) + y * weight])
    });
    real_parts_of(rounded(program, dtype, result))
}

pub(crate) fn copysign(program: &mut Program, _: DType, operands: &[ValueParts]) -> ValueParts {
    let [x, y] = [operands[0][0], operands[1][0]].map(|part| program.bits_of(part));
    let (sign, rest) = match program.kind(x) {
        RegisterKind::Bits64 => (program.bits64(1 << 63), program.bits64(!(1 << 63))),
        _ => (program.bits32(1 << 31), program.bits32(!(1 << 31))),
    };
    let (magnitude, sign) = (program.and(x, rest), program.and(y, sign));
    let bits = program.or(magnitude, sign);
    real_parts_of(program.float_of(bits))
}
