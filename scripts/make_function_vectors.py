#!/usr/bin/env python3
"""Writes tests/data/fuse/functions.zst: functions at many points, to 100 bits and more.

    python3 scripts/make_function_vectors.py           # computes the points and writes the file
    python3 scripts/make_function_vectors.py --print   # prints the file as text, one point a line

It needs zstandard and mpmath (as wheels, kept in .venv), and for the special values of complex functions a C library that has
Annex G of C99 (glibc). tests/data/fuse/functions.md describes the file.
"""

import argparse
import ctypes
import math
import random
import struct
import sys

import build_images

zstandard = build_images.load_zstandard()
for folder in [build_images.wheel("mpmath", "1.3.0").parent]:
    sys.path.insert(0, str(folder))
import mpmath  # noqa: E402
from mpmath import mpc, mpf  # noqa: E402

mpmath.mp.prec = 2400

PACKED = build_images.ROOT / "tests" / "data" / "fuse" / "functions.zst"

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
    "cbrt": (lambda x: mpmath.cbrt(x) if x > 0 else -mpmath.cbrt(-x), ALL, ALL),
    "erf": (mpmath.erf, (-4.5, 4.5), (-6.5, 6.5)),
    "erfc": (mpmath.erfc, (-4, 10.2), (-6, 27.3)),
    "gelu": (lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2, (-14.3, 14), (-38.5, 38)),
    "gelu_tanh": (
        lambda x: x * logistic(2 * mpmath.sqrt(2 / mpmath.pi) * (x + mpf("0.044715") * x**3)),
        (-10.7, 11),
        (-22, 22),
    ),
    "lgamma": (lambda x: mpmath.re(mpmath.loggamma(x)), ALL, ALL),
    "logit": (lambda x: mpmath.log(x / (1 - x)), (0, 1), (0, 1)),
}

# Functions that reduce their argument to the last bit need more than others.
PRECISE = ("sin", "cos", "tan")

PAIRS = {
    "atan2": mpmath.atan2,
    "pow": lambda x, y: x**y,
    "log_add_exp": lambda x, y: max(x, y) + mpmath.log1p(mpmath.exp(-abs(x - y))),
    "xlogy": lambda x, y: x * mpmath.log(y),
    "xlog1py": lambda x, y: x * mpmath.log1p(y),
}

# Function and, where the C library has it, its name there.
COMPLEX = {
    "exp": (mpmath.exp, "cexp"),
    "log": (mpmath.log, "clog"),
    "log2": (lambda z: mpmath.log(z) / mpmath.log(2), None),
    "log10": (lambda z: mpmath.log(z) / mpmath.log(10), "clog10"),
    "sqrt": (mpmath.sqrt, "csqrt"),
    "rsqrt": (lambda z: 1 / mpmath.sqrt(z), None),
    "sin": (mpmath.sin, "csin"),
    "cos": (mpmath.cos, "ccos"),
    "tan": (mpmath.tan, "ctan"),
    "asin": (mpmath.asin, "casin"),
    "acos": (mpmath.acos, "cacos"),
    "atan": (mpmath.atan, "catan"),
    "sinh": (mpmath.sinh, "csinh"),
    "cosh": (mpmath.cosh, "ccosh"),
    "tanh": (mpmath.tanh, "ctanh"),
    "asinh": (mpmath.asinh, "casinh"),
    "acosh": (mpmath.acosh, "cacosh"),
    "atanh": (mpmath.atanh, "catanh"),
    "sigmoid": (lambda z: 1 / (1 + mpmath.exp(-z)), None),
    "sign": (lambda z: z / abs(z), None),
}


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


def real_operands(dtype, name, domain, numbers, share=1.0):
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
    if name == "logit":
        return 0 < x < 1
    if name == "lgamma":
        return x > 0 or x != math.floor(x)
    return name != "log1p" or x > -1


