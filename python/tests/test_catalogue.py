"""`selvedge.catalogue` against NumPy."""

import numpy as np
import pytest
import selvedge as sv

from selvedge import catalogue


def test_information_measures_are_those_of_numpy():
    draws = np.random.default_rng(1)
    q, p = draws.dirichlet(np.ones(5), 7), draws.dirichlet(np.ones(5))
    np.testing.assert_allclose(catalogue.shannon_entropy(q).numpy(), -(q * np.log(q)).sum(-1), rtol=1e-12)
    np.testing.assert_allclose(catalogue.kl_divergence(q, p).numpy(), (q * np.log(q / p)).sum(-1), rtol=1e-12)
    likelihood = draws.normal(size=(7, 5))
    wanted = (q * np.log(q / p)).sum(-1) - (q * likelihood).sum(-1)
    np.testing.assert_allclose(catalogue.free_energy(q, p, likelihood).numpy(), wanted, rtol=1e-12)
    x, y = draws.uniform(size=(2, 50))
    counts = catalogue.histogram_2d(x, y, 4, (0.0, 1.0)).numpy()
    assert (counts == np.histogram2d(x, y, 4, [[0, 1], [0, 1]])[0]).all()
    joint = counts / counts.sum()
    product = joint.sum(1, keepdims=True) * joint.sum(0)
    wanted = (joint[joint > 0] * np.log(joint / product, where=joint > 0, out=np.zeros_like(joint))[joint > 0]).sum()
    np.testing.assert_allclose(catalogue.mutual_information(counts).item(), wanted, rtol=1e-12)


def test_oscillators_are_those_of_numpy():
    draws = np.random.default_rng(2)
    theta, omega, adjacency = draws.uniform(0, 6, 9), draws.normal(size=9), draws.uniform(size=(9, 9))
    pull = (adjacency * np.sin(theta[None, :] - theta[:, None])).mean(1)
    wanted = (theta + 0.1 * (omega + 2.0 * pull)) % (2 * np.pi)
    np.testing.assert_allclose(catalogue.kuramoto_step(theta, omega, 2.0, 0.1, adjacency).numpy(), wanted, rtol=1e-12)
    magnitude, phase = catalogue.order_parameter(theta)
    mean = np.exp(1j * theta).mean()
    np.testing.assert_allclose([magnitude.item(), phase.item()], [abs(mean), np.angle(mean)], rtol=1e-12)


def test_gaussian_models_find_the_posterior():
    draws = np.random.default_rng(3)
    jacobian, observation = draws.normal(size=(4, 3)), draws.normal(size=4)
    model = catalogue.GaussianModel(jacobian, np.full(4, 2.0), np.zeros(3), np.full(3, 0.5))
    precision = 2 * jacobian.T @ jacobian + 0.5 * np.eye(3)
    np.testing.assert_allclose(model.posterior_precision().numpy(), precision, rtol=1e-12)
    wanted = np.linalg.solve(precision, 2 * jacobian.T @ observation)
    np.testing.assert_allclose(model.fixed_point(observation).numpy(), wanted, rtol=1e-10)
    found = model.infer(observation, np.zeros(3), rate=0.02, tolerance=1e-12, iterations=5000)
    assert found.converged and 0 < found.iterations < 5000
    np.testing.assert_allclose(found.mean.numpy(), wanted, rtol=1e-8)
    assert model.free_energy(wanted, observation).item() < model.free_energy(np.zeros(3), observation).item()


def test_policies_follow_their_predictions():
    model = catalogue.LinearGaussianModel(np.eye(2), np.eye(2), 0.1)
    controls = np.zeros((2, 3, 2))
    controls[1] = 1.0
    rollout = model.roll_out(np.zeros(2), np.ones(2), controls)
    assert rollout.means.shape == (2, 3, 2) and rollout.means[1, -1].tolist() == [3, 3]
    predictions = model.predict(rollout, np.full(2, 0.1))
    energy = catalogue.expected_free_energy(predictions, np.array([3.0, 3.0]))
    assert catalogue.choose_policy(energy.total) == 1
    assert catalogue.sample_policy(energy.total, 1e3, generator=sv.Generator(1)) == 1
    one, other = (model.sample(np.zeros(2), controls, generator=sv.Generator(5)) for _ in range(2))
    assert one.equal(other) and one.shape == (2, 3, 2)


def test_errors_name_both_sides():
    with pytest.raises(sv.ArgumentError, match="kl_divergence"):
        catalogue.kl_divergence(np.ones(3), np.ones(4))
    with pytest.raises(sv.DTypeError):
        catalogue.shannon_entropy(sv.Tensor([1, 2]))
    with pytest.raises(sv.ArgumentError, match="qubit"):
        catalogue.hadamard(sv.Tensor([1.0, 0.0], "c64"), 1)
    with pytest.raises(sv.DTypeError, match="a tensor wants a selvedge.Tensor or an array, but found str"):
        catalogue.shannon_entropy("p")
