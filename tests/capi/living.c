/* The library inside another program: it leaves the process as it found it.
 *
 *   living CASE [LIBRARY [COPY]]
 *
 * runs one case on the fake driver, which SELVEDGE_LIBCUDA names. LIBRARY and COPY are paths of the shared library for
 * dlopen. A case prints nothing unless it fails; the caller checks that too. tests/capi_c.rs runs each case. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

extern char **environ;

/* The sum of a product of matrices of ones, which goes through a file. */
static void compute(int64_t size)
{
    const int64_t shape[] = {size, size};
    char path[] = P_tmpdir "/selvedge_living_XXXXXX";
    int file = mkstemp(path);
    sv_tensor ones = 0, product = 0, back = 0, sum = 0;
    float found = 0;

    CHECK(file >= 0 && close(file) == 0);
    OK(sv_tensor_ones(SV_DTYPE_F32, shape, 2, SV_CPU, &ones));
    OK(sv_matmul(ones, ones, NULL, &product));
    OK(sv_tensor_write_npy(product, path));
    OK(sv_tensor_read_npy(path, SV_CPU, &back));
    OK(sv_tensor_reduce(back, SV_REDUCE_SUM, NULL, 0, 0, 0, &sum));
    OK(sv_tensor_to_host(sum, &found, sizeof found));
    CHECK(found == (float)(size * size * size));
    OK(sv_release(ones));
    OK(sv_release(product));
    OK(sv_release(back));
    OK(sv_release(sum));
    CHECK(unlink(path) == 0);
}

static int threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = 0;

    CHECK(folder != NULL);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

/* Work that is enough for threads of the library. */
static void compute_on_threads(void)
{
    const int64_t shape[] = {1 << 20};
    sv_tensor ones = 0, sum = 0;
    float found = 0;

    OK(sv_tensor_ones(SV_DTYPE_F32, shape, 1, SV_CPU, &ones));
    OK(sv_tensor_reduce(ones, SV_REDUCE_SUM, NULL, 0, 0, 0, &sum));
    OK(sv_tensor_to_host(sum, &found, sizeof found));
    CHECK(found == 1 << 20);
    OK(sv_release(ones));
    OK(sv_release(sum));
}

/* Starts threads of the library, which stay. */
static void start_threads(void)
{
    OK(sv_set_threads(3));
    compute_on_threads();
    CHECK(threads() > 1);
}

/* Calls a function of each subject. */
static void use(void)
{
    int32_t count = 0, done = 0;
    sv_stream stream = 0;
    sv_event event = 0;
    uint64_t free_bytes = 0, total = 0;
    char text[64];
    size_t length = 0;

    OK(sv_library_report(NULL, 0, &length));
    OK(sv_device_count(&count));
    CHECK(count > 0);
    OK(sv_device_name(0, text, sizeof text, &length));
    CHECK(strlen(text) == (length < sizeof text ? length : sizeof text - 1));
    OK(sv_device_memory(0, &free_bytes, &total));
    OK(sv_stream_create(0, 0, &stream));
    OK(sv_event_create(0, 1, &event));
    OK(sv_event_record(event, stream));
    OK(sv_stream_synchronize(stream));
    OK(sv_event_is_complete(event, &done));
    CHECK(done == 1);
    OK(sv_release(event));
    OK(sv_release(stream));
    STATUS(SV_ERROR_INVALID_HANDLE, sv_stream_synchronize(stream));
    STATUS(SV_ERROR_NO_DEVICE, sv_stream_create(1000, 0, &stream));
    compute(5);
}

/* As `use`, with threads of the library. */
static void use_with_threads(void)
{
    start_threads();
    use();
}

static int is_loaded(const char *name)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    int found = 0;

    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL)
        found |= strstr(line, name) != NULL;
    fclose(maps);
    return found;
}

static void versions(void)
{
    CHECK(sv_abi_version() == SV_ABI_VERSION);
    CHECK(sv_version() == SV_VERSION_MAJOR * 10000 + SV_VERSION_MINOR * 100 + SV_VERSION_PATCH);
    CHECK(strcmp(sv_last_error(), "") == 0);
}

/* Neither loading the library nor its versions open a library of CUDA or start a thread. */
static void loading(void)
{
    static const char *libraries[] = {"libcuda", "libnvrtc", "libcublas", "libnccl"};
    int32_t count = 0;

    versions();
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        CHECK(!is_loaded(libraries[i]));
    CHECK(threads() == 1);
    OK(sv_device_count(&count));
    CHECK(is_loaded("libcuda"));
}

static void rounding(void)
{
    CHECK(fesetround(FE_DOWNWARD) == 0);
    use_with_threads();
    CHECK(fegetround() == FE_DOWNWARD);
}

static void locale(void)
{
    CHECK(setlocale(LC_ALL, "C.UTF-8") != NULL);
    use_with_threads();
    CHECK(strcmp(setlocale(LC_NUMERIC, NULL), "C.UTF-8") == 0);
    CHECK(strcmp(setlocale(LC_CTYPE, NULL), "C.UTF-8") == 0);
}

