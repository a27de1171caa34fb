// The epilogue and the stores of gemm_wgmma.cu: it finishes the accumulators of a tile, rounds them, and stores them through shared memory.
// "Finish" means: apply the epilogue to.
//
// Invariants: elements are finished in f32. The general path computes gelu and silu with exp2, all others with tanh.approx. Derivatives
// have one path, for tiles whose columns are all inside C; src/gemm/wgmma/mod.rs selects no other tiles for them.
#pragma once
#include "epilogue.cuh"
#include "hopper.cuh"
#include "mma.cuh"
#include "vectors.cuh"
#include "wgmma_problem.cuh"

namespace {

// A consumer's share of a tile of C: 64 rows from `row` on, and all columns of the tile, which begins at `column`.
struct OutputTile {
    i32 matrix, row, column;
};

// C or aux, which has the layout of C: its memory and its tensor map.
struct OutputMatrix {
    const TensorMap* map;
    void* elements;
};

// C and aux are stored by TMA, by threads, or (f32) by the one that `store_bytes` of the parameters selects at run time.
enum StoreMode : int { by_tma_or_threads, by_tma, by_threads };

// The two staging buffers of a consumer, used alternately: 64 rows of 128 bytes each, in the 128-byte swizzle of C's map: 16-byte chunk i
// of row r is stored as chunk i ^ (r % 8). A buffer's cycle: `acquire`, write its elements, `store`.
template <StoreMode Mode>
struct OutputStaging {
    const GemmParameters& parameters;
    const OutputMatrix c, aux;
    u32 thread;   // The thread's index in the warpgroup.
    u32 buffers;  // The address of the first buffer; the second one follows.
    u32 next;     // The offset of the buffer that was acquired last: 0 or `staging_bytes`.
    u32 loaded;   // The address of the first barrier of `load_aux`; those of the other parts follow.

    // Stores a buffer by threads, from column `at` of C on. Adjacent threads store adjacent words of a row. A thread loads `Batch` words
    // from shared memory before it stores them.
    template <typename Word, typename Element, int Batch>
    __device__ void store_words(u32 buffer, void* elements, const OutputTile& output, i32 at) const {
        constexpr u32 across = 128 / sizeof(Word), rows_at_once = 128 / across;
        i32 own = thread;
        forget(own);
        const u32 x = own % across * sizeof(Word);
        if (at + (i32)(x / sizeof(Element)) >= parameters.n) return;
        const u32 rows = max(0, min(64, parameters.m - output.row));
        const i64 first = output.matrix * parameters.c_matrix + (i64)output.row * parameters.c_row + at;
        unsigned char* const to = (unsigned char*)((Element*)elements + first) + x;
#pragma unroll 1
        for (u32 y = own / across; y < rows; y += Batch * rows_at_once) {
            Word words[Batch];
#pragma unroll
            for (u32 i = 0; i < Batch; i++) {
                const u32 of = y + i * rows_at_once;
                from_shared(buffer + of * 128 + (((x / 16) ^ (of % 8)) * 16) + x % 16, words[i]);
            }
#pragma unroll
            for (u32 i = 0; i < Batch; i++) {
                const u32 of = y + i * rows_at_once;
                if (of < rows) *(Word*)(to + (i64)of * parameters.c_row * sizeof(Element)) = words[i];
            }
        }
    }

    // Returns the next buffer once TMA has read its earlier contents. Only the latest store may still be reading, from the other buffer.
    __device__ u32 acquire() {
        if (thread == 0) stores_read<1>();
        named_barrier(warpgroup_barrier(), 128);
        next ^= staging_bytes;
        return buffers + next;
    }

    // Returns the next buffer as scratch memory that is valid until `acquire`, once TMA has read both buffers.
    __device__ u32 acquire_scratch() const {
        if (thread == 0) stores_read<0>();
        named_barrier(warpgroup_barrier(), 128);
        return buffers + (next ^ staging_bytes);
    }

