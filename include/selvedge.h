/* selvedge: a GPU runtime and tensor library. Generated from src/capi by scripts/header; do not edit.
 *
 * Every function returns a status (SV_OK or SV_ERROR_...) unless it says otherwise, and leaves a message for sv_last_error()
 * if it fails. A function that fails writes no result. Handles are 64-bit numbers; sv_retain() adds a reference,
 * sv_release() drops one. Every function may be called from any thread unless it says otherwise. Structs begin with their
 * size in bytes, which the caller sets. docs/c-abi.md is the manual. */

#ifndef SELVEDGE_H
#define SELVEDGE_H

#include <stddef.h>
#include <stdint.h>

#define SV_VERSION_MAJOR 0
#define SV_VERSION_MINOR 1
#define SV_VERSION_PATCH 0

/**
 * The CPU, where a function takes a CUDA device or the CPU.
 */
#define SV_CPU (-1)

/**
 * No messages, for `sv_set_log_callback`.
 */
#define SV_LOG_OFF 0

/**
 * Errors that no call could return, such as those of a release.
 */
#define SV_LOG_ERROR 1

/**
 * Settings that are ignored, and the like.
 */
#define SV_LOG_WARN 2

/**
 * Rare events of interest.
 */
#define SV_LOG_INFO 3

/**
 * Decisions of the library.
 */
#define SV_LOG_DEBUG 4

/**
 * Everything.
 */
#define SV_LOG_TRACE 5

/**
 * An integer, or a `bool` of one byte: `bytes` bytes at `value`.
 */
#define SV_ARGUMENT_INTEGER 1

/**
 * A floating-point number: `bytes` bytes at `value`.
 */
#define SV_ARGUMENT_FLOAT 2

/**
 * A struct or array by value: `bytes` bytes at `value`.
 */
#define SV_ARGUMENT_BYTES 3

/**
 * A device address that the library does not track: 8 bytes at `value`.
 */
#define SV_ARGUMENT_ADDRESS 4

/**
 * A buffer that the kernel reads, from the byte at `offset` on.
 */
#define SV_ARGUMENT_READ 5

/**
 * A buffer that the kernel writes, or reads and writes, from the byte at `offset` on.
 */
#define SV_ARGUMENT_WRITE 6

/**
 * Launches all blocks at once, so that they may wait for each other.
 */
#define SV_LAUNCH_COOPERATIVE 1

/**
 * Lets the kernel start before the preceding kernel of the stream has ended. Every block then waits for that end by
 * `griddepcontrol.wait` before it touches memory.
 */
#define SV_LAUNCH_PROGRAMMATIC_DEPENDENT 2

/**
 * Uses `priority` in place of the stream's.
 */
#define SV_LAUNCH_PRIORITY 4

/**
 * The version of the ABI. It moves when a function, struct or code changes its meaning.
 */
#define SV_ABI_VERSION 1

/**
 * The image does not say what the parameter is.
 */
#define SV_PARAMETER_UNKNOWN 0

/**
 * An integer; one of 8 bytes may hold an address.
 */
#define SV_PARAMETER_INTEGER 1

/**
 * A floating-point number.
 */
#define SV_PARAMETER_FLOAT 2

/**
 * A device address.
 */
#define SV_PARAMETER_ADDRESS 3

/**
 * A struct or array by value.
 */
#define SV_PARAMETER_BYTES 4

/**
 * No limit, for `sv_device_set_memory_limit`.
 */
#define SV_NO_LIMIT UINT64_MAX

/**
 * The call did what it says.
 */
#define SV_OK 0

/**
 * An argument cannot be used: NULL, a wrong size, or a value outside of its range. The message names it.
 */
#define SV_ERROR_INVALID_ARGUMENT 1

/**
 * A handle is 0, was released, or belongs to an object of another kind.
 */
#define SV_ERROR_INVALID_HANDLE 2

/**
 * The library has a defect: a panic was stopped at the ABI. The message says where.
 */
#define SV_ERROR_PANIC 3

/**
 * `sv_shutdown` was called; only `sv_shutdown`, `sv_last_error` and the version functions work after it.
 */
#define SV_ERROR_SHUT_DOWN 4

/**
 * The feature that this function needs was left out when the library was built.
 */
#define SV_ERROR_UNSUPPORTED 5

/**
 * A shared library, such as the NVIDIA driver, could not be loaded.
 */
#define SV_ERROR_LIBRARY_UNAVAILABLE 10

/**
 * A shared library is too old and lacks a function.
 */
#define SV_ERROR_MISSING_SYMBOL 11

/**
 * A call of the driver failed.
 */
#define SV_ERROR_DRIVER 12

/**
 * A call of an optional library failed.
 */
#define SV_ERROR_LIBRARY 13

/**
 * The host or a device has no memory left.
 */
#define SV_ERROR_OUT_OF_MEMORY 14

/**
 * A kernel faulted and ended its context.
 */
#define SV_ERROR_KERNEL_FAULT 15

/**
 * The context of a device was lost to an earlier fault or to a reset.
 */
#define SV_ERROR_CONTEXT_LOST 16

/**
 * A wait with a time limit gave up. The work goes on.
 */
#define SV_ERROR_TIMED_OUT 17

/**
 * The driver gave no new context after a reset.
 */
#define SV_ERROR_RESET_FAILED 18

