//! Rational powers in f64 as fused expressions.
//!
//! Small integer exponents are chains of products. A reduced exponent with an odd denominator has the real root of a negative
//! base, and one with an even denominator gives NaN there.
//!
//! Tests: `tests/srt/symbolic.rs`, `tests/parity/symbolic.rs`.

use crate::fuse::Expr;
use crate::srt::Rational;
use crate::types::DType;

/// The largest integer exponent that is a chain of products. Beyond, the error of the products exceeds that of `pow`.
const MAX_PRODUCT: u128 = 256;
/// Larger integers may be even in f64 though they are odd.
const MAX_EXACT: u128 = 1 << 53;
/// x to a rational power.
pub(super) fn power(x: Expr<'_>, exponent: Rational) -> Expr<'_> {
    let value = exponent.to_f64();
    let integer = exponent.to_integer().filter(|integer| integer.unsigned_abs() <= MAX_EXACT);
    if let Some(integer) = integer {
        if integer.unsigned_abs() > MAX_PRODUCT {
            return x.pow(value);
        }
        let power = product(x, integer.unsigned_abs() as u32);
        return if integer < 0 { power.reciprocal() } else { power };
    }
    if exponent.denominator() % 2 == 0 {
        // The exponent in f64 may be an integer, and -∞ to a fraction is +∞ for `pow`.
        return if value == 0.5 { x.sqrt() } else { x.lt(0.0).choose(f64::NAN, x.pow(value)) };
    }
    let magnitude = x.abs().pow(value);
    if exponent.numerator() % 2 == 0 { magnitude } else { magnitude.copysign(x) }
}

/// The product of `count` factors x, by squaring; 1 for none.
fn product(x: Expr<'_>, count: u32) -> Expr<'_> {
    let mut squares = (0..u32::BITS - count.leading_zeros()).scan(x, |square, _| {
        let at = *square;
        *square = at * at;
        Some(at)
    });
    let mut set = (0..).zip(&mut squares).filter(|(bit, _)| count >> bit & 1 == 1).map(|(_, square)| square);
    match set.next() {
        Some(first) => set.fold(first, |product, square| product * square),
        // 1 for NaN too, as `powi` has it.
        None => x.eq(x).logical_or(true).cast(DType::F64),
    }
}
