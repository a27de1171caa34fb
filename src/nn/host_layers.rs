//! Layers of one new position of each sequence on the CPU, by loops over slices of f32.
//!
//! The arithmetic of one position is so small that operations on tensors take several times as long for their dispatch and
//! memory. Products are [`gemm_host_with`], with bias, activation and residual as epilogues; keys and values are written to
//! the cache in place. Results agree with those of tensors up to rounding.
//!
//! Invariant: the bits of a sequence's results do not depend on the number of threads. On processors with AVX2 and FMA they do not
//! depend on the others of a batch of up to eight either.
//!
//! Tests: `tests/nn/gpt.rs` and `tests/nn/decoder.rs`, which compare them with whole passes.

use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::gemm::{
    ActivationElement, HostEpilogue, Operation, Product, gemm_host, gemm_host_with, is_batch_invariant,
};
use crate::nn::{Activation, Variable};
use crate::tensor::{Device, Tensor};
use crate::threads::{run_on_threads, threads_for};

/// Returns a row of a matrix, none of it if the index is behind the last one.
pub(super) fn row(elements: &[f32], width: usize, index: usize) -> &[f32] {
    elements.get(index * width..(index + 1) * width).unwrap_or_default()
}

/// A product of rows and a weight, plus a bias.
pub(super) struct HostLinear {
    weight: Tensor,
    bias: Option<Tensor>,
    /// True for a weight of shape (inputs, outputs), false for one of shape (outputs, inputs).
    is_input_major: bool,
}

impl HostLinear {
    pub fn new(weight: &Variable, bias: Option<&Variable>, is_input_major: bool) -> Result<HostLinear> {
        let weight = weight.tensor().contiguous()?;
        if weight.rank() != 2 {
            let found = format!("a weight of shape {}", weight.shape());
            return Err(Error::invalid("a linear layer", found, "a matrix"));
        }
        let bias = bias.map(|bias| bias.tensor().contiguous()).transpose()?;
        Ok(HostLinear { weight, bias, is_input_major })
    }

    pub fn outputs(&self) -> usize {
        self.weight.shape()[usize::from(self.is_input_major)]
    }

    /// Writes scale · x · weight + bias + beta · result to rows that are `leading` elements apart, with an epilogue behind the bias.
    pub fn add_to(
        &self,
        x: &[f32],
        rows: usize,
        [scale, beta]: [f32; 2],
        epilogue: HostEpilogue<'_, f32>,
        (result, leading): (&mut [f32], usize),
    ) -> Result<()> {
        let (outputs, stored) = (self.outputs(), self.weight.shape()[1]);
        let inputs = self.weight.shape()[usize::from(!self.is_input_major)];
        let mut epilogue: HostEpilogue<'_, f32> = epilogue;
        if let Some(bias) = &self.bias {
            epilogue = epilogue.bias_of_columns(bias.as_slice()?);
        }
        let product = Product::new(rows, outputs, inputs);
        let product = if self.is_input_major { product } else { product.b(Operation::Transpose) };
        let product = product.leading(inputs, stored, leading).batch_invariant(is_batch_invariant());
        gemm_host_with(&product, scale, x, self.weight.as_slice()?, beta, result, epilogue)
    }

    /// Writes x · weight + bias to the result, with an epilogue behind the bias.
    pub fn run(
        &self,
        x: &[f32],
        rows: usize,
        epilogue: HostEpilogue<'_, f32>,
        result: &mut Vec<f32>,
    ) -> Result<()> {
        let outputs = self.outputs();
        result.clear();
        result.resize(rows * outputs, 0.0);
        self.add_to(x, rows, [1.0, 0.0], epilogue, (result, outputs))
    }
}

/// Applies an activation to each element.
pub(super) fn activate(activation: Activation, elements: &mut [f32]) -> Result<()> {
    match activation.epilogue() {
        Some(function) => f32::activate(function, elements),
        None => {
            let x = Tensor::from_slice(elements, &[elements.len()], &Device::cpu())?;
            elements.copy_from_slice(activation.forward(&Variable::new(x))?.tensor().as_slice()?);
        }
    }
    Ok(())
}

/// Returns the sum of a function of each element, in eight lanes.
fn sum(row: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0f32; 8];
    let chunks = row.chunks_exact(lanes.len());
    let rest: f32 = chunks.remainder().iter().map(|&x| of(x)).sum();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, &x)| *lane += of(x));
    }
    lanes.iter().sum::<f32>() + rest
}

/// The normalisation of rows.
pub(super) struct HostNorm<'a> {
    pub weight: &'a Variable,
    pub bias: Option<&'a Variable>,
    pub eps: f64,
    /// True for the standard deviation of elements less their mean, false for the root mean square.
    pub has_mean: bool,
    /// True if the factor is 1 + weight.
    pub has_offset: bool,
}

