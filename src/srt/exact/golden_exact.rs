//! [`GoldenExact`], an element of Q(φ).

use std::cmp::Ordering;
use std::fmt;

use super::super::fibonacci::fibonacci;
use super::super::{INVERSE_PHI, PHI};
use super::wide::Wide;
use super::{GoldenInteger, Rational};
use crate::error::{Error, Result};

/// a + bφ with rational a and b: exact arithmetic, equality and order. An overflow of i128 is an error.
///
/// ```
/// use selvedge::srt::GoldenExact;
/// let (x, y) = (GoldenExact::from((2, 3)), GoldenExact::from((1, -1)));
/// assert_eq!(x.checked_mul(y)?, GoldenExact::from((-1, -2)));
/// assert_eq!(x.checked_div(y)?.to_string(), "-3 - 5 φ");
/// assert!(x > y && GoldenExact::PHI < GoldenExact::from((2, 0)));
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GoldenExact {
    a: Rational,
    b: Rational,
}

const OPERATION: &str = "an exact number of Q(φ)";

impl GoldenExact {
    /// 0.
    pub const ZERO: GoldenExact = GoldenExact { a: Rational::ZERO, b: Rational::ZERO };
    /// 1.
    pub const ONE: GoldenExact = GoldenExact { a: Rational::ONE, b: Rational::ZERO };
    /// φ.
    pub const PHI: GoldenExact = GoldenExact { a: Rational::ZERO, b: Rational::ONE };

    /// Creates a + bφ.
    pub fn new(a: impl Into<Rational>, b: impl Into<Rational>) -> GoldenExact {
        GoldenExact { a: a.into(), b: b.into() }
    }

    /// Returns √5 = -1 + 2φ.
    pub fn sqrt5() -> GoldenExact {
        GoldenExact::new(-1i64, 2i64)
    }

    /// Returns φⁿ = F(n-1) + F(n) φ.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] for a Fibonacci number beyond i128, from |n| = 185 on.
    pub fn phi_pow(n: i32) -> Result<GoldenExact> {
        let before: i128 = fibonacci(n.saturating_sub(1))?;
        let at: i128 = fibonacci(n)?;
        Ok(GoldenExact::new(before, at))
    }

    /// Returns a of a + bφ.
    pub fn a(self) -> Rational {
        self.a
    }

    /// Returns b of a + bφ.
    pub fn b(self) -> Rational {
        self.b
    }

    /// Returns whether the number is 0.
    pub fn is_zero(self) -> bool {
        self.a.is_zero() && self.b.is_zero()
    }

