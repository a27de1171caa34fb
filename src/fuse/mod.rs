//! Elementwise computation as a compiler: any expression over arrays is one kernel, on a device that has nothing but its
//! driver, or one pass over memory on the CPU.
//!
//! A [`Graph`] collects an expression, whose [`Expr`]s have operators; [`Graph::expression`] checks it and lowers it once.
//! The [`Expression`] runs on device memory ([`Expression::run`]) and on slices ([`Expression::run_host`]), in any
//! [`Layout`](crate::types::Layout), with inputs broadcast to the outputs' shape. It knows no tensors.
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
//! How it is made: an operation of the list ([`Operation`]) is lowered to instructions, each of which is one line of PTX and
//! one loop on the CPU, so both devices give the same bits ([`Operation::ulp`] says against what). A number of the program
//! is a parameter of the kernel, never text, so that the driver's cache of assembled kernels serves every value;
//! kernels are kept by the expression and by their text, and a run on operands that lie as before is planned no more.
//!
//! f16 and bf16 are computed in f32 and rounded once an operation; the 8-bit floats are cast first.

mod conversion;
mod coordinate;
mod device;
mod explain;
mod expression;
mod graph;
mod host;
mod instruction;
mod lower;
mod number;
mod operation;
mod permutation;
mod plan;
mod planned;
mod program;
mod ptx;
mod rare;
mod reduce;
mod scalar;
mod space;
mod tile;

pub use device::{DeviceInput, DeviceOutput};
pub(crate) use device::{RunOperand, with_retry};
pub use explain::{Explanation, KernelLaunch};
pub use expression::Expression;
#[doc(hidden)]
pub use graph::Given;
pub(crate) use graph::dtype_of_number;
pub use graph::{Expr, Graph, Operand};
pub use host::{HostInput, HostOutput};
pub use number::Number;
pub(crate) use operation::with_operations;
pub use operation::{DTypes, Operation, Rule, Signature};
pub(crate) use plan::divisor;
pub use reduce::{Fold, LaunchMemory, Reduction, ReductionExplanation, ReductionLaunch, Scan};
pub(crate) use scalar::{by_value, dtype_of_numbers, largest, limits};
