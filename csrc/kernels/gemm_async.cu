// C = alpha op(A) op(B) + beta C with an epilogue (epilogue.cuh) on CUDA cores, from compute capability 8.0 on, for ELEMENT (-DELEMENT=f32,
// f64, c64 or c128). One family for each.
//
// Entries: gemm_async_<ELEMENT>_<A><B>_<tile>(A, B, C, parameters). A and B are n (stored as they are multiplied, row by row) or t
// (stored transposed); tile is `large` or `small`. `GemmParameters` has the flags that conjugate.
//
// Launch: one block a tile of each matrix, `Tile` threads, and the dynamic shared memory that src/gemm/simt computes. Any alignment.
//
// Algorithm: a multi-stage cp.async pipeline, as CUTLASS's SIMT "MmaMultistage". A stage holds a step of k, k by k, with m or n
// contiguous; operands that are k-contiguous are copied element by element, the others 16 bytes at a time. A thread multiplies
// 8 x 8 or 8 x 16 elements and reads the next k meanwhile. Its rows are runs of 16 bytes apart from each other, so that a
// warp's reads meet no bank twice.
//
// Invariants: sums are fma in their own type with k ascending; in a small tile of f32 two slices of the block divide each step, and their
// sums are added in order. So the bits depend on the operands and on the size of the tile alone.
//
// | version | change | f32 against cuBLAS in the same run, H200 |
// |---|---|---|
// | (gemm_simt.cu) | steps of 8 through registers | 0.77 at 2048 to 8192, 0.44 at 1024 |
// | 1 | the pipeline | see benches/RESULTS.md |
#include "ampere.cuh"
#include "gemm_blocks.cuh"

// Outside of the namespace, which has no name of its own: the compiler would make one up, another one each time.
extern __shared__ unsigned char shared_memory[];

namespace {

// How a block divides its tile. Enumerators, because constants would become variables of the module.
template <int Rows, int Columns, int EachRow, int EachColumn, int LaneRows, int Slices, int Depth, int Stages, int Blocks,
          int Buffers>
struct TileOf {
    enum : int {
        rows = Rows,
        columns = Columns,
        each_row = EachRow,  // Rows of a thread.
        each_column = EachColumn,
        lane_rows = LaneRows,  // Threads of a warp below each other.
        lane_columns = 32 / LaneRows,
        slices = Slices,  // Parts of the block that divide the depth of a step.
        depth = Depth,    // k of a step.
        stages = Stages,  // Stages in flight.
        buffers = Buffers,  // Fragment buffers: 2 where a thread reads ahead.
        blocks = Blocks,  // Of a multiprocessor, as the registers allow.
        threads = Rows / EachRow * (Columns / EachColumn) * Slices,
        warps_down = Rows / (LaneRows * EachRow),
    };
};

template <typename Element, bool Large>
struct Tile;
template <>
struct Tile<f32, true> : TileOf<128, 128, 8, 16, 8, 1, 16, 3, 2, 2> {};
template <>
struct Tile<f32, false> : TileOf<128, 64, 8, 8, 4, 2, 16, 4, 1, 2> {};
template <>
struct Tile<f64, true> : TileOf<128, 64, 8, 8, 4, 1, 8, 4, 2, 2> {};
template <>
struct Tile<f64, false> : TileOf<64, 32, 8, 4, 4, 1, 8, 4, 3, 2> {};
template <>
struct Tile<c64, true> : TileOf<128, 64, 8, 8, 4, 1, 8, 4, 2, 2> {};
template <>
struct Tile<c64, false> : TileOf<64, 32, 8, 4, 4, 1, 8, 4, 3, 2> {};
template <>
struct Tile<c128, true> : TileOf<64, 64, 8, 4, 4, 1, 8, 3, 2, 1> {};
template <>
struct Tile<c128, false> : TileOf<32, 32, 4, 4, 4, 1, 8, 4, 3, 2> {};

// From one k to the next in shared memory: an odd number of 16 bytes, so that what is put there k by k spreads over the
// banks.
template <typename Element, int Span>
__device__ constexpr u32 pitch() {
    return Span * sizeof(Element) + 16;
}

// The copies of one operand into shared memory: `Span` of m or n by the depth of a step. `KMajor` says whether k runs along
// the stored rows.
template <typename Element, typename Sizes, int Span, bool KMajor>
struct Operand {
    enum : int {
        run = 16 / sizeof(Element),
        // Bytes of a copy of one element, or of half of one.
        piece = sizeof(Element) > 8 ? 8 : sizeof(Element),
        pieces = sizeof(Element) / piece,
    };
    const Element* from;
    i64 leading;
    i32 extent;  // Of m or n, from the tile's first on.
    bool vectors;  // True where all rows are multiples of 16 bytes.

