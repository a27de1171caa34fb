// C = alpha op(A) op(B) + beta C with an epilogue (epilogue.cuh) on the tensor cores of compute capability 8.0 and up, and 7.5 for f16. A
// and B are ELEMENT (-DELEMENT=bf16 or f16), sums are f32, C is ELEMENT or f32. One family for each ELEMENT.
//
// Entries: gemm_mma_<ELEMENT>_<A><B>_<tile>(A, B, C, parameters). A and B are n (stored as they are multiplied, row by row) or t (stored
// transposed); `Tile` has the tiles.
//
// Launch: one block a tile of each matrix, `Tile` threads, and the dynamic shared memory that src/gemm/mma computes. Large and medium
// tiles need operands of at least a tile whose rows and matrices are multiples of 16 bytes; small ones take any alignment.
//
// Algorithm: a multi-stage cp.async pipeline with mma.sync, as CUTLASS's "MmaMultistage". A stage holds a step of k of both operands as
// they are stored. `ldmatrix` fills the fragments, transposed where m or n runs along the rows, 16 k ahead of the products. 16-byte
// chunk i of row r is at i ^ (r % 8) (rows of 64 bytes: i ^ (r / 2 % 4)), so neither copies nor loads meet a bank twice. If m or n
// runs along the rows, 64 of them are a panel with a row for each k. A lane's addresses in a step differ from its first one by
// that order and multiples of 8 rows, so all are computed before the first step. Large and medium tiles stay inside the matrix: the
// last ones begin earlier and store only their own elements. Small ones reach outside: rows that are not multiples of
// 16 bytes are copied through registers.
//
// Bounds: with 256 products a clock cycle and tensor core (8.0), warps of large, medium and small tiles need 0.69, 0.75 and 1.5 of the
// shared memory bandwidth, and 24, 32 and 64 bytes a clock cycle of the L2 cache.
//
// Invariants: k ascends, 16 at a time, in one accumulator, so a product has the same bits on all tiles.
//
// | version | change | bf16 8192^3 (nn, nt, tn, tt) against cuBLAS in the same run, H200 |
// |---|---|---|
// | 2 | the first fragments load during the previous step | 0.480, 0.541, 0.519, 0.493 |
// | 3 | tiles of 128 x 256, steps of 64 k | 0.550, 0.570 to 0.617, 0.545, 0.575 to 0.620 |
#include "ampere.cuh"
#include "gemm_blocks.cuh"
#include "mma.cuh"

// Outside of the namespace, which has no name of its own: the compiler would make one up, another one each time.
extern __shared__ unsigned char shared_memory[];

namespace {

// Enumerators, because constants would become variables of the module.
enum : int {
    run = 8,     // Elements of 16 bytes.
    panel = 64,  // Elements of a row, where m or n runs along it.
};

// How a block divides its tile among its warps.
template <int WarpsDown, int WarpsAcross, int Rows, int Columns, int Depth, int Stages, int Blocks>
struct TileOf {
    enum : int {
        rows = WarpsDown * Rows,
        columns = WarpsAcross * Columns,
        warps_down = WarpsDown,
        warp_rows = Rows,
        warp_columns = Columns,
        depth = Depth,    // k of a step.
        stages = Stages,  // Stages in flight.
        blocks = Blocks,  // Of a multiprocessor, as the registers allow.
        threads = WarpsDown * WarpsAcross * 32,
        inside = Rows == 64,  // True where tiles stay inside the matrix and rows are multiples of 16 bytes.
    };
};

enum Size { large, medium, small };
template <Size Size>
struct Tile;
template <>
struct Tile<large> : TileOf<2, 4, 64, 64, 64, 3, 1> {};
template <>
struct Tile<medium> : TileOf<2, 2, 64, 64, 32, 4, 2> {};
template <>
struct Tile<small> : TileOf<2, 2, 32, 32, 32, 4, 2> {};

// One operand: `Span` of m or n by the depth of a step. `Along` says whether k runs along the stored rows.
template <typename Element, typename Sizes, int Span, bool Along>
struct Operand {
    enum : int {
        across = (Along ? Sizes::depth : panel) / run,  // 16 bytes of a row in shared memory.
        down = Along ? Span : Sizes::depth,             // Rows of a panel.
        panels = Along ? 1 : Span / panel,
        row_bytes = across * 16,
        panel_bytes = down * row_bytes,
        bytes = panels * panel_bytes,
        rows_at_once = Sizes::threads / across,                                // That the block copies.
        singles = Sizes::inside ? 1 : Span * Sizes::depth / Sizes::threads,  // Elements of a thread.
    };
    static_assert(rows_at_once % 8 == 0 && down % rows_at_once == 0, "each thread copies, to rows of one order");
    const Element* from;
    i64 leading;
    i32 extent;  // Of m or n, from the tile's first on.
    bool vectors;
    u16 held[singles];

