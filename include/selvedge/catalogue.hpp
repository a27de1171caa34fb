// Models of the catalogue: oscillators, neurons, measures of information, beliefs, policies, quantum gates, and sampling.

#ifndef SELVEDGE_CATALOGUE_HPP
#define SELVEDGE_CATALOGUE_HPP

#include "random.hpp"

SELVEDGE_BEGIN

namespace catalogue {

/// Returns the phases after one Euler step of the Kuramoto model. An empty adjacency is one of ones.
inline Tensor kuramoto_step(const Tensor &theta, const Tensor &omega, double strength, double dt,
                            const Tensor &adjacency = {})
{
    return detail::make<Tensor>(sv_kuramoto_step, theta.handle(), omega.handle(), adjacency.handle(), strength, dt);
}

/// Returns the length and the direction of the mean of e^(i theta) of each row of phases.
inline std::pair<Tensor, Tensor> order_parameter(const Tensor &theta)
{
    sv_tensor magnitude = nullptr, phase = nullptr;
    detail::call(sv_order_parameter, theta.handle(), &magnitude, &phase);
    return {Tensor::adopt(magnitude), Tensor::adopt(phase)};
}

/// Returns the entropy production, the sum of v^2 / (2 T), of each row of velocities.
inline Tensor entropy_production(const Tensor &velocity, double temperature)
{
    return detail::make<Tensor>(sv_entropy_production, velocity.handle(), temperature);
}

/// The states of neurons after a step, and whether each one spiked.
struct NeuronStep {
    Tensor state;
    Tensor spikes;
};

/// Integrates inputs with a leak. A neuron whose state is above the threshold spikes, and has state 0 then.
inline NeuronStep leaky_integrate_fire(const Tensor &state, const Tensor &input, double leak, double threshold)
{
    sv_tensor next = nullptr, spikes = nullptr;
    detail::call(sv_leaky_integrate_fire, state.handle(), input.handle(), leak, threshold, &next, &spikes);
    return {Tensor::adopt(next), Tensor::adopt(spikes)};
}

/// Returns the states tanh((1 - leak) previous + input) of a reservoir.
inline Tensor reservoir_update(const Tensor &previous, const Tensor &input, double leak)
{
    return detail::make<Tensor>(sv_reservoir_update, previous.handle(), input.handle(), leak);
}

/// Returns the weights after the spikes of a step, with a row for each postsynaptic neuron.
inline Tensor stdp_update(const Tensor &weights, const Tensor &pre_spikes, const Tensor &post_spikes,
                          const Tensor &pre_times, const Tensor &post_times, double learning_rate, double tau)
{
    return detail::make<Tensor>(sv_stdp_update, weights.handle(), pre_spikes.handle(), post_spikes.handle(),
                                pre_times.handle(), post_times.handle(), learning_rate, tau);
}

/// Returns the bin of each element, in the range of the elements or a given one.
inline Tensor discretize(const Tensor &x, std::size_t bins, double low = 0, double high = 0)
{
    return detail::make<Tensor>(sv_discretize, x.handle(), bins, low, high);
}

inline Tensor mutual_information(const Tensor &joint)
{
    return detail::make<Tensor>(sv_mutual_information, joint.handle());
}

inline Tensor transfer_entropy(const Tensor &source, const Tensor &target, std::size_t states, std::size_t history = 1)
{
    return detail::make<Tensor>(sv_transfer_entropy, source.handle(), target.handle(), states, history);
}

/// Returns the counts of pairs of bins, in one range of the elements of both or a given one.
inline Tensor histogram_2d(const Tensor &x, const Tensor &y, std::size_t bins, double low = 0, double high = 0)
{
    return detail::make<Tensor>(sv_histogram_2d, x.handle(), y.handle(), bins, low, high);
}

inline Tensor conditional_entropy(const Tensor &joint)
{
    return detail::make<Tensor>(sv_conditional_entropy, joint.handle());
}

/// Returns a view of the rows of `dimension` values that are `delay` apart.
inline Tensor time_delayed_embedding(const Tensor &x, std::size_t dimension, std::size_t delay = 1)
{
    return detail::make<Tensor>(sv_time_delayed_embedding, x.handle(), dimension, delay);
}

/// Returns the transfer entropy of counts by next value and past of the target, and past of the source.
inline Tensor transfer_entropy_of_counts(const Tensor &counts)
{
    return detail::make<Tensor>(sv_transfer_entropy_of_counts, counts.handle());
}

inline Tensor shannon_entropy(const Tensor &p)
{
    return detail::make<Tensor>(sv_shannon_entropy, p.handle());
}

inline Tensor kl_divergence(const Tensor &q, const Tensor &p)
{
    return detail::make<Tensor>(sv_kl_divergence, q.handle(), p.handle());
}

/// Returns the divergence of each row from the prior less its expected log likelihood.
inline Tensor free_energy(const Tensor &q, const Tensor &prior, const Tensor &log_likelihood)
{
    return detail::make<Tensor>(sv_variational_free_energy, q.handle(), prior.handle(), log_likelihood.handle());
}

inline Tensor gaussian_accuracy(const Tensor &error, const Tensor &precision)
{
    return detail::make<Tensor>(sv_gaussian_accuracy, error.handle(), precision.handle());
}

/// Returns the divergence of Gaussians with diagonal covariances from others.
inline Tensor gaussian_kl_divergence(const Tensor &mean, const Tensor &variance, const Tensor &prior_mean,
                                     const Tensor &prior_variance)
{
    return detail::make<Tensor>(sv_gaussian_kl_divergence, mean.handle(), variance.handle(), prior_mean.handle(),
                                prior_variance.handle());
}

/// The settings of GaussianModel::infer.
struct InferenceOptions {
    double rate = 0.01;
    double tolerance = 1e-4;
    std::size_t iterations = 100;
};

/// A belief, the number of gradients computed for it, and whether the last step was below the tolerance.
struct Inference {
    Tensor mean;
    std::size_t iterations = 0;
    bool converged = false;
};

/// A linear observation of states with Gaussian noise and a Gaussian prior. A copy is the same model.
class GaussianModel : public Object<GaussianModel, sv_gaussian_model> {
public:
    GaussianModel() noexcept = default;
    GaussianModel(const Tensor &jacobian, const Tensor &observation_precision, const Tensor &prior_mean,
                  const Tensor &prior_precision)
        : Object(detail::get<sv_gaussian_model>(sv_gaussian_model_create, jacobian.handle(), observation_precision.handle(),
                                            prior_mean.handle(), prior_precision.handle()))
    {
    }

