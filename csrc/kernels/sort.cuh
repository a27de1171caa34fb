// Keys in the order of elements, and the sort of keys with positions by one block, for sorts and selections.
//
// Invariant: the order of items is total, because the position is part of the comparison.
#pragma once
#include "types.cuh"

namespace {

enum { THREADS = 256 };
enum { UNSIGNED = 0, SIGNED = 1, FLOAT = 2, BOOL = 3 };

// The map from the bits of an element to its key. The keys have the order of those of src/sort/key.rs, but other values: the key of a
// negative float is the negation of its bits, so -0 has the key of +0 without a branch.
template <typename Bits>
struct Order {
    Bits flip, limit, infinity, greatest, inverse;

    __device__ inline Order(u32 kind, u64 float_infinity, u32 descending) {
        const Bits sign = (Bits)((Bits)1 << (8 * sizeof(Bits) - 1)), most = (Bits) ~(Bits)0;
        flip = kind == SIGNED || kind == FLOAT ? sign : (Bits)0;
        // Integers have no negative branch and no NaN: none is above `limit` or `infinity`.
        limit = kind == FLOAT ? (Bits)(sign - 1) : most;
        infinity = kind == FLOAT ? (Bits)float_infinity : most;
        greatest = kind == BOOL ? (Bits)1 : most;
        inverse = descending != 0 ? most : (Bits)0;
    }

    __device__ inline Bits key(Bits bits) const {
        const Bits most = (Bits) ~(Bits)0;
        if (sizeof(Bits) == 1) bits = bits < greatest ? bits : greatest;
        Bits key = bits > limit ? (Bits)(0 - bits) : (Bits)(bits ^ flip);
        if (sizeof(Bits) > 1 && (Bits)(bits & (Bits)(most >> 1)) > infinity) key = most;
        return (Bits)(key ^ inverse);
    }
};

// A key with its position. An item of a u32 key is one word of 64 bits.
template <typename Key>
struct Item;
template <>
struct Item<u32> {
    u64 word;
    __device__ inline void set(u32 key, u32 position) { word = (u64)key << 32 | position; }
    __device__ inline u32 key() const { return (u32)(word >> 32); }
    __device__ inline u32 position() const { return (u32)word; }
    __device__ inline bool before(const Item& other) const { return word < other.word; }
};
template <>
struct Item<u64> {
    u64 own_key;
    u32 at;
    __device__ inline void set(u64 key, u32 position) {
        own_key = key;
        at = position;
    }
    __device__ inline u64 key() const { return own_key; }
    __device__ inline u32 position() const { return at; }
    __device__ inline bool before(const Item& other) const {
        return own_key < other.own_key || (own_key == other.own_key && at < other.at);
    }
};

// Sorts items in shared memory, a power of two of them, by a bitonic network (Batcher 1968). All threads of the block call it after a
// barrier, and it ends with one.
template <typename Key>
__device__ inline void sort_items(Item<Key>* items, u32 count) {
    for (u32 size = 2; size <= count; size <<= 1) {
        for (u32 stride = size >> 1; stride > 0; stride >>= 1) {
            for (u32 pair = threadIdx.x; pair < count / 2; pair += THREADS) {
                const u32 low = 2 * pair - (pair & (stride - 1)), high = low + stride;
                const Item<Key> a = items[low], b = items[high];
                if (b.before(a) == ((low & size) == 0)) {
                    items[low] = b;
                    items[high] = a;
                }
            }
            __syncthreads();
        }
    }
}

}  // namespace
