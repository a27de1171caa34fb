// csrc/kernels/instructions.cuh, emulated.
#pragma once
#include "machine.hpp"
#include "types.cuh"

inline void forget(i32&) {}

inline f32 from_half(u16 bits) {
    const u32 exponent = bits >> 10 & 31, fraction = bits & 1023;
    const f32 magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                          : exponent     ? ldexpf((f32)(1024 + fraction), (int)exponent - 25)
                                         : ldexpf((f32)fraction, -24);
    return bits >> 15 ? -magnitude : magnitude;
}
// To nearest even.
inline u16 to_half(f32 x) {
    const u16 sign = std::signbit(x) ? 0x8000 : 0;
    if (std::isnan(x)) return 0x7fff;
    const f64 magnitude = fabs((f64)x);
    if (magnitude == 0) return sign;
    const int exponent = std::isinf(x) ? 16 : (int)fmax(ilogb(magnitude), -14);
    const f64 rounded = exponent > 15 ? 0 : nearbyint(ldexp(magnitude, 10 - exponent));
    if (exponent > 15 || ldexp(rounded, exponent - 10) > 65504) return sign | 0x7c00;
    // A fraction rounded up to 2048 carries into the exponent.
    return (u16)(sign | (((exponent + 14) << 10) + (int)rounded));
}
inline f32 exp2_approximate(f32 x) { return exp2f(x); }
inline f32 reciprocal_approximate(f32 x) { return 1.0f / x; }
inline f32 tanh_approximate(f32 x) { return tanhf(x); }
