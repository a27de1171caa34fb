// Two kernels with one parameter of each class, two globals and a constant.
struct Pair { int left; float right; char tail; };
__device__ unsigned counter;
__device__ float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__constant__ double factor = 2.0;

extern "C" __global__ void __launch_bounds__(128) scale(float* out, const float* in, float alpha, unsigned n) {
    __shared__ float tile[128];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? in[i] : 0.0f;
    __syncthreads();
    if (i < n) out[i] = tile[127 - threadIdx.x] * alpha;
}
extern "C" __global__ void mixed(char a, Pair p, unsigned short b, double d, unsigned long long* q) {
    atomicAdd(&counter, 1u);
    *q = (unsigned long long)(a + p.left + b + table[b & 3] + p.right + d * factor + p.tail);
}
