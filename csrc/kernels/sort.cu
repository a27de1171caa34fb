// Stable sort of rows, with positions or without, and binary search in sorted rows.
//
//     positions[r, i] = the position p of the i-th element of row r in the order of (key[r, p], p)
//     sorted[r, i] = elements[r, positions[r, i]]
//
// A key is an unsigned integer. Keys have the order of their elements; `kind`, `infinity` and `descending` select the map (`Order` in
// sort.cuh, src/sort/key.rs). Rows are contiguous and have `length` < 2^32 elements.
//
// Entries, each for elements of 8, 16, 32 and 64 bits (the functions below document the arguments):
// - sort_rows_*: sorts rows of at most 2048 elements, a block a row, by a bitonic network in shared memory (Batcher 1968).
// - sort_histogram_*, then sort_pass_* for each 8-bit digit of the key: sort longer rows, by the least significant digit first.
// - sort_search_*: searches values in sorted rows.
//
// Launch: blocks of 256 threads, and of `Pass<Bits>::THREADS` for a pass; no dynamic shared memory.
//
// Algorithm of a pass: onesweep (Adinets and Merrill 2022) with decoupled look-back (Merrill and Garland 2016), which reads and writes each
// element once. A tile is the elements of a block. The block takes a tile by an atomic ticket, and counts and publishes its digits. Each
// element gets a slot in the sorted tile: warp votes find the lanes with the same digit. One thread a digit looks back: it adds the
// counts of earlier tiles of the row, until it meets a tile that has published the sum of all before it. The first tile of a row
// starts from the histogram. The elements go to global memory in the order of the sorted tile, through shared memory, so adjacent
// threads write adjacent elements. Memory holds elements, not keys: each pass computes the keys again.
//
// Invariants: no result depends on the order of blocks or threads: atomics add integers only. A tile's elements are ranked in memory
// order (by warp, then item, then lane), so each pass is stable. All threads of a warp vote. A block waits only for tiles with lower
// tickets, whose blocks run already and publish their counts before they wait. A pass clears the look-back words of the next one.
// Measurements: docs/performance-notes.md.
#include "block_sum.cuh"
#include "sort.cuh"

