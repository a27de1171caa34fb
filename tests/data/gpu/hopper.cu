// Kernels for what compute capability 9.0 brought: clusters, dependent launches, bulk tensor copies.
#include "common.cuh"

// Each block's rank in its cluster, the cluster's size, and what the next block of the cluster keeps in shared memory.
extern "C" __global__ void cluster_ring(unsigned* out) {
    __shared__ unsigned mine;
    unsigned rank, size;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    mine = 1000 + blockIdx.x;
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    unsigned local = (unsigned)__cvta_generic_to_shared(&mine), remote, theirs;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(local), "r"((rank + 1) % size));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(theirs) : "r"(remote) : "memory");
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    out[3 * blockIdx.x] = rank;
    out[3 * blockIdx.x + 1] = size;
    out[3 * blockIdx.x + 2] = theirs;
}

// Lets its dependent start at once, and writes only after a while.
extern "C" __global__ void early_trigger(unsigned* values, u64* ended, unsigned length, u64 nanoseconds) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    spin(nanoseconds);
    for (unsigned i = threadIdx.x; i < length; i += blockDim.x) values[i] = 7 * i + 1;
    __syncthreads();
    if (threadIdx.x == 0) *ended = nanoseconds_now();
}

// Records when it began, waits for the kernel before it, and copies the data that it wrote.
extern "C" __global__ void dependent(const unsigned* values, unsigned* out, u64* began, unsigned length) {
    if (threadIdx.x == 0) *began = nanoseconds_now();
    asm volatile("griddepcontrol.wait;" ::: "memory");
    for (unsigned i = threadIdx.x; i < length; i += blockDim.x) out[i] = values[i];
}

struct __align__(64) Map { unsigned char bytes[128]; };

// One box of a two-dimensional tensor of floats, at column `x` and row `y`, into `out`, row after row.
extern "C" __global__ void load_box(const __grid_constant__ Map map, float* out, int x, int y, unsigned elements) {
    extern __shared__ __align__(128) unsigned char storage[];
    __shared__ __align__(8) u64 barrier;
    unsigned tile = ((unsigned)__cvta_generic_to_shared(storage) + 127) & ~127u;
    unsigned gate = (unsigned)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(gate) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(gate), "r"(elements * 4) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(tile), "l"(&map), "r"(x), "r"(y), "r"(gate)
                     : "memory");
    }
    unsigned done = 0;
    for (unsigned turn = 0; turn < (1u << 20) && !done; ++turn) {
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\nselp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(gate)
                     : "memory");
    }
    for (unsigned i = threadIdx.x; done && i < elements; i += blockDim.x) {
        float value;
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(tile + 4 * i) : "memory");
        out[i] = value;
    }
}

// Writes one box whose elements count from `first`.
extern "C" __global__ void store_box(const __grid_constant__ Map map, float first, int x, int y, unsigned elements) {
    extern __shared__ __align__(128) unsigned char storage[];
    unsigned tile = ((unsigned)__cvta_generic_to_shared(storage) + 127) & ~127u;
    for (unsigned i = threadIdx.x; i < elements; i += blockDim.x) {
        asm volatile("st.shared.f32 [%0], %1;" ::"r"(tile + 4 * i), "f"(first + (float)i) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                     ::"l"(&map), "r"(x), "r"(y), "r"(tile)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
