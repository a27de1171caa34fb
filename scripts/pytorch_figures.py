#!/usr/bin/env python3
"""What PyTorch needs for work that the benchmarks measure, and a memory trace of a training with it.

    pytorch_figures.py FOLDER TRACE [PART,PART]

Run where the benchmarks run, just before or after them, so that both meet the same machine. Parts are allocations, graphs,
copies, elementwise, small_operations and training; what FOLDER/others.json has of other parts is kept.

Writes FOLDER/others.json, which benches/RESULTS.md shows beside our figures, and TRACE, which
`cargo bench --bench memory -- --only replay_recorded --trace TRACE` replays. Needs PyTorch and a device; exits with 3
where there is none. Nothing of the crate runs here.
"""

import datetime
import json
import pathlib
import statistics
import sys
import time

try:
    import torch
except ImportError:
    sys.exit(3)
if not torch.cuda.is_available():
    sys.exit(3)

FIGURES = {}
STEPS = 60


def enter(key, call, unit, sample):
    FIGURES[key] = {"call": call, "median": statistics.median(sample), "unit": unit, "rounds": len(sample)}


def per_call(work, calls, rounds, scale):
    """The host's time for a call, as the mean over a round's, with an empty device before."""
    sample = []
    for _ in range(rounds + 3):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(calls):
            work()
        sample.append((time.perf_counter() - begun) * scale / calls)
    return sample[3:]


def allocations():
    for name, size in [("512 B", 512), ("64 KiB", 64 << 10), ("5 MiB", 5 << 20), ("300 MiB", 300 << 20)]:
        def work():
            torch.empty(size, dtype=torch.uint8, device="cuda")
        enter(f"allocation/{name}, 1 thread", "torch.empty, dropped", "ns", per_call(work, 4096, 50, 1e9))


def graphs():
    one = torch.ones(32, dtype=torch.int32, device="cuda")
    for kernels, key, calls in [(1, "1 kernel, 1 buffer", 32), (10, "10 kernels, 10 buffers", 32), (1000, None, 4)]:
        totals = [torch.zeros_like(one) for _ in range(kernels if kernels <= 10 else 1)]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for index in range(kernels):
                totals[index % len(totals)].add_(one)
        if key:
            enter(f"graph_launch/{key}", "CUDAGraph.replay", "ns", per_call(graph.replay, calls, 100, 1e9))
            continue
        key = "1000 kernels, 1 buffer"
        enter(f"graph_launch/{key}", "CUDAGraph.replay", "ns", per_call(graph.replay, calls, 100, 1e9))
        sample = []
        for _ in range(55):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(4):
                graph.replay()
            end.record()
            end.synchronize()
            sample.append(start.elapsed_time(end) * 1e3 / (4 * kernels))
        enter("graph/a node, device time", "CUDAGraph.replay", "us", sample[5:])


def copies():
    count = 1 << 30
    device = torch.empty(count, dtype=torch.uint8, device="cuda")
    for kind, pinned in [("pageable", False), ("transfer", True)]:
        host = torch.ones(count, dtype=torch.uint8, pin_memory=pinned)
        up, down = [], []
        for _ in range(23):
            for sample, work in [(up, lambda: device.copy_(host)), (down, lambda: host.copy_(device))]:
                torch.cuda.synchronize()
                begun = time.perf_counter()
                work()
                torch.cuda.synchronize()
                sample.append((time.perf_counter() - begun) * 1e6)
        names = ("upload 1 GB", "download 1 GB")
        if not pinned:
            names = ("upload 1 GiB, beside pinned", "download 1 GiB into a slice, beside pinned")
        of = "pinned memory" if pinned else "plain memory"
        enter(f"{kind}/{names[0]}", f"Tensor.copy_ from {of}", "us", up[3:])
        enter(f"{kind}/{names[1]}", f"Tensor.copy_ to {of}", "us", down[3:])


def device_time(work, rounds=30, batch=4):
    """Microseconds on the device for one of a batch, as the benchmarks of expressions take it."""
    sample = []
    for _ in range(rounds + 3):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(batch):
            work()
        end.record()
        end.synchronize()
        sample.append(start.elapsed_time(end) * 1e3 / batch)
    return sample[3:]


