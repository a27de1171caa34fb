//! Neurons on tensors: leaky integration with spikes, the state of a reservoir, and spike-timing-dependent plasticity.
//!
//! `burst` (feature `burst`) is the engine for large sparse networks.
//!
//! Tests: `tests/catalogue/neurons.rs`.

use std::sync::LazyLock;

use super::operands::{check_finite, check_floats, check_positive, check_shape, wide};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor};
use crate::types::DType;

/// Returns tanh((1 - a) s + u) in the dtype in which s is computed.
fn integrated<'g>(s: Expr<'g>, u: Expr<'g>, leak: Expr<'g>) -> Expr<'g> {
    let (s, u) = (wide(s), wide(u));
    let kept: Expr<'g> = 1.0 - leak.cast(s.dtype());
    (kept * s + u).tanh()
}

/// Of s, u, a and θ.
static INTEGRATE_FIRE: LazyLock<Fused<4, 2>> = LazyLock::new(|| {
    Fused::with_outputs(|[s, u, leak, threshold]| {
        let next = integrated(s, u, leak);
        let spike = next.gt(threshold.cast(next.dtype()));
        [spike.choose(0.0, next).cast(s.dtype()), spike]
    })
});
/// Of s, u and a.
static RESERVOIR: LazyLock<Fused<3>> =
    LazyLock::new(|| Fused::new(|[s, u, leak]| integrated(s, u, leak).cast(s.dtype())));
/// Of w, whether both neurons spiked, the times of both, the learning rate and 1/τ.
static STDP: LazyLock<Fused<7>> = LazyLock::new(|| {
    Fused::new(|[w, pre, post, pre_time, post_time, rate, inverse_tau]| {
        let wide_w = wide(w);
        let [rate, inverse_tau] = [rate, inverse_tau].map(|number| number.cast(wide_w.dtype()));
        let dt = wide(post_time) - wide(pre_time);
        let change = rate * dt.sign() * (-dt.abs() * inverse_tau).exp();
        (pre & post).choose((wide_w + change).clamp(-1.0, 1.0), wide_w).cast(w.dtype())
    })
});

fn check_pair(operation: &'static str, state: &Tensor, input: &Tensor, leak: f64) -> Result<()> {
    check_floats(operation, &[state, input])?;
    check_shape(operation, "input", input, state.shape())?;
    check_finite(operation, "leak", leak)
}

/// Returns the states tanh((1 - a) s + u) and, as bools, whether each is above the threshold before it is rounded; a
/// neuron that spikes has state 0.
///
/// ```
/// use selvedge::catalogue::leaky_integrate_fire;
/// use selvedge::{Device, Tensor};
/// let [state, input] = [[0.0f32, 0.5], [2.0, 0.1]].map(|row| Tensor::new(row, &Device::cpu()));
/// let (state, spikes) = leaky_integrate_fire(&state?, &input?, 0.2, 0.9)?;
/// assert_eq!(spikes.to_vec::<bool>()?, [true, false]);
/// assert_eq!(state.to_vec::<f32>()?[0], 0.0);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for operands that are not floats of one dtype; [`Error::InvalidArgument`] for shapes that
/// differ, and a leak a or a threshold that is not finite; [`Error::DeviceMismatch`]; errors of memory.
pub fn leaky_integrate_fire(
    state: &Tensor,
    input: &Tensor,
    leak: f64,
    threshold: f64,
) -> Result<(Tensor, Tensor)> {
    const OPERATION: &str = "leaky_integrate_fire";
    check_pair(OPERATION, state, input, leak)?;
    check_finite(OPERATION, "threshold", threshold)?;
    let [state, spikes] = INTEGRATE_FIRE.run_all((state, input, leak, threshold))?;
    Ok((state, spikes))
}

/// Returns the states tanh((1 - a) s + u) of a reservoir; u is the sum of its input and recurrent products.
///
/// # Errors
///
/// As [`leaky_integrate_fire`].
pub fn reservoir_update(previous: &Tensor, input: &Tensor, leak: f64) -> Result<Tensor> {
    check_pair("reservoir_update", previous, input, leak)?;
    RESERVOIR.run((previous, input, leak))
}

/// The numbers of [`stdp_update`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StdpParameters {
    /// The largest change of a weight, lr.
    pub learning_rate: f64,
    /// The decay time τ of the change, above 0.
    pub tau: f64,
}

/// Returns the weights after the spikes of a step: if both neurons spiked, with Δt = t_post - t_pre, a weight changes by
/// lr e^(-Δt/τ) for Δt > 0 and by -lr e^(Δt/τ) for Δt < 0, and is clamped to \[-1, 1\]; other weights stay. Δt = 0 changes
/// nothing.
///
/// `weights` has a row for each postsynaptic and a column for each presynaptic neuron. `spikes` and `times` are those of the
/// presynaptic, then of the postsynaptic neurons: bools, and numbers of the weights' dtype. The time of a neuron that did not
/// spike may be anything, NaN too.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for weights and times that are not floats of one dtype, and spikes that are not bools;
/// [`Error::InvalidArgument`] for shapes that differ, a learning rate that is not finite, and a τ that is not above 0.
pub fn stdp_update(
    weights: &Tensor,
    spikes: [&Tensor; 2],
    times: [&Tensor; 2],
    parameters: StdpParameters,
) -> Result<Tensor> {
    const OPERATION: &str = "stdp_update";
    check_floats(OPERATION, &[weights, times[0], times[1]])?;
    let &[posts, pres] = &weights.shape()[..] else {
        let found = format!("weights of shape {}", weights.shape());
        return Err(Error::invalid(OPERATION, found, "a matrix with a row for each postsynaptic neuron"));
    };
    let sides = [("presynaptic", pres), ("postsynaptic", posts)];
    for ((side, count), (spikes, times)) in sides.into_iter().zip(spikes.into_iter().zip(times)) {
        if spikes.dtype() != DType::Bool {
            let wanted = format!("{side} spikes of bool");
            return Err(Error::DTypeMismatch {
                operation: OPERATION,
                wanted,
                found: spikes.dtype().to_string(),
            });
        }
        check_shape(OPERATION, &format!("{side} spikes"), spikes, &[count])?;
        check_shape(OPERATION, &format!("{side} times"), times, &[count])?;
    }
    check_finite(OPERATION, "learning_rate", parameters.learning_rate)?;
    check_positive(OPERATION, "tau", parameters.tau)?;
    let (post_spikes, post_times) = (spikes[1].unsqueeze(-1)?, times[1].unsqueeze(-1)?);
    let numbers = (parameters.learning_rate, 1.0 / parameters.tau);
    STDP.run((weights, spikes[0], &post_spikes, times[0], &post_times, numbers.0, numbers.1))
}
