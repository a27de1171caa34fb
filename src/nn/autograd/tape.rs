//! [`Node`], the record of an operation, and the backward pass over nodes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::flat::FlatSlot;
use super::mode::is_grad_enabled;
use super::recordable::{RecordableRule, RecordedGradients};
use super::shape::{in_shape, sizes};
use super::variable::Variable;
use super::{anomaly, changes};
use crate::error::{Error, Result};
use crate::tensor::{Tensor, TensorMut};
use crate::types::{DType, Shape};

/// The gradients of an operation's operands; `None` is 0.
pub(super) type Gradients = Vec<Option<Tensor>>;

/// Computes the gradients of an operation's operands from the result's.
pub(super) type BackwardRule = Box<dyn Fn(&Tensor) -> Result<Gradients> + Send + Sync>;

/// A rule that may write its gradients over saved values if its flag is true: no later backward uses it then.
pub(super) type OverwritingRule = Box<dyn Fn(&Tensor, bool) -> Result<Gradients> + Send + Sync>;

/// A rule that adds what is pending for its first operand, if anything is, to that operand's gradient.
pub(super) type AccumulatingRule = Box<dyn Fn(&Tensor, Option<&Tensor>) -> Result<Gradients> + Send + Sync>;

/// Runs a computation again on the tape, given the nodes of its operands, and returns the node of its result; `None` if
/// that requires no gradient.
pub(super) type Recomputation = Box<dyn Fn(&[Option<Arc<Node>>]) -> Result<Option<Arc<Node>>> + Send + Sync>;

/// The sum of the gradients of a leaf.
enum LeafGradient {
    Own(Option<Tensor>),
    /// The elements are in a storage with those of other leaves. They mean nothing unless the sum is set.
    Flat {
        slot: FlatSlot,
        is_set: bool,
    },
}

impl LeafGradient {
    fn tensor(&self) -> Option<Tensor> {
        match self {
            LeafGradient::Own(sum) => sum.clone(),
            LeafGradient::Flat { slot, is_set } => is_set.then(|| slot.tensor()),
        }
    }

    fn add(&mut self, gradient: &Tensor) -> Result<()> {
        if let LeafGradient::Own(_) = self {
            changes::refuse_elsewhere("backward", "the gradient of a leaf outside of Parameters")?;
        }
        match self {
            LeafGradient::Own(Some(sum)) => sum.in_place().add(gradient).map(|_| ()),
            // A broadcast gradient is stored as one element.
            LeafGradient::Own(sum) => {
                *sum = Some(gradient.contiguous()?);
                Ok(())
            }
            LeafGradient::Flat { slot, is_set: true } => slot.change(|sum| sum.add(gradient).map(|_| ())),
            LeafGradient::Flat { slot, is_set } => {
                slot.change(|sum| sum.assign(gradient).map(|_| ()))?;
                *is_set = true;
                Ok(())
            }
        }
    }
}

/// The state of a node.
enum NodeKind {
    /// A variable that no operation made.
    Leaf(Box<Mutex<LeafGradient>>),
    /// The result of an operation. A backward takes the rule, and with it the saved values.
    Operation(Mutex<Option<BackwardRule>>),
    /// As `Operation`, with a rule that can also record what it computes.
    Recordable(Mutex<Option<Box<dyn RecordableRule>>>),
    /// As `Operation`, with a rule that knows whether it is taken.
    Overwriting(Mutex<Option<OverwritingRule>>),
    /// As `Operation`, with a rule that takes in what other results have added to the gradient of its first operand.
    Accumulating(Mutex<Option<AccumulatingRule>>),
    /// The result of a computation that saved nothing. A backward takes the function that records it.
    Recomputed(Mutex<Option<Recomputation>>),
}

