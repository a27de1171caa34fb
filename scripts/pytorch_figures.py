#!/usr/bin/env python3
"""What PyTorch needs for buffers, graphs and copies, and a memory trace of a training with it.

    pytorch_figures.py FOLDER TRACE [PART,PART]

Run where the benchmarks run, just before or after them, so that both meet the same machine. Parts are allocations, graphs,
copies and training; what FOLDER/others.json has of other parts is kept. Operations on arrays are measured in turns with ours,
by benches/harness/pytorch.py.

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
