/*
 * contexts.c: the contexts of the devices: retained, current, reset, lost; and access between them.
 *
 * A primary context that is reset, or released for the last time, is destroyed with everything in it, and another one
 * takes its place: same device, another handle. Reserved addresses, physical memory and pools belong to the process
 * and stay.
 *
 * Invariants: no handle of a destroyed context is known any more, and none of them counts.
 */
#include "state.h"

/* A kernel has faulted. */
void context_fault(context *ctx) {
    for (int i = 0; i < 2 * MAX_DEVICES; i++) {
        context *one = &G.contexts[i];
        if (one == ctx || (G.faults_spread && !one->lost)) one->lost = ILLEGAL_ADDRESS;
    }
}

/* ---- contexts ---- */

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice d) {
    call c;
    if (!call_begin(&c, F_cuDevicePrimaryCtxRetain, 0)) return call_end(&c, c.result);
    if (!out) return call_end(&c, INVALID_VALUE);
    if (!device_exists(d)) return call_end(&c, INVALID_DEVICE);
    if (G.contexts[d].ruined) return call_end(&c, G.contexts[d].lost);
    G.contexts[d].retained++;
    G.counts[d].retained++;
    *out = G.contexts[d].handle;
    return call_end(&c, SUCCESS);
}

/* All that the context has ends with it, what is queued undone; it goes on under a new handle. */
static void begin_anew(context *ctx) {
    int lost = ctx->lost;
    ctx->lost = lost ? lost : CONTEXT_IS_DESTROYED; /* so that nothing of it runs, waits, or is held against anybody */
    captures_clear(ctx);
    for (size_t i = 0; i < G.pending_count;) {
        stream *s = G.pending[i];
        if (s->ctx == ctx) {
            force(s, s->enqueued);
            i = 0; /* the list has changed */
        } else {
            i++;
        }
    }
    instances_clear(ctx);
    graphs_clear(ctx);
    modules_clear(ctx);
    memory_clear(ctx);
    events_clear(ctx);
    streams_clear(ctx);
    for (int i = 0; i < 2 * MAX_DEVICES; i++) {
        context *other = &G.contexts[i];
        G.counts[ctx->device].peers -= ctx->peer[i];
        ctx->peer[i] = false;
        G.counts[other->device].peers -= other->peer[ctx - G.contexts];
        other->peer[ctx - G.contexts] = false;
    }
    handle_drop(KIND_CONTEXT, ctx->handle);
    ctx->handle = handle_new(KIND_CONTEXT, ctx);
    ctx->ruined = lost && !G.reset_recovers;
    ctx->lost = ctx->ruined ? lost : SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
    call c;
    if (!call_begin(&c, F_cuDevicePrimaryCtxRelease_v2, CALL_RELEASE)) return call_end(&c, c.result);
    if (!device_exists(d)) return call_end(&c, INVALID_DEVICE);
    context *ctx = &G.contexts[d];
    if (!ctx->retained) {
        violation(&c, "the primary context of device %d is released more often than it was retained", d);
        return call_end(&c, INVALID_CONTEXT);
    }
    G.counts[d].retained--;
    if (--ctx->retained == 0) begin_anew(ctx);
    return call_end(&c, SUCCESS);
}

/* Whoever has retained the context has it still to release. */
EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice d) {
    call c;
    if (!call_begin(&c, F_cuDevicePrimaryCtxReset_v2, 0)) return call_end(&c, c.result);
    if (!device_exists(d)) return call_end(&c, INVALID_DEVICE);
    begin_anew(&G.contexts[d]);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *out) {
    call c;
    if (!call_begin(&c, F_cuCtxGetCurrent, 0)) return call_end(&c, c.result);
    if (!out) return call_end(&c, INVALID_VALUE);
    *out = thread_context;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuCtxSetCurrent(CUcontext handle) {
    call c;
    if (!call_begin(&c, F_cuCtxSetCurrent, 0)) return call_end(&c, c.result);
    const context *ctx = handle ? context_of(handle) : NULL;
    if (handle && !ctx) {
        violation(&c, "unknown context %#llx", (unsigned long long)handle);
        return call_end(&c, INVALID_CONTEXT);
    }
    if (ctx && !ctx->foreign && !ctx->retained) {
        violation(&c, "the primary context of device %d is not retained", ctx->device);
        return call_end(&c, INVALID_CONTEXT);
    }
    thread_context = handle;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuCtxGetDevice(CUdevice *out) {
    call c;
    if (!call_begin(&c, F_cuCtxGetDevice, CALL_CONTEXT)) return call_end(&c, c.result);
    if (!out) return call_end(&c, INVALID_VALUE);
    *out = c.ctx->device;
    return call_end(&c, SUCCESS);
}

/* ---- peers ---- */

EXPORT CUresult cuDeviceCanAccessPeer(int *out, CUdevice d, CUdevice peer) {
    call c;
    if (!call_begin(&c, F_cuDeviceCanAccessPeer, 0)) return call_end(&c, c.result);
    if (!out) return call_end(&c, INVALID_VALUE);
    if (!device_exists(d) || !device_exists(peer)) return call_end(&c, INVALID_DEVICE);
    *out = d != peer && G.peer_possible;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer_handle, unsigned flags) {
    call c;
    if (!call_begin(&c, F_cuCtxEnablePeerAccess, CALL_CONTEXT)) return call_end(&c, c.result);
    const context *peer = context_of(peer_handle);
    if (flags) return call_end(&c, INVALID_VALUE);
    if (!peer || peer == c.ctx) return call_end(&c, INVALID_CONTEXT);
    if (!G.peer_possible || peer->device == c.ctx->device) return call_end(&c, PEER_ACCESS_UNSUPPORTED);
    if (c.ctx->peer[peer - G.contexts]) return call_end(&c, PEER_ACCESS_ALREADY_ENABLED);
    c.ctx->peer[peer - G.contexts] = true;
    G.counts[c.ctx->device].peers++;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer_handle) {
    call c;
    if (!call_begin(&c, F_cuCtxDisablePeerAccess, CALL_CONTEXT)) return call_end(&c, c.result);
    const context *peer = context_of(peer_handle);
    if (!peer) return call_end(&c, INVALID_CONTEXT);
    if (!c.ctx->peer[peer - G.contexts]) return call_end(&c, PEER_ACCESS_NOT_ENABLED);
    c.ctx->peer[peer - G.contexts] = false;
    G.counts[c.ctx->device].peers--;
    return call_end(&c, SUCCESS);
}
