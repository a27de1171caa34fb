/*
 * events.c: events: recorded, waited for, asked about.
 *
 * A record names a place in the queue of its stream and takes the clock of that place along; a wait waits for the
 * queue to come there. A record in a capturing stream instead names the nodes that the stream's next one would depend
 * on; such an event can only be waited for by streams, which so join the capture.
 */
#include "state.h"

static void no_longer_captured(event *e) {
    free(e->node);
    e->node = NULL;
    e->nodes = 0;
    e->captured = 0;
}

static event *event_of(CUevent handle, const call *c, int *result) {
    event *e = handle_get(KIND_EVENT, handle);
    *result = INVALID_HANDLE;
    if (!e) {
        violation(c, "unknown or destroyed event %#llx", (unsigned long long)handle);
        return NULL;
    }
    *result = e->ctx->lost;
    return e->ctx->lost ? NULL : e;
}

static void event_forget(event *e) {
    if (e->stream) stream_unref(e->stream);
    e->stream = NULL;
}

EXPORT CUresult cuEventCreate(CUevent *out, unsigned flags) {
    call c;
    if (!call_begin(&c, F_cuEventCreate, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!out || flags > 7 || (flags & EVENT_INTERPROCESS && !(flags & EVENT_DISABLE_TIMING)))
        return call_end(&c, INVALID_VALUE);
    refuse_foreign(&c);
    event *e = zeroed(sizeof *e);
    e->ctx = c.ctx;
    e->flags = flags;
    e->made = c.where;
    *out = e->handle = handle_new(KIND_EVENT, e);
    G.counts[c.ctx->device].events++;
    return call_end(&c, SUCCESS);
}

static void event_bury(event *e) {
    event_forget(e);
    no_longer_captured(e);
    G.counts[e->ctx->device].events--;
    handle_drop(KIND_EVENT, e->handle);
    free(e);
}

EXPORT CUresult cuEventDestroy_v2(CUevent handle) {
    call c;
    if (!call_begin(&c, F_cuEventDestroy_v2, CALL_CONTEXT | CALL_RELEASE)) return call_end(&c, c.result);
    event *e = handle_get(KIND_EVENT, handle);
    if (!e) {
        violation(&c, "unknown or destroyed event %#llx", (unsigned long long)handle);
        return call_end(&c, INVALID_HANDLE);
    }
    event_bury(e);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuEventRecord(CUevent handle, CUstream stream_handle) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuEventRecord, CALL_CONTEXT)) return call_end(&c, c.result);
    event *e = event_of(handle, &c, &result);
    if (!e) return call_end(&c, result);
    stream *s = stream_of(stream_handle, &c, &result);
    if (!s) return call_end(&c, result);
    if (e->ctx != s->ctx) return call_end(&c, INVALID_HANDLE);
    stream_bound(s, &c);
    if (s->capture) {
        if (s->capture->invalid) return call_end(&c, STREAM_CAPTURE_INVALIDATED);
        event_forget(e);
        no_longer_captured(e);
        e->captured = s->capture->id;
        e->nodes = s->tail_nodes;
        e->node = zeroed(e->nodes * sizeof *e->node);
        if (e->nodes) memcpy(e->node, s->tail_node, e->nodes * sizeof *e->node);
        return call_end(&c, SUCCESS);
    }
    no_longer_captured(e);
    actor who = stream_actor(s, &c);
    if (e->epoch != G.epoch) clock_clear(&e->clock);
    e->epoch = G.epoch;
    memcpy(&e->clock, who.clock, G.components * sizeof who.clock->time[0]);
    s->references++;
    event_forget(e);
    e->stream = s;
    e->instance++;
    operation *o = operation_new(OPERATION_RECORD);
    o->as.record.event = handle;
    o->as.record.instance = e->instance;
    enqueue(s, o);
    e->target = s->enqueued;
    return call_end(&c, SUCCESS);
}

/* The host has seen the event's record done. */
static void seen(const event *e) {
    if (e->epoch == G.epoch) host_joins(&e->clock);
}

/* Checks before a wait for an event or a query: its capture may be in progress or over, and others may forbid it. */
static int refused(const event *e) {
    capture *k = e->captured ? capture_find(e->captured) : NULL;
    if (k) return capture_refuse(k, CAPTURED_EVENT);
    if (captures && capture_forbids()) return STREAM_CAPTURE_UNSUPPORTED;
    return e->captured ? INVALID_VALUE : SUCCESS;
}

