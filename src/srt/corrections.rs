//! Correction factors 1 ± q/N, their chains, and special and suppression factors, with q = [`Q_DEFICIT`].
//!
//! Factors are computed on the host in f64 and multiplied on the tensor's device, so products of f64 have the same bits
//! everywhere. For f32 tensors each factor is rounded once.
//!
//! Tests: `tests/srt/corrections.rs`.

use std::f64::consts::PI;
use std::ops::Range;

use super::{Q_DEFICIT, phi_pow};
use crate::error::{Error, Result};
use crate::tensor::{Device, Tensor};
use crate::types::DType;

const OPERATION: &str = "a correction";

/// The dimensions N of the table of structures.
const STRUCTURES: [u32; 8] = [248, 240, 120, 78, 36, 27, 24, 14];

/// The coefficients of special corrections.
const SPECIAL_COEFFICIENTS: [f64; 10] =
    [1.0, 0.5, 0.125, 3.0, 4.0, 6.0, 8.0, PI, 1.0 / (6.0 * PI), 1.0 / (4.0 * PI)];

/// Returns q, the deficit.
pub const fn q_deficit() -> f64 {
    Q_DEFICIT
}

/// Returns the dimension N of a structure of the table: 248, 240, 120, 78, 36, 27, 24, 14.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for an index above 7.
pub fn structure_dimension(index: usize) -> Result<u32> {
    let dimension = STRUCTURES.get(index).copied();
    dimension.ok_or_else(|| {
        Error::invalid("structure_dimension", format!("index {index}"), "an index from 0 to 7")
    })
}

fn check_sign(sign: i32) -> Result<()> {
    if sign.unsigned_abs() != 1 {
        return Err(Error::invalid(OPERATION, format!("a sign of {sign}"), "1 or -1"));
    }
    Ok(())
}

/// Returns the factor 1 + sign · q/N.
///
/// ```
/// use selvedge::srt::correction;
/// assert_eq!(correction(248.0, 1)?, 1.0001104643020955);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] for N = 0, and for a sign other than 1 and -1.
pub fn correction(divisor: f64, sign: i32) -> Result<f64> {
    if divisor == 0.0 {
        return Err(Error::invalid(OPERATION, "N = 0", "a divisor that is not 0"));
    }
    Ok(Correction::new(divisor, sign)?.factor())
}

/// A correction of a batch: its divisor N and its sign. N = 0 corrects nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correction {
    divisor: f64,
    sign: i32,
}

impl Correction {
    /// Creates a correction.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a sign other than 1 and -1.
    pub fn new(divisor: f64, sign: i32) -> Result<Correction> {
        check_sign(sign)?;
        Ok(Correction { divisor, sign })
    }

    /// Creates the correction of a structure of the table; see [`structure_dimension`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an index above 7, and for a sign other than 1 and -1.
    pub fn from_structure(index: usize, sign: i32) -> Result<Correction> {
        Correction::new(structure_dimension(index)?.into(), sign)
    }

    /// Returns 1 + sign · q/N, and 1 for N = 0.
    pub fn factor(self) -> f64 {
        if self.divisor == 0.0 { 1.0 } else { 1.0 + f64::from(self.sign) * Q_DEFICIT / self.divisor }
    }
}

fn check_float(values: &Tensor) -> Result<()> {
    if !matches!(values.dtype(), DType::F32 | DType::F64) {
        let (wanted, found) = ("f32 or f64".to_owned(), values.dtype().to_string());
        return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
    }
    Ok(())
}

/// Multiplies each element by its own factor.
fn scaled(values: &Tensor, factors: Vec<f64>) -> Result<Tensor> {
    let factors = Tensor::from_vec(factors, values.shape(), &Device::cpu())?;
    values.mul(&factors.cast(values.dtype())?.to(&values.device())?)
}

/// Returns each element times the factor of its own correction; `corrections` are in row-major order.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for a dtype other than f32 and f64, [`Error::LengthMismatch`] for another number of corrections.
pub fn correct(values: &Tensor, corrections: &[Correction]) -> Result<Tensor> {
    check_float(values)?;
    check_length(values, corrections.len())?;
    scaled(values, corrections.iter().map(|correction| correction.factor()).collect())
}

