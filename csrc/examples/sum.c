/* Uploads an array, replaces its negative elements by 0, and reads the sum.
 *
 *   cc sum.c $(pkg-config --cflags --libs selvedge) -o sum && ./sum */

#include "try.h"

int main(void)
{
    const float data[6] = {1, -2, 3, -4, 5, -6};
    const int64_t shape[2] = {2, 3};
    sv_tensor x = NULL, mask = NULL, sum = NULL;
    const sv_operand zero = sv_operand_real(0);
    sv_operand operands[2];
    sv_number number;

    TRY(sv_tensor_from_host(data, sizeof data, SV_DTYPE_F32, shape, 2, SV_CPU, &x));
    operands[0] = sv_operand_of(x);
    operands[1] = zero;
    TRY(sv_operation(SV_OP_LT, operands, 2, &mask));              /* mask = x < 0 */
    TRY(sv_tensor_masked_fill_in_place(x, mask, &zero));          /* x[mask] = 0 */
    TRY(sv_tensor_reduce(x, SV_REDUCE_SUM, NULL, 0, 0, 0, &sum)); /* over all axes */
    TRY(sv_tensor_item(sum, &number));
    printf("%g\n", number.real);
    TRY(sv_release(sum));
    TRY(sv_release(mask));
    TRY(sv_release(x));
    return 0;
}
