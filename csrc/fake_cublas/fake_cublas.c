/*
 * fake_cublas.c: a cuBLAS that multiplies on the host (products.h), to go with the fake driver (../fake_driver/fake.h).
 *
 * It stands in for libcublas.so.12 and checks that a program's calls are correct.
 *
 * A call that cuBLAS would refuse, or that a program sharing the handle must not make, returns a status: sizes and leading
 * dimensions that do not fit (7), combinations of types that are not computed in the type that the program declares, and
 * a handle that may round partial sums to a narrower one (15), a handle without stream or workspace, in another context than
 * its own, or used by two threads at once (1).
 */
#include <stdatomic.h>

#include "products.h"

enum { DISALLOW_REDUCED_PRECISION_REDUCTION = 16 };

typedef struct {
    void *context, *stream;
    uint64_t workspace;
    size_t workspace_bytes;
    int mode;
    atomic_flag busy;
} Handle;

static int run(Handle *handle, Product *product, const void *alpha, const void *beta, int compute) {
    Matrix a = product->a, b = product->b, c = product->c;
    if (!handle->stream || !handle->workspace || handle->workspace % 256 || handle->workspace_bytes < 4 << 20)
        return NOT_INITIALIZED;
    if (current_context() != handle->context) return NOT_INITIALIZED;
    if (product->m < 1 || product->n < 1 || product->k < 1 || product->batch < 1) return INVALID_VALUE;
    if (product->of_a > OP_C || product->of_b > OP_C) return INVALID_VALUE;
    if (a.leading < a.rows || b.leading < b.rows || c.leading < c.rows) return INVALID_VALUE;
    if (!fits(a.type, c.type, compute) || a.type != b.type) return NOT_SUPPORTED;
    if (handle->mode != DISALLOW_REDUCED_PRECISION_REDUCTION) return NOT_SUPPORTED;
    product->alpha = load(alpha, scale_of(c.type)), product->beta = load(beta, scale_of(c.type));
    product->d = c;
    product->workspace = handle->workspace, product->context = handle->context, product->stream = handle->stream;
    return multiply(product);
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

int cublasSetMathMode(Handle *handle, int mode) {
    handle->mode = mode;
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
    Product product = {
        .m = m, .n = n, .k = k, .batch = batch, .of_a = of_a, .of_b = of_b,
        .a = {a, of_a == OP_N ? m : k, of_a == OP_N ? k : m, lda, a_type, a_stride, NULL},
        .b = {b, of_b == OP_N ? k : n, of_b == OP_N ? n : k, ldb, b_type, b_stride, NULL},
        .c = {c, m, n, ldc, c_type, c_stride, NULL},
    };
    if (atomic_flag_test_and_set(&handle->busy)) return NOT_INITIALIZED;
    int status = run(handle, &product, alpha, beta, compute);
    /* The next call must set these again. */
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
