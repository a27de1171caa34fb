/*
 * virtual.c: addresses and memory apart: reserved ranges, physical memory, mappings and who may use them.
 *
 * A reserved range is a block whose bytes are a range of the host's own address space; physical memory is a file
 * without a name, mapped there. So neighbouring mappings are contiguous memory, and memory that is mapped twice is
 * the same memory. Histories belong to the physical memory.
 *
 * Invariants: all of a reserved range can always be accessed, so that work queued behind an unmap has no effect.
 */
#define _GNU_SOURCE
#include "state.h"

#include <sys/mman.h>
#include <unistd.h>

/* Checks before a call: it needs no context, but fails when the current one is lost. */
static bool begin(call *c, function_number f, unsigned flags) {
    if (!call_begin(c, f, flags)) return false;
    if (!c->ctx || !c->ctx->lost || flags & CALL_RELEASE) return true;
    c->result = c->ctx->lost;
    return false;
}

/* ---- physical memory ---- */

static bool valid(const CUmemAllocationProp *p) {
    return p && p->type == ALLOCATION_PINNED && p->location.type == LOCATION_DEVICE;
}

static void physical_bury(physical *p) {
    if (!p->released || p->mapped) return;
    block_count(&p->base, -1);
    history_drop(&p->base.history);
    close(p->file);
    free(p);
}

static void poison(int file, size_t size) {
    unsigned char edge[4096];
    memset(edge, FAKE_POISON, sizeof edge);
    (void)!pwrite(file, edge, sizeof edge, 0);
    (void)!pwrite(file, edge, sizeof edge, (off_t)(size - sizeof edge));
}

EXPORT CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *prop, int option) {
    call c;
    if (!begin(&c, F_cuMemGetAllocationGranularity, 0)) return call_end(&c, c.result);
    if (!out || !valid(prop) || option < 0 || option > 1) return call_end(&c, INVALID_VALUE);
    if (prop->location.id < 0 || prop->location.id >= G.devices) return call_end(&c, INVALID_DEVICE);
    *out = G.granularity;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *prop,
                            unsigned long long flags) {
    call c;
    if (!begin(&c, F_cuMemCreate, 0)) return call_end(&c, c.result);
    if (!out || !size || size % G.granularity || flags || !valid(prop)) return call_end(&c, INVALID_VALUE);
    if (prop->location.id < 0 || prop->location.id >= G.devices) return call_end(&c, INVALID_DEVICE);
    refuse_foreign(&c);
    if (!memory_available(prop->location.id, size)) return call_end(&c, OUT_OF_MEMORY);
    int file = memfd_create("fake", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)size)) {
        if (file >= 0) close(file);
        return call_end(&c, OUT_OF_MEMORY);
    }
    poison(file, size);
    physical *p = zeroed(sizeof *p);
    p->file = file;
    p->base = (block){.kind = BLOCK_PHYSICAL, .live = true, .number = ++G.numbers, .size = size, .made = c.where};
    p->base.ctx = &G.contexts[prop->location.id];
    block_count(&p->base, 1);
    *out = p->handle = handle_new(KIND_PHYSICAL, p);
    return call_end(&c, SUCCESS);
}

static void release(physical *p) {
    handle_drop(KIND_PHYSICAL, p->handle);
    p->released = true;
    physical_bury(p);
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    call c;
    if (!begin(&c, F_cuMemRelease, CALL_RELEASE)) return call_end(&c, c.result);
    physical *p = handle_get(KIND_PHYSICAL, handle);
    if (!p) {
        violation(&c, "unknown or released physical memory %#llx", (unsigned long long)handle);
        return call_end(&c, INVALID_VALUE);
    }
    release(p);
    return call_end(&c, SUCCESS);
}

/* ---- reserved ranges ---- */

