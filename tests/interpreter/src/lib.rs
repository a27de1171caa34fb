//! Runs generated PTX on the CPU, thread by thread: an [interpreter](kernel) of the used subset, the [memory] of a kernel,
//! and the [order of threads](schedule). Threads of a warp run [together] where that gives the same memory.

mod action;
mod kernel;
mod memory;
pub mod pure;
mod registers;
mod schedule;
mod thread;
mod together;
mod transactions;

pub use kernel::Kernel;
pub use memory::Memory;
pub use schedule::Schedule;
