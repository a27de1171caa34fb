// C = alpha op(A) op(B) + beta C with an epilogue (epilogue.cuh, f64 only) on the tensor cores of compute capability 8.0 and up, for
// ELEMENT (-DELEMENT=f64 or c128). One family for each.
//
// Entries: gemm_mma_<ELEMENT>_<A><B>_<tile>(A, B, C, parameters). A and B are n (stored as they are multiplied, row by row) or t (stored
// transposed); `Tile` has the tiles. `GemmParameters` has the flags that conjugate.
//
// Launch: one block a tile of each matrix, `Tile` threads, and the dynamic shared memory that src/gemm/mma computes. Any alignment.
//
// Algorithm: a multi-stage cp.async pipeline with mma.sync. A stage holds a step of `depth` k of both operands as they are stored. A warp
// keeps a step of its rows of A in registers, and reads 8 columns of B while it multiplies the 8 before. With the last columns it
// reads the next step's rows of A, each as soon as an instruction has taken the old one, so the tensor cores wait for the block's
// barrier alone. 16-byte chunk i of row r is at i ^ (0, 4, 2, 6)[r % 4]: the chunks that one instruction of a warp reads, two in each
// of four rows or four in each of two, lie in different banks. A tensor core adds 128 products a clock cycle (H200); shared memory
// moves 1 byte a product, the L2 cache half of that:
//
// | tile | of a warp | registers: sums, A, B | bytes a product: shared memory, L2 |
// |---|---|---|---|
// | f64 large, 128 x 128 | 32 x 64 | 128, 32, 16 | 0.375, 0.125 |
// | f64 medium, 64 x 64 | 32 x 32 | 64, 32, 16 | 0.5, 0.25 |
// | f64 small, 32 x 32 | 16 x 16 | 16, 16, 16 | 1, 0.5 |
// | c128 large, 64 x 64 | 32 x 32 | 128, 32, 20 | 0.25, 0.125 |
// | c128 small, 32 x 32 | 16 x 16 | 32, 16, 20 | 0.5, 0.25 |
//
// Invariants: f64 sums are fma with k ascending. A complex product is four real ones of `depth` k each: real by real to the real part, real
// by imaginary to the imaginary part, minus imaginary by imaginary, imaginary by real. So the bits depend on neither tile nor device.
//
// Version 1: 0.90 (f64) and 0.90 (c128) of cuBLAS at 4096^3 on an H200; without tensor cores 0.34 and 0.39.
#include "ampere.cuh"
#include "gemm_blocks.cuh"
#include "mma_double.cuh"

// Outside of the namespace, which has no name of its own: the compiler would make one up, another one each time.
extern __shared__ unsigned char shared_memory[];

namespace {

// How a block divides its tile among its warps. Enumerators, because constants would become variables of the module.
template <int WarpsDown, int WarpsAcross, int Rows, int Columns, int Depth, int Stages, int Blocks>
struct TileOf {
    enum : int {
        rows = WarpsDown * Rows,
        columns = WarpsAcross * Columns,
        warps_down = WarpsDown,
        warp_rows = Rows,
        warp_columns = Columns,
        depth = Depth,    // k of a step, and of an instruction.
        stages = Stages,  // Stages in flight.
        blocks = Blocks,  // Of a multiprocessor, as the registers allow.
        threads = WarpsDown * WarpsAcross * 32,
    };
};

enum Size { large, medium, small };
template <typename Element, Size Size>
struct Tile;
template <>
struct Tile<f64, large> : TileOf<4, 2, 32, 64, 16, 3, 1> {};
template <>
struct Tile<f64, medium> : TileOf<2, 2, 32, 32, 16, 4, 3> {};
template <>
struct Tile<f64, small> : TileOf<2, 2, 16, 16, 16, 6, 4> {};
template <>
struct Tile<c128, large> : TileOf<2, 2, 32, 32, 8, 3, 2> {};
template <>
struct Tile<c128, small> : TileOf<2, 2, 16, 16, 8, 6, 4> {};

// x, or -x where `sign` is the bit of the sign in the upper half.
__device__ inline f64 flipped(f64 x, u32 sign) {
    union {
        f64 number;
        u32 half[2];
    } bits = {x};
    bits.half[1] ^= sign;
    return bits.number;
}

// One operand: `Span` of m or n by the depth of a step. `KMajor` says whether k runs along the stored rows.
template <typename Element, typename Sizes, int Span, bool KMajor>
struct Operand {
    enum : int {
        run = 16 / sizeof(Element),                     // Elements of 16 bytes.
        across = (KMajor ? Sizes::depth : Span) / run,  // 16 bytes of a row in shared memory.
        down = KMajor ? Span : Sizes::depth,            // Rows.
        rows_at_once = Sizes::threads / across,         // That the block copies.
        bytes = Span * Sizes::depth * sizeof(Element),
        parts = sizeof(Element) / sizeof(f64),
        quarter = Sizes::depth / 4,
    };
    static_assert(across >= 8 && across % 8 == 0 && down % rows_at_once == 0, "each thread copies");
    const Element* from;  // The thread's first element of the next step.
    i64 leading;
    i32 extent;  // Of m or n, from the tile's first on.
    bool vectors;  // True where all rows are multiples of 16 bytes.

