//! The active-inference classifier on the CPU: golden numbers, the inequality of the free energy, training, model files and
//! bad input.

#[path = "../cases/classifier.rs"]
mod cases;
mod files;
mod golden;
mod inputs;
mod training;

use cases::{assert_close, sample};
use selvedge::Device;
use selvedge::classifier::Classifier;

/// The default network with hashed weights and biases of 0.
fn hashed_classifier() -> Classifier {
    cases::hashed_classifier(&Device::cpu())
}
