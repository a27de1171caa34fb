// csrc/kernels/hopper.cuh, emulated: barriers in shared memory, bulk tensor copies, clusters. A copy arrives at any time; a multicast
// arrives at each block at a time of its own.
#pragma once
#include <array>

#include "ampere.cuh"
#include "machine.hpp"
#include "types.cuh"

// As the fake driver encodes it (csrc/fake_driver/launch.c, cuTensorMapEncodeTiled), with an address of the host.
struct alignas(64) TensorMap {
    u64 words[16];
};

namespace emulated {

struct MapView {
    unsigned char* start;
    u64 size[4] = {1, 1, 1, 1}, stride[4] = {};  // Strides in bytes.
    u32 box[4] = {1, 1, 1, 1}, element;
    bool swizzled;

    // The instruction names 3 or 4 dimensions.
    MapView(const TensorMap* map, u32 dimensions) {
        const u64 kind = map->words[1];
        if ((kind & 0xff) != dimensions) {
            fail("a map of %u dimensions where the instruction has %u", (u32)(kind & 0xff), dimensions);
        }
        const u32 swizzle = kind >> 24 & 0xff;
        if (swizzle != 0 && swizzle != 3) fail("a swizzle that is not emulated");
        static const u8 sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
        if ((kind >> 8 & 0xff) >= sizeof sizes) fail("an element type that is not emulated");
        element = sizes[kind >> 8 & 0xff];
        start = (unsigned char*)map->words[0];
        swizzled = swizzle == 3;
        stride[0] = element;
        for (u32 i = 0; i < dimensions; i++) {
            size[i] = map->words[2 + i];
            box[i] = map->words[7] >> 12 * i & 0xfff;
            if (i) stride[i] = map->words[8 + i - 1];
        }
        if (swizzled && box[0] * element != 128) fail("a box of %u bytes a row in a swizzle of 128", box[0] * element);
    }

    u32 bytes() const { return box[0] * box[1] * box[2] * box[3] * element; }

    // use(offset in shared memory from the box's start, the element's address or null where there is none).
    template <typename Use>
    void each(const std::array<i32, 4>& at, u32 address, Use use) const {
        for (u32 row = 0; row < box[1] * box[2] * box[3]; row++) {
            const u32 in_box[4] = {0, row % box[1], row / box[1] % box[2], row / box[1] / box[2]};
            bool inside = true;
            u64 offset = 0;
            for (u32 i = 1; i < 4; i++) {
                const i64 place = (i64)at[i] + in_box[i];
                inside = inside && place >= 0 && (u64)place < size[i];
                offset += (u64)place * stride[i];
            }
            for (u32 column = 0; column < box[0]; column++) {
                const i64 place = (i64)at[0] + column;
                const bool exists = inside && place >= 0 && (u64)place < size[0];
                u32 to = address + (row * box[0] + column) * element;
                if (swizzled) to ^= to >> 3 & 0x70;
                use(to - address, exists ? start + offset + (u64)place * element : nullptr);
            }
        }
    }
};

inline void copy_box(Block* block, u32 to, const MapView& map, u32 barrier, const std::array<i32, 4>& from) {
    touches("a copy");
    if (from[0] * (i64)map.element % 16) fail("a box that begins at %d, no multiple of 16 bytes", from[0]);
    const u32 address = to & 0xffffff;
    aligned(address, 128, "a box");
    const u32 start = offset_in(block, address, map.bytes(), "a box");
    begin([=] {
        map.each(from, address, [&](u32 offset, const unsigned char* element) {
            static const unsigned char zeros[16] = {};
            beside_writes(block, start + offset, element ? element : zeros, map.element, "a copy");
        });
        told(block, barrier, map.bytes());
    });
}

inline void store_box(const MapView& map, u32 from, const std::array<i32, 4>& at) {
    Fiber& self = now();
    Block* const block = self.block;
    touches("a store");
    aligned(from, 128, "a box");
    const u32 start = offset_in(block, from, map.bytes(), "a box");
    self.stores.add(begin([=] {
        map.each(at, from, [&](u32 offset, unsigned char* element) {
            const unsigned char* bytes = beside_reads(block, start + offset, map.element, "a store");
            if (element) memcpy(element, bytes, map.element);
        });
    }));
    self.stores.commit();
}

}  // namespace emulated

// ---- clusters ----

inline u32 cluster_rank() { return emulated::now().block->rank; }
inline u32 address_in_block(u32 address, u32 rank) { return (address & 0xffffff) | (rank + 1) << 24; }
inline void cluster_barrier() {
    emulated::Cluster* const cluster = emulated::now().block->cluster;
    unsigned alive = 0;
    for (auto& block : cluster->blocks) alive += block->alive;
    emulated::meet(cluster->all, alive, "the cluster", nullptr, [](auto&) {});
}