def moving():
    rows, width = 1 << 20, 256
    x = torch.randn(rows, width, device="cuda")
    order = torch.randperm(rows, device="cuda")
    written = torch.zeros_like(x)
    few = torch.randperm(rows * width // 16, device="cuda")
    flat = x.flatten()
    places, elements = torch.zeros(few.numel(), device="cuda"), flat[: few.numel()]
    for name, call, work in [
        ("index_select of rows of 1 KiB", "torch.index_select", lambda: torch.index_select(x, 0, order)),
        ("index_copy of rows of 1 KiB", "Tensor.index_copy_", lambda: written.index_copy_(0, order, x)),
        ("take of f32", "torch.take", lambda: torch.take(flat, few)),
        ("put of f32", "Tensor.put_", lambda: places.put_(few, elements)),
    ]:
        enter(f"moving/{name}", call, "us", device_time(work))


DTYPES = {
    "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
    "c64": torch.complex64, "c128": torch.complex128,
}
# Functions of one array; where the names differ, PyTorch's behind ours.
FUNCTIONS = (
    "abs rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid "
    "silu softplus gelu gelu_tanh erf erfc lgamma sqrt angle"
).split()


def function(name):
    functional = torch.nn.functional
    return {
        "silu": lambda a, out: functional.silu(a),
        "softplus": lambda a, out: functional.softplus(a),
        "gelu": lambda a, out: functional.gelu(a),
        "gelu_tanh": lambda a, out: functional.gelu(a, approximate="tanh"),
    }.get(name) or (lambda a, out: getattr(torch, name)(a, out=out))


def operand(dtype, size):
    """As the benchmarks': floats of half to two with either sign, integers of any bits."""
    count = size // torch.empty((), dtype=dtype).element_size()
    if not (dtype.is_floating_point or dtype.is_complex):
        return torch.randint(0, 100, (count,), dtype=dtype, device="cuda")
    real = {torch.complex64: torch.float32, torch.complex128: torch.float64}.get(dtype, dtype)
    parts = count * 2 if dtype.is_complex else count
    values = torch.empty(parts, dtype=real, device="cuda").uniform_(0.5, 2.0)
    values *= torch.empty(parts, dtype=real, device="cuda").bernoulli_().mul_(2).sub_(1)
    return torch.view_as_complex(values.view(-1, 2)) if dtype.is_complex else values


def elementwise(size=1 << 30):
    """The cases of `cargo bench --bench fuse`, by their names. One that PyTorch does not have is left out."""
    def measure(key, call, work):
        try:
            work()
            enter(key, call, "us", device_time(work))
        except (RuntimeError, TypeError, NotImplementedError) as error:
            print(f"{key}: {str(error).splitlines()[0]}", file=sys.stderr)

    for name, dtype in DTYPES.items():
        a, b = operand(dtype, size), operand(dtype, size)
        out = torch.empty_like(a)
        floating = dtype.is_floating_point or dtype.is_complex
        bench = "fuse" if floating else "fuse_list"
        measure(f"{bench}/a + b, {name}", "torch.add", lambda: torch.add(a, b, out=out))
        measure(f"{bench}/a * b, {name}", "torch.mul", lambda: torch.mul(a, b, out=out))
        if not floating:
            continue
        measure(f"fuse/a / b, {name}", "torch.div", lambda: torch.div(a, b, out=out))
        measure(f"fuse/exp(a), {name}", "torch.exp", lambda: torch.exp(a, out=out))
        for ours in FUNCTIONS:
            result = torch.empty_like(a.real) if dtype.is_complex and ours in ("abs", "angle") else out
            if hasattr(torch, ours) or hasattr(torch.nn.functional, ours.split("_")[0]):
                measure(f"fuse_list/{ours}(a), {name}", f"torch {ours}", lambda: function(ours)(a, result))
        if name in ("f32", "bf16"):
            # 16384 rows where f32 fills an operand.
            side = int((size // 4) ** 0.5)
            square, target = a[: side * side].view(side, side), torch.empty(side, side, dtype=dtype, device="cuda")
            measure(f"fuse/transposed copy, {name}", "Tensor.copy_ of a.t()", lambda: target.copy_(square.t()))
            if name == "f32":
                other = b[: side * side].view(side, side)
                measure(
                    "fuse/a + transposed b, f32", "torch.add of b.t()", lambda: torch.add(square, other.t(), out=target)
                )
                rows, columns = a.view(-1, 4096), b[:4096]
                into = out.view(-1, 4096)
                measure("fuse/matrix + row, f32", "torch.add", lambda: torch.add(rows, columns, out=into))
                column = b[: rows.shape[0]].view(-1, 1)
                measure("fuse/matrix + column, f32", "torch.add", lambda: torch.add(rows, column, out=into))
            del square, target
        del a, b, out
        torch.cuda.empty_cache()


def small_operations():
    """The host's time of an operation on 1024 elements whose output is there."""
    a, b = torch.ones(1024, device="cuda"), torch.ones(1024, device="cuda")
    out = torch.empty_like(a)
    work = lambda: torch.add(a, b, out=out)  # noqa: E731
    enter("fuse_host/1 operation, 2 inputs", "torch.add with out", "ns", per_call(work, 256, 200, 1e9))


def training(path):
    """Requests and frees of a small transformer's training, as its caching allocator saw them."""
    torch.cuda.empty_cache()
    torch.cuda.memory._record_memory_history(max_entries=2_000_000, context=None, stacks="python")
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 12).cuda()
    words = torch.nn.Embedding(32000, 1024).cuda()
    parameters = [*model.parameters(), *words.parameters()]
    optimizer = torch.optim.AdamW(parameters)
    lengths = torch.randint(32, 1024, (STEPS,), generator=torch.Generator().manual_seed(1)).tolist()
    for step, length in enumerate(lengths):
        optimizer.zero_grad(set_to_none=True)
        tokens = torch.randint(0, 32000, (4 + step % 5, length), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(words(tokens)) @ words.weight.t()
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            with torch.no_grad():
                model(words(tokens[:, : length // 2]))
    torch.cuda.synchronize()
    history = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
    torch.cuda.memory._record_memory_history(enabled=None)
    events, streams, alive, count = [], {}, {}, 0
    for event in history:
        if event["action"] == "alloc" and event["size"] > 0:
            stream = streams.setdefault(event["stream"], len(streams) + 1)
            events.append([stream, event["size"]])
            alive[event["addr"]] = count
            count += 1
        elif event["action"] == "free_completed" and event["addr"] in alive:
            events.append([alive.pop(event["addr"])])
    trace = {"format": "selvedge-memory-trace", "version": 1, "device": "PyTorch training", "events": events}
    path.write_text(json.dumps(trace, separators=(",", ":")) + "\n")
    print(f"{count} requests in {STEPS} steps -> {path}")


def main():
    folder, trace = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    name = f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}, {datetime.date.today()}"
    failed = False
    only = sys.argv[3].split(",") if len(sys.argv) > 3 else None
    parts = {
        "allocations": allocations,
        "graphs": graphs,
        "copies": copies,
        "moving": moving,
        "elementwise": elementwise,
        "small_operations": small_operations,
        "training": lambda: training(trace),
    }
    for work in (work for name, work in parts.items() if not only or name in only):
        try:
            work()
        except Exception as error:  # One that this version cannot do does not take the others with it.
            print(f"{error!r}", file=sys.stderr)
            failed = True
    known = folder / "others.json"
    if only and known.exists():
        for key, figure in json.loads(known.read_text())["figures"].items():
            FIGURES.setdefault(key, figure)
    others = {"library": f"PyTorch {torch.__version__}", "machine": name, "figures": FIGURES}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "others.json").write_text(json.dumps(others, indent=2) + "\n")
    for key, figure in FIGURES.items():
        print(f"{key}: {figure['median']:.3f} {figure['unit']}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
