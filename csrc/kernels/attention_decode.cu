// One to a few queries of each sequence against a long cache of keys and values: result = softmax(scale Q K^T) V. Elements are ELEMENT
// (-DELEMENT=bf16 or f16) and head dimensions multiples of 8 up to DIMENSION (64, 128 or 256). Sums are f32.
//
// Before it attends, a sequence's new keys can be rotated (rotary positions) and written to the cache with its new values; its queries are
// rotated too. So a step of generation has no other kernel between the products of its projections and that of its result.
//
// Entry: attention_decode_<ELEMENT>_<DIMENSION>(DecodeProblem).
//
// Launch: a grid of (splits, key heads x blocks of rows, batch), 256 threads, and the dynamic shared memory that src/attention/decode.rs
// computes. Rows of queries, keys and values are contiguous; those of keys and values begin at multiples of 16 bytes.
//
// Algorithm: split-K decoding as FlashDecoding (Dao et al. 2023). A block has up to 32 rows (16 of 256 columns): a row is a query of one of the query heads
// that share a key head, so their keys are loaded once. The keys are divided by their positions into chunks of 256, and a chunk has
// one softmax: each warp computes the scores of its 16 of 128 keys (mma.sync), the block reduces maxima and sums in shared memory, and
// each warp then multiplies all probabilities by its columns of the values, which needs no reduction. Chunks are folded in their
// order into groups of 8, and groups in theirs into the result. A split is a chunk, or a group where there are enough of them for
// the device. The last block of a row block to arrive folds the splits.
//
// Shared memory: a ring of stages of 128 keys or 128 values (64 of 256 columns), filled by cp.async; the queries; the probabilities of a chunk; maxima and sums
// by warp. 16-byte chunk i of row r is stored as chunk i ^ (r % 8), so neither copies nor ldmatrix have bank conflicts.
//
// Invariants: the result of a sequence depends on its queries, its keys and its length alone: neither the batch, nor the capacity of the
// cache, nor the number of splits changes a bit, because chunks and groups begin at fixed positions and are folded in order. `arrivals`
// is 0 before and after each launch.
//
// | version | change | share of the copy's bandwidth, 32/8 heads of 128, 8192 keys, batch 1; 64, bf16, H200 |
// |---|---|---|
// | 1 | units of 64 keys, one thread folds all splits of an element | 0.28; 0.65 |
// | 2 | units of 128 keys, factors of the splits by one thread a row, one tile of rows by itself | 0.31; 1.02 |
#include "ampere.cuh"
#include "instructions.cuh"
#include "mma.cuh"
#include "numbers.cuh"

// Outside of the anonymous namespace, because the compiler would put a random identifier into its name, a new one in each compilation.
extern __shared__ unsigned char shared_memory[];

// 1 / ln 2.
#define LOG2_E 1.4426950408889634f

// Exactly `DecodeParameters` of src/attention/decode.rs. Strides are in elements, of (batch, head, position).
struct alignas(16) DecodeProblem {
    const ELEMENT* queries;
    const ELEMENT* new_keys;  // Null if the cache has all keys; else one position for each query.
    const ELEMENT* new_values;
    ELEMENT* keys;
    ELEMENT* values;
    ELEMENT* result;
    const f32* cosines;  // (positions, half) and (positions, 2 half), the sines of the first half negative; null without rotation.
    const f32* sines;
    const i32* lengths;  // The keys of each sequence, with the new ones; null for `capacity`.
    f32* partials;       // For each split its maxima and sums of the rows, and then their sums of values.
    u32* arrivals;
    i64 query_strides[3], new_key_strides[3], new_value_strides[3], key_strides[3], value_strides[3], result_strides[3];
    i32 heads_per_key, queries_per_head, rows, capacity, dimension, half;
    i32 before, after;  // The band: keys before and after a query's own position; at most 2^30 each.
    i32 chunks_of_split;
    f32 scale, soft_cap;  // A soft cap of 0 is none.
};

