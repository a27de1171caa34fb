// C = alpha A B + beta C with an epilogue (epilogue.cuh), on the tensor cores of compute capability 9.0. A and B are ELEMENT
// (-DELEMENT=bf16 or f16), sums are f32, C is ELEMENT or f32. One family for each ELEMENT and layout (-DLAYOUT=nn, nt, tn or tt).
//
// Entries: gemm_wgmma_<ELEMENT>_<A><B>_<columns>(map of A, map of B, map of C, map of aux, C, parameters). A and B are n (stored as
// they are multiplied, row by row) or t (stored transposed). `columns` is a tile's width: 64, 128, 192 or 256.
//
// Launch: clusters of 2 blocks of 384 threads, at most one cluster for each two multiprocessors and each tile, and `shared_bytes` of
// dynamic shared memory (src/gemm/wgmma/persistent.rs). k is at least 1. The tensor maps have three dimensions (contiguous one
// first, batch last) and a swizzle of 128 bytes. Their boxes:
//   A: n 64 k x 128 rows; t 64 rows x 64 k.  B: t 64 k x columns / 2; n 64 columns x 32 k.  C, aux: 128 bytes x 64 rows.
// TMA fills out-of-bounds elements with zeros and clips stores, but only to chunks of 16 bytes (seen on an H200): where a row of C
// or aux is not a multiple of 16 bytes, threads store it (`store_bytes` < 16) and the maps of C and aux are not used. So every
// size works.
//
// Algorithm: persistent, warp-specialised, as CUTLASS's "KernelTmaWarpSpecializedCooperative" for Hopper. A cluster computes tiles of
// 256 rows, 128 a block. In each block one thread of the first warpgroup is the producer: it issues the TMA loads, and multicasts its
// half of B to both blocks. Two consumer warpgroups multiply 64 rows each. Barriers `full` and `empty` guard the stages. The
// producer also schedules the work tiles and describes them to the consumers. Consumers round a tile to 16 bits and store it while
// they multiply the next one. Stream-K divides the last wave (hopper_pipeline.cuh). With programmatic dependent launch a
// kernel sets up its barriers while the one before it ends; every thread waits for that end before it touches global memory.
//
// Invariants:
// - An element's k ascends, 16 at a time, in one accumulator, whatever the tile width. Stream-K adds slices in ascending order, but
//   the slices depend on the numbers of tiles and clusters. So the same launch gives the same bits on every run.
// - The dependent launch is triggered after the last load, when all blocks have started, so no block of the next kernel takes the
//   place of one that another block waits for.
//
// | version | change | bf16 against cuBLAS in the same run, H200 |
// |---|---|---|
// | 1 | one layout, 256 columns | 4096^3 1.01, 8192^3 1.03 (784 and 795 TFLOP/s) |
// | 5 | programmatic dependent launch | squares of 256, 512, 1024, 2048: 1.19, 1.17, 1.14, 1.03 times version 4 |
// | 10 | stream-K by waves; evict-first stores | weight gradients of 65536 rows: 0.92 to 0.99; batch of 64 1.05 |
// | 11 | branch-free common path; bias / 2 in shared memory | 65536 x 768 x 768 1.05; bias and gelu 1.17 |
// | 12 | sums times the derivative of an activation | not measured |
// benches/RESULTS.md has the current figures, docs/performance-notes.md every version and the experiments that lost.
#include "hopper.cuh"
#include "wgmma.cuh"
#include "wgmma_partials.cuh"
#include "wgmma_epilogue.cuh"
#include "wgmma_problem.cuh"

// Outside of the namespace, which has no name of its own: the compiler would make one up, another one each time.
extern __shared__ unsigned char shared_memory[];

