/*
 * copies.c: copies and fills, from the call to the bytes.
 *
 * A call checks its ranges, enters itself into the histories at once and queues the work; the bytes move when the
 * operation runs.
 */
#include "state.h"

/* ---- what an operation does when it runs ---- */

void run_copy(operation *o) {
    unsigned char *to = location_data(&o->as.copy.to);
    const unsigned char *from = location_data(&o->as.copy.from);
    if (to && from)
        for (size_t y = 0; y < o->as.copy.height; y++)
            memmove(to + y * o->as.copy.to_pitch, from + y * o->as.copy.from_pitch, o->as.copy.width);
    location_drop(&o->as.copy.to);
    location_drop(&o->as.copy.from);
}

void run_fill(operation *o) {
    unsigned char *to = location_data(&o->as.fill.to);
    size_t element = o->as.fill.element;
    if (to)
        for (size_t y = 0; y < o->as.fill.height; y++) {
            unsigned char *row = to + y * o->as.fill.pitch;
            if (element == 1) {
                memset(row, (int)o->as.fill.value, o->as.fill.width);
                continue;
            }
            for (size_t x = 0; x < o->as.fill.width; x++) memcpy(row + x * element, &o->as.fill.value, element);
        }
    location_drop(&o->as.fill.to);
}

/* ---- calls ---- */

/* How many bytes a pitched area spans. */
static size_t span(size_t width, size_t height, size_t pitch) { return height ? (height - 1) * pitch + width : 0; }

static void enter(location *place, size_t bytes, bool write, const actor *who) {
    if (!place->block) {
        pageable_access(place->raw, bytes, write, who);
        return;
    }
    location_hold(place);
    location_use(place, bytes, write, who);
}

/* Device memory of another context is reached only when the stream's context has been given access. */
static void check_reach(const location *place, const stream *s, bool peer, const call *c) {
    if (!place->block || place->block->kind >= BLOCK_PINNED || place->block->ctx == s->ctx || peer) return;
    if (s->ctx->peer[place->block->ctx - G.contexts]) return;
    char text[96];
    violation(c, "%s is not of the stream's context", block_text(place->block, text));
}

