//! Expressions of random bits: normal numbers and permutations. [`Graph::random`] gives the bits.

use super::graph::Expr;
use super::node::Node;
use crate::types::DType;

impl<'g> Expr<'g> {
    /// Converts random bits to a standard normal number: u32 to f32 and u64 to f64. The result is the
    /// quantile at (bits + 1/2) / 2^32 or 2^64, within 3 units in the last place and the same on every
    /// device. Any other dtype is an error of [`Graph::expression`](crate::fuse::Graph::expression).
    #[must_use]
    pub fn normal(self) -> Expr<'g> {
        let mut nodes = self.graph.0.borrow_mut();
        let result = match nodes.dtype(self.node) {
            DType::U32 => DType::F32,
            DType::U64 => DType::F64,
            other => {
                nodes.refuse("normal numbers", format!("bits of {other}"), "u32 or u64");
                return self;
            }
        };
        Expr { graph: self.graph, node: nodes.push(Node::Normal(self.node), result) }
    }

    /// Returns the image of this index under a pseudorandom permutation of 0 to `length` - 1 selected by
    /// `key`, as u64. All three operands are cast to u64. A Feistel network of the fewest bits that hold the
    /// length computes the permutation without a table. Not every permutation has a key. A length of 0 counts
    /// as 1, and an index past the length as the last.
    ///
    /// ```
    /// use selvedge::fuse::{Graph, HostOutput};
    /// use selvedge::types::{DType, Layout};
    /// let graph = Graph::new();
    /// let [length, key] = [5u64, 7].map(|number| graph.number(number, DType::U64));
    /// let mut order = [0u64; 5];
    /// let output = HostOutput::new(&mut order, Layout::contiguous(&[5])?)?;
    /// graph.expression(&[graph.position().permuted(length, key)])?.run_host(&[], &[], &mut [output])?;
    /// order.sort_unstable();
    /// assert_eq!(order, [0, 1, 2, 3, 4]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    #[must_use]
    pub fn permuted(self, length: Expr<'g>, key: Expr<'g>) -> Expr<'g> {
        let operand_nodes = [self.node, length.node(self), key.node(self)];
        let mut nodes = self.graph.0.borrow_mut();
        let operand_nodes = operand_nodes.map(|operand| nodes.cast(operand, DType::U64));
        Expr { graph: self.graph, node: nodes.push(Node::Permute(operand_nodes), DType::U64) }
    }
}
