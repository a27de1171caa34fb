"""`selvedge.nn.Module` and the layers: parameters by attribute, state dicts, modes, hooks, and results against NumPy."""

import numpy as np
import pytest
import selvedge as sv
from selvedge import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)
        self.scale = nn.Parameter(sv.ones(width))
        self.count = nn.Buffer(sv.zeros(()))

    def forward(self, x):
        return x + self.linear(self.norm(x)) * self.scale


class Model(nn.Module):
    def __init__(self, width=4):
        self.blocks = [Block(width) for _ in range(2)]
        self.heads = {"a": nn.Linear(width, 1, bias=False), 3: "no name"}
        self.dropout = nn.Dropout(0.5, generator=sv.Generator(1))
        self.name = "model"

    def forward(self, x, head="a"):
        for block in self.blocks:
            x = block(x)
        return self.heads[head](self.dropout(x))


def numpy_of(module):
    return {name: tensor.numpy() for name, tensor in module.state_dict().items()}


def test_parameters_buffers_and_modules_are_found_by_attribute():
    model = Model()
    block = ["norm.weight", "norm.bias", "linear.weight", "linear.bias", "scale"]
    wanted = [f"blocks.{place}.{name}" for place in range(2) for name in block] + ["heads.a.weight"]
    assert [name for name, _ in model.named_parameters()] == wanted
    assert [name for name, _ in model.named_buffers()] == ["blocks.0.count", "blocks.1.count"]
    assert set(model.state_dict()) == {*wanted, "blocks.0.count", "blocks.1.count"}
    assert [name for name, _ in model.named_modules()][:4] == ["", "blocks.0", "blocks.0.norm", "blocks.0.linear"]
    assert len(model.parameters()) == len(wanted) and all(type(parameter) is nn.Parameter for parameter in model.parameters())
    assert model.parameters()[4] is model.blocks[0].scale
    # An assignment counts at once.
    model.blocks.append(Block(4))
    del model.heads["a"]
    assert len(model.parameters()) == 15
    assert repr(Block(2)).startswith("Block(norm.weight: [2], ")


def test_forward_is_called_with_all_arguments_and_gradients_reach_every_parameter():
    model = Model().eval()
    result = model(sv.randn(3, 4), head="a")
    assert result.shape == (3, 1)
    result.square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    model.zero_grad()
    assert all(parameter.grad is None for parameter in model.parameters())


def test_modules_that_cannot_be_are_refused():
    class Shared(nn.Module):
        weight = nn.Parameter(sv.ones(2))

    class Empty(nn.Module):
        pass

    class Forgotten(nn.Linear):
        def __init__(self, width):
            self.width = width

    with pytest.raises(sv.ArgumentError, match="Parameter 'weight' as an attribute of the class Shared; wanted an attribute of the object"):
        Shared().parameters()
    with pytest.raises(sv.ArgumentError, match="the class Empty without it"):
        Empty()(1)
    with pytest.raises(sv.ArgumentError, match=r"super\(\).__init__"):
        Forgotten(3)(sv.ones(1, 3))
    loop = Empty()
    loop.inner = Empty()
    loop.inner.outer = loop
    with pytest.raises(sv.ArgumentError, match="'inner.outer', which contains itself"):
        loop.parameters()
    with pytest.raises(sv.DTypeError, match="str as module 1"):
        nn.Sequential(nn.ReLU(), "relu")
    with pytest.raises(sv.DTypeError, match="2 arguments"):
        nn.ReLU()(sv.ones(1), sv.ones(1))
    with pytest.raises(AttributeError):
        nn.Linear(2, 2).weight = nn.Parameter(sv.ones(2, 2))
    with pytest.raises(sv.ArgumentError, match="found an initializer and a device or a dtype"):
        nn.Linear(2, 2, initializer=nn.Initializer(), dtype="f64")
    with pytest.raises(sv.ArgumentError, match=r"\[1, 3\].*\[2, 2\]"):
        nn.Linear(2, 2)(sv.ones(1, 3))
    with pytest.raises(TypeError):
        nn.Linear(2)


def test_state_dicts_come_from_arrays_and_tensors_and_name_every_fault():
    first, second = Model(), Model()
    entries = numpy_of(first)
    second.load_state_dict(entries)
    for name, tensor in second.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), entries[name])
    second.load_state_dict(first.state_dict())
    second.load_state_dict(dict(first.named_parameters() + first.named_buffers()))
    before = numpy_of(second)
    bad = {**entries, "extra": np.ones(1), "blocks.0.scale": np.ones(3), "blocks.1.scale": np.full(4, 7.0)}
    del bad["blocks.0.norm.bias"]
    with pytest.raises(sv.ArgumentError) as raised:
        second.load_state_dict(bad)
    for text in ["'blocks.0.norm.bias' is missing", "'extra' is extra", "'blocks.0.scale' has shape [3] in place of [4]"]:
        assert text in str(raised.value)
    for name, array in numpy_of(second).items():
        np.testing.assert_array_equal(array, before[name])
    with pytest.raises(sv.DTypeError, match="a dict of tensors by name"):
        second.load_state_dict([1])


