//! [`FusedFunction`], a closure whose forward and whose backward are one kernel each.

use std::fmt;
use std::sync::Arc;

use super::dynamic_fused::{DynamicFusedFunction, GradientForm};
use super::operand::{HeldOperand, SavedOperand, VariableOperand};
use super::variable::Variable;
use crate::error::Result;
use crate::fuse::Expr;
use crate::tensor::{Axes, Fused, GroupAxes};

const OPERATION: &str = "a fused function";

/// A function of elements and of groups of elements whose forward and whose backward are one kernel each, however many
/// operations it has. It is a [`Fused`] function of variables; its gradients follow by the chain rule ([`Graph::gradient`](crate::fuse::Graph::gradient)).
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
/// let y = softmax.run([&swish.run([&x, &bias])?])?;
/// y.square()?.sum_all()?.backward()?;
/// assert_eq!(bias.grad().map(|gradient| gradient.shape().to_vec()), Some(vec![2]));
/// # Ok::<(), selvedge::Error>(())
/// ```
pub struct FusedFunction<const INPUTS: usize> {
    forward: Fused<INPUTS>,
    /// The same function, for its gradients.
    function: DynamicFusedFunction,
}

impl<const INPUTS: usize> FusedFunction<INPUTS> {
    /// Creates a function of a closure, as [`Fused::new`] does.
    pub fn new(
        function: impl for<'g> Fn([Expr<'g>; INPUTS]) -> Expr<'g> + Send + Sync + 'static,
    ) -> FusedFunction<INPUTS> {
        let build = Arc::new(function);
        let forward = build.clone();
        FusedFunction {
            forward: Fused::new(move |inputs| forward(inputs)),
            function: DynamicFusedFunction::new(OPERATION, INPUTS, 1, GroupAxes::Last, move |_, inputs| {
                Ok(vec![build(std::array::from_fn(|at| inputs[at]))])
            }),
        }
    }

    /// Sets the axes of a group for reductions, as [`Fused::over`] does.
    #[must_use]
    pub fn over<'a>(self, axes: impl Into<Axes<'a>>) -> FusedFunction<INPUTS> {
        let axes = axes.into();
        FusedFunction { forward: self.forward.over(axes), function: self.function.over(axes.into()) }
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
        let parents = operands.each_ref().map(VariableOperand::tracked);
        if parents.iter().all(Option::is_none) {
            return Ok(Variable::new(result));
        }
        let mut forms = [GradientForm::None; INPUTS];
        let shape = self.function.set_forms(&mut forms, &parents, &held)?;
        let saved = operands.each_ref().map(SavedOperand::of);
        self.function.recorded(0, result, (&forms, shape), parents.to_vec(), saved)
    }
}

impl<const INPUTS: usize> fmt::Debug for FusedFunction<INPUTS> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "FusedFunction({INPUTS})")
    }
}
