//! cuBLASLt as the reference of our epilogues: the one that lies beside the cuBLAS that was opened, by a handle and prototypes
//! of this file's own.

use std::ffi::c_void;
use std::path::Path;
use std::ptr;

use super::bare::{Address, Bare, Handle, check, functions};
use super::cublas::{Call, WORKSPACE};
use super::report::Failure;

functions! {
    create = "cublasLtCreate"(*mut Handle);
    description = "cublasLtMatmulDescCreate"(*mut Handle, i32, i32);
    describe = "cublasLtMatmulDescSetAttribute"(Handle, i32, *const c_void, usize);
    layout = "cublasLtMatrixLayoutCreate"(*mut Handle, i32, u64, u64, i64);
    preference = "cublasLtMatmulPreferenceCreate"(*mut Handle);
    prefer = "cublasLtMatmulPreferenceSetAttribute"(Handle, i32, *const c_void, usize);
    choose = "cublasLtMatmulAlgoGetHeuristic"(
        Handle, Handle, Handle, Handle, Handle, Handle, Handle, i32, *mut Choice, *mut i32
    );
    multiply = "cublasLtMatmul"(
        Handle, Handle, *const c_void, Address, Handle, Address, Handle, *const c_void, Address, Handle, Address, Handle,
        *const c_void, Address, usize, Handle
    );
}

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Default)]
pub struct Choice {
    algorithm: [u64; 8],
    workspace: usize,
    state: i32,
    waves: f32,
    reserved: [i32; 4],
}

/// Attributes of a description: what is transposed, the epilogue, and its memory.
const TRANSPOSITION_A: i32 = 3;
const TRANSPOSITION_B: i32 = 4;
const EPILOGUE: i32 = 7;
const BIAS_POINTER: i32 = 8;
const KEPT_POINTER: i32 = 11;
const KEPT_LEADING: i32 = 12;
/// Epilogues: gelu of the sum and a bias, and the same with the pre-activation stored (aux).
const GELU_BIAS: u32 = 36;
const GELU_BIAS_KEPT: u32 = 164;
/// An attribute of a preference.
const MAX_WORKSPACE: i32 = 1;

/// A handle on the bare driver's stream.
pub struct CublasLt {
    functions: Functions,
    handle: Handle,
    workspace: Address,
}

/// A product with bias and gelu whose algorithm was chosen. Its descriptors live as long as the process.
pub struct Fused {
    description: Handle,
    /// Of A, B and C, as cuBLASLt sees them.
    layouts: [Handle; 3],
    choice: Choice,
}

fn set<V>(
    function: unsafe extern "C" fn(Handle, i32, *const c_void, usize) -> i32,
    descriptor: Handle,
    attribute: i32,
    value: V,
) -> Result<(), Failure> {
    // SAFETY: the descriptor is live, and the library copies as many bytes as the value has.
    let status = unsafe { function(descriptor, attribute, ptr::from_ref(&value).cast(), size_of::<V>()) };
    check(status, "setting an attribute of cuBLASLt")
}

impl CublasLt {
    /// Opens the library beside this cuBLAS.
    pub fn open(bare: &Bare, cublas: &Path) -> Result<CublasLt, Failure> {
        let name = cublas.file_name().and_then(|name| name.to_str()).ok_or("cuBLAS has no file name")?;
        let path = cublas.with_file_name(name.replace("libcublas.", "libcublasLt."));
        let functions = Functions::open_at(&path)?;
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer is to a local.
        check(unsafe { (functions.create)(&mut handle) }, "cublasLtCreate")?;
        Ok(CublasLt { functions, handle, workspace: bare.allocate(WORKSPACE)? })
    }

    /// A product of contiguous row-major matrices, with a bias of its columns and gelu. It stores the pre-activation in `aux`,
    /// if given. The algorithm is the first that the library names, which frameworks use, too.
    pub fn prepare(&self, call: &Call, bias: Address, kept: Option<Address>) -> Result<Fused, Failure> {
        let (compute, scale) = (call.operand.compute(), call.operand.scale());
        let (mut description, mut preference) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the pointers are to locals.
        unsafe {
            check(
                (self.functions.description)(&mut description, compute, scale),
                "cublasLtMatmulDescCreate",
            )?;
            check((self.functions.preference)(&mut preference), "cublasLtMatmulPreferenceCreate")?;
        }
        let describe = self.functions.describe;
        // Column-major is what it speaks: Cᵀ = op(B)ᵀ op(A)ᵀ, whose rows are our columns.
        set(describe, description, TRANSPOSITION_A, i32::from(call.b_transposed))?;
        set(describe, description, TRANSPOSITION_B, i32::from(call.a_transposed))?;
        set(describe, description, EPILOGUE, if kept.is_some() { GELU_BIAS_KEPT } else { GELU_BIAS })?;
        set(describe, description, BIAS_POINTER, bias)?;
        if let Some(kept) = kept {
            set(describe, description, KEPT_POINTER, kept)?;
            set(describe, description, KEPT_LEADING, call.n as i64)?;
        }
        set(self.functions.prefer, preference, MAX_WORKSPACE, WORKSPACE as u64)?;
        let layout = |kind: i32, transposed: bool, (rows, columns): (usize, usize)| {
            let (rows, columns) = if transposed { (columns, rows) } else { (rows, columns) };
            let mut layout = ptr::null_mut();
            // SAFETY: the pointer is to a local.
            let status = unsafe {
                (self.functions.layout)(&mut layout, kind, columns as u64, rows as u64, columns as i64)
            };
            check(status, "cublasLtMatrixLayoutCreate").map(|()| layout)
        };
        let (from, to) = (call.operand.data(), call.result.data());
        let layouts = [
            layout(from, call.b_transposed, (call.k, call.n))?,
            layout(from, call.a_transposed, (call.m, call.k))?,
            layout(to, false, (call.m, call.n))?,
        ];
        let [a, b, c] = layouts;
        let (mut choice, mut count) = (Choice::default(), 0);
        // SAFETY: all descriptors are live, and the array holds the one result.
        let status = unsafe {
            (self.functions.choose)(
                self.handle,
                description,
                a,
                b,
                c,
                c,
                preference,
                1,
                &mut choice,
                &mut count,
            )
        };
        check(status, "cublasLtMatmulAlgoGetHeuristic")?;
        check(choice.state, "the algorithm of cuBLASLt")?;
        if count < 1 {
            return Err("cuBLASLt has no algorithm for the product".into());
        }
        Ok(Fused { description, layouts, choice })
    }

    /// Gives the product to the bare driver's stream.
    ///
    /// # Safety
    ///
    /// The addresses are of contiguous matrices of the shapes that it was prepared for, whose numbers are added in f32.
    pub unsafe fn multiply(
        &self,
        bare: &Bare,
        fused: &Fused,
        [a, b, c]: [Address; 3],
    ) -> Result<(), Failure> {
        let (one, zero) = (1.0f32, 0.0f32);
        let [of_a, of_b, of_c] = fused.layouts;
        // SAFETY: the caller vouches for the addresses; the factors are read before the call returns.
        let status = unsafe {
            (self.functions.multiply)(
                self.handle,
                fused.description,
                ptr::from_ref(&one).cast(),
                b,
                of_a,
                a,
                of_b,
                ptr::from_ref(&zero).cast(),
                c,
                of_c,
                c,
                of_c,
                fused.choice.algorithm.as_ptr().cast(),
                self.workspace,
                WORKSPACE,
                bare.stream,
            )
        };
        check(status, "cublasLtMatmul")
    }
}
