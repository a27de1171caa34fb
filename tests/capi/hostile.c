/* Every function of the header with bad arguments. tests/capi/hostile.rs writes `main`. */

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "../../csrc/examples/vector_add_ptx.h"
#include "check.h"

/* The memory of pointer arguments: zeros, more than any function reads or writes for one element. */
static alignas(64) char memory[8][4096];
static sv_stream stream, stale_stream;
static sv_event event, stale_event;
static int failures;
/* A released object of each kind. */
static sv_object released[32];
static size_t released_count;
/* Objects for functions that look at them before they look at a struct. */
static sv_tensor live_tensor;
static sv_network live_network;
static sv_classifier live_classifier;

static void clear(void)
{
    memset(memory, 0, sizeof memory);
}

static void prepare(void)
{
    OK(sv_stream_create(0, 0, &stale_stream));
    OK(sv_event_create(0, 1, &stale_event));
    OK(sv_release(stale_stream));
    OK(sv_release(stale_event));
    OK(sv_stream_create(0, 0, &stream));
    OK(sv_event_create(0, 1, &event));
    /* Objects in the slots of the released ones. */
    CHECK((uint32_t)(uintptr_t)stream == (uint32_t)(uintptr_t)stale_stream && stream != stale_stream);
}

/* Releases an object of each kind that needs neither NVRTC nor the results of a device. `folder` has a decoder. */
static void prepare_released(const char *folder)
{
    const int64_t vector[] = {2}, matrix[] = {2, 2};
    const double prior[] = {0.5, 0.5};
    sv_network_arrays arrays = {.size = sizeof arrays, .neurons = 1};
    sv_classifier_options classes = {.size = sizeof classes, .features = 2, .prior = prior, .classes = 2};
    sv_optimizer_options optimizer_options = {.size = sizeof optimizer_options, .kind = SV_OPTIMIZER_SGD, .learning_rate = 0.1};
    sv_srt_evolver_options evolver_options = {.size = sizeof evolver_options};
    sv_simulation_options simulation_options = {.size = sizeof simulation_options, .device = SV_CPU};
    static char text[4096];
    sv_gpt_config config = {.size = sizeof config};
    sv_gpt_trainer_options trainer_options = {.size = sizeof trainer_options};
    sv_tensor a = 0, b = 0, ones = 0, points = 0;
    sv_stream own = 0;
    sv_object *all = released;

    memset(text, 'x', sizeof text);
    OK(sv_stream_create(0, 0, &own));
    OK(sv_tensor_ones(SV_DTYPE_F32, vector, 1, SV_CPU, &ones));
    OK(sv_tensor_ones(SV_DTYPE_I64, vector, 1, SV_CPU, &points));
    OK(sv_tensor_ones(SV_DTYPE_F32, matrix, 2, SV_CPU, &a));
    OK(sv_tensor_ones(SV_DTYPE_F32, vector, 1, SV_CPU, &b));
    *all++ = own, *all++ = ones, *all++ = points, *all++ = a, *all++ = b;
    OK(sv_event_create(0, 1, (void *)all++));
    OK(sv_buffer_create(own, 64, (void *)all++));
    OK(sv_pinned_create(0, 64, (void *)all++));
    OK(sv_module_load(0, vector_add_ptx, sizeof vector_add_ptx, (void *)all++));
    OK(sv_module_function(all[-1], "vector_add", (void *)all));
    all++;
    OK(sv_program_create("program", "int x;", (void *)all++));
    OK(sv_stream_begin_capture(own));
    OK(sv_stream_end_capture(own, (void *)all++));
    OK(sv_graph_instantiate(all[-1], (void *)all));
    all++;
    OK(sv_expression_input(0, (void *)all++));
    OK(sv_fused_create((void *)&all[-1], 1, (void *)all));
    all++;
    OK(sv_generator_create(1, (void *)all++));
    OK(sv_network_create(&arrays, (void *)all++));
    OK(sv_simulation_create(all[-1], &simulation_options, (void *)all));
    all++;
    OK(sv_variable_create(ones, 1, (void *)all++));
    OK(sv_model_create(SV_DTYPE_F32, SV_CPU, 1, (void *)all++));
    OK(sv_model_add_linear(all[-1], 2, 2, 1));
    OK(sv_optimizer_create(all[-1], &optimizer_options, (void *)all));
    all++;
    OK(sv_classifier_create(&classes, SV_CPU, (void *)all++));
    OK(sv_srt_evolver_defaults(&evolver_options));
    OK(sv_srt_evolver_create(points, points, 0, &evolver_options, NULL, NULL, (void *)all++));
    OK(sv_device_network_g(100, 2, 0, 1, (void *)all++));
    OK(sv_srt_symbolic_input(0, (void *)all++));
    OK(sv_gaussian_model_create(a, b, b, b, (void *)all++));
    OK(sv_tokenizer_bytes((void *)all++));
    config.context = 8, config.layers = 1, config.heads = 1, config.width = 8;
    OK(sv_tokenizer_vocab_size(all[-1], &config.vocab_size));
    OK(sv_gpt_trainer_defaults(&trainer_options));
    OK(sv_gpt_trainer_create(&config, text, sizeof text, all[-1], &trainer_options, SV_CPU, (void *)all));
    all++;
    OK(sv_decoder_load(folder, SV_CPU, SV_DTYPE_NONE, (void *)all++));
    released_count = (size_t)(all - released);
    OK(sv_tensor_ones(SV_DTYPE_F32, matrix, 2, SV_CPU, &live_tensor));
    OK(sv_network_create(&arrays, &live_network));
    OK(sv_classifier_create(&classes, SV_CPU, &live_classifier));
    /* Objects that were made of others first. */
    for (size_t i = released_count; i-- > 0;)
        OK(sv_release(released[i]));
}

