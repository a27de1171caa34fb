//! `selvedge.nn.Trainer`, runs of a language model on a text.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyString};
use selvedge::nn::{
    ByteTokenizer, CharTokenizer, Checkpoint, StepReport, TextFile, TokenFiles, TokenFormat, TokenizedText,
    Tokenizer, Trainer, TrainerOptions, tokenizer_from_json,
};

use super::checkpoint::object_of_json;
use super::gpt::PyGpt;
use super::language_model::SharedModel;
use super::optimizers::{PySchedule, plain_shape};
use super::training::scale_of;
use crate::arguments::{DeviceArgument, InRange};
use crate::decoder::ids_of;
use crate::device::device_or_default;
use crate::error::{Result, invalid, type_name, wrong_type};
use crate::nested::is_sequence;
use crate::tensor::new_tensor;
use crate::tokenizer::PyTokenizer;

/// The figures of a step of a `Trainer`.
#[pyclass(name = "StepReport", module = "selvedge.nn", frozen)]
pub struct PyStepReport(StepReport);

#[pymethods]
impl PyStepReport {
    /// The step, counted from 1.
    #[getter]
    fn step(&self) -> u64 {
        self.0.step
    }

    /// The mean loss of its batches, in nats an id.
    #[getter]
    fn loss(&self) -> f64 {
        self.0.loss
    }

    /// The norm of all gradients together before clipping, None if they are neither clipped nor scaled.
    #[getter]
    fn grad_norm(&self) -> Option<f64> {
        self.0.grad_norm
    }

    /// The learning rate.
    #[getter]
    fn lr(&self) -> f64 {
        self.0.learning_rate
    }

    /// True if gradients that were not finite left the parameters as they were.
    #[getter]
    fn is_skipped(&self) -> bool {
        self.0.is_skipped
    }

    fn __repr__(&self) -> String {
        let StepReport { step, loss, learning_rate, .. } = self.0;
        format!("StepReport(step={step}, loss={loss}, lr={learning_rate})")
    }
}

/// The source of a run's ids.
enum Text {
    Ids(Vec<u32>),
    Files(TokenFiles),
    Contents(TextFile),
}

impl Text {
    /// Takes a string, bytes, the path of a text or of a file of ids, a list of paths of such files, or ids.
    fn of(py: Python<'_>, text: &Bound<'_, PyAny>) -> Result<Text> {
        if let Ok(text) = text.cast::<PyString>() {
            return Ok(Text::Contents(TextFile::from_bytes(text.to_cow()?.as_bytes())));
        }
        if let Ok(bytes) = text.cast::<PyBytes>() {
            return Ok(Text::Contents(TextFile::from_bytes(bytes.as_bytes())));
        }
        if text.hasattr("__fspath__")? {
            let path: PathBuf = text.extract()?;
            if TokenFormat::of_path(&path).is_some() {
                return Ok(Text::Files(py.detach(|| TokenFiles::read([path]))?));
            }
            return Ok(Text::Contents(py.detach(|| TextFile::read(path))?));
        }
        // A list of paths: the files of ids are one sequence.
        if is_sequence(text)
            && text.get_item(0).is_ok_and(|first| first.hasattr("__fspath__").unwrap_or(false))
        {
            let paths: Vec<PathBuf> = text.extract()?;
            return Ok(Text::Files(py.detach(|| TokenFiles::read(paths))?));
        }
        Ok(Text::Ids(ids_of(&new_tensor(text, None, None)?)?))
    }

    /// Encodes the text, if it is none of ids.
    fn tokenized(
        self,
        tokenizer: Option<&dyn Tokenizer>,
        training_fraction: f64,
    ) -> selvedge::Result<TokenizedText> {
        let text = match self {
            Text::Ids(ids) => TokenizedText::from_ids(ids),
            Text::Files(files) => TokenizedText::from_files(files),
            Text::Contents(text) => TokenizedText::new(text, tokenizer.unwrap_or(&ByteTokenizer)),
        };
        text?.with_training_fraction(training_fraction)
    }

