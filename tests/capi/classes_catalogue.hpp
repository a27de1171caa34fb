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

void catalogue_neurons_and_gates_follow_their_definitions()
{
    using Bytes = List<std::uint8_t>;
    const Tensor state = tensor({0.0, 0.5}), input = tensor({2.0, 0.1});
    const auto [next, spikes] = catalogue::leaky_integrate_fire(state, input, 0.2, 0.9);
    CHECK(spikes.dtype() == DType::Bool && spikes.cast(DType::U8).to_vector<std::uint8_t>() == Bytes{1, 0});
    CHECK(allclose(next, tensor({0.0, std::tanh(0.5)})));
    CHECK(allclose(catalogue::reservoir_update(state, input, 0.2), tensor({std::tanh(2.0), std::tanh(0.5)})));
    FAILS(SV_ERROR_INVALID_ARGUMENT, catalogue::reservoir_update(state, tensor({1.0}), 0.2));
    CHECK(allclose(catalogue::entropy_production(input, 2), Tensor::scalar(4.01 / 4)));

    const auto spiked = [](const Bytes &list) { return Tensor::from(list).cast(DType::Bool); };
    const Tensor weights = tensor({{0.1, 0.9, 0.3}, {0.4, -0.9, 0.6}});
    const double change = 0.5 * std::exp(-1.0);
    CHECK(allclose(catalogue::stdp_update(weights, spiked({1, 1, 0}), spiked({1, 1}), tensor({1.0, 3.0, 9.0}), tensor({3.0, 1.0}),
                                          0.5, 2),
                   tensor({{0.1 + change, 0.9, 0.3}, {0.4, -1.0, 0.6}})));

    const Tensor zero = tensor({1.0, 0.0, 0.0, 0.0}).cast(DType::C128);
    const Tensor bell = catalogue::cnot(catalogue::hadamard(zero, 0), 0, 1);
    CHECK(allclose(catalogue::measurement_probabilities(bell), tensor({0.5, 0.0, 0.0, 0.5})));
    CHECK(allclose(catalogue::measurement_probabilities(catalogue::pauli_x(zero, 1)), tensor({0.0, 0.0, 1.0, 0.0})));
    // A phase of pi between two Hadamard gates is Pauli X.
    const double pi = std::acos(-1.0);
    const Tensor turned = catalogue::hadamard(catalogue::phase_gate(catalogue::hadamard(zero, 0), 0, pi), 0);
    CHECK(allclose(catalogue::measurement_probabilities(turned), tensor({0.0, 1.0, 0.0, 0.0}), 0, 1e-12));
    FAILS(SV_ERROR_INVALID_ARGUMENT, catalogue::cnot(zero, 1, 1));

    // The first position is not rotated, the second one by a radian.
    const Tensor turns = catalogue::rope_encoding(tensor({{1.0, 0.0}, {1.0, 0.0}}));
    CHECK(allclose(turns, tensor({{1.0, 0.0}, {std::cos(1.0), std::sin(1.0)}})));
    CHECK(allclose(catalogue::rope_encoding(tensor({{1.0, 0.0}}), 1), turns.slice(0, 1, 2)));
    const Tensor logits = tensor({{900.0, 1.0, 2.0}, {0.0, -5.0, 7.0}});
    CHECK(catalogue::top_k_sampling(logits, 1).to_vector<std::int64_t>() == List<std::int64_t>{0, 2});
    const auto drawn = [&](std::uint64_t seed) {
        return catalogue::top_k_sampling(Tensor::zeros<double>({40, 9}), 9, 2, Generator(seed));
    };
    CHECK(drawn(1).equal(drawn(1)) && !drawn(1).equal(drawn(2)));
}

void catalogue_measures_agree_with_each_other()
{
    using Longs = List<std::int64_t>;
    const Tensor x = tensor({0.0, 1.0, 1.0, 0.0, 1.0}), y = tensor({0.0, 0.0, 1.0, 1.0, 1.0});
    const Tensor joint = catalogue::histogram_2d(x, y, 2);
    CHECK(joint.to_vector<std::int64_t>() == Longs{1, 1, 1, 2});
    CHECK(catalogue::histogram_2d(x, y, 2, 0.5, 3).to_vector<std::int64_t>() == Longs{5, 0, 0, 0});
    // I(X; Y) = H(Y) - H(Y|X).
    const Tensor entropy = catalogue::shannon_entropy(tensor({0.4, 0.6}));
    CHECK(allclose(catalogue::mutual_information(joint), entropy - catalogue::conditional_entropy(joint)));
    CHECK(catalogue::time_delayed_embedding(tensor({0.0, 1.0, 2.0, 3.0}), 2, 2).equal(tensor({{0.0, 2.0}, {1.0, 3.0}})));
    // The next value is the past of the source: a bit for each of two equally frequent values.
    const Tensor counts = Tensor::from(Longs{1, 0, 1, 0, 0, 1, 0, 1}, {2, 2, 2});
    CHECK(allclose(catalogue::transfer_entropy_of_counts(counts), Tensor::scalar(std::log(2.0))));
    FAILS(SV_ERROR_INVALID_ARGUMENT, catalogue::transfer_entropy_of_counts(joint));

    const Tensor q = tensor({0.2, 0.2, 0.2, 0.2, 0.2}), p = tensor({0.7, 0.1, 0.1, 0.05, 0.05});
    CHECK(allclose(catalogue::kl_divergence(q, p), Tensor::scalar(0.581224022973), 0, 1e-12));
    CHECK(allclose(catalogue::free_energy(q, p, p.log()), catalogue::kl_divergence(q, p) - (q * p.log()).sum()));
}

