// Device-side errors: written to page-locked memory, and returned by the next call of the host that waits for the device
// (selvedge::driver::KernelError).
//
// The memory has three counts of reports. The thread that claims the next one fills it in and completes it; it is free again when
// the host has taken it. Only this device writes `claimed` and `complete`, and only the host `taken`, so a claim is an atomic
// among this device's threads: not every host supports atomics over the bus. The host's word is so far
// from the others that no device atomic on them reads and writes it back.
#pragma once

namespace selvedge {

struct kernel_report {
    unsigned claimed;
    unsigned complete;
    unsigned code;
    unsigned axis;
    long long index;
    unsigned long long size;
    unsigned apart[24];
    unsigned taken;
};

// The axis of an index that counts all elements.
static const unsigned no_axis = 0xffffffffu;

// Reports an error by its code; nothing where `slot` is null. One thread a warp does, and it looks before it claims: an array of
// nothing but errors would fill the bus otherwise.
__device__ inline void report(kernel_report* slot, unsigned code, long long index, unsigned axis, unsigned long long size) {
    if (slot == nullptr) return;
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    if ((unsigned)__ffs((int)__activemask()) != lane + 1) return;
    volatile kernel_report* seen = slot;
    const unsigned taken = seen->taken;
    if (seen->claimed != taken || atomicCAS(&slot->claimed, taken, taken + 1) != taken) return;
    seen->code = code;
    seen->axis = axis;
    seen->index = index;
    seen->size = size;
    // The host sees the words above before it sees that they are complete.
    __threadfence_system();
    seen->complete = taken + 1;
}

}  // namespace selvedge
