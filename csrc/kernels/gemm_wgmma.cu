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
#include "elementwise.cuh"
#include "epilogue.cuh"
#include "hopper.cuh"
#include "wgmma.cuh"
#include "wgmma_parts.cuh"
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

// What is done with a tile's numbers before they are rounded, as bits of its note.
__device__ inline u32 about_numbers(const Shape& shape) {
    const Epilogue& epilogue = shape.epilogue;
    if (shape.beta == 0.0f && !epilogue.any()) return 0;
    const bool at_once = shape.beta == 0.0f && !epilogue.residual && !(epilogue.bias && epilogue.by_row);
    return at_once && !shape.wide ? Note::finishes | Note::at_once : Note::finishes;
}

// One thread of each block: brings the stages in.
template <bool SpanA, bool SpanB, int Columns>
__device__ inline void copy_stages(const TensorMap* a, const TensorMap* b, const Shape& shape,
                                   const Places<Columns>& places, u32 rank) {
    typedef Places<Columns> Stage;
    const Tiles<Columns> tiles(shape);
    Pieces pieces(shape, tiles.count);
    const u32 about = about_numbers(shape);
    Turn<Stage::stages> turn;
    u32 place = places.notes;
    Piece piece, following;
    for (bool more = pieces.next(piece); more; piece = following) {
        more = pieces.next(following);
        i32 row, column, matrix;
        tiles.at(piece.tile, row, column, matrix);
        row += rank * block_rows;
        const u32 steps = piece.end - piece.first, adds = piece.parts > 0 ? Note::adds : 0;
        const u32 left = piece.parts == Piece::left ? Note::is_left : 0, follows = more ? Note::more : 0;
        const Note note = {(u32)row, (u32)column, (u32)matrix, steps | adds | left | follows | about};
        const PartsNote parts(piece.part, piece.part + piece.parts * pieces.divided(), pieces.divided());
        const i32 a_matrix = matrix * shape.a_matrix, b_matrix = matrix * shape.b_matrix;
        for (i32 k = piece.first * depth; k < piece.end * depth; k += depth) {
            barrier_wait(places.empty + 8 * turn.stage, turn.parity ^ 1);
            // Those that wait for the stage can read it then.
            if (k == piece.first * depth) {
                note.put(place);
                if (adds | left) parts.put(place);
            }
            const u32 full = places.full + 8 * turn.stage;
            const u32 stage = turn.stage * Stage::stage_bytes, to_a = places.a + stage, to_b = places.b + stage;
            barrier_expect(full, Stage::a_bytes + Stage::b_bytes);
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

// Where a warpgroup's numbers go: its tile of 64 rows, in the matrix that it lies in.
struct Target {
    i32 matrix, row, column;
};

// Memory that is laid out like C, and its map.
struct Matrices {
    const TensorMap* map;
    void* elements;
};

// A warpgroup's way into C: parts of 64 rows of 128 bytes go through two buffers in shared memory by turns, swizzled as C's map
// says: 16 bytes number i of row r lie at i ^ (r % 8).
struct Parts {
    const Shape& shape;
    const Matrices c, kept;
    u32 thread;   // Of the warpgroup.
    u32 buffers;  // Of the warpgroup too.
    u32 next;     // Where the buffer begins that was taken last.

    // Stores 128 bytes of each row, as threads that are neighbours take neighbours: so many words of a thread together.
    template <typename Word, typename Element, int Together>
    __device__ void store_words(u32 buffer, void* elements, const Target& target, i32 at) const {
        constexpr u32 across = 128 / sizeof(Word), rows_at_once = 128 / across;
        i32 own = thread;
        forget(own);
        const u32 x = own % across * sizeof(Word);
        if (at + (i32)(x / sizeof(Element)) >= shape.n) return;
        const u32 rows = max(0, min(64, shape.m - target.row));
        const i64 first = target.matrix * shape.c_matrix + (i64)target.row * shape.c_row + at;
        unsigned char* const to = (unsigned char*)((Element*)elements + first) + x;
#pragma unroll 1
        for (u32 y = own / across; y < rows; y += Together * rows_at_once) {
            Word words[Together];
#pragma unroll
            for (u32 i = 0; i < Together; i++) {
                const u32 of = y + i * rows_at_once;
                from_shared(buffer + of * 128 + (((x / 16) ^ (of % 8)) * 16) + x % 16, words[i]);
            }
#pragma unroll
            for (u32 i = 0; i < Together; i++) {
                const u32 of = y + i * rows_at_once;
                if (of < rows) *(Word*)(to + (i64)of * shape.c_row * sizeof(Element)) = words[i];
            }
        }
    }

    // The next buffer, once what was stored from it has been read: all stores but the last one, which reads the other.
    __device__ u32 begin() {
        if (thread == 0) stores_read<1>();
        named_barrier(warpgroup_barrier(), 128);
        next ^= staging_bytes;
        return buffers + next;
    }

    template <typename Element, int Together>
    __device__ void end(u32 buffer, const Matrices& to, const Target& target, i32 at) const {
        if (shape.together == 16) {
            publish_to_copies();
            named_barrier(warpgroup_barrier(), 128);
            if (thread != 0) return;
            if (shape.past) {
                store_box_past_cache(to.map, buffer, at, target.row, target.matrix);
            } else {
                store_box(to.map, buffer, at, target.row, target.matrix);
            }
            return;
        }
        named_barrier(warpgroup_barrier(), 128);
        if (shape.together == 8) {
            store_words<u64, Element, Together>(buffer, to.elements, target, at);
        } else if (shape.together == 4) {
            store_words<u32, Element, Together>(buffer, to.elements, target, at);
        } else {
            store_words<u16, Element, Together>(buffer, to.elements, target, at);
        }
    }

    // Puts 16 columns into a buffer, from column 16 `run` on: two(i) gives numbers 2 i and 2 i + 1 of the thread, in the
    // warpgroup's layout.
    template <typename Two>
    __device__ void put(u32 buffer, u32 run, Two two) const {
        // Places are found anew for each, because there are no registers to remember them in.
        i32 own = thread;
        forget(own);
        const u32 lane = own % 32, row = own / 32 * 16 + lane % 16;
        // Four 8 x 8 blocks: the upper and lower 8 rows of 8 columns, then of the next 8.
        const u32 block[4] = {two(0), two(1), two(2), two(3)};
        blocks_to_shared(buffer + row * 128 + (((2 * run + lane / 16) ^ (row % 8)) * 16), block);
    }
};

// A tile that is multiplied and rounded, and not stored yet: it goes out while the next one is multiplied, 64 columns behind a
// step, and what is left behind the last step.
template <int Columns>
struct Rounded {
    enum : int { registers = Columns / 4, of_part = 16, nothing = -1 };

    u32 two[registers];  // Of the columns that are left. Register i holds numbers 2 i and 2 i + 1 in the warpgroup's layout.
    Target target;       // Of the next ones; its column is `nothing` where none are left.

    __device__ Rounded() { target.column = nothing; }
    __device__ bool has_part() const { return target.column != nothing; }

    __device__ void take(const f32 (&d)[Columns / 2], const Target& from) {
#pragma unroll
        for (int i = 0; i < registers; i++) two[i] = rounded(d[2 * i], d[2 * i + 1]);
        target = from;
    }

    // Stores the next columns, if there are some left. The others move up, because registers have no index.
    __device__ void store_part(Parts& way) {
        if (!has_part()) return;
        const u32 buffer = way.begin();
#pragma unroll
        for (int run = 0; run < 4; run++) way.put(buffer, run, [&](int i) { return two[4 * run + i]; });
        way.template end<u16, 8>(buffer, way.c, target, target.column);
#pragma unroll
        for (int i = 0; i < registers - of_part; i++) two[i] = two[i + of_part];
        target.column += 64;
        if (target.column % Columns == 0) target.column = nothing;
    }

    // Where all is stored and no other tile comes: what is not kept takes no registers meanwhile.
    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < registers; i++) two[i] = 0;
        target = {0, 0, nothing};
    }

    __device__ void store_rest(Parts& way) {
#pragma unroll 1
        while (has_part()) store_part(way);
    }
};

// Has the nearest cache fetch the bias of a tile's columns; for each 128 bytes of it one thread of a warp asks.
template <int Columns>
__device__ inline void prefetch_bias(const Shape& shape, i32 column) {
    const i32 of = column + (i32)(threadIdx.x % 32) * 64;
    if (of < min(column + Columns, shape.n)) prefetch((const ELEMENT*)shape.epilogue.bias + of);
}

// d = scale (d + bias of the columns), for a scale that is a power of two: one rounding. Two neighbours are loaded together where
// they lie so; outside of C the last column's is taken, for numbers that are not stored.
template <int Columns>
__device__ inline void add_bias_of_columns(f32 (&d)[Columns / 2], f32 scale, const Shape& shape, i32 column) {
    const ELEMENT* const bias = (const ELEMENT*)shape.epilogue.bias;
    const i32 first = column + threadIdx.x % 4 * 2;
    const ELEMENT* const own = bias + first;
    auto add = [&](int j, const Pack<ELEMENT, 2>& two) {
#pragma unroll
        for (int i = 0; i < 4; i++) d[4 * j + i] = fmaf(d[4 * j + i], scale, widened(two.item[i % 2]) * scale);
    };
    if (first + Columns <= shape.n && (u64)own % 4 == 0) {
#pragma unroll
        for (int j = 0; j < Columns / 8; j++) {
            Pack<ELEMENT, 2> two;
            load_pack(two, own + 8 * j);
            add(j, two);
        }
    } else {
#pragma unroll
        for (int j = 0; j < Columns / 8; j++) {
            Pack<ELEMENT, 2> two;
            two.item[0] = bias[min(first + 8 * j, shape.n - 1)];
            two.item[1] = bias[min(first + 8 * j + 1, shape.n - 1)];
            add(j, two);
        }
    }
}

// What is done with a tile's numbers before they are rounded to 16 bits. The tensor cores wait for this warpgroup meanwhile, and
// warps alone hide no latency: so what training takes (a bias of columns, numbers kept, an activation) is done for all numbers
// at once, without a look at where they lie. A gelu takes half of its argument, which comes with the sum.
template <int Columns>
__device__ inline void finish_at_once(f32 (&d)[Columns / 2], const Shape& shape, const Target& target, Parts& way) {
    const Epilogue& epilogue = shape.epilogue;
    const bool keeps = epilogue.before, is_gelu = epilogue.activation == 2;
    const f32 scale = is_gelu && !keeps ? 0.5f : 1.0f;
    if (epilogue.bias) {
        add_bias_of_columns<Columns>(d, scale, shape, target.column);
    } else if (scale != 1.0f) {
#pragma unroll
        for (int i = 0; i < Columns / 2; i++) d[i] *= scale;
    }
    if (keeps) {
#pragma unroll
        for (int part = 0; part < Columns / 64; part++) {
            const u32 buffer = way.begin();
#pragma unroll
            for (int run = 0; run < 4; run++) {
                auto two = [&](int i) {
                    const int at = 32 * part + 8 * run + 2 * i;
                    return rounded(d[at], d[at + 1]);
                };
                way.put(buffer, run, two);
            }
            way.template end<u16, 1>(buffer, way.kept, target, target.column + 64 * part);
        }
    }
    if (!is_gelu) {
        activate(epilogue, d);
        return;
    }
    if (keeps) {
#pragma unroll
        for (int i = 0; i < Columns / 2; i++) d[i] *= 0.5f;
    }
#pragma unroll
    for (int i = 0; i < Columns / 2; i++) d[i] = gelu_of_half_to_round(d[i]);
}

// All else goes through 64 columns at a time; the others move up, and the last ones round to the front, because registers have no
// index.
template <typename Element, int Columns>
__device__ inline void finish_tile(f32 (&d)[Columns / 2], const Shape& shape, const Target& target, const Parts& way) {
    const Epilogue& epilogue = shape.epilogue;
    const i32 first_row = target.row + way.thread / 32 * 16 + way.thread % 32 / 4;
    const i64 matrix = target.matrix * shape.c_matrix;
#pragma unroll 1
    for (i32 at = target.column; at < target.column + Columns; at += 64) {
        f32 numbers[32];
#pragma unroll
        for (int i = 0; i < 32; i++) numbers[i] = d[i];
        auto where = [&](int i, i32& row, i32& column, i64& place) {
            row = first_row + i / 2 % 2 * 8;
            column = at + 8 * (i / 4) + 2 * (way.thread % 4) + i % 2;
            place = matrix + row * shape.c_row + column;
            return row < shape.m && column < shape.n;
        };
        if (shape.beta != 0.0f) add_c((const Element*)way.c.elements, shape.beta, numbers, where);
        finish<Element>(epilogue, numbers, where);
#pragma unroll
        for (int i = 0; i < Columns / 2 - 32; i++) d[i] = d[i + 32];
#pragma unroll
        for (int i = 0; i < 32; i++) d[Columns / 2 - 32 + i] = numbers[i];
    }
}

// Stores a tile at once, as f32.
template <int Columns>
__device__ inline void store_wide(const f32 (&d)[Columns / 2], const Target& target, Parts& way) {
    const u32 g = way.thread % 32 / 4, q = way.thread % 4;
#pragma unroll
    for (int part = 0; part < Columns / 32; part++) {
        const i32 at = target.column + 32 * part;
        const u32 buffer = way.begin();
#pragma unroll
        for (int j = 0; j < 4; j++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const u32 in_row = (((2 * j + q / 2) ^ g) * 16) + q % 2 * 8, row = way.thread / 32 * 16 + g + 8 * h;
                const u32 place = buffer + row * 128 + in_row;
                const f32 two[2] = {d[16 * part + 4 * j + 2 * h], d[16 * part + 4 * j + 2 * h + 1]};
                to_shared(place, two);
            }
        }
        way.template end<f32, 1>(buffer, way.c, target, at);
    }
}

