//! `selvedge.Decoder`: a transformer of a published model.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use selvedge::nn::{
    Decoder, DecoderGeneration, DecoderOptions, GenerationOptions, LoraOptions, Module, TextLoss, Variable,
    no_grad,
};
use selvedge::{DType, Tensor};

use crate::arguments::{DTypeArgument, DeviceArgument, InRange};
use crate::device::{PyDevice, device_or_default};
use crate::dtype::PyDType;
use crate::error::{Result, invalid, wrong_type};
use crate::nested::is_sequence;
use crate::nn::dict_of;
use crate::tensor::{PyTensor, new_tensor};

/// A decoder-only transformer of a published model: GPT-2, Llama, Mistral, Qwen 2 and 3, Gemma 1 to 3 or Phi 3.
///
/// `Decoder.load(folder)` loads a folder as Hugging Face publishes it.
#[pyclass(name = "Decoder", module = "selvedge", frozen)]
pub struct PyDecoder(Mutex<Arc<Decoder>>);

impl From<Decoder> for PyDecoder {
    fn from(model: Decoder) -> PyDecoder {
        PyDecoder(Mutex::new(Arc::new(model)))
    }
}

impl PyDecoder {
    /// Returns the model, which nothing replaces while it is used.
    pub fn shared(&self) -> Arc<Decoder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the model.
    ///
    /// # Errors
    ///
    /// An invalid argument if a trainer or another thread uses the model.
    fn change<R>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Decoder) -> selvedge::Result<R>,
    ) -> selvedge::Result<R> {
        let mut model = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match Arc::get_mut(&mut model) {
            Some(model) => work(model),
            None => {
                let wanted = "one that no Trainer and no other thread uses; delete the trainer before";
                Err(invalid(operation, "a model in use", wanted))
            }
        }
    }
}

/// Returns the ids of a sequence.
pub fn ids_of(tensor: &Tensor) -> Result<Vec<u32>> {
    // A list without elements has a dtype of its own.
    if tensor.count() == 0 {
        return Ok(Vec::new());
    }
    if !tensor.dtype().is_integer() {
        return Err(wrong_type("ids", tensor.dtype().name(), "integers").into());
    }
    if tensor.rank() != 1 {
        let found = format!("a prompt of shape {:?}", tensor.shape());
        return Err(invalid("ids", found, "a list of ids, or a list of such lists").into());
    }
    let id = |id: i64| {
        u32::try_from(id).map_err(|_| invalid("ids", format!("id {id}"), "ids from 0 to 4294967295").into())
    };
    tensor.cast(DType::I64)?.to_vec::<i64>()?.into_iter().map(id).collect()
}

/// Returns the ids of each prompt, and whether they came as one prompt alone.
fn prompts(data: &Bound<'_, PyAny>) -> Result<(Vec<Vec<u32>>, bool)> {
    if is_sequence(data) && data.get_item(0).is_ok_and(|first| first.extract::<i64>().is_err()) {
        let mut all = Vec::new();
        for item in data.try_iter()? {
            all.push(ids_of(&new_tensor(&item?, None, None)?)?);
        }
        return Ok((all, false));
    }
    let tensor = new_tensor(data, None, None)?;
    if tensor.rank() < 2 {
        return Ok((vec![ids_of(&tensor)?], true));
    }
    let rows = (0..tensor.shape()[0]).map(|row| ids_of(&tensor.select(0, row as isize)?));
    Ok((rows.collect::<Result<_>>()?, false))
}

#[pymethods]
impl PyDecoder {
    /// Loads `config.json`, `generation_config.json` if there is one, and `model.safetensors` or its shards. Without a dtype the
    /// parameters have that of the stored embedding, but f32 on the CPU for 16 bits.
    #[staticmethod]
    ///
    /// `compute_dtype` is the dtype of activations and products, such as bf16 for the training of f32 parameters.
    #[pyo3(signature = (folder, *, device=None, dtype=None, compute_dtype=None))]
    fn load(
        py: Python<'_>,
        folder: PathBuf,
        device: Option<DeviceArgument>,
        dtype: Option<DTypeArgument>,
        compute_dtype: Option<DTypeArgument>,
    ) -> Result<PyDecoder> {
        let device = device_or_default(device);
        let [dtype, compute_dtype] = [dtype, compute_dtype].map(|dtype| dtype.map(|dtype| dtype.0));
        let options = DecoderOptions { dtype, compute_dtype };
        Ok(py.detach(|| Decoder::load(folder, &device, &options))?.into())
    }

