// The language of csrc/kernels as C++, and a machine that runs it: blocks, clusters, warps and barriers in one thread of the host.
//
// Why: a kernel of thousands of lines whose parts wait for each other cannot be proven by assembling it, and a machine
// without a GPU cannot run it. Here a kernel's own source is compiled for the host, each of its threads is a fiber, and the
// instructions that C++ has no word for are the functions of hopper.cuh, ampere.cuh, mma.cuh and wgmma.cuh beside this
// file, which stand in for those of csrc/kernels of the same names.
//
// The order is drawn from a seed: any thread that does not wait may be next, some are slower than others, and asynchronous work
// (copies, products of the tensor cores, stores) is done at any time between where it
// is begun and where it is waited for; some of it as late as a tile takes. So a stage that is overwritten too early, a barrier
// with a wrong count, or a phase with a wrong parity gives wrong numbers, an error or a deadlock here, for some seed.
//
// A kernel that is launched so that it may begin before the one ahead of it has ended finds memory as nobody left it until it
// has waited, and what it writes before is lost (`Earlier`). A thread that copies without having waited, or having met at a
// barrier one of its block that has, is an error, and so is a block that ends without.
//
// Not shown: that the real instructions do the same (that is what runs on a device are for), speed, and
// races between threads that touch shared memory by pointers without a barrier, unless their order matters.
//
// An error ends the process with its reason on the standard error.
#pragma once
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "earlier.hpp"
#include "stacks.hpp"

// ---- the language ----

#define __device__
// Which are the kernels can be read in the preprocessed source by this.
#define __global__ __attribute__((visibility("protected")))
#define __shared__ static
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 900
#endif
#define threadIdx (emulated::now().thread)
#define blockIdx (emulated::now().block->place)
#define blockDim (emulated::now().block->cluster->grid->block)
#define gridDim (emulated::now().block->cluster->grid->size)

struct uint2 {
    unsigned x, y;
};
struct uint4 {
    unsigned x, y, z, w;
};

namespace emulated {

struct Place {
    unsigned x = 0, y = 0, z = 0;
};

struct Fiber;
struct Block;
struct Cluster;
struct Grid;

[[noreturn]] inline void fail(const char* format, ...);

// ---- what the machine draws ----

inline uint64_t& seed() {
    static uint64_t state = 1;
    return state;
}
inline uint32_t draw(uint32_t below) {
    uint64_t& state = seed();
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 32) % below);
}

}  // namespace emulated

#include "deeds.hpp"

namespace emulated {

// ---- threads ----

struct Meeting;

// A thread of the device.
struct Fiber {
    Stopped stopped = nullptr;
    Place thread;
    Block* block = nullptr;
    unsigned number = 0;  // In its block.
    bool ended = false;
    const char* waits = nullptr;  // The reason; null while it may run.
    unsigned slowness = 0;
    bool behind = false;  // True once it has waited for the kernels ahead.
    void* given = nullptr;  // Its contribution to a meeting.
    Groups copies, stores;
    const void* polled = nullptr;  // The count that it has loaded last, and its value.
    uint32_t polled_value = 0;
    std::vector<std::pair<unsigned, unsigned>> unpublished;  // Ranges of shared memory that bulk copies may not see yet.
};

// Threads that wait for each other: part of a warp, a warpgroup, a block, or a cluster.
struct Meeting {
    std::vector<Fiber*> waiting, arrived;  // Fibers that have arrived do not wait.
    unsigned threads = 0;                  // Of a named barrier.
};

struct Barrier {
    unsigned arrivals = 0, left = 0;
    int64_t bytes = 0;
    uint64_t phase = 0;
    std::vector<std::pair<Fiber*, unsigned>> waiting;  // And the parity that each waits for.
};

enum : unsigned { clean = 0, barriers_place = 0xffff };

struct Block {
    Place place;
    Cluster* cluster = nullptr;
    unsigned rank = 0, alive = 0;
    bool waited = false;  // One of its threads, for what is ahead of the kernel.
    uint32_t window = 0;                // The address of its first byte of shared memory.
    std::vector<unsigned char> memory;  // Shared memory.
    std::vector<uint16_t> marks;        // Of each byte: 1 + the thread whose write is not published yet, or a barrier's.
    std::map<uint32_t, Barrier> barriers;
    std::map<unsigned, Meeting> named, warps, warpgroups;
    std::map<unsigned, Groups> products;  // Of a warpgroup.
    std::vector<DeedPointer> additions;   // Stores and additions to sums in global memory that no fence has ordered yet.
    std::vector<std::unique_ptr<Fiber>> fibers;
};

struct Cluster {
    Grid* grid = nullptr;
    Meeting all;
    std::vector<std::unique_ptr<Block>> blocks;
};

struct Grid {
    Place size, block;
    unsigned shared = 0;
    std::function<void()> entry;
    Stopped scheduler = nullptr;
    std::vector<Fiber*> ready;
    Fiber* running = nullptr;
    unsigned alive = 0;
    const char* name = "";
    Earlier earlier;
    std::map<const void*, std::vector<Fiber*>> watching;  // Threads that wait until memory at an address changes.
};

inline Grid*& grid() {
    static Grid* current = nullptr;
    return current;
}
inline Fiber& now() { return *grid()->running; }

inline void fail(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "emulated kernel %s: ", grid() ? grid()->name : "");
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (grid() && grid()->running) {
        const Fiber& fiber = now();
        fprintf(stderr, " (block %u, thread %u)", fiber.block->place.x, fiber.number);
    }
    fprintf(stderr, "\n");
    abort();
}

