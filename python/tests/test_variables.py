"""`selvedge.nn.Variable`: results are those of tensors, gradients those of central differences, and errors name both sides."""

import threading

import numpy as np
import pytest
import selvedge as sv
from selvedge import nn

H = 1e-6


def samples(seed, *shape):
    return np.random.default_rng(seed).uniform(0.2, 0.9, shape)


def check(function, *arrays, tolerance=1e-6):
    """Compares the gradients of sum(w f(arrays)) with central differences, and the values with those of tensors."""
    leaves = [nn.Variable(array, requires_grad=True) for array in arrays]
    result = function(*leaves)
    weights = samples(99, *result.shape)
    result.backward(sv.Tensor(weights))

    def loss(arrays):
        with nn.no_grad():
            return float((function(*(nn.Variable(array) for array in arrays)).numpy() * weights).sum())

    for place, leaf in enumerate(leaves):
        wanted = np.zeros_like(arrays[place])
        for at in np.ndindex(*arrays[place].shape):
            sides = []
            for step in [H, -H]:
                moved = [array.copy() for array in arrays]
                moved[place][at] += step
                sides.append(loss(moved))
            wanted[at] = (sides[0] - sides[1]) / (2 * H)
        np.testing.assert_allclose(leaf.grad.numpy(), wanted, rtol=tolerance, atol=tolerance)


UNARY = (
    "neg abs sqrt rsqrt reciprocal square relu exp exp2 expm1 log log2 log10 log1p sinh cosh tanh asinh atanh sigmoid silu softplus sin cos "
    "tan asin acos atan sinc cbrt erf erfc gelu gelu_tanh lgamma logit radians degrees"
).split()


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_operand(name):
    x = samples(1, 2, 3)
    np.testing.assert_array_equal(getattr(nn.Variable(x), name)().numpy(), getattr(sv.Tensor(x), name)().numpy())
    check(lambda x: getattr(x, name)(), x)


@pytest.mark.parametrize("name", "add sub mul div minimum maximum hypot atan2 pow log_add_exp xlogy xlog1py copysign".split())
def test_functions_of_two_operands(name):
    x, y = samples(1, 2, 3), samples(2, 3)
    wanted = getattr(sv.Tensor(x), name)(sv.Tensor(y)).numpy()
    for other in [nn.Variable(y), sv.Tensor(y), y]:
        np.testing.assert_array_equal(getattr(nn.Variable(x), name)(other).numpy(), wanted)
    check(lambda x, y: getattr(x, name)(y), x, y)


OPERATORS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b, "**": lambda a, b: a**b,
    "%": lambda a, b: a % b, "//": lambda a, b: a // b,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_take_variables_tensors_arrays_and_numbers_on_both_sides(name):
    function, x, y = OPERATORS[name], samples(1, 2, 3), samples(2, 2, 3)
    wanted = function(x, y)
    for left, right in [
        (nn.Variable(x), nn.Variable(y)), (nn.Variable(x), sv.Tensor(y)), (sv.Tensor(x), nn.Variable(y)), (nn.Variable(x), y), (x, nn.Variable(y)),
    ]:
        found = function(left, right)
        assert type(found) is nn.Variable
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-14)
    np.testing.assert_allclose(function(nn.Variable(x), 3).numpy(), function(x, 3), rtol=1e-14)
    np.testing.assert_allclose(function(3, nn.Variable(x)).numpy(), function(3, x), rtol=1e-14)
    if name != "//":
        check(function, x, y)
        check(lambda x: function(2.5, x), x)
        check(lambda x: function(x, 2.5), x)


def test_comparisons_are_bools_without_gradients():
    x = nn.Variable([1.0, 2.0, 3.0], requires_grad=True)
    for found, wanted in [(x < 2, [1, 0, 0]), (x <= 2, [1, 1, 0]), (x > 2, [0, 0, 1]), (x >= 2, [0, 1, 1]), (x == 2, [0, 1, 0]), (x != 2, [1, 0, 1])]:
        assert found.dtype == sv.bool and found.tolist() == [bool(number) for number in wanted] and not found.requires_grad
    assert bool(x[0] < x[1]) and float(x[2]) == 3.0 and int(x[2]) == 3 and len(x) == 3
    assert [item.item() for item in x] == [1, 2, 3]
    with pytest.raises(sv.ArgumentError, match="a variable of 3 elements"):
        bool(x)


REDUCTIONS = "sum prod mean max min logsumexp var std norm".split()


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_reductions(name, axis):
    x = samples(3, 2, 3, 4)
    for keywords in [{"axis": axis}, {"dim": axis, "keepdim": True}]:
        found, wanted = getattr(nn.Variable(x), name)(**keywords), getattr(sv.Tensor(x), name)(**keywords)
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    check(lambda x: getattr(x, name)(axis=axis), x)


