//! `selvedge.nn.Gpt`, GPT-2's architecture, and `GptConfig`.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use selvedge::nn::{Activation, Generation, Gpt, GptConfig, LanguageModel, Sampler, SamplerOptions};
use selvedge::tensor::Generator;

use super::language_model::{SharedModel, read};
use super::layers::{InitializerArgument, generator_or_default, initializer};
use super::module::{Layer, PyNnModule};
use super::variable::{IndexArgument, PyVariable};
use crate::arguments::{DTypeArgument, DeviceArgument, InRange};
use crate::decoder::ids_of;
use crate::device::{PyDevice, device_or_default};
use crate::dtype::PyDType;
use crate::error::{Result, invalid};
use crate::random::PyGenerator;
use crate::tensor::new_tensor;

/// The sizes and options of a `Gpt`. The defaults train in minutes on a CPU.
///
/// `activation` is "gelu_tanh", "gelu", "relu" or "silu". With `tied_head` the head is the token embedding. `compute_dtype` is the dtype of
/// activations and products, bf16 or f16, of parameters that stay f32. `vocab_multiple` pads the product of the head for tensor cores.
///
/// >>> sv.nn.GptConfig.gpt2().parameter_count
/// 124439808
/// >>> sv.nn.GptConfig(65)
/// GptConfig(vocab_size=65, context=128, width=128, layers=4, heads=4)
#[pyclass(name = "GptConfig", module = "selvedge.nn", frozen, eq)]
#[derive(Clone, PartialEq)]
pub struct PyGptConfig(pub GptConfig);

/// The activations with their names in Python.
const ACTIVATIONS: [(&str, Activation); 4] = [
    ("gelu_tanh", Activation::GeluTanh),
    ("gelu", Activation::Gelu),
    ("relu", Activation::Relu),
    ("silu", Activation::Silu),
];

