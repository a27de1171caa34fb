// Instructions of compute capability 9.0: mbarriers, bulk tensor copies (TMA), clusters, programmatic dependent launch, and register
// reallocation. One function an instruction, named for what it does.
//
// Inline PTX, because the toolkit's headers would tie the sources to one release. Addresses of shared memory are 32-bit
// offsets (`shared_address`), because the instructions take those. The PTX manual's chapters "mbarrier",
// "Asynchronous copy: tensor" and "setmaxnreg" define them.
#pragma once
#include "ampere.cuh"
#include "types.cuh"

// A tensor map (CUtensorMap) as the driver encodes it; a kernel takes it as `const __grid_constant__ TensorMap`.
struct alignas(64) TensorMap {
    u64 words[16];
};

// ---- clusters ----

// Returns the rank of the block in its cluster.
__device__ inline u32 cluster_rank() {
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// Returns the cluster address of `address` in the shared memory of block `rank`.
__device__ inline u32 address_in_block(u32 address, u32 rank) {
    u32 remote;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
    return remote;
}

// Waits for all threads of the cluster. It does not order their memory accesses (`.relaxed`): a barrier with release semantics
// compiles to a fence of the whole device, which takes more than a microsecond while stores are in flight.
__device__ inline void cluster_barrier() {
    asm volatile(
        "barrier.cluster.arrive.relaxed.aligned;\n"
        "barrier.cluster.wait.aligned;" ::
            : "memory");
}

// ---- mbarriers: arrival barriers in shared memory that also count the bytes of asynchronous copies ----

// Initialises a barrier whose phases end after this many arrivals, once all expected bytes are there.
__device__ inline void barrier_initialise(u32 barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

// Makes initialised barriers visible to the cluster and to TMA; `cluster_barrier` must follow.
__device__ inline void barriers_initialised() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// Arrives, and lets the phase expect `bytes` more (its transaction count).
__device__ inline void barrier_expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Arrives at a barrier of any block of the cluster. It has no `.release.cluster`, which compiles to a fence of the whole
// device and costs a matrix product 30 % of its speed. It needs none: the other blocks read nothing that the caller has written.
__device__ inline void barrier_arrive(u32 cluster_address) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(cluster_address) : "memory");
}

// Waits until the phase of this parity has ended. A new barrier is in phase 0: waiting for parity 1 returns at once, so a
// producer finds all stages empty, and waiting for parity 0 blocks.
__device__ inline void barrier_wait(u32 barrier, u32 parity) {
    asm volatile(
        "{\n"
        ".reg .pred ended;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
        "@ended bra done;\n"
        "bra again;\n"
        "done:\n"
        "}" ::"r"(barrier),
        "r"(parity)
        : "memory");
}

// Waits for `threads` threads of the block, a multiple of 32, at the hardware barrier number `name`.
__device__ inline void named_barrier(u32 name, u32 threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

// Arrives at the hardware barrier number `name` without waiting there.
__device__ inline void named_barrier_arrive(u32 name, u32 threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

// ---- bulk tensor copies (TMA); one thread issues them ----

__device__ inline void prefetch_map(const TensorMap* map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map)); }

// Loads the box at (x, y, z) into shared memory; x is the contiguous dimension, and `barrier` counts the bytes.
__device__ inline void copy_box(u32 to, const TensorMap* map, u32 barrier, i32 x, i32 y, i32 z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
        : "memory");
}

// The same of a map of four dimensions.
__device__ inline void copy_box(u32 to, const TensorMap* map, u32 barrier, i32 x, i32 y, i32 z, i32 w) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
        : "memory");
}

// Loads contiguous bytes into shared memory. The number of bytes and both addresses are multiples of 16.
__device__ inline void copy_bytes(u32 to, const void* from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
                 "r"(bytes), "r"(barrier)
                 : "memory");
}

