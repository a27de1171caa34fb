//! What is made of logarithms.

use super::super::operation::Parts;
use super::super::program::Program;
use super::elementary::{exponential_times, logarithm_of, of_1_plus};
use super::term::{Term, real};
use super::{Precision, short};
use crate::types::DType;

/// ln(x) with its limits.
pub(super) fn logarithm(x: Term<'_>) -> Term<'_> {
    x.then(logarithm_of)
}

/// ln(x / (1 - x)) as the logarithm of 1 + |1 - 2x| / min(x, 1 - x), which loses nothing near 1/2.
pub(crate) fn logit(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    if Precision::of(dtype) == Precision::Half {
        return short::functions::logit(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| {
        let rest = x.constant(1.0) - x;
        let low = x.less(0.5);
        let smaller = low.select(x, rest);
        let above = smaller.fma(-2.0, 1.0);
        let size = (above / smaller).then(of_1_plus);
        let usual = low.select(-size, size);
        // The quotient would overflow; here the other factor is 1.
        let tiny = x.less(x.either(2f64.powi(-100), 2f64.powi(-1000)));
        let [result] = tiny.rarely([usual], || [logarithm(x)]);
        x.equal(1.0).select(x.constant(f64::INFINITY), result)
    })
}

/// ln(e^x + e^y).
pub(crate) fn of_sum(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    real(program, dtype, operands, |[x, y]| {
        let distance = x.equal(y).select(x.constant(0.0), (x - y).absolute());
        let power = (-distance).then(|program, x| exponential_times(program, x, None));
        let sum = x.maximum(y) + power.then(of_1_plus);
        x.unordered(y).select(x + y, sum)
    })
}

/// x ln(y), 0 where x is 0 and y is a number.
pub(crate) fn by_logarithm(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    real(program, dtype, operands, |[x, y]| product(x, y, logarithm(y)))
}

/// x ln(1 + y), 0 where x is 0 and y is a number.
pub(crate) fn by_logarithm_of_1_plus(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    real(program, dtype, operands, |[x, y]| product(x, y, y.then(of_1_plus)))
}

fn product<'p>(x: Term<'p>, y: Term<'p>, logarithm: Term<'p>) -> Term<'p> {
    let none = x.equal(0.0) & y.equal(y);
    none.select(x.constant(0.0), x * logarithm)
}
