// mma.sync: the product of 16 x 16 numbers of 16 bits and 16 x 8, added in f32, by a warp; and the loads of its operands
// out of shared memory. ELEMENT is bf16 or f16.
//
// Lane l of the warp, with g = l / 4 and q = l % 4, holds
//   a[2 j + h]     = A[g + 8 h][8 j + 2 q] and the next k         for j, h in {0, 1}
//   b[j]           = B[8 j + 2 q][g] and the next k
//   d[2 h + e]     = D[g + 8 h][2 q + e]                          for e in {0, 1}
// The PTX manual's chapters "mma.m16n8k16", "mma.m16n8k8" and "ldmatrix" define them. From compute capability 7.5 on, which
// has f16 alone and multiplies 8 k at a time.
#pragma once
#include "types.cuh"

#define TEXT_OF(x) #x
#define NAME_OF(x) TEXT_OF(x)

__device__ inline void multiply(f32 (&d)[4], const u32 (&a)[4], const u32* b) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." NAME_OF(ELEMENT) "." NAME_OF(ELEMENT) ".f32"
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
    for (int j = 0; j < 2; j++) {
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
                     " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[2 * j]), "r"(a[2 * j + 1]), "r"(b[j]));
    }
#endif
}

// Four blocks of 8 x 8 numbers: lane l gives the place of row l % 8 of block l / 8, and gets of each block those at row
// l / 4, columns 2 (l % 4) and the next; of `Transposed` blocks those at that column and those rows.
template <bool Transposed>
__device__ inline void blocks_from_shared(u32* block, u32 place) {
    if constexpr (Transposed) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(block[0]), "=r"(block[1]), "=r"(block[2]), "=r"(block[3])
                     : "r"(place)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(block[0]), "=r"(block[1]), "=r"(block[2]), "=r"(block[3])
                     : "r"(place)
                     : "memory");
    }
}
