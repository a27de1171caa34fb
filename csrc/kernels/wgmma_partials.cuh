// Stream-K's exchange of partials between clusters of gemm_wgmma.cu, through global memory. A partial is the f32 accumulators of a
// tile for a slice of its k steps. Each consumer warpgroup of a cluster stores its share of a partial and has a semaphore for it.
//
// Invariants:
// - A share is complete before its semaphore is signalled (release), and it is read after the semaphore was seen (acquire).
// - The semaphores belong to one launch: the host allocates them for it and clears them on its stream.
#pragma once
#include "vectors.cuh"
#include "wgmma_problem.cuh"

// Returns the address of the thread's first four accumulators in a partial. The next four are 512 elements later
// (GemmParameters::partials).
template <int Columns>
__device__ inline f32* partial_address(const GemmParameters& parameters, u32 partial, u32 rank, u32 consumer) {
    return parameters.partials + ((i64)partial * 4 + rank * consumers + consumer) * (64 * Columns) + threadIdx.x % 128 * 4;
}

// Stores the warpgroup's accumulators as its share of a partial, and signals its semaphore.
template <int Columns>
__device__ inline void store_partial(const f32 (&d)[Columns / 2], const GemmParameters& parameters, u32 partial, u32 rank,
                                     u32 consumer) {
    f32* const own = partial_address<Columns>(parameters, partial, rank, consumer);
#pragma unroll
    for (int i = 0; i < Columns / 2; i += 4) {
        Pack<f32, 4> pack;
#pragma unroll
        for (int v = 0; v < 4; v++) pack.item[v] = d[i + v];
        store_pack(own + i * 128, pack);
    }
    named_barrier(warpgroup_barrier(), 128);
    if (threadIdx.x % 128 == 0) signal_semaphore(parameters.semaphores + partial * 4 + rank * consumers + consumer);
}

// Waits for another cluster's partial, and adds the warpgroup's share of it to the accumulators.
template <int Columns>
__device__ inline void add_partial(f32 (&d)[Columns / 2], const GemmParameters& parameters, u32 partial, u32 rank,
                                   u32 consumer) {
    if (threadIdx.x % 128 == 0) wait_semaphore(parameters.semaphores + partial * 4 + rank * consumers + consumer);
    named_barrier(warpgroup_barrier(), 128);
    const f32* const own = partial_address<Columns>(parameters, partial, rank, consumer);
#pragma unroll
    for (int i = 0; i < Columns / 2; i += 4) {
        Pack<f32, 4> pack;
        load_pack(pack, own + i * 128);
#pragma unroll
        for (int v = 0; v < 4; v++) d[i + v] += pack.item[v];
    }
}