// Gives the processor to another thread; `waits` says what for, and somebody else wakes this one.
inline void leave(const char* waits) {
    Grid* const all = grid();
    Fiber* const self = all->running;
    self->waits = waits;
    if (!waits) all->ready.push_back(self);
    emulated_switch(&self->stopped, all->scheduler);
}
inline void wake(Fiber* fiber) {
    fiber->waits = nullptr;
    grid()->ready.push_back(fiber);
}

// Ends the kernels ahead.
inline void end_earlier() {
    for (Fiber* fiber : grid()->earlier.end()) wake(fiber);
}
inline void wait_for_earlier() {
    Fiber& self = now();
    self.behind = self.block->waited = true;
    if (!grid()->earlier.runs) return;
    grid()->earlier.waiting.push_back(&self);
    leave("the kernels ahead");
}
// A thread touches global memory.
inline void touches(const char* what) {
    if (grid()->earlier.overlaps && !now().behind) fail("%s before it has waited for the kernels ahead", what);
}

// Perhaps lets others go first: where a thread on a device could be late.
inline void dawdle() {
    if (draw(4) == 0) leave(nullptr);
}

// Waits until another thread says that memory at this address has changed.
inline void wait_for_change(const void* at, const char* what) {
    Grid* const all = grid();
    all->watching[at].push_back(all->running);
    leave(what);
}
inline void changed(const void* at) {
    auto found = grid()->watching.find(at);
    if (found == grid()->watching.end()) return;
    std::vector<Fiber*> all = std::move(found->second);
    grid()->watching.erase(found);
    for (Fiber* fiber : all) wake(fiber);
}

// Arrives at a meeting without waiting for the others.
inline void arrive_at(Meeting& meeting, unsigned threads) {
    meeting.arrived.push_back(grid()->running);
    if (meeting.waiting.size() + meeting.arrived.size() < threads) return;
    for (Fiber* fiber : meeting.waiting) wake(fiber);
    meeting.waiting.clear();
    meeting.arrived.clear();
}

// The last of `threads` to come does the work for all of them, and all go on.
template <typename Work>
inline void meet(Meeting& meeting, unsigned threads, const char* what, void* given, Work work) {
    Fiber* const self = grid()->running;
    self->given = given;
    meeting.waiting.push_back(self);
    if (meeting.waiting.size() + meeting.arrived.size() < threads) {
        leave(what);
        return;
    }
    meeting.arrived.clear();
    std::vector<Fiber*> all;
    all.swap(meeting.waiting);
    work(all);
    // Nobody is behind anything by a cluster's barrier, which orders no memory.
    bool one_block = true, behind = false;
    for (Fiber* fiber : all) {
        one_block = one_block && fiber->block == self->block;
        behind = behind || fiber->behind;
    }
    for (Fiber* fiber : all) fiber->behind = fiber->behind || (one_block && behind);
    for (Fiber* fiber : all) {
        if (fiber != self) wake(fiber);
    }
    leave(nullptr);
}

