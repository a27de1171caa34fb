//! The functions that the crate calls, one line each: see [`super::symbols`].
//!
//! The committed bindings have more functions; add a line when code begins to call one.

use std::ffi::c_void;

use super::symbols::{Binding, Loaded, Slot, Symbol, abi_version, symbols};
use crate::error::Error;

symbols! {
    /// The driver's functions that the crate calls.
    ///
    /// The required ones are older than the oldest supported driver (CUDA 11.4).
    DriverApi from driver;
    cuInit: PFN_cuInit_v2000 "cuInit" required;
    cuDriverGetVersion: PFN_cuDriverGetVersion_v2020 "cuDriverGetVersion" required;
    cuGetErrorName: PFN_cuGetErrorName_v6000 "cuGetErrorName" required;
    cuGetErrorString: PFN_cuGetErrorString_v6000 "cuGetErrorString" required;
    cuDeviceGet: PFN_cuDeviceGet_v2000 "cuDeviceGet" required;
    cuDeviceGetCount: PFN_cuDeviceGetCount_v2000 "cuDeviceGetCount" required;
    cuDeviceGetName: PFN_cuDeviceGetName_v2000 "cuDeviceGetName" required;
    cuDeviceGetUuid: PFN_cuDeviceGetUuid_v9020 "cuDeviceGetUuid" required;
    cuDeviceTotalMem: PFN_cuDeviceTotalMem_v3020 "cuDeviceTotalMem_v2" required;
    cuDeviceGetAttribute: PFN_cuDeviceGetAttribute_v2000 "cuDeviceGetAttribute" required;
    cuDeviceGetPCIBusId: PFN_cuDeviceGetPCIBusId_v4010 "cuDeviceGetPCIBusId" required;
    cuDeviceCanAccessPeer: PFN_cuDeviceCanAccessPeer_v4000 "cuDeviceCanAccessPeer" required;
    cuDevicePrimaryCtxRetain: PFN_cuDevicePrimaryCtxRetain_v7000 "cuDevicePrimaryCtxRetain" required;
    cuDevicePrimaryCtxReset: PFN_cuDevicePrimaryCtxReset_v11000 "cuDevicePrimaryCtxReset_v2" required;
    cuCtxGetCurrent: PFN_cuCtxGetCurrent_v4000 "cuCtxGetCurrent" required;
    cuCtxSetCurrent: PFN_cuCtxSetCurrent_v4000 "cuCtxSetCurrent" required;
    cuCtxGetDevice: PFN_cuCtxGetDevice_v2000 "cuCtxGetDevice" required;
    cuCtxSynchronize: PFN_cuCtxSynchronize_v2000 "cuCtxSynchronize" required;
    cuCtxEnablePeerAccess: PFN_cuCtxEnablePeerAccess_v4000 "cuCtxEnablePeerAccess" required;
    cuCtxDisablePeerAccess: PFN_cuCtxDisablePeerAccess_v4000 "cuCtxDisablePeerAccess" required;
    cuCtxGetStreamPriorityRange: PFN_cuCtxGetStreamPriorityRange_v5050 "cuCtxGetStreamPriorityRange" required;
    cuMemGetInfo: PFN_cuMemGetInfo_v3020 "cuMemGetInfo_v2" required;
    cuStreamCreateWithPriority: PFN_cuStreamCreateWithPriority_v5050 "cuStreamCreateWithPriority" required;
    cuStreamGetCtx: PFN_cuStreamGetCtx_v9020 "cuStreamGetCtx" required;
    cuStreamIsCapturing: PFN_cuStreamIsCapturing_v10000 "cuStreamIsCapturing" required;
    cuStreamDestroy: PFN_cuStreamDestroy_v4000 "cuStreamDestroy_v2" required;
    cuStreamSynchronize: PFN_cuStreamSynchronize_v2000 "cuStreamSynchronize" required;
    cuStreamQuery: PFN_cuStreamQuery_v2000 "cuStreamQuery" required;
    cuStreamWaitEvent: PFN_cuStreamWaitEvent_v3020 "cuStreamWaitEvent" required;
    cuStreamBeginCapture: PFN_cuStreamBeginCapture_v10010 "cuStreamBeginCapture_v2" required;
    cuStreamEndCapture: PFN_cuStreamEndCapture_v10000 "cuStreamEndCapture" required;
    cuStreamGetCaptureInfo: PFN_cuStreamGetCaptureInfo_v12030 "cuStreamGetCaptureInfo_v3" optional;
    cuStreamUpdateCaptureDependencies: PFN_cuStreamUpdateCaptureDependencies_v12030 "cuStreamUpdateCaptureDependencies_v2" optional;
    cuStreamBeginCaptureToGraph: PFN_cuStreamBeginCaptureToGraph_v12030 "cuStreamBeginCaptureToGraph" optional;
    cuThreadExchangeStreamCaptureMode: PFN_cuThreadExchangeStreamCaptureMode_v10010 "cuThreadExchangeStreamCaptureMode" required;
    cuLaunchHostFunc: PFN_cuLaunchHostFunc_v10000 "cuLaunchHostFunc" required;
    cuEventCreate: PFN_cuEventCreate_v2000 "cuEventCreate" required;
    cuEventDestroy: PFN_cuEventDestroy_v4000 "cuEventDestroy_v2" required;
    cuEventRecord: PFN_cuEventRecord_v2000 "cuEventRecord" required;
    cuEventQuery: PFN_cuEventQuery_v2000 "cuEventQuery" required;
    cuEventSynchronize: PFN_cuEventSynchronize_v2000 "cuEventSynchronize" required;
    cuEventElapsedTime: PFN_cuEventElapsedTime_v2000 "cuEventElapsedTime" required;
    cuPointerGetAttribute: PFN_cuPointerGetAttribute_v4000 "cuPointerGetAttribute" required;
    cuMemAlloc: PFN_cuMemAlloc_v3020 "cuMemAlloc_v2" required;
    cuMemFree: PFN_cuMemFree_v3020 "cuMemFree_v2" required;
    cuMemGetAllocationGranularity: PFN_cuMemGetAllocationGranularity_v10020 "cuMemGetAllocationGranularity" required;
    cuMemAddressReserve: PFN_cuMemAddressReserve_v10020 "cuMemAddressReserve" required;
    cuMemAddressFree: PFN_cuMemAddressFree_v10020 "cuMemAddressFree" required;
    cuMemCreate: PFN_cuMemCreate_v10020 "cuMemCreate" required;
    cuMemRelease: PFN_cuMemRelease_v10020 "cuMemRelease" required;
    cuMemMap: PFN_cuMemMap_v10020 "cuMemMap" required;
    cuMemUnmap: PFN_cuMemUnmap_v10020 "cuMemUnmap" required;
    cuMemSetAccess: PFN_cuMemSetAccess_v10020 "cuMemSetAccess" required;
    cuMemPoolCreate: PFN_cuMemPoolCreate_v11020 "cuMemPoolCreate" required;
    cuMemPoolSetAttribute: PFN_cuMemPoolSetAttribute_v11020 "cuMemPoolSetAttribute" required;
    cuMemPoolSetAccess: PFN_cuMemPoolSetAccess_v11020 "cuMemPoolSetAccess" required;
    cuMemPoolTrimTo: PFN_cuMemPoolTrimTo_v11020 "cuMemPoolTrimTo" required;
    cuMemAllocFromPoolAsync: PFN_cuMemAllocFromPoolAsync_v11020 "cuMemAllocFromPoolAsync" required;
    cuMemFreeAsync: PFN_cuMemFreeAsync_v11020 "cuMemFreeAsync" required;
    cuMemHostAlloc: PFN_cuMemHostAlloc_v2020 "cuMemHostAlloc" required;
    cuMemFreeHost: PFN_cuMemFreeHost_v2000 "cuMemFreeHost" required;
    cuMemHostRegister: PFN_cuMemHostRegister_v6050 "cuMemHostRegister_v2" required;
    cuMemHostUnregister: PFN_cuMemHostUnregister_v4000 "cuMemHostUnregister" required;
    cuMemcpyHtoDAsync: PFN_cuMemcpyHtoDAsync_v3020 "cuMemcpyHtoDAsync_v2" required;
    cuMemcpyDtoHAsync: PFN_cuMemcpyDtoHAsync_v3020 "cuMemcpyDtoHAsync_v2" required;
    cuMemcpyDtoDAsync: PFN_cuMemcpyDtoDAsync_v3020 "cuMemcpyDtoDAsync_v2" required;
    cuMemcpyPeerAsync: PFN_cuMemcpyPeerAsync_v4000 "cuMemcpyPeerAsync" required;
    cuMemcpy2DAsync: PFN_cuMemcpy2DAsync_v3020 "cuMemcpy2DAsync_v2" required;
    cuMemcpy3DAsync: PFN_cuMemcpy3DAsync_v3020 "cuMemcpy3DAsync_v2" required;
    cuMemcpyBatchAsync: PFN_cuMemcpyBatchAsync_v12080 "cuMemcpyBatchAsync" optional;
    cuMemsetD8Async: PFN_cuMemsetD8Async_v3020 "cuMemsetD8Async" required;
    cuMemsetD16Async: PFN_cuMemsetD16Async_v3020 "cuMemsetD16Async" required;
    cuMemsetD32Async: PFN_cuMemsetD32Async_v3020 "cuMemsetD32Async" required;
    cuMemsetD2D32Async: PFN_cuMemsetD2D32Async_v3020 "cuMemsetD2D32Async" required;
    cuModuleLoadDataEx: PFN_cuModuleLoadDataEx_v2010 "cuModuleLoadDataEx" required;
    cuModuleUnload: PFN_cuModuleUnload_v2000 "cuModuleUnload" required;
    cuModuleGetFunction: PFN_cuModuleGetFunction_v2000 "cuModuleGetFunction" required;
    cuModuleGetGlobal: PFN_cuModuleGetGlobal_v3020 "cuModuleGetGlobal_v2" required;
    cuModuleGetFunctionCount: PFN_cuModuleGetFunctionCount_v12040 "cuModuleGetFunctionCount" optional;
    cuModuleEnumerateFunctions: PFN_cuModuleEnumerateFunctions_v12040 "cuModuleEnumerateFunctions" optional;
    cuFuncGetName: PFN_cuFuncGetName_v12030 "cuFuncGetName" optional;
    cuFuncGetParamInfo: PFN_cuFuncGetParamInfo_v12040 "cuFuncGetParamInfo" optional;
    cuFuncGetAttribute: PFN_cuFuncGetAttribute_v2020 "cuFuncGetAttribute" required;
    cuFuncSetAttribute: PFN_cuFuncSetAttribute_v9000 "cuFuncSetAttribute" required;
    cuLinkCreate: PFN_cuLinkCreate_v6050 "cuLinkCreate_v2" required;
    cuLinkAddData: PFN_cuLinkAddData_v6050 "cuLinkAddData_v2" required;
    cuLinkComplete: PFN_cuLinkComplete_v5050 "cuLinkComplete" required;
    cuLinkDestroy: PFN_cuLinkDestroy_v5050 "cuLinkDestroy" required;
    cuOccupancyMaxActiveBlocksPerMultiprocessor: PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050 "cuOccupancyMaxActiveBlocksPerMultiprocessor" required;
    cuOccupancyMaxPotentialBlockSize: PFN_cuOccupancyMaxPotentialBlockSize_v6050 "cuOccupancyMaxPotentialBlockSize" required;
    cuOccupancyMaxActiveClusters: PFN_cuOccupancyMaxActiveClusters_v11070 "cuOccupancyMaxActiveClusters" optional;
    cuLaunchKernel: PFN_cuLaunchKernel_v4000 "cuLaunchKernel" required;
    cuLaunchCooperativeKernel: PFN_cuLaunchCooperativeKernel_v9000 "cuLaunchCooperativeKernel" required;
    cuLaunchKernelEx: PFN_cuLaunchKernelEx_v11060 "cuLaunchKernelEx" optional;
    cuGraphInstantiateWithFlags: PFN_cuGraphInstantiateWithFlags_v11040 "cuGraphInstantiateWithFlags" required;
    cuGraphLaunch: PFN_cuGraphLaunch_v10000 "cuGraphLaunch" required;
    cuGraphUpload: PFN_cuGraphUpload_v11010 "cuGraphUpload" required;
    cuGraphDestroy: PFN_cuGraphDestroy_v10000 "cuGraphDestroy" required;
    cuGraphExecDestroy: PFN_cuGraphExecDestroy_v10000 "cuGraphExecDestroy" required;
    cuGraphGetNodes: PFN_cuGraphGetNodes_v10000 "cuGraphGetNodes" required;
    cuGraphGetEdges: PFN_cuGraphGetEdges_v12030 "cuGraphGetEdges_v2" optional;
    cuGraphNodeGetType: PFN_cuGraphNodeGetType_v10000 "cuGraphNodeGetType" required;
    cuGraphKernelNodeGetParams: PFN_cuGraphKernelNodeGetParams_v12000 "cuGraphKernelNodeGetParams_v2" optional;
    cuGraphExecKernelNodeSetParams: PFN_cuGraphExecKernelNodeSetParams_v12000 "cuGraphExecKernelNodeSetParams_v2" optional;
    cuGraphAddNode: PFN_cuGraphAddNode_v12030 "cuGraphAddNode_v2" optional;
    cuGraphConditionalHandleCreate: PFN_cuGraphConditionalHandleCreate_v12030 "cuGraphConditionalHandleCreate" optional;
    cuGraphExecUpdate: PFN_cuGraphExecUpdate_v12000 "cuGraphExecUpdate_v2" optional;
    cuTensorMapEncodeTiled: PFN_cuTensorMapEncodeTiled_v12000 "cuTensorMapEncodeTiled" optional;
}

