/*
 * queue.c: the queues of the streams, and when what is in them runs.
 *
 * An operation runs after its predecessors in the stream, a wait when the stream that it waits for has come far
 * enough. Forcing follows waits into other streams; it cannot go round in a circle, because a wait names only work
 * that was queued before it. Host functions run on one thread of ours with the lock let go; their stream is `busy`
 * meanwhile, and whoever needs it waits on `changed`.
 */
#include "state.h"

static operation *spare;
static operation_list *gathered; /* where what is queued goes instead; null: to its stream */

operation *operation_new(operation_kind kind) {
    operation *o = spare;
    if (o) {
        spare = o->next;
        memset(o, 0, sizeof *o);
    } else {
        o = zeroed(sizeof *o);
    }
    o->kind = kind;
    return o;
}

static void operation_drop(operation *o) {
    o->next = spare;
    spare = o;
}

/* From now on what is queued goes into this list (null: to its stream again); returns the former one. */
operation_list *operations_gather(operation_list *into) {
    operation_list *former = gathered;
    gathered = into;
    return former;
}

static void leave_pending(stream *s) {
    stream *last = G.pending[--G.pending_count];
    G.pending[s->pending_index] = last;
    last->pending_index = s->pending_index;
}

void enqueue(stream *s, operation *o) {
    if (gathered) {
        if (gathered->head) gathered->tail->next = o;
        else gathered->head = o;
        gathered->tail = o;
        return;
    }
    if (!s->head) {
        G.pending = grow(G.pending, &G.pending_capacity, G.pending_count + 1, sizeof *G.pending);
        s->pending_index = G.pending_count;
        G.pending[G.pending_count++] = s;
        s->head = o;
    } else {
        s->tail->next = o;
    }
    s->tail = o;
    s->enqueued++;
    G.queued++;
    G.counts[s->ctx->device].pending++;
}

/* A destroyed stream lives as long as it has work or is referred to. */
static void stream_bury(stream *s) {
    if (!s->destroyed || s->references || s->head) return;
    stream *last = G.streams[--G.stream_count];
    G.streams[s->index] = last;
    last->index = s->index;
    component_retire(s->component);
    free(s);
}

void stream_unref(stream *s) {
    s->references--;
    stream_bury(s);
}

/* ---- host functions ---- */

static struct {
    bool started;
    stream *stream; /* whose head is to be called; null when idle */
    pthread_cond_t wanted;
} caller = {.wanted = PTHREAD_COND_INITIALIZER};

static void pop(stream *s);

static void *call_host_functions(void *unused) {
    pthread_mutex_lock(&G.lock);
    for (;;) {
        while (!caller.stream) pthread_cond_wait(&caller.wanted, &G.lock);
        stream *s = caller.stream;
        operation *o = s->head;
        thread_callback = o->as.callback.clock;
        pthread_mutex_unlock(&G.lock);
        o->as.callback.function(o->as.callback.argument);
        pthread_mutex_lock(&G.lock);
        thread_callback = NULL;
        s->busy = false;
        caller.stream = NULL;
        pop(s);
        stream_unref(s);
        pthread_cond_broadcast(&G.changed);
    }
    return unused;
}

/* Starts the host function at the head, unless another one is running. */
static bool hand_over(stream *s) {
    if (caller.stream) return false;
    if (!caller.started) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, call_host_functions, NULL)) abort();
        pthread_detach(thread);
        caller.started = true;
    }
    caller.stream = s;
    s->busy = true;
    s->references++;
    pthread_cond_signal(&caller.wanted);
    return true;
}

/* ---- running ---- */

static void pop(stream *s) {
    operation *o = s->head;
    s->head = o->next;
    if (!s->head) leave_pending(s);
    operation_discard(o);
    s->completed++;
    G.queued--;
    G.counts[s->ctx->device].pending--;
    stream_bury(s);
}

static void stamp(const operation *o) {
    event *e = handle_get(KIND_EVENT, o->as.record.event);
    if (e && e->instance == o->as.record.instance) e->nanoseconds = G.now;
}

