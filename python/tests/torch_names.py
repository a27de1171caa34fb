"""PyTorch's operations by name, and the calls of selvedge that compute the same.

A call takes the arguments of PyTorch's function as tensors of selvedge. `NotOffered` names arguments that selvedge has no
counterpart for.
"""

import math

import selvedge as sv


class NotOffered(Exception):
    """Arguments without a counterpart."""


def only(arguments, **defaults):
    """Refuses keywords other than these, or with other values."""
    for name, value in arguments.items():
        if name not in defaults or not (value is None or value == defaults[name]):
            raise NotOffered(f"{name}={value!r}")


def kept(found, x, dim):
    """Puts axes of size 1 in place of those that a reduction of x removed."""
    dims = range(x.ndim) if dim is None else dim if isinstance(dim, (list, tuple)) else (dim,)
    shape = list(x.shape)
    for one in dims if x.ndim else ():
        shape[one] = 1
    return tuple(one.reshape(shape) for one in found) if isinstance(found, tuple) else found.reshape(shape)


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
            return kept(pair, x, dim) if keepdim else pair
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


def along(name, dim=-1, before=0):
    """An operation along one axis, with values and indices, and with `before` arguments in front of the axis."""

    def call(x, *args, **kwargs):
        args, rest = args[:before], args[before:]
        axis = kwargs.pop("dim", rest[0] if rest else dim)
        keepdim = kwargs.pop("keepdim", rest[1] if len(rest) > 1 else False)
        args = (*args, *kwargs.values())
        if axis is None:
            return getattr(x.ravel(), name)(*args, 0)[0]
        found = getattr(x, name)(*args, axis)
        return kept(found, x, axis) if keepdim else found

    return call


def extreme(name):
    """`max` and `min`: of all elements, along an axis, or of two tensors."""

    def call(x, *args, **kwargs):
        if args and isinstance(args[0], sv.Tensor):
            return getattr(x, name + "imum")(*args)
        if args or "dim" in kwargs:
            return along(name + "_with_indices")(x, *args, **kwargs)
        return getattr(x, name)()

    return call


def aminmax(x, dim=None, keepdim=False):
    found = x.aminmax(dim)
    return kept(found, x, dim) if keepdim else found


def skipping(name):
    """A reduction that skips NaN."""

    def call(x, dim=None, keepdim=False, dtype=None):
        if x.ndim == 0 or isinstance(dim, (list, tuple)) and not dim:
            dim = None
        x = x if dtype is None else x.cast(dtype)
        found = getattr(x, name)(dim)
        return kept(found, x, dim) if keepdim else found

    return call


def pad(x, widths, mode="constant", value=0):
    if any(width < 0 for width in widths):
        raise NotOffered("negative widths")
    pairs = [(widths[at], widths[at + 1]) for at in range(0, len(widths), 2)]
    return x.pad([(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1], mode, 0 if value is None else value)


def norm(x, p=2.0, dim=None, keepdim=False, dtype=None):
    p = {"fro": 2.0, None: 2.0}.get(p, p)
    if p == "nuc":
        raise NotOffered("the nuclear norm")
    if isinstance(dim, (list, tuple)) and not dim:
        dim = None
    return (x if dtype is None else x.cast(dtype)).norm(float(p), dim, keepdim)


def vector_norm(x, ord=2, dim=None, keepdim=False, dtype=None):
    return norm(x, ord, dim, keepdim, dtype)


def unique(name):
    def call(x, sorted=True, return_inverse=False, return_counts=False, dim=None):
        if dim is not None:
            raise NotOffered("unique rows")
        if not return_inverse and not return_counts:
            return getattr(x, name)()
        values, inverse, counts = getattr(x, name + "_with_counts")()
        return (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))

    return call


def unique_consecutive(x, return_inverse=False, return_counts=False, dim=None):
    return unique("unique_consecutive")(x, True, return_inverse, return_counts, dim)


