// Counts of elements in bins, from elements to counts in one kernel.
//
//     counts[b] += the number of i in 0..n with bin(elements[i]) = b
//
// Entries (`n` contiguous elements, any alignment of a whole element; `counts` has `bins` numbers):
//
// - histogram_range_{f16,bf16,f32,f64}(elements, n, counts, bins, shift, range): bins of equal width,
//   bin(x) = min(floor((x - least) / width * count), count - 1) for least <= x <= most, each operation rounded to f64.
// - histogram_edges_{f32,f64}(elements, n, counts, bins, shift, edges, is_staged): edges[b] <= x < edges[b + 1], and the last bin
//   holds its upper edge. `edges` has bins + 1 sorted elements, with copies in shared memory if `is_staged` is not 0.
// - histogram_index_{i32,i64}(elements, n, counts, bins, shift): bin(x) = x.
//
// Other elements and NaN are in no bin.
//
// Launch: blocks of 512 threads. A block has 2^shift counters a bin in dynamic shared memory, behind the copies of the edges, or
// none if `shift` is 32: atomics then go to `counts`. A block sees fewer than 2^32 elements.
//
// Algorithm: privatised counters (Podlozhnyuk, Histogram calculation in CUDA, 2007), with 2^shift copies for the lanes of a warp. With
// 32 copies each lane has a bank of its own, so no atomic meets another one of its warp. The bin of an f32 comes from f32 arithmetic;
// only if the result is as close to a whole number as its error may be, the kernel reads the element again and takes the f64
// rule. Edges are guessed as if they had equal distances; a guess that the edges beside it refute takes a binary search.
//
// Invariants: the bin of an element is that of the rule exactly. No result depends on the order of blocks or threads, because
// atomics add integers only.
//
// | version | change | bytes an element (f32) |
// |---|---|---|
// | 1 | one kernel from elements to counts | 4, instead of 20 |
#include "numbers.cuh"
#include "vectors.cuh"

extern __shared__ unsigned char shared_memory[];

namespace {

enum { THREADS = 512, LOADS = 4, NO_COPIES = 32 };

// Bins that no array has: of elements outside, and of those for which the exact rule must decide.
template <typename Bin>
struct NoBin {
    __device__ static inline Bin outside() { return (Bin)-1; }
    __device__ static inline Bin unsure() { return (Bin)-2; }
};

// An estimate of a bin with an absolute error below `margin`. Real numbers from `low` to `high` are in a bin.
template <typename Real>
struct Estimate {
    Real low, high, base, scale, margin;
};

// Exactly `RangeRule` of src/sort/histogram.rs.
struct Range {
    f64 least, width, count;
    Estimate<f64> wide;
    Estimate<f32> narrow;
    u32 unused;
};

template <typename Real>
__device__ inline const Estimate<Real>& estimate_of(const Range& range);
template <>
__device__ inline const Estimate<f32>& estimate_of<f32>(const Range& range) {
    return range.narrow;
}
template <>
__device__ inline const Estimate<f64>& estimate_of<f64>(const Range& range) {
    return range.wide;
}

__device__ inline f32 whole(f32 x) { return floorf(x); }
__device__ inline f64 whole(f64 x) { return floor(x); }

template <typename Element, typename Real>
struct RangeBins {
    typedef u32 Bin;

    f64 least, width, count;
    Estimate<Real> estimate;

    __device__ inline RangeBins(const Range& range)
        : least(range.least), width(range.width), count(range.count), estimate(estimate_of<Real>(range)) {}

    __device__ inline u32 guess(Element element) const {
        const Real x = (Real)widened(element);
        if (!(x >= estimate.low && x <= estimate.high)) return NoBin<Bin>::outside();
        const Real place = (x - estimate.base) * estimate.scale, below = whole(place), part = place - below;
        return part >= estimate.margin && part <= 1 - estimate.margin ? (u32)below : NoBin<Bin>::unsure();
    }

    __device__ inline u32 exact(Element element) const {
        const f64 bin = floor(((f64)widened(element) - least) / width * count);
        return (u32)(bin < count - 1 ? bin : count - 1);
    }
};

template <typename Real>
struct EdgeBins {
    typedef u32 Bin;

    const Real* edges;
    Real low, high, scale, last;
    u32 bins;

    __device__ inline EdgeBins(const Real* all, u64 count)
        : edges(all), low(all[0]), high(all[count]), scale((Real)count / (high - low)), last((Real)(count - 1)),
          bins((u32)count) {}

    __device__ inline u32 guess(Real x) const {
        if (!(x >= low && x <= high)) return NoBin<Bin>::outside();
        const Real place = (x - low) * scale;
        // NaN, of edges at infinity, is place 0.
        u32 bin = place > 0 ? (u32)(place < last ? place : last) : 0;
        if (bin > bins - 1) bin = bins - 1;
        return edges[bin] <= x && x < edges[bin + 1] ? bin : NoBin<Bin>::unsure();
    }

    __device__ inline u32 exact(Real x) const {
        u32 low_edge = 0, high_edge = bins;
        // The last of the edges up to x; edge 0 is one.
        while (low_edge < high_edge) {
            const u32 middle = high_edge - (high_edge - low_edge) / 2;
            if (edges[middle] <= x) {
                low_edge = middle;
            } else {
                high_edge = middle - 1;
            }
        }
        return low_edge < bins ? low_edge : bins - 1;
    }
};

template <typename Index>
struct IndexBins {
    typedef u64 Bin;

    u64 bins;

