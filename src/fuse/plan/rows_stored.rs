//! Values in memory between the phases of a program that runs as several kernels.
//!
//! A reduction of its own reads no coordinates, so an expression computes random words and coordinates first. One kernel
//! computes them in registers instead. A program of several [sections](super::rows_sections) stores the values that later
//! sections read.

use std::collections::HashMap;
use std::sync::Arc;

use super::compiled_expression::CompiledExpression;

use super::compiled_rows::PhaseOperands;
use super::rows_split::Phase;
use crate::error::Result;
use crate::fuse::language::graph::Nodes;
use crate::fuse::language::node::{Node, NodeIndex, needed};

/// The elements of stored values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fuse) enum StoredKind {
    /// Random words or a coordinate of each element, from seeds of one element.
    Words,
    /// Values of each element.
    Elements,
    /// One value for each group.
    Groups,
}

/// An expression whose outputs later phases read from memory.
pub(in crate::fuse) struct StoredValues {
    pub(in crate::fuse) expression: Arc<CompiledExpression>,
    pub(in crate::fuse) operands: PhaseOperands,
    pub(in crate::fuse) kind: StoredKind,
    /// The number of reductions that run before.
    pub(in crate::fuse) after: usize,
    pub(in crate::fuse) phase: usize,
}

/// All stored values of a program, in the order of their computation.
#[derive(Default)]
pub(in crate::fuse) struct StoredList {
    pub(in crate::fuse) all: Vec<StoredValues>,
    /// By value, its phase.
    pub(in crate::fuse) phases: Vec<usize>,
    /// The number of each node's value.
    pub(in crate::fuse) numbers: HashMap<NodeIndex, usize>,
}

impl StoredList {
    /// Compiles the random words and coordinates that `roots` depend on.
    ///
    /// # Errors
    ///
    /// As [`Graph::expression`](crate::fuse::Graph::expression).
    pub(in crate::fuse) fn of_words(nodes: &Nodes, roots: &[NodeIndex]) -> Result<StoredList> {
        let mut list = StoredList::default();
        let none = HashMap::new();
        for (index, needed) in needed(nodes, roots, |_| false).into_iter().enumerate() {
            if !needed || !matches!(nodes.nodes[index].0, Node::Random(..) | Node::Coordinate(_)) {
                continue;
            }
            let node = index as NodeIndex;
            list.push(&[node], Phase::new(nodes, &[node], &none, &none), StoredKind::Words, 0, 0)?;
        }
        Ok(list)
    }

    /// Adds a phase that computes the values of `nodes`.
    ///
    /// # Errors
    ///
    /// As [`Graph::expression`](crate::fuse::Graph::expression).
    pub(in crate::fuse) fn push(
        &mut self,
        nodes: &[NodeIndex],
        of_values: Phase,
        kind: StoredKind,
        after: usize,
        phase: usize,
    ) -> Result<()> {
        let (expression, operands) = of_values.compiled()?;
        for &node in nodes {
            self.numbers.insert(node, self.phases.len());
            self.phases.push(phase);
        }
        self.all.push(StoredValues { expression, operands, kind, after, phase });
        Ok(())
    }
}
