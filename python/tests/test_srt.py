"""States, as users write them, and golden-ratio functions against their formulas in NumPy."""

import copy
import math
from fractions import Fraction

import numpy as np
import pytest
import selvedge as sv
from selvedge import srt

PHI = (1 + math.sqrt(5)) / 2
Q = srt.Q_DEFICIT
A = np.array([[1.0, 2.0, 0.5], [3.0, 4.0, -1.0], [0.25, -2.0, 1.5]])
B = np.array([[0.5, -1.0, 2.0], [2.0, 8.0, 1.0], [1.0, 0.0, -0.5]])
Z = A + 1j * B
ROWS = np.array([[1.0, 0.2, -0.4, 2.0, 0.5, 1.1, -1.0, 0.3], [2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0]])
N2 = np.array([0.0, 1.0, 4.0])


def form(v):
    """Q of rows whose pairs are the entries i and i + 4."""
    x, y = v[:, :4], v[:, 4:]
    return ((4 * x * y - x * x + y * y) / math.sqrt(5)).sum(1)


@pytest.mark.parametrize("dtype", ["complex128", "complex64", "float64"])
def test_a_state_of_a_list_is_computed_with_and_comes_back_as_a_list(dtype):
    first, second = [[1, 2], [3, 4]], [[0.5, -1], [2, 8]]
    if dtype.startswith("complex"):
        first, second = (np.array(first) * (1 + 2j)).tolist(), (np.array(second) * (2 - 1j)).tolist()
    a, b = srt.State(first, dtype=dtype), srt.State(second, dtype=dtype)
    x, y = np.array(first, dtype), np.array(second, dtype)
    if sv.Device.best().type == "cuda":
        a, b = a.cuda(), b.cuda()
    for found, wanted in [(a + b, x + y), (a - b, x - y), (a * b, x * y), (a / b, x / y), (a @ b, x @ y)]:
        result = found.cpu().tolist()
        assert isinstance(result, list) and found.dtype == sv.DType(dtype)
        np.testing.assert_allclose(result, wanted.tolist(), rtol=1e-6)


