//! [`MultiHeadAttention`], attention of a sequence to itself.

use crate::error::{Error, Result};
use crate::nn::autograd::{AttentionOptions, packed_attention};
use crate::nn::checks::check_probability;
use crate::nn::module::prefixed;
use crate::nn::{Initializer, Linear, Module, Variable, scaled_dot_product_attention};
use crate::tensor::Generator;

const NAME: &str = "MultiHeadAttention";

/// The form of a [`MultiHeadAttention`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MultiHeadAttentionOptions {
    /// The heads of the queries, which divide the width.
    pub heads: usize,
    /// The heads of keys and values, which divide those of the queries: as many. Fewer make grouped queries.
    pub key_value_heads: usize,
    /// True if a position reads no later one; false by default.
    pub is_causal: bool,
    /// True if both products have a bias, as by default.
    pub has_bias: bool,
}

impl MultiHeadAttentionOptions {
    /// Returns the defaults for this many heads.
    pub fn new(heads: usize) -> MultiHeadAttentionOptions {
        MultiHeadAttentionOptions { heads, key_value_heads: heads, is_causal: false, has_bias: true }
    }
}

/// Computes queries, keys and values of an input (batch, length, width) with one product, their attention for each head, and
/// a second product of the heads' results.
///
/// Parameters have GPT-2's names: `c_attn` is the first product, with the outputs of all queries, then of the keys, then of
/// the values; `c_proj` is the second one, whose weight is a residual's ([`Initializer::with_residual_weights`]).
///
/// ```
/// use selvedge::nn::{Initializer, Module, MultiHeadAttention, MultiHeadAttentionOptions, Variable};
/// use selvedge::{DType, Device, Tensor};
/// let device = Device::cpu();
/// let options = MultiHeadAttentionOptions { is_causal: true, ..MultiHeadAttentionOptions::new(2) };
/// let layer = MultiHeadAttention::new(8, options, &Initializer::new(&device))?;
/// let x = Variable::new(Tensor::ones(&[1, 5, 8], DType::F32, &device)?);
/// assert_eq!(layer.forward(&x)?.shape()[..], [1, 5, 8]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// A clone has the same parameters and generator.
#[derive(Debug, Clone)]
pub struct MultiHeadAttention {
    c_attn: Linear,
    c_proj: Linear,
    width: usize,
    options: MultiHeadAttentionOptions,
    dropout: f64,
    generator: Option<Generator>,
    is_training: bool,
}

impl MultiHeadAttention {
    /// Creates a layer without dropout.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for heads that do not divide the width, key/value heads that do not divide the heads, and
    /// a width of 0; otherwise as [`Linear::new`].
    pub fn new(
        width: usize,
        options: MultiHeadAttentionOptions,
        initializer: &Initializer,
    ) -> Result<MultiHeadAttention> {
        let MultiHeadAttentionOptions { heads, key_value_heads, has_bias, .. } = options;
        if heads == 0 || width == 0 || !width.is_multiple_of(heads) {
            let found = format!("{heads} heads of a width of {width}");
            return Err(Error::invalid(NAME, found, "heads that divide the width"));
        }
        if key_value_heads == 0 || !heads.is_multiple_of(key_value_heads) {
            let found = format!("{key_value_heads} key/value heads for {heads} heads");
            return Err(Error::invalid(NAME, found, "key/value heads that divide the heads"));
        }
        let packed = width + 2 * key_value_heads * (width / heads);
        Ok(MultiHeadAttention {
            c_attn: Linear::with_bias(has_bias, width, packed, initializer)?,
            c_proj: Linear::with_bias(has_bias, width, width, &initializer.for_residual())?,
            width,
            options,
            dropout: 0.0,
            generator: None,
            is_training: true,
        })
    }

    /// Drops each attention probability with this probability in training, by draws of a generator.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a probability outside 0 to 1.
    pub fn with_dropout(self, probability: f64, generator: &Generator) -> Result<MultiHeadAttention> {
        check_probability(NAME, "a dropout", probability)?;
        Ok(MultiHeadAttention { dropout: probability, generator: Some(generator.clone()), ..self })
    }

    /// Returns the size of the last axis of inputs and results.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns `c_attn` and `c_proj`.
    pub(in crate::nn) fn projections(&self) -> [&Linear; 2] {
        [&self.c_attn, &self.c_proj]
    }

    fn attention_options(&self) -> AttentionOptions {
        AttentionOptions {
            is_causal: self.options.is_causal,
            dropout: if self.is_training { self.dropout } else { 0.0 },
            generator: self.generator.clone(),
            ..AttentionOptions::default()
        }
    }

    /// Checks an input of the layer, or of the layer that holds this one.
    pub(super) fn check_input(&self, layer: &'static str, input: &Variable) -> Result<()> {
        let shape = input.shape();
        if shape.rank() == 3 && shape.last() == Some(&self.width) {
            return Ok(());
        }
        let weight = self.c_attn.weight().shape();
        let found = format!("an input of shape {shape} for a weight of shape {weight}");
        Err(Error::invalid(layer, found, format!("(batch, length, width) with a width of {}", self.width)))
    }

    /// Returns (batch, length, outputs of `c_attn`).
    fn packed(&self, input: &Variable) -> Result<Variable> {
        self.check_input(NAME, input)?;
        self.c_attn.forward(input)
    }

    /// Returns the queries, keys and values of an input, each (batch, heads, length, head dimension), the first half of
    /// [`forward`](Module::forward). A key/value cache joins the keys and the values of several calls along axis 2, and
    /// gives them to [`attend`](Self::attend).
    ///
    /// # Errors
    ///
    /// As [`forward`](Module::forward).
    pub fn project(&self, input: &Variable) -> Result<[Variable; 3]> {
        let packed = self.packed(input)?;
        let shape = packed.shape();
        let sizes: Vec<isize> = shape.iter().take(2).map(|&size| size as isize).collect();
        let [heads, key_heads] = [self.options.heads, self.options.key_value_heads];
        let all = (heads + 2 * key_heads) as isize;
        let packed = packed.reshape(&[&sizes[..], &[all, -1]].concat())?;
        let part = |first, count| packed.narrow(2, first, count)?.transpose(1, 2);
        Ok([part(0, heads)?, part(heads, key_heads)?, part(heads + key_heads, key_heads)?])
    }

    /// Returns the result for queries, keys and values, the second half of [`forward`](Module::forward). With more keys than
    /// queries the queries are at the last positions.
    ///
    /// # Errors
    ///
    /// As [`scaled_dot_product_attention`].
    pub fn attend(&self, queries: &Variable, keys: &Variable, values: &Variable) -> Result<Variable> {
        let result = scaled_dot_product_attention(queries, keys, values, &self.attention_options())?;
        self.c_proj.forward(&result.transpose(1, 2)?.flatten(2, 3)?)
    }
}

impl Module for MultiHeadAttention {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        let [heads, key_heads] = [self.options.heads, self.options.key_value_heads];
        let result = packed_attention(&self.packed(input)?, heads, key_heads, &self.attention_options())?;
        self.c_proj.forward(&result)
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        let first = prefixed("c_attn", self.c_attn.named_parameters());
        first.chain(prefixed("c_proj", self.c_proj.named_parameters())).collect()
    }

    fn set_training(&mut self, is_training: bool) {
        self.is_training = is_training;
    }
}
