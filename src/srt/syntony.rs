//! Syntony, the weight of a state on its low modes, and measures derived from it.
//!
//! - [`syntony`]: S = Σ |vᵢ|² exp(-n²ᵢ/φ) / Σ |vᵢ|², between 0 and 1.
//! - [`operator_syntony`]: 1 - ‖d - h‖ / (‖d - ψ‖ + 1e-10), the form of the theory. The two are different measures.
//!
//! Sums are in f64, in trees that depend on the length alone, so repeated runs and both devices give the same bits. Results
//! are tensors on the operands' device: no call waits for a device.
//!
//! Tests: `tests/srt/syntony.rs`.

use std::sync::LazyLock;

use super::operands::{NUMBERS, REALS, check_dtype, check_dtypes, check_row, check_shapes, parts};
use super::weights::weight;
use crate::error::{Error, Result};
use crate::tensor::{Fused, Tensor};
use crate::types::DType;

/// Values above this are scaled, so that their squares do not overflow.
const LARGE: f64 = 1e150;

/// The smallest sum of squares that counts as a state.
const MIN_TOTAL: f64 = 1e-15;

/// Of the parts, n² and the largest magnitude: |v|² times the weight, and |v|².
static TERMS: LazyLock<Fused<3, 2>> = LazyLock::new(|| {
    Fused::with_outputs(|[v, n2, largest]| {
        let wide = largest.cast(DType::F64);
        let scale = wide.gt(LARGE).choose(wide.reciprocal(), 1.0);
        let scaled = v.cast(DType::F64) * scale;
        let square = scaled * scaled;
        [square * weight(n2), square]
    })
});
/// Of both sums.
static RATIO: LazyLock<Fused<2>> = LazyLock::new(|| {
    Fused::new(|[weighted, total]| total.lt(MIN_TOTAL).choose(0.0, (weighted / total).clamp(0.0, 1.0)))
});
static LOGARITHM: LazyLock<Fused<1>> =
    LazyLock::new(|| Fused::new(|[s]| s.cast(DType::F64).maximum(1e-10).log()));
static SQUARED_DISTANCE: LazyLock<Fused<2>> =
    LazyLock::new(|| Fused::new(|[x, y]| (x.cast(DType::F64) - y.cast(DType::F64)).square()));
static OF_DISTANCES: LazyLock<Fused<2>> = LazyLock::new(|| {
    Fused::new(|[harmonized, changed]| {
        (1.0f64 - harmonized.sqrt() / (changed.sqrt() + 1e-10)).clamp(0.0, 1.0)
    })
});
static WITHOUT_NAN: LazyLock<Fused<1>> =
    LazyLock::new(|| Fused::new(|[s]| s.is_nan().choose(f64::NEG_INFINITY, s)));

/// Returns the syntony of a vector v, or of each row of v, in the precision of v. `n2` has the squared mode norm for each
/// position of the last dimension. A state whose squares add up to less than 1e-15, and an empty one, has syntony 0. NaN in
/// v gives NaN.
///
/// ```
/// use selvedge::srt::syntony;
/// use selvedge::tensor::{Device, Tensor};
/// let v = Tensor::new([[1.0f64, 0.5, -0.25, 0.125], [0.0, 0.0, 1.0, 0.0]], &Device::cpu())?;
/// let n2 = Tensor::new([0.0f64, 1.0, 4.0, 9.0], &Device::cpu())?;
/// let s = syntony(&v, &n2)?.to_vec::<f64>()?;
/// assert!((s[0] - 0.8584177266443396).abs() < 1e-14);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than f32, f64, c64 and c128, and for an `n2` of another precision;
/// [`Error::InvalidArgument`] for an `n2` of another length than the last dimension; [`Error::DeviceMismatch`].
pub fn syntony(v: &Tensor, n2: &Tensor) -> Result<Tensor> {
    const OPERATION: &str = "syntony";
    check_dtypes(OPERATION, NUMBERS, &[v])?;
    let part = v.dtype().part();
    check_dtype(OPERATION, part, n2)?;
    check_row(OPERATION, "n2", n2, v)?;
    let (rows, axes) = (parts(v)?, [-2, -1]);
    if v.count() == 0 {
        return rows.sum(&axes)?.cast(part);
    }
    let n2 = n2.unsqueeze(-1)?;
    let [weighted, total] = if part == DType::F64 {
        TERMS.run_all((&rows, &n2, &rows.norm_keepdim(f64::INFINITY, &axes)?))?
    } else {
        // No square of an f32 overflows in f64.
        TERMS.run_all((&rows, &n2, 1.0))?
    };
    RATIO.run([&weighted.sum(&axes)?, &total.sum(&axes)?])?.cast(part)
}

/// The combination of several syntonies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SyntonyAggregate {
    /// The arithmetic mean.
    #[default]
    Mean,
    /// The smallest.
    Minimum,
    /// The geometric mean, with 1e-10 in place of smaller syntonies.
    Geometric,
}

/// Returns one number of all syntonies: 0.5 if there are none, NaN if one is NaN.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than f32 and f64.
pub fn aggregate_syntony(s: &Tensor, aggregate: SyntonyAggregate) -> Result<Tensor> {
    check_dtypes("aggregate_syntony", REALS, &[s])?;
    if s.count() == 0 {
        return Tensor::full(&[], 0.5, s.dtype(), &s.device());
    }
    match aggregate {
        SyntonyAggregate::Mean => s.cast(DType::F64)?.mean_all()?,
        SyntonyAggregate::Minimum => s.min_all()?,
        SyntonyAggregate::Geometric => LOGARITHM.run([s])?.mean_all()?.exp()?,
    }
    .cast(s.dtype())
}

/// Returns 1 - ‖d - h‖ / (‖d - ψ‖ + 1e-10), clamped to 0 to 1, for a state ψ, d = D\[ψ\] and h = H\[d\]. No change at
/// all gives 1.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than f32, f64, c64 and c128, or several; [`Error::InvalidArgument`] for several
/// shapes; [`Error::DeviceMismatch`].
pub fn operator_syntony(psi: &Tensor, d: &Tensor, h: &Tensor) -> Result<Tensor> {
    const OPERATION: &str = "operator_syntony";
    check_dtypes(OPERATION, NUMBERS, &[psi, d, h])?;
    check_shapes(OPERATION, psi, d)?;
    check_shapes(OPERATION, d, h)?;
    let [psi_parts, d_parts, h_parts] = [parts(psi)?, parts(d)?, parts(h)?];
    let squared = |x: &Tensor, y: &Tensor| SQUARED_DISTANCE.run([x, y])?.sum_all();
    let (harmonized, changed) = (squared(&d_parts, &h_parts)?, squared(&d_parts, &psi_parts)?);
    OF_DISTANCES.run([&harmonized, &changed])?.cast(psi.dtype().part())
}

/// Returns the index of the largest syntony as i64, and its value: the lowest index of equal ones. NaN is ignored; if all are
/// NaN, the result is index 0 and NaN.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than f32 and f64; [`Error::InvalidArgument`] for a tensor without elements, and
/// for one that is not a vector.
pub fn argmax_syntony(s: &Tensor) -> Result<(Tensor, Tensor)> {
    const OPERATION: &str = "argmax_syntony";
    check_dtypes(OPERATION, REALS, &[s])?;
    if s.rank() != 1 || s.count() == 0 {
        let found = format!("a tensor of shape {}", s.shape());
        return Err(Error::invalid(OPERATION, found, "a vector of at least one syntony"));
    }
    let index = WITHOUT_NAN.run([s])?.argmax_all()?;
    let value = s.take(&index)?;
    Ok((index, value))
}
