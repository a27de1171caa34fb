/* Walks the golden-ratio theory: exact numbers, a state and its syntony, the D and H phases, the lattice, a norm, a symbolic expression,
 * and an evolution.
 * -1 is the CPU, 0 the first device.
 *
 *   cc srt.c $(pkg-config --cflags --libs selvedge) -o srt && ./srt [DEVICE]
 *
 *   phi^10 = 122.992, F(92) = 7540113804746346429, 1 + q/248 = 1.00011046
 *   syntony: 0.858418 at first, 0.849527 after D, 0.923408 after H, 0.919300 on the lattice
 *   lattice: 1 + 0 phi, 2 + -1 phi, -5 + 3 phi, -8 + 5 phi
 *   golden norm: 1.115561 0.265610 -1.009317 -0.371854
 *   (exp(x0) - φ): 1.100248 0.030687 -0.839233 -0.484886
 *   evolved: syntony 1.000000 after 20 generations, converged */

#include <stdlib.h>

#include "try.h"

static int read(sv_tensor tensor, void *data, size_t bytes)
{
    TRY(sv_tensor_to_host(tensor, data, bytes));
    TRY(sv_release(tensor));
    return 0;
}

int main(int argc, char **argv)
{
    const double start[4] = {1, 0.5, -0.25, 0.125}, modes[4] = {0, 1, 4, 9}, random[4] = {0.5, -1, 2, 0};
    const int64_t shape[1] = {4}, columns[2] = {4, 1};
    const int32_t device = argc > 1 ? atoi(argv[1]) : SV_CPU;
    sv_srt_evolver_options options = {.size = sizeof options};
    sv_tensor v, n2, noise, flux, harmonized, a, b, s, rows;
    sv_srt_evolver evolver;
    sv_srt_symbolic x, phi, expression;
    double power, factor, syntony[4], norm[4], values[4], history[41];
    int64_t fibonacci, whole[4], golden[4];
    size_t count;
    int32_t end;
    char text[32];

    TRY(sv_srt_phi_pow(10, &power));
    TRY(sv_srt_fibonacci(92, &fibonacci));
    TRY(sv_srt_correction(248, 1, &factor));
    printf("phi^10 = %.3f, F(92) = %lld, 1 + q/248 = %.8f\n", power, (long long)fibonacci, factor);

    /* A state of four modes and their squared norms: low modes weigh the most. */
    TRY(sv_tensor_from_host(start, sizeof start, SV_DTYPE_F64, shape, 1, device, &v));
    TRY(sv_tensor_from_host(modes, sizeof modes, SV_DTYPE_F64, shape, 1, device, &n2));
    TRY(sv_tensor_from_host(random, sizeof random, SV_DTYPE_F64, shape, 1, device, &noise));
    TRY(sv_srt_syntony(v, n2, &s));
    if (read(s, &syntony[0], sizeof(double)))
        return 1;
    /* D spreads the state over its modes, H damps the high ones again, and the cycle ends on points a + b phi. */
    TRY(sv_srt_resonant_d_phase(v, n2, noise, syntony[0], 0.1, &flux));
    TRY(sv_srt_syntony(flux, n2, &s));
    if (read(s, &syntony[1], sizeof(double)))
        return 1;
    TRY(sv_srt_h_phase(flux, n2, syntony[0], &harmonized));
    TRY(sv_srt_syntony(harmonized, n2, &s));
    if (read(s, &syntony[2], sizeof(double)))
        return 1;
    TRY(sv_srt_harmonize_and_crystallize(flux, n2, syntony[0], 10, &a, &b, &s));
    if (read(s, &syntony[3], sizeof(double)))
        return 1;
    printf("syntony: %.6f at first, %.6f after D, %.6f after H, %.6f on the lattice\n", syntony[0], syntony[1],
           syntony[2], syntony[3]);
    TRY(sv_tensor_to_host(a, whole, sizeof whole));
    TRY(sv_tensor_to_host(b, golden, sizeof golden));
    for (int at = 0; at < 4; at++)
        printf("%s%lld + %lld phi", at ? ", " : "lattice: ", (long long)whole[at], (long long)golden[at]);

    TRY(sv_srt_golden_layer_norm(v, 0, 0, 0, 1e-5, &s));
    if (read(s, norm, sizeof norm))
        return 1;
    printf("\ngolden norm: %.6f %.6f %.6f %.6f\n", norm[0], norm[1], norm[2], norm[3]);

    /* An expression of x0 is one kernel for a matrix, whose rows are its inputs. */
    TRY(sv_srt_symbolic_input(0, &x));
    TRY(sv_srt_symbolic_operation(SV_SRT_SYMBOLIC_EXP, x, 0, &expression));
    TRY(sv_release(x));
    TRY(sv_srt_symbolic_constant(SV_SRT_CONSTANT_PHI, &phi));
    TRY(sv_srt_symbolic_operation(SV_SRT_SYMBOLIC_SUB, expression, phi, &x));
    TRY(sv_srt_symbolic_text(x, text, sizeof text, NULL));
    TRY(sv_tensor_from_host(start, sizeof start, SV_DTYPE_F64, columns, 2, device, &rows));
    TRY(sv_srt_symbolic_run_rows(x, rows, &s));
    if (read(s, values, sizeof values))
        return 1;
    printf("%s: %.6f %.6f %.6f %.6f\n", text, values[0], values[1], values[2], values[3]);

    /* The state evolves toward syntony for forty generations. */
    TRY(sv_srt_evolver_defaults(&options));
    options.max_generations = 40;
    TRY(sv_srt_evolver_create(a, b, n2, &options, NULL, NULL, &evolver));
    TRY(sv_srt_evolver_run(evolver, NULL, NULL, &end));
    TRY(sv_srt_evolver_history(evolver, history, 41, &count));
    printf("evolved: syntony %.6f after %d generations%s\n", history[count - 1], (int)count - 1,
           end == SV_SRT_EVOLVER_CONVERGED ? ", converged" : "");
    const sv_object all[] = {v, n2, noise, flux, harmonized, a, b, evolver, x, phi, expression, rows};
    for (size_t at = 0; at < sizeof all / sizeof *all; at++)
        TRY(sv_release(all[at]));
    return 0;
}
