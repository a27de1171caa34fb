/*
 * state.h: declarations shared by the files of the fake driver. fake.h describes the behaviour.
 *
 * Everything below is guarded by one lock, taken by call_begin and released by call_end (or by control_begin and
 * control_end in the control functions).
 *
 * Invariants: an operation in a queue holds a reference on every
 * block and stream that it names, so that a program's error never makes the fake fault.
 */
#ifndef FAKE_STATE_H
#define FAKE_STATE_H

#include "cuda_abi.h"
#include "fake.h"
#include "functions.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_DEVICES 8
#define MAX_COMPONENTS 512

#define FUNCTION_NUMBER(base, version, spelling) F_##spelling,
typedef enum function_number { DRIVER_FUNCTIONS(FUNCTION_NUMBER) FUNCTION_COUNT } function_number;
/* Sites that are no driver call. */
enum { F_HOST_READ = FUNCTION_COUNT, F_HOST_WRITE, F_CONTROL };

/* The call site of an event. */
typedef struct site {
    uint16_t function;
    uint16_t detail; /* index into the kernel names; 0 is none */
    uint32_t call;
    uint32_t stream; /* number of the stream; 0 is the host */
    uint32_t step;
    uint32_t thread;
} site;

typedef struct clock_vector {
    uint32_t time[MAX_COMPONENTS];
} clock_vector;

typedef struct moment {
    uint32_t component, time;
    site where;
} moment;

/* Bytes of an allocation with one and the same past: the last write, and the reads since. */
typedef struct segment {
    uint64_t from, to;
    bool written;
    moment write;
    uint32_t reads, capacity;
    moment few[2], *many; /* the reads: in `few`, or in `many` when it is not null */
} segment;

typedef struct history {
    uint64_t epoch; /* of another epoch: empty */
    uint32_t count, capacity, crowd;
    segment *segment; /* null: in `only` */
    segment only;
} history;

/* Who acts: a component at a time, and what it knows. */
typedef struct actor {
    uint32_t component;
    clock_vector *clock;
    site where;
} actor;

/* How a kernel is launched beside its shape. */
typedef struct manner {
    uint32_t cluster; /* blocks of one as the launch says, 0: it does not */
    bool programmatic;
} manner;

typedef struct context {
    CUcontext handle;
    int device;
    bool foreign;
    int lost;    /* the code that every call answers; 0 while well */
    bool ruined; /* was lost when it was reset, and does not recover */
    uint64_t retained;
    clock_vector retired;  /* of destroyed streams */
    struct stream *legacy; /* made when first used; a violation unless default streams are allowed */
    bool peer[2 * MAX_DEVICES];
} context;

/* From BLOCK_PINNED on it is host memory. */
typedef enum block_kind {
    BLOCK_DEVICE,
    BLOCK_GLOBAL,
    BLOCK_RESERVED,
    BLOCK_PHYSICAL,
    BLOCK_PINNED,
    BLOCK_REGISTERED
} block_kind;

typedef struct block {
    block_kind kind;
    bool live;
    uint32_t references; /* of queued operations */
    uint32_t number;
    uint64_t address; /* on the device, or on the host */
    size_t size;
    unsigned char *data;
    context *ctx;
    site made, freed;
    history history;         /* of a reserved range: empty, it is that of the physical memory behind it */
    struct mapping *mapping; /* of a reserved range: sorted, disjoint */
    size_t mappings, mapping_capacity;
    struct pool *pool; /* that it was allocated from; may be null */
} block;

/* Memory of cuMemCreate. It lives until it is released and mapped nowhere. */
typedef struct physical {
    CUmemGenericAllocationHandle handle;
    block base;
    int file;
    uint32_t mapped;
    bool released;
} physical;

/* A part of a reserved range with memory behind it. */
typedef struct mapping {
    size_t from, to;
    physical *memory;
    uint8_t access[MAX_DEVICES];
} mapping;

typedef struct pool {
    CUmemoryPool handle;
    int device;
    bool standard, destroyed;
    uint8_t access[MAX_DEVICES];
    int reuse[POOL_REUSE_LAST + 1];
    uint64_t limit, threshold, reserved, reserved_high, used, used_high, blocks;
    site made;
} pool;

