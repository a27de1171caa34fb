"""The namespace of the array API standard, with array-api-strict as reference."""

import inspect

import numpy as np
import pytest
import selvedge as sv

strict = pytest.importorskip("array_api_strict", reason="pip could not install array-api-strict")
xp = sv.Tensor(1).__array_namespace__()

X = [[1.5, -2.0, 0.25], [4.0, 0.0, -1.0]]
U = [[0.5, 0.25, 1.0], [0.125, 0.75, 0.9]]
I = [[1, 5, -3], [2, 2, 7]]
P = [[1, 5, 3], [2, 2, 7]]
B = [[True, False, True], [False, False, True]]
Z = [[1 + 2j, -0.5j, 3.0 + 0j], [-1 + 1j, 2.0 + 0j, 1j]]
D = {"x": (X, "float64"), "u": (U, "float64"), "i": (I, "int64"), "p": (P, "int32"), "b": (B, "bool"), "z": (Z, "complex128"), "f": (U, "float32"), "n": (P, "uint8")}

UNARY = {
    "abs": "xizfpn", "acos": "u", "acosh": "", "asin": "u", "asinh": "xz", "atan": "xf", "atanh": "", "bitwise_invert": "ibn",
    "ceil": "xi", "conj": "z", "cos": "xzf", "cosh": "xzf", "exp": "xzf", "expm1": "xfz", "floor": "xi", "imag": "z", "isfinite": "xiz",
    "isinf": "xz", "isnan": "xiz", "log": "uz", "log10": "u", "log1p": "uz", "log2": "u", "logical_not": "b", "negative": "xiz",
    "positive": "xiz", "real": "z", "reciprocal": "u", "round": "xiz", "sign": "xizn", "signbit": "x", "sin": "xz", "sinh": "xz", "sqrt": "u",
    "square": "xizn", "tan": "x", "tanh": "xf", "trunc": "xi",
}
BINARY = {
    "add": "x,x i,p z,x n,n", "atan2": "x,u", "bitwise_and": "i,p b,b", "bitwise_left_shift": "p,p", "bitwise_or": "i,p b,b",
    "bitwise_right_shift": "i,p", "bitwise_xor": "i,p b,b", "copysign": "u,x", "divide": "x,u z,z f,f", "equal": "x,u i,p b,b z,z",
    "floor_divide": "x,u i,p", "greater": "x,u i,p", "greater_equal": "x,u", "hypot": "x,u", "less": "x,u i,p", "less_equal": "x,u",
    "logaddexp": "x,u", "logical_and": "b,b", "logical_or": "b,b", "logical_xor": "b,b", "maximum": "x,u i,p", "minimum": "x,u i,p",
    "multiply": "x,u i,p z,z", "nextafter": "x,u", "not_equal": "x,u i,p", "pow": "u,x p,p", "remainder": "x,u i,p", "subtract": "x,u i,p z,x",
}


def assigned(x, key, value):
    """Returns x after `x[key] = value`."""
    x[key] = value
    return x


