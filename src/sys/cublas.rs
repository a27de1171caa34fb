// Generated from wrapper.h and the [cublas] names of src/sys/allowlist.txt by build/bindings.rs; do not edit. Again with:
// python3 scripts/build_bindings.py

pub type cudaStream_t = super::driver::CUstream;
pub type cuComplex = num_complex::Complex<f32>;
pub type cuDoubleComplex = num_complex::Complex<f64>;

impl cudaDataType_t {
    pub const CUDA_R_16F: cudaDataType_t = cudaDataType_t(2);
    pub const CUDA_C_16F: cudaDataType_t = cudaDataType_t(6);
    pub const CUDA_R_16BF: cudaDataType_t = cudaDataType_t(14);
    pub const CUDA_C_16BF: cudaDataType_t = cudaDataType_t(15);
    pub const CUDA_R_32F: cudaDataType_t = cudaDataType_t(0);
    pub const CUDA_C_32F: cudaDataType_t = cudaDataType_t(4);
    pub const CUDA_R_64F: cudaDataType_t = cudaDataType_t(1);
    pub const CUDA_C_64F: cudaDataType_t = cudaDataType_t(5);
    pub const CUDA_R_4I: cudaDataType_t = cudaDataType_t(16);
    pub const CUDA_C_4I: cudaDataType_t = cudaDataType_t(17);
    pub const CUDA_R_4U: cudaDataType_t = cudaDataType_t(18);
    pub const CUDA_C_4U: cudaDataType_t = cudaDataType_t(19);
    pub const CUDA_R_8I: cudaDataType_t = cudaDataType_t(3);
    pub const CUDA_C_8I: cudaDataType_t = cudaDataType_t(7);
    pub const CUDA_R_8U: cudaDataType_t = cudaDataType_t(8);
    pub const CUDA_C_8U: cudaDataType_t = cudaDataType_t(9);
    pub const CUDA_R_16I: cudaDataType_t = cudaDataType_t(20);
    pub const CUDA_C_16I: cudaDataType_t = cudaDataType_t(21);
    pub const CUDA_R_16U: cudaDataType_t = cudaDataType_t(22);
    pub const CUDA_C_16U: cudaDataType_t = cudaDataType_t(23);
    pub const CUDA_R_32I: cudaDataType_t = cudaDataType_t(10);
    pub const CUDA_C_32I: cudaDataType_t = cudaDataType_t(11);
    pub const CUDA_R_32U: cudaDataType_t = cudaDataType_t(12);
    pub const CUDA_C_32U: cudaDataType_t = cudaDataType_t(13);
    pub const CUDA_R_64I: cudaDataType_t = cudaDataType_t(24);
    pub const CUDA_C_64I: cudaDataType_t = cudaDataType_t(25);
    pub const CUDA_R_64U: cudaDataType_t = cudaDataType_t(26);
    pub const CUDA_C_64U: cudaDataType_t = cudaDataType_t(27);
    pub const CUDA_R_8F_E4M3: cudaDataType_t = cudaDataType_t(28);
    pub const CUDA_R_8F_UE4M3: cudaDataType_t = cudaDataType_t(28);
    pub const CUDA_R_8F_E5M2: cudaDataType_t = cudaDataType_t(29);
    pub const CUDA_R_8F_UE8M0: cudaDataType_t = cudaDataType_t(30);
    pub const CUDA_R_6F_E2M3: cudaDataType_t = cudaDataType_t(31);
    pub const CUDA_R_6F_E3M2: cudaDataType_t = cudaDataType_t(32);
    pub const CUDA_R_4F_E2M1: cudaDataType_t = cudaDataType_t(33);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cudaDataType_t(pub ::std::os::raw::c_uint);
pub use self::cudaDataType_t as cudaDataType;
impl libraryPropertyType_t {
    pub const MAJOR_VERSION: libraryPropertyType_t = libraryPropertyType_t(0);
    pub const MINOR_VERSION: libraryPropertyType_t = libraryPropertyType_t(1);
    pub const PATCH_LEVEL: libraryPropertyType_t = libraryPropertyType_t(2);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct libraryPropertyType_t(pub ::std::os::raw::c_uint);
pub use self::libraryPropertyType_t as libraryPropertyType;
impl cublasStatus_t {
    pub const CUBLAS_STATUS_SUCCESS: cublasStatus_t = cublasStatus_t(0);
    pub const CUBLAS_STATUS_NOT_INITIALIZED: cublasStatus_t = cublasStatus_t(1);
    pub const CUBLAS_STATUS_ALLOC_FAILED: cublasStatus_t = cublasStatus_t(3);
    pub const CUBLAS_STATUS_INVALID_VALUE: cublasStatus_t = cublasStatus_t(7);
    pub const CUBLAS_STATUS_ARCH_MISMATCH: cublasStatus_t = cublasStatus_t(8);
    pub const CUBLAS_STATUS_MAPPING_ERROR: cublasStatus_t = cublasStatus_t(11);
    pub const CUBLAS_STATUS_EXECUTION_FAILED: cublasStatus_t = cublasStatus_t(13);
    pub const CUBLAS_STATUS_INTERNAL_ERROR: cublasStatus_t = cublasStatus_t(14);
    pub const CUBLAS_STATUS_NOT_SUPPORTED: cublasStatus_t = cublasStatus_t(15);
    pub const CUBLAS_STATUS_LICENSE_ERROR: cublasStatus_t = cublasStatus_t(16);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasStatus_t(pub ::std::os::raw::c_uint);
impl cublasFillMode_t {
    pub const CUBLAS_FILL_MODE_LOWER: cublasFillMode_t = cublasFillMode_t(0);
    pub const CUBLAS_FILL_MODE_UPPER: cublasFillMode_t = cublasFillMode_t(1);
    pub const CUBLAS_FILL_MODE_FULL: cublasFillMode_t = cublasFillMode_t(2);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasFillMode_t(pub ::std::os::raw::c_uint);
impl cublasDiagType_t {
    pub const CUBLAS_DIAG_NON_UNIT: cublasDiagType_t = cublasDiagType_t(0);
    pub const CUBLAS_DIAG_UNIT: cublasDiagType_t = cublasDiagType_t(1);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasDiagType_t(pub ::std::os::raw::c_uint);
impl cublasSideMode_t {
    pub const CUBLAS_SIDE_LEFT: cublasSideMode_t = cublasSideMode_t(0);
    pub const CUBLAS_SIDE_RIGHT: cublasSideMode_t = cublasSideMode_t(1);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasSideMode_t(pub ::std::os::raw::c_uint);
impl cublasOperation_t {
    pub const CUBLAS_OP_N: cublasOperation_t = cublasOperation_t(0);
    pub const CUBLAS_OP_T: cublasOperation_t = cublasOperation_t(1);
    pub const CUBLAS_OP_C: cublasOperation_t = cublasOperation_t(2);
    pub const CUBLAS_OP_HERMITAN: cublasOperation_t = cublasOperation_t(2);
    pub const CUBLAS_OP_CONJG: cublasOperation_t = cublasOperation_t(3);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasOperation_t(pub ::std::os::raw::c_uint);
impl cublasPointerMode_t {
    pub const CUBLAS_POINTER_MODE_HOST: cublasPointerMode_t = cublasPointerMode_t(0);
    pub const CUBLAS_POINTER_MODE_DEVICE: cublasPointerMode_t = cublasPointerMode_t(1);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasPointerMode_t(pub ::std::os::raw::c_uint);
impl cublasAtomicsMode_t {
    pub const CUBLAS_ATOMICS_NOT_ALLOWED: cublasAtomicsMode_t = cublasAtomicsMode_t(0);
    pub const CUBLAS_ATOMICS_ALLOWED: cublasAtomicsMode_t = cublasAtomicsMode_t(1);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasAtomicsMode_t(pub ::std::os::raw::c_uint);
impl cublasGemmAlgo_t {
    pub const CUBLAS_GEMM_DFALT: cublasGemmAlgo_t = cublasGemmAlgo_t(-1);
    pub const CUBLAS_GEMM_DEFAULT: cublasGemmAlgo_t = cublasGemmAlgo_t(-1);
    pub const CUBLAS_GEMM_ALGO0: cublasGemmAlgo_t = cublasGemmAlgo_t(0);
    pub const CUBLAS_GEMM_ALGO1: cublasGemmAlgo_t = cublasGemmAlgo_t(1);
    pub const CUBLAS_GEMM_ALGO2: cublasGemmAlgo_t = cublasGemmAlgo_t(2);
    pub const CUBLAS_GEMM_ALGO3: cublasGemmAlgo_t = cublasGemmAlgo_t(3);
    pub const CUBLAS_GEMM_ALGO4: cublasGemmAlgo_t = cublasGemmAlgo_t(4);
    pub const CUBLAS_GEMM_ALGO5: cublasGemmAlgo_t = cublasGemmAlgo_t(5);
    pub const CUBLAS_GEMM_ALGO6: cublasGemmAlgo_t = cublasGemmAlgo_t(6);
    pub const CUBLAS_GEMM_ALGO7: cublasGemmAlgo_t = cublasGemmAlgo_t(7);
    pub const CUBLAS_GEMM_ALGO8: cublasGemmAlgo_t = cublasGemmAlgo_t(8);
    pub const CUBLAS_GEMM_ALGO9: cublasGemmAlgo_t = cublasGemmAlgo_t(9);
    pub const CUBLAS_GEMM_ALGO10: cublasGemmAlgo_t = cublasGemmAlgo_t(10);
    pub const CUBLAS_GEMM_ALGO11: cublasGemmAlgo_t = cublasGemmAlgo_t(11);
    pub const CUBLAS_GEMM_ALGO12: cublasGemmAlgo_t = cublasGemmAlgo_t(12);
    pub const CUBLAS_GEMM_ALGO13: cublasGemmAlgo_t = cublasGemmAlgo_t(13);
    pub const CUBLAS_GEMM_ALGO14: cublasGemmAlgo_t = cublasGemmAlgo_t(14);
    pub const CUBLAS_GEMM_ALGO15: cublasGemmAlgo_t = cublasGemmAlgo_t(15);
    pub const CUBLAS_GEMM_ALGO16: cublasGemmAlgo_t = cublasGemmAlgo_t(16);
    pub const CUBLAS_GEMM_ALGO17: cublasGemmAlgo_t = cublasGemmAlgo_t(17);
    pub const CUBLAS_GEMM_ALGO18: cublasGemmAlgo_t = cublasGemmAlgo_t(18);
    pub const CUBLAS_GEMM_ALGO19: cublasGemmAlgo_t = cublasGemmAlgo_t(19);
    pub const CUBLAS_GEMM_ALGO20: cublasGemmAlgo_t = cublasGemmAlgo_t(20);
    pub const CUBLAS_GEMM_ALGO21: cublasGemmAlgo_t = cublasGemmAlgo_t(21);
    pub const CUBLAS_GEMM_ALGO22: cublasGemmAlgo_t = cublasGemmAlgo_t(22);
    pub const CUBLAS_GEMM_ALGO23: cublasGemmAlgo_t = cublasGemmAlgo_t(23);
    pub const CUBLAS_GEMM_DEFAULT_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(99);
    pub const CUBLAS_GEMM_DFALT_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(99);
    pub const CUBLAS_GEMM_ALGO0_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(100);
    pub const CUBLAS_GEMM_ALGO1_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(101);
    pub const CUBLAS_GEMM_ALGO2_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(102);
    pub const CUBLAS_GEMM_ALGO3_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(103);
    pub const CUBLAS_GEMM_ALGO4_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(104);
    pub const CUBLAS_GEMM_ALGO5_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(105);
    pub const CUBLAS_GEMM_ALGO6_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(106);
    pub const CUBLAS_GEMM_ALGO7_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(107);
    pub const CUBLAS_GEMM_ALGO8_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(108);
    pub const CUBLAS_GEMM_ALGO9_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(109);
    pub const CUBLAS_GEMM_ALGO10_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(110);
    pub const CUBLAS_GEMM_ALGO11_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(111);
    pub const CUBLAS_GEMM_ALGO12_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(112);
    pub const CUBLAS_GEMM_ALGO13_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(113);
    pub const CUBLAS_GEMM_ALGO14_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(114);
    pub const CUBLAS_GEMM_ALGO15_TENSOR_OP: cublasGemmAlgo_t = cublasGemmAlgo_t(115);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasGemmAlgo_t(pub ::std::os::raw::c_int);
impl cublasMath_t {
    pub const CUBLAS_DEFAULT_MATH: cublasMath_t = cublasMath_t(0);
    pub const CUBLAS_TENSOR_OP_MATH: cublasMath_t = cublasMath_t(1);
    pub const CUBLAS_PEDANTIC_MATH: cublasMath_t = cublasMath_t(2);
    pub const CUBLAS_TF32_TENSOR_OP_MATH: cublasMath_t = cublasMath_t(3);
    pub const CUBLAS_FP32_EMULATED_BF16X9_MATH: cublasMath_t = cublasMath_t(4);
    pub const CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION: cublasMath_t = cublasMath_t(
        16,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasMath_t(pub ::std::os::raw::c_uint);
impl cublasComputeType_t {
    pub const CUBLAS_COMPUTE_16F: cublasComputeType_t = cublasComputeType_t(64);
    pub const CUBLAS_COMPUTE_16F_PEDANTIC: cublasComputeType_t = cublasComputeType_t(65);
    pub const CUBLAS_COMPUTE_32F: cublasComputeType_t = cublasComputeType_t(68);
    pub const CUBLAS_COMPUTE_32F_PEDANTIC: cublasComputeType_t = cublasComputeType_t(69);
    pub const CUBLAS_COMPUTE_32F_FAST_16F: cublasComputeType_t = cublasComputeType_t(74);
    pub const CUBLAS_COMPUTE_32F_FAST_16BF: cublasComputeType_t = cublasComputeType_t(
        75,
    );
    pub const CUBLAS_COMPUTE_32F_FAST_TF32: cublasComputeType_t = cublasComputeType_t(
        77,
    );
    pub const CUBLAS_COMPUTE_32F_EMULATED_16BFX9: cublasComputeType_t = cublasComputeType_t(
        78,
    );
    pub const CUBLAS_COMPUTE_64F: cublasComputeType_t = cublasComputeType_t(70);
    pub const CUBLAS_COMPUTE_64F_PEDANTIC: cublasComputeType_t = cublasComputeType_t(71);
    pub const CUBLAS_COMPUTE_32I: cublasComputeType_t = cublasComputeType_t(72);
    pub const CUBLAS_COMPUTE_32I_PEDANTIC: cublasComputeType_t = cublasComputeType_t(73);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasComputeType_t(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cublasContext {
    _unused: [u8; 0],
}
pub type cublasHandle_t = *mut cublasContext;
pub type PFN_cublasAxpyEx = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: ::std::os::raw::c_int,
        arg3: *const ::std::os::raw::c_void,
        arg4: cudaDataType,
        arg5: *const ::std::os::raw::c_void,
        arg6: cudaDataType,
        arg7: ::std::os::raw::c_int,
        arg8: *mut ::std::os::raw::c_void,
        arg9: cudaDataType,
        arg10: ::std::os::raw::c_int,
        arg11: cudaDataType,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasCgeam = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: *const cuComplex,
        arg7: *const cuComplex,
        arg8: ::std::os::raw::c_int,
        arg9: *const cuComplex,
        arg10: *const cuComplex,
        arg11: ::std::os::raw::c_int,
        arg12: *mut cuComplex,
        arg13: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasCgemm3m = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const cuComplex,
        arg8: *const cuComplex,
        arg9: ::std::os::raw::c_int,
        arg10: *const cuComplex,
        arg11: ::std::os::raw::c_int,
        arg12: *const cuComplex,
        arg13: *mut cuComplex,
        arg14: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasCgemmBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const cuComplex,
        arg8: *const *const cuComplex,
        arg9: ::std::os::raw::c_int,
        arg10: *const *const cuComplex,
        arg11: ::std::os::raw::c_int,
        arg12: *const cuComplex,
        arg13: *const *mut cuComplex,
        arg14: ::std::os::raw::c_int,
        arg15: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasCgemmStridedBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const cuComplex,
        arg8: *const cuComplex,
        arg9: ::std::os::raw::c_int,
        arg10: ::std::os::raw::c_longlong,
        arg11: *const cuComplex,
        arg12: ::std::os::raw::c_int,
        arg13: ::std::os::raw::c_longlong,
        arg14: *const cuComplex,
        arg15: *mut cuComplex,
        arg16: ::std::os::raw::c_int,
        arg17: ::std::os::raw::c_longlong,
        arg18: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasCgemm_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const cuComplex,
        arg8: *const cuComplex,
        arg9: ::std::os::raw::c_int,
        arg10: *const cuComplex,
        arg11: ::std::os::raw::c_int,
        arg12: *const cuComplex,
        arg13: *mut cuComplex,
        arg14: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasCgemvStridedBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: ::std::os::raw::c_int,
        arg4: ::std::os::raw::c_int,
        arg5: *const cuComplex,
        arg6: *const cuComplex,
        arg7: ::std::os::raw::c_int,
        arg8: ::std::os::raw::c_longlong,
        arg9: *const cuComplex,
        arg10: ::std::os::raw::c_int,
        arg11: ::std::os::raw::c_longlong,
        arg12: *const cuComplex,
        arg13: *mut cuComplex,
        arg14: ::std::os::raw::c_int,
        arg15: ::std::os::raw::c_longlong,
        arg16: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasCgemv_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: ::std::os::raw::c_int,
        arg4: ::std::os::raw::c_int,
        arg5: *const cuComplex,
        arg6: *const cuComplex,
        arg7: ::std::os::raw::c_int,
        arg8: *const cuComplex,
        arg9: ::std::os::raw::c_int,
        arg10: *const cuComplex,
        arg11: *mut cuComplex,
        arg12: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasCgerc_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: ::std::os::raw::c_int,
        arg3: ::std::os::raw::c_int,
        arg4: *const cuComplex,
        arg5: *const cuComplex,
        arg6: ::std::os::raw::c_int,
        arg7: *const cuComplex,
        arg8: ::std::os::raw::c_int,
        arg9: *mut cuComplex,
        arg10: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasCgeru_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: ::std::os::raw::c_int,
        arg3: ::std::os::raw::c_int,
        arg4: *const cuComplex,
        arg5: *const cuComplex,
        arg6: ::std::os::raw::c_int,
        arg7: *const cuComplex,
        arg8: ::std::os::raw::c_int,
        arg9: *mut cuComplex,
        arg10: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasCgetrfBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: ::std::os::raw::c_int,
        arg3: *const *mut cuComplex,
        arg4: ::std::os::raw::c_int,
        arg5: *mut ::std::os::raw::c_int,
        arg6: *mut ::std::os::raw::c_int,
        arg7: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasCgetrsBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: ::std::os::raw::c_int,
        arg4: ::std::os::raw::c_int,
        arg5: *const *const cuComplex,
        arg6: ::std::os::raw::c_int,
        arg7: *const ::std::os::raw::c_int,
        arg8: *const *mut cuComplex,
        arg9: ::std::os::raw::c_int,
        arg10: *mut ::std::os::raw::c_int,
        arg11: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasCherk_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasFillMode_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: *const f32,
        arg7: *const cuComplex,
        arg8: ::std::os::raw::c_int,
        arg9: *const f32,
        arg10: *mut cuComplex,
        arg11: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasCreate_v2 = ::std::option::Option<
    unsafe extern "C" fn(arg1: *mut cublasHandle_t) -> cublasStatus_t,
>;
pub type PFN_cublasCsyrk_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasFillMode_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: *const cuComplex,
        arg7: *const cuComplex,
        arg8: ::std::os::raw::c_int,
        arg9: *const cuComplex,
        arg10: *mut cuComplex,
        arg11: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasCtrsm_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasSideMode_t,
        arg3: cublasFillMode_t,
        arg4: cublasOperation_t,
        arg5: cublasDiagType_t,
        arg6: ::std::os::raw::c_int,
        arg7: ::std::os::raw::c_int,
        arg8: *const cuComplex,
        arg9: *const cuComplex,
        arg10: ::std::os::raw::c_int,
        arg11: *mut cuComplex,
        arg12: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasDestroy_v2 = ::std::option::Option<
    unsafe extern "C" fn(arg1: cublasHandle_t) -> cublasStatus_t,
>;
pub type PFN_cublasDgeam = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: *const f64,
        arg7: *const f64,
        arg8: ::std::os::raw::c_int,
        arg9: *const f64,
        arg10: *const f64,
        arg11: ::std::os::raw::c_int,
        arg12: *mut f64,
        arg13: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasDgemmBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const f64,
        arg8: *const *const f64,
        arg9: ::std::os::raw::c_int,
        arg10: *const *const f64,
        arg11: ::std::os::raw::c_int,
        arg12: *const f64,
        arg13: *const *mut f64,
        arg14: ::std::os::raw::c_int,
        arg15: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasDgemmStridedBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const f64,
        arg8: *const f64,
        arg9: ::std::os::raw::c_int,
        arg10: ::std::os::raw::c_longlong,
        arg11: *const f64,
        arg12: ::std::os::raw::c_int,
        arg13: ::std::os::raw::c_longlong,
        arg14: *const f64,
        arg15: *mut f64,
        arg16: ::std::os::raw::c_int,
        arg17: ::std::os::raw::c_longlong,
        arg18: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasDgemm_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const f64,
        arg8: *const f64,
        arg9: ::std::os::raw::c_int,
        arg10: *const f64,
        arg11: ::std::os::raw::c_int,
        arg12: *const f64,
        arg13: *mut f64,
        arg14: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasDgemvStridedBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: ::std::os::raw::c_int,
        arg4: ::std::os::raw::c_int,
        arg5: *const f64,
        arg6: *const f64,
        arg7: ::std::os::raw::c_int,
        arg8: ::std::os::raw::c_longlong,
        arg9: *const f64,
        arg10: ::std::os::raw::c_int,
        arg11: ::std::os::raw::c_longlong,
        arg12: *const f64,
        arg13: *mut f64,
        arg14: ::std::os::raw::c_int,
        arg15: ::std::os::raw::c_longlong,
        arg16: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasDgemv_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: ::std::os::raw::c_int,
        arg4: ::std::os::raw::c_int,
        arg5: *const f64,
        arg6: *const f64,
        arg7: ::std::os::raw::c_int,
        arg8: *const f64,
        arg9: ::std::os::raw::c_int,
        arg10: *const f64,
        arg11: *mut f64,
        arg12: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasDger_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: ::std::os::raw::c_int,
        arg3: ::std::os::raw::c_int,
        arg4: *const f64,
        arg5: *const f64,
        arg6: ::std::os::raw::c_int,
        arg7: *const f64,
        arg8: ::std::os::raw::c_int,
        arg9: *mut f64,
        arg10: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasDgetrfBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: ::std::os::raw::c_int,
        arg3: *const *mut f64,
        arg4: ::std::os::raw::c_int,
        arg5: *mut ::std::os::raw::c_int,
        arg6: *mut ::std::os::raw::c_int,
        arg7: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasDgetrsBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: ::std::os::raw::c_int,
        arg4: ::std::os::raw::c_int,
        arg5: *const *const f64,
        arg6: ::std::os::raw::c_int,
        arg7: *const ::std::os::raw::c_int,
        arg8: *const *mut f64,
        arg9: ::std::os::raw::c_int,
        arg10: *mut ::std::os::raw::c_int,
        arg11: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasDotEx = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: ::std::os::raw::c_int,
        arg3: *const ::std::os::raw::c_void,
        arg4: cudaDataType,
        arg5: ::std::os::raw::c_int,
        arg6: *const ::std::os::raw::c_void,
        arg7: cudaDataType,
        arg8: ::std::os::raw::c_int,
        arg9: *mut ::std::os::raw::c_void,
        arg10: cudaDataType,
        arg11: cudaDataType,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasDsyrk_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasFillMode_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: *const f64,
        arg7: *const f64,
        arg8: ::std::os::raw::c_int,
        arg9: *const f64,
        arg10: *mut f64,
        arg11: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasDtrsm_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasSideMode_t,
        arg3: cublasFillMode_t,
        arg4: cublasOperation_t,
        arg5: cublasDiagType_t,
        arg6: ::std::os::raw::c_int,
        arg7: ::std::os::raw::c_int,
        arg8: *const f64,
        arg9: *const f64,
        arg10: ::std::os::raw::c_int,
        arg11: *mut f64,
        arg12: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasGemmBatchedEx = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const ::std::os::raw::c_void,
        arg8: *const *const ::std::os::raw::c_void,
        arg9: cudaDataType,
        arg10: ::std::os::raw::c_int,
        arg11: *const *const ::std::os::raw::c_void,
        arg12: cudaDataType,
        arg13: ::std::os::raw::c_int,
        arg14: *const ::std::os::raw::c_void,
        arg15: *const *mut ::std::os::raw::c_void,
        arg16: cudaDataType,
        arg17: ::std::os::raw::c_int,
        arg18: ::std::os::raw::c_int,
        arg19: cublasComputeType_t,
        arg20: cublasGemmAlgo_t,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasGemmEx = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const ::std::os::raw::c_void,
        arg8: *const ::std::os::raw::c_void,
        arg9: cudaDataType,
        arg10: ::std::os::raw::c_int,
        arg11: *const ::std::os::raw::c_void,
        arg12: cudaDataType,
        arg13: ::std::os::raw::c_int,
        arg14: *const ::std::os::raw::c_void,
        arg15: *mut ::std::os::raw::c_void,
        arg16: cudaDataType,
        arg17: ::std::os::raw::c_int,
        arg18: cublasComputeType_t,
        arg19: cublasGemmAlgo_t,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasGemmGroupedBatchedEx = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: *const cublasOperation_t,
        arg3: *const cublasOperation_t,
        arg4: *const ::std::os::raw::c_int,
        arg5: *const ::std::os::raw::c_int,
        arg6: *const ::std::os::raw::c_int,
        arg7: *const ::std::os::raw::c_void,
        arg8: *const *const ::std::os::raw::c_void,
        arg9: cudaDataType_t,
        arg10: *const ::std::os::raw::c_int,
        arg11: *const *const ::std::os::raw::c_void,
        arg12: cudaDataType_t,
        arg13: *const ::std::os::raw::c_int,
        arg14: *const ::std::os::raw::c_void,
        arg15: *const *mut ::std::os::raw::c_void,
        arg16: cudaDataType_t,
        arg17: *const ::std::os::raw::c_int,
        arg18: ::std::os::raw::c_int,
        arg19: *const ::std::os::raw::c_int,
        arg20: cublasComputeType_t,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasGemmStridedBatchedEx = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const ::std::os::raw::c_void,
        arg8: *const ::std::os::raw::c_void,
        arg9: cudaDataType,
        arg10: ::std::os::raw::c_int,
        arg11: ::std::os::raw::c_longlong,
        arg12: *const ::std::os::raw::c_void,
        arg13: cudaDataType,
        arg14: ::std::os::raw::c_int,
        arg15: ::std::os::raw::c_longlong,
        arg16: *const ::std::os::raw::c_void,
        arg17: *mut ::std::os::raw::c_void,
        arg18: cudaDataType,
        arg19: ::std::os::raw::c_int,
        arg20: ::std::os::raw::c_longlong,
        arg21: ::std::os::raw::c_int,
        arg22: cublasComputeType_t,
        arg23: cublasGemmAlgo_t,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasGetAtomicsMode = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: *mut cublasAtomicsMode_t,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasGetMathMode = ::std::option::Option<
    unsafe extern "C" fn(arg1: cublasHandle_t, arg2: *mut cublasMath_t) -> cublasStatus_t,
>;
pub type PFN_cublasGetPointerMode_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: *mut cublasPointerMode_t,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasGetProperty = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: libraryPropertyType,
        arg2: *mut ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasGetSmCountTarget = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: *mut ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasGetStatusName = ::std::option::Option<
    unsafe extern "C" fn(arg1: cublasStatus_t) -> *const ::std::os::raw::c_char,
>;
pub type PFN_cublasGetStatusString = ::std::option::Option<
    unsafe extern "C" fn(arg1: cublasStatus_t) -> *const ::std::os::raw::c_char,
>;
pub type PFN_cublasGetStream_v2 = ::std::option::Option<
    unsafe extern "C" fn(arg1: cublasHandle_t, arg2: *mut cudaStream_t) -> cublasStatus_t,
>;
pub type PFN_cublasGetVersion_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: *mut ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasNrm2Ex = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: ::std::os::raw::c_int,
        arg3: *const ::std::os::raw::c_void,
        arg4: cudaDataType,
        arg5: ::std::os::raw::c_int,
        arg6: *mut ::std::os::raw::c_void,
        arg7: cudaDataType,
        arg8: cudaDataType,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasScalEx = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: ::std::os::raw::c_int,
        arg3: *const ::std::os::raw::c_void,
        arg4: cudaDataType,
        arg5: *mut ::std::os::raw::c_void,
        arg6: cudaDataType,
        arg7: ::std::os::raw::c_int,
        arg8: cudaDataType,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasSetAtomicsMode = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasAtomicsMode_t,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasSetMathMode = ::std::option::Option<
    unsafe extern "C" fn(arg1: cublasHandle_t, arg2: cublasMath_t) -> cublasStatus_t,
>;
pub type PFN_cublasSetPointerMode_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasPointerMode_t,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasSetSmCountTarget = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasSetStream_v2 = ::std::option::Option<
    unsafe extern "C" fn(arg1: cublasHandle_t, arg2: cudaStream_t) -> cublasStatus_t,
>;
pub type PFN_cublasSetWorkspace_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: *mut ::std::os::raw::c_void,
        arg3: usize,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasSgeam = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: *const f32,
        arg7: *const f32,
        arg8: ::std::os::raw::c_int,
        arg9: *const f32,
        arg10: *const f32,
        arg11: ::std::os::raw::c_int,
        arg12: *mut f32,
        arg13: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasSgemmBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const f32,
        arg8: *const *const f32,
        arg9: ::std::os::raw::c_int,
        arg10: *const *const f32,
        arg11: ::std::os::raw::c_int,
        arg12: *const f32,
        arg13: *const *mut f32,
        arg14: ::std::os::raw::c_int,
        arg15: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasSgemmStridedBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const f32,
        arg8: *const f32,
        arg9: ::std::os::raw::c_int,
        arg10: ::std::os::raw::c_longlong,
        arg11: *const f32,
        arg12: ::std::os::raw::c_int,
        arg13: ::std::os::raw::c_longlong,
        arg14: *const f32,
        arg15: *mut f32,
        arg16: ::std::os::raw::c_int,
        arg17: ::std::os::raw::c_longlong,
        arg18: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasSgemm_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const f32,
        arg8: *const f32,
        arg9: ::std::os::raw::c_int,
        arg10: *const f32,
        arg11: ::std::os::raw::c_int,
        arg12: *const f32,
        arg13: *mut f32,
        arg14: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasSgemvStridedBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: ::std::os::raw::c_int,
        arg4: ::std::os::raw::c_int,
        arg5: *const f32,
        arg6: *const f32,
        arg7: ::std::os::raw::c_int,
        arg8: ::std::os::raw::c_longlong,
        arg9: *const f32,
        arg10: ::std::os::raw::c_int,
        arg11: ::std::os::raw::c_longlong,
        arg12: *const f32,
        arg13: *mut f32,
        arg14: ::std::os::raw::c_int,
        arg15: ::std::os::raw::c_longlong,
        arg16: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasSgemv_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: ::std::os::raw::c_int,
        arg4: ::std::os::raw::c_int,
        arg5: *const f32,
        arg6: *const f32,
        arg7: ::std::os::raw::c_int,
        arg8: *const f32,
        arg9: ::std::os::raw::c_int,
        arg10: *const f32,
        arg11: *mut f32,
        arg12: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasSger_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: ::std::os::raw::c_int,
        arg3: ::std::os::raw::c_int,
        arg4: *const f32,
        arg5: *const f32,
        arg6: ::std::os::raw::c_int,
        arg7: *const f32,
        arg8: ::std::os::raw::c_int,
        arg9: *mut f32,
        arg10: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasSgetrfBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: ::std::os::raw::c_int,
        arg3: *const *mut f32,
        arg4: ::std::os::raw::c_int,
        arg5: *mut ::std::os::raw::c_int,
        arg6: *mut ::std::os::raw::c_int,
        arg7: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasSgetrsBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: ::std::os::raw::c_int,
        arg4: ::std::os::raw::c_int,
        arg5: *const *const f32,
        arg6: ::std::os::raw::c_int,
        arg7: *const ::std::os::raw::c_int,
        arg8: *const *mut f32,
        arg9: ::std::os::raw::c_int,
        arg10: *mut ::std::os::raw::c_int,
        arg11: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasSsyrk_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasFillMode_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: *const f32,
        arg7: *const f32,
        arg8: ::std::os::raw::c_int,
        arg9: *const f32,
        arg10: *mut f32,
        arg11: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasStrsm_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasSideMode_t,
        arg3: cublasFillMode_t,
        arg4: cublasOperation_t,
        arg5: cublasDiagType_t,
        arg6: ::std::os::raw::c_int,
        arg7: ::std::os::raw::c_int,
        arg8: *const f32,
        arg9: *const f32,
        arg10: ::std::os::raw::c_int,
        arg11: *mut f32,
        arg12: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasZgeam = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: *const cuDoubleComplex,
        arg7: *const cuDoubleComplex,
        arg8: ::std::os::raw::c_int,
        arg9: *const cuDoubleComplex,
        arg10: *const cuDoubleComplex,
        arg11: ::std::os::raw::c_int,
        arg12: *mut cuDoubleComplex,
        arg13: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasZgemm3m = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const cuDoubleComplex,
        arg8: *const cuDoubleComplex,
        arg9: ::std::os::raw::c_int,
        arg10: *const cuDoubleComplex,
        arg11: ::std::os::raw::c_int,
        arg12: *const cuDoubleComplex,
        arg13: *mut cuDoubleComplex,
        arg14: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasZgemmBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const cuDoubleComplex,
        arg8: *const *const cuDoubleComplex,
        arg9: ::std::os::raw::c_int,
        arg10: *const *const cuDoubleComplex,
        arg11: ::std::os::raw::c_int,
        arg12: *const cuDoubleComplex,
        arg13: *const *mut cuDoubleComplex,
        arg14: ::std::os::raw::c_int,
        arg15: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasZgemmStridedBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const cuDoubleComplex,
        arg8: *const cuDoubleComplex,
        arg9: ::std::os::raw::c_int,
        arg10: ::std::os::raw::c_longlong,
        arg11: *const cuDoubleComplex,
        arg12: ::std::os::raw::c_int,
        arg13: ::std::os::raw::c_longlong,
        arg14: *const cuDoubleComplex,
        arg15: *mut cuDoubleComplex,
        arg16: ::std::os::raw::c_int,
        arg17: ::std::os::raw::c_longlong,
        arg18: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasZgemm_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: ::std::os::raw::c_int,
        arg7: *const cuDoubleComplex,
        arg8: *const cuDoubleComplex,
        arg9: ::std::os::raw::c_int,
        arg10: *const cuDoubleComplex,
        arg11: ::std::os::raw::c_int,
        arg12: *const cuDoubleComplex,
        arg13: *mut cuDoubleComplex,
        arg14: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasZgemvStridedBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: ::std::os::raw::c_int,
        arg4: ::std::os::raw::c_int,
        arg5: *const cuDoubleComplex,
        arg6: *const cuDoubleComplex,
        arg7: ::std::os::raw::c_int,
        arg8: ::std::os::raw::c_longlong,
        arg9: *const cuDoubleComplex,
        arg10: ::std::os::raw::c_int,
        arg11: ::std::os::raw::c_longlong,
        arg12: *const cuDoubleComplex,
        arg13: *mut cuDoubleComplex,
        arg14: ::std::os::raw::c_int,
        arg15: ::std::os::raw::c_longlong,
        arg16: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasZgemv_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: ::std::os::raw::c_int,
        arg4: ::std::os::raw::c_int,
        arg5: *const cuDoubleComplex,
        arg6: *const cuDoubleComplex,
        arg7: ::std::os::raw::c_int,
        arg8: *const cuDoubleComplex,
        arg9: ::std::os::raw::c_int,
        arg10: *const cuDoubleComplex,
        arg11: *mut cuDoubleComplex,
        arg12: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasZgerc_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: ::std::os::raw::c_int,
        arg3: ::std::os::raw::c_int,
        arg4: *const cuDoubleComplex,
        arg5: *const cuDoubleComplex,
        arg6: ::std::os::raw::c_int,
        arg7: *const cuDoubleComplex,
        arg8: ::std::os::raw::c_int,
        arg9: *mut cuDoubleComplex,
        arg10: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasZgeru_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: ::std::os::raw::c_int,
        arg3: ::std::os::raw::c_int,
        arg4: *const cuDoubleComplex,
        arg5: *const cuDoubleComplex,
        arg6: ::std::os::raw::c_int,
        arg7: *const cuDoubleComplex,
        arg8: ::std::os::raw::c_int,
        arg9: *mut cuDoubleComplex,
        arg10: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasZgetrfBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: ::std::os::raw::c_int,
        arg3: *const *mut cuDoubleComplex,
        arg4: ::std::os::raw::c_int,
        arg5: *mut ::std::os::raw::c_int,
        arg6: *mut ::std::os::raw::c_int,
        arg7: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasZgetrsBatched = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasOperation_t,
        arg3: ::std::os::raw::c_int,
        arg4: ::std::os::raw::c_int,
        arg5: *const *const cuDoubleComplex,
        arg6: ::std::os::raw::c_int,
        arg7: *const ::std::os::raw::c_int,
        arg8: *const *mut cuDoubleComplex,
        arg9: ::std::os::raw::c_int,
        arg10: *mut ::std::os::raw::c_int,
        arg11: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasZherk_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasFillMode_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: *const f64,
        arg7: *const cuDoubleComplex,
        arg8: ::std::os::raw::c_int,
        arg9: *const f64,
        arg10: *mut cuDoubleComplex,
        arg11: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasZsyrk_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasFillMode_t,
        arg3: cublasOperation_t,
        arg4: ::std::os::raw::c_int,
        arg5: ::std::os::raw::c_int,
        arg6: *const cuDoubleComplex,
        arg7: *const cuDoubleComplex,
        arg8: ::std::os::raw::c_int,
        arg9: *const cuDoubleComplex,
        arg10: *mut cuDoubleComplex,
        arg11: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasZtrsm_v2 = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasHandle_t,
        arg2: cublasSideMode_t,
        arg3: cublasFillMode_t,
        arg4: cublasOperation_t,
        arg5: cublasDiagType_t,
        arg6: ::std::os::raw::c_int,
        arg7: ::std::os::raw::c_int,
        arg8: *const cuDoubleComplex,
        arg9: *const cuDoubleComplex,
        arg10: ::std::os::raw::c_int,
        arg11: *mut cuDoubleComplex,
        arg12: ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
