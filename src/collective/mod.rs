//! Collective operations: ranks, each a process or a thread, that compute together.
//!
//! A [`Communicator`] is one rank's end of a world. Every rank calls the same operations in the same order, each with its own part:
//!
//! ```
//! use selvedge::collective::{Communicator, ReduceOp};
//!
//! # fn main() -> selvedge::Result<()> {
//! // Two ranks of this process. `Communicator::connect` makes those of several processes.
//! let ranks = Communicator::in_process(2)?;
//! std::thread::scope(|scope| {
//!     for communicator in &ranks {
//!         scope.spawn(move || -> selvedge::Result<()> {
//!             let mut values = [1.0f32, communicator.rank() as f32];
//!             communicator.all_reduce(&mut values, ReduceOp::Sum)?;
//!             assert_eq!(values, [2.0, 1.0]);
//!             Ok(())
//!         });
//!     }
//! });
//! # Ok(())
//! # }
//! ```
//!
//! Ranks find each other by the variables of torchrun, Slurm, Open MPI, MPICH or `selvedge launch`
//! ([`WorldOptions::from_environment`]), or by arguments ([`WorldOptions::new`]). Rank 0 listens on one address for the others,
//! which prove a secret of the launcher; then every pair of ranks is connected by TCP.
//!
//! Results do not depend on time: every sum begins with rank 0 and ends with the last one, in f32 for 16-bit floats, so all
//! ranks have the same bits, and those of one process that adds in this order.
//!
//! A rank that ends, hangs or calls another operation makes every rank's call fail with [`Error::Collective`](crate::Error), which
//! names it, at once or after the time-out. A communicator that has failed refuses all further calls.
//!
//! [`DeviceCommunicator`] has the same operations on the memory of devices, by NCCL. Invariants:
//!
//! - Each call is one or two exchanges (`mesh.rs`), in which every pair of ranks sends a frame in both directions.
//!   A frame begins with the call that it belongs to, and a rank compares it with its own.
//! - A stranger's bytes are bounded in size and time, and answered only after a proof of the secret.

mod arguments;
mod call;
mod communicator;
mod device;
mod device_operations;
mod environment;
mod mesh;
mod peers;
mod point_to_point;
mod proof;
mod reduction;
mod rendezvous;
mod split;
mod wire;
mod world;

pub use communicator::Communicator;
pub use device::DeviceCommunicator;
pub use reduction::ReduceOp;
pub use world::WorldOptions;