namespace {

enum { DIGIT_BITS = 8, DIGITS = 256, MAXIMUM_ROW = 2048, MAXIMUM_PASSES = 8 };
// Flags: the first and the last pass of a radix sort; `sorted` is a result; positions are a result.
enum { IS_FIRST = 1, IS_LAST = 2, HAS_VALUES = 4, HAS_POSITIONS = 8 };

// Threads of a block of a pass, and the most elements of a thread; src/sort/onesweep.rs has the same numbers.
template <typename Bits>
struct Pass {
    enum { THREADS = 384, ITEMS = sizeof(Bits) > 4 ? 10 : 14 };
};

// The parameter of a pass; exactly `PassRun` of src/sort/onesweep.rs. `tiles` and `items` are the tiles of a row and the elements of a
// thread; `pass` is the number of the pass, 0 for the lowest digit.
struct PassRun {
    u64 length, infinity;
    u32 rows, tiles, items, pass, passes, flags, kind, descending;
};

// The type of keys in `sort_rows`: 32 bits for elements of 8 and 16 bits too.
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

// Returns the digit of an element's key that begins at bit `shift`.
template <typename Bits>
__device__ inline u32 digit_of(const Order<Bits>& order, Bits bits, u32 shift) {
    return (u32)(order.key(bits) >> shift) & (DIGITS - 1);
}

// Sorts rows of length <= padded <= 2048, a block a row, in grids of any size. `padded` is a power of two, as the bitonic network needs.
// `sorted` is written with HAS_VALUES, `positions` with HAS_POSITIONS.
template <typename Bits>
__device__ inline void sort_rows(const Bits* elements, i64* positions, Bits* sorted, u64 rows, u32 length, u32 padded,
                                 u32 flags, Order<Bits> order) {
    typedef typename Narrow<Bits>::Key Key;
    __shared__ Item<Key> items[MAXIMUM_ROW];
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const u64 start = row * length;
        for (u32 at = threadIdx.x; at < padded; at += THREADS) {
            // Padding sorts behind all elements: it has the largest key, and of equal keys the larger position comes later.
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

// Returns the histogram of a row and pass in the workspace of a radix sort. The workspace is u32 numbers, 0 when sort_histogram starts:
//     tickets[8], one a pass
//     histograms[row][pass][256]
//     words[2][row][tile][256], for the look-back of even and of odd passes
__device__ inline u32* histogram_of(u32* workspace, u64 row, u32 pass, u32 passes) {
    return workspace + MAXIMUM_PASSES + (row * passes + pass) * DIGITS;
}

// Counts the elements of each row by each digit of the key, for the `passes` lowest digits. Block = row * chunks + chunk; a chunk is a
// share of the row.
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

// Returns the place in the sorted row of a tile's first element with a digit, from the words of earlier tiles of the row. `word` is that of
// the tile before this one, and INCLUSIVE is passed as `inclusive`.
//
// The word of a tile and digit is 0 before it is published. A count c of the tile's own elements is published as 1 + c, and the place p
// behind the tile's last element with the digit as INCLUSIVE + p. A word holds the state and the number, so no order with other
// memory is needed. Volatile accesses are enough: the hardware reads and writes an aligned word of four bytes as a whole, in the L2
// cache, which all multiprocessors share.
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

// Returns the number, and hides from the compiler that it is the same. The compiler would otherwise keep the results of the comparisons
// with `own` from loop to loop, in more registers than there are, instead of comparing again. All lanes call it.
__device__ inline u32 hidden(u32 number) { return __shfl_sync(ALL_LANES, number, (int)(threadIdx.x % 32)); }

// The elements of a tile in sorted order, and later their positions, on the way to global memory.
template <u32 Elements, typename Bits>
union Staged {
    Bits elements[Elements];
    u32 positions[Elements];
};

// One pass of a radix sort, by digit number run.pass of the key. Grid = rows * tiles, for tiles of Threads * run.items elements.
//
// The pass with IS_FIRST reads no positions: they are the indices of the elements. The pass with IS_LAST writes positions of 64 bits
// (others: 32), and writes `sorted` only with HAS_VALUES. Without HAS_POSITIONS no pass reads or writes positions.
template <u32 Threads, u32 Items, typename Bits>
__device__ inline void sort_pass(const Bits* elements, const u32* positions, Bits* sorted, void* sorted_positions, u32* workspace,
                                 const PassRun& run, Order<Bits> order) {
    enum { WARPS = Threads / 32, INCLUSIVE = Threads * Items + 2 };
    __shared__ Staged<Threads * Items, Bits> staged;
    __shared__ u8 digits[Threads * Items];    // Of the elements in `staged`.
    __shared__ u32 counters[WARPS][DIGITS];   // Counts, then the next free slot in `staged`, of each warp and digit.
    __shared__ u32 places[DIGITS];            // A slot in `staged` plus this is the place in the sorted row.
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
    // A warp's elements are contiguous, and the warps share an incomplete tile evenly. The thread has the elements of the tile at
    // first + 32 * item, for each item with 32 * item < own.
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
    // From here on, each of the first DIGITS threads has a digit, its number.
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
    // The slot of each element in the sorted tile. Lanes with the same digit take consecutive slots, in order of their lanes.
    u32 slot[Items];
#pragma unroll
    for (u32 item = 0; item < Items; item++) {
        const bool here = item * 32 < own;
        const u32 digit = digit_of(order, element[item], shift);
        // The lanes with the same digit, found bit by bit.
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
    // These loads overlap the look-back.
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

// Counts, for each of n values, the elements before it (`right`: before or equal to it) in its row, which is value index / per_row.
// `sequences` are the sorted rows. Grids of any size.
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