/* A place in memory, held by a queued operation. Without a block it is pageable host memory. */
typedef struct location {
    block *block;
    size_t offset;
    unsigned char *raw;
    bool owned; /* raw is a snapshot, freed with the operation */
} location;

/* The request of a copy or a fill. */
typedef struct copy_request {
    uint64_t to, from;
    bool to_host, from_host, peer;
    size_t width, height, depth, to_pitch, from_pitch, to_slice, from_slice;
} copy_request;

typedef struct fill_request {
    uint64_t to;
    uint32_t value, element;
    size_t width, height, pitch; /* width in elements */
} fill_request;

typedef enum operation_kind {
    OPERATION_COPY,
    OPERATION_FILL,
    OPERATION_KERNEL,
    OPERATION_WAIT,
    OPERATION_RECORD,
    OPERATION_CALLBACK,
    OPERATION_CONDITION
} operation_kind;

typedef struct operation {
    struct operation *next;
    operation_kind kind;
    union {
        struct {
            location to, from;
            copy_request how;
        } copy;
        struct {
            location to;
            fill_request how;
        } fill;
        struct kernel_run *kernel;
        struct {
            struct stream *stream;
            uint64_t target;
        } wait;
        struct {
            CUevent event;
            uint64_t instance;
        } record;
        struct {
            CUhostFn function;
            void *argument;
            clock_vector *clock;
        } callback;
        struct condition_run *condition;
    } as;
} operation;

typedef struct operation_list {
    operation *head, *tail;
} operation_list;

typedef struct stream {
    CUstream handle;
    uint32_t number, component, references;
    context *ctx;
    int flags, priority;
    bool busy; /* its host function is running */
    bool destroyed;
    bool is_default; /* the legacy stream, or the default stream of a thread */
    uint32_t thread; /* 1 more than the thread's number; 0: the legacy stream */
    operation *head, *tail;
    uint64_t enqueued, completed;
    size_t pending_index, index; /* in the lists of pending and of all streams */
    struct capture *capture; /* that it belongs to; null: none */
    uint32_t *tail_node;     /* what its next node depends on */
    size_t tail_nodes, tail_capacity;
    site made;
    clock_vector clock;
} stream;

typedef struct event {
    CUevent handle;
    context *ctx;
    unsigned flags;
    stream *stream; /* of the last record; null before the first */
    uint64_t target, instance, epoch, nanoseconds;
    uint64_t captured; /* the capture of its last record; 0: none */
    uint32_t *node;
    size_t nodes;
    site made;
    clock_vector clock;
} event;

typedef struct parameter {
    uint32_t offset, size;
    uint8_t kind; /* FAKE_SCALAR ... FAKE_UPDATE */
    bool bytes;   /* the scalar that bounds the addresses */
    bool map;     /* a tensor map */
} parameter;

typedef struct function {
    CUfunction handle;
    struct module *module;
    uint16_t name; /* index into the kernel names */
    bool faults, sets_condition;
    uint32_t parameters;
    parameter *parameter;
    uint32_t parameter_bytes;
    uint32_t static_shared;
    int max_dynamic_shared, carveout, non_portable_cluster;
} function;

typedef struct variable {
    char *name;
    size_t size;
    block *block;
} variable;

/* The contents of an image. */
typedef struct image {
    int isa, target;   /* 80 for 8.0, 90 for sm_90; 0 when unknown */
    bool target_exact; /* sm_90a: for this architecture alone */
    size_t functions, variables;
    function *function;
    variable *variable;
    char *ptx; /* a copy of what it was read from; null for foreign machine code */
    char error[256];
} image;

typedef struct module {
    CUmodule handle;
    context *ctx;
    image image;
    history history;
    site made;
} module;

typedef struct link_state {
    CUlinkState handle;
    context *ctx;
    char *ptx;
    size_t length;
    unsigned char *cubin;
    size_t cubin_size;
    site made;
} link_state;

/* Handles: kind, generation and slot in one number that is no address. */
typedef enum handle_kind {
    KIND_CONTEXT = 1,
    KIND_STREAM,
    KIND_EVENT,
    KIND_MODULE,
    KIND_FUNCTION,
    KIND_LINK,
    KIND_PHYSICAL,
    KIND_POOL,
    KIND_GRAPH,
    KIND_NODE,
    KIND_INSTANCE,
    KIND_CONDITION,
    KIND_END
} handle_kind;

