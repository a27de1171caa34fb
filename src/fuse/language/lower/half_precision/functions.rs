//! The remaining functions of f16 and bf16.
//!
//! They contain no division, and powers of bf16 need no series. Limits are selected, not branched to, because
//! elements beyond them are common.

use std::f64::consts::{FRAC_PI_2, LOG2_E, PI};

use super::super::gamma::above_0_of_single;
use super::super::reciprocal::{reciprocal, root};
use super::super::term::{Term, real};
use super::POWER;
use super::logarithms::{apart, positive};
use crate::fuse::ir::instruction::Instruction;
use crate::fuse::ir::program::{Program, ValueParts};
use crate::types::DType;

/// log2(3).
const LOG2_3: f64 = 1.584_962_500_721_156_2;

/// The float at which a unit in the last place is 1.
const ROUNDING_CONSTANT: f64 = 12_582_912.0;

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
/// log2 erfc(x), for f16 to 4.2 within 2^-14.7, for bf16 to 10 within 2^-10.8 of erfc(x).
const COMPLEMENTARY_HALF: [f64; 7] = [
    -5.178_751_61e-5,
    -1.626_849_1,
    -0.921_725_321,
    -0.145_716_928,
    0.029_268_059_1,
    -0.003_571_174_66,
    0.000_193_918_153,
];
const COMPLEMENTARY_BRAIN: [f64; 8] = [
    -0.000_807_427_156,
    -1.616_026_31,
    -0.946_549_651,
    -0.125_112_445,
    0.021_653_512_8,
    -0.002_337_273_01,
    0.000_139_960_858,
    -3.528_226_89e-6,
];
/// log2 Φ(-x), for f16 to 6 within 2^-14.7, for bf16 to 14.4 within 2^-10.8 of Φ(-x).
const NORMAL_HALF: [f64; 7] = [
    -1.000_051_89,
    -1.150_354_59,
    -0.460_865_972,
    -0.051_515_968_7,
    0.007_315_997_24,
    -0.000_631_128_316,
    2.422_893_95e-5,
];
const NORMAL_BRAIN: [f64; 8] = [
    -1.000_805_38,
    -1.142_687_37,
    -0.473_297_369,
    -0.044_222_125_9,
    0.005_410_488_19,
    -0.000_412_817_37,
    1.747_336_97e-5,
    -3.113_406_38e-7,
];
/// ln(1 + f) / f from 0 to 1, within 2^-14.1, and for bf16 within 2^-11.3.
const LOGARITHM_HALF: [f64; 5] = [0.999_943_28, -0.496_977_81, 0.306_300_94, -0.157_427_22, 0.041_347_31];
const LOGARITHM_BRAIN: [f64; 4] = [0.999_607_97, -0.486_414_13, 0.254_025, -0.074_343_1];
/// sinh(x) / x in x² to 1/4, within 2^-13.9.
const HYPERBOLIC_SINE: [f64; 2] = [0.999_935_66, 0.168_751_59];
/// asin(x) / x in x² to 1/4, within 2^-14.9.
const ARC_SINE: [f64; 3] = [1.000_031_06, 0.164_538_81, 0.095_988_23];
/// acos(x) / sqrt(1 - x) from 0 to 1, within 2^-17.
const ARC_COSINE: [f64; 5] =
    [1.570_787_44, -0.214_110_816, 0.084_596_576_1, -0.035_643_446_4, 0.008_591_812_53];
/// atan(x) / x in x² to 1, within 2^-15, and for bf16 within 2^-12.2.
const ARC_TANGENT_HALF: [f64; 5] =
    [0.999_970_031, -0.331_700_842, 0.185_215_674, -0.091_926_570_3, 0.023_863_395_4];