    /// Works with the tokenizer of an argument: a `Tokenizer`, "bytes", "characters", or None, which is "bytes" for a text and no
    /// tokenizer for ids.
    fn with_tokenizer<R>(
        self,
        tokenizer: Option<&Bound<'_, PyAny>>,
        work: impl FnOnce(Text, Option<&dyn Tokenizer>) -> Result<R>,
    ) -> Result<R> {
        let Some(tokenizer) = tokenizer else {
            let is_text = matches!(self, Text::Contents(_));
            return work(self, is_text.then_some(&ByteTokenizer as &dyn Tokenizer));
        };
        if let Ok(tokenizer) = tokenizer.cast::<PyTokenizer>() {
            return work(self, Some(tokenizer.get().tokenizer()));
        }
        let wanted = "a selvedge.Tokenizer, \"bytes\", or \"characters\" for a text";
        let found = match tokenizer.extract::<String>() {
            Ok(name) if name == "bytes" => return work(self, Some(&ByteTokenizer)),
            Ok(name) if name == "characters" => {
                if let Text::Contents(text) = &self {
                    let tokenizer = CharTokenizer::from_text(text)?;
                    return work(self, Some(&tokenizer));
                }
                "\"characters\" for ids".to_owned()
            }
            Ok(name) => format!("the tokenizer \"{name}\""),
            Err(_) => return Err(wrong_type("Trainer", type_name(tokenizer), wanted).into()),
        };
        Err(invalid("Trainer", found, wanted).into())
    }
}

/// A run of training of a `Gpt` or a `selvedge.Decoder` on a text: `Trainer(model, text, steps=300, batch=16, lr=5e-3)`.
///
/// `text` is a string, bytes, the `pathlib.Path` of a text, or ids: a list, a tensor, or the path or paths of `.bin` or `.npy` files of
/// them, which `selvedge.io.save_ids` and `selvedge tokenize` write. `tokenizer` is a `selvedge.Tokenizer`, "bytes" or "characters"; the ids of a text are
/// its bytes without one. The last ids, a part of 1 - training_fraction, are those of `evaluate()`.
///
/// A step averages the gradients of `accumulation` batches of `batch` sequences of `context` ids, by default as many as the model reads,
/// clips them to `max_norm`, and changes the parameters by AdamW. `schedule` is "cosine", "constant", "linear" or "wsd" with `lr`, `min_lr`
/// and `warmup_steps`, or a `LearningRateSchedule`, which has numbers of its own. Weights with less than two axes do not decay. With
/// `shuffle` a step takes windows side by side, each once an epoch. `loss_scale` is a number or "dynamic", for f16. A backward computes the
/// activations of `recompute` again, "nothing", "feed-forward" or "blocks": less memory, the same bits.
///
/// All of a run follows from the model, the text and the options, bit for bit, and so does one that continues from a checkpoint. On a
/// CUDA device a step is one graph unless `capture` is False. A decoder with adapters (`add_lora`) trains those alone.
///
/// >>> model = sv.nn.Gpt(sv.nn.GptConfig(256, context=8, width=16, layers=1, heads=2), seed=1)
/// >>> trainer = sv.nn.Trainer(model, "to be, or not to be. " * 20, steps=30, batch=4, lr=1e-2)
/// >>> first = trainer.step()
/// >>> trainer.run() < first
/// True
/// >>> trainer.step_count
/// 30
#[pyclass(name = "Trainer", module = "selvedge.nn", frozen)]
pub struct PyTrainer {
    trainer: Mutex<Trainer<SharedModel>>,
    model: Py<PyAny>,
    report: Mutex<Option<StepReport>>,
}

