// Makes the networks G and S of the burst engine's specification in device memory, as the CPU makes them.
//
//     H(i, j) = pcg(i ^ pcg(j)); synapse k = i * degree + .. of source i has the target H(k, 10) % N
//
// Entries; blocks of 256 threads, grids of any size:
//
// - burst_generate_neurons_{g,s}(network): the parameters, and the state before the first burst. One thread a neuron.
// - burst_generate_rows_{g,s}(network, degree): a block a row, with degree * 8 bytes of shared memory. Rows are sorted by
//   target, kind, PSP and weight, as `Synapses::from_arrays` sorts them: each synapse counts those that come before it.
//
// The network is whole: `first` is 0.
#include "burst.cuh"

extern __shared__ unsigned char shared_memory[];

namespace {

template <bool Steady>
__device__ inline void neuron(const Network& network, u32 i) {
    Parameters own;
    own.threshold = 1000.0f;
    own.threshold_max = __uint_as_float(0x7f800000u);
    own.rest = 0.0f;
    f32 leak = 0.125f;
    own.chance = 0xffffffffu;
    own.area = 0;
    own.refractory = own.fire_limit = own.snooze = 0;
    own.flags = ACCUMULATES | ALWAYS_FIRES;
    if (!Steady) {
        own.threshold = (f32)(40 + hashed(i, 1) % 160);
        leak = (f32)(hashed(i, 2) % 4) * 0.125f;
        own.rest = (f32)(hashed(i, 3) % 3) * 0.5f;
        own.refractory = (u16)(hashed(i, 4) % 4);
        if (hashed(i, 5) % 4 == 0) {
            own.chance = 0xc0000000u;
            own.flags = ACCUMULATES;
        }
        own.fire_limit = hashed(i, 6) % 3 == 2 ? 3 : 0;
        own.snooze = (u16)(hashed(i, 7) % 5);
        if (hashed(i, 8) % 2 != 0) own.flags &= ~ACCUMULATES;
        if (hashed(i, 9) % 8 == 0) own.threshold_max = 400.0f;
    }
    own.decay = __fsub_rn(1.0f, leak);
    network.parameters[i] = own;
    network.states[i] = State{own.rest, 0, 0};
}

template <bool Steady>
__device__ inline void rows(const Network& network, u32 degree) {
    u64* const synapses = (u64*)shared_memory;
    for (u32 i = blockIdx.x; i < network.count; i += gridDim.x) {
        const u64 begin = (u64)i * degree;
        for (u32 at = threadIdx.x; at < degree; at += THREADS) {
            const u32 k = (u32)(begin + at), target = hashed(k, 10) % network.count;
            const u32 weight = 1 + hashed(k, 11) % (Steady ? 4 : 12), psp = 1 + hashed(k, 12) % (Steady ? 4 : 16);
            const bool inhibitory = hashed(k, 13) % (Steady ? 4 : 5) == 0;
            synapses[at] = (u64)target << 17 | (u64)inhibitory << 16 | psp << 8 | weight;
        }
        __syncthreads();
        for (u32 at = threadIdx.x; at < degree; at += THREADS) {
            const u64 synapse = synapses[at];
            u32 rank = 0;
            for (u32 other = 0; other < degree; other++) {
                rank += synapses[other] < synapse || (synapses[other] == synapse && other < at);
            }
            network.targets[begin + rank] = (u32)(synapse >> 17) | (u32)(synapse >> 16 & 1) << 31;
            network.weights[begin + rank] = (u16)synapse;
        }
        if (threadIdx.x == 0) {
            network.rows[i] = begin;
            if (i + 1 == network.count) network.rows[i + 1] = begin + degree;
        }
        __syncthreads();
    }
}

}  // namespace

#define ENTRIES(name, steady)                                                                                              \
    extern "C" __global__ void __launch_bounds__(256) burst_generate_neurons_##name(Network network) {                     \
        const u64 step = (u64)gridDim.x * THREADS;                                                                         \
        for (u64 i = (u64)blockIdx.x * THREADS + threadIdx.x; i < network.count; i += step) neuron<steady>(network, (u32)i); \
    }                                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256) burst_generate_rows_##name(Network network, u32 degree) {            \
        rows<steady>(network, degree);                                                                                     \
    }

ENTRIES(g, false)
ENTRIES(s, true)
