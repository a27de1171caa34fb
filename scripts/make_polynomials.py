#!/usr/bin/env python3
"""Writes src/fuse/language/lower/coefficients.rs: the polynomials of the functions, fitted for the least largest error.

    python3 scripts/make_polynomials.py

It needs mpmath (as a wheel, kept in .venv). A fit is Remez's exchange on a fine grid of Chebyshev points, in the weight that
makes the error a relative one of the function's result; the printed error is the largest one, as a power of two. Where the
coefficients' own rounding counts, each is rounded and the others are fitted to what is left.
"""

import struct
import sys

import build_images

for folder in [build_images.wheel("mpmath", "1.3.0").parent]:
    sys.path.insert(0, str(folder))
import mpmath  # noqa: E402
from mpmath import mpf  # noqa: E402

mpmath.mp.prec = 300


def fit(function, weight, low, high, terms):
    """Coefficients c with the least largest |weight(x) (sum of c[k] x^k - function(x))| on an interval."""
    low, high = mpf(low), mpf(high)
    count = 50 * (terms + 1)
    grid = [(low + high) / 2 - (high - low) / 2 * mpmath.cos(mpmath.pi * (k + mpf(1) / 2) / count) for k in range(count)]
    values = [function(x) for x in grid]
    weights = [weight(x) for x in grid]
    chosen = [round((count - 1) * k / terms) for k in range(terms + 1)]
    for _ in range(30):
        rows = [
            [grid[at] ** k for k in range(terms)] + [(-1) ** index / weights[at]] for index, at in enumerate(chosen)
        ]
        solved = mpmath.lu_solve(mpmath.matrix(rows), mpmath.matrix([values[at] for at in chosen]))
        coefficients = list(solved[:terms])
        level = abs(solved[terms])
        errors = [
            w * (mpmath.polyval(coefficients[::-1], x) - y) for x, y, w in zip(grid, values, weights)
        ]
        # The largest error of each run of one sign.
        peaks = []
        for at, error in enumerate(errors):
            if peaks and (error > 0) == (errors[peaks[-1]] > 0):
                if abs(error) > abs(errors[peaks[-1]]):
                    peaks[-1] = at
            else:
                peaks.append(at)
        while len(peaks) > terms + 1:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        largest = max(abs(error) for error in errors)
        if len(peaks) < terms + 1 or largest < level * mpf("1.001"):
            break
        chosen = peaks
    return coefficients, largest


def single(x):
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def fit_rounded(function, weight, low, high, terms):
    """The same with coefficients that are numbers of f32: the lowest first, then those after it."""
    fixed = []
    for k in range(terms):
        # Nearer to 0 nothing is left to fit.
        start = high / 50 if k > 0 and low == 0 else low
        left = lambda x: (function(x) - mpmath.polyval(fixed[::-1] or [0], x)) / x**k if k > 0 else function(x)
        coefficients, _ = fit(left, lambda x: weight(x) * x**k, start, high, terms - k)
        fixed.append(single(coefficients[0]))
    grid = [low + (high - low) * mpf(at) / 2000 for at in range(2001)]
    return fixed, max(abs(weight(x) * (mpmath.polyval(fixed[::-1], x) - function(x))) for x in grid)


def high_word(x):
    """Of f64, what an instruction has room for in itself."""
    word = struct.unpack("q", struct.pack("d", float(x)))[0]
    return mpf(struct.unpack("d", struct.pack("q", (word + (1 << 31)) >> 32 << 32))[0])


def fit_short(count):
    """The same with so many of the last coefficients of 20 bits; those before make up for it."""

    def fitted(function, weight, low, high, terms):
        fixed = {}
        left = lambda x: function(x) - sum(coefficient * x**k for k, coefficient in fixed.items())
        for k in reversed(range(terms - count, terms)):
            coefficients, _ = fit(left, weight, low, high, k + 1)
            fixed[k] = high_word(coefficients[k])
        coefficients, error = fit(left, weight, low, high, terms - count)
        return coefficients + [fixed[k] for k in sorted(fixed)], error

    return fitted


def in_square(function):
    """A function of the square of its argument."""
    return lambda square: function(mpmath.sqrt(square))


def from_series(function, limit, series):
    """The function, or its series (which loses nothing there) near 0."""
    return lambda x: series(x) if abs(x) < limit else function(x)


HALF_QUARTER = mpmath.pi / 4 + mpf("0.01")
TINY = mpf(2) ** -60
HALF = mpf(1) / 2


def erfc_scaled(x):
    # Of large arguments the continued fraction is what mpmath has; here its own functions suffice.
    return mpmath.exp(x * x) * mpmath.erfc(x)


def tail(centre, middle):
    return lambda v: erfc_scaled(centre * (v + middle) / (1 - v - middle)) * centre / (1 - v - middle)


def up_to(x, centre):
    return mpf(x) / (mpf(x) + centre)


def around_2(b):
    """Next to its zeros by its derivative there."""
    if min(abs(b), abs(1 + b)) < TINY:
        return mpmath.digamma(2) if abs(b) < TINY else -mpmath.digamma(1)
    return mpmath.loggamma(2 + b) / (b * (1 + b))


