// What becomes of the numbers of gemm_wgmma.cu's tiles: they are finished, rounded, and go through shared memory into C.
//
// What must stay true: a tile's numbers are finished in f32 by the same operations whichever way they take here.
#pragma once
#include "epilogue.cuh"
#include "hopper.cuh"
#include "vectors.cuh"
#include "wgmma_tiles.cuh"

namespace {

// Where a warpgroup's numbers go: its tile of 64 rows, in the matrix that it lies in.
struct Target {
    i32 matrix, row, column;
};

// Memory that is laid out like C, and its map.
struct Matrices {
    const TensorMap* map;
    void* elements;
};

// Whether C's rows are stored by maps or by threads; `either` asks the shape each time.
enum : int { either, by_map, by_threads };

// A warpgroup's way into C: parts of 64 rows of 128 bytes go through two buffers in shared memory by turns, swizzled as C's map
// says: 16 bytes number i of row r lie at i ^ (r % 8).
template <int How>
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

    // The buffer that is taken next, for what all threads have read before they begin with it.
    __device__ u32 borrow() const {
        if (thread == 0) stores_read<0>();
        named_barrier(warpgroup_barrier(), 128);
        return buffers + (next ^ staging_bytes);
    }

    template <typename Element, int Together>
    __device__ void end(u32 buffer, const Matrices& to, const Target& target, i32 at) const {
        if (How == by_map || (How == either && shape.together == 16)) {
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

    // Puts 64 columns into a buffer: two(i) gives numbers 2 i and 2 i + 1 of the thread, in the warpgroup's layout.
    template <typename Two>
    __device__ void put(u32 buffer, Two two) const {
        // The place is found anew for each, because there is no register to remember it in.
        i32 own = thread;
        forget(own);
        const u32 lane = own % 32, row = own / 32 * 16 + lane % 16;
        const u32 place = buffer + row * 128 + ((lane / 16) ^ (row % 8)) * 16;
#pragma unroll
        for (int run = 0; run < 4; run++) {
            // Four 8 x 8 blocks: the upper and lower 8 rows of 8 columns, then of the next 8.
            const u32 block[4] = {two(4 * run), two(4 * run + 1), two(4 * run + 2), two(4 * run + 3)};
            blocks_to_shared(place ^ (32 * run), block);
        }
    }
};

// A tile that is multiplied and rounded, and not stored yet: it goes out while the next one is multiplied, 64 columns behind each
// of its first steps.
template <int Columns, int How>
struct Rounded {
    enum : int { registers = Columns / 4, of_part = 16, parts = Columns / 64, nothing = -1 };

    u32 two[registers];  // Register i holds numbers 2 i and 2 i + 1 in the warpgroup's layout.
    Target target;       // Its column is `nothing` where there is no tile.

    __device__ Rounded() { clear(); }

    // What is not kept takes no registers.
    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < registers; i++) two[i] = 0;
        target = {0, 0, nothing};
    }

    __device__ void take(const f32 (&d)[Columns / 2], const Target& from) {
#pragma unroll
        for (int j = 0; j < Columns / 8; j++) round(d, j);
        target = from;
    }

    // The same of gelu(d + bias of the columns). Halves of the bias lie in shared memory (`halve_bias`).
    __device__ void take_gelu(f32 (&d)[Columns / 2], const Target& from, u32 halves) {
        halves += threadIdx.x % 4 * 8;
#pragma unroll
        for (int j = 0; j < Columns / 8; j++) {
            f32 half[2];
            from_shared(halves + 32 * j, half);
#pragma unroll
            for (int i = 0; i < 4; i++) d[4 * j + i] = gelu_of_half_to_round(fmaf(d[4 * j + i], 0.5f, half[i % 2]));
            round(d, j);
        }
        target = from;
    }

    // The same, and its argument is kept: gelus of 64 columns are computed while their arguments are stored.
    __device__ void keep_and_take_gelu(f32 (&d)[Columns / 2], const Target& from, Parts<How>& way) {
        const ELEMENT* const bias = (const ELEMENT*)way.shape.epilogue.bias + from.column + threadIdx.x % 4 * 2;
#pragma unroll
        for (int part = 0; part < parts; part++) {
            const u32 buffer = way.begin();
#pragma unroll
            for (int j = 8 * part; j < 8 * part + 8; j++) {
                Pack<ELEMENT, 2> two;
                load_pack(two, bias + 8 * j);
#pragma unroll
                for (int i = 0; i < 4; i++) d[4 * j + i] += widened(two.item[i % 2]);
            }
            way.put(buffer, [&](int i) { return rounded(d[32 * part + 2 * i], d[32 * part + 2 * i + 1]); });
            way.template end<u16, 1>(buffer, way.kept, from, from.column + 64 * part);
#pragma unroll
            for (int j = 8 * part; j < 8 * part + 8; j++) {
#pragma unroll
                for (int i = 4 * j; i < 4 * j + 4; i++) d[i] = gelu_of_half_to_round(0.5f * d[i]);
                round(d, j);
            }
        }
        target = from;
    }

    // 8 columns.
    __device__ void round(const f32 (&d)[Columns / 2], int j) {
        two[2 * j] = rounded(d[4 * j], d[4 * j + 1]);
        two[2 * j + 1] = rounded(d[4 * j + 2], d[4 * j + 3]);
    }

    // If there is a tile, stores 64 columns of it; with the last ones there is none.
    __device__ void store(int part, Parts<How>& way) {
        if (target.column == nothing) return;
        const u32 buffer = way.begin();
        way.put(buffer, [&](int i) { return two[of_part * part + i]; });
        way.template end<u16, 8>(buffer, way.c, target, target.column + 64 * part);
        if (part == parts - 1) target.column = nothing;
    }
};

// Has the nearest cache fetch the bias of a tile's columns; for each 128 bytes of it one thread of a warp asks.
template <int Columns>
__device__ inline void prefetch_bias(const Shape& shape, i32 column) {
    const i32 of = column + (i32)(threadIdx.x % 32) * 64;
    if (of < min(column + Columns, shape.n)) prefetch((const ELEMENT*)shape.epilogue.bias + of);
}

// Leaves half of the bias of a tile's columns in shared memory, as f32: so a gelu takes fewer instructions for it.
template <int Columns, int How>
__device__ inline u32 halve_bias(const Shape& shape, const Parts<How>& way, i32 column) {
    const u32 halves = way.borrow(), first = threadIdx.x % 128 * 2;
    if (first < Columns) {
        Pack<ELEMENT, 2> two;
        load_pack(two, (const ELEMENT*)shape.epilogue.bias + column + first);
        const f32 half[2] = {0.5f * widened(two.item[0]), 0.5f * widened(two.item[1])};
        to_shared(halves + first * 4, half);
    }
    named_barrier(warpgroup_barrier(), 128);
    return halves;
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
template <int Columns, int How>
__device__ inline void finish_at_once(f32 (&d)[Columns / 2], const Shape& shape, const Target& target, Parts<How>& way) {
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
            way.put(buffer, [&](int i) { return rounded(d[32 * part + 2 * i], d[32 * part + 2 * i + 1]); });
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
template <typename Element, int Columns, int How>
__device__ inline void finish_tile(f32 (&d)[Columns / 2], const Shape& shape, const Target& target,
                                   const Parts<How>& way) {
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
template <int Columns, int How>
__device__ inline void store_wide(const f32 (&d)[Columns / 2], const Target& target, Parts<How>& way) {
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

}  // namespace
