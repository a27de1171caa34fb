// Models of the catalogue: oscillators, measures of information, and the choice of policies.

#ifndef SELVEDGE_CATALOGUE_HPP
#define SELVEDGE_CATALOGUE_HPP

#include "tensor.hpp"

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
    std::uint64_t magnitude = 0, phase = 0;
    detail::call(sv_order_parameter, theta.handle(), &magnitude, &phase);
    return {Tensor::adopt(magnitude), Tensor::adopt(phase)};
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
    std::uint64_t total = 0, risk = 0, ambiguity = 0, novelty = 0;
    detail::call(sv_expected_free_energy, observations.handle(), variances.handle(), prior_variances.handle(),
                 posterior_variances.handle(), preferred.handle(), &total, &risk, &ambiguity, &novelty);
    return {Tensor::adopt(total), Tensor::adopt(risk), Tensor::adopt(ambiguity), Tensor::adopt(novelty)};
}

inline Tensor policy_probabilities(const Tensor &energies, double gamma = 1)
{
    return detail::make<Tensor>(sv_policy_probabilities, energies.handle(), gamma);
}

} // namespace catalogue

SELVEDGE_END

#endif
