"""The namespace of the Python array API standard (2024.12), as far as it is offered: `x.__array_namespace__()`.

Names that are missing here are not offered. As in NumPy, floats without a dtype are float64.
"""

import builtins as _builtins
import math as _math
from collections import namedtuple as _namedtuple

import selvedge as _sv
from selvedge import (
    Device as _Device,
    DType as _DType,
    Tensor as _Tensor,
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

bool = _sv.bool
e, pi, inf, nan, newaxis = _math.e, _math.pi, _math.inf, _math.nan, None
__array_api_version__ = "2024.12"

_INTEGERS = {"signed integer": (int8, int16, int32, int64), "unsigned integer": (uint8, uint16, uint32, uint64)}
_KINDS = {
    "bool": (bool,),
    **_INTEGERS,
    "integral": sum(_INTEGERS.values(), ()),
    "real floating": (float32, float64),
    "complex floating": (complex64, complex128),
}
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]

# The standard's name, the method of a tensor and the number of operands.
_METHODS = {
    1: "abs acos acosh asin asinh atan atanh ceil conj cos cosh exp floor imag log log10 log2 logical_not real "
    "reciprocal signbit sin sinh sqrt square tan tanh trunc isnan=is_nan isinf=is_infinite isfinite=is_finite "
    "negative=neg bitwise_invert=bit_not",
    2: "add atan2 copysign hypot logical_and logical_or logical_xor maximum minimum pow remainder "
    "subtract=sub multiply=mul divide=div equal=eq not_equal=ne less=lt less_equal=le greater=gt greater_equal=ge "
    "bitwise_and=bit_and bitwise_or=bit_or bitwise_xor=bit_xor bitwise_left_shift=shift_left bitwise_right_shift=shift_right "
    "logaddexp=log_add_exp nextafter=next_after",
}


def _one(method):
    def function(x, /):
        return getattr(_Tensor, method)(x)

    return function


def _two(method):
    def function(x1, x2, /):
        return getattr(_Tensor, method)(*_operands(x1, x2))

    return function


def _operands(x1, x2):
    """Returns the operands of a function: an array, and an array or a number."""
    if not isinstance(x1, _Tensor):
        # A number takes the dtype that it has beside the other operand.
        x1 = _Tensor(x1, dtype=result_type(x1, x2), device=x2.device)
    return _promoted(x1, x2)


def _promoted(x1, x2):
    """Returns arrays of the dtype of both; of other tensors one without dimensions takes the other's dtype."""
    if not isinstance(x2, _Tensor) or x1.dtype == x2.dtype or x1.ndim and x2.ndim:
        return x1, x2
    dtype = result_type(x1, x2)
    return x1.cast(dtype), x2.cast(dtype)


for _count, _list in _METHODS.items():
    for _entry in _list.split():
        _name, _, _method = _entry.partition("=")
        _function = (_one if _count == 1 else _two)(_method or _name)
        _function.__name__ = _function.__qualname__ = _name
        _function.__doc__ = f"`Tensor.{_method or _name}` by its name of the standard."
        globals()[_name] = _function


def positive(x, /):
    return +x


def sign(x, /):
    # The standard's sign of -0 is 0; `Tensor.sign` returns -0.
    return _sv.where(x.eq(0), 0, x.sign())


def floor_divide(x1, x2, /):
    x1, x2 = _operands(x1, x2)
    quotient = x1.floor_divide(x2)
    if not quotient.dtype.is_float:
        return quotient
    # The standard's value at an infinity is the floor of the true quotient; `Tensor.floor_divide` follows Python there.
    if not isinstance(x2, _Tensor):
        x2 = _Tensor(x2, dtype=quotient.dtype, device=quotient.device)
    return _sv.where(x1.is_infinite().logical_or(x2.is_infinite()), x1.div(x2).floor(), quotient)


def round(x, /):
    return _complex(x.real().round(), x.imag().round()) if x.dtype.is_complex else x.round()


