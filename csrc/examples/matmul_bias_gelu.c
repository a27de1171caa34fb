/* Computes gelu(A B + bias) with the epilogue of one matrix product, on the first CUDA device or on the CPU. */

#include <math.h>

#include "try.h"

enum { ROWS = 4, INNER = 8, COLUMNS = 3 };

static double gelu(double x)
{
    const double c = 0.7978845608028654; /* sqrt(2 / pi) */

    return x * (1 + tanh(c * (x + 0.044715 * x * x * x))) / 2;
}

int main(void)
{
    const int64_t a_shape[2] = {ROWS, INNER}, b_shape[2] = {INNER, COLUMNS}, bias_shape[1] = {COLUMNS};
    float a_data[ROWS * INNER], b_data[INNER * COLUMNS], bias_data[COLUMNS], found[ROWS * COLUMNS];
    sv_matmul_options options = {0};
    sv_tensor a = 0, b = 0, result = 0;
    int32_t count = 0, device;
    double largest = 0;

    if (sv_device_count(&count) != SV_OK || count == 0)
        printf("on the CPU, for want of a device: %s\n", sv_last_error());
    device = count > 0 ? 0 : SV_CPU;

    for (int i = 0; i < ROWS * INNER; i++)
        a_data[i] = (float)(i % 7) / 4 - 1;
    for (int i = 0; i < INNER * COLUMNS; i++)
        b_data[i] = (float)(i % 5) / 4;
    for (int i = 0; i < COLUMNS; i++)
        bias_data[i] = (float)i / 2;

    /* The size names the version of the struct; fields that are zero have their defaults. */
    options.size = sizeof options;
    options.activation = SV_ACTIVATION_GELU_TANH;
    TRY(sv_tensor_from_host(a_data, sizeof a_data, SV_DTYPE_F32, a_shape, 2, device, &a));
    TRY(sv_tensor_from_host(b_data, sizeof b_data, SV_DTYPE_F32, b_shape, 2, device, &b));
    TRY(sv_tensor_from_host(bias_data, sizeof bias_data, SV_DTYPE_F32, bias_shape, 1, device, &options.bias));
    TRY(sv_matmul(a, b, &options, &result));
    TRY(sv_tensor_to_host(result, found, sizeof found));

    for (int row = 0; row < ROWS; row++) {
        for (int column = 0; column < COLUMNS; column++) {
            double sum = bias_data[column], difference;

            for (int k = 0; k < INNER; k++)
                sum += (double)a_data[row * INNER + k] * b_data[k * COLUMNS + column];
            difference = fabs(gelu(sum) - (double)found[row * COLUMNS + column]);
            largest = difference > largest ? difference : largest;
        }
    }
    if (largest >= 1e-5) {
        fprintf(stderr, "elements differ by %g from those computed in double\n", largest);
        return 1;
    }
    printf("gelu(A B + bias): the largest difference from double is %.1e\n", largest);
    TRY(sv_release(a));
    TRY(sv_release(b));
    TRY(sv_release(options.bias));
    TRY(sv_release(result));
    return 0;
}
