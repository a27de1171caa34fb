//! Attention on the CPU, of slices.
//!
//! Work is divided into tasks, which threads take from a counter: tiles of queries in the forward, and heads of keys in the backward, whose
//! keys are divided further where there are few heads. A task goes through blocks of keys. Products of a tile of queries and a block
//! of keys are those of the crate `gemm`; between them rows of scores become probabilities in vectors.
//!
//! Invariants: tasks and blocks depend on the problem alone, so the bits do not depend on the number of threads. (They depend on the
//! processor, as those of products do.) Memory is a few tiles for each thread, and in the backward sums of a head's gradients.

mod backward;
mod element;
mod forward;
mod job;
mod real;
mod scores;

pub use backward::{HostGradients, backward_host};
pub use element::HostElement;
pub use forward::forward_host;
pub use job::HostOperands;
