/*
 * device.c: initialisation, devices, and names of errors.
 */
#include "state.h"

EXPORT CUresult cuInit(unsigned flags) {
    call c;
    if (!call_begin(&c, F_cuInit, CALL_EARLY)) return call_end(&c, c.result);
    if (flags) return call_end(&c, INVALID_VALUE);
    if (G.init_code) return call_end(&c, G.init_code);
    if (!G.devices) return call_end(&c, NO_DEVICE);
    G.initialised = true;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuDriverGetVersion(int *out) {
    call c;
    if (!call_begin(&c, F_cuDriverGetVersion, CALL_EARLY)) return call_end(&c, c.result);
    if (!out) return call_end(&c, INVALID_VALUE);
    *out = G.version;
    return call_end(&c, SUCCESS);
}

/* No function of the list: NVRTC from 12.9 on asks a driver that is already loaded for tables of its own, and takes it
 * that it can ask. There are none here. */
EXPORT CUresult cuGetExportTable(const void **out, const void *id) {
    (void)id;
    if (out) *out = NULL;
    return NOT_FOUND;
}

/* ---- names of errors ---- */

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
    {SUCCESS, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {STUB_LIBRARY, "CUDA_ERROR_STUB_LIBRARY", "stub library"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "invalid kernel image"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image for this device"},
    {INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "PTX assembly failed"},
    {UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "unsupported PTX version"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "illegal memory access"},
    {CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "the context was destroyed"},
    {NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not permitted while a stream captures"},
    {STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "the capture was invalidated before"},
    {STREAM_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "two captures would merge"},
    {STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the capture began in another stream"},
    {STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "a fork of the capture was not joined"},
    {STREAM_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "a dependency would leave the capture"},
    {STREAM_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "the legacy stream would join the capture"},
    {CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT", "the event was recorded in a capture"},
    {STREAM_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "the capture began on another thread"},
    {GRAPH_EXEC_UPDATE_FAILURE, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the instance cannot become that graph"},
    {UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static CUresult error_text(call *c, int code, const char **out, bool name) {
    if (!out) return call_end(c, INVALID_VALUE);
    *out = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == code) {
            *out = name ? errors[i].name : errors[i].text;
            return call_end(c, SUCCESS);
        }
    return call_end(c, INVALID_VALUE);
}

EXPORT CUresult cuGetErrorName(CUresult code, const char **out) {
    call c;
    if (!call_begin(&c, F_cuGetErrorName, CALL_EARLY)) return call_end(&c, c.result);
    return error_text(&c, code, out, true);
}

EXPORT CUresult cuGetErrorString(CUresult code, const char **out) {
    call c;
    if (!call_begin(&c, F_cuGetErrorString, CALL_EARLY)) return call_end(&c, c.result);
    return error_text(&c, code, out, false);
}

/* ---- devices ---- */

bool device_exists(CUdevice d) { return d >= 0 && d < G.devices; }

EXPORT CUresult cuDeviceGetCount(int *out) {
    call c;
    if (!call_begin(&c, F_cuDeviceGetCount, 0)) return call_end(&c, c.result);
    if (!out) return call_end(&c, INVALID_VALUE);
    *out = G.devices;
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuDeviceGet(CUdevice *out, int ordinal) {
    call c;
    if (!call_begin(&c, F_cuDeviceGet, 0)) return call_end(&c, c.result);
    if (!out) return call_end(&c, INVALID_VALUE);
    if (!device_exists(ordinal)) return call_end(&c, INVALID_DEVICE);
    *out = ordinal;
    return call_end(&c, SUCCESS);
}

static CUresult give_text(call *c, char *out, int capacity, CUdevice d, const char *format) {
    char text[64];
    if (!out || capacity < 1) return call_end(c, INVALID_VALUE);
    if (!device_exists(d)) return call_end(c, INVALID_DEVICE);
    snprintf(text, sizeof text, format, d);
    text_out(text, strlen(text), out, (size_t)capacity);
    return call_end(c, SUCCESS);
}

EXPORT CUresult cuDeviceGetName(char *out, int capacity, CUdevice d) {
    call c;
    if (!call_begin(&c, F_cuDeviceGetName, 0)) return call_end(&c, c.result);
    return give_text(&c, out, capacity, d, "Fake GPU %d");
}

EXPORT CUresult cuDeviceGetPCIBusId(char *out, int capacity, CUdevice d) {
    call c;
    if (!call_begin(&c, F_cuDeviceGetPCIBusId, 0)) return call_end(&c, c.result);
    if (capacity < 13) return call_end(&c, INVALID_VALUE);
    return give_text(&c, out, capacity, d, "0000:%02X:00.0");
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *out, CUdevice d) {
    call c;
    if (!call_begin(&c, F_cuDeviceGetUuid, 0)) return call_end(&c, c.result);
    if (!out) return call_end(&c, INVALID_VALUE);
    if (!device_exists(d)) return call_end(&c, INVALID_DEVICE);
    for (int i = 0; i < 16; i++) out->bytes[i] = (unsigned char)(16 * d + i);
    return call_end(&c, SUCCESS);
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice d) {
    call c;
    if (!call_begin(&c, F_cuDeviceTotalMem_v2, 0)) return call_end(&c, c.result);
    if (!out) return call_end(&c, INVALID_VALUE);
    if (!device_exists(d)) return call_end(&c, INVALID_DEVICE);
    *out = G.memory;
    return call_end(&c, SUCCESS);
}

static const struct {
    short attribute;
    int value;
} attributes[] = {
    {1, 1024},      {2, 1024},    {3, 1024},   {4, 64},         {5, INT32_MAX}, {6, 65535},    {7, 65535},
    {8, 49152},     {9, 65536},   {10, 32},    {11, INT32_MAX}, {12, 65536},    {13, 1980000}, {14, 512},
    {15, 1},        {16, 132},    {19, 1},     {31, 1},         {32, 1},        {36, 3201000}, {37, 6144},
    {38, 62914560}, {39, 2048},   {40, 3},     {41, 1},         {51, 32},       {78, 1},       {79, 1},
    {80, 1},        {81, 233472}, {82, 65536}, {83, 1},         {89, 1},        {90, 1},       {91, 1},
    {95, 1},        {97, 232448}, {99, 1},     {102, 1},        {106, 32},      {111, 1024},   {115, 1},
};

EXPORT CUresult cuDeviceGetAttribute(int *out, int attribute, CUdevice d) {
    call c;
    if (!call_begin(&c, F_cuDeviceGetAttribute, 0)) return call_end(&c, c.result);
    if (!out || attribute < 1 || attribute > 143) return call_end(&c, INVALID_VALUE);
    if (!device_exists(d)) return call_end(&c, INVALID_DEVICE);
    *out = 0;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (attributes[i].attribute == attribute) *out = attributes[i].value;
    if (attribute == 33) *out = d; /* PCI bus */
    if (attribute == 75) *out = G.capability / 10;
    if (attribute == 76) *out = G.capability % 10;
    if (attribute == 120 || attribute == 127) *out = G.capability >= 90; /* clusters, tensor maps */
    if (attribute == 16 && G.multiprocessors) *out = G.multiprocessors;
    if (attribute == G.hidden_attribute) *out = 0;
    return call_end(&c, SUCCESS);
}