namespace {

enum : int {
    threads = 256,
    warps = 8,
    row_tiles = DIMENSION == 256 ? 1 : 2,  // Registers hold no more.
    block_rows = 16 * row_tiles,
    chunk_keys = 256,
    unit_keys = DIMENSION == 256 ? 64 : 128,
    chunk_units = chunk_keys / unit_keys,
    key_tiles = unit_keys / warps / 8,  // Of a warp in a unit, of 8 keys.
    group_chunks = 8,
    row_bytes = 2 * DIMENSION,
    unit_bytes = unit_keys * row_bytes,
    stages = DIMENSION == 64 ? 5 : 3,
    row_chunks = DIMENSION / 8,
    rows_at_once = threads / row_chunks,  // Rows of a unit that the block copies by one chunk a thread.
    probability_bytes = 2 * chunk_keys,  // Of a row.
    partial_elements = block_rows * (DIMENSION + 2),
    warp_columns = DIMENSION / warps,
    column_tiles = warp_columns / 8,
    score_steps = 4,  // Unrolled.
};

__device__ inline f32 infinity() { return __int_as_float(0x7f800000); }

// Returns the offset of the 16-byte chunk `chunk` of a row, in rows of `bytes`.
__device__ inline u32 swizzled(u32 row, u32 chunk, u32 bytes) { return row * bytes + (chunk ^ (row & 7)) * 16; }

// The running maximum and sum of a softmax, in units of log2.
struct Softmax {
    f32 maximum, sum;
};

// Adds a later softmax to a running one. `kept` and `added` become the factors of their sums of values.
__device__ inline void fold(Softmax& running, const Softmax& later, f32& kept, f32& added) {
    const f32 maximum = fmaxf(running.maximum, later.maximum);
    kept = running.maximum == -infinity() ? 0.0f : exp2_approximate(running.maximum - maximum);
    added = later.maximum == -infinity() ? 0.0f : exp2_approximate(later.maximum - maximum);
    running = {maximum, fmaf(later.sum, added, running.sum * kept)};
}
__device__ inline f32 folded(f32 running, f32 kept, f32 later, f32 added) { return fmaf(later, added, running * kept); }

// One block's share of a problem.
struct Work {
    const DecodeProblem& problem;
    i32 batch, key_head, first_row, rows;  // `rows` of this block.
    i32 length;                            // Keys of the sequence.
    i32 first_new;                         // The position of its first new key; `length` without any.
    i32 first_key, end_key;                // The keys that any of its queries reads.

    __device__ explicit Work(const DecodeProblem& problem) : problem(problem) {
        const i32 row_blocks = (problem.rows + block_rows - 1) / block_rows;
        batch = blockIdx.z;
        key_head = blockIdx.y / row_blocks;
        first_row = blockIdx.y % row_blocks * block_rows;
        rows = min((i32)block_rows, problem.rows - first_row);
        length = problem.lengths ? min(max(problem.lengths[batch], 0), problem.capacity) : problem.capacity;
        first_new = problem.new_keys ? length - problem.queries_per_head : length;
        first_key = first_of(0);
        end_key = end_of(problem.queries_per_head - 1);
    }

    // Rows are ordered by query head, so that the first block of rows has all queries.
    __device__ i32 head(i32 row) const { return key_head * problem.heads_per_key + (first_row + row) / problem.queries_per_head; }
    __device__ i32 query(i32 row) const { return (first_row + row) % problem.queries_per_head; }

    // Returns the first key that a query reads, and the end of its keys.
    __device__ i32 first_of(i32 query) const { return max(0, query + length - problem.queries_per_head - problem.before); }
    __device__ i32 end_of(i32 query) const { return min(length, query + length - problem.queries_per_head + problem.after + 1); }

