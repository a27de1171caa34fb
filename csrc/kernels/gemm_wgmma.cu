// C = alpha A B + beta C on the tensor cores of compute capability 9.0: ELEMENT (-DELEMENT=bf16 or f16) times ELEMENT, added in
// f32; C is ELEMENT or f32. One family for each ELEMENT and layout (-DLAYOUT=nn, nt, tn or tt).
//
// Entries: gemm_wgmma_<ELEMENT>_<A><B>_<columns>(map of A, map of B, map of C, map of what the epilogue keeps, C, shape). A and
// B are n (stored as they are multiplied, row by row) or t (stored transposed); columns is a tile's width, 64, 128, 192 or 256.
// `Shape` is the Rust side's `gemm::wgmma::Shape`. Launch: 384 threads a block, blocks in pairs, as many pairs as the device
// holds or there are tiles, whichever is less, and `shared_bytes` of dynamic shared memory.
//
// The maps are of three dimensions, the contiguous one first and the matrix's number in the batch last, with a swizzle of 128
// bytes. Their boxes:
//   A: n 64 k x 128 rows; t 64 rows x 64 k.  B: t 64 k x columns / 2; n 64 columns x 32 k.  C: 128 bytes x 64 rows.
// Copies fill what is outside a matrix with zeros, which adds nothing, and stores leave it out, so no size is special. k is at
// least 1. A store by a map writes whole pieces of 16 bytes, though, also where a row ends within one (seen on an H200). Where
// C's rows, or those of what is kept, do not begin and end at multiples of 16 bytes, any map stands in the place of theirs, and
// threads store as many bytes together as they are multiples of.
//
// How: a pair of blocks (a cluster) makes a tile of 256 rows, 128 a block. In each block one thread of the first warpgroup
// copies; the other two warpgroups multiply 64 rows each. B's part is the same for both blocks, so each copies half of it to
// both. What a pair does next is found by the thread that copies, ahead of the others. Stages go round: `full` says that a
// stage's bytes have come, `empty` that all four warpgroups that use them are done. Blocks stay and take the next tile; copies
// run ahead into it while the last one is stored. Tiles are taken down a group of rows of tiles, then one column on, so that
// what is read at one time fits the L2 cache.
//
// Where the last round of tiles would leave pairs idle, they may share its steps (`Round`). The sums of a run of steps are left in
// `parts`, and a flag is raised; the pair that has a tile's first run takes it last of all, adds the parts of the others, and
// stores. Pairs wait only for pairs with lower numbers, which start no later and wait for nobody.
//
// A product may be launched to start before the kernel ahead of it on the stream has ended: barriers are made and tensor maps
// fetched meanwhile, and all threads wait for that end before anything in global memory is touched, the flags included. The
// next kernel may start when all blocks have copied their last stage in, so when all have started: pairs that wait for each
// other's parts never wait for one whose place a block of the next kernel has.
//
// From one tile to the next the tensor cores wait for as long as a warpgroup takes. So what most tiles do lies together, without
// jumps over what few do, and is compiled for each way of storing.
//
// What must stay true: every number of C is made of the same operations in the same order, whatever the tile's width (k
// ascending, 16 at a time, one accumulator; where tiles are divided, sums of runs of k, from the first one on, by a division
// that depends on the sizes and the number of pairs alone), so all launches of a product on a card give the same bits.
//
// | version | what | bf16, 4096^3 and 8192^3 on an H200, of cuBLAS in the same run |
// |---|---|---|
// | 1 | both operands k-contiguous, columns 256, two-dimensional maps | 1.01 and 1.03 (784 and 795 TFLOP/s cool) |
// | 1, `.release.cluster` where a stage is given back | a fence of the device each time | 545 and 570 TFLOP/s cool |
// | 1, no pairs | each block copies all of B | 751 to 771 and 667 to 755 TFLOP/s cool |
// | 1, one group of 16 rows of tiles | what is read at one time does not fit L2 | 8192^3: 12 % less |
// | 2 | all layouts, three widths, batches, alpha, beta, any C | 0.98 and 1.01; 65536 x 768 x 768: 0.92; batch of 64: 0.86 |
// | 3 | a tile is rounded at once and stored while the next one is multiplied | see benches/RESULTS.md |
// | 4 | the last round of tiles is divided among all pairs | see benches/RESULTS.md |
// | 5 | launched while the kernel ahead ends; the next one may start where the last copies begin | squares of 256, 512, 1024 and 2048: 1.19, 1.17, 1.14 and 1.03 times as fast |
// | 6 | with an epilogue one warpgroup all stages but one behind the other; about 45 instructions a number | bias and gelu, of cuBLASLt: 65536 x 3072 x 768: 0.64, k = 3072: 0.85 |
// | (6, numbers kept as they are, finished while the next tile is multiplied, 64 or 16 columns behind a step) | two warps of a scheduler take 6 clocks an instruction: finishing takes longer than multiplying | 0.68 and 0.85; 0.62 and 0.84 |
// | 7 | tiles of 192 columns too; a shorter epilogue, with two approximations a number that take 8 clocks each | 0.89, 0.93 |
// | 8 | with one of them | 0.97, 0.95 |
// | 9 | the thread that copies finds the tiles, and notes them for the others; no distance between the warpgroups | 65536 x 3072 x 768: 1.14, with bias and gelu 1.09, and 0.98 at k = 3072; 4096^3: 1.01, a batch of 64: 1.05 |
// | (9, the second warpgroup one to three stages behind) | copies come too late | 1.12, 1.04 to 1.07, 0.96 to 0.97 |
// | (9, the last two steps for the left half of a tile, then for the right, while the left half's numbers are finished) | products of half the width | bias and gelu: 1.04, 0.96 at k = 3072 |
// | (9, room to store a whole tile at once in the place of a stage) | | a batch of 64: 1.03; k = 192: 0.92 for 1.00 |
// | 10 | tiles are divided in rounds whose pairs read the same k at the same time, not one behind the other | gradients of weights, 65536 rows, 768 x 768: 0.87 before, 0.92; 768 x 3072: 0.96, 0.99; 3072 x 768: 0.93, 0.98 |
// | 10, `past` | large results of few multiplications leave the L2 cache first | a batch of 64: 1.03 without, 1.05 |
// | 11 | what most tiles do lies together; parts of a tile are stored by code of their own, without moves; the copying thread finds the next tile meanwhile | 65536 rows: 768 x 768 1.01 before, 1.05; 3072 x 768 1.07, 1.11; 768 x 3072 0.99, 1.00; 4096^3: 0.985, 1.00; a batch of 64: 1.04, 1.065 |
// | 11, gelus | between the approximations lies all else, and half of the bias comes from shared memory | bias and gelu: 1.06 before, 1.17; k = 3072: 0.975, 1.015; 8192 x 4096 x 4096: 0.978, 1.003; its argument kept: 1.04, 0.995, 1.045; 1.105, 1.035, 1.065 |
// | (11, one warpgroup's gelus behind the other's) | | 1.02, 0.975, 0.97; kept 0.935, 0.957, 1.02 |
// | (11, each warp stores its 16 rows by itself) | no barriers of a warpgroup, four times as many stores | 3072 x 768: 1.10; a batch of 64 as before |
// | (11, operands that leave the L2 cache last) | | a batch of 64: 1 % faster, and cuBLAS behind it 10 % |
#include "hopper.cuh"
#include "wgmma.cuh"
#include "wgmma_parts.cuh"
#include "wgmma_results.cuh"
#include "wgmma_tiles.cuh"

