// The sums of a tile's runs of steps, which pairs of blocks of gemm_wgmma.cu leave for each other.
//
// What must stay true: a part is whole before its flag is raised, and read behind the flag.
#pragma once
#include "wgmma_tiles.cuh"

// Where a warpgroup of that pair leaves its part of a tile.
template <int Columns>
__device__ inline f32* part_of(const Shape& shape, i32 pair, u32 rank, u32 consumer) {
    return shape.parts + ((i64)pair * 4 + rank * consumers + consumer) * (64 * Columns) + threadIdx.x % 128 * 4;
}

// Leaves the part, and says so.
template <int Columns>
__device__ inline void leave_part(const f32 (&d)[Columns / 2], const Shape& shape, i32 pair, u32 rank, u32 consumer) {
    f32* const part = part_of<Columns>(shape, pair, rank, consumer);
#pragma unroll
    for (int i = 0; i < Columns / 2; i += 4) {
        Pack<f32, 4> pack;
#pragma unroll
        for (int v = 0; v < 4; v++) pack.item[v] = d[i + v];
        store_pack(part + i * 128, pack);
    }
    named_barrier(warpgroup_barrier(), 128);
    if (threadIdx.x % 128 == 0) raise(shape.flags + pair * 4 + rank * consumers + consumer);
}

// Adds the part that another pair left.
template <int Columns>
__device__ inline void add_part(f32 (&d)[Columns / 2], const Shape& shape, i32 pair, u32 rank, u32 consumer) {
    if (threadIdx.x % 128 == 0) wait_until_raised(shape.flags + pair * 4 + rank * consumers + consumer);
    named_barrier(warpgroup_barrier(), 128);
    const f32* const part = part_of<Columns>(shape, pair, rank, consumer);
#pragma unroll
    for (int i = 0; i < Columns / 2; i += 4) {
        Pack<f32, 4> pack;
        load_pack(pack, part + i * 128);
#pragma unroll
        for (int v = 0; v < 4; v++) d[i + v] += pack.item[v];
    }
}