    __device__ Operand(const Element* matrix, i64 leading, i32 first, i32 extent, bool vectors)
        : from(matrix + (Along ? first * leading : first)), leading(leading), extent(extent - first), vectors(vectors) {
        if (Sizes::inside) from += own();
    }

    __device__ static i32 row() { return threadIdx.x / across; }
    __device__ static i32 chunk() { return threadIdx.x % across; }
    // The position of the thread's first 16 bytes of a step, in elements from the step's first.
    __device__ i64 own() const { return row() * leading + chunk() * run; }

    // The place of a 16-byte chunk of a row.
    __device__ static u32 place(u32 row, u32 chunk) {
        const u32 order = across == 4 ? row / 2 % 4 : row % 8;
        return chunk / across * panel_bytes + row * row_bytes + (chunk % across ^ order) * 16;
    }

    // Returns true where a step's rows, with this many columns left, are copied 16 bytes at a time.
    __device__ bool together(i32 columns) const {
        constexpr i32 all = Along ? Sizes::depth : Span;
        return Sizes::inside || (vectors && (columns >= all || columns % run == 0));
    }

    // Copies the next step, of which `left` of k remain; elements outside become 0. If rows begin or end at any element, the
    // elements are only loaded, and `put` stores them once they have arrived.
    __device__ void copy(u32 to, i32 left) {
        const i32 rows = Along ? extent : left, columns = Along ? left : extent;
        if (together(columns)) {
            const Element* at = Sizes::inside ? from : from + own();
            const u32 own_place = place(row(), chunk());
#pragma unroll
            for (int y = 0; y < down; y += rows_at_once) {
#pragma unroll
                for (int x = 0; x < panels; x++) {
                    bool is = (Along ? chunk() * run : row() + y) < left;
                    if (!Sizes::inside) is = row() + y < rows && chunk() * run + x * panel < columns;
                    copy_async<16>(to + own_place + (y * row_bytes + x * panel_bytes), at + x * panel, is);
                }
                at += rows_at_once * leading;
            }
        } else {
            constexpr int width = Along ? Sizes::depth : Span, fetched_at_once = Sizes::threads / width;
            const i32 x = threadIdx.x % width, row = threadIdx.x / width;
#pragma unroll
            for (int i = 0; i < singles; i++) {
                const i32 y = row + i * fetched_at_once;
                held[i] = y < rows && x < columns ? from[y * leading + x].bits : 0;
            }
        }
        from += Along ? (i64)Sizes::depth : Sizes::depth * leading;
    }

    __device__ void put(u32 to, i32 left) const {
        if (together(Along ? left : extent)) return;
        unsigned char* const step = shared_memory + (to - shared_address(shared_memory));
        constexpr int width = Along ? Sizes::depth : Span, fetched_at_once = Sizes::threads / width;
        const i32 x = threadIdx.x % width, row = threadIdx.x / width;
#pragma unroll
        for (int i = 0; i < singles; i++) {
            *(u16*)(step + place(row + i * fetched_at_once, x / run) + x % run * 2) = held[i];
        }
    }

