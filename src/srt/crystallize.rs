//! The end of a resonance cycle: the H phase, then the nearest points of Z\[φ\].
//!
//! Tests: `tests/srt/phases.rs`.

use super::operands::{REALS, check_dtypes};
use super::{GoldenTensor, h_phase, snap, syntony};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::types::DType;

/// Returns the points a + bφ with |a|, |b| ≤ `bound` nearest to the [`h_phase`] of a flux, and the [`syntony`] of these points'
/// values, in f64. A flux of f32 is snapped in f64.
///
/// ```
/// use selvedge::srt::harmonize_and_crystallize;
/// use selvedge::tensor::{Device, Tensor};
/// let flux = Tensor::new([1.0f64, 0.5], &Device::cpu())?;
/// let n2 = Tensor::new([0.0f64, 1.0], &Device::cpu())?;
/// let (points, s) = harmonize_and_crystallize(&flux, &n2, 0.0, 10)?;
/// assert_eq!(points.a().to_vec::<i64>()?, [1, -6]);
/// assert!(s.item::<f64>()? > 0.8);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// As [`h_phase`] and [`snap`]; [`DTypeMismatch`](crate::Error::DTypeMismatch) too for a complex flux.
pub fn harmonize_and_crystallize(
    flux: &Tensor,
    n2: &Tensor,
    s: f64,
    bound: i64,
) -> Result<(GoldenTensor, Tensor)> {
    check_dtypes("harmonize_and_crystallize", REALS, &[flux, n2])?;
    let points = snap(&h_phase(flux, n2, s)?.cast(DType::F64)?, bound)?;
    let syntony = syntony(&points.values()?, &n2.cast(DType::F64)?)?;
    Ok((points, syntony))
}
