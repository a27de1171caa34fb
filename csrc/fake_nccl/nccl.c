/*
 * nccl.c: an NCCL whose ranks are threads of one process, to go with the fake driver (../fake_driver/fake.h).
 *
 * It stands in for libnccl.so.2. A group of calls copies what it reads out of the fake device, in the order of the stream, and is in
 * progress until the calls of the other ranks are there; ncclCommGetAsyncError then computes, and copies the results back. Nothing blocks:
 * a communicator that was not created so is refused (5). Sums are in double, so those of small whole numbers are exact.
 *
 * Calls that a real NCCL would hang or corrupt memory at are errors of every rank (5): ranks whose calls differ in kind, count, type,
 * operation or root, and two ranks on one device. A call before the last one has ended, or from two threads at once, is one too.
 *
 * Environment: FAKE_NCCL_VERSION=21203 is the version that it says to be.
 * fake_nccl_fail(name, code) lets the next call of a function answer a code; fake_nccl_alive() counts communicators.
 *
 * The driver is the one that SELVEDGE_LIBCUDA names, which the program has loaded.
 */
#include <pthread.h>

#include "../fake_cublas/products.h"

enum { IN_PROGRESS = 7, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, MAX_RANKS = 16, MAX_GROUP = 64 };
enum { INT8, UINT8, INT32, UINT32, INT64, UINT64, HALF, FLOAT, DOUBLE, BFLOAT };
enum { SUM, PRODUCT, MAXIMUM, MINIMUM, MEAN };
typedef enum { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, SEND, RECEIVE } Kind;

typedef struct Communicator Communicator;

/* A call, with a copy of what it reads. */
typedef struct Call {
    Kind kind;
    uint64_t to;
    size_t count;
    int type, operation, peer; /* peer: the root, or the other side of a message */
    Communicator *communicator;
    void *stream;
    uint64_t sequence;
    uint8_t *data;
    int is_taken; /* a message that was received */
    struct Call *next;
} Call;

typedef struct World {
    char id[128];
    int size, joined, error;
    Communicator *ranks[MAX_RANKS];
    Call *published; /* the newest first */
    char words[256];
    struct World *next;
} World;