impl PyTrainer {
    fn of(
        model: &Bound<'_, PyAny>,
        text: Text,
        tokenizer: Option<&dyn Tokenizer>,
        (options, training_fraction, capture): (TrainerOptions, f64, bool),
    ) -> Result<PyTrainer> {
        let shared = SharedModel::of("Trainer", model)?;
        let trainer = model.py().detach(|| {
            let text = text.tokenized(tokenizer, training_fraction)?;
            let trainer = Trainer::with_model(shared, text, tokenizer, options)?;
            Ok::<_, selvedge::Error>(if capture { trainer } else { trainer.without_capture() })
        })?;
        Ok(PyTrainer {
            trainer: Mutex::new(trainer),
            model: model.clone().unbind(),
            report: Mutex::new(None),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Trainer<SharedModel>> {
        self.trainer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the trainer while other threads of Python run.
    fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Trainer<SharedModel>) -> R + Send) -> R {
        py.detach(|| work(&mut self.lock()))
    }

    /// Notes the mode that a step or an evaluation has set.
    fn note_mode(&self, py: Python<'_>, is_training: bool) {
        if let Ok(model) = self.model.bind(py).cast::<PyGpt>() {
            model.as_super().get().note_mode(is_training);
        }
    }

    fn take_step(&self, py: Python<'_>) -> Result<StepReport> {
        let report = self.with(py, Trainer::step);
        self.note_mode(py, true);
        let report = report?;
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
        py.check_signals()?;
        Ok(report)
    }
}

#[pymethods]
impl PyTrainer {
    #[new]
    #[pyo3(
        signature = (model, text, *, tokenizer=None, steps=None, batch=InRange(16), context=None, accumulation=InRange(1), lr=None, min_lr=None, schedule=None, warmup_steps=None, weight_decay=InRange(0.1), betas=(InRange(0.9), InRange(0.99)), max_norm=Some(InRange(1.0)), loss_scale=None, recompute="nothing", evaluation_batches=InRange(8), training_fraction=InRange(0.9), shuffle=false, seed=InRange(1), capture=true),
        text_signature = "(model, text, *, tokenizer=None, steps=None, batch=16, context=None, accumulation=1, lr=None, min_lr=None, schedule=None, warmup_steps=None, weight_decay=0.1, betas=(0.9, 0.99), max_norm=1.0, loss_scale=None, recompute='nothing', evaluation_batches=8, training_fraction=0.9, shuffle=False, seed=1, capture=True)"
    )]
    #[allow(clippy::too_many_arguments, reason = "the options of a run")]
    fn new(
        py: Python<'_>,
        model: &Bound<'_, PyAny>,
        text: &Bound<'_, PyAny>,
        tokenizer: Option<&Bound<'_, PyAny>>,
        steps: Option<InRange<u64>>,
        batch: InRange<usize>,
        context: Option<InRange<usize>>,
        accumulation: InRange<usize>,
        lr: Option<InRange<f64>>,
        min_lr: Option<InRange<f64>>,
        schedule: Option<&Bound<'_, PyAny>>,
        warmup_steps: Option<InRange<u64>>,
        weight_decay: InRange<f64>,
        betas: (InRange<f64>, InRange<f64>),
        max_norm: Option<InRange<f64>>,
        loss_scale: Option<&Bound<'_, PyAny>>,
        recompute: &str,
        evaluation_batches: InRange<usize>,
        training_fraction: InRange<f64>,
        shuffle: bool,
        seed: InRange<u64>,
        capture: bool,
    ) -> Result<PyTrainer> {
        let default = TrainerOptions::default();
        let mut options = TrainerOptions {
            steps: steps.map_or(default.steps, |steps| steps.0),
            batch: batch.0,
            context: context.map(|context| context.0),
            accumulation: accumulation.0,
            learning_rate: lr.map_or(default.learning_rate, |lr| lr.0),
            min_learning_rate: min_lr.map_or(default.min_learning_rate, |lr| lr.0),
            warmup_steps: warmup_steps.map_or(default.warmup_steps, |steps| steps.0),
            weight_decay: weight_decay.0,
            betas: (betas.0.0, betas.1.0),
            max_norm: max_norm.map(|norm| norm.0),
            loss_scale: loss_scale.map(scale_of).transpose()?,
            recompute: recompute.parse()?,
            evaluation_batches: evaluation_batches.0,
            is_shuffled: shuffle,
            seed: seed.0,
            ..default
        };
        match schedule.map(|schedule| (schedule, schedule.cast::<PySchedule>())) {
            None => {}
            Some((_, Ok(schedule))) => {
                if lr.is_some() || min_lr.is_some() || warmup_steps.is_some() {
                    let found = "a LearningRateSchedule with lr, min_lr or warmup_steps";
                    return Err(invalid("Trainer", found, "those of the schedule").into());
                }
                options = options.with_schedule(&schedule.get().0);
                if let Some(steps) = steps.filter(|steps| steps.0 != options.steps) {
                    let found = format!("steps={} and a schedule of {} steps", steps.0, options.steps);
                    return Err(invalid("Trainer", found, "one number of steps").into());
                }
            }
            Some((name, Err(_))) => {
                let name = name.extract::<String>().map_err(|_| {
                    wrong_type(
                        "Trainer",
                        type_name(name),
                        "the name of a schedule, or a LearningRateSchedule",
                    )
                })?;
                options.schedule_shape = plain_shape("Trainer", &name, ", or a LearningRateSchedule")?;
            }
        }
        Text::of(py, text)?.with_tokenizer(tokenizer, |text, tokenizer| {
            PyTrainer::of(model, text, tokenizer, (options, training_fraction.0, capture))
        })
    }

