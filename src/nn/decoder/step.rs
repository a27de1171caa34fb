//! A pass over one new id of each sequence on a CUDA device, captured as one graph.
//!
//! The number of positions of each sequence is in the device's memory, and the step counts it. So one graph serves all lengths up to the
//! capacity of the cache. The first step of a cache runs uncaptured: it loads kernels and creates plans. The second one is captured
//! and launched, and each later one is a launch.
//!
//! Invariants:
//!
//! - A launch has the bits of the same step without a capture.
//! - Before a launch the memory of the cache is where it was in the capture, no other cache shares it, and the parameters are those of
//!   the capture; otherwise the step is prepared anew.
//!
//! Tests: `tests/gpu/nn.rs`.

use super::DECODER;
use super::batch_invariance::with_invariance;
use super::block::{CachedPass, Decoding, Pass};
use super::cache::{DecoderCache, NewPositions};
use super::model::{Decoder, Positions};
use super::step_state::{DecodeStep, Stage, StepResults};
use crate::driver::{Graph, captures_on_this_thread};
use crate::error::{Error, Result};
use crate::nn::{Recompute, is_grad_enabled, no_grad};
use crate::tensor::{Device, Tensor};
use crate::types::DType;

impl DecodeStep {
    /// Takes the step once, as kernels on the device's stream.
    fn run(&mut self, model: &Decoder, cache: &mut DecoderCache) -> Result<StepResults> {
        self.lengths.in_place().add(1)?;
        let none: [usize; 0] = [];
        let angles = model
            .tables
            .iter()
            .map(|table| table.covering(cache.capacity(), cache.length() + 1, DType::F32, &model.device()));
        let mut pass = Pass {
            angles: angles.collect::<Result<_>>()?,
            mask: None,
            lengths: None,
            recompute: Recompute::Nothing,
            cached: Some(CachedPass {
                cache,
                positions: NewPositions { past: &none, counts: &none },
                decoding: Some(Decoding { lengths: &self.lengths, workspace: &mut self.workspace }),
            }),
        };
        let positions = (&self.lengths - 1)?.cast(DType::I64)?.unsqueeze(1)?;
        let x = model.hidden(&self.ids, &Positions::Each(positions), &mut pass, &mut |_, _| Ok(()))?;
        let logits = model.logits_of_rows(&x.select(1, 0)?)?.tensor();
        let greedy = match self.is_greedy {
            true => {
                let (most, ids) = logits.max_with_indices(-1)?;
                self.ids.in_place().assign(&ids.unsqueeze(1)?)?;
                Some([ids, most])
            }
            false => None,
        };
        Ok(StepResults { logits, greedy })
    }
}

impl Decoder {
    /// Takes a step over one id of each sequence, which is the last most likely one without `ids`. Returns `None` if the step is
    /// operations on tensors: on the CPU, with gradients, of a dtype or head dimension without a kernel, on an empty cache, and where
    /// the rotary frequencies of all positions change; and without `ids` if the step is prepared anew.
    pub(super) fn decode_step(
        &self,
        ids: Option<&Tensor>,
        is_greedy: bool,
        cache: &mut DecoderCache,
    ) -> Result<Option<StepResults>> {
        let batch = cache.lengths().len();
        let total = cache.length() + 1;
        let fits = batch > 0
            && self.device().as_cuda().is_some()
            && !is_grad_enabled()
            && !captures_on_this_thread()
            && ids.is_none_or(|ids| ids.shape()[..] == [batch, 1] && ids.device() == self.device())
            // Ids of the positions are kept on the host then.
            && !self.config.has_switch();
        if !fits || !self.has_decode_kernel(cache, batch)? {
            return Ok(None);
        }
        match ids {
            Some(ids) => {
                cache.check(self.cache_sizes(), ids)?;
                self.check_ids(ids, total)?;
            }
            None => self.check_total(1, total)?,
        }
        if total > cache.capacity() {
            cache.step = None;
            cache.make_room(self.cache_sizes(), [batch, total], self.pass_dtype(), &self.device())?;
        }
        let last = cache
            .step
            .take()
            .filter(|step| step.is_greedy == is_greedy && step.is_of(&self.named) && cache.is_unique());
        let mut step = match (last, ids) {
            (Some(step), _) => step,
            (None, Some(_)) => Box::new(DecodeStep::new(&self.named, &self.device(), batch, is_greedy)?),
            // The ids of the last step went with it.
            (None, None) => return Ok(None),
        };
        let lengths = cache.lengths().to_vec();
        step.write(ids, &lengths)?;
        // A step that fails is gone, with what it has counted.
        let results = self.taken(&mut step, cache)?;
        step.known.iter_mut().for_each(|length| *length += 1);
        cache.count(&vec![1; batch]);
        cache.step = Some(step);
        Ok(Some(results))
    }

