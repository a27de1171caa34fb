#!/usr/bin/env python3
"""Writes tests/data/fuse/functions.txt: functions at many points, to 100 bits and more.

    python3 scripts/make_function_vectors.py

It needs mpmath (as a wheel, kept in .venv), and for the special values of complex functions a C library that has Annex G of
C99 (glibc). A line is: the function, the dtype, the operands' parts as the bits of an f64 each, `=`, and each part of the
result as the bits of an f64 and, for f64 and c128, of a second one that is to be added. The dtype `special` stands for
both complex ones: infinities, NaN, signed zeros and branch cuts, with results that may be off by two units.
"""

import ctypes
import math
import random
import struct
import sys

import build_images

for folder in [build_images.wheel("mpmath", "1.3.0").parent]:
    sys.path.insert(0, str(folder))
import mpmath  # noqa: E402
from mpmath import mpc, mpf  # noqa: E402

mpmath.mp.prec = 2400

LARGE = {"f16": 2.0**15, "bf16": 2.0**127, "f32": 2.0**127, "f64": 2.0**1023}
SMALL = {"f16": -24, "bf16": -133, "f32": -149, "f64": -1074}
ALL = "all"


def sinc(x):
    return mpmath.sinpi(x) / (mpmath.pi * x)


def logistic(x):
    return 1 / (1 + mpmath.exp(-x))


# Function, domain of f32 (and narrower ones) and of f64; None is positive numbers of every size, ALL those of every size.
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
    "sigmoid": (logistic, (-110, 40), (-750, 60)),
    "silu": (lambda x: x * logistic(x), (-120, 40), (-770, 60)),
    "softplus": (lambda x: mpmath.log1p(mpmath.exp(x)), (-110, 40), (-750, 60)),
    "sin": (mpmath.sin, ALL, ALL),
    "cos": (mpmath.cos, ALL, ALL),
    "tan": (mpmath.tan, ALL, ALL),
    "asin": (mpmath.asin, (-1, 1), (-1, 1)),
    "acos": (mpmath.acos, (-1, 1), (-1, 1)),
    "atan": (mpmath.atan, ALL, ALL),
    "sinc": (sinc, (-1000, 1000), (-1000, 1000)),
}

PAIRS = {
    "atan2": lambda y, x: mpmath.atan2(y, x),
}

COMPLEX = {
    "angle": None,
}

# The C library's names.
ANNEX_G = {}


def bits(x):
    return struct.pack(">d", x).hex()


def narrowed(dtype, x):
    """The nearest number of a dtype, by way of f32; None past the largest."""
    if dtype == "f64":
        return x
    try:
        if dtype == "f16":
            return struct.unpack("e", struct.pack("e", x))[0]
        single = struct.pack("f", x)
    except OverflowError:
        return None
    if dtype == "f32":
        return struct.unpack("f", single)[0]
    word = struct.unpack("I", single)[0]
    word = (word + 0x7FFF + (word >> 16 & 1)) & 0xFFFF0000
    x = struct.unpack("f", struct.pack("I", word))[0]
    return x if math.isfinite(x) else None


def anywhere(dtype, numbers):
    """A number of any size."""
    highest = int(math.log2(LARGE[dtype]))
    x = numbers.uniform(1, 2) * 2.0 ** numbers.randint(SMALL[dtype], highest - 1)
    return x if numbers.random() < 0.5 else -x


def near_quarter_turns(numbers, dtype, count):
    """Numbers next to multiples of π/2, where the reduction has the most to lose."""
    found = []
    for _ in range(count):
        turns = int(2 ** numbers.uniform(0, 60 if dtype == "f64" else 40))
        found.append(float(turns * mpmath.pi / 2))
    if dtype == "f64":
        # The worst of all: 2^-62 from a multiple.
        found.append(6381956970095103.0 * 2.0**797)
    return found


