// Instructions of compute capability 9.0: barriers in shared memory that count bytes, bulk tensor copies (TMA), clusters, programmatic
// dependent launch, and register reallocation. One function an instruction, named for what it
// does.
//
// Why by hand: the toolkit's headers would tie the sources to one release. Addresses of shared memory are 32-bit
// offsets (`shared_address`), because the instructions take those. The PTX manual's chapters "mbarrier",
// "Asynchronous copy: tensor" and "setmaxnreg" define them.
#pragma once
#include "ampere.cuh"
#include "types.cuh"

// A tensor map as the driver encodes it; a kernel takes it as `const __grid_constant__ TensorMap`.
struct alignas(64) TensorMap {
    u64 words[16];
};

// ---- clusters ----

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

// All threads of the cluster. It orders when they go on, not what they wrote: a barrier that released memory would compile
// to a fence of the whole device, more than a microsecond while stores are in flight.
__device__ inline void cluster_barrier() {
    asm volatile(
        "barrier.cluster.arrive.relaxed.aligned;\n"
        "barrier.cluster.wait.aligned;" ::
            : "memory");
}

// ---- barriers ----

__device__ inline void barrier_initialise(u32 barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

// Makes initialised barriers visible to the cluster and to the copies; a cluster barrier must follow.
__device__ inline void barriers_initialised() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// Arrives, and adds `bytes` to the transaction count of the phase.
__device__ inline void barrier_expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Arrives at a barrier of any block of the cluster. Not spelled `.release.cluster`: that compiles to a fence of the
// whole device, which costs a matrix product 30 % of its speed, and nothing here is written that a peer reads.
__device__ inline void barrier_arrive(u32 cluster_address) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(cluster_address) : "memory");
}

// Waits until the phase of this parity has ended. On a fresh barrier parity 1 has, and parity 0 has not.
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

// The threads of a part of the block: `threads` is a multiple of 32.
__device__ inline void named_barrier(u32 name, u32 threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

// ---- bulk tensor copies; one thread issues them ----

__device__ inline void prefetch_map(const TensorMap* map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map)); }

// The box at (x, y, z), x being the contiguous dimension, into shared memory; `barrier` counts its bytes.
__device__ inline void copy_box(u32 to, const TensorMap* map, u32 barrier, i32 x, i32 y, i32 z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
        : "memory");
}

// Prefetches the box into the L2 cache.
__device__ inline void prefetch_box(const TensorMap* map, i32 x, i32 y, i32 z) {
    asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0, {%1, %2, %3}];" ::"l"(map), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

// As `copy_box`, to the same place in each block of the cluster whose bit is set, each of whose barriers counts its bytes.
__device__ inline void copy_box_to_blocks(u32 to, const TensorMap* map, u32 barrier, i32 x, i32 y, i32 z, u16 blocks) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(blocks)
        : "memory");
}

// The box at (x, y, z) out of shared memory; what is outside the tensor is left out. Ends the thread's group of
// stores.
__device__ inline void store_box(const TensorMap* map, u32 from, i32 x, i32 y, i32 z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];\n"
        "cp.async.bulk.commit_group;" ::"l"(map),
        "r"(from), "r"(x), "r"(y), "r"(z)
        : "memory");
}

// As `store_box`, with the L2 policy evict-first: for results that the cache cannot hold until they are read.
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

// Waits until at most `Groups` of this thread's stores still read shared memory.
template <int Groups>
__device__ inline void stores_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Groups) : "memory");
}

// Proxy fence: makes this thread's shared memory writes visible to TMA; a barrier must follow.
__device__ inline void publish_to_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- semaphores in global memory, between blocks of one grid ----
//
// A block may wait only for blocks with lower numbers, which start no later: the grid may be larger than the blocks that are resident.

// Releases the writes of this thread and of those that it has met at a barrier.
__device__ inline void signal_semaphore(u32* flag) { asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(1) : "memory"); }

// Waits for the signal and acquires those writes, also for threads that meet this one at a barrier afterwards.
__device__ inline void wait_semaphore(const u32* flag) {
    u32 raised;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(raised) : "l"(flag) : "memory");
    } while (raised == 0);
}

// Prefetches the 128 bytes around the address into the L1 cache.
__device__ inline void prefetch(const void* address) { asm volatile("prefetch.global.L1 [%0];" ::"l"(address)); }

// ---- shared memory by its addresses ----

__device__ inline void to_shared(u32 place, u16 bits) {
    asm volatile("st.shared::cta.u16 [%0], %1;" ::"r"(place), "h"(bits) : "memory");
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

// Four blocks of 8 x 8 numbers of 16 bits, two a register: lane l holds of each block those at row l / 4, columns
// 2 (l % 4) and the next, and gives the place of row l % 8 of block l / 8.
__device__ inline void blocks_to_shared(u32 place, const u32 (&block)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(place), "r"(block[0]),
                 "r"(block[1]), "r"(block[2]), "r"(block[3])
                 : "memory");
}

// ---- programmatic dependent launch: consecutive kernels on a stream overlap ----
//
// Invariants: every block waits, also one without work, so a kernel ends after all kernels ahead of it, and its end is all that the
// next kernel waits for. Before it waits a thread touches its own registers and shared
// memory and its kernel's parameters, of which a prefetched tensor map is one, and no other memory; it may have the L2 cache
// fetch what it reads afterwards.

// Triggers the dependent launch for the block: the next kernel's blocks start once all blocks of this kernel have triggered or ended.
// All blocks of this kernel have started by then, so blocks of the next kernel never take the place of one that another block waits
// for. This kernel may write after the trigger: the next one waits for its end.
__device__ inline void next_may_start() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Waits until all earlier kernels have ended and their writes are visible; returns at once where the launch allows no overlap.
__device__ inline void wait_for_earlier() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// ---- registers; all warps of a warpgroup ----

template <int Count>
__device__ inline void registers_down_to() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}
template <int Count>
__device__ inline void registers_up_to() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}