    // Stores a buffer that the warpgroup has written to 128 bytes of each row of C or aux, from column `at` on.
    template <typename Element, int Batch>
    __device__ void store(u32 buffer, const OutputMatrix& to, const OutputTile& output, i32 at) const {
        if (Mode == by_tma || (Mode == by_tma_or_threads && parameters.store_bytes == 16)) {
            publish_to_copies();
            named_barrier(warpgroup_barrier(), 128);
            if (thread != 0) return;
            if (parameters.evict_first) {
                store_box_evict_first(to.map, buffer, at, output.row, output.matrix);
            } else {
                store_box(to.map, buffer, at, output.row, output.matrix);
            }
            return;
        }
        named_barrier(warpgroup_barrier(), 128);
        if (parameters.store_bytes == 8) {
            store_words<u64, Element, Batch>(buffer, to.elements, output, at);
        } else if (parameters.store_bytes == 4) {
            store_words<u32, Element, Batch>(buffer, to.elements, output, at);
        } else {
            store_words<u16, Element, Batch>(buffer, to.elements, output, at);
        }
    }

    // Writes 64 columns of 16 bits into a buffer. two(i) returns elements d[2 i] and d[2 i + 1] of the thread, in the layout of wgmma.cuh,
    // packed into a register.
    template <typename Two>
    __device__ void put(u32 buffer, Two two) const {
        const u32 place = row_of_blocks(buffer);
#pragma unroll
        for (int run = 0; run < 4; run++) {
            // Four 8 x 8 blocks: the upper and lower 8 rows of 8 columns, then those of the next 8 columns.
            const u32 block[4] = {two(4 * run), two(4 * run + 1), two(4 * run + 2), two(4 * run + 3)};
            blocks_to_shared(place ^ (32 * run), block);
        }
    }

    // Reads what `put` writes: two[i] gets what it takes from two(i).
    __device__ void get(u32 buffer, u32 (&two)[16]) const {
        const u32 place = row_of_blocks(buffer);
#pragma unroll
        for (int run = 0; run < 4; run++) blocks_from_shared<false>(two + 4 * run, place ^ (32 * run));
    }

    // Loads 64 columns of aux, a part of the tile, into the buffer of the part, of which there are two. One thread calls it.
    __device__ void load_aux(int part, const OutputTile& of) const {
        const u32 barrier = loaded + 8 * part;
        barrier_expect(barrier, staging_bytes);
        copy_box(buffers + part % 2 * staging_bytes, aux.map, barrier, of.column + 64 * part, of.row, of.matrix);
    }

    // Loads the first parts of aux, once TMA has read both buffers. The warpgroup has written them for the last time.
    template <int Parts>
    __device__ void load_first_aux(const OutputTile& of) const {
        if (thread != 0) return;
        stores_read<0>();
        load_aux(0, of);
        if (Parts > 1) load_aux(1, of);
    }

   private:
    // The address of the thread's row of 8 x 8 blocks, of columns 0 to 15.
    __device__ u32 row_of_blocks(u32 buffer) const {
        // `forget` makes the compiler compute the address again in each call, because no register is free to hold it.
        i32 own = thread;
        forget(own);
        const u32 lane = own % 32, row = own / 32 * 16 + lane % 16;
        return buffer + row * 128 + ((lane / 16) ^ (row % 8)) * 16;
    }
};

// The functions x s with s = 1 / (1 + exp(-v)): gelu with v = x (line + cube x^2), silu with v = x. Numbers that differ are
// variables, so that derivatives of both are the same instructions.
struct Sigmoid {
    f32 largest_square, exponent, line;  // No x^2 beyond it counts: 0 without a cube. `exponent` is -line / ln 2.

    // s + x s (1 - s) dv/dx. Both approximations, because tanh.approx would be off by up to 2^-8: its error is multiplied by
    // x dv/dx. No intermediate result is infinite for a finite x.
    __device__ f32 derivative(f32 x) const {
        const f32 square = fminf(x * x, largest_square);
        const f32 s = reciprocal_approximate(1.0f + exp2_approximate(x * fmaf(square, -0.10294324f, exponent)));
        return fmaf(x * s, (1.0f - s) * fmaf(square, 0.21406445f, line), s);
    }
};

__device__ inline Sigmoid sigmoid_of(i32 activation) {
    if (activation == silu_derivative_code) return {0.0f, -1.4426950f, 1.0f};
    return {1e30f, -2.3022082f, 1.5957691f};
}

// Returns the sum times the derivative of relu at x, which is 0 for x <= 0.
__device__ inline f32 times_relu_derivative(f32 sum, f32 x) { return x <= 0 ? 0.0f : sum; }

// Returns true if the epilogue multiplies by the derivative of an activation.
__device__ inline bool is_derivative(const Epilogue& epilogue) { return epilogue.activation >= first_derivative_code; }

// Returns one of the two elements of a register, widened.
__device__ inline f32 half_of(u32 two, int high) {
    ELEMENT element;
    element.bits = (u16)(high ? two >> 16 : two);
    return widened(element);
}

// A tile that is finished, rounded to 16 bits and not stored yet. Each of the first k steps of the next tile stores 64 columns of it, a
// part. The functions `round_and_hold...` apply the rest of the epilogue to the accumulators d and round them.
template <int Columns, StoreMode Mode>
struct RoundedTile {
    enum : int { registers = Columns / 4, registers_of_part = 16, parts = Columns / 64, no_tile = -1 };

