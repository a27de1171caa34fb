// Parts that attention_forward.cu and attention_backward.cu share: the band of keys that a query reads, sequences, dropout, and 16-bit
// pairs in registers.
//
// Positions: query i of `queries` and key j of `keys` in one sequence, whose last positions coincide. So query i is at position
// i + keys - queries, and reads the keys from position - before to position + after that exist. A causal mask is after = 0, and a
// sliding window limits `before`.
#pragma once
#include "hopper.cuh"
#include "instructions.cuh"
#include "philox.cuh"
#include "report.cuh"
#include "wgmma.cuh"

enum : int {
    panel_columns = 64,  // Elements in the 128 bytes of a row of a panel.
};

__device__ inline i32 blocks_of(i32 count, i32 size) { return (count + size - 1) / size; }

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
    selvedge::kernel_report* report;  // For sequences that do not fit.
    i32 is_packed;              // Sequences are in a batch of 1, one after the other.
    i32 array_queries;          // Positions of an array of queries, and of LSE: without sequences those of the band.
    i32 max_queries, max_keys;  // Of a sequence.
    f32 soft_cap;               // c of c tanh(x / c) for scaled scores x; 0 for none.
    u32 threshold;              // Probabilities whose 16 random bits are below it are replaced by 0.
    f32 dropout_scale;          // The factor of the others.
    u32 report_code;
};

// Returns sequence number `index`; without sequences that is a batch of the arrays, whose band is `arrays`. Numbers in device memory
// that exceed the arrays or the most of a sequence are limited to them, so that nothing is written elsewhere.
__device__ inline Sequence sequence_at(const Variations& v, const Band& arrays, i32 index) {
    if (!v.sequences) return {0, arrays.queries, 0, arrays.keys};
    Sequence found = v.sequences[index];
    if (!v.is_packed) found.first_query = found.first_key = 0;
    found.first_query = min(max(found.first_query, 0), arrays.queries);
    found.first_key = min(max(found.first_key, 0), arrays.keys);
    found.queries = min(max(found.queries, 0), min(v.max_queries, arrays.queries - found.first_query));
    found.keys = min(max(found.keys, 0), min(v.max_keys, arrays.keys - found.first_key));
    return found;
}

// Reports sequence number `index` if it does not fit: a number that `sequence_at` limits, or a packed sequence that begins before the end of
// the one before it. The report's index is the number, its axis the number's place in Sequence, or that and 4 for a beginning before an
// end, and its size the limit, below the sequence's number shifted by 32.
__device__ inline void check_sequence(const Variations& v, const Band& arrays, i32 index) {
    const Sequence found = v.sequences[index], limited = sequence_at(v, arrays, index);
    Sequence before = {};
    if (v.is_packed && index > 0) before = sequence_at(v, arrays, index - 1);
    auto check = [&](i32 number, u32 axis, i32 least, i32 most) {
        if (number < least || number > most) {
            const u32 limit = number < 0 || number > most ? most : least;
            selvedge::report(v.report, v.report_code, number, axis + (number >= 0 && number < least ? 4 : 0), (u64)index << 32 | limit);
        }
    };
    if (v.is_packed) {
        check(found.first_query, 0, before.first_query + before.queries, arrays.queries);
        check(found.first_key, 2, before.first_key + before.keys, arrays.keys);
    }
    check(found.queries, 1, 0, min(v.max_queries, arrays.queries - limited.first_query));
    check(found.keys, 3, 0, min(v.max_keys, arrays.keys - limited.first_key));
}

// The random bits of a dropout.
struct RandomStream {
    u64 seed, first;  // The first block.
};

__device__ inline RandomStream random_stream(const Variations& v) {
    if (!v.generator) return {v.seed, v.offset};
    return {v.generator[0], v.generator[1] + v.offset};
}

// Returns the first of the 32 blocks of the stream that have the bits of a block of 16 queries and 16 keys. `head` is that of all
// sequences, or of all batches; query and key are multiples of 16.
__device__ inline u64 random_block(const Variations& v, i32 head, i32 query, i32 key) {
    const u64 row = (u64)head * blocks_of(v.max_queries, 16) + query / 16;
    return (row * blocks_of(v.max_keys, 16) + key / 16) * 32;
}

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