    __device__ inline u64 guess(Index index) const {
        return (u64)(i64)index < bins ? (u64)index : NoBin<Bin>::outside();
    }
    __device__ inline u64 exact(Index index) const { return (u64)index; }
};

struct Counters {
    u32* own;
    u64* counts;
    u32 shift, copy;

    __device__ inline void add(u64 bin) const {
        if (shift == NO_COPIES) {
            atomicAdd(&counts[bin], (u64)1);
        } else {
            atomicAdd(&own[((u32)bin << shift) + copy], 1u);
        }
    }
};

// Adds the bins of the elements to the counts; `own` is the memory of the block's counters.
template <typename Element, typename Bins>
__device__ inline void count(const Element* elements, u64 n, u64* counts, u64 bins, u32 shift, u32* own, const Bins& rule) {
    typedef typename Bins::Bin Bin;
    const Bin outside = NoBin<Bin>::outside(), is_unsure = NoBin<Bin>::unsure();
    enum { ITEMS = 16 / sizeof(Element), TILE = THREADS * LOADS };
    const bool is_shared = shift != NO_COPIES;
    const u32 copies = is_shared ? 1u << shift : 0, slots = is_shared ? (u32)bins << shift : 0;
    for (u32 slot = threadIdx.x; slot < slots; slot += THREADS) own[slot] = 0;
    __syncthreads();
    const Counters counters = {own, counts, shift, threadIdx.x & (copies - 1)};

    // Packs of 16 bytes in tiles, and the elements ahead of them and behind.
    const u64 unaligned = (16 - (u64)elements % 16) % 16 / sizeof(Element), head = unaligned < n ? unaligned : n;
    const u64 tiles = (n - head) / (TILE * ITEMS), others = n - tiles * (TILE * ITEMS);
    const Element* body = elements + head;
    for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const Element* own_body = body + tile * (TILE * ITEMS) + threadIdx.x * ITEMS;
        Pack<Element, ITEMS> pack[LOADS];
        u32 unsure = 0;
#pragma unroll
        for (u32 load = 0; load < LOADS; load++) load_pack(pack[load], own_body + load * (THREADS * ITEMS));
#pragma unroll
        for (u32 load = 0; load < LOADS; load++) {
#pragma unroll
            for (u32 item = 0; item < ITEMS; item++) {
                const Bin bin = rule.guess(pack[load].item[item]);
                if (bin < is_unsure) counters.add(bin);
                if (bin == is_unsure) unsure |= 1u << (load * ITEMS + item);
            }
        }
        while (unsure != 0) {
            const u32 at = (u32)__ffs((int)unsure) - 1;
            unsure &= unsure - 1;
            counters.add(rule.exact(own_body[at / ITEMS * (THREADS * ITEMS) + at % ITEMS]));
        }
    }
    for (u64 i = (u64)blockIdx.x * THREADS + threadIdx.x; i < others; i += (u64)gridDim.x * THREADS) {
        const Element element = elements[i < head ? i : i + tiles * (TILE * ITEMS)];
        const Bin bin = rule.guess(element);
        if (bin != outside) counters.add(bin == is_unsure ? rule.exact(element) : bin);
    }

    __syncthreads();
    for (u32 bin = threadIdx.x; is_shared && bin < bins; bin += THREADS) {
        u32 sum = 0;
        // From another copy in each thread, so that neighbours read other banks.
        for (u32 k = 0; k < copies; k++) sum += own[(bin << shift) + ((bin + k) & (copies - 1))];
        if (sum != 0) atomicAdd(&counts[bin], (u64)sum);
    }
}

template <typename Real>
__device__ inline void count_between(const Real* elements, u64 n, u64* counts, u64 bins, u32 shift, const Real* edges,
                                     u32 is_staged) {
    Real* copies = (Real*)shared_memory;
    u32* own = (u32*)(copies + (is_staged != 0 ? bins + 1 : 0));
    if (is_staged != 0) {
        for (u32 at = threadIdx.x; at <= bins; at += THREADS) copies[at] = edges[at];
        __syncthreads();
    }
    count(elements, n, counts, bins, shift, own, EdgeBins<Real>(is_staged != 0 ? copies : edges, bins));
}

}  // namespace

#define RANGE(name, Element, Real)                                                                                        \
    extern "C" __global__ void __launch_bounds__(512, 2) histogram_range_##name(const void* elements, u64 n, u64* counts,    \
                                                                             u64 bins, u32 shift, Range range) {          \
        count((const Element*)elements, n, counts, bins, shift, (u32*)shared_memory, RangeBins<Element, Real>(range));    \
    }

RANGE(f16, f16, f32)
RANGE(bf16, bf16, f32)
RANGE(f32, f32, f32)
RANGE(f64, f64, f64)

#define EDGES(Real)                                                                                                       \
    extern "C" __global__ void __launch_bounds__(512, 2)                                                                     \
        histogram_edges_##Real(const void* elements, u64 n, u64* counts, u64 bins, u32 shift, const void* edges,          \
                               u32 is_staged) {                                                                           \
        count_between((const Real*)elements, n, counts, bins, shift, (const Real*)edges, is_staged);                      \
    }

EDGES(f32)
EDGES(f64)

#define INDEX(Index)                                                                                                      \
    extern "C" __global__ void __launch_bounds__(512, 2)                                                                     \
        histogram_index_##Index(const Index* elements, u64 n, u64* counts, u64 bins, u32 shift) {                         \
        count(elements, n, counts, bins, shift, (u32*)shared_memory, IndexBins<Index>{bins});                             \
    }

INDEX(i32)
INDEX(i64)
