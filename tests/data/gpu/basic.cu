// Kernels of the device suite that run on every architecture.
//
// The slow ones wait first and act then: whoever wrongly goes ahead of one is ahead of what it does. They are launched as
// one block and loop, so that many of them run side by side.
#include "common.cuh"

extern "C" __global__ void empty() {}

extern "C" __global__ void add(const float* left, const float* right, float* out, unsigned length) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < length) out[i] = left[i] + right[i];
}

extern "C" __global__ void saxpy(float factor, const float* x, float* y, unsigned length) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < length) y[i] = factor * x[i] + y[i];
}

extern "C" __global__ void slow_set(unsigned* out, unsigned length, unsigned value, u64 nanoseconds) {
    spin(nanoseconds);
    for (unsigned i = threadIdx.x; i < length; i += blockDim.x) out[i] = value;
}

extern "C" __global__ void slow_copy(const unsigned* in, unsigned* out, unsigned length, u64 nanoseconds) {
    spin(nanoseconds);
    for (unsigned i = threadIdx.x; i < length; i += blockDim.x) out[i] = in[i];
}

extern "C" __global__ void slow_increment(unsigned* values, unsigned length, u64 nanoseconds) {
    spin(nanoseconds);
    for (unsigned i = threadIdx.x; i < length; i += blockDim.x) values[i] += 1;
}

// When the kernel began and ended, in nanoseconds of the device's clock.
extern "C" __global__ void timestamps(u64* out, u64 nanoseconds) {
    out[0] = nanoseconds_now();
    spin(nanoseconds);
    out[1] = nanoseconds_now();
}

// Grows a log by one value; in order only where its launches are.
extern "C" __global__ void append(unsigned* log, unsigned* length, unsigned value) {
    log[*length] = value;
    *length += 1;
}

extern "C" __global__ void linear_index(unsigned* out) {
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    out[block * threads + thread] = block * threads + thread;
}

// Turns `words` words of dynamic shared memory around, every one of them used.
extern "C" __global__ void turn_around(const unsigned* in, unsigned* out, unsigned words) {
    extern __shared__ unsigned buffer[];
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x) buffer[i] = in[i];
    __syncthreads();
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x) out[i] = buffer[words - 1 - i];
}

// The same beside 4 KB that the code declares.
extern "C" __global__ void turn_around_beside_static(const unsigned* in, unsigned* out, unsigned words) {
    extern __shared__ unsigned buffer[];
    __shared__ unsigned fixed[1024];
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) fixed[i] = i;
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x) buffer[i] = in[i];
    __syncthreads();
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x) out[i] = buffer[words - 1 - i] + fixed[i & 1023];
}

// Every block tells its number, waits for all, and adds up what it sees. `arrived` begins at 0.
extern "C" __global__ void meet(unsigned* arrived, volatile unsigned* told, u64* sums) {
    __shared__ u64 sum;
    if (threadIdx.x == 0) {
        sum = 0;
        told[blockIdx.x] = blockIdx.x + 1;
        __threadfence();
        atomicAdd(arrived, 1u);
        for (unsigned turn = 0; turn < (1u << 26) && *(volatile unsigned*)arrived < gridDim.x; ++turn) {}
        __threadfence();
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) atomicAdd(&sum, (u64)told[i]);
    __syncthreads();
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

struct __align__(2) Half { unsigned short bits; };
struct __align__(8) ComplexFloat { float re, im; };
struct __align__(16) ComplexDouble { double re, im; };
struct Mixed { unsigned char tag; unsigned number; double weight; unsigned short tail[3]; };

// One parameter of each kind; what arrived is written as its bits.
extern "C" __global__ void every_kind(u64* out, signed char i8, unsigned char u8, short i16, unsigned short u16, int i32,
                                      unsigned u32, long long i64, u64 u64_, Half f16, unsigned short bf16, float f32,
                                      double f64, bool flag, ComplexFloat c64, ComplexDouble c128, Mixed mixed) {
    out[0] = (u64)(long long)i8;
    out[1] = u8;
    out[2] = (u64)(long long)i16;
    out[3] = u16;
    out[4] = (u64)(long long)i32;
    out[5] = u32;
    out[6] = (u64)i64;
    out[7] = u64_;
    out[8] = f16.bits;
    out[9] = bf16;
    out[10] = __float_as_uint(f32);
    out[11] = (u64)__double_as_longlong(f64);
    out[12] = flag ? 1 : 0;
    out[13] = ((u64)__float_as_uint(c64.im) << 32) | __float_as_uint(c64.re);
    out[14] = (u64)__double_as_longlong(c128.re);
    out[15] = (u64)__double_as_longlong(c128.im);
    out[16] = mixed.tag;
    out[17] = mixed.number;
    out[18] = (u64)__double_as_longlong(mixed.weight);
    out[19] = mixed.tail[0] | ((u64)mixed.tail[1] << 16) | ((u64)mixed.tail[2] << 32);
}

extern "C" __global__ void many(unsigned* out, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f,
                                unsigned g, unsigned h, unsigned i, unsigned j, unsigned k, unsigned l, unsigned m,
                                unsigned n, unsigned o, unsigned p, unsigned q, unsigned r, unsigned s, unsigned t,
                                unsigned u, unsigned v, unsigned w) {
    unsigned values[23] = {a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w};
    for (unsigned index = 0; index < 23; ++index) out[index] = values[index];
}

struct Large { unsigned words[992]; };

extern "C" __global__ void large_struct(unsigned* out, Large large) {
    for (unsigned i = threadIdx.x; i < 992; i += blockDim.x) out[i] = large.words[i] + 1;
}

// Kernels that end the context, launched in processes of their own.
extern "C" __global__ void write_to_nowhere(unsigned value) { *(volatile unsigned*)(u64)64 = value; }
extern "C" __global__ void write_misaligned(unsigned char* bytes) { *(volatile unsigned*)(bytes + 1) = 1; }
extern "C" __global__ void stop() { asm volatile("trap;"); }

// Writes one element past the end, for a memory checker to find.
extern "C" __global__ void write_past_the_end(unsigned* values, unsigned length) {
    for (unsigned i = threadIdx.x; i <= length; i += blockDim.x) values[i] = i;
}
