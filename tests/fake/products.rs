//! The shared table of matrix products, and the device suite's code that runs it.

#![allow(dead_code, reason = "the rest is the device suite's")]

#[path = "../gpu/gemm/bounds.rs"]
mod bounds;
#[path = "../gpu/gemm/case.rs"]
pub mod case;
#[path = "../cases/products.rs"]
pub mod cases;
#[path = "../gpu/gemm/chains.rs"]
pub mod chains;
#[path = "../gpu/gemm/definition.rs"]
mod definition;
#[path = "../gpu/gemm/doubles.rs"]
pub mod doubles;
#[path = "../gpu/gemm/epilogues.rs"]
pub mod epilogues;
#[path = "../gpu/gemm/numbers.rs"]
pub mod numbers;
#[path = "../gpu/gemm/slices.rs"]
pub mod slices;
