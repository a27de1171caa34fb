//! The models that a `Trainer` trains and Python holds too.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use pyo3::prelude::*;
use selvedge::nn::{Batch, Checkpoint, Decoder, Gpt, GptConfig, LanguageModel, Module, Recompute, Variable};
use selvedge::tensor::Generator;
use selvedge::{Device, Result};

use super::gpt::PyGpt;
use crate::decoder::PyDecoder;
use crate::error::{Failure, type_name, wrong_type};

/// A model that an object of Python shares.
#[derive(Clone)]
pub enum SharedModel {
    Gpt(Arc<RwLock<Gpt>>),
    Decoder(Arc<Decoder>),
}

/// Locks a model for a pass.
pub fn read(model: &RwLock<Gpt>) -> RwLockReadGuard<'_, Gpt> {
    model.read().unwrap_or_else(PoisonError::into_inner)
}

impl SharedModel {
    /// Returns the model of an object of Python.
    pub fn of(operation: &'static str, object: &Bound<'_, PyAny>) -> Result<SharedModel, Failure> {
        if let Ok(model) = object.cast::<PyGpt>() {
            return Ok(SharedModel::Gpt(model.get().shared()?));
        }
        match object.cast::<PyDecoder>() {
            Ok(model) => Ok(SharedModel::Decoder(model.get().shared())),
            Err(_) => {
                let wanted =
                    "a selvedge.nn.Gpt or a selvedge.Decoder; selvedge.nn.TrainingStep trains any module";
                Err(wrong_type(operation, type_name(object), wanted).into())
            }
        }
    }

    /// Returns the model of a checkpoint as an object of Python.
    pub fn object_of<'py>(
        py: Python<'py>,
        checkpoint: &Checkpoint,
        device: &Device,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let json = &checkpoint.info.model;
        if json.get("config").is_some() {
            let model = py.detach(|| Decoder::from_checkpoint(json, &checkpoint.parameters, device))?;
            return Ok(Bound::new(py, PyDecoder::from(model))?.into_any());
        }
        let config = GptConfig::from_json(&json.to_string())?;
        let model = py.detach(|| Gpt::from_state_dict(config, &checkpoint.parameters, device))?;
        Ok(PyGpt::object(py, model)?.into_any())
    }

    fn with<R>(&self, work: impl FnOnce(&dyn LanguageModel) -> R) -> R {
        match self {
            SharedModel::Gpt(model) => work(&*read(model)),
            SharedModel::Decoder(model) => work(&**model),
        }
    }
}

impl Module for SharedModel {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        self.with(|model| model.forward(input))
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        self.with(|model| model.named_parameters())
    }

    fn named_buffers(&self) -> Vec<(String, Variable)> {
        self.with(|model| model.named_buffers())
    }

    fn set_training(&mut self, is_training: bool) {
        // A decoder has no mode.
        if let SharedModel::Gpt(model) = self {
            model.write().unwrap_or_else(PoisonError::into_inner).set_training(is_training);
        }
    }
}

impl LanguageModel for SharedModel {
    fn loss(&self, batch: &Batch) -> Result<Variable> {
        self.with(|model| model.loss(batch))
    }

    fn loss_with_recompute(&self, batch: &Batch, recompute: Recompute) -> Result<Variable> {
        self.with(|model| model.loss_with_recompute(batch, recompute))
    }

    fn vocab_size(&self) -> usize {
        self.with(|model| model.vocab_size())
    }

    fn context(&self) -> usize {
        self.with(|model| model.context())
    }

    fn to_json(&self) -> serde_json::Value {
        self.with(|model| model.to_json())
    }

    fn generator(&self) -> Option<Generator> {
        self.with(|model| model.generator())
    }
}
