/*
 * memory.c: device, pinned and registered memory.
 *
 * A device address is made of a mark, the device, a generation, a slot and an offset, so that finding its block is
 * one look-up and an address is not used again for a long time. Host ranges are sorted.
 *
 * Invariants: a block's struct and bytes outlive its last queued operation.
 */
#include "state.h"

#define MARK (UINT64_C(1) << 62)
#define SLOTS 65536u
#define SLOT_SHIFT 36
#define GENERATION_SHIFT 52
#define DEVICE_SHIFT 56
#define BASE UINT64_C(0x200000) /* makes an underflow visible */
#define LARGEST ((UINT64_C(1) << SLOT_SHIFT) - 2 * BASE)
#define EDGE (64u << 10)

static block *slots[SLOTS];
static block *last_freed[SLOTS]; /* for the text of a stale use: who freed it */
static uint8_t generations[SLOTS];
static uint16_t waiting[SLOTS]; /* a queue of free slots: the longest free is used first */
static uint32_t slots_used, waiting_head, waiting_count;

static block **ranges; /* live pinned and registered ones, by address */
static size_t range_count, range_capacity;

#define QUARANTINE 64
static block
    *quarantine[QUARANTINE]; /* freed pinned blocks, so that their addresses are not at once somebody else's */
static uint32_t quarantine_next;

const char *block_text(const block *b, char text[96]) {
    static const char *const kinds[] = {"device", "global", "reserved", "physical", "pinned", "registered"};
    snprintf(text, 96, "%s memory %u of device %d, %zu bytes", kinds[b->kind], b->number, b->ctx->device, b->size);
    return text;
}

static void soil(unsigned char *data, size_t size, int value) {
    if (size <= 2 * EDGE) {
        memset(data, value, size);
    } else {
        memset(data, value, EDGE);
        memset(data + size - EDGE, value, EDGE);
    }
}

static void insert_range(block *b) {
    ranges = grow(ranges, &range_capacity, range_count + 1, sizeof *ranges);
    size_t i = range_count++;
    for (; i > 0 && ranges[i - 1]->address > b->address; i--) ranges[i] = ranges[i - 1];
    ranges[i] = b;
}

static void remove_range(const block *b) {
    size_t i = 0;
    while (ranges[i] != b) i++;
    memmove(&ranges[i], &ranges[i + 1], (--range_count - i) * sizeof *ranges);
}

/* The range that holds the pointer, or null. */
block *host_block_at(const void *pointer, size_t *offset) {
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    size_t low = 0, high = range_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle]->address <= address) low = middle + 1;
        else high = middle;
    }
    if (low == 0 || address - ranges[low - 1]->address >= ranges[low - 1]->size) return NULL;
    *offset = address - ranges[low - 1]->address;
    return ranges[low - 1];
}

void block_count(const block *b, int sign) {
    fake_counts *n = &G.counts[b->ctx->device];
    uint64_t one = (uint64_t)sign, bytes = (uint64_t)sign * b->size;
    switch (b->kind) {
    case BLOCK_DEVICE:
        n->blocks += one;
        n->bytes += bytes;
        break;
    case BLOCK_GLOBAL: break;
    case BLOCK_RESERVED:
        n->reservations += one;
        n->reserved_bytes += bytes;
        break;
    case BLOCK_PHYSICAL:
        n->physical += one;
        n->physical_bytes += bytes;
        break;
    case BLOCK_PINNED:
        n->pinned += one;
        n->pinned_bytes += bytes;
        break;
    case BLOCK_REGISTERED: n->registered += one; break;
    }
}

static void last_freed_drop(uint32_t slot) {
    free(last_freed[slot]);
    last_freed[slot] = NULL;
}

/* Returns whether the device has this much free memory, after freeing what its pools cache. */
bool memory_available(int device, size_t size) {
    uint64_t used = G.counts[device].bytes + G.counts[device].physical_bytes;
    if (used + pools_cached(device) + size <= G.memory) return true;
    pools_give_up_cache(device);
    return used + size <= G.memory;
}

static bool on_device(const block *b) { return b->kind <= BLOCK_RESERVED; }

