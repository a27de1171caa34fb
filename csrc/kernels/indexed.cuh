// What gather and scatter share: a space of elements, each of which finds its place in one array through an index.
//
// An operand's element is at offset + sum of coordinate * stride + index * along, all in units of the kernel's element;
// `along` is 0 but for the operands that the index moves in. The Rust side (`tensor::indexing::space`) leaves out
// dimensions of 1, merges those that lie behind one another in all operands, and makes the unit as wide as runs and
// addresses allow: 1 KiB rows are 64 units of 16 bytes, a misaligned f32 is 4 units of 1 byte. Dimension 0 is the
// innermost. `Space` and `Report` are the Rust side's structs of these names.
//
// A thread takes ITEMS units, a block apart: all indices first, then all loads, then all stores, because an index and
// what it leads to are two waits for memory, and only what a thread has outstanding hides them. Below 2^31 units a linear
// position is taken apart by multiplication, for all items by one dimension at a time, and where no place is further
// than 2^31 units, places have 32 bits; larger spaces are divided by in 64 bits, an item at a time.
//
// An index below 0 counts from the end. One that is out of range moves nothing: it is reported.
#pragma once
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
    u32 near;  // whether every place is below 2^31
    u64 size;  // of the axis that the index counts along
    u32 axis;
    u32 operation;
};

// Page-locked memory of the host, with three counts of reports. Who claims the next one fills it in and completes it; it is
// free again when the host has taken it. Only this device writes `claimed` and `complete`, and only the host `taken`, so a
// claim is an atomic among this device's threads: those that span the bus are not to be had on every host. What the host
// writes lies further off than what an atomic could read and write back with its word.
struct Report {
    u32 claimed;
    u32 complete;
    u32 operation;
    u32 axis;
    i64 index;
    u64 size;
    u32 apart[24];
    u32 taken;
};

// Told once a warp and looked at before it is claimed: an array of nothing but wrong indices would fill the bus otherwise.
__device__ inline void tell(Report* report, const Space& space, i64 index) {
    if (report == nullptr) return;
    u32 lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    if ((u32)__ffs((int)__activemask()) != lane + 1) return;
    volatile Report* seen = report;
    const u32 taken = seen->taken;
    if (seen->claimed != taken || atomicCAS(&report->claimed, taken, taken + 1) != taken) return;
    seen->operation = space.operation;
    seen->axis = space.axis;
    seen->index = index;
    seen->size = space.size;
    // The host sees the words above before it sees that they are complete.
    __threadfence_system();
    seen->complete = taken + 1;
}

__device__ inline u32 divided(u32 position, const Space& space, u32 dimension) {
    return (__umulhi(position, space.factor[dimension]) + position) >> space.shift[dimension];
}
__device__ inline u64 divided(u64 position, const Space& space, u32 dimension) {
    return position / space.shape[dimension];
}

__device__ inline i64 place_of(u32 place) { return (i64)(i32)place; }
__device__ inline i64 place_of(u64 place) { return (i64)place; }

// Where the items of a thread lie, in the first operands. Unsigned, because what is not there may be anywhere.
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

// Calls work(places, here, space) for all items of all threads; here[k] says whether item k is there.
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

// Reads the indices of a thread's items and moves its places along them. `here` becomes whether an item is there and
// inside; what is outside is reported.
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
    if (outside) tell(report, space, wrong);
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
