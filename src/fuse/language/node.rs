//! [`Node`], an operation of a graph with the indices of its operands.

use super::fold::Fold;
use super::graph::Nodes;
use super::operation::Operation;
use crate::driver::KernelError;

/// The index of a node in its graph.
pub(crate) type NodeIndex = u32;

/// The operation of a graph node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    Input(u32),
    /// A scalar: one that each run passes, or a literal of the expression.
    Scalar(u32),
    Coordinate(u32),
    /// Random words, by [coordinate, words an element, index of the word] and [seed, offset], which all elements
    /// share.
    Random([u32; 3], [NodeIndex; 2]),
    /// A normally distributed number from random bits.
    Normal(NodeIndex),
    /// The image of an index under a permutation: index, length and key.
    Permute([NodeIndex; 3]),
    Cast(NodeIndex),
    Apply(Operation, [NodeIndex; 3]),
    /// e^x of an x that is not above 0, in row programs only.
    PowerUpToOne(NodeIndex),
    /// A reduction over the axes of a group, for row programs only.
    Group(Fold, NodeIndex),
    /// The number of elements of a group, for row programs only.
    GroupSize,
    /// The index of an element within its group, for row programs only.
    GroupIndex,
    /// The sum over all groups, for outputs of row programs only.
    SumOverGroups(NodeIndex),
}

impl Node {
    /// Returns whether only a row program computes the node.
    pub(in crate::fuse) fn is_of_groups(self) -> bool {
        matches!(self, Node::Group(..) | Node::GroupSize | Node::GroupIndex | Node::SumOverGroups(_))
    }

    /// Returns the same node with each operand replaced.
    pub(in crate::fuse) fn map_operands(self, map: impl Fn(NodeIndex) -> NodeIndex) -> Node {
        match self {
            Node::Input(_) | Node::Scalar(_) | Node::Coordinate(_) | Node::GroupSize | Node::GroupIndex => {
                self
            }
            Node::Random(words, scalars) => Node::Random(words, scalars.map(map)),
            Node::Normal(of) => Node::Normal(map(of)),
            Node::Permute(operands) => Node::Permute(operands.map(map)),
            Node::Cast(of) => Node::Cast(map(of)),
            Node::PowerUpToOne(of) => Node::PowerUpToOne(map(of)),
            Node::Apply(operation, operands) => Node::Apply(operation, operands.map(map)),
            Node::Group(fold, of) => Node::Group(fold, map(of)),
            Node::SumOverGroups(of) => Node::SumOverGroups(map(of)),
        }
    }

    /// Returns the operands. An operation of fewer than three repeats its first one.
    pub(in crate::fuse) fn operands(self) -> impl Iterator<Item = NodeIndex> {
        let (operands, count) = match self {
            Node::Input(_) | Node::Scalar(_) | Node::Coordinate(_) | Node::GroupSize | Node::GroupIndex => {
                ([0; 3], 0)
            }
            Node::Random(_, [seed, offset]) => ([seed, offset, offset], 2),
            Node::Normal(of)
            | Node::Cast(of)
            | Node::PowerUpToOne(of)
            | Node::Group(_, of)
            | Node::SumOverGroups(of) => ([of; 3], 1),
            Node::Permute(operands) | Node::Apply(_, operands) => (operands, 3),
        };
        operands.into_iter().take(count)
    }
}

/// Returns which nodes these nodes depend on, themselves included. The operands of a node for which `is_leaf`
/// is true do not count.
pub(in crate::fuse) fn needed(nodes: &Nodes, of: &[NodeIndex], is_leaf: impl Fn(Node) -> bool) -> Vec<bool> {
    needed_until(nodes, of, |_, node| is_leaf(node))
}

/// [`needed`] with the index of each node as an argument of `is_leaf`.
pub(in crate::fuse) fn needed_until(
    nodes: &Nodes,
    of: &[NodeIndex],
    is_leaf: impl Fn(NodeIndex, Node) -> bool,
) -> Vec<bool> {
    let mut needed = vec![false; nodes.nodes.len()];
    for &node in of {
        needed[node as usize] = true;
    }
    for (index, &(node, _)) in nodes.nodes.iter().enumerate().rev() {
        if needed[index] && !is_leaf(index as NodeIndex, node) {
            node.operands().for_each(|operand| needed[operand as usize] = true);
        }
    }
    needed
}

/// Returns for each node whether it depends on inputs, words or indices of elements other than through a reduction, so that
/// its values may differ within a group.
pub(in crate::fuse) fn is_per_element(nodes: &Nodes) -> Vec<bool> {
    dependent(nodes, |node| match node {
        Node::Input(_) | Node::Coordinate(_) | Node::Random(..) | Node::GroupIndex => Some(true),
        Node::Group(..) => Some(false),
        _ => None,
    })
}

/// Returns for each node whether it is one value per group: it depends on a reduction, and otherwise only on
/// scalars.
pub(in crate::fuse) fn is_per_group(nodes: &Nodes) -> Vec<bool> {
    let is_group = dependent(nodes, |node| match node {
        Node::Group(..) => Some(true),
        _ if node.operands().next().is_none() => Some(false),
        _ => None,
    });
    is_group.into_iter().zip(is_per_element(nodes)).map(|(group, element)| group && !element).collect()
}

/// Returns for each node the value of `of`, or without one whether it is true of any operand.
fn dependent(nodes: &Nodes, of: impl Fn(Node) -> Option<bool>) -> Vec<bool> {
    let mut found: Vec<bool> = Vec::with_capacity(nodes.nodes.len());
    for &(node, _) in &nodes.nodes {
        let any = || node.operands().any(|operand| found[operand as usize]);
        let value = of(node).unwrap_or_else(any);
        found.push(value);
    }
    found
}

/// A reduction that chooses an element of a group by an index, which a run checks.
#[derive(Clone, Copy)]
pub(in crate::fuse) struct IndexedGroup {
    pub(in crate::fuse) group: NodeIndex,
    pub(in crate::fuse) index: NodeIndex,
    /// The error of an index out of range.
    pub(in crate::fuse) error: &'static KernelError,
}

impl std::fmt::Debug for IndexedGroup {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}({}, {})", self.error.operation(), self.group, self.index)
    }
}
