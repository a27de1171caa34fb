"""Optimizers against their formulas, clipping, schedules, training steps with a function of Python, and models that learn."""

import gc
import weakref

import numpy as np
import pytest
import selvedge as sv
from selvedge import nn


def parameter(*numbers):
    return nn.Parameter(np.array(numbers))


def descend(optimizer, weight, steps):
    """Takes steps for the loss sum(weight^3), whose gradient is 3 weight^2."""
    for _ in range(steps):
        optimizer.zero_grad()
        (weight**3).sum().backward()
        optimizer.step()
    return weight.numpy()


def adam(weight, steps, lr, betas, eps, decay, is_decoupled):
    first, second = np.zeros_like(weight), np.zeros_like(weight)
    for step in range(1, steps + 1):
        gradient = 3 * weight**2
        if is_decoupled:
            weight = weight * (1 - lr * decay)
        else:
            gradient = gradient + decay * weight
        first = betas[0] * first + (1 - betas[0]) * gradient
        second = betas[1] * second + (1 - betas[1]) * gradient**2
        weight = weight - lr * (first / (1 - betas[0] ** step)) / (np.sqrt(second / (1 - betas[1] ** step)) + eps)
    return weight


def test_sgd_follows_its_formula():
    weight, velocity = np.array([1.0, -0.5, 0.3]), np.zeros(3)
    found = parameter(*weight)
    result = descend(nn.SGD([found], lr=0.1, momentum=0.9, weight_decay=0.01), found, 5)
    for _ in range(5):
        velocity = 0.9 * velocity + 3 * weight**2 + 0.01 * weight
        weight = weight - 0.1 * velocity
    np.testing.assert_allclose(result, weight, rtol=1e-12)


@pytest.mark.parametrize("class_, is_decoupled", [(nn.Adam, False), (nn.AdamW, True)])
def test_adams_follow_their_formula(class_, is_decoupled):
    weight = np.array([1.0, -0.5, 0.3])
    found = parameter(*weight)
    result = descend(class_([found], lr=0.05, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1), found, 6)
    np.testing.assert_allclose(result, adam(weight, 6, 0.05, (0.8, 0.95), 1e-6, 0.1, is_decoupled), rtol=1e-10)


def test_nesterov_momentum_follows_its_formula():
    weight, velocity = np.array([1.0, -0.5, 0.3]), np.zeros(3)
    found = parameter(*weight)
    result = descend(nn.SGD([found], lr=0.05, momentum=0.9, weight_decay=0.01, nesterov=True), found, 5)
    for _ in range(5):
        gradient = 3 * weight**2 + 0.01 * weight
        velocity = 0.9 * velocity + gradient
        weight = weight - 0.05 * (gradient + 0.9 * velocity)
    np.testing.assert_allclose(result, weight, rtol=1e-12)
    with pytest.raises(sv.ArgumentError, match="Nesterov"):
        nn.SGD([found], nesterov=True)


def test_lion_follows_its_formula():
    weight, momentum = np.array([1.0, -0.5, 0.3]), np.zeros(3)
    found = parameter(*weight)
    result = descend(nn.Lion([found], lr=0.05, betas=(0.8, 0.9), weight_decay=0.1), found, 6)
    for _ in range(6):
        gradient = 3 * weight**2
        weight = weight * (1 - 0.05 * 0.1) - 0.05 * np.sign(0.8 * momentum + 0.2 * gradient)
        momentum = 0.9 * momentum + 0.1 * gradient
    np.testing.assert_allclose(result, weight, rtol=1e-12)
    assert nn.Lion([found]).lr == 1e-4


def root_mean_square(x):
    return np.sqrt((x**2).mean())


