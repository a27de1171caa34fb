//! A reference of each operation, element by element, written from its description. Only complex products,
//! whose formula is public, are the crate's.

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::fuse::Operation;
use selvedge::types::{DType, complex};

use super::value::{Value, bits, eight_bits, nearest, read, wrap, write};

/// Rounds the result of f32 arithmetic to the dtype.
fn narrow(dtype: DType, x: f32) -> f64 {
    match dtype {
        DType::F16 => f16::from_f32(x).to_f64(),
        DType::BF16 => bf16::from_f32(x).to_f64(),
        _ => f64::from(x),
    }
}

macro_rules! floats {
    ($name:ident $float:ident) => {
        /// Computes the operation in this float's arithmetic; `None` for an operation without a float result.
        fn $name(operation: Operation, x: $float, y: $float, z: $float) -> Option<$float> {
            use Operation::*;
            let rest = x % y;
            let floored = match rest == 0.0 {
                true => rest.copysign(y),
                false if (rest < 0.0) != (y < 0.0) => rest + y,
                false => rest,
            };
            Some(match operation {
                Add => x + y,
                Sub => x - y,
                Mul => x * y,
                Div => x / y,
                Fmod => rest,
                Remainder => floored,
                TruncDivide => (x / y).trunc(),
                FloorDivide if y == 0.0 => x / y,
                FloorDivide => {
                    let mut quotient = (x - rest) / y;
                    if rest != 0.0 && (rest < 0.0) != (y < 0.0) {
                        quotient -= 1.0;
                    }
                    if quotient == 0.0 {
                        (0.0 as $float).copysign(x / y)
                    } else {
                        let floor = quotient.floor();
                        if quotient - floor > 0.5 { floor + 1.0 } else { floor }
                    }
                }
                Neg => -x,
                Abs => x.abs(),
                Sign if x > 0.0 => 1.0,
                Sign if x < 0.0 => -1.0,
                Sign => x,
                Sqrt => x.sqrt(),
                Rsqrt => 1.0 / x.sqrt(),
                Reciprocal => 1.0 / x,
                Square => x * x,
                Floor => x.floor(),
                Ceil => x.ceil(),
                Trunc => x.trunc(),
                Round => x.round_ties_even(),
                Frac if x.is_infinite() => $float::NAN,
                Frac => (x - x.trunc()).copysign(x),
                Relu if x.is_nan() => x,
                Relu => {
                    if x > 0.0 {
                        x
                    } else {
                        0.0
                    }
                }
                Minimum if x.is_nan() || y.is_nan() => $float::NAN,
                Maximum if x.is_nan() || y.is_nan() => $float::NAN,
                Clamp if x.is_nan() || y.is_nan() || z.is_nan() => $float::NAN,
                Fmin | Fmax if x.is_nan() => y,
                Fmin | Fmax if y.is_nan() => x,
                Minimum | Fmin => {
                    if x.total_cmp(&y).is_lt() {
                        x
                    } else {
                        y
                    }
                }
                Maximum | Fmax => {
                    if x.total_cmp(&y).is_gt() {
                        x
                    } else {
                        y
                    }
                }
                Clamp => {
                    let above = if x.total_cmp(&y).is_gt() { x } else { y };
                    if above.total_cmp(&z).is_lt() { above } else { z }
                }
                Fma => x.mul_add(y, z),
                Lerp if !(y - x).is_finite() && x.is_finite() && y.is_finite() => x * (1.0 - z) + y * z,
                Lerp if z < 0.5 => x + z * (y - x),
                Lerp => y - (y - x) * (1.0 - z),
                Copysign => x.copysign(y),
                Hypot => x.hypot(y),
                Exp => x.exp(),
                Exp2 => x.exp2(),
                Expm1 => x.exp_m1(),
                Log => x.ln(),
                Log2 => x.log2(),
                Log10 => x.log10(),
                Log1p => x.ln_1p(),
                Sinh => x.sinh(),
                Cosh => x.cosh(),
                Tanh => x.tanh(),
                // Rust's functions lose precision that these formulas keep.
                Asinh => {
                    let a = x.abs();
                    let near = (a + a * a / (1.0 + (1.0 + a * a).sqrt())).ln_1p();
                    let far = a.ln() + std::f64::consts::LN_2 as $float;
                    if a > 1e9 { far.copysign(x) } else { near.copysign(x) }
                }
                Acosh if x > 1e9 => x.ln() + std::f64::consts::LN_2 as $float,
                Acosh if x < 1.0 => $float::NAN,
                Acosh => ((x - 1.0) + ((x - 1.0) * (x + 1.0)).sqrt()).ln_1p(),
                Atanh => (0.5 * (2.0 * x.abs() / (1.0 - x.abs())).ln_1p()).copysign(x),
                Sigmoid if x < -50.0 => x.exp(),
                Sigmoid => 1.0 / (1.0 + (-x).exp()),
                Silu if x == $float::NEG_INFINITY => -0.0,
                Silu if x < -50.0 => x * x.exp(),
                Silu => x / (1.0 + (-x).exp()),
                Softplus if x > 50.0 => x,
                Softplus => x.exp().ln_1p(),
                Sin => x.sin(),
                Cos => x.cos(),
                Tan => x.tan(),
                Asin => x.asin(),
                Acos => x.acos(),
                Atan => x.atan(),
                Atan2 => x.atan2(y),
                Pow => x.powf(y),
                Cbrt => x.cbrt(),
                Heaviside if x.is_nan() => x,
                Heaviside if x == 0.0 => y,
                Heaviside if x > 0.0 => 1.0,
                Heaviside => 0.0,
                Radians => x * (std::f64::consts::PI / 180.0) as $float,
                Degrees => x * (180.0 / std::f64::consts::PI) as $float,
                Angle if x.is_nan() => x,
                Angle if x < 0.0 => std::f64::consts::PI as $float,
                Angle => 0.0,
                Real | Conj => x,
                Imag => 0.0,
                _ => return None,
            })
        }
    };
}

