//! [`Classifier`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use super::evaluation::Evaluation;
use super::features::{check_features, check_finite, check_matrix, checked_labels};
use super::forward::{ClassificationBatch, forward};
use super::generative::GenerativeModel;
use super::history::{HISTORY_LENGTH, History};
use super::inference::learned_prior;
use super::kernel::FusedPass;
use super::network::Network;
use super::options::{ClassifierOptions, checked_prior};
use crate::error::{Error, Result};
use crate::nn::Module;
use crate::tensor::{Device, Tensor};
use crate::types::DType;

pub(super) const OPERATION: &str = "Classifier";

/// A classifier of f32 rows; see the [module](super).
pub struct Classifier {
    pub(super) network: Network,
    device: Device,
    prior: Vec<f64>,
    /// The prior as f32 on the device.
    prior_on_device: Tensor,
    fuse_prior: bool,
    class_names: Vec<String>,
    model: Option<GenerativeModel>,
    history: History,
    /// The pass of one launch, once it was asked for; `None` in it if there is none. Whatever changes its operands clears it.
    fused: OnceLock<Option<FusedPass>>,
}

/// The result of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Classification {
    /// The class of the largest belief, the first of equal ones.
    pub class: usize,
    /// The posterior Q of the recognition network.
    pub posterior: Vec<f64>,
    /// The posterior, or the posterior fused with the prior.
    pub beliefs: Vec<f64>,
    /// The free energy F.
    pub free_energy: f64,
    /// The largest belief.
    pub confidence: f64,
}

fn on_device(prior: &[f64], device: &Device) -> Result<Tensor> {
    let rounded: Vec<f32> = prior.iter().map(|&p| p as f32).collect();
    Tensor::from_vec(rounded, &[prior.len()], device)
}

impl Classifier {
    /// Creates a classifier with weights of a seed, which are the same on every device.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for no features, an empty hidden layer, a prior that is no distribution with every class at
    /// least 1e-30, and a dropout outside 0 to 1; errors of the operations.
    pub fn new(options: &ClassifierOptions, device: &Device) -> Result<Classifier> {
        let ClassifierOptions { features, hidden, prior, fuse_prior, dropout, seed } = options;
        let prior = checked_prior(OPERATION, prior)?;
        let widths: Vec<usize> = [*features].iter().chain(hidden).chain([&prior.len()]).copied().collect();
        Ok(Classifier {
            network: Network::new(&widths, *dropout, *seed, device)?,
            device: *device,
            prior_on_device: on_device(&prior, device)?,
            prior,
            fuse_prior: *fuse_prior,
            class_names: Vec::new(),
            model: None,
            history: History::default(),
            fused: OnceLock::new(),
        })
    }

    /// Returns the device.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Returns the widths of the network: features, hidden layers, classes.
    pub fn widths(&self) -> Vec<usize> {
        self.network.widths()
    }

    /// Returns the number of features of a row.
    pub fn features(&self) -> usize {
        self.network.widths().first().copied().unwrap_or(0)
    }

    /// Returns the number of classes.
    pub fn classes(&self) -> usize {
        self.prior.len()
    }

    /// Returns the number of weights and biases.
    pub fn parameter_count(&self) -> usize {
        self.network.parameters().iter().map(|parameter| parameter.tensor().count()).sum()
    }

    /// Returns the probability of dropout in training.
    pub fn dropout(&self) -> f64 {
        self.network.dropout_probability()
    }

    /// Returns the prior.
    pub fn prior(&self) -> &[f64] {
        &self.prior
    }

    /// Sets the prior.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`Error::InvalidArgument`] for another number of classes.
    pub fn set_prior(&mut self, prior: &[f64]) -> Result<()> {
        if prior.len() != self.classes() {
            let found = format!("a prior of {} classes", prior.len());
            return Err(Error::invalid(OPERATION, found, format!("{} classes", self.classes())));
        }
        let prior = checked_prior(OPERATION, prior)?;
        self.prior_on_device = on_device(&prior, &self.device)?;
        self.prior = prior;
        self.clear_fused_pass();
        Ok(())
    }

    /// Moves the prior toward the observed probabilities of the classes; see [`learned_prior`].
    ///
    /// # Errors
    ///
    /// As [`learned_prior`].
    pub fn learn_prior(&mut self, observed: &[f64]) -> Result<()> {
        self.set_prior(&learned_prior(&self.prior, observed)?)
    }

    /// Returns whether beliefs are fused with the prior.
    pub fn fuses_prior(&self) -> bool {
        self.fuse_prior
    }