    __device__ static i32 row() { return threadIdx.x / across; }
    __device__ static i32 chunk() { return threadIdx.x % across; }

    __device__ Operand(const Element* matrix, i64 leading, i32 first, i32 extent, bool vectors)
        : from(matrix + (KMajor ? first * leading : first) + row() * leading + chunk() * run),
          leading(leading),
          extent(extent - first),
          vectors(vectors) {}

    // The place of a 16-byte chunk of a row.
    __device__ static u32 place(u32 row, u32 chunk) { return (row * across + (chunk ^ (row % 2 * 4 | row & 2))) * 16; }

    // Copies the next step, of which so much of k is left; what is outside becomes 0.
    template <i32 Bytes>
    __device__ void copy_chunks(u32 to, i32 left) const {
        const i32 rows = KMajor ? extent : left, columns = KMajor ? left : extent;
#pragma unroll
        for (i32 y = 0; y < down; y += rows_at_once) {
#pragma unroll
            for (i32 x = 0; x < 16; x += Bytes) {
                const i32 column = chunk() * run + x / (i32)sizeof(Element);
                copy_async<Bytes>(to + place(row() + y, chunk()) + x, (const unsigned char*)(from + y * leading) + x,
                                  row() + y < rows && column < columns);
            }
        }
    }

    __device__ void copy(u32 to, i32 left) {
        if (vectors) {
            copy_chunks<16>(to, left);
        } else {
            copy_chunks<8>(to, left);
        }
        from += KMajor ? (i64)Sizes::depth : Sizes::depth * leading;
    }

    // The place of the lane's first number of a warp whose first of m or n this is.
    __device__ static u32 first_place(u32 first) {
        const u32 lane = threadIdx.x % 32, at = first + lane / 4, k = lane % 4;
        const u32 column = KMajor ? k : at;
        return place(KMajor ? at : k, column / run) + column % run * sizeof(Element);
    }

