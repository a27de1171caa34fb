#!/usr/bin/env python3
"""Writes tests/data/fuse/functions.txt: elementary functions at many points, to 100 bits and more.

    python3 scripts/make_function_vectors.py

It needs mpmath (as a wheel, kept in .venv). A line is: the function, the type of the argument (f32 or f64), the argument
as the bits of an f64, and the result as the bits of two f64 whose sum it is.
"""

import random
import struct
import sys

import build_images

for folder in [build_images.wheel("mpmath", "1.3.0").parent]:
    sys.path.insert(0, str(folder))
import mpmath  # noqa: E402
from mpmath import mpf  # noqa: E402

mpmath.mp.prec = 2400

FUNCTIONS = {
    "exp": (mpmath.exp, (-110, 92), (-750, 715)),
    "exp2": (lambda x: mpf(2) ** x, (-152, 130), (-1080, 1030)),
    "expm1": (mpmath.expm1, (-40, 92), (-60, 715)),
    "log": (mpmath.log, None, None),
    "log2": (lambda x: mpmath.log(x, 2), None, None),
    "log10": (mpmath.log10, None, None),
    "log1p": (mpmath.log1p, None, None),
    "sinh": (mpmath.sinh, (-92, 92), (-715, 715)),
    "cosh": (mpmath.cosh, (-92, 92), (-715, 715)),
    "tanh": (mpmath.tanh, (-12, 12), (-25, 25)),
    "asinh": (mpmath.asinh, (-(2.0**127), 2.0**127), (-(2.0**1023), 2.0**1023)),
    "acosh": (mpmath.acosh, (1, 2.0**127), (1, 2.0**1023)),
    "atanh": (mpmath.atanh, (-1, 1), (-1, 1)),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), (-110, 40), (-750, 60)),
    "silu": (lambda x: x / (1 + mpmath.exp(-x)), (-120, 40), (-770, 60)),
    "softplus": (lambda x: mpmath.log1p(mpmath.exp(x)), (-110, 40), (-750, 60)),
}


def bits(x):
    return struct.pack(">d", x).hex()


def narrowed(dtype, x):
    if dtype == "f64":
        return x
    try:
        return struct.unpack("f", struct.pack("f", x))[0]
    except OverflowError:
        return None


def points(dtype, domain, numbers):
    small, large = (-149, 127) if dtype == "f32" else (-1074, 1023)
    found = [0.5, 1.0, 2.0, 3.0, 10.0, 1000.0, 0.7071067811865476, 1.4142135623730951, 1 + 2.0**-20, 1 - 2.0**-20]
    found += [numbers.uniform(0.6, 1.6) for _ in range(80)]
    if domain is None:
        found += [numbers.uniform(1, 2) * 2.0 ** numbers.randint(small, large - 1) for _ in range(250)]
        found += [-numbers.uniform(0, 1) for _ in range(40)]
        found += [-(2.0 ** numbers.randint(-60, -1)) for _ in range(40)]
    else:
        found += [numbers.uniform(*domain) for _ in range(250)]
        found += [numbers.uniform(-1, 1) * 2.0 ** numbers.randint(-70, 2) for _ in range(150)]
        found += [numbers.uniform(-1, 1) for _ in range(100)]
        found += [numbers.uniform(1, 2) * 2.0 ** numbers.uniform(0, 60) for _ in range(100) if domain[1] > 2.0**60]
        found += [domain[0], domain[1]]
    found = [narrowed(dtype, x) for x in found]
    return [x for x in found if x is not None and x != 0]


def main():
    numbers = random.Random(1)
    lines = ["# Written by scripts/make_function_vectors.py, which says what the columns are.\n"]
    for name, (function, *domains) in FUNCTIONS.items():
        for dtype, domain in zip(("f32", "f64"), domains):
            for x in points(dtype, domain, numbers):
                if name == "acosh" and x < 1 or name == "atanh" and abs(x) >= 1:
                    continue
                if x <= 0 and name.startswith("log") and not (name == "log1p" and x > -1):
                    continue
                result = function(mpf(x))
                high = float(result)
                rest = 0.0 if high in (float("inf"), float("-inf")) else float(result - mpf(high))
                lines.append(f"{name} {dtype} {bits(x)} {bits(high)} {bits(rest)}\n")
    path = build_images.ROOT / "tests" / "data" / "fuse" / "functions.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))
    print(f"{len(lines) - 1} points")


if __name__ == "__main__":
    main()
