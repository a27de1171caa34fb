/*
 * graphs.c: graphs, what is instantiated from them, and their launches.
 *
 * A launch puts the nodes' work into the stream's queue, each after all that it depends on, and enters what they use
 * into the histories as uses by that stream: where memory is not the program's any more, or not ordered, the launch is
 * to blame. That two nodes which are in no order do not use the same memory is checked apart, at the first launch and
 * after each change. An instance's launches follow one another on whatever streams, as the driver promises.
 */
#include "state.h"

typedef struct instance {
    CUgraphExec handle;
    context *ctx;
    node **node; /* copies under the handles of the originals */
    size_t nodes;
    bool checked;
    stream *last; /* of the last launch, and where it ended there; may be null */
    uint64_t target, epoch;
    site made;
    clock_vector clock;
} instance;

/* ---- nodes and graphs ---- */

graph *graph_new(context *ctx, const call *c) {
    graph *g = zeroed(sizeof *g);
    g->ctx = ctx;
    g->made = c->where;
    g->handle = handle_new(KIND_GRAPH, g);
    return g;
}

node *graph_add(graph *g, node_kind kind, const uint32_t *after, size_t afters, uint16_t name) {
    node *n = zeroed(sizeof *n);
    n->kind = kind;
    n->name = name;
    n->graph = g;
    n->index = (uint32_t)g->nodes;
    n->afters = afters;
    n->after = zeroed(afters * sizeof *after);
    if (afters) memcpy(n->after, after, afters * sizeof *after);
    n->handle = handle_new(KIND_NODE, n);
    g->node = grow(g->node, &g->capacity, g->nodes + 1, sizeof *g->node);
    g->node[g->nodes++] = n;
    return n;
}

static void node_free(node *n) {
    if (n->kind == NODE_KERNEL) free(n->as.kernel.values);
    free(n->after);
    free(n);
}

static node *node_copy(const node *from) {
    node *n = zeroed(sizeof *n);
    *n = *from;
    n->graph = NULL;
    n->after = zeroed(n->afters * sizeof *n->after);
    if (n->afters) memcpy(n->after, from->after, n->afters * sizeof *n->after);
    if (n->kind == NODE_KERNEL) {
        n->as.kernel.values = zeroed(n->as.kernel.bytes);
        if (n->as.kernel.bytes) memcpy(n->as.kernel.values, from->as.kernel.values, n->as.kernel.bytes);
    }
    return n;
}

/* The capture is over: the graph is the program's. */
void graph_publish(graph *g) { G.counts[g->ctx->device].graphs++; }

void graph_drop(graph *g) {
    for (size_t i = 0; i < g->nodes; i++) {
        handle_drop(KIND_NODE, g->node[i]->handle);
        node_free(g->node[i]);
    }
    handle_drop(KIND_GRAPH, g->handle);
    free(g->node);
    free(g);
}

static bool under_construction(const graph *g) {
    for (const capture *k = captures; k; k = k->next)
        if (k->graph == g) return true;
    return false;
}

/* Whether the node is one of `ends` or comes before one of them. */
bool graph_precedes(const graph *g, uint32_t first, const uint32_t *ends, size_t count) {
    bool *wanted = zeroed(g->nodes + 1), found = false;
    for (size_t i = 0; i < count; i++) wanted[ends[i]] = true;
    for (size_t i = g->nodes; i-- > first && !found;) {
        if (!wanted[i]) continue;
        found = i == first;
        for (size_t n = 0; n < g->node[i]->afters; n++) wanted[g->node[i]->after[n]] = true;
    }
    free(wanted);
    return found;
}

static graph *graph_of(CUgraph handle, const call *c) {
    graph *g = handle_get(KIND_GRAPH, handle);
    if (!g) violation(c, "unknown or destroyed graph %#llx", (unsigned long long)handle);
    return g;
}

static instance *instance_of(CUgraphExec handle, const call *c) {
    instance *x = handle_get(KIND_INSTANCE, handle);
    if (!x) violation(c, "unknown or destroyed instance of a graph %#llx", (unsigned long long)handle);
    return x;
}

