/* Adds two vectors by a kernel of the program's own, compiled by NVRTC if it is installed, else from embedded PTX. */

#include "try.h"
#include "vector_add_ptx.h"

enum { COUNT = 1000, BLOCK = 256 };

static const char source[] =
    "extern \"C\" __global__ void vector_add(const float *x, const float *y, float *sum, unsigned n) {\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) sum[i] = x[i] + y[i];\n"
    "}\n";

/* Loads the kernel from the source, or from the PTX where no NVRTC is. An error of the source is an error. */
static int32_t load(int32_t device, sv_module *module)
{
    sv_program program = 0;
    int32_t status = sv_program_create("vector_add.cu", source, &program);

    if (status == SV_OK)
        status = sv_program_compile_for_device(program, device);
    if (status == SV_OK)
        status = sv_program_load(program, device, module);
    sv_release(program);
    if (status == SV_ERROR_LIBRARY_UNAVAILABLE) {
        printf("from the embedded PTX, for want of NVRTC\n");
        /* The bytes end before the string's zero byte. */
        status = sv_module_load(device, vector_add_ptx, sizeof vector_add_ptx - 1, module);
    }
    return status;
}

int main(void)
{
    static float x_data[COUNT], y_data[COUNT], sum_data[COUNT];
    const uint32_t count = COUNT;
    sv_stream stream = 0;
    sv_module module = 0;
    sv_function function = 0;
    sv_buffer x = 0, y = 0, sum = 0;
    sv_argument arguments[4] = {{0}, {0}, {0}, {0}};
    sv_launch_config config = {0};

    if (sv_stream_create(0, 0, &stream) != SV_OK) {
        printf("no device: %s\n", sv_last_error());
        return 0;
    }
    TRY(load(0, &module));
    TRY(sv_module_function(module, "vector_add", &function));

    for (int i = 0; i < COUNT; i++) {
        x_data[i] = (float)i;
        y_data[i] = (float)(2 * i);
    }
    TRY(sv_buffer_create(stream, sizeof x_data, &x));
    TRY(sv_buffer_create(stream, sizeof y_data, &y));
    TRY(sv_buffer_zeros(stream, sizeof sum_data, &sum));
    TRY(sv_buffer_upload(stream, x, 0, x_data, sizeof x_data));
    TRY(sv_buffer_upload(stream, y, 0, y_data, sizeof y_data));

    /* The launch compares the arguments with the kernel's parameters. */
    arguments[0].kind = SV_ARGUMENT_READ;
    arguments[0].buffer = x;
    arguments[1].kind = SV_ARGUMENT_READ;
    arguments[1].buffer = y;
    arguments[2].kind = SV_ARGUMENT_WRITE;
    arguments[2].buffer = sum;
    arguments[3].kind = SV_ARGUMENT_INTEGER;
    arguments[3].value = &count;
    arguments[3].bytes = sizeof count;
    config.size = sizeof config;
    config.grid[0] = (COUNT + BLOCK - 1) / BLOCK;
    config.block[0] = BLOCK;
    TRY(sv_launch(function, stream, &config, arguments, 4));

    TRY(sv_buffer_download(stream, sum, 0, sum_data, sizeof sum_data));
    for (int i = 0; i < COUNT; i++) {
        if (sum_data[i] != (float)(3 * i)) {
            fprintf(stderr, "element %d: found %g, wanted %d\n", i, (double)sum_data[i], 3 * i);
            return 1;
        }
    }
    printf("%d sums are right\n", COUNT);
    TRY(sv_shutdown());
    return 0;
}
