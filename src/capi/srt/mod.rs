//! Golden-ratio operations, one C function for each function of `srt`. Expressions are left to `sv_fused_...`.
//!
//! Names, formulas and tolerance classes are those of `docs/srt.md`. Operands are handles of tensors, and results new ones.

pub mod evolver;
pub mod exact;
pub mod lattice;
pub mod norms;
pub mod phases;
pub mod products;
pub mod values;

use super::arguments::out;
use super::error::Result;
use super::guard;
use super::tensor::give_all;

/// Runs the body of a function whose result is a number, and writes it.
///
/// # Safety
///
/// `result` is NULL or points to a `T` that this call alone uses.
unsafe fn number<T>(function: &'static str, result: *mut T, work: impl FnOnce() -> Result<T>) -> i32 {
    guard::call(function, || {
        // SAFETY: as the caller vouches.
        let result = unsafe { out(result, "result")? };
        result.write(work()?);
        Ok(())
    })
}
