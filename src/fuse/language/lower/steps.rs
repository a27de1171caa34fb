//! Step functions, neighbouring numbers, and degrees.

use std::f64::consts::PI;

use super::real_parts_of;
use super::term::{Term, formula, real};
use crate::fuse::ir::program::{Program, ValueParts};
use crate::types::DType;

pub(crate) fn signbit(program: &mut Program, _: DType, operands: &[ValueParts]) -> ValueParts {
    let [sign] = formula(program, [operands[0][0]], |[x]| [x.is_negative()]);
    real_parts_of(sign)
}

/// Returns 0 below 0, 1 above, and the second operand at 0.
pub(crate) fn heaviside(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x, at_zero]| {
        let above = x.constant(0.0).less(x).select(x.constant(1.0), 0.0);
        let result = x.equal(0.0).select(at_zero, above);
        x.unless_nan(result)
    })
}

/// Returns the neighbour of a magnitude in the dtype, away from 0 or towards it.
fn neighbour<'p>(dtype: DType, size: Term<'p>, away: Term<'p>) -> Term<'p> {
    let bits = size.bits_of();
    let by = |step: i64| away.select((bits + step).float_of(), (bits - step).float_of());
    match dtype {
        DType::BF16 => by(1 << 16),
        DType::F16 => {
            // The f32 register has smaller and larger numbers than the dtype.
            let (least, largest) = (size.constant(2f64.powi(-14)), size.constant(65504.0));
            let step = size.constant(2f64.powi(-24));
            let small = away.select(size + step, size - step);
            let is_small = size.less(least) | (size.equal(least) & !away);
            let inner = is_small.select(small, by(1 << 13));
            let beyond = largest.less(inner);
            let outer = away.select(size.constant(f64::INFINITY), largest);
            beyond.select(outer, inner)
        }
        _ => by(1),
    }
}

pub(crate) fn next_after(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x, y]| {
        let zero = x.equal(0.0);
        let away = zero | (x.less(y) ^ x.is_negative());
        let size = neighbour(dtype, x.absolute(), away);
        let result = size.with_sign(zero.select(y, x));
        let result = x.equal(y).select(y, result);
        x.unordered(y).select(x + y, result)
    })
}

/// Returns x · π / 180.
pub(crate) fn radians(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| x * (PI / 180.0))
}

/// Returns x · 180 / π.
pub(crate) fn degrees(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| x * (180.0 / PI))
}
