//! [`Rational`], a reduced fraction.

use std::cmp::Ordering;
use std::fmt;

use super::wide::Wide;
use crate::error::{Error, Result};

/// A fraction of i128 in lowest terms, with a denominator above 0.
///
/// ```
/// use selvedge::srt::Rational;
/// let half = Rational::new(-3, -6)?;
/// assert_eq!(half.checked_add(Rational::new(1, 3)?)?.to_string(), "5/6");
/// assert!(half < Rational::from(1));
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rational {
    numerator: i128,
    denominator: i128,
}

const OPERATION: &str = "a rational number";

fn overflow(found: impl fmt::Display) -> Error {
    Error::overflow(OPERATION, found, "a numerator and a denominator of i128")
}

impl Rational {
    /// 0.
    pub const ZERO: Rational = Rational { numerator: 0, denominator: 1 };
    /// 1.
    pub const ONE: Rational = Rational { numerator: 1, denominator: 1 };

    /// Creates the fraction in lowest terms.
    ///
    /// # Errors
    ///
    /// [`Error::DivisionByZero`] for a denominator of 0, [`Error::Overflow`] where reduction leaves 2^127 as a positive
    /// part.
    pub fn new(numerator: i128, denominator: i128) -> Result<Rational> {
        if denominator == 0 {
            return Err(Error::DivisionByZero { operation: OPERATION, dividend: numerator.to_string() });
        }
        let divisor = greatest_common_divisor(numerator.unsigned_abs(), denominator.unsigned_abs());
        let part = |magnitude: u128| i128::try_from(magnitude / divisor).ok();
        let reduced = part(denominator.unsigned_abs()).and_then(|denominator_part| {
            let magnitude = numerator.unsigned_abs() / divisor;
            let numerator = match (numerator < 0) != (denominator < 0) {
                true => 0i128.checked_sub_unsigned(magnitude),
                false => i128::try_from(magnitude).ok(),
            };
            Some(Rational { numerator: numerator?, denominator: denominator_part })
        });
        reduced.ok_or_else(|| overflow(format_args!("{numerator}/{denominator}")))
    }

    /// Returns the numerator.
    pub fn numerator(self) -> i128 {
        self.numerator
    }

    /// Returns the denominator, which is above 0.
    pub fn denominator(self) -> i128 {
        self.denominator
    }

    /// Returns the integer that the number is, if it is one.
    pub fn to_integer(self) -> Option<i128> {
        (self.denominator == 1).then_some(self.numerator)
    }

    /// Returns whether the number is 0.
    pub fn is_zero(self) -> bool {
        self.numerator == 0
    }

    /// Returns self + other.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn checked_add(self, other: Rational) -> Result<Rational> {
        let divisor =
            greatest_common_divisor(self.denominator.unsigned_abs(), other.denominator.unsigned_abs())
                as i128;
        let scale = other.denominator / divisor;
        let sum = || {
            let left = self.numerator.checked_mul(scale)?;
            let right = other.numerator.checked_mul(self.denominator / divisor)?;
            Some((left.checked_add(right)?, self.denominator.checked_mul(scale)?))
        };
        let (numerator, denominator) = sum().ok_or_else(|| overflow(format_args!("{self} + {other}")))?;
        Rational::new(numerator, denominator)
    }

    /// Returns self - other.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn checked_sub(self, other: Rational) -> Result<Rational> {
        self.checked_add(other.checked_neg()?)
    }

    /// Returns self · other.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn checked_mul(self, other: Rational) -> Result<Rational> {
        // Common factors go first, so a product that fits does not overflow.
        let left = Rational::new(self.numerator, other.denominator)?;
        let right = Rational::new(other.numerator, self.denominator)?;
        let numerator = left.numerator.checked_mul(right.numerator);
        let product = numerator.zip(left.denominator.checked_mul(right.denominator));
        let (numerator, denominator) = product.ok_or_else(|| overflow(format_args!("{self} · {other}")))?;
        Ok(Rational { numerator, denominator })
    }

    /// Returns self / other.
    ///
    /// # Errors
    ///
    /// [`Error::DivisionByZero`], [`Error::Overflow`].
    pub fn checked_div(self, other: Rational) -> Result<Rational> {
        if other.is_zero() {
            return Err(Error::DivisionByZero { operation: OPERATION, dividend: self.to_string() });
        }
        self.checked_mul(Rational::new(other.denominator, other.numerator)?)
    }

    /// Returns -self.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] for a numerator of -2^127.
    pub fn checked_neg(self) -> Result<Rational> {
        let numerator = self.numerator.checked_neg().ok_or_else(|| overflow(format_args!("-({self})")))?;
        Ok(Rational { numerator, ..self })
    }

    /// Returns the nearest f64, within 2 units in the last place.
    pub fn to_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// Returns numerator and denominator as integers of any size.
    pub(super) fn wide(self) -> (Wide, Wide) {
        (self.numerator.into(), self.denominator.into())
    }
}

fn greatest_common_divisor(x: u128, y: u128) -> u128 {
    let (mut x, mut y) = (x, y);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    x
}

impl From<i32> for Rational {
    fn from(number: i32) -> Rational {
        Rational { numerator: number.into(), denominator: 1 }
    }
}

impl From<i64> for Rational {
    fn from(number: i64) -> Rational {
        Rational { numerator: number.into(), denominator: 1 }
    }
}

impl From<i128> for Rational {
    fn from(number: i128) -> Rational {
        Rational { numerator: number, denominator: 1 }
    }
}

impl Ord for Rational {
    fn cmp(&self, other: &Rational) -> Ordering {
        let ((x, of_x), (y, of_y)) = (self.wide(), other.wide());
        x.product(&of_y).cmp(&y.product(&of_x))
    }
}

impl PartialOrd for Rational {
    fn partial_cmp(&self, other: &Rational) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Rational {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(formatter, "{}", self.numerator),
            denominator => write!(formatter, "{}/{denominator}", self.numerator),
        }
    }
}
