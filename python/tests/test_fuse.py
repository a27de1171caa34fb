"""Functions that are traced in Python and run as one kernel, against NumPy."""

import numpy as np
import pytest
import selvedge as sv

X = np.array([[1.5, -2.0, 0.25], [4.0, 8.0, -1.0]])
ROW = np.array([2.0, 0.5, -3.0])


def check(tensor, wanted):
    np.testing.assert_allclose(tensor.numpy(), wanted, rtol=1e-6)
    assert tensor.shape == np.shape(wanted)


@pytest.mark.parametrize(
    "function, wanted",
    [
        (lambda x, y: (x * y + 1).relu(), lambda x, y: np.maximum(x * y + 1, 0)),
        (lambda x, y: 2 - x / y, lambda x, y: 2 - x / y),
        (lambda x, y: (x ** 2 + abs(y)).sqrt(), lambda x, y: np.sqrt(x ** 2 + abs(y))),
        (lambda x, y: sv.where(x > y, x, -y), lambda x, y: np.where(x > y, x, -y)),
        (lambda x, y: sv.where(x < 0, 0.5, y), lambda x, y: np.where(x < 0, 0.5, y)),
        (lambda x, y: ~(x == y) | (x >= 1), lambda x, y: ~(x == y) | (x >= 1)),
        (lambda x, y: x.clamp(-1, y) % 3, lambda x, y: np.minimum(np.maximum(x, -1), y) % 3),
        (lambda x, y: 3 ** x.maximum(y), lambda x, y: 3 ** np.maximum(x, y)),
        (lambda x, y: x.cast("i32") + y.astype("f64"), lambda x, y: x.astype("i4") + y),
        (lambda x, y: +x + x * 0 + y * 0, lambda x, y: x + y * 0),
    ],
)
def test_a_traced_function_is_numpys(function, wanted):
    fused = sv.fuse(function)
    check(fused(sv.Tensor(X), sv.Tensor(ROW)), wanted(X, ROW))
    check(fused(X, sv.Tensor(ROW)), wanted(X, ROW))
    check(fused(sv.Tensor(X), 2.0), wanted(X, np.full(3, 2.0)))


def test_a_decorator_traces_once_for_each_number_of_operands_and_keeps_the_function():
    calls = []

    @sv.fuse
    def total(*operands):
        calls.append(len(operands))
        return sum(operands[1:], operands[0])

    for dtype in ["f32", "f64", "i64", "c64"]:
        x = sv.Tensor(X).cast(dtype)
        assert total(x, x).equal(x + x) and total(x, x).dtype == x.dtype
        assert total(x, x, 1).equal(x + x + 1)
    assert calls == [2, 3]
    assert total.__wrapped__(1, 2) == 3 and "total" in repr(total)


def test_a_tuple_of_results_is_one_kernel():
    deviations = sv.fuse(lambda x, mean: (x - mean, (x - mean).square()))
    deviation, square = deviations(sv.Tensor(X), 0.5)
    check(deviation, X - 0.5)
    check(square, (X - 0.5) ** 2)
    text = deviations.explain(sv.Tensor(X), 0.5)
    assert text.count(".visible .entry") == 1 and ".target" in text


def test_integers_that_a_dtype_lacks_are_compared_by_value():
    below = sv.fuse(lambda x, limit: x < limit)
    assert below(sv.Tensor([1, 255], dtype="u8"), 300).tolist() == [True, True]
    assert below(sv.Tensor([1, 255], dtype="u8"), 255).tolist() == [True, False]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: sv.fuse(3), TypeError, "found int"),
        (lambda x: sv.fuse(lambda x: 1)(x), TypeError, "wants an expression"),
        (lambda x: sv.fuse(lambda x: x if x > 0 else -x)(x), TypeError, "selvedge.where"),
        (lambda x: sv.fuse(lambda y: y.add(x))(x), TypeError, "pass tensors as arguments"),
        (lambda x: sv.fuse(lambda y: y + x)(x), TypeError, "unsupported operand"),
        (lambda x: sv.fuse(lambda x: x + 1)(2), ValueError, "no tensors"),
        (lambda x: sv.fuse(lambda x, y: x)(x), TypeError, "missing 1 required positional"),
        (lambda x: sv.fuse(lambda x: x & 1)(x), TypeError, "bit_and"),
        (lambda x: sv.fuse(lambda x: ())(x), ValueError, "no expressions"),
        (lambda x: sv.fuse(lambda *x: x[0])(*[x] * 65), ValueError, "at most 63"),
    ],
)
def test_functions_that_cannot_be_fused_are_exceptions(call, error, message):
    with pytest.raises(error) as raised:
        call(sv.Tensor(X))
    assert message in str(raised.value)


def test_an_exception_of_the_function_passes_through():
    def broken(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sv.fuse(broken)(sv.Tensor(X))
