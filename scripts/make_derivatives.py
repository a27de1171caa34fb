#!/usr/bin/env python3
"""Writes tests/data/fuse/derivatives.txt: derivatives of elementwise operations at the edges of their domains.

    python3 scripts/make_derivatives.py

It needs mpmath. A line `# name dtype` begins the rows of an operation. A row is the operands, `=`, and for each operand the
derivative and its condition: the relative change of the derivative by that of the operands, which bounds the error that
rounding of an intermediate makes. Numbers are decimals of the dtype; past its range they are infinite. `-` stands for a
derivative that does not exist, such as that of inf / inf, or that an operation does not promise: of a power of the smallest
numbers.

The points are zeros of both signs, the smallest and largest numbers, infinities, NaN, and ordinary ones. At infinities the
derivative is its limit. At kinks and poles it is PyTorch's: the subgradient of least length of a convex function (0 for abs
and relu, and hypot at the origin), the one-sided limit by the zero's sign at a pole at 0, half for each of two equal operands
of an extreme, and 0 for x^y and x ln y where x is 0 and the function does not depend on the other operand. NaN stays NaN.
"""

import pathlib
import struct

import mpmath
from mpmath import mpf

mpmath.mp.prec = 2400
INF, NAN = float("inf"), float("nan")
TARGET = pathlib.Path(__file__).parent.parent / "tests/data/fuse/derivatives.txt"

UNARY = {
    "f32": [1.401298464324817e-45, 2.938735877055719e-39, 1.1754943508222875e-38, 1e-20, 0.015625, 0.5, 0.75, 1.0, 1.5, 3.0,
            10.0, 20.5, 60.0, 88.0, 100.0, 1000.0, 1e10, 1e20, 3.4028234663852886e38, INF],
    "f64": [5e-324, 5.562684646268003e-309, 2.2250738585072014e-308, 1e-160, 0.015625, 0.5, 0.75, 1.0, 1.5, 3.0, 10.0, 20.5,
            60.0, 700.0, 1000.0, 1e10, 1e160, 1.7976931348623157e308, INF],
}
SIZE = {"f32": (1e-45, 1e-39, 1e-30, 1e20, 3.4028234663852886e38), "f64": (5e-324, 1e-309, 1e-200, 1e160, 1.7976931348623157e308)}


def pairs(dtype):
    least, small, tiny, large, most = SIZE[dtype]
    plain = [(2.0, 3.0), (-2.0, 3.0), (3.0, -2.0), (0.5, 0.25), (7.5, 2.0), (-7.5, 2.0)]
    equal = [(x, x) for x in (1.0, least, tiny, large, most, INF, -INF)]
    zeros = [(0.0, 0.0), (-0.0, 0.0), (0.0, -0.0), (0.0, 2.0), (2.0, 0.0), (0.0, -2.0), (-2.0, 0.0), (0.0, least), (least, 0.0),
             (0.0, small), (0.0, 0.5), (0.0, 1.0), (0.0, INF), (0.0, -INF), (INF, 0.0)]
    far = [(tiny, large), (large, tiny), (most, -most), (-most, most), (tiny, 2.0), (2.0, tiny), (small, small / 2), (least, 1.0),
           (least, small), (tiny, tiny), (small, tiny)]
    infinite = [(INF, 2.0), (2.0, INF), (-INF, 2.0), (2.0, -INF), (0.5, INF), (0.5, -INF), (INF, -2.0), (INF, 0.5), (INF, 1.0),
                (1.0, INF), (INF, -INF), (-INF, INF)]
    return plain + equal + zeros + far + infinite + [(NAN, 1.0), (1.0, NAN)]


def logistic(x):
    return 1 / (1 + mpmath.exp(-x))


def clipped(x):
    """x where its exponential can be made."""
    return max(min(x, mpf(20000)), mpf(-20000))


def exp(x):
    return mpmath.exp(clipped(x))


def silu(x):
    x = clipped(x)
    return logistic(x) * (1 + x * (1 - logistic(x)))


def gelu(x):
    x = clipped(x)
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2 + x * exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)


def gelu_tanh(x):
    x = max(min(x, mpf(60)), mpf(-60))
    scale = mpmath.sqrt(2 / mpmath.pi)
    s = logistic(2 * scale * (x + mpf("0.044715") * x**3))
    return s + x * s * (1 - s) * 2 * scale * (1 + 3 * mpf("0.044715") * x * x)


def sinc(x):
    if x == 0:
        return mpf(0)
    return (mpmath.cospi(x) - mpmath.sinpi(x) / (mpmath.pi * x)) / x


def digamma(x):
    if x == mpmath.floor(x) and x <= 0:
        return NAN
    with mpmath.workprec(900 if abs(x) < 1e30 else 1200):
        return mpmath.digamma(x) if abs(x) < 1e30 else mpmath.log(x)