#[pymethods]
impl PyGptConfig {
    #[new]
    #[pyo3(
        signature = (vocab_size, context=InRange(128), width=InRange(128), layers=InRange(4), heads=InRange(4), *, dropout=InRange(0.0), activation="gelu_tanh", bias=true, tied_head=true, norm_eps=InRange(1e-5), compute_dtype=None, vocab_multiple=InRange(1)),
        text_signature = "(vocab_size, context=128, width=128, layers=4, heads=4, *, dropout=0.0, activation='gelu_tanh', bias=True, tied_head=True, norm_eps=1e-5, compute_dtype=None, vocab_multiple=1)"
    )]
    #[allow(clippy::too_many_arguments, reason = "the options of a model")]
    fn new(
        vocab_size: InRange<usize>,
        context: InRange<usize>,
        width: InRange<usize>,
        layers: InRange<usize>,
        heads: InRange<usize>,
        dropout: InRange<f64>,
        activation: &str,
        bias: bool,
        tied_head: bool,
        norm_eps: InRange<f64>,
        compute_dtype: Option<DTypeArgument>,
        vocab_multiple: InRange<usize>,
    ) -> Result<PyGptConfig> {
        let Some((_, activation)) = ACTIVATIONS.iter().find(|(name, _)| *name == activation) else {
            let wanted = "\"gelu_tanh\", \"gelu\", \"relu\" or \"silu\"";
            return Err(invalid("GptConfig", format!("the activation \"{activation}\""), wanted).into());
        };
        let config = GptConfig {
            vocab_size: vocab_size.0,
            context: context.0,
            width: width.0,
            layers: layers.0,
            heads: heads.0,
            dropout: dropout.0,
            activation: *activation,
            has_bias: bias,
            has_tied_head: tied_head,
            norm_eps: norm_eps.0,
            compute_dtype: compute_dtype.map(|dtype| dtype.0),
            vocab_multiple: vocab_multiple.0,
        };
        config.check()?;
        Ok(PyGptConfig(config))
    }

    /// GPT-2's smallest form: 12 layers of width 768, a context of 1024 and 50257 ids.
    #[staticmethod]
    fn gpt2() -> PyGptConfig {
        PyGptConfig(GptConfig::gpt2())
    }

    /// GPT-2's second form: 24 layers of width 1024.
    #[staticmethod]
    fn gpt2_medium() -> PyGptConfig {
        PyGptConfig(GptConfig::gpt2_medium())
    }

    /// GPT-2's third form: 36 layers of width 1280.
    #[staticmethod]
    fn gpt2_large() -> PyGptConfig {
        PyGptConfig(GptConfig::gpt2_large())
    }

    /// GPT-2's largest form: 48 layers of width 1600.
    #[staticmethod]
    fn gpt2_xl() -> PyGptConfig {
        PyGptConfig(GptConfig::gpt2_xl())
    }

    /// Reads the JSON of `to_json`, or the `config.json` of a GPT-2 of Hugging Face.
    #[staticmethod]
    fn from_json(text: &str) -> Result<PyGptConfig> {
        Ok(PyGptConfig(GptConfig::from_json(text)?))
    }

    /// The configuration as JSON, with the names of a `config.json` of Hugging Face's GPT-2.
    fn to_json(&self) -> String {
        self.0.to_json().to_string()
    }

    /// The number of ids.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.0.vocab_size
    }

    /// The longest sequence.
    #[getter]
    fn context(&self) -> usize {
        self.0.context
    }

    /// The size of the embeddings.
    #[getter]
    fn width(&self) -> usize {
        self.0.width
    }

    /// The number of blocks.
    #[getter]
    fn layers(&self) -> usize {
        self.0.layers
    }

    /// The number of attention heads.
    #[getter]
    fn heads(&self) -> usize {
        self.0.heads
    }

    /// The probability of dropout.
    #[getter]
    fn dropout(&self) -> f64 {
        self.0.dropout
    }

    /// The name of the activation.
    #[getter]
    fn activation(&self) -> &'static str {
        ACTIVATIONS
            .iter()
            .find(|(_, activation)| *activation == self.0.activation)
            .map_or("", |(name, _)| name)
    }

    /// True if the products of a block have a bias.
    #[getter]
    fn bias(&self) -> bool {
        self.0.has_bias
    }

    /// True if the head is the token embedding.
    #[getter]
    fn tied_head(&self) -> bool {
        self.0.has_tied_head
    }

    /// The number that norms add to the variance.
    #[getter]
    fn norm_eps(&self) -> f64 {
        self.0.norm_eps
    }

    /// The dtype of activations and products, None for that of the parameters.
    #[getter]
    fn compute_dtype(&self) -> Option<PyDType> {
        self.0.compute_dtype.map(PyDType)
    }

    /// The product of the head has a multiple of this number of ids.
    #[getter]
    fn vocab_multiple(&self) -> usize {
        self.0.vocab_multiple
    }

    /// The number of elements of the parameters.
    #[getter]
    fn parameter_count(&self) -> usize {
        self.0.parameter_count()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.get_type::<PyGptConfig>().getattr("from_json")?, (self.to_json(),)))
    }

    fn __repr__(&self) -> String {
        let GptConfig { vocab_size, context, width, layers, heads, .. } = self.0;
        format!(
            "GptConfig(vocab_size={vocab_size}, context={context}, width={width}, layers={layers}, heads={heads})"
        )
    }
}

/// A decoder-only transformer with GPT-2's architecture: `Gpt(config, seed=1)`. A call takes ids (batch, length) and returns logits
/// (batch, length, vocabulary).
///
/// With a seed, the weights and the dropout follow from it. Otherwise `initializer` and `generator` are as in other layers; the
/// distribution of the weights is that of the GPT-2 paper. `Trainer` trains the model, and so does `TrainingStep`.
///
/// >>> model = sv.nn.Gpt(sv.nn.GptConfig(11, context=8, width=16, layers=1, heads=2), seed=1)
/// >>> model(sv.Tensor([[1, 2, 3]])).shape
/// (1, 3, 11)
#[pyclass(name = "Gpt", module = "selvedge.nn", frozen, extends = PyNnModule)]
pub struct PyGpt {
    model: Mutex<Option<Arc<RwLock<Gpt>>>>,
}

