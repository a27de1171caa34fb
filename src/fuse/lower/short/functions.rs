//! The other functions of f16 and bf16.
//!
//! Reciprocals and square roots begin with a guess from the exponent's bits and end after two of Newton's steps, within
//! 2^-17; nothing is divided. What a function is at its limits is chosen, not branched to: an element in a block is as
//! often beyond them as not.

use std::f64::consts::{FRAC_PI_2, LN_2, LOG2_E, PI};

use super::super::super::instruction::Instruction;
use super::super::super::operation::Parts;
use super::super::super::program::Program;
use super::super::gamma::above_0_of_single;
use super::super::term::{Term, real};
use super::{LOGARITHM, POWER};
use crate::types::DType;

/// The float at which a unit in the last place is 1.
const ANCHOR: f64 = 12_582_912.0;

/// Even and odd parts of 2^f in f², for |f| up to 1/2, within 2^-23 and 2^-16.
const POWER_EVEN: [f64; 3] = [1.000_000_07, 0.240_221_143, 0.009_675_757_59];
const POWER_ODD: [f64; 2] = [0.693_136_719, 0.055_838_402_5];
/// tanh(x) / x in x² to 4.6, where it is 1: a quotient within 2^-14.9, whose divisor begins with 1.
const TANGENT_ABOVE: [f64; 3] = [0.999_967_931, 0.103_625_638, 0.000_709_614_634];
const TANGENT_BELOW: [f64; 3] = [1.0, 0.436_748_151, 0.013_197_347];
/// erf(x) / x in x² to 2.75, where it is 1, within 2^-14.4.
const ERROR: [f64; 8] = [
    1.128_330_39,
    -0.375_373_05,
    0.110_792_184,
    -0.024_630_662_9,
    0.003_948_641_7,
    -0.000_423_536_575,
    2.672_791_27e-5,
    -7.408_731_98e-7,
];
/// log2 erfc(x), for f16 to 4.2 within 2^-17, for bf16 to 10 within 2^-13.
const COMPLEMENTARY_HALF: [f64; 8] = [
    4.701_662_53e-6,
    -1.628_114_71,
    -0.916_929_508,
    -0.152_620_727,
    0.034_030_320_7,
    -0.005_263_291_05,
    0.000_492_667_406,
    -2.074_865_36e-5,
];
const COMPLEMENTARY_BRAIN: [f64; 10] = [
    -5.299_787_65e-5,
    -1.627_299_6,
    -0.918_871_061,
    -0.151_139_742,
    0.033_825_539_2,
    -0.005_505_455_17,
    0.000_618_572_437,
    -4.499_672_21e-5,
    1.895_133_57e-6,
    -3.495_291_02e-8,
];
/// log2 Φ(-x), for f16 to 6 within 2^-17, for bf16 to 14.4 within 2^-13.
const NORMAL_HALF: [f64; 8] = [
    -0.999_995_294,
    -1.151_251_05,
    -0.458_464_392,
    -0.053_960_069_9,
    0.008_507_891_14,
    -0.000_930_524_875,
    6.159_824_49e-5,
    -1.834_811_36e-6,
];
const NORMAL_BRAIN: [f64; 10] = [
    -1.000_061_13,
    -1.150_570_86,
    -0.459_648_387,
    -0.053_268_238_1,
    0.008_390_446_54,
    -0.000_958_745_037,
    7.545_991_81e-5,
    -3.838_446_08e-6,
    1.128_939_4e-7,
    -1.452_506_6e-9,
];
/// asin(x) / x in x² to 1/4, within 2^-19.
const ARC_SINE: [f64; 4] = [0.999_998_454, 0.166_854_778, 0.071_456_567_4, 0.065_140_554_3];
/// acos(x) / sqrt(1 - x) from 0 to 1, within 2^-17.
const ARC_COSINE: [f64; 5] =
    [1.570_787_44, -0.214_110_816, 0.084_596_576_1, -0.035_643_446_4, 0.008_591_812_53];
/// atan(x) / x in x² to 1, within 2^-17.
const ARC_TANGENT: [f64; 6] =
    [0.999_995_63, -0.332_994_598, 0.195_635_934, -0.121_239_088, 0.057_477_325, -0.013_480_471_5];
