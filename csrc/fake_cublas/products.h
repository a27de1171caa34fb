/*
 * products.h: what the fakes of cuBLAS and cuBLASLt share: numbers of every type, the fake driver's memory, and products of
 * column-major matrices with what is done before they are rounded.
 *
 * Matrices are copied out of the fake device, multiplied by the definition, and copied back, all in the order of the stream.
 * Sums are in double, so products of small whole numbers are exact and a result is rounded once.
 *
 * Environment: FAKE_CUBLAS=launch launches a kernel of the fake driver that reads and writes what the product would, instead
 * of multiplying. That is what waits and captures are tested with, since the host then waits for nothing.
 *
 * The driver is the one that SELVEDGE_LIBCUDA names, which the program has loaded.
 */
#pragma once
#include <complex.h>
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, C_64F = 5, R_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_32F_PEDANTIC = 69, COMPUTE_64F = 70 };
enum { OP_N = 0, OP_T = 1, OP_C = 2 };

/* ---- the driver ---- */

static inline void *driver(const char *name) {
    static void *library;
    if (!library) library = dlopen(getenv("SELVEDGE_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD);
    return library ? dlsym(library, name) : NULL;
}

#define DRIVER(name, ...) (((int (*)(__VA_ARGS__))driver(name)))

static inline void *current_context(void) {
    void *context = NULL;
    DRIVER("cuCtxGetCurrent", void **)(&context);
    return context;
}

/* ---- numbers ---- */

static inline size_t size_of(int type) {
    switch (type) {
    case R_16F:
    case R_16BF: return 2;
    case R_32F: return 4;
    case R_64F:
    case C_32F: return 8;
    default: return 16;
    }
}

static inline double from_half(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                   : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                  : ldexp(fraction, -24);
    return bits >> 15 ? -value : value;
}

static inline uint16_t to_half(double value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    value = fabs(value);
    if (isnan(value)) return 0x7e00;
    if (value == 0) return sign;
    int exponent = fmax(ilogb(value), -14);
    double rounded = nearbyint(ldexp(value, 10 - exponent));
    if (ldexp(rounded, exponent - 10) > 65504) return sign | 0x7c00;
    /* A mantissa rounded up to 2048 carries into the exponent. */
    return sign | (uint16_t)(((exponent + 14) << 10) + (int)rounded);
}

static inline uint16_t to_bfloat(double value) {
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, 4);
    if (isnan(value)) return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline double complex load(const void *place, int type) {
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

static inline void store(void *place, int type, double complex value) {
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
    uint64_t address; /* 0 where there is none. */
    int rows, columns;
    int64_t leading;
    int type;
    int64_t stride;
    uint8_t *copy;
} Matrix;

enum { PLAIN, RELU, GELU };

/* D = function(alpha op(A) op(B) + beta C + bias), of m x n and depth k. */
typedef struct {
    int m, n, k, batch, of_a, of_b;
    double complex alpha, beta;
    Matrix a, b, c, d;
    Matrix bias; /* One column, for all columns and matrices. */
    int function;
    Matrix aux; /* the aux buffer: the pre-activation values */
    uint64_t workspace;
    void *context, *stream;
} Product;

static inline size_t span(const Matrix *matrix, int batch) {
    if (!matrix->rows || !matrix->columns) return 0;
    int64_t last = (matrix->columns - 1) * matrix->leading + matrix->rows;
    return (size_t)((batch - 1) * matrix->stride + last) * size_of(matrix->type);
}

static inline int copy_out(Matrix *matrix, int batch, void *stream) {
    if (!matrix->address) return 0;
    size_t bytes = span(matrix, batch);
    matrix->copy = malloc(bytes + 1);
    if (!bytes) return 0;
    return DRIVER("cuMemcpyDtoHAsync_v2", void *, uint64_t, size_t, void *)(matrix->copy, matrix->address, bytes, stream) ||
           DRIVER("cuStreamSynchronize", void *)(stream);
}

static inline int copy_back(const Matrix *matrix, int batch, void *stream) {
    if (!matrix->address) return 0;
    return DRIVER("cuMemcpyHtoDAsync_v2", uint64_t, const void *, size_t, void *)(matrix->address, matrix->copy,
                                                                                  span(matrix, batch), stream) ||
           DRIVER("cuStreamSynchronize", void *)(stream);
}

static inline void *element(const Matrix *matrix, int index, int row, int column) {
    int64_t place = index * matrix->stride + column * matrix->leading + row;
    return matrix->copy + place * (int64_t)size_of(matrix->type);
}

static inline double complex operand(const Matrix *matrix, int operation, int index, int row, int column) {
    void *place = operation == OP_N ? element(matrix, index, row, column) : element(matrix, index, column, row);
    double complex value = load(place, matrix->type);
    return operation == OP_C ? conj(value) : value;
}

/* A kernel that reads and writes as much of each matrix as D has: of square ones each is as long as that. */
static inline int launch(const Product *product) {
    struct {
        const char *name;
        uint64_t address;
    } memory[] = {
        {"read_a", product->a.address},       {"read_b", product->b.address},       {"update_d", product->d.address},
        {"write_space", product->workspace},  {"read_bias", product->bias.address}, {"write_aux", product->aux.address},
        {"read_c", product->c.address == product->d.address ? 0 : product->c.address},
    };
    uint64_t bytes = span(&product->d, product->batch);
    char ptx[1024] = ".version 8.0\n.target sm_60\n.address_size 64\n.visible .entry fake_gemm(\n";
    void *arguments[8];
    int count = 0;
    for (size_t which = 0; which < sizeof memory / sizeof *memory; which++) {
        if (!memory[which].address) continue;
        sprintf(ptx + strlen(ptx), ".param .u64 fake_gemm_%s,\n", memory[which].name);
        arguments[count++] = &memory[which].address;
    }
    arguments[count] = &bytes;
    strcat(ptx, ".param .u64 fake_gemm_bytes_of_each\n)\n{\nret;\n}\n");
    static _Thread_local struct {
        void *context, *function;
        char ptx[1024];
    } known[16];
    static _Thread_local int used;
    void *function = NULL, *module;
    for (int which = 0; which < used; which++)
        if (known[which].context == product->context && !strcmp(known[which].ptx, ptx)) function = known[which].function;
    if (!function) {
        if (DRIVER("cuModuleLoadDataEx", void **, const void *, unsigned, void *, void *)(&module, ptx, 0, NULL, NULL) ||
            DRIVER("cuModuleGetFunction", void **, void *, const char *)(&function, module, "fake_gemm"))
            return 1;
        used = used < 16 ? used : 0;
        known[used].context = product->context, known[used].function = function;
        strcpy(known[used++].ptx, ptx);
    }
    return DRIVER("cuLaunchKernel", void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                  void **, void **)(function, 1, 1, 1, 1, 1, 1, 0, product->stream, arguments, NULL);
}

static inline double complex apply(int function, double complex value) {
    double x = creal(value);
    switch (function) {
    /* As the library was seen to do it: what is no number becomes 0. */
    case RELU: return x > 0 ? x : 0;
    case GELU: return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    default: return value;
    }
}

static inline int multiply(Product *product) {
    const char *mode = getenv("FAKE_CUBLAS");
    if (mode && !strcmp(mode, "launch")) return launch(product) ? EXECUTION_FAILED : SUCCESS;

    int batch = product->batch;
    void *stream = product->stream;
    Matrix *all[] = {&product->a, &product->b, &product->c, &product->d, &product->bias, &product->aux};
    for (int which = 0; which < 6; which++)
        if (copy_out(all[which], batch, stream)) return EXECUTION_FAILED;
    for (int index = 0; index < batch; index++)
        for (int j = 0; j < product->n; j++)
            for (int i = 0; i < product->m; i++) {
                double complex sum = 0;
                for (int p = 0; p < product->k; p++) {
                    double complex x = operand(&product->a, product->of_a, index, i, p);
                    double complex y = operand(&product->b, product->of_b, index, p, j);
                    /* By parts: what is infinite or no number in a real one must not spread. */
                    sum += CMPLX(creal(x) * creal(y) - cimag(x) * cimag(y), creal(x) * cimag(y) + cimag(x) * creal(y));
                }
                double complex result = product->alpha * sum;
                if (product->beta != 0)
                    result += product->beta * load(element(&product->c, index, i, j), product->c.type);
                if (product->bias.address) result += load(element(&product->bias, 0, i, 0), product->bias.type);
                if (product->aux.address) store(element(&product->aux, index, i, j), product->aux.type, result);
                store(element(&product->d, index, i, j), product->d.type, apply(product->function, result));
            }
    int failed = copy_back(&product->d, batch, stream) || copy_back(&product->aux, batch, stream);
    for (int which = 0; which < 6; which++) free(all[which]->copy);
    return failed ? EXECUTION_FAILED : SUCCESS;
}

/* Returns whether a program that declares these types adds in them, and rounds once. */
static inline int fits(int from, int to, int compute) {
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

/* The type of alpha and beta. */
static inline int scale_of(int type) { return type == R_16F || type == R_16BF ? R_32F : type; }
