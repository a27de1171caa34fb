// The pass of the active-inference classifier: features, three hidden layers, posterior, free energy and class in one launch.
//
//     logits = W4ᵀ relu(W3ᵀ relu(W2ᵀ relu(W1ᵀ x + b1) + b2) + b3) + b4        Q = softmax(logits)
//     F = Σ Q ln(Q / P)  [ - Σ Q ln p(o|c),  ln p(o|c) = scale Σ (x - m_c)² + offset ]
//     beliefs = Q, or Q P / Σ Q P; class = the first of the largest belief
//
// Entries; the layers have 64, 32, 16 and `classes` <= 8 outputs, `features` is a multiple of 4 up to 128:
//
// - classifier_rows(features, network, probabilities, measures, classes, exchange, problem): a row a thread. probabilities[0] is Q,
//   probabilities[1] the fused beliefs; measures[0] is F, measures[1] the confidence.
// - classifier_row(network, exchange, problem): the one row of the exchange, by one block; the result is there.
//
// The network is W1, b1, …, W4, b4, the prior and, in the full mode, the centres as (features, classes), one behind the other and
// aligned to 16 bytes. Weights are (inputs, outputs). Classes are padded to 8 with zeros.
//
// The exchange is page-locked host memory: its reader waits for the stream and copies nothing. `is_bad` is set for a row with a value
// that is not finite, and `energies` has F of the last 100 rows.
//
// Launch: classifier_rows ceil(rows / 128) blocks of 128 threads; classifier_row one block of 512. Dynamic shared memory of
// `FusedPass::shared_bytes` (48 KB at most). The features may begin at any element; aligned to 16 bytes they are read so.
//
// Algorithm: a block copies the network to shared memory. In classifier_rows a thread
// keeps its row's hidden layers in registers, half of the first layer at a time, and reads the row once for each half; all threads of a
// warp read the same four weights at a time (a broadcast). In classifier_row a thread computes one output of a layer.
//
// Invariants: both entries sum in one order (the bias, then inputs by fma), so a row's bits do not depend on the entry or the batch. No
// array is indexed by a variable.
#include "types.cuh"
#include "vectors.cuh"

extern __shared__ unsigned char shared_memory[];

// As src/classifier/kernel.rs has them.
struct Problem {
    u32 rows;
    u32 features;
    u32 classes;
    u32 flags;
    f32 scale;
    f32 offset;
};

enum { IS_FUSED = 1, IS_FULL = 2 };
enum { FIRST = 64, HALF = 32, SECOND = 32, THIRD = 16, CLASSES = 8, HISTORY = 100, FEATURES = 128 };

struct Exchange {
    u32 is_bad;
    u32 chosen;
    f32 energy;
    f32 confidence;
    f32 posterior[CLASSES];
    f32 beliefs[CLASSES];
    f32 energies[128];  // The first HISTORY are used.
    f32 features[FEATURES];
};

namespace {

const f32 NEGLIGIBLE = 1e-10f;

struct SharedStorage {
    f32 *w1, *b1, *w2, *b2, *w3, *b3, *w4, *b4, *prior, *centres, *likelihoods, *x, *hidden;

    __device__ explicit SharedStorage(u32 features) {
        w1 = (f32*)shared_memory;
        b1 = w1 + features * FIRST;
        w2 = b1 + FIRST;
        b2 = w2 + FIRST * SECOND;
        w3 = b2 + SECOND;
        b3 = w3 + SECOND * THIRD;
        w4 = b3 + THIRD;
        b4 = w4 + THIRD * CLASSES;
        prior = b4 + CLASSES;
        centres = prior + CLASSES;
        // These are of classifier_row alone.
        likelihoods = centres + features * CLASSES;
        hidden = likelihoods + CLASSES;
        x = hidden + FIRST;
    }

    // The elements that come from the operand.
    __device__ inline u32 count(const Problem& problem) const {
        return (problem.flags & IS_FULL ? likelihoods : centres) - w1;
    }
};

__device__ inline bool is_aligned(const f32* from) { return ((u64)from & 15) == 0; }

// Loads four elements, at once if `aligned`.
__device__ inline void load_four(Pack<f32, 4>& pack, const f32* from, bool aligned) {
    if (aligned) {
        load_pack(pack, from);
    } else {
#pragma unroll
        for (int k = 0; k < 4; k++) pack.item[k] = from[k];
    }
}

// Copies the network to shared memory, with eight accesses of a thread in flight.
__device__ inline void copy_network(const f32* from, u32 count) {
    enum { DEPTH = 8 };
    f32* const to = (f32*)shared_memory;
    const u32 step = blockDim.x * 4;
#pragma unroll 1
    for (u32 first = threadIdx.x * 4; first < count; first += DEPTH * step) {
        Pack<f32, 4> packs[DEPTH];
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            if (first + k * step < count) load_pack(packs[k], from + first + k * step);
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            if (first + k * step < count) store_pack(to + first + k * step, packs[k]);
        }
    }
}

__device__ inline bool is_bad(f32 x) { return !(fabsf(x) <= 3.402823466e38f); }

