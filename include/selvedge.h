/* selvedge: a GPU runtime and tensor library. Generated from src/capi by scripts/header; do not edit.
 *
 *   1. Results, objects and the library
 *   2. Tensors: dtypes, numbers, creation, elements, files, DLPack
 *   3. Elementwise operations
 *   4. Shapes, views and indexing
 *   5. Reductions, softmax and norms, statistics, sorting
 *   6. Random numbers
 *   7. Products and attention
 *   8. Functions of a program's own
 *   9. Neural networks
 *   10. The classifier
 *   11. Numerical models
 *   12. Spiking networks
 *   13. Golden-ratio tensors
 *   14. Devices, memory and streams
 *   15. Kernels and launches
 *   16. Graphs
 *   17. Threads, memory and messages of the host, traces
 *
 * Every function returns a status (SV_OK or SV_ERROR_...) unless it says otherwise, and leaves a message for sv_last_error()
 * if it fails. A function that fails writes no result. Objects are handles, each with the type of its kind; NULL is no object. The
 * caller owns one reference to each object that a function gives. sv_retain() adds a reference, sv_release() drops one. Structs
 * begin with their size in bytes, which the caller sets. A pointer must point to a value of its type, a text must end with a zero
 * byte, and arrays must be as long as the function requires. Any thread may call a function unless it says otherwise; it waits
 * while another thread changes an object that it uses. docs/c-abi.md is the manual. */

#ifndef SELVEDGE_H
#define SELVEDGE_H

#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX != UINT64_MAX
#error "selvedge needs a target with addresses of 64 bits"
#endif

#define SV_VERSION_MAJOR 0
#define SV_VERSION_MINOR 1
#define SV_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Results, objects and the library ---- */

/**
 * The call did what it says.
 */
#define SV_OK 0

/**
 * An argument cannot be used: NULL, a misaligned pointer, a struct's wrong `size`, shapes that do not fit, or a value outside of
 * its range. The message names it.
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
 * `sv_shutdown` was called; only `sv_shutdown`, `sv_last_error`, `sv_status_name` and the version functions work after it.
 */
#define SV_ERROR_SHUT_DOWN 4

/**
 * A custom operation has no function for the device, a Rust program has a logger of its own, or the library was built without the
 * feature that a function needs.
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
 * An array of the caller has another number of bytes or elements than the object, or two arrays that must be equally long are not.
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
 * An exact result does not fit its type.
 */
#define SV_ERROR_OVERFLOW 40

/**
 * An exact division has a divisor of 0.
 */
#define SV_ERROR_DIVISION_BY_ZERO 41

/**
 * A backward cannot run: its values were freed or changed, or no gradient is required.
 */
#define SV_ERROR_BACKWARD 42

/**
 * A collective call failed because of a rank, which the message names.
 */
#define SV_ERROR_COLLECTIVE 43

/**
 * The version of the ABI. It moves when a function, struct or code changes its meaning.
 */
#define SV_ABI_VERSION 3

/**
 * A handle of no object. `sv_operand_of(NULL)` has it, because an operand whose `tensor` is 0 is a number; every function refuses it
 * with `SV_ERROR_INVALID_HANDLE`.
 */
#define SV_NO_TENSOR ((sv_tensor)UINTPTR_MAX)

/**
 * A handle of no object. `sv_variable_operand_of(NULL)` has it, as `sv_operand_of(NULL)` has `SV_NO_TENSOR`.
 */
#define SV_NO_VARIABLE ((sv_variable)UINTPTR_MAX)

/**
 * An object of any kind.
 */
typedef void *sv_object;

/**
 * A tensor.
 */
typedef struct sv_tensor_object *sv_tensor;

/**
 * A generator of random numbers.
 */
typedef struct sv_generator_object *sv_generator;

/**
 * A node of an expression.
 */
typedef struct sv_expression_object *sv_expression;

/**
 * A function of tensors that was built from expressions.
 */
typedef struct sv_fused_object *sv_fused;

/**
 * A tensor that gradients are computed for, or the result of an operation on one.
 */
typedef struct sv_variable_object *sv_variable;

/**
 * A model: a list of layers, or a transformer.
 */
typedef struct sv_model_object *sv_model;

/**
 * An optimizer of a model's parameters.
 */
typedef struct sv_optimizer_object *sv_optimizer;

/**
 * A tokenizer.
 */
typedef struct sv_tokenizer_object *sv_tokenizer;

/**
 * A decoder-only transformer of a published model.
 */
typedef struct sv_decoder_object *sv_decoder;

/**
 * A run of training.
 */
typedef struct sv_gpt_trainer_object *sv_gpt_trainer;

/**
 * An active-inference classifier.
 */
typedef struct sv_classifier_object *sv_classifier;

/**
 * A model of Gaussian classes.
 */
typedef struct sv_generative_model_object *sv_generative_model;

/**
 * A model of Gaussian beliefs.
 */
typedef struct sv_gaussian_model_object *sv_gaussian_model;

/**
 * A model of linear dynamics with Gaussian noise.
 */
typedef struct sv_linear_gaussian_model_object *sv_linear_gaussian_model;

/**
 * A spiking network.
 */
typedef struct sv_network_object *sv_network;

/**
 * A spiking network that runs.
 */
typedef struct sv_simulation_object *sv_simulation;

/**
 * A spiking network in the memory of a CUDA device, without a simulation.
 */
typedef struct sv_device_network_object *sv_device_network;

/**
 * A symbolic expression.
 */
typedef struct sv_srt_symbolic_object *sv_srt_symbolic;

/**
 * An evolver of golden-ratio states.
 */
typedef struct sv_srt_evolver_object *sv_srt_evolver;

/**
 * A stream of a CUDA device.
 */
typedef struct sv_stream_object *sv_stream;

/**
 * An event of a CUDA device.
 */
typedef struct sv_event_object *sv_event;

/**
 * Bytes in the memory of a CUDA device.
 */
typedef struct sv_buffer_object *sv_buffer;

/**
 * Bytes of the host that a CUDA device copies from and to.
 */
typedef struct sv_pinned_object *sv_pinned;

/**
 * Kernels that were loaded.
 */
typedef struct sv_module_object *sv_module;

/**
 * A kernel of a module.
 */
typedef struct sv_function_object *sv_function;

/**
 * A program of CUDA C++.
 */
typedef struct sv_program_object *sv_program;

/**
 * A graph of work.
 */
typedef struct sv_graph_object *sv_graph;

/**
 * A graph that can be launched.
 */
typedef struct sv_executable_graph_object *sv_executable_graph;

/**
 * Returns the name of a status, such as `SV_ERROR_FILE`, or "an unknown status". The text lives as long as the library.
 */
const char *sv_status_name(int32_t status);

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
 * Each reference needs a call of `sv_release`.
 */
int32_t sv_retain(sv_object object);

/**
 * Drops a reference to the object of any handle. The last one frees the object, and the handle is invalid from then on.
 *
 * Work of the object that is still running goes on; the call does not wait for it. 0 is accepted and does nothing, as
 * `free(NULL)`.
 */
int32_t sv_release(sv_object object);

/**
 * Writes a report of the libraries that were looked for, each path tried and why it was taken or not, as `selvedge info`
 * shows it.
 *
 * The text is cut to `capacity` bytes with its zero byte; `length`, if not NULL, gets the bytes of the whole text without the
 * zero byte. A capacity of 0 asks for the length alone.
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

/* ---- 2. Tensors: dtypes, numbers, creation, elements, files, DLPack ---- */

/**
 * No dtype: the default, where a function has one.
 */
#define SV_DTYPE_NONE 0

/**
 * Truth values, in a byte each.
 */
#define SV_DTYPE_BOOL 1

/**
 * Unsigned integers of 8 bits.
 */
#define SV_DTYPE_U8 2

/**
 * Signed integers of 8 bits.
 */
#define SV_DTYPE_I8 3

/**
 * Unsigned integers of 16 bits.
 */
#define SV_DTYPE_U16 4

/**
 * Signed integers of 16 bits.
 */
#define SV_DTYPE_I16 5

/**
 * Unsigned integers of 32 bits.
 */
#define SV_DTYPE_U32 6

/**
 * Signed integers of 32 bits.
 */
#define SV_DTYPE_I32 7

/**
 * Unsigned integers of 64 bits.
 */
#define SV_DTYPE_U64 8

/**
 * Signed integers of 64 bits.
 */
#define SV_DTYPE_I64 9

/**
 * IEEE half precision.
 */
#define SV_DTYPE_F16 10

/**
 * Brain floats: 8 exponent bits, 7 fraction bits.
 */
#define SV_DTYPE_BF16 11

/**
 * IEEE single precision.
 */
#define SV_DTYPE_F32 12

/**
 * IEEE double precision.
 */
#define SV_DTYPE_F64 13

/**
 * Complex numbers of two floats.
 */
#define SV_DTYPE_C64 14

/**
 * Complex numbers of two doubles.
 */
#define SV_DTYPE_C128 15

/**
 * Floats of 8 bits with 4 exponent bits, without infinities.
 */
#define SV_DTYPE_F8E4M3 16

/**
 * Floats of 8 bits with 5 exponent bits.
 */
#define SV_DTYPE_F8E5M2 17

/**
 * A truth value; `integer` is 0 or 1.
 */
#define SV_NUMBER_BOOL 0

/**
 * A signed integer, in `integer`.
 */
#define SV_NUMBER_INTEGER 1

/**
 * A real number, in `real`.
 */
#define SV_NUMBER_REAL 2

/**
 * A complex number, in `real` and `imaginary`.
 */
#define SV_NUMBER_COMPLEX 3

/**
 * An unsigned integer: the 64 bits of `integer`.
 */
#define SV_NUMBER_UNSIGNED 4

/**
 * No bound of a slice.
 */
#define SV_OPEN INT64_MIN

/**
 * Exports a copy of the elements, to which the consumer may write.
 */
#define SV_DLPACK_COPY 1

/**
 * Exports elements to which the consumer may write. The tensor shows its writes.
 */
#define SV_DLPACK_WRITABLE 2

/**
 * No stream: the consumer orders its work itself.
 */
#define SV_DLPACK_NO_STREAM (-1)

/**
 * The legacy default stream.
 */
#define SV_DLPACK_LEGACY_STREAM 1

/**
 * The default stream of the calling thread.
 */
#define SV_DLPACK_PER_THREAD_STREAM 2

/**
 * A number, which takes part in an operation by its kind and never by its width. The layout is permanent.
 */
typedef struct sv_number {
  /**
   * One of `SV_NUMBER_...`.
   */
  int32_t kind;
  /**
   * 0.
   */
  int32_t reserved;
  /**
   * The value of a truth value or an integer.
   */
  int64_t integer;
  /**
   * The value of a real number, and the real part of a complex one.
   */
  double real;
  /**
   * The imaginary part of a complex number.
   */
  double imaginary;
} sv_number;

/**
 * A tensor, or a number where `tensor` is 0. The layout is permanent.
 */
typedef struct sv_operand {
  /**
   * The handle of a tensor, or 0.
   */
  sv_tensor tensor;
  /**
   * The number where `tensor` is 0.
   */
  struct sv_number number;
} sv_operand;

/**
 * Positions along an axis, as `start:stop:step` in Python. The layout is permanent.
 */
typedef struct sv_slice {
  /**
   * The axis; a negative one counts from the last.
   */
  int64_t axis;
  /**
   * The first position; a negative one counts from the end; `SV_OPEN` for the beginning.
   */
  int64_t start;
  /**
   * The position behind the last one; `SV_OPEN` for the end.
   */
  int64_t stop;
  /**
   * The step, not 0; a negative one goes backwards.
   */
  int64_t step;
} sv_slice;

/**
 * Gives a tensor of elements in host memory, which are copied: in row-major order, `bytes` in all. A `rank` of 0 is one
 * element without dimensions. `device` is the ordinal of a CUDA device, or `SV_CPU`.
 *
 * Requires: `data` points to `bytes` bytes, and `shape` to `rank` numbers.
 */
int32_t sv_tensor_from_host(const void *data,
                            size_t bytes,
                            int32_t dtype,
                            const int64_t *shape,
                            size_t rank,
                            int32_t device,
                            sv_tensor *result);

/**
 * Gives a tensor of zeros.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_tensor_zeros(int32_t dtype,
                        const int64_t *shape,
                        size_t rank,
                        int32_t device,
                        sv_tensor *result);

/**
 * Gives a tensor of ones.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_tensor_ones(int32_t dtype,
                       const int64_t *shape,
                       size_t rank,
                       int32_t device,
                       sv_tensor *result);

/**
 * Gives a tensor whose elements are all one number, which the dtype must hold.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_tensor_full(const struct sv_number *number,
                       int32_t dtype,
                       const int64_t *shape,
                       size_t rank,
                       int32_t device,
                       sv_tensor *result);

/**
 * Gives the numbers `start`, `start + step` and so on before `end`.
 *
 * Requires: `start`, `end` and `step` point to structs.
 */
int32_t sv_tensor_arange(const struct sv_number *start,
                         const struct sv_number *end,
                         const struct sv_number *step,
                         int32_t dtype,
                         int32_t device,
                         sv_tensor *result);

/**
 * Gives `count` evenly spaced numbers from `start` to `end`, both included.
 */
int32_t sv_tensor_linspace(double start,
                           double end,
                           size_t count,
                           int32_t dtype,
                           int32_t device,
                           sv_tensor *result);

/**
 * Gives a matrix with ones on its main diagonal, and zeros elsewhere.
 */
int32_t sv_tensor_eye(size_t rows,
                      size_t columns,
                      int32_t dtype,
                      int32_t device,
                      sv_tensor *result);

/**
 * Gives a tensor whose elements have any values until they are written.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_tensor_empty(int32_t dtype,
                        const int64_t *shape,
                        size_t rank,
                        int32_t device,
                        sv_tensor *result);

/**
 * Gives a tensor of the shape, the dtype and the device of another one, whose elements are all one number.
 */
int32_t sv_tensor_full_like(sv_tensor tensor,
                            const struct sv_number *number,
                            sv_tensor *result);

/**
 * Gives `count` numbers from `base` to the power of `start` to `base` to the power of `end`, both included, whose exponents are
 * evenly spaced.
 */
int32_t sv_tensor_logspace(double start,
                           double end,
                           size_t count,
                           double base,
                           int32_t dtype,
                           int32_t device,
                           sv_tensor *result);

/**
 * Writes the coordinates of a grid: `count` views of the shape of all vectors' sizes, of which one varies along each axis.
 *
 * The caller owns one reference to each of `results`.
 *
 * Requires: `vectors` points to `count` handles, and `results` to space for `count` handles.
 */
int32_t sv_tensor_meshgrid(const sv_tensor *vectors,
                           size_t count,
                           sv_tensor *results);

/**
 * Writes the dtype of a tensor, one of `SV_DTYPE_...`.
 */
int32_t sv_tensor_dtype(sv_tensor tensor, int32_t *dtype);

/**
 * Writes the device of a tensor: the ordinal of a CUDA device, or `SV_CPU`.
 */
int32_t sv_tensor_device(sv_tensor tensor, int32_t *device);

/**
 * Writes the number of elements of a tensor.
 */
int32_t sv_tensor_count(sv_tensor tensor, uint64_t *count);

/**
 * Writes the only element of a tensor. `kind` follows the dtype. `real` always has the value, of truth values and integers too,
 * rounded to a double, so a program that wants a double reads `real`.
 *
 * It waits for the work that the element needs.
 */
int32_t sv_tensor_item(sv_tensor tensor,
                       struct sv_number *item);

/**
 * Writes the number of dimensions of a tensor, at most 16.
 */
int32_t sv_tensor_rank(sv_tensor tensor, size_t *rank);

/**
 * Writes the sizes of a tensor's dimensions. `rank` is the number of dimensions.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_tensor_shape(sv_tensor tensor, int64_t *shape, size_t rank);

/**
 * Writes the strides of a tensor's dimensions in elements. `rank` is the number of dimensions.
 *
 * Requires: `strides` points to `rank` numbers.
 */
int32_t sv_tensor_strides(sv_tensor tensor, int64_t *strides, size_t rank);

/**
 * Writes 1 if the elements of a tensor are adjacent in memory in row-major order, else 0.
 */
int32_t sv_tensor_is_contiguous(sv_tensor tensor, int32_t *contiguous);

/**
 * Writes a tensor's elements as text, as `sv_library_report` writes its text. Waits for the work that the tensor needs.
 *
 * Requires: `text` points to `capacity` bytes.
 */
int32_t sv_tensor_text(sv_tensor tensor,
                       char *text,
                       size_t capacity,
                       size_t *length);

/**
 * Copies a tensor's elements to the host, in row-major order. `bytes` is their number times the size of one. Waits for the
 * work that the tensor needs, and returns the error of a kernel that faulted.
 *
 * Requires: `data` points to `bytes` bytes.
 */
int32_t sv_tensor_to_host(sv_tensor tensor,
                          void *data,
                          size_t bytes);

/**
 * Gives a tensor's elements on another device. They are shared if they are there already.
 *
 * To and from the CPU the copy is done when the call returns.
 */
int32_t sv_tensor_to_device(sv_tensor tensor, int32_t device, sv_tensor *result);

/**
 * Gives a tensor's elements in another dtype. They are shared if they have it already. Floats become integers by dropping
 * the fraction and saturating, NaN becomes 0, and a complex number gives its real part.
 */
int32_t sv_tensor_cast(sv_tensor tensor,
                       int32_t dtype,
                       sv_tensor *result);

/**
 * Gives a tensor's elements adjacent in memory. They are shared if they are so already.
 */
int32_t sv_tensor_contiguous(sv_tensor tensor, sv_tensor *result);

/**
 * Gives a copy of a tensor's elements, adjacent in memory of its own.
 */
int32_t sv_tensor_copy(sv_tensor tensor, sv_tensor *result);

/**
 * Reads an `.npy` file. `path` is UTF-8 and ends with a zero byte.
 */
int32_t sv_tensor_read_npy(const char *path, int32_t device, sv_tensor *result);

/**
 * Reads the array of a name from an `.npz` file.
 */
int32_t sv_tensor_read_npz(const char *path, const char *name, int32_t device, sv_tensor *result);

/**
 * Writes a tensor to an `.npy` file, replacing the file at that path.
 */
int32_t sv_tensor_write_npy(sv_tensor tensor, const char *path);

/**
 * Writes tensors with their names to an `.npz` file, replacing the file at that path. `compress` is 1 to compress it, or 0.
 *
 * Requires: `names` points to `count` texts, and `tensors` to `count` handles.
 */
int32_t sv_tensor_write_npz(const char *path,
                            const char *const *names,
                            const sv_tensor *tensors,
                            size_t count,
                            int32_t compress);

/**
 * Reads the tensor of a name from a safetensors file, or from the files of a `model.safetensors.index.json`.
 */
int32_t sv_tensor_read_safetensors(const char *path,
                                   const char *name,
                                   int32_t device,
                                   sv_tensor *result);

/**
 * Writes the names of the tensors in a safetensors file, one a line, in the file's order. The text is cut to fit `capacity`;
 * `*length` gets the bytes of the whole text.
 *
 * Requires: `path` points to a zero-terminated text, `names` is NULL or points to `capacity` bytes, and `length` is NULL or points to a
 * `size_t`.
 */
int32_t sv_safetensors_names(const char *path,
                             char *names,
                             size_t capacity,
                             size_t *length);

/**
 * Writes tensors with their names to a safetensors file, replacing the file at that path.
 *
 * Requires: `names` points to `count` texts, and `tensors` to `count` handles.
 */
int32_t sv_tensor_write_safetensors(const char *path,
                                    const char *const *names,
                                    const sv_tensor *tensors,
                                    size_t count);

/**
 * Exports a tensor's elements without a copy, as a `DLManagedTensorVersioned *` of DLPack 1.x.
 *
 * The consumer calls the struct's deleter once; until then the elements live, whatever happens to the handle. `flags` is 0
 * for a consumer that only reads (the struct says so), `SV_DLPACK_COPY` for a copy, or `SV_DLPACK_WRITABLE` for elements that
 * both sides may write. `SV_DLPACK_WRITABLE` copies elements that other tensors share.
 *
 * `stream` is the consumer's stream, as `__dlpack__` of the Python array API has it: `SV_DLPACK_NO_STREAM`,
 * `SV_DLPACK_LEGACY_STREAM`, `SV_DLPACK_PER_THREAD_STREAM` or a `CUstream`. That stream waits for the work that writes the
 * elements, and their memory is reused behind its work up to the deleter's call; the host does not wait. For a tensor on the
 * CPU it has no meaning. The stream of the thread is ordered through the legacy default stream. A tensor of
 * `sv_tensor_from_pinned` is exported as pinned memory (device type 3).
 *
 * Any thread may call the deleter.
 *
 * Requires: A `CUstream` is live until the deleter is called. The consumer writes to the elements only as `flags` allow, and ordered with
 * this library's uses.
 */
int32_t sv_tensor_to_dlpack(sv_tensor tensor,
                            uint32_t flags,
                            int64_t stream,
                            void **managed);

/**
 * Exports as `sv_tensor_to_dlpack`, as a `DLManagedTensor *` of DLPack before 1.0. It has no flags, so it does not tell the
 * consumer that it may only read.
 *
 * Any thread may call the deleter.
 *
 * Requires: As for `sv_tensor_to_dlpack`.
 */
int32_t sv_tensor_to_dlpack_legacy(sv_tensor tensor,
                                   uint32_t flags,
                                   int64_t stream,
                                   void **managed);

/**
 * Takes over the array of a `DLManagedTensorVersioned *` without a copy.
 *
 * The array is on the CPU, in pinned memory or on a CUDA device. On a CUDA device the producer orders its work before the
 * stream of this thread's operations first: `sv_stream_current` and `sv_stream_raw` give that stream for `__dlpack__(stream)`.
 * The first write to the tensor copies the elements, whatever the producer's flags say: the producer, other imports of its
 * array and views of the tensor never see a write of this library.
 *
 * The deleter is called once, when no tensor shares the elements any more and all work on them is done, on the thread that finds
 * this out. If the call fails, the struct stays the caller's, who calls the deleter.
 *
 * Requires: `managed` points to a struct as DLPack describes it, which nobody else takes over. Until the deleter is called, other code
 * uses the elements ordered with this library's uses.
 */
int32_t sv_tensor_from_dlpack(void *managed,
                              sv_tensor *result);

/**
 * Takes over an array as `sv_tensor_from_dlpack`, of a `DLManagedTensor *` from before DLPack 1.0.
 *
 * Requires: As for `sv_tensor_from_dlpack`.
 */
int32_t sv_tensor_from_dlpack_legacy(void *managed, sv_tensor *result);

/* ---- 3. Elementwise operations ---- */

/* sv_exp(x, &result), sv_add(x, y, &result), sv_choose(mask, a, b, &result): a function for each code SV_OP_... below, by its
 * name in lower case, and sv_add_in_place(x, y) and so on. Macros at the end of this section define them. */

/**
 * x + y; integers wrap, bools are or-ed.
 */
#define SV_OP_ADD 1

/**
 * x - y; integers wrap.
 */
#define SV_OP_SUB 2

/**
 * x · y; integers wrap, bools are and-ed.
 */
#define SV_OP_MUL 3

/**
 * x / y. Integers are divided in f32. Complex numbers use Smith's scaled formula; as in C99, a number other than 0 and NaN divided by 0 is infinite.
 */
#define SV_OP_DIV 4

/**
 * The upper half of the product x · y.
 */
#define SV_OP_MUL_HIGH 95

/**
 * x / y rounded down. Integer division by 0 gives 0, and the minimum divided by -1 wraps to itself. For floats, the quotient matches `remainder`.
 */
#define SV_OP_FLOOR_DIVIDE 5

/**
 * x / y rounded towards 0. Integer division by 0 gives 0, and the minimum divided by -1 wraps to itself.
 */
#define SV_OP_TRUNC_DIVIDE 6

/**
 * The remainder of `floor_divide`, with the sign of y (zeros too, as in Python); 0 for integers if y is 0.
 */
#define SV_OP_REMAINDER 7

/**
 * The exact remainder of `trunc_divide`, with the sign of x; 0 for integers if y is 0.
 */
#define SV_OP_FMOD 8

/**
 * -x; integers wrap.
 */
#define SV_OP_NEG 9

/**
 * |x|, exact for real numbers; the minimum integer wraps to itself. For complex numbers, the magnitude.
 */
#define SV_OP_ABS 10

/**
 * 1, 0 or -1 with the sign of x; zeros and NaN are unchanged. For complex numbers, x / |x|, and 0 at 0.
 */
#define SV_OP_SIGN 11

/**
 * The square root, rounded to nearest. For real numbers, NaN below 0; for complex numbers, the root with a nonnegative real part.
 */
#define SV_OP_SQRT 12

/**
 * 1 / sqrt(x); for real numbers both steps round to nearest.
 */
#define SV_OP_RSQRT 13

/**
 * 1 / x.
 */
#define SV_OP_RECIPROCAL 14

/**
 * x · x.
 */
#define SV_OP_SQUARE 15

/**
 * The largest integer at most x.
 */
#define SV_OP_FLOOR 16

/**
 * The smallest integer at least x.
 */
#define SV_OP_CEIL 17

/**
 * x rounded towards 0.
 */
#define SV_OP_TRUNC 18

/**
 * x rounded to the nearest integer, ties to even.
 */
#define SV_OP_ROUND 19

/**
 * x - trunc(x), exact, with the sign of x; NaN for infinities.
 */
#define SV_OP_FRAC 20

/**
 * max(x, 0); NaN stays NaN.
 */
#define SV_OP_RELU 21

/**
 * The smaller operand; NaN if either is NaN. -0 is less than 0.
 */
#define SV_OP_MINIMUM 22

/**
 * The larger operand; NaN if either is NaN. 0 is greater than -0.
 */
#define SV_OP_MAXIMUM 23

/**
 * The smaller operand; the other operand if one is NaN.
 */
#define SV_OP_FMIN 24

/**
 * The larger operand; the other operand if one is NaN.
 */
#define SV_OP_FMAX 25

/**
 * min(max(x, low), high): NaN if any operand is NaN, and high if low exceeds it.
 */
#define SV_OP_CLAMP 26

/**
 * True if x equals y; NaN equals nothing.
 */
#define SV_OP_EQ 27

/**
 * True if x differs from y; true if either is NaN.
 */
#define SV_OP_NE 28

/**
 * True if x < y; false if either is NaN.
 */
#define SV_OP_LT 29

/**
 * True if x <= y; false if either is NaN.
 */
#define SV_OP_LE 30

/**
 * True if x > y; false if either is NaN.
 */
#define SV_OP_GT 31

/**
 * True if x >= y; false if either is NaN.
 */
#define SV_OP_GE 32

/**
 * True if x is NaN; for complex numbers, if either part is.
 */
#define SV_OP_IS_NAN 33

/**
 * True if x is infinite; for complex numbers, if either part is.
 */
#define SV_OP_IS_INFINITE 34

/**
 * True if x is neither NaN nor infinite; for complex numbers, if both parts are finite.
 */
#define SV_OP_IS_FINITE 35

/**
 * True if both operands are nonzero.
 */
#define SV_OP_LOGICAL_AND 36

/**
 * True if either operand is nonzero.
 */
#define SV_OP_LOGICAL_OR 37

/**
 * True if exactly one operand is nonzero.
 */
#define SV_OP_LOGICAL_XOR 38

/**
 * True if x is 0.
 */
#define SV_OP_LOGICAL_NOT 39

/**
 * The bitwise and.
 */
#define SV_OP_BIT_AND 40

/**
 * The bitwise or.
 */
#define SV_OP_BIT_OR 41

/**
 * The bitwise exclusive or.
 */
#define SV_OP_BIT_XOR 42

/**
 * The bitwise complement.
 */
#define SV_OP_BIT_NOT 43

/**
 * x · 2^y, wrapped; 0 if y is negative or at least the width.
 */
#define SV_OP_SHIFT_LEFT 44

/**
 * x / 2^y rounded down; 0, or -1 for a negative x, if y is negative or at least the width.
 */
#define SV_OP_SHIFT_RIGHT 45

/**
 * The second operand if the first is true, otherwise the third.
 */
#define SV_OP_CHOOSE 46

/**
 * x · y + z, rounded once; integers wrap.
 */
#define SV_OP_FMA 47

/**
 * The interpolation from x to y by weight z: x + z (y - x) below 1/2, otherwise y - (y - x) (1 - z); x (1 - z) + y z if y - x of finite ends overflows.
 */
#define SV_OP_LERP 48

/**
 * |x| with the sign of y.
 */
#define SV_OP_COPYSIGN 49

/**
 * sqrt(x² + y²) without intermediate overflow; infinite if either operand is.
 */
#define SV_OP_HYPOT 50

/**
 * The real part.
 */
#define SV_OP_REAL 51

/**
 * The imaginary part; 0 for real numbers.
 */
#define SV_OP_IMAG 52

/**
 * The complex conjugate; real numbers are unchanged.
 */
#define SV_OP_CONJ 53

/**
 * e^x.
 */
#define SV_OP_EXP 54

/**
 * 2^x.
 */
#define SV_OP_EXP2 55

/**
 * e^x - 1, accurate near 0.
 */
#define SV_OP_EXPM1 56

/**
 * The natural logarithm; for real numbers, NaN below 0.
 */
#define SV_OP_LOG 57

/**
 * The logarithm to base 2, exact for powers of 2.
 */
#define SV_OP_LOG2 58

/**
 * The logarithm to base 10.
 */
#define SV_OP_LOG10 59

/**
 * ln(1 + x), accurate near 0.
 */
#define SV_OP_LOG1P 60

/**
 * The hyperbolic sine.
 */
#define SV_OP_SINH 61

/**
 * The hyperbolic cosine.
 */
#define SV_OP_COSH 62

/**
 * The hyperbolic tangent.
 */
#define SV_OP_TANH 63

/**
 * The inverse hyperbolic sine.
 */
#define SV_OP_ASINH 64

/**
 * The inverse hyperbolic cosine; for real numbers, NaN below 1.
 */
#define SV_OP_ACOSH 65

/**
 * The inverse hyperbolic tangent; infinite at 1 and -1, and for real numbers NaN beyond.
 */
#define SV_OP_ATANH 66

/**
 * 1 / (1 + e^-x).
 */
#define SV_OP_SIGMOID 67

/**
 * x · sigmoid(x); -0 for minus infinity.
 */
#define SV_OP_SILU 68

/**
 * ln(1 + e^x).
 */
#define SV_OP_SOFTPLUS 69

/**
 * The sine, for any finite argument; NaN for infinities.
 */
#define SV_OP_SIN 70

/**
 * The cosine, for any finite argument; NaN for infinities.
 */
#define SV_OP_COS 71

/**
 * The tangent, for any finite argument; NaN for infinities.
 */
#define SV_OP_TAN 72

/**
 * The inverse sine; for real numbers, NaN beyond 1 and -1.
 */
#define SV_OP_ASIN 73

/**
 * The inverse cosine; for real numbers, NaN beyond 1 and -1.
 */
#define SV_OP_ACOS 74

/**
 * The inverse tangent.
 */
#define SV_OP_ATAN 75

/**
 * The angle of the point (second operand, first operand), from -π to π. Signs of zeros count, and two infinities lie on a diagonal.
 */
#define SV_OP_ATAN2 76

/**
 * sin(πx) / (πx), 1 at 0, as in NumPy.
 */
#define SV_OP_SINC 77

/**
 * The angle of a complex number, as `atan2` gives it; for real numbers, π below 0 and otherwise 0.
 */
#define SV_OP_ANGLE 78

/**
 * x to the power y, as in C: 1 if y is 0 or x is 1, NaN for a negative x with a fractional y. Integers wrap, and a negative y gives 0 except for x of 1 and -1, as in PyTorch (NumPy refuses it): 2 to the power -1 is 0. For complex numbers, e^(y ln x); the error bound holds up to |y ln x| of 6, and the error grows beyond.
 */
#define SV_OP_POW 79

/**
 * The cube root, for negative numbers too; exact for cubes.
 */
#define SV_OP_CBRT 80

/**
 * The error function.
 */
#define SV_OP_ERF 81

/**
 * 1 - erf(x), accurate if that is small.
 */
#define SV_OP_ERFC 82

/**
 * x Φ(x) with the normal distribution function Φ, accurate for negative x too; -0 for minus infinity.
 */
#define SV_OP_GELU 83

/**
 * x (1 + tanh(sqrt(2/π) (x + 0.044715 x³))) / 2, accurate for negative x too; -0 for minus infinity.
 */
#define SV_OP_GELU_TANH 84

/**
 * ln |Γ(x)|; infinite at 0 and negative integers. Below 0 the error is relative to the larger of 1 and ln Γ(|x|).
 */
#define SV_OP_LGAMMA 85

/**
 * ln(x / (1 - x)); infinite at 0 and 1, NaN beyond.
 */
#define SV_OP_LOGIT 86

/**
 * ln(e^x + e^y) without overflow; near 0 the error is relative to the operands.
 */
#define SV_OP_LOG_ADD_EXP 87

/**
 * x ln(y); 0 if x is 0 and y is not NaN.
 */
#define SV_OP_XLOGY 88

/**
 * x ln(1 + y); 0 if x is 0 and y is not NaN.
 */
#define SV_OP_XLOG1PY 89

/**
 * 0 below 0, 1 above, y at 0; NaN for NaN.
 */
#define SV_OP_HEAVISIDE 90

/**
 * The next number of the dtype after x towards y; y if they are equal.
 */
#define SV_OP_NEXT_AFTER 91

/**
 * True if the sign bit is set, for -0 too.
 */
#define SV_OP_SIGNBIT 92

/**
 * x · π/180, with the constant rounded to nearest.
 */
#define SV_OP_RADIANS 93

/**
 * x · 180/π, with the constant rounded to nearest.
 */
#define SV_OP_DEGREES 94

/**
 * Computes an elementwise operation, one of `SV_OP_...`, on `count` operands, each a tensor or a number. At least one of them
 * is a tensor. Dtypes are promoted and shapes broadcast as in PyTorch.
 *
 * Requires: `operands` points to `count` structs.
 */
int32_t sv_operation(uint32_t operation,
                     const struct sv_operand *operands,
                     size_t count,
                     sv_tensor *result);

/**
 * Computes an elementwise operation of one tensor; see `sv_operation`.
 */
int32_t sv_unary(uint32_t operation, sv_tensor x, sv_tensor *result);

/**
 * Computes an elementwise operation of two tensors; see `sv_operation`.
 */
int32_t sv_binary(uint32_t operation, sv_tensor x, sv_tensor y, sv_tensor *result);

/**
 * Computes an elementwise operation of three tensors; see `sv_operation`.
 */
int32_t sv_ternary(uint32_t operation, sv_tensor x, sv_tensor y, sv_tensor z, sv_tensor *result);

/**
 * Replaces a tensor's elements by an operation's result on them and `count` other operands. The result is converted to
 * their dtype, which must be able to hold it. Other tensors that shared the elements do not change.
 *
 * Requires: `others` points to `count` structs.
 */
int32_t sv_operation_in_place(uint32_t operation,
                              sv_tensor tensor,
                              const struct sv_operand *others,
                              size_t count);

/**
 * Writes an operation's result into a tensor that is there, to whose shape the `count` operands broadcast and whose dtype
 * must be able to hold the result. The first operand is a tensor.
 *
 * Others that use the handle of `output` wait meanwhile.
 *
 * Requires: `operands` points to `count` structs.
 */
