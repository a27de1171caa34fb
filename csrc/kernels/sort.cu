// Stable sort of rows, with positions or without, and binary search in sorted rows.
//
//     positions[r, i] = the position p of the i-th element of row r in the order of (key[r, p], p)
//     sorted[r, i] = elements[r, positions[r, i]]
//
// Entries ({8,16,32,64}: the bits of an element; rows are contiguous and have `length` < 2^32 elements; `kind`, `infinity` and
// `descending` give the order of src/sort/key.rs; `sorted` is written with flag 4, `positions` with flag 8):
//
// - sort_rows_*(elements, positions, sorted, rows, length, padded, flags, kind, infinity, descending): rows of
//   length <= padded <= 2048, a power of two, by a bitonic network in shared memory (Batcher 1968). The position is part of the
//   comparison, so the order is total. A block a row, grids of any size.
// - sort_histogram_*(elements, workspace, length, chunks, passes, kind, infinity, descending): the number of elements of each
//   row with each 8-bit digit of the key, of the `passes` lowest digits. Block = row * chunks + chunk.
// - sort_pass_*(elements, positions, sorted, sorted_positions, workspace, PassRun): one pass of a radix sort by the least significant
//   digit first. Grid = rows * tiles, for tiles of threads * items elements. Flag 1: the first pass, which reads no positions; flag
//   2: the last pass, which writes positions of 64 bits instead of 32, and `sorted` only with flag 4. Without flag 8 no pass reads
//   or writes positions.
// - sort_search_*(sequences, values, positions, length, per_row, n, right, kind, infinity, descending): elements before each value
//   (not above it if `right`) in its row, which is value / per_row. Grids of any size.
//
// Workspace: u32 that are 0 when the histogram starts: 8 tickets, a pass each; histograms[row][pass][256]; two times
// words[row][tile][256].
//
// Launch: blocks of 256 threads, and of `Pass<Bits>::THREADS` for a pass; no dynamic shared memory.
//
// Algorithm: onesweep (Adinets and Merrill 2022) with decoupled look-back (Merrill and Garland 2016). A pass reads and writes each
// element once. A block takes the next tile by an atomic ticket, counts its digits, and publishes the counts. Then it ranks its
// elements by votes of warps, adds up the counts of earlier tiles of its row, a thread a digit, back to the first tile that has
// published the sum itself, and moves elements through shared memory, so that neighbours write to neighbours. The first tile of a
// row starts the sums at the digits' places, from the histogram. Elements keep their bits, and each pass makes the key again.
//
// A word of a tile and digit is 0 before it is published, 1 + c for a count c of the tile alone, and INCLUSIVE + p for the place p
// behind the tile's last element with the digit. One word says all, so its reads and writes need no order with other memory.
// Volatile ones do: the hardware performs an aligned word of four bytes whole, at the cache that all multiprocessors share.
//
// Invariants: no result depends on the order of blocks or threads: atomics add integers only. A tile's elements are ranked in memory
// order (by warp, then item, then lane), so each pass is stable. All threads of a warp vote. A block waits only for tiles with lower
// tickets, whose blocks run already and publish their counts before they wait. A pass clears the words of the next one.
//
// | version | change | bytes moved for 2^28 f32 with values and positions |
// |---|---|---|
// | 1 | keys in memory; three kernels a pass: counts, their scan, scatter | 28 GB and a gather |
// | 2 | one kernel a pass with look-back; elements instead of keys; the last pass writes the values | 18 GB |
// | 3 | positions are a flag | 18 GB; 9.7 GB without positions |
#include "block_sum.cuh"
#include "sort.cuh"

