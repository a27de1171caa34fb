// The gradients of attention (attention_forward.cu) on the tensor cores of compute capability 9.0, with the same bits on every run. With
// probabilities P computed again from LSE, dO the gradient of O, and delta = Σ O dO of each row:
//   dV = Pᵀ dO    dS = P (dO Vᵀ - delta)    dQ = scale dS K    dK = scale dSᵀ Q
// Q, K, V, O and the gradients are ELEMENT (-DELEMENT=bf16 or f16), sums are f32. Each ELEMENT and head dimension is an image of its own
// (-DDIMENSION=64 or 128), which serves smaller dimensions as that of the forward does.
//
// Entries: attention_backward_<ELEMENT>_<DIMENSION>_prepare(rows problem), then ..._{full,band}(tensor maps of Q, K, V, dO, dK and dV,
// problem). The second must never run without the first.
//
// Launch (src/attention/hopper.rs): `prepare` has padded D / 2048 blocks of 256 threads for each head of all batches. The other has a block of 384
// threads for each block of 128 keys of each head of K, with SharedStorage::bytes of dynamic shared memory. Tensor maps are those of
// the forward, with boxes of 64 columns by these rows: Q and dO Rows, K and V 128, dK and dV 64. queries, keys >= 1, 0 < scale < infinity.
//
// Algorithm: FlashAttention-3 (Shah et al., 2024), with two consumer warpgroups of 64 keys each. A consumer keeps dK and dV of its keys in
// registers and goes through the queries in blocks of Rows:
// - Sᵀ = K Qᵀ and dPᵀ = V dOᵀ, whose rounded Pᵀ and dSᵀ are operands in registers of dV += Pᵀ dO and dK += dSᵀ Q.
// - dS goes to shared memory. dQ of the block before is multiplied then, so consumers need not wait for each other (three buffers).
// - dQ is added to sums in global memory in the order of the accumulators.
//
// Ordered additions. `progress` counts, for each 64 rows of dQ and each consumer, the key blocks that have been added. The key block that is
// number n of those that a row block reads adds when the count is n. Number 0 stores instead of adding. The last one adds the sums to its
// own part and writes dQ, so nothing is cleared but `progress`, and no kernel follows.
// - No consumer waits for global memory. An idle warp polls `progress` ahead of both consumers, and publishes in shared memory how many
//   additions each may do (`granted`). Two others wait until a consumer has issued an addition, fence, and count it.
// - All key blocks of a head go through the rows in the same order (a band: from the last row up, since all read the last rows), so each
//   is one handover behind the one before.
// - Heads of a group alternate in the order of blocks, so the block before in the chain has started earlier.
//
// Invariants:
// - A block takes its number from a counter when it starts, and waits for blocks with smaller numbers alone. They are resident or have
//   ended, whatever order the hardware starts blocks in.
// - `added` is a ring of four barriers a consumer. No consumer arrives for addition i + 4 before `signal_successors` has counted i
//   (`counted`): a barrier two phases ahead would look like one whose phase has not ended.
// - Products whose accumulators live on have no branch around them: ptxas would serialise them (C7515). They run on stale data instead.
//
// Versions, TFLOP/s at 1 k, 4 k, 16 k for d 128 full and d 64 causal, on an H200 (nvcc 13.0); cuDNN 453, 570, 571 and 250, 384, 422:
//   additions in any order                        496, 629, 609    297, 503, 573
//   in order, by loads, additions and stores      419, 482, 457    276, 391, 433
//   in order, by red.global.add.v4.f32            480, 585, 560    295, 440, 517
#include "attention.cuh"
#include "hopper_pipeline.cuh"
#include "mma.cuh"
#include "ordered_additions.cuh"

extern __shared__ unsigned char shared_memory[];

