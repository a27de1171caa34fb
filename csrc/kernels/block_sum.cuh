// Sums over the threads of a block.
#pragma once
#include "types.cuh"

namespace {

const u32 ALL_LANES = 0xffffffffu;

// The sum of the values of earlier threads; `total` is that of all. `sums` has a number for each of the block's warps. All threads
// call it.
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
