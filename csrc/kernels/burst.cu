// One burst of the spiking engine: every touched neuron adds its input, and fires, leaks or waits; bit for bit as on the CPU.
//
//     sum[t] = injections of t + sum over spikes j of the last burst and synapses j -> t of +-weight * psp * 1000
//     u = (accumulates ? v : rest) + f32(sum) / 1000;  fires if theta <= u <= theta_max and draw(id, burst) < excitability
//
// Entries, in the order of a burst. {packed,wide} is the kind of the accumulator of `sum`:
//
// - burst_inject_{packed,wide}(network, injections): adds lists and patterns.
// - burst_propagate_{packed,wide}(network): adds the rows of synapses of the spikes in the queue.
// - burst_dynamics_{packed,wide}(network): one thread a neuron; writes the spike mask, and the sums of each segment (1024 neurons).
// - burst_order(network, results): the queue of the next burst in ascending ids, the results, and the counters.
// - burst_queue_{measure,place}(network): makes a queue of `counters->queue` spikes that the host wrote, for a shard.
// - burst_in_degrees(network, synapses), then burst_largest(network, largest): the largest number of synapses that end in one neuron.
// - burst_write_weights(network, synapses, weights, n): new weights; no synapse may come twice.
//
// Launch: blocks of 256 threads, grids of any size (every kernel loops), one stream. targets, weights and rows are aligned to 16
// bytes, and targets and weights are readable up to the next multiple of 4 synapses.
//
// Algorithm: sums are integers, so atomics in any order give one result. A packed accumulator holds the sum and the number of events, so
// one atomic without a return value adds to the sum and marks the neuron as touched. A wide one has a bitmap beside it. A sweep over
// the accumulators, which are in L2, finds touched neurons; a list would need the value that an atomic returns. Rows are cut into
// chunks of 128 synapses, numbered in the order of the queue. Each warp takes an equal range of chunks and finds its first row by a
// search with 32 probes at a time, so a row of very many synapses is spread over the whole grid. Spikes are ordered by the mask, the
// sums of the segments, and a prefix sum. The host takes no part between bursts.
//
// Invariants: a burst leaves sums and touched 0. Between dynamics and order, the potential of a neuron that fired is u. `next` counts
// bursts for inject and `burst` for the kernels after it, so no kernel reads a word that one of its blocks writes.
// No version has been measured on a card.
#include "burst.cuh"