/**
 * The process was forked from one that had used CUDA.
 */
#define SV_ERROR_FORKED_PROCESS 19

/**
 * There is no such device.
 */
#define SV_ERROR_NO_DEVICE 20

/**
 * A module has no such kernel or global.
 */
#define SV_ERROR_UNKNOWN_NAME 21

/**
 * Neither image nor source gives the kernel on this machine.
 */
#define SV_ERROR_KERNEL_UNAVAILABLE 22

/**
 * A launch passes more or fewer arguments than the kernel has parameters.
 */
#define SV_ERROR_ARGUMENT_COUNT 23

/**
 * An argument of a launch does not fit its parameter.
 */
#define SV_ERROR_ARGUMENT_MISMATCH 24

/**
 * A launch asks for more than the device or the kernel allows.
 */
#define SV_ERROR_LAUNCH_LIMIT 25

/**
 * The bytes are no PTX, cubin or fatbin.
 */
#define SV_ERROR_NOT_AN_IMAGE 26

/**
 * The image is damaged.
 */
#define SV_ERROR_DAMAGED_IMAGE 27

/**
 * The image does not run on this device or driver.
 */
#define SV_ERROR_UNSUPPORTED_IMAGE 28

/**
 * The driver's assembler or linker refused the image.
 */
#define SV_ERROR_IMAGE_REJECTED 29

/**
 * CUDA C++ does not compile.
 */
#define SV_ERROR_COMPILATION 30

/**
 * The operation cannot be part of a graph capture.
 */
#define SV_ERROR_NOT_CAPTURABLE 31

/**
 * The new graph differs too much from the instantiated one.
 */
#define SV_ERROR_GRAPH_NOT_UPDATABLE 32

/**
 * The operands are on different devices.
 */
#define SV_ERROR_DEVICE_MISMATCH 33

/**
 * Two lengths differ that must be equal.
 */
#define SV_ERROR_LENGTH_MISMATCH 34

/**
 * A range leaves its buffer.
 */
#define SV_ERROR_OUT_OF_RANGE 35

/**
 * An index leads out of its dimension.
 */
#define SV_ERROR_INDEX_OUT_OF_RANGE 36

/**
 * The operation does not take this dtype.
 */
#define SV_ERROR_DTYPE_MISMATCH 37

/**
 * A file cannot be used.
 */
#define SV_ERROR_FILE 38

/**
 * A kernel reported an error of its own.
 */
#define SV_ERROR_KERNEL 39

/**
 * A function that frees memory of other code.
 */
typedef void (*sv_deleter)(void *user);

/**
 * A function that gets the messages of the library: the level, the part of the library, and the text, in UTF-8. The texts are
 * valid during the call.
 */
typedef void (*sv_log_callback)(int32_t level, const char *target, const char *message, void *user);

/**
 * The shape of a launch.
 */
typedef struct sv_launch_config {
  /**
   * The size of this struct, set by the caller.
   */
  size_t size;
  /**
   * Blocks in the grid in x, y and z. 0 in y or z counts as 1.
   */
  uint32_t grid[3];
  /**
   * Threads per block in x, y and z. 0 in y or z counts as 1.
   */
  uint32_t block[3];
  /**
   * Blocks per cluster in x, y and z; zeros without clusters.
   */
  uint32_t cluster[3];
  /**
   * Dynamic shared memory per block, in bytes.
   */
  uint32_t shared;
  /**
   * `SV_LAUNCH_...`, combined by `|`.
   */
  uint32_t flags;
  /**
   * The priority, with `SV_LAUNCH_PRIORITY`.
   */
  int32_t priority;
} sv_launch_config;

/**
 * One argument of a launch. Fields that the kind does not use are zero.
 */
typedef struct sv_argument {
  /**
   * `SV_ARGUMENT_...`.
   */
  uint32_t kind;
  /**
   * Zero.
   */
  uint32_t reserved;
  /**
   * The handle of a buffer.
   */
  uint64_t buffer;
  /**
   * The offset in the buffer, in bytes.
   */
  uint64_t offset;
  /**
   * The value, copied by the launch.
   */
  const void *value;
  /**
   * The size of the value in bytes.
   */
  size_t bytes;
} sv_argument;

/**
 * What a kernel needs, for `sv_function_attributes_get`.
 */
typedef struct sv_function_attributes {
  /**
   * The size of this struct, set by the caller.
   */
  size_t size;
  /**
   * Registers per thread.
   */
  uint32_t registers;
  /**
   * Static shared memory per block, in bytes.
   */
  uint32_t shared_bytes;
  /**
   * Constant memory, in bytes.
   */
  uint32_t constant_bytes;
  /**
   * Local memory per thread, in bytes.
   */
  uint32_t local_bytes;
  /**
   * The largest number of threads per block.
   */
  uint32_t max_threads_per_block;
  /**
   * The virtual architecture of the PTX, such as 60.
   */
  uint32_t ptx_version;
  /**
   * The architecture of the machine code, such as 90.
   */
  uint32_t binary_version;
  /**
   * The number of parameters, or `UINT32_MAX` if neither image nor driver gives it.
   */
  uint32_t parameters;
} sv_function_attributes;

/**
 * The statistics of a device's memory pool. Sizes are in bytes.
 */
