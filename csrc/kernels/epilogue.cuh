// The epilogue of all matrix products: C = activation(sum + bias) + residual, with aux = sum + bias stored on request, as cuBLASLt's
// GELU_AUX_BIAS. `sum` is alpha A B + beta C.
//
// Invariants: everything is computed in the type of the sums, so an element is rounded once, when it is stored (and once in aux).
// `Epilogue` is exactly the Rust side's `gemm::epilogue::EpilogueParameters`. The bias has an element a row or a column of C, and is the
// same for all matrices of a batch. aux and the residual have the layout of C.
#pragma once
#include "activations.cuh"
#include "numbers.cuh"

struct Epilogue {
    const void* bias;      // All three pointers are to elements of C's type; null if there is none.
    void* aux;             // The pre-activation: sum + bias.
    const void* residual;
    i32 bias_by_row;       // True if the bias has an element a row instead of a column.
    i32 activation;        // An ActivationCode (activations.cuh). Derivatives are in wgmma_epilogue.cuh alone.

    __device__ bool any() const { return bias || aux || residual || activation; }
};

// The functions of ACTIVATIONS. NaN and -0 stay.
template <typename Sum>
__device__ inline Sum relu(Sum x) { return x < 0 ? (Sum)0 : x; }

// gelu in its tanh form: x (1 + tanh(u)) / 2 = x / (1 + exp(-2 u)) with u = sqrt(2 / pi) (x + 0.044715 x^3).
__device__ inline f32 gelu(f32 x) {
    const f32 exponent = x * fmaf(x * x, -0.10294324f, -2.3022082f);  // -2 u / ln 2.
    return x * reciprocal_approximate(1.0f + exp2_approximate(exponent));
}
__device__ inline f64 gelu(f64 x) { return x / (1.0 + exp(x * fma(x * x, -0.07135481627260025, -1.5957691216057308))); }

// x / (1 + exp(-x)).
__device__ inline f32 silu(f32 x) { return x * reciprocal_approximate(1.0f + exp2_approximate(-1.4426950f * x)); }
__device__ inline f64 silu(f64 x) { return x / (1.0 + exp(-x)); }

// The steps of the epilogue, on the `Count` elements of a thread. Each step finishes all elements before the next step begins, so that its
// loads overlap. where(i, row, column, place) sets the row, column and offset in C (in elements, from the first matrix of the batch
// on) of the thread's element i, and returns true if it is inside C.

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

// Returns gelu(x) for half = x / 2, accurate enough to be rounded to 16 bits: one approximation (tanh.approx) instead of two. The absolute
// error is at most 2^-11.9 |x|.
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

// Adds beta * C. Nothing else reads C, and callers skip this for a beta of 0, so that C may then hold anything, even NaN.
template <typename Element, int Count, typename Sum, typename Where>
__device__ inline void add_beta_c(const Element* c, Sum beta, Sum (&x)[Count], Where where) {
    i32 row, column;
    i64 place;
#pragma unroll
    for (int i = 0; i < Count; i++) {
        if (where(i, row, column, place)) x[i] = multiply_add(beta, widened(c[place]), x[i]);
    }
}
