//! Complex arithmetic with the formulas of [`crate::types::complex`], in the same order of the same rounded
//! operations.

use super::real_parts_of;
use super::term::{Term, formula};
use crate::fuse::ir::program::{Program, ValueParts};
use crate::types::DType;

/// Returns (ac - bd) + (ad + bc)i.
pub(crate) fn mul(program: &mut Program, [a, b]: ValueParts, [c, d]: ValueParts) -> ValueParts {
    let (ac, bd) = (program.multiply(a, c), program.multiply(b, d));
    let (ad, bc) = (program.multiply(a, d), program.multiply(b, c));
    [program.subtract(ac, bd), program.add(ad, bc)]
}

/// Divides by Smith's formula, with the special cases of C99 Annex G.
///
/// Powers of 2 scale dividend and divisor if a sum overflows, or if the divisor is so small that its products
/// lose digits. That case is rare, like infinities and NaNs.
pub(super) fn divide(program: &mut Program, [a, b]: ValueParts, [c, d]: ValueParts) -> ValueParts {
    formula(program, [a, b, c, d], |[a, b, c, d]| {
        let smith = Smith::new([a, b], [c, d]);
        let divisor = smith.divisor.absolute();
        let least = a.by_precision(2f64.powi(-100), 2f64.powi(-960));
        let sum = smith.parts[0].absolute() + smith.parts[1].absolute();
        let is_usual = least.less(divisor) & divisor.less(f64::INFINITY) & sum.less(f64::INFINITY);
        let usual = smith.quotient();
        (!is_usual).rarely(usual, || {
            let larger = a.by_precision(2f64.powi(64), 2f64.powi(600));
            let (small, smaller) = (a.by_precision(2f64.powi(-40), 2f64.powi(-400)), 0.25);
            let size = a.absolute().maximum(b.absolute());
            let of_dividend = size.less(small).select(larger, smaller);
            let of_divisor = divisor.less_equal(least).select(larger, smaller);
            let scaled = Smith::new([a * of_dividend, b * of_dividend], [c * of_divisor, d * of_divisor]);
            let back = of_divisor / of_dividend;
            let quotient = scaled.quotient().map(|part| part * back);
            let is_lost = quotient[0].is_nan() & quotient[1].is_nan();
            let special = divide_special([a, b], [c, d]);
            [0, 1].map(|part| is_lost.select(special[part], quotient[part]))
        })
    })
}

/// The numerators and the divisor of Smith's quotient.
struct Smith<'p> {
    parts: [Term<'p>; 2],
    divisor: Term<'p>,
}

impl<'p> Smith<'p> {
    /// Computes both branches of Smith's formula as one with exchanged operands. It also exchanges the terms
    /// of the imaginary part, because a change of sign would turn a 0 into a -0.
    fn new([a, b]: [Term<'p>; 2], [c, d]: [Term<'p>; 2]) -> Smith<'p> {
        let by_real = d.absolute().less_equal(c.absolute());
        let (large, small) = (by_real.select(c, d), by_real.select(d, c));
        let (straight, scaled) = (by_real.select(a, b), by_real.select(b, a));
        let ratio = small / large;
        let divisor = large + small * ratio;
        let sum = straight + scaled * ratio;
        let product = straight * ratio;
        let difference = by_real.select(scaled, product) - by_real.select(product, scaled);
        Smith { parts: [sum, difference], divisor }
    }

    fn quotient(&self) -> [Term<'p>; 2] {
        self.parts.map(|part| part / self.divisor)
    }
}

/// Returns the quotient for operands whose quotient by Smith's formula has no value (C99 G.5.1, `_Cdivd`):
/// division by 0, of an infinity, or by an infinity.
fn divide_special<'p>([a, b]: [Term<'p>; 2], [c, d]: [Term<'p>; 2]) -> [Term<'p>; 2] {
    let infinity = a.constant(f64::INFINITY);
    let is_infinite = |x: Term<'p>| x.absolute().equal(f64::INFINITY);
    let is_finite = |x: Term<'p>| x.absolute().less(f64::INFINITY);
    // 1 for an infinity and 0 for another part, with its sign.
    let unit = |x: Term<'p>| is_infinite(x).select(x.constant(1.0), 0.0).with_sign(x);
    let by_zero = c.equal(0.0) & d.equal(0.0);
    let of_infinity = (is_infinite(a) | is_infinite(b)) & is_finite(c) & is_finite(d);
    let by_infinity = (is_infinite(c) | is_infinite(d)) & is_finite(a) & is_finite(b);
    let at_zero = infinity.with_sign(c);
    let direction = |[a, b]: [Term<'p>; 2], [c, d]: [Term<'p>; 2]| [a * c + b * d, b * c - a * d];
    let outwards = direction([unit(a), unit(b)], [c, d]);
    // A quarter, so that no sum overflows.
    let inwards = direction([a * 0.25, b * 0.25], [unit(c), unit(d)]);
    let nan = a.constant(f64::NAN);
    [(a, 0), (b, 1)].map(|(dividend, part)| {
        let other = by_infinity.select(inwards[part] * 0.0, nan);
        let other = of_infinity.select(outwards[part] * f64::INFINITY, other);
        by_zero.select(at_zero * dividend, other)
    })
}

pub(crate) fn real(_: &mut Program, _: DType, operands: &[ValueParts]) -> ValueParts {
    real_parts_of(operands[0][0])
}

pub(crate) fn imag(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let x = operands[0][0];
    match dtype {
        _ if dtype.is_complex() => real_parts_of(operands[0][1]),
        DType::Bool => real_parts_of(program.xor(x, x)),
        _ if dtype.is_float() => real_parts_of(program.float(x, 0.0)),
        _ => real_parts_of(program.integer(x, 0)),
    }
}

pub(crate) fn conj(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let [real, imaginary] = operands[0];
    if dtype.is_complex() { [real, program.negate(imaginary)] } else { operands[0] }
}
