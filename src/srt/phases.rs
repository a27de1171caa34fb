//! The differentiation phase D and the harmonization phase H of a resonance cycle.
//!
//! With the squared mode norms n², the syntony S, a standard normal g and the noise scale σ:
//!
//! - D: vᵢ (1 + (1 - S) √n²ᵢ / φ²) + σ (1 - S) exp(-n²ᵢ / (4φ)) gᵢ
//! - H: vᵢ (1 - (S/φ) (1 - exp(-n²ᵢ/φ)))
//!
//! v is a vector or rows of vectors, f32, f64, c64 or c128; a complex number has the real factor in both parts. n² has the
//! length of the last dimension. S is a number, or in the functions of batches a tensor with a number for each row. Both use
//! the same expression, which computes in f64 and rounds once, so a row of a batch has the bits of the single vector. S
//! outside \[0, 1\] is clamped. D with S = 1 and H with S = 0 return v.
//!
//! Tests: `tests/srt/phases.rs`.

use std::sync::LazyLock;

use super::operands::{
    NUMBERS, check_devices, check_dtype, check_dtypes, check_row, check_shapes, joined, parts,
};
use super::weights::weight;
use super::{INVERSE_PHI, INVERSE_PHI_SQUARED, PHI};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor, TensorOperand};
use crate::types::DType;

/// Returns 1 + (1 - S) √n² / φ².
fn d_factor<'g>(n2: Expr<'g>, s: Expr<'g>) -> Expr<'g> {
    (1.0 - s) * INVERSE_PHI_SQUARED * n2.sqrt() + 1.0
}

/// Returns 1 - (S/φ) (1 - exp(-n²/φ)).
fn h_factor<'g>(n2: Expr<'g>, s: Expr<'g>) -> Expr<'g> {
    1.0 - s * INVERSE_PHI * (1.0 - weight(n2))
}

