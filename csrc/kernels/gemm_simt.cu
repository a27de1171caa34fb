// C = alpha op(A) op(B) + beta C with an epilogue (epilogue.cuh) on CUDA cores, for every device and element type. One family for each
// ELEMENT (-DELEMENT=u8, u16, u32, u64, f16, bf16, f32, f64, c64 or c128); signed integers use the unsigned kernels.
//
// Entries: gemm_simt_<ELEMENT>_<A><B>(A, B, C, parameters), and with -DF32_OUTPUT (f16, bf16) gemm_simt_<ELEMENT>_f32_<A><B> with C of f32.
// A and B are n (stored as they are multiplied, row by row) or t (stored transposed); `GemmParameters` has the flags that conjugate.
//
// Launch: 256 threads a block, one block a tile of each matrix, static shared memory. Any alignment; `vector_a` and `vector_b` allow loads
// of up to 16 bytes.
//
// Algorithm: a double-buffered tile in shared memory, filled through registers. 16 x 16 threads compute up to 8 x 8 elements each. A step
// of k is stored k by k with m or n contiguous; the next one loads into registers meanwhile. A thread's rows are runs of 16 bytes, 4
// threads apart, so a warp's reads meet no bank twice.
//
// Invariants: f16 and bf16 are added in f32 and rounded once, u8 and u16 in u32, the others in their own type; integers wrap. Floats are
// added by fma with k ascending, so the bits depend on the operands alone. With `reads_c` 0 C is only written.
//
// benches/RESULTS.md has its speed.
#include "gemm_blocks.cuh"

namespace {

// The type that elements are added in.
template <typename Element>
struct Arithmetic {
    typedef Element Sum;
};
template <>
struct Arithmetic<u8> {
    typedef u32 Sum;
};
template <>
struct Arithmetic<u16> {
    typedef u32 Sum;
};
template <>
struct Arithmetic<f16> {
    typedef f32 Sum;
};
template <>
struct Arithmetic<bf16> {
    typedef f32 Sum;
};

template <typename Element>
__device__ inline void clear_element(Element& x) {
    clear(x);
}
__device__ inline void clear_element(f16& x) { x.bits = 0; }
__device__ inline void clear_element(bf16& x) { x.bits = 0; }

// The sizes of a tile, by the type of the sums. Enumerators, because constants would become variables of the module.
template <typename Sum>
struct Tile {
    enum : int {
        threads = 256,
        each = sizeof(Sum) <= 4 ? 8 : 4,            // Rows, and columns, of a thread.
        run = 16 / sizeof(Sum),                     // Of those, neighbours: one access of shared memory.
        span = 16 * each,                           // Rows, and columns, of a block.
        depth = 8,                                  // k of a step.
        // From one k to the next in shared memory, so that transposed stores spread over the banks.
        pitch = span + (run > 1 ? run : 2),
        vector = sizeof(Sum) <= 4 ? 4 : run,        // Elements of one load.
        loads = span * depth / threads / vector,    // Of a thread and an operand.
        blocks = sizeof(Sum) <= 8 ? 2 : 1,          // Of a multiprocessor, as the registers allow.
    };
};

// One operand's part of a step: `span` of m or n by `depth` of k. `KMajor` says which of the two is contiguous in
// memory: 1 for k (A stored as it is multiplied, B transposed), 0 for m or n.
template <typename Element, int KMajor>
struct Part {
    typedef typename Arithmetic<Element>::Sum Sum;
    typedef Tile<Sum> Sizes;
    typedef Pack<Element, Sizes::vector> Vector;
    // A row of the part in memory has so many vectors, and so many rows lie between a thread's loads.
    enum : int {
        across = (KMajor ? Sizes::depth : Sizes::span) / Sizes::vector,
        rows_between = Sizes::threads / across,
    };

    Vector held[Sizes::loads];
    const Element* from;  // Of the first load.
    i64 leading;
    i32 left;             // Of m or n, from the first load on.
    bool vectors;

    // The position of the thread's first load in a part, in rows of memory and in elements.
    __device__ static int y() { return (int)threadIdx.x / across; }
    __device__ static int x() { return (int)threadIdx.x % across * Sizes::vector; }

    // `first` and `extent` are of m or n.
    __device__ Part(const Element* matrix, i64 leading, i32 first, i32 extent, bool vectors)
        : leading(leading), left(extent - first - (KMajor ? y() : x())), vectors(vectors) {
        from = matrix + (KMajor ? (first + y()) * leading + x() : y() * leading + first + x());
    }

    // Loads the next part, of which so much of k is left; what is outside is 0.
    __device__ void load(i32 depth) {
        const i32 k = depth - (KMajor ? x() : y());
#pragma unroll
        for (int i = 0; i < Sizes::loads; i++) {
            const i32 rows = (KMajor ? left : k) - i * rows_between;
            const i32 columns = KMajor ? k : left;
            const Element* source = from + i * rows_between * leading;
            if (vectors && rows > 0 && columns >= Sizes::vector) {
                load_pack(held[i], source);
            } else {
#pragma unroll
                for (int v = 0; v < Sizes::vector; v++) {
                    clear_element(held[i].item[v]);
                    if (rows > 0 && v < columns) held[i].item[v] = source[v];
                }
            }
        }
        from += KMajor ? (i64)Sizes::depth : Sizes::depth * leading;
    }

