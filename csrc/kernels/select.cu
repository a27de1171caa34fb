// Selection of the elements of an array that are not 0: their positions, their coordinates, or the elements of another array at
// their positions, in order.
//
//     positions = [i for i in 0..n if (elements[i] & ~ignored) != 0]        elements[k] = source[positions[k]]
//
// Entries (`n` elements in tiles of TILE; block = tile):
//
// - select_mark_{8,16,32,64}(elements, words, counts, n, ignored): bit i % 32 of words[i / 32] tells whether element i is selected, and
//   counts[tile] is the number of selected elements of a tile. `ignored` has the bits that are no part of the value, as the
//   sign of a float. `words` has TILE / 32 words a tile.
// - select_scan(counts, offsets, tiles): offsets[tile] = sum of the counts of earlier tiles, and offsets[tiles] = sum of all. One block.
// - select_positions(words, offsets, positions, shape): row k of `positions` has the coordinates of the k-th selected element in `shape`.
// - select_elements_{8,16,32,64,128}(words, offsets, source, elements): `source` is aligned for units of this width.
//
// Launch: blocks of 256 threads, no dynamic shared memory.
//
// Algorithm: reduce, scan, and compact (Blelloch 1990; Billeter, Olsson and Assarsson 2009). The host has to know the number of
// selected elements before it can allocate the result, so the counts of all tiles exist before the first element is written, and
// no tile has to look back at others. The second pass reads one bit an element instead of the mask. Within a tile, the place of
// an element is its word's offset and the number of set bits below it.
//
// Invariants: no result depends on the order of blocks or threads. A warp marks 32 neighbours by one vote; bits past `n` are 0.
//
// | version | change | bytes an element (f32, half of them selected, a mask of bytes) |
// |---|---|---|
// | 1 | two passes, one bit an element between them | 1.25 and 6 of elements, 1.25 and 4 of positions |
// | 2 | positions are listed in shared memory before they are written | the same |
#include "block_sum.cuh"
#include "vectors.cuh"

namespace {

enum { THREADS = 256, WARPS = THREADS / 32, WORDS = 512, TILE = WORDS * 32, OWN_WORDS = WORDS / WARPS, BATCH = 8 };
enum { MAXIMUM_RANK = 16, SCAN_ITEMS = 8 };

// The bit of each of four bytes that is not 0.
__device__ inline u32 marks_of_bytes(u32 bytes) {
    const u32 high = (((bytes & 0x7f7f7f7fu) + 0x7f7f7f7fu) | bytes) & 0x80808080u;
    return ((high >> 7) * 0x01020408u) >> 24;
}

// 16 bytes a load; the bytes are all inside of the array.
__device__ inline u32 mark_whole_bytes(const u8* bytes, u32* words) {
    Pack<u32, 4> pack[4];
#pragma unroll
    for (u32 k = 0; k < 4; k++) load_pack(pack[k], (const u32*)(bytes + (k * THREADS + threadIdx.x) * 16));
    u32 count = 0;
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
        u32 bits = 0;
#pragma unroll
        for (u32 part = 0; part < 4; part++) bits |= marks_of_bytes(pack[k].item[part]) << (4 * part);
        ((u16*)words)[k * THREADS + threadIdx.x] = (u16)bits;
        count += (u32)__popc(bits);
    }
    return count;
}