WEIGHTS = np.exp(-np.arange(3) ** 2 / PHI)
CASES = {
    "phi_pow": [((3,), PHI ** 3)],
    "fibonacci": [((10,), 55), ((-3,), 2), ((90,), 2880067194370816120)],
    "lucas": [((10,), 123)],
    "fibonacci_batch": [(([0, 1, 10, 92],), [0, 1, 55, 7540113804746346429])],
    "lucas_batch": [(([0, 1, 10],), [2, 1, 123])],
    "fibonacci_batch_f64": [(([0, 10],), [0, 55])],
    "lucas_batch_f64": [(([0, 10],), [2, 123])],
    "fibonacci_sequence": [((6,), [0, 1, 1, 2, 3, 5]), ((3, "f64"), [0, 1, 1])],
    "fibonacci_f64": [((93,), 12200160415121876738)],
    "lucas_f64": [((-3,), -4)],
    "generation": [(((0, -12, 1, 0),), 6)],
    "fib_mod": [((10, 7), 55 % 7)],
    "fib_mod_batch": [((np.array([10, 11], "u8"), 7), [6, 5])],
    "pisano": [((10,), 60)],
    "winding_recursion": [((100,), 161)],
    "winding_recursion_inverse": [((100,), 61)],
    "winding_recursion_batch": [(([0, 1, 100],), [0, 1, 161])],
    "winding_recursion_inverse_batch": [(([0, 1, 100],), [0, 0, 61])],
    "golden_recursion": [((A,), A * PHI)],
    "golden_recursion_inverse": [((A,), A / PHI)],
    "generation_batch": [(([[0, 0, 0, 0], [0, -5, 1, 0], [12, 0, 0, 0]],), [0, 4, 6])],
    "correction": [((248.0,), 1 + Q / 248), ((248.0, -1), 1 - Q / 248)],
    "correct": [(([1.0, 2.0], [(10.0, 1), (20.0, -1)]), [1 + Q / 10, 2 * (1 - Q / 20)])],
    "correct_chain": [((np.array([1.0, 2.0]), [(10.0, 1), (20.0, -1)], [(0, 2), (1, 2)]), [(1 + Q / 10) * (1 - Q / 20), 2 * (1 - Q / 20)])],
    "gemm": [((2.0, A, B, -1.0, A, "transpose"), 2 * A.T @ B - A), ((1j, Z, Z, 0.0, Z, "none", "adjoint"), 1j * Z @ Z.conj().T)],
    "noise_word": [((7, 5), srt.noise_words(7, 5, 1).item())],
    "noise_stream": [((2024, 0, 1), srt.noise_stream(2024, 0, 1))],
    "compound_correction": [(([2.0], 10.0, 20.0), [2 * (1 + Q / 10) * (1 - Q / 20)])],
    "structure_dimension": [((0,), 248), ((7,), 14)],
    "special_correction": [((1, 3.0, 2, 1), 1 + 3 * Q ** 2 * PHI)],
    "suppression": [((1,), 1 / (1 + Q * PHI))],
    "mm": [((A, B), A @ B), ((A, B, "exact"), A @ B)],
    "mm_tn": [((A, B), A.T @ B)],
    "mm_nt": [((A, B), A @ B.T)],
    "mm_tt": [((A, B), A.T @ B.T)],
    "mm_hn": [((Z, Z), Z.conj().T @ Z)],
    "mm_nh": [((Z, Z), Z @ Z.conj().T)],
    "bmm": [((np.stack([A, B]), np.stack([B, A])), np.stack([A @ B, B @ A]))],
    "mm_phi": [((A, B, 2), PHI ** 2 * A @ B)],
    "mm_corrected": [((A, B, 36.0), (1 + Q / 36) * A @ B)],
    "golden_commutator": [((A, B), A @ B - B @ A / PHI)],
    "golden_anticommutator": [((A, B), A @ B + B @ A / PHI)],
    "mm_golden_weighted": [((A, B), A @ np.diag(WEIGHTS) @ B)],
    "mm_golden_phase": [((A, B, 1), np.exp(1j * np.pi / PHI) * (A @ B))],
    "projection_sum": [((A, [B, A], [2.0, -1.0]), A + 2 * B @ A - A @ A)],
    "weighted_sum": [(([A, B], [2.0, -1.0]), 2 * A - B)],
    "complex_divide": [((Z, Z + 1), Z / (Z + 1))],
    "complex_reciprocal": [((Z,), 1 / Z)],
    "rotate_phases": [((Z, A), Z * np.exp(1j * A))],
    "rotate_phase": [((Z, 0.5), Z * np.exp(0.5j))],
    "golden_rotate": [((Z,), Z * np.exp(1j * np.pi / PHI))],
    "normalize_phase": [((Z,), Z / abs(Z))],
    "quantize_phase_pi": [((Z, 4), abs(Z) * np.exp(1j * np.pi / 4 * np.round(np.angle(Z) * 4 / np.pi)))],
    "phi_weighted_sum": [((Z,), Z @ PHI ** -np.arange(3.0))],
    "phi_residual": [((A, B), A + B / PHI), ((A, B, "phi_symmetric"), (A + B) / PHI), ((A, B, "standard"), A + B)],
    "phi_residual_relu": [((A, B), np.maximum(A + B / PHI, 0))],
    "phi_residual_relu_keeping_nan": [((A, B), np.maximum(A + B / PHI, 0))],
    "phi_residual_gelu": [((A, B), sv.Tensor(A + B / PHI).gelu_tanh().numpy())],
    "phi_residual_layer_norm": [((A, B), sv.Tensor(A + B / PHI).layer_norm(3).numpy())],
    "golden_weight": [((A,), np.exp(-A / PHI)), ((Z,), np.exp(-abs(Z) ** 2 / PHI))],
    "golden_weight_of_rows": [((ROWS,), np.exp(-(ROWS ** 2).sum(1) / PHI))],
    "golden_inner": [((A[0], B[0]), (A[0] * B[0] * WEIGHTS).sum())],
    "golden_normalize": [
        ((A[0],), A[0] * np.exp(-np.arange(3) / PHI) / np.sqrt((A[0] ** 2 * np.exp(-2 * np.arange(3) / PHI)).sum() + 1e-10))
    ],
    "snap_gradient": [((A[0], A[0], N2, "plain"), [0, 0, 0])],
    "h_phase": [((A, np.zeros(3), 0.5), A)],
    "h_phase_batch": [((A, np.zeros(3), np.full(3, 0.5)), A)],
    "phase_cycle": [((A, np.zeros(3), 0.5), A)],
    "aggregate_syntony": [(([0.25, 0.75], "mean"), 0.5), (([0.25, 0.75], "minimum"), 0.25)],
    "operator_syntony": [((A, A + 1, A + 1), 1)],
    "quadratic_form": [((ROWS,), form(ROWS))],
    "e8_quantize": [((np.eye(8)[:1] * 1.1 + np.eye(8)[1:2] * 0.9,), np.eye(8)[:1] + np.eye(8)[1:2])],
    "theta_sum": [((ROWS, 2.0, 3.0), (2 * np.exp(-np.pi * form(ROWS) / 3)).sum())],
    "golden_cone_test": [((ROWS[1:], "pair"), [1])],
    "golden_cone_project": [((ROWS[1:], "pair"), ROWS[1:])],
    "residual_modulated_noise": [((A, B, 0.5, 2.0), (0.5 + 1.5 * np.tanh(abs(B))) * A)],
    "golden_layer_norm": [((A,), sv.Tensor(A).layer_norm(3).numpy() / math.sqrt(PHI)), ((A, "standard"), sv.Tensor(A).layer_norm(3).numpy())],
    "golden_batch_norm_1d": [((A, 4.0), 2 * (A - A.mean(0)) / np.sqrt(A.var(0) + 1e-5))],
    "dwell": [((100.0, 0.5), (100, 100 * PHI ** 0.5))],
    "precision_ramp": [((1, 3), [1, 2, 4, 7])],
}


