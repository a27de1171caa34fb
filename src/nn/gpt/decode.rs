//! One new position of each sequence through a [`Gpt`] on the CPU, by loops over slices.
//!
//! The arithmetic of one position is so small that operations on tensors take several times as long for their dispatch and
//! memory. Products are [`gemm_host_with`], with bias, activation and residual as epilogues; keys and values are written to
//! the cache in place. Logits agree with those of tensors up to rounding.
//!
//! Tests: `tests/nn/gpt.rs`, which compares them with whole passes.

use super::cache::KeyValueCache;
use super::model::Gpt;
use crate::error::{Error, Result};
use crate::gemm::{HostEpilogue, Operation, Product, gemm_host, gemm_host_with};
use crate::nn::autograd::is_grad_enabled;
use crate::nn::layers::{LayerNorm, Linear};
use crate::tensor::Tensor;
use crate::types::DType;

const OPERATION: &str = "Gpt::forward_cached";

impl Gpt {
    /// Returns the logits (batch, vocabulary) of one new id of each sequence, and takes its keys and values into the cache.
    ///
    /// None for calls that are operations on tensors: of several ids, on an empty cache, with gradients or dropout, of other
    /// dtypes and devices, and with the activation by the error function.
    pub(super) fn decode_on_host(&self, ids: &Tensor, cache: &mut KeyValueCache) -> Result<Option<Tensor>> {
        let config = &self.config;
        let Some(activation) = config.activation.epilogue() else { return Ok(None) };
        let head = self.lm_head.as_ref().unwrap_or_else(|| self.wte.weight());
        let is_plain = ids.shape().get(1) == Some(&1)
            && ids.device().is_cpu()
            && !is_grad_enabled()
            && config.compute_dtype.is_none()
            && head.dtype() == DType::F32
            && head.device().is_cpu()
            && self.dropout.as_ref().is_none_or(|dropout| !dropout.is_active())
            && cache
                .is_on_host(self.blocks.len(), [config.heads, config.context, config.width / config.heads]);
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
        let attention = Attention { batch, heads: config.heads, width, context: config.context, past };
        let [mut normalized, mut wide, mut heads, mut next] = [const { Vec::new() }; 4];
        for (index, block) in self.blocks.iter().enumerate() {
            let [c_attn, c_proj] = block.attn().projections();
            normalize(&x, block.ln_1(), &mut normalized)?;
            linear(&normalized, batch, c_attn, HostEpilogue::new(), &mut wide)?;
            attention.run(&wide, cache.slices_mut(index)?, &mut heads)?;
            linear(&heads, batch, c_proj, HostEpilogue::new().residual(&x), &mut next)?;
            std::mem::swap(&mut x, &mut next);
            let [c_fc, c_out] = block.mlp().projections();
            normalize(&x, block.ln_2(), &mut normalized)?;
            linear(&normalized, batch, c_fc, HostEpilogue::new().activation(activation), &mut wide)?;
            linear(&wide, batch, c_out, HostEpilogue::new().residual(&x), &mut next)?;
            std::mem::swap(&mut x, &mut next);
        }
        cache.advance(1);
        normalize(&x, &self.ln_f, &mut normalized)?;
        let head = head.tensor().contiguous()?;
        let mut logits = vec![0.0f32; batch * config.vocab_size];
        let product = Product::new(batch, config.vocab_size, width).b(Operation::Transpose);
        gemm_host(&product, 1.0, &normalized, head.as_slice()?, 0.0, &mut logits)?;
        Tensor::from_slice(&logits, &[batch, config.vocab_size], &self.device()).map(Some)
    }
}

/// A row of a matrix.
fn row(elements: &[f32], width: usize, index: usize) -> &[f32] {
    elements.get(index * width..(index + 1) * width).unwrap_or_default()
}