namespace {

enum : int { block_keys = 128, sums_of_thread = 4, dq_elements = 4096 };

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

// Exactly `attention::hopper::RowsProblem` of the Rust side.
struct RowsProblem {
    const ELEMENT *o, *d_o;  // Strides in elements; the head dimension is contiguous, and rows begin at multiples of 16 bytes.
    ELEMENT* dq;
    const f32* forward_lse;
    f32 *lse, *delta;
    u32* progress;
    i64 o_batch, o_head, o_row, do_batch, do_head, do_row, dq_batch, dq_head, dq_row;
    i32 heads, queries, padded, dimension;
    i32 rows_without_keys;  // The first rows of dQ, which are zeros.
};

// Eight elements.
struct alignas(16) Words {
    u32 word[4];
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
        bytes = number + 16 + 1024,
    };
};

// A block of keys of a head, and the blocks of queries that read it.
struct Work {
    i32 key, kv_head, batch;
    i32 first, blocks;  // The first block of queries, and their number.
};

template <bool IsBand, int Rows>
__device__ inline Work work_at(const BackwardProblem& p, u32 number) {
    const i32 kv_heads = p.heads / p.queries_per_key, key_blocks = blocks_of(p.band.keys, block_keys);
    const i32 group = number / (p.heads_per_group * key_blocks), in_group = number % (p.heads_per_group * key_blocks);
    const i32 first_head = group * p.heads_per_group, members = min(p.heads_per_group, p.all_kv_heads - first_head);
    const i32 key = in_group / members * block_keys, head = first_head + in_group % members;
    i32 first = 0, end = p.band.queries;
    if (IsBand) {
        first = max(0, p.band.first_query(key));
        end = min(end, p.band.end_of_queries(min(key + block_keys, p.band.keys) - 1));
    }
    first /= Rows;
    return {key, head % kv_heads, head / kv_heads, first, max(0, blocks_of(end, Rows) - first)};
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
        return work.key / block_keys - (IsBand ? p.band.first_key(row) / block_keys : 0);
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

template <int D, int Rows, int Stages, bool IsBand>
__device__ inline void produce(u32 base, const TensorMap* q_map, const TensorMap* k_map, const TensorMap* v_map,
                               const TensorMap* do_map, const BackwardProblem& p, const Work& work) {
    typedef SharedStorage<D, Rows, Stages> Storage;
    barrier_expect(base + Storage::kv_full, 2 * Storage::kv_bytes);
    for (u32 panel = 0; panel < Storage::panels; panel++) {
        const u32 offset = panel * block_keys * 128, x = panel_columns * panel;
        copy_box(base + Storage::k + offset, k_map, base + Storage::kv_full, x, work.key, work.kv_head, work.batch);
        copy_box(base + Storage::v + offset, v_map, base + Storage::kv_full, x, work.key, work.kv_head, work.batch);
    }
    PipelineState<Stages> state;
    const i32 first_head = work.kv_head * p.queries_per_key, last_head = first_head + p.queries_per_key;
#pragma unroll 1
    for (i32 head = first_head; head < last_head; head++) {
        const u32 row_of_head = (work.batch * p.heads + head) * p.padded;
        i32 row = (work.first + (IsBand ? work.blocks - 1 : 0)) * Rows;
#pragma unroll 1
        for (i32 remaining = work.blocks; remaining > 0; remaining--, row += direction<IsBand>() * Rows) {
            auto load = [&](u32 full, u32 empty, u32 to, const TensorMap* map, u32 rows_to, const f32* rows) {
                const u32 barrier = base + full + 8 * state.stage;
                barrier_wait(base + empty + 8 * state.stage, state.phase ^ 1);
                barrier_expect(barrier, Storage::q_bytes + Storage::row_bytes);
                for (u32 panel = 0; panel < Storage::panels; panel++) {
                    copy_box(base + to + state.stage * Storage::q_bytes + panel * Rows * 128, map, barrier, panel_columns * panel, row,
                             head, work.batch);
                }
                copy_bytes(base + rows_to + state.stage * Storage::row_bytes, rows + (row_of_head + row), Storage::row_bytes, barrier);
            };
            load(Storage::q_full, Storage::q_empty, Storage::q, q_map, Storage::lse, p.lse);
            load(Storage::do_full, Storage::do_empty, Storage::d_o, do_map, Storage::delta, p.delta);
            state.advance();
        }
    }
}

template <int D, int Rows, int Stages, bool IsBand>
__device__ inline void consume(u32 base, u32 consumer, const TensorMap* dk_map, const TensorMap* dv_map, const BackwardProblem& p,
                               const Work& work) {
    typedef SharedStorage<D, Rows, Stages> Storage;
    const u32 thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32, quad_row = lane / 4, quad_lane = lane % 4;
    // The row of a panel, and the chunk within an even pair, that this lane addresses in loads and stores of 8 x 8 blocks.
    const u32 block_row = 64 * consumer + 16 * warp + lane % 16, block_chunk = lane / 16;
    const f32 scale_log2 = p.scale * LOG2_E;
    PipelineState<Stages> q, d_o;
    f32 dk[D / 2], dv[D / 2];
    f32 s[Rows / 2], dp[Rows / 2], dq[32];
    u32 probabilities[Rows / 4], ds[Rows / 4];
    auto release = [&](u32 barrier) {
        if (thread == 0) barrier_arrive(barrier);
    };
    // The first 64 columns of this consumer's rows of V, as operands A in registers: this spares bandwidth of shared memory. There are no
    // registers for more, and f16, which takes more to widen, has registers for 48 columns beside a band of 64.
    constexpr int v_steps = IsBand && D == 64 && NAME_OF(ELEMENT)[0] == 'f' ? 3 : 4;
    u32 v_rows[4 * v_steps];
    auto load_v_rows = [&]() {
#pragma unroll
        for (int step = 0; step < v_steps; step++) {
            const u32 panel = base + Storage::v + step / 4 * block_keys * 128;
            blocks_from_shared<false>(v_rows + 4 * step, swizzled(panel, block_row, step % 4 * 2 + block_chunk));
        }
    };
    auto issue_scores = [&]() {
        const u32 a = base + Storage::k + consumer * 64 * 128, b = base + Storage::q + q.stage * Storage::q_bytes;
        wgmma_begin();
#pragma unroll
        for (int step = 0; step < D / 16; step++) {
            const u64 b_step = wgmma_operand<false>(b + step / 4 * Rows * 128 + step % 4 * 32);
            wgmma<Rows, false, false>(s, wgmma_operand<false>(a + step / 4 * block_keys * 128 + step % 4 * 32), b_step, step > 0);
        }
        wgmma_commit();
    };
    auto issue_dp = [&]() {
        const u32 a = base + Storage::v + consumer * 64 * 128, b = base + Storage::d_o + d_o.stage * Storage::q_bytes;
        wgmma_begin();
#pragma unroll
        for (int step = 0; step < D / 16; step++) {
            const u64 b_step = wgmma_operand<false>(b + step / 4 * Rows * 128 + step % 4 * 32);
            if (step < v_steps) {
                wgmma_of_registers<Rows, false>(dp, v_rows + 4 * step, b_step, step > 0);
            } else {
                wgmma<Rows, false, false>(dp, wgmma_operand<false>(a + step / 4 * block_keys * 128 + step % 4 * 32), b_step, step > 0);
            }
        }
        wgmma_commit();
    };
    // dQ = dS K. If Rows is 64, each consumer has half of the columns, else half of the rows.
    auto issue_dq = [&](u32 buffer) {
        const u32 of_ds = base + Storage::ds + buffer * Storage::ds_bytes + (Rows == 128 ? consumer * block_keys * 128 : 0);
        const u64 ds_operand = wgmma_operand<true, block_keys * 128>(of_ds);
        const u64 k_operand = wgmma_operand<true, block_keys * 128>(base + Storage::k + (Rows == 128 ? 0 : consumer * block_keys * 128));
        wgmma_begin();
#pragma unroll
        for (int step = 0; step < block_keys / 16; step++) {
            wgmma<64, true, true>(dq, ds_operand + step * wgmma_step<true>(), k_operand + step * wgmma_step<true>(), step > 0);
        }
        wgmma_commit();
    };
    // Adds dQ of the block of queries `of_block` to the sums: 16 KiB a consumer, in the order of the accumulators.
    u32 additions = 0;
    auto add_dq = [&](f32* sums, i32 of_block) {
        wait_for_grant(base + Storage::granted + 8 * consumer, additions);
        const u32 stores = (IsBand ? p.band.first_key(of_block * Rows) / block_keys * block_keys : 0) == work.key;
        // The last key block of a row finishes it.
        const i32 end_of_keys = IsBand ? p.band.end_of_keys(of_block * Rows + Rows - 1) : p.band.keys;
        if (work.key + block_keys >= end_of_keys) {
            wgmma_wait<0>();  // Fewer registers are live.
            const i32 head = work.kv_head * p.queries_per_key + additions / work.blocks;
            const i32 row = of_block * Rows + (Rows == 128 ? 64 * consumer : 0) + 16 * warp + quad_row;
            const i32 column = (Rows == 128 ? 0 : 64 * consumer) + 2 * quad_lane;
            ELEMENT* const to = p.dq + work.batch * p.dq_batch + head * p.dq_head + row * p.dq_row + column;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                f32 sum[4][4];
#pragma unroll
                for (int i = 0; i < 4; i++) load_unless(sum[i], sums + (4 * half + i) * 512, stores);
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int j = 4 * half + i;
                    if (column + 8 * j >= p.dimension) continue;
                    auto word = [&](int h) {
                        return rounded((sum[i][2 * h] + dq[4 * j + 2 * h]) * p.scale, (sum[i][2 * h + 1] + dq[4 * j + 2 * h + 1]) * p.scale);
                    };
                    if (row < p.band.queries) *(u32*)(to + 8 * j) = word(0);
                    if (row + 8 < p.band.queries) *(u32*)(to + 8 * p.dq_row + 8 * j) = word(1);
                }
            }
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++) store_or_add(sums + i * 512, dq + 4 * i, stores);
        }
        __syncwarp();
        if (lane == 0) barrier_arrive(base + Storage::added + 32 * consumer + 8 * (additions & 3));
        additions++;
    };
    const i32 first_block = work.first + (IsBand ? work.blocks - 1 : 0);
    i32 remaining = work.blocks * p.queries_per_key, block = first_block;
    const i64 first_head = (i64)work.batch * p.heads + work.kv_head * p.queries_per_key;
    f32* sums = p.dq_sums + (first_head * p.padded + block * Rows) * D + consumer * dq_elements + thread * sums_of_thread;
    f32* last_sums = sums;
    i32 last_block = block;
    bool adds = false;
    u32 buffer = 0, last_buffer = 0, ds_phase = 0;
    barrier_wait(base + Storage::kv_full, 0);
    load_v_rows();
