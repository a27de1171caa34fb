//! [`Variable::gradients`], a backward whose gradients are variables on the tape.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::anomaly;
use super::tape::{Node, add_pending};
use super::variable::Variable;
use crate::error::{Error, Result};

impl Variable {
    /// Returns the gradients of this variable, of one element, with respect to inputs, as variables that are recorded
    /// themselves: `torch.autograd.grad` with `create_graph=True`. Gradients of gradients have any order.
    ///
    /// An input is a leaf or a result that requires a gradient; its gradient is 0 if this variable does not depend on it. No
    /// leaf's [`grad`](Self::grad) changes, and the saved values stay for a backward. Within [`no_grad`](super::no_grad) the
    /// gradients are constants, and every operation has them. Otherwise the operations between are elementwise ones, products,
    /// linear layers, sums, means, views, joins, casts, [`FusedFunction`](super::FusedFunction)s and
    /// [`checkpoint`](fn@super::checkpoint)s of them.
    ///
    /// ```
    /// use selvedge::nn::Variable;
    /// use selvedge::{Device, Tensor};
    /// // The product of the Hessian of Σ x³ and a vector is 6 x v.
    /// let x = Variable::with_grad(Tensor::new([1.0f64, 2.0], &Device::cpu())?)?;
    /// let v = Tensor::new([1.0f64, -1.0], &Device::cpu())?;
    /// let gradients = x.pow(3)?.sum_all()?.gradients(&[&x])?;
    /// let product = (&gradients[0] * &v)?.sum_all()?.gradients(&[&x])?;
    /// assert_eq!(product[0].tensor().to_vec::<f64>()?, [6.0, -12.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Backward`] as [`backward`](Self::backward), for an input that requires no gradient, and with the name of an
    /// operation that has no second derivative.
    pub fn gradients(&self, inputs: &[&Variable]) -> Result<Vec<Variable>> {
        let (node, gradient) = self.first_gradient(None)?;
        gradients(node, Variable::new(gradient), inputs)
    }

    /// Returns gradients as [`gradients`](Self::gradients), given the gradient of this variable of any shape. They depend on
    /// it too.
    ///
    /// # Errors
    ///
    /// As there; [`Error::Backward`] too for a gradient of another shape or dtype.
    pub fn gradients_with(&self, gradient: &Variable, inputs: &[&Variable]) -> Result<Vec<Variable>> {
        let (node, _) = self.first_gradient(Some(&gradient.tensor()))?;
        gradients(node, gradient.clone(), inputs)
    }
}

/// The nodes from which a backward comes to an input, by number.
struct NodesToInputs<'a> {
    inputs: &'a [Arc<Node>],
    known: HashMap<u64, bool>,
}

impl NodesToInputs<'_> {
    /// Adds the nodes on which a node depends.
    fn add(&mut self, root: &Arc<Node>) {
        let mut nodes: BTreeMap<u64, &Arc<Node>> = BTreeMap::new();
        let mut stack = vec![root];
        while let Some(node) = stack.pop() {
            if !self.known.contains_key(&node.number()) && nodes.insert(node.number(), node).is_none() {
                stack.extend(node.operands().iter().flatten());
            }
        }
        // Operands have lower numbers than results.
        for (number, node) in nodes {
            let is_input = self.inputs.iter().any(|input| input.number() == number);
            let leads = is_input || self.has_operand_of(node);
            self.known.insert(number, leads);
        }
    }

    /// Returns whether a backward of the node itself comes to an input. The function of a recomputation may read any variable.
    fn has_operand_of(&self, node: &Node) -> bool {
        node.is_recomputed() || node.operands().iter().flatten().any(|operand| self.contains(operand))
    }

    fn contains(&self, node: &Node) -> bool {
        self.known.get(&node.number()).copied().unwrap_or(true)
    }
}

/// Returns the gradients of inputs, given that of a node.
fn gradients(root: &Arc<Node>, gradient: Variable, inputs: &[&Variable]) -> Result<Vec<Variable>> {
    let node_of = |(index, input): (usize, &&'_ Variable)| {
        input.node().cloned().ok_or_else(|| Error::Backward {
            operation: root.name(),
            found: format!("input {index}, which requires no gradient"),
            wanted: "a leaf of with_grad, or a result of it".to_owned(),
        })
    };
    let nodes = inputs.iter().enumerate().map(node_of).collect::<Result<Vec<Arc<Node>>>>()?;
    let mut to_inputs = NodesToInputs { inputs: &nodes, known: HashMap::new() };
    to_inputs.add(root);
    let check = |node: &Node, gradient: &Variable, whose: &dyn Fn() -> String| {
        anomaly::check(node.name(), &gradient.tensor(), whose)
    };
    check(root, &gradient, &|| "a gradient of the result".to_owned())?;

    let mut found: Vec<Option<Variable>> = vec![None; inputs.len()];
    let mut pending = BTreeMap::from([(root.number(), (root.clone(), gradient))]);
    while let Some((number, (node, gradient))) = pending.pop_last() {
        for (_, found) in nodes.iter().zip(&mut found).filter(|(input, _)| input.number() == number) {
            *found = Some(gradient.clone());
        }
        if !to_inputs.has_operand_of(&node) {
            continue;
        }
        if node.is_recomputed() {
            if let Some(result) = node.recompute()? {
                to_inputs.add(&result);
                add_pending(&mut pending, &result, gradient, |sum, gradient| sum.add(gradient))?;
            }
            continue;
        }
        let gradients = node.recorded_gradients(&gradient)?;
        for (index, (operand, gradient)) in node.operands().iter().zip(gradients).enumerate() {
            let (Some(operand), Some(gradient)) = (operand, gradient) else { continue };
            if to_inputs.contains(operand) {
                let gradient = operand.fit_recorded(node.name(), gradient)?;
                check(&node, &gradient, &|| format!("a gradient of operand {index}"))?;
                add_pending(&mut pending, operand, gradient, |sum, gradient| sum.add(gradient))?;
            }
        }
    }
    let zeros = |input: &Variable| Ok(Variable::new(input.tensor().zeros_like()?));
    found.into_iter().zip(inputs).map(|(found, input)| found.map_or_else(|| zeros(input), Ok)).collect()
}
