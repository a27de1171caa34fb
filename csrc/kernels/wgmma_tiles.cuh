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
    i32 divided;    // Whether the last round of tiles is divided among all pairs.
    Epilogue epilogue;
    u32* flags;     // Of each pair 4, which are 0 at the start; and then what it leaves: a tile's numbers, of each
    f32* parts;     // warpgroup behind one another, in 4 of each thread.
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
};

// What the thread that copies tells the warpgroups of a piece, in shared memory: to find a piece takes divisions, which would keep
// a warpgroup from its next products, and registers that it does not have.
struct Note {
    enum : u32 {
        bytes = 16,
        finishes = 1u << 26,
        at_once = 1u << 27,
        last_part = 1u << 28,
        is_left = 1u << 29,
        more = 1u << 30,
        steps = finishes - 1,
    };
    // The first row of the block and the first column of the tile, its matrix, and the piece's steps with bits for whether the
    // tile's numbers are finished before they are rounded, whether at once, whether others left their parts of it to this pair,
    // this pair leaves its part, and another piece follows.
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

// What a pair makes, one piece after the other.
struct Pieces {
    i32 steps, own, pairs, whole, count;  // `whole` tiles are taken whole, one round after the other.
    i32 begin, end;                        // Of the pair's run of the steps of the others.

    __device__ Pieces(const Shape& shape, i32 tiles) {
        steps = (shape.k + depth - 1) / depth;
        own = blockIdx.x / pair;
        pairs = gridDim.x / pair;
        count = tiles;
        whole = shape.divided ? tiles / pairs * pairs : tiles;
        begin = start_of(own);
        end = start_of(own + 1);
    }

    // The Rust side divides only where this fits.
    __device__ i32 start_of(i32 of) const { return (count - whole) * steps * of / pairs; }
    // A run that ends within a tile leaves its part of it to others.
    __device__ bool leaves() const { return end % steps != 0; }
    // It begins within a tile, and has its last step.
    __device__ bool finishes() const { return begin % steps != 0 && begin / steps < end / steps; }

    // Piece number `at`; whether there is one.
    __device__ bool get(i32 at, Piece& piece) const {
        if (leaves()) {
            const i32 tile = end / steps;
            piece.tile = whole + tile;
            piece.first = max(begin - tile * steps, 0);
            piece.end = end % steps;
            if (at-- == 0) return true;
        }
        piece.first = 0;
        piece.end = steps;
        const i32 rounds = (whole - own + pairs - 1) / pairs;
        piece.tile = own + at * pairs;
        if (at < rounds) return true;
        at -= rounds;
        const i32 first = (begin + steps - 1) / steps;
        piece.tile = whole + first + at;
        if (first + at < end / steps) return true;
        at -= max(end / steps - first, 0);
        piece.tile = whole + begin / steps;
        piece.first = begin % steps;
        return at == 0 && finishes();
    }

    // Whether others left parts of the piece's tile to this pair, and whether this one leaves its part.
    __device__ bool is_last_part(const Piece& piece) const { return piece.first > 0 && piece.end == steps; }
    __device__ bool is_left(const Piece& piece) const { return piece.end < steps; }
    // Whether that pair has a part of the tile in which this one's run begins, which it left.
    __device__ bool has_part(i32 of) const { return of >= 0 && start_of(of + 1) > begin / steps * steps; }
};
