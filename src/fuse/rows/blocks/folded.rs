//! Outputs that read the elements which a reduction has folded, in a run by [blocks](super) of rows.
//!
//! A softmax folds the exponentials that its outputs divide by their sum. The elements of a block are still in the cache, so
//! that a load replaces the exponential.

use std::collections::HashMap;

use super::super::super::graph::Nodes;
use super::super::super::node::NodeIndex;
use super::super::split::{Phase, PhaseInput};
use super::super::stages::KEPT_COST;
use super::super::{Finish, RowReduction};
use crate::error::Result;

/// Returns for each expression of outputs one that reads folded elements, if that saves some instructions. Its
/// [stored value](PhaseInput::Stored) n is the elements of reduction n. `arguments` are the reductions' nodes.
///
/// # Errors
///
/// As [`Graph::expression`](super::super::super::Graph::expression).
pub(in super::super) fn finishes_from_folded(
    nodes: &Nodes,
    outputs: &[NodeIndex],
    arguments: &[NodeIndex],
    numbers: &HashMap<NodeIndex, usize>,
    reductions: &[RowReduction],
    finishes: &[Finish],
) -> Result<Vec<Option<Finish>>> {
    let mut folded: HashMap<NodeIndex, usize> = HashMap::new();
    for (number, (&argument, of)) in arguments.iter().zip(reductions).enumerate() {
        // A plain fold reads an input, and one in another dtype has converted elements.
        let dtype = nodes.dtype(argument);
        if !of.reduction.is_plain() && of.reduction.0.prologue.outputs[0] == dtype {
            folded.entry(argument).or_insert(number);
        }
    }
    let from_folded = |finish: &Finish| {
        let of: Vec<NodeIndex> = finish.outputs.iter().map(|&output| outputs[output]).collect();
        let phase = Phase::new(nodes, &of, numbers, &folded);
        if finish.is_per_group || !phase.inputs.iter().any(|input| matches!(input, PhaseInput::Stored(_))) {
            return Ok(None);
        }
        let (expression, operands) = phase.compiled()?;
        let steps = [&expression, &finish.expression].map(|expression| expression.0.program.steps.len());
        let finish = Finish { expression, operands, is_per_group: false, outputs: finish.outputs.clone() };
        Ok((steps[0] + KEPT_COST <= steps[1]).then_some(finish))
    };
    finishes.iter().map(from_folded).collect()
}