    fn taken(&self, step: &mut DecodeStep, cache: &mut DecoderCache) -> Result<StepResults> {
        let stream = self.device().stream()?;
        match &step.stage {
            Stage::First => {
                let results = step.run(self, cache)?;
                step.stage = Stage::Prepared;
                Ok(results)
            }
            Stage::Uncaptured => step.run(self, cache),
            Stage::Prepared => match self.captured(step, cache) {
                Ok((graph, results)) => {
                    let graph = graph.instantiate()?;
                    graph.launch(&stream)?;
                    log::debug!("a step of decoding is captured as one graph on {}", self.device());
                    let copied = results.copied()?;
                    step.stage = Stage::Captured(graph, results);
                    Ok(copied)
                }
                Err(error) => {
                    log::info!("steps of decoding run uncaptured: {error}");
                    step.stage = Stage::Uncaptured;
                    step.run(self, cache)
                }
            },
            Stage::Captured(graph, results) => {
                graph.launch(&stream)?;
                results.copied()
            }
        }
    }

    /// Captures the step on a stream of its own, because other threads may use the device's.
    fn captured(&self, step: &mut DecodeStep, cache: &mut DecoderCache) -> Result<(Graph, StepResults)> {
        let Some(own) = self.device().as_cuda().map(|device| device.stream()).transpose()? else {
            return Err(Error::invalid(DECODER, "a capture on the CPU", "a CUDA device"));
        };
        Device::with_stream(&own, || own.capture(|_| step.run(self, cache)))
    }

    /// Returns whether all layers have a kernel for one new position, of a cache that has positions.
    fn has_decode_kernel(&self, cache: &mut DecoderCache, batch: usize) -> Result<bool> {
        if cache.step.is_some() {
            return Ok(true);
        }
        let dtype = self.pass_dtype();
        for (index, block) in self.weights.blocks.iter().enumerate() {
            for cached in cache.layer_mut(index)? {
                let sizes = [batch, self.config.heads, 1];
                if let Some(reason) = block.decode_settings().unsupported(dtype, sizes, cached)? {
                    log::debug!("decoding attends by operations on tensors: {reason}");
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns the most likely next id of each sequence after one more id of each, or after the last most likely ones without `ids`, and
    /// its logit; `None` as [`decode_step`](Self::decode_step).
    pub(super) fn most_likely(
        &self,
        ids: Option<&Tensor>,
        cache: &mut DecoderCache,
    ) -> Result<Option<(Vec<i64>, Vec<f32>)>> {
        let is_batch_invariant = cache.is_batch_invariant();
        let step = || no_grad(|| self.decode_step(ids, true, cache));
        let Some(results) = with_invariance(is_batch_invariant, step)? else { return Ok(None) };
        let Some([ids, most]) = results.greedy else { return Ok(None) };
        Ok(Some((ids.to_vec()?, most.cast(DType::F32)?.to_vec()?)))
    }
}

impl StepResults {
    /// Returns the results in memory that the next launch does not change. Logits of a greedy step stay.
    fn copied(&self) -> Result<StepResults> {
        let StepResults { logits, greedy } = self;
        Ok(match greedy {
            // The host reads them before the next launch.
            Some(greedy) => StepResults { logits: logits.clone(), greedy: Some(greedy.clone()) },
            None => StepResults { logits: logits.copy()?, greedy: None },
        })
    }
}
