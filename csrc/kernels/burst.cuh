// The data of the spiking burst engine on a device, and the functions that burst.cu and burst_generate.cu share.
//
// Invariants: `Network`, `Counters`, `Segment`, `Injections`, `Results` and `Record` are the Rust side's structs of these names
// (src/burst/cuda/layout.rs). A neuron has a local index below `count`; its id is `first` plus that. Sources of rows are ids.
#pragma once
#include "types.cuh"

namespace {

constexpr u32 THREADS = 256;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 ALL_LANES = 0xffffffffu;
// Neurons of a segment, the unit by which spikes are counted: one warp of words of the spike mask.
constexpr u32 SEGMENT = 1024;
// Synapses of a chunk, the unit by which rows are divided among warps: four a lane.
constexpr u32 CHUNK = 128;
// The packed accumulator is sum << COUNT_BITS | events.
constexpr u32 COUNT_BITS = 20;
constexpr u64 COUNT_MASK = (1ull << COUNT_BITS) - 1;

// Bits of Parameters::flags.
constexpr u32 ACCUMULATES = 1;
constexpr u32 ALWAYS_FIRES = 2;  // Excitability of at least 0.999.
// Bits of Network::source_flags.
constexpr u32 SHARES = 4;
constexpr u32 POTENTIAL_DRIVEN = 8;

struct __align__(16) Parameters {
    f32 threshold, threshold_max;
    f32 decay;  // 1 - leak
    f32 rest;
    u32 chance;
    u32 area;
    u16 refractory, fire_limit, snooze, flags;
};

struct __align__(8) State {
    f32 potential;
    u16 left;
    u16 fire_count;
};

struct __align__(8) Spike {
    u32 id;
    f32 potential;
};

struct Counters {
    u64 next;   // The burst that inject works for.
    u64 burst;  // The same, for the kernels behind propagate.
    u64 events;  // Synapses of the rows in the queue.
    u64 injections;
    u64 candidates;
    u64 blocked;
    u32 queue;   // Spikes in the queue.
    u32 chunks;  // Chunks of their rows.
};

struct __align__(16) Segment {
    u32 fired;
    u32 chunks;
    u64 events;
};

struct Network {
    Parameters* parameters;
    State* states;
    u64* rows;
    u32* targets;       // The top bit says inhibitory.
    u16* weights;       // weight | psp << 8
    u32* out_degrees;   // Of all shards; null where the rows are whole.
    u8* source_flags;   // Null where no source has any.
    u64* sums;
    u32* touched;  // A bit a neuron; null where the sums are packed.
    u32* mask;     // A bit a neuron that fired.
    Segment* segments;
    Counters* counters;
    Spike* queue;
    u32* queue_starts;  // The first chunk of each row.
    u32 first;
    u32 count;
    u32 seed;
    u32 dense;
};

struct Injections {
    // Lists of single bursts: burst b has counts[(b - 1) % slots] elements from (b - 1) % slots * capacity on.
    const u32* ids;
    const i64* sums;
    const u32* counts;
    // One list for every burst.
    const u32* steady_ids;
    const i64* steady_sums;
    u64 steady;
    u64 capacity;
    // A pattern: `amplitude` to each i with H(i, base + b) % modulus = 0; none where the modulus is 0.
    i64 amplitude;
    u32 base;
    u32 modulus;
    u32 slots;
    u32 unused;
};

struct Record {
    u64 burst;
    u64 fired;
    u64 events;
    u64 injections;
    u64 candidates;
    u64 blocked;
};

// Page-locked memory of the host: burst b has record and list (b - 1) % slots.
struct Results {
    Record* records;
    Spike* spikes;  // Null where they are only counted.
    u64 capacity;
    u64 slots;
};

__device__ inline u32 pcg(u32 x) {
    const u32 state = x * 747796405u + 2891336453u;
    const u32 word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u;
    return (word >> 22) ^ word;
}
// H(i, j) of the generated networks.
__device__ inline u32 hashed(u32 i, u32 j) { return pcg(i ^ pcg(j)); }
__device__ inline u32 burst_key(u32 seed, u64 burst) { return pcg((u32)burst ^ pcg((u32)(burst >> 32) ^ pcg(seed))); }

// Chunks begin at multiples of four synapses, so that a lane's are read by one vector.
__device__ inline u32 chunks_of(u64 begin, u64 end) {
    return end > begin ? (u32)((end - (begin & ~3ull) + CHUNK - 1) / CHUNK) : 0;
}

template <typename Value>
__device__ inline Value warp_sum(Value value) {
    const u32 lane = threadIdx.x % 32;
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2) {
        value += __shfl_sync(ALL_LANES, value, (int)(lane ^ distance));
    }
    return value;
}

// The sum of the lanes below, and in `total` that of all.
__device__ inline u32 warp_exclusive(u32 value, u32& total) {
    const u32 lane = threadIdx.x % 32;
    u32 sum = value;
#pragma unroll
    for (u32 distance = 1; distance < 32; distance *= 2) {
        const u32 below = __shfl_sync(ALL_LANES, sum, (int)(lane >= distance ? lane - distance : lane));
        if (lane >= distance) sum += below;
    }
    total = __shfl_sync(ALL_LANES, sum, 31);
    return sum - value;
}

}  // namespace
