//! Neurons: leaky integration with spikes, the state of a reservoir, and spike-timing-dependent plasticity.

use super::super::handle::sv_tensor;
use super::super::tensor::give_all;
use super::{each, find, give_of};
use crate::catalogue::{self, StdpParameters};

/// Writes the states tanh((1 - leak) state + input), with 0 for a neuron that spikes, and as `SV_DTYPE_BOOL` the spikes: 1 for
/// each state above the threshold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_leaky_integrate_fire(
    state: sv_tensor,
    input: sv_tensor,
    leak: f64,
    threshold: f64,
    next: *mut sv_tensor,
    spikes: *mut sv_tensor,
) -> i32 {
    give_all("sv_leaky_integrate_fire", [(next, "next"), (spikes, "spikes")], || {
        let found = find(&[(state, "state"), (input, "input")])?;
        let [state, input] = each(&found);
        Ok(catalogue::leaky_integrate_fire(state, input, leak, threshold)?.into())
    })
}

/// Gives the states tanh((1 - leak) previous + input) of a reservoir; `input` is the sum of its input and recurrent products.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_reservoir_update(
    previous: sv_tensor,
    input: sv_tensor,
    leak: f64,
    result: *mut sv_tensor,
) -> i32 {
    let operands = [(previous, "previous"), (input, "input")];
    give_of("sv_reservoir_update", operands, result, &|[previous, input]| {
        catalogue::reservoir_update(previous, input, leak)
    })
}

/// Gives the weights after the spikes of a step: if both neurons spiked, a weight grows by learning_rate e^(-dt/tau) for the
/// time dt > 0 from the presynaptic to the postsynaptic spike, shrinks by learning_rate e^(dt/tau) for dt < 0, and is clamped
/// to -1 to 1.
///
/// `weights` has a row for each postsynaptic and a column for each presynaptic neuron. Spikes are of `SV_DTYPE_BOOL`, and times
/// of the weights' dtype.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_stdp_update(
    weights: sv_tensor,
    pre_spikes: sv_tensor,
    post_spikes: sv_tensor,
    pre_times: sv_tensor,
    post_times: sv_tensor,
    learning_rate: f64,
    tau: f64,
    result: *mut sv_tensor,
) -> i32 {
    let operands = [
        (weights, "weights"),
        (pre_spikes, "pre_spikes"),
        (post_spikes, "post_spikes"),
        (pre_times, "pre_times"),
        (post_times, "post_times"),
    ];
    let parameters = StdpParameters { learning_rate, tau };
    give_of("sv_stdp_update", operands, result, &|[weights, pre, post, pre_times, post_times]| {
        catalogue::stdp_update(weights, [pre, post], [pre_times, post_times], parameters)
    })
}
