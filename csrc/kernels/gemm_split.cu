// C = alpha A B + beta C with an epilogue (epilogue.cuh) by split-K on the tensor cores of compute capability 9.0, for products with too
// few tiles to fill the device: few rows or columns, small squares, long k. A and B are ELEMENT (-DELEMENT=bf16 or f16), sums
// are f32, C is ELEMENT or f32. One family for each ELEMENT and layout (-DLAYOUT=kk, ks, sk or ss).
//
// Entries: gemm_split_<ELEMENT>_<P><Q>_<rows>x<columns>(map of P, map of Q, C, parameters). P is the operand of which a tile takes
// 64 or 128 rows, Q the one of which it takes 16 to 256: A and B transposed, or with `swapped` B transposed and A. The letters are k
// where k runs along the stored rows, s where m or n does. `SplitKParameters` is the Rust side's (src/gemm/wgmma/split_k.rs).
//
// Launch: 128 threads for the producer and 128 for each 64 rows of P; one cluster of `splits` blocks a tile; `shared_bytes` of dynamic
// shared memory. The tensor maps have three dimensions (contiguous one first, batch last) and a swizzle of 128 bytes. Their boxes:
// k 64 k x `rows` (P) or `columns` (Q); s 64 rows x 64 k.
//
// Algorithm: split-K within a cluster, reduced through distributed shared memory. The blocks of a cluster divide k. One thread of a
// block is the producer; one or two consumer warpgroups multiply 64 rows of P each. All stages load from the start, since
// reading weights at the memory's speed takes that many bytes in flight. Then each block sends every other block the sums of
// that block's rows by bulk copies, adds its own rows in the order of k, and stores them. With programmatic dependent launch
// the barriers are set up while the kernel before ends; all threads wait for that end before they read global memory.
//
// Invariants: sums are added in the order of the blocks' ranks, and the division depends on the sizes and the number of
// multiprocessors alone, so a product gives the same bits on every run on a card. Blocks wait only for blocks of their own cluster,
// which the hardware starts together.
//
// | version | change | bf16 against cuBLAS in the same run, H200 |
// |---|---|---|
// | 1 | sums read from other blocks | 1 x 4096 x 4096 0.82; 64 x 16384 x 16384 0.98; 256^3 0.40 |
// | 3 | programmatic dependent launch | squares of 256, 512: 0.89, 0.75; 1, 64, 128 x 4096 x 4096: 1.09, 0.79, 0.96 |
// | 5 | tiles of 64 rows | 1.22, 1.11; 1.16, 0.95, 1.03 |
// | 6 | two blocks of small tiles a multiprocessor | 1 and 16 x 4096 x 4096: 1.23, 1.24 |
// docs/performance-notes.md has every version and the experiments that lost.
#include "epilogue.cuh"
#include "hopper.cuh"
#include "hopper_pipeline.cuh"
#include "vectors.cuh"
#include "wgmma.cuh"

// Outside of the namespace, which has no name of its own: the compiler would make one up, another one each time.
extern __shared__ unsigned char shared_memory[];

namespace {

struct SplitKParameters {
    i32 m, n, k, batch;
    i64 c_row;      // From a row of C to the next, in elements.
    i64 c_matrix;   // From a matrix of C to the next.
    i32 p_matrix;   // 1, or 0 where all products share one P.
    i32 q_matrix;
    i32 splits;     // Blocks that divide k.
    i32 swapped;    // True where P is B transposed.
    i32 f32_output;    // True where C is f32 instead of ELEMENT.
    i32 aligned_rows;  // True where C's rows begin at multiples of 4 elements.
    f32 alpha, beta;
    Epilogue epilogue;
};

// Enumerators, because constants would become variables of the module.
enum : int {
    depth = 64,     // k of a stage: 128 bytes.
    most_splits = 8,
    vector_width = 4,  // Elements of C in a thread's store.
};

// `Rows` of P and `Columns`, which are rows of Q.
template <int Rows, bool MnMajorQ, int Columns>
struct SharedStorage {
    enum : int {
        consumers = Rows / 64,  // Consumer warpgroups.
        threads = 128 * (1 + consumers),
        p_bytes = Rows * depth * 2,
        // A box of 64 even where fewer are multiplied.
        q_bytes = (MnMajorQ && Columns < 64 ? 64 : Columns) * depth * 2,
        // Two blocks of small tiles share a multiprocessor: memory bounds them, and the next product prefetches its first stages into
        // the L2 cache while the last ones of this product load.
        shares = Rows == 64 && Columns <= 32,
        count = (shares ? 104 << 10 : 224 << 10) / (p_bytes + q_bytes),
        // Stages that are not loading yet when the next product may start.
        left_to_copy = shares ? 5 : 0,
    };
};

// The block's tile: its first row of P and of Q, its matrix, and its part of k in stages.
struct Tile {
    i32 p, q, matrix, first, end;