EXPORT CUresult cuEventSynchronize(CUevent handle) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuEventSynchronize, CALL_CONTEXT)) return call_end(&c, c.result);
    event *e = event_of(handle, &c, &result);
    if (!e) return call_end(&c, result);
    result = refused(e);
    if (result != SUCCESS) return call_end(&c, result);
    if (!e->stream) return call_end(&c, SUCCESS);
    context *ctx = e->ctx;
    clock_vector known = e->clock;
    bool current = e->epoch == G.epoch;
    force(e->stream, e->target);
    if (ctx->lost) return call_end(&c, ctx->lost);
    if (current) host_joins(&known);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuEventQuery(CUevent handle) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuEventQuery, CALL_CONTEXT)) return call_end(&c, c.result);
    event *e = event_of(handle, &c, &result);
    if (!e) return call_end(&c, result);
    result = refused(e);
    if (result != SUCCESS) return call_end(&c, result);
    bool done = !e->stream || polled(e->stream, e->target);
    if (e->ctx->lost) return call_end(&c, e->ctx->lost);
    if (!done) return call_end(&c, NOT_READY);
    if (e->stream) seen(e);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuEventElapsedTime(float *out, CUevent start, CUevent end) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuEventElapsedTime, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!out) return call_end(&c, INVALID_VALUE);
    event *a = event_of(start, &c, &result);
    if (!a) return call_end(&c, result);
    event *b = event_of(end, &c, &result);
    if (!b) return call_end(&c, result);
    if (a->captured || b->captured)
        return call_end(&c, capture_refuse(capture_find(a->captured ? a->captured : b->captured), CAPTURED_EVENT));
    if (a->ctx != b->ctx || (a->flags | b->flags) & EVENT_DISABLE_TIMING || !a->stream || !b->stream)
        return call_end(&c, INVALID_HANDLE);
    if (a->stream->completed < a->target || b->stream->completed < b->target) return call_end(&c, NOT_READY);
    *out = (float)((double)((int64_t)b->nanoseconds - (int64_t)a->nanoseconds) * 1e-6);
    return call_end(&c, SUCCESS);
}

/* The stream goes on when the other one has come this far. */
void wait_queue(stream *other, uint64_t target, stream *s) {
    if (other == s || other->completed >= target) return;
    operation *o = operation_new(OPERATION_WAIT);
    o->as.wait.stream = other;
    o->as.wait.target = target;
    other->references++;
    enqueue(s, o);
}

/* Calls that are under way: waits of a stream and launches of graphs into one. */
static struct {
    CUstream stream;
    bool is_launch;
} ordering[64];
static pthread_mutex_t ordering_lock = PTHREAD_MUTEX_INITIALIZER;

int ordering_begin(CUstream stream, bool is_launch) {
    int place = -1;
    bool together = false;
    pthread_mutex_lock(&ordering_lock);
    for (int i = 0; i < 64; i++) {
        if (!ordering[i].stream) place = i;
        else if (ordering[i].stream == stream && ordering[i].is_launch != is_launch) together = true;
    }
    if (place >= 0 && stream) {
        ordering[place].stream = stream;
        ordering[place].is_launch = is_launch;
    }
    pthread_mutex_unlock(&ordering_lock);
    if (together) {
        control_begin();
        violation_at("a graph is launched into stream %p while another thread makes it wait: the wait can be lost",
                     (void *)stream);
        control_end();
    }
    return place;
}

void ordering_end(int place) {
    pthread_mutex_lock(&ordering_lock);
    if (place >= 0) ordering[place].stream = 0;
    pthread_mutex_unlock(&ordering_lock);
}

static CUresult wait_event(CUstream handle, CUevent event_handle, unsigned flags) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuStreamWaitEvent, CALL_CONTEXT)) return call_end(&c, c.result);
    if (flags > 1) return call_end(&c, INVALID_VALUE);
    stream *s = stream_of(handle, &c, &result);
    if (!s) return call_end(&c, result);
    event *e = event_of(event_handle, &c, &result);
    if (!e) return call_end(&c, result);
    stream_bound(s, &c);
    if (s->capture || e->captured) return call_end(&c, capture_wait(s, e, flags));
    if (!e->stream) return call_end(&c, SUCCESS);
    stream_actor(s, &c);
    if (e->epoch == G.epoch) clock_join(&s->clock, &e->clock);
    wait_queue(e->stream, e->target, s);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    int place = ordering_begin(stream, false);
    CUresult result = wait_event(stream, event, flags);
    ordering_end(place);
    return result;
}

/* ---- control ---- */

void describe_events(FILE *out) {
    char made[160];
    const handle_table *t = &G.tables[KIND_EVENT];
    for (uint32_t i = 0; i < t->count; i++) {
        const event *e = t->item[i];
        if (e) fprintf(out, "event of device %d, made by %s\n", e->ctx->device, site_text(&e->made, made));
    }
}

/* Of this context, or all: null. */
void events_clear(const context *only) {
    const handle_table *t = &G.tables[KIND_EVENT];
    for (uint32_t i = 0; i < t->count; i++) {
        event *e = t->item[i];
        if (e && (!only || e->ctx == only)) event_bury(e);
    }
}