#pragma unroll 1
    for (; remaining > 0; remaining--) {
        barrier_wait(base + Storage::q_full + 8 * q.stage, q.phase);
        issue_scores();
        barrier_wait(base + Storage::do_full + 8 * d_o.stage, d_o.phase);
        issue_dp();
        wgmma_wait<1>();
        pin(s);
        const i32 first_key = work.key + 64 * consumer, key = first_key + 16 * warp + quad_row, first_row = block * Rows;
        bool is_masked = work.key + block_keys > p.band.keys;
        if (IsBand) {
            is_masked |= p.band.end_of_keys(first_row) < first_key + 64 || p.band.first_key(first_row + Rows - 1) > first_key;
        }
        if (is_masked) {
#pragma unroll
            for (int i = 0; i < Rows / 2; i++) {
                const i32 own_key = key + i / 2 % 2 * 8, query = first_row + i / 4 * 8 + 2 * quad_lane + i % 2;
                bool is_read = own_key < p.band.keys;
                if (IsBand) is_read = own_key < p.band.end_of_keys(query) && own_key >= p.band.first_key(query);
                if (!is_read) s[i] = -infinity();
            }
        }
#pragma unroll
        for (int j = 0; j < Rows / 8; j++) {
            f32 lse[2];
            from_shared(base + Storage::lse + q.stage * Storage::row_bytes + 32 * j + 8 * quad_lane, lse);
#pragma unroll
            for (int i = 0; i < 4; i++) s[4 * j + i] = exp2_approximate(fmaf(s[4 * j + i], scale_log2, -lse[i % 2]));
#pragma unroll
            for (int i = 0; i < 2; i++) probabilities[2 * j + i] = rounded(s[4 * j + 2 * i], s[4 * j + 2 * i + 1]);
        }
        wgmma_wait<0>();
        pin(dp);
#pragma unroll
        for (int j = 0; j < Rows / 8; j++) {
            f32 delta[2];
            from_shared(base + Storage::delta + d_o.stage * Storage::row_bytes + 32 * j + 8 * quad_lane, delta);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                // The rounded probabilities: keeping both would take 32 registers.
                const u32 both = probabilities[2 * j + i];
                ds[2 * j + i] = rounded(widened_low(both) * (dp[4 * j + 2 * i] - delta[0]),
                                        widened_high(both) * (dp[4 * j + 2 * i + 1] - delta[1]));
            }
        }
        // dV += Pᵀ dO.
        const u64 do_operand = wgmma_operand<true, Rows * 128>(base + Storage::d_o + d_o.stage * Storage::q_bytes);
        wgmma_begin();
