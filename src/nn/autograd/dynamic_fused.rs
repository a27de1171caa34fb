//! [`DynamicFusedFunction`], a [`DynamicFused`] function of variables.
//!
//! The gradients of an output are a function of the operands and the output's gradient, so they are one of the same kind, with
//! gradients of their own.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::operand::{HeldOperand, RecordedOperand, SavedOperand, VariableOperand};
use super::recordable::{RecordableRule, RecordedGradients};
use super::tape::{Gradients, Node};
use super::variable::{Variable, is_differentiable};
use crate::error::{Error, Result};
use crate::fuse::{Expr, ExpressionTree, Graph};
use crate::tensor::{DynamicFused, GroupAxes, Tensor, TensorOperand, broadcast};
use crate::types::Shape;

type BuildList = dyn for<'g> Fn(&'g Graph, &[Expr<'g>]) -> Result<Vec<Expr<'g>>> + Send + Sync;

/// The gradients of an output, by the form of each operand's.
type GradientFunctions = Mutex<HashMap<Vec<GradientForm>, Arc<GradientFunction>>>;

/// A function of elements whose results are recorded, with the numbers of operands and outputs known only at run time. The
/// forward is one kernel, and so is the backward of each output. It is a [`DynamicFused`] function of variables, as a
/// [`FusedFunction`](super::FusedFunction) is a [`Fused`](crate::tensor::Fused) one, and has gradients of every order.
///
/// ```
/// use selvedge::fuse::{ExpressionTree, Operation};
/// use selvedge::nn::{DynamicFusedFunction, Variable};
/// use selvedge::{Device, Tensor};
/// let x = ExpressionTree::input(0)?;
/// let cube = ExpressionTree::operation(Operation::Pow, &[x, ExpressionTree::number(3)])?;
/// let cube = DynamicFusedFunction::from_trees(vec![cube])?;
/// let x = Variable::with_grad(Tensor::new([2.0f64], &Device::cpu())?)?;
/// cube.run(&[(&x).into()])?[0].backward()?;
/// assert_eq!(x.grad().map(|gradient| gradient.item::<f64>()).transpose()?, Some(12.0));
/// # Ok::<(), selvedge::Error>(())
/// ```
pub struct DynamicFusedFunction {
    operation: &'static str,
    inputs: usize,
    build: Arc<BuildList>,
    axes: GroupAxes,
    /// For each output.
    gradients: Vec<GradientFunctions>,
    /// Made by the first run, since the function may serve its gradients alone.
    function: OnceLock<DynamicFused>,
}

/// The gradients of an output with respect to the operands that need one, as a function of the operands and the output's
/// gradient.
pub(super) struct GradientFunction {
    forms: Vec<GradientForm>,
    function: DynamicFusedFunction,
}

/// The values of an operand's gradient. The tape sums them to the operand's shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum GradientForm {
    /// The operand needs none.
    None,
    Elements,
    /// One for each group, of which all elements use one value of the operand.
    PerGroup,
    /// One for each index within a group: all groups use the operand.
    OverGroups,
}

impl DynamicFusedFunction {
    /// Creates a function with one result for each tree. See [`ExpressionTree`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] without trees.
    pub fn from_trees(outputs: Vec<ExpressionTree>) -> Result<DynamicFusedFunction> {
        if outputs.is_empty() {
            return Err(Error::invalid("outputs", "no expressions", "at least one"));
        }
        let inputs = ExpressionTree::inputs(&outputs) as usize;
        let count = outputs.len();
        Ok(DynamicFusedFunction::new(
            "a fused function",
            inputs,
            count,
            GroupAxes::Last,
            move |graph, inputs| ExpressionTree::build_all(&outputs, graph, inputs),
        ))
    }

    /// Returns the number of operands of a run.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Returns the number of results of a run.
    pub fn outputs(&self) -> usize {
        self.gradients.len()
    }