typedef struct handle_table {
    void **item;
    uint32_t *generation;
    uint32_t *free_slot;
    uint32_t count, capacity, free_count;
} handle_table;

typedef struct globals {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* settings */
    int version, devices, init_code, capability;
    int hidden_attribute;
    int multiprocessors; /* 0: 132 */
    bool peer_possible, strict, threads_ordered, reset_recovers, faults_spread, default_streams;
    uint64_t memory, granularity, random;
    const char *fault_kernel; /* the first letters of a name, or null */
    uint64_t fault_after;     /* runs of such kernels until one faults */
    fake_runner runner; /* null: nobody */
    /* records */
    bool initialised;
    uint64_t epoch;                    /* counts resets */
    uint32_t numbers;                  /* of streams and blocks */
    uint64_t now;                      /* virtual nanoseconds */
    context contexts[2 * MAX_DEVICES]; /* primary ones, then foreign ones */
    handle_table tables[KIND_END];
    clock_vector host;
    uint32_t components;
    stream **streams, **pending;
    size_t stream_count, stream_capacity, pending_count, pending_capacity;
    uint64_t queued;
    fake_counts counts[MAX_DEVICES];
} globals;

extern globals G;

/* One driver call under way. */
typedef struct call {
    function_number function;
    uint64_t number; /* 0: not logged */
    int result;      /* why call_begin refused */
    int override;    /* what a release function answers instead of success */
    context *ctx;    /* the current one; may be null */
    site where;
} call;

enum {
    CALL_CONTEXT = 1, /* needs a current context */
    CALL_EARLY = 2,   /* may come before cuInit */
    CALL_RELEASE = 4, /* does its work even when it answers an error */
    CALL_QUIET = 8,   /* neither numbered nor logged */
    CALL_UNSAFE = 16, /* may be forbidden while a stream captures */
};

/* entry.c: of this build */
extern const bool build_is_stub;
extern const int build_version;

