//! [`DecodeStep`], the state of the steps of one cache.

use crate::attention::DecodeWorkspace;
use crate::driver::ExecutableGraph;
use crate::error::Result;
use crate::gemm::is_batch_invariant;
use crate::nn::Variable;
use crate::tensor::{Device, Tensor};
use crate::types::DType;

/// Returns counts of sequences on a device.
pub(super) fn on_device(counts: impl Iterator<Item = usize>, device: &Device) -> Result<Tensor> {
    let counts: Vec<i64> = counts.map(|count| count as i64).collect();
    let shape = [counts.len()];
    Tensor::from_vec(counts, &shape, device)
}

/// The state of the steps of one cache.
#[derive(Debug)]
pub(super) struct DecodeStep {
    /// The id of each sequence, i64 of (batch, 1). A greedy step replaces it by the next one.
    pub ids: Tensor,
    /// The positions of each sequence, i32 of (batch).
    pub lengths: Tensor,
    /// The positions in `lengths`.
    pub known: Vec<usize>,
    pub is_greedy: bool,
    is_batch_invariant: bool,
    pub workspace: Option<DecodeWorkspace>,
    /// The model's parameters, with their states when the step was created.
    parameters: Vec<(Variable, (u64, bool))>,
    pub stage: Stage,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "one is made for a cache")]
pub(super) enum Stage {
    First,
    /// The next step is captured.
    Prepared,
    Captured(ExecutableGraph, StepResults),
    Uncaptured,
}

/// The results of a step.
#[derive(Debug, Clone)]
pub(super) struct StepResults {
    /// The logits (batch, vocabulary).
    pub logits: Tensor,
    /// The most likely id of each sequence and its logit, NaN if one is.
    pub greedy: Option<[Tensor; 2]>,
}

impl DecodeStep {
    /// Creates the state of a batch, for a model with these parameters.
    pub fn new(
        named: &[(String, Variable)],
        device: &Device,
        batch: usize,
        is_greedy: bool,
    ) -> Result<DecodeStep> {
        Ok(DecodeStep {
            ids: Tensor::zeros(&[batch, 1], DType::I64, device)?,
            lengths: Tensor::zeros(&[batch], DType::I32, device)?,
            known: vec![0; batch],
            is_greedy,
            is_batch_invariant: is_batch_invariant(),
            workspace: None,
            parameters: named.iter().map(|(_, parameter)| (parameter.clone(), parameter.state())).collect(),
            stage: Stage::First,
        })
    }

    /// Returns whether the model is that of the step, and its parameters and the thread's batch invariance are as they were.
    pub fn is_of(&self, named: &[(String, Variable)]) -> bool {
        let mut both = self.parameters.iter().zip(named);
        self.is_batch_invariant == is_batch_invariant()
            && self.parameters.len() == named.len()
            && both.all(|((own, state), (_, other))| own.is_same(other) && *state == other.state())
    }

    /// Writes what the next step reads.
    pub fn write(&mut self, ids: Option<&Tensor>, lengths: &[usize]) -> Result<()> {
        if let Some(ids) = ids {
            self.ids.in_place().assign(&ids.cast(DType::I64)?)?;
        }
        if self.known != lengths {
            let device = self.lengths.device();
            self.lengths
                .in_place()
                .assign(&on_device(lengths.iter().copied(), &device)?.cast(DType::I32)?)?;
            self.known = lengths.to_vec();
        }
        Ok(())
    }
}
