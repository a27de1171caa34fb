// Generated from wrapper.h and the [nccl] names of src/sys/allowlist.txt by build/bindings.rs; do not edit. Again with:
// python3 scripts/build_bindings.py

pub type cudaStream_t = super::driver::CUstream;

#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ncclComm {
    _unused: [u8; 0],
}
pub type ncclComm_t = *mut ncclComm;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ncclWindow_vidmem {
    _unused: [u8; 0],
}
pub type ncclWindow_t = *mut ncclWindow_vidmem;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ncclUniqueId {
    pub internal: [::std::os::raw::c_char; 128usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ncclUniqueId"][::std::mem::size_of::<ncclUniqueId>() - 128usize];
    ["Alignment of ncclUniqueId"][::std::mem::align_of::<ncclUniqueId>() - 1usize];
};
impl Default for ncclUniqueId {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl ncclResult_t {
    pub const ncclSuccess: ncclResult_t = ncclResult_t(0);
    pub const ncclUnhandledCudaError: ncclResult_t = ncclResult_t(1);
    pub const ncclSystemError: ncclResult_t = ncclResult_t(2);
    pub const ncclInternalError: ncclResult_t = ncclResult_t(3);
    pub const ncclInvalidArgument: ncclResult_t = ncclResult_t(4);
    pub const ncclInvalidUsage: ncclResult_t = ncclResult_t(5);
    pub const ncclRemoteError: ncclResult_t = ncclResult_t(6);
    pub const ncclInProgress: ncclResult_t = ncclResult_t(7);
    pub const ncclTimeout: ncclResult_t = ncclResult_t(8);
    pub const ncclNumResults: ncclResult_t = ncclResult_t(9);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ncclResult_t(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ncclConfig_v23100 {
    pub size: usize,
    pub magic: ::std::os::raw::c_uint,
    pub version: ::std::os::raw::c_uint,
    pub blocking: ::std::os::raw::c_int,
    pub cgaClusterSize: ::std::os::raw::c_int,
    pub minCTAs: ::std::os::raw::c_int,
    pub maxCTAs: ::std::os::raw::c_int,
    pub netName: *const ::std::os::raw::c_char,
    pub splitShare: ::std::os::raw::c_int,
    pub trafficClass: ::std::os::raw::c_int,
    pub commName: *const ::std::os::raw::c_char,
    pub collnetEnable: ::std::os::raw::c_int,
    pub CTAPolicy: ::std::os::raw::c_int,
    pub shrinkShare: ::std::os::raw::c_int,
    pub nvlsCTAs: ::std::os::raw::c_int,
    pub nChannelsPerNetPeer: ::std::os::raw::c_int,
    pub nvlinkCentricSched: ::std::os::raw::c_int,
    pub graphUsageMode: ::std::os::raw::c_int,
    pub numRmaCtx: ::std::os::raw::c_int,
    pub maxP2pPeers: ::std::os::raw::c_int,
    pub graphStreamOrdering: ::std::os::raw::c_int,
    pub launchOrderImplicit: ::std::os::raw::c_int,
    pub numRmaSig: ::std::os::raw::c_int,
    pub rmaEagerInit: ::std::os::raw::c_int,
    pub hostCftMode: ::std::os::raw::c_int,
    pub nvlsHostMode: ::std::os::raw::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ncclConfig_v23100"][::std::mem::size_of::<ncclConfig_v23100>() - 120usize];
    [
        "Alignment of ncclConfig_v23100",
    ][::std::mem::align_of::<ncclConfig_v23100>() - 8usize];
};
impl Default for ncclConfig_v23100 {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type ncclConfig_t = ncclConfig_v23100;
impl ncclRedOp_t {
    pub const ncclSum: ncclRedOp_t = ncclRedOp_t(0);
    pub const ncclProd: ncclRedOp_t = ncclRedOp_t(1);
    pub const ncclMax: ncclRedOp_t = ncclRedOp_t(2);
    pub const ncclMin: ncclRedOp_t = ncclRedOp_t(3);
    pub const ncclAvg: ncclRedOp_t = ncclRedOp_t(4);
    pub const ncclNumOps: ncclRedOp_t = ncclRedOp_t(5);
    pub const ncclMaxRedOp: ncclRedOp_t = ncclRedOp_t(2147483647);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ncclRedOp_t(pub ::std::os::raw::c_uint);
impl ncclDataType_t {
    pub const ncclInt8: ncclDataType_t = ncclDataType_t(0);
    pub const ncclChar: ncclDataType_t = ncclDataType_t(0);
    pub const ncclUint8: ncclDataType_t = ncclDataType_t(1);
    pub const ncclInt32: ncclDataType_t = ncclDataType_t(2);
    pub const ncclInt: ncclDataType_t = ncclDataType_t(2);
    pub const ncclUint32: ncclDataType_t = ncclDataType_t(3);
    pub const ncclInt64: ncclDataType_t = ncclDataType_t(4);
    pub const ncclUint64: ncclDataType_t = ncclDataType_t(5);
    pub const ncclFloat16: ncclDataType_t = ncclDataType_t(6);
    pub const ncclHalf: ncclDataType_t = ncclDataType_t(6);
    pub const ncclFloat32: ncclDataType_t = ncclDataType_t(7);
    pub const ncclFloat: ncclDataType_t = ncclDataType_t(7);
    pub const ncclFloat64: ncclDataType_t = ncclDataType_t(8);
    pub const ncclDouble: ncclDataType_t = ncclDataType_t(8);
    pub const ncclBfloat16: ncclDataType_t = ncclDataType_t(9);
    pub const ncclFloat8e4m3: ncclDataType_t = ncclDataType_t(10);
    pub const ncclFloat8e5m2: ncclDataType_t = ncclDataType_t(11);
    pub const ncclNumTypes: ncclDataType_t = ncclDataType_t(12);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ncclDataType_t(pub ::std::os::raw::c_uint);
impl ncclScalarResidence_t {
    pub const ncclScalarDevice: ncclScalarResidence_t = ncclScalarResidence_t(0);
    pub const ncclScalarHostImmediate: ncclScalarResidence_t = ncclScalarResidence_t(1);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ncclScalarResidence_t(pub ::std::os::raw::c_uint);
pub type PFN_ncclAllGather = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *const ::std::os::raw::c_void,
        arg2: *mut ::std::os::raw::c_void,
        arg3: usize,
        arg4: ncclDataType_t,
        arg5: ncclComm_t,
        arg6: cudaStream_t,
    ) -> ncclResult_t,
>;
pub type PFN_ncclAllReduce = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *const ::std::os::raw::c_void,
        arg2: *mut ::std::os::raw::c_void,
        arg3: usize,
        arg4: ncclDataType_t,
        arg5: ncclRedOp_t,
        arg6: ncclComm_t,
        arg7: cudaStream_t,
    ) -> ncclResult_t,
>;
pub type PFN_ncclBroadcast = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *const ::std::os::raw::c_void,
        arg2: *mut ::std::os::raw::c_void,
        arg3: usize,
        arg4: ncclDataType_t,
        arg5: ::std::os::raw::c_int,
        arg6: ncclComm_t,
        arg7: cudaStream_t,
    ) -> ncclResult_t,
>;
pub type PFN_ncclCommAbort = ::std::option::Option<
    unsafe extern "C" fn(arg1: ncclComm_t) -> ncclResult_t,
>;
pub type PFN_ncclCommCount = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: ncclComm_t,
        arg2: *mut ::std::os::raw::c_int,
    ) -> ncclResult_t,
>;
pub type PFN_ncclCommCuDevice = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: ncclComm_t,
        arg2: *mut ::std::os::raw::c_int,
    ) -> ncclResult_t,
>;
pub type PFN_ncclCommDeregister = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: ncclComm_t,
        arg2: *mut ::std::os::raw::c_void,
    ) -> ncclResult_t,
>;
pub type PFN_ncclCommDestroy = ::std::option::Option<
    unsafe extern "C" fn(arg1: ncclComm_t) -> ncclResult_t,
>;
pub type PFN_ncclCommFinalize = ::std::option::Option<
    unsafe extern "C" fn(arg1: ncclComm_t) -> ncclResult_t,
>;
pub type PFN_ncclCommGetAsyncError = ::std::option::Option<
    unsafe extern "C" fn(arg1: ncclComm_t, arg2: *mut ncclResult_t) -> ncclResult_t,
>;
pub type PFN_ncclCommInitAll = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *mut ncclComm_t,
        arg2: ::std::os::raw::c_int,
        arg3: *const ::std::os::raw::c_int,
    ) -> ncclResult_t,
>;
pub type PFN_ncclCommInitRank = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *mut ncclComm_t,
        arg2: ::std::os::raw::c_int,
        arg3: ncclUniqueId,
        arg4: ::std::os::raw::c_int,
    ) -> ncclResult_t,
