//! The golden recursion v → φv on floats and on integer windings, and the generation of a row of windings.
//!
//! On windings it is R(n) = floor(φn), and its approximate inverse floor(n/φ) = R(n) - n. A rounded product is wrong at
//! Fibonacci numbers (in f64 first at n = 102334155), so both are computed in integers: of a single number by
//! R(n) = floor((n + isqrt(5n²)) / 2), and in a batch by the first 128 bits of 1/φ. With m = |n| the product errs by less than
//! m · 2^-128, and m/φ is never closer than about 1/(√5 m) to an integer, so the result is exact for every i64. Below 0,
//! R(n) = -R(-n) - 1.
//!
//! Tests: `tests/srt/recursion.rs`. On elements of Z\[φ\] the recursion is a method of
//! [`GoldenTensor`](super::GoldenTensor::recursion).

use std::sync::LazyLock;

use super::checked::Checked;
use super::{INVERSE_PHI, PHI};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor};
use crate::types::DType;

const RECURSION: &str = "golden_recursion";
const WINDINGS: &str = "the golden recursion of windings";

/// The largest winding: beyond, φn soon leaves i64.
const MAX_WINDING: u64 = 5_700_000_000_000_000_000;

/// The first 128 bits of 1/φ.
const INVERSE_PHI_BITS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xf39c_c060_5ced_c834];

fn check_float(values: &Tensor) -> Result<()> {
    if !matches!(values.dtype(), DType::F32 | DType::F64) {
        let (wanted, found) = ("f32 or f64".to_owned(), values.dtype().to_string());
        return Err(Error::DTypeMismatch { operation: RECURSION, wanted, found });
    }
    Ok(())
}

/// Returns φ · v of each element of f32 or f64.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for another dtype; those of an elementwise operation.
pub fn golden_recursion(values: &Tensor) -> Result<Tensor> {
    check_float(values)?;
    values.mul(PHI)
}

/// Returns v · (1/φ) of each element of f32 or f64.
///
/// # Errors
///
/// As [`golden_recursion`].
pub fn golden_recursion_inverse(values: &Tensor) -> Result<Tensor> {
    check_float(values)?;
    values.mul(INVERSE_PHI)
}

fn check_winding(n: i64) -> Result<()> {
    if n.unsigned_abs() > MAX_WINDING {
        let wanted = format!("windings of magnitude at most {MAX_WINDING}");
        return Err(Error::overflow(WINDINGS, n, wanted));
    }
    Ok(())
}

/// Returns R(n) = floor(φn).
///
/// ```
/// use selvedge::srt::winding_recursion;
/// // In f64, φ · 102334155 rounds up to 165580141.
/// assert_eq!(winding_recursion(102_334_155)?, 165_580_140);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Overflow`] for |n| above 5.7e18.
pub fn winding_recursion(n: i64) -> Result<i64> {
    check_winding(n)?;
    let magnitude = u128::from(n.unsigned_abs());
    // Within i64 by the check.
    let above = ((magnitude + (5 * magnitude * magnitude).isqrt()) / 2) as i64;
    Ok(if n < 0 { -above - 1 } else { above })
}

/// Returns floor(n/φ) = R(n) - n.
///
/// # Errors
///
/// As [`winding_recursion`].
pub fn winding_recursion_inverse(n: i64) -> Result<i64> {
    Ok(winding_recursion(n)? - n)
}

/// Returns floor(n/φ) with the flag of overflow.
fn inverse(n: Expr<'_>) -> [Expr<'_>; 2] {
    let magnitude = n.abs().cast(DType::U64);
    let [high, low] = INVERSE_PHI_BITS;
    let middle = magnitude * high;
    let sum = middle + magnitude.mul_high(low);
    let quotient = magnitude.mul_high(high) + sum.lt(middle).cast(DType::U64);
    let quotient = quotient.cast(DType::I64);
    [n.lt(0).choose(-quotient - 1, quotient), magnitude.gt(MAX_WINDING)]
}

fn check_windings(operation: &'static str, n: &Tensor) -> Result<()> {
    if n.dtype() != DType::I64 {
        let (wanted, found) = ("windings of i64".to_owned(), n.dtype().to_string());
        return Err(Error::DTypeMismatch { operation, wanted, found });
    }
    Ok(())
}