/* A slot for an address on a device; SLOTS when all are taken. */
static uint32_t slot_new(void) {
    if (waiting_count <= 1024 && slots_used < SLOTS) return slots_used++;
    if (!waiting_count) return SLOTS;
    waiting_count--;
    return waiting[waiting_head++ % SLOTS];
}

/* Null when the device's capacity, or that of the fake, does not suffice. A registered or reserved one comes with its
 * bytes. */
block *block_new(block_kind kind, context *ctx, size_t size, void *data, const call *c) {
    uint32_t slot = 0;
    if (kind <= BLOCK_RESERVED) {
        if (size > LARGEST || (kind == BLOCK_DEVICE && !memory_available(ctx->device, size))) return NULL;
        slot = slot_new();
        if (slot == SLOTS) return NULL;
        if (kind != BLOCK_RESERVED) data = size > 2 * EDGE ? calloc(1, size) : malloc(size);
    } else if (kind == BLOCK_PINNED) {
        if (posix_memalign(&data, 512, size)) data = NULL;
    }
    if (!data) return NULL;
    block *b = zeroed(sizeof *b);
    b->kind = kind;
    b->live = true;
    b->number = ++G.numbers;
    b->size = size;
    b->data = data;
    b->ctx = ctx;
    b->made = c->where;
    if (on_device(b)) {
        generations[slot] = (generations[slot] + 1) & 15;
        b->address = MARK | (uint64_t)ctx->device << DEVICE_SHIFT | (uint64_t)generations[slot] << GENERATION_SHIFT |
                     (uint64_t)slot << SLOT_SHIFT | BASE;
        last_freed_drop(slot);
        slots[slot] = b;
        if (kind != BLOCK_RESERVED) soil(b->data, size, kind == BLOCK_GLOBAL ? 0 : FAKE_POISON);
    } else {
        b->address = (uint64_t)(uintptr_t)data;
        if (kind == BLOCK_PINNED) soil(b->data, size, FAKE_POISON);
        insert_range(b);
    }
    block_count(b, 1);
    return b;
}

static void block_bury(block *b) {
    history_drop(&b->history);
    if (b->kind == BLOCK_REGISTERED) {
        free(b);
        return;
    }
    if (b->kind == BLOCK_PINNED) {
        block **place = &quarantine[quarantine_next++ % QUARANTINE];
        if (*place) {
            free((*place)->data);
            free(*place);
        }
        *place = b;
        return;
    }
    if (b->kind == BLOCK_RESERVED) reservation_bury(b);
    else free(b->data);
    uint32_t slot = (uint32_t)(b->address >> SLOT_SHIFT) & (SLOTS - 1);
    b->data = NULL;
    waiting[(waiting_head + waiting_count++) % SLOTS] = (uint16_t)slot;
}

/* The program gives the block back: the host at once, or a stream when it comes to it. */
void block_free(block *b, const call *c, const actor *who) {
    actor host = host_actor(F_CONTROL, c);
    if (!b->ctx->lost) history_free(&b->history, 0, b->size, who ? who : &host, b);
    if (b->pool) pool_take_back(b);
    block_count(b, -1);
    b->live = false;
    b->freed = c->where;
    uint32_t slot = (uint32_t)(b->address >> SLOT_SHIFT) & (SLOTS - 1);
    if (on_device(b)) {
        slots[slot] = NULL;
        last_freed_drop(slot);
        last_freed[slot] = b; /* its struct lives on until the slot is used again */
    } else {
        remove_range(b);
    }
    bool late = b->references && !who && (b->kind == BLOCK_DEVICE || b->kind == BLOCK_GLOBAL);
    if (late || b->kind == BLOCK_PINNED) soil(b->data, b->size, FAKE_FREED);
    if (!b->references) block_bury(b);
}

/* Moves a fresh reserved range to an address of this alignment, a power of two. Returns false if none fits. */
bool block_align(block *b, uint64_t alignment) {
    if (alignment <= BASE) return true;
    if (alignment > LARGEST / 2 || b->size > LARGEST - alignment) return false;
    b->address += alignment - BASE;
    return true;
}

/* A queued operation lets go. */
void block_release(block *b) {
    if (--b->references == 0 && !b->live) block_bury(b);
}

