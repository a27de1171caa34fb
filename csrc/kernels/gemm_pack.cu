// Copies of the operands of a product whose rows begin anywhere, into rows that begin at multiples of 16 bytes, which the
// bulk tensor copies need: both operands in one launch. Elements are of 16 bits.
//
// Entry: gemm_pack(A, B, copies, shape). `Shape` is the Rust side's `gemm::packed::Shape`; an operand that needs no copy has
// a count of 0. Launch: 256 threads a block, the first `first_blocks` blocks for A and as many as B takes behind them.
//
// How: a thread makes 16 bytes of four places, a block apart, all loads first. Rows begin at odd elements as often as at
// even ones, so it loads the words of 32 bits that hold its elements, of which neighbours share some in the L1 cache, and
// shifts them into place. The last piece of a row comes element by element, and is filled up with zeros.
//
// The kernel may be launched to start before the kernel ahead of it has ended, and lets the product behind it start at once:
// that waits for this one's end.
//
// | version | what | speed |
// |---|---|---|
// | (copy.cu) | an element a thread; a launch for each operand | 6539 x 7807, k contiguous: about 0.7 TB/s (estimated from the product's time) |
// | 1 | as above | 300 random products on an H200, of cuBLAS: 0.82 -> 1.09 |
#include "hopper.cuh"
#include "vectors.cuh"

namespace {

// One operand's matrices.
struct Matrices {
    u64 count;        // Pieces of 16 bytes in all its copies, less than 2^32.
    u64 to;           // Where the copies begin, in elements.
    i64 row, matrix;  // From a row, and a matrix, to the next in the source, in elements.
    u32 rows;         // Of a matrix.
    u32 columns;
    u32 pieces;       // Of a row.
    u32 unused;
};

struct Shape {
    Matrices operand[2];
    u32 first_blocks;
    u32 unused;
};

// Enumerators, because constants would become variables of the module.
enum : int { threads = 256, together = 4, piece = 8 };

__device__ inline void pack(const u16* source, u16* copies, const Matrices& matrices, u64 block) {
    u32 words[together][piece / 2];
    const u64 first = block * (threads * together) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < together; i++) {
        if (first + i * threads >= matrices.count) continue;
        const u32 at = (u32)first + i * threads;
        const u32 all_rows = at / matrices.pieces, column = (at - all_rows * matrices.pieces) * piece;
        const u32 matrix = all_rows / matrices.rows, row = all_rows - matrix * matrices.rows;
        const u16* const from = source + matrix * matrices.matrix + row * matrices.row + column;
        if (column + piece >= matrices.columns) {
#pragma unroll
            for (int word = 0; word < piece / 2; word++) {
                const u32 left = matrices.columns - column;
                const u32 low = 2 * word < left ? from[2 * word] : 0, high = 2 * word + 1 < left ? from[2 * word + 1] : 0;
                words[i][word] = low | high << 16;
            }
            continue;
        }
        // The word before an odd element holds one more of the matrix, or lies in the allocation's alignment; behind the last
        // one there is an element of the row's next piece.
        const u32 shift = (u64)from % 4 * 8;
        const u32* const aligned = (const u32*)((u64)from & ~3ull);
        u32 next[piece / 2 + 1];
#pragma unroll
        for (int word = 0; word < piece / 2; word++) next[word] = aligned[word];
        next[piece / 2] = shift ? aligned[piece / 2] : 0;
#pragma unroll
        for (int word = 0; word < piece / 2; word++) {
            words[i][word] = (u32)((next[word] | (u64)next[word + 1] << 32) >> shift);
        }
    }
#pragma unroll
    for (int i = 0; i < together; i++) {
        const u64 at = first + i * threads;
        if (at < matrices.count) {
            *(uint4*)(copies + matrices.to + at * piece) = uint4{words[i][0], words[i][1], words[i][2], words[i][3]};
        }
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
    gemm_pack(const void* a, const void* b, void* copies, const __grid_constant__ Shape shape) {
    wait_for_earlier();
    next_may_start();
    if (blockIdx.x < shape.first_blocks) {
        pack((const u16*)a, (u16*)copies, shape.operand[0], blockIdx.x);
    } else {
        pack((const u16*)b, (u16*)copies, shape.operand[1], blockIdx.x - shape.first_blocks);
    }
}
