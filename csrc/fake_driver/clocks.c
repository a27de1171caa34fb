/*
 * clocks.c: vector clocks, and the pageable memory under copy.
 *
 * The order is decided when a call is made, not when its work runs: an operation knows what its stream knew, and what
 * the calling host thread knew. An access is a component at a time (an epoch); it comes before an actor when the
 * actor's clock has reached that time.
 *
 * Invariants: a stream's component ticks once per operation, the host's after each event that others can observe.
 */
#include "state.h"

void clock_join(clock_vector *into, const clock_vector *from) {
    uint32_t n = G.components;
    for (uint32_t i = 0; i < n; i++)
        if (into->time[i] < from->time[i]) into->time[i] = from->time[i];
}

void clock_clear(clock_vector *clock) { memset(clock, 0, sizeof *clock); }

/* ---- components ---- */

/* Components of destroyed streams with the last time that they reached. One is used again, its time going on, once
 * the host knows that time: all that comes later comes after it anyway. */
typedef struct retired {
    uint32_t component, time;
} retired;

static retired retirement[MAX_COMPONENTS];
static uint32_t retirement_count;
static uint32_t reached[MAX_COMPONENTS]; /* the latest time of each component */

uint32_t component_new(void) {
    if (G.components < MAX_COMPONENTS / 8) return G.components++;
    for (uint32_t i = 0; G.threads_ordered && i < retirement_count; i++) {
        retired old = retirement[i];
        if (G.host.time[old.component] < old.time) continue;
        retirement[i] = retirement[--retirement_count];
        return old.component;
    }
    if (G.components < MAX_COMPONENTS) return G.components++;
    fputs("fake driver: too many streams and threads between two resets\n", stderr);
    abort();
}

void component_retire(uint32_t component) {
    retirement[retirement_count++] = (retired){component, reached[component]};
}

static uint32_t tick(uint32_t component, clock_vector *clock) {
    clock->time[component] = ++reached[component];
    return clock->time[component];
}

/* ---- host threads ---- */

typedef struct host_thread {
    struct host_thread *next;
    uint32_t component;
    clock_vector clock;
} host_thread;

static host_thread *hosts;
static _Thread_local host_thread *mine;
static _Thread_local uint64_t mine_epoch;

static clock_vector *host_clock(uint32_t *component) {
    if (G.threads_ordered) {
        *component = 0;
        return &G.host;
    }
    if (!mine || mine_epoch != G.epoch) {
        mine = zeroed(sizeof *mine);
        mine_epoch = G.epoch;
        mine->component = component_new();
        tick(mine->component, &mine->clock);
        mine->next = hosts;
        hosts = mine;
    }
    *component = mine->component;
    return &mine->clock;
}

actor host_actor(unsigned f, const call *c) {
    actor who;
    who.clock = host_clock(&who.component);
    who.where = c ? c->where : (site){(uint16_t)f, 0, (uint32_t)0, 0, thread_step(), thread_number()};
    return who;
}

void host_ticks(void) {
    uint32_t component;
    clock_vector *clock = host_clock(&component);
    tick(component, clock);
}

void host_joins(const clock_vector *clock) {
    uint32_t component;
    clock_join(host_clock(&component), clock);
}

bool host_knows(uint32_t component, uint32_t time) {
    uint32_t own;
    return host_clock(&own)->time[component] >= time;
}

/* The stream's next operation, at the call of this thread. */
actor stream_actor(stream *s, const call *c) {
    uint32_t component;
    clock_vector *host = host_clock(&component);
    clock_join(&s->clock, host);
    tick(s->component, &s->clock);
    tick(component, host);
    actor who = {s->component, &s->clock, c->where};
    who.where.stream = s->number;
    return who;
}

/* ---- pageable memory under copy ---- */

static bool before(const moment *a, const actor *who) { return who->clock->time[a->component] >= a->time; }

static void unordered(const char *act, const actor *who, const char *earlier, const moment *a) {
    char one[160], other[160];
    violation_at("%s by %s is not ordered after %s by %s: pageable host memory", act, site_text(&who->where, one),
                 earlier, site_text(&a->where, other));
}

typedef struct pageable {
    uintptr_t from, to;
    bool write;
    moment by;
} pageable;

static pageable *ranges;
static size_t range_count, range_capacity;

static void prune(void) {
    for (size_t i = 0; i < range_count; i++)
        if (host_knows(ranges[i].by.component, ranges[i].by.time)) ranges[i--] = ranges[--range_count];
}

static void check_ranges(uintptr_t from, uintptr_t to, bool write, const actor *who) {
    for (size_t i = 0; i < range_count; i++) {
        const pageable *p = &ranges[i];
        if (p->to <= from || to <= p->from || (!write && !p->write) || before(&p->by, who)) continue;
        unordered(write ? "write" : "read", who, p->write ? "the write" : "the read", &p->by);
    }
}

void pageable_access(const void *pointer, size_t bytes, bool write, const actor *who) {
    uintptr_t from = (uintptr_t)pointer;
    check_ranges(from, from + bytes, write, who);
    if (range_count >= 32) prune();
    ranges = grow(ranges, &range_capacity, range_count + 1, sizeof *ranges);
    moment by = {who->component, who->clock->time[who->component], who->where};
    ranges[range_count++] = (pageable){from, from + bytes, write, by};
}

void pageable_host(const void *pointer, size_t bytes, bool write) {
    actor who = host_actor(write ? F_HOST_WRITE : F_HOST_READ, NULL);
    check_ranges((uintptr_t)pointer, (uintptr_t)pointer + bytes, write, &who);
}

uint64_t pageable_pending(void) {
    prune();
    return range_count;
}

/* ---- order between host threads ---- */

typedef struct token {
    uint64_t name;
    clock_vector clock;
} token;

static token *tokens;
static size_t token_count, token_capacity;

void fake_thread_release(uint64_t name) {
    control_begin();
    size_t i = 0;
    while (i < token_count && tokens[i].name != name) i++;
    if (i == token_count) {
        tokens = grow(tokens, &token_capacity, token_count + 1, sizeof *tokens);
        tokens[i] = (token){.name = name};
        token_count++;
    }
    if (thread_callback) {
        clock_join(&tokens[i].clock, thread_callback);
    } else {
        uint32_t component;
        clock_join(&tokens[i].clock, host_clock(&component));
        host_ticks();
    }
    control_end();
}

void fake_thread_acquire(uint64_t name) {
    control_begin();
    for (size_t i = 0; i < token_count; i++)
        if (tokens[i].name == name) host_joins(&tokens[i].clock);
    control_end();
}

/* ---- starting over ---- */

/* The host is component 0; the caller gives the living streams new ones. */
void clocks_reset(void) {
    G.epoch++;
    G.components = 1;
    retirement_count = 0;
    range_count = token_count = 0;
    memset(reached, 0, sizeof reached);
    clock_clear(&G.host);
    tick(0, &G.host);
    while (hosts) {
        host_thread *next = hosts->next;
        free(hosts);
        hosts = next;
    }
}
