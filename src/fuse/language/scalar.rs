//! Numbers beside arrays: the numbers that a dtype holds, and operations by a number's value.
//!
//! A number takes the dtype of the arrays beside it. Comparisons, `minimum`, `maximum` and `clamp` use the
//! number's value even if that dtype does not hold it: [`by_value`] returns an equivalent operation on a
//! number that the dtype holds. Every other operation refuses such a number. `tests/cases/values/scalars.rs` has
//! the tests.

use std::cmp::Ordering;
use std::fmt;

use half::{bf16, f16};

use super::graph::dtype_of_number;
use super::operation::{Operation, Rule};
use crate::error::{Error, Result};
use crate::fuse::ir::number::Number;
use crate::types::{DType, NumberKind};

/// Returns the smallest and the largest number of an integer dtype.
pub(crate) const fn limits(dtype: DType) -> (i128, i128) {
    let bits = 8 * dtype.size() as u32;
    match dtype.is_signed_integer() {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    }
}

/// Returns the largest finite number of a float or complex dtype.
pub(crate) fn largest(dtype: DType) -> f64 {
    match dtype.part() {
        DType::F8E4M3 => 448.0,
        DType::F8E5M2 => 57344.0,
        DType::F16 => f16::MAX.into(),
        DType::BF16 => bf16::MAX.into(),
        DType::F32 => f32::MAX.into(),
        _ => f64::MAX,
    }
}

impl Number {
    /// Returns whether a dtype holds the number.
    ///
    /// An integer dtype holds the integers of its range, however they are written (`2.0` is one). A float dtype holds
    /// every number up to its largest one in magnitude, which it rounds, and infinities and NaN; a complex dtype holds two
    /// such parts. Bool holds 0 and 1.
    ///
    /// ```
    /// use selvedge::fuse::Number;
    /// use selvedge::types::DType;
    /// assert!(Number::from(255).fits(DType::U8) && !Number::from(-1).fits(DType::U8));
    /// assert!(Number::from(300.1).fits(DType::F16) && !Number::from(1e39).fits(DType::F32));
    /// assert!(Number::from(2.0).fits(DType::I32) && !Number::from(2.5).fits(DType::I32));
    /// ```
    #[inline]
    pub fn fits(self, dtype: DType) -> bool {
        // The common cases of small operations.
        match (self, dtype) {
            (Number::Real(x), DType::F32) if x.abs() <= f32::MAX as f64 => true,
            (Number::Real(_), DType::F64) => true,
            _ => self.side(dtype) == Some(Ordering::Equal),
        }
    }

    /// Returns `Equal` if the dtype holds the number, `Less` or `Greater` if the number is below or above all
    /// numbers of the dtype, and `None` otherwise, such as for a fraction or NaN with an integer dtype.
    fn side(self, dtype: DType) -> Option<Ordering> {
        let float = |x: f64| match x.partial_cmp(&0.0) {
            _ if x.is_infinite() && dtype == DType::F8E4M3 => {
                Some(if x > 0.0 { Ordering::Greater } else { Ordering::Less })
            }
            _ if !(x.is_finite() && x.abs() > largest(dtype)) => Some(Ordering::Equal),
            sign => sign,
        };
        match (dtype.kind(), self) {
            (NumberKind::Complex, Number::Complex(x)) => {
                let parts = [x.re, x.im].map(float);
                (parts == [Some(Ordering::Equal); 2]).then_some(Ordering::Equal)
            }
            (_, Number::Complex(x)) if x.im == 0.0 => Number::Real(x.re).side(dtype),
            (_, Number::Complex(_)) => None,
            (NumberKind::Real | NumberKind::Complex, _) => float(self.real()),
            (kind, _) => {
                let (least, most) = if kind == NumberKind::Bool { (0, 1) } else { limits(dtype) };
                match self {
                    Number::Real(x) if x.is_nan() => None,
                    Number::Real(x) if x > most as f64 => Some(Ordering::Greater),
                    Number::Real(x) if x < least as f64 => Some(Ordering::Less),
                    Number::Real(x) if x.fract() != 0.0 => None,
                    _ => {
                        let whole = self.whole();
                        Some(whole.clamp(least, most).cmp(&whole).reverse())
                    }
                }
            }
        }
    }

