// C = alpha op(A) op(B) + beta C on the tensor cores of compute capability 8.0 and up, and 7.5 for f16: ELEMENT
// (-DELEMENT=bf16 or f16) times ELEMENT, added in f32; C is ELEMENT or f32. One family for each ELEMENT.
//
// Entries: gemm_mma_<ELEMENT>_<A><B>_<tile>. A and B are n (stored as they are multiplied, row by row) or t (stored
// transposed); tile is `large` (128 x 128) or `small` (64 x 64). Launch: a block of 128 threads for each tile of each
// matrix, and the dynamic shared memory that the Rust side's `gemm::mma` counts.
//
// How: 32 k of both operands lie in shared memory as they are stored, k along the rows or m or n; several such steps are
// on their way. Four warps make a quarter of the tile each, out of registers that `ldmatrix` fills, which transposes
// where m or n runs along the rows. 16 bytes number i of row r lie at i ^ (r % 8), or where rows have 64 bytes, at
// i ^ (r / 2 % 4), so that neither the copies nor the loads meet a bank twice. Rows of operands that do not begin at
// multiples of 16 bytes come element by element, by way of registers, while the step before is multiplied, and so do the
// ends of rows that are no whole number of 16 bytes; there are enough registers for small tiles alone.
//
// What must stay true: k ascends, 16 at a time, in one accumulator, so that a product has the same bits on both tiles.
//
// | version | what | bf16 8192^3 on an H200, of cuBLAS in the same run |
// |---|---|---|
// | 1 | a step begins with the loads of its first fragments | nn, nt, tn, tt: 0.464, 0.465, 0.482, 0.499 |
// | 2 | as above: those loads, and the barrier before them, while the step before is multiplied | 0.480, 0.541, 0.519, 0.493 |
#include "ampere.cuh"
#include "gemm_blocks.cuh"
#include "mma.cuh"

// Outside of the namespace, which has no name of its own: the compiler would make one up, another one each time.
extern __shared__ unsigned char shared_memory[];

namespace {

// Enumerators, because constants would become variables of the module.
enum : int {
    threads = 128,
    depth = 32,  // k of a step.
    stages = 4,  // Steps on their way.
    run = 8,     // Elements of 16 bytes.
};

// One operand: `Span` of m or n by the depth of a step. `Along` says whether k runs along the stored rows.
template <typename Element, int Span, bool Along>
struct Operand {
    enum : int {
        across = (Along ? depth : Span) / run,  // 16 bytes of a row in shared memory.
        down = Along ? Span : depth,            // Rows.
        bytes = Span * depth * 2,
        only_vectors = Span > 64,
        singles = only_vectors ? 1 : Span * depth / threads,  // Elements of a thread.
    };
    const Element* from;
    i64 leading;
    i32 extent;  // Of m or n, from the tile's first on.
    bool vectors;
    u16 held[singles];

    __device__ Operand(const Element* matrix, i64 leading, i32 first, i32 extent, bool vectors)
        : from(matrix + (Along ? first * leading : first)), leading(leading), extent(extent - first), vectors(vectors) {
        if (only_vectors) from += own();
    }

    // Where the thread's first 16 bytes of a step are, in elements from the step's first.
    __device__ i64 own() const { return threadIdx.x / across * leading + threadIdx.x % across * run; }

    // Where 16 bytes of a row lie.
    __device__ static u32 place(u32 row, u32 chunk) {
        const u32 moved = across == 4 ? chunk ^ (row / 2 % 4) : chunk ^ (row % 8);
        return (row * across + moved) * 16;
    }

    // Whether 16 bytes of a step's rows are copied together, of which so many columns are left.
    __device__ bool together(i32 columns) const {
        return only_vectors || (vectors && (columns >= across * run || columns % run == 0));
    }

