// C = alpha op(A) op(B) + beta C with ordinary arithmetic on compute capability 9.0, for ELEMENT (-DELEMENT=f32 or c64).
// One family for each.
//
// Entries: gemm_bulk_<ELEMENT>_<A><B>_<tile>(map of A, map of B, C, shape). A and B are n (stored as they are multiplied,
// row by row), t (stored transposed) or, of c64, c (stored transposed, and conjugated); tile is `large` or `small`. Of
// `Shape` the leading dimensions, flags and conjugations of A and B are not used, but that an `a_matrix` of 0 says that
// all products share one A. The maps are of three dimensions, the contiguous one first and the matrix's number in the
// batch last. Their boxes, `span` being a tile's rows or columns, and a stage 128 bytes of k deep:
//   k runs along the stored rows (A n, B t and c): a stage of k x span, with a swizzle of 128 bytes.
//   m or n does (A t and c, B n): span x a stage of k, without a swizzle.
// Copies fill what is outside a matrix with zeros. k is at least 1. Launch: a block for each tile of each matrix, of the
// threads that `Tile` counts, and the dynamic shared memory that the Rust side's `gemm::simt` counts.
//
// What must stay true: numbers are added as gemm_async.cu adds them, so that tiles of one name give the same bits: in their
// own type by fma, with k ascending and filled up with zeros to a multiple of 16 (f32) or 8 (c64); of a small tile of f32
// every other 8 k are another slice's, whose sum is added last.
//
// How: helpers of their own, behind the threads that multiply, have stages brought in by bulk copies and turn over what was stored
// with k along its rows (see `Operand`), so that all layouts are multiplied by the same code. `come` says that what is to be turned
// over has come, `full` that a stage is there, `empty` that all warps have read it; there is no barrier of the block in the loop.
// Two large tiles share a multiprocessor, so that one is multiplied while the other begins or is stored. Of a large tile the helpers
// are a warpgroup, which gives registers to those that multiply; of a small one they are a warp.
//
// A multiprocessor issues an fma of a warp each clock in each of its quarters, if nothing else: so what counts is what else
// there is. A thread multiplies 8 x 16 numbers (c64: 8 x 8) of one k, which it reads 16 bytes at a time, and has read the
// next ones meanwhile. Helpers turn 4 numbers over by 4 loads and a store, without moves.
// - Shared memory answers a half warp's reads of 16 bytes at once where each lane has the address of lane ^ 1 or of
//   lane ^ 2, else a quarter's. So bit 0 of the lane counts rows and bit 1 columns.
// - An fma reads three registers, of two banks that each give one a clock; what the one before it read in the same place
//   is still at hand. So the order is to and fro, and neighbours share a number of A or of B; and numbers of one k are
//   read together. Another order and another number of registers, and the assembler finds registers in the same bank for half of
//   all instead of an eighth, which takes 7 % longer (2048^3).
//
// A product may be launched to start before the kernel ahead of it on the stream has ended: barriers are made and tensor maps
// fetched meanwhile (hopper.cuh).
//
// | version | what | f32, nn, on one H200, in turns with cuBLAS, whose speed is 1 |
// |---|---|---|
// | (gemm_async.cu) | copies by all threads, one by one where k is contiguous | 0.81 at 1024, 0.85 at 4096, 0.88 at 8192 |
// | 1 | bulk copies by one thread; all turn over what has k along its rows; small tiles of 128 x 64 | 0.88 at 1024, 0.94 at 2048, 0.96 at 4096, 1.00 at 8192; tn 1.01 at 4096 |
// | 2 | small tiles of 64 x 64 that read A as it lies; large operands turned over first, by a kernel of their own | 1.026 at 1024, 0.959 at 2048, 0.994 at 4096, 1.028 at 8192 |
// | 3 | helpers copy and turn over, and there is no other kernel any more | 1.017 at 1024, 1.006 at 2048, 1.032 at 4096, 1.031 at 8192; c64 at 4096: 0.91 for 0.88 |
#include "gemm_blocks.cuh"
#include "hopper.cuh"

