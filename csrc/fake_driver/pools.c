/*
 * pools.c: memory in the order of a stream: the driver's own pools.
 *
 * An allocation is a write of the whole block by its stream, so that a use which does not come after it is found; a
 * free comes in its stream's order and must come after all uses. No memory is reused, so a pool is only numbers: bytes
 * in use, and cached bytes up to the threshold. Allocation nodes of a graph are not modelled.
 */
#include "state.h"

static pool *standard[MAX_DEVICES];

static void level(pool *p, uint64_t keep) {
    if (p->reserved > p->used + keep) p->reserved = p->used + keep;
    if (p->reserved < p->used) p->reserved = p->used;
    if (p->reserved_high < p->reserved) p->reserved_high = p->reserved;
    if (p->used_high < p->used) p->used_high = p->used;
}

static pool *pool_new(int device, const call *c) {
    pool *p = zeroed(sizeof *p);
    p->device = device;
    p->access[device] = ACCESS_READ_WRITE;
    for (int i = POOL_REUSE_FIRST; i <= POOL_REUSE_LAST; i++) p->reuse[i] = 1;
    p->handle = handle_new(KIND_POOL, p);
    p->made = c->where;
    return p;
}

static pool *standard_pool(int device, const call *c) {
    if (!standard[device]) {
        standard[device] = pool_new(device, c);
        standard[device]->standard = true;
    }
    return standard[device];
}

static void pool_bury(pool *p) {
    if (p->destroyed && !p->blocks) free(p);
}

static pool *pool_of(CUmemoryPool handle, const call *c) {
    pool *p = handle_get(KIND_POOL, handle);
    if (!p) violation(c, "unknown or destroyed pool %#llx", (unsigned long long)handle);
    return p;
}

/* A block of the pool has been freed. */
void pool_take_back(block *b) {
    pool *p = b->pool;
    b->pool = NULL;
    uint64_t cached = p->reserved - p->used;
    p->used -= b->size;
    p->blocks--;
    level(p, cached + b->size < p->threshold ? cached + b->size : p->threshold > p->used ? p->threshold - p->used : 0);
    pool_bury(p);
}

static uint64_t each(int device, bool give_up) {
    uint64_t cached = 0;
    const handle_table *t = &G.tables[KIND_POOL];
    for (uint32_t i = 0; i < t->count; i++) {
        pool *p = t->item[i];
        if (!p || p->device != device) continue;
        if (give_up) level(p, 0);
        cached += p->reserved - p->used;
    }
    return cached;
}

/* The unused bytes that the pools of the device cache. */
uint64_t pools_cached(int device) { return G.tables[KIND_POOL].count ? each(device, false) : 0; }
void pools_give_up_cache(int device) { each(device, true); }

/* ---- the driver's calls ---- */

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device) {
    call c;
    if (!call_begin(&c, F_cuDeviceGetDefaultMemPool, 0)) return call_end(&c, c.result);
    if (!out) return call_end(&c, INVALID_VALUE);
    if (device < 0 || device >= G.devices) return call_end(&c, INVALID_DEVICE);
    *out = standard_pool(device, &c)->handle;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props) {
    call c;
    if (!call_begin(&c, F_cuMemPoolCreate, 0)) return call_end(&c, c.result);
    if (!out || !props || props->allocType != ALLOCATION_PINNED || props->location.type != LOCATION_DEVICE)
        return call_end(&c, INVALID_VALUE);
    if (props->location.id < 0 || props->location.id >= G.devices) return call_end(&c, INVALID_DEVICE);
    refuse_foreign(&c);
    pool *p = pool_new(props->location.id, &c);
    p->limit = props->maxSize;
    G.counts[p->device].pools++;
    *out = p->handle;
    return call_end(&c, SUCCESS);
}