@pytest.mark.parametrize("relative_step", [True, False])
@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 3, 2)])
def test_adafactor_follows_its_formula(shape, relative_step):
    weight = np.linspace(-1, 1.2, int(np.prod(shape))).reshape(shape)
    found = nn.Parameter(weight)
    optimizer = nn.Adafactor([found], lr=0.4, beta2_decay=-0.7, eps=(1e-6, 1e-2), d=1.5, weight_decay=0.1, relative_step=relative_step)
    result = descend(optimizer, found, 5)
    rows = columns = variance = 0.0
    for step in range(1, 6):
        gradient = 3 * weight**2
        share, size = step**-0.7, 0.4
        if relative_step:
            size = min(0.4, 1 / np.sqrt(step)) * max(1e-2, root_mean_square(weight))
        if len(shape) > 1:
            rows = (1 - share) * rows + share * (gradient**2).mean(-1, keepdims=True)
            columns = (1 - share) * columns + share * (gradient**2).mean(-2, keepdims=True)
            estimate = rows * columns / np.maximum(rows.mean(-2, keepdims=True), 1e-6)
        else:
            estimate = variance = (1 - share) * variance + share * gradient**2
        update = gradient / np.sqrt(np.maximum(estimate, 1e-12))
        weight = weight * (1 - 0.4 * 0.1) - size / max(1, root_mean_square(update) / 1.5) * update
    np.testing.assert_allclose(result, weight, rtol=1e-10)
    names = {"0.row_var", "0.col_var"} if len(shape) > 1 else {"0.variance"}
    assert set(optimizer.state_dict()) == names | {"0.step", "learning_rate"}
    for arguments, match in [({"d": 0.5}, "clipping"), ({"beta2_decay": 0.1}, "beta2_decay"), ({"eps": (-1.0, 1e-3)}, "eps")]:
        with pytest.raises(sv.ArgumentError, match=match):
            nn.Adafactor([found], **arguments)


# The results of torch.optim.Muon (PyTorch 2.15) from linspace(-1, 1.2, 12) by four steps of lr=0.1.
MUONS = [
    ((3, 4), {}, [-1.2622, -0.7974, -0.5707, -0.3976, -0.2072, -0.3468, 0.1751, 0.4047, 0.5535, 0.7771, 0.6559, 1.1529]),
    ((4, 3), {}, [-1.3116, -0.7655, -0.5743, -0.3787, -0.5428, -0.0312, 0.1692, 0.4059, 0.2081, 0.786, 0.9569, 1.1537]),
    (
        (4, 3), {"nesterov": False, "momentum": 0.5, "adjust_lr_fn": "match_rms_adamw"},
        [-1.0831, -0.7669, -0.5753, -0.3805, -0.3148, -0.0089, 0.1841, 0.3916, 0.4475, 0.7741, 0.959, 1.152],
    ),
    (
        (3, 4), {"adjust_lr_fn": "spectral_unclamped", "ns_coefficients": (3.0, -3.2, 1.2), "ns_steps": 3},
        [-1.2979, -0.7763, -0.5597, -0.402, -0.1847, -0.3309, 0.18, 0.4056, 0.5606, 0.7827, 0.625, 1.1533],
    ),
]


@pytest.mark.parametrize("shape, arguments, wanted", MUONS)
def test_muon_is_pytorchs(shape, arguments, wanted):
    weight = nn.Parameter(np.linspace(-1, 1.2, 12, dtype="f4").reshape(shape))
    optimizer = nn.Muon([weight], lr=0.1, **arguments)
    for step in range(4):
        optimizer.zero_grad()
        gradient = np.array([((at * 7 + step * 5 + 3) % 13) / 4 - 1.4 for at in range(12)]).reshape(shape) * 0.25 + 2 * np.eye(*shape)
        (weight * sv.Tensor(gradient.astype("f4"))).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(weight.numpy().ravel(), wanted, atol=2e-2, rtol=0)
    # Four steps of 0.1 move by more than the tolerance.
    assert np.abs(np.linspace(-1, 1.2, 12) - wanted).max() > 0.08
    assert set(optimizer.state_dict()) == {"0.momentum_buffer", "learning_rate"}


