//! cuBLASLt handles, and products with an epilogue.
//!
//! Invariants: descriptors live until the call that they describe returns, also on errors. Choosing an algorithm takes
//! longer than a small product, so each handle caches its choices under a key of all that they depend on.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;

use super::handle::{Call, Matrix, Number, Transposition};
use crate::error::Result;
use crate::sys::cublas::cublasStatus_t;
use crate::sys::cublaslt::{
    cublasLtEpilogue_t as Epilogue, cublasLtHandle_t, cublasLtMatmulAlgo_t,
    cublasLtMatmulDescAttributes_t as Description, cublasLtMatmulDescOpaque_t,
    cublasLtMatmulHeuristicResult_t, cublasLtMatmulPreferenceAttributes_t as Preference,
    cublasLtMatmulPreferenceOpaque_t, cublasLtMatrixLayoutAttribute_t as LayoutAttribute,
    cublasLtMatrixLayoutOpaque_t, cublasLtReductionScheme_t,
};
use crate::sys::{self, CublasLtApi, Status, call};

/// An activation function, applied to each element before rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EpilogueFunction {
    None,
    /// `max(x, 0)`.
    Relu,
    /// GELU in its tanh approximation.
    Gelu,
}

/// C = activation(alpha · op(A) · op(B) + beta · D + bias). The call has the other operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FusedCall {
    pub call: Call,
    /// D, in the layout of C; it may be C.
    pub addend: u64,
    /// One value per row of C, in its type, shared by all matrices of a batch.
    pub bias: Option<u64>,
    pub function: EpilogueFunction,
    /// The aux buffer for the pre-activation values of GELU, in the layout and type of C.
    pub aux: Option<u64>,
}

impl FusedCall {
    /// The library's epilogue.
    fn epilogue(&self) -> Epilogue {
        match (self.function, self.bias.is_some(), self.aux.is_some()) {
            (EpilogueFunction::None, false, _) => Epilogue::CUBLASLT_EPILOGUE_DEFAULT,
            (EpilogueFunction::None, true, _) => Epilogue::CUBLASLT_EPILOGUE_BIAS,
            // The aux buffer of relu is a bit mask, which this crate does not use.
            (EpilogueFunction::Relu, false, _) => Epilogue::CUBLASLT_EPILOGUE_RELU,
            (EpilogueFunction::Relu, true, _) => Epilogue::CUBLASLT_EPILOGUE_RELU_BIAS,
            (EpilogueFunction::Gelu, false, false) => Epilogue::CUBLASLT_EPILOGUE_GELU,
            (EpilogueFunction::Gelu, true, false) => Epilogue::CUBLASLT_EPILOGUE_GELU_BIAS,
            (EpilogueFunction::Gelu, false, true) => Epilogue::CUBLASLT_EPILOGUE_GELU_AUX,
            (EpilogueFunction::Gelu, true, true) => Epilogue::CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
        }
    }
}

/// All inputs of the choice of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct AlgorithmKey {
    sizes: (i32, i32, i32),
    transpositions: (Transposition, Transposition),
    types: (Number, Number),
    leading: [i32; 3],
    strides: [i64; 3],
    batch: i32,
    epilogue: Epilogue,
    /// The largest power of two up to 256 that divides the addresses of A, B, D, C, the bias and the aux buffer.
    alignments: [u32; 6],
    workspace: usize,
}

impl AlgorithmKey {
    fn of(fused: &FusedCall, workspace: usize) -> AlgorithmKey {
        let call = &fused.call;
        let [a, b, c] = call.matrices.map(|matrix| matrix.address);
        let addresses = [a, b, fused.addend, c, fused.bias.unwrap_or(0), fused.aux.unwrap_or(0)];
        AlgorithmKey {
            sizes: call.sizes,
            transpositions: call.transpositions,
            types: (call.operands, call.result),
            leading: call.matrices.map(|matrix| matrix.leading),
            strides: call.matrices.map(|matrix| matrix.stride),
            batch: call.batch,
            epilogue: fused.epilogue(),
            alignments: addresses.map(|address| 1 << address.trailing_zeros().min(8)),
            workspace,
        }
    }
}

/// A descriptor: host memory that the library creates and destroys.
struct Descriptor<T: Described> {
    api: &'static CublasLtApi,
    raw: *mut T,
}

trait Described: Sized {
    /// Destroys the descriptor.
    ///
    /// # Safety
    ///
    /// The library created it, and nothing uses it any more.
    unsafe fn destroy(api: &CublasLtApi, raw: *mut Self) -> Result<()>;
}