SHAPES = {
    "reshape": lambda x: x.reshape(4, -1), "flatten": lambda x: x.flatten(1), "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "transpose": lambda x: x.transpose(0, 2), "T": lambda x: x.T, "mT": lambda x: x.mT, "permute": lambda x: x.permute(2, 0, 1),
    "t": lambda x: x[0].t(), "unsqueeze": lambda x: x.unsqueeze(1), "squeeze": lambda x: x[:1].squeeze(0), "squeeze all": lambda x: x[:1].squeeze(),
    "movedim": lambda x: x.movedim(0, 2), "flip": lambda x: x.flip((0, 2)), "roll": lambda x: x.roll(1, dims=1),
    "expand": lambda x: x.unsqueeze(0).expand(5, 2, 3, 4), "narrow": lambda x: x.narrow(2, 1, 2), "select": lambda x: x.select(1, -1),
    "diagonal": lambda x: x.diagonal(1, 1, 2), "repeat": lambda x: x.repeat(2, 1, 1), "tril": lambda x: x.tril(), "triu": lambda x: x.triu(1),
    "pad": lambda x: x.pad([(1, 0), (0, 0), (2, 1)]), "pad by reflection": lambda x: x.pad([(0, 0), (1, 1), (2, 1)], mode="reflect"),
    "split": lambda x: x.split([1, 2], dim=1)[1], "chunk": lambda x: x.chunk(2, dim=2)[0], "unbind": lambda x: x.unbind(1)[2],
    "cumsum": lambda x: x.cumsum(1), "cumprod": lambda x: x.cumprod(2), "softmax": lambda x: x.softmax(1), "log_softmax": lambda x: x.log_softmax(),
    "sort": lambda x: x.sort(1)[0], "topk": lambda x: x.topk(2)[0], "clamp": lambda x: x.clamp(0.3, 0.7), "clamp min": lambda x: x.clamp(min=0.5),
    "masked_fill": lambda x: x.masked_fill(np.arange(4) % 2 == 0, -1.0), "masked_select": lambda x: x.masked_select(np.arange(4) > 1),
    "index_select": lambda x: x.index_select(1, sv.Tensor([2, 0, 2])), "take": lambda x: x.take(sv.Tensor([3, 3, 1])),
    "gather": lambda x: x.gather(1, sv.Tensor(np.zeros((2, 2, 4), "i8"))), "take_along_axis": lambda x: x.take_along_axis(0, sv.Tensor(np.ones((1, 3, 4), "i8"))),
    "layer_norm": lambda x: x.layer_norm(4), "rms_norm": lambda x: x.rms_norm((3, 4), eps=1e-3),
    "position": lambda x: x[1], "slices": lambda x: x[:, ::-1, 1:3], "ellipsis": lambda x: x[..., None, 0], "array": lambda x: x[:, [2, 0, 2]],
    "arrays": lambda x: x[[0, 1], :, [1, 1]], "mask": lambda x: x[np.arange(24).reshape(2, 3, 4) % 3 == 0],
}


@pytest.mark.parametrize("name", SHAPES)
def test_operations_that_move_elements(name):
    x = samples(4, 2, 3, 4)
    np.testing.assert_array_equal(SHAPES[name](nn.Variable(x)).numpy(), SHAPES[name](sv.Tensor(x)).numpy())
    check(SHAPES[name], x)


def test_operations_of_several_variables():
    a, b, c = samples(5, 2, 3), samples(6, 3, 4), samples(7, 2, 3)
    np.testing.assert_allclose((nn.Variable(a) @ nn.Variable(b)).numpy(), a @ b)
    np.testing.assert_allclose((a @ nn.Variable(b)).numpy(), a @ b)
    check(lambda a, b: a @ b, a, b)
    check(lambda a, c: nn.cat([a, c, a], dim=1), a, c)
    check(lambda a, c: nn.stack([a, c], 1), a, c)
    check(lambda a, c: (a > c).choose(a, c * 2), a, c)
    check(lambda a, weight, bias: a.layer_norm(3, weight, bias), a, samples(8, 3), samples(9, 3), tolerance=1e-5)
    check(lambda table: table.embedding(sv.Tensor([[1, 0], [1, 1]])), a)
    check(lambda a, c: a.index_add(1, sv.Tensor([2, 2, 0]), c), a, c)
    check(lambda a, c: a.scatter_add(1, sv.Tensor(np.ones((2, 3), "i8")), c), a, c)
    assert nn.cat([nn.Variable(a), sv.Tensor(c)], 0).shape == (4, 3)


