// Parameters, shared memory and tiles of the kernels of attention_forward.cu, which has their description.
#pragma once
#include "attention.cuh"
#include "hopper_pipeline.cuh"

namespace {

// Exactly `attention::hopper::ForwardProblem` of the Rust side.
struct ForwardProblem {
    f32* lse;           // [batch][head][query].
    u32* next_tile;     // A counter, 0 at the start; null where each block has one tile.
    Band band;
    i32 heads, queries_per_key;         // Query heads, and how many of them share a head of K and V.
    i32 tiles_per_head, tiles;
    i32 heads_per_group, all_heads;     // K and V of a group of heads fit the L2 cache; heads of all batches.
    f32 scale;
};

// Parameters of the kernels `varied`: exactly `attention::hopper::VariedForwardProblem` of the Rust side.
struct VariedProblem {
    ForwardProblem problem;
    Variations options;
    unsigned char* o;  // The first byte of the result.
    i64 o_strides[3];  // Elements between its batches, heads and positions.
    i32 dimension;     // Its head dimension.
    u32 padding;
};

// The entries: `Which` of the templates.
enum : int { is_full, is_band, is_varied };

template <int D, int Consumers, int Keys, int Stages, int Which>
struct SharedStorage {
    enum : u32 {
        rows = 64 * Consumers,
        panels = D / panel_columns,
        q_bytes = panels * rows * 128,
        kv_bytes = panels * Keys * 128,
        // Two buffers of Q and one of O, or one buffer of both. Then the stages of K and V.
        q_buffers = D > 128 ? 1 : 2,
        q = 0,
        o = q_buffers == 1 ? q : q_buffers * q_bytes,
        k = o + q_bytes,
        v = k + Stages * kv_bytes,
        q_full = v + Stages * kv_bytes,
        q_empty = q_full + 16,
        k_full = q_empty + 16,
        k_empty = k_full + 8 * Stages,
        v_full = k_empty + 8 * Stages,
        v_empty = v_full + 8 * Stages,
        // A Tile for each buffer of Q.
        descriptors = v_empty + 8 * Stages,
        descriptor_bytes = Which == is_varied ? 32 : 16,
        v_clean = descriptors + 2 * descriptor_bytes,  // Barriers of the warp that cleans.
        bytes = v_clean + (Which == is_varied ? 8 * Stages : 0) + 1024,  // 1024 to align the start.
    };
};

// 64 Consumers queries of a head, from `row` on. `row` is negative after the last tile.
struct Tile {
    i32 row, head, batch;
    Sequence sequence;  // In `varied` only: the one that is `batch`. `row` counts from its first query on.
};

// Returns the band of a tile: that of its sequence.
template <int Which>
__device__ inline Band band_of(const ForwardProblem& p, const Tile& tile) {
    if (Which != is_varied) return p.band;
    return {tile.sequence.queries, tile.sequence.keys, p.band.before, p.band.after};
}

// The key blocks that some queries of a head read.
struct KeyBlocks {
    i32 first, end;

    __device__ i32 count() const { return end - first; }
};

// Returns the key blocks that `rows` queries from `row` on read, or none. `row` is a query, in `varied` also a position after the last
// one.
template <int Which, int Keys>
__device__ inline KeyBlocks key_blocks(const Band& band, i32 row, i32 rows) {
    if (Which == is_full) return {0, blocks_of(band.keys, Keys)};
    if (Which == is_varied && row >= band.queries) return {0, 0};
    const i32 first = band.first_key(row) / Keys, end = band.end_of_keys(min(row + rows, band.queries) - 1);
    return {first, max(first, blocks_of(end, Keys))};
}

// Returns tile number `t`. Tiles of a band go from the last queries, which mostly read the most keys, to the first ones within a group of
// heads.
template <int Which, int Rows>
__device__ inline Tile tile_at(const ForwardProblem& p, i32 t) {
    const i32 group_tiles = p.heads_per_group * p.tiles_per_head, group = t / group_tiles, in_group = t % group_tiles;
    const i32 first = group * p.heads_per_group, heads = min(p.heads_per_group, p.all_heads - first);
    const i32 row = Which != is_full ? p.tiles_per_head - 1 - in_group / heads : in_group % p.tiles_per_head;
    const i32 head = first + (Which != is_full ? in_group % heads : in_group / p.tiles_per_head);
    return {row * Rows, head % p.heads, head / p.heads, {}};
}

// Waits for the descriptor in a buffer of Q, and returns it.
template <typename Storage, int Which>
__device__ inline Tile read_tile(u32 base, const PipelineState<Storage::q_buffers>& q) {
    barrier_wait(base + Storage::q_full + 8 * q.stage, q.phase);
    u32 words[4];
    from_shared(base + Storage::descriptors + Storage::descriptor_bytes * q.stage, words);
    Tile tile = {(i32)words[0], (i32)words[1], (i32)words[2], {}};
    if (Which == is_varied) {
        from_shared(base + Storage::descriptors + Storage::descriptor_bytes * q.stage + 16, words);
        tile.sequence = {(i32)words[0], (i32)words[1], (i32)words[2], (i32)words[3]};
    }
    return tile;
}

}  // namespace
