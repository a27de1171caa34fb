//! Automatic differentiation: a [`Variable`] is a tensor with a node on a tape.
//!
//! An operation on variables computes its tensor at once, and records a node: the nodes of its operands and the rule that
//! computes their gradients from the result's. [`Variable::backward`] visits the nodes from the last created to the first,
//! so that each gradient is complete before its rule runs, and adds the gradients of leaves to [`Variable::grad`].
//! [`Variable::gradients`] visits them in the same order, and records what their rules compute.
//!
//! A gradient of a gradient is a gradient of an expression. A rule that is one expression of saved values is, on variables, a
//! recorded function whose own gradient is again an expression, so derivatives of every order need no rule of their own.
//! Products, sums and views record their rules' operations (`recordable`). Other operations have no second derivative, which
//! is an error that names them.
//!
//! Invariants:
//!
//! - A tensor knows nothing of the tape. Nodes hold no variables, and values hold no nodes, so nothing is a cycle.
//! - A rule reads values by their version. An in-place change ([`Variable::update`]) makes a backward through the old
//!   value an error that names the operation.
//! - The order of all sums follows from the order in which operations ran, so gradients have the same bits every time.
//! - Leaves change only if the whole backward succeeds. Saved values are freed as it passes them, unless it retains the graph.
//! - Neither the backward nor a drop recurses, so a chain may have any length.
//! - A recomputation ([`checkpoint`]) adds nodes that are newer than all others, so that they run next.
//! - A rule may return a gradient of the operand's broadcast shape and of another float dtype; the tape sums and casts it.
//!
//! Tests: `tests/nn`.

mod anomaly;
mod attention;
mod attention_engine;
mod batch_norm;
mod changes;
mod checkpoint;
mod cross_entropy;
mod dynamic_fused;
mod elementwise;
mod flat;
mod function;
mod fused;
mod gradients;
mod index_expression;
mod indexing;
mod linear_cross_entropy;
mod linear_layers;
mod mask;
mod matmul;
mod mode;
mod normalization;
mod operand;
mod operators;
mod recordable;
mod reduction;
mod repeat;
mod rule;
mod scan;
mod shape;
mod sort;
mod tape;
mod value;
mod variable;
mod weighted;

pub use anomaly::detect_anomaly;
pub(in crate::nn) use anomaly::is_on as detects_anomaly;
pub(in crate::nn) use attention::packed_attention;
pub use attention::{AttentionOptions, scaled_dot_product_attention};
pub(in crate::nn) use changes::Changes;
pub use checkpoint::checkpoint;
pub use dynamic_fused::DynamicFusedFunction;
pub use elementwise::apply;
pub(in crate::nn) use flat::{FlatSlot, FlatStorage, change_gradient_run, gradient_run, update_run};
pub use function::{Function, FunctionContext};
pub use fused::FusedFunction;
pub use linear_cross_entropy::linear_cross_entropy;
pub use linear_layers::{LinearLayer, linear_layers};
pub use mode::{NoGradGuard, is_grad_enabled, no_grad};
pub use operand::VariableOperand;
pub(in crate::nn) use shape::in_shape;
pub use variable::Variable;
