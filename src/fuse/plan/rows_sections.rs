//! [`Sections`], the division of a program whose phases exceed the limits of one expression.
//!
//! The nodes are put in an order in which a user follows its operands closely, and cut into runs of adjacent nodes. A
//! section stores the values that later sections read, so every phase depends on nodes of one section, on inputs, and
//! on stored values. A section ends at the last node up to which its operands and instructions fit one expression:
//! its leaves beside its stored values and outputs, and an upper bound of its instructions, which is the sum over nodes
//! lowered alone.
//!
//! One expression has at most 64 inputs, scalars, coordinates and outputs, because the parameters of its kernel hold their
//! strides and values, and at most 20,000 instructions, because a longer text assembles slowly and is no faster than two
//! kernels. `fuse`, `Fused` and `DynamicFused` divide elementwise functions the same way (`Graph::several_expressions`). Not
//! divided are `Graph::expression`, `Graph::reduction` and `Graph::scan`, which are one kernel by definition and return a
//! typed error. The seed and the offset of random words and the index of `at_group` have one element, or one a group, where
//! stored values have one for each element, so they are not divided either. A divided program reads and writes its stored
//! values once more than one kernel would, and copies in-place inputs if several of its kernels write outputs per element.
//!
//! Random words and coordinates are stored before all sections ([`stored`](super::rows_stored)), so that a seed is never
//! stored with a value for each element.
//!
//! Invariant: a stored value has the bits that the same operations have in registers, because a section lowers each
//! operation as the whole expression does and stores a value in the dtype in which it is computed.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use super::compiled_expression::{CompiledExpression, MAX_INSTRUCTIONS, MAX_OPERANDS};
use crate::fuse::language::graph::Nodes;
use crate::fuse::language::node::{Node, NodeIndex, needed};
use crate::types::DType;

/// The instructions of a section. The rest is for the casts of a reduction's argument.
const SECTION_INSTRUCTIONS: usize = MAX_INSTRUCTIONS - 200;

/// The computation of a program in order.
pub(in crate::fuse) struct Sections {
    /// The nodes that the outputs depend on; operands precede their users.
    pub(in crate::fuse) order: Vec<NodeIndex>,
    /// By section, the end of its nodes in `order`.
    pub(in crate::fuse) ends: Vec<usize>,
    /// By section, the nodes whose values later sections read.
    pub(in crate::fuse) stored: Vec<Vec<NodeIndex>>,
    /// The reason of a division.
    pub(in crate::fuse) reason: Option<&'static str>,
}

/// Returns whether a phase reads the node and computes none of its operands.
fn is_leaf(node: Node) -> bool {
    match node {
        Node::Input(_) | Node::Scalar(_) | Node::Coordinate(_) | Node::Random(..) => true,
        Node::Group(..) | Node::GroupSize | Node::GroupIndex => true,
        Node::Normal(_)
        | Node::Permute(_)
        | Node::Cast(_)
        | Node::Apply(..)
        | Node::PowerUpToOne(_)
        | Node::SumOverGroups(_) => false,
    }
}

/// Returns the operands that are computed before a node. Stored words need none.
fn operands(nodes: &Nodes, index: NodeIndex) -> impl Iterator<Item = NodeIndex> {
    let node = nodes.nodes[index as usize].0;
    node.operands().filter(move |_| !matches!(node, Node::Random(..)))
}

/// Returns the nodes that the outputs depend on, each right after the operands that no other node needed before.
fn post_order(nodes: &Nodes, outputs: &[NodeIndex]) -> Vec<NodeIndex> {
    let mut order = Vec::with_capacity(nodes.nodes.len());
    let mut is_seen = vec![false; nodes.nodes.len()];
    let mut stack: Vec<(NodeIndex, bool)> = outputs.iter().rev().map(|&output| (output, false)).collect();
    while let Some((node, has_operands)) = stack.pop() {
        if has_operands {
            order.push(node);
        } else if !std::mem::replace(&mut is_seen[node as usize], true) {
            stack.push((node, true));
            let first = stack.len();
            stack.extend(operands(nodes, node).map(|operand| (operand, false)));
            stack[first..].reverse();
        }
    }
    order
}

