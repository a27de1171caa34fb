//! Elements as values of any dtype, for references that share nothing with the crate.

use half::{bf16, f16};
use selvedge::types::DType;

/// An element: bool as 0 or 1, integers unchanged, floats and parts of complex numbers as f64, which holds
/// them all.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    Integer(i128),
    Real(f64),
    Complex(f64, f64),
    /// The bits of an 8-bit float.
    Bits(u8),
}

impl Value {
    pub fn integer(self) -> i128 {
        match self {
            Value::Integer(x) => x,
            other => panic!("{other:?} is no integer"),
        }
    }

    pub fn real(self) -> f64 {
        match self {
            Value::Real(x) => x,
            other => panic!("{other:?} is no real number"),
        }
    }

    /// Returns the real and the imaginary part of any number.
    pub fn parts(self) -> (f64, f64) {
        match self {
            Value::Integer(x) => (x as f64, 0.0),
            Value::Real(x) => (x, 0.0),
            Value::Complex(x, y) => (x, y),
            Value::Bits(bits) => panic!("bits {bits} are no number"),
        }
    }
}

/// Wraps an integer to the width of a dtype.
pub fn wrap(dtype: DType, x: i128) -> Value {
    Value::Integer(match dtype {
        DType::Bool => i128::from(x != 0),
        DType::U8 => (x as u8).into(),
        DType::I8 => (x as i8).into(),
        DType::U16 => (x as u16).into(),
        DType::I16 => (x as i16).into(),
        DType::U32 => (x as u32).into(),
        DType::I32 => (x as i32).into(),
        DType::U64 => (x as u64).into(),
        DType::I64 => (x as i64).into(),
        _ => panic!("{dtype} is no integer"),
    })
}

pub fn bits(dtype: DType) -> u32 {
    8 * dtype.size() as u32
}

pub fn read(dtype: DType, bytes: &[u8]) -> Value {
    let mut low = [0; 8];
    let first = bytes.len().min(8);
    low[..first].copy_from_slice(&bytes[..first]);
    let word = u64::from_le_bytes(low);
    let single = |at: usize| f64::from(f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()));
    match dtype {
        DType::F8E4M3 | DType::F8E5M2 => Value::Bits(bytes[0]),
        DType::F16 => Value::Real(f16::from_bits(word as u16).to_f64()),
        DType::BF16 => Value::Real(bf16::from_bits(word as u16).to_f64()),
        DType::F32 => Value::Real(single(0)),
        DType::F64 => Value::Real(f64::from_bits(word)),
        DType::C64 => Value::Complex(single(0), single(4)),
        DType::C128 => {
            Value::Complex(f64::from_bits(word), f64::from_le_bytes(bytes[8..16].try_into().unwrap()))
        }
        DType::Bool => Value::Integer(i128::from(word != 0)),
        _ => wrap(dtype, word.into()),
    }
}

pub fn write(dtype: DType, value: Value, bytes: &mut [u8]) {
    let all = match (dtype, value) {
        (DType::F16, Value::Real(x)) => f16::from_f64(nearest(dtype, x)).to_le_bytes().to_vec(),
        (DType::BF16, Value::Real(x)) => bf16::from_f64(nearest(dtype, x)).to_le_bytes().to_vec(),
        (DType::F32, Value::Real(x)) => (x as f32).to_le_bytes().to_vec(),
        (DType::F64, Value::Real(x)) => x.to_le_bytes().to_vec(),
        (DType::C64, Value::Complex(x, y)) => [(x as f32).to_le_bytes(), (y as f32).to_le_bytes()].concat(),
        (DType::C128, Value::Complex(x, y)) => [x.to_le_bytes(), y.to_le_bytes()].concat(),
        (_, Value::Bits(bits)) => vec![bits],
        (_, Value::Integer(x)) => x.to_le_bytes()[..dtype.size()].to_vec(),
        (dtype, value) => panic!("{value:?} as {dtype}"),
    };
    bytes.copy_from_slice(&all);
}

/// Returns the f16 or bf16 nearest to a number, ties to even; `half` itself rounds f64 twice.
pub fn nearest(dtype: DType, x: f64) -> f64 {
    let (precision, least, most) =
        if dtype == DType::F16 { (11, -14, 65504.0) } else { (8, -126, 3.389_531_389_251_535_5e38) };
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let exponent = (x.abs().log2().floor() as i32).max(least);
    // The logarithm may be one too high, which leaves a bit too few.
    let exponent = if exponent > least && x.abs() < 2f64.powi(exponent) { exponent - 1 } else { exponent };
    let unit = 2f64.powi(exponent + 1 - precision);
    let rounded = (x / unit).round_ties_even() * unit;
    if rounded.abs() > most { f64::INFINITY.copysign(x) } else { rounded }
}

