/*
 * self_test.c: a program, no part of the library, that treats the fake driver badly and well at random.
 *
 * It is linked with the fake's sources under the address and undefined-behaviour sanitizers: whatever a program does
 * to the driver, stale handles, double frees, races and faults included, the fake's own memory must stay sound. It
 * also repeats a well-ordered program and wants no violation, and holds the histories of ranges against a model of
 * single bytes. One number as argument: how many programs; 2000 by
 * default.
 */
#include "state.h"

CUresult cuInit(unsigned);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxSynchronize(void);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemHostAlloc(void **, size_t, unsigned);
CUresult cuMemFreeHost(void *);
CUresult cuStreamCreateWithPriority(CUstream *, unsigned, int);
CUresult cuStreamDestroy_v2(CUstream);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamQuery(CUstream);
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned);
CUresult cuLaunchHostFunc(CUstream, CUhostFn, void *);
CUresult cuEventCreate(CUevent *, unsigned);
CUresult cuEventDestroy_v2(CUevent);
CUresult cuEventRecord(CUevent, CUstream);
CUresult cuEventSynchronize(CUevent);
CUresult cuEventQuery(CUevent);
CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, size_t, CUstream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void *, size_t, CUstream);
CUresult cuMemcpyDtoHAsync_v2(void *, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *, CUstream);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *, size_t,
                               CUstream);
CUresult cuModuleLoadDataEx(CUmodule *, const void *, unsigned, int *, void **);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuMemAddressReserve(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
CUresult cuMemAddressFree(CUdeviceptr, size_t);
CUresult cuMemCreate(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long);
CUresult cuMemRelease(CUmemGenericAllocationHandle);
CUresult cuMemMap(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
CUresult cuMemUnmap(CUdeviceptr, size_t);
CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
CUresult cuMemAllocAsync(CUdeviceptr *, size_t, CUstream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *, size_t, CUmemoryPool, CUstream);
CUresult cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuMemPoolCreate(CUmemoryPool *, const CUmemPoolProps *);
CUresult cuMemPoolDestroy(CUmemoryPool);
CUresult cuMemPoolTrimTo(CUmemoryPool, size_t);
CUresult cuStreamBeginCapture_v2(CUstream, int);
CUresult cuStreamBeginCaptureToGraph(CUstream, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t, int);
CUresult cuStreamUpdateCaptureDependencies(CUstream, CUgraphNode *, size_t, unsigned);
CUresult cuStreamEndCapture(CUstream, CUgraph *);
CUresult cuStreamGetCaptureInfo_v2(CUstream, int *, uint64_t *, CUgraph *, const CUgraphNode **, size_t *);
CUresult cuThreadExchangeStreamCaptureMode(int *);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long);
CUresult cuGraphCreate(CUgraph *, unsigned);
CUresult cuGraphClone(CUgraph *, CUgraph);
CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *, CUgraph, CUcontext, unsigned, unsigned);
CUresult cuGraphAddNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraphNodeParams *);
CUresult cuGraphExecUpdate_v2(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *);
CUresult cuGraphNodeSetEnabled(CUgraphExec, CUgraphNode, unsigned);
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode, CUDA_KERNEL_NODE_PARAMS *);
CUresult cuGraphLaunch(CUgraphExec, CUstream);
CUresult cuGraphExecDestroy(CUgraphExec);
CUresult cuGraphDestroy(CUgraph);
CUresult cuGraphGetNodes(CUgraph, CUgraphNode *, size_t *);
CUresult cuGraphGetEdges(CUgraph, CUgraphNode *, CUgraphNode *, size_t *);
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);

#define PAGE 4096
#define COUNT 6
#define BYTES 256

static const char ptx[] =
    ".version 8.0\n.target sm_80\n.visible .global .b8 space[40];\n"
    ".visible .entry mix(.param .u64 mix_read_a, .param .u64 mix_update_b, .param .u64 mix_bytes_n) { ret; }\n"
    ".visible .entry set_condition(.param .u64 set_condition_of, .param .u64 set_condition_read_value) { ret; }\n"
    ".visible .entry fault_it() { ret; }\n";

static uint64_t state = 1;
static unsigned pick(unsigned n) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)((state >> 33) % n);
}

