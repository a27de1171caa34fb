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

mod conversion;
mod coordinate;
mod device;
mod explain;
mod expression;
mod gradient;
mod graph;
mod host;
mod instruction;
mod lower;
mod node;
mod number;
mod operation;
mod permutation;
mod plan;
mod plan_cache;
mod program;
mod ptx;
mod random;
mod rare;
mod reduce;
mod rows;
mod scalar;
mod space;
mod tile;
mod tree;

pub use device::{DeviceInput, DeviceOutput};
pub(crate) use device::{RunOperand, with_operand_list};
pub use explain::{Explanation, KernelLaunch};
pub use expression::Expression;
#[cfg(feature = "nn")]
pub(crate) use gradient::{operand_gradients, product_of_others};
#[doc(hidden)]
pub use graph::NodeOrNumber;
pub(crate) use graph::dtype_of_number;
pub use graph::{Expr, ExprOperand, Graph};
#[doc(hidden)]
pub use host::backend::CpuBackend;
pub use host::{HostInput, HostOutput};
pub use number::Number;
#[cfg(feature = "nn")]
pub(crate) use operation::with_derivatives;
pub(crate) use operation::with_operations;
pub use operation::{DTypes, Operation, Rule, Signature};
pub use reduce::{Fold, LaunchMemory, Reduction, ReductionExplanation, ReductionLaunch, Scan};
pub use rows::{RowExplanation, RowKernel, RowLaunch, RowLaunches, RowMemory, RowProgram};
pub(crate) use scalar::{by_value, dtype_of_numbers, largest, limits};
pub use tree::ExpressionTree;
