//! Functions of numerical models on tensors: oscillators, spiking neurons, information measures, beliefs and policies, quantum
//! gates, rotary positions, and sampling of tokens.
//!
//! | file | contents |
//! |---|---|
//! | `oscillators` | Kuramoto step, order parameter, entropy production |
//! | `neurons` | leaky integration with spikes, reservoir update, spike-timing plasticity |
//! | `information` | entropy, KL divergence, free energy of probabilities |
//! | `counts` | bins, joint histograms, mutual information, conditional and transfer entropy, embedding |
//! | `beliefs` | Gaussian beliefs: free energy, gradient descent, fixed point |
//! | `policies` | expected free energy and the choice of a policy |
//! | `rollout` | predictions of a linear Gaussian model for each policy |
//! | `gates` | gates and probabilities of quantum state vectors |
//! | `sampling` | rotary positions and sampling of the k most likely tokens |
//! | `operands` | checks of operands |
//!
//! Operations are fused expressions, row programs and products of [`tensor`](crate::tensor), so they take any length, device
//! and layout. Elements are f16, bf16, f32 or f64; f16 and bf16 are computed in f32 and rounded once. Logarithms are
//! natural. A function without randomness gives the same result each time; random functions take a
//! [`Generator`](crate::tensor::Generator). `docs/catalogue.md` maps each kernel of the catalogue to its function or expression.
//!
//! Tests: `tests/catalogue`.

mod beliefs;
mod counts;
mod gates;
mod information;
mod neurons;
mod operands;
mod oscillators;
mod policies;
mod rollout;
mod sampling;

pub use beliefs::{GaussianModel, Inference, InferenceOptions, gaussian_accuracy, gaussian_kl_divergence};
pub use counts::{
    conditional_entropy, discretize, histogram_2d, mutual_information, time_delayed_embedding,
    transfer_entropy, transfer_entropy_of_counts,
};
pub use gates::{cnot, hadamard, measurement_probabilities, pauli_x, phase_gate};
pub use information::{NEGLIGIBLE, free_energy, kl_divergence, shannon_entropy};
pub use neurons::{StdpParameters, leaky_integrate_fire, reservoir_update, stdp_update};
pub use oscillators::{OrderParameter, entropy_production, kuramoto_step, order_parameter};
pub use policies::{
    ExpectedFreeEnergy, PolicyPredictions, choose_policy, expected_free_energy, policy_probabilities,
    sample_policy,
};
pub use rollout::{LinearGaussianModel, StateRollout};
pub use sampling::{rope_encoding, top_k_sampling};
