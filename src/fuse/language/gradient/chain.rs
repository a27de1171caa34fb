//! [`Graph::gradient`], the chain rule over the nodes of a graph.
//!
//! Nodes are created in an order in which operands precede their users, so one pass backwards over the nodes
//! visits each after all of its users. A value of a group that the elements of the group use has the sum of their
//! gradients over the group.

use super::super::graph::{Expr, Graph};
use super::super::node::{Node, NodeIndex, is_per_group};
use super::{operand_gradients, product_of_others};
use crate::fuse::language::fold::Fold;

impl Graph {
    /// Returns the gradients with respect to nodes of this graph, given outputs with the gradients of a loss
    /// with respect to them. The dtype of a gradient is that of its node, and complex gradients are conjugate
    /// Wirtinger derivatives (∂L/∂Re + i ∂L/∂Im). The gradient is 0 if no output depends on the node, or only
    /// through operations that are not differentiable
    /// ([`Operation::is_differentiable`](crate::fuse::Operation::is_differentiable)).
    ///
    /// Outputs may contain reductions over groups; the gradients then need a
    /// [`row_program`](Self::row_program). The gradient of an output that has one value per group has one, too. Elements that
    /// equal the extreme of their group have equal shares of its gradient, as have the NaNs of a group with NaN. An expression of another graph, and a gradient of a
    /// gradient of [`prod_group`](Expr::prod_group), are errors of [`expression`](Self::expression).
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
        let per_group = is_per_group(&self.0.borrow());
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
            if self.0.borrow().not_differentiable.contains(&(index as NodeIndex)) {
                let found = "a second derivative of prod_group";
                self.0.borrow_mut().refuse(
                    "gradient",
                    found,
                    "a first one, or a product of selected elements",
                );
                continue;
            }
            // The elements of a group use the operand's one value.
            let gathered = |operand: NodeIndex, gradient: Expr<'g>| match per_group[operand as usize]
                && !per_group[index]
            {
                true => gradient.sum_group().converted(gradient.dtype()),
                false => gradient,
            };
            // A reduction reads the operand's one value once for each element.
            let of_elements = |operand: NodeIndex, gradient: Expr<'g>| {
                let gradient = if per_group[operand as usize] { gradient.sum_group() } else { gradient };
                gradient.converted(at(operand).dtype())
            };
            match *node {
                Node::Cast(operand) => {
                    let dtype = at(operand).dtype();
                    if depends[operand as usize] && (dtype.is_float() || dtype.is_complex()) {
                        add(&mut gradients, operand, gathered(operand, gradient.converted(dtype)));
                    }
                }
                Node::Apply(operation, operands) => {
                    let result = at(index as NodeIndex);
                    let found = operand_gradients(operation, operands.map(at), result, gradient);
                    for (operand, gradient) in operands.into_iter().zip(found).take(operation.arity()) {
                        if let Some(gradient) = gradient.filter(|_| depends[operand as usize]) {
                            add(&mut gradients, operand, gathered(operand, gradient));
                        }
                    }
                }
                Node::Group(fold, operand) => {
                    if let Some(gradient) = fold_gradient(fold, at(operand), at(index as NodeIndex), gradient)
                    {
                        add(&mut gradients, operand, of_elements(operand, gradient));
                    }
                }
                Node::SumOverGroups(operand) => add(&mut gradients, operand, of_elements(operand, gradient)),
                _ => {}
            }
        }
        let zero = |wanted: &Expr<'g>| self.number(0, wanted.dtype());
        with_respect_to
            .iter()
            .map(|wanted| gradients[wanted.node as usize].unwrap_or_else(|| zero(wanted)))
            .collect()
    }
}

/// Returns the gradient of the elements of a group from the gradient of their reduction. `None` is 0.
fn fold_gradient<'g>(fold: Fold, x: Expr<'g>, result: Expr<'g>, gradient: Expr<'g>) -> Option<Expr<'g>> {
    let converted = |value: Expr<'g>| value.converted(gradient.dtype());
    match fold {
        Fold::Sum => Some(gradient),
        Fold::Product => {
            let factor = product_of_others(x);
            // If there are zeros, the factors do not depend on the elements as the products do.
            factor.graph.0.borrow_mut().not_differentiable.push(factor.node);
            let factor = if factor.dtype().is_complex() { factor.conj() } else { factor };
            Some(gradient * converted(factor))
        }
        Fold::Minimum | Fold::Maximum => {
            let zero = gradient.graph.number(0, gradient.dtype());
            let (x, result) = (converted(x), converted(result));
            // An extreme that is NaN equals nothing: the NaNs of the group share its gradient.
            let is_extreme = x.eq(result) | x.is_nan();
            // A sum of ones stays in f32 where a cast count would be rounded to f16 or bf16.
            let count = converted(is_extreme.choose(zero + 1.0, zero).sum_group());
            Some(is_extreme.choose(gradient / count, zero))
        }
        Fold::SumOfSquares => {
            // The factor is constant between jumps.
            let (factor, gradient) = (result.imag(), gradient.real());
            Some((x * factor) * (gradient * factor) * 2.0)
        }
        Fold::ArgMinimum | Fold::ArgMaximum | Fold::Any | Fold::All => None,
    }
}
