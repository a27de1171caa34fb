// bfloat16 for kernels: the upper half of a float, in two bytes as half::bf16 has it, without the toolkit's cuda_bf16.h.
//
// To float it converts by itself and exactly; into bf16 it has to be said, as bf16(x), which rounds to nearest even once, from any
// number type. Sums, differences, products, quotients and roots of bf16 are those of float rounded to bf16, which is the right
// result (as in half.cuh; subnormal results too, since a float has sixteen bits more there). If one operand is a float, so is
// the result. Comparisons are those of the floats. Every NaN that is made has the bits 0x7fff.
//
// Invariants: plain data of two bytes; every target gives the same bits, by integer arithmetic before sm_80 and by one instruction
// from there on; it can be included beside cuda_bf16.h.
#pragma once

namespace selvedge {

namespace bf16_bits {
__device__ __forceinline__ unsigned short rounded(float x) {
#if __CUDA_ARCH__ >= 800
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
#else
    const unsigned word = __float_as_uint(x);
    // Half of what is cut off, less where the last bit that stays is even: a tie goes to the even one.
    const unsigned nearest = (word + 0x7fff + (word >> 16 & 1)) >> 16;
    return x != x ? 0x7fff : nearest;
#endif
}

// A float from which rounding to bf16 gives what rounding from the double does: cut off, with the last bit set where something was
// lost, so that it is on the right side of every tie (round to odd).
__device__ __forceinline__ float odd(double x) {
    const float cut = __double2float_rz(x);
    return (double)cut == x ? cut : __uint_as_float(__float_as_uint(cut) | 1);
}
__device__ __forceinline__ double odd(long long x) {
    const double cut = __ll2double_rz(x);
    // Back it goes exactly: what was cut off towards 0 is in range.
    return (long long)cut == x ? cut : __longlong_as_double(__double_as_longlong(cut) | 1);
}
__device__ __forceinline__ double odd(unsigned long long x) {
    const double cut = __ull2double_rz(x);
    return (unsigned long long)cut == x ? cut : __longlong_as_double(__double_as_longlong(cut) | 1);
}
}  // namespace bf16_bits

struct bf16 {
    unsigned short bits;

    bf16() = default;
    __device__ __forceinline__ explicit bf16(float x) : bits(bf16_bits::rounded(x)) {}
    __device__ __forceinline__ explicit bf16(double x) : bits(bf16_bits::rounded(bf16_bits::odd(x))) {}
    __device__ __forceinline__ explicit bf16(int x) : bf16((double)x) {}
    __device__ __forceinline__ explicit bf16(unsigned x) : bf16((double)x) {}
    __device__ __forceinline__ explicit bf16(long long x) : bf16(bf16_bits::odd(x)) {}
    __device__ __forceinline__ explicit bf16(unsigned long long x) : bf16(bf16_bits::odd(x)) {}
    __device__ __forceinline__ explicit bf16(long x) : bf16((long long)x) {}
    __device__ __forceinline__ explicit bf16(unsigned long x) : bf16((unsigned long long)x) {}

    __device__ __forceinline__ static bf16 from_bits(unsigned short bits) {
        bf16 x;
        x.bits = bits;
        return x;
    }

    __device__ __forceinline__ operator float() const { return __uint_as_float((unsigned)bits << 16); }
};

static_assert(sizeof(bf16) == 2 && alignof(bf16) == 2, "the layout of half::bf16");

__device__ __forceinline__ bf16 operator+(bf16 x, bf16 y) { return bf16(__fadd_rn(float(x), float(y))); }
__device__ __forceinline__ bf16 operator-(bf16 x, bf16 y) { return bf16(__fsub_rn(float(x), float(y))); }
__device__ __forceinline__ bf16 operator*(bf16 x, bf16 y) { return bf16(__fmul_rn(float(x), float(y))); }
__device__ __forceinline__ bf16 operator/(bf16 x, bf16 y) { return bf16(__fdiv_rn(float(x), float(y))); }
__device__ __forceinline__ bf16 operator-(bf16 x) { return bf16::from_bits(x.bits ^ 0x8000); }

__device__ __forceinline__ bf16& operator+=(bf16& x, bf16 y) { return x = x + y; }
__device__ __forceinline__ bf16& operator-=(bf16& x, bf16 y) { return x = x - y; }
__device__ __forceinline__ bf16& operator*=(bf16& x, bf16 y) { return x = x * y; }
__device__ __forceinline__ bf16& operator/=(bf16& x, bf16 y) { return x = x / y; }

__device__ __forceinline__ bf16 abs(bf16 x) { return bf16::from_bits(x.bits & 0x7fff); }
__device__ __forceinline__ bf16 sqrt(bf16 x) { return bf16(__fsqrt_rn(float(x))); }

}  // namespace selvedge
