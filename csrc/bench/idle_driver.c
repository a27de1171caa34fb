/*
 * idle_driver.c: a libcuda.so.1 that does nothing, for timing what the library does around the driver's calls.
 *
 * Every call returns success at once; nothing is copied and no kernel runs. Handles are numbers, device addresses are
 * counted up, host memory is the C library's. It checks nothing; csrc/fake_driver does.
 *
 * The driver of a GPU does some microseconds of work in a launch and leaves little of its caller in the first-level
 * caches. `idle_driver_crowd(true)` has launches walk over as much data and code as those caches hold, which is what
 * small operations meet in earnest.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int result;

#define EXPORT __attribute__((visibility("default")))
#define LINE 64
/* More than the first-level data caches of today's processors. */
#define CROWD_BYTES (64 << 10)

static volatile unsigned char crowd[CROWD_BYTES];
static bool crowded;
static uint64_t calls;
static uintptr_t next_handle = 1, next_address = (uintptr_t)1 << 40;
static _Thread_local void *current;

EXPORT void idle_driver_crowd(bool on) { crowded = on; }

/* How many calls there were: of all functions but the lookup. */
EXPORT uint64_t idle_driver_calls(void) { return calls; }

static void *new_handle(void) { return (void *)(LINE * next_handle++); }

static uint64_t new_address(size_t bytes, size_t alignment) {
    uint64_t address = (next_address + alignment - 1) / alignment * alignment;
    next_address = address + bytes;
    return address;
}

/* Walks over as much code as a first-level instruction cache holds, two jumps to a line. */
static void walk_code(void) {
#if defined(__x86_64__)
    __asm__ volatile(".rept 1024\n jmp 1f\n .balign 32\n 1:\n .endr\n");
#elif defined(__aarch64__)
    __asm__ volatile(".rept 1024\n b 1f\n .balign 32\n 1:\n .endr\n");
#endif
}

static result nothing(void) {
    calls++;
    return 0;
}

static result launch(void) {
    calls++;
    if (crowded) {
        for (size_t at = 0; at < CROWD_BYTES; at += LINE) crowd[at]++;
        walk_code();
    }
    return 0;
}

static result get_number(int *number) {
    *number = 1;
    return nothing();
}

static result get_version(int *version) {
    *version = 12040;
    return nothing();
}

static result device_attribute(int *value, int attribute) {
    enum { COMPUTE_CAPABILITY_MAJOR = 75, COMPUTE_CAPABILITY_MINOR = 76 };
    *value = attribute == COMPUTE_CAPABILITY_MAJOR ? 9 : attribute == COMPUTE_CAPABILITY_MINOR ? 0 : 1024;
    return nothing();
}

static result function_attribute(int *value) {
    *value = 1024;
    return nothing();
}

static result total_memory(size_t *bytes) {
    *bytes = (size_t)64 << 30;
    return nothing();
}

static result memory_info(size_t *left, size_t *total) {
    total_memory(left);
    return total_memory(total);
}

static result context_retain(void **context) {
    static char primary;
    *context = &primary;
    return nothing();
}

static result context_get(void **context) {
    *context = current;
    return nothing();
}

static result context_set(void *context) {
    current = context;
    return nothing();
}

static result make_handle(void **handle) {
    *handle = new_handle();
    return nothing();
}

static result granularity(size_t *bytes) {
    *bytes = (size_t)2 << 20;
    return nothing();
}

static result reserve(uint64_t *address, size_t bytes) {
    *address = new_address(bytes, (size_t)2 << 20);
    return nothing();
}

static result host_allocate(void **memory, size_t bytes) {
    *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    nothing();
    return *memory ? 0 : 2;
}

static result host_free(void *memory) {
    free(memory);
    return nothing();
}

static const struct {
    const char *name;
    void *function;
} table[] = {
    {"cuDriverGetVersion", get_version},
    {"cuDeviceGetCount", get_number},
    {"cuDeviceGetAttribute", device_attribute},
    {"cuDeviceTotalMem", total_memory},
    {"cuDevicePrimaryCtxRetain", context_retain},
    {"cuCtxGetCurrent", context_get},
    {"cuCtxSetCurrent", context_set},
    {"cuMemGetInfo", memory_info},
    {"cuStreamCreateWithPriority", make_handle},
    {"cuEventCreate", make_handle},
    {"cuModuleLoadDataEx", make_handle},
    {"cuModuleGetFunction", make_handle},
    {"cuFuncGetAttribute", function_attribute},
    {"cuMemGetAllocationGranularity", granularity},
    {"cuMemAddressReserve", reserve},
    {"cuMemAlloc", reserve},
    {"cuMemCreate", make_handle},
    {"cuMemHostAlloc", host_allocate},
    {"cuMemFreeHost", host_free},
    {"cuLaunchKernel", launch},
};

/* Any function is found; what the table has not does nothing. */
EXPORT result cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status) {
    (void)version, (void)flags;
    *function = nothing;
    for (size_t at = 0; at < sizeof table / sizeof *table; at++) {
        if (strcmp(table[at].name, name) == 0) *function = table[at].function;
    }
    if (status) *status = 0;
    return 0;
}