# The operands by letter, and a call of the namespace.
CALLS = [
    ("", lambda m: m.arange(5)), ("", lambda m: m.arange(1, 6, 2)), ("", lambda m: m.arange(0.0, 1.0, 0.25)),
    ("", lambda m: m.linspace(0, 1, 5)), ("", lambda m: m.linspace(0, 1, 4, endpoint=False)),
    ("", lambda m: m.zeros((2, 3))), ("", lambda m: m.ones(3, dtype=m.int16)), ("", lambda m: m.full((2,), 7)),
    ("", lambda m: m.full((2,), 1.5)), ("", lambda m: m.full((2,), True)), ("", lambda m: m.eye(3)), ("", lambda m: m.eye(2, 4, k=1)),
    ("", lambda m: m.eye(3, k=-1, dtype=m.int8)), ("", lambda m: m.asarray([1, 2.5])), ("", lambda m: m.empty((2, 3)) * 0 == 1),
    ("x", lambda m, x: m.zeros_like(x)), ("i", lambda m, x: m.ones_like(x)), ("i", lambda m, x: m.full_like(x, 3)),
    ("x", lambda m, x: m.empty_like(x, dtype=m.int32) == m.empty_like(x, dtype=m.int32)),
    ("x", lambda m, x: m.meshgrid(x[0, :], x[1, :])[0]), ("x", lambda m, x: m.meshgrid(x[0, :], x[1, :2], indexing="ij")[1]),
    ("x", lambda m, x: m.tril(x)), ("x", lambda m, x: m.triu(x, k=1)), ("x", lambda m, x: m.astype(x, m.int32)),
    ("xi", lambda m, x, i: m.broadcast_arrays(x, i[0, :])[1]), ("x", lambda m, x: m.broadcast_to(x[0, :], (4, 3))),
    ("x", lambda m, x: m.clip(x, -1.0, 1.0)), ("i", lambda m, x: m.clip(x, max=2)),
    ("xu", lambda m, x, u: m.concat([x, u], axis=1)), ("xu", lambda m, x, u: m.concat([x, u], axis=None)),
    ("x", lambda m, x: m.expand_dims(x, axis=1)), ("x", lambda m, x: m.flip(x)), ("x", lambda m, x: m.flip(x, axis=0)),
    ("x", lambda m, x: m.moveaxis(x, 0, 1)), ("x", lambda m, x: m.permute_dims(x, (1, 0))), ("x", lambda m, x: m.matrix_transpose(x)),
    ("x", lambda m, x: m.repeat(x, 2)), ("x", lambda m, x: m.repeat(x, 2, axis=1)), ("x", lambda m, x: m.reshape(x, (3, -1))),
    ("x", lambda m, x: m.roll(x, 1)), ("x", lambda m, x: m.roll(x, (1, 2), axis=(0, 1))), ("x", lambda m, x: m.squeeze(x[:1, ...], 0)),
    ("xu", lambda m, x, u: m.stack([x, u], axis=-1)), ("x", lambda m, x: m.unstack(x, axis=1)[2]), ("x", lambda m, x: m.tile(x, (2, 1, 2))),
    ("xi", lambda m, x, i: m.take(x, m.asarray([1, 0]), axis=0)), ("x", lambda m, x: m.take_along_axis(x, m.argsort(x), axis=-1)),
    ("x", lambda m, x: m.argmax(x)), ("x", lambda m, x: m.argmin(x, axis=1, keepdims=True)), ("x", lambda m, x: m.count_nonzero(x, axis=0)),
    ("x", lambda m, x: m.nonzero(x)[0]), ("x", lambda m, x: m.searchsorted(m.sort(x[0, :]), x[1, :])),
    ("x", lambda m, x: m.searchsorted(m.sort(x[0, :]), x[0, :], side="right")), ("xu", lambda m, x, u: m.where(x > u, x, u)),
    ("x", lambda m, x: m.sort(x, axis=0)), ("x", lambda m, x: m.sort(x, descending=True)), ("x", lambda m, x: m.argsort(x)),
    ("x", lambda m, x: m.argsort(x, axis=0, descending=True)), ("i", lambda m, x: m.unique_values(x)),
    ("i", lambda m, x: m.unique_counts(x).counts), ("i", lambda m, x: m.unique_inverse(x).inverse_indices),
    ("x", lambda m, x: m.max(x, axis=0)), ("i", lambda m, x: m.min(x)), ("x", lambda m, x: m.mean(x, axis=(0, 1))),
    ("b", lambda m, x: m.any(x, axis=0)), ("b", lambda m, x: m.all(x, keepdims=True)), ("p", lambda m, x: m.sum(x)),
    ("n", lambda m, x: m.sum(x, axis=0)), ("f", lambda m, x: m.sum(x, axis=1)), ("z", lambda m, x: m.prod(x)),
    ("p", lambda m, x: m.prod(x, dtype=m.float64)), ("x", lambda m, x: m.std(x)), ("x", lambda m, x: m.var(x, axis=1, correction=1)),
    ("x", lambda m, x: m.cumulative_sum(x, axis=1)), ("p", lambda m, x: m.cumulative_sum(x, axis=0, include_initial=True)),
    ("x", lambda m, x: m.cumulative_prod(x[0, :])), ("x", lambda m, x: m.diff(x)),
    ("xu", lambda m, x, u: m.diff(x, n=2, axis=0, prepend=u, append=u)), ("xu", lambda m, x, u: m.matmul(x, u.mT)),
    ("zx", lambda m, z, x: m.vecdot(z, m.astype(x, m.complex128))), ("xu", lambda m, x, u: m.tensordot(x, u, axes=((1,), (1,)))),
    ("xu", lambda m, x, u: m.tensordot(x, u.mT, axes=1)), ("xu", lambda m, x, u: m.tensordot(x, u)),
    *[
        (letter, lambda m, x, field=field: getattr(m.unique_all(m.concat([x, x])), field))
        for letter in "iz"
        for field in ("values", "indices", "inverse_indices", "counts")
    ],
    ("z", lambda m, x: m.unique_values(m.concat([x, x]))), ("z", lambda m, x: m.unique_counts(m.concat([x, x])).counts),
    ("z", lambda m, x: m.unique_inverse(m.concat([x, x])).inverse_indices),
    ("x", lambda m, x: m.repeat(x, m.asarray([2, 0]), axis=0)), ("x", lambda m, x: m.repeat(x, m.asarray([1, 0, 3, 2, 0, 1]))),
    ("x", lambda m, x: m.repeat(x, m.asarray([2]), axis=1)),
    ("pn", lambda m, x, y: m.add(x[0, 0], y)), ("bpn", lambda m, b, x, y: m.where(b, x[0, 0], y)),
    ("x", lambda m, x: m.std(x, axis=1, correction=1.5)), ("x", lambda m, x: m.var(x, axis=(0, 1), correction=-1)),
    ("n", lambda m, x: m.sum(x, axis=0, dtype=m.int8)), ("p", lambda m, x: m.prod(x, dtype=m.uint16)),
    ("n", lambda m, x: m.cumulative_sum(x, axis=0, dtype=m.int16)), ("nn", lambda m, x, y: m.vecdot(x, y)),
    ("np", lambda m, x, y: m.matmul(x, y.mT)), ("np", lambda m, x, y: m.tensordot(x, y, axes=((), ()))),
    ("x", lambda m, x: x[m.asarray(True)]), ("x", lambda m, x: x[m.asarray(False)]),
    ("x", lambda m, x: assigned(x, m.asarray(True), 7.0)), ("x", lambda m, x: assigned(x, m.asarray(False), 7.0)),
]


