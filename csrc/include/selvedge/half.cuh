// IEEE binary16 for kernels, in two bytes as half::f16 has it, without the toolkit's cuda_fp16.h.
//
// To float it converts by itself and exactly; into f16 it has to be said, as f16(x), which rounds to nearest even once, from any
// number type. Sums, differences, products, quotients and roots of f16 are those of float rounded to f16, which is the right
// result: float has more than twice the bits and two (S. A. Figueroa, "When is double rounding innocuous?", SIGNUM 30(3), 1995).
// If one operand is a float, so is the result. Comparisons are those of the floats.
//
// Invariants: plain data of two bytes; it needs nothing newer than sm_53 and can be included beside cuda_fp16.h.
#pragma once

namespace selvedge {

struct f16 {
    unsigned short bits;

    f16() = default;
    __device__ __forceinline__ explicit f16(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
    __device__ __forceinline__ explicit f16(double x) { asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x)); }
    __device__ __forceinline__ explicit f16(int x) { asm("cvt.rn.f16.s32 %0, %1;" : "=h"(bits) : "r"(x)); }
    __device__ __forceinline__ explicit f16(unsigned x) { asm("cvt.rn.f16.u32 %0, %1;" : "=h"(bits) : "r"(x)); }
    __device__ __forceinline__ explicit f16(long long x) { asm("cvt.rn.f16.s64 %0, %1;" : "=h"(bits) : "l"(x)); }
    __device__ __forceinline__ explicit f16(unsigned long long x) {
        asm("cvt.rn.f16.u64 %0, %1;" : "=h"(bits) : "l"(x));
    }
    __device__ __forceinline__ explicit f16(long x) : f16((long long)x) {}
    __device__ __forceinline__ explicit f16(unsigned long x) : f16((unsigned long long)x) {}

    __device__ __forceinline__ static f16 from_bits(unsigned short bits) {
        f16 x;
        x.bits = bits;
        return x;
    }

    __device__ __forceinline__ operator float() const {
        float x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
        return x;
    }
};

static_assert(sizeof(f16) == 2 && alignof(f16) == 2, "the layout of half::f16");

__device__ __forceinline__ f16 operator+(f16 x, f16 y) { return f16(__fadd_rn(float(x), float(y))); }
__device__ __forceinline__ f16 operator-(f16 x, f16 y) { return f16(__fsub_rn(float(x), float(y))); }
__device__ __forceinline__ f16 operator*(f16 x, f16 y) { return f16(__fmul_rn(float(x), float(y))); }
__device__ __forceinline__ f16 operator/(f16 x, f16 y) { return f16(__fdiv_rn(float(x), float(y))); }
__device__ __forceinline__ f16 operator-(f16 x) { return f16::from_bits(x.bits ^ 0x8000); }

__device__ __forceinline__ f16& operator+=(f16& x, f16 y) { return x = x + y; }
__device__ __forceinline__ f16& operator-=(f16& x, f16 y) { return x = x - y; }
__device__ __forceinline__ f16& operator*=(f16& x, f16 y) { return x = x * y; }
__device__ __forceinline__ f16& operator/=(f16& x, f16 y) { return x = x / y; }

__device__ __forceinline__ f16 abs(f16 x) { return f16::from_bits(x.bits & 0x7fff); }
__device__ __forceinline__ f16 sqrt(f16 x) { return f16(__fsqrt_rn(float(x))); }

}  // namespace selvedge