impl PyGpt {
    fn empty() -> PyClassInitializer<PyGpt> {
        PyClassInitializer::from(PyNnModule::empty()).add_subclass(PyGpt { model: Mutex::new(None) })
    }

    /// Returns the model for a trainer.
    pub fn shared(&self) -> Result<Arc<RwLock<Gpt>>> {
        let model = self.model.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(model.ok_or_else(|| invalid("Gpt", "a model without __init__", "Gpt(config)"))?)
    }

    /// Returns a model as an object of Python.
    pub fn object(py: Python<'_>, model: Gpt) -> Result<Bound<'_, PyGpt>> {
        let object = Bound::new(py, PyGpt::empty())?;
        let generator = LanguageModel::generator(&model);
        PyGpt::set(&object, model, generator.as_ref())?;
        Ok(object)
    }

    /// Sets the model, whose dropout draws from a generator of its own if one is given.
    fn set(slf: &Bound<'_, Self>, model: Gpt, generator: Option<&Generator>) -> Result<()> {
        let py = slf.py();
        let recorded = PyDict::new(py);
        recorded.set_item("config", Bound::new(py, PyGptConfig(*model.config()))?)?;
        if let Some(generator) = generator {
            recorded.set_item("generator", Bound::new(py, PyGenerator::from(generator.clone()))?)?;
        }
        // The compute dtype is in the configuration.
        recorded.set_item("initializer", py.None())?;
        let model = Arc::new(RwLock::new(model));
        *slf.get().model.lock().unwrap_or_else(PoisonError::into_inner) = Some(model.clone());
        let layer = Layer::Moded(RwLock::new(Box::new(SharedModel::Gpt(model))));
        PyNnModule::set_layer(slf.as_super(), &py.get_type::<PyGpt>(), layer, &recorded);
        Ok(())
    }
}

#[pymethods]
impl PyGpt {
    #[new]
    #[pyo3(
        signature = (*_arguments, **_keywords),
        text_signature = "(config, *, seed=None, generator=None, initializer=None, device=None, dtype=None)"
    )]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<PyGpt> {
        PyGpt::empty()
    }

    #[pyo3(signature = (config, *, seed=None, generator=None, initializer=None, device=None, dtype=None))]
    #[allow(clippy::too_many_arguments, reason = "the options of a model")]
    fn __init__<'py>(
        slf: &Bound<'py, Self>,
        config: PyRef<'py, PyGptConfig>,
        seed: Option<InRange<u64>>,
        generator: Option<&Bound<'py, PyGenerator>>,
        initializer: InitializerArgument<'_, 'py>,
        device: Option<DeviceArgument>,
        dtype: Option<DTypeArgument>,
    ) -> Result<()> {
        let (py, config) = (slf.py(), config.0);
        let Some(seed) = seed else {
            let source = self::initializer("Gpt", initializer, device, dtype)?;
            let draws = generator_or_default(generator);
            let model = py.detach(|| Gpt::with_dropout_generator(config, &source, &draws))?;
            return PyGpt::set(slf, model, generator.map(|_| &draws));
        };
        if generator.is_some() || initializer.is_some() || dtype.is_some() {
            let found = "a seed with a generator, an initializer or a dtype";
            return Err(invalid("Gpt", found, "a seed alone, or an Initializer with a seed").into());
        }
        let device = device_or_default(device);
        let model = py.detach(|| Gpt::from_seed(config, seed.0, &device))?;
        let generator = LanguageModel::generator(&model);
        PyGpt::set(slf, model, generator.as_ref())
    }

    fn __copy__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let copy = PyNnModule::__copy__(slf.as_super())?;
        let model = Some(slf.get().shared()?);
        *copy.cast::<PyGpt>()?.get().model.lock().unwrap_or_else(PoisonError::into_inner) = model;
        Ok(copy)
    }

    /// Loads the folder of `save`, or of a GPT-2 that Hugging Face publishes in one file. The parameters have the dtype of the file.
    #[staticmethod]
    #[pyo3(signature = (folder, *, device=None))]
    fn load(py: Python<'_>, folder: PathBuf, device: Option<DeviceArgument>) -> Result<Bound<'_, PyGpt>> {
        let device = device_or_default(device);
        PyGpt::object(py, py.detach(|| Gpt::load(folder, &device))?)
    }

    /// Writes `config.json` and `model.safetensors` into a folder, which is created.
    fn save(&self, py: Python<'_>, folder: PathBuf) -> Result<()> {
        let model = self.shared()?;
        Ok(py.detach(|| read(&model).save(folder))?)
    }

    /// The configuration.
    #[getter]
    fn config(&self) -> Result<PyGptConfig> {
        Ok(PyGptConfig(*read(&*self.shared()?).config()))
    }

    /// The device of the parameters.
    #[getter]
    fn device(&self) -> Result<PyDevice> {
        Ok(PyDevice(read(&*self.shared()?).device()))
    }

    /// The dtype of the parameters.
    #[getter]
    fn dtype(&self) -> Result<PyDType> {
        Ok(PyDType(read(&*self.shared()?).dtype()))
    }

    /// The mean cross-entropy of ids (batch, length) and the ids that follow them, in nats an id.
    fn loss(&self, py: Python<'_>, inputs: IndexArgument, targets: IndexArgument) -> Result<PyVariable> {
        let model = self.shared()?;
        let batch = selvedge::nn::Batch { inputs: inputs.0, targets: targets.0 };
        Ok(py.detach(|| read(&model).loss(&batch))?.into())
    }

    /// The new ids of a prompt. Temperature 0 takes the most likely id. `context` is the most ids that the model reads at once; past it
    /// the model goes on from the last half. Call `eval()` before, so that nothing is dropped.
    #[pyo3(
        signature = (ids, *, max_new_ids=InRange(128), temperature=InRange(0.0), top_k=None, top_p=InRange(1.0), min_p=InRange(0.0), repetition_penalty=InRange(1.0), presence_penalty=InRange(0.0), frequency_penalty=InRange(0.0), seed=InRange(0), context=None),
        text_signature = "($self, ids, *, max_new_ids=128, temperature=0.0, top_k=None, top_p=1.0, min_p=0.0, repetition_penalty=1.0, presence_penalty=0.0, frequency_penalty=0.0, seed=0, context=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "the options of a generation")]
    fn generate(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        max_new_ids: InRange<usize>,
        temperature: InRange<f64>,
        top_k: Option<InRange<usize>>,
        top_p: InRange<f64>,
        min_p: InRange<f64>,
        repetition_penalty: InRange<f64>,
        presence_penalty: InRange<f64>,
        frequency_penalty: InRange<f64>,
        seed: InRange<u64>,
        context: Option<InRange<usize>>,
    ) -> Result<Vec<u32>> {
        let prompt = ids_of(&new_tensor(ids, None, None)?)?;
        let options = SamplerOptions {
            temperature: temperature.0,
            top_k: top_k.map(|top_k| top_k.0),
            top_p: top_p.0,
            min_p: min_p.0,
            repetition_penalty: repetition_penalty.0,
            presence_penalty: presence_penalty.0,
            frequency_penalty: frequency_penalty.0,
        };
        let model = self.shared()?;
        let model = read(&model);
        let mut generation = Generation::new(&model, &prompt, Sampler::new(options, seed.0)?)?;
        if let Some(context) = context {
            generation = generation.with_context(context.0)?;
        }
        let mut found = Vec::new();
        while found.len() < max_new_ids.0
            && let Some(id) = py.detach(|| generation.next())
        {
            found.push(id?);
            py.check_signals()?;
        }
        Ok(found)
    }
}
