//! The precision ramp of crystallisation: bounds of snapping that grow by φ, and the dwell times of the two phases.

use super::PHI;
use super::exact::GoldenTensor;
use super::recursion::winding_recursion;
use super::snap::{LARGEST_SNAP_BOUND, snap};
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// A ramp ends at this multiple of φ times its first bound.
const TARGET: i64 = 5;

/// Returns the bounds of a ramp of at most `steps` steps: P ← max(⌈φP⌉, P + 1) from `first` until P ≥ ⌈5φ · first⌉.
///
/// ```
/// use selvedge::srt::precision_ramp;
/// assert_eq!(precision_ramp(100, usize::MAX)?, [100, 162, 263, 426, 690, 1117]);
/// assert_eq!(precision_ramp(100, 2)?, [100, 162, 263]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a first bound outside 0 to 2^20.
pub fn precision_ramp(first: i64, steps: usize) -> Result<Vec<i64>> {
    if !(0..=LARGEST_SNAP_BOUND).contains(&first) {
        return Err(Error::invalid("precision_ramp", format!("P = {first}"), "P from 0 to 2^20"));
    }
    // φ · n is never an integer for n > 0.
    let ceiling = |n: i64| Ok::<i64, Error>(if n == 0 { 0 } else { winding_recursion(n)? + 1 });
    let target = ceiling(TARGET * first)?;
    let (mut bound, mut bounds) = (first, vec![first]);
    while bound < target && bounds.len() <= steps {
        bound = ceiling(bound)?.max(bound + 1);
        bounds.push(bound);
    }
    Ok(bounds)
}

/// Snaps harmonised floats at each bound of a ramp of at most `steps` steps, and returns the bounds with their points.
///
/// Each step snaps the floats themselves: the points of the step before are already on the lattice.
///
/// # Errors
///
/// As [`precision_ramp`] and [`snap`], which refuses bounds above 2^20.
pub fn snap_ramp(values: &Tensor, first: i64, steps: usize) -> Result<Vec<(i64, GoldenTensor)>> {
    let bounds = precision_ramp(first, steps)?;
    bounds.into_iter().map(|bound| Ok((bound, snap(values, bound)?))).collect()
}

/// The dwell times of a cycle, in the unit of their base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DwellTimes {
    /// The time in the D-phase: the base.
    pub d_phase: f64,
    /// The time in the H-phase: base · φ^S.
    pub h_phase: f64,
}

/// Returns the dwell times at a syntony S.
///
/// ```
/// use selvedge::srt::dwell;
/// assert!((dwell(100.0, 0.8584177266443396).h_phase - 151.14670884504525).abs() < 1e-10);
/// ```
pub fn dwell(base: f64, syntony: f64) -> DwellTimes {
    DwellTimes { d_phase: base, h_phase: base * PHI.powf(syntony) }
}
