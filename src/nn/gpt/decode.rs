//! One new position of each sequence through a [`Gpt`] on the CPU, by the loops of [`host_layers`](crate::nn::host_layers).
//!
//! Tests: `tests/nn/gpt.rs`, which compares them with whole passes.

use super::cache::KeyValueCache;
use super::model::Gpt;
use crate::error::Result;
use crate::gemm::HostEpilogue;
use crate::nn::autograd::is_grad_enabled;
use crate::nn::host_layers::{HostAttention, HostLinear, HostNorm, activate, row};
use crate::nn::layers::{LayerNorm, Linear};
use crate::tensor::Tensor;
use crate::types::DType;

impl Gpt {
    /// Returns the logits (batch, vocabulary) of one new id of each sequence, and takes its keys and values into the cache.
    ///
    /// None for calls that are operations on tensors: of several ids, on an empty cache, with gradients or dropout, and of other
    /// dtypes and devices.
    pub(super) fn decode_on_host(&self, ids: &Tensor, cache: &mut KeyValueCache) -> Result<Option<Tensor>> {
        let config = &self.config;
        let head = self.lm_head.as_ref().unwrap_or_else(|| self.wte.weight());
        let head_dim = config.width / config.heads;
        let is_plain = ids.shape().get(1) == Some(&1)
            && ids.device().is_cpu()
            && !is_grad_enabled()
            && config.compute_dtype.is_none()
            && head.dtype() == DType::F32
            && head.device().is_cpu()
            && self.dropout.as_ref().is_none_or(|dropout| !dropout.is_active())
            && cache.is_on_host(self.blocks.len(), [config.heads, config.context, head_dim]);
        if !is_plain {
            return Ok(None);
        }
        let ids = ids.cast(DType::I64)?.to_vec::<i64>()?;
        let is_known = |id: &i64| usize::try_from(*id).is_ok_and(|id| id < config.vocab_size);
        if !ids.iter().all(is_known) {
            // The embedding's error names the id.
            return Ok(None);
        }
        let (batch, width, past) = (ids.len(), config.width, cache.length());
        let (wte, wpe) = (self.wte.weight().tensor().contiguous()?, self.wpe.weight().tensor().contiguous()?);
        let (wte, position) = (wte.as_slice()?, row(wpe.as_slice()?, width, past));
        let mut x = Vec::with_capacity(batch * width);
        for id in ids {
            x.extend(
                row(wte, width, id as usize).iter().zip(position).map(|(token, position)| token + position),
            );
        }
        let attention = HostAttention {
            heads: config.heads,
            key_heads: config.heads,
            head_dim,
            capacity: config.context,
            scale: 1.0 / (head_dim as f64).sqrt(),
            window: None,
            soft_cap: None,
        };
        let past = vec![past; batch];
        let [mut normalized, mut wide, mut heads, mut next] = [const { Vec::new() }; 4];
        for (index, block) in self.blocks.iter().enumerate() {
            let [c_attn, c_proj] = block.attn().projections();
            norm(block.ln_1()).run(&x, &mut normalized)?;
            linear(c_attn)?.run(&normalized, batch, HostEpilogue::new(), &mut wide)?;
            attention.run(&wide, &past, cache.slices_mut(index)?, &mut heads)?;
            linear(c_proj)?.run(&heads, batch, HostEpilogue::new().residual(&x), &mut next)?;
            std::mem::swap(&mut x, &mut next);
            let [c_fc, c_out] = block.mlp().projections();
            norm(block.ln_2()).run(&x, &mut normalized)?;
            let epilogue = config.activation.epilogue();
            let of_up = HostEpilogue::new().activation(epilogue.unwrap_or_default());
            linear(c_fc)?.run(&normalized, batch, of_up, &mut wide)?;
            if epilogue.is_none() {
                activate(config.activation, &mut wide)?;
            }
            linear(c_out)?.run(&wide, batch, HostEpilogue::new().residual(&x), &mut next)?;
            std::mem::swap(&mut x, &mut next);
        }
        cache.advance(1);
        norm(&self.ln_f).run(&x, &mut normalized)?;
        let mut logits = Vec::new();
        HostLinear::new(head, None, false)?.run(&normalized, batch, HostEpilogue::new(), &mut logits)?;
        Tensor::from_vec(logits, &[batch, config.vocab_size], &self.device()).map(Some)
    }
}

fn linear(layer: &Linear) -> Result<HostLinear> {
    HostLinear::new(layer.weight(), layer.bias(), true)
}

fn norm(norm: &LayerNorm) -> HostNorm<'_> {
    let (weight, bias, eps) = norm.parts();
    HostNorm { weight, bias: Some(bias), eps, has_mean: true, has_offset: false }
}
