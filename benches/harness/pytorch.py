"""PyTorch's side of a benchmark: prepares an operation that it is asked for, and times it when it is its turn.

pytorch.rs starts it and has it do one thing at a time. A request and its answer are a line of JSON each:

    (the start)                                       {"library"}, or {"absent": why} and the end
    {"prepare": operation, "operands", "output", "axes"}
                                                      {"call": what is called; null where PyTorch has no such operation}
    {"time": "device", "queued" or "host", "calls"}   {"seconds": of one call of that many}
    {"drop": true}                                    {}

or {"error": why}, after which it goes on. An operand is {"dtype", "shape", "strides", "offset", "values"}, its numbers being
of the distribution that ours are of ("numbers", "normal"), or the indices of a permutation ("permutation"); an output has
"nothing". Where "output" is null the operation allocates its own at each call. pytorch_attention.py and pytorch_models.py
come before this file.
"""

import functools
import json
import math
import os
import sys
import time

# The output of libraries must not come between the answers.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def answer(**fields):
    answers.write(json.dumps(fields) + "\n")
    answers.flush()


# Of torch.compile: its pool of processes would outlive what it is asked for here.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
try:
    import torch
except ImportError as error:
    answer(absent=f"python3 has no PyTorch ({error})")
    sys.exit()
if not torch.cuda.is_available():
    answer(absent=f"PyTorch {torch.__version__} finds no device")
    sys.exit()

DTYPES = {
    "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
    "c64": torch.complex64, "c128": torch.complex128,
}  # fmt: skip
# Of a float: the integer of its size, the bits of random ones that it keeps, and those that are set: numbers of half to two,
# with either sign.
FLOATS = {
    "f16": (torch.int16, 16, 0x87FF, 0x3800),
    "bf16": (torch.int16, 16, 0x80FF, 0x3F00),
    "f32": (torch.int32, 32, 0x80FF_FFFF, 0x3F00_0000),
    "f64": (torch.int64, 64, 0x801F_FFFF_FFFF_FFFF, 0x3FE0_0000_0000_0000),
}
PARTS = {"c64": "f32", "c128": "f64"}


def numbers(dtype, count):
    size = torch.empty((), dtype=DTYPES[dtype]).element_size()
    values = torch.empty(count * size, dtype=torch.uint8, device="cuda").random_()
    part = PARTS.get(dtype, dtype)
    if part in FLOATS:
        integer, bits, kept, set_bits = FLOATS[part]
        values = values.view(integer)
        # In place, so that nothing of this size is held beside it.
        values.bitwise_and_(kept - (1 << bits)).bitwise_or_(set_bits)
    return values.view(DTYPES[dtype])


MAKE = {
    "numbers": numbers,
    "normal": lambda dtype, count: torch.empty(count, dtype=DTYPES[dtype], device="cuda").normal_(),
    "permutation": lambda dtype, count: torch.randperm(count, dtype=DTYPES[dtype], device="cuda"),
    "nothing": lambda dtype, count: torch.empty(count, dtype=DTYPES[dtype], device="cuda"),
}


class Memory:
    """The memory of the operands, by their place; the next operation reuses it."""

    def __init__(self):
        self.held = {}

    def views(self, operands):
        """A tensor for each place; places that are not named are given up."""
        for place in list(self.held):
            if place not in operands or not self.fits(place, operands[place]):
                del self.held[place]
        torch.cuda.empty_cache()
        return {place: self.view(place, operand) for place, operand in operands.items()}

    def fits(self, place, operand):
        dtype, values, tensor = self.held[place]
        wanted = end(operand)
        enough = tensor.numel() == wanted if values == "permutation" else tensor.numel() >= wanted
        return (dtype, values) == (operand["dtype"], operand["values"]) and enough

    def view(self, place, operand):
        if place not in self.held:
            dtype, values = operand["dtype"], operand["values"]
            self.held[place] = dtype, values, MAKE[values](dtype, end(operand))
        tensor = self.held[place][2]
        return tensor.as_strided(operand["shape"], operand["strides"], operand["offset"])

    def drop(self):
        self.held.clear()
        torch.cuda.empty_cache()


def end(operand):
    """The elements that an operand's memory must have."""
    steps = zip(operand["shape"], operand["strides"])
    return 1 + operand["offset"] + sum((size - 1) * stride for size, stride in steps)


