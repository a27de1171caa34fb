/*
 * modules.c: modules, functions, variables, and the linker.
 */
#include "state.h"

/* ---- the assembler's options ---- */

typedef struct logs {
    char *info, *error;
    size_t info_size, error_size;
    void **info_slot, **error_slot; /* where the sizes came from; what was written goes back there */
} logs;

static bool read_options(unsigned count, const int *options, void **values, logs *out) {
    *out = (logs){0};
    if (count && (!options || !values)) return false;
    for (unsigned i = 0; i < count; i++) {
        switch (options[i]) {
        case JIT_INFO_LOG: out->info = values[i]; break;
        case JIT_ERROR_LOG: out->error = values[i]; break;
        case JIT_INFO_LOG_SIZE:
            out->info_size = (uint32_t)(uintptr_t)values[i];
            out->info_slot = &values[i];
            break;
        case JIT_ERROR_LOG_SIZE:
            out->error_size = (uint32_t)(uintptr_t)values[i];
            out->error_slot = &values[i];
            break;
        default:
            if (options[i] < 0 || options[i] > JIT_OPTION_LAST) return false;
        }
    }
    return true;
}

static void write_log(char *buffer, size_t capacity, void **slot, const char *text) {
    size_t length = strlen(text);
    text_out(text, length, buffer, buffer ? capacity : 0);
    if (slot) *slot = (void *)(uintptr_t)(buffer && capacity ? (length < capacity ? length : capacity - 1) : 0);
}

static void write_logs(const logs *l, const image *i, int result) {
    char info[128] = "";
    if (result == SUCCESS) snprintf(info, sizeof info, "ptxas info    : %zu functions\n", i->functions);
    write_log(l->info, l->info_size, l->info_slot, info);
    write_log(l->error, l->error_size, l->error_slot, result == SUCCESS ? "" : i->error);
}

/* ---- modules ---- */

static module *module_of(CUmodule handle, const call *c, int *result) {
    module *m = handle_get(KIND_MODULE, handle);
    *result = INVALID_HANDLE;
    if (!m) {
        violation(c, "unknown or unloaded module %#llx", (unsigned long long)handle);
        return NULL;
    }
    *result = m->ctx->lost;
    return m->ctx->lost ? NULL : m;
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *out, const void *data, unsigned count, int *options, void **values) {
    call c;
    logs l;
    if (!call_begin(&c, F_cuModuleLoadDataEx, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!out || !data || !read_options(count, options, values, &l)) return call_end(&c, INVALID_VALUE);
    refuse_foreign(&c);
    module *m = zeroed(sizeof *m);
    int result = image_read(data, &m->image);
    write_logs(&l, &m->image, result);
    if (result != SUCCESS) {
        image_drop(&m->image);
        free(m);
        return call_end(&c, result);
    }
    m->ctx = c.ctx;
    m->made = c.where;
    m->handle = handle_new(KIND_MODULE, m);
    for (size_t i = 0; i < m->image.functions; i++) {
        m->image.function[i].module = m;
        m->image.function[i].handle = handle_new(KIND_FUNCTION, &m->image.function[i]);
    }
    for (size_t i = 0; i < m->image.variables; i++)
        m->image.variable[i].block = block_new(BLOCK_GLOBAL, c.ctx, m->image.variable[i].size, NULL, &c);
    G.counts[c.ctx->device].modules++;
    *out = m->handle;
    return call_end(&c, SUCCESS);
}

static void module_bury(module *m, const call *c) {
    for (size_t i = 0; i < m->image.functions; i++) handle_drop(KIND_FUNCTION, m->image.function[i].handle);
    for (size_t i = 0; i < m->image.variables; i++)
        if (m->image.variable[i].block) block_free(m->image.variable[i].block, c, NULL);
    G.counts[m->ctx->device].modules--;
    handle_drop(KIND_MODULE, m->handle);
    history_drop(&m->history);
    image_drop(&m->image);
    free(m);
}

EXPORT CUresult cuModuleUnload(CUmodule handle) {
    call c;
    if (!call_begin(&c, F_cuModuleUnload, CALL_CONTEXT | CALL_RELEASE | CALL_UNSAFE)) return call_end(&c, c.result);
    module *m = handle_get(KIND_MODULE, handle);
    if (!m) {
        violation(&c, "unknown or unloaded module %#llx", (unsigned long long)handle);
        return call_end(&c, INVALID_HANDLE);
    }
    if (m->ctx != c.ctx) {
        violation(&c, "the current context is not that of the module");
        return call_end(&c, INVALID_CONTEXT);
    }
    actor who = host_actor(F_CONTROL, &c);
    if (!m->ctx->lost) history_free(&m->history, 0, 1, &who, NULL);
    module_bury(m, &c);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuModuleGetFunction, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!out || !name) return call_end(&c, INVALID_VALUE);
    module *m = module_of(handle, &c, &result);
    if (!m) return call_end(&c, result);
    for (size_t i = 0; i < m->image.functions; i++)
        if (!strcmp(interned(m->image.function[i].name), name)) {
            *out = m->image.function[i].handle;
            return call_end(&c, SUCCESS);
        }
    return call_end(&c, NOT_FOUND);
}

EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *out, size_t *bytes, CUmodule handle, const char *name) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuModuleGetGlobal_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!name) return call_end(&c, INVALID_VALUE);
    module *m = module_of(handle, &c, &result);
    if (!m) return call_end(&c, result);
    for (size_t i = 0; i < m->image.variables; i++) {
        const variable *v = &m->image.variable[i];
        if (strcmp(v->name, name)) continue;
        if (out) *out = v->block->address;
        if (bytes) *bytes = v->size;
        return call_end(&c, SUCCESS);
    }
    return call_end(&c, NOT_FOUND);
}

EXPORT CUresult cuModuleGetFunctionCount(unsigned *out, CUmodule handle) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuModuleGetFunctionCount, CALL_CONTEXT)) return call_end(&c, c.result);
    module *m = module_of(handle, &c, &result);
    if (!m) return call_end(&c, result);
    if (!out) return call_end(&c, INVALID_VALUE);
    *out = (unsigned)m->image.functions;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuModuleEnumerateFunctions(CUfunction *out, unsigned count, CUmodule handle) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuModuleEnumerateFunctions, CALL_CONTEXT)) return call_end(&c, c.result);
    module *m = module_of(handle, &c, &result);
    if (!m) return call_end(&c, result);
    if (!out || !count) return call_end(&c, INVALID_VALUE);
    for (unsigned i = 0; i < count && i < m->image.functions; i++) out[i] = m->image.function[i].handle;
    return call_end(&c, SUCCESS);
}

/* ---- functions ---- */

static function *function_of(CUfunction handle, const call *c, int *result) {
    function *f = handle_get(KIND_FUNCTION, handle);
    *result = INVALID_HANDLE;
    if (!f) {
        violation(c, "unknown function %#llx, or one of an unloaded module", (unsigned long long)handle);
        return NULL;
    }
    *result = f->module->ctx->lost;
    return f->module->ctx->lost ? NULL : f;
}

EXPORT CUresult cuFuncGetName(const char **out, CUfunction handle) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuFuncGetName, CALL_CONTEXT)) return call_end(&c, c.result);
    function *f = function_of(handle, &c, &result);
    if (!f) return call_end(&c, result);
    if (!out) return call_end(&c, INVALID_VALUE);
    *out = interned(f->name);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuFuncGetParamInfo, CALL_CONTEXT)) return call_end(&c, c.result);
    function *f = function_of(handle, &c, &result);
    if (!f) return call_end(&c, result);
    if (!offset || index >= f->parameters) return call_end(&c, INVALID_VALUE);
    *offset = f->parameter[index].offset;
    if (size) *size = f->parameter[index].size;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuFuncGetAttribute(int *out, int attribute, CUfunction handle) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuFuncGetAttribute, CALL_CONTEXT)) return call_end(&c, c.result);
    function *f = function_of(handle, &c, &result);
    if (!f) return call_end(&c, result);
    if (!out || attribute < 0 || attribute >= FUNCTION_ATTRIBUTE_END) return call_end(&c, INVALID_VALUE);
    switch (attribute) {
    case FUNCTION_MAX_THREADS: *out = 1024; break;
    case FUNCTION_SHARED_BYTES: *out = (int)f->static_shared; break;
    case FUNCTION_REGISTERS: *out = 32; break;
    case FUNCTION_PTX_VERSION: *out = f->module->image.target; break;
    case FUNCTION_BINARY_VERSION: *out = G.capability; break;
    case FUNCTION_MAX_DYNAMIC_SHARED: *out = f->max_dynamic_shared - (int)f->static_shared; break;
    case FUNCTION_CARVEOUT: *out = f->carveout; break;
    case FUNCTION_NON_PORTABLE_CLUSTER: *out = f->non_portable_cluster; break;
    default: *out = 0;
    }
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuFuncSetAttribute(CUfunction handle, int attribute, int value) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuFuncSetAttribute, CALL_CONTEXT)) return call_end(&c, c.result);
    function *f = function_of(handle, &c, &result);
    if (!f) return call_end(&c, result);
    switch (attribute) {
    case FUNCTION_MAX_DYNAMIC_SHARED:
        if (value < 0 || value + (int64_t)f->static_shared > 227 << 10) return call_end(&c, INVALID_VALUE);
        f->max_dynamic_shared = value + (int)f->static_shared;
        break;
    case FUNCTION_CARVEOUT:
        if (value < -1 || value > 100) return call_end(&c, INVALID_VALUE);
        f->carveout = value;
        break;
    case FUNCTION_NON_PORTABLE_CLUSTER: f->non_portable_cluster = value != 0; break;
    default: return call_end(&c, INVALID_VALUE);
    }
    return call_end(&c, SUCCESS);
}

/* ---- the linker ---- */

/* Linked images keep their bytes until the final check: using one after its state is gone finds FAKE_FREED. */
static unsigned char **cubins;
static size_t cubin_count, cubin_capacity;