TAIL_SINGLE, TAIL_DOUBLE = mpf("1.75"), mpf(4)


# Name, what it is, function, weight, interval and terms for f32, interval and terms for f64.
FITS = [
    (
        "SINE",
        "(sin r - r) / r³ in r², for |r| to a little past π/4",
        in_square(lambda r: (mpmath.sin(r) - r) / r**3 if r > TINY else mpf(-1) / 6),
        in_square(lambda r: r**3 / mpmath.sin(r) if r > TINY else mpf(0) + r * r),
        (0, HALF_QUARTER**2, 3),
        (0, HALF_QUARTER**2, 6, fit_short(2)),
    ),
    (
        "COSINE",
        "(cos r - 1 + r²/2) / r⁴ in r², for |r| to a little past π/4",
        in_square(lambda r: (mpmath.cos(r) - 1 + r * r / 2) / r**4 if r > TINY else mpf(1) / 24),
        in_square(lambda r: r**4 / mpmath.cos(r)),
        (0, HALF_QUARTER**2, 3),
        (0, HALF_QUARTER**2, 6, fit_short(2)),
    ),
    (
        "ARC_SINE",
        "(asin w - w) / w³ in w², for w to 1/2",
        in_square(lambda w: (mpmath.asin(w) - w) / w**3 if w > TINY else mpf(1) / 6),
        in_square(lambda w: w**3 / mpmath.asin(w) if w > TINY else w * w),
        (0, mpf("0.2501"), 5),
        (0, mpf("0.2501"), 12),
    ),
    (
        "ARC_TANGENT",
        "(atan t - t) / t³ in t², for t to 1",
        in_square(lambda t: (mpmath.atan(t) - t) / t**3 if t > TINY else mpf(-1) / 3),
        in_square(lambda t: t**3 / mpmath.atan(t) if t > TINY else t * t),
        (0, 1, 8),
        (0, 1, 20, fit_short(6)),
    ),
    (
        "POWER_OF_2",
        "(2^f - 1) / f, for |f| to 1/2",
        lambda f: (mpf(2) ** f - 1) / f if f != 0 else mpmath.log(2),
        lambda f: f / mpf(2) ** f,
        (-0.502, 0.502, 6),
        (-0.502, 0.502, 11),
    ),
    (
        "AREA_TANGENT_REST",
        "((artanh s - s) / s³ - 1/3) / s² in s², for |s| to 3 - 2 sqrt(2)",
        in_square(lambda s: ((mpmath.atanh(s) - s) / s**3 - mpf(1) / 3) / s**2 if s > TINY else mpf(1) / 5),
        in_square(lambda s: s**5 / mpmath.atanh(s) if s > TINY else s**4),
        None,
        (0, mpf("0.0295"), 8),
    ),
    (
        "LOGARITHM_REST",
        "(2 log2(e) artanh(s) - 2 log2(e) s) / s³ in s², for |s| to 3 - 2 sqrt(2)",
        in_square(lambda s: 2 * (mpmath.atanh(s) - s) / s**3 / mpmath.log(2) if s > TINY else 2 / mpmath.log(2) / 3),
        in_square(lambda s: s**3 * mpmath.log(2) / (2 * mpmath.atanh(s)) if s > TINY else s**2 * mpmath.log(2) / 2),
        (0, mpf("0.0295"), 4),
        None,
    ),
    (
        "LOGARITHM",
        "(ln(1 + f) - f + f²/2) / f³, for 1 + f from sqrt(1/2) to sqrt(2)",
        lambda f: (mpmath.log1p(f) - f + f * f / 2) / f**3 if abs(f) > TINY else mpf(1) / 3,
        lambda f: f**3 / mpmath.log1p(f) if abs(f) > TINY else f * f,
        (mpf("-0.2930"), mpf("0.4143"), 8),
        (mpf("-0.2930"), mpf("0.4143"), 20, fit_short(4)),
    ),
    (
        "LOGARITHM_BELOW_2",
        "ln(1 + p) / p, for p from 0 to 1",
        lambda p: mpmath.log1p(p) / p if p > TINY else mpf(1),
        lambda p: p / mpmath.log1p(p) if p > TINY else mpf(1),
        (0, 1, 10),
        (0, 1, 22, fit_short(2)),
    ),
    (
        "EXPONENTIAL_REST",
        "(e^r - 1 - r) / r², for |r| to a little past ln 2 / 2",
        lambda r: (mpmath.exp(r) - 1 - r) / r**2 if abs(r) > TINY else mpf(1) / 2,
        lambda r: r**2 / mpmath.expm1(r) if abs(r) > TINY else abs(r),
        (mpf("-0.348"), mpf("0.348"), 6),
        (mpf("-0.348"), mpf("0.348"), 11, fit_short(4)),
    ),
    (
        "ERROR_NEAR",
        "erf(x) / x - 1 in x², for x to 1",
        in_square(lambda x: mpmath.erf(x) / x - 1 if x > TINY else 2 / mpmath.sqrt(mpmath.pi) - 1),
        in_square(lambda x: x / mpmath.erf(x) if x > TINY else mpf(1)),
        (0, 1, 7),
        (0, 1, 12, fit_short(3)),
    ),
    (
        "ERROR_FAR",
        "log2(erfc(1 + x)), for 1 + x to where erf is 1",
        lambda x: mpmath.log(mpmath.erfc(1 + x), 2),
        lambda x: mpmath.erfc(1 + x) / mpmath.erf(1 + x),
        (0, mpf("3"), 6),
        (0, mpf("5"), 18, fit_short(6)),
    ),
    (
        "ERROR_TAIL",
        "erfc(x) exp(x²) (x + c) in u = x / (x + c) with c = 7/4 (f32) and in u - 1/2 with c = 4 (f64), for all x at which"
        " erfc is not 0",
        (tail(TAIL_SINGLE, 0), tail(TAIL_DOUBLE, HALF)),
        (lambda u: 1 / tail(TAIL_SINGLE, 0)(u), lambda v: 1 / tail(TAIL_DOUBLE, HALF)(v)),
        (0, up_to("10.3", TAIL_SINGLE), 10, fit_rounded),
        (-HALF, up_to("27.4", TAIL_DOUBLE) - HALF, 22, fit_short(7)),
    ),
    (
        "EXPONENTIAL",
        "(e^r - 1) / r, for |r| to a little past ln 2 / 2",
        lambda r: mpmath.expm1(r) / r if abs(r) > TINY else mpf(1),
        lambda r: r / mpmath.expm1(r) if abs(r) > TINY else mpf(1),
        (mpf("-0.348"), mpf("0.348"), 6),
        (mpf("-0.348"), mpf("0.348"), 11, fit_short(3)),
    ),
    (
        "GAMMA_NEAR_2",
        "ln Γ(2 + d) / d, for |d| to 1/2",
        lambda d: mpmath.loggamma(2 + d) / d if abs(d) > TINY else mpmath.digamma(2),
        lambda d: d / mpmath.loggamma(2 + d) if abs(d) > TINY else 1 / mpmath.digamma(2),
        None,
        (-0.5, 0.5, 18),
    ),
    (
        "GAMMA_AROUND_2",
        "ln Γ(2 + b) / (b (1 + b)), for b from -1.3 to 1.2",
        around_2,
        lambda b: 1 / around_2(b),
        (mpf("-1.3"), mpf("1.2"), 15),
        None,
    ),
    (
        "STIRLING",
        "(ln Γ(x) - (x - 1/2) ln x + x - ln(2π)/2) x in 1/x², for x from 3.2 (f32) and from 8 (f64)",
        lambda z: (
            mpf(1) / 12
            if z == 0
            else (
                mpmath.loggamma(1 / mpmath.sqrt(z))
                - (1 / mpmath.sqrt(z) - mpf(1) / 2) * -mpmath.log(z) / 2
                + 1 / mpmath.sqrt(z)
                - mpmath.log(2 * mpmath.pi) / 2
            )
            / mpmath.sqrt(z)
        ),
        (lambda z: mpmath.sqrt(z) / mpmath.loggamma(1 / mpmath.sqrt(z)), lambda z: mpmath.sqrt(z) / 8),
        (mpf(2) ** -30, 1 / mpf("3.2") ** 2, 3),
        (mpf(2) ** -40, mpf(1) / 64, 6),
    ),
]


