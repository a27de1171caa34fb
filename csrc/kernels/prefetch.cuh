// Prefetches (prefetch.global.L2; the PTX manual's "prefetch" defines them).
#pragma once
#include "types.cuh"

// Begins to load the line of global memory at an address into the L2 cache.
__device__ inline void prefetch_to_l2(const void* from) { asm volatile("prefetch.global.L2 [%0];" ::"l"(from) : "memory"); }
