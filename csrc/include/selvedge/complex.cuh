// Complex numbers for kernels: real part, then imaginary part, as num_complex::Complex has them.
//
// Product and quotient are those of the crate's own kernels and of its CPU side (src/types/complex.rs), operation by operation and
// each rounded to nearest even, whatever --fmad and --use_fast_math say of the rest; so all three give the same bits.
// --ftz=true alone changes them: it makes 0 of subnormal numbers. The quotient is scaled (R. L. Smith, "Algorithm 116: Complex
// division", Communications of the ACM 5(8), 1962), so nothing overflows in an intermediate unless the result does. A divisor of 0
// gives NaN in both parts.
//
// Invariants: the struct is an aggregate and no more aligned than its parts, so that kernels take and keep it as plain data.
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

// Both branches of Smith's method as one expression of exchanged operands. The order of the two terms of the imaginary part is
// exchanged too, instead of its sign, because that would turn a 0 into a -0.
template <typename Part>
__device__ __forceinline__ complex<Part> operator/(complex<Part> x, complex<Part> y) {
    using namespace complex_parts;
    const bool by_real = magnitude(y.real) >= magnitude(y.imaginary);
    const Part large = by_real ? y.real : y.imaginary;
    const Part small = by_real ? y.imaginary : y.real;
    const Part straight = by_real ? x.real : x.imaginary;
    const Part scaled = by_real ? x.imaginary : x.real;
    const Part ratio = divide(small, large);
    const Part divisor = add(large, multiply(small, ratio));
    const Part product = multiply(straight, ratio);
    const Part first = by_real ? scaled : product;
    const Part second = by_real ? product : scaled;
    return {divide(add(straight, multiply(scaled, ratio)), divisor), divide(subtract(first, second), divisor)};
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
