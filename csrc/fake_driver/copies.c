/*
 * copies.c: copies and fills, from the call to the bytes.
 *
 * A call checks its ranges, enters itself into the histories at once and queues the work; the bytes move when the
 * operation runs.
 */
#include "state.h"

/* ---- what an operation does when it runs ---- */

void run_copy(operation *o) {
    const copy_request *r = &o->as.copy.how;
    unsigned char *to = location_data(&o->as.copy.to);
    const unsigned char *from = location_data(&o->as.copy.from);
    if (to && from)
        for (size_t z = 0; z < r->depth; z++)
            for (size_t y = 0; y < r->height; y++)
                memmove(to + z * r->to_slice + y * r->to_pitch, from + z * r->from_slice + y * r->from_pitch, r->width);
}

void run_fill(operation *o) {
    const fill_request *r = &o->as.fill.how;
    unsigned char *to = location_data(&o->as.fill.to);
    for (size_t y = 0; to && y < r->height; y++) {
        unsigned char *row = to + y * r->pitch;
        if (r->element == 1) {
            memset(row, (int)r->value, r->width);
            continue;
        }
        for (size_t x = 0; x < r->width; x++) memcpy(row + x * r->element, &r->value, r->element);
    }
}

/* ---- copies ---- */

/* How many bytes an area spans, from its first to its last. */
static size_t span(size_t width, size_t height, size_t pitch) { return height ? (height - 1) * pitch + width : 0; }
size_t copy_to_span(const copy_request *r) {
    return r->depth ? (r->depth - 1) * r->to_slice + span(r->width, r->height, r->to_pitch) : 0;
}
size_t copy_from_span(const copy_request *r) {
    return r->depth ? (r->depth - 1) * r->from_slice + span(r->width, r->height, r->from_pitch) : 0;
}
static bool nothing(const copy_request *r) { return !r->width || !r->height || !r->depth; }

static void enter(location *place, size_t bytes, bool write, const actor *who) {
    if (place->owned) return; /* read already */
    if (!place->block) {
        pageable_access(place->raw, bytes, write, who);
        return;
    }
    location_hold(place);
    location_use(place, bytes, write, who);
}

static void check_reach(const location *place, size_t bytes, bool write, const stream *s, bool peer, const call *c) {
    char text[96];
    if (!location_reachable(place, bytes, write, s, peer))
        violation(c, "%s is not of the stream's context, and it has no access to it", block_text(place->block, text));
}

static bool find(bool host, uint64_t address, size_t bytes, const call *c, location *out) {
    return host ? locate_host((const void *)(uintptr_t)address, bytes, c, out) : locate(address, bytes, c, out);
}

/* Finds the bytes; false, with a violation, when they are not all there. */
bool copy_places(const copy_request *r, const call *c, location *to, location *from) {
    *to = *from = (location){0};
    if (nothing(r)) return true;
    return find(r->to_host, r->to, copy_to_span(r), c, to) && find(r->from_host, r->from, copy_from_span(r), c, from);
}

/* Enters the uses into the histories and queues the copy. */
void copy_queue(const copy_request *r, location to, location from, stream *s, const actor *who, const call *c) {
    operation *o = operation_new(OPERATION_COPY);
    check_reach(&to, copy_to_span(r), true, s, r->peer, c);
    check_reach(&from, copy_from_span(r), false, s, r->peer, c);
    enter(&from, copy_from_span(r), false, who);
    enter(&to, copy_to_span(r), true, who);
    o->as.copy.how = *r;
    if (!from.block && !from.owned && to.block && (random_next() & 1)) {
        unsigned char *snapshot = zeroed(copy_from_span(r));
        memcpy(snapshot, from.raw, copy_from_span(r));
        from = (location){.raw = snapshot, .owned = true};
    }
    o->as.copy.to = to;
    o->as.copy.from = from;
    enqueue(s, o);
}