    /// Converts to an integer by truncation.
    fn whole(self) -> i128 {
        match self {
            Number::Bool(x) => x.into(),
            Number::Integer(x) => x,
            Number::Real(_) | Number::Complex(_) => self.real() as i128,
        }
    }

    /// Returns whether the number is not 0.
    fn truth(self) -> bool {
        match self {
            Number::Complex(x) => x.re != 0.0 || x.im != 0.0,
            Number::Integer(x) => x != 0,
            _ => self.real() != 0.0,
        }
    }

    /// Checks that the dtype holds the number.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if it does not.
    #[inline]
    pub(crate) fn check(self, operation: &'static str, dtype: DType) -> Result<()> {
        if self.fits(dtype) { Ok(()) } else { Err(self.refusal(operation, dtype)) }
    }

    #[cold]
    fn refusal(self, operation: &'static str, dtype: DType) -> Error {
        let wanted = match dtype.kind() {
            NumberKind::Bool => "true, false, 0 or 1".to_owned(),
            NumberKind::Integer => {
                let (least, most) = limits(dtype);
                format!("an integer from {least} to {most}, or a cast to a dtype that holds it")
            }
            _ => format!("a number of at most {:e} in magnitude, infinity or NaN", largest(dtype)),
        };
        Error::invalid(operation, format!("the number {self}, which {dtype} does not hold"), wanted)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Bool(number) => write!(formatter, "{number}"),
            Number::Integer(number) => write!(formatter, "{number}"),
            Number::Real(number) => write!(formatter, "{number:?}"),
            Number::Complex(number) => write!(formatter, "{number}"),
        }
    }
}

/// Returns the dtype of the numbers among an operation's operands, beside arrays with this common dtype
/// (`None` if all operands are numbers).
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for an 8-bit float.
pub(crate) fn dtype_of_numbers(
    operation: Operation,
    kinds: impl IntoIterator<Item = NumberKind>,
    common: Option<DType>,
) -> Result<DType> {
    let mut dtype = common;
    for kind in kinds {
        dtype = Some(dtype_of_number(kind, dtype)?);
    }
    let dtype = dtype.unwrap_or(DType::Bool);
    Ok(match operation.rule() {
        // A quotient of integers is computed in f32, which holds numbers that the integer dtypes do not.
        Rule::PromoteToFloat | Rule::FloatTest | Rule::FloatComplexToReal
            if !dtype.is_float() && !dtype.is_complex() && !dtype.is_storage_only() =>
        {
            DType::F32
        }
        _ => dtype,
    })
}

/// Replaces numbers by ones that the dtype of the arrays beside them holds, and returns the operation that
/// gives the same result on them. `numbers` has an entry for each operand, `None` for arrays; `common` is the
/// common dtype of the arrays (for a choice, of its values).
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a number that the dtype does not hold, if the result depends on it.
pub(crate) fn by_value(
    operation: Operation,
    numbers: &mut [Option<Number>],
    common: Option<DType>,
) -> Result<Operation> {
    match operation.rule() {
        Rule::Logic => {
            numbers.iter_mut().flatten().for_each(|number| *number = Number::Bool(number.truth()));
            return Ok(operation);
        }
        Rule::Choice => {
            if let Some(Some(condition)) = numbers.first_mut() {
                *condition = Number::Bool(condition.truth());
            }
        }
        _ => {}
    }
    if let (Rule::Comparison, Some(common)) = (operation.rule(), common) {
        return Ok(match numbers {
            [None, Some(number)] => comparison(operation, number, common),
            [Some(number), None] => mirrored(comparison(mirrored(operation), number, common)),
            _ => operation,
        });
    }
    let values = usize::from(operation.rule() == Rule::Choice);
    let kinds = numbers.iter().skip(values).flatten().map(|number| number.kind());
    let dtype = dtype_of_numbers(operation, kinds, common)?;
    let side = |number: &Number| number.side(dtype);
    let (below, above) = (Some(Ordering::Less), Some(Ordering::Greater));
    let is_refused = |at: usize, number: &Number| match operation {
        Operation::Minimum | Operation::Fmin => side(number) == below,
        Operation::Maximum | Operation::Fmax => side(number) == above,
        Operation::Clamp => match at {
            0 => false,
            // In this case the result is `high` for every number.
            1 => side(number) == above && numbers.get(2).and_then(Option::as_ref).map(side) == Some(above),
            _ => side(number) == below,
        },
        _ => true,
    };
    let mut found = [None; 3];
    for (at, number) in numbers.iter().enumerate().skip(values) {
        let Some(number) = number.as_ref().filter(|number| !number.fits(dtype)) else { continue };
        let at_end = side(number).filter(|_| !is_refused(at, number));
        let Some(end) = at_end else { return Err(number.refusal(operation.name(), dtype)) };
        found[at % 3] = Some(match (dtype.kind(), end) {
            (NumberKind::Integer, Ordering::Less) => Number::Integer(limits(dtype).0),
            (NumberKind::Integer, _) => Number::Integer(limits(dtype).1),
            (_, Ordering::Less) => Number::Real(f64::NEG_INFINITY),
            _ => Number::Real(f64::INFINITY),
        });
    }
    for (number, found) in numbers.iter_mut().zip(found).filter(|(_, found)| found.is_some()) {
        *number = found;
    }
    Ok(operation)
}

