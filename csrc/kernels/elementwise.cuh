// The two loops that every flat elementwise kernel is made of: whole vectors where the pointers allow it, single
// elements where not.
//
// Why so: on an H200 the bandwidth follows the bytes of loads that one thread has outstanding. 16 bytes a thread reach
// the speed of the driver's own copy and more do not help, so a thread takes `items_per_thread` elements: 16 bytes of
// the result, at most 8 elements (narrower sources are then read in 8 or fewer bytes, wider ones in several pieces).
// Where a pointer is not aligned, and for the elements behind the last whole vector, a thread takes up to 4 elements, a
// block apart from each other, all loads first.
//
// Launch: 128 threads a block and ceil(n / items_per_thread / 128) blocks are best; any grid of one dimension is right,
// but one thread an element costs 40 % of the bandwidth (f32), for blocks that find nothing to do. The Rust side's
// `images::elementwise_launch` does this.
// What must stay true: a thread loads everything that it needs before it stores, so the result may be an operand itself
// (the same address, the same element size); no other overlap is allowed.
#pragma once
#include "types.cuh"

__device__ constexpr int items_per_thread(int result_bytes) {
    return result_bytes >= 16 ? 1 : result_bytes <= 2 ? 8 : 16 / result_bytes;
}

// The widest memory accesses that make up a number of bytes. Built of integers, because the compiler widens accesses of
// floats and structs, but not those of bytes and halves.
template <int Bytes>
struct Words {
    uint4 word[Bytes / 16];
};
template <>
struct Words<1> {
    u8 word;
};
template <>
struct Words<2> {
    u16 word;
};
template <>
struct Words<4> {
    u32 word;
};
template <>
struct Words<8> {
    uint2 word;
};

template <typename Element, int Count>
union Pack {
    Words<sizeof(Element) * Count> words;
    Element item[Count];
};

// Whether a pointer may be read in Words<Bytes>.
template <int Bytes>
__device__ inline bool is_aligned(const void* pointer) {
    return ((u64)pointer & ((Bytes < 16 ? Bytes : 16) - 1)) == 0;
}

template <typename Element, int Count>
__device__ inline void load_pack(Pack<Element, Count>& pack, const Element* from) {
    pack.words = *(const Words<sizeof(Element) * Count>*)from;
}

template <typename Element, int Count>
__device__ inline void store_pack(Element* to, const Pack<Element, Count>& pack) {
    *(Words<sizeof(Element) * Count>*)to = pack.words;
}

// Elements that a thread takes where there are no whole vectors.
__device__ constexpr int single_items(int items) {
    return items > 4 ? 4 : items;
}

// result[i] = operation(source[i]).
template <typename Source, typename Result, typename Operation>
__device__ inline void map_unary(const Source* source, Result* result, u64 n, Operation operation) {
    constexpr int items = items_per_thread(sizeof(Result));
    constexpr int singles = single_items(items);
    const u64 threads = (u64)gridDim.x * blockDim.x;
    u64 done = 0;
    if (is_aligned<sizeof(Source) * items>(source) && is_aligned<sizeof(Result) * items>(result)) {
        const u64 packs = n / items;
#pragma unroll 1
        for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < packs; i += threads) {
            Pack<Source, items> x;
            Pack<Result, items> y;
            load_pack(x, source + i * items);
#pragma unroll
            for (int k = 0; k < items; k++) y.item[k] = operation(x.item[k]);
            store_pack(result + i * items, y);
        }
        done = packs * items;
    }
#pragma unroll 1
    for (u64 i = done + (u64)blockIdx.x * blockDim.x * singles + threadIdx.x; i < n; i += threads * singles) {
        Source x[singles];
#pragma unroll
        for (int k = 0; k < singles; k++) {
            const u64 at = i + k * blockDim.x;
            if (at < n) x[k] = source[at];
        }
#pragma unroll
        for (int k = 0; k < singles; k++) {
            const u64 at = i + k * blockDim.x;
            if (at < n) result[at] = operation(x[k]);
        }
    }
}

// result[i] = operation(left[i], right[i]).
template <typename Element, typename Operation>
__device__ inline void map_binary(const Element* left, const Element* right, Element* result, u64 n,
                                  Operation operation) {
    constexpr int items = items_per_thread(sizeof(Element));
    constexpr int singles = single_items(items);
    constexpr int bytes = sizeof(Element) * items;
    const u64 threads = (u64)gridDim.x * blockDim.x;
    u64 done = 0;
    if (is_aligned<bytes>(left) && is_aligned<bytes>(right) && is_aligned<bytes>(result)) {
        const u64 packs = n / items;
#pragma unroll 1
        for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < packs; i += threads) {
            Pack<Element, items> x, y, z;
            load_pack(x, left + i * items);
            load_pack(y, right + i * items);
#pragma unroll
            for (int k = 0; k < items; k++) z.item[k] = operation(x.item[k], y.item[k]);
            store_pack(result + i * items, z);
        }
        done = packs * items;
    }
#pragma unroll 1
    for (u64 i = done + (u64)blockIdx.x * blockDim.x * singles + threadIdx.x; i < n; i += threads * singles) {
        Element x[singles], y[singles];
#pragma unroll
        for (int k = 0; k < singles; k++) {
            const u64 at = i + k * blockDim.x;
            if (at < n) {
                x[k] = left[at];
                y[k] = right[at];
            }
        }
#pragma unroll
        for (int k = 0; k < singles; k++) {
            const u64 at = i + k * blockDim.x;
            if (at < n) result[at] = operation(x[k], y[k]);
        }
    }
}
