extern "C" __global__ void add_one(float* values, unsigned length) { unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i < length) values[i] += 1.0f; }
