//! Training of a classifier.

use super::evaluation::Evaluation;
use super::features::{check_features, checked_labels};
use super::model::Classifier;
use super::network::Network;
use crate::error::{Error, Result};
use crate::nn::{Adam, CrossEntropyOptions, Module, Optimizer, Variable, cross_entropy, no_grad};
use crate::tensor::{Generator, Tensor};
use crate::types::DType;

const OPERATION: &str = "train";

/// The options of [`Classifier::train`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainingOptions {
    /// The most epochs: 100.
    pub epochs: usize,
    /// The rows of a batch: 64.
    pub batch: usize,
    /// The learning rate of Adam: 1e-3.
    pub learning_rate: f64,
    /// The epochs without a better validation loss after which the training ends: 10.
    pub patience: usize,
    /// The part of the rows that is kept for validation: 0.2.
    pub validation: f64,
    /// The seed of the split, the order of rows and dropout: 0.
    pub seed: u64,
}

impl Default for TrainingOptions {
    fn default() -> Self {
        TrainingOptions {
            epochs: 100,
            batch: 64,
            learning_rate: 1e-3,
            patience: 10,
            validation: 0.2,
            seed: 0,
        }
    }
}

/// The course of an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EpochReport {
    /// The epoch, from 1.
    pub epoch: usize,
    /// The mean loss of the epoch's batches, with dropout.
    pub training_loss: f64,
    /// The loss of the validation rows; without such rows, the training loss.
    pub validation_loss: f64,
    /// The part of right classes of the validation rows, if there are any.
    pub validation_accuracy: Option<f64>,
    /// Set if the validation loss is the least so far.
    pub is_best: bool,
}

/// The course of a training.
#[derive(Debug, Clone)]
pub struct TrainingReport {
    /// Every epoch that ran.
    pub epochs: Vec<EpochReport>,
    /// The epoch whose weights the classifier has now.
    pub best_epoch: usize,
    /// Set if the training ended before its last epoch.
    pub is_stopped_early: bool,
    /// The rows that weights were trained on.
    pub training_rows: usize,
    /// The rows that were kept for validation.
    pub validation_rows: usize,
    /// The restored classifier on the validation rows; without such rows, on the training rows.
    pub evaluation: Evaluation,
    /// The indices of the rows of the evaluation, of i64 and of shape (rows).
    pub evaluated_rows: Tensor,
}

/// Rows with their labels.
struct Rows {
    features: Tensor,
    labels: Tensor,
}

impl Rows {
    fn count(&self) -> usize {
        self.labels.count()
    }

    fn select(&self, indices: &Tensor) -> Result<Rows> {
        let (features, labels) = (&self.features, &self.labels);
        Ok(Rows { features: features.index_select(0, indices)?, labels: labels.index_select(0, indices)? })
    }
}

impl TrainingOptions {
    fn check(&self) -> Result<()> {
        let refused = |found: String, wanted: &str| Err(Error::invalid(OPERATION, found, wanted));
        if self.epochs == 0 || self.batch == 0 || self.patience == 0 {
            let TrainingOptions { epochs, batch, patience, .. } = self;
            let found = format!("{epochs} epochs, a batch of {batch}, a patience of {patience}");
            return refused(found, "at least 1 of each");
        }
        if !(0.0..1.0).contains(&self.validation) {
            return refused(format!("a validation part of {}", self.validation), "one from 0 to below 1");
        }
        Ok(())
    }
}

impl Classifier {
    /// Trains the recognition network on rows with labels, by Adam on the cross entropy, and calls `observe` after each epoch.
    /// The weights are those of the epoch with the least validation loss in the end. The same data, options and first weights
    /// give the same weights.
    ///
    /// ```
    /// use selvedge::Device;
    /// use selvedge::classifier::{Classifier, ClassifierOptions, TrainingOptions, synthetic};
    /// let device = Device::cpu();
    /// let data = synthetic(200, 1, &device)?;
    /// let mut classifier = Classifier::new(&ClassifierOptions::default(), &device)?;
    /// let options = TrainingOptions { epochs: 2, ..TrainingOptions::default() };
    /// let report = classifier.train(&data.features, &data.labels, &options, |epoch| {
    ///     println!("epoch {}: loss {:.3}", epoch.epoch, epoch.validation_loss);
    /// })?;
    /// assert_eq!((report.training_rows, report.validation_rows, report.epochs.len()), (160, 40, 2));
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`evaluate`](Self::evaluate); [`Error::InvalidArgument`] for no rows to train on, for options out of range, and for a
    /// loss that is not finite. The weights are the first ones after an error.
    pub fn train(
        &mut self,
        features: &Tensor,
        labels: &Tensor,
        options: &TrainingOptions,
        mut observe: impl FnMut(&EpochReport),
    ) -> Result<TrainingReport> {
        self.try_train(features, labels, options, |epoch| {
            observe(epoch);
            Ok(())
        })
    }

    /// Trains as [`train`](Self::train). An error of `observe` ends the training and becomes its error.
    ///
    /// ```
    /// use selvedge::{Device, Error};
    /// use selvedge::classifier::{Classifier, ClassifierOptions, TrainingOptions, synthetic};
    /// let data = synthetic(100, 1, &Device::cpu())?;
    /// let mut classifier = Classifier::new(&ClassifierOptions::default(), &Device::cpu())?;
    /// let stopped = classifier.try_train(&data.features, &data.labels, &TrainingOptions::default(), |epoch| {
    ///     if epoch.epoch == 2 { Err(Error::ForkedProcess) } else { Ok(()) }
    /// });
    /// assert!(matches!(stopped, Err(Error::ForkedProcess)));
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`train`](Self::train); errors of `observe`. The weights are the first ones after an error.
    pub fn try_train(
        &mut self,
        features: &Tensor,
        labels: &Tensor,
        options: &TrainingOptions,
        observe: impl FnMut(&EpochReport) -> Result<()>,
    ) -> Result<TrainingReport> {
        options.check()?;
        check_features(OPERATION, features, self.features(), &self.device())?;
        let rows = features.shape().first().copied().unwrap_or(0);
        let labels = checked_labels(OPERATION, labels, rows, self.classes())?;
        let labels = Tensor::from_vec(labels, &[rows], &self.device())?;
        let validation_rows = (options.validation * rows as f64).floor() as usize;
        if rows == validation_rows {
            return Err(Error::invalid(OPERATION, format!("{rows} rows"), "at least one row to train on"));
        }
        let generator = self.network.restart_generator(options.seed).clone();
        let order = generator.permutation(rows, &self.device())?;
        let all = Rows { features: features.clone(), labels };
        let [for_validation, for_training] =
            [order.slice(0, ..validation_rows as isize)?, order.slice(0, validation_rows as isize..)?];
        let (validation, training) = (all.select(&for_validation)?, all.select(&for_training)?);

        self.clear_fused_pass();
        let first = self.network.state_dict();
        let mut fit = Fit { network: &mut self.network, generator, options, training, validation, observe };
        match fit.run() {
            Ok((epochs, best_epoch)) => {
                let Fit { training, validation, .. } = fit;
                let counts = (training.count(), validation.count());
                let (shown, evaluated_rows) = match validation.count() {
                    0 => (training, for_training),
                    _ => (validation, for_validation),
                };
                Ok(TrainingReport {
                    is_stopped_early: epochs.len() < options.epochs,
                    epochs,
                    best_epoch,
                    training_rows: counts.0,
                    validation_rows: counts.1,
                    evaluation: self.evaluate(&shown.features, &shown.labels)?,
                    evaluated_rows,
                })
            }
            Err(error) => {
                self.network.load_state_dict(&first)?;
                Err(error)
            }
        }
    }
}

