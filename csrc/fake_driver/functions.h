/*
 * Every function that the fake driver exports: base name, CUDA version of the ABI, exported spelling.
 *
 * The list drives the numbering of functions (log, failures), cuGetProcAddress, and which exports a build for an
 * older driver leaves out (tests/fake/support.rs reads this file). One function a line, in the form below.
 */
#ifndef FAKE_FUNCTIONS_H
#define FAKE_FUNCTIONS_H

#define DRIVER_FUNCTIONS(X) \
    X(cuInit, 2000, cuInit) \
    X(cuDriverGetVersion, 2020, cuDriverGetVersion) \
    X(cuGetErrorName, 6000, cuGetErrorName) \
    X(cuGetErrorString, 6000, cuGetErrorString) \
    X(cuDeviceGet, 2000, cuDeviceGet) \
    X(cuDeviceGetCount, 2000, cuDeviceGetCount) \
    X(cuDeviceGetName, 2000, cuDeviceGetName) \
    X(cuDeviceGetUuid, 9020, cuDeviceGetUuid) \
    X(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2) \
    X(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute) \
    X(cuDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId) \
    X(cuDeviceCanAccessPeer, 4000, cuDeviceCanAccessPeer) \
    X(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain) \
    X(cuCtxGetCurrent, 4000, cuCtxGetCurrent) \
    X(cuCtxSetCurrent, 4000, cuCtxSetCurrent) \
    X(cuCtxSynchronize, 2000, cuCtxSynchronize) \
    X(cuCtxEnablePeerAccess, 4000, cuCtxEnablePeerAccess) \
    X(cuCtxDisablePeerAccess, 4000, cuCtxDisablePeerAccess) \
    X(cuCtxGetStreamPriorityRange, 5050, cuCtxGetStreamPriorityRange) \
    X(cuMemGetInfo, 3020, cuMemGetInfo_v2) \
    X(cuStreamCreateWithPriority, 5050, cuStreamCreateWithPriority) \
    X(cuStreamDestroy, 4000, cuStreamDestroy_v2) \
    X(cuStreamSynchronize, 2000, cuStreamSynchronize) \
    X(cuStreamQuery, 2000, cuStreamQuery) \
    X(cuStreamWaitEvent, 3020, cuStreamWaitEvent) \
    X(cuLaunchHostFunc, 10000, cuLaunchHostFunc) \
    X(cuEventCreate, 2000, cuEventCreate) \
    X(cuEventDestroy, 4000, cuEventDestroy_v2) \
    X(cuEventRecord, 2000, cuEventRecord) \
    X(cuEventQuery, 2000, cuEventQuery) \
    X(cuEventSynchronize, 2000, cuEventSynchronize) \
    X(cuEventElapsedTime, 2000, cuEventElapsedTime) \
    X(cuMemAlloc, 3020, cuMemAlloc_v2) \
    X(cuMemFree, 3020, cuMemFree_v2) \
    X(cuMemHostAlloc, 2020, cuMemHostAlloc) \
    X(cuMemFreeHost, 2000, cuMemFreeHost) \
    X(cuMemHostRegister, 6050, cuMemHostRegister_v2) \
    X(cuMemHostUnregister, 4000, cuMemHostUnregister) \
    X(cuMemAddressReserve, 10020, cuMemAddressReserve) \
    X(cuMemAddressFree, 10020, cuMemAddressFree) \
    X(cuMemCreate, 10020, cuMemCreate) \
    X(cuMemRelease, 10020, cuMemRelease) \
    X(cuMemMap, 10020, cuMemMap) \
    X(cuMemUnmap, 10020, cuMemUnmap) \
    X(cuMemSetAccess, 10020, cuMemSetAccess) \
    X(cuMemGetAllocationGranularity, 10020, cuMemGetAllocationGranularity) \
    X(cuMemAllocAsync, 11020, cuMemAllocAsync) \
    X(cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync) \
    X(cuMemFreeAsync, 11020, cuMemFreeAsync) \
    X(cuDeviceGetDefaultMemPool, 11020, cuDeviceGetDefaultMemPool) \
    X(cuMemPoolCreate, 11020, cuMemPoolCreate) \
    X(cuMemPoolDestroy, 11020, cuMemPoolDestroy) \
    X(cuMemPoolSetAttribute, 11020, cuMemPoolSetAttribute) \
    X(cuMemPoolGetAttribute, 11020, cuMemPoolGetAttribute) \
    X(cuMemPoolSetAccess, 11020, cuMemPoolSetAccess) \
    X(cuMemPoolTrimTo, 11020, cuMemPoolTrimTo) \
    X(cuMemcpyHtoDAsync, 3020, cuMemcpyHtoDAsync_v2) \
    X(cuMemcpyDtoHAsync, 3020, cuMemcpyDtoHAsync_v2) \
    X(cuMemcpyDtoDAsync, 3020, cuMemcpyDtoDAsync_v2) \
    X(cuMemcpyPeerAsync, 4000, cuMemcpyPeerAsync) \
    X(cuMemcpy2DAsync, 3020, cuMemcpy2DAsync_v2) \
    X(cuMemcpy3DAsync, 3020, cuMemcpy3DAsync_v2) \
    X(cuMemsetD8Async, 3020, cuMemsetD8Async) \
    X(cuMemsetD16Async, 3020, cuMemsetD16Async) \
    X(cuMemsetD32Async, 3020, cuMemsetD32Async) \
    X(cuMemsetD2D32Async, 3020, cuMemsetD2D32Async) \
    X(cuModuleLoadDataEx, 2010, cuModuleLoadDataEx) \
    X(cuModuleUnload, 2000, cuModuleUnload) \
    X(cuModuleGetFunction, 2000, cuModuleGetFunction) \
    X(cuModuleGetGlobal, 3020, cuModuleGetGlobal_v2) \
    X(cuModuleGetFunctionCount, 12040, cuModuleGetFunctionCount) \
    X(cuModuleEnumerateFunctions, 12040, cuModuleEnumerateFunctions) \
    X(cuFuncGetName, 12030, cuFuncGetName) \
    X(cuFuncGetParamInfo, 12040, cuFuncGetParamInfo) \
    X(cuFuncGetAttribute, 2020, cuFuncGetAttribute) \
    X(cuFuncSetAttribute, 9000, cuFuncSetAttribute) \
    X(cuLinkCreate, 6050, cuLinkCreate_v2) \
    X(cuLinkAddData, 6050, cuLinkAddData_v2) \
    X(cuLinkComplete, 5050, cuLinkComplete) \
    X(cuLinkDestroy, 5050, cuLinkDestroy) \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, cuOccupancyMaxActiveBlocksPerMultiprocessor) \
    X(cuOccupancyMaxPotentialBlockSize, 6050, cuOccupancyMaxPotentialBlockSize) \
    X(cuOccupancyMaxActiveClusters, 11070, cuOccupancyMaxActiveClusters) \
    X(cuLaunchKernel, 4000, cuLaunchKernel) \
    X(cuLaunchCooperativeKernel, 9000, cuLaunchCooperativeKernel) \
    X(cuLaunchKernelEx, 11060, cuLaunchKernelEx) \
    X(cuTensorMapEncodeTiled, 12000, cuTensorMapEncodeTiled) \
    X(cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2) \
    X(cuStreamEndCapture, 10000, cuStreamEndCapture) \
    X(cuStreamIsCapturing, 10000, cuStreamIsCapturing) \
    X(cuStreamGetCaptureInfo, 10010, cuStreamGetCaptureInfo) \
    X(cuStreamGetCaptureInfo, 11030, cuStreamGetCaptureInfo_v2) \
    X(cuStreamGetCaptureInfo, 12030, cuStreamGetCaptureInfo_v3) \
    X(cuThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode) \
    X(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags) \
    X(cuGraphLaunch, 10000, cuGraphLaunch) \
    X(cuGraphUpload, 11010, cuGraphUpload) \
    X(cuGraphExecDestroy, 10000, cuGraphExecDestroy) \
    X(cuGraphDestroy, 10000, cuGraphDestroy) \
    X(cuGraphGetNodes, 10000, cuGraphGetNodes) \
    X(cuGraphNodeGetType, 10000, cuGraphNodeGetType) \
    X(cuGraphGetEdges, 10000, cuGraphGetEdges) \
    X(cuGraphGetEdges, 12030, cuGraphGetEdges_v2) \
    X(cuGraphExecKernelNodeSetParams, 10010, cuGraphExecKernelNodeSetParams) \
    X(cuGraphExecKernelNodeSetParams, 12000, cuGraphExecKernelNodeSetParams_v2) \
    X(cuGraphDebugDotPrint, 11030, cuGraphDebugDotPrint) \
    X(cuGetProcAddress, 11030, cuGetProcAddress) \
    X(cuGetProcAddress, 12000, cuGetProcAddress_v2)

#endif
