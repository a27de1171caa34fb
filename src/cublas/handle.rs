//! cuBLAS handles, and their products.

use std::ffi::c_void;
use std::ptr;

use crate::error::Result;
use crate::sys::cublas::{
    cublasComputeType_t, cublasGemmAlgo_t, cublasHandle_t, cublasMath_t, cublasOperation_t, cudaDataType,
};
use crate::sys::{self, CublasApi, call};

/// An element type that cuBLAS multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Number {
    F16,
    BF16,
    F32,
    F64,
    C64,
    C128,
}

impl Number {
    pub(super) fn data(self) -> cudaDataType {
        match self {
            Number::F16 => cudaDataType::CUDA_R_16F,
            Number::BF16 => cudaDataType::CUDA_R_16BF,
            Number::F32 => cudaDataType::CUDA_R_32F,
            Number::F64 => cudaDataType::CUDA_R_64F,
            Number::C64 => cudaDataType::CUDA_C_32F,
            Number::C128 => cudaDataType::CUDA_C_64F,
        }
    }

    /// The accumulation type: IEEE 754 f32 and f64, without TF32 and without reduced-precision products. (Products of
    /// 16-bit floats are exact in f32.)
    pub(super) fn compute(self) -> cublasComputeType_t {
        match self {
            Number::F16 | Number::BF16 => cublasComputeType_t::CUBLAS_COMPUTE_32F,
            Number::F32 | Number::C64 => cublasComputeType_t::CUBLAS_COMPUTE_32F_PEDANTIC,
            Number::F64 | Number::C128 => cublasComputeType_t::CUBLAS_COMPUTE_64F,
        }
    }

    /// The type of the scalars alpha and beta.
    pub(super) fn scale(self) -> cudaDataType {
        match self {
            Number::F16 | Number::BF16 => Number::F32.data(),
            number => number.data(),
        }
    }
}

/// The operation on a stored operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Transposition {
    None,
    Transpose,
    Adjoint,
}

impl Transposition {
    pub(super) fn raw(self) -> cublasOperation_t {
        match self {
            Transposition::None => cublasOperation_t::CUBLAS_OP_N,
            Transposition::Transpose => cublasOperation_t::CUBLAS_OP_T,
            Transposition::Adjoint => cublasOperation_t::CUBLAS_OP_C,
        }
    }
}

/// A column-major matrix on the device, or a batch of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix {
    pub address: u64,
    /// The leading dimension: elements from one column to the next.
    pub leading: i32,
    /// The batch stride: elements from one matrix to the next.
    pub stride: i64,
}

/// C = alpha · op(A) · op(B) + beta · C, of m x n with inner dimension k, or a batch of such products.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub sizes: (i32, i32, i32),
    pub transpositions: (Transposition, Transposition),
    pub operands: Number,
    pub result: Number,
    pub matrices: [Matrix; 3],
    pub batch: i32,
    /// In the accumulation type.
    pub alpha: [u64; 2],
    pub beta: [u64; 2],
}

/// A cuBLAS handle, of the context that was current at its creation.
pub(crate) struct Handle {
    api: &'static CublasApi,
    raw: cublasHandle_t,
}

// SAFETY: cuBLAS allows a handle to move between threads; `&mut self` prevents concurrent use.
unsafe impl Send for Handle {}

impl Handle {
    /// Creates a handle in the current context.
    ///
    /// # Errors
    ///
    /// No library, or cuBLAS's errors.
    pub(crate) fn new() -> Result<Handle> {
        let api = sys::cublas()?;
        let mut raw: cublasHandle_t = ptr::null_mut();
        // With split-K, sums stay in the accumulation type until the last one: the result is rounded once.
        let math = cublasMath_t::CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
        // SAFETY: the pointer outlives the call, and the handle is the one just created.
        unsafe {
            call!(api, cublasCreate(&mut raw))?;
            call!(api, cublasSetMathMode(raw, math))?;
        }
        Ok(Handle { api, raw })
    }

    /// Issues a product on the stream, with a workspace of this size at this address.
    ///
    /// # Errors
    ///
    /// cuBLAS's errors. Nothing is then launched.
    ///
    /// # Safety
    ///
    /// The handle's context is current, the stream belongs to it, and the matrices and the workspace are memory that it
    /// reaches and that the stream may use in its order.
    pub(crate) unsafe fn multiply(
        &mut self,
        stream: *mut c_void,
        (workspace, bytes): (u64, usize),
        call: &Call,
    ) -> Result<()> {
        let Call { sizes: (m, n, k), transpositions, operands, result, matrices: [a, b, c], batch, .. } =
            *call;
        let (of_a, of_b) = (transpositions.0.raw(), transpositions.1.raw());
        let (from, to, compute) = (operands.data(), result.data(), operands.compute());
        let alpha: *const c_void = call.alpha.as_ptr().cast();
        let beta: *const c_void = call.beta.as_ptr().cast();
        let pointer = |matrix: Matrix| matrix.address as *mut c_void;
        let algorithm = cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT;
        // SAFETY: the caller vouches for stream and memory. Setting the stream resets the workspace, so the workspace
        // is set second. cuBLAS reads the scalars before the call returns, in the default pointer mode.
        unsafe {
            call!(self.api, cublasSetStream(self.raw, stream.cast()))?;
            call!(self.api, cublasSetWorkspace(self.raw, workspace as *mut c_void, bytes))?;
            if batch == 1 {
                return call!(
                    self.api,
                    cublasGemmEx(
                        self.raw,
                        of_a,
                        of_b,
                        m,
                        n,
                        k,
                        alpha,
                        pointer(a),
                        from,
                        a.leading,
                        pointer(b),
                        from,
                        b.leading,
                        beta,
                        pointer(c),
                        to,
                        c.leading,
                        compute,
                        algorithm,
                    )
                );
            }
            call!(
                self.api,
                cublasGemmStridedBatchedEx(
                    self.raw,
                    of_a,
                    of_b,
                    m,
                    n,
                    k,
                    alpha,
                    pointer(a),
                    from,
                    a.leading,
                    a.stride,
                    pointer(b),
                    from,
                    b.leading,
                    b.stride,
                    beta,
                    pointer(c),
                    to,
                    c.leading,
                    c.stride,
                    batch,
                    compute,
                    algorithm,
                )
            )
        }
    }
}