/* Valid before and after the run. */
void operation_discard(operation *o) {
    switch (o->kind) {
    case OPERATION_COPY:
        location_drop(&o->as.copy.to);
        location_drop(&o->as.copy.from);
        break;
    case OPERATION_FILL: location_drop(&o->as.fill.to); break;
    case OPERATION_KERNEL: kernel_run_drop(o->as.kernel); break;
    case OPERATION_CONDITION: condition_run_drop(o->as.condition); break;
    case OPERATION_WAIT: stream_unref(o->as.wait.stream); break;
    case OPERATION_CALLBACK: free(o->as.callback.clock); break;
    case OPERATION_RECORD: break;
    }
    operation_drop(o);
}

void operation_perform(operation *o, context *ctx) {
    G.now += 1000;
    switch (o->kind) {
    case OPERATION_COPY: run_copy(o); break;
    case OPERATION_FILL: run_fill(o); break;
    case OPERATION_KERNEL: run_kernel(o->as.kernel, ctx); break;
    case OPERATION_CONDITION: condition_perform(o->as.condition, ctx); break;
    case OPERATION_RECORD: stamp(o); break;
    case OPERATION_WAIT:
    case OPERATION_CALLBACK: break;
    }
}

/* Runs the head, which is no host function and no unfulfilled wait. In a lost context work is given up. */
static void run_head(stream *s) {
    if (!s->ctx->lost) operation_perform(s->head, s->ctx);
    pop(s);
}

/* In a lost context nothing waits any more. */
static bool blocked(const stream *s) {
    const operation *o = s->head;
    return o->kind == OPERATION_WAIT && !s->ctx->lost && o->as.wait.stream->completed < o->as.wait.target;
}
static bool is_call(const stream *s) { return s->head->kind == OPERATION_CALLBACK && !s->ctx->lost; }

/* Runs the stream up to its operation `target`. */
void force(stream *s, uint64_t target) {
    s->references++;
    while (s->completed < target) {
        if (s->busy) {
            pthread_cond_wait(&G.changed, &G.lock);
        } else if (blocked(s)) {
            force(s->head->as.wait.stream, s->head->as.wait.target);
        } else if (is_call(s)) {
            if (!hand_over(s)) pthread_cond_wait(&G.changed, &G.lock);
        } else {
            run_head(s);
        }
    }
    stream_unref(s);
}

/* One step towards the end of this stream's queue, as a query may bring it. */
static void nudge(stream *s) {
    while (s->head && !s->busy && blocked(s)) s = s->head->as.wait.stream;
    if (!s->head || s->busy) return;
    if (is_call(s)) hand_over(s);
    else run_head(s);
}

/* Some operations, chosen at random, of those that can run; no host functions. */
void progress(unsigned operations) {
    while (operations-- && G.pending_count) {
        stream *s = G.pending[random_next() % G.pending_count];
        if (!s->busy && !blocked(s) && !is_call(s)) run_head(s);
    }
}

void drain(void) {
    while (G.pending_count) force(G.pending[0], G.pending[0]->enqueued);
}

/* Returns whether a query sees the operation done; unless strict, the query itself may bring it on. */
bool polled(stream *s, uint64_t target) {
    if (G.strict) return s->completed >= target;
    s->references++;
    for (uint64_t n = random_next() & 3; n && s->completed < target; n--) nudge(s);
    bool done = s->completed >= target;
    stream_unref(s);
    return done;
}

/* ---- the calls that wait and ask ---- */

EXPORT CUresult cuStreamSynchronize(CUstream handle) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuStreamSynchronize, CALL_CONTEXT | CALL_UNSAFE)) return call_end(&c, c.result);
    stream *s = stream_of(handle, &c, &result);
    if (!s) return call_end(&c, result);
    if (s->capture) return call_end(&c, capture_refuse(s->capture, STREAM_CAPTURE_UNSUPPORTED));
    clock_vector known = s->clock; /* other threads may queue more while we wait */
    context *ctx = s->ctx;
    force(s, s->enqueued);
    if (ctx->lost) return call_end(&c, ctx->lost);
    host_joins(&known);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuStreamQuery(CUstream handle) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuStreamQuery, CALL_CONTEXT | CALL_UNSAFE)) return call_end(&c, c.result);
    stream *s = stream_of(handle, &c, &result);
    if (!s) return call_end(&c, result);
    if (s->capture) return call_end(&c, capture_refuse(s->capture, STREAM_CAPTURE_UNSUPPORTED));
    bool done = polled(s, s->enqueued);
    if (s->ctx->lost) return call_end(&c, s->ctx->lost);
    if (!done) return call_end(&c, NOT_READY);
    host_joins(&s->clock);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuCtxSynchronize(void) {
    call c;
    if (!call_begin(&c, F_cuCtxSynchronize, CALL_CONTEXT | CALL_UNSAFE)) return call_end(&c, c.result);
    for (size_t i = 0; i < G.stream_count; i++)
        if (G.streams[i]->ctx == c.ctx && G.streams[i]->capture)
            return call_end(&c, capture_refuse(G.streams[i]->capture, STREAM_CAPTURE_UNSUPPORTED));
    clock_vector *known = zeroed(sizeof *known);
    clock_join(known, &c.ctx->retired);
    for (size_t i = 0; i < G.stream_count; i++)
        if (G.streams[i]->ctx == c.ctx) clock_join(known, &G.streams[i]->clock);
    for (size_t i = 0; i < G.pending_count;) {
        stream *s = G.pending[i];
        if (s->ctx != c.ctx) {
            i++;
            continue;
        }
        force(s, s->enqueued);
        i = 0; /* the list has changed */
    }
    if (!c.ctx->lost) host_joins(known);
    free(known);
    return call_end(&c, c.ctx->lost);
}

