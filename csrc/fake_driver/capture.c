/*
 * capture.c: streams that record their work instead of running it.
 *
 * A capture has a graph under construction, and each stream in it the nodes that its next one depends on. A stream
 * joins by waiting for an event that was recorded in the capture. The graph may be one that is there already, as the
 * body of a conditional node is: it is then not the capture's to give away. A call that would mix what is captured with
 * what runs spoils the capture: from then on everything in it answers 901, and its end gives no graph.
 *
 * Invariants: a stream names a capture exactly as long as that is in the list.
 */
#include "state.h"

capture *captures;
static uint64_t last_id;
static _Thread_local int thread_mode;

capture *capture_find(uint64_t id) {
    for (capture *k = captures; k; k = k->next)
        if (k->id == id) return k;
    return NULL;
}

/* Spoils the capture, which may be over, and passes the answer on. */
int capture_refuse(capture *k, int code) {
    if (k) k->invalid = true;
    return code;
}

/* Returns whether this thread may not make calls that could disturb captures; those that forbid it are spoiled. */
bool capture_forbids(void) {
    bool forbidden = false;
    for (capture *k = captures; k && thread_mode != CAPTURE_RELAXED; k = k->next) {
        if (k->mode == CAPTURE_RELAXED) continue;
        if (k->thread != thread_number() && (thread_mode != CAPTURE_GLOBAL || k->mode != CAPTURE_GLOBAL)) continue;
        k->invalid = forbidden = true;
    }
    return forbidden;
}

/* Takes the capture off the list and sets its streams free. Its graph is the caller's. */
static graph *finish(capture *k) {
    graph *g = k->graph;
    capture **place = &captures;
    while (*place != k) place = &(*place)->next;
    *place = k->next;
    for (size_t i = 0; i < G.stream_count; i++)
        if (G.streams[i]->capture == k) {
            G.streams[i]->capture = NULL;
            G.streams[i]->tail_nodes = 0;
        }
    G.counts[g->ctx->device].captures--;
    free(k);
    return g;
}

static void give_up(capture *k) {
    bool borrowed = k->borrowed;
    graph *g = finish(k);
    if (!borrowed) graph_drop(g);
}

/* The stream is destroyed. */
void capture_lose(stream *s) {
    if (!s->capture) return;
    if (s->capture->origin == s) give_up(s->capture);
    else s->capture->invalid = true;
    s->capture = NULL;
}

/* Of this context, or all: null. */
void captures_clear(const context *only) {
    for (capture *k = captures; k;) {
        if (only && k->graph->ctx != only) {
            k = k->next;
            continue;
        }
        give_up(k);
        k = captures; /* others may have gone with it */
    }
}

/* The graph goes: nothing can be captured into it or what is inside it any more. */
void captures_leave(const graph *g) {
    for (capture *k = captures; k;) {
        if (graph_root(k->graph) != g) {
            k = k->next;
            continue;
        }
        finish(k);
        k = captures;
    }
}

/* ---- what is captured ---- */

static void depend_on(stream *s, uint32_t index) {
    for (size_t i = 0; i < s->tail_nodes; i++)
        if (s->tail_node[i] == index) return;
    s->tail_node = grow(s->tail_node, &s->tail_capacity, s->tail_nodes + 1, sizeof *s->tail_node);
    s->tail_node[s->tail_nodes++] = index;
}

/* A new node at the end of what the stream has captured. */
static node *append(stream *s, node_kind kind, uint16_t name) {
    node *n = graph_add(s->capture->graph, kind, s->tail_node, s->tail_nodes, name);
    s->tail_nodes = 0;
    depend_on(s, n->index);
    return n;
}

static uint16_t name_of(const call *c) {
    const char *name = function_name(c->function);
    return intern(name, strlen(name));
}

static uint32_t number_of(const location *place, const call *c) {
    if (!place->block) violation(c, "pageable host memory is captured");
    return place->block ? place->block->number : 0;
}

