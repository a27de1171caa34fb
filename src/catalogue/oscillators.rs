//! Coupled phase oscillators: the Kuramoto model, its order parameter, and entropy production.
//!
//! The sum Σⱼ Aᵢⱼ sin(θⱼ - θᵢ) is cos θᵢ Σⱼ Aᵢⱼ sin θⱼ - sin θᵢ Σⱼ Aᵢⱼ cos θⱼ: two products with A, or two sums if A is missing,
//! in place of n² sines.
//!
//! Tests: `tests/catalogue/oscillators.rs`.

use std::f64::consts::TAU;
use std::sync::LazyLock;

use num_complex::Complex;

use super::operands::{check_finite, check_floats, check_positive, check_rows, check_shape, last_size, wide};
use crate::error::Result;
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor};
use crate::types::DType;

/// 2π as a sum of two f32.
const SINGLE_TURN: [f64; 2] = [std::f32::consts::TAU as f64, TAU - std::f32::consts::TAU as f64];

/// Returns θ + dt (ω + K/n (cos θ Σ A sin θ - sin θ Σ A cos θ)), wrapped, in θ's dtype. `sines` and `cosines` are the sums.
fn stepped<'g>(
    theta: Expr<'g>,
    omega: Expr<'g>,
    sines: Expr<'g>,
    cosines: Expr<'g>,
    [strength, dt]: [Expr<'g>; 2],
) -> Expr<'g> {
    let angle = wide(theta);
    let dtype = angle.dtype();
    let pull = angle.cos() * sines - angle.sin() * cosines;
    let [omega, strength, dt] = [omega, strength, dt].map(|x| x.cast(dtype));
    let next = angle + dt * (omega + strength * pull);
    if dtype == DType::F64 {
        let next = next.remainder(TAU);
        // A remainder just below 2π rounds up to it.
        return next.ge(TAU).choose(0.0, next);
    }
    // Conversions to f64 for its remainder take longer than the sine and the cosine.
    let turns = -(next * (1.0 / TAU)).floor();
    let rest = turns.fma(SINGLE_TURN[1], turns.fma(SINGLE_TURN[0], next));
    let rest = rest.lt(0.0).choose(rest + SINGLE_TURN[0], rest).maximum(0.0).cast(theta.dtype());
    rest.cast(dtype).ge(SINGLE_TURN[0]).choose(0.0, rest.cast(dtype)).cast(theta.dtype())
}