const ARC_TANGENT_BRAIN: [f64; 4] = [0.999_787_85, -0.325_808_45, 0.155_578_75, -0.044_326_61];
/// sin(r) / r and cos(r) in r² to π/4, within 2^-19 and 2^-16.
const SINE: [f64; 3] = [0.999_998_457, -0.166_622_645, 0.008_147_028_55];
const COSINE: [f64; 3] = [0.999_987_235, -0.499_668_615, 0.040_328_251_7];
/// sin(πr) / (πr) in r² to 1/4, within 2^-19.
const SINE_OF_PI: [f64; 4] = [0.999_999_061, -1.644_824_26, 0.809_654_604, -0.177_742_982];
/// The same for bf16, within 2^-13.2.
const SINE_OF_PI_BRAIN: [f64; 3] = [0.999_891_82, -1.637_960_69, 0.740_591_9];
/// ln Γ(2 + b) / (b (1 + b)) from -1.3 to 1.2, within 2^-15.
const GAMMA_HALF: [f64; 9] = [
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
/// The same for bf16, within 2^-13.9.
const GAMMA_BRAIN: [f64; 8] = [
    0.422_761_948,
    -0.100_209_238,
    0.033_385_429_7,
    -0.013_147_678_1,
    0.003_795_865_66,
    -0.000_732_713_732,
    0.001_936_463_41,
    -0.001_210_701_98,
];
/// The correction by Stirling's series from 3.2 on, times x, within 2^-14 of the logarithm.
const STIRLING: f64 = 0.0832;

/// c[0] + x (c[1] + x (c[2] + …)).
fn series<'p>(x: Term<'p>, coefficients: &[f64]) -> Term<'p> {
    x.series(coefficients)
}

/// Returns x · log2_of_base = k + f as the float 2^(k + shift) and f.
fn split<'p>(x: Term<'p>, log2_of_base: f64, shift: i32) -> (Term<'p>, Term<'p>) {
    let rounding_constant = x.constant(ROUNDING_CONSTANT + f64::from(127 + shift));
    let sum = x.fma(log2_of_base, rounding_constant);
    ((sum.bits_of() << 23).float_of(), x.fma(log2_of_base, rounding_constant - sum))
}

/// Returns 2^x: for f16 with x above -126, for bf16 with x from -250 as a square, so that a subnormal result
/// is rounded once.
fn power<'p>(dtype: DType, x: Term<'p>) -> Term<'p> {
    if dtype == DType::F16 {
        let (scale, fraction) = split(x, 1.0, 0);
        return series(fraction, &POWER) * scale;
    }
    let root = (x * 0.5).apply(Instruction::PowerOfNarrow, &[]);
    root * root
}

/// Returns 2^x / (1 + 2^x) for x up to 60, for f16 from -60.
fn logistic<'p>(dtype: DType, x: Term<'p>) -> Term<'p> {
    if dtype == DType::F16 {
        let (scale, fraction) = split(-x, 1.0, 0);
        return reciprocal(series(fraction, &POWER).fma(scale, 1.0));
    }
    let power = power(dtype, x);
    power * reciprocal(power + (1.0 + 19.0 * 2f64.powi(-20)))
}

/// Returns x clamped from below; NaN for NaN.
fn from<'p>(x: Term<'p>, least: f64) -> Term<'p> {
    x.less(least).select(x.constant(least), x)
}

pub(in super::super) fn rsqrt(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| x.apply(Instruction::ReciprocalRootOfNarrow, &[]))
}

pub(in super::super) fn tanh(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        let held = x.maximum(-4.6).minimum(4.6);
        let square = held * held;
        let above = series(square, &TANGENT_ABOVE) * held;
        x.unless_nan(above * reciprocal(series(square, &TANGENT_BELOW)))
    })
}

/// Returns 1 / (1 + e^-x), or x times that.
pub(in super::super) fn sigmoid(
    program: &mut Program,
    dtype: DType,
    operands: &[ValueParts],
    by_x: bool,
) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        let least = if dtype == DType::F16 { -40.0 } else { -200.0 };
        let held = if by_x { from(x, least) } else { x.maximum(least) };
        let result = logistic(dtype, held.minimum(40.0) * LOG2_E);
        if by_x { held * result } else { x.unless_nan(result) }
    })
}

/// Returns x / (1 + e^-u) with u = 2 sqrt(2/π) (x + 0.044715 x³).
pub(in super::super) fn gelu_tanh(
    program: &mut Program,
    dtype: DType,
    operands: &[ValueParts],
) -> ValueParts {
    // 2 sqrt(2/π) log2(e), and the same with 0.044715.
    const FIRST: f64 = 2.302_208_198_144_324_8;
    const THIRD: f64 = 0.102_943_239_580_023_5;
    real(program, dtype, operands, |[x]| {
        let held = from(x, if dtype == DType::F16 { -6.0 } else { -12.0 });
        let size = held.minimum(6.0);
        let exponent = size * (size * size).fma(THIRD, x.constant(FIRST));
        held * logistic(dtype, exponent)
    })
}