static void *nowhere(void *at, size_t size) {
    int fixed = at ? MAP_FIXED : 0;
    void *data = mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr wish,
                                    unsigned long long flags) {
    call c;
    (void)wish;
    if (!begin(&c, F_cuMemAddressReserve, 0)) return call_end(&c, c.result);
    if (!out || !size || size % G.granularity || alignment & (alignment - 1) || flags)
        return call_end(&c, INVALID_VALUE);
    refuse_foreign(&c);
    void *data = nowhere(NULL, size);
    if (!data) return call_end(&c, OUT_OF_MEMORY);
    block *b = block_new(BLOCK_RESERVED, c.ctx ? c.ctx : &G.contexts[0], size, data, &c);
    if (!b) {
        munmap(data, size);
        return call_end(&c, OUT_OF_MEMORY);
    }
    if (!block_align(b, alignment)) {
        block_free(b, &c, NULL);
        return call_end(&c, OUT_OF_MEMORY);
    }
    *out = b->address;
    return call_end(&c, SUCCESS);
}

void reservation_bury(block *b) {
    munmap(b->data, b->size);
    free(b->mapping);
    b->mapping = NULL;
}

/* The reserved range that holds these bytes, or null, with a violation. */
static block *reserved(CUdeviceptr address, size_t size, const call *c, size_t *offset) {
    block *b = block_at(address, offset);
    if (b && b->kind == BLOCK_RESERVED && size && size <= b->size - *offset) return b;
    violation(c, "%zu bytes at %#llx are in no reserved range", size, (unsigned long long)address);
    return NULL;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
    call c;
    size_t offset = 0;
    if (!begin(&c, F_cuMemAddressFree, CALL_RELEASE)) return call_end(&c, c.result);
    block *b = reserved(address, size, &c, &offset);
    if (!b) return call_end(&c, INVALID_VALUE);
    if (offset || size != b->size || b->mappings) {
        violation(&c, b->mappings ? "a reserved range is freed while memory is mapped in it"
                                  : "a reserved range is freed in part");
        return call_end(&c, INVALID_VALUE);
    }
    block_free(b, &c, NULL);
    return call_end(&c, SUCCESS);
}

/* ---- mappings ---- */

/* The first mapping that ends after this offset. */
static size_t find(const block *b, size_t at) {
    size_t i = 0;
    while (i < b->mappings && b->mapping[i].to <= at) i++;
    return i;
}

EXPORT CUresult cuMemMap(CUdeviceptr address, size_t size, size_t skip, CUmemGenericAllocationHandle handle,
                         unsigned long long flags) {
    call c;
    size_t offset = 0;
    if (!begin(&c, F_cuMemMap, 0)) return call_end(&c, c.result);
    physical *p = handle_get(KIND_PHYSICAL, handle);
    if (!p) {
        violation(&c, "unknown or released physical memory %#llx", (unsigned long long)handle);
        return call_end(&c, INVALID_VALUE);
    }
    if (skip || flags || size != p->base.size) return call_end(&c, INVALID_VALUE);
    block *b = reserved(address, size, &c, &offset);
    if (!b) return call_end(&c, INVALID_VALUE);
    size_t i = find(b, offset);
    if (offset % G.granularity || (i < b->mappings && b->mapping[i].from < offset + size)) {
        violation(&c, "the range is mapped already, or begins inside a page");
        return call_end(&c, INVALID_VALUE);
    }
    if (mmap(b->data + offset, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, p->file, 0) == MAP_FAILED)
        return call_end(&c, OUT_OF_MEMORY);
    b->mapping = grow(b->mapping, &b->mapping_capacity, b->mappings + 1, sizeof *b->mapping);
    memmove(&b->mapping[i + 1], &b->mapping[i], (b->mappings++ - i) * sizeof *b->mapping);
    b->mapping[i] = (mapping){.from = offset, .to = offset + size, .memory = p};
    p->mapped++;
    G.counts[p->base.ctx->device].mappings++;
    return call_end(&c, SUCCESS);
}

/* The mappings that make up exactly these bytes: `first` up to `end`. */
static bool exact(const block *b, size_t from, size_t to, size_t *first, size_t *end) {
    *first = *end = find(b, from);
    if (*first == b->mappings || b->mapping[*first].from != from || !mapped(b, from, to)) return false;
    while (*end < b->mappings && b->mapping[*end].from < to) ++*end;
    return b->mapping[*end - 1].to == to;
}

