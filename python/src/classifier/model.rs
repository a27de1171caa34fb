//! `selvedge.classifier.Classifier`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use pyo3::prelude::*;
use selvedge::classifier::{self as library, ClassifierOptions, TrainingOptions};
use selvedge::{Device, Tensor};

use super::generative::PyGenerativeModel;
use super::reports::{Classification, ClassificationBatch, EpochReport, Evaluation, TrainingReport};
use crate::arguments::{DeviceArgument, InRange, TensorArgument};
use crate::device::{PyDevice, device_or_default};
use crate::error::{Result, invalid, raised};
use crate::tensor::{PyTensor, new_tensor};

/// Returns the numbers of a list.
pub fn numbers(list: Vec<InRange<f64>>) -> Vec<f64> {
    list.into_iter().map(|number| number.0).collect()
}

/// A recognition network whose softmax is the posterior of the classes, with a prior and the free energy of each decision.
///
/// `Classifier(features=100, hidden=(64, 32, 16), prior=DEFAULT_PRIOR, *, fuse_prior=False, dropout=0.2, seed=0, device=None)` has a class
/// for each number of the prior. Rows are f32 of shape (rows, features); arrays are copied to the device. docs/classifier.md has the model.
///
/// >>> data = sv.classifier.synthetic(200, seed=1, device="cpu")
/// >>> classifier = sv.classifier.Classifier(device="cpu")
/// >>> report = classifier.train(data.features, data.labels, epochs=2)
/// >>> report.training_rows, report.validation_rows, len(report.epochs)
/// (160, 40, 2)
/// >>> classifier.classify_batch(data.features).posterior.shape
/// (200, 5)
#[pyclass(name = "Classifier", module = "selvedge.classifier", frozen)]
pub struct PyClassifier {
    classifier: Mutex<library::Classifier>,
    device: Device,
    /// The thread that trains, whose callback may not use the classifier.
    training: Mutex<Option<ThreadId>>,
}

/// Ends the mark of a training.
struct Training<'a>(&'a PyClassifier);

impl Drop for Training<'_> {
    fn drop(&mut self) {
        *self.0.training() = None;
    }
}

impl PyClassifier {
    fn of(classifier: library::Classifier) -> PyClassifier {
        let device = classifier.device();
        PyClassifier { classifier: Mutex::new(classifier), device, training: Mutex::new(None) }
    }

    fn training(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.training.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the classifier while other threads of Python run.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut library::Classifier) -> selvedge::Result<T> + Send,
    ) -> Result<T> {
        if *self.training() == Some(thread::current().id()) {
            let wanted = "a callback that does not use the classifier in training";
            return Err(invalid("Classifier", "a use of the classifier within its callback", wanted).into());
        }
        Ok(py.detach(|| work(&mut self.classifier.lock().unwrap_or_else(PoisonError::into_inner)))?)
    }

    /// Returns a tensor as it is, and an array on the device of the classifier.
    fn rows(&self, data: &Bound<'_, PyAny>) -> Result<Tensor> {
        match data.cast::<PyTensor>() {
            Ok(tensor) => Ok(tensor.get().tensor(data.py())),
            Err(_) => new_tensor(data, None, Some(self.device)),
        }
    }
}

#[pymethods]
impl PyClassifier {
    #[new]
    #[pyo3(
        signature = (features=InRange(100), hidden=None, prior=None, *, fuse_prior=false, dropout=InRange(0.2), seed=InRange(0), device=None),
        text_signature = "(features=100, hidden=(64, 32, 16), prior=None, *, fuse_prior=False, dropout=0.2, seed=0, device=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "the options of a classifier")]
    fn new(
        py: Python<'_>,
        features: InRange<usize>,
        hidden: Option<Vec<InRange<usize>>>,
        prior: Option<Vec<InRange<f64>>>,
        fuse_prior: bool,
        dropout: InRange<f64>,
        seed: InRange<u64>,
        device: Option<DeviceArgument>,
    ) -> Result<PyClassifier> {
        let mut options = ClassifierOptions {
            features: features.0,
            fuse_prior,
            dropout: dropout.0,
            seed: seed.0,
            ..ClassifierOptions::default()
        };
        if let Some(hidden) = hidden {
            options.hidden = hidden.into_iter().map(|width| width.0).collect();
        }
        if let Some(prior) = prior {
            options.prior = numbers(prior);
        }
        let device = device_or_default(device);
        Ok(PyClassifier::of(py.detach(|| library::Classifier::new(&options, &device))?))
    }