// Prefetches the box into the L2 cache.
__device__ inline void prefetch_box(const TensorMap* map, i32 x, i32 y, i32 z) {
    asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0, {%1, %2, %3}];" ::"l"(map), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

// Multicasts a box to the blocks of the cluster whose bits are set in `blocks`: to the same address in each, where the barrier at the
// address `barrier` counts the bytes.
__device__ inline void copy_box_to_blocks(u32 to, const TensorMap* map, u32 barrier, i32 x, i32 y, i32 z, u16 blocks) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(blocks)
        : "memory");
}

// Stores a box from shared memory at (x, y, z), without its elements outside of the tensor. Each store is a bulk group of its own.
__device__ inline void store_box(const TensorMap* map, u32 from, i32 x, i32 y, i32 z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];\n"
        "cp.async.bulk.commit_group;" ::"l"(map),
        "r"(from), "r"(x), "r"(y), "r"(z)
        : "memory");
}

// The same to a map of four dimensions.
__device__ inline void store_box(const TensorMap* map, u32 from, i32 x, i32 y, i32 z, i32 w) {
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];\n"
        "cp.async.bulk.commit_group;" ::"l"(map),
        "r"(from), "r"(x), "r"(y), "r"(z), "r"(w)
        : "memory");
}

// Stores a box with the L2 policy evict-first: for results that the cache could not hold until they are read.
__device__ inline void store_box_evict_first(const TensorMap* map, u32 from, i32 x, i32 y, i32 z) {
    asm volatile(
        "{\n"
        ".reg .b64 policy;\n"
        "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
        "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%2, %3, %4}], [%1], policy;\n"
        "cp.async.bulk.commit_group;\n"
        "}" ::"l"(map),
        "r"(from), "r"(x), "r"(y), "r"(z)
        : "memory");
}

// Copies a multiple of 16 bytes to another block of the cluster, whose barrier counts them.
__device__ inline void send(u32 cluster_address, u32 from, u32 bytes, u32 cluster_barrier) {
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     cluster_address),
                 "r"(from), "r"(bytes), "r"(cluster_barrier)
                 : "memory");
}

// Waits until at most the `Groups` latest stores of this thread still read shared memory.
template <int Groups>
__device__ inline void stores_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Groups) : "memory");
}

// Proxy fence: makes this thread's shared memory writes visible to TMA; a barrier must follow.
__device__ inline void publish_to_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- semaphores in global memory, between blocks of one grid ----
//
// A block may wait only for blocks with lower indices, which start no later, because not all blocks of a grid need be resident at a
// time.

// Sets the semaphore with release semantics, for the writes of this thread and of threads that have met it at a barrier.
__device__ inline void signal_semaphore(u32* flag) { asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(1) : "memory"); }

// Waits for the signal with acquire semantics, also for threads that meet this one at a barrier afterwards.
__device__ inline void wait_semaphore(const u32* flag) {
    u32 raised;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(raised) : "l"(flag) : "memory");
    } while (raised == 0);
}

// Prefetches the 128 bytes around the address into the L1 cache.
__device__ inline void prefetch(const void* address) { asm volatile("prefetch.global.L1 [%0];" ::"l"(address)); }

// ---- loads and stores of shared memory at a 32-bit address, `place` ----

__device__ inline void to_shared(u32 place, u16 bits) {
    asm volatile("st.shared::cta.u16 [%0], %1;" ::"r"(place), "h"(bits) : "memory");
}
__device__ inline void to_shared(u32 place, u32 bits) {
    asm volatile("st.shared::cta.u32 [%0], %1;" ::"r"(place), "r"(bits) : "memory");
}
__device__ inline void to_shared(u32 place, f32 number) {
    asm volatile("st.shared::cta.f32 [%0], %1;" ::"r"(place), "f"(number) : "memory");
}
__device__ inline void to_shared(u32 place, const f32 (&two)[2]) {
    asm volatile("st.shared::cta.v2.f32 [%0], {%1, %2};" ::"r"(place), "f"(two[0]), "f"(two[1]) : "memory");
}
__device__ inline void to_shared(u32 place, const f32 (&four)[4]) {
    asm volatile("st.shared::cta.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(place), "f"(four[0]), "f"(four[1]), "f"(four[2]),
                 "f"(four[3])
                 : "memory");
}