    /// Adds adapters of low rank (LoRA) to linear layers, which are the parameters from then on. `alpha` is by default twice the rank;
    /// `layers` are names of layers or their ends, such as "q_proj", by default the projections of queries and values.
    #[pyo3(signature = (rank, *, alpha=None, layers=None, seed=InRange(1)), text_signature = "($self, rank, *, alpha=None, layers=None, seed=1)")]
    fn add_lora(
        &self,
        py: Python<'_>,
        rank: InRange<usize>,
        alpha: Option<InRange<f64>>,
        layers: Option<Vec<String>>,
        seed: InRange<u64>,
    ) -> Result<()> {
        let options = LoraOptions { layers, ..LoraOptions::new(rank.0) };
        let options = LoraOptions { alpha: alpha.map_or(options.alpha, |alpha| alpha.0), ..options };
        Ok(py.detach(|| self.change("add_lora", |model| model.add_lora(&options, seed.0)))?)
    }

    /// Adds the adapters of a folder that `save_lora` or peft wrote.
    fn load_lora(&self, py: Python<'_>, folder: PathBuf) -> Result<()> {
        Ok(py.detach(|| self.change("load_lora", |model| model.load_lora(folder)))?)
    }

    /// Adds the adapters to the weights, and removes them.
    fn merge_lora(&self, py: Python<'_>) -> Result<()> {
        Ok(py.detach(|| self.change("merge_lora", Decoder::merge_lora))?)
    }

    /// Writes the adapters into a folder, as peft does. `base` is the name of the base model there.
    fn save_lora(&self, py: Python<'_>, folder: PathBuf, base: &str) -> Result<()> {
        Ok(py.detach(|| self.shared().save_lora(folder, base))?)
    }

    /// The rank of the adapters, None without adapters.
    #[getter]
    fn lora_rank(&self) -> Option<usize> {
        self.shared().lora().map(|options| options.rank)
    }

