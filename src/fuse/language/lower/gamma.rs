//! The logarithm of the gamma function's absolute value.
//!
//! Around 2 it is (x - 1) (x - 2) times a polynomial, valid within 1/2 of 2 for f64 and from 0.7 to 3.2 for
//! f32. Below, and for f64 above that, Γ(x + 1) = x Γ(x) reduces the argument. From 3.2 or 8 it is Stirling's
//! series. Below 0, in a rare body, it is Γ(x) Γ(-x) = -π / (x sin πx). Near the zeros at 1 and 2 it is as
//! accurate as elsewhere; near those of negative arguments the error is that of the terms.

use super::coefficients::{GAMMA_AROUND_2, GAMMA_NEAR_2, STIRLING};
use super::logarithmic::logarithm;
use super::reciprocal::reciprocal;
use super::term::{Term, real};
use super::trigonometric::sine_and_cosine_of_pi;
use super::{Precision, half_precision};
use crate::fuse::ir::program::{Program, ValueParts};
use crate::types::DType;

const LN_PI: f64 = 1.144_729_885_849_400_2;
/// (ln(2π) - 1) / 2.
const STIRLING_CONSTANT: f64 = 0.418_938_533_204_672_7;

/// Computes numbers from 0 in f32 with a given logarithm. `around_2` is ln Γ(2 + b) / (b (1 + b)) of b, and
/// `series` the correction to Stirling's constant.
pub(super) fn above_0_of_single<'p>(
    x: Term<'p>,
    logarithm: Term<'p>,
    around_2: impl FnOnce(Term<'p>) -> Term<'p>,
    series: impl FnOnce(Term<'p>) -> Term<'p>,
) -> Term<'p> {
    // Low numbers use the polynomial of the next number.
    let is_low = x.less(0.7);
    let lower = x - 1.0;
    let (above, below) = (is_low.select(x, lower), is_low.select(lower, x - 2.0));
    // A sum with 0 keeps the zero at 1 from being -0.
    let near = (above * below).fma(around_2(below), is_low.select(-logarithm, 0.0));
    // From 2^20 the series adds nothing.
    let series = series(x.minimum(2f64.powi(20))) + STIRLING_CONSTANT;
    let far = (x - 0.5).fma(logarithm - 1.0, series);
    x.constant(3.2).less(x).select(far, near)
}

/// Computes numbers from 0.
fn above_0(x: Term<'_>) -> Term<'_> {
    if !x.is_double() {
        return above_0_of_single(
            x,
            logarithm(x),
            |below| below.polynomial(&GAMMA_AROUND_2),
            |x| {
                let inverse = reciprocal(x);
                (inverse * inverse).polynomial(&STIRLING) * inverse
            },
        );
    }
    let unity = x.constant(1.0);
    let whole = x.round();
    let rest = x - whole;
    let near_2 = rest * rest.polynomial(&GAMMA_NEAR_2);
    // The factor of Γ next to 2, or below 3/2 the divisor.
    let mut product = unity;
    for step in 1..=6 {
        let counts = x.constant(f64::from(step) + 2.0).less_equal(whole);
        product = counts.select(product * (x - f64::from(step)), product);
    }
    let product = whole.equal(1.0).select(x, product);
    let product = whole.equal(0.0).select(x * (x + 1.0), product);
    let is_far = x.constant(8.0).less_equal(x);
    let logarithm = logarithm(is_far.select(x, product));
    let near = near_2 + whole.less(2.0).select(-logarithm, logarithm);
    let inverse = unity / x;
    let series = (inverse * inverse).polynomial(&STIRLING).fma(inverse, STIRLING_CONSTANT);
    let far = (x - 0.5).fma(logarithm - 1.0, series);
    let far = x.equal(f64::INFINITY).select(x, far);
    is_far.select(far, near)
}

pub(crate) fn lgamma(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    if Precision::of(dtype) == Precision::Half {
        return half_precision::lgamma(program, dtype, operands);
    }
    real(program, dtype, operands, |[x]| {
        let size = x.absolute();
        let result = above_0(size);
        let [result] = x.less(0.0).rarely([result], || {
            let [sine, _] = sine_and_cosine_of_pi(size);
            let reflected = (x.constant(LN_PI) - logarithm((size * sine).absolute())) - result;
            // So close to 0 both are -ln |x| and the product would vanish; from where all numbers are
            // integers there are poles.
            let tiny = size.less(x.by_precision(2f64.powi(-30), 2f64.powi(-60)));
            let large = x.by_precision(2f64.powi(23), 2f64.powi(52)).less_equal(size);
            let reflected = large.select(x.constant(f64::INFINITY), reflected);
            [tiny.select(result, reflected)]
        });
        x.unless_nan(result)
    })
}
