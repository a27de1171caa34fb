//! The merges of two values.

use crate::fuse::ir::program::{Program, Value, ValueParts};
use crate::fuse::language::lower::{arithmetic, compare, product};
use crate::types::DType;

pub(super) fn add(program: &mut Program, dtype: DType, both: [ValueParts; 2], _: bool) -> ValueParts {
    arithmetic::add(program, dtype, &both)
}

pub(super) fn multiply(
    program: &mut Program,
    dtype: DType,
    [left, right]: [ValueParts; 2],
    _: bool,
) -> ValueParts {
    product::combined(program, dtype, left, right)
}

pub(super) fn minimum(program: &mut Program, dtype: DType, both: [ValueParts; 2], _: bool) -> ValueParts {
    compare::minimum(program, dtype, &both)
}

pub(super) fn maximum(program: &mut Program, dtype: DType, both: [ValueParts; 2], _: bool) -> ValueParts {
    compare::maximum(program, dtype, &both)
}

pub(super) fn or(program: &mut Program, _: DType, [left, right]: [ValueParts; 2], _: bool) -> ValueParts {
    [program.or(left[0], right[0]); 2]
}

pub(super) fn and(program: &mut Program, _: DType, [left, right]: [ValueParts; 2], _: bool) -> ValueParts {
    [program.and(left[0], right[0]); 2]
}

pub(super) fn minimum_with_index(
    program: &mut Program,
    dtype: DType,
    [left, right]: [ValueParts; 2],
    append: bool,
) -> ValueParts {
    let takes_right = precedes(program, dtype, [left, right], [right[0], left[0]], append);
    chosen(program, takes_right, [left, right])
}

pub(super) fn maximum_with_index(
    program: &mut Program,
    dtype: DType,
    [left, right]: [ValueParts; 2],
    append: bool,
) -> ValueParts {
    let takes_right = precedes(program, dtype, [left, right], [left[0], right[0]], append);
    chosen(program, takes_right, [left, right])
}

fn chosen(program: &mut Program, takes_right: Value, [left, right]: [ValueParts; 2]) -> ValueParts {
    [program.choose(takes_right, right[0], left[0]), program.choose(takes_right, right[1], left[1])]
}

/// Returns whether the right extreme precedes the left one: by its value, which it does if `below` is less than `above`, or
/// by its index.
fn precedes(
    program: &mut Program,
    dtype: DType,
    [left, right]: [ValueParts; 2],
    [below, above]: [Value; 2],
    append: bool,
) -> Value {
    let (x, y) = (left[0], right[0]);
    let is_float = dtype.is_float();
    if append && is_float {
        // True if the new element is more extreme or NaN, unless the value is NaN already.
        let within = program.less_equal(above, below);
        let outside = program.not(within);
        let number = program.equal(x, x);
        return program.and(outside, number);
    }
    let further = compare::is_less(program, dtype, below, above);
    if append {
        return further;
    }
    let (mut further, mut level) = (further, program.equal(x, y));
    if is_float {
        let (no_left, no_right) = (program.is_nan(x), program.is_nan(y));
        let number = program.not(no_left);
        let first_nan = program.and(no_right, number);
        further = program.or(further, first_nan);
        let both_nan = program.and(no_left, no_right);
        level = program.or(level, both_nan);
    }
    let earlier = program.less_unsigned(right[1], left[1]);
    let level = program.and(level, earlier);
    program.or(further, level)
}