/// The instructions of operations that are lowered alone.
#[derive(Default)]
struct Costs(HashMap<(Node, Vec<DType>, DType), usize>);

impl Costs {
    fn of(&mut self, nodes: &Nodes, index: NodeIndex) -> usize {
        let (node, dtype) = nodes.nodes[index as usize];
        let dtypes: Vec<DType> = node.operands().map(|operand| nodes.dtype(operand)).collect();
        let next = Cell::new(0);
        let alone = node.map_operands(|_| next.replace(next.get() + 1));
        *self.0.entry((alone, dtypes.clone(), dtype)).or_insert_with(|| {
            let mut graph = Nodes::default();
            for (input, &dtype) in dtypes.iter().enumerate() {
                graph.inputs.push(dtype);
                graph.push(Node::Input(input as u32), dtype);
            }
            let output = graph.push(alone, dtype);
            // The phase that contains the node returns the error.
            CompiledExpression::new(&graph, &[output]).map_or(1, |expression| expression.program.steps.len())
        })
    }
}

impl Sections {
    /// Returns one section of all nodes.
    pub(in crate::fuse) fn whole(nodes: &Nodes, outputs: &[NodeIndex]) -> Sections {
        let needed = needed(nodes, outputs, |_| false).into_iter().enumerate();
        let order: Vec<NodeIndex> =
            needed.filter(|(_, needed)| *needed).map(|(index, _)| index as NodeIndex).collect();
        Sections { ends: vec![order.len()], stored: vec![Vec::new()], reason: None, order }
    }

    /// Returns the sections of a program that exceeds the limits of an expression; `None` for one section.
    pub(in crate::fuse) fn divided(nodes: &Nodes, outputs: &[NodeIndex]) -> Option<Sections> {
        let order = post_order(nodes, outputs);
        let count = nodes.nodes.len();
        let (mut position, mut last_user) = (vec![0usize; count], vec![0usize; count]);
        for (at, &node) in order.iter().enumerate() {
            position[node as usize] = at;
            operands(nodes, node).for_each(|operand| last_user[operand as usize] = at);
        }
        let mut is_output = vec![false; count];
        outputs.iter().for_each(|&output| is_output[output as usize] = true);
        let is_leaf = |node: NodeIndex| is_leaf(nodes.nodes[node as usize].0);
        let mut costs = Costs::default();
        let (mut ends, mut all_stored, mut reason) = (Vec::new(), Vec::new(), None);
        let mut start = 0;
        while start < order.len() {
            let mut leaves: HashSet<NodeIndex> = HashSet::new();
            // Values that later nodes read, and outputs.
            let (mut cost, mut open, mut written) = (0usize, 0usize, 0usize);
            // The section of one node fits.
            let mut end = start + 1;
            let mut limit = None;
            for (at, &node) in order.iter().enumerate().skip(start) {
                written += usize::from(is_output[node as usize]);
                let mut before: Vec<NodeIndex> = operands(nodes, node).collect();
                before.sort_unstable();
                before.dedup();
                let is_inside = |of: NodeIndex| !is_leaf(of) && position[of as usize] >= start;
                if is_leaf(node) {
                    if is_output[node as usize] {
                        leaves.insert(node);
                    }
                } else {
                    leaves.extend(before.iter().copied().filter(|&of| !is_inside(of)));
                    cost += costs.of(nodes, node);
                    open += usize::from(last_user[node as usize] > at);
                }
                open -= before.iter().filter(|&&of| is_inside(of) && last_user[of as usize] == at).count();
                if cost > SECTION_INSTRUCTIONS {
                    limit = Some("a phase has more than 20000 instructions");
                    break;
                }
                if leaves.len() >= MAX_OPERANDS {
                    break;
                }
                if leaves.len() + (open + written).max(1) <= MAX_OPERANDS {
                    end = at + 1;
                }
            }
            if end < order.len() {
                reason.get_or_insert(limit.unwrap_or("a phase has more than 64 operands"));
            }
            let members = order[start..end].iter().copied();
            let stored = members.filter(|&node| !is_leaf(node) && last_user[node as usize] >= end);
            all_stored.push(stored.collect());
            ends.push(end);
            start = end;
        }
        reason.map(|reason| Sections { order, ends, stored: all_stored, reason: Some(reason) })
    }
}
