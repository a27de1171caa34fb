// C = alpha op(A) op(B) + beta C with an epilogue (epilogue.cuh) on the tensor cores of compute capability 8.0 and up, and 7.5 for f16. A
// and B are ELEMENT (-DELEMENT=bf16 or f16), sums are f32, C is ELEMENT or f32. Each ELEMENT is an image of its own.
//
// Entries: gemm_mma_<ELEMENT>_<A><B>_<tile>(A, B, C, parameters). <A> and <B> are n (row-major) or t (column-major), so A is K-major if
// n, and B if t. <tile> is large, medium or small (`Tile` below). C is row-major.
//
// Launch: one block for each tile of each matrix of the batch, `Tile<tile>::threads` threads, and the dynamic shared memory that
// src/gemm/mma computes. Large and medium tiles need a C of at least a tile, and rows of A and B that are multiples of 16 bytes.
//
// Algorithm: a multi-stage cp.async pipeline with mma.sync, as CUTLASS's MmaMultistage. A stage holds a step of k of both operands as they
// are stored. `ldmatrix` loads the fragments 16 k ahead of the products (transposed if m or n runs along the rows). Large and medium
// tiles stay inside C: the last ones begin earlier and store only their own elements. Small tiles may reach outside of C and take any
// alignment: rows that are not multiples of 16 bytes are copied element by element, through registers.
//
// Shared memory: stages, each A and then B. If k runs along the stored rows, a row has the k of a step of one m or n. If m or n does, a row
// has 64 of them for one k, and the rows of a step are a panel. 16-byte chunk i of row r is stored as chunk i ^ (r % 8) (rows of 64 bytes:
// i ^ (r / 2 % 4)), so neither copies nor loads have bank conflicts. A lane's addresses in a step differ by this XOR and by
// multiples of 8 rows from its first one, which is computed before the first step. After the last step, sums use the memory.
//
// Bounds: with 256 fma a clock cycle and tensor core (8.0), warps of large, medium and small tiles need 0.69, 0.75 and 1.5 of the shared
// memory bandwidth, and 24, 32 and 64 bytes a clock cycle of the bandwidth of the L2 cache.
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

// Outside of the anonymous namespace, because the compiler would put a random identifier into its name, a new one in each compilation.
extern __shared__ unsigned char shared_memory[];

namespace {

// Enumerators, because the compiler would emit constants as variables in global memory.
enum : int {
    run = 8,     // Elements in a chunk of 16 bytes.
    panel = 64,  // Elements of a row in shared memory, if m or n runs along it.
};

// A tile and its division among the warps of a block, each of which has `Rows` x `Columns` elements.
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
        blocks = Blocks,  // Blocks on a multiprocessor at a time, as the registers allow.
        threads = WarpsDown * WarpsAcross * 32,
        inside = Rows == 64,  // True if tiles stay inside the matrix and rows are multiples of 16 bytes: large and medium.
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

// One operand of a tile, and its loader: `Span` of m or n by the k of a step. If `KMajor`, k runs along the stored rows (K-major).
template <typename Element, typename Sizes, int Span, bool KMajor>
struct Operand {
    enum : int {
        across = (KMajor ? Sizes::depth : panel) / run,  // Chunks of a row in shared memory.
        down = KMajor ? Span : Sizes::depth,             // Rows of a panel.
        panels = KMajor ? 1 : Span / panel,
        row_bytes = across * 16,
        panel_bytes = down * row_bytes,
        bytes = panels * panel_bytes,
        rows_at_once = Sizes::threads / across,                                // Rows that the block copies by one chunk a thread.
        singles = Sizes::inside ? 1 : Span * Sizes::depth / Sizes::threads,  // Elements of a thread, if copied one by one.
    };
    static_assert(rows_at_once % 8 == 0 && down % rows_at_once == 0, "each thread copies, to rows of one order");
    const Element* from;  // The next step in global memory; if `inside`, the thread's first chunk of it.
    i64 leading;          // From a stored row to the next, in elements.
    i32 extent;           // The m or n that remain from the tile's first one on.
    bool vectors;         // True if all rows begin at multiples of 16 bytes.
    u16 held[singles];    // Elements between `copy` and `put`.

    __device__ Operand(const Element* matrix, i64 leading, i32 first, i32 extent, bool vectors)
        : from(matrix + (KMajor ? first * leading : first)), leading(leading), extent(extent - first), vectors(vectors) {
        if (Sizes::inside) from += own();
    }

    // The thread's first row, and its chunk in that row.
    __device__ static i32 row() { return threadIdx.x / across; }
    __device__ static i32 chunk() { return threadIdx.x % across; }
    // Returns the offset of the thread's first chunk of a step in global memory, in elements from the step's first element.
    __device__ i64 own() const { return row() * leading + chunk() * run; }

    // Returns the swizzled offset of a chunk in the operand's stage, in bytes. Chunks are counted through all panels.
    __device__ static u32 place(u32 row, u32 chunk) {
        const u32 order = across == 4 ? row / 2 % 4 : row % 8;
        return chunk / across * panel_bytes + row * row_bytes + (chunk % across ^ order) * 16;
    }

    // Returns true if a step is copied by chunks of 16 bytes, and not element by element; `columns` of its stored rows remain.
    __device__ bool together(i32 columns) const {
        constexpr i32 all = KMajor ? Sizes::depth : Span;
        return Sizes::inside || (vectors && (columns >= all || columns % run == 0));
    }

