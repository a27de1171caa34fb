//! The active-inference classifier on the CPU: golden numbers, the inequality of the free energy, training, model files and
//! bad input.

mod files;
mod golden;
mod inputs;
mod training;

use std::collections::BTreeMap;

use selvedge::burst::pcg;
use selvedge::classifier::{Classifier, ClassifierOptions};
use selvedge::{Device, Tensor};

/// The hash of the golden numbers in [-1, 1].
fn hashed(i: u32, j: u32) -> f64 {
    2.0 * f64::from(pcg(i ^ pcg(j))) / 2f64.powi(32) - 1.0
}

/// The default network with hashed weights and biases of 0.
fn hashed_classifier() -> Classifier {
    let device = Device::cpu();
    let mut classifier = Classifier::new(&ClassifierOptions::default(), &device).unwrap();
    let mut entries = BTreeMap::new();
    let widths = classifier.widths();
    for (layer, pair) in widths.windows(2).enumerate() {
        let [inputs, outputs] = [pair[0], pair[1]];
        let bound = (2.0 / inputs as f64).sqrt();
        let weight: Vec<f32> = (0..(inputs * outputs) as u32)
            .map(|at| (bound * hashed(at, 200 + layer as u32)) as f32)
            .collect();
        let weight = Tensor::from_vec(weight, &[inputs, outputs], &device).unwrap();
        entries.insert(format!("layers.{layer}.weight"), weight);
        let bias = Tensor::from_vec(vec![0.0f32; outputs], &[outputs], &device).unwrap();
        entries.insert(format!("layers.{layer}.bias"), bias);
    }
    classifier.load_state_dict(&entries).unwrap();
    classifier
}

/// The input of a sample of the golden numbers.
fn sample(number: u32) -> Vec<f32> {
    (0..100).map(|feature| hashed(feature, 300 + number) as f32).collect()
}

#[track_caller]
fn assert_close(found: &[f64], wanted: &[f64], tolerance: f64) {
    assert_eq!(found.len(), wanted.len());
    let is_close = found.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= tolerance);
    assert!(is_close, "found {found:?}; wanted {wanted:?}");
}
