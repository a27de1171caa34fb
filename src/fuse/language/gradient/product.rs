//! The derivative of the product of a group.

use super::super::graph::Expr;
use crate::types::DType;

/// Returns the product of the other elements of a group for each element, as f64 or c128.
///
/// A quotient of the product and an element would be wrong where the product overflows or underflows. Each element is therefore a
/// power of 2 and a mantissa from about sqrt(1/2) to sqrt(2): the exponents of the others are a difference of integers, and their
/// mantissas a quotient whose dividend stays in the range of f64 unless some thousand mantissas all err to one side. Zeros,
/// infinities and NaNs among the others are counted.
pub(crate) fn product_of_others(x: Expr<'_>) -> Expr<'_> {
    let is_complex = x.dtype().is_complex();
    let x = x.cast(if is_complex { DType::C128 } else { DType::F64 });
    let size = if is_complex { x.real().abs().maximum(x.imag().abs()) } else { x.abs() };
    let [is_zero, is_infinite, is_nan] = [size.eq(0.0), size.is_infinite(), size.is_nan()];
    let is_ordinary = size.gt(0.0).logical_and(size.is_finite());

    let exponent = is_ordinary.choose(size, 1.0).log2().round();
    // In two steps, because the power for a subnormal number is past the range.
    let half = (exponent * 0.5).floor();
    let scaled = x * (-half).exp2() * (half - exponent).exp2();
    let direction = is_infinite.choose(x.sign(), 1.0);
    let mantissa = is_ordinary.choose(scaled, direction);
    let exponent = exponent.cast(DType::I64);

    let mantissas = mantissa.prod_group() / mantissa;
    let exponents = exponent.sum_group() - exponent;
    let left = exponents.cast(DType::F64).maximum(-4000.0).minimum(4000.0);
    let quarter = (left * 0.25).round();
    let scale = quarter.exp2();
    let finite = mantissas * scale * scale * scale * (left - quarter * 3.0).exp2();

    fn has_other(is_one: Expr<'_>) -> Expr<'_> {
        let count = is_one.cast(DType::I64);
        (count.sum_group() - count).gt(0)
    }
    let [zero, infinite, nan] = [has_other(is_zero), has_other(is_infinite), has_other(is_nan)];
    let product = infinite.choose(mantissas * f64::INFINITY, finite);
    let is_undefined = nan.logical_or(zero.logical_and(infinite));
    is_undefined.choose(f64::NAN, zero.choose(0.0, product))
}
