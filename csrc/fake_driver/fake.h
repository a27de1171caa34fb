/*
 * fake.h: a CUDA driver made of host memory, for proving that a program uses the real one correctly.
 *
 * The library built from this folder stands in for libcuda.so.1. It computes no real results; it keeps accounts. Every
 * handle and byte is counted, every call is logged, any call can be made to fail, and every use of memory is checked
 * against the ordering that the caller has really established, so that a race is found whether or not it would have
 * shown.
 *
 * Behaviour
 * ---------
 *
 * Handles and addresses. No handle is a pointer and no device address is a host address: both are non-canonical
 * 64-bit values that fault when followed. They carry a generation, so that a stale one is known for what it is. A
 * device access must lie wholly inside one live allocation. Fresh device memory is filled with FAKE_POISON (large
 * blocks: the first and last 64 KiB), freed memory with FAKE_FREED.
 *
 * Contexts. Each device has a primary context and one *foreign* context, which stands for whatever else in the process
 * uses CUDA. The current context is per thread. A call that needs one answers 201 when there is none. Calls that put
 * work on a stream, launch or unload need the stream's (module's) own context to be current: a launch or an unload
 * answers 201 or 400 when not, a copy, fill, wait or record is done but recorded as a violation. Creating anything
 * while a foreign context is current is a violation. A primary context that is reset, or released for the last time, is
 * destroyed with all its streams, events, modules, graphs and memory, queued work undone, and none of that counts any
 * more; the device's next retain gives another handle, and the old one, where it is still current, answers 709. Each
 * retain still needs its release. Reserved addresses, physical memory and pools stay. A context that was
 * lost is well again after that, or ruined: its next retain answers the code that it was lost with
 * (fake_set_reset_recovers).
 *
 * Deferred work. Copies, fills, kernels, event records, waits and host functions are queued on their stream and take
 * effect only when they are forced: by cuStreamSynchronize, cuEventSynchronize or cuCtxSynchronize, and, unless
 * strict, at random at any driver call (a queued stream makes progress, always in stream order and never past an
 * event that it waits for). cuStreamQuery and cuEventQuery answer 600 while there is work; not strict, each query may
 * make some progress, so that polling ends; strict, polling alone never ends. A pageable source of cuMemcpyHtoDAsync
 * is read at the call or when the copy runs (seeded); a pinned one always when it runs. A host function runs on a
 * thread of the fake's own; a driver call made from it answers 800 and is a violation. It runs when its stream is
 * forced, or starts when its stream is queried.
 *
 * Clocks. Each stream is a component of a vector clock, and so is the host (all host threads together, or each on its
 * own: fake_set_host_threads_ordered). An event carries the clock of its record. Each allocation (device block,
 * pinned block, registered range, module) remembers, for each byte, its last write and the reads since. A use that is
 * not ordered after the last write, a write or a free that is not ordered after all of them, is a violation naming both
 * call sites; uses of disjoint parts have nothing to do with each other. A copy or fill uses the bytes from its first
 * to its last (the gaps between the rows of a pitched one too), a kernel as many as a `_bytes_` parameter says,
 * otherwise all from the address to the end of the block; a free concerns the whole block. Ordering comes from stream
 * order, from cuStreamWaitEvent, and, for the host, from cuStreamSynchronize, cuEventSynchronize, cuCtxSynchronize and
 * queries that answered 0. The orders that the real driver adds by accident (cuMemFree, cuModuleUnload and cuMemFreeHost tend to
 * wait; pageable copies tend to be synchronous) do not exist here. Violations never change what a call answers.
 * Pageable host memory has no owner whose free could be checked: a copy that the host has not waited for is counted by
 * fake_pageable_pending, which must be 0 whenever a synchronous copy has returned to the caller.
 *
 * Virtual memory. A reserved range has no memory until some is mapped in it, and none may be used by a device that
 * cuMemSetAccess has not named: both are violations, and so is freeing a range in which something is mapped, unmapping
 * what was not mapped so, and releasing twice. Histories belong to the physical memory: mapped twice it is the same
 * memory, unmapped it must have no unordered use. It counts against the device until it is released and mapped nowhere.
 *
 * Pools. An allocation in the order of a stream counts as a write of the whole block by that stream, a free must come
 * after all uses in the order of its stream; cuMemFree of such a block is one of the host. No address is used again. A
 * pool keeps numbers as the real one: used, reserved up to the release threshold, and the high marks of both.
 *
 * Captures. A capturing stream does nothing; copies, fills, kernels and host functions become nodes of a graph. A
 * stream joins by waiting for an event recorded in the capture, and what it has captured must be joined to the first
 * one again before the end (904); a stream that only waited need not be. A forbidden call spoils the
 * capture, which answers 901 from then on and by a null graph at the end: waiting for or asking about a capturing
 * stream or its context (900, whatever the mode and the thread), a captured event (907), a wait for an event from
 * outside (905) or of another capture (902), an end in another stream (903). An end on another thread is 908 and a
 * second beginning 401; both spoil nothing. Calls that may have to wait for everything (allocating and freeing device
 * and host memory, registering and unregistering, unloading, waiting for and asking about other streams and events,
 * allocating in the order of another stream) answer 900 and spoil it, as the modes of the capture and of the thread
 * have it; virtual memory, loading, creating streams and events, and work on other streams are free. An event of a
 * capture that is over answers 1. Captured pageable memory is a violation, and left alone by launches. A capture may go
 * into a graph that is there already; it then neither makes nor counts one, and leaves there what it has captured even
 * when it is spoiled. A captured launch of an instance becomes a child graph, which holds what the instance does at
 * that time. Not modelled: an allocation or free of a pool in the capturing stream, external waits, graphs over several
 * devices (801), batches (900).
 *
 * Graphs. A launch queues the work of the nodes on the stream, each after what it depends on. All that they name is
 * looked up at the launch, so that memory or a module that is gone is a violation there (the node is then left out),
 * and counts as used by the stream at the launch. Two nodes in no order that use the same bytes, one of them writing,
 * are a violation of the first launch and of the first after each change; a node with a graph inside uses what is used
 * in there. A launch into a stream while another thread makes that stream wait is a violation: driver 580 can lose such a
 * wait. A launch comes after the last one of the same instance, on whatever stream. An update by a graph of another
 * shape or other kinds of nodes answers 910 and changes nothing; it goes by the order of the nodes in both graphs'
 * lists. Nodes that are added without a capture are kernels, child graphs, conditional and empty ones (others: 801). A
 * graph that is inside a node is destroyed with it and cannot be instantiated; only graphs by themselves count.
 *
 * Conditional nodes. A condition belongs to the graph that it was made for, whatever its depth, and to one node there.
 * A kernel whose name begins with `set_condition` sets it as it runs: its first 64-bit number names the condition, its
 * `_read_` address holds the 32-bit value (four bytes are read). Run elsewhere than in a launch of that graph it is a
 * violation, as is a node whose condition has no default and is not set, and a `while` of more than 10000 iterations. The
 * body of a conditional node is one operation of the queue and is used at the launch, whether it runs or not. Host
 * functions in there, copies of such a graph and captured launches of it answer 801. An `if` with two bodies and `switch`
 * exist from 12.8 on.
 *
 * Batches of copies. A batch comes in its stream's order, its copies in none: two of them that use the same bytes, one
 * of them writing, are a violation, and so is device memory that is not read in the order of the stream. A host source
 * that is to be read during the call is read then, and only then.
 *
 * Kernels. Of PTX the fake reads .version, .target, .entry and its .param list, and .global/.const variables. A
 * parameter whose name, without the entry's own name as a prefix, contains `_read_` is an address that the
 * kernel reads, `_write_` writes, `_update_` both; the rest are scalars, and a scalar with `_bytes_` in its name gives
 * the number of bytes behind each address (otherwise: to the end of the block). A 128-byte parameter with such a name
 * is a tensor map. The kernel's effect is fake_kernel_effect, for anyone to repeat, or what a runner makes of it
 * (fake_set_runner). An entry whose name begins with
 * `fault_` loses its context when it runs: that synchronisation and every later call on that context answer 700, other
 * contexts go on, or are lost with it (fake_set_faults_spread). A cubin must be a 64-bit ELF for machine 190 and has an
 * entry for each .text.NAME section, with the parameters of .nv.info.NAME; one made by fake_make_cubin also remembers
 * its PTX, so that its kernels have effects. A fatbin is searched for PTX text, whatever its flags say, then for a
 * cubin.
 *
 * Failures. fake_fail makes the n-th next call of a function answer a code without doing anything, except for
 * functions that release something (free, destroy, unload, unregister): they release and then answer the code, as the
 * real ones do when they report an earlier error. Released twice is therefore always a violation.
 *
 * Versions. The reported version gates cuGetProcAddress: asking for a version above it answers 1, a function newer
 * than the version asked for is not found. Which symbols are exported is decided when the library is built.
 *
 * Environment, read when the library is loaded: FAKE_VERSION (12040), FAKE_DEVICES (2), FAKE_INIT (what cuInit
 * answers), FAKE_STRICT and FAKE_DEFAULT_STREAMS (0 or 1), FAKE_SEED, FAKE_MEMORY (bytes of each device), FAKE_CAPABILITY
 * (90 for 9.0), FAKE_RUNNER (a library whose emulated_run is the runner), FAKE_FAULT (the first letters of kernels, of whose
 * runs the FAKE_FAULT_AFTER-th (1) loses its context, as one named `fault_` does).
 *
 * Threads. Everything here may be called from any thread; one lock guards it all, and is not held while a host
 * function runs.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stddef.h>
#include <stdint.h>

#define FAKE_API __attribute__((visibility("default")))
#define FAKE_POISON 0xCD
#define FAKE_FREED 0xDD

/* ---- starting over ---- */

