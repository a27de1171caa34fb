//! Snapping: the point a + bφ of Z\[φ\] with |a|, |b| ≤ P that is nearest to a number.
//!
//! Z\[φ\] is dense, so the bound P is the precision. For b = 0, 1, -1, 2, -2, …, P, -P a candidate is, with every step rounded
//! to f64:
//!
//! ```text
//! t = b · φ      a = clamp(rint(v - t), -P, P)      error = |(a + t) - v|
//! ```
//!
//! A candidate replaces the best one only if its error is less, so ties go to the smaller |b|, then to the positive b. NaN and
//! infinities give (0, 0). The CPU and `csrc/kernels/srt.cu` do the same steps and give the same pairs.
//!
//! Tests: `tests/srt/snap.rs`, `tests/fake/emulated/srt.rs`.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::PHI;
use super::exact::{GoldenInteger, GoldenTensor, value};
use super::operands::check_shapes;
use crate::driver::LaunchConfig;
use crate::error::{Error, Result};
use crate::images::{self, Entry};
use crate::tensor::kernel::{self, Output};
use crate::tensor::{Fused, Tensor};
use crate::threads::{run_on_threads, thread_count};
use crate::types::DType;

const OPERATION: &str = "snap";
/// The family of kernels, and the kernel in it.
const FAMILY: &str = "srt";
const SNAP: &str = "srt_snap";

/// The largest bound.
pub const LARGEST_SNAP_BOUND: i64 = 1 << 20;

/// Candidates that a thread of the CPU computes at a time.
const CANDIDATES_OF_A_CHUNK: usize = 1 << 16;

/// A number to which every f64 below 2^51 is added and from which it comes back as the nearest integer, ties to even.
const ROUNDING: f64 = 6_755_399_441_055_744.0;

fn check_bound(bound: i64) -> Result<i32> {
    if !(0..=LARGEST_SNAP_BOUND).contains(&bound) {
        return Err(Error::invalid(OPERATION, format!("a bound of {bound}"), "a bound from 0 to 2^20"));
    }
    Ok(bound as i32)
}

/// The steps of the module documentation. The clamp comes before the rounding, which leaves the bounds as they are.
fn nearest(v: f64, bound: i32) -> (i64, i64) {
    if !v.is_finite() {
        return (0, 0);
    }
    let limit = f64::from(bound);
    let candidate = |t: f64| {
        let a = (v - t).clamp(-limit, limit) + ROUNDING - ROUNDING;
        (a, ((a + t) - v).abs())
    };
    let (mut best, mut best_error) = candidate(0.0);
    let mut best_b = 0;
    for b in 1..=bound {
        let t = f64::from(b) * PHI;
        for (t, b) in [(t, b), (-t, -b)] {
            let (a, error) = candidate(t);
            if error < best_error {
                (best, best_error, best_b) = (a, error, b);
            }
        }
    }
    (best as i64, best_b.into())
}

impl GoldenInteger {
    /// Returns the nearest a + bφ with |a|, |b| ≤ `bound`; see [`snap`].
    ///
    /// ```
    /// use selvedge::srt::GoldenInteger;
    /// assert_eq!(GoldenInteger::snap(0.5, 100)?, (-27, 17).into());
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a bound outside 0 to 2^20.
    pub fn snap(v: f64, bound: i64) -> Result<GoldenInteger> {
        Ok(nearest(v, check_bound(bound)?).into())
    }
}

