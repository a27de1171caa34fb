//! Fused expressions: functions of elements that are built from C and run as one kernel.
//!
//! An expression is a node of a graph: an input, a number, or an operation on other expressions. A fused function has one or
//! more expressions as outputs. It is compiled at its first run with each combination of dtypes.

use std::sync::Arc;

use super::arguments::{out, slice, slice_mut};
use super::error::{Failure, Result};
use super::guard;
use super::handle::{Object, object, sv_expression, sv_fused, sv_tensor};
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
        let result = out(expression, "expression")?;
        result.write(ExpressionObject::table().insert(ExpressionObject(work()?))?);
        Ok(())
    })
}

/// Creates an expression for operand `index` of a fused function's runs, from 0.
///
/// Any thread may use the expression.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_expression_input(index: u32, expression: *mut sv_expression) -> i32 {
    let work = || Ok(ExpressionTree::input(index)?);
    give("sv_expression_input", expression, work)
}

/// Creates an expression for a number, which takes part in an operation by its kind.
///
/// Any thread may use the expression.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_expression_number(
    number: *const sv_number,
    expression: *mut sv_expression,
) -> i32 {
    let number = || self::number(number, "number");
    let work = || Ok(ExpressionTree::number(number()?));
    give("sv_expression_number", expression, work)
}

/// Creates an expression for an element's index along an axis of the result, as `SV_DTYPE_I64`.
///
/// Any thread may use the expression.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_expression_index(axis: i64, expression: *mut sv_expression) -> i32 {
    let work = || Ok(ExpressionTree::index(axis as isize));
    give("sv_expression_index", expression, work)
}

/// Creates an expression for an operation, one of `SV_OP_...`, on `count` other expressions.
///
/// The caller owns one reference to `*expression`, which keeps its operands; their handles may be released. Any thread may use
/// the expression.
///
/// # Safety
///
/// `operands` points to `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_expression_operation(
    operation: u32,
    operands: *const sv_expression,
    count: usize,
    expression: *mut sv_expression,
) -> i32 {
    let work = || {
        let operation = self::operation(operation)?;
        let operands = expressions(operands, count, "operands")?;
        Ok(ExpressionTree::operation(operation, &operands)?)
    };
    give("sv_expression_operation", expression, work)
}

/// Creates an expression for another one's elements in a dtype.
///
/// Any thread may use the expression.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_expression_cast(
    operand: sv_expression,
    dtype: i32,
    expression: *mut sv_expression,
) -> i32 {
    let work = || {
        let dtype = self::dtype(dtype)?;
        let operand = ExpressionObject::table().get(operand, "operand")?.0;
        Ok(operand.cast(dtype)?)
    };
    give("sv_expression_cast", expression, work)
}

/// Returns the expressions of handles.
///
/// # Safety
///
/// As [`slice`].
unsafe fn expressions(handles: *const u64, count: usize, name: &str) -> Result<Vec<ExpressionTree>> {
    let handles = slice(handles, count, name)?;
    handles.iter().map(|handle| Ok(ExpressionObject::table().get(*handle, name)?.0)).collect()
}

/// Creates a fused function, which computes `count` expressions in one kernel.
///
/// The caller owns one reference to `*fused`, which keeps the expressions; their handles may be released.
///
/// # Safety
///
/// `outputs` points to `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_fused_create(
    outputs: *const sv_expression,
    count: usize,
    fused: *mut sv_fused,
) -> i32 {
    guard::call("sv_fused_create", || {
        let result = out(fused, "fused")?;
        let outputs = expressions(outputs, count, "outputs")?;
        let function = DynamicFused::from_trees(outputs)?;
        result.write(FusedObject::table().insert(FusedObject(Arc::new(function)))?);
        Ok(())
    })
}

/// Writes the numbers of operands and results of a fused function: one more than the largest input, and its outputs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_fused_counts(fused: sv_fused, operands: *mut usize, results: *mut usize) -> i32 {
    guard::call("sv_fused_counts", || {
        let (operands, results) = (out(operands, "operands")?, out(results, "results")?);
        let fused = FusedObject::table().get(fused, "fused")?.0;
        operands.write(fused.inputs());
        results.write(fused.outputs());
        Ok(())
    })
}

/// Computes a fused function of `count` operands, each a tensor or a number, and writes its `results_count` tensors. Each has
/// the shape to which the operands broadcast.
///
/// The first run with a combination of dtypes compiles the function; later runs find it. The caller owns one reference to each of
/// `results`.
///
/// # Safety
///
/// `operands` points to `count` structs, and `results` to `results_count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_fused_run(
    fused: sv_fused,
    operands: *const sv_operand,
    count: usize,
    results: *mut sv_tensor,
    results_count: usize,
) -> i32 {
    guard::call("sv_fused_run", || {
        let fused = FusedObject::table().get(fused, "fused")?.0;
        let results = slice_mut(results, results_count, "results")?;
        if results.len() != fused.outputs() {
            let wanted = format!("{}, the outputs of the function", fused.outputs());
            return Err(Failure::argument("results_count", results.len(), &wanted));
        }
        let operands = self::operands(operands, count)?;
        let operands: Vec<TensorOperand<'_>> = operands.iter().map(Operand::operand).collect();
        results.copy_from_slice(&enter_all(fused.run(&operands)?)?);
        Ok(())
    })
}
