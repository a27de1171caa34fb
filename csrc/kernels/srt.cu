// Golden-ratio operations that no fused expression can say.
//
// srt_snap(values, a, b, n, bound): for each of n values v the integers a and b, |a|, |b| <= bound, of the a + b phi nearest to v.
//
//     t = b phi    a = clamp(rint(v - t), -bound, bound)    error = |(a + t) - v|      b = 0, 1, -1, 2, -2, ..., bound, -bound
//
// A candidate replaces the best one only if its error is less. NaN and infinities give (0, 0). 0 <= bound <= 2^20.
//
// Launch: at most 256 threads a block, a grid of any size, no shared memory. `values` is aligned to 8 bytes; `a` and `b` overlap
// neither it nor each other.
//
// Algorithm: one value a thread, which visits the 2 bound + 1 candidates in order. b and -b share the product t. The clamp comes
// before the rounding, which leaves the bounds as they are; then every number is below 2^51, and adding and subtracting
// 1.5 * 2^52 rounds it to the nearest integer, ties to even, in two instructions of full rate where cvt.rni has a quarter.
//
// Invariants: each step rounds to f64 by itself (the family is compiled with --fmad=false), so the pairs are those of
// `nearest` in src/srt/snap.rs bit for bit.
#include "types.cuh"

namespace {

constexpr double PHI = 1.618033988749895;
constexpr double ROUNDING = 6755399441055744.0;

struct Candidate {
    double a, error;
};

__device__ inline Candidate candidate(double v, double t, double limit) {
    const double a = fmin(fmax(v - t, -limit), limit) + ROUNDING - ROUNDING;
    return {a, fabs((a + t) - v)};
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    srt_snap(const double* values, long long* a, long long* b, u64 n, int bound) {
    const double limit = bound;
    for (u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x; at < n; at += gridDim.x * (u64)blockDim.x) {
        const double v = values[at];
        Candidate best = {0.0, 0.0};
        int best_b = 0;
        // False for NaN too.
        if (fabs(v) <= 1.7976931348623157e308) {
            best = candidate(v, 0.0, limit);
            double multiple = 0.0;
            for (int k = 1; k <= bound; k++) {
                multiple += 1.0;
                const double t = multiple * PHI;
                const Candidate above = candidate(v, t, limit), below = candidate(v, -t, limit);
                if (above.error < best.error) {
                    best = above;
                    best_b = k;
                }
                if (below.error < best.error) {
                    best = below;
                    best_b = -k;
                }
            }
        }
        a[at] = (long long)best.a;
        b[at] = best_b;
    }
}
