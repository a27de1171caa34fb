//! Integer powers of φ.

use super::PHI;
use super::fibonacci::pair;
use crate::error::{Error, Result};

/// The largest power whose Fibonacci coefficients are exact in f64.
const EXACT: u32 = 78;
/// The largest exponents whose powers, and their reciprocals, are finite and not 0.
const MAX_EXPONENT: u32 = 1474;
const LARGEST_F32: u32 = 184;

/// Returns φⁿ.
///
/// F(n-1) + F(n) φ with exact Fibonacci numbers up to n = 78, a power of [`PHI`] beyond, and 1 / φ^(-n) below 0. (The
/// coefficients of a negative power cancel: F(41) - F(40) φ is exactly 0 in f64.)
///
/// ```
/// use selvedge::srt::phi_pow;
/// assert_eq!(phi_pow(10)?, 122.99186938124421);
/// assert!(phi_pow(1475).is_err());
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] for |n| above 1474.
pub fn phi_pow(n: i32) -> Result<f64> {
    check(n, MAX_EXPONENT)?;
    let above = match n.unsigned_abs() {
        0 => 1.0,
        n @ 1..=EXACT => {
            let (before, at) = pair(n - 1);
            before as f64 + at as f64 * PHI
        }
        n => PHI.powi(n as i32),
    };
    Ok(if n < 0 { 1.0 / above } else { above })
}

/// Returns [`phi_pow`] rounded to f32.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for |n| above 184.
pub fn phi_pow_f32(n: i32) -> Result<f32> {
    check(n, LARGEST_F32)?;
    Ok(phi_pow(n)? as f32)
}

fn check(n: i32, largest: u32) -> Result<()> {
    if n.unsigned_abs() > largest {
        return Err(Error::invalid("phi_pow", format!("n = {n}"), format!("n from -{largest} to {largest}")));
    }
    Ok(())
}