def test_state_dicts_are_snapshots():
    layer = nn.Linear(2, 2)
    state = layer.state_dict()
    before = state["weight"].numpy()
    with nn.no_grad():
        layer.weight.copy_(sv.zeros(2, 2))
    np.testing.assert_array_equal(state["weight"].numpy(), before)
    assert layer.weight.tolist() == [[0, 0], [0, 0]]


def test_modes_reach_every_module():
    model = nn.Sequential(Model(), nn.Sequential(nn.Dropout(0.5)))
    assert model.training and model.eval() is model
    assert not any(module.training for _, module in model.named_modules())
    x = sv.randn(3, 4)
    assert model(x).data.equal(model(x).data)
    assert model.train() is model and all(module.training for _, module in model.named_modules())
    dropout = nn.Dropout(0.5, generator=sv.Generator(3))
    kept = dropout(sv.ones(1000)).numpy()
    assert set(kept) == {0, 2} and 400 < (kept == 0).sum() < 600
    assert dropout.train(False)(sv.ones(4)).tolist() == [1] * 4


def test_hooks_see_and_replace_results():
    layer, seen = nn.Linear(2, 3), []
    model = nn.Sequential(layer, nn.ReLU())
    x = sv.ones(1, 2)
    plain = model(x).numpy()
    handle = layer.register_forward_hook(lambda module, inputs, result: seen.append((module, len(inputs), result.shape)))
    double = layer.register_forward_hook(lambda module, inputs, result: result * 2)
    np.testing.assert_allclose(model(x).numpy(), plain * 2, rtol=1e-6)
    assert seen == [(layer, 1, (1, 3))]
    handle.remove()
    double.remove()
    double.remove()
    np.testing.assert_array_equal(model(x).numpy(), plain)
    assert len(seen) == 1


