// The gradients of attention (attention_forward.cu) on the tensor cores of compute capability 9.0, with the same bits on every run. With
// probabilities P computed again from LSE, dO the gradient of O, and delta = Σ O dO of each row:
//   dV = Pᵀ dO    dS = P (dO Vᵀ - delta)    dQ = scale dS K    dK = scale dSᵀ Q
// A soft cap c replaces scaled scores x by c tanh(x / c), and multiplies dS by 1 - tanh²(x / c). Dropout multiplies P in dV, and dO Vᵀ, by
// the factor of each probability, which is 0 or `dropout_scale`.
// Q, K, V, O and the gradients are ELEMENT (-DELEMENT=bf16 or f16), sums are f32. Each ELEMENT and head dimension is an image of its own
// (-DDIMENSION=64 or 128), which serves smaller dimensions as that of the forward does.
//
// Entries: attention_backward_<ELEMENT>_<DIMENSION>_prepare(rows problem), then ..._{full,band}(tensor maps of Q, K, V, dO, dK and dV,
// problem) or ..._varied(the same, key gradients), which has a band and reads the other options at run time. The second must never run
// without the first.
//
// Launch (src/attention/hopper/backward.rs): `prepare` has padded D / 2048 blocks of 256 threads for each head of all batches. The other
// has a block of 384 threads for each block of 128 keys of each head of K, with SharedStorage::bytes of dynamic shared memory. Tensor maps
// are those of the forward, with boxes of 64 columns by these rows: Q and dO Rows, K and V 128, dK and dV 64. queries, keys >= 1,
// 0 < scale < infinity. With sequences, heads are counted over all sequences. Packed ones have blocks for `max_keys` keys, others for all
// keys of the array.
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
// Sequences: the box of a last block reads rows behind the sequence. They may be NaN, and 0 times NaN is NaN, so consumers clear these rows
// of Q, K, V and dO in shared memory. Threads store dK and dV of packed sequences, because a box would reach into the next one. Blocks of
// keys behind the last one, and those of a sequence without queries, are in no chain.
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
#include "attention_backward.cuh"
#include "attention_rows.cuh"
#include "hopper_pipeline.cuh"
#include "mma.cuh"

extern __shared__ unsigned char shared_memory[];

namespace {

enum : int { sums_of_thread = 4, dq_elements = 4096 };

template <int D, int Rows, int Stages, bool IsBand>
__device__ inline void produce(u32 base, const TensorMap* q_map, const TensorMap* k_map, const TensorMap* v_map,
                               const TensorMap* do_map, const BackwardProblem& p, const Work& work) {
    typedef SharedStorage<D, Rows, Stages> Storage;
    barrier_expect(base + Storage::kv_full, 2 * Storage::kv_bytes);
    for (u32 panel = 0; panel < Storage::panels; panel++) {
        const u32 offset = panel * block_keys * 128, x = panel_columns * panel;
        copy_box(base + Storage::k + offset, k_map, base + Storage::kv_full, x, work.first_key + work.key, work.kv_head,
                 work.map_batch);
        copy_box(base + Storage::v + offset, v_map, base + Storage::kv_full, x, work.first_key + work.key, work.kv_head,
                 work.map_batch);
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
                    copy_box(base + to + state.stage * Storage::q_bytes + panel * Rows * 128, map, barrier, panel_columns * panel,
                             work.first_query + row, head, work.map_batch);
                }
                copy_bytes(base + rows_to + state.stage * Storage::row_bytes, rows + (row_of_head + row), Storage::row_bytes, barrier);
            };
            load(Storage::q_full, Storage::q_empty, Storage::q, q_map, Storage::lse, p.lse);
            load(Storage::do_full, Storage::do_empty, Storage::d_o, do_map, Storage::delta, p.delta);
            state.advance();
        }
    }
}

// Makes rows of some panels zeros, from `row` to before `end`, by the threads of both consumers. They must meet afterwards.
template <int Panels>
__device__ inline void clear_rows(u32 place, u32 panel_bytes, i32 row, i32 end) {
    const u32 none[4] = {};
    for (u32 panel = 0; panel < Panels; panel++, place += panel_bytes) {
        for (u32 at = row * 128 + (threadIdx.x - 128) * 16; at < (u32)end * 128; at += 256 * 16) to_shared(place + at, none);
    }
}

