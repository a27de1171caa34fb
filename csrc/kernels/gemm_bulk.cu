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
// How: one thread has stages brought in by bulk copies, which takes neither registers nor, of the other threads,
// instructions. `full` says that a stage's bytes have come, `turned` that what was stored with k along its rows is turned
// over (see `Operand`), `empty` that all warps have read it; there is no barrier of the block in the loop. Two large tiles
// share a multiprocessor, so that one is multiplied while the other begins or is stored.
//
// A multiprocessor issues an fma of a warp each clock in each of its quarters, if nothing else: so what counts is what else
// there is. A thread multiplies 8 x 16 numbers (c64: 8 x 8) of one k, which it reads 16 bytes at a time, and has read the
// next ones meanwhile. It reads the next k at an offset, or with one bit operation for what was turned over.
// - Shared memory answers a half warp's reads of 16 bytes at once where each lane has the address of lane ^ 1 or of
//   lane ^ 2, else a quarter's. So bit 0 of the lane counts rows and bit 1 columns.
// - An fma reads three registers, of two banks that each give one a clock; what the one before it read in the same place
//   is still at hand. So the order is to and fro, and neighbours share a number of A or of B; and numbers of one k are
//   read together, rather than the next k of a row, which would all be in one bank.
//
// A product may be launched to start before the kernel ahead of it on the stream has ended: barriers are made and tensor maps
// fetched meanwhile (hopper.cuh).
//
// What is turned over costs a large product 5 %: where that is more than a copy of the operand takes, the Rust side copies it
// first, turned over (gemm_turn.cu), and launches the kernel of the other layout. Small tiles of f32 read A as it lies, which
// takes large ones 3 to 5 % longer than to turn it over (measured at 2048 to 8192).
//
// | version | what | f32, nn, on one H200, in turns with cuBLAS, whose speed is 1 |
// |---|---|---|
// | (gemm_async.cu) | copies by all threads, one by one where k is contiguous | 0.81 at 1024, 0.85 at 4096, 0.88 at 8192 |
// | 1 | bulk copies; what has k along its rows is turned over; small tiles of 128 x 64 | 0.88 at 1024, 0.94 at 2048, 0.96 at 4096, 1.00 at 8192; tn 1.01 at 4096 |
// | 2 | small tiles of 64 x 64 that read A as it lies; large operands turned over first | 1.009 at 1024, 0.938 at 2048 (not turned; turned over first it takes 0.984 of the time), 0.994 at 4096, 1.028 at 8192 |
#include "gemm_blocks.cuh"
#include "hopper.cuh"

// Outside of the namespace, which has no name of its own: the compiler would make one up, another one each time.
extern __shared__ unsigned char shared_memory[];

