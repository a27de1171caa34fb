//! Exponentials, logarithms, roots, and circular and hyperbolic functions of complex numbers.
//!
//! Branch cuts, signed zeros and infinities follow C99 Annex G: on a cut the sign of the zero selects the
//! side. `log` and `sqrt` are cut along the negative axis, `asin`, `acos` and `atanh` beyond -1 and 1, `acosh` below 1,
//! `asinh` and `atan` beyond -i and i. `tan` and `tanh` of an infinite angle at 0 keep the 0. Circular functions are hyperbolic functions of a rotated argument: sin(z) = -i sinh(iz), tan(z) = -i
//! tanh(iz), and likewise their inverses. The inverses follow W. Kahan ("Branch cuts for complex elementary
//! functions", 1987). Errors are small relative to the magnitude of the result; a part much smaller than the
//! other may be less accurate. Infinite results, NaN and arguments that need scaling are rare bodies.

use std::f64::consts::{FRAC_PI_2, LN_2, LN_10};

use super::complex;
use super::elementary::less_1;
use super::inverse::{angle_of, angle_of_ratio};
use super::logarithmic::{
    inverse_hyperbolic_sine as arc_sinh, logarithm as real_logarithm, of_1_plus, of_sum_of,
};
use super::power::{DoubleWord, in_powers_of_2, is_normal, power_of_2};
use super::reciprocal::reciprocal;
use super::term::{Term, formula};
use super::trigonometric::sine_and_cosine;
use crate::fuse::ir::program::{Program, ValueParts};
use crate::types::DType;

/// The real and the imaginary part.
type Complex<'p> = [Term<'p>; 2];

fn is_finite(x: Term<'_>) -> Term<'_> {
    x.absolute().less(f64::INFINITY)
}

fn is_infinite(x: Term<'_>) -> Term<'_> {
    x.absolute().equal(f64::INFINITY)
}

fn nan(like: Term<'_>) -> Term<'_> {
    like.constant(f64::NAN)
}

/// Returns e^x · 2^shift times two factors of at most 1, which are 0 or finite whenever y is. A shift of a factor in its place may
/// lose the last digits of a subnormal one.
fn scaled_by_exponential<'p>(x: Term<'p>, y: Term<'p>, shift: f64, factors: Complex<'p>) -> Complex<'p> {
    let zero = x.constant(0.0);
    let DoubleWord { hi, lo } = in_powers_of_2(DoubleWord { hi: x, lo: zero }, 1.0);
    let exponent = DoubleWord { hi: if shift == 0.0 { hi } else { hi + shift }, lo };
    let scaled = power_of_2(exponent);
    let scale = scaled.normal(x.constant(1.0));
    // The factor first: it may be subnormal.
    let usual = factors.map(|factor| factor * scale * scaled.power);
    (!is_normal(exponent.hi)).rarely(usual, || {
        let most = x.by_precision(290.0, 2110.0);
        let inside = exponent.hi.absolute().less(most);
        let hi = exponent.hi.maximum(-most).minimum(most);
        let scaled = power_of_2(DoubleWord { hi, lo: inside.select(exponent.lo, 0.0) });
        let [real, imaginary] = factors.map(|factor| scaled.far(factor));
        // An infinite x without an angle: 0, or an infinite real part.
        let apart = is_infinite(x) & !is_finite(y);
        let limit = x.maximum(zero);
        let real = apart.select(limit, real);
        let imaginary = (apart & x.less(0.0)).select(zero, imaginary);
        let imaginary = x.is_nan().select(y.equal(0.0).select(imaginary, nan(x)), imaginary);
        [x.unless_nan(real), imaginary]
    })
}

fn exponential_of([x, y]: Complex<'_>) -> Complex<'_> {
    let [sine, cosine] = sine_and_cosine(y);
    scaled_by_exponential(x, y, 0.0, [cosine, sine])
}

/// Returns sinh and cosh of a real number of moderate size.
fn hyperbolic<'p>(x: Term<'p>) -> [Term<'p>; 2] {
    let grown = x.absolute().then(less_1);
    let rest = grown / (grown + 1.0);
    let sine = ((grown + rest) * 0.5).with_sign(x);
    [sine, (grown * rest).fma(0.5, 1.0)]
}

/// Returns whether a hyperbolic function needs a rare body: x is past a limit, or y has no angle.
fn is_special<'p>(x: Term<'p>, y: Term<'p>, limit: Term<'p>) -> Term<'p> {
    !(x.absolute().less(limit) & is_finite(y))
}

