/* A profiler as NVTX 3 knows it: the library that NVTX_INJECTION64_PATH names. It writes the ranges of the program to the file of
 * NVTX_TEST_OUTPUT, each line behind its depth. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void (*function)(void);

/* NvtxExportTableCallbacks and NvtxExportTableVersionInfo. */
struct callbacks {
    size_t size;
    int (*module_functions)(int module, function ***table, unsigned int *size);
};

struct version {
    size_t size;
    uint32_t version, reserved;
    void (*set)(uint32_t version);
};

static FILE *output;
static int depth;

static int push(const char *name)
{
    fprintf(output, "%d %s\n", depth, name);
    fflush(output);
    return depth++;
}

static int pop(void)
{
    depth--;
    fprintf(output, "%d end\n", depth);
    fflush(output);
    return depth;
}

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id));

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id))
{
    const struct callbacks *callbacks = export_table(1);
    const struct version *version = export_table(3);
    function **table = NULL;
    unsigned int size = 0;
    const char *path = getenv("NVTX_TEST_OUTPUT");

    if (export_table(99) != NULL || version == NULL || version->version != 3 || version->size != sizeof *version)
        return 0;
    version->set(3);
    if (callbacks == NULL || callbacks->size != sizeof *callbacks)
        return 0;
    /* Modules 1 to 6 are there, and no other. */
    for (int module = 1; module <= 6; module++)
        if (!callbacks->module_functions(module, &table, &size) || table == NULL || size < 6 || table[size - 1] == NULL)
            return 0;
    if (callbacks->module_functions(0, &table, &size) || callbacks->module_functions(7, &table, &size))
        return 0;
    if (!callbacks->module_functions(1, &table, &size) || size != 16 || path == NULL)
        return 0;
    output = fopen(path, "w");
    /* nvtxRangePushA and nvtxRangePop of the core module. */
    *table[9] = (function)push;
    *table[11] = (function)pop;
    return output != NULL;
}