/// asinh(x) / x in x² to 1/4, within 2^-20.
const AREA_SINE: [f64; 4] = [0.999_999_392, -0.166_585_451, 0.073_289_637_7, -0.032_677_726_7];
/// sin(r) / r and cos(r) in r² to π/4, within 2^-19 and 2^-16.
const SINE: [f64; 3] = [0.999_998_457, -0.166_622_645, 0.008_147_028_55];
const COSINE: [f64; 3] = [0.999_987_235, -0.499_668_615, 0.040_328_251_7];
/// sin(πr) / (πr) in r² to 1/4, within 2^-19.
const SINE_OF_PI: [f64; 4] = [0.999_999_061, -1.644_824_26, 0.809_654_604, -0.177_742_982];
/// ln Γ(2 + b) / (b (1 + b)) from -1.3 to 1.2, within 2^-15.
const GAMMA_AROUND_2: [f64; 9] = [
    0.422_790_034,
    -0.100_267_943,
    0.032_809_651,
    -0.012_769_914_7,
    0.005_653_783_33,
    -0.001_316_735_98,
    4.731_897e-6,
    -0.000_959_482_438,
    0.000_631_775_349,
];
/// What Stirling's series adds from 3.2 on, times x, within 2^-14 of the logarithm.
const STIRLING: f64 = 0.0832;

/// c[0] + x (c[1] + x (c[2] + …)).
fn series<'p>(x: Term<'p>, coefficients: &[f64]) -> Term<'p> {
    x.series(coefficients)
}

/// 1/x of numbers whose magnitude is from 2^-126 to 2^126.
fn inverse(x: Term<'_>) -> Term<'_> {
    let guess = (x.bits32(0x7ef3_11c7) - x.bits_of()).float_of();
    (0..2).fold(guess, |guess, _| guess.fma((-x).fma(guess, 1.0), guess))
}

/// sqrt(x) and half of 1 / sqrt(x), of positive normal numbers; the root of 0 too.
fn roots(x: Term<'_>) -> [Term<'_>; 2] {
    let guess = (x.bits32(0x5f37_59df) - (x.bits_of() >> 1)).float_of();
    (0..2).fold([x * guess, guess * 0.5], |[root, half], _| {
        let rest = (-root).fma(half, 0.5);
        [root.fma(rest, root), half.fma(rest, half)]
    })
}

/// x · rate = k + f, as the float 2^(k + shift) and f.
fn split<'p>(x: Term<'p>, rate: f64, shift: i32) -> (Term<'p>, Term<'p>) {
    let anchor = x.constant(ANCHOR + f64::from(127 + shift));
    let sum = x.fma(rate, anchor);
    ((sum.bits_of() << 23).float_of(), x.fma(rate, anchor - sum))
}

/// 2^x for x from -250 on, as a square so that a subnormal result is rounded once.
fn power(x: Term<'_>) -> Term<'_> {
    let (scale, fraction) = split(x, 0.5, 0);
    let root = series(fraction, &POWER) * scale;
    root * root
}

/// 1 / (1 + 2^(x · rate)) for a product from -62 to 180.
fn logistic<'p>(x: Term<'p>, rate: f64) -> Term<'p> {
    // All times 2^-64, which keeps the divisor and its reciprocal in range.
    let (scale, fraction) = split(x, rate, -64);
    let divisor = series(fraction, &POWER).fma(scale, 2f64.powi(-64));
    inverse(divisor) * 2f64.powi(-64)
}

/// x = 2^e (1 + f), with 1 + f from sqrt(1/2) to sqrt(2), of 2^raised · x: e and f.
fn parts(x: Term<'_>, raised: i32) -> [Term<'_>; 2] {
    let middle = i64::from(std::f32::consts::FRAC_1_SQRT_2.to_bits());
    let above = x.bits_of() - (middle - (i64::from(raised) << 23));
    let number = ((above & 0x007f_ffff) + middle).float_of();
    let exponent = (above.shift_right_signed(above.bits32(23)) + 0x4b40_0000).float_of() - ANCHOR;
    [exponent, number - 1.0]
}

/// times · ln of what these are the parts of.
fn logarithm<'p>([exponent, fraction]: [Term<'p>; 2], times: f64) -> Term<'p> {
    let near = series(fraction, &LOGARITHM.map(|coefficient| coefficient * times)) * fraction;
    exponent.fma(LN_2 * times, near)
}

