/*
 * graphs.c: graphs and their nodes: made, copied, looked at.
 *
 * A node's parameters are what the program said; what they name is looked up when it is launched. A node may have
 * graphs inside: a child graph one, a conditional node its bodies. These belong to the node: the program can fill them
 * and look at them, and they go with the graph that they are in.
 *
 * Invariants: each node comes after all that
 * it depends on in its graph's list, and a shadow's handles are in no table.
 */
#include "state.h"

/* ---- nodes ---- */

/* Sets the kernel that a node runs. */
void node_kernel(node *n, const function *f, const unsigned char *values, const CUlaunchConfig *l, bool cooperative) {
    free(n->as.kernel.values);
    free(n->as.kernel.pointer);
    n->name = f->name;
    n->as.kernel.function = f->handle;
    n->as.kernel.bytes = f->parameter_bytes;
    n->as.kernel.values = zeroed(f->parameter_bytes);
    if (f->parameter_bytes) memcpy(n->as.kernel.values, values, f->parameter_bytes);
    n->as.kernel.pointers = f->parameters;
    n->as.kernel.pointer = zeroed(f->parameters * sizeof *n->as.kernel.pointer);
    for (uint32_t i = 0; i < f->parameters; i++)
        n->as.kernel.pointer[i] = n->as.kernel.values + f->parameter[i].offset;
    n->as.kernel.shape = *l;
    n->as.kernel.how = manner_of(l);
    n->as.kernel.shape.attrs = NULL;
    n->as.kernel.shape.numAttrs = 0;
    n->as.kernel.cooperative = cooperative;
}

/* Replaces the parameters of `n` by copies of those of `from`. */
void node_take(node *n, const node *from) {
    if (n->kind == NODE_KERNEL) {
        free(n->as.kernel.values);
        free(n->as.kernel.pointer);
    }
    n->as = from->as;
    n->name = from->name;
    memcpy(n->blocks, from->blocks, sizeof n->blocks);
    if (n->kind != NODE_KERNEL) return;
    n->as.kernel.values = zeroed(n->as.kernel.bytes);
    if (n->as.kernel.bytes) memcpy(n->as.kernel.values, from->as.kernel.values, n->as.kernel.bytes);
    n->as.kernel.pointer = zeroed(n->as.kernel.pointers * sizeof *n->as.kernel.pointer);
    for (uint32_t i = 0; i < n->as.kernel.pointers; i++)
        n->as.kernel.pointer[i] =
            n->as.kernel.values + ((unsigned char *)from->as.kernel.pointer[i] - from->as.kernel.values);
}

/* The graph becomes the node's next body. */
void node_contain(node *n, graph *body) {
    size_t capacity = n->bodies, other = n->bodies;
    n->body = grow(n->body, &capacity, n->bodies + 1u, sizeof *n->body);
    n->reported = grow(n->reported, &other, n->bodies + 1u, sizeof *n->reported);
    n->body[n->bodies] = body;
    n->reported[n->bodies++] = body->handle;
    body->owner = n;
}

static void node_free(node *n) {
    for (unsigned i = 0; i < n->bodies; i++) graph_drop(n->body[i]);
    if (n->kind == NODE_KERNEL) {
        free(n->as.kernel.values);
        free(n->as.kernel.pointer);
    }
    free(n->body);
    free(n->reported);
    free(n->after);
    free(n);
}

static node *node_new(graph *g, node_kind kind, const uint32_t *after, size_t afters, uint16_t name) {
    node *n = zeroed(sizeof *n);
    n->kind = kind;
    n->name = name;
    n->graph = g;
    n->index = (uint32_t)g->nodes;
    n->afters = afters;
    n->after = zeroed(afters * sizeof *after);
    if (afters) memcpy(n->after, after, afters * sizeof *after);
    g->node = grow(g->node, &g->capacity, g->nodes + 1, sizeof *g->node);
    g->node[g->nodes++] = n;
    return n;
}

node *graph_add(graph *g, node_kind kind, const uint32_t *after, size_t afters, uint16_t name) {
    node *n = node_new(g, kind, after, afters, name);
    n->handle = handle_new(KIND_NODE, n);
    return n;
}

/* ---- graphs ---- */

graph *graph_new(context *ctx, const call *c) {
    graph *g = zeroed(sizeof *g);
    g->ctx = ctx;
    g->made = c->where;
    g->handle = handle_new(KIND_GRAPH, g);
    return g;
}

