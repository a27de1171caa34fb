// Stable sort of rows by unsigned keys with positions, and binary search in sorted rows.
//
//     positions[r, i] = the position p of the i-th element of row r in the order of (key[r, p], p)
//
// Entries ({32,64}: the bits of a Key; rows are contiguous and have `length` < 2^32 elements):
//
// - sort_keys_{8,16,32,64}(elements, keys, n, kind, infinity, descending): keys in the elements' order, as src/sort/key.rs defines
//   them; of type u32 for elements of at most 32 bits, else u64. Grids of any size, one dimension.
// - sort_rows_{32,64}(keys, positions, rows, length, padded): rows of length <= padded <= 2048, a power of two, by a bitonic network
//   in shared memory (Batcher 1968). The position is part of the comparison, so the order is total. A block a row, grids of any size.
// - sort_count, sort_scan, sort_scatter: one pass of a radix sort by the least significant digit first, 8 bits a pass (Satish, Harris
//   and Garland 2009; ranks in a warp by votes: Merrill and Garland 2016). A block takes one tile of one row: block = row * tiles + tile.
//   - sort_count_{32,64}(keys, counts, length, tiles, shift): counts[row][digit][tile].
//   - sort_scan(counts, totals, tiles): counts of earlier tiles in place of each count, and totals[row][digit]. Block = row * 256 + digit.
//   - sort_scatter_{32,64}(keys, positions, sorted_keys, sorted_positions, wide_positions, counts, totals, length, tiles, shift, flags):
//     flag 1: the first pass, which reads no positions; flag 2: the last pass, which writes wide_positions only.
// - sort_search_{32,64}(sequences, values, positions, length, per_row, n, right): elements before each value (not above it if `right`)
//   in its row, which is value / per_row. Grids of any size.
//
// Launch: blocks of 256 threads, no dynamic shared memory.
//
// Invariants: no result depends on the order of blocks or threads: atomics add integers only. A tile's elements are ranked in memory
// order (by warp, then item, then lane), so each pass is stable. All threads of a warp vote.
#include "block_sum.cuh"
#include "sort.cuh"

namespace {

enum { WARPS = THREADS / 32, DIGITS = 256, MAXIMUM_ROW = 2048 };
enum { IS_FIRST = 1, IS_LAST = 2 };

// Elements of a tile: `TILE_BYTES` of src/sort/device.rs.
template <typename Key>
struct Tile {
    enum { ITEMS = 64 / sizeof(Key), ELEMENTS = THREADS * ITEMS };
};

__device__ inline u64 first_thread() { return (u64)blockIdx.x * THREADS + threadIdx.x; }
__device__ inline u64 all_threads() { return (u64)gridDim.x * THREADS; }

template <typename Bits, typename Key>
__device__ inline void make_keys(const Bits* elements, Key* keys, u64 n, u32 kind, u64 infinity, u32 descending) {
    for (u64 i = first_thread(); i < n; i += all_threads()) {
        keys[i] = (Key)key_of<Bits>(elements[i], kind, (Bits)infinity, descending);
    }
}

template <typename Key>
__device__ inline void sort_rows(const Key* keys, i64* positions, u64 rows, u32 length, u32 padded) {
    __shared__ Item<Key> items[MAXIMUM_ROW];
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const u64 start = row * length;
        for (u32 at = threadIdx.x; at < padded; at += THREADS) {
            // Padding comes after every element: its key is the largest, and its position is larger than theirs.
            items[at].set(at < length ? keys[start + at] : (Key) ~(Key)0, at);
        }
        __syncthreads();
        sort_items(items, padded);
        for (u32 at = threadIdx.x; at < length; at += THREADS) positions[start + at] = (i64)items[at].position();
        __syncthreads();
    }
}

template <typename Key>
__device__ inline u32 digit_of(Key key, u32 shift) {
    return (u32)(key >> shift) & (DIGITS - 1);
}

