//! A compiler of elementwise expressions: an expression over arrays becomes one kernel on a device, which
//! needs only its driver, or one pass over memory on the CPU.
//!
//! A [`Graph`] collects an expression, whose [`Expr`]s have operators; [`Graph::expression`] checks it and
//! lowers it once. The [`Expression`] runs on device memory ([`Expression::run`]) and on slices
//! ([`Expression::run_host`]), in any [`Layout`](crate::types::Layout), with inputs broadcast to the outputs'
//! shape. This module is independent of tensors.
//!
//! ```
//! use selvedge::fuse::{Graph, HostInput, HostOutput};
//! use selvedge::types::{DType, Layout};
//!
//! let graph = Graph::new();
//! let [x, y] = graph.inputs([DType::F32; 2]);
//! let scale = graph.scalar(DType::F32);
//! let expression = graph.expression(&[(x * scale + y).relu()])?;
//!
//! let matrix = Layout::contiguous(&[2, 3])?;
//! let row = Layout::contiguous(&[3])?;
//! let mut result = [0.0f32; 6];
//! expression.run_host(
//!     &[HostInput::new(&[1.0f32, 2.0, 3.0, -4.0, -5.0, 6.0], matrix)?, HostInput::new(&[0.5f32, 0.0, -1.0], row)?],
//!     &[2.0.into()],
//!     &mut [HostOutput::new(&mut result, matrix)?],
//! )?;
//! assert_eq!(result, [2.5, 4.0, 5.0, 0.0, 0.0, 11.0]);
//! println!("{}", expression.explain(&[matrix, row], &[matrix], (9, 0))?);
//! # Ok::<(), selvedge::Error>(())
//! ```
//!
//! Each [`Operation`] is lowered to instructions. An instruction is one line of PTX and one loop on the CPU,
//! so both devices give the same bits; [`Operation::ulp`] is the error bound. Numbers of an expression are
//! kernel parameters, never PTX text, so the driver's cache of assembled kernels serves every value. The
//! expression caches its kernels, kernels with equal text share one module, and a run with the layouts of an
//! earlier run reuses its plan.
//!
//! Operations on f16 and bf16 compute in f32 and round once. The 8-bit floats support casts only.

// The parts are layers (tests/layers.rs), and each may use only those before it: ir, language, plan, then the back ends ptx and
// cpu, which may not use each other, then run and explain. The head of each part says what it holds: plan what compilation
// gives, run the same with the caches of plans, kernels and machine code.
mod cpu;
mod explain;
mod ir;
mod language;
mod plan;
mod ptx;
mod run;

#[doc(hidden)]
pub use cpu::backend::CpuBackend;
pub use cpu::{HostInput, HostOutput};
pub use explain::elementwise::{Explanation, KernelLaunch};
pub use explain::rows::{RowExplanation, RowKernel, RowLaunch, RowLaunches, RowMemory};
pub use ir::number::Number;
pub use language::fold::Fold;
pub(crate) use language::gradient::{operand_gradients, product_of_others};
#[doc(hidden)]
pub use language::graph::NodeOrNumber;
pub(crate) use language::graph::dtype_of_number;
pub use language::graph::{Expr, ExprOperand, Graph};
pub(crate) use language::operation::with_derivatives;
pub(crate) use language::operation::with_operations;
pub use language::operation::{DTypes, Operation, Rule, Signature};
pub(crate) use language::scalar::{by_value, dtype_of_numbers, largest, limits};
pub use language::tree::ExpressionTree;
pub use run::elementwise_device::{DeviceInput, DeviceOutput};
pub(crate) use run::elementwise_device::{RunOperand, with_operand_list};
pub use run::expression::Expression;
pub use run::reduction::Reduction;
pub use run::reduction_device::{LaunchMemory, ReductionExplanation, ReductionLaunch};
pub use run::row_program::RowProgram;
pub use run::scan::Scan;
