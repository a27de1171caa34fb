// The first kernel of attention_backward.cu: the delta and the LSE of each row, the counts of additions, and the rows of dQ that are zeros.
#pragma once
#include "attention.cuh"

// Exactly `attention::hopper::RowsProblem` of the Rust side.
struct RowsProblem {
    const ELEMENT *o, *d_o;  // Strides in elements; the head dimension is contiguous, and rows begin at multiples of 16 bytes.
    ELEMENT* dq;
    const f32* forward_lse;
    f32 *lse, *delta;
    u32* progress;
    i64 o_batch, o_head, o_row, do_batch, do_head, do_row, dq_batch, dq_head, dq_row;
    Band band;              // That of the arrays.
    Variations variations;  // Zeros where no option is set.
    i32 heads, padded, dimension;
};

// Eight elements.
struct alignas(16) Words {
    u32 word[4];
};

// D / 8 threads compute the delta of a row.
template <int D>
__device__ inline void prepare(const RowsProblem& p) {
    const i32 blocks_of_head = p.padded * (D / 64) / 32, head_of_all = blockIdx.x / blocks_of_head;
    const i32 row = blockIdx.x % blocks_of_head * (2048 / D) + threadIdx.x / (D / 8), column = threadIdx.x % (D / 8) * 8;
    const i32 head = head_of_all % p.heads, batch = head_of_all / p.heads;
    const bool is_inside = column < p.dimension;
    const Sequence of = sequence_at(p.variations, p.band, batch);
    const i32 map_batch = p.variations.is_packed ? 0 : batch, first = of.first_query, queries = of.queries;
    if (p.variations.sequences && head == 0 && row == 0 && column == 0) check_sequence(p.variations, p.band, batch);
    f32 delta = 0;
    if (row < queries && is_inside) {
        const Words o = *(const Words*)(p.o + map_batch * p.o_batch + head * p.o_head + (first + row) * p.o_row + column);
        const Words d_o = *(const Words*)(p.d_o + map_batch * p.do_batch + head * p.do_head + (first + row) * p.do_row + column);
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
        const i64 from = ((i64)map_batch * p.heads + head) * p.band.queries + first + row;
        const f32 lse = row < queries ? p.forward_lse[from] : -infinity();
        p.delta[to] = delta;
        // Rows behind the last one, and rows without keys, have probabilities of 0.
        p.lse[to] = lse == -infinity() ? infinity() : lse * LOG2_E;
        if (row % 64 == 0) p.progress[4 + to / 32] = p.progress[4 + to / 32 + 1] = 0;
        if (to == 0) p.progress[0] = 0;
    }
    // Rows without keys have no gradient, and those of a batch behind its sequence neither.
    const i32 rows_without_keys = of.keys > 0 ? min(queries - of.keys - p.band.after, queries) : queries;
    const bool is_behind = !p.variations.is_packed && row >= queries && row < p.band.queries;
    if (is_inside && (row < rows_without_keys || is_behind)) {
        *(Words*)(p.dq + map_batch * p.dq_batch + head * p.dq_head + (first + row) * p.dq_row + column) = Words{};
    }
}
