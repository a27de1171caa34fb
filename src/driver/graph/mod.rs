//! Graphs: work that is written down once and launched as one operation.
//!
//! [`Stream::capture`] runs a closure whose operations are captured instead of done, on as many streams as come to
//! depend on each other; [`Graph::instantiate`] makes of it an [`ExecutableGraph`], which is launched. Nothing of this is
//! unsafe: the graph holds every module, function, buffer and page-locked memory that a captured operation named, and a
//! launch counts as a use of each, so it comes after whatever used them before and before whatever uses them next.
//! Memory that is allocated while capturing belongs to the graph.
//!
//! What cannot be captured (a blocking copy, a question about the stream, a wait for work outside) is
//! [`Error::NotCapturable`](crate::Error::NotCapturable) before the driver is asked, and the capture goes on.
//!
//! - [`capture`] is the state of a capture under way, [`arena`] the graph's memory, [`work`] what a launch enters.
//! - [`template`] is the captured graph and its picture, [`executable`] what is launched and updated, [`captured`] a
//!   closure that is captured again when its key changes, [`conditional`] work that depends on a value on the device.

mod arena;
pub(crate) mod capture;
mod captured;
mod conditional;
mod executable;
mod template;
mod work;

pub(crate) use arena::GraphArena;
pub use captured::Captured;
pub(crate) use conditional::ConditionKernel;
pub use executable::{CapturedBuffer, ExecutableGraph, UpdateError};
pub use template::{Graph, GraphNode, NodeKind};
pub(crate) use work::HeldPinned;
