// marks[moved along an axis by indices] = the greatest position that leads there: the first half of a scatter with duplicates.
//
// Entries: scatter_mark_{i32,i64}(indices, marks, first, count, space, n, report), by the type of the indices. `marks` is 0 before, and
// positions count from 1. Only the `count` marks from `first` on are changed. An index that is out of range marks nothing and is
// reported unless `report` is null. The operands of the space (indexed.cuh) are indices, marks and the position along the axis, below
// 2^32 - 1.
//
// Launch: at most 512 threads a block, a grid of any size, no shared memory.
//
// Algorithm: an atomic maximum, which has the same result in any order of threads; one kernel that also wrote the elements would not. The
// host sweeps over parts of the marks that fit the L2 cache: an atomic outside of it moves a sector to memory and back, and reading
// the index once more moves 4 or 8 bytes.
//
// | version | change | 2^24 f32 in random order, H200 |
// |---|---|---|
// | 1 | one sweep | with scatter_last 1935 us |
// | 2 | as many sweeps as parts of the marks fit the L2 cache | with scatter_marked 641 us |
#include "indexed.cuh"

namespace {

template <typename Index>
struct Mark {
    const Index* indices;
    u32* marks;
    u64 first;
    u64 count;
    Report* report;

    template <typename Place, int Items>
    __device__ inline void operator()(Places<Place, 3, Items>& places, bool (&here)[Items],
                                      const Space& space) const {
        follow(places, here, indices, space, report);
#pragma unroll
        for (int k = 0; k < Items; k++) {
            const u64 mark = (u64)places.at(1, k);
            if (here[k] && mark - first < count) atomicMax(marks + mark, (u32)places.at(2, k) + 1);
        }
    }
};

}  // namespace

#define ENTRY(index)                                                                                          \
    extern "C" __global__ void __launch_bounds__(512)                                                         \
        scatter_mark_##index(const void* indices, u32* marks, u64 first, u64 count, Space space, u64 n,       \
                             Report* report) {                                                                \
        for_each<3>(space, n, Mark<index>{(const index*)indices, marks, first, count, report});               \
    }

ENTRY(i32)
ENTRY(i64)
