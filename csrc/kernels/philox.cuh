// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), and the dropout that attention makes of it.
//
// The definition of the blocks and of their bits is that of `attention::Dropout` (src/attention/problem.rs).
#pragma once
#include "types.cuh"

// Writes the four words of block `block` of the stream of `seed`. `Unrolled` rounds are in a row: fewer take fewer registers.
template <int Unrolled = 10>
__device__ inline void philox(u64 seed, u64 block, u32 (&words)[4]) {
    u32 key[2] = {(u32)seed, (u32)(seed >> 32)};
    words[0] = (u32)block;
    words[1] = (u32)(block >> 32);
    words[2] = words[3] = 0;
#pragma unroll Unrolled
    for (int round = 0; round < 10; round++) {
        const u64 even = (u64)words[0] * 0xd2511f53, odd = (u64)words[2] * 0xcd9e8d57;
        words[0] = (u32)(odd >> 32) ^ words[1] ^ key[0];
        words[1] = (u32)odd;
        words[2] = (u32)(even >> 32) ^ words[3] ^ key[1];
        words[3] = (u32)even;
        key[0] += 0x9e3779b9;
        key[1] += 0xbb67ae85;
    }
}

// Returns all ones in each half of a word whose 16 bits are not below the threshold, and zeros in the others.
__device__ inline u32 halves_not_below(u32 word, u32 threshold) {
    return ((word & 0xffff) < threshold ? 0 : 0xffff) | ((word >> 16) < threshold ? 0 : 0xffff0000);
}
