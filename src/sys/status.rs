//! Status codes as results.

use super::codes;
use super::cublas::cublasStatus_t;
use super::cupti::CUptiResult;
use super::driver::CUresult;
use super::nccl::ncclResult_t;
use super::nvrtc::nvrtcResult;
use crate::error::Error;

/// The status that a library's functions return.
pub trait Status: Copy {
    /// `Ok` for success, else the error that names the call.
    ///
    /// # Errors
    ///
    /// The status is not success.
    fn check(self, call: &'static str) -> Result<(), Error>;
}

impl Status for CUresult {
    #[inline]
    fn check(self, call: &'static str) -> Result<(), Error> {
        if self == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(driver_error(call, self, String::new())) }
    }
}

/// The error of a driver call; the detail says what was being done, where the call does not.
#[cold]
pub fn driver_error(call: &'static str, code: CUresult, detail: String) -> Error {
    let (name, text) = codes::describe(code);
    Error::Driver { call, code: code.0 as i32, name, text, detail }
}

macro_rules! library_status {
    ($($status:ident $library:literal $success:literal [$($code:literal $name:literal,)+];)+) => {$(
        impl Status for $status {
            #[inline]
            fn check(self, call: &'static str) -> Result<(), Error> {
                if self.0 == $success { Ok(()) } else { Err(library_error($library, call, self.0, &[$(($code, $name)),+])) }
            }
        }
    )+};
}

#[cold]
fn library_error(library: &'static str, call: &'static str, code: u32, names: &[(u32, &str)]) -> Error {
    let detail = names.iter().find(|entry| entry.0 == code).map_or(String::new(), |entry| entry.1.to_owned());
    Error::Library { library, call, code: code as i32, detail }
}

library_status! {
    nvrtcResult "NVRTC" 0 [
        1 "NVRTC_ERROR_OUT_OF_MEMORY",
        2 "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        3 "NVRTC_ERROR_INVALID_INPUT",
        4 "NVRTC_ERROR_INVALID_PROGRAM",
        5 "NVRTC_ERROR_INVALID_OPTION: an option, such as the architecture, is not one that this version knows",
        6 "NVRTC_ERROR_COMPILATION: the source does not compile",
        7 "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE: libnvrtc-builtins of the same version could not be loaded",
        8 "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        9 "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        10 "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        11 "NVRTC_ERROR_INTERNAL_ERROR",
        12 "NVRTC_ERROR_TIME_FILE_WRITE_FAILED",
        13 "NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED",
        14 "NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED",
        15 "NVRTC_ERROR_PCH_CREATE",
        16 "NVRTC_ERROR_CANCELLED",
    ];
    cublasStatus_t "cuBLAS" 0 [
        1 "CUBLAS_STATUS_NOT_INITIALIZED: no device, or the handle was not created",
        3 "CUBLAS_STATUS_ALLOC_FAILED: not enough memory for its workspace",
        7 "CUBLAS_STATUS_INVALID_VALUE: an argument is outside what the call accepts",
        8 "CUBLAS_STATUS_ARCH_MISMATCH: the device lacks a feature that the call needs",
        11 "CUBLAS_STATUS_MAPPING_ERROR",
        13 "CUBLAS_STATUS_EXECUTION_FAILED: its kernel failed",
        14 "CUBLAS_STATUS_INTERNAL_ERROR",
        15 "CUBLAS_STATUS_NOT_SUPPORTED: this combination of types and sizes has no implementation",
        16 "CUBLAS_STATUS_LICENSE_ERROR",
    ];
    ncclResult_t "NCCL" 0 [
        1 "ncclUnhandledCudaError: a CUDA call failed inside",
        2 "ncclSystemError: a system call failed inside",
        3 "ncclInternalError",
        4 "ncclInvalidArgument",
        5 "ncclInvalidUsage",
        6 "ncclRemoteError: another process failed or was lost",
        7 "ncclInProgress: the communicator has not finished",
        8 "ncclTimeout",
    ];
    CUptiResult "CUPTI" 0 [
        1 "CUPTI_ERROR_INVALID_PARAMETER",
        7 "CUPTI_ERROR_INVALID_OPERATION",
        8 "CUPTI_ERROR_OUT_OF_MEMORY",
        14 "CUPTI_ERROR_NOT_COMPATIBLE",
        15 "CUPTI_ERROR_NOT_INITIALIZED: it cannot be initialised with this driver",
        27 "CUPTI_ERROR_NOT_SUPPORTED",
        33 "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED",
        35 "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: the driver gives this user no profiling",
        39 "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: another profiler has it",
        41 "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED",
        999 "CUPTI_ERROR_UNKNOWN",
    ];
}
