"""PyTorch's operations by name, and the calls of selvedge that compute the same.

A call takes the arguments of PyTorch's function as tensors of selvedge. `NotOffered` names arguments that selvedge has no
counterpart for.
"""

import selvedge as sv


class NotOffered(Exception):
    """Arguments without a counterpart."""


def only(arguments, **defaults):
    """Refuses keywords other than these, or with other values."""
    for name, value in arguments.items():
        if name not in defaults or not (value is None or value == defaults[name]):
            raise NotOffered(f"{name}={value!r}")


def method(name):
    return lambda x, *args, **kwargs: (only(kwargs), getattr(sv.asarray(x), name)(*args))[1]


def reflected(symbol):
    return lambda x, y: getattr(x, symbol)(y)


def scaled(name):
    def call(x, y, alpha=1):
        y = sv.asarray(y, dtype=None) * alpha if alpha != 1 and isinstance(y, sv.Tensor) else y * alpha if alpha != 1 else y
        return getattr(x, name)(y)

    return call


def div(x, y, rounding_mode=None):
    return getattr(x, {None: "div", "trunc": "trunc_divide", "floor": "floor_divide"}[rounding_mode])(y)


def reduction(name, dims="dim"):
    def call(x, dim=None, keepdim=False, dtype=None, **kwargs):
        only(kwargs)
        if x.ndim == 0:
            dim = None
        if isinstance(dim, (list, tuple)) and not dim:
            dim = None
        return getattr(x if dtype is None else x.cast(dtype), name)(dim, keepdim)

    return call


def spread(name):
    def call(x, dim=None, unbiased=None, keepdim=False, correction=None):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        correction = correction if correction is not None else 0 if unbiased is False else 1
        if correction != int(correction) or correction < 0:
            raise NotOffered(f"correction={correction}")
        if x.ndim == 0:
            dim = None
        if isinstance(dim, (list, tuple)) and not dim:
            dim = None
        if name.endswith("_mean"):
            pair = getattr(x, name)(dim, int(correction))
            if keepdim:
                raise NotOffered("keepdim=True")
            return pair
        return getattr(x, name)(dim, keepdim, correction=int(correction))

    return call


def scan(name):
    def call(x, dim, dtype=None):
        if x.ndim == 0:
            return x if dtype is None else x.cast(dtype)
        return getattr(x if dtype is None else x.cast(dtype), name)(dim)

    return call


def logit(x, eps=None):
    if eps is None:
        return x.logit()
    x = x if x.dtype.is_float else x.cast("f32")
    # An eps above 1/2 swaps the limits, and PyTorch compares with the lower one first.
    return sv.where(x < eps, eps, sv.where(x > 1 - eps, 1 - eps, x)).logit()


def softplus(x, beta=1, threshold=20):
    return (x * beta).softplus() / beta if threshold == 20 else only({"threshold": threshold})


def clamp(x, min=None, max=None):
    if min is not None:
        x = x.maximum(min)
    return x if max is None else x.minimum(max)


def softmax(name):
    return lambda x, dim=-1, dtype=None: getattr(x if dtype is None else x.cast(dtype), name)(dim)


def flat(call):
    """An operation that takes a tensor without dimensions as one of one dimension."""

    def changed(x, *args, **kwargs):
        if x.ndim == 0:
            raise NotOffered("no dimensions")
        return call(x, *args, **kwargs)

    return changed


def pair(name):
    """An operation along one axis, with values and indices."""

    def call(x, dim=-1, keepdim=False):
        if keepdim:
            raise NotOffered("keepdim=True")
        return getattr(x, name)(dim)

    return call


def expanded(x, *shape):
    shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    sizes = (1,) * (len(shape) - x.ndim) + x.shape
    return x.expand(tuple(own if size == -1 else size for own, size in zip(sizes, shape)))


def repeat_all(x, *sizes):
    sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    return x.repeat(tuple(sizes))


def tile(x, dims):
    dims = (1,) * (x.ndim - len(dims)) + tuple(dims)
    return x.repeat(dims)


def reshaped(x, *shape):
    shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return x.reshape(tuple(shape))


def squeeze(x, dim=None):
    dims = (dim,) if isinstance(dim, int) else dim
    if dims is None:
        return x.squeeze()
    for one in sorted((one % max(x.ndim, 1) for one in dims), reverse=True):
        x = x.squeeze(one) if x.ndim and x.shape[one] == 1 else x
    return x


def split(x, size, dim=0):
    if isinstance(size, int):
        length = x.shape[dim]
        size = [min(size, length - at) for at in range(0, length, size)] or [0]
    return x.split(list(size), dim)


def sort(x, dim=-1, descending=False, stable=False):
    return x.sort(dim, descending)


def gather(x, dim, index, sparse_grad=False):
    return x.gather(dim, index)


def norm_rows(name):
    def call(x, shape, weight=None, bias=None, eps=1e-5):
        return x.layer_norm(tuple(shape), weight, bias, eps)

    return call


def gelu(x, approximate="none"):
    return x.gelu() if approximate == "none" else x.gelu_tanh()


