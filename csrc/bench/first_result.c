/* The steps from the start of a process to the first kernel's result, in bare C: what `ground first-result` does with
 * the crate, and the reference for it. No CUDA header: the prototypes below are all that it needs of the driver.
 *
 *   cc -O2 -Wa,-Icsrc/bench csrc/bench/first_result.c -ldl -o first_result_c
 *
 * It writes "ok" once the result is checked, which is when the benchmark stops its clock, and gives its memory back
 * afterwards. A failed call is named on stderr and ends it with 1. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef int (*init_fn)(unsigned);
typedef int (*device_get_fn)(int *, int);
typedef int (*retain_fn)(void **, int);
typedef int (*set_current_fn)(void *);
typedef int (*stream_create_fn)(void **, unsigned);
typedef int (*handle_fn)(void *);
typedef int (*module_load_fn)(void **, const void *);
typedef int (*module_function_fn)(void **, void *, const char *);
typedef int (*allocate_fn)(uint64_t *, size_t);
typedef int (*free_fn)(uint64_t);
typedef int (*upload_fn)(uint64_t, const void *, size_t, void *);
typedef int (*download_fn)(void *, uint64_t, size_t, void *);
typedef int (*launch_fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                         void **);

/* The PTX text, ended by a zero byte. */
__asm__(".section .rodata\n"
        ".global vector_add_ptx\n"
        "vector_add_ptx:\n"
        ".incbin \"vector_add.ptx\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char vector_add_ptx[];

enum { COUNT = 1 << 16, BLOCK = 256 };

static void check(int code, const char *call)
{
    if (code != 0) {
        fprintf(stderr, "%s gave %d\n", call, code);
        exit(1);
    }
}

static void *find(void *driver, const char *name)
{
    void *symbol = dlsym(driver, name);
    if (symbol == NULL) {
        fprintf(stderr, "the driver has no %s\n", name);
        exit(1);
    }
    return symbol;
}

int main(void)
{
    const char *path = getenv("SELVEDGE_LIBCUDA");
    void *driver = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    init_fn init = (init_fn)find(driver, "cuInit");
    device_get_fn device_get = (device_get_fn)find(driver, "cuDeviceGet");
    retain_fn retain = (retain_fn)find(driver, "cuDevicePrimaryCtxRetain");
    set_current_fn set_current = (set_current_fn)find(driver, "cuCtxSetCurrent");
    stream_create_fn stream_create = (stream_create_fn)find(driver, "cuStreamCreate");
    handle_fn stream_synchronize = (handle_fn)find(driver, "cuStreamSynchronize");
    handle_fn stream_destroy = (handle_fn)find(driver, "cuStreamDestroy_v2");
    module_load_fn module_load = (module_load_fn)find(driver, "cuModuleLoadData");
    module_function_fn module_function = (module_function_fn)find(driver, "cuModuleGetFunction");
    handle_fn module_unload = (handle_fn)find(driver, "cuModuleUnload");
    allocate_fn allocate = (allocate_fn)find(driver, "cuMemAlloc_v2");
    free_fn release = (free_fn)find(driver, "cuMemFree_v2");
    upload_fn upload = (upload_fn)find(driver, "cuMemcpyHtoDAsync_v2");
    download_fn download = (download_fn)find(driver, "cuMemcpyDtoHAsync_v2");
    launch_fn launch = (launch_fn)find(driver, "cuLaunchKernel");

    int device = 0;
    void *context = NULL, *stream = NULL, *module = NULL, *function = NULL;
    check(init(0), "cuInit");
    check(device_get(&device, 0), "cuDeviceGet");
    check(retain(&context, device), "cuDevicePrimaryCtxRetain");
    check(set_current(context), "cuCtxSetCurrent");
    check(stream_create(&stream, 1 /* CU_STREAM_NON_BLOCKING */), "cuStreamCreate");
    check(module_load(&module, vector_add_ptx), "cuModuleLoadData");
    check(module_function(&function, module, "vector_add"), "cuModuleGetFunction");

    size_t bytes = COUNT * sizeof(float);
    float *left = malloc(bytes), *right = malloc(bytes), *result = malloc(bytes);
    if (left == NULL || right == NULL || result == NULL) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    for (int i = 0; i < COUNT; i++) {
        left[i] = (float)i * 0.5f;
        right[i] = (float)(COUNT - i) * 0.25f;
        result[i] = -1.0f;
    }
    uint64_t a = 0, b = 0, c = 0;
    check(allocate(&a, bytes), "cuMemAlloc");
    check(allocate(&b, bytes), "cuMemAlloc");
    check(allocate(&c, bytes), "cuMemAlloc");
    check(upload(a, left, bytes, stream), "cuMemcpyHtoDAsync");
    check(upload(b, right, bytes, stream), "cuMemcpyHtoDAsync");
    unsigned count = COUNT;
    void *arguments[] = {&a, &b, &c, &count};
    check(launch(function, COUNT / BLOCK, 1, 1, BLOCK, 1, 1, 0, stream, arguments, NULL), "cuLaunchKernel");
    check(download(result, c, bytes, stream), "cuMemcpyDtoHAsync");
    check(stream_synchronize(stream), "cuStreamSynchronize");
    for (int i = 0; i < COUNT; i++) {
        if (result[i] != left[i] + right[i]) {
            fprintf(stderr, "element %d is %g, not %g\n", i, (double)result[i], (double)(left[i] + right[i]));
            return 1;
        }
    }
    if (write(STDOUT_FILENO, "ok\n", 3) != 3) {
        return 1;
    }

    check(release(a), "cuMemFree");
    check(release(b), "cuMemFree");
    check(release(c), "cuMemFree");
    check(module_unload(module), "cuModuleUnload");
    check(stream_destroy(stream), "cuStreamDestroy");
    free(left);
    free(right);
    free(result);
    return 0;
}