def searchsorted(edges, values, out_int32=False, right=False, side=None, sorter=None):
    if sorter is not None:
        edges = edges.take_along_axis(-1, sorter)
    found = edges.searchsorted(sv.asarray(values), right or side == "right")
    return found.cast("i32") if out_int32 else found


def bucketize(x, edges, out_int32=False, right=False):
    found = sv.asarray(x).bucketize(edges, right)
    return found.cast("i32") if out_int32 else found


def repeat_interleave(x, repeats, dim=None, output_size=None):
    if not isinstance(repeats, int):
        raise NotOffered("a count for each element")
    return (x.ravel() if dim is None else x).repeat_interleave(repeats, 0 if dim is None else dim)


def batch_norm(x, mean, var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    if training or mean is None or var is None:
        raise NotOffered("the statistics of a batch")
    return x.batch_norm(mean, var, weight, bias, eps)


def embedding(table, index, padding_idx=None, max_norm=None, **kwargs):
    if max_norm is not None:
        raise NotOffered("max_norm")
    return table.index_select(0, index.ravel()).reshape((*index.shape, table.shape[1]))


def linear(x, weight, bias=None):
    product = x.matmul(weight.mT if weight.ndim > 1 else weight)
    return product if bias is None else product + bias


def fused_product(product):
    def call(c, a, b, beta=1, alpha=1):
        made = scaled_by(product(a, b), alpha)
        # A factor of 0 ignores NaN.
        return made if beta == 0 and made.shape == c.shape else scaled_by(c, beta) + made

    return call


def histc(x, bins=100, min=0, max=0):
    return x.histc(bins, float(min), float(max))


def like(name):
    def call(x, *args, dtype=None, **kwargs):
        return getattr(sv, name)(x if dtype is None else x.cast(dtype), *args)

    return call


def nonzero(x, as_tuple=False):
    if as_tuple and x.ndim == 0:
        raise NotOffered("a vector of a tensor without dimensions")
    return tuple(x.nonzero().unbind(1)) if as_tuple else x.nonzero()


def isclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    found = x.isclose(y, rtol, atol)
    return found | (x.ne(x) & y.ne(y)) if equal_nan else found


def meshgrid(*tensors, indexing="ij"):
    tensors = list(tensors[0]) if isinstance(tensors[0], (list, tuple)) else list(tensors)
    if indexing == "ij" or len(tensors) < 2:
        return sv.meshgrid(tensors)
    first, second, *rest = sv.meshgrid([tensors[1], tensors[0], *tensors[2:]])
    return [second, first, *rest]


def cov(x, correction=1, fweights=None, aweights=None):
    if fweights is not None or aweights is not None:
        raise NotOffered("weights")
    return x.cov(correction)


def arange(start=None, end=None, step=1, dtype=None, device=None, **kwargs):
    if end is None:
        start, end = 0, start
    return sv.arange(start, end, step, dtype=dtype, device=own_device(device))


def scaled_by(x, factor):
    """Multiplies by a factor of a fused product."""
    if x.dtype.is_integer:
        if factor != int(factor):
            raise NotOffered("a fraction times integers")
        factor = int(factor)
    return x if factor == 1 else x * factor


def segment_reduce(x, reduce, lengths=None, offsets=None, axis=0, unsafe=False, initial=None):
    neutral = {"sum": 0, "prod": 1, "mean": math.nan, "max": -math.inf, "min": math.inf}[reduce]
    if lengths is None or lengths.ndim != 1 or axis != 0 or initial not in (None, neutral):
        raise NotOffered("offsets, batches of lengths, or a start of the fold")
    return x.segment_reduce(lengths, {"max": "amax", "min": "amin"}.get(reduce, reduce), neutral)


def casting(dtype):
    return lambda x, **kwargs: x.cast(dtype)


def own_device(device):
    """Returns a device that PyTorch's creation functions take, as ours take it. None is the CPU in both."""
    return None if device is None else str(device)


def shaped(name):
    def call(shape, *args, dtype=None, device=None, **kwargs):
        return getattr(sv, name)(tuple(shape), *args, dtype=dtype, device=own_device(device))

    return call


def eye(rows, columns=None, dtype=None, device=None, **kwargs):
    return sv.eye(rows, columns, dtype=dtype, device=own_device(device))


def logspace(start, end, count, base=10.0, dtype=None, device=None):
    return sv.logspace(float(start), float(end), count, float(base), dtype=dtype, device=own_device(device))


def linspace(start, end, count, dtype=None, device=None):
    return sv.linspace(float(start), float(end), count, dtype=dtype, device=own_device(device))


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
        if not isinstance(q, float) or interpolation != "linear":
            raise NotOffered("several q or another interpolation")
        found = getattr(x.ravel() if dim is None else x, name)(q, -1 if dim is None else dim)
        return kept(found, x, dim) if keepdim else found

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
    if not isinstance(source, sv.Tensor):
        source = sv.full_like(index, 0).cast(x.dtype) + source
    if reduce is not None:
        return x.scatter_reduce(dim, index, source, {"add": "sum", "multiply": "prod"}[reduce])
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
        "pow mul unsqueeze narrow select movedim t trace msort ravel contiguous index_select take masked_select dot outer kron "
        "masked_fill index_fill index_copy scatter_add matmul tril triu masked_scatter unflatten"
    ).split()


