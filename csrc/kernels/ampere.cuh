// Asynchronous copies of compute capability 8.0 from global to shared memory (cp.async). One function an
// instruction, named for what it does; the PTX manual's "cp.async" defines them.
//
// Compiled for an older architecture, the copies are loads and stores, which are complete when they return.
//
// Addresses of shared memory are 32-bit offsets (`shared_address`), because the instructions take those.
#pragma once
#include "types.cuh"

// Returns the 32-bit address in shared memory of a generic pointer.
__device__ inline u32 shared_address(const void* pointer) { return (u32)__cvta_generic_to_shared(pointer); }

// Copies `Bytes` bytes; both addresses are multiples of `Bytes`. If not `inside`, it reads nothing and writes zeros.
// The instruction can also read fewer bytes than it writes. ptxas encodes that number in the low bits of the address, and memcheck
// (compute-sanitizer) then reports an access past the end. So callers copy the ends of rows element by element.
template <int Bytes>
__device__ inline void copy_async(u32 to, const void* from, bool inside) {
    static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "copies are of 4, 8 or 16 bytes");
#if __CUDA_ARCH__ < 800
    struct alignas(Bytes) Words {
        u32 word[Bytes / 4];
    } words = {};
    if (inside) words = *(const Words*)from;
#pragma unroll
    for (int i = 0; i < Bytes / 4; i++) {
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(to + 4 * i), "r"(words.word[i]) : "memory");
    }
#else
    const u32 valid = inside ? Bytes : 0;
    if constexpr (Bytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(Bytes), "r"(valid)
                     : "memory");
    }
#endif
}

// Makes the copies issued since the last call a group.
__device__ inline void copies_commit() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most the `Groups` latest groups of this thread are unfinished.
template <int Groups>
__device__ inline void copies_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
#endif
}