    u32 two[registers];  // Register i holds elements d[2 i] and d[2 i + 1], in the layout of wgmma.cuh.
    OutputTile output;       // Its column is `no_tile` if there is no tile.

    __device__ RoundedTile() { clear(); }

    // Clearing the registers ends the lifetime of their values, so that they need not be kept while a partial is stored.
    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < registers; i++) two[i] = 0;
        output = {0, 0, no_tile};
    }

    // Rounds d as it is.
    __device__ void round_and_hold(const f32 (&d)[Columns / 2], const OutputTile& from) {
#pragma unroll
        for (int j = 0; j < Columns / 8; j++) round(d, j);
        output = from;
    }

    // Rounds gelu(d + bias by column). `half_bias` is the address of bias / 2 in shared memory (`stage_half_bias`).
    __device__ void round_and_hold_gelu(f32 (&d)[Columns / 2], const OutputTile& from, u32 half_bias) {
        half_bias += threadIdx.x % 4 * 8;
#pragma unroll
        for (int j = 0; j < Columns / 8; j++) {
            f32 half[2];
            from_shared(half_bias + 32 * j, half);
#pragma unroll
            for (int i = 0; i < 4; i++) d[4 * j + i] = gelu_of_half_to_round(fmaf(d[4 * j + i], 0.5f, half[i % 2]));
            round(d, j);
        }
        output = from;
    }

    // Rounds gelu(d + bias by column) and stores the argument of gelu in aux, 64 columns at a time: TMA stores them while threads compute
    // their gelu.
    __device__ void round_and_hold_gelu_storing_aux(f32 (&d)[Columns / 2], const OutputTile& from, OutputStaging<Mode>& staging) {
        const ELEMENT* const bias = (const ELEMENT*)staging.parameters.epilogue.bias + from.column + threadIdx.x % 4 * 2;
#pragma unroll
        for (int part = 0; part < parts; part++) {
            const u32 buffer = staging.acquire();
#pragma unroll
            for (int j = 8 * part; j < 8 * part + 8; j++) {
                Pack<ELEMENT, 2> two;
                load_pack(two, bias + 8 * j);
#pragma unroll
                for (int i = 0; i < 4; i++) d[4 * j + i] += widened(two.item[i % 2]);
            }
            staging.put(buffer, [&](int i) { return rounded(d[32 * part + 2 * i], d[32 * part + 2 * i + 1]); });
            staging.template store<u16, 1>(buffer, staging.aux, from, from.column + 64 * part);
#pragma unroll
            for (int j = 8 * part; j < 8 * part + 8; j++) {
#pragma unroll
                for (int i = 4 * j; i < 4 * j + 4; i++) d[i] = gelu_of_half_to_round(0.5f * d[i]);
                round(d, j);
            }
        }
        output = from;
    }

    // Rounds d times the derivative of the activation at the pre-activation, which `load_first_aux` has begun to load. `parity` is that
    // of the barriers' phases.
    __device__ void round_and_hold_derivative(f32 (&d)[Columns / 2], const OutputTile& from, const OutputStaging<Mode>& staging,
                                              u32 parity) {
        const i32 activation = staging.parameters.epilogue.activation;
        const Sigmoid sigmoid = sigmoid_of(activation);
#pragma unroll
        for (int part = 0; part < parts; part++) {
            u32 x[16];
            barrier_wait(staging.loaded + 8 * part, parity);
            staging.get(staging.buffers + part % 2 * staging_bytes, x);
            if (part + 2 < parts) {
                named_barrier(warpgroup_barrier(), 128);
                if (staging.thread == 0) staging.load_aux(part + 2, from);
            }
            if (activation == relu_derivative_code) {
#pragma unroll
                for (int i = 0; i < 32; i++) d[32 * part + i] = times_relu_derivative(d[32 * part + i], half_of(x[i / 2], i % 2));
            } else {
#pragma unroll
                for (int i = 0; i < 32; i++) d[32 * part + i] *= sigmoid.derivative(half_of(x[i / 2], i % 2));
            }
#pragma unroll
            for (int j = 8 * part; j < 8 * part + 8; j++) round(d, j);
        }
        output = from;
    }

    // Rounds the thread's elements of columns 8 j to 8 j + 7.
    __device__ void round(const f32 (&d)[Columns / 2], int j) {
        two[2 * j] = rounded(d[4 * j], d[4 * j + 1]);
        two[2 * j + 1] = rounded(d[4 * j + 2], d[4 * j + 3]);
    }

    // Stores 64 columns of the tile, if there is one. After the last part there is none.
    __device__ void store(int part, OutputStaging<Mode>& staging) {
        if (output.column == no_tile) return;
        const u32 buffer = staging.acquire();
        staging.put(buffer, [&](int i) { return two[registers_of_part * part + i]; });
        staging.template store<u16, 8>(buffer, staging.c, output, output.column + 64 * part);
        if (part == parts - 1) output.column = no_tile;
    }
};