// Outside of the namespace, which has no name of its own: the compiler would make one up, another one each time.
extern __shared__ unsigned char shared_memory[];

namespace {

// Where a block's shared memory begins to be used, and what lies where: barriers, notes, stages of both operands, and what C is
// staged in. There is one note more than there are stages: one is written where the first stage of its piece is free, so all are
// done with the piece that had its place.
template <int Columns>
struct Places {
    enum : u32 {
        // What 227 KB hold beside the staging of C.
        stages = Columns >= 192 ? 4 : Columns == 128 ? 6 : 8,
        a_bytes = block_rows * depth * 2,
        b_bytes = Columns * depth * 2,
        stage_bytes = a_bytes + b_bytes,
        barriers_bytes = 1024,
    };
    u32 full, empty, notes, a, b, c;

    __device__ explicit Places(u32 start) {
        full = (start + 1023) & ~1023u;
        empty = full + 8 * stages;
        notes = empty + 8 * stages;
        a = full + barriers_bytes;
        b = a + a_bytes;
        c = a + stages * stage_bytes;
    }

    __device__ u32 next_note(u32 note) const { return note == notes + stages * Note::bytes ? notes : note + Note::bytes; }
};

// What is done with the numbers of a tile that begins in this column before they are rounded, as bits of its note.
template <int Columns>
__device__ inline u32 about_numbers(const Shape& shape, i32 column) {
    const Epilogue& epilogue = shape.epilogue;
    const u32 scales = shape.alpha != 1.0f ? Note::scales : 0;
    if (shape.beta == 0.0f && !epilogue.any()) return scales;
    const bool bias_by_row = epilogue.bias && epilogue.by_row;
    if (shape.beta != 0.0f || epilogue.residual || bias_by_row || shape.wide) return scales | Note::finishes;
    // Two neighbours of the bias are loaded together, and what is kept is stored by its map.
    const bool by_two = epilogue.bias && (u64)epilogue.bias % 4 == 0 && column + Columns <= shape.n;
    if (epilogue.activation == 2 && by_two && shape.together == 16) return scales | Note::gelu;
    return scales | Note::at_once;
}

// One thread of each block: brings the stages in.
template <bool SpanA, bool SpanB, int Columns>
__device__ inline void copy_stages(const TensorMap* a, const TensorMap* b, const Shape& shape,
                                   const Places<Columns>& places, u32 rank) {
    typedef Places<Columns> Stage;
    const Tiles<Columns> tiles(shape);
    Pieces pieces(shape, tiles.count);
    Turn<Stage::stages> turn;
    u32 place = places.notes;
    Piece piece, following;
    bool more = pieces.next(piece);
    // Where the next piece lies takes divisions to find. That is done while this one is multiplied: when its last stage is on its
    // way, the next one's first stage is free already.
    i32 next_row, next_column, next_matrix;
    u32 next_about;
    auto find = [&](i32 tile) {
        tiles.at(tile, next_row, next_column, next_matrix);
        next_row += rank * block_rows;
        next_about = about_numbers<Columns>(shape, next_column);
    };
    find(piece.tile);
    for (; more; piece = following) {
        more = pieces.next(following);
        const i32 row = next_row, column = next_column, matrix = next_matrix;
        const i32 end = piece.end * depth;
        bool is_first = true;
        for (i32 k = piece.first * depth; k < end; k += depth) {
            barrier_wait(places.empty + 8 * turn.stage, turn.parity ^ 1);
            // Those that wait for the stage can read it then.
            if (is_first) {
                const u32 steps = piece.end - piece.first, adds = piece.parts > 0 ? Note::adds : 0;
                const u32 left = piece.parts == Piece::left ? Note::is_left : 0, follows = more ? Note::more : 0;
                const u32 about = next_about | steps | adds | left | follows;
                const Note note = {(u32)row, (u32)column, (u32)matrix, about};
                note.put(place);
                if (adds | left) {
                    const i32 apart = pieces.divided();
                    PartsNote(piece.part, piece.part + piece.parts * apart, apart).put(place);
                }
            }
            const u32 full = places.full + 8 * turn.stage;
            const u32 stage = turn.stage * Stage::stage_bytes, to_a = places.a + stage, to_b = places.b + stage;
            barrier_expect(full, Stage::a_bytes + Stage::b_bytes);
            const i32 a_matrix = matrix * shape.a_matrix, b_matrix = matrix * shape.b_matrix;
            if constexpr (SpanA) {
                copy_box(to_a, a, full, row, k, a_matrix);
                copy_box(to_a + 64 * depth * 2, a, full, row + 64, k, a_matrix);
            } else {
                copy_box(to_a, a, full, k, row, a_matrix);
            }
            if constexpr (SpanB) {
                // Half of the depth of every panel, to both blocks.
#pragma unroll
                for (int panel = 0; panel < Columns / 64; panel++) {
                    copy_box_to_blocks(to_b + panel * 64 * depth * 2 + rank * (depth / 2) * 128, b, full,
                                       column + 64 * panel, k + rank * (depth / 2), b_matrix, 3);
                }
            } else {
                const i32 half = rank * (Columns / 2);
                copy_box_to_blocks(to_b + half * 128, b, full, k, column + half, b_matrix, 3);
            }
            turn.next();
            if (is_first && more) find(following.tile);
            is_first = false;
        }
        place = places.next_note(place);
    }
    // The last stages are on their way: the next kernel can be started while they are multiplied and stored. Its blocks have
    // room as these leave, or on idle multiprocessors, which they would only keep from others' kernels before.
    next_may_start();
    // The other block may still arrive at this one's barriers: go only when all have.
    for (u32 stage = 0; stage < Stage::stages; stage++) {
        barrier_wait(places.empty + 8 * turn.stage, turn.parity ^ 1);
        turn.next();
    }
}

// A warpgroup: multiplies its 64 rows of each stage, and stores them; where it `Defers`, while it multiplies the next.
template <bool SpanA, bool SpanB, int Columns, bool Defers, int How>
__device__ inline void multiply_stages(const Matrices& c, const Matrices& kept, const Shape& shape,
                                       const Places<Columns>& places, u32 rank, u32 consumer) {
    typedef Places<Columns> Stage;
    const u32 thread = threadIdx.x % 128;
    Turn<Stage::stages> turn;
    f32 d[Columns / 2];
    // Has the tensor cores multiply the next stage, for a new tile or added to what there is.
    auto multiply = [&](bool adds) {
        barrier_wait(places.full + 8 * turn.stage, turn.parity);
        // 64 rows of A are 64 * 128 bytes in either layout.
        const u32 stage = turn.stage * Stage::stage_bytes;
        const u64 a = wgmma_operand<SpanA>(places.a + stage + consumer * 64 * 128);
        const u64 b = wgmma_operand<SpanB>(places.b + stage);
        wgmma_begin();
#pragma unroll
        for (int step = 0; step < depth / 16; step++) {
            wgmma<Columns, SpanA, SpanB>(d, a + step * wgmma_step<SpanA>(), b + step * wgmma_step<SpanB>(),
                                         adds || step > 0);
        }
        wgmma_commit();
    };
    // Thread 0 tells this block that a stage is free, thread 1 the other one.
    auto release = [&](u32 stage) {
        if (thread < pair) barrier_arrive(address_in_block(places.empty + 8 * stage, (rank + thread) % pair));
    };
    // The stage before the one that is multiplied is done with, once its products are.
    auto advance = [&]() {
        wgmma_wait<1>();
        release(turn.before());
        turn.next();
    };
    Parts<How> way{shape, c, kept, thread, places.c + consumer * 2 * staging_bytes, 0};
    Rounded<Columns, How> last_tile;
    Note note;
    u32 place = places.notes;
    for (bool more = true; more; more = note.about & Note::more, place = places.next_note(place)) {
        multiply(false);
        // It has come with the piece's first stage.
        note.get(place);
        u32 left = (note.about & Note::steps) - 1;
        if constexpr (Defers) last_tile.store(0, way);
        turn.next();
        if constexpr (Defers) {
            // The other parts go out behind as many steps, or at once where there are fewer: by code of their own for each, because
        // registers have no index, and moving them up would take as many instructions as storing them.
#pragma unroll
            for (int part = 1; part < Columns / 64; part++) {
                const bool multiplies = left > 0;
                if (multiplies) multiply(true);
                last_tile.store(part, way);
                if (multiplies) {
                    advance();
                    left--;
                }
            }
        }
#pragma unroll 1
        for (; left > 0; left--) {
            multiply(true);
            advance();
        }
        note.get(place);
        // While the last products are computed.
        u32 halves = 0;
        if ((note.about & (Note::at_once | Note::gelu)) && shape.epilogue.bias) {
            if (How == by_map && (note.about & Note::gelu) && !shape.epilogue.before) {
                halves = halve_bias<Columns>(shape, way, note.column);
            } else {
                prefetch_bias<Columns>(shape, note.column);
            }
        }
        wgmma_wait<0>();
        release(turn.before());

        const Target target = {(i32)note.matrix, (i32)(note.row + consumer * 64), (i32)note.column};
        // What most tiles do comes without a jump, because the next products wait for it.
        if (__builtin_expect((note.about & Note::unusual) != 0, 0)) {
            if (note.about & Note::is_left) {
                leave_part<Columns>(d, shape, PartsNote(place).part, rank, consumer);
                if constexpr (Defers) last_tile.clear();
                continue;
            }
            if (note.about & Note::adds) {
                const PartsNote parts(place);
#pragma unroll 1
                for (u32 part = parts.part; part < parts.end; part += parts.apart) {
                    add_part<Columns>(d, shape, part, rank, consumer);
                }
            }
            if (shape.alpha != 1.0f) {
#pragma unroll
                for (int i = 0; i < Columns / 2; i++) d[i] *= shape.alpha;
            }
            if (Defers && (note.about & Note::at_once)) {
                finish_at_once<Columns>(d, shape, target, way);
            } else if (Defers && (note.about & Note::finishes)) {
                finish_tile<ELEMENT, Columns>(d, shape, target, way);
            } else if (note.about & Note::finishes) {
                finish_tile<f32, Columns>(d, shape, target, way);
            }
        }
        if constexpr (!Defers) {
            store_wide<Columns>(d, target, way);
        } else if (How == by_map && (note.about & Note::gelu)) {
            if (shape.epilogue.before) {
                last_tile.keep_and_take_gelu(d, target, way);
            } else {
                last_tile.take_gelu(d, target, halves);
            }
        } else {
            last_tile.take(d, target);
        }
    }
    if constexpr (Defers) {
#pragma unroll
        for (int part = 0; part < Columns / 64; part++) last_tile.store(part, way);
    }
    // What is stored has to be read before the block goes, and is written before the kernel has ended.
    if (thread == 0) stores_read<0>();
}

template <bool SpanA, bool SpanB, int Columns>
__device__ inline void gemm(const TensorMap* a, const TensorMap* b, const Matrices& c, const Matrices& kept,
                            const Shape& shape) {
    const Places<Columns> places(shared_address(shared_memory));
    // The same for all threads of a warp, and known to be.
    const u32 warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    const u32 rank = cluster_rank();
    if (threadIdx.x == 0) {
        for (u32 stage = 0; stage < Places<Columns>::stages; stage++) {
            barrier_initialise(places.full + 8 * stage, 1);
            barrier_initialise(places.empty + 8 * stage, consumers * pair);
        }
        barriers_initialised();
        prefetch_map(a);
        prefetch_map(b);
    }
    cluster_barrier();
    wait_for_earlier();
    // A block begins with 168 registers a thread, and has no others: asking for more than is given back would wait for ever.
    constexpr int of_copies = 56, of_products = 224;
    static_assert(of_copies + consumers * of_products <= (1 + consumers) * 168, "registers are there");
    if (warpgroup == 0) {
        registers_down_to<of_copies>();
        if (threadIdx.x == 0) copy_stages<SpanA, SpanB, Columns>(a, b, shape, places, rank);
    } else {
        registers_up_to<of_products>();
        // What is rounded takes half the registers, so that there are enough to keep it for a while.
        if (shape.wide) {
            multiply_stages<SpanA, SpanB, Columns, false, either>(c, kept, shape, places, rank, warpgroup - 1);
        } else if (shape.together == 16) {
            multiply_stages<SpanA, SpanB, Columns, true, by_map>(c, kept, shape, places, rank, warpgroup - 1);
        } else {
            multiply_stages<SpanA, SpanB, Columns, true, by_threads>(c, kept, shape, places, rank, warpgroup - 1);
        }
    }
}

}  // namespace