/* Gives up captures under way, finishes all queued work, then forgets violations, log, numbering, armed failures, clocks
 * and losses of contexts; settings stay. Live handles stay valid, their histories are emptied. Returns the number of live
 * handles: blocks, pinned and registered ranges, streams, events, modules, link states, reserved ranges, physical
 * memory, pools, graphs and their instances. */
FAKE_API uint64_t fake_reset(void);
/* fake_reset, then destroys every live handle, disables peer access and un-initialises. Not for use under a
 * program that keeps handles. */
FAKE_API void fake_reset_all(void);

/* ---- settings ---- */

FAKE_API void fake_set_version(int version);
FAKE_API void fake_set_devices(int count);         /* 0 to 8 */
FAKE_API void fake_set_init(int code);             /* what cuInit answers */
FAKE_API void fake_set_memory(uint64_t bytes);     /* capacity of each device */
FAKE_API void fake_set_capability(int capability); /* 90 for 9.0, all devices */
FAKE_API void fake_set_multiprocessors(int count); /* of each device; default 132 */
FAKE_API void fake_hide_attribute(int attribute);  /* of a device: it answers 0, for all devices; default 0, none */
FAKE_API void fake_set_peer_access(int possible);  /* cuDeviceCanAccessPeer between different devices; default 1 */
FAKE_API void fake_set_strict(int strict);         /* 1: nothing runs before it is forced; default 0 */
FAKE_API void fake_set_default_streams(int allowed); /* the legacy and the per-thread streams; default 0, a violation */
FAKE_API void fake_set_seed(uint64_t seed);
FAKE_API void fake_set_reset_recovers(int recovers); /* a lost context, by a reset of it; default 1 */
FAKE_API void fake_set_faults_spread(int spread);    /* a kernel's fault loses all contexts; default 0 */
FAKE_API void fake_set_host_threads_ordered(int ordered); /* default 1; set it right after a reset */