// Prefetches the bias of a tile's columns into the L1 cache, a line of 128 bytes a thread.
template <int Columns>
__device__ inline void prefetch_bias(const GemmParameters& parameters, i32 column) {
    const i32 of = column + (i32)(threadIdx.x % 32) * 64;
    if (of < min(column + Columns, parameters.n)) prefetch((const ELEMENT*)parameters.epilogue.bias + of);
}

// Stores bias / 2 of a tile's columns in shared memory, as f32, and returns its address, so that `round_and_hold_gelu` need not widen and
// halve the bias.
template <int Columns, StoreMode Mode>
__device__ inline u32 stage_half_bias(const GemmParameters& parameters, const OutputStaging<Mode>& staging, i32 column) {
    const u32 half_bias = staging.acquire_scratch(), first = threadIdx.x % 128 * 2;
    if (first < Columns) {
        Pack<ELEMENT, 2> two;
        load_pack(two, (const ELEMENT*)parameters.epilogue.bias + column + first);
        const f32 half[2] = {0.5f * widened(two.item[0]), 0.5f * widened(two.item[1])};
        to_shared(half_bias + first * 4, half);
    }
    named_barrier(warpgroup_barrier(), 128);
    return half_bias;
}

// d = scale (d + bias by column). `scale` is a power of two, so there is one rounding. Aligned pairs of elements of the bias are loaded at
// once. Columns outside of C get the last column's bias, and are not stored.
template <int Columns>
__device__ inline void add_bias_of_columns(f32 (&d)[Columns / 2], f32 scale, const GemmParameters& parameters, i32 column) {
    const ELEMENT* const bias = (const ELEMENT*)parameters.epilogue.bias;
    const i32 first = column + threadIdx.x % 4 * 2;
    const ELEMENT* const own = bias + first;
    auto add = [&](int j, const Pack<ELEMENT, 2>& two) {
#pragma unroll
        for (int i = 0; i < 4; i++) d[4 * j + i] = fmaf(d[4 * j + i], scale, widened(two.item[i % 2]) * scale);
    };
    if (first + Columns <= parameters.n && (u64)own % 4 == 0) {
#pragma unroll
        for (int j = 0; j < Columns / 8; j++) {
            Pack<ELEMENT, 2> two;
            load_pack(two, own + 8 * j);
            add(j, two);
        }
    } else {
#pragma unroll
        for (int j = 0; j < Columns / 8; j++) {
            Pack<ELEMENT, 2> two;
            two.item[0] = bias[min(first + 8 * j, parameters.n - 1)];
            two.item[1] = bias[min(first + 8 * j + 1, parameters.n - 1)];
            add(j, two);
        }
    }
}

