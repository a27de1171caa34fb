//! [`Trainer`], the steps of a language model's training.

use serde_json::Value;

use super::checkpoint::{Checkpoint, CheckpointInfo};
use super::language_model::LanguageModel;
use super::loss_scale::{self, LossScale, LossScaler};
use super::options::TrainerOptions;
use super::step_graph::{StepGraph, StepWork};
use crate::error::{Error, Result};
use crate::nn::gpt::DROPOUT;
use crate::nn::parameters::check_one_device;
use crate::nn::{
    AdamW, Batch, Batches, Gpt, GptConfig, Optimizer, Parameters, Recompute, Split, TokenizedText, Tokenizer,
    Variable, clip_grad_norm, no_grad,
};
use crate::tensor::{Device, Generator, GeneratorState, Tensor, fuse};

const OPERATION: &str = "Trainer";
/// Added to the seed for the batches of evaluations.
const VALIDATION: u64 = 2 << 32;

/// The figures of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepReport {
    /// The step, counted from 1.
    pub step: u64,
    /// The mean loss of its batches, in nats an id.
    pub loss: f64,
    /// The norm of all gradients together before clipping, if they are clipped or the loss is scaled.
    pub grad_norm: Option<f64>,
    /// The learning rate.
    pub learning_rate: f64,
    /// True if gradients that were not finite left the parameters as they were; see [`LossScale`].
    pub is_skipped: bool,
}

/// A model, its optimizer and its text. [`new`](Self::new) trains a new [`Gpt`], and [`with_model`](Self::with_model) any
/// [`LanguageModel`], such as a loaded [`Decoder`](crate::nn::Decoder). A step draws a batch, computes the gradients of the loss, and changes the parameters.
///
/// All of a run follows from the options, the text and the device, bit for bit, and so does a run that continues from a
/// [`checkpoint`](Self::checkpoint).
///
/// ```
/// use selvedge::nn::{ByteTokenizer, GptConfig, TextFile, TokenizedText, Trainer, TrainerOptions};
/// use selvedge::Device;
/// let text = TextFile::from_bytes("to be, or not to be, that is the question: ".repeat(9));
/// let config = GptConfig { layers: 1, width: 8, heads: 2, context: 8, ..GptConfig::tiny(256) };
/// let options = TrainerOptions { batch: 2, ..TrainerOptions::default() };
/// let mut trainer = Trainer::new(config, text, &ByteTokenizer, options, &Device::cpu())?;
/// let report = trainer.step()?;
/// assert_eq!(report.step, 1);
/// assert!((report.loss - 256f64.ln()).abs() < 0.5);
/// # Ok::<(), selvedge::Error>(())
/// ```
pub struct Trainer<M = Gpt> {
    model: M,
    /// Of the parameters in their buffers.
    parameters: Vec<Variable>,
    optimizer: AdamW,
    scaler: Option<LossScaler>,
    options: TrainerOptions,
    training: Batches,
    validation: Batches,
    dropout: Generator,
    tokenizer: Value,
    text: TokenizedText,
    step: u64,
    loss: Option<f64>,
    device: Device,
    graph: StepGraph,
}

/// The step of a model on batches: each two inputs are the ids and the targets of one. Its results are the loss of each
/// batch, the norm of the gradients if they are clipped or scaled, and if they are scaled whether they are finite and the
/// optimizer's factor.
struct ModelWork<'a> {
    model: &'a dyn LanguageModel,
    parameters: &'a [Variable],
    optimizer: &'a mut AdamW,
    scaler: Option<&'a mut LossScaler>,
    max_norm: Option<f64>,
    recompute: Recompute,
    batches: usize,
}

