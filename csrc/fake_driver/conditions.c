/*
 * conditions.c: conditional nodes, and the values that decide what runs inside them.
 *
 * A condition is made for a graph and serves one conditional node in it. Its value belongs to a launch: it begins with
 * the default, if the condition has one, and is set by kernels of the graph as they run. The node's body is
 * queued at the launch, as a list that belongs to one operation, which runs it as often as the value demands.
 *
 * Invariants: a value that nobody has set decides nothing, and no loop is endless.
 */
#include "state.h"

#define MAX_LOOP 10000

/* ---- values ---- */

condition_values *launch_values; /* of the launch that is being queued; null: none is */

condition_values *values_new(const graph *g) {
    condition_values *v = zeroed(sizeof *v + g->conditions * sizeof v->of[0]);
    v->references = 1;
    v->count = g->conditions;
    for (size_t i = 0; i < g->conditions; i++) {
        v->of[i].handle = g->condition[i].handle;
        v->of[i].value = g->condition[i].value;
        v->of[i].set = g->condition[i].assigned;
    }
    return v;
}

void values_drop(condition_values *v) {
    if (--v->references == 0) free(v);
}

/* The place of the condition, or -1. */
int values_find(const condition_values *v, CUgraphConditionalHandle handle) {
    for (size_t i = 0; i < v->count; i++)
        if (v->of[i].handle == handle) return (int)i;
    return -1;
}

/* ---- a queued node ---- */

typedef struct condition_run {
    condition_values *values;
    int condition, type;
    site where;
    unsigned bodies;
    operation_list body[];
} condition_run;

condition_run *condition_run_new(const node *n, condition_values *values, const call *c) {
    condition_run *run = zeroed(sizeof *run + n->bodies * sizeof run->body[0]);
    run->values = values;
    run->values->references++;
    run->condition = values_find(values, n->as.condition.handle);
    run->type = n->as.condition.type;
    run->where = c->where;
    run->bodies = n->bodies;
    return run;
}

operation_list *condition_run_body(condition_run *run, unsigned index) { return &run->body[index]; }

static void perform(const operation_list *list, context *ctx) {
    for (operation *o = list->head; o && !ctx->lost; o = o->next) operation_perform(o, ctx);
}

void condition_perform(condition_run *run, context *ctx) {
    char where[160];
    if (run->condition < 0 || !run->values->of[run->condition].set) {
        violation_at("a conditional node is reached before its condition is set, in %s", site_text(&run->where, where));
        return;
    }
    const uint32_t *value = &run->values->of[run->condition].value;
    unsigned rounds = 0;
    switch (run->type) {
    case CONDITION_IF:
        if (*value) perform(&run->body[0], ctx);
        else if (run->bodies > 1) perform(&run->body[1], ctx);
        break;
    case CONDITION_WHILE:
        for (; *value && !ctx->lost && rounds < MAX_LOOP; rounds++) perform(&run->body[0], ctx);
        if (*value && !ctx->lost)
            violation_at("a while node has run %u times and goes on, in %s", rounds, site_text(&run->where, where));
        break;
    default:
        if (*value < run->bodies) perform(&run->body[*value], ctx);
    }
}

void condition_run_drop(condition_run *run) {
    for (unsigned i = 0; i < run->bodies; i++)
        for (operation *o = run->body[i].head; o;) {
            operation *next = o->next;
            operation_discard(o);
            o = next;
        }
    values_drop(run->values);
    free(run);
}

/* ---- conditions and nodes ---- */

EXPORT CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *out, CUgraph handle, CUcontext context_handle,
                                               unsigned value, unsigned flags) {
    call c;
    if (!call_begin(&c, F_cuGraphConditionalHandleCreate, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!out || flags > CONDITION_ASSIGN_DEFAULT) return call_end(&c, INVALID_VALUE);
    graph *g = graph_of(handle, &c);
    if (!g) return call_end(&c, INVALID_VALUE);
    if ((context_handle ? context_of(context_handle) : c.ctx) != g->ctx) return call_end(&c, INVALID_VALUE);
    g = graph_root(g);
    g->condition = grow(g->condition, &g->condition_capacity, g->conditions + 1, sizeof *g->condition);
    condition *k = &g->condition[g->conditions++];
    *k = (condition){.value = value, .assigned = flags & CONDITION_ASSIGN_DEFAULT};
    *out = k->handle = handle_new(KIND_CONDITION, g); /* the item is only ever asked for the graph */
    return call_end(&c, SUCCESS);
}

static condition *condition_in(graph *root, CUgraphConditionalHandle handle) {
    for (size_t i = 0; i < root->conditions; i++)
        if (root->condition[i].handle == handle) return &root->condition[i];
    return NULL;
}

/* Checks the condition of a new conditional node in this graph; a condition serves one node. */
CUresult condition_params(CUDA_CONDITIONAL_NODE_PARAMS *p, graph *g, const call *c) {
    if (!handle_get(KIND_CONDITION, p->handle)) {
        violation(c, "unknown condition %#llx, or one of a destroyed graph", (unsigned long long)p->handle);
        return INVALID_VALUE;
    }
    const condition *k = condition_in(graph_root(g), p->handle);
    if (!k || k->used || p->type < CONDITION_IF || p->type > CONDITION_SWITCH) return INVALID_VALUE;
    if (p->ctx && context_of(p->ctx) != g->ctx) return INVALID_VALUE;
    bool newer = G.version >= 12080; /* an else, and more than two bodies */
    if (!newer && p->type == CONDITION_SWITCH) return INVALID_VALUE;
    unsigned most = p->type == CONDITION_SWITCH ? 1024 : p->type == CONDITION_IF && newer ? 2 : 1;
    return p->size >= 1 && p->size <= most ? SUCCESS : INVALID_VALUE;
}

/* Makes the bodies, and tells the maker. */
void condition_node(node *n, CUDA_CONDITIONAL_NODE_PARAMS *p, const call *c) {
    condition_in(graph_root(n->graph), p->handle)->used = true;
    n->as.condition.handle = p->handle;
    n->as.condition.type = p->type;
    for (unsigned i = 0; i < p->size; i++) node_contain(n, graph_new(n->graph->ctx, c));
    p->phGraph_out = n->reported;
}
