//! [`ExpressionTree`], an expression whose operations are chosen at run time, before the dtypes of its inputs are known.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::graph::{Expr, Graph, NodeOrNumber};
use super::operation::Operation;
use crate::error::{Error, Result};
use crate::fuse::ir::number::Number;
use crate::types::DType;

/// The most operations one inside another. It bounds the stack that dropping a tree takes.
const MAX_DEPTH: u32 = 1000;

/// The most inputs of a tree.
const MAX_INPUTS: u32 = 64;

/// A node of a tree.
enum TreeNode {
    Input(u32),
    Number(Number),
    Operation(Operation, Vec<ExpressionTree>),
    Cast(DType, ExpressionTree),
    Index(isize),
}

/// A node with its depth.
struct Node {
    node: TreeNode,
    depth: u32,
}

/// An expression of inputs without dtypes, which other languages build node by node. Clones share their nodes, and a
/// node that several operations use is computed once.
///
/// [`DynamicFused::from_trees`](crate::tensor::DynamicFused::from_trees) runs trees on tensors.
///
/// ```
/// use selvedge::fuse::{ExpressionTree, Operation};
/// use selvedge::tensor::{Device, DynamicFused, Tensor};
/// let x = ExpressionTree::input(0)?;
/// let doubled = ExpressionTree::operation(Operation::Mul, &[x, ExpressionTree::number(2)])?;
/// let function = DynamicFused::from_trees(vec![doubled])?;
/// let x = Tensor::new([1.5f32, -1.0], &Device::best())?;
/// assert_eq!(function.run(&[(&x).into()])?[0].to_vec::<f32>()?, [3.0, -2.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone)]
pub struct ExpressionTree(Arc<Node>);

impl ExpressionTree {
    /// Returns operand `index` of a run, from 0.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an index above 63.
    pub fn input(index: u32) -> Result<ExpressionTree> {
        if index >= MAX_INPUTS {
            return Err(Error::invalid("index", index, format!("at most {}", MAX_INPUTS - 1)));
        }
        Ok(ExpressionTree(Arc::new(Node { node: TreeNode::Input(index), depth: 1 })))
    }

    /// Returns a number, which takes part in an operation by its kind.
    pub fn number(number: impl Into<Number>) -> ExpressionTree {
        ExpressionTree(Arc::new(Node { node: TreeNode::Number(number.into()), depth: 1 }))
    }

    /// Returns an element's index along an axis of the result, as i64.
    pub fn index(axis: isize) -> ExpressionTree {
        ExpressionTree(Arc::new(Node { node: TreeNode::Index(axis), depth: 1 }))
    }

    /// Returns an operation on other trees.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for another number of operands than the operation's, and for more than 1000 operations one
    /// inside another.
    pub fn operation(operation: Operation, operands: &[ExpressionTree]) -> Result<ExpressionTree> {
        if operation.arity() != operands.len() {
            let wanted = format!("{} for {}", operation.arity(), operation.name());
            return Err(Error::invalid("count", format!("{} operands", operands.len()), wanted));
        }
        ExpressionTree::over(operands, TreeNode::Operation(operation, operands.to_vec()))
    }

    /// Returns the elements in a dtype.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for more than 1000 operations one inside another.
    pub fn cast(&self, dtype: DType) -> Result<ExpressionTree> {
        ExpressionTree::over(std::slice::from_ref(self), TreeNode::Cast(dtype, self.clone()))
    }

    /// Returns a node over others.
    fn over(operands: &[ExpressionTree], node: TreeNode) -> Result<ExpressionTree> {
        let depth = 1 + operands.iter().map(|operand| operand.0.depth).max().unwrap_or(0);
        if depth > MAX_DEPTH {
            let wanted = format!("at most {MAX_DEPTH}; split the function");
            return Err(Error::invalid("operands", format!("{depth} operations one in another"), wanted));
        }
        Ok(ExpressionTree(Arc::new(Node { node, depth })))
    }