/// Returns the nearest a + bφ with |a|, |b| ≤ `bound` of each element of f64.
///
/// Time is proportional to the bound. The distance for |v| ≤ 3 is at most 0.0451 for a bound of 10, and 0.00658 for 100.
///
/// ```
/// use selvedge::srt::{GoldenInteger, snap};
/// use selvedge::tensor::{Device, Tensor};
/// let v = Tensor::new([0.5f64, -1.25, 1e6, f64::NAN], &Device::cpu())?;
/// let wanted = [(-6, 4), (2, -2), (10, 10), (0, 0)].map(GoldenInteger::from);
/// assert_eq!(snap(&v, 10)?.to_vec()?, wanted);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a bound outside 0 to 2^20, [`Error::DTypeMismatch`] for another dtype; those of a launch.
pub fn snap(values: &Tensor, bound: i64) -> Result<GoldenTensor> {
    let bound = check_bound(bound)?;
    if values.dtype() != DType::F64 {
        let (wanted, found) = ("f64".to_owned(), values.dtype().to_string());
        return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
    }
    let (values, n) = (values.contiguous()?, values.count());
    let output = || Output::new(&values.device(), DType::I64, values.shape());
    let (mut a, mut b) = (output()?, output()?);
    if n > 0 {
        kernel::run(
            OPERATION,
            [&values],
            [&mut a, &mut b],
            |[values], [mut a, mut b]| {
                snap_slices(values.as_slice()?, a.as_slice_mut()?, b.as_slice_mut()?, bound);
                Ok(())
            },
            |stream, [values], [mut a, mut b]| {
                let function = images::kernel(&stream.device(), FAMILY, Entry::Name(SNAP))?;
                let arguments = (
                    values.as_slice::<f64>()?,
                    a.as_slice_mut::<i64>()?,
                    b.as_slice_mut::<i64>()?,
                    n as u64,
                    bound,
                );
                // SAFETY: the kernel reads n elements of the first slice and writes n of each of the others.
                unsafe { function.launch(stream, LaunchConfig::for_elements(n), arguments) }
            },
        )?;
    }
    GoldenTensor::new(a.into_tensor(), b.into_tensor())
}

/// Snaps on the CPU's threads, which take chunks one after another.
fn snap_slices(values: &[f64], a: &mut [i64], b: &mut [i64], bound: i32) {
    let length = (CANDIDATES_OF_A_CHUNK / (2 * bound as usize + 1)).max(1);
    let chunks: Vec<_> = values.chunks(length).zip(a.chunks_mut(length).zip(b.chunks_mut(length))).collect();
    let threads = thread_count().min(chunks.len());
    let chunks: Vec<_> = chunks.into_iter().map(|chunk| Mutex::new(Some(chunk))).collect();
    let next = AtomicUsize::new(0);
    run_on_threads(threads, &|| {
        while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Some((values, (a, b))) = chunk.lock().unwrap_or_else(PoisonError::into_inner).take() else {
                continue;
            };
            for ((v, a), b) in values.iter().zip(a).zip(b) {
                (*a, *b) = nearest(*v, bound);
            }
        }
    });
}

/// Returns the residuals v - (a + bφ) in f64.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for values other than f64, [`Error::InvalidArgument`] for two shapes, [`Error::DeviceMismatch`];
/// those of a fused run.
pub fn snap_residual(values: &Tensor, points: &GoldenTensor) -> Result<Tensor> {
    static EXPRESSION: LazyLock<Fused<3>> = LazyLock::new(|| Fused::new(|[v, a, b]| v - value(a, b)));
    if values.dtype() != DType::F64 {
        let (wanted, found) = ("f64".to_owned(), values.dtype().to_string());
        return Err(Error::DTypeMismatch { operation: "snap_residual", wanted, found });
    }
    check_shapes("snap_residual", values, points.a())?;
    EXPRESSION.run([values, points.a(), points.b()])
}

/// Returns the distance of values from points: the square root of the sum of their squared residuals, without dimensions.
///
/// # Errors
///
/// As [`snap_residual`], and those of a reduction.
pub fn snap_distance(values: &Tensor, points: &GoldenTensor) -> Result<Tensor> {
    snap_residual(values, points)?.square()?.sum_all()?.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::entries;

    #[test]
    fn kernels_are_those_that_the_list_of_images_declares() {
        assert_eq!(entries::declared(FAMILY, "sm_60"), [SNAP]);
    }
}
