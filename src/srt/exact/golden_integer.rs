//! [`GoldenInteger`], an element of Z\[φ\].

use std::cmp::Ordering;
use std::fmt;

use super::super::PHI;
use super::{GoldenExact, Rational};
use crate::error::{Error, Result};

/// a + bφ with a and b of i64: a point of the lattice to which [`snap`](crate::srt::snap) moves numbers. An overflow is an
/// error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GoldenInteger {
    /// The multiple of 1.
    pub a: i64,
    /// The multiple of φ.
    pub b: i64,
}

fn fitting(operation: &'static str, a: i128, b: i128) -> Result<GoldenInteger> {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => Ok(GoldenInteger { a, b }),
        _ => Err(Error::overflow(operation, format!("({a}, {b})"), "two numbers of i64")),
    }
}

impl GoldenInteger {
    /// Creates a + bφ.
    pub const fn new(a: i64, b: i64) -> GoldenInteger {
        GoldenInteger { a, b }
    }

    /// Both coefficients with room for sums and products of two.
    fn wide(self) -> (i128, i128) {
        (self.a.into(), self.b.into())
    }

    /// Returns self + other.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn checked_add(self, other: GoldenInteger) -> Result<GoldenInteger> {
        let ((a1, b1), (a2, b2)) = (self.wide(), other.wide());
        fitting("a sum in Z[φ]", a1 + a2, b1 + b2)
    }

    /// Returns self - other.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn checked_sub(self, other: GoldenInteger) -> Result<GoldenInteger> {
        let ((a1, b1), (a2, b2)) = (self.wide(), other.wide());
        fitting("a difference in Z[φ]", a1 - a2, b1 - b2)
    }

    /// Returns -self.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn checked_neg(self) -> Result<GoldenInteger> {
        GoldenInteger::default().checked_sub(self)
    }

    /// Returns self · other.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn checked_mul(self, other: GoldenInteger) -> Result<GoldenInteger> {
        const OPERATION: &str = "a product in Z[φ]";
        let ((a1, b1), (a2, b2)) = (self.wide(), other.wide());
        // A sum of three products may need one bit more than i128 has.
        let sums = || {
            let a = (a1 * a2).checked_add(b1 * b2)?;
            Some((a, (a1 * b2).checked_add(a2 * b1)?.checked_add(b1 * b2)?))
        };
        let refuse = || Error::overflow(OPERATION, format!("({self}) · ({other})"), "two numbers of i64");
        let (a, b) = sums().ok_or_else(refuse)?;
        fitting(OPERATION, a, b)
    }

    /// Returns the conjugate a + b - bφ.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn conjugate(self) -> Result<GoldenInteger> {
        let (a, b) = self.wide();
        fitting("a conjugate in Z[φ]", a + b, -b)
    }

    /// Returns the norm a² + ab - b².
    pub fn norm(self) -> i128 {
        let (a, b) = self.wide();
        // The magnitude is at most 5/4 · 2^126.
        a * a + b * (a - b)
    }

    /// Returns the trace 2a + b.
    pub fn trace(self) -> i128 {
        let (a, b) = self.wide();
        2 * a + b
    }

    /// Returns the golden recursion φ · self = b + (a + b) φ.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn recursion(self) -> Result<GoldenInteger> {
        let (a, b) = self.wide();
        fitting("the golden recursion", b, a + b)
    }

    /// Returns the inverse of the [`recursion`](Self::recursion), self / φ = b - a + aφ.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn recursion_inverse(self) -> Result<GoldenInteger> {
        let (a, b) = self.wide();
        fitting("the inverse golden recursion", b - a, a)
    }

    /// Returns a + b · [`PHI`] in f64, each step rounded: the value that snapping, syntony and the evolver compute with.
    pub fn value(self) -> f64 {
        self.a as f64 + self.b as f64 * PHI
    }
}

impl From<(i64, i64)> for GoldenInteger {
    fn from((a, b): (i64, i64)) -> GoldenInteger {
        GoldenInteger { a, b }
    }
}

impl From<i64> for GoldenInteger {
    fn from(a: i64) -> GoldenInteger {
        GoldenInteger { a, b: 0 }
    }
}

impl TryFrom<GoldenExact> for GoldenInteger {
    type Error = Error;

    /// Converts a number whose coefficients are integers of i64.
    fn try_from(number: GoldenExact) -> Result<GoldenInteger> {
        let part = |part: Rational| part.to_integer().and_then(|part| i64::try_from(part).ok());
        match (part(number.a()), part(number.b())) {
            (Some(a), Some(b)) => Ok(GoldenInteger { a, b }),
            _ => Err(Error::invalid("a conversion to Z[φ]", number, "integer coefficients of i64")),
        }
    }
}

impl Ord for GoldenInteger {
    fn cmp(&self, other: &GoldenInteger) -> Ordering {
        GoldenExact::from(*self).cmp(&GoldenExact::from(*other))
    }
}

impl PartialOrd for GoldenInteger {
    fn partial_cmp(&self, other: &GoldenInteger) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for GoldenInteger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&GoldenExact::from(*self), formatter)
    }
}
