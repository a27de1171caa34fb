//! Products by cuBLAS, on request.
//!
//! Rows are its columns: what is stored as A is Aᵀ to it, so C = op(A) · op(B) is asked as Cᵀ = op(B)ᵀ · op(A)ᵀ, and nothing
//! is copied. Handles are kept for each device, as many as threads used it at once; the workspace is memory of the
//! stream, so that calls on several streams do not share one, and a graph owns the one that it captured.
//!
//! cuBLASLt computes products with an epilogue, fused: a bias of our columns, which are its rows; relu and gelu; aux with
//! gelu; and a residual as the matrix that its beta multiplies, if ours leaves that free. [`unsupported`] names the parts
//! that it lacks. Two things are the library's own: the order in which alpha · A · B, beta · C, bias and residual are added,
//! and that its relu may make 0 of NaN.

use std::sync::{Mutex, PoisonError};

use once_cell::sync::OnceCell;

use super::activation::Activation;
use super::blocks::Scalars;
use super::engine::Unsupported;
use super::epilogue::{DeviceEpilogue, WithEpilogue};
use super::geometry::Geometry;
use super::problem::GemmProblem;
use super::product::{OPERATION, Operation, Product};
use crate::cublas::{self, Call, FusedCall, FusedHandle, Handle, Matrix, Number, Transposition};
use crate::driver::{Device, DeviceSlice, DeviceSliceMut, Stream};
use crate::error::{Error, Result};
use crate::images::MatrixLayout;
use crate::types::DType;

/// The workspace of cuBLAS in bytes: what its documentation recommends for compute capability 9.0, and what others
/// do with.
fn workspace_bytes(capability: (i32, i32)) -> usize {
    if capability.0 >= 9 { 32 << 20 } else { 4 << 20 }
}

fn data_type(dtype: DType) -> Option<Number> {
    Some(match dtype {
        DType::F16 => Number::F16,
        DType::BF16 => Number::BF16,
        DType::F32 => Number::F32,
        DType::F64 => Number::F64,
        DType::C64 => Number::C64,
        DType::C128 => Number::C128,
        _ => return None,
    })
}

fn data_types(operand: DType, result: DType) -> Option<(Number, Number)> {
    let wide = matches!(operand, DType::F16 | DType::BF16) && result == DType::F32;
    data_type(operand).zip(data_type(result)).filter(|_| operand == result || wide)
}

/// Returns cuBLAS's operation for an operand, or `None` where it has none.
fn transposition(operation: Operation, dtype: DType) -> Option<Transposition> {
    let complex = matches!(dtype, DType::C64 | DType::C128);
    match operation {
        Operation::None => Some(Transposition::None),
        Operation::Transpose => Some(Transposition::Transpose),
        Operation::Conjugate => (!complex).then_some(Transposition::None),
        Operation::Adjoint if complex => Some(Transposition::Adjoint),
        Operation::Adjoint => Some(Transposition::Transpose),
    }
}

/// The leading dimension as cuBLAS takes it; none where it is too long.
fn leading(stored: MatrixLayout) -> Option<i32> {
    // Of one row the distance to the next is any.
    let leading = if stored.rows > 1 { stored.leading } else { stored.columns };
    i32::try_from(leading).ok()
}

fn all_stored(product: &Product) -> [MatrixLayout; 3] {
    [product.stored_a(), product.stored_b(), product.stored_c()]
}

/// Returns the reason why the library is missing, or `None` if it is there. The first answer holds for the process, since looking for it
/// takes longer than a small product.
fn missing_library() -> Option<&'static Error> {
    static MISSING: OnceCell<Option<Error>> = OnceCell::new();
    MISSING.get_or_init(|| cublas::version().err()).as_ref()
}