int capture_copy(stream *s, const copy_request *r, const location *to, const location *from, const call *c) {
    if (s->capture->invalid) return STREAM_CAPTURE_INVALIDATED;
    node *n = append(s, NODE_COPY, name_of(c));
    n->as.copy = *r;
    n->blocks[0] = number_of(to, c);
    n->blocks[1] = number_of(from, c);
    return SUCCESS;
}

int capture_fill(stream *s, const fill_request *r, const location *to, const call *c) {
    if (s->capture->invalid) return STREAM_CAPTURE_INVALIDATED;
    node *n = append(s, NODE_FILL, name_of(c));
    n->as.fill = *r;
    n->blocks[0] = number_of(to, c);
    return SUCCESS;
}

int capture_kernel(stream *s, const function *f, const unsigned char *values, const CUlaunchConfig *l,
                   bool cooperative) {
    if (s->capture->invalid) return STREAM_CAPTURE_INVALIDATED;
    /* Edges have kinds since 12.3; whether those in the body of a conditional node may be of this one, nobody says. */
    if (manner_of(l).programmatic && (G.version < 12030 || s->capture->graph->owner))
        return capture_refuse(s->capture, NOT_SUPPORTED);
    node_kernel(append(s, NODE_KERNEL, f->name), f, values, l, cooperative);
    return SUCCESS;
}

/* The launch of a graph: it becomes a part of this one, as it is now. */
int capture_child(stream *s, const graph *content, const call *c) {
    if (s->capture->invalid) return STREAM_CAPTURE_INVALIDATED;
    if (graph_conditional(content)) return capture_refuse(s->capture, NOT_SUPPORTED);
    node_contain(append(s, NODE_CHILD, name_of(c)), graph_copy(content, false, c));
    return SUCCESS;
}

int capture_host(stream *s, CUhostFn function, void *argument, const call *c) {
    if (s->capture->invalid) return STREAM_CAPTURE_INVALIDATED;
    node *n = append(s, NODE_HOST, name_of(c));
    n->as.host.function = function;
    n->as.host.argument = argument;
    return SUCCESS;
}

/* The stream or the event is in a capture. */
int capture_wait(stream *s, const event *e, unsigned flags) {
    capture *k = e->captured ? capture_find(e->captured) : NULL;
    if (s->capture && s->capture->invalid) return STREAM_CAPTURE_INVALIDATED;
    if (flags) return NOT_SUPPORTED; /* a node that waits is not modelled */
    if (!e->captured) return e->stream ? capture_refuse(s->capture, STREAM_CAPTURE_ISOLATION) : SUCCESS;
    if (!k) return s->capture ? capture_refuse(s->capture, STREAM_CAPTURE_ISOLATION) : CAPTURED_EVENT;
    if (k->invalid) return STREAM_CAPTURE_INVALIDATED;
    if (s->capture && s->capture != k) {
        capture_refuse(s->capture, 0);
        return capture_refuse(k, STREAM_CAPTURE_MERGE);
    }
    if (s->ctx != k->graph->ctx) return NOT_SUPPORTED; /* nor is a graph over several devices */
    s->capture = k;
    for (size_t i = 0; i < e->nodes; i++) depend_on(s, e->node[i]);
    return SUCCESS;
}

/* ---- the driver's calls ---- */

/* The stream, if a capture may begin in it; null and what to answer. */
static stream *beginner(CUstream handle, int mode, const call *c, int *result) {
    *result = INVALID_VALUE;
    if (mode < CAPTURE_GLOBAL || mode > CAPTURE_RELAXED) return NULL;
    stream *s = stream_of(handle, c, result);
    if (!s) return NULL;
    *result = handle <= STREAM_PER_THREAD ? STREAM_CAPTURE_UNSUPPORTED : s->capture ? ILLEGAL_STATE : SUCCESS;
    return *result == SUCCESS ? s : NULL;
}

