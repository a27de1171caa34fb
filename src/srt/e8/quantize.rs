//! The nearest point of E8, by the decoder for the two cosets of D8 of which E8 is the union (J. H. Conway and N. J. A. Sloane,
//! *Sphere Packings, Lattices and Groups*, chapter 20, section 3).
//!
//! ```text
//! d8(x)     f = x rounded to nearest, ties to even; if Σ f is odd, the entry with the largest |x - f| (the first of equals)
//!           moves by one towards x: to f + 1 if x >= f, else to f - 1
//! e8(v)     d8(v) or d8(v - 1/2) + 1/2, by the smaller squared distance to v, the former of equals
//! ```
//!
//! All operations are those of f64, in the order of the entries, on every device.

use super::super::rows::{Row, RowKernel, WIDTH, map};
use crate::error::{Error, Result};
use crate::tensor::Tensor;

const KERNEL: RowKernel =
    RowKernel { operation: "e8_quantize", entries: ["e8_quantize_f32", "e8_quantize_f64"] };

/// The nearest point of D8: integers of even sum.
fn nearest_of_d8(x: &Row) -> Row {
    let mut point = [0.0; WIDTH];
    let (mut largest, mut at, mut is_odd) = (-1.0, 0, false);
    for (k, (entry, x)) in point.iter_mut().zip(x).enumerate() {
        let nearest = x.round_ties_even();
        *entry = nearest;
        let half = nearest * 0.5;
        is_odd ^= half != half.round_ties_even();
        let deviation = (x - nearest).abs();
        if deviation > largest {
            (largest, at) = (deviation, k);
        }
    }
    if is_odd && let (Some(entry), Some(x)) = (point.get_mut(at), x.get(at)) {
        *entry += if *x >= *entry { 1.0 } else { -1.0 };
    }
    point
}

fn squared_distance(one: &Row, other: &Row) -> f64 {
    let mut sum = 0.0;
    for (one, other) in one.iter().zip(other) {
        let difference = one - other;
        sum += difference * difference;
    }
    sum
}

/// `scale` times the nearest point to v / `scale`.
fn quantize(v: &Row, scale: f64) -> Row {
    let x = v.map(|entry| entry / scale);
    if !x.iter().all(|entry| entry.is_finite()) {
        return [f64::NAN; WIDTH];
    }
    let whole = nearest_of_d8(&x);
    let half = nearest_of_d8(&x.map(|entry| entry - 0.5)).map(|entry| entry + 0.5);
    let is_half = squared_distance(&half, &x) < squared_distance(&whole, &x);
    (if is_half { half } else { whole }).map(|entry| entry * scale)
}

/// Returns the point of E8 nearest to each row; the squared distance is at most 1. A row with a NaN or an infinity gives a
/// row of NaN. Entries must be below 2⁵¹ in magnitude: beyond, the point need not be the nearest.
///
/// ```
/// use selvedge::srt::e8_quantize;
/// use selvedge::tensor::{Device, Tensor};
/// let v = Tensor::new([[0.9f64, 0.1, -0.2, 0.3, 0.0, 1.2, 0.4, -0.65]], &Device::cpu())?;
/// assert_eq!(e8_quantize(&v)?.to_vec::<f64>()?, [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, -1.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] unless the last dimension is 8, [`Error::DTypeMismatch`] for a `v` other than f32 and f64.
pub fn e8_quantize(v: &Tensor) -> Result<Tensor> {
    e8_quantize_scaled(v, 1.0)
}

/// Returns the point of the lattice `scale` · E8 nearest to each row: `scale` times the point of E8 nearest to v / `scale`.
///
/// # Errors
///
/// As [`e8_quantize`]; [`Error::InvalidArgument`] unless the scale is positive and finite.
pub fn e8_quantize_scaled(v: &Tensor, scale: f64) -> Result<Tensor> {
    if !scale.is_finite() || scale <= 0.0 {
        return Err(Error::invalid(
            KERNEL.operation,
            format!("scale = {scale}"),
            "a positive, finite number",
        ));
    }
    map(&KERNEL, v, scale, |row| quantize(row, scale))
}