impl<T: Described> Drop for Descriptor<T> {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours, and the call that it described has returned. A failure only leaks memory.
        let _ = unsafe { T::destroy(self.api, self.raw) };
    }
}

macro_rules! descriptors {
    ($($opaque:ident $attribute:ident $destroy:ident $set:ident;)+) => {$(
        impl Described for $opaque {
            unsafe fn destroy(api: &CublasLtApi, raw: *mut $opaque) -> Result<()> {
                // SAFETY: the caller vouches for it.
                unsafe { call!(api, $destroy(raw)) }
            }
        }

        impl Descriptor<$opaque> {
            fn set<V>(&self, attribute: $attribute, value: V) -> Result<()> {
                let pointer: *const V = &value;
                // SAFETY: the library copies as many bytes as the value has.
                unsafe { call!(self.api, $set(self.raw, attribute, pointer.cast(), size_of::<V>())) }
            }
        }
    )+};
}

descriptors! {
    cublasLtMatmulDescOpaque_t Description cublasLtMatmulDescDestroy cublasLtMatmulDescSetAttribute;
    cublasLtMatrixLayoutOpaque_t LayoutAttribute cublasLtMatrixLayoutDestroy cublasLtMatrixLayoutSetAttribute;
    cublasLtMatmulPreferenceOpaque_t Preference cublasLtMatmulPreferenceDestroy cublasLtMatmulPreferenceSetAttribute;
}

type Layout = Descriptor<cublasLtMatrixLayoutOpaque_t>;

/// The largest number of cached algorithms, which bounds the memory of programs with ever new sizes.
const MAX_ALGORITHMS: usize = 1024;

/// A cuBLASLt handle, of the context that was current at its creation.
pub(crate) struct FusedHandle {
    api: &'static CublasLtApi,
    raw: cublasLtHandle_t,
    algorithms: HashMap<AlgorithmKey, cublasLtMatmulAlgo_t>,
}

// SAFETY: any thread may use a cuBLASLt handle; `&mut self` serializes access to the algorithms.
unsafe impl Send for FusedHandle {}

impl FusedHandle {
    /// Creates a handle in the current context.
    ///
    /// # Errors
    ///
    /// No library, or cuBLASLt's errors.
    pub(crate) fn new() -> Result<FusedHandle> {
        let api = sys::cublaslt()?;
        let mut raw: cublasLtHandle_t = ptr::null_mut();
        // SAFETY: the pointer outlives the call.
        unsafe { call!(api, cublasLtCreate(&mut raw)) }?;
        Ok(FusedHandle { api, raw, algorithms: HashMap::new() })
    }

    /// Issues a product on the stream, with a workspace of this size at this address.
    ///
    /// # Errors
    ///
    /// cuBLASLt's errors; without an algorithm for the product it is `CUBLAS_STATUS_NOT_SUPPORTED`. Nothing is then
    /// launched.
    ///
    /// # Safety
    ///
    /// The handle's context is current, the stream belongs to it, and the matrices, the bias and the workspace are
    /// memory that it reaches and that the stream may use in its order.
    pub(crate) unsafe fn multiply(
        &mut self,
        stream: *mut c_void,
        (workspace, bytes): (u64, usize),
        fused: &FusedCall,
    ) -> Result<()> {
        let Call { matrices: [a, b, c], alpha, beta, .. } = fused.call;
        let description = self.description(fused)?;
        let layouts = self.layouts(&fused.call)?;
        let key = AlgorithmKey::of(fused, bytes);
        let algorithm = match self.algorithms.get(&key) {
            Some(algorithm) => *algorithm,
            None => {
                let algorithm = self.choose(&key, &description, &layouts)?;
                if self.algorithms.len() >= MAX_ALGORITHMS {
                    self.algorithms.clear();
                }
                self.algorithms.insert(key, algorithm);
                algorithm
            }
        };
        let read = |address: u64| address as *const c_void;
        let [of_a, of_b, of_c] = layouts.each_ref().map(|layout| layout.raw);
        // SAFETY: the caller vouches for stream and memory. The library reads the scalars before the call returns, in
        // the default pointer mode.
        unsafe {
            call!(
                self.api,
                cublasLtMatmul(
                    self.raw,
                    description.raw,
                    alpha.as_ptr().cast(),
                    read(a.address),
                    of_a,
                    read(b.address),
                    of_b,
                    beta.as_ptr().cast(),
                    read(fused.addend),
                    of_c,
                    c.address as *mut c_void,
                    of_c,
                    &algorithm,
                    workspace as *mut c_void,
                    bytes,
                    stream.cast(),
                )
            )
        }
    }

