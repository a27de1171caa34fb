// Element types of the kernels, without a toolkit header.
//
// Why: a header of the toolkit would tie the sources to one release, and the half-precision headers need a newer card
// than sm_60. Invariants: sizes and layouts equal those of the Rust side (a complex number is
// real part then imaginary part), and no type asks for more alignment than its Rust twin, so that a view that starts
// at any element is a legal operand.
#pragma once

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

// IEEE binary16 and the upper half of a binary32, as bits.
struct f16 {
    u16 bits;
};
struct bf16 {
    u16 bits;
};

template <typename Part>
struct Complex {
    Part real;
    Part imaginary;
};
typedef Complex<f32> c64;
typedef Complex<f64> c128;