static struct {
    CUdeviceptr block[COUNT];
    unsigned char *pinned[COUNT];
    CUstream stream[COUNT];
    CUevent event[COUNT];
    CUdeviceptr range; /* of eight pages */
    CUmemGenericAllocationHandle memory[COUNT];
    CUmemoryPool pool;
    CUgraph graph[COUNT]; /* and bodies of conditional nodes */
    CUgraphExec instance[COUNT];
    CUgraphConditionalHandle condition[COUNT];
    CUmodule module;
    CUfunction mix, set, fault;
} p;
static const CUmemAllocationProp on_first = {.type = ALLOCATION_PINNED, .location = {LOCATION_DEVICE, 0}};
static const CUmemPoolProps pool_on_first = {.allocType = ALLOCATION_PINNED, .location = {LOCATION_DEVICE, 0}};
static CUcontext primary[2];
static int called;
/* Outlives the programs: copies to it may be late. */
static unsigned char pageable[2 * BYTES];

static void host_function(void *argument) { ++*(int *)argument; }

#define MUST(call) \
    do { \
        int code_ = (call); \
        if (code_) { \
            fprintf(stderr, "line %d: %s: %d\n", __LINE__, #call, code_); \
            exit(1); \
        } \
    } while (0)

static void begin(void) {
    MUST(cuInit(0));
    for (int d = 0; d < 2; d++) MUST(cuDevicePrimaryCtxRetain(&primary[d], d));
    MUST(cuCtxSetCurrent(primary[0]));
    for (int i = 0; i < COUNT; i++) {
        void *pointer;
        MUST(cuMemAlloc_v2(&p.block[i], BYTES));
        MUST(cuMemHostAlloc(&pointer, BYTES, 0));
        p.pinned[i] = pointer;
        MUST(cuStreamCreateWithPriority(&p.stream[i], STREAM_NON_BLOCKING, 0));
        MUST(cuEventCreate(&p.event[i], EVENT_DISABLE_TIMING));
    }
    MUST(cuMemAddressReserve(&p.range, 8 * PAGE, 0, 0, 0));
    for (int i = 0; i < COUNT; i++) MUST(cuMemCreate(&p.memory[i], PAGE << (i % 2), &on_first, 0));
    MUST(cuMemPoolCreate(&p.pool, &pool_on_first));
    MUST(cuModuleLoadDataEx(&p.module, ptx, 0, NULL, NULL));
    MUST(cuModuleGetFunction(&p.mix, p.module, "mix"));
    MUST(cuModuleGetFunction(&p.set, p.module, "set_condition"));
    MUST(cuModuleGetFunction(&p.fault, p.module, "fault_it"));
}

static void launch(CUstream s, CUdeviceptr a, CUdeviceptr b, uint64_t n) {
    void *arguments[] = {&a, &b, &n};
    cuLaunchKernel(p.mix, 1, 1, 1, 32, 1, 1, 0, s, arguments, NULL);
}

/* The same with virtual memory and pools. */
static void badly_apart(void) {
    unsigned a = pick(COUNT), s = pick(COUNT), page = pick(8);
    CUmemAccessDesc access = {{LOCATION_DEVICE, (int)pick(2)}, (int)pick(4)};
    CUdeviceptr at = p.range + page * PAGE;
    switch (pick(20)) {
    case 0:
        if (!pick(4)) cuMemAddressFree(p.range, 8 * PAGE);
        break;
    case 1: cuMemAddressReserve(&p.range, 8 * PAGE, pick(2) ? 1 << 24 : 0, 0, 0); break;
    case 2: cuMemRelease(p.memory[a]); break;
    case 3: cuMemCreate(&p.memory[a], PAGE, &on_first, 0); break;
    case 4:
    case 5: cuMemUnmap(at, PAGE << pick(2)); break;
    case 6:
    case 7:
    case 8: cuMemMap(at, PAGE << (a % 2), 0, p.memory[a], 0); break;
    case 9:
    case 10: cuMemSetAccess(at, PAGE << pick(2), &access, 1); break;
    case 11: cuMemsetD8Async(at + pick(PAGE), 1, pick(2 * PAGE), p.stream[s]); break;
    case 12: launch(p.stream[s], at, p.block[a], BYTES); break;
    case 13: launch(p.stream[s], p.block[a], at + PAGE - 8, BYTES); break;
    case 14: cuMemAllocAsync(&p.block[a], 1 + pick(BYTES), p.stream[s]); break;
    case 15: cuMemAllocFromPoolAsync(&p.block[a], 1 + pick(BYTES), p.pool, p.stream[s]); break;
    case 16:
    case 17: cuMemFreeAsync(p.block[a], p.stream[s]); break;
    case 18: cuMemPoolTrimTo(p.pool, pick(BYTES)); break;
    default:
        if (!pick(4)) cuMemPoolDestroy(p.pool);
    }
}

/* The same with captures and graphs. */
static void badly_captured(void) {
    unsigned a = pick(COUNT), b = pick(COUNT), s = pick(COUNT);
    CUgraphNode nodes[8] = {0}, ends[8];
    size_t count = pick(9);
    uint64_t id, bytes = pick(BYTES + 8);
    void *arguments[] = {&p.block[a], &p.block[b], &bytes};
    CUDA_KERNEL_NODE_PARAMS kernel = {p.mix, 1, 1, 1, 1, 1, 1, 0, arguments, NULL, 0, 0};
    int mode = (int)pick(4), status;
    switch (pick(14)) {
    case 0:
    case 1: cuStreamBeginCapture_v2(p.stream[s], mode); break;
    case 2:
    case 3:
    case 4: cuStreamEndCapture(p.stream[s], &p.graph[a]); break;
    case 5: cuThreadExchangeStreamCaptureMode(&mode); break;
    case 6: cuStreamGetCaptureInfo_v2(p.stream[s], &status, &id, &p.graph[a], NULL, &count); break;
    case 7: cuGraphInstantiateWithFlags(&p.instance[a], p.graph[b], 0); break;
    case 8:
    case 9:
    case 10: cuGraphLaunch(p.instance[a], p.stream[s]); break;
    case 11:
        cuGraphGetNodes(p.graph[a], nodes, &count);
        cuGraphExecKernelNodeSetParams_v2(p.instance[b], nodes[pick(8)], &kernel);
        break;
    case 12: cuGraphGetEdges(p.graph[a], nodes, ends, &count); break;
    default:
        if (pick(3)) cuGraphDestroy(p.graph[a]);
        else cuGraphExecDestroy(p.instance[a]);
    }
}

/* The same with graphs in graphs. */
static void badly_nested(void) {
    unsigned a = pick(COUNT), b = pick(COUNT), s = pick(COUNT), kind = pick(5);
    CUgraphNode nodes[8] = {0}, node;
    size_t count = 8;
    CUgraphNodeParams child = {.type = pick(4) ? NODE_CHILD : NODE_EMPTY, .as.graph = p.graph[b]};
    CUgraphNodeParams conditional = {
        .type = NODE_CONDITION,
        .as.conditional = {p.condition[b], kind < 2 ? CONDITION_IF : kind < 4 ? CONDITION_WHILE : CONDITION_SWITCH,
                           kind % 2 ? 1 : 2, NULL, 0}};
    CUgraphExecUpdateResultInfo info;
    CUDA_KERNEL_NODE_PARAMS kernel;
    void *arguments[] = {&p.condition[b], &p.block[a]};
    cuGraphGetNodes(p.graph[a], nodes, &count);
    if (count > 8) count = 8;
    switch (pick(14)) {
    case 0: cuGraphCreate(&p.graph[a], 0); break;
    case 1: cuGraphClone(&p.graph[a], p.graph[b]); break;
    case 2:
    case 3: cuGraphConditionalHandleCreate(&p.condition[a], p.graph[b], 0, pick(3), pick(2)); break;
    case 4: cuGraphAddNode(&node, p.graph[a], nodes, pick((unsigned)count + 1), &child); break;
    case 5:
    case 6:
        if (!cuGraphAddNode(&node, p.graph[a], nodes, pick((unsigned)count + 1), &conditional))
            p.graph[pick(COUNT)] = conditional.as.conditional.phGraph_out[0];
        break;
    case 7: cuStreamBeginCaptureToGraph(p.stream[s], p.graph[a], nodes, NULL, pick((unsigned)count + 1), 1); break;
    case 8: cuStreamUpdateCaptureDependencies(p.stream[s], nodes, pick((unsigned)count + 1), pick(3)); break;
    case 9: cuGraphExecUpdate_v2(p.instance[a], p.graph[b], &info); break;
    case 10: cuGraphNodeSetEnabled(p.instance[b], nodes[pick(8)], pick(2)); break;
    case 11:
        if (!cuGraphKernelNodeGetParams_v2(nodes[pick(8)], &kernel))
            cuGraphExecKernelNodeSetParams_v2(p.instance[b], nodes[pick(8)], &kernel);
        break;
    default: cuLaunchKernel(p.set, 1, 1, 1, 1, 1, 1, 0, p.stream[s], arguments, NULL);
    }
}

/* The context ends under it all, or another is there. */
static void badly_reset(void) {
    fake_set_reset_recovers(pick(4) > 0);
    fake_set_faults_spread(pick(2));
    if (pick(2)) cuDevicePrimaryCtxReset_v2((int)pick(2));
    else cuDevicePrimaryCtxRelease_v2((int)pick(2));
    for (int d = 0; d < 2; d++) cuDevicePrimaryCtxRetain(&primary[d], d);
    cuCtxSetCurrent(primary[pick(2)]);
}

/* Anything, in any order, on handles and addresses that may be long gone. */
static void badly(void) {
    unsigned a = pick(COUNT), b = pick(COUNT), s = pick(COUNT), e = pick(COUNT), n = pick(BYTES + 8);
    CUDA_MEMCPY2D pitched = {.srcMemoryType = MEMORY_DEVICE,
                             .srcDevice = p.block[a],
                             .srcPitch = 16,
                             .dstMemoryType = MEMORY_HOST,
                             .dstHost = p.pinned[b],
                             .dstPitch = 32,
                             .WidthInBytes = pick(16),
                             .Height = pick(8)};
    CUdeviceptr to[] = {p.block[a], (CUdeviceptr)(uintptr_t)p.pinned[s]};
    CUdeviceptr from[] = {(CUdeviceptr)(uintptr_t)pageable, p.block[b]};
    size_t sizes[] = {n + 1, BYTES / 2}, first[] = {0, 1};
    CUmemcpyAttributes order[] = {{.srcAccessOrder = (int)pick(4)}, {.srcAccessOrder = 1}};
    switch (pick(42)) {
    case 0: cuMemFree_v2(p.block[a]); break;
    case 1: cuMemFreeHost(p.pinned[a]); break;
    case 2: cuStreamDestroy_v2(p.stream[s]); break;
    case 3: cuEventDestroy_v2(p.event[e]); break;
    case 4: cuMemAlloc_v2(&p.block[a], 1 + pick(BYTES)); break;
    case 5: cuStreamCreateWithPriority(&p.stream[s], 1, 0); break;
    case 6: cuEventCreate(&p.event[e], 2); break;
    case 7: cuModuleUnload(pick(8) ? 0 : p.module); break;
    case 8: cuStreamSynchronize(p.stream[s]); break;
    case 9: cuEventSynchronize(p.event[e]); break;
    case 10: cuCtxSynchronize(); break;
    case 11: cuCtxSetCurrent(pick(8) ? primary[pick(2)] : fake_foreign_context(0)); break;
    case 12: cuLaunchHostFunc(p.stream[s], host_function, &called); break;
    case 13: fake_fail("*", 1 + pick(9), 999); break;
    case 14:
        if (!pick(8)) cuLaunchKernel(p.fault, 1, 1, 1, 1, 1, 1, 0, p.stream[s], NULL, NULL);
        break;
    case 15: cuMemcpy2DAsync_v2(&pitched, p.stream[s]); break;
    case 16: cuMemcpyDtoHAsync_v2(pageable, p.block[a], n, p.stream[s]); break;
    case 17: cuMemcpyHtoDAsync_v2(p.block[a], pageable, n, p.stream[s]); break;
    case 18: cuMemsetD8Async(p.block[a] - pick(2), 1, n, pick(9) ? p.stream[s] : 0); break;
    case 19: cuStreamQuery(p.stream[s]); break;
    case 20: cuEventQuery(p.event[e]); break;
    case 21:
    case 22:
    case 23: cuEventRecord(p.event[e], p.stream[s]); break;
    case 24:
    case 25:
    case 26: cuStreamWaitEvent(p.stream[s], p.event[e], 0); break;
    case 27:
    case 28:
    case 29: launch(p.stream[s], p.block[a], p.block[b], n); break;
    case 30:
    case 31: cuMemcpyHtoDAsync_v2(p.block[a], p.pinned[b], n, p.stream[s]); break;
    case 32:
    case 33: cuMemcpyDtoHAsync_v2(p.pinned[b], p.block[a], n, p.stream[s]); break;
    case 34:
    case 35: cuMemcpyDtoDAsync_v2(p.block[a], p.block[b], n, p.stream[s]); break;
    case 36: fake_host_write(p.pinned[a], n); break;
    case 37: fake_run(pick(5)); break;
    case 38: cuMemcpyBatchAsync_v2(to, from, sizes, 2, order, first, 1 + pick(2), p.stream[s]); break;
    default: cuMemsetD8Async(p.block[a], (unsigned char)n, BYTES / 2, p.stream[s]); break;
    }
}

/* A graph of a copy and a kernel, made by a capture over two streams, launched twice on others. */
static void well_captured(unsigned s, unsigned other, unsigned a, unsigned b) {
    CUgraph graph;
    CUgraphExec instance;
    CUevent fork, join;
    MUST(cuEventCreate(&fork, EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&join, EVENT_DISABLE_TIMING));
    MUST(cuStreamBeginCapture_v2(p.stream[s], CAPTURE_THREAD_LOCAL));
    MUST(cuMemcpyDtoDAsync_v2(p.block[a], p.block[b], BYTES, p.stream[s]));
    MUST(cuEventRecord(fork, p.stream[s]));
    MUST(cuStreamWaitEvent(p.stream[other], fork, 0));
    launch(p.stream[other], p.block[b], p.block[a], BYTES / 2);
    MUST(cuMemsetD8Async(p.block[a] + BYTES / 2, 1, BYTES / 2, p.stream[s]));
    MUST(cuEventRecord(join, p.stream[other]));
    MUST(cuStreamWaitEvent(p.stream[s], join, 0));
    MUST(cuStreamEndCapture(p.stream[s], &graph));
    MUST(cuGraphInstantiateWithFlags(&instance, graph, 0));
    MUST(cuGraphDestroy(graph));
    MUST(cuGraphLaunch(instance, p.stream[s]));
    MUST(cuGraphLaunch(instance, p.stream[s]));
    MUST(cuGraphExecDestroy(instance));
    MUST(cuEventDestroy_v2(fork));
    MUST(cuEventDestroy_v2(join));
}

/* Memory of a pool and memory mapped for this step alone. */
static void well_apart(unsigned s, unsigned a) {
    CUmemAccessDesc access = {{LOCATION_DEVICE, 0}, ACCESS_READ_WRITE};
    CUmemGenericAllocationHandle memory;
    CUdeviceptr block;
    MUST(cuMemAllocFromPoolAsync(&block, BYTES, p.pool, p.stream[s]));
    MUST(cuMemcpyDtoDAsync_v2(block, p.block[a], BYTES, p.stream[s]));
    MUST(cuMemCreate(&memory, 2 * PAGE, &on_first, 0));
    MUST(cuMemMap(p.range + PAGE, 2 * PAGE, 0, memory, 0));
    MUST(cuMemRelease(memory));
    MUST(cuMemSetAccess(p.range + PAGE, 2 * PAGE, &access, 1));
    MUST(cuMemcpyDtoDAsync_v2(p.range + 2 * PAGE - 8, block, BYTES, p.stream[s]));
    MUST(cuMemFreeAsync(block, p.stream[s]));
    MUST(cuStreamSynchronize(p.stream[s]));
    MUST(cuMemUnmap(p.range + PAGE, 2 * PAGE));
}

/* One step in which each operation waits for the step before it, on whatever stream. */
static void well(unsigned *last) {
    unsigned a = pick(COUNT), b = (a + 1) % COUNT, s = pick(COUNT);
    MUST(cuEventRecord(p.event[*last], p.stream[*last]));
    MUST(cuStreamWaitEvent(p.stream[s], p.event[*last], 0));
    switch (pick(7)) {
    case 0: MUST(cuMemcpyDtoDAsync_v2(p.block[a], p.block[b], BYTES, p.stream[s])); break;
    case 1: MUST(cuMemsetD8Async(p.block[a], 1, BYTES, p.stream[s])); break;
    case 2: launch(p.stream[s], p.block[a], p.block[b], BYTES); break;
    case 3: MUST(cuMemcpyHtoDAsync_v2(p.block[a], p.pinned[b], BYTES, p.stream[s])); break;
    case 4: well_captured(s, (s + 1) % COUNT, a, b); break;
    case 5: well_apart(s, a); break;
    default:
        MUST(cuStreamSynchronize(p.stream[s]));
        MUST(cuMemFree_v2(p.block[a]));
        MUST(cuMemAlloc_v2(&p.block[a], BYTES));
    }
    *last = s;
}

/* ---- histories against a model that keeps every byte by itself ---- */

#define SPAN 512
#define ACTORS 4

static struct {
    uint32_t writer, written, read[ACTORS + 1];
} bytes[SPAN];

static void learn(clock_vector *into, const clock_vector *from) {
    for (int i = 0; i <= ACTORS; i++)
        if (into->time[i] < from->time[i]) into->time[i] = from->time[i];
}

static bool model_objects(unsigned from, unsigned to, bool all, const clock_vector *clock) {
    for (unsigned at = from; at < to; at++) {
        if (bytes[at].written > clock->time[bytes[at].writer]) return true;
        for (int i = 1; i <= ACTORS && all; i++)
            if (bytes[at].read[i] > clock->time[i]) return true;
    }
    return false;
}

static bool ranges(void) {
    static clock_vector clocks[ACTORS + 1];
    history h = {0};
    block what = {.kind = BLOCK_PHYSICAL, .size = SPAN, .ctx = &G.contexts[0]};
    memset(bytes, 0, sizeof bytes);
    memset(clocks, 0, sizeof clocks);
    for (int step = 0; step < 300; step++) {
        unsigned i = 1 + pick(ACTORS), act = pick(12);
        unsigned from = pick(SPAN), to = from + pick(pick(4) ? 8 : SPAN + 1 - from);
        if (to > SPAN) to = SPAN;
        if (!pick(3)) learn(&clocks[i], &clocks[1 + pick(ACTORS)]);
        if (!pick(60)) { /* the host has seen everything, and all that comes comes after it */
            for (int n = 1; n <= ACTORS; n++) learn(&G.host, &clocks[n]);
            for (int n = 1; n <= ACTORS; n++) learn(&clocks[n], &G.host);
        }
        clocks[i].time[i]++;
        actor who = {.component = i, .clock = &clocks[i]};
        bool expected = model_objects(from, to, act >= 6, &clocks[i]);
        uint64_t before = fake_violations();
        if (act < 6) history_read(&h, from, to, &who, &what);
        else if (act < 11) history_write(&h, from, to, &who, &what);
        else history_free(&h, from, to, &who, &what);
        if (before < 900 && (fake_violations() > before) != expected) return false;
        for (unsigned at = from; at < to; at++) {
            if (act >= 6) memset(&bytes[at], 0, sizeof bytes[at]);
            if (act < 6) bytes[at].read[i] = clocks[i].time[i];
            else if (act < 11) bytes[at].written = clocks[i].time[i];
            if (act >= 6) bytes[at].writer = i;
        }
    }
    history_drop(&h);
    fake_reset();
    return true;
}

int main(int count, char **arguments) {
    unsigned programs = count > 1 ? (unsigned)strtoul(arguments[1], NULL, 10) : 2000;
    for (unsigned program = 0; program < programs; program++) {
        fake_set_seed(program);
        fake_set_strict(program % 3 == 0);
        fake_set_granularity(PAGE);
        if (!ranges()) {
            fprintf(stderr, "program %u: the history of a range is not that of its bytes\n", program);
            return 1;
        }
        begin();
        for (int step = 0; step < 60; step++) badly();
        for (int step = 0; step < 60; step++) pick(3) ? badly_apart() : badly();
        for (int step = 0; step < 180; step++) {
            unsigned which = pick(60);
            which < 20 ? badly_nested() : which < 40 ? badly_captured() : which ? badly() : badly_reset();
        }
        char text[4096];
        for (uint64_t i = 0; i < fake_violations(); i++) fake_violation(i, text, sizeof text);
        fake_describe_live(text, sizeof text);
        fake_reset_all();
        fake_counts left;
        fake_live(-1, &left);
        if (left.blocks | left.pinned | left.streams | left.events | left.modules | left.pending | left.bytes |
            left.reservations | left.physical | left.mappings | left.pools | left.captures |
            left.graphs | left.instances) {
            fprintf(stderr, "program %u leaves something\n", program);
            return 1;
        }
        begin();
        unsigned last = 0;
        for (int step = 0; step < 30; step++) well(&last);
        if (fake_violations()) {
            fake_violation(0, text, sizeof text);
            fprintf(stderr, "program %u: %s\n", program, text);
            return 1;
        }
        fake_reset_all();
    }
    return 0;
}