symbols! {
    /// NVRTC's functions that the crate calls.
    NvrtcApi from nvrtc;
    nvrtcVersion: PFN_nvrtcVersion "nvrtcVersion" required;
    nvrtcGetNumSupportedArchs: PFN_nvrtcGetNumSupportedArchs "nvrtcGetNumSupportedArchs" required;
    nvrtcGetSupportedArchs: PFN_nvrtcGetSupportedArchs "nvrtcGetSupportedArchs" required;
    nvrtcCreateProgram: PFN_nvrtcCreateProgram "nvrtcCreateProgram" required;
    nvrtcDestroyProgram: PFN_nvrtcDestroyProgram "nvrtcDestroyProgram" required;
    nvrtcAddNameExpression: PFN_nvrtcAddNameExpression "nvrtcAddNameExpression" required;
    nvrtcCompileProgram: PFN_nvrtcCompileProgram "nvrtcCompileProgram" required;
    nvrtcGetLoweredName: PFN_nvrtcGetLoweredName "nvrtcGetLoweredName" required;
    nvrtcGetProgramLogSize: PFN_nvrtcGetProgramLogSize "nvrtcGetProgramLogSize" required;
    nvrtcGetProgramLog: PFN_nvrtcGetProgramLog "nvrtcGetProgramLog" required;
    nvrtcGetPTXSize: PFN_nvrtcGetPTXSize "nvrtcGetPTXSize" required;
    nvrtcGetPTX: PFN_nvrtcGetPTX "nvrtcGetPTX" required;
    nvrtcGetCUBINSize: PFN_nvrtcGetCUBINSize "nvrtcGetCUBINSize" required;
    nvrtcGetCUBIN: PFN_nvrtcGetCUBIN "nvrtcGetCUBIN" required;
}