impl StepWork for ModelWork<'_> {
    fn gradients(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let share = 1.0 / self.batches as f64;
        self.parameters.iter().for_each(Variable::zero_grad);
        let mut results = Vec::with_capacity(self.batches + 3);
        for pair in inputs.chunks_exact(2) {
            let batch = Batch { inputs: pair[0].clone(), targets: pair[1].clone() };
            let loss = self.model.loss_with_recompute(&batch, self.recompute)?;
            results.push(loss.tensor());
            let loss = if self.batches > 1 { (&loss * share)? } else { loss };
            match &self.scaler {
                Some(scaler) => scaler.backward(&loss)?,
                None => loss.backward()?,
            }
        }
        if let Some(scaler) = &self.scaler {
            let scaled = scaler.gradients(self.parameters, self.max_norm)?;
            results.extend([scaled.norm, scaled.is_finite, scaled.factor]);
            return Ok(results);
        }
        if let Some(max_norm) = self.max_norm {
            results.push(clip_grad_norm(self.parameters, max_norm)?);
        }
        Ok(results)
    }

    /// The parameters stay if a loss is not finite. The host reads the losses later.
    fn apply(&mut self, results: &[Tensor]) -> Result<()> {
        let mut all: Option<Tensor> = None;
        for loss in results.iter().take(self.batches) {
            let is_finite = fuse([loss], |[loss]| loss.is_finite())?;
            all = Some(match all {
                Some(all) => all.logical_and(&is_finite)?,
                None => is_finite,
            });
        }
        match (&mut self.scaler, all) {
            (Some(scaler), Some(are_finite)) => {
                let [.., is_finite, factor] = results else {
                    return Err(Error::invalid(OPERATION, "a scaled step without a factor", "one"));
                };
                let is_finite = are_finite.logical_and(is_finite)?;
                scaler.apply(self.optimizer, &is_finite, factor)
            }
            (None, Some(are_finite)) => self.optimizer.apply_if(&are_finite),
            (_, None) => self.optimizer.apply(),
        }
    }

    fn optimizer(&mut self) -> &mut dyn Optimizer {
        self.optimizer
    }

    fn parameters(&self) -> &[Variable] {
        self.parameters
    }
}

impl Trainer<Gpt> {
    /// Creates a new model and a run that has taken no step.
    ///
    /// # Errors
    ///
    /// As [`GptConfig::check`], [`TrainerOptions::check`], [`Batches::new`] and [`TokenizedText::new`];
    /// [`Error::InvalidArgument`] for a context that is longer than the model's, and for a tokenizer with more ids than the
    /// model.
    pub fn new(
        config: GptConfig,
        text: crate::nn::TextFile,
        tokenizer: &dyn Tokenizer,
        options: TrainerOptions,
        device: &Device,
    ) -> Result<Trainer> {
        let text = TokenizedText::new(text, tokenizer)?;
        Trainer::from_tokens(config, text, Some(tokenizer), options, device)
    }

    /// Creates a new model and a run on ids, such as those of [`TokenFiles`](crate::nn::TokenFiles). A checkpoint of a run
    /// without a tokenizer has the tokenizer `null`.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`Error::InvalidArgument`] with both numbers for an id that is not below the model's vocabulary.
    pub fn from_tokens(
        config: GptConfig,
        text: TokenizedText,
        tokenizer: Option<&dyn Tokenizer>,
        options: TrainerOptions,
        device: &Device,
    ) -> Result<Trainer> {
        // A run that cannot be takes no memory.
        let data = TrainingData::new([config.vocab_size, config.context], text, tokenizer, &options)?;
        Trainer::of_parts(Gpt::from_seed(config, options.seed, device)?, data, options)
    }
}

/// The text of a run with its batches.
struct TrainingData {
    text: TokenizedText,
    tokenizer: Value,
    training: Batches,
    validation: Batches,
}