def expm1(x, /):
    if not x.dtype.is_complex:
        return x.expm1()
    # exp(a + bi) - 1 = expm1(a) cos(b) - 2 sin(b/2)² + i exp(a) sin(b); `exp` has the values at infinities and NaNs.
    real_part, imag_part, power = x.real(), x.imag(), x.exp()
    exact = real_part.expm1().mul(imag_part.cos()).sub(imag_part.div(2).sin().square().mul(2))
    is_finite = real_part.is_finite().logical_and(imag_part.is_finite())
    # The standard's value at -0 + 0i is 0, which the sum with 0 gives.
    return _complex(_sv.where(is_finite, exact.add(0), power.real().sub(1)), power.imag())


def log1p(x, /):
    if not x.dtype.is_complex:
        return x.log1p()
    # log|1 + a + bi| = log1p(a (2 + a) + b²) / 2 near 0; `log` has the values elsewhere, at infinities and NaNs.
    real_part, imag_part = x.real(), x.imag()
    logarithm = _complex(real_part.add(1), imag_part).log()
    near = real_part.mul(real_part.add(2)).add(imag_part.square()).log1p().div(2)
    is_near = real_part.abs().maximum(imag_part.abs()).lt(0.5)
    return _complex(_sv.where(is_near, near, logarithm.real()), logarithm.imag())


def _complex(real_part, imag_part):
    return _sv.stack([real_part, imag_part], -1).view_as_complex()


def clip(x, /, min=None, max=None):
    if min is not None:
        x = x.maximum(min)
    return x if max is None else x.minimum(max)


# Creation.


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    if copy is not False:
        return _sv.asarray(obj, dtype=dtype, device=device)
    x = obj if isinstance(obj, _Tensor) else from_dlpack(obj)
    result = _sv.asarray(x, dtype=dtype, device=device)
    if (result.dtype, result.device) != (x.dtype, x.device):
        wanted = f"{result.dtype} on {result.device}, which is a copy"
        raise ValueError(f"asarray: found {x.dtype} on {x.device} with copy=False; wanted {wanted}")
    return result


def from_dlpack(x, /, *, device=None, copy=None):
    return _sv.from_dlpack(x, device=device, copy=copy)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    if stop is None:
        start, stop = 0, start
    if dtype is None and not _all_integers(start, stop, step):
        dtype = float64
    return _sv.arange(start, stop, step, dtype=dtype, device=device)


def _all_integers(*numbers):
    return _builtins.all(isinstance(number, int) for number in numbers)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    if endpoint:
        return _sv.linspace(start, stop, num, dtype=dtype or float64, device=device)
    return _sv.linspace(start, stop, num + 1, dtype=dtype or float64, device=device)[:num]


def zeros(shape, *, dtype=None, device=None):
    return _sv.zeros(shape, dtype=dtype or float64, device=device)


def ones(shape, *, dtype=None, device=None):
    return _sv.ones(shape, dtype=dtype or float64, device=device)


def empty(shape, *, dtype=None, device=None):
    return _sv.empty(shape, dtype=dtype or float64, device=device)


def full(shape, fill_value, *, dtype=None, device=None):
    return _sv.full(shape, fill_value, dtype=dtype or _Tensor(fill_value).dtype, device=device)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    n_cols = n_rows if n_cols is None else n_cols
    rows = _sv.arange(n_rows, device=device).unsqueeze(1)
    columns = _sv.arange(n_cols, device=device).unsqueeze(0)
    return (columns - rows).eq(k).cast(dtype or float64)


def _like(make):
    def function(x, /, *, dtype=None, device=None):
        return make(x.shape, dtype=dtype or x.dtype, device=device or x.device)

    return function


zeros_like, ones_like, empty_like = _like(zeros), _like(ones), _like(empty)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def meshgrid(*arrays, indexing="xy"):
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: found indexing={indexing!r}; wanted 'xy' or 'ij'")
    if indexing == "ij" or len(arrays) < 2:
        return _sv.meshgrid(arrays)
    grids = _sv.meshgrid([arrays[1], arrays[0], *arrays[2:]])
    return [grids[1], grids[0], *grids[2:]]


def tril(x, /, *, k=0):
    return x.tril(k)


def triu(x, /, *, k=0):
    return x.triu(k)


# Dtypes.


