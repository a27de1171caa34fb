// C = alpha A B + beta C on the tensor cores of compute capability 9.0 where C has too few tiles to keep all
// multiprocessors busy: few rows or columns, small squares, long sums. ELEMENT (-DELEMENT=bf16 or f16) times ELEMENT,
// added in f32; C is ELEMENT or f32. One family for each ELEMENT and layout (-DLAYOUT=kk, ks, sk or ss).
//
// Entries: gemm_split_<ELEMENT>_<P><Q>_<rows>x<columns>(map of P, map of Q, C, shape). P is the operand of which a tile takes
// 64 or 128 rows, Q the one of which it takes 16 to 256: A and B transposed, or, where `swapped`, B transposed and A. The
// letters are k, where k runs along the stored rows, or s, where m or n does. `Shape` is the Rust side's
// `gemm::split::Shape`. Launch: 128 threads a block and 128 for each 64 rows, `splits` blocks a tile, which are one cluster, and
// `shared_bytes` of dynamic shared memory.
//
// The maps are of three dimensions, the contiguous one first and the matrix's number in the batch last, with a
// swizzle of 128 bytes. Their boxes: k 64 k x `rows` (P) or `columns` (Q); s 64 rows x 64 k.
//
// How: the blocks of a cluster divide k. One thread of a block copies; a warpgroup, or two, multiply 64 rows of P each. As
// many stages as shared memory holds are on their way from the start, which is what reading weights at the memory's
// speed takes. Then each block sends every other one the sums of the rows that are that one's to add, by bulk copies
// between their shared memories, and each adds its rows in the order of k, and stores them.
//
// A product may be launched to start before the kernel ahead of it on the stream has ended. All threads wait for that end
// before anything in global memory is touched; what comes before that overlaps with it.
//
// What must stay true: sums are added in the order of the blocks' ranks, and the division is a function of the sizes
// and the number of multiprocessors, so all launches of a product on a card give the same bits.
//
// | version | what | bf16 on an H200, of cuBLAS in the same run |
// |---|---|---|
// | (gemm_wgmma.cu) | tiles of 256 rows, one block for all k | 1 x 4096 x 4096: 0.34, 64 x 16384 x 16384: 0.64 |
// | 1 | blocks read each other's sums; cluster barriers that release memory | 1 x 4096 x 4096: 0.82, 64 x 16384 x 16384: 0.98; 256^3: 0.40 |
// | 2 | as above | see benches/RESULTS.md |
// | 3 | launched while the kernel ahead ends; the next one may start where the last copies begin | squares of 256 and 512: 0.89, 0.75; 1, 64 and 128 x 4096 x 4096: 1.09, 0.79, 0.96 |
// | 4 | rows are stored without divisions, and by 20 instructions where there is no epilogue | 1.10, 1.00; 1.11, 0.89, 0.98 |
// | 5 | tiles of 64 rows too | 1.22, 1.11; 1.16, 0.95, 1.03 |
// | 6 | tiles of 64 x 16 and 64 x 32: stages of half the memory, so that the next product's blocks find room, and fetch their first stages into the L2 cache while the last ones of this are copied | 1 and 16 x 4096 x 4096: 1.23, 1.24 |
// | (the same for tiles of 64 x 64; for 128 rows) | the stages do not last; blocks lie unevenly | 128 x 4096 x 4096: 0.87 for 1.04; 1 x 4096 x 4096: 1.14, 128 x 16384 x 16384: 0.69 |
#include "epilogue.cuh"
#include "hopper.cuh"
#include "vectors.cuh"
#include "wgmma.cuh"

// Outside of the namespace, which has no name of its own: the compiler would make one up, another one each time.
extern __shared__ unsigned char shared_memory[];

namespace {

struct Shape {
    i32 m, n, k, batch;
    i64 c_row;      // From a row of C to the next, in elements.
    i64 c_matrix;   // From a matrix of C to the next.
    i32 p_matrix;   // 1, or 0 where all products share one P.
    i32 q_matrix;
    i32 splits;     // Blocks that divide k.
    i32 swapped;    // Whether P is of B.
    i32 wide;       // Whether C is f32 instead of ELEMENT.
    i32 vector;     // Whether C's rows begin at multiples of 4 elements.
    f32 alpha, beta;
    Epilogue epilogue;
};

// Enumerators, because constants would become variables of the module.
enum : int {
    depth = 64,     // k of a stage: 128 bytes.
    most_splits = 8,
    together = 4,   // Elements of C that a thread takes.
};

// `Rows` of P and `Columns`, which are rows of Q.
template <int Rows, bool SpanQ, int Columns>
struct Stages {
    enum : int {
        consumers = Rows / 64,  // Warpgroups that multiply.
        threads = 128 * (1 + consumers),
        p_bytes = Rows * depth * 2,
        // A box of 64 even where fewer are multiplied.
        q_bytes = (SpanQ && Columns < 64 ? 64 : Columns) * depth * 2,
        // Two blocks have room where a tile is small: there memory is what takes time, and the next product's first stages can be
        // on their way to the L2 cache while the last ones of this are.
        shares = Rows == 64 && Columns <= 32,
        count = (shares ? 104 << 10 : 224 << 10) / (p_bytes + q_bytes),
        // Stages that are not copied yet when the next product may start.
        left_to_copy = shares ? 5 : 0,
    };
};

// The block's tile: its first row of P and of Q, its matrix, and its part of k in stages.
struct Tile {
    i32 p, q, matrix, first, end;

