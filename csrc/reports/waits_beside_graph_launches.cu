/*
 * waits_beside_graph_launches.cu: a stream loses a wait while another thread launches a graph into it; the bare driver alone.
 *
 * Eight threads share four streams. Each writes its own buffer on one stream, records an event there, makes another stream
 * wait for it, copies the buffer to the host on that one, and compares. Once in sixteen turns the write is a graph that the
 * thread has just captured on a stream of its own, instantiated, and destroys afterwards. The program is ordered by the
 * rules of the driver's documentation, and nothing of this library is in it.
 *
 *   nvcc -O2 -std=c++17 -arch=sm_90 waits_beside_graph_launches.cu -lcuda -o waits && ./waits MODE SECONDS
 *
 * On an H200 with driver 580.159.04 some copies bring what the buffer held before the write, always after a plain kernel:
 *
 *   mode 0  nothing held                                                             6 of   532 156, 5 of 544 266
 *   mode 1  a lock of the stream, for the launch of a graph and for records there    7 of 1 423 816
 *   mode 2  a lock of the stream, for the launch of a graph and for waits there      0 of 1 415 995
 *   mode 3  all three under it                                                       0 of 1 346 037
 *
 * So a wait that is issued during the launch of a graph into the same stream is lost. These change nothing: the graph was
 * uploaded before, it is launched twice, it is never destroyed, one lock for instantiating, or for destroying, and for
 * records and waits. Also 0 (of 0.4 to 0.9 million): graphs launched into a stream that only their thread uses; captures
 * without launches; instantiating and destroying without launches; graphs that were launched before; a new event for each
 * record.
 */
#include <cuda.h>
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

/* Takes its time, and then sets n elements. */
__global__ void slow_set(unsigned *out, unsigned n, unsigned value, unsigned long long nanoseconds) {
    unsigned long long now, start;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = value;
}

constexpr int STREAMS = 4, THREADS = 8;
constexpr unsigned N = 3000;

std::mutex pool_lock, stream_locks[STREAMS];
std::vector<CUevent> pool;
std::atomic<long> operations{0}, graphs{0}, wrong_after_kernel{0}, wrong_after_graph{0};

CUevent take_event() {
    {
        std::lock_guard<std::mutex> guard(pool_lock);
        if (!pool.empty()) {
            CUevent event = pool.back();
            pool.pop_back();
            return event;
        }
    }
    CUevent event;
    cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    return event;
}

std::unique_lock<std::mutex> lock_if(bool wanted, int stream) {
    return wanted ? std::unique_lock<std::mutex>(stream_locks[stream]) : std::unique_lock<std::mutex>();
}

int main(int count, char **arguments) {
    if (count != 3) {
        printf("usage: %s MODE SECONDS\n", arguments[0]);
        return 2;
    }
    const int mode = atoi(arguments[1]), seconds = atoi(arguments[2]);
    const bool lock_launch = mode > 0, lock_record = mode == 1 || mode == 3, lock_wait = mode >= 2;
    CUdevice device;
    CUcontext context;
    CUstream streams[STREAMS];
    cuInit(0);
    cuDeviceGet(&device, 0);
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxSetCurrent(context);
    for (auto &stream : streams) cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    slow_set<<<1, 1>>>(nullptr, 0, 0, 0);
    cudaDeviceSynchronize();

    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < THREADS; thread++)
        threads.emplace_back([&, thread] {
            cuCtxSetCurrent(context);
            std::mt19937 random(thread);
            std::vector<unsigned> host(N);
            CUstream own;
            CUdeviceptr buffer;
            cuStreamCreate(&own, CU_STREAM_NON_BLOCKING);
            cuMemAlloc(&buffer, N * sizeof(unsigned));
            auto set = [&](CUstream stream, unsigned value, unsigned long long nanoseconds) {
                slow_set<<<(N + 255) / 256, 256, 0, stream>>>((unsigned *)buffer, N, value, nanoseconds);
            };
            auto order = [&](int first, int second) {
                CUevent event = take_event();
                {
                    auto lock = lock_if(lock_record, first);
                    cuEventRecord(event, streams[first]);
                }
                {
                    auto lock = lock_if(lock_wait, second);
                    cuStreamWaitEvent(streams[second], event, 0);
                }
                std::lock_guard<std::mutex> guard(pool_lock);
                pool.push_back(event);
            };
            while (!stop) {
                const unsigned value = random() >> 8;
                const int writer = random() % STREAMS, reader = random() % STREAMS;
                if (writer == reader) continue;
                const unsigned long long nanoseconds = random() % 8 == 0 ? random() % 50000 : 0;
                CUgraph graph = nullptr;
                CUgraphExec executable = nullptr;
                if (random() % 16 == 0) {
                    graphs++;
                    cuStreamBeginCapture(own, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
                    set(own, value, nanoseconds);
                    cuStreamEndCapture(own, &graph);
                    cuGraphInstantiateWithFlags(&executable, graph, 0);
                    auto lock = lock_if(lock_launch, writer);
                    cuGraphLaunch(executable, streams[writer]);
                } else {
                    set(streams[writer], value, nanoseconds);
                }
                order(writer, reader);
                cuMemcpyDtoHAsync(host.data(), buffer, N * sizeof(unsigned), streams[reader]);
                cuStreamSynchronize(streams[reader]);
                operations++;
                for (unsigned found : host)
                    if (found != value) {
                        (executable ? wrong_after_graph : wrong_after_kernel)++;
                        break;
                    }
                if (executable) {
                    cuGraphExecDestroy(executable);
                    cuGraphDestroy(graph);
                }
                order(reader, writer);
            }
        });
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    stop = true;
    for (auto &thread : threads) thread.join();
    printf("mode %d: %ld operations, %ld graphs, %ld wrong after a kernel, %ld after a graph, last error %d\n", mode,
           operations.load(), graphs.load(), wrong_after_kernel.load(), wrong_after_graph.load(),
           (int)cudaGetLastError());
}