def run(module, letters, call):
    def operand(letter):
        data, dtype = D[letter]
        return module.asarray(data, dtype=getattr(module, dtype))

    return call(module, *map(operand, letters))


def check(letters, call):
    found, wanted = run(xp, letters, call), np.asarray(run(strict, letters, call))
    assert found.dtype.numpy_name == str(wanted.dtype) and found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name, letters", [(name, letter) for name in UNARY for letter in UNARY[name]])
def test_functions_of_one_array_are_the_references(name, letters):
    check(letters, lambda module, x: getattr(module, name)(x))


@pytest.mark.parametrize("name, letters", [(name, pair.replace(",", "")) for name in BINARY for pair in BINARY[name].split()])
def test_functions_of_two_arrays_are_the_references(name, letters):
    check(letters, lambda module, x, y: getattr(module, name)(x, y))


@pytest.mark.parametrize("letters, call", CALLS)
def test_calls_are_the_references(letters, call):
    check(letters, call)


def test_dtypes_promote_as_the_reference():
    names = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128"]
    for first in names:
        assert xp.isdtype(getattr(xp, first), "numeric") == strict.isdtype(getattr(strict, first), "numeric")
        for second in names:
            pair = [(getattr(module, first), getattr(module, second)) for module in (xp, strict)]
            try:
                wanted = strict.result_type(*pair[1])
            except TypeError:
                continue
            assert xp.result_type(*pair[0]) == getattr(xp, str(np.dtype(wanted._np_dtype))), (first, second)
            assert xp.can_cast(*pair[0]) == strict.can_cast(*pair[1]), (first, second)
    for name in ["float32", "float64", "complex64"]:
        found, wanted = xp.finfo(getattr(xp, name)), strict.finfo(getattr(strict, name))
        assert all(getattr(found, field) == getattr(wanted, field) for field in ["bits", "eps", "max", "min", "smallest_normal"])
    for name in ["int8", "uint64"]:
        found, wanted = xp.iinfo(getattr(xp, name)), strict.iinfo(getattr(strict, name))
        assert (found.bits, found.max, found.min) == (wanted.bits, wanted.max, wanted.min)
    matrix = sv.zeros((2, 1))
    for bad in [
        lambda: xp.finfo(xp.int8), lambda: xp.iinfo(xp.float32), lambda: xp.squeeze(matrix, 0), lambda: xp.result_type(1.0),
        lambda: xp.isdtype(xp.int8, "numbers"), lambda: xp.take(matrix, xp.asarray([0])), lambda: xp.nonzero(xp.asarray(1)),
        lambda: xp.meshgrid(matrix[0], matrix[0], indexing="yx"), lambda: xp.asarray(np.zeros(2), dtype=xp.float32, copy=False),
        lambda: xp.repeat(matrix, xp.asarray([2, -1]), axis=0), lambda: xp.repeat(matrix, xp.asarray([1, 2, 3]), axis=0),
        lambda: xp.vecdot(matrix, sv.ones((2, 2))), lambda: xp.tensordot(sv.ones((2, 3)), sv.ones((3, 2)), axes=((0, 1), (0, 1))),
    ]:
        with pytest.raises((TypeError, ValueError)):
            bad()