def rounded(dtype, exact):
    """A number as the file has it: an f64, and for f64 and c128 a second one that is to be added."""
    high = float(exact)
    if dtype not in ("f64", "c128"):
        return [high]
    return [high, 0.0 if math.isinf(high) else float(exact - mpf(high))]


def point(name, dtype, operands, results):
    return name, dtype, operands, [part for result in results for part in rounded(dtype, result)]


def real_points(numbers):
    for name, (function, *domains) in FUNCTIONS.items():
        for dtype, domain, share in zip(("f32", "f64", "f16", "bf16"), (*domains, *domains[:1] * 2), (1, 1, 0.1, 0.1)):
            for x in real_operands(dtype, name, domain, numbers, share):
                with mpmath.workprec(2400 if name in PRECISE else 400):
                    result = function(mpf(x))
                # The sign of a zero is not mpmath's to say.
                if result != 0:
                    yield point(name, dtype, [x], [result])


def pair_points(numbers):
    for name, function in PAIRS.items():
        for dtype, count in (("f32", 400), ("f64", 400), ("f16", 40), ("bf16", 40)):
            for x, y in pair_operands(name, dtype, count, numbers):
                with mpmath.workprec(400):
                    result = function(mpf(x), mpf(y))
                if mpmath.isfinite(result) and result != 0:
                    yield point(name, dtype, [x, y], [result])


def pair_operands(name, dtype, count, numbers):
    found = []
    while len(found) < count:
        x = anywhere(dtype, numbers) if numbers.random() < 0.3 else numbers.uniform(-4, 4)
        y = anywhere(dtype, numbers) if numbers.random() < 0.3 else numbers.uniform(-4, 4)
        kind = numbers.random()
        if name == "atan2" and kind < 0.2:
            y = x * numbers.uniform(0.99, 1.01)
        if name == "pow":
            x = abs(x) if kind < 0.7 else x
            y = round(y) if x < 0 and abs(y) < 100 else y
            if kind < 0.4:
                # Results of every size, from bases next to 1 too.
                x = 1 + numbers.uniform(-0.7, 1) * 2.0 ** numbers.randint(-20, 0)
            if kind < 0.6 and x > 0 and narrowed(dtype, x) not in (None, 0, 1):
                reach = 300 if dtype == "f64" else 37
                y = numbers.uniform(-1.1, 1) * reach * 2.3 / math.log(narrowed(dtype, x))
        if name == "log_add_exp" and kind < 0.7:
            x, y = numbers.uniform(-90, 90), numbers.uniform(-90, 90)
        if name in ("xlogy", "xlog1py"):
            y = abs(y) if name == "xlogy" or abs(y) >= 1 else y
        x, y = narrowed(dtype, x), narrowed(dtype, y)
        if x and y and (name != "pow" or x > 0 or y == math.floor(y)) and (name != "xlog1py" or y > -1):
            found.append((x, y))
    return found


def complex_operands(dtype, count, numbers):
    """Numbers of every kind: around 1, of every size, next to the axes, the unit circle and the branch points."""
    part = "f32" if dtype == "c64" else "f64"
    found = []
    while len(found) < count:
        x, y = numbers.uniform(-3, 3), numbers.uniform(-3, 3)
        kind = numbers.random()
        if kind < 0.15:
            x, y = anywhere(part, numbers), anywhere(part, numbers)
        elif kind < 0.3:
            x, y = x * 2.0 ** numbers.randint(-30, 8), y * 2.0 ** numbers.randint(-30, 8)
        elif kind < 0.4:
            angle = numbers.uniform(-4, 4)
            x, y = math.cos(angle), math.sin(angle)
        elif kind < 0.55:
            x = numbers.choice((-1, 1)) * (1 + numbers.uniform(-1, 1) * 2.0 ** numbers.randint(-40, -3))
            y = numbers.uniform(-1, 1) * 2.0 ** numbers.randint(-60, -3)
        elif kind < 0.65:
            y *= 2.0 ** numbers.randint(-60, -20)
        if kind < 0.6 and numbers.random() < 0.5:
            x, y = y, x
        x, y = narrowed(part, x), narrowed(part, y)
        if x and y:
            found.append((x, y))
    return found


