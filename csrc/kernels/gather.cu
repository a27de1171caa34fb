// result = array gathered along an axis by an array of indices. One family for each size of a unit: compiled with -DBITS=<8 to 128>.
//
// Entries: gather_{i32,i64}(indices, array, result, space, n, report), by the type of the indices. Each of the n units of the space takes
// the array's unit at its place, moved along the axis by the index (indexed.cuh), or 0 and a report where the index is out of
// range. `report` may be null. The operands of the space are indices, array, result; the result overlaps neither of the others.
//
// Launch: at most 512 threads a block, a grid of any size, no shared memory.
//
// Algorithm: four units a thread, all indices first, then all loads, then all stores (indexed.cuh). benches/RESULTS.md has its speed.
#include "indexed.cuh"

namespace {

template <typename Index, typename Element>
struct Gather {
    const Index* indices;
    const Element* array;
    Element* result;
    Report* report;

    template <typename Place, int Items>
    __device__ inline void operator()(Places<Place, 3, Items>& places, const bool (&here)[Items],
                                      const Space& space) const {
        bool inside[Items];
#pragma unroll
        for (int k = 0; k < Items; k++) inside[k] = here[k];
        follow(places, inside, indices, space, report);
        Element element[Items];
#pragma unroll
        for (int k = 0; k < Items; k++) {
            element[k] = Element{};
            if (inside[k]) element[k] = array[places.at(1, k)];
        }
#pragma unroll
        for (int k = 0; k < Items; k++) {
            if (here[k]) result[places.at(2, k)] = element[k];
        }
    }
};

}  // namespace

#define ENTRY(index)                                                                                          \
    extern "C" __global__ void __launch_bounds__(512) gather_##index(                                         \
        const void* indices, const void* array, void* result, Space space, u64 n, Report* report) {           \
        typedef Unit<BITS> Element;                                                                           \
        for_each<3>(space, n, Gather<index, Element>{(const index*)indices, (const Element*)array,            \
                                                     (Element*)result, report});                              \
    }

ENTRY(i32)
ENTRY(i64)