block *block_at(CUdeviceptr address, size_t *offset) {
    if (!(address & MARK)) return NULL;
    block *b = slots[(address >> SLOT_SHIFT) & (SLOTS - 1)];
    if (!b || (b->address ^ address) >> SLOT_SHIFT) return NULL;
    if (address < b->address || address - b->address > b->size) return NULL;
    *offset = address - b->address;
    return b;
}

static void bad_address(CUdeviceptr address, size_t bytes, const call *c) {
    char text[96], one[160], other[160];
    const block *old = address & MARK ? last_freed[(address >> SLOT_SHIFT) & (SLOTS - 1)] : NULL;
    if (old && !((old->address ^ address) >> SLOT_SHIFT))
        violation(c, "use of freed %s, made by %s, freed by %s", block_text(old, text), site_text(&old->made, one),
                  site_text(&old->freed, other));
    else violation(c, "%zu bytes at %#llx are in no allocation", bytes, (unsigned long long)address);
}

/* Device memory, or pinned memory under its host address; false, with a violation, when it is not wholly inside
 * one live block. */
bool locate(CUdeviceptr address, size_t bytes, const call *c, location *out) {
    size_t offset = 0;
    block *b = block_at(address, &offset);
    if (!b) b = host_block_at((const void *)(uintptr_t)address, &offset);
    if (!b) {
        bad_address(address, bytes, c);
        return false;
    }
    if (bytes > b->size - offset) {
        char text[96], one[160];
        violation(c, "%zu bytes at offset %zu go past the end of %s, made by %s", bytes, offset, block_text(b, text),
                  site_text(&b->made, one));
        return false;
    }
    if (b->kind == BLOCK_RESERVED && bytes && !mapped(b, offset, offset + bytes)) {
        char text[96];
        violation(c, "%zu bytes at offset %zu of %s have no memory behind them", bytes, offset, block_text(b, text));
        return false;
    }
    *out = (location){.block = b, .offset = offset};
    return true;
}

/* Returns whether work on this stream may use the memory. Copies between devices (`peer`) need no access to the other one. */
bool location_reachable(const location *place, size_t bytes, bool write, const stream *s, bool peer) {
    const block *b = place->block;
    int device = s->ctx->device;
    if (!b || b->kind >= BLOCK_PINNED) return true;
    if (b->kind == BLOCK_RESERVED)
        return mapping_reachable(b, place->offset, place->offset + bytes, write, device, peer);
    if (b->ctx == s->ctx || peer) return true;
    if (b->pool) return b->pool->access[device] & (write ? 2 : 1);
    return s->ctx->peer[b->ctx - G.contexts];
}

/* The context that the memory belongs to. */
context *location_context(const location *place) {
    const block *b = place->block;
    for (size_t i = 0; b->kind == BLOCK_RESERVED && i < b->mappings; i++)
        if (b->mapping[i].to > place->offset) return b->mapping[i].memory->base.ctx;
    return b->ctx;
}

/* Host memory: pinned, registered or pageable. */
bool locate_host(const void *pointer, size_t bytes, const call *c, location *out) {
    size_t offset = 0;
    block *b = host_block_at(pointer, &offset);
    if ((uint64_t)(uintptr_t)pointer & MARK) {
        violation(c, "a device address is given as host memory");
        return false;
    }
    if (!b) {
        *out = (location){.raw = (unsigned char *)(uintptr_t)pointer};
        return pointer != NULL;
    }
    return locate((CUdeviceptr)(uintptr_t)pointer, bytes, c, out);
}

void location_hold(location *place) {
    if (place->block) place->block->references++;
}

void location_drop(location *place) {
    if (place->block) block_release(place->block);
    if (place->owned) free(place->raw);
}

/* Null when the memory is no longer the driver's to touch. */
unsigned char *location_data(const location *place) {
    if (!place->block) return place->raw;
    if (place->block->kind == BLOCK_REGISTERED && !place->block->live) return NULL;
    return place->block->data + place->offset;
}

