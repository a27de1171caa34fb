// Conversions of elements to the type of a product's sums, and back.
//
// Invariants: widening is exact, and narrowing rounds to nearest even, once. NaN stays NaN.
#pragma once
#include "instructions.cuh"
#include "types.cuh"

template <typename Element>
__device__ inline Element widened(Element x) {
    return x;
}
__device__ inline u32 widened(u8 x) { return x; }
__device__ inline u32 widened(u16 x) { return x; }
__device__ inline f32 widened(f16 x) { return from_half(x.bits); }
__device__ inline f32 widened(bf16 x) { return __uint_as_float((u32)x.bits << 16); }

template <typename Sum, typename Element>
__device__ inline void narrow(Sum x, Element& y) {
    y = (Element)x;
}
__device__ inline void narrow(f32 x, f16& y) { y.bits = to_half(x); }
__device__ inline void narrow(f32 x, bf16& y) {
    const u32 bits = __float_as_uint(x);
    const u32 nearest_even = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    y.bits = (bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : (u16)nearest_even;
}

// x y + z: fused for floats, so that it is one rounding (the options keep the compiler from fusing by itself).
__device__ inline u32 multiply_add(u32 x, u32 y, u32 z) { return x * y + z; }
__device__ inline u64 multiply_add(u64 x, u64 y, u64 z) { return x * y + z; }
__device__ inline f32 multiply_add(f32 x, f32 y, f32 z) { return fmaf(x, y, z); }
__device__ inline f64 multiply_add(f64 x, f64 y, f64 z) { return fma(x, y, z); }
template <typename Part>
__device__ inline Complex<Part> multiply_add(Complex<Part> x, Complex<Part> y, Complex<Part> z) {
    return {multiply_add(-x.imaginary, y.imaginary, multiply_add(x.real, y.real, z.real)),
            multiply_add(x.imaginary, y.real, multiply_add(x.real, y.imaginary, z.imaginary))};
}

template <typename Number>
__device__ inline Number multiply(Number x, Number y) {
    return x * y;
}
template <typename Part>
__device__ inline Complex<Part> multiply(Complex<Part> x, Complex<Part> y) {
    return {multiply_add(-x.imaginary, y.imaginary, x.real * y.real),
            multiply_add(x.imaginary, y.real, x.real * y.imaginary)};
}
