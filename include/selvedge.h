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
 * The version of the ABI. It moves when a function, struct or code changes its meaning.
 */
#define SV_ABI_VERSION 1

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

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

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
 * Returns the message of the last call of this thread that failed, as UTF-8; an empty text before the first one.
 *
 * A call that succeeds leaves the message as it is. The text belongs to the library and is valid until the next failing call
 * of the same thread. Each thread has a message of its own.
 */
const char *sv_last_error(void);

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
 * Frees every object and ends the library's threads. Every later call but this one, `sv_last_error` and the versions
 * returns `SV_ERROR_SHUT_DOWN`.
 *
 * The call waits for work on the devices that the objects belong to. Calling it again does nothing. No other call of the
 * library may be running on another thread.
 */
int32_t sv_shutdown(void);

/**
 * Creates a stream on a device. A lower `priority` is more urgent; 0 is ordinary.
 *
 * The caller owns one reference to `*stream`. Any thread may call it, and use the stream.
 *
 * Requires: `stream` points to a `uint64_t`.
 */
int32_t sv_stream_create(int32_t device, int32_t priority, uint64_t *stream);

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