namespace {

template <bool Packed>
__device__ inline void add(const Network& network, u32 local, i64 sum) {
    if (Packed) {
        atomicAdd(&network.sums[local], ((u64)sum << COUNT_BITS) + 1);
        return;
    }
    atomicAdd(&network.sums[local], (u64)sum);
    u32* const word = &network.touched[local / 32];
    const u32 bit = 1u << local % 32;
    // Most neurons are touched more than once.
    if (!(*(volatile u32*)word & bit)) atomicOr(word, bit);
}

// Elements of a list that are in this shard.
template <bool Packed>
__device__ inline u32 add_list(const Network& network, const u32* ids, const i64* sums, u64 count) {
    u32 added = 0;
    for (u64 i = (u64)blockIdx.x * THREADS + threadIdx.x; i < count; i += (u64)gridDim.x * THREADS) {
        const u32 local = ids[i] - network.first;
        if (local >= network.count) continue;
        add<Packed>(network, local, sums[i]);
        added++;
    }
    return added;
}

template <bool Packed>
__device__ inline void inject(const Network& network, const Injections& injections) {
    const u64 burst = network.counters->next;
    u32 added = 0;
    if (injections.slots != 0) {
        const u64 slot = (burst - 1) % injections.slots;
        const u64 start = slot * injections.capacity;
        added += add_list<Packed>(network, injections.ids + start, injections.sums + start, injections.counts[slot]);
    }
    added += add_list<Packed>(network, injections.steady_ids, injections.steady_sums, injections.steady);
    if (injections.modulus != 0) {
        const u32 key = pcg(injections.base + (u32)burst);
        for (u64 i = (u64)blockIdx.x * THREADS + threadIdx.x; i < network.count; i += (u64)gridDim.x * THREADS) {
            if (pcg(((u32)i + network.first) ^ key) % injections.modulus != 0) continue;
            add<Packed>(network, (u32)i, injections.amplitude);
            added++;
        }
    }
    added = warp_sum(added);
    if (threadIdx.x % 32 == 0 && added != 0) atomicAdd(&network.counters->injections, (u64)added);
}

// The last row of the queue whose first chunk is at most `chunk`: never an empty one.
__device__ inline u32 row_of_chunk(const Network& network, u32 rows, u32 chunk) {
    const u32 lane = threadIdx.x % 32;
    u32 low = 0;
    while (rows > 1) {
        const u32 step = rows / 32 + (rows % 32 != 0);
        const u64 at = (u64)lane * step;
        const bool before = at < rows && network.queue_starts[low + (u32)at] <= chunk;
        const u32 probe = (u32)__popc(__ballot_sync(ALL_LANES, before)) - 1;
        low += probe * step;
        rows = min(step, rows - probe * step);
    }
    return low;
}

struct Row {
    u64 begin, end;
    u32 first_chunk, next_chunk;  // Of this row, and of the next one.
    u32 degree;                   // Divides the contributions; 0: nothing does.
    u32 psp;                      // In the place of the synapses' own; above 255: theirs.
};

__device__ inline Row row_at(const Network& network, u32 at, u32 rows, u32 chunks) {
    const u32 id = network.queue[at].id;
    Row row;
    row.begin = network.rows[id];
    row.end = network.rows[id + 1];
    row.first_chunk = network.queue_starts[at];
    row.next_chunk = at + 1 < rows ? network.queue_starts[at + 1] : chunks;
    row.degree = 0;
    row.psp = 256;
    if (network.source_flags != nullptr) {
        const u32 flags = network.source_flags[id];
        if (flags & SHARES) {
            row.degree = network.out_degrees != nullptr ? network.out_degrees[id] : (u32)(row.end - row.begin);
        }
        if (flags & POTENTIAL_DRIVEN) {
            // To the nearest integer, ties to even.
            const f32 u = network.queue[at].potential;
            row.psp = __float2uint_rn(u < 0.0f ? 0.0f : u > 255.0f ? 255.0f : u);
        }
    }
    return row;
}

template <bool Packed>
__device__ inline void synapse(const Network& network, const Row& row, u64 at, u32 target, u32 word) {
    if (at < row.begin || at >= row.end) return;
    const u32 psp = row.psp > 255 ? word >> 8 : row.psp;
    u32 size = (word & 255) * psp * 1000;
    if (row.degree != 0) size /= row.degree;
    const i64 sum = (i32)target < 0 ? -(i64)size : (i64)size;
    add<Packed>(network, (target & 0x7fffffffu) - network.first, sum);
}

template <bool Packed>
__device__ inline void propagate(const Network& network) {
    Counters* const counters = network.counters;
    if (blockIdx.x == 0 && threadIdx.x == 0) counters->burst = counters->next;
    const u32 rows = counters->queue, chunks = counters->chunks;
    const u64 warps = (u64)gridDim.x * WARPS, warp = (u64)blockIdx.x * WARPS + threadIdx.x / 32;
    u32 chunk = (u32)(chunks * warp / warps);
    const u32 end = (u32)(chunks * (warp + 1) / warps);
    if (chunk >= end) return;
    u32 at = row_of_chunk(network, rows, chunk);
    Row row = row_at(network, at, rows, chunks);
    for (; chunk < end; chunk++) {
        while (chunk >= row.next_chunk) row = row_at(network, ++at, rows, chunks);
        const u64 from = (row.begin & ~3ull) + (u64)(chunk - row.first_chunk) * CHUNK + threadIdx.x % 32 * 4;
        if (from >= row.end) continue;
        const uint4 targets = *(const uint4*)(network.targets + from);
        const uint2 words = *(const uint2*)(network.weights + from);
        synapse<Packed>(network, row, from, targets.x, words.x & 0xffff);
        synapse<Packed>(network, row, from + 1, targets.y, words.x >> 16);
        synapse<Packed>(network, row, from + 2, targets.z, words.y & 0xffff);
        synapse<Packed>(network, row, from + 3, targets.w, words.y >> 16);
    }
}

// A touched neuron's step. Returns whether it fired; its potential is then the one at which it did.
__device__ inline bool step(const Network& network, u32 local, i64 sum, u32 key, u32& blocked) {
    const Parameters own = network.parameters[local];
    State state = network.states[local];
    const f32 x = __fdiv_rn(__ll2float_rn(sum), 1000.0f);
    const bool limited = own.fire_limit != 0, reached = limited && state.fire_count >= own.fire_limit;
    bool fires = false;
    if (state.left > 0) {
        state.left--;
        if (state.left == 0 && reached) state.fire_count = 0;
        if (!(own.flags & ACCUMULATES)) state.potential = own.rest;
        blocked++;
    } else {
        const f32 u = __fadd_rn(own.flags & ACCUMULATES ? state.potential : own.rest, x);
        const bool inside = u >= own.threshold && u <= own.threshold_max;
        if (inside && reached) {
            state.fire_count = 0;
            state.potential = u;
        } else if (inside && (own.flags & ALWAYS_FIRES || pcg((local + network.first) ^ key) < own.chance)) {
            fires = true;
            state.potential = u;
            if (limited && state.fire_count < 65535) state.fire_count++;
            const u32 pause = own.refractory + (limited && state.fire_count >= own.fire_limit ? own.snooze : 0);
            state.left = (u16)min(pause, 65535u);
        } else {
            if (limited) state.fire_count = 0;
            state.potential = __fadd_rn(own.rest, __fmul_rn(__fsub_rn(u, own.rest), own.decay));
        }
    }
    network.states[local] = state;
    return fires;
}

template <bool Packed>
__device__ inline void dynamics(const Network& network) {
    __shared__ u32 warp_fired[WARPS], warp_chunks[WARPS];
    __shared__ u64 warp_events[WARPS];
    Counters* const counters = network.counters;
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 segments = network.count / SEGMENT + (network.count % SEGMENT != 0);
    const bool active = network.dense || counters->injections != 0 || counters->chunks != 0;
    if (!active) {
        for (u32 segment = blockIdx.x * THREADS + threadIdx.x; segment < segments; segment += gridDim.x * THREADS) {
            network.segments[segment] = Segment{0, 0, 0};
        }
        return;
    }
    const u32 key = burst_key(network.seed, counters->burst);
    u32 candidates = 0, blocked = 0;
    for (u32 segment = blockIdx.x; segment < segments; segment += gridDim.x) {
        u32 fired = 0, chunks = 0;
        u64 events = 0;
        for (u32 part = 0; part < SEGMENT / THREADS; part++) {
            const u32 local = segment * SEGMENT + part * THREADS + threadIdx.x;
            const bool here = local < network.count;
            bool touched = false;
            i64 sum = 0;
            if (Packed) {
                const u64 word = here ? network.sums[local] : 0;
                touched = (word & COUNT_MASK) != 0;
                sum = (i64)word >> COUNT_BITS;
            } else {
                touched = here && network.touched[local / 32] >> lane & 1;
                if (touched) sum = (i64)network.sums[local];
            }
            // All lanes have read their bit before one clears the word.
            const u32 any = __ballot_sync(ALL_LANES, touched);
            if (!Packed && lane == 0 && any != 0) network.touched[local / 32] = 0;
            if (touched) network.sums[local] = 0;
            bool fires = false;
            if (touched || (here && network.dense)) {
                candidates++;
                fires = step(network, local, sum, key, blocked);
            }
            const u32 word = __ballot_sync(ALL_LANES, fires);
            if (lane == 0) network.mask[local / 32] = word;
            if (fires) {
                const u64 begin = network.rows[local + network.first], end = network.rows[local + network.first + 1];
                fired++;
                chunks += chunks_of(begin, end);
                events += end - begin;
            }
        }
        fired = warp_sum(fired);
        chunks = warp_sum(chunks);
        events = warp_sum(events);
        if (lane == 0) {
            warp_fired[warp] = fired;
            warp_chunks[warp] = chunks;
            warp_events[warp] = events;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            Segment all = {0, 0, 0};
            for (u32 i = 0; i < WARPS; i++) {
                all.fired += warp_fired[i];
                all.chunks += warp_chunks[i];
                all.events += warp_events[i];
            }
            network.segments[segment] = all;
        }
        __syncthreads();
    }
    candidates = warp_sum(candidates);
    blocked = warp_sum(blocked);
    if (lane == 0 && candidates != 0) atomicAdd(&counters->candidates, (u64)candidates);
    if (lane == 0 && blocked != 0) atomicAdd(&counters->blocked, (u64)blocked);
}

// Sums of segments: of those before `begin`, and of all of them up to `end`.
struct SegmentSums {
    u32 fired, chunks;
    u32 all_fired, all_chunks;
    u64 all_events;
};

__device__ inline SegmentSums segment_sums(const Network& network, u32 begin, u32 end) {
    __shared__ u32 of_warps[4][WARPS];
    __shared__ u64 events_of_warps[WARPS];
    u32 fired = 0, chunks = 0, all_fired = 0, all_chunks = 0;
    u64 events = 0;
    for (u32 i = threadIdx.x; i < end; i += THREADS) {
        const Segment segment = network.segments[i];
        if (i < begin) {
            fired += segment.fired;
            chunks += segment.chunks;
        }
        all_fired += segment.fired;
        all_chunks += segment.chunks;
        events += segment.events;
    }
    fired = warp_sum(fired);
    chunks = warp_sum(chunks);
    all_fired = warp_sum(all_fired);
    all_chunks = warp_sum(all_chunks);
    events = warp_sum(events);
    if (threadIdx.x % 32 == 0) {
        const u32 warp = threadIdx.x / 32;
        of_warps[0][warp] = fired;
        of_warps[1][warp] = chunks;
        of_warps[2][warp] = all_fired;
        of_warps[3][warp] = all_chunks;
        events_of_warps[warp] = events;
    }
    __syncthreads();
    SegmentSums sums = {0, 0, 0, 0, 0};
    for (u32 i = 0; i < WARPS; i++) {
        sums.fired += of_warps[0][i];
        sums.chunks += of_warps[1][i];
        sums.all_fired += of_warps[2][i];
        sums.all_chunks += of_warps[3][i];
        sums.all_events += events_of_warps[i];
    }
    return sums;
}

// A warp's equal share of the block's segments.
struct WarpRange {
    u32 begin, end;
    u32 fired, chunks;  // Before it.
};

__device__ inline WarpRange warp_range(const Network& network, u32 begin, u32 end, const SegmentSums& before) {
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    WarpRange range;
    range.begin = begin + (u32)((u64)(end - begin) * warp / WARPS);
    range.end = begin + (u32)((u64)(end - begin) * (warp + 1) / WARPS);
    u32 fired = 0, chunks = 0;
    for (u32 i = begin + lane; i < range.begin; i += 32) {
        fired += network.segments[i].fired;
        chunks += network.segments[i].chunks;
    }
    range.fired = before.fired + warp_sum(fired);
    range.chunks = before.chunks + warp_sum(chunks);
    return range;
}

}  // namespace