    // Returns the number of the row block among all.
    __device__ u64 number() const { return (u64)blockIdx.z * gridDim.y + blockIdx.y; }
    // Returns the place of a split's partial: 2 rows numbers of its softmaxes, and rows x DIMENSION sums.
    __device__ f32* partial(i32 split) const {
        return problem.partials + (number() * gridDim.x + split) * partial_elements;
    }
};

// Returns element `at` of a row of the cache's dimension, rotated if its position turns.
__device__ inline ELEMENT rotated(const DecodeProblem& problem, const ELEMENT* row, i32 at, i32 position) {
    if (!problem.cosines || at >= 2 * problem.half || position < 0) return row[at];
    const i32 half = problem.half, pair = at < half ? at : at - half;
    const f32 x = widened(row[at]), partner = widened(row[at < half ? at + half : pair]);
    const f32 cosine = problem.cosines[(i64)position * half + pair], sine = problem.sines[(i64)position * 2 * half + at];
    ELEMENT turned;
    narrow(__fadd_rn(__fmul_rn(x, cosine), __fmul_rn(partner, sine)), turned);
    return turned;
}

// Writes the queries of the block to shared memory, rotated; rows and columns behind the last ones are 0.
__device__ inline void store_queries(const Work& work, unsigned char* to) {
    const DecodeProblem& problem = work.problem;
    const i32 column = threadIdx.x % DIMENSION;
#pragma unroll 4
    for (i32 row = threadIdx.x / DIMENSION; row < (work.rows + 15) / 16 * 16; row += threads / DIMENSION) {
        ELEMENT element = {0};
        if (row < work.rows && column < problem.dimension) {
            const i32 query = work.query(row);
            const ELEMENT* from = problem.queries + work.batch * problem.query_strides[0] +
                                  work.head(row) * problem.query_strides[1] + query * problem.query_strides[2];
            element = rotated(problem, from, column, work.length - problem.queries_per_head + query);
        }
        *(ELEMENT*)(to + swizzled(row, column / 8, row_bytes) + column % 8 * 2) = element;
    }
}

// A unit of keys or values, in the order in which a split takes them.
struct Cursor {
    i32 chunk, unit;
    bool is_value;

    // Returns the units of the chunk that the block reads: from `first` to before `end`.
    __device__ static i32 first(const Work& work, i32 chunk) { return max(0, (work.first_key - chunk * chunk_keys) / unit_keys); }
    __device__ static i32 end(const Work& work, i32 chunk) {
        return min((i32)chunk_units, (work.end_key - chunk * chunk_keys + unit_keys - 1) / unit_keys);
    }

