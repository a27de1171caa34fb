// C = alpha op(A) op(B) + beta C with an epilogue (epilogue.cuh) on the CUDA cores of compute capability 9.0, with operands loaded by TMA,
// for ELEMENT (-DELEMENT=f32 or c64). One family for each.
//
// Entries: gemm_bulk_<ELEMENT>_<A><B>_<tile>(map of A, map of B, C, parameters). A and B are n (stored as they are multiplied, row by
// row), t (stored transposed) or, of c64, c (stored transposed and conjugated); tile is `large` or `small`. The leading
// dimensions, flags and conjugations of A and B in `GemmParameters` are not used; an `a_matrix` of 0 means that all products share A.
//
// Launch: one block a tile of each matrix, `Tile::threads` threads, and the dynamic shared memory of src/gemm/simt/bulk.rs. k is at
// least 1. The tensor maps have three dimensions (contiguous one first, batch last). A stage is 128 bytes of k. Boxes, with `span`
// the tile's rows or columns: k-contiguous operands (A n, B t and c) a stage x span, with a swizzle of 128 bytes; the others span x
// a stage, without a swizzle. TMA fills elements outside of a matrix with zeros.
//
// Algorithm: warp-specialised. Producer warps load the stages and transpose k-contiguous operands into them (`Operand`), so one main
// loop serves all layouts. Barrier `loaded`: data to transpose has come; `full`: a stage is complete; `empty`: all consumer warps
// have read it. Two large tiles share a multiprocessor. A consumer multiplies 8 x 16 elements (c64: 8 x 8) of one k, and reads
// the next k meanwhile, 16 bytes at a time. The loop is bound by fma issue, one a clock cycle in each quarter, so two details count:
// - Shared memory serves a half warp's 16-byte reads at once if each lane shares its address with lane ^ 1 or lane ^ 2. So bit 0 of
//   the lane counts rows and bit 1 columns.
// - An fma reads three registers from two banks, and can reuse an operand of the previous fma. So elements are visited in
//   zigzag order, where neighbours share an element of A or of B.
//
// Invariants: sums are fma in their own type with k ascending, filled up with zeros to a multiple of 16 (f32) or 8 (c64); a small tile
// of f32 gives every other 8 k to a second slice, whose sum is added last. gemm_async.cu adds in the same order, so both give the
// same bits for tiles of one name.
//
// | version | change | f32 nn against cuBLAS, interleaved, H200 |
// |---|---|---|
// | 1 | TMA loads by one thread | 0.88 at 1024, 0.94 at 2048, 0.96 at 4096, 1.00 at 8192 |
// | 3 | producer warps load and transpose | 1.017, 1.006, 1.032, 1.031; c64 at 4096 0.91 |
// docs/performance-notes.md has every version and the experiments that lost.
#include "gemm_blocks.cuh"
#include "hopper.cuh"
#include "hopper_pipeline.cuh"

// Outside of the namespace, which has no name of its own: the compiler would make one up, another one each time.
extern __shared__ unsigned char shared_memory[];