    __device__ Tile(const SplitKParameters& parameters, u32 rank, i32 rows, i32 columns) {
        const u32 of_p = ((parameters.swapped ? parameters.n : parameters.m) + rows - 1) / rows;
        const u32 of_q = ((parameters.swapped ? parameters.m : parameters.n) + columns - 1) / columns;
        const u32 tile = blockIdx.x / parameters.splits;
        matrix = tile / (of_p * of_q);
        p = tile % of_p * rows;
        q = tile / of_p % of_q * columns;
        const u32 steps = (parameters.k + depth - 1) / depth;
        first = steps * rank / parameters.splits;
        end = steps * (rank + 1) / parameters.splits;
    }
};

// Loads 64 k of `Span` rows of an operand.
template <bool MnMajor, int Span>
__device__ inline void load_operand(u32 to, const TensorMap* map, u32 full, i32 row, i32 k, i32 matrix) {
    if constexpr (MnMajor) {
#pragma unroll
        for (int panel = 0; panel < (Span + 63) / 64; panel++) {
            copy_box(to + panel * 64 * depth * 2, map, full, row + 64 * panel, k, matrix);
        }
    } else {
        copy_box(to, map, full, k, row, matrix);
    }
}

// Prefetches the same into the L2 cache.
template <bool MnMajor, int Span>
__device__ inline void prefetch_operand(const TensorMap* map, i32 row, i32 k, i32 matrix) {
    if constexpr (MnMajor) {
#pragma unroll
        for (int panel = 0; panel < (Span + 63) / 64; panel++) prefetch_box(map, row + 64 * panel, k, matrix);
    } else {
        prefetch_box(map, k, row, matrix);
    }
}

// Writes a warpgroup's sums (laid out as in wgmma.cuh) to shared memory as rows of C, with a pitch that keeps the threads of a
// warp on different banks.
template <int Rows, int Columns>
__device__ inline void write_sums(const f32 (&d)[Columns / 2], u32 sums, u32 consumer, bool swapped) {
    const u32 thread = threadIdx.x % 128;
    const u32 row = consumer * 64 + thread / 32 * 16 + thread % 32 / 4, q = thread % 4;
#pragma unroll
    for (int j = 0; j < Columns / 8; j++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const f32 two[2] = {d[4 * j + 2 * h], d[4 * j + 2 * h + 1]};
            if (swapped) {
                const u32 place = sums + ((8 * j + 2 * q) * (Rows + 4) + row + 8 * h) * 4;
                to_shared(place, two[0]);
                to_shared(place + (Rows + 4) * 4, two[1]);
            } else {
                to_shared(sums + ((row + 8 * h) * (Columns + 8) + 8 * j + 2 * q) * 4, two);
            }
        }
    }
}

// The sums in shared memory: a block's own, and after them those that the other blocks sent, in the order of their ranks.
struct SplitSums {
    u32 own, sent;
    i32 height, width, pitch;  // Of a tile of C, in elements.
    i32 splits, rank;

    __device__ i32 first_row(i32 of) const { return splits == 1 ? height * of : height * of / splits; }
    // Bytes of a row, and of the space for one block's sums.
    __device__ u32 row() const { return pitch * 4; }
    __device__ u32 place() const { return (height + splits - 1) / splits * row(); }
    __device__ u32 bytes_of(i32 block) const { return (first_row(block + 1) - first_row(block)) * row(); }

