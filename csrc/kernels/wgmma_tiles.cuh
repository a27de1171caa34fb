// How the pairs of blocks of gemm_wgmma.cu share a product: the parameter, the order of the tiles, and what each pair makes.
//
// What must stay true: a tile's steps are divided by the sizes and the number of pairs alone.
#pragma once
#include "epilogue.cuh"
#include "hopper.cuh"

struct Shape {
    i32 m, n, k, batch;
    i64 c_row;      // From a row of C to the next, in elements.
    i64 c_matrix;   // From a matrix of C to the next.
    i32 a_matrix;   // 1, or 0 where all products share one A.
    i32 b_matrix;
    i32 group;      // Rows of tiles in a group.
    i32 wide;       // Whether C is f32 instead of ELEMENT.
    i32 together;   // Bytes of C's rows, and of what is kept, that are stored together: 16 by their maps, fewer by threads.
    f32 alpha, beta;
    i32 past;       // Whether C is stored as what leaves the L2 cache first.
    Epilogue epilogue;
    u32* flags;     // Of each part that is left 4, which are 0 at the start; and then the parts: a tile's numbers, of each
    f32* parts;     // warpgroup behind one another, in 4 of each thread.
    i32 runs[4];    // Steps of a run of each round (`Round`).
};

// Enumerators, because constants would become variables of the module.
enum : int {
    pair = 2,  // Blocks of a cluster.
    block_rows = 128,
    tile_rows = pair * block_rows,
    depth = 64,     // k of a stage: 128 bytes.
    consumers = 2,  // Warpgroups that multiply.
    threads = 128 * (1 + consumers),
    staging_bytes = 64 * 128,  // 64 rows of 128 bytes of C.
};

// The name of a warpgroup's barrier.
__device__ inline u32 warpgroup_barrier() { return threadIdx.x / 128; }

// The pairs' tiles.
template <int Columns>
struct Tiles {
    i32 rows, columns, group, count;

