//! Rotary positions, and tokens drawn from the k largest logits.

use super::super::handle::{sv_generator, sv_tensor};
use super::super::tensor::random::generator;
use super::super::tensor::{give, tensor};
use super::give_of;
use crate::catalogue;

/// Rotates pairs of neighbouring features by the angle position base^(-2i/width), as in RoFormer. The last axis is the even
/// width, and the one before it the sequence, whose first position is `offset`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_rope_encoding(
    x: sv_tensor,
    offset: usize,
    base: f64,
    result: *mut sv_tensor,
) -> i32 {
    let operands = [(x, "x")];
    give_of("sv_rope_encoding", operands, result, &|[x]| catalogue::rope_encoding(x, offset, base))
}

/// Draws a token for each row of logits, as `SV_DTYPE_I64`: from softmax(logits / temperature) of the k largest. `logits` is a
/// vector or a matrix. A generator of 0 is that of the logits' device.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_top_k_sampling(
    logits: sv_tensor,
    k: usize,
    temperature: f64,
    generator: sv_generator,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_top_k_sampling", result, || {
        let logits = tensor(logits, "logits")?;
        let generator = self::generator(generator, &logits.device())?;
        Ok(catalogue::top_k_sampling(&logits, k, temperature, &generator)?)
    })
}