    // One thread: sends every other block its rows.
    __device__ void send_all(u32 partials_ready) const {
        for (i32 block = 0; block < splits; block++) {
            if (block == rank) continue;
            const u32 to = sent + (rank - (rank > block)) * place();
            send(address_in_block(to, block), own + first_row(block) * row(), bytes_of(block),
                 address_in_block(partials_ready, block));
        }
    }
};

// Finishes and stores elements of a row of C, from `column` on.
template <typename Result>
__device__ inline void store_numbers(void* c, const SplitKParameters& parameters, f32 (&numbers)[vector_width], i32 row,
                                     i32 column, i32 matrix) {
    const i32 left = parameters.n - column;
    const i64 at = matrix * parameters.c_matrix + row * parameters.c_row + column;
    auto where = [&](int v, i32& in_row, i32& in_column, i64& place) {
        in_row = row;
        in_column = column + v;
        place = at + v;
        return v < left;
    };
    if (parameters.beta != 0.0f) add_beta_c((const Result*)c, parameters.beta, numbers, where);
    apply_epilogue<Result>(parameters.epilogue, numbers, where);
    Result* const to = (Result*)c + at;
    Pack<Result, vector_width> pack;
#pragma unroll
    for (int v = 0; v < vector_width; v++) narrow(numbers[v], pack.item[v]);
    if (parameters.aligned_rows && left >= vector_width) {
        store_pack(to, pack);
    } else {
#pragma unroll
        for (int v = 0; v < vector_width; v++) {
            if (v < left) to[v] = pack.item[v];
        }
    }
}

__device__ inline void store_four(f32* to, const f32 (&numbers)[vector_width]) {
    Pack<f32, vector_width> pack;
#pragma unroll
    for (int v = 0; v < vector_width; v++) pack.item[v] = numbers[v];
    store_pack(to, pack);
}
__device__ inline void store_four(ELEMENT* to, const f32 (&numbers)[vector_width]) {
    Pack<u32, vector_width / 2> pack;
#pragma unroll
    for (int v = 0; v < vector_width; v += 2) pack.item[v / 2] = rounded(numbers[v], numbers[v + 1]);
    store_pack((u32*)to, pack);
}

// Adds the block's rows of the tile in the order of the blocks, and stores them. A row has `Width` columns; a thread keeps its columns.
template <typename Result, int Width, int Threads>
__device__ inline void store_rows(void* c, const SplitKParameters& parameters, const SplitSums& sums, i32 row, i32 column, i32 matrix) {
    constexpr i32 across = Width / vector_width, rows_at_once = Threads / across;
    const i32 x = threadIdx.x % across * vector_width, first = sums.first_row(sums.rank), begin = first + threadIdx.x / across;
    const i32 end = min(sums.first_row(sums.rank + 1), parameters.m - row);
    if (column + x >= parameters.n || (i32)threadIdx.x >= across * rows_at_once) return;
    // The sums of other blocks begin with this block's first row.
    const u32 place = sums.place(), own = sums.own + x * 4, sent = sums.sent - first * sums.row() + x * 4;
    auto sum = [&](i32 y, f32 (&numbers)[vector_width]) {
        const u32 of_row = y * sums.row();
        from_shared(sums.rank == 0 ? own + of_row : sent + of_row, numbers);
#pragma unroll 1
        for (i32 block = 1; block < sums.splits; block++) {
            f32 part[vector_width];
            from_shared(block == sums.rank ? own + of_row : sent + (block - (block > sums.rank)) * place + of_row, part);
#pragma unroll
            for (int v = 0; v < vector_width; v++) numbers[v] += part[v];
        }
#pragma unroll
        for (int v = 0; v < vector_width; v++) numbers[v] *= parameters.alpha;
    };
    // Without an epilogue the instructions here are most of the time of a small tile after its products.
    if (parameters.aligned_rows && column + x + vector_width <= parameters.n && parameters.beta == 0.0f && !parameters.epilogue.any()) {
        Result* to = (Result*)c + matrix * parameters.c_matrix + (row + begin) * parameters.c_row + column + x;
        const i64 step = rows_at_once * parameters.c_row;
#pragma unroll 2
        for (i32 y = begin; y < end; y += rows_at_once, to += step) {
            f32 numbers[vector_width];
            sum(y, numbers);
            store_four(to, numbers);
        }
        return;
    }
#pragma unroll 1
    for (i32 y = begin; y < end; y += rows_at_once) {
        f32 numbers[vector_width];
        sum(y, numbers);
        store_numbers<Result>(c, parameters, numbers, row + y, column + x, matrix);
    }
}