#define ENTRIES(name, packed)                                                                                            \
    extern "C" __global__ void __launch_bounds__(256) burst_inject_##name(Network network, Injections injections) {     \
        inject<packed>(network, injections);                                                                             \
    }                                                                                                                    \
    extern "C" __global__ void __launch_bounds__(256) burst_propagate_##name(Network network) {                         \
        propagate<packed>(network);                                                                                      \
    }                                                                                                                    \
    extern "C" __global__ void __launch_bounds__(256) burst_dynamics_##name(Network network) {                          \
        dynamics<packed>(network);                                                                                       \
    }

ENTRIES(packed, true)
ENTRIES(wide, false)

extern "C" __global__ void __launch_bounds__(256) burst_order(Network network, Results results) {
    __shared__ u16 spikes[WARPS][SEGMENT];
    const u32 segments = network.count / SEGMENT + (network.count % SEGMENT != 0);
    const u32 begin = (u32)((u64)segments * blockIdx.x / gridDim.x);
    const u32 end = (u32)((u64)segments * (blockIdx.x + 1) / gridDim.x);
    const u32 lane = threadIdx.x % 32;
    u16* const own = spikes[threadIdx.x / 32];
    const SegmentSums sums = segment_sums(network, begin, end);
    Counters* const counters = network.counters;
    const u64 burst = counters->burst;
    const u64 slot = (burst - 1) % results.slots;
    WarpRange range = warp_range(network, begin, end, sums);
    for (u32 segment = range.begin; segment < range.end; segment++) {
        const u32 fired = network.segments[segment].fired;
        if (fired == 0) continue;
        u32 word = network.mask[segment * (SEGMENT / 32) + lane], total;
        u32 at = warp_exclusive((u32)__popc(word), total);
        for (; word != 0; word &= word - 1) own[at++] = (u16)(lane * 32 + (u32)__ffs((int)word) - 1);
        __syncwarp();
        for (u32 base = 0; base < fired; base += 32) {
            const bool here = base + lane < fired;
            u32 chunks = 0, local = 0;
            if (here) {
                local = segment * SEGMENT + own[base + lane];
                const u32 id = local + network.first;
                chunks = chunks_of(network.rows[id], network.rows[id + 1]);
            }
            const u32 start = range.chunks + warp_exclusive(chunks, total);
            if (here) {
                const u32 place = range.fired + base + lane;
                const Spike spike = {local + network.first, network.states[local].potential};
                network.states[local].potential = network.parameters[local].rest;
                network.queue[place] = spike;
                network.queue_starts[place] = start;
                if (results.spikes != nullptr) results.spikes[slot * results.capacity + place] = spike;
            }
            range.chunks += total;
        }
        range.fired += fired;
        __syncwarp();
    }
    // The last block's segments end where all end. No other block reads what is written here.
    if (blockIdx.x != gridDim.x - 1 || threadIdx.x != 0) return;
    results.records[slot] =
        Record{burst, sums.all_fired, counters->events, counters->injections, counters->candidates, counters->blocked};
    counters->queue = sums.all_fired;
    counters->chunks = sums.all_chunks;
    counters->events = sums.all_events;
    counters->injections = counters->candidates = counters->blocked = 0;
    counters->next = burst + 1;
}