def main():
    lines = [
        "//! Coefficients of the polynomials, lowest first. Generated by scripts/make_polynomials.py, which documents\n//! the fit.\n\n",
        "/// A polynomial for f32 and one for f64.\npub(super) struct Fit {\n",
        "    pub(super) single: &'static [f64],\n    pub(super) double: &'static [f64],\n}\n",
    ]
    for name, meaning, functions, weight, for_single, for_double in FITS:
        functions = functions if isinstance(functions, tuple) else (functions, functions)
        lines.append(f"\n/// {meaning}.\n#[rustfmt::skip]\npub(super) const {name}: Fit = Fit {{\n")
        weights = weight if isinstance(weight, tuple) else (weight, weight)
        kinds = zip(("single", "double"), functions, weights, (for_single, for_double))
        for which, function, weight, interval in kinds:
            if interval is None:
                lines.append(f"    {which}: &[],\n")
                continue
            low, high, terms, *how = interval
            coefficients, error = (how[0] if how else fit)(function, weight, low, high, terms)
            print(f"{name} {which}: {terms} terms, 2^{float(mpmath.log(error, 2)):.1f}", flush=True)
            lines.append(f"    {which}: &[\n")
            lines += [f"        {float(c)!r},\n" for c in coefficients]
            lines.append("    ],\n")
        lines.append("};\n")
    path = build_images.ROOT / "src" / "fuse" / "language" / "lower" / "coefficients.rs"
    path.write_text("".join(lines))


if __name__ == "__main__":
    main()