    fn description(&self, fused: &FusedCall) -> Result<Descriptor<cublasLtMatmulDescOpaque_t>> {
        let Call { operands, transpositions, matrices: [.., c], batch, .. } = fused.call;
        let mut raw = ptr::null_mut();
        // SAFETY: the pointer outlives the call.
        unsafe { call!(self.api, cublasLtMatmulDescCreate(&mut raw, operands.compute(), operands.scale())) }?;
        let description = Descriptor { api: self.api, raw };
        description.set(Description::CUBLASLT_MATMUL_DESC_TRANSA, transpositions.0.raw())?;
        description.set(Description::CUBLASLT_MATMUL_DESC_TRANSB, transpositions.1.raw())?;
        description.set(Description::CUBLASLT_MATMUL_DESC_EPILOGUE, fused.epilogue())?;
        // The bias and aux buffers have C's type by default.
        if let Some(bias) = fused.bias {
            description.set(Description::CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias)?;
        }
        if let Some(aux) = fused.aux {
            description.set(Description::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux)?;
            // With one column the leading dimension has no effect but must still be a multiple of 8.
            let leading = i64::from((c.leading as u32).next_multiple_of(8));
            description.set(Description::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, leading)?;
            if batch != 1 {
                description.set(Description::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, c.stride)?;
            }
        }
        Ok(description)
    }

    /// The layouts of A, B and C in memory.
    fn layouts(&self, call: &Call) -> Result<[Layout; 3]> {
        let (m, n, k) = call.sizes;
        let stored = |of: Transposition, (rows, columns): (i32, i32)| match of {
            Transposition::None => (rows, columns),
            Transposition::Transpose | Transposition::Adjoint => (columns, rows),
        };
        let layout = |number: Number, (rows, columns): (i32, i32), matrix: Matrix| -> Result<Layout> {
            let mut raw = ptr::null_mut();
            let sizes = (i64::from(rows) as u64, i64::from(columns) as u64);
            let create = |raw: &mut *mut cublasLtMatrixLayoutOpaque_t| {
                // SAFETY: the pointer outlives the call.
                unsafe {
                    call!(
                        self.api,
                        cublasLtMatrixLayoutCreate(
                            raw,
                            number.data(),
                            sizes.0,
                            sizes.1,
                            matrix.leading.into()
                        )
                    )
                }
            };
            create(&mut raw)?;
            let layout = Descriptor { api: self.api, raw };
            if call.batch != 1 {
                layout.set(LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, call.batch)?;
                let stride = LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET;
                layout.set(stride, matrix.stride)?;
            }
            Ok(layout)
        };
        let (of_a, of_b) = call.transpositions;
        let [a, b, c] = call.matrices;
        Ok([
            layout(call.operands, stored(of_a, (m, k)), a)?,
            layout(call.operands, stored(of_b, (k, n)), b)?,
            layout(call.result, (m, n), c)?,
        ])
    }

    /// Returns the library's best algorithm.
    fn choose(
        &self,
        key: &AlgorithmKey,
        description: &Descriptor<cublasLtMatmulDescOpaque_t>,
        layouts: &[Layout; 3],
    ) -> Result<cublasLtMatmulAlgo_t> {
        let mut raw = ptr::null_mut();
        // SAFETY: the pointer outlives the call.
        unsafe { call!(self.api, cublasLtMatmulPreferenceCreate(&mut raw)) }?;
        let preference = Descriptor { api: self.api, raw };
        let bytes = key.workspace as u64;
        preference.set(Preference::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes)?;
        // With split-K, sums stay in the accumulation type until the last one: the result is rounded once.
        let sums = cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
        preference.set(Preference::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, sums)?;
        let [a, b, addend, c, ..] = key.alignments;
        preference.set(Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, a)?;
        preference.set(Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, b)?;
        preference.set(Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, addend)?;
        preference.set(Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, c)?;
        let mut found = cublasLtMatmulHeuristicResult_t::default();
        let mut count = 0;
        let [of_a, of_b, of_c] = layouts.each_ref().map(|layout| layout.raw);
        // SAFETY: the buffer holds the one requested result; the descriptors live until the end of this function.
        unsafe {
            call!(
                self.api,
                cublasLtMatmulAlgoGetHeuristic(
                    self.raw,
                    description.raw,
                    of_a,
                    of_b,
                    of_c,
                    of_c,
                    preference.raw,
                    1,
                    &mut found,
                    &mut count,
                )
            )?;
        }
        let status = if count < 1 { cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED } else { found.state };
        status.check("cublasLtMatmulAlgoGetHeuristic")?;
        Ok(found.algo)
    }
}