    /// Returns self + other.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn checked_add(self, other: GoldenExact) -> Result<GoldenExact> {
        Ok(GoldenExact { a: self.a.checked_add(other.a)?, b: self.b.checked_add(other.b)? })
    }

    /// Returns self - other.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn checked_sub(self, other: GoldenExact) -> Result<GoldenExact> {
        Ok(GoldenExact { a: self.a.checked_sub(other.a)?, b: self.b.checked_sub(other.b)? })
    }

    /// Returns self · other.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn checked_mul(self, other: GoldenExact) -> Result<GoldenExact> {
        let product = self.b.checked_mul(other.b)?;
        let cross = self.a.checked_mul(other.b)?.checked_add(other.a.checked_mul(self.b)?)?;
        Ok(GoldenExact {
            a: self.a.checked_mul(other.a)?.checked_add(product)?,
            b: cross.checked_add(product)?,
        })
    }

    /// Returns self / other.
    ///
    /// # Errors
    ///
    /// [`Error::DivisionByZero`], [`Error::Overflow`].
    pub fn checked_div(self, other: GoldenExact) -> Result<GoldenExact> {
        if other.is_zero() {
            return Err(Error::DivisionByZero { operation: OPERATION, dividend: self.to_string() });
        }
        self.checked_mul(other.inverse()?)
    }

    /// Returns -self.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn checked_neg(self) -> Result<GoldenExact> {
        Ok(GoldenExact { a: self.a.checked_neg()?, b: self.b.checked_neg()? })
    }

    /// Returns self to an integer power; any number to the power 0 is 1.
    ///
    /// # Errors
    ///
    /// [`Error::DivisionByZero`] for a negative power of 0, [`Error::Overflow`].
    pub fn checked_pow(self, exponent: i32) -> Result<GoldenExact> {
        let mut square = if exponent < 0 { self.inverse()? } else { self };
        let (mut power, mut left) = (GoldenExact::ONE, exponent.unsigned_abs());
        while left != 0 {
            if left % 2 == 1 {
                power = power.checked_mul(square)?;
            }
            left /= 2;
            // The last square is not needed, and may overflow.
            if left != 0 {
                square = square.checked_mul(square)?;
            }
        }
        Ok(power)
    }

    /// Returns the conjugate a + b - bφ, the image of φ → 1 - φ.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn conjugate(self) -> Result<GoldenExact> {
        Ok(GoldenExact { a: self.a.checked_add(self.b)?, b: self.b.checked_neg()? })
    }

    /// Returns the norm a² + ab - b², the product with the conjugate.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn norm(self) -> Result<Rational> {
        // a (a + b) - b², whose terms are fewer.
        let first = self.a.checked_mul(self.a.checked_add(self.b)?)?;
        first.checked_sub(self.b.checked_mul(self.b)?)
    }

    /// Returns the trace 2a + b, the sum with the conjugate.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`].
    pub fn trace(self) -> Result<Rational> {
        self.a.checked_add(self.a)?.checked_add(self.b)
    }

    /// Returns 1 / self.
    ///
    /// # Errors
    ///
    /// [`Error::DivisionByZero`], [`Error::Overflow`].
    pub fn inverse(self) -> Result<GoldenExact> {
        if self.is_zero() {
            return Err(Error::DivisionByZero { operation: OPERATION, dividend: "1".to_owned() });
        }
        let (conjugate, norm) = (self.conjugate()?, self.norm()?);
        Ok(GoldenExact { a: conjugate.a.checked_div(norm)?, b: conjugate.b.checked_div(norm)? })
    }

    /// Returns the number as f64, within a few units in the last place: terms of opposite signs, which would cancel, are
    /// computed as N / conjugate.
    ///
    /// ```
    /// use selvedge::srt::GoldenExact;
    /// // As a + bφ in f64 this is 0.
    /// assert_eq!(GoldenExact::phi_pow(-40)?.to_f64(), 4.370130339181067e-9);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    pub fn to_f64(self) -> f64 {
        let (a, b) = (self.a.to_f64(), self.b.to_f64());
        if a == 0.0 || b == 0.0 || (a < 0.0) == (b < 0.0) {
            return a + b * PHI;
        }
        let ((a_top, a_bottom), (b_top, b_bottom)) = (self.a.wide(), self.b.wide());
        let (a_scaled, b_scaled) = (a_top.product(&b_bottom), b_top.product(&a_bottom));
        let bottom = a_bottom.product(&b_bottom);
        let square = |x: &Wide| x.product(x);
        let top = square(&a_scaled).sum(&a_scaled.product(&b_scaled)).sum(&square(&b_scaled).negated());
        // The conjugate is a - b/φ, and its terms have one sign.
        let norm = top.to_f64() / square(&bottom).to_f64();
        norm / (a - b * INVERSE_PHI)
    }

    /// Returns the sign of the difference to another number.
    fn sign_of_difference(&self, other: &GoldenExact) -> i32 {
        let difference = |x: Rational, y: Rational| {
            let ((x, of_x), (y, of_y)) = (x.wide(), y.wide());
            (x.product(&of_y).sum(&y.product(&of_x).negated()), of_x.product(&of_y))
        };
        let ((a, of_a), (b, of_b)) = (difference(self.a, other.a), difference(self.b, other.b));
        let (a, b) = (a.product(&of_b), b.product(&of_a));
        // The sign of 2 (a + bφ) = (2a + b) + b√5.
        let rational = a.sum(&a).sum(&b);
        let (first, second) = (rational.sign(), b.sign());
        if first * second >= 0 {
            return if first == 0 { second } else { first };
        }
        let five = b.product(&b).product(&Wide::from(5));
        match rational.product(&rational).cmp(&five) {
            Ordering::Greater => first,
            Ordering::Equal => 0,
            Ordering::Less => second,
        }
    }
}

impl From<Rational> for GoldenExact {
    fn from(a: Rational) -> GoldenExact {
        GoldenExact { a, b: Rational::ZERO }
    }
}

impl From<i32> for GoldenExact {
    fn from(a: i32) -> GoldenExact {
        Rational::from(a).into()
    }
}

impl From<i64> for GoldenExact {
    fn from(a: i64) -> GoldenExact {
        Rational::from(a).into()
    }
}

impl From<(i64, i64)> for GoldenExact {
    fn from((a, b): (i64, i64)) -> GoldenExact {
        GoldenExact::new(a, b)
    }
}

impl From<GoldenInteger> for GoldenExact {
    fn from(number: GoldenInteger) -> GoldenExact {
        GoldenExact::new(number.a, number.b)
    }
}

impl Ord for GoldenExact {
    fn cmp(&self, other: &GoldenExact) -> Ordering {
        self.sign_of_difference(other).cmp(&0)
    }
}

impl PartialOrd for GoldenExact {
    fn partial_cmp(&self, other: &GoldenExact) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for GoldenExact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = (self.a, self.b);
        if b.is_zero() {
            return write!(formatter, "{a}");
        }
        let text = b.to_string();
        let (sign, magnitude) = text.strip_prefix('-').map_or(("+", text.as_str()), |rest| ("-", rest));
        let magnitude = if magnitude == "1" { String::new() } else { format!("{magnitude} ") };
        match (a.is_zero(), sign) {
            (false, _) => write!(formatter, "{a} {sign} {magnitude}φ"),
            (true, "-") => write!(formatter, "-{magnitude}φ"),
            _ => write!(formatter, "{magnitude}φ"),
        }
    }
}