    /// Continues the run of a checkpoint of `save`, with its options and its tokenizer, on the same text: it ends with the bits of a run that
    /// was not stopped.
    ///
    /// The model is made from the checkpoint unless one is given: a decoder with adapters needs the base model with `add_lora`.
    #[staticmethod]
    #[pyo3(
        signature = (path, text, *, model=None, training_fraction=InRange(0.9), allow_other_text=false, device=None, capture=true),
        text_signature = "(path, text, *, model=None, training_fraction=0.9, allow_other_text=False, device=None, capture=True)"
    )]
    #[allow(clippy::too_many_arguments, reason = "the options of a run")]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        text: &Bound<'_, PyAny>,
        model: Option<Bound<'_, PyAny>>,
        training_fraction: InRange<f64>,
        allow_other_text: bool,
        device: Option<DeviceArgument>,
        capture: bool,
    ) -> Result<PyTrainer> {
        let device = device_or_default(device);
        let checkpoint = py.detach(|| Checkpoint::load(path, &device))?;
        let info = &checkpoint.info;
        let options: TrainerOptions = serde_json::from_value(info.training.clone()).map_err(|error| {
            let found = format!("a checkpoint without the options of a run: {error}");
            invalid("Trainer.load", found, "one of Trainer.save; load_checkpoint reads others")
        })?;
        let tokenizer = match info.tokenizer.is_null() {
            true => None,
            false => Some(tokenizer_from_json(&info.tokenizer)?),
        };
        let model = match model {
            Some(model) => model,
            None => SharedModel::object_of(py, &checkpoint, &device)?,
        };
        let options = (options, training_fraction.0, capture);
        let trainer = PyTrainer::of(&model, Text::of(py, text)?, tokenizer.as_deref(), options)?;
        trainer.with(py, |trainer| trainer.resume(&checkpoint, allow_other_text))?;
        Ok(trainer)
    }

    /// Continues from a checkpoint of a run with the same model, text and options; the number of steps may differ.
    #[pyo3(signature = (path, *, allow_other_text=false), text_signature = "($self, path, *, allow_other_text=False)")]
    fn resume(&self, py: Python<'_>, path: PathBuf, allow_other_text: bool) -> Result<()> {
        Ok(self.with(py, |trainer| {
            let device = selvedge::nn::Module::parameters(trainer.model()).first().map(|of| of.device());
            let checkpoint = Checkpoint::load(path, &device.unwrap_or(selvedge::Device::cpu()))?;
            trainer.resume(&checkpoint, allow_other_text)
        })?)
    }

    /// Writes a checkpoint into a folder, which appears when it is whole. An older checkpoint of the path stays until then.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<()> {
        Ok(self.with(py, |trainer| trainer.checkpoint()?.save(path))?)
    }

    /// Takes a step, and returns its loss in nats an id. `report` has its other figures.
    ///
    /// A loss that is not finite is an error, and leaves the parameters as they were.
    fn step(&self, py: Python<'_>) -> Result<f64> {
        Ok(self.take_step(py)?.loss)
    }

    /// Takes the steps up to `steps`, and returns the last loss, None if all were taken before.
    ///
    /// `callback(report)` gets the figures of each step; it may evaluate, save or step, and stops the run by returning False.
    #[pyo3(signature = (callback=None))]
    fn run(&self, py: Python<'_>, callback: Option<&Bound<'_, PyAny>>) -> Result<Option<f64>> {
        let mut loss = None;
        while self.with(py, |trainer| trainer.step_count() < trainer.options().steps) {
            let report = self.take_step(py)?;
            loss = Some(report.loss);
            if let Some(callback) = callback {
                let answer = callback.call1((PyStepReport(report),))?;
                if answer.cast::<PyBool>().is_ok_and(|answer| !answer.is_true()) {
                    break;
                }
            }
        }
        Ok(loss)
    }

    /// The mean loss of `evaluation_batches` batches of the rest of the text, the same ones at each call, in nats an id. It leaves the model
    /// in the evaluation mode.
    fn evaluate(&self, py: Python<'_>) -> Result<f64> {
        let loss = self.with(py, Trainer::evaluate);
        self.note_mode(py, false);
        py.check_signals()?;
        Ok(loss?)
    }

    /// The model.
    #[getter]
    fn model(&self, py: Python<'_>) -> Py<PyAny> {
        self.model.clone_ref(py)
    }

    /// The figures of the last step, None before the first one.
    #[getter]
    fn report(&self) -> Option<PyStepReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).map(PyStepReport)
    }

    /// The number of steps taken.
    #[getter]
    fn step_count(&self, py: Python<'_>) -> u64 {
        self.with(py, |trainer| trainer.step_count())
    }

    /// The number of steps of the run.
    #[getter]
    fn steps(&self, py: Python<'_>) -> u64 {
        self.with(py, |trainer| trainer.options().steps)
    }

    /// The ids that a step reads.
    #[getter]
    fn ids_per_step(&self, py: Python<'_>) -> usize {
        self.with(py, |trainer| trainer.ids_of_a_step())
    }

    /// The options as a dict.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let options = self.with(py, |trainer| *trainer.options());
        let json = serde_json::to_value(options)
            .map_err(|error| invalid("Trainer", error.to_string(), "numbers that JSON has"))?;
        Ok(object_of_json(py, &json)?)
    }

    /// The entropy of single ids in nats: the loss of a model that knows nothing but how often each id occurs.
    #[getter]
    fn unigram_entropy(&self, py: Python<'_>) -> f64 {
        self.with(py, |trainer| trainer.text().unigram_entropy())
    }

    /// The factor of the loss, None without `loss_scale`.
    #[getter]
    fn loss_scale(&self, py: Python<'_>) -> Result<Option<f64>> {
        Ok(self.with(py, |trainer| trainer.loss_scale())?)
    }

    /// True if a step is a launch of a graph.
    #[getter]
    fn is_captured(&self, py: Python<'_>) -> bool {
        self.with(py, |trainer| trainer.is_captured())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (count, steps) = self.with(py, |trainer| (trainer.step_count(), trainer.options().steps));
        format!("Trainer(step {count} of {steps})")
    }
}