def inside(condition, value):
    return value() if condition else NAN


def pole(x, size):
    """The limit at a zero of this sign."""
    return mpmath.sign(x) * INF if x != 0 else size


def copied(x):
    return mpf(1) if x > 0 else mpf(-1) if x < 0 else mpf(0)


LN2, LN10 = mpmath.log(2), mpmath.log(10)
# The derivative, and those at inf, -inf, 0 and -0 where the formula does not give them. NaN gives NaN.
FUNCTIONS = {
    "neg": (lambda x: mpf(-1), -1, -1),
    "abs": (copied, 1, -1),
    "sign": (lambda x: mpf(0), 0, 0, 0, 0, 0),
    "sqrt": (lambda x: inside(x > 0, lambda: 1 / (2 * mpmath.sqrt(x))), 0, NAN, INF, -INF),
    "rsqrt": (lambda x: inside(x > 0, lambda: -1 / (2 * x * mpmath.sqrt(x))), 0, NAN, -INF, INF),
    "reciprocal": (lambda x: -1 / (x * x), 0, 0, -INF, -INF),
    "square": (lambda x: 2 * x, INF, -INF),
    "relu": (lambda x: mpf(1) if x > 0 else mpf(0), 1, 0),
    "exp": (exp, INF, 0),
    "exp2": (lambda x: LN2 * mpf(2) ** clipped(x), INF, 0),
    "expm1": (exp, INF, 0),
    "log": (lambda x: 1 / x, 0, -0.0, INF, -INF),
    "log2": (lambda x: 1 / (x * LN2), 0, -0.0, INF, -INF),
    "log10": (lambda x: 1 / (x * LN10), 0, -0.0, INF, -INF),
    "log1p": (lambda x: INF if x == -1 else 1 / (1 + x), 0, -0.0),
    "sinh": (lambda x: mpmath.cosh(clipped(x)), INF, INF),
    "cosh": (lambda x: mpmath.sinh(clipped(x)), INF, -INF),
    "tanh": (lambda x: mpmath.sech(clipped(x)) ** 2, 0, 0),
    "asinh": (lambda x: 1 / mpmath.sqrt(1 + x * x), 0, 0),
    "acosh": (lambda x: INF if x == 1 else inside(x > 1, lambda: 1 / mpmath.sqrt(x * x - 1)), 0, NAN),
    "atanh": (lambda x: INF if abs(x) == 1 else 1 / (1 - x * x), None, None),
    "sigmoid": (lambda x: logistic(clipped(x)) * logistic(-clipped(x)), 0, 0),
    "silu": (silu, 1, 0),
    "softplus": (lambda x: logistic(clipped(x)), 1, 0),
    "sin": (mpmath.cos, NAN, NAN),
    "cos": (lambda x: -mpmath.sin(x), NAN, NAN),
    "tan": (lambda x: 1 + mpmath.tan(x) ** 2, NAN, NAN),
    "asin": (lambda x: INF if abs(x) == 1 else inside(abs(x) < 1, lambda: 1 / mpmath.sqrt(1 - x * x)), NAN, NAN),
    "acos": (lambda x: -INF if abs(x) == 1 else inside(abs(x) < 1, lambda: -1 / mpmath.sqrt(1 - x * x)), NAN, NAN),
    "atan": (lambda x: 1 / (1 + x * x), 0, 0),
    "sinc": (sinc, 0, 0),
    "cbrt": (lambda x: 1 / (3 * mpmath.cbrt(x * x)), 0, 0, INF, INF),
    "erf": (lambda x: 2 / mpmath.sqrt(mpmath.pi) * exp(-clipped(x) ** 2), 0, 0),
    "erfc": (lambda x: -2 / mpmath.sqrt(mpmath.pi) * exp(-clipped(x) ** 2), 0, 0),
    "gelu": (gelu, 1, 0),
    "gelu_tanh": (gelu_tanh, 1, 0),
    "lgamma": (digamma, INF, NAN, -INF, INF),
    "logit": (lambda x: INF if x == 1 else inside(0 < x < 1, lambda: 1 / (x * (1 - x))), NAN, NAN, INF, -INF),
    "frac": (lambda x: mpf(1), None, None),
    "radians": (lambda x: mpmath.pi / 180, mpmath.pi / 180, mpmath.pi / 180),
    "degrees": (lambda x: 180 / mpmath.pi, 180 / mpmath.pi, 180 / mpmath.pi),
}
# Functions that reduce their argument to the last bit, whose derivative's error has no condition.
PRECISE = ("sin", "cos", "tan", "sinc")
# Functions whose derivative passes a NaN by.
LINEAR = ("neg", "relu", "frac", "radians", "degrees")


