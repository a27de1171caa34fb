//! Fused expressions: functions of elements that are built from C and run as one kernel.
//!
//! An expression is a node of a graph: an input, a number, or an operation on other expressions. A fused function has one or
//! more expressions as outputs. It is compiled at its first run with each combination of dtypes.

use std::sync::Arc;

use super::arguments::{out, slice, slice_mut};
use super::error::{Failure, Result};
use super::guard;
use super::handle::{Object, object};
use super::tensor::elementwise::operation;
use super::tensor::{Operand, dtype, enter_all, number, operands, sv_number, sv_operand};
use crate::fuse::ExpressionTree;
use crate::tensor::{DynamicFused, TensorOperand};

/// An expression behind a handle.
#[derive(Clone)]
pub(super) struct ExpressionObject(ExpressionTree);
object!(ExpressionObject, Expression);

/// A fused function behind a handle.
#[derive(Clone)]
pub(super) struct FusedObject(Arc<DynamicFused>);
object!(FusedObject, Fused);

/// Runs the body of a function whose result is an expression, and writes its handle.
///
/// # Safety
///
/// `expression` is NULL or points to a `u64` that this call alone uses.
unsafe fn give(
    function: &'static str,
    expression: *mut u64,
    work: impl FnOnce() -> Result<ExpressionTree>,
) -> i32 {
    guard::call(function, || {
        // SAFETY: as the caller vouches.
        let result = unsafe { out(expression, "expression")? };
        result.write(ExpressionObject::table().insert(ExpressionObject(work()?))?);
        Ok(())
    })
}

/// Creates an expression for operand `index` of a fused function's runs, from 0.
///
/// The caller owns one reference to `*expression`. Any thread may call it, and use the expression.
///
/// # Safety
///
/// `expression` points to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_expression_input(index: u32, expression: *mut u64) -> i32 {
    let work = || Ok(ExpressionTree::input(index)?);
    // SAFETY: as the caller vouches.
    unsafe { give("sv_expression_input", expression, work) }
}

/// Creates an expression for a number, which takes part in an operation by its kind.
///
/// The caller owns one reference to `*expression`. Any thread may call it, and use the expression.
///
/// # Safety
///
/// `number` points to a struct, and `expression` to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_expression_number(number: *const sv_number, expression: *mut u64) -> i32 {
    // SAFETY: as the caller vouches.
    let number = || unsafe { self::number(number, "number") };
    let work = || Ok(ExpressionTree::number(number()?));
    // SAFETY: as the caller vouches.
    unsafe { give("sv_expression_number", expression, work) }
}

/// Creates an expression for an element's index along an axis of the result, as `SV_DTYPE_I64`.
///
/// The caller owns one reference to `*expression`. Any thread may call it, and use the expression.
///
/// # Safety
///
/// `expression` points to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_expression_index(axis: i64, expression: *mut u64) -> i32 {
    let work = || Ok(ExpressionTree::index(axis as isize));
    // SAFETY: as the caller vouches.
    unsafe { give("sv_expression_index", expression, work) }
}

/// Creates an expression for an operation, one of `SV_OP_...`, on `count` other expressions.
///
/// The caller owns one reference to `*expression`, which keeps its operands; their handles may be released. Any thread may
/// call it, and use the expression.
///
/// # Safety
///
/// `operands` points to `count` handles, and `expression` to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_expression_operation(
    operation: u32,
    operands: *const u64,
    count: usize,
    expression: *mut u64,
) -> i32 {
    let work = || {
        let operation = self::operation(operation)?;
        // SAFETY: as the caller vouches.
        let operands = unsafe { expressions(operands, count, "operands")? };
        Ok(ExpressionTree::operation(operation, &operands)?)
    };
    // SAFETY: as the caller vouches.
    unsafe { give("sv_expression_operation", expression, work) }
}

/// Creates an expression for another one's elements in a dtype.
///
/// The caller owns one reference to `*expression`. Any thread may call it, and use the expression.
///
/// # Safety
///
/// `expression` points to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_expression_cast(operand: u64, dtype: i32, expression: *mut u64) -> i32 {
    let work = || {
        let dtype = self::dtype(dtype)?;
        let operand = ExpressionObject::table().get(operand, "operand")?.0;
        Ok(operand.cast(dtype)?)
    };
    // SAFETY: as the caller vouches.
    unsafe { give("sv_expression_cast", expression, work) }
}

/// Returns the expressions of handles.
///
/// # Safety
///
/// As [`slice`].
unsafe fn expressions(handles: *const u64, count: usize, name: &str) -> Result<Vec<ExpressionTree>> {
    // SAFETY: as the caller vouches.
    let handles = unsafe { slice(handles, count, name)? };
    handles.iter().map(|handle| Ok(ExpressionObject::table().get(*handle, name)?.0)).collect()
}

/// Creates a fused function, which computes `count` expressions in one kernel.
///
/// The caller owns one reference to `*fused`, which keeps the expressions; their handles may be released. Any thread may call
/// it, and run the function.
///
/// # Safety
///
/// `outputs` points to `count` handles, and `fused` to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_fused_create(outputs: *const u64, count: usize, fused: *mut u64) -> i32 {
    guard::call("sv_fused_create", || {
        // SAFETY: as the caller vouches.
        let result = unsafe { out(fused, "fused")? };
        // SAFETY: as the caller vouches.
        let outputs = unsafe { expressions(outputs, count, "outputs")? };
        let function = DynamicFused::from_trees(outputs)?;
        result.write(FusedObject::table().insert(FusedObject(Arc::new(function)))?);
        Ok(())
    })
}

/// Writes the numbers of operands and results of a fused function: one more than the largest input, and its outputs.
///
/// Any thread may call it.
///
/// # Safety
///
/// `operands` and `results` each point to a `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_fused_counts(fused: u64, operands: *mut usize, results: *mut usize) -> i32 {
    guard::call("sv_fused_counts", || {
        // SAFETY: as the caller vouches.
        let (operands, results) = unsafe { (out(operands, "operands")?, out(results, "results")?) };
        let fused = FusedObject::table().get(fused, "fused")?.0;
        operands.write(fused.inputs());
        results.write(fused.outputs());
        Ok(())
    })
}

/// Computes a fused function of `count` operands, each a tensor or a number, and writes its `results_count` tensors. Each has
/// the shape to which the operands broadcast.
///
/// The first run with a combination of dtypes compiles the function; later runs find it. The caller owns one reference to
/// each of `results`. Any thread may call it.
///
/// # Safety
///
/// `operands` points to `count` structs, and `results` to `results_count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_fused_run(
    fused: u64,
    operands: *const sv_operand,
    count: usize,
    results: *mut u64,
    results_count: usize,
) -> i32 {
    guard::call("sv_fused_run", || {
        let fused = FusedObject::table().get(fused, "fused")?.0;
        // SAFETY: as the caller vouches.
        let results = unsafe { slice_mut(results, results_count, "results")? };
        if results.len() != fused.outputs() {
            let wanted = format!("{}, the outputs of the function", fused.outputs());
            return Err(Failure::argument("results_count", results.len(), &wanted));
        }
        // SAFETY: as the caller vouches.
        let operands = unsafe { self::operands(operands, count)? };
        let operands: Vec<TensorOperand<'_>> = operands.iter().map(Operand::operand).collect();
        results.copy_from_slice(&enter_all(fused.run(&operands)?)?);
        Ok(())
    })
}