EXPORT CUresult cuGraphDestroy(CUgraph handle) {
    call c;
    if (!call_begin(&c, F_cuGraphDestroy, CALL_RELEASE)) return call_end(&c, c.result);
    graph *g = graph_of(handle, &c);
    if (!g || under_construction(g)) return call_end(&c, INVALID_VALUE);
    G.counts[g->ctx->device].graphs--;
    graph_drop(g);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle, unsigned long long flags) {
    call c;
    if (!call_begin(&c, F_cuGraphInstantiateWithFlags, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!out || flags > 15) return call_end(&c, INVALID_VALUE);
    graph *g = graph_of(handle, &c);
    if (!g || under_construction(g)) return call_end(&c, INVALID_VALUE);
    refuse_foreign(&c);
    instance *x = zeroed(sizeof *x);
    x->ctx = g->ctx;
    x->made = c.where;
    x->nodes = g->nodes;
    x->node = zeroed(g->nodes * sizeof *x->node);
    for (size_t i = 0; i < g->nodes; i++) x->node[i] = node_copy(g->node[i]);
    *out = x->handle = handle_new(KIND_INSTANCE, x);
    G.counts[x->ctx->device].instances++;
    return call_end(&c, SUCCESS);
}

static void instance_drop(instance *x) {
    for (size_t i = 0; i < x->nodes; i++) node_free(x->node[i]);
    if (x->last) stream_unref(x->last);
    G.counts[x->ctx->device].instances--;
    handle_drop(KIND_INSTANCE, x->handle);
    free(x->node);
    free(x);
}

/* Work of its launches that has not run yet stays in the queues, as with the real driver. */
EXPORT CUresult cuGraphExecDestroy(CUgraphExec handle) {
    call c;
    if (!call_begin(&c, F_cuGraphExecDestroy, CALL_RELEASE)) return call_end(&c, c.result);
    instance *x = instance_of(handle, &c);
    if (!x) return call_end(&c, INVALID_VALUE);
    instance_drop(x);
    return call_end(&c, SUCCESS);
}

/* ---- nodes in no order ---- */

static node_use *uses;
static size_t use_count, use_capacity;
static bool noting;
static uint32_t noting_for;

/* A use of memory is entered into a history. */
void note_use(const block *b, uint64_t from, uint64_t to, bool write) {
    if (!noting || !b) return;
    uses = grow(uses, &use_capacity, use_count + 1, sizeof *uses);
    uses[use_count++] = (node_use){b, from, to, noting_for, write};
}

static bool is_chain(const instance *x) {
    for (size_t i = 1; i < x->nodes; i++) {
        bool follows = false;
        for (size_t n = 0; n < x->node[i]->afters; n++) follows = follows || x->node[i]->after[n] == i - 1;
        if (!follows) return false;
    }
    return true;
}

static void check_order(const instance *x, const call *c) {
    size_t words = (x->nodes + 63) / 64;
    uint64_t *before = zeroed(x->nodes * words * sizeof *before); /* a row of bits for each node */
    for (size_t i = 0; i < x->nodes; i++)
        for (size_t n = 0; n < x->node[i]->afters; n++) {
            uint32_t earlier = x->node[i]->after[n];
            for (size_t w = 0; w < words; w++) before[i * words + w] |= before[earlier * words + w];
            before[i * words + earlier / 64] |= UINT64_C(1) << earlier % 64;
        }
    for (size_t i = 0; i < use_count; i++)
        for (size_t n = 0; n < i; n++) {
            const node_use *a = &uses[n], *b = &uses[i];
            if (a->block != b->block || !(a->write || b->write) || a->to <= b->from || b->to <= a->from) continue;
            if (a->node == b->node || before[b->node * words + a->node / 64] >> a->node % 64 & 1) continue;
            char text[96];
            violation(c, "nodes %u (%s) and %u (%s) of a graph are in no order and use the same %s", a->node,
                      interned(x->node[a->node]->name), b->node, interned(x->node[b->node]->name),
                      block_text(b->block, text));
        }
    free(before);
}

/* ---- launches ---- */

static bool same(const location *place, uint32_t number, const call *c) {
    if (place->block && place->block->number == number) return true;
    if (number) violation(c, "the memory that a graph names is gone");
    return false; /* pageable memory was a violation when it was captured, and is left alone */
}

static void node_queue(const node *n, stream *s, const actor *who, const call *c) {
    location to, from;
    function *f;
    switch (n->kind) {
    case NODE_COPY:
        if (!copy_places(&n->as.copy, c, &to, &from)) return;
        if (same(&to, n->blocks[0], c) && same(&from, n->blocks[1], c)) copy_queue(&n->as.copy, to, from, s, who, c);
        break;
    case NODE_FILL:
        if (fill_place(&n->as.fill, c, &to) && same(&to, n->blocks[0], c)) fill_queue(&n->as.fill, to, s, who, c);
        break;
    case NODE_KERNEL:
        f = handle_get(KIND_FUNCTION, n->as.kernel.function);
        if (f) kernel_queue(f, n->as.kernel.values, s, who, c);
        else violation(c, "a graph names the kernel %s of an unloaded module", interned(n->name));
        break;
    case NODE_HOST: host_queue(n->as.host.function, n->as.host.argument, s, who); break;
    }
}

EXPORT CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuGraphLaunch, CALL_CONTEXT)) return call_end(&c, c.result);
    instance *x = instance_of(handle, &c);
    if (!x) return call_end(&c, INVALID_VALUE);
    stream *s = stream_of(stream_handle, &c, &result);
    if (!s) return call_end(&c, result);
    stream_bound(s, &c);
    if (s->capture || s->ctx != x->ctx) return call_end(&c, NOT_SUPPORTED); /* a graph in a graph is not modelled */
    actor who = stream_actor(s, &c);
    if (x->last) {
        if (x->epoch == G.epoch) clock_join(&s->clock, &x->clock);
        wait_queue(x->last, x->target, s);
    }
    noting = !x->checked;
    use_count = 0;
    for (size_t i = 0; i < x->nodes; i++) {
        call one = c;
        one.where.detail = who.where.detail = x->node[i]->name;
        noting_for = (uint32_t)i;
        node_queue(x->node[i], s, &who, &one);
    }
    if (noting && !is_chain(x)) check_order(x, &c);
    noting = false;
    x->checked = true;
    s->references++;
    if (x->last) stream_unref(x->last);
    x->last = s;
    x->target = s->enqueued;
    x->epoch = G.epoch;
    x->clock = s->clock;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuGraphUpload, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!instance_of(handle, &c)) return call_end(&c, INVALID_VALUE);
    stream *s = stream_of(stream_handle, &c, &result);
    if (!s) return call_end(&c, result);
    stream_bound(s, &c);
    if (s->capture) return call_end(&c, capture_refuse(s->capture, STREAM_CAPTURE_UNSUPPORTED));
    return call_end(&c, SUCCESS);
}