def fused(operands, output, axes):
    """One kernel where PyTorch can compile here, otherwise its two best ones."""
    try:
        compiled = torch.compile(lambda a, b, c: torch.relu(a * b + c), dynamic=False)
        compiled(*operands)
        return "torch.compile of relu(a * b + c)", functools.partial(compiled, *operands)
    except Exception as error:
        a, b, c = operands
        call = f"torch.addcmul and relu_ (torch.compile gives {type(error).__name__})"
        return call, lambda: torch.addcmul(c, a, b, out=output).relu_()


def compiled(call, function):
    """A function as torch.compile makes it for these operands' shapes."""

    def make(operands, output, axes):
        ours = torch.compile(function, dynamic=False)
        ours(*operands)
        return f"torch.compile of {call}", functools.partial(ours, *operands)

    return make


def into(name):
    """A function of torch that writes into an output that is there."""
    function = getattr(torch, name, None)
    make = lambda operands, output, axes: (f"torch.{name}", functools.partial(function, *operands, out=output))  # noqa: E731
    return make if function else None


def new(call, function):
    """A function that allocates its output."""
    return lambda operands, output, axes: (call, functools.partial(function, *operands))


def folded(call, function):
    """A function over all elements, or over the axes; what takes one axis only is given one only."""
    return lambda operands, output, axes: (call, functools.partial(function, *operands, *axes))


def of_two(operands, output, axes):
    a, b = operands
    return "a + b", lambda: a + b


def of_a_number(operands, output, axes):
    (a,) = operands
    return "a * 0.25", lambda: a * 0.25


functional = torch.nn.functional


def softmax(x, w, b):
    return torch.softmax(x, -1)


def layer_norm(x, w, b):
    return functional.layer_norm(x, w.shape, w, b, 1e-5)


def rms_norm(x, w, b):
    return functional.rms_norm(x, w.shape, w, 1e-5)


def residual_layer_norm(x, residual, bias):
    return functional.layer_norm((x + residual + bias).float(), bias.shape).bfloat16()


def batch_norm(x, w, b):
    return functional.batch_norm(x, None, None, w, b, training=True)


def repeatable(function):
    """A function as torch.compile makes it, whose backward may run more than once."""
    import torch._functorch.config

    torch._functorch.config.donated_buffer = False
    return torch.compile(function)


def gradients(call, function, wanted, is_compiled=False):
    """The gradients of a function's first arguments for that of its result, which is the second operand."""

    def make(operands, output, axes):
        x, gradient, w = operands
        inputs = [x.detach().requires_grad_(), w.detach().requires_grad_(), torch.zeros_like(w).requires_grad_()]
        result = (repeatable(function) if is_compiled else function)(*inputs)
        find = functools.partial(torch.autograd.grad, result, inputs[:wanted], gradient, retain_graph=True)
        return f"the backward of {call}", find

    return make


def softmax_backward(operands, output, axes):
    y, gradient, _ = operands
    return "aten._softmax_backward_data", lambda: torch.ops.aten._softmax_backward_data(gradient, y, -1, y.dtype)


def softmax_gradient(y, gradient):
    return y * (gradient - (y * gradient).sum(-1, keepdim=True))


def compiled_softmax_backward(operands, output, axes):
    ours = torch.compile(softmax_gradient, dynamic=False)
    ours(*operands[:2])
    return "torch.compile of the gradient", functools.partial(ours, *operands[:2])


def loss_of_classes(x, labels):
    return functional.cross_entropy(x, labels)


def cross_entropy(call, is_compiled=False):
    def make(operands, output, axes):
        (x,) = operands
        loss = torch.compile(loss_of_classes) if is_compiled else loss_of_classes
        x = x.detach().requires_grad_()
        labels = torch.randint(x.shape[1], (x.shape[0],), device="cuda")

        def work():
            x.grad = None
            loss(x, labels).backward()

        return call, work

    return make


def golden(call, function):
    """A formula of golden-ratio operations, a call for each of its operators."""
    return lambda operands, output, axes: (f"eager: {call}", functools.partial(function, *operands))


PHI = (1 + 5**0.5) / 2


def golden_batch_norm(x):
    return functional.batch_norm(x, None, None, training=True) * PHI**-0.5


def resonant_d_phase(v, g, n2):
    return v * (1 + 0.7 / PHI**2 * torch.sqrt(n2)) + 0.01 * 0.7 * torch.exp(-n2 / (4 * PHI)) * g


