// Copies the operands of a product into rows that begin at multiples of 16 bytes, as tensor maps need them: both operands in one
// launch. Elements have 16 bits.
//
// Entry: gemm_pack(A, B, copies, parameters). `PackParameters` is the Rust side's (src/gemm/packed.rs); an operand that needs no copy
// has a count of 0. Launch: 256 threads a block; the first `first_blocks` blocks copy A, the others B; no shared memory.
//
// Algorithm: a thread makes four chunks of 16 bytes, a block apart, all loads first. Rows begin at odd elements as often as at even
// ones, so a thread loads the 32-bit words around its elements and shifts them into place. The last chunk of a row is loaded
// element by element and filled up with zeros. With programmatic dependent launch the kernel may start before the one ahead of
// it has ended; the product after it waits for its end.
//
// Invariants: no load leaves the aligned words of the matrix.
//
// | version | change | 300 random products on an H200, against cuBLAS |
// |---|---|---|
// | 1 | both operands in one launch, 16 bytes a thread | 0.82 before, 1.09 |
#include "hopper.cuh"
#include "vectors.cuh"

namespace {

// One operand's matrices.
struct Matrices {
    u64 count;        // Chunks of 16 bytes in all its copies, less than 2^32.
    u64 to;           // The first element of its copies.
    i64 row, matrix;  // From a row, and a matrix, to the next in the source, in elements.
    u32 rows;         // Of a matrix.
    u32 columns;
    u32 chunks;       // Of a row.
    u32 unused;
};

struct PackParameters {
    Matrices operand[2];
    u32 first_blocks;
    u32 unused;
};

// Enumerators, because constants would become variables of the module.
enum : int { threads = 256, chunks_per_thread = 4, chunk = 8 };

__device__ inline void pack(const u16* source, u16* copies, const Matrices& matrices, u64 block) {
    u32 words[chunks_per_thread][chunk / 2];
    const u64 first = block * (threads * chunks_per_thread) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < chunks_per_thread; i++) {
        if (first + i * threads >= matrices.count) continue;
        const u32 at = (u32)first + i * threads;
        const u32 all_rows = at / matrices.chunks, column = (at - all_rows * matrices.chunks) * chunk;
        const u32 matrix = all_rows / matrices.rows, row = all_rows - matrix * matrices.rows;
        const u16* const from = source + matrix * matrices.matrix + row * matrices.row + column;
        if (column + chunk >= matrices.columns) {
#pragma unroll
            for (int word = 0; word < chunk / 2; word++) {
                const u32 left = matrices.columns - column;
                const u32 low = 2 * word < left ? from[2 * word] : 0, high = 2 * word + 1 < left ? from[2 * word + 1] : 0;
                words[i][word] = low | high << 16;
            }
            continue;
        }
        // The word of an odd first element also holds the element before it, or alignment bytes of the allocation. The word after the
        // chunk holds the row's next chunk.
        const u32 shift = (u64)from % 4 * 8;
        const u32* const aligned = (const u32*)((u64)from & ~3ull);
        u32 next[chunk / 2 + 1];
#pragma unroll
        for (int word = 0; word < chunk / 2; word++) next[word] = aligned[word];
        next[chunk / 2] = shift ? aligned[chunk / 2] : 0;
#pragma unroll
        for (int word = 0; word < chunk / 2; word++) {
            words[i][word] = (u32)((next[word] | (u64)next[word + 1] << 32) >> shift);
        }
    }
#pragma unroll
    for (int i = 0; i < chunks_per_thread; i++) {
        const u64 at = first + i * threads;
        if (at < matrices.count) {
            *(uint4*)(copies + matrices.to + at * chunk) = uint4{words[i][0], words[i][1], words[i][2], words[i][3]};
        }
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
    gemm_pack(const void* a, const void* b, void* copies, const __grid_constant__ PackParameters parameters) {
    wait_for_earlier();
    next_may_start();
    if (blockIdx.x < parameters.first_blocks) {
        pack((const u16*)a, (u16*)copies, parameters.operand[0], blockIdx.x);
    } else {
        pack((const u16*)b, (u16*)copies, parameters.operand[1], blockIdx.x - parameters.first_blocks);
    }
}