static CUresult set_kernel(call *c, CUgraphExec handle, CUgraphNode node_handle, const CUDA_KERNEL_NODE_PARAMS *p) {
    instance *x = instance_of(handle, c);
    if (!x || !p) return call_end(c, INVALID_VALUE);
    if (!handle_get(KIND_NODE, node_handle)) {
        violation(c, "unknown node %#llx, or one of a destroyed graph", (unsigned long long)node_handle);
        return call_end(c, INVALID_VALUE);
    }
    size_t i = 0;
    while (i < x->nodes && x->node[i]->handle != node_handle) i++;
    if (i == x->nodes || x->node[i]->kind != NODE_KERNEL) return call_end(c, INVALID_VALUE);
    function *f = handle_get(KIND_FUNCTION, p->func);
    if (!f) {
        violation(c, "unknown function %#llx, or one of an unloaded module", (unsigned long long)p->func);
        return call_end(c, INVALID_HANDLE);
    }
    CUlaunchConfig l = {p->gridDimX,  p->gridDimY,       p->gridDimZ, p->blockDimX, p->blockDimY,
                        p->blockDimZ, p->sharedMemBytes, 0,           NULL,         0};
    int result = check_shape(f, &l, false);
    if (result != SUCCESS) return call_end(c, result);
    if (f->module->ctx != x->ctx || (p->kernelParams && p->extra)) return call_end(c, INVALID_VALUE);
    unsigned char *values = gather(f, p->kernelParams, p->extra);
    if (!values) return call_end(c, INVALID_VALUE);
    node *n = x->node[i];
    free(n->as.kernel.values);
    n->as.kernel.values = values;
    n->as.kernel.bytes = f->parameter_bytes;
    n->as.kernel.function = p->func;
    n->name = f->name;
    x->checked = false;
    return call_end(c, SUCCESS);
}

EXPORT CUresult cuGraphExecKernelNodeSetParams(CUgraphExec x, CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *p) {
    call c;
    if (!call_begin(&c, F_cuGraphExecKernelNodeSetParams, CALL_CONTEXT)) return call_end(&c, c.result);
    return set_kernel(&c, x, n, p);
}

EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec x, CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *p) {
    call c;
    if (!call_begin(&c, F_cuGraphExecKernelNodeSetParams_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    if (p && p->kern && !p->func) return call_end(&c, NOT_SUPPORTED);
    return set_kernel(&c, x, n, p);
}

/* ---- looking at graphs ---- */

EXPORT CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode *out, size_t *count) {
    call c;
    if (!call_begin(&c, F_cuGraphGetNodes, 0)) return call_end(&c, c.result);
    graph *g = graph_of(handle, &c);
    if (!g || !count) return call_end(&c, INVALID_VALUE);
    for (size_t i = 0; out && i < *count; i++) out[i] = i < g->nodes ? g->node[i]->handle : 0;
    if (!out || *count > g->nodes) *count = g->nodes;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuGraphNodeGetType(CUgraphNode handle, int *out) {
    call c;
    if (!call_begin(&c, F_cuGraphNodeGetType, 0)) return call_end(&c, c.result);
    const node *n = handle_get(KIND_NODE, handle);
    if (!n) violation(&c, "unknown node %#llx, or one of a destroyed graph", (unsigned long long)handle);
    if (!n || !out) return call_end(&c, INVALID_VALUE);
    *out = (int)n->kind;
    return call_end(&c, SUCCESS);
}

static CUresult edges(call *c, CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                      size_t *count) {
    graph *g = graph_of(handle, c);
    if (!g || !count || !from != !to || (data && !from)) return call_end(c, INVALID_VALUE);
    size_t total = 0;
    for (size_t i = 0; i < g->nodes; i++)
        for (size_t n = 0; n < g->node[i]->afters; n++, total++) {
            if (!from || total >= *count) continue;
            from[total] = g->node[g->node[i]->after[n]]->handle;
            to[total] = g->node[i]->handle;
            if (data) data[total] = (CUgraphEdgeData){0};
        }
    for (size_t i = total; from && i < *count; i++) from[i] = to[i] = 0;
    if (!from || *count > total) *count = total;
    return call_end(c, SUCCESS);
}

EXPORT CUresult cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *count) {
    call c;
    if (!call_begin(&c, F_cuGraphGetEdges, 0)) return call_end(&c, c.result);
    return edges(&c, g, from, to, NULL, count);
}

EXPORT CUresult cuGraphGetEdges_v2(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                                   size_t *count) {
    call c;
    if (!call_begin(&c, F_cuGraphGetEdges_v2, 0)) return call_end(&c, c.result);
    return edges(&c, g, from, to, data, count);
}

EXPORT CUresult cuGraphDebugDotPrint(CUgraph handle, const char *path, unsigned flags) {
    call c;
    (void)flags;
    if (!call_begin(&c, F_cuGraphDebugDotPrint, 0)) return call_end(&c, c.result);
    const graph *g = graph_of(handle, &c);
    if (!g || !path) return call_end(&c, INVALID_VALUE);
    FILE *out = fopen(path, "w");
    if (!out) return call_end(&c, OPERATING_SYSTEM);
    fputs("digraph dot {\n", out);
    for (size_t i = 0; i < g->nodes; i++) {
        fprintf(out, "\"node_%zu\" [label=\"%s\"];\n", i, interned(g->node[i]->name));
        for (size_t n = 0; n < g->node[i]->afters; n++)
            fprintf(out, "\"node_%u\" -> \"node_%zu\";\n", g->node[i]->after[n], i);
    }
    fputs("}\n", out);
    return call_end(&c, fclose(out) ? OPERATING_SYSTEM : SUCCESS);
}

/* ---- control ---- */

void describe_graphs(FILE *out) {
    char made[160];
    for (uint32_t i = 0; i < G.tables[KIND_GRAPH].count; i++) {
        const graph *g = G.tables[KIND_GRAPH].item[i];
        if (g)
            fprintf(out, "%s of device %d, made by %s\n", under_construction(g) ? "capture" : "graph", g->ctx->device,
                    site_text(&g->made, made));
    }
    for (uint32_t i = 0; i < G.tables[KIND_INSTANCE].count; i++) {
        const instance *x = G.tables[KIND_INSTANCE].item[i];
        if (x)
            fprintf(out, "instance of a graph of device %d, made by %s\n", x->ctx->device,
                    site_text(&x->made, made));
    }
}

/* After the captures, so that all graphs are the program's. */
void graphs_reset_all(void) {
    for (uint32_t i = 0; i < G.tables[KIND_INSTANCE].count; i++)
        if (G.tables[KIND_INSTANCE].item[i]) instance_drop(G.tables[KIND_INSTANCE].item[i]);
    for (uint32_t i = 0; i < G.tables[KIND_GRAPH].count; i++) {
        graph *g = G.tables[KIND_GRAPH].item[i];
        if (!g) continue;
        G.counts[g->ctx->device].graphs--;
        graph_drop(g);
    }
}