/* state.c */
bool call_begin(call *c, function_number f, unsigned flags);
int call_end(call *c, int result);
void control_begin(void);
void control_end(void);
uint64_t random_next(void);
uint64_t handle_new(handle_kind kind, void *item);
void *handle_get(handle_kind kind, uint64_t handle);
void handle_drop(handle_kind kind, uint64_t handle);
context *current_context(void);
context *context_of(CUcontext handle);
void *grow(void *memory, size_t *capacity, size_t wanted, size_t size);
void *zeroed(size_t size);
/* Around a wait of a stream and the launch of a graph into one, outside of the lock; the place is for the end. */
int ordering_begin(CUstream stream, bool is_launch);
void ordering_end(int place);
void violation(const call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void violation_at(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *site_text(const site *where, char text[160]);
const char *function_name(unsigned f);
uint16_t intern(const char *name, size_t length);
const char *interned(uint16_t index);
int find_function(const char *name, size_t from);
uint32_t thread_number(void);
uint32_t thread_step(void);
void reset_records(void);
void refuse_foreign(const call *c);
void text_out(const char *from, size_t length, char *text, size_t capacity);
extern _Thread_local CUcontext thread_context;
extern _Thread_local CUcontext thread_foreign;
extern _Thread_local bool thread_foreign_set;
extern _Thread_local const clock_vector *thread_callback; /* the clock of the host function that runs here */

/* clocks.c */
void clock_join(clock_vector *into, const clock_vector *from);
void clock_clear(clock_vector *clock);
uint32_t component_new(void);
void component_retire(uint32_t component);
actor host_actor(unsigned f, const call *c);
actor stream_actor(stream *s, const call *c);
void host_joins(const clock_vector *clock);
void host_ticks(void);
bool host_knows(uint32_t component, uint32_t time);
void clocks_reset(void);
void pageable_access(const void *pointer, size_t bytes, bool write, const actor *who);
void pageable_host(const void *pointer, size_t bytes, bool write);
uint64_t pageable_pending(void);

/* histories.c */
void history_read(history *h, uint64_t from, uint64_t to, const actor *who, const block *what);
void history_write(history *h, uint64_t from, uint64_t to, const actor *who, const block *what);
void history_free(history *h, uint64_t from, uint64_t to, const actor *who, const block *what);
void history_drop(history *h);

/* memory.c */
block *block_new(block_kind kind, context *ctx, size_t size, void *registered, const call *c);
void block_free(block *b, const call *c, const actor *who);
void block_count(const block *b, int sign);
bool block_align(block *b, uint64_t alignment);
bool memory_available(int device, size_t size);
void block_release(block *b);
block *next_reserved(const block *after);
block *block_at(CUdeviceptr address, size_t *offset);
block *host_block_at(const void *pointer, size_t *offset);
bool locate(CUdeviceptr address, size_t bytes, const call *c, location *out);
bool locate_host(const void *pointer, size_t bytes, const call *c, location *out);
void location_hold(location *place);
void location_drop(location *place);
unsigned char *location_data(const location *place);
bool location_reachable(const location *place, size_t bytes, bool write, const stream *s, bool peer);
context *location_context(const location *place);
size_t location_rest(const location *place);
void location_use(const location *place, size_t bytes, bool write, const actor *who);
const char *block_text(const block *b, char text[96]);
void describe_blocks(FILE *out);
void memory_clear(const context *only);

/* contexts.c */
void context_fault(context *ctx);

/* device.c */
bool device_exists(CUdevice d);

/* virtual.c */
bool mapped(const block *b, size_t from, size_t to);
bool mapping_reachable(const block *b, size_t from, size_t to, bool write, int device, bool peer);
size_t mapped_end(const block *b, size_t from);
void mapping_use(const block *b, size_t from, size_t to, bool write, const actor *who);
void reservation_bury(block *b);
void describe_virtual(FILE *out);
void virtual_reset_all(void);

/* pools.c */
void pool_take_back(block *b);
void pools_give_up_cache(int device);
uint64_t pools_cached(int device);
void describe_pools(FILE *out);
void pools_reset_all(void);

/* queue.c */
stream *stream_of(CUstream handle, const call *c, int *result);
bool stream_bound(stream *s, const call *c);
operation *operation_new(operation_kind kind);
void operation_perform(operation *o, context *ctx);
void operation_discard(operation *o);
operation_list *operations_gather(operation_list *into);
void enqueue(stream *s, operation *o);
void force(stream *s, uint64_t target);
void progress(unsigned operations);
void drain(void);
bool polled(stream *s, uint64_t target);
void stream_unref(stream *s);
void host_queue(CUhostFn function, void *argument, stream *s, const actor *who);
void streams_reset(void);
void describe_streams(FILE *out);
void streams_clear(const context *only);

/* events.c */
void wait_queue(stream *other, uint64_t target, stream *s);
void describe_events(FILE *out);
void events_clear(const context *only);

/* copies.c */
bool copy_places(const copy_request *r, const call *c, location *to, location *from);
void copy_queue(const copy_request *r, location to, location from, stream *s, const actor *who, const call *c);
bool fill_place(const fill_request *r, const call *c, location *to);
void fill_queue(const fill_request *r, location to, stream *s, const actor *who, const call *c);
void run_copy(operation *o);
void run_fill(operation *o);
CUresult copy_call(call *c, CUstream stream_handle, const copy_request *r);
bool copy_sides(copy_request *r, const CUDA_MEMCPY3D *p);
size_t copy_to_span(const copy_request *r);
size_t copy_from_span(const copy_request *r);

/* images.c, elf.c */
int image_read(const void *data, image *out);
int image_read_ptx(const char *text, image *out);
int image_read_elf(const unsigned char *data, image *out);
unsigned char *elf_write(const image *from, size_t *size);
void image_drop(image *i);
function *image_function(image *i, const char *name, size_t length);
int driver_isa(void);

/* modules.c */
void describe_modules(FILE *out);
void modules_reset(void);
void modules_clear(const context *only);

/* launch.c */
void kernel_queue(function *f, const unsigned char *values, const CUlaunchConfig *l, manner how, stream *s,
                  const actor *who, const call *c);
manner manner_of(const CUlaunchConfig *l);
unsigned char *gather(const function *f, void **arguments, void **extra);
int check_shape(const function *f, const CUlaunchConfig *l, bool cooperative);
void run_kernel(struct kernel_run *run, context *ctx);
void kernel_run_drop(struct kernel_run *run);

#include "graphs.h"

#endif
