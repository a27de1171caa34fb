/*
 * batches.c: copies between contexts in three dimensions, and many copies in one call.
 *
 * A batch comes in the order of its stream as a whole; its copies are in no order among themselves, so that two of
 * them may not use the same bytes with one writing: that is a violation, as it is between nodes of a graph. Each copy
 * is entered as one by itself. Captures of batches are not modelled.
 */
#include "state.h"

EXPORT CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *p, CUstream s) {
    call c;
    location to, from;
    copy_request r;
    CUDA_MEMCPY3D plain;
    if (!call_begin(&c, F_cuMemcpy3DPeerAsync, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!p) return call_end(&c, INVALID_VALUE);
    _Static_assert(sizeof plain == sizeof *p, "they differ in the contexts only");
    memcpy(&plain, p, sizeof plain);
    if (!copy_sides(&r, &plain)) return call_end(&c, INVALID_VALUE);
    const context *to_ctx = context_of(p->dstContext), *from_ctx = context_of(p->srcContext);
    if ((!r.to_host && !to_ctx) || (!r.from_host && !from_ctx)) return call_end(&c, INVALID_CONTEXT);
    if (to_ctx && to_ctx->lost) return call_end(&c, to_ctx->lost);
    if (from_ctx && from_ctx->lost) return call_end(&c, from_ctx->lost);
    if (!copy_places(&r, &c, &to, &from)) return call_end(&c, INVALID_VALUE);
    bool wrong = (to.block && !r.to_host && location_context(&to) != to_ctx) ||
                 (from.block && !r.from_host && location_context(&from) != from_ctx);
    if (wrong) {
        violation(&c, "peer copy names the wrong context for its memory");
        return call_end(&c, INVALID_VALUE);
    }
    r.peer = true;
    return copy_call(&c, s, &r);
}

/* ---- batches ---- */

/* Device memory, pinned memory or, when it is neither, pageable memory of the host. */
static bool on_host(uint64_t address) {
    size_t offset;
    return !block_at(address, &offset) && !(address >> 62);
}

static bool overlap(uint64_t a, size_t a_bytes, uint64_t b, size_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
}

static void check_batch(const copy_request *r, size_t count, const call *c) {
    for (size_t i = 0; i < count; i++)
        for (size_t n = 0; n < i; n++)
            if (overlap(r[i].to, r[i].width, r[n].to, r[n].width) ||
                overlap(r[i].to, r[i].width, r[n].from, r[n].width) ||
                overlap(r[i].from, r[i].width, r[n].to, r[n].width))
                violation(c, "copies %zu and %zu of a batch are in no order and use the same bytes", n, i);
}

/* Host memory that is read before the call returns: what the copy will copy is here. */
static void read_now(location *place, size_t bytes, const call *c) {
    actor who = host_actor(F_CONTROL, c);
    unsigned char *snapshot = zeroed(bytes);
    if (place->block) location_use(place, bytes, false, &who);
    memcpy(snapshot, location_data(place), bytes);
    *place = (location){.raw = snapshot, .owned = true};
}

/* Returns whether the attributes cover all copies, in order; else `failed` is the first copy that they do not. */
static bool covered(const CUmemcpyAttributes *list, const size_t *first, size_t lists, size_t count, size_t *failed) {
    if (!lists || lists > count || !list || !first || first[0]) return false;
    for (size_t i = 1; i < lists; i++)
        if (first[i] <= first[i - 1] || first[i] >= count) return false;
    for (size_t i = 0; i < lists; i++) {
        if (list[i].srcAccessOrder >= SOURCE_IN_STREAM_ORDER && list[i].srcAccessOrder <= SOURCE_ANY_TIME &&
            list[i].flags <= 1)
            continue;
        *failed = first[i];
        return false;
    }
    return true;
}

static CUresult batch(call *c, const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes, size_t count,
                      const CUmemcpyAttributes *list, const size_t *first, size_t lists, size_t *failed,
                      CUstream handle) {
    int result = SUCCESS;
    size_t unused, *fail = failed ? failed : &unused;
    *fail = SIZE_MAX;
    if (!count || !to || !from || !bytes || !covered(list, first, lists, count, fail)) return call_end(c, INVALID_VALUE);
    if (handle <= STREAM_PER_THREAD) return call_end(c, INVALID_VALUE);
    stream *s = stream_of(handle, c, &result);
    if (!s) return call_end(c, result);
    copy_request *r = zeroed(count * sizeof *r);
    location *places = zeroed(2 * count * sizeof *places);
    for (size_t i = 0; i < count && result == SUCCESS; i++) {
        r[i] = (copy_request){.to = to[i], .from = from[i], .width = bytes[i], .height = 1, .depth = 1, .peer = true};
        r[i].to_host = on_host(to[i]);
        r[i].from_host = on_host(from[i]);
        if (bytes[i] && copy_places(&r[i], c, &places[2 * i], &places[2 * i + 1])) continue;
        *fail = i;
        result = INVALID_VALUE;
    }
    if (result == SUCCESS) {
        stream_bound(s, c);
        if (s->capture) result = capture_refuse(s->capture, STREAM_CAPTURE_UNSUPPORTED);
    }
    if (result == SUCCESS) {
        check_batch(r, count, c);
        actor who = stream_actor(s, c);
        for (size_t i = 0, at = 0; i < count; i++) {
            while (at + 1 < lists && first[at + 1] <= i) at++;
            location *source = &places[2 * i + 1];
            bool device = source->block && source->block->kind < BLOCK_PINNED;
            if (!device && list[at].srcAccessOrder == SOURCE_DURING_CALL) read_now(source, bytes[i], c);
            if (device && list[at].srcAccessOrder != SOURCE_IN_STREAM_ORDER)
                violation(c, "copy %zu of a batch reads device memory in no order with its stream", i);
            copy_queue(&r[i], places[2 * i], places[2 * i + 1], s, &who, c);
        }
    }
    free(places);
    free(r);
    return call_end(c, result);
}

EXPORT CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                                   CUmemcpyAttributes *list, size_t *first, size_t lists, size_t *failed, CUstream s) {
    call c;
    if (!call_begin(&c, F_cuMemcpyBatchAsync, CALL_CONTEXT)) return call_end(&c, c.result);
    return batch(&c, to, from, bytes, count, list, first, lists, failed, s);
}

EXPORT CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                                      CUmemcpyAttributes *list, size_t *first, size_t lists, CUstream s) {
    call c;
    if (!call_begin(&c, F_cuMemcpyBatchAsync_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    return batch(&c, to, from, bytes, count, list, first, lists, NULL, s);
}