/// A training in progress.
struct Fit<'a, Observe> {
    network: &'a mut Network,
    generator: Generator,
    options: &'a TrainingOptions,
    training: Rows,
    validation: Rows,
    observe: Observe,
}

impl<Observe: FnMut(&EpochReport) -> Result<()>> Fit<'_, Observe> {
    /// Returns the reports of the epochs and the best epoch, whose weights the network has then.
    fn run(&mut self) -> Result<(Vec<EpochReport>, usize)> {
        let mut optimizer = Adam::new(self.network.parameters(), self.options.learning_rate)?;
        let mut reports: Vec<EpochReport> = Vec::new();
        let mut best = (f64::INFINITY, 0, self.network.state_dict());
        for epoch in 1..=self.options.epochs {
            self.network.train();
            let trained = self.epoch(&mut optimizer);
            self.network.eval();
            let training_loss = trained?;
            let (validation_loss, validation_accuracy) = match self.validation.count() {
                0 => (training_loss, None),
                _ => validate(self.network, &self.validation).map(|(loss, part)| (loss, Some(part)))?,
            };
            if !(training_loss.is_finite() && validation_loss.is_finite()) {
                let found = format!("losses of {training_loss} and {validation_loss} in epoch {epoch}");
                return Err(Error::invalid(OPERATION, found, "finite losses; lower the learning rate"));
            }
            let is_best = validation_loss < best.0;
            if is_best {
                best = (validation_loss, epoch, self.network.state_dict());
            }
            let report = EpochReport { epoch, training_loss, validation_loss, validation_accuracy, is_best };
            (self.observe)(&report)?;
            reports.push(report);
            if epoch - best.1 >= self.options.patience {
                break;
            }
        }
        self.network.load_state_dict(&best.2)?;
        Ok((reports, best.1))
    }

    /// Trains on every row once, and returns the mean loss. The device is waited for at the end alone.
    fn epoch(&mut self, optimizer: &mut Adam) -> Result<f64> {
        let count = self.training.count();
        let order = self.generator.permutation(count, &self.training.labels.device())?;
        let mut total: Option<Tensor> = None;
        for start in (0..count).step_by(self.options.batch) {
            let end = count.min(start + self.options.batch);
            let batch = self.training.select(&order.slice(0, start as isize..end as isize)?)?;
            optimizer.zero_grad();
            let loss = loss(&self.network.forward(&Variable::new(batch.features))?, &batch.labels)?;
            loss.backward()?;
            optimizer.step()?;
            let sum = (loss.tensor().cast(DType::F64)? * (end - start) as f64)?;
            total = Some(match total {
                Some(total) => (total + sum)?,
                None => sum,
            });
        }
        optimizer.zero_grad();
        total.map_or(Ok(0.0), |total| Ok(total.item::<f64>()? / count as f64))
    }
}

fn loss(logits: &Variable, labels: &Tensor) -> Result<Variable> {
    cross_entropy(logits, labels, CrossEntropyOptions::default())
}

/// Returns the loss of rows and the part of right classes.
fn validate(network: &Network, rows: &Rows) -> Result<(f64, f64)> {
    let logits = network.logits(&rows.features)?;
    let is_right = logits.argmax(1)?.eq(&rows.labels)?;
    let loss = no_grad(|| loss(&Variable::new(logits), &rows.labels))?;
    let loss = f64::from(loss.tensor().item::<f32>()?);
    Ok((loss, is_right.cast(DType::F64)?.mean_all()?.item::<f64>()?))
}