int32_t sv_operation_into(uint32_t operation,
                          const struct sv_operand *operands,
                          size_t count,
                          sv_tensor output);

/**
 * Replaces a tensor's elements by those of a tensor, which is broadcast and cast, or by a number.
 */
int32_t sv_tensor_assign(sv_tensor tensor, const struct sv_operand *value);

/**
 * Replaces a part of a tensor's elements, as `sv_tensor_assign`: the positions that `count` slices name, one after the other.
 *
 * Requires: `slices` points to `count` structs.
 */
int32_t sv_tensor_assign_slice(sv_tensor tensor,
                               const struct sv_slice *slices,
                               size_t count,
                               const struct sv_operand *value);

/**
 * Writes the name of an operation, such as `add`. `text`, `capacity` and `length` are as for `sv_library_report`.
 *
 * Requires: `text` points to `capacity` bytes.
 */
int32_t sv_operation_name(uint32_t operation,
                          char *text,
                          size_t capacity,
                          size_t *length);

/**
 * Writes the code of the operation of a name.
 */
int32_t sv_operation_code(const char *name, uint32_t *operation);

/**
 * Writes the number of operands of an operation: 1, 2 or 3.
 */
int32_t sv_operation_arity(uint32_t operation, size_t *arity);

/* A function of the header itself. */
#if defined(__cplusplus)
#define SV_INLINE inline
#elif defined(__GNUC__)
#define SV_INLINE static __inline__ __attribute__((unused))
#elif defined(_MSC_VER)
#define SV_INLINE static __inline
#else
#define SV_INLINE static
#endif

/**
 * Returns an operand of its parts: a tensor, or with NULL a number of a kind.
 */
SV_INLINE sv_operand sv_operand_with(sv_tensor tensor, int32_t kind, int64_t integer, double real)
{
  sv_operand operand;
  operand.tensor = tensor;
  operand.number.kind = kind;
  operand.number.reserved = 0;
  operand.number.integer = integer;
  operand.number.real = real;
  operand.number.imaginary = 0;
  return operand;
}

/**
 * Returns a tensor as an operand.
 */
SV_INLINE sv_operand sv_operand_of(sv_tensor tensor)
{
  /* NULL would stand for a number. */
  return sv_operand_with(tensor ? tensor : SV_NO_TENSOR, SV_NUMBER_BOOL, 0, 0);
}

/**
 * Returns a real number as an operand.
 */
SV_INLINE sv_operand sv_operand_real(double number)
{
  return sv_operand_with(NULL, SV_NUMBER_REAL, 0, number);
}

/**
 * Returns an integer as an operand.
 */
SV_INLINE sv_operand sv_operand_integer(int64_t number)
{
  return sv_operand_with(NULL, SV_NUMBER_INTEGER, number, 0);
}

/**
 * X(name, code) for each operation of one tensor: its name, and the end of its code.
 */
#define SV_UNARY_OPERATIONS(X) \
  X(neg, NEG) X(abs, ABS) X(sign, SIGN) X(sqrt, SQRT) X(rsqrt, RSQRT) X(reciprocal, RECIPROCAL) X(square, SQUARE) \
  X(floor, FLOOR) X(ceil, CEIL) X(trunc, TRUNC) X(round, ROUND) X(frac, FRAC) X(relu, RELU) X(is_nan, IS_NAN) \
  X(is_infinite, IS_INFINITE) X(is_finite, IS_FINITE) X(logical_not, LOGICAL_NOT) X(bit_not, BIT_NOT) X(real, REAL) \
  X(imag, IMAG) X(conj, CONJ) X(exp, EXP) X(exp2, EXP2) X(expm1, EXPM1) X(log, LOG) X(log2, LOG2) X(log10, LOG10) \
  X(log1p, LOG1P) X(sinh, SINH) X(cosh, COSH) X(tanh, TANH) X(asinh, ASINH) X(acosh, ACOSH) X(atanh, ATANH) \
  X(sigmoid, SIGMOID) X(silu, SILU) X(softplus, SOFTPLUS) X(sin, SIN) X(cos, COS) X(tan, TAN) X(asin, ASIN) \
  X(acos, ACOS) X(atan, ATAN) X(sinc, SINC) X(angle, ANGLE) X(cbrt, CBRT) X(erf, ERF) X(erfc, ERFC) X(gelu, GELU) \
  X(gelu_tanh, GELU_TANH) X(lgamma, LGAMMA) X(logit, LOGIT) X(signbit, SIGNBIT) X(radians, RADIANS) \
  X(degrees, DEGREES)

/**
 * X(name, code) for each operation of two tensors: its name, and the end of its code.
 */
#define SV_BINARY_OPERATIONS(X) \
  X(add, ADD) X(sub, SUB) X(mul, MUL) X(div, DIV) X(mul_high, MUL_HIGH) X(floor_divide, FLOOR_DIVIDE) \
  X(trunc_divide, TRUNC_DIVIDE) X(remainder, REMAINDER) X(fmod, FMOD) X(minimum, MINIMUM) X(maximum, MAXIMUM) \
  X(fmin, FMIN) X(fmax, FMAX) X(eq, EQ) X(ne, NE) X(lt, LT) X(le, LE) X(gt, GT) X(ge, GE) X(logical_and, LOGICAL_AND) \
  X(logical_or, LOGICAL_OR) X(logical_xor, LOGICAL_XOR) X(bit_and, BIT_AND) X(bit_or, BIT_OR) X(bit_xor, BIT_XOR) \
  X(shift_left, SHIFT_LEFT) X(shift_right, SHIFT_RIGHT) X(copysign, COPYSIGN) X(hypot, HYPOT) X(atan2, ATAN2) \
  X(pow, POW) X(log_add_exp, LOG_ADD_EXP) X(xlogy, XLOGY) X(xlog1py, XLOG1PY) X(heaviside, HEAVISIDE) \
  X(next_after, NEXT_AFTER)

/**
 * X(name, code) for each operation of three tensors: its name, and the end of its code.
 */
#define SV_TERNARY_OPERATIONS(X) \
  X(clamp, CLAMP) X(choose, CHOOSE) X(fma, FMA) X(lerp, LERP)

/*
 * sv_exp(x, &result), sv_add(x, y, &result) and so on, a function for each row of the lists: sv_unary(), sv_binary() or
 * sv_ternary() of its code. sv_add_in_place(x, y) and so on are sv_operation_in_place() of it. The comments of the codes say what
 * each operation computes. The functions are not among the symbols of the library.
 */