static void environment(void)
{
    char *before[4096];
    char folder[4096], after[4096];
    size_t count = 0;

    CHECK(getcwd(folder, sizeof folder) != NULL);
    for (; environ[count] != NULL && count < 4095; count++)
        CHECK((before[count] = strdup(environ[count])) != NULL);
    use_with_threads();
    for (size_t i = 0; i < count; i++) {
        CHECK(environ[i] != NULL && strcmp(environ[i], before[i]) == 0);
        free(before[i]);
    }
    CHECK(environ[count] == NULL);
    CHECK(getcwd(after, sizeof after) != NULL && strcmp(folder, after) == 0);
}

static void on_signal(int number)
{
    (void)number;
}

static void signals(void)
{
    struct sigaction before[32], after, own;
    sigset_t blocked, blocked_after;

    memset(&own, 0, sizeof own);
    own.sa_handler = on_signal;
    CHECK(sigaction(SIGUSR1, &own, NULL) == 0);
    CHECK(sigaction(SIGPIPE, &own, NULL) == 0);
    for (int i = 1; i < 32; i++)
        CHECK(sigaction(i, NULL, &before[i]) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0);
    use_with_threads();
    for (int i = 1; i < 32; i++) {
        CHECK(sigaction(i, NULL, &after) == 0);
        CHECK(before[i].sa_handler == after.sa_handler && before[i].sa_flags == after.sa_flags);
    }
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &blocked_after) == 0);
    for (int i = 1; i < 32; i++)
        CHECK(sigismember(&blocked, i) == sigismember(&blocked_after, i));
}