#pragma unroll
        for (int step = 0; step < Rows / 16; step++) {
            wgmma_of_registers<D, true>(dv, probabilities + 4 * step, do_operand + step * wgmma_step<true>(), step > 0 || adds);
        }
        wgmma_commit();
        // dSᵀ to shared memory as [key][query], in panels of 64 queries.
        const u32 to_ds = base + Storage::ds + buffer * Storage::ds_bytes;
#pragma unroll
        for (int j = 0; j < Rows / 8; j += 2) {
            const u32 words[4] = {ds[2 * j], ds[2 * j + 1], ds[2 * j + 2], ds[2 * j + 3]};
            blocks_to_shared(swizzled(to_ds + j / 8 * block_keys * 128, block_row, j % 8 + block_chunk), words);
        }
        publish_to_copies();
        // dQ of the block before: both consumers have stored its dS by now.
        if (adds) {
            barrier_wait(base + Storage::ds_full, ds_phase);
            ds_phase ^= 1;
        }
        issue_dq(last_buffer);
        // dK += dSᵀ Q.
        const u64 q_operand = wgmma_operand<true, Rows * 128>(base + Storage::q + q.stage * Storage::q_bytes);
        wgmma_begin();
#pragma unroll
        for (int step = 0; step < Rows / 16; step++) {
            wgmma_of_registers<D, true>(dk, ds + 4 * step, q_operand + step * wgmma_step<true>(), step > 0 || adds);
        }
        wgmma_commit();
        wgmma_wait<2>();
        pin(dv);
        release(base + Storage::do_empty + 8 * d_o.stage);
        d_o.advance();
        wgmma_wait<1>();
        pin(dq);
        // This warp's dS is stored, and it has read the buffer that the next block but one overwrites.
        __syncwarp();
        if (lane == 0) barrier_arrive(base + Storage::ds_full);
        if (adds) add_dq(last_sums, last_block);
        wgmma_wait<0>();
        pin(dk);
        release(base + Storage::q_empty + 8 * q.stage);
        q.advance();
        adds = true;
        last_buffer = buffer;
        buffer = buffer == 2 ? 0 : buffer + 1;
        last_sums = sums;
        last_block = block;
        sums += direction<IsBand>() * Rows * D;
        block += direction<IsBand>();
        if (block == first_block + direction<IsBand>() * work.blocks) {  // The next query head of the group.
            block = first_block;
            sums += ((i64)p.padded - direction<IsBand>() * work.blocks * Rows) * D;
        }
    }
    if (adds) barrier_wait(base + Storage::ds_full, ds_phase);
    issue_dq(last_buffer);
    wgmma_wait<0>();
    pin(dq);
    if (adds) add_dq(last_sums, last_block);
    // Both consumers have read K for the last time: dK and dV go through the memory of K and V.
    named_barrier(1, 256);
    if (!adds) {
#pragma unroll
        for (int i = 0; i < D / 2; i++) dk[i] = dv[i] = 0;
    }
