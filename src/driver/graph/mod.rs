//! Graphs: captured work that is launched as one operation.
//!
//! [`Stream::capture`] runs a closure and captures its operations instead of running them, on all streams that come to
//! depend on each other. [`Graph::instantiate`] turns the result into an [`ExecutableGraph`], which can be launched.
//! All of this is safe: the graph holds every module, function, buffer and page-locked memory that a captured operation
//! named. A launch counts as a use of each, so it follows their earlier uses and precedes their later ones. Memory
//! allocated during the capture belongs to the graph.
//!
//! Operations that cannot be captured (a blocking copy, a query of the stream, a wait for work outside) return
//! [`Error::NotCapturable`](crate::Error::NotCapturable) before the driver is called, and the capture goes on.
//!
//! - [`capture`] holds the state of a capture in progress, [`arena`] the graph's memory, [`work`] the uses of a launch.
//! - [`template`] is the captured graph and its picture, [`executable`] the launched and updated graph, [`captured`] a
//!   closure that is captured again when its key changes, and [`conditional`] work that depends on a value on the
//!   device.
//!
//! Invariants:
//!
//! - An error or a panic in the closure ends and discards the capture.
//! - Calls that the driver forbids only by default (allocating, loading) run in its relaxed capture mode. `cuCtxSynchronize`
//!   would end the captures of all threads, so during a capture streams are waited for one by one.
//! - A launch and a wait on one stream are serialized. Driver 580 loses a wait that one thread issues while another launches
//!   a graph into the same stream, about once in 100,000 launches (docs/device-runs.md).
//! - A programmatic dependent launch is a typed edge. Queries of drivers before 12.3 fail on such edges. On these drivers,
//!   and in the body of a conditional node, the launch is captured as a plain one. An update accepts edges of the same
//!   kinds only.
//! - A launch records its uses of memory, unless it follows the previous launch on the same stream and no block of the
//!   process has changed its users since.

mod arena;
pub(crate) mod capture;
pub(crate) mod capture_gate;
mod captured;
mod conditional;
mod executable;
mod template;
mod work;

pub(crate) use arena::GraphArena;
pub use captured::Captured;
pub(crate) use conditional::ConditionKernel;
pub use executable::{CapturedBuffer, ExecutableGraph, GraphUpdateError};
pub(crate) use template::OpenCapture;
pub use template::{Graph, GraphNode, GraphNodeKind};
pub(crate) use work::HeldPinned;
