// What the kernels of matrix products share that give each tile of C to a block of its own: the parameter, the order of
// the tiles, and the way of numbers into C.
//
// What must stay true: with `reads_c` 0 C is only written. `Shape` is the Rust side's `gemm::blocks::Shape`.
#pragma once
#include "epilogue.cuh"
#include "vectors.cuh"

struct Shape {
    i32 m, n, k;
    i32 padding;
    i64 a_leading, b_leading, c_leading;  // From a stored row to the next, in elements.
    i64 a_matrix, b_matrix, c_matrix;     // From a matrix of the batch to the next.
    u64 alpha[2], beta[2];                // A number of the sums' type.
    i32 conjugate_a, conjugate_b;
    i32 vector_a, vector_b, vector_c;     // Whether all rows begin at multiples of a vector.
    i32 reads_c, scales;                  // Whether C counts, and whether alpha is another number than 1.
    i32 wide;                             // Where a kernel has two result types: whether C is f32.
    Epilogue epilogue;
};

// The types of sums that an epilogue can be applied to.
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

// The block's tile: its first row and column, and its matrix.
struct BlockTile {
    i32 row, column;
    i64 matrix;

    // Down `group` tiles, then one column on: what is read at one time fits the L2 cache.
    __device__ BlockTile(const Shape& shape, u32 rows, u32 columns, u32 group = 8) {
        const u32 down = ((u32)shape.m + rows - 1) / rows, across = ((u32)shape.n + columns - 1) / columns;
        const u32 number = blockIdx.x / (down * across), within = blockIdx.x % (down * across);
        const u32 first = within / (group * across) * group;
        const u32 height = group < down - first ? group : down - first;
        const u32 in_group = within - first * across;
        matrix = number;
        row = (first + in_group % height) * rows;
        column = in_group / height * columns;
    }
};

// Neighbours in a row of C, from their sums on.
template <typename Result, typename Sum, int Count>
__device__ inline void store_run(Result* c, const Shape& shape, i64 matrix, i32 row, i32 column, Sum (&numbers)[Count]) {
    const i32 left = shape.n - column;
    if (row >= shape.m || left <= 0) return;
    const i64 at = matrix * shape.c_matrix + row * shape.c_leading + column;
    auto where = [&](int v, i32& in_row, i32& in_column, i64& place) {
        in_row = row;
        in_column = column + v;
        place = at + v;
        return v < left;
    };
    if (shape.scales) {
        const Sum alpha = *(const Sum*)shape.alpha;
#pragma unroll
        for (int v = 0; v < Count; v++) numbers[v] = multiply(alpha, numbers[v]);
    }
    if (shape.reads_c) add_c(c, *(const Sum*)shape.beta, numbers, where);
    if constexpr (Real<Sum>::is) finish<Result>(shape.epilogue, numbers, where);
    Pack<Result, Count> pack;
#pragma unroll
    for (int v = 0; v < Count; v++) narrow(numbers[v], pack.item[v]);
    if (shape.vector_c && Count <= left) {
        store_pack(c + at, pack);
    } else {
#pragma unroll
        for (int v = 0; v < Count; v++) {
            if (v < left) c[at + v] = pack.item[v];
        }
    }
}
