// Arithmetic that C++ has no word for: conversions of halves and approximations, one function an instruction, named for
// what it does. The PTX manual's chapters of the instructions' names define them.
#pragma once
#include "types.cuh"

// Hides the value of x from the compiler, so what depends on x is computed here again and not kept live.
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

// Within 2 ulp, and subnormal numbers are 0 (which spares the instructions that scale them, half of what a gelu takes).
__device__ inline f32 exp2_approximate(f32 x) {
    f32 power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}

// Within 1 ulp, and subnormal numbers are 0.
__device__ inline f32 reciprocal_approximate(f32 x) {
    f32 inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
    return inverse;
}

// Within 2^-10.9 of its magnitude; from compute capability 7.5 on.
__device__ inline f32 tanh_approximate(f32 x) {
    f32 tangent;
    asm("tanh.approx.f32 %0, %1;" : "=f"(tangent) : "f"(x));
    return tangent;
}
