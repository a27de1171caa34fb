// Finds which of the elements that go to one place is the last: the first half of a scatter with duplicates.
//
// Entries: scatter_mark_{i32,i64}(indices, marks, first, count, space, n, report), by the type of the indices. marks, 0
// before, moved along the axis by the index, becomes the greatest position (from 1) that leads there. Of all marks, only
// the `count` from `first` on are touched. An index that is out of range marks nothing; `report` is told unless it is
// null. The space is indexed.cuh's, with the operands indices, marks and the position along the axis, which must stay
// below 2^32 - 1.
//
// Why in two halves: one kernel's threads write in any order. The greatest position is the same in every order.
//
// Why a part of the marks: a maximum outside of the L2 cache moves a sector of memory there and back, in random order, and
// reading the index once more for another part that fits moves 4 or 8 bytes, one behind the other.
//
// | version | what | speed |
// |---|---|---|
// | 1 | an atomic maximum for each index | with scatter_last 1935 us for 2^24 f32 in random order |
// | 2 | as many sweeps over the index as parts of the marks fit into the cache | with scatter_marked 641 us |
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