/* Into a graph of its own, or one that is there (`into`). */
static void begin(const call *c, stream *s, int mode, graph *into) {
    stream_bound(s, c);
    capture *k = zeroed(sizeof *k);
    *k = (capture){.next = captures, .id = ++last_id, .mode = mode, .thread = thread_number(), .origin = s};
    k->borrowed = into != NULL;
    k->graph = into ? into : graph_new(s->ctx, c);
    captures = s->capture = k;
    s->tail_nodes = 0;
    G.counts[s->ctx->device].captures++;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream handle, int mode) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuStreamBeginCapture_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    stream *s = beginner(handle, mode, &c, &result);
    if (s) begin(&c, s, mode, NULL);
    return call_end(&c, result);
}

EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph into, const CUgraphNode *after,
                                            const CUgraphEdgeData *data, size_t afters, int mode) {
    call c;
    int result = SUCCESS;
    uint32_t *index = NULL;
    if (!call_begin(&c, F_cuStreamBeginCaptureToGraph, CALL_CONTEXT)) return call_end(&c, c.result);
    stream *s = beginner(handle, mode, &c, &result);
    if (!s) return call_end(&c, result);
    graph *g = graph_of(into, &c);
    if (!g) return call_end(&c, INVALID_VALUE);
    for (const capture *k = captures; k; k = k->next)
        if (k->graph == g) return call_end(&c, INVALID_VALUE);
    if (g->ctx != s->ctx || !edges_plain(data, afters)) return call_end(&c, NOT_SUPPORTED);
    if (!nodes_of(g, after, afters, &index, &c)) return call_end(&c, INVALID_VALUE);
    begin(&c, s, mode, g);
    for (size_t i = 0; i < afters; i++) depend_on(s, index[i]);
    free(index);
    return call_end(&c, SUCCESS);
}

static CUresult update_dependencies(call *c, CUstream handle, const CUgraphNode *list, const CUgraphEdgeData *data,
                                    size_t count, unsigned flags) {
    int result = SUCCESS;
    uint32_t *index = NULL;
    if (flags > DEPENDENCIES_SET) return call_end(c, INVALID_VALUE);
    stream *s = stream_of(handle, c, &result);
    if (!s) return call_end(c, result);
    if (!s->capture) return call_end(c, ILLEGAL_STATE);
    if (s->capture->invalid) return call_end(c, STREAM_CAPTURE_INVALIDATED);
    if (!edges_plain(data, count)) return call_end(c, NOT_SUPPORTED);
    if (!nodes_of(s->capture->graph, list, count, &index, c)) return call_end(c, INVALID_VALUE);
    if (flags == DEPENDENCIES_SET) s->tail_nodes = 0;
    for (size_t i = 0; i < count; i++) depend_on(s, index[i]);
    free(index);
    return call_end(c, SUCCESS);
}

EXPORT CUresult cuStreamUpdateCaptureDependencies(CUstream s, CUgraphNode *list, size_t count, unsigned flags) {
    call c;
    if (!call_begin(&c, F_cuStreamUpdateCaptureDependencies, CALL_CONTEXT)) return call_end(&c, c.result);
    return update_dependencies(&c, s, list, NULL, count, flags);
}

EXPORT CUresult cuStreamUpdateCaptureDependencies_v2(CUstream s, CUgraphNode *list, const CUgraphEdgeData *data,
                                                     size_t count, unsigned flags) {
    call c;
    if (!call_begin(&c, F_cuStreamUpdateCaptureDependencies_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    return update_dependencies(&c, s, list, data, count, flags);
}

/* Returns whether the captured work of all other streams comes before that of the first one. */
static bool joined(const capture *k) {
    const stream *o = k->origin;
    for (size_t i = 0; i < G.stream_count; i++) {
        const stream *s = G.streams[i];
        for (size_t n = 0; s->capture == k && s != o && n < s->tail_nodes; n++)
            if (!graph_precedes(k->graph, s->tail_node[n], o->tail_node, o->tail_nodes)) return false;
    }
    return true;
}

EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph *out) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuStreamEndCapture, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!out) return call_end(&c, INVALID_VALUE);
    stream *s = stream_of(handle, &c, &result);
    if (!s) return call_end(&c, result);
    capture *k = s->capture;
    if (!k) return call_end(&c, ILLEGAL_STATE);
    if (k->mode != CAPTURE_RELAXED && k->thread != thread_number()) return call_end(&c, STREAM_CAPTURE_WRONG_THREAD);
    if (k->origin != s) return call_end(&c, capture_refuse(k, STREAM_CAPTURE_UNMATCHED));
    result = k->invalid ? STREAM_CAPTURE_INVALIDATED : joined(k) ? SUCCESS : STREAM_CAPTURE_UNJOINED;
    *out = 0;
    if (result != SUCCESS) {
        give_up(k);
        return call_end(&c, result);
    }
    bool borrowed = k->borrowed;
    graph *g = finish(k);
    if (!borrowed) graph_publish(g);
    *out = g->handle;
    return call_end(&c, SUCCESS);
}