// ---- barriers ----

inline void barrier_initialise(u32 barrier, u32 arrivals) {
    emulated::Block* const block = emulated::now().block;
    emulated::aligned(barrier, 8, "a barrier");
    const u32 at = emulated::offset_in(block, barrier, 8, "a barrier");
    if (block->barriers.count(at)) emulated::fail("a barrier is made twice");
    block->barriers[at].arrivals = block->barriers[at].left = arrivals;
    for (u32 i = at; i < at + 8; i++) block->marks[i] = emulated::barriers_place;
}
inline void barriers_initialised() {}
inline void barrier_expect(u32 barrier, u32 bytes) {
    emulated::arrive(emulated::block_of(barrier), barrier, bytes);
    emulated::dawdle();
}
inline void barrier_arrive(u32 cluster_address) {
    emulated::arrive(emulated::block_of(cluster_address), cluster_address, 0);
    emulated::dawdle();
}
inline void barrier_wait(u32 barrier, u32 parity) {
    emulated::Fiber& self = emulated::now();
    emulated::Barrier& of = emulated::barrier_at(self.block, barrier);
    emulated::dawdle();
    if ((of.phase & 1) != parity) return;
    of.waiting.push_back({&self, parity});
    emulated::leave(parity ? "a barrier's odd phase" : "a barrier's even phase");
}

namespace emulated {

// The barrier at which the running thread arrives.
inline Meeting& named_meeting(u32 name, u32 threads) {
    if (threads % 32 || name > 15) fail("barrier %u of %u threads", name, threads);
    Meeting& meeting = now().block->named[name];
    if (meeting.waiting.empty() && meeting.arrived.empty()) meeting.threads = threads;
    if (meeting.threads != threads) {
        fail("barrier %u of %u threads, where others wait for %u", name, threads, meeting.threads);
    }
    for (Fiber* fiber : meeting.arrived) {
        if (fiber == &now()) fail("a thread that has arrived at barrier %u comes again before all are there", name);
    }
    return meeting;
}

}  // namespace emulated

inline void named_barrier(u32 name, u32 threads) {
    emulated::meet(emulated::named_meeting(name, threads), threads, "a named barrier", nullptr, [](auto&) {});
}
inline void named_barrier_arrive(u32 name, u32 threads) {
    emulated::arrive_at(emulated::named_meeting(name, threads), threads);
    emulated::dawdle();
}

// ---- bulk tensor copies ----

inline void prefetch_map(const TensorMap*) {}
inline void prefetch_box(const TensorMap*, i32, i32, i32) {}

inline void copy_box(u32 to, const TensorMap* map, u32 barrier, i32 x, i32 y, i32 z) {
    emulated::copy_box(emulated::block_of(to), to, emulated::MapView(map, 3), barrier, {x, y, z, 0});
    emulated::dawdle();
}
inline void copy_box(u32 to, const TensorMap* map, u32 barrier, i32 x, i32 y, i32 z, i32 w) {
    emulated::copy_box(emulated::block_of(to), to, emulated::MapView(map, 4), barrier, {x, y, z, w});
    emulated::dawdle();
}
inline void copy_bytes(u32 to, const void* from, u32 bytes, u32 barrier) {
    emulated::Block* const block = emulated::block_of(to);
    emulated::touches("a copy");
    emulated::aligned(bytes, 16, "a copy of bytes");
    emulated::aligned(to & 0xffffff, 16, "a copy");
    if ((u64)from % 16) emulated::fail("a copy from an address that is no multiple of 16");
    const u32 start = emulated::offset_in(block, to, bytes, "a copy");
    emulated::begin([=] {
        emulated::beside_writes(block, start, from, bytes, "a copy");
        emulated::told(block, barrier, bytes);
    });
    emulated::dawdle();
}
inline void copy_box_to_blocks(u32 to, const TensorMap* map, u32 barrier, i32 x, i32 y, i32 z, u16 blocks) {
    emulated::Cluster* const cluster = emulated::now().block->cluster;
    for (u32 rank = 0; rank < 16; rank++) {
        if (!(blocks >> rank & 1)) continue;
        if (rank >= cluster->blocks.size()) emulated::fail("a copy to block %u of the cluster", rank);
        emulated::copy_box(cluster->blocks[rank].get(), to, emulated::MapView(map, 3), barrier, {x, y, z, 0});
    }
    emulated::dawdle();
}

