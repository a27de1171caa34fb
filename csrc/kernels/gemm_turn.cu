// Copies of an operand of a product turned over: what was stored with k along its rows comes to lie with k across them, which
// spares gemm_bulk.cu to turn it over in each block that reads it. Elements are words of 32 bits.
//
// Entry: gemm_turn(source, copies, shape). `Shape` is the Rust side's `gemm::turned::Shape`. Launch: 256 threads for each
// tile of 64 x 64 of each matrix.
//
// How: a warp reads 32 elements of a row, all of its rows before it stores any, and writes 32 of a column, so that both are
// whole lines of 128 bytes where rows begin at such. Between them the tile lies in shared memory, in rows of 65 words, so
// that a column's are in different banks as well as a row's.
//
// | version | what | speed |
// |---|---|---|
// | 1 | as above | with it f32 products on an H200, of cuBLAS: 4096^3 and 8192^3 0.972 before, 0.994 and 1.028 since |
#include "hopper.cuh"

namespace {

struct Shape {
    i64 row, matrix;    // From a row, and a matrix, to the next in the source, in elements.
    i64 line, copy;     // And in the copies, whose rows are the source's columns.
    u32 rows, columns;  // Of the source's matrix.
    u32 across, tiles;  // Tiles beside each other, and of a matrix.
};

// Enumerators, because constants would become variables of the module.
enum : int { threads = 256, span = 64, at_once = threads / span };

}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
    gemm_turn(const u32* source, u32* copies, const __grid_constant__ Shape shape) {
    __shared__ u32 words[span][span + 1];
    const u32 matrix = blockIdx.x / shape.tiles, tile = blockIdx.x % shape.tiles;
    const u32 row = tile / shape.across * span, column = tile % shape.across * span;
    const u32 beside = threadIdx.x % span, below = threadIdx.x / span;
    source += (i64)matrix * shape.matrix;
    copies += (i64)matrix * shape.copy;
    wait_for_earlier();
    // The product's blocks are set up while these copy.
    next_may_start();
    u32 read[span / at_once];
#pragma unroll
    for (int i = 0; i < span / at_once; i++) {
        const u32 at_row = row + below + i * at_once, at_column = column + beside;
        const bool inside = at_row < shape.rows && at_column < shape.columns;
        read[i] = inside ? source[at_row * shape.row + at_column] : 0;
    }
#pragma unroll
    for (int i = 0; i < span / at_once; i++) words[below + i * at_once][beside] = read[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < span / at_once; i++) {
        const u32 at_row = row + beside, at_column = column + below + i * at_once;
        if (at_row < shape.rows && at_column < shape.columns) {
            copies[at_column * shape.line + at_row] = words[beside][below + i * at_once];
        }
    }
}
