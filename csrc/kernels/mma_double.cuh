// mma.sync for f64: the product of 16 x K and K x 8 numbers, added in f64, by a warp.
//
// Lane l of the warp, with g = l / 4 and q = l % 4, holds
//   a[2 i + h]     = A[g + 8 h][4 i + q]                          for h in {0, 1} and i < K / 4
//   b[i]           = B[4 i + q][g]
//   d[2 h + e]     = D[g + 8 h][2 q + e]                          for e in {0, 1}
// The PTX manual's chapters "mma.m8n8k4", "mma.m16n8k8" and "mma.m16n8k16" define them. That of 8 rows, whose lanes hold the
// numbers with an h of 0, is there from compute capability 8.0 on, the others from 9.0 on, where they are twice as fast.
//
// Each number is a chain of fma with k ascending, so the bits do not depend on the instruction.
#pragma once
#include "types.cuh"

__device__ inline void multiply_8x8x4(f64& d0, f64& d1, f64 a, f64 b) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(d0), "+d"(d1)
                 : "d"(a), "d"(b));
}

__device__ inline void multiply_16x8x8(f64 (&d)[4], const f64 (&a)[4], const f64 (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64"
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

__device__ inline void multiply_16x8x16(f64 (&d)[4], const f64 (&a)[8], const f64 (&b)[4]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3},"
                 " {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
                 : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]),
                   "d"(b[1]), "d"(b[2]), "d"(b[3]));
}
