// Compiled by nvcc for tests/gpu/foreign_images.rs, with what C++ programs do: mangled names, templates, namespaces,
// variables of the module, structs that hold pointers, restricted pointers, launch bounds.
#include <cuda_fp16.h>

__constant__ float weights[4];
__device__ unsigned calls = 10;

namespace shapes {
template <typename T>
__global__ void weigh(const T* __restrict__ in, T* __restrict__ out, int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) atomicAdd(&calls, 1u);
    if (i < length) out[i] = in[i] * static_cast<T>(weights[i & 3]);
}
template __global__ void weigh<float>(const float*, float*, int);
template __global__ void weigh<double>(const double*, double*, int);
}

// An array as CuPy passes it: by value, with the pointer inside.
template <typename T>
struct Array { T* data; long long size, shape, stride; };

__global__ void add_arrays(Array<const int> left, Array<const int> right, Array<int> out) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < out.size) {
        const char* l = reinterpret_cast<const char*>(left.data) + i * left.stride;
        const char* r = reinterpret_cast<const char*>(right.data) + i * right.stride;
        *reinterpret_cast<int*>(reinterpret_cast<char*>(out.data) + i * out.stride) =
            *reinterpret_cast<const int*>(l) + *reinterpret_cast<const int*>(r);
    }
}

extern "C" __global__ void __launch_bounds__(64) halve(const __half* in, __half factor, float* out, bool negate, short length) {
    extern __shared__ float tile[];
    short i = blockIdx.x * 64 + threadIdx.x;
    tile[threadIdx.x] = i < length ? __half2float(in[i]) * __half2float(factor) : 0.0f;
    __syncthreads();
    if (i < length) out[i] = negate ? -tile[threadIdx.x] : tile[threadIdx.x];
}