def points(dtype, name, domain, numbers, share=1.0):
    found = [0.5, 1.0, 2.0, 3.0, 10.0, 1000.0, 0.7071067811865476, 1.4142135623730951, 1 + 2.0**-20, 1 - 2.0**-20]
    found += [numbers.uniform(0.6, 1.6) for _ in range(int(80 * share))]
    if domain is None:
        found += [abs(anywhere(dtype, numbers)) for _ in range(int(250 * share))]
        found += [-numbers.uniform(0, 1) for _ in range(int(40 * share))]
        found += [-(2.0 ** numbers.randint(-60, -1)) for _ in range(int(40 * share))]
    elif domain == ALL:
        found += [anywhere(dtype, numbers) for _ in range(int(150 * share))]
        found += [numbers.uniform(-1, 1) * 2.0 ** numbers.randint(-10, 33) for _ in range(int(200 * share))]
        found += near_quarter_turns(numbers, dtype, int(60 * share))
    else:
        low, high = max(domain[0], -LARGE[dtype]), min(domain[1], LARGE[dtype])
        found += [numbers.uniform(low, high) for _ in range(int(250 * share))]
        found += [numbers.uniform(-1, 1) * 2.0 ** numbers.randint(-70, 2) for _ in range(int(150 * share))]
        found += [numbers.uniform(-1, 1) for _ in range(int(100 * share))]
        found += [
            numbers.uniform(1, 2) * 2.0 ** numbers.uniform(0, 60)
            for _ in range(int(100 * share))
            if domain[1] > 2.0**60
        ]
        found += [low, high]
    found = [narrowed(dtype, x) for x in found]
    return [x for x in found if x is not None and x != 0 and has_result(name, x)]


def has_result(name, x):
    if name == "acosh" and x < 1 or name in ("asin", "acos", "atanh") and abs(x) > (name != "atanh" or 0.9999999999999999):
        return False
    if name in ("log", "log2", "log10"):
        return x > 0
    return name != "log1p" or x > -1


def rounded(dtype, exact):
    """A number as the columns have it."""
    high = float(exact)
    if dtype not in ("f64", "c128"):
        return bits(high)
    rest = 0.0 if math.isinf(high) else float(exact - mpf(high))
    return f"{bits(high)} {bits(rest)}"


def line(name, dtype, operands, results):
    left = " ".join(bits(x) for x in operands)
    right = " ".join(rounded(dtype, result) for result in results)
    return f"{name} {dtype} {left} = {right}\n"


def real_lines(numbers):
    for name, (function, *domains) in FUNCTIONS.items():
        for dtype, domain, share in zip(("f32", "f64", "f16", "bf16"), (*domains, *domains[:1] * 2), (1, 1, 0.1, 0.1)):
            for x in points(dtype, name, domain, numbers, share):
                result = function(mpf(x))
                # The sign of a zero is not mpmath's to say.
                if result != 0:
                    yield line(name, dtype, [x], [result])


def pair_lines(numbers):
    for name, function in PAIRS.items():
        for dtype, count in (("f32", 400), ("f64", 400), ("f16", 40), ("bf16", 40)):
            for x, y in pairs(name, dtype, count, numbers):
                yield line(name, dtype, [x, y], [function(mpf(x), mpf(y))])


def pairs(name, dtype, count, numbers):
    found = []
    while len(found) < count:
        x = anywhere(dtype, numbers) if numbers.random() < 0.3 else numbers.uniform(-4, 4)
        y = anywhere(dtype, numbers) if numbers.random() < 0.3 else numbers.uniform(-4, 4)
        if numbers.random() < 0.2:
            y = x * numbers.uniform(0.99, 1.01)
        x, y = narrowed(dtype, x), narrowed(dtype, y)
        if x and y:
            found.append((x, y))
    return found


def main():
    lines = ["# Written by scripts/make_function_vectors.py, which says what the columns are.\n"]
    lines += real_lines(random.Random(1))
    lines += pair_lines(random.Random(2))
    path = build_images.ROOT / "tests" / "data" / "fuse" / "functions.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))
    print(f"{len(lines) - 1} points")


if __name__ == "__main__":
    main()