impl TrainingData {
    /// Checks that a model of a vocabulary and a context can be trained on a text.
    fn new(
        [vocab_size, longest]: [usize; 2],
        text: TokenizedText,
        tokenizer: Option<&dyn Tokenizer>,
        options: &TrainerOptions,
    ) -> Result<TrainingData> {
        options.check()?;
        let context = options.context.unwrap_or(longest);
        if context > longest {
            let wanted = format!("at most the model's, {longest}");
            return Err(Error::invalid(OPERATION, format!("a context of {context}"), wanted));
        }
        if let Some(size) = tokenizer.map(Tokenizer::vocab_size).filter(|&size| size > vocab_size) {
            let wanted = format!("at most the model's, {vocab_size}");
            return Err(Error::invalid(OPERATION, format!("a tokenizer of {size} ids"), wanted));
        }
        let largest = text.largest_id();
        if largest as usize >= vocab_size {
            let found = format!("the id {largest} in the text");
            let wanted = format!("ids below {vocab_size}, the vocabulary of the model");
            return Err(Error::invalid(OPERATION, found, wanted));
        }
        let batches = |split, seed| Batches::new(&text, split, options.batch, context, seed);
        let training = batches(Split::Training, options.seed)?;
        let validation = batches(Split::Validation, options.seed.wrapping_add(VALIDATION))?;
        Ok(TrainingData {
            training: if options.is_shuffled { training.shuffled() } else { training },
            validation,
            tokenizer: tokenizer.map_or(Value::Null, Tokenizer::to_json),
            text,
        })
    }
}

impl<M: LanguageModel> Trainer<M> {
    /// Creates a run that begins from a model's weights. `options.seed` is that of the batches.
    ///
    /// ```
    /// use selvedge::nn::{ByteTokenizer, Decoder, DecoderConfig, Initializer, TextFile, TokenizedText, Trainer, TrainerOptions};
    /// use selvedge::Device;
    /// let text = r#"{"model_type": "gpt2", "vocab_size": 256, "n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 2}"#;
    /// let config = DecoderConfig::from_json(text, None)?;
    /// // Or Decoder::load with the folder of a published model.
    /// let model = Decoder::new(config, &Initializer::new(&Device::cpu()).with_seed(1))?;
    /// let text = TextFile::from_bytes("to be, or not to be, that is the question: ".repeat(9));
    /// let text = TokenizedText::new(text, &ByteTokenizer)?;
    /// let options = TrainerOptions { batch: 2, ..TrainerOptions::default() };
    /// let mut trainer = Trainer::with_model(model, text, Some(&ByteTokenizer), options)?;
    /// assert!((trainer.step()?.loss - 256f64.ln()).abs() < 0.5);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`from_tokens`](Trainer::from_tokens), and as [`Parameters::new`].
    pub fn with_model(
        model: M,
        text: TokenizedText,
        tokenizer: Option<&dyn Tokenizer>,
        options: TrainerOptions,
    ) -> Result<Trainer<M>> {
        let data = TrainingData::new([model.vocab_size(), model.context()], text, tokenizer, &options)?;
        Trainer::of_parts(model, data, options)
    }

    fn of_parts(model: M, data: TrainingData, options: TrainerOptions) -> Result<Trainer<M>> {
        let TrainingData { text, tokenizer, training, validation } = data;
        let dropout = model.generator();
        let dropout = dropout.unwrap_or_else(|| Generator::new(options.seed.wrapping_add(DROPOUT)));
        let named = model.named_parameters();
        let Some(device) = named.first().map(|(_, parameter)| parameter.device()) else {
            return Err(Error::invalid(OPERATION, "a model without parameters", "at least one to train"));
        };
        check_one_device(OPERATION, named.iter().map(|(name, parameter)| (name.as_str(), parameter)))?;
        let parameters = Parameters::new(&model)?.variables();
        let (first, second) = options.betas;
        let optimizer = AdamW::new(parameters.clone(), options.learning_rate)?
            .with_betas(first, second)?
            .with_weight_decay(options.weight_decay)?
            .with_min_decay_rank(2);
        let scaler = options.loss_scale.map(|scale| LossScaler::new(scale, &device)).transpose()?;
        Ok(Trainer {
            model,
            parameters,
            optimizer,
            scaler,
            options,
            training,
            validation,
            dropout,
            tokenizer,
            text,
            step: 0,
            loss: None,
            device,
            graph: StepGraph::new(&device),
        })
    }

