// Functions of the language, emulated: barriers, shuffles, votes, atomics, and arithmetic on bits and of one rounding.
#pragma once

inline int min(int a, int b) { return a < b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline long long max(long long a, long long b) { return a > b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }

inline float __uint_as_float(unsigned bits) {
    float number;
    memcpy(&number, &bits, 4);
    return number;
}
inline unsigned __float_as_uint(float number) {
    unsigned bits;
    memcpy(&bits, &number, 4);
    return bits;
}
inline float __int_as_float(int bits) { return __uint_as_float((unsigned)bits); }

inline void __syncthreads() {
    emulated::Block* const block = emulated::now().block;
    emulated::meet(block->named[0], block->alive, "__syncthreads", nullptr, [](auto&) {});
}
// Stores are in memory at once.
inline void __threadfence() {}
inline void __syncwarp() {
    emulated::meet_warp("__syncwarp", nullptr, [](auto&) {});
}

template <typename Value>
inline Value __shfl_sync(unsigned mask, Value value, int lane) {
    if (mask != 0xffffffff) emulated::fail("a shuffle of part of a warp");
    Value given[2] = {value, value};
    int from = lane;
    std::pair<Value*, int*> brought = {given, &from};
    emulated::meet_warp("__shfl_sync", &brought, [](emulated::Fiber** lanes) {
        auto of = [&](unsigned lane) { return (std::pair<Value*, int*>*)lanes[lane]->given; };
        for (unsigned lane = 0; lane < 32; lane++) of(lane)->first[1] = of((unsigned)*of(lane)->second % 32)->first[0];
    });
    return given[1];
}
template <typename Value>
inline Value __shfl_xor_sync(unsigned mask, Value value, int lanes) {
    return __shfl_sync(mask, value, (int)(emulated::now().number % 32) ^ lanes);
}

template <typename Value>
inline Value atomicAdd(Value* at, std::common_type_t<Value> value) {
    emulated::touches("an atomic");
    if (emulated::draw(16) == 0) emulated::leave(nullptr);
    const Value before = *at;
    *at = before + value;
    return before;
}
inline unsigned atomicOr(unsigned* at, unsigned value) {
    emulated::touches("an atomic");
    if (emulated::draw(16) == 0) emulated::leave(nullptr);
    const unsigned before = *at;
    *at = before | value;
    return before;
}

template <typename Value>
inline Value atomicMax(Value* at, Value value) {
    emulated::touches("an atomic");
    const Value before = *at;
    if (value > before) *at = value;
    return before;
}

inline int __popc(unsigned word) { return __builtin_popcount(word); }
inline int __ffs(int word) { return __builtin_ffs(word); }
inline unsigned __ballot_sync(unsigned mask, bool vote) {
    if (mask != 0xffffffff) emulated::fail("a vote of part of a warp");
    std::pair<bool, unsigned> brought = {vote, 0};
    emulated::meet_warp("__ballot_sync", &brought, [](emulated::Fiber** lanes) {
        auto of = [&](unsigned lane) { return (std::pair<bool, unsigned>*)lanes[lane]->given; };
        unsigned word = 0;
        for (unsigned lane = 0; lane < 32; lane++) word |= (unsigned)of(lane)->first << lane;
        for (unsigned lane = 0; lane < 32; lane++) of(lane)->second = word;
    });
    return brought.second;
}

// Each rounds once, to nearest even: the compiler must not contract (-ffp-contract=off).
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __ll2float_rn(long long number) { return (float)number; }
inline unsigned __float2uint_rn(float number) { return (unsigned)nearbyintf(number); }
