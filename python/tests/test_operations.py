"""Operators, indexing, reductions and methods against NumPy."""

import operator
import re

import numpy as np
import pytest
import selvedge as sv

X = np.arange(24, dtype="f8").reshape(2, 3, 4) - 7
INTEGERS = np.arange(1, 13).reshape(3, 4)


def check(tensor, wanted):
    wanted = np.asarray(wanted)
    assert tensor.shape == wanted.shape
    np.testing.assert_allclose(tensor.numpy(), wanted, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "le", "gt", "ge"])
def test_operators_work_with_tensors_numbers_and_arrays_on_either_side(name):
    function = getattr(operator, name)
    x, y = np.array([1.5, 2, 4]), np.array([2.0, 2, 0.5])
    a, b = sv.Tensor(x), sv.Tensor(y)
    for left, right, wanted in [
        (a, b, function(x, y)),
        (a, 2.5, function(x, 2.5)),
        (2, b, function(2, y)),
        (x, b, function(x, y)),
        (a, y, function(x, y)),
        (np.float64(3), b, function(3, y)),
    ]:
        check(function(left, right), wanted)


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "lshift", "rshift"])
def test_operators_of_bits_are_numpys(name):
    function = getattr(operator, name)
    check(function(sv.Tensor(INTEGERS), 2), function(INTEGERS, 2))
    check(function(2, sv.Tensor(INTEGERS)), function(2, INTEGERS))


def test_unary_operators_are_numpys():
    check(-sv.Tensor(X), -X)
    check(+sv.Tensor(X), X)
    check(abs(sv.Tensor(X)), abs(X))
    check(~sv.Tensor(INTEGERS), ~INTEGERS)
    check(sv.Tensor(INTEGERS) @ sv.Tensor(INTEGERS.T), INTEGERS @ INTEGERS.T)


def test_in_place_operators_keep_the_object_and_no_other_tensor_sees_them():
    x = sv.Tensor([1.0, 2.0])
    same, view = x, x[:]
    x += 1
    x *= sv.Tensor([2.0, 3.0])
    x -= x
    x **= 2
    assert same is x and x.tolist() == [0, 0] and view.tolist() == [1, 2]


def test_operands_that_are_no_numbers_are_refused():
    x = sv.Tensor([1, 2])
    for call in [lambda: x + "a", lambda: [] - x, lambda: x < None, lambda: x.add("a"), lambda: x @ 2]:
        with pytest.raises(TypeError):
            call()
    assert (x == "a") is False and x != None
    with pytest.raises(ValueError, match="do not broadcast"):
        x + sv.Tensor([1, 2, 3])
    with pytest.raises(ValueError, match="at most 64 bits"):
        x.add(10**40)


INDICES = [
    0, -1, slice(1, None), slice(None, None, -1), slice(10**30), None, ..., (0, 1), (slice(None), 1), (..., 0), (0, ..., None),
    (slice(None), slice(None, None, 2)), [0, 0, 1], [], ([0, 1], [1, 2]), (slice(None), [2, 0]), (0, [1, 2]), X > 0,
    (slice(None), np.array([True, False, True])), np.array([[0, 1], [1, 0]]), (np.int64(1), 2, 3), (0, slice(None), [1, 1]),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing_and_assignment_are_numpys(index):
    check(sv.Tensor(X)[index], X[index])
    for values in [5.5, X[index] * 2 + 1]:
        tensor, wanted = sv.Tensor(X), X.copy()
        tensor[index] = values
        wanted[index] = values
        check(tensor, wanted)


def test_masks_and_indices_of_tensors_select():
    x = sv.Tensor(X)
    check(x[x > 3], X[X > 3])
    check(x[:, sv.Tensor([2, 1])], X[:, [2, 1]])
    x[x < 0] = 0
    check(x, np.maximum(X, 0))
    x[0, 0] = [1, 2, 3, 4]
    assert x[0, 0].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "index, error",
    [(2, IndexError), ((0, -4), IndexError), (2**63, IndexError), (-(2**70), IndexError), ((0, 2**70), IndexError), (np.uint64(2**63), IndexError), ((0, 0, 0, 0), ValueError), ("a", TypeError), (1.5, TypeError), (True, TypeError), ([5], IndexError), (slice(None, None, 0), ValueError), ((..., ...), ValueError), ([[0], [1, 2]], ValueError)],
    ids=str,
)
def test_bad_indices_are_exceptions(index, error):
    x = sv.Tensor(X)
    with pytest.raises(error):
        x[index]
    with pytest.raises(error):
        x[index] = 1
    check(x, X)


