/* Threads that share handles, tensors and a device.
 *
 *   threads CASE
 *
 * runs one case on the fake driver, which SELVEDGE_LIBCUDA names. A case prints nothing unless it fails; the caller checks that
 * too. tests/capi_c.rs runs each case, and .ci/run also with ThreadSanitizer. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 40, SMALL = 16, LARGE = 1 << 17 };

/* The objects that all threads of a case use. */
struct shared {
    pthread_barrier_t barrier;
    sv_tensor small, large, total, changing;
    sv_stream stream;
    sv_event event;
    sv_buffer buffer;
};

struct thread {
    pthread_t id;
    struct shared *shared;
    int index;
};

static void wait_for_all(struct shared *shared)
{
    int result = pthread_barrier_wait(&shared->barrier);

    CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
}

static void start(struct thread *threads, struct shared *shared, void *(*work)(void *))
{
    for (int i = 0; i < THREADS; i++) {
        threads[i].shared = shared;
        threads[i].index = i;
        CHECK(pthread_create(&threads[i].id, NULL, work, &threads[i]) == 0);
    }
}

static void join(struct thread *threads)
{
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i].id, NULL) == 0);
}

static void run(struct shared *shared, void *(*work)(void *))
{
    struct thread threads[THREADS];

    CHECK(pthread_barrier_init(&shared->barrier, NULL, THREADS) == 0);
    start(threads, shared, work);
    join(threads);
    CHECK(pthread_barrier_destroy(&shared->barrier) == 0);
}

static sv_tensor ones(int64_t count, int32_t device)
{
    sv_tensor result = 0;

    OK(sv_tensor_ones(SV_DTYPE_F32, &count, 1, device, &result));
    return result;
}

/* The sum of a tensor's elements, which is exact here. */
static float sum_of(sv_tensor tensor)
{
    sv_tensor sum = 0;
    float found = 0;

    OK(sv_tensor_reduce(tensor, SV_REDUCE_SUM, NULL, 0, 0, 0, &sum));
    OK(sv_tensor_to_host(sum, &found, sizeof found));
    OK(sv_release(sum));
    return found;
}

/* Threads read two tensors, add to a third one in its memory, and end with a reference each. */
static void *add(void *argument)
{
    struct shared *shared = ((struct thread *)argument)->shared;

    wait_for_all(shared);
    for (int round = 0; round < ROUNDS; round++) {
        sv_tensor result = 0, copy = 0;

        OK(sv_retain(shared->small));
        OK(sv_add(shared->small, shared->small, &result));
        CHECK(sum_of(result) == 2 * SMALL);
        OK(sv_release(result));
        OK(sv_add_in_place(shared->total, shared->small));
        /* A copy has all elements of one moment. */
        OK(sv_tensor_copy(shared->total, &copy));
        CHECK((int)sum_of(copy) % SMALL == 0);
        OK(sv_release(copy));
        if (round % 8 == 0) {
            OK(sv_add(shared->large, shared->large, &result));
            CHECK(sum_of(result) == 2 * LARGE);
            OK(sv_release(result));
        }
        STATUS(SV_ERROR_INVALID_HANDLE, sv_add(shared->small, 0, &result));
        CHECK(strstr(sv_last_error(), "sv_binary: add: y: found 0") != NULL);
        OK(sv_release(shared->small));
    }
    return NULL;
}

static void tensors(void)
{
    struct shared shared = {0};

    OK(sv_set_threads(3));
    shared.small = ones(SMALL, SV_CPU);
    shared.large = ones(LARGE, SV_CPU);
    shared.total = ones(SMALL, SV_CPU);
    run(&shared, add);
    CHECK(sum_of(shared.total) == SMALL * (1 + THREADS * ROUNDS));
    OK(sv_release(shared.small));
    OK(sv_release(shared.large));
    OK(sv_release(shared.total));
}

/* The number of the library's threads changes while others compute on them. */
static void *resize(void *argument)
{
    struct thread *thread = argument;

    wait_for_all(thread->shared);
    for (int round = 0; round < ROUNDS; round++) {
        if (thread->index == 0)
            OK(sv_set_threads(1 + (uint32_t)round % 3));
        CHECK(sum_of(thread->shared->large) == LARGE);
    }
    return NULL;
}

static void pool(void)
{
    struct shared shared = {0};

    shared.large = ones(LARGE, SV_CPU);
    run(&shared, resize);
    OK(sv_release(shared.large));
}

/* One thread replaces a tensor and drops it while the others use its handle, which is stale from then on. */
static void *replace(void *argument)
{
    struct thread *thread = argument;
    struct shared *shared = thread->shared;

    for (int round = 0; round < 4 * ROUNDS; round++) {
        if (thread->index == 0)
            shared->changing = ones(SMALL, SV_CPU);
        wait_for_all(shared);
        if (thread->index == 0) {
            OK(sv_release(shared->changing));
        } else {
            sv_tensor result = 0;
            int32_t status = sv_add(shared->changing, shared->small, &result);

            CHECK(status == SV_OK || status == SV_ERROR_INVALID_HANDLE);
            if (status == SV_OK) {
                CHECK(sum_of(result) == 2 * SMALL);
                OK(sv_release(result));
            }
            status = sv_retain(shared->changing);
            CHECK(status == SV_OK || status == SV_ERROR_INVALID_HANDLE);
            if (status == SV_OK)
                OK(sv_release(shared->changing));
        }
        wait_for_all(shared);
        STATUS(SV_ERROR_INVALID_HANDLE, sv_retain(shared->changing));
        wait_for_all(shared);
    }
    return NULL;
}