static link_state *link_of(CUlinkState handle, const call *c) {
    link_state *l = handle_get(KIND_LINK, handle);
    if (!l) violation(c, "unknown or destroyed link state %#llx", (unsigned long long)handle);
    return l;
}

EXPORT CUresult cuLinkCreate_v2(unsigned count, int *options, void **values, CUlinkState *out) {
    call c;
    logs l;
    if (!call_begin(&c, F_cuLinkCreate_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!out || !read_options(count, options, values, &l)) return call_end(&c, INVALID_VALUE);
    refuse_foreign(&c);
    link_state *s = zeroed(sizeof *s);
    s->ctx = c.ctx;
    s->made = c.where;
    *out = s->handle = handle_new(KIND_LINK, s);
    G.counts[c.ctx->device].links++;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuLinkAddData_v2(CUlinkState handle, int kind, void *data, size_t size, const char *name,
                                 unsigned count, int *options, void **values) {
    call c;
    logs l;
    (void)name;
    if (!call_begin(&c, F_cuLinkAddData_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    link_state *s = link_of(handle, &c);
    if (!s) return call_end(&c, INVALID_HANDLE);
    if (!data || !size || s->cubin || kind < INPUT_CUBIN || kind > INPUT_LIBRARY ||
        !read_options(count, options, values, &l))
        return call_end(&c, INVALID_VALUE);
    char *copy = zeroed(size + 8); /* the size bounds the text, not a zero */
    memcpy(copy, data, size);
    image i;
    int result = image_read(copy, &i);
    write_logs(&l, &i, result);
    if (result == SUCCESS && i.ptx) {
        size_t length = strlen(i.ptx);
        char *joined = zeroed(s->length + length + 2);
        if (s->length) memcpy(joined, s->ptx, s->length);
        memcpy(joined + s->length, i.ptx, length);
        joined[s->length + length] = '\n';
        s->length += length + 1;
        free(s->ptx);
        s->ptx = joined;
    }
    image_drop(&i);
    free(copy);
    return call_end(&c, result);
}

EXPORT CUresult cuLinkComplete(CUlinkState handle, void **out, size_t *size) {
    call c;
    if (!call_begin(&c, F_cuLinkComplete, CALL_CONTEXT)) return call_end(&c, c.result);
    link_state *s = link_of(handle, &c);
    if (!s) return call_end(&c, INVALID_HANDLE);
    if (!out || s->cubin || !s->ptx) return call_end(&c, INVALID_VALUE);
    image i = {0};
    int result = image_read_ptx(s->ptx, &i);
    if (result == SUCCESS) {
        s->cubin = elf_write(&i, &s->cubin_size);
        *out = s->cubin;
        if (size) *size = s->cubin_size;
    }
    image_drop(&i);
    return call_end(&c, result);
}

static void link_bury(link_state *s) {
    if (s->cubin) {
        memset(s->cubin, FAKE_FREED, s->cubin_size);
        cubins = grow(cubins, &cubin_capacity, cubin_count + 1, sizeof *cubins);
        cubins[cubin_count++] = s->cubin;
    }
    G.counts[s->ctx->device].links--;
    handle_drop(KIND_LINK, s->handle);
    free(s->ptx);
    free(s);
}

EXPORT CUresult cuLinkDestroy(CUlinkState handle) {
    call c;
    if (!call_begin(&c, F_cuLinkDestroy, CALL_CONTEXT | CALL_RELEASE)) return call_end(&c, c.result);
    link_state *s = link_of(handle, &c);
    if (!s) return call_end(&c, INVALID_HANDLE);
    link_bury(s);
    return call_end(&c, SUCCESS);
}

/* ---- control ---- */

void describe_modules(FILE *out) {
    char made[160];
    for (uint32_t i = 0; i < G.tables[KIND_MODULE].count; i++) {
        const module *m = G.tables[KIND_MODULE].item[i];
        if (m) fprintf(out, "module of device %d, made by %s\n", m->ctx->device, site_text(&m->made, made));
    }
    for (uint32_t i = 0; i < G.tables[KIND_LINK].count; i++) {
        const link_state *l = G.tables[KIND_LINK].item[i];
        if (l) fprintf(out, "link state of device %d, made by %s\n", l->ctx->device, site_text(&l->made, made));
    }
}

void modules_reset(void) {
    while (cubin_count) free(cubins[--cubin_count]);
}

/* Of this context, or all: null. */
void modules_clear(const context *only) {
    call c = {.function = F_cuInit};
    for (uint32_t i = 0; i < G.tables[KIND_MODULE].count; i++) {
        module *m = G.tables[KIND_MODULE].item[i];
        if (m && (!only || m->ctx == only)) module_bury(m, &c);
    }
    for (uint32_t i = 0; i < G.tables[KIND_LINK].count; i++) {
        link_state *l = G.tables[KIND_LINK].item[i];
        if (l && (!only || l->ctx == only)) link_bury(l);
    }
}
