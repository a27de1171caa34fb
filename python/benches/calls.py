"""Times calls of the package against NumPy and PyTorch, in rounds that alternate which side is first.

    python python/benches/calls.py [ROUNDS]

It prints the median and the quartiles of each side. Build the package with `maturin develop --release` first.
"""

import random
import statistics
import sys
import time

import numpy as np
import selvedge as sv

try:
    import torch
except ImportError:
    torch = None


def complex_list(count):
    source = random.Random(7)
    return [complex(source.random(), source.random()) for _ in range(count)]


def cases():
    """Yields a name, calls of a round, and the two sides by name."""
    numbers = complex_list(1_000_000)
    yield "a list of 10^6 complex numbers to c128", 1, {"selvedge": lambda: sv.Tensor(numbers, dtype="c128"), "NumPy": lambda: np.array(numbers, dtype="complex128")}
    tensor = sv.Tensor(numbers)
    array = tensor.numpy()
    yield "10^6 complex numbers to a list", 1, {"selvedge": tensor.tolist, "NumPy": array.tolist}
    small, small_array = sv.Tensor(np.arange(16, dtype="f4")), np.arange(16, dtype="f4")
    yield "a + b of 16 elements", 10_000, {"selvedge": lambda: small + small, "NumPy": lambda: small_array + small_array}
    yield "DLPack from NumPy", 10_000, {"selvedge": lambda: sv.from_dlpack(small_array), "NumPy": lambda: np.from_dlpack(small_array)}
    yield "DLPack to NumPy", 10_000, {"selvedge": lambda: np.from_dlpack(small), "NumPy": lambda: np.from_dlpack(small_array)}
    if torch is not None:
        other = torch.arange(16, dtype=torch.float32)
        yield "DLPack from PyTorch", 10_000, {"selvedge": lambda: sv.from_dlpack(other), "PyTorch": lambda: torch.from_dlpack(other)}
        yield "DLPack to PyTorch", 10_000, {"selvedge": lambda: torch.from_dlpack(small), "PyTorch": lambda: torch.from_dlpack(other)}
        yield "a + b of 16 elements", 10_000, {"selvedge": lambda: small + small, "PyTorch": lambda: other + other}
        if torch.cuda.is_available():
            yield from on_cuda()


def on_cuda():
    """The host's time of calls whose work a GPU does: fewer a round than its queue holds."""
    there, here = torch.arange(16, dtype=torch.float32, device="cuda"), sv.Tensor(np.arange(16, dtype="f4")).cuda()
    yield "a + b of 16 elements, CUDA", 500, {"selvedge": lambda: here + here, "PyTorch": lambda: there + there}
    yield "DLPack from PyTorch, CUDA", 500, {"selvedge": lambda: sv.from_dlpack(there), "PyTorch": lambda: torch.from_dlpack(there)}
    yield "DLPack to PyTorch, CUDA", 500, {"selvedge": lambda: torch.from_dlpack(here), "PyTorch": lambda: torch.from_dlpack(there)}


def seconds(call, calls):
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def spread(times):
    low, middle, high = statistics.quantiles(times, n=4)
    return middle, f"{middle * 1e6:12.2f} us ({low * 1e6:.2f} to {high * 1e6:.2f})"


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for name, calls, sides in cases():
        times = {side: [] for side in sides}
        order = list(sides)
        for number in range(rounds + 2):
            for side in order:
                if torch is not None and torch.cuda.is_available():
                    torch.cuda.synchronize()
                measured = seconds(sides[side], calls)
                # The first two rounds warm up.
                if number >= 2:
                    times[side].append(measured)
            order.reverse()
        (own, own_text), (reference, text) = (spread(times[side]) for side in sides)
        print(f"{name}\n    selvedge {own_text}\n    {list(sides)[1]:<8} {text}\n    ratio {own / reference:.2f}")


if __name__ == "__main__":
    main()
