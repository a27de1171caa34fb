//! The spiking engine on the CPU: the shared cases (tests/cases/burst.rs) with several numbers of threads and shards, and
//! bad input.

#[path = "../cases/burst.rs"]
mod cases;

mod bad_input;
mod engine;
mod recovery;
mod simulation;