// `varied` is null but in the kernel of this name.
template <int D, int Rows, int Stages, bool IsBand, bool IsVaried>
__device__ inline void consume(u32 base, u32 consumer, const TensorMap* dk_map, const TensorMap* dv_map, const BackwardProblem& p,
                               const KeyGradients* varied, const Work& work) {
    typedef SharedStorage<D, Rows, Stages> Storage;
    const u32 thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32, quad_row = lane / 4, quad_lane = lane % 4;
    // The row of a panel, and the chunk within an even pair, that this lane addresses in loads and stores of 8 x 8 blocks.
    const u32 block_row = 64 * consumer + 16 * warp + lane % 16, block_chunk = lane / 16;
    // Scores to powers of 2. A soft cap replaces scores by tangents first.
    f32 scale_log2 = p.scale * LOG2_E, to_tangent = 0, dropout_scale = 1;
    bool is_capped = false, drops = false;
    u32 threshold = 0;
    if constexpr (IsVaried) {
        const Variations& v = varied->variations;
        is_capped = v.soft_cap > 0;
        drops = v.threshold > 0;
        threshold = v.threshold;
        if (drops) dropout_scale = v.dropout_scale;
        if (is_capped) {
            scale_log2 = v.soft_cap * LOG2_E;
            to_tangent = p.scale / v.soft_cap;
        }
    }
    // In `varied`, where ds first has probabilities times the slope of the soft cap: the sign bits of those that are replaced by 0.
    constexpr u32 dropped_low = 0x8000, dropped_high = 0x80000000;
    PipelineState<Stages> q, d_o;
    bool adds = false;  // dK and dV have sums.
    f32 dk[D / 2], dv[D / 2];
    // `varied` of blocks of 128 queries has too few registers for S and dP at once, and for P beside dP: S, dV and dP follow each other.
    constexpr bool is_late_dp = IsVaried && Rows == 128;
    f32 s[Rows / 2], dp[Rows / 2], dq[32];
    u32 probabilities[Rows / 4], ds[Rows / 4];
    auto release = [&](u32 barrier) {
        if (thread == 0) barrier_arrive(barrier);
    };
    // The first 64 columns of this consumer's rows of V, as operands A in registers: this spares bandwidth of shared memory. There are no
    // registers for more. f16, which takes more to widen, has registers for 48 columns beside a band of 64, `varied` of 128 for 32.
    constexpr bool is_f16 = NAME_OF(ELEMENT)[0] == 'f';
    constexpr int v_steps = IsVaried && D == 128 ? 2 : !IsVaried && IsBand && D == 64 && is_f16 ? 3 : 4;
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
    // dV += Pᵀ dO.
    auto issue_dv = [&]() {
        const u64 do_operand = wgmma_operand<true, Rows * 128>(base + Storage::d_o + d_o.stage * Storage::q_bytes);
        wgmma_begin();
#pragma unroll
        for (int step = 0; step < Rows / 16; step++) {
            wgmma_of_registers<D, true>(dv, probabilities + 4 * step, do_operand + step * wgmma_step<true>(), step > 0 || adds);
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
        const u32 stores = (IsBand ? work.band.first_key(of_block * Rows) / block_keys * block_keys : 0) == work.key;
        // The last key block of a row finishes it.
        const i32 end_of_keys = IsBand ? work.band.end_of_keys(of_block * Rows + Rows - 1) : work.band.keys;
        if (work.key + block_keys >= end_of_keys) {
            wgmma_wait<0>();  // Fewer registers are live.
            const i32 head = work.kv_head * p.queries_per_key + additions / work.blocks;
            const i32 row = of_block * Rows + (Rows == 128 ? 64 * consumer : 0) + 16 * warp + quad_row;
            const i32 column = (Rows == 128 ? 0 : 64 * consumer) + 2 * quad_lane;
            ELEMENT* const to = p.dq + work.map_batch * p.dq_batch + head * p.dq_head + (work.first_query + row) * p.dq_row + column;
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
                    if (row < work.band.queries) *(u32*)(to + 8 * j) = word(0);
                    if (row + 8 < work.band.queries) *(u32*)(to + 8 * p.dq_row + 8 * j) = word(1);
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
    i32 remaining = work.blocks * p.queries_per_key, block = first_block, head = work.kv_head * p.queries_per_key;
    const i64 first_head = (i64)work.batch * p.heads + work.kv_head * p.queries_per_key;
    f32* sums = p.dq_sums + (first_head * p.padded + block * Rows) * D + consumer * dq_elements + thread * sums_of_thread;
    f32* last_sums = sums;
    i32 last_block = block;
    u32 buffer = 0, last_buffer = 0, ds_phase = 0;
    barrier_wait(base + Storage::kv_full, 0);
    if constexpr (IsVaried) {
        // Behind the keys of a sequence are any numbers, also NaN, of which even a product with 0 is NaN.
        if (work.key + block_keys > work.band.keys) {
            const i32 row = max(0, work.band.keys - work.key);
            clear_rows<Storage::panels>(base + Storage::k, block_keys * 128, row, block_keys);
            clear_rows<Storage::panels>(base + Storage::v, block_keys * 128, row, block_keys);
            publish_to_copies();
            named_barrier(1, 256);
        }
    }
    load_v_rows();
#pragma unroll 1
    for (; remaining > 0; remaining--) {
        barrier_wait(base + Storage::q_full + 8 * q.stage, q.phase);
        if constexpr (IsVaried) {
            // As behind the keys.
            const i32 rows = work.band.queries - block * Rows;
            if (rows < Rows) {
                barrier_wait(base + Storage::do_full + 8 * d_o.stage, d_o.phase);
                clear_rows<Storage::panels>(base + Storage::q + q.stage * Storage::q_bytes, Rows * 128, rows, Rows);
                clear_rows<Storage::panels>(base + Storage::d_o + d_o.stage * Storage::q_bytes, Rows * 128, rows, Rows);
                publish_to_copies();
                named_barrier(1, 256);
            }
        }
        issue_scores();
        barrier_wait(base + Storage::do_full + 8 * d_o.stage, d_o.phase);
        if (!is_late_dp) issue_dp();
        wgmma_wait<is_late_dp ? 0 : 1>();
        pin(s);
        if constexpr (IsVaried) {
            if (is_capped) {
#pragma unroll
                for (int i = 0; i < Rows / 2; i++) s[i] = tanh_approximate(s[i] * to_tangent);
            }
        }
        const i32 first_key = work.key + 64 * consumer, key = first_key + 16 * warp + quad_row, first_row = block * Rows;
        bool is_masked = work.key + block_keys > work.band.keys;
        if (IsBand) {
            is_masked |= work.band.end_of_keys(first_row) < first_key + 64 || work.band.first_key(first_row + Rows - 1) > first_key;
        }
        if (is_masked) {
#pragma unroll
            for (int i = 0; i < Rows / 2; i++) {
                const i32 own_key = key + i / 2 % 2 * 8, query = first_row + i / 4 * 8 + 2 * quad_lane + i % 2;
                bool is_read = own_key < work.band.keys;
                if (IsBand) is_read = own_key < work.band.end_of_keys(query) && own_key >= work.band.first_key(query);
                if (!is_read) s[i] = -infinity();
            }
        }
        u64 number_of_block = 0, seed = 0;
        if constexpr (IsVaried) {
            if (drops) {
                u32 words[4];
                from_shared(base + Storage::random, words);
                seed = (u64)words[1] << 32 | words[0];
                number_of_block = ((u64)words[3] << 32 | words[2]) + lane +
                                  random_block(varied->variations, work.batch * p.heads + head, first_row, first_key + 16 * warp);
            }
        }
        u32 random[4] = {};
#pragma unroll
        for (int j = 0; j < Rows / 8; j++) {
            if constexpr (IsVaried) {
                if (drops && j % 2 == 0) {
                    philox<2>(seed, number_of_block, random);
#pragma unroll
                    for (int i = 0; i < 4; i++) random[i] = transposed(random[i]);
                    number_of_block += (u64)blocks_of(varied->variations.max_keys, 16) * 32;
                }
            }
            f32 lse[2];
            from_shared(base + Storage::lse + q.stage * Storage::row_bytes + 32 * j + 8 * quad_lane, lse);
            f32 slope[4];  // Of the soft cap.
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if constexpr (IsVaried) slope[i] = is_capped ? fmaxf(fmaf(-s[4 * j + i], s[4 * j + i], 1.0f), 0.0f) : 1.0f;
                s[4 * j + i] = exp2_approximate(fmaf(s[4 * j + i], scale_log2, -lse[i % 2]));
            }
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const f32 low = s[4 * j + 2 * i], high = s[4 * j + 2 * i + 1];
                if constexpr (!IsVaried) {
                    probabilities[2 * j + i] = rounded(low, high);
                } else {
                    const u32 both = random[j % 2 + 2 * i];
                    const bool is_low_dropped = (both & 0xffff) < threshold, is_high_dropped = both >> 16 < threshold;
                    probabilities[2 * j + i] =
                        rounded(is_low_dropped ? 0.0f : low * dropout_scale, is_high_dropped ? 0.0f : high * dropout_scale);
                    ds[2 * j + i] = rounded(low * slope[2 * i], high * slope[2 * i + 1]) | (is_low_dropped ? dropped_low : 0) |
                                    (is_high_dropped ? dropped_high : 0);
                }
            }
        }
        if (is_late_dp) {
            issue_dv();
            wgmma_wait<0>();
            pin(dv);
            issue_dp();
        }
        wgmma_wait<0>();
        pin(dp);
#pragma unroll
        for (int j = 0; j < Rows / 8; j++) {
            f32 delta[2];
            from_shared(base + Storage::delta + d_o.stage * Storage::row_bytes + 32 * j + 8 * quad_lane, delta);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                f32 low = dp[4 * j + 2 * i], high = dp[4 * j + 2 * i + 1];
                // The rounded probabilities: keeping both would take 32 registers.
                u32 both = probabilities[2 * j + i];
                if constexpr (IsVaried) {
                    both = ds[2 * j + i] & ~(dropped_low | dropped_high);
                    low = ds[2 * j + i] & dropped_low ? 0.0f : low * dropout_scale;
                    high = ds[2 * j + i] & dropped_high ? 0.0f : high * dropout_scale;
                }
                ds[2 * j + i] = rounded(widened_low(both) * (low - delta[0]), widened_high(both) * (high - delta[1]));
            }
        }
        if (!is_late_dp) issue_dv();
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
            head++;
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
            // Behind the keys are zeros, also if a query is not finite.
            if (IsVaried && work.key + (i32)(64 * consumer + 16 * warp + quad_row) + i % 2 * 8 >= work.band.keys) of_dk[i] = of_dv[i] = 0;
        }
        const u32 place = swizzled(base + j / 8 * block_keys * 128, block_row, j % 8 + block_chunk);
        blocks_to_shared(place + Storage::k, of_dk);
        blocks_to_shared(place + Storage::v, of_dv);
    }
    publish_to_copies();
    named_barrier(2 + consumer, 128);
    if (IsVaried && varied->variations.is_packed) {
        // A box would reach into the next sequence.
        const i32 first_key = work.key + 64 * consumer;
        for (i32 at = thread; at < 64 * D / 8; at += 128) {
            const i32 key = at / (D / 8), chunk = at % (D / 8);
            if (first_key + key >= work.band.keys || 8 * chunk >= p.dimension) continue;
            const u32 from = swizzled(base + chunk / 8 * block_keys * 128, 64 * consumer + key, chunk % 8);
            Words of_dk, of_dv;
            from_shared(from + Storage::k, of_dk.word);
            from_shared(from + Storage::v, of_dv.word);
            const i64 row = work.first_key + first_key + key;
            *(Words*)(varied->dk + work.kv_head * varied->dk_head + row * varied->dk_row + 8 * chunk) = of_dk;
            *(Words*)(varied->dv + work.kv_head * varied->dv_head + row * varied->dv_row + 8 * chunk) = of_dv;
        }
    } else if (thread == 0) {
        for (u32 panel = 0; panel < Storage::panels; panel++) {
            const u32 from = base + panel * block_keys * 128 + consumer * 64 * 128, x = panel_columns * panel;
            store_box(dk_map, from + Storage::k, x, work.key + 64 * consumer, work.kv_head, work.map_batch);
            store_box(dv_map, from + Storage::v, x, work.key + 64 * consumer, work.kv_head, work.map_batch);
        }
        stores_read<0>();
    }
}

