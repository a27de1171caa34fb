//! One new position of each sequence through a [`Decoder`] on the CPU, by the loops of [`host_layers`](crate::nn::host_layers).
//!
//! Invariant: the cache is as operations on tensors leave it, so steps and passes of several ids follow each other in any order.
//!
//! Tests: `tests/nn/decoder.rs` and `tests/nn/lora.rs`, which compare steps with whole passes.

use super::block::{Block, FeedForward, FeedForwardForm};
use super::cache::{DecoderCache, NewPositions};
use super::model::Decoder;
use super::parameters::{Norm, Projection};
use super::rotation::Angles;
use crate::error::Result;
use crate::gemm::HostEpilogue;
use crate::nn::host_layers::{HostAttention, HostLinear, activate, limit, row};
use crate::nn::is_grad_enabled;
use crate::tensor::Tensor;
use crate::types::DType;

/// A step under way: the values of one position of each sequence.
struct HostStep<'a> {
    /// The positions of each sequence before the new one.
    past: &'a [usize],
    /// The angles of each rotary setting, of all positions.
    angles: &'a [Angles],
    /// The input of a block, then its result, (batch, width).
    x: Vec<f32>,
    normalized: Vec<f32>,
    /// Queries, keys and values; or gate and up.
    wide: Vec<f32>,
    /// The operand of the last product of an attention or a feed-forward.
    inner: Vec<f32>,
    next: Vec<f32>,
}

impl Decoder {
    /// Returns the logits (batch, vocabulary) of one new id of each sequence, and takes its keys and values into the cache. `None` if
    /// the step is operations on tensors: of several ids, with gradients, of other dtypes and devices, and where the rotary
    /// frequencies of all positions change.
    pub(super) fn decode_on_host(&self, ids: &Tensor, cache: &mut DecoderCache) -> Result<Option<Tensor>> {
        let batch = ids.shape().first().copied().unwrap_or(0);
        let Some(x) = self.hidden_on_host(ids, &vec![1; batch], cache)? else { return Ok(None) };
        let logits = self.logits_on_host(&x, batch)?;
        Tensor::from_vec(logits, &[batch, self.config.vocab_size], &self.device()).map(Some)
    }

    /// Returns the logits (batch, vocabulary) of the last of the first `counts[i]` ids of each sequence, each id by a step of its own.
    /// `None` as [`decode_on_host`](Self::decode_on_host): the cache is then as it was.
    pub(super) fn prefill_on_host(
        &self,
        ids: &Tensor,
        counts: &[usize],
        cache: &mut DecoderCache,
    ) -> Result<Option<Tensor>> {
        let (batch, vocab_size) = (counts.len(), self.config.vocab_size);
        let mut logits = vec![0.0; batch * vocab_size];
        for at in 0..counts.iter().copied().max().unwrap_or(0) {
            let new: Vec<usize> = counts.iter().map(|&count| usize::from(at < count)).collect();
            let Some(x) = self.hidden_on_host(&ids.narrow(1, at, 1)?, &new, cache)? else {
                let read: Vec<usize> = counts.iter().map(|&count| count.min(at)).collect();
                cache.rewind(&read);
                return Ok(None);
            };
            if counts.iter().all(|&count| count != at + 1) {
                continue;
            }
            let all = self.logits_on_host(&x, batch)?;
            let rows = logits.chunks_exact_mut(vocab_size).zip(all.chunks_exact(vocab_size)).zip(counts);
            rows.filter(|(_, count)| **count == at + 1).for_each(|((to, from), _)| to.copy_from_slice(from));
        }
        Tensor::from_vec(logits, &[batch, vocab_size], &self.device()).map(Some)
    }