    __device__ Tile(const Shape& shape, u32 rank, i32 rows, i32 columns) {
        const u32 of_p = ((shape.swapped ? shape.n : shape.m) + rows - 1) / rows;
        const u32 of_q = ((shape.swapped ? shape.m : shape.n) + columns - 1) / columns;
        const u32 tile = blockIdx.x / shape.splits;
        matrix = tile / (of_p * of_q);
        p = tile % of_p * rows;
        q = tile / of_p % of_q * columns;
        const u32 steps = (shape.k + depth - 1) / depth;
        first = steps * rank / shape.splits;
        end = steps * (rank + 1) / shape.splits;
    }
};

// Brings a part of 64 k of an operand in: `Span` rows of it.
template <bool SpanContiguous, int Span>
__device__ inline void copy_part(u32 to, const TensorMap* map, u32 full, i32 row, i32 k, i32 matrix) {
    if constexpr (SpanContiguous) {
#pragma unroll
        for (int panel = 0; panel < (Span + 63) / 64; panel++) {
            copy_box(to + panel * 64 * depth * 2, map, full, row + 64 * panel, k, matrix);
        }
    } else {
        copy_box(to, map, full, k, row, matrix);
    }
}

// Has the L2 cache fetch the same.
template <bool SpanContiguous, int Span>
__device__ inline void prefetch_part(const TensorMap* map, i32 row, i32 k, i32 matrix) {
    if constexpr (SpanContiguous) {
#pragma unroll
        for (int panel = 0; panel < (Span + 63) / 64; panel++) prefetch_box(map, row + 64 * panel, k, matrix);
    } else {
        prefetch_box(map, k, row, matrix);
    }
}

// A warpgroup's numbers, which wgmma.cuh lays out, as a matrix in shared memory: rows of C behind one another, with a
// pitch that keeps the threads of a warp on different banks.
template <int Rows, int Columns>
__device__ inline void leave(const f32 (&d)[Columns / 2], u32 sums, u32 consumer, bool swapped) {
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

// Where sums lie: a block's own, and behind them those that the others sent, in the order of their ranks.
struct Sums {
    u32 own, sent;
    i32 height, width, pitch;  // Of a tile of C, in elements.
    i32 splits, rank;

    __device__ i32 first_row(i32 of) const { return splits == 1 ? height * of : height * of / splits; }
    // Bytes of a row, and of the place for what one block sends.
    __device__ u32 row() const { return pitch * 4; }
    __device__ u32 place() const { return (height + splits - 1) / splits * row(); }
    __device__ u32 bytes_of(i32 block) const { return (first_row(block + 1) - first_row(block)) * row(); }

    // One thread: sends every other block its rows.
    __device__ void send_all(u32 arrived) const {
        for (i32 block = 0; block < splits; block++) {
            if (block == rank) continue;
            const u32 to = sent + (rank - (rank > block)) * place();
            send(address_in_block(to, block), own + first_row(block) * row(), bytes_of(block),
                 address_in_block(arrived, block));
        }
    }
};

// Stores numbers of a row of C, in a column and those behind it.
template <typename Result>
__device__ inline void store_numbers(void* c, const Shape& shape, f32 (&numbers)[together], i32 row, i32 column, i32 matrix) {
    const i32 left = shape.n - column;
    const i64 at = matrix * shape.c_matrix + row * shape.c_row + column;
    auto where = [&](int v, i32& in_row, i32& in_column, i64& place) {
        in_row = row;
        in_column = column + v;
        place = at + v;
        return v < left;
    };
    if (shape.beta != 0.0f) add_c((const Result*)c, shape.beta, numbers, where);
    finish<Result>(shape.epilogue, numbers, where);
    Result* const to = (Result*)c + at;
    Pack<Result, together> pack;
#pragma unroll
    for (int v = 0; v < together; v++) narrow(numbers[v], pack.item[v]);
    if (shape.vector && left >= together) {
        store_pack(to, pack);
    } else {
#pragma unroll
        for (int v = 0; v < together; v++) {
            if (v < left) to[v] = pack.item[v];
        }
    }
}

__device__ inline void store_four(f32* to, const f32 (&numbers)[together]) {
    Pack<f32, together> pack;
#pragma unroll
    for (int v = 0; v < together; v++) pack.item[v] = numbers[v];
    store_pack(to, pack);
}
__device__ inline void store_four(ELEMENT* to, const f32 (&numbers)[together]) {
    Pack<u32, together / 2> pack;
#pragma unroll
    for (int v = 0; v < together; v += 2) pack.item[v / 2] = rounded(numbers[v], numbers[v + 1]);
    store_pack((u32*)to, pack);
}

// Adds the block's rows of the tile in the order of the blocks, and stores them. A thread stays in its columns, of which a row of
// the tile has `Width`.
template <typename Result, int Width, int Threads>
__device__ inline void store_rows(void* c, const Shape& shape, const Sums& sums, i32 row, i32 column, i32 matrix) {
    constexpr i32 across = Width / together, rows_at_once = Threads / across;
    const i32 x = threadIdx.x % across * together, first = sums.first_row(sums.rank), begin = first + threadIdx.x / across;
    const i32 end = min(sums.first_row(sums.rank + 1), shape.m - row);
    if (column + x >= shape.n || (i32)threadIdx.x >= across * rows_at_once) return;
    // What others sent begins with the block's first row.
    const u32 place = sums.place(), own = sums.own + x * 4, sent = sums.sent - first * sums.row() + x * 4;
    auto sum = [&](i32 y, f32 (&numbers)[together]) {
        const u32 of_row = y * sums.row();
        from_shared(sums.rank == 0 ? own + of_row : sent + of_row, numbers);
#pragma unroll 1
        for (i32 block = 1; block < sums.splits; block++) {
            f32 part[together];
            from_shared(block == sums.rank ? own + of_row : sent + (block - (block > sums.rank)) * place + of_row, part);
#pragma unroll
            for (int v = 0; v < together; v++) numbers[v] += part[v];
        }
#pragma unroll
        for (int v = 0; v < together; v++) numbers[v] *= shape.alpha;
    };
    // Where nothing else is done, the instructions count: they are most of the time that a small tile takes behind its products.
    if (shape.vector && column + x + together <= shape.n && shape.beta == 0.0f && !shape.epilogue.any()) {
        Result* to = (Result*)c + matrix * shape.c_matrix + (row + begin) * shape.c_row + column + x;
        const i64 step = rows_at_once * shape.c_row;
#pragma unroll 2
        for (i32 y = begin; y < end; y += rows_at_once, to += step) {
            f32 numbers[together];
            sum(y, numbers);
            store_four(to, numbers);
        }
        return;
    }
#pragma unroll 1
    for (i32 y = begin; y < end; y += rows_at_once) {
        f32 numbers[together];
        sum(y, numbers);
        store_numbers<Result>(c, shape, numbers, row + y, column + x, matrix);
    }
}

template <typename Result, int Rows, int Columns, int Threads>
__device__ inline void store(void* c, const Shape& shape, const Sums& sums, i32 row, i32 column, i32 matrix) {
    if (shape.swapped) {
        store_rows<Result, Rows, Threads>(c, shape, sums, row, column, matrix);
    } else {
        store_rows<Result, Columns, Threads>(c, shape, sums, row, column, matrix);
    }
}

template <int Rows, bool SpanP, bool SpanQ, int Columns>
__device__ inline void gemm(const TensorMap* p_map, const TensorMap* q_map, void* c, const Shape& shape) {
    using Stage = Stages<Rows, SpanQ, Columns>;
    // The barriers come first, for what the other blocks send may reach behind the stages.
    const u32 full = (shared_address(shared_memory) + 1023) & ~1023u, empty = full + 8 * Stage::count;
    const u32 arrived = empty + 8 * Stage::count, start = full + 1024;
    const u32 of_p = start, of_q = of_p + Stage::count * Stage::p_bytes;
    // The same for all threads of a warp, and known to be.
    const u32 warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    const u32 rank = cluster_rank();
    const Tile tile(shape, rank, Rows, Columns);
    Sums sums{start, 0, Columns, Rows, Rows + 4, shape.splits, (i32)rank};
    if (!shape.swapped) sums = {start, 0, Rows, Columns, Columns + 8, shape.splits, (i32)rank};
    sums.sent = start + sums.height * sums.row();
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < Stage::count; stage++) {
            barrier_initialise(full + 8 * stage, 1);
            barrier_initialise(empty + 8 * stage, Stage::consumers);
        }
        barrier_initialise(arrived, 1);
        barriers_initialised();
        barrier_expect(arrived, (shape.splits - 1) * sums.bytes_of(rank));
        prefetch_map(p_map);
        prefetch_map(q_map);
    }
    if (Stage::shares && threadIdx.x == 0) {
        // What a kernel ahead still writes is written into the L2 cache too, from which it is read after the wait.
        for (i32 step = tile.first; step < min(tile.end, tile.first + Stage::count); step++) {
            prefetch_part<SpanP, Rows>(p_map, tile.p, step * depth, tile.matrix * shape.p_matrix);
        }
    }
    __syncthreads();
    wait_for_earlier();
    Turn<Stage::count> turn;
    if (warpgroup == 0) {
        if (threadIdx.x == 0) {
            const i32 p_matrix = tile.matrix * shape.p_matrix, q_matrix = tile.matrix * shape.q_matrix;
            for (i32 step = tile.first; step < tile.end; step++) {
                if (step == tile.end - Stage::left_to_copy) next_may_start();
                barrier_wait(empty + 8 * turn.stage, turn.parity ^ 1);
                const u32 told = full + 8 * turn.stage;
                barrier_expect(told, Stage::p_bytes + Stage::q_bytes);
                copy_part<SpanP, Rows>(of_p + turn.stage * Stage::p_bytes, p_map, told, tile.p, step * depth, p_matrix);
                copy_part<SpanQ, Columns>(of_q + turn.stage * Stage::q_bytes, q_map, told, tile.q, step * depth,
                                          q_matrix);
                turn.next();
            }
            // The last stages are on their way; the next kernel's blocks have room as these leave. Said before, it says nothing.
            next_may_start();
        }
        __syncwarp();
        __syncthreads();
        if (shape.splits > 1) cluster_barrier();
    } else {
        const u32 consumer = warpgroup - 1;
        f32 d[Columns / 2];
        u32 last = 0;
        for (i32 step = tile.first; step < tile.end; step++) {
            barrier_wait(full + 8 * turn.stage, turn.parity);
            // 64 rows are 64 * 128 bytes in either layout.
            const u64 p = wgmma_operand<SpanP>(of_p + turn.stage * Stage::p_bytes + consumer * 64 * 128);
            const u64 q = wgmma_operand<SpanQ>(of_q + turn.stage * Stage::q_bytes);
            wgmma_begin();
#pragma unroll
            for (int part = 0; part < depth / 16; part++) {
                wgmma<Columns, SpanP, SpanQ>(d, p + part * wgmma_step<SpanP>(), q + part * wgmma_step<SpanQ>(),
                                             (step - tile.first) | part);
            }
            wgmma_commit();
            // The stage before this one is done with now.
            wgmma_wait<1>();
            if (step > tile.first && threadIdx.x % 128 == 0) barrier_arrive(empty + 8 * last);
            last = turn.stage;
            turn.next();
        }
        wgmma_wait<0>();
        // All that was copied has been multiplied, in the whole cluster: the stages' place is free for the sums.
        __syncthreads();
        if (shape.splits > 1) cluster_barrier();
        leave<Rows, Columns>(d, start, consumer, shape.swapped);
        publish_to_copies();
    }
    __syncthreads();
    if (shape.splits > 1) {
        if (threadIdx.x == 0) sums.send_all(arrived);
        __syncwarp();
        barrier_wait(arrived, 0);
    }
    const i32 row = shape.swapped ? tile.q : tile.p, column = shape.swapped ? tile.p : tile.q;
    if (shape.wide) {
        store<f32, Rows, Columns, Stage::threads>(c, shape, sums, row, column, tile.matrix);
    } else {
        store<ELEMENT, Rows, Columns, Stage::threads>(c, shape, sums, row, column, tile.matrix);
    }
    // What this block sent has been read when all have got theirs; only then may it go.
    if (shape.splits > 1) cluster_barrier();
}

}  // namespace

// What runs along the rows of P, then of Q, is k or what is spanned.
#define SPANS_kk false, false
#define SPANS_ks false, true
#define SPANS_sk true, false
#define SPANS_ss true, true
#define ENTRY(element, layout, rows, columns)                                                                  \
    extern "C" __global__ void __launch_bounds__(128 + 2 * rows, 1)                                            \
        gemm_split_##element##_##layout##_##rows##x##columns(const __grid_constant__ TensorMap p,              \
                                                             const __grid_constant__ TensorMap q, void* c,     \
                                                             const __grid_constant__ Shape shape) {            \
        gemm<rows, SPANS_##layout, columns>(&p, &q, c, shape);                                                 \
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

// A family is of one layout, so that the first product of a process loads no others; without LAYOUT all are there.
#ifdef LAYOUT
KERNELS(ELEMENT, LAYOUT)
#else
KERNELS(ELEMENT, kk)
KERNELS(ELEMENT, ks)
KERNELS(ELEMENT, sk)
KERNELS(ELEMENT, ss)
#endif