CUresult copy_call(call *c, CUstream stream_handle, const copy_request *r) {
    int result = SUCCESS;
    location to, from;
    if (!copy_places(r, c, &to, &from)) return call_end(c, INVALID_VALUE);
    stream *s = stream_of(stream_handle, c, &result);
    if (!s) return call_end(c, result);
    stream_bound(s, c);
    if (nothing(r)) return call_end(c, SUCCESS);
    if (s->capture) return call_end(c, capture_copy(s, r, &to, &from, c));
    actor who = stream_actor(s, c);
    copy_queue(r, to, from, s, &who, c);
    return call_end(c, SUCCESS);
}

static copy_request straight(uint64_t to, uint64_t from, size_t bytes) {
    return (copy_request){.to = to, .from = from, .width = bytes, .height = 1, .depth = 1};
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream s) {
    call c;
    copy_request r = straight(to, (uintptr_t)from, bytes);
    if (!call_begin(&c, F_cuMemcpyHtoDAsync_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    r.from_host = true;
    return copy_call(&c, s, &r);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream s) {
    call c;
    copy_request r = straight((uintptr_t)to, from, bytes);
    if (!call_begin(&c, F_cuMemcpyDtoHAsync_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    r.to_host = true;
    return copy_call(&c, s, &r);
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
    call c;
    copy_request r = straight(to, from, bytes);
    if (!call_begin(&c, F_cuMemcpyDtoDAsync_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    r.peer = true;
    return copy_call(&c, s, &r);
}

EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                  size_t bytes, CUstream s) {
    call c;
    location a, b;
    copy_request r = straight(to, from, bytes);
    if (!call_begin(&c, F_cuMemcpyPeerAsync, CALL_CONTEXT)) return call_end(&c, c.result);
    const context *to_ctx = context_of(to_context), *from_ctx = context_of(from_context);
    if (!to_ctx || !from_ctx) return call_end(&c, INVALID_CONTEXT);
    if (to_ctx->lost || from_ctx->lost) return call_end(&c, to_ctx->lost ? to_ctx->lost : from_ctx->lost);
    if (!copy_places(&r, &c, &a, &b)) return call_end(&c, INVALID_VALUE);
    if (bytes && (location_context(&a) != to_ctx || location_context(&b) != from_ctx)) {
        violation(&c, "peer copy names the wrong context for its memory");
        return call_end(&c, INVALID_VALUE);
    }
    r.peer = true;
    return copy_call(&c, s, &r);
}

/* One side of a pitched copy: where it begins, and its pitch, which may be left out where one row is all, as may the
 * rows of a plane where one plane is all. */
static bool side(unsigned type, const void *host, CUdeviceptr device, size_t x, size_t y, size_t z, size_t rows,
                 const copy_request *r, bool *on_host, uint64_t *address, size_t *pitch, size_t *slice) {
    if (!*pitch && r->height <= 1 && r->depth <= 1) *pitch = x + r->width;
    if (*pitch < x + r->width || *pitch > PITCH_LIMIT) return false;
    if ((rows || z || r->depth > 1) && rows < y + r->height) return false;
    *on_host = type == MEMORY_HOST;
    *slice = rows * *pitch;
    *address = (*on_host ? (uint64_t)(uintptr_t)host : device) + z * *slice + y * *pitch + x;
    return *on_host || type == MEMORY_DEVICE || type == MEMORY_UNIFIED;
}

EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *p, CUstream s) {
    call c;
    if (!call_begin(&c, F_cuMemcpy2DAsync_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!p) return call_end(&c, INVALID_VALUE);
    copy_request r = {.width = p->WidthInBytes, .height = p->Height, .depth = 1};
    r.to_pitch = p->dstPitch;
    r.from_pitch = p->srcPitch;
    if (!nothing(&r) && (!side(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes, p->dstY, 0, 0, &r,
                               &r.to_host, &r.to, &r.to_pitch, &r.to_slice) ||
                         !side(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes, p->srcY, 0, 0, &r,
                               &r.from_host, &r.from, &r.from_pitch, &r.from_slice)))
        return call_end(&c, INVALID_VALUE);
    return copy_call(&c, s, &r);
}

/* Both sides of a three-dimensional copy; false when one is not in order. */
bool copy_sides(copy_request *r, const CUDA_MEMCPY3D *p) {
    *r = (copy_request){.width = p->WidthInBytes, .height = p->Height, .depth = p->Depth};
    if (p->srcLOD || p->dstLOD) return false;
    r->to_pitch = p->dstPitch;
    r->from_pitch = p->srcPitch;
    return nothing(r) || (side(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes, p->dstY, p->dstZ,
                               p->dstHeight, r, &r->to_host, &r->to, &r->to_pitch, &r->to_slice) &&
                          side(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes, p->srcY, p->srcZ,
                               p->srcHeight, r, &r->from_host, &r->from, &r->from_pitch, &r->from_slice));
}

EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *p, CUstream s) {
    call c;
    copy_request r;
    if (!call_begin(&c, F_cuMemcpy3DAsync_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!p || p->reserved0 || p->reserved1 || !copy_sides(&r, p)) return call_end(&c, INVALID_VALUE);
    return copy_call(&c, s, &r);
}

/* ---- fills ---- */

static size_t fill_span(const fill_request *r) { return span(r->width * r->element, r->height, r->pitch); }

bool fill_place(const fill_request *r, const call *c, location *to) {
    *to = (location){0};
    return !r->width || !r->height || locate(r->to, fill_span(r), c, to);
}

void fill_queue(const fill_request *r, location to, stream *s, const actor *who, const call *c) {
    operation *o = operation_new(OPERATION_FILL);
    check_reach(&to, fill_span(r), true, s, false, c);
    enter(&to, fill_span(r), true, who);
    o->as.fill.to = to;
    o->as.fill.how = *r;
    enqueue(s, o);
}

static CUresult fill(call *c, CUstream stream_handle, CUdeviceptr to, uint32_t value, uint32_t element, size_t width,
                     size_t height, size_t pitch) {
    int result = SUCCESS;
    location place;
    fill_request r = {to, value, element, width, height, pitch};
    if (to % element || (height > 1 && (pitch < width * element || pitch % element)))
        return call_end(c, INVALID_VALUE);
    if (!fill_place(&r, c, &place)) return call_end(c, INVALID_VALUE);
    stream *s = stream_of(stream_handle, c, &result);
    if (!s) return call_end(c, result);
    stream_bound(s, c);
    if (!width || !height) return call_end(c, SUCCESS);
    if (s->capture) return call_end(c, capture_fill(s, &r, &place, c));
    actor who = stream_actor(s, c);
    fill_queue(&r, place, s, &who, c);
    return call_end(c, SUCCESS);
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream s) {
    call c;
    if (!call_begin(&c, F_cuMemsetD8Async, CALL_CONTEXT)) return call_end(&c, c.result);
    return fill(&c, s, to, value, 1, n, 1, n);
}

EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t n, CUstream s) {
    call c;
    if (!call_begin(&c, F_cuMemsetD16Async, CALL_CONTEXT)) return call_end(&c, c.result);
    return fill(&c, s, to, value, 2, n, 1, 2 * n);
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream s) {
    call c;
    if (!call_begin(&c, F_cuMemsetD32Async, CALL_CONTEXT)) return call_end(&c, c.result);
    return fill(&c, s, to, value, 4, n, 1, 4 * n);
}

EXPORT CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                                   CUstream s) {
    call c;
    if (!call_begin(&c, F_cuMemsetD2D32Async, CALL_CONTEXT)) return call_end(&c, c.result);
    return fill(&c, s, to, value, 4, width, height, pitch);
}
