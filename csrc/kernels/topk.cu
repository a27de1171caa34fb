// The first k elements of each row in sorted order, without sorting the row.
//
//     positions[r, i] = the position p of the i-th element of row r in the order of (key[r, p], p), for i < k
//
// Entries (rows are contiguous and have `length` < 2^32 elements; keys are those of src/sort/key.rs):
//
// - topk_elements_{8,16,32,64}(elements, first_keys, first_positions, positions, run, kind, infinity, descending): of elements of so
//   many bits.
// - topk_items_{32,64}(keys, key_positions, first_keys, first_positions, positions, run): of keys with their positions, which an earlier
//   launch has written as its first ones.
//
// A row is cut into `segments` of `segment` elements, block = row * segments + number of the segment. A block writes the first k of
// its segment to the k places of its own: keys and u32 positions, with all bits set behind the last element, or i64 positions only if
// `run.is_last` is not 0. `run.capacity` is a power of two, and k < capacity <= 2048.
//
// Launch: blocks of 256 threads, no dynamic shared memory.
//
// Algorithm: block select (Johnson, Douze and Jegou, Billion-scale similarity search with GPUs, 2017) with a shared buffer. A block
// reads its segment once. Elements before a threshold are appended to the buffer. A full buffer is sorted, and the k-th item is
// the new threshold, so in random order an element is appended with probability k / elements read before. Sorted input is the
// worst: each capacity - k elements then take one sort of the buffer.
//
// Invariants: the order of items is total, so the k first ones do not depend on the order in which they were appended. An element
// that found the buffer full is offered again behind the sort.
//
// | version | change | bytes an element (f32) |
// |---|---|---|
// | 1 | one read of the elements in place of a sort of each row | 4, instead of 100 and more |
#include "sort.cuh"

namespace {

enum { MAXIMUM_CAPACITY = 2048 };

// Exactly `TopKRun` of src/sort/topk.rs.
struct Run {
    u64 length, segment;
    u32 segments, k, capacity, is_last;
};

template <typename Key>
__device__ inline Item<Key> last_item() {
    Item<Key> item;
    item.set((Key) ~(Key)0, 0xffffffffu);
    return item;
}

// The memory that a block writes.
template <typename Key>
struct First {
    Key* keys;
    u32* positions;
    i64* wide_positions;
};

// Writes the first k of the items of the block's segment. `load` takes the place of an item among all rows and that in its row.
template <typename Key, typename Load>
__device__ inline void select_first(const Run& run, const First<Key>& out, const Load& load) {
    enum { ITEMS = sizeof(Key) == 4 ? 16 : 8 };
    __shared__ Item<Key> items[MAXIMUM_CAPACITY];
    __shared__ u32 filled;
    const u64 row = blockIdx.x / run.segments, start = blockIdx.x % run.segments * run.segment;
    const u64 left = run.length > start ? run.length - start : 0, count = left < run.segment ? left : run.segment;
    const u64 base = row * run.length + start;
    Item<Key> threshold = last_item<Key>();
    if (threadIdx.x == 0) filled = 0;
    __syncthreads();
    for (u64 first = 0; first < count; first += THREADS * ITEMS) {
        Item<Key> item[ITEMS];
        u32 pending = 0;
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            const u64 at = first + k * THREADS + threadIdx.x;
            item[k] = at < count ? load(base + at, (u32)(start + at)) : last_item<Key>();
        }
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) pending |= (item[k].before(threshold) ? 1u : 0u) << k;
        while (true) {
            if (pending != 0) {
                u32 slot = atomicAdd(&filled, (u32)__popc(pending));
#pragma unroll
                for (u32 k = 0; k < ITEMS; k++) {
                    if ((pending >> k & 1) != 0) {
                        if (slot < run.capacity) {
                            items[slot] = item[k];
                            pending &= ~(1u << k);
                        }
                        slot++;
                    }
                }
            }
            __syncthreads();
            const bool is_full = filled > run.capacity;
            __syncthreads();
            if (!is_full) break;
            sort_items(items, run.capacity);
            threshold = items[run.k - 1];
            if (threadIdx.x == 0) filled = run.k;
#pragma unroll
            for (u32 k = 0; k < ITEMS; k++) {
                if (!item[k].before(threshold)) pending &= ~(1u << k);
            }
            __syncthreads();
        }
    }
    const u32 found = filled;
    u32 padded = 1;
    while (padded < found || padded < run.k) padded <<= 1;
    for (u32 at = found + threadIdx.x; at < padded; at += THREADS) items[at] = last_item<Key>();
    __syncthreads();
    sort_items(items, padded);
    const u64 to = (u64)blockIdx.x * run.k;
    for (u32 at = threadIdx.x; at < run.k; at += THREADS) {
        const Item<Key> item = items[at];
        if (run.is_last != 0) {
            out.wide_positions[to + at] = (i64)item.position();
        } else {
            out.keys[to + at] = item.key();
            out.positions[to + at] = item.position();
        }
    }
}

template <typename Bits, typename Key>
struct LoadElement {
    const Bits* elements;
    Order<Bits> order;

    __device__ inline Item<Key> operator()(u64 at, u32 position) const {
        Item<Key> item;
        item.set((Key)order.key(elements[at]), position);
        return item;
    }
};

template <typename Key>
struct LoadItem {
    const Key* keys;
    const u32* positions;

    __device__ inline Item<Key> operator()(u64 at, u32) const {
        Item<Key> item;
        item.set(keys[at], positions[at]);
        return item;
    }
};

}  // namespace

#define ELEMENTS(bits, Bits, Key)                                                                                          \
    extern "C" __global__ void __launch_bounds__(256, 3)                                                                      \
        topk_elements_##bits(const void* elements, void* first_keys, u32* first_positions, i64* positions, Run run,        \
                             u32 kind, u64 infinity, u32 descending) {                                                     \
        select_first(run, First<Key>{(Key*)first_keys, first_positions, positions},                                        \
                     LoadElement<Bits, Key>{(const Bits*)elements, Order<Bits>(kind, infinity, descending)});              \
    }

ELEMENTS(8, u8, u32)
ELEMENTS(16, u16, u32)
ELEMENTS(32, u32, u32)
ELEMENTS(64, u64, u64)

#define ITEMS(bits, Key)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256, 3)                                                                      \
        topk_items_##bits(const void* keys, const u32* key_positions, void* first_keys, u32* first_positions,              \
                          i64* positions, Run run) {                                                                       \
        select_first(run, First<Key>{(Key*)first_keys, first_positions, positions},                                        \
                     LoadItem<Key>{(const Key*)keys, key_positions});                                                      \
    }

ITEMS(32, u32)
ITEMS(64, u64)