>;
pub type PFN_ncclCommInitRankConfig = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *mut ncclComm_t,
        arg2: ::std::os::raw::c_int,
        arg3: ncclUniqueId,
        arg4: ::std::os::raw::c_int,
        arg5: *mut ncclConfig_t,
    ) -> ncclResult_t,
>;
pub type PFN_ncclCommInitRankScalable = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *mut ncclComm_t,
        arg2: ::std::os::raw::c_int,
        arg3: ::std::os::raw::c_int,
        arg4: ::std::os::raw::c_int,
        arg5: *mut ncclUniqueId,
        arg6: *mut ncclConfig_t,
    ) -> ncclResult_t,
>;
pub type PFN_ncclCommRegister = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: ncclComm_t,
        arg2: *mut ::std::os::raw::c_void,
        arg3: usize,
        arg4: *mut *mut ::std::os::raw::c_void,
    ) -> ncclResult_t,
>;
pub type PFN_ncclCommSplit = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: ncclComm_t,
        arg2: ::std::os::raw::c_int,
        arg3: ::std::os::raw::c_int,
        arg4: *mut ncclComm_t,
        arg5: *mut ncclConfig_t,
    ) -> ncclResult_t,
>;
pub type PFN_ncclCommUserRank = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: ncclComm_t,
        arg2: *mut ::std::os::raw::c_int,
    ) -> ncclResult_t,
