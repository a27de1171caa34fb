// Bursts of a spiking network on one core, as one writes them in C: the reference of the CPU backend (benches/burst/on_cpu.rs).
// Its arithmetic is that of a canonical burst with 32-bit sums, so both give the same spikes. Areas, chance and limits of
// consecutive spikes, which no network S has, are left out.

#include <stdint.h>

#define INHIBITORY 0x80000000u

struct loop_network {
    uint32_t neurons;
    const uint64_t *rows;
    const uint32_t *targets;
    const uint16_t *weights;
    const float *threshold;
    const float *decay;
    const float *rest;
    const uint16_t *refractory;
};

// One element a neuron. `fired` has the spikes of the last burst.
struct loop_state {
    float *potential;
    uint16_t *blocked;
    int32_t *sum;
    uint8_t *touched;
    uint32_t *fired;
    uint32_t fired_count;
};

__attribute__((visibility("default"))) uint64_t burst_loop(const struct loop_network *network, struct loop_state *state,
                                                           const uint32_t *ids, const int32_t *thousandths, uint32_t injections)
{
    uint64_t events = 0;
    for (uint32_t i = 0; i < injections; i++) {
        state->sum[ids[i]] += thousandths[i];
        state->touched[ids[i]] = 1;
    }
    for (uint32_t f = 0; f < state->fired_count; f++) {
        uint32_t source = state->fired[f];
        uint64_t end = network->rows[source + 1];
        for (uint64_t s = network->rows[source]; s < end; s++) {
            uint32_t target = network->targets[s] & ~INHIBITORY;
            int32_t product = (network->weights[s] & 255) * (network->weights[s] >> 8) * 1000;
            state->sum[target] += network->targets[s] & INHIBITORY ? -product : product;
            state->touched[target] = 1;
        }
        events += end - network->rows[source];
    }
    state->fired_count = 0;
    for (uint32_t i = 0; i < network->neurons; i++) {
        if (!state->touched[i])
            continue;
        state->touched[i] = 0;
        float input = (float)state->sum[i] / 1000.0f;
        state->sum[i] = 0;
        if (state->blocked[i] > 0) {
            state->blocked[i]--;
            continue;
        }
        float potential = state->potential[i] + input;
        if (potential >= network->threshold[i]) {
            state->potential[i] = network->rest[i];
            state->blocked[i] = network->refractory[i];
            state->fired[state->fired_count++] = i;
        } else {
            state->potential[i] = network->rest[i] + (potential - network->rest[i]) * network->decay[i];
        }
    }
    return events;
}