/// Returns the reason why it does not compute the problem.
pub(super) fn unsupported(problem: &GemmProblem<'_>) -> Option<Unsupported> {
    let (operand, result, product) = (problem.operand, problem.result, problem.product);
    if data_types(operand, result).is_none() {
        return Some(Unsupported::Types(operand, result));
    }
    if product.k() == 0 {
        return Some(Unsupported::NoDepth);
    }
    if product.is_batch_invariant() {
        return Some(Unsupported::BatchVariant);
    }
    for (name, operation) in [('A', product.operation_a()), ('B', product.operation_b())] {
        if transposition(operation, operand).is_none() {
            return Some(Unsupported::Conjugate(name));
        }
    }
    if all_stored(product).into_iter().any(|stored| leading(stored).is_none()) {
        return Some(Unsupported::TooMany("elements from a row to the next"));
    }
    if i32::try_from(product.count()).is_err() {
        return Some(Unsupported::TooMany("products"));
    }
    if let Some(part) = missing_part(problem) {
        return Some(Unsupported::EpiloguePart(part));
    }
    missing_library().map(|error| Unsupported::Library(error.clone()))
}

/// The alignment in bytes of a bias and of aux; with less cuBLASLt has been seen to fail.
const ALIGNMENT: u64 = 16;
/// The alignment in elements of the rows and matrices of aux.
const AUX_ALIGNMENT: usize = 8;

