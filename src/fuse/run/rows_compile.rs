//! The compilation of a graph to the phases of a row program.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::row_program::RowProgram;
use crate::error::{Error, Result};
#[cfg(target_arch = "x86_64")]
use crate::fuse::cpu::rows::BlockFinishes;
use crate::fuse::language::graph::{Expr, Graph, Nodes};
use crate::fuse::language::node::{IndexedGroup, Node, NodeIndex, is_per_element, is_per_group, needed};
use crate::fuse::plan::compiled_expression::CompiledExpression;
use crate::fuse::plan::compiled_reduction::CompiledReduction;
use crate::fuse::plan::compiled_rows::{
    CompiledRows, Finish, GroupIndex, PhaseOperands, RowOutput, RowReduction,
};
use crate::fuse::plan::rows_sections::Sections;
use crate::fuse::plan::rows_split::{Phase, PhaseInput};
use crate::fuse::plan::rows_stages::RowStages;
use crate::fuse::plan::rows_stored::{StoredKind, StoredList};

impl Graph {
    /// Compiles an elementwise expression that exceeds the limits of one kernel as a program of several. It needs no axes.
    ///
    /// Values of f16 and bf16 are rounded after every operation, as in [`expression`](Self::expression).
    ///
    /// # Errors
    ///
    /// As [`expression`](Self::expression) for each kernel; [`Error::InvalidArgument`] for a graph without inputs, and for one
    /// that fits an expression.
    pub(crate) fn several_expressions(&self, outputs: &[Expr<'_>]) -> Result<RowProgram> {
        let outputs = self.checked("an expression", outputs)?;
        let nodes = self.0.borrow();
        let sections = Sections::divided(&nodes, &outputs).filter(|_| !nodes.inputs.is_empty());
        let unfit = || Error::invalid("several expressions", "a graph of one kernel", "Graph::expression");
        RowProgram::compile_sections(&nodes, &outputs, &sections.ok_or_else(unfit)?)
    }
}

impl RowProgram {
    /// Compiles nodes of [`rows_split::widen`] without sums over groups. A program that exceeds the limits of an expression is
    /// divided.
    ///
    /// # Errors
    ///
    /// As [`Graph::row_program`].
    pub(super) fn compile(nodes: &Nodes, outputs: &[NodeIndex]) -> Result<RowProgram> {
        let whole = RowProgram::compile_sections(nodes, outputs, &Sections::whole(nodes, outputs));
        // Only a limit makes sections. Another error would be the same in each of them.
        whole.or_else(|error| match Sections::divided(nodes, outputs) {
            Some(sections) => RowProgram::compile_sections(nodes, outputs, &sections),
            None => Err(error),
        })
    }

