/*
 * fake_cublas.c: a cuBLAS that multiplies on the host, to go with the fake driver (../fake_driver/fake.h).
 *
 * It stands in for libcublas.so.12 and shows that a program asks cuBLAS for what it means: matrices, column by column, are
 * copied out of the fake device, multiplied by the definition, and copied back, all in the order of the stream that was
 * set. Sums are kept in double, so products of small whole numbers are exact and the result is rounded once.
 *
 * What cuBLAS would not take, or what a program that shares it must not do, is answered by a status: sizes and leading
 * dimensions that do not fit (7), combinations of types that are not computed in the type that the program promises (15),
 * a handle without stream or workspace, in another context than its own, or used by two threads at once (1).
 *
 * Environment: FAKE_CUBLAS=launch launches a kernel of the fake driver that reads and writes what the product would, instead
 * of multiplying. That is what waits and captures are tested with, since the host then waits for nothing.
 *
 * The driver is the one that SELVEDGE_LIBCUDA names, which the program has loaded.
 */
#include <complex.h>
#include <dlfcn.h>
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, C_64F = 5, R_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_32F_PEDANTIC = 69, COMPUTE_64F = 70 };
enum { OP_N = 0, OP_T = 1, OP_C = 2 };

typedef struct {
    void *context, *stream;
    uint64_t workspace;
    size_t workspace_bytes;
    atomic_flag busy;
} Handle;

/* ---- the driver ---- */

