// Generated from wrapper.h and the [cublaslt] names of src/sys/allowlist.txt by build/bindings.rs; do not edit. Again with:
// python3 scripts/build_bindings.py

pub type cudaStream_t = super::driver::CUstream;
pub use super::cublas::{cublasComputeType_t, cublasStatus_t, cudaDataType, cudaDataType_t, libraryPropertyType};

#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cublasLtContext {
    _unused: [u8; 0],
}
pub type cublasLtHandle_t = *mut cublasLtContext;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct cublasLtMatrixLayoutOpaque_t {
    pub data: [u64; 8usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of cublasLtMatrixLayoutOpaque_t",
    ][::std::mem::size_of::<cublasLtMatrixLayoutOpaque_t>() - 64usize];
    [
        "Alignment of cublasLtMatrixLayoutOpaque_t",
    ][::std::mem::align_of::<cublasLtMatrixLayoutOpaque_t>() - 8usize];
};
pub type cublasLtMatrixLayout_t = *mut cublasLtMatrixLayoutOpaque_t;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct cublasLtMatmulAlgo_t {
    pub data: [u64; 8usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of cublasLtMatmulAlgo_t",
    ][::std::mem::size_of::<cublasLtMatmulAlgo_t>() - 64usize];
    [
        "Alignment of cublasLtMatmulAlgo_t",
    ][::std::mem::align_of::<cublasLtMatmulAlgo_t>() - 8usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct cublasLtMatmulDescOpaque_t {
    pub data: [u64; 32usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of cublasLtMatmulDescOpaque_t",
    ][::std::mem::size_of::<cublasLtMatmulDescOpaque_t>() - 256usize];
    [
        "Alignment of cublasLtMatmulDescOpaque_t",
    ][::std::mem::align_of::<cublasLtMatmulDescOpaque_t>() - 8usize];
};
pub type cublasLtMatmulDesc_t = *mut cublasLtMatmulDescOpaque_t;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct cublasLtMatrixTransformDescOpaque_t {
    pub data: [u64; 8usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of cublasLtMatrixTransformDescOpaque_t",
    ][::std::mem::size_of::<cublasLtMatrixTransformDescOpaque_t>() - 64usize];
    [
        "Alignment of cublasLtMatrixTransformDescOpaque_t",
    ][::std::mem::align_of::<cublasLtMatrixTransformDescOpaque_t>() - 8usize];
};
pub type cublasLtMatrixTransformDesc_t = *mut cublasLtMatrixTransformDescOpaque_t;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct cublasLtMatmulPreferenceOpaque_t {
    pub data: [u64; 8usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of cublasLtMatmulPreferenceOpaque_t",
    ][::std::mem::size_of::<cublasLtMatmulPreferenceOpaque_t>() - 64usize];
    [
        "Alignment of cublasLtMatmulPreferenceOpaque_t",
    ][::std::mem::align_of::<cublasLtMatmulPreferenceOpaque_t>() - 8usize];
};
pub type cublasLtMatmulPreference_t = *mut cublasLtMatmulPreferenceOpaque_t;
impl cublasLtMatmulMatrixScale_t {
    pub const CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F: cublasLtMatmulMatrixScale_t = cublasLtMatmulMatrixScale_t(
        0,
    );
    pub const CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3: cublasLtMatmulMatrixScale_t = cublasLtMatmulMatrixScale_t(
        1,
    );
    pub const CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0: cublasLtMatmulMatrixScale_t = cublasLtMatmulMatrixScale_t(
        2,
    );
    pub const CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F: cublasLtMatmulMatrixScale_t = cublasLtMatmulMatrixScale_t(
        3,
    );
    pub const CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F: cublasLtMatmulMatrixScale_t = cublasLtMatmulMatrixScale_t(
        4,
    );
    pub const CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F: cublasLtMatmulMatrixScale_t = cublasLtMatmulMatrixScale_t(
        5,
    );
    pub const CUBLASLT_MATMUL_MATRIX_SCALE_END: cublasLtMatmulMatrixScale_t = cublasLtMatmulMatrixScale_t(
        6,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasLtMatmulMatrixScale_t(pub ::std::os::raw::c_uint);
impl cublasLtPointerMode_t {
    pub const CUBLASLT_POINTER_MODE_HOST: cublasLtPointerMode_t = cublasLtPointerMode_t(
        0,
    );
    pub const CUBLASLT_POINTER_MODE_DEVICE: cublasLtPointerMode_t = cublasLtPointerMode_t(
        1,
    );
    pub const CUBLASLT_POINTER_MODE_DEVICE_VECTOR: cublasLtPointerMode_t = cublasLtPointerMode_t(
        2,
    );
    pub const CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO: cublasLtPointerMode_t = cublasLtPointerMode_t(
        3,
    );
    pub const CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST: cublasLtPointerMode_t = cublasLtPointerMode_t(
        4,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasLtPointerMode_t(pub ::std::os::raw::c_uint);
impl cublasLtOrder_t {
    pub const CUBLASLT_ORDER_COL: cublasLtOrder_t = cublasLtOrder_t(0);
    pub const CUBLASLT_ORDER_ROW: cublasLtOrder_t = cublasLtOrder_t(1);
    pub const CUBLASLT_ORDER_COL32: cublasLtOrder_t = cublasLtOrder_t(2);
    pub const CUBLASLT_ORDER_COL4_4R2_8C: cublasLtOrder_t = cublasLtOrder_t(3);
    pub const CUBLASLT_ORDER_COL32_2R_4R4: cublasLtOrder_t = cublasLtOrder_t(4);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasLtOrder_t(pub ::std::os::raw::c_uint);
impl cublasLtMatrixLayoutAttribute_t {
    pub const CUBLASLT_MATRIX_LAYOUT_TYPE: cublasLtMatrixLayoutAttribute_t = cublasLtMatrixLayoutAttribute_t(
        0,
    );
    pub const CUBLASLT_MATRIX_LAYOUT_ORDER: cublasLtMatrixLayoutAttribute_t = cublasLtMatrixLayoutAttribute_t(
        1,
    );
    pub const CUBLASLT_MATRIX_LAYOUT_ROWS: cublasLtMatrixLayoutAttribute_t = cublasLtMatrixLayoutAttribute_t(
        2,
    );
    pub const CUBLASLT_MATRIX_LAYOUT_COLS: cublasLtMatrixLayoutAttribute_t = cublasLtMatrixLayoutAttribute_t(
        3,
    );
    pub const CUBLASLT_MATRIX_LAYOUT_LD: cublasLtMatrixLayoutAttribute_t = cublasLtMatrixLayoutAttribute_t(
        4,
    );
    pub const CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: cublasLtMatrixLayoutAttribute_t = cublasLtMatrixLayoutAttribute_t(
        5,
    );
    pub const CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: cublasLtMatrixLayoutAttribute_t = cublasLtMatrixLayoutAttribute_t(
        6,
    );
    pub const CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET: cublasLtMatrixLayoutAttribute_t = cublasLtMatrixLayoutAttribute_t(
        7,
    );
    pub const CUBLASLT_MATRIX_LAYOUT_BATCH_MODE: cublasLtMatrixLayoutAttribute_t = cublasLtMatrixLayoutAttribute_t(
        8,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasLtMatrixLayoutAttribute_t(pub ::std::os::raw::c_uint);
impl cublasLtMatmulDescAttributes_t {
    pub const CUBLASLT_MATMUL_DESC_COMPUTE_TYPE: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        0,
    );
    pub const CUBLASLT_MATMUL_DESC_SCALE_TYPE: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        1,
    );
    pub const CUBLASLT_MATMUL_DESC_POINTER_MODE: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        2,
    );
    pub const CUBLASLT_MATMUL_DESC_TRANSA: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        3,
    );
    pub const CUBLASLT_MATMUL_DESC_TRANSB: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        4,
    );
    pub const CUBLASLT_MATMUL_DESC_TRANSC: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        5,
    );
    pub const CUBLASLT_MATMUL_DESC_FILL_MODE: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        6,
    );
    pub const CUBLASLT_MATMUL_DESC_EPILOGUE: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        7,
    );
    pub const CUBLASLT_MATMUL_DESC_BIAS_POINTER: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        8,
    );
    pub const CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        10,
    );
    pub const CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        11,
    );
    pub const CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        12,
    );
    pub const CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        13,
    );
    pub const CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        14,
    );
    pub const CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        15,
    );
    pub const CUBLASLT_MATMUL_DESC_A_SCALE_POINTER: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        17,
    );
    pub const CUBLASLT_MATMUL_DESC_B_SCALE_POINTER: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        18,
    );
    pub const CUBLASLT_MATMUL_DESC_C_SCALE_POINTER: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        19,
    );
    pub const CUBLASLT_MATMUL_DESC_D_SCALE_POINTER: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        20,
    );
    pub const CUBLASLT_MATMUL_DESC_AMAX_D_POINTER: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        21,
    );
    pub const CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        22,
    );
    pub const CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        23,
    );
    pub const CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        24,
    );
    pub const CUBLASLT_MATMUL_DESC_FAST_ACCUM: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        25,
    );
    pub const CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        26,
    );
    pub const CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_NUM_CHUNKS_D_ROWS: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        27,
    );
    pub const CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_NUM_CHUNKS_D_COLS: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        28,
    );
    pub const CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_IN_COUNTERS_POINTER: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        29,
    );
    pub const CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_OUT_COUNTERS_POINTER: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        30,
    );
    pub const CUBLASLT_MATMUL_DESC_A_SCALE_MODE: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        31,
    );
    pub const CUBLASLT_MATMUL_DESC_B_SCALE_MODE: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        32,
    );
    pub const CUBLASLT_MATMUL_DESC_C_SCALE_MODE: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        33,
    );
    pub const CUBLASLT_MATMUL_DESC_D_SCALE_MODE: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        34,
    );
    pub const CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        35,
    );
    pub const CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        36,
    );
    pub const CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE: cublasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t(
        37,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasLtMatmulDescAttributes_t(pub ::std::os::raw::c_uint);
impl cublasLtMatrixTransformDescAttributes_t {
    pub const CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE: cublasLtMatrixTransformDescAttributes_t = cublasLtMatrixTransformDescAttributes_t(
        0,
    );
    pub const CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE: cublasLtMatrixTransformDescAttributes_t = cublasLtMatrixTransformDescAttributes_t(
        1,
    );
    pub const CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA: cublasLtMatrixTransformDescAttributes_t = cublasLtMatrixTransformDescAttributes_t(
        2,
    );
    pub const CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB: cublasLtMatrixTransformDescAttributes_t = cublasLtMatrixTransformDescAttributes_t(
        3,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasLtMatrixTransformDescAttributes_t(pub ::std::os::raw::c_uint);
impl cublasLtReductionScheme_t {
    pub const CUBLASLT_REDUCTION_SCHEME_NONE: cublasLtReductionScheme_t = cublasLtReductionScheme_t(
        0,
    );
    pub const CUBLASLT_REDUCTION_SCHEME_INPLACE: cublasLtReductionScheme_t = cublasLtReductionScheme_t(
        1,
    );
    pub const CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE: cublasLtReductionScheme_t = cublasLtReductionScheme_t(
        2,
    );
    pub const CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE: cublasLtReductionScheme_t = cublasLtReductionScheme_t(
        4,
    );
    pub const CUBLASLT_REDUCTION_SCHEME_MASK: cublasLtReductionScheme_t = cublasLtReductionScheme_t(
        7,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasLtReductionScheme_t(pub ::std::os::raw::c_uint);
impl cublasLtEpilogue_t {
    pub const CUBLASLT_EPILOGUE_DEFAULT: cublasLtEpilogue_t = cublasLtEpilogue_t(1);
    pub const CUBLASLT_EPILOGUE_RELU: cublasLtEpilogue_t = cublasLtEpilogue_t(2);
    pub const CUBLASLT_EPILOGUE_RELU_AUX: cublasLtEpilogue_t = cublasLtEpilogue_t(130);
    pub const CUBLASLT_EPILOGUE_BIAS: cublasLtEpilogue_t = cublasLtEpilogue_t(4);
    pub const CUBLASLT_EPILOGUE_RELU_BIAS: cublasLtEpilogue_t = cublasLtEpilogue_t(6);
    pub const CUBLASLT_EPILOGUE_RELU_AUX_BIAS: cublasLtEpilogue_t = cublasLtEpilogue_t(
        134,
    );
    pub const CUBLASLT_EPILOGUE_DRELU: cublasLtEpilogue_t = cublasLtEpilogue_t(136);
    pub const CUBLASLT_EPILOGUE_DRELU_BGRAD: cublasLtEpilogue_t = cublasLtEpilogue_t(
        152,
    );
    pub const CUBLASLT_EPILOGUE_GELU: cublasLtEpilogue_t = cublasLtEpilogue_t(32);
    pub const CUBLASLT_EPILOGUE_GELU_AUX: cublasLtEpilogue_t = cublasLtEpilogue_t(160);
    pub const CUBLASLT_EPILOGUE_GELU_BIAS: cublasLtEpilogue_t = cublasLtEpilogue_t(36);
    pub const CUBLASLT_EPILOGUE_GELU_AUX_BIAS: cublasLtEpilogue_t = cublasLtEpilogue_t(
        164,
    );
    pub const CUBLASLT_EPILOGUE_DGELU: cublasLtEpilogue_t = cublasLtEpilogue_t(192);
    pub const CUBLASLT_EPILOGUE_DGELU_BGRAD: cublasLtEpilogue_t = cublasLtEpilogue_t(
        208,
    );
    pub const CUBLASLT_EPILOGUE_BGRADA: cublasLtEpilogue_t = cublasLtEpilogue_t(256);
    pub const CUBLASLT_EPILOGUE_BGRADB: cublasLtEpilogue_t = cublasLtEpilogue_t(512);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasLtEpilogue_t(pub ::std::os::raw::c_uint);
impl cublasLtMatmulSearch_t {
    pub const CUBLASLT_SEARCH_BEST_FIT: cublasLtMatmulSearch_t = cublasLtMatmulSearch_t(
        0,
    );
    pub const CUBLASLT_SEARCH_LIMITED_BY_ALGO_ID: cublasLtMatmulSearch_t = cublasLtMatmulSearch_t(
        1,
    );
    pub const CUBLASLT_SEARCH_RESERVED_02: cublasLtMatmulSearch_t = cublasLtMatmulSearch_t(
        2,
    );
    pub const CUBLASLT_SEARCH_RESERVED_03: cublasLtMatmulSearch_t = cublasLtMatmulSearch_t(
        3,
    );
    pub const CUBLASLT_SEARCH_RESERVED_04: cublasLtMatmulSearch_t = cublasLtMatmulSearch_t(
        4,
    );
    pub const CUBLASLT_SEARCH_RESERVED_05: cublasLtMatmulSearch_t = cublasLtMatmulSearch_t(
        5,
    );
    pub const CUBLASLT_SEARCH_RESERVED_06: cublasLtMatmulSearch_t = cublasLtMatmulSearch_t(
        6,
    );
    pub const CUBLASLT_SEARCH_RESERVED_07: cublasLtMatmulSearch_t = cublasLtMatmulSearch_t(
        7,
    );
    pub const CUBLASLT_SEARCH_RESERVED_08: cublasLtMatmulSearch_t = cublasLtMatmulSearch_t(
        8,
    );
    pub const CUBLASLT_SEARCH_RESERVED_09: cublasLtMatmulSearch_t = cublasLtMatmulSearch_t(
        9,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasLtMatmulSearch_t(pub ::std::os::raw::c_uint);
impl cublasLtMatmulPreferenceAttributes_t {
    pub const CUBLASLT_MATMUL_PREF_SEARCH_MODE: cublasLtMatmulPreferenceAttributes_t = cublasLtMatmulPreferenceAttributes_t(
        0,
    );
    pub const CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: cublasLtMatmulPreferenceAttributes_t = cublasLtMatmulPreferenceAttributes_t(
        1,
    );
    pub const CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: cublasLtMatmulPreferenceAttributes_t = cublasLtMatmulPreferenceAttributes_t(
        3,
    );
    pub const CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: cublasLtMatmulPreferenceAttributes_t = cublasLtMatmulPreferenceAttributes_t(
        5,
    );
    pub const CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: cublasLtMatmulPreferenceAttributes_t = cublasLtMatmulPreferenceAttributes_t(
        6,
    );
    pub const CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: cublasLtMatmulPreferenceAttributes_t = cublasLtMatmulPreferenceAttributes_t(
        7,
    );
    pub const CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: cublasLtMatmulPreferenceAttributes_t = cublasLtMatmulPreferenceAttributes_t(
        8,
    );
    pub const CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT: cublasLtMatmulPreferenceAttributes_t = cublasLtMatmulPreferenceAttributes_t(
        9,
    );
    pub const CUBLASLT_MATMUL_PREF_IMPL_MASK: cublasLtMatmulPreferenceAttributes_t = cublasLtMatmulPreferenceAttributes_t(
        12,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasLtMatmulPreferenceAttributes_t(pub ::std::os::raw::c_uint);
#[repr(C)]
pub struct cublasLtMatmulHeuristicResult_t {
    pub algo: cublasLtMatmulAlgo_t,
    pub workspaceSize: usize,
    pub state: cublasStatus_t,
    pub wavesCount: f32,
    pub reserved: [::std::os::raw::c_int; 4usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of cublasLtMatmulHeuristicResult_t",
    ][::std::mem::size_of::<cublasLtMatmulHeuristicResult_t>() - 96usize];
    [
        "Alignment of cublasLtMatmulHeuristicResult_t",
    ][::std::mem::align_of::<cublasLtMatmulHeuristicResult_t>() - 8usize];
};
impl Default for cublasLtMatmulHeuristicResult_t {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl cublasLtMatmulAlgoCapAttributes_t {
    pub const CUBLASLT_ALGO_CAP_SPLITK_SUPPORT: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        0,
    );
    pub const CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        1,
    );
    pub const CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        2,
    );
    pub const CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        3,
    );
    pub const CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        4,
    );
    pub const CUBLASLT_ALGO_CAP_UPLO_SUPPORT: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        5,
    );
    pub const CUBLASLT_ALGO_CAP_TILE_IDS: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        6,
    );
    pub const CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        7,
    );
    pub const CUBLASLT_ALGO_CAP_CUSTOM_MEMORY_ORDER: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        10,
    );
    pub const CUBLASLT_ALGO_CAP_POINTER_MODE_MASK: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        11,
    );
    pub const CUBLASLT_ALGO_CAP_EPILOGUE_MASK: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        12,
    );
    pub const CUBLASLT_ALGO_CAP_STAGES_IDS: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        13,
    );
    pub const CUBLASLT_ALGO_CAP_LD_NEGATIVE: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        14,
    );
    pub const CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        15,
    );
    pub const CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        16,
    );
    pub const CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        17,
    );
    pub const CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        18,
    );
    pub const CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        19,
    );
    pub const CUBLASLT_ALGO_CAP_ATOMIC_SYNC: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        20,
    );
    pub const CUBLASLT_ALGO_CAP_POINTER_ARRAY_BATCH_SUPPORT: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        21,
    );
    pub const CUBLASLT_ALGO_CAP_FLOATING_POINT_EMULATION_SUPPORT: cublasLtMatmulAlgoCapAttributes_t = cublasLtMatmulAlgoCapAttributes_t(
        22,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasLtMatmulAlgoCapAttributes_t(pub ::std::os::raw::c_uint);
impl cublasLtMatmulAlgoConfigAttributes_t {
    pub const CUBLASLT_ALGO_CONFIG_ID: cublasLtMatmulAlgoConfigAttributes_t = cublasLtMatmulAlgoConfigAttributes_t(
        0,
    );
    pub const CUBLASLT_ALGO_CONFIG_TILE_ID: cublasLtMatmulAlgoConfigAttributes_t = cublasLtMatmulAlgoConfigAttributes_t(
        1,
    );
    pub const CUBLASLT_ALGO_CONFIG_SPLITK_NUM: cublasLtMatmulAlgoConfigAttributes_t = cublasLtMatmulAlgoConfigAttributes_t(
        2,
    );
    pub const CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME: cublasLtMatmulAlgoConfigAttributes_t = cublasLtMatmulAlgoConfigAttributes_t(
        3,
    );
    pub const CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING: cublasLtMatmulAlgoConfigAttributes_t = cublasLtMatmulAlgoConfigAttributes_t(
        4,
    );
    pub const CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION: cublasLtMatmulAlgoConfigAttributes_t = cublasLtMatmulAlgoConfigAttributes_t(
        5,
    );
    pub const CUBLASLT_ALGO_CONFIG_STAGES_ID: cublasLtMatmulAlgoConfigAttributes_t = cublasLtMatmulAlgoConfigAttributes_t(
        6,
    );
    pub const CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID: cublasLtMatmulAlgoConfigAttributes_t = cublasLtMatmulAlgoConfigAttributes_t(
        7,
    );
    pub const CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID: cublasLtMatmulAlgoConfigAttributes_t = cublasLtMatmulAlgoConfigAttributes_t(
        8,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cublasLtMatmulAlgoConfigAttributes_t(pub ::std::os::raw::c_uint);
pub type PFN_cublasLtCreate = ::std::option::Option<
    unsafe extern "C" fn(arg1: *mut cublasLtHandle_t) -> cublasStatus_t,
>;
pub type PFN_cublasLtDestroy = ::std::option::Option<
    unsafe extern "C" fn(arg1: cublasLtHandle_t) -> cublasStatus_t,
>;
pub type PFN_cublasLtGetProperty = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: libraryPropertyType,
        arg2: *mut ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtGetStatusName = ::std::option::Option<
    unsafe extern "C" fn(arg1: cublasStatus_t) -> *const ::std::os::raw::c_char,
>;
pub type PFN_cublasLtGetStatusString = ::std::option::Option<
    unsafe extern "C" fn(arg1: cublasStatus_t) -> *const ::std::os::raw::c_char,
>;
pub type PFN_cublasLtGetVersion = ::std::option::Option<unsafe extern "C" fn() -> usize>;
pub type PFN_cublasLtMatmul = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasLtHandle_t,
        arg2: cublasLtMatmulDesc_t,
        arg3: *const ::std::os::raw::c_void,
        arg4: *const ::std::os::raw::c_void,
        arg5: cublasLtMatrixLayout_t,
        arg6: *const ::std::os::raw::c_void,
        arg7: cublasLtMatrixLayout_t,
        arg8: *const ::std::os::raw::c_void,
        arg9: *const ::std::os::raw::c_void,
        arg10: cublasLtMatrixLayout_t,
        arg11: *mut ::std::os::raw::c_void,
        arg12: cublasLtMatrixLayout_t,
        arg13: *const cublasLtMatmulAlgo_t,
        arg14: *mut ::std::os::raw::c_void,
        arg15: usize,
        arg16: cudaStream_t,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatmulAlgoCapGetAttribute = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *const cublasLtMatmulAlgo_t,
        arg2: cublasLtMatmulAlgoCapAttributes_t,
        arg3: *mut ::std::os::raw::c_void,
        arg4: usize,
        arg5: *mut usize,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatmulAlgoCheck = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasLtHandle_t,
        arg2: cublasLtMatmulDesc_t,
        arg3: cublasLtMatrixLayout_t,
        arg4: cublasLtMatrixLayout_t,
        arg5: cublasLtMatrixLayout_t,
        arg6: cublasLtMatrixLayout_t,
        arg7: *const cublasLtMatmulAlgo_t,
        arg8: *mut cublasLtMatmulHeuristicResult_t,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatmulAlgoConfigGetAttribute = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *const cublasLtMatmulAlgo_t,
        arg2: cublasLtMatmulAlgoConfigAttributes_t,
        arg3: *mut ::std::os::raw::c_void,
        arg4: usize,
        arg5: *mut usize,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatmulAlgoConfigSetAttribute = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *mut cublasLtMatmulAlgo_t,
        arg2: cublasLtMatmulAlgoConfigAttributes_t,
        arg3: *const ::std::os::raw::c_void,
        arg4: usize,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatmulAlgoGetHeuristic = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasLtHandle_t,
        arg2: cublasLtMatmulDesc_t,
        arg3: cublasLtMatrixLayout_t,
        arg4: cublasLtMatrixLayout_t,
        arg5: cublasLtMatrixLayout_t,
        arg6: cublasLtMatrixLayout_t,
        arg7: cublasLtMatmulPreference_t,
        arg8: ::std::os::raw::c_int,
        arg9: *mut cublasLtMatmulHeuristicResult_t,
        arg10: *mut ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatmulAlgoGetIds = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasLtHandle_t,
        arg2: cublasComputeType_t,
        arg3: cudaDataType_t,
        arg4: cudaDataType_t,
        arg5: cudaDataType_t,
        arg6: cudaDataType_t,
        arg7: cudaDataType_t,
        arg8: ::std::os::raw::c_int,
        arg9: *mut ::std::os::raw::c_int,
        arg10: *mut ::std::os::raw::c_int,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatmulAlgoInit = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasLtHandle_t,
        arg2: cublasComputeType_t,
        arg3: cudaDataType_t,
        arg4: cudaDataType_t,
        arg5: cudaDataType_t,
        arg6: cudaDataType_t,
        arg7: cudaDataType_t,
        arg8: ::std::os::raw::c_int,
        arg9: *mut cublasLtMatmulAlgo_t,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatmulDescCreate = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *mut cublasLtMatmulDesc_t,
        arg2: cublasComputeType_t,
        arg3: cudaDataType_t,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatmulDescDestroy = ::std::option::Option<
    unsafe extern "C" fn(arg1: cublasLtMatmulDesc_t) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatmulDescGetAttribute = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasLtMatmulDesc_t,
        arg2: cublasLtMatmulDescAttributes_t,
        arg3: *mut ::std::os::raw::c_void,
        arg4: usize,
        arg5: *mut usize,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatmulDescSetAttribute = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasLtMatmulDesc_t,
        arg2: cublasLtMatmulDescAttributes_t,
        arg3: *const ::std::os::raw::c_void,
        arg4: usize,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatmulPreferenceCreate = ::std::option::Option<
    unsafe extern "C" fn(arg1: *mut cublasLtMatmulPreference_t) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatmulPreferenceDestroy = ::std::option::Option<
    unsafe extern "C" fn(arg1: cublasLtMatmulPreference_t) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatmulPreferenceGetAttribute = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasLtMatmulPreference_t,
        arg2: cublasLtMatmulPreferenceAttributes_t,
        arg3: *mut ::std::os::raw::c_void,
        arg4: usize,
        arg5: *mut usize,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatmulPreferenceSetAttribute = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasLtMatmulPreference_t,
        arg2: cublasLtMatmulPreferenceAttributes_t,
        arg3: *const ::std::os::raw::c_void,
        arg4: usize,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatrixLayoutCreate = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *mut cublasLtMatrixLayout_t,
        arg2: cudaDataType,
        arg3: u64,
        arg4: u64,
        arg5: i64,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatrixLayoutDestroy = ::std::option::Option<
    unsafe extern "C" fn(arg1: cublasLtMatrixLayout_t) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatrixLayoutGetAttribute = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasLtMatrixLayout_t,
        arg2: cublasLtMatrixLayoutAttribute_t,
        arg3: *mut ::std::os::raw::c_void,
        arg4: usize,
        arg5: *mut usize,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatrixLayoutSetAttribute = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasLtMatrixLayout_t,
        arg2: cublasLtMatrixLayoutAttribute_t,
        arg3: *const ::std::os::raw::c_void,
        arg4: usize,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatrixTransform = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasLtHandle_t,
        arg2: cublasLtMatrixTransformDesc_t,
        arg3: *const ::std::os::raw::c_void,
        arg4: *const ::std::os::raw::c_void,
        arg5: cublasLtMatrixLayout_t,
        arg6: *const ::std::os::raw::c_void,
        arg7: *const ::std::os::raw::c_void,
        arg8: cublasLtMatrixLayout_t,
        arg9: *mut ::std::os::raw::c_void,
        arg10: cublasLtMatrixLayout_t,
        arg11: cudaStream_t,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatrixTransformDescCreate = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: *mut cublasLtMatrixTransformDesc_t,
        arg2: cudaDataType,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatrixTransformDescDestroy = ::std::option::Option<
    unsafe extern "C" fn(arg1: cublasLtMatrixTransformDesc_t) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatrixTransformDescGetAttribute = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasLtMatrixTransformDesc_t,
        arg2: cublasLtMatrixTransformDescAttributes_t,
        arg3: *mut ::std::os::raw::c_void,
        arg4: usize,
        arg5: *mut usize,
    ) -> cublasStatus_t,
>;
pub type PFN_cublasLtMatrixTransformDescSetAttribute = ::std::option::Option<
    unsafe extern "C" fn(
        arg1: cublasLtMatrixTransformDesc_t,
        arg2: cublasLtMatrixTransformDescAttributes_t,
        arg3: *const ::std::os::raw::c_void,
        arg4: usize,
    ) -> cublasStatus_t,
>;
