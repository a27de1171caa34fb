// Parts that attention_forward.cu and attention_backward.cu share: the band of keys that a query reads, and 16-bit pairs in registers.
//
// Positions: query i of `queries` and key j of `keys` in one sequence, whose last positions coincide. So query i is at position
// i + keys - queries, and reads the keys from position - before to position + after that exist. A causal mask is after = 0, and a
// sliding window limits `before`.
#pragma once
#include "hopper.cuh"
#include "instructions.cuh"
#include "wgmma.cuh"

enum : int {
    panel_columns = 64,  // Elements in the 128 bytes of a row of a panel.
};

// 1 / ln 2 and ln 2.
#define LOG2_E 1.4426950408889634f
#define LN_2 0.6931471805599453f

// The keys that queries read.
struct Band {
    i32 queries, keys;
    i32 before, after;  // Keys before and after a query's own position; at most 2^30 each.

    // Returns the first key that a query reads. It can be behind the last key.
    __device__ i32 first_key(i32 query) const { return max(0, query + (keys - queries) - before); }

    // Returns the end of the keys that a query reads. It can be before the first one, and negative.
    __device__ i32 end_of_keys(i32 query) const { return min(keys, query + (keys - queries) + after + 1); }

    // Returns the first query that reads a key. It can be negative or behind the last query.
    __device__ i32 first_query(i32 key) const { return key - (keys - queries) - after; }

    // Returns the end of the queries that read a key. It can be negative or behind the last query.
    __device__ i32 end_of_queries(i32 key) const { return key - (keys - queries) + before + 1; }
};

// One of several sequences, in device memory: exactly four numbers of `attention::Operands::sequences`.
struct alignas(16) Sequence {
    i32 first_query, queries, first_key, keys;
};

// Options that the kernels `varied` read at run time: exactly `attention::hopper::Variations` of the Rust side.
struct Variations {
    const Sequence* sequences;  // Null where each batch is one sequence.
    const u64* generator;       // The seed and the first block of random bits, in place of `seed` and a first block of 0; or null.
    u64 seed, offset;
    i32 is_packed;              // Sequences are in a batch of 1, one after the other.
    i32 array_queries;          // Positions of an array of queries, and of LSE: without sequences those of the band.
    i32 max_queries, max_keys;  // Of a sequence.
    f32 soft_cap;               // c of c tanh(x / c) for scaled scores x; 0 for none.
    u32 threshold;              // Probabilities whose 16 random bits are below it are replaced by 0.
    f32 kept_scale;             // The factor of the others.
    u32 padding;
};

__device__ inline i32 blocks_of(i32 count, i32 size) { return (count + size - 1) / size; }

__device__ inline f32 infinity() { return __int_as_float(0x7f800000); }

// The lower and the upper of two elements of 16 bits in a register.
__device__ inline f32 widened_low(u32 both) {
    if constexpr (NAME_OF(ELEMENT)[0] == 'b') return __uint_as_float(both << 16);
    return from_half((u16)both);
}
__device__ inline f32 widened_high(u32 both) {
    if constexpr (NAME_OF(ELEMENT)[0] == 'b') return __uint_as_float(both & 0xffff0000);
    return from_half((u16)(both >> 16));
}

// Returns the address of the 16-byte chunk `chunk` of a row in a panel, as TMA with the 128-byte swizzle stores it.
__device__ inline u32 swizzled(u32 panel, u32 row, u32 chunk) { return panel + row * 128 + (chunk ^ (row & 7)) * 16; }