// The queue's sums by segments of 1024 spikes.
extern "C" __global__ void __launch_bounds__(256) burst_queue_measure(Network network) {
    const u32 queue = network.counters->queue;
    const u32 segments = queue / SEGMENT + (queue % SEGMENT != 0);
    const u32 lane = threadIdx.x % 32;
    for (u32 segment = blockIdx.x * WARPS + threadIdx.x / 32; segment < segments; segment += gridDim.x * WARPS) {
        u32 chunks = 0;
        u64 events = 0;
        for (u32 i = lane; i < SEGMENT; i += 32) {
            const u64 at = (u64)segment * SEGMENT + i;
            if (at >= queue) continue;
            const u32 id = network.queue[at].id;
            chunks += chunks_of(network.rows[id], network.rows[id + 1]);
            events += network.rows[id + 1] - network.rows[id];
        }
        chunks = warp_sum(chunks);
        events = warp_sum(events);
        if (lane == 0) network.segments[segment] = Segment{0, chunks, events};
    }
}

extern "C" __global__ void __launch_bounds__(256) burst_queue_place(Network network) {
    const u32 queue = network.counters->queue;
    const u32 segments = queue / SEGMENT + (queue % SEGMENT != 0);
    const u32 begin = (u32)((u64)segments * blockIdx.x / gridDim.x);
    const u32 end = (u32)((u64)segments * (blockIdx.x + 1) / gridDim.x);
    const u32 lane = threadIdx.x % 32;
    const SegmentSums sums = segment_sums(network, begin, end);
    WarpRange range = warp_range(network, begin, end, sums);
    for (u32 segment = range.begin; segment < range.end; segment++) {
#pragma unroll 1
        for (u32 base = 0; base < SEGMENT; base += 32) {
            const u64 at = (u64)segment * SEGMENT + base + lane;
            u32 chunks = 0, total;
            if (at < queue) {
                const u32 id = network.queue[at].id;
                chunks = chunks_of(network.rows[id], network.rows[id + 1]);
            }
            const u32 start = range.chunks + warp_exclusive(chunks, total);
            if (at < queue) network.queue_starts[at] = start;
            range.chunks += total;
        }
    }
    if (blockIdx.x != gridDim.x - 1 || threadIdx.x != 0) return;
    network.counters->chunks = sums.all_chunks;
    network.counters->events = sums.all_events;
}

