//! The active-inference classifier: a recognition network whose softmax is the posterior of the classes, a prior, and the
//! variational free energy of each decision.
//!
//! | file | contents |
//! |---|---|
//! | `model` | [`Classifier`]: classification, prior learning, the history of free energies |
//! | `options` | [`ClassifierOptions`] and the checks of priors |
//! | `network` | the recognition network: linear layers, ReLU, dropout |
//! | `forward` | the pass of a batch, from features to decisions |
//! | `kernel` | the same in one launch, for the widths of the default network on CUDA devices |
//! | `inference` | [`free_energy`], [`fuse_prior`], [`learned_prior`] |
//! | `generative` | [`GenerativeModel`]: Gaussian classes, their likelihoods and the Bayes rule |
//! | `features` | checks of features and labels, which name the row |
//! | `history` | the ring of free energies |
//! | `training` | [`TrainingOptions`], [`TrainingReport`], the training loop |
//! | `evaluation` | [`Evaluation`]: the confusion matrix and the calibration curve |
//! | `file` | model files |
//! | `synthetic` | [`synthetic()`]: data with a known Bayes rule |
//!
//! With the posterior Q of an input o, the prior P, and in full mode the likelihoods p(o|c) of a generative model:
//!
//! ```text
//! F = Σ Q ln(Q / P)                        KL mode
//! F = Σ Q ln(Q / P) - Σ Q ln p(o|c)        full mode; at least -ln p(o)
//! ```
//!
//! Beliefs are Q, or Q P / Σ Q P with [`Classifier::set_fuse_prior`]. The class is the one of the largest belief, the first of
//! equal ones.
//!
//! Invariants: rows are classified alone, so a row's result does not depend on its batch but for the rounding of products
//! (the one launch sums in one order, so its bits do not depend on the batch either);
//! a training from one seed gives the same weights on one device each time.
//!
//! Tests: `tests/classifier`; of the one launch `tests/fake/emulated/classifier.rs` and `tests/gpu/classifier.rs`.
//!
//! ```
//! use selvedge::Device;
//! use selvedge::classifier::{Classifier, ClassifierOptions};
//! let options = ClassifierOptions { features: 3, prior: vec![0.5, 0.5], ..ClassifierOptions::default() };
//! let mut classifier = Classifier::new(&options, &Device::best())?;
//! let found = classifier.classify(&[0.1, -0.4, 0.9])?;
//! assert!(found.class < 2 && found.free_energy >= 0.0);
//! assert!((found.posterior.iter().sum::<f64>() - 1.0).abs() < 1e-6);
//! assert!(classifier.classify(&[0.1, f32::NAN, 0.9]).is_err());
//! # Ok::<(), selvedge::Error>(())
//! ```

mod evaluation;
mod features;
mod file;
mod forward;
mod generative;
mod history;
mod inference;
mod kernel;
mod model;
mod network;
mod options;
mod synthetic;
mod training;

pub use evaluation::{CalibrationBin, Evaluation};
pub use forward::ClassificationBatch;
pub use generative::GenerativeModel;
pub use history::HISTORY_LENGTH;
pub use inference::{free_energy, fuse_prior, learned_prior};
pub use model::{Classification, Classifier};
pub use options::{ClassifierOptions, DEFAULT_PRIOR};
pub use synthetic::{SYNTHETIC_DEVIATION, SYNTHETIC_FEATURES, SyntheticData, synthetic};
pub use training::{EpochReport, TrainingOptions, TrainingReport};
