/*
 * fake_cublaslt.c: a cuBLASLt that multiplies on the host (products.h): products with an epilogue, as fake_cublas.c has those
 * without. It stands in for libcublasLt.so.12, which must be in cuBLAS's folder.
 *
 * Every attribute is held against its size and the values that the program has a use for, every descriptor against its kind
 * and whether it still lives; an algorithm fits the very product that it was chosen for, alignments of all addresses
 * included. A failed check returns a status: 7, or 15 for a product without an algorithm, an accumulation type other than
 * the declared one, and algorithms that may round partial sums.
 *
 * A test asks for counts, and for calls that fail, by the functions at the end.
 */
#include <pthread.h>

#include "products.h"

/* ---- counts and failures ---- */

enum { MAX_FUNCTIONS = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    const char *name;
    long calls;
} functions[MAX_FUNCTIONS];
static long alive;
static struct {
    char name[64];
    long left;
    int status;
} failure;

/* Counts a call; the status that it is to fail with. */
static int enter(const char *name) {
    int status = SUCCESS;
    pthread_mutex_lock(&lock);
    int which = 0;
    while (functions[which].name && strcmp(functions[which].name, name)) which++;
    functions[which].name = name;
    functions[which].calls++;
    if (!strcmp(failure.name, name) && --failure.left == 0) {
        status = failure.status;
        failure.name[0] = 0;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

#define ENTER()                        \
    do {                               \
        int failed = enter(__func__);  \
        if (failed) return failed;     \
    } while (0)

static void count(long change) {
    pthread_mutex_lock(&lock);
    alive += change;
    pthread_mutex_unlock(&lock);
}

/* ---- descriptors ---- */

typedef struct {
    void *context;
} Handle;

/* The first word of each descriptor is its type; 0 once destroyed. Its memory is not freed, so that a use after the
 * destruction is detected. */
enum { GONE = 0, DESCRIPTION = 0x4c74, LAYOUT, PREFERENCE };

typedef struct {
    int kind, compute, scale, of_a, of_b;
    uint32_t epilogue;
    uint64_t bias, aux;
    int64_t aux_leading, aux_stride;
} Description;

typedef struct {
    int kind, type;
    uint64_t rows, columns;
    int64_t leading;
    int32_t batch;
    int64_t stride;
} Layout;

typedef struct {
    int kind;
    uint64_t workspace;
    uint32_t reductions, alignment[4];
} Preference;

static void *make(int kind, size_t bytes) {
    int *made = calloc(1, bytes);
    *made = kind;
    count(1);
    return made;
}

static int destroy(int *descriptor, int kind) {
    if (!descriptor || *descriptor != kind) return INVALID_VALUE;
    *descriptor = GONE;
    count(-1);
    return SUCCESS;
}

static int set(void *place, size_t size, const void *value, size_t bytes) {
    if (bytes != size) return INVALID_VALUE;
    memcpy(place, value, bytes);
    return SUCCESS;
}

#define SET(field) set(&(field), sizeof(field), value, bytes)

int cublasLtMatmulDescCreate(Description **description, int compute, int scale) {
    ENTER();
    *description = make(DESCRIPTION, sizeof(Description));
    (*description)->compute = compute;
    (*description)->scale = scale;
    (*description)->epilogue = 1;
    return SUCCESS;
}

int cublasLtMatmulDescDestroy(Description *description) {
    ENTER();
    return destroy(&description->kind, DESCRIPTION);
}

int cublasLtMatmulDescSetAttribute(Description *description, int attribute, const void *value, size_t bytes) {
    ENTER();
    if (description->kind != DESCRIPTION) return INVALID_VALUE;
    switch (attribute) {
    case 3: return SET(description->of_a);
    case 4: return SET(description->of_b);
    case 7: return SET(description->epilogue);
    case 8: return SET(description->bias);
    case 11: return SET(description->aux);
    case 12: return SET(description->aux_leading);
    case 13: return SET(description->aux_stride);
    default: return INVALID_VALUE;
    }
}

int cublasLtMatrixLayoutCreate(Layout **layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
    ENTER();
    *layout = make(LAYOUT, sizeof(Layout));
    **layout = (Layout){LAYOUT, type, rows, columns, leading, 1, 0};
    return SUCCESS;
}

int cublasLtMatrixLayoutDestroy(Layout *layout) {
    ENTER();
    return destroy(&layout->kind, LAYOUT);
}

int cublasLtMatrixLayoutSetAttribute(Layout *layout, int attribute, const void *value, size_t bytes) {
    ENTER();
    if (layout->kind != LAYOUT) return INVALID_VALUE;
    switch (attribute) {
    case 5: return SET(layout->batch);
    case 6: return SET(layout->stride);
    default: return INVALID_VALUE;
    }
}

int cublasLtMatmulPreferenceCreate(Preference **preference) {
    ENTER();
    *preference = make(PREFERENCE, sizeof(Preference));
    **preference = (Preference){PREFERENCE, 0, 7, {256, 256, 256, 256}};
    return SUCCESS;
}

int cublasLtMatmulPreferenceDestroy(Preference *preference) {
    ENTER();
    return destroy(&preference->kind, PREFERENCE);
}

int cublasLtMatmulPreferenceSetAttribute(Preference *preference, int attribute, const void *value, size_t bytes) {
    ENTER();
    if (preference->kind != PREFERENCE) return INVALID_VALUE;
    switch (attribute) {
    case 1: return SET(preference->workspace);
    case 3: return SET(preference->reductions);
    case 5:
    case 6:
    case 7:
    case 8: return SET(preference->alignment[attribute - 5]);
    default: return INVALID_VALUE;
    }
}

/* ---- products ---- */

enum { EPILOGUE_RELU = 2, EPILOGUE_BIAS = 4, EPILOGUE_GELU = 32, EPILOGUE_AUX = 128 };
enum { REDUCED_IN_COMPUTE_TYPE = 2, WORKSPACE = 1 << 20 };

/* The product that an algorithm was chosen for. */
typedef struct {
    uint64_t problem;
    uint32_t alignment[6];
    uint64_t workspace, made;
    uint64_t rest[2];
} Algorithm;

_Static_assert(sizeof(Algorithm) == 64, "the size of cublasLtMatmulAlgo_t");

typedef struct {
    Algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} Heuristic;

_Static_assert(sizeof(Heuristic) == 96, "the size of cublasLtMatmulHeuristicResult_t");

static uint64_t mixed(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x9e3779b97f4a7c15 + (hash >> 29); }

static uint64_t layout_hash(uint64_t hash, const Layout *layout) {
    uint64_t parts[] = {layout->type, layout->rows, layout->columns, layout->leading, layout->batch, layout->stride};
    for (int which = 0; which < 6; which++) hash = mixed(hash, parts[which]);
    return hash;
}

/* All of a problem but its addresses. */
static uint64_t problem(const Description *of, const Layout *const layouts[4]) {
    uint64_t hash = 17, parts[] = {of->compute,      of->scale,       of->of_a,         of->of_b,
                                   of->epilogue,     of->bias != 0,   of->aux != 0,    of->aux_leading,
                                   of->aux_stride};
    for (int which = 0; which < 9; which++) hash = mixed(hash, parts[which]);
    for (int which = 0; which < 4; which++) hash = layout_hash(hash, layouts[which]);
    return hash;
}

static uint32_t alignment_of(uint64_t address) { return address ? 1u << (__builtin_ctzll(address | 256)) : 256; }

static int is(const Layout *layout, uint64_t rows, uint64_t columns, int type, int batch) {
    return layout->rows == rows && layout->columns == columns && layout->type == type && layout->batch == batch &&
           layout->leading >= (int64_t)rows;
}

/* Returns whether descriptors match, and cuBLASLt has an algorithm for them. */
static int check(const Description *of, const Layout *const layouts[4]) {
    const Layout *a = layouts[0], *b = layouts[1], *c = layouts[2], *d = layouts[3];
    if (!of || of->kind != DESCRIPTION) return INVALID_VALUE;
    for (int which = 0; which < 4; which++)
        if (!layouts[which] || layouts[which]->kind != LAYOUT || layouts[which]->batch < 1) return INVALID_VALUE;
    if (of->of_a > OP_T || of->of_b > OP_T) return NOT_SUPPORTED;
    uint64_t m = d->rows, n = d->columns, k = of->of_a == OP_N ? a->columns : a->rows;
    if (!m || !n || !k) return INVALID_VALUE;
    if (!is(a, of->of_a == OP_N ? m : k, of->of_a == OP_N ? k : m, a->type, d->batch)) return INVALID_VALUE;
    if (!is(b, of->of_b == OP_N ? k : n, of->of_b == OP_N ? n : k, a->type, d->batch)) return INVALID_VALUE;
    if (!is(c, m, n, d->type, d->batch) || !is(d, m, n, d->type, d->batch)) return INVALID_VALUE;
    if (!fits(a->type, d->type, of->compute) || of->scale != scale_of(a->type)) return NOT_SUPPORTED;
    /* Complex numbers have no epilogue. */
    if (a->type == C_32F || a->type == C_64F) return NOT_SUPPORTED;

    switch (of->epilogue) {
    case 1:
    case EPILOGUE_BIAS:
    case EPILOGUE_RELU:
    case EPILOGUE_RELU | EPILOGUE_BIAS:
    case EPILOGUE_GELU:
    case EPILOGUE_GELU | EPILOGUE_BIAS:
    case EPILOGUE_GELU | EPILOGUE_AUX:
    case EPILOGUE_GELU | EPILOGUE_AUX | EPILOGUE_BIAS: break;
    default: return NOT_SUPPORTED;
    }
    if (!(of->epilogue & EPILOGUE_BIAS) != !of->bias || of->bias % 16) return INVALID_VALUE;
    if (!(of->epilogue & EPILOGUE_AUX) != !of->aux || of->aux % 16) return INVALID_VALUE;
    if (of->aux && (of->aux_leading < (int64_t)m || of->aux_leading % 8)) return INVALID_VALUE;
    if (of->aux_stride % 8 || (of->aux && d->batch > 1 && !of->aux_stride)) return INVALID_VALUE;
    return SUCCESS;
}

int cublasLtMatmulAlgoGetHeuristic(Handle *handle, const Description *of, const Layout *a, const Layout *b, const Layout *c,
                                   const Layout *d, const Preference *preference, int capacity, Heuristic *found, int *many) {
    ENTER();
    const Layout *const layouts[4] = {a, b, c, d};
    *many = 0;
    if (!handle || current_context() != handle->context) return NOT_INITIALIZED;
    if (!preference || preference->kind != PREFERENCE || capacity < 1) return INVALID_VALUE;
    int status = check(of, layouts);
    if (status) return status;
    if (preference->reductions & ~REDUCED_IN_COMPUTE_TYPE) return NOT_SUPPORTED;
    if (preference->workspace < WORKSPACE) return NOT_SUPPORTED;
    memset(found, 0, sizeof *found);
    found->algorithm.problem = problem(of, layouts);
    memcpy(found->algorithm.alignment, preference->alignment, sizeof preference->alignment);
    found->algorithm.alignment[4] = alignment_of(of->bias);
    found->algorithm.alignment[5] = alignment_of(of->aux);
    found->algorithm.workspace = found->workspace = WORKSPACE;
    found->algorithm.made = LAYOUT;
    found->state = SUCCESS;
    *many = 1;
    return SUCCESS;
}

int cublasLtMatmul(Handle *handle, const Description *of, const void *alpha, uint64_t a, const Layout *of_a, uint64_t b,
                   const Layout *of_b, const void *beta, uint64_t c, const Layout *of_c, uint64_t d, const Layout *of_d,
                   const Algorithm *algorithm, uint64_t workspace, size_t bytes, void *stream) {
    ENTER();
    const Layout *const layouts[4] = {of_a, of_b, of_c, of_d};
    if (!handle || !stream || current_context() != handle->context) return NOT_INITIALIZED;
    int status = check(of, layouts);
    if (status) return status;
    if (!algorithm || algorithm->made != LAYOUT || algorithm->problem != problem(of, layouts)) return INVALID_VALUE;
    if (!workspace || workspace % 16 || bytes < algorithm->workspace) return INVALID_VALUE;
    uint64_t addresses[6] = {a, b, c, d, of->bias, of->aux};
    for (int which = 0; which < 6; which++)
        if (addresses[which] % algorithm->alignment[which] || (which < 4 && !addresses[which])) return INVALID_VALUE;

    int scale = of->scale, batch = of_d->batch, m = (int)of_d->rows, n = (int)of_d->columns;
#define MATRIX(address, layout) \
    {address, (int)(layout)->rows, (int)(layout)->columns, (layout)->leading, (layout)->type, (layout)->stride, NULL}
    Product product = {
        .m = m, .n = n, .k = (int)(of->of_a == OP_N ? of_a->columns : of_a->rows), .batch = batch,
        .of_a = of->of_a, .of_b = of->of_b, .alpha = load(alpha, scale), .beta = load(beta, scale),
        .a = MATRIX(a, of_a), .b = MATRIX(b, of_b), .c = MATRIX(c, of_c), .d = MATRIX(d, of_d),
        .bias = {of->bias, m, 1, m, of_d->type, 0, NULL},
        .function = of->epilogue & EPILOGUE_RELU ? RELU : of->epilogue & EPILOGUE_GELU ? GELU : PLAIN,
        .aux = {of->aux, m, n, of->aux_leading, of_d->type, of->aux_stride, NULL},
        .workspace = workspace, .context = handle->context, .stream = stream,
    };
    return multiply(&product);
}

/* ---- the other functions that a program calls ---- */

size_t cublasLtGetVersion(void) { return 120901; }

int cublasLtCreate(Handle **handle) {
    ENTER();
    if (!current_context()) return NOT_INITIALIZED;
    *handle = calloc(1, sizeof(Handle));
    (*handle)->context = current_context();
    fprintf(stderr, "fake cuBLASLt: a handle\n");
    return SUCCESS;
}

/* ---- what a test asks ---- */

/* Descriptors that were made and not given back. */
long fake_cublaslt_alive(void) { return alive; }

/* Calls of a function so far. */
long fake_cublaslt_calls(const char *name) {
    long calls = 0;
    pthread_mutex_lock(&lock);
    for (int which = 0; which < MAX_FUNCTIONS && functions[which].name; which++)
        if (!strcmp(functions[which].name, name)) calls = functions[which].calls;
    pthread_mutex_unlock(&lock);
    return calls;
}

/* The function's call of this number from now, which is at least 1, fails with this status. */
void fake_cublaslt_fail(const char *name, long number, int status) {
    pthread_mutex_lock(&lock);
    snprintf(failure.name, sizeof failure.name, "%s", name);
    failure.left = number;
    failure.status = status;
    pthread_mutex_unlock(&lock);
}
