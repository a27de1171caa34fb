/* Models of the catalogue: a step of three oscillators, the transfer entropy between two series, and the choice of a policy. Each
 * number is compared with the known one. -1 is the CPU, 0 the first device.
 *
 *   cc catalogue.c $(pkg-config --cflags --libs selvedge) -lm -o catalogue && ./catalogue [DEVICE]
 *
 *   phases 0.005800 1.002520 2.497680, order parameter 0.539526 before the step
 *   transfer entropy: 0.683995 nats
 *   expected free energies -0.483147 -0.709438 1.994639, probabilities 0.427740 0.536360 0.035900, policy 1 */

#include <math.h>
#include <stdlib.h>

#include "try.h"

/* Makes a tensor of a list, a vector or a matrix of two columns. */
static int make(const void *list, int32_t dtype, int64_t rows, size_t rank, int32_t device, sv_tensor *tensor)
{
    const int64_t shape[2] = {rows, 2};
    const size_t count = (size_t)rows * (rank == 2 ? 2 : 1);
    TRY(sv_tensor_from_host(list, 8 * count, dtype, shape, rank, device, tensor));
    return 0;
}

/* Reads a tensor of doubles, releases it, and compares it with the known numbers. */
static int read(sv_tensor tensor, double *numbers, const double *known, size_t count)
{
    TRY(sv_tensor_to_host(tensor, numbers, 8 * count));
    TRY(sv_release(tensor));
    for (size_t at = 0; at < count; at++)
        if (!(fabs(numbers[at] - known[at]) < 1e-6)) {
            fprintf(stderr, "element %d is %f instead of %f\n", (int)at, numbers[at], known[at]);
            return 1;
        }
    return 0;
}

static int oscillators(int32_t device)
{
    const double phases[3] = {0, 1, 2.5}, frequencies[3] = {0.1, 0.2, 0.3};
    const double known[3] = {0.005799810, 1.002520080, 2.497680110}, known_order = 0.539525695;
    sv_tensor theta, omega, next, magnitude, phase;
    double order, found[3];
    if (make(phases, SV_DTYPE_F64, 3, 1, device, &theta) || make(frequencies, SV_DTYPE_F64, 3, 1, device, &omega))
        return 1;
    TRY(sv_kuramoto_step(theta, omega, 0, 1, 0.01, &next));
    TRY(sv_order_parameter(theta, &magnitude, &phase));
    if (read(next, found, known, 3) || read(magnitude, &order, &known_order, 1))
        return 1;
    printf("phases %.6f %.6f %.6f, order parameter %.6f before the step\n", found[0], found[1], found[2], order);
    TRY(sv_release(theta));
    TRY(sv_release(omega));
    TRY(sv_release(phase));
    return 0;
}

static int information(int32_t device)
{
    /* The target repeats the source one step later. */
    const int64_t source[12] = {0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1}, target[12] = {0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0};
    const double known = 0.683994674;
    sv_tensor x, y, entropy;
    double found;
    if (make(source, SV_DTYPE_I64, 12, 1, device, &x) || make(target, SV_DTYPE_I64, 12, 1, device, &y))
        return 1;
    TRY(sv_transfer_entropy(x, y, 2, 1, &entropy));
    if (read(entropy, &found, &known, 1))
        return 1;
    printf("transfer entropy: %.6f nats\n", found);
    TRY(sv_release(x));
    TRY(sv_release(y));
    return 0;
}

static int policies(int32_t device)
{
    /* Two observations of three policies, their variances, and the variances of two states before and after them. */
    const double lists[4][6] = {{1, 0.1, 0.5, 0.5, 0, 1},
                                {0.1, 0.1, 0.2, 0.2, 0.05, 0.05},
                                {1, 1, 1, 1, 1, 1},
                                {0.5, 0.5, 0.2, 0.2, 0.9, 0.9}};
    const double preferred[2] = {1, 0}, known[3] = {-0.483147181, -0.709437912, 1.994639484};
    const double known_shares[3] = {0.427739971, 0.536360334, 0.035899695};
    sv_tensor of[4], wanted, terms[4], shares;
    double energies[3], probabilities[3];
    size_t policy;
    for (int at = 0; at < 4; at++)
        if (make(lists[at], SV_DTYPE_F64, 3, 2, device, &of[at]))
            return 1;
    if (make(preferred, SV_DTYPE_F64, 2, 1, device, &wanted))
        return 1;
    TRY(sv_expected_free_energy(of[0], of[1], of[2], of[3], wanted, &terms[0], &terms[1], &terms[2], &terms[3]));
    TRY(sv_choose_policy(terms[0], &policy));
    TRY(sv_policy_probabilities(terms[0], 1, &shares));
    if (read(terms[0], energies, known, 3) || read(shares, probabilities, known_shares, 3))
        return 1;
    printf("expected free energies %.6f %.6f %.6f, probabilities %.6f %.6f %.6f, policy %d\n", energies[0], energies[1],
           energies[2], probabilities[0], probabilities[1], probabilities[2], (int)policy);
    for (int at = 0; at < 4; at++) {
        TRY(sv_release(of[at]));
        if (at > 0)
            TRY(sv_release(terms[at]));
    }
    TRY(sv_release(wanted));
    return policy != 1;
}

int main(int argc, char **argv)
{
    const int32_t device = argc > 1 ? atoi(argv[1]) : SV_CPU;
    return oscillators(device) || information(device) || policies(device);
}