/* A shadow goes under the handles of the original; another copy has its own, and no conditions. */
graph *graph_copy(const graph *from, bool shadow, const call *c) {
    graph *g = shadow ? zeroed(sizeof *g) : graph_new(from->ctx, c);
    if (shadow) {
        g->ctx = from->ctx;
        g->handle = from->handle;
        g->shadow = true;
        g->condition = grow(NULL, &g->condition_capacity, from->conditions, sizeof *g->condition);
        g->conditions = from->conditions;
        if (from->conditions) memcpy(g->condition, from->condition, from->conditions * sizeof *g->condition);
    }
    for (size_t i = 0; i < from->nodes; i++) {
        const node *old = from->node[i];
        node *n = node_new(g, old->kind, old->after, old->afters, old->name);
        n->disabled = old->disabled;
        n->handle = shadow ? old->handle : handle_new(KIND_NODE, n);
        node_take(n, old);
        for (unsigned b = 0; b < old->bodies; b++) node_contain(n, graph_copy(old->body[b], shadow, c));
    }
    return g;
}

/* From now on the graph is the program's. */
void graph_publish(graph *g) { G.counts[g->ctx->device].graphs++; }

void graph_drop(graph *g) {
    if (!g->shadow && !g->owner) captures_leave(g);
    for (size_t i = 0; i < g->nodes; i++) {
        if (!g->shadow) handle_drop(KIND_NODE, g->node[i]->handle);
        node_free(g->node[i]);
    }
    for (size_t i = 0; i < g->conditions && !g->shadow; i++) handle_drop(KIND_CONDITION, g->condition[i].handle);
    if (!g->shadow) handle_drop(KIND_GRAPH, g->handle);
    free(g->condition);
    free(g->node);
    free(g);
}

/* The graph that it is inside of, or itself. */
graph *graph_root(graph *g) {
    while (g->owner) g = g->owner->graph;
    return g;
}

bool graph_under_construction(graph *g) {
    for (const capture *k = captures; k; k = k->next)
        if (graph_root(k->graph) == graph_root(g)) return true;
    return false;
}

bool graph_conditional(const graph *g) {
    for (size_t i = 0; i < g->nodes; i++)
        if (g->node[i]->kind == NODE_CONDITION) return true;
    return false;
}

/* Returns whether the node is one of `ends` or comes before one of them. */
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

graph *graph_of(CUgraph handle, const call *c) {
    graph *g = handle_get(KIND_GRAPH, handle);
    if (!g) violation(c, "unknown or destroyed graph %#llx", (unsigned long long)handle);
    return g;
}

node *node_of(CUgraphNode handle, const call *c) {
    node *n = handle_get(KIND_NODE, handle);
    if (!n) violation(c, "unknown node %#llx, or one of a destroyed graph", (unsigned long long)handle);
    return n;
}

/* The places of these nodes in the graph; false when one is not of it, or named twice. */
bool nodes_of(const graph *g, const CUgraphNode *from, size_t count, uint32_t **out, const call *c) {
    if (count && !from) return false;
    uint32_t *index = zeroed(count * sizeof *index);
    for (size_t i = 0; i < count; i++) {
        const node *n = node_of(from[i], c);
        bool good = n && n->graph == g;
        if (good) index[i] = n->index;
        for (size_t k = 0; k < i && good; k++) good = index[k] != index[i];
        if (good) continue;
        free(index);
        return false;
    }
    *out = index;
    return true;
}

/* Returns whether the node's kernel may begin before its predecessor by this edge, also a kernel, has ended. */
bool edge_programmatic(const node *n, size_t edge) {
    return n->kind == NODE_KERNEL && n->as.kernel.how.programmatic && n->graph->node[n->after[edge]]->kind == NODE_KERNEL;
}

static CUgraphEdgeData edge_data(const node *n, size_t edge) {
    CUgraphEdgeData data = {0};
    if (edge_programmatic(n, edge)) {
        data.from_port = PORT_PROGRAMMATIC;
        data.type = EDGE_PROGRAMMATIC;
    }
    return data;
}

/* Other edges than captures make and that are more than an order are not modelled. */
bool edges_plain(const CUgraphEdgeData *data, size_t count) {
    for (size_t i = 0; data && i < count; i++)
        if (data[i].from_port || data[i].to_port || data[i].type) return false;
    return true;
}

/* ---- made and destroyed by the program ---- */

