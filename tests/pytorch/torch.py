"""A stand-in for PyTorch that has no numbers and no device: it holds what it is asked for against shapes, dtypes and bounds, and
keeps account of memory in the file that FAKE_TORCH_ACCOUNT names. A call on the device takes half a millisecond.

FAKE_TORCH_MISHAP: "absent" and "no device" are what they say; "noise" is written where answers go; without a "compiler"
nothing is compiled; erf is refused by "refusal", ends the process by "end", and does not come back by "hang".
"""

import builtins
import json
import math
import os
import sys
import time
import types

MISHAP = os.environ.get("FAKE_TORCH_MISHAP")
if MISHAP == "absent":
    raise ImportError("No module named 'torch'")
if MISHAP == "noise":
    print('{"library": "noise"}', flush=True)

__version__ = "9.9+fake"
account = {"held": 0, "peak": 0, "made": 0, "timed": 0}
calls = 0


def write_account():
    if "FAKE_TORCH_ACCOUNT" in os.environ:
        with open(os.environ["FAKE_TORCH_ACCOUNT"], "w") as file:
            json.dump(account, file)


class DType:
    def __init__(self, name, size, kind):
        self.name, self.size, self.kind = name, size, kind


for name, size, kind in [
    ("uint8", 1, "integer"), ("int8", 1, "integer"), ("int16", 2, "integer"), ("int32", 4, "integer"),
    ("int64", 8, "integer"), ("float16", 2, "float"), ("bfloat16", 2, "float"), ("float32", 4, "float"),
    ("float64", 8, "float"), ("complex64", 8, "complex"), ("complex128", 16, "complex"),
]:  # fmt: skip
    globals()[name] = DType(name, size, kind)


class Storage:
    def __init__(self, size):
        self.size = size
        account["made"] += 1
        account["held"] += size
        account["peak"] = builtins.max(account["peak"], account["held"])

    def __del__(self):
        account["held"] -= self.size


class Tensor:
    requires_grad = False

    def __init__(self, storage, dtype, shape):
        self.storage, self.dtype, self.shape = storage, dtype, tuple(shape)

    def numel(self):
        return math.prod(self.shape)

    def element_size(self):
        return self.dtype.size

    def random_(self):
        assert self.dtype is uint8
        return self

    def normal_(self):
        assert self.dtype.kind == "float"
        return self

    def transpose(self, first, second):
        shape = list(self.shape)
        shape[first], shape[second] = shape[second], shape[first]
        return Tensor(self.storage, self.dtype, shape)

    def detach(self):
        return Tensor(self.storage, self.dtype, self.shape)

    def requires_grad_(self):
        self.requires_grad = True
        return self

    def view(self, dtype):
        count, left = divmod(self.numel() * self.dtype.size, dtype.size)
        assert left == 0
        return Tensor(self.storage, dtype, [count])

    def bitwise_and_(self, number):
        assert self.dtype.kind == "integer" and number.bit_length() <= self.dtype.size * 8 - 1
        return self

    bitwise_or_ = bitwise_and_

    def as_strided(self, shape, strides, offset):
        last = offset + sum_of((size - 1) * stride for size, stride in zip(shape, strides))
        assert last < self.numel(), "beyond the memory"
        return Tensor(self.storage, self.dtype, shape)

    def copy_(self, other):
        assert self.shape == other.shape
        return called(self)

    def index_copy_(self, axis, index, other):
        assert self.shape == other.shape and index.dtype is int64 and index.shape == (self.shape[axis],)
        return called(self)

    def put_(self, index, other):
        assert index.dtype is int64 and index.shape == other.shape
        return called(self)

    def relu_(self):
        return self

    def __add__(self, other):
        return add(self, other)

    def __mul__(self, number):
        return called(like(self))


sum_of = builtins.sum


def empty(count, dtype, device=None):
    shape = (count,) if isinstance(count, int) else count
    size = math.prod(shape) * dtype.size
    # A scalar that is asked for its size only is not on the device.
    return Tensor(Storage(size) if device == "cuda" else None, dtype, shape)


def randperm(count, dtype, device):
    return empty(count, dtype, device)


def like(tensor, shape=None):
    return empty(tensor.shape if shape is None else shape, tensor.dtype, "cuda")


def called(result):
    global calls
    calls += 1
    return result


def broadcast(*shapes):
    rank = builtins.max(len(shape) for shape in shapes)
    full = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    assert all(len({size for size in sizes if size != 1}) <= 1 for sizes in zip(*full))
    return tuple(builtins.max(sizes) for sizes in zip(*full))