    Tensor prediction_error(const Tensor &mean, const Tensor &observation) const
    {
        return detail::make<Tensor>(sv_gaussian_model_prediction_error, handle(), mean.handle(), observation.handle());
    }
    /// Returns the direction of descent.
    Tensor gradient(const Tensor &mean, const Tensor &observation) const
    {
        return detail::make<Tensor>(sv_gaussian_model_gradient, handle(), mean.handle(), observation.handle());
    }
    Tensor free_energy(const Tensor &mean, const Tensor &observation) const
    {
        return detail::make<Tensor>(sv_gaussian_model_free_energy, handle(), mean.handle(), observation.handle());
    }
    /// Descends from a belief until a step is below the tolerance.
    Inference infer(const Tensor &observation, const Tensor &start, const InferenceOptions &options = {}) const
    {
        const sv_inference_options raw = {sizeof raw, options.iterations, options.rate, options.tolerance};
        sv_tensor mean = nullptr;
        std::size_t iterations = 0;
        std::int32_t converged = 0;
        detail::call(sv_gaussian_model_infer, handle(), observation.handle(), start.handle(), &raw, &mean, &iterations,
                     &converged);
        return {Tensor::adopt(mean), iterations, converged != 0};
    }
    Tensor posterior_precision() const { return detail::make<Tensor>(sv_gaussian_model_posterior_precision, handle()); }
    /// Returns the belief of least free energy.
    Tensor fixed_point(const Tensor &observation) const
    {
        return detail::make<Tensor>(sv_gaussian_model_fixed_point, handle(), observation.handle());
    }
};

/// The expected free energy of each policy, risk + ambiguity - novelty, and its terms.
struct ExpectedFreeEnergy {
    Tensor total;
    Tensor risk;
    Tensor ambiguity;
    Tensor novelty;
};

/// Evaluates policies, which the first axis of each tensor counts, by their predictions and the preferred observations.
inline ExpectedFreeEnergy expected_free_energy(const Tensor &observations, const Tensor &variances,
                                               const Tensor &prior_variances, const Tensor &posterior_variances,
                                               const Tensor &preferred)
{
    sv_tensor total = nullptr, risk = nullptr, ambiguity = nullptr, novelty = nullptr;
    detail::call(sv_expected_free_energy, observations.handle(), variances.handle(), prior_variances.handle(),
                 posterior_variances.handle(), preferred.handle(), &total, &risk, &ambiguity, &novelty);
    return {Tensor::adopt(total), Tensor::adopt(risk), Tensor::adopt(ambiguity), Tensor::adopt(novelty)};
}

inline Tensor policy_probabilities(const Tensor &energies, double gamma = 1)
{
    return detail::make<Tensor>(sv_policy_probabilities, energies.handle(), gamma);
}

/// Returns the policy of least expected free energy, the first of equal ones.
inline std::size_t choose_policy(const Tensor &energies)
{
    return detail::get<std::size_t>(sv_choose_policy, energies.handle());
}

/// Draws a policy by policy_probabilities.
inline std::size_t sample_policy(const Tensor &energies, double gamma = 1, const Generator &generator = {})
{
    return detail::get<std::size_t>(sv_sample_policy, energies.handle(), gamma, generator.handle());
}

/// Predicted states: the means by policy, step and state, and the variances by step and state.
struct StateRollout {
    Tensor means;
    Tensor variances;
};

/// Predictions for each policy, the first operands of expected_free_energy.
struct PolicyPredictions {
    Tensor observations;
    Tensor variances;
    Tensor prior_variances;
    Tensor posterior_variances;
};

inline ExpectedFreeEnergy expected_free_energy(const PolicyPredictions &predictions, const Tensor &preferred)
{
    return expected_free_energy(predictions.observations, predictions.variances, predictions.prior_variances,
                                predictions.posterior_variances, preferred);
}

/// A linear model of states and observations with Gaussian noise. A copy is the same model.
class LinearGaussianModel : public Object<LinearGaussianModel, sv_linear_gaussian_model> {
public:
    LinearGaussianModel() noexcept = default;
    LinearGaussianModel(const Tensor &transition, const Tensor &observation, double process_noise)
        : Object(detail::get<sv_linear_gaussian_model>(sv_linear_gaussian_model_create, transition.handle(), observation.handle(),
                                            process_noise))
    {
    }

