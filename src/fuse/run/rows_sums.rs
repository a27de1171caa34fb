//! Sums over groups beside a row program, such as the gradients of a weight and a bias beside that of the input.
//!
//! **Order.** Groups in row-major order form chunks of [`CHUNK`](crate::fuse::plan::rows_sums::CHUNK). A chunk begins with -0 and
//! adds its groups one after the other; then the tree of [`Reduction`] folds the chunks. The order depends on the number of groups alone.
//!
//! **One kernel.** On a device with enough chunks, one kernel computes the outputs and the sums (`plan::rows_sums`): each block
//! or warp loops over the rows of a chunk, keeps the sums of its columns in registers, and stores them to a workspace
//! with a row for each chunk. A [`Reduction`] for each sum folds the workspace.
//!
//! **Two kernels.** Otherwise the program without sums runs first, in its own schedule, with the values of groups that
//! the sums need as more outputs. A second kernel reads inputs and values, and each of its threads loops over the rows
//! of a chunk. An expression that does not fit this kernel is computed into memory first. The CPU does the same for a
//! few rows at a time (`run::rows_sums_host`). Random words and coordinates in a term are such values too, because an element has another
//! position among a few rows.
//!
//! **Terms in memory.** Terms that exceed the limits of one expression are outputs of the program without sums, which is then
//! divided, and each sum has a kernel of its own.
//!
//! Tests: `tests/parity/row_sums.rs`, `tests/tensor/row_gradients.rs`.

use std::collections::HashMap;

use super::expression::Expression;
use super::reduction::Reduction;
use super::row_program::{RowProgram, uncached};
use super::rows_compile::element_indices_for;
use crate::driver::{DeviceCache, Function};
use crate::error::{Error, Result};
#[cfg(target_arch = "x86_64")]
use crate::fuse::cpu::rows::BlockFinishes;
use crate::fuse::language::fold::Fold;
use crate::fuse::language::graph::{Graph, Nodes};
use crate::fuse::language::node::{Node, NodeIndex, is_per_group, needed, needed_until};
use crate::fuse::plan::compiled_rows::{CompiledRows, OPERATION, RowOutput};
use crate::fuse::plan::rows_split::Phase;
use crate::fuse::plan::rows_stages::RowStages;
use crate::fuse::plan::rows_sums::{CompiledSums, SumKey, SumTerms, SumValue};
use crate::types::DType;

/// The programs that a run with sums over groups executes.
pub(in crate::fuse) struct SumsOverGroups {
    pub(in crate::fuse) compiled: CompiledSums,
    /// The outputs that are no sums, followed by the values of groups that the sums need; `None` without either.
    pub(in crate::fuse) main: Option<RowProgram>,
    /// The terms of the compiled sums.
    pub(in crate::fuse) terms: Vec<Expression>,
    /// The indices of the elements within their group, if terms read them.
    pub(in crate::fuse) element_indices: Option<Expression>,
    /// By sum, the sum over chunks.
    pub(in crate::fuse) folds: Vec<Reduction>,
    /// The assembled kernels.
    pub(super) kernels: DeviceCache<SumKey, Function>,
}

/// Returns the stages of an expression without reductions.
fn stages_of(dtype: DType) -> Result<RowStages> {
    let graph = Graph::new();
    let of = graph.input(dtype).node;
    let phase = Phase::new(&graph.0.borrow(), &[of], &HashMap::new(), &HashMap::new());
    let unfit = || Error::invalid(OPERATION, format!("terms of {dtype}"), "terms of f32 or f64");
    RowStages::new(phase, &[], 0).map_err(|_| unfit())
}