/// times · ln(1 + x) for x from 0 on, as accurate near 0; of 2x where x is halved.
fn logarithm_of_1_plus<'p>(x: Term<'p>, halved: bool, times: f64) -> Term<'p> {
    let (unity, whole) = if halved { (0.5, x + x) } else { (1.0, x) };
    let [exponent, fraction] = parts(x + unity, i32::from(halved));
    let fraction = exponent.equal(0.0).select(whole, fraction);
    logarithm([exponent, fraction], times)
}

/// The result, and x where that is no number below infinity.
fn below_infinity<'p>(x: Term<'p>, result: Term<'p>) -> Term<'p> {
    x.less(f64::INFINITY).select(result, x)
}

pub(in super::super) fn reciprocal_square_root(
    program: &mut Program,
    dtype: DType,
    operands: &[Parts],
) -> Parts {
    real(program, dtype, operands, |[x]| x.apply(Instruction::ReciprocalRootOfNarrow, &[]))
}

pub(in super::super) fn hyperbolic_tangent(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    real(program, dtype, operands, |[x]| {
        let held = x.maximum(-4.6).minimum(4.6);
        let square = held * held;
        let above = series(square, &TANGENT_ABOVE) * held;
        x.unless_nan(above * inverse(series(square, &TANGENT_BELOW)))
    })
}

/// 1 / (1 + e^-x), or x times that.
pub(in super::super) fn sigmoid(
    program: &mut Program,
    dtype: DType,
    operands: &[Parts],
    by_x: bool,
) -> Parts {
    real(program, dtype, operands, |[x]| {
        let held = x.maximum(-100.0);
        let result = logistic(held.minimum(40.0), -LOG2_E);
        x.unless_nan(if by_x { held * result } else { result })
    })
}

/// x / (1 + e^-u) with u = 2 sqrt(2/π) (x + 0.044715 x³).
pub(in super::super) fn gelu_tanh(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    // -2 sqrt(2/π) log2(e), and the same with 0.044715.
    const FIRST: f64 = -2.302_208_198_144_324_8;
    const THIRD: f64 = -0.102_943_239_580_023_5;
    real(program, dtype, operands, |[x]| {
        let held = x.maximum(-11.0);
        let size = held.minimum(6.0);
        let exponent = size * (size * size).fma(THIRD, x.constant(FIRST));
        x.unless_nan(held * logistic(exponent, 1.0))
    })
}

/// x Φ(x), as Φ(x) = 1 - Φ(-x).
pub(in super::super) fn gelu(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    real(program, dtype, operands, |[x]| {
        let (most, coefficients) =
            if dtype == DType::F16 { (6.0, &NORMAL_HALF[..]) } else { (14.4, &NORMAL_BRAIN[..]) };
        let tail = power(series(x.absolute().minimum(most), coefficients));
        let share = x.less(0.0).select(tail, x.constant(1.0) - tail);
        x.unless_nan(x.maximum(-most) * share)
    })
}

pub(in super::super) fn error(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    real(program, dtype, operands, |[x]| {
        let held = x.maximum(-2.75).minimum(2.75);
        x.unless_nan(series(held * held, &ERROR) * held)
    })
}

pub(in super::super) fn complementary_error(
    program: &mut Program,
    dtype: DType,
    operands: &[Parts],
) -> Parts {
    real(program, dtype, operands, |[x]| {
        let (most, coefficients) = if dtype == DType::F16 {
            (4.2, &COMPLEMENTARY_HALF[..])
        } else {
            (10.0, &COMPLEMENTARY_BRAIN[..])
        };
        let tail = power(series(x.absolute().minimum(most), coefficients));
        x.unless_nan(x.less(0.0).select(x.constant(2.0) - tail, tail))
    })
}

/// Of |x|: half of (2^k - 2^-k) / 2, of (2^k + 2^-k) / 2, and the even and the odd part of 2^f.
fn exponential_parts(x: Term<'_>) -> [Term<'_>; 4] {
    let (up, fraction) = split(x.absolute().minimum(89.6), LOG2_E, -2);
    // The exponents of the two add up to -4; far from 0 the other is none.
    let down = x.bits32(250 << 23) - up.bits_of();
    let zero = x.bits32(0);
    let down = down.write(|program| program.maximum_signed(down.value, zero.value)).float_of();
    let square = fraction * fraction;
    [up - down, up + down, series(square, &POWER_EVEN), series(square, &POWER_ODD) * fraction]
}