def test_special_values_are_those_of_the_standard():
    zeros = xp.asarray([-0.0, 0.0])
    assert not xp.any(xp.signbit(xp.sign(zeros))) and not xp.any(xp.signbit(xp.real(xp.expm1(xp.astype(zeros, xp.complex128)))))
    for function, argument, wanted in [
        (xp.expm1, complex(np.inf, 0), complex(np.inf, 0)), (xp.expm1, complex(-np.inf, np.inf), complex(-1, 0)),
        (xp.expm1, complex(np.nan, 0), complex(np.nan, 0)), (xp.log1p, complex(-1, 0), complex(-np.inf, 0)),
        (xp.log1p, complex(-np.inf, np.inf), complex(np.inf, 0.75 * np.pi)), (xp.log1p, complex(np.nan, np.inf), complex(np.inf, np.nan)),
        # Digits that exp(z) - 1 and log(1 + z) lose.
        (xp.expm1, complex(1e-12, 1e-12), complex(1e-12, 1e-12)), (xp.log1p, complex(1e-12, 1e-12), complex(1e-12, 1e-12)),
    ]:
        np.testing.assert_allclose(function(xp.asarray(argument)).numpy(), wanted, rtol=1e-11)
    assert xp.isinf(xp.var(xp.asarray([1.0, 2.0]), correction=2.5)) and xp.isnan(xp.var(xp.asarray([1.0]), correction=1.5))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floor_divide_of_infinities_is_the_floor_of_the_true_quotient(dtype):
    values = [np.inf, -np.inf, np.nan, 0.0, -0.0, 2.0, -2.0, 1e30, -1e30]
    x, y = (array.ravel() for array in np.meshgrid(*[np.array(values, dtype)] * 2))
    has_infinity = np.isinf(x) | np.isinf(y)
    x, y = x[has_infinity], y[has_infinity]
    with np.errstate(all="ignore"):
        wanted = np.floor(np.true_divide(x, y))
    pairs = [(xp.asarray(x), xp.asarray(y))], [(xp.asarray(one), float(two)) for one, two in zip(x, y)], [(float(one), xp.asarray(two)) for one, two in zip(x, y)]
    for group in pairs:
        results = [xp.floor_divide(*pair) for pair in group]
        assert all(result.dtype.numpy_name == dtype for result in results)
        found = np.concatenate([np.atleast_1d(result.numpy()) for result in results])
        np.testing.assert_array_equal(found, wanted)
        zeros = wanted == 0
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))
    # The operator and the method follow Python.
    assert np.isnan(float(xp.asarray(np.inf) // 2)) and float(xp.asarray(1.0).floor_divide(-np.inf)) == -1
    # A quotient of a number with a fraction is of floats, and one of integers is exact.
    assert float(xp.floor_divide(xp.asarray(7, dtype=xp.int64), np.inf)) == 0
    assert int(xp.floor_divide(xp.asarray(2**62 + 1), 1)) == 2**62 + 1


def parameters(function):
    """Returns the number of the parameters without a name, and the names of the others that may be given by name alone or not."""
    found = [value for value in inspect.signature(function).parameters.values() if not value.name.startswith("_")]
    return (
        len([value for value in found if value.kind is value.POSITIONAL_ONLY]),
        [value.name for value in found if value.kind in (value.POSITIONAL_OR_KEYWORD, value.VAR_POSITIONAL)],
        {value.name for value in found if value.kind is value.KEYWORD_ONLY},
    )


def test_every_name_is_one_of_the_standard_and_has_its_parameters():
    for name in xp.__all__:
        assert hasattr(strict, name), name
        function = getattr(strict, name)
        if inspect.isfunction(function):
            wanted, found = parameters(function), parameters(getattr(xp, name))
            assert found == wanted, (name, wanted, found)
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] == xp.float64 and "cpu" in map(str, info.devices())
    assert set(info.dtypes(kind="integral")) == set(strict.__array_namespace_info__().dtypes(kind="integral"))
    assert info.default_device() == sv.Device("cpu") and info.capabilities()["boolean indexing"]


def test_arrays_have_the_standards_attributes():
    x = sv.Tensor(X)
    assert x.__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError, match="2024.12"):
        x.__array_namespace__(api_version="1999.01")
    assert x.to_device("cpu").equal(x) and x.device == sv.Device("cpu")