// The column epilogue (bias by column, aux, activation), as training uses it, on all elements of a tile before they are rounded to 16
// bits. The warpgroup issues no products meanwhile, so the code is short: no bounds checks, and one fma for each element adds the
// bias and halves the sum for `gelu_of_half_to_round` and silu.
template <int Columns, StoreMode Mode>
__device__ inline void apply_column_epilogue(f32 (&d)[Columns / 2], const GemmParameters& parameters,
                                             const OutputTile& output, OutputStaging<Mode>& staging) {
    const Epilogue& epilogue = parameters.epilogue;
    const bool stores_aux = epilogue.aux;
    const bool is_gelu = epilogue.activation == gelu_code, takes_half = is_gelu || epilogue.activation == silu_code;
    const f32 scale = takes_half && !stores_aux ? 0.5f : 1.0f;
    if (epilogue.bias) {
        add_bias_of_columns<Columns>(d, scale, parameters, output.column);
    } else if (scale != 1.0f) {
#pragma unroll
        for (int i = 0; i < Columns / 2; i++) d[i] *= scale;
    }
    if (stores_aux) {
#pragma unroll
        for (int part = 0; part < Columns / 64; part++) {
            const u32 buffer = staging.acquire();
            staging.put(buffer, [&](int i) { return rounded(d[32 * part + 2 * i], d[32 * part + 2 * i + 1]); });
            staging.template store<u16, 1>(buffer, staging.aux, output, output.column + 64 * part);
        }
    }
    if (!takes_half) {
        activate(epilogue, d);
        return;
    }
    if (stores_aux) {
#pragma unroll
        for (int i = 0; i < Columns / 2; i++) d[i] *= 0.5f;
    }
    if (is_gelu) {
#pragma unroll
        for (int i = 0; i < Columns / 2; i++) d[i] = gelu_of_half_to_round(d[i]);
    } else {
#pragma unroll
        for (int i = 0; i < Columns / 2; i++) d[i] = silu_of_half_to_round(d[i]);
    }
}

// The general epilogue, in a loop over 64 columns that rotates the accumulators: each turn finishes the first 64 columns of d and moves
// them to its end. (Registers cannot be indexed by a variable, and unrolled code would be large.)
template <typename Element, int Columns, StoreMode Mode>
__device__ inline void apply_general_epilogue(f32 (&d)[Columns / 2], const GemmParameters& parameters, const OutputTile& output,
                                   const OutputStaging<Mode>& staging) {
    const Epilogue& epilogue = parameters.epilogue;
    const i32 first_row = output.row + staging.thread / 32 * 16 + staging.thread % 32 / 4;
    const i64 matrix = output.matrix * parameters.c_matrix;
#pragma unroll 1
    for (i32 at = output.column; at < output.column + Columns; at += 64) {
        f32 numbers[32];
#pragma unroll
        for (int i = 0; i < 32; i++) numbers[i] = d[i];
        auto where = [&](int i, i32& row, i32& column, i64& place) {
            row = first_row + i / 2 % 2 * 8;
            column = at + 8 * (i / 4) + 2 * (staging.thread % 4) + i % 2;
            place = matrix + row * parameters.c_row + column;
            return row < parameters.m && column < parameters.n;
        };
        if (parameters.beta != 0.0f) add_beta_c((const Element*)staging.c.elements, parameters.beta, numbers, where);
        apply_epilogue<Element>(epilogue, numbers, where);
#pragma unroll
        for (int i = 0; i < Columns / 2 - 32; i++) d[i] = d[i + 32];
#pragma unroll
        for (int i = 0; i < 32; i++) d[Columns / 2 - 32 + i] = numbers[i];
    }
}

// Stores a tile of f32 at once, 32 columns (128 bytes) a staging buffer.
template <int Columns, StoreMode Mode>
__device__ inline void store_f32(const f32 (&d)[Columns / 2], const OutputTile& output, OutputStaging<Mode>& staging) {
    const u32 g = staging.thread % 32 / 4, q = staging.thread % 4;
#pragma unroll
    for (int part = 0; part < Columns / 32; part++) {
        const i32 at = output.column + 32 * part;
        const u32 buffer = staging.acquire();
#pragma unroll
        for (int j = 0; j < 4; j++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const u32 in_row = (((2 * j + q / 2) ^ g) * 16) + q % 2 * 8, row = staging.thread / 32 * 16 + g + 8 * h;
                const u32 place = buffer + row * 128 + in_row;
                const f32 two[2] = {d[16 * part + 4 * j + 2 * h], d[16 * part + 4 * j + 2 * h + 1]};
                to_shared(place, two);
            }
        }
        staging.template store<f32, 1>(buffer, staging.c, output, at);
    }
}

}  // namespace
