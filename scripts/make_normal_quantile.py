#!/usr/bin/env python3
"""The quantile of the normal distribution: the polynomials of src/fuse/language/lower/normal.rs, and tests/data/fuse/normal.txt.

    python3 scripts/make_normal_quantile.py

It needs mpmath (as a wheel, kept in .venv), prints the polynomials, and writes the points. A line of those is: u32 or u64,
random bits of that type, and the quantile at (bits + 1/2) / 2^width as the bits of two f64 whose sum it is.
"""

import random
import struct
import sys

import build_images

for folder in [build_images.wheel("mpmath", "1.3.0").parent]:
    sys.path.insert(0, str(folder))
import mpmath  # noqa: E402
from mpmath import mpf  # noqa: E402

mpmath.mp.dps = 60

# For each polynomial: its name, the least and the largest w, the number added to w under the root, the degree, and
# whether its first coefficient is an f32.
PIECES = [
    ("SINGLE", mpf(0), mpf("21.49"), 1, 19, True),
    ("NEAR", mpf(0), mpf(9), 1, 29, False),
    ("FAR", mpf(9), mpf("43.67"), 0, 27, False),
]


def quantile(tail):
    """z > 0 with P(Z > z) = tail, by Newton's method on the logarithm."""
    w = -mpmath.log(tail)
    y = mpmath.sqrt(w - mpmath.log(w + 1) / 2) if w > 2 else (1 - 2 * tail) * mpmath.sqrt(mpmath.pi) / 2
    for _ in range(80):
        rest = mpmath.erfc(y)
        step = (mpmath.log(rest) - mpmath.log(2 * tail)) * rest * mpmath.exp(y * y) * mpmath.sqrt(mpmath.pi) / 2
        y += step
        if abs(step) < mpf(10) ** -50 * abs(y):
            break
    return mpmath.sqrt(2) * y


def ratio(w):
    """The quantile over x, where 1 - x^2 = e^-w and x = 1 - 2 · tail."""
    if w <= 0:
        return mpmath.sqrt(mpmath.pi / 2)
    x = mpmath.sqrt(-mpmath.expm1(-w))
    return quantile(mpmath.exp(-w) / (1 + x) / 2) / x


def polynomial(least, largest, shift, degree, first):
    """The slope of the ratio over the root, from where the piece begins, interpolated at Chebyshev's nodes as a polynomial of
    y from -1 to 1, where sqrt(w + shift) = middle + half · y.

    How y follows from the root is in numbers of f32, so that nothing is lost by rounding them.
    """
    low, high = mpmath.sqrt(least + shift), mpmath.sqrt(largest + shift)
    half = 1 / mpf(narrowed(2 / (high - low)))
    middle = -narrowed(-(low + high) / 2 / half) * half
    count = degree + 1
    nodes = [mpmath.cos(mpmath.pi * (k + mpf(1) / 2) / count) for k in range(count)]
    values = [(ratio((middle + half * y) ** 2 - shift) - first) / (middle + half * y - low) for y in nodes]
    # Chebyshev's coefficients, then the polynomials of the recurrence.
    parts = [
        2 / mpf(count) * sum(v * mpmath.cos(j * mpmath.acos(y)) for v, y in zip(values, nodes)) for j in range(count)
    ]
    parts[0] /= 2
    before, now = [mpf(1)], [mpf(0), mpf(1)]
    total = [mpf(0)] * count
    for j, part in enumerate(parts):
        term = before if j == 0 else now
        for k, c in enumerate(term):
            total[k] += part * c
        if j > 0:
            following = [mpf(0)] + [2 * c for c in now]
            for k, c in enumerate(before):
                following[k] -= c
            before, now = now, following
    return total, middle, half


def worst(total, middle, half, least, largest, shift, first):
    error = 0
    for k in range(2001):
        root = mpmath.sqrt(least + (largest - least) * mpf(k) / 2000 + shift)
        slope = mpmath.polyval([mpf(float(c)) for c in total[::-1]], (root - middle) / half)
        found = first + (root - mpmath.sqrt(least + shift)) * slope
        error = max(error, abs(found / ratio(root**2 - shift) - 1))
    return error


def narrowed(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def bits(x):
    return struct.pack(">d", x).hex()


def points(width, numbers):
    whole = 1 << width
    found = [0, 1, 2, 3, whole // 2 - 1, whole // 2, whole // 2 + 1, whole // 2 - 2, whole - 1, whole - 2, whole // 3]
    for k in range(2, width):
        found += [numbers.randrange(1 << k) + (1 << k) >> 1 for _ in range(4)]
        found += [whole - 1 - numbers.randrange(1 << k), whole // 2 + numbers.randrange(1 << (k - 1))]
    found += [numbers.randrange(whole) for _ in range(600)]
    return found


def main():
    for name, least, largest, shift, degree, single in PIECES:
        first = mpf(narrowed(ratio(least)) if single else float(ratio(least)))
        total, middle, half = polynomial(least, largest, shift, degree, first)
        error = worst(total, middle, half, least, largest, shift, first)
        print(f"// Relative error {mpmath.nstr(error, 3)}.")
        print(f"const {name}: Piece = Piece {{")
        print(f"    added: {float(shift)!r},\n    begins: {float(mpmath.sqrt(least + shift))!r},\n    first: {float(first)!r},")
        print(f"    scale: {float(1 / half)!r},\n    shift: {float(-middle / half)!r},")
        print("    slope: &[")
        for c in total:
            print(f"        {float(c)!r},")
        print("    ],\n};")
    numbers = random.Random(1)
    lines = ["# Written by scripts/make_normal_quantile.py, which says what the columns are.\n"]
    for width in (32, 64):
        for word in points(width, numbers):
            lower = word < 1 << (width - 1)
            tail = (mpf(word if lower else (1 << width) - 1 - word) + mpf(1) / 2) / mpf(2) ** width
            result = -quantile(tail) if lower else quantile(tail)
            high = float(result)
            lines.append(f"u{width} {word:x} {bits(high)} {bits(float(result - mpf(high)))}\n")
    path = build_images.ROOT / "tests" / "data" / "fuse" / "normal.txt"
    path.write_text("".join(lines))
    print(f"{len(lines) - 1} points")


if __name__ == "__main__":
    main()
