//! [`TransformerBlock`], attention and feed-forward with residuals.

use crate::error::{Error, Result};
use crate::nn::module::prefixed;
use crate::nn::{
    Dropout, FeedForward, Initializer, LayerNorm, Module, MultiHeadAttention, Recompute, Variable, checkpoint,
};
use crate::tensor::Generator;

const NAME: &str = "TransformerBlock";

/// Computes x + attention(norm(x)), then y + feed_forward(norm(y)), for an input (batch, length, width).
///
/// Parameters have the names of a GPT-2 block: `ln_1`, `attn`, `ln_2` and `mlp`.
///
/// ```
/// use selvedge::nn::{
///     FeedForward, FeedForwardOptions, Initializer, Module, MultiHeadAttention, MultiHeadAttentionOptions,
///     TransformerBlock,
/// };
/// use selvedge::Device;
/// let initializer = Initializer::new(&Device::cpu());
/// let options = MultiHeadAttentionOptions { is_causal: true, ..MultiHeadAttentionOptions::new(2) };
/// let block = TransformerBlock::new(
///     MultiHeadAttention::new(8, options, &initializer)?,
///     FeedForward::new(8, FeedForwardOptions::default(), &initializer)?,
///     &initializer,
/// )?;
/// let names: Vec<String> = block.named_parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names[..3], ["ln_1.weight", "ln_1.bias", "attn.c_attn.weight"]);
/// # Ok::<(), selvedge::Error>(())
/// ```
pub struct TransformerBlock {
    ln_1: LayerNorm,
    attn: MultiHeadAttention,
    ln_2: LayerNorm,
    mlp: FeedForward,
    dropout: Option<Dropout>,
}

impl TransformerBlock {
    /// Creates a block of these layers, with norms of the attention's width and without dropout.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for layers of different widths; otherwise as [`LayerNorm::new`].
    pub fn new(
        attn: MultiHeadAttention,
        mlp: FeedForward,
        initializer: &Initializer,
    ) -> Result<TransformerBlock> {
        let width = attn.width();
        if mlp.width() != width {
            let found = format!("an attention of width {width} and a feed-forward of width {}", mlp.width());
            return Err(Error::invalid(NAME, found, "equal widths"));
        }
        let norm = || LayerNorm::new(&[width], initializer);
        Ok(TransformerBlock { ln_1: norm()?, attn, ln_2: norm()?, mlp, dropout: None })
    }

    /// Drops elements of the attention's and of the feed-forward's result with this probability in training, by draws of a
    /// generator. [`MultiHeadAttention::with_dropout`] drops attention probabilities.
    ///
    /// # Errors
    ///
    /// As [`Dropout::new`].
    pub fn with_dropout(self, probability: f64, generator: &Generator) -> Result<TransformerBlock> {
        Ok(TransformerBlock { dropout: Some(Dropout::new(probability, generator)?), ..self })
    }

    /// Sets the number that both norms add to the variance.
    ///
    /// # Errors
    ///
    /// As [`LayerNorm::with_eps`].
    pub fn with_eps(self, eps: f64) -> Result<TransformerBlock> {
        Ok(TransformerBlock { ln_1: self.ln_1.with_eps(eps)?, ln_2: self.ln_2.with_eps(eps)?, ..self })
    }

    /// Returns the norm before the attention.
    pub fn ln_1(&self) -> &LayerNorm {
        &self.ln_1
    }

    /// Returns the normalisation of the feed-forward's input.
    pub(in crate::nn) fn ln_2(&self) -> &LayerNorm {
        &self.ln_2
    }

    /// Returns the feed-forward.
    pub(in crate::nn) fn mlp(&self) -> &FeedForward {
        &self.mlp
    }

    /// Returns the attention.
    pub fn attn(&self) -> &MultiHeadAttention {
        &self.attn
    }

    /// Returns the result for an input and the attention's result for it: [`forward`](Module::forward) after the attention,
    /// which a caller with a key/value cache computes by [`MultiHeadAttention::attend`].
    ///
    /// # Errors
    ///
    /// As [`forward`](Module::forward).
    pub fn after_attention(&self, input: &Variable, attention: &Variable) -> Result<Variable> {
        let [x, added] = self.after_attention_parts(input, attention, Recompute::Nothing)?;
        x + added
    }

    /// Returns the two summands of [`after_attention`](Self::after_attention).
    fn after_attention_parts(
        &self,
        input: &Variable,
        attention: &Variable,
        recompute: Recompute,
    ) -> Result<[Variable; 2]> {
        let attention = self.dropped(attention)?;
        if recompute == Recompute::FeedForward {
            let x = (input + attention)?;
            let block = self.shared();
            let added = checkpoint(move |x| block.feed_forward(&block.ln_2.forward(&x[0])?), &[&x])?;
            return Ok([x, added]);
        }
        let [x, normalized] = self.ln_2.forward_sum(input, &attention)?;
        let added = self.feed_forward(&normalized)?;
        Ok([x, added])
    }

    fn feed_forward(&self, normalized: &Variable) -> Result<Variable> {
        self.dropped(&self.mlp.forward(normalized)?)
    }

    /// Returns a block of the same parameters, in the mode that this one has now.
    fn shared(&self) -> TransformerBlock {
        let TransformerBlock { ln_1, attn, ln_2, mlp, dropout } = self;
        TransformerBlock {
            ln_1: ln_1.clone(),
            attn: attn.clone(),
            ln_2: ln_2.clone(),
            mlp: mlp.shared(),
            dropout: dropout.clone(),
        }
    }

    /// Returns the result for an input, with a backward that computes it again. The bits are those of
    /// [`forward_parts`](Self::forward_parts): a norm of a sum has the bits of the sum and its norm.
    pub(in crate::nn) fn forward_recomputed(&self, input: &Variable) -> Result<Variable> {
        let block = self.shared();
        checkpoint(move |inputs| block.forward(&inputs[0]), &[input])
    }

    /// Returns the two summands of the result for an input, which may be given as two summands itself. Each sum is part of the pass of
    /// the norm behind it. A backward computes the feed-forward again with [`Recompute::FeedForward`].
    ///
    /// # Errors
    ///
    /// As [`forward`](Module::forward).
    pub(in crate::nn) fn forward_parts(
        &self,
        input: &Variable,
        added: Option<&Variable>,
        recompute: Recompute,
    ) -> Result<[Variable; 2]> {
        self.attn.check_input(NAME, input)?;
        let [x, normalized] = match added {
            Some(added) => self.ln_1.forward_sum(input, added)?,
            None => [input.clone(), self.ln_1.forward(input)?],
        };
        self.after_attention_parts(&x, &self.attn.forward(&normalized)?, recompute)
    }

    fn dropped(&self, x: &Variable) -> Result<Variable> {
        self.dropout.as_ref().map_or_else(|| Ok(x.clone()), |dropout| dropout.forward(x))
    }
}

impl Module for TransformerBlock {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        let [x, added] = self.forward_parts(input, None, Recompute::Nothing)?;
        x + added
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        let layers: [(&str, &dyn Module); 4] =
            [("ln_1", &self.ln_1), ("attn", &self.attn), ("ln_2", &self.ln_2), ("mlp", &self.mlp)];
        layers.into_iter().flat_map(|(name, layer)| prefixed(name, layer.named_parameters())).collect()
    }

    fn set_training(&mut self, is_training: bool) {
        self.attn.set_training(is_training);
        self.mlp.set_training(is_training);
        if let Some(dropout) = &mut self.dropout {
            dropout.set_training(is_training);
        }
    }
}
