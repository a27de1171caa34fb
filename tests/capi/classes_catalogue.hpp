// The catalogue of the C++ layer: worked numbers of docs/catalogue.md.

#ifndef SELVEDGE_TESTS_CLASSES_CATALOGUE_HPP
#define SELVEDGE_TESTS_CLASSES_CATALOGUE_HPP

#include <cmath>

#include "classes_check.hpp"

namespace {

void catalogue_functions_have_their_worked_numbers()
{
    const Tensor theta = tensor({0.0, 1.0, 2.5}), omega = tensor({0.1, 0.2, 0.3});
    const Tensor next = catalogue::kuramoto_step(theta, omega, 1, 0.01);
    CHECK(allclose(next[0], Tensor::scalar(0.005799810430), 0, 1e-12));
    CHECK(allclose(next, catalogue::kuramoto_step(theta, omega, 1, 0.01, Tensor::ones<double>({3, 3})), 1e-14));
    const auto [magnitude, phase] = catalogue::order_parameter(tensor({0.5, 0.5}));
    CHECK(allclose(magnitude, Tensor::scalar(1.0)) && allclose(phase, Tensor::scalar(0.5)));
    FAILS(SV_ERROR_INVALID_ARGUMENT, catalogue::kuramoto_step(theta, tensor({0.1}), 1, 0.01));

    using Longs = List<std::int64_t>;
    const Tensor levels = tensor({0.0f, 0.6f, 1.0f, -3.0f, 9.0f});
    CHECK(catalogue::discretize(levels, 2, 0, 1).to_vector<std::int64_t>() == Longs{0, 1, 1, 0, 1});
    CHECK(catalogue::discretize(levels, 2).to_vector<std::int64_t>() == Longs{0, 0, 0, 0, 1});
    const Tensor joint = Tensor::from(Longs{3, 0, 0, 3}, {2, 2});
    CHECK(allclose(catalogue::mutual_information(joint), Tensor::scalar(std::log(2.0))));
    const Tensor x = Tensor::from(Longs{0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1});
    const Tensor y = Tensor::from(Longs{0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0});
    CHECK(allclose(catalogue::transfer_entropy(x, y, 2), Tensor::scalar(0.683994674401), 0, 1e-12));
    FAILS(SV_ERROR_DTYPE_MISMATCH, catalogue::transfer_entropy(theta, omega, 2));

    const auto rows = [](double a, double b, double c) { return tensor({{a, a}, {b, b}, {c, c}}); };
    const auto energy = catalogue::expected_free_energy(tensor({{1.0, 0.1}, {0.5, 0.5}, {0.0, 1.0}}), rows(0.1, 0.2, 0.05),
                                                        rows(1, 1, 1), rows(0.5, 0.2, 0.9), tensor({1.0, 0.0}));
    CHECK(energy.total.argmin().item<std::int64_t>() == 1);
    CHECK(allclose(energy.total, energy.risk + energy.ambiguity - energy.novelty));
    CHECK(allclose(catalogue::policy_probabilities(energy.total, 2), (-2 * energy.total).softmax()));
}

} // namespace

#endif