/// A variable on the tape: a leaf, or the record of the operation that made it.
pub(super) struct Node {
    operation: &'static str,
    /// Operands are created before results, so the numbers of a graph are in topological order.
    number: u64,
    shape: Shape,
    dtype: DType,
    /// The nodes of the operands; `None` for operands that require no gradient.
    parents: Vec<Option<Arc<Node>>>,
    kind: NodeKind,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Node {
    fn new(
        operation: &'static str,
        tensor: &Tensor,
        parents: Vec<Option<Arc<Node>>>,
        kind: NodeKind,
    ) -> Arc<Node> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Node { operation, number, shape: *tensor.shape(), dtype: tensor.dtype(), parents, kind })
    }

    pub(super) fn leaf(tensor: &Tensor) -> Arc<Node> {
        Node::new("a leaf", tensor, Vec::new(), NodeKind::Leaf(Box::new(Mutex::new(LeafGradient::Own(None)))))
    }

    pub(super) fn operation(
        operation: &'static str,
        tensor: &Tensor,
        parents: Vec<Option<Arc<Node>>>,
        rule: BackwardRule,
    ) -> Arc<Node> {
        Node::new(operation, tensor, parents, NodeKind::Operation(Mutex::new(Some(rule))))
    }

    pub(super) fn recordable(
        operation: &'static str,
        tensor: &Tensor,
        parents: Vec<Option<Arc<Node>>>,
        rule: Box<dyn RecordableRule>,
    ) -> Arc<Node> {
        Node::new(operation, tensor, parents, NodeKind::Recordable(Mutex::new(Some(rule))))
    }

    pub(super) fn overwriting(
        operation: &'static str,
        tensor: &Tensor,
        parents: Vec<Option<Arc<Node>>>,
        rule: OverwritingRule,
    ) -> Arc<Node> {
        Node::new(operation, tensor, parents, NodeKind::Overwriting(Mutex::new(Some(rule))))
    }

    pub(super) fn accumulating(
        operation: &'static str,
        tensor: &Tensor,
        parents: Vec<Option<Arc<Node>>>,
        rule: AccumulatingRule,
    ) -> Arc<Node> {
        Node::new(operation, tensor, parents, NodeKind::Accumulating(Mutex::new(Some(rule))))
    }

    pub(super) fn recomputed(
        operation: &'static str,
        tensor: &Tensor,
        parents: Vec<Option<Arc<Node>>>,
        recompute: Recomputation,
    ) -> Arc<Node> {
        Node::new(operation, tensor, parents, NodeKind::Recomputed(Mutex::new(Some(recompute))))
    }

    pub(super) fn is_leaf(&self) -> bool {
        matches!(self.kind, NodeKind::Leaf(_))
    }

    /// Returns the name of the operation.
    pub(super) fn name(&self) -> &'static str {
        self.operation
    }

    /// Returns the number, which is higher than those of the operands.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the nodes of the operands; `None` for operands that require no gradient.
    pub(super) fn operands(&self) -> &[Option<Arc<Node>>] {
        &self.parents
    }

    /// Returns whether a backward runs a function again that may read variables other than the operands.
    pub(super) fn is_recomputed(&self) -> bool {
        matches!(self.kind, NodeKind::Recomputed(_))
    }

    fn leaf_gradient(&self) -> Option<MutexGuard<'_, LeafGradient>> {
        match &self.kind {
            NodeKind::Leaf(gradient) => Some(lock(gradient)),
            _ => None,
        }
    }

    /// Returns the sum of the gradients of a leaf.
    pub(super) fn gradient(&self) -> Option<Tensor> {
        self.leaf_gradient()?.tensor()
    }

    /// Returns whether a leaf has a gradient.
    pub(super) fn has_gradient(&self) -> bool {
        self.leaf_gradient().is_some_and(|gradient| {
            matches!(&*gradient, LeafGradient::Own(Some(_)) | LeafGradient::Flat { is_set: true, .. })
        })
    }

    /// Removes the gradient of a leaf.
    pub(super) fn clear_gradient(&self) {
        if let Some(mut gradient) = self.leaf_gradient() {
            match &mut *gradient {
                LeafGradient::Own(sum) => *sum = None,
                LeafGradient::Flat { is_set, .. } => *is_set = false,
            }
        }
    }

    /// Sets whether a leaf has a gradient, if its elements are in a storage.
    pub(super) fn set_has_gradient(&self, has_gradient: bool) {
        if let Some(LeafGradient::Flat { is_set, .. }) = self.leaf_gradient().as_deref_mut() {
            *is_set = has_gradient;
        }
    }

    /// Removes the gradient of a leaf, and returns it.
    pub(super) fn take_gradient(&self) -> Option<Tensor> {
        let gradient = self.gradient();
        self.clear_gradient();
        gradient
    }

    /// Returns the slot of a leaf's gradient in the storage that it shares with others.
    pub(super) fn slot(&self) -> Option<FlatSlot> {
        match &*self.leaf_gradient()? {
            LeafGradient::Own(_) => None,
            LeafGradient::Flat { slot, .. } => Some(slot.clone()),
        }
    }

    /// Replaces the gradient of a leaf, if it has one, by an equal one of a slot.
    pub(super) fn move_gradient(&self, slot: FlatSlot) {
        let is_set = self.has_gradient();
        if let Some(mut gradient) = self.leaf_gradient() {
            *gradient = LeafGradient::Flat { slot, is_set };
        }
    }

    /// Changes the gradient of a leaf, if it has one.
    ///
    /// # Errors
    ///
    /// Errors of `change`.
    pub(super) fn change_gradient(
        &self,
        change: impl FnOnce(&mut TensorMut<'_>) -> Result<()>,
    ) -> Result<()> {
        match self.leaf_gradient().as_deref_mut() {
            Some(LeafGradient::Own(Some(sum))) => change(&mut sum.in_place()),
            Some(LeafGradient::Flat { slot, is_set: true }) => slot.change(change),
            _ => Ok(()),
        }
    }

    /// Adds to the gradient of a leaf.
    fn accumulate(&self, gradient: &Tensor) -> Result<()> {
        self.leaf_gradient().map_or(Ok(()), |mut sum| sum.add(gradient))
    }

    /// Uses the function of a node, and takes it unless the graph is retained.
    fn with_function<F, R>(
        &self,
        function: &Mutex<Option<F>>,
        retain_graph: bool,
        work: impl FnOnce(&F) -> Result<R>,
    ) -> Result<R> {
        let mut function = lock(function);
        if retain_graph {
            return match &*function {
                Some(function) => work(function),
                None => Err(self.freed()),
            };
        }
        let taken = function.take().ok_or_else(|| self.freed())?;
        drop(function);
        work(&taken)
    }

    /// Adds the gradients of the nodes that this one follows from to those that are pending, given its own.
    fn run(
        &self,
        gradient: Tensor,
        retain_graph: bool,
        pending: &mut PendingGradients<Tensor>,
    ) -> Result<()> {
        let gradients = match &self.kind {
            NodeKind::Leaf(_) => return Ok(()),
            NodeKind::Operation(rule) => self.with_function(rule, retain_graph, |rule| rule(&gradient))?,
            NodeKind::Recordable(rule) => {
                self.with_function(rule, retain_graph, |rule| rule.gradients(&gradient))?
            }
            NodeKind::Overwriting(rule) => {
                self.with_function(rule, retain_graph, |rule| rule(&gradient, !retain_graph))?
            }
            NodeKind::Accumulating(rule) => {
                let first = self.parents.first().and_then(Option::as_ref);
                let sum = first.and_then(|parent| pending.remove(&parent.number)).map(|(_, sum)| sum);
                self.with_function(rule, retain_graph, |rule| rule(&gradient, sum.as_ref()))?
            }
            NodeKind::Recomputed(recompute) => {
                let run = |recompute: &Recomputation| recompute(&self.parents);
                return match self.with_function(recompute, retain_graph, run)? {
                    // The new nodes have the highest numbers, so they are next.
                    Some(result) => {
                        add_pending(pending, &result, gradient, |sum, gradient| sum.add(gradient))
                    }
                    None => Ok(()),
                };
            }
        };
        drop(gradient);
        self.check_count(gradients.len())?;
        for (operand, (parent, gradient)) in self.parents.iter().zip(gradients).enumerate() {
            let (Some(parent), Some(gradient)) = (parent, gradient) else { continue };
            let gradient = parent.fit(self.operation, gradient)?;
            anomaly::check(self.operation, &gradient, || format!("a gradient of operand {operand}"))?;
            add_pending(pending, parent, gradient, |sum, gradient| sum.add(gradient))?;
        }
        Ok(())
    }

    fn check_count(&self, gradients: usize) -> Result<()> {
        if gradients == self.parents.len() {
            return Ok(());
        }
        Err(Error::Backward {
            operation: self.operation,
            found: format!("{gradients} gradients"),
            wanted: format!("one for each of {} operands", self.parents.len()),
        })
    }

    /// Returns the gradients of the operands as variables, given the result's: recorded ones, or constants within
    /// [`no_grad`](super::no_grad). The saved values stay.
    ///
    /// # Errors
    ///
    /// Errors of the rule; [`Error::Backward`] if it cannot record what it computes.
    pub(super) fn recorded_gradients(self: &Arc<Self>, gradient: &Variable) -> Result<RecordedGradients> {
        let constants = |gradients: Gradients| -> RecordedGradients {
            gradients.into_iter().map(|gradient| gradient.map(Variable::new)).collect()
        };
        let gradients = match &self.kind {
            NodeKind::Recordable(rule) => {
                self.with_function(rule, true, |rule| rule.recorded_gradients(self, gradient))?
            }
            NodeKind::Operation(rule) if !is_grad_enabled() => {
                constants(self.with_function(rule, true, |rule| rule(&gradient.tensor()))?)
            }
            NodeKind::Overwriting(rule) if !is_grad_enabled() => {
                constants(self.with_function(rule, true, |rule| rule(&gradient.tensor(), false))?)
            }
            NodeKind::Accumulating(rule) if !is_grad_enabled() => {
                constants(self.with_function(rule, true, |rule| rule(&gradient.tensor(), None))?)
            }
            NodeKind::Operation(_) | NodeKind::Overwriting(_) | NodeKind::Accumulating(_) => {
                return Err(self.without_second());
            }
            NodeKind::Leaf(_) | NodeKind::Recomputed(_) => return Ok(Vec::new()),
        };
        self.check_count(gradients.len())?;
        Ok(gradients)
    }

    /// Runs a recomputed function again and returns the node of its result, if this node is one.
    ///
    /// # Errors
    ///
    /// Errors of the function.
    pub(super) fn recompute(&self) -> Result<Option<Arc<Node>>> {
        match &self.kind {
            NodeKind::Recomputed(recompute) => {
                self.with_function(recompute, true, |recompute| recompute(&self.parents))
            }
            _ => Ok(None),
        }
    }

    #[cold]
    fn without_second(&self) -> Error {
        Error::Backward {
            operation: self.operation,
            found: "no rule for second derivatives".to_owned(),
            wanted: "elementwise operations, products, sums, views or a FusedFunction in its place, or \
                     gradients within no_grad"
                .to_owned(),
        }
    }

    #[cold]
    fn freed(&self) -> Error {
        Error::Backward {
            operation: self.operation,
            found: "saved values that an earlier backward has freed".to_owned(),
            wanted: "one backward of a graph, or backward_retain_graph before the last".to_owned(),
        }
    }

    /// Returns the gradient that a rule computed for this operand in the operand's shape and dtype.
    fn fit(&self, operation: &'static str, gradient: Tensor) -> Result<Tensor> {
        let reduced = match self.repeated_axes(operation, gradient.shape())? {
            None => gradient,
            Some(axes) => in_shape(&gradient.sum(&axes[..])?, &self.shape)?,
        };
        if reduced.dtype() == self.dtype { Ok(reduced) } else { reduced.cast(self.dtype) }
    }

    /// As [`fit`](Self::fit), by recorded operations.
    pub(super) fn fit_recorded(&self, operation: &'static str, gradient: Variable) -> Result<Variable> {
        let reduced = match self.repeated_axes(operation, &gradient.shape())? {
            None => gradient,
            Some(axes) => gradient.sum(&axes[..])?.reshape(&sizes(&self.shape))?,
        };
        if reduced.dtype() == self.dtype { Ok(reduced) } else { reduced.cast(self.dtype) }
    }

    /// Returns the axes of a gradient that broadcasting added or repeated; `None` if the gradient has this node's shape.
    ///
    /// # Errors
    ///
    /// [`Error::Backward`] if this node's shape does not broadcast to the gradient's.
    fn repeated_axes(&self, operation: &'static str, gradient: &Shape) -> Result<Option<Vec<isize>>> {
        if *gradient == self.shape {
            return Ok(None);
        }
        let refused = || Error::Backward {
            operation,
            found: format!("a gradient of shape {gradient} for an operand of shape {}", self.shape),
            wanted: "the operand's shape".to_owned(),
        };
        let added = gradient.rank().checked_sub(self.shape.rank()).ok_or_else(refused)?;
        let mut axes: Vec<isize> = (0..added as isize).collect();
        for (axis, (&size, &whole)) in self.shape.iter().zip(&gradient[added..]).enumerate() {
            match size {
                _ if size == whole => {}
                1 => axes.push((added + axis) as isize),
                _ => return Err(refused()),
            }
        }
        Ok(Some(axes))
    }
}

