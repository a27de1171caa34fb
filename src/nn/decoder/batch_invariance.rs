//! Batch invariance: whether the bits of a sequence's logits depend on the others of its batch.
//!
//! Products have the algorithm of few rows ([`batch_invariant`]). On a device a prompt is read by the attention of sequences of different
//! lengths, whose order of keys follows from a query's position; an id that follows is read by the kernel of a cache, which divides keys by
//! position. On the CPU every id is a step of its own.

use super::DECODER;
use super::cache::DecoderCache;
use super::model::Decoder;
use crate::attention::{Pass, Plan, Problem, Sequences};
use crate::error::{Error, Result};
use crate::gemm::{DeviceProperties, batch_invariant};
use crate::nn::no_grad;
use crate::types::{DType, Layout};

/// Queries and keys of the attention that is asked for.
const LENGTH: usize = 128;

/// Runs a pass over a cache, batch-invariant or not.
pub(super) fn with_invariance<R>(is_batch_invariant: bool, pass: impl FnOnce() -> R) -> R {
    match is_batch_invariant {
        true => no_grad(|| batch_invariant(pass)),
        false => pass(),
    }
}

impl Decoder {
    /// Checks that a batch-invariant cache without positions has algorithms that are.
    pub(super) fn check_invariance(&self, cache: &DecoderCache) -> Result<()> {
        if cache.is_batch_invariant()
            && cache.lengths().is_empty()
            && let Some(reason) = self.batch_variance()?
        {
            let wanted = "a model whose algorithms do not depend on the batch: f32 on the CPU; f16 or bf16 on compute capability 9.0";
            return Err(Error::invalid(DECODER, format!("batch invariance, but {reason}"), wanted));
        }
        Ok(())
    }

    /// Returns the reason why bits would depend on the batch.
    fn batch_variance(&self) -> Result<Option<String>> {
        if self.config.has_switch() {
            return Ok(Some("the rotary frequencies depend on the total length".to_owned()));
        }
        let (dtype, device) = (self.pass_dtype(), self.device());
        let Some(cuda) = device.as_cuda() else {
            let is_f32 = dtype == DType::F32 && self.dtype() == DType::F32;
            return Ok((!is_f32).then(|| format!("the model computes in {dtype} on the CPU")));
        };
        let properties = DeviceProperties::from_device(cuda)?;
        let [heads, key_heads, width] = [self.config.heads, self.config.key_heads, self.config.head_dim];
        for block in &self.weights.blocks {
            let settings = block.decode_settings();
            let problem = |queries: usize| -> Result<Problem> {
                let queries = Layout::contiguous(&[1, heads, queries, width])?;
                let keys = Layout::contiguous(&[1, key_heads, LENGTH, width])?;
                Ok(Problem {
                    band: settings.band,
                    scale: settings.scale,
                    soft_cap: settings.soft_cap,
                    ..Problem::new(dtype, queries, keys, keys)
                })
            };
            let sequences = Sequences { count: 1, is_packed: false, max_queries: LENGTH, max_keys: LENGTH };
            let prompt = Problem { sequences: Some(sequences), ..problem(LENGTH)? };
            let plans = [
                Plan::explain(&prompt, Pass::Forward, properties)?,
                Plan::explain_decode(&problem(1)?, properties)?,
            ];
            if let Some(reason) = plans.iter().find_map(Plan::unsupported) {
                return Ok(Some(format!("attention stores its scores: {reason}")));
            }
        }
        Ok(None)
    }
}