    /// Creates a function of a closure. `operation` is its name in errors.
    pub(super) fn new(
        operation: &'static str,
        inputs: usize,
        outputs: usize,
        axes: GroupAxes,
        build: impl for<'g> Fn(&'g Graph, &[Expr<'g>]) -> Result<Vec<Expr<'g>>> + Send + Sync + 'static,
    ) -> DynamicFusedFunction {
        DynamicFusedFunction {
            operation,
            inputs,
            build: Arc::new(build),
            axes,
            gradients: (0..outputs).map(|_| Mutex::default()).collect(),
            function: OnceLock::new(),
        }
    }

    /// Sets the axes of a group.
    pub(super) fn over(self, axes: GroupAxes) -> DynamicFusedFunction {
        let gradients = self.gradients.iter().map(|_| Mutex::default()).collect();
        DynamicFusedFunction { axes, gradients, function: OnceLock::new(), ..self }
    }

    /// Computes the outputs of tensors.
    fn run_tensors(&self, operands: &[TensorOperand<'_>]) -> Result<Vec<Tensor>> {
        let make = || {
            let build = self.build.clone();
            let function = DynamicFused::new(self.inputs, self.gradients.len(), move |graph, inputs| {
                build(graph, inputs)
            });
            function.over(self.axes.clone())
        };
        self.function.get_or_init(make).run(operands)
    }

    /// Computes the outputs of these operands, each in the shape to which the operands broadcast. An output whose dtype has no
    /// gradient, such as bool, is a constant.
    ///
    /// # Errors
    ///
    /// As [`DynamicFused::run`].
    pub fn run(&self, operands: &[VariableOperand<'_>]) -> Result<Vec<Variable>> {
        let held: Vec<HeldOperand> = operands.iter().map(HeldOperand::of).collect();
        let results = self.run_tensors(&held.iter().map(HeldOperand::operand).collect::<Vec<_>>())?;
        let parents: Vec<Option<Arc<Node>>> = operands.iter().map(VariableOperand::tracked).collect();
        if parents.iter().all(Option::is_none) {
            return Ok(results.into_iter().map(Variable::new).collect());
        }
        let mut forms = vec![GradientForm::None; operands.len()];
        let shape = self.set_forms(&mut forms, &parents, &held)?;
        let saved = || operands.iter().map(SavedOperand::of).collect::<Vec<_>>();
        results
            .into_iter()
            .enumerate()
            .map(|(output, result)| self.recorded(output, result, (&forms, shape), parents.clone(), saved()))
            .collect()
    }

    /// Sets the form of each operand's gradient, and returns the shape to which the operands broadcast.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for operands that do not broadcast, and errors of the axes of groups.
    pub(super) fn set_forms(
        &self,
        forms: &mut [GradientForm],
        parents: &[Option<Arc<Node>>],
        held: &[HeldOperand],
    ) -> Result<Shape> {
        let shape = *broadcast(self.operation, held.iter().filter_map(HeldOperand::tensor))?;
        let axes = self.axes.of(&shape);
        for ((form, parent), held) in forms.iter_mut().zip(parents).zip(held) {
            if let (Some(_), HeldOperand::Tensor(tensor)) = (parent, held) {
                *form = GradientForm::of(self.operation, tensor, &shape, &axes)?;
            }
        }
        Ok(shape)
    }

    /// Records an output of a run, given what [`set_forms`](Self::set_forms) found.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for an output that the function does not have.
    pub(super) fn recorded(
        &self,
        output: usize,
        result: Tensor,
        (forms, shape): (&[GradientForm], Shape),
        parents: Vec<Option<Arc<Node>>>,
        saved: impl AsRef<[SavedOperand]> + Send + Sync + 'static,
    ) -> Result<Variable> {
        if !is_differentiable(result.dtype()) {
            return Ok(Variable::new(result));
        }
        let gradient = self.gradient(output, forms)?;
        let rule =
            |_: &Variable| -> Box<dyn RecordableRule> { Box::new(FusedRule { gradient, shape, saved }) };
        Ok(Variable::new(result).recorded_with_second_derivatives(self.operation, parents, rule))
    }

    /// Returns the gradients of an output in these forms.
    fn gradient(&self, output: usize, forms: &[GradientForm]) -> Result<Arc<GradientFunction>> {
        let Some(known) = self.gradients.get(output) else {
            let (wanted, found) = (self.gradients.len(), output + 1);
            return Err(Error::LengthMismatch { operation: self.operation, wanted, found });
        };
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gradient) = known.get(forms) {
            return Ok(gradient.clone());
        }
        let (build, built_forms) = (self.build.clone(), forms.to_vec());
        let outputs = forms.iter().filter(|form| **form != GradientForm::None).count();
        let (inputs, axes) = (self.inputs + 1, self.axes.clone());
        let function =
            DynamicFusedFunction::new(self.operation, inputs, outputs, axes, move |graph, inputs| {
                gradients(&*build, output, &built_forms, graph, inputs)
            });
        let gradient = Arc::new(GradientFunction { forms: forms.to_vec(), function });
        known.insert(forms.to_vec(), gradient.clone());
        Ok(gradient)
    }
}

impl fmt::Debug for DynamicFusedFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DynamicFusedFunction({} -> {})", self.inputs(), self.outputs())
    }
}