fn sinh_of([x, y]: Complex<'_>) -> Complex<'_> {
    let [sine, cosine] = sine_and_cosine(y);
    let [sinh, cosh] = hyperbolic(x);
    is_special(x, y, x.by_precision(80.0, 700.0)).rarely([sinh * cosine, cosh * sine], || {
        let [real, imaginary] = scaled_by_exponential(x.absolute(), y, -1.0, [cosine, sine]);
        let real = real.by_sign(x);
        [x.equal(0.0).select(x, real), imaginary]
    })
}

fn cosh_of([x, y]: Complex<'_>) -> Complex<'_> {
    let [sine, cosine] = sine_and_cosine(y);
    let [sinh, cosh] = hyperbolic(x);
    is_special(x, y, x.by_precision(80.0, 700.0)).rarely([cosh * cosine, sinh * sine], || {
        let [real, imaginary] = scaled_by_exponential(x.absolute(), y, -1.0, [cosine, sine.by_sign(x)]);
        [real, x.equal(0.0).select(x, imaginary)]
    })
}

/// Returns (sinh x cosh x + i sin y cos y) / (sinh² x + cos² y), a sum without cancellation.
fn tanh_of([x, y]: Complex<'_>) -> Complex<'_> {
    let [sine, cosine] = sine_and_cosine(y);
    let [sinh, cosh] = hyperbolic(x);
    let inverse = x.constant(1.0) / sinh.fma(sinh, cosine * cosine);
    let usual = [sinh * cosh * inverse, sine * cosine * inverse];
    is_special(x, y, x.by_precision(11.0, 22.0)).rarely(usual, || {
        let size = x.absolute();
        let factor = sine * cosine;
        let [imaginary, _] = scaled_by_exponential(size * -2.0, y, 2.0, [factor, factor]);
        // 2 x may be infinite for a finite x.
        let is_undefined = is_finite(x) & !is_finite(y);
        let imaginary = is_undefined.select(nan(x), imaginary);
        let real = is_undefined.select(nan(x), x.constant(1.0).with_sign(x));
        let real = x.equal(0.0).select(x, real);
        let no_angle = x.is_nan() & y.equal(0.0);
        [x.unless_nan(real), no_angle.select(y, imaginary)]
    })
}

/// Returns ln |z| for any z, with |z|² as 1 + (y/x)² times x².
fn logarithm_of_length([x, y]: Complex<'_>) -> Term<'_> {
    let (x, y) = (x.absolute(), y.absolute());
    // As the angle has it.
    let is_steep = x.less(y);
    let (large, small) = (is_steep.select(y, x), is_steep.select(x, y));
    let ratio = large.equal(0.0).select(large, small / large);
    let result = of_1_plus(ratio * ratio).fma(0.5, real_logarithm(large));
    let result = x.unordered(y).select(x + y, result);
    (is_infinite(x) | is_infinite(y)).select(x.constant(f64::INFINITY), result)
}

/// Returns ln |z| with |z|² as a sum of two numbers, which matters near 1: the error of the smaller part's
/// square is small beside that part, and therefore beside the angle. Only rare bodies branch, so a device
/// overlaps the steps of magnitude and angle, each of which is a dependent chain.
fn logarithm_of([x, y]: Complex<'_>) -> Complex<'_> {
    let is_steep = x.absolute().less(y.absolute());
    let (large, small) = (is_steep.select(y, x), is_steep.select(x, y));
    let square = small * small;
    let sum = large.fma(large, square);
    let lost = large.fma(large, -sum) + square;
    let length = of_sum_of(sum, lost) * 0.5;
    let inverse = reciprocal(large);
    let ratio = small * inverse;
    let ratio = (-large).fma(ratio, small).fma(inverse, ratio);
    let angle = angle_of_ratio(ratio, is_steep, x).with_sign(y);
    // False for NaN in both tests.
    let inside = x.by_precision(2f64.powi(-60), 2f64.powi(-240)).less(sum)
        & sum.less(x.by_precision(2f64.powi(120), 2f64.powi(240)));
    (!inside).rarely([length, angle], || [logarithm_of_length([x, y]), angle_of(y, x)])
}

/// Returns the root of a number whose square neither overflows nor underflows.
fn moderate_root<'p>([x, y]: Complex<'p>) -> Complex<'p> {
    let length = x.fma(x, y * y).square_root();
    let large = ((length + x.absolute()) * 0.5).square_root();
    let small = y.absolute() / (large + large);
    let left = x.is_negative();
    [left.select(small, large), left.select(large, small).with_sign(y)]
}

fn square_root_of([x, y]: Complex<'_>) -> Complex<'_> {
    let size = x.absolute().maximum(y.absolute());
    let (low, high) =
        (x.by_precision(2f64.powi(-40), 2f64.powi(-400)), x.by_precision(2f64.powi(60), 2f64.powi(500)));
    let inside = low.less(size) & size.less(high) & x.equal(x) & y.equal(y);
    (!inside).rarely(moderate_root([x, y]), || {
        let is_large = x.constant(1.0).less(size);
        let scale = is_large.select(
            x.by_precision(2f64.powi(-100), 2f64.powi(-600)),
            x.by_precision(2f64.powi(100), 2f64.powi(700)),
        );
        let back = is_large.select(
            x.by_precision(2f64.powi(50), 2f64.powi(300)),
            x.by_precision(2f64.powi(-50), 2f64.powi(-350)),
        );
        let [real, imaginary] = moderate_root([x * scale, y * scale]).map(|part| part * back);
        let zero = x.constant(0.0);
        let origin = size.equal(0.0);
        let (real, imaginary) = (origin.select(zero, real), origin.select(y, imaginary));
        let nan = x.unordered(y);
        let (real, imaginary) = (nan.select(x + y, real), nan.select(x + y, imaginary));
        // An infinite x takes the sign of y, and an infinite y makes both parts infinite.
        let (right, left) = (x.equal(f64::INFINITY), x.equal(f64::NEG_INFINITY));
        let infinity = x.constant(f64::INFINITY);
        let without_angle = y.unless_nan(zero);
        let real = right.select(infinity, left.select(without_angle, real));
        let imaginary =
            right.select(without_angle.with_sign(y), left.select(infinity.with_sign(y), imaginary));
        let tall = is_infinite(y);
        [tall.select(infinity, real), tall.select(y, imaginary)]
    })
}

/// Returns whether neither part is NaN, infinite or so large that products of roots overflow.
fn is_moderate<'p>(x: Term<'p>, y: Term<'p>) -> Term<'p> {
    let limit = x.by_precision(2f64.powi(60), 2f64.powi(500));
    x.absolute().less(limit) & y.absolute().less(limit)
}

/// Returns whether y is so small, and x within 1 and -1, that the halves of y in the roots of 1 - z and 1 + z lose digits.
fn is_flat<'p>(x: Term<'p>, y: Term<'p>) -> Term<'p> {
    let height = y.absolute();
    let is_small =
        y.constant(0.0).less(height) & height.less(y.by_precision(2f64.powi(-90), 2f64.powi(-800)));
    is_small & x.absolute().less(1.0)
}

/// Returns the imaginary part of the inverse sine of x + iy for such a y: y / sqrt(1 - x²).
fn flat_height<'p>(x: Term<'p>, y: Term<'p>) -> Term<'p> {
    y / ((x + 1.0) * (x.constant(1.0) - x)).square_root()
}

/// Returns asinh |z| for a finite z so large that 1/z² vanishes beside 1: ln |2z|.
fn logarithm_of_double(z: Complex<'_>) -> Term<'_> {
    logarithm_of_length(z) + LN_2
}

fn arc_sine_of([x, y]: Complex<'_>) -> Complex<'_> {
    let below = square_root_of([x.constant(1.0) - x, -y]);
    let above = square_root_of([x + 1.0, y]);
    let width = below[0].fma(above[0], -(below[1] * above[1]));
    let height = below[0].fma(above[1], -(below[1] * above[0]));
    let usual = [angle_of(x, width), arc_sinh(height).with_sign(y)];
    let is_flat = is_flat(x, y);
    (!is_moderate(x, y) | is_flat).rarely(usual, || {
        let has_angle = is_infinite(x) | is_infinite(y) | !x.unordered(y);
        // Infinite if either part is.
        let imaginary = has_angle.select(logarithm_of_double([x, y]).with_sign(y), nan(x));
        let angle = has_angle.select(angle_of(x, y.absolute()), nan(x));
        let imaginary = is_flat.select(flat_height(x, y), imaginary);
        [is_flat.select(usual[0], x.equal(0.0).select(x, angle)), imaginary]
    })
}

fn arc_cosine_of([x, y]: Complex<'_>) -> Complex<'_> {
    let below = square_root_of([x.constant(1.0) - x, -y]);
    let above = square_root_of([x + 1.0, y]);
    let height = above[0].fma(below[1], -(above[1] * below[0]));
    let usual = [angle_of(below[0], above[0]) * 2.0, arc_sinh(height).with_sign(-y)];
    let is_flat = is_flat(x, y);
    (!is_moderate(x, y) | is_flat).rarely(usual, || {
        let has_angle = is_infinite(x) | is_infinite(y) | !x.unordered(y);
        let imaginary = has_angle.select(logarithm_of_double([x, y]).with_sign(-y), nan(x));
        let angle = has_angle.select(angle_of(y.absolute(), x), nan(x));
        let imaginary = is_flat.select(-flat_height(x, y), imaginary);
        [is_flat.select(usual[0], x.equal(0.0).select(x.constant(FRAC_PI_2), angle)), imaginary]
    })
}

fn arc_tanh_of([x, y]: Complex<'_>) -> Complex<'_> {
    let (size, height) = (x.absolute(), y.absolute());
    let unity = x.constant(1.0);
    let rest = unity - size;
    let distance = rest.fma(rest, y * y);
    let real = of_1_plus((size * 4.0) / distance) * 0.25;
    let width = rest.fma(size + 1.0, -(y * y));
    let imaginary = angle_of(y + y, width) * 0.5;
    let large = size.maximum(height);
    let far = x.by_precision(2f64.powi(50), 2f64.powi(400));
    let close = x.by_precision(2f64.powi(-40), 2f64.powi(-400));
    let inside = large.less(far) & !(size.equal(1.0) & height.less(close)) & x.equal(x) & y.equal(y);
    (!inside).rarely([real.with_sign(x), imaginary], || {
        // Far away it is 1/z and a quarter turn; next to 1 and -1, ln(2 / |y|) / 2 and half of that.
        let ratio = size.minimum(height) / large;
        let inverse = (size / large) / ratio.fma(ratio, 1.0) / large;
        let is_far = far.less_equal(large);
        let pole = (real_logarithm(height) - LN_2) * -0.5;
        let real = is_far.select(inverse, pole);
        let infinite = is_infinite(x) | is_infinite(y);
        let real = infinite.select(x.constant(0.0), x.unordered(y).select(nan(x), real));
        let real = x.equal(0.0).select(x, real.with_sign(x));
        let quarter = x.constant(FRAC_PI_2).with_sign(y);
        let imaginary = (is_far | infinite).select(quarter, imaginary);
        let no_angle = y.is_nan() | (x.is_nan() & !is_infinite(y));
        [real, no_angle.select(nan(x), imaginary)]
    })
}

/// Applies a function to iz and rotates the result back: -i f(iz).
fn rotated<'p>([x, y]: Complex<'p>, function: impl FnOnce(Complex<'p>) -> Complex<'p>) -> Complex<'p> {
    let [real, imaginary] = function([-y, x]);
    [imaginary, -real]
}

/// For positive x returns 1 / (1 + e^-z) of z = x + iy, and for other x its product with e^z of -z.
fn sigmoid_parts([x, y]: Complex<'_>) -> [Term<'_>; 4] {
    let negative = x.is_negative();
    let power = exponential_of([-x.absolute(), negative.select(y, -y)]);
    let real = negative.select(power[0], x.constant(1.0));
    [real, negative.select(power[1], x.constant(0.0)), power[0] + 1.0, power[1]]
}

macro_rules! functions {
    ($($name:ident $formula:expr;)*) => {$(
        pub(crate) fn $name(program: &mut Program, _: DType, operands: &[ValueParts]) -> ValueParts {
            formula(program, operands[0], |z| $formula(z))
        }
    )*};
}

functions! {
    exp exponential_of;
    log logarithm_of;
    sqrt square_root_of;
    sin |z| rotated(z, sinh_of);
    cos |z| { let [x, y]: Complex<'_> = z; cosh_of([-y, x]) };
    tan |z| rotated(z, tanh_of);
    sinh sinh_of;
    cosh cosh_of;
    tanh tanh_of;
    asin arc_sine_of;
    acos arc_cosine_of;
    atan |z| rotated(z, arc_tanh_of);
    asinh |z| rotated(z, arc_sine_of);
    acosh |z| {
        let [x, y]: Complex<'_> = z;
        let [angle, height] = arc_cosine_of([x, y]);
        [height.absolute(), angle.with_sign(y)]
    };
    atanh arc_tanh_of;
    log2 |z| logarithm_of(z).map(|part| part * (1.0 / LN_2));
    log10 |z| logarithm_of(z).map(|part| part * (1.0 / LN_10));
}

pub(crate) fn sigmoid(program: &mut Program, _: DType, operands: &[ValueParts]) -> ValueParts {
    let [a, b, c, d] = formula(program, operands[0], sigmoid_parts);
    complex::divide(program, [a, b], [c, d])
}

pub(crate) fn rsqrt(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    let root = sqrt(program, dtype, operands);
    let (unity, zero) = (program.float(root[0], 1.0), program.float(root[0], 0.0));
    complex::divide(program, [unity, zero], root)
}

/// e^(y ln x); 1 if y is 0.
pub(crate) fn pow(program: &mut Program, _: DType, operands: &[ValueParts]) -> ValueParts {
    let [[a, b], [c, d]] = [operands[0], operands[1]];
    formula(program, [a, b, c, d], |[a, b, c, d]| {
        let [length, angle] = logarithm_of([a, b]);
        let exponent = [c.fma(length, -(d * angle)), c.fma(angle, d * length)];
        let [real, imaginary] = exponential_of(exponent);
        let trivial = c.equal(0.0) & d.equal(0.0);
        [trivial.select(c.constant(1.0), real), trivial.select(c.constant(0.0), imaginary)]
    })
}

/// z / |z|, and 0 at 0; for one infinite part, as in NumPy, its sign.
pub(crate) fn sign(program: &mut Program, _: DType, operands: &[ValueParts]) -> ValueParts {
    formula(program, operands[0], |[x, y]| {
        let size = x.absolute().maximum(y.absolute());
        let [real, imaginary] = [x / size, y / size];
        let inverse = x.constant(1.0) / real.fma(real, imaginary * imaginary).square_root();
        let origin = size.equal(0.0);
        let usual = [origin.select(x, real * inverse), origin.select(y, imaginary * inverse)];
        (!is_finite(size)).rarely(usual, || {
            let is_one = is_infinite(x) ^ is_infinite(y);
            [(x, 0), (y, 1)].map(|(part, index)| {
                let unit = is_infinite(part).select(x.constant(1.0), 0.0).with_sign(part);
                is_one.select(unit, usual[index])
            })
        })
    })
}
