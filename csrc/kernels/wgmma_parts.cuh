// The sums of a tile's runs of steps, which pairs of blocks of gemm_wgmma.cu leave for each other.
//
// What must stay true: a part is whole before its flag is raised, and read behind the flag.
#pragma once
#include "vectors.cuh"
#include "wgmma_tiles.cuh"

// Where the numbers of a warpgroup lie in a part.
template <int Columns>
__device__ inline f32* part_of(const Shape& shape, u32 part, u32 rank, u32 consumer) {
    return shape.parts + ((i64)part * 4 + rank * consumers + consumer) * (64 * Columns) + threadIdx.x % 128 * 4;
}

// Leaves the part, and says so.
template <int Columns>
__device__ inline void leave_part(const f32 (&d)[Columns / 2], const Shape& shape, u32 part, u32 rank, u32 consumer) {
    f32* const own = part_of<Columns>(shape, part, rank, consumer);
#pragma unroll
    for (int i = 0; i < Columns / 2; i += 4) {
        Pack<f32, 4> pack;
#pragma unroll
        for (int v = 0; v < 4; v++) pack.item[v] = d[i + v];
        store_pack(own + i * 128, pack);
    }
    named_barrier(warpgroup_barrier(), 128);
    if (threadIdx.x % 128 == 0) raise(shape.flags + part * 4 + rank * consumers + consumer);
}

// Adds the part, which another pair leaves.
template <int Columns>
__device__ inline void add_part(f32 (&d)[Columns / 2], const Shape& shape, u32 part, u32 rank, u32 consumer) {
    if (threadIdx.x % 128 == 0) wait_until_raised(shape.flags + part * 4 + rank * consumers + consumer);
    named_barrier(warpgroup_barrier(), 128);
    const f32* const own = part_of<Columns>(shape, part, rank, consumer);
#pragma unroll
    for (int i = 0; i < Columns / 2; i += 4) {
        Pack<f32, 4> pack;
        load_pack(pack, own + i * 128);
#pragma unroll
        for (int v = 0; v < 4; v++) d[i + v] += pack.item[v];
    }
}
