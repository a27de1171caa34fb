// The parameter of gemm_wgmma.cu, the raster order of its tiles, and the descriptors by which a block's producer tells its consumers
// about work tiles.
#pragma once
#include "epilogue.cuh"
#include "hopper.cuh"
#include "hopper_pipeline.cuh"

// Enumerators, because the compiler would emit constants as variables in global memory.
enum : int {
    cluster_size = 2,
    block_rows = 128,
    tile_rows = cluster_size * block_rows,
    depth = 64,     // k of a stage, and of a "k step": 128 bytes.
    consumers = 2,  // Consumer warpgroups.
    threads = 128 * (1 + consumers),
    staging_bytes = 64 * 128,  // Of a staging buffer: 64 rows of 128 bytes of C.
    steps_to_load_aux = 3,     // Before the last ones of a tile, a pre-activation is requested: they take longer than a load.
};

// Exactly `gemm::wgmma::persistent::GemmParameters` of the Rust side.
struct GemmParameters {
    i32 m, n, k, batch;
    i64 c_row;         // From a row of C to the next, in elements.
    i64 c_matrix;      // Batch stride of C, in elements.
    i32 a_matrix;      // Step of the batch coordinate in A's map: 1, or 0 if all products of the batch share one A.
    i32 b_matrix;      // The same for B.
    i32 group;         // Rows of tiles in a band of the raster order (TileRaster).
    i32 f32_output;    // True if C is f32 instead of ELEMENT.
    i32 store_bytes;   // Bytes of a store to C and aux: 16 by TMA; 8, 4 or 2 by threads.
    f32 alpha, beta;
    i32 evict_first;   // True if C and aux are stored with the L2 policy evict-first.
    Epilogue epilogue;
    u32* semaphores;   // [partial][block][consumer] of stream-K; 0 at the start.
    f32* partials;     // [partial][block][consumer][columns / 8][128 threads][4] accumulators.
    i32 slice_steps[4];  // k steps of a slice in each wave of stream-K, of which there are at most 4.

    __device__ i32 k_steps() const { return (k + depth - 1) / depth; }
};

typedef StreamKScheduler<GemmParameters, cluster_size> WorkTileScheduler;

// Returns the number of the warpgroup's hardware barrier (`named_barrier`).
__device__ inline u32 warpgroup_barrier() { return threadIdx.x / 128; }

// The raster order of the tiles (CUTLASS: tile swizzle). Each band has `group` rows of tiles. Consecutive tiles go down a band's column,
// then down its next column, and after the last column on to the next band. So the operands of concurrent tiles fit the L2 cache.
template <int Columns>
struct TileRaster {
    i32 rows, columns, group, count;

    __device__ explicit TileRaster(const GemmParameters& parameters) {
        rows = (parameters.m + tile_rows - 1) / tile_rows;
        columns = (parameters.n + Columns - 1) / Columns;
        group = parameters.group;
        count = rows * columns * parameters.batch;
    }

    // Finds the tile's first row and column in C, and its matrix in the batch.
    __device__ void at(i32 tile, i32& row, i32& column, i32& matrix) const {
        matrix = tile / (rows * columns);
        const i32 within = tile - matrix * (rows * columns);
        const i32 first = within / (group * columns) * group;
        const i32 height = min(group, rows - first);
        const i32 in_group = within % (group * columns);
        row = (first + in_group % height) * tile_rows;
        column = in_group / height * Columns;
    }
};

// A work tile as the producer describes it to the consumers, in shared memory. Consumers do not schedule for themselves: the divisions
// would delay their products, and they have no registers left for the scheduler.
struct WorkDescriptor {
    enum : u32 {
        bytes = 32,
        // Flags above the number of steps. At most one of the three epilogue flags is set; with none, C = alpha A B.
        fast_epilogue = 1u << 25,     // gelu(sum + bias by column) or a derivative, for a tile whose columns are all in C.
        scales = 1u << 26,            // The accumulators are multiplied by alpha.
        general_epilogue = 1u << 27,  // Any epilogue, with bounds checks for each element.
        column_epilogue = 1u << 28,   // Only a bias by column, aux and an activation.
        fixes_up = 1u << 29,          // Partials of other clusters are added (FixUpDescriptor).
        is_partial = 1u << 30,        // The accumulators are stored as a partial (FixUpDescriptor).
        has_next = 1u << 31,          // Another work tile follows.
        uncommon = scales | general_epilogue | column_epilogue | fixes_up | is_partial,
        steps = fast_epilogue - 1,  // The bits of the number of k steps; k is below 2^31, so there are fewer than 2^25.
    };
    // The block's first row, the tile's first column, the matrix in the batch, and the number of k steps with the flags above.
    u32 row, column, matrix, flags;

    __device__ void put(u32 slot) const {
        const u32 words[4] = {row, column, matrix, flags};
        to_shared(slot, words);
    }
    __device__ void get(u32 slot) {
        u32 words[4];
        from_shared(slot, words);
        row = words[0], column = words[1], matrix = words[2], flags = words[3];
    }
};

// The partials of a work tile, in the second half of its descriptor's slot. If it `is_partial`, `first` is the index of the partial to
// store. If it `fixes_up`, the partials to add are `first`, first + stride, and so on below `end`.
struct FixUpDescriptor {
    u32 first, end, stride;

    __device__ FixUpDescriptor(u32 first, u32 end, u32 stride) : first(first), end(end), stride(stride) {}
    __device__ explicit FixUpDescriptor(u32 slot) {
        u32 words[4];
        from_shared(slot + 16, words);
        first = words[0], end = words[1], stride = words[2];
    }
    __device__ void put(u32 slot) const {
        const u32 words[4] = {first, end, stride, 0};
        to_shared(slot + 16, words);
    }
};