@pytest.mark.parametrize("name", CASES)
def test_a_function_is_its_formula(name):
    def argument(value):
        is_list_of_its_own = name in ("weighted_sum", "projection_sum") or isinstance(value, list) and isinstance(value[0], tuple)
        return sv.Tensor(value) if isinstance(value, list) and not is_list_of_its_own else value

    for arguments, wanted in CASES[name]:
        found = getattr(srt, name)(*map(argument, arguments))
        found = found.tolist() if isinstance(found, sv.Tensor) else found
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12, err_msg=str(arguments))


def test_every_function_has_a_document_and_no_name_is_hidden():
    assert abs(srt.PHI - PHI) < 1e-15
    for name in srt.__all__:
        value = getattr(srt, name)
        assert not callable(value) or value.__doc__, name
    assert set(CASES) <= set(srt.__all__)


def test_snapped_values_are_golden_integers_with_exact_arithmetic():
    points = srt.snap(sv.Tensor([3.3, -1.2]), 8)
    values = points.a.numpy() + points.b.numpy() * PHI
    np.testing.assert_allclose(points.values().numpy(), values)
    np.testing.assert_allclose(srt.snap_residual(sv.Tensor([3.3, -1.2]), points).numpy(), np.array([3.3, -1.2]) - values)
    assert abs(srt.snap_distance(sv.Tensor([3.3, -1.2]), points).item() - np.linalg.norm(np.array([3.3, -1.2]) - values)) < 1e-12
    (a, b, c, d) = map(sv.Tensor, ([1, 2], [3, -1], [0, 1], [1, 1]))
    x, y = srt.GoldenTensor(a, b), srt.GoldenTensor(c, d)
    for found, wanted in [
        (x + y, (1 + 3 * PHI, 2 - PHI) + np.array([PHI, 1 + PHI])),
        (x - y, np.array([1 + 3 * PHI, 2 - PHI]) - [PHI, 1 + PHI]),
        (x * y, np.array([1 + 3 * PHI, 2 - PHI]) * [PHI, 1 + PHI]),
        (-x, -np.array([1 + 3 * PHI, 2 - PHI])),
        (x.recursion(), np.array([1 + 3 * PHI, 2 - PHI]) * PHI),
        (x.recursion_inverse(), np.array([1 + 3 * PHI, 2 - PHI]) / PHI),
    ]:
        np.testing.assert_allclose(found.values().numpy(), wanted, atol=1e-12)
    assert x.norm().tolist() == [1 + 3 - 9, 4 - 2 - 1] and x.trace().tolist() == [5, 3]
    assert x.conjugate().b.tolist() == [-3, 1]
    huge = srt.GoldenTensor(sv.Tensor([2 ** 62]), sv.Tensor([2 ** 62]))
    assert srt.fibonacci(150) == 9969216677189303386214405760200
    with pytest.raises(sv.ExactArithmeticError):
        huge * huge
    with pytest.raises(sv.ExactArithmeticError):
        srt.fibonacci_batch(sv.Tensor([93]))


