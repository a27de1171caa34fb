//! Random numbers that are functions of a seed and a position, the same on the CPU and CUDA devices.
//!
//! In wrapping 64-bit arithmetic, m is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014):
//!
//! - word(seed, i) = m(seed + (i + 1) · 0x9E3779B97F4A7C15)
//! - [`Uniform::HalfOpen`]: (word >> 11) · 2⁻⁵³ in \[0, 1); [`Uniform::OpenAtZero`]: ((word >> 11) + 1) · 2⁻⁵³ in (0, 1\]
//! - [`noise_stream`]: m(m(seed + (generation + 1) · 0x9E3779B97F4A7C15) ^ purpose), the seed of a stream of its own
//! - [`box_muller`]: √(-2 ln max(u₂ᵢ, 1e-10)) cos(2π u₂ᵢ₊₁), at most 6.786 in magnitude
//! - [`gauss`]: Box-Muller of the (0, 1\] number 2i and the \[0, 1) number 2i + 1
//! - [`residual_modulated_noise`]: (lo + (hi - lo) tanh \|ρ\|) g
//!
//! Tests: `tests/srt/noise.rs`.

use std::f64::consts::PI;
use std::sync::LazyLock;

use super::operands::{REALS, check_dtypes, check_shapes, last_size};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::{Device, Fused, Tensor};
use crate::types::DType;

/// 2⁶⁴ / φ, rounded to odd.
const INCREMENT: u64 = 0x9E37_79B9_7F4A_7C15;
const FACTORS: [u64; 2] = [0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB];
/// 2⁻⁵³.
const STEP: f64 = 1.0 / (1u64 << 53) as f64;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(FACTORS[0]);
    z = (z ^ (z >> 27)).wrapping_mul(FACTORS[1]);
    z ^ (z >> 31)
}

/// Returns word `index` of a seed's stream.
///
/// ```
/// assert_eq!(selvedge::srt::noise_word(0, 0), 0xe220_a839_7b1d_cdaf);
/// ```
pub fn noise_word(seed: u64, index: u64) -> u64 {
    mix(seed.wrapping_add(index.wrapping_add(1).wrapping_mul(INCREMENT)))
}

/// Returns the seed of the stream for a generation and a purpose.
pub fn noise_stream(seed: u64, generation: u64, purpose: u64) -> u64 {
    mix(noise_word(seed, generation) ^ purpose)
}

