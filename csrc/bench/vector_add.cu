// out[i] = left[i] + right[i] for i < count: vector_add.ptx again, for `selvedge run` of a source.
extern "C" __global__ void vector_add(const float* left, const float* right, float* out, unsigned count) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = left[i] + right[i];
}
