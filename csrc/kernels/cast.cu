// Conversion of a flat array from one element type to another. One family for each source type: compiled with
// -DSOURCE=<type>, because the driver would take ten times as long to assemble all 225 pairs at once.
//
// Entries: cast_<source>_<result>(source, result, n) for bool, u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64,
// c64 and c128, each with each (bool to bool makes every byte 0 or 1). Launch as elementwise.cuh says. result may be the
// source where both types have one size.
//
// - Integer to integer keeps the low bits.
// - A real number to an integer drops the fraction and saturates; NaN gives 0.
// - To a narrower real number it rounds once, to nearest even, from whatever source: where the hardware converts in two
//   steps, the first one rounds to odd, which leaves the second the information that it needs.
// - A real number becomes the real part of a complex one; a complex number gives its real part.
// - To bool: whether it is not 0 (NaN is not 0; of a complex number, either part). From bool: 0 or 1.
//
// | version | what | speed |
// |---|---|---|
// | 1 | 16 bytes of the result a thread | measured: see benches/RESULTS.md |
#include "elementwise.cuh"

namespace {

// `real` is f32 or f64. Enumerators, because static members would become variables of the module.
template <typename Type>
struct Kind {
    enum : bool { real = false, complex = false };
};
template <>
struct Kind<f32> {
    enum : bool { real = true, complex = false };
};
template <>
struct Kind<f64> {
    enum : bool { real = true, complex = false };
};
template <typename Part>
struct Kind<Complex<Part>> {
    enum : bool { real = false, complex = true };
};

// The number in a type that has arithmetic; of a complex number its real part. Exact.
template <typename Number>
__device__ inline Number number(Number x) {
    return x;
}
template <typename Part>
__device__ inline Part number(Complex<Part> x) {
    return x.real;
}
__device__ inline u8 number(boolean x) { return x.byte != 0; }
__device__ inline f32 number(f16 x) {
    f32 wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
}
__device__ inline f32 number(bf16 x) { return __uint_as_float((u32)x.bits << 16); }

// To f32 without losing on which side of a tie the number lies: truncated, and odd where that was not exact. f32 has
// more than two bits more than f16 and bf16, so rounding the result to nearest rounds the number itself.
__device__ inline f32 to_odd(f32 x, bool exact) { return exact ? x : __uint_as_float(__float_as_uint(x) | 1); }
__device__ inline f32 round_to_odd(f32 x) { return x; }
__device__ inline f32 round_to_odd(f64 x) {
    const f32 cut = __double2float_rz(x);
    return to_odd(cut, (f64)cut == x);
}
__device__ inline f32 round_to_odd(i64 x) {
    const f32 cut = __ll2float_rz(x);
    return to_odd(cut, __float2ll_rz(cut) == x);
}
__device__ inline f32 round_to_odd(u64 x) {
    const f32 cut = __ull2float_rz(x);
    return to_odd(cut, __float2ull_rz(cut) == x);
}
__device__ inline f32 round_to_odd(i32 x) { return round_to_odd((i64)x); }
__device__ inline f32 round_to_odd(u32 x) { return round_to_odd((u64)x); }
__device__ inline f32 round_to_odd(i16 x) { return x; }
__device__ inline f32 round_to_odd(u16 x) { return x; }
__device__ inline f32 round_to_odd(i8 x) { return x; }
__device__ inline f32 round_to_odd(u8 x) { return x; }

// Truncated; the hardware saturates, but does not always turn NaN into 0.
__device__ inline i64 truncate_signed(f32 x) { return x != x ? 0 : __float2ll_rz(x); }
__device__ inline i64 truncate_signed(f64 x) { return x != x ? 0 : __double2ll_rz(x); }
__device__ inline u64 truncate_unsigned(f32 x) { return x != x ? 0 : __float2ull_rz(x); }
__device__ inline u64 truncate_unsigned(f64 x) { return x != x ? 0 : __double2ull_rz(x); }
__device__ inline i32 truncate_short(f32 x) { return x != x ? 0 : __float2int_rz(x); }
__device__ inline i32 truncate_short(f64 x) { return x != x ? 0 : __double2int_rz(x); }
__device__ inline u32 truncate_short_unsigned(f32 x) { return x != x ? 0 : __float2uint_rz(x); }
__device__ inline u32 truncate_short_unsigned(f64 x) { return x != x ? 0 : __double2uint_rz(x); }

__device__ inline i32 clamp(i32 x, i32 low, i32 high) { return x < low ? low : x > high ? high : x; }

template <typename Real>
__device__ inline void saturate(Real x, i8& y) {
    y = (i8)clamp(truncate_short(x), -128, 127);
}
template <typename Real>
__device__ inline void saturate(Real x, u8& y) {
    y = (u8)clamp(truncate_short(x), 0, 255);
}
template <typename Real>
__device__ inline void saturate(Real x, i16& y) {
    y = (i16)clamp(truncate_short(x), -32768, 32767);
}
template <typename Real>
__device__ inline void saturate(Real x, u16& y) {
    y = (u16)clamp(truncate_short(x), 0, 65535);
}
template <typename Real>
__device__ inline void saturate(Real x, i32& y) {
    y = truncate_short(x);
}
template <typename Real>
__device__ inline void saturate(Real x, u32& y) {
    y = truncate_short_unsigned(x);
}
template <typename Real>
__device__ inline void saturate(Real x, i64& y) {
    y = truncate_signed(x);
}
template <typename Real>
__device__ inline void saturate(Real x, u64& y) {
    y = truncate_unsigned(x);
}

// A number of a type with arithmetic to any real type.
template <typename Number, typename Result>
__device__ inline void assign(Number x, Result& y) {
    if constexpr (Kind<Number>::real && !Kind<Result>::real) {
        saturate(x, y);
    } else {
        y = (Result)x;
    }
}
template <typename Number>
__device__ inline void assign(Number x, boolean& y) {
    y.byte = x != 0;
}
template <typename Number>
__device__ inline void assign(Number x, f16& y) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(round_to_odd(x)));
}
template <typename Number>
__device__ inline void assign(Number x, bf16& y) {
    const u32 bits = __float_as_uint(round_to_odd(x));
    const u32 rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    y.bits = (bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : (u16)rounded;
}

template <typename Source, typename Result>
struct Cast {
    __device__ Result operator()(Source x) const {
        Result y;
        assign(number(x), y);
        return y;
    }
};
template <typename Source>
struct Cast<Complex<Source>, boolean> {
    __device__ boolean operator()(Complex<Source> x) const { return {(u8)(x.real != 0 || x.imaginary != 0)}; }
};
template <typename Source, typename Part>
struct Cast<Source, Complex<Part>> {
    __device__ Complex<Part> operator()(Source x) const {
        Complex<Part> y;
        assign(number(x), y.real);
        if constexpr (Kind<Source>::complex) {
            assign(x.imaginary, y.imaginary);
        } else {
            y.imaginary = 0;
        }
        return y;
    }
};

}  // namespace