    /// Returns the model.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// Returns the model, such as to set its mode.
    pub fn model_mut(&mut self) -> &mut M {
        &mut self.model
    }

    /// Returns the options.
    pub fn options(&self) -> &TrainerOptions {
        &self.options
    }

    /// Returns the text.
    pub fn text(&self) -> &TokenizedText {
        &self.text
    }

    /// Returns the number of steps taken.
    pub fn step_count(&self) -> u64 {
        self.step
    }

    /// Returns the ids that a step reads.
    pub fn ids_of_a_step(&self) -> usize {
        let context = self.options.context.unwrap_or(self.model.context());
        self.options.batch * self.options.accumulation * context
    }

    /// Runs each step uncaptured. Otherwise a step on a CUDA device is one graph from the second step on, with the same
    /// bits; the log says so, or why not.
    #[must_use]
    pub fn without_capture(mut self) -> Trainer<M> {
        self.graph.forbid("Trainer::without_capture");
        self
    }

    /// Returns whether a step is a launch of a graph, but for [`step_uncaptured`](Self::step_uncaptured).
    pub fn is_captured(&self) -> bool {
        self.graph.is_captured()
    }

    /// Sets the activations that the backward of later steps computes again. Their bits stay the same.
    pub fn set_recompute(&mut self, recompute: Recompute) {
        self.options.recompute = recompute;
        self.graph.forget();
    }

    /// Sets or removes the loss scale, before the first step and before [`resume`](Self::resume).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] after a step, and as [`LossScale::check`]; [`Error::OutOfMemory`].
    pub fn set_loss_scale(&mut self, scale: Option<LossScale>) -> Result<()> {
        if self.step > 0 || self.graph.is_captured() {
            let found = format!("a loss scale after {} steps", self.step);
            return Err(Error::invalid(OPERATION, found, "one before the first step"));
        }
        self.scaler = scale.map(|scale| LossScaler::new(scale, &self.device)).transpose()?;
        self.options.loss_scale = scale;
        Ok(())
    }

    /// Returns the loss scale of the next step, if there is one.
    ///
    /// # Errors
    ///
    /// Driver errors.
    pub fn loss_scale(&self) -> Result<Option<f64>> {
        self.scaler.as_ref().map(LossScaler::scale).transpose()
    }

    /// Takes a step. With a loss scale, gradients that are not finite leave the parameters as they were.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with the step for a loss that is not finite; the parameters are those of the step before
    /// then. Otherwise errors of memory and of the operations.
    pub fn step(&mut self) -> Result<StepReport> {
        self.step_by(StepGraph::run)
    }