def test_muon_refuses_what_it_cannot_change():
    assert nn.Muon([nn.Parameter(np.ones((2, 2)))]).lr == 1e-3
    with pytest.raises(sv.ArgumentError, match=r"parameter 1 of shape \[3\]; wanted matrices; give other parameters to an AdamW"):
        nn.Muon([nn.Parameter(np.ones((2, 2))), parameter(1.0, 2.0, 3.0)])
    for arguments, match in [({"adjust_lr_fn": "other"}, "adjust_lr_fn"), ({"ns_steps": 100}, "100 Newton-Schulz steps"), ({"momentum": 1.0}, "momentum")]:
        with pytest.raises(sv.ArgumentError, match=match):
            nn.Muon([nn.Parameter(np.ones((2, 2)))], **arguments)


def test_a_pair_of_optimizers_is_one():
    model = nn.Sequential(nn.Linear(2, 3, initializer=nn.Initializer(seed=1)), nn.Tanh(), nn.Linear(3, 1, initializer=nn.Initializer(seed=2)))
    parameters = nn.Parameters(model)
    muon = nn.Muon([p for p in model.parameters() if p.ndim == 2], lr=0.1)
    adamw = nn.AdamW([p for p in model.parameters() if p.ndim != 2], lr=0.02)
    pair = nn.OptimizerPair(muon, adamw)
    step = nn.TrainingStep(parameters, pair, lambda x, y: nn.mse_loss(model(x), y))
    x, y = sv.Tensor([[0.5, 1.0], [-1.0, 0.25]], dtype="f32"), sv.Tensor([[1.0], [2.0]], dtype="f32")
    losses = [step(x, y).item() for _ in range(20)]
    assert losses[-1] < losses[0] / 4
    pair.lr = 0.05
    assert (pair.lr, muon.lr, adamw.lr) == (0.05, 0.05, 0.01)
    assert {name.split(".")[0] for name in pair.state_dict()} == {"first", "second"}
    assert int(pair.state_dict()["second.0.step"].item()) == int(adamw.state_dict()["0.step"].item()) == 20
    with pytest.raises(sv.ArgumentError, match="parameter 0 of the Muon as parameter 0 of the Muon"):
        nn.OptimizerPair(muon, muon)
    # The optimizers of a module watch over its parameters.
    first, second = nn.Linear(2, 2, bias=False), nn.Module()
    second.weight = nn.Parameter(np.ones((2, 2)))
    pair = nn.OptimizerPair(nn.Muon(first), nn.AdamW(second))
    second.weight = nn.Parameter(np.ones((2, 2)))
    with pytest.raises(sv.ArgumentError, match="the parameter 'weight'"):
        pair.step()


MAKERS = [
    lambda p: nn.SGD(p, lr=0.1, momentum=0.9), lambda p: nn.SGD(p, lr=0.1, momentum=0.9, nesterov=True), lambda p: nn.Adam(p, lr=0.1),
    lambda p: nn.AdamW(p, lr=0.1), lambda p: nn.Lion(p, lr=0.1), lambda p: nn.Adafactor(p, lr=0.1),
]


@pytest.mark.parametrize("make", MAKERS)
def test_states_continue_bit_for_bit(make, tmp_path):
    first = parameter(1.0, 2.0)
    optimizer = make([first])
    descend(optimizer, first, 3)
    second = parameter(*first.numpy())
    other = make([second])
    sv.io.save(tmp_path / "state.safetensors", optimizer.state_dict())
    other.load_state_dict(sv.io.load(tmp_path / "state.safetensors"))
    np.testing.assert_array_equal(descend(optimizer, first, 3), descend(other, second, 3))
    with pytest.raises(sv.ArgumentError, match="extra"):
        other.load_state_dict({**optimizer.state_dict(), "9.exp_avg": np.ones(2)})