// The names of the entries are the names of the types, but `bool` is a word of C++.
typedef boolean type_bool;
typedef u8 type_u8;
typedef i8 type_i8;
typedef u16 type_u16;
typedef i16 type_i16;
typedef u32 type_u32;
typedef i32 type_i32;
typedef u64 type_u64;
typedef i64 type_i64;
typedef f16 type_f16;
typedef bf16 type_bf16;
typedef f32 type_f32;
typedef f64 type_f64;
typedef c64 type_c64;
typedef c128 type_c128;

#define ENTRY_NAMED(from, to)                                                                                 \
    extern "C" __global__ void __launch_bounds__(1024)                                                        \
        cast_##from##_##to(const type_##from* source, type_##to* result, u64 n) {                             \
        map_unary(source, result, n, Cast<type_##from, type_##to>());                                         \
    }
// A second macro, so that SOURCE is replaced before the names are put together.
#define ENTRY(from, to) ENTRY_NAMED(from, to)

ENTRY(SOURCE, bool)
ENTRY(SOURCE, u8)
ENTRY(SOURCE, i8)
ENTRY(SOURCE, u16)
ENTRY(SOURCE, i16)
ENTRY(SOURCE, u32)
ENTRY(SOURCE, i32)
ENTRY(SOURCE, u64)
ENTRY(SOURCE, i64)
ENTRY(SOURCE, f16)
ENTRY(SOURCE, bf16)
ENTRY(SOURCE, f32)
ENTRY(SOURCE, f64)
ENTRY(SOURCE, c64)
ENTRY(SOURCE, c128)
