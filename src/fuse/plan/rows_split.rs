//! The split of a graph into phases at its reductions over groups.
//!
//! [`widen`] rewrites the graph: values of f16 and bf16 are computed in f32, and equal nodes become one node, so
//! that equal reductions run once. [`Phase::new`] then copies the nodes between reductions to a graph of their
//! own, in which the values of earlier reductions are inputs.

use std::collections::HashMap;
use std::sync::Arc;

use super::compiled_expression::CompiledExpression;

use super::compiled_rows::{PhaseOperands, RowReduction};
use crate::error::Result;
use crate::fuse::language::fold::Fold;
use crate::fuse::language::graph::{Expr, Graph, Nodes};
use crate::fuse::language::node::{IndexedGroup, Node, NodeIndex, needed, needed_until};
use crate::fuse::language::operation::{Operation, Rule};
use crate::types::DType;

/// Returns whether values of a dtype are computed in f32.
fn is_narrow(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// Returns the dtype in which a program computes values of a dtype.
fn computed(dtype: DType) -> DType {
    if is_narrow(dtype) { DType::F32 } else { dtype }
}

/// Nodes without duplicates.
struct DistinctNodes {
    nodes: Nodes,
    known: HashMap<(Node, DType), NodeIndex>,
}

impl DistinctNodes {
    fn add(&mut self, node: Node, dtype: DType) -> NodeIndex {
        let DistinctNodes { nodes, known } = self;
        *known.entry((node, dtype)).or_insert_with(|| nodes.push(node, dtype))
    }

    fn cast(&mut self, node: NodeIndex, dtype: DType) -> NodeIndex {
        if self.nodes.dtype(node) == dtype {
            return node;
        }
        if let (Node::Cast(narrow), DType::F32) = self.nodes.nodes[node as usize] {
            // The value was widened from this dtype, so the cast back is exact.
            if is_narrow(dtype) && self.nodes.dtype(narrow) == dtype {
                return narrow;
            }
        }
        self.add(Node::Cast(node), dtype)
    }

    /// Returns whether a node is a float minus the largest of its group, or the smallest of its group minus it: at most 0, or NaN.
    fn is_up_to_0(&self, node: NodeIndex) -> bool {
        let known = |node: NodeIndex| self.nodes.nodes[node as usize];
        let (Node::Apply(Operation::Sub, [left, right, _]), DType::F32 | DType::F64) = known(node) else {
            return false;
        };
        known(right).0 == Node::Group(Fold::Maximum, left)
            || known(left).0 == Node::Group(Fold::Minimum, right)
    }
}

/// Rewrites the nodes that `outputs` depend on, and returns the rewritten outputs in their dtypes.
///
/// A value of f16 or bf16 is held in f32. Loads widen it; casts to its dtype and stores of outputs round it.
pub(in crate::fuse) fn widen(nodes: &Nodes, outputs: &[NodeIndex]) -> (Nodes, Vec<NodeIndex>) {
    let mut distinct = DistinctNodes { nodes: Nodes::default(), known: HashMap::new() };
    distinct.nodes.inputs = nodes.inputs.clone();
    distinct.nodes.coordinates = nodes.coordinates.clone();
    distinct.nodes.compares_by_value = nodes.compares_by_value;
    let scalars = nodes.scalars.iter();
    distinct.nodes.scalars = scalars.map(|&(dtype, number)| (computed(dtype), number)).collect();
    let mut rewritten: Vec<NodeIndex> = vec![0; nodes.nodes.len()];
    let needed = needed(nodes, outputs, |_| false);
    for (index, &(node, dtype)) in nodes.nodes.iter().enumerate().filter(|(index, _)| needed[*index]) {
        let at = |operand: NodeIndex| rewritten[operand as usize];
        let is_scalar = |operand: NodeIndex| matches!(nodes.nodes[operand as usize].0, Node::Scalar(_));
        let narrowed = match node {
            Node::Input(_) => distinct.add(node, dtype),
            Node::Cast(of) => distinct.cast(at(of), dtype),
            // The neighbour of a number depends on the dtype.
            Node::Apply(Operation::NextAfter, operands) if is_narrow(dtype) => {
                let operands = operands.map(|operand| distinct.cast(at(operand), dtype));
                distinct.add(Node::Apply(Operation::NextAfter, operands), dtype)
            }
            // A comparison with a number is one with the number that the dtype holds.
            Node::Apply(operation, operands) if operation.rule() == Rule::Comparison => {
                let operands = operands.map(|operand| {
                    let of = nodes.dtype(operand);
                    if is_scalar(operand) && is_narrow(of) {
                        let rounded = distinct.cast(at(operand), of);
                        return distinct.cast(rounded, DType::F32);
                    }
                    at(operand)
                });
                distinct.add(Node::Apply(operation, operands), dtype)
            }
            Node::Apply(Operation::Exp, [of, ..]) if distinct.is_up_to_0(at(of)) => {
                distinct.add(Node::PowerUpToOne(at(of)), computed(dtype))
            }
            _ => distinct.add(node.map_operands(at), computed(dtype)),
        };
        rewritten[index] = distinct.cast(narrowed, computed(dtype));
    }
    for &indexed in nodes.indexed.iter().filter(|indexed| needed[indexed.group as usize]) {
        let [group, index] = [indexed.group, indexed.index].map(|node| rewritten[node as usize]);
        let all = &mut distinct.nodes.indexed;
        if !all.iter().any(|known| (known.group, known.index) == (group, index)) {
            all.push(IndexedGroup { group, index, ..indexed });
        }
    }
    let outputs = outputs.iter().map(|&output| {
        let dtype = nodes.dtype(output);
        distinct.cast(rewritten[output as usize], dtype)
    });
    let outputs = outputs.collect();
    (distinct.nodes, outputs)
}

/// An input of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fuse) enum PhaseInput {
    /// An input of the program.
    Input(usize),
    /// The value of a reduction.
    Group(usize),
    /// The index of an element within its group, as i64.
    Index,
    /// A value that a run stored before the phase, such as random words.
    Stored(usize),
}