def test_exact_numbers_are_those_of_the_field():
    exact = srt.GoldenExact
    phi, x, y = exact.PHI, exact(2, 3), exact(1, -1)
    inverse = exact(2, 1).inverse()
    for found, wanted in [
        (x + y, exact(3, 2)),
        (x - y, exact(1, 4)),
        (x * y, exact(-1, -2)),
        (x / y, exact(-3, -5)),
        (-x, exact(-2, -3)),
        (x.conjugate(), exact(5, -3)),
        (inverse, exact(Fraction(3, 5), Fraction(-1, 5))),
        (1 / exact(2, 1), inverse),
        (1 + phi, phi ** 2),
        (Fraction(1, 2) * x - 1, exact(0, Fraction(3, 2))),
        (3 - phi, exact(3, -1)),
        (phi ** -3, exact.phi_pow(-3)),
        (exact.SQRT5 ** 2, 5),
        (exact(np.int64(2), True), exact(2, 1)),
    ]:
        assert found == wanted and hash(found) == hash(wanted), (found, wanted)
    assert x.norm() == 1 and x.trace() == 7 and inverse.a == Fraction(3, 5)
    assert y < 0 < phi < Fraction(5, 3) < 2 <= x and phi != 1.5 and phi != 2 ** 200 and not exact()
    assert str(inverse) == "3/5 - 1/5 φ" and repr(x / 2) == "GoldenExact(1, Fraction(3, 2))"
    assert eval(repr(inverse), {"GoldenExact": exact, "Fraction": Fraction}) == copy.deepcopy(inverse) == inverse
    assert float(exact.phi_pow(-40)) == 4.370130339181067e-9
    for call in [lambda: exact.phi_pow(185), lambda: x + 2 ** 200, lambda: exact(2 ** 127), lambda: x / 0, lambda: exact() ** -1]:
        with pytest.raises(sv.ExactArithmeticError):
            call()
    for call in [lambda: exact(0.5), lambda: x + 0.5, lambda: x < 0.5]:
        with pytest.raises(TypeError):
            call()


def test_points_of_tensors_are_exact_numbers():
    exact = srt.GoldenExact
    points = srt.snap(sv.Tensor([[1.0, 0.5], [-0.25, 0.125]]), 10)
    numbers = points.to_numbers()
    assert [float(number) for number in numbers] == pytest.approx(points.values().reshape(4).tolist(), rel=1e-12)
    again = srt.GoldenTensor.from_numbers(numbers, (2, 2))
    assert again.a.equal(points.a) and again.b.equal(points.b)
    assert srt.GoldenTensor.from_numbers([exact(2, 3), 7]).a.tolist() == [2, 7]
    for numbers, error in [([exact(Fraction(1, 2))], ValueError), ([2 ** 63], ValueError), ([2 ** 127], ArithmeticError), ([0.5], TypeError)]:
        with pytest.raises(error):
            srt.GoldenTensor.from_numbers(numbers)


EVOLVER = {"seed": 2024, "population": 4, "survivors": 2, "mutation_scale": 0.5, "bound": 10}