/// Returns edge cases: extremes, signed zeros, subnormal numbers, ties, infinities, NaN.
pub fn special(dtype: DType) -> Vec<Value> {
    let reals = |most: f64, least: f64, step: f64| -> Vec<f64> {
        let mut reals = vec![
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            3.0,
            -7.0,
            7.5,
            100.0,
            -0.1,
            most,
            -most,
            least,
            -least,
            3.0 * least,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            1.0 + step,
            1.0 - step / 2.0,
            1.0 / 3.0,
            89.5,
            -104.0,
        ];
        reals.extend([2f64.sqrt() * most / 3.0, most.sqrt(), least.sqrt()]);
        reals
    };
    let of = |dtype: DType| match dtype {
        DType::F16 => reals(65504.0, 2f64.powi(-24), 2f64.powi(-10)),
        DType::BF16 => reals(3.389_531_389_251_535_5e38, 2f64.powi(-133), 2f64.powi(-7)),
        DType::F32 => reals(f32::MAX.into(), 2f64.powi(-149), 2f64.powi(-23)),
        _ => reals(f64::MAX, 5e-324, 2f64.powi(-52)),
    };
    let narrowed = |x: f64, dtype: DType| {
        let mut bytes = vec![0; dtype.size()];
        write(dtype, Value::Real(x), &mut bytes);
        read(dtype, &bytes)
    };
    match dtype {
        DType::F8E4M3 | DType::F8E5M2 => (0..=255).map(Value::Bits).collect(),
        DType::Bool => vec![Value::Integer(0), Value::Integer(1)],
        _ if dtype.is_float() => of(dtype).into_iter().map(|x| narrowed(x, dtype)).collect(),
        _ if dtype.is_complex() => {
            let part = dtype.part();
            let some: Vec<f64> = of(part).into_iter().map(|x| narrowed(x, part).real()).collect();
            // Each part with a few others, not all pairs.
            let count = some.len();
            (0..2 * count)
                .map(|k| Value::Complex(some[k % count], some[(7 * k + k / count * 3 + 2) % count]))
                .collect()
        }
        _ => {
            let (low, high) = if dtype.is_signed_integer() {
                (-(1i128 << (bits(dtype) - 1)), (1i128 << (bits(dtype) - 1)) - 1)
            } else {
                (0, (1i128 << bits(dtype)) - 1)
            };
            let some = [0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 63, 64, 65, 100, -1, -2, -3, -7, -100];
            let mut all: Vec<i128> = some
                .into_iter()
                .chain([low, low + 1, high, high - 1, high / 2, (1 << 24) + 1, (1 << 53) + 1])
                .collect();
            // Just above a tie of a narrower float.
            all.extend([(1i128 << 40) + (1 << 32) + 1, (1i128 << 30) + (1 << 22) + 1, (1 << 12) + 2]);
            all.retain(|x| (low..=high).contains(x));
            all.into_iter().map(Value::Integer).collect()
        }
    }
}

/// Returns whether two elements have the same bits, or are both NaN in the same parts.
pub fn same(dtype: DType, left: &[u8], right: &[u8]) -> bool {
    if left == right {
        return true;
    }
    let equal = |x: f64, y: f64| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
    match (read(dtype, left), read(dtype, right)) {
        (Value::Real(x), Value::Real(y)) => equal(x, y),
        (Value::Complex(a, b), Value::Complex(c, d)) => equal(a, c) && equal(b, d),
        (Value::Bits(x), Value::Bits(y)) => eight_bits(dtype, x).is_nan() && eight_bits(dtype, y).is_nan(),
        _ => false,
    }
}

/// Returns the number of an 8-bit float, from the definition of its fields.
pub fn eight_bits(dtype: DType, bits: u8) -> f64 {
    let (fraction_bits, bias) = if dtype == DType::F8E4M3 { (3, 7) } else { (2, 15) };
    let sign = if bits & 0x80 != 0 { -1.0 } else { 1.0 };
    let exponent = i32::from((bits & 0x7f) >> fraction_bits);
    let fraction = f64::from(bits & ((1 << fraction_bits) - 1)) / f64::from(1 << fraction_bits);
    match dtype {
        DType::F8E4M3 if bits & 0x7f == 0x7f => f64::NAN,
        DType::F8E5M2 if exponent == 31 && fraction != 0.0 => f64::NAN,
        DType::F8E5M2 if exponent == 31 => sign * f64::INFINITY,
        _ if exponent == 0 => sign * fraction * 2f64.powi(1 - bias),
        _ => sign * (1.0 + fraction) * 2f64.powi(exponent - bias),
    }
}