    __device__ void put(Sum* step, bool conjugate) const {
#pragma unroll
        for (int i = 0; i < Sizes::loads; i++) {
            const int at = KMajor ? y() + i * rows_between : x(), k = KMajor ? x() : y() + i * rows_between;
#pragma unroll
            for (int v = 0; v < Sizes::vector; v++) {
                Sum number = widened(held[i].item[v]);
                if (conjugate) number = conjugated(number);
                step[(k + (KMajor ? v : 0)) * Sizes::pitch + at + (KMajor ? 0 : v)] = number;
            }
        }
    }
};

// A thread's rows (or columns) of one k: runs of 16 bytes, `threads_across` runs apart.
template <typename Sum, int ThreadsAcross>
__device__ inline void take(Sum (&fragment)[Tile<Sum>::each], const Sum* from) {
#pragma unroll
    for (int i = 0; i < Tile<Sum>::each; i += Tile<Sum>::run) {
        Pack<Sum, Tile<Sum>::run> pack;
        load_pack(pack, from + i * ThreadsAcross);
#pragma unroll
        for (int v = 0; v < Tile<Sum>::run; v++) fragment[i + v] = pack.item[v];
    }
}

template <typename Element, typename Result, int KMajorA, int KMajorB>
__device__ inline void gemm(const Element* a, const Element* b, Result* c, const GemmParameters& parameters) {
    typedef typename Arithmetic<Element>::Sum Sum;
    typedef Tile<Sum> Sizes;
    __shared__ __align__(16) unsigned char memory[2][2][Sizes::depth * Sizes::pitch * sizeof(Sum)];

    // Of 8 warps, 4 lie below each other; of a warp's 32 threads, 8 beside each other.
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_row = warp / 2 * 4 * Sizes::each + lane / 8 * Sizes::run;
    const int first_column = warp % 2 * 8 * Sizes::each + lane % 8 * Sizes::run;

    const BlockTile tile(parameters, Sizes::span, Sizes::span);
    const i32 row = tile.row, column = tile.column;
    const Element* own_a = a + tile.matrix * parameters.a_matrix;
    const Element* own_b = b + tile.matrix * parameters.b_matrix;

    Sum sums[Sizes::each][Sizes::each];
#pragma unroll
    for (int i = 0; i < Sizes::each; i++) {
#pragma unroll
        for (int j = 0; j < Sizes::each; j++) clear(sums[i][j]);
    }

    Part<Element, KMajorA> next_a(own_a, parameters.a_leading, row, parameters.m, parameters.vector_a);
    Part<Element, KMajorB> next_b(own_b, parameters.b_leading, column, parameters.n, parameters.vector_b);
    auto put = [&](int step) {
        next_a.put((Sum*)memory[step][0], parameters.conjugate_a);
        next_b.put((Sum*)memory[step][1], parameters.conjugate_b);
    };
    int step = 0;
    i32 left = parameters.k;
    if (left > 0) {
        next_a.load(left);
        next_b.load(left);
        put(0);
    }
    __syncthreads();
#pragma unroll 1
    for (; left > 0; left -= Sizes::depth) {
        const bool more = left > Sizes::depth;
        if (more) {
            next_a.load(left - Sizes::depth);
            next_b.load(left - Sizes::depth);
        }
        const Sum* step_a = (const Sum*)memory[step][0] + first_row;
        const Sum* step_b = (const Sum*)memory[step][1] + first_column;
// No further: the registers are just enough.
#pragma unroll 2
        for (int depth = 0; depth < Sizes::depth; depth++) {
            Sum x[Sizes::each], y[Sizes::each];
            take<Sum, 4>(x, step_a + depth * Sizes::pitch);
            take<Sum, 8>(y, step_b + depth * Sizes::pitch);
#pragma unroll
            for (int i = 0; i < Sizes::each; i++) {
#pragma unroll
                for (int j = 0; j < Sizes::each; j++) sums[i][j] = multiply_add(x[i], y[j], sums[i][j]);
            }
        }
        step ^= 1;
        if (more) put(step);
        __syncthreads();
    }

    // The other rows move up, because registers have no index, and the code for one row is long.
#pragma unroll 1
    for (int i = 0; i < Sizes::each; i++) {
        const i32 y = row + first_row + i / Sizes::run * Sizes::run * 4 + i % Sizes::run;
#pragma unroll
        for (int j = 0; j < Sizes::each; j += Sizes::run) {
            Sum numbers[Sizes::run];
#pragma unroll
            for (int v = 0; v < Sizes::run; v++) numbers[v] = sums[0][j + v];
            store_run(c, parameters, tile.matrix, y, column + first_column + j * 8, numbers);
        }
#pragma unroll
        for (int next = 0; next + 1 < Sizes::each; next++) {
#pragma unroll
            for (int j = 0; j < Sizes::each; j++) sums[next][j] = sums[next + 1][j];
        }
    }
}

}  // namespace

#define ENTRY(name, element, result, k_major_a, k_major_b)                                                 \
    extern "C" __global__ void __launch_bounds__(256, Tile<Arithmetic<element>::Sum>::blocks)              \
        gemm_simt_##name(const element* a, const element* b, result* c, const GemmParameters parameters) { \
        gemm<element, result, k_major_a, k_major_b>(a, b, c, parameters);                                  \
    }
#define LAYOUTS(name, element, result)        \
    ENTRY(name##_nn, element, result, 1, 0)   \
    ENTRY(name##_nt, element, result, 1, 1)   \
    ENTRY(name##_tn, element, result, 0, 0)   \
    ENTRY(name##_tt, element, result, 0, 1)
#define OWN_RESULT(element) LAYOUTS(element, element, element)
#define F32_RESULT(element) LAYOUTS(element##_f32, element, f32)
// ELEMENT's value instead of its name.
#define F32_RESULT_OF(element) F32_RESULT(element)

OWN_RESULT(ELEMENT)
#ifdef F32_OUTPUT
F32_RESULT_OF(ELEMENT)
#endif