static void stale(void)
{
    struct shared shared = {0};

    shared.small = ones(SMALL, SV_CPU);
    run(&shared, replace);
    OK(sv_release(shared.small));
}

/* Threads with a stream each and one in common use a buffer, an event and a tensor of the device. */
static void *use_device(void *argument)
{
    struct thread *thread = argument;
    struct shared *shared = thread->shared;
    sv_stream stream = 0;
    sv_pinned pinned = 0;
    unsigned char sent[SMALL], received[SMALL];

    wait_for_all(shared);
    OK(sv_stream_create(0, 0, &stream));
    OK(sv_pinned_create(0, SMALL, &pinned));
    memset(sent, 1 + thread->index, sizeof sent);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t at = (uint64_t)thread->index * SMALL;
        sv_tensor result = 0;
        sv_event event = 0;
        sv_buffer own = 0;

        OK(sv_stream_wait_event(stream, shared->event));
        OK(sv_buffer_upload(stream, shared->buffer, at, sent, sizeof sent));
        OK(sv_event_create(0, 0, &event));
        OK(sv_event_record(event, stream));
        OK(sv_stream_wait_event(shared->stream, event));
        OK(sv_release(event));
        memset(received, 0, sizeof received);
        OK(sv_buffer_download(shared->stream, shared->buffer, at, received, sizeof received));
        CHECK(memcmp(sent, received, sizeof sent) == 0);
        OK(sv_buffer_create(stream, SMALL, &own));
        OK(sv_buffer_copy(stream, shared->buffer, at, own, 0, SMALL));
        OK(sv_pinned_download(stream, own, 0, pinned));
        OK(sv_release(own));
        OK(sv_add(shared->total, shared->total, &result));
        OK(sv_release(result));
        OK(sv_pinned_wait(pinned));
    }
    OK(sv_stream_synchronize(stream));
    OK(sv_release(pinned));
    OK(sv_release(stream));
    return NULL;
}

static void device(void)
{
    struct shared shared = {0};

    OK(sv_stream_create(0, 0, &shared.stream));
    OK(sv_event_create(0, 0, &shared.event));
    OK(sv_event_record(shared.event, shared.stream));
    OK(sv_buffer_zeros(shared.stream, THREADS * SMALL, &shared.buffer));
    shared.total = ones(SMALL, 0);
    run(&shared, use_device);
    OK(sv_device_synchronize(0));
    OK(sv_release(shared.total));
    OK(sv_release(shared.buffer));
    OK(sv_release(shared.event));
    OK(sv_release(shared.stream));
}

/* Threads that used the library see its shutdown, and end after it. */
static void *outlive(void *argument)
{
    struct shared *shared = ((struct thread *)argument)->shared;
    sv_stream stream = 0;
    sv_tensor result = 0;

    CHECK(sum_of(shared->large) == LARGE);
    OK(sv_stream_create(0, 0, &stream));
    OK(sv_add(shared->total, shared->total, &result));
    OK(sv_release(result));
    wait_for_all(shared);
    wait_for_all(shared);
    STATUS(SV_ERROR_SHUT_DOWN, sv_stream_synchronize(stream));
    STATUS(SV_ERROR_SHUT_DOWN, sv_add(shared->total, shared->total, &result));
    return NULL;
}

static void shut_down(void)
{
    struct shared shared = {0};
    struct thread threads[THREADS];

    OK(sv_set_threads(3));
    shared.large = ones(LARGE, SV_CPU);
    shared.total = ones(SMALL, 0);
    CHECK(pthread_barrier_init(&shared.barrier, NULL, THREADS + 1) == 0);
    start(threads, &shared, outlive);
    wait_for_all(&shared);
    OK(sv_shutdown());
    wait_for_all(&shared);
    join(threads);
    OK(sv_shutdown());
}

/* Elements that two threads use at once, and the barrier before and behind that. */
struct race {
    float data[SMALL];
    pthread_barrier_t barrier;
};

enum { RACES = 5000 };

static void *increment(void *argument)
{
    struct race *race = argument;

    pthread_barrier_wait(&race->barrier);
    for (int round = 0; round < RACES; round++)
        for (int i = 0; i < SMALL; i++)
            ((volatile float *)race->data)[i] += 1;
    pthread_barrier_wait(&race->barrier);
    return NULL;
}

/* The caller's mistake: a thread writes elements while the library reads them. ThreadSanitizer reports one of the rounds. */
static void race(void)
{
    static struct race race;
    const int64_t count = SMALL;
    pthread_t thread;

    CHECK(pthread_barrier_init(&race.barrier, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, increment, &race) == 0);
    pthread_barrier_wait(&race.barrier);
    for (int round = 0; round < RACES; round++) {
        sv_tensor tensor = 0;

        OK(sv_tensor_from_host(race.data, sizeof race.data, SV_DTYPE_F32, &count, 1, SV_CPU, &tensor));
        OK(sv_release(tensor));
    }
    pthread_barrier_wait(&race.barrier);
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"tensors", tensors}, {"pool", pool},           {"stale", stale},
        {"device", device},   {"shut_down", shut_down}, {"race", race},
    };

    CHECK(argc == 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    }
    fprintf(stderr, "no case %s\n", argv[1]);
    return 2;
}