floats!(single f32);
floats!(double f64);

/// Returns whether `vectors` checks the operation with higher precision instead.
pub fn is_elsewhere(operation: Operation, dtype: DType) -> bool {
    use Operation::*;
    let is_simple = matches!(operation, Abs | Angle);
    let has_none = matches!(
        operation,
        Sinc | Erf | Erfc | Gelu | GeluTanh | Lgamma | Logit | LogAddExp | Xlogy | Xlog1py
    );
    has_none || dtype.is_complex() && operation.complex_ulp() > 0 && !is_simple
}

/// Computes the operation on operands of its compute dtype.
pub fn apply(operation: Operation, dtype: DType, operands: &[Value]) -> Value {
    let truth = |truth: bool| Value::Integer(i128::from(truth));
    if operation == Operation::Select {
        return if operands[0].integer() != 0 { operands[1] } else { operands[2] };
    }
    if let Some(test) = test(operation, operands) {
        return truth(test);
    }
    if dtype.is_complex() {
        return complex_number(operation, dtype, operands);
    }
    if operation == Operation::NextAfter {
        return Value::Real(next_after(dtype, operands[0].real(), operands[1].real()));
    }
    if dtype.is_float() {
        let [x, y, z] = [0, 1, 2].map(|k| operands.get(k).map_or(0.0, |operand| operand.real()));
        if dtype == DType::F64 {
            return Value::Real(double(operation, x, y, z).expect("an operation on f64"));
        }
        if operation.ulp() > 0 {
            // In f64, so that the reference's own error is negligible.
            return Value::Real(double(operation, x, y, z).expect("an operation on f64"));
        }
        let result = single(operation, x as f32, y as f32, z as f32).expect("an operation on f32");
        return Value::Real(narrow(dtype, result));
    }
    let [x, y, z] = [0, 1, 2].map(|k| operands.get(k).map_or(0, |operand| operand.integer()));
    integer(operation, dtype, x, y, z)
}

/// By the bits of the dtype's numbers, which are ordered.
fn next_after(dtype: DType, x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() || x == y {
        return if x == y { y } else { f64::NAN };
    }
    let mut bytes = [0; 8];
    let bytes = &mut bytes[..dtype.size()];
    write(dtype, Value::Real(x), bytes);
    let mut all = [0; 8];
    all[..dtype.size()].copy_from_slice(bytes);
    let sign = 1u64 << (bits(dtype) - 1);
    let mut word = u64::from_le_bytes(all);
    if x == 0.0 {
        word = 1 | if y < 0.0 { sign } else { 0 };
    } else if (x < y) == (x > 0.0) {
        word += 1;
    } else {
        word -= 1;
    }
    read(dtype, &word.to_le_bytes()[..dtype.size()]).real()
}

