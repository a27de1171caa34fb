//! The items that the shared modules of the tests of products take from their suite.

#[path = "../gpu/support/numbers.rs"]
mod numbers;

pub use numbers::Numbers;

/// The result of a check.
pub type Outcome = Result<(), libtest_mimic::Failed>;