// All lanes of the warp; work(lanes in their order).
template <typename Work>
inline void meet_warp(const char* what, void* given, Work work) {
    Fiber& self = now();
    meet(self.block->warps[self.number / 32], 32, what, given, [&](std::vector<Fiber*>& all) {
        Fiber* lanes[32];
        for (Fiber* fiber : all) lanes[fiber->number % 32] = fiber;
        work(lanes);
    });
}
// All threads of the warpgroup; work(threads in their order).
template <typename Work>
inline void meet_warpgroup(const char* what, void* given, Work work) {
    Fiber& self = now();
    meet(self.block->warpgroups[self.number / 128], 128, what, given, [&](std::vector<Fiber*>& all) {
        Fiber* threads[128];
        for (Fiber* fiber : all) threads[fiber->number % 128] = fiber;
        work(threads);
    });
}

// ---- shared memory ----

inline unsigned char* shared_bytes() { return now().block->memory.data(); }

// An address is an offset in the block's own window, or that of a block of the cluster, whose rank and 1 stand in the upper 8 bits.
inline Block* block_of(uint32_t address) {
    Block* const own = now().block;
    const uint32_t of = address >> 24;
    if (of == 0) return own;
    if (of > own->cluster->blocks.size()) fail("an address names block %u of the cluster", of - 1);
    return own->cluster->blocks[of - 1].get();
}
inline uint32_t offset_in(const Block* block, uint32_t address, uint32_t bytes, const char* what) {
    const uint32_t at = (address & 0xffffff) - block->window;
    if (at > block->memory.size() || bytes > block->memory.size() - at) {
        fail("%s of %u bytes at %d reaches outside of %zu bytes of shared memory", what, bytes, (int)at,
             block->memory.size());
    }
    return at;
}
inline void aligned(uint32_t address, uint32_t bytes, const char* what) {
    if (address % bytes) fail("%s at %#x, which is no multiple of %u", what, address, bytes);
}

// A store of a thread by address. Bulk copies and tensor cores see it once the thread has published it.
inline void store_shared(uint32_t address, const void* from, uint32_t bytes) {
    Fiber& self = now();
    Block* const block = self.block;
    if (address >> 24) fail("a store into another block's shared memory");
    aligned(address, bytes, "a store");
    const uint32_t at = offset_in(block, address, bytes, "a store");
    memcpy(&block->memory[at], from, bytes);
    for (uint32_t i = at; i < at + bytes; i++) {
        if (block->marks[i] == barriers_place) fail("a store over a barrier");
        block->marks[i] = (uint16_t)(1 + self.number);
    }
    self.unpublished.push_back({at, bytes});
}
inline void load_shared(uint32_t address, void* to, uint32_t bytes) {
    Block* const block = block_of(address);
    aligned(address, bytes, "a load");
    memcpy(to, &block->memory[offset_in(block, address, bytes, "a load")], bytes);
}

inline void publish() {
    Fiber& self = now();
    for (auto [at, bytes] : self.unpublished) {
        for (uint32_t i = at; i < at + bytes; i++) {
            if (self.block->marks[i] == 1 + self.number) self.block->marks[i] = clean;
        }
    }
    self.unpublished.clear();
}

// Reads and writes of what runs beside the threads. A block that has ended has no shared memory any more.
inline const unsigned char* beside_reads(const Block* block, uint32_t at, uint32_t bytes, const char* what) {
    if (!block->alive) fail("%s reads shared memory of a block that has ended", what);
    for (uint32_t i = at; i < at + bytes; i++) {
        if (block->marks[i] == barriers_place) fail("%s reads a barrier", what);
        if (block->marks[i] != clean) fail("%s reads what thread %u has not published", what, block->marks[i] - 1);
    }
    return &block->memory[at];
}
inline void beside_writes(Block* block, uint32_t at, const void* from, uint32_t bytes, const char* what) {
    if (!block->alive) fail("%s writes shared memory of a block that has ended", what);
    for (uint32_t i = at; i < at + bytes; i++) {
        if (block->marks[i] == barriers_place) fail("%s writes over a barrier", what);
        block->marks[i] = clean;
    }
    memcpy(&block->memory[at], from, bytes);
}

