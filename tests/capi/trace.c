/* A trace of a program in C, into the file that the argument names. */

#include <string.h>

#include "check.h"

int main(int argc, char **argv)
{
    const int64_t shape[1] = {8};
    sv_tensor ones = 0, sum = 0;

    CHECK(argc == 2);
    OK(sv_trace_stop());
    STATUS(SV_ERROR_FILE, sv_trace_start("/no/such/folder/trace.json.gz"));
    STATUS(SV_ERROR_INVALID_ARGUMENT, sv_trace_pop());
    CHECK(strstr(sv_last_error(), "sv_trace_pop: range: found none; wanted one that sv_trace_push began") != NULL);
    OK(sv_trace_push("before the trace"));
    OK(sv_trace_pop());
    OK(sv_trace_start(argv[1]));
    STATUS(SV_ERROR_INVALID_ARGUMENT, sv_trace_start(argv[1]));
    OK(sv_trace_push("outer \"range\""));
    OK(sv_trace_push("inner range"));
    OK(sv_tensor_ones(SV_DTYPE_F32, shape, 1, SV_CPU, &ones));
    OK(sv_add(ones, ones, &sum));
    OK(sv_trace_pop());
    OK(sv_trace_pop());
    OK(sv_trace_stop());
    OK(sv_release(sum));
    OK(sv_release(ones));
    return 0;
}