    /// The tensors of the parameters by name; with adapters, theirs alone. Later steps do not change them.
    fn state_dict<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let tensors = py.detach(|| self.shared().state_dict());
        Ok(dict_of(py, tensors)?)
    }

    /// Writes the files of a folder, which is created. transformers loads them.
    fn save(&self, py: Python<'_>, folder: PathBuf) -> Result<()> {
        Ok(py.detach(|| self.shared().save(folder))?)
    }

    /// The number of ids.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.shared().config().vocab_size()
    }

    /// The number of positions that the decoder was made for.
    #[getter]
    fn context(&self) -> usize {
        self.shared().config().context()
    }

    /// The number of elements of the parameters.
    #[getter]
    fn parameter_count(&self) -> usize {
        self.shared().config().parameter_count()
    }

    /// The ids that end a sequence.
    #[getter]
    fn end_ids(&self) -> Vec<u32> {
        self.shared().config().end_ids().to_vec()
    }

    /// The device of the parameters.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.shared().device())
    }

    /// The dtype of the parameters.
    #[getter]
    fn dtype(&self) -> PyDType {
        PyDType(self.shared().dtype())
    }

    /// The logits of ids: (batch, length, vocabulary) of shape (batch, length), and (length, vocabulary) of one sequence.
    fn logits(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> Result<PyTensor> {
        let model = self.shared();
        let ids = new_tensor(ids, None, Some(model.device()))?;
        let logits = py.detach(|| {
            let is_one = ids.rank() == 1;
            let ids = if is_one { ids.unsqueeze(0)? } else { ids };
            let logits = no_grad(|| model.forward(&Variable::new(ids)))?.tensor();
            if is_one { logits.select(0, 0) } else { Ok(logits) }
        })?;
        Ok(logits.into())
    }

    /// The perplexity of a text's ids: the exponential of the mean of -log p(id | ids before it).
    ///
    /// The model reads windows of `context` ids, by default as many as it was made for, which begin `stride` ids apart, by default a context.
    /// Each id counts once, in the first window that has it, but for the first id of the text. `selvedge eval --model` prints the same number.
    ///
    ///     model.perplexity(tokenizer.encode(text), stride=512)
    #[pyo3(signature = (ids, *, context=None, stride=None))]
    fn perplexity(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        context: Option<InRange<usize>>,
        stride: Option<InRange<usize>>,
    ) -> Result<f64> {
        let (model, ids) = (self.shared(), ids_of(&new_tensor(ids, None, None)?)?);
        let mut total = TextLoss::default();
        let mut losses =
            model.text_losses(&ids, context.map(|count| count.0), stride.map(|count| count.0))?;
        while let Some(loss) = py.detach(|| losses.next()) {
            total += loss?;
            py.check_signals()?;
        }
        Ok(total.perplexity())
    }

    /// The new ids of a prompt, or of each prompt of a list, which may differ in length, with the id that ended it.
    ///
    /// Temperature 0 takes the most likely id. Sequence i draws from seed + i, whatever the other sequences are. `end_ids` are by
    /// default those of the model; an empty list ends none. `prefill_chunk` is the most ids of each prompt that one pass reads; long
    /// prompts in parts take less memory. With `batch_invariant` the bits of a prompt's logits depend neither on the other prompts nor on
    /// such parts. `callback(step, ids)` gets the new id of each sequence after each step,
    /// None for one that has ended, and stops the generation by returning False.
    #[pyo3(
        signature = (ids, *, max_new_ids=InRange(128), temperature=InRange(0.0), top_k=None, top_p=InRange(1.0), min_p=InRange(0.0), repetition_penalty=InRange(1.0), presence_penalty=InRange(0.0), frequency_penalty=InRange(0.0), seed=InRange(0), end_ids=None, prefill_chunk=None, batch_invariant=false, callback=None),
        text_signature = "($self, ids, *, max_new_ids=128, temperature=0.0, top_k=None, top_p=1.0, min_p=0.0, repetition_penalty=1.0, presence_penalty=0.0, frequency_penalty=0.0, seed=0, end_ids=None, prefill_chunk=None, batch_invariant=False, callback=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "the options of a generation")]
    fn generate<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        max_new_ids: InRange<usize>,
        temperature: InRange<f64>,
        top_k: Option<InRange<usize>>,
        top_p: InRange<f64>,
        min_p: InRange<f64>,
        repetition_penalty: InRange<f64>,
        presence_penalty: InRange<f64>,
        frequency_penalty: InRange<f64>,
        seed: InRange<u64>,
        end_ids: Option<Vec<InRange<u32>>>,
        prefill_chunk: Option<InRange<usize>>,
        batch_invariant: bool,
        callback: Option<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let (prompts, is_one) = prompts(ids)?;
        let mut options = GenerationOptions {
            max_new_ids: max_new_ids.0,
            end_ids: end_ids.map(|ids| ids.into_iter().map(|id| id.0).collect()),
            seed: seed.0,
            prefill_chunk: prefill_chunk.map(|count| count.0),
            is_batch_invariant: batch_invariant,
            ..GenerationOptions::default()
        };
        options.sampler.temperature = temperature.0;
        options.sampler.top_k = top_k.map(|top_k| top_k.0);
        options.sampler.top_p = top_p.0;
        options.sampler.min_p = min_p.0;
        options.sampler.repetition_penalty = repetition_penalty.0;
        options.sampler.presence_penalty = presence_penalty.0;
        options.sampler.frequency_penalty = frequency_penalty.0;
        let model = self.shared();
        let mut generation = DecoderGeneration::new(&model, &prompts, &options)?;
        let mut found = vec![Vec::new(); prompts.len()];
        let mut step = 0usize;
        while let Some(new) = py.detach(|| generation.next()) {
            let new = new?;
            for (ids, id) in found.iter_mut().zip(&new) {
                ids.extend(*id);
            }
            py.check_signals()?;
            if let Some(callback) = &callback {
                let answer = callback.call1((step, new))?;
                if answer.cast::<PyBool>().is_ok_and(|answer| !answer.is_true()) {
                    break;
                }
            }
            step += 1;
        }
        Ok(match found.pop() {
            Some(ids) if is_one => ids.into_pyobject(py)?.into_any(),
            last => {
                found.extend(last);
                found.into_pyobject(py)?.into_any()
            }
        })
    }

    fn __repr__(&self) -> String {
        let model = self.shared();
        let config = model.config();
        let (layers, width, vocab_size) = (config.layers(), config.width(), config.vocab_size());
        format!("Decoder(layers={layers}, width={width}, vocab_size={vocab_size})")
    }
}
