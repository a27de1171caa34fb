//! Results of rows, evaluations and trainings.

use pyo3::prelude::*;
use selvedge::classifier as library;

use crate::tensor::PyTensor;

/// Classes that read fields or methods of a result of Rust.
macro_rules! reports {
    ($($(#[doc = $document:literal])* $name:ident { $($(#[doc = $field_document:literal])* $field:ident: $type:ty = |$report:ident| $value:expr;)* })*) => {
        $(
            $(#[doc = $document])*
            #[pyclass(module = "selvedge.classifier", frozen)]
            pub struct $name(library::$name);

            impl From<library::$name> for $name {
                fn from(report: library::$name) -> $name {
                    $name(report)
                }
            }

            #[pymethods]
            impl $name {
                $($(#[doc = $field_document])*
                #[getter]
                fn $field(&self) -> $type {
                    let $report = &self.0;
                    $value
                })*
            }
        )*

        /// Adds the classes to the module.
        pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_class::<$name>()?;)*
            Ok(())
        }
    };
}

reports! {
    /// The result of one row; `Classifier.classify` returns it.
    Classification {
        /// The class of the largest belief, the first of equal ones.
        class_index: usize = |found| found.class;
        /// The posterior of the recognition network, a number for each class.
        posterior: Vec<f64> = |found| found.posterior.clone();
        /// The posterior, or the posterior fused with the prior.
        beliefs: Vec<f64> = |found| found.beliefs.clone();
        /// The free energy.
        free_energy: f64 = |found| found.free_energy;
        /// The largest belief.
        confidence: f64 = |found| found.confidence;
    }
    /// The results of rows on the classifier's device; `Classifier.classify_batch` returns them.
    ClassificationBatch {
        /// The class of each row, i64 of shape (rows,).
        classes: PyTensor = |found| found.classes.clone().into();
        /// The posteriors of shape (rows, classes).
        posterior: PyTensor = |found| found.posterior.clone().into();
        /// The beliefs of shape (rows, classes).
        beliefs: PyTensor = |found| found.beliefs.clone().into();
        /// The free energies of shape (rows,).
        free_energy: PyTensor = |found| found.free_energy.clone().into();
        /// The largest beliefs of shape (rows,).
        confidence: PyTensor = |found| found.confidence.clone().into();
    }
    /// A confusion matrix and a calibration curve; `Classifier.evaluate` returns them.
    Evaluation {
        /// The counts: a row for each label, a column for each class that was found.
        confusion: Vec<Vec<u64>> = |found| found.confusion().to_vec();
        /// Ten bins of confidence, each the count of rows, the mean confidence and the part of right classes.
        calibration: Vec<(u64, f64, f64)> = |found| found.calibration().iter().map(|bin| (bin.count, bin.confidence, bin.accuracy)).collect();
        /// The number of rows.
        count: u64 = |found| found.count();
        /// The part of right classes; 0 without rows.
        accuracy: f64 = |found| found.accuracy();
        /// The expected calibration error.
        calibration_error: f64 = |found| found.calibration_error();
    }
    /// The course of an epoch.
    EpochReport {
        /// The epoch, from 1.
        epoch: usize = |report| report.epoch;
        /// The mean loss of the epoch's batches, with dropout.
        training_loss: f64 = |report| report.training_loss;
        /// The loss of the validation rows; without such rows, the training loss.
        validation_loss: f64 = |report| report.validation_loss;
        /// The part of right classes of the validation rows; None without such rows.
        validation_accuracy: Option<f64> = |report| report.validation_accuracy;
        /// True if the validation loss is the least so far.
        is_best: bool = |report| report.is_best;
    }
    /// The course of a training; `Classifier.train` returns it.
    TrainingReport {
        /// Every epoch that ran.
        epochs: Vec<EpochReport> = |report| report.epochs.iter().map(|&epoch| epoch.into()).collect();
        /// The epoch whose weights the classifier has now.
        best_epoch: usize = |report| report.best_epoch;
        /// True if the training ended before its last epoch.
        is_stopped_early: bool = |report| report.is_stopped_early;
        /// The rows that weights were trained on.
        training_rows: usize = |report| report.training_rows;
        /// The rows that were kept for validation.
        validation_rows: usize = |report| report.validation_rows;
        /// The classifier on the validation rows; without such rows, on the training rows.
        evaluation: Evaluation = |report| report.evaluation.clone().into();
        /// The indices of the rows of the evaluation, i64 of shape (rows,).
        evaluated_rows: PyTensor = |report| report.evaluated_rows.clone().into();
    }
}
