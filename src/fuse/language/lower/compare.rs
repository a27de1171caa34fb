//! Comparisons, selection, minima and maxima.

use super::real_parts_of;
use crate::fuse::ir::program::{Program, Value, ValueParts};
use crate::types::DType;

/// Returns a < b for any ordered dtype.
pub(crate) fn is_less(program: &mut Program, dtype: DType, a: Value, b: Value) -> Value {
    match dtype {
        DType::Bool => {
            let below = program.not(a);
            program.and(below, b)
        }
        _ if dtype.is_float() => program.less(a, b),
        _ if dtype.is_signed_integer() => program.less_signed(a, b),
        _ => program.less_unsigned(a, b),
    }
}

/// Returns a <= b, by a separate instruction for floats because of NaN.
fn is_at_most(program: &mut Program, dtype: DType, a: Value, b: Value) -> Value {
    if dtype.is_float() {
        return program.less_equal(a, b);
    }
    let above = is_less(program, dtype, b, a);
    program.not(above)
}

pub(crate) fn eq(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let (x, y) = (operands[0], operands[1]);
    if dtype == DType::Bool {
        let differ = program.xor(x[0], y[0]);
        return real_parts_of(program.not(differ));
    }
    let real = program.equal(x[0], y[0]);
    if !dtype.is_complex() {
        return real_parts_of(real);
    }
    let imaginary = program.equal(x[1], y[1]);
    real_parts_of(program.and(real, imaginary))
}

pub(crate) fn ne(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let equal = eq(program, dtype, operands);
    real_parts_of(program.not(equal[0]))
}

pub(crate) fn lt(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real_parts_of(is_less(program, dtype, operands[0][0], operands[1][0]))
}

pub(crate) fn le(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real_parts_of(is_at_most(program, dtype, operands[0][0], operands[1][0]))
}

pub(crate) fn gt(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real_parts_of(is_less(program, dtype, operands[1][0], operands[0][0]))
}

pub(crate) fn ge(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real_parts_of(is_at_most(program, dtype, operands[1][0], operands[0][0]))
}

/// Applies a test to both parts of a complex number, or to the single part.
fn test(
    program: &mut Program,
    dtype: DType,
    operands: &[ValueParts],
    mut part: impl FnMut(&mut Program, Value) -> Value,
) -> Value {
    let real = part(program, operands[0][0]);
    if !dtype.is_complex() {
        return real;
    }
    let imaginary = part(program, operands[0][1]);
    program.or(real, imaginary)
}

pub(crate) fn is_nan(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real_parts_of(test(program, dtype, operands, |program, part| program.is_nan(part)))
}

pub(crate) fn is_infinite(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real_parts_of(test(program, dtype, operands, |program, part| {
        let (magnitude, infinity) = (program.absolute(part), program.float(part, f64::INFINITY));
        program.equal(magnitude, infinity)
    }))
}

pub(crate) fn is_finite(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let not = test(program, dtype, operands, |program, part| {
        let (magnitude, infinity) = (program.absolute(part), program.float(part, f64::INFINITY));
        // False for NaN too.
        let finite = program.less(magnitude, infinity);
        program.not(finite)
    });
    real_parts_of(program.not(not))
}

pub(crate) fn choose(program: &mut Program, _: DType, operands: &[ValueParts]) -> ValueParts {
    let (condition, yes, no) = (operands[0][0], operands[1], operands[2]);
    [program.choose(condition, yes[0], no[0]), program.choose(condition, yes[1], no[1])]
}

/// Returns the smaller operand, or the number if the other is NaN.
pub(crate) fn fmin(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let (x, y) = (operands[0][0], operands[1][0]);
    real_parts_of(match dtype {
        DType::Bool => program.and(x, y),
        _ if dtype.is_float() => program.minimum(x, y),
        _ if dtype.is_signed_integer() => program.minimum_signed(x, y),
        _ => program.minimum_unsigned(x, y),
    })
}

pub(crate) fn fmax(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let (x, y) = (operands[0][0], operands[1][0]);
    real_parts_of(match dtype {
        DType::Bool => program.or(x, y),
        _ if dtype.is_float() => program.maximum(x, y),
        _ if dtype.is_signed_integer() => program.maximum_signed(x, y),
        _ => program.maximum_unsigned(x, y),
    })
}

/// Returns NaN if an operand is NaN, otherwise the value.
fn or_nan(program: &mut Program, dtype: DType, operands: &[ValueParts], value: ValueParts) -> ValueParts {
    if !dtype.is_float() {
        return value;
    }
    let (unordered, nan) =
        (program.unordered(operands[0][0], operands[1][0]), program.float(value[0], f64::NAN));
    real_parts_of(program.choose(unordered, nan, value[0]))
}

pub(crate) fn minimum(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let lesser = fmin(program, dtype, operands);
    or_nan(program, dtype, operands, lesser)
}

pub(crate) fn maximum(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let greater = fmax(program, dtype, operands);
    or_nan(program, dtype, operands, greater)
}

pub(crate) fn clamp(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let above = maximum(program, dtype, &operands[..2]);
    minimum(program, dtype, &[above, operands[2]])
}