template <int D, int Rows, int Stages, bool IsBand, bool IsVaried>
__device__ inline void backward(const TensorMap* q, const TensorMap* k, const TensorMap* v, const TensorMap* d_o, const TensorMap* dk,
                                const TensorMap* dv, const BackwardProblem& p, const KeyGradients* varied) {
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
        if constexpr (IsVaried) {
            const RandomStream stream = random_stream(varied->variations);
            const u32 words[4] = {(u32)stream.seed, (u32)(stream.seed >> 32), (u32)stream.first, (u32)(stream.first >> 32)};
            to_shared(base + Storage::random, words);
        }
    }
    __syncthreads();
    u32 number;
    from_shared(base + Storage::number, number);
    // The shuffle tells the compiler that all threads of a warp have the same value.
    const Work work = work_at<IsBand, Rows>(p, varied, __shfl_sync(~0u, number, 0));
    // A block behind the last key writes zeros, unless there are keys of another sequence.
    if (IsVaried && varied->variations.is_packed && work.key >= work.band.keys) return;
    constexpr int producer_registers = 24, consumer_registers = 240;
    if (warpgroup == 0) {
        registers_down_to<producer_registers>();
        const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        if (threadIdx.x == 0) produce<D, Rows, Stages, IsBand>(base, q, k, v, d_o, p, work);
        else if (warp == 1 && lane < 2) wait_for_predecessors<Storage, IsBand, Rows>(base, lane, p, work);
        else if (warp > 1 && lane == 0) signal_successors<Storage, IsBand, Rows>(base, warp - 2, p, work);
    } else {
        registers_up_to<consumer_registers>();
        consume<D, Rows, Stages, IsBand, IsVaried>(base, warpgroup - 1, dk, dv, p, varied, work);
    }
}

}  // namespace

