// Shared by the kernels of the device suite. Waits are bounded twice, by time and by turns, so that no kernel can hang.
typedef unsigned long long u64;

static __device__ __forceinline__ u64 nanoseconds_now() {
    u64 time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

// Keeps the thread busy for so long.
static __device__ __forceinline__ void spin(u64 nanoseconds) {
    u64 start = nanoseconds_now();
    for (unsigned turn = 0; turn < (1u << 28) && nanoseconds_now() - start < nanoseconds; ++turn) {}
}