template <typename Result, int Rows, int Columns, int Threads>
__device__ inline void store(void* c, const SplitKParameters& parameters, const SplitSums& sums, i32 row, i32 column, i32 matrix) {
    if (parameters.swapped) {
        store_rows<Result, Rows, Threads>(c, parameters, sums, row, column, matrix);
    } else {
        store_rows<Result, Columns, Threads>(c, parameters, sums, row, column, matrix);
    }
}

template <int Rows, bool MnMajorP, bool MnMajorQ, int Columns>
__device__ inline void gemm(const TensorMap* p_map, const TensorMap* q_map, void* c, const SplitKParameters& parameters) {
    using Storage = SharedStorage<Rows, MnMajorQ, Columns>;
    // The barriers come first, because the sums of other blocks may need more space than the stages.
    const u32 full = (shared_address(shared_memory) + 1023) & ~1023u, empty = full + 8 * Storage::count;
    const u32 partials_ready = empty + 8 * Storage::count, start = full + 1024;
    const u32 of_p = start, of_q = of_p + Storage::count * Storage::p_bytes;
    // The shuffle tells the compiler that the value is uniform in a warp.
    const u32 warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    const u32 rank = cluster_rank();
    const Tile tile(parameters, rank, Rows, Columns);
    SplitSums sums{start, 0, Columns, Rows, Rows + 4, parameters.splits, (i32)rank};
    if (!parameters.swapped) sums = {start, 0, Rows, Columns, Columns + 8, parameters.splits, (i32)rank};
    sums.sent = start + sums.height * sums.row();
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < Storage::count; stage++) {
            barrier_initialise(full + 8 * stage, 1);
            barrier_initialise(empty + 8 * stage, Storage::consumers);
        }
        barrier_initialise(partials_ready, 1);
        barriers_initialised();
        barrier_expect(partials_ready, (parameters.splits - 1) * sums.bytes_of(rank));
        prefetch_map(p_map);
        prefetch_map(q_map);
    }
    if (Storage::shares && threadIdx.x == 0) {
        // A prefetch may fetch stale bytes: the kernel ahead writes through the same L2 cache, and the loads come after the wait.
        for (i32 step = tile.first; step < min(tile.end, tile.first + Storage::count); step++) {
            prefetch_operand<MnMajorP, Rows>(p_map, tile.p, step * depth, tile.matrix * parameters.p_matrix);
        }
    }
    __syncthreads();
    wait_for_earlier();
    PipelineState<Storage::count> state;
    if (warpgroup == 0) {
        if (threadIdx.x == 0) {
            const i32 p_matrix = tile.matrix * parameters.p_matrix, q_matrix = tile.matrix * parameters.q_matrix;
            for (i32 step = tile.first; step < tile.end; step++) {
                if (step == tile.end - Storage::left_to_copy) next_may_start();
                barrier_wait(empty + 8 * state.stage, state.phase ^ 1);
                const u32 full_stage = full + 8 * state.stage;
                barrier_expect(full_stage, Storage::p_bytes + Storage::q_bytes);
                load_operand<MnMajorP, Rows>(of_p + state.stage * Storage::p_bytes, p_map, full_stage, tile.p, step * depth, p_matrix);
                load_operand<MnMajorQ, Columns>(of_q + state.stage * Storage::q_bytes, q_map, full_stage, tile.q, step * depth,
                                             q_matrix);
                state.advance();
            }
            // The last stages are loading. A second trigger has no effect.
            next_may_start();
        }
        __syncwarp();
        __syncthreads();
        if (parameters.splits > 1) cluster_barrier();
    } else {
        const u32 consumer = warpgroup - 1;
        f32 d[Columns / 2];
        u32 last = 0;
        for (i32 step = tile.first; step < tile.end; step++) {
            barrier_wait(full + 8 * state.stage, state.phase);
            // 64 rows are 64 * 128 bytes in either layout.
            const u64 p = wgmma_operand<MnMajorP>(of_p + state.stage * Storage::p_bytes + consumer * 64 * 128);
            const u64 q = wgmma_operand<MnMajorQ>(of_q + state.stage * Storage::q_bytes);
            wgmma_begin();
#pragma unroll
            for (int part = 0; part < depth / 16; part++) {
                wgmma<Columns, MnMajorP, MnMajorQ>(d, p + part * wgmma_step<MnMajorP>(), q + part * wgmma_step<MnMajorQ>(),
                                                   (step - tile.first) | part);
            }
            wgmma_commit();
            // The products of the stage before this one are done.
            wgmma_wait<1>();
            if (step > tile.first && threadIdx.x % 128 == 0) barrier_arrive(empty + 8 * last);
            last = state.stage;
            state.advance();
        }
        wgmma_wait<0>();
        // The whole cluster has multiplied all its stages: their memory is free for the sums.
        __syncthreads();
        if (parameters.splits > 1) cluster_barrier();
        write_sums<Rows, Columns>(d, start, consumer, parameters.swapped);
        publish_to_copies();
    }
    __syncthreads();
    if (parameters.splits > 1) {
        if (threadIdx.x == 0) sums.send_all(partials_ready);
        __syncwarp();
        barrier_wait(partials_ready, 0);
    }
    const i32 row = parameters.swapped ? tile.q : tile.p, column = parameters.swapped ? tile.p : tile.q;
    if (parameters.f32_output) {
        store<f32, Rows, Columns, Storage::threads>(c, parameters, sums, row, column, tile.matrix);
    } else {
        store<ELEMENT, Rows, Columns, Storage::threads>(c, parameters, sums, row, column, tile.matrix);
    }
    // A block ends once the others have received its sums.
    if (parameters.splits > 1) cluster_barrier();
}

}  // namespace