/// Computes operations with a bool result.
fn test(operation: Operation, operands: &[Value]) -> Option<bool> {
    use Operation::*;
    use std::cmp::Ordering;
    let order = match operands {
        [Value::Integer(x), Value::Integer(y), ..] => Some(x.cmp(y)),
        [Value::Real(x), Value::Real(y), ..] => x.partial_cmp(y),
        [Value::Complex(a, b), Value::Complex(c, d), ..] => (a == c && b == d).then_some(Ordering::Equal),
        _ => None,
    };
    let parts = operands[0].parts();
    let any = |test: fn(f64) -> bool| test(parts.0) || test(parts.1);
    Some(match operation {
        Equal => order == Some(Ordering::Equal),
        NotEqual => order != Some(Ordering::Equal),
        Less => order == Some(Ordering::Less),
        LessEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Greater => order == Some(Ordering::Greater),
        GreaterEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        Signbit => parts.0.is_sign_negative(),
        IsNan => any(f64::is_nan),
        IsInfinite => any(f64::is_infinite),
        IsFinite => !any(|part| !part.is_finite()),
        LogicalAnd => operands.iter().all(|operand| operand.integer() != 0),
        LogicalOr => operands.iter().any(|operand| operand.integer() != 0),
        LogicalXor => (operands[0].integer() != 0) != (operands[1].integer() != 0),
        LogicalNot => operands[0].integer() == 0,
        _ => return None,
    })
}

fn integer(operation: Operation, dtype: DType, x: i128, y: i128, z: i128) -> Value {
    use Operation::*;
    let width = i128::from(bits(dtype));
    let truth = dtype == DType::Bool;
    let shifts = (0..width).contains(&y);
    // Euclid's remainder is not negative; the other two follow from the signs.
    let rest = if y == 0 { 0 } else { x % y };
    wrap(
        dtype,
        match operation {
            Add if truth => x | y,
            Add => x + y,
            Sub => x - y,
            Mul => x.wrapping_mul(y),
            // u64 products can exceed i128.
            MulHigh => ((x as u128 * y as u128) >> width) as i128,
            FloorDivide | TruncDivide | Fmod | Remainder if y == 0 => 0,
            TruncDivide => x / y,
            FloorDivide => {
                (x - x.rem_euclid(y.abs()) - if y < 0 && x.rem_euclid(y.abs()) != 0 { y } else { 0 }) / y
            }
            Fmod => rest,
            Remainder => {
                let positive = x.rem_euclid(y.abs());
                if y < 0 && positive != 0 { positive + y } else { positive }
            }
            Neg => -x,
            Abs => x.abs(),
            Sign => x.signum(),
            Square => x.wrapping_mul(x),
            Floor | Ceil | Trunc | Round | Real | Conj => x,
            Imag => 0,
            Relu => x.max(0),
            Minimum | Fmin => x.min(y),
            Maximum | Fmax => x.max(y),
            Clamp => x.max(y).min(z),
            BitAnd => x & y,
            BitOr => x | y,
            BitXor => x ^ y,
            BitNot if truth => 1 - x,
            BitNot => !x,
            ShiftLeft if shifts => x << y,
            ShiftLeft => 0,
            ShiftRight if shifts => x >> y,
            ShiftRight => {
                if x < 0 {
                    -1
                } else {
                    0
                }
            }
            Fma => x.wrapping_mul(y).wrapping_add(z),
            // Truncated 1 / x^-y.
            Pow if y < 0 && x.abs() != 1 => 0,
            Pow => (0..127).rev().filter(|bit| *bit == 0 || y >> bit != 0).fold(1i128, |power, bit| {
                let square = power.wrapping_mul(power);
                if y >> bit & 1 == 1 { square.wrapping_mul(x) } else { square }
            }),
            _ => panic!("{operation:?} of {dtype}"),
        },
    )
}

