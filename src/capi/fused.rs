//! Fused expressions: functions of elements that are built from C and run as one kernel.
//!
//! An expression is a node of a graph: an input, a number, or an operation on other expressions. A fused function has one or
//! more expressions as outputs. It is compiled at its first run with each combination of dtypes.

use std::collections::HashMap;
use std::sync::Arc;

use super::arguments::{out, slice, slice_mut};
use super::error::{Failure, Result};
use super::guard;
use super::handle::{Object, object};
use super::tensor::elementwise::operation;
use super::tensor::{Operand, dtype, enter_all, number, operands, sv_number, sv_operand};
use crate::error::Error;
use crate::fuse::{Expr, Graph, NodeOrNumber, Number, Operation};
use crate::tensor::{DynamicFused, TensorOperand};
use crate::types::DType;

/// The most operations one inside another. It bounds the stack that dropping an expression takes.
const LARGEST_DEPTH: u32 = 1000;

/// The most inputs of a fused function.
const LARGEST_INPUT: u32 = 63;

/// A node of an expression.
enum ExpressionNode {
    Input(u32),
    Number(Number),
    Operation(Operation, Vec<Arc<Expression>>),
    Cast(DType, Arc<Expression>),
    Index(isize),
}

/// A node with its depth.
struct Expression {
    node: ExpressionNode,
    depth: u32,
}

/// An expression behind a handle.
#[derive(Clone)]
pub(super) struct ExpressionObject(Arc<Expression>);
object!(ExpressionObject, Expression);

/// A fused function behind a handle.
#[derive(Clone)]
pub(super) struct FusedObject(Arc<DynamicFused>);
object!(FusedObject, Fused);

impl Expression {
    /// Returns an expression over others.
    fn over(operands: &[Arc<Expression>], node: ExpressionNode) -> Result<Expression> {
        let depth = 1 + operands.iter().map(|operand| operand.depth).max().unwrap_or(0);
        if depth > LARGEST_DEPTH {
            let wanted = format!("at most {LARGEST_DEPTH}; split the function");
            return Err(Failure::argument("operands", format!("{depth} operations one in another"), &wanted));
        }
        Ok(Expression { node, depth })
    }

    /// Returns one more than the largest input of the expression.
    fn inputs(self: &Arc<Self>, seen: &mut HashMap<*const Expression, ()>) -> u32 {
        if seen.insert(Arc::as_ptr(self), ()).is_some() {
            return 0;
        }
        match &self.node {
            ExpressionNode::Input(index) => index + 1,
            ExpressionNode::Number(_) | ExpressionNode::Index(_) => 0,
            ExpressionNode::Operation(_, operands) => {
                operands.iter().map(|operand| operand.inputs(seen)).max().unwrap_or(0)
            }
            ExpressionNode::Cast(_, operand) => operand.inputs(seen),
        }
    }

    /// Adds the expression to a graph, each node once.
    fn build<'g>(
        self: &Arc<Self>,
        graph: &'g Graph,
        inputs: &[Expr<'g>],
        known: &mut HashMap<*const Expression, Expr<'g>>,
    ) -> crate::Result<NodeOrNumber<'g>> {
        if let ExpressionNode::Number(number) = self.node {
            return Ok(NodeOrNumber::Number(number));
        }
        if let Some(expr) = known.get(&Arc::as_ptr(self)) {
            return Ok(NodeOrNumber::Expr(*expr));
        }
        let expr = match &self.node {
            ExpressionNode::Input(index) => {
                let found = || format!("input {index} of {}", inputs.len());
                *inputs.get(*index as usize).ok_or_else(|| {
                    Error::invalid("a fused function", found(), "an input that a run passes")
                })?
            }
            ExpressionNode::Index(axis) => graph.index(*axis),
            ExpressionNode::Cast(dtype, operand) => {
                only_expr(operand.build(graph, inputs, known)?)?.cast(*dtype)
            }
            ExpressionNode::Operation(operation, operands) => {
                let operands = operands.iter().map(|operand| operand.build(graph, inputs, known));
                let operands = operands.collect::<crate::Result<Vec<_>>>()?;
                let first = operands.iter().find_map(|operand| match operand {
                    NodeOrNumber::Expr(expr) => Some(*expr),
                    NodeOrNumber::Number(_) => None,
                });
                let none = || {
                    Error::invalid(operation.name(), "numbers alone", "at least one expression with an input")
                };
                first.ok_or_else(none)?.apply(*operation, &operands)
            }
            ExpressionNode::Number(_) => return Err(number_alone()),
        };
        known.insert(Arc::as_ptr(self), expr);
        Ok(NodeOrNumber::Expr(expr))
    }
}

fn number_alone() -> Error {
    Error::invalid("a fused function", "a number alone", "an expression with an input")
}

fn only_expr(operand: NodeOrNumber<'_>) -> crate::Result<Expr<'_>> {
    match operand {
        NodeOrNumber::Expr(expr) => Ok(expr),
        NodeOrNumber::Number(_) => Err(number_alone()),
    }
}

/// Runs the body of a function whose result is an expression, and writes its handle.
///
/// # Safety
///
/// `expression` is NULL or points to a `u64` that this call alone uses.
unsafe fn give(
    function: &'static str,
    expression: *mut u64,
    work: impl FnOnce() -> Result<Expression>,
) -> i32 {
    guard::call(function, || {
        // SAFETY: as the caller vouches.
        let result = unsafe { out(expression, "expression")? };
        result.write(ExpressionObject::table().insert(ExpressionObject(Arc::new(work()?)))?);
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
    let work = || {
        if index > LARGEST_INPUT {
            return Err(Failure::argument("index", index, &format!("at most {LARGEST_INPUT}")));
        }
        Ok(Expression { node: ExpressionNode::Input(index), depth: 1 })
    };
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
    let work = || Ok(Expression { node: ExpressionNode::Number(number()?), depth: 1 });
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
    let work = || Ok(Expression { node: ExpressionNode::Index(axis as isize), depth: 1 });
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
        if operation.arity() != count {
            let wanted = format!("{} for {}", operation.arity(), operation.name());
            return Err(Failure::argument("count", format!("{count} operands"), &wanted));
        }
        // SAFETY: as the caller vouches.
        let operands = unsafe { expressions(operands, count, "operands")? };
        Expression::over(&operands.clone(), ExpressionNode::Operation(operation, operands))
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
        Expression::over(std::slice::from_ref(&operand), ExpressionNode::Cast(dtype, operand.clone()))
    };
    // SAFETY: as the caller vouches.
    unsafe { give("sv_expression_cast", expression, work) }
}

/// Returns the expressions of handles.
///
/// # Safety
///
/// As [`slice`].
unsafe fn expressions(handles: *const u64, count: usize, name: &str) -> Result<Vec<Arc<Expression>>> {
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
        if outputs.is_empty() {
            return Err(Failure::argument("count", count, "at least 1"));
        }
        let mut seen = HashMap::new();
        let inputs = outputs.iter().map(|output| output.inputs(&mut seen)).max().unwrap_or(0) as usize;
        let function = DynamicFused::new(inputs, outputs.len(), move |graph, inputs| {
            let mut known = HashMap::new();
            let output = |output: &Arc<Expression>| only_expr(output.build(graph, inputs, &mut known)?);
            outputs.iter().map(output).collect()
        });
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
