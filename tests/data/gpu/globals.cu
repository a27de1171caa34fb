// A module with variables: the suite reads and writes them from the host.
#include "common.cuh"

extern "C" {
__device__ unsigned counter = 5;
__device__ float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__constant__ double factor = 2.0;

__global__ void scale_table(double* out) {
    if (threadIdx.x < 4) out[threadIdx.x] = table[threadIdx.x] * factor;
}

__global__ void slow_count(u64 nanoseconds) {
    spin(nanoseconds);
    counter += 1;
}
}
