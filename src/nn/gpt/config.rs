//! [`GptConfig`], the form of a [`Gpt`](super::Gpt).

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::nn::Activation;
use crate::types::DType;

const OPERATION: &str = "GptConfig";

/// The sizes and options of a [`Gpt`](super::Gpt).
///
/// As JSON it has the names of a Hugging Face `config.json` of GPT-2; entries that it does not know are ignored.
///
/// ```
/// use selvedge::nn::GptConfig;
/// assert_eq!(GptConfig::gpt2().parameter_count(), 124_439_808);
/// let tiny = GptConfig::tiny(65);
/// assert_eq!((tiny.layers, tiny.width, tiny.heads, tiny.context), (4, 128, 4, 128));
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GptConfig {
    /// The number of token ids.
    pub vocab_size: usize,
    /// The longest sequence.
    #[serde(rename = "n_positions")]
    pub context: usize,
    /// The size of the embeddings.
    #[serde(rename = "n_embd")]
    pub width: usize,
    /// The number of blocks.
    #[serde(rename = "n_layer")]
    pub layers: usize,
    /// The number of attention heads, which divide the width.
    #[serde(rename = "n_head")]
    pub heads: usize,
    /// The probability of dropout after embeddings, attention and feed-forward, and of attention probabilities.
    #[serde(rename = "resid_pdrop", default)]
    pub dropout: f64,
    /// The activation of the feed-forward.
    #[serde(rename = "activation_function", default)]
    pub activation: Activation,
    /// True if the products of a block have a bias.
    #[serde(default = "yes")]
    pub has_bias: bool,
    /// True if the head is the token embedding.
    #[serde(rename = "tie_word_embeddings", default = "yes")]
    pub has_tied_head: bool,
    /// The number that norms add to the variance.
    #[serde(rename = "layer_norm_epsilon", default = "norm_eps")]
    pub norm_eps: f64,
    /// The dtype of activations and products: that of the parameters, bf16 or f16. The parameters of a model that computes in
    /// bf16 or f16 stay f32, as do the sums of norms and softmax and the loss. Training in f16 needs a
    /// [`LossScale`](crate::nn::LossScale).
    #[serde(default, skip_serializing_if = "Option::is_none", with = "dtype_name")]
    pub compute_dtype: Option<DType>,
    /// The product of the head is computed for a multiple of this number of ids, with rows of zeros after those of the
    /// vocabulary, and its result without them: tensor cores and TMA need sizes that are multiples of 8 or more. Parameters,
    /// logits and losses are those of `vocab_size` ids. 1 adds none.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub vocab_multiple: usize,
}

/// A dtype as its name.
mod dtype_name {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use crate::types::DType;

    pub fn serialize<S: Serializer>(dtype: &Option<DType>, serializer: S) -> Result<S::Ok, S::Error> {
        dtype.map(DType::name).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DType>, D::Error> {
        let name = Option::<String>::deserialize(deserializer)?;
        name.map(|name| name.parse()).transpose().map_err(D::Error::custom)
    }
}

fn one() -> usize {
    1
}

fn is_one(count: &usize) -> bool {
    *count == 1
}

fn yes() -> bool {
    true
}

fn norm_eps() -> f64 {
    1e-5
}

impl GptConfig {
    /// Returns GPT-2's smallest form: 12 layers of width 768 and 12 heads, a context of 1024, 50257 ids, no dropout. It has
    /// 124,439,808 parameters.
    pub fn gpt2() -> GptConfig {
        GptConfig {
            vocab_size: 50257,
            context: 1024,
            width: 768,
            layers: 12,
            heads: 12,
            ..GptConfig::tiny(0)
        }
    }

    /// Returns GPT-2's second form: 24 layers of width 1024 and 16 heads, otherwise as [`gpt2`](Self::gpt2). It has 354,823,168
    /// parameters.
    pub fn gpt2_medium() -> GptConfig {
        GptConfig { width: 1024, layers: 24, heads: 16, ..GptConfig::gpt2() }
    }

