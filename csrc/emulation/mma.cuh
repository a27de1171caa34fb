// csrc/kernels/mma.cuh, emulated: products of a warp, and the loads of their operands. Sums are in f64 and rounded once.
#pragma once
#include "instructions.cuh"
#include "machine.hpp"
#include "types.cuh"

#define TEXT_OF(x) #x
#define NAME_OF(x) TEXT_OF(x)

namespace emulated {

// A number of 16 bits of ELEMENT.
inline f64 value_of(u16 bits) {
    static const std::vector<f32> all = [] {
        std::vector<f32> values;
        for (u32 of = 0; of < 1 << 16; of++) {
            values.push_back(NAME_OF(ELEMENT)[0] == 'b' ? __uint_as_float(of << 16) : from_half((u16)of));
        }
        return values;
    }();
    return all[bits];
}
inline u16 half_of(u32 word, u32 which) { return (u16)(word >> 16 * which); }

}  // namespace emulated

inline void multiply(f32 (&d)[4], const u32 (&a)[4], const u32* b) {
    struct Lane {
        f32* d;
        const u32 *a, *b;
    } own = {d, a, b};
    emulated::meet_warp("mma.sync", &own, [](emulated::Fiber** lanes) {
        auto of = [&](u32 lane) { return (const Lane*)lanes[lane]->given; };
        for (u32 row = 0; row < 16; row++) {
            for (u32 column = 0; column < 8; column++) {
                f32& sum = of(row % 8 * 4 + column / 2)->d[2 * (row / 8) + column % 2];
                f64 exact = sum;
                for (u32 k = 0; k < 16; k++) {
                    const u32 q = k % 8 / 2, j = k / 8;
                    exact += emulated::value_of(emulated::half_of(of(row % 8 * 4 + q)->a[2 * j + row / 8], k % 2)) *
                             emulated::value_of(emulated::half_of(of(column * 4 + q)->b[j], k % 2));
                }
                sum = (f32)exact;
            }
        }
    });
}

template <bool Transposed>
inline void blocks_from_shared(u32* block, u32 place) {
    struct Lane {
        u32 *block, place;
    } own = {block, place};
    emulated::meet_warp("ldmatrix", &own, [](emulated::Fiber** lanes) {
        u16 rows[4][8][8];
        for (u32 lane = 0; lane < 32; lane++) {
            const u32 from = ((const Lane*)lanes[lane]->given)->place;
            emulated::load_shared(from, rows[lane / 8][lane % 8], 16);
        }
        for (u32 lane = 0; lane < 32; lane++) {
            for (u32 i = 0; i < 4; i++) {
                const u32 row = lane / 4, column = 2 * (lane % 4);
                const u16 low = Transposed ? rows[i][column][row] : rows[i][row][column];
                const u16 high = Transposed ? rows[i][column + 1][row] : rows[i][row][column + 1];
                ((const Lane*)lanes[lane]->given)->block[i] = low | (u32)high << 16;
            }
        }
    });
}

inline u32 transposed(u32 two) {
    u32 own[2] = {two, 0};
    emulated::meet_warp("movmatrix", own, [](emulated::Fiber** lanes) {
        auto of = [&](u32 lane) { return (u32*)lanes[lane]->given; };
        for (u32 lane = 0; lane < 32; lane++) {
            const u32 column = lane / 4, row = 2 * (lane % 4);
            auto element = [&](u32 row) { return (u32)emulated::half_of(of(row * 4 + column / 2)[0], column % 2); };
            of(lane)[1] = element(row) | element(row + 1) << 16;
        }
    });
    return own[1];
}