/// A scalar that a run passes to a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fuse) enum PhaseScalar {
    /// A scalar that a run passes to the program.
    Given(usize),
    /// The number of elements of a group.
    GroupSize,
}

/// The nodes between reductions, as a graph of their own.
pub(in crate::fuse) struct Phase {
    pub(in crate::fuse) graph: Graph,
    outputs: Vec<NodeIndex>,
    pub(in crate::fuse) inputs: Vec<PhaseInput>,
    pub(in crate::fuse) scalars: Vec<PhaseScalar>,
}

impl Phase {
    /// Copies the nodes that `outputs` depend on, up to earlier reductions and to values in memory. `reductions` has the
    /// number of each reduction's node, and `stored` that of each node that the phase reads from memory.
    pub(in crate::fuse) fn new(
        nodes: &Nodes,
        outputs: &[NodeIndex],
        reductions: &HashMap<NodeIndex, usize>,
        stored: &HashMap<NodeIndex, usize>,
    ) -> Phase {
        let mut phase =
            Phase { graph: Graph::new(), outputs: Vec::new(), inputs: Vec::new(), scalars: Vec::new() };
        let mut copy = Nodes::default();
        let mut copied: Vec<NodeIndex> = vec![0; nodes.nodes.len()];
        let needed = needed_until(nodes, outputs, |index, node| {
            matches!(node, Node::Group(..)) || stored.contains_key(&index)
        });
        let given = |index: u32| {
            let before = nodes.scalars.iter().take(index as usize);
            before.filter(|(_, literal)| literal.is_none()).count()
        };
        for (index, &(node, dtype)) in nodes.nodes.iter().enumerate().filter(|(index, _)| needed[*index]) {
            let known = index as NodeIndex;
            let read = match node {
                _ if stored.contains_key(&known) => Some(PhaseInput::Stored(stored[&known])),
                Node::Input(input) => Some(PhaseInput::Input(input as usize)),
                Node::Group(..) => {
                    Some(PhaseInput::Group(reductions.get(&known).copied().unwrap_or_default()))
                }
                Node::GroupIndex => Some(PhaseInput::Index),
                _ => None,
            };
            let node = match (read, node) {
                (Some(read), _) => {
                    phase.inputs.push(read);
                    copy.inputs.push(dtype);
                    Node::Input(copy.inputs.len() as u32 - 1)
                }
                (None, Node::Scalar(scalar)) => {
                    let (dtype, literal) = nodes.scalars[scalar as usize];
                    if literal.is_none() {
                        phase.scalars.push(PhaseScalar::Given(given(scalar)));
                    }
                    copy.scalars.push((dtype, literal));
                    Node::Scalar(copy.scalars.len() as u32 - 1)
                }
                (None, Node::GroupSize) => {
                    phase.scalars.push(PhaseScalar::GroupSize);
                    copy.scalars.push((dtype, None));
                    Node::Scalar(copy.scalars.len() as u32 - 1)
                }
                (None, Node::Coordinate(coordinate)) => {
                    Node::Coordinate(copy.coordinate(nodes.coordinates[coordinate as usize]))
                }
                (None, Node::Random([coordinate, words, number], seed)) => {
                    let coordinate = copy.coordinate(nodes.coordinates[coordinate as usize]);
                    let operands = seed.map(|operand| copied[operand as usize]);
                    Node::Random([coordinate, words, number], operands)
                }
                (None, other) => other.map_operands(|operand| copied[operand as usize]),
            };
            copied[index] = copy.push(node, dtype);
        }
        phase.outputs = outputs.iter().map(|&output| copied[output as usize]).collect();
        copy.compares_by_value = nodes.compares_by_value;
        phase.graph.0.replace(copy);
        phase
    }

    /// Returns the number of the phase: one more than those of the reductions that it reads, and no less than those of stored
    /// values.
    pub(in crate::fuse) fn number(&self, reductions: &[RowReduction], stored: &[usize]) -> usize {
        let earlier = self.inputs.iter().map(|input| match *input {
            PhaseInput::Group(number) => reductions[number].phase + 1,
            PhaseInput::Stored(number) => stored[number],
            PhaseInput::Input(_) | PhaseInput::Index => 0,
        });
        earlier.max().unwrap_or(0)
    }

    /// Compiles the outputs to an expression.
    ///
    /// # Errors
    ///
    /// As [`Graph::expression`].
    pub(in crate::fuse) fn compiled(self) -> Result<(Arc<CompiledExpression>, PhaseOperands)> {
        let expression = CompiledExpression::of(&self.graph, &self.outputs())?;
        Ok((Arc::new(expression), PhaseOperands { inputs: self.inputs, scalars: self.scalars }))
    }

    /// Returns the outputs.
    pub(in crate::fuse) fn outputs(&self) -> Vec<Expr<'_>> {
        self.outputs.iter().map(|&node| Expr { graph: &self.graph, node }).collect()
    }
}