FAKE_API void fake_set_granularity(uint64_t bytes); /* of cuMemCreate: a power of two; default 2 MiB */

/* ---- failures ---- */

/* The nth call (1 is the next one) of `function` (exported or base name, or "*" for any) answers `code`, once; nth 0:
 * every call until cleared. Returns 0 when there is no such function. cuGetProcAddress fails only when named. */
FAKE_API int fake_fail(const char *function, uint64_t nth, int code);
/* The call with this number since the reset (fake_calls counts from 1) answers `code`. */
FAKE_API void fake_fail_call(uint64_t number, int code);
FAKE_API void fake_clear_failures(void);
FAKE_API uint64_t fake_failures_fired(void); /* since the reset */
/* The primary context of the device is lost from now on, as by a fault; 0 repairs it. */
FAKE_API void fake_lose_context(int device, int code);

/* ---- the log: every driver call since the reset, except cuGetProcAddress, which is only counted ---- */

typedef struct fake_call {
    const char *function; /* exported name */
    uint64_t number;      /* from 1 */
    uint32_t thread;
    uint32_t step; /* see fake_step */
    int32_t result;
    uint32_t reserved;
} fake_call;

FAKE_API uint64_t fake_calls(void);
FAKE_API int fake_log(uint64_t index, fake_call *out);   /* index from 0; returns 0 past the end */
FAKE_API uint64_t fake_call_count(const char *function); /* since the reset; exported or base name */
FAKE_API size_t fake_function_count(void);
/* Exported names, also of those that this build does not export. */
FAKE_API const char *fake_function_name(size_t index);
/* Marks this thread's following calls as belonging to step n of the test's own program; shown in violations. */
FAKE_API void fake_step(uint32_t n);

