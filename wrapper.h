/* The headers from which src/sys is generated: one section a library, chosen by a macro that build/bindings.rs defines.
 *
 * Driver functions are bound as the versioned function pointer types of cudaTypedefs.h, whose names state the ABI. The other
 * libraries have no such types: build/bindings.rs appends `typedef __typeof__(NAME) *PFN_NAME;` for every function of
 * src/sys/allowlist.txt, so that one mechanism binds them all and no symbol is ever linked.
 */

#if defined(SELVEDGE_BIND_DRIVER)

#include <cuda.h>
#include <cudaTypedefs.h>

/* In cuda.h, but forgotten by cudaTypedefs.h. */
typedef __typeof__(cuModuleGetFunctionCount) *PFN_cuModuleGetFunctionCount_v12040;
typedef __typeof__(cuModuleEnumerateFunctions) *PFN_cuModuleEnumerateFunctions_v12040;
typedef __typeof__(cuLibraryGetKernelCount) *PFN_cuLibraryGetKernelCount_v12040;
typedef __typeof__(cuLibraryEnumerateKernels) *PFN_cuLibraryEnumerateKernels_v12050;

/* Of CUDA 13, which took the index of the failing copy out of both. */
typedef CUresult (CUDAAPI *PFN_cuMemcpyBatchAsync_v13000)(CUdeviceptr *destinations, CUdeviceptr *sources, size_t *sizes,
                                                          size_t count, CUmemcpyAttributes *attributes,
                                                          size_t *attribute_starts, size_t attribute_count, CUstream stream);
typedef CUresult (CUDAAPI *PFN_cuMemcpy3DBatchAsync_v13000)(size_t count, CUDA_MEMCPY3D_BATCH_OP *operations,
                                                            unsigned long long flags, CUstream stream);

#elif defined(SELVEDGE_BIND_NVRTC)

#include <nvrtc.h>

#elif defined(SELVEDGE_BIND_CUBLAS)

#include <cublas_v2.h>

#elif defined(SELVEDGE_BIND_CUBLASLT)

#include <cublasLt.h>

#elif defined(SELVEDGE_BIND_NCCL)

#include <nccl.h>

#elif defined(SELVEDGE_BIND_CUPTI) || defined(SELVEDGE_BIND_CUPTI13)

#include <cupti_result.h>
#include <cupti_version.h>
#include <cupti_callbacks.h>
#include <cupti_activity.h>

#else
#error "wrapper.h: no library chosen"
#endif