>;
pub type PFN_ncclCommWindowDeregister = ::std::option::Option<
    unsafe extern "C" fn(arg1: ncclComm_t, arg2: ncclWindow_t) -> ncclResult_t,
>;
pub type PFN_ncclCommWindowRegister = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: ncclComm_t,
        arg2: *mut ::std::os::raw::c_void,
        arg3: usize,
        arg4: *mut ncclWindow_t,
        arg5: ::std::os::raw::c_int,
    ) -> ncclResult_t,
>;
pub type PFN_ncclGetErrorString = ::std::option::Option<
    unsafe extern "C" fn(arg1: ncclResult_t) -> *const ::std::os::raw::c_char,
>;
pub type PFN_ncclGetLastError = ::std::option::Option<
    unsafe extern "C" fn(arg1: ncclComm_t) -> *const ::std::os::raw::c_char,
>;
pub type PFN_ncclGetUniqueId = ::std::option::Option<
    unsafe extern "C" fn(arg1: *mut ncclUniqueId) -> ncclResult_t,
>;
pub type PFN_ncclGetVersion = ::std::option::Option<
    unsafe extern "C" fn(arg1: *mut ::std::os::raw::c_int) -> ncclResult_t,
>;
pub type PFN_ncclGroupEnd = ::std::option::Option<
    unsafe extern "C" fn() -> ncclResult_t,
>;
pub type PFN_ncclGroupStart = ::std::option::Option<
    unsafe extern "C" fn() -> ncclResult_t,
>;
pub type PFN_ncclMemAlloc = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *mut *mut ::std::os::raw::c_void,
        arg2: usize,
    ) -> ncclResult_t,
>;
pub type PFN_ncclMemFree = ::std::option::Option<
    unsafe extern "C" fn(arg1: *mut ::std::os::raw::c_void) -> ncclResult_t,
>;
pub type PFN_ncclRecv = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *mut ::std::os::raw::c_void,
        arg2: usize,
        arg3: ncclDataType_t,
        arg4: ::std::os::raw::c_int,
        arg5: ncclComm_t,
        arg6: cudaStream_t,
    ) -> ncclResult_t,
>;
pub type PFN_ncclRedOpCreatePreMulSum = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *mut ncclRedOp_t,
        arg2: *mut ::std::os::raw::c_void,
        arg3: ncclDataType_t,
        arg4: ncclScalarResidence_t,
        arg5: ncclComm_t,
    ) -> ncclResult_t,
>;
pub type PFN_ncclRedOpDestroy = ::std::option::Option<
    unsafe extern "C" fn(arg1: ncclRedOp_t, arg2: ncclComm_t) -> ncclResult_t,
>;
pub type PFN_ncclReduce = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *const ::std::os::raw::c_void,
        arg2: *mut ::std::os::raw::c_void,
        arg3: usize,
        arg4: ncclDataType_t,
        arg5: ncclRedOp_t,
        arg6: ::std::os::raw::c_int,
        arg7: ncclComm_t,
        arg8: cudaStream_t,
    ) -> ncclResult_t,
>;
pub type PFN_ncclReduceScatter = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *const ::std::os::raw::c_void,
        arg2: *mut ::std::os::raw::c_void,
        arg3: usize,
        arg4: ncclDataType_t,
        arg5: ncclRedOp_t,
        arg6: ncclComm_t,
        arg7: cudaStream_t,
    ) -> ncclResult_t,
>;
pub type PFN_ncclSend = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *const ::std::os::raw::c_void,
        arg2: usize,
        arg3: ncclDataType_t,
        arg4: ::std::os::raw::c_int,
        arg5: ncclComm_t,
        arg6: cudaStream_t,
    ) -> ncclResult_t,
>;
