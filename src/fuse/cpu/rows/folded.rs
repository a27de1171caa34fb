//! The outputs of a run by [blocks](super) of rows: they read elements that a reduction has folded, and values of groups that
//! are computed once for each group.
//!
//! A softmax folds the exponentials that its outputs divide by their sum. The elements of a block are still in the cache, so
//! that a load replaces the exponential; and one reciprocal of the sum replaces one for each element.

use std::collections::HashMap;

use crate::error::Result;
use crate::fuse::cpu::backend::CpuCode;
use crate::fuse::language::graph::Nodes;
use crate::fuse::language::node::{Node, NodeIndex, is_per_group, needed_until};
use crate::fuse::plan::compiled_rows::{Finish, RowReduction};
use crate::fuse::plan::rows_limits::MIN_RECOMPUTE_COST;
use crate::fuse::plan::rows_split::{Phase, PhaseInput};

/// The most values of groups that are computed once: each is an operand of the outputs.
const MAX_VALUES: usize = 8;

/// The outputs of a program, as a run by blocks computes them.
#[derive(Default)]
pub(in crate::fuse) struct BlockFinishes {
    /// Values of groups that outputs read, as one expression whose output n is value n. None if there are none.
    pub(super) of_groups: Option<(Finish, CpuCode)>,
    /// By expression of outputs, the one that a run by blocks computes instead, if any. Its [stored value](PhaseInput::Stored) n
    /// is the elements of reduction n, and those after the reductions are the values of groups.
    pub(super) replaced: Vec<Option<(Finish, CpuCode)>>,
}

impl BlockFinishes {
    /// Returns the outputs of `finishes` in this form. `arguments` are the reductions' nodes.
    ///
    /// # Errors
    ///
    /// As [`Graph::expression`](crate::fuse::Graph::expression).
    pub(in crate::fuse) fn new(
        nodes: &Nodes,
        outputs: &[NodeIndex],
        arguments: &[NodeIndex],
        indices: &HashMap<NodeIndex, usize>,
        reductions: &[RowReduction],
        finishes: &[Finish],
    ) -> Result<BlockFinishes> {
        let mut folded: HashMap<NodeIndex, usize> = HashMap::new();
        for (index, (&argument, of)) in arguments.iter().zip(reductions).enumerate() {
            // A plain fold reads an input, one in another dtype has converted elements, and a sum of squares has squares.
            let dtype = nodes.dtype(argument);
            let has_elements = !of.reduction.is_plain() && !of.reduction.has_factor();
            if has_elements && of.reduction.prologue.outputs[0] == dtype {
                folded.entry(argument).or_insert(index);
            }
        }
        let nodes_of = |finish: &Finish| -> Vec<NodeIndex> {
            finish.outputs.iter().map(|&output| outputs[output]).collect()
        };
        let of_elements = finishes.iter().filter(|finish| !finish.is_per_group);
        let values = values_of_groups(nodes, &of_elements.flat_map(nodes_of).collect::<Vec<_>>());
        let of_groups = match values.is_empty() {
            true => None,
            false => {
                let (expression, operands) =
                    Phase::new(nodes, &values, indices, &HashMap::new()).compiled()?;
                let outputs = (0..values.len()).collect();
                Some((Finish { expression, operands, is_per_group: true, outputs }, CpuCode::default()))
            }
        };
        let values = || values.iter().zip(reductions.len()..).map(|(&node, index)| (node, index));
        let has_folded = !folded.is_empty();
        let [with_folded, without]: [HashMap<NodeIndex, usize>; 2] =
            [folded.into_iter().chain(values()).collect(), values().collect()];
        let replaced = |finish: &Finish| {
            if finish.is_per_group {
                return Ok(None);
            }
            // None if the outputs read no stored value, and so stay as they are.
            let compiled = |stored: &HashMap<NodeIndex, usize>| -> Result<Option<Finish>> {
                let phase = Phase::new(nodes, &nodes_of(finish), indices, stored);
                if !phase.inputs.iter().any(|input| matches!(input, PhaseInput::Stored(_))) {
                    return Ok(None);
                }
                let (expression, operands) = phase.compiled()?;
                Ok(Some(Finish {
                    expression,
                    operands,
                    is_per_group: false,
                    outputs: finish.outputs.clone(),
                }))
            };
            let steps = |finish: &Finish| finish.expression.program.steps.len();
            let computed = compiled(&without)?;
            let most = computed.as_ref().map_or(steps(finish), steps);
            let from_folded = if has_folded { compiled(&with_folded)? } else { None };
            Ok(from_folded
                .filter(|from_folded| steps(from_folded) + MIN_RECOMPUTE_COST <= most)
                .or(computed)
                .map(|finish| (finish, CpuCode::default())))
        };
        let replaced = finishes.iter().map(replaced).collect::<Result<_>>()?;
        Ok(BlockFinishes { of_groups, replaced })
    }
}

/// Returns the nodes with one value per group, other than reductions, that elements of `outputs` read; none if there are more
/// than [`MAX_VALUES`].
fn values_of_groups(nodes: &Nodes, outputs: &[NodeIndex]) -> Vec<NodeIndex> {
    let per_group = is_per_group(nodes);
    let is_leaf = |index: NodeIndex, _: Node| per_group[index as usize];
    let needed = needed_until(nodes, outputs, is_leaf);
    let is_value = |&index: &NodeIndex| {
        let at = index as usize;
        needed[at] && per_group[at] && !matches!(nodes.nodes[at].0, Node::Group(..))
    };
    let values: Vec<NodeIndex> = (0..nodes.nodes.len() as NodeIndex).filter(is_value).collect();
    if values.len() > MAX_VALUES { Vec::new() } else { values }
}
