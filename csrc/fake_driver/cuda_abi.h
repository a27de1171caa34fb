/*
 * The part of the CUDA driver's ABI that the fake driver speaks.
 *
 * Written from the published layouts, so that the fake builds with a C compiler alone. Handles are 64-bit integers
 * here: the fake never hands out a real pointer, so that dereferencing one faults at once.
 *
 * Invariants: sizes and offsets equal the real ones (asserted below), codes and option numbers are the real numbers.
 */
#ifndef FAKE_CUDA_ABI_H
#define FAKE_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef uint64_t CUcontext;
typedef uint64_t CUstream;
typedef uint64_t CUevent;
typedef uint64_t CUmodule;
typedef uint64_t CUfunction;
typedef uint64_t CUlinkState;
typedef uint64_t CUmemGenericAllocationHandle;
typedef uint64_t CUmemoryPool;
typedef uint64_t CUgraph;
typedef uint64_t CUgraphNode;
typedef uint64_t CUgraphExec;
typedef uint64_t CUgraphConditionalHandle;
typedef void (*CUhostFn)(void *);
typedef size_t (*CUoccupancyB2DSize)(int);

_Static_assert(sizeof(void *) == sizeof(uint64_t), "handles travel in pointer registers");

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    DEINITIALIZED = 4,
    STUB_LIBRARY = 34,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    PEER_ACCESS_UNSUPPORTED = 217,
    INVALID_PTX = 218,
    UNSUPPORTED_PTX_VERSION = 222,
    OPERATING_SYSTEM = 304,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    LOSSY_QUERY = 402,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_OUT_OF_RESOURCES = 701,
    PEER_ACCESS_ALREADY_ENABLED = 704,
    PEER_ACCESS_NOT_ENABLED = 705,
    CONTEXT_IS_DESTROYED = 709,
    HOST_MEMORY_ALREADY_REGISTERED = 712,
    HOST_MEMORY_NOT_REGISTERED = 713,
    COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    NOT_PERMITTED = 800,
    NOT_SUPPORTED = 801,
    STREAM_CAPTURE_UNSUPPORTED = 900,
    STREAM_CAPTURE_INVALIDATED = 901,
    STREAM_CAPTURE_MERGE = 902,
    STREAM_CAPTURE_UNMATCHED = 903,
    STREAM_CAPTURE_UNJOINED = 904,
    STREAM_CAPTURE_ISOLATION = 905,
    STREAM_CAPTURE_IMPLICIT = 906,
    CAPTURED_EVENT = 907,
    STREAM_CAPTURE_WRONG_THREAD = 908,
    GRAPH_EXEC_UPDATE_FAILURE = 910,
    INVALID_CLUSTER_SIZE = 912,
    UNKNOWN = 999,
};

/* Memory types of a two-dimensional copy. */
enum { MEMORY_HOST = 1, MEMORY_DEVICE = 2, MEMORY_ARRAY = 3, MEMORY_UNIFIED = 4 };

