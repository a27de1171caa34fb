// O = softmax(scale Q Kᵀ) V, and LSE = ln Σ exp(scale Q Kᵀ) of each row, on the tensor cores of compute capability 9.0. Scores are never
// stored. Q, K, V and O are ELEMENT (-DELEMENT=bf16 or f16), scores, sums and LSE are f32. Each ELEMENT and head dimension is an
// image of its own (-DDIMENSION=64, 128, 192 or 256).
//
// Entries: attention_forward_<ELEMENT>_<DIMENSION>_{full,band,varied}(tensor maps of Q, K, V and O, problem). `band` limits the keys of
// each query (attention.cuh); `full` reads all. `varied` has a band and the options of Variations: soft cap, dropout and sequences. It
// takes a VariedProblem. A kernel serves all head dimensions up to its own that are multiples of 8: TMA fills missing columns with zeros,
// and does not store them.
//
// Launch: one block a multiprocessor, no more than tiles, of 128 (1 + Consumers) threads, and SharedStorage::bytes of dynamic shared memory
// (src/attention/hopper/forward.rs). Tensor maps have four dimensions, (head dimension, position, head, batch), the 128-byte swizzle and
// boxes of 64 columns by these rows: Q 64 Consumers, K and V Keys, O 64. queries, keys >= 1, and 0 <= scale < infinity.
//
// Algorithm: FlashAttention-3 (Shah et al., 2024). A persistent block takes tiles of 64 Consumers queries from a counter. One producer thread
// loads Q, K and V by TMA. Each consumer warpgroup owns 64 queries:
// - It issues S = Q Kᵀ of the next key block before O += P V of the current one, so that the tensor cores work during its softmax.
// - Consumers take turns to issue products (ping-pong scheduling): one multiplies while another computes exponentials.
// - It issues the first S of the next tile before it stores O. Above 128 columns shared memory holds the Q of one tile alone, and O is
//   staged in it. There the next tile begins after the store, and only its first keys are loaded earlier.
// - Key blocks go from the last to the first. Only blocks at the ends of the band need a mask. Blocks that only other consumers of the
//   tile read are skipped.
// In `varied` a tile carries its sequence. A second warp of the producer's warpgroup (`clean`) sets values after the end of a sequence to 0
// before the consumers read them: they can be NaN of another sequence, and 0 NaN is NaN. Consumers store O without TMA where a box would
// reach into the next sequence.
//
// Invariants:
// - Each consumer takes exactly one turn for each key block of a tile, also for a block that it skips, so turns need no count.
// - The sums of a row do not depend on the schedule: results have the same bits on every run.
// - Products whose accumulators live on have no branch around them: ptxas would serialise them (C7515). They run on stale data instead.
//
// Versions, TFLOP/s at 1 k, 4 k, 16 k for d 128 full and d 64 causal, on an H200 (nvcc 13.0); cuDNN 613, 662, 651 and 341, 432, 462:
//   products of a step awaited together                        546, 633, 633    283, 449, 524
//   softmax between S and O; turns                             618, 699, 685    298, 487, 571
//   two buffers of Q, S of the next tile early; skipped blocks 646, 710, 692    376, 535, 590
//   two chains of instructions for maximum and sum             652, 723, 715    375, 532, 589
#include "attention_forward.cuh"
#include "wgmma_wide.cuh"

extern __shared__ unsigned char shared_memory[];