    /// As [`step`](Self::step), without the graph, which later steps launch again. The bits are the same, and a
    /// [`trace`](crate::trace) has each kernel of the step.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn step_uncaptured(&mut self) -> Result<StepReport> {
        self.step_by(|graph, inputs, work| graph.run_uncaptured(inputs, work))
    }

    fn step_by(
        &mut self,
        run: impl FnOnce(&mut StepGraph, &[Tensor], &mut dyn StepWork) -> Result<Vec<Tensor>>,
    ) -> Result<StepReport> {
        self.model.train();
        let learning_rate = self.options.schedule().learning_rate(self.step);
        let TrainerOptions { accumulation: batches, max_norm, recompute, .. } = self.options;
        let mut inputs = Vec::with_capacity(2 * batches);
        for _ in 0..batches {
            let batch = self.training.next_batch(&self.device)?;
            inputs.extend([batch.inputs, batch.targets]);
        }
        self.optimizer.set_learning_rate(learning_rate);
        let Trainer { model, parameters, optimizer, scaler, graph, .. } = self;
        let scaler = scaler.as_mut();
        let mut work =
            ModelWork { model: &*model, parameters, optimizer, scaler, max_norm, recompute, batches };
        let results = run(graph, &inputs, &mut work)?;
        let (mut loss, share) = (0.0, 1.0 / batches as f64);
        for one in results.iter().take(batches) {
            loss += one.item::<f32>().map(f64::from)? * share;
        }
        let step = self.step + 1;
        if !loss.is_finite() {
            self.optimizer.withdraw();
            let found = format!("a loss of {loss} at step {step}");
            let wanted = "a finite loss; lower the learning rate or clip gradients";
            return Err(Error::invalid(OPERATION, found, wanted));
        }
        let is_finite = results.get(batches + 1).map(Tensor::item::<bool>).transpose()?;
        let is_skipped = is_finite == Some(false);
        if is_skipped {
            self.optimizer.withdraw();
        }
        self.step = step;
        self.loss = None;
        let norm = results.get(batches);
        let grad_norm = norm.map(|norm| norm.item::<f32>().map(f64::from)).transpose()?;
        Ok(StepReport { step, loss, grad_norm, learning_rate, is_skipped })
    }

    /// Returns the mean loss of some batches of the validation text, the same at each call, in nats an id.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn evaluate(&mut self) -> Result<f64> {
        self.model.eval();
        let count = self.options.evaluation_batches;
        let mut sum = 0.0;
        for index in 0..count as u64 {
            let batch = self.validation.batch(index, &self.device)?;
            sum += no_grad(|| self.model.loss(&batch))?.tensor().item::<f32>().map(f64::from)?;
        }
        let loss = sum / count as f64;
        self.loss = Some(loss);
        Ok(loss)
    }

    /// Returns the state of the run, with the loss of an evaluation since the last step.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        let GeneratorState { seed, offset } = self.dropout.state();
        Ok(Checkpoint {
            info: CheckpointInfo {
                step: self.step,
                loss: self.loss,
                best: None,
                data_position: self.training.position(),
                data_seed: self.training.seed(),
                generator_seed: seed,
                generator_offset: offset,
                text_hash: self.text.hash().to_owned(),
                optimizer: self.optimizer.name().to_owned(),
                tokenizer: self.tokenizer.clone(),
                model: self.model.to_json(),
                training: serde_json::json!(self.options),
                program: Value::Null,
            },
            parameters: self.model.state_dict(),
            optimizer: loss_scale::state_dict(&self.optimizer, self.scaler.as_ref())?,
        })
    }

    /// Continues from a checkpoint of a run with the same model, text and options; the number of steps may differ.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] that names both sides for another model, tokenizer or seed, for another text unless
    /// `allow_other_text`, and for states of other shapes.
    pub fn resume(&mut self, checkpoint: &Checkpoint, allow_other_text: bool) -> Result<()> {
        let info = &checkpoint.info;
        let same = |what: &str, found: &Value, wanted: &Value| match found == wanted {
            true => Ok(()),
            false => Err(Error::invalid("Trainer::resume", format!("{what} {found}"), format!("{wanted}"))),
        };
        same("a model", &info.model, &self.model.to_json())?;
        same("a tokenizer", &info.tokenizer, &self.tokenizer)?;
        checkpoint.check_optimizer("Trainer::resume", self.optimizer.name())?;
        same("a seed", &info.data_seed.into(), &self.training.seed().into())?;
        if info.text_hash != self.text.hash() && !allow_other_text {
            let found = format!("a text with the hash {}", self.text.hash());
            let wanted = format!("the checkpoint's, {}", info.text_hash);
            return Err(Error::invalid("Trainer::resume", found, wanted));
        }
        self.model.load_state_dict(&checkpoint.parameters)?;
        let Trainer { optimizer, scaler, .. } = self;
        let scaler = scaler.as_mut();
        loss_scale::load_state_dict("Trainer::resume", optimizer, scaler, &checkpoint.optimizer)?;
        self.training.set_position(info.data_position);
        self.dropout.set_state(GeneratorState { seed: info.generator_seed, offset: info.generator_offset });
        self.step = info.step;
        self.loss = info.loss;
        Ok(())
    }
}
