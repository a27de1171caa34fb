// Operations on rows of eight numbers: the nearest point of E8, and the projections to the golden cones.
//
// Entries, for rows of f32 and f64; rows of f32 are widened before and rounded once after:
//
// - e8_quantize_{f32,f64}(v, to, rows, scale): scale * e8(v / scale), where e8 is d8(x) or d8(x - 1/2) + 1/2, by the smaller squared
//   distance, and d8 rounds to integers and, if their sum is odd, moves the entry with the largest deviation by one. It is the decoder
//   of Conway and Sloane, Sphere Packings, Lattices and Groups, chapter 20, section 3. A row with a NaN or an infinity gives NaN.
// - e8_project_pair_{f32,f64}(v, to, rows, constants): pairs (x, y) with x < phi y lose their perpendicular part.
// - e8_project_null_{f32,f64}(v, to, rows, constants): v + sum mu_a c_a with the first of 16 sets of nonzero mu whose mu and products
//   <c_a, p> have the right signs. The constants have the matrix that gives each set's mu, and its order.
//
// Launch: at most 256 threads a block, a grid of any size, no shared memory. Rows may begin at any element; those aligned to 16 bytes
// are moved by accesses of 16 bytes.
//
// Algorithm: one thread a row, all of it in registers. Invariants: each operation is one rounding in f64 (--fmad=false), in the order of
// the CPU's (src/srt/e8/quantize.rs, src/srt/cone.rs), so that the results have the same bits. No array is indexed by a variable.
#include "types.cuh"
#include "vectors.cuh"

namespace {

struct PairCone {
    f64 phi;
    f64 norm;
};

struct NullCone {
    f64 normals[4][8];
    f64 solutions[16][4][4];
};

__device__ inline void fill_with_nan(f64 (&v)[8]) {
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = __uint_as_float(0x7fc00000u);
}

__device__ inline f64 dot(const f64 (&one)[8], const f64 (&other)[8]) {
    f64 sum = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) sum = sum + one[k] * other[k];
    return sum;
}

// The nearest point of D8.
__device__ inline void nearest_of_d8(const f64 (&x)[8], f64 (&point)[8]) {
    f64 largest = -1;
    int at = 0;
    bool odd = false;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        point[k] = rint(x[k]);
        const f64 half = point[k] * 0.5;
        odd ^= half != rint(half);
        const f64 deviation = fabs(x[k] - point[k]);
        if (deviation > largest) {
            largest = deviation;
            at = k;
        }
    }
#pragma unroll
    for (int k = 0; k < 8; k++) {
        if (odd && k == at) point[k] = point[k] + (x[k] >= point[k] ? 1.0 : -1.0);
    }
}

__device__ inline f64 squared_distance(const f64 (&one)[8], const f64 (&other)[8]) {
    f64 sum = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const f64 difference = one[k] - other[k];
        sum = sum + difference * difference;
    }
    return sum;
}

__device__ inline void quantize(f64 (&v)[8], f64 scale) {
    f64 x[8], moved[8], whole[8], half[8];
    bool finite = true;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        x[k] = v[k] / scale;
        moved[k] = x[k] - 0.5;
        finite &= fabs(x[k]) <= 1.7976931348623157e308;
    }
    if (!finite) return fill_with_nan(v);
    nearest_of_d8(x, whole);
    nearest_of_d8(moved, half);
#pragma unroll
    for (int k = 0; k < 8; k++) half[k] = half[k] + 0.5;
    const bool is_half = squared_distance(half, x) < squared_distance(whole, x);
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = (is_half ? half[k] : whole[k]) * scale;
}

__device__ inline void project(f64 (&v)[8], const PairCone& cone) {
    bool has_nan = false;
#pragma unroll
    for (int k = 0; k < 8; k++) has_nan |= v[k] != v[k];
    if (has_nan) return fill_with_nan(v);
#pragma unroll
    for (int k = 0; k < 8; k += 2) {
        if (v[k] < cone.phi * v[k + 1]) {
            const f64 par = cone.norm * (cone.phi * v[k] + v[k + 1]);
            v[k] = cone.norm * (cone.phi * par);
            v[k + 1] = cone.norm * par;
        }
    }
}

__device__ inline void project(f64 (&v)[8], const NullCone& cone) {
    f64 products[4], largest = 1;
#pragma unroll
    for (int a = 0; a < 4; a++) products[a] = dot(cone.normals[a], v);
#pragma unroll
    for (int k = 0; k < 8; k++) largest = fabs(v[k]) > largest ? fabs(v[k]) : largest;
    const f64 least_mu = -1e-12 * largest, least_product = -1e-9 * largest;
#pragma unroll 1
    for (int set = 0; set < 16; set++) {
        f64 point[8];
        bool holds = true;
#pragma unroll
        for (int k = 0; k < 8; k++) point[k] = v[k];
        if (set > 0) {
#pragma unroll
            for (int a = 0; a < 4; a++) {
                f64 mu = 0;
#pragma unroll
                for (int b = 0; b < 4; b++) mu = mu + cone.solutions[set][a][b] * products[b];
                holds &= mu >= least_mu;
#pragma unroll
                for (int k = 0; k < 8; k++) point[k] = point[k] + mu * cone.normals[a][k];
            }
        }
#pragma unroll
        for (int a = 0; a < 4; a++) holds &= dot(cone.normals[a], point) >= least_product;
        if (holds) {
#pragma unroll
            for (int k = 0; k < 8; k++) v[k] = point[k];
            return;
        }
    }
    fill_with_nan(v);
}

template <typename Float, typename Operation>
__device__ inline void for_each_row(const Float* from, Float* to, u64 rows, const Operation& operation) {
    const bool aligned = (((u64)from | (u64)to) & 15) == 0;
    for (u64 row = (u64)blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += (u64)gridDim.x * blockDim.x) {
        Pack<Float, 8> pack;
        f64 v[8];
        if (aligned) {
            load_pack(pack, from + row * 8);
        } else {
#pragma unroll
            for (int k = 0; k < 8; k++) pack.item[k] = from[row * 8 + k];
        }
#pragma unroll
        for (int k = 0; k < 8; k++) v[k] = pack.item[k];
        operation(v);
#pragma unroll
        for (int k = 0; k < 8; k++) pack.item[k] = (Float)v[k];
        if (aligned) {
            store_pack(to + row * 8, pack);
        } else {
#pragma unroll
            for (int k = 0; k < 8; k++) to[row * 8 + k] = pack.item[k];
        }
    }
}

}  // namespace

#define ENTRY(name, type, constants_type, call)                                                               \
    extern "C" __global__ void __launch_bounds__(256)                                                         \
        name##_##type(const type* v, type* to, u64 rows, const constants_type constants) {                    \
        for_each_row(v, to, rows, [&](f64(&row)[8]) { call(row, constants); });                               \
    }

ENTRY(e8_quantize, f32, f64, quantize)
ENTRY(e8_quantize, f64, f64, quantize)
ENTRY(e8_project_pair, f32, PairCone, project)
ENTRY(e8_project_pair, f64, PairCone, project)
ENTRY(e8_project_null, f32, NullCone, project)
ENTRY(e8_project_null, f64, NullCone, project)
