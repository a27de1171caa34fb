// What is done with a number of C before it is rounded: a bias is added, the sum is kept, an activation is applied, and
// a residual is added, each if it is asked for. All kernels of matrix products share this.
//
// What must stay true: everything is computed in the type that the product is summed in, so the only rounding to C's
// type is the last one (and that of what is kept). `Epilogue` is the Rust side's `gemm::epilogue::Raw`. The bias has a
// number a row or a column of C, for all matrices of a batch; what is kept and the residual are laid out like C.
#pragma once
#include "numbers.cuh"

struct Epilogue {
    const void* bias;      // Of C's type, as all of them; null where there is none.
    void* before;          // Where the numbers go before the activation.
    const void* residual;
    i32 by_row;            // Whether the bias has a number a row, instead of a column.
    i32 activation;        // 0: none, 1: max(x, 0), 2: gelu.

    __device__ bool any() const { return bias || before || residual || activation; }
};

// x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3): gelu by the hyperbolic tangent.
__device__ inline f32 gelu(f32 x) {
    const f32 exponent = x * fmaf(x * x, -0.10294324f, -2.3022082f);  // -2 u / ln 2.
    return x * reciprocal_approximate(1.0f + exp2_approximate(exponent));
}
__device__ inline f64 gelu(f64 x) { return x / (1.0 + exp(x * fma(x * x, -0.07135481627260025, -1.5957691216057308))); }

// The parts, one step after the other for all of `Count` numbers, so that what a step loads is on its way together.
// where(i, row, column, place) says whether number i is inside C, and where it lies there, in elements from the first matrix on.

template <typename Element, int Count, typename Sum, typename Where>
__device__ inline void add_bias(const Epilogue& epilogue, Sum (&x)[Count], Where where) {
    i32 row, column;
    i64 place;
    const Element* const bias = (const Element*)epilogue.bias;
    if (!bias) return;
    // Two loops, so that numbers of one column, or of one row, share a load.
    if (epilogue.by_row) {
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

// The same of twice `half`, for results of 16 bits: half of the time of an approximation that is off by no more than 2^-12 of x, where
// rounding to f16 may be off by as much.
__device__ inline f32 gelu_of_half_to_round(f32 half) {
    return fmaf(half, tanh_approximate(half * fmaf(half * half, 8 * 0.035677408f, 2 * 0.79788456f)), half);
}

template <int Count, typename Sum>
__device__ inline void activate(const Epilogue& epilogue, Sum (&x)[Count]) {
    if (epilogue.activation == 1) {
#pragma unroll
        for (int i = 0; i < Count; i++) x[i] = x[i] < 0 ? (Sum)0 : x[i];
    } else if (epilogue.activation == 2) {
#pragma unroll
        for (int i = 0; i < Count; i++) x[i] = gelu(x[i]);
    }
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

// All of them; what is kept is written as it is met.
template <typename Element, int Count, typename Sum, typename Where>
__device__ inline void finish(const Epilogue& epilogue, Sum (&x)[Count], Where where) {
    i32 row, column;
    i64 place;
    add_bias<Element>(epilogue, x, where);
    if (epilogue.before) {
#pragma unroll
        for (int i = 0; i < Count; i++) {
            if (where(i, row, column, place)) narrow(x[i], ((Element*)epilogue.before)[place]);
        }
    }
    activate(epilogue, x);
    add_residual<Element>(epilogue, x, where);
}

// Adds beta times what C holds. Only here is C read: with a beta of 0 it may hold anything.
template <typename Element, int Count, typename Sum, typename Where>
__device__ inline void add_c(const Element* c, Sum beta, Sum (&x)[Count], Where where) {
    i32 row, column;
    i64 place;
#pragma unroll
    for (int i = 0; i < Count; i++) {
        if (where(i, row, column, place)) x[i] = multiply_add(beta, widened(c[place]), x[i]);
    }
}