/// The part of the epilogue that cuBLASLt has no words for.
fn missing_part(problem: &GemmProblem<'_>) -> Option<&'static str> {
    let (parts, size) = (&problem.epilogue, problem.result.size());
    let c = problem.product.stored_c();
    let misplaced = |address: Option<u64>| address.is_some_and(|address| address % ALIGNMENT != 0);
    let misplaced_aux = || misplaced(parts.aux) || !c.keeps_alignment(AUX_ALIGNMENT * size, size);
    let missing = [
        (parts.activation.function().is_none(), parts.activation.name()),
        (parts.bias.is_some() && parts.bias_by_row, "bias of rows"),
        (misplaced(parts.bias), "bias that does not begin at a multiple of 16 bytes"),
        // Of f64 it has been seen to be right to about eleven digits.
        (
            parts.activation == Activation::GeluTanh && problem.result == DType::F64,
            "gelu of f64 to all its digits",
        ),
        (parts.aux_in.is_some() && parts.activation != Activation::None, "residual after an activation"),
        (parts.aux_in.is_some() && problem.reads_c, "residual beside a C that is read (beta is not 0)"),
        (parts.aux.is_some() && parts.activation != Activation::GeluTanh, "aux without gelu"),
        (
            parts.aux.is_some() && misplaced_aux(),
            "aux whose rows and matrices do not begin at multiples of 8 elements and 16 bytes",
        ),
    ];
    missing.into_iter().find(|(is_asked, _)| *is_asked).map(|(_, part)| part)
}

/// Returns the geometry, as far as cuBLAS tells.
pub(super) fn geometry(problem: &GemmProblem<'_>) -> Geometry {
    let batched = problem.product.count() != 1;
    if !problem.epilogue.is_none() {
        return Geometry::of_library("cuBLASLt", "cublasLtMatmul");
    }
    Geometry::of_library("cuBLAS", if batched { "cublasGemmStridedBatchedEx" } else { "cublasGemmEx" })
}

/// Handles that nobody uses.
struct Free<H>(Mutex<Vec<(Device, H)>>);

static HANDLES: Free<Handle> = Free::none();
static FUSED_HANDLES: Free<FusedHandle> = Free::none();

impl<H> Free<H> {
    const fn none() -> Free<H> {
        Free(Mutex::new(Vec::new()))
    }

    /// Calls `work` with a handle of the device, which is made where none is free.
    fn with<R>(
        &self,
        device: Device,
        make: fn() -> Result<H>,
        work: impl FnOnce(&mut H) -> Result<R>,
    ) -> Result<R> {
        let free = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = {
            let mut handles = free();
            let index = handles.iter().position(|(of, _)| *of == device);
            index.map(|index| handles.swap_remove(index).1)
        };
        let mut handle = match kept {
            Some(handle) => handle,
            None => device.with_context(make)?,
        };
        let result = work(&mut handle);
        free().push((device, handle));
        result
    }
}

/// Runs it. The product was checked against the buffers, and nothing is lacking.
pub(super) fn run_on(
    stream: &Stream,
    problem: &GemmProblem<'_>,
    Scalars { alpha, beta, one, .. }: Scalars,
    (a, b, c): (DeviceSlice<'_, u8>, DeviceSlice<'_, u8>, DeviceSliceMut<'_, u8>),
    epilogue: &DeviceEpilogue<'_>,
) -> Result<()> {
    let product = problem.product;
    let matrices: [Matrix; 3] = std::array::from_fn(|which| {
        let stored = all_stored(product)[which];
        Matrix {
            address: problem.addresses[which],
            leading: leading(stored).unwrap_or(i32::MAX),
            stride: stored.stride as i64,
        }
    });
    let (operands, result) =
        data_types(problem.operand, problem.result).unwrap_or((Number::F32, Number::F32));
    let seen = |operation| transposition(operation, problem.operand).unwrap_or(Transposition::None);
    let call = Call {
        sizes: (product.n() as i32, product.m() as i32, product.k() as i32),
        transpositions: (seen(product.operation_b()), seen(product.operation_a())),
        operands,
        result,
        matrices: [matrices[1], matrices[0], matrices[2]],
        batch: product.count() as i32,
        alpha,
        beta,
    };
    let device = stream.device();
    let bytes = workspace_bytes(problem.properties.capability);
    let mut workspace = stream.uninitialized::<u8>(bytes)?;
    let space = (workspace.address(), bytes);
    if epilogue.is_none() {
        return HANDLES.with(device, Handle::new, |handle| {
            // SAFETY: cuBLAS reads the matrices that the product describes, which lie inside the buffers, writes C and the
            // workspace, and launches on the stream that it is given.
            unsafe {
                stream.with_raw((a, b, c, &mut workspace), |stream| handle.multiply(stream, space, &call))
            }
        });
    }
    let parts = problem.epilogue;
    let function = parts.activation.function().ok_or_else(|| {
        Error::invalid(OPERATION, format!("{} by cuBLASLt", parts.activation.name()), "another engine")
    })?;
    let fused = FusedCall {
        // A residual takes the place of a C that is not read.
        call: if parts.aux_in.is_some() { Call { beta: one, ..call } } else { call },
        addend: parts.aux_in.unwrap_or(call.matrices[2].address),
        bias: parts.bias,
        function,
        aux: parts.aux,
    };
    FUSED_HANDLES.with(device, FusedHandle::new, |handle| {
        let memory = WithEpilogue { parameters: 0u32, epilogue };
        // SAFETY: as above; cuBLASLt reads the bias and the residual too and writes aux, which were checked.
        unsafe {
            stream
                .with_raw((a, b, c, memory, &mut workspace), |stream| handle.multiply(stream, space, &fused))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conjugates_are_asked_for_where_numbers_have_them() {
        use Operation::{Adjoint, Conjugate, None as Plain, Transpose};
        let words = |dtype| [Plain, Transpose, Conjugate, Adjoint].map(|of| transposition(of, dtype));
        let some = |words: [Transposition; 4]| words.map(Some);
        use Transposition as To;
        assert_eq!(words(DType::F32), some([To::None, To::Transpose, To::None, To::Transpose]));
        assert_eq!(words(DType::C64), [Some(To::None), Some(To::Transpose), None, Some(To::Adjoint)]);
    }

    #[test]
    fn leading_dimensions_are_at_least_a_row_and_fit_32_bits() {
        let stored = MatrixLayout { rows: 2, columns: 5, leading: 9, batch: 1, stride: 0 };
        assert_eq!(leading(stored), Some(9));
        assert_eq!(leading(MatrixLayout { rows: 1, leading: 1 << 40, ..stored }), Some(5));
        assert_eq!(leading(MatrixLayout { leading: 1 << 31, ..stored }), None);
    }
}