def test_subclasses_of_layers_have_arguments_and_a_forward_of_their_own():
    class Square(nn.Linear):
        def __init__(self, width, factor):
            super().__init__(width, width, bias=False)
            self.factor = nn.Parameter(sv.full((1,), factor))

        def forward(self, x):
            return super().forward(x) * self.factor

    layer = Square(3, 2.0)
    x = np.ones((1, 3), "f4")
    wanted = x @ layer.weight.numpy() * 2
    np.testing.assert_allclose(layer(x).numpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(nn.Sequential(layer, nn.ReLU())[0](x).numpy(), wanted, rtol=1e-6)
    first = nn.Linear(3, 3)
    np.testing.assert_allclose(nn.Sequential(first, layer)(x).numpy(), layer(first(x)).numpy(), rtol=1e-6)
    assert list(layer.state_dict()) == ["factor", "weight"] and layer.bias is None


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_layers_have_the_results_of_numpy():
    initializer = nn.Initializer(seed=3, dtype="f64", weights=("normal", 0.5))
    x = np.random.default_rng(1).normal(size=(2, 3, 4))
    close = lambda layer, wanted: np.testing.assert_allclose(layer(x).numpy(), wanted, rtol=1e-9, atol=1e-9)
    linear = nn.Linear(4, 5, initializer=initializer)
    close(linear, x @ linear.weight.numpy() + linear.bias.numpy())
    norm = nn.LayerNorm(4, dtype="f64")
    close(norm, (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5))
    close(nn.RMSNorm((4,), eps=0.1, dtype="f64"), x / np.sqrt((x**2).mean(-1, keepdims=True) + 0.1))
    close(nn.ReLU(), np.maximum(x, 0))
    close(nn.GELU(approximate="tanh"), gelu(x))
    close(nn.SiLU(), x / (1 + np.exp(-x)))
    close(nn.Tanh(), np.tanh(x))
    close(nn.Sigmoid(), 1 / (1 + np.exp(-x)))
    table = nn.Embedding(5, 2)
    np.testing.assert_array_equal(table(sv.Tensor([[4, 0]])).numpy(), table.weight.numpy()[[[4, 0]]])
    feed = nn.FeedForward(4, hidden=6, initializer=initializer)
    state = numpy_of(feed)
    close(feed, gelu(x @ state["c_fc.weight"] + state["c_fc.bias"]) @ state["c_proj.weight"] + state["c_proj.bias"])
    attention = nn.MultiHeadAttention(4, 2, is_causal=True, initializer=initializer)
    state = numpy_of(attention)
    packed = (x @ state["c_attn.weight"] + state["c_attn.bias"]).reshape(2, 3, 6, 2).transpose(0, 2, 1, 3)
    query, key, value = packed[:, :2], packed[:, 2:4], packed[:, 4:]
    scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(2) + np.triu(np.full((3, 3), -np.inf), 1)
    mixed = (softmax(scores) @ value).transpose(0, 2, 1, 3).reshape(2, 3, 4)
    close(attention, mixed @ state["c_proj.weight"] + state["c_proj.bias"])
    block = nn.TransformerBlock(4, 2, is_causal=True, initializer=initializer)
    assert [name for name, _ in block.named_parameters()][:3] == ["ln_1.weight", "ln_1.bias", "attn.c_attn.weight"]
    assert block(x).shape == (2, 3, 4)
    with pytest.raises(sv.ArgumentError, match='the activation "swish"'):
        nn.FeedForward(4, activation="swish")
    with pytest.raises(sv.ArgumentError, match="3 heads of a width of 4"):
        nn.MultiHeadAttention(4, 3)


def test_batch_norms_keep_running_statistics():
    x = np.random.default_rng(2).normal(2, 3, size=(8, 3))
    norm = nn.BatchNorm1d(3, momentum=0.5, dtype="f64")
    np.testing.assert_allclose(norm(x).numpy(), (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5))
    buffers = {name: buffer.numpy() for name, buffer in norm.named_buffers()}
    np.testing.assert_allclose(buffers["running_mean"], 0.5 * x.mean(0))
    np.testing.assert_allclose(buffers["running_var"], 0.5 + 0.5 * x.var(0, ddof=1))
    assert buffers["num_batches_tracked"] == 1
    norm.eval()
    np.testing.assert_allclose(norm(x).numpy(), (x - buffers["running_mean"]) / np.sqrt(buffers["running_var"] + 1e-5))
    assert nn.BatchNorm2d(3)(sv.randn(2, 3, 4, 4)).shape == (2, 3, 4, 4)


def test_sequentials_join_layers_and_name_the_layer_of_an_error():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    x = np.ones((5, 3), "f4")
    state = numpy_of(model)
    hidden = np.maximum(x @ state["0.weight"] + state["0.bias"], 0)
    np.testing.assert_allclose(model(x).numpy(), hidden @ state["2.weight"] + state["2.bias"], rtol=1e-5)
    assert len(model) == 3 and type(model[1]) is nn.ReLU and model[-1] is model[2] and len(list(model)) == 3
    with pytest.raises(IndexError):
        model[3]
    with pytest.raises(sv.ArgumentError, match="in layer 1"):
        nn.Sequential(nn.ReLU(), nn.Linear(4, 2))(x)


def test_exceptions_of_a_forward_pass_through_layers_of_rust():
    class Failing(nn.Module):
        def forward(self, x):
            raise KeyError("from the forward")

    class Wrong(nn.Module):
        def forward(self, x):
            return "text"

    with pytest.raises(KeyError, match="from the forward"):
        nn.Sequential(nn.Linear(2, 2), Failing())(sv.ones(1, 2))
    with pytest.raises(sv.DTypeError, match="str"):
        nn.Sequential(nn.Linear(2, 2), Wrong())(sv.ones(1, 2))


def test_initializers_set_seeds_dtypes_and_distributions():
    layers = [nn.Linear(300, 200, initializer=nn.Initializer(seed=5)) for _ in range(2)]
    assert layers[0].weight.data.equal(layers[1].weight.data)
    bound = np.sqrt(2 / 300)
    assert abs(layers[0].weight.numpy()).max() == pytest.approx(bound, rel=1e-3)
    for weights, deviation in [
        (("normal", 0.02), 0.02), (("uniform", 0.3), 0.3 / np.sqrt(3)), ("xavier_normal", np.sqrt(2 / 500)), (("kaiming_normal", 2.0), 2 / np.sqrt(300)),
    ]:
        weight = nn.Linear(300, 200, initializer=nn.Initializer(seed=1, weights=weights)).weight
        assert weight.numpy().std() == pytest.approx(deviation, rel=0.02)
    mixed = nn.Linear(3, 2, initializer=nn.Initializer(compute_dtype="bf16"))
    assert mixed.weight.dtype == sv.f32 and mixed(sv.ones(1, 3)).dtype == sv.bf16
    assert nn.Linear(3, 2, dtype="f64").weight.dtype == sv.f64
    for wrong in ["normal", ("fan_in", 2.0), "orthogonal"]:
        with pytest.raises(sv.ArgumentError, match="weights"):
            nn.Initializer(weights=wrong)
    with pytest.raises(sv.ArgumentError, match="both seed and generator"):
        nn.Initializer(seed=1, generator=sv.Generator(1))
