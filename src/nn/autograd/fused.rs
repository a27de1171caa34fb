//! [`FusedFunction`], a closure whose forward and whose backward are one kernel each.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::operand::{HeldOperand, SavedOperand, VariableOperand};
use super::variable::{Variable, is_differentiable};
use crate::error::Result;
use crate::fuse::{Expr, Graph};
use crate::tensor::{Axes, DynamicFused, Fused, GroupAxes, Tensor, TensorOperand, broadcast};
use crate::types::Shape;

const OPERATION: &str = "a fused function";

type Build<const INPUTS: usize> = dyn for<'g> Fn([Expr<'g>; INPUTS]) -> Expr<'g> + Send + Sync;

/// A function of elements and of groups of elements whose forward and whose backward are one kernel each, however many
/// operations it has. It is a [`Fused`] function of variables; its gradients follow by the chain rule ([`Graph::gradient`]).
///
/// ```
/// use selvedge::nn::{FusedFunction, Variable};
/// use selvedge::{Device, Tensor};
/// let swish = FusedFunction::new(|[x, bias]| (x + bias) * (x + bias).sigmoid());
/// let softmax = FusedFunction::new(|[x]| {
///     let e = (x - x.max_group()).exp();
///     e / e.sum_group()
/// });
/// let x = Variable::with_grad(Tensor::new([[1.0f64, -2.0], [0.5, 3.0]], &Device::cpu())?)?;
/// let bias = Variable::with_grad(Tensor::new([0.1f64, 0.2], &Device::cpu())?)?;
/// let y = softmax.run([swish.run([&x, &bias])?])?;
/// y.square()?.sum_all()?.backward()?;
/// assert_eq!(bias.grad().map(|gradient| gradient.shape().to_vec()), Some(vec![2]));
/// # Ok::<(), selvedge::Error>(())
/// ```
pub struct FusedFunction<const INPUTS: usize> {
    forward: Fused<INPUTS>,
    build: Arc<Build<INPUTS>>,
    axes: GroupAxes,
    /// The gradients, by the form of each operand's.
    backward: Mutex<HashMap<[GradientForm; INPUTS], Arc<DynamicFused>>>,
}

/// The values of an operand's gradient. The tape sums them to the operand's shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum GradientForm {
    /// The operand needs none.
    None,
    Elements,
    /// One for each group, of which all elements use one value of the operand.
    PerGroup,
    /// One for each place within a group: all groups use the operand.
    OverGroups,
}

impl<const INPUTS: usize> FusedFunction<INPUTS> {
    /// Creates a function of a closure, as [`Fused::new`] does.
    pub fn new(
        function: impl for<'g> Fn([Expr<'g>; INPUTS]) -> Expr<'g> + Send + Sync + 'static,
    ) -> FusedFunction<INPUTS> {
        let build: Arc<Build<INPUTS>> = Arc::new(function);
        let forward = build.clone();
        FusedFunction {
            forward: Fused::new(move |inputs| forward(inputs)),
            build,
            axes: GroupAxes::Last,
            backward: Mutex::default(),
        }
    }

    /// Sets the axes of a group for reductions, as [`Fused::over`] does.
    #[must_use]
    pub fn over<'a>(self, axes: impl Into<Axes<'a>>) -> FusedFunction<INPUTS> {
        let axes = axes.into();
        FusedFunction { forward: self.forward.over(axes), axes: axes.into(), ..self }
    }

    /// Computes the result of these operands, in the shape to which they broadcast.
    ///
    /// # Errors
    ///
    /// As [`Fused::run_all`].
    pub fn run<'a>(&self, operands: [impl Into<VariableOperand<'a>>; INPUTS]) -> Result<Variable> {
        let operands = operands.map(Into::into);
        let held = operands.each_ref().map(HeldOperand::of);
        let result = self.forward.run(held.each_ref().map(HeldOperand::operand))?;
        let parents = operands.map(|operand| match operand {
            VariableOperand::Variable(variable) => variable.tracked(),
            _ => None,
        });
        if parents.iter().all(Option::is_none) || !is_differentiable(result.dtype()) {
            return Ok(Variable::new(result));
        }
        let shape = *broadcast(OPERATION, held.iter().filter_map(HeldOperand::tensor))?;
        let axes = self.axes.of(&shape);
        let mut forms = [GradientForm::None; INPUTS];
        for ((form, parent), held) in forms.iter_mut().zip(&parents).zip(&held) {
            if let (Some(_), HeldOperand::Tensor(tensor)) = (parent, held) {
                *form = GradientForm::of(tensor, &shape, &axes)?;
            }
        }
        let backward = self.gradient(forms);
        let saved = operands.each_ref().map(SavedOperand::of);
        Ok(Variable::new(result).recorded(OPERATION, parents.to_vec(), |_| {
            Box::new(move |gradient| {
                let held = saved.iter().map(|saved| saved.held(OPERATION)).collect::<Result<Vec<_>>>()?;
                let operands: Vec<TensorOperand<'_>> =
                    held.iter().map(HeldOperand::operand).chain([gradient.into()]).collect();
                let mut found = backward.run(&operands)?.into_iter();
                Ok(forms
                    .iter()
                    .map(|form| if *form == GradientForm::None { None } else { found.next() })
                    .collect())
            })
        }))
    }

    /// Returns the gradients of these forms, as a function of the operands and the result's gradient.
    fn gradient(&self, forms: [GradientForm; INPUTS]) -> Arc<DynamicFused> {
        let mut known = self.backward.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let build = self.build.clone();
            let outputs = forms.iter().filter(|form| **form != GradientForm::None).count();
            let gradients = DynamicFused::new(INPUTS + 1, outputs, move |graph, inputs| {
                Ok(gradients(&*build, forms, graph, inputs))
            });
            Arc::new(gradients.over(self.axes.clone()))
        };
        known.entry(forms).or_insert_with(make).clone()
    }
}

/// Returns the gradients of the operands that need one. The last input is the result's.
fn gradients<'g, const INPUTS: usize>(
    build: &Build<INPUTS>,
    forms: [GradientForm; INPUTS],
    graph: &'g Graph,
    inputs: &[Expr<'g>],
) -> Vec<Expr<'g>> {
    let result = build(std::array::from_fn(|at| inputs[at]));
    let of_groups = graph.has_groups();
    let forms: Vec<_> = inputs.iter().zip(forms).filter(|(_, form)| *form != GradientForm::None).collect();
    let wanted: Vec<Expr<'g>> = forms.iter().map(|(input, _)| **input).collect();
    let gradients = graph.gradient(&[(result, inputs[INPUTS])], &wanted);
    gradients
        .into_iter()
        .zip(forms)
        .map(|(gradient, (_, form))| match form {
            GradientForm::PerGroup if of_groups => gradient.sum_group(),
            GradientForm::OverGroups if of_groups && gradient.dtype().is_float() => {
                gradient.sum_over_groups()
            }
            _ => gradient,
        })
        .collect()
}

impl GradientForm {
    fn of(operand: &Tensor, shape: &Shape, axes: &[isize]) -> Result<GradientForm> {
        let mut is_of_group = vec![false; shape.rank()];
        for &axis in axes {
            is_of_group[shape.axis(OPERATION, axis)?] = true;
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

impl<const INPUTS: usize> fmt::Debug for FusedFunction<INPUTS> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "FusedFunction({INPUTS})")
    }
}
