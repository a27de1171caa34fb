//! Formatting of real numbers: the fewest digits that identify a number of its dtype, in columns that share a form.

use half::{bf16, f16};

use crate::types::DType;

/// Digits behind the point, at most.
const PRECISION: usize = 8;

/// The form that the numbers of a column share.
pub(super) struct ColumnFormat {
    dtype: DType,
    /// The digits after the point that the caller asked for.
    precision: Option<usize>,
    scientific: bool,
    /// Digits behind the point: of all numbers where it is scientific, otherwise of the longest.
    fraction: usize,
    /// Columns before the decimal point, the sign included.
    whole: usize,
}

/// The decimal of the fewest digits that is nearest to this number among those of the dtype.
fn shortest(value: f64, dtype: DType) -> f64 {
    let text = match dtype {
        DType::F32 => format!("{:e}", value as f32),
        DType::F16 | DType::BF16 => {
            let rounded = |x: f64| match dtype {
                DType::F16 => f64::from(f16::from_f64(x)),
                _ => f64::from(bf16::from_f64(x)),
            };
            let texts = (0..6).map(|digits| format!("{value:.digits$e}"));
            let mut good = texts.filter(|text| text.parse().is_ok_and(|x: f64| rounded(x) == value));
            good.next().unwrap_or_else(|| format!("{value:e}"))
        }
        _ => return value,
    };
    text.parse().unwrap_or(value)
}

/// Formats a number by itself.
pub(super) fn plain(value: f64, dtype: DType, precision: Option<usize>) -> String {
    match value {
        _ if value.is_nan() => "nan".to_owned(),
        _ if value.is_infinite() => if value > 0.0 { "inf" } else { "-inf" }.to_owned(),
        _ => match precision {
            Some(digits) => format!("{value:.digits$}"),
            None => format!("{:?}", shortest(value, dtype)),
        },
    }
}

impl ColumnFormat {
    /// Chooses the form for these numbers. Without a precision, they are scientific if the largest is 10⁸ or more, one is
    /// below 10⁻⁴, or they span more than three powers of ten; with a precision, if the largest is 10¹⁶ or more.
    pub(super) fn of(
        values: impl Iterator<Item = f64> + Clone,
        dtype: DType,
        precision: Option<usize>,
    ) -> ColumnFormat {
        let sizes = values.clone().map(f64::abs).filter(|size| *size > 0.0 && size.is_finite());
        let (least, most) =
            sizes.fold((f64::INFINITY, 0.0f64), |(least, most), size| (least.min(size), most.max(size)));
        let scientific = match precision {
            Some(_) => most >= 1e16,
            None => most > 0.0 && (most >= 1e8 || least < 1e-4 || most / least > 1000.0),
        };
        let mut columns = ColumnFormat { dtype, precision, scientific, fraction: 0, whole: 0 };
        for value in values.filter(|value| value.is_finite()) {
            let (whole, fraction, _) = columns.split(value, precision);
            columns.whole = columns.whole.max(whole.len());
            columns.fraction = columns.fraction.max(fraction.len());
        }
        columns
    }

    /// Returns the digits before the point, the digits after it, and the exponent.
    fn split(&self, value: f64, fraction: Option<usize>) -> (String, String, String) {
        let short = if self.precision.is_some() { value } else { shortest(value, self.dtype) };
        let text = |digits: Option<usize>| match (self.scientific, digits) {
            (true, None) => format!("{short:e}"),
            (true, Some(digits)) => format!("{short:.digits$e}"),
            (false, None) => format!("{short}"),
            (false, Some(digits)) => format!("{short:.digits$}"),
        };
        let cut = |text: String| {
            let (mantissa, exponent) = match text.split_once('e') {
                Some((mantissa, exponent)) => (mantissa.to_owned(), exponent.to_owned()),
                None => (text, String::new()),
            };
            let (whole, fraction) = match mantissa.split_once('.') {
                Some((whole, fraction)) => (whole.to_owned(), fraction.to_owned()),
                None => (mantissa, String::new()),
            };
            (whole, fraction, exponent)
        };
        let mut parts = cut(text(fraction));
        if fraction.is_none() && parts.1.len() > PRECISION {
            parts = cut(text(Some(PRECISION)));
            parts.1.truncate(parts.1.trim_end_matches('0').len());
        }
        parts
    }

    /// A number of the column; with `sign`, a plus before what is not negative, as behind a real part.
    pub(super) fn text(&self, value: f64, sign: bool) -> String {
        let signed = |text: String| if sign && !text.starts_with('-') { format!("+{text}") } else { text };
        if !value.is_finite() {
            return signed(plain(value, self.dtype, None));
        }
        let digits = self.precision.or(self.scientific.then_some(self.fraction));
        let (whole, fraction, exponent) = self.split(value, digits);
        let whole = signed(whole);
        let width = if sign { 0 } else { self.whole };
        if self.scientific {
            let (minus, digits) = match exponent.strip_prefix('-') {
                Some(digits) => ("-", digits),
                None => ("+", exponent.as_str()),
            };
            return format!("{whole:>width$}.{fraction}e{minus}{digits:0>2}");
        }
        if self.precision == Some(0) {
            return format!("{whole:>width$}");
        }
        format!("{whole:>width$}.{fraction:<after$}", after = self.fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[f64], dtype: DType) -> Vec<String> {
        let columns = ColumnFormat::of(values.iter().copied(), dtype, None);
        values.iter().map(|value| columns.text(*value, false)).collect()
    }

    #[test]
    fn digits_are_as_few_as_tell_numbers_apart() {
        assert_eq!(shortest(f64::from(0.1f32), DType::F32), 0.1);
        assert_eq!(shortest(f64::from(f16::from_f64(0.1)), DType::F16), 0.1);
        assert_eq!(shortest(f64::from(bf16::from_f64(2.72)), DType::BF16), 2.72);
        assert_eq!(shortest(f64::from(f16::MAX), DType::F16), 65500.0);
        for bits in 0..=u16::MAX {
            let x = f16::from_bits(bits);
            if x.is_finite() {
                assert_eq!(f16::from_f64(shortest(x.to_f64(), DType::F16)).to_f64(), x.to_f64());
            }
        }
    }

    #[test]
    fn columns_share_their_form() {
        assert_eq!(column(&[1.0, -2.5, 3.25], DType::F64), [" 1.  ", "-2.5 ", " 3.25"]);
        assert_eq!(column(&[1e-5, 1.5], DType::F64), ["1.0e-05", "1.5e+00"]);
        assert_eq!(column(&[1e8, f64::NAN], DType::F64), ["1.e+08", "nan"]);
        assert_eq!(column(&[1.0 / 3.0, f64::NEG_INFINITY], DType::F64), ["0.33333333", "-inf"]);
        assert_eq!(column(&[0.0, -0.0], DType::F64), [" 0.", "-0."]);
    }
}
