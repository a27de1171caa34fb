//! Exact arithmetic in Q(φ) and Z\[φ\]: φ² = φ + 1, so a + bφ is closed under +, -, · and, in Q(φ), under /.
//!
//! ```text
//! (a₁, b₁)(a₂, b₂) = (a₁a₂ + b₁b₂, a₁b₂ + a₂b₁ + b₁b₂)
//! conjugate = (a + b, -b)     norm N = a² + ab - b²     trace = 2a + b     inverse = conjugate / N
//! φⁿ = (F(n-1), F(n))         √5 = (-1, 2)
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `rational` | `Rational`, reduced fractions of i128 |
//! | `golden_exact` | `GoldenExact`, a + bφ of rationals |
//! | `golden_integer` | `GoldenInteger`, a + bφ of i64 |
//! | `golden_tensor` | `GoldenTensor`, batches of it on any device |
//! | `wide` | integers of any size, for comparisons and roundings that must not overflow |
//!
//! Tests: `tests/srt/exact.rs`.

mod golden_exact;
mod golden_integer;
mod golden_tensor;
mod rational;
mod wide;

pub use golden_exact::GoldenExact;
pub use golden_integer::GoldenInteger;
pub use golden_tensor::GoldenTensor;
pub(super) use golden_tensor::{sum, value};
pub use rational::Rational;
