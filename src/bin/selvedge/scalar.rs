//! Scalars as text: `3:i32`, `-1.5:f64`, `0xff:u8`, `true:bool`, `1-2i:c64`.
//!
//! A value that the dtype cannot hold is an error, not a wrapped or infinite one: a kernel that is given another number
//! than was typed gives results that look right.

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::driver::image::ArgumentKind;
use selvedge::fuse::Number;
use selvedge::types::{Bool, DType};

/// A value with its type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    Bool(Bool),
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F16(f16),
    BF16(bf16),
    F32(f32),
    F64(f64),
    C64(Complex<f32>),
    C128(Complex<f64>),
}

impl Scalar {
    /// Returns the value as a kernel argument.
    pub fn kind(self) -> ArgumentKind {
        match self {
            Scalar::F16(_) | Scalar::BF16(_) | Scalar::F32(_) | Scalar::F64(_) => ArgumentKind::Float,
            Scalar::C64(_) | Scalar::C128(_) => ArgumentKind::Bytes,
            _ => ArgumentKind::Integer,
        }
    }
}

/// Reads a value of this dtype; the error says what was found and wanted.
pub fn parse(text: &str, dtype: DType) -> Result<Scalar, String> {
    let wanted = |what: &str| format!("found '{text}'; wanted {what}");
    let integer = |least: i128, most: i128| match parse_integer(text) {
        Some(value) if Number::Integer(value).fits(dtype) => Ok(value),
        _ => Err(wanted(&format!("an integer from {least} to {most} for {dtype}"))),
    };
    let real = |largest: f64| {
        parse_real(text, dtype).ok_or_else(|| {
            wanted(&format!("a number of at most {largest:e} in magnitude, inf or nan for {dtype}"))
        })
    };
    let complex = || {
        let parts = complex_parts(text);
        let parts = parts.filter(|(re, im)| [re, im].iter().all(|part| parse_real(part, dtype).is_some()));
        parts.ok_or_else(|| wanted(&format!("a complex number such as 1.5, 2i or 1-2i for {dtype}")))
    };
    Ok(match dtype {
        DType::Bool => match text {
            "true" | "True" | "1" => Scalar::Bool(true.into()),
            "false" | "False" | "0" => Scalar::Bool(false.into()),
            _ => return Err(wanted("true or false")),
        },
        DType::U8 => Scalar::U8(integer(0, u8::MAX.into())? as u8),
        DType::I8 => Scalar::I8(integer(i8::MIN.into(), i8::MAX.into())? as i8),
        DType::U16 => Scalar::U16(integer(0, u16::MAX.into())? as u16),
        DType::I16 => Scalar::I16(integer(i16::MIN.into(), i16::MAX.into())? as i16),
        DType::U32 => Scalar::U32(integer(0, u32::MAX.into())? as u32),
        DType::I32 => Scalar::I32(integer(i32::MIN.into(), i32::MAX.into())? as i32),
        DType::U64 => Scalar::U64(integer(0, u64::MAX.into())? as u64),
        DType::I64 => Scalar::I64(integer(i64::MIN.into(), i64::MAX.into())? as i64),
        DType::F16 => Scalar::F16(f16::from_f64(real(f16::MAX.into())?)),
        DType::BF16 => Scalar::BF16(bf16::from_f64(real(bf16::MAX.into())?)),
        // The text is parsed again for f32, since a conversion from f64 would round twice.
        DType::F32 => {
            Scalar::F32(real(f32::MAX.into()).and_then(|_| text.parse().map_err(|_| wanted("a number")))?)
        }
        DType::F64 => Scalar::F64(real(f64::MAX)?),
        DType::C64 => {
            let (re, im) = complex()?;
            Scalar::C64(Complex::new(re.parse().unwrap_or(f32::NAN), im.parse().unwrap_or(f32::NAN)))
        }
        DType::C128 => {
            let (re, im) = complex()?;
            Scalar::C128(Complex::new(re.parse().unwrap_or(f64::NAN), im.parse().unwrap_or(f64::NAN)))
        }
        other => {
            return Err(wanted(&format!("the bits of the {other} as a number of type u8, such as 56:u8")));
        }
    })
}

fn parse_integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefixed = [("0x", 16), ("0b", 2), ("0o", 8)];
    let (digits, radix) = prefixed
        .iter()
        .find_map(|(prefix, radix)| digits.strip_prefix(prefix).map(|digits| (digits, *radix)))
        .unwrap_or((digits, 10));
    // A second sign would be taken by `from_str_radix`.
    let value = digits
        .starts_with(|first: char| first.is_digit(radix))
        .then(|| i128::from_str_radix(digits, radix))?;
    value.ok().map(|value| if negative { -value } else { value })
}

