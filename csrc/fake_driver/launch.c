/*
 * launch.c: launches, what a kernel does to memory, occupancy, tensor maps.
 */
#include "state.h"

#define MAX_THREADS 1024u
#define MAX_SHARED (227 << 10)
#define PROCESSORS 132

/* ---- the effect of a kernel ---- */

#define PRIME UINT64_C(0x9E3779B97F4A7C15)

static uint64_t mix(uint64_t h) {
    h = (h ^ (h >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94D049BB133111EB);
    return h ^ (h >> 31);
}

static uint64_t absorb(uint64_t h, const unsigned char *data, size_t size) {
    uint64_t word;
    for (; size >= 8; size -= 8, data += 8) {
        memcpy(&word, data, 8);
        h = (h ^ word) * PRIME;
        h ^= h >> 32;
    }
    for (; size; size--) h = (h ^ *data++) * PRIME;
    return mix(h ^ size);
}

static void overwrite(unsigned char *data, size_t size, uint64_t seed, bool update) {
    for (uint64_t at = 0; at < size; at += 8) {
        uint64_t old = 0, n = size - at < 8 ? size - at : 8;
        if (update) memcpy(&old, data + at, n);
        uint64_t value = (seed + at * PRIME) ^ (old * 5);
        value ^= value >> 29;
        memcpy(data + at, &value, n);
    }
}

void fake_kernel_effect(const char *kernel, const fake_parameter *parameters, size_t count) {
    uint64_t h = absorb(0, (const unsigned char *)kernel, strlen(kernel));
    for (size_t i = 0; i < count; i++) {
        const fake_parameter *p = &parameters[i];
        h = mix(h + (i + 1) * PRIME + p->kind + 8 * p->bytes);
        if (p->kind != FAKE_WRITE) h = absorb(h, p->data, p->bytes);
    }
    for (size_t i = 0; i < count; i++)
        if (parameters[i].kind == FAKE_WRITE || parameters[i].kind == FAKE_UPDATE)
            overwrite(parameters[i].data, parameters[i].bytes, mix(h + (i + 1) * PRIME),
                      parameters[i].kind == FAKE_UPDATE);
}

/* ---- a queued kernel ---- */

typedef struct kernel_argument {
    uint8_t kind;
    location place;
    size_t bytes;   /* behind the address, or of the scalar */
    uint32_t value; /* the scalar's index in `scalars` */
} kernel_argument;

typedef struct kernel_run {
    uint16_t name;
    bool faults;
    uint32_t count;
    condition_values *values; /* of the launch of a graph, one of which it sets; null: sets none */
    int condition;
    fake_launch launch;
    uint32_t first, bytes; /* of the parameters: machine code pads before one that is aligned to 64 */
    unsigned char *scalars;
    kernel_argument argument[];
} kernel_run;

void kernel_run_drop(kernel_run *run) {
    if (run->values) values_drop(run->values);
    for (uint32_t i = 0; i < run->count; i++) location_drop(&run->argument[i].place);
    free(run);
}

/* The address that an argument holds: itself, or in the first word of a tensor map of ours. */
static CUdeviceptr address_in(const unsigned char *value) {
    CUdeviceptr address;
    memcpy(&address, value, sizeof address);
    return address;
}

/* Memory that a runner may use; for a reserved range, the physical memory mapped there. */
typedef struct memory_list {
    fake_memory *of;
    size_t count, capacity;
} memory_list;

static void memory_add(memory_list *list, unsigned char *data, uint64_t bytes) {
    for (size_t i = 0; i < list->count; i++)
        if (list->of[i].data == data) return;
    list->of = grow(list->of, &list->capacity, list->count + 1, sizeof *list->of);
    list->of[list->count++] = (fake_memory){data, bytes};
}

static void memory_add_block(memory_list *list, const block *b) {
    if (b->kind != BLOCK_RESERVED) memory_add(list, b->data, b->size);
    for (size_t i = 0; b->kind == BLOCK_RESERVED && i < b->mappings; i++)
        memory_add(list, b->data + b->mapping[i].from, b->mapping[i].to - b->mapping[i].from);
}

/* Returns whether the kernel has a runner. */
static bool runner_knows(kernel_run *run) {
    if (!G.runner) return false;
    unsigned char *values = zeroed(run->bytes + 8);
    memory_list memory = {0};
    memcpy(values, run->scalars + run->first, run->bytes);
    for (uint32_t at = 0; at + 8 <= run->bytes; at += 8) {
        CUdeviceptr address = address_in(values + at);
        size_t offset;
        const block *b = block_at(address, &offset);
        if (!b || !b->live) continue;
        address = (uint64_t)(uintptr_t)(b->data + offset);
        memcpy(values + at, &address, sizeof address);
        memory_add_block(&memory, b);
    }
    run->launch.values = values;
    run->launch.memory = memory.of;
    run->launch.memories = memory.count;
    bool knows = G.runner(&run->launch) != 0;
    free(memory.of);
    free(values);
    return knows;
}

void run_kernel(kernel_run *run, context *ctx) {
    bool chosen = G.fault_kernel && !strncmp(interned(run->name), G.fault_kernel, strlen(G.fault_kernel)) &&
                  --G.fault_after == 0;
    if (run->faults || chosen) {
        context_fault(ctx);
    } else if (runner_knows(run)) {
    } else if (run->count) {
        fake_parameter few[16], *parameters = run->count > 16 ? zeroed(run->count * sizeof *parameters) : few;
        for (uint32_t i = 0; i < run->count; i++) {
            const kernel_argument *a = &run->argument[i];
            void *data = a->kind == FAKE_SCALAR ? run->scalars + a->value : location_data(&a->place);
            parameters[i] = (fake_parameter){a->kind, data, data ? a->bytes : 0};
            if (!run->values || a->kind != FAKE_READ || parameters[i].bytes < sizeof(uint32_t)) continue;
            memcpy(&run->values->of[run->condition].value, data, sizeof(uint32_t));
            run->values->of[run->condition].set = true;
        }
        fake_kernel_effect(interned(run->name), parameters, run->count);
        if (parameters != few) free(parameters);
    }
}

/* Which condition of the launch under way the kernel sets: the one that its first 64-bit number names. */
static void find_condition(kernel_run *run, const function *f, const unsigned char *values, const call *c) {
    CUgraphConditionalHandle handle = 0;
    for (uint32_t i = f->parameters; i-- > 0;)
        if (f->parameter[i].kind == FAKE_SCALAR && f->parameter[i].size == sizeof handle)
            memcpy(&handle, values + f->parameter[i].offset, sizeof handle);
    int found = launch_values ? values_find(launch_values, handle) : -1;
    if (found < 0) {
        violation(c, "the kernel %s sets a condition that is none of the graph it runs in", interned(f->name));
        return;
    }
    run->values = launch_values;
    run->values->references++;
    run->condition = found;
}

/* Reads the arguments at the call, enters them into the histories, and queues the kernel. */
void kernel_queue(function *f, const unsigned char *values, const CUlaunchConfig *l, manner how, stream *s,
                  const actor *who, const call *c) {
    kernel_run *run = zeroed(sizeof *run + f->parameters * sizeof run->argument[0] + f->parameter_bytes);
    run->name = f->name;
    run->first = f->parameters ? f->parameter[0].offset : 0;
    run->bytes = f->parameter_bytes - run->first;
    run->launch = (fake_launch){.kernel = interned(f->name),
                                .grid = {l->gridDimX, l->gridDimY, l->gridDimZ},
                                .block = {l->blockDimX, l->blockDimY, l->blockDimZ},
                                .cluster = how.cluster,
                                .shared = l->sharedMemBytes,
                                .programmatic = how.programmatic};
    run->faults = f->faults;
    run->scalars = (unsigned char *)&run->argument[f->parameters];
    if (f->parameter_bytes) memcpy(run->scalars, values, f->parameter_bytes);
    history_read(&f->module->history, 0, 1, who, NULL);
    uint64_t limit = UINT64_MAX;
    for (uint32_t i = 0; i < f->parameters; i++)
        if (f->parameter[i].bytes) {
            limit = 0;
            memcpy(&limit, values + f->parameter[i].offset, f->parameter[i].size);
        }
    if (f->sets_condition) {
        find_condition(run, f, values, c);
        if (limit == UINT64_MAX) limit = sizeof(uint32_t);
    }
    bool known = false;
    for (uint32_t i = 0; i < f->parameters; i++) known = known || f->parameter[i].kind != FAKE_SCALAR;
    for (uint32_t i = 0; i < f->parameters && known && !f->faults; i++) {
        const parameter *p = &f->parameter[i];
        kernel_argument *a = &run->argument[run->count++];
        *a = (kernel_argument){.kind = p->kind, .bytes = p->size, .value = p->offset};
        if (p->kind == FAKE_SCALAR) continue;
        CUdeviceptr address = address_in(values + p->offset);
        a->bytes = 0;
        if (limit == 0) continue;
        if (!locate(address, limit == UINT64_MAX ? 1 : limit, c, &a->place)) {
            a->place = (location){0};
            continue;
        }
        block *b = a->place.block;
        a->bytes = limit == UINT64_MAX ? location_rest(&a->place) : limit;
        location_hold(&a->place);
        char text[96];
        if (!location_reachable(&a->place, a->bytes, p->kind != FAKE_READ, s, false))
            violation(c, "%s reaches %s without peer access", interned(f->name), block_text(b, text));
        location_use(&a->place, a->bytes, p->kind != FAKE_READ, who);
    }
    operation *o = operation_new(OPERATION_KERNEL);
    o->as.kernel = run;
    enqueue(s, o);
}

/* ---- launches ---- */

int check_shape(const function *f, const CUlaunchConfig *l, bool cooperative) {
    uint64_t threads = (uint64_t)l->blockDimX * l->blockDimY * l->blockDimZ;
    if (!l->gridDimX || !l->gridDimY || !l->gridDimZ || !threads) return INVALID_VALUE;
    if (l->gridDimX > INT32_MAX || l->gridDimY > 65535 || l->gridDimZ > 65535) return INVALID_VALUE;
    if (l->blockDimX > 1024 || l->blockDimY > 1024 || l->blockDimZ > 64 || threads > MAX_THREADS)
        return INVALID_VALUE;
    if ((uint64_t)l->sharedMemBytes + f->static_shared > (uint64_t)f->max_dynamic_shared) return INVALID_VALUE;
    uint64_t blocks = (uint64_t)l->gridDimX * l->gridDimY * l->gridDimZ;
    if (cooperative && blocks > PROCESSORS * (2048 / ((threads + 31) / 32 * 32))) return COOPERATIVE_LAUNCH_TOO_LARGE;
    return SUCCESS;
}

static int check_cluster(const function *f, const CUlaunchConfig *l, unsigned x, unsigned y, unsigned z) {
    uint64_t blocks = (uint64_t)x * y * z;
    if (!blocks || blocks > (f->non_portable_cluster ? 16u : 8u)) return INVALID_CLUSTER_SIZE;
    if (G.capability < 90) return INVALID_CLUSTER_SIZE;
    return l->gridDimX % x || l->gridDimY % y || l->gridDimZ % z ? INVALID_VALUE : SUCCESS;
}

manner manner_of(const CUlaunchConfig *l) {
    manner how = {0};
    for (unsigned i = 0; i < l->numAttrs; i++) {
        const CUlaunchAttribute *a = &l->attrs[i];
        if (a->id == ATTRIBUTE_CLUSTER_DIMENSION)
            how.cluster = a->value.cluster.x * a->value.cluster.y * a->value.cluster.z;
        if (a->id == ATTRIBUTE_PROGRAMMATIC_STREAM) how.programmatic = a->value.programmatic != 0;
    }
    return how;
}

static int check_attributes(const function *f, const CUlaunchConfig *l, bool *cooperative) {
    if (l->numAttrs && !l->attrs) return INVALID_VALUE;
    for (unsigned i = 0; i < l->numAttrs; i++) {
        const CUlaunchAttribute *a = &l->attrs[i];
        if (a->id > ATTRIBUTE_LAST) return INVALID_VALUE;
        if (a->id == ATTRIBUTE_COOPERATIVE) *cooperative = a->value.cooperative != 0;
        /* CUDA does not say if another driver or device ignores it. */
        if (a->id == ATTRIBUTE_PROGRAMMATIC_STREAM && (G.version < 11080 || G.capability < 90)) return INVALID_VALUE;
        if (a->id == ATTRIBUTE_CLUSTER_DIMENSION) {
            int result = check_cluster(f, l, a->value.cluster.x, a->value.cluster.y, a->value.cluster.z);
            if (result != SUCCESS) return result;
        }
    }
    return SUCCESS;
}

/* Gathers the arguments into one buffer laid out as the kernel's parameters; null when there is too little. */
unsigned char *gather(const function *f, void **arguments, void **extra) {
    unsigned char *values = zeroed(f->parameter_bytes + 8);
    if (extra) {
        const void *from = NULL;
        size_t size = 0;
        for (; *extra != LAUNCH_PARAM_END; extra += 2) {
            if (*extra == LAUNCH_PARAM_BUFFER_POINTER) from = extra[1];
            else if (*extra == LAUNCH_PARAM_BUFFER_SIZE) size = *(size_t *)extra[1];
            else break;
        }
        if (from && size >= f->parameter_bytes) {
            memcpy(values, from, f->parameter_bytes);
            return values;
        }
    } else if (arguments || !f->parameters) {
        uint32_t i = 0;
        for (; i < f->parameters && arguments[i]; i++)
            memcpy(values + f->parameter[i].offset, arguments[i], f->parameter[i].size);
        if (i == f->parameters) return values;
    }
    free(values);
    return NULL;
}

static CUresult launch(call *c, CUfunction handle, const CUlaunchConfig *l, void **arguments, void **extra,
                       bool cooperative) {
    int result = SUCCESS;
    function *f = handle_get(KIND_FUNCTION, handle);
    if (!f) {
        violation(c, "unknown function %#llx, or one of an unloaded module", (unsigned long long)handle);
        return call_end(c, INVALID_HANDLE);
    }
    c->where.detail = f->name;
    stream *s = stream_of(l->hStream, c, &result);
    if (!s) return call_end(c, result);
    if (f->module->ctx->lost) return call_end(c, f->module->ctx->lost);
    if (s->ctx != f->module->ctx) return call_end(c, INVALID_HANDLE);
    if (!stream_bound(s, c)) return call_end(c, INVALID_CONTEXT);
    result = check_attributes(f, l, &cooperative);
    if (result == SUCCESS) result = check_shape(f, l, cooperative);
    if (result != SUCCESS) return call_end(c, result);
    if (arguments && extra) return call_end(c, INVALID_VALUE);
    unsigned char *values = gather(f, arguments, extra);
    if (!values) return call_end(c, INVALID_VALUE);
    if (s->capture) {
        result = capture_kernel(s, f, values, l, cooperative);
    } else {
        actor who = stream_actor(s, c);
        kernel_queue(f, values, l, manner_of(l), s, &who, c);
    }
    free(values);
    return call_end(c, result);
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned shared, CUstream s, void **arguments, void **extra) {
    call c;
    if (!call_begin(&c, F_cuLaunchKernel, CALL_CONTEXT)) return call_end(&c, c.result);
    CUlaunchConfig l = {gx, gy, gz, bx, by, bz, shared, s, NULL, 0};
    return launch(&c, f, &l, arguments, extra, false);
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                          unsigned by, unsigned bz, unsigned shared, CUstream s, void **arguments) {
    call c;
    if (!call_begin(&c, F_cuLaunchCooperativeKernel, CALL_CONTEXT)) return call_end(&c, c.result);
    CUlaunchConfig l = {gx, gy, gz, bx, by, bz, shared, s, NULL, 0};
    return launch(&c, f, &l, arguments, NULL, true);
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *l, CUfunction f, void **arguments, void **extra) {
    call c;
    if (!call_begin(&c, F_cuLaunchKernelEx, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!l) return call_end(&c, INVALID_VALUE);
    return launch(&c, f, l, arguments, extra, false);
}

/* ---- occupancy ---- */

static int blocks_per_processor(const function *f, int threads, size_t dynamic) {
    if (threads < 1 || threads > (int)MAX_THREADS || dynamic + f->static_shared > (size_t)f->max_dynamic_shared)
        return 0;
    int by_threads = 2048 / ((threads + 31) / 32 * 32);
    size_t shared = dynamic + f->static_shared + 1024;
    int by_shared = (int)((228u << 10) / shared);
    int blocks = by_threads < by_shared ? by_threads : by_shared;
    return blocks < 32 ? blocks : 32;
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, CUfunction handle, int threads,
                                                            size_t dynamic) {
    call c;
    if (!call_begin(&c, F_cuOccupancyMaxActiveBlocksPerMultiprocessor, CALL_CONTEXT)) return call_end(&c, c.result);
    const function *f = handle_get(KIND_FUNCTION, handle);
    if (!f) return call_end(&c, INVALID_HANDLE);
    if (!out || threads < 1) return call_end(&c, INVALID_VALUE);
    *out = blocks_per_processor(f, threads, dynamic);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction handle,
                                                 CUoccupancyB2DSize dynamic_of, size_t dynamic, int limit) {
    call c;
    if (!call_begin(&c, F_cuOccupancyMaxPotentialBlockSize, CALL_CONTEXT)) return call_end(&c, c.result);
    const function *f = handle_get(KIND_FUNCTION, handle);
    if (!f) return call_end(&c, INVALID_HANDLE);
    if (!grid || !block) return call_end(&c, INVALID_VALUE);
    int best = 0, best_threads = 0;
    for (int threads = limit > 0 && limit < (int)MAX_THREADS ? limit : (int)MAX_THREADS; threads > 0; threads -= 32) {
        int resident = threads * blocks_per_processor(f, threads, dynamic_of ? dynamic_of(threads) : dynamic);
        if (resident > best) {
            best = resident;
            best_threads = threads;
        }
    }
    if (!best) return call_end(&c, INVALID_VALUE);
    *block = best_threads;
    *grid = best / best_threads * PROCESSORS;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuOccupancyMaxActiveClusters(int *out, CUfunction handle, const CUlaunchConfig *l) {
    call c;
    if (!call_begin(&c, F_cuOccupancyMaxActiveClusters, CALL_CONTEXT)) return call_end(&c, c.result);
    const function *f = handle_get(KIND_FUNCTION, handle);
    if (!f) return call_end(&c, INVALID_HANDLE);
    if (!out || !l || (l->numAttrs && !l->attrs)) return call_end(&c, INVALID_VALUE);
    bool cooperative = false;
    int result = check_attributes(f, l, &cooperative);
    if (result != SUCCESS) return call_end(&c, result);
    int cluster = manner_of(l).cluster ? (int)manner_of(l).cluster : 1;
    *out = blocks_per_processor(f, (int)(l->blockDimX * l->blockDimY * l->blockDimZ), l->sharedMemBytes) *
           PROCESSORS / cluster;
    return call_end(&c, SUCCESS);
}

/* ---- tensor maps ---- */

EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap *out, unsigned type, uint32_t rank, void *address,
                                       const uint64_t *dimensions, const uint64_t *strides, const uint32_t *box,
                                       const uint32_t *steps, unsigned interleave, unsigned swizzle,
                                       unsigned promotion, unsigned fill) {
    call c;
    if (!call_begin(&c, F_cuTensorMapEncodeTiled, 0)) return call_end(&c, c.result);
    bool good = out && (uintptr_t)out % 64 == 0 && type <= 15 && rank >= 1 && rank <= 5 &&
                (uintptr_t)address % 16 == 0 && dimensions && box && steps && (strides || rank == 1) &&
                interleave <= 2 && swizzle <= 6 && promotion <= 3 && fill <= 1;
    for (uint32_t i = 0; good && i < rank; i++) {
        good = dimensions[i] && dimensions[i] <= UINT64_C(1) << 32 && box[i] && box[i] <= 256 && steps[i] &&
               steps[i] <= 8;
        if (i + 1 < rank) good = good && strides[i] % 16 == 0 && strides[i] < UINT64_C(1) << 40;
    }
    if (!good) return call_end(&c, INVALID_VALUE);
    memset(out, 0, sizeof *out);
    out->opaque[0] = (uint64_t)(uintptr_t)address;
    out->opaque[1] = rank | (uint64_t)type << 8 | (uint64_t)interleave << 16 | (uint64_t)swizzle << 24;
    for (uint32_t i = 0; i < rank; i++) {
        out->opaque[2 + i] = dimensions[i];
        out->opaque[7] |= (uint64_t)box[i] << 12 * i;
        if (i + 1 < rank) out->opaque[8 + i] = strides[i];
        out->opaque[12] |= (uint64_t)steps[i] << 4 * i;
    }
    return call_end(&c, SUCCESS);
}