def snapped():
    return srt.snap(sv.Tensor([1.0, 0.5, -0.25, 0.125]), 10)


def test_an_evolver_has_its_worked_numbers_and_continues_from_a_file(tmp_path):
    evolver = srt.Evolver(snapped(), **EVOLVER, max_generations=4)
    assert evolver.n2.tolist() == [0, 1, 4, 9] and evolver.options == {
        **EVOLVER, "lambda_": Q, "sigma": 0.01, "max_generations": 4, "threshold": 1e-6,
    }
    assert evolver.generation == 0 and evolver.history == pytest.approx([0.8653840969630858], rel=1e-12)
    report = evolver.step()
    assert (report.generation, report.winner[0], report.is_accepted, report.is_converged) == (1, 2, True, False)
    assert report.best_syntony == pytest.approx(0.9498561748020578, rel=1e-12) == report.winner[1] == evolver.best_syntony
    assert (evolver.best.a.tolist(), evolver.best.b.tolist()) == ([-5, 10, -10, 0], [4, -6, 6, 0])
    evolver.save(tmp_path / "state.evolver")
    again = srt.Evolver.restore(tmp_path / "state.evolver", device="cpu")
    assert again.options == evolver.options and repr(again) == repr(evolver)
    reports = []
    assert evolver.run(reports.append) == again.run() == "generation_limit"
    assert [report.generation for report in reports] == [2, 3, 4] and evolver.history == again.history
    assert evolver.best.a.equal(again.best.a) and evolver.best.b.equal(again.best.b)
    still = srt.Evolver(snapped(), **{**EVOLVER, "mutation_scale": 0.0, "sigma": 0.0, "bound": 0})
    assert still.run() == "converged" and still.is_converged
    assert srt.Evolver(snapped(), np.array([0.0, 1.0, 4.0, 9.0])).run(lambda report: report.generation < 2) == "stopped"


def test_a_fitness_decides_and_its_exceptions_end_a_run():
    seen = []

    def fitness(values):
        seen.append(values.shape)
        return np.array([0.0, 1000.0])

    assert srt.Evolver(snapped(), **EVOLVER, fitness=fitness).step().generation == 1 and seen == [(2, 4)]

    def fails(values):
        raise KeyError("no fitness")

    evolver = srt.Evolver(snapped(), **EVOLVER, fitness=fails)
    with pytest.raises(KeyError, match="no fitness"):
        evolver.run()
    assert evolver.generation == 0
    own = []
    own.append(srt.Evolver(snapped(), **EVOLVER, fitness=lambda values: own[0].history))
    with pytest.raises(sv.ArgumentError, match="its own fitness"):
        own[0].step()
    with pytest.raises(sv.Error, match="fitness"):
        srt.Evolver(snapped(), **EVOLVER, fitness=lambda values: np.zeros(3)).step()
    with pytest.raises(ZeroDivisionError):
        srt.Evolver(snapped(), **EVOLVER).run(lambda report: 1 / 0)
    with pytest.raises(sv.ArgumentError, match="population"):
        srt.Evolver(snapped(), population=0)


def test_roots_project_to_two_parts_whose_form_is_their_difference():
    counts = {name: srt.e8_roots(name).shape for name in ["all", "positive", "pair_cone", "null_cone", "e6"]}
    assert counts == {"all": (240, 8), "positive": (120, 8), "pair_cone": (40, 8), "null_cone": (36, 8), "e6": (72, 8)}
    roots = srt.e8_roots("all")
    parallel, perpendicular = srt.project_e8(roots)
    difference = parallel.square().sum(1) - perpendicular.square().sum(1)
    np.testing.assert_allclose(srt.quadratic_form(roots).numpy(), difference.numpy(), atol=1e-12)
    assert srt.e8_quantize(roots).equal(roots) and srt.e8_weights(240).equal(roots)