/* The caller's context is current after each call. Without one, the library's own stays current, as the runtime API's does. */
static void context(void)
{
    void *driver = dlopen(getenv("SELVEDGE_LIBCUDA"), RTLD_NOW);
    int (*initialize)(unsigned);
    int (*retain)(void **, int);
    int (*set)(void *);
    int (*current)(void **);
    void *own = NULL, *found = NULL;

    CHECK(driver != NULL);
    *(void **)&initialize = dlsym(driver, "cuInit");
    *(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
    *(void **)&set = dlsym(driver, "cuCtxSetCurrent");
    *(void **)&current = dlsym(driver, "cuCtxGetCurrent");
    CHECK(initialize != NULL && retain != NULL && set != NULL && current != NULL);
    CHECK(initialize(0) == 0);
    /* The library uses device 0, this program device 1. */
    CHECK(retain(&own, 1) == 0 && own != NULL && set(own) == 0);
    use_with_threads();
    CHECK(current(&found) == 0 && found == own);
    CHECK(set(NULL) == 0);
    use_with_threads();
    CHECK(retain(&own, 0) == 0 && current(&found) == 0 && (found == NULL || found == own));
}

static void *fail(void *unused)
{
    (void)unused;
    CHECK(strcmp(sv_last_error(), "") == 0);
    STATUS(SV_ERROR_INVALID_ARGUMENT, sv_device_count(NULL));
    CHECK(strstr(sv_last_error(), "sv_device_count") != NULL);
    return NULL;
}

/* Each thread has its own message. */
static void messages(void)
{
    pthread_t thread;

    STATUS(SV_ERROR_INVALID_HANDLE, sv_stream_synchronize((sv_stream)7));
    CHECK(pthread_create(&thread, NULL, fail, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(strstr(sv_last_error(), "sv_stream_synchronize: stream: found 0x7") != NULL);
}

static void *work(void *stream)
{
    for (int i = 0; i < 200; i++) {
        use();
        OK(sv_retain(*(sv_stream *)stream));
        OK(sv_stream_synchronize(*(sv_stream *)stream));
        OK(sv_release(*(sv_stream *)stream));
    }
    return NULL;
}

/* Threads share handles. */
static void many_threads(void)
{
    pthread_t thread[4];
    sv_stream stream = 0;

    OK(sv_stream_create(0, 0, &stream));
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&thread[i], NULL, work, &stream) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    OK(sv_release(stream));
    STATUS(SV_ERROR_INVALID_HANDLE, sv_release(stream));
}

/* After a shutdown calls return a status; a second shutdown does nothing; no thread of the library is left. */
static void shutdown_twice(void)
{
    sv_stream stream = 0;
    int32_t count = 0;
    int before = threads();

    use_with_threads();
    OK(sv_stream_create(0, 0, &stream));
    CHECK(threads() > before);
    OK(sv_shutdown());
    /* The kernel lists a joined thread for a moment more. */
    for (int i = 0; i < 5000 && threads() > before; i++)
        usleep(1000);
    CHECK(threads() == before);
    STATUS(SV_ERROR_SHUT_DOWN, sv_device_count(&count));
    STATUS(SV_ERROR_SHUT_DOWN, sv_stream_synchronize(stream));
    STATUS(SV_ERROR_SHUT_DOWN, sv_release(stream));
    CHECK(strstr(sv_last_error(), "shut down") != NULL);
    OK(sv_shutdown());
    CHECK(sv_abi_version() == SV_ABI_VERSION);
}

static void shutdown_first(void)
{
    int32_t count = 0;

    OK(sv_shutdown());
    CHECK(!is_loaded("libcuda"));
    STATUS(SV_ERROR_SHUT_DOWN, sv_device_count(&count));
}

/* A child that was forked after the use of CUDA gets a status, and computes on the CPU; the parent goes on. */
static void forking(void)
{
    sv_stream stream = 0;
    int result = 0;
    pid_t child;

    use_with_threads();
    OK(sv_stream_create(0, 0, &stream));
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int32_t count = 0, first = sv_stream_synchronize(stream), second = sv_device_synchronize(0);
        int good = first == SV_ERROR_FORKED_PROCESS && second == SV_ERROR_FORKED_PROCESS;
        good &= sv_device_count(&count) == SV_ERROR_FORKED_PROCESS || count > 0;
        /* The CPU needs no device, and none of the parent's threads. A failed check ends the child with status 1. */
        compute(5);
        compute_on_threads();
        _exit(good ? 0 : 1);
    }
    CHECK(waitpid(child, &result, 0) == child);
    CHECK(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    OK(sv_stream_synchronize(stream));
    OK(sv_release(stream));
}

typedef int32_t panic_function(void);

/* A panic is a status with a message. Only a library with debug assertions has this function, and no header does. */
static void panic(void)
{
    panic_function *function;

    *(void **)&function = dlsym(RTLD_DEFAULT, "sv_test_panic");
    CHECK(function != NULL);
    for (int i = 0; i < 3; i++) {
        STATUS(SV_ERROR_PANIC, function());
        CHECK(strstr(sv_last_error(), "sv_test_panic: a defect of the library: on purpose") != NULL);
    }
    use();
}

struct library {
    int32_t (*device_count)(int32_t *);
    int32_t (*stream_create)(int32_t, int32_t, sv_stream *);
    int32_t (*stream_synchronize)(sv_stream);
    int32_t (*shutdown)(void);
};

static void *load(const char *path, struct library *library)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

    if (handle == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(handle != NULL);
    *(void **)&library->device_count = dlsym(handle, "sv_device_count");
    *(void **)&library->stream_create = dlsym(handle, "sv_stream_create");
    *(void **)&library->stream_synchronize = dlsym(handle, "sv_stream_synchronize");
    *(void **)&library->shutdown = dlsym(handle, "sv_shutdown");
    CHECK(library->device_count != NULL && library->shutdown != NULL);
    return handle;
}

static void *unload(void *path)
{
    struct library library;
    void *handle = load(path, &library);
    int32_t count = 0;
    sv_stream stream = 0;

    CHECK(library.device_count(&count) == SV_OK);
    CHECK(library.stream_create(0, 0, &stream) == SV_OK);
    CHECK(library.device_count(NULL) == SV_ERROR_INVALID_ARGUMENT);
    CHECK(dlclose(handle) == 0);
    return NULL;
}

/* A copy is loaded and closed, on this thread and on others that end afterwards. */
static void closing(char *path)
{
    pthread_t thread;

    for (int i = 0; i < 3; i++) {
        unload(path);
        CHECK(pthread_create(&thread, NULL, unload, path) == 0 && pthread_join(thread, NULL) == 0);
    }
}

/* Two copies have handles and a shutdown of their own. */
static void two_copies(const char *path, const char *other_path)
{
    struct library first, second;
    sv_stream stream = 0;
    int32_t count = 0;

    load(path, &first);
    load(other_path, &second);
    CHECK(first.device_count != second.device_count);
    CHECK(first.stream_create(0, 0, &stream) == SV_OK);
    CHECK(first.stream_synchronize(stream) == SV_OK);
    CHECK(second.stream_synchronize(stream) == SV_ERROR_INVALID_HANDLE);
    CHECK(first.shutdown() == SV_OK);
    CHECK(first.device_count(&count) == SV_ERROR_SHUT_DOWN);
    CHECK(second.device_count(&count) == SV_OK && count > 0);
    CHECK(second.shutdown() == SV_OK);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"use", use},           {"versions", versions},   {"loading", loading},
        {"rounding", rounding}, {"locale", locale},       {"environment", environment},
        {"signals", signals},   {"context", context},     {"messages", messages},
        {"forking", forking},   {"panic", panic},         {"many_threads", many_threads},
        {"shutdown_twice", shutdown_twice},               {"shutdown_first", shutdown_first},
    };

    CHECK(argc >= 2);
    if (strcmp(argv[1], "closing") == 0 && argc == 3) {
        closing(argv[2]);
        return 0;
    }
    if (strcmp(argv[1], "two_copies") == 0 && argc == 4) {
        two_copies(argv[2], argv[3]);
        return 0;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    }
    fprintf(stderr, "no case %s\n", argv[1]);
    return 2;
}