#pragma unroll
    for (int j = 0; j < D / 8; j += 2) {
        u32 of_dk[4], of_dv[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            of_dk[i] = rounded(dk[4 * j + 2 * i] * p.scale, dk[4 * j + 2 * i + 1] * p.scale);
            of_dv[i] = rounded(dv[4 * j + 2 * i], dv[4 * j + 2 * i + 1]);
        }
        const u32 place = swizzled(base + j / 8 * block_keys * 128, block_row, j % 8 + block_chunk);
        blocks_to_shared(place + Storage::k, of_dk);
        blocks_to_shared(place + Storage::v, of_dv);
    }
    publish_to_copies();
    named_barrier(2 + consumer, 128);
    if (thread == 0) {
        for (u32 panel = 0; panel < Storage::panels; panel++) {
            const u32 from = base + panel * block_keys * 128 + consumer * 64 * 128, x = panel_columns * panel;
            store_box(dk_map, from + Storage::k, x, work.key + 64 * consumer, work.kv_head, work.batch);
            store_box(dv_map, from + Storage::v, x, work.key + 64 * consumer, work.kv_head, work.batch);
        }
        stores_read<0>();
    }
}

template <int D, int Rows, int Stages, bool IsBand>
__device__ inline void backward(const TensorMap* q, const TensorMap* k, const TensorMap* v, const TensorMap* d_o, const TensorMap* dk,
                                const TensorMap* dv, const BackwardProblem& p) {
    typedef SharedStorage<D, Rows, Stages> Storage;
    const u32 base = (shared_address(shared_memory) + 1023) & ~1023u;
    const u32 warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0);
    if (threadIdx.x == 0) {
        const u32 number = atomicAdd(p.progress, 1);
        barrier_initialise(base + Storage::kv_full, 1);
        barrier_initialise(base + Storage::ds_full, 8);  // The warps of both consumers.
        for (int i = 0; i < 8; i++) barrier_initialise(base + Storage::added + 8 * i, 4);  // The warps of a consumer.
        const u32 none[4] = {};
        to_shared(base + Storage::granted, none);
        for (int i = 0; i < Stages; i++) {
            barrier_initialise(base + Storage::q_full + 8 * i, 1);
            barrier_initialise(base + Storage::do_full + 8 * i, 1);
            barrier_initialise(base + Storage::q_empty + 8 * i, 2);
            barrier_initialise(base + Storage::do_empty + 8 * i, 2);
        }
        barriers_initialised();
        prefetch_map(q);
        prefetch_map(k);
        prefetch_map(v);
        prefetch_map(d_o);
        to_shared(base + Storage::number, number);
    }
    __syncthreads();
    u32 number;
    from_shared(base + Storage::number, number);
    // The shuffle tells the compiler that all threads of a warp have the same value.
    const Work work = work_at<IsBand, Rows>(p, __shfl_sync(~0u, number, 0));
    constexpr int producer_registers = 24, consumer_registers = 240;
    if (warpgroup == 0) {
        registers_down_to<producer_registers>();
        const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        if (threadIdx.x == 0) produce<D, Rows, Stages, IsBand>(base, q, k, v, d_o, p, work);
        else if (warp == 1 && lane < 2) wait_for_predecessors<Storage, IsBand, Rows>(base, lane, p, work);
        else if (warp > 1 && lane == 0) signal_successors<Storage, IsBand, Rows>(base, warp - 2, p, work);
    } else {
        registers_up_to<consumer_registers>();
        consume<D, Rows, Stages, IsBand>(base, warpgroup - 1, dk, dv, p, work);
    }
}