@pytest.mark.parametrize("keywords", [{}, {"is_causal": True}, {"scale": 0.5}, {"window": (1, 0)}])
def test_attention(keywords):
    query, key, value = samples(1, 1, 4, 3, 2), samples(2, 1, 2, 3, 2), samples(3, 1, 2, 3, 2)
    found = nn.scaled_dot_product_attention(query, key, value, **keywords)
    wanted = sv.Tensor(query).scaled_dot_product_attention(sv.Tensor(key), sv.Tensor(value), **keywords)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)
    check(lambda *inputs: nn.scaled_dot_product_attention(*inputs, **keywords), query, key, value)


LOSSES = {
    "mse_loss": lambda x, t: (x - t) ** 2,
    "binary_cross_entropy": lambda x, t: -t * np.log(x) - (1 - t) * np.log(1 - x),
    "binary_cross_entropy_with_logits": lambda x, t: np.log1p(np.exp(x)) - t * x,
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_equal_shapes(name):
    function, x, target = getattr(nn, name), samples(1, 3, 2), samples(2, 3, 2)
    wanted = LOSSES[name](x, target)
    for reduction, of in [("none", lambda losses: losses), ("mean", np.mean), ("sum", np.sum)]:
        np.testing.assert_allclose(function(x, target, reduction).numpy(), of(wanted), rtol=1e-12)
        check(lambda x: function(x, target, reduction=reduction), x)
    with pytest.raises(sv.ArgumentError, match='the reduction "average"'):
        function(x, target, "average")
    with pytest.raises(sv.ArgumentError, match=r"\[3, 2\].*\[2\]"):
        function(x, target[0])


def test_losses_of_classes():
    x, labels = samples(1, 4, 3) * 3, np.array([2, 0, -100, 1])
    log = x - np.log(np.exp(x).sum(1, keepdims=True))
    each = np.array([-log[0, 2], -log[1, 0], 0, -log[3, 1]])
    np.testing.assert_allclose(nn.cross_entropy(x, labels).numpy(), each.sum() / 3)
    np.testing.assert_allclose(nn.cross_entropy(x, labels, reduction="none").numpy(), each)
    np.testing.assert_allclose(nn.nll_loss(log, labels).numpy(), each.sum() / 3)
    kept = labels >= 0
    smooth = (0.9 * each + 0.1 * -log.mean(1))[kept].mean()
    np.testing.assert_allclose(nn.cross_entropy(x, labels, label_smoothing=0.1).numpy(), smooth)
    check(lambda x: nn.cross_entropy(x, labels, label_smoothing=0.1), x)
    check(lambda x: nn.nll_loss(x.log_softmax(1), labels), x)
    rows, weight = samples(2, 4, 5), samples(3, 5, 3)
    wanted = nn.cross_entropy(rows @ weight, labels).item()
    assert nn.linear_cross_entropy(rows, weight, labels).item() == pytest.approx(wanted)
    check(lambda rows, weight: nn.linear_cross_entropy(rows, weight, labels), rows, weight)
    target = samples(4, 4, 3)
    target /= target.sum(1, keepdims=True)
    wanted = (target * (np.log(target) - log)).sum() / 4
    assert nn.kl_div(log, target, "batchmean").item() == pytest.approx(wanted)
    assert nn.kl_div(log, np.log(target), "batchmean", log_target=True).item() == pytest.approx(wanted)


def test_gradients_of_gradients():
    x = nn.Variable([1.0, 2.0], requires_grad=True)
    y = nn.Variable([3.0, 4.0], requires_grad=True)
    loss = (x**3 * y).sum()
    of_x, of_y = nn.grad(loss, [x, y], create_graph=True)
    np.testing.assert_allclose(of_x.numpy(), [9, 48])
    np.testing.assert_allclose(of_y.numpy(), [1, 8])
    assert of_x.requires_grad and x.grad is None
    (second,) = nn.grad(of_x.sum(), x, create_graph=True)
    np.testing.assert_allclose(second.numpy(), [18, 48])
    np.testing.assert_allclose(nn.grad(second.sum(), x)[0].numpy(), [18, 24])
    (mixed,) = nn.grad(of_x, y, grad_output=sv.Tensor([1.0, 10.0]))
    np.testing.assert_allclose(mixed.numpy(), [3, 120])
    assert not nn.grad(loss, x)[0].requires_grad
    of_x.sum().backward(retain_graph=True)
    np.testing.assert_allclose(x.grad.numpy(), [18, 48])
    with pytest.raises(sv.Error, match="requires no gradient"):
        nn.grad(loss, nn.Variable([1.0]))
    with pytest.raises(sv.DTypeError, match="inputs"):
        nn.grad(loss, [1.0])


def test_backwards_add_up_and_free_what_they_saved():
    x = nn.Variable([2.0], requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8]
    with pytest.raises(sv.Error, match="an earlier backward has freed"):
        y.backward()
    assert x.grad.tolist() == [8]
    x.zero_grad()
    assert x.grad is None
    (x * 3).backward()
    x.grad = None
    assert x.grad is None
    with pytest.raises(sv.DTypeError, match="wants None"):
        x.grad = sv.Tensor([1.0])
    with pytest.raises(sv.Error, match="requires one"):
        nn.Variable([1.0]).backward()
    with pytest.raises(sv.Error, match="without a gradient"):
        (nn.Variable([1.0, 2.0], requires_grad=True) * 2).backward()
    with pytest.raises(sv.DTypeError, match="floats or complex"):
        nn.Variable([1, 2], requires_grad=True)


def test_variables_share_a_tensors_elements_and_copy_into_theirs():
    tensor = sv.Tensor([1.0, 2.0])
    x = nn.Variable(tensor, requires_grad=True)
    assert x.dtype == tensor.dtype and x.data.data_ptr() == tensor.data_ptr() and x.detach().data.data_ptr() == tensor.data_ptr()
    assert not x.detach().requires_grad and x.is_leaf and not (x * 2).is_leaf
    with pytest.raises(sv.ArgumentError, match="no_grad"):
        x.copy_(sv.Tensor([3.0, 4.0]))
    with nn.no_grad():
        assert x.copy_(sv.Tensor([3.0, 4.0])) is x
    assert x.tolist() == [3, 4] and tensor.tolist() == [1, 2]
    y = x * x
    with nn.no_grad():
        x.copy_(sv.Tensor([5.0, 6.0]))
    with pytest.raises(sv.Error, match="mul.*changed"):
        y.sum().backward()
    half = x.to("f16")
    assert half.dtype == sv.f16 and x.cast("f64").dtype == x.to(dtype="f64").dtype == sv.f64 and x.to("cpu", dtype="f16").dtype == sv.f16
    half.sum().backward()
    assert x.grad.dtype == x.dtype and x.grad.tolist() == [1, 1]
    with pytest.raises(sv.ArgumentError, match="two dtypes"):
        x.to("f16", dtype="f16")


def test_no_grad_is_a_context_and_a_decorator_of_functions_and_methods():
    x = nn.Variable([1.0], requires_grad=True)

    class Counter:
        factor = 2

        @nn.no_grad()
        def twice(self, value):
            """Doubles."""
            return value * self.factor

    @nn.no_grad()
    def half(value):
        return value / 2

    assert not half(x).requires_grad and not Counter().twice(x).requires_grad
    assert half.__name__ == "half" and Counter.twice.__doc__ == "Doubles." and half(x).item() == 0.5
    with nn.no_grad():
        with nn.no_grad():
            assert not nn.is_grad_enabled()
        assert not nn.is_grad_enabled() and not (x * 2).requires_grad
        seen = []
        thread = threading.Thread(target=lambda: seen.append(nn.is_grad_enabled()))
        thread.start()
        thread.join()
        assert seen == [True]
    with pytest.raises(ZeroDivisionError), nn.no_grad():
        1 / 0
    assert nn.is_grad_enabled()


def test_checkpoints_compute_again_and_have_the_same_gradients():
    calls = []

    def function(x, y):
        calls.append(1)
        return (x * y).exp()

    x, y = nn.Variable(samples(1, 3), requires_grad=True), nn.Variable(samples(2, 3), requires_grad=True)
    function(x, y).sum().backward()
    wanted = x.grad.numpy()
    x.zero_grad()
    calls.clear()
    result = nn.checkpoint(function, x, y).sum()
    assert len(calls) == 1
    result.backward()
    assert len(calls) == 2
    np.testing.assert_array_equal(x.grad.numpy(), wanted)

    def broken(x):
        raise LookupError("of the function")

    with pytest.raises(LookupError, match="of the function"):
        nn.checkpoint(broken, x)


def test_backwards_run_in_threads(in_threads):
    weight = samples(1, 8, 8)

    def work():
        for _ in range(20):
            x = nn.Variable(weight, requires_grad=True)
            (x @ x).sum().backward()
            np.testing.assert_allclose(x.grad.numpy(), weight.sum(1)[None, :] + weight.sum(0)[:, None])

    in_threads(work)


def test_operands_of_other_types_are_refused():
    x = nn.Variable([1.0], requires_grad=True)
    for call in [lambda: x + "a", lambda: x @ 3, lambda: x.add(object()), lambda: x[object()], lambda: x["a"]]:
        with pytest.raises(TypeError):
            call()
    with pytest.raises(sv.ArgumentError, match="both axis and dim"):
        x.sum(axis=0, dim=0)
    with pytest.raises(IndexError):
        x[3]