// Counts each neuron's incoming synapses in its sum, which was 0.
extern "C" __global__ void __launch_bounds__(256) burst_in_degrees(Network network, u64 synapses) {
    for (u64 i = (u64)blockIdx.x * THREADS + threadIdx.x; i < synapses; i += (u64)gridDim.x * THREADS) {
        atomicAdd(&network.sums[(network.targets[i] & 0x7fffffffu) - network.first], 1ull);
    }
}

// The largest of these counts, which become 0 again.
extern "C" __global__ void __launch_bounds__(256) burst_largest(Network network, u64* largest) {
    u64 found = 0;
    for (u64 i = (u64)blockIdx.x * THREADS + threadIdx.x; i < network.count; i += (u64)gridDim.x * THREADS) {
        const u64 degree = network.sums[i];
        if (degree > found) found = degree;
        network.sums[i] = 0;
    }
    if (found != 0) atomicMax(largest, found);
}

extern "C" __global__ void __launch_bounds__(256)
    burst_write_weights(Network network, const u64* synapses, const u8* weights, u64 n) {
    u8* const bytes = (u8*)network.weights;
    for (u64 i = (u64)blockIdx.x * THREADS + threadIdx.x; i < n; i += (u64)gridDim.x * THREADS) {
        bytes[2 * synapses[i]] = weights[i];
    }
}