    fn compile_sections(nodes: &Nodes, outputs: &[NodeIndex], sections: &Sections) -> Result<RowProgram> {
        let per_group = is_per_group(nodes);
        let per_element = is_per_element(nodes);
        let needed = needed(nodes, outputs, |_| false);
        let stream_inputs = nodes.stream_inputs(&needed);
        let is_divided = sections.reason.is_some();
        // Expressions of several elements read no seed of one element, so words from seeds in memory are all stored.
        let stores_words = is_divided || !stream_inputs.is_empty();
        let mut roots: Vec<NodeIndex> = if stores_words { outputs.to_vec() } else { Vec::new() };
        for (index, &(node, _)) in nodes.nodes.iter().enumerate() {
            if needed[index] && matches!(node, Node::Group(..)) {
                roots.push(index as NodeIndex);
            }
        }
        let mut stored = StoredList::of_words(nodes, &roots)?;
        let words = stored.numbers.clone();
        let mut numbers: HashMap<NodeIndex, usize> = HashMap::new();
        let mut reductions: Vec<RowReduction> = Vec::new();
        let mut arguments: Vec<NodeIndex> = Vec::new();
        let mut finishes = [Vec::new(), Vec::new()];
        let none = HashMap::new();
        let mut start = 0;
        for (section, &end) in sections.ends.iter().enumerate() {
            for &index in &sections.order[start..end] {
                let (Node::Group(fold, of_node), _) = nodes.nodes[index as usize] else { continue };
                let phase = Phase::new(nodes, &[of_node], &numbers, &stored.numbers);
                let [of] = phase.outputs()[..] else { continue };
                let reduction = Arc::new(CompiledReduction::of(&phase.graph, fold, of)?);
                let number = phase.number(&reductions, &stored.phases);
                numbers.insert(index, reductions.len());
                arguments.push(of_node);
                let operands = PhaseOperands { inputs: phase.inputs, scalars: phase.scalars };
                reductions.push(RowReduction { reduction, operands, phase: number });
            }
            for kind in [StoredKind::Groups, StoredKind::Elements] {
                let is_of_kind =
                    |node: &&NodeIndex| per_element[**node as usize] == (kind == StoredKind::Elements);
                let values: Vec<NodeIndex> =
                    sections.stored[section].iter().filter(is_of_kind).copied().collect();
                if !values.is_empty() {
                    let phase = Phase::new(nodes, &values, &numbers, &stored.numbers);
                    let number = phase.number(&reductions, &stored.phases);
                    stored.push(&values, phase, kind, reductions.len(), number)?;
                }
            }
            let of_section = &sections.order[start..end];
            for (finishes, of_groups) in finishes.iter_mut().zip([false, true]) {
                for numbers_of in
                    outputs_of(outputs, of_section, |node| per_group[node as usize] == of_groups, is_divided)
                {
                    let of: Vec<NodeIndex> = numbers_of.iter().map(|&output| outputs[output]).collect();
                    let known = if stores_words { &stored.numbers } else { &none };
                    let (expression, operands) = Phase::new(nodes, &of, &numbers, known).compiled()?;
                    finishes.push(Finish {
                        expression,
                        operands,
                        is_per_group: of_groups,
                        outputs: numbers_of,
                    });
                }
            }
            start = end;
        }
        let finishes: Vec<Finish> = finishes.into_iter().flatten().collect();
        #[cfg(target_arch = "x86_64")]
        let blocks = match stores_words {
            true => BlockFinishes::default(),
            false => BlockFinishes::new(nodes, outputs, &arguments, &numbers, &reductions, &finishes)?,
        };
        arguments.extend(outputs);
        let mut indices = Vec::new();
        for &IndexedGroup { group, index, error } in &nodes.indexed {
            let Some(&reduction) = numbers.get(&group) else { continue };
            // One value for each group, from inputs that have one.
            let (expression, operands) = Phase::new(nodes, &[index], &numbers, &words).compiled()?;
            indices.push(GroupIndex { expression, operands, reduction, error });
            arguments.push(index);
        }
        let of_reductions = reductions.iter().map(|reduction| &reduction.operands);
        let of_stored = stored.all.iter().map(|stored| &stored.operands);
        let of_finishes = finishes.iter().map(|finish| &finish.operands);
        let element_indices = element_indices_for(of_reductions.chain(of_stored).chain(of_finishes))?;
        let stages = match (sections.reason, reductions.is_empty()) {
            (Some(reason), _) => Err(reason),
            (None, true) => Err("the program has no reductions"),
            (None, false) => {
                let phase = Phase::new(nodes, &arguments, &numbers, &HashMap::new());
                RowStages::new(phase, &reductions, indices.len())
            }
        };
        let given = nodes.scalars.iter().filter(|(_, literal)| literal.is_none());
        let described = outputs.iter().map(|output| RowOutput {
            dtype: nodes.dtype(*output),
            is_per_group: per_group[*output as usize],
            is_over_groups: false,
        });
        let compiled = CompiledRows {
            outputs: described.collect(),
            scalars: given.map(|(dtype, _)| *dtype).collect(),
            compares_by_value: nodes.compares_by_value,
            inputs: nodes.inputs.clone(),
            reductions,
            finishes,
            indices,
            element_indices,
            stored: stored.all,
            stream_inputs,
            stages,
            has_sums: false,
        };
        Ok(RowProgram::new(
            compiled,
            #[cfg(target_arch = "x86_64")]
            blocks,
            None,
        ))
    }
}

/// Returns an expression of the index of each element in its group, if a phase reads it.
///
/// # Errors
///
/// As [`Graph::expression`].
pub(super) fn element_indices_for<'a>(
    mut phases: impl Iterator<Item = &'a PhaseOperands>,
) -> Result<Option<Arc<CompiledExpression>>> {
    if !phases.any(|operands| operands.inputs.contains(&PhaseInput::Index)) {
        return Ok(None);
    }
    let graph = Graph::new();
    Ok(Some(Arc::new(CompiledExpression::of(&graph, &[graph.position()])?)))
}

/// Returns the numbers of the outputs that a section computes, as lists of an expression each. Outputs of one node are in
/// different lists if the program is divided, as a section counts a node once.
fn outputs_of(
    outputs: &[NodeIndex],
    section: &[NodeIndex],
    is_chosen: impl Fn(NodeIndex) -> bool,
    is_divided: bool,
) -> Vec<Vec<usize>> {
    let mut lists: Vec<Vec<usize>> = Vec::new();
    let members: HashSet<NodeIndex> = section.iter().copied().collect();
    let mut seen: HashMap<NodeIndex, usize> = HashMap::new();
    for (number, &output) in outputs.iter().enumerate() {
        if !members.contains(&output) || !is_chosen(output) {
            continue;
        }
        let before = seen.entry(output).or_default();
        let list = if is_divided { *before } else { 0 };
        *before += 1;
        if list >= lists.len() {
            lists.resize(list + 1, Vec::new());
        }
        lists[list].push(number);
    }
    lists
}