/* How many bytes there are from here on. */
size_t location_rest(const location *place) {
    const block *b = place->block;
    return (b->kind == BLOCK_RESERVED ? mapped_end(b, place->offset) : b->size) - place->offset;
}

/* Enters a use of these bytes, which `locate` has found to be inside the block, into the history. */
void location_use(const location *place, size_t bytes, bool write, const actor *who) {
    block *b = place->block;
    if (b->kind == BLOCK_RESERVED) mapping_use(b, place->offset, place->offset + bytes, write, who);
    else if (write) history_write(&b->history, place->offset, place->offset + bytes, who, b);
    else history_read(&b->history, place->offset, place->offset + bytes, who, b);
}

/* ---- the driver's calls ---- */

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) {
    call c;
    if (!call_begin(&c, F_cuMemAlloc_v2, CALL_CONTEXT | CALL_UNSAFE)) return call_end(&c, c.result);
    if (!out || !bytes) return call_end(&c, INVALID_VALUE);
    refuse_foreign(&c);
    block *b = block_new(BLOCK_DEVICE, c.ctx, bytes, NULL, &c);
    if (!b) return call_end(&c, OUT_OF_MEMORY);
    *out = b->address;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
    call c;
    if (!call_begin(&c, F_cuMemFree_v2, CALL_CONTEXT | CALL_RELEASE | CALL_UNSAFE)) return call_end(&c, c.result);
    size_t offset = 0;
    if (!address) return call_end(&c, SUCCESS);
    block *b = block_at(address, &offset);
    if (!b || offset || b->kind != BLOCK_DEVICE) {
        if (b) violation(&c, "free of an address that no allocation begins at");
        else bad_address(address, 0, &c);
        return call_end(&c, INVALID_VALUE);
    }
    block_free(b, &c, NULL);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
    call c;
    if (!call_begin(&c, F_cuMemHostAlloc, CALL_CONTEXT | CALL_UNSAFE)) return call_end(&c, c.result);
    if (!out || !bytes || flags > 7) return call_end(&c, INVALID_VALUE);
    refuse_foreign(&c);
    block *b = block_new(BLOCK_PINNED, c.ctx, bytes, NULL, &c);
    if (!b) return call_end(&c, OUT_OF_MEMORY);
    *out = b->data;
    return call_end(&c, SUCCESS);
}

static CUresult give_back(call *c, void *pointer, block_kind kind, CUresult unknown) {
    size_t offset = 0;
    block *b = host_block_at(pointer, &offset);
    if (!b || offset || b->kind != kind) {
        violation(c, "release of host memory that is not %s", kind == BLOCK_PINNED ? "pinned" : "registered");
        return call_end(c, unknown);
    }
    block_free(b, c, NULL);
    return call_end(c, SUCCESS);
}

EXPORT CUresult cuMemFreeHost(void *pointer) {
    call c;
    if (!call_begin(&c, F_cuMemFreeHost, CALL_CONTEXT | CALL_RELEASE | CALL_UNSAFE)) return call_end(&c, c.result);
    return give_back(&c, pointer, BLOCK_PINNED, INVALID_VALUE);
}

EXPORT CUresult cuMemHostUnregister(void *pointer) {
    call c;
    if (!call_begin(&c, F_cuMemHostUnregister, CALL_CONTEXT | CALL_RELEASE | CALL_UNSAFE)) return call_end(&c, c.result);
    return give_back(&c, pointer, BLOCK_REGISTERED, HOST_MEMORY_NOT_REGISTERED);
}

EXPORT CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags) {
    call c;
    if (!call_begin(&c, F_cuMemHostRegister_v2, CALL_CONTEXT | CALL_UNSAFE)) return call_end(&c, c.result);
    if (!pointer || !bytes || flags > 15) return call_end(&c, INVALID_VALUE);
    uint64_t from = (uint64_t)(uintptr_t)pointer;
    for (size_t i = 0; i < range_count; i++)
        if (from < ranges[i]->address + ranges[i]->size && ranges[i]->address < from + bytes)
            return call_end(&c, HOST_MEMORY_ALREADY_REGISTERED);
    refuse_foreign(&c);
    return call_end(&c, block_new(BLOCK_REGISTERED, c.ctx, bytes, pointer, &c) ? SUCCESS : OUT_OF_MEMORY);
}