    /// Returns the result of all layers (batch, width) for one id of each sequence, of which those with a count of 1 are new. `None` as
    /// [`decode_on_host`](Self::decode_on_host).
    fn hidden_on_host(
        &self,
        ids: &Tensor,
        counts: &[usize],
        cache: &mut DecoderCache,
    ) -> Result<Option<Vec<f32>>> {
        let &[batch, 1] = &ids.shape()[..] else { return Ok(None) };
        if !self.device().is_cpu() || !ids.device().is_cpu() || is_grad_enabled() {
            return Ok(None);
        }
        let dtype = self.pass_dtype();
        if dtype != DType::F32 || self.dtype() != DType::F32 {
            log::debug!("decoding on the CPU runs by operations on tensors: {dtype}, not f32");
            return Ok(None);
        }
        cache.check(self.cache_sizes(), ids)?;
        let past = cache.past(batch);
        let before = past.iter().copied().max().unwrap_or(0);
        let total = NewPositions { past: &past, counts }.longest();
        self.check_ids(ids, total)?;
        let changes_angles = before > 0 && self.config.crosses_switch(before, total);
        let token_ids = ids.cast(DType::I64)?.to_vec::<i64>()?;
        let is_known = |id: &i64| usize::try_from(*id).is_ok_and(|id| id < self.config.vocab_size);
        if changes_angles || !token_ids.iter().all(is_known) {
            // The embedding's error names the id.
            return Ok(None);
        }
        // A sequence without a new id writes behind its last position, where keys and values have no meaning.
        cache.make_room(self.cache_sizes(), [batch, before + 1], DType::F32, &self.device())?;
        let angles = self
            .tables
            .iter()
            .map(|table| table.covering(before + 1, before + 1, DType::F32, &self.device()))
            .collect::<Result<Vec<Angles>>>()?;
        let mut step = HostStep {
            past: &past,
            angles: &angles,
            x: self.embedded(&token_ids, &past)?,
            normalized: Vec::new(),
            wide: Vec::new(),
            inner: Vec::new(),
            next: Vec::new(),
        };
        for (index, block) in self.weights.blocks.iter().enumerate() {
            let names = self.config.names;
            let _traced =
                crate::trace::span("layer", || (format!("{}.{index}", names.layers).into(), Vec::new()));
            block.attend_on_host(&mut step, cache)?;
            block.feed_forward_on_host(&mut step)?;
        }
        cache.advance(ids, counts, self.config.has_switch())?;
        Ok(Some(step.x))
    }

    /// Returns the logits of the layers' result for a batch.
    fn logits_on_host(&self, x: &[f32], batch: usize) -> Result<Vec<f32>> {
        let mut normalized = Vec::new();
        self.weights.final_norm.on_host().run(x, &mut normalized)?;
        let head = self.weights.head.as_ref().unwrap_or(&self.weights.embedding);
        let mut logits = Vec::new();
        HostLinear::new(head, None, false)?.run(&normalized, batch, HostEpilogue::new(), &mut logits)?;
        if let Some(cap) = self.config.logit_cap {
            limit(&mut logits, cap);
        }
        Ok(logits)
    }

    /// Returns the embeddings of ids that are in the vocabulary, (batch, width).
    fn embedded(&self, ids: &[i64], past: &[usize]) -> Result<Vec<f32>> {
        let width = self.config.width;
        let table = self.weights.embedding.tensor().contiguous()?;
        let table = table.as_slice()?;
        let mut x: Vec<f32> = ids.iter().flat_map(|&id| row(table, width, id as usize)).copied().collect();
        if let Some(positions) = &self.weights.positions {
            let positions = positions.tensor().contiguous()?;
            let positions = positions.as_slice()?;
            for (x, &past) in x.chunks_exact_mut(width).zip(past) {
                x.iter_mut().zip(row(positions, width, past)).for_each(|(x, position)| *x += position);
            }
        }
        if let Some(scale) = self.config.embedding_scale {
            x.iter_mut().for_each(|x| *x *= scale as f32);
        }
        Ok(x)
    }
}

impl Block {
    /// Adds the attention to x.
    fn attend_on_host(&self, step: &mut HostStep<'_>, cache: &mut DecoderCache) -> Result<()> {
        let [keys, values] = cache.layer_mut(self.index)?;
        let (rows, [heads, key_heads, _]) = (step.past.len(), self.heads);
        let (capacity, head_dim) = (keys.shape()[2], keys.shape()[3]);
        let width = (heads + 2 * key_heads) * head_dim;
        self.attention_norm.on_host().run(&step.x, &mut step.normalized)?;
        step.project_side_by_side(self.projections.list(), width)?;
        for (row, &past) in step.wide.chunks_exact_mut(width).zip(step.past) {
            let (queries, keys) = row[..(heads + key_heads) * head_dim].split_at_mut(heads * head_dim);
            if let Some([query, key]) = &self.head_norms {
                query.on_host().run_in_place(queries)?;
                key.on_host().run_in_place(keys)?;
            }
            if let Some(angles) = self.layer.rotary.and_then(|index| step.angles.get(index)) {
                angles.rotate_on_host(past, queries, head_dim)?;
                angles.rotate_on_host(past, keys, head_dim)?;
            }
        }
        let attention = HostAttention {
            heads,
            key_heads,
            head_dim,
            capacity,
            scale: self.layer.score_scale,
            window: self.layer.window,
            soft_cap: self.score_cap,
        };
        let caches = [keys.as_slice_mut()?, values.as_slice_mut()?];
        attention.run(&step.wide, step.past, caches, &mut step.inner)?;
        step.add(&self.output, self.after_attention.as_ref(), rows)
    }