/// Returns [`winding_recursion`] of each element of i64.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for another dtype; those of a fused run.
pub fn winding_recursion_batch(n: &Tensor) -> Result<Checked> {
    static EXPRESSION: LazyLock<Fused<1, 2>> = LazyLock::new(|| {
        Fused::with_outputs(|[n]| {
            let [inverse, overflow] = inverse(n);
            [n + inverse, overflow]
        })
    });
    check_windings(WINDINGS, n)?;
    let [values, overflow] = EXPRESSION.run_all([n])?;
    Ok(Checked::new(WINDINGS, values, overflow))
}

/// Returns [`winding_recursion_inverse`] of each element of i64.
///
/// # Errors
///
/// As [`winding_recursion_batch`].
pub fn winding_recursion_inverse_batch(n: &Tensor) -> Result<Checked> {
    static EXPRESSION: LazyLock<Fused<1, 2>> = LazyLock::new(|| Fused::with_outputs(|[n]| inverse(n)));
    check_windings(WINDINGS, n)?;
    let [values, overflow] = EXPRESSION.run_all([n])?;
    Ok(Checked::new(WINDINGS, values, overflow))
}

/// The least integers that φ⁰, φ¹, … do not exceed. φᵏ = L(k) - (-1/φ)ᵏ is just below L(k) for an even k, and just above for
/// an odd one.
fn thresholds() -> impl Iterator<Item = u64> {
    let lucas = (0..).scan((2u64, 1u64), |pair, k| {
        let (at, above) = *pair;
        *pair = (above, at.checked_add(above)?);
        Some(if k == 0 { 1 } else { at + k % 2 })
    });
    // The largest magnitude of i64 is 2^63.
    lucas.take_while(|threshold| *threshold <= 1 << 63)
}

/// Returns the generation of a row of windings: 0 for zeros, otherwise 1 + max {k : φᵏ ≤ max |nᵢ|}.
///
/// ```
/// use selvedge::srt::generation;
/// assert_eq!([0, 1, 2, 3, 4, 5, 12].map(|n| generation([0, -n, 1.min(n), 0])), [0, 1, 2, 3, 3, 4, 6]);
/// ```
pub fn generation(row: [i64; 4]) -> i32 {
    let largest = row.map(i64::unsigned_abs).into_iter().max().unwrap_or(0);
    thresholds().take_while(|threshold| *threshold <= largest).count() as i32
}

/// 1 where a magnitude reaches a threshold.
fn reached<'g>(largest: Expr<'g>, threshold: Expr<'g>) -> Expr<'g> {
    largest.ge(threshold).cast(DType::I32)
}

/// Returns the [`generation`] of each row of 4 along the last axis, as i32.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for a dtype other than i32 and i64, [`Error::InvalidArgument`] for rows of another length; those
/// of a fused run.
pub fn generation_batch(rows: &Tensor) -> Result<Tensor> {
    const OPERATION: &str = "generation";
    static EXPRESSION: LazyLock<Fused<4>> = LazyLock::new(|| {
        Fused::new(|row| {
            // The least i64 becomes 2^63 as u64.
            let [a, b, c, d] = row.map(|n| n.cast(DType::I64).abs().cast(DType::U64));
            let largest = a.maximum(b).maximum(c.maximum(d));
            // The thresholds by the recurrence: as literals they would be too many parameters.
            let (zero, unity) = (largest.bit_and(0u64), largest.bit_and(0u64) + 1u64);
            let (mut lucas, mut above) = (unity + unity, unity);
            let mut count = reached(largest, unity);
            for k in 1..thresholds().count() {
                (lucas, above) = (above, lucas + above);
                count = count + reached(largest, lucas + if k % 2 == 1 { unity } else { zero });
            }
            count
        })
    });
    if !matches!(rows.dtype(), DType::I32 | DType::I64) {
        let (wanted, found) = ("windings of i32 or i64".to_owned(), rows.dtype().to_string());
        return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
    }
    if rows.shape().last() != Some(&4) {
        return Err(Error::invalid(OPERATION, format!("shape {}", rows.shape()), "rows of 4"));
    }
    let column = |at: isize| rows.select(-1, at);
    let columns = [column(0)?, column(1)?, column(2)?, column(3)?];
    EXPRESSION.run(columns.each_ref())
}
