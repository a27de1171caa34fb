//! Random words and coordinates of elements in memory, for a program that runs as several kernels.
//!
//! A reduction of its own reads no coordinates, so an expression computes them first. One kernel computes them in
//! registers instead.

use std::collections::HashMap;

use super::super::expression::Expression;
use super::super::graph::Nodes;
use super::super::node::{Node, NodeIndex, needed};
use super::PhaseOperands;
use super::split::Phase;
use crate::error::Result;

/// An expression whose result later phases read from memory.
pub(super) struct Draw {
    pub(super) expression: Expression,
    pub(super) operands: PhaseOperands,
}

impl Draw {
    /// Compiles the random words and coordinates that `roots` depend on. Returns them with their number by node.
    ///
    /// # Errors
    ///
    /// As [`Graph::expression`](super::super::Graph::expression).
    pub(super) fn all(nodes: &Nodes, roots: &[NodeIndex]) -> Result<(Vec<Draw>, HashMap<NodeIndex, usize>)> {
        let (mut draws, mut numbers) = (Vec::new(), HashMap::new());
        let none = HashMap::new();
        for (index, needed) in needed(nodes, roots, |_| false).into_iter().enumerate() {
            if !needed || !matches!(nodes.nodes[index].0, Node::Random(..) | Node::Coordinate(_)) {
                continue;
            }
            let node = index as NodeIndex;
            let phase = Phase::new(nodes, &[node], &none, &none);
            let expression = phase.graph.expression(&phase.outputs())?;
            numbers.insert(node, draws.len());
            draws.push(Draw {
                expression,
                operands: PhaseOperands { inputs: phase.inputs, scalars: phase.scalars },
            });
        }
        Ok((draws, numbers))
    }
}