impl SumsOverGroups {
    /// Compiles the sums among outputs of nodes that [`rows_split::widen`] returned; `None` if there are none.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a sum that is an operand or depends on no input; errors of compilation.
    pub(super) fn new(nodes: &Nodes, outputs: &[NodeIndex]) -> Result<Option<SumsOverGroups>> {
        let reached = needed(nodes, outputs, |_| false);
        let is_sum = |index: NodeIndex| matches!(nodes.nodes[index as usize].0, Node::SumOverGroups(_));
        for (&(node, _), _) in nodes.nodes.iter().zip(&reached).filter(|(_, reached)| **reached) {
            if node.operands().any(is_sum) {
                let wanted = "the sum itself as an output; a later expression can read it";
                return Err(Error::invalid(OPERATION, "a sum over groups as an operand", wanted));
            }
        }
        let (mut own, mut sums, mut terms) = (Vec::new(), Vec::new(), Vec::new());
        for (at, &output) in outputs.iter().enumerate() {
            match nodes.nodes[output as usize].0 {
                Node::SumOverGroups(of) => {
                    sums.push(at);
                    terms.push(of);
                }
                _ => own.push(at),
            }
        }
        if sums.is_empty() {
            return Ok(None);
        }
        let per_group = is_per_group(nodes);
        let mut values = values_of(nodes, &terms, &per_group);
        let read_groups = values.iter().any(|&value| per_group[value as usize]);
        let of_terms = needed_until(nodes, &terms, |index, _| values.contains(&index));
        let is_needed = |is_of: fn(Node) -> bool| {
            let mut nodes = nodes.nodes.iter().enumerate();
            nodes.any(|(index, &(node, _))| of_terms[index] && is_of(node))
        };
        if values.is_empty() && !is_needed(|node| matches!(node, Node::Input(_) | Node::GroupIndex)) {
            return Err(Error::invalid(
                OPERATION,
                "a sum over groups of numbers",
                "a sum of an input's elements",
            ));
        }
        let together = SumTerms::new(&with_inputs(nodes, &values), &terms, 0);
        let of_sums = match together {
            Ok(together) => vec![together],
            // The main program computes the terms, and returns any error but that of a limit.
            Err(_) => {
                values = terms.clone();
                values.sort_unstable();
                values.dedup();
                let alone = with_inputs(nodes, &values);
                let each = terms.iter().enumerate();
                each.map(|(sum, &term)| SumTerms::new(&alone, &[term], sum)).collect::<Result<_>>()?
            }
        };
        let mut of_main: Vec<NodeIndex> = own.iter().map(|&at| outputs[at]).collect();
        let mut of_fused = of_main.clone();
        of_main.extend(&values);
        of_fused.extend(&terms);
        let main = match of_main.is_empty() {
            true => None,
            false => Some(RowProgram::compile(nodes, &of_main)?),
        };
        let fused = match read_groups {
            true => Some(RowProgram::compile(nodes, &of_fused)?.0.compiled.clone()),
            false => None,
        };
        let element_indices = element_indices_for(of_sums.iter().map(|terms| &terms.operands))?;
        let dtypes: Vec<DType> = terms.iter().map(|&term| nodes.dtype(term)).collect();
        let fold = |dtype: &DType| {
            let graph = Graph::new();
            graph.reduction(Fold::Sum, graph.input(*dtype))
        };
        let described =
            |dtype: &DType| RowOutput { dtype: *dtype, is_per_group: false, is_over_groups: true };
        let folds: Vec<Reduction> = dtypes.iter().map(fold).collect::<Result<_>>()?;
        Ok(Some(SumsOverGroups {
            main,
            terms: of_sums.iter().map(|terms| uncached(&terms.expression)).collect(),
            element_indices: element_indices.as_ref().map(uncached),
            compiled: CompiledSums {
                fused,
                own,
                sums,
                values: values
                    .iter()
                    .map(|&value| SumValue {
                        dtype: nodes.dtype(value),
                        is_per_group: per_group[value as usize],
                    })
                    .collect(),
                terms: of_sums,
                copies: dtypes.iter().map(|dtype| stages_of(*dtype)).collect::<Result<_>>()?,
                folds: folds.iter().map(|fold| fold.0.compiled.clone()).collect(),
                outputs: dtypes.iter().map(described).collect(),
            },
            folds,
            kernels: DeviceCache::new(),
        }))
    }

    /// Returns the number of reductions of groups.
    pub(in crate::fuse) fn reductions(&self) -> usize {
        self.main.as_ref().map_or(0, RowProgram::reductions)
    }
}

/// Returns the values that the main program computes for the terms: those of groups, random words and coordinates.
fn values_of(nodes: &Nodes, terms: &[NodeIndex], per_group: &[bool]) -> Vec<NodeIndex> {
    let is_value = |index: NodeIndex, node: Node| {
        per_group[index as usize] || matches!(node, Node::Random(..) | Node::Coordinate(_))
    };
    let needed = needed_until(nodes, terms, is_value);
    let found = (0..).zip(&nodes.nodes).zip(needed);
    found
        .filter(|&((index, &(node, _)), needed)| needed && is_value(index, node))
        .map(|((index, _), _)| index)
        .collect()
}

/// Returns the nodes with these values as inputs, after those of the program.
fn with_inputs(nodes: &Nodes, values: &[NodeIndex]) -> Nodes {
    let mut copy = Nodes::default();
    copy.inputs = nodes.inputs.clone();
    copy.scalars = nodes.scalars.clone();
    copy.coordinates = nodes.coordinates.clone();
    copy.compares_by_value = nodes.compares_by_value;
    for (index, &(node, dtype)) in nodes.nodes.iter().enumerate() {
        let node = match values.iter().position(|&value| value as usize == index) {
            Some(_) => {
                copy.inputs.push(dtype);
                Node::Input(copy.inputs.len() as u32 - 1)
            }
            None => node,
        };
        copy.push(node, dtype);
    }
    copy
}

impl RowProgram {
    /// Creates a program with sums over groups.
    pub(super) fn with_sums(nodes: &Nodes, outputs: &[NodeIndex], sums: SumsOverGroups) -> RowProgram {
        let per_group = is_per_group(nodes);
        let described = outputs.iter().enumerate().map(|(at, &output)| {
            let is_over_groups = sums.compiled.sums.contains(&at);
            let is_per_group = !is_over_groups && per_group[output as usize];
            RowOutput { dtype: nodes.dtype(output), is_per_group, is_over_groups }
        });
        let given = nodes.scalars.iter().filter(|(_, literal)| literal.is_none());
        let compiled = CompiledRows {
            inputs: nodes.inputs.clone(),
            scalars: given.map(|(dtype, _)| *dtype).collect(),
            outputs: described.collect(),
            reductions: Vec::new(),
            finishes: Vec::new(),
            indices: Vec::new(),
            element_indices: None,
            stored: Vec::new(),
            stream_inputs: nodes.stream_inputs(&needed(nodes, outputs, |_| false)),
            stages: Err("sums over groups have programs of their own"),
            compares_by_value: nodes.compares_by_value,
            has_sums: true,
        };
        RowProgram::new(
            compiled,
            #[cfg(target_arch = "x86_64")]
            BlockFinishes::default(),
            Some(sums),
        )
    }
}
