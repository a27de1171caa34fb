// mma.sync: D += A B by a warp, for A of 16 x 16, B of 16 x 8 and D of 16 x 8 in f32; and ldmatrix, which loads A and B from shared
// memory. ELEMENT is bf16 or f16, two elements a register.
//
// Lane l of the warp, with g = l / 4 and q = l % 4, holds these fragments:
//   a[2 j + h]     = A[g + 8 h][8 j + 2 q] and the next k         for j, h in {0, 1}
//   b[j]           = B[8 j + 2 q][g] and the next k
//   d[2 h + e]     = D[g + 8 h][2 q + e]                          for e in {0, 1}
// The PTX manual's chapters "mma.m16n8k16", "mma.m16n8k8" and "ldmatrix" define them. They need compute capability 7.5. That has f16
// alone and multiplies 8 k at a time, so a product is two instructions.
#pragma once
#include "types.cuh"

#define TEXT_OF(x) #x
#define NAME_OF(x) TEXT_OF(x)

// D += A B for the warp's fragments a, b and d.
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

// Loads four blocks of 8 x 8 elements of 16 bits from shared memory (ldmatrix). `place` of lane l is the address of row l % 8 of block
// l / 8. In block[i] it gets two elements of block i: row l / 4, columns 2 (l % 4) and the next; if `Transposed`, column l / 4, rows
// 2 (l % 4) and the next.
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

// Transposes a block of 8 x 8 elements of 16 bits that a warp holds (movmatrix): lane l gives two elements of row l / 4, columns
// 2 (l % 4) and the next, and gets those of column l / 4, rows 2 (l % 4) and the next.
__device__ inline u32 transposed(u32 two) {
    u32 result;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(two));
    return result;
}
