// array[moved along an axis by indices] = elements. One family for each size of a unit: compiled with -DBITS=<8 to 128>.
//
// Entries, by the type of the indices; the space is indexed.cuh's, and an index that is out of range writes nothing:
// - scatter_{i32,i64}(indices, array, elements, space, n, report): for each of the n units, without two units of one place. Operands of
//   the space: indices, array, elements.
// - scatter_last_{i32,i64}(indices, array, elements, marks, space, n): with several units of one place, the last one writes: the one
//   whose position along the axis scatter_mark.cu has left in `marks`. Operands: indices, array, elements, marks, and the
//   position (in which `marks` counts from 1).
// - scatter_marked(marks, array, elements, space, n): the same from the array's side: each of the n units of the array takes the
//   element that its mark names, and keeps its value where the mark is 0. Operands: marks, elements (moved along the axis by the
//   mark less 1), array.
//
// Launch: at most 512 threads a block, a grid of any size, no shared memory.
//
// Algorithm: four units a thread (indexed.cuh). scatter_marked reads as a gather does, in the order of the array, so it writes whole
// sectors unless marks are sparse.
//
// Invariants: the result does not depend on the order of threads.
//
// | version | change | rows of 1 KiB against a copy; single f32 against PyTorch |
// |---|---|---|
// | 1 | duplicates by scatter_last alone | 0.653, 0.423 |
// | 2 | duplicates by scatter_marked, unless the array is far larger than the index | 0.934, 1.28 |
#include "indexed.cuh"

namespace {

template <typename Index, typename Element>
struct Scatter {
    const Index* indices;
    Element* array;
    const Element* elements;
    Report* report;

    template <typename Place, int Items>
    __device__ inline void operator()(Places<Place, 3, Items>& places, bool (&here)[Items],
                                      const Space& space) const {
        follow(places, here, indices, space, report);
        Element element[Items];
#pragma unroll
        for (int k = 0; k < Items; k++) {
            if (here[k]) element[k] = elements[places.at(2, k)];
        }
#pragma unroll
        for (int k = 0; k < Items; k++) {
            if (here[k]) array[places.at(1, k)] = element[k];
        }
    }
};

template <typename Index, typename Element>
struct ScatterLast {
    const Index* indices;
    Element* array;
    const Element* elements;
    const u32* marks;

    template <typename Place, int Items>
    __device__ inline void operator()(Places<Place, 5, Items>& places, bool (&here)[Items],
                                      const Space& space) const {
        follow(places, here, indices, space, nullptr);
#pragma unroll
        for (int k = 0; k < Items; k++) {
            here[k] = here[k] && marks[places.at(3, k)] == (u32)places.at(4, k) + 1;
        }
        Element element[Items];
#pragma unroll
        for (int k = 0; k < Items; k++) {
            if (here[k]) element[k] = elements[places.at(2, k)];
        }
#pragma unroll
        for (int k = 0; k < Items; k++) {
            if (here[k]) array[places.at(1, k)] = element[k];
        }
    }
};

template <typename Element>
struct ScatterMarked {
    const u32* marks;
    Element* array;
    const Element* elements;

    template <typename Place, int Items>
    __device__ inline void operator()(Places<Place, 3, Items>& places, bool (&here)[Items],
                                      const Space& space) const {
        u32 mark[Items];
#pragma unroll
        for (int k = 0; k < Items; k++) mark[k] = here[k] ? marks[places.at(0, k)] : 0;
        Element element[Items];
#pragma unroll
        for (int k = 0; k < Items; k++) {
            places.place[1][k] += (Place)(mark[k] - 1) * (Place)space.along[1];
            if (mark[k] != 0) element[k] = elements[places.at(1, k)];
        }
#pragma unroll
        for (int k = 0; k < Items; k++) {
            if (mark[k] != 0) array[places.at(2, k)] = element[k];
        }
    }
};

}  // namespace

#define ENTRIES(index)                                                                                        \
    extern "C" __global__ void __launch_bounds__(512) scatter_##index(                                        \
        const void* indices, void* array, const void* elements, Space space, u64 n, Report* report) {         \
        typedef Unit<BITS> Element;                                                                           \
        for_each<3>(space, n, Scatter<index, Element>{(const index*)indices, (Element*)array,                 \
                                                      (const Element*)elements, report});                     \
    }                                                                                                         \
    extern "C" __global__ void __launch_bounds__(512) scatter_last_##index(                                   \
        const void* indices, void* array, const void* elements, const u32* marks, Space space, u64 n) {       \
        typedef Unit<BITS> Element;                                                                           \
        for_each<5>(space, n, ScatterLast<index, Element>{(const index*)indices, (Element*)array,             \
                                                          (const Element*)elements, marks});                  \
    }

ENTRIES(i32)
ENTRIES(i64)

extern "C" __global__ void __launch_bounds__(512)
    scatter_marked(const u32* marks, void* array, const void* elements, Space space, u64 n) {
    typedef Unit<BITS> Element;
    for_each<3>(space, n, ScatterMarked<Element>{marks, (Element*)array, (const Element*)elements});
}