pub(in super::super) fn hyperbolic_sine(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    real(program, dtype, operands, |[x]| {
        let [less, more, even, odd] = exponential_parts(x);
        let half = less.fma(even, more * odd);
        x.unless_nan((half + half).with_sign(x))
    })
}

pub(in super::super) fn hyperbolic_cosine(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    real(program, dtype, operands, |[x]| {
        let [less, more, even, odd] = exponential_parts(x);
        let half = more.fma(even, less * odd);
        x.unless_nan(half + half)
    })
}

pub(in super::super) fn inverse_hyperbolic_sine(
    program: &mut Program,
    dtype: DType,
    operands: &[Parts],
) -> Parts {
    real(program, dtype, operands, |[x]| {
        let size = x.absolute();
        // From 2^12 on sqrt(x² + 1) is x.
        let held = size.minimum(4096.0);
        let square = held * held;
        let [root, _] = roots(square + 1.0);
        let half = size.fma(0.5, root.maximum(size) * 0.5);
        let far = logarithm(parts(half, 1), 1.0);
        let near = series(square, &AREA_SINE) * size;
        let result = size.less(0.5).select(near, far);
        below_infinity(size, result).with_sign(x)
    })
}

pub(in super::super) fn inverse_hyperbolic_cosine(
    program: &mut Program,
    dtype: DType,
    operands: &[Parts],
) -> Parts {
    real(program, dtype, operands, |[x]| {
        // ln(1 + t + sqrt(2t + t²)) with t = x - 1.
        let t = x - 1.0;
        let held = t.minimum(4096.0);
        let [root, _] = roots(held.fma(held, held + held));
        let half = t.fma(0.5, root.maximum(t) * 0.5);
        let result = below_infinity(x, logarithm_of_1_plus(half, true, 1.0));
        x.less(1.0).select(x.constant(f64::NAN), result)
    })
}

pub(in super::super) fn inverse_hyperbolic_tangent(
    program: &mut Program,
    dtype: DType,
    operands: &[Parts],
) -> Parts {
    real(program, dtype, operands, |[x]| {
        // ln(1 + 2x / (1 - x)) / 2.
        let size = x.absolute();
        let ratio = (size + size) * inverse(x.constant(1.0) - size);
        let result = logarithm_of_1_plus(ratio, false, 0.5);
        let beyond = size.equal(1.0).select(x.constant(f64::INFINITY), f64::NAN);
        size.less(1.0).select(result, beyond).with_sign(x)
    })
}

pub(in super::super) fn logit(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    real(program, dtype, operands, |[x]| {
        // With the smaller m of x and 1 - x, ln(1 + (1 - 2m) / m), or where m is tiny -ln(m).
        let rest = x.constant(1.0) - x;
        let least = x.minimum(rest);
        let tiny = least.less(2f64.powi(-30));
        let ratio = least.fma(-2.0, 1.0) * inverse(least.maximum(2f64.powi(-30)));
        let number = tiny.select(least * 2f64.powi(64), ratio + 1.0);
        let [exponent, fraction] = parts(number, 0);
        let fraction = (exponent.equal(0.0) & !tiny).select(ratio, fraction);
        let exponent = exponent - tiny.select(x.constant(64.0), 0.0);
        let result = logarithm([exponent, fraction], 1.0);
        let negative = x.less(0.5) ^ tiny;
        let result = negative.select(-result, result);
        let edge = x.equal(0.0).select(x.constant(f64::NEG_INFINITY), f64::NAN);
        let edge = x.equal(1.0).select(x.constant(f64::INFINITY), edge);
        x.constant(0.0).less(least).select(result, edge)
    })
}

pub(in super::super) fn arc_sine(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    real(program, dtype, operands, |[x]| {
        let size = x.absolute();
        let near = series(x * x, &ARC_SINE) * size;
        let [root, _] = roots(x.constant(1.0) - size);
        let far = (-root).fma(series(size, &ARC_COSINE), FRAC_PI_2);
        let result = size.less(0.5).select(near, far);
        size.less_equal(1.0).select(result, f64::NAN).with_sign(x)
    })
}

pub(in super::super) fn arc_cosine(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    real(program, dtype, operands, |[x]| {
        let size = x.absolute();
        let [root, _] = roots(x.constant(1.0) - size);
        let angle = root * series(size, &ARC_COSINE);
        let result = x.less(0.0).select(x.constant(PI) - angle, angle);
        size.less_equal(1.0).select(result, f64::NAN)
    })
}