// Outside of the namespace, which has no name of its own: the compiler would make one up, another one each time.
extern __shared__ unsigned char shared_memory[];

namespace {

// How a block divides its tile. Enumerators, because constants would become variables of the module.
template <typename Element, int EachRow, int EachColumn, int Down, int Slices, int Stages, int Helpers, int Blocks, int Bend>
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
        multipliers = down * across * Slices,
        helpers = Helpers,  // Threads that bring stages in, behind those that multiply.
        threads = multipliers + helpers,
        divides_registers = helpers == 128,  // What whole warpgroups can.
        run = 16 / sizeof(Element),  // Elements that are read together.
        pieces = 8,                  // Of 16 bytes of k in a stage.
        depth = pieces * run,
        bend = Bend,  // A thread's number v of an odd row is v ^ bend: to and fro, or to and fro in fours.
        step = 2,             // Pieces that a slice multiplies between two looks at the barriers.
        all = step * slices,  // And all slices.
        // A block begins with an equal share of the registers, and has no others: asking for more than is given back would wait
        // for ever.
        share = 65536 / (blocks * threads) / 8 * 8,
        of_helpers = 56,
        of_multipliers = 200,
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

// An operand of a tile: `Each` rows or columns of each of `Across` threads below or beside each other. `Along` says whether
// k runs along the stored rows.
//
// In a stage runs of 16 bytes lie k by k, and neighbouring threads read neighbouring runs. So it comes where k does not run along
// the stored rows. Where it does, it comes elsewhere, as rows of 8 pieces of 16 bytes, of which the swizzle puts number p of row r
// at p ^ (r % 8), and is turned over into the stage: the squares that `run` rows make with one piece.
template <typename Element, typename Sizes, int Each, int Across, bool Along>
struct Operand {
    enum : int {
        span = Each * Across,
        run = Sizes::run,
        pieces = Sizes::pieces,
        row = 128,                         // In bytes.
        line = span * (int)sizeof(Element),  // From one k of a stage to the next.
        bytes = span * row,
    };

    // The box of a stage, from the tile's first row or column and k on.
    __device__ static void copy(u32 to, const TensorMap* map, u32 full, i32 first, i32 k, i32 matrix) {
        copy_box(to, map, full, Along ? k : first, Along ? first : k, matrix);
    }

    // Turns over what has come `from` there; each helper some runs.
    //
    // Of 8 * `run` helpers 8 neighbours have runs beside each other, and so many eights the k of a piece. What they read of one row
    // of their runs lies in different banks, since neighbours read different pieces, and so do the runs that they write.
    __device__ static void turn_over(u32 from, u32 stage, u32 helper) {
        constexpr u32 together = 8 * run, per = pieces / (Sizes::helpers / together), most = per > run ? per : run;
        const u32 beside = helper % 8, of_piece = helper / 8 % run, first = helper / together * per ^ beside * run / 8;
        u32 place[most];
#pragma unroll
        for (u32 i = 0; i < most; i++) {
            place[i] = from + beside * run * row + (first ^ beside * run % 8 ^ i) * 16 + of_piece * (u32)sizeof(Element);
        }
#pragma unroll
        for (u32 p = 0; p < per; p++) {
            const u32 to = stage + ((first ^ p) * run + of_piece) * line + beside * 16;
#pragma unroll
            for (u32 i = 0; i < span / together; i++) {
                f32 four[4];
#pragma unroll
                for (u32 v = 0; v < run; v++) read_words(place[p ^ v] + (i * together + v) * row, four, v);
                to_shared(to + i * 128, four);
            }
        }
    }

    // An element, as number v of those in 16 bytes.
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

    // Which row or column of the tile a thread's number i is.
    __device__ static i32 index(u32 thread, int i) { return (thread + i / run * Across) * run + i % run; }