/* ---- violations ---- */

FAKE_API uint64_t fake_violations(void);
/* Copies the text (at most capacity - 1 bytes and a zero); returns its whole length, 0 past the end. */
FAKE_API size_t fake_violation(uint64_t index, char *text, size_t capacity);

/* ---- what is alive ---- */

typedef struct fake_counts {
    uint64_t blocks, bytes;        /* cuMemAlloc, cuMemAllocAsync, cuMemAllocFromPoolAsync */
    uint64_t pinned, pinned_bytes; /* cuMemHostAlloc */
    uint64_t registered;           /* cuMemHostRegister */
    uint64_t streams, events, modules, links;
    uint64_t peers;    /* directions of peer access that are enabled */
    uint64_t retained; /* retains of primary contexts */
    uint64_t pending;  /* queued operations that have not run */
    uint64_t reservations, reserved_bytes; /* cuMemAddressReserve */
    uint64_t physical, physical_bytes;     /* cuMemCreate; until released and unmapped */
    uint64_t mappings;                     /* cuMemMap */
    uint64_t pools;                        /* cuMemPoolCreate */
    uint64_t captures, graphs, instances;  /* captures under way, captured graphs, instantiated ones */
} fake_counts;

/* Of one device (its primary and its foreign context), or of all: -1. */
FAKE_API void fake_live(int device, fake_counts *out);
/* One line for each live handle with the call that made it; returns the whole length, as fake_violation. */
FAKE_API size_t fake_describe_live(char *text, size_t capacity);

/* ---- time ---- */

/* Runs up to this many queued operations, chosen at random among those that can run; never a host function. */
FAKE_API void fake_run(uint64_t operations);
/* Runs everything, and tells the host's clock nothing. */
FAKE_API void fake_drain(void);

/* ---- memory ---- */

/* The test is about to read or write this host memory. A part of a pinned or registered range is checked against its
 * history, other memory against the copies still under way. */
