// Vector loads and stores: several elements of an array by one memory access.
//
// The pointer must be aligned to the bytes of the pack, or to 16 bytes where the pack is larger.
#pragma once
#include "types.cuh"

// The widest memory accesses that make up a number of bytes. Built of integers, because the compiler widens accesses of
// floats and structs, but not those of bytes and halves.
template <int Bytes>
struct Words {
    uint4 word[Bytes / 16];
};
template <>
struct Words<1> {
    u8 word;
};
template <>
struct Words<2> {
    u16 word;
};
template <>
struct Words<4> {
    u32 word;
};
template <>
struct Words<8> {
    uint2 word;
};

template <typename Element, int Count>
union Pack {
    Words<sizeof(Element) * Count> words;
    Element item[Count];
};

template <typename Element, int Count>
__device__ inline void load_pack(Pack<Element, Count>& pack, const Element* from) {
    pack.words = *(const Words<sizeof(Element) * Count>*)from;
}

template <typename Element, int Count>
__device__ inline void store_pack(Element* to, const Pack<Element, Count>& pack) {
    *(Words<sizeof(Element) * Count>*)to = pack.words;
}
