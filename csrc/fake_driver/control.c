/*
 * control.c: settings, starting over, counts, and the foreigner's contexts.
 */
#include <dlfcn.h>

#include "state.h"

static uint64_t setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

__attribute__((constructor)) static void start(void) {
    G.version = (int)setting("FAKE_VERSION", (uint64_t)build_version);
    G.devices = (int)setting("FAKE_DEVICES", 2);
    if (G.devices > MAX_DEVICES) G.devices = MAX_DEVICES;
    G.init_code = (int)setting("FAKE_INIT", SUCCESS);
    G.strict = setting("FAKE_STRICT", 0) != 0;
    G.default_streams = setting("FAKE_DEFAULT_STREAMS", 0) != 0;
    G.random = setting("FAKE_SEED", 1);
    G.memory = setting("FAKE_MEMORY", UINT64_C(8) << 30);
    const char *runner = getenv("FAKE_RUNNER");
    void *library = runner ? dlopen(runner, RTLD_NOW) : NULL;
    void *symbol = library ? dlsym(library, "emulated_run") : NULL;
    memcpy(&G.runner, &symbol, sizeof symbol);
    G.fault_kernel = getenv("FAKE_FAULT");
    G.fault_after = setting("FAKE_FAULT_AFTER", 1);
    G.granularity = UINT64_C(2) << 20;
    G.capability = (int)setting("FAKE_CAPABILITY", 90);
    G.peer_possible = true;
    G.threads_ordered = true;
    G.reset_recovers = true;
    for (int i = 0; i < 2 * MAX_DEVICES; i++) {
        context *ctx = &G.contexts[i];
        ctx->device = i % MAX_DEVICES;
        ctx->foreign = i >= MAX_DEVICES;
        ctx->handle = handle_new(KIND_CONTEXT, ctx);
    }
    clocks_reset();
}

#define SETTER(name, type, statement) \
    void name(type value) { \
        control_begin(); \
        statement; \
        control_end(); \
    }

SETTER(fake_set_version, int, G.version = value)
SETTER(fake_set_devices, int, G.devices = value < 0 ? 0 : value > MAX_DEVICES ? MAX_DEVICES : value)
SETTER(fake_set_init, int, G.init_code = value)
SETTER(fake_set_memory, uint64_t, G.memory = value)
SETTER(fake_set_granularity, uint64_t, G.granularity = value < 4096 ? 4096 : value)
SETTER(fake_set_capability, int, G.capability = value)
SETTER(fake_hide_attribute, int, G.hidden_attribute = value)
SETTER(fake_set_multiprocessors, int, G.multiprocessors = value)
SETTER(fake_set_peer_access, int, G.peer_possible = value != 0)
SETTER(fake_set_default_streams, int, G.default_streams = value != 0)
SETTER(fake_set_strict, int, G.strict = value != 0)
SETTER(fake_set_reset_recovers, int, G.reset_recovers = value != 0)
SETTER(fake_set_faults_spread, int, G.faults_spread = value != 0)
SETTER(fake_set_seed, uint64_t, G.random = value)
SETTER(fake_set_runner, fake_runner, G.runner = value)
SETTER(fake_set_host_threads_ordered, int, G.threads_ordered = value != 0)

void fake_lose_context(int device, int code) {
    control_begin();
    if (device >= 0 && device < MAX_DEVICES) {
        G.contexts[device].lost = code;
        if (!code) G.contexts[device].ruined = false;
    }
    control_end();
}

/* ---- starting over ---- */

static fake_counts totals(int device) {
    fake_counts sum = {0};
    uint64_t *into = (uint64_t *)&sum;
    for (int i = 0; i < MAX_DEVICES; i++) {
        const uint64_t *from = (const uint64_t *)&G.counts[i];
        for (size_t n = 0; n < sizeof sum / sizeof *into && (device < 0 || device == i); n++) into[n] += from[n];
    }
    return sum;
}

static void start_over(void) {
    captures_clear(NULL);
    drain();
    for (int i = 0; i < 2 * MAX_DEVICES; i++) {
        G.contexts[i].lost = SUCCESS;
        G.contexts[i].ruined = false;
    }
    reset_records();
    clocks_reset();
    streams_reset();
    modules_reset();
}

uint64_t fake_reset(void) {
    control_begin();
    start_over();
    fake_counts n = totals(-1);
    control_end();
    return n.blocks + n.pinned + n.registered + n.streams + n.events + n.modules + n.links + n.reservations + n.physical +
           n.pools + n.graphs + n.instances;
}

void fake_reset_all(void) {
    control_begin();
    start_over();
    instances_clear(NULL);
    graphs_clear(NULL);
    modules_clear(NULL);
    virtual_reset_all();
    memory_clear(NULL);
    pools_reset_all();
    events_clear(NULL);
    streams_clear(NULL);
    for (int i = 0; i < 2 * MAX_DEVICES; i++) {
        memset(G.contexts[i].peer, 0, sizeof G.contexts[i].peer);
        G.contexts[i].retained = 0;
    }
    for (int i = 0; i < MAX_DEVICES; i++) G.counts[i].peers = G.counts[i].retained = 0;
    G.initialised = false;
    start_over();
    control_end();
}

/* ---- what is alive ---- */

void fake_live(int device, fake_counts *out) {
    control_begin();
    *out = totals(device);
    control_end();
}

size_t fake_describe_live(char *text, size_t capacity) {
    char *all = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&all, &length);
    if (!out) return 0;
    control_begin();
    describe_blocks(out);
    describe_virtual(out);
    describe_pools(out);
    describe_streams(out);
    describe_events(out);
    describe_graphs(out);
    describe_instances(out);
    describe_modules(out);
    control_end();
    fclose(out);
    text_out(all, length, text, capacity);
    free(all);
    return length;
}

/* ---- the foreigner ---- */

uint64_t fake_primary_context(int device) {
    return device >= 0 && device < MAX_DEVICES ? G.contexts[device].handle : 0;
}
uint64_t fake_foreign_context(int device) {
    return device >= 0 && device < MAX_DEVICES ? G.contexts[MAX_DEVICES + device].handle : 0;
}

void fake_foreign_set(uint64_t handle) {
    thread_context = thread_foreign = handle;
    thread_foreign_set = true;
}

uint64_t fake_foreign_get(void) { return thread_context; }
int fake_check_foreign(void) { return !thread_foreign_set || thread_context == thread_foreign; }