    // Reads the lane's numbers of 8 of m or n, `on` behind its first, into every `Apart`th of a fragment, part by part; the
    // sign of imaginary parts is flipped.
    template <int Apart>
    __device__ static void take(f64 (&fragment)[parts][quarter * Apart], int which, const unsigned char* step, u32 first,
                                int on, u32 sign) {
#pragma unroll
        for (int i = 0; i < quarter; i++) {
            // Both are multiples of 4, so rows keep their order, and the order of chunks is that of the first row.
            const u32 rows = KMajor ? on : 4 * i, chunks = (KMajor ? 4 * i : on) / run;
            const unsigned char* from = step + (first ^ chunks % 8 * 16) + (rows * across + chunks / 8 * 8) * 16;
            Pack<f64, parts> pack;
            load_pack(pack, (const f64*)from);
            fragment[0][i * Apart + which] = pack.item[0];
            if constexpr (parts == 2) fragment[1][i * Apart + which] = flipped(pack.item[1], sign);
        }
    }
};

// 16 x 8 numbers, from four times `Quarter` k.
template <int Quarter>
__device__ inline void multiply_real(f64 (&d)[4], const f64 (&a)[2 * Quarter], const f64 (&b)[Quarter]) {
#if __CUDA_ARCH__ >= 900
    if constexpr (Quarter == 4) {
        multiply_16x8x16(d, a, b);
    } else {
        multiply_16x8x8(d, a, b);
    }
#else
#pragma unroll
    for (int i = 0; i < Quarter; i++) {
#pragma unroll
        for (int h = 0; h < 2; h++) multiply_8x8x4(d[2 * h], d[2 * h + 1], a[2 * i + h], b[i]);
    }
#endif
}

// The same, part by part.
template <int Quarter>
__device__ inline void multiply_parts(f64 (&d)[1][4], const f64 (&a)[1][2 * Quarter], const f64 (&b)[1][Quarter]) {
    multiply_real<Quarter>(d[0], a[0], b[0]);
}
template <int Quarter>
__device__ inline void multiply_parts(f64 (&d)[2][4], const f64 (&a)[2][2 * Quarter], const f64 (&b)[2][Quarter]) {
    f64 minus[Quarter];
#pragma unroll
    for (int i = 0; i < Quarter; i++) minus[i] = flipped(b[1][i], 1u << 31);
    multiply_real<Quarter>(d[0], a[0], b[0]);
    multiply_real<Quarter>(d[1], a[0], b[1]);
    multiply_real<Quarter>(d[0], a[1], minus);
    multiply_real<Quarter>(d[1], a[1], b[0]);
}

// Two neighbours of a row from the parts of their sums on.
__device__ inline void neighbours(f64 (&numbers)[2], const f64 (&d)[1][4], int h) {
    numbers[0] = d[0][2 * h];
    numbers[1] = d[0][2 * h + 1];
}
__device__ inline void neighbours(c128 (&numbers)[2], const f64 (&d)[2][4], int h) {
    numbers[0] = {d[0][2 * h], d[1][2 * h]};
    numbers[1] = {d[0][2 * h + 1], d[1][2 * h + 1]};
}

template <typename Element, Size Size, bool KMajorA, bool KMajorB>
__device__ inline void gemm(const Element* a, const Element* b, Element* c, const GemmParameters& parameters) {
    typedef Tile<Element, Size> Sizes;
    typedef Operand<Element, Sizes, Sizes::rows, KMajorA> A;
    typedef Operand<Element, Sizes, Sizes::columns, KMajorB> B;
    enum : int {
        parts = A::parts,
        quarter = A::quarter,
        down = Sizes::warp_rows / 16,  // Of a warp: instructions below and beside.
        across = Sizes::warp_columns / 8,
        bytes = A::bytes + B::bytes,
    };
    static_assert(across % 2 == 0, "the first columns of a step and of the next are read into the same registers");

    const BlockTile tile(parameters, Sizes::rows, Sizes::columns);
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u32 first_row = warp % Sizes::warps_down * Sizes::warp_rows;
    const u32 first_column = warp / Sizes::warps_down * Sizes::warp_columns;
    A next_a(a + tile.matrix * parameters.a_matrix, parameters.a_leading, tile.row, parameters.m, parameters.vector_a);
    B next_b(b + tile.matrix * parameters.b_matrix, parameters.b_leading, tile.column, parameters.n, parameters.vector_b);
    const u32 memory = shared_address(shared_memory);
    i32 left = parameters.k;
    u32 into = 0;
    auto copy = [&]() {
        if (left > 0) {
            next_a.copy(memory + into * bytes, left);
            next_b.copy(memory + into * bytes + A::bytes, left);
        }
        copies_commit();
        left -= Sizes::depth;
        into = into + 1 == Sizes::stages ? 0 : into + 1;
    };
#pragma unroll 1
    for (int stage = 0; stage + 1 < Sizes::stages; stage++) copy();

    const u32 place_a = A::first_place(first_row), place_b = B::first_place(first_column);
    const u32 sign_a = parameters.conjugate_a ? 1u << 31 : 0, sign_b = parameters.conjugate_b ? 1u << 31 : 0;
    f64 x[down][parts][2 * quarter], y[2][parts][quarter];
    auto take_a = [&](int i, u32 stage) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            A::template take<2>(x[i], h, shared_memory + stage * bytes, place_a, 16 * i + 8 * h, sign_a);
        }
    };
    auto take_b = [&](int j, u32 stage) {
        B::template take<1>(y[j % 2], 0, shared_memory + stage * bytes + A::bytes, place_b, 8 * j, sign_b);
    };
    f64 d[down][across][parts][4];
