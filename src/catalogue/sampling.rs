//! Functions of language models that the tensor API lacks: rotary positions, and tokens drawn from the k largest logits.
//!
//! Tests: `tests/catalogue/sampling.rs`.

use super::operands::{check_floats, check_positive, computed, last_size, wide};
use crate::error::{Error, Result};
use crate::tensor::{Generator, Tensor, fuse};
use crate::types::DType;

/// Rotates pairs of neighbouring features (2i, 2i + 1) by the angle position · base^(-2i/width), as in RoFormer.
///
/// The last dimension of `x` is the width, which is even, and the one before it the sequence, whose first position is `offset`.
/// Angles are computed in f64.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for elements that are not floats; [`Error::InvalidArgument`] for fewer than two dimensions, an odd
/// width or one of 0, and a base that is not above 0; errors of memory.
pub fn rope_encoding(x: &Tensor, offset: usize, base: f64) -> Result<Tensor> {
    const OPERATION: &str = "rope_encoding";
    check_floats(OPERATION, &[x])?;
    check_positive(OPERATION, "base", base)?;
    let (length, width) = match x.shape()[..] {
        [.., length, width] if width > 0 && width % 2 == 0 => (length, width),
        _ => {
            let found = format!("x of shape {}", x.shape());
            return Err(Error::invalid(OPERATION, found, "a sequence of rows of an even width"));
        }
    };
    let device = x.device();
    let frequencies: Vec<f64> = (0..width / 2).map(|i| base.powf(-2.0 * i as f64 / width as f64)).collect();
    let frequencies = Tensor::from_vec(frequencies, &[width / 2, 1], &device)?;
    let positions: Vec<f64> =
        (offset..offset.saturating_add(length)).map(|position| position as f64).collect();
    let positions = Tensor::from_vec(positions, &[length, 1, 1], &device)?;
    let angles = positions.mul(&frequencies)?;
    let (cosine, sine) = (angles.cos()?.cast(computed(x.dtype()))?, angles.sin()?.cast(computed(x.dtype()))?);
    let signs = Tensor::new([-1.0f32, 1.0], &device)?.cast(computed(x.dtype()))?;
    let pairs = x.unflatten(-1, &[width as isize / 2, 2])?;
    let rotated =
        fuse((&pairs, &pairs.flip(&[-1])?, &cosine, &sine, &signs), |[x, swapped, cosine, sine, sign]| {
            (wide(x) * cosine + wide(swapped) * (sign * sine)).cast(x.dtype())
        })?;
    rotated.flatten(-2, -1)
}

/// Draws a token for each row of logits as i64: from softmax(logits / temperature) of the k largest, without the last dimension.
///
/// `logits` is a vector, or a matrix of rows.
///
/// ```
/// use selvedge::catalogue::top_k_sampling;
/// use selvedge::tensor::Generator;
/// use selvedge::{Device, Tensor};
/// let logits = Tensor::new([[900.0f32, 1.0, 2.0], [0.0, -5.0, 7.0]], &Device::cpu())?;
/// let tokens = top_k_sampling(&logits, 1, 1.0, &Generator::new(1))?;
/// assert_eq!(tokens.to_vec::<i64>()?, [0, 2]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for logits that are not floats; [`Error::InvalidArgument`] for another number of dimensions, a k of
/// 0 or above the number of tokens, a temperature that is not above 0, and a row whose largest logit is NaN or infinite;
/// errors of memory.
pub fn top_k_sampling(logits: &Tensor, k: usize, temperature: f64, generator: &Generator) -> Result<Tensor> {
    const OPERATION: &str = "top_k_sampling";
    check_floats(OPERATION, &[logits])?;
    let tokens = last_size(OPERATION, "logits", logits)?;
    if !matches!(logits.rank(), 1 | 2) {
        let found = format!("logits of shape {}", logits.shape());
        return Err(Error::invalid(OPERATION, found, "a vector or a matrix of rows"));
    }
    if k == 0 || k > tokens {
        return Err(Error::invalid(
            OPERATION,
            format!("k = {k}"),
            format!("1 to {tokens}, the number of tokens"),
        ));
    }
    check_positive(OPERATION, "temperature", temperature)?;
    let (values, candidates) = logits.topk(k, -1, true)?;
    let probabilities = values.cast(DType::F64)?.div(temperature)?.softmax(-1)?;
    let drawn = generator.multinomial(&probabilities, 1, true)?;
    candidates.gather(-1, &drawn)?.squeeze(-1)
}