def quantile(name):
    def call(x, q, dim=None, keepdim=False, interpolation="linear"):
        if not isinstance(q, float) or keepdim or interpolation != "linear":
            raise NotOffered("several q, keepdim or another interpolation")
        return getattr(x.ravel() if dim is None else x, name)(q, -1 if dim is None else dim)

    return call


def diff(x, n=1, dim=-1, prepend=None, append=None):
    if n == 0:
        return x
    ends = [part for part in (prepend, x, append) if part is not None]
    return (sv.cat(ends, dim) if len(ends) > 1 else x).diff(n, dim)


def topk(x, k, dim=-1, largest=True, sorted=True):
    return x.topk(k, dim, largest)


def index_add(x, dim, index, source, alpha=1):
    return x.index_add(dim, index, source if alpha == 1 else source * alpha)


def scatter(x, dim, index, source, reduce=None):
    if reduce is not None or not isinstance(source, sv.Tensor):
        raise NotOffered("a number or a reduction")
    return x.scatter(dim, index, source)


def scatter_reduce(x, dim, index, src, reduce, include_self=True):
    return x.scatter_reduce(dim, index, src, reduce, include_self)


def clone(x, memory_format=None):
    return x.copy()


def nan_to_num(x, nan=None, posinf=None, neginf=None):
    return x.nan_to_num(0.0 if nan is None else nan, posinf, neginf)


def std_names():
    """Returns the names whose call is the method of the same name, with positional arguments."""
    return (
        "abs acos acosh angle asin asinh atan atanh ceil cos cosh erf erfc exp exp2 expm1 floor frac imag lgamma log log10 log1p "
        "log2 logical_not neg real reciprocal rsqrt sign signbit sigmoid sin sinc sinh sqrt square tan tanh trunc copysign hypot atan2 "
        "maximum minimum fmax fmin eq ne lt le gt ge logical_and logical_or logical_xor remainder fmod xlogy heaviside floor_divide "
        "pow mul unsqueeze narrow select flip movedim t trace msort ravel contiguous index_select take masked_select dot outer kron "
        "masked_fill index_fill index_copy scatter_add nonzero matmul tril triu masked_scatter unflatten"
    ).split()