struct Communicator {
    World *world;
    int rank, device;
    void *context;
    uint64_t sequence;
    Call *pending[MAX_GROUP];
    int pending_count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static World *worlds;
static int alive, failing_code;
static char failing[64];
static _Thread_local Call group[MAX_GROUP];
static _Thread_local uint64_t sources[MAX_GROUP];
static _Thread_local int depth, grouped;

int fake_nccl_alive(void) {
    return alive;
}

void fake_nccl_fail(const char *name, int code) {
    pthread_mutex_lock(&lock);
    snprintf(failing, sizeof failing, "%s", name);
    failing_code = code;
    pthread_mutex_unlock(&lock);
}

/* The code that a call is to answer instead of doing anything. */
static int fault(const char *name) {
    int code = 0;
    pthread_mutex_lock(&lock);
    if (failing_code && !strcmp(failing, name)) code = failing_code, failing_code = 0;
    pthread_mutex_unlock(&lock);
    return code;
}

static int fail(World *world, const char *words) {
    if (!world->error) snprintf(world->words, sizeof world->words, "%s", words);
    world->error = INVALID_USAGE;
    return INVALID_USAGE;
}

/* ---- elements ---- */

static size_t bytes_of(int type) {
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return sizes[type];
}

static int is_float(int type) {
    return type >= HALF;
}

static int of_products(int type) {
    return type == HALF ? R_16F : type == FLOAT ? R_32F : type == DOUBLE ? R_64F : R_16BF;
}

static int64_t load_integer(const uint8_t *from, int type) {
    int8_t i8;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    switch (type) {
    case INT8: memcpy(&i8, from, 1); return i8;
    case UINT8: return *from;
    case INT32: memcpy(&i32, from, 4); return i32;
    case UINT32: memcpy(&u32, from, 4); return u32;
    default: memcpy(&i64, from, 8); return i64;
    }
}

static int64_t combine_integers(int operation, int type, int64_t x, int64_t y) {
    int less = type == UINT64 ? (uint64_t)x < (uint64_t)y : x < y;
    switch (operation) {
    case PRODUCT: return (int64_t)((uint64_t)x * (uint64_t)y);
    case MAXIMUM: return less ? y : x;
    case MINIMUM: return less ? x : y;
    default: return (int64_t)((uint64_t)x + (uint64_t)y);
    }
}

static double combine_floats(int operation, double x, double y) {
    switch (operation) {
    case PRODUCT: return x * y;
    case MAXIMUM: return x > y ? x : y;
    case MINIMUM: return x < y ? x : y;
    default: return x + y;
    }
}

/* Reduces element `at` of all calls to `to`. */
static void reduce(Call *const *calls, int ranks, size_t at, uint8_t *to) {
    int type = calls[0]->type, operation = calls[0]->operation;
    size_t size = bytes_of(type);
    if (is_float(type)) {
        double value = creal(load(calls[0]->data + at * size, of_products(type)));
        for (int rank = 1; rank < ranks; rank++)
            value = combine_floats(operation, value, creal(load(calls[rank]->data + at * size, of_products(type))));
        store(to, of_products(type), operation == MEAN ? value / ranks : value);
        return;
    }
    int64_t value = load_integer(calls[0]->data + at * size, type);
    for (int rank = 1; rank < ranks; rank++)
        value = combine_integers(operation, type, value, load_integer(calls[rank]->data + at * size, type));
    if (operation == MEAN) value = type == UINT64 ? (int64_t)((uint64_t)value / ranks) : value / ranks;
    memcpy(to, &value, size);
}

/* ---- calls ---- */

static size_t read_count(const Call *call) {
    if (call->kind == RECEIVE) return 0;
    return call->kind == REDUCE_SCATTER ? call->count * call->communicator->world->size : call->count;
}

static int write_back(const Call *call, const uint8_t *data, size_t bytes) {
    if (!bytes) return 0;
    return DRIVER("cuMemcpyHtoDAsync_v2", uint64_t, const void *, size_t, void *)(call->to, data, bytes, call->stream) ||
           DRIVER("cuStreamSynchronize", void *)(call->stream);
}

/* Finishes a collective call whose ranks have all come. */
static int compute(Call *call, Call *const *calls) {
    World *world = call->communicator->world;
    int rank = call->communicator->rank;
    size_t size = bytes_of(call->type), count = call->count;
    int gathers = call->kind == ALL_GATHER;
    if (call->kind == REDUCE && rank != call->peer) return 0;
    uint8_t *result = malloc(count * size * (gathers ? world->size : 1) + 8);
    for (size_t at = 0; at < count; at++) switch (call->kind) {
        case ALL_REDUCE:
        case REDUCE: reduce(calls, world->size, at, result + at * size); break;
        case REDUCE_SCATTER: reduce(calls, world->size, rank * count + at, result + at * size); break;
        case BROADCAST: memcpy(result + at * size, calls[call->peer]->data + at * size, size); break;
        default:
            for (int from = 0; from < world->size; from++)
                memcpy(result + (from * count + at) * size, calls[from]->data + at * size, size);
        }
    int failed = write_back(call, result, count * size * (gathers ? world->size : 1));
    free(result);
    return failed;
}

/* Returns whether a call has been finished; the lock is held. */
static int progress_one(Call *call) {
    Communicator *own = call->communicator;
    World *world = own->world;
    if (call->kind == SEND) return 1;
    if (call->kind == RECEIVE) {
        Call *oldest = NULL;
        for (Call *other = world->published; other; other = other->next)
            if (other->kind == SEND && !other->is_taken && other->peer == own->rank &&
                other->communicator->rank == call->peer)
                oldest = other;
        if (!oldest) return 0;
        oldest->is_taken = 1;
        if (oldest->count != call->count || oldest->type != call->type) fail(world, "a message of another length");
        else if (write_back(call, oldest->data, call->count * bytes_of(call->type))) fail(world, "a copy failed");
        return 1;
    }
    Call *calls[MAX_RANKS] = {0};
    for (Call *other = world->published; other; other = other->next)
        if (other->kind < SEND && other->sequence == call->sequence) calls[other->communicator->rank] = other;
    for (int rank = 0; rank < world->size; rank++)
        if (!calls[rank]) return 0;
    for (int rank = 0; rank < world->size; rank++)
        if (calls[rank]->kind != call->kind || calls[rank]->count != call->count || calls[rank]->type != call->type ||
            calls[rank]->operation != call->operation || calls[rank]->peer != call->peer)
            return fail(world, "ranks make different calls"), 1;
    if (compute(call, calls)) fail(world, "a copy failed");
    return 1;
}

static void progress(Communicator *own) {
    int left = 0;
    for (int at = 0; at < own->pending_count; at++)
        if (!progress_one(own->pending[at])) own->pending[left++] = own->pending[at];
    own->pending_count = left;
}

static int state_of(Communicator *own) {
    World *world = own->world;
    if (world->error) return world->error;
    return world->joined < world->size || own->pending_count ? IN_PROGRESS : SUCCESS;
}

/* ---- the functions that a program calls ---- */

int ncclGetVersion(int *version) {
    const char *asked = getenv("FAKE_NCCL_VERSION");
    *version = asked ? atoi(asked) : 22703;
    return SUCCESS;
}

const char *ncclGetLastError(Communicator *own) {
    return own ? own->world->words : "";
}

int ncclGetUniqueId(char *id) {
    static uint64_t number;
    int code = fault("ncclGetUniqueId");
    if (code) return code;
    memset(id, 0, 128);
    pthread_mutex_lock(&lock);
    snprintf(id, 128, "fake NCCL %llu", (unsigned long long)++number);
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

typedef struct {
    char internal[128];
} UniqueId;

typedef struct {
    size_t size;
    unsigned magic, version;
    int blocking;
} Configuration;

int ncclCommInitRankConfig(Communicator **result, int size, UniqueId id, int rank, Configuration *configuration) {
    int code = fault("ncclCommInitRankConfig");
    if (code) return code;
    if (!configuration || configuration->magic != 0xcafebeef || configuration->blocking) return INVALID_USAGE;
    if (size < 1 || size > MAX_RANKS || rank < 0 || rank >= size || !current_context()) return INVALID_ARGUMENT;
    pthread_mutex_lock(&lock);
    World *world = worlds;
    while (world && memcmp(world->id, id.internal, 128)) world = world->next;
    if (!world) {
        world = calloc(1, sizeof *world);
        memcpy(world->id, id.internal, 128);
        world->size = size;
        world->next = worlds;
        worlds = world;
    }
    Communicator *own = calloc(1, sizeof *own);
    own->world = world, own->rank = rank, own->context = current_context();
    DRIVER("cuCtxGetDevice", int *)(&own->device);
    if (world->size != size || world->ranks[rank]) fail(world, "ranks that do not belong together");
    for (int other = 0; other < size; other++)
        if (world->ranks[other] && world->ranks[other]->device == own->device)
            fail(world, "Duplicate GPU detected: two ranks are on one device");
    world->ranks[rank] = own;
    world->joined++;
    alive++;
    *result = own;
    int state = state_of(own);
    pthread_mutex_unlock(&lock);
    /* As the real one, which creates it in the background. */
    return state == SUCCESS ? IN_PROGRESS : state;
}

int ncclCommGetAsyncError(Communicator *own, int *state) {
    int code = fault("ncclCommGetAsyncError");
    pthread_mutex_lock(&lock);
    if (!own->world->error) progress(own);
    *state = code ? code : state_of(own);
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int ncclCommFinalize(Communicator *own) {
    int code = fault("ncclCommFinalize");
    if (code) return code;
    return own->pending_count ? INVALID_USAGE : IN_PROGRESS;
}

static int end(Communicator *own) {
    pthread_mutex_lock(&lock);
    alive--;
    own->pending_count = 0;
    pthread_mutex_unlock(&lock);
    /* Its calls stay for the ranks that read them. */
    return SUCCESS;
}

int ncclCommDestroy(Communicator *own) {
    return end(own);
}

int ncclCommAbort(Communicator *own) {
    return end(own);
}

int ncclGroupStart(void) {
    depth++;
    return fault("ncclGroupStart");
}

int ncclGroupEnd(void) {
    int code = fault("ncclGroupEnd");
    if (--depth) return SUCCESS;
    int count = grouped, state = SUCCESS;
    grouped = 0;
    if (code) return code;
    for (int at = 0; at < count; at++) {
        Call *call = malloc(sizeof *call);
        *call = group[at];
        Communicator *own = call->communicator;
        size_t bytes = read_count(call) * bytes_of(call->type);
        call->data = malloc(bytes + 1);
        if (bytes && (DRIVER("cuMemcpyDtoHAsync_v2", void *, uint64_t, size_t, void *)(call->data, sources[at], bytes,
                                                                                     call->stream) ||
                      DRIVER("cuStreamSynchronize", void *)(call->stream)))
            return 1;
        pthread_mutex_lock(&lock);
        if (call->kind < SEND) call->sequence = ++own->sequence;
        call->next = own->world->published;
        own->world->published = call;
        own->pending[own->pending_count++] = call;
        state = own->world->error ? own->world->error : IN_PROGRESS;
        pthread_mutex_unlock(&lock);
    }
    return state;
}

static int add(const char *name, Call call, uint64_t from) {
    int code = fault(name);
    if (code) return code;
    Communicator *own = call.communicator;
    if (!depth || own->pending_count || current_context() != own->context || grouped == MAX_GROUP) return INVALID_USAGE;
    if (call.type > BFLOAT || call.peer >= own->world->size) return INVALID_ARGUMENT;
    sources[grouped] = from;
    group[grouped++] = call;
    return SUCCESS;
}

int ncclAllReduce(uint64_t from, uint64_t to, size_t count, int type, int operation, Communicator *own, void *stream) {
    return add("ncclAllReduce",
               (Call){.kind = ALL_REDUCE, .to = to, .count = count, .type = type, .operation = operation, .communicator = own, .stream = stream}, from);
}

int ncclReduce(uint64_t from, uint64_t to, size_t count, int type, int operation, int root, Communicator *own, void *stream) {
    return add("ncclReduce",
               (Call){.kind = REDUCE, .to = to, .count = count, .type = type, .operation = operation, .peer = root, .communicator = own, .stream = stream}, from);
}

int ncclBroadcast(uint64_t from, uint64_t to, size_t count, int type, int root, Communicator *own, void *stream) {
    return add("ncclBroadcast",
               (Call){.kind = BROADCAST, .to = to, .count = count, .type = type, .peer = root, .communicator = own, .stream = stream}, from);
}

int ncclAllGather(uint64_t from, uint64_t to, size_t count, int type, Communicator *own, void *stream) {
    return add("ncclAllGather",
               (Call){.kind = ALL_GATHER, .to = to, .count = count, .type = type, .communicator = own, .stream = stream}, from);
}

int ncclReduceScatter(uint64_t from, uint64_t to, size_t count, int type, int operation, Communicator *own, void *stream) {
    return add("ncclReduceScatter",
               (Call){.kind = REDUCE_SCATTER, .to = to, .count = count, .type = type, .operation = operation, .communicator = own, .stream = stream}, from);
}

int ncclSend(uint64_t from, size_t count, int type, int peer, Communicator *own, void *stream) {
    return add("ncclSend",
               (Call){.kind = SEND, .count = count, .type = type, .peer = peer, .communicator = own, .stream = stream}, from);
}

int ncclRecv(uint64_t to, size_t count, int type, int peer, Communicator *own, void *stream) {
    return add("ncclRecv",
               (Call){.kind = RECEIVE, .to = to, .count = count, .type = type, .peer = peer, .communicator = own, .stream = stream}, 0);
}