/* Fails unless the status is an error, or success where that is allowed, with a message that begins with the name. */
static void expect(const char *name, const char *what, int may_succeed, int32_t status)
{
    size_t length = strlen(name);
    const char *message = sv_last_error();
    int good = status != SV_ERROR_PANIC && (may_succeed || status != SV_OK);

    if (status != SV_OK)
        good &= strncmp(message, name, length) == 0 && message[length] == ':' && message[length + 1] == ' ';
    if (!good) {
        fprintf(stderr, "%s with %s: status %d: %s\n", name, what, (int)status, message);
        failures++;
    }
}

/* Fails unless the message names one of the function's parameters, which are given as "|first|second|". */
static int names_parameter(const char *message, size_t length, const char *parameters)
{
    char wanted[128] = "|";
    size_t end = strlen(message) > length + 2 ? strcspn(message + length + 2, ":-.[ ") : 0;

    if (end == 0 || end > sizeof wanted - 3)
        return 0;
    strncat(wanted, message + length + 2, end);
    strcat(wanted, "|");
    return strstr(parameters, wanted) != NULL;
}

/* As `expect`, for handles of which all are one released object of some kind. Returns whether the message says so. */
static int expect_released(const char *name, const char *parameters, size_t kind, int32_t status)
{
    char text[64];
    const char *message = sv_last_error();

    snprintf(text, sizeof text, "released object %d", (int)kind);
    expect(name, text, 0, status);
    if (status != SV_OK && !names_parameter(message, strlen(name), parameters)) {
        fprintf(stderr, "%s with %s: no parameter is named: %s\n", name, text, message);
        failures++;
    }
    return status == SV_ERROR_INVALID_HANDLE && strstr(message, "which was released") != NULL;
}

/* Fails unless a released object was looked at, or another argument came first, as the list of such functions says. */
static void expect_seen(const char *name, int seen, int is_first)
{
    if (seen != is_first) {
        fprintf(stderr, "%s: released objects are looked at: %d, wanted %d\n", name, seen, is_first);
        failures++;
    }
}

/* Fails unless a struct of a wrong size is refused by that name. `own` is its size in this header. */
static void expect_size(const char *name, const char *parameter, size_t own, size_t given, int32_t status)
{
    char wanted[128];
    const char *message = sv_last_error();

    snprintf(wanted, sizeof wanted, "%s: %s->size: found %zu; wanted %zu bytes", name, parameter, given, own);
    if (status != SV_ERROR_INVALID_ARGUMENT || strcmp(message, wanted) != 0) {
        fprintf(stderr, "wanted %s\nfound status %d: %s\n", wanted, (int)status, message);
        failures++;
    }
}

/* Fails unless a struct of a later version is refused if it has fields there (`is_set`), and only then. */
static void expect_later(const char *name, const char *parameter, int is_set, int32_t status)
{
    char wanted[128];
    const char *message = status == SV_OK ? "" : sv_last_error();
    int found;

    snprintf(wanted, sizeof wanted, "%s: %s: found a struct of ", name, parameter);
    found = strncmp(message, wanted, strlen(wanted)) == 0 && status == SV_ERROR_INVALID_ARGUMENT;
    if (found != is_set || strstr(message, "->size") != NULL) {
        fprintf(stderr, "%s with a later %s, is_set %d: status %d: %s\n", name, parameter, is_set, (int)status, message);
        failures++;
    }
}