NAMES = {
    **{name: method(name) for name in std_names()},
    **{
        torch: method(own)
        for torch, own in (
            pair.split("=")
            for pair in "deg2rad=radians rad2deg=degrees isfinite=is_finite isinf=is_infinite isnan=is_nan sgn=sign bitwise_not=bit_not "
            "bitwise_and=bit_and bitwise_or=bit_or bitwise_xor=bit_xor bitwise_left_shift=shift_left bitwise_right_shift=shift_right "
            "true_divide=div logaddexp=log_add_exp nextafter=next_after special.xlog1py=xlog1py special.erf=erf mm=matmul bmm=matmul "
            "mv=gemv nn.functional.relu=relu nn.functional.silu=silu conj=conj conj_physical=conj cbrt=cbrt argwhere=nonzero".split()
        )
    },
    **{f"__r{name}__": reflected(f"__r{name}__") for name in "add sub mul pow mod and or xor".split()},
    "__rdiv__": reflected("__rtruediv__"),
    "__rmatmul__": reflected("__rmatmul__"),
    "positive": lambda x: +x,
    "round": lambda x, decimals=0: x.round() if decimals == 0 else only({"decimals": decimals}),
    "add": scaled("add"),
    "sub": scaled("sub"),
    "rsub": lambda x, y, alpha=1: y - (x if alpha == 1 else x * alpha),
    "div": div,
    "logit": logit,
    "nan_to_num": nan_to_num,
    "clamp": clamp,
    "clamp_min": lambda x, low: x.maximum(low),
    "clamp_max": lambda x, high: x.minimum(high),
    "where": lambda x, condition, y: sv.where(condition, x, y),
    "lerp": lambda x, end, weight: x.lerp(end, weight),
    "nn.functional.softplus": softplus,
    "nn.functional.gelu": gelu,
    **{name: reduction(name) for name in "sum prod mean any all count_nonzero argmax argmin logsumexp".split()},
    "nansum": lambda x, dim=None, **kwargs: (only(kwargs), x.nansum(dim))[1],
    "nanmean": lambda x, dim=None, **kwargs: (only(kwargs), x.nanmean(dim))[1],
    "amax": reduction("max"),
    "amin": reduction("min"),
    **{name: spread(name) for name in "var std var_mean std_mean".split()},
    **{name: scan(name) for name in "cumsum cumprod".split()},
    "quantile": quantile("quantile"),
    "nanquantile": quantile("nanquantile"),
    "diff": diff,
    "corrcoef": lambda x: x.corrcoef(),
    **{name: pair(name) for name in "mode".split()},
    "reshape": reshaped,
    "view": reshaped,
    "permute": lambda x, dims: x.permute(tuple(dims)),
    "transpose": lambda x, first, second: x.transpose(first, second),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "squeeze": squeeze,
    "flatten": lambda x, start_dim=0, end_dim=-1: x.flatten(start_dim, end_dim),
    "expand": expanded,
    "broadcast_to": lambda x, shape: x.expand(tuple(shape)),
    "repeat": repeat_all,
    "tile": tile,
    "fliplr": lambda x: x.flip(1),
    "flipud": lambda x: x.flip(0),
    "roll": lambda x, shifts, dims=None: x.roll(shifts, dims) if dims not in (None, ()) else x.ravel().roll(shifts, 0).reshape(x.shape),
    "cat": lambda tensors, dim=0: sv.cat(list(tensors), dim),
    "stack": lambda tensors, dim=0: sv.stack(list(tensors), dim),
    "chunk": lambda x, count, dim=0: x.chunk(count, dim),
    "split": split,
    "split_with_sizes": split,
    "unbind": lambda x, dim=0: x.unbind(dim),
    "diagonal": lambda x, offset=0, dim1=0, dim2=1: x.diagonal(offset, dim1, dim2),
    "diag": lambda x, diagonal=0: x.diag(diagonal),
    "unfold": lambda x, dim, size, step: x.unfold(dim, size, step),
    "meshgrid": lambda *tensors, indexing="ij": sv.meshgrid(list(tensors[0]) if isinstance(tensors[0], (list, tuple)) else list(tensors))
    if indexing == "ij"
    else only({"indexing": indexing}),
    "clone": clone,
    "gather": gather,
    "take_along_dim": lambda x, index, dim=None: x.ravel().take_along_axis(0, index.ravel()) if dim is None else x.take_along_axis(dim, index),
    "index_add": index_add,
    "scatter": scatter,
    "scatter_reduce": scatter_reduce,
    "sort": sort,
    "argsort": lambda x, dim=-1, descending=False, stable=False: x.argsort(dim, descending),
    "topk": topk,
    "isin": lambda x, elements, invert=False, **kwargs: x.isin(elements) if not invert else x.isin(elements).logical_not(),
    "vdot": lambda x, y: x.conj().dot(y),
    "inner": lambda x, y: x.matmul(y.mT if y.ndim > 1 else y) if x.ndim and y.ndim else x * y,
    "addmm": lambda c, a, b, beta=1, alpha=1: c * beta + a.matmul(b) * alpha,
    "softmax": softmax("softmax"),
    "log_softmax": softmax("log_softmax"),
    "nn.functional.layer_norm": norm_rows("layer_norm"),
    "nn.functional.rms_norm": lambda x, shape, weight=None, eps=None: x.rms_norm(tuple(shape), weight, eps),
    "nn.functional.group_norm": lambda x, groups, weight=None, bias=None, eps=1e-5: x.group_norm(groups, weight, bias, eps),
    "nn.functional.normalize": lambda x, p=2.0, dim=1, eps=1e-12: x.normalize(float(p), dim, eps),
    "nn.functional.one_hot": lambda x, num_classes=-1: x.one_hot(num_classes) if num_classes >= 0 else only({"num_classes": num_classes}),
    "unique": None,
    "isclose": lambda x, y, rtol=1e-5, atol=1e-8, equal_nan=False: x.isclose(y, rtol, atol) if not equal_nan else only({"equal_nan": True}),
    "equal": lambda x, y: x.equal(y),
    "zeros_like": lambda x, **kwargs: (only(kwargs), sv.zeros_like(x))[1],
    "ones_like": lambda x, **kwargs: (only(kwargs), sv.ones_like(x))[1],
    "full_like": lambda x, value, **kwargs: (only(kwargs), sv.full_like(x, value))[1],
    "view_as_real": lambda x: x.view_as_real(),
    "view_as_complex": lambda x: x.view_as_complex(),
    "searchsorted": None,
    "bincount": lambda x, weights=None, minlength=0: x.bincount(minlength) if weights is None else only({"weights": 1}),
}
NAMES = {name: call for name, call in NAMES.items() if call is not None}

# Differences that are meant, by operation: a part of the failure's text, and why. Such samples count as not offered.
EXPLAINED = {
    "heaviside": ("nan at index", "heaviside of NaN is NaN, as in NumPy"),
    "sign": ("nan at index", "the sign of NaN is NaN, as in NumPy"),
    "sgn": ("nan at index", "the sign of NaN is NaN, as in NumPy"),
    "sinc": ("nan at index", "sinc of an infinity is 0, its limit"),
    "nn.functional.silu": ("nan at index", "silu of minus infinity is -0, its limit"),
    "pow": ("nan at index (0, 0)", "a complex 0 to the power 0 is 1, as in Python"),
    "__rpow__": ("nan at index (0, 0)", "a complex 0 to the power 0 is 1, as in Python"),
    "__rdiv__": ("nan at index", "a complex number divided by 0 is infinite, as in C99"),
    "mode": ("Scalars are not equal", "any index of the most frequent element"),
    "argsort": ("not equal", "an unstable sort leaves equal elements in any order"),
    "div": ("Greatest absolute difference: 1.0", "trunc_divide truncates the exact quotient; PyTorch rounds it to bf16 first"),
    "cat": ("found axis", "an empty vector beside tensors of other ranks is refused"),
}
