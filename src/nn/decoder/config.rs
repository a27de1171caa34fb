//! [`DecoderConfig`], the description of a decoder.

use super::names::WeightNames;
use super::rotary::{Rotary, RotaryScaling};
use crate::nn::{Activation, SamplerOptions};

/// The description of a [`Decoder`](super::Decoder): sizes, and the form of each part.
///
/// [`from_json`](Self::from_json) reads the `config.json` of a Hugging Face folder of these families (`model_type`): `gpt2`, `llama`,
/// `mistral`, `qwen2`, `qwen3`, `gemma`, `gemma2`, `gemma3_text` and `phi3`.
///
/// ```
/// use selvedge::nn::DecoderConfig;
/// let text = r#"{"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12,
///     "eos_token_id": 50256}"#;
/// let config = DecoderConfig::from_json(text, None)?;
/// assert_eq!((config.layers(), config.head_dim(), config.end_ids()), (12, 64, &[50256][..]));
/// assert_eq!(config.parameter_count(), 124_439_808);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DecoderConfig {
    pub(super) vocab_size: usize,
    pub(super) context: usize,
    pub(super) width: usize,
    /// The width between the products of the feed-forward.
    pub(super) hidden: usize,
    pub(super) heads: usize,
    pub(super) key_heads: usize,
    pub(super) head_dim: usize,
    pub(super) layers: Vec<LayerConfig>,
    pub(super) norm: NormConfig,
    /// True if the results of attention and feed-forward are normalised too, before the residual takes them.
    pub(super) has_four_norms: bool,
    /// True if each head of the queries and the keys is normalised before the rotation.
    pub(super) has_head_norms: bool,
    /// True if a table of positions is added to the embeddings.
    pub(super) has_learned_positions: bool,
    /// The rotary settings, which layers name by their index.
    pub(super) rotary: Vec<Rotary>,
    pub(super) activation: Activation,
    /// True if the feed-forward is down(activation(gate) · up), false if it is down(activation(up)).
    pub(super) is_gated: bool,
    pub(super) biases: Biases,
    /// The limit c of scores x, which become c tanh(x / c).
    pub(super) score_cap: Option<f64>,
    pub(super) logit_cap: Option<f64>,
    /// The factor of the embeddings, but not of a tied head.
    pub(super) embedding_scale: Option<f64>,
    pub(super) has_tied_head: bool,
    pub(super) names: &'static WeightNames,
    /// True if one weight has queries, keys and values, and one has gate and up.
    pub(super) is_packed: bool,
    /// True if weights are stored as (inputs, outputs).
    pub(super) is_input_major: bool,
    pub(super) end_ids: Vec<u32>,
    pub(super) pad_id: Option<u32>,
    pub(super) sampler: SamplerOptions,
    /// The text of config.json.
    pub(super) json: String,
    /// The text of generation_config.json.
    pub(super) generation_json: Option<String>,
}

/// The form of one layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct LayerConfig {
    /// The number of keys that a query reads, its own included.
    pub window: Option<usize>,
    /// The index of the rotary settings.
    pub rotary: Option<usize>,
    /// The factor of the scores.
    pub score_scale: f64,
}

/// The form of the norms.
#[derive(Debug, Clone, Copy)]
pub(super) struct NormConfig {
    pub kind: NormKind,
    pub eps: f64,
    /// True if the factor is 1 + weight.
    pub has_offset: bool,
}

/// The statistic that a norm divides by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NormKind {
    /// The standard deviation, of elements less their mean; with a bias.
    Layer,
    /// The root mean square.
    Rms,
}

/// The products that have a bias.
#[derive(Debug, Clone, Copy)]
pub(super) struct Biases {
    /// The products of queries, keys and values.
    pub projections: bool,
    /// The product after attention.
    pub output: bool,
    pub feed_forward: bool,
}

impl DecoderConfig {
    /// Returns the number of token ids.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// Returns the number of positions that the model was made for. A model with learned positions has no others; rotary positions
    /// go on, with a warning.
    pub fn context(&self) -> usize {
        self.context
    }

    /// Returns the size of the embeddings.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of layers.
    pub fn layers(&self) -> usize {
        self.layers.len()
    }

    /// Returns the number of query heads.
    pub fn heads(&self) -> usize {
        self.heads
    }

    /// Returns the number of key and value heads, which divides that of the query heads.
    pub fn key_heads(&self) -> usize {
        self.key_heads
    }

    /// Returns the size of a head, which need not be width / heads.
    pub fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// Returns the number of keys that a query of a layer reads, its own included; `None` for all.
    pub fn window(&self, layer: usize) -> Option<usize> {
        self.layers.get(layer).and_then(|layer| layer.window)
    }

    /// Returns the ids that end a generation: those of generation_config.json, or else of config.json.
    pub fn end_ids(&self) -> &[u32] {
        &self.end_ids
    }

    /// Returns the id that fills a batch of sequences of different lengths.
    pub fn pad_id(&self) -> Option<u32> {
        self.pad_id
    }

    /// Returns the choice of ids that generation_config.json describes: draws of its temperature, top-k, top-p and min-p if `do_sample`
    /// is true, else the most likely id; and its repetition penalty. A key that is missing changes nothing.
    pub fn sampler(&self) -> SamplerOptions {
        self.sampler
    }

    /// Returns whether the token embedding is the head too.
    pub fn has_tied_head(&self) -> bool {
        self.has_tied_head
    }

    /// Returns the text of config.json.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Returns the number of the model's elements, at most `usize::MAX`. A tied head counts once.
    pub fn parameter_count(&self) -> usize {
        let counts = super::parameters::specifications(self)
            .into_iter()
            .map(|parameter| parameter.shape.iter().fold(1usize, |count, &size| count.saturating_mul(size)));
        counts.fold(0, usize::saturating_add)
    }

    /// Returns the number of elements of the heads of queries, keys and values.
    pub(super) fn projection_widths(&self) -> [usize; 3] {
        [self.heads, self.key_heads, self.key_heads].map(|heads| heads * self.head_dim)
    }

    /// Returns whether the rotary frequencies of all positions depend on the total length.
    pub(super) fn has_switch(&self) -> bool {
        self.rotary.iter().any(|rotary| matches!(rotary.scaling, RotaryScaling::LongRope { .. }))
    }

    /// Returns whether a total length crosses a switch of longrope that a past length has not crossed.
    pub(super) fn crosses_switch(&self, past: usize, total: usize) -> bool {
        self.rotary.iter().any(|rotary| rotary.is_long(past) != rotary.is_long(total))
    }
}