namespace {

// How a block divides its tile. Enumerators, because constants would become variables of the module.
template <typename Element, int EachRow, int EachColumn, int Down, int Slices, int Stages, int Producers, int Blocks, int Zigzag>
struct TileOf {
    enum : int {
        each_row = EachRow,  // Rows of a thread.
        each_column = EachColumn,
        down = Down,  // Threads below each other, 8 of a warp.
        across = 8,
        slices = Slices,  // Parts of the block that divide the depth.
        stages = Stages,
        blocks = Blocks,  // Of a multiprocessor.
        rows = down * EachRow,
        columns = across * EachColumn,
        consumers = down * across * Slices,
        producers = Producers,  // Producer threads, after the consumers.
        threads = consumers + producers,
        divides_registers = producers == 128,  // Only whole warpgroups can.
        run = 16 / sizeof(Element),  // Elements of a 16-byte read.
        chunks = 8,                  // Of 16 bytes of k in a stage.
        depth = chunks * run,
        zigzag = Zigzag,  // Element v of an odd row is v ^ zigzag.
        step = 2,             // Chunks that a slice multiplies between two tests of the barriers.
        all = step * slices,  // And all slices.
        // A thread's registers at the start. Asking for more than the producers return would wait for ever.
        share = 65536 / (blocks * threads) / 8 * 8,
        producer_registers = 56,
        consumer_registers = 200,
        bytes_a = rows * 128,
        bytes_b = columns * 128,
        bytes = bytes_a + bytes_b,
    };
};

template <typename Element, bool Large>
struct Tile;
template <>
struct Tile<f32, true> : TileOf<f32, 8, 16, 16, 1, 2, 128, 2, 3> {};
template <>
struct Tile<f32, false> : TileOf<f32, 8, 8, 8, 2, 4, 32, 2, 7> {};
template <>
struct Tile<c64, true> : TileOf<c64, 8, 8, 16, 1, 3, 128, 2, 7> {};
template <>
struct Tile<c64, false> : TileOf<c64, 4, 8, 16, 1, 3, 32, 3, 7> {};

// An operand of a tile: `Each` rows or columns of each of `Across` threads. `KMajor`: k runs along the stored rows.
//
// A stage holds runs of 16 bytes k by k, and neighbouring threads read neighbouring runs. TMA loads operands that are not k-contiguous
// in that order. It loads k-contiguous ones into the transpose buffer, as rows of 8 chunks of 16 bytes with chunk p of row r at
// p ^ (r % 8); producers transpose the squares of `run` rows and one chunk into the stage.
template <typename Element, typename Sizes, int Each, int Across, bool KMajor>
struct Operand {
    enum : int {
        span = Each * Across,
        run = Sizes::run,
        chunks = Sizes::chunks,
        row = 128,                         // In bytes.
        line = span * (int)sizeof(Element),  // From one k of a stage to the next.
        bytes = span * row,
    };

    // The box of a stage, from the tile's first row or column and k on.
    __device__ static void copy(u32 to, const TensorMap* map, u32 full, i32 first, i32 k, i32 matrix) {
        copy_box(to, map, full, KMajor ? k : first, KMajor ? first : k, matrix);
    }

    // Transposes the data at `from` into the stage; each producer some runs.
    //
    // Of 8 * `run` producers, 8 neighbours have neighbouring runs, and `run` such groups have the k of a chunk. Neighbours read
    // different chunks and write different runs, so neither meets a bank twice.
    __device__ static void transpose(u32 from, u32 stage, u32 producer) {
        constexpr u32 together = 8 * run, per = chunks / (Sizes::producers / together), most = per > run ? per : run;
        const u32 beside = producer % 8, of_chunk = producer / 8 % run, first = producer / together * per ^ beside * run / 8;
        u32 place[most];
#pragma unroll
        for (u32 i = 0; i < most; i++) {
            place[i] = from + beside * run * row + (first ^ beside * run % 8 ^ i) * 16 + of_chunk * (u32)sizeof(Element);
        }
#pragma unroll
        for (u32 p = 0; p < per; p++) {
            const u32 to = stage + ((first ^ p) * run + of_chunk) * line + beside * 16;
#pragma unroll
            for (u32 i = 0; i < span / together; i++) {
                f32 four[4];
#pragma unroll
                for (u32 v = 0; v < run; v++) read_words(place[p ^ v] + (i * together + v) * row, four, v);
                to_shared(to + i * 128, four);
            }
        }
    }

    // Reads element v of 16 bytes.
    __device__ static void read_words(u32 from, f32 (&four)[4], u32 v) {
        if constexpr (run == 4) {
            from_shared(from, four[v]);
        } else {
            f32 two[2];
            from_shared(from, two);
            four[2 * v] = two[0];
            four[2 * v + 1] = two[1];
        }
    }

    // The row or column of the tile of a thread's element i.
    __device__ static i32 index(u32 thread, int i) { return (thread + i / run * Across) * run + i % run; }

