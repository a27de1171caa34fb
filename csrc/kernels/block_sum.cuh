// Sums over the threads of a block.
#pragma once
#include "types.cuh"

namespace {

const u32 ALL_LANES = 0xffffffffu;

// Returns the sum of the values of threads with lower indices, and sets `total` to the sum of all. `sums` is shared memory with a number
// for each warp of the block. All threads call it.
template <u32 Warps, typename Number>
__device__ inline Number exclusive_sum(Number value, Number* sums, Number& total) {
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    Number sum = value;
#pragma unroll
    for (u32 distance = 1; distance < 32; distance <<= 1) {
        const Number other = __shfl_sync(ALL_LANES, sum, (int)((lane - distance) & 31));
        if (lane >= distance) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    Number before = 0;
    total = 0;
#pragma unroll
    for (u32 other = 0; other < Warps; other++) {
        if (other < warp) before += sums[other];
        total += sums[other];
    }
    __syncthreads();
    return before + sum - value;
}

}  // namespace