namespace {

template <int D, int Consumers, int Keys, int Stages, int Which>
__device__ inline void produce(u32 base, const TensorMap* q_map, const TensorMap* k_map, const TensorMap* v_map,
                               const ForwardProblem& p, const VariedProblem* varied) {
    typedef SharedStorage<D, Consumers, Keys, Stages, Which> Storage;
    PipelineState<Stages> k, v;
    PipelineState<Storage::q_buffers> q;
    i32 t = blockIdx.x;
    while (true) {
        Tile tile = {-1, 0, 0, {}};
        i32 following = p.tiles;
        if (t < p.tiles) {
            // Early, because the answer takes a microsecond.
            if (p.next_tile) following = gridDim.x + atomicAdd(p.next_tile, 1);
            tile = tile_at<Which, Storage::rows>(p, t);
        }
        if (Which == is_varied && t < p.tiles) {
            tile.sequence = sequence_at(varied->options, p.band, tile.batch);
            if (varied->options.is_packed && tile.row >= tile.sequence.queries) {
                t = following;
                continue;
            }
        }
        i32 kv_head, batch, first_key;
        auto find_keys = [&]() {
            kv_head = tile.head / p.queries_per_key;
            batch = Which == is_varied && varied->options.is_packed ? 0 : tile.batch;
            first_key = Which == is_varied ? tile.sequence.first_key : 0;
        };
        auto load = [&](PipelineState<Stages>& state, u32 full, u32 empty, u32 to, const TensorMap* map, i32 block) {
            full += base + 8 * state.stage;
            barrier_wait(base + empty + 8 * state.stage, state.phase ^ 1);
            barrier_expect(full, Storage::kv_bytes);
            for (u32 panel = 0; panel < Storage::panels; panel++) {
                copy_box(base + to + state.stage * Storage::kv_bytes + panel * Keys * 128, map, full, panel_columns * panel,
                         first_key + block * Keys, kv_head, batch);
            }
            state.advance();
        };
        auto load_k = [&](i32 block) { load(k, Storage::k_full, Storage::k_empty, Storage::k, k_map, block); };
        auto load_v = [&](i32 block) { load(v, Storage::v_full, Storage::v_empty, Storage::v, v_map, block); };
        // The first keys of a tile do not wait for the only buffer of Q.
        constexpr bool k_is_before_q = Storage::q_buffers == 1;
        if (k_is_before_q && t < p.tiles) {
            find_keys();
            const KeyBlocks blocks = key_blocks<Which, Keys>(band_of<Which>(p, tile), tile.row, Storage::rows);
            if (blocks.count() > 0) load_k(blocks.end - 1);
        }
        const u32 q_full = base + Storage::q_full + 8 * q.stage;
        barrier_wait(base + Storage::q_empty + 8 * q.stage, q.phase ^ 1);
        const u32 words[4] = {(u32)tile.row, (u32)tile.head, (u32)tile.batch, 0};
        to_shared(base + Storage::descriptors + Storage::descriptor_bytes * q.stage, words);
        if (Which == is_varied) {
            const Sequence& of = tile.sequence;
            const u32 more[4] = {(u32)of.first_query, (u32)of.queries, (u32)of.first_key, (u32)of.keys};
            to_shared(base + Storage::descriptors + Storage::descriptor_bytes * q.stage + 16, more);
        }
        if (t >= p.tiles) {
            barrier_arrive(q_full);  // Publishes the end.
            break;
        }
        if (!k_is_before_q) find_keys();
        const i32 first_query = Which == is_varied ? tile.sequence.first_query : 0;
        barrier_expect(q_full, Storage::q_bytes);
        for (u32 panel = 0; panel < Storage::panels; panel++) {
            const u32 to = base + Storage::q + q.stage * Storage::q_bytes + panel * Storage::rows * 128;
            copy_box(to, q_map, q_full, panel_columns * panel, first_query + tile.row, tile.head, batch);
        }
        q.advance();
        const KeyBlocks blocks = key_blocks<Which, Keys>(band_of<Which>(p, tile), tile.row, Storage::rows);
        // The order in which the consumers need them: K one block ahead of V.
        for (i32 block = blocks.end - 1; block >= blocks.first; block--) {
            if (!k_is_before_q || block < blocks.end - 1) load_k(block);
            if (block < blocks.end - 1) load_v(block + 1);
        }
        if (blocks.count() > 0) load_v(blocks.first);
        t = following;
    }
}

// A warp that sets the values behind the keys of a sequence to 0.
template <int D, int Consumers, int Keys, int Stages, int Which>
__device__ inline void clean(u32 base, u32 lane, const ForwardProblem& p) {
    typedef SharedStorage<D, Consumers, Keys, Stages, Which> Storage;
    PipelineState<Stages> v;
    PipelineState<Storage::q_buffers> q;
    while (true) {
        const Tile tile = read_tile<Storage, Which>(base, q);
        if (tile.row < 0) break;
        barrier_arrive(base + Storage::q_empty + 8 * q.stage);
        q.advance();
        const KeyBlocks blocks = key_blocks<Which, Keys>(band_of<Which>(p, tile), tile.row, Storage::rows);
        for (i32 block = blocks.end - 1; block >= blocks.first; block--) {
            barrier_wait(base + Storage::v_full + 8 * v.stage, v.phase);
            const i32 count = tile.sequence.keys - block * Keys;
            if (count < Keys) {
                const u32 zeros[4] = {};
                for (u32 panel = 0; panel < Storage::panels; panel++) {
                    const u32 rows = base + Storage::v + v.stage * Storage::kv_bytes + panel * Keys * 128;
                    for (u32 chunk = 8 * count + lane; chunk < 8 * Keys; chunk += 32) to_shared(rows + 16 * chunk, zeros);
                }
                publish_to_copies();
            }
            barrier_arrive(base + Storage::v_clean + 8 * v.stage);
            v.advance();
        }
    }
}

template <int D, int Consumers, int Keys, int Stages, int Which>
__device__ inline void consume(u32 base, u32 consumer, const TensorMap* o_map, const ForwardProblem& p,
                               const VariedProblem* varied) {
    typedef SharedStorage<D, Consumers, Keys, Stages, Which> Storage;
    const u32 thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32, quad_row = lane / 4, quad_lane = lane % 4;
    constexpr bool IsBand = Which != is_full;
    // The factor of scores once they are capped, and that of those to be capped.
    const f32 score_scale = Which == is_varied && varied->options.soft_cap != 0 ? varied->options.soft_cap : p.scale;
    const f32 to_cap = Which == is_varied ? p.scale * __frcp_rn(varied->options.soft_cap) : 0;
    const f32 scale_log2 = score_scale * LOG2_E;
    PipelineState<Stages> k, v;
    PipelineState<Storage::q_buffers> q;
    f32 s[Keys / 2], o[D / 2];          // Scores, then probabilities, and output: accumulators in the layout of wgmma.cuh.
    u32 probabilities[Keys / 4];        // Rounded, as the operand A of P V.
    f32 maximum[2], sum[2], factor[2];  // Of the thread's two rows; `sum` of the thread's columns only. `factor` rescales O.
    // Turns: consumer c waits at barrier 1 + c, and consumer c - 1 arrives there.
    auto wait_for_turn = [&]() { named_barrier(1 + consumer, 256); };
    auto end_turn = [&]() { named_barrier_arrive(consumer + 1 == Consumers ? 1 : 2 + consumer, 256); };
    auto release = [&](u32 barrier) {
        if (thread == 0) barrier_arrive(barrier);
    };
    if (consumer + 1 == Consumers) named_barrier_arrive(1, 256);

    auto issue_scores = [&]() {
        const u32 rows = base + Storage::q + q.stage * Storage::q_bytes + consumer * 64 * 128;
        const u32 keys = base + Storage::k + k.stage * Storage::kv_bytes;
        wgmma_begin();
#pragma unroll
        for (int step = 0; step < D / 16; step++) {
            const u32 panel = step / 4, offset = step % 4 * 32;
            wgmma<Keys, false, false>(s, wgmma_operand<false>(rows + panel * Storage::rows * 128 + offset),
                                      wgmma_operand<false>(keys + panel * Keys * 128 + offset), step > 0);
        }
        wgmma_commit();
    };
    auto issue_output = [&](bool adds) {
        const u64 values = wgmma_operand<true, Keys * 128>(base + Storage::v + v.stage * Storage::kv_bytes);
        wgmma_begin();
#pragma unroll
        for (int step = 0; step < Keys / 16; step++) {
            wgmma_of_registers<D, true>(o, probabilities + 4 * step, values + step * wgmma_step<true>(), step > 0 || adds);
        }
        wgmma_commit();
    };
    auto wait_for_k = [&]() { barrier_wait(base + Storage::k_full + 8 * k.stage, k.phase); };
    auto wait_for_v = [&]() {
        barrier_wait(base + (Which == is_varied ? Storage::v_clean : Storage::v_full) + 8 * v.stage, v.phase);
    };
    auto finish_k = [&]() {
        release(base + Storage::k_empty + 8 * k.stage);
        k.advance();
    };
    auto finish_v = [&]() {
        release(base + Storage::v_empty + 8 * v.stage);
        v.advance();
    };
    // A stage is released once all warps have waited for it: a warp that waits late could miss the phase. Products make them meet elsewhere.
    auto synchronize_warps = [&]() { named_barrier(8 + consumer, 128); };
    // Frees a buffer of Q. One in which O is staged is free once the store has read it.
    auto finish_q = [&]() {
        if (Storage::q_buffers == 1) {
            if (Which == is_varied) synchronize_warps();  // Threads of all warps may have stored O.
            if (thread == 0) stores_read<0>();
        }
        release(base + Storage::q_empty + 8 * q.stage);
        q.advance();
    };
    // Blocks that only other consumers read: this one takes part in the turns, and frees the stages.
    auto skip_k = [&]() {
        wait_for_k();
        wait_for_turn();
        end_turn();
        finish_k();
    };
    auto skip_v = [&]() {
        wait_for_v();
        synchronize_warps();
        finish_v();
    };
    Tile tile;
    i32 block, first_block;           // This consumer's next key block, and its last one, which is the first of the keys.
    i32 skipped_after, skipped_before;  // Key blocks of the tile after and before those of this consumer.
    auto next_tile = [&]() {
        tile = read_tile<Storage, Which>(base, q);
        const Band of_sequence = band_of<Which>(p, tile);
        const Band& band = Which == is_varied ? of_sequence : p.band;
        const KeyBlocks all = key_blocks<Which, Keys>(band, tile.row, Storage::rows);
        const i32 row = tile.row + 64 * consumer;
        const KeyBlocks own = row < band.queries ? key_blocks<Which, Keys>(band, row, 64) : KeyBlocks{0, 0};
        block = own.end - 1;
        first_block = own.first;
        skipped_after = own.count() > 0 ? all.end - own.end : all.count();
        skipped_before = Which != is_full && own.count() > 0 ? own.first - all.first : 0;
    };
    const bool is_packed = Which == is_varied && varied->options.is_packed;
    // The end of the rows that have results: those of the sequence if another one follows, else all of the batch.
    auto end_of_rows = [&](const Tile& of) { return is_packed ? of.sequence.queries : p.band.queries; };
    // Stores 64 rows of LSE, and of O times `scale` or zeros.
    auto store = [&](const Tile& to, const f32 (&lse)[2], const f32 (&scale)[2], bool is_zero) {
        const i32 first_query = Which == is_varied ? to.sequence.first_query : 0, batch = is_packed ? 0 : to.batch;
        // Rows after the last query of the sequence have no keys.
        auto has_sums = [&](int h) {
            return Which != is_varied || to.row + (i32)(64 * consumer + 16 * warp + quad_row) + 8 * h < to.sequence.queries;
        };
        auto word = [&](int i) {
            return is_zero || !has_sums(i % 2) ? 0 : rounded(o[2 * i] * scale[i % 2], o[2 * i + 1] * scale[i % 2]);
        };
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const i32 row = to.row + 64 * consumer + 16 * warp + quad_row + 8 * h;
            if (quad_lane == 0 && row < end_of_rows(to)) {
                p.lse[((i64)batch * p.heads + to.head) * p.band.queries + first_query + row] =
                    has_sums(h) ? lse[h] : -infinity();
            }
        }
        // The staging buffer is free once the last store has read it.
        const u32 staging = base + Storage::o + consumer * 64 * 128;
        if (thread == 0) stores_read<0>();
        synchronize_warps();
#pragma unroll
        for (int j = 0; j < D / 8; j += 2) {
            const u32 words[4] = {word(2 * j), word(2 * j + 1), word(2 * j + 2), word(2 * j + 3)};
            blocks_to_shared(swizzled(staging + j / 8 * Storage::rows * 128, 16 * warp + lane % 16, j % 8 + lane / 16), words);
        }
        publish_to_copies();
        synchronize_warps();
        if (is_packed && to.row + 64 * (i32)consumer + 64 > to.sequence.queries) {
            // A box would reach into the next sequence.
            const i32 first_row = to.row + 64 * (i32)consumer, chunks = (to.sequence.queries - first_row) * D / 8;
            const i64 to_head = to.head * varied->o_strides[1], row_stride = varied->o_strides[2];
            for (i32 i = thread; i < chunks; i += 128) {
                const i32 row = i / (D / 8), column = i % (D / 8) * 8;
                u32 words[4];
                from_shared(swizzled(staging + column / 64 * Storage::rows * 128, row, column / 8 % 8), words);
                if (column >= varied->dimension) continue;
                const i64 element = to_head + (first_query + first_row + row) * row_stride + column;
                *(uint4*)(varied->o + 2 * element) = {words[0], words[1], words[2], words[3]};
            }
        } else if (thread == 0) {
            for (u32 panel = 0; panel < Storage::panels; panel++) {
                store_box(o_map, staging + panel * Storage::rows * 128, panel_columns * panel,
                          first_query + to.row + 64 * consumer, to.head, batch);
            }
        }
    };
    bool begun = false;  // The first scores of the tile are issued.
    next_tile();
    while (tile.row >= 0) {
        if (!begun) {
            for (; skipped_after > 0; skipped_after--) {
                skip_k();
                skip_v();
            }
            if (block < first_block) {
                // No key: the results are 0 and ln 0.
                if (tile.row + 64 * (i32)consumer < end_of_rows(tile)) {
                    const f32 lse[2] = {-infinity(), -infinity()}, scale[2] = {};
                    store(tile, lse, scale, true);
                }
                synchronize_warps();
                finish_q();
                next_tile();
                continue;
            }
            wait_for_k();
            wait_for_turn();
            issue_scores();
            end_turn();
            wgmma_wait<0>();
        }
        pin(s);
        finish_k();
        const i32 first_row = tile.row + 64 * (i32)consumer, row = first_row + 16 * warp + quad_row;
        // Key blocks from the first one on, and those before the second one, need a mask.
        const Band of_sequence = band_of<Which>(p, tile);
        const Band& band = Which == is_varied ? of_sequence : p.band;
        const i32 mask_from = (IsBand ? band.end_of_keys(first_row) : band.keys) / Keys;
        const i32 mask_until = IsBand ? blocks_of(band.first_key(first_row + 63), Keys) : 0;

        auto mask_ends = [&](i32 block) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const i32 end = (IsBand ? band.end_of_keys(row + 8 * h) : band.keys) - block * Keys - 2 * (i32)quad_lane;
#pragma unroll
                for (int i = 0; i < Keys / 4; i++) {
                    f32& score = s[i / 2 * 4 + 2 * h + i % 2];
                    score = i / 2 * 8 + i % 2 < end ? score : -infinity();
                }
            }
        };
        auto mask_beginnings = [&](i32 block) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const i32 first = band.first_key(row + 8 * h) - block * Keys - 2 * (i32)quad_lane;
