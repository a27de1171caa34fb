// Generated from wrapper.h and the [cupti13] names of src/sys/allowlist.txt by build/bindings.rs; do not edit. Again with:
// python3 scripts/build_bindings.py

pub use super::driver::{CUaccessPolicyWindow, CUcontext};
pub type CUpti_ActivityKernel9__bindgen_ty_1 = u8;
pub type CUpti_ActivityKernel10__bindgen_ty_1 = u8;

impl CUpti_ActivityKind {
    pub const CUPTI_ACTIVITY_KIND_INVALID: CUpti_ActivityKind = CUpti_ActivityKind(0);
    pub const CUPTI_ACTIVITY_KIND_MEMCPY: CUpti_ActivityKind = CUpti_ActivityKind(1);
    pub const CUPTI_ACTIVITY_KIND_MEMSET: CUpti_ActivityKind = CUpti_ActivityKind(2);
    pub const CUPTI_ACTIVITY_KIND_KERNEL: CUpti_ActivityKind = CUpti_ActivityKind(3);
    pub const CUPTI_ACTIVITY_KIND_DRIVER: CUpti_ActivityKind = CUpti_ActivityKind(4);
    pub const CUPTI_ACTIVITY_KIND_RUNTIME: CUpti_ActivityKind = CUpti_ActivityKind(5);
    pub const CUPTI_ACTIVITY_KIND_EVENT: CUpti_ActivityKind = CUpti_ActivityKind(6);
    pub const CUPTI_ACTIVITY_KIND_METRIC: CUpti_ActivityKind = CUpti_ActivityKind(7);
    pub const CUPTI_ACTIVITY_KIND_DEVICE: CUpti_ActivityKind = CUpti_ActivityKind(8);
    pub const CUPTI_ACTIVITY_KIND_CONTEXT: CUpti_ActivityKind = CUpti_ActivityKind(9);
    pub const CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: CUpti_ActivityKind = CUpti_ActivityKind(
        10,
    );
    pub const CUPTI_ACTIVITY_KIND_NAME: CUpti_ActivityKind = CUpti_ActivityKind(11);
    pub const CUPTI_ACTIVITY_KIND_MARKER: CUpti_ActivityKind = CUpti_ActivityKind(12);
    pub const CUPTI_ACTIVITY_KIND_MARKER_DATA: CUpti_ActivityKind = CUpti_ActivityKind(
        13,
    );
    pub const CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR: CUpti_ActivityKind = CUpti_ActivityKind(
        14,
    );
    pub const CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS: CUpti_ActivityKind = CUpti_ActivityKind(
        15,
    );
    pub const CUPTI_ACTIVITY_KIND_BRANCH: CUpti_ActivityKind = CUpti_ActivityKind(16);
    pub const CUPTI_ACTIVITY_KIND_OVERHEAD: CUpti_ActivityKind = CUpti_ActivityKind(17);
    pub const CUPTI_ACTIVITY_KIND_CDP_KERNEL: CUpti_ActivityKind = CUpti_ActivityKind(
        18,
    );
    pub const CUPTI_ACTIVITY_KIND_PREEMPTION: CUpti_ActivityKind = CUpti_ActivityKind(
        19,
    );
    pub const CUPTI_ACTIVITY_KIND_ENVIRONMENT: CUpti_ActivityKind = CUpti_ActivityKind(
        20,
    );
    pub const CUPTI_ACTIVITY_KIND_EVENT_INSTANCE: CUpti_ActivityKind = CUpti_ActivityKind(
        21,
    );
    pub const CUPTI_ACTIVITY_KIND_MEMCPY2: CUpti_ActivityKind = CUpti_ActivityKind(22);
    pub const CUPTI_ACTIVITY_KIND_METRIC_INSTANCE: CUpti_ActivityKind = CUpti_ActivityKind(
        23,
    );
    pub const CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION: CUpti_ActivityKind = CUpti_ActivityKind(
        24,
    );
    pub const CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER: CUpti_ActivityKind = CUpti_ActivityKind(
        25,
    );
    pub const CUPTI_ACTIVITY_KIND_FUNCTION: CUpti_ActivityKind = CUpti_ActivityKind(26);
    pub const CUPTI_ACTIVITY_KIND_MODULE: CUpti_ActivityKind = CUpti_ActivityKind(27);
    pub const CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE: CUpti_ActivityKind = CUpti_ActivityKind(
        28,
    );
    pub const CUPTI_ACTIVITY_KIND_SHARED_ACCESS: CUpti_ActivityKind = CUpti_ActivityKind(
        29,
    );
    pub const CUPTI_ACTIVITY_KIND_PC_SAMPLING: CUpti_ActivityKind = CUpti_ActivityKind(
        30,
    );
    pub const CUPTI_ACTIVITY_KIND_PC_SAMPLING_RECORD_INFO: CUpti_ActivityKind = CUpti_ActivityKind(
        31,
    );
    pub const CUPTI_ACTIVITY_KIND_INSTRUCTION_CORRELATION: CUpti_ActivityKind = CUpti_ActivityKind(
        32,
    );
    pub const CUPTI_ACTIVITY_KIND_OPENACC_DATA: CUpti_ActivityKind = CUpti_ActivityKind(
        33,
    );
    pub const CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH: CUpti_ActivityKind = CUpti_ActivityKind(
        34,
    );
    pub const CUPTI_ACTIVITY_KIND_OPENACC_OTHER: CUpti_ActivityKind = CUpti_ActivityKind(
        35,
    );
    pub const CUPTI_ACTIVITY_KIND_CUDA_EVENT: CUpti_ActivityKind = CUpti_ActivityKind(
        36,
    );
    pub const CUPTI_ACTIVITY_KIND_STREAM: CUpti_ActivityKind = CUpti_ActivityKind(37);
    pub const CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: CUpti_ActivityKind = CUpti_ActivityKind(
        38,
    );
    pub const CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: CUpti_ActivityKind = CUpti_ActivityKind(
        39,
    );
    pub const CUPTI_ACTIVITY_KIND_NVLINK: CUpti_ActivityKind = CUpti_ActivityKind(40);
    pub const CUPTI_ACTIVITY_KIND_INSTANTANEOUS_EVENT: CUpti_ActivityKind = CUpti_ActivityKind(
        41,
    );
    pub const CUPTI_ACTIVITY_KIND_INSTANTANEOUS_EVENT_INSTANCE: CUpti_ActivityKind = CUpti_ActivityKind(
        42,
    );
    pub const CUPTI_ACTIVITY_KIND_INSTANTANEOUS_METRIC: CUpti_ActivityKind = CUpti_ActivityKind(
        43,
    );
    pub const CUPTI_ACTIVITY_KIND_INSTANTANEOUS_METRIC_INSTANCE: CUpti_ActivityKind = CUpti_ActivityKind(
        44,
    );
    pub const CUPTI_ACTIVITY_KIND_MEMORY: CUpti_ActivityKind = CUpti_ActivityKind(45);
    pub const CUPTI_ACTIVITY_KIND_PCIE: CUpti_ActivityKind = CUpti_ActivityKind(46);
    pub const CUPTI_ACTIVITY_KIND_OPENMP: CUpti_ActivityKind = CUpti_ActivityKind(47);
    pub const CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API: CUpti_ActivityKind = CUpti_ActivityKind(
        48,
    );
    pub const CUPTI_ACTIVITY_KIND_MEMORY2: CUpti_ActivityKind = CUpti_ActivityKind(49);
    pub const CUPTI_ACTIVITY_KIND_MEMORY_POOL: CUpti_ActivityKind = CUpti_ActivityKind(
        50,
    );
    pub const CUPTI_ACTIVITY_KIND_GRAPH_TRACE: CUpti_ActivityKind = CUpti_ActivityKind(
        51,
    );
    pub const CUPTI_ACTIVITY_KIND_JIT: CUpti_ActivityKind = CUpti_ActivityKind(52);
    pub const CUPTI_ACTIVITY_KIND_DEVICE_GRAPH_TRACE: CUpti_ActivityKind = CUpti_ActivityKind(
        53,
    );
    pub const CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS: CUpti_ActivityKind = CUpti_ActivityKind(
        54,
    );
    pub const CUPTI_ACTIVITY_KIND_CONFIDENTIAL_COMPUTE_ROTATION: CUpti_ActivityKind = CUpti_ActivityKind(
        55,
    );
    pub const CUPTI_ACTIVITY_KIND_COUNT: CUpti_ActivityKind = CUpti_ActivityKind(56);
    pub const CUPTI_ACTIVITY_KIND_FORCE_INT: CUpti_ActivityKind = CUpti_ActivityKind(
        2147483647,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUpti_ActivityKind(pub ::std::os::raw::c_uint);
impl CUpti_ActivityPartitionedGlobalCacheConfig {
    pub const CUPTI_ACTIVITY_PARTITIONED_GLOBAL_CACHE_CONFIG_UNKNOWN: CUpti_ActivityPartitionedGlobalCacheConfig = CUpti_ActivityPartitionedGlobalCacheConfig(
        0,
    );
    pub const CUPTI_ACTIVITY_PARTITIONED_GLOBAL_CACHE_CONFIG_NOT_SUPPORTED: CUpti_ActivityPartitionedGlobalCacheConfig = CUpti_ActivityPartitionedGlobalCacheConfig(
        1,
    );
    pub const CUPTI_ACTIVITY_PARTITIONED_GLOBAL_CACHE_CONFIG_OFF: CUpti_ActivityPartitionedGlobalCacheConfig = CUpti_ActivityPartitionedGlobalCacheConfig(
        2,
    );
    pub const CUPTI_ACTIVITY_PARTITIONED_GLOBAL_CACHE_CONFIG_ON: CUpti_ActivityPartitionedGlobalCacheConfig = CUpti_ActivityPartitionedGlobalCacheConfig(
        3,
    );
    pub const CUPTI_ACTIVITY_PARTITIONED_GLOBAL_CACHE_CONFIG_FORCE_INT: CUpti_ActivityPartitionedGlobalCacheConfig = CUpti_ActivityPartitionedGlobalCacheConfig(
        2147483647,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUpti_ActivityPartitionedGlobalCacheConfig(pub ::std::os::raw::c_uint);
impl CUpti_ChannelType {
    pub const CUPTI_CHANNEL_TYPE_INVALID: CUpti_ChannelType = CUpti_ChannelType(0);
    pub const CUPTI_CHANNEL_TYPE_COMPUTE: CUpti_ChannelType = CUpti_ChannelType(1);
    pub const CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY: CUpti_ChannelType = CUpti_ChannelType(2);
    pub const CUPTI_CHANNEL_TYPE_DECOMP: CUpti_ChannelType = CUpti_ChannelType(3);
    pub const CUPTI_CHANNEL_TYPE_FORCE_INT: CUpti_ChannelType = CUpti_ChannelType(
        2147483647,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUpti_ChannelType(pub ::std::os::raw::c_uint);
#[repr(C, packed(8))]
#[derive(Debug, Copy, Clone)]
pub struct CUpti_ActivityMemcpy6 {
    pub kind: CUpti_ActivityKind,
    pub copyKind: u8,
    pub srcKind: u8,
    pub dstKind: u8,
    pub flags: u8,
    pub bytes: u64,
    pub start: u64,
    pub end: u64,
    pub deviceId: u32,
    pub contextId: u32,
    pub streamId: u32,
    pub correlationId: u32,
    pub runtimeCorrelationId: u32,
    pub pad: u32,
    pub reserved0: *mut ::std::os::raw::c_void,
    pub graphNodeId: u64,
    pub graphId: u32,
    pub channelID: u32,
    pub channelType: CUpti_ChannelType,
    pub isDeviceLaunched: u8,
    pub pad2: [u8; 3usize],
    pub copyCount: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of CUpti_ActivityMemcpy6",
    ][::std::mem::size_of::<CUpti_ActivityMemcpy6>() - 96usize];
    [
        "Alignment of CUpti_ActivityMemcpy6",
    ][::std::mem::align_of::<CUpti_ActivityMemcpy6>() - 8usize];
};
impl Default for CUpti_ActivityMemcpy6 {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C, packed(8))]
#[derive(Debug, Copy, Clone)]
pub struct CUpti_ActivityMemcpyPtoP4 {
    pub kind: CUpti_ActivityKind,
    pub copyKind: u8,
    pub srcKind: u8,
    pub dstKind: u8,
    pub flags: u8,
    pub bytes: u64,
    pub start: u64,
    pub end: u64,
    pub deviceId: u32,
    pub contextId: u32,
    pub streamId: u32,
    pub srcDeviceId: u32,
    pub srcContextId: u32,
    pub dstDeviceId: u32,
    pub dstContextId: u32,
    pub correlationId: u32,
    pub reserved0: *mut ::std::os::raw::c_void,
    pub graphNodeId: u64,
    pub graphId: u32,
    pub channelID: u32,
    pub channelType: CUpti_ChannelType,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of CUpti_ActivityMemcpyPtoP4",
    ][::std::mem::size_of::<CUpti_ActivityMemcpyPtoP4>() - 96usize];
    [
        "Alignment of CUpti_ActivityMemcpyPtoP4",
    ][::std::mem::align_of::<CUpti_ActivityMemcpyPtoP4>() - 8usize];
};
impl Default for CUpti_ActivityMemcpyPtoP4 {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C, packed(8))]
#[derive(Debug, Copy, Clone)]
pub struct CUpti_ActivityMemset4 {
    pub kind: CUpti_ActivityKind,
    pub value: u32,
    pub bytes: u64,
    pub start: u64,
    pub end: u64,
    pub deviceId: u32,
    pub contextId: u32,
    pub streamId: u32,
    pub correlationId: u32,
    pub flags: u16,
    pub memoryKind: u16,
    pub pad: u32,
    pub reserved0: *mut ::std::os::raw::c_void,
    pub graphNodeId: u64,
    pub graphId: u32,
    pub channelID: u32,
    pub channelType: CUpti_ChannelType,
    pub isDeviceLaunched: u8,
    pub pad2: [u8; 3usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of CUpti_ActivityMemset4",
    ][::std::mem::size_of::<CUpti_ActivityMemset4>() - 88usize];
    [
        "Alignment of CUpti_ActivityMemset4",
    ][::std::mem::align_of::<CUpti_ActivityMemset4>() - 8usize];
};
impl Default for CUpti_ActivityMemset4 {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl CUpti_FuncShmemLimitConfig {
    pub const CUPTI_FUNC_SHMEM_LIMIT_DEFAULT: CUpti_FuncShmemLimitConfig = CUpti_FuncShmemLimitConfig(
        0,
    );
    pub const CUPTI_FUNC_SHMEM_LIMIT_OPTIN: CUpti_FuncShmemLimitConfig = CUpti_FuncShmemLimitConfig(
        1,
    );
    pub const CUPTI_FUNC_SHMEM_LIMIT_FORCE_INT: CUpti_FuncShmemLimitConfig = CUpti_FuncShmemLimitConfig(
        2147483647,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUpti_FuncShmemLimitConfig(pub ::std::os::raw::c_uint);
#[repr(C, packed(8))]
pub struct CUpti_ActivityKernel10 {
    pub kind: CUpti_ActivityKind,
    pub cacheConfig: CUpti_ActivityKernel10__bindgen_ty_1,
    pub sharedMemoryConfig: u8,
    pub registersPerThread: u16,
    pub partitionedGlobalCacheRequested: CUpti_ActivityPartitionedGlobalCacheConfig,
    pub partitionedGlobalCacheExecuted: CUpti_ActivityPartitionedGlobalCacheConfig,
    pub start: u64,
    pub end: u64,
    pub completed: u64,
    pub deviceId: u32,
    pub contextId: u32,
    pub streamId: u32,
    pub gridX: i32,
    pub gridY: i32,
    pub gridZ: i32,
    pub blockX: i32,
    pub blockY: i32,
    pub blockZ: i32,
    pub staticSharedMemory: i32,
    pub dynamicSharedMemory: i32,
    pub localMemoryPerThread: u32,
    pub localMemoryTotal: u32,
    pub correlationId: u32,
    pub gridId: i64,
    pub name: *const ::std::os::raw::c_char,
    pub reserved0: *mut ::std::os::raw::c_void,
    pub queued: u64,
    pub submitted: u64,
    pub launchType: u8,
    pub isSharedMemoryCarveoutRequested: u8,
    pub sharedMemoryCarveoutRequested: u8,
    pub padding: u8,
    pub sharedMemoryExecuted: u32,
    pub graphNodeId: u64,
    pub shmemLimitConfig: CUpti_FuncShmemLimitConfig,
    pub graphId: u32,
    pub pAccessPolicyWindow: *mut CUaccessPolicyWindow,
    pub channelID: u32,
    pub channelType: CUpti_ChannelType,
    pub clusterX: u32,
    pub clusterY: u32,
    pub clusterZ: u32,
    pub clusterSchedulingPolicy: u32,
    pub localMemoryTotal_v2: u64,
    pub maxPotentialClusterSize: u32,
    pub maxActiveClusters: u32,
    pub isDeviceLaunched: u8,
    pub padding3: [u8; 7usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of CUpti_ActivityKernel10",
    ][::std::mem::size_of::<CUpti_ActivityKernel10>() - 216usize];
    [
        "Alignment of CUpti_ActivityKernel10",
    ][::std::mem::align_of::<CUpti_ActivityKernel10>() - 8usize];
};
impl Default for CUpti_ActivityKernel10 {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl CUpti_ExternalCorrelationKind {
    pub const CUPTI_EXTERNAL_CORRELATION_KIND_INVALID: CUpti_ExternalCorrelationKind = CUpti_ExternalCorrelationKind(
        0,
    );
    pub const CUPTI_EXTERNAL_CORRELATION_KIND_UNKNOWN: CUpti_ExternalCorrelationKind = CUpti_ExternalCorrelationKind(
        1,
    );
    pub const CUPTI_EXTERNAL_CORRELATION_KIND_OPENACC: CUpti_ExternalCorrelationKind = CUpti_ExternalCorrelationKind(
        2,
    );
    pub const CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0: CUpti_ExternalCorrelationKind = CUpti_ExternalCorrelationKind(
        3,
    );
    pub const CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1: CUpti_ExternalCorrelationKind = CUpti_ExternalCorrelationKind(
        4,
    );
    pub const CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2: CUpti_ExternalCorrelationKind = CUpti_ExternalCorrelationKind(
        5,
    );
    pub const CUPTI_EXTERNAL_CORRELATION_KIND_SIZE: CUpti_ExternalCorrelationKind = CUpti_ExternalCorrelationKind(
        6,
    );
    pub const CUPTI_EXTERNAL_CORRELATION_KIND_FORCE_INT: CUpti_ExternalCorrelationKind = CUpti_ExternalCorrelationKind(
        2147483647,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUpti_ExternalCorrelationKind(pub ::std::os::raw::c_uint);
#[repr(C, packed(8))]
#[derive(Debug, Copy, Clone)]
pub struct CUpti_ActivityExternalCorrelation {
    pub kind: CUpti_ActivityKind,
    pub externalKind: CUpti_ExternalCorrelationKind,
    pub externalId: u64,
    pub correlationId: u32,
    pub reserved: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of CUpti_ActivityExternalCorrelation",
    ][::std::mem::size_of::<CUpti_ActivityExternalCorrelation>() - 24usize];
    [
        "Alignment of CUpti_ActivityExternalCorrelation",
    ][::std::mem::align_of::<CUpti_ActivityExternalCorrelation>() - 8usize];
};
impl Default for CUpti_ActivityExternalCorrelation {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
