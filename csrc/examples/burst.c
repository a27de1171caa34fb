/* Runs a network of five neurons for twelve bursts, and prints the neurons that fired in each. The results are the same
 * on every device, bit for bit: -1 is the CPU, -2 the faster one of the CPU and device 0.
 *
 *   cc burst.c $(pkg-config --cflags --libs selvedge) -o burst && ./burst [DEVICE] */

#include <math.h>
#include <stdlib.h>

#include "try.h"

int main(int argc, char **argv)
{
    const float threshold[] = {1, 100, 50, 60, 70}, threshold_max[] = {INFINITY, INFINITY, INFINITY, INFINITY, 150};
    const float leak[] = {0, 0.5f, 0, 0, 0.25f}, rest[] = {0, 10, 0, 0, 0}, excitability[] = {1, 1, 1, 1, 0.5f};
    const uint16_t refractory[] = {0, 0, 1, 0, 0}, fire_limit[] = {0, 0, 2, 0, 0}, snooze[] = {0, 0, 2, 0, 0};
    const uint8_t accumulates[] = {1, 1, 1, 0, 0};
    /* The synapses, in any order. One is inhibitory. */
    const uint32_t source[] = {0, 0, 0, 1, 2, 3}, target[] = {1, 2, 3, 4, 3, 4};
    const uint8_t weight[] = {6, 6, 6, 10, 6, 8}, psp[] = {10, 10, 10, 10, 10, 10}, kind[] = {0, 0, 0, 0, 1, 0};
    sv_network_arrays arrays = {.size = sizeof arrays, .neurons = 5, .synapses = 6};
    sv_simulation_options options = {.size = sizeof options, .device = argc > 1 ? atoi(argv[1]) : SV_CPU};
    sv_burst_counters totals = {.size = sizeof totals};
    sv_network network = 0;
    sv_simulation simulation = 0;
    uint64_t spike_hash = SV_SPIKE_HASH_START, state_hash = 0;

    arrays.threshold = threshold;
    arrays.threshold_max = threshold_max;
    arrays.leak = leak;
    arrays.rest = rest;
    arrays.refractory = refractory;
    arrays.excitability = excitability;
    arrays.fire_limit = fire_limit;
    arrays.snooze = snooze;
    arrays.accumulates = accumulates;
    arrays.source = source;
    arrays.target = target;
    arrays.weight = weight;
    arrays.psp = psp;
    arrays.synapse_kind = kind;
    TRY(sv_network_create(&arrays, &network));
    TRY(sv_simulation_create(network, &options, &simulation));

    for (uint32_t burst = 1; burst <= 12; burst++) {
        const uint32_t first = 0, fourth = 4;
        const float two = 2, little = 0.0625f;
        uint32_t ids[5];
        float potentials[5];
        size_t fired = 0;

        if (burst <= 9)
            TRY(sv_simulation_inject(simulation, &first, &two, 1));
        if (burst == 11)
            TRY(sv_simulation_inject(simulation, &fourth, &little, 1));
        TRY(sv_simulation_run(simulation, 1));
        TRY(sv_simulation_fired(simulation, ids, potentials, 5, &fired));
        TRY(sv_spike_hash_add(burst, ids, potentials, fired, &spike_hash));
        printf("burst %2u:", (unsigned)burst);
        for (size_t at = 0; at < fired; at++)
            printf(" %u at %g", (unsigned)ids[at], (double)potentials[at]);
        printf("\n");
    }
    TRY(sv_simulation_totals(simulation, &totals));
    TRY(sv_simulation_state_hash(simulation, &state_hash));
    printf("%llu spikes, %llu synaptic events\n", (unsigned long long)totals.spikes,
           (unsigned long long)totals.events);
    printf("spike hash %016llx, state hash %016llx\n", (unsigned long long)spike_hash,
           (unsigned long long)state_hash);
    TRY(sv_release(simulation));
    TRY(sv_release(network));
    return 0;
}
