//! [`Graph::gradient`], the chain rule over the nodes of a graph.
//!
//! Nodes are created in an order in which operands precede their users, so one pass backwards over the nodes
//! visits each after all of its users.

use super::super::graph::{Expr, Graph};
use super::super::node::{Node, NodeIndex};
use super::operand_gradients;

impl Graph {
    /// Returns the gradients with respect to nodes of this graph, given outputs with the gradients of a loss
    /// with respect to them. The dtype of a gradient is that of its node, and complex gradients are conjugate
    /// Wirtinger derivatives (∂L/∂Re + i ∂L/∂Im). The gradient is 0 if no output depends on the node, or only
    /// through operations that are not differentiable
    /// ([`Operation::is_differentiable`](super::super::Operation::is_differentiable)).
    ///
    /// An expression of another graph and a reduction over a group are errors of [`expression`](Self::expression).
    ///
    /// ```
    /// use selvedge::fuse::{Graph, HostInput, HostOutput};
    /// use selvedge::types::{DType, Layout};
    /// let graph = Graph::new();
    /// let [x, y, g] = graph.inputs([DType::F64; 3]);
    /// let gradients = graph.gradient(&[(x * y + x.exp(), g)], &[x, y]);
    /// let one = Layout::contiguous(&[1])?;
    /// let inputs = [&[0.0], &[3.0], &[10.0]].map(|x: &[f64; 1]| HostInput::new(x, one));
    /// let [x, y, g] = inputs;
    /// let (mut dx, mut dy) = ([0.0f64], [0.0f64]);
    /// let mut outputs = [HostOutput::new(&mut dx, one)?, HostOutput::new(&mut dy, one)?];
    /// graph.expression(&gradients)?.run_host(&[x?, y?, g?], &[], &mut outputs)?;
    /// assert_eq!((dx, dy), ([40.0], [0.0]));
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    pub fn gradient<'g>(
        &'g self,
        outputs: &[(Expr<'g>, Expr<'g>)],
        with_respect_to: &[Expr<'g>],
    ) -> Vec<Expr<'g>> {
        let is_foreign = |expr: &Expr<'g>| !std::ptr::eq(expr.graph, self);
        let mut given =
            outputs.iter().flat_map(|(output, gradient)| [output, gradient]).chain(with_respect_to);
        if given.any(is_foreign) {
            self.refuse_foreign();
            return with_respect_to.to_vec();
        }
        // The pass adds nodes, and differentiates only those that exist now.
        let nodes: Vec<Node> = self.0.borrow().nodes.iter().map(|(node, _)| *node).collect();
        let at = |node: NodeIndex| Expr { graph: self, node };
        let mut depends = vec![false; nodes.len()];
        for wanted in with_respect_to {
            depends[wanted.node as usize] = true;
        }
        for (index, node) in nodes.iter().enumerate() {
            depends[index] |= match node {
                Node::Cast(operand) => depends[*operand as usize],
                Node::Apply(operation, operands) => {
                    operands[..operation.arity()].iter().any(|operand| depends[*operand as usize])
                }
                Node::Group(_, operand) | Node::SumOverGroups(operand) => depends[*operand as usize],
                _ => false,
            };
        }
        let mut gradients: Vec<Option<Expr<'g>>> = vec![None; nodes.len()];
        let add = |gradients: &mut Vec<Option<Expr<'g>>>, node: NodeIndex, gradient: Expr<'g>| {
            let sum = &mut gradients[node as usize];
            *sum = Some(sum.map_or(gradient, |sum| sum + gradient));
        };
        for (output, gradient) in outputs {
            add(&mut gradients, output.node, gradient.converted(output.dtype()));
        }
        for (index, node) in nodes.iter().enumerate().rev() {
            let Some(gradient) = gradients[index].filter(|_| depends[index]) else { continue };
            match *node {
                Node::Cast(operand) => {
                    let dtype = at(operand).dtype();
                    if depends[operand as usize] && (dtype.is_float() || dtype.is_complex()) {
                        add(&mut gradients, operand, gradient.converted(dtype));
                    }
                }
                Node::Apply(operation, operands) => {
                    let result = at(index as NodeIndex);
                    let found = operand_gradients(operation, operands.map(at), result, gradient);
                    for (operand, gradient) in operands.into_iter().zip(found).take(operation.arity()) {
                        if let Some(gradient) = gradient.filter(|_| depends[operand as usize]) {
                            add(&mut gradients, operand, gradient);
                        }
                    }
                }
                Node::Group(..) | Node::SumOverGroups(_) => self.refuse_group(),
                _ => {}
            }
        }
        let zero = |wanted: &Expr<'g>| self.number(0, wanted.dtype());
        with_respect_to
            .iter()
            .map(|wanted| gradients[wanted.node as usize].unwrap_or_else(|| zero(wanted)))
            .collect()
    }

    /// Stores the error of a gradient through a reduction over a group.
    #[cold]
    fn refuse_group(&self) {
        self.0.borrow_mut().refuse("gradient", "a reduction over a group", "elementwise operations");
    }
}