static void unmap(block *b, size_t i, const actor *who) {
    mapping m = b->mapping[i];
    physical *p = m.memory;
    if (who && !p->base.ctx->lost) history_free(&p->base.history, 0, p->base.size, who, &p->base);
    if (!nowhere(b->data + m.from, m.to - m.from)) abort();
    memmove(&b->mapping[i], &b->mapping[i + 1], (--b->mappings - i) * sizeof *b->mapping);
    G.counts[p->base.ctx->device].mappings--;
    p->mapped--;
    physical_bury(p);
}

EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
    call c;
    size_t offset = 0, first, end;
    if (!begin(&c, F_cuMemUnmap, CALL_RELEASE)) return call_end(&c, c.result);
    block *b = reserved(address, size, &c, &offset);
    if (!b) return call_end(&c, INVALID_VALUE);
    if (!exact(b, offset, offset + size, &first, &end)) {
        violation(&c, "what is unmapped is not what was mapped");
        return call_end(&c, INVALID_VALUE);
    }
    actor who = host_actor(F_CONTROL, &c);
    while (end-- > first) unmap(b, end, &who);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *list, size_t count) {
    call c;
    size_t offset = 0, first, end;
    if (!begin(&c, F_cuMemSetAccess, 0)) return call_end(&c, c.result);
    if (!list || !count) return call_end(&c, INVALID_VALUE);
    for (size_t i = 0; i < count; i++) {
        int device = list[i].location.id, flags = list[i].flags;
        if (list[i].location.type != LOCATION_DEVICE || (flags && flags != ACCESS_READ && flags != ACCESS_READ_WRITE))
            return call_end(&c, INVALID_VALUE);
        if (device < 0 || device >= G.devices) return call_end(&c, INVALID_DEVICE);
    }
    block *b = reserved(address, size, &c, &offset);
    if (!b || !exact(b, offset, offset + size, &first, &end)) return call_end(&c, INVALID_VALUE);
    for (size_t i = 0; i < count; i++)
        for (size_t m = first; m < end; m++) {
            if (b->mapping[m].memory->base.ctx->device != list[i].location.id && !G.peer_possible)
                return call_end(&c, INVALID_DEVICE);
            b->mapping[m].access[list[i].location.id] = (uint8_t)list[i].flags;
        }
    return call_end(&c, SUCCESS);
}

/* ---- uses ---- */

/* How far from here on there is memory without a gap. */
size_t mapped_end(const block *b, size_t from) {
    for (size_t i = find(b, from); i < b->mappings && b->mapping[i].from <= from; i++) from = b->mapping[i].to;
    return from;
}

bool mapped(const block *b, size_t from, size_t to) { return mapped_end(b, from) >= to; }

bool mapping_reachable(const block *b, size_t from, size_t to, bool write, int device, bool peer) {
    for (size_t i = find(b, from); i < b->mappings && b->mapping[i].from < to; i++) {
        const mapping *m = &b->mapping[i];
        int access = m->access[device] | (peer ? m->access[m->memory->base.ctx->device] : 0);
        if (!(access & (write ? 2 : 1))) return false;
    }
    return true;
}

void mapping_use(const block *b, size_t from, size_t to, bool write, const actor *who) {
    for (size_t i = find(b, from); i < b->mappings && b->mapping[i].from < to; i++) {
        const mapping *m = &b->mapping[i];
        block *p = &m->memory->base;
        size_t low = (from > m->from ? from : m->from) - m->from, high = (to < m->to ? to : m->to) - m->from;
        if (write) history_write(&p->history, low, high, who, p);
        else history_read(&p->history, low, high, who, p);
    }
}

/* ---- control ---- */

void describe_virtual(FILE *out) {
    char text[96], made[160];
    const handle_table *t = &G.tables[KIND_PHYSICAL];
    for (uint32_t i = 0; i < t->count; i++) {
        const physical *p = t->item[i];
        if (p) fprintf(out, "%s, made by %s\n", block_text(&p->base, text), site_text(&p->base.made, made));
    }
}

/* The ranges themselves go with the other blocks. */
void virtual_reset_all(void) {
    const handle_table *t = &G.tables[KIND_PHYSICAL];
    for (block *b = NULL; (b = next_reserved(b));)
        while (b->mappings) unmap(b, b->mappings - 1, NULL);
    for (uint32_t i = 0; i < t->count; i++)
        if (t->item[i]) release(t->item[i]);
}