/// Returns the gradients of the operands that need one, given those and the gradient of an output, the last input.
fn gradients<'g>(
    build: &BuildList,
    output: usize,
    forms: &[GradientForm],
    graph: &'g Graph,
    inputs: &[Expr<'g>],
) -> Result<Vec<Expr<'g>>> {
    let length = |wanted, found| Error::LengthMismatch { operation: "a fused function", wanted, found };
    let (gradient, operands) = inputs.split_last().ok_or_else(|| length(forms.len() + 1, inputs.len()))?;
    let results = build(graph, operands)?;
    let result = *results.get(output).ok_or_else(|| length(output + 1, results.len()))?;
    let of_groups = graph.has_groups();
    let forms: Vec<_> = operands.iter().zip(forms).filter(|(_, form)| **form != GradientForm::None).collect();
    let wanted: Vec<Expr<'g>> = forms.iter().map(|(operand, _)| **operand).collect();
    let gradients = graph.gradient(&[(result, *gradient)], &wanted);
    Ok(gradients
        .into_iter()
        .zip(forms)
        .map(|(gradient, (_, form))| match form {
            // A gradient of 0 alone, which a program cannot sum.
            _ if !gradient.reads_inputs() => gradient,
            GradientForm::PerGroup if of_groups => gradient.sum_group(),
            GradientForm::OverGroups if of_groups && gradient.dtype().is_float() => {
                gradient.sum_over_groups()
            }
            _ => gradient,
        })
        .collect())
}

impl GradientFunction {
    /// Returns a gradient for each operand, from those of the operands that need one. `expand` makes one for each element of
    /// one that all elements of a group have.
    fn of_all<T>(&self, found: Vec<T>, expand: impl Fn(T) -> Result<T>) -> Result<Vec<Option<T>>> {
        let mut found = found.into_iter();
        let of_form = |form: &GradientForm| match form {
            GradientForm::None => Ok(None),
            GradientForm::Elements => found.next().map(&expand).transpose(),
            GradientForm::PerGroup | GradientForm::OverGroups => Ok(found.next()),
        };
        self.forms.iter().map(of_form).collect()
    }
}

/// The rule of an output, with the operands.
struct FusedRule<S> {
    gradient: Arc<GradientFunction>,
    /// The shape to which the operands broadcast.
    shape: Shape,
    saved: S,
}

impl<S: AsRef<[SavedOperand]> + Send + Sync> RecordableRule for FusedRule<S> {
    fn gradients(&self, gradient: &Tensor) -> Result<Gradients> {
        let function = &self.gradient.function;
        let held = self.saved.as_ref().iter().map(|saved| saved.held(function.operation));
        let held = held.collect::<Result<Vec<HeldOperand>>>()?;
        let operands: Vec<TensorOperand<'_>> =
            held.iter().map(HeldOperand::operand).chain([gradient.into()]).collect();
        self.gradient.of_all(function.run_tensors(&operands)?, |gradient| {
            match *gradient.shape() == self.shape {
                true => Ok(gradient),
                false => gradient.expand(&self.shape),
            }
        })
    }

    fn recorded_gradients(&self, node: &Arc<Node>, gradient: &Variable) -> Result<RecordedGradients> {
        let function = &self.gradient.function;
        let operands = self.saved.as_ref().iter().zip(node.operands());
        let operands = operands.map(|(saved, node)| saved.recorded(function.operation, node.as_ref()));
        let operands = operands.collect::<Result<Vec<RecordedOperand>>>()?;
        let operands: Vec<VariableOperand<'_>> =
            operands.iter().map(RecordedOperand::operand).chain([gradient.into()]).collect();
        self.gradient.of_all(function.run(&operands)?, |gradient| match gradient.shape() == self.shape {
            true => Ok(gradient),
            false => gradient.expand(&self.shape),
        })
    }
}

impl GradientForm {
    fn of(operation: &'static str, operand: &Tensor, shape: &Shape, axes: &[isize]) -> Result<GradientForm> {
        let mut is_of_group = vec![false; shape.rank()];
        for &axis in axes {
            is_of_group[shape.axis(operation, axis)?] = true;
        }
        let added = shape.rank() - operand.rank();
        // The axes along which the operand repeats, and the others.
        let (mut repeated, mut own) = (Vec::new(), Vec::new());
        for (axis, &size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
            let is_own = axis >= added && operand.shape()[axis - added] == size;
            if is_own { own.push(axis) } else { repeated.push(axis) }
        }
        let all = |axes: &[usize], of_group: bool| axes.iter().all(|&axis| is_of_group[axis] == of_group);
        Ok(match () {
            () if repeated.is_empty() => GradientForm::Elements,
            () if all(&repeated, true) && all(&own, false) => GradientForm::PerGroup,
            () if all(&repeated, false) && all(&own, true) => GradientForm::OverGroups,
            () => GradientForm::Elements,
        })
    }
}
