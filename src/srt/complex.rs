//! Complex division and phases of complex numbers.
//!
//! | function | value |
//! |---|---|
//! | [`complex_divide`], [`complex_reciprocal`] | the tensor's own, scaled so that nothing overflows, C99 Annex G at 0 |
//! | [`rotate_phase`], [`golden_rotate`] | z e^{iθ}; θ = π/φ |
//! | [`normalize_phase`] | z / \|z\|, and 0 at 0 |
//! | [`quantize_phase_pi`] | \|z\| e^{iα}, α the multiple of π/k nearest to arg z |
//! | [`phi_weighted_sum`] | Σ zᵢ φ⁻ⁱ |
//!
//! All take c64 and c128 and have the same bits on the CPU and CUDA devices.
//!
//! Tests: `tests/srt/complex.rs`.

use std::f64::consts::PI;
use std::sync::LazyLock;

use num_complex::Complex;

use super::operands::{COMPLEX, check_dtype, check_dtypes, check_shapes, joined, last_size, parts};
use super::{LN_PHI, PHI};
use crate::error::{Error, Result};
use crate::tensor::{Fused, Tensor};
use crate::types::DType;

/// Of z and θ; c64 is computed in f64.
static ROTATED: LazyLock<Fused<2>> = LazyLock::new(|| {
    Fused::new(|[z, theta]| {
        let angle = theta.cast(DType::F64) * Complex::new(0.0, 1.0);
        (z.cast(DType::C128) * angle.exp()).cast(z.dtype())
    })
});
/// Of z and k.
static QUANTIZED: LazyLock<Fused<2>> = LazyLock::new(|| {
    Fused::new(|[z, k]| {
        let (wide, k) = (z.cast(DType::C128), k.real().cast(DType::F64));
        let steps = wide.angle() * k / PI;
        // Half a step goes away from 0. The sum of `steps` and a half would round up below a half.
        let whole = steps.trunc();
        let is_half = (steps - whole).abs().ge(0.5);
        let rounded = is_half.choose(whole + steps.sign(), whole);
        let angle = rounded * PI / k * Complex::new(0.0, 1.0);
        (wide.abs() * angle.exp()).cast(z.dtype())
    })
});
/// Of parts with the index along the last axis but one: parts times φ^-i.
static PHI_TERMS: LazyLock<Fused<1>> = LazyLock::new(|| {
    Fused::new(|[part]| {
        // ln φ in two parts: i · HEAD is exact up to the i at which φ^-i is 0.
        const HEAD: f64 = f64::from_bits(LN_PHI.to_bits() & !0x1fff);
        let i = part.graph().index(-2).minimum(4000).cast(DType::F64);
        let weight = (i * -HEAD).exp() * (1.0 - i * (LN_PHI - HEAD));
        part.cast(DType::F64) * weight
    })
});

/// Returns a / b, as `/` of tensors does: a number other than 0 and NaN divided by 0 is infinite.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than c64 and c128, or two of them; [`Error::InvalidArgument`] for two shapes;
/// [`Error::DeviceMismatch`].
pub fn complex_divide(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    check_dtypes("complex_divide", COMPLEX, &[a, b])?;
    check_shapes("complex_divide", a, b)?;
    a.div(b)
}

/// Returns 1 / z, as [`Tensor::reciprocal`] does.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than c64 and c128.
pub fn complex_reciprocal(z: &Tensor) -> Result<Tensor> {
    check_dtypes("complex_reciprocal", COMPLEX, &[z])?;
    z.reciprocal()
}

/// Returns z e^{iθ} with a tensor of angles, f32 beside c64 and f64 beside c128, of z's shape.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for other dtypes; [`Error::InvalidArgument`] for two shapes; [`Error::DeviceMismatch`].
pub fn rotate_phases(z: &Tensor, theta: &Tensor) -> Result<Tensor> {
    const OPERATION: &str = "rotate_phases";
    check_dtypes(OPERATION, COMPLEX, &[z])?;
    check_dtype(OPERATION, z.dtype().part(), theta)?;
    check_shapes(OPERATION, z, theta)?;
    ROTATED.run([z, theta])
}

/// Returns z e^{iθ}. Cosine and sine are computed once, on the host.
///
/// ```
/// use num_complex::Complex;
/// use selvedge::srt::rotate_phase;
/// use selvedge::tensor::{Device, Tensor};
/// let z = Tensor::new([Complex::new(1.0f64, 2.0)], &Device::cpu())?;
/// let rotated = rotate_phase(&z, std::f64::consts::FRAC_PI_2)?.to_vec::<Complex<f64>>()?;
/// assert!((rotated[0] - Complex::new(-2.0, 1.0)).norm() < 1e-15);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than c64 and c128. An infinite angle gives NaN.
pub fn rotate_phase(z: &Tensor, theta: f64) -> Result<Tensor> {
    check_dtypes("rotate_phase", COMPLEX, &[z])?;
    z.mul(Complex::new(theta.cos(), theta.sin()))
}

/// Returns z e^{iπ/φ}.
///
/// # Errors
///
/// As [`rotate_phase`].
pub fn golden_rotate(z: &Tensor) -> Result<Tensor> {
    rotate_phase(z, PI / PHI)
}

/// Returns z / |z|, and 0 where z is 0.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than c64 and c128.
pub fn normalize_phase(z: &Tensor) -> Result<Tensor> {
    check_dtypes("normalize_phase", COMPLEX, &[z])?;
    z.sign()
}

/// Returns |z| e^{iα} where α is the multiple of π/k nearest to arg z, the one farther from 0 if two are. c64 is computed
/// in f64.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than c64 and c128; [`Error::InvalidArgument`] for a k below 1 or above 2²⁴.
pub fn quantize_phase_pi(z: &Tensor, k: i64) -> Result<Tensor> {
    const OPERATION: &str = "quantize_phase_pi";
    check_dtypes(OPERATION, COMPLEX, &[z])?;
    // c64 holds every integer up to this one.
    if !(1..=1 << 24).contains(&k) {
        return Err(Error::invalid(OPERATION, format!("k = {k}"), "1 to 16777216"));
    }
    QUANTIZED.run((z, k))
}

/// Returns the sum of zᵢ φ⁻ⁱ over the last dimension, with i from 0; 0 if it is empty. The sum is in f64.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than c64 and c128; [`Error::InvalidArgument`] for no dimension.
pub fn phi_weighted_sum(z: &Tensor) -> Result<Tensor> {
    const OPERATION: &str = "phi_weighted_sum";
    check_dtypes(OPERATION, COMPLEX, &[z])?;
    last_size(OPERATION, z)?;
    let sums = PHI_TERMS.run([&parts(z)?])?.sum(-2)?;
    joined(&sums.cast(z.dtype().part())?, z.dtype())
}