__device__ inline void to_shared(u32 place, const u32 (&four)[4]) {
    asm volatile("st.shared::cta.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(place), "r"(four[0]), "r"(four[1]), "r"(four[2]),
                 "r"(four[3])
                 : "memory");
}

__device__ inline void from_shared(u32 place, u16& bits) {
    asm volatile("ld.shared::cta.u16 %0, [%1];" : "=h"(bits) : "r"(place) : "memory");
}
__device__ inline void from_shared(u32 place, u32& bits) {
    asm volatile("ld.shared::cta.u32 %0, [%1];" : "=r"(bits) : "r"(place) : "memory");
}
__device__ inline void from_shared(u32 place, u64& bits) {
    asm volatile("ld.shared::cta.u64 %0, [%1];" : "=l"(bits) : "r"(place) : "memory");
}
__device__ inline void from_shared(u32 place, f32& number) {
    asm volatile("ld.shared::cta.f32 %0, [%1];" : "=f"(number) : "r"(place) : "memory");
}
__device__ inline void from_shared(u32 place, f32 (&two)[2]) {
    asm volatile("ld.shared::cta.v2.f32 {%0, %1}, [%2];" : "=f"(two[0]), "=f"(two[1]) : "r"(place) : "memory");
}

__device__ inline void from_shared(u32 place, f32 (&four)[4]) {
    asm volatile("ld.shared::cta.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(four[0]), "=f"(four[1]), "=f"(four[2]), "=f"(four[3])
                 : "r"(place)
                 : "memory");
}

__device__ inline void from_shared(u32 place, u32 (&four)[4]) {
    asm volatile("ld.shared::cta.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(four[0]), "=r"(four[1]), "=r"(four[2]), "=r"(four[3])
                 : "r"(place)
                 : "memory");
}

// Stores four blocks of 8 x 8 elements of 16 bits (stmatrix). In block[i], lane l holds two elements of block i: row l / 4, columns
// 2 (l % 4) and the next. `place` of lane l is the address of row l % 8 of block l / 8.
__device__ inline void blocks_to_shared(u32 place, const u32 (&block)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(place), "r"(block[0]),
                 "r"(block[1]), "r"(block[2]), "r"(block[3])
                 : "memory");
}

// ---- arithmetic ----

// log2(x) with an absolute error of at most 2^-22 between 0.5 and 2, else within 2 ulp. Subnormal numbers become 0.
__device__ inline f32 log2_approximate(f32 x) {
    f32 logarithm;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(logarithm) : "f"(x));
    return logarithm;
}

// ---- programmatic dependent launch: consecutive kernels on a stream overlap ----
//
// Invariants:
// - All blocks wait for the kernel before, even those without work. So a kernel ends after all kernels before it, and it is enough
//   that each waits for one.
// - Before it waits, a thread accesses registers, shared memory and the kernel's parameters (tensor maps too) only. It may also
//   prefetch into the L2 cache.

// Triggers the dependent launch: blocks of the next kernel start once all blocks of this kernel have called this or ended. All blocks of
// this kernel have started by then, so blocks of the next kernel never take the place of a block that another one waits for.
// This kernel may still write after the trigger, because the next one waits for its end.
__device__ inline void next_may_start() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Waits until all earlier kernels have ended and their writes are visible. Returns at once if the launch allows no overlap.
__device__ inline void wait_for_earlier() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// ---- registers a thread of a warpgroup (setmaxnreg); all of its warps call these ----

template <int Count>
__device__ inline void registers_down_to() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}
template <int Count>
__device__ inline void registers_up_to() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}