typedef struct sv_pool_statistics {
  /**
   * The size of this struct, set by the caller.
   */
  size_t size;
  /**
   * Blocks in use by buffers.
   */
  uint64_t live_bytes;
  /**
   * The peak of `live_bytes`.
   */
  uint64_t peak_live_bytes;
  /**
   * Bytes requested by live buffers; the rest of `live_bytes` is rounding.
   */
  uint64_t requested_bytes;
  /**
   * The peak of `requested_bytes`.
   */
  uint64_t peak_requested_bytes;
  /**
   * Blocks cached for reuse.
   */
  uint64_t cached_bytes;
  /**
   * Bytes obtained from the driver and not returned.
   */
  uint64_t reserved_bytes;
  /**
   * The peak of `reserved_bytes`.
   */
  uint64_t peak_reserved_bytes;
  /**
   * The largest cached block, or the largest run of adjacent ones.
   */
  uint64_t largest_cached_bytes;
  /**
   * Buffers requested.
   */
  uint64_t requests;
  /**
   * Requests served by a cached block.
   */
  uint64_t hits;
  /**
   * Allocations from the driver.
   */
  uint64_t driver_allocations;
  /**
   * Allocations returned to the driver.
   */
  uint64_t driver_frees;
} sv_pool_statistics;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Allocates device memory for a stream, with unspecified contents. The memory comes from a pool and costs no driver call
 * where a block is cached.
 *
 * The caller owns one reference to `*buffer`. Any stream of any device that can reach the memory may use it: each operation
 * waits on the device for the conflicting ones before it. Releasing the buffer frees the memory behind the work that uses
 * it. Any thread may call it, and use the buffer; work that two threads issue to one buffer at the same time runs in either
 * order.
 *
 * Requires: `buffer` points to a `uint64_t`.
 */
int32_t sv_buffer_create(uint64_t stream,
                         uint64_t bytes,
                         uint64_t *buffer);

/**
 * As `sv_buffer_create`, with bytes that are all zero.
 *
 * Any thread may call it.
 *
 * Requires: `buffer` points to a `uint64_t`.
 */
int32_t sv_buffer_zeros(uint64_t stream, uint64_t bytes, uint64_t *buffer);

/**
 * Writes the device address of the first byte, which is 0 for an empty buffer.
 *
 * The library does not see uses of the address by other code: order them with events. Any thread may call it.
 *
 * Requires: `address` points to a `uint64_t`.
 */
int32_t sv_buffer_address(uint64_t buffer,
                          uint64_t *address);

/**
 * Writes the number of bytes of a buffer.
 *
 * Any thread may call it.
 *
 * Requires: `bytes` points to a `uint64_t`.
 */
int32_t sv_buffer_size(uint64_t buffer, uint64_t *bytes);

/**
 * Writes the ordinal of the device that holds a buffer.
 *
 * Any thread may call it.
 *
 * Requires: `device` points to an `int32_t`.
 */
int32_t sv_buffer_device(uint64_t buffer, int32_t *device);

/**
 * Copies `bytes` bytes of the host to a buffer, from `offset` on. The call returns when the host's memory is no longer used.
 *
 * Any thread may call it.
 *
 * Requires: `data` points to `bytes` bytes that nobody writes during the call.
 */
int32_t sv_buffer_upload(uint64_t stream,
                         uint64_t buffer,
                         uint64_t offset,
                         const void *data,
                         size_t bytes);

/**
 * Copies `bytes` bytes of a buffer, from `offset` on, to the host, behind the work that writes them. The call waits for the
 * copy, and returns the error of a kernel that faulted or reported one.
 *
 * Any thread may call it.
 *
 * Requires: `data` points to `bytes` bytes that nobody else uses during the call.
 */
int32_t sv_buffer_download(uint64_t stream,
                           uint64_t buffer,
                           uint64_t offset,
                           void *data,
                           size_t bytes);

/**
 * Copies bytes of a buffer to another one, or to another place in it that does not overlap. The buffers may be on two
 * devices, of which the stream belongs to one. The host does not wait.
 *
 * Any thread may call it.
 */
int32_t sv_buffer_copy(uint64_t stream,
                       uint64_t source,
                       uint64_t source_offset,
                       uint64_t destination,
                       uint64_t destination_offset,
                       uint64_t bytes);

/**
 * Sets `count` values of a buffer, from the byte at `offset` on, to the value at `value` of `value_bytes` bytes: 1, 2, 4,
 * 8 or 16. The offset is a multiple of the value's size. The host does not wait.
 *
 * Any thread may call it.
 *
 * Requires: `value` points to `value_bytes` bytes.
 */
int32_t sv_buffer_fill(uint64_t stream,
                       uint64_t buffer,
                       uint64_t offset,
                       const void *value,
                       size_t value_bytes,
                       uint64_t count);

/**
 * Takes over `bytes` bytes of device memory of other code as a buffer. The contents are ordered on `stream`: other streams
 * wait for its work. Use a stream of `sv_stream_from_raw` for memory that other code has just written.
 *
 * `deleter`, if not NULL, is called once with `user`, after the last reference was dropped and every use of the memory is
 * done. It runs on the thread that finds this out: one that releases a buffer, or that waits for a stream or a device, or
 * that calls `sv_shutdown`. It may call CUDA and this library. It is not called where this function fails, nor in a forked
 * process.
 *
 * The caller owns one reference to `*buffer`. Any thread may call it.
 *
 * Requires: The memory is valid until the deleter is called, and other code uses it only in the order of `stream`. `deleter` may be
 * called from any thread. `buffer` points to a `uint64_t`.
 */
