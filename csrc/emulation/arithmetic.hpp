// Atomics, votes and rounded arithmetic of the language, emulated.
#pragma once

template <typename Value>
inline Value atomicAdd(Value* at, Value value) {
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
inline float __ll2float_rn(long long number) { return (float)number; }
inline unsigned __float2uint_rn(float number) { return (unsigned)nearbyintf(number); }
