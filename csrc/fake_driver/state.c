/*
 * state.c: the lock, the beginning and the end of every call, handles, the log, armed failures, violations.
 */
#include "state.h"

#include <stdarg.h>

globals G = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

_Thread_local CUcontext thread_context;
_Thread_local CUcontext thread_foreign;
_Thread_local bool thread_foreign_set;
_Thread_local const clock_vector *thread_callback;
static _Thread_local uint32_t this_thread, this_step;
static uint32_t threads;

#define FUNCTION_BASE(base, version, spelling) #base,
#define FUNCTION_SPELLING(base, version, spelling) #spelling,
static const char *const bases[] = {DRIVER_FUNCTIONS(FUNCTION_BASE)};
static const char *const spellings[] = {DRIVER_FUNCTIONS(FUNCTION_SPELLING)};

/* ---- small tools ---- */

void *zeroed(size_t size) {
    void *memory = calloc(1, size ? size : 1);
    if (!memory) {
        fputs("fake driver: out of host memory\n", stderr);
        abort();
    }
    return memory;
}

void *grow(void *memory, size_t *capacity, size_t wanted, size_t size) {
    if (wanted <= *capacity) return memory;
    size_t larger = *capacity ? *capacity * 2 : 16;
    while (larger < wanted) larger *= 2;
    memory = realloc(memory, larger * size);
    if (!memory) {
        fputs("fake driver: out of host memory\n", stderr);
        abort();
    }
    *capacity = larger;
    return memory;
}