int32_t sv_buffer_from_raw(uint64_t stream,
                           uint64_t address,
                           uint64_t bytes,
                           sv_deleter deleter,
                           void *user,
                           uint64_t *buffer);

/**
 * Writes the number of CUDA devices. Without a driver this is `SV_ERROR_LIBRARY_UNAVAILABLE`, with the paths tried.
 *
 * Any thread may call it.
 *
 * Requires: `count` points to an `int32_t`.
 */
int32_t sv_device_count(int32_t *count);

/**
 * Writes the name of a device. `text`, `capacity` and `length` are as for `sv_library_report`.
 *
 * Any thread may call it.
 *
 * Requires: `text` points to `capacity` bytes.
 */
int32_t sv_device_name(int32_t device, char *text, size_t capacity, size_t *length);

/**
 * Writes the compute capability of a device, such as 9 and 0.
 *
 * Any thread may call it.
 *
 * Requires: `major` and `minor` each point to an `int32_t`.
 */
int32_t sv_device_compute_capability(int32_t device, int32_t *major, int32_t *minor);

/**
 * Writes an attribute of a device; `attribute` is a `CUdevice_attribute` of the driver.
 *
 * Any thread may call it.
 *
 * Requires: `value` points to an `int32_t`.
 */
int32_t sv_device_attribute(int32_t device, int32_t attribute, int32_t *value);

/**
 * Writes the free and the total memory of a device in bytes.
 *
 * Any thread may call it.
 *
 * Requires: `free` and `total` each point to a `uint64_t`.
 */
int32_t sv_device_memory(int32_t device, uint64_t *free, uint64_t *total);

/**
 * Waits for all work on a device, and returns the error of a kernel that faulted or reported one.
 *
 * Any thread may call it.
 */
int32_t sv_device_synchronize(int32_t device);

/**
 * Ends the context of a device and begins a new one. Handles of the old context answer `SV_ERROR_CONTEXT_LOST` and can
 * still be released.
 *
 * Requires: All CUDA code of the process shares the context and loses its memory, streams and modules: none may be in use. No other
 * thread is in a call for this device, no pinned buffer of this device is used afterwards, and no work of another device uses
 * this one's memory.
 */
int32_t sv_device_reset(int32_t device);

/**
 * Writes 1 if kernels of a device can use memory of `other`, else 0.
 *
 * Any thread may call it.
 *
 * Requires: `can` points to an `int32_t`.
 */
int32_t sv_device_can_access_peer(int32_t device, int32_t other, int32_t *can);

/**
 * Lets kernels of a device use memory of `other`. Does nothing if they already may. Copies between devices need no such
 * access.
 *
 * Any thread may call it.
 */
int32_t sv_device_enable_peer_access(int32_t device,
                                     int32_t other);

/**
 * Revokes the access of `sv_device_enable_peer_access`, after a wait for the device. Does nothing if it was not enabled.
 *
 * Any thread may call it.
 */
int32_t sv_device_disable_peer_access(int32_t device,
                                      int32_t other);

/**
 * Writes the `CUcontext` of a device, which is its primary context, for other CUDA code.
 *
 * The context lives as long as the process. Any thread may call it.
 *
 * Requires: `context` points to a pointer.
 */
int32_t sv_device_context(int32_t device, void **context);

/**
 * Writes the ordinal of the device of a `CUcontext`. A context that is not the primary one of its device is
 * `SV_ERROR_INVALID_ARGUMENT`: this library shares no other.
 *
 * Any thread may call it.
 *
 * Requires: `context` is a live context or NULL, and `device` points to an `int32_t`.
 */
int32_t sv_device_of_context(void *context,
                             int32_t *device);

/**
 * Returns the message of the last call of this thread that failed, as UTF-8; an empty text before the first one.
 *
 * A call that succeeds leaves the message as it is. The text belongs to the library and is valid until the next failing call
 * of the same thread. Each thread has a message of its own.
 */
const char *sv_last_error(void);

/**
 * Begins to capture the operations that this thread issues on a stream, and on streams that come to depend on it, in place
 * of running them. A thread captures one graph at a time.
 *
 * Launches, fills, copies on the device and from and to pinned memory, events, and waits among the captured streams can be
 * captured; a call that waits answers `SV_ERROR_NOT_CAPTURABLE`, and the capture goes on. Memory allocated on captured
 * streams belongs to the graph. The same thread ends the capture; one that a thread leaves open ends with the thread.
 */
int32_t sv_stream_begin_capture(uint64_t stream);

/**
 * Ends the capture that this thread has begun on a stream, and gives its graph. The graph does nothing by itself: instantiate
 * it, and launch the result. Where the function fails, the capture is discarded, unless it is one of another stream.
 *
 * The caller owns one reference to `*graph`. Only the thread that began the capture may call it.
 *
 * Requires: `graph` points to a `uint64_t`.
 */
int32_t sv_stream_end_capture(uint64_t stream,
                              uint64_t *graph);

/**
 * Writes the number of nodes of a graph.
 *
 * Any thread may call it.
 *
 * Requires: `nodes` points to a `size_t`.
 */
int32_t sv_graph_node_count(uint64_t graph, size_t *nodes);