// ---- barriers in shared memory ----

inline Barrier& barrier_at(Block* block, uint32_t address) {
    const uint32_t at = offset_in(block, address, 8, "a barrier");
    auto found = block->barriers.find(at);
    if (found == block->barriers.end()) fail("no barrier was made at %u", at);
    if (!block->alive) fail("an arrival or bytes reach a barrier of a block that has ended");
    return found->second;
}
inline void settle(Barrier& barrier) {
    if (barrier.left || barrier.bytes) return;
    barrier.phase++;
    barrier.left = barrier.arrivals;
    auto waiting = std::move(barrier.waiting);
    barrier.waiting.clear();
    for (auto& [fiber, parity] : waiting) {
        if ((barrier.phase & 1) != parity) wake(fiber);
        else barrier.waiting.push_back({fiber, parity});
    }
}
inline void arrive(Block* block, uint32_t address, int64_t bytes) {
    Barrier& barrier = barrier_at(block, address);
    if (!barrier.left) fail("more arrivals at a barrier than it counts");
    barrier.bytes += bytes;
    barrier.left--;
    settle(barrier);
}
inline void told(Block* block, uint32_t address, int64_t bytes) {
    Barrier& barrier = barrier_at(block, address);
    barrier.bytes -= bytes;
    settle(barrier);
}

// ---- launches ----

inline void thread_body() {
    Fiber* const self = grid()->running;
    grid()->entry();
    // Its asynchronous work runs on; but its stores read shared memory, which ends with the block.
    self->ended = true;
    self->block->alive--;
    if (grid()->earlier.overlaps && !self->block->alive && !self->block->waited) {
        fail("a block ends that has not waited for the kernels ahead");
    }
    grid()->alive--;
    leave("nothing: it has ended");
}

enum : size_t { stack_bytes = 128 << 10 };
inline std::vector<std::unique_ptr<unsigned char[]>>& stacks() {
    static std::vector<std::unique_ptr<unsigned char[]>> kept;
    return kept;
}

// Starts the blocks of one cluster.
inline std::unique_ptr<Cluster> start(Grid& all, unsigned first, unsigned blocks, size_t& stack) {
    auto cluster = std::make_unique<Cluster>();
    cluster->grid = &all;
    const unsigned threads = all.block.x;
    for (unsigned rank = 0; rank < blocks; rank++) {
        auto block = std::make_unique<Block>();
        const Place& size = all.size;
        block->place = {(first + rank) % size.x, (first + rank) / size.x % size.y, (first + rank) / size.x / size.y};
        block->cluster = cluster.get();
        block->rank = rank;
        block->alive = threads;
        // CUDA guarantees an alignment of 16 bytes only.
        block->window = 1024 + 16 * (rank ? cluster->blocks[0]->window / 16 - 64 : draw(64));
        block->memory.assign(all.shared, 0xcd);
        block->marks.assign(all.shared, clean);
        unsigned slowness = 0;
        for (unsigned thread = 0; thread < threads; thread++) {
            if (thread % 32 == 0) slowness = draw(4);
            auto fiber = std::make_unique<Fiber>();
            fiber->thread.x = fiber->number = thread;
            fiber->block = block.get();
            fiber->slowness = slowness;
            if (stack == stacks().size()) stacks().emplace_back(new unsigned char[stack_bytes]);
            fiber->stopped = begin_at(stacks()[stack++].get(), stack_bytes, thread_body);
            all.ready.push_back(fiber.get());
            all.alive++;
            block->fibers.push_back(std::move(fiber));
        }
        cluster->blocks.push_back(std::move(block));
    }
    return cluster;
}