/// Returns x Φ(x), with Φ(x) = 1 - Φ(-x).
pub(in super::super) fn gelu(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        let (most, coefficients) =
            if dtype == DType::F16 { (6.0, &NORMAL_HALF[..]) } else { (14.4, &NORMAL_BRAIN[..]) };
        let tail = power(dtype, series(x.absolute().minimum(most), coefficients));
        let share = x.less(0.0).select(tail, x.constant(1.0) - tail);
        from(x, -most) * share
    })
}

/// Returns ln(1 + e^x) as the larger of x and 0 plus the logarithm of a number from 1 to 2.
pub(in super::super) fn softplus(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        let half = dtype == DType::F16;
        let most = if half { 60.0 } else { 150.0 };
        let power = power(dtype, x.absolute().minimum(most) * -LOG2_E);
        let coefficients = if half { &LOGARITHM_HALF[..] } else { &LOGARITHM_BRAIN[..] };
        series(power, coefficients).fma(power, from(x, 0.0))
    })
}

pub(in super::super) fn erf(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        let held = x.maximum(-2.75).minimum(2.75);
        x.unless_nan(series(held * held, &ERROR) * held)
    })
}

pub(in super::super) fn erfc(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        let (most, coefficients) = if dtype == DType::F16 {
            (4.2, &COMPLEMENTARY_HALF[..])
        } else {
            (10.0, &COMPLEMENTARY_BRAIN[..])
        };
        let tail = power(dtype, series(x.absolute().minimum(most), coefficients));
        x.unless_nan(x.less(0.0).select(x.constant(2.0) - tail, tail))
    })
}

/// Returns for |x|, for f16: (2^k - 2^-k) / 2 and (2^k + 2^-k) / 2, and the even and the odd part of 2^f.
fn exponential_parts(x: Term<'_>) -> [Term<'_>; 4] {
    let size = x.absolute();
    // NaN stays.
    let held = x.constant(20.0).less(size).select(x.constant(20.0), size);
    let (up, fraction) = split(held, LOG2_E, -1);
    // The exponents of the two add up to -2.
    let down = (x.bits32(252 << 23) - up.bits_of()).float_of();
    let square = fraction * fraction;
    [up - down, up + down, series(square, &POWER_EVEN), series(square, &POWER_ODD) * fraction]
}

/// Returns e^|x| / 2 and e^-|x| / 2, for bf16.
fn halves_of_exponentials(x: Term<'_>) -> [Term<'_>; 2] {
    let size = x.absolute();
    [LOG2_E, -LOG2_E]
        .map(|rate| size.fma(rate, x.constant(-1.0 - 2f64.powi(-19))).apply(Instruction::PowerOfNarrow, &[]))
}

pub(in super::super) fn sinh(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        if dtype == DType::F16 {
            let [less, more, even, odd] = exponential_parts(x);
            return less.fma(even, more * odd).with_sign(x);
        }
        let [up, down] = halves_of_exponentials(x);
        let near = series(x * x, &HYPERBOLIC_SINE) * x;
        x.absolute().less(0.5).select(near, (up - down).with_sign(x))
    })
}

pub(in super::super) fn cosh(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        if dtype == DType::F16 {
            let [less, more, even, odd] = exponential_parts(x);
            return more.fma(even, less * odd);
        }
        let [up, down] = halves_of_exponentials(x);
        up + down
    })
}

pub(in super::super) fn asin(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        let size = x.absolute();
        // asin(x) = π/2 - 2 asin(sqrt((1 - x) / 2)); a NaN takes this path.
        let near = size.less(0.5);
        // An offset that a positive square absorbs and the root of 0 needs.
        let rest = size.fma(-0.5, x.constant(0.5)) + 2f64.powi(-60);
        let square = near.select(x * x, rest);
        let angle = series(square, &ARC_SINE) * near.select(size, root(rest));
        near.select(angle, angle.fma(-2.0, x.constant(FRAC_PI_2))).with_sign(x)
    })
}

pub(in super::super) fn acos(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        let size = x.absolute();
        let rest = x.constant(1.0) - size;
        let angle = rest.equal(0.0).select(rest, root(rest)) * series(size, &ARC_COSINE);
        x.less(0.0).select(x.constant(PI) - angle, angle)
    })
}