/**
 * Writes a picture of a graph in the language of Graphviz. `text`, `capacity` and `length` are as for `sv_library_report`.
 *
 * Any thread may call it.
 *
 * Requires: `text` points to `capacity` bytes.
 */
int32_t sv_graph_dot(uint64_t graph,
                     char *text,
                     size_t capacity,
                     size_t *length);

/**
 * Instantiates a graph. The executable graph takes the captured one, whose handle can only be released afterwards, also where
 * the driver fails.
 *
 * The caller owns one reference to `*executable`. Any thread may call it.
 *
 * Requires: `executable` points to a `uint64_t`.
 */
int32_t sv_graph_instantiate(uint64_t graph,
                             uint64_t *executable);

/**
 * Launches an executable graph on a stream, as one operation, behind all earlier uses of its buffers and its own earlier
 * launches. The host does not wait.
 *
 * Any thread may call it.
 */
int32_t sv_executable_graph_launch(uint64_t executable,
                                   uint64_t stream);

/**
 * Uploads what an executable graph needs to the device, ahead of its first launch.
 *
 * Any thread may call it.
 */
int32_t sv_executable_graph_upload(uint64_t executable, uint64_t stream);

/**
 * Updates an executable graph from another capture of the same operations in the same order, with other arguments, shapes or
 * buffers. The executable graph takes the captured one. Launches in progress are not changed.
 *
 * `SV_ERROR_GRAPH_NOT_UPDATABLE` says that the two differ in more than that; `graph` can then be instantiated. Any thread may
 * call it.
 */
int32_t sv_executable_graph_update(uint64_t executable,
                                   uint64_t graph);

/**
 * Writes the address and the size of pinned memory that a captured copy uses and the graph has, after a wait for all launches
 * so far. The next launch uploads what is written there; what the last launch downloaded is read there.
 *
 * The memory may be used until the next launch. Any thread may call it, one at a time.
 *
 * Requires: `data` points to a pointer, and `bytes` to a `size_t`.
 */
int32_t sv_executable_graph_host(uint64_t executable,
                                 uint64_t pinned,
                                 void **data,
                                 size_t *bytes);

/**
 * Sets the function that gets the library's messages of `level` (`SV_LOG_...`) and more urgent ones. NULL removes it. Without
 * one the library writes no message anywhere.
 *
 * The function is called on the thread that a message comes from, on several at once, and must not call
 * `sv_set_log_callback` or `sv_shutdown`. When this call returns, no thread is in an earlier function. Any thread may call it.
 * `SV_ERROR_UNSUPPORTED` in a Rust program that has a logger of its own.
 *
 * Requires: `callback` may be called with `user` from any thread until it is replaced, removed, or `sv_shutdown` returns.
 */
int32_t sv_set_log_callback(int32_t level,
                            sv_log_callback callback,
                            void *user);

/**
 * Sets the number of CPU threads that an operation may use, the calling one included. 0 restores the default:
 * `SELVEDGE_THREADS`, or the number of processors that the process may run on. Results do not depend on it.
 *
 * The setting holds for operations that start after the call, on any thread. With 1 the library starts no thread for
 * operations. Any thread may call it.
 */
int32_t sv_set_threads(uint32_t count);

/**
 * Writes the number of CPU threads that an operation may use.
 *
 * Any thread may call it.
 *
 * Requires: `count` points to a `uint32_t`.
 */
int32_t sv_thread_count(uint32_t *count);

/**
 * Launches a kernel on a stream. The arguments are checked against the kernel's parameters, in number, size and kind, as far
 * as the image gives them; nothing is launched where one does not fit.
 *
 * The stream waits for all earlier uses of the buffers, on any stream. The host does not wait: the next call that waits
 * reports a fault of the kernel. Values are copied. Any thread may call it.
 *
 * Requires: `config` points to a struct whose `size` is set, and `arguments` to `count` arguments, whose values point to their bytes.
 * The kernel stays inside of the buffers, writes only to those of `SV_ARGUMENT_WRITE`, and the caller orders its uses of raw
 * addresses.
 */
int32_t sv_launch(uint64_t function,
                  uint64_t stream,
                  const struct sv_launch_config *config,
                  const struct sv_argument *arguments,
                  size_t count);

/**
 * Returns the ABI version of the library that is loaded, to be compared with `SV_ABI_VERSION` of the header.
 *
 * Any thread may call it at any time.
 */
uint32_t sv_abi_version(void);

/**
 * Returns the version of the library that is loaded, such as `10203` for 1.2.3: major, minor and patch by hundreds.
 *
 * Any thread may call it at any time.
 */
uint32_t sv_version(void);

/**
 * Adds a reference to the object of any handle.
 *
 * Each reference needs a call of `sv_release`. Any thread may call it.
 */
int32_t sv_retain(uint64_t handle);

/**
 * Drops a reference to the object of any handle. The last one frees the object, and the handle is invalid from then on.
 *
 * Work of the object that is still running goes on; the call does not wait for it. 0 is accepted and does nothing, as
 * `free(NULL)`. Any thread may call it.
 */
int32_t sv_release(uint64_t handle);

/**
 * Writes a report of the libraries that were looked for, each path tried and why it was taken or not, as `selvedge info`
 * shows it.
 *
 * The text is cut to `capacity` bytes with its zero byte; `length`, if not NULL, gets the bytes of the whole text without the
 * zero byte. A capacity of 0 asks for the length alone. Any thread may call it.
 *
 * Requires: `text` points to `capacity` bytes.
 */
