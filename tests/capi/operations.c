/* The functions of the header itself, which programs of C89 compile: each passes the code of its operation, which has as many
 * operands as its list says. Then the only element of a tensor, by its dtype. Needs no device. */

#include <string.h>

#include "check.h"

static size_t operations;

static void is_listed(uint32_t code, const char *name, size_t operands)
{
    char found[64];
    size_t arity = 0;

    OK(sv_operation_name(code, found, sizeof found, NULL));
    OK(sv_operation_arity(code, &arity));
    CHECK(strcmp(found, name) == 0 && arity == operands);
    operations++;
}

static void every_operation_is_listed(void)
{
#define UNARY(name, code) is_listed(SV_OP_##code, #name, 1);
#define BINARY(name, code) is_listed(SV_OP_##code, #name, 2);
#define TERNARY(name, code) is_listed(SV_OP_##code, #name, 3);
    SV_UNARY_OPERATIONS(UNARY)
    SV_BINARY_OPERATIONS(BINARY)
    SV_TERNARY_OPERATIONS(TERNARY)
    CHECK(operations > 90);
}

static sv_tensor tensor_of(double value, int32_t dtype)
{
    sv_tensor result = 0;
    sv_number number = {SV_NUMBER_REAL, 0, 0, 0, 0};

    number.real = value;
    OK(sv_tensor_full(&number, dtype, NULL, 0, SV_CPU, &result));
    return result;
}

static sv_number item(sv_tensor tensor)
{
    sv_number number = {-1, -1, -1, -1, -1};

    OK(sv_tensor_item(tensor, &number));
    CHECK(number.reserved == 0);
    return number;
}

/* The item of a result, which this releases. */
static double real_item(sv_tensor result)
{
    sv_number number = item(result);

    CHECK(number.kind == SV_NUMBER_REAL);
    OK(sv_release(result));
    return number.real;
}

static void functions_pass_their_operands_in_order(void)
{
    sv_tensor x = tensor_of(6, SV_DTYPE_F32), y = tensor_of(2, SV_DTYPE_F32), z = tensor_of(0.5, SV_DTYPE_F32);
    sv_tensor result = 0, same = 0;
    sv_operand operand;

    OK(sv_neg(x, &result));
    CHECK(real_item(result) == -6);
    OK(sv_sub(x, y, &result));
    CHECK(real_item(result) == 4);
    OK(sv_fma(x, y, z, &result));
    CHECK(real_item(result) == 12.5);
    OK(sv_tensor_copy(x, &same));
    OK(sv_neg_in_place(x));
    CHECK(item(x).real == -6);
    OK(sv_sub_in_place(x, y));
    CHECK(item(x).real == -8);
    OK(sv_fma_in_place(x, y, z));
    CHECK(item(x).real == -15.5);
    CHECK(real_item(same) == 6);
    operand = sv_operand_real(0.5);
    OK(sv_operation_in_place(SV_OP_MUL, x, &operand, 1));
    CHECK(item(x).real == -7.75);
    operand = sv_operand_integer(2);
    OK(sv_operation_in_place(SV_OP_SUB, x, &operand, 1));
    CHECK(item(x).real == -9.75);
    /* No operand is taken for a number. */
    STATUS(SV_ERROR_INVALID_HANDLE, sv_add(x, 0, &result));
    CHECK(strstr(sv_last_error(), "sv_binary: add: y: found 0") != NULL);
    STATUS(SV_ERROR_INVALID_HANDLE, sv_add_in_place(x, 0));
    CHECK(strstr(sv_last_error(), "sv_operation_in_place: add: ") != NULL);
    STATUS(SV_ERROR_INVALID_HANDLE, sv_neg_in_place(0));
    CHECK(item(x).real == -9.75);
    OK(sv_release(x));
    OK(sv_release(y));
    OK(sv_release(z));
}

static void items_have_the_kind_of_their_dtype(void)
{
    const sv_number largest = {SV_NUMBER_UNSIGNED, 0, -1, 0, 0}, complex = {SV_NUMBER_COMPLEX, 0, 0, 1.5, -2};
    const int64_t pair[1] = {2};
    sv_tensor tensor = tensor_of(1, SV_DTYPE_BOOL);
    sv_number number = item(tensor);

    CHECK(number.kind == SV_NUMBER_BOOL && number.integer == 1 && number.real == 1);
    OK(sv_release(tensor));
    tensor = tensor_of(-7, SV_DTYPE_I8);
    number = item(tensor);
    CHECK(number.kind == SV_NUMBER_INTEGER && number.integer == -7 && number.real == -7);
    OK(sv_release(tensor));
    OK(sv_tensor_full(&largest, SV_DTYPE_U64, NULL, 0, SV_CPU, &tensor));
    number = item(tensor);
    CHECK(number.kind == SV_NUMBER_UNSIGNED && number.integer == -1 && number.real == 18446744073709551616.0);
    OK(sv_release(tensor));
    CHECK(real_item(tensor_of(0.25, SV_DTYPE_BF16)) == 0.25);
    CHECK(real_item(tensor_of(1e300, SV_DTYPE_F64)) == 1e300);
    OK(sv_tensor_full(&complex, SV_DTYPE_C64, NULL, 0, SV_CPU, &tensor));
    number = item(tensor);
    CHECK(number.kind == SV_NUMBER_COMPLEX && number.real == 1.5 && number.imaginary == -2);
    OK(sv_release(tensor));
    OK(sv_tensor_ones(SV_DTYPE_F32, pair, 1, SV_CPU, &tensor));
    STATUS(SV_ERROR_INVALID_ARGUMENT, sv_tensor_item(tensor, &number));
    CHECK(strstr(sv_last_error(), "sv_tensor_item: tensor: found 2 elements; wanted a tensor of one element") != NULL);
    OK(sv_release(tensor));
}

int main(void)
{
    every_operation_is_listed();
    functions_pass_their_operands_in_order();
    items_have_the_kind_of_their_dtype();
    return 0;
}