def elementwise(name, count):
    def function(*operands, out=None):
        assert len(operands) == count
        if name == "erf" and MISHAP == "refusal":
            raise RuntimeError("\"erf_cuda\" not implemented for 'Half'\nand more lines")
        if name == "erf" and MISHAP == "end":
            os._exit(7)
        if name == "erf" and MISHAP == "hang":
            time.sleep(600)
        shape = broadcast(*(operand.shape for operand in operands))
        if out is None:
            return called(like(operands[0], shape))
        assert out.shape == shape
        real = name in ("abs", "angle") and operands[0].dtype.kind == "complex"
        assert real or out.dtype is operands[0].dtype
        assert not real or out.dtype.size * 2 == operands[0].dtype.size
        return called(out)

    return function


for name in "add mul div".split():
    globals()[name] = elementwise(name, 2)
for name in (
    "abs rsqrt exp exp2 expm1 log log2 log10 log1p sinh cosh tanh asinh acosh atanh sigmoid sin cos tan asin acos atan sinc "
    "angle erf erfc lgamma logit relu"
).split():
    globals()[name] = elementwise(name, 1)


def folded(x, *axes):
    assert len(axes) <= 1 and all(axis < len(x.shape) for axis in axes)
    kept = [size for axis, size in enumerate(x.shape) if axes and axis not in axes]
    return called(like(x, kept))


sum = amax = argmax = any = folded


def cumsum(x, axis):
    assert axis < len(x.shape)
    return called(like(x))


def index_select(x, axis, index):
    assert index.dtype is int64 and len(index.shape) == 1 and axis < len(x.shape)
    return called(like(x))


def take(x, index):
    assert index.dtype is int64
    return called(like(x, index.shape))


def addcmul(c, a, b, out):
    assert a.shape == b.shape == c.shape == out.shape
    return called(out)


def compile(function, dynamic):
    if MISHAP == "compiler":
        raise RuntimeError("no compiler")
    return lambda *operands: called(like(operands[0]))


def vector_norm(x, order, axes):
    return folded(x, *(axes or ()))


def randn(*shape):
    return empty(shape, float32, "cpu")


allowed_backends = []
is_deterministic = False


def use_deterministic_algorithms(mode):
    global is_deterministic
    is_deterministic = mode


class sdpa_kernel:
    def __init__(self, backends):
        self.backends = backends

    def __enter__(self):
        allowed_backends.append(self.backends)

    def __exit__(self, *error):
        allowed_backends.pop()


def scaled_dot_product_attention(queries, keys, values, is_causal=False):
    assert len(queries.shape) == 4 and queries.shape == keys.shape == values.shape and isinstance(is_causal, bool)
    result = called(Tensor(queries.storage, queries.dtype, queries.shape))
    inputs = (queries, keys, values)
    result.recorded = [x for x in inputs if x.requires_grad]
    result.backend = allowed_backends[-1] if allowed_backends else None
    # On a device a benchmark names its backend.
    assert result.backend is not None or queries.storage is None
    return result


def grad(result, inputs, gradient, retain_graph=False):
    assert len(result.recorded) == len(inputs) and gradient.shape == result.shape
    assert retain_graph or result.storage is None, "a backward of a device runs more than once"
    if is_deterministic:
        assert result.backend == ["flash"] and not utils.deterministic.fill_uninitialized_memory
    return called(inputs)


def set_num_threads(count):
    assert count > 0


def get_num_threads():
    return 2


autograd = types.SimpleNamespace(grad=grad)
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 91900))
linalg = types.SimpleNamespace(vector_norm=vector_norm)
functional = types.SimpleNamespace(
    silu=elementwise("silu", 1),
    softplus=elementwise("softplus", 1),
    gelu=lambda x, approximate="none": elementwise("gelu", 1)(x),
    scaled_dot_product_attention=scaled_dot_product_attention,
)
attention = types.SimpleNamespace(
    SDPBackend=types.SimpleNamespace(CUDNN_ATTENTION="cudnn", FLASH_ATTENTION="flash"), sdpa_kernel=sdpa_kernel
)
nn = types.SimpleNamespace(functional=functional, attention=attention)
utils = types.SimpleNamespace(deterministic=types.SimpleNamespace(fill_uninitialized_memory=True))
sys.modules.update({
    "torch.nn": nn, "torch.nn.attention": attention, "torch.utils": utils, "torch.utils.deterministic": utils.deterministic
})  # fmt: skip


class Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.at = calls

    def synchronize(self):
        account["timed"] += 1

    def elapsed_time(self, other):
        return (other.at - self.at) * 0.5


cuda = types.SimpleNamespace(
    is_available=lambda: MISHAP != "no device",
    synchronize=lambda: None,
    empty_cache=write_account,
    Event=Event,
    _sleep=lambda cycles: None,
)