EXPORT CUresult cuGraphCreate(CUgraph *out, unsigned flags) {
    call c;
    if (!call_begin(&c, F_cuGraphCreate, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!out || flags) return call_end(&c, INVALID_VALUE);
    refuse_foreign(&c);
    graph *g = graph_new(c.ctx, &c);
    graph_publish(g);
    *out = g->handle;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuGraphClone(CUgraph *out, CUgraph handle) {
    call c;
    if (!call_begin(&c, F_cuGraphClone, CALL_CONTEXT)) return call_end(&c, c.result);
    const graph *from = graph_of(handle, &c);
    if (!from || !out) return call_end(&c, INVALID_VALUE);
    if (graph_conditional(from)) return call_end(&c, NOT_SUPPORTED);
    refuse_foreign(&c);
    graph *g = graph_copy(from, false, &c);
    graph_publish(g);
    *out = g->handle;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuGraphDestroy(CUgraph handle) {
    call c;
    if (!call_begin(&c, F_cuGraphDestroy, CALL_RELEASE)) return call_end(&c, c.result);
    graph *g = graph_of(handle, &c);
    if (!g || g->owner || graph_under_construction(g)) return call_end(&c, INVALID_VALUE);
    G.counts[g->ctx->device].graphs--;
    graph_drop(g);
    return call_end(&c, SUCCESS);
}

/* Reads the parameters of a kernel node in this context; the caller frees the values. */
CUresult kernel_params(const CUDA_KERNEL_NODE_PARAMS *p, context *ctx, const call *c, function **f, CUlaunchConfig *l,
                       unsigned char **values) {
    *f = handle_get(KIND_FUNCTION, p->func);
    if (!*f) {
        violation(c, "unknown function %#llx, or one of an unloaded module", (unsigned long long)p->func);
        return INVALID_HANDLE;
    }
    *l = (CUlaunchConfig){p->gridDimX,  p->gridDimY,       p->gridDimZ, p->blockDimX, p->blockDimY,
                          p->blockDimZ, p->sharedMemBytes, 0,           NULL,         0};
    int result = check_shape(*f, l, false);
    if (result != SUCCESS) return result;
    if ((*f)->module->ctx != ctx || (p->kernelParams && p->extra)) return INVALID_VALUE;
    *values = gather(*f, p->kernelParams, p->extra);
    return *values ? SUCCESS : INVALID_VALUE;
}

/* Host functions, copies and fills come in by captures alone. */
static CUresult add(call *c, CUgraphNode *out, CUgraph handle, const CUgraphNode *after, const CUgraphEdgeData *data,
                    size_t afters, CUgraphNodeParams *p) {
    uint32_t *index = NULL;
    graph *g = graph_of(handle, c), *child = NULL;
    function *f = NULL;
    CUlaunchConfig l;
    unsigned char *values = NULL;
    if (!g || !out || !p || p->reserved0[0] || p->reserved0[1] || p->reserved0[2] || p->reserved2)
        return call_end(c, INVALID_VALUE);
    if (!edges_plain(data, afters)) return call_end(c, NOT_SUPPORTED);
    int result = SUCCESS;
    if (p->type == NODE_KERNEL) result = kernel_params(&p->as.kernel, g->ctx, c, &f, &l, &values);
    else if (p->type == NODE_CONDITION) result = condition_params(&p->as.conditional, g, c);
    else if (p->type == NODE_CHILD) {
        child = graph_of(p->as.graph, c);
        result = child && graph_conditional(child) ? NOT_SUPPORTED : SUCCESS;
        if (!child || graph_root(child) == graph_root(g)) result = INVALID_VALUE;
    } else if (p->type != NODE_EMPTY) result = NOT_SUPPORTED;
    if (result == SUCCESS && !nodes_of(g, after, afters, &index, c)) result = INVALID_VALUE;
    if (result == SUCCESS) {
        refuse_foreign(c);
        const char *name = p->type == NODE_CHILD ? "child graph" : p->type == NODE_EMPTY ? "empty" : "condition";
        node *n = graph_add(g, (node_kind)p->type, index, afters, intern(name, strlen(name)));
        if (f) node_kernel(n, f, values, &l, false);
        if (child) node_contain(n, graph_copy(child, false, c));
        if (p->type == NODE_CONDITION) condition_node(n, &p->as.conditional, c);
        *out = n->handle;
    }
    free(values);
    free(index);
    return call_end(c, result);
}

EXPORT CUresult cuGraphAddNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t afters,
                               CUgraphNodeParams *p) {
    call c;
    if (!call_begin(&c, F_cuGraphAddNode, CALL_CONTEXT)) return call_end(&c, c.result);
    return add(&c, out, g, after, NULL, afters, p);
}

EXPORT CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph g, const CUgraphNode *after, const CUgraphEdgeData *data,
                                  size_t afters, CUgraphNodeParams *p) {
    call c;
    if (!call_begin(&c, F_cuGraphAddNode_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    return add(&c, out, g, after, data, afters, p);
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
    const node *n = node_of(handle, &c);
    if (!n || !out) return call_end(&c, INVALID_VALUE);
    *out = (int)n->kind;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *out) {
    call c;
    if (!call_begin(&c, F_cuGraphChildGraphNodeGetGraph, 0)) return call_end(&c, c.result);
    const node *n = node_of(handle, &c);
    if (!n || !out || n->kind != NODE_CHILD) return call_end(&c, INVALID_VALUE);
    *out = n->body[0]->handle;
    return call_end(&c, SUCCESS);
}

/* The pointers lead into the node, and last as long as what it runs does. */
EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *out) {
    call c;
    if (!call_begin(&c, F_cuGraphKernelNodeGetParams_v2, 0)) return call_end(&c, c.result);
    const node *n = node_of(handle, &c);
    if (!n || !out || n->kind != NODE_KERNEL) return call_end(&c, INVALID_VALUE);
    if (!handle_get(KIND_FUNCTION, n->as.kernel.function)) {
        violation(&c, "a graph names the kernel %s of an unloaded module", interned(n->name));
        return call_end(&c, INVALID_HANDLE);
    }
    const CUlaunchConfig *l = &n->as.kernel.shape;
    *out = (CUDA_KERNEL_NODE_PARAMS){.func = n->as.kernel.function,
                                     .gridDimX = l->gridDimX,
                                     .gridDimY = l->gridDimY,
                                     .gridDimZ = l->gridDimZ,
                                     .blockDimX = l->blockDimX,
                                     .blockDimY = l->blockDimY,
                                     .blockDimZ = l->blockDimZ,
                                     .sharedMemBytes = l->sharedMemBytes,
                                     .kernelParams = n->as.kernel.pointer};
    return call_end(&c, SUCCESS);
}

static CUresult dependencies(call *c, CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *data, size_t *count) {
    const node *n = node_of(handle, c);
    if (!n || !count || (data && !out)) return call_end(c, INVALID_VALUE);
    for (size_t i = 0; out && i < *count; i++) {
        out[i] = i < n->afters ? n->graph->node[n->after[i]]->handle : 0;
        if (!data && i < n->afters && edge_programmatic(n, i)) return call_end(c, LOSSY_QUERY);
        if (data) data[i] = i < n->afters ? edge_data(n, i) : (CUgraphEdgeData){0};
    }
    if (!out || *count > n->afters) *count = n->afters;
    return call_end(c, SUCCESS);
}

EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode n, CUgraphNode *out, size_t *count) {
    call c;
    if (!call_begin(&c, F_cuGraphNodeGetDependencies, 0)) return call_end(&c, c.result);
    return dependencies(&c, n, out, NULL, count);
}

EXPORT CUresult cuGraphNodeGetDependencies_v2(CUgraphNode n, CUgraphNode *out, CUgraphEdgeData *data, size_t *count) {
    call c;
    if (!call_begin(&c, F_cuGraphNodeGetDependencies_v2, 0)) return call_end(&c, c.result);
    return dependencies(&c, n, out, data, count);
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
            if (!data && edge_programmatic(g->node[i], n)) return call_end(c, LOSSY_QUERY);
            if (data) data[total] = edge_data(g->node[i], n);
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
        graph *g = G.tables[KIND_GRAPH].item[i];
        if (g && !g->owner)
            fprintf(out, "%s of device %d, made by %s\n", graph_under_construction(g) ? "capture" : "graph",
                    g->ctx->device, site_text(&g->made, made));
    }
}

/* Of this context, or all: null. After the captures, so that all graphs are the program's. */
void graphs_clear(const context *only) {
    for (uint32_t i = 0; i < G.tables[KIND_GRAPH].count; i++) {
        graph *g = G.tables[KIND_GRAPH].item[i];
        if (!g || g->owner || (only && g->ctx != only)) continue;
        G.counts[g->ctx->device].graphs--;
        graph_drop(g);
    }
}
