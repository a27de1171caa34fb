//! Golden-ratio operations, one C function for each function of `srt`.
//!
//! Names, formulas and tolerance classes are those of `docs/srt.md`. Operands are handles of tensors, and results new ones.

pub mod evolver;
pub mod exact;
pub mod golden_exact;
pub mod lattice;
pub mod norms;
pub mod phases;
pub mod products;
pub mod ramp;
pub mod symbolic;
pub mod values;

use super::arguments::out;
use super::error::Result;
use super::guard;
use super::tensor::give_all;

/// The golden ratio phi = (1 + sqrt(5))/2.
pub const SV_SRT_PHI: f64 = 1.618033988749895;
/// 1/phi.
pub const SV_SRT_INVERSE_PHI: f64 = 0.6180339887498949;
/// 1/phi^2.
pub const SV_SRT_INVERSE_PHI_SQUARED: f64 = 0.38196601125010515;
/// The square root of 5.
pub const SV_SRT_SQRT5: f64 = 2.23606797749979;
/// The natural logarithm of phi.
pub const SV_SRT_LN_PHI: f64 = 0.48121182505960347;
/// e^pi - pi.
pub const SV_SRT_ESTAR: f64 = 19.999099979189477;
/// q = (2 phi + e/(2 phi^2)) / (phi^4 (e^pi - pi)).
pub const SV_SRT_Q_DEFICIT: f64 = 0.027395146919696148;
/// 1/sqrt(1 + phi^2).
pub const SV_SRT_PROJECTION_NORM: f64 = 0.5257311121191336;
/// The largest bound of snapping, 2^20.
pub const SV_SRT_LARGEST_SNAP_BOUND: i64 = 1048576;

/// Runs the body of a function whose result is a number, and writes it.
///
/// # Safety
///
/// `result` is NULL or points to a `T` that this call alone uses.
unsafe fn number<T>(function: &'static str, result: *mut T, work: impl FnOnce() -> Result<T>) -> i32 {
    guard::call(function, || {
        let result = out(result, "result")?;
        result.write(work()?);
        Ok(())
    })
}