def test_phases_and_syntony_agree_with_each_other():
    v, noise = sv.Tensor(A), sv.zeros((3, 3), "f64")
    s = srt.syntony(v, N2)
    assert s.shape == (3,)
    rows = srt.h_phase_batch(v, N2, s)
    for row in range(3):
        np.testing.assert_allclose(rows[row].numpy(), srt.h_phase(v[row], N2, s[row].item()).numpy(), rtol=1e-12)
    d = srt.resonant_d_phase(v, N2, noise, 0.5, 0.1)
    np.testing.assert_allclose(d.numpy(), srt.resonant_d_phase_batch(v, N2, noise, sv.full((3,), 0.5, "f64"), 0.1).numpy())
    index, value = srt.argmax_syntony(s)
    assert value.item() == s.max().item() == s[index.item()].item()
    points, syntony = srt.harmonize_and_crystallize(v[0], N2, 0.5, 16)
    assert points.a.shape == (3,) and 0 <= syntony.item() <= 1


def test_running_statistics_follow_the_batches():
    running = srt.RunningStatistics(3, momentum=0.5)
    srt.golden_batch_norm_1d(A, running=running)
    np.testing.assert_allclose(running.mean.numpy(), A.mean(0) / 2)
    np.testing.assert_allclose(running.variance.numpy(), (1 + A.var(0)) / 2)
    wanted = (A - running.mean.numpy()) / np.sqrt(running.variance.numpy() + 1e-5)
    np.testing.assert_allclose(running.normalize(A, "standard").numpy(), wanted)


def test_noise_follows_from_the_seed():
    assert srt.gauss(7, 0, (4,)).equal(srt.gauss(7, 0, 6)[:4])
    uniform = srt.uniform_noise(7, 0, "open_at_zero", (1000,))
    assert 0 < uniform.min().item() and uniform.max().item() <= 1 and srt.noise_words(7, 0, 3).dtype == sv.u64


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: srt.mm(A, B, "slow"), ValueError, '"slow"; wanted one of ["fast", "exact"]'),
        (lambda: srt.mm(A, B, 3), TypeError, "mode"),
        (lambda: srt.mm(A, "b"), TypeError, "a selvedge.Tensor or an array"),
        (lambda: srt.mm(A, B[:2]), ValueError, "mm"),
        (lambda: srt.pisano(0), ValueError, "0"),
        (lambda: srt.snap_distance(A, A), TypeError, "a GoldenTensor"),
        (lambda: srt.golden_layer_norm(A, -1.0), ValueError, "above 0"),
        (lambda: srt.fibonacci(200), ArithmeticError, "200"),
    ],
)
def test_bad_arguments_are_exceptions(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert message in str(raised.value) and isinstance(raised.value, sv.Error)


def test_symbolic_expressions_evaluate_rows():
    of = srt.SymExpr
    x, y = of.input(0), of.input(1)
    assert str(x / Fraction(1, 2) + 1) == "((x0 / (1/2)) + 1)"
    assert str(of(6) / 4) == "3/2" and str(2 - of(srt.GoldenExact(1, 2))) == "(2 - (1 + 2 φ))"
    assert abs((of.PI.exp() - of.PI).evaluate() - srt.ESTAR) <= 4e-15
    q = (2 * of.PHI + of.E / (2 * of.PHI**2)) / (of.PHI**4 * of.ESTAR)
    assert abs(q.evaluate() - srt.Q_DEFICIT) <= 1e-17 and of.Q.evaluate() == srt.Q_DEFICIT
    f = x.gamma() ** Fraction(1, 3) - y.sin() * y.cos() + (-x).exp().ln()
    assert (f.slots, (x + y).node_count) == (2, 3)
    rows = [[1.5, 0.25], [4.0, -2.0]]
    wanted = [math.gamma(a) ** (1 / 3) - math.sin(b) * math.cos(b) - a for a, b in rows]
    found = f.run_rows(sv.Tensor(rows, dtype=sv.float64)).tolist()
    assert found == pytest.approx(wanted, rel=1e-13) and found == [f.evaluate(row) for row in rows]
    with pytest.raises(ValueError):
        f.run_rows(sv.Tensor([[1.0]], dtype=sv.float64))
    with pytest.raises(TypeError):
        x + 0.5
    with pytest.raises(TypeError):
        of("x")
