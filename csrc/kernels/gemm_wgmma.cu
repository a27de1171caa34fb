// C = epilogue(alpha A B + beta C) on the tensor cores of compute capability 9.0. A is m x k, B is k x n, and C is m x n, row-major. The
// epilogue adds a bias, applies an activation and adds a residual (epilogue.cuh), or multiplies by the derivative of an activation.
// It can also store `aux`, the input of the activation (pre-activation). A and B are ELEMENT (-DELEMENT=bf16 or f16), accumulators
// f32, and C is ELEMENT or f32. Each ELEMENT and layout (-DLAYOUT=nn, nt, tn or tt) is an image of its own.
//
// Entries: gemm_wgmma_<ELEMENT>_<A><B>_<columns>(tensor maps of A, B, C and aux, C, parameters). <A> and <B> are n (row-major) or t
// (column-major), so A is K-major if n, and B if t. <columns> is the width of a tile: 64, 128, 192 or 256.
//
// Launch: clusters of 2 blocks of 384 threads, no more clusters than work tiles or pairs of multiprocessors, and `shared_bytes` of dynamic
// shared memory (src/gemm/wgmma/persistent.rs). k >= 1. Tensor maps have a 128-byte swizzle and three dimensions, contiguous one
// first, batch last, with these boxes:
//   A: n 64 of k, 128 rows; t 64 rows, 64 of k.  B: n 64 columns, 32 of k; t 64 of k, columns / 2.  C, aux: 128 bytes, 64 rows.
// With a derivative the map of aux is that of the pre-activation, which is read.
// All sizes work: TMA fills out-of-bounds elements with zeros. It clips stores too, but not inside a chunk of 16 bytes (seen on an H200).
// So if rows of C or aux are not multiples of 16 bytes, threads store them (`store_bytes` < 16), and these two maps are not used.
//
// Algorithm: persistent and warp-specialised, as CUTLASS's KernelTmaWarpSpecializedCooperative. A cluster computes tiles of 256 rows, 128 a
// block. One thread of warpgroup 0 is the producer. It schedules work tiles (a tile, or a slice of its k steps), describes them to
// the consumers in shared memory, and loads stages of 64 k by TMA: all of its block's A, and half of B, by multicast to both
// blocks. Warpgroups 1 and 2 are consumers of 64 rows each. They round a tile to 16 bits in registers and store it while they multiply
// the next one; an f32 tile is stored at once. Stream-K divides the last wave (hopper_pipeline.cuh). With programmatic dependent
// launch a kernel sets up its barriers while the kernel before it ends. All threads wait for that end before they access global memory.
//
// Shared memory (SharedStorage): `full` and `empty` mbarriers of the stages, work descriptors, `loaded` mbarriers of pre-activations,
// stages, two staging buffers a consumer.
//
// Invariants:
// - An accumulator adds its k in ascending order, 16 at a time, for all tile widths. Stream-K adds the slices of a tile in ascending order
//   too. The slices depend on the sizes and the number of clusters alone, so a launch gives the same bits on every run.
// - The producer triggers the dependent launch after its last load. All blocks have started by then, so blocks of the next kernel
//   never take the place of a block that another one waits for.
// Measurements of all versions and of the experiments that lost: docs/performance-notes.md.
#include "hopper.cuh"
#include "wgmma.cuh"
#include "wgmma_partials.cuh"
#include "wgmma_epilogue.cuh"
#include "wgmma_problem.cuh"

// Outside of the anonymous namespace, because the compiler would put a random identifier into its name, a new one in each compilation.
extern __shared__ unsigned char shared_memory[];

