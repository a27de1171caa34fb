//! Golden brackets: the commutator A B - B A/φ and the anticommutator A B + B A/φ.
//!
//! Both products are complete before they are added. On CUDA devices, and in [`ProductMode::Exact`] everywhere, each real part of
//! the result is fma(±1/φ, ba, ab).
//!
//! | device and size | launches |
//! |---|---|
//! | CUDA, n ≤ [`MAX_BATCHED`] | A, B and A in one buffer; the batch (A B, B A) as one product; the sum |
//! | otherwise | B A; A B, whose epilogue adds B A times the scale |
//!
//! A product of so small matrices leaves most multiprocessors of a GPU idle, so two at a time take as long as one. In
//! [`ProductMode::Exact`] both forms have the same bits. In [`ProductMode::Fast`] they have if the engine's order of
//! additions does not depend on the batch.
//!
//! Tests: in this file, `tests/srt/products.rs`, `tests/fake/srt.rs`, `tests/gpu/srt.rs`.

use std::sync::LazyLock;

use super::operands::{joined, parts};
use super::products::{Pair, ProductMode, add_scaled};
use crate::error::{Error, Result};
use crate::tensor::{Fused, Tensor};

/// The size of the largest matrices whose two products are one batch on CUDA devices.
const MAX_BATCHED: usize = 256;

/// Of the parts of two matrices, broadcast to three: the first, the second and the first matrix.
static THREE: LazyLock<Fused<2>> =
    LazyLock::new(|| Fused::new(|[a, b]| a.graph().index(0).eq(1).choose(b, a)));

/// Returns A B + scale · B A of square matrices of one size.
///
/// # Errors
///
/// [`Error::DTypeMismatch`], [`Error::InvalidArgument`] with both shapes, [`Error::DeviceMismatch`].
pub(super) fn golden_bracket(
    operation: &'static str,
    a: &Tensor,
    b: &Tensor,
    scale: f64,
    mode: ProductMode,
) -> Result<Tensor> {
    let first = Pair::plain(operation, mode, a, b)?;
    let is_square = |x: &Tensor| x.shape()[0] == x.shape()[1];
    if !(is_square(a) && is_square(b)) {
        let found = format!("shapes {} and {}", a.shape(), b.shape());
        return Err(Error::invalid(operation, found, "square matrices of one size"));
    }
    let is_batched = (1..=MAX_BATCHED).contains(&a.shape()[0]);
    if is_batched && !a.device().is_cpu() && a.device() == b.device() {
        return batched(operation, a, b, scale, mode);
    }
    first.plus_scaled(scale, Pair::plain(operation, mode, b, a)?.product()?)
}

/// As [`golden_bracket`], with both products as one batch.
fn batched(operation: &'static str, a: &Tensor, b: &Tensor, scale: f64, mode: ProductMode) -> Result<Tensor> {
    let (a_parts, b_parts) = (parts(a)?, parts(b)?);
    let mut shape = vec![3];
    shape.extend_from_slice(a_parts.shape());
    let three = joined(&THREE.run([&a_parts.expand(&shape)?, &b_parts.expand(&shape)?])?, a.dtype())?;
    let products =
        Pair::batch(operation, mode, &three.narrow(0, 0, 2)?, &three.narrow(0, 1, 2)?)?.product()?;
    add_scaled(&products.select(0, 1)?, scale, &products.select(0, 0)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srt::{INVERSE_PHI, noise_word};
    use crate::tensor::Device;
    use crate::types::DType;

    /// Numbers between -1 and 1, as complex ones in pairs.
    fn matrix(n: usize, dtype: DType, seed: u64) -> Tensor {
        let shape: &[usize] = if dtype.is_complex() { &[n, n, 2] } else { &[n, n, 1] };
        let number = |i| (noise_word(seed, i) >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        let numbers: Vec<f64> = (0..shape.iter().product::<usize>() as u64).map(number).collect();
        let parts = Tensor::from_slice(&numbers, shape, &Device::cpu()).unwrap().cast(dtype.part()).unwrap();
        joined(&parts, dtype).unwrap()
    }

    #[test]
    fn batched_brackets_have_the_bits_of_two_products() {
        for dtype in [DType::F32, DType::F64, DType::C64, DType::C128] {
            for n in [1, 2, 7, 33] {
                let (a, b) = (matrix(n, dtype, 1), matrix(n, dtype, 2));
                for (a, b) in [(&a, &b), (&a.t().unwrap(), &b), (&a, &a)] {
                    for scale in [INVERSE_PHI, -INVERSE_PHI] {
                        let mode = ProductMode::Exact;
                        let two = golden_bracket("test", a, b, scale, mode).unwrap();
                        let one = batched("test", a, b, scale, mode).unwrap();
                        let bits = |x: &Tensor| x.to_bytes().unwrap();
                        assert_eq!(bits(&one), bits(&two), "{dtype}, {n}");
                    }
                }
            }
        }
    }
}