    /// A classifier of a file of `save`.
    #[staticmethod]
    #[pyo3(signature = (path, *, device=None))]
    fn load(py: Python<'_>, path: PathBuf, device: Option<DeviceArgument>) -> Result<PyClassifier> {
        let device = device_or_default(device);
        Ok(PyClassifier::of(py.detach(|| library::Classifier::load(path, &device))?))
    }

    /// Writes the weights, the prior, the options and the generative model to a file, which appears when it is whole.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<()> {
        self.with(py, |classifier| classifier.save(path))
    }

    /// Trains on rows (rows, features) with integer labels (rows,) by Adam on the cross entropy. The classifier has the weights of the
    /// epoch with the least validation loss in the end.
    ///
    /// `callback(report)` gets the `EpochReport` of each epoch. An exception of it and an interrupt end the training, and the weights are
    /// the first ones then.
    #[pyo3(
        signature = (features, labels, *, epochs=InRange(100), batch_size=InRange(64), lr=InRange(1e-3), patience=InRange(10), validation=InRange(0.2), seed=InRange(0), callback=None),
        text_signature = "($self, features, labels, *, epochs=100, batch_size=64, lr=0.001, patience=10, validation=0.2, seed=0, callback=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "the options of a training")]
    fn train(
        &self,
        py: Python<'_>,
        features: &Bound<'_, PyAny>,
        labels: &Bound<'_, PyAny>,
        epochs: InRange<usize>,
        batch_size: InRange<usize>,
        lr: InRange<f64>,
        patience: InRange<usize>,
        validation: InRange<f64>,
        seed: InRange<u64>,
        callback: Option<Py<PyAny>>,
    ) -> Result<TrainingReport> {
        let (features, labels) = (self.rows(features)?, self.rows(labels)?);
        let options = TrainingOptions {
            epochs: epochs.0,
            batch: batch_size.0,
            learning_rate: lr.0,
            patience: patience.0,
            validation: validation.0,
            seed: seed.0,
        };
        let report = self.with(py, |classifier| {
            *self.training() = Some(thread::current().id());
            let _training = Training(self);
            classifier.try_train(&features, &labels, &options, |epoch| {
                Python::attach(|py| {
                    py.check_signals()?;
                    match &callback {
                        Some(callback) => callback.call1(py, (EpochReport::from(*epoch),)).map(drop),
                        None => Ok(()),
                    }
                })
                .map_err(|exception: PyErr| raised(exception))
            })
        })?;
        Ok(report.into())
    }

    /// Classifies one row of features, in less time than a batch of one row takes.
    fn classify(&self, py: Python<'_>, features: &Bound<'_, PyAny>) -> Result<Classification> {
        let row = new_tensor(features, Some(selvedge::DType::F32), Some(Device::cpu()))?;
        Ok(self.with(py, |classifier| classifier.classify(&row.to_vec::<f32>()?))?.into())
    }

    /// Classifies rows (rows, features).
    fn classify_batch(&self, py: Python<'_>, features: &Bound<'_, PyAny>) -> Result<ClassificationBatch> {
        let features = self.rows(features)?;
        Ok(self.with(py, |classifier| classifier.classify_batch(&features))?.into())
    }

    /// The logits (rows, classes) of rows (rows, features).
    fn logits(&self, py: Python<'_>, features: &Bound<'_, PyAny>) -> Result<PyTensor> {
        let features = self.rows(features)?;
        Ok(self.with(py, |classifier| classifier.logits(&features))?.into())
    }

    /// Classifies rows (rows, features) and compares them with integer labels (rows,).
    fn evaluate(
        &self,
        py: Python<'_>,
        features: &Bound<'_, PyAny>,
        labels: &Bound<'_, PyAny>,
    ) -> Result<Evaluation> {
        let (features, labels) = (self.rows(features)?, self.rows(labels)?);
        Ok(self.with(py, |classifier| classifier.evaluate(&features, &labels))?.into())
    }

    /// The prior of the classes, which can be set.
    #[getter]
    fn prior(&self, py: Python<'_>) -> Result<Vec<f64>> {
        self.with(py, |classifier| Ok(classifier.prior().to_vec()))
    }

    #[setter]
    fn set_prior(&self, py: Python<'_>, prior: Vec<InRange<f64>>) -> Result<()> {
        self.with(py, |classifier| classifier.set_prior(&numbers(prior)))
    }

    /// Makes the prior 0.9 of itself plus 0.1 of the observed probabilities of the classes, normalised.
    fn learn_prior(&self, py: Python<'_>, observed: Vec<InRange<f64>>) -> Result<()> {
        self.with(py, |classifier| classifier.learn_prior(&numbers(observed)))
    }

    /// True if beliefs are the posterior times the prior, normalised. It can be set.
    #[getter]
    fn fuse_prior(&self, py: Python<'_>) -> Result<bool> {
        self.with(py, |classifier| Ok(classifier.fuses_prior()))
    }

    #[setter]
    fn set_fuse_prior(&self, py: Python<'_>, fuse_prior: bool) -> Result<()> {
        self.with(py, |classifier| {
            classifier.set_fuse_prior(fuse_prior);
            Ok(())
        })
    }

    /// The names of the classes, or an empty list. They can be set.
    #[getter]
    fn class_names(&self, py: Python<'_>) -> Result<Vec<String>> {
        self.with(py, |classifier| Ok(classifier.class_names().to_vec()))
    }

    #[setter]
    fn set_class_names(&self, py: Python<'_>, names: Vec<String>) -> Result<()> {
        self.with(py, |classifier| classifier.set_class_names(names))
    }

    /// The generative model, with which free energies have a likelihood, or None. It can be set.
    #[getter]
    fn generative_model(&self, py: Python<'_>) -> Result<Option<PyGenerativeModel>> {
        self.with(py, |classifier| Ok(classifier.generative_model().cloned().map(PyGenerativeModel)))
    }

    #[setter]
    fn set_generative_model(
        &self,
        py: Python<'_>,
        model: Option<Bound<'_, PyGenerativeModel>>,
    ) -> Result<()> {
        let model = model.map(|model| model.get().0.clone());
        self.with(py, |classifier| classifier.set_generative_model(model.as_ref()))
    }

    /// The free energies of the last `HISTORY_LENGTH` rows.
    #[getter]
    fn free_energies(&self, py: Python<'_>) -> Result<Vec<f64>> {
        self.with(py, |classifier| Ok(classifier.free_energies()))
    }

    /// The weights by name.
    fn state_dict(&self, py: Python<'_>) -> Result<BTreeMap<String, PyTensor>> {
        let entries = self.with(py, |classifier| Ok(classifier.state_dict()))?;
        Ok(entries.into_iter().map(|(name, tensor)| (name, tensor.into())).collect())
    }

    /// Takes the weights of `state_dict`.
    fn load_state_dict(&self, py: Python<'_>, state_dict: BTreeMap<String, TensorArgument>) -> Result<()> {
        let entries: BTreeMap<String, Tensor> =
            state_dict.into_iter().map(|(name, tensor)| (name, tensor.0)).collect();
        self.with(py, |classifier| classifier.load_state_dict(&entries))
    }

    /// The widths of all layers, from the features to the classes.
    #[getter]
    fn widths(&self, py: Python<'_>) -> Result<Vec<usize>> {
        self.with(py, |classifier| Ok(classifier.widths()))
    }

    /// The number of features of a row.
    #[getter]
    fn features(&self, py: Python<'_>) -> Result<usize> {
        self.with(py, |classifier| Ok(classifier.features()))
    }

    /// The number of classes.
    #[getter]
    fn classes(&self, py: Python<'_>) -> Result<usize> {
        self.with(py, |classifier| Ok(classifier.classes()))
    }

    /// The number of weights.
    #[getter]
    fn parameter_count(&self, py: Python<'_>) -> Result<usize> {
        self.with(py, |classifier| Ok(classifier.parameter_count()))
    }

    /// The probability with which training drops an element behind a hidden layer.
    #[getter]
    fn dropout(&self, py: Python<'_>) -> Result<f64> {
        self.with(py, |classifier| Ok(classifier.dropout()))
    }

    /// The device of the weights.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.device)
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String> {
        Ok(format!("Classifier(widths={:?}, device={})", self.widths(py)?, self.device))
    }
}