static CUresult copy(call *c, CUstream stream_handle, location to, location from, size_t width, size_t height,
                     size_t to_pitch, size_t from_pitch, bool peer) {
    int result = SUCCESS;
    stream *s = stream_of(stream_handle, c, &result);
    if (!s) return call_end(c, result);
    stream_bound(s, c);
    if (!width || !height) return call_end(c, SUCCESS);
    check_reach(&to, s, peer, c);
    check_reach(&from, s, peer, c);
    actor who = stream_actor(s, c);
    enter(&from, span(width, height, from_pitch), false, &who);
    enter(&to, span(width, height, to_pitch), true, &who);
    if (!from.block && to.block && (random_next() & 1)) {
        unsigned char *snapshot = zeroed(width * height);
        for (size_t y = 0; y < height; y++) memcpy(snapshot + y * width, from.raw + y * from_pitch, width);
        from = (location){.raw = snapshot, .owned = true};
        from_pitch = width;
    }
    operation *o = operation_new(OPERATION_COPY);
    o->as.copy.to = to;
    o->as.copy.from = from;
    o->as.copy.width = width;
    o->as.copy.height = height;
    o->as.copy.to_pitch = to_pitch;
    o->as.copy.from_pitch = from_pitch;
    enqueue(s, o);
    return call_end(c, SUCCESS);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream s) {
    call c;
    location a = {0}, b = {0};
    if (!call_begin(&c, F_cuMemcpyHtoDAsync_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    if (bytes && (!locate(to, bytes, &c, &a) || !locate_host(from, bytes, &c, &b)))
        return call_end(&c, INVALID_VALUE);
    return copy(&c, s, a, b, bytes, 1, bytes, bytes, false);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream s) {
    call c;
    location a = {0}, b = {0};
    if (!call_begin(&c, F_cuMemcpyDtoHAsync_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    if (bytes && (!locate_host(to, bytes, &c, &a) || !locate(from, bytes, &c, &b)))
        return call_end(&c, INVALID_VALUE);
    return copy(&c, s, a, b, bytes, 1, bytes, bytes, false);
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
    call c;
    location a = {0}, b = {0};
    if (!call_begin(&c, F_cuMemcpyDtoDAsync_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    if (bytes && (!locate(to, bytes, &c, &a) || !locate(from, bytes, &c, &b))) return call_end(&c, INVALID_VALUE);
    return copy(&c, s, a, b, bytes, 1, bytes, bytes, true);
}

EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                  size_t bytes, CUstream s) {
    call c;
    location a = {0}, b = {0};
    if (!call_begin(&c, F_cuMemcpyPeerAsync, CALL_CONTEXT)) return call_end(&c, c.result);
    const context *to_ctx = context_of(to_context), *from_ctx = context_of(from_context);
    if (!to_ctx || !from_ctx) return call_end(&c, INVALID_CONTEXT);
    if (to_ctx->lost || from_ctx->lost) return call_end(&c, to_ctx->lost ? to_ctx->lost : from_ctx->lost);
    if (bytes && (!locate(to, bytes, &c, &a) || !locate(from, bytes, &c, &b))) return call_end(&c, INVALID_VALUE);
    if (bytes && (a.block->ctx != to_ctx || b.block->ctx != from_ctx)) {
        violation(&c, "peer copy names the wrong context for its memory");
        return call_end(&c, INVALID_VALUE);
    }
    return copy(&c, s, a, b, bytes, 1, bytes, bytes, true);
}

static bool side(const call *c, unsigned type, const void *host, CUdeviceptr device, size_t x, size_t y,
                 size_t *pitch, size_t width, size_t height, location *out) {
    if (!*pitch && height <= 1) *pitch = x + width;
    if (*pitch < x + width) return false;
    size_t skip = y * *pitch + x, bytes = span(width, height, *pitch);
    if (type == MEMORY_HOST) return locate_host((const char *)host + skip, bytes, c, out);
    return (type == MEMORY_DEVICE || type == MEMORY_UNIFIED) && locate(device + skip, bytes, c, out);
}

EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *p, CUstream s) {
    call c;
    location to = {0}, from = {0};
    if (!call_begin(&c, F_cuMemcpy2DAsync_v2, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!p) return call_end(&c, INVALID_VALUE);
    size_t width = p->WidthInBytes, height = p->Height, to_pitch = p->dstPitch, from_pitch = p->srcPitch;
    if (width && height &&
        (!side(&c, p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes, p->dstY, &to_pitch, width, height,
               &to) ||
         !side(&c, p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes, p->srcY, &from_pitch, width, height,
               &from)))
        return call_end(&c, INVALID_VALUE);
    return copy(&c, s, to, from, width, height, to_pitch, from_pitch, false);
}

static CUresult fill(call *c, CUstream stream_handle, CUdeviceptr to, uint32_t value, uint32_t element, size_t width,
                     size_t height, size_t pitch) {
    int result = SUCCESS;
    location place = {0};
    if (to % element || (height > 1 && (pitch < width * element || pitch % element)))
        return call_end(c, INVALID_VALUE);
    size_t bytes = span(width * element, height, pitch);
    if (width && height && !locate(to, bytes, c, &place)) return call_end(c, INVALID_VALUE);
    stream *s = stream_of(stream_handle, c, &result);
    if (!s) return call_end(c, result);
    stream_bound(s, c);
    if (!width || !height) return call_end(c, SUCCESS);
    check_reach(&place, s, false, c);
    actor who = stream_actor(s, c);
    enter(&place, bytes, true, &who);
    operation *o = operation_new(OPERATION_FILL);
    o->as.fill.to = place;
    o->as.fill.value = value;
    o->as.fill.element = element;
    o->as.fill.width = width;
    o->as.fill.height = height;
    o->as.fill.pitch = pitch;
    enqueue(s, o);
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
