//! Products of many numbers, in which a zero stays a zero beside partial products that overflow.
//!
//! A partial product whose steps overflowed is no infinity: a zero times it is 0, while a zero times an infinity that was
//! given is NaN. So what overflowed is kept as a signaling NaN of a bit pattern of its own, with the product's sign, until
//! [`restored`] makes it an infinity. Arithmetic never gives signaling NaNs, and widening from f16 and bf16 makes them quiet,
//! so only a given f32 or f64 with just these bits would be taken for an overflow. That costs one comparison for each
//! product; the rest is rare.

use super::super::operation::Parts;
use super::super::program::Program;
use super::term::{Like, Term, formula};
use super::{arithmetic, one};
use crate::types::DType;

/// Of an infinity, by bits without the sign: in f32 and in f64.
const INFINITE: [i64; 2] = [0x7fa5_1e5d, 0x7ff4_5e1d_ed6e_0001];
/// Of a NaN, the difference of two overflows in a complex product.
const UNKNOWN: [i64; 2] = [0x7fa5_1e5e, 0x7ff4_5e1d_ed6e_0002];

fn bits_for(pattern: [i64; 2], like: Term<'_>) -> i64 {
    pattern[usize::from(like.is_double())]
}

fn has_pattern(x: Term<'_>, pattern: [i64; 2]) -> Term<'_> {
    // Not of `abs`, which may give another NaN on a device.
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

/// A part of a product of finite numbers.
fn kept(x: Term<'_>) -> Term<'_> {
    let pattern = |pattern| bits_for(pattern, x).like(x.bits_of()).float_of();
    let infinite = pattern(INFINITE).with_sign(x);
    let is_infinite = x.absolute().equal(f64::INFINITY);
    x.is_nan().select(pattern(UNKNOWN), is_infinite.select(infinite, x))
}

fn is_finite(x: Term<'_>) -> Term<'_> {
    x.absolute().less(f64::INFINITY)
}

/// An infinity or a NaN that does not come of an overflow.
fn is_given(x: Term<'_>) -> Term<'_> {
    !(is_finite(x) | has_overflowed(x))
}

/// x · y of two values that were given or are products of such.
pub(crate) fn combined(program: &mut Program, dtype: DType, x: Parts, y: Parts) -> Parts {
    if dtype.is_complex() {
        return formula(program, [x[0], x[1], y[0], y[1]], |[a, b, c, d]| complex([a, b], [c, d]));
    }
    if !dtype.is_float() {
        return arithmetic::multiply(program, dtype, &[x, y]);
    }
    let [product] = formula(program, [x[0], y[0]], |[x, y]| {
        let product = x * y;
        (!is_finite(product)).rarely([product], || {
            let of_given = is_given(x) | is_given(y);
            let is_zero = x.equal(0.0) | y.equal(0.0);
            let zero = x.constant(0.0).by_sign(x).by_sign(y);
            let product = number(x) * number(y);
            [of_given.select(product, is_zero.select(zero, kept(product)))]
        })
    });
    one(product)
}

fn times<'p>([a, b]: [Term<'p>; 2], [c, d]: [Term<'p>; 2]) -> [Term<'p>; 2] {
    [a * c - b * d, a * d + b * c]
}

/// A 1 gives the other factor bit for bit, since it stands for elements that are missing.
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
            of_given.select(part, is_zero.select(zero, kept(part)))
        }))
    })
}

/// A product as a number.
pub(crate) fn restored(program: &mut Program, x: Parts) -> Parts {
    formula(program, x, |x| x.map(number))
}
