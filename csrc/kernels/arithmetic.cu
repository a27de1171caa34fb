// add, sub, mul and div of two flat arrays of f32, f64, c64 or c128.
//
// Entries: {add,sub,mul,div}_{f32,f64,c64,c128}(left, right, result, n): result[i] = left[i] op right[i] for i < n.
// result may be left or right. Launch as elementwise.cuh says.
//
// Every operation is IEEE, rounded to nearest even, and compiled without contraction (--fmad=false), so that a CPU that
// follows the same formulas gets the same bits (a NaN's payload excepted). Subnormal numbers are kept.
//
// Complex product: (ac - bd) + (ad + bc)i. Complex quotient (Smith 1962): with |c| >= |d|, r = d / c, t = c + d r, the
// quotient is ((a + b r) / t) + ((b - a r) / t)i, and with |c| < |d| the same with the parts' roles exchanged. Dividing
// by c^2 + d^2 would overflow from 1e19 (c64) or 1e154 (c128) on. A divisor of 0 gives NaN in both parts.
//
// | version | what | speed |
// |---|---|---|
// | 1 | 16 bytes a thread, the quotient without branches | measured: see benches/RESULTS.md |
#include "elementwise.cuh"

namespace {

__device__ inline f32 magnitude(f32 x) { return fabsf(x); }
__device__ inline f64 magnitude(f64 x) { return fabs(x); }

struct Add {
    __device__ f32 operator()(f32 x, f32 y) const { return x + y; }
    __device__ f64 operator()(f64 x, f64 y) const { return x + y; }
    template <typename Part>
    __device__ Complex<Part> operator()(Complex<Part> x, Complex<Part> y) const {
        return {x.real + y.real, x.imaginary + y.imaginary};
    }
};

struct Subtract {
    __device__ f32 operator()(f32 x, f32 y) const { return x - y; }
    __device__ f64 operator()(f64 x, f64 y) const { return x - y; }
    template <typename Part>
    __device__ Complex<Part> operator()(Complex<Part> x, Complex<Part> y) const {
        return {x.real - y.real, x.imaginary - y.imaginary};
    }
};

struct Multiply {
    __device__ f32 operator()(f32 x, f32 y) const { return x * y; }
    __device__ f64 operator()(f64 x, f64 y) const { return x * y; }
    template <typename Part>
    __device__ Complex<Part> operator()(Complex<Part> x, Complex<Part> y) const {
        return {x.real * y.real - x.imaginary * y.imaginary, x.real * y.imaginary + x.imaginary * y.real};
    }
};

struct Divide {
    __device__ f32 operator()(f32 x, f32 y) const { return x / y; }
    __device__ f64 operator()(f64 x, f64 y) const { return x / y; }
    // Both branches of Smith's formula are one expression of exchanged operands. The order of the two terms of the
    // imaginary part is exchanged too, instead of its sign, because that would turn a 0 into a -0.
    template <typename Part>
    __device__ Complex<Part> operator()(Complex<Part> x, Complex<Part> y) const {
        const bool by_real = magnitude(y.real) >= magnitude(y.imaginary);
        const Part large = by_real ? y.real : y.imaginary;
        const Part small = by_real ? y.imaginary : y.real;
        const Part straight = by_real ? x.real : x.imaginary;
        const Part scaled = by_real ? x.imaginary : x.real;
        const Part ratio = small / large;
        const Part divisor = large + small * ratio;
        const Part product = straight * ratio;
        const Part first = by_real ? scaled : product;
        const Part second = by_real ? product : scaled;
        return {(straight + scaled * ratio) / divisor, (first - second) / divisor};
    }
};

}  // namespace

#define ENTRY(name, operation, type)                                                                          \
    extern "C" __global__ void __launch_bounds__(1024)                                                        \
        name##_##type(const type* left, const type* right, type* result, u64 n) {                             \
        map_binary(left, right, result, n, operation());                                                      \
    }
#define ENTRIES(name, operation) \
    ENTRY(name, operation, f32)  \
    ENTRY(name, operation, f64)  \
    ENTRY(name, operation, c64)  \
    ENTRY(name, operation, c128)

ENTRIES(add, Add)
ENTRIES(sub, Subtract)
ENTRIES(mul, Multiply)
ENTRIES(div, Divide)