namespace {

// How a block divides its tile. Enumerators, because constants would become variables of the module.
template <typename Element, int EachRow, int EachColumn, int Down, int Slices, int Stages, int Ahead, int Blocks, bool ByColumns,
          bool AsItLies>
struct TileOf {
    enum : int {
        each_row = EachRow,  // Rows of a thread.
        each_column = EachColumn,
        down = Down,  // Threads below each other, 8 of a warp.
        across = 8,
        slices = Slices,  // Parts of the block that divide the depth.
        stages = Stages,
        ahead = Ahead,    // Stages from one that is multiplied to the one that is brought in meanwhile.
        blocks = Blocks,  // Of a multiprocessor.
        by_columns = ByColumns,  // Whether a thread goes to and fro in columns, not in rows, where B was turned over.
        as_it_lies = AsItLies,   // Whether rows of A with k along them are read as they lie.
        rows = down * EachRow,
        columns = across * EachColumn,
        threads = down * across * Slices,
        run = 16 / sizeof(Element),  // Elements that are read together.
        pieces = 8,                  // Of 16 bytes of k in a stage.
        depth = pieces * run,
        step = 2,             // Pieces that a slice multiplies between two looks at the barriers.
        all = step * slices,  // And all slices.
        steps = pieces / all,
        // The step in which the next stage is turned over: early, so that no warp waits for another in the last one.
        middle = (steps - 1) / 2,
        bytes_a = rows * 128,
        bytes = bytes_a + columns * 128,
    };
};

// `AlongA` says whether k runs along the stored rows of A.
template <typename Element, bool Large, bool AlongA>
struct Tile;
template <bool AlongA>
struct Tile<f32, true, AlongA> : TileOf<f32, 8, 16, 16, 1, 3, 2, 2, true, false> {};
template <>
struct Tile<f32, false, true> : TileOf<f32, 8, 8, 8, 2, 5, 3, 2, false, true> {};
template <>
struct Tile<f32, false, false> : TileOf<f32, 8, 8, 16, 2, 4, 2, 1, false, false> {};
template <bool AlongA>
struct Tile<c64, true, AlongA> : TileOf<c64, 8, 8, 16, 1, 4, 3, 2, false, false> {};
template <bool AlongA>
struct Tile<c64, false, AlongA> : TileOf<c64, 4, 8, 16, 1, 4, 3, 3, false, false> {};

// How an operand lies in shared memory: its `Each` * `Across` rows or columns, of which each of `Across` threads below or
// beside each other has `Each`. `Along` says whether k runs along the stored rows.
//
// Where it does not, runs of 16 bytes lie k by k, and neighbouring threads read neighbouring runs.
//
// Where it does, a stage comes as rows of 8 pieces of 16 bytes, of which the swizzle puts number p of row r at p ^ (r % 8).
// The squares that `run` rows make with one piece are then turned over in place: where piece p of the square's row v was,
// its `run` rows of k = p * run + (v ^ shift) are. The shift differs between squares, so that what 8 neighbouring squares
// have of one k, which neighbouring threads read, lies in different banks.
//
// Or they stay `AsItLies`: a thread reads a piece of each of its rows, and neighbouring threads have neighbouring rows, whose
// pieces the swizzle puts into different banks.
template <typename Element, typename Sizes, int Each, int Across, bool Along, bool AsItLies>
struct Operand {
    enum : int {
        span = Each * Across,
        run = Sizes::run,
        row = 128,           // In bytes.
        square = run * row,  // From a square to the one below.
        flip = row + 16,     // The bits to flip from a square's row 0 to row 1: its place, and the swizzle.
    };

    // The box of a stage, from the tile's first row or column and k on.
    __device__ static void copy(u32 to, const TensorMap* map, u32 full, i32 first, i32 k, i32 matrix) {
        copy_box(to, map, full, Along ? k : first, Along ? first : k, matrix);
    }

    // The place of a square's piece 0 of row 0, and the bits to flip from there to k = 0.
    __device__ static u32 corner(u32 number) { return number * square + number * run % 8 * 16; }
    __device__ static u32 shift(u32 number) { return number / (8 / run) % run * flip; }

    // Turns a stage's squares over; each thread some.
    __device__ static void turn_over(u32 stage) {
        if constexpr (Along && !AsItLies) {
            // 8 pieces of a row are in different banks.
            const u32 piece = threadIdx.x % 8, first = threadIdx.x / 8;
            constexpr int squares = span / run, at_once = Sizes::threads / 8;
            static_assert(at_once % 8 == 0, "a thread's squares have the same shift");
            if (at_once > squares && first >= squares) return;
            const u32 from = stage + (corner(first) ^ piece * 16), to = from ^ shift(first);
#pragma unroll
            for (int below = 0; below < squares; below += at_once) {
                // Of f32 a number is a word, of c64 two.
                f32 in[run][4];
#pragma unroll
                for (int v = 0; v < run; v++) from_shared((from ^ v * flip) + below * square, in[v]);
#pragma unroll
                for (int v = 0; v < run; v++) {
                    constexpr int words = 4 / run;
                    f32 out[4];
#pragma unroll
                    for (int word = 0; word < 4; word++) out[word] = in[word / words][v * words + word % words];
                    to_shared((to ^ v * flip) + below * square, out);
                }
            }
        }
    }

    // Which row or column of the tile a thread's number i is.
    __device__ static i32 index(u32 thread, int i) {
        return AsItLies ? thread + i * Across : (thread + i / run * Across) * run + i % run;
    }

    // From a stage's begin to where the thread reads at k = 0.
    __device__ static u32 start(u32 thread) {
        if (AsItLies) return thread * row + thread % 8 * 16;
        return Along ? corner(thread) ^ shift(thread) : thread * 16;
    }

    // From there to where it reads `k` after the begin of a piece; or on from there, where no number has a bit in common.
    __device__ static u32 at(u32 from, u32 piece, u32 k) {
        return Along ? from ^ piece * 16 ^ k * flip : from + (piece * run + k) * (span * sizeof(Element));
    }