template <typename Key>
__device__ inline void count_digits(const Key* keys, u32* counts, u64 length, u32 tiles, u32 shift) {
    __shared__ u32 bins[DIGITS];
    const u64 row = blockIdx.x / tiles;
    const u32 tile = blockIdx.x % tiles;
    const u64 start = (u64)tile * Tile<Key>::ELEMENTS;
    const Key* own = keys + row * length + start;
    const u64 left = length - start;
    bins[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (u32 item = 0; item < Tile<Key>::ITEMS; item++) {
        const u32 at = item * THREADS + threadIdx.x;
        if (at < left) atomicAdd(&bins[digit_of(own[at], shift)], 1u);
    }
    __syncthreads();
    counts[(row * DIGITS + threadIdx.x) * tiles + tile] = bins[threadIdx.x];
}

__device__ inline void scan(u32* counts, u32* totals, u32 tiles) {
    __shared__ u32 sums[WARPS];
    u32* own = counts + (u64)blockIdx.x * tiles;
    u32 before = 0;
    for (u32 start = 0; start < tiles; start += THREADS) {
        const u32 at = start + threadIdx.x;
        u32 total;
        const u32 sum = exclusive_sum<WARPS>(at < tiles ? own[at] : 0, sums, total);
        if (at < tiles) own[at] = before + sum;
        before += total;
    }
    if (threadIdx.x == 0) totals[blockIdx.x] = before;
}

template <typename Key>
__device__ inline void scatter(const Key* keys, const u32* positions, Key* sorted_keys, u32* sorted_positions,
                               i64* wide_positions, const u32* counts, const u32* totals, u64 length, u32 tiles,
                               u32 shift, u32 flags) {
    enum { ITEMS = Tile<Key>::ITEMS, ELEMENTS = Tile<Key>::ELEMENTS };
    __shared__ Key staged_keys[ELEMENTS];
    __shared__ u32 staged_positions[ELEMENTS];
    __shared__ u32 counters[WARPS][DIGITS];
    __shared__ u32 places[DIGITS];
    __shared__ u32 sums[WARPS];
    const u64 row = blockIdx.x / tiles;
    const u32 tile = blockIdx.x % tiles, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u64 start = (u64)tile * ELEMENTS, base = row * length;
    const u32 count = length - start < ELEMENTS ? (u32)(length - start) : (u32)ELEMENTS;
#pragma unroll
    for (u32 other = 0; other < WARPS; other++) counters[other][threadIdx.x] = 0;
    Key key[ITEMS];
    u32 rank[ITEMS];
#pragma unroll
    for (u32 item = 0; item < ITEMS; item++) {
        const u32 at = warp * (ITEMS * 32) + item * 32 + lane;
        key[item] = at < count ? keys[base + start + at] : 0;
    }
    __syncthreads();
#pragma unroll
    for (u32 item = 0; item < ITEMS; item++) {
        const bool here = warp * (ITEMS * 32) + item * 32 + lane < count;
        const u32 digit = digit_of(key[item], shift);
        // The lanes with the same digit.
        u32 peers = __ballot_sync(ALL_LANES, here);
#pragma unroll
        for (u32 bit = 0; bit < 8; bit++) {
            const bool is_set = (digit >> bit & 1) != 0;
            const u32 votes = __ballot_sync(ALL_LANES, is_set);
            peers &= is_set ? votes : ~votes;
        }
        const u32 before = (u32)__popc(peers & ((1u << lane) - 1));
        const u32 earlier = counters[warp][digit];
        __syncwarp();
        if (here && before == 0) counters[warp][digit] = earlier + (u32)__popc(peers);
        __syncwarp();
        rank[item] = earlier + before;
    }
    __syncthreads();
    // A thread has a digit: the ranks of its first element of each warp in the tile, and the places of the tile in the row.
    u32 of_tile = 0;
#pragma unroll
    for (u32 other = 0; other < WARPS; other++) of_tile += counters[other][threadIdx.x];
    u32 total;
    const u32 first = exclusive_sum<WARPS>(of_tile, sums, total);
    const u64 entry = row * DIGITS + threadIdx.x;
    const u32 smaller = exclusive_sum<WARPS>(totals[entry], sums, total);
    places[threadIdx.x] = smaller + counts[entry * tiles + tile] - first;
    u32 next = first;
#pragma unroll
    for (u32 other = 0; other < WARPS; other++) {
        const u32 of_warp = counters[other][threadIdx.x];
        counters[other][threadIdx.x] = next;
        next += of_warp;
    }
    __syncthreads();
    // Through shared memory, so that neighbours write to neighbours.
#pragma unroll
    for (u32 item = 0; item < ITEMS; item++) {
        const u32 at = warp * (ITEMS * 32) + item * 32 + lane;
        if (at < count) {
            const u32 slot = counters[warp][digit_of(key[item], shift)] + rank[item];
            staged_keys[slot] = key[item];
            staged_positions[slot] = (flags & IS_FIRST) != 0 ? (u32)start + at : positions[base + start + at];
        }
    }
    __syncthreads();
    for (u32 at = threadIdx.x; at < count; at += THREADS) {
        const Key own = staged_keys[at];
        const u64 place = base + (u32)(places[digit_of(own, shift)] + at);
        if ((flags & IS_LAST) != 0) {
            wide_positions[place] = (i64)staged_positions[at];
        } else {
            sorted_keys[place] = own;
            sorted_positions[place] = staged_positions[at];
        }
    }
}

template <typename Key>
__device__ inline void search(const Key* sequences, const Key* values, i64* positions, u64 length, u64 per_row, u64 n,
                              u32 right) {
    for (u64 i = first_thread(); i < n; i += all_threads()) {
        const Key* sequence = sequences + i / per_row * length;
        const Key value = values[i];
        u64 low = 0, high = length;
        while (low < high) {
            const u64 middle = low + (high - low) / 2;
            const Key other = sequence[middle];
            if (other < value || (right != 0 && other == value)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        positions[i] = (i64)low;
    }
}

}  // namespace

#define KEYS(bits, Bits, Key)                                                                                              \
    extern "C" __global__ void __launch_bounds__(256) sort_keys_##bits(const void* elements, void* keys, u64 n, u32 kind,  \
                                                                       u64 infinity, u32 descending) {                     \
        make_keys((const Bits*)elements, (Key*)keys, n, kind, infinity, descending);                                       \
    }

KEYS(8, u8, u32)
KEYS(16, u16, u32)
KEYS(32, u32, u32)
KEYS(64, u64, u64)

#define SORTS(bits, Key)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256)                                                                      \
        sort_rows_##bits(const void* keys, i64* positions, u64 rows, u32 length, u32 padded) {                             \
        sort_rows((const Key*)keys, positions, rows, length, padded);                                                      \
    }                                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                                                      \
        sort_count_##bits(const void* keys, u32* counts, u64 length, u32 tiles, u32 shift) {                               \
        count_digits((const Key*)keys, counts, length, tiles, shift);                                                      \
    }                                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256) sort_scatter_##bits(                                                 \
        const void* keys, const u32* positions, void* sorted_keys, u32* sorted_positions, i64* wide_positions,             \
        const u32* counts, const u32* totals, u64 length, u32 tiles, u32 shift, u32 flags) {                               \
        scatter((const Key*)keys, positions, (Key*)sorted_keys, sorted_positions, wide_positions, counts, totals, length,  \
                tiles, shift, flags);                                                                                      \
    }                                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                                                      \
        sort_search_##bits(const void* sequences, const void* values, i64* positions, u64 length, u64 per_row, u64 n,      \
                           u32 right) {                                                                                    \
        search((const Key*)sequences, (const Key*)values, positions, length, per_row, n, right);                           \
    }

SORTS(32, u32)
SORTS(64, u64)

extern "C" __global__ void __launch_bounds__(256) sort_scan(u32* counts, u32* totals, u32 tiles) {
    scan(counts, totals, tiles);
}