#pragma unroll
                for (int i = 0; i < Keys / 4; i++) {
                    f32& score = s[i / 2 * 4 + 2 * h + i % 2];
                    score = i / 2 * 8 + i % 2 >= first ? score : -infinity();
                }
            }
        };
        // Limits scores to 1. The cap is then their scale.
        auto cap_scores = [&]() {
            if (Which == is_varied && varied->options.soft_cap != 0) {
#pragma unroll
                for (int i = 0; i < Keys / 2; i++) s[i] = tanh_approximate(s[i] * to_cap);
            }
        };
        // Replaces probabilities by 0, after they were added.
        auto drop = [&]() {
            if (Which != is_varied || varied->options.threshold == 0) return;
            // Read again for each block, because registers are few.
            const RandomStream random = random_stream(varied->options);
            const i32 of = tile.batch * p.heads + tile.head, query = first_row + 16 * warp;
            const u64 start = random.first + random_block(varied->options, of, query, block * Keys) + lane;
#pragma unroll
            for (int i = 0; i < Keys / 16; i++) {
                u32 words[4];
                philox(random.seed, start + 32 * i, words);
#pragma unroll
                for (int j = 0; j < 4; j++) probabilities[4 * i + j] &= halves_not_below(words[j], varied->options.threshold);
            }
        };
        // Turns scores into probabilities, updates maximum and sum, and sets factor.
        auto softmax = [&](bool is_first, bool is_masked) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                f32 top = s[2 * h], other = s[2 * h + 1];  // Two chains of dependent instructions take less time than one.
