// Generated from wrapper.h and the [nvrtc] names of src/sys/allowlist.txt by build/bindings.rs; do not edit. Again with:
// python3 scripts/build_bindings.py

impl nvrtcResult {
    pub const NVRTC_SUCCESS: nvrtcResult = nvrtcResult(0);
    pub const NVRTC_ERROR_OUT_OF_MEMORY: nvrtcResult = nvrtcResult(1);
    pub const NVRTC_ERROR_PROGRAM_CREATION_FAILURE: nvrtcResult = nvrtcResult(2);
    pub const NVRTC_ERROR_INVALID_INPUT: nvrtcResult = nvrtcResult(3);
    pub const NVRTC_ERROR_INVALID_PROGRAM: nvrtcResult = nvrtcResult(4);
    pub const NVRTC_ERROR_INVALID_OPTION: nvrtcResult = nvrtcResult(5);
    pub const NVRTC_ERROR_COMPILATION: nvrtcResult = nvrtcResult(6);
    pub const NVRTC_ERROR_BUILTIN_OPERATION_FAILURE: nvrtcResult = nvrtcResult(7);
    pub const NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION: nvrtcResult = nvrtcResult(
        8,
    );
    pub const NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION: nvrtcResult = nvrtcResult(
        9,
    );
    pub const NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID: nvrtcResult = nvrtcResult(10);
    pub const NVRTC_ERROR_INTERNAL_ERROR: nvrtcResult = nvrtcResult(11);
    pub const NVRTC_ERROR_TIME_FILE_WRITE_FAILED: nvrtcResult = nvrtcResult(12);
    pub const NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED: nvrtcResult = nvrtcResult(13);
    pub const NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED: nvrtcResult = nvrtcResult(14);
    pub const NVRTC_ERROR_PCH_CREATE: nvrtcResult = nvrtcResult(15);
    pub const NVRTC_ERROR_CANCELLED: nvrtcResult = nvrtcResult(16);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct nvrtcResult(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct _nvrtcProgram {
    _unused: [u8; 0],
}
pub type nvrtcProgram = *mut _nvrtcProgram;
pub type PFN_nvrtcAddNameExpression = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: nvrtcProgram,
        arg2: *const ::std::os::raw::c_char,
    ) -> nvrtcResult,
>;
pub type PFN_nvrtcCompileProgram = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: nvrtcProgram,
        arg2: ::std::os::raw::c_int,
        arg3: *const *const ::std::os::raw::c_char,
    ) -> nvrtcResult,
>;
pub type PFN_nvrtcCreateProgram = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *mut nvrtcProgram,
        arg2: *const ::std::os::raw::c_char,
        arg3: *const ::std::os::raw::c_char,
        arg4: ::std::os::raw::c_int,
        arg5: *const *const ::std::os::raw::c_char,
        arg6: *const *const ::std::os::raw::c_char,
    ) -> nvrtcResult,
>;
pub type PFN_nvrtcDestroyProgram = ::std::option::Option<
    unsafe extern "C" fn(arg1: *mut nvrtcProgram) -> nvrtcResult,
>;
pub type PFN_nvrtcGetCUBIN = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: nvrtcProgram,
        arg2: *mut ::std::os::raw::c_char,
    ) -> nvrtcResult,
>;
pub type PFN_nvrtcGetCUBINSize = ::std::option::Option<
    unsafe extern "C" fn(arg1: nvrtcProgram, arg2: *mut usize) -> nvrtcResult,
>;
pub type PFN_nvrtcGetErrorString = ::std::option::Option<
    unsafe extern "C" fn(arg1: nvrtcResult) -> *const ::std::os::raw::c_char,
>;
pub type PFN_nvrtcGetLTOIR = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: nvrtcProgram,
        arg2: *mut ::std::os::raw::c_char,
    ) -> nvrtcResult,
>;
pub type PFN_nvrtcGetLTOIRSize = ::std::option::Option<
    unsafe extern "C" fn(arg1: nvrtcProgram, arg2: *mut usize) -> nvrtcResult,
>;
pub type PFN_nvrtcGetLoweredName = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: nvrtcProgram,
        arg2: *const ::std::os::raw::c_char,
        arg3: *mut *const ::std::os::raw::c_char,
    ) -> nvrtcResult,
>;
pub type PFN_nvrtcGetNumSupportedArchs = ::std::option::Option<
    unsafe extern "C" fn(arg1: *mut ::std::os::raw::c_int) -> nvrtcResult,
>;
pub type PFN_nvrtcGetPCHCreateStatus = ::std::option::Option<
    unsafe extern "C" fn(arg1: nvrtcProgram) -> nvrtcResult,
>;
pub type PFN_nvrtcGetPCHHeapSize = ::std::option::Option<
    unsafe extern "C" fn(arg1: *mut usize) -> nvrtcResult,
>;
pub type PFN_nvrtcGetPCHHeapSizeRequired = ::std::option::Option<
    unsafe extern "C" fn(arg1: nvrtcProgram, arg2: *mut usize) -> nvrtcResult,
>;
pub type PFN_nvrtcGetPTX = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: nvrtcProgram,
        arg2: *mut ::std::os::raw::c_char,
    ) -> nvrtcResult,
>;
pub type PFN_nvrtcGetPTXSize = ::std::option::Option<
    unsafe extern "C" fn(arg1: nvrtcProgram, arg2: *mut usize) -> nvrtcResult,
>;
pub type PFN_nvrtcGetProgramLog = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: nvrtcProgram,
        arg2: *mut ::std::os::raw::c_char,
    ) -> nvrtcResult,
>;
pub type PFN_nvrtcGetProgramLogSize = ::std::option::Option<
    unsafe extern "C" fn(arg1: nvrtcProgram, arg2: *mut usize) -> nvrtcResult,
>;
pub type PFN_nvrtcGetSupportedArchs = ::std::option::Option<
    unsafe extern "C" fn(arg1: *mut ::std::os::raw::c_int) -> nvrtcResult,
>;
pub type PFN_nvrtcSetFlowCallback = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: nvrtcProgram,
        arg2: ::std::option::Option<
            unsafe extern "C" fn(
                arg1: *mut ::std::os::raw::c_void,
                arg2: *mut ::std::os::raw::c_void,
            ) -> ::std::os::raw::c_int,
        >,
        arg3: *mut ::std::os::raw::c_void,
    ) -> nvrtcResult,
>;
pub type PFN_nvrtcSetPCHHeapSize = ::std::option::Option<
    unsafe extern "C" fn(arg1: usize) -> nvrtcResult,
>;
pub type PFN_nvrtcVersion = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *mut ::std::os::raw::c_int,
        arg2: *mut ::std::os::raw::c_int,
    ) -> nvrtcResult,
>;