fn check_length(values: &Tensor, found: usize) -> Result<()> {
    let wanted = values.count();
    if found != wanted {
        return Err(Error::LengthMismatch { operation: OPERATION, wanted, found });
    }
    Ok(())
}

/// Returns v · (1 + q/N₁) · (1 - q/N₂) of each element.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for a dtype other than f32 and f64, [`Error::InvalidArgument`] for a divisor of 0.
pub fn compound_correction(values: &Tensor, first: f64, second: f64) -> Result<Tensor> {
    check_float(values)?;
    values.mul(correction(first, 1)?)?.mul(correction(second, -1)?)
}

/// Returns each element times the factors of its own range of `corrections`, applied from left to right; `ranges` are in
/// row-major order. Corrections with N = 0 are skipped.
///
/// The products of one position of all ranges are one run.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a range that ends beyond the corrections or begins behind its end,
/// [`Error::LengthMismatch`] for another number of ranges, [`Error::DTypeMismatch`] for a dtype other than f32 and f64.
pub fn correct_chain(values: &Tensor, corrections: &[Correction], ranges: &[Range<usize>]) -> Result<Tensor> {
    check_float(values)?;
    check_length(values, ranges.len())?;
    let mut slices = Vec::with_capacity(ranges.len());
    for range in ranges {
        slices.push(corrections.get(range.clone()).ok_or_else(|| {
            let wanted = format!("a range within the {} corrections", corrections.len());
            Error::invalid(OPERATION, format!("range {range:?}"), wanted)
        })?);
    }
    let longest = slices.iter().map(|slice| slice.len()).max().unwrap_or(0);
    // A factor of 1 changes no value.
    let factor = |correction: Option<&Correction>| correction.map_or(1.0, |correction| correction.factor());
    (0..longest).try_fold(values.clone(), |values, position| {
        scaled(&values, slices.iter().map(|slice| factor(slice.get(position))).collect())
    })
}

/// Returns the special factor 1 + sign · c · qᵃ · φᵇ.
///
/// ```
/// use selvedge::srt::special_correction;
/// assert!((special_correction(-1, 4.0, 1, 0)? - 0.8904194123212155).abs() < 1e-15);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a sign other than 1 and -1, a coefficient c that is none of 1, 1/2, 1/8, 3, 4, 6, 8, π,
/// 1/(6π) and 1/(4π), a power a outside 1 to 3, and a power b outside -2 to 5.
pub fn special_correction(sign: i32, coefficient: f64, q_power: i32, phi_power: i32) -> Result<f64> {
    const OPERATION: &str = "special_correction";
    check_sign(sign)?;
    if !SPECIAL_COEFFICIENTS.contains(&coefficient) {
        let wanted = format!("one of {SPECIAL_COEFFICIENTS:?}");
        return Err(Error::invalid(OPERATION, format!("a coefficient of {coefficient}"), wanted));
    }
    if !(1..=3).contains(&q_power) || !(-2..=5).contains(&phi_power) {
        let found = format!("q to the power {q_power} and φ to the power {phi_power}");
        return Err(Error::invalid(OPERATION, found, "powers from 1 to 3 of q, and from -2 to 5 of φ"));
    }
    let power = (1..q_power).fold(Q_DEFICIT, |power, _| power * Q_DEFICIT);
    Ok(1.0 + f64::from(sign) * coefficient * power * phi_pow(phi_power)?)
}

/// Returns the suppression factor 1 / (1 + q φᵏ).
///
/// # Errors
///
/// [`Error::InvalidArgument`] for k outside -2 to 3.
pub fn suppression(k: i32) -> Result<f64> {
    if !(-2..=3).contains(&k) {
        return Err(Error::invalid("suppression", format!("k = {k}"), "k from -2 to 3"));
    }
    Ok(1.0 / (1.0 + Q_DEFICIT * phi_pow(k)?))
}