    __device__ Operand(const Element* matrix, i64 leading, i32 first, i32 extent, bool vectors)
        : from(matrix + (KMajor ? first * leading : first)), leading(leading), extent(extent - first), vectors(vectors) {}

    __device__ static void copy_element(u32 to, const Element* source, bool inside) {
#pragma unroll
        for (int i = 0; i < pieces; i++) {
            copy_async<piece>(to + i * piece, (const char*)source + i * piece, inside);
        }
    }

    // Copies the next step, of which so much of k is left; what is outside becomes 0.
    __device__ void copy(u32 to, i32 left) {
        if constexpr (KMajor) {
            // 8 k beside each other, so that a warp reads whole sectors and writes to all banks.
            const i32 k = threadIdx.x % 8, row = threadIdx.x / 8;
            constexpr int rows_at_once = Sizes::threads / 8;
            const Element* source = from + row * leading + k;
#pragma unroll
            for (int y = 0; y < Span; y += rows_at_once) {
#pragma unroll
                for (int x = 0; x < Sizes::depth; x += 8) {
                    const bool inside = row + y < extent && k + x < left;
                    copy_element(to + (k + x) * pitch<Element, Span>() + (row + y) * sizeof(Element), source + x, inside);
                }
                source += rows_at_once * leading;
            }
            from += Sizes::depth;
        } else if (vectors) {
            constexpr int across = Span / run, rows_at_once = Sizes::threads / across;
            static_assert(rows_at_once <= Sizes::depth && Sizes::threads % across == 0, "each thread copies");
            const i32 x = threadIdx.x % across * run, row = threadIdx.x / across;
#pragma unroll
            for (int k = 0; k < Sizes::depth; k += rows_at_once) {
                copy_async<16>(to + (row + k) * pitch<Element, Span>() + x * sizeof(Element), from + (row + k) * leading + x,
                               x < extent && row + k < left);
            }
            from += Sizes::depth * leading;
        } else {
#pragma unroll 1
            for (int i = threadIdx.x; i < Span * Sizes::depth; i += Sizes::threads) {
                const i32 x = i % Span, k = i / Span;
                copy_element(to + k * pitch<Element, Span>() + x * sizeof(Element), from + k * leading + x,
                             x < extent && k < left);
            }
            from += Sizes::depth * leading;
        }
    }
};

// A thread's numbers of one k: runs of 16 bytes, `Lanes` runs apart.
template <typename Element, int Count, int Lanes>
__device__ inline void take(Element (&fragment)[Count], const unsigned char* from, bool conjugates) {
    constexpr int run = 16 / sizeof(Element);
#pragma unroll
    for (int i = 0; i < Count; i += run) {
        Pack<Element, run> pack;
        load_pack(pack, (const Element*)(from + i * Lanes * sizeof(Element)));
#pragma unroll
        for (int v = 0; v < run; v++) fragment[i + v] = conjugates ? conjugated(pack.item[v]) : pack.item[v];
    }
}

template <typename Element, bool Large, bool KMajorA, bool KMajorB>
__device__ inline void gemm(const Element* a, const Element* b, Element* c, const GemmParameters& parameters) {
    typedef Tile<Element, Large> Sizes;
    enum : int { rows = Sizes::each_row, columns = Sizes::each_column, run = 16 / sizeof(Element) };
    constexpr u32 pitch_a = pitch<Element, Sizes::rows>(), pitch_b = pitch<Element, Sizes::columns>();
    constexpr u32 bytes_a = Sizes::depth * pitch_a, bytes = bytes_a + Sizes::depth * pitch_b;

    const BlockTile tile(parameters, Sizes::rows, Sizes::columns);
    const u32 thread = threadIdx.x % (Sizes::threads / Sizes::slices), slice = threadIdx.x / (Sizes::threads / Sizes::slices);
    const u32 warp = thread / 32, lane = thread % 32;
    const i32 first_row = warp % Sizes::warps_down * Sizes::lane_rows * rows + lane / Sizes::lane_columns * run;
    const i32 first_column = warp / Sizes::warps_down * Sizes::lane_columns * columns + lane % Sizes::lane_columns * run;

    Operand<Element, Sizes, Sizes::rows, KMajorA> next_a(a + tile.matrix * parameters.a_matrix, parameters.a_leading, tile.row,
                                                         parameters.m, parameters.vector_a);
    Operand<Element, Sizes, Sizes::columns, KMajorB> next_b(b + tile.matrix * parameters.b_matrix, parameters.b_leading, tile.column,
                                                             parameters.n, parameters.vector_b);
    const u32 memory = shared_address(shared_memory);
    i32 left = parameters.k;
    u32 into = 0;
    auto copy = [&]() {
        if (left > 0) {
            next_a.copy(memory + into * bytes, left);
            next_b.copy(memory + into * bytes + bytes_a, left);
        }
        copies_commit();
        left -= Sizes::depth;
        into = into + 1 == Sizes::stages ? 0 : into + 1;
    };
    for (int stage = 0; stage + 1 < Sizes::stages; stage++) copy();

    Element sums[rows][columns];
#pragma unroll
    for (int i = 0; i < rows; i++) {
#pragma unroll
        for (int j = 0; j < columns; j++) clear(sums[i][j]);
    }
    u32 out = 0;
#pragma unroll 1
    for (i32 k = 0; k < parameters.k; k += Sizes::depth) {
        copies_wait<Sizes::stages - 2>();
        // All threads have multiplied the previous step, whose stage the next copy overwrites, and this step's copies are complete.
        __syncthreads();
        copy();
        constexpr int depth = Sizes::depth / Sizes::slices;
        const unsigned char* step = shared_memory + out * bytes + slice * depth * pitch_a;
        const unsigned char* from_a = step + first_row * sizeof(Element);
        const unsigned char* from_b =
            shared_memory + out * bytes + bytes_a + slice * depth * pitch_b + first_column * sizeof(Element);
        // Changing signs takes a tenth of the time, so only small tiles do.
        const bool of_a = !Large && parameters.conjugate_a, of_b = !Large && parameters.conjugate_b;
        Element x[Sizes::buffers][rows], y[Sizes::buffers][columns];
        auto read = [&](int at) {
            take<Element, rows, Sizes::lane_rows>(x[at % Sizes::buffers], from_a + at * pitch_a, of_a);
            take<Element, columns, Sizes::lane_columns>(y[at % Sizes::buffers], from_b + at * pitch_b, of_b);
        };
        read(0);
#pragma unroll
        for (int at = 0; at < depth; at++) {
            if (Sizes::buffers == 2 && at + 1 < depth) read(at + 1);
#pragma unroll
            for (int i = 0; i < rows; i++) {
#pragma unroll
                for (int j = 0; j < columns; j++) {
                    sums[i][j] = multiply_add(x[at % Sizes::buffers][i], y[at % Sizes::buffers][j], sums[i][j]);
                }
            }
            if (Sizes::buffers == 1 && at + 1 < depth) read(at + 1);
        }
        out = out + 1 == Sizes::stages ? 0 : out + 1;
    }
    copies_wait<0>();

    if constexpr (Sizes::slices > 1) {
        // The other slice's sums go through the memory of the stages.
        constexpr int apart = Sizes::threads / Sizes::slices;
        static_assert(Sizes::slices == 2 && apart * rows * columns * sizeof(Element) <= Sizes::stages * bytes,
                      "one slice leaves its sums, one takes them");
        Element* const others = (Element*)shared_memory + thread;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < rows; i++) {
#pragma unroll
            for (int j = 0; j < columns; j++) {
                if (slice == 1) others[(i * columns + j) * apart] = sums[i][j];
            }
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < rows; i++) {
#pragma unroll
            for (int j = 0; j < columns; j++) {
                if (slice == 0) sums[i][j] += others[(i * columns + j) * apart];
            }
        }
        if (slice > 0) return;
    }
    // The rows move up, because registers have no index and unrolled code for all rows is long.
#pragma unroll 1
    for (int i = 0; i < rows; i++) {
        const i32 row = tile.row + first_row + i / run * run * Sizes::lane_rows + i % run;
#pragma unroll
        for (int j = 0; j < columns; j += run) {
            Element numbers[run];
#pragma unroll
            for (int v = 0; v < run; v++) numbers[v] = sums[0][j + v];
            store_run(c, parameters, tile.matrix, row, tile.column + first_column + j * Sizes::lane_columns, numbers);
        }
#pragma unroll
        for (int next = 0; next + 1 < rows; next++) {
#pragma unroll
            for (int j = 0; j < columns; j++) sums[next][j] = sums[next + 1][j];
        }
    }
}

}  // namespace

#define ENTRY(element, layout, size, large, k_major_a, k_major_b)                                             \
    extern "C" __global__ void __launch_bounds__(Tile<element, large>::threads, Tile<element, large>::blocks) \
        gemm_async_##element##_##layout##_##size(const element* a, const element* b, element* c,              \
                                                 const __grid_constant__ GemmParameters parameters) {         \
        gemm<element, large, k_major_a, k_major_b>(a, b, c, parameters);                                      \
    }
#define LAYOUTS(element, size, large)              \
    ENTRY(element, nn, size, large, true, false)   \
    ENTRY(element, nt, size, large, true, true)    \
    ENTRY(element, tn, size, large, false, false)  \
    ENTRY(element, tt, size, large, false, true)
#define SIZES(element)             \
    LAYOUTS(element, large, true)  \
    LAYOUTS(element, small, false)

SIZES(ELEMENT)