symbols! {
    /// cuBLAS's functions that the crate calls.
    CublasApi from cublas;
    cublasGetProperty: PFN_cublasGetProperty "cublasGetProperty" required;
    cublasCreate: PFN_cublasCreate_v2 "cublasCreate_v2" optional;
    cublasSetMathMode: PFN_cublasSetMathMode "cublasSetMathMode" optional;
    cublasSetStream: PFN_cublasSetStream_v2 "cublasSetStream_v2" optional;
    cublasSetWorkspace: PFN_cublasSetWorkspace_v2 "cublasSetWorkspace_v2" optional;
    cublasGemmEx: PFN_cublasGemmEx "cublasGemmEx" optional;
    cublasGemmStridedBatchedEx: PFN_cublasGemmStridedBatchedEx "cublasGemmStridedBatchedEx" optional;
}

symbols! {
    /// cuBLASLt's functions that the crate calls.
    CublasLtApi from cublaslt;
    cublasLtGetVersion: PFN_cublasLtGetVersion "cublasLtGetVersion" required;
    cublasLtCreate: PFN_cublasLtCreate "cublasLtCreate" optional;
    cublasLtMatmul: PFN_cublasLtMatmul "cublasLtMatmul" optional;
    cublasLtMatmulAlgoGetHeuristic: PFN_cublasLtMatmulAlgoGetHeuristic "cublasLtMatmulAlgoGetHeuristic" optional;
    cublasLtMatmulDescCreate: PFN_cublasLtMatmulDescCreate "cublasLtMatmulDescCreate" optional;
    cublasLtMatmulDescDestroy: PFN_cublasLtMatmulDescDestroy "cublasLtMatmulDescDestroy" optional;
    cublasLtMatmulDescSetAttribute: PFN_cublasLtMatmulDescSetAttribute "cublasLtMatmulDescSetAttribute" optional;
    cublasLtMatmulPreferenceCreate: PFN_cublasLtMatmulPreferenceCreate "cublasLtMatmulPreferenceCreate" optional;
    cublasLtMatmulPreferenceDestroy: PFN_cublasLtMatmulPreferenceDestroy "cublasLtMatmulPreferenceDestroy" optional;
    cublasLtMatmulPreferenceSetAttribute: PFN_cublasLtMatmulPreferenceSetAttribute "cublasLtMatmulPreferenceSetAttribute" optional;
    cublasLtMatrixLayoutCreate: PFN_cublasLtMatrixLayoutCreate "cublasLtMatrixLayoutCreate" optional;
    cublasLtMatrixLayoutDestroy: PFN_cublasLtMatrixLayoutDestroy "cublasLtMatrixLayoutDestroy" optional;
    cublasLtMatrixLayoutSetAttribute: PFN_cublasLtMatrixLayoutSetAttribute "cublasLtMatrixLayoutSetAttribute" optional;
}