uint64_t random_next(void) {
    uint64_t z = G.random += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

void text_out(const char *from, size_t length, char *text, size_t capacity) {
    if (!text || !capacity) return;
    size_t n = length < capacity - 1 ? length : capacity - 1;
    memcpy(text, from, n);
    text[n] = 0;
}

uint32_t thread_number(void) {
    if (!this_thread) this_thread = ++threads;
    return this_thread;
}

uint32_t thread_step(void) { return this_step; }

const char *function_name(unsigned f) {
    if (f < FUNCTION_COUNT) return spellings[f];
    return f == F_HOST_READ ? "host read" : f == F_HOST_WRITE ? "host write" : "control";
}

int find_function(const char *name, size_t from) {
    for (size_t f = from; f < FUNCTION_COUNT; f++)
        if (!strcmp(name, spellings[f]) || !strcmp(name, bases[f])) return (int)f;
    return -1;
}

/* Kernel names live for ever: sites refer to them. */
static char **names;
static size_t name_count, name_capacity;

uint16_t intern(const char *name, size_t length) {
    for (size_t i = 0; i < name_count; i++)
        if (strlen(names[i]) == length && !memcmp(names[i], name, length)) return (uint16_t)(i + 1);
    if (name_count == UINT16_MAX - 1) return (uint16_t)name_count;
    names = grow(names, &name_capacity, name_count + 1, sizeof *names);
    names[name_count] = zeroed(length + 1);
    memcpy(names[name_count++], name, length);
    return (uint16_t)name_count;
}

const char *interned(uint16_t index) { return index ? names[index - 1] : ""; }

const char *site_text(const site *where, char text[160]) {
    char detail[72] = "", stream[32] = "host";
    if (where->detail) snprintf(detail, sizeof detail, "[%.68s]", interned(where->detail));
    if (where->stream) snprintf(stream, sizeof stream, "stream %u", where->stream);
    snprintf(text, 160, "%s%s (call %u, %s, thread %u, step %u)", function_name(where->function), detail, where->call,
             stream, where->thread, where->step);
    return text;
}

/* ---- handles ---- */

#define HANDLE(kind, generation, slot) ((uint64_t)(kind) << 56 | (uint64_t)((generation) & 0xFFFFFF) << 32 | (slot))

uint64_t handle_new(handle_kind kind, void *item) {
    handle_table *t = &G.tables[kind];
    uint32_t slot;
    if (t->free_count) {
        slot = t->free_slot[--t->free_count];
    } else {
        if (t->count == t->capacity) {
            size_t capacity = t->capacity, other = t->capacity, third = t->capacity;
            t->item = grow(t->item, &capacity, t->count + 1, sizeof *t->item);
            t->generation = grow(t->generation, &other, t->count + 1, sizeof *t->generation);
            t->free_slot = grow(t->free_slot, &third, t->count + 1, sizeof *t->free_slot);
            t->capacity = (uint32_t)capacity;
        }
        slot = t->count++;
        t->generation[slot] = 0;
    }
    t->item[slot] = item;
    t->generation[slot]++;
    return HANDLE(kind, t->generation[slot], slot);
}

void *handle_get(handle_kind kind, uint64_t handle) {
    handle_table *t = &G.tables[kind];
    uint32_t slot = (uint32_t)handle;
    if (handle >> 56 != (uint64_t)kind || slot >= t->count) return NULL;
    if (handle != HANDLE(kind, t->generation[slot], slot)) return NULL;
    return t->item[slot];
}

void handle_drop(handle_kind kind, uint64_t handle) {
    handle_table *t = &G.tables[kind];
    uint32_t slot = (uint32_t)handle;
    t->item[slot] = NULL;
    t->generation[slot]++;
    t->free_slot[t->free_count++] = slot;
}

context *context_of(CUcontext handle) { return handle_get(KIND_CONTEXT, handle); }
context *current_context(void) { return thread_context ? context_of(thread_context) : NULL; }

/* ---- violations ---- */

static char **texts;
static size_t text_count, text_capacity;
#define MAX_VIOLATIONS 1000

static void record_violation(const char *where, const char *format, va_list arguments) {
    if (text_count == MAX_VIOLATIONS) return;
    char text[1024];
    int used = vsnprintf(text, sizeof text, format, arguments);
    if (used < 0) used = 0;
    if (where && (size_t)used < sizeof text - 1) snprintf(text + used, sizeof text - (size_t)used, ", in %s", where);
    texts = grow(texts, &text_capacity, text_count + 1, sizeof *texts);
    size_t length = strlen(text);
    texts[text_count] = zeroed(length + 1);
    memcpy(texts[text_count++], text, length);
}

void violation(const call *c, const char *format, ...) {
    char where[160];
    va_list arguments;
    va_start(arguments, format);
    record_violation(site_text(&c->where, where), format, arguments);
    va_end(arguments);
}

void violation_at(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    record_violation(NULL, format, arguments);
    va_end(arguments);
}

uint64_t fake_violations(void) {
    control_begin();
    uint64_t count = text_count;
    control_end();
    return count;
}

size_t fake_violation(uint64_t index, char *text, size_t capacity) {
    control_begin();
    size_t length = 0;
    if (index < text_count) {
        length = strlen(texts[index]);
        text_out(texts[index], length, text, capacity);
    }
    control_end();
    return length;
}

/* ---- the log ---- */

typedef struct log_entry {
    uint16_t function;
    uint32_t thread, step;
    int32_t result;
} log_entry;

static log_entry *entries;
static size_t entry_count, entry_capacity;
static uint64_t per_function[FUNCTION_COUNT];

uint64_t fake_calls(void) {
    control_begin();
    uint64_t count = entry_count;
    control_end();
    return count;
}

int fake_log(uint64_t index, fake_call *out) {
    control_begin();
    int found = index < entry_count;
    if (found) {
        const log_entry *e = &entries[index];
        *out = (fake_call){function_name(e->function), index + 1, e->thread, e->step, e->result, 0};
    }
    control_end();
    return found;
}

uint64_t fake_call_count(const char *name) {
    control_begin();
    uint64_t count = 0;
    for (int f = find_function(name, 0); f >= 0; f = find_function(name, (size_t)f + 1)) count += per_function[f];
    control_end();
    return count;
}

size_t fake_function_count(void) { return FUNCTION_COUNT; }
const char *fake_function_name(size_t index) { return index < FUNCTION_COUNT ? spellings[index] : NULL; }
void fake_step(uint32_t n) { this_step = n; }

/* ---- failures ---- */

typedef struct failure {
    int function;     /* -1: any */
    const char *base; /* set: every spelling of this base name */
    uint64_t left;    /* calls until it fires; 0: every one */
    int code;
} failure;

#define MAX_FAILURES 64
static failure failures[MAX_FAILURES];
static size_t failure_count;
static uint64_t failures_fired;

static int add_failure(failure one) {
    if (failure_count == MAX_FAILURES) return 0;
    failures[failure_count++] = one;
    return 1;
}

int fake_fail(const char *name, uint64_t nth, int code) {
    control_begin();
    int f = find_function(name, 0), added = 0;
    if (!strcmp(name, "*")) added = add_failure((failure){-1, NULL, nth, code});
    else if (f >= 0) added = add_failure((failure){f, strcmp(name, spellings[f]) ? bases[f] : NULL, nth, code});
    control_end();
    return added;
}

void fake_fail_call(uint64_t number, int code) {
    control_begin();
    if (number > entry_count) add_failure((failure){-1, NULL, number - entry_count, code});
    control_end();
}

void fake_clear_failures(void) {
    control_begin();
    failure_count = 0;
    control_end();
}

uint64_t fake_failures_fired(void) {
    control_begin();
    uint64_t fired = failures_fired;
    control_end();
    return fired;
}

static int injected(function_number f, bool quiet) {
    int code = 0;
    for (size_t i = 0; i < failure_count; i++) {
        failure *one = &failures[i];
        if (one->function < 0 ? quiet : one->base ? strcmp(one->base, bases[f]) != 0 : one->function != (int)f)
            continue;
        if (one->left > 1) {
            one->left--;
            continue;
        }
        if (!code) {
            code = one->code;
            failures_fired++;
        }
        if (one->left == 1) failures[i--] = failures[--failure_count];
    }
    return code;
}

/* ---- calls ---- */

void control_begin(void) { pthread_mutex_lock(&G.lock); }
void control_end(void) { pthread_mutex_unlock(&G.lock); }

bool call_begin(call *c, function_number f, unsigned flags) {
    pthread_mutex_lock(&G.lock);
    per_function[f]++;
    *c = (call){.function = f};
    if (!(flags & CALL_QUIET)) {
        entries = grow(entries, &entry_capacity, entry_count + 1, sizeof *entries);
        entries[entry_count++] = (log_entry){(uint16_t)f, thread_number(), this_step, 0};
        c->number = entry_count;
    }
    c->where = (site){(uint16_t)f, 0, (uint32_t)c->number, 0, this_step, thread_number()};
    c->ctx = current_context();
    if (build_is_stub) {
        c->result = STUB_LIBRARY;
        return false;
    }
    if (thread_callback) {
        violation(c, "driver call inside a host function");
        c->result = NOT_PERMITTED;
        return false;
    }
    if (captures && (flags & CALL_UNSAFE) && capture_forbids()) {
        c->result = STREAM_CAPTURE_UNSUPPORTED;
        return false;
    }
    int code = failure_count ? injected(f, flags & CALL_QUIET) : 0;
    if (!code && !(flags & CALL_EARLY) && !G.initialised) {
        c->result = NOT_INITIALIZED;
        return false;
    }
    if (!code && (flags & CALL_CONTEXT)) {
        if (!c->ctx) {
            c->result = thread_context ? CONTEXT_IS_DESTROYED : INVALID_CONTEXT;
            return false;
        }
        code = c->ctx->lost;
    }
    if (code) {
        c->override = code;
        c->result = code;
        if (!(flags & CALL_RELEASE)) return false;
    }
    if (!G.strict && G.pending_count && !(flags & CALL_QUIET)) {
        uint64_t r = random_next();
        if ((r & 3) == 0) progress(1 + (r >> 8) % 3);
    }
    return true;
}

int call_end(call *c, int result) {
    if (result == SUCCESS && c->override) result = c->override;
    if (c->number && c->number <= entry_count) entries[c->number - 1].result = result;
    pthread_mutex_unlock(&G.lock);
    return result;
}

/* Only the foreigner creates things in a foreign context, and the foreigner makes no calls here. */
void refuse_foreign(const call *c) {
    if (c->ctx && c->ctx->foreign)
        violation(c, "something is created in a foreign context of device %d", c->ctx->device);
}

void reset_records(void) {
    for (size_t i = 0; i < text_count; i++) free(texts[i]);
    text_count = entry_count = failure_count = 0;
    failures_fired = 0;
    memset(per_function, 0, sizeof per_function);
}