#pragma unroll
                for (int i = 2; i < Keys / 4; i += 2) {
                    top = fmaxf(top, s[i / 2 * 4 + 2 * h]);
                    other = fmaxf(other, s[i / 2 * 4 + 2 * h + 1]);
                }
                top = fmaxf(top, other);
                if (!is_first) top = fmaxf(top, maximum[h]);
                top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
                top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
                const f32 shift = is_masked && top == -infinity() ? 0.0f : top * scale_log2;
                factor[h] = is_first ? 1.0f : exp2_approximate(fmaf(maximum[h], scale_log2, -shift));
                maximum[h] = top;
                f32 total[2] = {0, 0};
#pragma unroll
                for (int i = 0; i < Keys / 4; i++) {
                    f32& score = s[i / 2 * 4 + 2 * h + i % 2];
                    score = exp2_approximate(fmaf(score, scale_log2, -shift));
                    total[i % 2] += score;
                }
                sum[h] = is_first ? total[0] + total[1] : fmaf(sum[h], factor[h], total[0] + total[1]);
            }
        };
        auto round_probabilities = [&]() {
#pragma unroll
            for (int i = 0; i < Keys / 4; i++) probabilities[i] = rounded(s[2 * i], s[2 * i + 1]);
        };
        cap_scores();
        if (block >= mask_from) mask_ends(block);
        if (IsBand && block < mask_until) mask_beginnings(block);
        softmax(true, true);
        round_probabilities();
        drop();
        bool adds = false;

        auto step = [&](bool masks_ends, bool masks_beginnings) {
            wait_for_k();
            wait_for_turn();
            issue_scores();
            wait_for_v();
            issue_output(adds);
            end_turn();
            wgmma_wait<1>();
            pin(s);
            finish_k();
            cap_scores();
            if (masks_ends && (Which != is_varied || block >= mask_from)) mask_ends(block);
            if (masks_beginnings && block < mask_until) mask_beginnings(block);
            softmax(false, masks_ends || masks_beginnings);
            wgmma_wait<0>();
            pin(o);
            finish_v();
#pragma unroll
            for (int i = 0; i < D / 2; i++) o[i] *= factor[i / 2 % 2];
            round_probabilities();
            drop();
            adds = true;
        };
        block--;
        if (IsBand) {
#pragma unroll 1
            for (; block >= first_block && (Which == is_varied || block >= mask_from); block--) step(true, true);
        }
        if (Which != is_varied) {
#pragma unroll 1
            for (; block >= first_block && (!IsBand || block >= mask_until); block--) step(false, false);
        }
        if (Which == is_band) {
#pragma unroll 1
            for (; block >= first_block; block--) step(false, true);
        }
        const f32 own_scale = Which == is_varied ? score_scale : p.scale;
        f32 scale[2], lse[2];
        auto finish_sums = [&]() {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                sum[h] += __shfl_xor_sync(~0u, sum[h], 1);
                sum[h] += __shfl_xor_sync(~0u, sum[h], 2);
                // The sum of a row without keys is 0. NaN stays NaN.
                scale[h] = sum[h] == 0 ? 0.0f : __frcp_rn(sum[h]);
                if (Which == is_varied) scale[h] *= varied->options.dropout_scale;
                lse[h] = sum[h] == 0 ? -infinity() : fmaf(maximum[h], own_scale, log2_approximate(sum[h]) * LN_2);
            }
        };
        if constexpr (Storage::q_buffers == 1) {
            wait_for_v();
            issue_output(adds);
            finish_sums();
            wgmma_wait<0>();
            pin(o);
            finish_v();
            for (; skipped_before > 0; skipped_before--) {
                skip_k();
                skip_v();
            }
            if (Which == is_varied) tile = read_tile<Storage, Which>(base, q);
            store(tile, lse, scale, false);
            finish_q();
            next_tile();
        } else {
            finish_q();
            wait_for_v();
            issue_output(adds);
            // The producer may need the stages of the blocks before these to load the next tile.
            const bool has_released_v = IsBand && skipped_before > 0;
            if (has_released_v) {
                wgmma_wait<0>();
                finish_v();
                for (; skipped_before > 0; skipped_before--) {
                    skip_k();
                    skip_v();
                }
            }
            const Tile last = tile;
            // The first scores of the next tile, before this one is stored. More skipped blocks would need the stage of V that is in use.
            next_tile();
            begun = tile.row >= 0 && block >= first_block && skipped_after <= 1;
            if (begun) {
                if (skipped_after > 0) skip_k();
                wait_for_k();
                wait_for_turn();
            }
            issue_scores();  // On stale data if not begun.
            if (begun) end_turn();
            wgmma_wait<1>();
            pin(o);
            if (!has_released_v) finish_v();
            if (begun && skipped_after > 0) skip_v();
            finish_sums();
            store(last, lse, scale, false);
            wgmma_wait<0>();
        }
    }
    if (consumer == 0) named_barrier(1, 256);  // The last turn, which nobody takes.
    if (thread == 0) stores_read<0>();
}

