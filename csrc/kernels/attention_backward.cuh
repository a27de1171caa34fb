// The blocks of attention_backward.cu, and the order of their additions to dQ, which its head explains.
#pragma once
#include "attention.cuh"
#include "ordered_additions.cuh"

enum : int { block_keys = 128 };

// Exactly `attention::hopper::BackwardProblem` of the Rust side.
struct BackwardProblem {
    const f32 *lse, *delta;  // Of `prepare`, [head of all batches][padded].
    f32* dq_sums;            // [head of all batches][padded][D].
    u32* progress;           // [head of all batches][padded / 64][consumer], behind the counter of blocks, which has 4 words.
    ELEMENT* dq;             // Strides in elements; the head dimension is contiguous.
    i64 dq_batch, dq_head, dq_row;
    Band band;
    i32 heads, queries_per_key, padded;  // Query heads, how many share a head of K, and queries rounded up to 128.
    i32 dimension;
    i32 heads_per_group, all_kv_heads;   // Heads of K that alternate in the order of blocks; those of all batches.
    f32 scale;
};

// The parameters of `varied` beside the problem, whose `band` is that of the arrays: exactly `attention::hopper::KeyGradients` of the Rust side.
struct KeyGradients {
    Variations variations;
    ELEMENT *dk, *dv;  // Of packed sequences; strides in elements.
    i64 dk_head, dk_row, dv_head, dv_row;
};

template <int D, int Rows, int Stages>
struct SharedStorage {
    enum : u32 {
        panels = D / panel_columns,
        kv_bytes = block_keys * D * 2,
        q_bytes = Rows * D * 2,
        ds_bytes = block_keys * Rows * 2,
        row_bytes = Rows * 4,
        k = 0,
        v = kv_bytes,
        q = v + kv_bytes,
        d_o = q + Stages * q_bytes,
        ds = d_o + Stages * q_bytes,
        lse = ds + 3 * ds_bytes,
        delta = lse + Stages * row_bytes,
        kv_full = delta + Stages * row_bytes,
        q_full = kv_full + 8,
        q_empty = q_full + 8 * Stages,
        do_full = q_empty + 8 * Stages,
        do_empty = do_full + 8 * Stages,
        ds_full = do_empty + 8 * Stages,
        added = ds_full + 8,    // Four barriers a consumer.
        granted = added + 64,   // A pair a consumer: additions that it may do, and those that are counted.
        number = granted + 16,  // The block's number.
        random = number + 16,   // The seed of random bits and their first block.
        bytes = random + 16 + 1024,
    };
};

// A block of keys of a head, and the blocks of queries that read it.
struct Work {
    i32 key, kv_head, batch;  // `batch` counts sequences where there are some.
    i32 first, blocks;        // The first block of queries, and their number.
    Band band;
    i32 map_batch, first_query, first_key;  // The place of the sequence in the arrays.
};

// `varied` is null but in the kernel of this name.
template <bool IsBand, int Rows>
__device__ inline Work work_at(const BackwardProblem& p, const KeyGradients* varied, u32 number) {
    const bool is_packed = varied && varied->variations.is_packed;
    const i32 kv_heads = p.heads / p.queries_per_key;
    const i32 key_blocks = blocks_of(is_packed ? varied->variations.max_keys : p.band.keys, block_keys);
    const i32 group = number / (p.heads_per_group * key_blocks), in_group = number % (p.heads_per_group * key_blocks);
    const i32 first_head = group * p.heads_per_group, members = min(p.heads_per_group, p.all_kv_heads - first_head);
    const i32 key = in_group / members * block_keys, head = first_head + in_group % members, batch = head / kv_heads;
    Work work = {key, head % kv_heads, batch, 0, 0, p.band, batch, 0, 0};
    if (varied) {
        const Sequence of = sequence_at(varied->variations, p.band, batch);
        work.band.queries = of.queries;
        work.band.keys = of.keys;
        work.first_query = of.first_query;
        work.first_key = of.first_key;
        if (is_packed) work.map_batch = 0;
        // No query reads keys behind the last one.
        if (key >= of.keys || of.queries == 0) return work;
    }
    i32 first = 0, end = work.band.queries;
    if (IsBand) {
        first = max(0, work.band.first_query(key));
        end = min(end, work.band.end_of_queries(min(key + block_keys, work.band.keys) - 1));
    }
    work.first = first / Rows;
    work.blocks = max(0, blocks_of(end, Rows) - work.first);
    return work;
}

// Blocks of queries go down, or up in a band.
template <bool IsBand>
__device__ constexpr i32 direction() {
    return IsBand ? -1 : 1;
}

// The counts of one consumer's additions, in their order: block after block of queries, head after head.
template <bool IsBand, int Rows>
struct ProgressWalk {
    enum : i32 { step = direction<IsBand>() * (Rows / 32) };
    i32 at;  // An index in `progress`.
    i32 remaining, remaining_in_head;
    i32 row;  // Of the block of queries.

    __device__ ProgressWalk(const BackwardProblem& p, const Work& work, u32 consumer) {
        remaining_in_head = work.blocks;
        remaining = work.blocks * p.queries_per_key;
        const i32 start = work.first + (IsBand ? work.blocks - 1 : 0);
        row = start * Rows;
        at = 4 + (work.batch * p.heads + work.kv_head * p.queries_per_key) * (p.padded / 32) + start * (Rows / 32) + consumer;
    }

    // The key blocks before this one that the block of queries reads.
    __device__ u32 predecessors(const BackwardProblem& p, const Work& work) const {
        return work.key / block_keys - (IsBand ? work.band.first_key(row) / block_keys : 0);
    }

    __device__ void advance(const BackwardProblem& p, const Work& work) {
        remaining--;
        at += step;
        row += direction<IsBand>() * Rows;
        if (--remaining_in_head == 0) {
            remaining_in_head = work.blocks;
            at += p.padded / 32 - step * work.blocks;
            row -= direction<IsBand>() * Rows * work.blocks;
        }
    }
};

// Polls for one consumer, and grants it additions.
template <class Storage, bool IsBand, int Rows>
__device__ inline void wait_for_predecessors(u32 base, u32 consumer, const BackwardProblem& p, const Work& work) {
    ProgressWalk<IsBand, Rows> walk(p, work, consumer);
    while (walk.remaining > 0) {
        const u32 predecessors = walk.predecessors(p, work);
        while (predecessors > 0 && load_acquire(p.progress + walk.at) < predecessors) continue;
        walk.advance(p, work);
        store_release_to_shared(base + Storage::granted + 8 * consumer, work.blocks * p.queries_per_key - walk.remaining);
    }
}

// Counts one consumer's additions once the device sees them.
template <class Storage, bool IsBand, int Rows>
__device__ inline void signal_successors(u32 base, u32 consumer, const BackwardProblem& p, const Work& work) {
    const u32 added = base + Storage::added + 32 * consumer;
    u32 counted = 0;
    ProgressWalk<IsBand, Rows> walk(p, work, consumer);
    while (walk.remaining > 0) {
        barrier_wait(added + 8 * (counted & 3), counted >> 2 & 1);
        // If this warp is late, one fence serves several additions.
        u32 end = counted + 1;
        while (end < counted + 4 && barrier_has_ended(added + 8 * (end & 3), end >> 2 & 1)) end++;
        store_release_to_shared(base + Storage::granted + 8 * consumer + 4, end);
        fence_device();
#pragma unroll 1
        for (; counted < end; counted++, walk.advance(p, work)) {
            store_relaxed(p.progress + walk.at, walk.predecessors(p, work) + 1);
        }
    }
}