static int status_of(const stream *s) {
    return !s->capture ? CAPTURE_NONE : s->capture->invalid ? CAPTURE_INVALIDATED : CAPTURE_ACTIVE;
}

EXPORT CUresult cuStreamIsCapturing(CUstream handle, int *out) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuStreamIsCapturing, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!out) return call_end(&c, INVALID_VALUE);
    stream *s = stream_of(handle, &c, &result);
    if (!s) return call_end(&c, result);
    *out = status_of(s);
    return call_end(&c, SUCCESS);
}

static CUresult information(call *c, CUstream handle, int *status, uint64_t *id, CUgraph *g,
                            const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *count) {
    static CUgraphNode *list; /* valid until the next such call */
    static CUgraphEdgeData *zeros;
    static size_t capacity, zeros_capacity;
    int result = SUCCESS;
    if (!status) return call_end(c, INVALID_VALUE);
    stream *s = stream_of(handle, c, &result);
    if (!s) return call_end(c, result);
    *status = status_of(s);
    if (*status != CAPTURE_ACTIVE) return call_end(c, SUCCESS);
    list = grow(list, &capacity, s->tail_nodes + 1, sizeof *list);
    zeros = grow(zeros, &zeros_capacity, s->tail_nodes + 1, sizeof *zeros);
    memset(zeros, 0, (s->tail_nodes + 1) * sizeof *zeros);
    for (size_t i = 0; i < s->tail_nodes; i++) list[i] = s->capture->graph->node[s->tail_node[i]]->handle;
    if (id) *id = s->capture->id;
    if (g) *g = s->capture->graph->handle;
    if (nodes) *nodes = list;
    if (edges) *edges = zeros;
    if (count) *count = s->tail_nodes;
    return call_end(c, SUCCESS);
}

EXPORT CUresult cuStreamGetCaptureInfo(CUstream s, int *status, uint64_t *id) {
    call c;
    if (!call_begin(&c, F_cuStreamGetCaptureInfo, CALL_CONTEXT)) return call_end(&c, c.result);
    return information(&c, s, status, id, NULL, NULL, NULL, NULL);
}

EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream s, int *status, uint64_t *id, CUgraph *g, const CUgraphNode **nodes,
                                          size_t *count) {
    call c;
    if (!call_begin(&c, F_cuStreamGetCaptureInfo_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    return information(&c, s, status, id, g, nodes, NULL, count);
}

EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream s, int *status, uint64_t *id, CUgraph *g, const CUgraphNode **nodes,
                                          const CUgraphEdgeData **edges, size_t *count) {
    call c;
    if (!call_begin(&c, F_cuStreamGetCaptureInfo_v3, CALL_CONTEXT)) return call_end(&c, c.result);
    return information(&c, s, status, id, g, nodes, edges, count);
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    call c;
    if (!call_begin(&c, F_cuThreadExchangeStreamCaptureMode, 0)) return call_end(&c, c.result);
    if (!mode || *mode < CAPTURE_GLOBAL || *mode > CAPTURE_RELAXED) return call_end(&c, INVALID_VALUE);
    int former = thread_mode;
    thread_mode = *mode;
    *mode = former;
    return call_end(&c, SUCCESS);
}
