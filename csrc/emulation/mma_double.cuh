// csrc/kernels/mma_double.cuh, emulated: products of a warp in f64, by fma with k ascending.
#pragma once
#include "machine.hpp"
#include "types.cuh"

namespace emulated {

// `Rows` x 8 numbers, from `Depth` k.
template <int Rows, int Depth>
inline void multiply_doubles(f64* d, const f64* a, const f64* b) {
    struct Lane {
        f64* d;
        const f64 *a, *b;
    } own = {d, a, b};
    meet_warp("mma.sync", &own, [](Fiber** lanes) {
        auto of = [&](u32 lane) { return (const Lane*)lanes[lane]->given; };
        for (u32 row = 0; row < Rows; row++) {
            for (u32 column = 0; column < 8; column++) {
                f64& sum = of(row % 8 * 4 + column / 2)->d[2 * (row / 8) + column % 2];
                for (u32 k = 0; k < Depth; k++) {
                    const f64 x = of(row % 8 * 4 + k % 4)->a[Rows / 8 * (k / 4) + row / 8];
                    sum = fma(x, of(column * 4 + k % 4)->b[k / 4], sum);
                }
            }
        }
    });
}

}  // namespace emulated

inline void multiply_8x8x4(f64& d0, f64& d1, f64 a, f64 b) {
    f64 d[2] = {d0, d1};
    emulated::multiply_doubles<8, 4>(d, &a, &b);
    d0 = d[0];
    d1 = d[1];
}
inline void multiply_16x8x8(f64 (&d)[4], const f64 (&a)[4], const f64 (&b)[2]) {
    emulated::multiply_doubles<16, 8>(d, a, b);
}
inline void multiply_16x8x16(f64 (&d)[4], const f64 (&a)[8], const f64 (&b)[4]) {
    emulated::multiply_doubles<16, 16>(d, a, b);
}