def astype(x, dtype, /, *, copy=True, device=None):
    return x.to(device or x.device, dtype)


def isdtype(dtype, kind):
    kinds = kind if isinstance(kind, tuple) else (kind,)
    for one in kinds:
        if isinstance(one, str) and one not in _KINDS:
            raise ValueError(f"isdtype: found kind {one!r}; wanted one of {', '.join(_KINDS)}")
    return _builtins.any(dtype in _KINDS[one] if isinstance(one, str) else dtype == one for one in kinds)


def result_type(*arrays_and_dtypes):
    numbers = [x for x in arrays_and_dtypes if isinstance(x, (_builtins.bool, int, float, complex))]
    tensors = [
        _sv.zeros((0,), x if isinstance(x, _DType) else x.dtype)
        for x in arrays_and_dtypes
        if isinstance(x, (_DType, _Tensor))
    ]
    if not tensors:
        raise ValueError("result_type: found no array and no dtype; wanted at least one")
    result = tensors[0]
    for tensor in tensors[1:]:
        result = result.add(tensor)
    for number in numbers:
        result = result.add(type(number)(0))
    return result.dtype


def can_cast(from_, to, /):
    try:
        return result_type(getattr(from_, "dtype", from_), to) == to
    except _sv.DTypeError:
        # No dtype holds both, as of uint64 and a signed integer.
        return False


_finfo = _namedtuple("finfo_object", "bits eps max min smallest_normal dtype")
_iinfo = _namedtuple("iinfo_object", "bits max min dtype")


def finfo(type, /):
    dtype = getattr(type, "dtype", type)
    part = {complex64: float32, complex128: float64}.get(dtype, dtype)
    if part == float32:
        return _finfo(32, 2.0**-23, (2 - 2.0**-23) * 2.0**127, -(2 - 2.0**-23) * 2.0**127, 2.0**-126, float32)
    if part == float64:
        return _finfo(64, 2.0**-52, (2 - 2.0**-52) * 2.0**1023, -(2 - 2.0**-52) * 2.0**1023, 2.0**-1022, float64)
    raise TypeError(f"finfo: found {dtype}; wanted a dtype of floats")


def iinfo(type, /):
    dtype = getattr(type, "dtype", type)
    if dtype not in _KINDS["integral"]:
        raise TypeError(f"iinfo: found {dtype}; wanted a dtype of integers")
    bits = 8 * dtype.itemsize
    if dtype in _KINDS["unsigned integer"]:
        return _iinfo(bits, 2**bits - 1, 0, dtype)
    return _iinfo(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), dtype)


# Shapes.


def broadcast_to(x, /, shape):
    return x.expand(shape)


def broadcast_arrays(*arrays):
    # A comparison has the common shape, whatever the dtypes.
    common = arrays[0].eq(arrays[0])
    for x in arrays[1:]:
        common = common.logical_or(x.eq(x))
    return [x.expand(common.shape) for x in arrays]


def concat(arrays, /, *, axis=0):
    if axis is None:
        return _sv.cat([x.ravel() for x in arrays])
    return _sv.cat(arrays, axis)


def expand_dims(x, /, axis=0):
    if not -x.ndim - 1 <= axis <= x.ndim:
        raise IndexError(f"expand_dims: found axis {axis}; wanted one from {-x.ndim - 1} to {x.ndim}")
    return x.unsqueeze(axis)


def flip(x, /, *, axis=None):
    return x.flip(tuple(range(x.ndim)) if axis is None else axis)


def moveaxis(x, source, destination, /):
    return x.movedim(source, destination)


def permute_dims(x, /, axes):
    return x.permute(axes)


def matrix_transpose(x, /):
    return x.mT


def repeat(x, repeats, /, *, axis=None):
    x, axis = (x.ravel(), 0) if axis is None else (x, axis)
    if not isinstance(repeats, _Tensor):
        return x.repeat_interleave(repeats, axis)
    if repeats.size and (least := int(repeats.min())) < 0:
        raise ValueError(f"repeat: found the count {least}; wanted no negative count")
    # The ends of the runs of copies; a position of the result is of the first run that ends after it.
    ends = repeats.expand((x.shape[axis],)).cast(int64).cumsum(0)
    count = int(ends[-1]) if ends.size else 0
    return x.index_select(axis, ends.searchsorted(_sv.arange(count, dtype=int64, device=x.device), right=True))