// NaN stays NaN.
__device__ inline f32 relu(f32 x) { return x < 0 ? 0.0f : x; }

// Adds inputs times four weights each to the outputs.
template <int Outputs>
__device__ inline void accumulate(f32 (&outputs)[Outputs], f32 input, const f32* weights) {
#pragma unroll
    for (int o = 0; o < Outputs; o += 4) {
        Pack<f32, 4> w;
        load_pack(w, weights + o);
#pragma unroll
        for (int k = 0; k < 4; k++) outputs[o + k] = fmaf(input, w.item[k], outputs[o + k]);
    }
}

// Adds the squared distance of an element from each centre's.
__device__ inline void add_squares(f32 (&sums)[CLASSES], f32 x, const f32* centres) {
#pragma unroll
    for (int c = 0; c < CLASSES; c++) {
        const f32 difference = x - centres[c];
        sums[c] = fmaf(difference, difference, sums[c]);
    }
}

template <int Inputs, int Outputs>
__device__ inline void layer(const f32 (&inputs)[Inputs], f32 (&outputs)[Outputs], const f32* weights, const f32* bias) {
#pragma unroll
    for (int o = 0; o < Outputs; o++) outputs[o] = bias[o];
#pragma unroll
    for (int i = 0; i < Inputs; i++) accumulate(outputs, relu(inputs[i]), weights + i * Outputs);
}

// One output of a layer, in the order of `layer`.
__device__ inline f32 output(const f32* inputs, u32 count, const f32* weights, u32 outputs, f32 bias, u32 at) {
    f32 sum = bias;
#pragma unroll 16
    for (u32 i = 0; i < count; i++) sum = fmaf(inputs[i], weights[i * outputs + at], sum);
    return sum;
}

struct Decision {
    f32 posterior[CLASSES], beliefs[CLASSES];
    f32 energy, confidence;
    u32 chosen;
};