    // A thread's elements of one k.
    __device__ static void read(Element (&number)[Each], u32 from) {
#pragma unroll
        for (int i = 0; i < Each; i += run) {
            f32 four[4];
            from_shared(from + i / run * Across * 16, four);
#pragma unroll
            for (int v = 0; v < run; v++) {
                if constexpr (run == 4) {
                    number[i + v] = four[v];
                } else {
                    number[i + v] = {four[2 * v], four[2 * v + 1]};
                }
            }
        }
    }
};

enum Operation : int { none, transposed, adjoint };

// The names of barriers.
enum : u32 { producers_barrier = 1, consumers_barrier = 2 };

template <Operation Of, typename Element>
__device__ inline Element as_multiplied(Element x) {
    return Of == adjoint ? conjugated(x) : x;
}

template <typename Element, bool Large, Operation OfA, Operation OfB>
__device__ inline void gemm(const TensorMap* a, const TensorMap* b, Element* c, const GemmParameters& parameters) {
    typedef Tile<Element, Large> Sizes;
    enum : bool { k_major_a = OfA == none, k_major_b = OfB != none };
    typedef Operand<Element, Sizes, Sizes::each_row, Sizes::down, k_major_a> A;
    typedef Operand<Element, Sizes, Sizes::each_column, Sizes::across, k_major_b> B;
    typedef PipelineState<Sizes::stages> Stage;
    enum : int {
        rows = Sizes::each_row,
        columns = Sizes::each_column,
        run = Sizes::run,
        transposed_a = k_major_a ? Sizes::bytes_a : 0,
        transposed_b = k_major_b ? Sizes::bytes_b : 0,
        bytes_transposed = transposed_a + transposed_b,  // Of a stage, loaded into the transpose buffer.
        bytes_direct = Sizes::bytes - bytes_transposed,
    };

    const BlockTile tile(parameters, Sizes::rows, Sizes::columns);

    // The swizzle repeats after 1024 bytes.
    const u32 transpose_buffer = (shared_address(shared_memory) + 1023) & ~1023u;
    const u32 stages = transpose_buffer + bytes_transposed;
    const u32 loaded = stages + Sizes::stages * Sizes::bytes, full = loaded + 8, empty = full + 8 * Sizes::stages;
    if (threadIdx.x == 0) {
        barrier_initialise(loaded, 1);
        for (int stage = 0; stage < Sizes::stages; stage++) {
            barrier_initialise(full + 8 * stage, (bytes_direct > 0) + (bytes_transposed > 0 ? Sizes::producers / 32 : 0));
            barrier_initialise(empty + 8 * stage, Sizes::consumers / 32);
        }
        barriers_initialised();
        prefetch_map(a);
        prefetch_map(b);
    }
    __syncthreads();
    wait_for_earlier();
    // Blocks of the next kernel start as the last blocks of this one end.
    next_may_start();

    const u32 lane = threadIdx.x % 32;
    // A warp arrives once all of its lanes are there.
    auto arrive = [&](u32 barrier) {
        __syncwarp();
        if (lane == 0) barrier_arrive(barrier);
    };

    if (threadIdx.x >= Sizes::consumers) {
        if constexpr (Sizes::divides_registers) registers_down_to<Sizes::producer_registers>();
        const u32 producer = threadIdx.x - Sizes::consumers;
        if (bytes_transposed == 0 && producer > 0) return;
        const i32 of_a = parameters.a_matrix ? (i32)tile.matrix : 0, of_b = parameters.b_matrix ? (i32)tile.matrix : 0;
        // One producer: loads the next data to transpose, if there is more.
        auto load_transpose_buffer = [&](i32 k) {
            if (producer > 0 || k >= parameters.k) return;
            barrier_expect(loaded, bytes_transposed);
            if (k_major_a) A::copy(transpose_buffer, a, loaded, tile.row, k, of_a);
            if (k_major_b) B::copy(transpose_buffer + transposed_a, b, loaded, tile.column, k, of_b);
        };
        if (bytes_transposed > 0) load_transpose_buffer(0);
        Stage into;
        u32 phase = 0;
#pragma unroll 1
        for (i32 k = 0; k < parameters.k; k += Sizes::depth) {
            const u32 stage = stages + into.stage * Sizes::bytes, ready = full + 8 * into.stage;
            barrier_wait(empty + 8 * into.stage, into.phase ^ 1);
            if (bytes_direct > 0 && producer == 0) {
                barrier_expect(ready, bytes_direct);
                if (!k_major_a) A::copy(stage, a, ready, tile.row, k, of_a);
                if (!k_major_b) B::copy(stage + Sizes::bytes_a, b, ready, tile.column, k, of_b);
            }
            if (bytes_transposed > 0) {
                __syncwarp();
                barrier_wait(loaded, phase);
                phase ^= 1;
                if (k_major_a) A::transpose(transpose_buffer, stage, producer);
                if (k_major_b) B::transpose(transpose_buffer + transposed_a, stage + Sizes::bytes_a, producer);
                arrive(ready);
                // All producers have read the transpose buffer.
                named_barrier(producers_barrier, Sizes::producers);
                load_transpose_buffer(k + Sizes::depth);
            }
            into.advance();
        }
        return;
    }
    if constexpr (Sizes::divides_registers) {
        static_assert(Sizes::producers * Sizes::producer_registers + Sizes::consumers * Sizes::consumer_registers <=
                          Sizes::threads * Sizes::share,
                      "registers are there");
        registers_up_to<Sizes::consumer_registers>();
    }

    constexpr int of_slice = Sizes::consumers / Sizes::slices;
    const u32 thread = threadIdx.x % of_slice, slice = threadIdx.x / of_slice, warp = thread / 32;
    const u32 down = warp % (Sizes::down / 8) * 8 + (lane & 1) + (lane >> 1 & 2) + (lane >> 2 & 4);
    const u32 across = warp / (Sizes::down / 8) * 4 + (lane >> 1 & 1) + (lane >> 2 & 2);
    Element sums[rows][columns];
#pragma unroll
    for (int i = 0; i < rows; i++) {
#pragma unroll
        for (int j = 0; j < columns; j++) clear(sums[i][j]);
    }
    const u32 start_a = stages + down * 16, start_b = stages + Sizes::bytes_a + across * 16;
    // Of a step, and of a slice.
    constexpr u32 on_a = Sizes::step * run * A::line, on_b = Sizes::step * run * B::line;
    Stage now;
    u32 chunk = slice * Sizes::step;
    u32 from_a = start_a + slice * on_a, from_b = start_b + slice * on_b;
    // A thread's elements of this k and the next one.
    Element x[2][rows], y[2][columns];
    barrier_wait(full, 0);
    A::read(x[0], from_a);
    B::read(y[0], from_b);
    // k is filled up with zeros to the multiple that gemm_async.cu uses.
    constexpr int filled = 2 * Sizes::step * run;
    i32 left = (parameters.k + filled - 1) / filled * (2 / Sizes::slices);
#pragma unroll 1
    for (; left > 0; left--) {
        // The address of the next step, which is read before this one is multiplied to its end; the last read is not used.
        chunk += Sizes::all;
        const bool ends = chunk >= Sizes::chunks;
        u32 next_a = from_a + Sizes::slices * on_a, next_b = from_b + Sizes::slices * on_b;
        const u32 read = empty + 8 * now.stage;
        if (ends) {
            now.advance();
            if (left > 1) barrier_wait(full + 8 * now.stage, now.phase);
            chunk = slice * Sizes::step;
            next_a = start_a + now.stage * Sizes::bytes + slice * on_a;
            next_b = start_b + now.stage * Sizes::bytes + slice * on_b;
        }
#pragma unroll
        for (int k = 0; k < Sizes::step * run; k++) {
            const int more = k + 1;
            const bool goes_on = more == Sizes::step * run;
            A::read(x[more % 2], goes_on ? next_a : from_a + more * A::line);
            B::read(y[more % 2], goes_on ? next_b : from_b + more * B::line);
#pragma unroll
            for (int i = 0; i < rows; i++) {
#pragma unroll
                for (int v = 0; v < columns; v++) {
                    const int j = i % 2 ? v ^ Sizes::zigzag : v;
                    sums[i][j] =
                        multiply_add(as_multiplied<OfA>(x[k % 2][i]), as_multiplied<OfB>(y[k % 2][j]), sums[i][j]);
                }
            }
        }
        from_a = next_a;
        from_b = next_b;
        if (ends) arrive(read);
    }

    if constexpr (Sizes::slices == 1) {
        // The rows move up, because registers have no index and unrolled code for all rows is long.
#pragma unroll 1
        for (int i = 0; i < rows; i++) {
#pragma unroll
            for (int j = 0; j < columns; j += run) {
                Element numbers[run];
#pragma unroll
                for (int v = 0; v < run; v++) numbers[v] = sums[0][j + v];
                store_run(c, parameters, tile.matrix, tile.row + A::index(down, i), tile.column + B::index(across, j), numbers);
            }
#pragma unroll
            for (int above = 0; above + 1 < rows; above++) {
#pragma unroll
                for (int j = 0; j < columns; j++) sums[above][j] = sums[above + 1][j];
            }
        }
    } else {
        // The slices exchange their sums through the memory of the stages; each slice adds and stores a part of the rows.
        constexpr u32 apart = of_slice * 16, of_row = columns / run * apart, of_sums = rows * of_row;
        constexpr int part = rows / Sizes::slices;
        static_assert(run == 4 && rows % Sizes::slices == 0 && Sizes::slices * of_sums <= Sizes::stages * Sizes::bytes,
                      "a run has 4 numbers, the rows are divided, and all sums have place");
        // Neighbours are swapped: a store takes consecutive registers, and in this order the assembler puts the operands of an fma in
        // different banks more often.
        enum : int { neighbour = 1 };
        const u32 mine = stages + thread * 16;
        named_barrier(consumers_barrier, Sizes::consumers);
#pragma unroll
        for (int i = 0; i < rows; i++) {
#pragma unroll
            for (int j = 0; j < columns; j += run) {
                Element four[run];
#pragma unroll
                for (int v = 0; v < run; v++) four[v] = sums[i][j + (v ^ neighbour)];
                to_shared(mine + slice * of_sums + i * of_row + j / run * apart, four);
            }
        }
        named_barrier(consumers_barrier, Sizes::consumers);
#pragma unroll 1
        for (int i = slice * part; i < (int)(slice + 1) * part; i++) {
#pragma unroll
            for (int j = 0; j < columns; j += run) {
                Element numbers[run];
#pragma unroll
                for (int of = 0; of < Sizes::slices; of++) {
                    Element four[run];
                    from_shared(mine + of * of_sums + i * of_row + j / run * apart, four);
#pragma unroll
                    for (int v = 0; v < run; v++) {
                        Element& number = numbers[v ^ neighbour];
                        number = of == 0 ? four[v] : number + four[v];
                    }
                }
                store_run(c, parameters, tile.matrix, tile.row + A::index(down, i), tile.column + B::index(across, j), numbers);
            }
        }
    }
}

}  // namespace

