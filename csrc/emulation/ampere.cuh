// csrc/kernels/ampere.cuh, emulated: copies from global into shared memory that are done at any time until they are waited for.
#pragma once
#include "machine.hpp"
#include "types.cuh"

inline u32 shared_address(const void* pointer) {
    emulated::Block* const block = emulated::now().block;
    const ptrdiff_t at = (const unsigned char*)pointer - block->memory.data();
    if (at < 0 || (size_t)at > block->memory.size()) emulated::fail("no address in shared memory");
    return block->window + (u32)at;
}

// `Bytes` bytes, or zeros where they are not inside.
template <int Bytes>
inline void copy_async(u32 to, const void* from, bool inside) {
    static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "copies are of 4, 8 or 16 bytes");
    emulated::Fiber& self = emulated::now();
    emulated::Block* const block = self.block;
    emulated::touches("a copy");
    emulated::aligned(to, Bytes, "a copy");
    if (inside && (u64)from % Bytes) emulated::fail("a copy of %d bytes from an address that is no multiple", Bytes);
    const u32 at = emulated::offset_in(block, to, Bytes, "a copy");
    auto work = [=] {
        unsigned char bytes[Bytes] = {};
        if (inside) memcpy(bytes, from, Bytes);
        memcpy(&block->memory[at], bytes, Bytes);
    };
    if (__CUDA_ARCH__ < 800) work();
    else self.copies.add(emulated::begin(work));
}
inline void copies_commit() { emulated::now().copies.commit(); }
template <int Groups>
inline void copies_wait() {
    emulated::now().copies.wait(Groups);
}