// Rows of a block of queries, and stages, of each head dimension.
#define CONFIGURATION_64 128, 2
#define CONFIGURATION_128 64, 3

#define MAPS                                                                                                               \
    const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k, const __grid_constant__ TensorMap v,           \
        const __grid_constant__ TensorMap d_o, const __grid_constant__ TensorMap dk, const __grid_constant__ TensorMap dv
#define ENTRY(element, dimension, name, is_band)                                                          \
    extern "C" __global__ void __launch_bounds__(384, 1) attention_backward_##element##_##dimension##_##name(                   \
        MAPS, const __grid_constant__ BackwardProblem p) {                                                                        \
        backward<dimension, CONFIGURATION_##dimension, is_band, false>(&q, &k, &v, &d_o, &dk, &dv, p, nullptr);         \
    }
#define VARIED_ENTRY(element, dimension)                                                                                \
    extern "C" __global__ void __launch_bounds__(384, 1) attention_backward_##element##_##dimension##_varied(                   \
        MAPS, const __grid_constant__ BackwardProblem p, const __grid_constant__ KeyGradients varied) {                          \
        backward<dimension, CONFIGURATION_##dimension, true, true>(&q, &k, &v, &d_o, &dk, &dv, p, &varied);      \
    }
#define PREPARE_ENTRY(element, dimension)                                                                      \
    extern "C" __global__ void __launch_bounds__(256) attention_backward_##element##_##dimension##_prepare( \
        const __grid_constant__ RowsProblem p) {                                                             \
        prepare<dimension>(p);                                                                               \
    }
#define KERNELS(element, dimension)                           \
    PREPARE_ENTRY(element, dimension)                         \
    ENTRY(element, dimension, full, false) \
    ENTRY(element, dimension, band, true)  \
    VARIED_ENTRY(element, dimension)

// Each image has one head dimension. The CPU emulation (csrc/emulation) compiles all.
#ifdef DIMENSION
KERNELS(ELEMENT, DIMENSION)
#else
KERNELS(ELEMENT, 64)
KERNELS(ELEMENT, 128)
#endif
