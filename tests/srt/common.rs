//! Tensors on the CPU and comparisons.

#[path = "../common/errors.rs"]
mod errors;

pub use errors::{assert_dtype_error, assert_invalid};
use selvedge::Complex;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

/// A tensor of this shape on the CPU.
pub fn tensor<T: selvedge::types::Element>(elements: &[T], shape: &[usize]) -> Tensor {
    Tensor::from_slice(elements, shape, &Device::cpu()).unwrap()
}

/// A vector of f64.
pub fn vector(elements: &[f64]) -> Tensor {
    tensor(elements, &[elements.len()])
}

/// The elements as f64, of complex tensors the real and the imaginary parts in turn.
pub fn numbers(tensor: &Tensor) -> Vec<f64> {
    let parts = if tensor.dtype().is_complex() { tensor.view_as_real().unwrap() } else { tensor.clone() };
    parts.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// Checks that all elements are within a relative distance. Wanted zeros and NaNs must be zeros and NaNs.
#[track_caller]
pub fn assert_close(tensor: &Tensor, wanted: &[f64], tolerance: f64) {
    let found = numbers(tensor);
    assert_eq!(found.len(), wanted.len(), "{found:?}, wanted {wanted:?}");
    for (&x, &y) in found.iter().zip(wanted) {
        let is_close = (x - y).abs() <= tolerance * y.abs() || x == y || x.is_nan() && y.is_nan();
        assert!(is_close, "{found:?}, wanted {wanted:?}");
    }
}

/// As `assert_close`, for worked numbers: within 1e-12.
#[track_caller]
pub fn assert_worked(tensor: &Tensor, wanted: &[f64]) {
    assert_close(tensor, wanted, 1e-12);
}

/// The four dtypes of products and phases, with the tolerance of worked numbers.
pub const NUMBERS: [(DType, f64); 4] =
    [(DType::F64, 1e-12), (DType::C128, 1e-12), (DType::F32, 2e-6), (DType::C64, 2e-6)];

/// Real numbers as the parts that `numbers` gives for a dtype.
pub fn as_parts(real: &[f64], dtype: DType) -> Vec<f64> {
    if dtype.is_complex() { real.iter().flat_map(|&x| [x, 0.0]).collect() } else { real.to_vec() }
}

/// A reproducible sequence of numbers between -1 and 1.
pub fn sequence(count: usize, seed: u64) -> Vec<f64> {
    let number = |i| (selvedge::srt::noise_word(seed, i) >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
    (0..count as u64).map(number).collect()
}

/// Complex numbers of such a sequence.
pub fn complex_sequence(count: usize, seed: u64) -> Vec<Complex<f64>> {
    sequence(2 * count, seed).chunks_exact(2).map(|parts| Complex::new(parts[0], parts[1])).collect()
}