    __device__ explicit Tiles(const Shape& shape) {
        rows = (shape.m + tile_rows - 1) / tile_rows;
        columns = (shape.n + Columns - 1) / Columns;
        group = shape.group;
        count = rows * columns * shape.batch;
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

// A tile, or a run of its steps.
struct Piece {
    i32 tile, first, end;  // Steps.
    i32 part, parts;       // The first of so many parts that are added to its sums; or, if those are `left`, their own.

    enum : i32 { left = -1 };
};

// What the thread that copies tells the warpgroups of a piece, in shared memory: to find a piece takes divisions, which would keep
// a warpgroup from its next products, and registers that it does not have.
struct Note {
    enum : u32 {
        bytes = 32,
        gelu = 1u << 25,      // Numbers are rounded from gelus of their sums with a bias of columns,
        scales = 1u << 26,    // are multiplied by alpha,
        finishes = 1u << 27,  // are finished before they are rounded, or
        at_once = 1u << 28,   // finished all at once;
        adds = 1u << 29,      // others' parts are added to them;
        is_left = 1u << 30,   // they are left as a part.
        more = 1u << 31,      // Another piece follows.
        unusual = scales | finishes | at_once | adds | is_left,
        steps = gelu - 1,  // No k has more.
    };
    // The first row of the block and the first column of the tile, its matrix, and the piece's steps with the bits above.
    u32 row, column, matrix, about;

    __device__ void put(u32 place) const {
        const u32 words[4] = {row, column, matrix, about};
        to_shared(place, words);
    }
    __device__ void get(u32 place) {
        u32 words[4];
        from_shared(place, words);
        row = words[0], column = words[1], matrix = words[2], about = words[3];
    }
};

// Which parts a piece is about, behind its note, where there are some: the one that is left, or the first one that is added, with
// where those end and how far they are apart.
struct PartsNote {
    u32 part, end, apart;

    __device__ PartsNote(u32 part, u32 end, u32 apart) : part(part), end(end), apart(apart) {}
    __device__ explicit PartsNote(u32 note) {
        u32 words[4];
        from_shared(note + 16, words);
        part = words[0], end = words[1], apart = words[2];
    }
    __device__ void put(u32 note) const {
        const u32 words[4] = {part, end, apart, 0};
        to_shared(note + 16, words);
    }
};

// How the first `pairs` pairs share the last `tiles` tiles from step `begin` on. Each takes as many whole as all can. Of those that
// are left, fewer than pairs, as many pairs as they are take the first `run` steps, as many others the next, and so on: `runs`
// runs. The pairs that then are left share what is left of the steps in the next round.
//
// So pairs are at the same k at the same time, and what they read of the same rows and columns comes from memory once.
struct Round {
    const Shape& shape;
    i32 pairs, number = 0, begin = 0;
    i32 left, whole;  // Tiles that are divided, and those that are not.

    __device__ Round(const Shape& shape, i32 tiles)
        : shape(shape), pairs(gridDim.x / pair), left(tiles % pairs), whole(tiles - left) {}

    __device__ i32 steps() const { return (shape.k + depth - 1) / depth; }
    __device__ i32 run() const { return shape.runs[number]; }
    __device__ i32 runs() const { return left == 0 ? 0 : min(pairs / left, (steps() - begin + run() - 1) / run()); }
    // Pairs that have no run.
    __device__ i32 others() const { return pairs - runs() * left; }
    // How many parts it leaves of each tile that it divides: the first run of all is none.
    __device__ i32 parts() const { return runs() - (number == 0); }
    // Whether it leaves steps to the next one, which takes its place then.
    __device__ bool next() {
        const i32 end = begin + runs() * run();
        if (left == 0 || end >= steps()) return false;
        const i32 rest = others();
        begin = end;
        pairs = rest;
        whole = left / pairs * pairs;
        left -= whole;
        number++;
        return true;
    }
};

// What a pair makes, one piece after the other; the Rust side launches no pair that has none. A divided tile is finished by the
// pair that has its first steps, for which the others leave theirs: they have lower numbers, so they start no later, and wait for
// nobody.
class Pieces {
    const i32 count;
    Round round;
    i32 at = 0;     // Whole tiles of this round that are taken; behind the last piece less than 0.
    i32 parts = 0;  // Of a divided tile that the rounds before this one leave.

    // How many parts others leave of the tile that the first round divides as number `tile`.
    __device__ i32 parts_of(i32 tile) const {
        Round of(round.shape, count);
        i32 sum = of.parts();
        while (of.next()) {
            if (tile < of.whole) return sum + 1;
            tile -= of.whole;
            sum += of.parts();
        }
        return sum;
    }

   public:
    __device__ Pieces(const Shape& shape, i32 count) : count(count), round(shape, count) {}

    // The tiles that are divided.
    __device__ i32 divided() const { return count % (i32)(gridDim.x / pair); }

    // The next one, if there is one.
    __device__ bool next(Piece& piece) {
        const i32 own = blockIdx.x / pair;
        while (at >= 0) {
            const i32 first = count - round.whole - round.left, tile = at * round.pairs + own;
            if (tile < round.whole) {
                at++;
                piece.tile = first + tile;
                piece.first = round.begin;
                piece.end = round.steps();
                piece.parts = 0;
                if (round.number > 0) leave(piece, parts);
                return true;
            }
            if (own >= round.others()) {
                // The pairs with the highest numbers have the first run.
                const i32 run = (round.pairs - 1 - own) / round.left;
                const i32 tile = own - (round.pairs - (run + 1) * round.left);
                at = -1;
                piece.tile = first + round.whole + tile;
                piece.first = round.begin + run * round.run();
                piece.end = min(piece.first + round.run(), round.steps());
                leave(piece, parts + run - (round.number == 0));
                if (round.number == 0 && run == 0) {
                    piece.part = tile;
                    piece.parts = parts_of(tile);
                }
                return true;
            }
            parts += round.parts();
            at = round.next() ? 0 : -1;
        }
        return false;
    }

   private:
    // The piece's sums become the part of its tile with this number.
    __device__ void leave(Piece& piece, i32 number) const {
        piece.part = number * divided() + piece.tile - (count - divided());
        piece.parts = Piece::left;
    }
};