/// A finite number that the dtype holds ([`Number::fits`]), or one that is written as infinite or as no number.
fn parse_real(text: &str, dtype: DType) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let digits = text.contains(|letter: char| letter.is_ascii_digit());
    (!digits || value.is_finite() && Number::Real(value).fits(dtype)).then_some(value)
}

/// The texts of the real and the imaginary part.
fn complex_parts(text: &str) -> Option<(&str, &str)> {
    let Some(rest) = text.strip_suffix(['i', 'j']) else {
        return (!text.is_empty()).then_some((text, "0"));
    };
    // The sign between the parts is the last one that belongs to no exponent.
    let exponent = |at: usize| matches!(rest.as_bytes()[at - 1], b'e' | b'E');
    let split = rest.rmatch_indices(['+', '-']).map(|(at, _)| at).find(|at| *at > 0 && !exponent(*at));
    let (re, im) = rest.split_at(split.unwrap_or(0));
    let im = match im {
        "" | "+" => "1",
        "-" => "-1",
        im => im,
    };
    Some((if re.is_empty() { "0" } else { re }, im))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, dtype: DType, wanted: &str) {
        let message = parse(text, dtype).unwrap_err();
        assert!(message.contains(&format!("'{text}'")) && message.contains(wanted), "{message}");
    }

    #[test]
    fn integers_keep_to_their_range() {
        assert_eq!(parse("3", DType::I32), Ok(Scalar::I32(3)));
        assert_eq!(parse("-128", DType::I8), Ok(Scalar::I8(-128)));
        assert_eq!(parse("0xff", DType::U8), Ok(Scalar::U8(255)));
        assert_eq!(parse("-0x10", DType::I16), Ok(Scalar::I16(-16)));
        assert_eq!(parse("18446744073709551615", DType::U64), Ok(Scalar::U64(u64::MAX)));
        refused("128", DType::I8, "-128 to 127 for i8");
        refused("-1", DType::U32, "0 to 4294967295");
        for text in ["", "-", "+-1", "1.0", "0x", "1e3", "99999999999999999999999999999999999999999"] {
            refused(text, DType::I64, "an integer");
        }
    }

    #[test]
    fn reals_are_rounded_once_and_never_overflow() {
        assert_eq!(parse("-1.5", DType::F64), Ok(Scalar::F64(-1.5)));
        assert_eq!(parse("0.1", DType::F32), Ok(Scalar::F32(0.1)));
        assert_eq!(parse("1.000000059604644775390625000001", DType::F32), Ok(Scalar::F32(1.000_000_1)));
        assert_eq!(parse("-inf", DType::F32), Ok(Scalar::F32(f32::NEG_INFINITY)));
        assert!(matches!(parse("nan", DType::F16), Ok(Scalar::F16(value)) if value.is_nan()));
        assert_eq!(parse("1e4", DType::BF16), Ok(Scalar::BF16(bf16::from_f32(1e4))));
        refused("1e39", DType::F32, "at most 3.4");
        refused("65505", DType::F16, "6.5504e4");
        refused("1e999", DType::F64, "at most");
        refused("one", DType::F64, "a number");
    }

    #[test]
    fn complex_numbers_as_they_are_written() {
        let value = |re, im| Ok(Scalar::C128(Complex::new(re, im)));
        assert_eq!(parse("1.5", DType::C128), value(1.5, 0.0));
        assert_eq!(parse("1-2i", DType::C128), value(1.0, -2.0));
        assert_eq!(parse("-1e-3+2e+2j", DType::C128), value(-1e-3, 2e2));
        assert_eq!(parse("-2i", DType::C128), value(0.0, -2.0));
        assert_eq!(parse("i", DType::C128), value(0.0, 1.0));
        assert_eq!(parse("3-i", DType::C64), Ok(Scalar::C64(Complex::new(3.0, -1.0))));
        for text in ["", "1+2", "i+1", "1+2k", "1e40+i"] {
            refused(text, DType::C64, "a complex number");
        }
    }

    #[test]
    fn the_others() {
        assert_eq!(parse("true", DType::Bool), Ok(Scalar::Bool(true.into())));
        refused("yes", DType::Bool, "true or false");
        refused("1.5", DType::F8E4M3, "u8");
    }
}