@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "argmin", "argmax", "any", "all", "mean", "count_nonzero"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_reductions_are_numpys(name, axis):
    if name.startswith("arg") and isinstance(axis, tuple):
        pytest.skip("NumPy has one axis")
    function = getattr(np, name)
    check(getattr(sv.Tensor(X), name)(axis=axis), function(X, axis=axis))
    check(getattr(sv.Tensor(X), name)(axis, keepdim=True), function(X, axis=axis, keepdims=True))


def test_statistics_scans_and_sorting_are_numpys():
    x = sv.Tensor(X)
    check(x.std(0), X.std(0, ddof=1))
    check(x.var(correction=0), X.var())
    check(x.norm(), np.linalg.norm(X))
    check(x.norm(1.0, axis=2), abs(X).sum(2))
    check(x.cumsum(1), X.cumsum(1))
    check(x.sort(axis=1, descending=True)[0], -np.sort(-X, 1))
    check(x.sorted(0), np.sort(X, 0))
    check(x.argsort(0), X.argsort(0))
    values, places = x.topk(2)
    check(values, np.sort(X)[..., :-3:-1])
    check(places, np.argsort(X)[..., :-3:-1])
    check(x.quantile(0.5, axis=0), np.quantile(X, 0.5, axis=0))
    check(x.unique(), np.unique(X))
    with pytest.raises(ValueError, match="axis 5"):
        x.sum(axis=5)


def test_rows_are_normalised():
    x = sv.Tensor(X)
    exponentials = np.exp(X - X.max(-1, keepdims=True))
    check(x.softmax(), exponentials / exponentials.sum(-1, keepdims=True))
    check(x.log_softmax(0).exp().sum(0), np.ones((3, 4)))
    check(x.layer_norm(4, eps=0.0), (X - X.mean(-1, keepdims=True)) / X.std(-1, keepdims=True))
    check(x.layer_norm((4,), weight=sv.ones(4, "f64"), bias=np.ones(4)).mean(), 1)


def test_attention_has_pytorchs_keywords_and_ours():
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((2, heads, 5, 4)) for heads in (4, 2, 2))

    def wanted(reads, scale=0.5, soft_cap=None):
        scores = scale * q @ np.repeat(k, 2, 1).swapaxes(-1, -2)
        if soft_cap:
            scores = soft_cap * np.tanh(scores / soft_cap)
        weights = np.exp(scores) * reads
        total = weights.sum(-1, keepdims=True)
        return weights @ np.repeat(v, 2, 1) / np.where(total == 0, 1, total)

    at = np.arange(5)
    distance = at[:, None] - at
    Q, K, V = (sv.Tensor(x) for x in (q, k, v))
    attention = Q.scaled_dot_product_attention
    check(attention(K, V), wanted(distance == distance))
    check(attention(key=K, value=V, is_causal=True, enable_gqa=True), wanted(distance >= 0))
    check(attention(K, V, is_causal=True, scale=0.1, soft_cap=0.3), wanted(distance >= 0, 0.1, 0.3))
    check(attention(K, V, window=(1, None)), wanted(distance <= 1))
    check(attention(K, V, attn_mask=distance >= 1), wanted(distance >= 1))
    shorter = at < np.array([2, 0])[:, None, None, None]
    check(attention(K, V, key_lengths=sv.Tensor([2, 0])), wanted(shorter))
    check(attention(K, V, query_lengths=sv.Tensor([2, 0])), wanted(distance == distance) * shorter.swapaxes(-1, -2))
    one = [x[:1] for x in (Q, K, V)]
    packed = one[0].scaled_dot_product_attention(*one[1:], query_offsets=(0, 2, 5), key_offsets=(0, 3, 5))
    check(packed, wanted((at[:, None] < 2) == (at < 3))[:1])
    assert attention(K, V, dropout_p=1.0).tolist() == np.zeros((2, 4, 5, 4)).tolist()
    draws = [attention(K, V, dropout_p=0.5, generator=sv.Generator(1)).tolist() for _ in range(2)]
    assert draws[0] == draws[1]
    for text, arguments in [
        ("4, 5, 4", {"enable_gqa": False}),
        ("-1", {"window": (-1, 0)}),
        ("soft cap of 0", {"soft_cap": 0.0}),
        ("dropout of 2", {"dropout_p": 2.0}),
        ("lengths and offsets", {"key_lengths": sv.Tensor([1, 1]), "key_offsets": (0, 1)}),
        ("offsets of one side", {"query_offsets": (0, 5)}),
        ("length of 6", {"key_lengths": sv.Tensor([6, 1])}),
    ]:
        with pytest.raises(ValueError, match=text):
            attention(K, V, **arguments)