def is_finite(*numbers):
    return all(mpmath.isfinite(x) for x in numbers)


def extreme(sign):
    def of(x, y):
        if x == y:
            return 0.5, 0.5
        return (1, 0) if sign * (x - y if is_finite(x, y) else float(x) - float(y)) > 0 else (0, 1)

    return of


def number_extreme(sign):
    def of(x, y):
        return (1, 0) if sign * float(x) >= sign * float(y) else (0, 1)

    return of


def polar(x, y):
    """The direction and the length of a point."""
    if mpmath.isinf(x) or mpmath.isinf(y):
        x, y = (mpmath.sign(z) if mpmath.isinf(z) else mpf(0) for z in (x, y))
        length = mpmath.hypot(x, y)
        return x / length, y / length, INF
    length = mpmath.hypot(x, y)
    return (x / length, y / length, length) if length else (mpf(0), mpf(0), mpf(1))


def atan2(y, x):
    along_x, along_y, length = polar(x, y)
    return along_x / length, -along_y / length


def power(x, y):
    if y == 0:
        base = 0
    elif mpmath.isinf(y):
        value = 0 if abs(x) < 1 else 1 if x == 1 else INF if y > 0 else 0
        if y < 0:
            value = 0 if abs(x) > 1 else 1 if x == 1 else INF
        base = 0 if value == 0 else y
    elif x == 0:
        base = 1 if y == 1 else 0 if y > 1 else y * INF
    elif mpmath.isinf(x):
        base = None if x < 0 else INF if y > 1 else 1 if y == 1 else 0
    else:
        # A dtype does not hold y - 1 of a large y, by which the sign is known.
        base = None if x < 0 and y > 2**20 else y * x ** (y - 1) if x > 0 or y == int(y) else NAN
    if x == 0:
        exponent = 0 if y >= 0 else -INF
    elif x < 0:
        exponent = NAN
    elif mpmath.isinf(x):
        exponent = INF if y >= 0 else 0
    elif mpmath.isinf(y):
        exponent = 0 if x == 1 or (x > 1) == (y < 0) else mpmath.sign(mpmath.log(x)) * INF
    else:
        exponent = x**y * mpmath.log(x)
    return base, exponent


def of_logarithm(x, y):
    if x == 0 and y <= 0:
        return 0, 0
    if y == 0:
        return -INF, x * INF
    if y < 0:
        return NAN, None
    if mpmath.isinf(y):
        return INF, None if mpmath.isinf(x) else 0
    return mpmath.log(y), x / y


def quotient(x, y):
    if y == 0 or (mpmath.isinf(x) and mpmath.isinf(y)):
        return None, None
    return (mpf(0), mpf(0)) if mpmath.isinf(y) else (1 / y, -x / y / y)


def of_sum(x, y):
    if x == y:
        return 0.5, 0.5
    if not is_finite(x, y):
        return (1, 0) if float(x) > float(y) else (0, 1)
    return logistic(clipped(x - y)), logistic(clipped(y - x))


def remainder(whole):
    def of(x, y):
        if y == 0 or mpmath.isinf(x):
            return None, None
        if mpmath.isinf(y):
            ratio = 0 if x == 0 else mpf(10) ** -9 * mpmath.sign(x) * mpmath.sign(y)
        else:
            ratio = x / y
        if abs(ratio) > 2**20:
            return 1, None
        return 1, -whole(ratio)

    return of


def truncate(x):
    return mpmath.floor(x) if x >= 0 else mpmath.ceil(x)


def copysign(x, y):
    is_negative = str(float(y)).startswith("-")
    return (0 if x == 0 else mpmath.sign(x) * (-1 if is_negative else 1)), 0


PAIRS = {
    "add": lambda x, y: (1, 1),
    "sub": lambda x, y: (1, -1),
    "mul": lambda x, y: (y, x),
    "div": quotient,
    "minimum": extreme(-1),
    "maximum": extreme(1),
    "fmin": number_extreme(-1),
    "fmax": number_extreme(1),
    "remainder": remainder(mpmath.floor),
    "fmod": remainder(truncate),
    "copysign": copysign,
    "hypot": lambda x, y: polar(x, y)[:2],
    "atan2": atan2,
    "pow": power,
    "log_add_exp": of_sum,
    "xlogy": of_logarithm,
    "xlog1py": lambda x, y: of_logarithm(x, y + 1),
}
# The derivatives for (NaN, 1) and (1, NaN), where they are not NaN.
NUMBERS = ("fmin", "fmax")