    /// Adds the feed-forward to x.
    fn feed_forward_on_host(&self, step: &mut HostStep<'_>) -> Result<()> {
        let FeedForward { form, down, activation } = &self.feed_forward;
        let rows = step.past.len();
        self.feed_forward_norm.on_host().run(&step.x, &mut step.normalized)?;
        let [hidden, _] = down.sizes();
        if let FeedForwardForm::Plain(up) = form {
            let epilogue = activation.epilogue();
            let of_up = HostEpilogue::new().activation(epilogue.unwrap_or_default());
            step.inner.clear();
            step.inner.resize(rows * hidden, 0.0);
            up.run_on_host(&step.normalized, rows, of_up, (&mut step.inner, hidden))?;
            if epilogue.is_none() {
                activate(*activation, &mut step.inner)?;
            }
            return step.add(down, self.after_feed_forward.as_ref(), rows);
        }
        step.project_side_by_side(form.list(), 2 * hidden)?;
        step.inner.clear();
        for row in step.wide.chunks_exact_mut(2 * hidden) {
            let (gate, up) = row.split_at_mut(hidden);
            activate(*activation, gate)?;
            step.inner.extend(gate.iter().zip(up).map(|(gate, up)| *gate * *up));
        }
        step.add(down, self.after_feed_forward.as_ref(), rows)
    }
}

impl HostStep<'_> {
    /// Writes the products of the normalised rows to `wide`, side by side in rows of this width.
    fn project_side_by_side(&mut self, projections: &[Projection], width: usize) -> Result<()> {
        let rows = self.past.len();
        self.wide.clear();
        self.wide.resize(rows * width, 0.0);
        let mut first = 0;
        for projection in projections {
            let result = (&mut self.wide[first..], width);
            projection.run_on_host(&self.normalized, rows, HostEpilogue::new(), result)?;
            first += projection.sizes()[1];
        }
        Ok(())
    }

    /// Adds the product of `inner`, normalised if there is a norm, to x.
    fn add(&mut self, projection: &Projection, norm: Option<&Norm>, rows: usize) -> Result<()> {
        let width = projection.sizes()[1];
        self.next.clear();
        self.next.resize(rows * width, 0.0);
        let result = (&mut self.next[..], width);
        match norm {
            None => {
                let epilogue = HostEpilogue::new().residual(&self.x);
                projection.run_on_host(&self.inner, rows, epilogue, result)?;
            }
            Some(norm) => {
                projection.run_on_host(&self.inner, rows, HostEpilogue::new(), result)?;
                norm.on_host().run_in_place(&mut self.next)?;
                self.next.iter_mut().zip(&self.x).for_each(|(next, x)| *next += x);
            }
        }
        std::mem::swap(&mut self.x, &mut self.next);
        Ok(())
    }
}

impl Projection {
    /// Writes the projection of rows to rows that are so many elements apart, with an epilogue behind bias and adapter.
    fn run_on_host(
        &self,
        x: &[f32],
        rows: usize,
        epilogue: HostEpilogue<'_, f32>,
        (result, leading): (&mut [f32], usize),
    ) -> Result<()> {
        let layer = HostLinear::new(self.weight(), self.bias(), self.is_input_major())?;
        let Some(adapter) = self.adapter() else {
            return layer.add_to(x, rows, [1.0, 0.0], epilogue, (result, leading));
        };
        layer.add_to(x, rows, [1.0, 0.0], HostEpilogue::new(), (&mut *result, leading))?;
        let [a, b] = adapter.factors();
        let mut low = Vec::new();
        HostLinear::new(a, None, false)?.run(x, rows, HostEpilogue::new(), &mut low)?;
        let scale = adapter.scale() as f32;
        HostLinear::new(b, None, false)?.add_to(&low, rows, [scale, 1.0], epilogue, (result, leading))
    }
}