def h_phase(v, _, n2):
    return v * (1 - 0.3 / PHI * (1 - torch.exp(-n2 / PHI)))


def snap_gradient(v, lattice, n2):
    return (lattice - v) * torch.exp(-n2 / PHI)


def rotate_phases(z, theta):
    return z * torch.polar(torch.ones_like(theta), theta)


def both_products(a, b):
    torch.matmul(a, b)
    return torch.matmul(b, a)


def adamw(operands, output, axes):
    parameter = operands[0].clone().requires_grad_()
    parameter.grad = torch.ones_like(parameter)
    return "torch.optim.AdamW, fused", torch.optim.AdamW([parameter], fused=True).step


def feed_forward(call, is_compiled=False):
    def make(operands, output, axes):
        (gradient,) = operands
        width = gradient.shape[1]
        layers = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU("tanh"), torch.nn.Linear(4 * width, width)
        ).to("cuda", torch.bfloat16)
        x = torch.randn_like(gradient).requires_grad_()
        function = torch.compile(layers) if is_compiled else layers

        def work():
            x.grad = None
            layers.zero_grad()
            function(x).backward(gradient)

        return call, work

    return make


def scatter_add(operands, output, axes):
    target, elements = operands
    index = torch.randint(target.numel(), (elements.numel(),), device="cuda")

    def work():
        torch.use_deterministic_algorithms(True)
        target.scatter_add(0, index, elements)
        torch.use_deterministic_algorithms(False)

    return "torch.scatter_add, deterministic", work


def cupy_sort(dtype):
    """CuPy's sort of the elements as this dtype. Both libraries work on the default stream."""

    def make(operands, output, axes):
        import cupy

        elements = cupy.from_dlpack(operands[0]).view(dtype)
        return "cupy.sort", functools.partial(cupy.sort, elements)

    return make


def of_a_mask(call, function):
    """A function of elements and of the mask of those above 0, which is there before."""

    def make(operands, output, axes):
        (x,) = operands
        return call, functools.partial(function, x, x > 0)

    return make


def positive(function):
    """A function as torch.compile makes it, of the absolute values of its operands."""

    def make(operands, output, axes):
        operands = [operand.abs() for operand in operands]
        ours = torch.compile(function, dynamic=False)
        ours(*operands)
        return "torch.compile of the same", functools.partial(ours, *operands)

    return make


def leaky_integrate_fire(state, current):
    following = torch.tanh(0.9 * state + current)
    spikes = following > 0.9
    return torch.where(spikes, 0.0, following), spikes


def reservoir_update(state, current):
    return torch.tanh(0.9 * state + current)


def kuramoto_step(theta, omega):
    sines, cosines = torch.sin(theta), torch.cos(theta)
    pull = cosines * sines.sum(-1, keepdim=True) - sines * cosines.sum(-1, keepdim=True)
    return torch.remainder(theta + 0.05 * (omega + 1.5 / theta.shape[-1] * pull), 2 * math.pi)


def stdp_update(weights, pre_times, post_times):
    dt = post_times.unsqueeze(-1) - pre_times
    change = 0.1 * torch.sign(dt) * torch.exp(-dt.abs() / 20.0)
    both = (pre_times > 1.0) & (post_times > 1.0).unsqueeze(-1)
    return torch.where(both, (weights + change).clamp(-1.0, 1.0), weights)


def divergence(q, p):
    return torch.where((q > 1e-10) & (p > 1e-10), q * torch.log(q / p), 0.0)


def shannon_entropy(p):
    return torch.where(p > 1e-10, -p * torch.log(p), 0.0).sum(-1)


def kl_divergence(q, p):
    return divergence(q, p).sum(-1)


def free_energy(q, p, likelihood):
    return (divergence(q, p) - torch.where(q > 1e-10, q * likelihood, 0.0)).sum(-1)


def gaussian_accuracy(error, precision):
    return -0.5 * (precision * error.square() - torch.log(precision) + math.log(2 * math.pi)).sum(-1)


def gaussian_kl_divergence(mean, variance, prior_mean, prior_variance):
    ratio = variance / prior_variance
    return 0.5 * (ratio + (mean - prior_mean).square() / prior_variance - 1.0 - torch.log(ratio)).sum(-1)


def order_parameter(theta):
    x, y = torch.cos(theta).mean(-1), torch.sin(theta).mean(-1)
    return torch.hypot(x, y), torch.atan2(y, x)