/// Computes the quotient of C99's Annex G: Smith's formula, with scaled operands if its steps would overflow
/// or lose digits, and the special cases of zeros and infinities.
macro_rules! quotient {
    ($float:ty, $left:expr, $right:expr) => {{
        let (x, y): (Complex<$float>, Complex<$float>) = ($left, $right);
        let is_double = <$float>::EPSILON < 1e-10 as $float;
        let power = |single: i32, double: i32| (2.0 as $float).powi(if is_double { double } else { single });
        let (larger, least, small) = (power(64, 600), power(-100, -960), power(-40, -400));
        let (large, little) = if y.im.abs() <= y.re.abs() { (y.re, y.im) } else { (y.im, y.re) };
        let divisor = (large + little * (little / large)).abs();
        // Twice the sums overflow first.
        let of = |sum: $float| sum.abs();
        let smith = |x: Complex<$float>, y: Complex<$float>| {
            if y.im.abs() <= y.re.abs() {
                let ratio = y.im / y.re;
                let divisor = y.re + y.im * ratio;
                Complex::new((x.re + x.im * ratio) / divisor, (x.im - x.re * ratio) / divisor)
            } else {
                let ratio = y.re / y.im;
                let divisor = y.re * ratio + y.im;
                Complex::new((x.re * ratio + x.im) / divisor, (x.im * ratio - x.re) / divisor)
            }
        };
        let ratio = little / large;
        let sums = match y.im.abs() <= y.re.abs() {
            true => of(x.re + x.im * ratio) + of(x.im - x.re * ratio),
            false => of(x.im + x.re * ratio) + of(x.im * ratio - x.re),
        };
        if divisor > least && divisor < <$float>::INFINITY && sums < <$float>::INFINITY {
            smith(x, y)
        } else {
            let of_x = if x.re.abs().max(x.im.abs()) < small { larger } else { 0.25 };
            let of_y = if divisor <= least { larger } else { 0.25 };
            let back = of_y / of_x;
            let found = smith(x * of_x, y * of_y);
            let found = Complex::new(found.re * back, found.im * back);
            let (infinity, nan) = (<$float>::INFINITY, <$float>::NAN);
            let unit = |x: $float| (if x.is_infinite() { 1.0 as $float } else { 0.0 }).copysign(x);
            let has_infinity = |x: Complex<$float>| x.re.is_infinite() || x.im.is_infinite();
            let is_finite = |x: Complex<$float>| x.re.is_finite() && x.im.is_finite();
            let towards = |x: Complex<$float>, y: Complex<$float>| {
                Complex::new(x.re * y.re + x.im * y.im, x.im * y.re - x.re * y.im)
            };
            let times = |x: Complex<$float>, by: $float| Complex::new(x.re * by, x.im * by);
            let units = |x: Complex<$float>| Complex::new(unit(x.re), unit(x.im));
            match (found.re.is_nan() && found.im.is_nan(), y.re == 0.0 && y.im == 0.0) {
                (false, _) => found,
                (true, true) => times(x, infinity.copysign(y.re)),
                _ if has_infinity(x) && is_finite(y) => times(towards(units(x), y), infinity),
                _ if has_infinity(y) && is_finite(x) => times(towards(times(x, 0.25), units(y)), 0.0),
                _ => Complex::new(nan, nan),
            }
        }
    }};
}

fn complex_number(operation: Operation, dtype: DType, operands: &[Value]) -> Value {
    let parts = |k: usize| operands.get(k).map_or((0.0, 0.0), |operand| operand.parts());
    let ((a, b), (c, d)) = (parts(0), parts(1));
    macro_rules! compute {
        ($float:ty) => {{
            let (x, y) = (Complex::new(a as $float, b as $float), Complex::new(c as $float, d as $float));
            let result = match operation {
                Operation::Add => Complex::new(x.re + y.re, x.im + y.im),
                Operation::Sub => Complex::new(x.re - y.re, x.im - y.im),
                Operation::Mul => complex::multiply(x, y),
                Operation::Square => complex::multiply(x, x),
                Operation::Div => quotient!($float, x, y),
                Operation::Reciprocal => quotient!($float, Complex::new(1.0, 0.0), x),
                Operation::Neg => Complex::new(-x.re, -x.im),
                Operation::Conj => Complex::new(x.re, -x.im),
                Operation::Real => return Value::Real(a),
                Operation::Imag => return Value::Real(b),
                Operation::Angle => return Value::Real(b.atan2(a)),
                Operation::Abs => return Value::Real(x.re.hypot(x.im).into()),
                _ => panic!("{operation:?} of {dtype}"),
            };
            Value::Complex(result.re.into(), result.im.into())
        }};
    }
    if dtype == DType::C64 { compute!(f32) } else { compute!(f64) }
}