    /// Returns one more than the largest input of trees.
    pub(crate) fn inputs(trees: &[ExpressionTree]) -> u32 {
        let mut seen = HashSet::new();
        trees.iter().map(|tree| tree.count_inputs(&mut seen)).max().unwrap_or(0)
    }

    fn count_inputs(&self, seen: &mut HashSet<*const Node>) -> u32 {
        if !seen.insert(Arc::as_ptr(&self.0)) {
            return 0;
        }
        match &self.0.node {
            TreeNode::Input(index) => index + 1,
            TreeNode::Number(_) | TreeNode::Index(_) => 0,
            TreeNode::Operation(_, operands) => {
                operands.iter().map(|operand| operand.count_inputs(seen)).max().unwrap_or(0)
            }
            TreeNode::Cast(_, operand) => operand.count_inputs(seen),
        }
    }

    /// Adds trees to a graph, each node once.
    pub(crate) fn build_all<'g>(
        trees: &[ExpressionTree],
        graph: &'g Graph,
        inputs: &[Expr<'g>],
    ) -> Result<Vec<Expr<'g>>> {
        let mut known = HashMap::new();
        trees.iter().map(|tree| only_expr(tree.build(graph, inputs, &mut known)?)).collect()
    }

    fn build<'g>(
        &self,
        graph: &'g Graph,
        inputs: &[Expr<'g>],
        known: &mut HashMap<*const Node, Expr<'g>>,
    ) -> Result<NodeOrNumber<'g>> {
        if let TreeNode::Number(number) = self.0.node {
            return Ok(NodeOrNumber::Number(number));
        }
        if let Some(expr) = known.get(&Arc::as_ptr(&self.0)) {
            return Ok(NodeOrNumber::Expr(*expr));
        }
        let expr = match &self.0.node {
            TreeNode::Input(index) => {
                let found = || format!("input {index} of {}", inputs.len());
                *inputs.get(*index as usize).ok_or_else(|| {
                    Error::invalid("a fused function", found(), "an input that a run passes")
                })?
            }
            TreeNode::Index(axis) => graph.index(*axis),
            TreeNode::Cast(dtype, operand) => only_expr(operand.build(graph, inputs, known)?)?.cast(*dtype),
            TreeNode::Operation(operation, operands) => {
                let operands = operands.iter().map(|operand| operand.build(graph, inputs, known));
                let operands = operands.collect::<Result<Vec<_>>>()?;
                let first = operands.iter().find_map(|operand| match operand {
                    NodeOrNumber::Expr(expr) => Some(*expr),
                    NodeOrNumber::Number(_) => None,
                });
                let none = || {
                    Error::invalid(operation.name(), "numbers alone", "at least one expression with an input")
                };
                first.ok_or_else(none)?.apply(*operation, &operands)
            }
            TreeNode::Number(_) => return Err(number_alone()),
        };
        known.insert(Arc::as_ptr(&self.0), expr);
        Ok(NodeOrNumber::Expr(expr))
    }
}

fn number_alone() -> Error {
    Error::invalid("a fused function", "a number alone", "an expression with an input")
}

fn only_expr(operand: NodeOrNumber<'_>) -> Result<Expr<'_>> {
    match operand {
        NodeOrNumber::Expr(expr) => Ok(expr),
        NodeOrNumber::Number(_) => Err(number_alone()),
    }
}

impl fmt::Debug for ExpressionTree {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.node {
            TreeNode::Input(index) => write!(formatter, "input({index})"),
            TreeNode::Number(number) => write!(formatter, "{number:?}"),
            TreeNode::Index(axis) => write!(formatter, "index({axis})"),
            // A tree of shared nodes may be exponentially long in full.
            TreeNode::Operation(operation, _) => write!(formatter, "{}(...)", operation.name()),
            TreeNode::Cast(dtype, _) => write!(formatter, "cast({dtype})"),
        }
    }
}