template <int D, int Consumers, int Keys, int Stages, int Which>
__device__ inline void forward(const TensorMap* q, const TensorMap* k, const TensorMap* v, const TensorMap* o,
                               const ForwardProblem& p, const VariedProblem* varied) {
    typedef SharedStorage<D, Consumers, Keys, Stages, Which> Storage;
    const u32 base = (shared_address(shared_memory) + 1023) & ~1023u;
    // The shuffle tells the compiler that all threads of a warp have the same value.
    const u32 warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0);
    if (threadIdx.x == 0) {
        for (int i = 0; i < (int)Storage::q_buffers; i++) {
            barrier_initialise(base + Storage::q_full + 8 * i, 1);
            barrier_initialise(base + Storage::q_empty + 8 * i, Consumers + (Which == is_varied ? 32 : 0));
        }
        for (int i = 0; i < Stages; i++) {
            barrier_initialise(base + Storage::k_full + 8 * i, 1);
            barrier_initialise(base + Storage::v_full + 8 * i, 1);
            barrier_initialise(base + Storage::k_empty + 8 * i, Consumers);
            barrier_initialise(base + Storage::v_empty + 8 * i, Consumers);
            if (Which == is_varied) barrier_initialise(base + Storage::v_clean + 8 * i, 32);
        }
        barriers_initialised();
        prefetch_map(q);
        prefetch_map(k);
        prefetch_map(v);
    }
    __syncthreads();
    constexpr int producer_registers = Which == is_varied && Consumers == 2 ? 40 : 32;
    constexpr int consumer_registers = Consumers == 2 ? 232 : 160;
    if (warpgroup == 0) {
        registers_down_to<producer_registers>();
        if (threadIdx.x == 0) produce<D, Consumers, Keys, Stages, Which>(base, q, k, v, p, varied);
        if (Which == is_varied && threadIdx.x / 32 == 1) clean<D, Consumers, Keys, Stages, Which>(base, threadIdx.x % 32, p);
        if (Which == is_varied && threadIdx.x / 32 == 2 && varied->options.sequences) {
            const i32 sequences = p.all_heads / p.heads;
            for (i32 index = blockIdx.x * 32 + threadIdx.x % 32; index < sequences; index += gridDim.x * 32) {
                check_sequence(varied->options, p.band, index);
            }
        }
    } else {
        registers_up_to<consumer_registers>();
        consume<D, Consumers, Keys, Stages, Which>(base, warpgroup - 1, o, p, varied);
    }
}

}  // namespace

