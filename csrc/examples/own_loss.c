/* Fits a line to points of which one is an outlier, by a loss of the program's own: the pseudo-Huber loss, made of operations of
 * variables. The squared loss made by hand is the same number as that of the library. -1 is the CPU, 0 the first device.
 *
 *   cc own_loss.c $(pkg-config --cflags --libs selvedge) -lm -o own_loss && ./own_loss [DEVICE] */

#include <math.h>
#include <stdlib.h>

#include "try.h"

/* The mean of (prediction - target)^2. */
static int32_t squared_loss(sv_variable prediction, sv_tensor target, sv_variable *loss)
{
    sv_variable error = NULL, square = NULL;
    int32_t status = sv_variable_binary_with(SV_OP_SUB, prediction, sv_operand_of(target), &error);
    if (status == SV_OK)
        status = sv_variable_unary(SV_OP_SQUARE, error, &square);
    if (status == SV_OK)
        status = sv_variable_reduce(square, SV_REDUCE_MEAN, NULL, 0, 0, 0, loss);
    sv_release(square);
    sv_release(error);
    return status;
}

/* The mean of sqrt(1 + (prediction - target)^2) - 1: a square near 0, and an absolute value far from it. */
static int32_t robust_loss(sv_variable prediction, sv_tensor target, sv_variable *loss)
{
    sv_variable error = NULL, square = NULL, shifted = NULL, root = NULL, mean = NULL;
    int32_t status = sv_variable_binary_with(SV_OP_SUB, prediction, sv_operand_of(target), &error);
    if (status == SV_OK)
        status = sv_variable_unary(SV_OP_SQUARE, error, &square);
    if (status == SV_OK)
        status = sv_variable_binary_with(SV_OP_ADD, square, sv_operand_real(1), &shifted);
    if (status == SV_OK)
        status = sv_variable_unary(SV_OP_SQRT, shifted, &root);
    if (status == SV_OK)
        status = sv_variable_reduce(root, SV_REDUCE_MEAN, NULL, 0, 0, 0, &mean);
    if (status == SV_OK)
        status = sv_variable_binary_with(SV_OP_SUB, mean, sv_operand_real(1), loss);
    sv_release(mean);
    sv_release(root);
    sv_release(shifted);
    sv_release(square);
    sv_release(error);
    return status;
}

static int32_t number_of(sv_variable variable, double *real)
{
    sv_tensor tensor = NULL;
    sv_number number = {0};
    int32_t status = sv_variable_tensor(variable, &tensor);
    if (status == SV_OK)
        status = sv_tensor_item(tensor, &number);
    *real = number.real;
    sv_release(tensor);
    return status;
}

int main(int argc, char **argv)
{
    /* y = 2 x - 1, except for the point at 1. */
    const float points[9] = {-2, -1.5f, -1, -0.5f, 0, 0.5f, 1, 1.5f, 2}, values[9] = {-5, -4, -3, -2, -1, 0, 20, 2, 3};
    const int64_t shape[2] = {9, 1};
    const int32_t device = argc > 1 ? atoi(argv[1]) : SV_CPU;
    sv_optimizer_options options = {.size = sizeof options, .kind = SV_OPTIMIZER_ADAM, .learning_rate = 0.05};
    sv_tensor x = NULL, y = NULL;
    sv_variable input = NULL, prediction = NULL, loss = NULL, wanted = NULL, weight = NULL;
    sv_model model = NULL;
    sv_optimizer optimizer = NULL;
    double by_hand = 0, of_library = 0, first = 0, last = 0, slope = 0;

    TRY(sv_tensor_from_host(points, sizeof points, SV_DTYPE_F32, shape, 2, device, &x));
    TRY(sv_tensor_from_host(values, sizeof values, SV_DTYPE_F32, shape, 2, device, &y));
    TRY(sv_variable_create(x, 0, &input));
    TRY(sv_model_create(SV_DTYPE_F32, device, 7, &model));
    TRY(sv_model_add_linear(model, 1, 1, 1));
    TRY(sv_optimizer_create(model, &options, &optimizer));

    TRY(sv_model_forward(model, input, &prediction));
    TRY(squared_loss(prediction, y, &loss));
    TRY(sv_variable_loss(prediction, SV_LOSS_MSE, y, &wanted));
    TRY(number_of(loss, &by_hand));
    TRY(number_of(wanted, &of_library));
    if (fabs(by_hand - of_library) > 1e-4 * of_library) {
        fprintf(stderr, "squared loss: %g by hand, %g of the library\n", by_hand, of_library);
        return 1;
    }
    printf("squared loss: %.3f by hand and of the library\n", by_hand);
    TRY(sv_release(wanted));
    TRY(sv_release(loss));
    TRY(sv_release(prediction));

    for (int step = 0; step < 400; step++) {
        TRY(sv_model_forward(model, input, &prediction));
        TRY(robust_loss(prediction, y, &loss));
        TRY(number_of(loss, step == 0 ? &first : &last));
        TRY(sv_optimizer_zero_grad(optimizer));
        TRY(sv_variable_backward(loss, NULL));
        TRY(sv_optimizer_step(optimizer));
        TRY(sv_release(loss));
        TRY(sv_release(prediction));
    }
    TRY(sv_model_parameter(model, "0.weight", &weight));
    TRY(number_of(weight, &slope));
    printf("robust loss: %.3f, and after 400 steps %.3f\nslope: %.1f, of the line without the outlier: 2\n", first, last, slope);
    TRY(sv_release(weight));
    TRY(sv_release(optimizer));
    TRY(sv_release(model));
    TRY(sv_release(input));
    TRY(sv_release(y));
    TRY(sv_release(x));
    return last < first && fabs(slope - 2) < 0.5 ? 0 : 1;
}
