// csrc/kernels/ordered_additions.cuh, emulated: stores and additions to sums reach memory at any time until a fence of their block. A
// thread that polls sleeps until the polled memory changes, so that a wait without an end is a deadlock.
#pragma once
#include "hopper.cuh"

inline u32 load_acquire(const u32* count) {
    emulated::touches("a count is read");
    emulated::Fiber& self = emulated::now();
    emulated::dawdle();
    if (self.polled == count && self.polled_value == *count) emulated::wait_for_change(count, "a count in global memory");
    self.polled = count;
    return self.polled_value = *count;
}

inline void store_relaxed(u32* count, u32 value) {
    emulated::touches("a count is written");
    *count = value;
    emulated::changed(count);
    emulated::dawdle();
}

inline void fence_device() {
    emulated::dawdle();
    std::vector<emulated::DeedPointer> ordered;
    ordered.swap(emulated::now().block->additions);
    for (emulated::DeedPointer& deed : ordered) deed->finish();
}

inline void store_release_to_shared(u32 place, u32 value) {
    emulated::store_shared(place, &value, 4);
    emulated::Block* const block = emulated::now().block;
    // Who waits for one number of a pair waits at the pair.
    emulated::changed(&block->memory[emulated::offset_in(block, place & ~7u, 8, "a pair")]);
    emulated::dawdle();
}

inline bool barrier_has_ended(u32 barrier, u32 parity) {
    emulated::dawdle();
    return (emulated::barrier_at(emulated::now().block, barrier).phase & 1) != parity;
}

inline void wait_for_grant(u32 place, u32 additions) {
    emulated::Block* const block = emulated::now().block;
    emulated::dawdle();
    while (true) {
        u32 numbers[2];
        emulated::load_shared(place, numbers, 8);
        if (min(numbers[0], numbers[1] + 4) > additions) return;
        emulated::wait_for_change(&block->memory[emulated::offset_in(block, place, 8, "a pair")], "a grant of an addition");
    }
}

inline void load_unless(f32 (&sum)[4], const f32* from, u32 is_zero) {
    emulated::touches("sums are read");
    if ((u64)from % 16) emulated::fail("sums at an address that is no multiple of 16");
    for (int i = 0; i < 4; i++) sum[i] = is_zero ? 0.0f : from[i];
}

inline void store_or_add(f32* to, const f32* four, u32 stores) {
    emulated::touches("sums are written");
    if ((u64)to % 16) emulated::fail("sums at an address that is no multiple of 16");
    const std::array<f32, 4> values = {four[0], four[1], four[2], four[3]};
    emulated::now().block->additions.push_back(emulated::begin([=] {
        for (int i = 0; i < 4; i++) to[i] = stores ? values[i] : to[i] + values[i];
    }));
}