#define SV_DEFINE_UNARY(name, code) \
  SV_INLINE int32_t sv_##name(sv_tensor x, sv_tensor *result) \
  { \
    return sv_unary(SV_OP_##code, x, result); \
  } \
  SV_INLINE int32_t sv_##name##_in_place(sv_tensor x) \
  { \
    return sv_operation_in_place(SV_OP_##code, x, NULL, 0); \
  }
#define SV_DEFINE_BINARY(name, code) \
  SV_INLINE int32_t sv_##name(sv_tensor x, sv_tensor y, sv_tensor *result) \
  { \
    return sv_binary(SV_OP_##code, x, y, result); \
  } \
  SV_INLINE int32_t sv_##name##_in_place(sv_tensor x, sv_tensor y) \
  { \
    sv_operand other = sv_operand_of(y); \
    return sv_operation_in_place(SV_OP_##code, x, &other, 1); \
  }
#define SV_DEFINE_TERNARY(name, code) \
  SV_INLINE int32_t sv_##name(sv_tensor x, sv_tensor y, sv_tensor z, sv_tensor *result) \
  { \
    return sv_ternary(SV_OP_##code, x, y, z, result); \
  } \
  SV_INLINE int32_t sv_##name##_in_place(sv_tensor x, sv_tensor y, sv_tensor z) \
  { \
    sv_operand others[2]; \
    others[0] = sv_operand_of(y); \
    others[1] = sv_operand_of(z); \
    return sv_operation_in_place(SV_OP_##code, x, others, 2); \
  }

SV_UNARY_OPERATIONS(SV_DEFINE_UNARY)
SV_BINARY_OPERATIONS(SV_DEFINE_BINARY)
SV_TERNARY_OPERATIONS(SV_DEFINE_TERNARY)

#undef SV_DEFINE_UNARY
#undef SV_DEFINE_BINARY
#undef SV_DEFINE_TERNARY

/* ---- 4. Shapes, views and indexing ---- */

/**
 * Padding with one number.
 */
#define SV_PADDING_CONSTANT 0

/**
 * Padding with the elements mirrored at the first and the last one, which are not repeated.
 */
#define SV_PADDING_REFLECT 1

/**
 * Padding with the first and the last element.
 */
#define SV_PADDING_REPLICATE 2

/**
 * Padding with the elements from the other end.
 */
#define SV_PADDING_CIRCULAR 3

/**
 * One position, in `start`, which removes the axis. A negative one counts from the end.
 */
#define SV_INDEX_AT 1

/**
 * The positions `start:stop:step`.
 */
#define SV_INDEX_SLICE 2

/**
 * A new axis of size 1.
 */
#define SV_INDEX_NEW_AXIS 3

/**
 * All axes that no other entry takes; at most once, and at the end if it is left out.
 */
#define SV_INDEX_ELLIPSIS 4

/**
 * A tensor: integers for one axis, or a mask of bools for as many axes as it has.
 */
#define SV_INDEX_TENSOR 5

/**
 * One entry of an index expression. The layout is permanent.
 */
typedef struct sv_index {
  /**
   * One of `SV_INDEX_...`, which says the fields that are read.
   */
  int32_t kind;
  /**
   * 0.
   */
  int32_t reserved;
  /**
   * The handle of the tensor.
   */
  sv_tensor tensor;
  /**
   * The position, or the first one of a slice; `SV_OPEN` for the beginning.
   */
  int64_t start;
  /**
   * The position behind the last one of a slice; `SV_OPEN` for the end.
   */
  int64_t stop;
  /**
   * The step of a slice, not 0; a negative one goes backwards.
   */
  int64_t step;
} sv_index;

/**
 * Joins tensors along an axis.
 *
 * Requires: `tensors` points to `count` handles.
 */
int32_t sv_tensor_cat(const sv_tensor *tensors, size_t count, int64_t axis, sv_tensor *result);

/**
 * Joins tensors of one shape along a new axis.
 *
 * Requires: `tensors` points to `count` handles.
 */
int32_t sv_tensor_stack(const sv_tensor *tensors, size_t count, int64_t axis, sv_tensor *result);

/**
 * Moves elements along axes; what leaves at one end comes back at the other.
 *
 * Requires: `shifts` and `axes` point to `count` numbers each.
 */
int32_t sv_tensor_roll(sv_tensor tensor,
                       const int64_t *shifts,
                       const int64_t *axes,
                       size_t count,
                       sv_tensor *result);

/**
 * Repeats a tensor this many times along each axis.
 *
 * Requires: `times` points to `count` numbers.
 */
int32_t sv_tensor_repeat(sv_tensor tensor, const int64_t *times, size_t count, sv_tensor *result);

/**
 * Repeats each position along an axis.
 */
int32_t sv_tensor_repeat_interleave(sv_tensor tensor,
                                    size_t times,
                                    int64_t axis,
                                    sv_tensor *result);

/**
 * Pads a tensor: `widths[2 * i]` elements before and `widths[2 * i + 1]` behind axis `i`, for the first `count` axes. `mode`
 * is one of `SV_PADDING_...`; only `SV_PADDING_CONSTANT` uses `number`.
 *
 * Requires: `widths` points to `2 * count` numbers, and `number` to a struct where the mode uses it.
 */
int32_t sv_tensor_pad(sv_tensor tensor,
                      const int64_t *widths,
                      size_t count,
                      int32_t mode,
                      const struct sv_number *number,
                      sv_tensor *result);

/**
 * Gives the lower triangle of matrices, with zeros above the diagonal `diagonal`.
 */
int32_t sv_tensor_tril(sv_tensor tensor, int64_t diagonal, sv_tensor *result);

/**
 * Gives the upper triangle of matrices, with zeros below the diagonal `diagonal`.
 */
int32_t sv_tensor_triu(sv_tensor tensor, int64_t diagonal, sv_tensor *result);

/**
 * Gives a tensor with a value where a mask of bools is true.
 */
int32_t sv_tensor_masked_fill(sv_tensor tensor,
                              sv_tensor mask,
                              const struct sv_operand *value,
                              sv_tensor *result);

/**
 * Gives positions along axes, one axis after the other, as `start:stop:step` in Python.
 *
 * Requires: `slices` points to `count` structs.
 */
int32_t sv_tensor_slice(sv_tensor tensor,
                        const struct sv_slice *slices,
                        size_t count,
                        sv_tensor *result);

/**
 * Gives one position along an axis, without that axis. A negative index counts from the end.
 */
int32_t sv_tensor_select(sv_tensor tensor, int64_t axis, int64_t index, sv_tensor *result);

/**
 * Gives `length` positions along an axis from `start` on.
 */
int32_t sv_tensor_narrow(sv_tensor tensor,
                         int64_t axis,
                         size_t start,
                         size_t length,
                         sv_tensor *result);

/**
 * Gives a tensor with two axes exchanged.
 */
int32_t sv_tensor_transpose(sv_tensor tensor, int64_t first, int64_t second, sv_tensor *result);

/**
 * Gives the axes in another order: axis `i` of the result is `axes[i]` of the tensor.
 *
 * Requires: `axes` points to `count` numbers.
 */
int32_t sv_tensor_permute(sv_tensor tensor, const int64_t *axes, size_t count, sv_tensor *result);

/**
 * Moves axes to other places; the others keep their order.
 *
 * Requires: `from` and `to` point to `count` numbers each.
 */
int32_t sv_tensor_movedim(sv_tensor tensor,
                          const int64_t *from,
                          const int64_t *to,
                          size_t count,
                          sv_tensor *result);

/**
 * Gives the elements in row-major order as another shape, in which one size may be -1. Copies them if strides cannot
 * describe the result.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_tensor_reshape(sv_tensor tensor,
                          const int64_t *shape,
                          size_t rank,
                          sv_tensor *result);

/**
 * Gives the axes from `first` to `last`, both included, as one. Copies the elements if strides cannot describe the result.
 */
int32_t sv_tensor_flatten(sv_tensor tensor,
                          int64_t first,
                          int64_t last,
                          sv_tensor *result);

/**
 * Repeats a tensor to a larger shape: axes of size 1, and new ones in front, take its sizes.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_tensor_expand(sv_tensor tensor, const int64_t *shape, size_t rank, sv_tensor *result);

/**
 * Drops an axis of size 1.
 */
int32_t sv_tensor_squeeze(sv_tensor tensor, int64_t axis, sv_tensor *result);

/**
 * Drops all axes of size 1.
 */
int32_t sv_tensor_squeeze_all(sv_tensor tensor, sv_tensor *result);

/**
 * Adds an axis of size 1 before `axis`; -1 puts it last.
 */
int32_t sv_tensor_unsqueeze(sv_tensor tensor, int64_t axis, sv_tensor *result);

/**
 * Reverses axes.
 *
 * Requires: `axes` points to `count` numbers.
 */
int32_t sv_tensor_flip(sv_tensor tensor, const int64_t *axes, size_t count, sv_tensor *result);

/**
 * Gives the elements whose positions along two axes differ by `offset`, as a new last axis in place of both.
 */
int32_t sv_tensor_diagonal(sv_tensor tensor,
                           int64_t offset,
                           int64_t first,
                           int64_t second,
                           sv_tensor *result);

/**
 * Gives windows of `size` positions along an axis, `step` apart; a new last axis has the positions in each.
 */
int32_t sv_tensor_unfold(sv_tensor tensor,
                         int64_t axis,
                         size_t size,
                         size_t step,
                         sv_tensor *result);

/**
 * Writes views of `count` parts of a tensor along an axis, of these sizes.
 *
 * The caller owns one reference to each of `results`.
 *
 * Requires: `sizes` points to `count` numbers, and `results` to space for `count` handles.
 */
int32_t sv_tensor_split(sv_tensor tensor,
                        const int64_t *sizes,
                        size_t count,
                        int64_t axis,
                        sv_tensor *results);

/**
 * Gives all elements along one axis, in row-major order: a view if the elements allow one.
 */
int32_t sv_tensor_ravel(sv_tensor tensor, sv_tensor *result);

/**
 * Gives an axis as several ones of these sizes, of which one may be -1 for the rest.
 *
 * Requires: `sizes` points to `count` numbers.
 */
int32_t sv_tensor_unflatten(sv_tensor tensor,
                            int64_t axis,
                            const int64_t *sizes,
                            size_t count,
                            sv_tensor *result);

/**
 * Gives the same bytes as elements of another dtype. The last axis changes if the dtypes differ in size.
 */
int32_t sv_tensor_view_dtype(sv_tensor tensor,
                             int32_t dtype,
                             sv_tensor *result);

/**
 * Gives complex numbers as real ones with a last axis of size 2.
 */
int32_t sv_tensor_view_as_real(sv_tensor tensor, sv_tensor *result);

/**
 * Gives real numbers whose last axis has size 2 as complex ones.
 */
int32_t sv_tensor_view_as_complex(sv_tensor tensor, sv_tensor *result);

/**
 * Gives the elements that an index expression of `count` entries names, as `x[...]` in NumPy and PyTorch. The result is a view
 * unless an entry is a tensor.
 *
 * An index out of range in a tensor is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the
 * next call that waits for the device.
 *
 * It waits for the device if an entry is a mask.
 *
 * Requires: `items` points to `count` structs.
 */
int32_t sv_tensor_index(sv_tensor tensor,
                        const struct sv_index *items,
                        size_t count,
                        sv_tensor *result);

/**
 * Gives a tensor in which the elements that an index expression names are replaced by a value, which is broadcast.
 *
 * It waits for the device if an entry is a mask.
 *
 * Requires: `items` points to `count` structs.
 */
int32_t sv_tensor_index_assign(sv_tensor tensor,
                               const struct sv_index *items,
                               size_t count,
                               const struct sv_operand *value,
                               sv_tensor *result);

/**
 * Replaces the elements that an index expression names by a value, which is broadcast.
 *
 * Requires: `items` points to `count` structs.
 */
int32_t sv_tensor_index_assign_in_place(sv_tensor tensor,
                                        const struct sv_index *items,
                                        size_t count,
                                        const struct sv_operand *value);

/**
 * Gives for each element of the index the element at the same position but along `axis`, where the index says.
 *
 * An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
 * waits for the device.
 */
int32_t sv_tensor_gather(sv_tensor tensor,
                         int64_t axis,
                         sv_tensor index,
                         sv_tensor *result);

/**
 * Gives the positions along an axis that a list of indices names.
 *
 * An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
 * waits for the device.
 */
int32_t sv_tensor_index_select(sv_tensor tensor,
                               int64_t axis,
                               sv_tensor index,
                               sv_tensor *result);

/**
 * Gives the elements that an index names by their row-major position.
 *
 * An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
 * waits for the device.
 */
int32_t sv_tensor_take(sv_tensor tensor,
                       sv_tensor index,
                       sv_tensor *result);

/**
 * Gives elements along an axis as `sv_tensor_gather`, with an index that is broadcast along the other axes.
 *
 * An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
 * waits for the device.
 */
int32_t sv_tensor_take_along_axis(sv_tensor tensor,
                                  int64_t axis,
                                  sv_tensor index,
                                  sv_tensor *result);

/**
 * Gives a new last axis of `classes` positions for each integer, with 1 at the integer and 0 elsewhere.
 */
int32_t sv_tensor_one_hot(sv_tensor tensor,
                          size_t classes,
                          sv_tensor *result);

/**
 * Gives a tensor with elements written along an axis where an index says.
 *
 * An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
 * waits for the device.
 */
int32_t sv_tensor_scatter(sv_tensor tensor,
                          int64_t axis,
                          sv_tensor index,
                          sv_tensor elements,
                          sv_tensor *result);

/**
 * Gives a tensor with the positions along an axis that a list of indices names replaced by elements.
 *
 * An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
 * waits for the device.
 */
int32_t sv_tensor_index_copy(sv_tensor tensor,
                             int64_t axis,
                             sv_tensor index,
                             sv_tensor elements,
                             sv_tensor *result);

/**
 * Gives a tensor with the elements that an index names by their row-major position replaced.
 *
 * An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
 * waits for the device.
 */
int32_t sv_tensor_put(sv_tensor tensor,
                      sv_tensor index,
                      sv_tensor elements,
                      sv_tensor *result);

/**
 * Writes elements along an axis where an index says.
 */
int32_t sv_tensor_scatter_in_place(sv_tensor tensor,
                                   int64_t axis,
                                   sv_tensor index,
                                   sv_tensor elements);

/**
 * Replaces the positions along an axis that a list of indices names.
 */
int32_t sv_tensor_index_copy_in_place(sv_tensor tensor,
                                      int64_t axis,
                                      sv_tensor index,
                                      sv_tensor elements);

/**
 * Replaces the elements that an index names by their row-major position.
 */
int32_t sv_tensor_put_in_place(sv_tensor tensor, sv_tensor index, sv_tensor elements);

/**
 * Replaces a tensor's elements by a value where a mask of bools is true.
 */
int32_t sv_tensor_masked_fill_in_place(sv_tensor tensor,
                                       sv_tensor mask,
                                       const struct sv_operand *value);

/**
 * Gives a tensor whose elements at the places of an index along `axis` are combined with `elements`, which are broadcast to
 * the index: by `SV_REDUCE_SUM`, `SV_REDUCE_PROD`, `SV_REDUCE_MIN`, `SV_REDUCE_MAX` or `SV_REDUCE_MEAN`. The tensor's own
 * element takes part if `include_self` is 1. A place that no index names keeps its element.
 *
 * An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
 * waits for the device.
 */
int32_t sv_tensor_scatter_reduce(sv_tensor tensor,
                                 int64_t axis,
                                 sv_tensor index,
                                 sv_tensor elements,
                                 int32_t reduction,
                                 int32_t include_self,
                                 sv_tensor *result);

/**
 * Writes the result of `sv_tensor_scatter_reduce` to the tensor.
 */
int32_t sv_tensor_scatter_reduce_in_place(sv_tensor tensor,
                                          int64_t axis,
                                          sv_tensor index,
                                          sv_tensor elements,
                                          int32_t reduction,
                                          int32_t include_self);

/**
 * Gives a tensor with elements added at the places of an index along `axis`: `sv_tensor_scatter_reduce` by `SV_REDUCE_SUM`
 * with the tensor's own elements.
 */
int32_t sv_tensor_scatter_add(sv_tensor tensor,
                              int64_t axis,
                              sv_tensor index,
                              sv_tensor elements,
                              sv_tensor *result);

/**
 * Adds elements at the places of an index along `axis`.
 */
int32_t sv_tensor_scatter_add_in_place(sv_tensor tensor,
                                       int64_t axis,
                                       sv_tensor index,
                                       sv_tensor elements);

/**
 * Gives a tensor with elements added to the positions along an axis that a list of indices names.
 */
int32_t sv_tensor_index_add(sv_tensor tensor,
                            int64_t axis,
                            sv_tensor index,
                            sv_tensor elements,
                            sv_tensor *result);

/**
 * Adds elements to the positions along an axis that a list of indices names.
 */
int32_t sv_tensor_index_add_in_place(sv_tensor tensor,
                                     int64_t axis,
                                     sv_tensor index,
                                     sv_tensor elements);

/**
 * Gives a tensor with the positions along an axis that a list of indices names replaced by a number.
 */
int32_t sv_tensor_index_fill(sv_tensor tensor,
                             int64_t axis,
                             sv_tensor index,
                             const struct sv_number *number,
                             sv_tensor *result);

/**
 * Replaces the positions along an axis that a list of indices names by a number.
 */
int32_t sv_tensor_index_fill_in_place(sv_tensor tensor,
                                      int64_t axis,
                                      sv_tensor index,
                                      const struct sv_number *number);

/**
 * Gives a tensor with elements written by coordinates: `indices` are `count` tensors of integers, one for each of the first
 * axes, which are broadcast. Of several elements for one place the last one stays; all are added if `accumulate` is 1.
 *
 * Requires: `indices` points to `count` handles.
 */
int32_t sv_tensor_index_put(sv_tensor tensor,
                            const sv_tensor *indices,
                            size_t count,
                            sv_tensor elements,
                            int32_t accumulate,
                            sv_tensor *result);

/**
 * Writes elements by coordinates, as `sv_tensor_index_put`.
 *
 * Requires: `indices` points to `count` handles.
 */
int32_t sv_tensor_index_put_in_place(sv_tensor tensor,
                                     const sv_tensor *indices,
                                     size_t count,
                                     sv_tensor elements,
                                     int32_t accumulate);

/**
 * Gives a tensor in which the elements for which a mask of bools is true are replaced by the first elements of `elements`, in
 * row-major order. The mask is broadcast.
 *
 * It waits for the device.
 */
int32_t sv_tensor_masked_scatter(sv_tensor tensor,
                                 sv_tensor mask,
                                 sv_tensor elements,
                                 sv_tensor *result);

/**
 * Replaces the elements for which a mask of bools is true, as `sv_tensor_masked_scatter`.
 */
int32_t sv_tensor_masked_scatter_in_place(sv_tensor tensor, sv_tensor mask, sv_tensor elements);

/**
 * Combines neighbouring rows of a tensor by one of the codes of `sv_tensor_scatter_reduce`: the first `lengths[0]` along axis
 * 0, the next `lengths[1]`, and so on. A length of 0 gives `initial`.
 *
 * It waits for the device.
 */
int32_t sv_tensor_segment_reduce(sv_tensor tensor,
                                 sv_tensor lengths,
                                 int32_t reduction,
                                 const struct sv_number *initial,
                                 sv_tensor *result);

/* ---- 5. Reductions, softmax and norms, statistics, sorting ---- */

/**
 * The sum; 0 of no elements.
 */
#define SV_REDUCE_SUM 1

/**
 * The product; 1 of no elements.
 */
#define SV_REDUCE_PROD 2

/**
 * The smallest element; NaN if an element is NaN.
 */
#define SV_REDUCE_MIN 3

/**
 * The largest element; NaN if an element is NaN.
 */
#define SV_REDUCE_MAX 4

/**
 * The index of the smallest element.
 */
#define SV_REDUCE_ARGMIN 5

/**
 * The index of the largest element.
 */
#define SV_REDUCE_ARGMAX 6

/**
 * True if any element is not 0.
 */
#define SV_REDUCE_ANY 7

/**
 * True if no element is 0.
 */
#define SV_REDUCE_ALL 8

/**
 * The number of elements that are not 0.
 */
#define SV_REDUCE_COUNT_NONZERO 9

/**
 * The mean; NaN of no elements.
 */
#define SV_REDUCE_MEAN 10

/**
 * The variance. The parameter is the correction: 1 for a sample, 0 for a population.
 */
#define SV_REDUCE_VAR 11

/**
 * The standard deviation. The parameter is the correction: 1 for a sample, 0 for a population.
 */
#define SV_REDUCE_STD 12

/**
 * The p-norm. The parameter is p.
 */
#define SV_REDUCE_NORM 13

/**
 * ln(sum e^x) without overflow; minus infinity of no elements.
 */
#define SV_REDUCE_LOGSUMEXP 14

/**
 * The sum of the elements that are not NaN.
 */
#define SV_REDUCE_NANSUM 15

/**
 * The mean of the elements that are not NaN.
 */
#define SV_REDUCE_NANMEAN 16

/**
 * The sums up to each position.
 */
#define SV_SCAN_SUM 1

/**
 * The products up to each position.
 */
#define SV_SCAN_PROD 2

/**
 * The largest elements up to each position.
 */
#define SV_SCAN_MAX 3

/**
 * The smallest elements up to each position.
 */
#define SV_SCAN_MIN 4

/**
 * The largest element along the axis, and its position; the first NaN if there is one.
 */
#define SV_WITH_INDICES_MAX 1

/**
 * The smallest element along the axis, and its position; the first NaN if there is one.
 */
#define SV_WITH_INDICES_MIN 2

/**
 * The median along the axis, the lower one of an even number of elements, and its position; the first NaN if there is one.
 */
#define SV_WITH_INDICES_MEDIAN 3

/**
 * The median of the elements that are not NaN.
 */
#define SV_WITH_INDICES_NANMEDIAN 4

/**
 * The most frequent element along the axis, the smallest of several, and its last position.
 */
#define SV_WITH_INDICES_MODE 5

/**
 * Reduces a tensor along `count` axes by one of `SV_REDUCE_...`. `axes` of NULL are all axes. `keepdim` is 1 to leave the
 * reduced axes with size 1, or 0 to drop them. Only the codes that say so use `parameter`.
 *
 * Requires: `axes` is NULL or points to `count` numbers.
 */
int32_t sv_tensor_reduce(sv_tensor tensor,
                         int32_t reduction,
                         const int64_t *axes,
                         size_t count,
                         int32_t keepdim,
                         double parameter,
                         sv_tensor *result);

/**
 * Computes one of `SV_SCAN_...` along an axis.
 */
int32_t sv_tensor_scan(sv_tensor tensor, int32_t scan, int64_t axis, sv_tensor *result);

/**
 * Writes the smallest and the largest elements along `count` axes, in one pass. `axes` of NULL are all axes.
 *
 * Requires: `axes` is NULL or points to `count` numbers.
 */
int32_t sv_tensor_aminmax(sv_tensor tensor,
                          const int64_t *axes,
                          size_t count,
                          sv_tensor *minimum,
                          sv_tensor *maximum);

/**
 * Writes the standard deviation and the mean along `count` axes. `axes` of NULL are all axes. `correction` is 1 for a sample,
 * or 0 for a population.
 *
 * Requires: `axes` is NULL or points to `count` numbers.
 */
int32_t sv_tensor_std_mean(sv_tensor tensor,
                           const int64_t *axes,
                           size_t count,
                           size_t correction,
                           sv_tensor *deviation,
                           sv_tensor *mean);

/**
 * Writes the variance and the mean along `count` axes, as `sv_tensor_std_mean`.
 *
 * Requires: `axes` is NULL or points to `count` numbers.
 */
int32_t sv_tensor_var_mean(sv_tensor tensor,
                           const int64_t *axes,
                           size_t count,
                           size_t correction,
                           sv_tensor *variance,
                           sv_tensor *mean);

/**
 * Gives the differences of neighbours along an axis, `order` times.
 */
int32_t sv_tensor_diff(sv_tensor tensor, size_t order, int64_t axis, sv_tensor *result);

/**
 * Gives the covariances of the rows of a matrix, which are variables. `correction` is as in `sv_tensor_std_mean`.
 */
int32_t sv_tensor_cov(sv_tensor tensor,
                      size_t correction,
                      sv_tensor *result);

/**
 * Gives the correlations of the rows of a matrix, which are variables.
 */
int32_t sv_tensor_corrcoef(sv_tensor tensor, sv_tensor *result);

/**
 * Gives the p-norm of the difference of each row of a tensor and each row of another one.
 */
int32_t sv_tensor_cdist(sv_tensor tensor, sv_tensor other, double p, sv_tensor *result);

/**
 * Replaces NaN by `nan`, and infinities by two numbers. An infinity whose number is NaN becomes the dtype's largest or
 * smallest number.
 */
int32_t sv_tensor_nan_to_num(sv_tensor tensor,
                             double nan,
                             double positive_infinity,
                             double negative_infinity,
                             sv_tensor *result);

/**
 * Gives for each element a bool: 1 if it equals that of `other` up to `rtol` times the other one plus `atol`.
 */
int32_t sv_tensor_isclose(sv_tensor tensor,
                          sv_tensor other,
                          double rtol,
                          double atol,
                          sv_tensor *result);

/**
 * Writes 1 if all elements of two tensors are close, |x - y| <= atol + rtol |y|, else 0. NaN is close to nothing.
 *
 * Waits for the work that the tensors need.
 */
int32_t sv_tensor_allclose(sv_tensor x,
                           sv_tensor y,
                           double rtol,
                           double atol,
                           int32_t *close);

/**
 * Writes 1 if two tensors have one shape and equal elements, or 0.
 *
 * It waits for the device.
 */
int32_t sv_tensor_equal(sv_tensor tensor, sv_tensor other, int32_t *result);

/**
 * Gives a matrix with a vector on a diagonal, or the diagonal of a matrix. `offset` counts diagonals from the main one upwards.
 */
int32_t sv_tensor_diag(sv_tensor tensor,
                       int64_t offset,
                       sv_tensor *result);

/**
 * Computes e^x / Σ e^x along an axis of a tensor of floats.
 */
int32_t sv_tensor_softmax(sv_tensor tensor, int64_t axis, sv_tensor *result);

/**
 * Computes the logarithm of `sv_tensor_softmax`, without overflow.
 */
int32_t sv_tensor_log_softmax(sv_tensor tensor, int64_t axis, sv_tensor *result);

/**
 * Computes (x - mean) / sqrt(variance + eps) · weight + bias over the last `rank` axes, whose sizes are `normalized_shape`.
 * `weight` and `bias` have that shape, or are NULL for none.
 *
 * Requires: `normalized_shape` points to `rank` numbers.
 */
int32_t sv_tensor_layer_norm(sv_tensor tensor,
                             const int64_t *normalized_shape,
                             size_t rank,
                             sv_tensor weight,
                             sv_tensor bias,
                             double eps,
                             sv_tensor *result);

/**
 * Computes x / sqrt(mean(x²) + eps) · weight over the last `rank` axes, whose sizes are `normalized_shape`. `weight` has that
 * shape, or is NULL for none. A negative `eps` is the machine epsilon of the dtype.
 *
 * Requires: `normalized_shape` points to `rank` numbers.
 */
int32_t sv_tensor_rms_norm(sv_tensor tensor,
                           const int64_t *normalized_shape,
                           size_t rank,
                           sv_tensor weight,
                           double eps,
                           sv_tensor *result);

/**
 * Normalises a tensor of shape (N, C, …) over each of `num_groups` equal groups of channels. `weight` and `bias` have shape
 * (C), or are NULL for none.
 */
int32_t sv_tensor_group_norm(sv_tensor tensor,
                             size_t num_groups,
                             sv_tensor weight,
                             sv_tensor bias,
                             double eps,
                             sv_tensor *result);

/**
 * Normalises a tensor of shape (N, C, …) by channel with given statistics, as in inference. `running_mean`, `running_var`,
 * `weight` and `bias` have shape (C); `weight` and `bias` of 0 are none.
 */
int32_t sv_tensor_batch_norm(sv_tensor tensor,
                             sv_tensor running_mean,
                             sv_tensor running_var,
                             sv_tensor weight,
                             sv_tensor bias,
                             double eps,
                             sv_tensor *result);

/**
 * Normalises a tensor of shape (N, C, …) by channel with the mean and biased variance of each channel, as in training, and
 * updates the running statistics: momentum · new + (1 - momentum) · running, in which the new variance is unbiased.
 * `running_mean`, `running_var`, `weight` and `bias` have shape (C). The statistics may both be NULL for none; `weight` and
 * `bias` of 0 are none.
 *
 * Others that use the handles of the statistics wait meanwhile.
 */
int32_t sv_tensor_batch_norm_training(sv_tensor tensor,
                                      sv_tensor running_mean,
                                      sv_tensor running_var,
                                      sv_tensor weight,
                                      sv_tensor bias,
                                      double momentum,
                                      double eps,
                                      sv_tensor *result);

/**
 * Computes x / max(norm, eps) with the p-norm along `count` axes. `axes` of NULL are all axes.
 *
 * Requires: `axes` is NULL or points to `count` numbers.
 */
int32_t sv_tensor_normalize(sv_tensor tensor,
                            double p,
                            const int64_t *axes,
                            size_t count,
                            double eps,
                            sv_tensor *result);

/**
 * Computes (x - mean) / standard deviation along `count` axes, with the biased variance. `axes` of NULL are all axes.
 *
 * Requires: `axes` is NULL or points to `count` numbers.
 */
int32_t sv_tensor_standardize(sv_tensor tensor,
                              const int64_t *axes,
                              size_t count,
                              sv_tensor *result);

/**
 * Writes the elements sorted along an axis, and the positions that they had, as `SV_DTYPE_I64`. Equal elements keep their
 * order, and NaN is the largest number. `descending` is 1 or 0.
 */
int32_t sv_tensor_sort(sv_tensor tensor,
                       int64_t axis,
                       int32_t descending,
                       sv_tensor *values,
                       sv_tensor *indices);

/**
 * Gives the values of `sv_tensor_sort`, in less time and memory.
 */
int32_t sv_tensor_sorted(sv_tensor tensor, int64_t axis, int32_t descending, sv_tensor *result);

/**
 * Gives the indices of `sv_tensor_sort`.
 */
int32_t sv_tensor_argsort(sv_tensor tensor, int64_t axis, int32_t descending, sv_tensor *result);

/**
 * Writes the `k` largest elements along an axis in descending order, and their positions; the smallest in ascending order if
 * `largest` is 0. NaN is the largest number.
 */
int32_t sv_tensor_topk(sv_tensor tensor,
                       size_t k,
                       int64_t axis,
                       int32_t largest,
                       sv_tensor *values,
                       sv_tensor *indices);

/**
 * Writes the element that is the k-th smallest along an axis, counted from 1, and its position.
 */
int32_t sv_tensor_kthvalue(sv_tensor tensor,
                           size_t k,
                           int64_t axis,
                           sv_tensor *values,
                           sv_tensor *indices);

/**
 * Writes one of `SV_WITH_INDICES_...` along an axis: the elements, and their positions as `SV_DTYPE_I64`.
 */
int32_t sv_tensor_reduce_with_indices(sv_tensor tensor,
                                      int32_t reduction,
                                      int64_t axis,
                                      sv_tensor *values,
                                      sv_tensor *indices);

/**
 * Gives the q-quantile along an axis of a tensor of f32 or f64, between two elements by their distance. `ignore_nan` is 1 to
 * leave NaN out, or 0 for NaN in the result of a row with NaN.
 */
int32_t sv_tensor_quantile(sv_tensor tensor,
                           double q,
                           int64_t axis,
                           int32_t ignore_nan,
                           sv_tensor *result);

/**
 * Gives the distinct elements in ascending order. `consecutive` is 1 to join only neighbours, in their order, or 0.
 *
 * It waits for the device.
 */
int32_t sv_tensor_unique(sv_tensor tensor,
                         int32_t consecutive,
                         sv_tensor *result);

/**
 * Writes the elements of `sv_tensor_unique`, the place among them of each element, and the number of times that each occurs.
 *
 * It waits for the device.
 */
int32_t sv_tensor_unique_with_counts(sv_tensor tensor,
                                     int32_t consecutive,
                                     sv_tensor *values,
                                     sv_tensor *inverse,
                                     sv_tensor *counts);

/**
 * Gives for each element a bool: 1 if it equals one of `elements`. NaN equals nothing.
 */
int32_t sv_tensor_isin(sv_tensor tensor, sv_tensor elements, sv_tensor *result);

/**
 * Gives for each of `values` the position, as `SV_DTYPE_I64`, at which it would be inserted into the last axis of a sorted
 * tensor: before elements that equal it, or behind them if `right` is 1.
 */
int32_t sv_tensor_searchsorted(sv_tensor tensor,
                               sv_tensor values,
                               int32_t right,
                               sv_tensor *result);

/**
 * Gives for each element of a tensor the number of its bucket among sorted `boundaries` of one dimension, as
 * `sv_tensor_searchsorted` does with the operands in the other order.
 */
int32_t sv_tensor_bucketize(sv_tensor tensor,
                            sv_tensor boundaries,
                            int32_t right,
                            sv_tensor *result);

/**
 * Counts the elements of a tensor of floats in `bins` bins of equal width from `min` to `max`, in the tensor's dtype. Bounds
 * that are both 0 are the smallest and the largest element. NaN and elements outside of the bounds are left out.
 */
int32_t sv_tensor_histc(sv_tensor tensor,
                        size_t bins,
                        double min,
                        double max,
                        sv_tensor *result);

/**
 * Counts the elements between sorted `edges`, as `SV_DTYPE_I64`. The last bin has its upper edge too.
 */
int32_t sv_tensor_histogram(sv_tensor tensor,
                            sv_tensor edges,
                            sv_tensor *result);

/**
 * Counts how often each integer from 0 on occurs in a tensor of one dimension, as `SV_DTYPE_I64`: up to the largest element,
 * and at least `minlength` integers.
 *
 * It waits for the device.
 */
int32_t sv_tensor_bincount(sv_tensor tensor,
                           size_t minlength,
                           sv_tensor *result);

/**
 * Gives the indices of the elements that are not 0, in row-major order: a row for each element, with a column for each axis.
 *
 * It waits for the device.
 */
int32_t sv_tensor_nonzero(sv_tensor tensor,
                          sv_tensor *result);

/**
 * Gives the elements for which a mask of bools, which is broadcast, is true, in row-major order.
 *
 * It waits for the device.
 */
int32_t sv_tensor_masked_select(sv_tensor tensor, sv_tensor mask, sv_tensor *result);

/* ---- 6. Random numbers ---- */

/**
 * Creates a generator at the start of the stream of a seed.
 *
 * Threads that draw at once get parts of the stream in an order that is theirs.
 */
int32_t sv_generator_create(uint64_t seed, sv_generator *generator);

/**
 * Writes the state of a generator: its seed and its place in the stream.
 */
int32_t sv_generator_state(sv_generator generator, uint64_t *seed, uint64_t *offset);

/**
 * Sets the state of a generator.
 */
int32_t sv_generator_set_state(sv_generator generator, uint64_t seed, uint64_t offset);

/**
 * Starts the stream of a seed for draws on a device that name no generator.
 */
int32_t sv_manual_seed(int32_t device, uint64_t seed);

/**
 * Draws numbers evenly from 0 to below 1.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_rand(sv_generator generator,
                int32_t dtype,
                const int64_t *shape,
                size_t rank,
                int32_t device,
                sv_tensor *result);

/**
 * Draws normally distributed numbers of mean 0 and variance 1.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_randn(sv_generator generator,
                 int32_t dtype,
                 const int64_t *shape,
                 size_t rank,
                 int32_t device,
                 sv_tensor *result);

/**
 * Draws numbers evenly from 0 to below 1 in the shape and the dtype of a tensor, on its device.
 */
int32_t sv_rand_like(sv_generator generator, sv_tensor tensor, sv_tensor *result);

/**
 * Draws normally distributed numbers of mean 0 and variance 1 in the shape and the dtype of a tensor, on its device.
 */
int32_t sv_randn_like(sv_generator generator,
                      sv_tensor tensor,
                      sv_tensor *result);

/**
 * Draws numbers evenly from `low` to below `high`; each is a tensor that is broadcast, or a number.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_uniform(sv_generator generator,
                   const struct sv_operand *low,
                   const struct sv_operand *high,
                   int32_t dtype,
                   const int64_t *shape,
                   size_t rank,
                   int32_t device,
                   sv_tensor *result);

/**
 * Draws normally distributed numbers; mean and deviation are each a tensor that is broadcast, or a number.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_normal(sv_generator generator,
                  const struct sv_operand *mean,
                  const struct sv_operand *deviation,
                  int32_t dtype,
                  const int64_t *shape,
                  size_t rank,
                  int32_t device,
                  sv_tensor *result);

/**
 * Draws ones with a probability, and zeros. The probability is a tensor that is broadcast, or a number.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_bernoulli(sv_generator generator,
                     const struct sv_operand *probability,
                     int32_t dtype,
                     const int64_t *shape,
                     size_t rank,
                     int32_t device,
                     sv_tensor *result);

/**
 * Draws integers evenly from `low` to below `high`.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_randint(sv_generator generator,
                   int64_t low,
                   int64_t high,
                   int32_t dtype,
                   const int64_t *shape,
                   size_t rank,
                   int32_t device,
                   sv_tensor *result);

/**
 * Draws the integers from 0 to below `count` in a random order, as `SV_DTYPE_I64`.
 */
int32_t sv_permutation(sv_generator generator, size_t count, int32_t device, sv_tensor *result);

/**
 * Draws `count` positions of the last axis by weights, as `SV_DTYPE_I64`. `replacement` is 1 to draw a position more than
 * once, or 0. A generator of 0 is the device's own.
 */
int32_t sv_multinomial(sv_generator generator,
                       sv_tensor weights,
                       size_t count,
                       int32_t replacement,
                       sv_tensor *result);

/* ---- 7. Products and attention ---- */

/**
 * No activation.
 */
#define SV_ACTIVATION_NONE 0

/**
 * The larger of x and 0.
 */
#define SV_ACTIVATION_RELU 1

/**
 * x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2, as `SV_NN_GELU_TANH`. `sv_gelu` of a product computes the form of `SV_NN_GELU`.
 */
#define SV_ACTIVATION_GELU_TANH 2

/**
 * x / (1 + e^-x).
 */
#define SV_ACTIVATION_SILU 3

/**
 * Options of a product: activation(alpha * A * B + bias) + residual. Zeros are the defaults, but for `size`.
 */
typedef struct sv_matmul_options {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * A tensor that is added to the product: one number for each column, or a column of one for each row. NULL for none.
   */
  sv_tensor bias;
  /**
   * A tensor of the result's shape that is added after the activation. NULL for none.
   */
  sv_tensor residual;
  /**
   * One of `SV_ACTIVATION_...`.
   */
  int32_t activation;
  /**
   * The dtype of the result; `SV_DTYPE_NONE` for that of the operands.
   */
  int32_t result_dtype;
  /**
   * 1 to take the complex conjugate of the left operand.
   */
  int32_t conjugate_left;
  /**
   * 1 to take the complex conjugate of the right operand.
   */
  int32_t conjugate_right;
  /**
   * 1 to multiply by `alpha`.
   */
  int32_t has_alpha;
  /**
   * 0.
   */
  int32_t reserved;
  /**
   * The factor of the product. 0 without `has_alpha`.
   */
  struct sv_number alpha;
} sv_matmul_options;

/**
 * Options of scaled dot-product attention. Zeros are the defaults, but for `size`.
 */
typedef struct sv_attention_options {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * A mask that broadcasts to (batch, query heads, query length, key length): bools that are true where a query reads a key, or
   * floats that are added to the scaled scores. NULL for none.
   */
  sv_tensor mask;
  /**
   * The generator of the dropout; 0 for the device's own.
   */
  sv_generator generator;
  /**
   * The number of queries of each batch, integers of shape (batch). 0 for all.
   */
  sv_tensor query_lengths;
  /**
   * The number of keys of each batch. 0 for all.
   */
  sv_tensor key_lengths;
  /**
   * The first query of each sequence in a batch of 1, and the end of the last one; NULL where each batch is one sequence.
   */
  const int64_t *query_offsets;
  /**
   * The first key of each sequence in a batch of 1, and the end of the last one.
   */
  const int64_t *key_offsets;
  /**
   * The number of elements of `query_offsets`, and of `key_offsets`: one more than there are sequences. 0 without them.
   */
  size_t offset_count;
  /**
   * The factor of the scores. 0 without `has_scale`.
   */
  double scale;
  /**
   * The limit c of the scaled scores x, which become c tanh(x / c). 0 for none.
   */
  double soft_cap;
  /**
   * The probability that a probability is replaced by 0.
   */
  double dropout;
  /**
   * How many keys before its own position a query reads. 0 without `has_window_before`.
   */
  int64_t window_before;
  /**
   * How many keys after its own position a query reads. 0 without `has_window_after`.
   */
  int64_t window_after;
  /**
   * 1 for the factor `scale`; 0 for 1 / sqrt(head dimension).
   */
  int32_t has_scale;
  /**
   * 1 if a query reads no later key. The last query is at the last key's position.
   */
  int32_t is_causal;
  /**
   * 1 to limit the keys before a query's position.
   */
  int32_t has_window_before;
  /**
   * 1 to limit the keys after a query's position.
   */
  int32_t has_window_after;
} sv_attention_options;

/**
 * Computes the product of tensors: matrices, vectors, and batches of them, which are broadcast. `options` may be NULL.
 *
 * Requires: `options` is NULL or points to a struct with its size set.
 */
int32_t sv_matmul(sv_tensor a,
                  sv_tensor b,
                  const struct sv_matmul_options *options,
                  sv_tensor *result);

/**
 * Computes a product as `sv_matmul`, and also the values that its activation was applied to.
 *
 * The caller owns one reference to `*result` and one to `*aux`.
 *
 * Requires: `options` is NULL or points to a struct with its size set.
 */
int32_t sv_matmul_with_aux(sv_tensor a,
                           sv_tensor b,
                           const struct sv_matmul_options *options,
                           sv_tensor *result,
                           sv_tensor *aux);

/**
 * Replaces the elements of `c` by a product plus `beta` times themselves. The result's dtype is theirs.
 *
 * Others that use the handle of `c` wait meanwhile.
 *
 * Requires: `beta` points to a struct, and `options` is NULL or points to a struct with its size set.
 */
int32_t sv_matmul_add_to(sv_tensor c,
                         const struct sv_number *beta,
                         sv_tensor a,
                         sv_tensor b,
                         const struct sv_matmul_options *options);

/**
 * Gives the sum of the main diagonal of a matrix.
 */
int32_t sv_tensor_trace(sv_tensor tensor, sv_tensor *result);

/**
 * Gives the Kronecker product of two tensors.
 */
int32_t sv_tensor_kron(sv_tensor tensor, sv_tensor other, sv_tensor *result);

/**
 * Computes softmax(scale * Q K^T) V for queries of shape (batch, heads, length, head dimension). Keys and values have the same
 * axes, with a length of their own and a number of heads that divides the queries'. A query that may read no key has a result
 * of 0. `options` may be NULL. Without a mask no scores are stored on the CPU, and on devices of compute capability 9.0 for f16 and
 * bf16 where the head dimension is a multiple of 8.
 *
 * Requires: `options` is NULL or points to a struct with its size set, whose offsets point to `offset_count` numbers each.
 */
int32_t sv_tensor_scaled_dot_product_attention(sv_tensor queries,
                                               sv_tensor keys,
                                               sv_tensor values,
                                               const struct sv_attention_options *options,
                                               sv_tensor *result);

/* ---- 8. Functions of a program's own ---- */

/**
 * An array that a callback reads or writes: adjacent elements in row-major order. The layout is permanent.
 */
typedef struct sv_array {
  /**
   * The first element: an address of the host, or of the CUDA device.
   */
  void *data;
  /**
   * The bytes of all elements.
   */
  uint64_t bytes;
  /**
   * One of `SV_DTYPE_...`.
   */
  int32_t dtype;
  /**
   * The number of dimensions.
   */
  int32_t rank;
  /**
   * The sizes of the dimensions, valid during the call.
   */
  const int64_t *shape;
} sv_array;

/**
 * The dtype and shape of an output. The layout is permanent.
 */
typedef struct sv_array_type {
  /**
   * One of `SV_DTYPE_...`.
   */
  int32_t dtype;
  /**
   * The number of dimensions.
   */
  int32_t rank;
  /**
   * The sizes of the dimensions.
   */
  const int64_t *shape;
} sv_array_type;

/**
 * A callback for the CPU. It reads the inputs, writes every element of the outputs, and returns `SV_OK`, or another number
 * for an error.
 */
typedef int32_t (*sv_host_kernel)(void *user,
                                  const struct sv_array *inputs,
                                  size_t inputs_count,
                                  const struct sv_array *outputs,
                                  size_t outputs_count);

/**
 * A callback for CUDA devices. It issues work to `stream`, a stream handle that is valid during the call (`sv_stream_raw`
 * gives its `CUstream`), that reads the inputs and writes every element of the outputs. It returns `SV_OK`, or another number
 * for an error. The work may still be running when it returns.
 */
typedef int32_t (*sv_cuda_kernel)(void *user,
                                  sv_stream stream,
                                  const struct sv_array *inputs,
                                  size_t inputs_count,
                                  const struct sv_array *outputs,
                                  size_t outputs_count);

/**
 * A custom operation. A callback that is NULL makes the operation unsupported on its kind of device.
 */
typedef struct sv_custom_operation {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * The callback for tensors on the CPU.
   */
  sv_host_kernel host;
  /**
   * The callback for tensors on CUDA devices.
   */
  sv_cuda_kernel cuda;
  /**
   * The first argument of the callbacks.
   */
  void *user;
} sv_custom_operation;

/**
 * Creates an expression for operand `index` of a fused function's runs, from 0.
 *
 * Any thread may use the expression.
 */
int32_t sv_expression_input(uint32_t index, sv_expression *expression);

/**
 * Creates an expression for a number, which takes part in an operation by its kind.
 *
 * Any thread may use the expression.
 */
int32_t sv_expression_number(const struct sv_number *number, sv_expression *expression);

/**
 * Creates an expression for an element's index along an axis of the result, as `SV_DTYPE_I64`.
 *
 * Any thread may use the expression.
 */
int32_t sv_expression_index(int64_t axis, sv_expression *expression);

/**
 * Creates an expression for an operation, one of `SV_OP_...`, on `count` other expressions.
 *
 * The caller owns one reference to `*expression`, which keeps its operands; their handles may be released. Any thread may use
 * the expression.
 *
 * Requires: `operands` points to `count` handles.
 */
int32_t sv_expression_operation(uint32_t operation,
                                const sv_expression *operands,
                                size_t count,
                                sv_expression *expression);

/**
 * Creates an expression for another one's elements in a dtype.
 *
 * Any thread may use the expression.
 */
int32_t sv_expression_cast(sv_expression operand, int32_t dtype, sv_expression *expression);

/**
 * Creates a fused function, which computes `count` expressions in one kernel.
 *
 * The caller owns one reference to `*fused`, which keeps the expressions; their handles may be released.
 *
 * Requires: `outputs` points to `count` handles.
 */
int32_t sv_fused_create(const sv_expression *outputs,
                        size_t count,
                        sv_fused *fused);

/**
 * Writes the numbers of operands and results of a fused function: one more than the largest input, and its outputs.
 */
int32_t sv_fused_counts(sv_fused fused,
                        size_t *operands,
                        size_t *results);

/**
 * Computes a fused function of `count` operands, each a tensor or a number, and writes its `results_count` tensors. Each has
 * the shape to which the operands broadcast.
 *
 * The first run with a combination of dtypes compiles the function; later runs find it. The caller owns one reference to each of
 * `results`.
 *
 * Requires: `operands` points to `count` structs, and `results` to `results_count` numbers.
 */
int32_t sv_fused_run(sv_fused fused,
                     const struct sv_operand *operands,
                     size_t count,
                     sv_tensor *results,
                     size_t results_count);

/**
 * Runs a custom operation on tensors of one device, and writes its results. Inputs that are not contiguous are copied first.
 * `device` is the device of the tensors, and of the results.
 *
 * On a CUDA device the callback's work is ordered with all other uses of the tensors. The caller owns one reference to each of
 * `results`. The callback runs on the same thread, and may call this library.
 *
 * Requires: `operation` points to a struct with its size set, whose callbacks keep to the inputs and outputs. `inputs` points to
 * `inputs_count` handles, `outputs` to `outputs_count` structs with their shapes, and `results` to `outputs_count` numbers.
 */
int32_t sv_custom_run(const struct sv_custom_operation *operation,
                      int32_t device,
                      const sv_tensor *inputs,
                      size_t inputs_count,
                      const struct sv_array_type *outputs,
                      size_t outputs_count,
                      sv_tensor *results);

/* ---- 9. Neural networks ---- */

/**
 * The id of a sequence that has ended, in the steps of a generation.
 */
#define SV_NO_ID UINT32_MAX

/**
 * The result of a callback that lets the function go on.
 */
#define SV_CONTINUE 0

/**
 * The result of a callback that ends the function, which then succeeds.
 */
#define SV_STOP 1

/**
 * Max(x, 0).
 */
#define SV_NN_RELU 1

/**
 * x times the normal distribution function of x.
 */
#define SV_NN_GELU 2

/**
 * x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.
 */
#define SV_NN_GELU_TANH 3

/**
 * x / (1 + e^-x).
 */
#define SV_NN_SILU 4

/**
 * The hyperbolic tangent.
 */
#define SV_NN_TANH 5

/**
 * 1 / (1 + e^-x).
 */
#define SV_NN_SIGMOID 6

/**
 * Gradient descent, with momentum if it is not 0.
 */
#define SV_OPTIMIZER_SGD 1

/**
 * Adam. The weight decay is added to the gradient.
 */
#define SV_OPTIMIZER_ADAM 2

/**
 * Adam with decoupled weight decay.
 */
#define SV_OPTIMIZER_ADAMW 3

/**
 * Gradient descent with Nesterov's momentum, which is not 0.
 */
#define SV_OPTIMIZER_NESTEROV 4

/**
 * Lion: the sign of a momentum, with decoupled weight decay.
 */
#define SV_OPTIMIZER_LION 5

/**
 * A Muon's learning rate times sqrt(max(1, rows / columns)), the default.
 */
#define SV_MUON_RATE_ORIGINAL 1

/**
 * A Muon's learning rate times 0.2 sqrt(max(rows, columns)), with which the rates of AdamW fit.
 */
#define SV_MUON_RATE_MATCH_RMS_ADAMW 2

/**
 * A Muon's learning rate times sqrt(rows / columns).
 */
#define SV_MUON_RATE_SPECTRAL_UNCLAMPED 3

/**
 * Half a cosine from the peak to the minimum.
 */
#define SV_SCHEDULE_COSINE 1

/**
 * The peak.
 */
#define SV_SCHEDULE_CONSTANT 2

/**
 * A line from the peak to the minimum.
 */
#define SV_SCHEDULE_LINEAR 3

/**
 * The peak, and in the last fifth of all steps a line to the minimum.
 */
#define SV_SCHEDULE_WSD 4

/**
 * The peak, times `gamma` after each `step_size` steps, and no less than the minimum: PyTorch's `StepLR`.
 */
#define SV_SCHEDULE_STEP 5

/**
 * Half a cosine from the peak / `div_factor` to the peak in the warm-up, and one to the minimum: PyTorch's `OneCycleLR`.
 */
#define SV_SCHEDULE_ONE_CYCLE 6

/**
 * A backward of a trainer's step that computes no activation again.
 */
#define SV_RECOMPUTE_NOTHING 0

/**
 * A backward that computes the feed-forward of each block and the norm before it again.
 */
#define SV_RECOMPUTE_FEED_FORWARD 1

/**
 * A backward that computes whole blocks again.
 */
#define SV_RECOMPUTE_BLOCKS 2

/**
 * The mean of (input - target)².
 */
#define SV_LOSS_MSE 1

/**
 * Of probabilities and targets from 0 to 1: -t ln x - (1 - t) ln(1 - x).
 */
#define SV_LOSS_BINARY_CROSS_ENTROPY 2

/**
 * `SV_LOSS_BINARY_CROSS_ENTROPY` of the sigmoid of the input.
 */
#define SV_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS 3

/**
 * -ln softmax(input) at labels, which are integers. The classes are along axis 1, or along axis 0 of a vector. -100 is no label.
 */
#define SV_LOSS_CROSS_ENTROPY 4

/**
 * -input at labels, for logarithms of probabilities.
 */
#define SV_LOSS_NLL 5

/**
 * The divergence of the target from an input of logarithms of probabilities: the sum over a row, and the mean over rows.
 */
#define SV_LOSS_KL_DIV 6

/**
 * The form of `sv_variable_loss`: the sum over a row and the mean over rows for `SV_LOSS_KL_DIV`, and the mean for the others.
 */
#define SV_LOSS_REDUCTION_DEFAULT 0

/**
 * One loss an element, or a label.
 */
#define SV_LOSS_REDUCTION_NONE 1

/**
 * The sum of the losses.
 */
#define SV_LOSS_REDUCTION_SUM 2

/**
 * The mean of the losses. Ignored labels do not count.
 */
#define SV_LOSS_REDUCTION_MEAN 3

/**
 * The sum of the losses over the size of the first axis.
 */
#define SV_LOSS_REDUCTION_BATCH_MEAN 4

/**
 * The settings of a generation of `sv_decoder_generate`. Zeros are the defaults, but for `size` and `max_new_ids`.
 */
typedef struct sv_decoder_options {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * The most new ids of a sequence, at least 1.
   */
  size_t max_new_ids;
  /**
   * The divisor of the logits. With 0 the most likely id is taken.
   */
  double temperature;
  /**
   * The probability of the ids to draw from; 0 for 1.
   */
  double top_p;
  /**
   * The most ids to draw from; 0 for all.
   */
  size_t top_k;
  /**
   * The least probability of an id to draw, as a share of that of the most likely one.
   */
  double min_p;
  /**
   * The divisor of positive logits, and the factor of others, for ids of the prompt and drawn ids; 0 for 1.
   */
  double repetition_penalty;
  /**
   * The number that is subtracted from the logit of an id that was drawn before.
   */
  double presence_penalty;
  /**
   * The number that is subtracted from the logit of an id for each time that it was drawn.
   */
  double frequency_penalty;
  /**
   * The seed of the draws. Sequence i draws from seed + i, whatever the other sequences are.
   */
  uint64_t seed;
  /**
   * The ids that end a sequence; NULL for those of the decoder's configuration.
   */
  const uint32_t *end_ids;
  /**
   * The number of `end_ids`.
   */
  size_t end_id_count;
  /**
   * 1 if no id ends a sequence.
   */
  int32_t ignores_end_ids;
  /**
   * 1 for logits whose bits do not depend on the other prompts; an error where no algorithm has that.
   */
  int32_t is_batch_invariant;
} sv_decoder_options;

/**
 * A function that is called after each step of `sv_decoder_generate`, on the thread that generates: with the number of the
 * step from 0, and the new id of each of the `count` sequences, `SV_NO_ID` for one that has ended. `ids` is valid during the call.
 * It returns `SV_CONTINUE`, or `SV_STOP` to end the generation.
 */
typedef int32_t (*sv_decoder_step_callback)(void *user,
                                            size_t step,
                                            const uint32_t *ids,
                                            size_t count);

/**
 * The sizes and options of a transformer. Zeros are the defaults, but for `size` and the five sizes.
 */
typedef struct sv_gpt_config {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * The number of token ids.
   */
  size_t vocab_size;
  /**
   * The longest sequence.
   */
  size_t context;
  /**
   * The size of the embeddings.
   */
  size_t width;
  /**
   * The number of blocks.
   */
  size_t layers;
  /**
   * The number of attention heads, which divide the width.
   */
  size_t heads;
  /**
   * The probability of dropout.
   */
  double dropout;
  /**
   * The number that norms add to the variance; 0 for 1e-5.
   */
  double norm_eps;
  /**
   * `SV_NN_GELU_TANH`, which 0 is too, `SV_NN_GELU`, `SV_NN_RELU` or `SV_NN_SILU`.
   */
  int32_t activation;
  /**
   * 1 if the products of a block have no bias.
   */
  int32_t without_bias;
  /**
   * 1 if the head has a weight of its own; otherwise it is the token embedding.
   */
  int32_t untied_head;
  /**
   * The dtype of activations and products: `SV_DTYPE_BF16` or `SV_DTYPE_F16`, or `SV_DTYPE_NONE` for that of
   * the parameters.
   */
  int32_t compute_dtype;
} sv_gpt_config;

/**
 * The settings of a generation. Zeros are the defaults, but for `size` and `length`.
 */
typedef struct sv_gpt_sampling {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * The number of new ids.
   */
  size_t length;
  /**
   * The divisor of the logits. With 0 the most likely id is taken.
   */
  double temperature;
  /**
   * The probability of the ids to draw from; 0 for 1.
   */
  double top_p;
  /**
   * The most ids to draw from; 0 for all.
   */
  size_t top_k;
  /**
   * The seed of the draws.
   */
  uint64_t seed;
} sv_gpt_sampling;

/**
 * A function that is called after each new id of a generation, on the thread that generates: with the id, and in
 * `sv_gpt_generate_text` with the characters that the id completes, in UTF-8; elsewhere `text` is empty. The text is valid
 * during the call. It returns `SV_CONTINUE`, or `SV_STOP` to end the generation, and must not call functions of the same model.
 */
typedef int32_t (*sv_gpt_token_callback)(void *user, uint32_t id, const char *text);

/**
 * The settings of an optimizer. Zeros are the defaults, but for `size`, `kind` and `learning_rate`, which the caller sets. A field
 * that the kind or a flag does not use is 0.
 */
typedef struct sv_optimizer_options {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * One of `SV_OPTIMIZER_...`.
   */
  int32_t kind;
  /**
   * 1 to use `weight_decay`; otherwise it is 0, and 0.01 of `SV_OPTIMIZER_ADAMW`.
   */
  int32_t has_weight_decay;
  /**
   * The factor of a step, above 0. A learning rate of 0, such as that of a schedule, is one of `sv_optimizer_set_learning_rate`.
   */
  double learning_rate;
  /**
   * The weight decay. 0 without `has_weight_decay`.
   */
  double weight_decay;
  /**
   * The momentum of `SV_OPTIMIZER_SGD`, 0 for none, and of `SV_OPTIMIZER_NESTEROV`.
   */
  double momentum;
  /**
   * The decay of the mean of gradients of Adam, and of the one whose sign Lion takes; 0 for 0.9.
   */
  double beta1;
  /**
   * The decay of the mean of squares of Adam, 0 for 0.999, and of the mean of gradients that Lion keeps, 0 for 0.99.
   */
  double beta2;
  /**
   * The number that Adam adds to the divisor; 0 for 1e-8.
   */
  double eps;
} sv_optimizer_options;

/**
 * The settings of an Adafactor, with the defaults of PyTorch. Zeros are the defaults, but for `size` and `learning_rate`, which the
 * caller sets.
 */
typedef struct sv_adafactor_options {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * 1 for steps of the size of the learning rate. Otherwise the size is at most 1 / sqrt(step), and relative to the root mean
   * square of the parameter.
   */
  int32_t fixed_step;
  /**
   * 0.
   */
  int32_t reserved;
  /**
   * The factor of a step, above 0. A learning rate of 0, such as that of a schedule, is one of `sv_optimizer_set_learning_rate`.
   */
  double learning_rate;
  /**
   * The decoupled weight decay.
   */
  double weight_decay;
  /**
   * The share of new squares in the second moments is the step to this power; 0 for -0.8.
   */
  double beta2_decay;
  /**
   * The least root of a second moment; 0 for the machine epsilon of the parameter's dtype.
   */
  double variance_eps;
  /**
   * The least root mean square of a parameter for the size of its steps; 0 for 1e-3.
   */
  double scale_eps;
  /**
   * The root mean square to which a larger update is scaled down, from 1 on; 0 for 1.
   */
  double clipping_threshold;
} sv_adafactor_options;

/**
 * The settings of a Muon of a model's matrices and an AdamW of its other parameters, with the defaults of PyTorch. Zeros are the
 * defaults, but for `size` and the learning rates, which the caller sets.
 */
typedef struct sv_muon_options {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * 1 to use `weight_decay` and `adamw_weight_decay`; otherwise they are 0, and 0.1 and 0.01 are used.
   */
  int32_t has_weight_decay;
  /**
   * 1 for a momentum that is not Nesterov's.
   */
  int32_t without_nesterov;
  /**
   * One of `SV_MUON_RATE_...`, 0 for `SV_MUON_RATE_ORIGINAL`.
   */
  int32_t rate_adjustment;
  /**
   * The number of Newton-Schulz steps, at most 99; 0 for 5.
   */
  int32_t newton_schulz_steps;
  /**
   * The factor of a step of a matrix, above 0. A learning rate of 0, such as that of a schedule, is one of
   * `sv_optimizer_set_learning_rate`.
   */
  double learning_rate;
  /**
   * The decoupled weight decay of matrices. 0 without `has_weight_decay`.
   */
  double weight_decay;
  /**
   * The decay of the momentum; 0 for 0.95.
   */
  double momentum;
  /**
   * The coefficients of X, X X^T X and X X^T X X^T X in a Newton-Schulz step; three zeros for 3.4445, -4.7750 and 2.0315.
   */
  double coefficients[3];
  /**
   * The least norm by which an update is divided; 0 for 1e-7.
   */
  double eps;
  /**
   * The learning rate of the AdamW, above 0 if the model has parameters other than matrices.
   */
  double adamw_learning_rate;
  /**
   * The weight decay of the AdamW. 0 without `has_weight_decay`.
   */
  double adamw_weight_decay;
} sv_muon_options;

/**
 * A learning rate that grows to a peak, linearly but for `SV_SCHEDULE_ONE_CYCLE`, and then follows a shape. A field that the shape does not
 * use is 0.
 */
typedef struct sv_schedule {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * One of `SV_SCHEDULE_...`.
   */
  int32_t shape;
  /**
   * 0.
   */
  int32_t reserved;
  /**
   * The largest rate.
   */
  double peak;
  /**
   * The rate from `total_steps` on, and the least one of `SV_SCHEDULE_STEP`. `SV_SCHEDULE_CONSTANT` uses none.
   */
  double minimum;
  /**
   * Steps of the warm-up. Its last step has the peak.
   */
  uint64_t warmup_steps;
  /**
   * Steps of the warm-up and the shape. `SV_SCHEDULE_CONSTANT` and `SV_SCHEDULE_STEP` use none.
   */
  uint64_t total_steps;
  /**
   * Steps of `SV_SCHEDULE_STEP` with one rate, above 0.
   */
  uint64_t step_size;
  /**
   * The ratio of a rate of `SV_SCHEDULE_STEP` to the one before it; 0 for 0.1.
   */
  double gamma;
  /**
   * The ratio of the peak of `SV_SCHEDULE_ONE_CYCLE` to the first rate; 0 for 25.
   */
  double div_factor;
} sv_schedule;

/**
 * The numbers of a run of training. `sv_gpt_trainer_defaults` sets all of them.
 */
typedef struct sv_gpt_trainer_options {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * Steps of the run, which the schedule of the learning rate is drawn over.
   */
  uint64_t steps;
  /**
   * Steps of the warm-up.
   */
  uint64_t warmup_steps;
  /**
   * Sequences of a batch.
   */
  size_t batch;
  /**
   * Ids of a sequence; 0 for the model's context.
   */
  size_t context;
  /**
   * Batches whose gradients are averaged in a step.
   */
  size_t accumulation;
  /**
   * Batches of the validation text in an evaluation.
   */
  size_t evaluation_batches;
  /**
   * The largest learning rate, above 0.
   */
  double learning_rate;
  /**
   * The learning rate at the end.
   */
  double min_learning_rate;
  /**
   * AdamW's decay, of parameters with two axes or more.
   */
  double weight_decay;
  /**
   * AdamW's decay of the mean of gradients.
   */
  double beta1;
  /**
   * AdamW's decay of the mean of squares.
   */
  double beta2;
  /**
   * The largest norm of all gradients together; 0 to leave them.
   */
  double max_norm;
  /**
   * The seed of the weights, the batches and the dropout.
   */
  uint64_t seed;
} sv_gpt_trainer_options;

/**
 * The figures of a step.
 */
typedef struct sv_gpt_step {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * The step, counted from 1.
   */
  uint64_t step;
  /**
   * The mean loss of its batches, in nats an id.
   */
  double loss;
  /**
   * The norm of all gradients together before clipping; NaN if they are not clipped.
   */
  double grad_norm;
  /**
   * The learning rate.
   */
  double learning_rate;
} sv_gpt_step;

/**
 * A function that is called after each step of a trainer, on the thread that trains. The struct is valid during the call. It
 * returns `SV_CONTINUE`, or `SV_STOP` to end the run, and may call functions of the trainer, such as `sv_gpt_trainer_evaluate`.
 */
typedef int32_t (*sv_gpt_step_callback)(void *user, const struct sv_gpt_step *step);

/**
 * A variable, or a tensor or a number where `variable` is 0. The layout is permanent.
 */
typedef struct sv_variable_operand {
  /**
   * The handle of a variable, or 0.
   */
  sv_variable variable;
  /**
   * The tensor, a constant, or the number where `variable` is 0.
   */
  struct sv_operand other;
} sv_variable_operand;

/**
 * The options of a loss. Zeros in all fields but `size` are those of `sv_variable_loss`.
 */
typedef struct sv_loss_options {
  /**
   * `sizeof(sv_loss_options)`.
   */
  size_t size;
  /**
   * One of `SV_LOSS_REDUCTION_...`.
   */
  int32_t reduction;
  /**
   * 1 for `SV_LOSS_KL_DIV` of a target of logarithms of probabilities, or 0.
   */
  int32_t is_log_target;
  /**
   * 1 to read `ignore_index`, or 0 for a label of -100.
   */
  int32_t has_ignore_index;
  /**
   * 0.
   */
  int32_t reserved;
  /**
   * The label that counts as no loss, for `SV_LOSS_CROSS_ENTROPY` and `SV_LOSS_NLL`.
   */
  int64_t ignore_index;
  /**
   * The part of `SV_LOSS_CROSS_ENTROPY` that all classes share equally, from 0 to below 1.
   */
  double label_smoothing;
} sv_loss_options;

/**
 * Work of `sv_no_grad`. `user` is the pointer that the program gave.
 */
typedef void (*sv_no_grad_work)(void *user);

/**
 * Loads the decoder of a folder as Hugging Face publishes it: `config.json`, `generation_config.json` if there is one, and
 * `model.safetensors` or the files of `model.safetensors.index.json`.
 *
 * `dtype` is that of the parameters. `SV_DTYPE_NONE` is the dtype of the stored embedding, but f32 on the CPU for 16 bits.
 */
int32_t sv_decoder_load(const char *folder,
                        int32_t device,
                        int32_t dtype,
                        sv_decoder *decoder);

/**
 * Writes a decoder into a folder, which is created, in the files and names that `sv_decoder_load` and transformers read.
 */
int32_t sv_decoder_save(sv_decoder decoder,
                        const char *folder);

/**
 * Writes the number of ids. Ids are 0 to that number less 1.
 */
int32_t sv_decoder_vocab_size(sv_decoder decoder, size_t *size);

/**
 * Writes the number of positions that the decoder was made for. A decoder with learned positions has no others.
 */
int32_t sv_decoder_context(sv_decoder decoder,
                           size_t *context);

/**
 * Writes the number of elements of the parameters. A head that is the token embedding counts once.
 */
int32_t sv_decoder_parameter_count(sv_decoder decoder, size_t *count);

/**
 * Computes the logits of a batch of ids, a tensor of shape (batch, length, vocabulary). `ids` has the shape (batch, length) and
 * `SV_DTYPE_I64` or `SV_DTYPE_I32`, on the decoder's device. Nothing is recorded for gradients.
 */
int32_t sv_decoder_logits(sv_decoder decoder,
                          sv_tensor ids,
                          sv_tensor *result);

/**
 * Generates ids that continue `count` prompts, which may differ in length, as one batch. `ids` has the ids of one prompt after
 * the other, and `lengths` the number of ids of each.
 *
 * `callback` gets the new ids of each step. The last one of a sequence is the id that ended it.
 *
 * Requires: `lengths` points to `count` numbers, and `ids` to as many numbers as their sum. `options->end_ids` points to
 * `options->end_id_count` numbers. `callback` may be called with `user`.
 */
int32_t sv_decoder_generate(sv_decoder decoder,
                            const uint32_t *ids,
                            const size_t *lengths,
                            size_t count,
                            const struct sv_decoder_options *options,
                            sv_decoder_step_callback callback,
                            void *user);

/**
 * Creates a transformer with new weights of a seed, as the GPT-2 paper draws them, in the training mode.
 *
 * `sv_model_forward` and `sv_model_predict` take ids of shape (batch, length), `SV_DTYPE_I64` or `SV_DTYPE_I32`, and give logits
 * of shape (batch, length, vocabulary).
 */
int32_t sv_gpt_create(const struct sv_gpt_config *config,
                      int32_t dtype,
                      int32_t device,
                      uint64_t seed,
                      sv_model *model);

/**
 * Writes the configuration of a transformer.
 */
int32_t sv_gpt_configuration(sv_model model, struct sv_gpt_config *config);

/**
 * Computes the mean cross entropy of a batch in nats an id, a variable of one element. `inputs` and `targets`, the id after
 * each input, are tensors of ids of shape (batch, length).
 */
int32_t sv_gpt_loss(sv_model model,
                    sv_tensor inputs,
                    sv_tensor targets,
                    sv_variable *result);

/**
 * Reads the transformer and the tokenizer of the last checkpoint in a folder, such as one of `sv_gpt_trainer_save` or of
 * `selvedge train`. The model is in the evaluation mode.
 */
int32_t sv_gpt_load_checkpoint(const char *folder,
                               int32_t device,
                               sv_model *model,
                               sv_tokenizer *tokenizer);

/**
 * Generates ids that continue a prompt. When the context is full, the model reads the last half of it again and goes on.
 *
 * `callback`, if not NULL, is called after each id. `count` gets the number of new ids; the array gets the first `capacity` of
 * them. Others that use the model wait meanwhile.
 *
 * Requires: `prompt` points to `prompt_count` numbers, and `ids` to `capacity` numbers. `callback` may be called with `user`.
 */
int32_t sv_gpt_generate(sv_model model,
                        const uint32_t *prompt,
                        size_t prompt_count,
                        const struct sv_gpt_sampling *options,
                        sv_gpt_token_callback callback,
                        void *user,
                        uint32_t *ids,
                        size_t capacity,
                        size_t *count);

/**
 * Generates text that continues a prompt, by a tokenizer of the model's ids. The text has no prompt.
 *
 * `callback`, if not NULL, is called after each id with the characters that the id completes. The text is cut to fit `capacity`;
 * `*length` gets the bytes of the whole text. Others that use the model wait meanwhile.
 *
 * Requires: `prompt` points to a zero-terminated text, `options` to a struct, `text` is NULL or points to `capacity` bytes, and `length`
 * is NULL or points to a `size_t`. `callback` may be called with `user`.
 */
int32_t sv_gpt_generate_text(sv_model model,
                             sv_tokenizer tokenizer,
                             const char *prompt,
                             const struct sv_gpt_sampling *options,
                             sv_gpt_token_callback callback,
                             void *user,
                             char *text,
                             size_t capacity,
                             size_t *length);

/**
 * Creates a model without layers. Layers that are added have parameters of `dtype` on a device, drawn from a generator with
 * the seed, which dropout draws from too. `dtype` is `SV_DTYPE_F16`, `SV_DTYPE_BF16`, `SV_DTYPE_F32` or `SV_DTYPE_F64`. The model
 * begins in the training mode.
 */
int32_t sv_model_create(int32_t dtype,
                        int32_t device,
                        uint64_t seed,
                        sv_model *model);

/**
 * Adds a layer x W + b with a weight of shape (inputs, outputs), both 1 or more. `bias` is 1 for one with a bias, or 0.
 */
int32_t sv_model_add_linear(sv_model model,
                            size_t inputs,
                            size_t outputs,
                            int32_t bias);

/**
 * Adds a table of `rows` rows of `width` numbers, of which an input of integers chooses.
 */
int32_t sv_model_add_embedding(sv_model model, size_t rows, size_t width);

/**
 * Adds a normalisation over last axes of these sizes, with a weight and a bias. `eps` is added to the variance.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_model_add_layer_norm(sv_model model,
                                const int64_t *shape,
                                size_t rank,
                                double eps);

/**
 * Adds a layer that replaces elements by 0 with a probability in the training mode, and scales the others.
 */
int32_t sv_model_add_dropout(sv_model model,
                             double probability);

/**
 * Adds an activation, one of `SV_NN_...`.
 */
int32_t sv_model_add_activation(sv_model model, int32_t activation);

/**
 * Sets the mode of a model: 1 for training, 0 for evaluation.
 */
int32_t sv_model_set_training(sv_model model, int32_t training);

/**
 * Computes the result of a model for a variable, and records the operations for `sv_variable_backward`.
 *
 * The caller owns one reference to `*result`, a variable.
 */
int32_t sv_model_forward(sv_model model,
                         sv_variable input,
                         sv_variable *result);

/**
 * Computes the result of a model for a tensor, and records nothing.
 */
int32_t sv_model_predict(sv_model model, sv_tensor input, sv_tensor *result);

/**
 * Trains a model by one batch: removes the gradients, computes the result and one of `SV_LOSS_...`, the gradients, and a step
 * of the optimizer, which is one of the model. Gives the loss, a tensor of one element; the call does not wait for it.
 *
 * Others that use the optimizer wait meanwhile.
 */
int32_t sv_model_train_step(sv_model model,
                            sv_optimizer optimizer,
                            int32_t loss,
                            sv_tensor input,
                            sv_tensor target,
                            sv_tensor *result);

/**
 * Writes the names of a model's parameters, one a line, such as `0.weight`. The text is cut to fit `capacity`; `*length` gets
 * the bytes of the whole text.
 *
 * Requires: `names` is NULL or points to `capacity` bytes, and `length` is NULL or points to a `size_t`.
 */
int32_t sv_model_parameter_names(sv_model model,
                                 char *names,
                                 size_t capacity,
                                 size_t *length);

/**
 * Gives a parameter of a model by its name, as a variable.
 */
int32_t sv_model_parameter(sv_model model, const char *name, sv_variable *result);

/**
 * Writes the parameters of a model with their names to a safetensors file, replacing the file at that path.
 */
int32_t sv_model_save(sv_model model,
                      const char *path);

/**
 * Sets the parameters of a model to those in a safetensors file, which has exactly the model's names and shapes.
 *
 * Others that use the model wait meanwhile.
 */
int32_t sv_model_load(sv_model model,
                      const char *path);

/**
 * Creates an optimizer of a model's parameters. The model has all of its layers: a model without parameters is an error here, and
 * a layer with parameters that is added while the optimizer lives is one in the function that adds it.
 */
int32_t sv_optimizer_create(sv_model model,
                            const struct sv_optimizer_options *options,
                            sv_optimizer *optimizer);

/**
 * Creates an Adafactor of a model's parameters, as `sv_optimizer_create`. Its second moments of a matrix are those of the rows and the
 * columns. It is that of PyTorch.
 */
int32_t sv_optimizer_create_adafactor(sv_model model,
                                      const struct sv_adafactor_options *options,
                                      sv_optimizer *optimizer);

/**
 * Creates a Muon of the matrices of a model, embeddings among them, and an AdamW of its other parameters, such as biases, as one
 * optimizer; as `sv_optimizer_create`. Muon makes the singular values of its momentum near 1. It is that of PyTorch.
 *
 * `sv_optimizer_set_learning_rate` sets the rate of the Muon, and multiplies that of the AdamW by the same factor. In a file of
 * `sv_optimizer_save` names begin with `first.`, of the Muon, and `second.`; of a model of matrices alone they have no such prefix.
 */
int32_t sv_optimizer_create_muon(sv_model model,
                                 const struct sv_muon_options *options,
                                 sv_optimizer *optimizer);

/**
 * Changes each parameter that has a gradient.
 *
 * Others that use the optimizer wait meanwhile.
 */
int32_t sv_optimizer_step(sv_optimizer optimizer);

/**
 * Removes the gradients of the parameters.
 */
int32_t sv_optimizer_zero_grad(sv_optimizer optimizer);

/**
 * Sets the learning rate, such as to that of a schedule.
 */
int32_t sv_optimizer_set_learning_rate(sv_optimizer optimizer, double learning_rate);

/**
 * Multiplies all gradients of an optimizer's parameters by one factor, so that their norm together is at most `max_norm`.
 * Gives the norm before, a tensor of one element; the call does not wait for it.
 *
 * Others that use the optimizer wait meanwhile.
 */
int32_t sv_optimizer_clip_grad_norm(sv_optimizer optimizer,
                                    double max_norm,
                                    sv_tensor *norm);

/**
 * Writes the learning rate and the states of an optimizer to a safetensors file, replacing the file at that path. The names
 * are the positions of the parameters and PyTorch's names of the states, such as `0.exp_avg`.
 *
 * Others that use the optimizer wait meanwhile.
 */
int32_t sv_optimizer_save(sv_optimizer optimizer,
                          const char *path);

/**
 * Sets the learning rate and the states of an optimizer to those in a file of `sv_optimizer_save`, bit for bit. The file is of
 * an optimizer of the same kind and of parameters of the same shapes; otherwise nothing changes. Other settings, such as the
 * betas of Adam, stay.
 *
 * Others that use the optimizer wait meanwhile.
 */
int32_t sv_optimizer_load(sv_optimizer optimizer,
                          const char *path);

/**
 * Gives the learning rate of a step, counted from 0, for `sv_optimizer_set_learning_rate`.
 */
int32_t sv_schedule_learning_rate(const struct sv_schedule *schedule,
                                  uint64_t step,
                                  double *learning_rate);

/**
 * Creates a tokenizer whose ids are the 256 bytes, for any text in any encoding.
 */
int32_t sv_tokenizer_bytes(sv_tokenizer *tokenizer);

/**
 * Creates a tokenizer whose ids are the distinct characters of a text in UTF-8, sorted by code point.
 *
 * Requires: `text` points to `bytes` bytes.
 */
int32_t sv_tokenizer_characters(const char *text,
                                size_t bytes,
                                sv_tokenizer *tokenizer);

/**
 * Creates a tokenizer from the JSON of `sv_tokenizer_to_json`.
 */
int32_t sv_tokenizer_from_json(const char *json, sv_tokenizer *tokenizer);

/**
 * Loads the tokenizer of a published model's folder: `tokenizer.json`, or `vocab.json` with `merges.txt`.
 *
 * `SV_ERROR_UNSUPPORTED` in a library that was built without the feature `models`; `FEATURES=models scripts/install.sh` builds one
 * with it.
 */
int32_t sv_tokenizer_load(const char *folder,
                          sv_tokenizer *tokenizer);

/**
 * Writes a tokenizer as JSON. The text is cut to fit `capacity`; `*length` gets the bytes of the whole text.
 *
 * Requires: `json` is NULL or points to `capacity` bytes, and `length` is NULL or points to a `size_t`.
 */
int32_t sv_tokenizer_to_json(sv_tokenizer tokenizer,
                             char *json,
                             size_t capacity,
                             size_t *length);

/**
 * Writes the number of ids. Ids are 0 to that number less 1.
 */
int32_t sv_tokenizer_vocab_size(sv_tokenizer tokenizer, size_t *size);

/**
 * Writes the ids of a text. A character that the tokenizer lacks is an error that names its position.
 *
 * `count` gets the number of ids; the array gets the first `capacity` of them. A capacity of 0 asks for the number alone.
 *
 * Requires: `text` points to `bytes` bytes, and `ids` to `capacity` numbers.
 */
int32_t sv_tokenizer_encode(sv_tokenizer tokenizer,
                            const char *text,
                            size_t bytes,
                            uint32_t *ids,
                            size_t capacity,
                            size_t *count);

/**
 * Writes the text of ids. Bytes that are not UTF-8 become U+FFFD. The text is cut to fit `capacity`; `*length` gets the bytes
 * of the whole text.
 *
 * Requires: `ids` points to `count` numbers, `text` is NULL or points to `capacity` bytes, and `length` is NULL or points to a `size_t`.
 */
int32_t sv_tokenizer_decode(sv_tokenizer tokenizer,
                            const uint32_t *ids,
                            size_t count,
                            char *text,
                            size_t capacity,
                            size_t *length);

/**
 * Writes the default numbers of a run, which suit a small model: 300 steps of 16 sequences, a learning rate of 5e-3 that falls
 * to 5e-4 after 20 steps of warm-up, and gradients clipped to norm 1.
 */
int32_t sv_gpt_trainer_defaults(struct sv_gpt_trainer_options *options);

/**
 * Creates a trainer: a new transformer, its optimizer, and a text, of which the last tenth is for evaluations.
 *
 * The text is copied. All of a run follows from the options, the text and the device, bit for bit.
 *
 * Requires: `text` points to `bytes` bytes.
 */
int32_t sv_gpt_trainer_create(const struct sv_gpt_config *config,
                              const char *text,
                              size_t bytes,
                              sv_tokenizer tokenizer,
                              const struct sv_gpt_trainer_options *options,
                              int32_t device,
                              sv_gpt_trainer *trainer);

/**
 * Gives the model of a trainer, which later steps go on to change.
 */
int32_t sv_gpt_trainer_model(sv_gpt_trainer trainer, sv_model *model);

/**
 * Takes `count` steps, 1 or more, and writes the figures of the last one. `callback`, if not NULL, is called after each step
 * and may end the run.
 *
 * A loss that is not finite is an error that names the step; the parameters are those of the step before then. Others that use
 * the trainer or its model wait during each step.
 *
 * Requires: `last` points to a struct, and `callback` may be called with `user`.
 */
int32_t sv_gpt_trainer_run(sv_gpt_trainer trainer,
                           uint64_t count,
                           sv_gpt_step_callback callback,
                           void *user,
                           struct sv_gpt_step *last);

/**
 * Multiplies the loss by a scale in the steps of a trainer, for a model that computes in f16. A step whose gradients are not
 * finite is skipped: it leaves the parameters as they were, and the scale is multiplied by `backoff_factor`, but does not
 * fall below 2^-14. After `growth_interval` steps in a row that were not skipped, the scale is multiplied by `growth_factor`.
 * Factors of 1 keep it.
 *
 * It must be called before the first step, and before `sv_gpt_trainer_resume`. PyTorch's numbers are 65536, 2, 0.5 and 2000.
 * Others that use the trainer or its model wait meanwhile.
 */
int32_t sv_gpt_trainer_set_loss_scale(sv_gpt_trainer trainer,
                                      double initial,
                                      double growth_factor,
                                      double backoff_factor,
                                      uint32_t growth_interval);

/**
 * Writes the loss scale of a trainer's next step; 0 without one. `grad_norm` of a skipped step is infinite or NaN.
 *
 * Others that use the trainer or its model wait meanwhile.
 */
int32_t sv_gpt_trainer_loss_scale(sv_gpt_trainer trainer,
                                  double *scale);

/**
 * Sets the activations that the backward of a trainer's later steps computes again, by a code `SV_RECOMPUTE_...`. The bits of the
 * steps stay the same. `SV_RECOMPUTE_BLOCKS` takes the least memory, for about one more forward a step.
 *
 * Others that use the trainer or its model wait meanwhile.
 */
int32_t sv_gpt_trainer_set_recompute(sv_gpt_trainer trainer,
                                     int32_t recompute);

/**
 * Writes the mean loss of some batches of the validation text, the same at each call, in nats an id.
 *
 * Others that use the trainer or its model wait meanwhile.
 */
int32_t sv_gpt_trainer_evaluate(sv_gpt_trainer trainer,
                                double *loss);

/**
 * Writes the number of steps that a trainer has taken, with those before its checkpoint.
 */
int32_t sv_gpt_trainer_steps(sv_gpt_trainer trainer, uint64_t *steps);

/**
 * Saves a checkpoint of a trainer in a folder of checkpoints, which is created if it is missing. The last three checkpoints
 * stay, and the one of the lowest loss of `sv_gpt_trainer_evaluate`.
 *
 * `SV_ERROR_FILE` if another process writes to the folder. Others that use the trainer or its model wait meanwhile.
 */
int32_t sv_gpt_trainer_save(sv_gpt_trainer trainer,
                            const char *folder);

/**
 * Continues from the last checkpoint in a folder, of a run with the same model, tokenizer and seed; the steps that follow are
 * those of the run without a break, bit for bit. `allow_other_text` is 1 to continue on another text, or 0.
 *
 * Others that use the trainer or its model wait meanwhile.
 */
int32_t sv_gpt_trainer_resume(sv_gpt_trainer trainer,
                              const char *folder,
                              int32_t allow_other_text);

/**
 * Creates a variable of a tensor's elements. `requires_grad` is 1 for one whose gradient `sv_variable_backward` computes, or 0
 * for a constant.
 */
int32_t sv_variable_create(sv_tensor tensor,
                           int32_t requires_grad,
                           sv_variable *result);

/**
 * Gives the tensor of a variable, which shares its elements.
 */
int32_t sv_variable_tensor(sv_variable variable, sv_tensor *result);

/**
 * Gives a constant with the same elements: no gradient passes through it.
 */
int32_t sv_variable_detach(sv_variable variable, sv_variable *result);

/**
 * Writes 1 if operations on a variable are recorded, or 0.
 */
int32_t sv_variable_requires_grad(sv_variable variable, int32_t *requires_grad);

/**
 * Writes 1 if no recorded operation made a variable, or 0.
 */
int32_t sv_variable_is_leaf(sv_variable variable, int32_t *is_leaf);

/**
 * Replaces the elements of a variable by those of a tensor, which is broadcast and cast, or by a number. A leaf that requires a
 * gradient changes within `sv_no_grad_begin` or `sv_no_grad` alone, and the result of a recorded operation does not change.
 *
 * A later backward that reads the old elements is `SV_ERROR_BACKWARD`.
 */
int32_t sv_variable_assign(sv_variable variable,
                           const struct sv_operand *value);

/**
 * Casts the elements of a variable to one of `SV_DTYPE_...`. The gradient is cast back; integers and bools have none.
 */
int32_t sv_variable_cast(sv_variable variable,
                         int32_t dtype,
                         sv_variable *result);

/**
 * Copies the elements of a variable to a device. The gradient is copied back.
 */
int32_t sv_variable_to_device(sv_variable variable, int32_t device, sv_variable *result);

/**
 * Computes an elementwise operation, one of `SV_OP_...`, on `count` operands, each a variable, a tensor or a number. At least one
 * of them is a variable or a tensor. Dtypes are promoted and shapes broadcast as in PyTorch, and the gradient of a broadcast operand
 * is summed.
 *
 * No gradient passes through an operation without one, such as `SV_OP_FLOOR` or `SV_OP_LT`: its result is a constant.
 *
 * Requires: `operands` points to `count` structs.
 */
int32_t sv_variable_operation(uint32_t operation,
                              const struct sv_variable_operand *operands,
                              size_t count,
                              sv_variable *result);

/**
 * Computes the product of matrices, vectors, and batches of them, which are broadcast. Either operand may be a constant.
 */
int32_t sv_variable_matmul(sv_variable variable,
                           sv_variable right,
                           sv_variable *result);

/**
 * Writes the handle of a variable's gradient, a tensor, or 0 if it has none.
 */
int32_t sv_variable_grad(sv_variable variable, sv_tensor *result);

/**
 * Adds the gradients of a variable to those of the variables that it was computed from. `gradient` is a tensor of its shape,
 * or 0 for 1 if it has one element.
 *
 * The saved values are freed: a second backward is `SV_ERROR_BACKWARD`, and so is one through a value that was changed in place.
 */
int32_t sv_variable_backward(sv_variable variable,
                             sv_tensor gradient);

/**
 * Adds gradients as `sv_variable_backward`, and keeps the saved values for another backward.
 */
int32_t sv_variable_backward_retain_graph(sv_variable variable, sv_tensor gradient);

/**
 * Removes the gradient of a variable.
 */
int32_t sv_variable_zero_grad(sv_variable variable);

/**
 * Writes the gradients of a variable with respect to `count` inputs, as variables: zeros for an input that it does not depend on.
 * No variable's `sv_variable_grad` changes, and the saved values stay. `gradient` is that of the variable, of its shape, or NULL
 * for 1 if it has one element.
 *
 * `create_graph` is 1 to record the gradients, so that they have gradients themselves, or 0 for constants. With 1, an operation
 * between the inputs and the variable that has no second derivative is `SV_ERROR_BACKWARD`, and the message names it. Elementwise
 * operations, products, linear layers, sums, means, views, joins and casts have one.
 *
 * The caller owns one reference to each of `results`.
 *
 * Requires: `inputs` points to `count` handles, and `results` to space for as many.
 */
int32_t sv_variable_gradients(sv_variable variable,
                              sv_variable gradient,
                              const sv_variable *inputs,
                              size_t count,
                              int32_t create_graph,
                              sv_variable *results);

/**
 * Gives the elements that an index expression of `count` entries names, as `sv_tensor_index`. An element that it names twice gets the
 * sum of both gradients, and one that it does not name gets 0.
 *
 * It waits for the device if an entry is a mask.
 *
 * Requires: `items` points to `count` structs.
 */
int32_t sv_variable_index(sv_variable variable,
                          const struct sv_index *items,
                          size_t count,
                          sv_variable *result);

/**
 * Gives the positions along an axis that a list of indices names.
 *
 * An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
 * waits for the device.
 */
int32_t sv_variable_index_select(sv_variable variable,
                                 int64_t axis,
                                 sv_tensor index,
                                 sv_variable *result);

/**
 * Gives for each element of the index the element at the same position but along `axis`, where the index says.
 *
 * An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
 * waits for the device.
 */
int32_t sv_variable_gather(sv_variable variable,
                           int64_t axis,
                           sv_tensor index,
                           sv_variable *result);

/**
 * Gives elements along an axis as `sv_variable_gather`, with an index that is broadcast along the other axes.
 *
 * An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
 * waits for the device.
 */
int32_t sv_variable_take_along_axis(sv_variable variable,
                                    int64_t axis,
                                    sv_tensor index,
                                    sv_variable *result);

/**
 * Gives the elements that an index names by their row-major position.
 *
 * An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
 * waits for the device.
 */
int32_t sv_variable_take(sv_variable variable,
                         sv_tensor index,
                         sv_variable *result);

/**
 * Gives the row of a matrix at each element of an index, as a new last axis. A negative index is out of range.
 *
 * An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
 * waits for the device.
 */
int32_t sv_variable_embedding(sv_variable variable,
                              sv_tensor index,
                              sv_variable *result);

/**
 * Gives a variable with elements added to the positions along an axis that a list of indices names.
 *
 * An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
 * waits for the device.
 */
int32_t sv_variable_index_add(sv_variable variable,
                              int64_t axis,
                              sv_tensor index,
                              sv_variable elements,
                              sv_variable *result);

/**
 * Gives a variable with each element added along an axis where an index says.
 *
 * An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
 * waits for the device.
 */
int32_t sv_variable_scatter_add(sv_variable variable,
                                int64_t axis,
                                sv_tensor index,
                                sv_variable elements,
                                sv_variable *result);

/**
 * Gives a variable with elements written by coordinates, with an index for each of the first `count` axes. `accumulate` is 1 to add
 * them, or 0 to replace.
 *
 * An index out of range is `SV_ERROR_INDEX_OUT_OF_RANGE`: of this call on the CPU, and on a CUDA device of the next call that
 * waits for the device.
 *
 * Requires: `indices` points to `count` handles.
 */
int32_t sv_variable_index_put(sv_variable variable,
                              const sv_tensor *indices,
                              size_t count,
                              sv_variable elements,
                              int32_t accumulate,
                              sv_variable *result);

/**
 * Gives the lower triangle of matrices, with zeros above the diagonal `diagonal`.
 */
int32_t sv_variable_tril(sv_variable variable, int64_t diagonal, sv_variable *result);

/**
 * Gives the upper triangle of matrices, with zeros below the diagonal `diagonal`.
 */
int32_t sv_variable_triu(sv_variable variable, int64_t diagonal, sv_variable *result);

/**
 * Gives a variable with a number where a mask of bools, which is broadcast, is true. The gradient is 0 there. `SV_OP_CHOOSE` of
 * `sv_variable_operation` takes variables on both sides.
 *
 * Requires: `value` points to a struct.
 */
int32_t sv_variable_masked_fill(sv_variable variable,
                                sv_tensor mask,
                                const struct sv_number *value,
                                sv_variable *result);

/**
 * Gives the elements for which a mask of bools is true, in row-major order, as one axis.
 *
 * It waits for the device.
 */
int32_t sv_variable_masked_select(sv_variable variable, sv_tensor mask, sv_variable *result);

/**
 * Sorts along an axis, and writes the values and the tensor of their positions before. `descending` is 1 or 0.
 */
int32_t sv_variable_sort(sv_variable variable,
                         int64_t axis,
                         int32_t descending,
                         sv_variable *values,
                         sv_tensor *indices);

/**
 * Gives the `k` largest elements along an axis, or with `largest` of 0 the smallest, and the tensor of their positions.
 */
int32_t sv_variable_topk(sv_variable variable,
                         size_t k,
                         int64_t axis,
                         int32_t largest,
                         sv_variable *values,
                         sv_tensor *indices);

/**
 * Computes one of `SV_LOSS_...` of a variable and a target, a tensor: the mean over a batch, as a variable of one element.
 */
int32_t sv_variable_loss(sv_variable variable,
                         int32_t loss,
                         sv_tensor target,
                         sv_variable *result);

/**
 * Computes one of `SV_LOSS_...` as `sv_variable_loss`, with options. An option that the loss does not read is 0.
 *
 * Requires: `options` points to a struct with its size set.
 */
int32_t sv_variable_loss_with_options(sv_variable variable,
                                      int32_t loss,
                                      sv_tensor target,
                                      const struct sv_loss_options *options,
                                      sv_variable *result);

/**
 * Calls `work` once, on this thread. Operations of variables in it are not recorded, and their results are constants. Scopes that
 * it begins and does not end, end with it.
 *
 * Requires: `work` is a function of this type that may be called with `user`.
 */
int32_t sv_no_grad(sv_no_grad_work work,
                   void *user);

/**
 * Begins a scope of the calling thread in which operations of variables are not recorded, and writes its depth for
 * `sv_no_grad_end`. Scopes nest. `sv_no_grad` ends its scope by itself.
 */
int32_t sv_no_grad_begin(size_t *depth);

/**
 * Ends the scope of the calling thread that began at a depth, and those in it that are still open. Ending it twice, or on another
 * thread, is `SV_ERROR_INVALID_ARGUMENT`.
 */
int32_t sv_no_grad_end(size_t depth);

/**
 * Writes 1 if operations of variables on this thread are recorded, or 0.
 */
int32_t sv_is_grad_enabled(int32_t *is_enabled);

/**
 * Computes e^x / Σ e^x along an axis.
 */
int32_t sv_variable_softmax(sv_variable variable, int64_t axis, sv_variable *result);

/**
 * Computes the logarithm of `sv_variable_softmax`, without overflow.
 */
int32_t sv_variable_log_softmax(sv_variable variable, int64_t axis, sv_variable *result);

/**
 * Computes (x - mean) / sqrt(variance + eps) · weight + bias over the last `rank` axes, whose sizes are `normalized_shape`.
 * `weight` and `bias` have that shape, or are NULL for none.
 *
 * Requires: `normalized_shape` points to `rank` numbers.
 */
int32_t sv_variable_layer_norm(sv_variable variable,
                               const int64_t *normalized_shape,
                               size_t rank,
                               sv_variable weight,
                               sv_variable bias,
                               double eps,
                               sv_variable *result);

/**
 * Computes x / sqrt(mean(x²) + eps) · weight over the last `rank` axes, whose sizes are `normalized_shape`. `weight` has that
 * shape, or is NULL for none. A negative `eps` is the machine epsilon of the dtype.
 *
 * Requires: `normalized_shape` points to `rank` numbers.
 */
int32_t sv_variable_rms_norm(sv_variable variable,
                             const int64_t *normalized_shape,
                             size_t rank,
                             sv_variable weight,
                             double eps,
                             sv_variable *result);

/**
 * Reduces a variable as `sv_tensor_reduce`, by `SV_REDUCE_SUM`, `_PROD`, `_MIN`, `_MAX`, `_MEAN`, `_VAR`, `_STD`, `_NORM` or
 * `_LOGSUMEXP`. Equal extremes share the gradient.
 *
 * Requires: `axes` is NULL or points to `count` numbers.
 */
int32_t sv_variable_reduce(sv_variable variable,
                           int32_t reduction,
                           const int64_t *axes,
                           size_t count,
                           int32_t keepdim,
                           double parameter,
                           sv_variable *result);

/**
 * Computes `SV_SCAN_SUM` or `SV_SCAN_PROD` along an axis.
 */
int32_t sv_variable_scan(sv_variable variable, int32_t scan, int64_t axis, sv_variable *result);

/**
 * Gives the elements in row-major order as another shape, in which one size may be -1.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_variable_reshape(sv_variable variable,
                            const int64_t *shape,
                            size_t rank,
                            sv_variable *result);

/**
 * Gives the axes from `first` to `last`, both included, as one.
 */
int32_t sv_variable_flatten(sv_variable variable, int64_t first, int64_t last, sv_variable *result);

/**
 * Gives an axis as several ones of these sizes, of which one may be -1 for the rest.
 *
 * Requires: `sizes` points to `count` numbers.
 */
int32_t sv_variable_unflatten(sv_variable variable,
                              int64_t axis,
                              const int64_t *sizes,
                              size_t count,
                              sv_variable *result);

/**
 * Drops an axis of size 1.
 */
int32_t sv_variable_squeeze(sv_variable variable, int64_t axis, sv_variable *result);

/**
 * Drops all axes of size 1.
 */
int32_t sv_variable_squeeze_all(sv_variable variable, sv_variable *result);

/**
 * Adds an axis of size 1 before `axis`; -1 puts it last.
 */
int32_t sv_variable_unsqueeze(sv_variable variable, int64_t axis, sv_variable *result);

/**
 * Gives a variable with two axes exchanged.
 */
int32_t sv_variable_transpose(sv_variable variable,
                              int64_t first,
                              int64_t second,
                              sv_variable *result);

/**
 * Gives the axes in another order: axis `i` of the result is `axes[i]` of the variable.
 *
 * Requires: `axes` points to `count` numbers.
 */
int32_t sv_variable_permute(sv_variable variable,
                            const int64_t *axes,
                            size_t count,
                            sv_variable *result);

/**
 * Moves axes to other positions; the others keep their order.
 *
 * Requires: `from` and `to` point to `count` numbers each.
 */
int32_t sv_variable_movedim(sv_variable variable,
                            const int64_t *from,
                            const int64_t *to,
                            size_t count,
                            sv_variable *result);

/**
 * Reverses axes.
 *
 * Requires: `axes` points to `count` numbers.
 */
int32_t sv_variable_flip(sv_variable variable,
                         const int64_t *axes,
                         size_t count,
                         sv_variable *result);

/**
 * Repeats a variable to a larger shape: axes of size 1, and new ones in front, take its sizes. The gradient is summed over them.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_variable_expand(sv_variable variable,
                           const int64_t *shape,
                           size_t rank,
                           sv_variable *result);

/**
 * Gives positions along axes, one axis after the other, as `start:stop:step` in Python. The gradient of the others is 0.
 *
 * Requires: `slices` points to `count` structs.
 */
int32_t sv_variable_slice(sv_variable variable,
                          const struct sv_slice *slices,
                          size_t count,
                          sv_variable *result);

/**
 * Gives one position along an axis, without that axis. A negative index counts from the end.
 */
int32_t sv_variable_select(sv_variable variable, int64_t axis, int64_t index, sv_variable *result);

/**
 * Gives `length` positions along an axis from `start` on.
 */
int32_t sv_variable_narrow(sv_variable variable,
                           int64_t axis,
                           size_t start,
                           size_t length,
                           sv_variable *result);

/**
 * Gives the elements whose positions along two axes differ by `offset`, as a new last axis in place of both.
 */
int32_t sv_variable_diagonal(sv_variable variable,
                             int64_t offset,
                             int64_t first,
                             int64_t second,
                             sv_variable *result);

/**
 * Writes `count` parts of a variable along an axis, of these sizes.
 *
 * The caller owns one reference to each of `results`.
 *
 * Requires: `sizes` points to `count` numbers, and `results` to space for `count` handles.
 */
int32_t sv_variable_split(sv_variable variable,
                          const int64_t *sizes,
                          size_t count,
                          int64_t axis,
                          sv_variable *results);

/**
 * Joins variables along an axis.
 *
 * Requires: `variables` points to `count` handles.
 */
int32_t sv_variable_cat(const sv_variable *variables,
                        size_t count,
                        int64_t axis,
                        sv_variable *result);

/**
 * Joins variables of one shape along a new axis.
 *
 * Requires: `variables` points to `count` handles.
 */
int32_t sv_variable_stack(const sv_variable *variables,
                          size_t count,
                          int64_t axis,
                          sv_variable *result);

/**
 * Moves elements along axes; those that leave at one end come back at the other.
 *
 * Requires: `shifts` and `axes` point to `count` numbers each.
 */
int32_t sv_variable_roll(sv_variable variable,
                         const int64_t *shifts,
                         const int64_t *axes,
                         size_t count,
                         sv_variable *result);

/**
 * Repeats a variable this many times along each axis.
 *
 * Requires: `times` points to `count` numbers.
 */
int32_t sv_variable_repeat(sv_variable variable,
                           const int64_t *times,
                           size_t count,
                           sv_variable *result);

/**
 * Pads a variable as `sv_tensor_pad`.
 *
 * Requires: `widths` points to `2 * count` numbers, and `number` to a struct where the mode uses it.
 */
int32_t sv_variable_pad(sv_variable variable,
                        const int64_t *widths,
                        size_t count,
                        int32_t mode,
                        const struct sv_number *number,
                        sv_variable *result);

/**
 * Returns an operand of its parts: a variable, or with NULL a tensor or a number.
 */
SV_INLINE sv_variable_operand sv_variable_operand_with(sv_variable variable, sv_operand other)
{
  sv_variable_operand operand;
  operand.variable = variable;
  operand.other = other;
  return operand;
}

/**
 * Returns a variable as an operand.
 */
SV_INLINE sv_variable_operand sv_variable_operand_of(sv_variable variable)
{
  /* NULL would stand for a tensor or a number. */
  return sv_variable_operand_with(variable ? variable : SV_NO_VARIABLE, sv_operand_integer(0));
}

/**
 * Computes an elementwise operation of one variable; see sv_variable_operation().
 */
SV_INLINE int32_t sv_variable_unary(uint32_t operation, sv_variable x, sv_variable *result)
{
  sv_variable_operand operand = sv_variable_operand_of(x);
  return sv_variable_operation(operation, &operand, 1, result);
}

/**
 * Computes an elementwise operation of two variables; see sv_variable_operation().
 */
SV_INLINE int32_t sv_variable_binary(uint32_t operation, sv_variable x, sv_variable y, sv_variable *result)
{
  sv_variable_operand operands[2];
  operands[0] = sv_variable_operand_of(x);
  operands[1] = sv_variable_operand_of(y);
  return sv_variable_operation(operation, operands, 2, result);
}

/**
 * Computes an elementwise operation of a variable and a tensor or a number, as sv_operand_of() and sv_operand_real() return them;
 * see sv_variable_operation().
 */
SV_INLINE int32_t sv_variable_binary_with(uint32_t operation, sv_variable x, sv_operand y, sv_variable *result)
{
  sv_variable_operand operands[2];
  operands[0] = sv_variable_operand_of(x);
  operands[1] = sv_variable_operand_with(NULL, y);
  return sv_variable_operation(operation, operands, 2, result);
}

/* ---- 10. The classifier ---- */

/**
 * The shape and the first values of a classifier.
 */
typedef struct sv_classifier_options {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * The number of features of a row.
   */
  size_t features;
  /**
   * The widths of the hidden layers.
   */
  const size_t *hidden;
  /**
   * The number of hidden layers, from 0 on.
   */
  size_t hidden_count;
  /**
   * The probability of each class.
   */
  const double *prior;
  /**
   * The number of classes.
   */
  size_t classes;
  /**
   * The probability with which training drops an element behind a hidden layer; 0 for no dropout.
   */
  double dropout;
  /**
   * The seed of the first weights.
   */
  uint64_t seed;
  /**
   * 1 if beliefs are the posterior times the prior, normalised; 0 if they are the posterior.
   */
  int32_t fuse_prior;
  /**
   * 0.
   */
  int32_t reserved;
} sv_classifier_options;

/**
 * The settings of a training. Zeros are the defaults, but for `size`.
 */
typedef struct sv_classifier_training_options {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * The most epochs; 0 for 100.
   */
  size_t epochs;
  /**
   * The rows of a batch; 0 for 64.
   */
  size_t batch;
  /**
   * The epochs without a better validation loss after which the training ends; 0 for 10.
   */
  size_t patience;
  /**
   * The learning rate of Adam; 0 for 1e-3.
   */
  double learning_rate;
  /**
   * The part of the rows that is kept for validation. 0 without `has_validation`.
   */
  double validation;
  /**
   * The seed of the split, the order of rows and dropout.
   */
  uint64_t seed;
  /**
   * 1 to use `validation`; otherwise it is 0.2.
   */
  int32_t has_validation;
  /**
   * 0.
   */
  int32_t reserved;
} sv_classifier_training_options;

/**
 * The course of an epoch.
 */
typedef struct sv_classifier_epoch {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * The epoch, from 1.
   */
  size_t epoch;
  /**
   * The mean loss of the epoch's batches, with dropout.
   */
  double training_loss;
  /**
   * The loss of the validation rows; without such rows, the training loss.
   */
  double validation_loss;
  /**
   * The part of right classes of the validation rows; NaN without such rows.
   */
  double validation_accuracy;
  /**
   * 1 if the validation loss is the least so far, else 0.
   */
  int32_t is_best;
  /**
   * 0.
   */
  int32_t reserved;
} sv_classifier_epoch;

/**
 * The classes of rows beside their labels.
 */
typedef struct sv_classifier_evaluation {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * The number of rows.
   */
  uint64_t rows;
  /**
   * The part of right classes.
   */
  double accuracy;
  /**
   * The mean of |accuracy - confidence| over ten bins of confidence, weighted by their rows.
   */
  double calibration_error;
} sv_classifier_evaluation;

/**
 * The course of a training.
 */
typedef struct sv_classifier_report {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * The epochs that ran.
   */
  size_t epochs;
  /**
   * The epoch whose weights the classifier has now.
   */
  size_t best_epoch;
  /**
   * The rows that weights were trained on.
   */
  size_t training_rows;
  /**
   * The rows that were kept for validation.
   */
  size_t validation_rows;
  /**
   * The part of right classes of the validation rows; without such rows, of the training rows.
   */
  double accuracy;
  /**
   * The calibration error of the same rows.
   */
  double calibration_error;
  /**
   * 1 if the training ended before its last epoch, else 0.
   */
  int32_t is_stopped_early;
  /**
   * 0.
   */
  int32_t reserved;
} sv_classifier_report;

/**
 * A function that is called after each epoch of a training, on the thread that trains. The struct is valid during the call. It
 * must not call functions of the same classifier.
 */
typedef void (*sv_classifier_epoch_callback)(void *user, const struct sv_classifier_epoch *epoch);

/**
 * The result of one row.
 */
typedef struct sv_classification {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * The class of the largest belief, the first of equal ones.
   */
  size_t found;
  /**
   * The free energy.
   */
  double free_energy;
  /**
   * The largest belief.
   */
  double confidence;
} sv_classification;

/**
 * The rows whose confidence is in an interval. The layout is permanent.
 */
typedef struct sv_calibration_bin {
  /**
   * The number of rows.
   */
  uint64_t rows;
  /**
   * The mean confidence; 0 without rows.
   */
  double confidence;
  /**
   * The part of right classes; 0 without rows.
   */
  double accuracy;
} sv_calibration_bin;

/**
 * Creates a classifier with weights of a seed, which are the same on every device.
 *
 * Requires: `options` points to a struct with pointers to as many elements as it says.
 */
int32_t sv_classifier_create(const struct sv_classifier_options *options,
                             int32_t device,
                             sv_classifier *classifier);

/**
 * Trains a classifier on rows of `SV_DTYPE_F32` with labels, a vector of integers, by Adam on the cross entropy, and calls
 * `callback`, if not NULL, after each epoch. In the end the weights are those of the epoch with the least validation loss; they
 * are the first ones after an error. The same data, options and first weights give the same weights.
 *
 * Others that use the classifier wait meanwhile.
 *
 * Requires: `options` and `report` point to structs, and `callback` may be called with `user`.
 */
int32_t sv_classifier_train(sv_classifier classifier,
                            sv_tensor features,
                            sv_tensor labels,
                            const struct sv_classifier_training_options *options,
                            sv_classifier_epoch_callback callback,
                            void *user,
                            struct sv_classifier_report *report);

/**
 * Classifies rows of `SV_DTYPE_F32` on the classifier's device. Writes the class of each row as `SV_DTYPE_I64`, the posterior
 * and the beliefs with a column for each class, the free energy of each row, and its largest belief.
 *
 * A feature that is not finite is an error that names the row. It waits for the device.
 */
int32_t sv_classifier_run(sv_classifier classifier,
                          sv_tensor features,
                          sv_tensor *classes,
                          sv_tensor *posterior,
                          sv_tensor *beliefs,
                          sv_tensor *free_energy,
                          sv_tensor *confidence);

/**
 * Gives the logits of rows, a column for each class.
 *
 * It waits for the device.
 */
int32_t sv_classifier_logits(sv_classifier classifier, sv_tensor features, sv_tensor *result);

/**
 * Classifies rows and compares their classes with labels, a vector of integers.
 *
 * `confusion` gets the rows by label and class: a row for each label, with a column for each class. `count` is the number of
 * classes squared, or 0 for no such table. The history of free energies stays. It waits for the device.
 *
 * Requires: `confusion` points to `count` numbers.
 */
int32_t sv_classifier_evaluate(sv_classifier classifier,
                               sv_tensor features,
                               sv_tensor labels,
                               struct sv_classifier_evaluation *evaluation,
                               uint64_t *confusion,
                               size_t count);

/**
 * Writes the probability of each class. `classes` is their number.
 *
 * Requires: `prior` points to `classes` numbers.
 */
int32_t sv_classifier_prior(sv_classifier classifier, double *prior, size_t classes);

/**
 * Sets the probability of each class. The sum is 1.
 *
 * Requires: `prior` points to `classes` numbers.
 */
int32_t sv_classifier_set_prior(sv_classifier classifier, const double *prior, size_t classes);

/**
 * Moves the prior toward the observed probabilities of the classes: 0.9 of the prior plus 0.1 of them.
 *
 * Requires: `observed` points to `classes` numbers.
 */
int32_t sv_classifier_learn_prior(sv_classifier classifier,
                                  const double *observed,
                                  size_t classes);

/**
 * Sets whether beliefs are the posterior times the prior, normalised (1), or the posterior (0).
 */
int32_t sv_classifier_set_fuse_prior(sv_classifier classifier, int32_t fuse_prior);

/**
 * Sets the generative model of the full mode: each class is a Gaussian around its row of `centres`, of one deviation. With 0
 * for `centres`, free energies are those of the KL mode, which has no such model.
 */
int32_t sv_classifier_set_generative_model(sv_classifier classifier,
                                           sv_tensor centres,
                                           double deviation);

/**
 * Writes the free energies of the last rows, at most 100, the oldest first.
 *
 * `count` gets their number; the array gets the first `capacity` of them. A capacity of 0 asks for the number alone.
 *
 * Requires: `energies` points to `capacity` numbers.
 */
int32_t sv_classifier_free_energies(sv_classifier classifier,
                                    double *energies,
                                    size_t capacity,
                                    size_t *count);

/**
 * Writes the weights, the prior, the options and the generative model to a file, replacing the file at that path.
 */
int32_t sv_classifier_save(sv_classifier classifier,
                           const char *path);

/**
 * Reads a classifier from a file of `sv_classifier_save`.
 */
int32_t sv_classifier_load(const char *path, int32_t device, sv_classifier *classifier);

/**
 * Draws `count` rows of five classes: a class by the prior 0.7, 0.1, 0.1, 0.05, 0.05, and its centre plus normal noise of
 * deviation 3. Writes the features of shape (count, 100), the labels, and the centres of shape (5, 100).
 *
 * The numbers are the same on every device.
 */
int32_t sv_classifier_synthetic(size_t count,
                                uint64_t seed,
                                int32_t device,
                                sv_tensor *features,
                                sv_tensor *labels,
                                sv_tensor *centres);

/**
 * Creates a model of centres of `SV_DTYPE_F32` or `SV_DTYPE_F64`, a row for each class. Nothing changes a model.
 *
 * It waits for the device.
 */
int32_t sv_generative_model_create(sv_tensor centres,
                                   double deviation,
                                   sv_generative_model *model);

/**
 * Writes the generative model of a classifier, or 0 in the KL mode, which has none.
 */
int32_t sv_classifier_generative_model(sv_classifier classifier, sv_generative_model *model);

/**
 * Writes the centres and the deviation of a generative model.
 */
int32_t sv_generative_model_parameters(sv_generative_model model,
                                       sv_tensor *centres,
                                       double *deviation);

/**
 * Gives ln p(o|c) of rows o of the centres' dtype, with a column for each class c.
 */
int32_t sv_generative_model_log_likelihood(sv_generative_model model,
                                           sv_tensor inputs,
                                           sv_tensor *result);

/**
 * Gives the exact posterior softmax(ln p(o|c) + ln prior) of rows, with a column for each class.
 *
 * Requires: `prior` points to `classes` numbers.
 */
int32_t sv_generative_model_posterior(sv_generative_model model,
                                      sv_tensor inputs,
                                      const double *prior,
                                      size_t classes,
                                      sv_tensor *result);

/**
 * Gives -ln p(o) of rows o, the least free energy, a number for each row.
 *
 * Requires: `prior` points to `classes` numbers.
 */
int32_t sv_generative_model_surprise(sv_generative_model model,
                                     sv_tensor inputs,
                                     const double *prior,
                                     size_t classes,
                                     sv_tensor *result);

/**
 * Gives the class of the largest exact posterior of each row as `SV_DTYPE_I64`, the first of equal ones: the Bayes rule.
 *
 * Requires: `prior` points to `classes` numbers.
 */
int32_t sv_generative_model_bayes_classes(sv_generative_model model,
                                          sv_tensor inputs,
                                          const double *prior,
                                          size_t classes,
                                          sv_tensor *result);

/**
 * Gives the free energy of each row of a posterior Q: the sum of Q ln(Q / P), and with `log_likelihood` less that of
 * Q ln p(o|c). The classes are the last axis, and `prior` is a vector. `log_likelihood` has the posterior's shape, or is 0.
 */
int32_t sv_free_energy(sv_tensor posterior,
                       sv_tensor prior,
                       sv_tensor log_likelihood,
                       sv_tensor *result);

/**
 * Gives the beliefs of each row of a posterior Q: Q P / sum of Q P, with the classes as the last axis. `prior` is a vector.
 */
int32_t sv_fuse_prior(sv_tensor posterior,
                      sv_tensor prior,
                      sv_tensor *result);

/**
 * Writes the prior that `sv_classifier_learn_prior` sets: 0.9 of a prior plus 0.1 of the observed probabilities, normalised.
 *
 * `learned` may be the array `prior`.
 *
 * Requires: `prior`, `observed` and `learned` each point to `classes` numbers.
 */
int32_t sv_learned_prior(const double *prior,
                         const double *observed,
                         size_t classes,
                         double *learned);

/**
 * Classifies one row of `count` features in host memory, in less time than `sv_classifier_run` takes.
 *
 * `posterior` and `beliefs` get a number for each class. `classes` is their number, or 0 for neither of them. It waits for the
 * device.
 *
 * Requires: `features` points to `count` numbers, and `posterior` and `beliefs` each to `classes` numbers.
 */
int32_t sv_classifier_classify(sv_classifier classifier,
                               const float *features,
                               size_t count,
                               double *posterior,
                               double *beliefs,
                               size_t classes,
                               struct sv_classification *classification);

/**
 * Classifies rows, as `sv_classifier_evaluate`, and writes the calibration curve: bins of confidence of width 0.1.
 *
 * `count` gets their number, which is 10; the array gets the first `capacity` of them. It waits for the device.
 *
 * Requires: `bins` points to `capacity` structs.
 */
int32_t sv_classifier_calibration(sv_classifier classifier,
                                  sv_tensor features,
                                  sv_tensor labels,
                                  struct sv_calibration_bin *bins,
                                  size_t capacity,
                                  size_t *count);

/**
 * Writes the numbers of features, classes, and weights with biases of a classifier.
 *
 * Requires: `features`, `classes` and `parameters` each point to a `size_t`.
 */
int32_t sv_classifier_size(sv_classifier classifier,
                           size_t *features,
                           size_t *classes,
                           size_t *parameters);

/**
 * Writes the widths of a classifier's layers, from the features to the classes.
 *
 * `count` gets their number; the array gets the first `capacity` of them. A capacity of 0 asks for the number alone.
 *
 * Requires: `widths` points to `capacity` numbers.
 */
int32_t sv_classifier_widths(sv_classifier classifier,
                             size_t *widths,
                             size_t capacity,
                             size_t *count);

/**
 * Writes the probability of dropout, and 1 to `fuse_prior` if beliefs are the posterior times the prior, else 0.
 */
int32_t sv_classifier_settings(sv_classifier classifier,
                               double *dropout,
                               int32_t *fuse_prior);

/* ---- 11. Numerical models ---- */

/**
 * The settings of `sv_gaussian_model_infer`. Zeros are the defaults, but for `size`.
 */
typedef struct sv_inference_options {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * The most steps; 0 for 100.
   */
  size_t iterations;
  /**
   * The step along the negative gradient; 0 for 0.01.
   */
  double rate;
  /**
   * The largest change of a belief by a step at which the belief counts as reached; 0 for 1e-4.
   */
  double tolerance;
} sv_inference_options;

/**
 * Gives the phases after one Euler step of the Kuramoto model, from 0 to below 2 pi. `theta` is a vector of n phases or rows
 * of them, `omega` has its shape or is one row, and `adjacency` is an n x n matrix, or 0 for ones.
 */
int32_t sv_kuramoto_step(sv_tensor theta,
                         sv_tensor omega,
                         sv_tensor adjacency,
                         double strength,
                         double dt,
                         sv_tensor *result);

/**
 * Writes the length and the direction of the mean of e^(i theta) of each row of phases.
 */
int32_t sv_order_parameter(sv_tensor theta, sv_tensor *magnitude, sv_tensor *phase);

/**
 * Gives the entropy production, the sum of v^2 / (2 T), of each row of velocities v at a temperature T.
 */
int32_t sv_entropy_production(sv_tensor velocity,
                              double temperature,
                              sv_tensor *result);

/**
 * Gives the accuracy -1/2 of the sum of P e^2 + ln(2 pi / P) of each row of prediction errors e. The precisions P have the
 * shape of the errors, or are one row.
 */
int32_t sv_gaussian_accuracy(sv_tensor error,
                             sv_tensor precision,
                             sv_tensor *result);

/**
 * Gives the divergence of each row of Gaussians with diagonal covariances from others. The latter have the shape of the first
 * ones, or are one row.
 */
int32_t sv_gaussian_kl_divergence(sv_tensor mean,
                                  sv_tensor variance,
                                  sv_tensor prior_mean,
                                  sv_tensor prior_variance,
                                  sv_tensor *result);

/**
 * Creates a model of a matrix J with a row for each observation and a column for each state, a precision for each observation,
 * and a mean and a precision for each state. Nothing changes a model.
 *
 * It waits for the device.
 */
int32_t sv_gaussian_model_create(sv_tensor jacobian,
                                 sv_tensor observation_precision,
                                 sv_tensor prior_mean,
                                 sv_tensor prior_precision,
                                 sv_gaussian_model *model);

/**
 * Gives the weighted prediction error P (o - J mu) of a belief mu and an observation o, with the precisions P of observations.
 */
int32_t sv_gaussian_model_prediction_error(sv_gaussian_model model,
                                           sv_tensor mean,
                                           sv_tensor observation,
                                           sv_tensor *result);

/**
 * Gives the direction of descent of a belief: the negative gradient of its free energy.
 */
int32_t sv_gaussian_model_gradient(sv_gaussian_model model,
                                   sv_tensor mean,
                                   sv_tensor observation,
                                   sv_tensor *result);

/**
 * Gives the free energy of a belief: complexity minus accuracy.
 */
int32_t sv_gaussian_model_free_energy(sv_gaussian_model model,
                                      sv_tensor mean,
                                      sv_tensor observation,
                                      sv_tensor *result);

/**
 * Descends from a belief along the gradient until a step is below the tolerance. Writes the belief, the number of gradients
 * computed, and 1 to `converged` if the last step was below the tolerance, else 0.
 *
 * A gradient that is not finite, such as after too large a rate, is `SV_ERROR_INVALID_ARGUMENT`. It waits for the device in each
 * step.
 */
int32_t sv_gaussian_model_infer(sv_gaussian_model model,
                                sv_tensor observation,
                                sv_tensor start,
                                const struct sv_inference_options *options,
                                sv_tensor *mean,
                                size_t *iterations,
                                int32_t *converged);

/**
 * Gives the precision of the exact posterior, a matrix.
 */
int32_t sv_gaussian_model_posterior_precision(sv_gaussian_model model, sv_tensor *result);

/**
 * Gives the belief of least free energy, the mean of the exact posterior. The host solves for it in f64.
 *
 * It waits for the device.
 */
int32_t sv_gaussian_model_fixed_point(sv_gaussian_model model,
                                      sv_tensor observation,
                                      sv_tensor *result);

/**
 * Applies the Hadamard gate to a qubit of a state: 2^n amplitudes of `SV_DTYPE_C64` or `SV_DTYPE_C128` along the last axis.
 * Qubit q is bit q of an amplitude's index.
 */
int32_t sv_hadamard(sv_tensor state,
                    size_t qubit,
                    sv_tensor *result);

/**
 * Applies the Pauli X gate to a qubit of a state, as `sv_hadamard`: swaps the amplitudes of its values.
 */
int32_t sv_pauli_x(sv_tensor state,
                   size_t qubit,
                   sv_tensor *result);

/**
 * Multiplies the amplitudes with a qubit of 1 by e^(i angle), as `sv_hadamard`.
 */
int32_t sv_phase_gate(sv_tensor state, size_t qubit, double angle, sv_tensor *result);

/**
 * Swaps the amplitudes of the values of the qubit `target` for a qubit `control` of 1, as `sv_hadamard`.
 */
int32_t sv_cnot(sv_tensor state,
                size_t control,
                size_t target,
                sv_tensor *result);

/**
 * Gives the probability of each basis state, in real numbers of the amplitudes' width. `sv_multinomial` draws by them.
 */
int32_t sv_measurement_probabilities(sv_tensor state,
                                     sv_tensor *result);

/**
 * Gives the bin of each element among `bins` of equal width, as `SV_DTYPE_I64`. The range is from `low` to `high`, or that of
 * the elements if both are 0.
 *
 * It waits for the device.
 */
int32_t sv_discretize(sv_tensor x,
                      size_t bins,
                      double low,
                      double high,
                      sv_tensor *result);

/**
 * Gives the mutual information of a table of counts or probabilities, in nats.
 */
int32_t sv_mutual_information(sv_tensor joint, sv_tensor *result);

/**
 * Gives the transfer entropy from a source to a target in nats: vectors of states from 0 to below `states`, with a past of
 * `history` states.
 *
 * It waits for the device.
 */
int32_t sv_transfer_entropy(sv_tensor source,
                            sv_tensor target,
                            size_t states,
                            size_t history,
                            sv_tensor *result);

/**
 * Gives the entropy of each row of probabilities, in nats. A probability up to 1e-10 counts as 0.
 */
int32_t sv_shannon_entropy(sv_tensor p, sv_tensor *result);

/**
 * Gives the divergence, the sum of q ln(q / p), of each row of probabilities, in nats. `p` has the shape of `q`, or is one
 * row. A term with q or p up to 1e-10 is dropped.
 */
int32_t sv_kl_divergence(sv_tensor q,
                         sv_tensor p,
                         sv_tensor *result);

/**
 * Gives the variational free energy of each row of probabilities q: the divergence from `prior` less the sum of q ln p(o|c).
 * `prior` and `log_likelihood` have the shape of `q`, or are one row.
 *
 * It is the plain sum; `sv_free_energy` of classifiers bounds the divergence below by 0.
 */
int32_t sv_variational_free_energy(sv_tensor q,
                                   sv_tensor prior,
                                   sv_tensor log_likelihood,
                                   sv_tensor *result);

/**
 * Gives the counts of pairs as `SV_DTYPE_I64`, with a row for each bin of `x` and a column for each bin of `y`. Both axes have
 * the same bins, those of `sv_discretize`; the range of elements is that of both tensors.
 *
 * It waits for the device.
 */
int32_t sv_histogram_2d(sv_tensor x,
                        sv_tensor y,
                        size_t bins,
                        double low,
                        double high,
                        sv_tensor *result);

/**
 * Gives the conditional entropy H(Y|X) of a table of counts or probabilities, in nats: a row for each x, a column for each y.
 */
int32_t sv_conditional_entropy(sv_tensor joint,
                               sv_tensor *result);

/**
 * Gives a view of the rows of `dimension` values that are `delay` apart, of each series along the last axis.
 */
int32_t sv_time_delayed_embedding(sv_tensor x,
                                  size_t dimension,
                                  size_t delay,
                                  sv_tensor *result);

/**
 * Gives the transfer entropy of a table of counts or probabilities, in nats. Its axes are the next value of the target, the
 * past of the target, and the past of the source.
 */
int32_t sv_transfer_entropy_of_counts(sv_tensor counts,
                                      sv_tensor *result);

/**
 * Writes the states tanh((1 - leak) state + input), with 0 for a neuron that spikes, and as `SV_DTYPE_BOOL` the spikes: 1 for
 * each state above the threshold.
 */
int32_t sv_leaky_integrate_fire(sv_tensor state,
                                sv_tensor input,
                                double leak,
                                double threshold,
                                sv_tensor *next,
                                sv_tensor *spikes);

/**
 * Gives the states tanh((1 - leak) previous + input) of a reservoir; `input` is the sum of its input and recurrent products.
 */
int32_t sv_reservoir_update(sv_tensor previous,
                            sv_tensor input,
                            double leak,
                            sv_tensor *result);

/**
 * Gives the weights after the spikes of a step: if both neurons spiked, a weight grows by learning_rate e^(-dt/tau) for the
 * time dt > 0 from the presynaptic to the postsynaptic spike, shrinks by learning_rate e^(dt/tau) for dt < 0, and is clamped
 * to -1 to 1.
 *
 * `weights` has a row for each postsynaptic and a column for each presynaptic neuron. Spikes are of `SV_DTYPE_BOOL`, and times
 * of the weights' dtype.
 */
int32_t sv_stdp_update(sv_tensor weights,
                       sv_tensor pre_spikes,
                       sv_tensor post_spikes,
                       sv_tensor pre_times,
                       sv_tensor post_times,
                       double learning_rate,
                       double tau,
                       sv_tensor *result);

/**
 * Writes the expected free energy of policies, which the first axis of each tensor counts: risk + ambiguity - novelty, and
 * these terms. `preferred` is broadcast to the observations of a policy.
 */
int32_t sv_expected_free_energy(sv_tensor observations,
                                sv_tensor variances,
                                sv_tensor prior_variances,
                                sv_tensor posterior_variances,
                                sv_tensor preferred,
                                sv_tensor *total,
                                sv_tensor *risk,
                                sv_tensor *ambiguity,
                                sv_tensor *novelty);

/**
 * Gives the probabilities softmax(-gamma G) of policies by their expected free energies G, a vector. `gamma` is from 0 on.
 *
 * It waits for the device.
 */
int32_t sv_policy_probabilities(sv_tensor energies,
                                double gamma,
                                sv_tensor *result);

/**
 * Writes the position of the least of the energies, the first of equal ones: the policy of least expected free energy.
 *
 * It waits for the device.
 */
int32_t sv_choose_policy(sv_tensor energies,
                         size_t *policy);

/**
 * Draws a policy by `sv_policy_probabilities`. A generator of 0 is that of the energies' device.
 *
 * It waits for the device.
 */
int32_t sv_sample_policy(sv_tensor energies, double gamma, sv_generator generator, size_t *policy);

/**
 * Creates a model of states x that develop as A x + control + noise of the variance `process_noise`, and are observed as C x +
 * noise. `transition` is the square matrix A, and `observation` the matrix C with a row for each observation. Nothing changes
 * a model.
 */
int32_t sv_linear_gaussian_model_create(sv_tensor transition,
                                        sv_tensor observation,
                                        double process_noise,
                                        sv_linear_gaussian_model *model);

/**
 * Writes the means of the states by policy, step and state, and their variances by step and state, which all policies share.
 * `mean` and `variance` are those of the first state, and `controls` the inputs by policy, step and state.
 */
int32_t sv_linear_gaussian_model_roll_out(sv_linear_gaussian_model model,
                                          sv_tensor mean,
                                          sv_tensor variance,
                                          sv_tensor controls,
                                          sv_tensor *means,
                                          sv_tensor *variances);

/**
 * Gives random states by policy, step and state, from one first state, with noise from a generator. A generator of 0 is that
 * of the device of `start`.
 */
int32_t sv_linear_gaussian_model_sample(sv_linear_gaussian_model model,
                                        sv_tensor start,
                                        sv_tensor controls,
                                        sv_generator generator,
                                        sv_tensor *result);

/**
 * Writes the predictions for each policy that `sv_expected_free_energy` takes, from the results of
 * `sv_linear_gaussian_model_roll_out`. `observation_noise` has the variances of the observations, which all policies share, or
 * those by policy, step and observation.
 */
int32_t sv_linear_gaussian_model_predict(sv_linear_gaussian_model model,
                                         sv_tensor means,
                                         sv_tensor variances,
                                         sv_tensor observation_noise,
                                         sv_tensor *observations,
                                         sv_tensor *observation_variances,
                                         sv_tensor *prior_variances,
                                         sv_tensor *posterior_variances);

/**
 * Rotates pairs of neighbouring features by the angle position base^(-2i/width), as in RoFormer. The last axis is the even
 * width, and the one before it the sequence, whose first position is `offset`.
 */
int32_t sv_rope_encoding(sv_tensor x,
                         size_t offset,
                         double base,
                         sv_tensor *result);

/**
 * Draws a token for each row of logits, as `SV_DTYPE_I64`: from softmax(logits / temperature) of the k largest. `logits` is a
 * vector or a matrix. A generator of 0 is that of the logits' device.
 *
 * It waits for the device.
 */
int32_t sv_top_k_sampling(sv_tensor logits,
                          size_t k,
                          double temperature,
                          sv_generator generator,
                          sv_tensor *result);

/* ---- 12. Spiking networks ---- */

/**
 * For a simulation: the faster one of the CPU and CUDA device 0, by the first bursts; the CPU where there is no device.
 */
#define SV_AUTO (-2)

/**
 * The rule by the last `window` bursts: where both ends of a synapse fired in all of them, its weight grows by `increase`;
 * where they did in some, it falls by `decrease`.
 */
#define SV_RULE_AREA_WINDOW 1

/**
 * Spike-timing-dependent plasticity with nearest spikes: `a_plus`, `a_minus`, the time constants and `burst_ms`.
 */
#define SV_RULE_SPIKE_TIMING 2

/**
 * The lower edge of the firing window.
 */
#define SV_NEURON_THRESHOLD 1

/**
 * The upper edge of the firing window.
 */
#define SV_NEURON_THRESHOLD_MAX 2

/**
 * The leak, 0 to 1.
 */
#define SV_NEURON_LEAK 3

/**
 * The resting potential.
 */
#define SV_NEURON_REST 4

/**
 * The refractory period in bursts.
 */
#define SV_NEURON_REFRACTORY 5

/**
 * The excitability, 0 to 1.
 */
#define SV_NEURON_EXCITABILITY 6

/**
 * The consecutive-fire limit, 0 for none.
 */
#define SV_NEURON_FIRE_LIMIT 7

/**
 * The additional bursts of a pause.
 */
#define SV_NEURON_SNOOZE 8

/**
 * 1 if the potential accumulates over bursts, else 0.
 */
#define SV_NEURON_ACCUMULATES 9

/**
 * The spike hash before the first spike.
 */
#define SV_SPIKE_HASH_START 14695981039346656037ull

/**
 * The device and the settings of a simulation.
 */
typedef struct sv_simulation_options {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * `SV_CPU`, the ordinal of a CUDA device, or `SV_AUTO`. The results are the same on all of them.
   */
  int32_t device;
  /**
   * CPU threads, 0 for as many as there are processors.
   */
  uint32_t threads;
  /**
   * The seed of the random draws of a new simulation. One that continues from a file or on another device keeps its own.
   */
  uint32_t seed;
  /**
   * The number of shards that the network is cut into, all on this device; 0 and 1 for a whole network.
   */
  uint32_t shards;
} sv_simulation_options;

/**
 * An area: neurons that share rules of propagation. The layout is permanent.
 */
typedef struct sv_area {
  /**
   * The name, in UTF-8 with a zero byte.
   */
  const char *name;
  /**
   * 1 to divide each contribution of a neuron by its number of outgoing synapses, toward zero; else 0.
   */
  int32_t shares;
  /**
   * 1 to replace the PSP of each synapse by the potential at which its source fired, rounded and limited to 0 to 255; else
   * 0.
   */
  int32_t potential_driven;
} sv_area;

/**
 * The neurons and synapses of a network. Each array of neurons has one element per neuron, and may be NULL for the default of
 * every neuron.
 */
typedef struct sv_network_arrays {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * The number of neurons.
   */
  size_t neurons;
  /**
   * Lower edges of the firing window. Default 1.
   */
  const float *threshold;
  /**
   * Upper edges of the firing window. Default infinite.
   */
  const float *threshold_max;
  /**
   * Parts of the distance from rest that are lost per burst in which the neuron is touched, 0 to 1. Default 0.1.
   */
  const float *leak;
  /**
   * Resting potentials. Default 0.
   */
  const float *rest;
  /**
   * Touched bursts for which a neuron is blocked after a spike. Default 0.
   */
  const uint16_t *refractory;
  /**
   * Probabilities, 0 to 1, of a spike inside the window. Default 1.
   */
  const float *excitability;
  /**
   * Consecutive spikes after which a neuron must pause, 0 for no limit. Default 0.
   */
  const uint16_t *fire_limit;
  /**
   * Additional blocked bursts once that limit is reached. Default 0.
   */
  const uint16_t *snooze;
  /**
   * 1 for potentials that accumulate over bursts, 0 for neurons that begin every burst at rest. Default 1.
   */
  const uint8_t *accumulates;
  /**
   * 0 excitatory, 1 inhibitory; for information. Default 0.
   */
  const uint8_t *neuron_kind;
  /**
   * Indices into `areas`. Default 0.
   */
  const uint32_t *area;
  /**
   * Coordinates in the area: x, y and z of each neuron. Default 0.
   */
  const uint32_t *position;
  /**
   * The number of areas. 0 for one area, `all`, without special rules.
   */
  size_t area_count;
  /**
   * The areas.
   */
  const struct sv_area *areas;
  /**
   * The number of synapses, in any order.
   */
  size_t synapses;
  /**
   * Ids of the neurons whose spikes the synapses carry.
   */
  const uint32_t *source;
  /**
   * Ids of the neurons that receive them.
   */
  const uint32_t *target;
  /**
   * Weights.
   */
  const uint8_t *weight;
  /**
   * Postsynaptic potentials.
   */
  const uint8_t *psp;
  /**
   * 0 excitatory, 1 inhibitory. NULL if all are excitatory.
   */
  const uint8_t *synapse_kind;
} sv_network_arrays;

/**
 * A plasticity rule for the synapses from one area to another.
 */
typedef struct sv_plasticity_rule {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * `SV_RULE_AREA_WINDOW` or `SV_RULE_SPIKE_TIMING`. The fields of the other one are not read.
   */
  int32_t kind;
  /**
   * The area of the sources.
   */
  uint32_t source_area;
  /**
   * The area of the targets.
   */
  uint32_t target_area;
  /**
   * Bursts to look back, the last one included, 1 to 1024.
   */
  uint32_t window;
  /**
   * Growth of a weight. One of growth and loss is above 0.
   */
  uint8_t increase;
  /**
   * Loss of a weight.
   */
  uint8_t decrease;
  /**
   * 0.
   */
  uint8_t reserved[6];
  /**
   * Growth at no distance, as a part of the largest weight, 0 to 1. One of growth and loss is above 0.
   */
  double a_plus;
  /**
   * Loss at no distance, 0 to 1.
   */
  double a_minus;
  /**
   * Time constant of the growth in milliseconds.
   */
  double tau_plus_ms;
  /**
   * Time constant of the loss in milliseconds.
   */
  double tau_minus_ms;
  /**
   * Duration of a burst in milliseconds.
   */
  double burst_ms;
} sv_plasticity_rule;

/**
 * Synapses that a rule of kind `SV_RULE_AREA_WINDOW` removes and creates.
 */
typedef struct sv_rule_edits {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * 1 removes a synapse that falls and then has weight 0; otherwise 0.
   */
  int32_t prune;
  /**
   * 1 creates a synapse from a source to a target, not itself, that has none where both fired in all of the window; otherwise 0.
   * Its weight is the rule's `increase`, above 0. The fields below are read with 1 alone.
   */
  int32_t create;
  /**
   * The most synapses that the rule creates after one burst, from 1: the first in ascending order of source and target.
   */
  uint32_t most_created;
  /**
   * Postsynaptic potential of created synapses.
   */
  uint8_t psp;
  /**
   * Kind of created synapses: 0 excitatory, 1 inhibitory.
   */
  uint8_t synapse_kind;
  /**
   * 0.
   */
  uint8_t reserved[2];
} sv_rule_edits;

/**
 * A function that is called after each burst of a runner, on its thread, with the neurons that fired and their potentials. The
 * arrays are valid during the call. It must not call functions of the same simulation.
 */
typedef void (*sv_burst_callback)(void *user,
                                  uint64_t number,
                                  const uint32_t *ids,
                                  const float *potentials,
                                  size_t count);

/**
 * The figures of a runner.
 */
typedef struct sv_runner_statistics {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * Bursts done.
   */
  uint64_t bursts;
  /**
   * Bursts that began after their time because the one before took too long.
   */
  uint64_t late;
  /**
   * Seconds spent in bursts.
   */
  double busy;
  /**
   * The longest burst in seconds.
   */
  double longest;
  /**
   * 1 if an error has ended the run, which `sv_simulation_stop` returns; else 0.
   */
  int32_t failed;
  /**
   * 0.
   */
  int32_t reserved;
} sv_runner_statistics;

/**
 * The counters of a burst, or their sums over bursts.
 */
typedef struct sv_burst_counters {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * The number of the burst, from 1; of sums, the number of bursts.
   */
  uint64_t bursts;
  /**
   * Neurons that fired.
   */
  uint64_t spikes;
  /**
   * Synapses visited.
   */
  uint64_t events;
  /**
   * Injections added.
   */
  uint64_t injections;
  /**
   * Neurons touched by an event or an injection.
   */
  uint64_t candidates;
  /**
   * Candidates that were refractory.
   */
  uint64_t blocked;
} sv_burst_counters;

/**
 * A state from which a run continues.
 */
typedef struct sv_network_state {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * Bursts done.
   */
  uint64_t burst;
  /**
   * The seed of the random draws.
   */
  uint32_t seed;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * The number of neurons.
   */
  size_t neurons;
  /**
   * Membrane potentials.
   */
  const float *potentials;
  /**
   * Touched bursts for which each neuron is still blocked.
   */
  const uint16_t *refractory_left;
  /**
   * Consecutive spikes of the neurons with a limit.
   */
  const uint16_t *fire_counts;
  /**
   * The number of spikes of the last burst.
   */
  size_t fired;
  /**
   * The neurons that fired in the last burst, ascending.
   */
  const uint32_t *fired_ids;
  /**
   * The potentials at which they did.
   */
  const float *fired_potentials;
} sv_network_state;

/**
 * Writes the number of areas of a network.
 */
int32_t sv_network_area_count(sv_network network, size_t *count);

/**
 * Writes the rules of an area by its index, as `sv_area` has them, and its name. `text`, `capacity` and `length` are as for
 * `sv_library_report`.
 *
 * Requires: `shares` and `potential_driven` point to `int32_t`s, and `text` to `capacity` bytes.
 */
int32_t sv_network_area(sv_network network,
                        uint32_t area,
                        int32_t *shares,
                        int32_t *potential_driven,
                        char *text,
                        size_t capacity,
                        size_t *length);

/**
 * Writes the area, the kind and the coordinates x, y and z of every neuron, as in `sv_network_arrays`.
 *
 * `neurons` is the number of neurons. `sv_simulation_parameter` has the parameters that a run can change.
 *
 * Requires: `areas` and `kinds` point to `neurons` elements, and `positions` to three times as many.
 */
int32_t sv_network_places(sv_network network,
                          uint32_t *areas,
                          uint8_t *kinds,
                          uint32_t *positions,
                          size_t neurons);

/**
 * Writes the index of the first area of a name.
 */
int32_t sv_network_find_area(sv_network network, const char *name, uint32_t *area);

/**
 * Sets the input that the neurons of an area receive in every burst, in place of an earlier one for the area. 0 ends it. It adds
 * to that of `sv_simulation_set_power` for other ranges.
 */
int32_t sv_simulation_set_area_power(sv_simulation simulation,
                                     uint32_t area,
                                     float potential);

/**
 * Writes the neurons of an area that fired in burst number `number` by the ledger, ascending.
 *
 * `count` gets their number; `ids` gets the first `capacity` of them.
 *
 * Requires: `ids` points to `capacity` elements.
 */
int32_t sv_simulation_area_fired(sv_simulation simulation,
                                 uint32_t area,
                                 uint64_t number,
                                 uint32_t *ids,
                                 size_t capacity,
                                 size_t *count);

/**
 * Loads a network on a CUDA device, at rest before burst 1, without a simulation: no recordings, rules, ledger or recovery.
 *
 * Calls for one device network wait for each other.
 */
int32_t sv_device_network_create(sv_network network,
                                 int32_t device,
                                 uint32_t seed,
                                 sv_device_network *device_network);

/**
 * Generates network G in the memory of a CUDA device, at rest before burst 1, with its input as the pattern of every burst.
 *
 * `degree` is at most 6144; `sv_network_g` generates longer rows on the host.
 */
int32_t sv_device_network_g(uint32_t neurons,
                            uint32_t degree,
                            int32_t device,
                            uint32_t seed,
                            sv_device_network *device_network);

/**
 * Generates network S in the memory of a CUDA device, as `sv_device_network_g` does G: one neuron in `every` fires in each
 * burst.
 */
int32_t sv_device_network_s(uint32_t neurons,
                            uint32_t degree,
                            uint32_t every,
                            int32_t device,
                            uint32_t seed,
                            sv_device_network *device_network);

/**
 * Stages input for the next burst, as `sv_simulation_inject` does.
 *
 * Requires: `ids` and `potentials` point to `count` elements.
 */
int32_t sv_device_network_inject(sv_device_network device_network,
                                 const uint32_t *ids,
                                 const float *potentials,
                                 size_t count);

/**
 * Sets the input of every burst from the next one on, beside staged input, in place of earlier steady input. It stays in
 * device memory. A count of 0 ends it.
 *
 * Requires: `ids` and `potentials` point to `count` elements.
 */
int32_t sv_device_network_set_steady_input(sv_device_network device_network,
                                           const uint32_t *ids,
                                           const float *potentials,
                                           size_t count);

/**
 * Sets the pattern by which the device itself makes input in every burst from the next one on, beside all other input: burst
 * `n` adds `potential` to each neuron `i` for which `pcg(i ^ pcg(base + n)) % modulus` is 0. A modulus of 0 ends it.
 *
 * A generated network begins with its pattern.
 */
int32_t sv_device_network_set_pattern(sv_device_network device_network,
                                      uint32_t base,
                                      uint32_t modulus,
                                      float potential);

/**
 * Chooses dense mode with 1, in which time passes for every neuron in every burst; 0 ends it.
 */
int32_t sv_device_network_set_dense(sv_device_network device_network, int32_t dense);

/**
 * Runs `count` bursts back to back, and waits for them. The spikes stay on the device: `spikes` gets the number of spikes of
 * each burst, and `totals` the sums over these bursts. Staged input enters the first one.
 *
 * After an error some of the bursts may be done; `sv_device_network_set_state` begins anew.
 *
 * Requires: `spikes` points to `count` elements, and `totals` to a struct whose size is set.
 */
int32_t sv_device_network_run(sv_device_network device_network,
                              uint64_t *spikes,
                              size_t count,
                              struct sv_burst_counters *totals);

/**
 * Writes the neurons that fired in the last burst, in ascending order, and the potentials at which they did; `number` gets
 * the number of bursts done. The whole state is read from the device.
 *
 * `count` gets the number of spikes; the arrays get the first `capacity` of them. A capacity of 0 asks for the number alone.
 *
 * Requires: `ids` and `potentials` point to `capacity` elements.
 */
int32_t sv_device_network_fired(sv_device_network device_network,
                                uint64_t *number,
                                uint32_t *ids,
                                float *potentials,
                                size_t capacity,
                                size_t *count);

/**
 * Writes the state of every neuron, as `sv_simulation_state` does.
 *
 * `neurons` is the number of neurons.
 *
 * Requires: The arrays have `neurons` elements.
 */
int32_t sv_device_network_state(sv_device_network device_network,
                                float *potentials,
                                uint16_t *refractory_left,
                                uint16_t *fire_counts,
                                size_t neurons);

/**
 * Writes the state that was last loaded, set or read, which the host has even after the device was lost, and the number
 * of bursts it stands behind.
 *
 * `neurons` is the number of neurons.
 *
 * Requires: `number` points to a `uint64_t`, and the arrays have `neurons` elements.
 */
int32_t sv_device_network_last_state(sv_device_network device_network,
                                     uint64_t *number,
                                     float *potentials,
                                     uint16_t *refractory_left,
                                     uint16_t *fire_counts,
                                     size_t neurons);

/**
 * Replaces the state. Staged input stays.
 *
 * Requires: `state` points to a struct whose arrays have as many elements as it says.
 */
int32_t sv_device_network_set_state(sv_device_network device_network,
                                    const struct sv_network_state *state);

/**
 * Writes the state hash, as `sv_simulation_state_hash` does.
 */
int32_t sv_device_network_state_hash(sv_device_network device_network, uint64_t *hash);

/**
 * Writes weight and PSP of every synapse as they are now, as `sv_simulation_weights` does.
 *
 * `count` is the number of synapses.
 *
 * Requires: `weights` points to `count` elements.
 */
int32_t sv_device_network_weights(sv_device_network device_network,
                                  uint16_t *weights,
                                  size_t count);

/**
 * Changes the weights of `count` synapses, by their places in the order of `sv_network_rows`, from the next burst on.
 *
 * Requires: `synapses` and `weights` point to `count` elements.
 */
int32_t sv_device_network_set_weights(sv_device_network device_network,
                                      const uint64_t *synapses,
                                      const uint8_t *weights,
                                      size_t count);

/**
 * Writes the bytes of device memory that the network takes.
 */
int32_t sv_device_network_bytes(sv_device_network device_network, uint64_t *bytes);

/**
 * Creates synapses, which carry spikes from the next burst on. Arrays may be in any order; on an error nothing is created.
 *
 * A kind is 0 for an excitatory and 1 for an inhibitory synapse; NULL for `kind` makes all of them excitatory. A pair of neurons
 * that has a synapse gets no second one. The next burst or a save merges all edits since the last one in one pass over the
 * network, and loads the device anew.
 *
 * Requires: The arrays point to `count` elements each, or `kind` is NULL.
 */
int32_t sv_simulation_create_synapses(sv_simulation simulation,
                                      const uint32_t *source,
                                      const uint32_t *target,
                                      const uint8_t *weight,
                                      const uint8_t *psp,
                                      const uint8_t *kind,
                                      size_t count);

/**
 * Removes the synapses from each source to its target before the next burst: all of them where a pair has several. On an error
 * nothing is removed.
 *
 * Requires: `source` and `target` point to `count` elements.
 */
int32_t sv_simulation_remove_synapses(sv_simulation simulation,
                                      const uint32_t *source,
                                      const uint32_t *target,
                                      size_t count);

/**
 * Removes neurons with all synapses from and to them before the next burst. Their slots stay, so that no other id changes, but
 * are never touched again; an injection into one fails. On an error nothing is removed.
 *
 * Requires: `ids` points to `count` elements.
 */
int32_t sv_simulation_remove_neurons(sv_simulation simulation,
                                     const uint32_t *ids,
                                     size_t count);

/**
 * Writes the handle of the network as the last merge of edits made it, or as it was loaded. Its rows are those of
 * `sv_simulation_weights`.
 */
int32_t sv_simulation_network(sv_simulation simulation,
                              sv_network *network);

/**
 * Writes the neurons of a network that were removed, ascending.
 *
 * `count` gets their number; `ids` gets the first `capacity` of them.
 *
 * Requires: `ids` points to `capacity` elements.
 */
int32_t sv_network_removed(sv_network network, uint32_t *ids, size_t capacity, size_t *count);

/**
 * Builds a network from arrays, which are copied and checked.
 *
 * Requires: `arrays` points to a struct whose pointers are NULL or point to as many elements as it says.
 */
int32_t sv_network_create(const struct sv_network_arrays *arrays, sv_network *network);

/**
 * Generates network G: varied parameters of every kind and `degree` synapses a neuron, for tests of equality.
 * `sv_network_input` gives its input, and `sv_device_network_g` generates it on a device.
 */
int32_t sv_network_g(uint32_t neurons,
                     uint32_t degree,
                     sv_network *network);

/**
 * Generates network S: one neuron in `every` fires in each burst, for timing. `sv_network_input` gives its input, and
 * `sv_device_network_s` generates it on a device.
 */
int32_t sv_network_s(uint32_t neurons,
                     uint32_t degree,
                     uint32_t every,
                     sv_network *network);

/**
 * Writes the input of a generated network for burst number `number`, from 1: neurons and potentials for
 * `sv_simulation_inject`.
 *
 * `count` gets the number of inputs; the arrays get the first `capacity` of them. A capacity of 0 asks for the number alone,
 * which is at most the number of neurons. A network from arrays or from a file has no such input, and the call fails.
 *
 * Requires: `ids` and `potentials` point to `capacity` elements.
 */
int32_t sv_network_input(sv_network network,
                         uint32_t number,
                         uint32_t *ids,
                         float *potentials,
                         size_t capacity,
                         size_t *count);

/**
 * Writes the input of a generated network as the pattern for `sv_device_network_set_pattern`.
 *
 * A network from arrays or from a file has none, and the call fails.
 */
int32_t sv_network_pattern(sv_network network, uint32_t *base, uint32_t *modulus, float *potential);

/**
 * Reads a network: the arrays of an `.npz` file, if the name ends so, or the network of a `.burst` file with the weights that
 * were saved.
 *
 * An `.npz` file has the arrays `source`, `target`, `weight`, `psp` and, unless all are excitatory, `kind` of the synapses, and
 * those of the neurons by the names in `sv_network_arrays`; `neurons` alone gives their number.
 */
int32_t sv_network_read(const char *path,
                        sv_network *network);

/**
 * Writes a network to a `.burst` file, at rest before burst 1. The file appears whole under its name or not at all.
 * `sv_simulation_save` writes the network of a simulation with its state.
 */
int32_t sv_network_write(sv_network network,
                         const char *path);

/**
 * Writes the numbers of neurons and synapses of a network.
 */
int32_t sv_network_size(sv_network network, size_t *neurons, size_t *synapses);

/**
 * Writes the synapses as compressed sparse rows: the synapses of neuron `i` are those from `row_pointers[i]` to
 * `row_pointers[i + 1]`, ascending by target. The highest bit of a target marks an inhibitory synapse. This is also the order
 * of `sv_simulation_weights`.
 *
 * `rows` is the number of neurons plus 1, and `synapses` the number of synapses.
 *
 * Requires: `row_pointers` points to `rows` elements, and `targets` to `synapses`.
 */
int32_t sv_network_rows(sv_network network,
                        uint64_t *row_pointers,
                        size_t rows,
                        uint32_t *targets,
                        size_t synapses);

/**
 * Names the neurons from `first` to the one before `end`. The name is unique in its network.
 *
 * Simulations that were created before keep the network without the name.
 */
int32_t sv_network_add_population(sv_network network,
                                  const char *name,
                                  uint32_t first,
                                  uint32_t end);

/**
 * Writes the neurons of a population: the first one, and the one behind the last.
 */
int32_t sv_network_population(sv_network network, const char *name, uint32_t *first, uint32_t *end);

/**
 * Writes the number of populations of a network.
 */
int32_t sv_network_population_count(sv_network network, size_t *count);

/**
 * Writes the name of a population by its position, in the order in which they were added. `text`, `capacity` and `length`
 * are as for `sv_library_report`.
 *
 * Requires: `text` points to `capacity` bytes.
 */
int32_t sv_network_population_name(sv_network network,
                                   size_t position,
                                   char *text,
                                   size_t capacity,
                                   size_t *length);

/**
 * Starts the recording of spikes with 1, and ends it with 0. Either drops the spikes that were recorded.
 */
int32_t sv_simulation_record_spikes(sv_simulation simulation,
                                    int32_t record);

/**
 * Writes the recorded spikes: the number of the burst and the neuron of each, ascending by burst and then by neuron.
 *
 * `count` gets their number; the arrays get the first `capacity` of them. A capacity of 0 asks for the number alone.
 *
 * Requires: `numbers` and `ids` point to `capacity` elements.
 */
int32_t sv_simulation_spikes(sv_simulation simulation,
                             uint64_t *numbers,
                             uint32_t *ids,
                             size_t capacity,
                             size_t *count);

/**
 * Writes the recorded spikes to an `.npz` file: the arrays `burst` and `id`.
 */
int32_t sv_simulation_write_spikes(sv_simulation simulation, const char *path);

/**
 * Records the potentials of some neurons after each burst from now on; of none with a count of 0. Drops the potentials that
 * were recorded.
 *
 * Requires: `ids` points to `count` elements.
 */
int32_t sv_simulation_record_potentials(sv_simulation simulation,
                                        const uint32_t *ids,
                                        size_t count);

/**
 * Writes the recorded potentials: a row per burst, with a column per chosen neuron.
 *
 * `count` gets the number of elements; `potentials` gets the first `capacity` of them. A capacity of 0 asks for the number
 * alone.
 *
 * Requires: `potentials` points to `capacity` elements.
 */
int32_t sv_simulation_potentials(sv_simulation simulation,
                                 float *potentials,
                                 size_t capacity,
                                 size_t *count);

/**
 * Adds a sampler of the neurons from `first` to the one before `end`, with a snapshot per `every` bursts, and writes its
 * number.
 */
int32_t sv_simulation_add_sampler(sv_simulation simulation,
                                  uint32_t first,
                                  uint32_t end,
                                  uint32_t every,
                                  size_t *sampler);

/**
 * Takes the snapshot of a sampler: each neuron that fired since the last one, ascending, with the potential of its latest
 * spike. `number` gets the number of the snapshot's last burst, or 0 if none is due.
 *
 * A snapshot has at most as many spikes as the sampler has neurons. If it has more than `capacity`, the call fails, and a later
 * one gets the snapshot.
 *
 * Requires: `ids` and `potentials` point to `capacity` elements.
 */
int32_t sv_simulation_take_snapshot(sv_simulation simulation,
                                    size_t sampler,
                                    uint64_t *number,
                                    uint32_t *ids,
                                    float *potentials,
                                    size_t capacity,
                                    size_t *count);

/**
 * Adds a plasticity rule. Rules apply between bursts in the order in which they were added. The simulation keeps a ledger from
 * now on, as long as the longest window among the rules.
 */
int32_t sv_simulation_add_rule(sv_simulation simulation,
                               const struct sv_plasticity_rule *rule);

/**
 * As `sv_simulation_add_rule` with a rule of kind `SV_RULE_AREA_WINDOW` that also removes or creates synapses. After a burst in
 * which it does, the next burst loads the network anew.
 */
int32_t sv_simulation_add_rule_with_edits(sv_simulation simulation,
                                          const struct sv_plasticity_rule *rule,
                                          const struct sv_rule_edits *edits);

/**
 * Keeps a ledger of the spikes of the last `window` bursts from now on, 1 to 1024. An existing ledger only grows.
 */
int32_t sv_simulation_keep_ledger(sv_simulation simulation,
                                  uint32_t window);

/**
 * Writes the numbers of the first and the last burst in the ledger. The first is larger where it has none yet.
 */
int32_t sv_simulation_ledger_bursts(sv_simulation simulation,
                                    uint64_t *first,
                                    uint64_t *last);

/**
 * Writes the neurons that fired in burst number `number` by the ledger, ascending.
 *
 * `count` gets their number; `ids` gets the first `capacity` of them.
 *
 * Requires: `ids` points to `capacity` elements.
 */
int32_t sv_simulation_ledger_fired(sv_simulation simulation,
                                   uint64_t number,
                                   uint32_t *ids,
                                   size_t capacity,
                                   size_t *count);

/**
 * Starts a thread that runs `frequency` bursts a second, or as many as it can for 0. It has the simulation until
 * `sv_simulation_stop`; meanwhile every other function but `sv_simulation_run` works between two bursts.
 *
 * `callback`, if not NULL, is called with `user` after each burst. Releasing the simulation stops the thread and waits for it.
 * Any thread may call it but that of the callback.
 *
 * Requires: `callback` may be called from another thread until the simulation is stopped or freed.
 */
int32_t sv_simulation_start(sv_simulation simulation,
                            double frequency,
                            sv_burst_callback callback,
                            void *user);

/**
 * Sets the frequency of a runner in bursts a second from the next burst on; 0 for as many as possible.
 */
int32_t sv_simulation_set_frequency(sv_simulation simulation,
                                    double frequency);

/**
 * Pauses a runner before its next burst. Functions of the simulation still work.
 */
int32_t sv_simulation_pause(sv_simulation simulation);

/**
 * Ends the pause of a runner.
 */
int32_t sv_simulation_resume(sv_simulation simulation);

/**
 * Stops a runner after the burst in progress, and waits for its thread. The simulation then stands behind its last finished
 * burst.
 *
 * Returns the error that ended the run, if one did; the simulation is given back all the same. Any thread may call it but that
 * of the callback.
 */
int32_t sv_simulation_stop(sv_simulation simulation);

/**
 * Writes the figures of a runner.
 *
 * Requires: `statistics` points to a struct whose size is set.
 */
int32_t sv_simulation_statistics(sv_simulation simulation, struct sv_runner_statistics *statistics);

/**
 * Loads a network on a device, at rest before burst 1.
 *
 * The simulation has a reference to the network. Calls for one simulation wait for each other.
 */
int32_t sv_simulation_create(sv_network network,
                             const struct sv_simulation_options *options,
                             sv_simulation *simulation);

/**
 * Continues the run of a `.burst` file on a device, bit for bit. Rules must be added again; they find their past in the
 * ledger of the file.
 */
int32_t sv_simulation_restore(const char *path,
                              const struct sv_simulation_options *options,
                              sv_simulation *simulation);

/**
 * Saves the network as it is now, the state, the ledger, the power input and the mode to a `.burst` file. The file appears whole
 * under its name or not at all. Changes in the parameter queue apply first. Staged input, samplers, recordings and rules are not saved.
 */
int32_t sv_simulation_save(sv_simulation simulation,
                           const char *path);

/**
 * Continues on another device after an error such as `SV_ERROR_CONTEXT_LOST`: everything up to the last finished burst is
 * computed again there, bit for bit. Input that was staged for the failed burst is staged again.
 *
 * A simulation on the CPU alone cannot be lost, and the call fails; `sv_simulation_move` moves one that works.
 */
int32_t sv_simulation_recover(sv_simulation simulation,
                              const struct sv_simulation_options *options);

/**
 * Moves a simulation to another device between two bursts, before input is staged. The results stay the same.
 */
int32_t sv_simulation_move(sv_simulation simulation,
                           const struct sv_simulation_options *options);

/**
 * Writes the name of the device with its settings, such as `CPU, 8 threads`. `text`, `capacity` and `length` are as for
 * `sv_library_report`.
 *
 * Requires: `text` points to `capacity` bytes.
 */
int32_t sv_simulation_device_name(sv_simulation simulation,
                                  char *text,
                                  size_t capacity,
                                  size_t *length);

/**
 * Stages input for the next burst, behind what is staged already. Each potential is rounded to thousandths, ties to even. On
 * an error nothing is staged.
 *
 * Requires: `ids` and `potentials` point to `count` elements.
 */
int32_t sv_simulation_inject(sv_simulation simulation,
                             const uint32_t *ids,
                             const float *potentials,
                             size_t count);

/**
 * Sets the input that the neurons from `first` to the one before `end` receive in every burst, in place of an earlier one
 * for the same range. 0 ends it.
 */
int32_t sv_simulation_set_power(sv_simulation simulation,
                                uint32_t first,
                                uint32_t end,
                                float potential);

/**
 * Chooses dense mode with 1, in which time passes for every neuron in every burst; 0 ends it.
 */
int32_t sv_simulation_set_dense(sv_simulation simulation, int32_t dense);

/**
 * Runs `count` bursts, and waits for them. Staged input enters the first one. A device gets several bursts at a time where
 * nothing needs the host between them.
 *
 * After an error the bursts that `sv_simulation_totals` counts are done. The call fails while a runner has the simulation.
 */
int32_t sv_simulation_run(sv_simulation simulation,
                          uint64_t count);

/**
 * Writes the neurons that fired in the last burst, in ascending order, and the potentials at which they did.
 *
 * `count` gets their number; the arrays get the first `capacity` of them. A capacity of 0 asks for the number alone.
 *
 * Requires: `ids` and `potentials` point to `capacity` elements.
 */
int32_t sv_simulation_fired(sv_simulation simulation,
                            uint32_t *ids,
                            float *potentials,
                            size_t capacity,
                            size_t *count);

/**
 * Writes the spikes of the last burst by area: the area of each, the neuron, its potential before the reset, and its
 * coordinates x, y and z. Areas ascend, and in an area the neurons do.
 *
 * `count` gets the number of spikes; the arrays get the first `capacity` of them. A capacity of 0 asks for the number alone.
 *
 * Requires: `areas`, `ids` and `potentials` point to `capacity` elements, `positions` to three times as many, and `count` to a
 * `size_t`.
 */
int32_t sv_simulation_fire_queue(sv_simulation simulation,
                                 uint32_t *areas,
                                 uint32_t *ids,
                                 float *potentials,
                                 uint32_t *positions,
                                 size_t capacity,
                                 size_t *count);

/**
 * Writes the counters of the last burst. After `sv_simulation_restore` they are 0 but for the burst's number and its spikes.
 *
 * Requires: `counters` points to a struct whose size is set.
 */
int32_t sv_simulation_counters(sv_simulation simulation,
                               struct sv_burst_counters *counters);

/**
 * Writes the sums over all bursts of this simulation.
 *
 * Requires: `totals` points to a struct whose size is set.
 */
int32_t sv_simulation_totals(sv_simulation simulation, struct sv_burst_counters *totals);

/**
 * Writes a parameter of every neuron as it is now, without the changes that are still queued. `field` is one of
 * `SV_NEURON_...`.
 *
 * `neurons` is the number of neurons.
 *
 * Requires: `values` points to `neurons` elements.
 */
int32_t sv_simulation_parameter(sv_simulation simulation,
                                int32_t field,
                                double *values,
                                size_t neurons);

/**
 * Queues a change of a parameter of the neurons from `first` to the one before `end`. Changes apply in order before the next
 * burst. `field` is one of `SV_NEURON_...`.
 *
 * Any thread may call it, also while a runner has the simulation.
 */
int32_t sv_simulation_set_parameter(sv_simulation simulation,
                                    int32_t field,
                                    uint32_t first,
                                    uint32_t end,
                                    double value);

/**
 * As `sv_simulation_set_parameter`, of all neurons of an area.
 *
 * Any thread may call it, also while a runner has the simulation.
 */
int32_t sv_simulation_set_area_parameter(sv_simulation simulation,
                                         int32_t field,
                                         uint32_t area,
                                         double value);

/**
 * Writes the state of every neuron: potentials, blocked bursts that are left, and counts of consecutive spikes.
 *
 * `neurons` is the number of neurons. `sv_simulation_fired` has the rest of the state: the spikes of the last burst.
 *
 * Requires: The arrays have `neurons` elements.
 */
int32_t sv_simulation_state(sv_simulation simulation,
                            float *potentials,
                            uint16_t *refractory_left,
                            uint16_t *fire_counts,
                            size_t neurons);

/**
 * Replaces the state of a simulation. Staged input stays; the ledger starts anew.
 *
 * Requires: `state` points to a struct whose arrays have as many elements as it says.
 */
int32_t sv_simulation_set_state(sv_simulation simulation, const struct sv_network_state *state);

/**
 * Writes the state hash: FNV-1a of 64 bits over potential, blocked bursts and fire count of each neuron. Two runs with equal
 * hashes have the same state.
 */
int32_t sv_simulation_state_hash(sv_simulation simulation,
                                 uint64_t *hash);

/**
 * Adds the spikes of a burst to a spike hash, which is `SV_SPIKE_HASH_START` before the first one: FNV-1a of 64 bits over the
 * burst's number, the id and the potential of each spike. The ids ascend, as `sv_simulation_fired` writes them.
 *
 * Requires: `ids` and `potentials` point to `count` elements, and `hash` to the hash.
 */
int32_t sv_spike_hash_add(uint32_t number,
                          const uint32_t *ids,
                          const float *potentials,
                          size_t count,
                          uint64_t *hash);

/**
 * Writes weight and PSP of every synapse as they are now, in the order of `sv_network_rows`: the weight in the low 8 bits
 * and the PSP in the high 8.
 *
 * `count` is the number of synapses.
 *
 * Requires: `weights` points to `count` elements.
 */
int32_t sv_simulation_weights(sv_simulation simulation,
                              uint16_t *weights,
                              size_t count);

/**
 * Changes the weights of `count` synapses, by their places in the order of `sv_network_rows`, from the next burst on. Of several
 * changes of one synapse the last one counts. On an error nothing is changed.
 *
 * Requires: `synapses` and `weights` point to `count` elements.
 */
int32_t sv_simulation_set_weights(sv_simulation simulation,
                                  const uint64_t *synapses,
                                  const uint8_t *weights,
                                  size_t count);

/* ---- 13. Golden-ratio tensors ---- */

/**
 * The golden ratio phi = (1 + sqrt(5))/2.
 */
#define SV_SRT_PHI 1.618033988749895

/**
 * 1/phi.
 */
#define SV_SRT_INVERSE_PHI 0.6180339887498949

/**
 * 1/phi^2.
 */
#define SV_SRT_INVERSE_PHI_SQUARED 0.38196601125010515

/**
 * The square root of 5.
 */
#define SV_SRT_SQRT5 2.23606797749979

/**
 * The natural logarithm of phi.
 */
#define SV_SRT_LN_PHI 0.48121182505960347

/**
 * e^pi - pi.
 */
#define SV_SRT_ESTAR 19.999099979189477

/**
 * q = (2 phi + e/(2 phi^2)) / (phi^4 (e^pi - pi)).
 */
#define SV_SRT_Q_DEFICIT 0.027395146919696148

/**
 * 1/sqrt(1 + phi^2).
 */
#define SV_SRT_PROJECTION_NORM 0.5257311121191336

/**
 * The largest bound of snapping, 2^20.
 */
#define SV_SRT_LARGEST_SNAP_BOUND 1048576

/**
 * The syntonies of the last ten generations differ by less than the threshold.
 */
#define SV_SRT_EVOLVER_CONVERGED 1

/**
 * The evolver has had its largest number of generations.
 */
#define SV_SRT_EVOLVER_LIMIT 2

/**
 * The callback ended the run.
 */
#define SV_SRT_EVOLVER_STOPPED 3

/**
 * x + y.
 */
#define SV_SRT_GOLDEN_ADD 1

/**
 * x - y.
 */
#define SV_SRT_GOLDEN_SUB 2

/**
 * x y.
 */
#define SV_SRT_GOLDEN_MUL 3

/**
 * -x.
 */
#define SV_SRT_GOLDEN_NEG 4

/**
 * The conjugate (a + b, -b).
 */
#define SV_SRT_GOLDEN_CONJUGATE 5

/**
 * phi x.
 */
#define SV_SRT_GOLDEN_RECURSION 6

/**
 * x/phi.
 */
#define SV_SRT_GOLDEN_RECURSION_INVERSE 7

/**
 * x/y, of exact numbers alone.
 */
#define SV_SRT_GOLDEN_DIV 8

/**
 * 1/x, of exact numbers alone.
 */
#define SV_SRT_GOLDEN_INVERSE 9

/**
 * Pairs are the entries i and i + 4.
 */
#define SV_SRT_E8_OFFSET4 0

/**
 * Pairs are the entries 2i and 2i + 1.
 */
#define SV_SRT_E8_ADJACENT 1

/**
 * The cone of nonnegative perpendicular parts of adjacent pairs.
 */
#define SV_SRT_CONE_PAIR 0

/**
 * The cone of four vectors that has 36 roots.
 */
#define SV_SRT_CONE_NULL 1

/**
 * All 240 roots.
 */
#define SV_SRT_ROOTS_ALL 0

/**
 * The 120 positive roots.
 */
#define SV_SRT_ROOTS_POSITIVE 1

/**
 * The 40 roots in the pair cone.
 */
#define SV_SRT_ROOTS_PAIR_CONE 2

/**
 * The 36 roots in the null cone.
 */
#define SV_SRT_ROOTS_NULL_CONE 3

/**
 * The 72 roots of E6.
 */
#define SV_SRT_ROOTS_E6 4

/**
 * Numbers in [0, 1).
 */
#define SV_SRT_UNIFORM_HALF_OPEN 0

/**
 * Numbers in (0, 1].
 */
#define SV_SRT_UNIFORM_OPEN_AT_ZERO 1

/**
 * The arithmetic mean.
 */
#define SV_SRT_AGGREGATE_MEAN 0

/**
 * The smallest.
 */
#define SV_SRT_AGGREGATE_MINIMUM 1

/**
 * The geometric mean.
 */
#define SV_SRT_AGGREGATE_GEOMETRIC 2

/**
 * (lattice - flux) exp(-n2/phi).
 */
#define SV_SRT_GRADIENT_WEIGHTED 0

/**
 * |flux - lattice| / (exp(-n2/phi) + 1e-10).
 */
#define SV_SRT_GRADIENT_MAGNITUDE 1

/**
 * lattice - flux.
 */
#define SV_SRT_GRADIENT_PLAIN 2

/**
 * The fastest product of the device.
 */
#define SV_SRT_PRODUCT_FAST 0

/**
 * Sums with k ascending by fused multiply-adds: the same bits on every device.
 */
#define SV_SRT_PRODUCT_EXACT 1

/**
 * The matrix itself.
 */
#define SV_SRT_OPERATION_NONE 0

/**
 * The transpose.
 */
#define SV_SRT_OPERATION_TRANSPOSE 1

/**
 * The conjugate transpose.
 */
#define SV_SRT_OPERATION_ADJOINT 2

/**
 * pi.
 */
#define SV_SRT_CONSTANT_PI 1

/**
 * e.
 */
#define SV_SRT_CONSTANT_E 2

/**
 * phi.
 */
#define SV_SRT_CONSTANT_PHI 3

/**
 * e^pi - pi, `SV_SRT_ESTAR`.
 */
#define SV_SRT_CONSTANT_ESTAR 4

/**
 * q, `SV_SRT_Q_DEFICIT`.
 */
#define SV_SRT_CONSTANT_Q 5

/**
 * x + y.
 */
#define SV_SRT_SYMBOLIC_ADD 1

/**
 * x - y.
 */
#define SV_SRT_SYMBOLIC_SUB 2

/**
 * x y.
 */
#define SV_SRT_SYMBOLIC_MUL 3

/**
 * x/y.
 */
#define SV_SRT_SYMBOLIC_DIV 4

/**
 * -x.
 */
#define SV_SRT_SYMBOLIC_NEG 5

/**
 * e^x.
 */
#define SV_SRT_SYMBOLIC_EXP 6

/**
 * The natural logarithm of x.
 */
#define SV_SRT_SYMBOLIC_LN 7

/**
 * The gamma function of x.
 */
#define SV_SRT_SYMBOLIC_GAMMA 8

/**
 * The sine of x.
 */
#define SV_SRT_SYMBOLIC_SIN 9

/**
 * The cosine of x.
 */
#define SV_SRT_SYMBOLIC_COS 10

/**
 * x + r/phi.
 */
#define SV_SRT_RESIDUAL_PHI 0

/**
 * (x + r)/phi.
 */
#define SV_SRT_RESIDUAL_SYMMETRIC 1

/**
 * x + r.
 */
#define SV_SRT_RESIDUAL_STANDARD 2

/**
 * The parameters of an evolver. `sv_srt_evolver_defaults` sets all of them.
 */
typedef struct sv_srt_evolver_options {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * The seed of all random numbers.
   */
  uint64_t seed;
  /**
   * The candidates of a generation.
   */
  size_t population;
  /**
   * The candidates that are evaluated, at most the population.
   */
  size_t survivors;
  /**
   * The generations after which a run ends.
   */
  uint64_t max_generations;
  /**
   * The bound of snapping, from 0 to 2^20.
   */
  int64_t bound;
  /**
   * The factor of syntony in the score.
   */
  double lambda;
  /**
   * The width of the interval of mutations in each coefficient.
   */
  double mutation_scale;
  /**
   * The noise scale of the D phase.
   */
  double sigma;
  /**
   * A run has converged when the syntonies of ten generations differ by less than this.
   */
  double threshold;
} sv_srt_evolver_options;

/**
 * The results of a generation.
 */
typedef struct sv_srt_generation {
  /**
   * The size of the struct in bytes.
   */
  size_t size;
  /**
   * The generations so far.
   */
  uint64_t generation;
  /**
   * The syntony of the best state.
   */
  double best_syntony;
  /**
   * The winner's position in the population, or -1 if no survivor has a score.
   */
  int64_t winner;
  /**
   * The winner's syntony; NaN without a winner.
   */
  double winner_syntony;
  /**
   * 1 if the winner replaced the best state, else 0.
   */
  int32_t is_accepted;
  /**
   * 1 if the run has converged, else 0.
   */
  int32_t is_converged;
} sv_srt_generation;

/**
 * A function that is called after each generation of a run, on the thread that runs it. The struct is valid during the call. It
 * returns `SV_CONTINUE`, or `SV_STOP` to end the run, and may call functions of the evolver.
 */
typedef int32_t (*sv_srt_generation_callback)(void *user, const struct sv_srt_generation *generation);

/**
 * A function that gives the fitness of survivors. `values` is a tensor of `SV_DTYPE_F64` of shape (survivors, n), which belongs
 * to the library; `*fitness` gets a tensor of shape (survivors) on the same device, whose reference passes to the library. It
 * returns `SV_CONTINUE`, and is called on threads that run generations. It must not call functions of the same evolver.
 */
typedef int32_t (*sv_srt_fitness_callback)(void *user, sv_tensor values, sv_tensor *fitness);

/**
 * An integer of 128 bits: high 2^64 + low. The layout is permanent.
 */
typedef struct sv_srt_integer {
  /**
   * The lower 64 bits.
   */
  uint64_t low;
  /**
   * The upper 64 bits, with the sign; -1 for small negative numbers.
   */
  int64_t high;
} sv_srt_integer;

/**
 * A fraction. Results are in lowest terms with a denominator above 0; operands need only a denominator other than 0. The layout
 * is permanent.
 */
typedef struct sv_srt_rational {
  /**
   * The numerator.
   */
  struct sv_srt_integer numerator;
  /**
   * The denominator.
   */
  struct sv_srt_integer denominator;
} sv_srt_rational;

/**
 * A number a + b phi. The layout is permanent.
 */
typedef struct sv_srt_exact {
  /**
   * The multiple of 1.
   */
  struct sv_srt_rational a;
  /**
   * The multiple of phi.
   */
  struct sv_srt_rational b;
} sv_srt_exact;

/**
 * Writes the default parameters: a population of 64 with 16 survivors, a bound of 100, at most 1000 generations.
 */
int32_t sv_srt_evolver_defaults(struct sv_srt_evolver_options *options);

/**
 * Creates an evolver of a vector of numbers a + b phi, a pair of `SV_DTYPE_I64` tensors, on their device. `n2` has the squared
 * mode norms as `SV_DTYPE_F64`; with 0 they are 0, 1, 4, 9 and so on.
 *
 * `fitness`, if not NULL, is added to the score of survivors. It waits for the device.
 *
 * Requires: `fitness` may be called with `user` until the evolver is freed.
 */
int32_t sv_srt_evolver_create(sv_tensor a,
                              sv_tensor b,
                              sv_tensor n2,
                              const struct sv_srt_evolver_options *options,
                              sv_srt_fitness_callback fitness,
                              void *user,
                              sv_srt_evolver *evolver);

/**
 * Runs one generation, converged or not, and writes its results. After an error the evolver is as it was.
 *
 * It waits for the device.
 */
int32_t sv_srt_evolver_step(sv_srt_evolver evolver,
                            struct sv_srt_generation *generation);

/**
 * Runs generations until convergence, the largest number of them, or `SV_STOP` of `callback`, which is called after each one if
 * it is not NULL. `*end` gets one of `SV_SRT_EVOLVER_...`.
 *
 * Requires: `end` points to an `int32_t`, and `callback` may be called with `user`.
 */
int32_t sv_srt_evolver_run(sv_srt_evolver evolver,
                           sv_srt_generation_callback callback,
                           void *user,
                           int32_t *end);

/**
 * Writes the best state so far, numbers a + b phi.
 */
int32_t sv_srt_evolver_best(sv_srt_evolver evolver, sv_tensor *a, sv_tensor *b);

/**
 * Writes 1 if the run has converged, else 0.
 */
int32_t sv_srt_evolver_is_converged(sv_srt_evolver evolver, int32_t *result);

/**
 * Writes the parameters of an evolver, which a file of `sv_srt_evolver_save` has too.
 */
int32_t sv_srt_evolver_get_options(sv_srt_evolver evolver, struct sv_srt_evolver_options *options);

/**
 * Writes the squared mode norms of an evolver.
 */
int32_t sv_srt_evolver_n2(sv_srt_evolver evolver, sv_tensor *result);

/**
 * Writes the syntony of the best state at the start and after each generation.
 *
 * `count` gets their number; the array gets the first `capacity` of them. A capacity of 0 asks for the number alone.
 *
 * Requires: `syntonies` points to `capacity` numbers.
 */
int32_t sv_srt_evolver_history(sv_srt_evolver evolver,
                               double *syntonies,
                               size_t capacity,
                               size_t *count);

/**
 * Writes the state, the history and the options of an evolver to a file, replacing the file at that path. A fitness is not in it.
 */
int32_t sv_srt_evolver_save(sv_srt_evolver evolver,
                            const char *path);

/**
 * Reads an evolver from a file of `sv_srt_evolver_save`. Its next generations are those of the one that was saved, with the same
 * fitness.
 *
 * Requires: `fitness` may be called with `user` until the evolver is freed.
 */
int32_t sv_srt_evolver_restore(const char *path,
                               int32_t device,
                               sv_srt_fitness_callback fitness,
                               void *user,
                               sv_srt_evolver *evolver);

/**
 * Computes phi^n of |n| up to 1474.
 */
int32_t sv_srt_phi_pow(int32_t n, double *result);

/**
 * Computes phi^n as a float, of |n| up to 184.
 */
int32_t sv_srt_phi_pow_f32(int32_t n, float *result);

/**
 * Computes the Fibonacci number F(k); `SV_ERROR_OVERFLOW` if 64 bits do not hold it.
 */
int32_t sv_srt_fibonacci(int32_t k, int64_t *result);

/**
 * Computes the Lucas number L(k); `SV_ERROR_OVERFLOW` if 64 bits do not hold it.
 */
int32_t sv_srt_lucas(int32_t k, int64_t *result);

/**
 * Computes F(k) as a double, infinite where a double does not reach.
 */
int32_t sv_srt_fibonacci_f64(int32_t k, double *result);

/**
 * Computes L(k) as a double, infinite where a double does not reach.
 */
int32_t sv_srt_lucas_f64(int32_t k, double *result);

/**
 * Computes F(value) modulo `modulus`.
 */
int32_t sv_srt_fib_mod(uint64_t value, uint64_t modulus, uint64_t *result);

/**
 * Computes the period of the Fibonacci numbers modulo `modulus`.
 */
int32_t sv_srt_pisano(uint64_t modulus, uint64_t *result);

/**
 * Computes floor(phi n) exactly.
 */
int32_t sv_srt_winding_recursion(int64_t n, int64_t *result);

/**
 * Computes floor(phi n) of each element exactly. `overflow` gets a tensor that is true at results which 64 bits do not
 * hold.
 */
int32_t sv_srt_winding_recursion_batch(sv_tensor n,
                                       sv_tensor *result,
                                       sv_tensor *overflow);

/**
 * Computes floor(n/phi) exactly.
 */
int32_t sv_srt_winding_recursion_inverse(int64_t n, int64_t *result);

/**
 * Computes floor(n/phi) of each element exactly. `overflow` gets a tensor that is true at results which 64 bits do not
 * hold.
 */
int32_t sv_srt_winding_recursion_inverse_batch(sv_tensor n,
                                               sv_tensor *result,
                                               sv_tensor *overflow);

/**
 * Computes F(k) of each index as an integer. `overflow` gets a tensor that is true at results which 64 bits do not
 * hold.
 */
int32_t sv_srt_fibonacci_batch(sv_tensor k,
                               sv_tensor *result,
                               sv_tensor *overflow);

/**
 * Computes F(k) of each index as a double.
 */
int32_t sv_srt_fibonacci_batch_f64(sv_tensor k, sv_tensor *result);

/**
 * Computes L(k) of each index as an integer. `overflow` gets a tensor that is true at results which 64 bits do not
 * hold.
 */
int32_t sv_srt_lucas_batch(sv_tensor k,
                           sv_tensor *result,
                           sv_tensor *overflow);

/**
 * Computes L(k) of each index as a double.
 */
int32_t sv_srt_lucas_batch_f64(sv_tensor k, sv_tensor *result);

/**
 * Computes F(k) modulo `modulus` of each index of type `SV_DTYPE_U64`.
 */
int32_t sv_srt_fib_mod_batch(sv_tensor k, uint64_t modulus, sv_tensor *result);

/**
 * Computes the first `count` Fibonacci numbers, as `SV_DTYPE_I64` or `SV_DTYPE_F64`.
 */
int32_t sv_srt_fibonacci_sequence(size_t count, int32_t dtype, int32_t device, sv_tensor *result);

/**
 * Computes phi v.
 */
int32_t sv_srt_golden_recursion(sv_tensor v, sv_tensor *result);

/**
 * Computes v/phi.
 */
int32_t sv_srt_golden_recursion_inverse(sv_tensor v, sv_tensor *result);

/**
 * Computes the generation of a row of 4 windings: 0 of zeros, otherwise 1 + the largest k with phi^k <= max |n_i|.
 *
 * Requires: `row` points to 4 numbers.
 */
int32_t sv_srt_generation_of_row(const int64_t *row,
                                 int32_t *result);

/**
 * Computes the generation of each row of 4 windings: 0 of zeros, otherwise 1 + the largest k with phi^k <= max |n_i|.
 */
int32_t sv_srt_generation_batch(sv_tensor rows,
                                sv_tensor *result);

/**
 * Computes one of `SV_SRT_GOLDEN_...` except `SV_SRT_GOLDEN_DIV` and `SV_SRT_GOLDEN_INVERSE` on numbers a + b phi, each a
 * pair of `SV_DTYPE_I64` tensors. Operations of one operand do not use `y_a` and `y_b`. `overflow` gets a tensor that is true at results which 64 bits do not hold.
 */
int32_t sv_srt_golden_operation(int32_t operation,
                                sv_tensor x_a,
                                sv_tensor x_b,
                                sv_tensor y_a,
                                sv_tensor y_b,
                                sv_tensor *result_a,
                                sv_tensor *result_b,
                                sv_tensor *overflow);

/**
 * Computes a^2 + a b - b^2 of numbers a + b phi. `overflow` gets a tensor that is true at results which 64 bits do not
 * hold.
 */
int32_t sv_srt_golden_norm(sv_tensor a,
                           sv_tensor b,
                           sv_tensor *result,
                           sv_tensor *overflow);

/**
 * Computes 2 a + b of numbers a + b phi. `overflow` gets a tensor that is true at results which 64 bits do not hold.
 */
int32_t sv_srt_golden_trace(sv_tensor a,
                            sv_tensor b,
                            sv_tensor *result,
                            sv_tensor *overflow);

/**
 * Computes a + b phi as doubles.
 */
int32_t sv_srt_golden_values(sv_tensor a, sv_tensor b, sv_tensor *result);

/**
 * Finds the a + b phi with |a|, |b| <= bound that is nearest to each double.
 */
int32_t sv_srt_snap(sv_tensor values, int64_t bound, sv_tensor *result_a, sv_tensor *result_b);

/**
 * Computes the values minus their points.
 */
int32_t sv_srt_snap_residual(sv_tensor values, sv_tensor a, sv_tensor b, sv_tensor *result);

/**
 * Computes the square root of the sum of squared residuals.
 */
int32_t sv_srt_snap_distance(sv_tensor values, sv_tensor a, sv_tensor b, sv_tensor *result);

/**
 * Computes a_numerator/a_denominator + b_numerator/b_denominator phi in lowest terms. `SV_ERROR_DIVISION_BY_ZERO` for a
 * denominator of 0.
 */
int32_t sv_srt_exact_create(int64_t a_numerator,
                            int64_t a_denominator,
                            int64_t b_numerator,
                            int64_t b_denominator,
                            struct sv_srt_exact *result);

/**
 * Computes one of `SV_SRT_GOLDEN_...` exactly. `SV_ERROR_OVERFLOW` if 128 bits do not hold a numerator or a denominator,
 * `SV_ERROR_DIVISION_BY_ZERO` for a quotient by 0. Operations of one operand do not read `y`. `result` may be an operand.
 *
 * Requires: `x`, `y` and `result` each point to a struct.
 */
int32_t sv_srt_exact_operation(int32_t operation,
                               const struct sv_srt_exact *x,
                               const struct sv_srt_exact *y,
                               struct sv_srt_exact *result);

/**
 * Computes x to an integer power; a power of 0 is 1.
 */
int32_t sv_srt_exact_pow(const struct sv_srt_exact *x,
                         int32_t exponent,
                         struct sv_srt_exact *result);

/**
 * Computes phi^n = F(n-1) + F(n) phi; `SV_ERROR_OVERFLOW` if 128 bits do not hold them.
 */
int32_t sv_srt_exact_phi_pow(int32_t n, struct sv_srt_exact *result);

/**
 * Computes a^2 + a b - b^2 of a number a + b phi, its product with the conjugate.
 */
int32_t sv_srt_exact_norm(const struct sv_srt_exact *x, struct sv_srt_rational *result);

/**
 * Computes 2 a + b of a number a + b phi, its sum with the conjugate.
 */
int32_t sv_srt_exact_trace(const struct sv_srt_exact *x, struct sv_srt_rational *result);

/**
 * Compares two numbers exactly: `*order` gets -1 for x < y, 0 for equal numbers and 1 for x > y.
 */
int32_t sv_srt_exact_compare(const struct sv_srt_exact *x,
                             const struct sv_srt_exact *y,
                             int32_t *order);

/**
 * Computes a + b phi as a double, within a few units in the last place.
 */
int32_t sv_srt_exact_value(const struct sv_srt_exact *x, double *result);

/**
 * Writes the coefficients of a number whose a and b are integers of 64 bits, as tensors of points have them. Other numbers are
 * `SV_ERROR_INVALID_ARGUMENT`.
 */
int32_t sv_srt_exact_integers(const struct sv_srt_exact *x,
                              int64_t *a,
                              int64_t *b);

/**
 * Writes a number as a text in UTF-8, such as `3/5 - 1/5 φ`. `text`, `capacity` and `length` are as for `sv_library_report`.
 *
 * Requires: `text` points to `capacity` bytes.
 */
int32_t sv_srt_exact_text(const struct sv_srt_exact *x,
                          char *text,
                          size_t capacity,
                          size_t *length);

/**
 * Computes roots of E8 as rows. `set` is one of `SV_SRT_ROOTS_...`.
 */
int32_t sv_srt_e8_roots(int32_t set, int32_t device, sv_tensor *result);

/**
 * Computes `count` rows: row i is root i modulo 240 times 1 + i/240, rounded down.
 */
int32_t sv_srt_e8_weights(size_t count, int32_t device, sv_tensor *result);

/**
 * Projects rows of 8 to their parallel and perpendicular parts. `layout` is one of `SV_SRT_E8_...`.
 */
int32_t sv_srt_project_e8(sv_tensor v,
                          int32_t layout,
                          sv_tensor *parallel,
                          sv_tensor *perpendicular);

/**
 * Computes |parallel|^2 - |perpendicular|^2 of rows of 8. `layout` is one of `SV_SRT_E8_...`.
 */
int32_t sv_srt_quadratic_form(sv_tensor v, int32_t layout, sv_tensor *result);

/**
 * Finds the point of scale E8 that is nearest to each row of 8.
 */
int32_t sv_srt_e8_quantize(sv_tensor v, double scale, sv_tensor *result);

/**
 * Computes the sum of w exp(-pi Q(v)/t) over rows of 8. `weights` is a number or a tensor with one for each row, and
 * `layout` is one of `SV_SRT_E8_...`.
 *
 * Requires: `weights` points to an operand.
 */
int32_t sv_srt_theta_sum(sv_tensor v,
                         const struct sv_operand *weights,
                         double t,
                         int32_t layout,
                         sv_tensor *result);

/**
 * Computes 1 for each row of 8 in the cone and 0 for the others. `cone` is one of `SV_SRT_CONE_...`.
 */
int32_t sv_srt_golden_cone_test(sv_tensor v,
                                int32_t cone,
                                double tolerance,
                                sv_tensor *result);

/**
 * Finds the point of the closed cone that is nearest to each row of 8. `cone` is one of `SV_SRT_CONE_...`.
 */
int32_t sv_srt_golden_cone_project(sv_tensor v,
                                   int32_t cone,
                                   sv_tensor *result);

/**
 * Computes exp(-Q(v)/phi) of each row of 8 in the null cone, and 1e-9 of the others.
 */
int32_t sv_srt_weight_8d(sv_tensor v, sv_tensor *result);

/**
 * Computes gamma sqrt(target) (v - mean)/sqrt(variance + eps) + beta of each row along the last axis. `target` is the variance
 * of the result, 0 for 1/phi. `gamma` and `beta` are tensors of the row's size, or 0.
 */
int32_t sv_srt_golden_layer_norm(sv_tensor v,
                                 sv_tensor gamma,
                                 sv_tensor beta,
                                 double target,
                                 double eps,
                                 sv_tensor *result);

/**
 * Computes the norm of `sv_srt_golden_layer_norm` of each column of a batch of shape (B, F), over B.
 */
int32_t sv_srt_golden_batch_norm_1d(sv_tensor v,
                                    sv_tensor gamma,
                                    sv_tensor beta,
                                    double target,
                                    double eps,
                                    sv_tensor *result);

/**
 * Computes the norm of `sv_srt_golden_layer_norm` of each channel of a batch of shape (B, C, H, W), over B, H and W.
 */
int32_t sv_srt_golden_batch_norm_2d(sv_tensor v,
                                    sv_tensor gamma,
                                    sv_tensor beta,
                                    double target,
                                    double eps,
                                    sv_tensor *result);

/**
 * Computes a golden batch norm of a batch of shape (B, F) or (B, C, H, W) as in training, and the running statistics after it:
 * the old ones times 1 - momentum, plus momentum times those of the batch. `mean` and `variance` are vectors of
 * `SV_DTYPE_F64`, zeros and ones at first. They stay.
 */
int32_t sv_srt_golden_batch_norm_train(sv_tensor v,
                                       sv_tensor mean,
                                       sv_tensor variance,
                                       double momentum,
                                       sv_tensor gamma,
                                       sv_tensor beta,
                                       double target,
                                       double eps,
                                       sv_tensor *result,
                                       sv_tensor *new_mean,
                                       sv_tensor *new_variance);

/**
 * Computes a golden batch norm of a batch of shape (B, F) or (B, C, H, W) with running statistics, as in inference.
 */
int32_t sv_srt_golden_batch_norm_infer(sv_tensor v,
                                       sv_tensor mean,
                                       sv_tensor variance,
                                       sv_tensor gamma,
                                       sv_tensor beta,
                                       double target,
                                       double eps,
                                       sv_tensor *result);

/**
 * Returns a random word, which depends on the seed and the position alone.
 */
int32_t sv_srt_noise_word(uint64_t seed, uint64_t offset, uint64_t *result);

/**
 * Returns the seed of a stream of its own.
 */
int32_t sv_srt_noise_stream(uint64_t seed, uint64_t generation, uint64_t purpose, uint64_t *result);

/**
 * Computes a tensor of random words from position `offset` on.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_srt_noise_words(uint64_t seed,
                           uint64_t offset,
                           const int64_t *shape,
                           size_t rank,
                           int32_t device,
                           sv_tensor *result);

/**
 * Computes a tensor of standard normal doubles from position `offset` on.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_srt_gauss(uint64_t seed,
                     uint64_t offset,
                     const int64_t *shape,
                     size_t rank,
                     int32_t device,
                     sv_tensor *result);

/**
 * Computes a tensor of uniform doubles from position `offset` on. `interval` is one of `SV_SRT_UNIFORM_...`.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_srt_uniform_noise(uint64_t seed,
                             uint64_t offset,
                             int32_t interval,
                             const int64_t *shape,
                             size_t rank,
                             int32_t device,
                             sv_tensor *result);

/**
 * Computes normal numbers from pairs of uniform ones along the last axis.
 */
int32_t sv_srt_box_muller(sv_tensor u, sv_tensor *result);

/**
 * Computes (lo + (hi - lo) tanh |rho|) g.
 */
int32_t sv_srt_residual_modulated_noise(sv_tensor g,
                                        sv_tensor rho,
                                        double lo,
                                        double hi,
                                        sv_tensor *result);

/**
 * Computes v (1 + (1 - s) sqrt(n2)/phi^2) + sigma (1 - s) exp(-n2/(4 phi)) g.
 */
int32_t sv_srt_resonant_d_phase(sv_tensor v,
                                sv_tensor n2,
                                sv_tensor g,
                                double s,
                                double sigma,
                                sv_tensor *result);

/**
 * Computes `sv_srt_resonant_d_phase` of rows, with a syntony for each row in the tensor `s`.
 */
int32_t sv_srt_resonant_d_phase_batch(sv_tensor v,
                                      sv_tensor n2,
                                      sv_tensor g,
                                      sv_tensor s,
                                      double sigma,
                                      sv_tensor *result);

/**
 * Computes v (1 - s/phi (1 - exp(-n2/phi))).
 */
int32_t sv_srt_h_phase(sv_tensor v, sv_tensor n2, double s, sv_tensor *result);

/**
 * Computes `sv_srt_h_phase` of rows, with a syntony for each row in the tensor `s`.
 */
int32_t sv_srt_h_phase_batch(sv_tensor v, sv_tensor n2, sv_tensor s, sv_tensor *result);

/**
 * Computes the D phase without noise, then the H phase.
 */
int32_t sv_srt_phase_cycle(sv_tensor v, sv_tensor n2, double s, sv_tensor *result);

/**
 * Computes the sum of |v|^2 exp(-n2/phi) divided by the sum of |v|^2, of each row.
 */
int32_t sv_srt_syntony(sv_tensor v, sv_tensor n2, sv_tensor *result);

/**
 * Computes one number of all syntonies. `aggregate` is one of `SV_SRT_AGGREGATE_...`.
 */
int32_t sv_srt_aggregate_syntony(sv_tensor s, int32_t aggregate, sv_tensor *result);

/**
 * Computes 1 - |d - h| / (|d - psi| + 1e-10), from 0 to 1.
 */
int32_t sv_srt_operator_syntony(sv_tensor psi, sv_tensor d, sv_tensor h, sv_tensor *result);

/**
 * Finds the largest syntony of a vector: its index and its value. NaN is ignored.
 */
int32_t sv_srt_argmax_syntony(sv_tensor s, sv_tensor *index, sv_tensor *value);

/**
 * Computes the pull of flux values toward their lattice values. `mode` is one of `SV_SRT_GRADIENT_...`.
 */
int32_t sv_srt_snap_gradient(sv_tensor flux,
                             sv_tensor lattice,
                             sv_tensor n2,
                             int32_t mode,
                             sv_tensor *result);

/**
 * Computes the H phase, finds the a + b phi with |a|, |b| <= bound nearest to it, and computes their syntony.
 */
int32_t sv_srt_harmonize_and_crystallize(sv_tensor flux,
                                         sv_tensor n2,
                                         double s,
                                         int64_t bound,
                                         sv_tensor *result_a,
                                         sv_tensor *result_b,
                                         sv_tensor *syntony);

/**
 * Computes the times of the D phase and of the H phase: base, and base phi^syntony.
 */
int32_t sv_srt_dwell(double base, double syntony, double *d_phase, double *h_phase);

/**
 * Computes A B. `mode` is one of `SV_SRT_PRODUCT_...`.
 */
int32_t sv_srt_mm(sv_tensor a, sv_tensor b, int32_t mode, sv_tensor *result);

/**
 * Computes A^T B, of A stored as K x M. `mode` is one of `SV_SRT_PRODUCT_...`.
 */
int32_t sv_srt_mm_tn(sv_tensor a, sv_tensor b, int32_t mode, sv_tensor *result);

/**
 * Computes A B^T, of B stored as N x K. `mode` is one of `SV_SRT_PRODUCT_...`.
 */
int32_t sv_srt_mm_nt(sv_tensor a, sv_tensor b, int32_t mode, sv_tensor *result);

/**
 * Computes A^T B^T. `mode` is one of `SV_SRT_PRODUCT_...`.
 */
int32_t sv_srt_mm_tt(sv_tensor a, sv_tensor b, int32_t mode, sv_tensor *result);

/**
 * Computes A^H B. `mode` is one of `SV_SRT_PRODUCT_...`.
 */
int32_t sv_srt_mm_hn(sv_tensor a, sv_tensor b, int32_t mode, sv_tensor *result);

/**
 * Computes A B^H. `mode` is one of `SV_SRT_PRODUCT_...`.
 */
int32_t sv_srt_mm_nh(sv_tensor a, sv_tensor b, int32_t mode, sv_tensor *result);

/**
 * Computes the products of two batches of matrices. `mode` is one of `SV_SRT_PRODUCT_...`.
 */
int32_t sv_srt_bmm(sv_tensor a, sv_tensor b, int32_t mode, sv_tensor *result);

/**
 * Computes A B - B A/phi. `mode` is one of `SV_SRT_PRODUCT_...`.
 */
int32_t sv_srt_golden_commutator(sv_tensor a, sv_tensor b, int32_t mode, sv_tensor *result);

/**
 * Computes A B + B A/phi. `mode` is one of `SV_SRT_PRODUCT_...`.
 */
int32_t sv_srt_golden_anticommutator(sv_tensor a, sv_tensor b, int32_t mode, sv_tensor *result);

/**
 * Computes the sum over k of a_ik b_kj exp(-k^2/phi). `mode` is one of `SV_SRT_PRODUCT_...`.
 */
int32_t sv_srt_mm_golden_weighted(sv_tensor a, sv_tensor b, int32_t mode, sv_tensor *result);

/**
 * Computes phi^n A B. `mode` is one of `SV_SRT_PRODUCT_...`.
 */
int32_t sv_srt_mm_phi(sv_tensor a, sv_tensor b, int32_t n, int32_t mode, sv_tensor *result);

/**
 * Computes (1 + sign q/divisor) A B. `mode` is one of `SV_SRT_PRODUCT_...`.
 */
int32_t sv_srt_mm_corrected(sv_tensor a,
                            sv_tensor b,
                            double divisor,
                            int32_t sign,
                            int32_t mode,
                            sv_tensor *result);

/**
 * Computes e^(i pi n/phi) A B, which is complex. `mode` is one of `SV_SRT_PRODUCT_...`.
 */
int32_t sv_srt_mm_golden_phase(sv_tensor a,
                               sv_tensor b,
                               int32_t n,
                               int32_t mode,
                               sv_tensor *result);

/**
 * Computes alpha op(A) op(B) + beta C as a new tensor. `operation_a` and `operation_b` are of `SV_SRT_OPERATION_...`,
 * and `mode` is one of `SV_SRT_PRODUCT_...`. C is not read if beta is 0.
 *
 * Requires: `alpha` and `beta` point to numbers.
 */
int32_t sv_srt_gemm(const struct sv_number *alpha,
                    int32_t operation_a,
                    sv_tensor a,
                    int32_t operation_b,
                    sv_tensor b,
                    const struct sv_number *beta,
                    sv_tensor c,
                    int32_t mode,
                    sv_tensor *result);

/**
 * Computes psi + the sum over k of factor k times P_k psi of `count` square matrices P_k. `mode` is one of
 * `SV_SRT_PRODUCT_...`.
 *
 * Requires: `projections` and `factors` point to `count` elements each.
 */
int32_t sv_srt_projection_sum(sv_tensor psi,
                              const sv_tensor *projections,
                              const double *factors,
                              size_t count,
                              int32_t mode,
                              sv_tensor *result);

/**
 * Computes the sum over k of weight k times T_k of `count` tensors of one shape.
 *
 * Requires: `tensors` and `weights` point to `count` elements each.
 */
int32_t sv_srt_weighted_sum(const sv_tensor *tensors,
                            const double *weights,
                            size_t count,
                            sv_tensor *result);

/**
 * Writes up to `capacity` bounds of a ramp of at most `steps` steps from `first` on, and the number of all of them.
 * Each bound is the one before times phi, rounded up.
 *
 * Requires: `bounds` points to `capacity` numbers.
 */
int32_t sv_srt_precision_ramp(int64_t first,
                              size_t steps,
                              int64_t *bounds,
                              size_t capacity,
                              uint64_t *count);

/**
 * Snaps values at each bound of a ramp of at most `steps` steps from `first` on. Point i of the ramp is a pair of
 * `SV_DTYPE_I64` tensors, `a[i]` and `b[i]`, of the bound `bounds[i]`.
 *
 * `count` gets the number of bounds; the arrays get the first `capacity` of them, and values are snapped at these alone. A
 * capacity of 0 asks for the number alone. The caller owns one reference to each tensor.
 *
 * Requires: `bounds`, `a` and `b` each point to `capacity` elements, and `count` points to a `uint64_t`.
 */
int32_t sv_srt_snap_ramp(sv_tensor values,
                         int64_t first,
                         size_t steps,
                         int64_t *bounds,
                         sv_tensor *a,
                         sv_tensor *b,
                         size_t capacity,
                         uint64_t *count);

/**
 * Creates an expression for an integer. Sums and products of integers are exact, so larger ones of up to 128 bits are made of
 * smaller ones.
 */
int32_t sv_srt_symbolic_integer(int64_t integer,
                                sv_srt_symbolic *result);

/**
 * Creates an expression for a fraction. `SV_ERROR_DIVISION_BY_ZERO` for a denominator of 0.
 */
int32_t sv_srt_symbolic_rational(int64_t numerator, int64_t denominator, sv_srt_symbolic *result);

/**
 * Creates an expression for an exact number a + b phi.
 */
int32_t sv_srt_symbolic_exact(const struct sv_srt_exact *number, sv_srt_symbolic *result);

/**
 * Creates an expression for a constant, one of `SV_SRT_CONSTANT_...`.
 */
int32_t sv_srt_symbolic_constant(int32_t constant, sv_srt_symbolic *result);

/**
 * Creates an expression for input `slot`: column `slot` of the rows of a run, from 0 to 62.
 */
int32_t sv_srt_symbolic_input(size_t slot, sv_srt_symbolic *result);

/**
 * Creates an expression for an operation, one of `SV_SRT_SYMBOLIC_...`. Operations of one operand do not read `y`.
 *
 * Sums, differences, products and quotients of two integers, of two fractions or of two exact numbers are exact numbers at once,
 * unless they overflow 128 bits or divide by 0. A result has at most 1048576 leaves and functions, or the status is
 * `SV_ERROR_INVALID_ARGUMENT`: operands are copied, so x = x x doubles their number. The caller owns one reference to `*result`,
 * which keeps no handle of an operand.
 */
int32_t sv_srt_symbolic_operation(int32_t operation,
                                  sv_srt_symbolic x,
                                  sv_srt_symbolic y,
                                  sv_srt_symbolic *result);

/**
 * Creates an expression for x to the power numerator/denominator. Of a negative x it is the real root if the reduced denominator
 * is odd, else NaN.
 *
 * A result has at most 1048576 leaves and functions, or the status is `SV_ERROR_INVALID_ARGUMENT`.
 */
int32_t sv_srt_symbolic_pow(sv_srt_symbolic x,
                            int64_t numerator,
                            int64_t denominator,
                            sv_srt_symbolic *result);

/**
 * Writes the number of leaves and functions of an expression.
 */
int32_t sv_srt_symbolic_node_count(sv_srt_symbolic x, size_t *result);

/**
 * Writes the number of input slots of an expression: the highest one, plus 1.
 */
int32_t sv_srt_symbolic_slots(sv_srt_symbolic x, size_t *result);

/**
 * Writes 1 if two expressions are the same tree, else 0. Equal values of different trees do not count.
 */
int32_t sv_srt_symbolic_is_same(sv_srt_symbolic x,
                                sv_srt_symbolic y,
                                int32_t *result);

/**
 * Writes an expression as a text in UTF-8, such as `((x0^2 + 1) · π)`. `text`, `capacity` and `length` are as for
 * `sv_library_report`.
 *
 * Requires: `text` points to `capacity` bytes.
 */
int32_t sv_srt_symbolic_text(sv_srt_symbolic x,
                             char *text,
                             size_t capacity,
                             size_t *length);

/**
 * Evaluates an expression on the CPU for one row of `count` inputs, with the bits of `sv_srt_symbolic_run_rows`.
 *
 * Requires: `inputs` points to `count` numbers.
 */
int32_t sv_srt_symbolic_evaluate(sv_srt_symbolic x,
                                 const double *inputs,
                                 size_t count,
                                 double *result);

/**
 * Evaluates an expression for each row of a matrix of `SV_DTYPE_F64`, whose columns are the input slots, on the device of the
 * matrix. `*result` gets a vector with a value for each row.
 *
 * Outside its domain a function is NaN or infinite, as IEEE has it: ln 0 is -infinity, ln of a negative number NaN. An
 * expression with more than 63 slots is `SV_ERROR_INVALID_ARGUMENT`.
 */
int32_t sv_srt_symbolic_run_rows(sv_srt_symbolic x,
                                 sv_tensor rows,
                                 sv_tensor *result);

/**
 * Computes x / y of complex tensors of one shape, scaled so that nothing overflows.
 */
int32_t sv_srt_complex_divide(sv_tensor x, sv_tensor y, sv_tensor *result);

/**
 * Computes 1/z, of complex numbers.
 */
int32_t sv_srt_complex_reciprocal(sv_tensor z, sv_tensor *result);

/**
 * Computes z e^(i pi/phi), of complex numbers.
 */
int32_t sv_srt_golden_rotate(sv_tensor z, sv_tensor *result);

/**
 * Computes z/|z|, and 0 at 0, of complex numbers.
 */
int32_t sv_srt_normalize_phase(sv_tensor z, sv_tensor *result);

/**
 * Computes the sum of z_i phi^-i along the last axis, of complex numbers.
 */
int32_t sv_srt_phi_weighted_sum(sv_tensor z, sv_tensor *result);

/**
 * Computes z e^(i theta).
 */
int32_t sv_srt_rotate_phase(sv_tensor z, double theta, sv_tensor *result);

/**
 * Computes z e^(i theta) with an angle for each element.
 */
int32_t sv_srt_rotate_phases(sv_tensor z, sv_tensor theta, sv_tensor *result);

/**
 * Rounds the angle of each complex number to a multiple of pi/k, and keeps its magnitude.
 */
int32_t sv_srt_quantize_phase_pi(sv_tensor z, int64_t k, sv_tensor *result);

/**
 * Adds a residual as `mode` says, one of `SV_SRT_RESIDUAL_...`.
 */
int32_t sv_srt_phi_residual(sv_tensor x, sv_tensor r, int32_t mode, sv_tensor *result);

/**
 * Computes the positive part of `sv_srt_phi_residual`. NaN gives 0 if `keep_nan` is 0, and NaN if it is 1.
 */
int32_t sv_srt_phi_residual_relu(sv_tensor x,
                                 sv_tensor r,
                                 int32_t mode,
                                 int32_t keep_nan,
                                 sv_tensor *result);

/**
 * Computes GELU of x + r/phi, in its tanh form.
 */
int32_t sv_srt_phi_residual_gelu(sv_tensor x, sv_tensor r, sv_tensor *result);

/**
 * Normalizes the rows of x + r/phi to variance 1. `gamma` and `beta` are tensors of the row's size, or 0.
 */
int32_t sv_srt_phi_residual_layer_norm(sv_tensor x,
                                       sv_tensor r,
                                       sv_tensor gamma,
                                       sv_tensor beta,
                                       double eps,
                                       sv_tensor *result);

/**
 * Computes exp(-s/phi); of complex numbers, exp(-|z|^2/phi).
 */
int32_t sv_srt_golden_weight(sv_tensor s, sv_tensor *result);

/**
 * Computes exp(-|n|^2/phi) of each row of windings along the last axis.
 */
int32_t sv_srt_golden_weight_of_rows(sv_tensor n, sv_tensor *result);

/**
 * Computes the sum of a_i b_i exp(-i^2/phi).
 */
int32_t sv_srt_golden_inner(sv_tensor a, sv_tensor b, sv_tensor *result);

/**
 * Computes a_i exp(-i/phi) / sqrt(sum of a_i^2 exp(-2i/phi) + 1e-10).
 */
int32_t sv_srt_golden_normalize(sv_tensor a, sv_tensor *result);

/**
 * Multiplies each element by its correction 1 + sign q/divisor; a divisor of 0 gives 1. `count` is the number of
 * elements.
 *
 * Requires: `divisors` and `signs` point to `count` numbers each.
 */
int32_t sv_srt_correct(sv_tensor values,
                       const double *divisors,
                       const int32_t *signs,
                       size_t count,
                       sv_tensor *result);

/**
 * Computes v (1 + q/first) (1 - q/second).
 */
int32_t sv_srt_compound_correction(sv_tensor values,
                                   double first,
                                   double second,
                                   sv_tensor *result);

/**
 * Multiplies each element by a range of the `count` corrections, from left to right. Element i has `lengths[i]`
 * corrections from `starts[i]` on; `elements` is the number of elements.
 *
 * Requires: `divisors` and `signs` point to `count` numbers each, and `starts` and `lengths` to `elements` numbers each.
 */
int32_t sv_srt_correct_chain(sv_tensor values,
                             const double *divisors,
                             const int32_t *signs,
                             size_t count,
                             const size_t *starts,
                             const size_t *lengths,
                             size_t elements,
                             sv_tensor *result);

/**
 * Returns q = (2 phi + e/(2 phi^2)) / (phi^4 (e^pi - pi)).
 */
int32_t sv_srt_q_deficit(double *result);

/**
 * Computes 1 + sign q/divisor.
 */
int32_t sv_srt_correction(double divisor, int32_t sign, double *result);

/**
 * Computes 1 + sign coefficient q^q_power phi^phi_power. docs/srt.md names the coefficients.
 */
int32_t sv_srt_special_correction(int32_t sign,
                                  double coefficient,
                                  int32_t q_power,
                                  int32_t phi_power,
                                  double *result);

/**
 * Computes 1/(1 + q phi^k) of k from -2 to 3.
 */
int32_t sv_srt_suppression(int32_t k, double *result);

/**
 * Returns a dimension of the table 248, 240, 120, 78, 36, 27, 24, 14.
 */
int32_t sv_srt_structure_dimension(size_t index, uint32_t *result);

/* ---- 14. Devices, memory and streams ---- */

/**
 * The CPU, where a function takes a CUDA device or the CPU.
 */
#define SV_CPU (-1)

/**
 * No limit, for `sv_device_set_memory_limit`.
 */
#define SV_NO_LIMIT UINT64_MAX

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

/**
 * A function that frees memory of other code.
 */
typedef void (*sv_deleter)(void *user);

/**
 * Writes the number of CUDA devices. Without a driver this is `SV_ERROR_LIBRARY_UNAVAILABLE`, with the paths tried.
 */
int32_t sv_device_count(int32_t *count);

/**
 * Writes the name of a device; that of `SV_CPU` is "CPU". `text`, `capacity` and `length` are as for `sv_library_report`.
 *
 * Requires: `text` points to `capacity` bytes.
 */
int32_t sv_device_name(int32_t device,
                       char *text,
                       size_t capacity,
                       size_t *length);

/**
 * Writes the compute capability of a device, such as 9 and 0.
 */
int32_t sv_device_compute_capability(int32_t device, int32_t *major, int32_t *minor);

/**
 * Writes an attribute of a device; `attribute` is a `CUdevice_attribute` of the driver.
 */
int32_t sv_device_attribute(int32_t device, int32_t attribute, int32_t *value);

/**
 * Writes the free and the total memory of a device in bytes.
 */
int32_t sv_device_memory(int32_t device, uint64_t *free, uint64_t *total);

/**
 * Waits for all work on a device, and returns the error of a kernel that faulted or reported one. `SV_CPU` has no work left when
 * a call returns, so there is no wait for it.
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
 */
int32_t sv_device_can_access_peer(int32_t device, int32_t other, int32_t *can);

/**
 * Lets kernels of a device use memory of `other`. Does nothing if they already may. Copies between devices need no such
 * access.
 */
int32_t sv_device_enable_peer_access(int32_t device,
                                     int32_t other);

/**
 * Revokes the access of `sv_device_enable_peer_access`, after a wait for the device. Does nothing if it was not enabled.
 */
int32_t sv_device_disable_peer_access(int32_t device,
                                      int32_t other);

/**
 * Writes the `CUcontext` of a device, which is its primary context, for other CUDA code.
 *
 * The context lives as long as the process.
 */
int32_t sv_device_context(int32_t device, void **context);

/**
 * Writes the ordinal of the device of a `CUcontext`. A context that is not the primary one of its device is
 * `SV_ERROR_INVALID_ARGUMENT`: this library shares no other.
 *
 * Requires: `context` is a live context or NULL, and `device` points to an `int32_t`.
 */
int32_t sv_device_of_context(void *context,
                             int32_t *device);

/**
 * Writes the statistics of a device's memory pool. For `SV_CPU` they are those of tensors: `live_bytes`, `peak_live_bytes` and
 * `cached_bytes`; the others are 0.
 *
 * Requires: `statistics` points to a struct whose `size` is set.
 */
int32_t sv_device_pool_statistics(int32_t device,
                                  struct sv_pool_statistics *statistics);

/**
 * Sets the most device memory that buffers may take from the driver, in use and cached together, in bytes; `SV_NO_LIMIT`
 * removes the limit. Memory already above it is kept.
 */
int32_t sv_device_set_memory_limit(int32_t device,
                                   uint64_t bytes);

/**
 * Waits for a device and returns all cached memory to the driver: device memory, pinned memory, events, and what was
 * released while in use. For `SV_CPU` it frees the blocks of freed tensors.
 */
int32_t sv_device_trim(int32_t device);

/**
 * Writes the layout of a device's memory pool as JSON. `text`, `capacity` and `length` are as for `sv_library_report`.
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
 * Any thread may use the stream.
 */
int32_t sv_stream_create(int32_t device, int32_t priority, sv_stream *stream);

/**
 * Borrows a `CUstream` of other code, such as a `cudaStream_t`. NULL is the legacy default stream. `CU_STREAM_PER_THREAD`
 * gives it too, because the driver orders it with the default streams of all threads. `device` is the device of the stream's
 * context, which must be its primary one.
 *
 * The library orders its work with the other code's as the driver orders one stream, and never destroys the stream. Any thread
 * may use the stream.
 *
 * Requires: `raw` is a live stream, and stays so until the last reference is released and no call that uses the stream runs. Other code
 * does not capture it meanwhile.
 */
int32_t sv_stream_from_raw(int32_t device,
                           void *raw,
                           sv_stream *stream);

/**
 * Writes the ordinal of the device of a stream.
 */
int32_t sv_stream_device(sv_stream stream, int32_t *device);

/**
 * Writes the `CUstream` of a stream, for other CUDA code.
 *
 * The driver's stream lives as long as the handle. This library does not see work that other code puts on it: order such work
 * with an event before another stream uses what it touches.
 */
int32_t sv_stream_raw(sv_stream stream,
                      void **raw);

/**
 * Waits for all work on a stream, and returns the error of a kernel that faulted or reported one.
 */
int32_t sv_stream_synchronize(sv_stream stream);

/**
 * Waits for all work on a stream, at most this many milliseconds; then `SV_ERROR_TIMED_OUT`, and the work goes on.
 */
int32_t sv_stream_synchronize_timeout(sv_stream stream,
                                      uint64_t timeout_ms);

/**
 * Writes 1 if all work on a stream is done, else 0.
 */
int32_t sv_stream_is_idle(sv_stream stream, int32_t *idle);

/**
 * Lets later work on `stream` begin after an event. The host does not wait.
 */
int32_t sv_stream_wait_event(sv_stream stream, sv_event event);

/**
 * Lets later work on `stream` begin after all work that `other` has now. The host does not wait.
 */
int32_t sv_stream_wait_stream(sv_stream stream, sv_stream other);

/**
 * Sends this thread's tensor operations on the stream's device to that stream, until `sv_stream_pop`. Calls may be nested,
 * and the last one counts. The stream stays alive meanwhile.
 *
 * It concerns the calling thread alone.
 */
int32_t sv_stream_push(sv_stream stream);

/**
 * Takes back the last `sv_stream_push` of the calling thread. Without one it is `SV_ERROR_INVALID_ARGUMENT`.
 */
int32_t sv_stream_pop(void);

/**
 * Gives the stream that this thread's tensor operations on a CUDA device go to.
 *
 * Any thread may use the stream.
 */
int32_t sv_stream_current(int32_t device, sv_stream *stream);

/**
 * Creates an event. `timing` is 1 for an event with a time, else 0.
 *
 * Any thread may use the event.
 */
int32_t sv_event_create(int32_t device, int32_t timing, sv_event *event);

/**
 * Records an event behind the work that a stream has now.
 */
int32_t sv_event_record(sv_event event, sv_stream stream);

/**
 * Waits for the work before an event.
 */
int32_t sv_event_synchronize(sv_event event);

/**
 * Writes 1 if the work before an event is done, else 0.
 */
int32_t sv_event_is_complete(sv_event event, int32_t *complete);

/**
 * Writes the milliseconds between two events with a time, both of which have been reached.
 */
int32_t sv_event_elapsed(sv_event start, sv_event end, float *milliseconds);

/**
 * Allocates device memory for a stream, with unspecified contents. The memory comes from a pool and costs no driver call
 * where a block is cached.
 *
 * Any stream of any device that can reach the memory may use it: each operation waits on the device for the conflicting ones
 * before it. Releasing the buffer frees the memory behind the work that uses it. Work that two threads issue to one
 * buffer at the same time runs in either order.
 */
int32_t sv_buffer_create(sv_stream stream,
                         uint64_t bytes,
                         sv_buffer *buffer);

/**
 * As `sv_buffer_create`, with bytes that are all zero.
 */
int32_t sv_buffer_zeros(sv_stream stream, uint64_t bytes, sv_buffer *buffer);

/**
 * Writes the device address of the first byte, which is 0 for an empty buffer.
 *
 * The library does not see uses of the address by other code: order them with events.
 */
int32_t sv_buffer_address(sv_buffer buffer, uint64_t *address);

/**
 * Writes the number of bytes of a buffer.
 */
int32_t sv_buffer_size(sv_buffer buffer, uint64_t *bytes);

/**
 * Writes the ordinal of the device that holds a buffer.
 */
int32_t sv_buffer_device(sv_buffer buffer, int32_t *device);

/**
 * Copies `bytes` bytes of the host to a buffer, from `offset` on. The call returns when the host's memory is no longer used.
 *
 * Requires: `data` points to `bytes` bytes that nobody writes during the call.
 */
int32_t sv_buffer_upload(sv_stream stream,
                         sv_buffer buffer,
                         uint64_t offset,
                         const void *data,
                         size_t bytes);

/**
 * Copies `bytes` bytes of a buffer, from `offset` on, to the host, behind the work that writes them. The call waits for the
 * copy, and returns the error of a kernel that faulted or reported one.
 *
 * Requires: `data` points to `bytes` bytes that nobody else uses during the call.
 */
int32_t sv_buffer_download(sv_stream stream,
                           sv_buffer buffer,
                           uint64_t offset,
                           void *data,
                           size_t bytes);

/**
 * Copies bytes of a buffer to another one, or to another place in it that does not overlap. The buffers may be on two
 * devices, of which the stream belongs to one. The host does not wait.
 */
int32_t sv_buffer_copy(sv_stream stream,
                       sv_buffer source,
                       uint64_t source_offset,
                       sv_buffer destination,
                       uint64_t destination_offset,
                       uint64_t bytes);

/**
 * Sets `count` values of a buffer, from the byte at `offset` on, to the value at `value` of `value_bytes` bytes: 1, 2, 4,
 * 8 or 16. The offset is a multiple of the value's size. The host does not wait.
 *
 * Requires: `value` points to `value_bytes` bytes.
 */
int32_t sv_buffer_fill(sv_stream stream,
                       sv_buffer buffer,
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
 * Requires: The memory is valid until the deleter is called, and other code uses it only in the order of `stream`. `deleter` may be called
 * from any thread.
 */
int32_t sv_buffer_from_raw(sv_stream stream,
                           uint64_t address,
                           uint64_t bytes,
                           sv_deleter deleter,
                           void *user,
                           sv_buffer *buffer);

/**
 * Allocates page-locked host memory for a device, with unspecified contents. Every device can use it.
 *
 * Threads may use the memory one at a time.
 */
int32_t sv_pinned_create(int32_t device,
                         size_t bytes,
                         sv_pinned *pinned);

/**
 * Writes the address and the number of bytes of pinned memory. The address stays the same while the handle lives.
 *
 * The caller may read and write the memory until it starts a copy, and again after `sv_pinned_wait`. During a copy this function
 * fails.
 */
int32_t sv_pinned_data(sv_pinned pinned,
                       void **data,
                       size_t *bytes);

/**
 * Starts a copy of all pinned memory to a buffer, from the byte at `offset` on. The host does not wait.
 *
 * The copy has the memory until `sv_pinned_wait`: the caller must not touch it. During a capture the graph takes the memory, and
 * `sv_executable_graph_host` gives access to it. Releasing the handle is allowed at any time.
 */
int32_t sv_pinned_upload(sv_stream stream,
                         sv_pinned pinned,
                         sv_buffer buffer,
                         uint64_t offset);

/**
 * Starts a copy of bytes of a buffer, from `offset` on, to all pinned memory, behind the work that writes them. The host
 * does not wait.
 *
 * As `sv_pinned_upload` otherwise.
 */
int32_t sv_pinned_download(sv_stream stream,
                           sv_buffer buffer,
                           uint64_t offset,
                           sv_pinned pinned);

/**
 * Waits for the copy that has pinned memory, and gives the memory back. Does nothing where no copy has it.
 *
 * Returns the error of a kernel that faulted or reported one; the memory is then given up, and the handle can only be released.
 */
int32_t sv_pinned_wait(sv_pinned pinned);

/**
 * Gives a tensor of the CPU whose elements are the bytes of pinned memory, without a copy. DLPack exports it as pinned memory.
 *
 * The memory has exactly the elements' bytes, and belongs to the tensor afterwards: the handle can only be released, and an
 * address of `sv_pinned_data` must no longer be used. A call that refuses an argument leaves the memory to the handle.
 *
 * Requires: `shape` points to `rank` numbers.
 */
int32_t sv_tensor_from_pinned(sv_pinned pinned,
                              int32_t dtype,
                              const int64_t *shape,
                              size_t rank,
                              sv_tensor *result);

/**
 * Writes 1 if no copy has pinned memory or its copy is done, else 0. `sv_pinned_wait` still gives the memory back.
 */
int32_t sv_pinned_is_complete(sv_pinned pinned,
                              int32_t *complete);

/* ---- 15. Kernels and launches ---- */

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
 * The resources of a kernel, for `sv_function_attributes_get`.
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
  sv_buffer buffer;
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
 * Loads PTX, a cubin or a fatbin on a device. PTX needs no zero byte at its end.
 *
 * The bytes are no longer used when the call returns. A kernel keeps its module loaded. Any thread may use the module.
 *
 * Requires: `image` points to `bytes` bytes.
 */
int32_t sv_module_load(int32_t device,
                       const void *image,
                       size_t bytes,
                       sv_module *module);

/**
 * Writes the log of the driver's assembler, which is usually empty. `log`, `capacity` and `length` are as for
 * `sv_library_report`.
 *
 * Requires: `log` points to `capacity` bytes.
 */
int32_t sv_module_log(sv_module module,
                      char *log,
                      size_t capacity,
                      size_t *length);

/**
 * Writes the names of the kernels of a module, one a line. `names`, `capacity` and `length` are as for `sv_library_report`.
 *
 * Requires: `names` points to `capacity` bytes.
 */
int32_t sv_module_function_names(sv_module module,
                                 char *names,
                                 size_t capacity,
                                 size_t *length);

/**
 * Finds a kernel of a module. C++ kernels have mangled names unless they are `extern "C"`.
 *
 * Any thread may use the kernel.
 */
int32_t sv_module_function(sv_module module, const char *name, sv_function *function);

/**
 * Writes what a kernel needs.
 *
 * Requires: `attributes` points to a struct whose `size` is set.
 */
int32_t sv_function_attributes_get(sv_function function, struct sv_function_attributes *attributes);

/**
 * Writes the kind (`SV_PARAMETER_...`), the size and the offset in bytes of a parameter of a kernel.
 *
 * Requires: `kind` points to a `uint32_t`; `bytes` and `offset` each point to a `size_t`.
 */
int32_t sv_function_parameter(sv_function function,
                              uint32_t index,
                              uint32_t *kind,
                              size_t *bytes,
                              size_t *offset);

/**
 * Writes how many blocks of `threads` threads and `shared` bytes of dynamic shared memory one multiprocessor holds.
 */
int32_t sv_function_occupancy(sv_function function,
                              uint32_t threads,
                              uint32_t shared,
                              uint32_t *blocks);

/**
 * Writes the sizes of grid and block that give the highest occupancy with `shared` bytes of dynamic shared memory.
 */
int32_t sv_function_suggested_block_size(sv_function function,
                                         uint32_t shared,
                                         uint32_t *grid,
                                         uint32_t *block);

/**
 * Writes the address and the size of a variable of a module, `__device__` or `__constant__` in CUDA C++.
 *
 * The address is valid while the module or one of its kernels lives.
 *
 * Requires: `name` is a text that ends with a zero byte, `address` points to a `uint64_t` and `bytes` to a `size_t`.
 */
int32_t sv_module_global(sv_module module,
                         const char *name,
                         uint64_t *address,
                         size_t *bytes);

/**
 * Reads all `bytes` bytes of a variable, behind every earlier launch from its module. The call waits for the copy.
 *
 * Requires: `name` is a text that ends with a zero byte, and `data` points to `bytes` bytes that nobody else uses.
 */
int32_t sv_module_global_read(sv_module module,
                              const char *name,
                              sv_stream stream,
                              void *data,
                              size_t bytes);

/**
 * Writes all `bytes` bytes of a variable, behind every earlier launch from its module. The call waits for the copy.
 *
 * Requires: `name` is a text that ends with a zero byte, and `data` points to `bytes` bytes that nobody writes.
 */
int32_t sv_module_global_write(sv_module module,
                               const char *name,
                               sv_stream stream,
                               const void *data,
                               size_t bytes);

/**
 * Launches a kernel on a stream. The arguments are checked against the kernel's parameters, in number, size and kind, as far
 * as the image gives them; nothing is launched where one does not fit.
 *
 * The stream waits for all earlier uses of the buffers, on any stream. The host does not wait: the next call that waits reports
 * a fault of the kernel. Values are copied.
 *
 * Requires: `config` points to a struct whose `size` is set, and `arguments` to `count` arguments, whose values point to their bytes.
 * The kernel stays inside of the buffers, writes only to those of `SV_ARGUMENT_WRITE`, and the caller orders its uses of raw
 * addresses.
 */
int32_t sv_launch(sv_function function,
                  sv_stream stream,
                  const struct sv_launch_config *config,
                  const struct sv_argument *arguments,
                  size_t count);

/**
 * Creates a program of CUDA C++. `name` stands in messages, such as `saxpy.cu`.
 *
 * Both texts are copied. Calls for one program run one at a time.
 */
int32_t sv_program_create(const char *name, const char *source, sv_program *program);

/**
 * Adds a header for `#include "name"` and `#include <name>`. It replaces one of the same name. Drops an earlier result.
 *
 * Both texts are copied.
 *
 * Requires: `name` and `source` are texts that end with a zero byte.
 */
int32_t sv_program_add_header(sv_program program,
                              const char *name,
                              const char *source);

/**
 * Adds an option of NVRTC, such as `--use_fast_math`; the target sets the architecture. Drops an earlier result.
 *
 * The text is copied.
 *
 * Requires: `option` is a text that ends with a zero byte.
 */
int32_t sv_program_add_option(sv_program program,
                              const char *option);

/**
 * Asks for the lowered name of a template instance, such as `scale<float>`, or of a name in a namespace. `extern "C"` kernels
 * need no request. Drops an earlier result.
 *
 * The text is copied.
 *
 * Requires: `expression` is a text that ends with a zero byte.
 */
int32_t sv_program_add_expression(sv_program program,
                                  const char *expression);

/**
 * Compiles a program for a target, such as `sm_90a` (machine code) or `compute_80` (PTX), or takes an earlier result from the
 * cache on disk. `sv_program_log` has the log, also after `SV_ERROR_COMPILATION`.
 *
 * Requires: `target` is a text that ends with a zero byte.
 */
int32_t sv_program_compile(sv_program program,
                           const char *target);

/**
 * Compiles a program for the best target that NVRTC and the driver have for a device. As `sv_program_compile` otherwise.
 */
int32_t sv_program_compile_for_device(sv_program program,
                                      int32_t device);

/**
 * Writes the warnings of the last compilation, or the error with source lines and carets. `log`, `capacity` and `length` are
 * as for `sv_library_report`.
 *
 * Requires: `log` points to `capacity` bytes.
 */
int32_t sv_program_log(sv_program program,
                       char *log,
                       size_t capacity,
                       size_t *length);

/**
 * Writes the name in the image of an expression of `sv_program_add_expression`. `name`, `capacity` and `length` are as for
 * `sv_library_report`.
 *
 * Requires: `expression` is a text that ends with a zero byte, and `name` points to `capacity` bytes.
 */
int32_t sv_program_lowered_name(sv_program program,
                                const char *expression,
                                char *name,
                                size_t capacity,
                                size_t *length);

/**
 * Copies the image of a compiled program: a cubin, or PTX without a zero byte. `length`, if not NULL, gets the bytes of the
 * whole image; a capacity of 0 asks for it alone. An image that does not fit is `SV_ERROR_INVALID_ARGUMENT`.
 *
 * Requires: `image` points to `capacity` bytes.
 */
int32_t sv_program_image(sv_program program,
                         void *image,
                         size_t capacity,
                         size_t *length);

/**
 * Loads a compiled program on a device. Launches of its kernels are checked by the parameters that its PTX gives.
 *
 * The caller owns one reference to `*module`, which does not need the program.
 */
int32_t sv_program_load(sv_program program,
                        int32_t device,
                        sv_module *module);

/* ---- 16. Graphs ---- */

/**
 * Begins to capture the operations that this thread issues on a stream, and on streams that come to depend on it, in place
 * of running them. A thread captures one graph at a time.
 *
 * Launches, fills, copies on the device and from and to pinned memory, events, and waits among the captured streams can be
 * captured; a call that waits answers `SV_ERROR_NOT_CAPTURABLE`, and the capture goes on. Memory allocated on captured
 * streams belongs to the graph. The same thread ends the capture; one that a thread leaves open ends with the thread.
 */
int32_t sv_stream_begin_capture(sv_stream stream);

/**
 * Ends the capture that this thread has begun on a stream, and gives its graph. The graph does nothing by itself: instantiate
 * it, and launch the result. A failing call discards the capture, unless the capture belongs to another stream.
 *
 * Only the thread that began the capture may call it.
 */
int32_t sv_stream_end_capture(sv_stream stream,
                              sv_graph *graph);

/**
 * Writes the number of nodes of a graph.
 */
int32_t sv_graph_node_count(sv_graph graph, size_t *nodes);

/**
 * Writes a picture of a graph in the language of Graphviz. `text`, `capacity` and `length` are as for `sv_library_report`.
 *
 * Requires: `text` points to `capacity` bytes.
 */
int32_t sv_graph_dot(sv_graph graph,
                     char *text,
                     size_t capacity,
                     size_t *length);

/**
 * Instantiates a graph. The executable graph takes the captured one, whose handle can only be released afterwards, also where
 * the driver fails.
 */
int32_t sv_graph_instantiate(sv_graph graph,
                             sv_executable_graph *executable);

/**
 * Launches an executable graph on a stream, as one operation, behind all earlier uses of its buffers and its own earlier
 * launches. The host does not wait.
 */
int32_t sv_executable_graph_launch(sv_executable_graph executable,
                                   sv_stream stream);

/**
 * Uploads what an executable graph needs to the device, ahead of its first launch.
 */
int32_t sv_executable_graph_upload(sv_executable_graph executable, sv_stream stream);

/**
 * Updates an executable graph from another capture of the same operations in the same order, with other arguments, shapes or
 * buffers. The executable graph takes the captured one. Launches in progress are not changed.
 *
 * `SV_ERROR_GRAPH_NOT_UPDATABLE` says that the two differ in more than that; `graph` can then be instantiated.
 */
int32_t sv_executable_graph_update(sv_executable_graph executable,
                                   sv_graph graph);

/**
 * Writes the address and the size of pinned memory that a captured copy uses and the graph has, after a wait for all launches
 * so far. The next launch uploads what is written there; what the last launch downloaded is read there.
 *
 * The memory may be used until the next launch. Any thread may call it, one at a time.
 */
int32_t sv_executable_graph_host(sv_executable_graph executable,
                                 sv_pinned pinned,
                                 void **data,
                                 size_t *bytes);

/* ---- 17. Threads, memory and messages of the host, traces ---- */

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
 * A function that gets the messages of the library: the level, the part of the library, and the text, in UTF-8. The texts are
 * valid during the call.
 */
typedef void (*sv_log_callback)(int32_t level, const char *target, const char *message, void *user);

/**
 * A function that allocates memory of CPU tensors; NULL if there is none.
 */
typedef void *(*sv_host_allocate)(size_t bytes, size_t alignment, void *user);

/**
 * A function that frees memory of an `sv_host_allocate`, with the numbers of its allocation.
 */
typedef void (*sv_host_free)(void *memory, size_t bytes, size_t alignment, void *user);

/**
 * A job of an `sv_executor`.
 */
typedef void (*sv_job)(size_t index, void *context);

/**
 * A function that runs the jobs of CPU operations: it calls `job` with each index below `count` and with `context`, once and on
 * threads of its choice, and returns when all calls have returned.
 */
typedef void (*sv_executor)(size_t count, sv_job job, void *context, void *user);

/**
 * Sets the function that gets the library's messages of `level` (`SV_LOG_...`) and more urgent ones. NULL removes it. Without
 * one the library writes no message anywhere.
 *
 * The function is called on the thread that a message comes from, on several at once, and must not call `sv_set_log_callback` or
 * `sv_shutdown`. When this call returns, no thread is in an earlier function. `SV_ERROR_UNSUPPORTED` in a Rust program that has
 * a logger of its own.
 *
 * Requires: `callback` may be called with `user` from any thread until it is replaced, removed, or `sv_shutdown` returns.
 */
int32_t sv_set_log_callback(int32_t level,
                            sv_log_callback callback,
                            void *user);

/**
 * Sets the functions that allocate and free the memory of CPU tensors, for the whole process and until its end. Blocks of freed
 * tensors are then not kept for later ones. CUDA memory, and memory that other code lends, is not affected.
 *
 * Any thread may call it, once, before the first tensor on the CPU; `SV_ERROR_INVALID_ARGUMENT` afterwards. `sv_shutdown` does
 * not end it.
 *
 * Requires: `allocate` returns NULL or so many bytes, at a multiple of the alignment, that nothing else uses until `free` gets them. Any
 * thread calls both with `user`, until the process ends.
 */
int32_t sv_set_host_allocator(sv_host_allocate allocate,
                              sv_host_free free,
                              void *user);

/**
 * Sets the number of CPU threads that an operation may use, the calling one included. 0 restores the default:
 * `SELVEDGE_THREADS`, or the number of processors that the process may run on. Results do not depend on it.
 *
 * The setting holds for operations that start after the call, on any thread. With 1 the library starts no thread for operations.
 */
int32_t sv_set_threads(uint32_t count);

/**
 * Sets the function that runs the jobs of CPU operations instead of the library's own threads. NULL restores them.
 *
 * An operation asks for 2 jobs to as many as `sv_thread_count` says, and small ones run on the calling thread without the
 * function. The jobs share out the work of an operation, so their order and the number of threads change no result. Jobs
 * that the function leaves out are done by the calling thread. A job may call the function itself, on any thread, so it must
 * not wait for a free thread. Operations that run during this call may still use the function before. Any thread may call it;
 * `sv_shutdown` removes the function.
 *
 * Requires: `executor` may be called with `user` from any thread until it is replaced, removed, or `sv_shutdown` returns, and until the
 * operations that began before have ended. It calls no job after it has returned.
 */
int32_t sv_set_executor(sv_executor executor,
                        void *user);

/**
 * Writes the number of CPU threads that an operation may use.
 */
int32_t sv_thread_count(uint32_t *count);

/**
 * Starts a trace into a file, which is replaced. `sv_trace_stop` or the end of the process completes it. There is one trace at
 * a time in a process. The environment variable `SELVEDGE_TRACE` starts one, too.
 */
int32_t sv_trace_start(const char *path);

/**
 * Ends the trace and completes its file. It does nothing without a trace.
 *
 * It waits at most a second for the work of devices that still runs.
 */
int32_t sv_trace_stop(void);

/**
 * Begins a range of the calling thread, whose time the trace shows by its name. Ranges nest.
 */
int32_t sv_trace_push(const char *name);

/**
 * Ends the range that this thread began last.
 */
int32_t sv_trace_pop(void);

#ifdef __cplusplus
}
#endif

#endif /* SELVEDGE_H */
