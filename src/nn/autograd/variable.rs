//! [`Variable`], a tensor with a node on the tape.

use std::fmt;
use std::sync::Arc;

use super::flat::FlatSlot;
use super::mode::{is_grad_enabled, observe};
use super::recordable::{RecordableRule, recorded_linear};
use super::tape::{AccumulatingRule, BackwardRule, Node, OverwritingRule, Recomputation, backward};
use super::value::{Saved, Value};
use crate::error::{Error, Result};
use crate::tensor::{Device, Tensor, TensorMut};
use crate::types::{DType, Shape};

/// A tensor that takes part in automatic differentiation.
///
/// A variable from [`with_grad`](Self::with_grad) is a leaf whose gradient [`backward`](Self::backward) computes; results of
/// operations on it are recorded. Its operations have the names and the rules of [`Tensor`]'s. A clone is the same variable.
///
/// ```
/// use selvedge::nn::Variable;
/// use selvedge::{Device, Tensor};
/// let x = Variable::with_grad(Tensor::new([1.0f64, 2.0], &Device::cpu())?)?;
/// let y = ((&x * 3.0)?.square()? + &x)?;
/// y.sum_all()?.backward()?;
/// assert_eq!(x.grad().map(|gradient| gradient.to_vec::<f64>()).transpose()?, Some(vec![19.0, 37.0]));
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone)]
pub struct Variable {
    value: Arc<Value>,
    node: Option<Arc<Node>>,
    /// The operation without a gradient that made this constant, or an operand of it, from a variable with one.
    stopped_by: Option<&'static str>,
}

impl Variable {
    /// Creates a constant: operations on it alone are not recorded.
    pub fn new(tensor: Tensor) -> Variable {
        Variable { value: Value::new(tensor), node: None, stopped_by: None }
    }

    /// Creates a leaf that requires a gradient.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for elements that are neither floats nor complex numbers.
    pub fn with_grad(tensor: Tensor) -> Result<Variable> {
        if !is_differentiable(tensor.dtype()) {
            return Err(Error::DTypeMismatch {
                operation: "a variable with a gradient",
                wanted: "floats or complex numbers".to_owned(),
                found: tensor.dtype().to_string(),
            });
        }
        let node = Some(Node::leaf(&tensor));
        Ok(Variable { value: Value::new(tensor), node, stopped_by: None })
    }

    /// Returns the tensor, which shares the elements.
    pub fn tensor(&self) -> Tensor {
        self.value.tensor()
    }

    /// Returns the sizes of the dimensions.
    pub fn shape(&self) -> Shape {
        *self.tensor().shape()
    }