/// Returns cos θ + i sin θ, whose sum is one fold of two parts and reads θ once.
fn direction(angle: Expr<'_>) -> Expr<'_> {
    let dtype = if angle.dtype() == DType::F64 { DType::C128 } else { DType::C64 };
    angle.cos().cast(dtype) + angle.sin().cast(dtype) * Complex::new(0.0, 1.0)
}

/// Longer rows are not kept between a reduction and what follows it, so that each reduction reads them. A complex sum reads them
/// once for both parts; a row that is kept needs less time for two sums.
const MAX_KEPT_ROW: usize = 1 << 17;

/// Returns the folds of cos θ and sin θ over each group.
fn folds<'g>(angle: Expr<'g>, is_long: bool, fold: fn(Expr<'g>) -> Expr<'g>) -> [Expr<'g>; 2] {
    if !is_long {
        return [fold(angle.cos()), fold(angle.sin())];
    }
    let both = fold(direction(angle));
    [both.real(), both.imag()]
}

/// Of θ, ω, K/n and dt.
fn uniform_step(is_long: bool) -> Fused<4> {
    Fused::new(move |[theta, omega, strength, dt]| {
        let [cosines, sines] = folds(wide(theta), is_long, Expr::sum_group);
        stepped(theta, omega, sines, cosines, [strength, dt])
    })
}

static UNIFORM_STEP: LazyLock<Fused<4>> = LazyLock::new(|| uniform_step(false));
static UNIFORM_STEP_OF_LONG_ROWS: LazyLock<Fused<4>> = LazyLock::new(|| uniform_step(true));
/// Of θ, ω, the sums, K/n and dt.
static STEP: LazyLock<Fused<6>> = LazyLock::new(|| {
    Fused::new(|[theta, omega, sines, cosines, strength, dt]| {
        stepped(theta, omega, sines, cosines, [strength, dt])
    })
});
static SINE_AND_COSINE: LazyLock<Fused<1, 2>> =
    LazyLock::new(|| Fused::with_outputs(|[theta]| [wide(theta).sin(), wide(theta).cos()]));

/// The magnitude and the phase of the mean direction of θ.
fn order(is_long: bool) -> Fused<1, 2> {
    Fused::with_outputs(move |[theta]| {
        let [x, y] = folds(wide(theta), is_long, Expr::mean_group);
        [x.hypot(y).cast(theta.dtype()), y.atan2(x).cast(theta.dtype())]
    })
}

static ORDER: LazyLock<Fused<1, 2>> = LazyLock::new(|| order(false));
static ORDER_OF_LONG_ROWS: LazyLock<Fused<1, 2>> = LazyLock::new(|| order(true));
/// Of v and 1/(2T).
static ENTROPY_PRODUCTION: LazyLock<Fused<2>> = LazyLock::new(|| {
    Fused::new(|[v, factor]| {
        let sum = wide(v).square().sum_group();
        (sum * factor.cast(sum.dtype())).cast(v.dtype())
    })
});

/// Returns the phases after one Euler step of the Kuramoto model, in \[0, 2π):
/// θᵢ + dt (ωᵢ + K/n Σⱼ Aᵢⱼ sin(θⱼ - θᵢ)).
///
/// `theta` is a vector of n phases or rows of them, `omega` has its shape or is one row, and `adjacency` is the n × n matrix A;
/// without it every A is 1. The step is computed in the dtype of the operands, or in f32 for f16 and bf16.
///
/// ```
/// use selvedge::catalogue::kuramoto_step;
/// use selvedge::{Device, Tensor};
/// let theta = Tensor::new([0.0f64, 1.0, 2.5], &Device::cpu())?;
/// let omega = Tensor::new([0.1f64, 0.2, 0.3], &Device::cpu())?;
/// let next = kuramoto_step(&theta, &omega, None, 1.0, 0.01)?.to_vec::<f64>()?;
/// assert!((next[0] - 0.005799810430).abs() < 1e-12);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::DTypeMismatch`](crate::Error::DTypeMismatch) for operands that are not floats of one dtype;
/// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for shapes that differ, no oscillators, and a `strength` or `dt`
/// that is not finite; [`Error::DeviceMismatch`](crate::Error::DeviceMismatch); errors of memory.
pub fn kuramoto_step(
    theta: &Tensor,
    omega: &Tensor,
    adjacency: Option<&Tensor>,
    strength: f64,
    dt: f64,
) -> Result<Tensor> {
    const OPERATION: &str = "kuramoto_step";
    check_floats(OPERATION, &[theta, omega])?;
    let count = last_size(OPERATION, "theta", theta)?;
    check_rows(OPERATION, "omega", omega, theta)?;
    check_finite(OPERATION, "strength", strength)?;
    check_finite(OPERATION, "dt", dt)?;
    let strength = strength / count as f64;
    let Some(adjacency) = adjacency else {
        let step = if count > MAX_KEPT_ROW { &UNIFORM_STEP_OF_LONG_ROWS } else { &UNIFORM_STEP };
        return step.run((theta, omega, strength, dt));
    };
    check_floats(OPERATION, &[theta, adjacency])?;
    check_shape(OPERATION, "adjacency", adjacency, &[count, count])?;
    let [sine, cosine] = SINE_AND_COSINE.run_all([theta])?;
    let weights = adjacency.cast(sine.dtype())?.t()?;
    let sum =
        |values: &Tensor| values.reshape(&[-1, count as isize])?.matmul(&weights)?.reshape(&sizes(theta));
    STEP.run((theta, omega, &sum(&sine)?, &sum(&cosine)?, strength, dt))
}

/// The sizes of a tensor as those of a reshape.
fn sizes(tensor: &Tensor) -> Vec<isize> {
    tensor.shape().iter().map(|&size| size as isize).collect()
}

/// The mean of (cos θ, sin θ) in polar form, which [`order_parameter`] returns.
#[derive(Clone, Debug)]
pub struct OrderParameter {
    /// The length r of the mean: 1 if all phases are equal.
    pub magnitude: Tensor,
    /// The direction ψ of the mean, in \[-π, π\].
    pub phase: Tensor,
}

/// Returns the order parameter r e^(iψ) = 1/n Σ e^(iθ) of each row of phases, without the last dimension.
///
/// # Errors
///
/// As [`kuramoto_step`].
pub fn order_parameter(theta: &Tensor) -> Result<OrderParameter> {
    const OPERATION: &str = "order_parameter";
    check_floats(OPERATION, &[theta])?;
    let count = last_size(OPERATION, "theta", theta)?;
    let of_rows = if count > MAX_KEPT_ROW { &ORDER_OF_LONG_ROWS } else { &ORDER };
    let [magnitude, phase] = of_rows.run_all([theta])?;
    Ok(OrderParameter { magnitude: magnitude.squeeze(-1)?, phase: phase.squeeze(-1)? })
}

/// Returns the entropy production Σ v² / (2T) of each row of velocities, without the last dimension.
///
/// # Errors
///
/// As [`kuramoto_step`]; [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a temperature that is not above 0.
pub fn entropy_production(velocity: &Tensor, temperature: f64) -> Result<Tensor> {
    const OPERATION: &str = "entropy_production";
    check_floats(OPERATION, &[velocity])?;
    last_size(OPERATION, "velocity", velocity)?;
    check_positive(OPERATION, "temperature", temperature)?;
    ENTROPY_PRODUCTION.run((velocity, 0.5 / temperature))?.squeeze(-1)
}
