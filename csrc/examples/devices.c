/* Lists the CUDA devices, or says why there are none.
 *
 *   cc devices.c $(pkg-config --cflags --libs selvedge) -o devices && ./devices */

#include <stdio.h>

#include <selvedge.h>

int main(void)
{
    int32_t count = 0;

    if (sv_abi_version() != SV_ABI_VERSION) {
        fprintf(stderr, "the library has another ABI than the header\n");
        return 1;
    }
    if (sv_device_count(&count) != SV_OK) {
        printf("no device: %s\n", sv_last_error());
        return 0;
    }
    for (int32_t device = 0; device < count; device++) {
        char name[256];
        int32_t major = 0, minor = 0;
        uint64_t free_bytes = 0, total_bytes = 0;

        if (sv_device_name(device, name, sizeof name, NULL) != SV_OK ||
            sv_device_compute_capability(device, &major, &minor) != SV_OK ||
            sv_device_memory(device, &free_bytes, &total_bytes) != SV_OK) {
            fprintf(stderr, "device %d: %s\n", (int)device, sv_last_error());
            return 1;
        }
        printf("%d: %s, compute capability %d.%d, %llu of %llu MiB free\n", (int)device, name, (int)major,
               (int)minor, (unsigned long long)(free_bytes >> 20), (unsigned long long)(total_bytes >> 20));
    }
    return 0;
}
