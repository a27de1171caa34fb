//! Residual connections scaled by 1/φ, with relu, gelu and layer norm.
//!
//! | mode | value |
//! |---|---|
//! | [`ResidualMode::Phi`] | x + r/φ |
//! | [`ResidualMode::PhiSymmetric`] | (x + r)/φ |
//! | [`ResidualMode::Standard`] | x + r |
//!
//! Each function is one fused expression, so the CPU and CUDA devices give the same bits. x + r/φ is one fused multiply-add
//! in the dtype of the operands, f32 or f64. Both operands have one shape.
//!
//! Tests: `tests/srt/residual.rs`.

use std::sync::LazyLock;

use super::INVERSE_PHI;
use super::norms::{check_eps, normalized, operand};
use super::operands::{REALS, check_dtype, check_dtypes, check_row, check_shapes, last_size};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor};

/// The combination of the identity x and the residual r.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ResidualMode {
    /// x + r/φ.
    #[default]
    Phi,
    /// (x + r)/φ.
    PhiSymmetric,
    /// x + r.
    Standard,
}

impl ResidualMode {
    const ALL: [ResidualMode; 3] = [ResidualMode::Phi, ResidualMode::PhiSymmetric, ResidualMode::Standard];

    fn value<'g>(self, x: Expr<'g>, r: Expr<'g>) -> Expr<'g> {
        match self {
            ResidualMode::Phi => r.fma(INVERSE_PHI, x),
            ResidualMode::PhiSymmetric => (x + r) * INVERSE_PHI,
            ResidualMode::Standard => x + r,
        }
    }
}

/// A function for each mode.
type OfModes = LazyLock<[Fused<2>; 3]>;

fn of_modes(then: for<'g> fn(Expr<'g>) -> Expr<'g>) -> [Fused<2>; 3] {
    ResidualMode::ALL.map(|mode| Fused::new(move |[x, r]| then(mode.value(x, r))))
}

static RESIDUAL: OfModes = LazyLock::new(|| of_modes(|v| v));
static RELU: OfModes = LazyLock::new(|| of_modes(|v| v.gt(0.0).choose(v, 0.0)));
static RELU_OF_NAN: OfModes = LazyLock::new(|| of_modes(|v| (v.gt(0.0) | v.is_nan()).choose(v, 0.0)));
static GELU: LazyLock<Fused<2>> =
    LazyLock::new(|| Fused::new(|[x, r]| ResidualMode::Phi.value(x, r).gelu_tanh()));
/// Of x, r, √τ, ε, γ and β.
static LAYER_NORM: LazyLock<Fused<6>> = LazyLock::new(|| {
    Fused::new(|[x, r, root, eps, gamma, beta]| {
        normalized(ResidualMode::Phi.value(x, r), [root, eps, gamma, beta])
    })
});

fn check(operation: &'static str, x: &Tensor, r: &Tensor) -> Result<()> {
    check_dtypes(operation, REALS, &[x, r])?;
    check_shapes(operation, x, r)
}

/// Returns the residual connection of x and r.
///
/// ```
/// use selvedge::srt::{ResidualMode, phi_residual};
/// use selvedge::tensor::{Device, Tensor};
/// let x = Tensor::new([1.0f64, -1.0], &Device::cpu())?;
/// let r = Tensor::new([1.0f64, 2.0], &Device::cpu())?;
/// let y = phi_residual(&x, &r, ResidualMode::Phi)?;
/// assert_eq!(y.to_vec::<f64>()?, [1.618033988749895, 0.2360679774997898]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than f32 and f64, or two of them; [`Error::InvalidArgument`] for two shapes;
/// [`Error::DeviceMismatch`].
pub fn phi_residual(x: &Tensor, r: &Tensor, mode: ResidualMode) -> Result<Tensor> {
    check("phi_residual", x, r)?;
    RESIDUAL[mode as usize].run([x, r])
}

/// Returns v if v > 0 and otherwise +0, where v is the residual connection: NaN and -0 become +0.
/// [`phi_residual_relu_keeping_nan`] propagates NaN.
///
/// # Errors
///
/// As [`phi_residual`].
pub fn phi_residual_relu(x: &Tensor, r: &Tensor, mode: ResidualMode) -> Result<Tensor> {
    check("phi_residual_relu", x, r)?;
    RELU[mode as usize].run([x, r])
}

/// Returns [`phi_residual_relu`], but NaN where v is NaN.
///
/// # Errors
///
/// As [`phi_residual`].
pub fn phi_residual_relu_keeping_nan(x: &Tensor, r: &Tensor, mode: ResidualMode) -> Result<Tensor> {
    check("phi_residual_relu_keeping_nan", x, r)?;
    RELU_OF_NAN[mode as usize].run([x, r])
}

/// Returns v/2 (1 + tanh(√(2/π) (v + 0.044715 v³))) with v = x + r/φ. A large v gives v, a large -v gives -0.
///
/// # Errors
///
/// As [`phi_residual`].
pub fn phi_residual_gelu(x: &Tensor, r: &Tensor) -> Result<Tensor> {
    check("phi_residual_gelu", x, r)?;
    GELU.run([x, r])
}

/// Normalizes v = x + r/φ over the last dimension to mean 0 and variance 1, then applies gamma and beta, which are 1 and
/// 0 if missing: γ (v - μ) / √(σ² + ε) + β. The variance is biased. Mean and variance are computed in f64, in two
/// passes, and the result is rounded once.
///
/// # Errors
///
/// As [`phi_residual`]; [`Error::InvalidArgument`] too for a tensor without elements, a gamma or beta of another shape than
/// the last dimension, and an `eps` that is negative or not finite.
pub fn phi_residual_layer_norm(
    x: &Tensor,
    r: &Tensor,
    gamma: Option<&Tensor>,
    beta: Option<&Tensor>,
    eps: f64,
) -> Result<Tensor> {
    const OPERATION: &str = "phi_residual_layer_norm";
    check(OPERATION, x, r)?;
    last_size(OPERATION, x)?;
    if x.count() == 0 {
        return Err(Error::invalid(OPERATION, format!("a tensor of shape {}", x.shape()), "elements"));
    }
    check_eps(OPERATION, eps)?;
    for (name, vector) in [("gamma", gamma), ("beta", beta)] {
        let Some(vector) = vector else { continue };
        check_dtype(OPERATION, x.dtype(), vector)?;
        check_row(OPERATION, name, vector, x)?;
    }
    LAYER_NORM.run((x, r, 1.0, eps, operand(gamma, 1.0), operand(beta, 0.0)))
}