def test_shapes_are_numpys():
    x = sv.Tensor(X)
    for found, wanted in [
        (x.reshape(4, -1), X.reshape(4, -1)),
        (x.reshape((6, 4)), X.reshape(6, 4)),
        (x.transpose(0, 1), X.swapaxes(0, 1)),
        (x.T, X.T),
        (x.mT, X.swapaxes(-2, -1)),
        (x.permute(2, 0, 1), X.transpose(2, 0, 1)),
        (x.unsqueeze(0).squeeze(), X),
        (x.flip((0, 1)), np.flip(X, (0, 1))),
        (x.flatten(1), X.reshape(2, 12)),
        (x[:, :1].expand(2, 3, 4), np.broadcast_to(X[:, :1], X.shape)),
        (x.repeat(1, 2, 1), np.tile(X, (1, 2, 1))),
        (x.pad([(0, 0), (1, 0)], value=3), np.pad(X, [(0, 0), (1, 0), (0, 0)], constant_values=3)),
        (x.roll(1, 0), np.roll(X, 1, 0)),
        (x[0].tril(), np.tril(X[0])),
        (sv.cat([x, X], axis=1), np.concatenate([X, X], 1)),
        (sv.stack([x, x], -1), np.stack([X, X], -1)),
        (sv.where(x > 0, x, -1), np.where(X > 0, X, -1)),
        (sv.cat(x.split([1, 2], axis=1), 1), X),
    ]:
        check(found, wanted)
    for bad in [lambda: x.reshape(5, 5), lambda: x.transpose(0, 9), lambda: sv.cat([]), lambda: x.pad([(1, 1)], mode="odd")]:
        with pytest.raises(ValueError):
            bad()


def test_tensors_are_created_as_in_numpy():
    for found, wanted in [
        (sv.zeros((2, 3)), np.zeros((2, 3), "f4")),
        (sv.ones(2, "i8"), np.ones(2, "i1")),
        (sv.full((2,), 7), np.full(2, 7)),
        (sv.full(2, 1j), np.full(2, 1j, "c8")),
        (sv.arange(5), np.arange(5)),
        (sv.arange(1, 2, 0.25), np.arange(1, 2, 0.25, "f4")),
        (sv.linspace(0, 1, 5, dtype="f64"), np.linspace(0, 1, 5)),
        (sv.eye(2, 3), np.eye(2, 3, dtype="f4")),
        (sv.full_like(sv.Tensor([1, 2]), 3), np.full(2, 3)),
    ]:
        assert found.numpy().dtype == wanted.dtype
        check(found, wanted)
    for bad in [lambda: sv.zeros(-1), lambda: sv.arange(1, 2, 0), lambda: sv.arange()]:
        with pytest.raises(ValueError):
            bad()


def test_segments_and_powers():
    x = sv.Tensor([1.0, 2.0, 3.0, 4.0])
    lengths = sv.Tensor([3, 0, 1])
    for reduction, wanted in [("sum", [6.0, 9.0, 4.0]), ("amax", [3.0, 9.0, 4.0]), ("mean", [2.0, 9.0, 4.0])]:
        assert x.segment_reduce(lengths, reduction, 9.0).tolist() == wanted, reduction
    with pytest.raises(sv.ArgumentError, match="segment_reduce: .*median"):
        x.segment_reduce(lengths, "median")
    assert sv.logspace(0, 3, 4).tolist() == [1.0, 10.0, 100.0, 1000.0]
    assert sv.logspace(0, 3, 4, 2.0, dtype="f64").tolist() == [1.0, 2.0, 4.0, 8.0]