namespace {

// The layout of a block's shared memory: barriers, work descriptors, the stages of both operands, and the staging buffers of C. There
// is one descriptor slot more than there are stages: the producer writes a descriptor when its first stage is free, so all
// consumers are done with the work tile that had its slot.
template <int Columns>
struct SharedStorage {
    enum : u32 {
        // As many as 227 KB hold beside the staging buffers.
        stages = Columns >= 192 ? 4 : Columns == 128 ? 6 : 8,
        a_bytes = block_rows * depth * 2,
        b_bytes = Columns * depth * 2,
        stage_bytes = a_bytes + b_bytes,
        barriers_bytes = 1024,
    };
    u32 full, empty, descriptors, a, b, c;

    __device__ explicit SharedStorage(u32 start) {
        full = (start + 1023) & ~1023u;
        empty = full + 8 * stages;
        descriptors = empty + 8 * stages;
        a = full + barriers_bytes;
        b = a + a_bytes;
        c = a + stages * stage_bytes;
    }

    __device__ u32 next_descriptor(u32 slot) const {
        return slot == descriptors + stages * WorkDescriptor::bytes ? descriptors : slot + WorkDescriptor::bytes;
    }
};

// The epilogue flags of the tile that starts at `column`, for its work descriptor.
template <int Columns>
__device__ inline u32 epilogue_flags(const GemmParameters& parameters, i32 column) {
    const Epilogue& epilogue = parameters.epilogue;
    const u32 scales = parameters.alpha != 1.0f ? WorkDescriptor::scales : 0;
    if (parameters.beta == 0.0f && !epilogue.any()) return scales;
    const bool bias_by_row = epilogue.bias && epilogue.bias_by_row;
    if (is_derivative(epilogue)) return scales | WorkDescriptor::whole_tile;
    if (parameters.beta != 0.0f || epilogue.residual || bias_by_row || parameters.f32_output) {
        return scales | WorkDescriptor::general_epilogue;
    }
    // The gelu path loads two neighbours of the bias at a time, and stores aux by TMA.
    const bool by_two = epilogue.bias && (u64)epilogue.bias % 4 == 0 && column + Columns <= parameters.n;
    if (epilogue.activation == gelu_code && by_two && parameters.store_bytes == 16) return scales | WorkDescriptor::whole_tile;
    return scales | WorkDescriptor::column_epilogue;
}

// The producer's main loop, of one thread of each block: schedules the work tiles and loads their stages.
template <bool SpanA, bool SpanB, int Columns>
__device__ inline void produce(const TensorMap* a, const TensorMap* b, const GemmParameters& parameters,
                               const SharedStorage<Columns>& storage, u32 rank) {
    typedef SharedStorage<Columns> Storage;
    const TileRaster<Columns> tiles(parameters);
    WorkTileScheduler scheduler(parameters, tiles.count);
    PipelineState<Storage::stages> state;
    u32 slot = storage.descriptors;
    WorkTile work, following;
    bool more = scheduler.next(work);
    // Locating a tile takes divisions. The producer locates the next one while this one is multiplied: once this one's last stage
    // is loading, the next one's first stage is already free.
    i32 next_row, next_column, next_matrix;
    u32 next_flags;
    auto locate = [&](i32 tile) {
        tiles.at(tile, next_row, next_column, next_matrix);
        next_row += rank * block_rows;
        next_flags = epilogue_flags<Columns>(parameters, next_column);
    };
    locate(work.tile);
    for (; more; work = following) {
        more = scheduler.next(following);
        const i32 row = next_row, column = next_column, matrix = next_matrix;
        const i32 end = work.end * depth;
        bool is_first = true;
        for (i32 k = work.first * depth; k < end; k += depth) {
            barrier_wait(storage.empty + 8 * state.stage, state.phase ^ 1);
            // Consumers read the descriptor after they have waited for the stage.
            if (is_first) {
                const u32 steps = work.end - work.first, fixes_up = work.partials > 0 ? WorkDescriptor::fixes_up : 0;
                const u32 is_partial = work.partials == WorkTile::leaves_partial ? WorkDescriptor::is_partial : 0;
                const u32 has_next = more ? WorkDescriptor::has_next : 0;
                const u32 flags = next_flags | steps | fixes_up | is_partial | has_next;
                const WorkDescriptor descriptor = {(u32)row, (u32)column, (u32)matrix, flags};
                descriptor.put(slot);
                if (fixes_up | is_partial) {
                    const i32 stride = scheduler.divided();
                    FixUpDescriptor(work.partial, work.partial + work.partials * stride, stride).put(slot);
                }
            }
            const u32 full = storage.full + 8 * state.stage;
            const u32 stage = state.stage * Storage::stage_bytes, to_a = storage.a + stage, to_b = storage.b + stage;
            barrier_expect(full, Storage::a_bytes + Storage::b_bytes);
            const i32 a_matrix = matrix * parameters.a_matrix, b_matrix = matrix * parameters.b_matrix;
            if constexpr (SpanA) {
                copy_box(to_a, a, full, row, k, a_matrix);
                copy_box(to_a + 64 * depth * 2, a, full, row + 64, k, a_matrix);
            } else {
                copy_box(to_a, a, full, k, row, a_matrix);
            }
            if constexpr (SpanB) {
                // This block multicasts half of the depth of every panel.
#pragma unroll
                for (int panel = 0; panel < Columns / 64; panel++) {
                    copy_box_to_blocks(to_b + panel * 64 * depth * 2 + rank * (depth / 2) * 128, b, full,
                                       column + 64 * panel, k + rank * (depth / 2), b_matrix, 3);
                }
            } else {
                const i32 half = rank * (Columns / 2);
                copy_box_to_blocks(to_b + half * 128, b, full, k, column + half, b_matrix, 3);
            }
            state.advance();
            if (is_first && more) locate(following.tile);
            is_first = false;
        }
        slot = storage.next_descriptor(slot);
    }
    // The last stages are loading: the next kernel may start while they are multiplied and stored. Started earlier, its waiting
    // blocks would only keep idle multiprocessors from other streams.
    next_may_start();
    // Producer tail: the other block still arrives at these barriers, so the block waits before it exits.
    for (u32 stage = 0; stage < Storage::stages; stage++) {
        barrier_wait(storage.empty + 8 * state.stage, state.phase ^ 1);
        state.advance();
    }
}

// A consumer warpgroup's main loop: multiplies its 64 rows of each stage and stores them. If it `Defers`, it stores a tile while it
// multiplies the next one.
template <bool SpanA, bool SpanB, int Columns, bool Defers, StoreMode Mode>
__device__ inline void consume(const OutputMatrix& c, const OutputMatrix& aux, const GemmParameters& parameters,
                               const SharedStorage<Columns>& storage, u32 rank, u32 consumer) {
    typedef SharedStorage<Columns> Storage;
    const u32 thread = threadIdx.x % 128;
    PipelineState<Storage::stages> state;
    f32 d[Columns / 2];
    // Issues the products of the next stage, for a new tile or added to its sums.
    auto multiply = [&](bool adds) {
        barrier_wait(storage.full + 8 * state.stage, state.phase);
        // 64 rows of A are 64 * 128 bytes in either layout.
        const u32 stage = state.stage * Storage::stage_bytes;
        const u64 a = wgmma_operand<SpanA>(storage.a + stage + consumer * 64 * 128);
        const u64 b = wgmma_operand<SpanB>(storage.b + stage);
        wgmma_begin();
#pragma unroll
        for (int step = 0; step < depth / 16; step++) {
            wgmma<Columns, SpanA, SpanB>(d, a + step * wgmma_step<SpanA>(), b + step * wgmma_step<SpanB>(),
                                         adds || step > 0);
        }
        wgmma_commit();
    };
    // Thread 0 arrives at this block's `empty` barrier, thread 1 at the other block's.
    auto release = [&](u32 stage) {
        if (thread < cluster_size) {
            barrier_arrive(address_in_block(storage.empty + 8 * stage, (rank + thread) % cluster_size));
        }
    };
    // Releases the previous stage once its products are done.
    auto advance = [&]() {
        wgmma_wait<1>();
        release(state.previous());
        state.advance();
    };
    OutputStaging<Mode> staging{parameters, c, aux, thread, storage.c + consumer * 2 * staging_bytes, 0};
    RoundedTile<Columns, Mode> last_tile;
    WorkDescriptor descriptor;
    u32 slot = storage.descriptors;
    for (bool more = true; more;
         more = descriptor.flags & WorkDescriptor::has_next, slot = storage.next_descriptor(slot)) {
        multiply(false);
        // The descriptor has come with the work tile's first stage.
        descriptor.get(slot);
        u32 remaining = (descriptor.flags & WorkDescriptor::steps) - 1;
        if constexpr (Defers) last_tile.store(0, staging);
        state.advance();
        if constexpr (Defers) {
            // Each step stores another part of the last tile; with fewer steps the rest follows at once. The loop is unrolled because
            // registers have no index.
#pragma unroll
            for (int part = 1; part < Columns / 64; part++) {
                const bool multiplies = remaining > 0;
                if (multiplies) multiply(true);
                last_tile.store(part, staging);
                if (multiplies) {
                    advance();
                    remaining--;
                }
            }
        }
#pragma unroll 1
        for (; remaining > 0; remaining--) {
            multiply(true);
            advance();
        }
        descriptor.get(slot);
        // The bias, or the pre-activation of a derivative, is fetched while the last products are computed.
        u32 half_bias = 0;
        if (Mode == by_tma && (descriptor.flags & WorkDescriptor::whole_tile) && parameters.epilogue.residual) {
            prefetch_pre_activation<Columns>(parameters, descriptor, consumer);
        } else if ((descriptor.flags & (WorkDescriptor::column_epilogue | WorkDescriptor::whole_tile)) && parameters.epilogue.bias) {
            if (Mode == by_tma && (descriptor.flags & WorkDescriptor::whole_tile) && !parameters.epilogue.aux) {
                half_bias = stage_half_bias<Columns>(parameters, staging, descriptor.column);
            } else {
                prefetch_bias<Columns>(parameters, descriptor.column);
            }
        }
        wgmma_wait<0>();
        release(state.previous());

        const OutputTile output = {(i32)descriptor.matrix, (i32)(descriptor.row + consumer * 64), (i32)descriptor.column};
        // The common path has no jump, because the next products wait for it.
        if (__builtin_expect((descriptor.flags & WorkDescriptor::uncommon) != 0, 0)) {
            if (descriptor.flags & WorkDescriptor::is_partial) {
                store_partial<Columns>(d, parameters, FixUpDescriptor(slot).first, rank, consumer);
                if constexpr (Defers) last_tile.clear();
                continue;
            }
            if (descriptor.flags & WorkDescriptor::fixes_up) {
                const FixUpDescriptor fix_up(slot);
#pragma unroll 1
                for (u32 partial = fix_up.first; partial < fix_up.end; partial += fix_up.stride) {
                    add_partial<Columns>(d, parameters, partial, rank, consumer);
                }
            }
            if (parameters.alpha != 1.0f) {
#pragma unroll
                for (int i = 0; i < Columns / 2; i++) d[i] *= parameters.alpha;
            }
            if (Defers && (descriptor.flags & WorkDescriptor::column_epilogue)) {
                apply_column_epilogue<Columns>(d, parameters, output, staging);
            } else if (Defers && (descriptor.flags & WorkDescriptor::general_epilogue)) {
                apply_general_epilogue<ELEMENT, Columns>(d, parameters, output, staging);
            } else if (descriptor.flags & WorkDescriptor::general_epilogue) {
                apply_general_epilogue<f32, Columns>(d, parameters, output, staging);
            }
        }
        if constexpr (!Defers) {
            store_f32<Columns>(d, output, staging);
        } else if (Mode == by_tma && (descriptor.flags & WorkDescriptor::whole_tile)) {
            if (parameters.epilogue.residual) {
                last_tile.take_times_derivative(d, output, parameters);
            } else if (parameters.epilogue.aux) {
                last_tile.take_gelu_and_store_aux(d, output, staging);
            } else {
                last_tile.take_gelu(d, output, half_bias);
            }
        } else {
            last_tile.take(d, output);
        }
    }
    if constexpr (Defers) {
#pragma unroll
        for (int part = 0; part < Columns / 64; part++) last_tile.store(part, staging);
    }
    // TMA reads the staging buffers until here; their memory ends with the block.
    if (thread == 0) stores_read<0>();
}

template <bool SpanA, bool SpanB, int Columns>
__device__ inline void gemm(const TensorMap* a, const TensorMap* b, const OutputMatrix& c, const OutputMatrix& aux,
                            const GemmParameters& parameters) {
    const SharedStorage<Columns> storage(shared_address(shared_memory));
    // The shuffle tells the compiler that the value is uniform in a warp.
    const u32 warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    const u32 rank = cluster_rank();
    if (threadIdx.x == 0) {
        for (u32 stage = 0; stage < SharedStorage<Columns>::stages; stage++) {
            barrier_initialise(storage.full + 8 * stage, 1);
            barrier_initialise(storage.empty + 8 * stage, consumers * cluster_size);
        }
        barriers_initialised();
        prefetch_map(a);
        prefetch_map(b);
    }
    cluster_barrier();
    wait_for_earlier();
    // A block has 168 registers a thread. setmaxnreg.inc for more registers than remain would hang.
    constexpr int producer_registers = 56, consumer_registers = 224;
    static_assert(producer_registers + consumers * consumer_registers <= (1 + consumers) * 168, "registers are there");
    if (warpgroup == 0) {
        registers_down_to<producer_registers>();
        if (threadIdx.x == 0) produce<SpanA, SpanB, Columns>(a, b, parameters, storage, rank);
    } else {
        registers_up_to<consumer_registers>();
        // A rounded tile takes half the registers of its sums, so it can be stored later.
        if (parameters.f32_output) {
            consume<SpanA, SpanB, Columns, false, by_tma_or_threads>(c, aux, parameters, storage, rank, warpgroup - 1);
        } else if (parameters.store_bytes == 16) {
            consume<SpanA, SpanB, Columns, true, by_tma>(c, aux, parameters, storage, rank, warpgroup - 1);
        } else {
            consume<SpanA, SpanB, Columns, true, by_threads>(c, aux, parameters, storage, rank, warpgroup - 1);
        }
    }
}

}  // namespace

