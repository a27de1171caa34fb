//! Gaussian weights of the golden ratio, and the sums and norms with them.
//!
//! | function | value |
//! |---|---|
//! | [`golden_weight`] | exp(-s/φ); of a complex number z, s = \|z\|² |
//! | [`golden_weight_of_rows`] | exp(-\|n\|²/φ) of rows of 4 or 8 |
//! | [`golden_inner`] | Σ aᵢ bᵢ exp(-i²/φ) |
//! | [`golden_normalize`] | aᵢ exp(-i/φ) / √(Z + 1e-10), Z = Σ aᵢ² exp(-2i/φ) |
//!
//! Weights are computed in f64 and the result is rounded once, for f32 too. Sums are in f64 and have the same bits on the
//! CPU and CUDA devices. Indices count from 0 along the last dimension.
//!
//! Tests: `tests/srt/weights.rs`.

use std::sync::LazyLock;

use super::INVERSE_PHI;
use super::operands::{NUMBERS, REALS, check_dtypes, check_shapes, last_size};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor};
use crate::types::DType;

/// Returns exp(-s/φ) in f64.
pub(super) fn weight(s: Expr<'_>) -> Expr<'_> {
    (s.cast(DType::F64) * -INVERSE_PHI).exp()
}

/// Returns the index along the last axis as f64.
fn index(x: Expr<'_>) -> Expr<'_> {
    x.graph().index(-1).cast(DType::F64)
}

static WEIGHT: LazyLock<Fused<1>> = LazyLock::new(|| Fused::new(|[s]| weight(s).cast(s.dtype())));
static COMPLEX_WEIGHT: LazyLock<Fused<1>> = LazyLock::new(|| {
    Fused::new(|[z]| {
        let [re, im] = [z.real(), z.imag()].map(|part| part.cast(DType::F64));
        weight(im.fma(im, re * re)).cast(z.real().dtype())
    })
});
/// Squares of integers in i64, of floats in f64.
static SQUARE: LazyLock<Fused<1>> = LazyLock::new(|| {
    Fused::new(|[n]| {
        let wide = n.cast(if n.dtype().is_integer() { DType::I64 } else { DType::F64 });
        wide * wide
    })
});
static WEIGHT_OF_SUM: LazyLock<Fused<1>> = LazyLock::new(|| Fused::new(|[s]| weight(s)));
static INNER_TERM: LazyLock<Fused<2>> = LazyLock::new(|| {
    Fused::new(|[a, b]| {
        let [a64, b64] = [a, b].map(|factor| factor.cast(DType::F64));
        a64 * b64 * weight(index(a) * index(a))
    })
});
static SQUARE_TERM: LazyLock<Fused<1>> = LazyLock::new(|| {
    Fused::new(|[a]| {
        let a64 = a.cast(DType::F64);
        a64 * a64 * weight(index(a) * 2.0)
    })
});
static NORMALIZED: LazyLock<Fused<2>> = LazyLock::new(|| {
    Fused::new(|[a, z]| {
        let scaled = a.cast(DType::F64) * weight(index(a));
        (scaled / (z + 1e-10).sqrt()).cast(a.dtype())
    })
});

/// Returns exp(-s/φ) of each s; of a complex tensor, exp(-|z|²/φ), which is real. A large s gives 0, and below s = -1148.4
/// the weight is infinite in f64.
///
/// ```
/// use selvedge::srt::golden_weight;
/// use selvedge::tensor::{Device, Tensor};
/// let s = Tensor::new([0.0f64, 1.0], &Device::cpu())?;
/// assert_eq!(golden_weight(&s)?.to_vec::<f64>()?[0], 1.0);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than f32, f64, c64 and c128.
pub fn golden_weight(s: &Tensor) -> Result<Tensor> {
    check_dtypes("golden_weight", NUMBERS, &[s])?;
    if s.dtype().is_complex() { COMPLEX_WEIGHT.run([s]) } else { WEIGHT.run([s]) }
}

/// Returns exp(-|n|²/φ) of each row n of 4 windings or 8 coordinates along the last dimension. i32 and i64 are squared in
/// i64 and give f64; f32 and f64 keep their dtype.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for other dtypes, [`Error::InvalidArgument`] for rows of another size.
pub fn golden_weight_of_rows(n: &Tensor) -> Result<Tensor> {
    const OPERATION: &str = "golden_weight_of_rows";
    check_dtypes(OPERATION, &[DType::I32, DType::I64, DType::F32, DType::F64], &[n])?;
    if !matches!(last_size(OPERATION, n)?, 4 | 8) {
        let found = format!("a tensor of shape {}", n.shape());
        return Err(Error::invalid(OPERATION, found, "a last dimension of size 4 or 8"));
    }
    let weights = WEIGHT_OF_SUM.run([&SQUARE.run([n])?.sum(-1)?])?;
    if n.dtype() == DType::F32 { weights.cast(DType::F32) } else { Ok(weights) }
}

/// Returns the sum of aᵢ bᵢ exp(-i²/φ) over the last dimension; 0 if it is empty.
///
/// ```
/// use selvedge::srt::golden_inner;
/// use selvedge::tensor::{Device, Tensor};
/// let (a, b) = (Tensor::new([1.0f64, 2.0], &Device::cpu())?, Tensor::new([4.0f64, 5.0], &Device::cpu())?);
/// let inner = golden_inner(&a, &b)?.item::<f64>()?;
/// assert!((inner - 9.390030827240446).abs() < 1e-14);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than f32 and f64, or two of them; [`Error::InvalidArgument`] for two shapes, or no
/// dimension; [`Error::DeviceMismatch`].
pub fn golden_inner(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    const OPERATION: &str = "golden_inner";
    check_dtypes(OPERATION, REALS, &[a, b])?;
    check_shapes(OPERATION, a, b)?;
    last_size(OPERATION, a)?;
    INNER_TERM.run([a, b])?.sum(-1)?.cast(a.dtype())
}

/// Returns aᵢ exp(-i/φ) / √(Z + 1e-10) along the last dimension, with Z = Σ aᵢ² exp(-2i/φ). The exponent is linear in
/// i. A vector of zeros stays zero.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than f32 and f64; [`Error::InvalidArgument`] for no dimension.
pub fn golden_normalize(a: &Tensor) -> Result<Tensor> {
    const OPERATION: &str = "golden_normalize";
    check_dtypes(OPERATION, REALS, &[a])?;
    last_size(OPERATION, a)?;
    let z = SQUARE_TERM.run([a])?.sum_keepdim(-1)?;
    NORMALIZED.run([a, &z])
}