    /// Returns the names of the classes, none if they have none.
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }

    /// Names the classes. [`save`](Self::save) writes the names; an empty list removes them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for another number of names than of classes, and for two equal names.
    pub fn set_class_names(&mut self, names: Vec<String>) -> Result<()> {
        if !names.is_empty() && names.len() != self.classes() {
            let wanted = format!("{}, one a class", self.classes());
            return Err(Error::invalid(OPERATION, format!("{} class names", names.len()), wanted));
        }
        if let Some((_, name)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return Err(Error::invalid(OPERATION, format!("two classes named '{name}'"), "distinct names"));
        }
        self.class_names = names;
        Ok(())
    }

    /// Sets whether beliefs are fused with the prior.
    pub fn set_fuse_prior(&mut self, fuse_prior: bool) {
        self.fuse_prior = fuse_prior;
        self.clear_fused_pass();
    }

    /// Returns the generative model of the full mode.
    pub fn generative_model(&self) -> Option<&GenerativeModel> {
        self.model.as_ref()
    }

    /// Sets the generative model, with which free energies are those of the full mode; without one, of the KL mode. It is
    /// copied to the classifier's device as f32.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a model of other features or classes; errors of the copy.
    pub fn set_generative_model(&mut self, model: Option<&GenerativeModel>) -> Result<()> {
        let Some(model) = model else {
            self.model = None;
            self.clear_fused_pass();
            return Ok(());
        };
        let (found, wanted) = ([model.classes(), model.features()], [self.classes(), self.features()]);
        if found != wanted {
            let found = format!("a generative model of {} classes and {} features", found[0], found[1]);
            let wanted = format!("{} classes and {} features", wanted[0], wanted[1]);
            return Err(Error::invalid(OPERATION, found, wanted));
        }
        self.model = Some(model.to(&self.device, DType::F32)?);
        self.clear_fused_pass();
        Ok(())
    }

    /// Returns the free energies of the last rows, at most 100, the oldest first.
    pub fn free_energies(&self) -> Vec<f64> {
        self.history.to_vec()
    }

    /// Returns the weights and biases by name, `layers.0.weight` and so on.
    pub fn state_dict(&self) -> BTreeMap<String, Tensor> {
        self.network.state_dict()
    }

    /// Sets the weights and biases by name.
    ///
    /// # Errors
    ///
    /// As [`Module::load_state_dict`].
    pub fn load_state_dict(&mut self, entries: &BTreeMap<String, Tensor>) -> Result<()> {
        self.clear_fused_pass();
        self.network.load_state_dict(entries)
    }

    /// Returns the logits of rows.
    ///
    /// # Errors
    ///
    /// As [`classify_batch`](Self::classify_batch).
    pub fn logits(&self, features: &Tensor) -> Result<Tensor> {
        check_features(OPERATION, features, self.features(), &self.device)?;
        self.network.logits(features)
    }

    /// Classifies one row.
    ///
    /// # Errors
    ///
    /// As [`classify_batch`](Self::classify_batch).
    pub fn classify(&mut self, features: &[f32]) -> Result<Classification> {
        let found = self.fused_pass()?.map(|pass| pass.row(features)).transpose()?;
        if let Some(found) = found.flatten() {
            self.history.extend(&[found.free_energy]);
            return Ok(found);
        }
        let row = Tensor::from_slice(features, &[1, features.len()], &self.device)?;
        let found = self.classify_batch(&row)?;
        let values = |tensor: &Tensor| tensor.cast(DType::F64)?.to_vec::<f64>();
        Ok(Classification {
            class: found.classes.item::<i64>()? as usize,
            posterior: values(&found.posterior)?,
            beliefs: values(&found.beliefs)?,
            free_energy: f64::from(found.free_energy.item::<f32>()?),
            confidence: f64::from(found.confidence.item::<f32>()?),
        })
    }

    /// Classifies the rows of a matrix of f32 on the classifier's device.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for rows of other features, and for a feature that is not finite, with its row;
    /// [`Error::DTypeMismatch`] and [`Error::DeviceMismatch`]; errors of the operations. The history stays as it was then.
    pub fn classify_batch(&mut self, features: &Tensor) -> Result<ClassificationBatch> {
        let (found, last) = self.pass(features)?;
        let last = match last {
            Some(last) => last,
            None => {
                let excess = found.free_energy.count().saturating_sub(HISTORY_LENGTH);
                found.free_energy.slice(0, excess as isize..)?.cast(DType::F64)?.to_vec::<f64>()?
            }
        };
        self.history.extend(&last);
        Ok(found)
    }

    /// Classifies rows and compares their classes with labels. The history stays as it was.
    ///
    /// # Errors
    ///
    /// As [`classify_batch`](Self::classify_batch); [`Error::InvalidArgument`] for another number of labels, and for a label
    /// outside the classes, with its row.
    pub fn evaluate(&self, features: &Tensor, labels: &Tensor) -> Result<Evaluation> {
        let rows = features.shape().first().copied().unwrap_or(0);
        let labels = checked_labels(OPERATION, labels, rows, self.classes())?;
        let (found, _) = self.pass(features)?;
        let classes = found.classes.to_vec::<i64>()?;
        Evaluation::new(&classes, &found.confidence.cast(DType::F64)?.to_vec()?, &labels, self.classes())
    }

    /// Returns the pass of one launch, if there is one for this classifier and its device.
    fn fused_pass(&self) -> Result<Option<&FusedPass>> {
        if let Some(found) = self.fused.get() {
            return Ok(found.as_ref());
        }
        let (prior, model) = (&self.prior_on_device, self.model.as_ref());
        let made = FusedPass::of(&self.network, prior, self.fuse_prior, model)?;
        Ok(self.fused.get_or_init(|| made).as_ref())
    }

    /// Forgets the pass, since its operands change.
    pub(super) fn clear_fused_pass(&mut self) {
        self.fused = OnceLock::new();
    }

    /// Classifies rows, and returns the free energies of the last ones if they are on the host.
    fn pass(&self, features: &Tensor) -> Result<(ClassificationBatch, Option<Vec<f64>>)> {
        check_matrix(OPERATION, features, self.features(), &self.device)?;
        if features.count() > 0
            && let Some(pass) = self.fused_pass()?
        {
            if let Some((found, last)) = pass.rows(features)? {
                return Ok((found, Some(last)));
            }
            // The kernel found a bad feature; this names it.
            check_finite(OPERATION, &features.to(&Device::cpu())?)?;
        }
        check_finite(OPERATION, features)?;
        let (prior, model) = (&self.prior_on_device, self.model.as_ref());
        Ok((forward(&self.network, features, prior, self.fuse_prior, model)?, None))
    }
}

impl fmt::Debug for Classifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = if self.model.is_some() { "full" } else { "KL" };
        write!(formatter, "Classifier({:?} on {}, {mode} mode)", self.widths(), self.device)
    }
}