impl Drop for Node {
    /// Frees a chain of nodes one by one: each would otherwise drop its operands within its own drop.
    fn drop(&mut self) {
        let mut stack = std::mem::take(&mut self.parents);
        while let Some(parent) = stack.pop() {
            if let Some(mut node) = parent.and_then(Arc::into_inner) {
                stack.append(&mut node.parents);
            }
        }
    }
}

/// Nodes by their numbers, with the gradients that they have so far.
pub(super) type PendingGradients<T> = BTreeMap<u64, (Arc<Node>, T)>;

/// Adds a gradient to that of a node.
pub(super) fn add_pending<T>(
    pending: &mut PendingGradients<T>,
    node: &Arc<Node>,
    gradient: T,
    add: impl FnOnce(&T, &T) -> Result<T>,
) -> Result<()> {
    match pending.entry(node.number) {
        Entry::Vacant(entry) => {
            entry.insert((node.clone(), gradient));
        }
        Entry::Occupied(mut entry) => {
            let sum = add(&entry.get().1, &gradient)?;
            entry.get_mut().1 = sum;
        }
    }
    Ok(())
}

/// Adds the gradients of all leaves that a node depends on, given its own. Leaves change only if all rules succeed.
///
/// # Errors
///
/// [`Error::Backward`] for freed or changed values, for gradients that fit no operand, and for gradients that are not finite
/// within [`detect_anomaly`](super::detect_anomaly); and those of the rules and of recomputations.
pub(super) fn backward(root: &Arc<Node>, gradient: Tensor, retain_graph: bool) -> Result<()> {
    anomaly::check(root.operation, &gradient, || "a gradient of the result".to_owned())?;
    let mut leaves = Vec::new();
    let mut pending = BTreeMap::from([(root.number, (root.clone(), gradient))]);
    while let Some((_, (node, gradient))) = pending.pop_last() {
        match node.is_leaf() {
            true => leaves.push((node, gradient)),
            false => node.run(gradient, retain_graph, &mut pending)?,
        }
    }
    leaves.iter().try_for_each(|(leaf, gradient)| leaf.accumulate(gradient))
}