inline void store_box(const TensorMap* map, u32 from, i32 x, i32 y, i32 z) {
    emulated::store_box(emulated::MapView(map, 3), from, {x, y, z, 0});
}
inline void store_box(const TensorMap* map, u32 from, i32 x, i32 y, i32 z, i32 w) {
    emulated::store_box(emulated::MapView(map, 4), from, {x, y, z, w});
}

// Cache policies have no effect here.
inline void store_box_evict_first(const TensorMap* map, u32 from, i32 x, i32 y, i32 z) { store_box(map, from, x, y, z); }

inline void send(u32 cluster_address, u32 from, u32 bytes, u32 cluster_barrier) {
    emulated::Block *const block = emulated::now().block, *const to = emulated::block_of(cluster_address);
    emulated::aligned(bytes, 16, "a copy of bytes");
    emulated::aligned(from, 16, "a copy");
    emulated::aligned(cluster_address & 0xffffff, 16, "a copy");
    const u32 source = emulated::offset_in(block, from, bytes, "a copy");
    const u32 target = emulated::offset_in(to, cluster_address, bytes, "a copy");
    if (emulated::block_of(cluster_barrier) != to) emulated::fail("a copy tells another block's barrier");
    emulated::begin([=] {
        const unsigned char* from = emulated::beside_reads(block, source, bytes, "a copy between blocks");
        emulated::beside_writes(to, target, from, bytes, "a copy between blocks");
        emulated::told(to, cluster_barrier, bytes);
    });
    emulated::dawdle();
}

template <int Groups>
inline void stores_read() {
    emulated::now().stores.wait(Groups);
}
inline void publish_to_copies() { emulated::publish(); }

// ---- semaphores in global memory ----

inline void signal_semaphore(u32* flag) {
    emulated::touches("a semaphore is signalled");
    *(volatile u32*)flag = 1;
    emulated::dawdle();
}
inline void wait_semaphore(const u32* flag) {
    emulated::touches("a semaphore is read");
    for (u32 turns = 0; *(const volatile u32*)flag == 0; turns++) {
        if (turns > 1 << 20) emulated::fail("a semaphore is never signalled");
        emulated::leave(nullptr);
    }
}

// ---- shared memory by its addresses ----

inline void prefetch(const void*) {}

inline void to_shared(u32 place, u16 bits) { emulated::store_shared(place, &bits, 2); }
inline void to_shared(u32 place, u32 bits) { emulated::store_shared(place, &bits, 4); }
inline void to_shared(u32 place, f32 number) { emulated::store_shared(place, &number, 4); }
inline void to_shared(u32 place, const f32 (&two)[2]) { emulated::store_shared(place, two, 8); }
inline void to_shared(u32 place, const f32 (&four)[4]) { emulated::store_shared(place, four, 16); }
inline void to_shared(u32 place, const u32 (&four)[4]) { emulated::store_shared(place, four, 16); }
inline void from_shared(u32 place, u16& bits) { emulated::load_shared(place, &bits, 2); }
inline void from_shared(u32 place, u32& bits) { emulated::load_shared(place, &bits, 4); }
inline void from_shared(u32 place, u64& bits) { emulated::load_shared(place, &bits, 8); }
inline void from_shared(u32 place, f32& number) { emulated::load_shared(place, &number, 4); }
inline void from_shared(u32 place, f32 (&two)[2]) { emulated::load_shared(place, two, 8); }
inline void from_shared(u32 place, f32 (&four)[4]) { emulated::load_shared(place, four, 16); }
inline void from_shared(u32 place, u32 (&four)[4]) { emulated::load_shared(place, four, 16); }

inline void blocks_to_shared(u32 place, const u32 (&block)[4]) {
    struct Lane {
        const u32* block;
        u32 place;
    } own = {block, place};
    emulated::meet_warp("stmatrix", &own, [](emulated::Fiber** lanes) {
        emulated::Fiber* const self = emulated::grid()->running;
        for (u32 lane = 0; lane < 32; lane++) {
            u16 row[8];
            for (u32 column = 0; column < 8; column++) {
                const Lane* from = (const Lane*)lanes[lane % 8 * 4 + column / 2]->given;
                row[column] = (u16)(from->block[lane / 8] >> 16 * (column % 2));
            }
            // As the lane that gave the place.
            emulated::grid()->running = lanes[lane];
            emulated::store_shared(((const Lane*)lanes[lane]->given)->place, row, 16);
        }
        emulated::grid()->running = self;
    });
}

// ---- arithmetic ----

inline f32 log2_approximate(f32 x) { return log2f(x); }

// ---- programmatic dependent launch: the next kernel always starts as late as it can here ----

inline void next_may_start() {}
inline void wait_for_earlier() { emulated::wait_for_earlier(); }

// ---- registers ----

template <int Count>
inline void registers_down_to() {}
template <int Count>
inline void registers_up_to() {}
