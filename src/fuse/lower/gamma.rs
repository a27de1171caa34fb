//! The logarithm of the gamma function's absolute value.
//!
//! Below 8 the argument is taken next to 2, where it is a polynomial, by Γ(x + 1) = x Γ(x); from there on it is Stirling's
//! series; below 0, rarely, Γ(x) Γ(-x) = -π / (x sin πx). Near the zeros at 1 and 2 it is as accurate as elsewhere; near
//! those of negative arguments the error is one of the terms'.

use super::super::operation::Parts;
use super::super::program::Program;
use super::coefficients::{GAMMA_NEAR_2, STIRLING};
use super::logarithmic::logarithm;
use super::term::{Term, real};
use super::trigonometric::sine_and_cosine_of_pi;
use crate::types::DType;

const LN_PI: f64 = 1.144_729_885_849_400_2;
/// (ln(2π) - 1) / 2.
const STIRLING_CONSTANT: f64 = 0.418_938_533_204_672_7;

/// Of numbers from 0 on.
fn above_0(x: Term<'_>) -> Term<'_> {
    let unity = x.constant(1.0);
    let whole = x.round();
    let rest = x - whole;
    let near_2 = rest * rest.polynomial(&GAMMA_NEAR_2);
    // What Γ next to 2 is multiplied by, or below 3/2 divided.
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

pub(crate) fn logarithm_of_gamma(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    real(program, dtype, operands, |[x]| {
        let size = x.absolute();
        let result = above_0(size);
        let [result] = x.less(0.0).rarely([result], || {
            let [sine, _] = sine_and_cosine_of_pi(size);
            let reflected = (x.constant(LN_PI) - logarithm((size * sine).absolute())) - result;
            // So close to 0 both are -ln |x|, and the product would vanish; from where all numbers are integers, there are poles.
            let tiny = size.less(x.either(2f64.powi(-30), 2f64.powi(-60)));
            let large = x.either(2f64.powi(23), 2f64.powi(52)).less_equal(size);
            let reflected = large.select(x.constant(f64::INFINITY), reflected);
            [tiny.select(result, reflected)]
        });
        x.unless_nan(result)
    })
}