def complex_points(numbers):
    for name, (function, _) in COMPLEX.items():
        for dtype in ("c64", "c128"):
            for x, y in complex_operands(dtype, 140, numbers):
                # Functions that grow exponentially overflow past these.
                if name in ("exp", "sinh", "cosh", "tanh", "sigmoid") and abs(x) > 700:
                    continue
                if name in ("sin", "cos", "tan") and abs(y) > 700:
                    continue
                with mpmath.workprec(2400):
                    result = function(mpc(x, y))
                yield point(name, dtype, [x, y], [result.real, result.imag])
    for dtype in ("c64", "c128"):
        made = 0
        while made < 200:
            a, b, c, d = (narrowed("f32", numbers.uniform(-3, 3)) for _ in range(4))
            with mpmath.workprec(400):
                exponent = mpc(c, d) * mpmath.log(mpc(a, b))
                result = mpmath.exp(exponent)
            if abs(exponent) < 6:
                yield point("pow", dtype, [a, b, c, d], [result.real, result.imag])
                made += 1


class Parts(ctypes.Structure):
    """A complex number as C passes it: on x86-64 and AArch64 its parts go where those of a structure go."""

    _fields_ = [("real", ctypes.c_double), ("imaginary", ctypes.c_double)]


def special_points():
    library = ctypes.CDLL("libm.so.6")
    infinity, nan = float("inf"), float("nan")
    parts = [0.0, 0.5, 1.0, 2.0, infinity]
    parts += [-x for x in parts] + [nan]
    for name, (_, in_c) in COMPLEX.items():
        if in_c is None:
            continue
        function = getattr(library, in_c)
        function.argtypes, function.restype = [Parts], Parts
        for x in parts:
            for y in parts:
                result = function(Parts(x, y))
                yield name, "special", [x, y], [result.real, result.imaginary]


def packed(points):
    """The contents of the file, before compression."""
    groups = {}
    for name, column, operands, results in points:
        groups.setdefault((name, column, len(operands), len(results)), []).append((*operands, *results))
    contents = bytearray()
    for (name, column, operands, results), rows in groups.items():
        for text in (name, column):
            contents += struct.pack("<B", len(text)) + text.encode()
        contents += struct.pack("<BBI", operands, results, len(rows))
        for values in zip(*rows):
            contents += struct.pack(f"<{len(rows)}d", *values)
    return bytes(contents)


def print_points(contents):
    at = 0

    def take(layout):
        nonlocal at
        values = struct.unpack_from(layout, contents, at)
        at += struct.calcsize(layout)
        return values

    def text():
        return take(f"<{take('<B')[0]}s")[0].decode()

    while at < len(contents):
        name, column = text(), text()
        operands, results, count = take("<BBI")
        parts = [take(f"<{count}Q") for _ in range(operands + results)]
        for row in zip(*parts):
            words = [f"{bits:016x}" for bits in row]
            print(name, column, *words[:operands], "=", *words[operands:])


def main():
    parser = argparse.ArgumentParser(description="Points of functions to 100 bits and more.")
    parser.add_argument("--print", action="store_true", help="print the points of the file, their numbers as bits of an f64")
    if parser.parse_args().print:
        print_points(zstandard.ZstdDecompressor().decompress(PACKED.read_bytes()))
        return
    points = [*real_points(random.Random(1)), *pair_points(random.Random(2))]
    points += [*complex_points(random.Random(3)), *special_points()]
    PACKED.parent.mkdir(parents=True, exist_ok=True)
    PACKED.write_bytes(zstandard.ZstdCompressor(level=19).compress(packed(points)))
    print(f"{len(points)} points")


if __name__ == "__main__":
    main()