// MN-major operands (wgmma.cuh): P, then Q.
#define MN_MAJOR_kk false, false
#define MN_MAJOR_ks false, true
#define MN_MAJOR_sk true, false
#define MN_MAJOR_ss true, true
#define ENTRY(element, layout, rows, columns)                                                                       \
    extern "C" __global__ void __launch_bounds__(128 + 2 * rows, 1)                                                 \
        gemm_split_##element##_##layout##_##rows##x##columns(const __grid_constant__ TensorMap p,                   \
                                                             const __grid_constant__ TensorMap q, void* c,          \
                                                             const __grid_constant__ SplitKParameters parameters) { \
        gemm<rows, MN_MAJOR_##layout, columns>(&p, &q, c, parameters);                                              \
    }
#define KERNELS(element, layout)      \
    ENTRY(element, layout, 64, 16)    \
    ENTRY(element, layout, 64, 32)    \
    ENTRY(element, layout, 64, 64)    \
    ENTRY(element, layout, 64, 128)   \
    ENTRY(element, layout, 128, 16)   \
    ENTRY(element, layout, 128, 32)   \
    ENTRY(element, layout, 128, 64)   \
    ENTRY(element, layout, 128, 128)  \
    ENTRY(element, layout, 128, 256)

// A family has one layout, so the first product of a process loads no others; the emulator compiles all layouts.
#ifdef LAYOUT
KERNELS(ELEMENT, LAYOUT)
#else
KERNELS(ELEMENT, kk)
KERNELS(ELEMENT, ks)
KERNELS(ELEMENT, sk)
KERNELS(ELEMENT, ss)
#endif