def test_random_numbers_follow_from_the_seed():
    generator = sv.Generator(7)
    first = sv.randn((3, 4), "f64", generator=generator)
    state = generator.state
    second = sv.rand((5,), generator=generator)
    generator.set_state(state)
    assert sv.rand((5,), generator=generator).equal(second)
    assert sv.randn((3, 4), "f64", generator=sv.Generator(7)).equal(first)
    sv.manual_seed(3)
    drawn = sv.randint(0, 10, (50,))
    sv.manual_seed(3)
    assert sv.randint(0, 10, (50,)).equal(drawn) and 0 <= min(drawn.tolist()) <= max(drawn.tolist()) < 10
    assert sorted(sv.permutation(9).tolist()) == list(range(9))
    ones = sv.bernoulli(0.25, (1000,), "i32", generator=sv.Generator(1))
    assert ones.dtype == sv.i32 and 200 < ones.sum().item() < 300
    assert sv.bernoulli(sv.Tensor([0.0, 1.0]), (3, 2)).tolist() == [[0.0, 1.0]] * 3
    assert abs(sv.normal(5.0, 0.1, (1000,)).mean().item() - 5) < 0.1


# A method that the package leaves out, with the reason.
LEFT_OUT = set(
    # Constructors and files of Rust; axes that Python passes as arguments; checks that Python keeps; slices of Rust; training.
    "operation from_slice from_vec from_bytes to_bytes copy_to_bytes to_vec new from_ndarray to_ndarray layout rank count "
    "is_unique as_slice as_slice_mut device_slice device_slice_mut from_buffer from_pinned is_pinned into_buffer "
    "rows get slice squeeze_all gather_unchecked index_select_unchecked take_unchecked scatter_unchecked index index_assign in_place slice_mut with_output "
    "read_npy read_npy_file write_npy write_npy_with read_npz write_npz write_npz_compressed read_safetensors "
    "read_safetensors_with read_safetensors_tensor read_safetensors_tensor_with write_safetensors write_safetensors_with "
    "batch_norm_training clip_by_global_norm".split()
)


def test_every_method_of_rust_is_one_of_python(repository):
    page = (repository / "docs" / "tensor-methods.md").read_text()
    # Losses belong to training, which the package has not.
    page = re.sub(r"## Losses and gradients.*?(?=## )", "", page, flags=re.DOTALL)
    names = set(re.findall(r"`(\w+)`", page)) - {"Tensor"}
    missing = {
        name
        for name in names - LEFT_OUT
        if not (name.endswith(("_keepdim", "_all")) or hasattr(sv.Tensor, name) or hasattr(sv, name))
    }
    assert not missing, "bind them in python/src/tensor, or name them in LEFT_OUT"
    assert not {name for name in LEFT_OUT if name not in names}


def test_products_have_a_bias_an_activation_a_residual_and_a_dtype():
    a, b, residual = (np.random.default_rng(4).standard_normal(shape).astype("f4") for shape in [(3, 4), (4, 5), (3, 5)])
    x, y, product = sv.Tensor(a), sv.Tensor(b), a @ b
    relu = lambda z: np.maximum(z, 0)
    silu = lambda z: z / (1 + np.exp(-z))
    columns, rows = np.arange(5, dtype="f4") - 2, np.arange(3, dtype="f4").reshape(3, 1)
    for options, wanted in [
        ({}, product),
        ({"bias": columns}, product + columns),
        ({"bias": sv.Tensor(rows), "activation": "relu"}, relu(product + rows)),
        ({"activation": "silu", "residual": residual}, silu(product) + residual),
        ({"bias": columns, "activation": "relu", "residual": sv.Tensor(residual)}, relu(product + columns) + residual),
    ]:
        np.testing.assert_allclose(x.matmul(y, **options).numpy(), wanted, rtol=1e-5, atol=1e-5)
    gelu = x.matmul(y).cast("f64").gelu_tanh() if hasattr(x, "gelu_tanh") else None
    if gelu is not None:
        np.testing.assert_allclose(x.matmul(y, activation="gelu_tanh").numpy(), gelu.numpy(), atol=1e-5)
    half = x.cast("bf16").matmul(y.cast("bf16"), dtype="f32")
    assert half.dtype == sv.f32
    for options, error, message in [
        ({"activation": "tanh"}, sv.ArgumentError, "the activation \"tanh\"; wanted \"relu\", \"gelu_tanh\" or \"silu\""),
        ({"bias": columns[:3]}, sv.ArgumentError, "matmul"),
        ({"bias": columns.astype("f8")}, sv.DTypeError, "f64"),
        ({"dtype": "i32"}, sv.DTypeError, "i32"),
    ]:
        with pytest.raises(error, match=message):
            x.matmul(y, **options)
