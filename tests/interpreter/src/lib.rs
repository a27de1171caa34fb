//! Runs generated PTX on the CPU, thread by thread: an [interpreter](kernel) of the used subset, the [memory] of a kernel,
//! and the [order of threads](schedule).

mod action;
mod kernel;
mod memory;
pub mod pure;
mod schedule;

pub use kernel::Kernel;
pub use memory::Memory;
pub use schedule::Schedule;