def reshape(x, /, shape, *, copy=None):
    return x.reshape(shape)


def roll(x, /, shift, *, axis=None):
    if axis is None:
        return x.ravel().roll(shift, 0).reshape(x.shape)
    return x.roll(shift, axis)


def squeeze(x, /, axis):
    axes = axis if isinstance(axis, tuple) else (axis,)
    for one in axes:
        if x.shape[one] != 1:
            raise ValueError(f"squeeze: found axis {one} of size {x.shape[one]}; wanted size 1")
    for one in sorted((one % x.ndim for one in axes), reverse=True):
        x = x.squeeze(one)
    return x


def stack(arrays, /, *, axis=0):
    return _sv.stack(arrays, axis)


def unstack(x, /, *, axis=0):
    return tuple(x.unbind(axis))


def tile(x, repetitions, /):
    repetitions = (1,) * (x.ndim - len(repetitions)) + tuple(repetitions)
    return x.reshape((1,) * (len(repetitions) - x.ndim) + x.shape).repeat(repetitions)


# Indices, sorting, sets.


def take(x, indices, /, *, axis=None):
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: found {x.ndim} dimensions without an axis; wanted an axis")
    return x.index_select(0 if axis is None else axis, indices)


def take_along_axis(x, indices, /, *, axis=-1):
    return x.take_along_axis(axis, indices)