    /// Returns the dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.tensor().dtype()
    }

    /// Returns the device of the elements.
    pub fn device(&self) -> Device {
        self.tensor().device()
    }

    /// Returns whether operations on the variable are recorded.
    pub fn requires_grad(&self) -> bool {
        self.node.is_some()
    }

    /// Returns whether no recorded operation made the variable.
    pub fn is_leaf(&self) -> bool {
        self.node.as_ref().is_none_or(|node| node.is_leaf())
    }

    /// Returns the sum of the gradients that backwards have computed: ∂L/∂x, for complex elements
    /// ∂L/∂Re + i ∂L/∂Im. `None` before the first backward and for variables other than leaves.
    pub fn grad(&self) -> Option<Tensor> {
        self.node.as_ref()?.gradient()
    }

    /// Removes the gradient of a leaf, and returns it.
    pub fn take_grad(&self) -> Option<Tensor> {
        self.node.as_ref()?.take_gradient()
    }

    /// Removes the gradient of a leaf.
    pub fn zero_grad(&self) {
        if let Some(node) = &self.node {
            node.clear_gradient();
        }
    }

    /// Returns a constant with the same value. It shares the versions too: a change of either is one of both.
    #[must_use]
    pub fn detach(&self) -> Variable {
        Variable { value: self.value.clone(), node: None, stopped_by: None }
    }

    /// Returns whether two variables have one value, as a variable and its clone have.
    ///
    /// ```
    /// use selvedge::nn::Variable;
    /// use selvedge::{Device, Tensor};
    /// let x = Variable::new(Tensor::new([1.0f32], &Device::cpu())?);
    /// assert!(x.is_same(&x.clone()) && !x.is_same(&Variable::new(x.tensor())));
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    pub fn is_same(&self, other: &Variable) -> bool {
        Arc::ptr_eq(&self.value, &other.value)
    }

    /// Returns numbers that differ after the elements changed or moved.
    pub(crate) fn state(&self) -> (u64, bool) {
        self.value.state()
    }

    /// Changes the elements in place. A later backward through the old value is an error.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for the result of a recorded operation, and for a variable that requires a gradient outside
    /// [`no_grad`](super::no_grad); and those of `change`.
    pub fn update(&self, change: impl FnOnce(&mut TensorMut<'_>) -> Result<()>) -> Result<()> {
        const OPERATION: &str = "update";
        let refused = |found: String, wanted: &str| Err(Error::invalid(OPERATION, found, wanted));
        if let Some(node) = &self.node {
            if !node.is_leaf() {
                return refused(format!("the result of {}", node.name()), "a leaf or a constant");
            }
            if is_grad_enabled() {
                return refused("a leaf that requires a gradient".to_owned(), "an update within no_grad");
            }
        }
        self.value.change(change)
    }

    /// Computes the gradients of this variable, of one element, with respect to all leaves that it depends on, and adds them
    /// to theirs. Frees the saved values: a second backward through the same operations is an error.
    ///
    /// # Errors
    ///
    /// [`Error::Backward`] with the operation's name: for a variable of more elements or that requires no gradient, for
    /// saved values that were freed or changed in place, and for a gradient of the wrong shape from a [`Function`](super::Function).
    /// Otherwise those of the operations. In each case all gradients stay as they were.
    pub fn backward(&self) -> Result<()> {
        self.run_backward(None, false)
    }

    /// Computes gradients as [`backward`](Self::backward), given the gradient of this variable of any shape.
    ///
    /// # Errors
    ///
    /// As there; [`Error::Backward`] too for a gradient of another shape or dtype.
    pub fn backward_with(&self, gradient: &Tensor) -> Result<()> {
        self.run_backward(Some(gradient), false)
    }

    /// Computes gradients as [`backward`](Self::backward), and keeps the saved values for another one. Without a gradient
    /// the variable must have one element.
    ///
    /// # Errors
    ///
    /// As [`backward_with`](Self::backward_with).
    pub fn backward_retain_graph(&self, gradient: Option<&Tensor>) -> Result<()> {
        self.run_backward(gradient, true)
    }

    fn run_backward(&self, gradient: Option<&Tensor>, retain_graph: bool) -> Result<()> {
        let (node, gradient) = self.first_gradient(gradient)?;
        backward(node, gradient, retain_graph)
    }

    /// Returns the node and the gradient at which a backward begins.
    pub(super) fn first_gradient(&self, gradient: Option<&Tensor>) -> Result<(&Arc<Node>, Tensor)> {
        let refused = |found: String, wanted: String| {
            let constant = self.stopped_by.unwrap_or("a constant");
            let operation = self.node.as_ref().map_or(constant, |node| node.name());
            Err(Error::Backward { operation, found, wanted })
        };
        let tensor = self.tensor();
        let Some(node) = &self.node else {
            let wanted = "a variable that requires one: a leaf of with_grad, or a result of it";
            let found = match self.stopped_by {
                Some(name) => format!("a result of {name}, through which no gradient passes"),
                None => "a variable that requires no gradient".to_owned(),
            };
            return refused(found, wanted.to_owned());
        };
        let gradient = match gradient {
            Some(gradient) if gradient.shape() != tensor.shape() || gradient.dtype() != tensor.dtype() => {
                return refused(
                    format!("a gradient of {} of shape {}", gradient.dtype(), gradient.shape()),
                    format!("{} of shape {}", tensor.dtype(), tensor.shape()),
                );
            }
            Some(gradient) => gradient.clone(),
            None if tensor.count() == 1 => tensor.ones_like()?,
            None => {
                return refused(
                    format!("a result of shape {} without a gradient", tensor.shape()),
                    "one element, or backward_with and a gradient".to_owned(),
                );
            }
        };
        Ok((node, gradient))
    }

    /// Returns whether a leaf has a gradient.
    pub(in crate::nn) fn has_gradient(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.has_gradient())
    }

    /// Sets whether a leaf of [`Parameters`](crate::nn::Parameters) has a gradient: a launch of captured work has written
    /// the elements.
    pub(in crate::nn) fn set_has_gradient(&self, has_gradient: bool) {
        if let Some(node) = &self.node {
            node.set_has_gradient(has_gradient);
        }
    }

    /// Returns the slot of the elements in the storage of [`Parameters`](crate::nn::Parameters).
    pub(in crate::nn) fn slot(&self) -> Option<FlatSlot> {
        self.value.slot()
    }

    /// Replaces the elements and the gradient, if there is one, by equal ones in storages.
    pub(in crate::nn) fn move_to(&self, elements: FlatSlot, gradient: FlatSlot) {
        if let Some(node) = &self.node {
            node.move_gradient(gradient);
        }
        self.value.move_to(elements);
    }

    /// Replaces the elements by equal ones in a storage.
    pub(in crate::nn) fn move_elements_to(&self, elements: FlatSlot) {
        self.value.move_to(elements);
    }

    /// Returns the elements, which later updates do not change: a copy of those in a storage of
    /// [`Parameters`](crate::nn::Parameters), because they stay at their address. A copy that fails holds the error.
    pub(in crate::nn) fn snapshot(&self) -> Tensor {
        let mut tensor = self.tensor();
        if self.slot().is_some() {
            match tensor.copy() {
                Ok(copy) => tensor = copy,
                Err(error) => tensor.hold_error(error),
            }
        }
        tensor
    }

    pub(super) fn value(&self) -> &Arc<Value> {
        &self.value
    }

    pub(super) fn node(&self) -> Option<&Arc<Node>> {
        self.node.as_ref()
    }

    /// Returns what a backward rule reads of this variable's value.
    pub(super) fn save(&self) -> Saved {
        Saved::new(&self.value)
    }

    /// Returns the variable's node if operations on it are to be recorded now.
    pub(super) fn tracked(&self) -> Option<Arc<Node>> {
        if is_grad_enabled() {
            return self.node.clone();
        }
        if self.node.is_some() {
            observe(|| self.save());
        }
        None
    }

    /// Returns the operation without a gradient that this constant comes from, if it does.
    pub(super) fn stopped_by(&self) -> Option<&'static str> {
        self.stopped_by
    }

    /// Returns this constant with the operation without a gradient that it comes from.
    pub(super) fn constant_by(mut self, operation: Option<&'static str>) -> Variable {
        self.stopped_by = operation;
        self
    }

    /// Returns a variable of a value and a node.
    pub(super) fn from_parts(value: Arc<Value>, node: Option<Arc<Node>>) -> Variable {
        Variable { value, node, stopped_by: None }
    }

    /// Returns the node.
    pub(super) fn into_node(self) -> Option<Arc<Node>> {
        self.node
    }

    /// Records a computation that saved nothing. A backward runs it again.
    pub(super) fn of_recomputation(
        tensor: Tensor,
        operation: &'static str,
        parents: Vec<Option<Arc<Node>>>,
        recompute: Recomputation,
    ) -> Variable {
        let node = Node::recomputed(operation, &tensor, parents, recompute);
        Variable { value: Value::new(tensor), node: Some(node), stopped_by: None }
    }

    /// Gives this constant a node if an operand requires a gradient.
    fn with_node(
        mut self,
        operation: &'static str,
        parents: Vec<Option<Arc<Node>>>,
        node: impl FnOnce(&Variable, &Tensor, Vec<Option<Arc<Node>>>) -> Arc<Node>,
    ) -> Variable {
        let tensor = self.tensor();
        if parents.iter().any(Option::is_some) {
            match is_differentiable(tensor.dtype()) {
                true => self.node = Some(node(&self, &tensor, parents)),
                false => self.stopped_by = Some(operation),
            }
        }
        self
    }

    /// Records the operation that made this constant from operands, if one of them requires a gradient. The rule computes
    /// tensors, so the operation has first derivatives only.
    pub(super) fn recorded(
        self,
        operation: &'static str,
        parents: Vec<Option<Arc<Node>>>,
        rule: impl FnOnce(&Variable) -> BackwardRule,
    ) -> Variable {
        self.with_node(operation, parents, |result, tensor, parents| {
            Node::operation(operation, tensor, parents, rule(result))
        })
    }

    /// Records as [`recorded`](Self::recorded) does, with a rule that computes its gradients as variables too, so that the
    /// operation has derivatives of every order.
    pub(super) fn recorded_with_second_derivatives(
        self,
        operation: &'static str,
        parents: Vec<Option<Arc<Node>>>,
        rule: impl FnOnce(&Variable) -> Box<dyn RecordableRule>,
    ) -> Variable {
        self.with_node(operation, parents, |result, tensor, parents| {
            Node::recordable(operation, tensor, parents, rule(result))
        })
    }

    /// Records the operation that made this constant from an operand that requires a gradient, whose rule may write over
    /// what it saved.
    pub(super) fn recorded_overwriting(
        self,
        operation: &'static str,
        parent: Arc<Node>,
        rule: OverwritingRule,
    ) -> Variable {
        self.with_node(operation, vec![Some(parent)], |_, tensor, parents| {
            Node::overwriting(operation, tensor, parents, rule)
        })
    }

    /// Records the operation that made this constant from operands, with a rule that adds what is pending for the first operand's
    /// gradient in the same pass.
    pub(super) fn recorded_accumulating(
        self,
        operation: &'static str,
        parents: Vec<Option<Arc<Node>>>,
        rule: AccumulatingRule,
    ) -> Variable {
        self.with_node(operation, parents, |_, tensor, parents| {
            Node::accumulating(operation, tensor, parents, rule)
        })
    }

    /// Casts the elements to another dtype. The gradient is cast back; integers and bools have none.
    ///
    /// # Errors
    ///
    /// As [`Tensor::cast`].
    pub fn cast(&self, dtype: DType) -> Result<Variable> {
        let result = self.tensor().cast(dtype)?;
        Ok(recorded_linear!(self, "cast", result, (), |(), gradient| Ok(gradient.clone())))
    }

    /// Copies the elements to a device. The gradient is copied back.
    ///
    /// # Errors
    ///
    /// As [`Tensor::to`].
    pub fn to(&self, device: &Device) -> Result<Variable> {
        let own = self.device();
        Ok(recorded_linear!(self, "to", self.tensor().to(device)?, own, |own, gradient| gradient.to(own)))
    }
}

/// Returns whether elements of a dtype have gradients.
pub(super) fn is_differentiable(dtype: DType) -> bool {
    (dtype.is_float() || dtype.is_complex()) && !dtype.is_storage_only()
}

impl From<Tensor> for Variable {
    fn from(tensor: Tensor) -> Variable {
        Variable::new(tensor)
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tensor, node) = (self.tensor(), self.node.as_ref().map_or("constant", |node| node.name()));
        write!(formatter, "Variable({} of {}, {node})", tensor.dtype(), tensor.shape())
    }
}