typedef struct CUDA_MEMCPY2D {
    size_t srcXInBytes, srcY;
    unsigned srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    void *srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    unsigned dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    void *dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;
_Static_assert(sizeof(CUDA_MEMCPY2D) == 128, "CUDA_MEMCPY2D");

typedef struct CUDA_MEMCPY3D {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    unsigned srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    void *srcArray, *reserved0;
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    unsigned dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    void *dstArray, *reserved1;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;
_Static_assert(sizeof(CUDA_MEMCPY3D) == 200, "CUDA_MEMCPY3D");

/* The contexts count where the side is device memory. */
typedef struct CUDA_MEMCPY3D_PEER {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    unsigned srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    void *srcArray;
    CUcontext srcContext;
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    unsigned dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    void *dstArray;
    CUcontext dstContext;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D_PEER;
_Static_assert(sizeof(CUDA_MEMCPY3D_PEER) == 200, "CUDA_MEMCPY3D_PEER");

#define PITCH_LIMIT ((size_t)INT32_MAX)

/* Virtual memory and pools. */
enum { ALLOCATION_PINNED = 1, LOCATION_DEVICE = 1, ACCESS_NONE = 0, ACCESS_READ = 1, ACCESS_READ_WRITE = 3 };

typedef struct CUmemLocation {
    int type, id;
} CUmemLocation;

typedef struct CUmemAllocationProp {
    int type, requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;
_Static_assert(sizeof(CUmemAllocationProp) == 32, "CUmemAllocationProp");

typedef struct CUmemAccessDesc {
    CUmemLocation location;
    int flags;
} CUmemAccessDesc;
_Static_assert(sizeof(CUmemAccessDesc) == 12, "CUmemAccessDesc");

typedef struct CUmemPoolProps {
    int allocType, handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;
_Static_assert(sizeof(CUmemPoolProps) == 88, "CUmemPoolProps");

enum {
    POOL_REUSE_FIRST = 1, /* 1 to 3 are ints, the others 64-bit */
    POOL_REUSE_LAST = 3,
    POOL_RELEASE_THRESHOLD = 4,
    POOL_RESERVED_CURRENT = 5,
    POOL_RESERVED_HIGH = 6,
    POOL_USED_CURRENT = 7,
    POOL_USED_HIGH = 8,
};

/* Copies in a batch. */
enum { SOURCE_IN_STREAM_ORDER = 1, SOURCE_DURING_CALL = 2, SOURCE_ANY_TIME = 3 };

typedef struct CUmemcpyAttributes {
    int srcAccessOrder;
    CUmemLocation srcLocHint, dstLocHint;
    unsigned flags;
} CUmemcpyAttributes;
_Static_assert(sizeof(CUmemcpyAttributes) == 24, "CUmemcpyAttributes");

/* Launch attributes that the fake knows. */
enum {
    ATTRIBUTE_IGNORE = 0,
    ATTRIBUTE_COOPERATIVE = 2,
    ATTRIBUTE_CLUSTER_DIMENSION = 4,
    ATTRIBUTE_CLUSTER_POLICY = 5,
    ATTRIBUTE_PROGRAMMATIC_STREAM = 6,
    ATTRIBUTE_PRIORITY = 8,
    ATTRIBUTE_LAST = 14,
};

typedef struct CUlaunchAttribute {
    unsigned id;
    char pad[4];
    union {
        char pad[64];
        int cooperative;
        int programmatic;
        struct {
            unsigned x, y, z;
        } cluster;
        int priority;
    } value;
} CUlaunchAttribute;
_Static_assert(sizeof(CUlaunchAttribute) == 72, "CUlaunchAttribute");

typedef struct CUlaunchConfig {
    unsigned gridDimX, gridDimY, gridDimZ;
    unsigned blockDimX, blockDimY, blockDimZ;
    unsigned sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
} CUlaunchConfig;
_Static_assert(sizeof(CUlaunchConfig) == 56, "CUlaunchConfig");

typedef struct CUuuid {
    unsigned char bytes[16];
} CUuuid;

typedef struct CUtensorMap {
    uint64_t opaque[16];
} CUtensorMap;
_Static_assert(sizeof(CUtensorMap) == 128, "CUtensorMap");

/* Options of the assembler in the driver, and kinds of link input. */
enum { JIT_INFO_LOG = 3, JIT_INFO_LOG_SIZE = 4, JIT_ERROR_LOG = 5, JIT_ERROR_LOG_SIZE = 6, JIT_OPTION_LAST = 40 };
enum { INPUT_CUBIN = 0, INPUT_PTX = 1, INPUT_FATBIN = 2, INPUT_OBJECT = 3, INPUT_LIBRARY = 4 };

/* Function attributes. */
enum {
    FUNCTION_MAX_THREADS = 0,
    FUNCTION_SHARED_BYTES = 1,
    FUNCTION_CONST_BYTES = 2,
    FUNCTION_LOCAL_BYTES = 3,
    FUNCTION_REGISTERS = 4,
    FUNCTION_PTX_VERSION = 5,
    FUNCTION_BINARY_VERSION = 6,
    FUNCTION_CACHE_MODE = 7,
    FUNCTION_MAX_DYNAMIC_SHARED = 8,
    FUNCTION_CARVEOUT = 9,
    FUNCTION_NON_PORTABLE_CLUSTER = 14,
    FUNCTION_ATTRIBUTE_END = 16,
};

/* Markers of the `extra` form of launch parameters. */
#define LAUNCH_PARAM_END ((void *)0)
#define LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define LAUNCH_PARAM_BUFFER_SIZE ((void *)2)

/* Flags. */
enum { EVENT_BLOCKING_SYNC = 1, EVENT_DISABLE_TIMING = 2, EVENT_INTERPROCESS = 4 };
enum { STREAM_NON_BLOCKING = 1 };
#define STREAM_LEGACY ((CUstream)1)
#define STREAM_PER_THREAD ((CUstream)2)

/* Captures and graphs. */
enum { CAPTURE_GLOBAL = 0, CAPTURE_THREAD_LOCAL = 1, CAPTURE_RELAXED = 2 };
enum { CAPTURE_NONE = 0, CAPTURE_ACTIVE = 1, CAPTURE_INVALIDATED = 2 };

typedef struct CUgraphEdgeData {
    unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;
_Static_assert(sizeof(CUgraphEdgeData) == 8, "CUgraphEdgeData");
enum { EDGE_PROGRAMMATIC = 1, PORT_PROGRAMMATIC = 1 };

typedef struct CUDA_KERNEL_NODE_PARAMS {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ;
    unsigned blockDimX, blockDimY, blockDimZ;
    unsigned sharedMemBytes;
    void **kernelParams, **extra;
    uint64_t kern; /* from here on only in the second version */
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;
_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == 72, "CUDA_KERNEL_NODE_PARAMS");

enum { DEPENDENCIES_ADD = 0, DEPENDENCIES_SET = 1 };
enum { CONDITION_IF = 0, CONDITION_WHILE = 1, CONDITION_SWITCH = 2 };
enum { CONDITION_ASSIGN_DEFAULT = 1 };

typedef struct CUDA_CONDITIONAL_NODE_PARAMS {
    CUgraphConditionalHandle handle;
    int type;
    unsigned size;
    CUgraph *phGraph_out; /* the driver's own array, returned to the caller */
    CUcontext ctx;
} CUDA_CONDITIONAL_NODE_PARAMS;
_Static_assert(sizeof(CUDA_CONDITIONAL_NODE_PARAMS) == 32, "CUDA_CONDITIONAL_NODE_PARAMS");

typedef struct CUgraphNodeParams {
    int type, reserved0[3];
    union {
        long long reserved1[29];
        CUDA_KERNEL_NODE_PARAMS kernel;
        CUgraph graph;
        CUDA_CONDITIONAL_NODE_PARAMS conditional;
    } as;
    long long reserved2;
} CUgraphNodeParams;
_Static_assert(sizeof(CUgraphNodeParams) == 256, "CUgraphNodeParams");

/* Why an instance could not take over another graph's parameters. */
enum {
    UPDATE_SUCCESS = 0,
    UPDATE_ERROR = 1,
    UPDATE_TOPOLOGY_CHANGED = 2,
    UPDATE_NODE_TYPE_CHANGED = 3,
    UPDATE_PARAMETERS_CHANGED = 5,
    UPDATE_UNSUPPORTED_FUNCTION_CHANGE = 7,
    UPDATE_ATTRIBUTES_CHANGED = 8,
};

typedef struct CUgraphExecUpdateResultInfo {
    int result;
    CUgraphNode errorNode, errorFromNode;
} CUgraphExecUpdateResultInfo;
_Static_assert(sizeof(CUgraphExecUpdateResultInfo) == 24, "CUgraphExecUpdateResultInfo");

/* Answers of cuGetProcAddress_v2. */
enum { QUERY_SUCCESS = 0, QUERY_SYMBOL_NOT_FOUND = 1, QUERY_VERSION_NOT_SUFFICIENT = 2 };

#endif
