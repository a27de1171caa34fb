//! The functions of `selvedge::catalogue` on the CPU: golden numbers (tests/cases/catalogue.rs), lengths around blocks of 256, edges and bad input.

mod beliefs;
#[path = "../cases/catalogue.rs"]
mod cases;
mod common;
mod counts;
mod gates;
mod information;
mod neurons;
mod oscillators;
mod policies;
mod sampling;
mod table;