    /// Returns GPT-2's third form: 36 layers of width 1280 and 20 heads, otherwise as [`gpt2`](Self::gpt2). It has 774,030,080
    /// parameters.
    pub fn gpt2_large() -> GptConfig {
        GptConfig { width: 1280, layers: 36, heads: 20, ..GptConfig::gpt2() }
    }

    /// Returns GPT-2's largest form: 48 layers of width 1600 and 25 heads, otherwise as [`gpt2`](Self::gpt2). It has
    /// 1,557,611,200 parameters.
    pub fn gpt2_xl() -> GptConfig {
        GptConfig { width: 1600, layers: 48, heads: 25, ..GptConfig::gpt2() }
    }

    /// Returns a form that trains in minutes on a CPU: 4 layers of width 128 and 4 heads, a context of 128, no dropout.
    pub fn tiny(vocab_size: usize) -> GptConfig {
        GptConfig {
            vocab_size,
            context: 128,
            width: 128,
            layers: 4,
            heads: 4,
            dropout: 0.0,
            activation: Activation::GeluTanh,
            has_bias: true,
            has_tied_head: true,
            norm_eps: norm_eps(),
            compute_dtype: None,
            vocab_multiple: one(),
        }
    }

    /// Returns the number of the model's trainable elements, at most `usize::MAX`. A tied head counts once.
    pub fn parameter_count(&self) -> usize {
        let GptConfig { vocab_size, context, width, layers, .. } = *self;
        let per_width = 4 + 9 * usize::from(self.has_bias);
        let block = width.saturating_mul(12).saturating_add(per_width).saturating_mul(width);
        let heads = if self.has_tied_head { 1 } else { 2 };
        let rows = vocab_size.saturating_mul(heads).saturating_add(context).saturating_add(2);
        rows.saturating_mul(width).saturating_add(layers.saturating_mul(block))
    }

    /// Reads a configuration from JSON.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with the place of a fault, and as [`check`](Self::check).
    pub fn from_json(text: &str) -> Result<GptConfig> {
        let config: GptConfig = serde_json::from_str(text)
            .map_err(|error| Error::invalid("GptConfig::from_json", error, "a GPT-2 configuration"))?;
        config.check().map(|()| config)
    }

    /// Returns the configuration as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!(self)
    }

    /// Checks that a model can have this form.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a size of 0, heads that do not divide the width, a dropout outside 0 to 1, a norm's
    /// number that is negative or not finite, and a dtype to compute in other than bf16.
    pub fn check(&self) -> Result<()> {
        let sizes = [
            ("vocab_size", self.vocab_size),
            ("context", self.context),
            ("width", self.width),
            ("layers", self.layers),
            ("heads", self.heads),
            ("vocab_multiple", self.vocab_multiple),
        ];
        if let Some((name, _)) = sizes.iter().find(|(_, size)| *size == 0) {
            return Err(Error::invalid(OPERATION, format!("{name} = 0"), "at least 1"));
        }
        if self.vocab_size.checked_next_multiple_of(self.vocab_multiple).is_none() {
            let found = format!("{} ids padded to a multiple of {}", self.vocab_size, self.vocab_multiple);
            return Err(Error::invalid(OPERATION, found, format!("at most {}", usize::MAX)));
        }
        if !self.width.is_multiple_of(self.heads) {
            let found = format!("{} heads of a width of {}", self.heads, self.width);
            return Err(Error::invalid(OPERATION, found, "heads that divide the width"));
        }
        if !(0.0..=1.0).contains(&self.dropout) {
            return Err(Error::invalid(OPERATION, format!("dropout = {}", self.dropout), "one from 0 to 1"));
        }
        if !(self.norm_eps.is_finite() && self.norm_eps >= 0.0) {
            return Err(Error::invalid(
                OPERATION,
                format!("norm_eps = {}", self.norm_eps),
                "a number from 0 on",
            ));
        }
        match self.compute_dtype {
            None | Some(DType::BF16 | DType::F16) => Ok(()),
            Some(dtype) => {
                let found = format!("compute_dtype = {dtype}");
                Err(Error::invalid(OPERATION, found, "bf16, f16, or none for the parameters' dtype"))
            }
        }
    }
}