    __device__ static Cursor at(const Work& work, i32 chunk) { return {chunk, first(work, chunk), false}; }
    __device__ void advance(const Work& work) {
        if (++unit < end(work, chunk)) return;
        if (is_value) chunk++;
        is_value = !is_value;
        unit = first(work, chunk);
    }
};

// Begins to copy a unit to its stage. New keys and values come from the projections, and one block writes them to the cache.
__device__ inline void copy_unit(const Work& work, const Cursor& from, u32 stage) {
    const DecodeProblem& problem = work.problem;
    const i64* strides = from.is_value ? problem.value_strides : problem.key_strides;
    ELEMENT* const head = (from.is_value ? problem.values : problem.keys) + work.batch * strides[0] + work.key_head * strides[1];
    const i32 first = from.chunk * chunk_keys + from.unit * unit_keys;
    const i32 row = threadIdx.x / row_chunks, chunk = threadIdx.x % row_chunks;
    // All rows of a thread are equal modulo 8, so they have the chunk at the same place.
    static_assert(rows_at_once % 8 == 0, "each thread copies to rows of one order");
    const u32 to = stage + swizzled(row, chunk, row_bytes);
    const bool is_column = chunk * 8 < problem.dimension;
    const ELEMENT* at = head + (first + row) * strides[2] + chunk * 8;
    const i64 step = rows_at_once * strides[2];
#pragma unroll
    for (i32 i = 0; i < unit_keys / rows_at_once; i++) {
        const i32 key = first + row + i * rows_at_once;
        const bool inside = is_column && key < work.first_new;
        // New ones are written below.
        if (inside || key >= work.length || !is_column) {
            copy_async<16>(to + i * rows_at_once * row_bytes, inside ? at : head, inside);
        }
        at += step;
    }
    if (first + unit_keys <= work.first_new) return;
    const i64* new_strides = from.is_value ? problem.new_value_strides : problem.new_key_strides;
    const ELEMENT* const new_head =
        (from.is_value ? problem.new_values : problem.new_keys) + work.batch * new_strides[0] + work.key_head * new_strides[1];
    const i32 first_new = max(first, work.first_new), end_new = min(first + unit_keys, work.length);
    // By element, because a pair that turns is in two chunks.
#pragma unroll 1
    for (i32 at = threadIdx.x; at < (end_new - first_new) * problem.dimension; at += threads) {
        const i32 key = first_new + at / problem.dimension, column = at % problem.dimension;
        const ELEMENT* const row = new_head + (key - work.first_new) * new_strides[2];
        const ELEMENT element = from.is_value ? row[column] : rotated(problem, row, column, key);
        const u32 to = stage + swizzled(key - first, column / 8, row_bytes) + column % 8 * 2;
        *(ELEMENT*)(shared_memory + (to - shared_address(shared_memory))) = element;
        if (work.first_row == 0) head[key * strides[2] + column] = element;
    }
}

// The factors of the running sums of values and of a split's: in its group, and of the group in the result where it ends.
struct alignas(16) Factors {
    f32 kept, added, all_kept, all_added;
};

// Folds the splits of the block's rows into the result: chunks into groups, and groups into the result, each in order. Several rows and splits
// are folded at a time, one softmax a thread: those of a row by one thread, and then their values by all threads.
template <typename Place>
__device__ inline void fold_splits(const Work& work, i32 first_split, i32 end_split, Place place) {
    enum : int { rows = DIMENSION == 256 ? 4 : 8, splits = threads / rows, at_a_time = 8, of_thread = rows * DIMENSION / threads };
    f32* const maxima = (f32*)shared_memory;
    f32* const sums = maxima + threads;
    Factors* const factors = (Factors*)(sums + threads);
    const i32 splits_of_group = group_chunks / work.problem.chunks_of_split;
    for (i32 first_row = 0; first_row < work.rows; first_row += rows) {
        Softmax all = {-infinity(), 0.0f}, group = {-infinity(), 0.0f};  // Of row `threadIdx.x`.
        f32 values[of_thread] = {}, group_values[of_thread] = {};
        for (i32 first = first_split / splits * splits; first < end_split; first += splits) {
            __syncthreads();
            const i32 own = first + threadIdx.x / rows, own_row = first_row + threadIdx.x % rows;
            if (own >= first_split && own < end_split && own_row < work.rows) {
                const f32* const partial = work.partial(own);
                maxima[threadIdx.x] = partial[own_row];
                sums[threadIdx.x] = partial[block_rows + own_row];
            }
            __syncthreads();
            const i32 begin = max(first_split - first, 0), end = min((i32)splits, end_split - first);
            auto ends_group = [&](i32 i) { return (first + i + 1) % splits_of_group == 0 || first + i + 1 == end_split; };
            if (threadIdx.x < rows && first_row + (i32)threadIdx.x < work.rows) {
                for (i32 i = begin; i < end; i++) {
                    Factors found = {};
                    fold(group, {maxima[i * rows + threadIdx.x], sums[i * rows + threadIdx.x]}, found.kept, found.added);
                    if (ends_group(i)) {
                        fold(all, group, found.all_kept, found.all_added);
                        group = {-infinity(), 0.0f};
                    }
                    factors[i * rows + threadIdx.x] = found;
                }
            }
            __syncthreads();
#pragma unroll 1
            for (i32 from = begin / at_a_time * at_a_time; from < end; from += at_a_time) {
                f32 later[at_a_time][of_thread];
#pragma unroll
                for (i32 i = 0; i < at_a_time; i++) {
#pragma unroll
                    for (i32 e = 0; e < of_thread; e++) {
                        const i32 at = first_row * DIMENSION + e * threads + threadIdx.x;
                        const bool inside = from + i >= begin && from + i < end && at < work.rows * DIMENSION;
                        later[i][e] = inside ? work.partial(first + from + i)[2 * block_rows + at] : 0.0f;
                    }
                }
#pragma unroll
                for (i32 i = 0; i < at_a_time; i++) {
                    if (from + i < begin || from + i >= end) continue;
                    const bool is_end = ends_group(from + i);
#pragma unroll
                    for (i32 e = 0; e < of_thread; e++) {
                        const Factors found = factors[(from + i) * rows + (e * threads + threadIdx.x) / DIMENSION];
                        group_values[e] = folded(group_values[e], found.kept, later[i][e], found.added);
                        if (is_end) {
                            values[e] = folded(values[e], found.all_kept, group_values[e], found.all_added);
                            group_values[e] = 0.0f;
                        }
                    }
                }
            }
        }
        __syncthreads();
        if (threadIdx.x < rows) sums[threadIdx.x] = all.sum;
        __syncthreads();
#pragma unroll
        for (i32 e = 0; e < of_thread; e++) {
            const i32 at = e * threads + threadIdx.x, row = first_row + at / DIMENSION, column = at % DIMENSION;
            const f32 sum = sums[at / DIMENSION];
            if (row < work.rows && column < work.problem.dimension) narrow(sum > 0.0f ? values[e] / sum : 0.0f, place(row)[column]);
        }
    }
}

// Computes the result of a block of up to 16 `Tiles` rows.
template <i32 Tiles>
__device__ inline void decode(const DecodeProblem& problem, const Work& work) {
    const i32 chunks_of_split = problem.chunks_of_split, split = blockIdx.x;
    const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, q = lane % 4;
    const i32 first_chunk = work.first_key / chunk_keys;
    const i32 end_chunk = work.end_key > work.first_key ? (work.end_key + chunk_keys - 1) / chunk_keys : first_chunk;
    const i32 first_split = first_chunk / chunks_of_split, end_split = (end_chunk + chunks_of_split - 1) / chunks_of_split;
    ELEMENT* const result = problem.result + work.batch * problem.result_strides[0];
    auto place = [&](i32 row) {
        return result + work.head(row) * problem.result_strides[1] + work.query(row) * problem.result_strides[2];
    };
    if (end_chunk == first_chunk) {
        // No query reads a key.
        if (split > 0) return;
        for (i32 at = threadIdx.x; at < work.rows * problem.dimension; at += threads) {
            place(at / problem.dimension)[at % problem.dimension] = {0};
        }
        return;
    }
    if (split < first_split || split >= end_split) return;

    unsigned char* const queries = shared_memory + stages * unit_bytes;
    unsigned char* const probabilities = queries + Tiles * 16 * row_bytes;
    f32* const maxima = (f32*)(probabilities + Tiles * 16 * probability_bytes);  // By warp and row.
    f32* const sums = maxima + warps * block_rows;
    u32* const is_last = (u32*)(sums + warps * block_rows);
    const u32 ring = shared_address(shared_memory), query_place = shared_address(queries),
              probability_place = shared_address(probabilities);

    const i32 chunk_begin = max(first_chunk, split * chunks_of_split), chunk_end = min(end_chunk, (split + 1) * chunks_of_split);
    Cursor next = Cursor::at(work, chunk_begin);
    i32 next_stage = 0, stage = 0;
    auto copy_next = [&] {
        if (next.chunk < chunk_end) {
            copy_unit(work, next, ring + next_stage * unit_bytes);
            next.advance(work);
            next_stage = next_stage + 1 == stages ? 0 : next_stage + 1;
        }
        copies_commit();
    };
#pragma unroll 1
    for (i32 i = 0; i < stages - 1; i++) copy_next();
    store_queries(work, queries);

    // Row 16 t + g + 8 h has index 2 t + h.
    Softmax running[2 * Tiles];
    f32 values[Tiles][column_tiles][4];
#pragma unroll
    for (i32 t = 0; t < Tiles; t++) {
        running[2 * t] = running[2 * t + 1] = {-infinity(), 0.0f};
#pragma unroll
        for (i32 c = 0; c < column_tiles; c++) {
#pragma unroll
            for (i32 e = 0; e < 4; e++) values[t][c][e] = 0.0f;
        }
    }
    // Waits for the next unit of the ring, and begins the copy that takes the place of the one before.
    auto wait_for_unit = [&] {
        copies_wait<stages - 2>();
        __syncthreads();
        copy_next();
        const u32 place = ring + stage * unit_bytes;
        stage = stage + 1 == stages ? 0 : stage + 1;
        return place;
    };

    for (i32 chunk = chunk_begin; chunk < chunk_end; chunk++) {
        const i32 first_unit = Cursor::first(work, chunk), end_unit = Cursor::end(work, chunk);
        f32 scores[chunk_units][key_tiles][Tiles][4] = {};
#pragma unroll 1
        for (i32 unit = first_unit; unit < end_unit; unit++) {
            const u32 place = wait_for_unit();
            f32 found[key_tiles][Tiles][4] = {};
#pragma unroll score_steps
            for (i32 k = 0; k < DIMENSION / 16; k += 2 / key_tiles) {
                // Of two tiles of keys their fragments of 16 columns, or of one tile those of 32.
                u32 key[4];
                const u32 key_row = 8 * key_tiles * warp + lane % 8 + (key_tiles == 2 ? lane / 16 * 8 : 0);
                const u32 key_chunk = 2 * k + (key_tiles == 2 ? lane / 8 % 2 : lane / 8);
                blocks_from_shared<false>(key, place + swizzled(key_row, key_chunk, row_bytes));
#pragma unroll
                for (i32 t = 0; t < Tiles; t++) {
#pragma unroll
                    for (i32 step = 0; step < 2 / key_tiles; step++) {
                        u32 query[4];
                        const u32 row = 16 * t + lane / 8 % 2 * 8 + lane % 8;
                        blocks_from_shared<false>(query, query_place + swizzled(row, 2 * (k + step) + lane / 16, row_bytes));
#pragma unroll
                        for (i32 j = 0; j < key_tiles; j++) multiply(found[j][t], query, key + 2 * (step + j));
                    }
                }
            }
            // Registers have no variable index. So the loop, with the code of copies, is there once.
#pragma unroll
            for (i32 at = 0; at < chunk_units; at++) {
#pragma unroll
                for (i32 j = 0; j < key_tiles; j++) {
#pragma unroll
                    for (i32 t = 0; t < Tiles; t++) {
#pragma unroll
                        for (i32 e = 0; e < 4; e++) scores[at][j][t][e] = at == unit ? found[j][t][e] : scores[at][j][t][e];
                    }
                }
            }
        }

        // The softmax of the chunk.
        Softmax own[2 * Tiles];
#pragma unroll
        for (i32 t = 0; t < Tiles; t++) {
#pragma unroll
            for (i32 h = 0; h < 2; h++) {
                f32 maximum = -infinity();
                const i32 row = 16 * t + g + 8 * h, query = work.query(row);
                const i32 first = max(work.first_of(query), chunk * chunk_keys + first_unit * unit_keys);
                const i32 end = work.end_of(query);
#pragma unroll
                for (i32 tile = 0; tile < chunk_units * key_tiles; tile++) {
                    const i32 unit = tile / key_tiles, j = tile % key_tiles;
#pragma unroll
                    for (i32 e = 0; e < 2; e++) {
                        const i32 key = chunk * chunk_keys + unit * unit_keys + 8 * (key_tiles * warp + j) + 2 * q + e;
                        f32& score = scores[unit][j][t][2 * h + e];
                        score *= problem.scale;
                        if (problem.soft_cap != 0.0f) score = problem.soft_cap * tanh_approximate(score / problem.soft_cap);
                        score = key >= first && key < end ? score * LOG2_E : -infinity();
                        maximum = fmaxf(maximum, score);
                    }
                }
                maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffff, maximum, 1));
                maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffff, maximum, 2));
                if (q == 0) maxima[warp * block_rows + row] = maximum;
            }
        }
        __syncthreads();