fn mixed(z: Expr<'_>) -> Expr<'_> {
    let z = (z ^ (z >> 30u64)) * FACTORS[0];
    let z = (z ^ (z >> 27u64)) * FACTORS[1];
    z ^ (z >> 31u64)
}

/// Returns word `index` of the stream of `seed`, both u64.
pub(super) fn word<'g>(seed: Expr<'g>, index: Expr<'g>) -> Expr<'g> {
    mixed(seed + (index + 1u64) * INCREMENT)
}

/// Returns the word's number in the interval.
pub(super) fn in_interval(word: Expr<'_>, interval: Uniform) -> Expr<'_> {
    let bits = word >> 11u64;
    match interval {
        Uniform::HalfOpen => bits.cast(DType::F64) * STEP,
        Uniform::OpenAtZero => (bits + 1u64).cast(DType::F64) * STEP,
    }
}

/// Returns the position of an element, plus the first index.
pub(super) fn index_from(first: Expr<'_>) -> Expr<'_> {
    first + first.graph().position().cast(DType::U64)
}

/// Returns cos(2πu). The argument is reduced exactly, so quarters give 0.
fn cosine_of_turns(u: Expr<'_>) -> Expr<'_> {
    let turns = u - u.round();
    ((0.25f64 - turns.abs()) * (2.0 * PI)).sin()
}

fn normal_of<'g>(radius: Expr<'g>, angle: Expr<'g>) -> Expr<'g> {
    let logarithm = radius.fmax(1e-10).log();
    (logarithm * -2.0).sqrt() * cosine_of_turns(angle)
}

/// The interval of [`uniform_noise`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Uniform {
    /// 0 and more, less than 1.
    #[default]
    HalfOpen,
    /// More than 0, at most 1.
    OpenAtZero,
}

/// Of the first index and the seed.
type OfStream = LazyLock<Fused<2>>;

static WORDS: OfStream = LazyLock::new(|| Fused::new(|[first, seed]| word(seed, index_from(first))));
static HALF_OPEN: OfStream = LazyLock::new(|| {
    Fused::new(|[first, seed]| in_interval(word(seed, index_from(first)), Uniform::HalfOpen))
});
static OPEN_AT_ZERO: OfStream = LazyLock::new(|| {
    Fused::new(|[first, seed]| in_interval(word(seed, index_from(first)), Uniform::OpenAtZero))
});
static GAUSS: OfStream = LazyLock::new(|| {
    Fused::new(|[first, seed]| {
        let even = index_from(first) * 2u64;
        let radius = in_interval(word(seed, even), Uniform::OpenAtZero);
        normal_of(radius, in_interval(word(seed, even + 1u64), Uniform::HalfOpen))
    })
});
static BOX_MULLER: LazyLock<Fused<2>> = LazyLock::new(|| {
    Fused::new(|[radius, angle]| {
        normal_of(radius.cast(DType::F64), angle.cast(DType::F64)).cast(radius.dtype())
    })
});
/// Of g, ρ, lo and hi.
static MODULATED: LazyLock<Fused<4>> = LazyLock::new(|| {
    Fused::new(|[g, rho, lo, hi]| {
        let [g64, rho, lo, hi] = [g, rho, lo, hi].map(|x| x.cast(DType::F64));
        (((hi - lo) * rho.abs().tanh() + lo) * g64).cast(g.dtype())
    })
});

/// Evaluates a function of the stream at `first` and the indices after it.
fn stream(function: &Fused<2>, seed: u64, first: u64, shape: &[usize], device: &Device) -> Result<Tensor> {
    // One number in memory stands for all elements.
    let first = Tensor::full(&vec![1; shape.len()], first, DType::U64, device)?.expand(shape)?;
    function.run((&first, seed))
}

/// Returns words `first`, `first` + 1 and so on of a seed's stream as u64, in row-major order.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a shape that cannot be, and those of memory and the device.
pub fn noise_words(seed: u64, first: u64, shape: &[usize], device: &Device) -> Result<Tensor> {
    stream(&WORDS, seed, first, shape, device)
}

/// Returns uniform numbers in f64, of the words that [`noise_words`] returns.
///
/// # Errors
///
/// As `noise_words`.
pub fn uniform_noise(
    seed: u64,
    first: u64,
    interval: Uniform,
    shape: &[usize],
    device: &Device,
) -> Result<Tensor> {
    match interval {
        Uniform::HalfOpen => stream(&HALF_OPEN, seed, first, shape, device),
        Uniform::OpenAtZero => stream(&OPEN_AT_ZERO, seed, first, shape, device),
    }
}

/// Returns standard normal numbers `first`, `first` + 1 and so on of a seed's stream in f64, in row-major order. Number i
/// uses words 2i and 2i + 1.
///
/// ```
/// use selvedge::srt::gauss;
/// use selvedge::tensor::Device;
/// let g = gauss(42, 0, &[2], &Device::cpu())?.to_vec::<f64>()?;
/// assert!((g[0] - 0.4147197504315305).abs() < 1e-14);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// As [`noise_words`].
pub fn gauss(seed: u64, first: u64, shape: &[usize], device: &Device) -> Result<Tensor> {
    stream(&GAUSS, seed, first, shape, device)
}

/// Returns the Box-Muller transform of pairs of uniform numbers along the last dimension, whose size it halves. Each pair gives
/// the cosine branch alone. A NaN in an even position counts as 1e-10, a NaN in an odd position gives NaN. f32 is computed in f64.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than f32 and f64; [`Error::InvalidArgument`] for an odd last dimension, or none.
pub fn box_muller(u: &Tensor) -> Result<Tensor> {
    const OPERATION: &str = "box_muller";
    check_dtypes(OPERATION, REALS, &[u])?;
    let length = last_size(OPERATION, u)?;
    if !length.is_multiple_of(2) {
        let found = format!("a tensor of shape {}", u.shape());
        return Err(Error::invalid(
            OPERATION,
            found,
            "a last dimension of even size, pairs of uniform numbers",
        ));
    }
    if length == 0 {
        return Ok(u.clone());
    }
    let pairs = u.unfold(-1, 2, 2)?;
    BOX_MULLER.run([&pairs.select(-1, 0)?, &pairs.select(-1, 1)?])
}

/// Returns (lo + (hi - lo) tanh |ρ|) g: the noise g, scaled by the residual ρ of the same shape.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than f32 and f64, or two of them; [`Error::InvalidArgument`] for two shapes, and for
/// a `lo` or `hi` that is not finite; [`Error::DeviceMismatch`].
pub fn residual_modulated_noise(g: &Tensor, rho: &Tensor, lo: f64, hi: f64) -> Result<Tensor> {
    const OPERATION: &str = "residual_modulated_noise";
    check_dtypes(OPERATION, REALS, &[g, rho])?;
    check_shapes(OPERATION, g, rho)?;
    if !(lo.is_finite() && hi.is_finite()) {
        return Err(Error::invalid(OPERATION, format!("lo = {lo} and hi = {hi}"), "finite numbers"));
    }
    MODULATED.run((g, rho, lo, hi))
}
