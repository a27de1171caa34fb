// out[i] = left[i] + right[i] for i < n: the demonstration's own kernel, compiled on the machine where it runs. Sixteen
// bytes an access are what a copy reaches; the buffers begin at multiples of that.
extern "C" __global__ void add_f32(const float4* left, const float4* right, float4* out, unsigned long long n) {
    const unsigned long long threads = (unsigned long long)gridDim.x * blockDim.x;
    const unsigned long long first = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned long long i = first; i < n / 4; i += threads) {
        const float4 x = left[i], y = right[i];
        out[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
    const unsigned long long rest = n / 4 * 4 + first;
    if (rest < n) ((float*)out)[rest] = ((const float*)left)[rest] + ((const float*)right)[rest];
}