pub(in super::super) fn atan(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        let size = x.absolute();
        let far = x.constant(1.0).less(size);
        let ratio = far.select(reciprocal(size.minimum(2f64.powi(60))), size);
        let coefficients = if dtype == DType::F16 { &ARC_TANGENT_HALF[..] } else { &ARC_TANGENT_BRAIN[..] };
        let angle = series(ratio * ratio, coefficients) * ratio;
        far.select(x.constant(FRAC_PI_2) - angle, angle).with_sign(x)
    })
}

/// Returns sine and cosine of an angle of at most π/4.
pub(in super::super) fn of_rest(rest: Term<'_>) -> [Term<'_>; 2] {
    let square = rest * rest;
    [series(square, &SINE) * rest, series(square, &COSINE)]
}

/// Returns the tangent of an angle plus quarter turns.
pub(in super::super) fn tan<'p>(quarters: Term<'p>, [sine, cosine]: [Term<'p>; 2]) -> Term<'p> {
    let odd = !(quarters & 1).equal(0);
    odd.select(-cosine, sine) * reciprocal(odd.select(sine, cosine))
}

/// Returns sin(π x) / (π x), and 1 at 0.
pub(in super::super) fn sinc(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        // All larger numbers are even.
        let held = x.maximum(-(2f64.powi(20))).minimum(2f64.powi(20));
        let sum = held + ROUNDING_CONSTANT;
        let rest = held - (sum - ROUNDING_CONSTANT);
        let coefficients = if dtype == DType::F16 { &SINE_OF_PI[..] } else { &SINE_OF_PI_BRAIN[..] };
        let wave = series(rest * rest, coefficients);
        let near = rest.equal(held);
        let ratio = (rest * reciprocal(held)).by_sign((sum.bits_of() << 31).float_of());
        // Integers give a positive zero.
        let result = wave * near.select(x.constant(1.0), ratio) + 0.0;
        let result = x.absolute().equal(f64::INFINITY).select(x.constant(0.0), result);
        x.unless_nan(result)
    })
}

/// Returns ln |Γ(x)|.
pub(super) fn lgamma<'p>(dtype: DType, x: Term<'p>) -> Term<'p> {
    let size = x.absolute();
    let half = dtype == DType::F16;
    let times = if half { 1.0 } else { apart(-13.0) };
    let of_size = positive(dtype, size, times);
    let around_2 = |below| series(below, if half { &GAMMA_HALF[..] } else { &GAMMA_BRAIN[..] });
    let usual = above_0_of_single(size, of_size, around_2, |x| reciprocal(x) * STIRLING);
    let [result] = (!x.constant(0.0).less(x)).rarely([usual], || {
        // ln(π / (|x| |sin πx|)) minus that of |x|, with |sin πx| = π |rest| times a series.
        let rest = (size - ((size + ROUNDING_CONSTANT) - ROUNDING_CONSTANT)).absolute();
        let sine = series(rest * rest, &SINE_OF_PI) * rest;
        let reflected = -of_size - (positive(dtype, sine, times) + usual);
        // From where all numbers are integers there are poles; close to 0 the three terms sum to -ln |x|.
        let pole = rest.equal(0.0) | x.constant(2f64.powi(22)).less_equal(size);
        let reflected = pole.select(x.constant(f64::INFINITY), reflected);
        let tiny = !x.equal(0.0) & size.less(2f64.powi(-30));
        [x.unless_nan(tiny.select(usual, reflected))]
    });
    result
}

pub(in super::super) fn cbrt(program: &mut Program, dtype: DType, operands: &[ValueParts]) -> ValueParts {
    real(program, dtype, operands, |[x]| {
        let size = x.absolute();
        if dtype == DType::BF16 {
            let third =
                size.apply(Instruction::LogarithmOfNarrow, &[]).fma(1.0 / 3.0, size.constant(2f64.powi(-15)));
            return third.apply(Instruction::PowerOfNarrow, &[]).with_sign(x);
        }
        // One step of Newton's method with 1 / (3 cbrt(x)²), between bounds beyond which the rounded result
        // is 0 or infinite.
        let exponent = size.apply(Instruction::LogarithmOfNormal, &[]).maximum(-100.0).minimum(100.0);
        let root = (exponent * (1.0 / 3.0)).apply(Instruction::PowerOfNarrow, &[]);
        let slope = exponent.fma(-2.0 / 3.0, x.constant(-LOG2_3)).apply(Instruction::PowerOfNarrow, &[]);
        (-(root * root)).fma(root, size).fma(slope, root).with_sign(x)
    })
}