// The posterior and the decision of logits and log-likelihoods.
__device__ inline void decide(Decision& decision, const f32 (&logits)[CLASSES], const f32 (&likelihoods)[CLASSES],
                              const f32* prior, const Problem& problem) {
    f32(&q)[CLASSES] = decision.posterior;
    f32(&beliefs)[CLASSES] = decision.beliefs;
    const u32 classes = problem.classes;
    f32 most = logits[0], sum = 0;
#pragma unroll
    for (int c = 1; c < CLASSES; c++) most = c < classes && logits[c] > most ? logits[c] : most;
#pragma unroll
    for (int c = 0; c < CLASSES; c++) {
        q[c] = c < classes ? expf(logits[c] - most) : 0.0f;
        sum = sum + q[c];
    }
    const f32 part = 1 / sum;
    f32 divergence = 0, expected = 0, product_sum = 0;
#pragma unroll
    for (int c = 0; c < CLASSES; c++) {
        q[c] = q[c] * part;
        const f32 p = prior[c];
        if (c < classes && !(q[c] <= NEGLIGIBLE || p <= NEGLIGIBLE)) divergence = divergence + q[c] * logf(q[c] / p);
        if (c < classes && !(q[c] <= NEGLIGIBLE)) expected = expected + q[c] * likelihoods[c];
        beliefs[c] = q[c] * p;
        product_sum = product_sum + beliefs[c];
    }
    // Rounding makes the sum of equal distributions slightly negative.
    decision.energy = divergence < 0 ? 0.0f : divergence;
    if (problem.flags & IS_FULL) decision.energy = decision.energy - expected;
    decision.chosen = 0;
    const f32 belief_part = 1 / product_sum;
#pragma unroll
    for (int c = 0; c < CLASSES; c++) {
        beliefs[c] = problem.flags & IS_FUSED ? beliefs[c] * belief_part : q[c];
        if (c == 0 || (c < classes && beliefs[c] > decision.confidence)) {
            decision.confidence = beliefs[c];
            decision.chosen = c;
        }
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128, 4)
    classifier_rows(const f32* features, const f32* network, f32* probabilities, f32* measures, i64* classes, Exchange* exchange,
                    const Problem problem) {
    const SharedStorage shared(problem.features);
    copy_network(network, shared.count(problem));
    __syncthreads();
    const u32 row = blockIdx.x * 128 + threadIdx.x;
    if (row >= problem.rows) return;

    const bool aligned = is_aligned(features);
    const f32* const from = features + (u64)row * problem.features;
    f32 likelihoods[CLASSES];
    if (problem.flags & IS_FULL) {
#pragma unroll
        for (int c = 0; c < CLASSES; c++) likelihoods[c] = 0;
#pragma unroll 1
        for (u32 at = 0; at < problem.features; at += 4) {
            Pack<f32, 4> x;
            load_four(x, from + at, aligned);
#pragma unroll
            for (int k = 0; k < 4; k++) add_squares(likelihoods, x.item[k], shared.centres + (at + k) * CLASSES);
        }
        // The registers are needed for the layers; the posterior comes to this place later.
#pragma unroll
        for (int c = 0; c < CLASSES; c++) {
            if (c < problem.classes) probabilities[(u64)row * problem.classes + c] = likelihoods[c];
        }
    }

    f32 second[SECOND], third[THIRD], logits[CLASSES];
    bool bad = false;
#pragma unroll
    for (int o = 0; o < SECOND; o++) second[o] = shared.b2[o];
    // The first layer by halves, which takes half of the code: the instructions of both layers stay in the cache.
#pragma unroll 1
    for (u32 half = 0; half < FIRST; half += HALF) {
        f32 first[HALF];
#pragma unroll
        for (int o = 0; o < HALF; o++) first[o] = shared.b1[half + o];
#pragma unroll 1
        for (u32 at = 0; at < problem.features; at += 4) {
            Pack<f32, 4> x;
            load_four(x, from + at, aligned);
#pragma unroll
            for (int k = 0; k < 4; k++) bad |= is_bad(x.item[k]);
            // By two, so that four blocks' registers suffice without a spill.
#pragma unroll 1
            for (u32 k = 0; k < 4; k += 2) {
                accumulate(first, k == 0 ? x.item[0] : x.item[2], shared.w1 + (at + k) * FIRST + half);
                accumulate(first, k == 0 ? x.item[1] : x.item[3], shared.w1 + (at + k + 1) * FIRST + half);
            }
        }
#pragma unroll
        for (int i = 0; i < HALF; i++) accumulate(second, relu(first[i]), shared.w2 + (half + i) * SECOND);
    }
    if (bad) exchange->is_bad = 1;
    layer(second, third, shared.w3, shared.b3);
    layer(third, logits, shared.w4, shared.b4);

#pragma unroll
    for (int c = 0; c < CLASSES; c++) {
        likelihoods[c] = 0;
        if ((problem.flags & IS_FULL) && c < problem.classes) {
            likelihoods[c] = probabilities[(u64)row * problem.classes + c] * problem.scale + problem.offset;
        }
    }
    Decision decision;
    decide(decision, logits, likelihoods, shared.prior, problem);
    const u64 elements = (u64)problem.rows * problem.classes;
#pragma unroll
    for (int c = 0; c < CLASSES; c++) {
        if (c < problem.classes) {
            const u64 at = (u64)row * problem.classes + c;
            probabilities[at] = decision.posterior[c];
            if (problem.flags & IS_FUSED) probabilities[elements + at] = decision.beliefs[c];
        }
    }
    measures[row] = decision.energy;
    measures[(u64)problem.rows + row] = decision.confidence;
    classes[row] = decision.chosen;
    const u32 later = problem.rows - 1 - row, count = problem.rows < HISTORY ? problem.rows : HISTORY;
    if (later < count) exchange->energies[count - 1 - later] = decision.energy;
}

extern "C" __global__ void __launch_bounds__(512, 1) 
    classifier_row(const f32* network, Exchange* exchange, const Problem problem) {
    const SharedStorage shared(problem.features);
    const u32 at = threadIdx.x;
    // The read of host memory takes longest.
    f32 x = 0;
    if (at < problem.features) x = exchange->features[at];
    copy_network(network, shared.count(problem));
    if (at < problem.features) {
        shared.x[at] = x;
        if (is_bad(x)) exchange->is_bad = 1;
    }
    __syncthreads();
    if (at < FIRST) {
        shared.hidden[at] = relu(output(shared.x, problem.features, shared.w1, FIRST, shared.b1[at], at));
    } else if (at < FIRST + CLASSES && (problem.flags & IS_FULL)) {
        f32 sum = 0;
        for (u32 k = 0; k < problem.features; k++) {
            const f32 difference = shared.x[k] - shared.centres[k * CLASSES + (at - FIRST)];
            sum = fmaf(difference, difference, sum);
        }
        shared.likelihoods[at - FIRST] = sum * problem.scale + problem.offset;
    }
    __syncthreads();
    // Layers take turns at two places, of which the other one has their inputs.
    if (at < SECOND) shared.x[at] = relu(output(shared.hidden, FIRST, shared.w2, SECOND, shared.b2[at], at));
    __syncthreads();
    if (at < THIRD) shared.hidden[at] = relu(output(shared.x, SECOND, shared.w3, THIRD, shared.b3[at], at));
    __syncthreads();
    if (at < CLASSES) shared.x[at] = output(shared.hidden, THIRD, shared.w4, CLASSES, shared.b4[at], at);
    __syncthreads();
    if (at != 0) return;
    f32 logits[CLASSES], likelihoods[CLASSES];
#pragma unroll
    for (int c = 0; c < CLASSES; c++) {
        logits[c] = shared.x[c];
        likelihoods[c] = problem.flags & IS_FULL ? shared.likelihoods[c] : 0.0f;
    }
    Decision decision;
    decide(decision, logits, likelihoods, shared.prior, problem);
#pragma unroll
    for (int c = 0; c < CLASSES; c++) {
        exchange->posterior[c] = decision.posterior[c];
        exchange->beliefs[c] = decision.beliefs[c];
    }
    exchange->energy = decision.energy;
    exchange->confidence = decision.confidence;
    exchange->chosen = decision.chosen;
}
