// csrc/kernels/hopper.cuh, emulated: barriers in shared memory, bulk tensor copies, clusters. A copy arrives at any time; a multicast
// arrives at each block at a time of its own.
#pragma once
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
    u64 size[3], stride[3];  // Strides in bytes.
    u32 box[3], element;
    bool swizzled;

    explicit MapView(const TensorMap* map) {
        const u64 kind = map->words[1];
        if ((kind & 0xff) != 3) fail("a map of %u dimensions", (u32)(kind & 0xff));
        const u32 swizzle = kind >> 24 & 0xff;
        if (swizzle != 0 && swizzle != 3) fail("a swizzle that is not emulated");
        static const u8 sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
        if ((kind >> 8 & 0xff) >= sizeof sizes) fail("an element type that is not emulated");
        element = sizes[kind >> 8 & 0xff];
        start = (unsigned char*)map->words[0];
        swizzled = swizzle == 3;
        stride[0] = element;
        for (u32 i = 0; i < 3; i++) {
            size[i] = map->words[2 + i];
            box[i] = map->words[7] >> 12 * i & 0xfff;
            if (i) stride[i] = map->words[8 + i - 1];
        }
        if (swizzled && box[0] * element != 128) fail("a box of %u bytes a row in a swizzle of 128", box[0] * element);
    }

    u32 bytes() const { return box[0] * box[1] * box[2] * element; }

    // use(offset in shared memory from the box's start, the element's address or null where there is none).
    template <typename Use>
    void each(const i32 (&at)[3], u32 address, Use use) const {
        for (u32 z = 0; z < box[2]; z++) {
            for (u32 y = 0; y < box[1]; y++) {
                for (u32 x = 0; x < box[0]; x++) {
                    const i64 place[3] = {(i64)at[0] + x, (i64)at[1] + y, (i64)at[2] + z};
                    bool inside = true;
                    u64 offset = 0;
                    for (u32 i = 0; i < 3; i++) {
                        inside = inside && place[i] >= 0 && (u64)place[i] < size[i];
                        offset += (u64)place[i] * stride[i];
                    }
                    u32 to = address + ((z * box[1] + y) * box[0] + x) * element;
                    if (swizzled) to ^= to >> 3 & 0x70;
                    use(to - address, inside ? start + offset : nullptr);
                }
            }
        }
    }
};

inline void copy_box(Block* block, u32 to, const MapView& map, u32 barrier, const i32 (&at)[3]) {
    touches("a copy");
    if (at[0] * (i64)map.element % 16) fail("a box that begins at %d, no multiple of 16 bytes", at[0]);
    const i32 x = at[0], y = at[1], z = at[2];
    const u32 address = to & 0xffffff;
    aligned(address, 128, "a box");
    const u32 start = offset_in(block, address, map.bytes(), "a box");
    begin([=] {
        const i32 from[3] = {x, y, z};
        map.each(from, address, [&](u32 offset, const unsigned char* element) {
            static const unsigned char zeros[16] = {};
            beside_writes(block, start + offset, element ? element : zeros, map.element, "a copy");
        });
        told(block, barrier, map.bytes());
    });
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

inline void named_barrier(u32 name, u32 threads) {
    if (threads % 32 || name > 15) emulated::fail("barrier %u of %u threads", name, threads);
    emulated::meet(emulated::now().block->named[name], threads, "a named barrier", nullptr, [](auto&) {});
}

// ---- bulk tensor copies ----

inline void prefetch_map(const TensorMap*) {}
inline void prefetch_box(const TensorMap*, i32, i32, i32) {}

inline void copy_box(u32 to, const TensorMap* map, u32 barrier, i32 x, i32 y, i32 z) {
    const i32 at[3] = {x, y, z};
    emulated::copy_box(emulated::block_of(to), to, emulated::MapView(map), barrier, at);
    emulated::dawdle();
}
inline void copy_box_to_blocks(u32 to, const TensorMap* map, u32 barrier, i32 x, i32 y, i32 z, u16 blocks) {
    const i32 at[3] = {x, y, z};
    emulated::Cluster* const cluster = emulated::now().block->cluster;
    for (u32 rank = 0; rank < 16; rank++) {
        if (!(blocks >> rank & 1)) continue;
        if (rank >= cluster->blocks.size()) emulated::fail("a copy to block %u of the cluster", rank);
        emulated::copy_box(cluster->blocks[rank].get(), to, emulated::MapView(map), barrier, at);
    }
    emulated::dawdle();
}

inline void store_box(const TensorMap* map, u32 from, i32 x, i32 y, i32 z) {
    emulated::Fiber& self = emulated::now();
    emulated::Block* const block = self.block;
    emulated::touches("a store");
    const emulated::MapView view(map);
    const u32 start = emulated::offset_in(block, from, view.bytes(), "a box");
    self.stores.add(emulated::begin([=] {
        const i32 at[3] = {x, y, z};
        view.each(at, from, [&](u32 offset, unsigned char* element) {
            const unsigned char* bytes = emulated::beside_reads(block, start + offset, view.element, "a store");
            if (element) memcpy(element, bytes, view.element);
        });
    }));
    self.stores.commit();
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

// ---- programmatic dependent launch: the next kernel always starts as late as it can here ----

inline void next_may_start() {}
inline void wait_for_earlier() { emulated::wait_for_earlier(); }

// ---- registers ----

template <int Count>
inline void registers_down_to() {}
template <int Count>
inline void registers_up_to() {}