// A's m runs along its rows where it is stored transposed, B's n where it is not.
#define SPANS_nn false, true
#define SPANS_nt false, false
#define SPANS_tn true, true
#define SPANS_tt true, false
#define ENTRY(element, layout, columns)                                                                               \
    extern "C" __global__ void __cluster_dims__(pair, 1, 1) __launch_bounds__(threads, 1)                             \
        gemm_wgmma_##element##_##layout##_##columns(const __grid_constant__ TensorMap a,                              \
                                                    const __grid_constant__ TensorMap b,                              \
                                                    const __grid_constant__ TensorMap c_map,                          \
                                                    const __grid_constant__ TensorMap kept_map, void* c,              \
                                                    const __grid_constant__ Shape shape) {                            \
        const Matrices to{&c_map, c}, kept{&kept_map, shape.epilogue.before};                                         \
        gemm<SPANS_##layout, columns>(&a, &b, to, kept, shape);                                                       \
    }
#define KERNELS(element, layout) \
    ENTRY(element, layout, 64)   \
    ENTRY(element, layout, 128)  \
    ENTRY(element, layout, 192)  \
    ENTRY(element, layout, 256)

// A family is of one layout, so that the first product of a process loads no others; without LAYOUT all are there.
#ifdef LAYOUT
KERNELS(ELEMENT, LAYOUT)
#else
KERNELS(ELEMENT, nn)
KERNELS(ELEMENT, nt)
KERNELS(ELEMENT, tn)
KERNELS(ELEMENT, tt)
#endif