#pragma unroll
        for (i32 t = 0; t < Tiles; t++) {
#pragma unroll
            for (i32 h = 0; h < 2; h++) {
                const i32 row = 16 * t + g + 8 * h;
                f32 maximum = -infinity(), sum = 0.0f;
#pragma unroll
                for (i32 w = 0; w < warps; w++) maximum = fmaxf(maximum, maxima[w * block_rows + row]);
                own[2 * t + h].maximum = maximum;
                const f32 subtracted = maximum == -infinity() ? 0.0f : maximum;
#pragma unroll
                for (i32 tile = 0; tile < chunk_units * key_tiles; tile++) {
                    const i32 unit = tile / key_tiles, j = tile % key_tiles;
                    ELEMENT pair[2];
#pragma unroll
                    for (i32 e = 0; e < 2; e++) {
                        const f32 probability = exp2_approximate(scores[unit][j][t][2 * h + e] - subtracted);
                        sum += probability;
                        narrow(probability, pair[e]);
                    }
                    const u32 column = unit * unit_keys / 8 + key_tiles * warp + j;
                    const u32 at = swizzled(row, column, probability_bytes) + 4 * q;
                    *(u32*)(probabilities + at) = pair[0].bits | (u32)pair[1].bits << 16;
                }
                sum += __shfl_xor_sync(0xffffffff, sum, 1);
                sum += __shfl_xor_sync(0xffffffff, sum, 2);
                if (q == 0) sums[warp * block_rows + row] = sum;
            }
        }

        // The products with the values. The first unit's barrier also orders probabilities and sums.
        f32 products[Tiles][column_tiles][4] = {};
