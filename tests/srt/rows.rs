//! Rows of eight numbers for the tests of E8 and of the cones.

use selvedge::tensor::{Device, Tensor};

pub type Row = [f64; 8];

pub fn tensor(rows: &[Row]) -> Tensor {
    Tensor::from_vec(rows.concat(), &[rows.len(), 8], &Device::cpu()).unwrap()
}

pub fn rows(tensor: &Tensor) -> Vec<Row> {
    assert_eq!(tensor.shape().last(), Some(&8));
    tensor.to_vec::<f64>().unwrap().chunks(8).map(|row| row.try_into().unwrap()).collect()
}

/// Uniform rows between `-limit` and `limit`, by SplitMix64.
pub fn random(seed: u64, count: usize, limit: f64) -> Vec<Row> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ z >> 31) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| std::array::from_fn(|_| next() * limit)).collect()
}

pub fn dot(a: &Row, b: &Row) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub fn distance(a: &Row, b: &Row) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Fails unless all numbers are equal up to `tolerance`, relative to the larger of 1 and the wanted number.
pub fn assert_close(found: &[f64], wanted: &[f64], tolerance: f64) {
    assert_eq!(found.len(), wanted.len());
    for (one, other) in found.iter().zip(wanted) {
        assert!((one - other).abs() <= tolerance * other.abs().max(1.0), "{found:?} instead of {wanted:?}");
    }
}
