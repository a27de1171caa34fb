// Shared by the kernels of matrix products that give each tile of C to one block: the parameter, the raster order of the tiles, and
// the stores to C.
//
// Invariants: if `reads_c` is 0, C is only written. `GemmParameters` is exactly the Rust side's `gemm::blocks::GemmParameters`.
#pragma once
#include "epilogue.cuh"
#include "vectors.cuh"

struct GemmParameters {
    i32 m, n, k;
    i32 padding;
    i64 a_leading, b_leading, c_leading;  // From a stored row to the next, in elements.
    i64 a_matrix, b_matrix, c_matrix;     // From a matrix of the batch to the next, in elements.
    u64 alpha[2], beta[2];                // The bits of a number of the sums' type.
    i32 conjugate_a, conjugate_b;
    i32 vector_a, vector_b, vector_c;     // True if all rows begin at multiples of the kernel's vector width.
    i32 reads_c, scales;                  // True if beta is not 0; true if alpha is not 1.
    i32 f32_output;                       // True if C is f32, in kernels with two result types.
    Epilogue epilogue;
};

// `is` tells if sums of a type can have an epilogue: real floats can.
template <typename Sum>
struct Real {
    enum : bool { is = false };
};
template <>
struct Real<f32> {
    enum : bool { is = true };
};
template <>
struct Real<f64> {
    enum : bool { is = true };
};

template <typename Number>
__device__ inline void clear(Number& x) {
    x = 0;
}
template <typename Part>
__device__ inline void clear(Complex<Part>& x) {
    x.real = x.imaginary = 0;
}

template <typename Number>
__device__ inline Number conjugated(Number x) {
    return x;
}
template <typename Part>
__device__ inline Complex<Part> conjugated(Complex<Part> x) {
    return {x.real, -x.imaginary};
}

// The block's tile: its first row and column in C, and its matrix in the batch.
struct BlockTile {
    i32 row, column;
    i64 matrix;

    // The raster order: bands of `group` rows of tiles. Consecutive blocks go down a band's column, then down its next column, so that the
    // operands of concurrent tiles fit the L2 cache.
    __device__ BlockTile(const GemmParameters& parameters, u32 rows, u32 columns, u32 group = 8) {
        const u32 down = ((u32)parameters.m + rows - 1) / rows, across = ((u32)parameters.n + columns - 1) / columns;
        const u32 number = blockIdx.x / (down * across), within = blockIdx.x % (down * across);
        const u32 first = within / (group * across) * group;
        const u32 height = group < down - first ? group : down - first;
        const u32 in_group = within - first * across;
        matrix = number;
        row = (first + in_group % height) * rows;
        column = in_group / height * columns;
    }
};

// Applies alpha, beta and the epilogue to `Count` adjacent elements of a row of C, and stores them.
template <typename Result, typename Sum, int Count>
__device__ inline void store_run(Result* c, const GemmParameters& parameters, i64 matrix, i32 row, i32 column, Sum (&numbers)[Count]) {
    const i32 left = parameters.n - column;
    if (row >= parameters.m || left <= 0) return;
    const i64 at = matrix * parameters.c_matrix + row * parameters.c_leading + column;
    auto where = [&](int v, i32& in_row, i32& in_column, i64& place) {
        in_row = row;
        in_column = column + v;
        place = at + v;
        return v < left;
    };
    if (parameters.scales) {
        const Sum alpha = *(const Sum*)parameters.alpha;
#pragma unroll
        for (int v = 0; v < Count; v++) numbers[v] = multiply(alpha, numbers[v]);
    }
    if (parameters.reads_c) add_beta_c(c, *(const Sum*)parameters.beta, numbers, where);
    if constexpr (Real<Sum>::is) apply_epilogue<Result>(parameters.epilogue, numbers, where);
    Pack<Result, Count> pack;
#pragma unroll
    for (int v = 0; v < Count; v++) narrow(numbers[v], pack.item[v]);
    if (parameters.vector_c && Count <= left) {
        store_pack(c + at, pack);
    } else {
#pragma unroll
        for (int v = 0; v < Count; v++) {
            if (v < left) c[at + v] = pack.item[v];
        }
    }
}