namespace {

enum { DIGIT_BITS = 8, DIGITS = 256, MAXIMUM_ROW = 2048, MAXIMUM_PASSES = 8 };
enum { IS_FIRST = 1, IS_LAST = 2, HAS_VALUES = 4, HAS_POSITIONS = 8 };

// Threads of a block of a pass, and the most elements of a thread: those of src/sort/onesweep.rs.
template <typename Bits>
struct Pass {
    enum { THREADS = 384, ITEMS = sizeof(Bits) > 4 ? 10 : 14 };
};

// A pass; exactly `PassRun` of src/sort/onesweep.rs.
struct PassRun {
    u64 length, infinity;
    u32 rows, tiles, items, pass, passes, flags, kind, descending;
};

// The keys of the short sorts.
template <typename Bits>
struct Narrow {
    typedef u32 Key;
};
template <>
struct Narrow<u64> {
    typedef u64 Key;
};

__device__ inline u64 first_thread() { return (u64)blockIdx.x * THREADS + threadIdx.x; }
__device__ inline u64 all_threads() { return (u64)gridDim.x * THREADS; }

template <typename Bits>
__device__ inline u32 digit_of(const Order<Bits>& order, Bits bits, u32 shift) {
    return (u32)(order.key(bits) >> shift) & (DIGITS - 1);
}

template <typename Bits>
__device__ inline void sort_rows(const Bits* elements, i64* positions, Bits* sorted, u64 rows, u32 length, u32 padded,
                                 u32 flags, Order<Bits> order) {
    typedef typename Narrow<Bits>::Key Key;
    __shared__ Item<Key> items[MAXIMUM_ROW];
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const u64 start = row * length;
        for (u32 at = threadIdx.x; at < padded; at += THREADS) {
            // Padding comes after every element: its key is the largest, and its position is larger than theirs.
            items[at].set(at < length ? (Key)order.key(elements[start + at]) : (Key) ~(Key)0, at);
        }
        __syncthreads();
        sort_items(items, padded);
        for (u32 at = threadIdx.x; at < length; at += THREADS) {
            const u32 position = items[at].position();
            if ((flags & HAS_POSITIONS) != 0) positions[start + at] = (i64)position;
            if ((flags & HAS_VALUES) != 0) sorted[start + at] = elements[start + position];
        }
        __syncthreads();
    }
}

// The parts of the workspace.
__device__ inline u32* histogram_of(u32* workspace, u64 row, u32 pass, u32 passes) {
    return workspace + MAXIMUM_PASSES + (row * passes + pass) * DIGITS;
}

template <typename Bits>
__device__ inline void make_histograms(const Bits* elements, u32* workspace, u64 length, u32 chunks, u32 passes,
                                       Order<Bits> order) {
    enum { BATCH = 8, MOST = sizeof(Bits) };
    __shared__ u32 bins[MOST][DIGITS];
    const u64 row = blockIdx.x / chunks, chunk = blockIdx.x % chunks;
    const u64 start = length * chunk / chunks, end = length * (chunk + 1) / chunks;
    const Bits* own = elements + row * length;
#pragma unroll
    for (u32 pass = 0; pass < MOST; pass++) bins[pass][threadIdx.x] = 0;
    __syncthreads();
    for (u64 first = start + threadIdx.x; first < end; first += BATCH * THREADS) {
        Bits element[BATCH];
#pragma unroll
        for (u32 item = 0; item < BATCH; item++) {
            const u64 at = first + item * THREADS;
            element[item] = at < end ? own[at] : (Bits)0;
        }
#pragma unroll
        for (u32 item = 0; item < BATCH; item++) {
            const Bits key = order.key(element[item]);
            if (first + item * THREADS < end) {
#pragma unroll
                for (u32 pass = 0; pass < MOST; pass++) {
                    if (pass < passes) atomicAdd(&bins[pass][(u32)(key >> (pass * DIGIT_BITS)) & (DIGITS - 1)], 1u);
                }
            }
        }
    }
    __syncthreads();
    for (u32 pass = 0; pass < passes; pass++) {
        const u32 count = bins[pass][threadIdx.x];
        if (count != 0) atomicAdd(histogram_of(workspace, row, pass, passes) + threadIdx.x, count);
    }
}

// The place of a tile's first element with a digit, from the words of earlier tiles of the row; `word` is that of the tile before.
__device__ inline u32 look_back(const volatile u32* word, u32 inclusive) {
    u32 counts = 0;
    for (;; word -= DIGITS) {
        u32 found;
        do {
            found = *word;
        } while (found == 0);
        if (found >= inclusive) return counts + (found - inclusive);
        counts += found - 1;
    }
}

// Hides from the compilers that a number is the one from before. They would keep a register or a predicate for each item's
// comparison from loop to loop, more than there are, where they can compare again. All lanes call it.
__device__ inline u32 hidden(u32 number) { return __shfl_sync(ALL_LANES, number, (int)(threadIdx.x % 32)); }

template <u32 Elements, typename Bits>
union Staged {
    Bits elements[Elements];
    u32 positions[Elements];
};

