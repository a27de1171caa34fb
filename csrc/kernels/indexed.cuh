// The shared part of gather and scatter: a space of elements, each of which is moved along one axis of an array by an index.
//
// An operand's element is at offset + sum of coordinate * stride + index * along, all in units of the kernel's element;
// `along` is 0 but for the operands that the index moves in. The Rust side (`tensor::indexing::space`) leaves out
// dimensions of 1, merges adjacent ones that are contiguous in all operands, and makes the unit as wide as runs and
// addresses allow: 1 KiB rows are 64 units of 16 bytes, a misaligned f32 is 4 units of 1 byte. Dimension 0 is the
// innermost. `Space` is exactly the Rust side's struct of this name.
//
// A thread takes ITEMS units, a block apart: all indices first, then all loads, then all stores, because an index and
// what it leads to are two waits for memory, and only what a thread has outstanding hides them. Below 2^31 units a linear
// position is taken apart by multiplication, for all items by one dimension at a time, and where no place is further
// than 2^31 units, places have 32 bits; larger spaces are divided by in 64 bits, an item at a time.
//
// Invariants: an index below 0 counts from the end; one that is out of range moves nothing and is reported
// (selvedge/report.cuh) with the operation as its code.
#pragma once
#include "../include/selvedge/report.cuh"
#include "types.cuh"

namespace {

constexpr int DIMENSIONS = 17;
constexpr int OPERANDS = 5;
constexpr int ITEMS = 4;

struct Space {
    u64 shape[DIMENSIONS];
    i64 stride[OPERANDS][DIMENSIONS];
    i64 offset[OPERANDS];
    i64 along[OPERANDS];
    // t / shape = (umulhi(t, factor) + t) >> shift for all t below 2^31
    u32 factor[DIMENSIONS];
    u32 shift[DIMENSIONS];
    u32 rank;
    u32 near;  // true where every place is below 2^31
    u64 size;  // of the axis that the index counts along
    u32 axis;
    u32 operation;
};

typedef selvedge::kernel_report Report;

__device__ inline u32 divided(u32 position, const Space& space, u32 dimension) {
    return (__umulhi(position, space.factor[dimension]) + position) >> space.shift[dimension];
}
__device__ inline u64 divided(u64 position, const Space& space, u32 dimension) {
    return position / space.shape[dimension];
}

__device__ inline i64 place_of(u32 place) { return (i64)(i32)place; }
__device__ inline i64 place_of(u64 place) { return (i64)place; }

// The places of a thread's items in the first operands. Unsigned, because items past the end may be anywhere.
template <typename Place, int Operands, int Items>
struct Places {
    Place place[Operands][Items];

    __device__ inline i64 at(int operand, int k) const { return place_of(place[operand][k]); }

    template <typename Count>
    __device__ inline void find(const Space& space, Count base) {
        Count rest[Items];
#pragma unroll
        for (int k = 0; k < Items; k++) {
            rest[k] = base + k * (Count)blockDim.x;
#pragma unroll
            for (int operand = 0; operand < Operands; operand++) place[operand][k] = (Place)space.offset[operand];
        }
        if (space.rank == 0) return;
        const u32 last = space.rank - 1;
#pragma unroll 1
        for (u32 dimension = 0; dimension < last; dimension++) {
            const Count size = (Count)space.shape[dimension];
#pragma unroll
            for (int k = 0; k < Items; k++) {
                const Count next = divided(rest[k], space, dimension);
                move(space, dimension, k, (Place)(rest[k] - next * size));
                rest[k] = next;
            }
        }
#pragma unroll
        for (int k = 0; k < Items; k++) move(space, last, k, (Place)rest[k]);
    }

    __device__ inline void move(const Space& space, u32 dimension, int k, Place coordinate) {
#pragma unroll
        for (int operand = 0; operand < Operands; operand++) {
            place[operand][k] += coordinate * (Place)space.stride[operand][dimension];
        }
    }
};

template <typename Count, typename Place, int Operands, int Items, typename Work>
__device__ inline void for_items(const Space& space, u64 n, const Work& work) {
    const u64 step = (u64)gridDim.x * blockDim.x * Items;
#pragma unroll 1
    for (u64 base = (u64)blockIdx.x * blockDim.x * Items + threadIdx.x; base < n; base += step) {
        Places<Place, Operands, Items> places;
        places.find(space, (Count)base);
        bool here[Items];
#pragma unroll
        for (int k = 0; k < Items; k++) here[k] = base + k * blockDim.x < n;
        work(places, here, space);
    }
}

// Calls work(places, here, space) for all items of all threads; here[k] is true for an item k inside the space.
template <int Operands, typename Work>
__device__ inline void for_each(const Space& space, u64 n, const Work& work) {
    if (space.near) {
        for_items<u32, u32, Operands, ITEMS>(space, n, work);
    } else if (n < 0x80000000u) {
        for_items<u32, u64, Operands, ITEMS>(space, n, work);
    } else {
        for_items<u64, u64, Operands, 1>(space, n, work);
    }
}

// Reads the indices of a thread's items and moves its places along them. `here` becomes true for items whose
// index is in range; an index out of range is reported.
template <typename Place, int Operands, int Items, typename Index>
__device__ inline void follow(Places<Place, Operands, Items>& places, bool (&here)[Items], const Index* indices,
                              const Space& space, Report* report) {
    i64 index[Items];
#pragma unroll
    for (int k = 0; k < Items; k++) index[k] = here[k] ? (i64)indices[places.at(0, k)] : 0;
    bool outside = false;
    i64 wrong = 0;
#pragma unroll
    for (int k = 0; k < Items; k++) {
        const u64 position = index[k] < 0 ? (u64)index[k] + space.size : (u64)index[k];
        const bool inside = position < space.size;
        if (here[k] && !inside) {
            outside = true;
            wrong = index[k];
        }
        here[k] = here[k] && inside;
#pragma unroll
        for (int operand = 1; operand < Operands; operand++) {
            places.place[operand][k] += (Place)position * (Place)space.along[operand];
        }
    }
    if (outside) selvedge::report(report, space.operation, wrong, space.axis, space.size);
}

// A unit of memory, as one access.
template <int Bits>
struct Unit;
template <>
struct Unit<8> {
    u8 word;
};
template <>
struct Unit<16> {
    u16 word;
};
template <>
struct Unit<32> {
    u32 word;
};
template <>
struct Unit<64> {
    uint2 word;
};
template <>
struct Unit<128> {
    uint4 word;
};

}  // namespace