FAKE_API void fake_host_read(const void *pointer, size_t bytes);
FAKE_API void fake_host_write(const void *pointer, size_t bytes);
/* Asynchronous copies from or to pageable memory that the host has not waited for. */
FAKE_API uint64_t fake_pageable_pending(void);
/* Reads device memory as it is now, without forcing or checking anything; returns 0 when the range is not live. */
FAKE_API int fake_device_read(uint64_t address, void *out, size_t bytes);

/* ---- host threads ---- */

/* Order between host threads that the test itself has made (join, lock, channel): what a thread did before its
 * release comes before what another does after an acquire of the same token. Inside a host function, release speaks
 * for the stream. Needed only when threads are not ordered. */
FAKE_API void fake_thread_release(uint64_t token);
FAKE_API void fake_thread_acquire(uint64_t token);

/* ---- a foreigner in the process ---- */

FAKE_API uint64_t fake_primary_context(int device);
FAKE_API uint64_t fake_foreign_context(int device);
/* Sets this thread's context as other code would, without a logged call. 0 is no context. */
FAKE_API void fake_foreign_set(uint64_t context);
FAKE_API uint64_t fake_foreign_get(void);
/* 1 when the context set by this thread's last fake_foreign_set is current again (or none was set on this thread). */
FAKE_API int fake_check_foreign(void);

/* ---- kernels and images ---- */

enum { FAKE_SCALAR = 0, FAKE_READ = 1, FAKE_WRITE = 2, FAKE_UPDATE = 3 };

typedef struct fake_parameter {
    uint64_t kind; /* FAKE_SCALAR: data is the value; else the memory behind the address */
    void *data;
    uint64_t bytes;
} fake_parameter;

/* Applies the effect of a kernel of this name with these parameters: each FAKE_WRITE and FAKE_UPDATE memory is overwritten by a
 * mix of the kernel's name, all scalars, the former contents of all FAKE_READ and FAKE_UPDATE memory, the parameter's
 * index and the position in it. */
FAKE_API void fake_kernel_effect(const char *kernel, const fake_parameter *parameters, size_t count);

/* Memory of the device on the host. */
typedef struct fake_memory {
    unsigned char *data;
    uint64_t bytes;
} fake_memory;

/* A launch as whoever runs it gets it. The parameters lie as the kernel declares them; every 64-bit word of them that is
 * an address of live device memory, in a struct or a tensor map too, has become that memory's address on the host. */
typedef struct fake_launch {
    const char *kernel;
    uint32_t grid[3], block[3];
    uint32_t cluster; /* blocks of a cluster as the launch says, 0: it does not */
    uint32_t shared;  /* dynamic shared memory in bytes */
    uint32_t programmatic; /* 1: it may begin before the kernel ahead of it has ended, 0: it comes behind all of it */
    const unsigned char *values;
    const fake_memory *memory; /* of those addresses, and what is in the same allocations */
    size_t memories;
} fake_launch;

/* Called when a kernel runs, so in the order of its stream, under the lock: it calls nothing here. Returns 0 for a kernel
 * that it does not know, which then has the effect above. A tensor map is 16 words: the address, what it is of (the
 * number of dimensions, and from bits 8, 16 and 24 on the element type, interleave and swizzle), 5 sizes, the sizes of the
 * box in 12 bits each, the 4 strides in bytes, and the steps in 4 bits each. */
typedef int (*fake_runner)(const fake_launch *launch);
FAKE_API void fake_set_runner(fake_runner runner); /* null: nobody, the default */

/* Machine code in form only, for the device's capability: an ELF with the entries and parameters of the PTX. Returns
 * the size, 0 when the PTX is not understood; writes only when capacity suffices. */
FAKE_API size_t fake_make_cubin(const char *ptx, void *out, size_t capacity);
/* A fatbin that holds the PTX, not compressed. */
FAKE_API size_t fake_make_fatbin(const char *ptx, void *out, size_t capacity);

#endif