template <typename Bits>
__device__ inline void mark(const Bits* elements, u32* words, u32* counts, u64 n, Bits ignored) {
    __shared__ u32 total;
    const u64 start = (u64)blockIdx.x * TILE;
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32* own = words + (u64)blockIdx.x * WORDS;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    u32 count = 0;
    if (sizeof(Bits) == 1 && n - start >= TILE && (u64)elements % 16 == 0 && ignored == 0) {
        count = mark_whole_bytes((const u8*)(elements + start), own);
    } else {
        for (u32 first = warp * OWN_WORDS; first < (warp + 1) * OWN_WORDS; first += BATCH) {
            Bits element[BATCH];
#pragma unroll
            for (u32 k = 0; k < BATCH; k++) {
                const u64 at = start + (first + k) * 32 + lane;
                element[k] = at < n ? elements[at] : (Bits)0;
            }
#pragma unroll
            for (u32 k = 0; k < BATCH; k++) {
                const u32 word = __ballot_sync(ALL_LANES, (Bits)(element[k] & (Bits)~ignored) != 0);
                if (lane == k) {
                    own[first + k] = word;
                    count += (u32)__popc(word);
                }
            }
        }
    }
    if (count != 0) atomicAdd(&total, count);
    __syncthreads();
    if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

__device__ inline void scan(const u32* counts, u64* offsets, u32 tiles) {
    __shared__ u64 sums[WARPS];
    u64 before = 0;
    for (u32 start = 0; start < tiles; start += THREADS * SCAN_ITEMS) {
        const u32 first = start + threadIdx.x * SCAN_ITEMS;
        u32 count[SCAN_ITEMS];
        u64 own = 0;
#pragma unroll
        for (u32 k = 0; k < SCAN_ITEMS; k++) {
            count[k] = first + k < tiles ? counts[first + k] : 0;
            own += count[k];
        }
        u64 total;
        u64 offset = before + exclusive_sum<WARPS>(own, sums, total);
#pragma unroll
        for (u32 k = 0; k < SCAN_ITEMS; k++) {
            if (first + k < tiles) offsets[first + k] = offset;
            offset += count[k];
        }
        before += total;
    }
    if (threadIdx.x == 0) offsets[tiles] = before;
}

// The two words of a thread, and the selected elements of the tile before them and in all.
struct OwnWords {
    u32 first, second, before, total;

    __device__ inline OwnWords(const u32* words) {
        __shared__ u32 sums[WARPS];
        const u32* own = words + (u64)blockIdx.x * WORDS + 2 * threadIdx.x;
        first = own[0];
        second = own[1];
        before = exclusive_sum<WARPS>((u32)(__popc(first) + __popc(second)), sums, total);
    }
};

// Copies the selected elements of the tile: a warp takes 8 words at a time.
template <typename Element>
__device__ inline void write_elements(const u32* words, const u64* offsets, const Element* source, Element* elements) {
    __shared__ u32 bits[WORDS], before[WORDS];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const OwnWords own(words);
    bits[2 * threadIdx.x] = own.first;
    bits[2 * threadIdx.x + 1] = own.second;
    before[2 * threadIdx.x] = own.before;
    before[2 * threadIdx.x + 1] = own.before + (u32)__popc(own.first);
    __syncthreads();
    if (own.total == 0) return;
    const u64 in = (u64)blockIdx.x * TILE + lane, out = offsets[blockIdx.x];
    for (u32 batch = warp * OWN_WORDS; batch < (warp + 1) * OWN_WORDS; batch += BATCH) {
        // All places first: the loads then follow each other without a wait for shared memory.
        bool is_set[BATCH];
        u64 place[BATCH];
#pragma unroll
        for (u32 k = 0; k < BATCH; k++) {
            const u32 word = bits[batch + k];
            is_set[k] = (word >> lane & 1) != 0;
            place[k] = out + before[batch + k] + (u32)__popc(word & ((1u << lane) - 1));
        }
        Element element[BATCH];
#pragma unroll
        for (u32 k = 0; k < BATCH; k++) {
            if (is_set[k]) element[k] = source[in + (batch + k) * 32];
        }
#pragma unroll
        for (u32 k = 0; k < BATCH; k++) {
            if (is_set[k]) elements[place[k]] = element[k];
        }
    }
}

// The sizes of an array, the innermost first; exactly `SelectShape` of src/sort/select.rs.
struct Shape {
    u64 size[MAXIMUM_RANK];
    // t / size = (umulhi(t, factor) + t) >> shift for all t below 2^31
    u32 factor[MAXIMUM_RANK], shift[MAXIMUM_RANK];
    u32 rank;
    u32 is_small;  // True for fewer than 2^31 elements.
};

// Writes the coordinates of an element.
__device__ inline void write_coordinates(u64 position, const Shape& shape, i64* row) {
    u64 rest = position;
#pragma unroll 1
    for (u32 dimension = 0; dimension + 1 < shape.rank; dimension++) {
        u64 next;
        if (shape.is_small != 0) {
            const u32 high = (u32)((u64)(u32)rest * shape.factor[dimension] >> 32);
            next = (high + (u32)rest) >> shape.shift[dimension];
        } else {
            next = rest / shape.size[dimension];
        }
        row[shape.rank - 1 - dimension] = (i64)(rest - next * shape.size[dimension]);
        rest = next;
    }
    row[0] = (i64)rest;
}

// Lists the selected elements of the tile in shared memory, so that neighbours write to neighbours.
__device__ inline void write_positions(const u32* words, const u64* offsets, i64* positions, const Shape& shape) {
    __shared__ u16 selected[TILE];
    const OwnWords own(words);
    u32 place = own.before;
    const u32 both[2] = {own.first, own.second};
#pragma unroll
    for (u32 k = 0; k < 2; k++) {
        for (u32 rest = both[k]; rest != 0; rest &= rest - 1) {
            selected[place++] = (u16)((2 * threadIdx.x + k) * 32 + (u32)__ffs((int)rest) - 1);
        }
    }
    __syncthreads();
    const u64 in = (u64)blockIdx.x * TILE, out = offsets[blockIdx.x];
    for (u32 at = threadIdx.x; at < own.total; at += THREADS) {
        write_coordinates(in + selected[at], shape, positions + (out + at) * shape.rank);
    }
}

template <int Bits>
struct Unit {
    Words<Bits / 8> words;
};

}  // namespace

#define MARK(bits, Bits)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                     \
        select_mark_##bits(const void* elements, u32* words, u32* counts, u64 n, u64 ignored) {                           \
        mark((const Bits*)elements, words, counts, n, (Bits)ignored);                                                     \
    }

MARK(8, u8)
MARK(16, u16)
MARK(32, u32)
MARK(64, u64)

extern "C" __global__ void __launch_bounds__(256) select_scan(const u32* counts, u64* offsets, u32 tiles) {
    scan(counts, offsets, tiles);
}

extern "C" __global__ void __launch_bounds__(256)
    select_positions(const u32* words, const u64* offsets, i64* positions, Shape shape) {
    write_positions(words, offsets, positions, shape);
}

#define ELEMENTS(bits)                                                                                                    \
    extern "C" __global__ void __launch_bounds__(256)                                                                     \
        select_elements_##bits(const u32* words, const u64* offsets, const void* source, void* elements) {                \
        write_elements(words, offsets, (const Unit<bits>*)source, (Unit<bits>*)elements);                                  \
    }

ELEMENTS(8)
ELEMENTS(16)
ELEMENTS(32)
ELEMENTS(64)
ELEMENTS(128)