/// Converts a value to another dtype.
pub fn cast(from: DType, to: DType, value: Value) -> Value {
    let value = match value {
        Value::Bits(bits) if from != to => Value::Real(eight_bits(from, bits)),
        other => other,
    };
    if from == to {
        return value;
    }
    let (real, imaginary) = value.parts();
    if to == DType::Bool {
        return Value::Integer(i128::from(real != 0.0 || imaginary != 0.0));
    }
    if to.is_complex() {
        let part = |x: f64| if to == DType::C64 { f64::from(x as f32) } else { x };
        let real = match value {
            Value::Integer(x) if to == DType::C64 => f64::from(x as f32),
            _ => part(real),
        };
        return Value::Complex(real, part(imaginary));
    }
    match (to, value) {
        (DType::F8E4M3 | DType::F8E5M2, value) => Value::Bits(nearest_eight_bits(to, value)),
        (DType::F32, Value::Integer(x)) => Value::Real(f64::from(x as f32)),
        (DType::F32, _) => Value::Real(f64::from(real as f32)),
        (DType::F64, _) => Value::Real(real),
        (DType::F16, Value::Integer(x)) => Value::Real(nearest_to_integer(x, 11, 65504.0)),
        (DType::BF16, Value::Integer(x)) => Value::Real(nearest_to_integer(x, 8, f64::MAX)),
        (DType::F16 | DType::BF16, _) => Value::Real(nearest(to, real)),
        (_, Value::Integer(x)) => wrap(to, x),
        _ => {
            let (low, high) = if to.is_signed_integer() {
                (-(1i128 << (bits(to) - 1)), (1i128 << (bits(to) - 1)) - 1)
            } else {
                (0, (1i128 << bits(to)) - 1)
            };
            // Rust's own cast saturates at the ends of i128 and converts NaN to 0.
            Value::Integer((real.trunc() as i128).clamp(low, high))
        }
    }
}

/// Rounds an integer to this precision, ties to even; past the largest number it is infinite.
fn nearest_to_integer(x: i128, precision: u32, most: f64) -> f64 {
    let magnitude = x.unsigned_abs();
    let excess = (128 - magnitude.leading_zeros()).saturating_sub(precision);
    let (kept, lost) = (magnitude >> excess, magnitude & ((1 << excess) - 1));
    let half = if excess == 0 { u128::MAX } else { 1 << (excess - 1) };
    let up = lost > half || lost == half && kept & 1 == 1;
    let rounded = (kept + u128::from(up)) as f64 * 2f64.powi(excess as i32);
    let rounded = if rounded > most { f64::INFINITY } else { rounded };
    if x < 0 { -rounded } else { rounded }
}

/// Returns the 8-bit float nearest to a number, by comparing with all of them; ties go to even bits.
fn nearest_eight_bits(to: DType, value: Value) -> u8 {
    let (x, _) = value.parts();
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    if x.is_nan() {
        return 0x7f;
    }
    let x = x.abs();
    let numbers: Vec<(u8, f64)> =
        (0..0x80).map(|bits| (bits, eight_bits(to, bits))).filter(|(_, number)| number.is_finite()).collect();
    let (most, next) = (numbers[numbers.len() - 1].1, numbers[numbers.len() - 2].1);
    // Past the middle to the number that would come next.
    if x > most + (most - next) / 2.0 || x == most + (most - next) / 2.0 && to == DType::F8E5M2 {
        return sign | if to == DType::F8E4M3 { 0x7f } else { 0x7c };
    }
    let nearest = numbers
        .iter()
        .min_by(|(one, a), (two, b)| (a - x).abs().total_cmp(&(b - x).abs()).then((one & 1).cmp(&(two & 1))));
    sign | nearest.expect("a number").0
}
