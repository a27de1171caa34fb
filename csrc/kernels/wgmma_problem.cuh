// The problem of gemm_wgmma.cu: its parameter, the order of its tiles, and the descriptors by which a block's producer tells its
// consumers of a work tile.
#pragma once
#include "epilogue.cuh"
#include "hopper.cuh"
#include "hopper_pipeline.cuh"

// Enumerators, because constants would become variables of the module.
enum : int {
    cluster_size = 2,
    block_rows = 128,
    tile_rows = cluster_size * block_rows,
    depth = 64,     // k of a stage: 128 bytes.
    consumers = 2,  // Consumer warpgroups.
    threads = 128 * (1 + consumers),
    staging_bytes = 64 * 128,  // 64 rows of 128 bytes of C.
};

// Exactly `gemm::wgmma::persistent::GemmParameters` of the Rust side.
struct GemmParameters {
    i32 m, n, k, batch;
    i64 c_row;         // From a row of C to the next, in elements.
    i64 c_matrix;      // Batch stride of C, in elements.
    i32 a_matrix;      // Batch step of A's map: 1, or 0 if all products share one A.
    i32 b_matrix;
    i32 group;         // Rows of tiles in a group of the raster order.
    i32 f32_output;    // True where C is f32 instead of ELEMENT.
    i32 store_bytes;   // Bytes of a store to C and aux: 16 by TMA, fewer by threads.
    f32 alpha, beta;
    i32 evict_first;   // True where C is stored with the L2 policy evict-first.
    Epilogue epilogue;
    u32* semaphores;   // 4 of each partial, one a consumer warpgroup of the cluster; 0 at the start.
    f32* partials;     // [partial][block][consumer][columns / 8][128 threads][4] accumulators.
    i32 slice_steps[4];  // k steps of a slice, by round of the division; at most 4 rounds.

    __device__ i32 k_steps() const { return (k + depth - 1) / depth; }
};

typedef StreamKScheduler<GemmParameters, cluster_size> WorkTileScheduler;

// The named barrier of a warpgroup.
__device__ inline u32 warpgroup_barrier() { return threadIdx.x / 128; }

// The raster order of the tiles: down a group of rows of tiles, then one column on, so that the operands of the tiles in flight fit
// the L2 cache.
template <int Columns>
struct TileRaster {
    i32 rows, columns, group, count;

    __device__ explicit TileRaster(const GemmParameters& parameters) {
        rows = (parameters.m + tile_rows - 1) / tile_rows;
        columns = (parameters.n + Columns - 1) / Columns;
        group = parameters.group;
        count = rows * columns * parameters.batch;
    }

    // The tile's first row and column, and its matrix.
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

// A work tile as the producer describes it to the consumers, in shared memory. To find a work tile takes divisions, which would keep
// a consumer from its next products, and registers that it does not have.
struct WorkDescriptor {
    enum : u32 {
        bytes = 32,
        // Flags beside the steps.
        whole_tile = 1u << 25,        // The epilogue is gelu(sum + bias by column) or a derivative, for columns all inside C.
        scales = 1u << 26,            // Sums are multiplied by alpha.
        general_epilogue = 1u << 27,  // The epilogue is any other one, element by element.
        column_epilogue = 1u << 28,   // The epilogue has a bias by column, aux and an activation alone.
        fixes_up = 1u << 29,          // Partials of other clusters are added.
        is_partial = 1u << 30,        // The sums are stored as a partial.
        has_next = 1u << 31,          // Another work tile follows.
        uncommon = scales | general_epilogue | column_epilogue | fixes_up | is_partial,
        steps = whole_tile - 1,  // No k has more.
    };
    // The first row of the block and the first column of the tile, its matrix, and the steps with the flags above.
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

// The partials of a work tile, after its descriptor: the own one, or the range of those to add, `stride` apart.
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