/// Returns S in f64, clamped to 0 to 1; NaN stays.
fn clamped(s: Expr<'_>) -> Expr<'_> {
    s.cast(DType::F64).clamp(0.0, 1.0)
}

/// Of v, n², g, S and σ.
static D_PHASE: LazyLock<Fused<5>> = LazyLock::new(|| {
    Fused::new(|[v, n2, g, s, sigma]| {
        let [v64, n64, g64, sigma] = [v, n2, g, sigma].map(|x| x.cast(DType::F64));
        let s = clamped(s);
        let noise = sigma * (1.0 - s) * (n64 * (-0.25 / PHI)).exp() * g64;
        (v64 * d_factor(n64, s) + noise).cast(v.dtype())
    })
});
/// Of v, n² and S.
static H_PHASE: LazyLock<Fused<3>> = LazyLock::new(|| {
    Fused::new(|[v, n2, s]| (v.cast(DType::F64) * h_factor(n2.cast(DType::F64), clamped(s))).cast(v.dtype()))
});
static CYCLE: LazyLock<Fused<3>> = LazyLock::new(|| {
    Fused::new(|[v, n2, s]| {
        let (n64, s) = (n2.cast(DType::F64), clamped(s));
        (v.cast(DType::F64) * (d_factor(n64, s) * h_factor(n64, s))).cast(v.dtype())
    })
});

/// The tensors of a phase as real parts, after checks.
struct Operands {
    v: Tensor,
    n2: Tensor,
    dtype: DType,
}

impl Operands {
    fn new(operation: &'static str, v: &Tensor, n2: &Tensor) -> Result<Operands> {
        check_dtypes(operation, NUMBERS, &[v])?;
        check_dtype(operation, v.dtype().part(), n2)?;
        check_row(operation, "n2", n2, v)?;
        Ok(Operands { v: parts(v)?, n2: n2.unsqueeze(-1)?, dtype: v.dtype() })
    }

    /// The noise, which has v's shape and dtype.
    fn noise(operation: &'static str, v: &Tensor, g: &Tensor) -> Result<Tensor> {
        check_dtype(operation, v.dtype(), g)?;
        check_shapes(operation, v, g)?;
        parts(g)
    }

    /// A syntony for each row.
    fn syntony(operation: &'static str, v: &Tensor, s: &Tensor) -> Result<Tensor> {
        check_dtype(operation, v.dtype().part(), s)?;
        check_devices(operation, v, s)?;
        let rows = v.shape().split_last().map_or(&[][..], |(_, rows)| rows);
        if s.shape()[..] != *rows {
            let found = format!("S of shape {} for a tensor of shape {}", s.shape(), v.shape());
            return Err(Error::invalid(
                operation,
                found,
                format!("S of shape {rows:?}, a number for each row"),
            ));
        }
        s.unsqueeze(-1)?.unsqueeze(-1)
    }

    fn joined(&self, value: &Tensor) -> Result<Tensor> {
        joined(value, self.dtype)
    }
}

/// Checks a syntony that the caller gives as a number.
fn given(operation: &'static str, s: f64) -> Result<f64> {
    if s.is_nan() {
        Err(Error::invalid(operation, "S = NaN", "a number, which is clamped to 0 to 1"))
    } else {
        Ok(s.clamp(0.0, 1.0))
    }
}

fn check_sigma(operation: &'static str, sigma: f64) -> Result<()> {
    if sigma.is_finite() {
        return Ok(());
    }
    Err(Error::invalid(operation, format!("sigma = {sigma}"), "a finite number"))
}

/// Returns the differentiation phase of v with standard normal noise `g` of v's shape and dtype. A negative n² gives NaN.
///
/// ```
/// use selvedge::srt::resonant_d_phase;
/// use selvedge::tensor::{Device, Tensor};
/// let [v, n2, g] = [[1.0f64, 0.5], [0.0, 1.0], [0.5, -1.0]].map(|row| Tensor::new(row, &Device::cpu()));
/// let flux = resonant_d_phase(&v?, &n2?, &g?, 0.0, 0.1)?;
/// assert_eq!(flux.to_vec::<f64>()?[0], 1.05);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than f32, f64, c64 and c128, and for operands of another precision than v's;
/// [`Error::InvalidArgument`] for a `g` of another shape than v, an `n2` of another length than v's last dimension, an S of NaN and
/// a sigma that is not finite; [`Error::DeviceMismatch`].
pub fn resonant_d_phase(v: &Tensor, n2: &Tensor, g: &Tensor, s: f64, sigma: f64) -> Result<Tensor> {
    const OPERATION: &str = "resonant_d_phase";
    d_phase(OPERATION, v, n2, g, given(OPERATION, s)?.into(), sigma)
}

/// Returns [`resonant_d_phase`] of rows v with a syntony for each row, in the precision of v. NaN in S gives NaN in its row.
///
/// # Errors
///
/// As `resonant_d_phase`; [`Error::InvalidArgument`] too for an S of another shape than v without its last dimension.
pub fn resonant_d_phase_batch(v: &Tensor, n2: &Tensor, g: &Tensor, s: &Tensor, sigma: f64) -> Result<Tensor> {
    const OPERATION: &str = "resonant_d_phase_batch";
    d_phase(OPERATION, v, n2, g, TensorOperand::from(&Operands::syntony(OPERATION, v, s)?), sigma)
}

fn d_phase(
    operation: &'static str,
    v: &Tensor,
    n2: &Tensor,
    g: &Tensor,
    s: TensorOperand<'_>,
    sigma: f64,
) -> Result<Tensor> {
    let operands = Operands::new(operation, v, n2)?;
    let g = Operands::noise(operation, v, g)?;
    check_sigma(operation, sigma)?;
    operands.joined(&D_PHASE.run((&operands.v, &operands.n2, &g, s, sigma))?)
}

/// Returns the harmonization phase of v. The factor lies between 1/φ² and 1, and is 1 where n² = 0.
///
/// # Errors
///
/// As [`resonant_d_phase`].
pub fn h_phase(v: &Tensor, n2: &Tensor, s: f64) -> Result<Tensor> {
    const OPERATION: &str = "h_phase";
    scaled(OPERATION, &H_PHASE, v, n2, given(OPERATION, s)?.into())
}

/// Returns [`h_phase`] of rows v with a syntony for each row, in the precision of v. NaN in S gives NaN in its row.
///
/// # Errors
///
/// As [`resonant_d_phase_batch`].
pub fn h_phase_batch(v: &Tensor, n2: &Tensor, s: &Tensor) -> Result<Tensor> {
    const OPERATION: &str = "h_phase_batch";
    scaled(OPERATION, &H_PHASE, v, n2, TensorOperand::from(&Operands::syntony(OPERATION, v, s)?))
}

/// Returns v times the product of the factors of D without noise and of H.
///
/// # Errors
///
/// As [`resonant_d_phase`].
pub fn phase_cycle(v: &Tensor, n2: &Tensor, s: f64) -> Result<Tensor> {
    const OPERATION: &str = "phase_cycle";
    scaled(OPERATION, &CYCLE, v, n2, given(OPERATION, s)?.into())
}

fn scaled(
    operation: &'static str,
    function: &Fused<3>,
    v: &Tensor,
    n2: &Tensor,
    s: TensorOperand<'_>,
) -> Result<Tensor> {
    let operands = Operands::new(operation, v, n2)?;
    operands.joined(&function.run((&operands.v, &operands.n2, s))?)
}