// Runs clusters of so many blocks until all threads have ended, in ascending order or, if `any_order`, in a random one. From 1 to
// `resident` clusters are resident at a time, as on a device that other kernels share: a cluster that waits for one that starts later
// does not end. If the kernel `overlaps` the kernels ahead of it, they leave the present contents of `memory`.
inline void run(const char* name, Place size, Place block, unsigned cluster_blocks, unsigned resident, bool any_order,
                unsigned shared, bool overlaps, const Memory* memory, size_t memories, std::function<void()> entry) {
    Grid all;
    all.size = size;
    all.block = block;
    all.shared = shared;
    all.entry = std::move(entry);
    all.name = name;
    grid() = &all;
    if (block.y != 1 || block.z != 1) fail("only blocks of one dimension");
    if (overlaps) all.earlier.begin(memory, memories, draw(2) << draw(12));
    if (size.x % cluster_blocks) fail("%u blocks in clusters of %u", size.x, cluster_blocks);
    std::vector<unsigned> order(size.x / cluster_blocks * size.y * size.z);
    for (unsigned i = 0; i < order.size(); i++) {
        const unsigned other = any_order ? draw(i + 1) : i;
        order[i] = order[other];
        order[other] = i * cluster_blocks;
    }
    for (unsigned begun = 0; begun < order.size();) {
        size_t stack = 0;
        std::vector<std::unique_ptr<Cluster>> clusters;
        const unsigned at_a_time = 1 + draw(resident);
        for (unsigned i = 0; i < at_a_time && begun < order.size(); i++, begun++) {
            clusters.push_back(start(all, order[begun], cluster_blocks, stack));
        }
        // How seldom what runs beside the threads gets on: for some time hardly at all.
        unsigned idle = 8;
        while (all.alive) {
            if (draw(512) == 0) idle = 1u << draw(12);
            if (draw(idle) == 0) progress(!all.ready.empty());
            if (all.earlier.runs && all.earlier.often && draw(all.earlier.often) == 0) end_earlier();
            if (all.ready.empty()) {
                if (progress(false)) continue;
                if (all.earlier.runs) {
                    end_earlier();
                    continue;
                }
                fprintf(stderr, "emulated kernel %s: a deadlock\n", name);
                for (auto& cluster : clusters) {
                    for (auto& of : cluster->blocks) {
                        for (unsigned i = 0; i < of->fibers.size(); i += 32) {
                            const Fiber& fiber = *of->fibers[i];
                            fprintf(stderr, "  block %u, thread %u waits for %s\n", of->place.x, i,
                                    fiber.waits ? fiber.waits : "its turn");
                        }
                    }
                }
                abort();
            }
            // Of two, rather the faster one.
            size_t at = draw((uint32_t)all.ready.size());
            const size_t other = draw((uint32_t)all.ready.size());
            if (all.ready[other]->slowness < all.ready[at]->slowness && draw(8)) at = other;
            steps()++;
            Fiber* const fiber = all.ready[at];
            all.ready[at] = all.ready.back();
            all.ready.pop_back();
            all.running = fiber;
            emulated_switch(&all.scheduler, fiber->stopped);
            all.running = nullptr;
        }
        // Asynchronous work that no thread waited for still happens, if it can.
        while (progress(false)) {
        }
    }
    grid() = nullptr;
}

// ---- kernels by their parameters' bytes ----

template <typename... Parameters>
inline auto unpacked(void (*kernel)(Parameters...), const unsigned char* values) {
    size_t at = 0;
    auto next = [&](auto* kind) {
        typedef std::remove_cv_t<std::remove_pointer_t<decltype(kind)>> Parameter;
        at = (at + alignof(Parameter) - 1) / alignof(Parameter) * alignof(Parameter);
        // Trivial, but of const members perhaps: so bytes.
        alignas(Parameter) unsigned char bytes[sizeof(Parameter)];
        memcpy(bytes, values + at, sizeof bytes);
        at += sizeof bytes;
        return *(Parameter*)bytes;
    };
    std::tuple<std::remove_cv_t<Parameters>...> all{next((std::remove_cv_t<Parameters>*)nullptr)...};
    return [kernel, all] { std::apply(kernel, all); };
}

struct Kernel {
    const char* name;
    std::function<void()> (*entry)(const unsigned char* values);
};

}  // namespace emulated

#include "arithmetic.hpp"
