// Complex numbers for kernels: real part, then imaginary part, as num_complex::Complex has them.
//
// Product and quotient have the operations of the crate's own kernels and of its CPU side (src/types/complex.rs) in the same
// order, each rounded to nearest even, independent of --fmad and --use_fast_math; all three give the same bits. --ftz=true
// alone changes them: it flushes subnormal numbers to 0. The quotient scales its operands (R. L. Smith, "Algorithm 116: Complex
// division", Communications of the ACM 5(8), 1962), so it overflows only if the exact quotient does. As in C99's Annex G, a
// number other than 0 and NaN divided by 0 is infinite.
//
// Invariant: the struct is an aggregate with the alignment of its parts, so kernels take and store it as plain data.
#pragma once

namespace selvedge {

namespace complex_parts {
__device__ __forceinline__ float add(float x, float y) { return __fadd_rn(x, y); }
__device__ __forceinline__ double add(double x, double y) { return __dadd_rn(x, y); }
__device__ __forceinline__ float subtract(float x, float y) { return __fsub_rn(x, y); }
__device__ __forceinline__ double subtract(double x, double y) { return __dsub_rn(x, y); }
__device__ __forceinline__ float multiply(float x, float y) { return __fmul_rn(x, y); }
__device__ __forceinline__ double multiply(double x, double y) { return __dmul_rn(x, y); }
__device__ __forceinline__ float divide(float x, float y) { return __fdiv_rn(x, y); }
__device__ __forceinline__ double divide(double x, double y) { return __ddiv_rn(x, y); }
__device__ __forceinline__ float magnitude(float x) { return fabsf(x); }
__device__ __forceinline__ double magnitude(double x) { return fabs(x); }
__device__ __forceinline__ float with_sign(float x, float sign) { return copysignf(x, sign); }
__device__ __forceinline__ double with_sign(double x, double sign) { return copysign(x, sign); }

// Constants of the quotient; see src/types/complex.rs.
template <typename Part>
struct Constants;
template <>
struct Constants<float> {
    __device__ static float infinity() { return __int_as_float(0x7f800000); }
    // 2^64, 2^-100 and 2^-40.
    __device__ static float large_scale() { return __int_as_float(0x5f800000); }
    __device__ static float small_divisor() { return __int_as_float(0x0d800000); }
    __device__ static float small_dividend() { return __int_as_float(0x2b800000); }
};
template <>
struct Constants<double> {
    __device__ static double infinity() { return __longlong_as_double(0x7ff0000000000000ll); }
    // 2^600, 2^-960 and 2^-400.
    __device__ static double large_scale() { return __longlong_as_double(0x6570000000000000ll); }
    __device__ static double small_divisor() { return __longlong_as_double(0x03f0000000000000ll); }
    __device__ static double small_dividend() { return __longlong_as_double(0x26f0000000000000ll); }
};
}  // namespace complex_parts

template <typename Part>
struct complex {
    Part real;
    Part imaginary;
};
typedef complex<float> c64;
typedef complex<double> c128;

static_assert(sizeof(c64) == 8 && alignof(c64) == 4, "the layout of num_complex::Complex<f32>");
static_assert(sizeof(c128) == 16 && alignof(c128) == 8, "the layout of num_complex::Complex<f64>");

template <typename Part>
__device__ __forceinline__ complex<Part> operator+(complex<Part> x, complex<Part> y) {
    return {complex_parts::add(x.real, y.real), complex_parts::add(x.imaginary, y.imaginary)};
}

template <typename Part>
__device__ __forceinline__ complex<Part> operator-(complex<Part> x, complex<Part> y) {
    return {complex_parts::subtract(x.real, y.real), complex_parts::subtract(x.imaginary, y.imaginary)};
}

// (ac - bd) + (ad + bc)i
template <typename Part>
__device__ __forceinline__ complex<Part> operator*(complex<Part> x, complex<Part> y) {
    using namespace complex_parts;
    return {subtract(multiply(x.real, y.real), multiply(x.imaginary, y.imaginary)),
            add(multiply(x.real, y.imaginary), multiply(x.imaginary, y.real))};
}

namespace complex_parts {
// The numerators of Smith's quotient and their common divisor.
template <typename Part>
struct Smith {
    complex<Part> numerators;
    Part divisor;

