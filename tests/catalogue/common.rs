//! Tensors on the CPU and comparisons.

#[path = "../common/errors.rs"]
mod errors;

pub use errors::{assert_dtype_error, assert_invalid};
use selvedge::types::{DType, Element};
use selvedge::{Device, Tensor};

pub use crate::cases::PRIOR;

/// Lengths around a block of 256 threads.
pub const LENGTHS: [usize; 5] = [1, 255, 256, 257, 1000];

/// A length of many blocks.
pub const LARGE: usize = 1_000_000;

/// The dtypes, with a tolerance for sums of some hundred terms.
pub const FLOATS: [(DType, f64); 4] =
    [(DType::F64, 1e-11), (DType::F32, 1e-5), (DType::F16, 4e-3), (DType::BF16, 3e-2)];

pub fn tensor<T: Element>(elements: &[T], shape: &[usize]) -> Tensor {
    Tensor::from_slice(elements, shape, &Device::cpu()).unwrap()
}

pub fn vector<T: Element>(elements: &[T]) -> Tensor {
    tensor(elements, &[elements.len()])
}

pub fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.cast(DType::F64).unwrap().to_vec().unwrap()
}

pub fn number(tensor: &Tensor) -> f64 {
    let numbers = numbers(tensor);
    assert_eq!(tensor.rank(), 0, "a tensor of shape {}", tensor.shape());
    numbers[0]
}

/// Checks elements within a distance relative to the larger of 1 and the wanted number.
#[track_caller]
pub fn assert_close(found: &[f64], wanted: &[f64], tolerance: f64) {
    assert_eq!(found.len(), wanted.len());
    for (at, (x, y)) in found.iter().zip(wanted).enumerate() {
        assert!((x - y).abs() <= tolerance * y.abs().max(1.0), "element {at}: {x} instead of {y}");
    }
}

/// A hash of two numbers, as in the specification.
fn hash(i: u32, j: u32) -> u32 {
    fn pcg(x: u32) -> u32 {
        let state = x.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
        (word >> 22) ^ word
    }
    pcg(i ^ pcg(j))
}

/// Reproducible numbers from 0 to below 1.
pub fn uniform(count: usize, seed: u32) -> Vec<f64> {
    (0..count as u32).map(|i| f64::from(hash(i, seed)) / 4_294_967_296.0).collect()
}

/// Reproducible probabilities with a sum of 1, and zeros among them.
pub fn probabilities(count: usize, seed: u32) -> Vec<f64> {
    let mut weights = uniform(count, seed);
    weights.iter_mut().skip(3).step_by(7).for_each(|weight| *weight = 0.0);
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}