symbols! {
    /// NCCL's functions that the crate calls.
    NcclApi from nccl;
    ncclGetVersion: PFN_ncclGetVersion "ncclGetVersion" required;
    ncclGetLastError: PFN_ncclGetLastError "ncclGetLastError" optional;
    ncclGetUniqueId: PFN_ncclGetUniqueId "ncclGetUniqueId" optional;
    ncclCommInitRankConfig: PFN_ncclCommInitRankConfig "ncclCommInitRankConfig" optional;
    ncclCommGetAsyncError: PFN_ncclCommGetAsyncError "ncclCommGetAsyncError" optional;
    ncclCommFinalize: PFN_ncclCommFinalize "ncclCommFinalize" optional;
    ncclCommDestroy: PFN_ncclCommDestroy "ncclCommDestroy" optional;
    ncclCommAbort: PFN_ncclCommAbort "ncclCommAbort" optional;
    ncclGroupStart: PFN_ncclGroupStart "ncclGroupStart" optional;
    ncclGroupEnd: PFN_ncclGroupEnd "ncclGroupEnd" optional;
    ncclAllReduce: PFN_ncclAllReduce "ncclAllReduce" optional;
    ncclReduce: PFN_ncclReduce "ncclReduce" optional;
    ncclBroadcast: PFN_ncclBroadcast "ncclBroadcast" optional;
    ncclAllGather: PFN_ncclAllGather "ncclAllGather" optional;
    ncclReduceScatter: PFN_ncclReduceScatter "ncclReduceScatter" optional;
    ncclSend: PFN_ncclSend "ncclSend" optional;
    ncclRecv: PFN_ncclRecv "ncclRecv" optional;
}