#pragma unroll 1
        for (i32 unit = first_unit; unit < end_unit; unit++) {
            const u32 place = wait_for_unit();
#pragma unroll 2
            for (i32 k = 0; k < unit_keys / 32; k++) {
                u32 value[column_tiles][4];
#pragma unroll
                for (i32 c = 0; c < column_tiles; c++) {
                    blocks_from_shared<true>(value[c], place + swizzled(32 * k + lane, warp * column_tiles + c, row_bytes));
                }
#pragma unroll
                for (i32 t = 0; t < Tiles; t++) {
#pragma unroll
                    for (i32 step = 0; step < 2; step++) {
                        u32 probability[4];
                        const u32 row = 16 * t + lane / 8 % 2 * 8 + lane % 8;
                        const u32 at = unit * unit_keys / 8 + 4 * k + 2 * step + lane / 16;
                        blocks_from_shared<false>(probability, probability_place + swizzled(row, at, probability_bytes));
#pragma unroll
                        for (i32 c = 0; c < column_tiles; c++) multiply(products[t][c], probability, value[c] + 2 * step);
                    }
                }
            }
        }
#pragma unroll
        for (i32 t = 0; t < Tiles; t++) {
#pragma unroll
            for (i32 h = 0; h < 2; h++) {
                Softmax& later = own[2 * t + h];
                later.sum = 0.0f;
#pragma unroll
                for (i32 w = 0; w < warps; w++) later.sum += sums[w * block_rows + 16 * t + g + 8 * h];
                f32 kept, added;
                fold(running[2 * t + h], later, kept, added);
#pragma unroll
                for (i32 c = 0; c < column_tiles; c++) {
#pragma unroll
                    for (i32 e = 0; e < 2; e++) {
                        f32& value = values[t][c][2 * h + e];
                        value = folded(value, kept, products[t][c][2 * h + e], added);
                    }
                }
            }
        }
    }

    const bool is_alone = end_split - first_split == 1;
    f32* const own_partial = work.partial(split);
