//! The spiking engine on the CPU: the shared cases (tests/cases/burst.rs, tests/cases/burst_changes.rs, tests/cases/burst_edits.rs)
//! with several numbers of threads and shards, and bad input.

#[path = "../cases/burst.rs"]
mod cases;
#[path = "../cases/burst_edits.rs"]
mod cases_of_edits;
#[path = "../cases/burst_changes.rs"]
mod changes;

mod arrays;
mod bad_input;
mod edits;
mod engine;
mod logs;
mod losable;
mod power;
mod recovery;
mod simulation;