    // A piece of the thread's row i, where it is read as it lies.
    __device__ static void read_piece(Element (&piece)[run], u32 from, int i) {
        static_assert(run == 4 && Across % 8 == 0, "a piece has 4 numbers, and the swizzle is that of the thread's first row");
        from_shared(from + i * Across * row, piece);
    }

    // A thread's numbers of one k.
    __device__ static void read(Element (&number)[Each], u32 from) {
#pragma unroll
        for (int i = 0; i < Each; i += run) {
            f32 four[4];
            from_shared(from + i / run * Across * (Along ? square : 16), four);
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

template <Operation Of, typename Element>
__device__ inline Element as_multiplied(Element x) {
    return Of == adjoint ? conjugated(x) : x;
}

template <typename Element, bool Large, Operation OfA, Operation OfB>
__device__ inline void gemm(const TensorMap* a, const TensorMap* b, Element* c, const Shape& shape) {
    typedef Tile<Element, Large, OfA == none> Sizes;
    enum : bool {
        along_a = OfA == none,
        along_b = OfB != none,
        as_it_lies = along_a && Sizes::as_it_lies,
        turns_over = (along_a && !as_it_lies) || along_b,
    };
    typedef Operand<Element, Sizes, Sizes::each_row, Sizes::down, along_a, as_it_lies> A;
    typedef Operand<Element, Sizes, Sizes::each_column, Sizes::across, along_b, false> B;
    typedef Turn<Sizes::stages> Stage;
    enum : int { rows = Sizes::each_row, columns = Sizes::each_column, run = Sizes::run };

    const BlockTile tile(shape, Sizes::rows, Sizes::columns);
    constexpr int of_slice = Sizes::threads / Sizes::slices;
    const u32 thread = threadIdx.x % of_slice, slice = threadIdx.x / of_slice, warp = thread / 32, lane = thread % 32;
    const u32 down = warp % (Sizes::down / 8) * 8 + (lane & 1) + (lane >> 1 & 2) + (lane >> 2 & 4);
    const u32 across = warp / (Sizes::down / 8) * 4 + (lane >> 1 & 1) + (lane >> 2 & 2);

    // Stages begin at multiples of 1024 bytes, after which the swizzle repeats.
    const u32 stages = (shared_address(shared_memory) + 1023) & ~1023u;
    const u32 full = stages + Sizes::stages * Sizes::bytes, turned = full + 8 * Sizes::stages,
              empty = turned + 8 * Sizes::stages;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < Sizes::stages; stage++) {
            barrier_initialise(full + 8 * stage, 1);
            barrier_initialise(turned + 8 * stage, Sizes::threads / 32);
            barrier_initialise(empty + 8 * stage, Sizes::threads / 32);
        }
        barriers_initialised();
        prefetch_map(a);
        prefetch_map(b);
    }
    __syncthreads();
    wait_for_earlier();
    // Its blocks find room as the last of these leave.
    next_may_start();

    // Thread 0: has the next stage brought in, if there is one, once its place is free.
    i32 copied = 0;
    Stage into;
    auto copy = [&]() {
        if (copied >= shape.k) return;
        barrier_wait(empty + 8 * into.stage, into.parity ^ 1);
        const u32 to = stages + into.stage * Sizes::bytes, told = full + 8 * into.stage;
        barrier_expect(told, Sizes::bytes);
        A::copy(to, a, told, tile.row, copied, shape.a_matrix ? (i32)tile.matrix : 0);
        B::copy(to + Sizes::bytes_a, b, told, tile.column, copied, shape.b_matrix ? (i32)tile.matrix : 0);
        copied += Sizes::depth;
        into.next();
    };
    if (threadIdx.x == 0) {
#pragma unroll 1
        for (int stage = 0; stage < Sizes::ahead; stage++) copy();
    }

    // A warp arrives once all of its lanes are there.
    auto arrive = [&](u32 barrier) {
        __syncwarp();
        if (lane == 0) barrier_arrive(barrier);
    };
    // All warps: where a stage must be turned over, wait until it has come, and do.
    auto turn_over = [&](const Stage& stage) {
        if (turns_over) {
            barrier_wait(full + 8 * stage.stage, stage.parity);
            A::turn_over(stages + stage.stage * Sizes::bytes);
            B::turn_over(stages + stage.stage * Sizes::bytes + Sizes::bytes_a);
            // A copy will come to where this was written.
            publish_to_copies();
            arrive(turned + 8 * stage.stage);
        }
    };
    auto wait_until_ready = [&](const Stage& stage) {
        barrier_wait((turns_over ? turned : full) + 8 * stage.stage, stage.parity);
    };

    Element sums[rows][columns];
#pragma unroll
    for (int i = 0; i < rows; i++) {
#pragma unroll
        for (int j = 0; j < columns; j++) clear(sums[i][j]);
    }
    const u32 start_a = stages + A::start(down), start_b = stages + Sizes::bytes_a + B::start(across);
    const u32 first = slice * Sizes::step;
    Stage now, next;
    u32 stage_a = start_a, stage_b = start_b, piece = first;
    u32 from_a = A::at(stage_a, piece, 0), from_b = B::at(stage_b, piece, 0);
    // A thread's numbers of A of this k and the next one; or, as they lie, of a piece of each row.
    Element x[2][rows], pieces[rows][run], y[2][columns];
    turn_over(now);
    wait_until_ready(now);
    if constexpr (as_it_lies) {
#pragma unroll
        for (int i = 0; i < rows; i++) A::read_piece(pieces[i], from_a, i);
    } else {
        A::read(x[0], from_a);
    }
    B::read(y[0], from_b);
    // What the last stage holds beyond k is not multiplied, but for the zeros that fill up as many k as gemm_async.cu has.
    constexpr int filled = 2 * Sizes::step * run;
    i32 left = (shape.k + filled - 1) / filled * (2 / Sizes::slices);
#pragma unroll 1
    for (; left > 0; left--) {
        if (piece == first + Sizes::middle * Sizes::all) {
            if (threadIdx.x == 0) copy();
            next.next();
            if (left > Sizes::steps - Sizes::middle) turn_over(next);
        }
        // Where the next step is, which is read before this one is all multiplied: what the last one reads is not used.
        piece += Sizes::all;
        const bool ends = piece >= Sizes::pieces;
        if (ends) {
            if (left > 1) wait_until_ready(next);
            stage_a = start_a + next.stage * Sizes::bytes;
            stage_b = start_b + next.stage * Sizes::bytes;
            piece = first;
        }
        const u32 next_a = A::at(stage_a, piece, 0), next_b = B::at(stage_b, piece, 0);
#pragma unroll
        for (int k = 0; k < Sizes::step * run; k++) {
            const int more = k + 1;
            const bool goes_on = more == Sizes::step * run;
            const u32 more_a = goes_on ? next_a : A::at(from_a, more / run, more % run);
            if constexpr (!as_it_lies) A::read(x[more % 2], more_a);
            B::read(y[more % 2], goes_on ? next_b : B::at(from_b, more / run, more % run));
            // As the assembler finds registers in different banks more often.
            constexpr bool by_columns = Sizes::by_columns && along_b;
            constexpr int outer = by_columns ? columns : rows, inner = by_columns ? rows : columns;
#pragma unroll
            for (int u = 0; u < outer; u++) {
#pragma unroll
                for (int v = 0; v < inner; v++) {
                    const int to_and_fro = u % 2 ? inner - 1 - v : v;
                    const int i = by_columns ? to_and_fro : u, j = by_columns ? u : to_and_fro;
                    const Element of_a = as_it_lies ? pieces[i][k % run] : x[k % 2][i];
                    sums[i][j] = multiply_add(as_multiplied<OfA>(of_a), as_multiplied<OfB>(y[k % 2][j]), sums[i][j]);
                }
                // Once a row's piece is multiplied its next one is read.
                if constexpr (as_it_lies) {
                    static_assert(!by_columns, "the outer loop is that of the rows");
                    if (more % run == 0) A::read_piece(pieces[u], more_a, u);
                }
            }
        }
        from_a = next_a;
        from_b = next_b;
        if (ends) {
            arrive(empty + 8 * now.stage);
            now = next;
        }
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
        __syncthreads();
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
        __syncthreads();
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
    extern "C" __global__ void __launch_bounds__(Tile<element, large, of_a == none>::threads, \
                                                 Tile<element, large, of_a == none>::blocks)  \
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