EXPORT CUresult cuPointerGetAttribute(void *out, int attribute, CUdeviceptr address) {
    call c;
    if (!call_begin(&c, F_cuPointerGetAttribute, 0)) return call_end(&c, c.result);
    size_t offset = 0;
    const block *b = block_at(address, &offset);
    if (!out || attribute != 9 || !b) return call_end(&c, INVALID_VALUE);
    const context *owner = b->kind == BLOCK_RESERVED ? NULL : b->ctx;
    for (size_t i = 0; i < b->mappings; i++)
        if (b->mapping[i].from <= offset && offset < b->mapping[i].to) owner = b->mapping[i].memory->base.ctx;
    if (!owner) return call_end(&c, INVALID_VALUE);
    *(int *)out = owner->device;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
    call c;
    if (!call_begin(&c, F_cuMemGetInfo_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!available || !total) return call_end(&c, INVALID_VALUE);
    int device = c.ctx->device;
    uint64_t used = G.counts[device].bytes + G.counts[device].physical_bytes + pools_cached(device);
    *total = G.memory;
    *available = used < G.memory ? G.memory - used : 0;
    return call_end(&c, SUCCESS);
}

/* ---- control ---- */

static void host_access(const void *pointer, size_t bytes, bool write) {
    control_begin();
    size_t offset = 0;
    block *b = host_block_at(pointer, &offset);
    if (b) {
        char text[96];
        actor who = host_actor(write ? F_HOST_WRITE : F_HOST_READ, NULL);
        block_text(b, text);
        if (bytes > b->size - offset) {
            violation_at("host access past the end of %s", text);
            bytes = b->size - offset;
        }
        location_use(&(location){.block = b, .offset = offset}, bytes, write, &who);
    } else if (bytes) {
        pageable_host(pointer, bytes, write);
    }
    control_end();
}

void fake_host_read(const void *pointer, size_t bytes) { host_access(pointer, bytes, false); }
void fake_host_write(const void *pointer, size_t bytes) { host_access(pointer, bytes, true); }

uint64_t fake_pageable_pending(void) {
    control_begin();
    uint64_t pending = pageable_pending();
    control_end();
    return pending;
}

int fake_device_read(uint64_t address, void *out, size_t bytes) {
    control_begin();
    size_t offset = 0;
    block *b = block_at(address, &offset);
    int found = b && bytes <= b->size - offset && (b->kind != BLOCK_RESERVED || mapped(b, offset, offset + bytes));
    if (found) memcpy(out, b->data + offset, bytes);
    control_end();
    return found;
}

void describe_blocks(FILE *out) {
    char text[96], made[160];
    for (uint32_t i = 0; i < slots_used; i++)
        if (slots[i] && slots[i]->kind != BLOCK_GLOBAL)
            fprintf(out, "%s, made by %s\n", block_text(slots[i], text), site_text(&slots[i]->made, made));
    for (size_t i = 0; i < range_count; i++)
        fprintf(out, "%s, made by %s\n", block_text(ranges[i], text), site_text(&ranges[i]->made, made));
}

/* The reserved range after this one (null: the first), or null. */
block *next_reserved(const block *after) {
    uint32_t slot = after ? ((uint32_t)(after->address >> SLOT_SHIFT) & (SLOTS - 1)) + 1 : 0;
    while (slot < slots_used && !(slots[slot] && slots[slot]->kind == BLOCK_RESERVED)) slot++;
    return slot < slots_used ? slots[slot] : NULL;
}

/* Of this context, its reserved ranges apart, or all: null. The memory of modules goes with them. */
void memory_clear(const context *only) {
    call c = {.function = F_cuInit};
    for (uint32_t i = 0; i < slots_used; i++) {
        block *b = slots[i];
        if (!b || b->kind == BLOCK_GLOBAL || (only && (b->ctx != only || b->kind == BLOCK_RESERVED))) continue;
        block_free(b, &c, NULL);
    }
    for (size_t i = range_count; i-- > 0;)
        if (!only || ranges[i]->ctx == only) block_free(ranges[i], &c, NULL);
}