void host_queue(CUhostFn function, void *argument, stream *s, const actor *who) {
    operation *o = operation_new(OPERATION_CALLBACK);
    o->as.callback.function = function;
    o->as.callback.argument = argument;
    o->as.callback.clock = zeroed(sizeof *o->as.callback.clock);
    *o->as.callback.clock = *who->clock;
    enqueue(s, o);
}

EXPORT CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *argument) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuLaunchHostFunc, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!function) return call_end(&c, INVALID_VALUE);
    stream *s = stream_of(handle, &c, &result);
    if (!s) return call_end(&c, result);
    stream_bound(s, &c);
    if (s->capture) return call_end(&c, capture_host(s, function, argument, &c));
    actor who = stream_actor(s, &c);
    host_queue(function, argument, s, &who);
    return call_end(&c, SUCCESS);
}

/* ---- streams ---- */

/* The legacy stream of the current context, or the default stream of this thread; made when it is first used. */
static stream *default_stream(CUstream handle, const call *c) {
    uint32_t thread = handle == STREAM_PER_THREAD ? 1 + thread_number() : 0;
    for (size_t i = 0; i < G.stream_count; i++) {
        stream *s = G.streams[i];
        if (s->is_default && s->ctx == c->ctx && s->thread == thread) return s;
    }
    stream *s = zeroed(sizeof *s);
    s->ctx = c->ctx;
    s->is_default = true;
    s->thread = thread;
    s->number = ++G.numbers;
    s->component = component_new();
    G.streams = grow(G.streams, &G.stream_capacity, G.stream_count + 1, sizeof *G.streams);
    s->index = G.stream_count;
    G.streams[G.stream_count++] = s;
    if (!thread) c->ctx->legacy = s;
    return s;
}

/* The legacy stream and those that may block it are ordered by the order of the calls. */
static void order_by_default(stream *s) {
    for (size_t i = 0; i < G.stream_count && !gathered && !s->capture; i++) {
        stream *other = G.streams[i];
        bool is_pair = (s == s->ctx->legacy) != (other == s->ctx->legacy);
        if (!is_pair || other->ctx != s->ctx || (s->flags | other->flags) & STREAM_NON_BLOCKING || other->capture) continue;
        clock_join(&s->clock, &other->clock);
        wait_queue(other, other->enqueued, s);
    }
}

/* The stream, or null and what to answer. */
stream *stream_of(CUstream handle, const call *c, int *result) {
    if (handle <= STREAM_PER_THREAD) {
        if (!G.default_streams) violation(c, "the legacy or the per-thread stream is used");
        stream *s = default_stream(handle, c);
        order_by_default(s);
        return s;
    }
    stream *s = handle_get(KIND_STREAM, handle);
    *result = INVALID_HANDLE;
    if (!s) {
        violation(c, "unknown or destroyed stream %#llx", (unsigned long long)handle);
        return NULL;
    }
    *result = s->ctx->lost;
    if (s->ctx->legacy && !s->ctx->lost) order_by_default(s);
    return s->ctx->lost ? NULL : s;
}

