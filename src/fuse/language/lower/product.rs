//! Products of many numbers, in which a zero gives 0 even if partial products overflow.
//!
//! An overflowed partial product is not an infinity: a zero times it is 0, while a zero times an infinite
//! element is NaN. The product therefore stores an overflow as a signaling NaN with a bit pattern of its own
//! and the product's sign, until [`restored`] converts it to an infinity. Arithmetic never produces signaling
//! NaNs, and widening from f16 and bf16 quiets them, so only an f32 or f64 element with exactly these bits
//! would be mistaken for an overflow. The check costs one comparison a product; the rest is a rare body.

use super::term::{Like, Term, formula};
use super::{arithmetic, real_parts_of};
use crate::fuse::ir::program::{Program, ValueParts};
use crate::types::DType;

/// The pattern of an infinity, without the sign, in f32 and f64.
const INFINITE: [i64; 2] = [0x7fa5_1e5d, 0x7ff4_5e1d_ed6e_0001];
/// The pattern of a NaN, the difference of two overflows in a complex product.
const UNKNOWN: [i64; 2] = [0x7fa5_1e5e, 0x7ff4_5e1d_ed6e_0002];

fn bits_for(pattern: [i64; 2], like: Term<'_>) -> i64 {
    pattern[usize::from(like.is_double())]
}

fn has_pattern(x: Term<'_>, pattern: [i64; 2]) -> Term<'_> {
    // Not the bits of `abs`, which may be another NaN on a device.
    let low = if x.is_double() { i64::MAX } else { i64::from(i32::MAX) };
    (x.bits_of() & low).equal(bits_for(pattern, x))
}

fn has_overflowed(x: Term<'_>) -> Term<'_> {
    has_pattern(x, INFINITE) | has_pattern(x, UNKNOWN)
}

fn number(x: Term<'_>) -> Term<'_> {
    let infinity = x.constant(f64::INFINITY).with_sign(x);
    let unknown = has_pattern(x, UNKNOWN).select(x.constant(f64::NAN), x);
    has_pattern(x, INFINITE).select(infinity, unknown)
}

/// Encodes a part of a product of finite numbers.
fn encoded(x: Term<'_>) -> Term<'_> {
    let pattern = |pattern| bits_for(pattern, x).like(x.bits_of()).float_of();
    let infinite = pattern(INFINITE).with_sign(x);
    let is_infinite = x.absolute().equal(f64::INFINITY);
    x.is_nan().select(pattern(UNKNOWN), is_infinite.select(infinite, x))
}

fn is_finite(x: Term<'_>) -> Term<'_> {
    x.absolute().less(f64::INFINITY)
}

/// Returns whether x is an infinity or NaN that does not result from an overflow.
fn is_given(x: Term<'_>) -> Term<'_> {
    !(is_finite(x) | has_overflowed(x))
}

/// Returns x · y of two elements or encoded products.
pub(crate) fn combined(program: &mut Program, dtype: DType, x: ValueParts, y: ValueParts) -> ValueParts {
    if dtype.is_complex() {
        return formula(program, [x[0], x[1], y[0], y[1]], |[a, b, c, d]| complex([a, b], [c, d]));
    }
    if !dtype.is_float() {
        return arithmetic::mul(program, dtype, &[x, y]);
    }
    let [product] = formula(program, [x[0], y[0]], |[x, y]| {
        let product = x * y;
        (!is_finite(product)).rarely([product], || {
            let of_given = is_given(x) | is_given(y);
            let is_zero = x.equal(0.0) | y.equal(0.0);
            let zero = x.constant(0.0).by_sign(x).by_sign(y);
            let product = number(x) * number(y);
            [of_given.select(product, is_zero.select(zero, encoded(product)))]
        })
    });
    real_parts_of(product)
}

fn times<'p>([a, b]: [Term<'p>; 2], [c, d]: [Term<'p>; 2]) -> [Term<'p>; 2] {
    [a * c - b * d, a * d + b * c]
}

/// A factor of 1 gives the other factor bit for bit, because it represents missing elements.
fn complex<'p>(x: [Term<'p>; 2], y: [Term<'p>; 2]) -> [Term<'p>; 2] {
    let product = times(x, y);
    let is_one = |[real, imaginary]: [Term<'p>; 2]| real.equal(1.0) & imaginary.equal(0.0);
    let (first, second) = (is_one(x), is_one(y));
    let unless_one = |product: [Term<'p>; 2]| {
        [0, 1].map(|part| second.select(x[part], first.select(y[part], product[part])))
    };
    let usual = unless_one(product);
    (!(is_finite(product[0]) & is_finite(product[1]))).rarely(usual, || {
        let any = |[real, imaginary]: [Term<'p>; 2], is: fn(Term<'p>) -> Term<'p>| is(real) | is(imaginary);
        let of_given = any(x, is_given) | any(y, is_given);
        let is_origin = |[real, imaginary]: [Term<'p>; 2]| real.equal(0.0) & imaginary.equal(0.0);
        let is_zero = is_origin(x) | is_origin(y);
        let product = times(x.map(number), y.map(number));
        unless_one(product.map(|part| {
            let zero = part.constant(0.0);
            of_given.select(part, is_zero.select(zero, encoded(part)))
        }))
    })
}

/// Decodes a product to a number.
pub(crate) fn restored(program: &mut Program, x: ValueParts) -> ValueParts {
    formula(program, x, |x| x.map(number))
}