symbols! {
    /// CUPTI's functions that the crate calls.
    CuptiApi from cupti;
    cuptiGetVersion: PFN_cuptiGetVersion "cuptiGetVersion" required;
    cuptiGetTimestamp: PFN_cuptiGetTimestamp "cuptiGetTimestamp" required;
    cuptiSubscribe: PFN_cuptiSubscribe "cuptiSubscribe" required;
    cuptiUnsubscribe: PFN_cuptiUnsubscribe "cuptiUnsubscribe" required;
    cuptiActivityRegisterCallbacks: PFN_cuptiActivityRegisterCallbacks "cuptiActivityRegisterCallbacks" required;
    cuptiActivityEnable: PFN_cuptiActivityEnable "cuptiActivityEnable" required;
    cuptiActivityDisable: PFN_cuptiActivityDisable "cuptiActivityDisable" required;
    cuptiActivityFlushAll: PFN_cuptiActivityFlushAll "cuptiActivityFlushAll" required;
    cuptiActivityGetNextRecord: PFN_cuptiActivityGetNextRecord "cuptiActivityGetNextRecord" required;
    cuptiActivityGetNumDroppedRecords: PFN_cuptiActivityGetNumDroppedRecords "cuptiActivityGetNumDroppedRecords" required;
    cuptiActivityPushExternalCorrelationId: PFN_cuptiActivityPushExternalCorrelationId "cuptiActivityPushExternalCorrelationId" required;
    cuptiActivityPopExternalCorrelationId: PFN_cuptiActivityPopExternalCorrelationId "cuptiActivityPopExternalCorrelationId" required;
}
