/* A libcupti.so for tests: each external number that a thread pushes gives records of device work.
 *
 * The work of a number is two kernels, of which the second begins inside of the first, as a node of a graph; the time is that of
 * the pop. FAKE_CUPTI_VERSION is the reported version (28 without it), FAKE_CUPTI_REFUSE the status of a subscription,
 * FAKE_CUPTI_OTHER makes one kernel more at each flush, whose driver call has no number. The layouts are those of CUDA 12.9
 * (cupti_activity.h). */

#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

enum { KERNEL = 10, EXTERNAL = 39, CUSTOM0 = 3, MAX_RECORDS = 1 << 16, DEPTH = 8 };
enum { SUCCESS = 0, INVALID_PARAMETER = 1, MAX_LIMIT_REACHED = 12, QUEUE_EMPTY = 18 };

struct kernel {
    uint32_t kind;
    uint8_t cache, shared;
    uint16_t registers;
    uint32_t requested, executed;
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t local, local_total, correlation;
    int64_t grid_id;
    const char *name;
    void *reserved;
    uint64_t queued, submitted;
    uint8_t rest[8];
    uint64_t node;
    uint8_t tail[64];
};

struct external {
    uint32_t kind, external_kind;
    uint64_t id;
    uint32_t correlation, reserved;
};

typedef void (*request_function)(uint8_t **buffer, size_t *size, size_t *count);
typedef void (*complete_function)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

_Static_assert(offsetof(struct kernel, name) == 104 && offsetof(struct kernel, node) == 144, "the layout of 12.9");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static request_function request;
static complete_function complete;
static int is_subscribed;
static uint64_t enabled;
static uint64_t numbers[MAX_RECORDS], times[MAX_RECORDS];
static size_t waiting;
static uint32_t next_correlation = 1;
static _Thread_local uint64_t stack[DEPTH];
static _Thread_local int depth;

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    /* Another zero than that of any other clock. */
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec + 5000000000;
}

static long setting(const char *name, long otherwise)
{
    const char *value = getenv(name);

    return value ? atol(value) : otherwise;
}

EXPORT uint32_t cuptiGetVersion(uint32_t *version)
{
    *version = (uint32_t)setting("FAKE_CUPTI_VERSION", 28);
    return SUCCESS;
}

EXPORT uint32_t cuptiGetTimestamp(uint64_t *time)
{
    *time = now();
    return SUCCESS;
}

EXPORT uint32_t cuptiSubscribe(void **subscriber, void *function, void *data)
{
    (void)function;
    (void)data;
    if (setting("FAKE_CUPTI_REFUSE", 0))
        return (uint32_t)setting("FAKE_CUPTI_REFUSE", 0);
    if (is_subscribed)
        return 39;
    is_subscribed = 1;
    *subscriber = &is_subscribed;
    return SUCCESS;
}

EXPORT uint32_t cuptiUnsubscribe(void *subscriber)
{
    if (subscriber != &is_subscribed || !is_subscribed)
        return INVALID_PARAMETER;
    is_subscribed = 0;
    return SUCCESS;
}

EXPORT uint32_t cuptiActivityRegisterCallbacks(request_function first, complete_function second)
{
    request = first;
    complete = second;
    return SUCCESS;
}

EXPORT uint32_t cuptiActivityEnable(uint32_t kind)
{
    enabled |= 1ull << kind;
    return SUCCESS;
}

EXPORT uint32_t cuptiActivityDisable(uint32_t kind)
{
    enabled &= ~(1ull << kind);
    return SUCCESS;
}

EXPORT uint32_t cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id)
{
    if (kind != CUSTOM0 || depth == DEPTH)
        return INVALID_PARAMETER;
    stack[depth++] = id;
    return SUCCESS;
}

EXPORT uint32_t cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t *last)
{
    if (kind != CUSTOM0)
        return INVALID_PARAMETER;
    if (depth == 0)
        return QUEUE_EMPTY;
    *last = stack[--depth];
    pthread_mutex_lock(&lock);
    if ((enabled >> EXTERNAL & 1) && (enabled >> KERNEL & 1) && waiting < MAX_RECORDS) {
        numbers[waiting] = *last;
        times[waiting++] = now();
    }
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

static size_t size_of(uint32_t kind)
{
    return kind == KERNEL ? sizeof(struct kernel) : sizeof(struct external);
}

static void put_kernel(uint8_t **at, const char *name, uint64_t start, uint64_t end, uint32_t correlation,
                       uint64_t node)
{
    struct kernel record;

    memset(&record, 0, sizeof record);
    record.kind = KERNEL;
    record.start = start;
    record.end = end;
    record.stream = 7;
    record.grid[0] = 3;
    record.grid[1] = record.grid[2] = record.block[1] = record.block[2] = 1;
    record.block[0] = 64;
    record.correlation = correlation;
    record.name = name;
    record.node = node;
    memcpy(*at, &record, sizeof record);
    *at += sizeof record;
}

EXPORT uint32_t cuptiActivityFlushAll(uint32_t flag)
{
    (void)flag;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < waiting || (i == 0 && setting("FAKE_CUPTI_OTHER", 0)); i++) {
        uint8_t *buffer = NULL, *at;
        size_t size = 0, count = 0;
        uint32_t correlation = next_correlation++;

        request(&buffer, &size, &count);
        if (buffer == NULL || size < 4 * sizeof(struct kernel))
            break;
        at = buffer;
        if (i < waiting) {
            struct external record = {EXTERNAL, CUSTOM0, numbers[i], correlation, 0};

            memcpy(at, &record, sizeof record);
            at += sizeof record;
            put_kernel(&at, "first_kernel", times[i], times[i] + 2000, correlation, 0);
            put_kernel(&at, "node_kernel", times[i] + 1000, times[i] + 3000, correlation, 9);
        }
        if (i == 0 && setting("FAKE_CUPTI_OTHER", 0))
            put_kernel(&at, "other_kernel", now() - 100000, now() - 90000, next_correlation++, 0);
        complete(NULL, 0, buffer, size, (size_t)(at - buffer));
    }
    waiting = 0;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

EXPORT uint32_t cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
    uint8_t *next = buffer;

    if (*record) {
        uint32_t kind;

        memcpy(&kind, *record, sizeof kind);
        next = *record + size_of(kind);
    }
    if (next >= buffer + valid)
        return MAX_LIMIT_REACHED;
    *record = next;
    return SUCCESS;
}

EXPORT uint32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
    (void)context;
    (void)stream;
    *dropped = 0;
    return SUCCESS;
}
