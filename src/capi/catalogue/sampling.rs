//! Rotary positions, and tokens drawn from the k largest logits.

use super::super::tensor::random::generator;
use super::super::tensor::{give, tensor};
use super::give_of;
use crate::catalogue;

/// Rotates pairs of neighbouring features by the angle position base^(-2i/width), as in RoFormer. The last axis is the even
/// width, and the one before it the sequence, whose first position is `offset`.
///
/// The caller owns one reference to `*result`. Any thread may call it.
///
/// # Safety
///
/// `result` points to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_rope_encoding(x: u64, offset: usize, base: f64, result: *mut u64) -> i32 {
    let operands = [(x, "x")];
    // SAFETY: as the caller vouches.
    unsafe { give_of("sv_rope_encoding", operands, result, &|[x]| catalogue::rope_encoding(x, offset, base)) }
}

/// Draws a token for each row of logits, as `SV_DTYPE_I64`: from softmax(logits / temperature) of the k largest. `logits` is a
/// vector or a matrix. A generator of 0 is that of the logits' device.
///
/// The caller owns one reference to `*result`. Any thread may call it; it waits for the device.
///
/// # Safety
///
/// `result` points to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_top_k_sampling(
    logits: u64,
    k: usize,
    temperature: f64,
    generator: u64,
    result: *mut u64,
) -> i32 {
    // SAFETY: as the caller vouches.
    unsafe {
        give("sv_top_k_sampling", result, || {
            let logits = tensor(logits, "logits")?;
            let generator = self::generator(generator, &logits.device())?;
            Ok(catalogue::top_k_sampling(&logits, k, temperature, &generator)?)
        })
    }
}