def entropy_production(velocity):
    return velocity.square().sum(-1) / (2 * 0.5)


def of_qubit(call, function):
    """A function of the amplitudes whose middle axis is a qubit's."""

    def make(operands, output, axes):
        amplitudes = operands[0].view(-1, 2, 2 ** axes[0])
        return call, functools.partial(function, amplitudes)

    return make


def hadamard(x):
    return torch.stack((x[:, 0] + x[:, 1], x[:, 0] - x[:, 1]), 1).mul_(0.5**0.5)


def phase_gate(x):
    factors = torch.tensor([[1.0], [complex(math.cos(0.5), math.sin(0.5))]], dtype=x.dtype, device=x.device)
    return x * factors


# PyTorch's functions for our operations, by our names.
OPERATIONS = {
    **{
        name: into(name)
        for name in (
            "add mul div abs rsqrt exp exp2 expm1 log log2 log10 log1p sinh cosh tanh asinh acosh atanh sigmoid sin cos tan "
            "asin acos atan sinc angle erf erfc lgamma logit"
        ).split()
    },
    "silu": new("torch.nn.functional.silu", functional.silu),
    "softplus": new("torch.nn.functional.softplus", functional.softplus),
    "gelu": new("torch.nn.functional.gelu", functional.gelu),
    "gelu_tanh": new(
        "torch.nn.functional.gelu, approximate", functools.partial(functional.gelu, approximate="tanh")
    ),
    "relu(a * b + c)": fused,
    # Casts and rearranges.
    "copy": lambda operands, output, axes: ("Tensor.copy_", functools.partial(output.copy_, *operands)),
    "sum": folded("torch.sum", torch.sum),
    "max": folded("torch.amax", torch.amax),
    "argmax": folded("torch.argmax", torch.argmax),
    "norm": folded("torch.linalg.vector_norm", lambda x, *axes: torch.linalg.vector_norm(x, 2, axes or None)),
    "any": folded("torch.any", torch.any),
    "cumsum": folded("torch.cumsum", torch.cumsum),
    "index_select": lambda operands, output, axes: (
        "torch.index_select",
        functools.partial(torch.index_select, operands[0], axes[0], operands[1]),
    ),
    "index_copy": lambda operands, output, axes: (
        "Tensor.index_copy_",
        functools.partial(operands[0].index_copy_, axes[0], operands[1], operands[2]),
    ),
    "take": new("torch.take", torch.take),
    "put": lambda operands, output, axes: ("Tensor.put_", functools.partial(operands[0].put_, *operands[1:])),
    "softmax": new("torch.softmax", softmax),
    "softmax over an axis": lambda operands, output, axes: (
        "torch.softmax",
        functools.partial(torch.softmax, *operands, *axes),
    ),
    "layer_norm": new("torch.nn.functional.layer_norm", layer_norm),
    "rms_norm": new("torch.nn.functional.rms_norm", rms_norm),
    "softmax, compiled": compiled("softmax", softmax),
    "layer_norm, compiled": compiled("layer_norm", layer_norm),
    "rms_norm, compiled": compiled("rms_norm", rms_norm),
    "residual_layer_norm, compiled": compiled("the same", residual_layer_norm),
    "softmax_backward": softmax_backward,
    "softmax_backward, compiled": compiled_softmax_backward,
    "layer_norm_backward": gradients("layer_norm", layer_norm, 3),
    "layer_norm_backward, compiled": gradients("torch.compile of layer_norm", layer_norm, 3, True),
    "rms_norm_backward": gradients("rms_norm", rms_norm, 2),
    "rms_norm_backward, compiled": gradients("torch.compile of rms_norm", rms_norm, 2, True),
    "cross_entropy": cross_entropy("torch.nn.functional.cross_entropy and its backward"),
    "cross_entropy, compiled": cross_entropy("torch.compile of cross_entropy, and its backward", True),
    "phi_residual_relu": golden("relu(x + r / phi), 7 streams for 3", lambda x, r, _: torch.relu(x + r / PHI)),
    "complex_divide": golden("a / b, 3 streams for 3", lambda a, b, _: a / b),
    "rotate_phases": golden("z * polar(1, theta)", rotate_phases),
    "snap_gradient": golden("(lattice - v) * weight(n2), 5 streams for 3", snap_gradient),
    "resonant_d_phase": golden("v * factor(n2) + scale(n2) * g, 7 streams for 3", resonant_d_phase),
    "h_phase": golden("v * factor(n2), 2 streams for 2", h_phase),
    "golden_commutator": golden("matmul(a, b), matmul(b, a), without the sum", both_products),
    "golden_batch_norm": golden("batch_norm(x) * factor", golden_batch_norm),
    "adamw": adamw,
    "feed_forward": feed_forward("Linear, GELU, Linear and their backward"),
    "feed_forward, compiled": feed_forward("torch.compile of Linear, GELU, Linear, and its backward", True),
    "batch_norm": new("torch.nn.functional.batch_norm", batch_norm),
    "sort": new("torch.sort, stable", lambda x: torch.sort(x, stable=True)),
    "sorted, f32": cupy_sort("float32"),
    "sorted, u32": cupy_sort("uint32"),
    "topk": lambda operands, output, axes: ("torch.topk", functools.partial(torch.topk, *operands, *axes)),
    "masked_select": of_a_mask("torch.masked_select", lambda x, mask: torch.masked_select(x, mask)),
    "nonzero": of_a_mask("torch.nonzero of a mask", lambda _, mask: torch.nonzero(mask)),
    "histc": lambda operands, output, axes: ("torch.histc", lambda: torch.histc(*operands, *axes, -2, 2)),
    "scatter_add": scatter_add,
    **{
        function.__name__: positive(function)
        for function in (
            leaky_integrate_fire, reservoir_update, kuramoto_step, stdp_update, shannon_entropy, kl_divergence,
            free_energy, gaussian_accuracy, gaussian_kl_divergence, order_parameter, entropy_production,
        )
    },
    "hadamard": of_qubit("torch.stack of the sum and the difference, mul_", hadamard),
    "pauli_x": of_qubit("Tensor.flip", lambda x: x.flip(1)),
    "phase_gate": of_qubit("x * factors", phase_gate),
    "measurement_probabilities": compiled(
        "the sum of squares", lambda x: torch.view_as_real(x).square().sum(-1)
    ),
    **attention_operations(),  # noqa: F821
    # As a program writes them, for the host's time.
    "a + b": of_two,
    "a * 0.25": of_a_number,
}


