// C = alpha (P0 + P1 + ...) + beta C with an epilogue (epilogue.cuh): the reduction of parallel split-K, where each P is the product of a
// slice of k. src/gemm/parallel_split_k.rs divides k and launches the products.
//
// Entries: gemm_reduce_{f32,f64,c64,c128}(partials, C, parameters). Of `GemmParameters`, `k` is the number of partials, `a_leading` the
// elements from a row of a partial to the next, `a_matrix` those from a partial to the next; B's fields are not read.
//
// Launch: 128 threads a block, one thread for 16 bytes of a row of C. The rows of the partials begin at multiples of 16 bytes and have
// whole vectors of memory; C may have any alignment.
//
// Algorithm: a thread loads `group` partials of its elements at a time and adds them with k ascending. The partials come from the L2
// cache, because the products before wrote them.
//
// Invariants: the order of the additions depends on the number of partials alone. Alpha, beta and the epilogue are applied once to the
// whole sum, in its type, as the products' own kernels apply them.
#include "gemm_blocks.cuh"

namespace {

enum : int {
    threads = 128,
    group = 8,  // Partials that load at a time.
};

template <typename Number>
__device__ inline Number added(Number x, Number y) {
    return x + y;
}
template <typename Part>
__device__ inline Complex<Part> added(Complex<Part> x, Complex<Part> y) {
    return {x.real + y.real, x.imaginary + y.imaginary};
}

template <typename Element>
__device__ inline void reduce(const Element* partials, Element* c, const GemmParameters& parameters) {
    enum : int { run = 16 / sizeof(Element) };
    const u32 across = ((u32)parameters.n + run - 1) / run, vector = blockIdx.x * threads + threadIdx.x;
    const i32 row = vector / across, column = vector % across * run;
    if (row >= parameters.m) return;
    const Element* from = partials + row * parameters.a_leading + column;
    Element sums[run];
#pragma unroll
    for (int v = 0; v < run; v++) clear(sums[v]);
#pragma unroll 1
    for (i32 left = parameters.k; left > 0; left -= group, from += group * parameters.a_matrix) {
        Pack<Element, run> packs[group];
#pragma unroll
        for (int i = 0; i < group; i++) {
            if (i < left) load_pack(packs[i], from + i * parameters.a_matrix);
        }
#pragma unroll
        for (int i = 0; i < group; i++) {
#pragma unroll
            for (int v = 0; v < run; v++) {
                if (i < left) sums[v] = added(sums[v], packs[i].item[v]);
            }
        }
    }
    store_run(c, parameters, 0, row, column, sums);
}

}  // namespace

#define ENTRY(element)                                                                         \
    extern "C" __global__ void __launch_bounds__(threads)                                      \
        gemm_reduce_##element(const element* partials, element* c, const GemmParameters parameters) { \
        reduce(partials, c, parameters);                                                       \
    }

ENTRY(f32)
ENTRY(f64)
ENTRY(c64)
ENTRY(c128)