def test_learning_rates_are_set_and_checked():
    weight = parameter(1.0)
    optimizer = nn.SGD([weight], lr=0.5)
    assert optimizer.lr == 0.5
    optimizer.lr = 0.0
    assert descend(optimizer, weight, 1) == [1]
    optimizer.lr = -1.0
    with pytest.raises(sv.ArgumentError, match="-1"):
        descend(optimizer, weight, 1)
    for call, match in [
        (lambda: nn.SGD([], lr=0.1), "no parameters"), (lambda: nn.Adam([weight], betas=(1.5, 0.9)), "1.5"),
        (lambda: nn.SGD([nn.Variable([1.0])]), "leaf|leaves|gradient"),
    ]:
        with pytest.raises(sv.ArgumentError, match=match):
            call()
    with pytest.raises(sv.DTypeError, match="parameters"):
        nn.SGD([1.0])
    frozen = parameter(2.0)
    assert descend(nn.SGD([weight, frozen], lr=0.1), weight, 1) is not None and frozen.tolist() == [2]


def test_clipping_scales_all_gradients():
    a, b = parameter(1.0, 2.0), parameter(3.0)
    (a * sv.Tensor(np.array([3.0, 0.0])) + b * 4.0 / 2.0).sum().backward()
    norm = np.sqrt(9 + 16)
    assert nn.clip_grad_norm_([a, b], 1.0).item() == pytest.approx(norm)
    np.testing.assert_allclose(a.grad.numpy(), [3 / norm, 0], rtol=1e-6)
    np.testing.assert_allclose(b.grad.numpy(), [4 / norm], rtol=1e-6)
    assert nn.clip_grad_norm_([a, b], 10.0).item() == pytest.approx(1.0) and a.grad.numpy()[0] == pytest.approx(0.6)
    with pytest.raises(sv.ArgumentError, match="max_norm"):
        nn.clip_grad_norm_([a], -1.0)


def test_schedules_warm_up_and_fall():
    shapes = {name: nn.LearningRateSchedule(name, 2.0, minimum=1.0, warmup_steps=4, total_steps=24) for name in ["cosine", "constant", "linear", "wsd"]}
    for schedule in shapes.values():
        assert [schedule(step) for step in range(4)] == [0.5, 1, 1.5, 2]
    assert shapes["constant"](100) == 2 and all(shapes[name](24) == 1 for name in ["cosine", "linear", "wsd"])
    assert shapes["linear"](14) == 1.5 and shapes["cosine"](14) == pytest.approx(1.5) and shapes["wsd"](19) == 2
    steps = nn.LearningRateSchedule("step", 2.0, step_size=10, gamma=0.5)
    assert [steps(step) for step in [0, 9, 10, 20]] == [2, 2, 1, 0.5]
    cycle = nn.LearningRateSchedule("onecycle", 2.0, warmup_steps=5, total_steps=21, div_factor=4.0)
    assert cycle(0) == pytest.approx(0.5) and cycle(2) == pytest.approx(1.25) and cycle(4) == 2
    assert cycle(12) == pytest.approx(1.0) and cycle(20) == 0
    for call, match in [
        (lambda: nn.LearningRateSchedule("stairs", 1.0), '"stairs"'), (lambda: nn.LearningRateSchedule("step", 1.0), "step_size"),
        (lambda: nn.LearningRateSchedule("cosine", 1.0, gamma=0.5), "gamma"),
        (lambda: nn.LearningRateSchedule("step", 1.0, step_size=3, gamma=-0.5), "-0.5"),
        (lambda: nn.LearningRateSchedule("onecycle", 1.0, div_factor=0.0), "div_factor"),
        (lambda: nn.LearningRateSchedule("linear", -1.0), "-1"),
    ]:
        with pytest.raises(sv.ArgumentError, match=match):
            call()


class Mlp(nn.Module):
    def __init__(self, seed):
        super().__init__()
        initializer = nn.Initializer(seed=seed)
        self.hidden = nn.Linear(2, 16, initializer=initializer)
        self.out = nn.Linear(16, 1, initializer=initializer)

    def forward(self, x):
        return self.out(self.hidden(x).tanh())


XOR = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], "f4"), np.array([[0], [1], [1], [0]], "f4")


def loop(model, steps, lr=0.05):
    parameters, losses = nn.Parameters(model), []
    optimizer = nn.AdamW(parameters, lr=lr, weight_decay=0.0)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.mse_loss(model(XOR[0]), XOR[1])
        loss.backward()
        nn.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_an_mlp_learns_xor():
    model = Mlp(1)
    losses = loop(model, 150)
    assert losses[-1] < 1e-3 < losses[0]
    np.testing.assert_allclose(model(XOR[0]).numpy(), XOR[1], atol=0.1)


