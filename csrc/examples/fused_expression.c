/* Computes max(2x + y, 0) as one fused function, on the first CUDA device or on the CPU. */

#include "try.h"

/* Writes the expression of an operation on two expressions. */
static int32_t operation(uint32_t code, sv_expression left, sv_expression right, sv_expression *result)
{
    sv_expression operands[2];

    operands[0] = left;
    operands[1] = right;
    return sv_expression_operation(code, operands, 2, result);
}

int main(void)
{
    const float x_data[6] = {1, -2, 3, -4, 5, -6};
    const float y_data[3] = {10, 0, -10};
    const int64_t x_shape[2] = {2, 3}, y_shape[1] = {3};
    const sv_number two = {SV_NUMBER_REAL, 0, 0, 2.0, 0.0};
    sv_expression x = 0, y = 0, factor = 0, product = 0, sum = 0, result = 0;
    sv_fused function = 0;
    sv_tensor x_tensor = 0, y_tensor = 0, result_tensor = 0;
    sv_operand operands[2] = {{0, {0, 0, 0, 0, 0}}, {0, {0, 0, 0, 0, 0}}};
    float numbers[6];
    int32_t count = 0, device;

    if (sv_device_count(&count) != SV_OK || count == 0)
        printf("on the CPU, for want of a device: %s\n", sv_last_error());
    device = count > 0 ? 0 : SV_CPU;

    TRY(sv_expression_input(0, &x));
    TRY(sv_expression_input(1, &y));
    TRY(sv_expression_number(&two, &factor));
    TRY(operation(SV_OP_MUL, x, factor, &product));
    TRY(operation(SV_OP_ADD, product, y, &sum));
    TRY(sv_expression_operation(SV_OP_RELU, &sum, 1, &result));
    /* The function holds its expressions. The first run with a combination of dtypes compiles it. */
    TRY(sv_fused_create(&result, 1, &function));

    TRY(sv_tensor_from_host(x_data, sizeof x_data, SV_DTYPE_F32, x_shape, 2, device, &x_tensor));
    TRY(sv_tensor_from_host(y_data, sizeof y_data, SV_DTYPE_F32, y_shape, 1, device, &y_tensor));
    operands[0].tensor = x_tensor;
    operands[1].tensor = y_tensor;
    /* y broadcasts to the two rows of x. */
    TRY(sv_fused_run(function, operands, 2, &result_tensor, 1));
    TRY(sv_tensor_to_host(result_tensor, numbers, sizeof numbers));
    for (int i = 0; i < 6; i++) {
        float wanted = 2 * x_data[i] + y_data[i % 3];

        if (numbers[i] != (wanted > 0 ? wanted : 0)) {
            fprintf(stderr, "element %d: found %g\n", i, (double)numbers[i]);
            return 1;
        }
    }
    printf("max(2x + y, 0) = %g %g %g; %g %g %g\n", (double)numbers[0], (double)numbers[1], (double)numbers[2],
           (double)numbers[3], (double)numbers[4], (double)numbers[5]);
    /* Frees every object. */
    TRY(sv_shutdown());
    return 0;
}