namespace {

// The layout of a block's shared memory, as byte addresses: barriers, work descriptors, the stages of both operands, and the staging
// buffers of C.
//
// There is one descriptor slot more than there are stages. The producer writes a work tile's descriptor when the tile's first stage
// is free. Each work tile has at least one stage, so the consumers have then released the work tile `stages` before this one, and no
// longer read the descriptor of the one before that, which had the same slot.
template <int Columns>
struct SharedStorage {
    enum : u32 {
        // As many as fit 227 KiB beside the staging buffers.
        stages = Columns >= 192 ? 4 : Columns == 128 ? 6 : 8,
        a_bytes = block_rows * depth * 2,
        b_bytes = Columns * depth * 2,
        stage_bytes = a_bytes + b_bytes,
        barriers_bytes = 1024,
    };
    // A stage is A's `a_bytes`, then B's `b_bytes`: `a` and `b` are those of stage 0, and stages are `stage_bytes` apart.
    u32 full, empty, descriptors, loaded, a, b, c;

    __device__ explicit SharedStorage(u32 start) {
        full = (start + 1023) & ~1023u;
        empty = full + 8 * stages;
        descriptors = empty + 8 * stages;
        loaded = descriptors + (stages + 1) * WorkDescriptor::bytes;
        a = full + barriers_bytes;
        b = a + a_bytes;
        c = a + stages * stage_bytes;
    }

    // Returns the first of a consumer's barriers for the parts of a pre-activation.
    __device__ u32 loaded_of(u32 consumer) const { return loaded + consumer * (Columns / 64) * 8; }

    // Returns the slot of the next work tile; the slots are a ring.
    __device__ u32 next_descriptor(u32 slot) const {
        return slot == descriptors + stages * WorkDescriptor::bytes ? descriptors : slot + WorkDescriptor::bytes;
    }
};

// Returns the flags of the work descriptor that select the epilogue's path for the tile that starts at `column`.
template <int Columns>
__device__ inline u32 epilogue_flags(const GemmParameters& parameters, i32 column) {
    const Epilogue& epilogue = parameters.epilogue;
    const u32 scales = parameters.alpha != 1.0f ? WorkDescriptor::scales : 0;
    if (parameters.beta == 0.0f && !epilogue.any()) return scales;
    const bool bias_by_row = epilogue.bias && epilogue.bias_by_row;
    if (is_derivative(epilogue)) return scales | WorkDescriptor::fast_epilogue;
    if (parameters.beta != 0.0f || epilogue.residual || bias_by_row || parameters.f32_output) {
        return scales | WorkDescriptor::general_epilogue;
    }
    // The fast gelu loads two adjacent elements of the bias at a time, and stores aux by TMA.
    const bool by_two = epilogue.bias && (u64)epilogue.bias % 4 == 0 && column + Columns <= parameters.n;
    if (epilogue.activation == gelu_code && by_two && parameters.store_bytes == 16) return scales | WorkDescriptor::fast_epilogue;
    return scales | WorkDescriptor::column_epilogue;
}

// The producer's main loop, run by one thread of each block: schedules the work tiles, writes their descriptors and loads their stages.
// MnMajorA and MnMajorB: m runs along the stored rows of A, n along those of B (wgmma.cuh).
template <bool MnMajorA, bool MnMajorB, int Columns>
__device__ inline void produce(const TensorMap* a, const TensorMap* b, const GemmParameters& parameters,
                               const SharedStorage<Columns>& storage, u32 rank) {
    typedef SharedStorage<Columns> Storage;
    const TileRaster<Columns> tiles(parameters);
    WorkTileScheduler scheduler(parameters, tiles.count);
    PipelineState<Storage::stages> state;
    u32 slot = storage.descriptors;
    WorkTile work, following;
    bool more = scheduler.next(work);
    // Locating a tile takes divisions. The producer locates the next tile as soon as it has issued the first stage of this one. After
    // the last stage it would be too late: the next tile's first stage may be free by then.
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
            // The producer's arrival at `full` below publishes the descriptor: consumers read it after they have waited there.
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
            if constexpr (MnMajorA) {
                copy_box(to_a, a, full, row, k, a_matrix);
                copy_box(to_a + 64 * depth * 2, a, full, row + 64, k, a_matrix);
            } else {
                copy_box(to_a, a, full, k, row, a_matrix);
            }
            if constexpr (MnMajorB) {
                // B is panels of 64 columns by 64 k. This block loads half of the k of each panel for both blocks (mask 3).
#pragma unroll
                for (int panel = 0; panel < Columns / 64; panel++) {
                    copy_box_to_blocks(to_b + panel * 64 * depth * 2 + rank * (depth / 2) * 128, b, full,
                                       column + 64 * panel, k + rank * (depth / 2), b_matrix, 3);
                }
            } else {
                // This block loads half of the columns for both blocks (mask 3).
                const i32 half = rank * (Columns / 2);
                copy_box_to_blocks(to_b + half * 128, b, full, k, column + half, b_matrix, 3);
            }
            state.advance();
            if (is_first && more) locate(following.tile);
            is_first = false;
        }
        slot = storage.next_descriptor(slot);
    }
    // The last loads are issued, so the next kernel may start while consumers multiply and store. If it started earlier, its blocks
    // would wait longer, and occupy multiprocessors that other streams could use.
    next_may_start();
    // Producer tail: the consumers of the other block still arrive at this block's barriers, so the block waits before it exits.
    for (u32 stage = 0; stage < Storage::stages; stage++) {
        barrier_wait(storage.empty + 8 * state.stage, state.phase ^ 1);
        state.advance();
    }
}

