"""Differences from PyTorch that are meant, and results that PyTorch leaves open, for torch_samples.py."""

import re

import torch

# Why NaN comes out otherwise, for several operations.
SIGN = (r"nan at index", "the sign of NaN is NaN, as in NumPy")
SINC = (r"nan at index", "sinc of an infinity is 0, its limit")
POWER = (r"nan at index \(0, 0\)", "a complex 0 to the power 0 is 1, as in Python")
SATURATE = (r"(f32|f64|bf16|c64|c128): values", "casts to integers saturate, and NaN becomes 0; C++ leaves them undefined")

# By operation: expressions for the dtype and the text of a failure, and why it is meant.
EXPLAINED = {
    "heaviside": [(r"nan at index", "heaviside of NaN is NaN, as in NumPy")],
    "sign": [SIGN],
    "sgn": [SIGN],
    "sinc": [SINC],
    "special.sinc": [SINC],
    "nn.functional.silu": [(r"nan at index", "silu of minus infinity is -0, its limit")],
    "pow": [POWER],
    "__rpow__": [POWER],
    "__rdiv__": [(r"nan at index", "a complex number divided by 0 is infinite, as in C99")],
    "div": [(r"bf16: .*absolute difference: 1.0", "trunc_divide truncates the exact quotient; PyTorch rounds it to bf16 first")],
    "cat": [(r"found axis", "an empty vector beside tensors of other ranks is refused")],
    "gather": [(r"an index of shape \[2, 0\] for an array of shape \[5\]", "an empty index of another rank is refused")],
    "_segment_reduce": [(r"lengths of 9 rows in total; wanted the 10 rows", "lengths must add up to the rows")],
    "addbmm": [(r"bf16: values", "the product, its multiple and the sum are rounded to bf16 each")],
    "arange": [
        (r"found false to true", "numbers of bool are refused"),
        (r"i64: .*wanted integers", "integers from fractions are refused"),
    ],
    "linspace": [(r"i64: .*a dtype of fractions", "integers are refused; arange makes them")],
    "logspace": [(r"i64: .*a dtype of fractions", "integers are refused")],
    "nn.functional.batch_norm": [(r"found shape \[0\]", "a vector has no axis of channels")],
    **{name: [SATURATE] for name in "byte char short int long".split()},
}
# For every operation.
GENERAL = [
    (r"there are no dimensions", "an axis of a tensor without dimensions is an error, as in NumPy"),
    (r"needs one device", "operands of two devices are refused, also those without dimensions"),
]

# The axis of operations whose indices PyTorch leaves open if elements are equal; None if it does not.
AXES = {
    "topk": lambda x, k, dim=-1, largest=True, sorted=True: dim,
    "sort": lambda x, dim=-1, descending=False, stable=False: None if stable else dim,
    "argsort": lambda x, dim=-1, descending=False, stable=False: None if stable else dim,
    "mode": lambda x, dim=-1, keepdim=False: dim,
    "kthvalue": lambda x, k, dim=-1, keepdim=False: dim,
    "median": lambda x, dim=None, keepdim=False: dim,
    "nanmedian": lambda x, dim=None, keepdim=False: dim,
}


def explanation(name, dtype, reason):
    """Returns why a difference is meant, None if it is not."""
    text = f"{dtype}: {reason}"
    return next((why for pattern, why in [*EXPLAINED.get(name, []), *GENERAL] if re.search(pattern, text)), None)


def widened(value):
    """Returns floats and complex numbers in 64 bits each."""
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
        return value.to(torch.complex128 if value.is_complex() else torch.float64)
    return type(value)(map(widened, value)) if type(value) in (list, tuple) else value


def on_cpu(value):
    """Returns tensors on the CPU."""
    if isinstance(value, torch.Tensor):
        return value.cpu()
    # Among them torch.return_types.
    return tuple(map(on_cpu, value)) if isinstance(value, (list, tuple)) else value


def is_nearer(op, arguments, keywords, found, wanted):
    """Returns whether a result is at least as near as PyTorch's to PyTorch's own result in 64 bits."""
    if not isinstance(wanted, torch.Tensor) or found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if "dtype" in keywords:
        # Among casts to integers none is nearer.
        if not wanted.is_floating_point():
            return False
        keywords = {**keywords, "dtype": torch.float64}
    try:
        exact = op.op(*widened(arguments), **{key: widened(value) for key, value in keywords.items()})
    except RuntimeError:
        # PyTorch refuses on the CPU what it computes on the device, such as an integer's remainder by 0.
        return False
    if exact.shape != wanted.shape or not all(one.isfinite().all() for one in (exact, found, wanted)):
        return False
    return bool((found.to(exact.dtype) - exact).abs().max() <= (wanted.to(exact.dtype) - exact).abs().max())


def choices_differ(name, arguments, keywords, found, wanted, compare):
    """Returns whether results differ by more than the positions of equal elements.

    Positions are right if the input has the wanted values there and no position of a row occurs twice.
    """
    axis = AXES[name](*arguments, **keywords) if name in AXES else None
    if axis is None or arguments[0].ndim == 0:
        return True
    x = arguments[0]
    places, wanted_places = (found, wanted) if name == "argsort" else (found[1], wanted[1])
    if (places.shape, places.dtype) != (wanted_places.shape, wanted_places.dtype):
        return True
    if places.ndim < x.ndim:
        places, wanted_places = places.unsqueeze(axis), wanted_places.unsqueeze(axis)
    if places.numel() and (places.min() < 0 or places.max() >= x.shape[axis]):
        return True
    chosen, wanted_chosen = x.gather(axis, places), x.gather(axis, wanted_places)
    if name != "argsort" and compare(chosen.reshape(found[0].shape), found[0]):
        return True
    if keywords.get("sorted") is False:
        chosen, wanted_chosen = chosen.sort(axis)[0], wanted_chosen.sort(axis)[0]
    occurs_twice = (places.sort(axis)[0].diff(dim=axis) == 0).any()
    return bool(occurs_twice) or compare(chosen, wanted_chosen) is not None


def left_open(name, arguments, keywords, found, wanted):
    """Returns why results may differ as they do, of inputs whose result PyTorch leaves open; None if they may not."""
    if name == "__rmod__":
        divisor = arguments[0].broadcast_to(wanted.shape)
        is_zero = divisor == 0
        if not divisor.is_floating_point() and (found[is_zero] == 0).all() and (found[~is_zero] == wanted[~is_zero]).all():
            return "a remainder by an integer 0 is 0, as in NumPy; PyTorch's kernels leave it undefined"
    if name == "mode" and arguments[0].ndim > 0:
        axis = AXES[name](*arguments, **keywords)
        x = arguments[0].movedim(axis, -1)
        (value, place), (wanted_value, _) = (
            [part if part.ndim < x.ndim else part.squeeze(axis) for part in parts] for parts in (found, wanted)
        )
        counts = (x.unsqueeze(-1) == x.unsqueeze(-2)).sum(-1)
        is_most = counts == counts.amax(-1, keepdim=True)
        least = x.masked_fill(~is_most, x.max()).amin(-1)
        is_a_mode = ((x == wanted_value.unsqueeze(-1)) & is_most).any(-1)
        is_there = x.gather(-1, place.unsqueeze(-1)).squeeze(-1) == value
        if (value == least).all() and is_a_mode.all() and is_there.all():
            return "of values that occur as often the least is taken, as by PyTorch on the CPU; its CUDA kernel takes any"
    return None