impl HostNorm<'_> {
    /// Normalises each row in place.
    pub fn run_in_place(&self, x: &mut [f32]) -> Result<()> {
        let weight = self.weight.tensor().contiguous()?;
        let bias = self.bias.map(|bias| bias.tensor().contiguous()).transpose()?;
        let weight: &[f32] = weight.as_slice()?;
        let bias: Option<&[f32]> = bias.as_ref().map(Tensor::as_slice).transpose()?;
        let (width, offset) = (weight.len() as f32, if self.has_offset { 1.0 } else { 0.0 });
        for row in x.chunks_exact_mut(weight.len().max(1)) {
            let mean = if self.has_mean { sum(row, |x| x) / width } else { 0.0 };
            let variance = sum(row, |x| (x - mean) * (x - mean)) / width;
            let root = 1.0 / (variance + self.eps as f32).sqrt();
            let elements = row.iter_mut().zip(weight);
            elements.for_each(|(x, weight)| *x = (*x - mean) * root * (weight + offset));
            if let Some(bias) = bias {
                row.iter_mut().zip(bias).for_each(|(x, bias)| *x += bias);
            }
        }
        Ok(())
    }

    /// Writes the normalised rows to the result.
    pub fn run(&self, x: &[f32], result: &mut Vec<f32>) -> Result<()> {
        result.clear();
        result.extend_from_slice(x);
        self.run_in_place(result)
    }
}

/// An attention of one new position of each sequence to a cache (batch, key heads, capacity, head dimension).
pub(super) struct HostAttention {
    pub heads: usize,
    pub key_heads: usize,
    pub head_dim: usize,
    /// The positions that the cache's memory holds.
    pub capacity: usize,
    /// The factor of the scores.
    pub scale: f64,
    /// The number of keys that a query reads, its own included.
    pub window: Option<usize>,
    /// The limit c of scores x, which become c tanh(x / c).
    pub soft_cap: Option<f64>,
}

/// The heads of one key head of one sequence.
struct HeadGroup<'a> {
    past: usize,
    queries: &'a [f32],
    new: [&'a [f32]; 2],
    caches: [&'a mut [f32]; 2],
    result: &'a mut [f32],
}

impl HostAttention {
    /// Writes keys and values of packed rows (queries, keys, values) behind the `past` positions of each sequence in the cache, and
    /// the heads' results, (batch, heads · head dimension).
    pub fn run(
        &self,
        packed: &[f32],
        past: &[usize],
        [keys, values]: [&mut [f32]; 2],
        result: &mut Vec<f32>,
    ) -> Result<()> {
        let HostAttention { heads, key_heads, head_dim, capacity, .. } = *self;
        if head_dim == 0 || past.iter().any(|&past| past >= capacity) {
            let found = format!("{past:?} positions in heads of {head_dim}");
            return Err(Error::invalid("attention to a cache", found, format!("below {capacity}")));
        }
        let group = heads / key_heads.max(1) * head_dim;
        result.clear();
        result.resize(past.len() * heads * head_dim, 0.0);
        let rows = packed.chunks_exact((heads + 2 * key_heads) * head_dim).zip(past);
        let operands = rows.flat_map(|(row, &past)| {
            let (queries, new) = row.split_at(heads * head_dim);
            let (keys, values) = new.split_at(key_heads * head_dim);
            let new = keys.chunks_exact(head_dim).zip(values.chunks_exact(head_dim));
            queries.chunks_exact(group).zip(new).map(move |(queries, new)| (past, queries, new))
        });
        let of_head = capacity * head_dim;
        let caches = keys.chunks_exact_mut(of_head).zip(values.chunks_exact_mut(of_head));
        let memory = caches.zip(result.chunks_exact_mut(group));
        let groups = operands.zip(memory).map(|((past, queries, new), (caches, result))| HeadGroup {
            past,
            queries,
            new: new.into(),
            caches: caches.into(),
            result,
        });
        let (groups, failure) = (Mutex::new(groups), Mutex::new(None));
        // An element of a cache, and a score.
        let positions: usize = past.iter().map(|past| past + 1).sum();
        let work = positions * (100 * key_heads * head_dim + 5000 * heads);
        run_on_threads(threads_for(work).min(past.len() * key_heads), &|| {
            let mut scores = Vec::new();
            loop {
                let next = groups.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(group) = next else { break };
                if let Err(error) = self.run_group(group, &mut scores) {
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
        });
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn run_group(&self, group: HeadGroup<'_>, scores: &mut Vec<f32>) -> Result<()> {
        let HeadGroup { past, queries, new, caches: [keys, values], result } = group;
        let (size, end) = (self.head_dim, past + 1);
        for (cache, new) in [(&mut *keys, new[0]), (&mut *values, new[1])] {
            cache[past * size..end * size].copy_from_slice(new);
        }
        let first = self.window.map_or(0, |window| end.saturating_sub(window));
        let (keys, values) = (&keys[first * size..end * size], &values[first * size..end * size]);
        let (rows, length) = (queries.len() / size, end - first);
        scores.clear();
        scores.resize(rows * length, 0.0);
        let by_keys = Product::new(rows, length, size).b(Operation::Transpose);
        gemm_host(&by_keys, self.scale as f32, queries, keys, 0.0, scores)?;
        for row in scores.chunks_exact_mut(length) {
            if let Some(cap) = self.soft_cap {
                limit(row, cap);
            }
            softmax(row);
        }
        gemm_host(&Product::new(rows, size, length), 1.0, scores, values, 0.0, result)
    }
}

/// Replaces each x by cap · tanh(x / cap).
pub(super) fn limit(elements: &mut [f32], cap: f64) {
    let cap = cap as f32;
    elements.iter_mut().for_each(|x| *x = (*x / cap).tanh() * cap);
}

/// Replaces scores by their probabilities.
fn softmax(row: &mut [f32]) {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.iter_mut().for_each(|x| *x = (*x - largest).exp());
    let factor = 1.0 / sum(row, |x| x);
    row.iter_mut().for_each(|x| *x *= factor);
}
