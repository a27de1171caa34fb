// Additions of blocks to the same sums in global memory in a fixed order (attention_backward.cu): the instructions, one function each.
#pragma once
#include "hopper.cuh"

// Loads a count of finished additions, whose sums are visible afterwards.
__device__ inline u32 load_acquire(const u32* count) {
    u32 value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(count) : "memory");
    return value;
}

__device__ inline void store_relaxed(u32* count, u32 value) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(count), "r"(value) : "memory");
}

// Orders the accesses before it, also those of threads that have met this one at a barrier, before those after it, for the device.
__device__ inline void fence_device() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

__device__ inline void store_release_to_shared(u32 place, u32 value) {
    asm volatile("st.release.cta.shared::cta.u32 [%0], %1;" ::"r"(place), "r"(value) : "memory");
}

// Returns whether the phase of this parity has ended (see `barrier_wait`).
__device__ inline bool barrier_has_ended(u32 barrier, u32 parity) {
    u32 ended;
    asm volatile(
        "{\n"
        ".reg .pred ended;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
        "selp.u32 %0, 1, 0, ended;\n"
        "}"
        : "=r"(ended)
        : "r"(barrier), "r"(parity)
        : "memory");
    return ended;
}

// Waits until more than `additions` are granted, and fewer than four of those before are not counted yet. `place` holds both numbers.
__device__ inline void wait_for_grant(u32 place, u32 additions) {
    asm volatile(
        "{\n"
        ".reg .pred ended;\n"
        ".reg .u32 granted, counted;\n"
        "again: ld.acquire.cta.shared::cta.v2.u32 {granted, counted}, [%0];\n"
        "add.u32 counted, counted, 4;\n"
        "min.u32 granted, granted, counted;\n"
        "setp.gt.u32 ended, granted, %1;\n"
        "@ended bra done;\n"
        "bra again;\n"
        "done:\n"
        "}" ::"r"(place),
        "r"(additions)
        : "memory");
}

// Loads four sums from the L2 cache, or zeros if `is_zero`.
__device__ inline void load_unless(f32 (&sum)[4], const f32* from, u32 is_zero) {
    asm volatile(
        "{\n"
        ".reg .pred loads;\n"
        "setp.eq.u32 loads, %5, 0;\n"
        "mov.f32 %0, 0f00000000;\n"
        "mov.f32 %1, 0f00000000;\n"
        "mov.f32 %2, 0f00000000;\n"
        "mov.f32 %3, 0f00000000;\n"
        "@loads ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];\n"
        "}"
        : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
        : "l"(from), "r"(is_zero)
        : "memory");
}

// Stores four sums, or adds to those that are there.
__device__ inline void store_or_add(f32* to, const f32* four, u32 stores) {
    asm volatile(
        "{\n"
        ".reg .pred stores;\n"
        "setp.ne.u32 stores, %5, 0;\n"
        "@stores st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};\n"
        "@!stores red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};\n"
        "}" ::"l"(to),
        "f"(four[0]), "f"(four[1]), "f"(four[2]), "f"(four[3]), "r"(stores)
        : "memory");
}