static void *driver(const char *name) {
    static void *library;
    if (!library) library = dlopen(getenv("SELVEDGE_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD);
    return library ? dlsym(library, name) : NULL;
}

#define DRIVER(name, ...) (((int (*)(__VA_ARGS__))driver(name)))

static void *current_context(void) {
    void *context = NULL;
    DRIVER("cuCtxGetCurrent", void **)(&context);
    return context;
}

/* ---- numbers ---- */

static size_t size_of(int type) {
    switch (type) {
    case R_16F:
    case R_16BF: return 2;
    case R_32F: return 4;
    case R_64F:
    case C_32F: return 8;
    default: return 16;
    }
}

static double from_half(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                   : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                  : ldexp(fraction, -24);
    return bits >> 15 ? -value : value;
}

static uint16_t to_half(double value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    value = fabs(value);
    if (isnan(value)) return 0x7e00;
    if (value == 0) return sign;
    int exponent = fmax(ilogb(value), -14);
    double rounded = nearbyint(ldexp(value, 10 - exponent));
    if (ldexp(rounded, exponent - 10) > 65504) return sign | 0x7c00;
    /* What was rounded up to 2048 carries into the exponent. */
    return sign | (uint16_t)(((exponent + 14) << 10) + (int)rounded);
}

static uint16_t to_bfloat(double value) {
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, 4);
    if (isnan(value)) return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double complex load(const void *place, int type) {
    float single[2];
    double twice[2];
    uint16_t half;
    switch (type) {
    case R_16F: memcpy(&half, place, 2); return from_half(half);
    case R_16BF:
        memcpy(&half, place, 2);
        uint32_t bits = (uint32_t)half << 16;
        memcpy(single, &bits, 4);
        return single[0];
    case R_32F: memcpy(single, place, 4); return single[0];
    case R_64F: memcpy(twice, place, 8); return twice[0];
    case C_32F: memcpy(single, place, 8); return single[0] + I * single[1];
    default: memcpy(twice, place, 16); return twice[0] + I * twice[1];
    }
}

static void store(void *place, int type, double complex value) {
    float single[2] = {(float)creal(value), (float)cimag(value)};
    double twice[2] = {creal(value), cimag(value)};
    uint16_t half = type == R_16F ? to_half(creal(value)) : to_bfloat(creal(value));
    switch (type) {
    case R_16F:
    case R_16BF: memcpy(place, &half, 2); return;
    case R_32F:
    case C_32F: memcpy(place, single, size_of(type)); return;
    default: memcpy(place, twice, size_of(type)); return;
    }
}

/* ---- products ---- */

typedef struct {
    uint64_t address;
    int rows, columns, leading, type;
    int64_t stride;
    uint8_t *copy;
} Matrix;

static size_t span(const Matrix *matrix, int batch) {
    if (!matrix->rows || !matrix->columns) return 0;
    int64_t last = (int64_t)(matrix->columns - 1) * matrix->leading + matrix->rows;
    return (size_t)((batch - 1) * matrix->stride + last) * size_of(matrix->type);
}

static int copy_out(Matrix *matrix, int batch, void *stream) {
    size_t bytes = span(matrix, batch);
    matrix->copy = malloc(bytes + 1);
    if (!bytes) return 0;
    return DRIVER("cuMemcpyDtoHAsync_v2", void *, uint64_t, size_t, void *)(matrix->copy, matrix->address, bytes, stream) ||
           DRIVER("cuStreamSynchronize", void *)(stream);
}

static void *element(const Matrix *matrix, int index, int row, int column) {
    int64_t place = index * matrix->stride + (int64_t)column * matrix->leading + row;
    return matrix->copy + place * (int64_t)size_of(matrix->type);
}

static double complex operand(const Matrix *matrix, int operation, int index, int row, int column) {
    void *place = operation == OP_N ? element(matrix, index, row, column) : element(matrix, index, column, row);
    double complex value = load(place, matrix->type);
    return operation == OP_C ? conj(value) : value;
}

static int launch(const Handle *handle, Matrix *a, Matrix *b, Matrix *c, int batch) {
    static const char *ptx = ".version 8.0\n.target sm_60\n.address_size 64\n.visible .entry fake_gemm(\n"
                             ".param .u64 fake_gemm_read_a,\n.param .u64 fake_gemm_read_b,\n"
                             ".param .u64 fake_gemm_update_c,\n.param .u64 fake_gemm_write_d,\n"
                             ".param .u64 fake_gemm_bytes_of_each\n)\n{\nret;\n}\n";
    static _Thread_local void *owner, *function;
    if (owner != handle->context) {
        void *module;
        if (DRIVER("cuModuleLoadDataEx", void **, const void *, unsigned, void *, void *)(&module, ptx, 0, NULL, NULL) ||
            DRIVER("cuModuleGetFunction", void **, void *, const char *)(&function, module, "fake_gemm"))
            return 1;
        owner = handle->context;
    }
    /* Of square matrices each is as long as the result. */
    uint64_t workspace = handle->workspace, bytes = span(c, batch);
    void *arguments[] = {&a->address, &b->address, &c->address, &workspace, &bytes};
    return DRIVER("cuLaunchKernel", void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                  void **, void **)(function, 1, 1, 1, 1, 1, 1, 0, handle->stream, arguments, NULL);
}

static int fits(int from, int to, int compute) {
    switch (from) {
    case R_16F:
    case R_16BF: return (to == from || to == R_32F) && compute == COMPUTE_32F;
    case R_32F:
    case C_32F: return to == from && compute == COMPUTE_32F_PEDANTIC;
    case R_64F:
    case C_64F: return to == from && compute == COMPUTE_64F;
    default: return 0;
    }
}

static int multiply(Handle *handle, int of_a, int of_b, int m, int n, int k, const void *alpha, Matrix a, Matrix b,
                    const void *beta, Matrix c, int batch, int compute) {
    if (!handle->stream || !handle->workspace || handle->workspace % 256 || handle->workspace_bytes < 4 << 20)
        return NOT_INITIALIZED;
    if (current_context() != handle->context) return NOT_INITIALIZED;
    if (m < 1 || n < 1 || k < 1 || batch < 1 || of_a > OP_C || of_b > OP_C) return INVALID_VALUE;
    if (a.leading < a.rows || b.leading < b.rows || c.leading < c.rows) return INVALID_VALUE;
    if (!fits(a.type, c.type, compute) || a.type != b.type) return NOT_SUPPORTED;
    const char *mode = getenv("FAKE_CUBLAS");
    if (mode && !strcmp(mode, "launch")) return launch(handle, &a, &b, &c, batch) ? EXECUTION_FAILED : SUCCESS;

    if (copy_out(&a, batch, handle->stream) || copy_out(&b, batch, handle->stream) || copy_out(&c, batch, handle->stream))
        return EXECUTION_FAILED;
    int scale = c.type == R_16F || c.type == R_16BF ? R_32F : c.type;
    double complex by = load(alpha, scale), keeps = load(beta, scale);
    for (int index = 0; index < batch; index++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                double complex sum = 0;
                for (int p = 0; p < k; p++) {
                    double complex x = operand(&a, of_a, index, i, p), y = operand(&b, of_b, index, p, j);
                    /* By parts: what is infinite or no number in a real one must not spread. */
                    sum += CMPLX(creal(x) * creal(y) - cimag(x) * cimag(y), creal(x) * cimag(y) + cimag(x) * creal(y));
                }
                void *place = element(&c, index, i, j);
                double complex result = by * sum;
                if (keeps != 0) result += keeps * load(place, c.type);
                store(place, c.type, result);
            }
    int failed = DRIVER("cuMemcpyHtoDAsync_v2", uint64_t, const void *, size_t, void *)(c.address, c.copy, span(&c, batch), handle->stream) ||
                 DRIVER("cuStreamSynchronize", void *)(handle->stream);
    free(a.copy);
    free(b.copy);
    free(c.copy);
    return failed ? EXECUTION_FAILED : SUCCESS;
}

/* ---- the functions that a program calls ---- */

int cublasGetProperty(int which, int *value) {
    static const int version[] = {12, 9, 1};
    *value = version[which];
    return SUCCESS;
}

int cublasCreate_v2(Handle **handle) {
    if (!current_context()) return NOT_INITIALIZED;
    *handle = calloc(1, sizeof(Handle));
    (*handle)->context = current_context();
    fprintf(stderr, "fake cuBLAS: a handle\n");
    return SUCCESS;
}

int cublasSetStream_v2(Handle *handle, void *stream) {
    handle->stream = stream;
    handle->workspace = 0;
    return SUCCESS;
}

int cublasSetWorkspace_v2(Handle *handle, void *workspace, size_t bytes) {
    handle->workspace = (uint64_t)workspace;
    handle->workspace_bytes = bytes;
    return SUCCESS;
}

int cublasGemmStridedBatchedEx(Handle *handle, int of_a, int of_b, int m, int n, int k, const void *alpha, uint64_t a,
                               int a_type, int lda, long long a_stride, uint64_t b, int b_type, int ldb, long long b_stride,
                               const void *beta, uint64_t c, int c_type, int ldc, long long c_stride, int batch, int compute,
                               int algorithm) {
    if (algorithm != -1) return INVALID_VALUE;
    Matrix on_a = {a, of_a == OP_N ? m : k, of_a == OP_N ? k : m, lda, a_type, a_stride, NULL};
    Matrix on_b = {b, of_b == OP_N ? k : n, of_b == OP_N ? n : k, ldb, b_type, b_stride, NULL};
    Matrix on_c = {c, m, n, ldc, c_type, c_stride, NULL};
    if (atomic_flag_test_and_set(&handle->busy)) return NOT_INITIALIZED;
    int status = multiply(handle, of_a, of_b, m, n, k, alpha, on_a, on_b, beta, on_c, batch, compute);
    /* What the next call does not set again is not there. */
    handle->stream = NULL;
    handle->workspace = 0;
    atomic_flag_clear(&handle->busy);
    return status;
}

int cublasGemmEx(Handle *handle, int of_a, int of_b, int m, int n, int k, const void *alpha, uint64_t a, int a_type, int lda,
                 uint64_t b, int b_type, int ldb, const void *beta, uint64_t c, int c_type, int ldc, int compute,
                 int algorithm) {
    return cublasGemmStridedBatchedEx(handle, of_a, of_b, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c,
                                      c_type, ldc, 0, 1, compute, algorithm);
}