pub(in super::super) fn arc_tangent(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    real(program, dtype, operands, |[x]| {
        let size = x.absolute().minimum(2f64.powi(60));
        let ratio = inverse(size).minimum(size);
        let angle = series(ratio * ratio, &ARC_TANGENT) * ratio;
        let result = x.constant(1.0).less(size).select(x.constant(FRAC_PI_2) - angle, angle);
        x.unless_nan(result.with_sign(x))
    })
}

/// Sine and cosine of an angle of at most π/4.
pub(in super::super) fn of_rest(rest: Term<'_>) -> [Term<'_>; 2] {
    let square = rest * rest;
    [series(square, &SINE) * rest, series(square, &COSINE)]
}

/// The tangent of an angle and so many quarter turns more.
pub(in super::super) fn tangent<'p>(quarters: Term<'p>, [sine, cosine]: [Term<'p>; 2]) -> Term<'p> {
    let odd = !(quarters & 1).equal(0);
    odd.select(-cosine, sine) * inverse(odd.select(sine, cosine))
}

/// sin(π x) / (π x), 1 at 0.
pub(in super::super) fn sinc(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    real(program, dtype, operands, |[x]| {
        // From here on all are even.
        let held = x.maximum(-(2f64.powi(20))).minimum(2f64.powi(20));
        let sum = held + ANCHOR;
        let rest = held - (sum - ANCHOR);
        let wave = series(rest * rest, &SINE_OF_PI);
        let near = rest.equal(held);
        let ratio = (rest * inverse(held)).by_sign((sum.bits_of() << 31).float_of());
        let result = wave * near.select(x.constant(1.0), ratio);
        let result = x.absolute().equal(f64::INFINITY).select(x.constant(0.0), result);
        x.unless_nan(result)
    })
}

/// ln |Γ(x)|, of x and of ln |x|.
pub(super) fn logarithm_of_gamma<'p>(x: Term<'p>, of_size: Term<'p>) -> Term<'p> {
    let size = x.absolute();
    let around_2 = |below| series(below, &GAMMA_AROUND_2);
    let usual = above_0_of_single(size, of_size, around_2, |x| inverse(x) * STIRLING);
    let [result] = (!x.constant(0.0).less(x)).rarely([usual], || {
        // ln(π / (|x| |sin πx|)) less that of |x|, by |sin πx| = π |rest| times a series.
        let rest = (size - ((size + ANCHOR) - ANCHOR)).absolute();
        let sine = series(rest * rest, &SINE_OF_PI) * rest;
        let reflected = -of_size - (logarithm(parts(sine, 0), 1.0) + usual);
        // From where all are integers there are poles; so close to 0 the three are -ln |x| in all.
        let pole = rest.equal(0.0) | x.constant(2f64.powi(22)).less_equal(size);
        let reflected = pole.select(x.constant(f64::INFINITY), reflected);
        let tiny = !x.equal(0.0) & size.less(2f64.powi(-30));
        [x.unless_nan(tiny.select(usual, reflected))]
    });
    result
}

pub(in super::super) fn cube_root(program: &mut Program, dtype: DType, operands: &[Parts]) -> Parts {
    real(program, dtype, operands, |[x]| {
        let size = x.absolute();
        let brain = dtype == DType::BF16;
        // What is subnormal of f16 is not of f32.
        let small = size.less(f64::from(f32::MIN_POSITIVE));
        let number = if brain { small.select(size * 2f64.powi(24), size) } else { size };
        // 1 / cbrt(x): minus a third of the exponent's bits, and four of its bias.
        let guess = (x.bits32(0x54a2_1d2a) - number.bits_of().divide_unsigned(3)).float_of();
        let inverse = (0..2).fold(guess, |guess, _| {
            let rest = (-(number * guess)).fma(guess * guess, 1.0);
            (guess * (1.0 / 3.0)).fma(rest, guess)
        });
        let root = number * inverse * inverse;
        let root = if brain { root * small.select(x.constant(2f64.powi(-8)), 1.0) } else { root };
        below_infinity(size, root).with_sign(x)
    })
}

/// What a logarithm is where x is no positive number, where it is one the result.
pub(super) fn with_limits<'p>(x: Term<'p>, result: Term<'p>) -> Term<'p> {
    let below = x.equal(0.0).select(x.constant(f64::NEG_INFINITY), f64::NAN);
    let result = x.less_equal(0.0).select(below, result);
    below_infinity(x, result)
}
