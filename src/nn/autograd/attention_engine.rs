//! [`EngineAttention`]: attention by an engine that stores no scores, recorded with its backward.
//!
//! The forward saves the result and the LSE, from which the backward computes the probabilities again.
//!
//! Tests: `tests/gpu/attention.rs`.

use super::attention::OPERATION;
use super::shape::in_shape;
use super::variable::Variable;
use crate::attention::Pass;
use crate::error::Result;
use crate::tensor::kernel::Output;
use crate::tensor::{Attention, AttentionOptions, AttentionResult, ResultOrder, Tensor};
use crate::types::Layout;

/// The heads of a packed input: those of the queries, then those of the keys, then those of the values.
#[derive(Clone, Copy)]
pub(super) struct PackedHeads {
    pub heads: usize,
    pub key_heads: usize,
}

impl PackedHeads {
    /// Returns the number of all heads.
    pub fn all(self) -> usize {
        self.heads + 2 * self.key_heads
    }

    /// Returns the first head and the number of heads of queries, keys and values.
    pub fn parts(self) -> [(usize, usize); 3] {
        let PackedHeads { heads, key_heads } = self;
        [(0, heads), (heads, key_heads), (heads + key_heads, key_heads)]
    }

    /// Returns queries, keys and values of (batch, heads, length, head dimension).
    pub fn split(self, packed: Tensor) -> Result<[Tensor; 3]> {
        let packed = packed.unflatten(-1, &[self.all() as isize, -1])?;
        let part = |(first, count)| packed.narrow(2, first, count)?.transpose(1, 2);
        let [queries, keys, values] = self.parts();
        Ok([part(queries)?, part(keys)?, part(values)?])
    }
}

/// The options of attention that an engine may compute.
pub(super) struct EngineAttention<'a>(&'a AttentionOptions);

impl EngineAttention<'_> {
    pub fn new(options: &AttentionOptions) -> EngineAttention<'_> {
        EngineAttention(options)
    }

    /// Returns the result of queries, keys and values, or `None` where no engine computes it.
    pub fn recorded(self, inputs: [&Variable; 3]) -> Result<Option<Variable>> {
        let parents = inputs.map(Variable::tracked);
        let pass = if parents.iter().any(Option::is_some) { Pass::Backward } else { Pass::Forward };
        let Some(attention) = Attention::new(&inputs.map(Variable::tensor), self.0, pass)? else {
            return Ok(None);
        };
        let AttentionResult { result, lse } = attention.forward(ResultOrder::ByHead)?;
        let settings = attention.into_settings();
        let (saved, lse) = (inputs.map(Variable::save), Variable::new(lse).save());
        Ok(Some(Variable::new(result).recorded(OPERATION, parents.into(), |result| {
            let result = result.save();
            Box::new(move |gradient| {
                let [queries, keys, values] = saved.each_ref().map(|saved| saved.tensor(OPERATION));
                let attention = Attention::again([queries?, keys?, values?], settings.clone())?;
                let forward =
                    AttentionResult { result: result.tensor(OPERATION)?, lse: lse.tensor(OPERATION)? };
                Ok(attention.backward(&forward, gradient)?.map(Some).into())
            })
        })))
    }

    /// Returns the result of a packed input, of (batch, length, heads · head dimension), or `None` where no engine computes it. The input's
    /// gradient is written once.
    pub fn recorded_packed(self, packed: &Variable, heads: PackedHeads) -> Result<Option<Variable>> {
        let parent = packed.tracked();
        let pass = if parent.is_some() { Pass::Backward } else { Pass::Forward };
        let Some(attention) = Attention::new(&heads.split(packed.tensor())?, self.0, pass)? else {
            return Ok(None);
        };
        let AttentionResult { result, lse } = attention.forward(ResultOrder::ByPosition)?;
        let settings = attention.into_settings();
        let result = result.transpose(1, 2)?.flatten(2, 3)?;
        let (saved, lse) = (packed.save(), Variable::new(lse).save());
        Ok(Some(Variable::new(result).recorded(OPERATION, vec![parent], |result| {
            let result = result.save();
            Box::new(move |gradient| {
                let by_head = |x: &Tensor| x.unflatten(-1, &[heads.heads as isize, -1])?.transpose(1, 2);
                let packed = saved.tensor(OPERATION)?;
                let (shape, unpacked) = (*packed.shape(), packed.unflatten(-1, &[heads.all() as isize, -1])?);
                let attention = Attention::again(heads.split(packed)?, settings.clone())?;
                let forward = AttentionResult {
                    result: by_head(&result.tensor(OPERATION)?)?,
                    lse: lse.tensor(OPERATION)?,
                };
                let mut of_packed = Output::new(&gradient.device(), gradient.dtype(), unpacked.shape())?;
                let all = Layout::contiguous(unpacked.shape())?;
                let part = |(first, count)| all.narrow(2, first, count)?.transpose(1, 2);
                let [queries, keys, values] = heads.parts();
                let layouts = [part(queries)?, part(keys)?, part(values)?];
                attention.backward_to(&forward, &by_head(gradient)?, &mut of_packed, layouts)?;
                Ok(vec![Some(in_shape(&of_packed.into_tensor(), &shape)?)])
            })
        })))
    }
}