void gaussian_models_have_their_worked_numbers()
{
    const Tensor zero = tensor({0.0}), one = tensor({1.0}), quarter = tensor({0.25}), four = tensor({4.0}), o = tensor({5.0});
    const Tensor kl = catalogue::gaussian_kl_divergence(one, quarter, zero, one);
    CHECK(allclose(kl, Tensor::scalar(0.818147180560), 0, 1e-12));
    const double tau = 2 * std::acos(-1.0);
    CHECK(allclose(catalogue::gaussian_accuracy(one, four), Tensor::scalar(-0.5 * (4 + std::log(tau / 4)))));

    const catalogue::GaussianModel model(tensor({{2.0}}), four, one, one);
    CHECK(allclose(model.fixed_point(o), tensor({2.411764705882}), 0, 1e-12));
    CHECK(allclose(model.posterior_precision(), tensor({{17.0}})));
    CHECK(allclose(model.prediction_error(one, o), tensor({12.0})) && allclose(model.gradient(one, o), tensor({24.0})));
    CHECK(allclose(model.free_energy(one, o), -catalogue::gaussian_accuracy(tensor({3.0}), four)));
    catalogue::InferenceOptions options;
    options.rate = 0.05;
    options.tolerance = 1e-9;
    options.iterations = 1000;
    const auto found = model.infer(o, zero, options);
    CHECK(found.converged && found.iterations > 1 && found.iterations < 1000);
    CHECK(allclose(found.mean, tensor({2.411764706}), 0, 1e-8));
    options.iterations = 2;
    CHECK(!model.infer(o, zero, options).converged);
    FAILS(SV_ERROR_INVALID_ARGUMENT, catalogue::GaussianModel(tensor({{2.0}}), zero, one, one));

    const catalogue::LinearGaussianModel linear(tensor({{0.0, -1.0}, {0.5, 0.0}}), tensor({{1.0, 2.0}}), 0.1);
    const Tensor controls = Tensor::from(List<double>{0, 0, 0, 0, 1, 0, 0, 1}, {2, 2, 2}), start = tensor({1.0, 2.0});
    const auto rollout = linear.roll_out(start, tensor({1.0, 4.0}), controls);
    CHECK(allclose(rollout.means, Tensor::from(List<double>{-2, 0.5, -0.5, -1, -1, 0.5, -0.5, 0.5}, {2, 2, 2})));
    CHECK(allclose(rollout.variances, tensor({{4.1, 0.35}, {0.45, 1.125}})));
    const auto predictions = linear.predict(rollout, tensor({0.5}));
    CHECK(allclose(predictions.observations.flatten(), tensor({-1.0, -2.5, 0.0, 0.5})));
    CHECK(allclose(predictions.variances.flatten(), tensor({6.0, 5.45, 6.0, 5.45})));
    // The first policy observes -1 and -2.5, the second one 0 and 0.5.
    const Tensor energies = catalogue::expected_free_energy(predictions, tensor({0.0})).total;
    CHECK(catalogue::choose_policy(energies) == 1 && catalogue::sample_policy(energies, 1e6) == 1);
    const auto policy = [&](std::uint64_t seed) { return catalogue::sample_policy(energies, 0, Generator(seed)); };
    CHECK(policy(3) == policy(3) && policy(3) < 2);
    const auto sample = [&](std::uint64_t seed) { return linear.sample(start, controls, Generator(seed)); };
    CHECK(sample(1).shape() == Shape(2, 2, 2) && sample(1).equal(sample(1)) && !sample(1).equal(sample(2)));

    // Models of all types are objects of one kind, but a function refuses those of another type, which a cast passes here.
    sv_tensor result = nullptr;
    const auto other = reinterpret_cast<sv_gaussian_model>(linear.handle());
    CHECK(sv_gaussian_model_posterior_precision(other, &result) == SV_ERROR_INVALID_ARGUMENT && result == nullptr);
}

} // namespace

#endif