#pragma unroll
    for (i32 t = 0; t < Tiles; t++) {
#pragma unroll
        for (i32 h = 0; h < 2; h++) {
            const i32 row = 16 * t + g + 8 * h;
            if (row >= work.rows) continue;
            const Softmax& found = running[2 * t + h];
            if (!is_alone && q == 0 && warp == 0) {
                own_partial[row] = found.maximum;
                own_partial[block_rows + row] = found.sum;
            }
#pragma unroll
            for (i32 c = 0; c < column_tiles; c++) {
#pragma unroll
                for (i32 e = 0; e < 2; e++) {
                    const i32 column = warp * warp_columns + 8 * c + 2 * q + e;
                    const f32 value = values[t][c][2 * h + e];
                    if (!is_alone) {
                        own_partial[2 * block_rows + row * DIMENSION + column] = value;
                    } else if (column < problem.dimension) {
                        // As folded into an empty softmax, which makes -0 of a sum 0.
                        narrow(found.sum > 0.0f ? (value + 0.0f) / found.sum : 0.0f, place(row)[column]);
                    }
                }
            }
        }
    }
    if (is_alone) return;

    __threadfence();
    __syncthreads();
    u32* const arrivals = problem.arrivals + work.number();
    if (threadIdx.x == 0) *is_last = atomicAdd(arrivals, 1u) == (u32)(end_split - first_split - 1);
    __syncthreads();
    if (!*is_last) return;
    if (threadIdx.x == 0) *arrivals = 0;
    __threadfence();
    fold_splits(work, first_split, end_split, place);
}

}  // namespace

#define ENTRY_OF(element, dimension) attention_decode_##element##_##dimension
#define ENTRY(element, dimension) ENTRY_OF(element, dimension)

extern "C" __global__ void __launch_bounds__(threads, 2) ENTRY(ELEMENT, DIMENSION)(const __grid_constant__ DecodeProblem problem) {
    const Work work(problem);
    if (work.rows <= 16) decode<1>(problem, work);
    else decode<row_tiles>(problem, work);
}