// Consumers, keys of a block and stages of each head dimension.
#define CONFIGURATION_64 3, 128, 3
#define CONFIGURATION_128 2, 128, 2
#define CONFIGURATION_192 2, 112, 2
#define CONFIGURATION_256 2, 80, 2
#define THREADS_64 512
#define THREADS_128 384
#define THREADS_192 384
#define THREADS_256 384
#define ENTRY(element, dimension, name, Problem, problem, varied)                                              \
    extern "C" __global__ void __launch_bounds__(THREADS_##dimension, 1) attention_forward_##element##_##dimension##_##name( \
        const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k, const __grid_constant__ TensorMap v,  \
        const __grid_constant__ TensorMap o, const __grid_constant__ Problem p) {                                       \
        forward<dimension, CONFIGURATION_##dimension, is_##name>(&q, &k, &v, &o, problem, varied);                       \
    }
#define KERNELS(element, dimension)                              \
    ENTRY(element, dimension, full, ForwardProblem, p, nullptr)  \
    ENTRY(element, dimension, band, ForwardProblem, p, nullptr)  \
    ENTRY(element, dimension, varied, VariedProblem, p.problem, &p)

// Each image has one head dimension, so that the first attention of a process loads no others. The CPU emulation (csrc/emulation)
// compiles all.
#ifdef DIMENSION
KERNELS(ELEMENT, DIMENSION)
#else
KERNELS(ELEMENT, 64)
KERNELS(ELEMENT, 128)
KERNELS(ELEMENT, 192)
KERNELS(ELEMENT, 256)
#endif