def triples(dtype):
    least, small, tiny, large, most = SIZE[dtype]
    return [(1.0, 2.0, 0.25), (1.0, 2.0, 0.75), (-1.0, 3.0, 0.0), (-1.0, 3.0, 1.0), (tiny, large, 0.5), (2.0, 2.0, 2.0),
            (least, -least, 0.5), (0.0, -1.0, 1.0), (5.0, 1.0, 3.0), (1.0, 1.0, 3.0), (3.0, 1.0, 3.0), (2.0, 3.0, 1.0), (most, 0.5, 1.0)]


def clamp(x, low, high):
    return (1 if low <= x <= high else 0), (1 if x < low < high else 0), (1 if x > high or high < low else 0)


TRIPLES = {
    "fma": lambda x, y, z: (y, x, 1),
    "lerp": lambda x, y, z: (1 - z, z, y - x),
    "clamp": clamp,
}


def formatted(x, dtype):
    x = float(x)
    if dtype == "f64":
        return repr(x)
    try:
        return f"{struct.unpack('f', struct.pack('f', x))[0]:.9g}"
    except OverflowError:
        return repr(x * INF)


def as_float(x):
    """The nearest f64, infinite past its range."""
    try:
        return float(x)
    except OverflowError:
        return float(mpmath.sign(x)) * INF


def condition(function, operands, place):
    """The sum of the relative changes of a derivative by those of the operands."""
    if not is_finite(*operands):
        return 0
    value = function(*operands)[place]
    if not mpmath.isfinite(value) or value == 0:
        return 0
    step, total = mpf(2) ** -300, mpf(0)
    for at, x in enumerate(operands):
        moved = list(operands)
        moved[at] = x * (1 + step)
        other = function(*moved)[place]
        if x != 0 and other is not None and mpmath.isfinite(other):
            total += abs((other - value) / value / step)
    return int(min(total, mpf(10) ** 9))


def rows(name, dtype):
    def row(operands, found, conditions):
        results = [f"{'-' if x is None else formatted(as_float(x), dtype)} {c}" for x, c in zip(found, conditions)]
        return " ".join(formatted(x, dtype) for x in operands) + " = " + " ".join(results)

    if name in FUNCTIONS:
        function, *limits = FUNCTIONS[name]
        special = dict(zip(("inf", "-inf", "0.0", "-0.0", "nan"), limits))
        if name in LINEAR:
            special["nan"] = function(mpf(1))
        for x in [0.0, -0.0, NAN] + [sign * x for x in UNARY[dtype] for sign in (1, -1)]:
            if name == "atanh" and 1e100 < abs(x) < INF:
                # Far beyond the domain.
                yield row([x], [None], [0])
            elif repr(x) in special or x != x:
                yield row([x], [special.get(repr(x), x)], [0])
            else:
                listed = lambda x: (function(x),)  # noqa: E731
                of_x = 1 if name in PRECISE else condition(listed, [mpf(x)], 0)
                yield row([x], [function(mpf(x))], [of_x])
        return
    function, points = (PAIRS[name], pairs(dtype)) if name in PAIRS else (TRIPLES[name], triples(dtype))
    for operands in points:
        operands = [x if dtype == "f64" or x != x or abs(x) == INF else struct.unpack("f", struct.pack("f", x))[0] for x in operands]
        if any(x != x for x in operands):
            if name in ("add", "sub", "mul", "copysign", "remainder", "fmod", "maximum", "minimum"):
                continue
            found = [NAN, NAN]
            if name in NUMBERS:
                found = [0, 1] if operands[0] != operands[0] else [1, 0]
            if name in ("pow", "xlogy", "xlog1py") or name == "div":
                continue
            yield row(operands, found, [0, 0])
            continue
        exact = [mpf(x) for x in operands]
        if name == "copysign":
            found, conditions = copysign(mpf(operands[0]), operands[1]), [0, 0]
        else:
            found = function(*exact)
            if name == "pow" and is_finite(*exact) and exact[0] != 0 and abs(exact[1]) < 1:
                # The power alone is past the range, which only a tiny factor would bring back.
                if abs(exact[0]) ** (exact[1] - 1) > SIZE[dtype][4]:
                    found = (None, found[1])
            is_smooth = name in ("div", "hypot", "atan2", "pow", "log_add_exp", "xlogy", "xlog1py")
            conditions = [
                condition(function, exact, at) if is_smooth and found[at] is not None else 0 for at in range(len(operands))
            ]
        yield row(operands, found, conditions)


def main():
    lines = ["Written by scripts/make_derivatives.py, which says what the columns are."]
    for name in [*FUNCTIONS, *PAIRS, *TRIPLES]:
        for dtype in ("f32", "f64"):
            lines.append(f"# {name} {dtype}")
            lines.extend(rows(name, dtype))
    TARGET.write_text("\n".join(lines) + "\n")


main()