// A warpgroup: multiplies its 64 rows of each stage, and stores them; where it `Defers`, while it multiplies the next.
template <bool SpanA, bool SpanB, int Columns, bool Defers>
__device__ inline void multiply_stages(const Matrices& c, const Matrices& kept, const Shape& shape,
                                       const Places<Columns>& places, u32 rank, u32 consumer) {
    typedef Places<Columns> Stage;
    const u32 thread = threadIdx.x % 128;
    // Thread 0 tells this block that a stage is free, thread 1 the other one.
    auto release = [&](u32 stage) {
        if (thread < pair) barrier_arrive(address_in_block(places.empty + 8 * stage, (rank + thread) % pair));
    };
    Turn<Stage::stages> turn;
    Parts way{shape, c, kept, thread, places.c + consumer * 2 * staging_bytes, 0};
    Rounded<Columns> last_tile;
    Note note;
    u32 place = places.notes;
    for (bool more = true; more; more = note.about & Note::more, place = places.next_note(place)) {
        // The note comes with the piece's first stage.
        barrier_wait(places.full + 8 * turn.stage, turn.parity);
        note.get(place);
        f32 d[Columns / 2];
        bool adds = false;
#pragma unroll 1
        for (u32 steps = note.about & Note::steps; steps > 0; steps--) {
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
            // While the tensor cores are at it.
            if (Defers) last_tile.store_part(way);
            // The stage before this one is done with now.
            wgmma_wait<1>();
            if (adds) release(turn.before());
            adds = true;
            turn.next();
        }
        if (Defers) last_tile.store_rest(way);
        note.get(place);
        if ((note.about & Note::at_once) && shape.epilogue.bias) prefetch_bias<Columns>(shape, note.column);
        wgmma_wait<0>();
        release(turn.before());

        if (note.about & Note::is_left) {
            leave_part<Columns>(d, shape, PartsNote(place).part, rank, consumer);
            last_tile.clear();
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
        const Target target = {(i32)note.matrix, (i32)(note.row + consumer * 64), (i32)note.column};
        if constexpr (Defers) {
            if (note.about & Note::at_once) {
                finish_at_once<Columns>(d, shape, target, way);
            } else if (note.about & Note::finishes) {
                finish_tile<ELEMENT, Columns>(d, shape, target, way);
            }
            last_tile.take(d, target);
        } else {
            if (note.about & Note::finishes) finish_tile<f32, Columns>(d, shape, target, way);
            store_wide<Columns>(d, target, way);
        }
    }
    if (Defers) last_tile.store_rest(way);
    if (thread == 0) stores_done();
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
        if (!shape.wide) {
            multiply_stages<SpanA, SpanB, Columns, true>(c, kept, shape, places, rank, warpgroup - 1);
        } else {
            multiply_stages<SpanA, SpanB, Columns, false>(c, kept, shape, places, rank, warpgroup - 1);
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
