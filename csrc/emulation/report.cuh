// csrc/include/selvedge/report.cuh, emulated: one thread runs at a time, so a claim needs no atomic operation.
#pragma once
#include "machine.hpp"

namespace selvedge {

struct kernel_report {
    unsigned claimed, complete, code, axis;
    long long index;
    unsigned long long size;
    unsigned apart[24];
    unsigned taken;
};

inline void report(kernel_report* slot, unsigned code, long long index, unsigned axis, unsigned long long size) {
    if (slot == nullptr || slot->claimed != slot->taken) return;
    slot->claimed = slot->taken + 1;
    slot->code = code;
    slot->axis = axis;
    slot->index = index;
    slot->size = size;
    slot->complete = slot->claimed;
}

}  // namespace selvedge