template <u32 Threads, u32 Items, typename Bits>
__device__ inline void sort_pass(const Bits* elements, const u32* positions, Bits* sorted, void* sorted_positions, u32* workspace,
                                 const PassRun& run, Order<Bits> order) {
    enum { WARPS = Threads / 32, INCLUSIVE = Threads * Items + 2 };
    __shared__ Staged<Threads * Items, Bits> staged;
    __shared__ u8 digits[Threads * Items];
    __shared__ u32 counters[WARPS][DIGITS];
    __shared__ u32 places[DIGITS];
    __shared__ u32 sums[WARPS];
    __shared__ u32 own_ticket;
    const u32 thread = threadIdx.x, lane = thread % 32, warp = thread / 32, shift = run.pass * DIGIT_BITS;
    if (thread == 0) own_ticket = atomicAdd(&workspace[run.pass], 1u);
    for (u32 at = thread; at < WARPS * DIGITS; at += Threads) ((u32*)counters)[at] = 0;
    __syncthreads();
    const u32 ticket = own_ticket, tile = ticket % run.tiles;
    const u64 row = ticket / run.tiles;
    const u32 start = tile * (Threads * run.items);
    const u64 left = run.length - start;
    const u32 count = left < Threads * run.items ? (u32)left : Threads * run.items;
    // The warps share a tile that is not whole evenly. A warp's elements are neighbours: the thread has those at first + 32 * item
    // where 32 * item < own.
    const u32 of_warp = (count + Threads - 1) / Threads * 32;
    const u32 first = warp * of_warp + lane;
    const u32 end = (warp + 1) * of_warp < count ? (warp + 1) * of_warp : count;
    u32 own = first < end ? end - first : 0;
    elements += row * run.length + start + first;
    positions += row * run.length + start + first;
    Bits element[Items];
#pragma unroll
    for (u32 item = 0; item < Items; item++) {
        element[item] = item * 32 < own ? elements[item * 32] : (Bits)0;
    }
#pragma unroll
    for (u32 item = 0; item < Items; item++) {
        if (item * 32 < own) atomicAdd(&counters[warp][digit_of(order, element[item], shift)], 1u);
    }
    __syncthreads();
    // A thread has a digit.
    const bool has_digit = thread < DIGITS;
    u32 of_tile = 0;
    if (has_digit) {
#pragma unroll
        for (u32 other = 0; other < WARPS; other++) of_tile += counters[other][thread];
    }
    u32 total, place = 0;
    if (tile == 0) {
        const u32* histogram = histogram_of(workspace, row, run.pass, run.passes);
        place = exclusive_sum<WARPS>(has_digit ? histogram[thread] : 0, sums, total);
    }
    u32* words = histogram_of(workspace, run.rows, 0, run.passes);
    const u64 word = (u64)ticket * DIGITS + thread, all_words = (u64)gridDim.x * DIGITS;
    volatile u32* own_word = words + (run.pass % 2 != 0 ? all_words : 0) + word;
    if (has_digit) {
        *own_word = tile == 0 ? INCLUSIVE + place + of_tile : 1 + of_tile;
        words[(run.pass % 2 != 0 ? 0 : all_words) + word] = 0;
    }
    const u32 first_of_digit = exclusive_sum<WARPS>(of_tile, sums, total);
    if (has_digit) {
        u32 next = first_of_digit;
#pragma unroll
        for (u32 other = 0; other < WARPS; other++) {
            const u32 of_warp = counters[other][thread];
            counters[other][thread] = next;
            next += of_warp;
        }
    }
    __syncthreads();
    own = hidden(own);
    // The place of each element in the sorted tile.
    u32 slot[Items];
#pragma unroll
    for (u32 item = 0; item < Items; item++) {
        const bool here = item * 32 < own;
        const u32 digit = digit_of(order, element[item], shift);
        // The lanes with the same digit.
        u32 peers = __ballot_sync(ALL_LANES, here);
#pragma unroll
        for (u32 bit = 0; bit < DIGIT_BITS; bit++) {
            const bool is_set = (digit >> bit & 1) != 0;
            const u32 votes = __ballot_sync(ALL_LANES, is_set);
            peers &= is_set ? votes : ~votes;
        }
        const u32 before = (u32)__popc(peers & ((1u << lane) - 1));
        const u32 earlier = counters[warp][digit];
        __syncwarp();
        if (here && before == 0) counters[warp][digit] = earlier + (u32)__popc(peers);
        __syncwarp();
        slot[item] = earlier + before;
        if (here) {
            staged.elements[slot[item]] = element[item];
            digits[slot[item]] = (u8)digit;
        }
    }
    const bool is_last = (run.flags & IS_LAST) != 0, has_positions = (run.flags & HAS_POSITIONS) != 0;
    const bool reads_positions = has_positions && (run.flags & IS_FIRST) == 0;
    own = hidden(own);
    // On their way while the block looks back.
    u32 position[Items];
#pragma unroll
    for (u32 item = 0; item < Items; item++) {
        position[item] = start + first + item * 32;
        if (reads_positions && item * 32 < own) position[item] = positions[item * 32];
    }
    if (has_digit) {
        if (tile != 0) {
            place = look_back(own_word - DIGITS, INCLUSIVE);
            *own_word = INCLUSIVE + place + of_tile;
        }
        places[thread] = place - first_of_digit;
    }
    __syncthreads();
    sorted += row * run.length;
    if (!is_last || (run.flags & HAS_VALUES) != 0) {
#pragma unroll 4
        for (u32 at = thread; at < count; at += Threads) sorted[places[digits[at]] + at] = staged.elements[at];
    }
    if (!has_positions) return;
    __syncthreads();
    own = hidden(own);
#pragma unroll
    for (u32 item = 0; item < Items; item++) {
        if (item * 32 < own) staged.positions[slot[item]] = position[item];
    }
    __syncthreads();
    if (is_last) {
        i64* target = (i64*)sorted_positions + row * run.length;
#pragma unroll 4
        for (u32 at = thread; at < count; at += Threads) target[places[digits[at]] + at] = (i64)staged.positions[at];
    } else {
        u32* target = (u32*)sorted_positions + row * run.length;
#pragma unroll 4
        for (u32 at = thread; at < count; at += Threads) target[places[digits[at]] + at] = staged.positions[at];
    }
}

