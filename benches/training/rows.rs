//! The rows: models, batches, and PyTorch's forms beside them with their goals.

use selvedge::Result;
use selvedge::nn::{DecoderConfig, GptConfig};

use crate::harness::report::{Failure, Figure};

/// A Llama of 1.1 B parameters, as TinyLlama's `config.json` has it, with a context of 4096.
pub const LLAMA: &str = r#"{"model_type": "llama", "vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 5632,
    "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "hidden_act": "silu",
    "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
    "eos_token_id": null}"#;

/// Dense operations a second of an H100 or H200 SXM. "NVIDIA H100 Tensor Core GPU Architecture", table 1: bf16 by tensor cores, f32
/// by ordinary arithmetic at 1.98 GHz.
const BF16_PEAK: f64 = 989.4e12;
const F32_PEAK: f64 = 66.9e12;

/// A model.
pub enum Model {
    Gpt2 { title: &'static str, name: &'static str, config: fn() -> GptConfig },
    Llama,
}

/// A form of PyTorch beside a row.
pub struct Reference {
    /// The mode of pytorch_gpt.py.
    pub mode: &'static str,
    /// Our speed over its speed, at least.
    pub speed: Option<f64>,
    /// Our peak memory over its peak memory, at most. Without it memory has no figure.
    pub memory: Option<f64>,
}

/// A model with a batch.
pub struct Row {
    /// The name on the command line.
    pub name: &'static str,
    pub model: Model,
    /// Sequences of a step.
    pub batch: usize,
    /// True to compute in bf16 with f32 masters, and false for f32.
    pub is_bf16: bool,
    pub references: &'static [Reference],
    /// The part of the peak that our side alone reaches, at least.
    pub utilization: Option<f64>,
}

const MEMORY: Option<f64> = Some(0.9);
const TUNED: &str = "max-autotune-no-cudagraphs";

const fn gpt2(title: &'static str, name: &'static str, config: fn() -> GptConfig) -> Model {
    Model::Gpt2 { title, name, config }
}

pub const ROWS: [Row; 7] = [
    Row {
        name: "124M-64",
        model: gpt2("GPT-2 124M", "124M", GptConfig::gpt2),
        batch: 64,
        is_bf16: true,
        // Autotuning of PyTorch 2.11 reads memory that is not there in products of 65536 x 50304.
        references: &[
            Reference { mode: "compiled", speed: Some(1.05), memory: MEMORY },
            Reference { mode: "eager", speed: Some(1.35), memory: None },
        ],
        utilization: None,
    },
    Row {
        name: "124M-16",
        model: gpt2("GPT-2 124M", "124M", GptConfig::gpt2),
        batch: 16,
        is_bf16: true,
        references: &[
            Reference { mode: TUNED, speed: Some(1.05), memory: MEMORY },
            Reference { mode: "eager", speed: None, memory: None },
        ],
        utilization: None,
    },
    Row {
        name: "124M-16-f32",
        model: gpt2("GPT-2 124M", "124M", GptConfig::gpt2),
        batch: 16,
        is_bf16: false,
        references: &[Reference { mode: "eager", speed: Some(1.0), memory: None }],
        utilization: None,
    },
    Row {
        name: "350M-16",
        model: gpt2("GPT-2 350M", "350M", GptConfig::gpt2_medium),
        batch: 16,
        is_bf16: true,
        references: &[Reference { mode: "compiled", speed: Some(1.0), memory: MEMORY }],
        utilization: None,
    },
    Row {
        name: "774M-8",
        model: gpt2("GPT-2 774M", "774M", GptConfig::gpt2_large),
        batch: 8,
        is_bf16: true,
        references: &[Reference { mode: "compiled", speed: Some(1.0), memory: MEMORY }],
        utilization: None,
    },
    Row {
        name: "1558M-16",
        model: gpt2("GPT-2 1558M", "1558M", GptConfig::gpt2_xl),
        batch: 16,
        is_bf16: true,
        references: &[],
        utilization: Some(0.45),
    },
    Row {
        name: "llama-4",
        model: Model::Llama,
        batch: 4,
        is_bf16: true,
        references: &[Reference { mode: "compiled", speed: Some(1.0), memory: MEMORY }],
        utilization: None,
    },
];

/// The work of a step.
pub struct Work {
    pub ids: usize,
    /// Floating-point operations.
    pub operations: f64,
    /// Operations a second of the device at most.
    pub peak: f64,
}

impl Work {
    /// Ids a second of a step of milliseconds.
    pub fn ids_per_second(&self, milliseconds: f64) -> f64 {
        1e3 * self.ids as f64 / milliseconds
    }

    /// The part of the peak that a step of milliseconds reaches.
    pub fn utilization(&self, milliseconds: f64) -> f64 {
        self.least_milliseconds() / milliseconds
    }

    /// Milliseconds of a step at the peak.
    pub fn least_milliseconds(&self) -> f64 {
        1e3 * self.operations / self.peak
    }
}

impl Model {
    fn title(&self) -> &'static str {
        match self {
            Model::Gpt2 { title, .. } => title,
            Model::Llama => "Llama 1.1B",
        }
    }

    /// The name of the model in pytorch_gpt.py.
    pub fn reference_name(&self) -> &'static str {
        match self {
            Model::Gpt2 { name, .. } => name,
            Model::Llama => "llama",
        }
    }

    pub fn vocab_size(&self) -> Result<usize> {
        match self {
            Model::Gpt2 { config, .. } => Ok(config().vocab_size),
            Model::Llama => Ok(DecoderConfig::from_json(LLAMA, None)?.vocab_size()),
        }
    }
}

impl Row {
    /// The beginning of the names of its figures.
    pub fn title(&self) -> String {
        let dtype = if self.is_bf16 { "bf16" } else { "f32" };
        format!("{}, batch {}, {dtype}", self.model.title(), self.batch)
    }

    /// Returns whether a figure is one of this row.
    pub fn has(&self, figure: &Figure) -> bool {
        figure.name.strip_prefix(&self.title()).is_some_and(|rest| rest.starts_with(", "))
    }

    /// The work of a step by llm.c's count: an id takes six operations for each parameter, and 6 x layers x width x context for causal
    /// attention.
    pub fn work(&self) -> Result<Work> {
        let (parameters, layers, width, context) = match &self.model {
            Model::Gpt2 { config, .. } => {
                let config = config();
                (config.parameter_count(), config.layers, config.width, config.context)
            }
            Model::Llama => {
                let config = DecoderConfig::from_json(LLAMA, None)?;
                (config.parameter_count(), config.layers(), config.width(), config.context())
            }
        };
        let ids = self.batch * context;
        let operations = 6.0 * ids as f64 * (parameters as f64 + (layers * width * context) as f64);
        Ok(Work { ids, operations, peak: if self.is_bf16 { BF16_PEAK } else { F32_PEAK } })
    }
}

/// The rows of names between commas, or all without names.
pub fn named(names: Option<&str>) -> std::result::Result<Vec<&'static str>, Failure> {
    let known: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    let Some(names) = names else { return Ok(known) };
    let find = |name: &str| {
        let found = known.iter().find(|known| **known == name);
        found.copied().ok_or_else(|| format!("no row '{name}'; the rows are {}", known.join(", ")).into())
    };
    names.split(',').map(find).collect()
}