/// Writes the product of rows and a layer's weight, with the layer's bias, to `result`.
fn linear(
    x: &[f32],
    rows: usize,
    layer: &Linear,
    epilogue: HostEpilogue<'_, f32>,
    result: &mut Vec<f32>,
) -> Result<()> {
    let weight = layer.weight().tensor().contiguous()?;
    let &[inputs, outputs] = &weight.shape()[..] else {
        return Err(Error::invalid(OPERATION, format!("a weight of shape {}", weight.shape()), "a matrix"));
    };
    let bias = layer.bias().map(|bias| bias.tensor().contiguous()).transpose()?;
    let mut epilogue: HostEpilogue<'_, f32> = epilogue;
    if let Some(bias) = &bias {
        epilogue = epilogue.bias_of_columns(bias.as_slice()?);
    }
    result.clear();
    result.resize(rows * outputs, 0.0);
    let product = Product::new(rows, outputs, inputs);
    gemm_host_with(&product, 1.0, x, weight.as_slice()?, 0.0, result, epilogue)
}

/// The sum of a function of each element, in eight lanes.
fn sum(row: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0f32; 8];
    let chunks = row.chunks_exact(lanes.len());
    let rest: f32 = chunks.remainder().iter().map(|&x| of(x)).sum();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, &x)| *lane += of(x));
    }
    lanes.iter().sum::<f32>() + rest
}

/// Writes the layer normalisation of each row to `result`.
fn normalize(x: &[f32], norm: &LayerNorm, result: &mut Vec<f32>) -> Result<()> {
    let (weight, bias, eps) = norm.parts();
    let (weight, bias) = (weight.tensor().contiguous()?, bias.tensor().contiguous()?);
    let (weight, bias): (&[f32], &[f32]) = (weight.as_slice()?, bias.as_slice()?);
    result.clear();
    let width = weight.len() as f32;
    for row in x.chunks_exact(weight.len().max(1)) {
        let mean = sum(row, |x| x) / width;
        let variance = sum(row, |x| (x - mean) * (x - mean)) / width;
        let root = 1.0 / (variance + eps as f32).sqrt();
        let elements = row.iter().zip(weight.iter().zip(bias));
        result.extend(elements.map(|(x, (weight, bias))| (x - mean) * root * weight + bias));
    }
    Ok(())
}

/// The sizes of an attention of one new position.
struct Attention {
    batch: usize,
    heads: usize,
    width: usize,
    context: usize,
    /// Positions in the cache.
    past: usize,
}

impl Attention {
    /// Takes keys and values of packed rows (queries, keys, values) into the cache, and writes the heads' results, (batch,
    /// heads · head dimension).
    fn run(&self, packed: &[f32], [keys, values]: [&mut [f32]; 2], result: &mut Vec<f32>) -> Result<()> {
        let Attention { batch, heads, width, context, past } = *self;
        let (size, length) = (width / heads.max(1), past + 1);
        let of_sequence = heads * context * size;
        result.clear();
        result.resize(batch * width, 0.0);
        let mut scores = vec![0.0f32; heads * length];
        let by_keys = Product::new(1, length, size).b(Operation::Transpose);
        let by_keys = by_keys.batch(heads, size, context * size, length);
        let by_values = Product::new(1, size, length).batch(heads, length, context * size, size);
        let scale = 1.0 / (size.max(1) as f32).sqrt();
        let rows = packed.chunks_exact(3 * width).zip(result.chunks_exact_mut(width));
        let caches = keys.chunks_exact_mut(of_sequence).zip(values.chunks_exact_mut(of_sequence));
        for ((row, result), (keys, values)) in rows.zip(caches) {
            let (queries, new) = row.split_at(width);
            let (new_keys, new_values) = new.split_at(width);
            for (cache, new) in [(&mut *keys, new_keys), (&mut *values, new_values)] {
                let places = cache.chunks_exact_mut(context * size).zip(new.chunks_exact(size));
                places.for_each(|(head, new)| head[past * size..length * size].copy_from_slice(new));
            }
            gemm_host(&by_keys, scale, queries, keys, 0.0, &mut scores)?;
            scores.chunks_exact_mut(length).for_each(softmax);
            gemm_host(&by_values, 1.0, &scores, values, 0.0, result)?;
        }
        Ok(())
    }
}

/// Replaces scores by their probabilities.
fn softmax(row: &mut [f32]) {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.iter_mut().for_each(|x| *x = (*x - largest).exp());
    let factor = 1.0 / sum(row, |x| x);
    row.iter_mut().for_each(|x| *x *= factor);
}