// A consumer warpgroup's main loop: multiplies its 64 rows of A with B of each stage, and stores the results. With `DeferStore` it
// holds a tile in registers, rounded to 16 bits, and stores it while it multiplies the next one. `rank` is the block's rank in the cluster.
template <bool MnMajorA, bool MnMajorB, int Columns, bool DeferStore, StoreMode Mode>
__device__ inline void consume(const OutputMatrix& c, const OutputMatrix& aux, const GemmParameters& parameters,
                               const SharedStorage<Columns>& storage, u32 rank, u32 consumer) {
    typedef SharedStorage<Columns> Storage;
    const u32 thread = threadIdx.x % 128;
    PipelineState<Storage::stages> state;
    f32 d[Columns / 2];  // Accumulators, in the layout of wgmma.cuh.
    // Waits for the next stage and issues its products. They are added to d if it `adds`; else d starts from 0.
    auto multiply = [&](bool adds) {
        barrier_wait(storage.full + 8 * state.stage, state.phase);
        // 64 rows of A by 64 k of 2 bytes are 64 * 128 bytes in either layout.
        const u32 stage = state.stage * Storage::stage_bytes;
        const u64 a = wgmma_operand<MnMajorA>(storage.a + stage + consumer * 64 * 128);
        const u64 b = wgmma_operand<MnMajorB>(storage.b + stage);
        wgmma_begin();
#pragma unroll
        for (int step = 0; step < depth / 16; step++) {
            wgmma<Columns, MnMajorA, MnMajorB>(d, a + step * wgmma_step<MnMajorA>(), b + step * wgmma_step<MnMajorB>(),
                                               adds || step > 0);
        }
        wgmma_commit();
    };
    // Thread 0 arrives at this block's `empty` barrier and thread 1 at the other block's, because both producers write B of the stage.
    auto release = [&](u32 stage) {
        if (thread < cluster_size) {
            barrier_arrive(address_in_block(storage.empty + 8 * stage, (rank + thread) % cluster_size));
        }
    };
    // Waits for the products of the previous stage, releases it, and goes on to the next stage.
    auto advance = [&]() {
        wgmma_wait<1>();
        release(state.previous());
        state.advance();
    };
    OutputStaging<Mode> staging{parameters, c, aux, thread, storage.c + consumer * 2 * staging_bytes, 0, storage.loaded_of(consumer)};
    RoundedTile<Columns, Mode> last_tile;
    WorkDescriptor descriptor;
    u32 slot = storage.descriptors;
    u32 aux_phase = 0;
    for (bool more = true; more;
         more = descriptor.flags & WorkDescriptor::has_next, slot = storage.next_descriptor(slot)) {
        multiply(false);
        // `multiply` has waited for the work tile's first stage, and the descriptor is published with it.
        descriptor.get(slot);
        u32 remaining = (descriptor.flags & WorkDescriptor::steps) - 1;
        if constexpr (DeferStore) last_tile.store(0, staging);
        state.advance();
        if constexpr (DeferStore) {
            // Each k step stores 64 more columns of the last tile. If this tile has too few steps, the rest is stored without products.
            // The loop is unrolled, because registers cannot be indexed by a variable.
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
        const bool multiplies_derivative = DeferStore && Mode == by_tma && is_derivative(parameters.epilogue);
        if (multiplies_derivative) {
            // The pre-activation of a tile that is stored here arrives during the products of its last steps.
#pragma unroll 1
            for (; remaining > steps_to_load_aux; remaining--) {
                multiply(true);
                advance();
            }
            descriptor.get(slot);
            const OutputTile output = {(i32)descriptor.matrix, (i32)(descriptor.row + consumer * 64), (i32)descriptor.column};
            if (!(descriptor.flags & WorkDescriptor::is_partial)) staging.template load_first_aux<Columns / 64>(output);
        }
#pragma unroll 1
        for (; remaining > 0; remaining--) {
            multiply(true);
            advance();
        }
        // Read again, so that the descriptor occupies no registers during the loop.
        descriptor.get(slot);
        // Fetch the bias while the tensor cores compute the last products.
        u32 half_bias = 0;
        if ((descriptor.flags & (WorkDescriptor::column_epilogue | WorkDescriptor::fast_epilogue)) && parameters.epilogue.bias) {
            if (Mode == by_tma && (descriptor.flags & WorkDescriptor::fast_epilogue) && !parameters.epilogue.aux) {
                half_bias = stage_half_bias<Columns>(parameters, staging, descriptor.column);
            } else {
                prefetch_bias<Columns>(parameters, descriptor.column);
            }
        }
        wgmma_wait<0>();
        release(state.previous());

        const OutputTile output = {(i32)descriptor.matrix, (i32)(descriptor.row + consumer * 64), (i32)descriptor.column};
        // The common path (no flag of `uncommon`) is straight-line code: until it ends, this warpgroup issues no products.
        if (__builtin_expect((descriptor.flags & WorkDescriptor::uncommon) != 0, 0)) {
            if (descriptor.flags & WorkDescriptor::is_partial) {
                // The tile's first slice belongs to another cluster, which adds this partial and stores the tile.
                store_partial<Columns>(d, parameters, FixUpDescriptor(slot).first, rank, consumer);
                if constexpr (DeferStore) last_tile.clear();
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
            if (DeferStore && (descriptor.flags & WorkDescriptor::column_epilogue)) {
                apply_column_epilogue<Columns>(d, parameters, output, staging);
            } else if (DeferStore && (descriptor.flags & WorkDescriptor::general_epilogue)) {
                apply_general_epilogue<ELEMENT, Columns>(d, parameters, output, staging);
            } else if (descriptor.flags & WorkDescriptor::general_epilogue) {
                apply_general_epilogue<f32, Columns>(d, parameters, output, staging);
            }
        }
        if constexpr (!DeferStore) {
            store_f32<Columns>(d, output, staging);
        } else if (Mode == by_tma && (descriptor.flags & WorkDescriptor::fast_epilogue)) {
            if (multiplies_derivative) {
                last_tile.round_and_hold_derivative(d, output, staging, aux_phase);
                aux_phase ^= 1;
            } else if (parameters.epilogue.aux) {
                last_tile.round_and_hold_gelu_storing_aux(d, output, staging);
            } else {
                last_tile.round_and_hold_gelu(d, output, half_bias);
            }
        } else {
            last_tile.round_and_hold(d, output);
        }
    }
    if constexpr (DeferStore) {
#pragma unroll
        for (int part = 0; part < Columns / 64; part++) last_tile.store(part, staging);
    }
    // Wait until TMA has read the staging buffers, because the block's shared memory ends with the block.
    if (thread == 0) stores_read<0>();
}

// The whole kernel: sets up the barriers, waits for the kernel before, and splits the block into a producer and two consumers.
template <bool MnMajorA, bool MnMajorB, int Columns>
__device__ inline void gemm(const TensorMap* a, const TensorMap* b, const OutputMatrix& c, const OutputMatrix& aux,
                            const GemmParameters& parameters) {
    const SharedStorage<Columns> storage(shared_address(shared_memory));
    // The shuffle tells the compiler that all threads of a warp have the same value.
    const u32 warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    const u32 rank = cluster_rank();
    if (threadIdx.x == 0) {
        for (u32 stage = 0; stage < SharedStorage<Columns>::stages; stage++) {
            // `full`: the producer's arrival, and the bytes of its loads. `empty`: one arrival of each consumer of both blocks.
            barrier_initialise(storage.full + 8 * stage, 1);
            barrier_initialise(storage.empty + 8 * stage, consumers * cluster_size);
        }
        // `loaded`: the arrival of the thread that loads a part, and the bytes of the part.
        for (u32 part = 0; part < consumers * (Columns / 64); part++) barrier_initialise(storage.loaded + 8 * part, 1);
        barriers_initialised();
        prefetch_map(a);
        prefetch_map(b);
    }
    cluster_barrier();
    wait_for_earlier();
    // A block has 168 registers a thread (65536 / 384, rounded down to a multiple of 8). Consumers take over registers of the producer.
    // setmaxnreg.inc would hang if it asked for more than the producer releases.
    constexpr int producer_registers = 56, consumer_registers = 224;
    static_assert(producer_registers + consumers * consumer_registers <= (1 + consumers) * 168, "registers are there");
    if (warpgroup == 0) {
        registers_down_to<producer_registers>();
        if (threadIdx.x == 0) produce<MnMajorA, MnMajorB, Columns>(a, b, parameters, storage, rank);
    } else {
        registers_up_to<consumer_registers>();
        // A tile of 16 bits takes half the registers of its accumulators, so it can wait there. One of f32 is stored at once.
        if (parameters.f32_output) {
            consume<MnMajorA, MnMajorB, Columns, false, by_tma_or_threads>(c, aux, parameters, storage, rank, warpgroup - 1);
        } else if (parameters.store_bytes == 16) {
            consume<MnMajorA, MnMajorB, Columns, true, by_tma>(c, aux, parameters, storage, rank, warpgroup - 1);
        } else {
            consume<MnMajorA, MnMajorB, Columns, true, by_threads>(c, aux, parameters, storage, rank, warpgroup - 1);
        }
    }
}

}  // namespace

// MnMajorA and MnMajorB of each layout. A column-major A (t) and a row-major B (n) are MN-major (wgmma.cuh).
#define MN_MAJOR_nn false, true
#define MN_MAJOR_nt false, false
#define MN_MAJOR_tn true, true
#define MN_MAJOR_tt true, false
#define ENTRY(element, layout, columns)                                                                  \
    extern "C" __global__ void __cluster_dims__(cluster_size, 1, 1) __launch_bounds__(threads, 1)        \
        gemm_wgmma_##element##_##layout##_##columns(const __grid_constant__ TensorMap a,                 \
                                                    const __grid_constant__ TensorMap b,                 \
                                                    const __grid_constant__ TensorMap c_map,             \
                                                    const __grid_constant__ TensorMap aux_map, void* c,  \
                                                    const __grid_constant__ GemmParameters parameters) { \
        const OutputMatrix to{&c_map, c}, aux{&aux_map, parameters.epilogue.aux};                        \
        gemm<MN_MAJOR_##layout, columns>(&a, &b, to, aux, parameters);                                   \
    }
#define KERNELS(element, layout) \
    ENTRY(element, layout, 64)   \
    ENTRY(element, layout, 128)  \
    ENTRY(element, layout, 192)  \
    ENTRY(element, layout, 256)

// Each image has one layout, so that the first product of a process loads no others. The CPU emulation (csrc/emulation) compiles all.
#ifdef LAYOUT
KERNELS(ELEMENT, LAYOUT)
#else
KERNELS(ELEMENT, nn)
KERNELS(ELEMENT, nt)
KERNELS(ELEMENT, tn)
KERNELS(ELEMENT, tt)
#endif