    // The place that the lane reads of the warp's first 16 of m or n, and the step's first 16 k: of four blocks of 8 x 8, the second is
    // that of the next 8 rows, or of the next 8 columns.
    __device__ static u32 first_place(u32 first, bool down_first) {
        const u32 lane = threadIdx.x % 32;
        const u32 row = down_first ? lane % 16 : lane % 8 + lane / 16 * 8;
        const u32 chunk = down_first ? lane / 16 : lane / 8 % 2;
        return Along ? place(first + row, chunk) : place(row, first / run + chunk);
    }

    // The warp's 16 of m or n number i, and 16 k number `part`.
    __device__ static void take(u32 (&fragment)[4], u32 step, u32 first, int i, int part) {
        const u32 rows = 16 * (Along ? i : part), chunks = 2 * (Along ? part : i);
        blocks_from_shared<!Along>(fragment, step + (first ^ chunks * 16) + rows * row_bytes);
    }
};

template <typename Element, Size Size, bool AlongA, bool AlongB>
__device__ inline void gemm(const Element* a, const Element* b, void* c, const GemmParameters& parameters) {
    typedef Tile<Size> Sizes;
    typedef Operand<Element, Sizes, Sizes::rows, AlongA> A;
    typedef Operand<Element, Sizes, Sizes::columns, AlongB> B;
    enum : int {
        down = Sizes::warp_rows / 16,  // Of a warp: instructions below and beside.
        across = Sizes::warp_columns / 8,
        parts = Sizes::depth / 16,
        bytes = A::bytes + B::bytes,
    };
    static_assert(parts % 2 == 0, "a step's first fragments are not in the place of its last ones");

    const BlockTile tile(parameters, Sizes::rows, Sizes::columns, 16);
    const i32 top = Sizes::inside ? min(tile.row, parameters.m - Sizes::rows) : tile.row;
    const i32 beginning = Sizes::inside ? min(tile.column, parameters.n - Sizes::columns) : tile.column;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u32 first_row = warp % Sizes::warps_down * Sizes::warp_rows;
    const u32 first_column = warp / Sizes::warps_down * Sizes::warp_columns;
    A next_a(a + tile.matrix * parameters.a_matrix, parameters.a_leading, top, parameters.m, parameters.vector_a);
    B next_b(b + tile.matrix * parameters.b_matrix, parameters.b_leading, beginning, parameters.n, parameters.vector_b);
    const u32 memory = shared_address(shared_memory);
    i32 left = parameters.k;
    u32 into = 0;
    // Behind the last step zeros are copied, but not into small tiles: outside of a branch, the addresses of their single
    // elements would stay in registers, and a multiprocessor would have fewer blocks.
    auto copy_a = [&] {
        if (Sizes::inside || left > 0) next_a.copy(memory + into * bytes, left);
    };
    auto copy_b = [&] {
        if (Sizes::inside || left > 0) next_b.copy(memory + into * bytes + A::bytes, left);
        copies_commit();
    };
    auto put = [&] {
        if (left > 0) {
            next_a.put(memory + into * bytes, left);
            next_b.put(memory + into * bytes + A::bytes, left);
        }
        left -= Sizes::depth;
        into = into + 1 == Sizes::stages ? 0 : into + 1;
    };
#pragma unroll 1
    for (int stage = 0; stage + 1 < Sizes::stages; stage++) {
        copy_a();
        copy_b();
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
    u32 x[2][down][4] = {}, y[2][across / 2][4] = {};
    const u32 place_a = A::first_place(first_row, AlongA), place_b = B::first_place(first_column, !AlongB);
    auto read = [&](int part) {
        const u32 of_a = memory + out * bytes, of_b = of_a + A::bytes;
#pragma unroll
        for (int i = 0; i < down; i++) A::take(x[part % 2][i], of_a, place_a, i, part);
#pragma unroll
        for (int j = 0; j < across / 2; j++) B::take(y[part % 2][j], of_b, place_b, j, part);
    };
    auto multiply_all = [&](int part) {
#pragma unroll
        for (int i = 0; i < down; i++) {
#pragma unroll
            for (int j = 0; j < across; j++) multiply(d[i][j], x[part % 2][i], y[part % 2][j / 2] + j % 2 * 2);
        }
    };
    // Waits until the next step's copies are complete and all threads have read the stage that the next copies overwrite.
    auto meet = [&] {
        copies_wait<Sizes::stages - 2>();
        __syncthreads();
    };
    meet();
    // A step's last fragments are multiplied after the next step has begun, so that the tensor cores do not wait for its first
    // fragments; before the first step they are zeros. The assembler moves products ahead of a barrier, but of no loop's end:
    // so that is where the barrier is.
#pragma unroll 1
    for (i32 k = 0; k < parameters.k; k += Sizes::depth) {
#pragma unroll
        for (int part = 0; part < parts; part++) {
            read(part);
            if (part == 0) copy_a();
            if (part == 1) copy_b();
            multiply_all(part + 1);
        }
        put();
        out = out + 1 == Sizes::stages ? 0 : out + 1;
        meet();
    }
    multiply_all(1);
    copies_wait<0>();

    // Through shared memory, a warp's rows at a time, so that a warp stores whole rows. Columns that the tile before
    // stores are left out; the next one is at a multiple of 16 bytes.
    enum : int { together = 4, pitch = Sizes::columns + 8 };
    static_assert(Sizes::warp_rows * pitch * 4 <= Sizes::stages * bytes, "the steps' place holds a warp's rows");
    f32* const sums = (f32*)shared_memory;
    const u32 others = tile.column - beginning, gap = (together - others % together) % together;
#pragma unroll 1
    for (u32 part = 0; part < Sizes::warps_down; part++) {
        __syncthreads();
        if (warp % Sizes::warps_down == part) {
#pragma unroll
            for (int i = 0; i < down; i++) {
#pragma unroll
                for (int j = 0; j < across; j++) {
#pragma unroll
                    for (int v = 0; v < 4; v++) {
                        const u32 row = 16 * i + lane / 4 + v / 2 * 8, column = 8 * j + 2 * (lane % 4) + v % 2;
                        sums[row * pitch + gap + first_column + column] = d[i][j][v];
                    }
                }
            }
        }
        __syncthreads();
#pragma unroll 1
        for (u32 chunk_index = threadIdx.x; chunk_index < Sizes::warp_rows * Sizes::columns / together; chunk_index += Sizes::threads) {
            const u32 row = chunk_index / (Sizes::columns / together), column = chunk_index % (Sizes::columns / together) * together;
            const i32 y = top + part * Sizes::warp_rows + row;
            if (y < tile.row || others + column >= Sizes::columns) continue;
            Pack<f32, together> pack;
            load_pack(pack, sums + row * pitch + gap + others + column);
            if (parameters.f32_output) {
                store_run((f32*)c, parameters, tile.matrix, y, tile.column + column, pack.item);
            } else {
                store_run((Element*)c, parameters, tile.matrix, y, tile.column + column, pack.item);
            }
        }
    }
}

}  // namespace

#define ENTRY(element, layout, size, along_a, along_b)                                                            \
    extern "C" __global__ void __launch_bounds__(Tile<size>::threads, Tile<size>::blocks)                         \
        gemm_mma_##element##_##layout##_##size(const element* a, const element* b, void* c,                       \
                                               const __grid_constant__ GemmParameters parameters) {                             \
        gemm<element, size, along_a, along_b>(a, b, c, parameters);                                                    \
    }
#define LAYOUTS(element, size)              \
    ENTRY(element, nn, size, true, false)   \
    ENTRY(element, nt, size, true, true)    \
    ENTRY(element, tn, size, false, false)  \
    ENTRY(element, tt, size, false, true)

// Devices of 7.5 have not enough shared memory for it.
#if __CUDA_ARCH__ >= 800
LAYOUTS(ELEMENT, large)
#endif
LAYOUTS(ELEMENT, medium)
LAYOUTS(ELEMENT, small)
