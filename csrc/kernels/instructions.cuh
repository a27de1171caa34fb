// Arithmetic that C++ has no word for: conversions of halves and approximations, one function an instruction, named for
// what it does. The PTX manual's chapters of the instructions' names define them.
#pragma once
#include "types.cuh"

// Keeps the compiler from what it knows of the number, so that what is made of it later is computed later.
__device__ inline void forget(i32& x) { asm volatile("" : "+r"(x)); }

// A half's bits, exactly.
__device__ inline f32 from_half(u16 bits) {
    f32 wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
    return wide;
}

// To the nearest half, of two the even one.
__device__ inline u16 to_half(f32 x) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

// Within 2 ulp, and without subnormal results.
__device__ inline f32 exp2_approximate(f32 x) {
    f32 power;
    asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}

// Within 1 ulp.
__device__ inline f32 reciprocal_approximate(f32 x) {
    f32 inverse;
    asm("rcp.approx.f32 %0, %1;" : "=f"(inverse) : "f"(x));
    return inverse;
}