def device_time(work, calls):
    # The first call keeps the device busy until the others are queued, so that their time holds no launch latency.
    work()
    start, finish = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        work()
    finish.record()
    finish.synchronize()
    return start.elapsed_time(finish) * 1e-3 / calls


def queued_time(work, calls):
    torch.cuda._sleep(1_000_000)
    return device_time(work, calls)


def host_time(work, calls):
    begun = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - begun) / calls


CLOCKS = {"device": device_time, "queued": queued_time, "host": host_time}


class Side:
    """The prepared runs."""

    def __init__(self):
        self.memory = Memory()
        self.work = None

    def prepare(self, request):
        self.work = None
        make = OPERATIONS.get(request["prepare"]) or model_operation(request["prepare"])  # noqa: F821
        if make is None:
            return {"call": None}
        named = dict(enumerate(request["operands"]))
        if request["output"] is not None:
            named["output"] = request["output"]
        views = self.memory.views(named)
        operands = [views[place] for place in range(len(request["operands"]))]
        call, work = make(operands, views.get("output"), request["axes"])
        # Refused here and not in a round where it is not for these operands; and what is made at a first call is made.
        work()
        torch.cuda.synchronize()
        # PyTorch makes an output fit and only warns of it.
        if request["output"] is not None and list(views["output"].shape) != request["output"]["shape"]:
            raise ValueError("the output is of another shape")
        self.work = work
        return {"call": call}

    def time(self, request):
        if self.work is None:
            raise RuntimeError("nothing is prepared")
        torch.cuda.synchronize()
        seconds = CLOCKS[request["time"]](self.work, request["calls"])
        torch.cuda.synchronize()
        return {"seconds": seconds}

    def drop(self, request):
        self.work = None
        made.clear()  # noqa: F821
        self.memory.drop()
        return {}


def main():
    answer(library=f"PyTorch {torch.__version__}")
    side = Side()
    for line in sys.stdin:
        request = json.loads(line)
        kind = next(kind for kind in ("prepare", "time", "drop") if kind in request)
        try:
            answer(**getattr(side, kind)(request))
        except Exception as error:  # One that this version cannot do does not take the others with it.
            lines = str(error).splitlines() or [""]
            answer(error=f"{type(error).__name__}: {lines[0]}")


main()