#define ENTRY(element, layout, size, large, of_a, of_b)                                                       \
    extern "C" __global__ void __launch_bounds__(Tile<element, large>::threads, Tile<element, large>::blocks) \
        gemm_bulk_##element##_##layout##_##size(const __grid_constant__ TensorMap a,                          \
                                                const __grid_constant__ TensorMap b, element* c,              \
                                                const __grid_constant__ GemmParameters parameters) {          \
        gemm<element, large, of_a, of_b>(&a, &b, c, parameters);                                              \
    }
#define LAYOUTS(element, size, large)                  \
    ENTRY(element, nn, size, large, none, none)        \
    ENTRY(element, nt, size, large, none, transposed)  \
    ENTRY(element, tn, size, large, transposed, none)  \
    ENTRY(element, tt, size, large, transposed, transposed)
#define LAYOUTS_f32(size, large) LAYOUTS(f32, size, large)
#define LAYOUTS_c64(size, large)                     \
    LAYOUTS(c64, size, large)                        \
    ENTRY(c64, nc, size, large, none, adjoint)       \
    ENTRY(c64, tc, size, large, transposed, adjoint) \
    ENTRY(c64, cn, size, large, adjoint, none)       \
    ENTRY(c64, ct, size, large, adjoint, transposed) \
    ENTRY(c64, cc, size, large, adjoint, adjoint)
#define LAYOUTS_OF(element, size, large) LAYOUTS_##element(size, large)
#define SIZES(element)                \
    LAYOUTS_OF(element, large, true)  \
    LAYOUTS_OF(element, small, false)

SIZES(ELEMENT)