// D / 8 threads compute the delta of a row.
template <int D>
__device__ inline void prepare(const RowsProblem& p) {
    const i32 blocks_of_head = p.padded * (D / 64) / 32, head_of_all = blockIdx.x / blocks_of_head;
    const i32 row = blockIdx.x % blocks_of_head * (2048 / D) + threadIdx.x / (D / 8), column = threadIdx.x % (D / 8) * 8;
    const i32 head = head_of_all % p.heads, batch = head_of_all / p.heads;
    const bool is_inside = column < p.dimension;
    f32 delta = 0;
    if (row < p.queries && is_inside) {
        const Words o = *(const Words*)(p.o + batch * p.o_batch + head * p.o_head + row * p.o_row + column);
        const Words d_o = *(const Words*)(p.d_o + batch * p.do_batch + head * p.do_head + row * p.do_row + column);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            delta = fmaf(widened_low(o.word[i]), widened_low(d_o.word[i]), delta);
            delta = fmaf(widened_high(o.word[i]), widened_high(d_o.word[i]), delta);
        }
    }
#pragma unroll
    for (int i = D / 16; i > 0; i /= 2) delta += __shfl_xor_sync(~0u, delta, i);
    const i64 to = (i64)head_of_all * p.padded + row;
    if (column == 0) {
        const f32 lse = row < p.queries ? p.forward_lse[(i64)head_of_all * p.queries + row] : -infinity();
        p.delta[to] = delta;
        // Rows behind the last one, and rows without keys, have probabilities of 0.
        p.lse[to] = lse == -infinity() ? infinity() : lse * LOG2_E;
        if (row % 64 == 0) p.progress[4 + to / 32] = p.progress[4 + to / 32 + 1] = 0;
        if (to == 0) p.progress[0] = 0;
    }
    if (row < p.rows_without_keys && is_inside) {
        *(Words*)(p.dq + batch * p.dq_batch + head * p.dq_head + row * p.dq_row + column) = Words{};
    }
}

}  // namespace

