//! Products by cuBLAS, where it is asked for.
//!
//! Rows are its columns: what is stored as A is Aᵀ to it, so C = op(A) · op(B) is asked as Cᵀ = op(B)ᵀ · op(A)ᵀ, and nothing
//! is copied. Handles are kept for each device, as many as threads used it at once; the workspace is memory of the
//! stream, so that calls on several streams do not share one, and a graph owns the one that it captured.

use std::sync::{Mutex, PoisonError};

use once_cell::sync::OnceCell;

use super::engine::Lack;
use super::plan::{Geometry, Situation};
use super::product::{Operation, Product, Stored};
use crate::cublas::{self, Call, Handle, Matrix, Number, Transposition};
use crate::driver::{Device, DeviceSlice, DeviceSliceMut, Stream};
use crate::error::{Error, Result};
use crate::types::{DType, Element};

/// What cuBLAS may use beside the matrices: what its documentation recommends for compute capability 9.0, and what others
/// do with.
fn workspace_bytes(capability: (i32, i32)) -> usize {
    if capability.0 >= 9 { 32 << 20 } else { 4 << 20 }
}

fn number(dtype: DType) -> Option<Number> {
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

fn numbers(operand: DType, result: DType) -> Option<(Number, Number)> {
    let wide = matches!(operand, DType::F16 | DType::BF16) && result == DType::F32;
    number(operand).zip(number(result)).filter(|_| operand == result || wide)
}

/// What cuBLAS is told of an operand; none where it knows no word for it.
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
fn leading(stored: Stored) -> Option<i32> {
    // Of one row the distance to the next is any.
    let leading = if stored.rows > 1 { stored.leading } else { stored.columns };
    i32::try_from(leading).ok()
}

fn all_stored(product: &Product) -> [Stored; 3] {
    [product.stored_a(), product.stored_b(), product.stored_c()]
}

/// Why the library is not there; none where it is. What is found out first holds for the process, since looking for it
/// takes longer than a small product.
fn missing_library() -> Option<&'static Error> {
    static MISSING: OnceCell<Option<Error>> = OnceCell::new();
    MISSING.get_or_init(|| cublas::version().err()).as_ref()
}

/// What keeps it from running.
pub(super) fn lacks(situation: &Situation<'_>) -> Option<Lack> {
    let (operand, result, product) = (situation.operand, situation.result, situation.product);
    if numbers(operand, result).is_none() {
        return Some(Lack::Types(operand, result));
    }
    if product.k() == 0 {
        return Some(Lack::NoDepth);
    }
    if situation.has_epilogue {
        return Some(Lack::NoEpilogue);
    }
    for (name, operation) in [('A', product.operation_a()), ('B', product.operation_b())] {
        if transposition(operation, operand).is_none() {
            return Some(Lack::Conjugate(name));
        }
    }
    if all_stored(product).into_iter().any(|stored| leading(stored).is_none()) {
        return Some(Lack::TooMany("elements from a row to the next"));
    }
    if i32::try_from(product.count()).is_err() {
        return Some(Lack::TooMany("products"));
    }
    missing_library().map(|error| Lack::Library(error.clone()))
}

/// What would run, as far as cuBLAS lets that be known.
pub(super) fn geometry(situation: &Situation<'_>) -> Geometry {
    let batched = situation.product.count() != 1;
    Geometry::of_library("cuBLAS", if batched { "cublasGemmStridedBatchedEx" } else { "cublasGemmEx" })
}

/// Handles that nobody uses.
static HANDLES: Mutex<Vec<(Device, Handle)>> = Mutex::new(Vec::new());

/// Calls `work` with a handle of the device.
fn with_handle<R>(device: Device, work: impl FnOnce(&mut Handle) -> Result<R>) -> Result<R> {
    let free = || HANDLES.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = {
        let mut handles = free();
        let place = handles.iter().position(|(of, _)| *of == device);
        place.map(|place| handles.swap_remove(place).1)
    };
    let mut handle = match kept {
        Some(handle) => handle,
        None => device.with_context(Handle::new)?,
    };
    let result = work(&mut handle);
    free().push((device, handle));
    result
}

/// Runs it. The product was checked against the buffers, and nothing is lacking.
pub(super) fn run_on<T: Element, C: Element>(
    stream: &Stream,
    situation: &Situation<'_>,
    (alpha, beta): ([u64; 2], [u64; 2]),
    a: DeviceSlice<'_, T>,
    b: DeviceSlice<'_, T>,
    c: DeviceSliceMut<'_, C>,
) -> Result<()> {
    let product = situation.product;
    let matrices: [Matrix; 3] = std::array::from_fn(|which| {
        let stored = all_stored(product)[which];
        Matrix {
            address: situation.addresses[which],
            leading: leading(stored).unwrap_or(i32::MAX),
            stride: stored.stride as i64,
        }
    });
    let (operands, result) = numbers(T::DTYPE, C::DTYPE).unwrap_or((Number::F32, Number::F32));
    let seen = |operation| transposition(operation, T::DTYPE).unwrap_or(Transposition::None);
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
    let bytes = workspace_bytes(situation.machine.capability);
    let mut workspace = stream.uninitialized::<u8>(bytes)?;
    let address = workspace.address();
    with_handle(device, |handle| {
        // SAFETY: cuBLAS reads the matrices that the product describes, which lie inside the buffers, writes C and the
        // workspace, and launches on the stream that it is given.
        unsafe {
            stream.with_raw((a, b, c, &mut workspace), |stream| {
                handle.multiply(stream, (address, bytes), &call)
            })
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
        let stored = Stored { rows: 2, columns: 5, leading: 9, batch: 1, stride: 0 };
        assert_eq!(leading(stored), Some(9));
        assert_eq!(leading(Stored { rows: 1, leading: 1 << 40, ..stored }), Some(5));
        assert_eq!(leading(Stored { leading: 1 << 31, ..stored }), None);
    }
}
