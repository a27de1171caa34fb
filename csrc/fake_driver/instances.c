/*
 * instances.c: executable graphs, their launches and their updates.
 *
 * A launch puts the nodes' work into the stream's queue, each after all that it depends on, and enters what they use
 * into the histories as uses by that stream: where memory is not the program's any more, or not ordered, the launch is
 * to blame. The body of a conditional node is entered once, however often it runs. A separate check, at the first
 * launch and after each change, finds unordered nodes that use the same memory; the uses of a body count as the
 * node's. An instance's launches follow one another on whatever streams, as the driver guarantees.
 */
#include "state.h"

typedef struct instance {
    CUgraphExec handle;
    context *ctx;
    graph *content; /* a shadow */
    bool checked;
    stream *last; /* of the last launch, and where it ended there; may be null */
    uint64_t target, epoch;
    site made;
    clock_vector clock;
} instance;

static instance *instance_of(CUgraphExec handle, const call *c) {
    instance *x = handle_get(KIND_INSTANCE, handle);
    if (!x) violation(c, "unknown or destroyed instance of a graph %#llx", (unsigned long long)handle);
    return x;
}

/* Host functions cannot be run from inside a conditional node. */
static bool bodies_good(const graph *g, bool conditional) {
    for (size_t i = 0; i < g->nodes; i++) {
        const node *n = g->node[i];
        if (conditional && n->kind == NODE_HOST) return false;
        for (unsigned b = 0; b < n->bodies; b++)
            if (!bodies_good(n->body[b], conditional || n->kind == NODE_CONDITION)) return false;
    }
    return true;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle, unsigned long long flags) {
    call c;
    if (!call_begin(&c, F_cuGraphInstantiateWithFlags, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!out || flags > 15) return call_end(&c, INVALID_VALUE);
    graph *g = graph_of(handle, &c);
    if (!g || g->owner || graph_under_construction(g)) return call_end(&c, INVALID_VALUE);
    if (!bodies_good(g, false)) return call_end(&c, NOT_SUPPORTED);
    refuse_foreign(&c);
    instance *x = zeroed(sizeof *x);
    x->ctx = g->ctx;
    x->made = c.where;
    x->content = graph_copy(g, true, &c);
    *out = x->handle = handle_new(KIND_INSTANCE, x);
    G.counts[x->ctx->device].instances++;
    return call_end(&c, SUCCESS);
}

static void instance_drop(instance *x) {
    graph_drop(x->content);
    if (x->last) stream_unref(x->last);
    G.counts[x->ctx->device].instances--;
    handle_drop(KIND_INSTANCE, x->handle);
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
void record_use(const block *b, uint64_t from, uint64_t to, bool write) {
    if (!noting || !b) return;
    uses = grow(uses, &use_capacity, use_count + 1, sizeof *uses);
    uses[use_count++] = (node_use){b, from, to, noting_for, write};
}

static bool is_chain(const graph *x) {
    for (size_t i = 1; i < x->nodes; i++) {
        bool follows = false;
        for (size_t n = 0; n < x->node[i]->afters; n++) follows = follows || x->node[i]->after[n] == i - 1;
        if (!follows) return false;
    }
    return true;
}

/* The uses from `first` on are those of the nodes of this graph. */
static void check_order(const graph *x, size_t first, const call *c) {
    size_t words = (x->nodes + 63) / 64;
    uint64_t *before = zeroed(x->nodes * words * sizeof *before); /* a row of bits for each node */
    for (size_t i = 0; i < x->nodes; i++)
        for (size_t n = 0; n < x->node[i]->afters; n++) {
            uint32_t earlier = x->node[i]->after[n];
            for (size_t w = 0; w < words; w++) before[i * words + w] |= before[earlier * words + w];
            before[i * words + earlier / 64] |= UINT64_C(1) << earlier % 64;
        }
    for (size_t i = first; i < use_count; i++)
        for (size_t n = first; n < i; n++) {
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

static void nodes_queue(const graph *g, stream *s, actor *who, const call *c);

/* The body of a node, whose uses count as the node's. */
static void body_queue(const node *n, unsigned body, stream *s, actor *who, const call *c) {
    size_t first = use_count;
    nodes_queue(n->body[body], s, who, c);
    for (size_t i = first; i < use_count; i++) uses[i].node = n->index;
}

static void condition_queue(const node *n, stream *s, actor *who, const call *c) {
    struct condition_run *run = condition_run_new(n, launch_values, c);
    for (unsigned i = 0; i < n->bodies; i++) {
        operation_list *former = operations_gather(condition_run_body(run, i));
        body_queue(n, i, s, who, c);
        operations_gather(former);
    }
    operation *o = operation_new(OPERATION_CONDITION);
    o->as.condition = run;
    enqueue(s, o);
}

static void node_queue(const node *n, stream *s, actor *who, const call *c) {
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
        if (f) kernel_queue(f, n->as.kernel.values, &n->as.kernel.shape, n->as.kernel.how, s, who, c);
        else violation(c, "a graph names the kernel %s of an unloaded module", interned(n->name));
        break;
    case NODE_HOST: host_queue(n->as.host.function, n->as.host.argument, s, who); break;
    case NODE_CHILD: body_queue(n, 0, s, who, c); break;
    case NODE_CONDITION: condition_queue(n, s, who, c); break;
    case NODE_EMPTY: break;
    }
}

static void nodes_queue(const graph *g, stream *s, actor *who, const call *c) {
    size_t first = use_count;
    for (size_t i = 0; i < g->nodes; i++) {
        call one = *c;
        one.where.detail = who->where.detail = g->node[i]->name;
        noting_for = (uint32_t)i;
        if (!g->node[i]->disabled) node_queue(g->node[i], s, who, &one);
    }
    if (noting && !is_chain(g)) check_order(g, first, c);
}

static CUresult launch(CUgraphExec handle, CUstream stream_handle) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuGraphLaunch, CALL_CONTEXT)) return call_end(&c, c.result);
    instance *x = instance_of(handle, &c);
    if (!x) return call_end(&c, INVALID_VALUE);
    stream *s = stream_of(stream_handle, &c, &result);
    if (!s) return call_end(&c, result);
    stream_bound(s, &c);
    if (s->ctx != x->ctx) return call_end(&c, NOT_SUPPORTED); /* work of one context in a stream of another */
    if (s->capture) return call_end(&c, capture_child(s, x->content, &c));
    actor who = stream_actor(s, &c);
    if (x->last) {
        if (x->epoch == G.epoch) clock_join(&s->clock, &x->clock);
        wait_queue(x->last, x->target, s);
    }
    noting = !x->checked;
    use_count = 0;
    launch_values = values_new(x->content);
    nodes_queue(x->content, s, &who, &c);
    values_drop(launch_values);
    launch_values = NULL;
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

EXPORT CUresult cuGraphLaunch(CUgraphExec instance, CUstream stream) {
    int place = ordering_begin(stream, true);
    CUresult result = launch(instance, stream);
    ordering_end(place);
    return result;
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

/* ---- changes ---- */

/* The instance's own copy of a node of its graph, not of one inside; null: none, with a violation when it is gone. */
static node *copy_of(const instance *x, CUgraphNode handle, const call *c) {
    if (!node_of(handle, c)) return NULL;
    for (size_t i = 0; i < x->content->nodes; i++)
        if (x->content->node[i]->handle == handle) return x->content->node[i];
    return NULL;
}

static CUresult set_kernel(call *c, CUgraphExec handle, CUgraphNode node_handle, const CUDA_KERNEL_NODE_PARAMS *p) {
    function *f;
    CUlaunchConfig l;
    unsigned char *values = NULL;
    instance *x = instance_of(handle, c);
    if (!x || !p) return call_end(c, INVALID_VALUE);
    node *n = copy_of(x, node_handle, c);
    if (!n || n->kind != NODE_KERNEL) return call_end(c, INVALID_VALUE);
    int result = kernel_params(p, x->ctx, c, &f, &l, &values);
    if (result != SUCCESS) return call_end(c, result);
    manner how = n->as.kernel.how; /* attributes stay what they were */
    node_kernel(n, f, values, &l, n->as.kernel.cooperative);
    n->as.kernel.how = how;
    free(values);
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

/* Only kernels, copies and fills can be left out. */
EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node_handle, unsigned enabled) {
    call c;
    if (!call_begin(&c, F_cuGraphNodeSetEnabled, CALL_CONTEXT)) return call_end(&c, c.result);
    instance *x = instance_of(handle, &c);
    node *n = x ? copy_of(x, node_handle, &c) : NULL;
    if (!n || n->kind > NODE_FILL) return call_end(&c, INVALID_VALUE);
    n->disabled = !enabled;
    x->checked = false;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode node_handle, unsigned *out) {
    call c;
    if (!call_begin(&c, F_cuGraphNodeGetEnabled, CALL_CONTEXT)) return call_end(&c, c.result);
    instance *x = instance_of(handle, &c);
    const node *n = x ? copy_of(x, node_handle, &c) : NULL;
    if (!n || !out || n->kind > NODE_FILL) return call_end(&c, INVALID_VALUE);
    *out = !n->disabled;
    return call_end(&c, SUCCESS);
}

/* Returns whether the node has that edge of the other graph's node in its place, of the same kind. */
static bool depends(const node *n, const node *other, size_t edge) {
    for (size_t i = 0; i < n->afters; i++)
        if (n->after[i] == other->after[edge]) return edge_programmatic(n, i) == edge_programmatic(other, edge);
    return false;
}

/* Why this node of an instance cannot become that one. */
static int node_differs(const node *old, const node *n) {
    if (old->kind != n->kind) return UPDATE_NODE_TYPE_CHANGED;
    if (old->bodies != n->bodies) return UPDATE_PARAMETERS_CHANGED;
    const copy_request *a = &old->as.copy, *b = &n->as.copy;
    switch (n->kind) {
    case NODE_KERNEL: return old->as.kernel.cooperative == n->as.kernel.cooperative ? 0 : UPDATE_ATTRIBUTES_CHANGED;
    case NODE_COPY:
        return a->to_host == b->to_host && a->from_host == b->from_host && (a->height > 1) == (b->height > 1) &&
                       (a->depth > 1) == (b->depth > 1)
                   ? 0
                   : UPDATE_PARAMETERS_CHANGED;
    case NODE_FILL: /* of one row only */
        return (old->as.fill.height <= 1 && n->as.fill.height <= 1) ||
                       !memcmp(&old->as.fill, &n->as.fill, sizeof(fill_request))
                   ? 0
                   : UPDATE_PARAMETERS_CHANGED;
    case NODE_CONDITION: return old->as.condition.type == n->as.condition.type ? 0 : UPDATE_PARAMETERS_CHANGED;
    case NODE_HOST:
    case NODE_CHILD:
    case NODE_EMPTY: break;
    }
    return UPDATE_SUCCESS;
}

/* Returns whether the instance can be updated to this graph, and if not, why. */
static bool comparable(const graph *old, const graph *g, CUgraphExecUpdateResultInfo *why) {
    *why = (CUgraphExecUpdateResultInfo){.result = UPDATE_TOPOLOGY_CHANGED};
    if (old->nodes != g->nodes) return false;
    for (size_t i = 0; i < g->nodes; i++) {
        const node *a = old->node[i], *b = g->node[i];
        why->errorNode = b->handle;
        for (size_t n = 0; n < b->afters; n++)
            if (!depends(a, b, n)) {
                why->errorFromNode = g->node[b->after[n]]->handle;
                return false;
            }
        if (a->afters != b->afters) return false;
    }
    for (size_t i = 0; i < g->nodes; i++) {
        why->errorNode = g->node[i]->handle;
        why->result = node_differs(old->node[i], g->node[i]);
        if (why->result != UPDATE_SUCCESS) return false;
        for (unsigned b = 0; b < g->node[i]->bodies; b++)
            if (!comparable(old->node[i]->body[b], g->node[i]->body[b], why)) return false;
    }
    *why = (CUgraphExecUpdateResultInfo){.result = UPDATE_SUCCESS};
    return true;
}

static void take_over(graph *old, const graph *g) {
    for (size_t i = 0; i < g->nodes; i++) {
        node_take(old->node[i], g->node[i]);
        for (unsigned b = 0; b < g->node[i]->bodies; b++) take_over(old->node[i]->body[b], g->node[i]->body[b]);
    }
}

/* The handles stay those of the graph that the instance was made from; the conditions are the new graph's. */
EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo *out) {
    call c;
    if (!call_begin(&c, F_cuGraphExecUpdate_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    instance *x = instance_of(handle, &c);
    if (!x || !out) return call_end(&c, INVALID_VALUE);
    *out = (CUgraphExecUpdateResultInfo){.result = UPDATE_ERROR};
    graph *g = graph_of(graph_handle, &c);
    if (!g || g->owner || graph_under_construction(g)) return call_end(&c, INVALID_VALUE);
    bool good = comparable(x->content, g, out);
    if (good && (x->ctx != g->ctx || x->content->conditions != g->conditions)) {
        out->result = x->ctx != g->ctx ? UPDATE_UNSUPPORTED_FUNCTION_CHANGE : UPDATE_TOPOLOGY_CHANGED;
        good = false;
    }
    if (!good) return call_end(&c, GRAPH_EXEC_UPDATE_FAILURE);
    take_over(x->content, g);
    if (g->conditions) memcpy(x->content->condition, g->condition, g->conditions * sizeof *g->condition);
    x->checked = false;
    return call_end(&c, SUCCESS);
}

/* ---- control ---- */

void describe_instances(FILE *out) {
    char made[160];
    for (uint32_t i = 0; i < G.tables[KIND_INSTANCE].count; i++) {
        const instance *x = G.tables[KIND_INSTANCE].item[i];
        if (x)
            fprintf(out, "instance of a graph of device %d, made by %s\n", x->ctx->device,
                    site_text(&x->made, made));
    }
}

/* Of this context, or all: null. */
void instances_clear(const context *only) {
    for (uint32_t i = 0; i < G.tables[KIND_INSTANCE].count; i++) {
        instance *x = G.tables[KIND_INSTANCE].item[i];
        if (x && (!only || x->ctx == only)) instance_drop(x);
    }
}