    // A thread's numbers of one k.
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
enum : u32 { among_helpers = 1, among_multipliers = 2 };

template <Operation Of, typename Element>
__device__ inline Element as_multiplied(Element x) {
    return Of == adjoint ? conjugated(x) : x;
}

template <typename Element, bool Large, Operation OfA, Operation OfB>
__device__ inline void gemm(const TensorMap* a, const TensorMap* b, Element* c, const Shape& shape) {
    typedef Tile<Element, Large> Sizes;
    enum : bool { along_a = OfA == none, along_b = OfB != none };
    typedef Operand<Element, Sizes, Sizes::each_row, Sizes::down, along_a> A;
    typedef Operand<Element, Sizes, Sizes::each_column, Sizes::across, along_b> B;
    typedef Turn<Sizes::stages> Stage;
    enum : int {
        rows = Sizes::each_row,
        columns = Sizes::each_column,
        run = Sizes::run,
        turned_a = along_a ? Sizes::bytes_a : 0,
        turned_b = along_b ? Sizes::bytes_b : 0,
        bytes_turned = turned_a + turned_b,  // What is turned over of a stage comes here.
        bytes_direct = Sizes::bytes - bytes_turned,
    };

    const BlockTile tile(shape, Sizes::rows, Sizes::columns);

    // What is turned over begins at a multiple of 1024 bytes, after which the swizzle repeats.
    const u32 turned = (shared_address(shared_memory) + 1023) & ~1023u;
    const u32 stages = turned + bytes_turned;
    const u32 come = stages + Sizes::stages * Sizes::bytes, full = come + 8, empty = full + 8 * Sizes::stages;
    if (threadIdx.x == 0) {
        barrier_initialise(come, 1);
        for (int stage = 0; stage < Sizes::stages; stage++) {
            barrier_initialise(full + 8 * stage, (bytes_direct > 0) + (bytes_turned > 0 ? Sizes::helpers / 32 : 0));
            barrier_initialise(empty + 8 * stage, Sizes::multipliers / 32);
        }
        barriers_initialised();
        prefetch_map(a);
        prefetch_map(b);
    }
    __syncthreads();
    wait_for_earlier();
    // Its blocks find room as the last of these leave.
    next_may_start();

    const u32 lane = threadIdx.x % 32;
    // A warp arrives once all of its lanes are there.
    auto arrive = [&](u32 barrier) {
        __syncwarp();
        if (lane == 0) barrier_arrive(barrier);
    };

    if (threadIdx.x >= Sizes::multipliers) {
        if constexpr (Sizes::divides_registers) registers_down_to<Sizes::of_helpers>();
        const u32 helper = threadIdx.x - Sizes::multipliers;
        if (bytes_turned == 0 && helper > 0) return;
        const i32 of_a = shape.a_matrix ? (i32)tile.matrix : 0, of_b = shape.b_matrix ? (i32)tile.matrix : 0;
        // One helper: has what is turned over next brought in, if there is more.
        auto copy_turned = [&](i32 k) {
            if (helper > 0 || k >= shape.k) return;
            barrier_expect(come, bytes_turned);
            if (along_a) A::copy(turned, a, come, tile.row, k, of_a);
            if (along_b) B::copy(turned + turned_a, b, come, tile.column, k, of_b);
        };
        if (bytes_turned > 0) copy_turned(0);
        Stage into;
        u32 parity = 0;
#pragma unroll 1
        for (i32 k = 0; k < shape.k; k += Sizes::depth) {
            const u32 stage = stages + into.stage * Sizes::bytes, told = full + 8 * into.stage;
            barrier_wait(empty + 8 * into.stage, into.parity ^ 1);
            if (bytes_direct > 0 && helper == 0) {
                barrier_expect(told, bytes_direct);
                if (!along_a) A::copy(stage, a, told, tile.row, k, of_a);
                if (!along_b) B::copy(stage + Sizes::bytes_a, b, told, tile.column, k, of_b);
            }
            if (bytes_turned > 0) {
                __syncwarp();
                barrier_wait(come, parity);
                parity ^= 1;
                if (along_a) A::turn_over(turned, stage, helper);
                if (along_b) B::turn_over(turned + turned_a, stage + Sizes::bytes_a, helper);
                arrive(told);
                // All have read what had come.
                named_barrier(among_helpers, Sizes::helpers);
                copy_turned(k + Sizes::depth);
            }
            into.next();
        }
        return;
    }
    if constexpr (Sizes::divides_registers) {
        static_assert(Sizes::helpers * Sizes::of_helpers + Sizes::multipliers * Sizes::of_multipliers <= Sizes::threads * Sizes::share,
                      "registers are there");
        registers_up_to<Sizes::of_multipliers>();
    }

    constexpr int of_slice = Sizes::multipliers / Sizes::slices;
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
    u32 piece = slice * Sizes::step;
    u32 from_a = start_a + slice * on_a, from_b = start_b + slice * on_b;
    // A thread's numbers of this k and the next one.
    Element x[2][rows], y[2][columns];
    barrier_wait(full, 0);
    A::read(x[0], from_a);
    B::read(y[0], from_b);
    // What the last stage holds beyond k is not multiplied, but for the zeros that fill up as many k as gemm_async.cu has.
    constexpr int filled = 2 * Sizes::step * run;
    i32 left = (shape.k + filled - 1) / filled * (2 / Sizes::slices);
#pragma unroll 1
    for (; left > 0; left--) {
        // Where the next step is, which is read before this one is all multiplied: what the last one reads is not used.
        piece += Sizes::all;
        const bool ends = piece >= Sizes::pieces;
        u32 next_a = from_a + Sizes::slices * on_a, next_b = from_b + Sizes::slices * on_b;
        const u32 read = empty + 8 * now.stage;
        if (ends) {
            now.next();
            if (left > 1) barrier_wait(full + 8 * now.stage, now.parity);
            piece = slice * Sizes::step;
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
                    const int j = i % 2 ? v ^ Sizes::bend : v;
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
        // The other rows move up, because registers have no index, and the code for one row is long.
#pragma unroll 1
        for (int i = 0; i < rows; i++) {
#pragma unroll
            for (int j = 0; j < columns; j += run) {
                Element numbers[run];
#pragma unroll
                for (int v = 0; v < run; v++) numbers[v] = sums[0][j + v];
                store_run(c, shape, tile.matrix, tile.row + A::index(down, i), tile.column + B::index(across, j), numbers);
            }
#pragma unroll
            for (int above = 0; above + 1 < rows; above++) {
#pragma unroll
                for (int j = 0; j < columns; j++) sums[above][j] = sums[above + 1][j];
            }
        }
    } else {
        // All slices' sums, by way of the stages' place, a run of each thread behind one another; each slice adds and stores a
        // part of the rows.
        constexpr u32 apart = of_slice * 16, of_row = columns / run * apart, of_sums = rows * of_row;
        constexpr int part = rows / Sizes::slices;
        static_assert(run == 4 && rows % Sizes::slices == 0 && Sizes::slices * of_sums <= Sizes::stages * Sizes::bytes,
                      "a run has 4 numbers, the rows are divided, and all sums have place");
        // Neighbours change places: what is written together has registers in a row, and in this order the assembler finds
        // those that are multiplied together in different banks more often.
        enum : int { neighbour = 1 };
        const u32 mine = stages + thread * 16;
        named_barrier(among_multipliers, Sizes::multipliers);
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
        named_barrier(among_multipliers, Sizes::multipliers);
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
                store_run(c, shape, tile.matrix, tile.row + A::index(down, i), tile.column + B::index(across, j), numbers);
            }
        }
    }
}

}  // namespace

#define ENTRY(element, layout, size, large, of_a, of_b)                                   \
    extern "C" __global__ void __launch_bounds__(Tile<element, large>::threads, Tile<element, large>::blocks)  \
        gemm_bulk_##element##_##layout##_##size(const __grid_constant__ TensorMap a,          \
                                                const __grid_constant__ TensorMap b, element* c, \
                                                const __grid_constant__ Shape shape) {        \
        gemm<element, large, of_a, of_b>(&a, &b, c, shape);                                   \
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
