// Arithmetic that C++ has no operators for: conversions of f16 and approximations. One function an instruction, named for its result.
// The PTX manual's chapters "cvt", "ex2", "rcp" and "tanh" define them.
#pragma once
#include "types.cuh"

// Hides from the compiler that x keeps its value. So it computes values that depend on x again, and keeps no registers for them.
__device__ inline void forget(i32& x) { asm volatile("" : "+r"(x)); }

// Widens an f16, given as bits; exact.
__device__ inline f32 from_half(u16 bits) {
    f32 wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
    return wide;
}

// Rounds to the nearest f16, ties to even, and returns its bits.
__device__ inline u16 to_half(f32 x) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

// 2^x within 2 ulp. Subnormal numbers become 0, which saves the instructions that would scale them: half of those of a gelu.
__device__ inline f32 exp2_approximate(f32 x) {
    f32 power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}

// 1 / x within 1 ulp. Subnormal numbers become 0.
__device__ inline f32 reciprocal_approximate(f32 x) {
    f32 inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
    return inverse;
}

// tanh(x) with a relative error of at most 2^-10.9; from compute capability 7.5 on.
__device__ inline f32 tanh_approximate(f32 x) {
    f32 tangent;
    asm("tanh.approx.f32 %0, %1;" : "=f"(tangent) : "f"(x));
    return tangent;
}
