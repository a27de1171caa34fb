/*
 * graphs.h: the part of state.h that captures, graphs and their instances share.
 */
#ifndef FAKE_GRAPHS_H
#define FAKE_GRAPHS_H

#include "state.h"

/* As the driver numbers them. */
typedef enum node_kind {
    NODE_KERNEL,
    NODE_COPY,
    NODE_FILL,
    NODE_HOST,
    NODE_CHILD,
    NODE_EMPTY,
    NODE_CONDITION = 13
} node_kind;

typedef struct node {
    CUgraphNode handle;
    struct graph *graph;
    node_kind kind;
    uint16_t name;
    uint32_t index, *after; /* nodes before it in the graph's list */
    size_t afters;
    uint32_t blocks[2]; /* the numbers of the blocks that a copy or fill names; 0: pageable */
    bool disabled;
    struct graph **body; /* of a child graph, or of a conditional node */
    CUgraph *reported;       /* their handles, for a conditional node's maker */
    unsigned bodies;
    union {
        copy_request copy;
        fill_request fill;
        struct {
            CUfunction function;
            unsigned char *values;
            size_t bytes;
            void **pointer; /* into the values, one a parameter */
            uint32_t pointers;
            CUlaunchConfig shape;
            manner how;
            bool cooperative;
        } kernel;
        struct {
            CUhostFn function;
            void *argument;
        } host;
        struct {
            CUgraphConditionalHandle handle;
            int type;
        } condition;
    } as;
} node;

typedef struct condition {
    CUgraphConditionalHandle handle;
    uint32_t value; /* at the start of a launch, if it has one there */
    bool assigned, used;
} condition;

typedef struct graph {
    CUgraph handle;
    context *ctx;
    node **node; /* each after all that it depends on */
    size_t nodes, capacity;
    node *owner;          /* whose body it is; null: the program's own */
    bool shadow;          /* of an instance: carries the handles of the graph that it was made from */
    condition *condition; /* of all the graphs inside this one, which is in none */
    size_t conditions, condition_capacity;
    site made;
} graph;

/* The values of the conditions of one launch. */
typedef struct condition_values {
    uint32_t references;
    size_t count;
    struct {
        CUgraphConditionalHandle handle;
        uint32_t value;
        bool set;
    } of[];
} condition_values;

typedef struct capture {
    struct capture *next;
    uint64_t id;
    int mode;
    uint32_t thread;
    bool invalid;
    bool borrowed; /* the graph was there before */
    stream *origin;
    graph *graph;
} capture;

/* One use of memory by a node, noted at a launch. */
typedef struct node_use {
    const block *block;
    uint64_t from, to;
    uint32_t node;
    bool write;
} node_use;

/* capture.c */
extern capture *captures;
bool capture_forbids(void);
capture *capture_find(uint64_t id);
int capture_refuse(capture *k, int code);
int capture_copy(stream *s, const copy_request *r, const location *to, const location *from, const call *c);
int capture_fill(stream *s, const fill_request *r, const location *to, const call *c);
int capture_kernel(stream *s, const function *f, const unsigned char *values, const CUlaunchConfig *l, bool cooperative);
int capture_child(stream *s, const graph *content, const call *c);
int capture_host(stream *s, CUhostFn function, void *argument, const call *c);
int capture_wait(stream *s, const event *e, unsigned flags);
void capture_lose(stream *s);
void captures_clear(const context *only);
void captures_leave(const graph *g);

/* graphs.c */
graph *graph_new(context *ctx, const call *c);
graph *graph_copy(const graph *from, bool shadow, const call *c);
graph *graph_of(CUgraph handle, const call *c);
graph *graph_root(graph *g);
bool graph_conditional(const graph *g);
bool graph_under_construction(graph *g);
node *node_of(CUgraphNode handle, const call *c);
bool nodes_of(const graph *g, const CUgraphNode *from, size_t count, uint32_t **out, const call *c);
bool edge_programmatic(const node *n, size_t edge);
bool edges_plain(const CUgraphEdgeData *data, size_t count);
void node_kernel(node *n, const function *f, const unsigned char *values, const CUlaunchConfig *l, bool cooperative);
void node_take(node *n, const node *from);
void node_contain(node *n, graph *body);
CUresult kernel_params(const CUDA_KERNEL_NODE_PARAMS *p, context *ctx, const call *c, function **f, CUlaunchConfig *l,
                       unsigned char **values);
node *graph_add(graph *g, node_kind kind, const uint32_t *after, size_t afters, uint16_t name);
void graph_publish(graph *g);
void graph_drop(graph *g);
bool graph_precedes(const graph *g, uint32_t first, const uint32_t *ends, size_t count);
void describe_graphs(FILE *out);
void graphs_clear(const context *only);

/* instances.c */
extern condition_values *launch_values;
void record_use(const block *b, uint64_t from, uint64_t to, bool write);
void describe_instances(FILE *out);
void instances_clear(const context *only);

/* conditions.c */
condition_values *values_new(const graph *g);
void values_drop(condition_values *v);
int values_find(const condition_values *v, CUgraphConditionalHandle handle);
struct condition_run *condition_run_new(const node *n, condition_values *values, const call *c);
operation_list *condition_run_body(struct condition_run *run, unsigned index);
void condition_perform(struct condition_run *run, context *ctx);
void condition_run_drop(struct condition_run *run);
CUresult condition_params(CUDA_CONDITIONAL_NODE_PARAMS *p, graph *g, const call *c);
void condition_node(node *n, CUDA_CONDITIONAL_NODE_PARAMS *p, const call *c);

#endif
