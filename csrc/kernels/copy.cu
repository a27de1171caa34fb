// Copies between two layouts of up to 8 dimensions: makes a view contiguous, or writes into a view.
//
// Entries: copy_strided_{8,16,32,64,128}(source, destination, layout, n), by the element's bits. n is the product of the
// shape. `Layout` is the Rust side's `images::StridedLayout`: dimension 0 is the innermost, the fastest to vary (the
// last of a row-major shape); strides and offsets are in elements and may be negative or, in the source, 0. No two
// elements of the destination may be one, and source and destination may not overlap.
//
// The Rust side drops dimensions of 1 and merges those that lie behind one another in both, so that a copy which is
// contiguous inside has long inner runs; and where all of it allows, several elements can be copied as one wider
// one. Threads run along the destination: its innermost stride should be 1. A source that is transposed is read in
// whole sectors for single elements; the tiled form is the elementwise compiler's.
//
// A thread takes `items_per_thread` elements, a block apart, all loads first (elementwise.cuh says why). An index is taken
// apart by 32-bit divisions, for all items of a thread by one dimension at a time, so that they share the reciprocal;
// arrays of 2^32 elements and more take the 64-bit loop, one element at a time. An address that is no multiple of the
// element's size (complex numbers need only the alignment of their parts) is read and written in halves.
//
// At most 512 threads a block: the items' addresses need the registers.
//
// | version | what | speed |
// |---|---|---|
// | 1 | as above | measured: see benches/RESULTS.md |
#include "elementwise.cuh"

namespace {

struct Layout {
    u64 shape[8];
    i64 source_stride[8];
    i64 destination_stride[8];
    i64 source_offset;
    i64 destination_offset;
    u64 rank;
};

// An element as one access, or as two.
template <typename Word>
struct Whole {
    Word word;
};
template <typename Word>
struct Halves {
    Word low;
    Word high;
};

template <typename Element>
__device__ inline void copy(const Element* source, Element* destination, const Layout& layout, u64 n) {
    constexpr int items = items_per_thread(sizeof(Element));
    source += layout.source_offset;
    destination += layout.destination_offset;
    const u32 rank = (u32)layout.rank;
    if (n <= 0xffffffffu) {
        const u64 step = (u64)gridDim.x * blockDim.x * items;
#pragma unroll 1
        for (u64 base = (u64)blockIdx.x * blockDim.x * items + threadIdx.x; base < n; base += step) {
            u32 rest[items];
            i64 from[items], to[items];
#pragma unroll
            for (int k = 0; k < items; k++) {
                rest[k] = (u32)base + k * blockDim.x;
                from[k] = 0;
                to[k] = 0;
            }
#pragma unroll 1
            for (u32 dimension = 0; dimension < rank; dimension++) {
                const u32 size = (u32)layout.shape[dimension];
                const i64 source_stride = layout.source_stride[dimension];
                const i64 destination_stride = layout.destination_stride[dimension];
#pragma unroll
                for (int k = 0; k < items; k++) {
                    const u32 next = rest[k] / size;
                    const i64 index = rest[k] - next * size;
                    from[k] += index * source_stride;
                    to[k] += index * destination_stride;
                    rest[k] = next;
                }
            }
            Element element[items];
#pragma unroll
            for (int k = 0; k < items; k++) {
                if (base + k * blockDim.x < n) element[k] = source[from[k]];
            }
#pragma unroll
            for (int k = 0; k < items; k++) {
                if (base + k * blockDim.x < n) destination[to[k]] = element[k];
            }
        }
        return;
    }
    const u64 threads = (u64)gridDim.x * blockDim.x;
#pragma unroll 1
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) {
        u64 rest = i;
        i64 from = 0, to = 0;
#pragma unroll 1
        for (u32 dimension = 0; dimension < rank; dimension++) {
            const u64 size = layout.shape[dimension];
            const u64 next = rest / size;
            const i64 index = (i64)(rest - next * size);
            from += index * layout.source_stride[dimension];
            to += index * layout.destination_stride[dimension];
            rest = next;
        }
        destination[to] = source[from];
    }
}

}  // namespace

#define SIGNATURE(bits)                                                                                       \
    extern "C" __global__ void __launch_bounds__(512)                                                         \
        copy_strided_##bits(const void* source, void* destination, Layout layout, u64 n)

#define ENTRY(bits, whole)                                                                                    \
    SIGNATURE(bits) { copy((const Whole<whole>*)source, (Whole<whole>*)destination, layout, n); }

#define ENTRY_OR_HALVES(bits, whole, half)                                                                    \
    SIGNATURE(bits) {                                                                                         \
        if (is_aligned<bits / 8>(source) && is_aligned<bits / 8>(destination)) {                              \
            copy((const Whole<whole>*)source, (Whole<whole>*)destination, layout, n);                         \
        } else {                                                                                              \
            copy((const Halves<half>*)source, (Halves<half>*)destination, layout, n);                         \
        }                                                                                                     \
    }

ENTRY(8, u8)
ENTRY(16, u16)
ENTRY(32, u32)
ENTRY_OR_HALVES(64, uint2, u32)
ENTRY_OR_HALVES(128, uint4, u64)