    __device__ __forceinline__ complex<Part> quotient() const {
        return {divide(numerators.real, divisor), divide(numerators.imaginary, divisor)};
    }
};

// Both branches of Smith's formula as one expression of exchanged operands. The terms of the imaginary part are exchanged too,
// because a change of sign would turn a 0 into a -0.
template <typename Part>
__device__ __forceinline__ Smith<Part> smith(complex<Part> x, complex<Part> y) {
    const bool by_real = magnitude(y.real) >= magnitude(y.imaginary);
    const Part large = by_real ? y.real : y.imaginary;
    const Part small = by_real ? y.imaginary : y.real;
    const Part straight = by_real ? x.real : x.imaginary;
    const Part scaled = by_real ? x.imaginary : x.real;
    const Part ratio = divide(small, large);
    const Part product = multiply(straight, ratio);
    const Part first = by_real ? scaled : product;
    const Part second = by_real ? product : scaled;
    return {{add(straight, multiply(scaled, ratio)), subtract(first, second)}, add(large, multiply(small, ratio))};
}

template <typename Part>
__device__ __forceinline__ complex<Part> scale(complex<Part> x, Part by) {
    return {multiply(x.real, by), multiply(x.imaginary, by)};
}

// The quotient for operands whose quotient by Smith's formula has no value (C99 G.5.1, _Cdivd).
template <typename Part>
__device__ inline complex<Part> divide_special(complex<Part> x, complex<Part> y) {
    const Part infinity = Constants<Part>::infinity();
    const auto is_infinite = [=](Part part) { return magnitude(part) == infinity; };
    const auto has_infinity = [=](complex<Part> z) { return is_infinite(z.real) || is_infinite(z.imaginary); };
    const auto is_finite = [=](complex<Part> z) { return magnitude(z.real) < infinity && magnitude(z.imaginary) < infinity; };
    // 1 for an infinity and 0 for another part, with its sign.
    const auto unit = [=](Part part) { return with_sign(is_infinite(part) ? Part(1) : Part(0), part); };
    const auto direction = [=](complex<Part> a, complex<Part> b) {
        return complex<Part>{add(multiply(a.real, b.real), multiply(a.imaginary, b.imaginary)),
                             subtract(multiply(a.imaginary, b.real), multiply(a.real, b.imaginary))};
    };
    if (y.real == 0 && y.imaginary == 0) return scale(x, with_sign(infinity, y.real));
    if (has_infinity(x) && is_finite(y)) {
        return scale(direction(complex<Part>{unit(x.real), unit(x.imaginary)}, y), infinity);
    }
    if (has_infinity(y) && is_finite(x)) {
        // A quarter of the dividend, so that no sum overflows.
        return scale(direction(scale(x, Part(0.25)), complex<Part>{unit(y.real), unit(y.imaginary)}), Part(0));
    }
    return {subtract(infinity, infinity), subtract(infinity, infinity)};
}
}  // namespace complex_parts

template <typename Part>
__device__ __forceinline__ complex<Part> operator/(complex<Part> x, complex<Part> y) {
    using namespace complex_parts;
    typedef Constants<Part> constants;
    const Smith<Part> plain = smith(x, y);
    const Part size = magnitude(plain.divisor);
    const Part sum = add(magnitude(plain.numerators.real), magnitude(plain.numerators.imaginary));
    if (constants::small_divisor() < size && size < constants::infinity() && sum < constants::infinity()) return plain.quotient();
    const Part re = magnitude(x.real), im = magnitude(x.imaginary);
    const Part largest = re < im ? im : re;
    const Part of_dividend = largest < constants::small_dividend() ? constants::large_scale() : Part(0.25);
    const Part of_divisor = size <= constants::small_divisor() ? constants::large_scale() : Part(0.25);
    const complex<Part> quotient = scale(smith(scale(x, of_dividend), scale(y, of_divisor)).quotient(), divide(of_divisor, of_dividend));
    const bool is_lost = quotient.real != quotient.real && quotient.imaginary != quotient.imaginary;
    return is_lost ? divide_special(x, y) : quotient;
}

// By a real factor or divisor: each part by itself. `Same` lets `z * 2` be a product of a complex<float>.
template <typename Part>
struct Same {
    typedef Part type;
};
template <typename Part>
__device__ __forceinline__ complex<Part> operator*(complex<Part> x, typename Same<Part>::type factor) {
    return {complex_parts::multiply(x.real, factor), complex_parts::multiply(x.imaginary, factor)};
}
template <typename Part>
__device__ __forceinline__ complex<Part> operator*(typename Same<Part>::type factor, complex<Part> x) {
    return x * factor;
}
template <typename Part>
__device__ __forceinline__ complex<Part> operator/(complex<Part> x, typename Same<Part>::type divisor) {
    return {complex_parts::divide(x.real, divisor), complex_parts::divide(x.imaginary, divisor)};
}

template <typename Part>
__device__ __forceinline__ complex<Part> operator-(complex<Part> x) {
    return {-x.real, -x.imaginary};
}
template <typename Part>
__device__ __forceinline__ bool operator==(complex<Part> x, complex<Part> y) {
    return x.real == y.real && x.imaginary == y.imaginary;
}
template <typename Part>
__device__ __forceinline__ bool operator!=(complex<Part> x, complex<Part> y) {
    return !(x == y);
}

template <typename Part>
__device__ __forceinline__ complex<Part>& operator+=(complex<Part>& x, complex<Part> y) {
    return x = x + y;
}
template <typename Part>
__device__ __forceinline__ complex<Part>& operator-=(complex<Part>& x, complex<Part> y) {
    return x = x - y;
}
template <typename Part>
__device__ __forceinline__ complex<Part>& operator*=(complex<Part>& x, complex<Part> y) {
    return x = x * y;
}
template <typename Part>
__device__ __forceinline__ complex<Part>& operator/=(complex<Part>& x, complex<Part> y) {
    return x = x / y;
}

template <typename Part>
__device__ __forceinline__ complex<Part> conjugate(complex<Part> x) {
    return {x.real, -x.imaginary};
}

// The square of the magnitude, which overflows where the magnitude is past the root of the largest number.
template <typename Part>
__device__ __forceinline__ Part norm_squared(complex<Part> x) {
    using namespace complex_parts;
    return add(multiply(x.real, x.real), multiply(x.imaginary, x.imaginary));
}

// The magnitude, by CUDA's own hypot, with its accuracy.
__device__ __forceinline__ float abs(c64 x) { return hypotf(x.real, x.imaginary); }
__device__ __forceinline__ double abs(c128 x) { return hypot(x.real, x.imaginary); }

}  // namespace selvedge
