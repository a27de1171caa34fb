// The epilogue of all matrix products: C = activation(sum + bias) + residual, with aux = sum + bias stored on request, as cuBLASLt's
// GELU_AUX_BIAS.
//
// Invariants: everything is computed in the type of the sums, so an element is rounded once, when it is stored (and once in aux).
// `Epilogue` is exactly the Rust side's `gemm::epilogue::EpilogueParameters`. The bias has an element a row or a column of C, for all
// matrices of a batch; aux and the residual are laid out like C.
#pragma once
#include "activations.cuh"
#include "numbers.cuh"

struct Epilogue {
    const void* bias;      // Of C's type, like the others; null where there is none.
    void* aux;             // The pre-activation.
    const void* residual;
    i32 bias_by_row;       // True where the bias has an element a row instead of a column.
    i32 activation;        // An ActivationCode.

    __device__ bool any() const { return bias || aux || residual || activation; }
};

// The functions of ACTIVATIONS. NaN and -0 stay.
template <typename Sum>
__device__ inline Sum relu(Sum x) { return x < 0 ? (Sum)0 : x; }

// x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3): gelu by the hyperbolic tangent.
__device__ inline f32 gelu(f32 x) {
    const f32 exponent = x * fmaf(x * x, -0.10294324f, -2.3022082f);  // -2 u / ln 2.
    return x * reciprocal_approximate(1.0f + exp2_approximate(exponent));
}
__device__ inline f64 gelu(f64 x) { return x / (1.0 + exp(x * fma(x * x, -0.07135481627260025, -1.5957691216057308))); }

// x / (1 + exp(-x)).
__device__ inline f32 silu(f32 x) { return x * reciprocal_approximate(1.0f + exp2_approximate(-1.4426950f * x)); }
__device__ inline f64 silu(f64 x) { return x / (1.0 + exp(-x)); }

// The operations, each on all of `Count` elements before the next one, so that the loads of an operation overlap.
// where(i, row, column, place) returns true for an element i inside C, with its place in elements from the first matrix on.

template <typename Element, int Count, typename Sum, typename Where>
__device__ inline void add_bias(const Epilogue& epilogue, Sum (&x)[Count], Where where) {
    i32 row, column;
    i64 place;
    const Element* const bias = (const Element*)epilogue.bias;
    if (!bias) return;
    // Two loops, so that elements of one column, or of one row, share a load.
    if (epilogue.bias_by_row) {
#pragma unroll
        for (int i = 0; i < Count; i++) {
            if (where(i, row, column, place)) x[i] += widened(bias[row]);
        }
    } else {
#pragma unroll
        for (int i = 0; i < Count; i++) {
            if (where(i, row, column, place)) x[i] += widened(bias[column]);
        }
    }
}

// gelu(2 half) for results of 16 bits, by one approximation instead of two. Its absolute error is at most 2^-11.9 |x|.
__device__ inline f32 gelu_of_half_to_round(f32 half) {
    return fmaf(half, tanh_approximate(half * fmaf(half * half, 8 * 0.035677408f, 2 * 0.79788456f)), half);
}

// silu(2 half) likewise.
__device__ inline f32 silu_of_half_to_round(f32 half) { return fmaf(half, tanh_approximate(half), half); }

template <int Count, typename Sum>
__device__ inline void activate(const Epilogue& epilogue, Sum (&x)[Count]) {
#define ACTIVATE(name)                                                       \
    if (epilogue.activation == name##_code) {                                \
        _Pragma("unroll") for (int i = 0; i < Count; i++) x[i] = name(x[i]); \
        return;                                                              \
    }
    ACTIVATIONS(ACTIVATE)
#undef ACTIVATE
}

template <typename Element, int Count, typename Sum, typename Where>
__device__ inline void add_residual(const Epilogue& epilogue, Sum (&x)[Count], Where where) {
    i32 row, column;
    i64 place;
    if (!epilogue.residual) return;
#pragma unroll
    for (int i = 0; i < Count; i++) {
        if (where(i, row, column, place)) x[i] += widened(((const Element*)epilogue.residual)[place]);
    }
}

// The whole epilogue.
template <typename Element, int Count, typename Sum, typename Where>
__device__ inline void apply_epilogue(const Epilogue& epilogue, Sum (&x)[Count], Where where) {
    i32 row, column;
    i64 place;
    add_bias<Element>(epilogue, x, where);
    if (epilogue.aux) {
#pragma unroll
        for (int i = 0; i < Count; i++) {
            if (where(i, row, column, place)) narrow(x[i], ((Element*)epilogue.aux)[place]);
        }
    }
    activate(epilogue, x);
    add_residual<Element>(epilogue, x, where);
}

// Adds beta * C. C is read here alone: with a beta of 0 it may hold anything, NaN too.
template <typename Element, int Count, typename Sum, typename Where>
__device__ inline void add_beta_c(const Element* c, Sum beta, Sum (&x)[Count], Where where) {
    i32 row, column;
    i64 place;
#pragma unroll
    for (int i = 0; i < Count; i++) {
        if (where(i, row, column, place)) x[i] = multiply_add(beta, widened(c[place]), x[i]);
    }
}
