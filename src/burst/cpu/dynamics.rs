//! The update of one neuron: the function that every backend computes in the same order of roundings.

use super::super::draw::draw;
use super::super::neurons::NeuronParameters;
use super::super::state::NeuronState;

/// The outcome of an update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Outcome {
    /// The neuron was refractory; its input is lost.
    Blocked,
    /// No spike.
    Quiet,
    /// A spike at this potential.
    Fired(f32),
}

/// Updates a touched neuron with its input `x`. The order is: refractory, window, consecutive-fire limit, chance.
#[inline(always)]
pub(super) fn update(
    neuron: &NeuronParameters,
    state: &mut NeuronState,
    x: f32,
    id: u32,
    key: u32,
) -> Outcome {
    let accumulates = neuron.has(NeuronParameters::ACCUMULATES);
    let limited = neuron.fire_limit != 0;
    if state.refractory_left > 0 {
        state.refractory_left -= 1;
        if state.refractory_left == 0 && limited && state.fire_count >= neuron.fire_limit {
            state.fire_count = 0;
        }
        if !accumulates {
            state.potential = neuron.rest;
        }
        return Outcome::Blocked;
    }
    let base = if accumulates { state.potential } else { neuron.rest };
    let potential = base + x;
    if potential >= neuron.threshold && potential <= neuron.threshold_max {
        if limited && state.fire_count >= neuron.fire_limit {
            state.fire_count = 0;
            state.potential = potential;
            return Outcome::Quiet;
        }
        if neuron.has(NeuronParameters::ALWAYS_FIRES) || draw(id, key) < neuron.chance {
            state.potential = neuron.rest;
            let mut blocked = neuron.refractory;
            if limited {
                state.fire_count = state.fire_count.saturating_add(1);
                if state.fire_count >= neuron.fire_limit {
                    blocked = blocked.saturating_add(neuron.snooze);
                }
            }
            state.refractory_left = blocked;
            return Outcome::Fired(potential);
        }
    }
    if limited {
        state.fire_count = 0;
    }
    // Three roundings, no fused multiply-add.
    state.potential = neuron.rest + (potential - neuron.rest) * neuron.decay;
    Outcome::Quiet
}