int32_t sv_library_report(char *text,
                          size_t capacity,
                          size_t *length);

/**
 * Frees every object, returns the cached memory of every device, and ends the library's threads. Every later call but this one,
 * `sv_last_error` and the versions returns `SV_ERROR_SHUT_DOWN`.
 *
 * The call waits for work on the devices that were used, and calls the deleters of memory of other code. Calling it again does
 * nothing. No other call of the library may be running on another thread.
 */
int32_t sv_shutdown(void);

/**
 * Loads PTX, a cubin or a fatbin on a device. PTX needs no zero byte at its end.
 *
 * The bytes are no longer used when the call returns. The caller owns one reference to `*module`. A kernel keeps its module
 * loaded. Any thread may call it, and use the module.
 *
 * Requires: `image` points to `bytes` bytes, and `module` to a `uint64_t`.
 */
int32_t sv_module_load(int32_t device,
                       const void *image,
                       size_t bytes,
                       uint64_t *module);

/**
 * Writes the log of the driver's assembler, which is usually empty. `log`, `capacity` and `length` are as for
 * `sv_library_report`.
 *
 * Any thread may call it.
 *
 * Requires: `log` points to `capacity` bytes.
 */
int32_t sv_module_log(uint64_t module,
                      char *log,
                      size_t capacity,
                      size_t *length);

/**
 * Writes the names of the kernels of a module, one a line. `names`, `capacity` and `length` are as for `sv_library_report`.
 *
 * Any thread may call it.
 *
 * Requires: `names` points to `capacity` bytes.
 */
int32_t sv_module_function_names(uint64_t module,
                                 char *names,
                                 size_t capacity,
                                 size_t *length);

/**
 * Finds a kernel of a module. C++ kernels have mangled names unless they are `extern "C"`.
 *
 * The caller owns one reference to `*function`. Any thread may call it, and use the kernel.
 *
 * Requires: `name` is a text that ends with a zero byte, and `function` points to a `uint64_t`.
 */
int32_t sv_module_function(uint64_t module, const char *name, uint64_t *function);

/**
 * Writes what a kernel needs.
 *
 * Any thread may call it.
 *
 * Requires: `attributes` points to a struct whose `size` is set.
 */
int32_t sv_function_attributes_get(uint64_t function, struct sv_function_attributes *attributes);

/**
 * Writes the kind (`SV_PARAMETER_...`), the size and the offset in bytes of a parameter of a kernel.
 *
 * Any thread may call it.
 *
 * Requires: `kind` points to a `uint32_t`; `bytes` and `offset` each point to a `size_t`.
 */
int32_t sv_function_parameter(uint64_t function,
                              uint32_t index,
                              uint32_t *kind,
                              size_t *bytes,
                              size_t *offset);

/**
 * Writes how many blocks of `threads` threads and `shared` bytes of dynamic shared memory one multiprocessor holds.
 *
 * Any thread may call it.
 *
 * Requires: `blocks` points to a `uint32_t`.
 */
int32_t sv_function_occupancy(uint64_t function,
                              uint32_t threads,
                              uint32_t shared,
                              uint32_t *blocks);

/**
 * Writes the sizes of grid and block that give the highest occupancy with `shared` bytes of dynamic shared memory.
 *
 * Any thread may call it.
 *
 * Requires: `grid` and `block` each point to a `uint32_t`.
 */
int32_t sv_function_suggested_block_size(uint64_t function,
                                         uint32_t shared,
                                         uint32_t *grid,
                                         uint32_t *block);

/**
 * Writes the address and the size of a variable of a module, `__device__` or `__constant__` in CUDA C++.
 *
 * The address is valid while the module or one of its kernels lives. Any thread may call it.
 *
 * Requires: `name` is a text that ends with a zero byte, `address` points to a `uint64_t` and `bytes` to a `size_t`.
 */
int32_t sv_module_global(uint64_t module,
                         const char *name,
                         uint64_t *address,
                         size_t *bytes);

/**
 * Reads all `bytes` bytes of a variable, behind every earlier launch from its module. The call waits for the copy.
 *
 * Any thread may call it.
 *
 * Requires: `name` is a text that ends with a zero byte, and `data` points to `bytes` bytes that nobody else uses.
 */
int32_t sv_module_global_read(uint64_t module,
                              const char *name,
                              uint64_t stream,
                              void *data,
                              size_t bytes);

/**
 * Writes all `bytes` bytes of a variable, behind every earlier launch from its module. The call waits for the copy.
 *
 * Any thread may call it.
 *
 * Requires: `name` is a text that ends with a zero byte, and `data` points to `bytes` bytes that nobody writes.
 */
int32_t sv_module_global_write(uint64_t module,
                               const char *name,
                               uint64_t stream,
                               const void *data,
                               size_t bytes);

/**
 * Creates a program of CUDA C++. `name` stands in messages, such as `saxpy.cu`.
 *
 * Both texts are copied. The caller owns one reference to `*program`. Any thread may call it, and use the program; calls for
 * one program run one at a time.
 *
 * Requires: `name` and `source` are texts that end with a zero byte, and `program` points to a `uint64_t`.
 */
int32_t sv_program_create(const char *name,
                          const char *source,
                          uint64_t *program);

