/* Every function of the header with bad arguments. tests/capi/hostile.rs writes `main`. */

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "check.h"

/* The memory of pointer arguments: zeros, more than any function reads or writes for one element. */
static alignas(64) char memory[8][4096];
static uint64_t stream, event, stale_stream, stale_event;
static int failures;

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
    CHECK((uint32_t)stream == (uint32_t)stale_stream && stream != stale_stream);
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