def test_a_training_step_has_the_bits_of_a_loop():
    wanted, model = Mlp(2), Mlp(2)
    losses = loop(wanted, 10)
    parameters = nn.Parameters(model)
    assert [name for name, _ in parameters.named_parameters()] == [name for name, _ in model.named_parameters()]
    assert len(parameters) == 4
    optimizer = nn.AdamW(parameters, lr=0.05, weight_decay=0.0)
    step = nn.TrainingStep(parameters, optimizer, lambda x, y: nn.mse_loss(model(x), y), max_norm=1.0)
    found = [step(*XOR).item() for _ in range(10)]
    assert found == losses and not step.is_skipped and step.loss_scale is None
    assert not step.is_captured and step.uncaptured_reason == "the step runs on the CPU"
    assert step.grad_norm.item() > 0
    for name, tensor in model.state_dict().items():
        assert tensor.equal(wanted.state_dict()[name])
    optimizer.lr = 0.0
    before = model.state_dict()
    step(*XOR)
    assert all(tensor.equal(before[name]) for name, tensor in model.state_dict().items())


def test_an_exception_of_the_loss_leaves_the_model_and_the_optimizer():
    model, is_broken = Mlp(3), [False]
    parameters = nn.Parameters(model)
    optimizer = nn.Adam(parameters, lr=0.05)

    def loss(x, y):
        found = nn.mse_loss(model(x), y)
        if is_broken[0]:
            raise LookupError("the loss")
        return found

    step = nn.TrainingStep(parameters, optimizer, loss)
    step(*XOR)
    before = {**model.state_dict(), **optimizer.state_dict()}
    is_broken[0] = True
    for _ in range(2):
        with pytest.raises(LookupError, match="the loss"):
            step(*XOR)
    after = {**model.state_dict(), **optimizer.state_dict()}
    assert before.keys() == after.keys() and all(after[name].equal(tensor) for name, tensor in before.items())
    is_broken[0] = False
    step(*XOR)
    wrong = nn.TrainingStep(parameters, optimizer, lambda x: 1.0)
    with pytest.raises(sv.DTypeError, match="TrainingStep wants a loss, a selvedge.nn.Variable, but found float"):
        wrong(XOR[0])
    other = nn.SGD(Mlp(1))
    with pytest.raises(sv.ArgumentError, match="parameter 0 of the optimizer"):
        nn.TrainingStep(parameters, other, loss)
    with pytest.raises(sv.ArgumentError, match="in a buffer already"):
        nn.Parameters(model)


def test_a_loss_may_not_use_its_own_step():
    model = Mlp(1)
    parameters = nn.Parameters(model)
    optimizer = nn.SGD(parameters, lr=0.1)

    def loss(x, y):
        optimizer.lr = 0.05
        assert use() is not None
        return nn.mse_loss(model(x), y)

    step = nn.TrainingStep(parameters, optimizer, loss)
    for use in [lambda: step(*XOR), lambda: step.grad_norm, lambda: step.is_captured, lambda: step.state_dict()]:
        with pytest.raises(sv.ArgumentError, match="a use of the step within its loss"):
            step(*XOR)
    use = lambda: 1
    assert step(*XOR).shape == () and optimizer.lr == 0.05


def test_a_constant_parameter_stays():
    model = Mlp(1)
    model.factor = nn.Parameter(sv.full((1,), 2.0), requires_grad=False)
    optimizer = nn.SGD(model, lr=0.1)
    (model(XOR[0]) * model.factor).sum().backward()
    before = model.state_dict()
    optimizer.step()
    after = model.state_dict()
    assert after["factor"].tolist() == [2] and not after["out.bias"].equal(before["out.bias"])