/**
 * Adds a header for `#include "name"` and `#include <name>`. It replaces one of the same name. Drops an earlier result.
 *
 * Both texts are copied. Any thread may call it.
 *
 * Requires: `name` and `source` are texts that end with a zero byte.
 */
int32_t sv_program_add_header(uint64_t program,
                              const char *name,
                              const char *source);

/**
 * Adds an option of NVRTC, such as `--use_fast_math`; the target sets the architecture. Drops an earlier result.
 *
 * The text is copied. Any thread may call it.
 *
 * Requires: `option` is a text that ends with a zero byte.
 */
int32_t sv_program_add_option(uint64_t program,
                              const char *option);

/**
 * Asks for the lowered name of a template instance, such as `scale<float>`, or of a name in a namespace. `extern "C"` kernels
 * need no request. Drops an earlier result.
 *
 * The text is copied. Any thread may call it.
 *
 * Requires: `expression` is a text that ends with a zero byte.
 */
int32_t sv_program_add_expression(uint64_t program,
                                  const char *expression);

/**
 * Compiles a program for a target, such as `sm_90a` (machine code) or `compute_80` (PTX), or takes an earlier result from the
 * cache on disk. `sv_program_log` has the log, also after `SV_ERROR_COMPILATION`.
 *
 * Any thread may call it.
 *
 * Requires: `target` is a text that ends with a zero byte.
 */
int32_t sv_program_compile(uint64_t program,
                           const char *target);

/**
 * Compiles a program for the best target that NVRTC and the driver have for a device. As `sv_program_compile` otherwise.
 *
 * Any thread may call it.
 */
int32_t sv_program_compile_for_device(uint64_t program,
                                      int32_t device);

/**
 * Writes the warnings of the last compilation, or the error with source lines and carets. `log`, `capacity` and `length` are
 * as for `sv_library_report`.
 *
 * Any thread may call it.
 *
 * Requires: `log` points to `capacity` bytes.
 */
int32_t sv_program_log(uint64_t program,
                       char *log,
                       size_t capacity,
                       size_t *length);

/**
 * Writes the name in the image of an expression of `sv_program_add_expression`. `name`, `capacity` and `length` are as for
 * `sv_library_report`.
 *
 * Any thread may call it.
 *
 * Requires: `expression` is a text that ends with a zero byte, and `name` points to `capacity` bytes.
 */
int32_t sv_program_lowered_name(uint64_t program,
                                const char *expression,
                                char *name,
                                size_t capacity,
                                size_t *length);

/**
 * Copies the image of a compiled program: a cubin, or PTX without a zero byte. `length`, if not NULL, gets the bytes of the
 * whole image; a capacity of 0 asks for it alone. An image that does not fit is `SV_ERROR_INVALID_ARGUMENT`.
 *
 * Any thread may call it.
 *
 * Requires: `image` points to `capacity` bytes.
 */
int32_t sv_program_image(uint64_t program,
                         void *image,
                         size_t capacity,
                         size_t *length);

/**
 * Loads a compiled program on a device. Launches of its kernels are checked by the parameters that its PTX gives.
 *
 * The caller owns one reference to `*module`, which does not need the program. Any thread may call it.
 *
 * Requires: `module` points to a `uint64_t`.
 */
int32_t sv_program_load(uint64_t program,
                        int32_t device,
                        uint64_t *module);

/**
 * Allocates page-locked host memory for a device, with unspecified contents. Every device can use it.
 *
 * The caller owns one reference to `*pinned`. Any thread may call it, and use the memory one at a time.
 *
 * Requires: `pinned` points to a `uint64_t`.
 */
int32_t sv_pinned_create(int32_t device,
                         size_t bytes,
                         uint64_t *pinned);

/**
 * Writes the address and the number of bytes of pinned memory. The address stays the same while the handle lives.
 *
 * The caller may read and write the memory until it starts a copy, and again after `sv_pinned_wait`. During a copy this
 * function fails. Any thread may call it.
 *
 * Requires: `data` points to a pointer, and `bytes` to a `size_t`.
 */
int32_t sv_pinned_data(uint64_t pinned,
                       void **data,
                       size_t *bytes);

/**
 * Starts a copy of all pinned memory to a buffer, from the byte at `offset` on. The host does not wait.
 *
 * The copy has the memory until `sv_pinned_wait`: the caller must not touch it. During a capture the graph takes the memory,
 * and `sv_executable_graph_host` gives access to it. Releasing the handle is allowed at any time. Any thread may call it.
 */
int32_t sv_pinned_upload(uint64_t stream,
                         uint64_t pinned,
                         uint64_t buffer,
                         uint64_t offset);

/**
 * Starts a copy of bytes of a buffer, from `offset` on, to all pinned memory, behind the work that writes them. The host
 * does not wait.
 *
 * As `sv_pinned_upload` otherwise. Any thread may call it.
 */
int32_t sv_pinned_download(uint64_t stream,
                           uint64_t buffer,
                           uint64_t offset,
                           uint64_t pinned);

/**
 * Waits for the copy that has pinned memory, and gives the memory back. Does nothing where no copy has it.
 *
 * Returns the error of a kernel that faulted or reported one; the memory is then given up, and the handle can only be
 * released. Any thread may call it.
 */
int32_t sv_pinned_wait(uint64_t pinned);