#pragma unroll
    for (int i = 0; i < down; i++) {
#pragma unroll
        for (int j = 0; j < across; j++) {
#pragma unroll
            for (int v = 0; v < 4 * parts; v++) d[i][j][v / 4][v % 4] = 0;
        }
    }

    u32 out = 0;
    copies_wait<Sizes::stages - 2>();
    __syncthreads();
    take_b(0, out);
#pragma unroll
    for (int i = 0; i < down; i++) take_a(i, out);
#pragma unroll 1
    for (i32 k = 0; k < parameters.k; k += Sizes::depth) {
#pragma unroll
        for (int j = 0; j + 1 < across; j++) {
            take_b(j + 1, out);
#pragma unroll
            for (int i = 0; i < down; i++) multiply_parts<quarter>(d[i][j], x[i], y[j % 2]);
            // Into the place of the step before, while the tensor cores are busy.
            if (j == 0) copy();
        }
        copies_wait<Sizes::stages - 2>();
        // All have read this step, whose place is the next one's to be copied, and what they copied of the next is there.
        __syncthreads();
        out = out + 1 == Sizes::stages ? 0 : out + 1;
        // Behind the last step there is nothing, and nothing uses what is read.
        take_b(0, out);
#pragma unroll
        for (int i = 0; i < down; i++) {
            multiply_parts<quarter>(d[i][across - 1], x[i], y[1]);
            take_a(i, out);
        }
    }
    copies_wait<0>();

    // The other columns move up, because registers have no index, and the code for two numbers is long.
#pragma unroll 1
    for (int j = 0; j < across; j++) {
#pragma unroll 1
        for (int run = 0; run < 2 * down; run++) {
            const i32 row = tile.row + first_row + 8 * run + lane / 4;
            const i32 column = tile.column + first_column + 8 * j + 2 * (lane % 4);
            Element numbers[2];
#pragma unroll
            for (int other = 0; other < 2 * down; other++) {
                if (run == other) neighbours(numbers, d[other / 2][0], other % 2);
            }
            store_run(c, parameters, tile.matrix, row, column, numbers);
        }
#pragma unroll
        for (int i = 0; i < down; i++) {
#pragma unroll
            for (int next = 0; next + 1 < across; next++) {
#pragma unroll
                for (int v = 0; v < 4 * parts; v++) d[i][next][v / 4][v % 4] = d[i][next + 1][v / 4][v % 4];
            }
        }
    }
}

}  // namespace

#define ENTRY(element, layout, size, k_major_a, k_major_b)                                                  \
    extern "C" __global__ void __launch_bounds__(Tile<element, size>::threads, Tile<element, size>::blocks) \
        gemm_mma_##element##_##layout##_##size(const element* a, const element* b, element* c,              \
                                               const __grid_constant__ GemmParameters parameters) {         \
        gemm<element, size, k_major_a, k_major_b>(a, b, c, parameters);                                     \
    }
#define LAYOUTS(element, size)             \
    ENTRY(element, nn, size, true, false)  \
    ENTRY(element, nt, size, true, true)   \
    ENTRY(element, tn, size, false, false) \
    ENTRY(element, tt, size, false, true)
#define SIZES_f64        \
    LAYOUTS(f64, large)  \
    LAYOUTS(f64, medium) \
    LAYOUTS(f64, small)
#define SIZES_c128       \
    LAYOUTS(c128, large) \
    LAYOUTS(c128, small)
#define SIZES_OF(element) SIZES_##element
#define SIZES(element) SIZES_OF(element)

SIZES(ELEMENT)