/// Returns the comparison with its operands exchanged.
fn mirrored(operation: Operation) -> Operation {
    match operation {
        Operation::Less => Operation::Greater,
        Operation::LessEqual => Operation::GreaterEqual,
        Operation::Greater => Operation::Less,
        Operation::GreaterEqual => Operation::LessEqual,
        other => other,
    }
}

/// Replaces the comparison of an array with a number by one with a number that the array's dtype holds.
fn comparison(operation: Operation, number: &mut Number, common: DType) -> Operation {
    use Operation::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
    let is_ordered = !matches!(operation, Equal | NotEqual);
    if let (Number::Complex(x), false) = (*number, is_ordered)
        && x.im == 0.0
        && !common.is_complex()
    {
        *number = Number::Real(x.re);
    }
    if common.is_float() || common.is_complex() {
        let Ok(dtype) = common.promote_number(number.kind()) else { return operation };
        let is_above = match number.side(dtype) {
            Some(Ordering::Equal) => return operation,
            // Nothing equals NaN.
            _ if !is_ordered => {
                *number = Number::Real(f64::NAN);
                return operation;
            }
            Some(Ordering::Greater) => true,
            Some(Ordering::Less) => false,
            None => return operation,
        };
        *number = Number::Real(if is_above { f64::INFINITY } else { f64::NEG_INFINITY });
        return match (is_above, operation) {
            (true, Less | LessEqual) => Less,
            (true, _) => GreaterEqual,
            (false, Less | LessEqual) => LessEqual,
            (false, _) => Greater,
        };
    }
    // Integers and bools meet numbers in i64.
    if number.kind() == NumberKind::Bool || common.is_storage_only() {
        return operation;
    }
    let (least, most) = limits(if common == DType::Bool { DType::I64 } else { common });
    let found = *number;
    let mut constant = |is_true: bool| {
        *number = Number::Integer(least);
        if is_true { GreaterEqual } else { Less }
    };
    let (operation, value) = match found {
        // A number with an imaginary part equals no real number. The dtype check refuses an ordered
        // comparison.
        Number::Complex(_) if is_ordered => return operation,
        Number::Complex(_) => return constant(operation == NotEqual),
        Number::Real(x) if x.is_nan() => return constant(operation == NotEqual),
        Number::Real(x) if x.fract() != 0.0 => match operation {
            Equal | NotEqual => return constant(operation == NotEqual),
            Less | GreaterEqual => (operation, x.ceil() as i128),
            _ => (operation, x.floor() as i128),
        },
        // The conversion saturates past the limits of every dtype.
        _ => (operation, found.whole()),
    };
    if value > most {
        return constant(matches!(operation, Less | LessEqual | NotEqual));
    }
    if value < least {
        return constant(matches!(operation, Greater | GreaterEqual | NotEqual));
    }
    *number = Number::Integer(value);
    operation
}