CASTS = dict(
    one.split("=")
    for one in "bfloat16=bf16 bool=bool byte=u8 char=i8 double=f64 float=f32 half=f16 int=i32 long=i64 short=i16 cdouble=c128 cfloat=c64".split()
)

NAMES = {
    **{name: method(name) for name in std_names()},
    **{
        torch: method(own)
        for torch, own in (
            pair.split("=")
            for pair in "deg2rad=radians rad2deg=degrees isfinite=is_finite isinf=is_infinite isnan=is_nan sgn=sign bitwise_not=bit_not "
            "bitwise_and=bit_and bitwise_or=bit_or bitwise_xor=bit_xor bitwise_left_shift=shift_left bitwise_right_shift=shift_right "
            "true_divide=div logaddexp=log_add_exp nextafter=next_after special.xlog1py=xlog1py special.erf=erf mm=matmul bmm=matmul "
            "mv=gemv nn.functional.relu=relu nn.functional.silu=silu conj=conj conj_physical=conj cbrt=cbrt argwhere=argwhere".split()
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
    **{name: skipping(name) for name in "nansum nanmean".split()},
    "amax": reduction("max"),
    "amin": reduction("min"),
    **{name: spread(name) for name in "var std var_mean std_mean".split()},
    **{name: scan(name) for name in "cumsum cumprod".split()},
    "quantile": quantile("quantile"),
    "nanquantile": quantile("nanquantile"),
    "diff": diff,
    "corrcoef": lambda x: x.corrcoef(),
    "cov": cov,
    "cdist": lambda x, y, p=2.0, compute_mode=None: x.cdist(y, float(p)),
    "mode": along("mode"),
    "kthvalue": along("kthvalue", before=1),
    **{name: along(name, dim=None) for name in "median nanmedian".split()},
    **{name: extreme(name) for name in "max min".split()},
    # The indices of PyTorch's scans have no counterpart.
    **{name: lambda x, dim, name=name: (getattr(x, name)(dim), None) for name in "cummax cummin".split()},
    "aminmax": aminmax,
    "norm": norm,
    "linalg.vector_norm": vector_norm,
    "histc": histc,
    "unique": unique("unique"),
    "unique_consecutive": unique_consecutive,
    "searchsorted": searchsorted,
    "_segment_reduce": segment_reduce,
    "bucketize": bucketize,
    "nn.functional.pad": pad,
    "constant_pad_nd": lambda x, widths, value=0: pad(x, widths, "constant", value),
    "repeat_interleave": repeat_interleave,
    "index_put": lambda x, indices, values, accumulate=False: x.index_put(list(indices), values, accumulate),
    "put": lambda x, index, source, accumulate=False: (only({"accumulate": accumulate}, accumulate=False), x.put(index, source))[1],
    "nn.functional.batch_norm": batch_norm,
    "nn.functional.embedding": embedding,
    "nn.functional.linear": linear,
    "nn.functional.softmin": lambda x, dim=-1, dtype=None: (-(x if dtype is None else x.cast(dtype))).softmax(dim),
    "addmv": fused_product(lambda a, b: a.gemv(b)),
    "baddbmm": fused_product(lambda a, b: a.matmul(b)),
    "addbmm": fused_product(lambda a, b: a.permute(1, 0, 2).flatten(1, 2).matmul(b.flatten(0, 1))),
    "addr": fused_product(lambda a, b: a.outer(b)),
    "addcmul": lambda x, a, b, value=1: x + a * b * value,
    "allclose": lambda x, y, rtol=1e-5, atol=1e-8, equal_nan=False: x.allclose(y, rtol, atol) if not equal_nan else only({"equal_nan": True}),
    "item": lambda x: x.item(),
    "expand_as": lambda x, other: x.expand(other.shape),
    **{name: lambda x, other: x.reshape(other.shape) for name in "reshape_as view_as".split()},
    **{name: lambda x: x for name in "resolve_conj resolve_neg alias_copy".split()},
    **{name: casting(dtype) for name, dtype in CASTS.items()},
    **{name: shaped(name) for name in "full ones zeros".split()},
    "eye": eye,
    "arange": arange,
    "linspace": linspace,
    "logspace": logspace,
    "fill": lambda x, value: sv.full_like(x, value.item() if isinstance(value, sv.Tensor) else value),
    "linalg.diagonal": lambda x, offset=0, dim1=-2, dim2=-1: x.diagonal(offset, dim1, dim2),
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
    "flip": lambda x, dims: x.flip(tuple(dims)),
    "nonzero": nonzero,
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
    "meshgrid": meshgrid,
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
    "addmm": fused_product(lambda a, b: a.matmul(b)),
    "softmax": softmax("softmax"),
    "log_softmax": softmax("log_softmax"),
    "nn.functional.layer_norm": norm_rows("layer_norm"),
    "nn.functional.rms_norm": lambda x, shape, weight=None, eps=None: x.rms_norm(tuple(shape), weight, eps),
    "nn.functional.group_norm": lambda x, groups, weight=None, bias=None, eps=1e-5: x.group_norm(groups, weight, bias, eps),
    "nn.functional.normalize": lambda x, p=2.0, dim=1, eps=1e-12: x.normalize(float(p), dim, eps),
    "nn.functional.one_hot": lambda x, num_classes=-1: x.one_hot(num_classes) if num_classes >= 0 else only({"num_classes": num_classes}),
    "isclose": isclose,
    "equal": lambda x, y: x.equal(y),
    **{name: like(name) for name in "zeros_like ones_like full_like".split()},
    "view_as_real": lambda x: x.view_as_real(),
    "view_as_complex": lambda x: x.view_as_complex(),
    "bincount": lambda x, weights=None, minlength=0: x.bincount(minlength) if weights is None else only({"weights": 1}),
}
# PyTorch's other names of the same operations.
COPIES = "diagonal expand narrow permute split_with_sizes squeeze t transpose unbind unfold unsqueeze view".split()
NAMES |= {f"{name}_copy": NAMES[name] for name in COPIES}
NAMES |= {f"unsafe_{name}": NAMES[name] for name in "chunk split".split()}
NAMES |= {f"special.{name}": NAMES[name] for name in "log1p expm1 exp2 sinc round log_softmax softmax logit".split()}
