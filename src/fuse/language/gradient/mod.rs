//! Derivatives of the elementwise operations, as expressions, and the chain rule over a [`Graph`](crate::fuse::Graph).
//!
//! A function here computes the gradients of an operation's operands from the operands, the result and the
//! result's gradient. `ops!` names the function of each operation, or `none` for an operation whose result is
//! constant between jumps or not a number. Gradients are PyTorch's:
//!
//! - At a kink: `relu` and `abs` have gradient 0 at 0, `maximum` and `minimum` give half to each of two equal
//!   operands, and `clamp` passes the gradient at its bounds.
//! - At a point where a convex function has no derivative, `hypot` at the origin included, the gradient is the subgradient
//!   of least length.
//! - At infinity the gradient is the limit of the derivative, if the function or its derivative has a limit.
//! - For complex numbers the gradient is the conjugate Wirtinger derivative: g = ∂L/∂Re + i ∂L/∂Im of the real
//!   loss L. An operation f with a complex derivative therefore multiplies g by the conjugate of f'.
//!
//! Gradients of f16 and bf16 are computed in f32 and rounded once.
//!
//! Tests: `tests/tensor/gradients.rs` compares the derivative of every operation with differences,
//! `tests/cases/values/derivatives.rs` with a table of derivatives at the edges of its domain.

mod arithmetic;
mod chain;
mod compare;
mod complex;
mod division;
mod elementary;
mod error;
mod gamma;
mod logarithmic;
mod power;
mod product;
mod trigonometric;

pub(crate) use arithmetic::*;
pub(crate) use compare::*;
pub(crate) use complex::*;
pub(crate) use division::*;
pub(crate) use elementary::*;
pub(crate) use error::*;
pub(crate) use gamma::*;
pub(crate) use logarithmic::*;
pub(crate) use power::*;
pub(crate) use product::product_of_others;
pub(crate) use trigonometric::*;

use num_complex::Complex;

use super::graph::Expr;
use super::node::{Node, needed};
use super::operation::Operation;
use crate::types::DType;

/// The inputs of a derivative: the operands in the dtype that the operation computes in, the result, and the
/// gradient of the result.
#[derive(Clone, Copy)]
pub(crate) struct Derivation<'g> {
    operands: [Expr<'g>; 3],
    result: Expr<'g>,
    gradient: Expr<'g>,
}

/// The gradients of an operation's operands; `None` is 0.
pub(crate) type OperandGradients<'g> = [Option<Expr<'g>>; 3];

/// Computes the gradients of an operation's operands.
pub(crate) type Derivative = for<'g> fn(Derivation<'g>) -> OperandGradients<'g>;

impl<'g> Derivation<'g> {
    fn x(&self) -> Expr<'g> {
        self.operands[0]
    }

    fn y(&self) -> Expr<'g> {
        self.operands[1]
    }

    fn z(&self) -> Expr<'g> {
        self.operands[2]
    }

    fn is_complex(&self) -> bool {
        self.x().dtype().is_complex()
    }

    /// Returns the gradient of the operand of an operation with this complex derivative.
    fn times(&self, derivative: Expr<'g>) -> OperandGradients<'g> {
        unary(self.gradient * derivative.conj())
    }
}

fn unary(x: Expr<'_>) -> OperandGradients<'_> {
    [Some(x), None, None]
}

fn binary<'g>(x: Expr<'g>, y: Expr<'g>) -> OperandGradients<'g> {
    [Some(x), Some(y), None]
}

fn ternary<'g>(x: Expr<'g>, y: Expr<'g>, z: Expr<'g>) -> OperandGradients<'g> {
    [Some(x), Some(y), Some(z)]
}

impl<'g> Expr<'g> {
    /// Returns whether two expressions are the same node.
    pub(crate) fn is_node_of(self, other: Expr<'g>) -> bool {
        std::ptr::eq(self.graph, other.graph) && self.node == other.node
    }

    /// Returns whether the value depends on inputs, not on scalars alone.
    pub(crate) fn reads_inputs(self) -> bool {
        let nodes = self.graph.0.borrow();
        let needed = needed(&nodes, &[self.node], |_| false);
        needed
            .iter()
            .zip(&nodes.nodes)
            .any(|(is_needed, (node, _))| *is_needed && matches!(node, Node::Input(_)))
    }
}

/// Returns x within bounds past which a function that is constant or linear there, to all digits, has its derivative's limit.
/// The products of such a derivative then neither overflow nor have infinite factors.
fn bounded(x: Expr<'_>) -> Expr<'_> {
    x.minimum(1000.0).maximum(-1000.0)
}

/// Returns 1 + ix and 1 - ix.
fn rotated(x: Expr<'_>) -> [Expr<'_>; 2] {
    let rotated = x * Complex::new(0.0, 1.0);
    [rotated + 1.0, 1.0 - rotated]
}

/// Returns 1 - x², as a product that is accurate near 1 and -1.
fn one_minus_square(x: Expr<'_>) -> Expr<'_> {
    (x + 1.0) * (1.0 - x)
}

/// Returns the gradients of an operation's operands, each in the operand's dtype. All dtypes are those of the
/// operation's signature, and operands beyond its arity repeat the first.
pub(crate) fn operand_gradients<'g>(
    operation: Operation,
    operands: [Expr<'g>; 3],
    result: Expr<'g>,
    gradient: Expr<'g>,
) -> OperandGradients<'g> {
    let Some(derivative) = operation.derivative() else { return [None; 3] };
    let widened = |expr: Expr<'g>| match expr.dtype() {
        DType::F16 | DType::BF16 => expr.cast(DType::F32),
        _ => expr,
    };
    let wide = widened(gradient);
    let derivation = Derivation { operands: operands.map(widened), result: widened(result), gradient: wide };
    let mut gradients = derivative(derivation);
    for (found, operand) in gradients.iter_mut().zip(operands) {
        // A gradient that passes through is the incoming one, not a copy of it.
        *found = found.map(|found| if found.is_node_of(wide) { gradient } else { found });
        *found = found.map(|found| found.converted(operand.dtype()));
    }
    gradients
}