static void pool_destroy(pool *p) {
    if (!p->standard) G.counts[p->device].pools--;
    handle_drop(KIND_POOL, p->handle);
    p->destroyed = true;
    pool_bury(p);
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    call c;
    if (!call_begin(&c, F_cuMemPoolDestroy, CALL_RELEASE)) return call_end(&c, c.result);
    pool *p = pool_of(handle, &c);
    if (!p || p->standard) return call_end(&c, INVALID_VALUE);
    pool_destroy(p);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
    call c;
    if (!call_begin(&c, F_cuMemPoolTrimTo, 0)) return call_end(&c, c.result);
    pool *p = pool_of(handle, &c);
    if (!p) return call_end(&c, INVALID_VALUE);
    level(p, keep > p->used ? keep - p->used : 0);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool handle, int attribute, void *value) {
    call c;
    if (!call_begin(&c, F_cuMemPoolSetAttribute, 0)) return call_end(&c, c.result);
    pool *p = pool_of(handle, &c);
    if (!p || !value) return call_end(&c, INVALID_VALUE);
    uint64_t number = 0;
    if (attribute > POOL_REUSE_LAST) memcpy(&number, value, sizeof number);
    if (attribute >= POOL_REUSE_FIRST && attribute <= POOL_REUSE_LAST) memcpy(&p->reuse[attribute], value, sizeof(int));
    else if (attribute == POOL_RELEASE_THRESHOLD) p->threshold = number;
    else if (attribute == POOL_RESERVED_HIGH && !number) p->reserved_high = p->reserved;
    else if (attribute == POOL_USED_HIGH && !number) p->used_high = p->used;
    else return call_end(&c, INVALID_VALUE);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool handle, int attribute, void *value) {
    call c;
    if (!call_begin(&c, F_cuMemPoolGetAttribute, 0)) return call_end(&c, c.result);
    pool *p = pool_of(handle, &c);
    if (!p || !value || attribute < POOL_REUSE_FIRST || attribute > POOL_USED_HIGH) return call_end(&c, INVALID_VALUE);
    const uint64_t numbers[] = {p->threshold, p->reserved, p->reserved_high, p->used, p->used_high};
    if (attribute <= POOL_REUSE_LAST) memcpy(value, &p->reuse[attribute], sizeof(int));
    else memcpy(value, &numbers[attribute - POOL_RELEASE_THRESHOLD], sizeof numbers[0]);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *list, size_t count) {
    call c;
    if (!call_begin(&c, F_cuMemPoolSetAccess, 0)) return call_end(&c, c.result);
    pool *p = pool_of(handle, &c);
    if (!p || (count && !list)) return call_end(&c, INVALID_VALUE);
    for (size_t i = 0; i < count; i++) {
        int device = list[i].location.id;
        if (list[i].location.type != LOCATION_DEVICE) return call_end(&c, INVALID_VALUE);
        if (device < 0 || device >= G.devices) return call_end(&c, INVALID_DEVICE);
        if (device == p->device ? list[i].flags != ACCESS_READ_WRITE : list[i].flags && !G.peer_possible)
            return call_end(&c, INVALID_DEVICE);
        p->access[device] = (uint8_t)list[i].flags;
    }
    return call_end(&c, SUCCESS);
}

static CUresult allocate(call *c, CUdeviceptr *out, size_t bytes, pool *p, stream *s) {
    if (s->capture) return call_end(c, NOT_SUPPORTED);
    if (captures && capture_forbids()) return call_end(c, STREAM_CAPTURE_UNSUPPORTED);
    if (p->limit && p->used + bytes > p->limit) return call_end(c, OUT_OF_MEMORY);
    uint64_t cached = p->reserved - p->used;
    p->reserved -= cached < bytes ? cached : bytes; /* the block takes cached bytes */
    block *b = block_new(BLOCK_DEVICE, &G.contexts[p->device], bytes, NULL, c);
    if (!b) {
        level(p, 0);
        return call_end(c, OUT_OF_MEMORY);
    }
    p->used += bytes;
    p->reserved += bytes;
    p->blocks++;
    b->pool = p;
    level(p, p->reserved - p->used);
    actor who = stream_actor(s, c);
    history_write(&b->history, 0, bytes, &who, b);
    *out = b->address;
    return call_end(c, SUCCESS);
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool handle, CUstream stream_handle) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuMemAllocFromPoolAsync, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!out || !bytes) return call_end(&c, INVALID_VALUE);
    pool *p = pool_of(handle, &c);
    if (!p) return call_end(&c, INVALID_VALUE);
    stream *s = stream_of(stream_handle, &c, &result);
    if (!s) return call_end(&c, result);
    stream_bound(s, &c);
    return allocate(&c, out, bytes, p, s);
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream_handle) {
    call c;
    int result = SUCCESS;
    if (!call_begin(&c, F_cuMemAllocAsync, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!out || !bytes) return call_end(&c, INVALID_VALUE);
    stream *s = stream_of(stream_handle, &c, &result);
    if (!s) return call_end(&c, result);
    stream_bound(s, &c);
    return allocate(&c, out, bytes, standard_pool(s->ctx->device, &c), s);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream_handle) {
    call c;
    int result = SUCCESS;
    size_t offset = 0;
    if (!call_begin(&c, F_cuMemFreeAsync, CALL_CONTEXT | CALL_RELEASE)) return call_end(&c, c.result);
    block *b = block_at(address, &offset);
    if (!b || offset || !b->pool) {
        location unused;
        if (b) violation(&c, "a stream frees an address that no allocation of a pool begins at");
        else locate(address, 1, &c, &unused);
        return call_end(&c, INVALID_VALUE);
    }
    stream *s = stream_of(stream_handle, &c, &result);
    if (!s && result == INVALID_HANDLE) return call_end(&c, result);
    if (!s) { /* a lost context lets go of everything */
        block_free(b, &c, NULL);
        return call_end(&c, result);
    }
    stream_bound(s, &c);
    if (s->capture) return call_end(&c, NOT_SUPPORTED);
    actor who = stream_actor(s, &c);
    block_free(b, &c, &who);
    return call_end(&c, SUCCESS);
}

/* ---- control ---- */

void describe_pools(FILE *out) {
    char made[160];
    const handle_table *t = &G.tables[KIND_POOL];
    for (uint32_t i = 0; i < t->count; i++) {
        const pool *p = t->item[i];
        if (p && !p->standard) fprintf(out, "pool of device %d, made by %s\n", p->device, site_text(&p->made, made));
    }
}

/* After the blocks are gone. */
void pools_reset_all(void) {
    const handle_table *t = &G.tables[KIND_POOL];
    for (uint32_t i = 0; i < t->count; i++)
        if (t->item[i]) pool_destroy(t->item[i]);
    memset(standard, 0, sizeof standard);
}