    /// Returns the states under each policy, whose controls are by policy, step and state.
    StateRollout roll_out(const Tensor &mean, const Tensor &variance, const Tensor &controls) const
    {
        sv_tensor means = nullptr, variances = nullptr;
        detail::call(sv_linear_gaussian_model_roll_out, handle(), mean.handle(), variance.handle(), controls.handle(),
                     &means, &variances);
        return {Tensor::adopt(means), Tensor::adopt(variances)};
    }
    /// Returns random states by policy, step and state.
    Tensor sample(const Tensor &start, const Tensor &controls, const Generator &generator = {}) const
    {
        return detail::make<Tensor>(sv_linear_gaussian_model_sample, handle(), start.handle(), controls.handle(),
                                    generator.handle());
    }
    /// Returns the predictions for each policy, from the variances of the observations.
    PolicyPredictions predict(const StateRollout &rollout, const Tensor &observation_noise) const
    {
        sv_tensor found[4] = {};
        detail::call(sv_linear_gaussian_model_predict, handle(), rollout.means.handle(), rollout.variances.handle(),
                     observation_noise.handle(), &found[0], &found[1], &found[2], &found[3]);
        return {Tensor::adopt(found[0]), Tensor::adopt(found[1]), Tensor::adopt(found[2]), Tensor::adopt(found[3])};
    }
};

/// Applies the Hadamard gate to a qubit, which is a bit of an amplitude's index.
inline Tensor hadamard(const Tensor &state, std::size_t qubit)
{
    return detail::make<Tensor>(sv_hadamard, state.handle(), qubit);
}

inline Tensor pauli_x(const Tensor &state, std::size_t qubit)
{
    return detail::make<Tensor>(sv_pauli_x, state.handle(), qubit);
}

/// Multiplies the amplitudes with a qubit of 1 by e^(i angle).
inline Tensor phase_gate(const Tensor &state, std::size_t qubit, double angle)
{
    return detail::make<Tensor>(sv_phase_gate, state.handle(), qubit, angle);
}

inline Tensor cnot(const Tensor &state, std::size_t control, std::size_t target)
{
    return detail::make<Tensor>(sv_cnot, state.handle(), control, target);
}

/// Returns the probability of each basis state.
inline Tensor measurement_probabilities(const Tensor &state)
{
    return detail::make<Tensor>(sv_measurement_probabilities, state.handle());
}

/// Rotates pairs of neighbouring features by their position, as in RoFormer.
inline Tensor rope_encoding(const Tensor &x, std::size_t offset = 0, double base = 10000)
{
    return detail::make<Tensor>(sv_rope_encoding, x.handle(), offset, base);
}

/// Draws a token for each row of logits among the k most likely ones.
inline Tensor top_k_sampling(const Tensor &logits, std::size_t k, double temperature = 1, const Generator &generator = {})
{
    return detail::make<Tensor>(sv_top_k_sampling, logits.handle(), k, temperature, generator.handle());
}

} // namespace catalogue

SELVEDGE_END

#endif