def argmax(x, /, *, axis=None, keepdims=False):
    return x.argmax(axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    return x.argmin(axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    return x.count_nonzero(axis, keepdims)


def nonzero(x, /):
    if x.ndim == 0:
        raise ValueError("nonzero: found an array without dimensions; wanted one or more dimensions")
    return tuple(x.nonzero().unbind(1))


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    return (x1 if sorter is None else x1.take(sorter)).searchsorted(x2, right=side == "right")


def where(condition, x1, x2, /):
    if isinstance(x1, _Tensor):
        x1, x2 = _promoted(x1, x2)
    return _sv.where(condition, x1, x2)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    return x.sorted(axis, descending)


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    return x.argsort(axis, descending)


_unique_all = _namedtuple("unique_all_result", "values indices inverse_indices counts")
_unique_counts = _namedtuple("unique_counts_result", "values counts")
_unique_inverse = _namedtuple("unique_inverse_result", "values inverse_indices")


def _unique(x):
    """Returns the different elements in order, the index of the first of each, the inverse and the counts."""
    flat = x.ravel()
    # Complex numbers are ordered by the ranks of their parts.
    _, keys, _ = (flat.real() if x.dtype.is_complex else flat).unique_with_counts()
    if x.dtype.is_complex:
        _, ranks, counts = flat.imag().unique_with_counts()
        keys = keys.mul(counts.size).add(ranks)
    _, inverse, counts = keys.unique_with_counts()
    positions = _sv.arange(x.size, dtype=int64, device=x.device)
    first = _sv.zeros(counts.shape, dtype=int64, device=x.device).scatter_reduce(0, inverse, positions, "amin", False)
    return flat.index_select(0, first), first, inverse.reshape(x.shape), counts


def unique_all(x, /):
    return _unique_all(*_unique(x))


def unique_counts(x, /):
    values, _, _, counts = _unique(x)
    return _unique_counts(values, counts)


def unique_inverse(x, /):
    values, _, inverse, _ = _unique(x)
    return _unique_inverse(values, inverse)


def unique_values(x, /):
    return _unique(x)[0] if x.dtype.is_complex else x.unique()


# Reductions and scans.


def _reduction(name):
    def function(x, /, *, axis=None, keepdims=False):
        return getattr(_Tensor, name)(x, axis, keepdims)

    return function


def _summed(x, dtype):
    """Returns the operand of a sum or product; those of unsigned integers are unsigned."""
    if dtype is None and x.dtype in _KINDS["unsigned integer"]:
        dtype = uint64
    return x if dtype is None else x.cast(dtype)


def _sum(name):
    def function(x, /, *, axis=None, dtype=None, keepdims=False):
        result = getattr(_Tensor, name)(_summed(x, dtype), axis, keepdims)
        # Sums of narrow integers are wider.
        return result if dtype is None else result.cast(dtype)

    return function


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    if correction >= 0 and correction == int(correction):
        return x.var(axis, keepdims, correction=int(correction))
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    count = _math.prod(x.shape[one] for one in axes)
    # The sum of squares, divided by count - correction, or by 0 if that is negative.
    scale = count / (count - correction) if count > correction else inf
    return x.var(axis, keepdims, correction=0).mul(scale)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    return var(x, axis=axis, correction=correction, keepdims=keepdims).sqrt()


max, min, mean, any, all = (_reduction(name) for name in ("max", "min", "mean", "any", "all"))
sum, prod = _sum("sum"), _sum("prod")


def _scan(name, start):
    def function(x, /, *, axis=None, dtype=None, include_initial=False):
        axis = 0 if axis is None else axis
        result = getattr(_Tensor, name)(_summed(x, dtype), axis)
        result = result if dtype is None else result.cast(dtype)
        if include_initial:
            shape = list(x.shape)
            shape[axis] = 1
            result = _sv.cat([full(shape, start, dtype=result.dtype, device=x.device), result], axis)
        return result

    return function


cumulative_sum, cumulative_prod = _scan("cumsum", 0), _scan("cumprod", 1)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    ends = [part for part in (prepend, x, append) if part is not None]
    return (_sv.cat(ends, axis) if len(ends) > 1 else x).diff(n, axis)


# Products.


def matmul(x1, x2, /):
    dtype = result_type(x1, x2)
    return x1.cast(dtype).matmul(x2.cast(dtype))


def vecdot(x1, x2, /, *, axis=-1):
    if x1.shape[axis] != x2.shape[axis]:
        found = f"{x1.shape[axis]} and {x2.shape[axis]} elements along axis {axis}"
        raise ValueError(f"vecdot: found {found}; wanted as many in both")
    # Sums of narrow integers are wider; the result has the operands' dtype.
    products = x1.conj().mul(x2)
    return products.sum(axis).cast(products.dtype)


def tensordot(x1, x2, /, *, axes=2):
    if isinstance(axes, int):
        axes = (tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes)))
    first, second = ([one % x.ndim for one in of] for x, of in zip((x1, x2), axes))
    sizes = [[x.shape[one] for one in of] for x, of in zip((x1, x2), (first, second))]
    if sizes[0] != sizes[1]:
        raise ValueError(f"tensordot: found axes of sizes {sizes[0]} and {sizes[1]}; wanted the same sizes in both")
    dtype = result_type(x1, x2)
    x1, x2 = x1.cast(dtype), x2.cast(dtype)
    rows = [one for one in range(x1.ndim) if one not in first]
    columns = [one for one in range(x2.ndim) if one not in second]
    size = _math.prod(sizes[0])
    left = x1.permute(rows + first).reshape(-1 if x1.size else _math.prod(x1.shape[one] for one in rows), size)
    right = x2.permute(second + columns).reshape(size, -1 if x2.size else _math.prod(x2.shape[one] for one in columns))
    return left.matmul(right).reshape([x1.shape[one] for one in rows] + [x2.shape[one] for one in columns])


# Inspection.


class _Info:
    """The capabilities, devices and dtypes of the namespace."""

    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 16}

    def default_device(self):
        return _Device()

    def default_dtypes(self, *, device=None):
        return {"real floating": float64, "complex floating": complex128, "integral": int64, "indexing": int64}

    def devices(self):
        return [_Device("cpu")] + ([_Device.best()] if _Device.best().type == "cuda" else [])

    def dtypes(self, *, device=None, kind=None):
        names = {dtype.numpy_name: dtype for dtype in (bool,) + _KINDS["numeric"]}
        return {name: dtype for name, dtype in names.items() if kind is None or isdtype(dtype, kind)}


def __array_namespace_info__():
    return _Info()


del _count, _list, _entry, _name, _method, _function
__all__ = [name for name in globals() if not name.startswith("_")]