    // Copies the next step to its stage at address `to`. `left` of k remain from it on; elements outside of the matrix become 0. Chunks are
    // copied by cp.async. Single elements are only loaded into `held` here, and `put` stores them, so that their latency is hidden.
    __device__ void copy(u32 to, i32 left) {
        const i32 rows = KMajor ? extent : left, columns = KMajor ? left : extent;
        if (together(columns)) {
            const Element* at = Sizes::inside ? from : from + own();
            const u32 own_place = place(row(), chunk());
#pragma unroll
            for (int y = 0; y < down; y += rows_at_once) {
#pragma unroll
                for (int x = 0; x < panels; x++) {
                    bool is = (KMajor ? chunk() * run : row() + y) < left;
                    if (!Sizes::inside) is = row() + y < rows && chunk() * run + x * panel < columns;
                    copy_async<16>(to + own_place + (y * row_bytes + x * panel_bytes), at + x * panel, is);
                }
                at += rows_at_once * leading;
            }
        } else {
            constexpr int width = KMajor ? Sizes::depth : Span, fetched_at_once = Sizes::threads / width;
            const i32 x = threadIdx.x % width, row = threadIdx.x / width;
#pragma unroll
            for (int i = 0; i < singles; i++) {
                const i32 y = row + i * fetched_at_once;
                held[i] = y < rows && x < columns ? from[y * leading + x].bits : 0;
            }
        }
        from += KMajor ? (i64)Sizes::depth : Sizes::depth * leading;
    }

    // Stores the elements that `copy` has loaded into `held`, if any.
    __device__ void put(u32 to, i32 left) const {
        if (together(KMajor ? left : extent)) return;
        unsigned char* const step = shared_memory + (to - shared_address(shared_memory));
        constexpr int width = KMajor ? Sizes::depth : Span, fetched_at_once = Sizes::threads / width;
        const i32 x = threadIdx.x % width, row = threadIdx.x / width;
#pragma unroll
        for (int i = 0; i < singles; i++) {
            *(u16*)(step + place(row + i * fetched_at_once, x / run) + x % run * 2) = held[i];
        }
    }

    // Returns the offset in the stage that the lane passes to ldmatrix for the warp's first fragment: 16 of m or n, from `first` on, by the
    // step's first 16 k. Of its four 8 x 8 blocks, the second is the next 8 rows if `down_first`, else the next 8 columns.
    __device__ static u32 first_place(u32 first, bool down_first) {
        const u32 lane = threadIdx.x % 32;
        const u32 row = down_first ? lane % 16 : lane % 8 + lane / 16 * 8;
        const u32 chunk = down_first ? lane / 16 : lane / 8 % 2;
        return KMajor ? place(first + row, chunk) : place(row, first / run + chunk);
    }

    // Loads the warp's fragment of the i-th 16 of m or n and of 16 k number `part` of the step. `first` is from `first_place`.
    __device__ static void take(u32 (&fragment)[4], u32 step, u32 first, int i, int part) {
        const u32 rows = 16 * (KMajor ? i : part), chunks = 2 * (KMajor ? part : i);
        blocks_from_shared<!KMajor>(fragment, step + (first ^ chunks * 16) + rows * row_bytes);
    }
};

template <typename Element, Size Size, bool KMajorA, bool KMajorB>
__device__ inline void gemm(const Element* a, const Element* b, void* c, const GemmParameters& parameters) {
    typedef Tile<Size> Sizes;
    typedef Operand<Element, Sizes, Sizes::rows, KMajorA> A;
    typedef Operand<Element, Sizes, Sizes::columns, KMajorB> B;
    enum : int {
        down = Sizes::warp_rows / 16,  // A warp's tile is `down` x `across` mma instructions.
        across = Sizes::warp_columns / 8,
        parts = Sizes::depth / 16,     // Of 16 k, in a step.
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
    // Large and medium tiles copy zeros after the last step, which saves a branch. Small tiles do not: without the branch the addresses of
    // their single elements would stay in registers, and a multiprocessor would have fewer blocks.
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
    u32 out = 0;  // The stage that is multiplied; `into` is the stage that is copied to.
    u32 x[2][down][4] = {}, y[2][across / 2][4] = {};
    const u32 place_a = A::first_place(first_row, KMajorA), place_b = B::first_place(first_column, !KMajorB);
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
    // Waits until the copies of the next step are complete, and all threads have read the stage that the next copies overwrite.
    auto meet = [&] {
        copies_wait<Sizes::stages - 2>();
        __syncthreads();
    };
    meet();
    // Software pipeline over two sets of fragments: `read(part)` loads one set while `multiply_all(part + 1)` multiplies the other one,
    // which was read for part - 1. So a step's last fragments are multiplied in the next step, and the tensor cores do not wait for
    // that step's first ones. Before the first step they are zeros. The barrier is at the end of the loop, because ptxas would move
    // products that follow a barrier to before it, but not across the end of a loop.
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

    // The sums go through shared memory, the rows of a warp at a time, so that the threads of a warp store whole rows. The first `others`
    // columns belong to the tile before and are left out. `gap` pads a row such that the column after them is at a multiple of 16 bytes.
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

#define ENTRY(element, layout, size, k_major_a, k_major_b)                                          \
    extern "C" __global__ void __launch_bounds__(Tile<size>::threads, Tile<size>::blocks)           \
        gemm_mma_##element##_##layout##_##size(const element* a, const element* b, void* c,         \
                                               const __grid_constant__ GemmParameters parameters) { \
        gemm<element, size, k_major_a, k_major_b>(a, b, c, parameters);                             \
    }
#define LAYOUTS(element, size)              \
    ENTRY(element, nn, size, true, false)   \
    ENTRY(element, nt, size, true, true)    \
    ENTRY(element, tn, size, false, false)  \
    ENTRY(element, tt, size, false, true)

// Devices of compute capability 7.5 have too little shared memory for the large tile.
#if __CUDA_ARCH__ >= 800
LAYOUTS(ELEMENT, large)
#endif
LAYOUTS(ELEMENT, medium)
LAYOUTS(ELEMENT, small)