template <typename Bits>
__device__ inline void search(const Bits* sequences, const Bits* values, i64* positions, u64 length, u64 per_row, u64 n,
                              u32 right, Order<Bits> order) {
    for (u64 i = first_thread(); i < n; i += all_threads()) {
        const Bits* sequence = sequences + i / per_row * length;
        const Bits value = order.key(values[i]);
        u64 low = 0, high = length;
        while (low < high) {
            const u64 middle = low + (high - low) / 2;
            const Bits other = order.key(sequence[middle]);
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

#define SORTS(bits, Bits)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                      \
        sort_rows_##bits(const void* elements, i64* positions, void* sorted, u64 rows, u32 length, u32 padded,             \
                         u32 flags, u32 kind, u64 infinity, u32 descending) {                                              \
        sort_rows((const Bits*)elements, positions, (Bits*)sorted, rows, length, padded, flags,                            \
                  Order<Bits>(kind, infinity, descending));                                                                \
    }                                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                                                      \
        sort_histogram_##bits(const void* elements, u32* workspace, u64 length, u32 chunks, u32 passes, u32 kind,          \
                              u64 infinity, u32 descending) {                                                              \
        make_histograms((const Bits*)elements, workspace, length, chunks, passes, Order<Bits>(kind, infinity, descending)); \
    }                                                                                                                      \
    extern "C" __global__ void __launch_bounds__(Pass<Bits>::THREADS, sizeof(Bits) == 4 ? 3 : 2)                           \
        sort_pass_##bits(const void* elements, const u32* positions, void* sorted, void* sorted_positions,                 \
                         u32* workspace, PassRun run) {                                                                    \
        sort_pass<Pass<Bits>::THREADS, Pass<Bits>::ITEMS>((const Bits*)elements, positions, (Bits*)sorted,                 \
                                                          sorted_positions, workspace, run,                                \
                                                          Order<Bits>(run.kind, run.infinity, run.descending));            \
    }                                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                                                      \
        sort_search_##bits(const void* sequences, const void* values, i64* positions, u64 length, u64 per_row, u64 n,      \
                           u32 right, u32 kind, u64 infinity, u32 descending) {                                            \
        search((const Bits*)sequences, (const Bits*)values, positions, length, per_row, n, right,                          \
               Order<Bits>(kind, infinity, descending));                                                                   \
    }

SORTS(8, u8)
SORTS(16, u16)
SORTS(32, u32)
SORTS(64, u64)
