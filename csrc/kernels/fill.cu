// Sets every element of a flat array to one value.
//
// Entries: fill_{8,16,32,64,128}(value, result, n): result[i] = value for i < n, by the element's bits. fill_128 takes
// the value as 16 bytes, low half first. Launch as elementwise.cuh says, with 16 bytes a thread.
//
// Why beside the driver's own fill: the driver's has no 8- and 16-byte elements.
// The elements before the first address that is a multiple of 16 and those after the last are written one by one. An
// array whose start is no multiple of its element's size (complex numbers need only the alignment of their parts)
// never reaches such an address and is written in parts.
//
// | version | what | speed |
// |---|---|---|
// | 1 | 16 bytes a thread | measured: see benches/RESULTS.md |
#include "elementwise.cuh"

namespace {

__device__ inline uint4 repeat(u8 value) {
    const u32 word = value * 0x01010101u;
    return make_uint4(word, word, word, word);
}
__device__ inline uint4 repeat(u16 value) {
    const u32 word = value * 0x00010001u;
    return make_uint4(word, word, word, word);
}
__device__ inline uint4 repeat(u32 value) { return make_uint4(value, value, value, value); }
__device__ inline uint4 repeat(u64 value) {
    return make_uint4((u32)value, (u32)(value >> 32), (u32)value, (u32)(value >> 32));
}
__device__ inline uint4 repeat(u128 value) {
    return make_uint4((u32)value.low, (u32)(value.low >> 32), (u32)value.high, (u32)(value.high >> 32));
}

// One element, in accesses that need no more than a quarter (an element of 16 bytes) or half of its alignment.
__device__ inline void store_parts(u8* to, u8 value) { *to = value; }
__device__ inline void store_parts(u16* to, u16 value) { *to = value; }
__device__ inline void store_parts(u32* to, u32 value) { *to = value; }
__device__ inline void store_parts(u64* to, u64 value) {
    ((u32*)to)[0] = (u32)value;
    ((u32*)to)[1] = (u32)(value >> 32);
}
__device__ inline void store_parts(u128* to, u128 value) {
    store_parts((u64*)to, value.low);
    store_parts((u64*)to + 1, value.high);
}

template <typename Element>
__device__ inline void fill(Element value, Element* result, u64 n) {
    const u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    const u64 threads = (u64)gridDim.x * blockDim.x;
    constexpr u64 items = 16 / sizeof(Element);
    if ((u64)result % sizeof(Element) != 0) {
#pragma unroll 1
        for (u64 i = thread; i < n; i += threads) store_parts(result + i, value);
        return;
    }
    u64 head = (16 - (u64)result % 16) % 16 / sizeof(Element);
    if (head > n) head = n;
    const u64 packs = (n - head) / items;
    uint4* body = (uint4*)(result + head);
    const uint4 words = repeat(value);
#pragma unroll 1
    for (u64 i = thread; i < packs; i += threads) body[i] = words;
    const u64 tail = head + packs * items;
#pragma unroll 1
    for (u64 i = thread; i < head + (n - tail); i += threads) {
        store_parts(result + (i < head ? i : tail + (i - head)), value);
    }
}

}  // namespace

#define ENTRY(bits, type)                                                                                     \
    extern "C" __global__ void __launch_bounds__(1024) fill_##bits(type value, type* result, u64 n) {         \
        fill(value, result, n);                                                                               \
    }

ENTRY(8, u8)
ENTRY(16, u16)
ENTRY(32, u32)
ENTRY(64, u64)
ENTRY(128, u128)