/**
 * Writes 1 if no copy has pinned memory or its copy is done, else 0. `sv_pinned_wait` still gives the memory back.
 *
 * Any thread may call it.
 *
 * Requires: `complete` points to an `int32_t`.
 */
int32_t sv_pinned_is_complete(uint64_t pinned,
                              int32_t *complete);

/**
 * Writes the statistics of a device's memory pool.
 *
 * Any thread may call it.
 *
 * Requires: `statistics` points to a struct whose `size` is set.
 */
int32_t sv_device_pool_statistics(int32_t device, struct sv_pool_statistics *statistics);

/**
 * Sets the most device memory that buffers may take from the driver, in use and cached together, in bytes; `SV_NO_LIMIT`
 * removes the limit. Memory already above it is kept.
 *
 * Any thread may call it.
 */
int32_t sv_device_set_memory_limit(int32_t device,
                                   uint64_t bytes);

/**
 * Waits for a device and returns all cached memory to the driver: device memory, pinned memory, events, and what was
 * released while in use.
 *
 * Any thread may call it.
 */
int32_t sv_device_trim(int32_t device);

/**
 * Writes the layout of a device's memory pool as JSON. `text`, `capacity` and `length` are as for `sv_library_report`.
 *
 * Any thread may call it.
 *
 * Requires: `text` points to `capacity` bytes.
 */
int32_t sv_device_memory_snapshot(int32_t device,
                                  char *text,
                                  size_t capacity,
                                  size_t *length);

/**
 * Creates a stream on a device. A lower `priority` is more urgent; 0 is ordinary.
 *
 * The caller owns one reference to `*stream`. Any thread may call it, and use the stream.
 *
 * Requires: `stream` points to a `uint64_t`.
 */
int32_t sv_stream_create(int32_t device, int32_t priority, uint64_t *stream);

/**
 * Borrows a `CUstream` of other code, such as a `cudaStream_t`. NULL is the legacy default stream; the default stream of the
 * calling thread is refused. `device` is the device of the stream's context, which must be its primary one.
 *
 * The library orders its work with the other code's as the driver orders one stream, and never destroys the stream. The caller
 * owns one reference to `*stream`. Any thread may call it, and use the stream.
 *
 * Requires: `raw` is a live stream, and stays so until the last reference is released and no call that uses the stream runs. Other code
 * does not capture it meanwhile. `stream` points to a `uint64_t`.
 */
int32_t sv_stream_from_raw(int32_t device,
                           void *raw,
                           uint64_t *stream);

/**
 * Writes the ordinal of the device of a stream.
 *
 * Any thread may call it.
 *
 * Requires: `device` points to an `int32_t`.
 */
int32_t sv_stream_device(uint64_t stream, int32_t *device);

/**
 * Writes the `CUstream` of a stream, for other CUDA code.
 *
 * The driver's stream lives as long as the handle. This library does not see work that other code puts on it: order such work
 * with an event before another stream uses what it touches. Any thread may call it.
 *
 * Requires: `raw` points to a pointer.
 */
int32_t sv_stream_raw(uint64_t stream,
                      void **raw);

/**
 * Waits for all work on a stream, and returns the error of a kernel that faulted or reported one.
 *
 * Any thread may call it.
 */
int32_t sv_stream_synchronize(uint64_t stream);

/**
 * Waits for all work on a stream, at most this many milliseconds; then `SV_ERROR_TIMED_OUT`, and the work goes on.
 *
 * Any thread may call it.
 */
int32_t sv_stream_synchronize_timeout(uint64_t stream,
                                      uint64_t timeout_ms);

/**
 * Writes 1 if all work on a stream is done, else 0.
 *
 * Any thread may call it.
 *
 * Requires: `idle` points to an `int32_t`.
 */
int32_t sv_stream_is_idle(uint64_t stream, int32_t *idle);

/**
 * Lets later work on `stream` begin after an event. The host does not wait.
 *
 * Any thread may call it.
 */
int32_t sv_stream_wait_event(uint64_t stream, uint64_t event);

/**
 * Lets later work on `stream` begin after all work that `other` has now. The host does not wait.
 *
 * Any thread may call it.
 */
int32_t sv_stream_wait_stream(uint64_t stream, uint64_t other);

/**
 * Creates an event. `timing` is 1 for an event with a time, else 0.
 *
 * The caller owns one reference to `*event`. Any thread may call it, and use the event.
 *
 * Requires: `event` points to a `uint64_t`.
 */
int32_t sv_event_create(int32_t device, int32_t timing, uint64_t *event);

/**
 * Records an event behind the work that a stream has now.
 *
 * Any thread may call it.
 */
int32_t sv_event_record(uint64_t event, uint64_t stream);

/**
 * Waits for the work before an event.
 *
 * Any thread may call it.
 */
int32_t sv_event_synchronize(uint64_t event);

/**
 * Writes 1 if the work before an event is done, else 0.
 *
 * Any thread may call it.
 *
 * Requires: `complete` points to an `int32_t`.
 */
int32_t sv_event_is_complete(uint64_t event, int32_t *complete);

/**
 * Writes the milliseconds between two events with a time, both of which have been reached.
 *
 * Any thread may call it.
 *
 * Requires: `milliseconds` points to a `float`.
 */
int32_t sv_event_elapsed(uint64_t start, uint64_t end, float *milliseconds);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SELVEDGE_H */