@pytest.mark.parametrize("of", [lambda model: model, nn.Parameters])
def test_a_parameter_that_was_replaced_is_named(of):
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.kept, self.weight = nn.Parameter([1.0]), nn.Parameter([2.0])

        def forward(self, x):
            return x * self.weight * self.kept

    model = Scale()
    optimizer = nn.SGD(of(model), lr=0.1)
    model(sv.ones(1, dtype="f64")).backward()
    optimizer.step()
    model.weight = nn.Parameter([3.0])
    model(sv.ones(1, dtype="f64")).backward()
    before = model.kept.tolist()
    with pytest.raises(sv.ArgumentError, match="the parameter 'weight', which the module got after the optimizer was made"):
        optimizer.step()
    assert model.kept.tolist() == before
    del model
    gc.collect()
    optimizer.step()


def test_a_training_step_names_a_parameter_that_was_replaced():
    model = Mlp(1)
    parameters = nn.Parameters(model)
    step = nn.TrainingStep(parameters, nn.Lion(parameters, lr=0.01), lambda x, y: nn.mse_loss(model(x), y))
    step(*XOR)
    model.hidden = nn.Linear(2, 16)
    before = model.state_dict()
    with pytest.raises(sv.ArgumentError, match="the parameter 'hidden.weight', which the module got after the optimizer was made"):
        step(*XOR)
    assert all(tensor.equal(before[name]) for name, tensor in model.state_dict().items())


def test_loss_scales_skip_steps_that_overflow():
    weight = nn.Parameter(sv.ones(2, dtype="f16"))
    model = nn.Module()
    model.weight = weight
    parameters = nn.Parameters(model)
    step = nn.TrainingStep(parameters, nn.SGD(parameters, lr=0.5), lambda x: (weight * x).sum(), loss_scale="dynamic")
    assert step.loss_scale == 65536
    step(sv.full((2,), 4.0, dtype="f16"))
    assert step.is_skipped and weight.tolist() == [1, 1] and step.loss_scale == 32768
    fixed = nn.TrainingStep(parameters, nn.SGD(parameters, lr=0.5), lambda x: (weight * x).sum(), loss_scale=8.0)
    fixed.load_state_dict(fixed.state_dict())
    fixed(sv.ones(2, dtype="f16"))
    assert weight.tolist() == [0.5, 0.5] and fixed.loss_scale == 8
    with pytest.raises(sv.ArgumentError, match='the loss scale "static"'):
        nn.TrainingStep(parameters, nn.SGD(parameters), lambda x: x, loss_scale="static")


class Gpt(nn.Module):
    def __init__(self, symbols, length, width):
        super().__init__()
        initializer = nn.Initializer(seed=1, weights=("normal", 0.1))
        self.tokens = nn.Embedding(symbols, width, initializer=initializer)
        self.positions = nn.Parameter(sv.zeros(length, width))
        self.blocks = [nn.TransformerBlock(width, 2, is_causal=True, initializer=initializer) for _ in range(2)]
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        # The head shares the table.
        return self.norm(x) @ self.tokens.weight.T


def test_a_small_gpt_learns_a_sequence():
    ids = np.arange(40) * 7 % 11
    model = Gpt(11, 12, 32)
    optimizer = nn.AdamW(model, lr=1e-2)
    for step in range(60):
        start = step * 5 % 24
        inputs, targets = ids[start : start + 12][None].copy(), ids[start + 1 : start + 13].copy()
        optimizer.zero_grad()
        loss = nn.cross_entropy(model(inputs)[0], targets)
        loss.backward()
        optimizer.step()
        if step == 0:
            assert 1.5 < loss.item() < 4
    assert loss.item() < 0.05
    with nn.no_grad():
        assert model(ids[:12][None].copy())[0].data.argmax(-1).tolist() == ids[1:13].tolist()


def test_modules_and_steps_are_freed():
    model = Mlp(1)
    parameters = nn.Parameters(model)
    step = nn.TrainingStep(parameters, nn.SGD(parameters), lambda x, y: nn.mse_loss(model(x), y))
    step(*XOR)
    reference = weakref.ref(model)
    del model, parameters, step
    gc.collect()
    assert reference() is None