// Rows of a block of queries, and stages, of each head dimension.
#define CONFIGURATION_64 128, 2
#define CONFIGURATION_128 64, 3
#define ENTRY(element, dimension, name, is_band)                                                                        \
    extern "C" __global__ void __launch_bounds__(384, 1) attention_backward_##element##_##dimension##_##name(                   \
        const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k, const __grid_constant__ TensorMap v,           \
        const __grid_constant__ TensorMap d_o, const __grid_constant__ TensorMap dk, const __grid_constant__ TensorMap dv,       \
        const __grid_constant__ BackwardProblem p) {                                                                             \
        backward<dimension, CONFIGURATION_##dimension, is_band>(&q, &k, &v, &d_o, &dk, &dv, p);                                  \
    }
#define PREPARE_ENTRY(element, dimension)                                                                      \
    extern "C" __global__ void __launch_bounds__(256) attention_backward_##element##_##dimension##_prepare( \
        const __grid_constant__ RowsProblem p) {                                                             \
        prepare<dimension>(p);                                                                               \
    }
#define KERNELS(element, dimension)        \
    PREPARE_ENTRY(element, dimension)      \
    ENTRY(element, dimension, full, false) \
    ENTRY(element, dimension, band, true)

// Each image has one head dimension. The CPU emulation (csrc/emulation) compiles all.
#ifdef DIMENSION
KERNELS(ELEMENT, DIMENSION)
#else
KERNELS(ELEMENT, 64)
KERNELS(ELEMENT, 128)
#endif