/* Returns whether the stream's context is current, as every call that queues work should see to. */
bool stream_bound(stream *s, const call *c) {
    if (s->ctx == c->ctx) return true;
    violation(c, "the current context is not that of stream %u", s->number);
    return false;
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
    call c;
    if (!call_begin(&c, F_cuStreamCreateWithPriority, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!out || flags > STREAM_NON_BLOCKING) return call_end(&c, INVALID_VALUE);
    refuse_foreign(&c);
    stream *s = zeroed(sizeof *s);
    s->ctx = c.ctx;
    s->flags = (int)flags;
    s->priority = priority;
    s->number = ++G.numbers;
    s->component = component_new();
    s->made = c.where;
    G.streams = grow(G.streams, &G.stream_capacity, G.stream_count + 1, sizeof *G.streams);
    s->index = G.stream_count;
    G.streams[G.stream_count++] = s;
    *out = s->handle = handle_new(KIND_STREAM, s);
    G.counts[c.ctx->device].streams++;
    return call_end(&c, SUCCESS);
}

static void stream_destroy(stream *s) {
    capture_lose(s);
    free(s->tail_node);
    s->tail_node = NULL;
    clock_join(&s->ctx->retired, &s->clock);
    handle_drop(KIND_STREAM, s->handle);
    G.counts[s->ctx->device].streams--;
    s->destroyed = true;
    stream_bury(s);
}

EXPORT CUresult cuStreamGetCtx(CUstream handle, CUcontext *out) {
    call c;
    if (!call_begin(&c, F_cuStreamGetCtx, 0)) return call_end(&c, c.result);
    if (!out) return call_end(&c, INVALID_VALUE);
    if (handle <= STREAM_PER_THREAD && G.default_streams) {
        if (c.ctx) *out = c.ctx->handle;
        return call_end(&c, c.ctx ? SUCCESS : INVALID_CONTEXT);
    }
    stream *s = handle_get(KIND_STREAM, handle);
    if (!s) return call_end(&c, INVALID_HANDLE);
    *out = s->ctx->handle;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream handle) {
    call c;
    if (!call_begin(&c, F_cuStreamDestroy_v2, CALL_CONTEXT | CALL_RELEASE)) return call_end(&c, c.result);
    stream *s = handle_get(KIND_STREAM, handle);
    if (!s) {
        violation(&c, "unknown or destroyed stream %#llx", (unsigned long long)handle);
        return call_end(&c, INVALID_HANDLE);
    }
    if (s->capture) violation(&c, "stream %u is destroyed while it captures", s->number);
    stream_destroy(s);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    call c;
    if (!call_begin(&c, F_cuCtxGetStreamPriorityRange, CALL_CONTEXT)) return call_end(&c, c.result);
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return call_end(&c, SUCCESS);
}

/* ---- control ---- */

void fake_run(uint64_t operations) {
    control_begin();
    while (operations && G.pending_count) {
        uint64_t before = G.queued;
        /* From a random stream on, the first that can run. */
        size_t start = random_next() % G.pending_count;
        for (size_t i = 0; i < G.pending_count && G.queued == before; i++) {
            stream *s = G.pending[(start + i) % G.pending_count];
            if (!s->busy && !blocked(s) && !is_call(s)) run_head(s);
        }
        if (G.queued == before) break;
        operations--;
    }
    control_end();
}

void fake_drain(void) {
    control_begin();
    drain();
    control_end();
}

/* After clocks_reset: all queues are empty; the living streams get new components. */
void streams_reset(void) {
    for (size_t i = 0; i < G.stream_count; i++) {
        stream *s = G.streams[i];
        clock_clear(&s->clock);
        s->component = component_new();
    }
    for (int i = 0; i < 2 * MAX_DEVICES; i++) clock_clear(&G.contexts[i].retired);
}

void describe_streams(FILE *out) {
    char made[160];
    for (size_t i = 0; i < G.stream_count; i++)
        if (!G.streams[i]->destroyed && G.streams[i]->handle)
            fprintf(out, "stream %u of device %d, made by %s\n", G.streams[i]->number, G.streams[i]->ctx->device,
                    site_text(&G.streams[i]->made, made));
}

/* Of this context, or all: null. */
void streams_clear(const context *only) {
    const handle_table *streams = &G.tables[KIND_STREAM];
    for (uint32_t i = 0; i < streams->count; i++) {
        stream *s = streams->item[i];
        if (s && (!only || s->ctx == only)) stream_destroy(s);
    }
}
