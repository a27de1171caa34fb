"""NumPy's side of `cargo bench --features io --bench cpu`: prepares a call that it is asked for, and times it when it is its turn.

numpy.rs starts it and has it do one thing at a time. A request and its answer are a line of JSON each:

    (the start)                                  {"library"}, or {"absent": why} and the end
    {"prepare": call, "inputs"}                  {"seconds": of one call}
    {"time": blocks, "calls"}                    {"seconds": of a call of the fastest block of so many}

or {"error": why}, after which it goes on. The inputs are named a, b and c in the call, `out` is an array of the shape and
dtype of a, and `philox` a generator of random numbers. An input is {"dtype", "shape", "low", "high"}: uniform random numbers, truncated to integers where the dtype is one.
"""

import json
import os
import sys
import timeit


def answer(**fields):
    print(json.dumps(fields), flush=True)


try:
    import numpy as np
except ImportError as error:
    answer(absent=f"{os.path.basename(sys.executable)} has no NumPy ({error})")
    sys.exit()

DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "c64": np.complex64}
RANDOM = np.random.default_rng(7)


def array(dtype, shape, low, high):
    values = RANDOM.uniform(low, high, shape)
    if dtype == "c64":
        values = values + 1j * RANDOM.uniform(low, high, shape)
    return values.astype(DTYPES[dtype])


def prepare(call, inputs):
    names = {"np": np, "philox": np.random.Generator(np.random.Philox(7))}
    for name, wanted in zip("abc", inputs):
        names[name] = array(**wanted)
    # Written once, so that its pages are there.
    names["out"] = np.zeros_like(names["a"])
    names["out"].fill(1)
    timer = timeit.Timer(call, globals=names)
    timer.timeit(1)
    return timer, timer.timeit(1)


answer(library=f"NumPy {np.__version__}")
timer = None
for line in sys.stdin:
    request = json.loads(line)
    try:
        if "prepare" in request:
            # The memory of the last inputs goes first.
            timer = None
            timer, seconds = prepare(request["prepare"], request["inputs"])
        else:
            calls = request["calls"]
            seconds = min(timer.repeat(repeat=request["time"], number=calls)) / calls
        answer(seconds=seconds)
    except Exception as error:
        answer(error=f"{type(error).__name__}: {error}")