    // Copies the next step, of which so much of k is left; what is outside becomes 0. Where rows begin or end anywhere,
    // elements are only fetched, and `put` there when they have come.
    __device__ void copy(u32 to, i32 left) {
        const i32 rows = Along ? extent : left, columns = Along ? left : extent;
        if (together(columns)) {
            constexpr int rows_at_once = threads / across;
            const i32 chunk = threadIdx.x % across, row = threadIdx.x / across;
            const Element* at = only_vectors ? from : from + own();
#pragma unroll
            for (int y = 0; y < down; y += rows_at_once) {
                copy_async<16>(to + place(row + y, chunk), at, chunk * run < columns && row + y < rows);
                at += rows_at_once * leading;
            }
        } else {
            constexpr int rows_at_once = threads / (across * run);
            const i32 x = threadIdx.x % (across * run), row = threadIdx.x / (across * run);
#pragma unroll
            for (int i = 0; i < singles; i++) {
                const i32 y = row + i * rows_at_once;
                held[i] = y < rows && x < columns ? from[y * leading + x].bits : 0;
            }
        }
        from += Along ? (i64)depth : depth * leading;
    }

    __device__ void put(u32 to, i32 left) const {
        if (together(Along ? left : extent)) return;
        unsigned char* const step = shared_memory + (to - shared_address(shared_memory));
        constexpr int rows_at_once = threads / (across * run);
        const i32 x = threadIdx.x % (across * run), row = threadIdx.x / (across * run);
#pragma unroll
        for (int i = 0; i < singles; i++) {
            *(u16*)(step + place(row + i * rows_at_once, x / run) + x % run * 2) = held[i];
        }
    }
};

// The warp's 16 rows of A from `first` on, and 16 k from `k` on.
template <typename A>
__device__ inline void take_a(u32 (&a)[4], u32 step, u32 first, u32 k, bool along) {
    const u32 lane = threadIdx.x % 32;
    if (along) {
        blocks_from_shared<false>(a, step + A::place(first + lane % 16, k / run + lane / 16));
    } else {
        blocks_from_shared<true>(a, step + A::place(k + lane % 8 + lane / 16 * 8, first / run + lane / 8 % 2));
    }
}

// The warp's 16 columns of B from `first` on, and 16 k from `k` on: two operands of 8 columns.
template <typename B>
__device__ inline void take_b(u32 (&b)[4], u32 step, u32 first, u32 k, bool along) {
    const u32 lane = threadIdx.x % 32;
    if (along) {
        blocks_from_shared<false>(b, step + B::place(first + lane % 8 + lane / 16 * 8, k / run + lane / 8 % 2));
    } else {
        blocks_from_shared<true>(b, step + B::place(k + lane % 16, first / run + lane / 16));
    }
}

template <typename Element, int Span, bool AlongA, bool AlongB>
__device__ inline void gemm(const Element* a, const Element* b, void* c, const Shape& shape) {
    typedef Operand<Element, Span, AlongA> A;
    typedef Operand<Element, Span, AlongB> B;
    enum : int { half = Span / 2, down = half / 16, across = half / 8 };  // Of a warp: instructions below and beside.

    const BlockTile tile(shape, Span, Span);
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u32 first_row = warp % 2 * half, first_column = warp / 2 * half;
    A next_a(a + tile.matrix * shape.a_matrix, shape.a_leading, tile.row, shape.m, shape.vector_a);
    B next_b(b + tile.matrix * shape.b_matrix, shape.b_leading, tile.column, shape.n, shape.vector_b);
    const u32 memory = shared_address(shared_memory);
    i32 left = shape.k;
    u32 into = 0;
    auto copy = [&]() {
        if (left > 0) {
            next_a.copy(memory + into * (A::bytes + B::bytes), left);
            next_b.copy(memory + into * (A::bytes + B::bytes) + A::bytes, left);
        }
        copies_commit();
    };
    auto put = [&]() {
        if (left > 0) {
            next_a.put(memory + into * (A::bytes + B::bytes), left);
            next_b.put(memory + into * (A::bytes + B::bytes) + A::bytes, left);
        }
        left -= depth;
        into = into + 1 == stages ? 0 : into + 1;
    };
#pragma unroll 1
    for (int stage = 0; stage + 1 < stages; stage++) {
        copy();
        put();
    }

    f32 d[down][across][4];
#pragma unroll
    for (int i = 0; i < down; i++) {
#pragma unroll
        for (int j = 0; j < across; j++) {
#pragma unroll
            for (int v = 0; v < 4; v++) d[i][j][v] = 0;
        }
    }
    u32 out = 0;
    u32 x[2][down][4], y[2][across / 2][4];
    auto read = [&](int part) {
        const u32 of_a = memory + out * (A::bytes + B::bytes), of_b = of_a + A::bytes;
#pragma unroll
        for (int i = 0; i < down; i++) take_a<A>(x[part % 2][i], of_a, first_row + 16 * i, 16 * part, AlongA);
#pragma unroll
        for (int j = 0; j < across / 2; j++) take_b<B>(y[part % 2][j], of_b, first_column + 16 * j, 16 * part, AlongB);
    };
    // Waits until what all threads copied of the next step is there, and all have multiplied what lies where the copies of the
    // step after those on their way go.
    auto meet = [&] {
        copies_wait<stages - 2>();
        __syncthreads();
    };
    meet();
    if (shape.k > 0) read(0);
#pragma unroll 1
    for (i32 k = 0; k < shape.k; k += depth) {
#pragma unroll
        for (int part = 0; part < depth / 16; part++) {
            // What is multiplied next is read before: of the next step too, so that the tensor cores do not wait where it begins.
            if (part + 1 < depth / 16) {
                read(part + 1);
                if (part == 0) copy();
            } else {
                meet();
                out = out + 1 == stages ? 0 : out + 1;
                if (k + depth < shape.k) read(0);
            }
#pragma unroll
            for (int i = 0; i < down; i++) {
#pragma unroll
                for (int j = 0; j < across; j++) multiply(d[i][j], x[part % 2][i], y[part % 2][j / 2] + j % 2 * 2);
            }
        }
        put();
    }
    copies_wait<0>();

    // By way of shared memory, half of the rows at a time, so that a warp stores whole rows.
    enum : int { together = 4, pitch = Span + 8 };
    static_assert(half * pitch * 4 <= stages * (A::bytes + B::bytes), "the steps' place holds half of the tile");
    f32* const sums = (f32*)shared_memory;
#pragma unroll 1
    for (u32 part = 0; part < 2; part++) {
        __syncthreads();
        if (warp % 2 == part) {
#pragma unroll
            for (int i = 0; i < down; i++) {
#pragma unroll
                for (int j = 0; j < across; j++) {
#pragma unroll
                    for (int v = 0; v < 4; v++) {
                        const u32 row = 16 * i + lane / 4 + v / 2 * 8, column = 8 * j + 2 * (lane % 4) + v % 2;
                        sums[row * pitch + first_column + column] = d[i][j][v];
                    }
                }
            }
        }
        __syncthreads();
#pragma unroll 1
        for (u32 piece = threadIdx.x; piece < half * Span / together; piece += threads) {
            const u32 row = piece / (Span / together), column = piece % (Span / together) * together;
            f32 numbers[together];
#pragma unroll
            for (int v = 0; v < together; v++) numbers[v] = sums[row * pitch + column + v];
            const i32 y = tile.row + part * half + row, x = tile.column + column;
            if (shape.wide) {
                store_run((f32*)c, shape, tile.matrix, y, x, numbers);
            } else {
                store_run((Element*)c, shape, tile.matrix, y, x, numbers);
            }
        }
    }
}

}  // namespace

#define ENTRY(element, layout, size, span, along_a, along_b)                                              \
    extern "C" __global__ void __launch_bounds__(threads, 2) gemm_mma_##element##_##layout##_##size(      \
        const element* a, const element* b, void* c, const __grid_constant__ Shape shape) {               \
        gemm<element, span, along_a, along_b>(a, b, c, shape);                                            \
    }
#define LAYOUTS(element, size, span)               \
    ENTRY(element, nn, size, span, true, false)    \
    ENTRY(element, nt, size, span, true, true)     \
    ENTRY(element, tn, size, span, false, false)   \
    ENTRY(element, tt, size, span, false, true)
#define SIZES(element)            \
    LAYOUTS(element, large, 128)  \
    LAYOUTS(element, small, 64)

SIZES(ELEMENT)