// Span-contiguous operands (wgmma.cuh): A stored transposed, B stored as it is multiplied.
#define SPANS_nn false, true
#define SPANS_nt false, false
#define SPANS_tn true, true
#define SPANS_tt true, false
#define ENTRY(element, layout, columns)                                                                               \
    extern "C" __global__ void __cluster_dims__(cluster_size, 1, 1) __launch_bounds__(threads, 1)                             \
        gemm_wgmma_##element##_##layout##_##columns(const __grid_constant__ TensorMap a,                              \
                                                    const __grid_constant__ TensorMap b,                              \
                                                    const __grid_constant__ TensorMap c_map,                          \
                                                    const __grid_constant__ TensorMap aux_map, void* c,              \
                                                    const __grid_constant__ GemmParameters parameters) {     \
        const OutputMatrix to{&c_map, c}, aux{&aux_map, parameters.epilogue.aux};                                         \
        gemm<SPANS_##layout, columns>(&a, &b, to, aux, parameters);                                                       \
    }
#define KERNELS(element, layout) \
    ENTRY(element, layout, 64)   \
    ENTRY(element, layout, 128)  \
    ENTRY(element, layout, 192)  \
    ENTRY(element, layout, 256)

// A family has one layout, so the first product of a process loads no others; the emulator compiles all layouts.
#ifdef LAYOUT
KERNELS(ELEMENT, LAYOUT)
#else
KERNELS(ELEMENT, nn)
KERNELS(ELEMENT, nt)
KERNELS(ELEMENT, tn)
KERNELS(ELEMENT, tt)
#endif
